"""The code on the pages for readers runs, and prints what the pages say.

The Python blocks of a page run in order, in one namespace, with warnings as errors:

- what a line prints begins the comment behind it, or stands in a text block under the block;
- the value of a line that is an expression may be given likewise: ``# 0.99 and more``, ``# about
  4``, which is within a unit of its last digit;
- a comment before a block says how it differs: ``<!-- not run: why -->``, ``<!-- warns: text -->``,
  ``<!-- raises: ValueError -->``, ``<!-- needs: torch -->`` where no import tells;
- ``<!-- setup: code -->`` runs in its place, and readers do not see it.
"""

import ast
import contextlib
import doctest
import importlib
import io
import itertools
import re
import shlex
import tokenize

import pytest

from conftest import PARTNERS
from helpers import pages

PAGES = {pages.name_of(page): page for page in pages.pages(".md")}
pytestmark = [
    pytest.mark.one_engine,
    pytest.mark.skipif("docs/index.md" not in PAGES, reason="needs the checkout"),
]
WITH_CODE = {
    name: [block for block in pages.read(page).blocks if block.language in ("python", "setup")]
    for name, page in PAGES.items()
    if name != "CHANGELOG.md"  # what earlier versions did
}
WITH_CODE = {name: blocks for name, blocks in WITH_CODE.items() if blocks}


def partner_of(block):
    """Return the partner that a block needs, None if it needs none."""
    names = {block.marks["needs"]} if "needs" in block.marks else set()
    for node in [] if "not run" in block.marks else ast.walk(ast.parse(block.text)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    needed = sorted(names & set(PARTNERS))
    assert len(needed) <= 1, f"{block}: partners are tested in environments of their own"
    return needed[0] if needed else None


# --- what is printed, and what the page says of it ------------------------------------------------

_SAID = re.compile(r"(about )?([-\u2212]?[\d.,]*\d(?:e[-+]?\d+)?)(?![\w.]*\d)( and more)?")


def is_said(shown, comment):
    """Whether a comment begins with what is shown, or with a number that it rounds to."""
    if shown and re.match(rf"{re.escape(shown)}(?![\w.])", comment):
        return True
    said = _SAID.match(comment)
    try:
        shown = float(shown)
    except ValueError:
        return False
    if said is None:
        return False
    mantissa, _, exponent = said[2].replace(",", "").replace("\u2212", "-").partition("e")
    digit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    gap = shown - float(mantissa) * 10.0 ** int(exponent or 0)
    if said[3]:
        return gap > -digit / 2
    return abs(gap) <= (digit if said[1] else 0.5001 * digit)


def comments_of(block):
    """Return the comments of a block by line, without their signs."""
    tokens = tokenize.generate_tokens(io.StringIO(block.text).readline)
    found = {t.start[0]: t.string.lstrip("# ") for t in tokens if t.type == tokenize.COMMENT}
    code = block.text.splitlines()
    return {line: text for line, text in found.items() if code[line - 1].split("#")[0].strip()}


def compiled(nodes, block, mode):
    """Compile statements, or one expression, with the lines that they have on the page."""
    tree = ast.Expression(nodes) if mode == "eval" else ast.Module(nodes, [])
    ast.increment_lineno(tree, block.line - 1)
    return compile(tree, str(block.page), mode)


def run(block, known, capsys):
    """Run a block statement by statement; compare what is shown with what the page says."""
    comments, written = comments_of(block), []
    for node in ast.parse(block.text).body:
        comment, value = comments.get(node.end_lineno, ""), None
        if isinstance(node, ast.Expr):
            value = eval(compiled(node.value, block, "eval"), known)
        else:
            exec(compiled([node], block, "exec"), known)
        printed = capsys.readouterr().out
        written.append(printed)
        where = f"{pages.name_of(block.page)}, line {block.line - 1 + node.end_lineno}"
        if printed.strip() and block.output is None:
            assert comment, f"{where}: say behind it, or in a text block, that it prints {printed}"
            assert is_said(printed.strip(), comment), f"{where}: prints {printed}, not {comment}"
        elif value is not None and _SAID.match(comment):
            assert is_said(str(value), comment), f"{where}: is {value}, not {comment}"
    if block.output is not None:
        flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
        same = doctest.OutputChecker().check_output(block.output, "".join(written), flags)
        assert same, f"{block} prints\n{''.join(written)}"


def run_page(name, partner, tmp_path, monkeypatch, capsys, without=()):
    """Run what can be run without a partner, or with this one."""
    for library in ("pandas", "matplotlib"):
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)  # pictures are written where a reader would be
    known = {"__name__": "__main__"}
    for block in WITH_CODE[name]:
        if "not run" in block.marks or partner_of(block) not in (None, partner):
            continue
        if core(block) in without:
            continue
        with contextlib.ExitStack() as expected:
            if said := block.marks.get("warns"):
                expected.enter_context(pytest.warns(match=re.escape(said)))
            if said := block.marks.get("raises"):
                error = getattr(importlib.import_module("builtins"), said)
                expected.enter_context(pytest.raises(error))
            run(block, known, capsys)


def test_no_code_is_hidden_from_these_tests():
    """It belongs into Markdown, or into docstrings, whose examples run as doctests."""
    for page in pages.pages(".rst"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"code-block:: py|^ *>>>", text, re.MULTILINE), pages.name_of(page)


quiet = pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")


_WINDOW = re.compile(r"(import matplotlib\.pyplot as plt\n+|plt\.show\(\)\n)")


def core(block):
    """Return the code without what opens the window."""
    return _WINDOW.sub("", block.text)


@quiet
def test_the_readme_prints_its_results(tmp_path, monkeypatch, capsys):
    """Two of its blocks take seconds; they begin pages of the guide, which slow tests run."""
    elsewhere = {core(blocks[0]) for name, blocks in WITH_CODE.items() if name != "README.md"}
    assert len(elsewhere & set(map(core, WITH_CODE["README.md"]))) == 2
    run_page("README.md", None, tmp_path, monkeypatch, capsys, without=elsewhere)


@quiet
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in WITH_CODE if name != "README.md"])
def test_pages_print_their_results(name, tmp_path, monkeypatch, capsys):
    run_page(name, None, tmp_path, monkeypatch, capsys)


@quiet
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:unsafe cast:Warning")  # in aeon's own kernels
@pytest.mark.parametrize(
    "name, partner",
    [
        pytest.param(name, partner, marks=getattr(pytest.mark, partner))
        for name, blocks in WITH_CODE.items()
        for partner in sorted({partner_of(block) for block in blocks} - {None})
    ],
)
def test_pages_print_their_results_with_a_partner(
    name, partner, request, tmp_path, monkeypatch, capsys
):
    request.getfixturevalue(partner)
    run_page(name, partner, tmp_path, monkeypatch, capsys)


# --- these tests can fail -------------------------------------------------------------------------


def toy(text, output=None):
    return pages.Block(pages.ROOT / "TOY.md", 1, "python", text, output=output)


@pytest.mark.parametrize(
    "text, output",
    [
        ("print(1 / 4)  # 0.25", None),
        ("print(f'{1 / 4:.2f}')  # 0.25: a quarter", None),
        ("1 / 3  # 0.33", None),
        ("1 / 3  # about 0.3", None),
        ("0.995  # 0.99 and more", None),
        ("print(\n    1\n)  # 1", None),
        ("for k in range(2):\n    print(k)", "0\n1\n"),
        ("print('a   b')", "a b"),
        ("x = 1  # 2 is not what this is about", None),
    ],
)
def test_what_is_right_passes(text, output, capsys):
    run(toy(text, output), {}, capsys)


@pytest.mark.parametrize(
    "text, output",
    [
        ("print(1 / 4)", None),
        ("print(1 / 4)  # 0.26", None),
        ("print(1 / 4)  # a quarter", None),
        ("print(12)  # 1", None),
        ("1 / 3  # 0.34", None),
        ("1 / 3  # about 0.35", None),
        ("0.98  # 0.99 and more", None),
        ("for k in range(2):\n    print(k)", "0\n2\n"),
    ],
)
def test_what_is_wrong_fails(text, output, capsys):
    with pytest.raises(AssertionError):
        run(toy(text, output), {}, capsys)


def test_blocks_and_marks_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# Title\n<!-- setup: a = 1 -->\n::::{grid} 2\n:::{card} x\n<!-- not run: slow -->\n"
        "```python\nb = a\n```\n:::\n::::\n\n"
        "```{code-block} python\nc = 2\nprint(c)\n```\n\n```text\n2\n```\n"
    )
    setup, marked, last, output = pages.read(page).blocks
    assert (setup.language, setup.text) == ("setup", "a = 1 ")
    assert (marked.text, marked.marks, marked.line) == ("b = a\n", {"not run": "slow"}, 7)
    assert (last.text, last.output, output.language) == ("c = 2\nprint(c)\n", "2\n", "text")


# --- commands -------------------------------------------------------------------------------------

_PROGRAMS = {"pip", "python", "pre-commit", "ruff", "mypy", "lint-imports", "nox", "git", "cd"}


def commands_of(page):
    """Return the commands of the blocks for a shell, and of text blocks that begin with python."""
    for block in pages.read(page).blocks:
        if block.language in ("bash", "sh", "console", "shell", "text"):
            text = re.sub(r"\\\n", " ", block.text)
            lines = [line.split(" #")[0].removeprefix("$ ") for line in text.splitlines()]
            lines = [part.strip() for line in lines for part in re.split(r"&&|;", line)]
            asked = block.language != "text"
            yield from (line for line in lines if line and (asked or line.startswith("python ")))


def faults(command):
    """Return what is wrong with a command: no such program, no such script, not its argument."""
    words = [word for word in shlex.split(command, comments=True) if "=" not in word.split("/")[0]]
    if not words:
        return []
    program = pages.ROOT / words[0]
    if words[0] not in _PROGRAMS and not program.is_file():
        return [f"no program {words[0]}"]
    if words[0] == "nox":  # nox -s SESSION ... -- ARGUMENT ...
        sessions = (pages.ROOT / "noxfile.py").read_text(encoding="utf-8")
        asked = itertools.takewhile(lambda word: word != "--", words[2:])
        return [f"no session {word}" for word in asked if f"\ndef {word}(session" not in sessions]
    if words[0] != "python" or words[1].startswith("-"):
        return []
    script = pages.ROOT / words[1]
    if not script.is_file():
        return [f"no script {words[1]}"]
    source = script.read_text(encoding="utf-8")
    asked = itertools.takewhile(lambda word: not word.startswith("-"), words[2:])
    asked = [word for word in asked if re.match(r"[a-z][a-z_]*$", word)]
    asked += [word for word in words[2:] if word.startswith("--")]
    return [f"{words[1]} knows no {word}" for word in asked if word not in source]


@pytest.mark.parametrize("name", sorted(set(PAGES) - {"CHANGELOG.md"}))
def test_commands_name_what_there_is(name):
    assert [fault for command in commands_of(PAGES[name]) for fault in faults(command)] == []


def test_wrong_commands_are_found():
    script = "python examples/benchmarks/speed.py"
    assert not faults(f"{script} states --rounds 5")
    for wrong in (
        f"{script} stateless",
        f"{script} --turns 5",
        "python examples/gone.py",
        "pipp",
        "nox -s gone",
    ):
        assert faults(wrong), wrong

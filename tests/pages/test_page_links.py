"""Links, anchors, pictures and paths on the pages for readers exist."""

import re
import subprocess
import sys
from urllib.parse import unquote

import pytest

from helpers import pages

PAGES = {pages.name_of(page): page for page in pages.pages(".md")}
DEEPEST = 3  # the level of headings that Sphinx makes anchors for: myst_heading_anchors in conf.py
pytestmark = pytest.mark.skipif("docs/index.md" not in PAGES, reason="needs the checkout")
every_page = pytest.mark.parametrize("name", PAGES)


def links_of(page):
    """Return the targets of a page's links and pictures, and of directives that link."""
    text = "\n".join(page.lines)
    prose = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text, flags=re.DOTALL)
    found = re.findall(r"\]\(<?([^\s)>]+)>?(?:\s+[^)]*)?\)", prose)
    found += re.findall(r"<(?:a|img|source)\b[^>]*?(?:href|src|srcset)=\"([^\"]+)\"", prose)
    found += re.findall(r"^\s*:target: (\S+)$", text, re.MULTILINE)
    found += re.findall(
        r"^\s*[`:]{3,}\{(?:figure|image|literalinclude)\} (\S+)$", text, re.MULTILINE
    )
    return [unquote(target) for target in found if not re.match(r"[a-z]+:", target)]


def file_of(folder, path):
    """Return the file that a relative path leads to, built pages by their source; None if none."""
    target = (folder / path).resolve()
    if target.exists():
        return target
    try:
        parts = target.relative_to(pages.ROOT / "docs").with_suffix("").parts
    except ValueError:
        return None
    if parts[0] in ("gallery", "tutorials"):
        inside = parts[1:] if parts[0] == "gallery" else parts
        example = pages.ROOT.joinpath("examples", *inside)
        built = [example.with_suffix(".py"), example.parent / "GALLERY_HEADER.rst"]
        return built[parts[-1] == "index"] if built[parts[-1] == "index"].exists() else None
    made = pages.ROOT.joinpath("docs", *parts)
    return next((f for s in (".md", ".rst") if (f := made.with_suffix(s)).exists()), None)


def fault(page, target):
    """Return what is wrong with a link, None if nothing is."""
    path, _, anchor = target.partition("#")
    file = file_of(page.parent, path) if path else page
    if file is None:
        return f"{target}: no such file"
    if anchor and file.suffix == ".md":
        in_docs = (pages.ROOT / "docs") in file.parents
        if anchor not in pages.anchors(file, DEEPEST if in_docs else 6):
            return f"{target}: no such heading"
    return None


@every_page
def test_links_lead_somewhere(name):
    page = PAGES[name]
    faults = [fault(page, target) for target in links_of(pages.read(page))]
    assert [found for found in faults if found] == []


def test_links_are_found():
    assert len(links_of(pages.read(PAGES["README.md"]))) > 10


def test_anchors_go_as_deep_as_sphinx_makes_them():
    conf = (pages.ROOT / "docs" / "conf.py").read_text(encoding="utf-8")
    assert f"myst_heading_anchors = {DEEPEST}\n" in conf


def test_links_that_are_broken_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# Two words, `code`: é\n## Two words\n## Two words\n"
        "[a](#two-words-1) [b](#two-words-code-é)\n"
        '[c](page.md#gone) [d](gone.md) <img src="gone.png"> ![e](gone.svg "title")\n'
        "`[f](inside.md)` [g](https://example.org/#gone)\n```text\n[h](block.md)\n```\n",
        encoding="utf-8",
    )
    found = [fault(page, target) for target in links_of(pages.read(page))]
    assert [text.partition(":")[0] for text in found if text] == [
        "page.md#gone",
        "gone.md",
        "gone.svg",
        "gone.png",
    ]


# --- paths in the text ----------------------------------------------------------------------------


def paths_of(page):
    """Return the files of this repository that code spans of a page name, without arguments."""
    spans = re.findall(r"`([^`\n]+)`", "\n".join(page.lines))
    firsts = [span.removeprefix("python ").split()[0] for span in spans if span.strip()]
    return sorted({f for f in firsts if re.fullmatch(r"[\w./*-]+\.(py|md|rst|c|cfg|toml)", f)})


def is_there(page, path):
    """Whether a path leads to a file from the root, the package, the page, or by its name alone."""
    homes = [pages.ROOT, pages.ROOT / "reservoir", pages.ROOT / "docs", page.parent]
    # not all below the root: environments and what is built lie there, too
    folders = ("reservoir", "docs", "examples", "tests") if "/" not in path else ()
    found = [home.glob(path) for home in homes]
    found += [(pages.ROOT / folder).rglob(path) for folder in folders]
    return any(True for paths in found for _ in paths)


@pytest.mark.parametrize("name", sorted(set(PAGES) - {"CHANGELOG.md"}))
def test_files_that_are_named_exist(name):
    page = pages.read(PAGES[name])
    assert [path for path in paths_of(page) if not is_there(PAGES[name], path)] == []


def test_files_that_are_gone_are_found():
    assert is_there(PAGES["README.md"], "examples/benchmarks/speed.py")
    assert not is_there(PAGES["README.md"], "examples/benchmarks/gone.py")
    assert not is_there(PAGES["README.md"], "gone.py")


def test_no_page_and_no_example_names_a_path_of_whoever_wrote_it():
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.md", "*.rst", "*.py", "*.txt"],
        cwd=pages.ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode:
        pytest.skip("needs git and a clone")
    machine = re.compile(r"(?<![\w.~/])/(?:tmp|work|root|home|Users|opt|mnt)/\w+")
    found = [
        f"{file}: {match[0]}"
        for file in listed.stdout.splitlines()
        if (pages.ROOT / file).exists() and not file.startswith("tests/")
        for match in machine.finditer((pages.ROOT / file).read_text(encoding="utf-8"))
    ]
    assert found == []


def test_links_of_built_pages_that_lead_nowhere_are_found(tmp_path):
    sys.path.append(str(pages.ROOT / "docs"))
    check = pytest.importorskip("check_anchors", reason="needs the checkout")
    (tmp_path / "a.html").write_text('<p id="here"><a href="b.html#there">b</a> <a href="#here">')
    (tmp_path / "b.html").write_text('<h1 id="there"><a href="https://other.org/#x">elsewhere</a>')
    assert check.lost_links(tmp_path) == []
    (tmp_path / "b.html").write_text('<a href="a.html#gone">a</a> <a href="c.html">c</a>')
    lost = {("a.html", "b.html#there"), ("b.html", "a.html#gone"), ("b.html", "c.html")}
    assert set(check.lost_links(tmp_path)) == lost

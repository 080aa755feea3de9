"""Figures on the pages for readers are those that scripts have printed, as docs/measured has them.

A comment before a paragraph, a list or a table, or within a line (then for the rest of it), says
where its figures come from: ``<!-- figures: NAME, NAME; given: 50 1e-4 -->``. Each number there,
code and targets of links aside, must stand in one of these records, rounded as the page has it
(half a unit of its last digit; per cent may be shares in the record), or be named as given: a
setting, a year, a figure from the literature.
``; within: 0.05`` allows for a relative difference more, ``; timed: 5`` leaves a column of times
out, ``; times: 1e-3`` is the unit of what the script printed.
``<!-- no figures: REASON -->`` says of a table why nothing in it was measured.

`docs/check_figures.py` makes records, and runs their commands again.
"""

import re
import sys

import pytest

from helpers import pages

sys.path.append(str(pages.ROOT / "docs"))
check = pytest.importorskip("check_figures", reason="needs the checkout")

PAGES = {pages.name_of(page): page for page in pages.pages(".md")}
_MARK = re.compile(r"<!--\s*figures:(.*?)-->")


def marked_parts(page):
    """Yield (line, mark, text) for each part of a page whose figures come from a record."""
    for last, comment in page.comments.items():
        if not comment.startswith("figures:"):
            continue
        first = last + 1
        while first in page.comments:
            first += 1
        text = []
        for line in page.lines[first:]:
            if not line.strip():
                break
            text.append(line)
        yield first + 1, comment.removeprefix("figures:"), "\n".join(text)
    for k, line in enumerate(page.lines):
        line = re.sub(r"`[^`]*`", lambda code: " " * len(code[0]), line)
        starts = list(_MARK.finditer(line))
        ends = [*(mark.start() for mark in starts[1:]), len(line)]
        yield from (
            (k + 1, m[1], line[m.end() : end]) for m, end in zip(starts, ends, strict=False)
        )


def parse(mark):
    """Return the records that a mark names, and its options, each a list of words."""
    names, *options = mark.split(";")
    said = {
        option.partition(":")[0].strip(): option.partition(":")[2].split() for option in options
    }
    assert set(said) <= {"given", "timed", "times", "within"}, mark
    return [name.strip() for name in names.split(",")], said


def printed_numbers(text):
    """Return the numbers that a reader sees as figures: not those in code, targets and comments."""
    text = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", " ", text, flags=re.DOTALL)
    text = re.sub(r"\]\([^)]*\)|<[^>]*>", " ", text)
    return check.numbers_of(text)


def stands_in(number, measured, within):
    """Whether a number is one of those that were measured, rounded as it is printed."""
    said, digit = check.value(number), check.last_digit(number)
    room = 0.5001 * digit + within * abs(said)
    return any(abs(said - m) <= room for m in measured)


def missing(mark, text):
    """Return the numbers of a part that no record has."""
    names, said = parse(mark)
    unit = float(said.get("times", [1])[0])
    printed = [n for name in names for n in check.numbers_of(check.read(name)[1])]
    measured = [unit * abs(check.value(n)) for n in printed]
    for column in sorted(map(int, said.get("timed", ())), reverse=True):
        text = re.sub(
            rf"^((?:\|[^|\n]*){{{column - 1}}})\|[^|\n]*", r"\1|", text, flags=re.MULTILINE
        )
    within, given = float(said.get("within", [0])[0]), said.get("given", ())
    measured += [100 * m for m in measured if "%" in text]
    numbers = [n.lstrip("-\u2212") for n in printed_numbers(text)]
    return [n for n in numbers if n not in given and not stands_in(n, measured, within)]


@pytest.mark.parametrize("name", PAGES)
def test_figures_are_those_that_were_measured(name):
    for line, mark, text in marked_parts(pages.read(PAGES[name])):
        assert text, f"line {line}: nothing follows the mark"
        assert missing(mark, text) == [], f"{name}, line {line}: not in the records{mark}"


def test_records_and_pages_name_each_other():
    marks = [m for page in PAGES.values() for _, m, _ in marked_parts(pages.read(page))]
    named = {name for mark in marks for name in parse(mark)[0]}
    recorded = {path.stem for path in check.RECORDS.glob("*.txt")}
    assert named == recorded


@pytest.mark.fast_cases(8)
@pytest.mark.parametrize("name", sorted(path.stem for path in check.RECORDS.glob("*.txt")))
def test_a_record_is_compared_in_each_line(name):
    settings, output = check.read(name)
    leave_out, tolerance = settings.get("leave out", ""), float(settings["tolerance"])
    lines = [line for line in output.splitlines() if line.strip()]
    for k, line in enumerate(lines):
        around = slice(max(k - 1, 0), k + 2)  # lines are compared one by one
        changed = [*lines[:k], "something else", *lines[k + 1 :]]
        some, other = ("\n".join(text[around]) for text in (lines, changed))
        assert check.differences(some, other, tolerance, leave_out), line
    changed = "\n".join([*lines[:-1], "something else"])
    assert check.differences(output, changed, tolerance, leave_out)
    left = re.sub(leave_out, "", output, flags=re.MULTILINE) if leave_out else output
    assert check.numbers_of(left), "nothing but words is compared"


def tables_without_a_mark():
    """Yield tables with figures, decimals that is, that no mark stands before or in."""
    for name, path in PAGES.items():
        page = pages.read(path)
        for k, line in enumerate(page.lines):
            is_rule = re.match(r"\s*\|(?:\s*:?-+:?\s*\|)+\s*$", line)
            said = "".join(page.comments.get(k - back, "") for back in (2, 3))
            if not is_rule or re.search(r"figures: *\S", said):
                continue
            rest = page.lines[k + 1 :]
            rows = rest[: next((n for n, row in enumerate(rest) if not row.strip()), len(rest))]
            rows = [row for row in rows if not _MARK.search(row)]
            if any("." in number for row in rows for number in printed_numbers(row)):
                yield f"{name}, line {k}"


def test_every_table_names_the_source_of_its_figures():
    found = list(tables_without_a_mark())
    assert not found, "\n".join(found)


# --- these tests can fail -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, lacks",
    [
        ("NRMSE 0.62, 0.59 to 0.67", []),
        ("NRMSE .62 and 1.1", []),
        ("NRMSE 0.63", ["0.63"]),
        ("| 0.6 | 1.06 | 22 |", []),
        ("`0.99` at [0.98](page.md#0.97)", ["0.98"]),
        ("of 52 weeks", ["52"]),
    ],
)
def test_a_figure_that_was_not_measured_is_found(text, lacks):
    assert missing(" sunspots", text) == lacks
    assert missing(f" sunspots; given: {' '.join(lacks)}", text) == []


def test_another_run_is_compared():
    old = "a 1.00 (3.0 s)\nb 200\n"
    assert check.differences(old, "a  1.01 (9.0 s)\nb  203\n", 0.02, r"\(.*s\)") == []
    for new in (
        "a 1.05 (3.0 s)\nb 200",
        "a 1.00 (3.0 s)",
        "c 1.00 (3.0 s)\nb 200",
        "a 1.00\nb 200",
    ):
        assert check.differences(old, new, 0.02), new


def test_numbers_are_read_as_they_are_printed():
    read = check.numbers_of("N10 1,000 of .5, 2.8e-3 (C3), 1e-13; 98 % x2 3.4e+05 -0.5 2026-11-22")
    assert read[:8] == ["1,000", ".5", "2.8e-3", "1e-13", "98", "3.4e+05", "-0.5", "2026"]
    assert [check.last_digit(n) for n in ("1,000", ".5", "2.8e-3")] == [1, 0.1, 1e-4]

"""The tables of what to choose: short cells, one table a heading, and the case is read first."""

import importlib.util
import re

import pytest

from helpers import ROOT, pages

PAGE = ROOT / "docs" / "choose.md"
MOST_WORDS = 25
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="needs the checkout")


def tables_of(page):
    """Return the tables of a page: their rows, each a list of cells as a reader sees them."""
    tables, before = [], False
    for line in pages.read(page).lines:
        is_row = line.lstrip().startswith("|")
        if is_row and not before:
            tables.append([])
        if is_row:
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line.strip().strip("|"))
            tables[-1].append([cell.strip() for cell in re.split(r"(?<!\\)\|", text)])
        before = is_row
    return tables


@pytest.mark.parametrize("page", [PAGE, ROOT / "README.md"], ids=lambda page: page.name)
def test_cells_are_short(page):
    cells = [cell for table in tables_of(page) for row in table for cell in row]
    assert not [cell for cell in cells if len(cell.split()) > MOST_WORDS]


def test_each_heading_has_one_table_that_begins_with_the_case():
    parts = re.split(r"^## .*$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert len(parts) > 5
    assert all(len(re.findall(r"^\|---", part, flags=re.MULTILINE)) == 1 for part in parts)
    of_cases = [table for table in tables_of(PAGE) if table[0][0] == "you have"]
    assert len(of_cases) >= len(parts) - 1
    assert all(table[0] == ["you have", "and want", "use"] for table in of_cases)


def test_narrow_screens_show_the_case_first():
    pytest.importorskip("sphinx")
    spec = importlib.util.spec_from_file_location("tables", ROOT / "docs" / "tables.py")
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    assert tables.answer_column(["you have", "and want", "use"], [1, 2]) == 0
    assert tables.answer_column(["you have", "use"], [1]) == 1
    assert tables.answer_column(["method", "use"], [1]) == 0

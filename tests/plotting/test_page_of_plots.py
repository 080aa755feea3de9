"""The page on `plotting` has a row for each function: which arrays and which objects it takes."""

import re

import pytest

from helpers import ROOT
from reservoir import plotting

PAGE = ROOT / "docs" / "api" / "plotting.rst"


@pytest.mark.skipif(not PAGE.exists(), reason="needs the checkout")
def test_the_table_has_a_row_for_each_function():
    rows = re.findall(r"\* - :func:`(\w+)`", PAGE.read_text(encoding="utf-8"))
    assert sorted(rows) == sorted(plotting.__all__)

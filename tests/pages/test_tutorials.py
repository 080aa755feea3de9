"""Tutorials open with the whole task, on one screen, and end within 220 lines."""

import ast

import pytest

from helpers import pages

TUTORIALS = sorted((pages.ROOT / "examples" / "tutorials").glob("plot_*.py"))
pytestmark = pytest.mark.skipif(not TUTORIALS, reason="needs the checkout")
LONGEST, INTRODUCTION, FIRST_BLOCK = 220, 4, 12  # lines


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_tutorials_are_short_and_begin_with_the_whole_task(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST
    first = text.split("\n# %%", 1)[0]
    docstring, *code = ast.parse(first).body
    _, rule, *introduction = ast.literal_eval(docstring.value).strip().splitlines()
    assert set(rule) == {"="}
    assert 1 <= sum(bool(line.strip()) for line in introduction) <= INTRODUCTION
    assert any(isinstance(line, ast.ImportFrom) and line.module == "reservoir" for line in code)
    rest = first.splitlines()[docstring.end_lineno :]
    block = [line for line in rest if line.strip()]
    assert not any(line.startswith("#") for line in block)
    assert 1 <= len(block) <= FIRST_BLOCK

"""Tutorials open with the whole task, on one screen, and end within 220 lines; cards say it in one
sentence, which sphinx-gallery takes from the first paragraph of each page.
"""

import ast
import re

import pytest

from helpers import pages

TUTORIALS = sorted((pages.ROOT / "examples" / "tutorials").glob("plot_*.py"))
pytestmark = pytest.mark.skipif(not TUTORIALS, reason="needs the checkout")
EXAMPLES = sorted((pages.ROOT / "examples").rglob("plot_*.py"))
LONGEST, INTRODUCTION, FIRST_BLOCK = 220, 4, 12  # lines
CARD = 160  # letters


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


def card_of(path):
    """Return what sphinx-gallery shows on the card of a page: the paragraph below its title."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    return " ".join(docstring.split("\n\n")[1].split())


def test_each_card_has_one_sentence_of_its_own():
    cards = {path.stem: card_of(path) for path in EXAMPLES}
    assert len(set(cards.values())) == len(cards)
    wrong = [
        name
        for name, card in cards.items()
        if len(card) > CARD or not re.fullmatch(r"[A-Z](?:[^.?!]|[.](?=\d))*[.?]", card)
    ]
    assert not wrong


def test_no_card_is_cut_and_three_stand_in_a_row():
    style = (pages.ROOT / "docs" / "_static" / "site.css").read_text(encoding="utf-8")
    assert "line-clamp" not in style
    least = re.search(r"\.sphx-glr-thumbnails \{\s*[^}]*?(\d+)rem\)", style)
    narrow = re.search(r"\(max-width: (\d+)em\) \{\s*\.sphx-glr-thumbnails \{\s*[^}]*none;", style)
    three = 3 * int(least[1]) + 2  # with two gaps
    assert three <= 46  # the width of furo's text
    assert three + 6 <= int(narrow[1])  # with its margins: below that width one stands in a row

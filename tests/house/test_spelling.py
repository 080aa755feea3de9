"""The spelling check reads only prose; `nox -s lint` looks the words up."""

import sys

import pytest

from helpers import pages

sys.path.append(str(pages.ROOT / "docs"))
check = pytest.importorskip("check_spelling", reason="needs the checkout")


@pytest.mark.parametrize(
    "text, words",
    [
        ("two `words` of [a link](words.md)", "two of link"),
        ("```python\nwords\n```\nbehind", "behind"),
        ("one\n>>> words\nwords\n\ntwo", "one two"),
        ("n_units : int\n    How many", "How many"),
        ("$words$ and x_1, ESNRegressor(n=1) of <!-- words --> file.md", "and of"),
        ("See\n.. [1] Name, A. (2000). Words,\n   more words.\n\nThen", "See Then"),
    ],
)
def test_prose_is_what_is_left(text, words):
    found = [match[0] for match in check.WORD.finditer(check.prose(text)) if len(match[0]) > 1]
    assert found == words.split()


def test_files_are_found():
    names = {path.relative_to(pages.ROOT).as_posix() for path in check.files()}
    assert names >= {"README.md", "docs/choose.md", "reservoir/drawing.py", "docs/conf.py"}


def test_comments_and_docstrings_are_read():
    lines = dict(check.texts(pages.ROOT / "tests" / "helpers" / "pages.py"))
    assert lines[1].startswith("The pages for readers")
    assert any(text.startswith("# of its first line") for text in lines.values())

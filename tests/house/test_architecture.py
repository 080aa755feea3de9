"""The pages for contributors name existing files, registries and layers."""

import configparser
import re
from functools import cache
from pathlib import Path

import pytest

import reservoir
from helpers import ROOT

PACKAGE = Path(reservoir.__file__).parent
PAGES = (
    ROOT / "CONTRIBUTING.md",
    *(ROOT / "docs" / f"{name}.md" for name in ("architecture", "extending")),
)

pytestmark = pytest.mark.skipif(
    not all(page.exists() for page in (*PAGES, ROOT / ".ci")), reason="needs the checkout"
)
pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def text_of(page):
    return page.read_text(encoding="utf-8")


def named_paths(page):
    """Return the paths that a page names: modules, and what stands in backticks with a slash."""
    text = re.sub(r"https?://\S+", "", text_of(page))
    modules = re.findall(r"(?<![\w.*/-])[\w.*/-]+\.py\b", text)
    folders = re.findall(r"`((?:[\w.*-]+/)+)`", text)
    return sorted({*modules, *folders})


@cache
def folders_of_the_package():
    return [folder for folder in (PACKAGE, *PACKAGE.rglob("*")) if folder.is_dir()]


def exists(path):
    """Whether a path leads to a file from the checkout, from the package, or by its name alone."""
    homes = [ROOT, PACKAGE.parent, PACKAGE, ROOT / "docs"]
    if "/" not in path:  # a file of the root, or a module of any folder of the package
        homes = [ROOT, *folders_of_the_package()]
    if "*" not in path:
        return any((home / path).exists() for home in homes)
    return any(True for home in homes for _ in home.glob(path))


@pages
def test_every_path_exists(page):
    paths = named_paths(page)
    assert len(paths) > 20
    assert [path for path in paths if not exists(path)] == []


def test_a_path_that_is_gone_is_found():
    assert exists("readouts/ridge.py")
    assert exists("_max_norm.py")
    assert exists("training/online/_by_*.py")
    for gone in ("readouts/_ridge.py", "_minimum_norm.py", "training/online/_of_*.py"):
        assert not exists(gone)


def test_every_session_runs_before_a_change_lands():
    """One after the other in `.ci/run`; in the workflow from two lists, side by side."""
    source = text_of(ROOT / "noxfile.py")
    sessions = re.findall(r"^@nox\.session.*\n(?:@.*\n)*def (\w+)", source, re.MULTILINE)
    (line,) = re.findall(r"set -- (.*)", text_of(ROOT / ".ci" / "run"))
    workflow = text_of(ROOT / ".github" / "workflows" / "ci.yml")
    (tests,) = re.findall(r"nox -s ([a-z ]+)$", workflow, re.MULTILINE)
    (checks,) = re.findall(r"session: \[(.*)\]", workflow)
    assert len(sessions) > 9
    assert sorted(line.split()) == sorted(tests.split() + checks.split(", ")) == sorted(sessions)


@cache
def words_of_the_source():
    files = [*PACKAGE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    files += [ROOT / name for name in ("pyproject.toml", "setup.cfg", "noxfile.py", ".ci/run")]
    files += [ROOT / ".github" / "workflows" / "ci.yml"]
    return set(re.findall(r"\w+", "\n".join(map(text_of, files))))


@pages
def test_every_name_in_backticks_is_one_of_the_source(page):
    prose = re.sub(r"^```.*?^```", "", text_of(page), flags=re.MULTILINE | re.DOTALL)
    quoted = re.findall(r"`@?([A-Za-z_][\w.]*)(?:\([^`]*\))?`", prose)
    names = {name.rpartition(".")[2] for name in quoted if "/" not in name}
    assert len(names) > 20
    assert sorted(names - words_of_the_source() - {"py", "md", "cfg"}) == []


def layers():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    lines = config["importlinter:contract:layers"]["layers"].split("\n")
    return [line.split(" | ") for line in lines if line]


def test_the_layers_of_contributing_are_those_that_are_enforced():
    block = text_of(PAGES[0]).partition("## Layers")[2].partition("```text\n")[2]
    lines = block.partition("```")[0].splitlines()
    assert [re.split(r" {2,}", line)[0].split(" | ") for line in lines] == layers()


def test_the_table_of_rooms_has_every_package_high_to_low():
    rooms = text_of(PAGES[1]).partition("## The packages")[2].partition("\n\nIn `estimators`")[0]
    firsts = re.findall(r"^\| (`[^|]*) \|", rooms, re.MULTILINE)
    named = [name.removesuffix(".py") for first in firsts for name in re.findall(r"`(.*?)`", first)]
    assert sorted(named) == sorted(name for layer in layers() for name in layer)
    rank = {name: k for k, layer in enumerate(layers()) for name in layer}
    assert [rank[name] for name in named] == sorted(rank[name] for name in named)


def test_the_figure_shows_the_layers_that_are_enforced():
    """Else draw it again: python docs/_static/architecture.py."""
    drawn = text_of(ROOT / "docs" / "_static" / "architecture.svg")
    assert "; ".join(map(" | ".join, layers())) in drawn

"""Order in the source: imports between modules, and limits of size."""

import ast
import gc
import importlib.util
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import conftest
import reservoir
from helpers import ROOT

PACKAGE = Path(reservoir.__file__).parent
TESTS = ROOT / "tests"
SOURCES = sorted(PACKAGE.rglob("*.py"))


@cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module", autouse=True)
def trees_are_freed():
    """Keep the garbage collector from looking at the 700,000 objects of the trees; free them."""
    gc.disable()
    yield
    tree_of.cache_clear()
    gc.enable()


def module_name(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def name_of(path):
    return path.relative_to(PACKAGE).as_posix()


# --- what is private stays in its package -----------------------------------------------------


def is_private(name):
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def imports(path):
    """Yield, for each import of the house's own, the line, the full name and the name it gets."""
    package = module_name(path)
    package = package if path.name == "__init__.py" else package.rpartition(".")[0]
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom):
            source = "." * node.level + (node.module or "")
            source = importlib.util.resolve_name(source, package)
            found = [(f"{source}.{alias.name}", alias.asname or alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            found = [(alias.name, alias.asname or alias.name) for alias in node.names]
        else:
            continue
        yield from ((node.lineno, *pair) for pair in found if pair[0].startswith("reservoir."))


def chain(node):
    """Return the names of `a.b.c`, first to last; nothing where it does not begin with a name."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [node.id, *reversed(names)] if isinstance(node, ast.Name) else []


def private_uses(path):
    """Yield what a module takes from another package of the house though it is private there.

    The packages are the direct children of `reservoir`. Those with an underscore are private to
    the house as a whole: inside it, they are open to all.
    """
    own = module_name(path).split(".")[1:2]
    bound = {}
    for line, full, name in imports(path):
        bound[name] = full
        parts = full.split(".")[1:]
        if parts[:1] != own and any(map(is_private, parts[1:])):
            yield line, full
    attributes = (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Attribute))
    for node in attributes:
        first, *rest = chain(node) or [None]
        if first in bound and rest:
            parts = [*bound[first].split(".")[1:], *rest]
            if parts[:1] != own and is_private(parts[-1]) and len(parts) > 1:
                yield node.lineno, ".".join(parts)


@pytest.mark.slow
def test_no_private_name_is_used_across_packages():
    found = [
        f"{name_of(path)}, line {n}: {name}" for path in SOURCES for n, name in private_uses(path)
    ]
    assert not found, "what is private in another package is used: " + "; ".join(found)


@pytest.mark.parametrize(
    "source, n_found",
    [
        ("from reservoir.dynamics._many import run_many", 1),
        ("from reservoir.dynamics.reservoir import _checked", 1),
        ("from reservoir.dynamics import _many", 1),
        ("import reservoir.dynamics._many", 1),
        ("from reservoir.dynamics import engines\nengines._WORTH_LOADING = 0", 1),
        ("from reservoir import dynamics as d\nprint(d.engines._WORTH_LOADING)", 1),
        ("import reservoir.dynamics.engines as e\ndef f():\n    return e._WORTH_LOADING", 1),
        ("from reservoir.dynamics import Reservoir\nReservoir._checked()", 1),
        ("def f():\n    from ..dynamics._many import run_many", 1),
        ("from reservoir import _kernels\n_kernels.load()", 0),
        ("from reservoir._validation import check_count", 0),
        ("from reservoir._validation._one import check_count", 1),
        ("from reservoir.readouts._own import mine\nfrom reservoir.readouts import _own", 0),
        ("from reservoir.dynamics import engines\nengines.__name__", 0),
        ("import numpy\nnumpy._private", 0),
    ],
)
def test_private_uses_are_found(source, n_found, monkeypatch):
    path = PACKAGE / "readouts" / "toy.py"
    monkeypatch.setitem(globals(), "tree_of", lambda _: ast.parse(source))
    assert len(list(private_uses(path))) == n_found


# --- sizes --------------------------------------------------------------------------------------

MOST_LINES_OF_A_FILE, MOST_LINES_OF_A_FUNCTION = 450, 40
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)


def definitions(tree):
    """Yield a module, its classes and functions. Only statements are visited, a tenth of all."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, DOCUMENTED):
            yield node
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, block, ())


def lines_of_code(path, tree):
    """Return which lines of a file have code: no docstring, no comment, not empty."""
    lines = path.read_text(encoding="utf-8").splitlines()
    code = {i for i, line in enumerate(lines, 1) if line.strip() and line.strip()[0] != "#"}
    for node in definitions(tree):
        if ast.get_docstring(node, clean=False) is not None:
            code.difference_update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return code


def too_long(path):
    """Return what is too long in a module, with its lines of code: the file, its functions."""
    tree = tree_of(path)
    code = lines_of_code(path, tree)
    lengths = {
        f"{name_of(path)}, line {f.lineno}, {f.name}": sum(
            line in code for line in range(f.body[0].lineno, f.end_lineno + 1)
        )
        for f in definitions(tree)
        if isinstance(f, ast.FunctionDef)
    }
    found = {name: n for name, n in lengths.items() if n > MOST_LINES_OF_A_FUNCTION}
    return found | ({name_of(path): len(code)} if len(code) > MOST_LINES_OF_A_FILE else {})


def test_files_and_functions_can_be_read():
    assert [found for path in SOURCES if (found := too_long(path))] == []


# --- docstrings ---------------------------------------------------------------------------------

SECTION = re.compile(r"^(Parameters|Attributes|Returns|Yields|Raises|Warns|Notes)\n-+$", re.M)
# Classes that others implement, or whose fields they read: a paragraph would be too short.
CONTRACTS = {
    *("Cell", "ClosedLoop", "FeatureSource", "Fit", "FittedModel", "Readout", "ReadoutSettings"),
    *("RowLearner", "RowSums", "SeriesModel"),
}
# Their docstrings have examples: aeon and sktime ask for them, and tests run those with torch.
WITH_EXAMPLES = {
    "interop/_aeon_estimators.py",
    "interop/_sktime_estimators.py",
    "interop/_sktime_forecaster.py",
    "training/torch_conversion.py",
}


def public_names():
    """Return all exported names, and the names of the base classes of what is exported."""
    names, bases = set(), {}
    for path in SOURCES:
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef):
                bases.setdefault(node.name, set()).update(
                    chain(base)[-1] for base in node.bases if chain(base)
                )
            elif isinstance(node, ast.Assign) and chain(node.targets[0]) == ["__all__"]:
                names.update(c.value for c in ast.walk(node.value) if isinstance(c, ast.Constant))
    waiting = list(names)
    while waiting:
        waiting += (new := bases.get(waiting.pop(), set()) - names)
        names |= new
    return names


def sections_inside(tree, public):
    """Yield functions and classes with a section in their docstring that users do not read."""
    waiting = [(node, node) for node in tree.body]
    while waiting:
        node, outer = waiting.pop()
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            waiting += ((inner, outer) for inner in node.body)
            for_users = outer.name in public and (node is outer or not is_private(node.name))
            if not for_users and outer.name not in CONTRACTS and has_section(node):
                yield node.name


def has_section(node):
    return SECTION.search(ast.get_docstring(node) or "") is not None


def test_internal_docstrings_are_paragraphs():
    public = public_names()
    assert len(public) > 300
    found = {
        f"{name_of(path)}: {name}"
        for path in SOURCES
        if name_of(path) not in WITH_EXAMPLES
        for name in sections_inside(tree_of(path), public)
    }
    assert found == set(), "write one paragraph, with shapes and units, instead of sections"


def test_sections_are_found():
    text = '\n    """Do it.\n\n    Returns\n    -------\n    int\n    """\n'
    source = f"def f():{text}\nclass B:\n  def _f():{text}\n  def g():{text}"
    assert list(sections_inside(ast.parse(source), {"B"})) == ["_f", "f"]


# --- tests --------------------------------------------------------------------------------------

# Folders of tests that belong to no package; `modules` is for modules that are no packages.
OTHER_FOLDERS = {"benchmarks", "contracts", "house", "modules", "pages"}


def test_tests_are_in_the_folder_of_their_package():
    packages = {path.parent.name.removeprefix("_") for path in PACKAGE.glob("*/__init__.py")}
    homes = {path.relative_to(TESTS).parts[0] for path in TESTS.rglob("test_*.py")}
    assert homes == packages | OTHER_FOLDERS


# --- marks --------------------------------------------------------------------------------------

RUNS = """
from reservoir import ESNRegressor
def test_that_runs():
    ESNRegressor(5).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 2, 3])
"""
MARK = "import pytest\npytestmark = pytest.mark.{}\n"
TOYS = {
    "test_forgotten.py": RUNS,
    "test_rests.py": "def test_that_rests():\n    pass\n",
    "test_one.py": MARK.format("one_engine") + RUNS,
    "test_both.py": MARK.format("both_engines") + RUNS,
    "test_idle.py": MARK.format("both_engines") + "def test_that_is_idle():\n    pass\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("forgotten", [True, False])
def test_marks_of_engines_are_held_against_what_tests_do(forgotten, tmp_path):
    """In one process where a mark is forgotten, and under xdist where one is idle."""
    if not forgotten:
        pytest.importorskip("xdist")
    for name in TOYS:
        if forgotten or name != "test_forgotten.py":
            (tmp_path / name).write_text(TOYS[name])
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -q -W ignore -p conftest\n")
    command = [sys.executable, "-m", "pytest", *([] if forgotten else ["-n", "1"])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    run = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    counts = "1 failed, 4 passed" if forgotten else "4 passed"
    assert re.search(f"^{counts} in", run.stdout, re.MULTILINE), run.stdout + run.stderr
    assert ("FAILED test_forgotten.py::test_that_runs" in run.stdout) == forgotten
    assert "FAILED test_idle.py: no test" in run.stdout
    assert run.returncode == pytest.ExitCode.TESTS_FAILED


# What is there wherever the tests run: the dependencies, and what the tests themselves need.
ALWAYS_THERE = {"numpy", "scipy", "sklearn", "joblib", "threadpoolctl", "pytest", "hypothesis"}
ALWAYS_THERE |= {"reservoir", *sys.stdlib_module_names}
ALWAYS_THERE |= {"helpers", *(path.stem for path in TESTS.rglob("*.py"))}


def unguarded(path):
    """Yield the imports of a test module that fail where no extra is installed."""
    skipped = set()
    for node in tree_of(path).body:
        for call in ast.walk(node) if not isinstance(node, ast.FunctionDef) else ():
            if isinstance(call, ast.Call) and chain(call.func)[-1:] == ["importorskip"]:
                skipped.add(call.args[0].value.partition(".")[0])
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module]
        else:
            continue
        for name in {name.partition(".")[0] for name in names} - ALWAYS_THERE:
            if name not in skipped:
                yield f"line {node.lineno}: {name}"


@pytest.mark.slow
def test_modules_of_tests_can_be_imported_without_any_extra():
    """The core tests run on the wheel alone: what needs an extra skips, module or test."""
    found = [f"{path.name}, {where}" for path in TESTS.rglob("*.py") for where in unguarded(path)]
    assert not found, "imported without a guard: " + "; ".join(found)


@pytest.mark.parametrize(
    "source, n_found",
    [
        ("import pandas as pd", 1),
        ("from matplotlib.colors import to_rgb", 1),
        ("import pytest\ndef test_it():\n    pytest.importorskip('pandas')\nimport pandas", 1),
        ("import pytest\npd = pytest.importorskip('pandas')\nfrom pandas import NA", 0),
        ("import os.path\nimport numpy as np\nfrom conftest import PARTNERS", 0),
        ("def test_it(torch):\n    import torch", 0),
    ],
)
def test_imports_without_a_guard_are_found(source, n_found, monkeypatch):
    monkeypatch.setitem(globals(), "tree_of", lambda _: ast.parse(source))
    assert len(list(unguarded(None))) == n_found


@pytest.mark.slow
def test_partners_come_as_fixtures():
    """So each test that needs one is marked, and run by `nox -s partners`."""
    asked = {
        node.args[0].value.partition(".")[0]: path.name
        for path in TESTS.rglob("test_*.py")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call)
        and node.args
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "importorskip"
        and isinstance(node.args[0], ast.Constant)
    }
    assert not {name: file for name, file in asked.items() if name in conftest.PARTNERS}


# --- tables are read by one package ---------------------------------------------------------------

# Those that look into tables of pandas or polars themselves: the list may only become shorter.
LOOKING = {"_tables", "interop", "plotting"}
LOOKING |= {f"_validation/{name}.py" for name in ("index", "kinds", "order", "times")}
LOOKING |= {
    f"estimators/series/{name}.py"
    for name in ("column_types", "containers", "known_inputs", "long_table", "panel")
}
OF_TABLES = re.compile(r'\.iloc\b|"iloc"|== "polars"|nlevels|is_polars|\.get_column\b|"get_column"')


def test_what_looks_into_tables_is_listed():
    looking = set()
    for path in SOURCES:
        if OF_TABLES.search(path.read_text(encoding="utf-8")):
            place = path.relative_to(PACKAGE)
            names = [each.as_posix() for each in (place, *place.parents)]
            looking.add(next((name for name in names if name in LOOKING), names[0]))
    assert looking == LOOKING

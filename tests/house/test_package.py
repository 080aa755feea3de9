"""The package as a whole: its version, its imports, its data, its documentation."""

import ast
import importlib
import importlib.metadata
import importlib.resources
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import reservoir
import reservoir.training
from helpers import ROOT

# The modules of `training` are public one by one; other packages export what is theirs. A module
# without __all__ and without an underscore is for other packages of the house, not for users.
MODULES = [
    module
    for package in (reservoir, reservoir.training)
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
    if not found.name.rpartition(".")[2].startswith("_")
    and hasattr(module := importlib.import_module(found.name), "__all__")
]
# Each public object under every public name that it has, the shortest first.
EXPORTS: dict[int, list[str]] = {}
for module in [reservoir, *MODULES]:
    for exported in module.__all__:
        thing = getattr(module, exported)
        if not inspect.ismodule(thing) and exported != "__version__":
            EXPORTS.setdefault(id(thing), []).append(f"{module.__name__}.{exported}")
NAMES = [min(names, key=len) for names in EXPORTS.values()]


def find(name):
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


CLASSES = [
    name
    for name in NAMES
    if inspect.isclass(find(name)) and not issubclass(find(name), BaseException)
]
CALLABLES = [name for name in NAMES if inspect.isroutine(find(name))] + CLASSES


def undocumented_parameters(thing):
    """Parameters that the numpydoc sections of `thing` do not name."""
    named = set()
    for line in (inspect.getdoc(thing) or "").splitlines():
        if match := re.match(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: :.*)?$", line):
            named.update(name.strip("* ") for name in match.group(1).split(","))
    return [name for name in inspect.signature(thing).parameters if name not in {"self", *named}]


def python(code):
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.strip()


def test_version_is_a_literal_that_the_build_reads_without_importing():
    tree = ast.parse(Path(reservoir.__file__).read_text(encoding="utf-8"))
    assigned = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
    }
    assert ast.literal_eval(assigned["__version__"]) == reservoir.__version__
    try:
        assert importlib.metadata.version("reservoir-esn") == reservoir.__version__
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("reservoir-esn is not installed: only the source was checked")


def test_import_loads_no_optional_partner():
    optional = {"matplotlib", "pandas", "torch", "numba", "skops", "dask", "optuna", "tqdm"}
    optional |= {"aeon", "sktime"}
    # scikit-learn itself imports pandas where that is installed: what reservoir adds is counted
    code = (
        "import sys, sklearn.linear_model; before = set(sys.modules); "
        "import reservoir, reservoir.interop; "
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    assert optional.isdisjoint(python(code).split())


def test_ships_its_types_and_data():
    files = importlib.resources.files("reservoir")
    assert files.joinpath("py.typed").is_file()
    tables = [
        table.name
        for table in files.joinpath("datasets", "data").iterdir()
        if table.name.endswith(".csv")
    ]
    assert len(tables) >= 3


def test_depends_on_three_packages():
    try:
        required = importlib.metadata.requires("reservoir-esn") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("reservoir-esn is not installed")
    names = {re.match(r"[\w-]+", line).group() for line in required if "extra ==" not in line}
    assert names == {"numpy", "scipy", "scikit-learn"}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_exports_exist_and_are_listed_once(module):
    assert len(set(module.__all__)) == len(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


@pytest.mark.parametrize("name", CALLABLES)
def test_docstring_names_every_parameter_and_shows_an_example(name):
    thing = find(name)
    assert undocumented_parameters(thing) == []
    is_result = inspect.isclass(thing) and issubclass(thing, tuple)  # its maker has the example
    assert is_result or ">>>" in inspect.getdoc(thing), f"{name}: the docstring has no example"


@pytest.mark.parametrize("name", CLASSES)
def test_public_methods_document_their_parameters(name):
    for method, thing in inspect.getmembers(find(name), inspect.isfunction):
        if method.startswith("_") or not thing.__module__.startswith("reservoir"):
            continue
        doc = inspect.getdoc(thing)
        assert doc, f"{name}.{method} has no docstring"
        words = set(re.findall(r"\w+", doc)) | {"self"}
        assert set(inspect.signature(thing).parameters) <= words, f"{name}.{method}"


@pytest.mark.skipif(not (ROOT / "docs" / "api.rst").exists(), reason="needs the checkout")
def test_every_export_is_in_the_api_pages():
    listed = set()
    module = "reservoir"
    pages = sorted((ROOT / "docs" / "api").glob("*.rst"))
    for line in "".join(page.read_text(encoding="utf-8") for page in pages).splitlines():
        if match := re.match(r"\.\. (?:current)?module:: ([\w.]+)", line):
            module = match.group(1)
        elif match := re.match(r"(?: {3}|\.\. autodata:: )([A-Za-z_]\w*)$", line):
            listed.add(f"{module}.{match.group(1)}")
    missing = [names[0] for names in EXPORTS.values() if listed.isdisjoint(names)]
    assert missing == [], "add them to a page in docs/api/"

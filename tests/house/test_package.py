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
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import reservoir
import reservoir.training
from helpers import ROOT
from reservoir.readouts import LMS, RecursiveLeastSquares, SlidingWindow
from reservoir.training.cells import (
    DeepTransitionCell,
    FeedforwardCell,
    bidirectional,
    stacked,
)
from reservoir.training.curricula import EasyFirst, GrowingLength
from reservoir.training.gradient_control import GradientControl
from reservoir.training.hessian_free import HessianFree
from reservoir.training.omega import Omega
from reservoir.training.temporal_gradients import SimplexDirection

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


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / "docs" / "saving.md").exists(), reason="needs the checkout")
@pytest.mark.one_engine
def test_the_documented_types_are_those_that_skops_asks_for():
    sio = pytest.importorskip("skops.io")
    page = (ROOT / "docs" / "saving.md").read_text(encoding="utf-8")
    listed = re.findall(r'^ +"([\w.]+)",$', page, re.MULTILINE)
    X, y = reservoir.datasets.narma(60, random_state=0)
    asked = set()
    dated = np.column_stack([np.arange(60), X])
    forecaster = partial(reservoir.ESNForecaster, n_networks=1, random_state=0)
    odd = np.append(np.random.default_rng(0).poisson(0.3, 60), 90.0)
    spikes = np.zeros(110)
    spikes[[2, 19, 31, 36, 53, 60, 82, 91, 107]] = y[:9]
    of_cells = stacked(bidirectional("gru"), FeedforwardCell(2), DeepTransitionCell(5, (2,)))
    trained = reservoir.RNNRegressor(5, max_iter=1, gradient_control=GradientControl(0.1))
    for model in (
        reservoir.ESNRegressor(10).fit(X, y),
        reservoir.ESNRegressor(10, solver="qr").fit(X, y),
        reservoir.ESNRegressor(10, n_lags=2, alpha_selection="reml_ar1").fit(X, y),
        reservoir.ESNRegressor(10, bidirectional=True, initial_state="zeros").fit(X, y),
        trained.fit(X, y).partial_fit(X, y),
        reservoir.ESNClassifier(10, transition="auto").fit(X, y > y.mean()),
        reservoir.RNNClassifier(5, cell="lstm", max_iter=1).fit(X, y > y.mean()),
        *(
            reservoir.RNNRegressor(5, max_iter=2, **{name: value}).fit(X, y)
            for name, value in (
                ("gradient_control", Omega(0.1)),
                ("gradient_control", SimplexDirection()),
                ("solver", HessianFree()),
                ("curriculum", EasyFirst(1, first=1.0)),
                ("curriculum", GrowingLength(1, first=60)),
            )
        ),
        reservoir.RNNRegressor(5, cell="gru", max_iter=1).fit(X, y),
        reservoir.RNNRegressor(5, cell="leaky", time_column=0, max_iter=1).fit(dated, y),
        reservoir.RNNRegressor(5, cell="scrn", max_iter=1).fit(X, y),
        reservoir.RNNRegressor(5, cell="gated_feedback", max_iter=1).fit(X, y),
        reservoir.RNNRegressor(5, cell=of_cells, max_iter=1).fit([X, X], [y, y]),
        reservoir.ESNClassifier(10).fit(X, y > y.mean()),
        reservoir.ReservoirTransformer(10).fit(X),
        reservoir.ReservoirTransformer(10, leak_rate=0.3, time_column=0).fit(dated),
        reservoir.NVARRegressor().fit(X, y),
        reservoir.ESNRegressor(10, readout=RecursiveLeastSquares()).fit(X, y),
        LMS().fit(X, y),
        SlidingWindow(20).fit(X, y),
        reservoir.ReservoirFeatures(10).fit([X, X]),
        reservoir.LiquidStateMachine(10).fit([X, X]),
        reservoir.ESNSequenceClassifier(10).fit([X, -X, 2 * X, -2 * X], [0, 1, 0, 1]),
        reservoir.ESNSequenceRegressor(10).fit([X, -X], [0.0, 1.0]),
        reservoir.force_train(reservoir.ESNRegressor(10, feedback=True), y, n_test=0),
        forecaster(search="dynamics").fit(reservoir.datasets.mackey_glass(80, random_state=0)),
        forecaster(search="dynamics").fit(np.tile(spikes, 4)),
        forecaster(search="series", season=4).fit(y[:40]),
        forecaster(search="series", outliers="missing").fit(odd),
    ):
        asked.update(sio.get_untrusted_types(data=sio.dumps(model)))
    assert set(listed) == asked

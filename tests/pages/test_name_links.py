"""The meaning of code spans in the documentation (docs/name_links.py)."""

import importlib
import sys
from pathlib import Path

import pytest

from helpers import ROOT

pytest.importorskip("sphinx")
DOCS = ROOT / "docs"
if not (DOCS / "name_links.py").exists():
    pytest.skip("needs the checkout", allow_module_level=True)
sys.path.insert(0, str(DOCS))
inventories = importlib.import_module("inventories")
name_links = importlib.import_module("name_links")

OWN = {
    "reservoir.ESNRegressor": "class",
    "reservoir.ESNRegressor.fit": "method",
    "reservoir.ESNRegressor.forecast": "method",
    "reservoir.ESNRegressor.stream": "method",
    "reservoir.ESNRegressor.to_rnn": "method",
    "reservoir.ESNForecaster": "class",
    "reservoir.ESNForecaster.fit": "method",
    "reservoir.ESNForecaster.simulate": "method",
    "reservoir.forecast": "function",
    "reservoir": "module",
    "reservoir.dynamics": "module",
    "reservoir.dynamics.step": "function",
    "reservoir.input_weights.bias": "function",
    "reservoir.metrics.coverage": "function",
    "reservoir.plotting.forecast": "function",
    "reservoir.stability": "module",
    "reservoir.stability.certify": "function",
    "reservoir.training.schedules.step": "function",
}
FOREIGN = {
    name: address + page
    for address, names in map(inventories.read, inventories.LISTS.glob("*.txt"))
    for name, (_, page) in names.items()
}
NAMES = name_links.Names(
    {name: ("page", name, kind) for name, kind in OWN.items()}, FOREIGN, {"bias", "coverage"}
)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("ESNRegressor", "reservoir.ESNRegressor"),
        ("ESNRegressor(readout=...)", "reservoir.ESNRegressor"),
        ("model = ESNRegressor()", "reservoir.ESNRegressor"),
        ("ESNForecaster().fit(y).forecast(12)", "reservoir.ESNForecaster"),
        ("esn.to_rnn().fit(X, y)", "reservoir.ESNRegressor.to_rnn"),
        ("ESNRegressor.fit", "reservoir.ESNRegressor.fit"),
        ("simulate(n_steps, n_paths)", "reservoir.ESNForecaster.simulate"),
        ("model.stream()", "reservoir.ESNRegressor.stream"),
        ("ESNRegressor.alpha", "reservoir.ESNRegressor"),
        ("certify", "reservoir.stability.certify"),
        ("stability.certify(res)", "reservoir.stability.certify"),
        ("reservoir.stability", "reservoir.stability"),
        ("plotting.forecast", "reservoir.plotting.forecast"),
        ("reservoir.forecast(model, n_steps)", "reservoir.forecast"),
        ("coverage(y, low, high)", "reservoir.metrics.coverage"),
        ("np.logspace(-10, 2, 25)", "numpy.logspace"),
        ("GridSearchCV", "sklearn.model_selection.GridSearchCV"),
        ("clone", "sklearn.base.clone"),
        ("readout=LogisticRegression()", "sklearn.linear_model.LogisticRegression"),
        ("DataFrame", "pandas.DataFrame"),
        # one of several things, or none
        ("forecast", None),
        ("forecast(n_steps)", None),
        ("fit", None),
        ("step", None),
        ("bias", None),
        ("coverage", None),
        ('bias="stable"', None),
        ("model=certify", None),
        ("uniform", None),
        ("x[t] = W x[t-1]", None),
    ],
)
def test_a_span_leads_to_what_it_names(text, target):
    assert NAMES.resolve(text) == target


def test_in_a_docstring_what_stands_beside_it_comes_first():
    assert NAMES.resolve("forecast", "reservoir.ESNRegressor") == "reservoir.ESNRegressor.forecast"
    assert NAMES.resolve("fit", "reservoir.ESNForecaster.simulate") == "reservoir.ESNForecaster.fit"
    assert NAMES.resolve("step", "reservoir.dynamics.run") == "reservoir.dynamics.step"


def test_only_what_should_lead_to_a_name_is_reported():
    assert NAMES.looks_public("stability.certfy(res)")
    assert NAMES.looks_public("reservoir.no_such_name")
    assert NAMES.looks_public("step")
    for text in ("fit", "forecast", "bias", "alpha=0.1", "np.somewhere", "x + y", "stability.py"):
        assert not NAMES.looks_public(text)


def test_an_inventory_is_what_sphinx_reads(tmp_path):
    inventory = pytest.importorskip("sphinx.util.inventory")
    mapping = inventories.write_all(tmp_path)
    address, path = mapping["sklearn"]
    read = inventory.InventoryFile.loads(Path(path).read_bytes(), uri=address).data
    assert read["py:function"]["sklearn.base.clone"].uri == (
        "https://scikit-learn.org/stable/modules/generated/sklearn.base.clone.html#sklearn.base.clone"
    )

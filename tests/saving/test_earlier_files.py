"""Files of versions whose estimators had no reader and no model."""

import json
import pickle

import numpy as np
import pytest

from reservoir import (
    ESNClassifier,
    ESNForecaster,
    ESNRegressor,
    NVARRegressor,
    ReservoirTransformer,
    RNNClassifier,
    RNNRegressor,
    load,
    save,
)
from reservoir._saving import SAVED
from reservoir.datasets import mackey_glass, narma
from reservoir.estimators.persistence.archive import write_archive
from reservoir.estimators.persistence.parts import (
    _OF_MODEL,
    _OF_NETWORK,
    _OF_READER,
    Written,
    encode,
)

pytestmark = pytest.mark.one_engine

X, Y = narma(300, random_state=0)
SERIES = mackey_glass(301, random_state=0)
IDS = np.repeat([0.0, 1.0], 150)
TIMES = np.cumsum(1.0 + np.arange(300) % 3)
MADE = {"n_units": 15, "random_state": 0}
TIMED = {"time_column": 1, "leak_rate": 0.3, "initial_state": "zeros"}
CASES = {
    "plain": (ESNRegressor(**MADE), SERIES[:-1], SERIES[1:]),
    "noise": (ESNRegressor(**MADE, noise=1e-3), X, Y),
    "feedback": (ESNRegressor(**MADE, feedback=True, alpha=1.0), X, Y),
    "stable": (ESNRegressor(**MADE, bias="stable", spectral_radius=0.7), X, Y),
    "ids": (ESNRegressor(**MADE, sequence_column=1), np.c_[X, IDS], Y),
    "times": (ESNRegressor(**MADE, **TIMED), np.c_[X, TIMES], Y),
    "lags": (ESNRegressor(**MADE, n_lags=3), X, Y),
    "labels": (ESNClassifier(**MADE), X, np.median(Y) < Y),
    "polynomials": (NVARRegressor(increments=True, basis="chebyshev"), SERIES[:-1], SERIES[1:]),
    "network": (RNNRegressor(5, max_iter=2, random_state=0), SERIES[:-1], SERIES[1:]),
    "network's labels": (RNNClassifier(5, max_iter=2, random_state=0), X, np.median(Y) < Y),
    "window": (RNNRegressor(4, online="least_squares", max_iter=2, random_state=0), X, Y),
    "states": (ReservoirTransformer(15, random_state=0), X, Y),
    "timed states": (ReservoirTransformer(**MADE, **TIMED), np.c_[X, TIMES], Y),
}


def save_as_before(model, file):
    """Write a model as it was written when its attributes stood in itself."""
    params, fitted = model.get_params(deep=False), dict(model.__getstate__())
    of_model = _OF_NETWORK if hasattr(model, "network_") else _OF_MODEL
    for part, names in (("_reader", _OF_READER), ("_model", of_model)):
        held = vars(fitted.pop(part)) if part in fitted else {}
        fitted |= {old: held[name] for name, (old, _) in names.items() if name in held}
    if isinstance(model, ReservoirTransformer):
        del fitted["_sequence_column"], fitted["_targets"], fitted["_target_names"]
    written = Written({}, {}, {})
    halves = [
        {key: encode(value, key, written) for key, value in half.items()}
        for half in (params, {key: fitted[key] for key in fitted.keys() - params.keys()})
    ]
    halves = without_fields(halves, {"n_used"})
    header = {"format": "reservoir", "version": 1, "class": type(model).__name__}
    header |= dict(zip(("params", "fitted"), halves, strict=True))
    write_archive(file, json.dumps(header), written.arrays)


@pytest.mark.parametrize("name", CASES)
def test_a_file_of_an_earlier_version_is_read_and_continues(name, tmp_path):
    model, rows, targets = CASES[name]
    model.fit(rows[:200], targets[:200])
    save_as_before(model, tmp_path / "before.npz")
    save(model, tmp_path / "now.npz")
    found = []
    for file in ("before", "now"):
        again = load(tmp_path / f"{file}.npz")
        run = getattr(again, "transform", getattr(again, "predict", None))
        said = [run(rows[200:])]
        if hasattr(again, "partial_fit"):
            again.partial_fit(rows[200:], targets[200:])
            said.append(run(rows[:20]))
        if name in ("plain", "polynomials", "network"):
            said.append(again.forecast(5))
        found.append(said)
    for before, now in zip(*found, strict=True):
        np.testing.assert_array_equal(before, now)


def test_other_files_raise(tmp_path):
    model, rows, targets = CASES["plain"]
    save_as_before(model.fit(rows[:200], targets[:200]), tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as arrays:
        content = {name: arrays[name] for name in arrays.files}
    header = json.loads(str(content.pop("header")))
    for name in ("_targets", "_progress", "state_"):
        fitted = {key: value for key, value in header["fitted"].items() if key != name}
        write_archive(tmp_path / "cut.npz", json.dumps({**header, "fitted": fitted}), content)
        with pytest.raises(ValueError, match=r"was not written by reservoir\.save, or is damaged"):
            load(tmp_path / "cut.npz")


def without_fields(value, names):
    """Return JSON of a file without the fields of parts that have these names."""
    if isinstance(value, list):
        return [without_fields(each, names) for each in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"part"}:
        cls, *fields = value["part"]
        pairs = zip(fields[::2], fields[1::2], strict=True)
        value = {"part": [cls, *(part for pair in pairs if pair[0] not in names for part in pair)]}
    return {key: without_fields(each, names) for key, each in value.items()}


@pytest.mark.parametrize("search", ["series", [{"n_units": 10}]])
def test_forecasters_without_later_fields_are_read(search, tmp_path):
    model = ESNForecaster(search=search, n_networks=1, random_state=0).fit(SERIES, SERIES**2)
    save(model, tmp_path / "now.npz")
    with np.load(tmp_path / "now.npz") as arrays:
        content = {name: arrays[name] for name in arrays.files}
    header = json.loads(str(content.pop("header")))
    later = {"categories", "possible", "ending", "rounding", "common"}
    earlier = without_fields(header, later)
    assert earlier != header
    content = {name: value for name, value in content.items() if not later & set(name.split("."))}
    write_archive(tmp_path / "before.npz", json.dumps(earlier), content)
    np.testing.assert_array_equal(
        load(tmp_path / "before.npz").forecast(5, SERIES[:5], coverage=0.9),
        model.forecast(5, SERIES[:5], coverage=0.9),
    )


def test_earlier_pickles_of_sources_with_past_rows_are_read():
    assert pickle.loads(b"creservoir.dynamics.lagged\nLaggedSource\n.") is SAVED["LaggedSource"]
    model, rows, targets = CASES["lags"]
    source = model.fit(rows, targets)._model.source
    del vars(source)["n_used"]
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    assert again._model.source.width == source.width == 15 + 3

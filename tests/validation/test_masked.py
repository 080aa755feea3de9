"""Masked arrays and complex numbers raise wherever data are read: conversion would drop them."""

import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from reservoir import (
    ESNClassifier,
    ESNRegressor,
    ESNSequenceClassifier,
    LiquidStateMachine,
    NVARRegressor,
    RNNClassifier,
    RNNRegressor,
    datasets,
    dynamics,
    force_train,
    metrics,
    readouts,
    scaling,
    stability,
    topologies,
)
from reservoir.building import build_reservoir
from reservoir.model_selection import (
    PerStep,
    forecast_scorer,
    make_forecast_pairs,
    stack_sequences,
    washout_scorer,
)

pytestmark = pytest.mark.one_engine

RNG = np.random.default_rng(0)
X, w = RNG.uniform(-1, 1, (40, 2)), np.ones(40)
y, signs = X[:, 0].copy(), (X[:, 0] > 0).astype(int)
ROWS, MANY = {"X": X, "y": y, "sample_weight": w}, {"X": [X, X], "y": [y, y]}
WALKS = {"X": list(RNG.normal(size=(6, 9, 2))), "y": np.arange(6) % 2, "sample_weight": w[:6]}
NEXT = datasets.lorenz(41)[:, :2] / 20
SMALL = {"random_state": 0}
TRAINED = {"init": "esn", "max_iter": 1, **SMALL}
ESN = ESNRegressor(5, **SMALL).fit(X, y)
LOOP = ESNRegressor(5, **SMALL).fit(NEXT[:-1], NEXT[1:])
FED = ESNRegressor(5, feedback=True, **SMALL).fit(X, y)
WHOLE = ESNSequenceClassifier(5, **SMALL).fit(WALKS["X"], WALKS["y"])
TALKER = RNNClassifier(5, n_symbols=2, **TRAINED).fit(signs[:-1, None], signs[1:])
RESERVOIR = build_reservoir(5, 2, **SMALL)
HEARS = dynamics.Reservoir(RESERVOIR.W, RESERVOIR.W_in, RESERVOIR.bias, W_fb=np.ones((5, 1)))
PROVED = stability.certify(
    RESERVOIR, *stability.drive_range(RESERVOIR, -1, 1), input_range=(-1.0, 1.0)
)
MATRIX, STATE, ENDS = RESERVOIR.W.toarray(), np.zeros(5), {"low": np.zeros(2), "high": np.ones(2)}


def calls():
    """Yield calls with the data that each takes, by name."""
    for model in (
        ESNRegressor(5, **SMALL),
        ESNRegressor(5, missing_targets="skip", **SMALL),
        NVARRegressor(missing_targets="skip"),
        RNNRegressor(5, missing_targets="skip", **TRAINED),
    ):
        yield clone(model).fit, ROWS
        yield clone(model).fit, MANY
        yield clone(model).partial_fit, {"X": X, "y": y}
    for model in (ESNClassifier(5, **SMALL), RNNClassifier(5, **TRAINED)):
        yield clone(model).fit, {**ROWS, "y": signs}
        yield clone(model).partial_fit, {"X": X, "y": signs, "classes": np.array([0, 1])}
    yield RNNRegressor(5, target="last", **TRAINED).fit, WALKS
    yield WHOLE.fit, WALKS
    yield ESN.predict, {"X": X, "initial_state": STATE}
    yield ESN.predict, {"X": [X, X]}
    yield ESN.score, ROWS
    yield WHOLE.score, WALKS
    yield lambda x, y: ESN.stream().learn(x, y), {"x": X[:1].copy(), "y": y[:1].copy()}
    yield lambda low, high: LOOP.forecast(2, clip=(low, high)), ENDS
    yield lambda y, exog: force_train(FED, y, exog=exog), {"y": y, "exog": X}
    yield lambda context: TALKER.sample(2, context, random_state=0), {"context": signs}
    yield lambda allowed: TALKER.sample(2, allowed=allowed, random_state=0), {"allowed": np.eye(2)}
    yield make_forecast_pairs, {"series": [X, X]}
    yield stack_sequences, {"Xs": [X, X], "ys": [y, y]}
    yield PerStep(StandardScaler()).fit, {"X": [X, X]}
    yield lambda X, y: washout_scorer(washout=5)(ESN, X, y), {"X": X, "y": y}
    yield lambda X, y: forecast_scorer(2, n_starts=1)(LOOP, X, y), {"X": NEXT[:-1], "y": NEXT[1:]}
    # networks
    yield lambda X, x: dynamics.run(RESERVOIR, X, initial_state=x), {"X": X, "x": STATE}
    yield lambda F: dynamics.run(HEARS, X, feedback=F), {"F": X[:, :1].copy()}
    starts = {"series": [X, X], "initial_states": np.zeros((2, 5))}
    yield lambda series, **more: dynamics.run_many(RESERVOIR, series, **more), starts
    yield lambda x, u: dynamics.step(RESERVOIR, x, u), {"x": STATE, "u": X[0].copy()}
    parts = {"W": MATRIX, "W_in": np.ones((5, 2)), "bias": STATE, "leak_rate": np.full(5, 0.5)}
    yield dynamics.Reservoir, parts
    readout = {"coef": np.ones((2, 5)) / 9, "intercept": np.zeros(2)}
    yield lambda **r: dynamics.run_closed_loop(RESERVOIR, tuple(r.values()), 2), readout
    for name, value in (("topology", MATRIX), ("bias", STATE), ("alpha", np.array([0.1, 1.0]))):
        yield lambda name=name, **v: ESNRegressor(5, **SMALL, **v).fit(X, y), {name: value}
    # functions
    yield metrics.nrmse, {"y_true": y, "y_pred": y + 1, "sample_weight": w}
    yield metrics.coverage, {"y_true": X, "low": X - 1, "high": X + 1, "multioutput": w[:2]}
    yield metrics.mase, {"y_true": y, "y_pred": y + 1, "y_train": y, "sample_weight": w}
    yield metrics.valid_time, {"y_true": X, "y_pred": X + 1, "scale": w[:2]}
    yield metrics.anomaly_scores, {"y": y, "forecasts": y + np.arange(40.0)}
    bounds = {"low": np.full(5, -1.0), "high": np.ones(5)}
    yield lambda low, high: stability.certify(RESERVOIR, low, high), bounds
    yield lambda low, high: stability.drive_range(RESERVOIR, low, high), ENDS
    yield PROVED.covers_inputs, {"X": X}
    yield stability.echo_state_conditions, {"W": MATRIX, "leak_rate": np.full(5, 0.5)}
    yield stability.critical_bias, {"gain": np.array([1.5, 2.0])}
    cycle = {"inputs": np.zeros((2, 2)), "initial_state": STATE}
    yield lambda **given: stability.find_limit_cycle(RESERVOIR, **given), cycle
    yield readouts.leave_one_out_ridge, {"H": X, "Y": y, "alphas": w[:2], "sample_weight": w}
    for kind in (readouts.GramAccumulator, readouts.QRAccumulator):
        yield kind(2, 1).update, {"H": X, "Y": y[:, None], "sample_weight": w}
    yield lambda W: scaling.scale_to_norm(W, 0.5), {"W": MATRIX}
    yield topologies.add_self_loops, {"W": MATRIX}
    yield lambda w: datasets.multiple_superposed_oscillators(9, frequencies=w), {"w": X[0] + 2}
    yield lambda x: datasets.henon(9, washout=0, initial_state=x), {"x": np.array([0.1, 0.2])}
    yield lambda s: LiquidStateMachine(30).filtered(s), {"s": np.eye(30)}


def hiding(values):
    """Return values of which the last sequence, if there are several, hides its first value."""
    if isinstance(values, list):
        return [*values[:-1], hiding(values[-1])]
    return np.ma.array(values, mask=np.arange(values.size).reshape(values.shape) == 0)


def says(call, data):
    """Return the message of the TypeError that a call raises; None if it raises none."""
    try:
        call(**data)
    except TypeError as error:
        return str(error)
    return None


def test_masked_arrays_raise_in_every_place():
    for call, data in calls():
        call(**data)  # so that the mask alone can be the reason
        for name, values in data.items():
            said = says(call, {**data, name: hiding(values)}) or "accepted"
            assert "contains a masked array" in said, (call, name)


@pytest.mark.parametrize("container", [lambda rows: rows, lambda rows: [rows, rows]])
def test_a_mask_that_hides_nothing_is_no_mask(container):
    given, target = container(np.ma.array(X, mask=False)), container(np.ma.array(y))
    esn = ESNRegressor(5, **SMALL).fit(given, target)
    plain = ESNRegressor(5, **SMALL).fit(container(X), container(y))
    np.testing.assert_array_equal(esn.coef_, plain.coef_)


def test_a_sequence_of_sequences_with_a_mask_raises():
    packed = np.empty(2, dtype=object)
    packed[:] = [X, hiding(X)]
    for given in (packed, [list(hiding(X)), X.tolist()]):
        with pytest.raises(TypeError, match=r"X contains a masked array"):
            ESNRegressor(5, **SMALL).fit(given, [y, y])


@pytest.mark.filterwarnings("error")
def test_complex_numbers_raise_where_they_become_floats():
    for call, name in (
        (lambda v: LOOP.forecast(2, clip=(v, 9.0)), "clip"),
        (lambda v: readouts.leave_one_out_ridge(v, y, 1.0), "H"),
        (lambda v: readouts.GramAccumulator(2, 1).update(X, v), "Y"),
        (topologies.add_self_loops, "W"),
    ):
        with pytest.raises((TypeError, ValueError), match=name):
            call(X + 1j if name != "W" else MATRIX + 1j)


def test_pairs_keep_gaps_and_symbols_but_no_infinity():
    pd = pytest.importorskip("pandas")
    gaps = np.array([1.0, np.nan, 3.0, 4.0])
    bad = np.where(gaps == 3, np.inf, gaps)
    frame = pd.DataFrame({"day": list("abca"), "x": bad})
    for series, exog, said in (
        (frame, None, "the series contains infinity (inf) in column 1 ('x'), first in row 2"),
        (frame["x"], None, "the series contains infinity (inf) in column 0 ('x'), first in row 2"),
        ([gaps, bad], None, "series 1 contains infinity (inf)"),
        (pd.Series(gaps), frame, "exog contains infinity (inf) in column 1 ('x')"),
    ):
        with pytest.raises(ValueError, match=re.escape(said)):
            make_forecast_pairs(series, exog=exog)
    for series in (gaps, np.array(list("abca")), frame.assign(x=gaps)):
        assert len(make_forecast_pairs(series)[0]) == 3


def test_plots_draw_nothing_that_a_mask_hides():
    pytest.importorskip("matplotlib")
    from reservoir import plotting

    for plot, values in (
        (plotting.residuals, y),
        (plotting.running_error, y**2),
        (plotting.memory_profile, np.array([0.9, 0.1])),
        (plotting.states, X),
        (plotting.spectrum, MATRIX),
        (plotting.jacobian_norms, X),
        (plotting.multipliers, y),
    ):
        with pytest.raises(TypeError, match="contains a masked array"):
            plot(hiding(values))

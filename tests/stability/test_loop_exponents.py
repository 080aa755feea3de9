"""Exponents of closed loops: the loop as a map, its Jacobians, what they show, what is refused."""

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

from reservoir import (
    ESNClassifier,
    ESNRegressor,
    NVARRegressor,
    ReservoirTransformer,
    RNNRegressor,
    force_train,
    forecast,
    load,
    save,
)
from reservoir.datasets import henon, lorenz
from reservoir.dynamics import Reservoir
from reservoir.dynamics.features import DrivenReservoir
from reservoir.dynamics.past_inputs import LaggedSource
from reservoir.dynamics.polynomial_lags import LaggedPolynomials
from reservoir.model_selection import PerStep
from reservoir.stability import kaplan_yorke_dimension, loop_exponents, map_exponents
from reservoir.stability.loop_of import loop_of
from reservoir.training.cells import GRUCell, LSTMCell

pytestmark = pytest.mark.both_engines

LORENZ = lorenz(1500, dt=0.02)
ROWS = (LORENZ - LORENZ.mean(axis=0)) / LORENZ.std()
SMALL = {"n_units": 30, "spectral_radius": 0.6, "leak_rate": 0.8, "input_scaling": 0.3}
SMALL |= {"n_lags": 1, "alpha": 1e-5, "random_state": 0}
SCALERS = {
    "standard": lambda m: make_pipeline(StandardScaler(), m),
    "minmax": lambda m: make_pipeline(MinMaxScaler((-1, 2)), m),
    "per step": lambda m: make_pipeline(PerStep(StandardScaler()), m),
    "target": lambda m: make_pipeline(
        StandardScaler(),
        TransformedTargetRegressor(m, transformer=StandardScaler(), check_inverse=False),
    ),
}


def small(**changes):
    return ESNRegressor(**(SMALL | changes))


def fitted(model, rows=ROWS):
    return model.fit(rows[:-1], rows[1:])


def check_jacobian(step, tangent, point, seed, n=3):
    """Compare the product of the Jacobian and a few directions with finite differences."""
    V = np.random.default_rng(seed).standard_normal((point.size, n))
    V /= np.linalg.norm(V, axis=0)
    h = 1e-6
    expected = np.stack([(step(point + h * v) - step(point - h * v)) / (2 * h) for v in V.T], 1)
    np.testing.assert_allclose(tangent(point, V)[1], expected, atol=1e-8)


def check_loop(model, seed, context=None):
    loop = loop_of(model, context)
    point, points = loop.start, []
    for _ in range(15):
        points.append(point)
        check_jacobian(loop.step, loop.tangent, point, seed, n=1)
        point = loop.step(point)
    return np.array(points)


# --- the loop as a map --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"n_lags": 3},
        {"n_lags": 3, "skip": 2},
        {"augment": "square"},
        {"augment": "even_square", "n_lags": 2},
        {"leak_rate": (0.5, 0.9)},
        {"include_input": False},
        {"activation": "logistic", "in_degree": 30, "alpha": 1e-3},
        {"activation": "relu", "spectral_radius": 0.2},
    ],
    ids=str,
)
def test_a_loop_of_a_reservoir_is_its_forecast(changes, global_random_seed):
    model = fitted(small(**changes))
    points = check_loop(model, global_random_seed)
    np.testing.assert_allclose(points[1:, -3:], model.forecast(14), atol=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        {"n_lags": 1, "degree": 3},
        {"n_lags": 2, "skip": 3, "degree": 3, "basis": "chebyshev"},
        {"n_lags": 2, "degree": 2, "basis": "chebyshev", "increments": True},
    ],
    ids=str,
)
def test_a_loop_of_polynomials_is_its_forecast(options, global_random_seed):
    model = fitted(NVARRegressor(alpha=1e-8, **options))
    points = check_loop(model, global_random_seed)
    np.testing.assert_allclose(points[1:, -3:], model.forecast(14), atol=1e-8)


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize(
    "cell, include_input",
    [
        ("rnn", False),
        ("leaky", True),
        ("lstm", True),
        (LSTMCell(6, peephole=True), False),
        ("gru", True),
        (GRUCell(6, reset_after=False), False),
    ],
    ids=str,
)
def test_a_loop_of_a_trained_network_is_its_forecast(cell, include_input, global_random_seed):
    model = RNNRegressor(
        6, cell=cell, include_input=include_input, init="esn", max_iter=0, random_state=0
    )
    model = fitted(model, ROWS[:60])
    rng = np.random.default_rng(global_random_seed)
    for weights in model.params_.values():  # small, and gates that move
        weights[...] = rng.uniform(-0.5, 0.5, weights.shape)
    points = check_loop(model, global_random_seed)
    np.testing.assert_allclose(points[1:, -3:], model.forecast(14), atol=1e-9)
    assert np.isfinite(loop_exponents(model, n_steps=20, washout=5)).all()


@pytest.mark.parametrize("kind", SCALERS)
def test_scalers_are_part_of_the_loop(kind, global_random_seed):
    model = fitted(SCALERS[kind](small(n_lags=2)), LORENZ)
    points = check_loop(model, global_random_seed)
    scaler = model[0]
    np.testing.assert_allclose(
        scaler.inverse_transform(points[1:, -3:]), forecast(model, 14), rtol=1e-8, atol=1e-8
    )
    # exponents do not depend on units
    options = {"n_steps": 50, "washout": 10, "random_state": 0}
    search = GridSearchCV(small(n_lags=2), {"alpha": [1e-5]}, cv=TimeSeriesSplit(2))
    if kind == "standard":
        inner = fitted(search, scaler.transform(LORENZ))
        np.testing.assert_allclose(
            loop_exponents(model, **options), loop_exponents(inner, **options), atol=1e-6
        )


def test_a_loop_of_steps_is_its_forecast(global_random_seed):
    deep = make_pipeline(
        ReservoirTransformer(12, dtype="float32", random_state=0),
        ReservoirTransformer(9, random_state=1),
    )
    scaled = TransformedTargetRegressor(Ridge(1e-3), transformer=StandardScaler())
    for last in (scaled, small(n_lags=2)):
        model = make_pipeline(
            StandardScaler(), make_union("passthrough", deep), StandardScaler(), last
        )
        model = fitted(model, LORENZ[:400])
        points = check_loop(model, global_random_seed)
        rows = forecast(model, 14)
        wanted = model[0].inverse_transform(points[1:, -3:])
        np.testing.assert_allclose(wanted, rows, rtol=1e-4)  # states in single precision
    assert np.isfinite(loop_exponents(model, n_steps=20, washout=5)).all()
    curved = make_pipeline(
        ReservoirTransformer(9, random_state=0), FunctionTransformer(np.tanh), Ridge()
    )
    with pytest.raises(ValueError, match="that of FunctionTransformer is not known"):
        loop_exponents(fitted(curved), n_steps=5)


def test_single_precision_is_measured_in_double(global_random_seed):
    model = fitted(small(dtype="float32", n_lags=2), ROWS.astype("float32"))
    points = check_loop(model, global_random_seed)
    assert points.dtype == np.float64
    np.testing.assert_allclose(points[1:, -3:], model.forecast(14), atol=1e-3)


def test_a_loaded_model_has_the_same_exponents(tmp_path):
    model = fitted(small(n_lags=2, dtype="float32"), ROWS[:300])
    save(model, tmp_path / "model")
    options = {"n_steps": 20, "washout": 0, "random_state": 0}
    same = loop_exponents(load(tmp_path / "model"), **options)
    np.testing.assert_array_equal(same, loop_exponents(model, **options))


def test_a_loop_starts_after_its_context(global_random_seed):
    several = small(n_lags=2).fit([ROWS[:700], ROWS[700:1000]], [ROWS[1:701], ROWS[701:1001]])
    with pytest.raises(ValueError, match="forecast needs a context"):
        loop_exponents(several)
    points = check_loop(several, global_random_seed, context=ROWS[:100])
    # its first input is the first row of the forecast
    np.testing.assert_allclose(points[:, -3:], several.forecast(15, context=ROWS[:100]), atol=1e-9)
    with pytest.raises(ValueError, match=r"context must be one sequence, .* got 2"):
        loop_exponents(several, context=[ROWS[:100], ROWS[:100]])


def test_a_loop_through_feedback_weights_is_its_forecast(global_random_seed):
    wave = np.sin(0.1 * np.arange(600))
    options = {"feedback": True, "leak_rate": 0.3, "alpha": 0.1, "augment": "square"}
    model = force_train(small(**options), wave, n_test=0)
    points = check_loop(model, global_random_seed)
    np.testing.assert_allclose(points[1:, -1], model.forecast(14), atol=1e-9)


@pytest.mark.parametrize("lagged", [False, True])
def test_the_tangent_of_a_source_is_its_derivative(lagged, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    W, W_in, bias = (rng.normal(size=shape) / 3 for shape in ((20, 20), (20, 6), 20))
    source = (
        LaggedSource(DrivenReservoir(Reservoir(W, W_in, bias, leak_rate=0.4), True), 3, 2)
        if lagged
        else LaggedPolynomials.for_inputs(
            [ROWS[:, :2]], n_lags=2, skip=2, degree=4, basis="chebyshev"
        )
    )
    n = source.state_size
    point = rng.uniform(-0.5, 0.5, n + 2)

    def step(z):
        features, states = source.advance(z[None, :n], z[None, n:])
        return np.concatenate([features[0], states[0]])

    def tangent(z, V):
        all_rows = np.vstack([z, V.T])
        both = np.hstack(source.tangent(all_rows[:, :n], all_rows[:, n:]))
        np.testing.assert_allclose(both[0], step(z), rtol=1e-12)
        return both[0], both[1:].T

    check_jacobian(step, tangent, point, global_random_seed)


# --- what exponents show ------------------------------------------------------------------------


def test_polynomials_have_the_exponents_of_henon():
    X = henon(1000)
    model = fitted(NVARRegressor(n_lags=1, degree=2), X)
    found = loop_exponents(model, 2, n_steps=500, dt=0.5, random_state=0)
    assert found.sum() == pytest.approx(np.log(0.3) / 0.5, rel=1e-6)
    # on the same short orbit, the exponents of the map itself
    options = {"n_steps": 20, "washout": 0, "random_state": 0}
    same = map_exponents(
        lambda s: [1 - 1.4 * s[0] ** 2 + s[1], 0.3 * s[0]],
        lambda s: [[-2.8 * s[0], 1.0], [0.3, 0.0]],
        X[-1],
        **options,
    )
    np.testing.assert_allclose(loop_exponents(model, 2, **options), same, rtol=1e-4)


@pytest.mark.slow
def test_polynomials_have_the_exponents_of_henon_to_one_percent():
    model = fitted(NVARRegressor(n_lags=1, degree=2), henon(1000))
    found = loop_exponents(model, 2, n_steps=60_000, random_state=0)
    np.testing.assert_allclose(found, [0.41922, np.log(0.3) - 0.41922], rtol=0.01)


def test_factorisations_may_be_apart(monkeypatch):
    from reservoir.stability.measures import _qr_method

    model = fitted(small())
    options = {"n_steps": 500, "washout": 100, "random_state": 0}
    apart = loop_exponents(model, 4, **options)
    monkeypatch.setattr(_qr_method, "_LONGEST", 1)
    np.testing.assert_allclose(loop_exponents(model, 4, **options), apart, atol=1e-10)


@pytest.mark.slow_cases(2)
@pytest.mark.parametrize("seed", range(5))
def test_a_network_has_the_exponents_of_lorenz(seed):
    orbit = lorenz(6000, dt=0.02)
    X = (orbit - orbit.mean(axis=0)) / orbit.std()
    changes = {"n_units": 300, "bias_scaling": 0.5, "alpha": 1e-8, "random_state": seed}
    model = fitted(small(**changes), X)
    found = loop_exponents(model, n_steps=40_000, dt=0.02, random_state=seed)
    assert found[0] == pytest.approx(0.906, rel=0.03)
    assert abs(found[1]) < 0.01
    assert found[2] == pytest.approx(-14.57, rel=0.12)
    assert 2.055 < kaplan_yorke_dimension(found) < 2.075


# --- refusals -----------------------------------------------------------------------------------


def test_loops_without_derivatives_are_refused():
    wanted = {
        "readout of this model is a function": small(readout=Ridge(), alpha=1.0),
        "augment=.* is a function": small(augment=np.cos),
        "MinMaxScaler is none": make_pipeline(MinMaxScaler(clip=True), small()),
        "FunctionTransformer is none": make_pipeline(FunctionTransformer(np.exp, np.log), small()),
    }
    for match, model in wanted.items():
        with pytest.raises(ValueError, match=match):
            loop_exponents(fitted(model), n_steps=5)


def test_other_cells_are_refused():
    model = RNNRegressor(6, cell="scrn", init="orthogonal", max_iter=0)
    with pytest.raises(ValueError, match="which SCRNCell does not define"):
        loop_exponents(fitted(model, ROWS[:60]))


def test_other_models_are_refused():
    with pytest.raises(ValueError, match="1 exogenous columns"):
        loop_exponents(small().fit(ROWS[:-1], ROWS[1:, :2]))
    with pytest.raises(ValueError, match="exogenous columns"):
        loop_exponents(small(feedback=True).fit(ROWS[:-1, 1:], ROWS[1:, 0]))
    with pytest.raises(ValueError, match=r"y\[t\] == X\[t\+1\]"):
        loop_exponents(small().fit(ROWS, ROWS))
    labels = ESNClassifier(10).fit(ROWS, ROWS[:, 0] > 0)
    for model in (labels, Ridge().fit(ROWS, ROWS)):
        with pytest.raises(
            TypeError, match="Exponents and cycles need the closed loop of one network"
        ):
            loop_exponents(model)
    with pytest.raises(TypeError, match="must be a fitted estimator"):
        loop_exponents("esn")


@pytest.mark.parametrize(
    "options, error, match",
    [
        ({"n_exponents": 34}, ValueError, "n_exponents=34 must be at most 33"),
        ({"n_exponents": 0}, ValueError, "n_exponents=0"),
        ({"n_steps": 0}, ValueError, "n_steps=0"),
        ({"dt": 0}, ValueError, "dt=0"),
        ({"washout": -1}, ValueError, "washout=-1"),
    ],
)
def test_errors_of_loop_exponents(options, error, match):
    with pytest.raises(error, match=match):
        loop_exponents(fitted(small()), **options)


def test_a_loop_that_diverges_names_its_step():
    model = fitted(NVARRegressor(n_lags=1, degree=3, alpha=1e-8))
    model.coef_ = 3 * model.coef_
    with pytest.warns(RuntimeWarning, match="diverged at step") as told:
        model.forecast(100)
    step = str(told[0].message).split("step ")[1].split(":")[0]
    with pytest.raises(ValueError, match=f"diverged at step {step}: .* A larger alpha"):
        loop_exponents(model)

"""Pascanu's regulariser, against its definition and finite differences."""

import numpy as np
import pytest

from helpers.gradient_checks import PAIRS, P, Q, draw, ragged
from reservoir import RNNRegressor
from reservoir.training.bptt import Network, forward, loss_and_gradient, loss_value, make_batch
from reservoir.training.cells import GRUCell, SimpleCell
from reservoir.training.gradient_control import step_jacobians
from reservoir.training.losses import loss_and_slope
from reservoir.training.omega import Omega, omega_gradient

pytestmark = pytest.mark.one_engine

CELLS = {
    "tanh": SimpleCell(4),
    "softplus": SimpleCell(4, "softplus"),
    "leaky": SimpleCell(4, leak_rate=0.4),
    "leaky per unit": SimpleCell(4, "logistic", leak_rate=(0.1, 0.4, 1.0, 0.7)),
}
EVERY_CELL = pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)


def penalty_by_definition(network, params, batch, state=None):
    """The mean over steps behind the first, one sequence and one Jacobian at a time."""
    trace, _, scores = forward(network, params, batch, state)
    _, d = loss_and_slope(scores, batch.targets, network.output, network.loss, batch.weights)
    n_steps, n_sequences = batch.inputs.shape[:2]
    at_state = np.zeros((n_steps * n_sequences, network.cell.width))
    rows = np.arange(len(at_state)) if batch.rows is None else batch.rows
    at_state[rows] = d @ params["coef"][:, : network.cell.width]
    at_state = at_state.reshape(n_steps, n_sequences, -1)
    terms = []
    for b, length in enumerate(trace.lengths):
        delta = np.zeros(network.cell.width)
        for t in range(length - 1, 0, -1):
            delta = delta + at_state[t, b]
            (J,) = step_jacobians(network.cell, params, trace, [t], [b])
            if delta.any():
                terms.append((np.linalg.norm(J.T @ delta) / np.linalg.norm(delta) - 1) ** 2)
            delta = J.T @ delta
    return np.mean(terms)


def value_of(network, params, batch, state=None):
    return omega_gradient(network, params, batch, state, omega=Omega(0.7, exact=True))[0]


@EVERY_CELL
@pytest.mark.parametrize("options", [{}, {"last": True}, {"washout": 3}, {"weights": True}])
def test_the_penalty_is_the_mean_of_its_definition(cell, options):
    network = Network(cell, P, Q, include_input=True)
    for seed in range(3):
        batch, params = ragged(network, seed, **options), draw(network, seed)
        state = np.random.default_rng(seed).normal(size=(3, 4))
        expected = loss_value(network, params, batch, state)[0]
        expected += 0.7 * penalty_by_definition(network, params, batch, state)
        assert np.isclose(value_of(network, params, batch, state), expected, rtol=1e-12)


def differences(network, params, batch, state):
    """The gradient by central differences."""
    grads = {}
    for name, array in params.items():
        grads[name] = np.zeros_like(array)
        for place in np.ndindex(array.shape):
            values = []
            for h in (1e-5, -1e-5):
                moved = {**params, name: array.copy()}
                moved[name][place] += h
                values.append(value_of(network, moved, batch, state))
            grads[name][place] = (values[0] - values[1]) / 2e-5
    return grads


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("output, loss", PAIRS)
@EVERY_CELL
def test_the_exact_gradient(cell, output, loss):
    network = Network(cell, P, Q, output, loss, include_input=True)
    for seed, options in enumerate(({}, {"last": True}, {"weights": True})):
        batch, params = ragged(network, seed, **options), draw(network, seed)
        state = np.random.default_rng(seed).normal(size=(3, 4))
        _, grads, end = omega_gradient(network, params, batch, state, omega=Omega(0.7, exact=True))
        expected = differences(network, params, batch, state)
        for name, grad in grads.items():
            size = np.linalg.norm(expected[name]) + 1e-3
            np.testing.assert_allclose(grad, expected[name], rtol=0, atol=2e-6 * size)
        np.testing.assert_array_equal(end, loss_value(network, params, batch, state)[1])


@EVERY_CELL
def test_the_gradient_of_the_source_takes_all_but_the_weights_for_constants(cell):
    """Differences of the definition by W in the last factor alone."""
    network = Network(cell, P, Q)
    batch, params = ragged(network, 0), draw(network, 0)
    _, plain, _ = loss_and_gradient(network, params, batch)
    _, grads, _ = omega_gradient(network, params, batch, omega=Omega(1.0))
    for name, grad in grads.items():
        if name != "W":
            np.testing.assert_allclose(grad, plain[name], rtol=1e-12, atol=1e-15)
    trace, _, scores = forward(network, params, batch)
    _, d = loss_and_slope(scores, batch.targets, "identity", "mse")
    delta = np.zeros_like(trace.states[1:])
    delta.reshape(-1, 4)[batch.rows] = d @ params["coef"]
    steps = range(len(delta) - 1, 0, -1)
    for t in steps:
        J = step_jacobians(cell, params, trace, [t] * 3, [0, 1, 2])
        delta[t - 1] += np.einsum("bij,bi->bj", J, delta[t])

    def frozen(W):
        terms = []
        for t in steps:
            J = step_jacobians(cell, {**params, "W": W}, trace, [t] * 3, [0, 1, 2])
            back = np.linalg.norm(np.einsum("bij,bi->bj", J, delta[t]), axis=1)
            size = np.linalg.norm(delta[t], axis=1)
            terms += ((back[size > 0] / size[size > 0] - 1) ** 2).tolist()
        return np.mean(terms)

    numeric = np.zeros((4, 4))
    for place in np.ndindex(4, 4):
        step = np.zeros((4, 4))
        step[place] = 1e-6
        numeric[place] = (frozen(params["W"] + step) - frozen(params["W"] - step)) / 2e-6
    np.testing.assert_allclose(grads["W"] - plain["W"], numeric, rtol=1e-6, atol=1e-8)


def test_errors():
    network = Network(GRUCell(3), P, Q)
    with pytest.raises(ValueError, match="Omega needs a simple or leaky cell; got GRUCell"):
        omega_gradient(network, draw(network, 0), ragged(network, 0), omega=Omega())
    with pytest.raises(ValueError, match="weight=-1"):
        Omega(weight=-1)
    X = np.random.default_rng(0).normal(size=(50, 1))
    with pytest.raises(ValueError, match="got LSTMCell"):
        RNNRegressor(4, cell="lstm", gradient_control=Omega()).fit(X, X)


def test_no_gradient_no_penalty():
    """Where nothing arrives there is no ratio, and no NaN."""
    network = Network(SimpleCell(4), P, Q)
    params, batch = draw(network, 0), ragged(network, 0)
    params["coef"][:] = 0
    for exact in (False, True):
        value, grads, _ = omega_gradient(network, params, batch, omega=Omega(1.0, exact=exact))
        assert value == loss_value(network, params, batch)[0]
        assert all(np.isfinite(grad).all() for grad in grads.values())
    single = ragged(network, 0, last=True)
    dead = {**draw(network, 1), "W": np.zeros((4, 4))}  # J = 0: a ratio of 0, no direction
    value, grads, _ = omega_gradient(network, dead, single, omega=Omega(1.0, exact=True))
    assert value > 1
    assert all(np.isfinite(grad).all() for grad in grads.values())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kept", [0.9, 0.3, 1e-3, 1e-7])
def test_a_gradient_that_vanishes(dtype, kept):
    """However small what arrives, even if its squares underflow, the ratio is the same."""
    cell, n_steps = SimpleCell(4, "identity"), 400
    network = Network(cell, P, Q)
    params = {name: array.astype(dtype) for name, array in draw(network, 0).items()}
    params["W"] = (kept * np.eye(4)).astype(dtype)
    inputs = np.random.default_rng(0).normal(size=(n_steps, P)).astype(dtype)
    batch = make_batch([inputs], [np.ones(Q, dtype)], last=True)
    loss = loss_value(network, params, batch)[0]
    _, before, _ = loss_and_gradient(network, params, batch)
    for exact in (False, True):
        value, grads, _ = omega_gradient(network, params, batch, omega=Omega(1.0, exact=exact))
        assert np.isclose(value - loss, (kept - 1) ** 2, rtol=1e-4)
        assert all(np.isfinite(grad).all() for grad in grads.values())
        # along the identity it is the derivative of (kept - 1)^2
        along = np.trace(grads["W"] - before["W"])
        assert np.isclose(along, 2 * (kept - 1), rtol=1e-3)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("solver", ["adam", "lbfgs"])
def test_training_lowers_loss_and_penalty(exact, dtype, solver):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (150, 1))
    y = np.roll(X, 3, axis=0)
    settings = {
        "n_units": 12,
        "max_iter": 20,
        "solver": solver,
        "init": "orthogonal",
        "dtype": dtype,
        "random_state": 0,
    }
    if solver == "lbfgs" and not exact:
        with pytest.raises(ValueError, match=r"need the exact gradient; Omega\(.*'adam'"):
            RNNRegressor(gradient_control=Omega(0.1), **settings).fit(X, y)
        return
    rnn = RNNRegressor(gradient_control=Omega(0.1, exact=exact), **settings).fit(X, y)
    again = RNNRegressor(gradient_control=Omega(0.1, exact=exact), **settings).fit(X, y)
    np.testing.assert_array_equal(rnn.predict(X), again.predict(X))
    assert rnn.best_loss_ < 0.8 * rnn.loss_curve_[0]
    assert rnn.params_["W"].dtype == dtype

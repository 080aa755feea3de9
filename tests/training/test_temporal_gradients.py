"""The gradient by time step, and the direction that uses all steps."""

import numpy as np
import pytest

from helpers.gradient_checks import CAUSAL, CELL_LIST, P, Q, draw, ragged
from reservoir import RNNClassifier, RNNRegressor
from reservoir.training.bptt import Network, loss_and_gradient, make_batch
from reservoir.training.cells import GRUCell, LSTMCell, SimpleCell, StackedCell
from reservoir.training.params import global_norm
from reservoir.training.temporal_gradients import (
    SimplexDirection,
    _Steps,
    simplex_gradient,
    temporal_gradient_norms,
)

pytestmark = pytest.mark.one_engine

EVERY_CELL = pytest.mark.parametrize("cell", CAUSAL.values(), ids=CAUSAL)


@pytest.mark.fast_cases(8)
@EVERY_CELL
@pytest.mark.parametrize("options", [{}, {"last": True}, {"washout": 3}, {"weights": True}])
def test_the_gradients_of_all_copies_sum_to_the_gradient(cell, options):
    network = Network(cell, P, Q, "tanh", "mse", include_input=True)
    for seed in range(3):
        batch, params = ragged(network, seed, **options), draw(network, seed)
        state = 0.5 * np.random.default_rng(seed).normal(size=(3, cell.state_size))
        value, expected, end = loss_and_gradient(network, params, batch, state)
        steps = _Steps(network, params, batch, state)
        assert np.isclose(steps.loss, value)
        np.testing.assert_allclose(steps.end, end, rtol=1e-12)
        total = {name: np.zeros_like(array) for name, array in params.items()}
        for layer, readout in steps.gradients():
            for name, grad in {**layer, **readout}.items():
                total[name] += grad
        for name, grad in expected.items():
            np.testing.assert_allclose(total[name], grad, rtol=1e-9, atol=1e-12)


def test_one_copy_is_the_derivative_by_it():
    """Central differences by the recurrent weights of a single step."""
    cell = SimpleCell(3, leak_rate=0.6)
    network = Network(cell, P, Q)
    batch, params = ragged(network, 0, last=True), draw(network, 1)
    steps = _Steps(network, params, batch, None)
    found = [layer["W"] for layer, _ in steps.gradients()][::-1]

    def loss(moved, W):
        """Run with another W at one step."""
        state = None
        total = 0.0
        for t, chunk in enumerate(batch.chunks(1)):
            here = {**params, "W": W if t == moved else params["W"]}
            trace = cell.forward(here, chunk.inputs, state, chunk.lengths)
            state = trace.end
            if chunk.rows is None or len(chunk.rows):
                rows = trace.states[1] if chunk.rows is None else trace.states[1][chunk.rows]
                errors = rows @ params["coef"].T + params["intercept"] - chunk.targets
                total += (errors**2).mean(axis=1).sum()
        return total / 3

    for t in range(7):
        numeric = np.zeros((3, 3))
        for place in np.ndindex(3, 3):
            step = np.zeros((3, 3))
            step[place] = 1e-5
            numeric[place] = (loss(t, params["W"] + step) - loss(t, params["W"] - step)) / 2e-5
        np.testing.assert_allclose(found[t], numeric, atol=1e-9)


@pytest.mark.fast_cases(8)
@EVERY_CELL
def test_the_direction_is_the_average_of_directions(cell):
    network = Network(cell, P, Q)
    for seed in range(3):
        batch, params = ragged(network, seed, last=True), draw(network, seed)
        free = SimplexDirection(np.inf)
        value, found, end = simplex_gradient(
            network, params, batch, direction=free, generator=np.random.default_rng(seed)
        )
        plain_value, plain, plain_end = loss_and_gradient(network, params, batch)
        assert np.isclose(value, plain_value)
        np.testing.assert_allclose(end, plain_end)
        layer = list(cell.shapes(P))
        shares = np.random.default_rng(seed).dirichlet(np.ones(7))
        parts = [part for part, _ in _Steps(network, params, batch, None).gradients()]
        mixed = {
            name: sum(
                share * part[name] / global_norm(part)
                for share, part in zip(shares, parts, strict=True)
                if global_norm(part) > 0
            )
            for name in layer
        }
        size = global_norm(mixed)
        wanted = global_norm({name: plain[name] for name in layer})
        for name in layer:
            np.testing.assert_allclose(found[name], mixed[name] * wanted / size, rtol=1e-7)
        for name in ("coef", "intercept"):
            np.testing.assert_allclose(found[name], plain[name], rtol=1e-9, atol=1e-12)
        assert np.isclose(global_norm(found), global_norm(plain))


def test_it_is_switched_off_above_the_threshold():
    network = Network(SimpleCell(3), P, Q)
    batch, params = ragged(network, 0), draw(network, 0)
    _, plain, _ = loss_and_gradient(network, params, batch)
    norm = global_norm(plain)
    for threshold, same in ((0.9 * norm, True), (1.1 * norm, False)):
        _, found, _ = simplex_gradient(
            network,
            params,
            batch,
            direction=SimplexDirection(threshold),
            generator=np.random.default_rng(0),
        )
        assert np.allclose(found["W"], plain["W"]) == same


def test_steps_from_which_nothing_comes():
    """Padding and dead units have no direction, and make no NaN."""
    network = Network(SimpleCell(3, "relu"), P, Q)
    batch, params = ragged(network, 0), draw(network, 0)
    params["bias"][:] = -100.0
    value, found, _ = simplex_gradient(
        network,
        params,
        batch,
        direction=SimplexDirection(np.inf),
        generator=np.random.default_rng(0),
    )
    assert np.isfinite(value)
    assert all(np.isfinite(grad).all() for grad in found.values())
    assert not found["W"].any()
    assert not temporal_gradient_norms(network, params, batch).any()


def test_directions_of_gradients_that_vanish():
    """A number of float32 that is next to nothing has a direction, and makes no NaN."""
    network = Network(SimpleCell(3, "identity"), P, Q)
    params = {name: array.astype("float32") for name, array in draw(network, 0).items()}
    params["W"] = (0.02 * np.eye(3)).astype("float32")
    inputs = np.random.default_rng(0).normal(size=(40, P)).astype("float32")
    batch = make_batch([inputs], [np.ones(Q, "float32")], last=True)
    norms = temporal_gradient_norms(network, params, batch)
    assert ((norms > 0) & (norms < np.finfo("float32").tiny)).sum() > 2
    for seed in range(3):
        _, found, _ = simplex_gradient(
            network,
            params,
            batch,
            direction=SimplexDirection(np.inf),
            generator=np.random.default_rng(seed),
        )
        assert all(np.isfinite(grad).all() for grad in found.values())


@pytest.mark.parametrize("cell", [LSTMCell(5), GRUCell(5)], ids=lambda cell: type(cell).__name__)
def test_norms_of_other_cells(cell):
    network = Network(cell, P, Q)
    norms = temporal_gradient_norms(network, draw(network, 0), ragged(network, 0, last=True))
    assert norms.shape == (7,)
    assert (norms > 0).all()


@pytest.mark.parametrize("name", sorted(CELL_LIST.keys() - CAUSAL.keys()))
def test_cells_that_read_the_future_raise(name):
    network = Network(CELL_LIST[name], P, Q)
    with pytest.raises(ValueError, match="Cell uses future rows, so that it cannot run step"):
        temporal_gradient_norms(network, draw(network, 0), ragged(network, 0))
    dropping = StackedCell((LSTMCell(3), LSTMCell(3)), dropout=0.2)
    with pytest.raises(ValueError, match=r"StackedCell has dropout.*Use dropout=0"):
        SimplexDirection().check(dropping)


@pytest.mark.parametrize("threshold", [0, -1.0, np.nan, "1"])
def test_bad_thresholds(threshold):
    with pytest.raises((TypeError, ValueError), match="threshold"):
        SimplexDirection(threshold)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_training_along_it(dtype):
    rng = np.random.default_rng(0)
    X = [rng.uniform(-1, 1, (n, 1)) for n in (20, 22, 25) * 10]
    y = np.array([x[0, 0] + x[-1, 0] for x in X])
    settings = {
        "n_units": 20,
        "target": "last",
        "max_iter": 60,
        "init": "spectral",
        "learning_rate_init": 0.003,
        "dtype": dtype,
        "random_state": 0,
    }
    simplex = RNNRegressor(gradient_control=SimplexDirection(), **settings)
    found = simplex.fit(X, y)
    again = RNNRegressor(gradient_control=SimplexDirection(), **settings).fit(X, y)
    np.testing.assert_array_equal(found.predict(X), again.predict(X))
    assert found.best_loss_ < 0.5 * found.loss_curve_[0]
    assert found.params_["W"].dtype == dtype
    with pytest.raises(ValueError, match="need the exact gradient; SimplexDirection"):
        RNNRegressor(gradient_control=SimplexDirection(), solver="lbfgs", target="last").fit(X, y)
    labels = np.where(y > 0, "up", "down")
    clf = RNNClassifier(gradient_control=SimplexDirection(), **settings).fit(X, labels)
    assert clf.score(X, labels) > 0.8

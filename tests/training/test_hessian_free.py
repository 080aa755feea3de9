"""Hessian-free training: tangents, Gauss-Newton products, steps, and in the estimators."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from scipy.linalg import block_diag
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from helpers.toys.decaying_cell import Decay
from reservoir import RNNClassifier, RNNRegressor, load, save
from reservoir.activations import ACTIVATIONS
from reservoir.datasets import adding
from reservoir.training.bptt import Network, forward, loss_and_gradient, make_batch
from reservoir.training.cells import GRUCell, LSTMCell, SimpleCell
from reservoir.training.hessian_free import GaussNewton, HessianFree, train_hessian_free
from reservoir.training.initializers import initialize
from reservoir.training.losses import LOSSES, apply_output, curvature_product, loss_and_slope
from reservoir.training.params import flatten, unflatten
from reservoir.training.trainer import Data

pytestmark = pytest.mark.both_engines

N_UNITS, P, Q = 4, 2, 2
CELLS = {
    **{name: SimpleCell(N_UNITS, activation=name) for name in sorted(ACTIVATIONS)},
    "leaky": SimpleCell(N_UNITS, leak_rate=0.4),
    "leaky per unit": SimpleCell(N_UNITS, "logistic", leak_rate=(0.1, 0.4, 1.0, 0.7)),
    "lstm": LSTMCell(N_UNITS),
    "lstm with peepholes": LSTMCell(N_UNITS, peephole=True),
    "gru": GRUCell(N_UNITS),
    "gru, reset within": GRUCell(N_UNITS, reset_after=False),
}
PAIRS = [
    *((output, "mse") for output in ("identity", "tanh", "logistic", "softmax")),
    ("logistic", "bce"),
    ("softmax", "cross_entropy"),
]
every_cell = pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)


def draw(network, rng, scale=0.6):
    return {name: scale * rng.standard_normal(shape) for name, shape in network.shapes().items()}


def ragged(network, rng, *, weights=False, **options):
    X = [rng.standard_normal((n, P)) for n in (7, 4, 6)]
    n_rows = [1] * 3 if options.get("last") else [len(x) for x in X]
    Y = [apply_output(rng.standard_normal((n, Q)), network.output) for n in n_rows]
    given = [rng.uniform(0.1, 2, n) for n in n_rows] if weights else None
    return make_batch(X, Y, weights=given, **options)


def running(batch):
    return np.arange(len(batch.inputs))[:, None] < batch.lengths


def jacobian(function, x, h=1e-5):
    columns = [(function(x + h * e) - function(x - h * e)) / (2 * h) for e in np.eye(x.size)]
    return np.stack([column.ravel() for column in columns], axis=1)


def dense(network, params, batch, state=None):
    """G by finite differences: the Jacobian of all scores, and the curvature of each row's loss."""
    start = flatten(params)[0]

    def scores(vector):
        return forward(network, unflatten(vector, params), batch, state)[2]

    z, J = scores(start), jacobian(scores, start)
    output, loss = network.output, network.loss
    shares = np.ones(len(z)) if batch.weights is None else batch.weights
    blocks = []
    for row, y, share in zip(z, batch.targets, shares / shares.sum(), strict=True):
        if LOSSES[loss].of_scores:
            slope = jacobian(lambda s, y=y: loss_and_slope(s[None], y[None], output, loss)[1], row)
        else:  # 2 / n_outputs behind the Jacobian of the output function, on either side
            of_output = jacobian(lambda s: apply_output(s[None], output), row)
            slope = of_output.T @ of_output * 2 / Q
        blocks.append(share * slope)
    return J.T @ block_diag(*blocks) @ J


# -------------------------------------------------------------------------- tangents


@every_cell
@pytest.mark.parametrize("seed", range(3))
def test_the_tangent_is_the_derivative_of_the_states(cell, seed):
    rng = np.random.default_rng(seed)
    network = Network(cell, P, Q)
    params, d = draw(network, rng), draw(network, rng)
    batch = ragged(network, rng)
    state = 0.5 * rng.standard_normal((3, cell.state_size))

    def states(h):
        moved = {name: array + h * d[name] for name, array in params.items()}
        return cell.forward(moved, batch.inputs, state, batch.lengths).states[1:]

    trace = cell.forward(params, batch.inputs, state, batch.lengths)
    numeric = (states(1e-5) - states(-1e-5)) / 2e-5
    inside = running(batch)
    tangent = cell.tangent(params, trace, d)
    np.testing.assert_allclose(tangent[inside], numeric[inside], rtol=1e-6, atol=1e-7)
    # it only reads the trace: a second time is the same
    np.testing.assert_array_equal(cell.tangent(params, trace, d), tangent)


@every_cell
@pytest.mark.parametrize("seed", range(3))
def test_backward_is_the_transpose_of_the_tangent(cell, seed):
    rng = np.random.default_rng(seed)
    network = Network(cell, P, Q)
    params, d = draw(network, rng), draw(network, rng)
    batch = ragged(network, rng)
    trace = cell.forward(params, batch.inputs, None, batch.lengths)
    tangent = cell.tangent(params, trace, d)
    u = rng.standard_normal(tangent.shape) * running(batch)[:, :, None]
    forwards = np.vdot(u, tangent)
    for _ in range(2):  # a copied trace serves again
        grads, _, _ = cell.backward(params, trace.copy(), u.copy())
        back = sum(np.vdot(grads[name], d[name]) for name in grads)
        assert back == pytest.approx(forwards, rel=1e-11)


def test_a_cell_without_a_tangent_raises():
    with pytest.raises(ValueError, match=r"Hessian-free .* Decay does not define"):
        Decay(3).tangent({}, None, {})
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 1))
    with pytest.raises(ValueError, match=r"Hessian-free .* Decay .*solver='adam'"):
        RNNRegressor(3, cell=Decay(3), solver="hessian_free", max_iter=1).fit(X, X[:, 0])


# -------------------------------------------------------------------------- products


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("output, loss", PAIRS)
@pytest.mark.parametrize("name", ["tanh", "leaky", "lstm with peepholes", "gru"])
@pytest.mark.parametrize("options", [{}, {"last": True}, {"weights": True, "washout": 2}], ids=str)
def test_products_are_those_of_the_dense_matrix(name, output, loss, options):
    rng = np.random.default_rng(5)
    network = Network(CELLS[name], P, Q, output, loss, include_input=True)
    params, batch = draw(network, rng), ragged(network, rng, **options)
    state = 0.5 * rng.standard_normal((3, network.cell.state_size))
    matrix = GaussNewton(network, params, [(batch, state)])
    size = flatten(params)[0].size
    G = np.stack([matrix.product(e) for e in np.eye(size)])
    expected = dense(network, params, batch, state)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(G, expected, atol=1e-7 * scale)
    np.testing.assert_allclose(G, G.T, atol=1e-13 * scale)
    eigenvalues = np.linalg.eigvalsh(G)
    assert eigenvalues[0] > -1e-13 * eigenvalues[-1]
    assert eigenvalues[-1] > 0


@pytest.mark.parametrize("name", ["tanh", "lstm", "gru"])
def test_structural_damping_adds_the_changes_of_states(name):
    rng = np.random.default_rng(1)
    network = Network(CELLS[name], P, Q)
    params, batch = draw(network, rng), ragged(network, rng, last=True)
    start, inside = flatten(params)[0], running(batch)

    def states(vector):
        return forward(network, unflatten(vector, params), batch)[0].states[1:][inside]

    J = jacobian(states, start)
    matrix = GaussNewton(network, params, [(batch, None)])
    v = rng.standard_normal(start.size)
    more = matrix.product(v, structural=0.3) - matrix.product(v)
    np.testing.assert_allclose(more, 0.3 * J.T @ (J @ v) / 3, rtol=1e-6, atol=1e-8)


def test_batches_of_unequal_size_add_up_and_l2_is_on_the_diagonal():
    rng = np.random.default_rng(2)
    network = Network(CELLS["gru"], P, Q)
    params = draw(network, rng)
    data = Data(
        [rng.standard_normal((n, P)) for n in (5, 5, 9)],
        [rng.standard_normal((n, Q)) for n in (5, 5, 9)],
    )
    v = rng.standard_normal(flatten(params)[0].size)
    whole = GaussNewton(network, params, [data.batch(np.arange(3))])
    parts = GaussNewton(network, params, [data.batch(np.arange(2)), data.batch(np.array([2]))])
    for structural in (0.0, 0.5):
        expected = whole.product(v, structural=structural)
        product = parts.product(v, structural=structural)
        np.testing.assert_allclose(product, expected, rtol=1e-11, atol=1e-12)
    penalised = GaussNewton(network, params, [data.batch(np.arange(3))], l2=0.7)
    added = unflatten(penalised.product(v) - whole.product(v), params)
    for name, of_v in unflatten(v, params).items():
        factor = 0.0 if name.startswith(("bias", "intercept")) else 0.7
        np.testing.assert_allclose(added[name], factor * of_v, atol=1e-13)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("loss", ["mae", "hinge"])
def test_losses_without_a_curvature_raise(loss):
    ones = np.ones((1, 1))
    with pytest.raises(ValueError, match=f"loss='{loss}' has no curvature.*'mse' or 'bce'"):
        curvature_product(ones, ones, "identity", loss, ones)
    X = np.random.default_rng(0).uniform(-1, 1, (60, 1))
    y = np.sign(X[:, 0])
    with pytest.raises(ValueError, match=f"loss='{loss}' has no curvature"):
        RNNRegressor(3, loss=loss, solver="hessian_free", max_iter=1).fit(X, y)


# -------------------------------------------------------------------------- the solver


def problem(cell, seed=0, n=(40, 25, 33, 40)):
    rng = np.random.default_rng(seed)
    Xs = [rng.uniform(-1, 1, (k, P)) for k in n]
    Ys = [np.cumsum(X, axis=0) / 3 for X in Xs]
    network = Network(cell, P, Q)
    params = {name: 0.4 * rng.standard_normal(shape) for name, shape in network.shapes().items()}
    return network, params, Data(Xs, Ys)


@pytest.mark.parametrize("seed", range(3))
def test_on_a_linear_readout_alone_a_step_without_damping_is_newtons(seed):
    rng = np.random.default_rng(seed)
    # W_in = 0 and W = 0 with a readout of the inputs: least squares, but for what h adds
    network = Network(SimpleCell(1), P, Q, include_input=True)
    params = {name: np.zeros(shape) for name, shape in network.shapes().items()}
    X, Y = rng.standard_normal((50, P)), rng.standard_normal((50, Q))
    options = {"damping": 1e-9, "structural_damping": 0.0, "max_iter": 1, "batch_size": 1}
    done = train_hessian_free(network, params, Data([X], [Y]), **options)
    solution = np.linalg.lstsq(np.column_stack([X, np.ones(50)]), Y, rcond=None)[0]
    np.testing.assert_allclose(done.params["coef"][:, 1:], solution[:2].T, atol=1e-5)
    np.testing.assert_allclose(done.params["intercept"], solution[2], atol=1e-5)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("name", ["tanh", "leaky", "lstm", "gru"])
@pytest.mark.parametrize("structural", [0.0, 0.1])
def test_every_iteration_lowers_the_loss(name, structural, global_random_seed):
    network, params, data = problem(CELLS[name], global_random_seed)
    done = train_hessian_free(
        network, params, data, max_iter=12, structural_damping=structural, l2=1e-4
    )
    assert (np.diff(done.losses) <= 0).all()
    assert done.losses[-1] < 0.3 * done.losses[0]
    assert done.best_epoch == np.argmin(done.losses)


@pytest.mark.slow
def test_curvature_of_some_sequences_still_lowers_the_loss_and_seeds_decide():
    network, params, data = problem(CELLS["tanh"], n=(20,) * 24)
    options = {"max_iter": 6, "curvature_size": 6}
    one, two = (
        train_hessian_free(network, params, data, random_state=0, **options) for _ in range(2)
    )
    other = train_hessian_free(network, params, data, random_state=1, **options)
    assert one.losses == two.losses != other.losses
    assert (np.diff(one.losses) <= 0).all()
    drawn = train_hessian_free(network, params, data, random_state=0, gradient_size=12, **options)
    assert min(drawn.losses) < 0.5 * drawn.losses[0]


def test_the_gradient_of_the_whole_is_what_is_descended():
    # a single short step along conjugate gradients with a large damping is steepest descent
    network, params, data = problem(CELLS["tanh"], n=(30,))
    batch, state = data.batch(np.arange(1))
    _, grads, _ = loss_and_gradient(network, params, batch, state)
    options = {"max_iter": 1, "damping": 1e6, "structural_damping": 0.0}
    done = train_hessian_free(network, params, data, **options)
    moved = np.concatenate([(done.params[k] - params[k]).ravel() for k in params])
    downhill = -np.concatenate([grads[k].ravel() for k in params])
    cosine = moved @ downhill / np.linalg.norm(moved) / np.linalg.norm(downhill)
    assert cosine > 1 - 1e-6


@pytest.mark.parametrize(
    "options, error",
    [
        ({"damping": 0}, r"damping=0 must be"),
        ({"structural_damping": -1}, r"structural_damping=-1 must be"),
        ({"max_cg": 0}, r"max_cg=0 must be"),
        ({"gradient_size": 0.5}, r"gradient_size must be an integer; got 0.5"),
        ({"curvature_size": -1}, r"curvature_size=-1 must be"),
    ],
)
def test_bad_parameters_raise(options, error):
    network, params, data = problem(CELLS["tanh"])
    with pytest.raises((TypeError, ValueError), match=error):
        train_hessian_free(network, params, data, **options)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_arguments_are_not_written_to(cell):
    network, params, data = problem(cell)
    before = {name: array.copy() for name, array in params.items()}
    train_hessian_free(network, params, data, max_iter=1)
    for name, array in params.items():
        np.testing.assert_array_equal(array, before[name])


def test_stopping_and_reports():
    network, params, data = problem(CELLS["tanh"])
    seen = []
    done = train_hessian_free(
        network,
        params,
        data,
        max_iter=40,
        tol=0.5,
        n_iter_no_change=2,
        validation=data,
        report=lambda training: seen.append(training.n_epochs),
    )
    assert seen == list(range(done.n_epochs + 1))
    assert 2 <= done.n_epochs < 40
    assert done.validation_losses[0] == pytest.approx(done.losses[0])
    assert train_hessian_free(network, params, data, max_iter=0).n_epochs == 0


# -------------------------------------------------------------------------- in estimators


def series(n=50):
    X = np.random.default_rng(0).uniform(-1, 1, (n, 2))
    return X, 0.5 * X[:, 0] + np.append(0, X[:-1, 1])


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cell", ["rnn", "leaky", "lstm", "gru"])
def test_in_the_regressor(cell):
    X, y = series()
    options = {"cell": cell, "init": "glorot", "max_iter": 10, "random_state": 0}
    rnn = RNNRegressor(6, solver="hessian_free", **options).fit(X, y)
    best = rnn.best_loss_
    assert best < 0.2 * rnn.loss_curve_[0]
    rnn.set_params(warm_start=True, max_iter=2).fit(X, y)
    assert rnn.loss_curve_[0] == pytest.approx(best)
    single = RNNRegressor(6, solver="hessian_free", dtype="float32", **options).fit(X, y)
    assert single.params_["W"].dtype == np.float32
    assert single.best_loss_ < 0.2 * single.loss_curve_[0]


@pytest.mark.slow
def test_in_the_classifier_with_one_label_per_sequence():
    rng = np.random.default_rng(0)
    X = [rng.uniform(-1, 1, (n, 1)) for n in rng.integers(5, 9, 24)]
    y = [int(x[0, 0] > 0) for x in X]
    options = {"init": "orthogonal", "solver": "hessian_free", "max_iter": 10, "random_state": 0}
    rnn = RNNClassifier(8, target="last", **options).fit(X, y)
    assert rnn.score(X, y) == 1.0


@pytest.mark.parametrize(
    "params, error",
    [
        (
            {"truncation": 20},
            r"truncation=20 .*solver='hessian_free', which needs the whole gradient",
        ),
        ({"gradient_control": 0.1}, r"gradient_control=0.1 .*solver='hessian_free' cannot use"),
    ],
)
def test_what_the_solver_cannot_use_raises(params, error):
    X, y = series()
    with pytest.raises(ValueError, match=error):
        RNNRegressor(6, solver="hessian_free", **params).fit(X, y)


# -------------------------------------------------------------------------- as a solver


def test_settings_reach_the_solver(tmp_path):
    X, y = adding(12, length=(10, 14), random_state=0)
    common = {"target": "last", "init": "orthogonal", "max_iter": 2, "random_state": 0}
    settings = HessianFree(structural_damping=0.0, damping=2.0, max_cg=7)
    rnn = RNNRegressor(6, solver=settings, **common).fit(X, y)
    start = RNNRegressor(6, **{**common, "max_iter": 0}).fit(X, y).params_
    data = Data(X, [np.array([v]) for v in y], last=True)
    options = {**asdict(settings), "max_iter": 2, "refit": rnn.refit_readout}
    done = train_hessian_free(rnn.network_, start, data, **options)
    np.testing.assert_array_equal(done.losses, rnn.loss_curve_)
    named, default = (
        RNNRegressor(6, solver=solver, **common).fit(X, y)
        for solver in ("hessian_free", HessianFree())
    )
    np.testing.assert_array_equal(named.loss_curve_, default.loss_curve_)
    assert named.loss_curve_[1:] != rnn.loss_curve_[1:]
    save(rnn, tmp_path / "rnn.npz")
    loaded = load(tmp_path / "rnn.npz")
    assert loaded.solver == settings
    np.testing.assert_array_equal(loaded.predict(X), rnn.predict(X))
    again = clone(rnn).fit(X, y)
    np.testing.assert_array_equal(again.params_["W"], rnn.params_["W"])
    plain = HessianFree(structural_damping=0.0, max_cg=4)
    grid = {"solver": ["adam", HessianFree(max_cg=4), plain]}
    search = GridSearchCV(RNNRegressor(6, **common), grid, cv=2, refit=False).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    for refused, match in (
        ({"truncation": 5}, "needs the whole"),
        ({"gradient_control": 0.1}, "cannot use the curvature of its penalties"),
    ):
        with pytest.raises(ValueError, match=match):
            RNNRegressor(6, solver=settings, **common, **refused).fit(X, y)
    with pytest.raises(ValueError, match="makes one pass over the data"):
        RNNRegressor(6, solver=settings).partial_fit(X[0], X[0][:, 0])
    for bad, error in (({"damping": 0.0}, ValueError), ({"gradient_size": 0}, ValueError)):
        with pytest.raises(error, match=next(iter(bad))):
            HessianFree(**bad)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("sizes", [{"gradient_size": 10}, {"curvature_size": 10}])
def test_sequences_of_weight_zero_are_not_drawn(sizes):
    X, y = adding(60, length=(10, 14), random_state=0)
    weights = [np.array([float(i < 6)]) for i in range(60)]
    network = Network(SimpleCell(10), 2, 1)
    params = initialize(network.shapes(), "orthogonal", random_state=0)
    pairs = [np.array([v]) for v in y]
    all_of_them = Data(X, pairs, weights, last=True)
    few = Data(X[:6], pairs[:6], last=True)
    done, alone = (
        train_hessian_free(network, params, data, max_iter=4, random_state=0, **sizes)
        for data in (all_of_them, few)
    )
    np.testing.assert_allclose(done.losses, alone.losses, rtol=1e-6)

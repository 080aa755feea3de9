"""SCRN and gated feedback: against naive loops, and in all functions of a network."""

from __future__ import annotations

from copy import deepcopy
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from helpers.gradient_checks import draw, ragged
from reservoir import RNNClassifier, RNNRegressor, load, save
from reservoir.datasets import mackey_glass
from reservoir.training.bptt import Network, loss_and_gradient, loss_value, make_batch
from reservoir.training.cells import (
    GatedFeedbackCell,
    GRUCell,
    LSTMCell,
    SCRNCell,
    SimpleCell,
    StackedCell,
    TimedLeakyCell,
)
from reservoir.training.gradient_control import (
    GradientControl,
    control_penalty,
    jacobian_product_norms,
    step_jacobians,
)

pytestmark = pytest.mark.both_engines

SERIES = mackey_glass(500, random_state=0)
X, Y = SERIES[:200], SERIES[1:201]
SHORT = SERIES[:80], SERIES[1:81]
FAST = {
    "n_units": 6,
    "max_iter": 15,
    "learning_rate_init": 0.01,
    "random_state": 0,
    "init": "orthogonal",  # starts from data: test_starts_of_cells.py
}
SHORT_RUN = {**FAST, "max_iter": 5, "learning_rate_init": 0.03}
CELLS = {
    "scrn": SCRNCell(6),
    "scrn learned": SCRNCell(6, 3, "logistic", (0.5, 0.8, 0.95), True),
    **{f"feedback {kind}": GatedFeedbackCell(6, 2, kind) for kind in ("rnn", "lstm", "gru")},
}


@cache
def trained(name, dtype):
    """Return a short fit, which several tests look at and none changes."""
    return RNNRegressor(cell=CELLS[name], dtype=dtype, **SHORT_RUN).fit(*SHORT)


def logistic(z):
    return 1 / (1 + np.exp(-z))


# ---------------------------------------------------------------------------- naive loops


def naive_scrn(params, rows, kept, f, h, s):
    """Equations (2.12) and (2.15) of Galvan (2015), unit by unit."""
    for x in rows:
        s = np.array(
            [
                (1 - kept[k]) * sum(params["W_in_context"][k] * x) + kept[k] * s[k]
                for k in range(len(s))
            ]
        )
        h = np.array(
            [
                f(
                    sum(params["W_context"][i] * s)
                    + sum(params["W_in"][i] * x)
                    + sum(params["W"][i] * h)
                    + params["bias"][i]
                )
                for i in range(len(h))
            ]
        )
        yield np.concatenate([h, s])


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("activation, f", [("tanh", np.tanh), ("logistic", logistic)])
def test_scrn_is_the_printed_loop(learned, activation, f):
    decay = (0.3, 0.9, 0.99)
    cell = SCRNCell(4, 3, activation, decay, learned)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        params = draw(Network(cell, 2, 1), seed)
        rows, start = rng.standard_normal((9, 2)), rng.standard_normal(7)
        kept = np.array(decay)
        if learned:  # a logistic of a weight that starts where `decay` is
            kept = logistic(np.log(kept / (1 - kept)) + params["decay"])
        expected = list(naive_scrn(params, rows, kept, f, start[:4], start[4:]))
        states = cell.forward(params, rows[:, None], start[None]).states[:, 0]
        np.testing.assert_array_equal(states[0], start)
        np.testing.assert_allclose(states[1:], expected, rtol=1e-12)


def test_scrn_is_a_simple_cell_with_block_weights():
    """As a map of [h, s]: blocks [[R, P Q], [0, Q]], where (2.14) prints P for P Q."""
    cell, rng = SCRNCell(4, 2, "identity", (0.5, 0.8)), np.random.default_rng(0)
    params = draw(Network(cell, 3, 1), 1)
    Q, P, B = np.diag([0.5, 0.8]), params["W_context"], params["W_in_context"]
    slow = (np.eye(2) - Q) @ B
    blocks = {
        "W": np.block([[params["W"], P @ Q], [np.zeros((2, 4)), Q]]),
        "W_in": np.vstack([params["W_in"] + P @ slow, slow]),
        "bias": np.append(params["bias"], np.zeros(2)),
    }
    inputs = rng.standard_normal((8, 2, 3))
    whole = SimpleCell(6, "identity").forward(blocks, inputs)
    np.testing.assert_allclose(cell.forward(params, inputs).states, whole.states, atol=1e-12)
    blocks["W"][:4, 4:] = P  # as printed: another network
    printed = SimpleCell(6, "identity").forward(blocks, inputs)
    assert np.abs(printed.states - whole.states).max() > 0.1


def naive_feedback(params, rows, kind, n_layers, n):
    """Equation (2.16) of Galvan (2015) with the cells' own equations, layer by layer."""
    h, c = np.zeros((n_layers, n)), np.zeros((n_layers, n))
    for x in rows:
        new, below = h.copy(), x
        for j in range(n_layers):
            p = {name[2:]: array for name, array in params.items() if name[:2] == f"{j}."}
            blocks = np.split(p["W"], len(p["W"]) // n)
            z = np.split(p["W_in"] @ below + p["bias"], len(blocks))
            own = blocks[{"rnn": 0, "lstm": 2, "gru": 2}[kind]]
            others = iter(np.split(p["W_layers"], n_layers - 1) if n_layers > 1 else [])
            fed = np.zeros(n)
            for i in range(n_layers):
                gate = logistic(p["W_gates"][i] @ below + p["W_gates_layers"][i] @ h.ravel())
                fed += gate * ((own if i == j else next(others)) @ h[i])
            if kind == "rnn":
                new[j] = np.tanh(z[0] + fed)
            elif kind == "lstm":
                i, f, o = (logistic(z[k] + blocks[k] @ h[j]) for k in (0, 1, 3))
                c[j] = f * c[j] + i * np.tanh(z[2] + fed)
                new[j] = o * np.tanh(c[j])
            else:
                r, u = (logistic(z[k] + blocks[k] @ h[j]) for k in (0, 1))
                candidate = np.tanh(z[2] + r * (fed + p["bias_recurrent"]))
                new[j] = u * h[j] + (1 - u) * candidate
            below = new[j]
        h = new
        yield h[-1]


@pytest.mark.parametrize("n_layers", [1, 2, 3])
@pytest.mark.parametrize("kind", ["rnn", "lstm", "gru"])
def test_gated_feedback_is_the_naive_loop(kind, n_layers):
    cell = GatedFeedbackCell(4, n_layers, kind)
    for seed in range(3):
        params = draw(Network(cell, 2, 1), seed)
        rows = np.random.default_rng(seed).standard_normal((9, 2))
        expected = list(naive_feedback(params, rows, kind, n_layers, 4))
        states = cell.forward(params, rows[:, None]).states[1:, 0]
        np.testing.assert_allclose(states, expected, rtol=1e-12)


@pytest.mark.parametrize(
    "kind, single", [("rnn", SimpleCell(5)), ("lstm", LSTMCell(5)), ("gru", GRUCell(5))]
)
def test_one_layer_under_an_open_gate_equals_the_cell(kind, single):
    """The gate has no bias: a feature that is 1 throughout opens it."""
    cell, rng = GatedFeedbackCell(5, 1, kind), np.random.default_rng(0)
    params = draw(Network(cell, 3, 1), 0)
    params["0.W_gates"][:] = [[0, 0, 50.0]]
    params["0.W_gates_layers"][:] = 0
    inputs = rng.standard_normal((10, 2, 3))
    inputs[:, :, 2] = 1
    own = {name[2:]: array for name, array in params.items() if name.startswith("0.")}
    expected = single.forward(own, inputs)
    found = cell.forward(params, inputs)
    np.testing.assert_allclose(found.states, expected.states, atol=1e-12)
    np.testing.assert_allclose(found.end, expected.end, atol=1e-12)


# ---------------------------------------------------------------------------- gradient control


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cell", [SCRNCell(3, 2), SCRNCell(3, 2, "logistic", 0.6, True)])
@pytest.mark.parametrize("kind", ["interval", "rms", "both"])
def test_gradient_control_of_scrn(cell, kind):
    """Jacobians beside rows carried back; the gradient of the penalty beside differences."""
    network = Network(cell, 3, 2)
    control = GradientControl(0.5, kind, n_samples=1000)  # all steps
    for seed in range(3):
        params, batch = draw(network, seed), ragged(network, seed)
        rows = batch.inputs[:, :1]
        trace = cell.forward(params, rows)
        J = step_jacobians(cell, params, trace, [5, 6], [0, 0])
        whole = np.log(np.linalg.norm(J[1] @ J[0], 2))
        logs = jacobian_product_norms(cell, params, rows[:, 0])
        np.testing.assert_allclose(logs[1], whole, rtol=1e-9)

        def penalty(values, trace, control=control):
            return control_penalty(cell, values, trace, control, np.random.default_rng(0))

        def objective(values, network=network, batch=batch, penalty=penalty):
            run = cell.forward(values, batch.inputs, lengths=batch.lengths)
            return loss_value(network, values, batch)[0] + penalty(values, run)[0]

        _, grads, _ = loss_and_gradient(network, params, batch, control=penalty)
        for name, grad in grads.items():
            for place in np.ndindex(grad.shape):
                ends = []
                for h in (1e-5, -1e-5):
                    moved = {k: v.copy() for k, v in params.items()}
                    moved[name][place] += h
                    ends.append(objective(moved))
                np.testing.assert_allclose(
                    grad[place], (ends[0] - ends[1]) / 2e-5, rtol=1e-5, atol=1e-8
                )


# ---------------------------------------------------------------------------- estimators


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_network_of_them_is_trained_saved_and_continues_learning(name, dtype, tmp_path):
    (X, Y), cell, rnn = SHORT, CELLS[name], trained(name, dtype)
    assert rnn.best_loss_ < 0.8 * rnn.loss_curve_[0]
    assert rnn.predict(X).dtype == dtype
    assert rnn.states(X).shape == (80, cell.width)
    assert {array.dtype for array in rnn.params_.values()} == {np.dtype(dtype)}
    save(rnn, tmp_path / "rnn.npz")
    again = load(tmp_path / "rnn.npz")
    assert again.network_.cell == cell
    np.testing.assert_array_equal(again.forecast(5), rnn.forecast(5))
    before = rnn.predict(X)
    for made in (both := (deepcopy(rnn), again)):
        made.partial_fit(X[:40], Y[:40], new_sequence=True)
    one, other = (made.predict(X) for made in both)
    np.testing.assert_array_equal(one, other)
    assert not np.array_equal(one, before)


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_forecast_is_what_they_predict_from_it(name, dtype):
    """A sum of n terms, in any order, is off by n / 2 units of rounding of the terms' sizes.

    So two are apart by n of these at most; the weights are large and nearly cancel. The forecast's
    own rows are fed to both, so that nothing adds up.
    """
    rnn = trained(name, dtype)
    rows = rnn.forecast(4)
    fed = np.concatenate([SHORT[1][-1:].astype(dtype), rows[:-1]])
    first, state = rnn.predict(fed[:1], initial_state=rnn.state_, return_state=True)
    said = np.concatenate([first, rnn.predict(fed[1:], initial_state=state)])
    terms = rnn.params_["coef"][0] * rnn.states(fed, initial_state=rnn.state_)
    sizes = np.abs(terms).sum(axis=1) + np.abs(rnn.params_["intercept"])
    rounding = (terms.shape[1] + 1) * np.finfo(dtype).eps * sizes
    assert (np.abs(said - rows)[:, 0] <= rounding).all()
    assert np.ptp(rows) > 100 * rounding.max()


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_the_seed_makes_the_network(cell):
    X, Y = SHORT
    made = [
        RNNRegressor(cell=cell, **{**SHORT_RUN, "max_iter": 2, "random_state": seed}).fit(X, Y)
        for seed in (0, 0, 1)
    ]
    one, other, another = (rnn.predict(X) for rnn in made)
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(clone(made[0]).fit(X, Y).predict(X), one)
    assert not np.array_equal(one, another)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_labels_of_ragged_sequences(cell):
    labels = np.where(Y[:, 0] > np.median(Y), "high", "low")
    cuts = [60, 110, 170]
    parts, answers = np.split(X, cuts), np.split(labels, cuts)
    settings = {**FAST, "max_iter": 40, "learning_rate_init": 0.05}
    clf = RNNClassifier(cell=cell, **settings).fit(parts, answers)
    assert np.mean(np.concatenate(clf.predict(parts)) == labels) > 0.8


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("name, kind", [("scrn", SCRNCell), ("gated_feedback", GatedFeedbackCell)])
def test_names_are_searched(name, kind):
    search = GridSearchCV(
        RNNRegressor(cell=name, **SHORT_RUN), {"n_units": [3, 6]}, cv=TimeSeriesSplit(2)
    ).fit(X[:150], Y[:150])
    best = search.best_estimator_
    assert best.network_.cell == kind(best.n_units)
    assert search.cv_results_["mean_test_score"].max() > 0.5


def test_the_activation_is_that_of_the_hidden_units():
    rnn = RNNRegressor(cell="scrn", activation="logistic", **FAST).fit(X, Y)
    assert rnn.network_.cell == SCRNCell(6, activation="logistic")
    with pytest.raises(ValueError, match="='relu' is used only by cell='rnn', 'leaky', 'scrn'"):
        RNNRegressor(cell="gated_feedback", activation="relu", **FAST).fit(X, Y)


@pytest.mark.slow
def test_gradient_control_trains_scrn():
    for seed in range(3):
        settings = {**FAST, "cell": "scrn", "random_state": seed}
        plain = RNNRegressor(**settings).fit(X, Y)
        held = RNNRegressor(gradient_control=1.0, **settings).fit(X, Y)
        spread = []
        for rnn in (plain, held):
            cell, params = rnn.network_.cell, rnn.params_
            trace = cell.forward(params, X[:, None])
            J = step_jacobians(cell, params, trace, np.arange(50, 200), np.zeros(150, int))
            values = np.linalg.svd(J, compute_uv=False)
            spread.append(np.mean(np.clip(np.abs(values - 1) - 0.1, 0, None) ** 2))
        assert spread[1] < 0.9 * spread[0]


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_undeclared_methods_raise(cell):
    name = type(cell).__name__
    refusals = [({"solver": "least_squares"}, f"got {name}. Train it by gradients")]
    if name == "GatedFeedbackCell":
        refusals.append(({"gradient_control": 0.1}, f"got {name}"))
    for params, message in refusals:
        with pytest.raises(ValueError, match=message):
            RNNRegressor(cell=cell, **{**FAST, **params}).fit(X, Y)
    rnn = RNNRegressor(cell=cell, **{**FAST, "max_iter": 1}).fit(X, Y)
    with pytest.raises(ValueError, match=f"cannot convert {name}"):
        rnn.to_torch()
    with pytest.raises(AttributeError, match=f"{name} is not a reservoir"):
        _ = rnn.reservoir_
    with pytest.raises(ValueError, match=f"got {name}"):
        RNNRegressor(cell=cell, online="rtrl", **FAST).partial_fit(X, Y)


@pytest.mark.parametrize(
    "make, error, message",
    [
        (lambda: SCRNCell(0), ValueError, "n_units=0"),
        (lambda: SCRNCell(4, 0), ValueError, "n_context=0"),
        (lambda: SCRNCell(4, decay=1.0), ValueError, "decay=1.0 must be a number between 0 and 1"),
        (lambda: SCRNCell(4, 3, decay=(0.5, 0.5)), ValueError, "or 3 such numbers"),
        (lambda: SCRNCell(4, activation="sinus"), ValueError, "activation='sinus'"),
        (lambda: SCRNCell(4, learn_decay=1), TypeError, "learn_decay must be True or False"),
        (lambda: GatedFeedbackCell(4, 0), ValueError, "n_layers=0"),
        (lambda: GatedFeedbackCell(4, kind="leaky"), ValueError, "kind='leaky'"),
    ],
)
def test_what_cannot_be_made(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_default_sizes():
    assert [SCRNCell(n).width - n for n in (1, 2, 10, 64, 100)] == [1, 1, 4, 26, 40]


# ---------------------------------------------------------------------------- edges


def test_decays_that_come_as_an_array_are_kept_as_numbers():
    cell = SCRNCell(6, 2, decay=np.array([0.5, 0.9]))
    assert cell == SCRNCell(6, 2, decay=(0.5, 0.9))
    assert hash(cell) == hash(SCRNCell(6, 2, decay=[0.5, 0.9]))
    assert SimpleCell(2, leak_rate=np.array([0.5, 1.0])) == SimpleCell(2, leak_rate=(0.5, 1.0))
    assert hash(SCRNCell(6, decay=np.array(0.5))) == hash(SCRNCell(6, decay=0.5))
    assert hash(SimpleCell(2, leak_rate=np.array(0.5))) == hash(SimpleCell(2, leak_rate=0.5))
    timed = TimedLeakyCell(2, leak_rate=np.array([0.5, 0.3]))
    assert timed == TimedLeakyCell(2, leak_rate=(0.5, 0.3))


@pytest.mark.parametrize("learned", [False, True])
def test_a_decay_next_to_one_still_takes_something_in(learned):
    cell, ends = SCRNCell(3, 2, decay=1 - 1e-9, learn_decay=learned), {}
    for dtype in (np.float64, np.float32):
        params = {name: array.astype(dtype) for name, array in draw(Network(cell, 1, 1), 0).items()}
        if learned:
            params["decay"][:] = 0
        ends[dtype] = cell.forward(params, X[:30, None].astype(dtype)).end[0, 3:]
    assert (ends[np.float64] != 0).all()
    np.testing.assert_allclose(ends[np.float32], ends[np.float64], rtol=1e-4)


@pytest.mark.parametrize(
    "cell",
    [
        *(GatedFeedbackCell(3, 2, kind) for kind in ("rnn", "lstm", "gru")),
        SimpleCell(3, leak_rate=0.5),
        StackedCell((SimpleCell(2), GRUCell(3)), input_shortcuts=True),
    ],
    ids=repr,
)
def test_inputs_that_are_integers(cell):
    params, rows = draw(Network(cell, 1, 1), 0), np.arange(8).reshape(8, 1, 1)
    ends = [cell.forward(params, rows.astype(dtype)) for dtype in (int, float)]
    np.testing.assert_array_equal(ends[0].states, ends[1].states)
    back = [cell.backward(params, t, np.ones((8, 1, 3)), inputs=True)[2] for t in ends]
    np.testing.assert_array_equal(*back)


def test_targets_beside_integers_keep_their_digits():
    batch = make_batch([np.arange(3)[:, None]], [np.full((3, 1), 0.5)], weights=[np.full(3, 0.7)])
    np.testing.assert_array_equal(batch.targets, 0.5)
    np.testing.assert_array_equal(batch.weights, 0.7)

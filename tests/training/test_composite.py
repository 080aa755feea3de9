"""Cells made of cells, through the estimators: recipes, training, saving, errors."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from helpers.gradient_checks import PAIRS, draw, ragged
from reservoir import RNNClassifier, RNNRegressor, load, save
from reservoir.datasets import mackey_glass
from reservoir.training._objective import Objective
from reservoir.training.bptt import Network, loss_and_gradient, loss_value, make_batch
from reservoir.training.cells import (
    BidirectionalCell,
    DeepTransitionCell,
    FeedforwardCell,
    GatedFeedbackCell,
    GRUCell,
    LSTMCell,
    SCRNCell,
    SimpleCell,
    StackedCell,
    bidirectional,
    stacked,
)
from reservoir.training.cells.dropout import dropout_mask, dropping_out
from reservoir.training.gradient_control import jacobian_product_norms
from reservoir.training.hessian_free import train_hessian_free
from reservoir.training.initializers import initialize
from reservoir.training.least_squares import ls_fit
from reservoir.training.online import OnlineLearner
from reservoir.training.optimizers import adam
from reservoir.training.solvers import train_least_squares
from reservoir.training.trainer import Data, train
from reservoir.training.variable_projection import train_variable_projection

pytestmark = pytest.mark.both_engines

SERIES = mackey_glass(400, random_state=0)
X, Y = SERIES[:150], SERIES[1:151]
FAST = {
    "n_units": 6,
    "max_iter": 8,
    "learning_rate_init": 0.01,
    "random_state": 0,
    "init": "orthogonal",  # starts from data: test_starts_of_cells.py
}
FORWARDS = {
    "stacked": stacked("lstm", "rnn"),
    "three, shortcuts": stacked(
        "gru", SimpleCell(3), "leaky", input_shortcuts=True, readout_shortcuts=True
    ),
    "nested": stacked(stacked("rnn", "gru"), LSTMCell(6, peephole=True)),
    "deep input and output": stacked(FeedforwardCell(5), "rnn", FeedforwardCell(4)),
    "deep transition": DeepTransitionCell(6, (4,), shortcut=True),
}
BACK = {
    "both": bidirectional("lstm"),
    "two kinds": bidirectional("gru", "leaky"),
    "for labels": stacked(bidirectional("rnn"), "lstm"),
}
_PIECES = (slice(0, 90), slice(100, 160), slice(170, 300))  # labels need more rows than X has
RAGGED = [SERIES[:300][each] for each in _PIECES], [SERIES[1:301][each] for each in _PIECES]


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("cell", FORWARDS.values(), ids=FORWARDS)
def test_all_that_a_network_does(cell, dtype, tmp_path):
    rnn = RNNRegressor(cell=cell, dtype=dtype, **FAST).fit(X, Y)
    assert rnn.best_loss_ < 0.8 * rnn.loss_curve_[0]
    assert rnn.predict(X).dtype == dtype
    assert {array.dtype for array in rnn.params_.values()} == {np.dtype(dtype)}
    assert rnn.states(X).shape == (150, rnn.network_.cell.width)
    u, state = SERIES[150:151].astype(dtype), rnn.state_
    for row in rnn.forecast(4):
        u, state = rnn.predict(u, initial_state=state, return_state=True)
        np.testing.assert_allclose(row, u[0], rtol=1e-5)
    np.testing.assert_array_equal(clone(rnn).fit(X, Y).predict(X), rnn.predict(X))
    other = clone(rnn).set_params(random_state=1).fit(X, Y)
    assert not np.allclose(other.predict(X), rnn.predict(X))
    save(rnn, tmp_path / "rnn.npz")
    again = load(tmp_path / "rnn.npz")
    assert again.cell == rnn.cell
    assert hash(again.cell) == hash(rnn.cell)
    np.testing.assert_array_equal(again.forecast(5), rnn.forecast(5))
    given = {**FAST, "max_iter": 0, "init": FrozenEstimator(rnn)}
    frozen = RNNRegressor(cell=cell, dtype=dtype, **given)
    np.testing.assert_array_equal(frozen.fit(X, Y).predict(X), rnn.predict(X))
    for made in (rnn, again):
        made.partial_fit(X[:50], Y[:50], new_sequence=True)
    np.testing.assert_array_equal(again.predict(X), rnn.predict(X))


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cell", [*FORWARDS.values(), *BACK.values()], ids=[*FORWARDS, *BACK])
def test_ragged_lists(cell):
    rnn = RNNRegressor(cell=cell, **FAST).fit(*RAGGED)
    assert rnn.best_loss_ < 0.8 * rnn.loss_curve_[0]
    together = rnn.predict(RAGGED[0])
    for part, rows in zip(together, RAGGED[0], strict=True):
        alone = rnn.predict(rows, initial_state="zeros")
        np.testing.assert_allclose(part, alone, rtol=1e-9, atol=1e-12)
    labels = [np.where(y[:, 0] > np.median(Y), "high", "low") for y in RAGGED[1]]
    learning = {"max_iter": 40, "learning_rate_init": 0.03}
    clf = RNNClassifier(cell=cell, **{**FAST, **learning}).fit(RAGGED[0], labels)
    assert clf.score(RAGGED[0], labels) > 0.8
    ends = ["high", "low", "high"]
    assert clone(clf).set_params(target="last", max_iter=2).fit(RAGGED[0], ends).predict(
        RAGGED[0]
    ).shape == (3,)


@pytest.mark.slow
def test_names_have_the_size_of_the_estimator():
    search = GridSearchCV(
        RNNRegressor(cell=stacked("lstm", "rnn"), **FAST),
        {"n_units": [2, 6]},
        cv=TimeSeriesSplit(2),
    ).fit(X, Y)
    n = search.best_params_["n_units"]
    assert search.best_estimator_.network_.cell == StackedCell((LSTMCell(n), SimpleCell(n)))
    given = {"activation": "relu", "leak_rate": 0.5, **FAST, "max_iter": 1}
    made = RNNRegressor(cell=stacked("lstm", "leaky", "rnn"), **given).fit(X, Y).network_.cell
    assert made.cells == (LSTMCell(6), SimpleCell(6, "relu", 0.5), SimpleCell(6, "relu"))
    named = RNNRegressor(cell=stacked("gru", "rnn"), **FAST).fit(X, Y)
    objects = StackedCell((GRUCell(6), SimpleCell(6)))
    same = RNNRegressor(cell=objects, **FAST).fit(X, Y)
    np.testing.assert_array_equal(named.predict(X), same.predict(X))
    back = RNNRegressor(cell=bidirectional("gru"), **FAST).fit(*RAGGED).network_.cell
    assert back == BidirectionalCell((GRUCell(6), GRUCell(6)))


def test_recipes_are_values():
    assert stacked("lstm", "rnn") == stacked("lstm", "rnn") != stacked("rnn", "lstm")
    assert len({stacked("lstm"), stacked("lstm"), bidirectional("lstm")}) == 2
    text = (
        "stacked(bidirectional('lstm', 'lstm'), GRUCell(n_units=3, reset_after=True), "
        "input_shortcuts=True)"
    )
    recipe = stacked(bidirectional("lstm"), GRUCell(3), input_shortcuts=True)
    assert repr(recipe) == text
    assert clone(RNNRegressor(cell=recipe)).cell == recipe


@pytest.mark.parametrize(
    "bad", [lambda: stacked(), lambda: stacked("lstm", 3), lambda: bidirectional(4)]
)
def test_what_is_no_part(bad):
    with pytest.raises(TypeError, match="must be"):
        bad()


def test_what_is_not_known_or_too_small():
    for cell, kind, message in (
        (stacked("lstm", "gruu"), ValueError, "cell='gruu' is not known"),
        (stacked("lstm", GRUCell(5)), ValueError, "n_units=5, but the estimator has n_units=6"),
    ):
        with pytest.raises(kind, match=message):
            RNNRegressor(cell=cell, **FAST).fit(X, Y)
    with pytest.raises(ValueError, match=r"'relu' is used only by .*stacked\('lstm', 'gru'\)"):
        RNNRegressor(cell=stacked("lstm", "gru"), activation="relu", **FAST).fit(X, Y)
    with pytest.raises(TypeError, match="'rnn' is not a cell"):
        StackedCell((LSTMCell(3), "rnn"))
    with pytest.raises(TypeError, match="tuple of 2 cells"):
        BidirectionalCell((LSTMCell(3),))
    with pytest.raises(TypeError, match=r"hidden=\(\) must be"):
        DeepTransitionCell(3, ())


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cell", FORWARDS.values(), ids=FORWARDS)
def test_unsupported_options_raise(cell):
    rnn = RNNRegressor(cell=cell, **FAST).fit(X, Y)
    name = type(rnn.network_.cell).__name__
    with pytest.raises(AttributeError, match=f"{name} is not a reservoir"):
        _ = rnn.reservoir_
    for params, message in (
        ({"solver": "least_squares"}, f"got {name}. Train it by gradients"),
        ({"gradient_control": 0.1}, f"Gradient control needs .*got {name}"),
    ):
        with pytest.raises(ValueError, match=message):
            RNNRegressor(cell=cell, **{**FAST, **params}).fit(X, Y)
    for online in ("rtrl", "least_squares"):
        with pytest.raises(ValueError, match=f"got {name}"):
            RNNRegressor(cell=cell, online=online, **FAST).partial_fit(X, Y)
    with pytest.raises(ValueError, match="Least squares needs a cell that declares a layer"):
        ls_fit(dict(rnn.params_), X, Y, cell=rnn.network_.cell)


# ---------------------------------------------------------------------------- both directions


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cell", BACK.values(), ids=BACK)
def test_what_reads_rows_to_come_is_for_recordings(cell, tmp_path):
    with pytest.raises(ValueError, match=r"initial_state='last' continues .*Set .*\"zeros\""):
        RNNRegressor(cell=cell, **FAST).fit(X, Y)
    rnn = RNNRegressor(cell=cell, initial_state="zeros", **FAST).fit(X, Y)
    save(rnn, tmp_path / "rnn.npz")
    np.testing.assert_array_equal(load(tmp_path / "rnn.npz").predict(X), rnn.predict(X))
    before = {name: array.copy() for name, array in rnn.params_.items()}
    for refused, what in (
        (lambda: rnn.forecast(3), "forecast"),
        (lambda: rnn.forecast(3, context=X), "forecast"),
        (lambda: rnn.stream(), "stream"),
        (lambda: rnn.partial_fit(X, Y), "partial_fit"),
        (lambda: clone(rnn).partial_fit(X, Y), "partial_fit"),
        (lambda: rnn.predict(X, return_state=True), "return_state=True"),
        (lambda: rnn.predict(X, initial_state="last"), "initial_state='last'"),
        (lambda: rnn.predict(X, initial_state="steady"), "initial_state='steady'"),
        (lambda: rnn.states(X, initial_state=rnn.state_), "initial_state=an array"),
        (lambda: clone(rnn).set_params(initial_state="steady").fit(X, Y), "initial_state='steady'"),
        (lambda: clone(rnn).set_params(truncation=20).fit(X, Y), "truncation=20"),
    ):
        with pytest.raises(ValueError, match=rf"^{what}.*bidirectional\(.*reads rows from the end"):
            refused()
    for name, array in rnn.params_.items():
        np.testing.assert_array_equal(array, before[name])
    network = rnn.network_
    with pytest.raises(ValueError, match=r"uses future rows.*Use a causal cell"):
        OnlineLearner(network, rnn.params_)
    with pytest.raises(ValueError, match="truncation=20 shortens sequences"):
        train(network, rnn.params_, Data([X], [Y]), adam(), truncation=20)


@pytest.mark.slow
def test_long_recordings_are_run_as_a_whole():
    """A thing at the last of 2500 rows is seen at the first: `identity` units that only add."""
    cell = BidirectionalCell((SimpleCell(1, "identity"), SimpleCell(1, "identity")))
    long = np.zeros((2500, 1))
    rnn = RNNRegressor(1, cell=cell, initial_state="zeros", max_iter=1, random_state=0)
    rnn.fit(long[:50] + X[:50], Y[:50])
    for name in rnn.params_:
        rnn.params_[name] = np.ones_like(rnn.params_[name])
        if name.endswith(("bias", "intercept")):
            rnn.params_[name][:] = 0
    long[-1] = 3.0
    np.testing.assert_array_equal(rnn.predict(long)[:-1], 3.0)
    np.testing.assert_array_equal(rnn.predict(long)[-1], 6.0)
    y = np.full((2500, 1), 3.0)
    y[-1] = 6.0
    again = clone(rnn).set_params(init=FrozenEstimator(rnn), max_iter=0, washout=0).fit(long, y)
    assert again.best_loss_ == 0  # measured on the whole, too


@pytest.mark.slow
def test_rows_to_come_are_read_and_rows_gone_by_as_well():
    """y[t] = x[t + 3] + x[t - 3]: a network that reads forwards cannot know half of it."""
    errors = {}
    for seed in range(3):
        u = np.random.default_rng(seed).uniform(-1, 1, (24, 40, 1))
        y = np.zeros_like(u)
        y[:, 3:] += u[:, :-3]
        y[:, :-3] += u[:, 3:]
        for name in ("gru", bidirectional("gru")):
            rnn = RNNRegressor(
                10, cell=name, max_iter=60, learning_rate_init=0.03, random_state=seed
            ).fit(list(u[:20]), list(y[:20]))
            errors[name, seed] = 1 - rnn.score(list(u[20:]), list(y[20:]))
    for seed in range(3):
        assert errors["gru", seed] > 0.4
        assert errors[bidirectional("gru"), seed] < 0.1


# ---------------------------------------------------------------------------- what parts share


MADE_OF_PARTS = [
    *(cell.cell(lambda name: LSTMCell(6)) for cell in (FORWARDS["stacked"], BACK["both"])),
    FORWARDS["deep transition"],
    GatedFeedbackCell(6, 2, "lstm"),
    SCRNCell(6, 3, learn_decay=True),
    StackedCell((SCRNCell(4, 2, learn_decay=True), GRUCell(6))),
]


@pytest.mark.parametrize("cell", MADE_OF_PARTS, ids=lambda cell: type(cell).__name__)
def test_no_penalty_pulls_at_biases_and_time_constants(cell):
    network = Network(cell, 2, 1)
    ones = {name: np.ones(shape) for name, shape in network.shapes().items()}
    zeros = {name: np.zeros_like(array) for name, array in ones.items()}
    objective, pulled, counted = Objective(network, l1=0.5, l2=2.0), {}, 0
    gradient, first = objective.gradient(ones, zeros), 0
    for name, array in ones.items():
        pulled[name] = gradient[first : first + array.size]
        first += array.size
    for name, at in pulled.items():
        free = name.rpartition(".")[2].startswith(("bias", "intercept", "decay"))
        np.testing.assert_array_equal(at, 0.0 if free else 2.5)
        counted += 0 if free else at.size
    assert objective.penalty(ones) == pytest.approx(1.5 * counted)


@pytest.mark.parametrize("hidden", [(4,), (9, 5)])
def test_layers_between_states_start_orthogonal(hidden):
    network = Network(DeepTransitionCell(6, hidden, shortcut=True), 2, 1)
    params = initialize(network.weights(), "orthogonal", random_state=0)
    for name, weight in network.weights().items():
        if weight.role == "recurrent":
            W = params[name] if weight.shape[0] <= weight.shape[1] else params[name].T
            np.testing.assert_allclose(W @ W.T, np.eye(len(W)), atol=1e-12)
    with pytest.raises(ValueError, match=rf"recurrent matrices, .* shape \({hidden[0]}, 6\)"):
        RNNRegressor(cell=network.cell, **{**FAST, "init": "spectral"}).fit(X, Y)
    RNNRegressor(cell=DeepTransitionCell(6, (6,)), **{**FAST, "init": "spectral"}).fit(X, Y)


def test_no_jacobian_of_states_that_do_not_follow_one_another():
    for cell, why in (
        (BidirectionalCell((GRUCell(3), GRUCell(3))), "uses future rows"),
        (FeedforwardCell(3), "has no state"),
    ):
        params = draw(Network(cell, 1, 1), 0)
        with pytest.raises(ValueError, match=f"{why}: there is no Jacobian"):
            jacobian_product_norms(cell, params, X[:20])


@pytest.mark.parametrize("cell", [FeedforwardCell(6), stacked(FeedforwardCell(6), "rnn")])
def test_a_steady_state_where_some_have_none(cell):
    rnn = RNNRegressor(cell=cell, **FAST).fit(X, Y)
    steady = rnn.predict(X[:1], initial_state="steady")
    settled = rnn.predict(np.tile(X[:1], (3000, 1)), initial_state="zeros")[-1:]
    np.testing.assert_allclose(steady, settled, rtol=1e-6)


# ---------------------------------------------------------------------------- dropout


def test_solvers_that_need_a_fixed_loss_raise_with_dropout():
    class Noisy(GRUCell):
        drops_out = True

    network = Network(Noisy(3), 1, 1)
    data, params = Data([X[:50]], [Y[:50]]), draw(network, 0)
    for solve, name in (
        (train_hessian_free, "hessian_free"),
        (train_least_squares, "least_squ"),
        (train_variable_projection, "variable_p"),
    ):
        with pytest.raises(ValueError, match=f"solver='{name}.*with dropout the loss is random"):
            solve(network, params, data)


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("output, loss", PAIRS)
@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("shortcuts", [False, True])
def test_the_gradient_under_dropout(same, shortcuts, output, loss):
    cell = StackedCell((LSTMCell(3), GRUCell(4)), shortcuts, shortcuts, 0.4, same)
    network = Network(cell, 3, 2, output, loss, include_input=True)
    batch = ragged(network, 0, weights=True)
    for seed in range(3):
        params = draw(network, seed)

        def value(now, seed=seed):
            with dropping_out(np.random.default_rng(seed)):
                return loss_value(network, now, batch)[0]

        loss, grads, _ = Objective(network).loss_and_gradient(
            params, batch, None, np.random.default_rng(seed)
        )
        assert loss == value(params) != value(params, seed + 1)
        rng = np.random.default_rng(seed)
        for name, array in params.items():
            step = rng.standard_normal(array.shape)
            ends = [value({**params, name: array + h * step}) for h in (1e-5, -1e-5)]
            numeric = (ends[0] - ends[1]) / 2e-5
            assert (grads[name] * step).sum() == pytest.approx(numeric, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("same", [False, True])
def test_what_is_dropped(same):
    """Means stay, shares are those asked for; one mask for all steps or one for each."""
    with dropping_out(np.random.default_rng(0)):
        mask = dropout_mask((400, 50, 20), 0.3, same, np.dtype(np.float32))
    assert mask.dtype == np.float32
    assert mask.shape == ((1 if same else 400), 50, 20)
    np.testing.assert_allclose(np.unique(mask), [0, 1 / 0.7], rtol=1e-6)
    assert mask.mean() == pytest.approx(1, abs=0.1 if same else 0.01)
    np.testing.assert_array_equal(dropout_mask((4, 5, 2), 0.3, same, np.dtype(float)), [[[1.0]]])


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_dropout_is_for_training_alone(dtype, tmp_path):
    cell = stacked("gru", "rnn", dropout=0.2, same_mask=True)
    rnn = RNNRegressor(cell=cell, dtype=dtype, **FAST).fit(X, Y)
    assert rnn.best_loss_ < 0.8 * rnn.loss_curve_[0]
    np.testing.assert_array_equal(rnn.predict(X), rnn.predict(X))
    np.testing.assert_array_equal(clone(rnn).fit(X, Y).predict(X), rnn.predict(X))
    plain = RNNRegressor(cell=stacked("gru", "rnn"), dtype=dtype, **FAST).fit(X, Y)
    assert plain.loss_curve_[0] == rnn.loss_curve_[0]  # before training; then paths part
    assert plain.loss_curve_[1] != rnn.loss_curve_[1]
    assert {array.dtype for array in rnn.params_.values()} == {np.dtype(dtype)}
    save(rnn, tmp_path / "rnn.npz")
    again = load(tmp_path / "rnn.npz")
    for made in (rnn, again):
        made.partial_fit(X[:100], Y[:100], new_sequence=True)
    np.testing.assert_array_equal(again.forecast(5), rnn.forecast(5))
    for solver in ("lbfgs", "least_squares", "hessian_free"):
        with pytest.raises(ValueError, match=f"{solver}.* with dropout the loss is random"):
            RNNRegressor(cell=cell, solver=solver, **FAST).fit(X, Y)
    with pytest.raises(ValueError, match=r"dropout=1\.0"):
        stacked("gru", dropout=1.0)


# ---------------------------------------------------------------------------- torch

TORCH_GATES = {"LSTM": LSTMCell, "GRU": GRUCell, "RNN": SimpleCell}


@pytest.mark.parametrize("both_ways", [False, True])
@pytest.mark.parametrize("kind", TORCH_GATES)
def test_equal_to_autograd(torch, kind, both_ways):
    """torch.nn.LSTM(..., num_layers=2, bidirectional=...), and GRU and RNN."""
    n, p, q, lengths = 4, 3, 2, (9, 5, 7)
    make = TORCH_GATES[kind]
    layer = BidirectionalCell((make(n), make(n))) if both_ways else make(n)
    network = Network(StackedCell((layer, layer)), p, q)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        params = {name: 0.5 * rng.standard_normal(s) for name, s in network.shapes().items()}
        xs = [rng.standard_normal((k, p)) for k in lengths]
        ys = [rng.standard_normal((k, q)) for k in lengths]
        loss, grads, _ = loss_and_gradient(network, params, make_batch(xs, ys))
        module = getattr(torch.nn, kind)(p, n, num_layers=2, bidirectional=both_ways).double()
        linear = torch.nn.Linear(network.cell.width, q).double()
        prefixes = {}
        for k in range(2):
            for way, suffix in enumerate(("", "_reverse")[: 1 + both_ways]):
                prefixes[f"_l{k}{suffix}"] = f"{k}.{way}." if both_ways else f"{k}."
        with torch.no_grad():
            for end, prefix in prefixes.items():
                getattr(module, f"weight_ih{end}").copy_(torch.tensor(params[prefix + "W_in"]))
                getattr(module, f"weight_hh{end}").copy_(torch.tensor(params[prefix + "W"]))
                getattr(module, f"bias_ih{end}").copy_(torch.tensor(params[prefix + "bias"]))
                second = getattr(module, f"bias_hh{end}")
                second.zero_()
                if kind == "GRU":
                    second[2 * n :] = torch.tensor(params[prefix + "bias_recurrent"])
            linear.weight.copy_(torch.tensor(params["coef"]))
            linear.bias.copy_(torch.tensor(params["intercept"]))
        packed = torch.nn.utils.rnn.pack_sequence(
            [torch.tensor(x) for x in xs], enforce_sorted=False
        )
        out, ends = torch.nn.utils.rnn.pad_packed_sequence(module(packed)[0])
        rows = torch.cat([linear(out[: ends[i], i]) for i in range(3)])
        theirs = torch.nn.functional.mse_loss(rows, torch.tensor(np.concatenate(ys)))
        theirs.backward()
        assert np.isclose(loss, theirs.item(), rtol=1e-12)
        found = {"coef": linear.weight.grad, "intercept": linear.bias.grad}
        for end, prefix in prefixes.items():
            found[prefix + "W_in"] = getattr(module, f"weight_ih{end}").grad
            found[prefix + "W"] = getattr(module, f"weight_hh{end}").grad
            found[prefix + "bias"] = getattr(module, f"bias_ih{end}").grad
            if kind == "GRU":
                found[prefix + "bias_recurrent"] = getattr(module, f"bias_hh{end}").grad[2 * n :]
        assert found.keys() == grads.keys()
        for name, gradient in found.items():
            np.testing.assert_allclose(grads[name], gradient.numpy(), rtol=1e-9, atol=1e-12)

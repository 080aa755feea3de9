"""Starts from data of cells that consist of parts, and of a cell of one's own."""

import re
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.special import expit as logistic
from sklearn.exceptions import ConvergenceWarning

from helpers.toys.decaying_cell import Decay
from reservoir import RNNClassifier, RNNRegressor, load, save
from reservoir.training.bptt import Network, forward, make_batch
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
from reservoir.training.starts import NoStart, start

pytestmark = pytest.mark.both_engines

CELLS = {
    "stack": stacked("rnn", "rnn"),
    "three, shortcuts": stacked(
        "gru", SimpleCell(3), "leaky", input_shortcuts=True, readout_shortcuts=True
    ),
    "layers without memory": stacked(FeedforwardCell(5), "rnn", FeedforwardCell(6)),
    "both ways": bidirectional("lstm", "rnn"),
    "below": stacked(bidirectional("rnn"), "rnn"),
    "scrn": SCRNCell(6, 3, decay=(0.5, 0.8, 0.95), learn_decay=True),
    "feedback": GatedFeedbackCell(6, kind="gru"),
    "deep": DeepTransitionCell(6, (4, 5), shortcut=True),
}
LENGTHS = (60, 30, 40)
QUICK = {"n_iter": 2, "n_draws": 1, "input_scalings": (1.0,)}
FAST = {"n_units": 6, "max_iter": 0, "init": "esn", "random_state": 0}


def problem(seed=0, lengths=LENGTHS, n_features=2):
    """Return sequences whose target is a product of two past inputs, with memory."""
    rng = np.random.default_rng(seed)
    inputs = [rng.uniform(-1, 1, (n, n_features)) for n in lengths]
    targets = [np.zeros((n, 1)) for n in lengths]
    for X, y in zip(inputs, targets, strict=True):
        for t in range(2, len(X)):
            y[t] = 0.5 * y[t - 1] + X[t - 1, 0] * X[t - 2, 1] + 0.5 * X[t, 0]
    return inputs, targets


def began(cell, data, random_state=0, **options):
    """Return the network of a cell, and the weights that it starts from."""
    inputs, targets = data
    network = Network(cell, inputs[0].shape[1], targets[0].shape[-1])
    options = {**QUICK, **options}
    return network, start(network, inputs, targets, random_state=random_state, **options).params


def states(network, params, data):
    batch = make_batch(*data)
    return forward(network, params, batch)[0].states[1:, 0]


@dataclass(frozen=True)
class Fading(Decay):
    """A toy that starts with input weights of a simple cell."""

    answer: str = ""

    def weights_from_data(self, fit, inputs):
        back = [X[::-1] for X in inputs]
        if self.answer == "twice":
            turned = Fading(self.n_units, "turned")
            return fit(turned, back, backward=True)
        if self.answer == "turned":
            inner = fit(SimpleCell(self.n_units), back, backward=True)
        else:
            inner = fit(SimpleCell(self.n_units), inputs)
        wrong = {
            "names": {"W_in": inner["W_in"]},
            "shape": {"W_in": inner["W_in"].T, "decay": np.ones(self.n_units)},
            "NaN": {"W_in": inner["W_in"], "decay": np.full(self.n_units, np.nan)},
            "tuple": tuple(inner),
            "none": None,
        }
        right = {"W_in": inner["W_in"], "decay": fit.generator.normal(size=self.n_units)}
        return wrong.get(self.answer, right)


# ---------------------------------------------------------------------------- reductions


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("kind, part", [("rnn", SimpleCell), ("lstm", LSTMCell), ("gru", GRUCell)])
def test_gated_feedback_starts_with_the_states_of_a_stack(kind, part, global_random_seed):
    data = problem(global_random_seed)
    for n_layers in (1, 2):
        made = began(GatedFeedbackCell(5, n_layers, kind), data)
        stack = began(StackedCell((part(5),) * n_layers), data)
        ours, theirs = (states(network, params, data) for network, params in (made, stack))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)
        assert np.ptp(ours) > 0.01
        np.testing.assert_allclose(made[1]["coef"], stack[1]["coef"], rtol=1e-6)


def test_parts_alone_are_fitted_as_cells(global_random_seed):
    """A stack of one is its cell; layers above it leave it as it is."""
    data, cell = problem(global_random_seed), SimpleCell(6)
    _, alone = began(cell, data)
    for whole in (StackedCell((cell,)), StackedCell((StackedCell((cell,)), GRUCell(3)))):
        _, params = began(whole, data)
        for name in ("W_in", "W", "bias"):
            inside = [part for part in params if re.fullmatch(rf"0\.(0\.)?{name}", part)]
            np.testing.assert_array_equal(params[inside[0]], alone[name])


UPPER = {
    "identity": (SimpleCell(5, "identity"), 1.0, 1e-12),
    "rnn": (SimpleCell(5), 1.0, 0.009),
    "leaky": (SimpleCell(5, leak_rate=0.5), 0.5, 0.009),
    "gru": (GRUCell(5), logistic(6), 0.009),
    "lstm": (LSTMCell(5), 1.0, 0.025),
}


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("shortcuts", [False, True])
@pytest.mark.parametrize("name", UPPER)
def test_upper_layers_pass_on_the_states_below(name, shortcuts, global_random_seed):
    """tanh(.3 h) is .3 h up to (.3 h)^3 / 3 < .009; a leaky unit filters it."""
    (upper, leak, error), data = UPPER[name], problem(global_random_seed)
    cell = StackedCell(
        (GRUCell(5), upper, upper), input_shortcuts=shortcuts, readout_shortcuts=True
    )
    network, params = began(cell, data, pass_on=True)
    below, *above = np.split(states(network, params, data), 3, axis=1)
    assert np.ptp(below) > 0.1
    for reached in above:
        expected = lfilter([0.3 * leak], [1, leak - 1], below, axis=0)
        np.testing.assert_allclose(reached, expected, rtol=0, atol=error)
        below = reached


def test_layers_that_cannot_pass_on_are_fitted(global_random_seed):
    data = problem(global_random_seed)
    for cells in (
        (GRUCell(5), SimpleCell(4)),
        (SimpleCell(5), SimpleCell(5, "relu")),
        (SimpleCell(5), SimpleCell(5, "logistic")),
        (FeedforwardCell(5), SimpleCell(5)),
        (BidirectionalCell((SimpleCell(5), SimpleCell(5))), SimpleCell(5)),
    ):
        _, plain = began(StackedCell(cells), data)
        _, passed = began(StackedCell(cells), data, pass_on=True)
        for name, array in passed.items():
            np.testing.assert_array_equal(array, plain[name])


class Recorder:
    """A `fit` that returns random weights, and keeps what it received."""

    def __init__(self):
        self.generator, self.calls = np.random.default_rng(0), []

    def __call__(self, cell, inputs, *, backward=False):
        shapes = cell.shapes(inputs[0].shape[1])
        params = {name: self.generator.normal(size=shape) for name, shape in shapes.items()}
        self.calls.append((cell, inputs, backward, params))
        return params


@pytest.mark.parametrize("shortcuts", [False, True])
def test_a_layer_receives_the_states_below_it(shortcuts):
    inputs, _ = problem(lengths=range(1, 40))
    cell, fit = StackedCell((GRUCell(4), SimpleCell(6)), input_shortcuts=shortcuts), Recorder()
    params = cell.weights_from_data(fit, inputs)
    assert set(params) == set(cell.shapes(2))
    (lower, _, _, found), (_, received, _, _) = fit.calls
    for X, rows in zip(inputs, received, strict=True):
        below = lower.forward(found, X[:, None]).states[1:, 0]
        np.testing.assert_allclose(rows[:, :4], below, rtol=1e-12, atol=1e-14)
        np.testing.assert_array_equal(rows[:, 4:], X if shortcuts else rows[:, 4:])
        assert rows.shape[1] == 4 + 2 * shortcuts


def test_the_backward_cell_is_fitted_to_reversed_rows(global_random_seed):
    inputs, targets = problem(global_random_seed)
    weights = [np.random.default_rng(1).choice([0.0, 1.0, 2.0], len(X)) for X in inputs]
    fit = Recorder()
    BidirectionalCell((SimpleCell(5), GRUCell(4))).weights_from_data(fit, inputs)
    assert [call[2] for call in fit.calls] == [False, True]
    for X, rows in zip(inputs, fit.calls[1][1], strict=True):
        np.testing.assert_array_equal(rows, X[::-1])
    # targets and weights of rows are then reversed, too; twice reversed, they are as before
    _, plain = began(Fading(4), (inputs, targets), weights=weights)
    back = [[A[::-1] for A in arrays] for arrays in (inputs, targets, weights)]
    _, turned = began(Fading(4, "turned"), back[:2], weights=back[2])
    _, twice = began(Fading(4, "twice"), (inputs, targets), weights=weights)
    for name in ("W_in", "decay"):
        np.testing.assert_array_equal(turned[name], plain[name])
        np.testing.assert_array_equal(twice[name], plain[name])


def test_hidden_units_start_as_a_simple_cell_beside_the_context(global_random_seed):
    data = problem(global_random_seed, (4000,))
    cell = SCRNCell(5, 3, decay=(0.5, 0.9, 0.95))
    network, params = began(cell, data, n_iter=0)
    one, alone = began(SimpleCell(5), data, n_iter=0)
    both = states(network, params, data)
    np.testing.assert_allclose(both[:, :5], states(one, alone, data), rtol=0, atol=1e-12)
    # uniform inputs at variance 1 / 3, in two columns: the sum of two squared normal numbers
    B = params["W_in_context"]
    size = np.sqrt((B**2 / 3).sum(axis=1) * (1 - np.array(cell.decay)) / (1 + np.array(cell.decay)))
    np.testing.assert_allclose(both[200:, 5:].std(axis=0), size, rtol=0.25)


@pytest.mark.parametrize("hidden", [(7,), (3,), (6, 4, 8)], ids=str)
def test_a_linear_transition_does_the_step_of_a_simple_cell(hidden, global_random_seed):
    data, m = problem(global_random_seed), min(6, *hidden)
    network, params = began(DeepTransitionCell(6, hidden, "identity", shortcut=True), data)
    one, alone = began(SimpleCell(m, "identity"), data)
    reached = states(network, params, data)[:, :m]
    np.testing.assert_allclose(reached, 0.3 * states(one, alone, data), rtol=1e-12, atol=1e-12)


# ---------------------------------------------------------------------------- data


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CELLS)
def test_estimators_start_from_data(name, dtype, tmp_path):
    """Unequal lengths, rows of weight 0, missing targets; two fits have the same bits."""
    inputs, targets = problem()
    rnn = RNNRegressor(cell=CELLS[name], initial_state="zeros", dtype=dtype, **FAST)
    made = [rnn.fit(inputs, targets).params_ for _ in range(2)]
    assert rnn.init_ == "esn"
    assert len(rnn.start_results_["init"]) == 1
    assert rnn.loss_curve_[0] < 0.9 * np.var(np.concatenate(targets))
    for key, array in rnn.params_.items():
        assert array.dtype == dtype
        np.testing.assert_array_equal(array, made[0][key])
    save(rnn, tmp_path / "rnn.npz")
    saved = load(tmp_path / "rnn.npz").predict(inputs)
    for found, rows in zip(saved, rnn.predict(inputs), strict=True):
        np.testing.assert_array_equal(found, rows)
    # the targets of rows of weight 0, and missing ones, are not used
    weights = [np.ones(len(X)) for X in inputs]
    weights[0][20:40] = weights[2][::7] = 0
    other = [np.where(w[:, None] > 0, Y, 9.0) for w, Y in zip(weights, targets, strict=True)]
    missing = [np.where(w[:, None] > 0, Y, np.nan) for w, Y in zip(weights, targets, strict=True)]
    made = [rnn.fit(inputs, Y, weights).params_ for Y in (targets, other)]
    made.append(rnn.set_params(missing_targets="skip").fit(inputs, missing).params_)
    for key, array in made[0].items():
        np.testing.assert_array_equal(made[1][key], array)
        np.testing.assert_array_equal(made[2][key], array)


def test_codes_of_symbols_are_looked_up(global_random_seed):
    """A deep stack of codes starts as one of one-hot columns."""
    codes = np.random.default_rng(global_random_seed).integers(0, 4, (120, 1))
    y = np.cos(codes + np.roll(codes, 1)).ravel()
    for cell in (stacked(stacked("rnn", "gru"), "rnn"), DeepTransitionCell(6, (5,))):
        coded = RNNRegressor(cell=cell, n_symbols=4, **FAST).fit(codes, y)
        dense = RNNRegressor(cell=cell, **FAST).fit(np.eye(4)[codes.ravel()], y)
        np.testing.assert_allclose(
            coded.predict(codes), dense.predict(np.eye(4)[codes.ravel()]), rtol=1e-4, atol=1e-6
        )


def test_labels_at_every_step_keep_random_weights():
    inputs, targets = problem()
    labels = [np.where(Y[:, 0] > 0, "up", "down") for Y in targets]
    given = {**FAST, "init": "auto"}
    clf = RNNClassifier(cell=stacked("rnn", "rnn"), **given)
    with pytest.warns(ConvergenceWarning, match='labels at every step .* init="least_squares"'):
        clf.fit(inputs, labels)
    assert clf.init_ == "orthogonal"
    assert clf.start_results_ is None
    assert RNNClassifier(cell="rnn", **given).fit(inputs, labels).init_ == "least_squares"
    clf.set_params(init="least_squares").fit(inputs, labels)  # who asks for it gets it


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cell", [stacked("rnn", "rnn"), bidirectional("rnn")], ids=["up", "both"])
def test_one_target_per_sequence_tries_the_starts(cell):
    inputs, _ = problem(0, (8,) * 12)
    ends = np.array([X[-3:, 0].sum() for X in inputs])
    given = {**FAST, "init": "auto", "max_iter": 1, "target": "last", "initial_state": "zeros"}
    rnn = RNNRegressor(cell=cell, **given).fit(inputs, ends)
    assert set(rnn.start_results_["init"]) == {"least_squares", "esn", "orthogonal"}


def test_loops_of_a_stack_are_tried():
    x = np.sin(0.3 * np.arange(90))[:, None]
    given = {**FAST, "init": "auto"}
    rnn = RNNRegressor(cell=stacked("rnn", "rnn"), **given).fit(x[:-1], x[1:])
    assert np.isfinite(rnn.start_results_["lost_loops"][0])
    given["initial_state"] = "zeros"  # loops need past rows only
    both = RNNRegressor(cell=bidirectional("rnn"), **given).fit(x[:-1], x[1:])
    assert np.isnan(both.start_results_["lost_loops"]).all()


def test_upper_layers_pass_on_only_for_variable_projection(monkeypatch):
    data, used = problem(), []

    def spy(*arguments, pass_on, **options):
        used.append(pass_on)
        return start(*arguments, pass_on=pass_on, **{**options, **QUICK})

    monkeypatch.setattr("reservoir.estimators.rnn.start.start", spy)
    monkeypatch.setattr("reservoir.estimators.rnn.start_trials._PASSED_FROM", 2)
    given = {**FAST, "cell": stacked("rnn", "rnn"), "max_iter": 2, "init": "auto"}
    for params, expected in (
        ({}, [True, True]),  # the start, and the one that is compared with random weights
        ({"init": "least_squares"}, [True]),
        ({"init": "esn"}, [False]),
        ({"max_iter": 1}, [False, False]),
        ({"solver": "adam"}, [False]),
        ({"alpha": 0.1}, [False]),
    ):
        used.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            RNNRegressor(**{**given, **params}).fit(*data)
        assert used[: len(expected)] == expected
        assert len(set(used)) == 1


def test_a_stack_that_passed_on_is_trained(tmp_path, monkeypatch):
    """Unequal lengths, float32; two fits have the same bits."""
    monkeypatch.setattr("reservoir.estimators.rnn.start_trials._PASSED_FROM", 3)
    inputs, targets = problem()
    given = {**FAST, "init": "least_squares", "max_iter": 3, "dtype": "float32"}
    rnn = RNNRegressor(cell=stacked("rnn", "rnn"), initial_state="zeros", **given)
    made = [rnn.fit(inputs, targets).params_ for _ in range(2)]
    assert rnn.loss_curve_[-1] < rnn.loss_curve_[0]
    # still near the identity that it started from
    W = made[0]["1.W_in"]
    assert np.diag(W).min() > np.abs(W - np.diag(np.diag(W))).max()
    for key, array in made[0].items():
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, made[1][key])
    save(rnn, tmp_path / "rnn.npz")
    saved = load(tmp_path / "rnn.npz").predict(inputs)
    for found, rows in zip(saved, rnn.predict(inputs), strict=True):
        np.testing.assert_array_equal(found, rows)


# ---------------------------------------------------------------------------- cells of one's own


def test_a_cell_of_ones_own_starts_from_data(global_random_seed):
    data = problem(global_random_seed)
    assert Fading(6).starts_from_data
    _, params = began(Fading(6), data)
    np.testing.assert_array_equal(params["W_in"], began(SimpleCell(6), data)[1]["W_in"])
    rnn = RNNRegressor(cell=Fading(6), **{**FAST, "init": "auto"}).fit(*data)
    assert rnn.init_ == "least_squares"
    inside = RNNRegressor(cell=StackedCell((Fading(3), GRUCell(6))), **FAST).fit(*data)
    assert inside.loss_curve_[0] < np.var(np.concatenate(data[1]))


@pytest.mark.parametrize(
    "answer, message",
    [
        ("names", r"must return a dict with the names \['W_in', 'decay'\]; got \['W_in'\]"),
        ("tuple", r"must return a dict .*; got tuple"),
        ("shape", r"'W_in' must be finite, of shape \(6, 2\); got shape \(2, 6\)"),
        ("NaN", r"'decay' must be finite, of shape \(6,\); got NaN or infinity"),
        ("none", "a layer.* or weights_from_data .*got Fading. Use an initializer"),
    ],
)
def test_what_a_cell_returns_is_checked(answer, message):
    data = problem()
    for cell in (Fading(6, answer), StackedCell((SimpleCell(2), Fading(6, answer)))):
        shaped = message.replace("2", "[26]")
        with pytest.raises(ValueError, match=shaped):
            began(cell, ([X[:, :2] for X in data[0]], data[1]), n_iter=2)


def test_without_a_start_weights_are_random():
    data, given = problem(), {**FAST, "init": "auto"}
    for cell in (Fading(6, "none"), StackedCell((Decay(3), SimpleCell(6)))):
        with pytest.warns(ConvergenceWarning, match="max_iter=0 keeps the random"):
            rnn = RNNRegressor(cell=cell, **given).fit(*data)
        assert rnn.init_ == "orthogonal"
        for init in ("least_squares", "esn"):
            rnn.set_params(init=init)
            with pytest.raises(NoStart, match=r"a layer.* weights_from_data .*got (Fading|Decay)"):
                rnn.fit(*data)
    last = {**given, "max_iter": 2, "target": "last"}  # the only start that can be tried
    inputs = problem(0, (10,) * 12)[0]
    rnn = RNNRegressor(cell=Fading(6, "none"), **last).fit(inputs, np.arange(12.0))
    assert rnn.init_ == "orthogonal"


def test_which_cells_start_from_data():
    for cell in CELLS.values():
        made = RNNRegressor(cell=cell, initial_state="zeros", **{**FAST, "init": "orthogonal"})
        assert made.fit(*problem()).network_.cell.starts_from_data
    assert SimpleCell(2, "relu").starts_from_data
    assert not Decay(2).starts_from_data
    assert not StackedCell((SimpleCell(2), Decay(2))).starts_from_data
    assert not BidirectionalCell((Decay(2), Decay(2))).starts_from_data
    assert not DeepTransitionCell(4, (3,), "relu").starts_from_data


def test_a_start_is_not_inherited_by_other_steps():
    class Doubled(FeedforwardCell):
        def forward(self, params, X, state=None, lengths=None):
            return super().forward(params, 2 * X, state, lengths)

    with pytest.raises(TypeError, match="or define 'weights_from_data' as well"):
        RNNRegressor(cell=Doubled(6), **FAST).fit(*problem())

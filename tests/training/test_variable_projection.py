"""Variable projection: its gradient, the rows that it holds out, and what it gains."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

from reservoir import ESNRegressor, RNNClassifier, RNNRegressor, load, save
from reservoir.datasets import lorenz, mackey_glass, narma, weather_and_load
from reservoir.estimators.rnn import training_run
from reservoir.training import variable_projection
from reservoir.training.bptt import Network, forward
from reservoir.training.cells import DeepTransitionCell, GRUCell, LSTMCell, SimpleCell, StackedCell
from reservoir.training.gradient_control import GradientControl
from reservoir.training.starts import start
from reservoir.training.trainer import Data, Training, data_loss, refit_readout
from reservoir.training.variable_projection import (
    _parted,
    _Scaled,
    _Search,
    _segments,
    n_targets,
    train_from_data,
    train_variable_projection,
)

pytestmark = pytest.mark.both_engines

CELLS = {
    "simple": SimpleCell(6),
    "leaky": SimpleCell(6, "tanh", 0.3),
    "gru": GRUCell(5),
    "gru, reset within": GRUCell(5, reset_after=False),
    "lstm": LSTMCell(5),
    "stacked": StackedCell((SimpleCell(4), SimpleCell(3))),
}


def problem(lengths=(60, 45), seed=0, n_outputs=2, weighted=True):
    """Return sequences with weights, some of them 0."""
    rng = np.random.default_rng(seed)
    inputs = [rng.normal(size=(m, 2)) for m in lengths]
    targets = [np.tanh(X[:, :1] + rng.normal(size=(len(X), n_outputs))) for X in inputs]
    weights = [rng.choice([0.0, 0.5, 1.0], m) for m in lengths] if weighted else None
    return Data(inputs, targets, weights)


def drawn(network, seed=0):
    rng = np.random.default_rng(seed)
    return {name: 0.4 * rng.normal(size=shape) for name, shape in network.shapes().items()}


# ---------------------------------------------------------------------------- the objective


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
@pytest.mark.parametrize("include_input", [False, True])
def test_the_gradient_is_that_of_the_error_with_the_readout_solved_for(cell, include_input):
    network, data = Network(cell, 2, 2, include_input=include_input), problem()
    search = _Search(network, data, None, 1, 0.05, 1e-4, None)
    now, search.penalty = search._solved(drawn(network), search._runs(drawn(network)), None)
    variables = search._variables(now)
    two_biases = isinstance(cell, GRUCell) and cell.reset_after
    assert isinstance(variables, _Scaled) == (not (two_biases or isinstance(cell, StackedCell)))
    rng = np.random.default_rng(1)
    for direction in rng.normal(size=(3, variables.size)):
        direction /= np.linalg.norm(direction)
        at = 0.1 * rng.normal(size=variables.size)
        point = search._point(variables, at)
        step = 1e-5 * direction
        difference = (
            search._point(variables, at + step).value - search._point(variables, at - step).value
        )
        assert difference / 2e-5 == pytest.approx(point.gradient @ direction, rel=1e-4, abs=1e-8)
    # the readout is the ridge regression with this penalty, and the value its objective
    features, targets, weights = [], [], []
    for i in range(len(data)):
        batch, state = data.batch(np.array([i]))
        features.append(forward(network, point.params, batch, state)[1])
        targets.append(batch.targets)
        weights.append(batch.weights)
    H, Y, w = np.vstack(features), np.vstack(targets), np.concatenate(weights)
    ridge = Ridge(search.penalty).fit(H, Y, sample_weight=w)
    np.testing.assert_allclose(point.params["coef"], ridge.coef_, rtol=1e-6, atol=1e-9)
    squares = w @ (ridge.predict(H) - Y) ** 2
    whole = squares.sum() + search.penalty * (ridge.coef_**2).sum()
    assert point.value == pytest.approx(whole / w.sum() / 2, rel=1e-9)


# ---------------------------------------------------------------------------- held-out rows


@pytest.mark.parametrize("lengths", [(300,), (200, 150), (90, 80, 70, 60)], ids=str)
def test_a_few_sequences_are_cut_and_no_target_is_lost(lengths):
    network, data = Network(SimpleCell(4), 2, 2), problem(lengths)
    learned, judged = _parted(_segments(network, data), 0)
    assert len(learned) + len(judged) >= 10
    assert n_targets(learned) + n_targets(judged) == n_targets(data)
    assert 0.1 < n_targets(judged) / n_targets(data) < 0.3
    marked = [np.zeros(len(X)) for X in data.inputs]
    for part in (learned, judged):
        for X, Y, w in zip(part.inputs, part.targets, part.weights, strict=True):
            assert (w > 0).any()
            (i,) = (i for i, given in enumerate(data.inputs) if (given == X[0]).all(axis=1).any())
            first = int(np.flatnonzero((data.inputs[i] == X[0]).all(axis=1))[0])
            rows = slice(first, first + len(X))
            np.testing.assert_array_equal(X, data.inputs[i][rows])
            np.testing.assert_array_equal(Y, data.targets[i][rows])
            marked[i][rows] += w
            if first:  # rows that wash out the initial state have no target
                lead = min(100, len(data.inputs[i]) // 10)
                assert (w[:lead] == 0).all()
    for given, found in zip(data.weights, marked, strict=True):
        np.testing.assert_allclose(found, given)


def test_whole_sequences_are_held_out_if_there_are_ten():
    network, data = Network(SimpleCell(4), 2, 2), problem((30,) * 25)
    assert _segments(network, data) is data
    learned, judged = _parted(data, 0)
    assert (len(learned), len(judged)) == (20, 5)
    whole = {X.tobytes() for X in data.inputs}
    assert {X.tobytes() for part in (learned, judged) for X in part.inputs} == whole
    _, other = _parted(data, 1)
    assert {X.tobytes() for X in other.inputs} != {X.tobytes() for X in judged.inputs}


def test_with_few_targets_nothing_is_held_out():
    network, data = Network(SimpleCell(4), 2, 2), problem((24,), weighted=False)
    assert _parted(_segments(network, data), 0) == (data, None)
    done = train_variable_projection(network, drawn(network), data, max_iter=5)
    assert not done.validation_losses
    assert done.losses[done.best_epoch] == min(done.losses)


def test_validation_data_decide_and_are_not_learned_from():
    network, data = Network(SimpleCell(6), 2, 2), problem((200,))
    params, validation = drawn(network), problem((100,), seed=1)
    done = train_variable_projection(network, params, data, max_iter=8, validation=validation)
    assert done.validation_losses[0] <= data_loss(network, params, validation)
    assert done.validation_losses[done.best_epoch] == min(done.validation_losses)
    assert data_loss(network, done.params, validation) == pytest.approx(
        min(done.validation_losses), rel=1e-6
    )


def test_the_best_validation_loss_is_kept_although_the_training_loss_rises():
    # the given readout fits the training rows exactly, and does badly elsewhere
    network = Network(SimpleCell(6), 2, 2)
    data, validation = problem((14,), weighted=False), problem((100,), seed=1)
    params = drawn(network)
    features = forward(network, params, *data.batch(np.array([0])))[1]
    fitted = Ridge(1e-12).fit(features, np.vstack(data.targets))
    params |= {"coef": fitted.coef_, "intercept": fitted.intercept_}
    done = train_variable_projection(network, params, data, max_iter=8, validation=validation)
    kept = data_loss(network, done.params, validation)
    assert kept == pytest.approx(min(done.validation_losses), rel=1e-6)
    assert kept < 0.9 * data_loss(network, params, validation)
    assert data_loss(network, done.params, data) > data_loss(network, params, data)


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("seed", range(3))
def test_a_random_readout_is_replaced_even_if_no_iteration_is_better(seed):
    network, rng = Network(SimpleCell(6), 2, 2), np.random.default_rng(seed)
    noise = [rng.normal(size=(300, 2)), rng.normal(size=(300, 2))]
    data, params = Data(noise[:1], noise[1:]), drawn(network)
    done = train_variable_projection(network, params, data, max_iter=30, random_state=0)
    assert data_loss(network, done.params, data) < 1.15  # the variance of the targets is about 1
    assert data_loss(network, params, data) > 1.25


# ---------------------------------------------------------------------------- the result


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("lengths", [(300,), (40,) * 12, (26,)], ids=["one", "twelve", "short"])
def test_the_loss_never_rises_and_nothing_given_is_changed(lengths, dtype):
    network, data = Network(SimpleCell(6), 2, 2), problem(lengths, weighted=False)
    data = Data([X.astype(dtype) for X in data.inputs], data.targets)
    params = {name: array.astype(dtype) for name, array in drawn(network).items()}
    given = {name: array.copy() for name, array in params.items()}
    seen = []
    done = train_variable_projection(
        network, params, data, max_iter=6, report=lambda done: seen.append(done.n_epochs)
    )
    assert seen == list(range(done.n_epochs + 1))
    before = data_loss(network, params, data)
    assert data_loss(network, done.params, data) <= before * (1 + 1e-6)
    for name, array in params.items():
        np.testing.assert_array_equal(array, given[name])
        assert done.params[name].dtype == np.dtype(dtype)
    assert train_variable_projection(network, params, data, max_iter=0).losses == [before]


def series(name, seed):
    """Return standardised inputs and targets, of which the first 1000 rows are learned from."""
    if name == "narma":
        X, y = narma(1500, random_state=seed)
    elif name == "lorenz":
        flow = lorenz(1500, random_state=seed)
        X, y = flow[:, :1], flow[:, 2]
    elif name == "mackey-glass":
        z = mackey_glass(1584, random_state=seed)
        X, y = z[:-84], z[84:, 0]
    else:
        _, z, _ = weather_and_load(1501, random_state=seed)
        X, y = z[:-1, None], z[1:]
    X, y = np.reshape(X, (1500, -1)), np.ravel(y)
    return (X - X[:1000].mean(axis=0)) / X[:1000].std(axis=0), (y - y[:1000].mean()) / y.std()


def nrmse(rnn, X, y):
    rnn.fit(X[:1000], y[:1000])
    return np.sqrt(np.mean((rnn.predict(X[1000:]) - y[1000:]) ** 2)) / y[1000:].std()


@pytest.mark.filterwarnings("ignore:Training kept its start")  # load: the rest is noise
@pytest.mark.parametrize(
    "name, most, seeds",
    [
        pytest.param("narma", 0.5, range(3, 6), marks=pytest.mark.slow),
        pytest.param("mackey-glass", 0.5, range(8), marks=pytest.mark.slow),
        pytest.param("lorenz", 0.4, range(5), marks=pytest.mark.slow),
        pytest.param("load", 1.02, range(3), marks=pytest.mark.slow),
    ],
)
def test_training_gains_from_the_start(name, most, seeds):
    """Fifty epochs of Adam change these starts by less than 1 %."""
    ratios = []
    for seed in seeds:
        X, y = series(name, seed)
        begun = nrmse(RNNRegressor(32, max_iter=0, random_state=seed), X, y)
        rnn = RNNRegressor(32, random_state=seed)
        ratios.append(nrmse(rnn, X, y) / begun)
        assert rnn.solver_ == "variable_projection"
    assert np.median(ratios) < most


@pytest.mark.full_starts
@pytest.mark.slow
def test_noise_is_not_fitted():
    """A search to the end fits the noise; held-out rows stop it before."""
    ratios = []
    for seed in range(3):
        noise = np.random.default_rng(seed).normal(size=1001)
        z = np.sin(0.3 * np.arange(1001)) + 0.5 * noise
        X, Y = z[:-1, None], z[1:, None]
        network, data = Network(SimpleCell(32), 1, 1), Data([X[:400]], [Y[:400]])
        params = start(network, data.inputs, data.targets, random_state=seed).params
        held = train_variable_projection(network, params, data, max_iter=100)
        end = train_variable_projection(
            network, params, data, max_iter=100, hold_out=False, n_iter_no_change=100
        )
        test = Data([X], [Y], [(np.arange(1000) >= 400) * 1.0])
        losses = [data_loss(network, found, test) for found in (params, held.params, end.params)]
        ratios.append([losses[1] / losses[0], losses[2] / losses[0]])
    ratios = np.median(ratios, axis=0)
    assert ratios[0] < 1.02
    assert ratios[1] > 1.15


# ---------------------------------------------------------------------------- the estimators


def small(cls=RNNRegressor, **params):
    return cls(**{"n_units": 6, "init": "esn", "max_iter": 2, "random_state": 0, **params})


ROWS = np.random.default_rng(0).uniform(-1, 1, (60, 2))
VALUES = ROWS[:, 0] * ROWS[:, 1]


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize(
    "params",
    [
        {"batch_size": 16},
        {"truncation": 20},
        {"truncation": None},
        {"learning_rate_init": 0.01},
        {"learning_rate": "cosine"},
        {"clip_norm": None},
        {"alpha": 1e-3},
        {"l1": 1e-3},
        {"gradient_control": 0.1},
        {"gradient_control": GradientControl(weight=0.1)},
        {"output": "tanh"},
        {"loss": "mae"},
        {"init": "orthogonal"},
        {"init": "orthogonal", "cell": "scrn"},
    ],
    ids=str,
)
def test_auto_is_adam_where_steps_are_needed(params):
    assert small(**params).fit(ROWS, VALUES).solver_ == "adam"


def test_auto_is_variable_projection_elsewhere(tmp_path):
    esn = ESNRegressor(6, leak_rate=1.0, include_input=False, random_state=0)
    for params in (
        {"init": "auto"},
        {"init": "esn"},
        {"init": esn},
        {"cell": "gru"},
        {"early_stopping": True, "tol": 1e-3, "n_iter_no_change": 3},
        {"dtype": "float32", "include_input": True},
    ):
        rnn = small(**params).fit(ROWS, VALUES)
        assert rnn.solver_ == "variable_projection"
        assert len(rnn.validation_loss_curve_) == len(rnn.loss_curve_) == rnn.n_iter_ + 1
        assert rnn.best_loss_ == rnn.validation_loss_curve_[rnn.best_epoch_]
    save(rnn, tmp_path / "rnn")
    assert load(tmp_path / "rnn").solver_ == "variable_projection"
    assert "'auto', which is 'variable_projection'" in rnn._description()["Training"]
    # too few targets, one target per sequence, labels, rows one by one
    assert small().fit(ROWS[:24], VALUES[:24]).solver_ == "adam"
    pieces = [ROWS[i : i + 6] for i in range(0, 60, 2)]
    last = small(target="last").fit(pieces, np.arange(30.0) / 30)
    assert last.solver_ == "adam"
    assert small(RNNClassifier).fit(ROWS, VALUES > 0).solver_ == "adam"
    assert small().partial_fit(ROWS, VALUES).solver_ == "adam"
    # a fit, then rows one by one
    rnn = small().fit(ROWS, VALUES).partial_fit(ROWS, VALUES)
    assert rnn.solver_ == "variable_projection"


@pytest.mark.parametrize(
    "params, message",
    [
        (
            {"output": "tanh"},
            "needs loss='mse' and output='identity'; got loss='mse', output='tanh'",
        ),
        ({"alpha": 0.1}, "alpha=0.1 is not supported: solver='variable_projection'"),
        ({"truncation": 10}, "truncation=10 cannot be combined with solver='variable_projection'"),
    ],
)
def test_what_it_does_not_support(params, message):
    with pytest.raises(ValueError, match=message):
        small(solver="variable_projection", **params).fit(ROWS, 0.5 * VALUES)
    with pytest.raises(ValueError, match="needs all data at once"):
        small(solver="variable_projection").partial_fit(ROWS, VALUES)


def test_training_goes_on_from_a_start_without_the_held_out_rows(monkeypatch, global_random_seed):
    network, data = Network(SimpleCell(5), 2, 2), problem((150,), global_random_seed)
    params, seen = drawn(network), []

    def began(part):
        seen.append(part)
        return refit_readout(network, drawn(network, 1), part)

    def same(one, other):
        return all(np.array_equal(one.params[name], other.params[name]) for name in params)

    options = {"max_iter": 4, "n_iter_no_change": 20}
    today = train_variable_projection(network, params, data, **options)
    monkeypatch.setattr(variable_projection, "_AT_START", -1)
    assert same(train_from_data(network, params, data, began, **options), today)
    assert not seen
    # as if training had ended at its start: the same steps by hand
    never = {"_AT_START": -1, "_CLEAR": 0.0, "_DEARER": 0.0, "_UNSEEN": 0.0}
    always = {"_AT_START": 4, "_CLEAR": np.inf, "_DEARER": np.inf, "_UNSEEN": np.inf}
    for name, value in always.items():
        monkeypatch.setattr(variable_projection, name, value)
    found = train_from_data(network, params, data, began, **options)
    learned, held_out = seen[0], _parted(_segments(network, data), None)[1]
    assert len(learned) == 8
    first = train_variable_projection(
        network, began(learned), learned, validation=held_out, **options
    )
    solved = refit_readout(network, first.params, data)
    more = {"max_iter": -(-first.best_epoch // 4), "hold_out": False}
    assert same(found, train_variable_projection(network, solved, data, **more))
    assert found.validation_losses == first.validation_losses
    assert found.best_epoch == first.best_epoch
    # no clear gain, or a loss that is much larger than that of the start
    for name, value in never.items():
        monkeypatch.setattr(variable_projection, name, value)
        assert same(train_from_data(network, params, data, began, **options), today)
        monkeypatch.setattr(variable_projection, name, always[name])
    # nothing is held out of a few rows
    n_seen, few = len(seen), problem((20,), weighted=False)
    train_from_data(network, params, few, began, **options)
    assert len(seen) == n_seen


def test_the_repetition_holds_out_the_same_sequences(monkeypatch):
    network, data, splits = Network(SimpleCell(3), 2, 2), problem([9] * 25), []

    def spy(*arguments):
        splits.append(_parted(*arguments))
        return splits[-1]

    monkeypatch.setattr(variable_projection, "_parted", spy)
    monkeypatch.setattr(variable_projection, "_AT_START", 4)
    generator, params = np.random.default_rng(0), drawn(network)
    train_from_data(network, params, data, lambda _: params, max_iter=2, random_state=generator)
    for one, other in zip(*splits, strict=True):
        np.testing.assert_equal(one.inputs, other.inputs)


def test_training_goes_on_only_after_starts_from_data(monkeypatch):
    used = []

    def spy(*arguments, began, **options):
        used.append(began)
        return train_from_data(*arguments, began=began, **options)

    monkeypatch.setattr(training_run, "train_from_data", spy)
    for params in ({"init": "esn"}, {"cell": "scrn"}):
        small(**params).fit(ROWS, VALUES)
        assert used.pop()(Data([ROWS], [VALUES[:, None]])).keys() >= {"W", "coef"}
    esn = ESNRegressor(6, leak_rate=1.0, include_input=False, random_state=0)
    for params in ({"early_stopping": True}, {"init": esn}, {"solver": "lbfgs"}):
        small(**params).fit(ROWS, VALUES)
    warm = small(max_iter=0, warm_start=True).fit(ROWS, VALUES)
    used.clear()
    warm.set_params(max_iter=2).fit(ROWS, VALUES)
    assert not used


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cell", ["scrn", DeepTransitionCell(6, (5,))], ids=str)
def test_random_weights_are_tried_beside_starts_by_parts(cell, global_random_seed):
    given = {"cell": cell, "random_state": global_random_seed}
    rnn = small(**given, init="auto").fit(ROWS, VALUES)
    results = rnn.start_results_
    assert list(results["init"]) == ["least_squares", "orthogonal"]
    least = int(np.argmin(results["trial_loss"]))
    assert rnn.init_ == results["init"][least]
    assert results["kept"][least]
    assert rnn.solver_ == "variable_projection"
    for params in ({"init": "least_squares"}, {"max_iter": 0}, {"solver": "lbfgs"}):
        one = small(**{**given, "init": "auto", **params}).fit(ROWS, VALUES)
        assert list(one.start_results_["init"]) == ["least_squares"]


@pytest.mark.parametrize(
    "losses, held_out, max_iter, warned",
    [
        ([1.0, 0.5, 0.6], [2.0, 2.5, 2.1], 9, True),
        ([1.0, 0.5, 0.6], [2.0, 2.5, 2.1], 2, False),  # more iterations could gain something
        ([1.0, 0.95, 0.91], [2.0, 2.5, 2.1], 9, False),  # nothing was learned
        ([1.0, 0.5, 0.6], [2.0, 1.5, 2.1], 9, False),  # closed loops, not errors, made it return
        ([1.0, 0.5, 0.6], [], 9, False),
    ],
)
def test_a_start_that_is_kept_in_spite_of_learning_warns(losses, held_out, max_iter, warned):
    rnn, network = RNNRegressor(6, max_iter=max_iter), Network(SimpleCell(6), 1, 1)
    done = Training({}, losses, held_out)

    def warn(drawn=False):
        return training_run.warn_of_trouble(
            rnn, network, done, solver="variable_projection", drawn=drawn
        )

    if not warned:
        assert not warn()
        return
    with pytest.warns(ConvergenceWarning, match=r"kept its start: .* from 1 to 0\.5, .* rows, 2,"):
        assert warn()
    with pytest.warns(ConvergenceWarning, match="did not improve on its start"):
        assert warn(drawn=True)

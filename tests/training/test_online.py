"""Online learning: splits of the data, sequences, errors, and convergence."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from reservoir import RNNClassifier, RNNRegressor
from reservoir.model_selection import stack_sequences
from reservoir.training.bptt import Network, loss_and_gradient, make_batch, predict
from reservoir.training.cells import GRUCell, LSTMCell, SimpleCell
from reservoir.training.initializers import initialize
from reservoir.training.online import OnlineLearner
from reservoir.training.optimizers import sgd

pytestmark = pytest.mark.both_engines

METHODS = ("bptt", "rtrl", "least_squares")
CELLS = ("rnn", "leaky", "lstm", "gru")


def series(n=240, seed=0, n_outputs=1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    Y = X[:, :1] * 0.5 + np.vstack([[0], X[:-1, 1:]]) * np.arange(1, n_outputs + 1)
    return X, (Y[:, 0] if n_outputs == 1 else Y)


def make(**params):
    return RNNRegressor(
        **{
            "n_units": 6,
            "init": "orthogonal",
            "truncation": 20,
            "washout": 5,
            "learning_rate_init": 0.01,
            "random_state": 0,
            **params,
        }
    )


def in_parts(rnn, X, y, splits, **first):
    for rows in np.split(np.arange(len(X)), splits):
        rnn.partial_fit(X[rows], y[rows], **first)
    return rnn


def same_params(one, other, **tolerance):
    for name in one.params_:
        if tolerance:
            np.testing.assert_allclose(one.params_[name], other.params_[name], **tolerance)
        else:
            np.testing.assert_array_equal(one.params_[name], other.params_[name], err_msg=name)


# -------------------------------------------------------------------------- splits


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cell", ["rnn", "leaky"])
@pytest.mark.parametrize("splits", [[120], [5, 6, 100, 101], list(range(7, 240, 7))])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_rtrl_in_any_split_is_one_call(cell, splits, n_outputs):
    X, y = series(n_outputs=n_outputs)
    whole = make(cell=cell, online="rtrl").partial_fit(X, y)
    parts = in_parts(make(cell=cell, online="rtrl"), X, y, splits)
    same_params(parts, whole)
    np.testing.assert_array_equal(parts.state_, whole.state_)
    assert whole.n_iter_ == 1
    assert parts.n_iter_ == len(splits) + 1


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("online", ["bptt", "least_squares"])
@pytest.mark.parametrize("splits", [[20], [100, 140], list(range(20, 240, 20))])
def test_pieces_of_truncation_are_one_call(cell, online, splits):
    X, y = series()
    whole = make(cell=cell, online=online, online_window=70).partial_fit(X, y)
    parts = in_parts(make(cell=cell, online=online, online_window=70), X, y, splits)
    same_params(parts, whole)
    np.testing.assert_array_equal(parts.state_, whole.state_)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("online", METHODS)
def test_one_row_at_a_time(online, global_random_seed):
    X, y = series(200, global_random_seed)
    rnn = make(online=online, online_window=40, random_state=global_random_seed)
    in_parts(rnn, X, y, list(range(1, 200)))
    assert rnn.n_iter_ == 200
    assert len(rnn.loss_curve_) == 195  # none for rows of the washout
    assert np.mean(rnn.loss_curve_[-50:]) < 0.6 * np.mean(rnn.loss_curve_[:50])


def test_the_washout_may_span_chunks():
    X, y = series()
    for online in METHODS:
        wild = y.copy()
        wild[:40] = 1e3
        for target in (y, wild):
            rnn = make(washout=40, online=online)
            in_parts(rnn, X[:60], target[:60], [20, 40])
            if target is y:
                first = rnn
        same_params(rnn, first)
        assert first.washout_.tolist() == [40]
        assert len(first.loss_curve_) == 1
        assert not np.array_equal(
            first.params_["coef"], make(max_iter=0).fit(X, y).params_["coef"]
        )  # the last part was learned


@pytest.mark.parametrize("n", [0, 5, 30])
def test_bptt_is_a_step_down_the_gradient_of_the_piece(n):
    """By hand: state carried on, gradient cut at the piece, plain descent."""
    rng = np.random.default_rng(0)
    for cell in (SimpleCell(5), SimpleCell(5, leak_rate=0.4), LSTMCell(5), GRUCell(5)):
        network = Network(cell, 2, 1, include_input=True)
        gates = network.shapes()["W"][0] // 5
        params = initialize(network.shapes(), "glorot", n_gates=gates, random_state=0)
        X, Y = rng.normal(size=(60, 2)), rng.normal(size=(60, 1))
        learner = OnlineLearner(
            network, params, solver="sgd", learning_rate=0.1, truncation=30, clip_norm=None
        )
        learner.restart()
        learner.learn(X, Y, skip=n)
        by_hand, state, optimizer = params, None, sgd(0.1)
        memory = optimizer.init(params)
        for start in (0, 30):
            skip = max(n - start, 0)
            if skip >= 30:
                _, end = predict(network, by_hand, X[start : start + 30, None], state)
                state = end
                continue
            batch = make_batch([X[start : start + 30]], [Y[start : start + 30]], washout=skip)
            _, grads, end = loss_and_gradient(network, by_hand, batch, state)
            by_hand, memory = optimizer.update(by_hand, grads, memory)
            state = end
        for name in by_hand:
            np.testing.assert_allclose(learner.params[name], by_hand[name], atol=1e-13)


def test_rtrl_and_bptt_agree_while_weights_hardly_move():
    X, y = series(100)
    options = {"solver": "sgd", "clip_norm": None, "learning_rate_init": 1e-9, "washout": 0}
    start = make(**options, online="rtrl", max_iter=0).fit(X, y)
    moves = []
    for online in ("rtrl", "bptt"):
        rnn = make(**options, online=online, truncation=100).partial_fit(X, y)
        scale = 1 if online == "rtrl" else 100  # one step down a mean against a hundred steps
        moves.append({k: (rnn.params_[k] - start.params_[k]) * scale for k in rnn.params_})
    for name, move in moves[0].items():
        np.testing.assert_allclose(move, moves[1][name], rtol=1e-3, atol=1e-13)


# -------------------------------------------------------------------------- sequences


@pytest.mark.parametrize("online", METHODS)
class TestSequences:
    def data(self):
        parts = [series(n, seed=n) for n in (60, 100, 80)]
        return [X for X, _ in parts], [y for _, y in parts]

    @pytest.mark.fast_cases(1)
    def test_lists_tables_and_ids_are_the_same(self, online):
        Xs, ys = self.data()
        table, y, _ = stack_sequences(Xs, ys)
        whole = make(online=online).partial_fit(Xs, ys)
        items, tables = make(online=online), make(online=online)
        for X, y_i in zip(Xs, ys, strict=True):
            items.partial_fit([X], [y_i])
            tables.partial_fit(X, y_i, new_sequence=True)
        by_id = make(online=online, sequence_column=0).partial_fit(table, y)
        for other in (items, tables, by_id):
            same_params(other, whole)
            np.testing.assert_array_equal(other.state_, whole.state_)
        assert len(whole.loss_curve_) == 3
        glued = make(online=online).partial_fit(np.vstack(Xs), np.concatenate(ys))
        assert not np.allclose(glued.params_["coef"], whole.params_["coef"], atol=1e-9)

    @pytest.mark.fast_cases(2)
    def test_ids_may_continue_in_the_next_chunk(self, online):
        Xs, ys = self.data()
        table, y, _ = stack_sequences(Xs, ys)
        whole = make(online=online, sequence_column=0).partial_fit(table, y)
        parts = in_parts(make(online=online, sequence_column=0), table, y, [40, 80])
        same_params(parts, whole, rtol=1e-9, atol=1e-9)
        with pytest.raises(ValueError, match="occurs again after its sequence ended in an earlier"):
            parts.partial_fit(table[:60], y[:60])

    def test_a_new_sequence_starts_from_zeros_with_a_washout(self, online):
        Xs, ys = self.data()
        wild = ys[1].copy()
        wild[:5] = 1e3
        for target in (ys[1], wild):
            rnn = make(online=online).partial_fit(Xs[0], ys[0])
            rnn.partial_fit(Xs[1], target, new_sequence=True)
            if target is ys[1]:
                first = rnn
        same_params(rnn, first)
        _, end = predict(first.network_, first.params_, Xs[1][:, None])
        assert np.abs(end[0] - first.state_).max() < 0.3  # of weights that moved on the way


@pytest.mark.parametrize("online", ["bptt", "rtrl"])  # least squares: no length to make small
def test_the_state_is_kept_while_weights_stand_still(online):
    X, y = series()
    rnn = make(online=online, learning_rate_init=1e-12)
    rnn.partial_fit(X[:30], y[:30]).partial_fit(X[30:60], y[30:60])
    _, end = predict(rnn.network_, rnn.params_, X[:60, None])
    np.testing.assert_allclose(rnn.state_, end[0], atol=1e-8)


# -------------------------------------------------------------------------- after fit


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("online", METHODS)
@pytest.mark.parametrize("cell", CELLS)
def test_it_continues_after_fit(online, cell):
    X, y = series()
    rnn = make(cell=cell, online=online, init="esn", max_iter=2)
    if online == "rtrl" and cell in ("lstm", "gru"):
        rnn.fit(X[:120], y[:120])
        before = pickle.dumps(rnn)
        with pytest.raises(ValueError, match=r"online|SimpleCell"):
            rnn.partial_fit(X[120:], y[120:])
        assert pickle.dumps(rnn) == before
        return
    rnn.fit(X[:120], y[:120])
    weights, n = rnn.params_, len(rnn.loss_curve_)
    kept = {name: array.copy() for name, array in weights.items()}
    expected = np.mean((rnn.predict(X[120:]) - y[120:]) ** 2)
    rnn.set_params(learning_rate_init=1e-12).partial_fit(X[120:], y[120:])
    assert len(rnn.loss_curve_) == n + 1
    if online != "least_squares":
        assert rnn.loss_curve_[-1] == pytest.approx(expected, rel=1e-3)  # from where fit ended
    for name, array in weights.items():  # what was handed out is not written to
        np.testing.assert_array_equal(array, kept[name])
    assert rnn.fit(X[:120], y[:120]).n_iter_ == 2
    same_params(rnn, clone(rnn).fit(X[:120], y[:120]))


def test_fit_forgets_what_was_learned_online():
    X, y = series()
    rnn = make(online="rtrl", max_iter=1, washout=30)
    rnn.partial_fit(X[:100], y[:100]).fit(X, y)
    fresh = make(online="rtrl", max_iter=1, washout=30).fit(X, y)
    for _ in range(2):
        rnn.partial_fit(X[:80], y[:80])
        fresh.partial_fit(X[:80], y[:80])
        same_params(rnn, fresh)
    wild = np.append(np.full(30, 1e3), y[30:60])
    rnn.partial_fit(X[:60], wild, new_sequence=True)  # the washout is that of fit
    fresh.partial_fit(X[:60], y[:60], new_sequence=True)
    same_params(rnn, fresh)


def test_forecasts_continue_from_the_last_chunk():
    z = np.sin(0.2 * np.arange(500))[:, None]
    rnn = make(n_units=20, init="least_squares", learning_rate_init=1e-4, washout=30)
    in_parts(rnn, z[:399], z[1:400], [200, 300])
    np.testing.assert_allclose(rnn.forecast(5), z[400:405], atol=0.2)
    rnn.partial_fit(z[:50], z[1:51])
    with pytest.raises(ValueError, match=r"y\[-1, 0\].*X\[0, 0\]"):
        rnn.forecast(5)


def test_weights_from_torch_have_seen_nothing(torch):
    z = np.sin(0.2 * np.arange(300))[:, None]
    module = (
        RNNRegressor(6, init="glorot", max_iter=0, random_state=0).fit(z[:-1], z[1:]).to_torch()
    )
    assert isinstance(module, torch.nn.Module)
    rnn = RNNRegressor.from_torch(module).partial_fit(z[100:200, :], z[101:201, 0])
    assert rnn.forecast(3).shape == (3,)  # the first row follows no other


def test_copies_continue_alike():
    X, y = series(140)
    for online in METHODS:
        rnn = make(online=online).partial_fit(X[:70], y[:70])
        again = pickle.loads(pickle.dumps(rnn))
        same_params(again.partial_fit(X[70:], y[70:]), rnn.partial_fit(X[70:], y[70:]))


# -------------------------------------------------------------------------- it learns


# Without gated cells where there is no such gradient, or where their gates stand open.
LEARNING = [
    (online, cell, init)
    for online in METHODS
    for cell in CELLS
    for init in ("glorot", "least_squares")
    if cell in ("rnn", "leaky") or (online != "rtrl" and init == "glorot")
]


@pytest.mark.full_starts
@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("online, cell, init", LEARNING)
def test_it_learns(online, cell, init, global_random_seed):
    # a start that is fitted to the first 100 rows is a poor one for two seeds in five
    seed = global_random_seed if init == "glorot" else 0
    X, y = series(1500, seed)
    rate = 1e-4 if init == "least_squares" else 0.01
    options = {"learning_rate_init": rate, "truncation": 10, "random_state": seed}
    rnn = make(cell=cell, online=online, init=init, **options)
    in_parts(rnn, X[:1200], y[:1200], list(range(100, 1200, 100)))
    share = np.mean((rnn.predict(X[1200:]) - y[1200:]) ** 2) / y.var()
    assert share < (0.1 if init == "least_squares" else 0.75)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["sgd", "momentum", "adagrad", "rmsprop", "nadam"])
def test_every_solver_learns(solver, global_random_seed):
    X, y = series(1500, global_random_seed)
    rnn = make(
        solver=solver, online="rtrl", random_state=global_random_seed, learning_rate_init=0.02
    ).partial_fit(X, y)
    assert np.mean((rnn.predict(X) - y) ** 2) < 0.5 * y.var()


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("output", ["tanh", "logistic", "softmax"])
@pytest.mark.parametrize("online", METHODS)
def test_outputs(output, online, global_random_seed):
    X, y = series(600, global_random_seed)
    y = 1 / (1 + np.exp(-3 * y))
    y = np.column_stack([y, 1 - y]) if output == "softmax" else y
    rnn = make(
        output=output,
        online=online,
        init="glorot",
        truncation=5 if online == "bptt" else 20,  # 120 updates, of which it takes the most
        random_state=global_random_seed,
    ).partial_fit(X, y)
    rows = rnn.predict(X)
    assert np.isfinite(rows).all()
    assert np.mean((rows - y) ** 2) < y.var()
    with pytest.raises(ValueError, match=f"output='{output}' gives"):
        rnn.partial_fit(X, y + 2)


@pytest.mark.fast_cases("values")
@pytest.mark.parametrize("online", METHODS)
@pytest.mark.parametrize("rate", [1.0, 1e3, 1e30, 1e300])
def test_rates_that_are_too_high_leave_finite_weights(online, rate, global_random_seed):
    X, y = series(100, global_random_seed)
    options = {"learning_rate_init": rate, "clip_norm": None, "solver": "sgd"}
    rnn = make(activation="relu", online=online, random_state=global_random_seed, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rnn.partial_fit(X, y).partial_fit(X, y)
    assert {w.category for w in caught} <= {ConvergenceWarning}
    assert all("Lower learning_rate=" in str(w.message) for w in caught)
    if online == "least_squares":  # which has no rate
        assert not caught
    elif rate >= 1e3:  # a step overflowed, or losses are far above those of outputs of zero
        assert caught
    assert all(np.isfinite(array).all() for array in rnn.params_.values())
    assert np.isfinite(rnn.loss_curve_).all()
    assert np.isfinite(rnn.state_).all()


# -------------------------------------------------------------------------- refused


def test_what_cannot_be_done_online():
    X, y = series(60)
    with pytest.raises(ValueError, match="target='last' has one target per sequence"):
        make(target="last").partial_fit([X[:30], X[30:]], y[:2])
    for solver in ("lbfgs", "least_squares"):
        with pytest.raises(ValueError, match=f"solver='{solver}' needs all data at once"):
            make(solver=solver, truncation="auto").partial_fit(X, y)
    with pytest.raises(ValueError, match=r"online='bttp' is not known.*Did you mean 'bptt'"):
        make(online="bttp").partial_fit(X, y)
    for cell in ("lstm", "gru"):
        rnn = make(cell=cell, online="rtrl")
        with pytest.raises(ValueError, match=r"SimpleCell"):
            rnn.partial_fit(X, y)
        assert not hasattr(rnn, "params_")
    rnn = make().partial_fit(X, y)
    before = pickle.dumps(rnn)
    for X_, y_, message in (
        (X, np.column_stack([y, y]), "y has 2 outputs, but in earlier calls it had 1"),
        (X, y[:, None], r"y has 2 dimension\(s\)"),
        (X[:, :1], y, "X has 1 features, but RNNRegressor is expecting 2"),
        (X, np.where(y > 0, y, np.nan), "NaN"),
        (X, y[:-1], "inconsistent"),
    ):
        with pytest.raises(ValueError, match=message):
            rnn.partial_fit(X_, y_)
        assert pickle.dumps(rnn) == before


def test_chunks_of_one_row_and_early_stopping():
    """What is held out has no meaning online: every row is learned."""
    X, y = series(60)
    same_params(
        in_parts(make(early_stopping=True, washout=0), X, y, [1, 2]),
        in_parts(make(washout=0), X, y, [1, 2]),
    )
    with pytest.raises(ValueError, match=r"at least 2 rows with a target|at least 2"):
        make(init="least_squares", washout=0).partial_fit(X[:1], y[:1])


def test_labels_online():
    X, y = series(90)
    labels = np.where(y > 0, "up", "down")
    for online in METHODS:
        clf = RNNClassifier(6, online=online, init="glorot", random_state=0, truncation=20)
        whole = clone(clf).partial_fit(X, labels)
        parts = in_parts(clf, X, labels, [30, 60], classes=["up", "down"])
        if online == "rtrl":  # the washout is the first chunk's: 3 rows of 30, 9 of 90
            assert (clf.washout_[0], whole.washout_[0]) == (3, 9)
        assert np.isfinite(parts.predict_proba(X)).all()

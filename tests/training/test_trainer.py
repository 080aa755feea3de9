"""Training: the best iterate, divergence, objectives, batches, chunks, stopping, determinism."""

from inspect import signature

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from reservoir import RNNClassifier, RNNRegressor
from reservoir.training.bptt import Batch, Network, loss_and_gradient, predict
from reservoir.training.cells import GRUCell, LSTMCell, SimpleCell
from reservoir.training.gradient_control import GradientControl
from reservoir.training.hessian_free import train_hessian_free
from reservoir.training.initializers import initialize
from reservoir.training.loop_engines import using
from reservoir.training.optimizers import OPTIMIZERS, adam, get_optimizer, sgd
from reservoir.training.regularizers import penalty
from reservoir.training.schedules import SCHEDULES
from reservoir.training.solvers import train_lbfgs, train_least_squares
from reservoir.training.trainer import Data, data_loss, refit_readout, train

pytestmark = pytest.mark.both_engines

CELLS = {
    "rnn": SimpleCell(6),
    "leaky": SimpleCell(6, leak_rate=0.4),
    "lstm": LSTMCell(6),
    "gru": GRUCell(6),
    "gru, reset within": GRUCell(6, reset_after=False),
}


def series(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, X[:, 0] * 0.5 + np.append(0, X[:-1, 1])


def make(**params):
    return RNNRegressor(**{"n_units": 6, "init": "glorot", "random_state": 0, **params})


def problem(cell, lengths=(40, 25, 33, 40), seed=0, **options):
    rng = np.random.default_rng(seed)
    Xs = [rng.uniform(-1, 1, (n, 2)) for n in lengths]
    Ys = [np.cumsum(X[:, :1], axis=0) / 3 for X in Xs]
    network = Network(cell, 2, 1)
    gates = network.shapes()["W"][0] // cell.n_units
    params = initialize(network.shapes(), "glorot", n_gates=gates, random_state=seed)
    return network, params, Data(Xs, Ys, **options)


def by_hand(network, params, data):
    """The mean loss, sequence by sequence."""
    squares = []
    for i, (X, Y) in enumerate(zip(data.inputs, data.targets, strict=True)):
        start = None if data.starts is None else data.starts[i : i + 1]
        rows = predict(network, params, X[:, None], start)[0][:, 0]
        squares.append(((rows[-1:] - Y) if data.last else (rows - Y)) ** 2)
    weights = None if data.weights is None else np.concatenate(data.weights)
    return np.average(np.concatenate(squares).mean(axis=1), weights=weights)


def finite(params):
    return all(np.isfinite(array).all() for array in params.values())


# -------------------------------------------------------------------------- the best iterate


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cell", ["rnn", "leaky", "lstm", "gru"])
@pytest.mark.parametrize("rate", [1e-6, 1e-2, 1.0, 1e3])
@pytest.mark.parametrize("init", ["least_squares", "spectral"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_training_never_returns_a_worse_network(cell, rate, init):
    for seed in range(2):
        X, y = series(120, seed)
        solver = list(OPTIMIZERS)[(seed + len(cell)) % len(OPTIMIZERS)]
        rnn = make(
            cell=cell,
            init=init,
            learning_rate_init=rate,
            solver=solver,
            clip_norm=None if seed else 1.0,
            max_iter=4,
            random_state=seed,
        ).fit(X, y)
        start = clone(rnn).set_params(max_iter=0).fit(X, y)
        assert rnn.loss_curve_[0] == start.best_loss_
        assert rnn.best_loss_ <= start.best_loss_
        assert rnn.best_loss_ == np.nanmin(rnn.loss_curve_) == rnn.loss_curve_[rnn.best_epoch_]
        assert len(rnn.loss_curve_) == rnn.n_iter_ + 1
        assert finite(rnn.params_)
        errors = (rnn.predict(X, initial_state="zeros") - y)[rnn.washout_[0] :]
        np.testing.assert_allclose(rnn.best_loss_, np.mean(errors**2), rtol=1e-9)


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("solver", sorted(OPTIMIZERS))
def test_every_solver_improves(solver, global_random_seed):
    X, y = series(seed=global_random_seed)
    rate = {"sgd": 0.1, "momentum": 0.02, "nesterov": 0.02, "adadelta": 1.0}.get(solver, 0.01)
    options = {
        "learning_rate_init": rate,
        "refit_readout": False,
        "random_state": global_random_seed,
    }
    rnn = make(solver=solver, max_iter=20, **options).fit(X, y)
    assert rnn.best_loss_ < 0.7 * rnn.loss_curve_[0]
    assert rnn.best_epoch_ > 10


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("schedule", sorted(SCHEDULES))
def test_every_schedule_improves(schedule):
    X, y = series()
    rnn = make(learning_rate=schedule, learning_rate_init=0.02, max_iter=10).fit(X, y)
    assert rnn.best_loss_ < 0.7 * rnn.loss_curve_[0]
    constant = make(learning_rate_init=0.02, max_iter=10).fit(X, y)
    assert (rnn.loss_curve_ == constant.loss_curve_) == (schedule == "constant")


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cell", ["rnn", "leaky", "lstm", "gru"])
def test_lbfgs(cell):
    X, y = series()
    rnn = make(cell=cell, solver="lbfgs", max_iter=25, refit_readout=False).fit(X, y)
    losses = rnn.loss_curve_
    assert losses == sorted(losses, reverse=True)
    assert rnn.n_iter_ <= 25
    assert rnn.best_loss_ < 0.2 * losses[0]
    single = make(cell=cell, solver="lbfgs", max_iter=5, dtype="float32").fit(X, y)
    assert single.best_loss_ < single.loss_curve_[0]


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cell", ["rnn", "leaky", "lstm", "gru"])
@pytest.mark.parametrize("output", ["identity", "tanh", "logistic"])
def test_least_squares(cell, output):
    X, y = series()
    y = 1 / (1 + np.exp(-3 * y)) if output == "logistic" else y / 2
    options = {"cell": cell, "output": output, "loss": "mse", "solver": "least_squares"}
    rnn = make(**options, init="esn", max_iter=8).fit(X, y)
    assert rnn.n_iter_ <= 8
    assert rnn.best_loss_ < 0.8 * rnn.loss_curve_[0]
    for name in ("alpha", "l1", "gradient_control"):
        with pytest.raises(ValueError, match=f"{name}=0.1.*no penalties"):
            make(**options, **{name: 0.1}).fit(X, y)
    with pytest.raises(ValueError, match="needs loss='mse'"):
        make(**{**options, "loss": "mae"}).fit(X, y)
    with pytest.raises(ValueError, match="needs loss='mse'"):
        RNNClassifier(6, solver="least_squares").fit(X, X[:, 0] > 0)


@pytest.mark.parametrize("solver", ["adam", "lbfgs", "least_squares", "hessian_free"])
def test_no_epochs_leave_the_start(solver):
    X, y = series()
    rnn = make(solver=solver, max_iter=0, early_stopping=True).fit(X, y)
    assert (rnn.n_iter_, rnn.best_epoch_, len(rnn.loss_curve_)) == (0, 0, 1)
    network = rnn.network_
    assert finite(rnn.params_)
    assert {k: v.shape for k, v in rnn.params_.items()} == network.shapes()


# -------------------------------------------------------------------------- divergence


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("solver", ["sgd", "momentum", "adam", "rmsprop"])
@pytest.mark.parametrize("activation", ["leaky_relu", "identity"])  # with relu all units may die
@pytest.mark.parametrize("truncation", ["auto", None])  # None: states overflow, no gradient does
def test_a_rate_that_is_too_high_ends_with_the_best_weights(
    solver, activation, truncation, global_random_seed
):
    X, y = series(seed=global_random_seed)
    rnn = make(
        solver=solver,
        activation=activation,
        learning_rate_init=1e20,
        truncation=truncation,
        clip_norm=None,
        init="esn",
        random_state=global_random_seed,
    )
    with pytest.warns(ConvergenceWarning, match=r"diverged: in epoch \d+ .* Lower") as caught:
        rnn.fit(X, y)
    assert caught[0].filename == __file__
    assert f"Kept the weights of epoch {rnn.best_epoch_} (" in str(caught[0].message)
    assert "learning_rate_init=1e+20" in str(caught[0].message)
    assert finite(rnn.params_)
    assert rnn.best_loss_ == np.nanmin(rnn.loss_curve_) <= rnn.loss_curve_[0]
    assert np.isfinite(rnn.predict(X)).all()


def test_a_nan_never_reaches_the_weights():
    class Broken(SimpleCell):
        calls = 0

        def backward(self, *args, **kwargs):
            grads, *rest = super().backward(*args, **kwargs)
            Broken.calls += 1
            if Broken.calls == 7:
                grads["W"] = grads["W"] * np.nan
            return grads, *rest

    network, params, data = problem(Broken(6))
    done = train(network, params, data, adam(0.01), max_iter=10, truncation=10)
    assert "in epoch 2" in done.trouble
    assert finite(done.params)
    assert done.n_epochs == 1
    assert np.isfinite(done.losses).all()


def test_a_random_start_that_does_not_improve_is_named():
    X, y = series()
    with pytest.warns(
        ConvergenceWarning, match=r"did not improve on its start in \d+ epochs.*lbfgs"
    ):
        make(learning_rate_init=3.0, max_iter=2, refit_readout=False).fit(X, y)


# -------------------------------------------------------------------------- the objective


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_of_a_batch_is_that_of_its_sequences(cell, last, weighted):
    network, params, data = problem(cell)
    rng = np.random.default_rng(1)
    targets = [Y[-1] for Y in data.targets] if last else data.targets
    weights = [rng.uniform(0, 2, 1 if last else len(X)) for X in data.inputs] if weighted else None
    starts = rng.normal(size=(4, cell.state_size)) / 3
    data = Data(data.inputs, targets, weights, starts, last)
    expected = by_hand(network, params, data)
    for size in (1, 2, 3, 32):
        np.testing.assert_allclose(data_loss(network, params, data, size), expected, rtol=1e-12)
    done = train(network, params, data, adam(1e-3), max_iter=1, batch_size=2)
    np.testing.assert_allclose(done.losses[0], expected, rtol=1e-12)
    np.testing.assert_allclose(done.losses[1], by_hand(network, done.params, data), rtol=1e-12)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("solver", ["adam", "lbfgs", "hessian_free"])
def test_penalties_are_part_of_the_loss(solver):
    X, y = series()
    options = {"max_iter": 20, "solver": solver, "learning_rate_init": 0.02, "washout": 0}
    penalised = make(alpha=0.05, l1=0.01, **options).fit(X, y)
    plain = make(**options).fit(X, y)
    for rnn, l1, l2 in ((penalised, 0.01, 0.05), (plain, 0.0, 0.0)):
        squares = np.mean((rnn.predict(X, initial_state="zeros") - y) ** 2)
        of_weights = penalty(rnn.params_, l1=l1, l2=l2)[0]
        np.testing.assert_allclose(rnn.best_loss_, squares + of_weights, rtol=1e-9)
    sizes = [
        sum(np.abs(rnn.params_[name]).sum() for name in ("W", "W_in", "coef"))
        for rnn in (penalised, plain)
    ]
    assert sizes[0] < 0.8 * sizes[1]


def test_refitting_the_readout_is_a_regression():
    network, params, data = problem(CELLS["gru"], lengths=(200, 150))
    solved = refit_readout(network, params, data, tau=0.0)
    for name in ("W", "W_in", "bias"):
        assert solved[name] is params[name]
    H = np.concatenate(
        [network.cell.forward(params, X[:, None]).states[1:, 0] for X in data.inputs]
    )
    A = np.column_stack([H, np.ones(len(H))])
    y = np.concatenate(data.targets)
    best = np.mean((A @ np.linalg.lstsq(A, y, rcond=None)[0] - y) ** 2)
    assert best <= data_loss(network, solved, data) <= 1.01 * best
    assert data_loss(network, solved, data) < data_loss(network, params, data)
    heavy = [np.append(np.zeros(len(X) - 50), np.ones(50)) for X in data.inputs]
    weighed = Data(data.inputs, data.targets, heavy)
    tail = refit_readout(network, params, weighed)
    assert data_loss(network, tail, weighed) < data_loss(network, solved, weighed)


def test_refitting_after_a_long_washout():
    """Losses are measured in parts of 2048 steps; the first of them may have no target."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (4300, 1))
    weights = [np.append(np.zeros(4200), np.ones(100))]
    network = Network(SimpleCell(4), 1, 1)
    params = initialize(network.shapes(), "glorot", random_state=0)
    data = Data([X], [np.sin(X)], weights)
    solved = refit_readout(network, params, data)
    assert data_loss(network, solved, data) < 0.3 * data_loss(network, params, data)
    assert train(network, params, data, adam(1e-3), max_iter=1, refit=True).losses[1] < 0.05


@pytest.mark.slow
def test_gradient_control_pulls_singular_values_to_one(global_random_seed):
    def distances(control, seed):
        """Mean squared distances from 1: of singular values, and of their root mean squares."""
        X, y = series(300, seed)
        rnn = make(
            gradient_control=control, max_iter=30, learning_rate_init=0.01, random_state=seed
        ).fit(X, y)
        slopes = 1 - rnn.states(X) ** 2
        values = np.array(
            [np.linalg.svd(d[:, None] * rnn.params_["W"], compute_uv=False) for d in slopes]
        )
        norms = np.sqrt(np.mean(values**2, axis=1))
        return np.mean((values - 1) ** 2), np.mean((norms - 1) ** 2)

    ratios = []
    for seed in range(global_random_seed, global_random_seed + 5):
        free = distances(0.0, seed)
        all_at_one = distances(1.0, seed)
        rms_at_one = distances(GradientControl(weight=1.0, kind="rms"), seed)
        ratios.append([all_at_one[0] / free[0], rms_at_one[1] / free[1]])
    assert (np.median(ratios, axis=0) < 0.6).all()
    X, y = series(300, global_random_seed)
    by_lbfgs = make(
        random_state=global_random_seed, gradient_control=0.1, solver="lbfgs", max_iter=5
    ).fit(X, y)
    assert by_lbfgs.best_loss_ < by_lbfgs.loss_curve_[0]
    for cell in ("lstm", "gru"):
        with pytest.raises(ValueError, match="gradient_control=0"):
            make(cell=cell, gradient_control=1.0).fit(X, y)


# -------------------------------------------------------------------------- chunks and batches


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("cell", ["rnn", "leaky", "lstm", "gru"])
def test_truncation_beyond_the_end_has_no_effect(cell):
    Xs, ys = zip(*[series(n, n) for n in (40, 63, 31)], strict=True)
    whole = make(cell=cell, truncation=None, max_iter=3).fit(list(Xs), list(ys))
    for steps in (63, 64, 10_000):
        rnn = make(cell=cell, truncation=steps, max_iter=3).fit(list(Xs), list(ys))
        assert rnn.loss_curve_ == whole.loss_curve_
    cut = make(cell=cell, truncation=20, max_iter=3).fit(list(Xs), list(ys))
    assert cut.loss_curve_[1:] != whole.loss_curve_[1:]


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_an_epoch_of_chunks_by_hand(cell):
    network, params, data = problem(cell)
    done = train(network, params, data, sgd(0.05), max_iter=1, truncation=15, clip_norm=None)
    batch, state = data.batch(np.arange(4))
    optimizer = sgd(0.05)
    memory, weights = optimizer.init(params), params
    for chunk in batch.chunks(15):
        assert isinstance(chunk, Batch)
        _, grads, state = loss_and_gradient(network, weights, chunk, state)
        weights, memory = optimizer.update(weights, grads, memory)
    assert done.best_epoch == 1
    for name, array in weights.items():
        np.testing.assert_allclose(done.params[name], array, atol=1e-13)


def test_clipping():
    network, params, data = problem(CELLS["rnn"])
    moved = []
    for clip in (None, 1e3, 1e-3):
        done = train(network, params, data, sgd(0.1), max_iter=1, clip_norm=clip)
        moved.append(np.concatenate([(done.params[k] - params[k]).ravel() for k in params]))
    np.testing.assert_array_equal(moved[0], moved[1])
    np.testing.assert_allclose(np.linalg.norm(moved[2]), 1e-4, rtol=1e-6)
    np.testing.assert_allclose(
        moved[2] / np.linalg.norm(moved[2]), moved[0] / np.linalg.norm(moved[0])
    )


def test_mini_batches_see_every_sequence_once_an_epoch():
    network, params, data = problem(CELLS["gru"], lengths=tuple(range(5, 18)))
    for size in (1, 4, 13):
        seen = []
        rng = np.random.default_rng(0)
        for _ in range(2):
            groups = data.groups(size, rng)
            assert max(map(len, groups)) <= size
            seen.append(np.concatenate(groups))
            assert sorted(seen[-1]) == list(range(13))
        assert size == 13 or not np.array_equal(*seen)
        done = train(network, params, data, adam(0.01), max_iter=5, batch_size=size)
        assert done.losses[-1] < done.losses[0]


# -------------------------------------------------------------------------- stopping


class TestEarlyStopping:
    def test_the_tail_of_a_single_series_is_held_out(self):
        X, y = series()
        rnn = make(early_stopping=True, max_iter=8, validation_fraction=0.25).fit(X, y)
        wild = y.copy()
        wild[150:] += 1  # held out: seen by the stop alone
        other = make(early_stopping=True, max_iter=8, validation_fraction=0.25).fit(X, wild)
        assert other.loss_curve_[:3] == rnn.loss_curve_[:3]
        assert other.validation_loss_curve_[0] != rnn.validation_loss_curve_[0]
        assert len(rnn.validation_loss_curve_) == rnn.n_iter_ + 1
        assert rnn.best_loss_ == min(rnn.validation_loss_curve_)
        assert rnn.best_epoch_ == np.argmin(rnn.validation_loss_curve_)
        errors = (rnn.predict(X, initial_state="zeros") - y)[150:]
        np.testing.assert_allclose(rnn.best_loss_, np.mean(errors**2))  # in its place in the series
        rnn.set_params(early_stopping=False).fit(X, y)
        assert not hasattr(rnn, "validation_loss_curve_")

    def test_whole_sequences_are_held_out(self):
        Xs, ys = zip(*[series(40, seed) for seed in range(10)], strict=True)
        rnn = make(early_stopping=True, max_iter=4, validation_fraction=0.2, washout=5)
        rnn.fit(list(Xs), list(ys))
        errors = np.array(rnn.predict(list(Xs))) - np.array(ys)
        losses = np.mean(errors[:, 5:] ** 2, axis=1)
        pairs = (losses[:, None] + losses) / 2
        pairs[np.diag_indices(10)] = np.inf
        assert np.isclose(pairs, rnn.best_loss_, rtol=1e-9).sum() == 2  # i, j and j, i

    def test_it_stops(self):
        X, y = series()
        rng = np.random.default_rng(0)
        noise = rng.normal(size=len(y))
        rnn = make(early_stopping=True, max_iter=500, n_iter_no_change=5, learning_rate_init=0.02)
        rnn.fit(X, noise)
        assert rnn.n_iter_ < 200
        assert rnn.best_epoch_ <= rnn.n_iter_

    def test_without_validation_it_stops_where_nothing_improves(self):
        X, y = series()
        rnn = make(max_iter=500, tol=0.5, n_iter_no_change=3).fit(X, y)
        assert rnn.n_iter_ < 100
        patient = make(max_iter=40, tol=0.0, n_iter_no_change=40).fit(X, y)
        assert patient.n_iter_ == 40

    @pytest.mark.parametrize("scale", [1e-3, 1e3])
    def test_the_tolerance_is_relative(self, scale):
        """Scaled targets: the same path, for steps that scale with the gradient."""
        network, params, data = problem(CELLS["rnn"])
        scaled = Data(data.inputs, [scale * Y for Y in data.targets])
        params = {**params, "intercept": params["intercept"] * 0}
        other = {**params, "coef": params["coef"] * scale}
        counts = []
        for start, given in ((params, data), (other, scaled)):
            done = train(
                network, start, given, adam(1e-9), max_iter=50, tol=1e-3, n_iter_no_change=4
            )
            counts.append(done.n_epochs)
        assert counts[0] == counts[1] < 50

    def test_what_cannot_be_held_out(self):
        X, y = series(60)
        weights = np.append(np.ones(50), np.zeros(10))
        with pytest.raises(ValueError, match="No rows to validate on"):
            make(early_stopping=True).fit(X, y, sample_weight=weights)
        with pytest.raises(ValueError, match="No rows to fit"):
            make(early_stopping=True, validation_fraction=0.2).fit(X, y, sample_weight=1 - weights)
        Xs, ys = [X[:30], X[30:]], [y[:30], y[30:]]
        for silent in (0, 1):
            given = [np.ones(30), np.ones(30)]
            given[silent] *= 0
            with pytest.raises(ValueError, match=r"No rows to (fit|validate on)"):
                make(early_stopping=True).fit(Xs, ys, sample_weight=given)
        with pytest.raises(
            ValueError, match=r"validation_fraction=0\.9 leaves none of 2 sequences"
        ):
            make(early_stopping=True, validation_fraction=0.9).fit(Xs, ys)


# -------------------------------------------------------------------------- reports, determinism


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("solver", ["adam", "lbfgs", "hessian_free"])
def test_verbose_reports_a_line_per_epoch(solver, caplog):
    X, y = series()
    rnn = make(verbose=1, max_iter=4, solver=solver, early_stopping=True).fit(X, y)
    lines = [record.message for record in caplog.records if record.name == "reservoir"]
    assert len(lines) == rnn.n_iter_ + 1  # the start, then each epoch
    assert lines[0].startswith("Epoch 0 of 4: loss ")
    assert "validation" in lines[0]
    caplog.clear()
    make(max_iter=4, solver=solver).fit(X, y)
    assert not caplog.records


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("solver", ["adam", "lbfgs", "least_squares", "hessian_free"])
@pytest.mark.parametrize("cell", ["rnn", "leaky", "lstm", "gru"])
def test_the_same_seed_gives_the_same_bits(solver, cell):
    X, y = series()
    Xs, ys = [X[:70], X[70:110], X[110:]], [y[:70], y[70:110], y[110:]]
    params = {"cell": cell, "solver": solver, "max_iter": 3, "batch_size": 2}
    one, two = (make(**params).fit(Xs, ys) for _ in range(2))
    other = make(**params, random_state=1).fit(Xs, ys)
    for name, array in one.params_.items():
        np.testing.assert_array_equal(two.params_[name], array)
    assert not np.array_equal(other.params_["W"], one.params_["W"])
    assert one.loss_curve_ == two.loss_curve_


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_both_engines_train_alike(cell):
    pytest.importorskip("numba")
    network, params, data = problem(cell)
    ends = []
    for engine in ("numpy", "numba"):
        with using(engine):
            done = train(network, params, data, adam(0.01), max_iter=2, truncation=15, refit=True)
        ends.append(done)
    np.testing.assert_allclose(ends[0].losses, ends[1].losses, rtol=1e-7)


def test_models_of_the_other_engine_predict_without_it(monkeypatch):
    X, y = series()
    rnn = make(max_iter=1).fit(X, y)
    expected = rnn.predict(X)
    rnn._model.engine = "numba"  # as behind a long training
    monkeypatch.setattr("reservoir._kernels.load", lambda: False)
    monkeypatch.setattr("reservoir._kernels.installed", lambda: False)
    np.testing.assert_allclose(rnn.predict(X), expected, atol=1e-12)


def test_arguments_are_not_written_to():
    for cell in CELLS.values():
        network, params, data = problem(cell)
        before = {name: array.copy() for name, array in params.items()}
        inputs = [X.copy() for X in data.inputs]
        train(network, params, data, get_optimizer("nadam"), max_iter=2, refit=True)
        train_lbfgs(network, params, data, max_iter=2)
        for name, array in params.items():
            np.testing.assert_array_equal(array, before[name])
        for X, kept in zip(data.inputs, inputs, strict=True):
            np.testing.assert_array_equal(X, kept)
    clf = RNNClassifier(4, max_iter=1, random_state=0)
    X, y = series()
    before = X.copy()
    clf.fit(X, y > 0).partial_fit(X, y > 0)
    np.testing.assert_array_equal(X, before)


def test_ways_to_train_share_the_settings_that_they_have_in_common():
    ways = (train, train_lbfgs, train_least_squares, train_hessian_free)
    settings = [
        {name: one.default for name, one in signature(way).parameters.items() if one.kind.value > 1}
        for way in ways
    ]
    everything = settings[0]
    for found in settings[1:]:
        shared = [name for name in found if name in everything]
        assert len(shared) > 5
        assert shared == [name for name in everything if name in found]  # in one order
        assert {name: found[name] for name in shared} == {name: everything[name] for name in shared}

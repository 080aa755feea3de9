"""Registered toys: a cell, a cell made of cells, a cell without kernels, an activation."""

import io
from contextlib import contextmanager

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from helpers.gradient_checks import check, draw, ragged
from helpers.toys.decaying_cell import Decay
from helpers.toys.smoothstep import SMOOTHSTEP
from reservoir import ESNRegressor, RNNClassifier, RNNRegressor, _kernels, load, save
from reservoir.activations import ACTIVATIONS, Activation
from reservoir.datasets import mackey_glass
from reservoir.training.bptt import Network, loss_and_gradient, make_batch
from reservoir.training.cells import (
    CELLS,
    GRUCell,
    LSTMCell,
    SimpleCell,
    StackedCell,
    curvature,
    saved,
    slope,
)
from reservoir.training.cells.lstm import lstm_forward
from reservoir.training.least_squares import ls_fit
from reservoir.training.loop_engines import TWINS, compiled_as, loop_for, using
from reservoir.training.losses import LOSSES, Loss
from reservoir.training.online import LEARNERS, OnlineLearner
from reservoir.training.online._learner import Learner
from reservoir.training.rtrl import rtrl_gradient

pytestmark = pytest.mark.both_engines

SERIES = mackey_glass(300, random_state=0)
X, Y = SERIES[:200], SERIES[1:201]
FAST = {"n_units": 6, "max_iter": 8, "learning_rate_init": 0.01, "random_state": 0}
RANDOM = {**FAST, "init": "orthogonal"}


@contextmanager
def registered(table, name, value):
    table[name] = value
    try:
        yield
    finally:
        del table[name]


class Unmarked(StackedCell):
    """Nobody has called it `saved`."""


def cells():
    return {
        "stack": StackedCell((GRUCell(3), LSTMCell(6))),
        "unmarked stack": Unmarked((LSTMCell(2), SimpleCell(6, leak_rate=0.5))),
        "toy": Decay(6),
    }


# ---------------------------------------------------------------------------- a name in CELLS


def test_a_registered_cell_is_the_cell_that_trains():
    network = Network(Decay(6), 3, 2)
    check(network, ragged(network, 0), draw(network, 1))
    with registered(CELLS, "toy", Decay):
        rnn = RNNRegressor(cell="toy", **FAST).fit(X, Y)
        assert type(rnn.network_.cell) is Decay
        assert set(rnn.params_) == {"W_in", "decay", "coef", "intercept"}
        assert rnn.best_loss_ < 0.5 * rnn.loss_curve_[0]
        for params, message in (
            (
                {"activation": "relu"},
                "activation='relu' is used only by cell='rnn', 'leaky', .*'toy'",
            ),
            ({"gradient_control": 0.1}, "Gradient control needs .*got Decay"),
            ({"init": "least_squares"}, "got Decay. Use an initializer"),
            ({"solver": "least_squares"}, "Least squares needs .*got Decay"),
        ):
            with pytest.raises(ValueError, match=message):
                RNNRegressor(cell="toy", **{**FAST, **params}).fit(X, Y)
    with pytest.raises(ValueError, match="cell='toy' is not known"):
        RNNRegressor(cell="toy", **FAST).fit(X, Y)


def test_what_a_name_makes_is_looked_at():
    class Doubled(SimpleCell):
        def forward(self, params, X, state=None, lengths=None):
            return super().forward(params, 2 * X, state, lengths)

    for made, kind, message in (
        (lambda n: "a cell", TypeError, "creates 'a cell', which is not a cell"),
        (
            lambda n: LSTMCell(n + 1),
            ValueError,
            "cell has n_units=7, but the estimator has n_units=6",
        ),
        (Doubled, TypeError, "cell=Doubled is a SimpleCell that overrides 'forward'"),
    ):
        with registered(CELLS, "toy", made), pytest.raises(kind, match=message):
            RNNRegressor(cell="toy", **FAST).fit(X, Y)
    with pytest.raises(TypeError, match=r"Derive it from reservoir\.training\.cells\.Cell"):
        RNNRegressor(cell=Doubled(6), **FAST).fit(X, Y)


def test_a_tangent_is_not_inherited_by_other_steps():
    class Halved(GRUCell):
        def forward(self, params, X, state=None, lengths=None):
            return super().forward(params, 0.5 * X, state, lengths)

        def backward(self, params, trace, dH, **options):
            return super().backward(params, trace, dH, **options)

        def layer(self):
            return None

        def open_gates(self, params):
            return params

        def torch_layer(self):
            raise ValueError

    with pytest.raises(TypeError, match="or define 'tangent' as well"):
        RNNRegressor(cell=Halved(6), solver="hessian_free", **FAST).fit(X, Y)


def test_a_name_for_a_known_cell():
    with registered(CELLS, "half", lambda n: SimpleCell(n, leak_rate=0.5)):
        ours = RNNRegressor(cell="half", init="esn", **FAST).fit(X, Y)
    theirs = RNNRegressor(cell="leaky", leak_rate=0.5, init="esn", **FAST).fit(X, Y)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


# ---------------------------------------------------------------------------- cells as objects


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cell", cells())
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_custom_cells_do_all_that_a_network_does(cell, dtype):
    rnn = RNNRegressor(cell=cells()[cell], dtype=dtype, **RANDOM).fit(X, Y)
    assert rnn.best_loss_ < 0.8 * rnn.loss_curve_[0]
    assert rnn.predict(X).dtype == dtype
    assert rnn.states(X).shape == (200, 6)
    u, state = SERIES[200:201].astype(dtype), rnn.state_
    for row in rnn.forecast(4):
        u, state = rnn.predict(u, initial_state=state, return_state=True)
        np.testing.assert_allclose(row, u[0], rtol=1e-5)
    again = clone(rnn).fit(X, Y)
    np.testing.assert_array_equal(again.predict(X), rnn.predict(X))
    steady = rnn.predict(X[:5], initial_state="steady")
    assert np.isfinite(steady).all()
    warm = clone(rnn).set_params(warm_start=True, solver="lbfgs", max_iter=3).fit(X, Y)
    best = warm.best_loss_
    assert warm.fit(X, Y).loss_curve_[0] == pytest.approx(best, rel=1e-6)
    online = clone(rnn).set_params(learning_rate_init=0.003)
    for _ in range(5):
        online.partial_fit(X, Y, new_sequence=True)
    assert online.loss_curve_[-1] < online.loss_curve_[0]
    given = {**FAST, "max_iter": 0, "init": FrozenEstimator(rnn)}
    from_frozen = RNNRegressor(cell=rnn.cell, dtype=dtype, **given).fit(X, Y)
    np.testing.assert_array_equal(from_frozen.predict(X), rnn.predict(X))


def test_a_custom_cell_is_searched_and_saved(tmp_path):
    """Three files: the cell's, the line in CELLS, the tests."""
    with registered(CELLS, "toy", Decay):
        search = GridSearchCV(
            RNNRegressor(cell="toy", **FAST), {"n_units": [2, 6]}, cv=TimeSeriesSplit(2)
        ).fit(X, Y)
        best = search.best_estimator_
        assert best.network_.cell == Decay(best.n_units)
        assert search.cv_results_["mean_test_score"].max() > 0.5
        save(best, tmp_path / "toy.npz")
        again = load(tmp_path / "toy.npz")
        np.testing.assert_array_equal(again.predict(X), best.predict(X))
        np.testing.assert_array_equal(again.forecast(5), best.forecast(5))
        for made in (best, again):  # and goes on learning
            made.partial_fit(X[:100], Y[:100], new_sequence=True)
        np.testing.assert_array_equal(again.predict(X), best.predict(X))
    save(RNNRegressor(cell=Decay(6), **FAST).fit(X, Y), tmp_path / "object.npz")
    assert load(tmp_path / "object.npz").cell == Decay(6)


def test_a_name_is_saved_once():
    with pytest.raises(ValueError, match=r"is the name of helpers\.toys\.decaying_cell\.Decay"):
        saved(type("Decay", (), {"__module__": "elsewhere"}))


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cell", cells())
def test_errors_of_custom_cells(cell):
    made = cells()[cell]
    name = type(made).__name__
    rnn = RNNRegressor(cell=made, **RANDOM).fit(X, Y)
    buffer = io.BytesIO()
    joblib.dump(rnn, buffer)
    buffer.seek(0)
    np.testing.assert_array_equal(joblib.load(buffer).predict(X), rnn.predict(X))
    if type(made) is Unmarked:
        with pytest.raises(TypeError, match=f"cell=.*{name}.* cannot be written.*joblib"):
            save(rnn, "nowhere.npz")
    with pytest.raises(AttributeError, match=f"{name} is not a reservoir"):
        _ = rnn.reservoir_
    if type(made) is not StackedCell:  # its parts have counterparts
        with pytest.raises(ValueError, match=f"cannot convert {name}"):
            rnn.to_torch()
    for params, message in (
        ({"solver": "least_squares"}, f"got {name}. Train it by gradients"),
        ({"gradient_control": 0.1}, "Gradient control needs"),
    ):
        with pytest.raises(ValueError, match=message):
            RNNRegressor(cell=made, **{**RANDOM, **params}).fit(X, Y)
    for online in ("rtrl", "least_squares"):
        learner = RNNRegressor(cell=made, online=online, **RANDOM)
        with pytest.raises(ValueError, match=f"got {name}"):
            learner.partial_fit(X, Y)
        assert not hasattr(learner, "params_")
    with pytest.raises(ValueError, match="Least squares needs a cell that declares a layer"):
        ls_fit(dict(rnn.params_), X, Y, cell=made)


def test_the_default_start_of_an_unsupported_cell_warns():
    for seed in range(3):
        rnn = RNNRegressor(6, cell=Decay(6), max_iter=0, random_state=seed)
        with pytest.warns(ConvergenceWarning, match="max_iter=0 keeps .* do not support Decay"):
            rnn.fit(X, Y)
        rnn.set_params(init="glorot").fit(X, Y)  # who asks for random weights gets them


@pytest.mark.slow
def test_labels_from_a_stack():
    labels = np.where(Y[:, 0] > np.median(Y), "high", "low")
    clf = RNNClassifier(cell=StackedCell((SimpleCell(4), GRUCell(6))), **{**FAST, "max_iter": 30})
    assert clf.fit(X, labels).score(X, labels) > 0.8


def test_parts_of_a_stack_are_drawn_as_cells():
    """Each with gates of its own: orthogonal blocks, and the forget gate of the LSTM at 1."""
    params = RNNRegressor(cell=cells()["stack"], init="orthogonal", **{**FAST, "max_iter": 0})
    params = params.fit(X, Y).params_
    for name, n in (("0.W", 3), ("1.W", 6)):
        for block in np.split(params[name], len(params[name]) // n):
            np.testing.assert_allclose(block @ block.T, np.eye(n), atol=1e-12)
    np.testing.assert_array_equal(params["1.bias"][6:12], 1.0)
    assert not params["0.bias"].any()


# ---------------------------------------------------------------------------- no kernel


@pytest.mark.skipif(not _kernels.usable(), reason="needs numba")
@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_a_cell_without_kernels_runs_on_numpy(engine, monkeypatch):
    used = []

    def own_loop(H):
        used.append(engine)
        return H.cumsum(axis=0, out=H)

    class Sum(Decay):
        def forward(self, params, X, state=None, lengths=None):
            loop_for(own_loop, (200, 1, 6), X.dtype)(np.ones((2, 1, 1)))
            twin = loop_for(lstm_forward, (200, 1, 6), X.dtype)
            assert twin is (lstm_forward if engine == "numpy" else _kernels.lstm_forward)
            return super().forward(params, X, state, lengths)

    with using(engine):
        rnn = RNNRegressor(cell=Sum(6), **{**FAST, "max_iter": 1})
        monkeypatch.setattr(
            "reservoir.estimators.rnn.network_estimator.engine_for_training", lambda *_: engine
        )
        assert np.isfinite(rnn.fit(X, Y).predict(X)).all()
    assert len(used) > 2


def test_a_loop_names_its_twin():
    @compiled_as("lstm_forward")
    def another(*arrays):
        return arrays

    try:
        with using("numba" if _kernels.usable() else "numpy"):
            found = loop_for(another, (200, 1, 6), np.float64)
            assert found is (_kernels.lstm_forward if _kernels.usable() else another)
            assert loop_for(another, (200, 1, 6), np.int64) is another
    finally:
        del TWINS[another]


# ---------------------------------------------------------------------------- a loss

HUBER = Loss(
    lambda p, y: np.where(np.abs(p - y) < 1, (p - y) ** 2 / 2, np.abs(p - y) - 0.5),
    lambda p, y: np.clip(p - y, -1, 1),
    outputs=("identity", "tanh"),
)


def test_a_registered_loss_is_what_training_lowers():
    with registered(LOSSES, "huber", HUBER):
        for output in HUBER.outputs:
            network = Network(GRUCell(4), 3, 2, output, "huber")
            check(network, ragged(network, 0, weights=True), draw(network, 1, scale=1.5))
        far = Y.copy()
        far[::50] += 100.0  # outliers that squares follow, and Huber's loss does not
        errors = {
            loss: np.median(np.abs(RNNRegressor(loss=loss, **FAST).fit(X, far).predict(X) - Y))
            for loss in ("huber", "mse")
        }
        assert errors["huber"] < 0.5 * errors["mse"]
        online = RNNRegressor(loss="huber", **FAST).partial_fit(X, Y)
        assert np.isfinite(online.loss_curve_).all()
        for params, message in (
            ({"output": "softmax"}, "loss='huber' needs output='identity' or 'tanh'"),
            ({"solver": "least_squares"}, "solver='least_squares' needs loss='mse'"),
        ):
            with pytest.raises(ValueError, match=message):
                RNNRegressor(loss="huber", **{**FAST, **params}).fit(X, abs(Y) / 9)
    with pytest.raises(ValueError, match="loss='huber' is not known"):
        online.partial_fit(X, Y)


# ---------------------------------------------------------------------------- learning online


def test_a_registered_learner_learns_online():
    class LeastMeanSquares(Learner):
        """A toy: Widrow and Hoff's rule for the readout, row by row."""

        def __init__(self, *settings):
            super().__init__(*settings)
            self.rows_at_once = 1

        def learn(self, params, state, rows, targets, n_skipped):
            state = self.network.cell.forward(params, rows[:, None], state[None]).end[0]
            error = params["coef"] @ state + params["intercept"] - targets[0]
            if not n_skipped:
                step = 0.5 * error / (1 + state @ state)
                params = {
                    **params,
                    "coef": params["coef"] - np.outer(step, state),
                    "intercept": params["intercept"] - step,
                }
            return float(np.mean(error**2)), params, state

    network = Network(SimpleCell(20), 1, 1)
    # a recurrent matrix of norm 0.79: in a chaotic network the losses would be those of rounding
    params = draw(network, 0, scale=0.1)
    with registered(LEARNERS, "lms", LeastMeanSquares):
        learner = OnlineLearner(network, params, method="lms")
    learner.restart()
    losses = [learner.learn(X[i : i + 50], Y[i : i + 50]) for i in range(0, 200, 50)]
    assert losses[-1] < 0.1 * losses[0]


# ---------------------------------------------------------------------------- an activation

SINE = Activation("sine", np.sin, np.cos, 1.0, None, True)  # a value says nothing of the slope
TWIN = Activation("twin", np.tanh, lambda z: 1 - np.tanh(z) ** 2, 1.0, np.arctanh, True)


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("leak", [1.0, 0.4, (0.1, 0.4, 1.0, 0.7, 0.2)])
@pytest.mark.parametrize("activation", [SINE, TWIN], ids=lambda activation: activation.name)
def test_a_registered_activation_has_its_own_slope(activation, leak):
    with registered(ACTIVATIONS, activation.name, activation):
        network = Network(SimpleCell(5, activation.name, leak), 3, 2, include_input=True)
        for seed in range(3):
            params = draw(network, seed, scale=0.9)
            for engine in ("numpy", "numba") if _kernels.usable() else ("numpy",):
                with using(engine):
                    check(network, ragged(network, seed), params)
            x, y = np.random.default_rng(seed).standard_normal((2, 12, 3))
            value, grads, _ = rtrl_gradient(network, params, x, y[:, :2])
            expected, theirs, _ = loss_and_gradient(network, params, make_batch([x], [y[:, :2]]))
            assert np.isclose(value, expected, rtol=1e-12)
            for name, grad in grads.items():
                np.testing.assert_allclose(grad, theirs[name], rtol=1e-8, atol=1e-12)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("params", [{}, {"solver": "lbfgs"}, {"init": "orthogonal"}], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_copy_of_tanh_trains_as_tanh(params, dtype):
    with registered(ACTIVATIONS, "twin", TWIN):
        settings = {**FAST, "max_iter": 3, "dtype": dtype, **params}
        twin = RNNRegressor(activation="twin", **settings).fit(X, Y)
        # least squares moves a layer only where it knows the range of f: other starts
        if params.get("init"):
            tanh = RNNRegressor(**settings).fit(X, Y)
            np.testing.assert_allclose(twin.loss_curve_, tanh.loss_curve_, rtol=1e-3)
        assert twin.best_loss_ < 0.05 * np.var(Y)
        assert {array.dtype for array in twin.params_.values()} == {np.dtype(dtype)}
        loop, u, state = twin.forecast(3), SERIES[200:201].astype(dtype), twin.state_
        for row in loop:
            u, state = twin.predict(u, initial_state=state, return_state=True)
            np.testing.assert_allclose(row, u[0], rtol=1e-4)


def test_an_esn_with_a_registered_activation_can_be_trained():
    with registered(ACTIVATIONS, "sine", SINE):
        esn = ESNRegressor(10, activation="sine", random_state=0).fit(X, Y)
        rnn = esn.to_rnn().set_params(max_iter=5)
        np.testing.assert_allclose(rnn.predict(X), esn.predict(X), atol=1e-9)
        assert clone(rnn).fit(X, Y).best_loss_ <= np.mean((Y - esn.predict(X)) ** 2)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("leak", [1.0, 0.4])
def test_an_activation_with_a_second_derivative(leak, tmp_path):
    """One file: all that is asked of an activation stands in its entry."""
    with registered(ACTIVATIONS, "smoothstep", SMOOTHSTEP):
        network = Network(SimpleCell(5, "smoothstep", leak), 3, 2, include_input=True)
        for seed in range(3):
            check(network, ragged(network, seed), draw(network, seed, scale=0.3))
        z = np.linspace(-0.9, 0.9, 31)
        h = SMOOTHSTEP.function(z)
        np.testing.assert_allclose(slope("smoothstep", h), SMOOTHSTEP.derivative(z), rtol=1e-12)
        np.testing.assert_allclose(curvature("smoothstep", h), -3 * z, rtol=1e-12, atol=1e-14)
        settings = {"activation": "smoothstep", "cell": "leaky", "leak_rate": leak, "init": "esn"}
        settings |= FAST
        names = ["tanh", "smoothstep"]
        search = GridSearchCV(RNNRegressor(**settings), {"activation": names}, cv=2).fit(X, Y)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        rnn = RNNRegressor(gradient_control=0.01, **settings).fit(X, Y)
        assert rnn.best_loss_ < 0.05 * np.var(Y)
        save(rnn, tmp_path / "rnn.npz")
        np.testing.assert_array_equal(load(tmp_path / "rnn.npz").forecast(9), rnn.forecast(9))


def test_activations_that_networks_cannot_be_trained_with():
    for activation in (SINE, Activation("tanh", np.sin, np.cos, 1.0, None, True)):
        with pytest.raises(
            ValueError, match=f"activation='{activation.name}' is missing.*is another.*Regist"
        ):
            RNNRegressor(activation=activation, **FAST).fit(X, Y)
        esn = ESNRegressor(5, activation=activation, random_state=0).fit(X, Y)  # reservoirs work
        with pytest.raises(ValueError, match="Register it"):
            esn.to_rnn()
    with registered(ACTIVATIONS, "sine", SINE):
        with pytest.raises(ValueError, match=r"curvature .*activation='sine'.*'tanh'"):
            RNNRegressor(activation="sine", gradient_control=0.1, **FAST).fit(X, Y)
        with pytest.raises(ValueError, match="activation='sine': its slope cannot be computed"):
            slope("sine", np.zeros(2))
        rnn = RNNRegressor(activation="sine", **FAST).fit(X, Y)
        with pytest.raises(ValueError, match=r"activation='sine'; it converts 'tanh'"):
            rnn.to_torch()

"""The start of training: names, other networks, previous weights; files."""

import pickle
import re
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from reservoir import ESNClassifier, ESNRegressor, RNNClassifier, RNNRegressor, load, save
from reservoir.datasets import adding, gestures, mackey_glass, narma
from reservoir.estimators.rnn.start_trials import ClosedLoopTest
from reservoir.loops.loop_score import LoopScore
from reservoir.scaling import spectral_radius
from reservoir.training.initializers import INITIALIZERS
from reservoir.training.starts import STARTS

pytestmark = pytest.mark.both_engines

CELLS = ("rnn", "leaky", "lstm", "gru")


def series(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, X[:, 0] * 0.5 + np.append(0, X[:-1, 1])


def make(cls=RNNRegressor, **params):
    return cls(**{"n_units": 12, "max_iter": 0, "random_state": 0, **params})


def mse(model, X, y):
    """From zeros, behind the washout."""
    errors = model.predict(X, initial_state="zeros") - y
    return np.mean(errors[model.washout_[0] :] ** 2)


# -------------------------------------------------------------------------- names


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("init", [*STARTS, *INITIALIZERS])
def test_every_name_is_a_start_of_its_own(cell, init):
    X, y = series()
    rnn = make(cell=cell, init=init).fit(X, y)
    assert rnn.n_iter_ == rnn.best_epoch_ == 0
    assert rnn.loss_curve_ == [rnn.best_loss_] == [pytest.approx(mse(rnn, X, y))]
    again = make(cell=cell, init=init).fit(X, y)
    other = make(cell=cell, init=init, random_state=1).fit(X, y)
    for name, weights in rnn.params_.items():
        np.testing.assert_array_equal(again.params_[name], weights)
    assert not np.array_equal(other.params_["W_in"], rnn.params_["W_in"])
    fitted = init in STARTS
    assert (rnn.best_loss_ < 0.9 * y.var()) == fitted


@pytest.mark.full_starts
@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cell", CELLS)
def test_least_squares_is_no_worse_than_the_random_reservoir(cell, global_random_seed):
    X, y = series(seed=global_random_seed)
    esn, ls = (
        make(cell=cell, init=init, random_state=global_random_seed).fit(X, y)
        for init in ("esn", "least_squares")
    )
    assert ls.best_loss_ <= esn.best_loss_ * (1 + 1e-6)


@pytest.mark.full_starts
@pytest.mark.slow
@pytest.mark.parametrize(
    ("cls", "drawn"),
    [(RNNRegressor, partial(adding, 400, length=50)), (RNNClassifier, partial(gestures, 150))],
)
def test_unlearnable_targets_keep_weights_small(cls, drawn, global_random_seed):
    """Long steps lower the error a little, too: unbounded ones went up to weights of 1e9."""
    radii = []
    for seed in range(3 * global_random_seed, 3 * global_random_seed + 3):
        common = {"target": "last", "init": "least_squares", "max_iter": 0, "random_state": seed}
        rnn = cls(30, **common).fit(*drawn(random_state=seed))
        radii.append(spectral_radius(rnn.params_["W"]))
    assert np.median(radii) < 5


@pytest.mark.slow
def test_mackey_glass_from_least_squares_alone():
    z = mackey_glass(3000, random_state=0)
    rnn = RNNRegressor(100, max_iter=0, random_state=0).fit(z[:1999], z[1:2000])
    errors = rnn.predict(z[1999:-1]) - z[2000:]
    assert np.mean(errors**2) / z.var() < 1e-6


# -------------------------------------------------------------------------- what was tried


def tried(rnn):
    """Return the rows of the table of starts."""
    columns = rnn.start_results_
    assert len({len(column) for column in columns.values()}) == 1
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@pytest.mark.parametrize("init", STARTS)
def test_the_starts_that_were_tried_are_an_attribute(init, tmp_path):
    X, y = series()
    rnn = make(init=init).fit(X, y)
    rows = tried(rnn)
    assert [(row["draw"], row["input_scaling"]) for row in rows] == [
        (draw, scaling) for draw in (0, 1) for scaling in (1.0, 0.3, 0.1)
    ]
    (kept,) = (row for row in rows if row["kept"])
    assert {row["init"] for row in rows} == {init}
    halfway = [row["halfway_error"] for row in rows if np.isfinite(row["halfway_error"])]
    if init == "esn":
        assert kept["error"] == min(row["error"] for row in rows)
        assert not halfway
    else:
        assert kept["halfway_error"] == min(halfway)
        assert len(halfway) == 2
    # the input weights are those of the reservoir, times the factor
    save(rnn, tmp_path / "rnn")
    again = load(tmp_path / "rnn").start_results_
    for name, column in rnn.start_results_.items():
        np.testing.assert_array_equal(again[name], column)


def test_other_starts_have_tried_nothing():
    X, y = series()
    for init in (*INITIALIZERS, ESNRegressor(12, leak_rate=1.0, include_input=False)):
        assert make(init=init).fit(X, y).start_results_ is None
    assert make(init="least_squares").partial_fit(X, y).start_results_["kept"].sum() == 1
    assert make(init="glorot").partial_fit(X, y).start_results_ is None
    warm = make(warm_start=True).fit(X, y)
    before = warm.start_results_
    assert warm.fit(X, y).start_results_ is before
    assert ESNRegressor(12, n_lags=1).fit(X, y).to_rnn().start_results_ is None


def test_a_further_draw_is_a_single_one(monkeypatch):
    """A start whose free runs leave their range is drawn again: one network, not two."""
    z = np.sin(0.3 * np.arange(301))[:, None]
    scores = iter([LoopScore(2, 0.5), LoopScore(1, 0.4), LoopScore(0, 0.3)])
    monkeypatch.setattr(ClosedLoopTest, "score", lambda loop_test, params: next(scores))
    rows = tried(RNNRegressor(12, max_iter=0, random_state=0).fit(z[:-1], z[1:]))
    assert [row["draw"] for row in rows] == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    assert np.isfinite([row["halfway_error"] for row in rows]).sum() == 2  # of the first two
    lost = [row["lost_loops"] for row in rows if np.isfinite(row["lost_loops"])]
    assert lost == [2, 1, 0]
    (kept,) = (row for row in rows if row["kept"])
    assert (kept["draw"], kept["lost_loops"]) == (3, 0)


def test_a_start_uses_the_washout_and_the_initial_state_of_the_estimator():
    X, y = narma(300, random_state=0)
    options = {"max_iter": 0, "random_state": 0}
    every = RNNRegressor(8, washout=0, **options).fit(X, y)
    again = RNNRegressor(8, washout=0, **options).fit(X, y, sample_weight=np.ones(300))
    later = RNNRegressor(8, washout=30, **options).fit(X, y)
    np.testing.assert_array_equal(every.params_["coef"], again.params_["coef"])
    assert np.abs(every.params_["coef"] - later.params_["coef"]).max() > 1e-6
    sequences = np.split(X, 20), np.split(y, 20)
    zeros = RNNRegressor(8, **options).fit(*sequences)
    state = 0.9 * np.ones(8)
    given = RNNRegressor(8, initial_state=state, **options).fit(*sequences)
    assert given.best_loss_ < 1.2 * zeros.best_loss_
    assert np.abs(given.params_["coef"] - zeros.params_["coef"]).max() > 1e-4


def test_a_line_says_what_was_tried(caplog):
    X, y = series()
    caplog.set_level("INFO", "reservoir")
    make(verbose=1).fit(X, y)
    (line,) = (text for text in caplog.messages if text.startswith("Start"))
    assert re.match(
        r"Start 'least_squares': 2 networks drawn, 6 starts tried\. Kept: draw [01], input "
        r"weights times (1|0\.3|0\.1), held-out error \S+ with the readout fitted, \S+ after half "
        r"of the iterations\. \S+ s\.$",
        line,
    )
    caplog.clear()
    make(verbose=1, init="glorot", max_iter=1).fit(X, y)
    assert not any(text.startswith("Start") for text in caplog.messages)


# -------------------------------------------------------------------------- other networks


@pytest.mark.parametrize("leak_rate", [1.0, 0.3, np.linspace(0.2, 1.0, 12)], ids=str)
@pytest.mark.parametrize("include_input", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
class TestFromESN:
    def fit(self, leak_rate, include_input, dtype):
        z = mackey_glass(500, random_state=0) - 0.9
        esn = ESNRegressor(
            12,
            n_lags=1,
            leak_rate=leak_rate,
            include_input=include_input,
            dtype=dtype,
            in_degree=5,
            random_state=0,
        )
        return esn.fit(z[:399], z[1:400, 0]), z

    @pytest.mark.fast_cases(3)
    def test_outputs_and_forecasts_are_the_same(self, leak_rate, include_input, dtype):
        esn, z = self.fit(leak_rate, include_input, dtype)
        rnn = esn.to_rnn()
        atol = 1e-4 if dtype == "float32" else 1e-10
        for start in (None, "zeros", "last", "steady", np.full(12, 0.1)):
            rows, state = esn.predict(z[399:], initial_state=start, return_state=True)
            ours, end = rnn.predict(z[399:], initial_state=start, return_state=True)
            np.testing.assert_allclose(ours, rows, atol=atol)
            np.testing.assert_allclose(end, state, atol=atol)
            assert ours.dtype == rows.dtype
        np.testing.assert_allclose(rnn.states(z[399:]), esn.states(z[399:]), atol=atol)
        np.testing.assert_allclose(rnn.forecast(10), esn.forecast(10), atol=10 * atol)
        np.testing.assert_allclose(
            rnn.forecast(10, context=z[399:450]),
            esn.forecast(10, context=z[399:450]),
            atol=10 * atol,
        )
        assert rnn.score(z[399:-1], z[400:, 0]) == pytest.approx(
            esn.score(z[399:-1], z[400:, 0]), abs=1e-4
        )

    @pytest.mark.fast_cases(1)
    def test_training_starts_from_its_loss(self, leak_rate, include_input, dtype):
        esn, z = self.fit(leak_rate, include_input, dtype)
        X, y = z[:399], z[1:400, 0]
        expected = np.mean((esn.predict(X, initial_state="zeros") - y)[39:] ** 2)
        for rnn in (esn.to_rnn(), clone(esn.to_rnn()), pickle.loads(pickle.dumps(esn.to_rnn()))):
            rnn.set_params(max_iter=3, solver="adam").fit(X, y)
            assert rnn.loss_curve_[0] == pytest.approx(expected, rel=1e-2)
            assert rnn.best_loss_ <= rnn.loss_curve_[0]

    def test_init_takes_it_frozen(self, leak_rate, include_input, dtype):
        esn, z = self.fit(leak_rate, include_input, dtype)
        rnn = esn.to_rnn()
        again = RNNRegressor(
            12,
            cell=rnn.cell,
            leak_rate=leak_rate if np.ndim(leak_rate) else float(leak_rate),
            include_input=include_input,
            init=FrozenEstimator(esn),
            max_iter=0,
            dtype=dtype,
        )
        again.fit(z[:399], z[1:400, 0])
        for name, weights in rnn.params_.items():
            np.testing.assert_array_equal(again.params_[name], weights)


def test_an_esn_keeps_its_training_apart():
    z = mackey_glass(500, random_state=0)
    esn = ESNRegressor(12, n_lags=1, random_state=0).fit(z[:399], z[1:400])
    before = pickle.dumps(esn)
    rnn = esn.to_rnn()
    rnn.params_["W"][:] = 0
    rnn.partial_fit(z[400:450], z[401:451])
    clone(esn.to_rnn()).set_params(max_iter=1).fit(z[:399], z[1:400])
    assert pickle.dumps(esn) == before


def test_to_rnn_continues_online():
    """The first row of a chunk follows the last row of training."""
    z = mackey_glass(500, random_state=0)
    esn = ESNRegressor(12, n_lags=1, leak_rate=0.5, random_state=0).fit(z[:399], z[1:400])
    rnn = esn.to_rnn().set_params(learning_rate_init=1e-9)
    rnn.partial_fit(z[399:450], z[400:451])
    esn.partial_fit(z[399:450], z[400:451])
    np.testing.assert_allclose(rnn.state_, esn.state_, atol=1e-6)
    assert rnn.forecast(5).shape == (5, 1)


def test_sequences_and_names_survive_to_rnn():
    pd = pytest.importorskip("pandas")
    X, y = series()
    frame = pd.DataFrame({"run": np.repeat(["a", "b"], 100), "u": X[:, 0], "v": X[:, 1]})
    esn = ESNRegressor(12, n_lags=1, sequence_column="run", random_state=0).fit(frame, y)
    rnn = esn.to_rnn()
    np.testing.assert_allclose(rnn.predict(frame), esn.predict(frame), atol=1e-10)
    assert list(rnn.feature_names_in_) == ["run", "u", "v"]
    rnn.set_params(max_iter=2).fit(frame, y)
    assert rnn.score(frame, y) >= esn.score(frame, y) - 1e-6


def test_a_measured_washout_becomes_a_number():
    X, y = series()
    esn = ESNRegressor(12, n_lags=1, washout="measured", random_state=0).fit(X, y)
    rnn = esn.to_rnn().set_params(max_iter=1).fit(X, y)
    assert rnn.washout_.tolist() == esn.washout_.tolist()


@pytest.mark.parametrize(
    "params, message",
    [
        ({"feedback": True}, "feedback=True cannot be trained"),
        ({"readout": Ridge()}, "readout=Ridge.*use the built-in readout"),
    ],
)
def test_esns_that_cannot_be_trained(params, message):
    X, y = series()
    esn = ESNRegressor(12, n_lags=1, random_state=0, **params).fit(X, y)
    with pytest.raises(ValueError, match=message):
        esn.to_rnn()
    with pytest.raises((ValueError, TypeError), match=r"built-in readout|feedback"):
        make(init=FrozenEstimator(esn)).fit(X, y)
    with pytest.raises(NotFittedError):
        ESNRegressor(12, n_lags=1).to_rnn()


def test_unfitted_networks_are_fitted_on_the_same_data():
    X, y = series()
    esn = ESNRegressor(
        12, n_lags=1, leak_rate=1.0, include_input=False, in_degree=5, random_state=3
    )
    rnn = make(init=esn).fit(X, y)
    assert not hasattr(esn, "coef_")
    fitted = clone(esn).fit(X, y)
    np.testing.assert_array_equal(rnn.params_["W"], fitted.reservoir_.W.toarray())
    np.testing.assert_array_equal(rnn.params_["coef"][0], fitted.coef_)
    first = make(cell="gru", max_iter=3, init="glorot")
    second = make(cell="gru", init=first).fit(X, y)
    for name, weights in clone(first).fit(X, y).params_.items():
        np.testing.assert_array_equal(second.params_[name], weights)
    search = GridSearchCV(
        make(init=esn), {"init__spectral_radius": [0.1, 0.9]}, cv=TimeSeriesSplit(2)
    )
    assert search.fit(X, y).best_params_["init__spectral_radius"] in (0.1, 0.9)


def test_labels_from_a_classifier():
    X, y = series()
    labels = np.where(y > 0, "up", "down")
    esn = ESNClassifier(12, leak_rate=1.0, include_input=False, in_degree=5, random_state=0).fit(
        X, labels
    )
    clf = make(RNNClassifier, init=FrozenEstimator(esn)).fit(X, labels)
    np.testing.assert_array_equal(
        clf.predict(X, initial_state="zeros"), esn.predict(X, initial_state="zeros")
    )
    rnn = make(RNNClassifier, init="glorot", max_iter=2).fit(X, labels)
    again = make(RNNClassifier, init=FrozenEstimator(rnn)).fit(X, labels)
    np.testing.assert_array_equal(again.predict_proba(X), rnn.predict_proba(X))


@pytest.mark.parametrize(
    "params, message",
    [
        ({"n_units": 13}, "cell="),
        ({"cell": "leaky"}, "cell="),
        ({"cell": "gru"}, "cell="),
        ({"activation": "relu"}, "cell="),
        ({"include_input": False}, "include_input=True, but this network has False.*to_rnn"),
    ],
)
def test_networks_that_do_not_fit(params, message):
    X, y = series()
    esn = ESNRegressor(12, n_lags=1, leak_rate=1.0, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=f"init=ESNRegressor has {message}"):
        make(**{"include_input": True, "init": FrozenEstimator(esn), **params}).fit(X, y)
    with pytest.raises(ValueError, match="n_outputs=1, but this network has 2"):
        make(include_input=True, init=FrozenEstimator(esn)).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="n_features=2, but this network has 1"):
        make(include_input=True, init=FrozenEstimator(esn)).fit(X[:, :1], y)


def test_what_is_no_network():
    X, y = series()
    with pytest.raises(NotFittedError):
        make(init=FrozenEstimator(ESNRegressor(12))).fit(X, y)
    with pytest.raises(TypeError, match="init=Ridge is not a fitted"):
        make(init=Ridge()).fit(X, y)
    with pytest.raises(
        TypeError, match=r"init=3 must be a name \(auto, esn, least_squares, .*orthogonal"
    ):
        make(init=3).fit(X, y)
    with pytest.raises(ValueError, match=r"Did you mean 'orthogonal'\?.*Known: .*'glorot'"):
        make(init="ortogonal").fit(X, y)


# -------------------------------------------------------------------------- weights of before


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cell", CELLS)
def test_warm_start_continues(cell):
    X, y = series()
    settings = {"init": "glorot", "solver": "adam", "max_iter": 3, "warm_start": True}
    rnn = make(cell=cell, **settings).fit(X, y)
    first, weights = rnn.best_loss_, rnn.params_
    kept = {name: array.copy() for name, array in weights.items()}
    rnn.fit(X, y)
    assert rnn.loss_curve_[0] == pytest.approx(first, rel=1e-12)
    assert rnn.best_loss_ < first
    assert rnn.n_iter_ == 3
    for name, array in weights.items():  # what was handed out is not written to
        np.testing.assert_array_equal(array, kept[name])
    cold = clone(rnn).set_params(warm_start=False)
    assert cold.fit(X, y).fit(X, y).loss_curve_[0] > first


def test_warm_start_needs_the_same_network():
    X, y = series()
    for change, name in (
        ({"n_units": 5}, "cell="),
        ({"cell": "lstm"}, "cell="),
        ({"include_input": True}, "include_input=False; now it is True"),
    ):
        rnn = make(warm_start=True, init="esn").fit(X, y)
        before = pickle.dumps(rnn.set_params(**change))
        with pytest.raises(ValueError, match=f"last fit, which had {name}.*warm_start=False"):
            rnn.fit(X, y)
        assert pickle.dumps(rnn) == before
    with pytest.raises(ValueError, match="had n_outputs=1; now it is 2"):
        make(warm_start=True, init="esn").fit(X, y).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="had n_features=2; now it is 1"):
        make(warm_start=True, init="esn").fit(X, y).fit(X[:, :1], y)


def test_warm_start_in_another_precision():
    X, y = series()
    rnn = make(warm_start=True, max_iter=2).fit(X, y).set_params(dtype="float32").fit(X, y)
    assert {array.dtype for array in rnn.params_.values()} == {np.dtype("float32")}
    assert rnn.predict(X).dtype == np.float32
    assert rnn.state_.dtype == np.float32

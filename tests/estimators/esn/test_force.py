"""FORCE learning: the learned weights, and the closed loops after training."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.utils.validation import check_is_fitted

import reservoir
from reservoir import ESNClassifier, ESNRegressor, force_train
from reservoir.datasets import lorenz
from reservoir.dynamics import run
from reservoir.readouts.penalised_factor import PenalisedFactor

pytestmark = pytest.mark.one_engine

STEPS = np.arange(1400)
WAVES = np.sin(0.1 * STEPS) + 0.5 * np.sin(0.05 * STEPS)
PAIR = np.stack([WAVES, np.cos(0.1 * STEPS)], axis=1)


def chaotic(n_units=60, **params):
    known = {"spectral_radius": 1.5, "leak_rate": 0.1, "feedback": True, "random_state": 0}
    return ESNRegressor(n_units, **{**known, **params})


def states_of(model, start, outputs, exog=None):
    """The states of a run that has heard these outputs, by an open-loop run."""
    size = model.reservoir_.n_units
    exog = np.zeros((len(outputs), 0)) if exog is None else exog
    heard = np.vstack([start[size:], outputs[:-1]])
    return run(model.reservoir_, exog, initial_state=start[:size], feedback=heard)


@pytest.mark.parametrize("y", [WAVES[:160], PAIR[:160]], ids=["one output", "two"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("every", [1, 3])
def test_weights_are_the_ridge_of_the_rows_of_corrections(y, intercept, every):
    start = np.zeros(20 + y[0].size)
    start[:20] = np.linspace(-0.4, 0.5, 20)
    model, history = force_train(
        chaotic(20, fit_intercept=intercept, washout=7),
        y,
        alpha=0.3,
        n_steps_between=every,
        feed_corrected=False,
        initial_state=start,
        n_test=0,
        return_history=True,
    )
    H, rows = states_of(model, start, history.outputs), np.arange(7, len(y), every)
    ridge = Ridge(alpha=0.3, fit_intercept=intercept).fit(H[rows], y[rows])
    np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, ridge.intercept_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.state_[:20], H[-1], rtol=0, atol=1e-12)
    # before the first correction the network says nothing; then what the rows so far lead to
    assert not history.outputs[: rows[0] + 1].any()
    known, t = rows[:10], rows[10]
    so_far = Ridge(alpha=0.3, fit_intercept=intercept).fit(H[known], y[known])
    np.testing.assert_allclose(
        history.outputs[t], so_far.predict(H[t : t + 1]).ravel(), rtol=0, atol=1e-9
    )
    # the record
    np.testing.assert_array_equal(history.errors, history.outputs - y.reshape(len(y), -1))
    np.testing.assert_array_equal(np.flatnonzero(history.weight_change), rows)
    weights = np.append(np.ravel(model.coef_), model.intercept_)
    np.testing.assert_allclose(history.weight_norm[-1], np.linalg.norm(weights), rtol=1e-12)


def test_rows_fade():
    start = np.append(np.linspace(-0.4, 0.5, 20), 0.0)
    options = {"feed_corrected": False, "initial_state": start, "n_test": 0, "alpha": 0.3}
    model, history = force_train(
        chaotic(20, washout=7), WAVES[:160], forgetting=0.97, return_history=True, **options
    )
    H, rows = states_of(model, start, history.outputs), np.arange(7, 160, 2)
    factor = PenalisedFactor(20, 1, 0.3, forgetting=0.97)
    factor.add(H[rows], WAVES[rows, None])
    np.testing.assert_allclose(model.coef_, factor.coef()[0][0], rtol=0, atol=1e-9)


def test_a_correction_removes_the_error_before_it_is_fed_back():
    start = np.append(np.linspace(-0.4, 0.5, 60), 0.0)
    esn = chaotic(60, washout=0)
    options = {"initial_state": start, "n_test": 0, "n_steps_between": 1, "alpha": 1e-9}
    # fewer rows than weights and next to no penalty: what is fed back is the target
    model = force_train(esn, WAVES[:40], **options)
    H = states_of(model, start, WAVES[:40, None])
    np.testing.assert_allclose(model.state_[:60], H[-1], rtol=0, atol=1e-5)
    uncorrected = force_train(esn, WAVES[:40], feed_corrected=False, **options)
    assert np.abs(uncorrected.state_[:60] - H[-1]).max() > 1e-3


def test_a_fitted_network_continues_from_its_weights():
    X = np.sin(0.03 * STEPS)[:, None]
    fitted = chaotic(40, alpha=1e-2, noise=1e-3).fit(X[:500], WAVES[:500])
    before = fitted.coef_.copy(), fitted.state_.copy()
    X, y = X[500:900], WAVES[500:900]
    model, history = force_train(
        fitted, y, exog=X, alpha=0.1, feed_corrected=False, n_test=0, return_history=True
    )
    np.testing.assert_array_equal(fitted.coef_, before[0])
    np.testing.assert_array_equal(fitted.state_, before[1])
    # it first says what the fitted network says next
    said = fitted.predict(X[:40])
    np.testing.assert_allclose(history.outputs[:40, 0], said, rtol=0, atol=1e-12)
    # then a ridge on what the old weights leave is added
    H = np.hstack([states_of(fitted, fitted.state_, history.outputs, X), X])
    rows = np.arange(40, 400, 2)
    left = y - (H @ fitted.coef_ + fitted.intercept_)
    added = Ridge(alpha=0.1).fit(H[rows], left[rows])
    np.testing.assert_allclose(model.coef_, fitted.coef_ + added.coef_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        model.intercept_, fitted.intercept_ + added.intercept_, rtol=0, atol=1e-9
    )


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("seed", range(3))
def test_it_runs_alone_after_training(seed):
    esn = chaotic(100, random_state=seed)
    model, history = force_train(esn, WAVES[:1000], return_history=True)
    assert history.test_error < 0.05
    assert history.test_outputs.shape == (100, 1)
    assert np.sqrt(np.mean((model.forecast(400) - WAVES[1000:]) ** 2)) < 0.1


def test_outputs_inputs_and_squares_are_learned_together():
    X = np.sin(0.03 * STEPS)[:, None]
    y = PAIR + 0.5 * X
    esn = chaotic(100, include_input=True, augment="square", feedback_scaling=[0.5, 1.0])
    model = force_train(esn, y[:1200], exog=X[:1200])
    assert model.coef_.shape == (2, 201)
    rows = model.forecast(100, exog=X[1200:1300])
    assert np.sqrt(np.mean((rows - y[1200:1300]) ** 2)) < 0.1 * y.std()
    np.testing.assert_allclose(rows, model.predict(X[1200:1300]), rtol=0, atol=1e-12)


def test_single_precision_stays_single():
    model = force_train(chaotic(100, dtype="float32"), WAVES[:1000])
    assert model.coef_.dtype == model.state_.dtype == model.forecast(3).dtype == np.float32
    assert np.abs(model.forecast(100) - WAVES[1000:1100]).max() < 0.2


def test_random_state_decides_and_the_argument_is_not_changed():
    esn = chaotic(30)
    parameters, attributes = esn.get_params(), dict(vars(esn))
    options = {"n_test": 0, "return_history": True}
    (one, first), (two, second) = (force_train(esn, WAVES[:200], **options) for _ in range(2))
    np.testing.assert_array_equal(first.outputs, second.outputs)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert esn.get_params() == parameters == one.get_params()
    assert vars(esn) == attributes
    with pytest.raises(NotFittedError):
        check_is_fitted(esn)
    check_is_fitted(one)
    other, _ = force_train(clone(esn).set_params(random_state=1), WAVES[:200], **options)
    assert np.abs(other.coef_ - one.coef_).max() > 1e-3
    # the start is drawn as well, unless it is given
    _, still = force_train(esn, WAVES[:200], initial_state="zeros", **options)
    assert np.abs(still.outputs - first.outputs).max() > 1e-3


def test_save_load_stream_and_forecast_continue_with_the_same_numbers(tmp_path):
    model = force_train(chaotic(30), WAVES[:300], n_test=0)
    reservoir.save(model, tmp_path / "model.npz")
    loaded = reservoir.load(tmp_path / "model.npz")
    rows = model.forecast(50)
    np.testing.assert_array_equal(loaded.forecast(50), rows)
    np.testing.assert_array_equal(reservoir.forecast(model, 50), rows)
    np.testing.assert_allclose(model.predict(np.empty((50, 0))), rows, rtol=0, atol=1e-12)
    stream = loaded.stream()
    parts = [stream.predict(np.empty((n, 0))) for n in (20, 30)]
    np.testing.assert_allclose(np.concatenate(parts), rows, rtol=0, atol=1e-12)
    assert model.alpha_ == 0.01
    assert model.state_[-1] == WAVES[299]
    # and so does a training
    on, more = (force_train(each, WAVES[300:400], n_test=0) for each in (model, loaded))
    np.testing.assert_array_equal(on.coef_, more.coef_)


def test_dates_continue():
    pd = pytest.importorskip("pandas")
    index = pd.date_range("2024-01-01", periods=300, freq="D")
    y = pd.Series(WAVES[:300], index, name="waves")
    model = force_train(chaotic(30).set_output(predict="pandas"), y, n_test=0)
    rows = model.forecast(3)
    assert list(rows.index) == list(pd.date_range("2024-10-27", periods=3, freq="D"))
    plain = force_train(chaotic(30), WAVES[:300], n_test=0)
    np.testing.assert_array_equal(np.ravel(rows), plain.forecast(3))


def test_a_loop_that_does_not_follow_warns():
    with pytest.warns(RuntimeWarning, match=r"does not follow.*n_test=30"):
        force_train(chaotic(20), WAVES[:300], alpha=1e6)
    _, history = force_train(chaotic(20), WAVES[:300], alpha=1e6, n_test=0, return_history=True)
    assert np.isnan(history.test_error)
    assert len(history.test_outputs) == 0


def test_partial_fit_raises_after_it():
    model = force_train(chaotic(20), WAVES[:300], n_test=0)
    with pytest.raises(ValueError, match=r"Continue with `reservoir\.force_train\(model"):
        model.partial_fit(np.empty((10, 0)), WAVES[:10])
    with pytest.raises(ValueError, match=r"Continue with `reservoir\.force_train\(model"):
        model.stream().learn(np.empty((10, 0)), WAVES[:10])


@pytest.mark.parametrize(
    ("esn", "options", "error", "match"),
    [
        (ESNClassifier(feedback=True), {}, TypeError, "got ESNClassifier"),
        (chaotic(feedback=False), {}, ValueError, "feedback=False"),
        (chaotic(readout=Ridge()), {}, ValueError, r"readout=Ridge\(\).*readout=None"),
        (chaotic(sequence_column=0), {}, ValueError, "sequence_column=0"),
        (chaotic(washout="measured"), {}, ValueError, 'washout="measured"'),
        (chaotic(washout=300), {}, ValueError, "washout=300 leaves nothing"),
        (chaotic(n_units=0), {}, ValueError, "n_units=0"),
        (chaotic(), {"alpha": 0.0}, ValueError, "alpha=0 must be above 0"),
        (chaotic(), {"forgetting": 1.5}, ValueError, "forgetting=1.5"),
        (chaotic(), {"n_steps_between": 0}, ValueError, "n_steps_between=0 must be at least 1"),
        (chaotic(), {"n_test": 300}, ValueError, "n_test=300 must be smaller"),
        (chaotic(), {"feed_corrected": "no"}, TypeError, "feed_corrected"),
        (chaotic(), {"initial_state": "noisy"}, ValueError, "initial_state"),
        (chaotic(), {"exog": np.zeros((9, 1))}, ValueError, "n_samples=9"),
        (chaotic(), {"exog": [np.zeros((300, 1))]}, ValueError, "one sequence"),
        (chaotic(), {"y": WAVES[:1]}, ValueError, "at least 2"),
        (chaotic(), {"y": np.full(300, np.nan)}, ValueError, "NaN"),
        (
            chaotic(activation="relu", spectral_radius=1e3, leak_rate=1.0, washout=200),
            {},  # before the first correction the states grow by themselves
            ValueError,
            "diverged at step",
        ),
    ],
)
def test_errors(esn, options, error, match):
    with pytest.raises(error, match=match):
        force_train(esn, **{"y": WAVES[:300], **options})


def test_a_fitted_network_needs_the_columns_it_knows():
    X = np.zeros((300, 2))
    fitted = chaotic(20).fit(X, WAVES[:300])
    with pytest.raises(ValueError, match=r"Pass exog of shape \(300, 2\)"):
        force_train(fitted, WAVES[:300])
    with pytest.raises(ValueError, match="2 outputs"):
        force_train(fitted, PAIR[:300], exog=X)


# --- the heavier sweep ------------------------------------------------------------------------

PERIOD = 600
SLOW = 2 * np.pi * np.arange(9000) / PERIOD
PATTERNS = {
    "sines": np.sin(SLOW) + np.sin(2 * SLOW) / 2 + np.sin(3 * SLOW) / 6 + np.sin(4 * SLOW) / 3,
    "triangle": 1 - 4 * np.abs(np.arange(9000) / PERIOD % 1 - 0.5),
}


@pytest.mark.slow_cases("values")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", PATTERNS)
def test_slow_patterns_run_alone(name, seed):
    y = PATTERNS[name]
    model = force_train(chaotic(300, random_state=seed), y[:6000])
    error = np.sqrt(np.mean((model.forecast(3000) - y[6000:]) ** 2))
    assert error < 0.1 * y.std()


@pytest.mark.slow
def test_the_lorenz_attractor_continues():
    orbit = lorenz(16000, dt=0.01)
    orbit = (orbit - orbit.mean(axis=0)) / (2 * orbit.std(axis=0))
    first = []
    for seed in range(3):
        esn = chaotic(300, spectral_radius=1.2, leak_rate=0.3, random_state=seed)
        model = force_train(esn, orbit[:8000], alpha=1e-4, forgetting=0.999)
        rows = model.forecast(8000)
        first.append(np.abs(rows[:110] - orbit[8000:8110]).max())
        # a copy of the attractor: ranges, and the map of maxima of z
        np.testing.assert_allclose(rows.std(axis=0), orbit.std(axis=0), rtol=0.2)
        known, seen = maxima(orbit[:, 2]), maxima(rows[:, 2])
        order = np.argsort(known[:-1])
        expected = np.interp(seen[:-1], known[:-1][order], known[1:][order])
        assert len(seen) > 80
        assert np.median(np.abs(expected - seen[1:])) < 0.1 * known.std()
    # for a Lyapunov time most are right: chaotic networks make much of any rounding in training
    assert np.median(first) < 0.15


def maxima(z):
    inner = z[1:-1]
    return inner[(inner > z[:-2]) & (inner > z[2:])]

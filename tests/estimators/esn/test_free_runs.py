"""A penalty chosen by free runs in held-out rows equals a choice from explicit forecasts."""

import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir import ESNClassifier, ESNRegressor, NVARRegressor, forecast, load, save
from reservoir.datasets import lorenz, mackey_glass, roessler
from reservoir.estimators.esn import readout_training
from reservoir.model_selection import ClosedLoopSearchCV, make_forecast_pairs
from reservoir.readouts import GramAccumulator, ridge_path

pytestmark = pytest.mark.one_engine

ALPHAS = [1e-9, 1e-6, 1e-3, 1.0]
SERIES = 3.0 + 2.0 * mackey_glass(241, random_state=0)
X, Y = make_forecast_pairs(SERIES)
FLOW = lorenz(241, dt=0.02, random_state=0) / 10
SEASON = np.cos(0.3 * np.arange(240))[:, None]
MISSING = np.where(np.isin(np.arange(240), [30, 205, 206, 239])[:, None], np.nan, Y)


def esn(**params):
    return ESNRegressor(
        **{"n_units": 30, "random_state": 0, "initial_state": "zeros", "washout": 20}
        | {"alpha": ALPHAS, "alpha_selection": "forecast"}
        | params
    )


def nvar(**params):
    return NVARRegressor(
        2, initial_state="steady", washout=20, alpha=ALPHAS, alpha_selection="forecast", **params
    )


def by_hand(model, heads, tables, places, n_steps):
    """Return the median over places of the geometric mean error of forecasts, for each penalty.

    `heads` and `tables` are pairs X, y: what is learned from, and the sequence of each place.
    """
    learned = np.concatenate([heads[1]] if isinstance(heads[1], np.ndarray) else heads[1])
    spread = np.nanstd(learned, axis=0)
    found = []
    for alpha in ALPHAS:
        fitted = clone(model).set_params(alpha=alpha).fit(*heads)
        logs = []
        for i, t in places:
            rows, followed = (table[i] for table in tables)
            n_outputs = followed.shape[1]
            exog = rows[t + 1 : t + n_steps, n_outputs:] if rows.shape[1] > n_outputs else None
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # of loops that leave the range
                said = forecast(fitted, n_steps, context=rows[: t + 1], exog=exog)
            error = np.sqrt(np.mean(((said - followed[t : t + n_steps]) / spread) ** 2, axis=1))
            logs.append(np.nanmean(np.log10(np.clip(error, 1e-9, 1.0))))
        found.append(10 ** np.median(logs))
    return found


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(
    ("model", "inputs", "targets"),
    [
        (esn(), X, Y),
        (esn(solver="qr", fit_intercept=False), X, Y),
        (esn(noise=1e-3), X, Y),
        (esn(n_lags=3), np.hstack([X, SEASON]), Y),
        (esn(dtype="float32"), FLOW[:-1], FLOW[1:]),
        (esn(missing_targets="skip"), X, MISSING),
        (nvar(increments=True), FLOW[:-1], FLOW[1:]),
    ],
    ids=["network", "factor", "noise", "exogenous", "three", "missing", "increments"],
)
def test_the_choice_is_that_of_forecasts_by_hand(model, inputs, targets):
    # 240 rows, 20 of them washout, of the rest 44 held out: loops of 22 steps
    places = [(0, t) for t in np.arange(8) * 22 // 7 + 196]
    fitted = clone(model).fit(inputs, targets)
    expected = by_hand(model, (inputs[:196], targets[:196]), ([inputs], [targets]), places, 22)
    assert fitted.alpha_scores_.shape == (4, 1)
    rtol = 0.05 if model.dtype == "float32" else 1e-4  # errors grow along a loop
    np.testing.assert_allclose(fitted.alpha_scores_[:, 0], expected, rtol=rtol)
    assert fitted.alpha_ == ALPHAS[np.argmin(expected)]
    assert fitted.alpha_selection_ == "forecast"
    # in the end the ridge sees all rows
    whole = clone(model).set_params(alpha=fitted.alpha_).fit(inputs, targets)
    np.testing.assert_allclose(
        fitted.coef_, whole.coef_, rtol=0, atol=1e-6 * np.abs(whole.coef_).max()
    )


def test_loops_take_no_more_than_fifty_steps():
    inputs, targets = make_forecast_pairs(mackey_glass(621, random_state=1))
    fitted = esn().fit(inputs, targets)
    places = [(0, t) for t in np.arange(8) * 70 // 7 + 500]
    expected = by_hand(esn(), (inputs[:500], targets[:500]), ([inputs], [targets]), places, 50)
    np.testing.assert_allclose(fitted.alpha_scores_[:, 0], expected, rtol=1e-4)


@pytest.mark.parametrize("feedback", [False, True])
def test_loops_are_those_of_a_closed_loop_search(feedback):
    parts = [slice(0, 240), slice(0, 190), slice(50, 240)]
    inputs = [(SEASON if feedback else X)[part] for part in parts]
    targets = [Y[part] for part in parts]
    model = esn(feedback=feedback, washout=0, spectral_radius=0.5)
    fitted = clone(model).fit(inputs, targets)
    n_steps = (48 + 38 + 38) // 3 // 2
    search = ClosedLoopSearchCV(
        model, {"alpha": ALPHAS}, horizon=n_steps, strategy="holdout", washout=0
    ).fit(inputs, targets)
    logs = np.array([-search.cv_results_[f"split{k}_test_score"] for k in range(8)])
    np.testing.assert_allclose(fitted.alpha_scores_[:, 0], 10 ** np.median(logs, axis=0), rtol=1e-4)


def test_of_many_sequences_whole_ones_are_held_out():
    pairs = [make_forecast_pairs(SERIES[k : k + 31]) for k in range(0, 200, 20)]
    inputs, targets = map(list, zip(*pairs, strict=True))
    fitted = esn(washout=6).fit(inputs, targets)
    # 10 sequences of 24 rows behind the washout: the last two, loops of 12 steps
    picks = np.arange(8) * 25 // 7
    places = [(8 + pick // 13, 6 + pick % 13) for pick in picks]
    expected = by_hand(esn(washout=6), (inputs[:8], targets[:8]), (inputs, targets), places, 12)
    np.testing.assert_allclose(fitted.alpha_scores_[:, 0], expected, rtol=1e-4)


def test_targets_in_other_units_are_converted_to_those_of_the_inputs():
    plain = esn().fit(X, Y)
    scaled = esn().fit(X, 7.0 - 300.0 * Y)
    np.testing.assert_allclose(scaled.alpha_scores_, plain.alpha_scores_, rtol=1e-4)
    assert scaled.alpha_ == plain.alpha_
    # so the rule goes with a pipeline, whose scaler y does not pass
    pipe = make_pipeline(StandardScaler(), esn()).fit(X, Y)
    within = esn().fit(StandardScaler().fit_transform(X), Y)
    np.testing.assert_array_equal(pipe[-1].alpha_scores_, within.alpha_scores_)
    assert np.isfinite(forecast(pipe, 10)).all()


def test_rows_of_weight_zero_do_not_count():
    weights = np.isfinite(MISSING[:, 0]).astype(float)
    weighed = esn().fit(X, Y, sample_weight=3 * weights)
    skipped = esn(missing_targets="skip").fit(X, MISSING, sample_weight=np.full(240, 3.0))
    np.testing.assert_allclose(weighed.alpha_scores_, skipped.alpha_scores_, rtol=1e-6)


def test_workers_change_no_bit(monkeypatch):
    monkeypatch.setattr(readout_training, "_BATCH_ROWS", 100)  # several batches of few rows
    inputs, targets = [X, X[40:], X[:180], X[20:200]], [Y, Y[40:], Y[:180], Y[20:200]]
    alone = esn().fit(inputs, targets)
    with joblib.parallel_backend("threading"):
        together = esn(n_jobs=2).fit(inputs, targets)
    np.testing.assert_array_equal(alone.alpha_scores_, together.alpha_scores_)
    np.testing.assert_array_equal(alone.coef_, together.coef_)


def test_of_equal_errors_the_larger_penalty_wins():
    # without an intercept large penalties leave outputs of 0, far from all rows: errors count as 1
    model = esn(alpha=[1e8, 1e12, 1e10], fit_intercept=False)
    fitted = model.fit(X, Y)
    np.testing.assert_array_equal(fitted.alpha_scores_, np.ones((3, 1)))
    assert fitted.alpha_ == 1e12


def test_it_is_saved_and_described(tmp_path):
    model = esn().fit(X, Y)
    save(model, tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.alpha_scores_, model.alpha_scores_)
    words = again._repr_html_inner()
    assert "by closed loops in the last rows" in words
    assert f"{model.alpha_scores_.min():.3g} standard deviations of y" in words
    session = again.stream()
    session.learn(X[-5:], Y[-5:])
    assert session.predict(X[:1]).shape == (1, 1)


@pytest.mark.parametrize(
    ("model", "inputs", "targets", "message"),
    [
        (esn(), X, np.sin(Y), r"y\[t\] == X\[t\+1\].*y\[0, 0\]=.*make_forecast_pairs"),
        (esn(), X, np.zeros_like(Y), r"y\[t\] == X\[t\+1\]"),
        (esn(), X, np.hstack([Y, Y]), r"y has 2 columns and X has 1. The first columns of X must"),
        (esn(alpha_per_target=True), X, Y, "alpha_per_target=True .* Use alpha_per_target=False"),
        (esn(forgetting=0.9), X, Y, r"alpha_selection='forecast' .*forgetting=0.9.* Use"),
        (
            esn(washout=225),
            X,
            Y,
            r"3 held-out rows in 1 seq.* 12 rows .* 4 held-out rows in each .*washout, or",
        ),
        (
            esn(missing_targets="skip"),
            X,
            np.where(np.arange(240)[:, None] < 196, Y, np.nan),
            "all 44 held-out targets are missing",
        ),
        (esn(time_column=1), np.hstack([X, np.arange(240.0)[:, None]]), Y, "=1: in a closed loop"),
        (
            ESNClassifier(20, alpha_selection="forecast"),
            X,
            np.repeat([0, 1], 120),
            "the outputs of ESNClassifier are scores of labels",
        ),
    ],
    ids=["other y", "constant", "wide", "each", "forgets", "few", "unknown", "times", "labels"],
)
def test_what_no_free_run_can_judge_raises(model, inputs, targets, message):
    with pytest.raises(ValueError, match=message):
        model.fit(inputs, targets)


def test_chunks_and_bare_sums_raise():
    with pytest.raises(ValueError, match=r"partial_fit cannot choose alpha .*'forecast'"):
        esn().partial_fit(X, Y)
    with pytest.raises(ValueError, match=r"ESNRegressor\(alpha_selection='forecast'\)"):
        ridge_path(GramAccumulator(1, 1).update(X, Y), ALPHAS, selection="forecast")
    # where there is nothing to choose it asks nothing of the data
    assert esn(alpha=1e-3).fit(X, np.sin(Y)).alpha_ == 1e-3


@pytest.mark.slow
def test_free_runs_of_a_noisy_flow_are_no_worse_than_by_the_default():
    errors = {"auto": [], "forecast": []}
    for seed in range(7):
        clean = roessler(1400, dt=0.1, random_state=seed)
        clean = (clean - clean.mean(axis=0)) / clean.std(axis=0)
        noisy = clean + 0.01 * np.random.default_rng(seed).normal(size=clean.shape)
        inputs, targets = make_forecast_pairs(noisy[:1001])
        for rule, found in errors.items():
            model = ESNRegressor(150, alpha_selection=rule, random_state=seed)
            said = model.fit(inputs, targets).forecast(60, clip=True)
            found.append(np.sqrt(np.mean((said - clean[1001:1061]) ** 2)))
    assert np.median(errors["forecast"]) <= np.median(errors["auto"])

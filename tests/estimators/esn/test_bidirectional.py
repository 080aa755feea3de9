"""`bidirectional=True`: echo state networks whose readout receives runs in both directions."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir import ESNClassifier, ESNRegressor, RNNRegressor, force_train, forecast
from reservoir.dynamics import both_directions, run
from reservoir.model_selection import ClosedLoopSearchCV, backtest, make_forecast_pairs
from reservoir.stability import certify_loop

pytestmark = pytest.mark.both_engines
rng = np.random.default_rng(0)
X = rng.normal(size=(700, 2))
Y = np.column_stack([np.roll(X[:, 0], -3), np.roll(X[:, 1], 1)])
LABELS = np.array(["down", "level", "up"])[np.digitize(Y[:, 0], [-0.4, 0.4])]
CUTS = [150, 155, 300, 480]
SERIES, TARGETS, NAMES = (np.split(each, CUTS) for each in (X, Y, LABELS))


def esn(kind=ESNRegressor, **params):
    options = {"n_units": 20, "alpha": 1e-2, "random_state": 0, "initial_state": "zeros", **params}
    return kind(bidirectional=True, **options)


def naive(model, rows, start=None):
    """Features from two runs; `start` contains the states before and after the rows."""
    ahead, last = (None, None) if start is None else np.split(start, 2)
    runs = (
        run(model.reservoir_, rows, initial_state=ahead),
        run(model.reservoir_, rows[::-1], initial_state=last)[::-1],
    )
    if model.augment == "square":
        runs = [np.hstack([states, states**2]) for states in runs]
    return np.hstack([runs[0], *([rows] if model.include_input else []), runs[1]])


def close(one, other, atol=1e-8):
    np.testing.assert_allclose(one, other, rtol=0, atol=atol)


#: Parameters of a network that holds the last rows.
RECENT = {"leak_rate": 1.0, "input_scaling": 0.1, "initial_state": "zeros", "random_state": 0}


# --- learning and predicting ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"augment": "square", "leak_rate": (1.0, 0.3), "include_input": False},
        {"solver": "qr", "fit_intercept": False},
    ],
)
def test_a_fit_is_a_ridge_on_the_states_of_two_runs(params):
    model = esn(washout=15, **params).fit(X[:500], Y[:500])
    table = naive(model, X[:500])
    ridge = Ridge(1e-2, fit_intercept=model.fit_intercept).fit(table[15:-15], Y[15:485])
    close(model.coef_, ridge.coef_)
    close(model.predict(X[:500]), ridge.predict(table))
    close(model.predict(X[500:]), ridge.predict(naive(model, X[500:])))
    n = model.n_units
    both = np.hstack([run(model.reservoir_, X[:500]), run(model.reservoir_, X[499::-1])[::-1]])
    close(model.states(X[:500]), both)
    close(model.state_, both[-1])
    assert model.state_.shape == (2 * n,)
    assert model.washout_.tolist() == [15]


def test_later_rows_are_seen():
    """y is the input three rows later."""
    scores = [
        ESNRegressor(100, bidirectional=both, n_lags=1, **RECENT)
        .fit(X[:500], Y[:500, 0])
        .score(X[500:], Y[500:, 0])
        for both in (False, True)
    ]
    assert scores[0] < 0.05
    assert scores[1] > 0.95


def test_sequences_are_runs_alone_and_workers_change_nothing(monkeypatch):
    model = esn(washout=2).fit(SERIES, TARGETS)
    tables = [naive(model, rows) for rows in SERIES]
    kept = [np.concatenate([each[2:-2] for each in rows]) for rows in (tables, TARGETS)]
    ridge = Ridge(1e-2).fit(*kept)
    close(model.coef_, ridge.coef_)
    for rows, table, said in zip(SERIES, tables, model.predict(SERIES), strict=True):
        close(said, ridge.predict(table))
        close(model.predict(rows), said)
    close(model.states(SERIES)[3], model.states(SERIES[3]))
    np.testing.assert_array_equal(esn(washout=2, n_jobs=2).fit(SERIES, TARGETS).coef_, model.coef_)
    monkeypatch.setattr(both_directions, "_PART_SIZE", 8 * 20 * 50)
    close(esn(washout=2).fit(SERIES, TARGETS).coef_, model.coef_)


def test_weights_and_missing_targets_leave_rows_to_the_runs():
    weights = rng.uniform(0.2, 2.0, len(X))
    weights[300:320] = 0
    targets = Y.copy()
    targets[100:110] = np.nan
    model = esn(missing_targets="skip", washout=10).fit(X, targets, weights)
    known = np.r_[10:100, 110:690]
    ridge = Ridge(1e-2).fit(naive(model, X)[known], Y[known], weights[known])
    close(model.coef_, ridge.coef_)
    assert np.isfinite(model.score(X, targets, weights))


@pytest.mark.parametrize("rule", ["gcv", "reml", "reml_ar1", "halves", "blocked", "holdout"])
def test_each_rule_chooses_from_the_rows_between(rule):
    """The targets of the rows that are excluded at both ends do not matter."""
    options = {"alpha": np.logspace(-3, 1, 3), "alpha_selection": rule, "washout": 20}
    model = esn(**options).fit(SERIES[2:], TARGETS[2:])
    other = [y.copy() for y in TARGETS[2:]]
    for y in other:
        y[:20] = 9.0
        y[-20:] = 9.0
    again = esn(**options).fit(SERIES[2:], other)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    np.testing.assert_array_equal(again.alpha_scores_, model.alpha_scores_)
    assert model.alpha_ in options["alpha"]


@pytest.mark.parametrize("readout", [None, LogisticRegression(max_iter=1000)])
def test_labels_of_recordings(readout):
    options = {"readout": readout, "class_weight": "balanced", **RECENT}
    model = ESNClassifier(60, bidirectional=True, **options).fit(SERIES, NAMES)
    assert np.mean([model.score(*pair) for pair in zip(SERIES, NAMES, strict=True)]) > 0.75
    one = ESNClassifier(60, **options).fit(SERIES, NAMES)
    assert one.score(X, LABELS) < 0.6
    for rows, said in zip(SERIES, model.predict_proba(SERIES), strict=True):
        close(said.sum(axis=1), 1)
        close(model.predict_proba(rows), said, 1e-7)
    assert model.decision_function(X).shape == (700, 3)


def test_where_the_runs_start():
    model = esn(washout=0).fit(X[:200], Y[:200])
    rows = X[200:260]

    def expected(start):
        return naive(model, rows, start) @ model.coef_.T + model.intercept_

    start = rng.uniform(-0.5, 0.5, 40)
    close(model.predict(rows, initial_state=start), expected(start))
    ahead = np.concatenate([start[:20], np.zeros(20)])
    close(model.predict(rows, initial_state=start[:20]), expected(ahead))
    close(model.predict([rows, rows], initial_state=[start, ahead])[1], expected(ahead))
    close(model.predict([rows, rows], initial_state="last")[0], expected(np.zeros(40)))
    ends = [run(model.reservoir_, np.tile(row, (500, 1)))[-1] for row in rows[[0, -1]]]
    close(model.predict(rows, initial_state="steady"), expected(np.concatenate(ends)))
    assert np.abs(expected(start) - expected(ahead)).max() > 1e-3
    with pytest.raises(ValueError, match=r"array of shape \(40,\).*got shape \(41,\)"):
        model.predict(rows, initial_state=np.zeros(41))


def test_the_measured_washout_is_that_of_the_slower_run():
    rows, y = X[:200], Y[:200]
    model = esn(washout="measured", spectral_radius=0.5).fit(rows, y)
    single = {"spectral_radius": 0.5, "random_state": 0, "washout": "measured"}
    each = [ESNRegressor(20, **single).fit(way, y).washout_[0] for way in (rows, rows[::-1])]
    assert model.washout_.tolist() == [max(each)]


def test_noise_certificates_and_single_precision():
    noisy = [esn(noise=0.05).fit(SERIES, TARGETS).coef_ for _ in range(2)]
    np.testing.assert_array_equal(*noisy)
    assert np.abs(noisy[0] - esn().fit(SERIES, TARGETS).coef_).max() > 1e-3
    stable = {"bias": "stable", "topology": "ring", "spectral_radius": 0.99}
    assert esn(**stable).fit(X, Y).certificate_.holds
    single = esn(dtype="float32").fit(X, Y)
    assert single.predict(X).dtype == single.state_.dtype == np.float32
    close(single.predict(X), esn().fit(X, Y).predict(X), 1e-3)


# --- scikit-learn, files -------------------------------------------------------------------------


def test_searches_and_pipelines():
    grid = {"esn__bidirectional": [False, True]}
    pipe = Pipeline([("scale", StandardScaler()), ("esn", esn(**RECENT, n_units=60))])
    search = GridSearchCV(pipe, grid, cv=TimeSeriesSplit(2)).fit(X, Y[:, 0])
    assert search.best_params_ == {"esn__bidirectional": True}
    assert search.best_score_ > 0.8


def test_the_table_of_a_notebook_shows_both_directions():
    page = esn(washout=10).fit(X, Y)._repr_html_inner()
    assert "runs over each sequence forwards and backwards" in page
    assert "over 680 rows, without 20 rows of washout" in page


# --- what is refused -----------------------------------------------------------------------------


def test_a_backtest_is_refused_as_forecasts_are():
    pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=r"^forecast needs.*bidirectional=False"):
        backtest(esn(), np.sin(np.arange(200) / 3), horizon=3, n_origins=2)


def test_what_cannot_read_later_rows_is_refused_by_name():
    inputs, targets = make_forecast_pairs(np.sin(np.arange(200) / 3))
    model = esn().fit(inputs, targets)
    labels = esn(ESNClassifier).fit(X, LABELS)
    pipe = make_pipeline(StandardScaler(), esn()).fit(inputs, targets)
    new = np.sin(np.arange(200, 220) / 3)[:, None]
    before = pickle.dumps(model)
    for refused, what in (
        (lambda: model.forecast(3), "forecast needs"),
        (lambda: model.forecast(3, context=inputs), "forecast needs"),
        (lambda: forecast(pipe, 3), "forecast needs"),
        (lambda: model.stream(), "stream needs"),
        (lambda: labels.stream(), "stream needs"),
        (lambda: model.partial_fit(inputs, targets), "partial_fit needs"),
        (lambda: clone(model).partial_fit(inputs, targets), "partial_fit needs"),
        (lambda: labels.partial_fit(X, LABELS), "partial_fit needs"),
        (lambda: model.predict(new, return_state=True), "return_state=True needs"),
        (lambda: labels.predict_proba(X, return_state=True), "return_state=True needs"),
    ):
        match = rf"^{what}.*bidirectional=True reads rows from the end.*bidirectional=False"
        with pytest.raises(ValueError, match=match):
            refused()
    assert pickle.dumps(model) == before
    model.set_params(bidirectional=False)
    with pytest.raises(ValueError, match=r"^partial_fit needs"):
        model.partial_fit(inputs, targets)


def test_no_run_ends_where_a_recording_begins():
    """`initial_state="last"`, the default, is zeros for a single recording as for several."""
    for rows, targets in ((X, Y), (SERIES, TARGETS)):
        one, zeros = esn(initial_state="last").fit(rows, targets), esn().fit(rows, targets)
        np.testing.assert_array_equal(one.coef_, zeros.coef_)
        np.testing.assert_array_equal(one.predict(X), zeros.predict(X))


@pytest.mark.parametrize(
    ("params", "error", "match"),
    [
        ({"feedback": True}, ValueError, "cannot be combined with feedback=True.*back from row"),
        ({"n_lags": 3}, ValueError, "cannot be combined with n_lags=3.*use n_lags=1|Use n_lags=1"),
        ({"time_column": 1, "leak_rate": 0.5}, ValueError, "combined with time_column=1"),
        (
            {"alpha": [1e-3, 1.0], "alpha_selection": "forecast"},
            ValueError,
            "'forecast' runs closed loops, but bidirectional=True",
        ),
        ({"washout": 200}, ValueError, "washout=200 leaves nothing.*at the end.*n_samples=400"),
    ],
)
def test_what_cannot_go_together_raises(params, error, match):
    rows = np.column_stack([X[:400, 0], np.arange(400.0)])
    with pytest.raises(error, match=match):
        esn(**params).fit(rows, Y[:400])


@pytest.mark.parametrize("value", ["yes", 2, None])
def test_bad_values_raise(value):
    with pytest.raises(TypeError, match="bidirectional"):
        ESNRegressor(10, bidirectional=value).fit(X, Y)


def test_washout_names_the_sequence():
    with pytest.raises(ValueError, match="sequence 1 has n_samples=5"):
        esn(washout=3).fit(SERIES, TARGETS)


def test_networks_and_loops_need_one_direction():
    inputs, targets = make_forecast_pairs(np.sin(np.arange(200) / 3))
    model = esn().fit(inputs, targets)
    match = r"bidirectional=True cannot be trained as a recurrent network.*cell is bidirectional"
    with pytest.raises(ValueError, match=match):
        model.to_rnn()
    with pytest.raises(ValueError, match=match):
        RNNRegressor(20, init=esn(), include_input=True).fit(inputs, targets)
    with pytest.raises(TypeError, match="the model has bidirectional=True"):
        certify_loop(model)
    with pytest.raises(ValueError, match="combined with feedback=True"):
        force_train(esn(feedback=True), targets.ravel())
    with pytest.raises(ValueError, match="forecast needs states"):
        ClosedLoopSearchCV(esn(), {"alpha": [1e-3, 1e-6]}, horizon=20, n_starts=2).fit(
            inputs, targets
        )

"""The closed-loop search equals a naive one: each candidate alone, forecast by forecast."""

import pickle
import warnings

import joblib
import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PowerTransformer, StandardScaler

from helpers.toys.drift import Drift
from reservoir import ESNRegressor, RNNRegressor, forecast, save
from reservoir.datasets import lorenz, mackey_glass
from reservoir.dynamics import run
from reservoir.estimators.forecasting.loop_trials import run_trials
from reservoir.model_selection import (
    ClosedLoopSearchCV,
    ContextSplit,
    PerStep,
    forecast_scorer,
    make_forecast_pairs,
    stack_sequences,
)

pytestmark = pytest.mark.one_engine

SERIES = 3.0 + 2.0 * mackey_glass(700, random_state=0).ravel()
X, Y = make_forecast_pairs(SERIES)
HORIZON = 25


def esn(**params):
    return ESNRegressor(
        40,
        **{"random_state": 0, "leak_rate": 0.3, "input_scaling": 0.3, "initial_state": "zeros"}
        | params,
    )


def loop_errors(model, X, y, places, horizon, spread):
    """Return the errors of forecasts with context, in spreads, (n_places, horizon)."""
    y = np.reshape(y, (len(y), -1))
    errors = []
    for t in places:
        exog = X[t + 1 : t + horizon, y.shape[1] :]
        exog = {"exog": exog} if exog.shape[1] else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of loops that leave the range
            said = forecast(model, horizon, context=X[: t + 1], **exog).reshape(horizon, -1)
        errors.append(np.sqrt((((said - y[t : t + horizon]) / spread) ** 2).mean(axis=1)))
    return np.array(errors)


def log_score(*args):
    """Return the default score from forecasts with context, one score per place."""
    return -np.log10(np.clip(loop_errors(*args), 1e-9, 1)).mean(axis=1)


def steepness(*args):
    """Return what a change of all forecasts by one spread does to the score, to first order."""
    errors = loop_errors(*args)
    return ((errors < 1) / errors).mean(axis=1) / np.log(10)


def rounds(strategy, n, horizon, n_starts):
    """Return (rows to learn from, places) of each fit, for one sequence."""
    if strategy == "recycle":
        return [(n, np.linspace(min(100, n // 10), n - horizon, n_starts).astype(int))]
    if strategy == "holdout":
        kept = n - n // 5
        return [(kept, np.linspace(kept, n - horizon, n_starts).astype(int))]
    sizes = n - horizon - np.linspace(n - horizon - n // 2, 0, n_starts).astype(int)
    return [(size, [size]) for size in sizes]


def naive_scores(estimator, candidates, strategy, X, y, horizon, n_starts, score=log_score):
    table = []
    for params in candidates:
        scores = []
        for size, places in rounds(strategy, len(X), horizon, n_starts):
            model = clone(estimator).set_params(**params).fit(X[:size], y[:size])
            spread = np.std(y[:size], axis=0)
            scores.append(score(model, X, y, places, horizon, spread))
        table.append(np.concatenate(scores))
    return np.array(table)


def splits_of(search):
    found = search.cv_results_
    return np.stack([found[f"split{i}_test_score"] for i in range(search.n_splits_)], axis=1)


# ------------------------------------------------------------------------------ the naive search

WITH_EXOG = np.column_stack([X, np.sin(0.2 * np.arange(len(X)))])
TWO = np.column_stack([SERIES[:-5], SERIES[5:]])
PIPE = make_pipeline(StandardScaler(), esn())
TARGET = TransformedTargetRegressor(PIPE, transformer=StandardScaler())
LOGS = TransformedTargetRegressor(
    make_pipeline(FunctionTransformer(np.log), esn()), func=np.log, inverse_func=np.exp
)
CASES = {
    "network": (esn(), "", X, Y),
    "float32": (esn(dtype="float32"), "", X, Y),
    "steady": (esn(initial_state="steady"), "", X, Y),
    "two outputs": (esn(), "", TWO[:-1], TWO[1:]),
    "exog": (esn(), "", WITH_EXOG, Y),
    "pipeline": (PIPE, "esnregressor__", X, Y),
    "target": (TARGET, "regressor__esnregressor__", X, Y),
    "target, exog": (TARGET, "regressor__esnregressor__", WITH_EXOG, Y),
    "logarithms": (LOGS, "regressor__esnregressor__", X, Y),
    "logarithms, exog": (LOGS, "regressor__esnregressor__", WITH_EXOG + np.array([0, 2]), Y),
}


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("strategy", ["recycle", "holdout", "rolling"])
@pytest.mark.parametrize("case", CASES)
def test_scores_are_those_of_a_naive_search(case, strategy):
    estimator, prefix, X, y = CASES[case]
    grid = {f"{prefix}alpha": [1e-2, 1e-6], f"{prefix}leak_rate": [0.3, 0.8]}
    search = ClosedLoopSearchCV(estimator, grid, horizon=HORIZON, n_starts=3, strategy=strategy)
    search.fit(X, y)
    candidates = search.cv_results_["params"]
    assert len(candidates) == 4
    naive = estimator, candidates, strategy, X, y, HORIZON, 3
    expected = naive_scores(*naive)
    # sums over 700 rows, merged in another order, move coefficients by 700 eps / alpha = 1.6e-7 of
    # what is fitted; a score moves with forecasts the more, the smaller an error happens to be
    moved = (1e-3 if case == "float32" else 1.6e-7) * naive_scores(*naive, steepness)
    found = splits_of(search)
    assert (np.abs(found - expected) <= moved).all()
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], found.mean(axis=1))
    np.testing.assert_allclose(search.cv_results_["std_test_score"], found.std(axis=1))
    mean = expected.mean(axis=1)
    assert search.best_index_ == np.argmax(mean)
    assert search.best_params_ == candidates[search.best_index_]
    # the winner knows all rows, and was fitted with its own parameters
    best = clone(estimator).set_params(**search.best_params_).fit(X, y)
    np.testing.assert_array_equal(search.predict(X[:50]), best.predict(X[:50]))


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("container", ["list", "ids", "index", "array"])
@pytest.mark.parametrize("strategy", ["recycle", "holdout", "rolling"])
def test_several_sequences(container, strategy):
    lengths = (230, 230, 230) if container == "array" else (300, 200, 20)
    parts = np.split(SERIES[: sum(lengths)], np.cumsum(lengths)[:-1])
    Xs, ys = make_forecast_pairs(parts)
    estimator = esn()
    data = Xs, ys
    if container == "ids":
        estimator.set_params(sequence_column=0)
        data = stack_sequences(Xs, ys)[:2]
    elif container == "array":
        data = np.stack(Xs), np.stack(ys)
    elif container == "index":
        pd = pytest.importorskip("pandas")
        index = [(name, t) for name, part in zip("abc", Xs, strict=True) for t in range(len(part))]
        index = pd.MultiIndex.from_tuples(index)
        data = pd.DataFrame(np.concatenate(Xs), index=index), pd.Series(np.concatenate(ys), index)
    alphas = [1e-6, 1e-3]
    search = ClosedLoopSearchCV(
        estimator, {"alpha": alphas}, horizon=30, n_starts=5, strategy=strategy
    ).fit(*data)
    # the places, counted over all sequences
    n = [len(part) for part in Xs]
    first = {"recycle": [k // 10 for k in n], "holdout": [k - k // 5 for k in n]}.get(strategy)
    if strategy == "rolling":
        cuts = [[int(k - 30 - (k - 30 - k // 2) * (4 - j) // 4) for k in n] for j in range(5)]
        fits = [
            (
                [c if k > 60 else k for c, k in zip(cut, n, strict=True)],
                [(i, cut[i]) for i in range(3) if n[i] > 60],
            )
            for cut in cuts
        ]
    else:
        every = [(i, t) for i in range(3) for t in range(max(first[i], 1), n[i] - 29)]
        picks = [every[k] for k in np.linspace(0, len(every) - 1, 5).astype(int)]
        fits = [(n if strategy == "recycle" else first, picks)]
    for alpha, scores in zip(alphas, splits_of(search), strict=True):
        expected = []
        for sizes, places in fits:
            model = esn(alpha=alpha).fit(
                [part[:k] for part, k in zip(Xs, sizes, strict=True)],
                [part[:k] for part, k in zip(ys, sizes, strict=True)],
            )
            spread = np.std(np.concatenate([p[:k] for p, k in zip(ys, sizes, strict=True)]))
            one = [log_score(model, Xs[i], ys[i], [t], 30, spread)[0] for i, t in places]
            expected += [np.mean(one)] if strategy == "rolling" else one
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-6)


def test_feedback_weights_receive_the_targets_before_a_loop():
    t = np.arange(500)
    U, y = np.sin(0.2 * t)[:, None], np.sin(0.2 * t - 0.5) ** 3
    estimator = ESNRegressor(30, feedback=True, feedback_scaling=0.5, random_state=0)
    search = ClosedLoopSearchCV(estimator, {"alpha": [1e-4, 1e-2]}, horizon=20, n_starts=2)
    search.fit(U, y)
    for alpha, scores in zip([1e-4, 1e-2], splits_of(search), strict=True):
        model = clone(estimator).set_params(alpha=alpha).fit(U, y)
        teacher = np.concatenate([[0.0], y[:-1]])[:, None]
        states = run(model.reservoir_, U, feedback=teacher)
        for k, place in enumerate([50, 480]):
            start = np.concatenate([states[place - 1], y[place - 1 : place]])
            said = model.predict(U[place : place + 20], initial_state=start)
            errors = np.abs(said - y[place : place + 20]) / y.std()
            expected = -np.log10(np.clip(errors, 1e-9, 1)).mean()
            assert scores[k] == pytest.approx(expected, abs=1e-6)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    "model",
    [
        RNNRegressor(4, max_iter=1, random_state=0, initial_state="zeros"),
        RNNRegressor(
            6, cell="gru", init="orthogonal", max_iter=1, random_state=0, initial_state="zeros"
        ),
        esn(readout=Ridge(1e-4)),
        make_pipeline(StandardScaler(), PowerTransformer(), esn(alpha=1e-3)),
    ],
    ids=["rnn", "gru", "readout of one's own", "no affine maps"],
)
def test_what_has_no_path_is_run_loop_by_loop(model):
    X, Y = make_forecast_pairs(SERIES[:120])
    if hasattr(model, "steps"):
        model = TransformedTargetRegressor(model, transformer=StandardScaler())
    search = ClosedLoopSearchCV(model, {}, horizon=10, n_starts=2).fit(X, Y)
    expected = naive_scores(model, [{}], "recycle", X, Y, 10, 2)
    np.testing.assert_allclose(splits_of(search), expected, rtol=0, atol=1e-6)


def test_penalties_that_need_fits_of_their_own_get_them():
    X, Y = make_forecast_pairs(SERIES[:200])
    model = RNNRegressor(5, init="orthogonal", max_iter=2, random_state=0, initial_state="zeros")
    grid = {"alpha": [1e-2, 1e-6]}
    search = ClosedLoopSearchCV(model, grid, horizon=10, n_starts=2, strategy="rolling").fit(X, Y)
    candidates = [{"alpha": 1e-2}, {"alpha": 1e-6}]
    expected = naive_scores(model, candidates, "rolling", X, Y, 10, 2)
    np.testing.assert_allclose(splits_of(search), expected, rtol=0, atol=1e-6)


def test_lists_go_through_a_pipeline():
    Xs, ys = make_forecast_pairs([SERIES[:300], SERIES[300:500]])
    pipe = make_pipeline(PerStep(StandardScaler()), esn(alpha=1e-4))
    search = ClosedLoopSearchCV(pipe, {}, horizon=20, n_starts=2).fit(Xs, ys)
    model = clone(pipe).fit(Xs, ys)
    spread = np.concatenate(ys).std()
    expected = [
        log_score(model, Xs[0], ys[0], [29], 20, spread)[0],
        log_score(model, Xs[1], ys[1], [179], 20, spread)[0],
    ]
    np.testing.assert_allclose(splits_of(search)[0], expected, rtol=0, atol=1e-6)


def test_frames_with_dates_and_names():
    pd = pytest.importorskip("pandas")
    dates = pd.date_range("2020-01-01", periods=300, freq="D")
    X = pd.DataFrame({"a": SERIES[:300], "b": np.sin(np.arange(300))}, index=dates)
    y = pd.Series(SERIES[1:301], index=dates)
    scaler = StandardScaler().set_output(transform="pandas")
    pipe = make_pipeline(scaler, ESNRegressor(30, random_state=0))
    grid = {"esnregressor__alpha": [1e-6, 1e-3]}
    for strategy in ("recycle", "holdout", "rolling"):
        options = {"horizon": 20, "n_starts": 2, "strategy": strategy}
        named = ClosedLoopSearchCV(pipe, grid, **options).fit(X, y)
        plain = ClosedLoopSearchCV(make_pipeline(StandardScaler(), pipe[-1]), grid, **options)
        plain.fit(X.to_numpy(), y.to_numpy())
        np.testing.assert_allclose(splits_of(named), splits_of(plain), rtol=0, atol=1e-9)
        assert named.feature_names_in_.tolist() == ["a", "b"]


def test_a_custom_forecaster_is_searched():
    series = 3.0 + 0.5 * np.arange(100) + 0.01 * np.sin(np.arange(100))
    X, y = make_forecast_pairs(series)
    pipe = make_pipeline(StandardScaler(), Drift())
    model = TransformedTargetRegressor(pipe, transformer=StandardScaler())
    search = ClosedLoopSearchCV(model, {}, horizon=10).fit(X, y)
    assert search.best_score_ > 2
    np.testing.assert_allclose(search.forecast(5), forecast(search.best_estimator_, 5))


# ------------------------------------------------------------------------ what is fitted, how often


def test_penalties_share_one_fit(monkeypatch):
    fitted = []
    original = ESNRegressor.fit

    def fit(self, X, y, sample_weight=None):
        fitted.append((self.leak_rate, self.alpha))
        return original(self, X, y, sample_weight)

    monkeypatch.setattr(ESNRegressor, "fit", fit)
    grid = {"esnregressor__alpha": [1e-2, 1e-6, 1e-9], "esnregressor__leak_rate": [0.3, 0.8]}
    search = ClosedLoopSearchCV(PIPE, grid, horizon=HORIZON, refit=False).fit(X, Y)
    assert fitted == [(0.3, 1e-9), (0.8, 1e-9)]
    assert (
        search.cv_results_["param_esnregressor__alpha"].tolist()
        == [1e-2] * 2 + [1e-6] * 2 + [1e-9] * 2
    )
    fitted.clear()
    ClosedLoopSearchCV(
        PIPE, grid, horizon=HORIZON, strategy="rolling", n_starts=2, refit=False
    ).fit(X, Y)
    assert len(fitted) == 4
    # other networks are fitted for each penalty
    fitted.clear()
    own = esn(readout=Ridge())
    ClosedLoopSearchCV(own, {"readout__alpha": [1e-2, 1e-6]}, horizon=9, refit=False).fit(X, Y)
    assert len(fitted) == 2
    # lists of penalties are chosen from by each network itself
    fitted.clear()
    lists = [{"alpha": [[1e-6, 1e-2], [1e-5, 1e-4]]}, {"alpha": 1e-3}, {"alpha": 1e-2}]
    search = ClosedLoopSearchCV(esn(), lists, horizon=9, refit=False).fit(X, Y)
    assert [alpha for _, alpha in fitted] == [[1e-6, 1e-2], [1e-5, 1e-4], 1e-3]


def test_the_smallest_penalty_keeps_the_digits_of_all():
    X, y = make_forecast_pairs(lorenz(1500, dt=0.02, washout=200, random_state=0) / 8)
    model = ESNRegressor(
        150, spectral_radius=0.05, input_scaling=0.3, bias_scaling=1.0, random_state=0
    )
    alphas = [1e-4, 1e-9, 1e-18]
    options = {"horizon": 100, "n_starts": 4, "refit": False}
    found = ClosedLoopSearchCV(model, {"alpha": alphas}, **options).fit(X, y)
    found = found.cv_results_["mean_test_score"]
    for alpha, score in zip(alphas, found, strict=True):
        alone = ClosedLoopSearchCV(model.set_params(solver="qr"), {"alpha": [alpha]}, **options)
        assert score == pytest.approx(alone.fit(X, y).best_score_, abs=0.02)
    assert found[2] > found[1] + 1 > found[0] + 2


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_results_do_not_depend_on_n_jobs(backend):
    data = lorenz(200, dt=0.05, washout=200, random_state=0)
    X, y = make_forecast_pairs(data)
    pipe = TransformedTargetRegressor(PIPE, transformer=StandardScaler())
    grid = {
        "regressor__esnregressor__alpha": [1e-8, 1e-4],
        "regressor__esnregressor__spectral_radius": [0.2, 0.9],
        "regressor__esnregressor__random_state": [np.random.RandomState(3)],
    }
    search = ClosedLoopSearchCV(pipe, grid, horizon=30, strategy="rolling", n_starts=2)
    with joblib.parallel_config(backend):
        one, two = (clone(search).set_params(n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(splits_of(one), splits_of(two))
    np.testing.assert_array_equal(one.forecast(20), two.forecast(20))
    assert one.best_index_ == two.best_index_


def test_weights_are_cut_with_the_rows():
    weight = np.where(np.arange(len(X)) < 300, 1.0, 0.01)
    name = "esnregressor__sample_weight"
    search = ClosedLoopSearchCV(PIPE, {}, horizon=HORIZON, n_starts=2, strategy="holdout")
    search.fit(X, Y, **{name: weight})
    ((size, places),) = rounds("holdout", len(X), HORIZON, 2)
    model = clone(PIPE).fit(X[:size], Y[:size], **{name: weight[:size]})
    expected = log_score(model, X, Y, places, HORIZON, Y[:size].std())
    np.testing.assert_allclose(splits_of(search)[0], expected, rtol=0, atol=1e-6)


def test_weights_of_a_list_are_cut_with_its_items():
    Xs, ys = make_forecast_pairs([SERIES[:300], SERIES[300:500]])
    weights = [np.linspace(0, 1, len(part)) for part in Xs]
    search = ClosedLoopSearchCV(esn(), {}, horizon=20, n_starts=1, strategy="rolling")
    search.fit(Xs, ys, sample_weight=weights)
    sizes = [279, 179]
    model = esn().fit(
        *([part[:n] for part, n in zip(parts, sizes, strict=True)] for parts in (Xs, ys, weights))
    )
    spread = np.concatenate([ys[0][:279], ys[1][:179]]).std()
    both = [log_score(model, Xs[i], ys[i], [n], 20, spread) for i, n in enumerate(sizes)]
    assert splits_of(search).item() == pytest.approx(np.mean(both), abs=1e-6)


def test_missing_targets_are_left_out_of_the_score():
    y = Y.copy()
    y[::7] = np.nan
    model = esn(missing_targets="skip")
    search = ClosedLoopSearchCV(model, {}, horizon=HORIZON, n_starts=2).fit(X, y)
    model.fit(X, y)
    for k, t in enumerate([69, len(X) - HORIZON]):
        said, true = forecast(model, HORIZON, context=X[: t + 1]), y[t : t + HORIZON]
        errors = np.abs(said - true)[~np.isnan(true)] / np.nanstd(y)
        assert splits_of(search)[0, k] == pytest.approx(-np.log10(errors).mean(), abs=1e-6)
    y[600:] = np.nan
    with pytest.raises(ValueError, match="cannot be scored"):
        search.fit(X, y)


# ----------------------------------------------------------------------------------- scores


def test_scores_by_name_and_by_function():
    options = {"horizon": HORIZON, "n_starts": 2}
    grid = {"alpha": [1e-6, 1.0]}
    named = ClosedLoopSearchCV(esn(), grid, scoring="neg_mean_absolute_error", **options)
    called = ClosedLoopSearchCV(
        esn(), grid, scoring=lambda true, said: -mean_absolute_error(true, said), **options
    )
    found = splits_of(named.fit(X, Y))
    np.testing.assert_array_equal(found, splits_of(called.fit(X, Y)))
    model = esn(alpha=1.0).fit(X, Y)
    said = forecast(model, HORIZON, context=X[:70])
    assert found[1, 0] == pytest.approx(-np.abs(said - Y[69 : 69 + HORIZON]).mean(), rel=1e-9)


@pytest.mark.parametrize("kind", ["network", "pipeline", "function", "rnn"])
def test_a_diverging_loop_has_the_worst_score_without_a_warning(kind):
    """Weights far too large: outputs overflow, in a loop of any kind."""
    X, Y = make_forecast_pairs(SERIES[:200])
    if kind == "rnn":
        model = RNNRegressor(6, init="orthogonal", max_iter=1, random_state=0).fit(X, Y)
        model.params_["coef"] = model.params_["coef"] * 1e9
    else:
        model = {"pipeline": clone(PIPE), "function": esn(readout=Ridge())}.get(kind, esn())
        model.fit(X, Y)
        network = model[-1] if kind == "pipeline" else model
        fitted = network.readout_ if kind == "function" else network
        fitted.coef_ = fitted.coef_ * 1e9
    rows = run_trials(model, X, Y, [(0, 20), (0, 100)], 60)
    assert rows.shape == (60, 1, 2, 1)
    assert (np.abs(rows[-1]) > 1e8).all() or not np.isfinite(rows[-1]).any()
    scorer = forecast_scorer(60, n_starts=2, washout=20)
    assert scorer(model, X, Y) == 0.0
    scorer = forecast_scorer(60, n_starts=2, washout=20, scoring="neg_mean_absolute_error")
    assert -np.inf < scorer(model, X, Y) < -1e9


def test_clip_holds_what_is_fed_back():
    X, y = make_forecast_pairs(lorenz(500, dt=0.05, washout=200, random_state=0))
    for clip in (True, (np.full(3, -25.0), np.full(3, 50.0))):
        model = make_pipeline(StandardScaler(), esn(spectral_radius=1.2))
        search = ClosedLoopSearchCV(model, {}, horizon=40, n_starts=1, clip=clip).fit(X, y)
        said = run_trials(model.fit(X, y), X, y, [(0, 69)], 40, clip=clip)[:, 0, 0]
        held = forecast(model, 40, context=X[:70], clip=clip)
        np.testing.assert_allclose(said[:20], held[:20], rtol=0, atol=1e-5)
        np.testing.assert_array_equal(search.forecast(30), forecast(model, 30, clip=clip))


# ---------------------------------------------------------------------------- scikit-learn's manner


def test_candidates_are_grids_lists_or_drawn():
    options = {"horizon": 9, "n_starts": 1, "refit": False}
    several = [{"alpha": 1e-3, "leak_rate": [0.3, 0.5]}, {"bias_scaling": 0.2}]
    found = ClosedLoopSearchCV(esn(), several, **options).fit(X, Y).cv_results_
    assert found["params"] == [
        {"alpha": 1e-3, "leak_rate": 0.3},
        {"alpha": 1e-3, "leak_rate": 0.5},
        {"bias_scaling": 0.2},
    ]
    assert found["param_alpha"].mask.tolist() == [False, False, True]
    assert sorted(found["rank_test_score"]) == [1, 2, 3]
    spread = {"alpha": stats.loguniform(1e-9, 1), "leak_rate": [0.2, 0.9]}
    a, b, c = (
        ClosedLoopSearchCV(esn(), spread, n_iter=4, random_state=seed, **options).fit(X, Y)
        for seed in (0, 0, np.random.default_rng(1))
    )
    assert a.cv_results_["params"] == b.cv_results_["params"] != c.cv_results_["params"]
    assert len({params["alpha"] for params in a.cv_results_["params"]}) == 4


def test_clones_pickles_and_answers_as_its_best():
    search = ClosedLoopSearchCV(PIPE, {"esnregressor__alpha": [1e-6]}, horizon=9, n_starts=2)
    assert clone(search).get_params()["estimator__esnregressor__leak_rate"] == 0.3
    search.set_params(estimator__esnregressor__leak_rate=0.5)
    with pytest.raises(NotFittedError):
        search.forecast(3)
    search.fit(X, Y)
    assert search.estimator is not search.best_estimator_
    assert search.best_estimator_[-1].leak_rate == 0.5
    again = pickle.loads(pickle.dumps(search))
    for model in (search, again):
        np.testing.assert_array_equal(model.predict(X), search.best_estimator_.predict(X))
        np.testing.assert_array_equal(model.forecast(9), forecast(search, 9))
        assert model.score(X, Y) == search.best_estimator_.score(X, Y)
    assert search.n_features_in_ == 1
    assert search.refit_time_ > 0
    with pytest.raises(TypeError, match="joblib"):  # as any search
        save(search, "never written")
    search.set_params(refit=False).fit(X, Y)
    assert not hasattr(search, "best_estimator_")
    with pytest.raises(AttributeError, match="refit=False"):
        search.predict(X)
    with pytest.raises(ValueError, match="refit=False"):
        forecast(search, 3)


def test_failed_candidates_rank_last_and_warn():
    grid = {"leak_rate": [0.3, 7.0], "alpha": [1e-6, 1e-3]}
    search = ClosedLoopSearchCV(esn(), grid, horizon=9, n_starts=2)
    with pytest.warns(FitFailedWarning, match="2 of 4 .*leak_rate=7"):
        search.fit(X, Y)
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [False, True] * 2
    assert search.cv_results_["rank_test_score"].tolist()[1::2] == [3, 3]
    with pytest.warns(FitFailedWarning):
        search.set_params(error_score=-5).fit(X, Y)
    assert search.cv_results_["mean_test_score"].tolist()[1::2] == [-5, -5]
    with pytest.raises(ValueError, match="leak_rate=7"):
        search.set_params(error_score="raise").fit(X, Y)
    # a penalty that fails does not take those with it that share its fit
    search = ClosedLoopSearchCV(esn(), {"alpha": [-1.0, 1e-6, 1e-3]}, horizon=9, n_starts=2)
    with pytest.warns(FitFailedWarning, match="1 of 3"):
        search.fit(X, Y)
    assert search.best_params_["alpha"] != -1.0


@pytest.mark.parametrize(
    ("params", "error", "match"),
    [
        ({"horizon": 0}, ValueError, "horizon=0 must be at least 1"),
        ({"horizon": 2.5}, TypeError, "horizon must be an integer"),
        ({"horizon": 698}, ValueError, r"n_starts=8 .*horizon=698 .*Lower"),
        ({"n_starts": 0}, ValueError, "n_starts=0"),
        ({"n_starts": 700}, ValueError, r"n_starts=700 .*only \d+ .* in the data .*n_samples=699"),
        ({"strategy": "holdout", "horizon": 140}, ValueError, "the last fifth"),
        ({"strategy": "rolling", "horizon": 350}, ValueError, "second half"),
        ({"strategy": "recicle"}, ValueError, "Did you mean 'recycle'"),
        ({"washout": 699}, ValueError, "washout=699"),
        ({"washout": "long"}, ValueError, "washout='long'"),
        ({"candidates": []}, ValueError, "candidates is empty"),
        ({"candidates": 3}, TypeError, "candidates must be"),
        ({"candidates": {"leek_rate": [1]}}, ValueError, "leek_rate"),
        ({"candidates": {"alpha": stats.uniform()}}, ValueError, "Give n_iter"),
        ({"n_iter": 0}, ValueError, "n_iter=0"),
        ({"refit": "no"}, TypeError, "refit must be"),
        ({"n_jobs": 0}, ValueError, "n_jobs=0"),
        ({"error_score": "warn"}, ValueError, "error_score='warn'"),
        ({"scoring": "accuracy"}, ValueError, "scoring='accuracy'"),
        ({"scoring": "no such"}, ValueError, "scoring='no such'"),
        ({"scoring": lambda loops: 0}, TypeError, "two arrays, y_true and y_pred"),
        ({"scoring": 3}, TypeError, "scoring=3"),
        ({"scoring": lambda true, said: np.nan}, ValueError, "None of the 1 candidates has a"),
        ({"clip": (1, 0)}, ValueError, "low <= high"),
        ({"estimator": Ridge()}, ValueError, "All 1 trials failed.*got Ridge"),
    ],
)
def test_bad_parameters_raise(params, error, match):
    known = {"estimator": esn(), "candidates": {}, "horizon": 9} | params
    with pytest.raises(error, match=match):
        ClosedLoopSearchCV(known.pop("estimator"), known.pop("candidates"), **known).fit(X, Y)


@pytest.mark.parametrize(
    ("X", "y", "match"),
    [
        (X, None, "y is None"),
        (X, Y[:-1], r"y must have one row per row of X.*\[699\]"),
        (X[:20], Y[:20], "n_starts=8 loops"),
        (X, np.roll(Y, 3), r"needs y\[t\] == X\[t\+1\]"),
        (X, np.char.add(Y.astype(str), "a"), "y must contain numbers"),
        (X, Y[:, None, None], "y has shape"),
        (X * np.nan, Y, "All 1 trials failed.*NaN"),
        ([], [], "no rows"),
        (X[:0], Y[:0], "no rows"),
    ],
)
def test_bad_data_raises(X, y, match):
    with pytest.raises(ValueError, match=match):
        ClosedLoopSearchCV(esn(), {}, horizon=15).fit(X, y)


def test_what_cannot_forecast_is_not_chosen_for_it():
    with pytest.raises(ValueError, match="forecast needs states that do not depend on later rows"):
        ClosedLoopSearchCV(esn(bidirectional=True), {}, horizon=9).fit(X, Y)


# ------------------------------------------------------------------------------------- the scorer


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("case", ["network", "target, exog"])
def test_the_scorer_scores_forecasts_in_the_test_rows(case):
    estimator, prefix, X, y = CASES[case]
    grid = {f"{prefix}alpha": [1e-6, 1e-2]}
    cv = ContextSplit(TimeSeriesSplit(2), context=100)
    scorer = forecast_scorer(HORIZON, n_starts=3, washout=100)
    search = GridSearchCV(estimator, grid, cv=cv, scoring=scorer).fit(X, y)
    for k, alpha in enumerate(grid[f"{prefix}alpha"]):
        scores = []
        for train, test in cv.split(X):
            model = clone(estimator).set_params(**{f"{prefix}alpha": alpha}).fit(X[train], y[train])
            places = np.linspace(100, len(test) - HORIZON, 3).astype(int)
            spread = y[test].std()
            scores.append(log_score(model, X[test], y[test], places, HORIZON, spread).mean())
        found = [search.cv_results_[f"split{i}_test_score"][k] for i in range(2)]
        np.testing.assert_allclose(found, scores, rtol=0, atol=1e-6)


def test_the_scorer_continues_from_the_end_of_training():
    model = esn(initial_state="last").fit(X[:500], Y[:500])
    found = forecast_scorer(40, n_starts=1, washout=1, scoring="r2")(model, X[500:], Y[500:])
    said = model.forecast(40, context=X[500:502])
    true = Y[501:541]
    expected = 1 - ((said - true) ** 2).sum() / ((true - true.mean()) ** 2).sum()
    assert found == pytest.approx(expected, abs=1e-6)


def test_the_scorer_takes_lists_and_is_pickled_and_printed():
    Xs, ys = make_forecast_pairs([SERIES[:300], SERIES[300:500]])
    model = esn().fit(Xs, ys)
    scorer = pickle.loads(pickle.dumps(forecast_scorer(20, n_starts=4)))
    stacked = stack_sequences(Xs, ys)
    other = esn(sequence_column=0).fit(*stacked[:2])
    assert scorer(model, Xs, ys) == pytest.approx(scorer(other, *stacked[:2]), rel=1e-12)
    assert repr(scorer).startswith("forecast_scorer(20, n_starts=4, scoring=None")


@pytest.mark.parametrize(
    ("params", "error", "match"),
    [
        ({"horizon": 0}, ValueError, "horizon=0"),
        ({"n_starts": 1.5}, TypeError, "n_starts"),
        ({"scoring": "accuracy"}, ValueError, "scoring='accuracy'"),
        ({"washout": -1}, ValueError, "washout=-1"),
        ({"washout": "long"}, ValueError, "washout='long'"),
    ],
)
def test_bad_parameters_of_the_scorer_raise(params, error, match):
    known = {"horizon": 9} | params
    with pytest.raises(error, match=match):
        forecast_scorer(known.pop("horizon"), **known)


def test_short_test_sets_raise_in_the_scorer():
    with pytest.raises(ValueError, match=r"horizon=50 .*only 0 .* in the test set .*n_samples=40"):
        forecast_scorer(50)(esn().fit(X, Y), X[:40], Y[:40])


# ---------------------------------------------------------------------------------- what it is for


@pytest.mark.slow
def test_a_choice_in_closed_loop_is_valid_for_longer_than_one_by_the_next_step():
    """On Mackey-Glass the median valid time over seeds is half as long again, or more."""
    grid = {
        "leak_rate": [0.3, 1.0],
        "spectral_radius": [0.5, 0.9, 1.2],
        "alpha": [1e-8, 1e-6, 1e-4],
    }
    times = []
    for seed in range(5):
        series = mackey_glass(4000, random_state=seed)
        series = (series - series.mean()) / series.std()
        X, y = make_forecast_pairs(series[:2000])
        model = ESNRegressor(150, input_scaling=0.3, random_state=seed)
        by_loops = ClosedLoopSearchCV(model, grid, horizon=200, clip=True)
        by_steps = GridSearchCV(
            model, grid, cv=TimeSeriesSplit(3), scoring="neg_mean_squared_error"
        )
        for search in (by_loops, by_steps):
            best = search.fit(X, y).best_estimator_
            valid = []
            for t in range(2200, 3000, 80):
                said = forecast(best, 1000, context=series[t - 200 : t], clip=True)
                errors = np.abs(said - series[t : t + 1000]).ravel()
                valid.append(np.argmax(np.append(errors, 9) > 0.4))
            times.append(np.median(valid))
    loops, steps = np.median(np.reshape(times, (5, 2)), axis=0)
    assert loops >= 1.5 * steps

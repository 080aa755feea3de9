"""Plots: their content, the start of the forecast, errors."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

plt = pytest.importorskip("matplotlib.pyplot")
from scipy.integrate import trapezoid  # noqa: E402

from reservoir import ESNForecaster, ESNRegressor, ReservoirTransformer, plotting  # noqa: E402
from reservoir.datasets import lorenz  # noqa: E402

pytestmark = pytest.mark.one_engine

TIME = np.arange(100)
SINE = np.sin(0.2 * TIME)


def labels(ax):
    return ax.get_legend_handles_labels()[1]


def line(ax, label):
    return next(drawn for drawn in ax.get_lines() if drawn.get_label() == label)


# As ESNForecaster.search_results_: two networks, three penalties.
TRIED = {
    "spectral_radius": np.repeat([0.05, 0.8], 3),
    "leak_rate": np.repeat([1.0, 0.3], 3),
    "alpha": np.tile([1e-3, 1e-9, 1e-25], 2),
    "score": np.array([1.0, 2.0, 4.0, 1.0, 3.0, 2.0]),
    "score_left_out": np.full(6, np.nan),
    "rank": np.array([5, 3, 1, 6, 2, 4]),
    "observed": "all",
    "noise": 1e-8,
}


def searched(params, scores):
    """As ClosedLoopSearchCV.cv_results_."""
    order = np.argsort(np.argsort(-np.array(scores)))
    return {"params": params, "mean_test_score": scores, "rank_test_score": order + 1}


NOISE = np.random.default_rng(0).normal(size=300)


def backtested(n_columns=1, gap=None):
    """As the result of a backtest: in step k of origin i the error is k (i + 1), or minus that."""
    errors = {"origin": [], "step": [], "column": [], "error": []}
    for i, j in np.ndindex(5, n_columns):
        for k in range(1, 4):
            row = (i, k, "ab"[j], (-1) ** i * k * (i + 1) * 10**j)
            for name, value in zip(errors, row, strict=True):
                errors[name].append(np.nan if (i, k) == gap and name == "error" else value)
    pd = pytest.importorskip("pandas")
    return SimpleNamespace(errors=pd.DataFrame(errors))


def forecasts():
    pd = pytest.importorskip("pandas")
    rows = {"origin": np.repeat([4, 9], 5), "step": np.tile(np.arange(1, 6), 2)}
    rows |= {"time": np.arange(10), "column": "a", "truth": SINE[:10], "forecast": SINE[:10]}
    rows |= {"lower 90%": SINE[:10] - 0.1, "upper 90%": SINE[:10] + 0.1}
    return SimpleNamespace(forecasts=pd.DataFrame(rows))


def features():
    return ReservoirTransformer(10, random_state=0).fit(SINE[:, None])


GUESS = SINE[60:]
BANDS = np.column_stack([GUESS, GUESS - 0.2, GUESS + 0.2, GUESS - 0.5, GUESS + 0.5])
SHARES = {
    "series": np.repeat([0, 1], 3),
    "model": np.array(["network", "network", "drift"] * 2),
    "scale": np.array(["plain", "log", "plain"] * 2),
    "error": np.ones(6),
    "share": np.array([0.5, 0.3, 0.2, 0.1, 0.1, 0.8]),
}
DRAWINGS = {
    "forecast": lambda ax: plotting.forecast(SINE, SINE[60:], ax=ax),
    "forecast of two outputs": lambda ax: plotting.forecast(
        np.c_[SINE, TIME], np.c_[SINE, TIME][60:], ax=ax
    ),
    "states": lambda ax: plotting.states(np.outer(SINE, np.ones(9)), ax=ax),
    "spectrum": lambda ax: plotting.spectrum(np.eye(3), ax=ax),
    "penalty_path": lambda ax: plotting.penalty_path([1e-3, 1.0], [2.0, 1.0], ax=ax),
    "closed_loop_search": lambda ax: plotting.closed_loop_search(TRIED, ax=ax),
    "closed_loop_search of shares": lambda ax: plotting.closed_loop_search(SHARES, ax=ax),
    "horizon_errors": lambda ax: plotting.horizon_errors(backtested(), ax=ax),
    "backtest": lambda ax: plotting.backtest(forecasts(), ax=ax),
    "running_error": lambda ax: plotting.running_error({"a": NOISE, "b": 2 * NOISE}, ax=ax),
    "forecast with bands": lambda ax: plotting.forecast(
        SINE, dict.fromkeys("ab", BANDS), coverage=[0.8, 0.95], ax=ax
    ),
    "states as a map": lambda ax: plotting.states(np.outer(SINE, np.ones(9)), kind="map", ax=ax),
    "overview": lambda ax: plotting.overview(features(), ax=ax),  # of one panel
    "field": lambda ax: plotting.field(np.c_[SINE, TIME], np.c_[SINE, TIME + 1], ax=ax),
    "residuals": lambda ax: plotting.residuals(NOISE, ax=ax),
    "residuals by quantiles": lambda ax: plotting.residuals(NOISE, quantiles=True, ax=ax),
    "memory_profile": lambda ax: plotting.memory_profile([1.0, 0.5], ax=ax),
    "temporal_gradients": lambda ax: plotting.temporal_gradients([[1e-9, 0.1], [0.0, 1]], ax=ax),
    "jacobian_norms": lambda ax: plotting.jacobian_norms([[-0.1, -1.0], [-0.2, -2.0]], ax=ax),
}


def test_forecast_ends_with_the_truth_unless_told_where_it_starts():
    ax = plotting.forecast(SINE, SINE[70:])
    assert line(ax, "start of the forecast").get_xdata()[0] == 70
    np.testing.assert_array_equal(line(ax, "forecast").get_xdata(), TIME[70:])
    beyond = plotting.forecast(SINE, SINE[:40], start=90)
    assert line(beyond, "forecast").get_xdata()[-1] == 129
    assert line(beyond, "observed").get_xdata()[-1] == 99


def test_forecast_takes_dates():
    months = np.datetime64("2000-01") + TIME
    ax = plotting.forecast(SINE, SINE[70:], index=months, labels=["anomaly, K"])
    assert ax.get_xlabel() == "time"
    assert ax.get_ylabel() == "anomaly, K"
    ax.figure.canvas.draw()


def test_outputs_are_stacked_without_crossing():
    Y = np.c_[SINE, 100 + 50 * SINE]
    ax = plotting.forecast(Y, Y[60:], labels=["x", "y"])
    assert [text.get_text() for text in ax.get_yticklabels()] == ["x", "y"]
    first, second = (d.get_ydata() for d in ax.get_lines() if len(d.get_xdata()) == len(Y))
    assert first.min() > second.max()


def months(n, start="2000-01"):
    pd = pytest.importorskip("pandas")
    return pd.date_range(start, periods=n, freq="MS")


def with_intervals(guess):
    """As forecast(n, coverage=[0.8, 0.95]) returns it."""
    pd = pytest.importorskip("pandas")
    parts = {"forecast": guess, "lower 80%": guess - 1, "upper 80%": guess + 1}
    return pd.DataFrame(parts | {"lower 95%": guess - 2, "upper 95%": guess + 2})


def test_pandas_puts_dates_and_names_on_the_axes():
    pd = pytest.importorskip("pandas")
    y = pd.Series(SINE, months(100), name="sales")
    ax = plotting.forecast(y.iloc[:70], y.iloc[70:])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time", "sales")
    assert labels(ax)[0] == "observed"
    np.testing.assert_array_equal(line(ax, "forecast").get_xdata(), y.index[70:].to_numpy())
    ax.figure.canvas.draw()
    texts = [text.get_text() for text in ax.get_xticklabels()]
    assert "2004" in texts
    assert max(map(len, texts)) <= 4
    for other in (
        plotting.forecast(y, y.iloc[70:]),  # beside the truth
        plotting.forecast(y, SINE[70:]),  # which ends with the forecast
        plotting.forecast(y.to_period("M"), y.to_period("M").iloc[70:]),
        plotting.forecast(y.tz_localize("Europe/Berlin"), y.tz_localize("Europe/Berlin")[70:]),
    ):
        np.testing.assert_array_equal(line(other, "forecast").get_xdata(), y.index[70:].to_numpy())


def test_numbers_in_an_index_say_where_a_forecast_lies():
    pd = pytest.importorskip("pandas")
    y = pd.Series(SINE)
    for truth, guess in ((y, y[60:80]), (y[:60], y[60:80]), (y[40:], y[60:80])):
        ax = plotting.forecast(truth, guess)
        assert line(ax, "start of the forecast").get_xdata()[0] == 60
    of_its_own = plotting.forecast(y, y[60:].reset_index(drop=True))
    assert line(of_its_own, "start of the forecast").get_xdata()[0] == 60


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("container", ["frame", "array", "frame of two", "array of two"])
def test_intervals_are_bands_around_the_forecast_the_widest_below(container):
    pd = pytest.importorskip("pandas")
    y = pd.Series(SINE, months(100))
    guess, options = with_intervals(y[70:]), {}
    if container.endswith("two"):
        y = pd.concat({"a": y, "b": 2 * y}, axis=1)
        guess = pd.concat({"a": guess, "b": 2 * guess}, axis=1)
    if container.startswith("array"):
        options = {"coverage": [0.8, 0.95]}
        guess = guess.to_numpy().reshape(30, *([2] if container.endswith("two") else []), 5)
    ax = plotting.forecast(y, guess, **options)
    assert labels(ax)[2:4] == ["95 % interval", "80 % interval"]
    heights = [np.ptp(band.get_paths()[0].vertices[:, 1]) for band in ax.collections]
    assert len(heights) == (4 if container.endswith("two") else 2)
    assert heights[0] > heights[1]
    wide, narrow = (c.get_facecolor()[0][3] for c in (ax.collections[0], ax.collections[-1]))
    assert wide < narrow  # in black and white as well
    ax.figure.canvas.draw()


def test_a_table_of_several_series_is_named():
    pd = pytest.importorskip("pandas")
    long = pd.DataFrame({"id": np.repeat(["s01", "s02"], 50), "y": SINE[:100]})
    bands = long[:20].assign(forecast=0.0)[["id", "forecast"]]
    for given, told in (
        ((long, SINE[:20]), r"column 'id' of y_true .*'s01'.* rows of one series"),
        ((SINE, long[:20]), r"column 'id' of y_pred .*'s01'.* rows of one series"),
        ((SINE, bands), "y_pred has the columns .* one series, without ids"),
        ((long.set_index(["id", long.index])["y"], SINE[:20]), "y_true has the rows of 2 series"),
        ((["s01", "s02"], SINE[:20]), "y_true must contain numbers"),
    ):
        with pytest.raises(ValueError, match=told):
            plotting.forecast(*given)


def test_one_coverage_needs_no_list():
    guess = np.c_[SINE, SINE - 1, SINE + 1]
    assert "90 % interval" in labels(plotting.forecast(SINE, guess, coverage=0.9))


def test_horizon_errors_are_medians_and_quartiles_of_absolute_errors():
    ax = plotting.horizon_errors(backtested())
    middle = line(ax, "median of 5 origins")
    np.testing.assert_array_equal(middle.get_xdata(), [1, 2, 3])
    np.testing.assert_allclose(middle.get_ydata(), [3, 6, 9])
    (band,) = ax.collections
    vertices = band.get_paths()[0].vertices
    np.testing.assert_allclose(sorted(set(vertices[vertices[:, 0] == 2, 1])), [4, 8])
    gap = plotting.horizon_errors(backtested(gap=(4, 3)))  # an unknown truth is left out
    np.testing.assert_allclose(line(gap, "median of 5 origins").get_ydata(), [3, 6, 7.5])


def test_horizon_errors_of_several_models_differ_without_colour():
    ax = plotting.horizon_errors({"one": backtested(), "two": backtested()})
    one, two = line(ax, "one"), line(ax, "two")
    assert one.get_linestyle() != two.get_linestyle()
    assert one.get_marker() != two.get_marker()


def test_horizon_errors_of_one_column():
    ax = plotting.horizon_errors(backtested(2), column="b")
    np.testing.assert_allclose(line(ax, "median of 5 origins").get_ydata(), [30, 60, 90])


@pytest.mark.parametrize("seed", range(3))
def test_residuals_against_statsmodels(statsmodels, seed):
    from statsmodels.stats.diagnostic import acorr_ljungbox
    from statsmodels.tsa.stattools import acf

    rows = np.random.default_rng(seed).normal(3.0, 2.0, size=120)
    ax, _ = plotting.residuals(rows, n_lags=15)
    (dots,) = [drawn for drawn in ax.get_lines() if drawn.get_label().startswith("Ljung-Box")]
    np.testing.assert_allclose(dots.get_ydata(), acf(rows, nlags=15)[1:])
    p = acorr_ljungbox(rows, lags=[15])["lb_pvalue"].item()
    assert dots.get_label() == f"Ljung-Box: p = {p:.2f}"


def test_residuals_against_a_naive_autocorrelation():
    rows = NOISE + np.roll(NOISE, 1)
    ax, _ = plotting.residuals(rows, n_lags=3)
    dots = line(ax, "Ljung-Box: p < 0.001")
    mean = rows.mean()
    square = sum((a - mean) ** 2 for a in rows)
    expected = [
        sum((rows[t] - mean) * (rows[t - lag] - mean) for t in range(lag, 300)) / square
        for lag in (1, 2, 3)
    ]
    np.testing.assert_allclose(dots.get_ydata(), expected)
    assert line(ax, "95 % bounds").get_ydata()[0] == pytest.approx(1.96 / np.sqrt(300), rel=1e-4)


def test_residuals_beside_their_distribution():
    _, other = plotting.residuals(NOISE)
    curve = line(other, "normal")
    assert trapezoid(curve.get_ydata(), curve.get_xdata()) == pytest.approx(1, abs=1e-3)
    bars = other.patches
    assert sum(bar.get_height() * bar.get_width() for bar in bars) == pytest.approx(1)
    _, tails = plotting.residuals(NOISE, quantiles=True)
    dots = line(tails, "errors")
    assert np.corrcoef(dots.get_xdata(), dots.get_ydata())[0, 1] > 0.99
    narrow = plotting.residuals(NOISE, ax=plt.figure(figsize=(3.5, 5)).subplots())
    narrow[0].figure.canvas.draw()
    assert narrow[1].get_position().y0 > narrow[0].get_position().y1
    pair = plt.figure().subplots(1, 2)
    assert plotting.residuals(NOISE, ax=pair).tolist() == pair.tolist()


def test_a_constant_output_is_drawn():
    Y = np.c_[SINE, np.ones(100)]
    plotting.forecast(Y, Y[60:]).figure.canvas.draw()


def test_truth_and_forecast_differ_without_colour():
    ax = plotting.forecast(SINE, SINE[60:])
    truth, guess = line(ax, "observed"), line(ax, "forecast")
    assert truth.get_linestyle() != guess.get_linestyle()
    assert truth.get_linewidth() > 1.4 * guess.get_linewidth()


def test_forecasts_on_the_same_axes_differ_and_the_observed_rows_have_one_entry():
    ax = plotting.forecast(SINE, SINE[60:])
    assert plotting.forecast(SINE, 0.5 * SINE[60:], ax=ax) is ax
    assert labels(ax) == ["observed", "forecast", "start of the forecast", "forecast 2"]
    named = plotting.forecast(SINE, {str(k): SINE[60:] for k in range(9)})
    guesses = [line(named, str(k)) for k in range(9)]
    assert len({(g.get_linestyle(), str(g.get_marker())) for g in guesses}) == 9


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("kind", ["series", "dynamics"])
def test_a_forecaster_is_drawn_after_its_last_rows(kind):
    pd = pytest.importorskip("pandas")
    y = pd.Series(SINE + 2 + 0.1 * NOISE[:100], months(100), name="sales")
    if kind == "dynamics":
        y = pd.DataFrame(lorenz(200, dt=0.05), columns=list("xyz"))
    options = {"search": kind, "n_networks": 1, "random_state": 0}
    model = ESNForecaster(**options).fit(y)
    assert model.kind_ == kind
    same = pd.testing.assert_frame_equal if kind == "dynamics" else pd.testing.assert_series_equal
    same(model.last_rows_, y, check_freq=False)
    ax = plotting.forecast(model, 12, coverage=0.9)
    assert labels(ax)[:3] == ["observed", "forecast", "90 % interval"]
    drawn = line(ax, "observed")
    assert len(drawn.get_xdata()) == 48
    assert drawn.get_xdata()[-1] == y.index.to_numpy()[-1]
    assert line(ax, "start of the forecast").get_xdata()[0] > drawn.get_xdata()[-1]
    plain = ESNForecaster(**options).fit(y.to_numpy())
    ax = plotting.forecast(plain, 12, coverage=0.9)
    drawn = line(ax, "observed")
    assert drawn.get_xdata()[[0, -1]].tolist() == [len(y) - 48, len(y) - 1]
    assert line(ax, "start of the forecast").get_xdata()[0] == len(y)
    ax = plotting.forecast(model, 12, coverage=0.9)
    guess = model.forecast(12).to_numpy()
    if kind == "series":
        np.testing.assert_array_equal(line(ax, "forecast").get_ydata(), guess)
    else:
        assert len(ax.get_yticks()) == 3


def test_a_forecaster_of_several_series_is_refused():
    table = [SINE + NOISE[:100], SINE - NOISE[:100]]
    model = ESNForecaster(panel="each", random_state=0).fit(table)
    assert list(model.last_rows_) == [0, 1]
    with pytest.raises(ValueError, match="fitted to 2 series"):
        plotting.forecast(model, 5)
    with pytest.raises(TypeError, match="does not keep its last rows"):
        plotting.forecast(SimpleNamespace(forecast=None), 5)
    with pytest.raises(TypeError, match="exog is for a model"):
        plotting.forecast(SINE, SINE, exog=SINE)


def test_states_choose_units():
    H = np.outer(SINE, np.arange(1, 10))
    ax = plotting.states(H, units=[8, 0])
    assert [text.get_text() for text in ax.get_yticklabels()] == ["unit 8", "unit 0"]
    assert len(plotting.states(H, units=4).get_yticks()) == 4
    assert len(plotting.states(H[:, :2], units=4).get_yticks()) == 2
    plotting.states(np.zeros((5, 2)))


def test_states_of_many_units_are_a_map_and_gaps_stay_gaps():
    H = np.outer(SINE, np.arange(1, 41))
    H[3, :] = np.nan
    ax = plotting.states(H, units=40)
    (mesh,) = ax.collections
    assert np.asarray(mesh.get_array()).shape == (40, 100)
    assert not plotting.states(H, units=40, kind="lines").collections
    drawn = plotting.states(H, units=2).get_lines()
    assert all(np.isfinite(d.get_ydata()).sum() == 99 for d in drawn if len(d.get_xdata()) == 100)


def test_states_of_a_network_are_those_of_its_run():
    X = NOISE[:80, None]
    model = ESNRegressor(30, random_state=0).fit(X, NOISE[1:81])
    from reservoir.dynamics import run

    for source in (model, model.reservoir_):
        ax = plotting.states(source, X, kind="map")
        shown = np.asarray(ax.collections[0].get_array())
        np.testing.assert_allclose(shown, run(model.reservoir_, X).T)
    with pytest.raises(ValueError, match="X is missing"):
        plotting.states(model)
    with pytest.raises(TypeError, match="with X, source must be"):
        plotting.states(X, X)


def test_tables_bring_their_dates_and_names():
    pd = pytest.importorskip("pandas")
    errors = pd.DataFrame({"one": NOISE[:100], "two": SINE}, months(100))
    for given in (errors, dict(errors.items())):
        ax = plotting.running_error(given, window=10)
        assert labels(ax) == ["one", "two"]
        assert ax.get_xlabel() == "time"
        np.testing.assert_array_equal(line(ax, "one").get_xdata(), errors.index.to_numpy())
    states = plotting.states(errors)
    np.testing.assert_array_equal(states.get_lines()[1].get_xdata(), errors.index.to_numpy())


def test_long_curves_are_thinned_out_but_keep_their_extremes():
    H = np.random.default_rng(0).normal(size=(30_000, 2))
    ax = plotting.states(H, units=2)
    for drawn, column in zip(ax.get_lines()[1::2], H.T, strict=True):
        assert len(drawn.get_xdata()) < 8000
        assert np.ptp(drawn.get_ydata()) == pytest.approx(np.ptp(column) * 0.45 / np.abs(H).max())


def test_spectrum_takes_matrices_reservoirs_and_eigenvalues():
    rotation = 0.5 * np.array([[0.0, -1.0], [1.0, 0.0]])

    class Holder:
        W = rotation

    class Fitted:
        reservoir_ = Holder()

    for source in (rotation, sp.csr_array(rotation), Holder(), Fitted(), [0.5j, -0.5j]):
        ax = plotting.spectrum(source)
        points = line(ax, "eigenvalues").get_ydata()
        np.testing.assert_allclose(np.sort(points), [-0.5, 0.5])
        assert labels(ax) == ["eigenvalues", "spectral radius 0.5", "unit circle"]
        circle = line(ax, "unit circle")
        np.testing.assert_allclose(np.hypot(circle.get_xdata(), circle.get_ydata()), 1)


def test_penalty_path_marks_the_chosen():
    scores = [[0.3, 0.1], [0.1, 0.2], [0.5, 0.4]]
    ax = plotting.penalty_path([1e-4, 1e-2, 1.0], scores)
    assert labels(ax) == ["output 0", "output 1", "chosen: 0.01"]
    assert ax.get_xscale() == "log"
    each = plotting.penalty_path([1e-4, 1e-2, 1.0], scores, selected=[1e-2, 1e-4])
    assert labels(each)[2:] == ["chosen: 0.0001", "chosen: 0.01"]


def test_penalty_path_of_a_model_and_without_some_scores():
    X = NOISE[:200, None]
    model = ESNRegressor(30, alpha=[1e-6, 1e-2, 1.0], random_state=0).fit(X, X[:, 0])
    ax = plotting.penalty_path(model)
    np.testing.assert_array_equal(line(ax, "score").get_xdata(), [1e-6, 1e-2, 1.0])
    assert f"chosen: {model.alpha_:.4g}" in labels(ax)
    gap = plotting.penalty_path([1e-4, 1e-2, 1.0], [np.nan, 0.2, 0.3])
    assert labels(gap) == ["score", "chosen: 0.01", "without a score: 1"]
    with pytest.raises(TypeError, match="tried no penalties"):
        plotting.penalty_path(ESNRegressor(30, alpha=1.0).fit(X, X[:, 0]))


def test_penalty_path_places_a_penalty_of_zero():
    ax = plotting.penalty_path([0, 1e-4, 1e-2], [0.1, 0.2, 0.3])
    assert "chosen: 0" in labels(ax)
    assert line(ax, "chosen: 0").get_xdata()[0] == pytest.approx(1e-5)
    plotting.penalty_path([0], [0.1]).figure.canvas.draw()


def test_closed_loop_search_draws_a_line_for_each_network_the_best_first():
    ax = plotting.closed_loop_search(TRIED)
    assert labels(ax) == ["radius 0.05", "radius 0.8, leak 0.3", "chosen: 1e-25"]
    assert ax.get_xscale() == "log"
    np.testing.assert_array_equal(line(ax, "radius 0.05").get_xdata(), [1e-25, 1e-9, 1e-3])
    np.testing.assert_array_equal(line(ax, "radius 0.05").get_ydata(), [4, 2, 1])
    assert line(ax, "chosen: 1e-25").get_xydata().tolist() == [[1e-25, 4]]
    one = plotting.closed_loop_search(TRIED, n_named=1)
    assert labels(one) == ["network", "others", "chosen: 1e-25"]


def test_closed_loop_search_draws_the_shares_of_a_forecaster_of_series():
    for results in (SHARES, SimpleNamespace(search_results_=SHARES)):
        ax = plotting.closed_loop_search(results)
        names = [text.get_text() for text in ax.get_yticklabels()]
        assert names == ["drift", "network", "network (log)"]
        np.testing.assert_allclose([bar.get_width() for bar in ax.patches], [50, 30, 20])


def test_closed_loop_search_draws_what_the_ranks_go_by():
    left_out = np.array([np.nan] * 3 + [1.0, 2.0, 4.0])
    both = TRIED | {"score_left_out": left_out, "rank": np.array([5, 6, 4, 3, 2, 1])}
    ax = plotting.closed_loop_search(both)
    assert line(ax, "chosen: 1e-25").get_xydata().tolist() == [[1e-25, 3]]  # (2 + 4) / 2


def test_closed_loop_search_takes_results_of_a_search_in_a_pipeline():
    params = [{"esn__alpha": a, "esn__n_units": n} for n in (50, 100) for a in (1e-2, 1e-9, 1e-12)]
    scores = [1.0, 2.0, np.nan, 1.0, 3.0, 2.0]
    ax = plotting.closed_loop_search(searched(params, scores))
    assert labels(ax) == ["units 100", "units 50", "chosen: 1e-09"]
    assert len(line(ax, "units 50").get_xdata()) == 2  # what has no score is left out


def test_backtest_draws_each_forecast_and_counts_the_rows_in_each_band():
    pd = pytest.importorskip("pandas")
    times = np.arange(10)
    rows = {"origin": np.repeat([4, 9], 5), "step": np.tile(np.arange(1, 6), 2), "time": times}
    rows |= {"column": "a", "truth": times % 3, "forecast": 1.0, "lower 90%": 0.5}
    result = SimpleNamespace(forecasts=pd.DataFrame(rows | {"upper 90%": 1.5}))
    ax = plotting.backtest(result)
    assert labels(ax) == ["observed", "2 forecasts", "90 % band holds 30 %"]
    np.testing.assert_array_equal(line(ax, "observed").get_ydata(), times % 3)
    drawn = [d for d in ax.get_lines() if d.get_label() in ("2 forecasts", "_forecast")]
    assert [d.get_xdata().tolist() for d in drawn] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    with pytest.raises(TypeError, match=r"pass a result of model_selection.backtest\."):
        plotting.backtest(rows)
    with pytest.raises(ValueError, match="column='b' is none of 'a'"):
        plotting.backtest(result, column="b")


def test_field_marks_the_time_up_to_which_a_forecast_is_valid():
    truth = np.sin(np.add.outer(0.2 * TIME, np.arange(9)))
    wrong = truth + (TIME >= 40)[:, None]
    axes = plotting.field(truth, wrong, dt=0.5)
    assert [ax.get_title(loc="left") for ax in axes] == ["field", "forecast", "difference"]
    assert axes[0].get_legend_handles_labels()[1] == ["valid time 20"]
    for ax, rows in zip(axes, (truth, wrong, wrong - truth), strict=True):
        np.testing.assert_array_equal(ax.get_lines()[0].get_xdata(), [20, 20])
        (mesh,) = ax.collections
        np.testing.assert_allclose(mesh.get_array(), rows.T)
    limits = {np.ptp(ax.collections[0].get_clim()) for ax in axes}
    assert max(limits) == pytest.approx(min(limits))
    (alone,) = plotting.field(truth)
    assert not alone.get_lines()
    plotting.field(truth, np.full_like(truth, np.nan))  # of a loop that was lost
    with pytest.raises(ValueError, match=r"forecast has shape \(3, 9\), but truth has shape"):
        plotting.field(truth, truth[:3])
    with pytest.raises(ValueError, match="truth contains NaN"):
        plotting.field(wrong * np.nan)
    with pytest.raises(ValueError, match="dt=0"):
        plotting.field(truth, dt=0)


def test_running_error_is_the_root_mean_square_of_the_last_rows():
    errors = np.c_[NOISE, np.r_[1e8, 1e-3 * NOISE[1:]]]
    errors[50, 0] = np.nan
    ax = plotting.running_error(errors, window=20, labels=["a", "b"])
    for j, name in enumerate("ab"):
        naive = [
            np.sqrt(np.nanmean(errors[max(0, t - 19) : t + 1, j] ** 2)) for t in range(len(errors))
        ]
        np.testing.assert_allclose(line(ax, name).get_ydata(), naive, rtol=1e-12)
    panels = plotting.running_error(
        {"a": NOISE}, forgetting=np.full(300, 0.99), coefficients=np.ones((300, 1, 4))
    )
    assert [ax.get_ylabel().split()[0] for ax in panels] == ["RMS", "forgetting", "norm"]
    np.testing.assert_allclose(panels[2].get_lines()[0].get_ydata(), 2.0)
    with pytest.raises(ValueError, match=r"forgetting has shape \(5,\); it must be \(300,\)"):
        plotting.running_error(NOISE, forgetting=np.ones(5))
    with pytest.raises(ValueError, match="errors contains no finite number"):
        plotting.running_error([np.nan])


def test_memory_profile_starts_at_lag_one():
    ax = plotting.memory_profile([1.0, 0.5])
    np.testing.assert_array_equal(ax.get_lines()[0].get_xdata(), [1, 2])
    assert labels(ax) == ["memory capacity 1.50"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plotting.forecast(SINE, np.c_[SINE, SINE]), "2 columns, but y_true has 1"),
        (
            lambda: plotting.forecast(SINE[:5], SINE),
            r"row -95 of y_true, but that must be in \[0, 5\]",
        ),
        (lambda: plotting.forecast(SINE, SINE, start=101), r"start=101 .* in \[0, 100\]"),
        (lambda: plotting.forecast(SINE, SINE, index=[1, 2]), r"index has shape \(2,\)"),
        (lambda: plotting.forecast(SINE, SINE, labels="xy"), "labels='xy' must be a list of 1"),
        (lambda: plotting.temporal_gradients(np.zeros(5)), "norms are all 0: no step contributes"),
        (lambda: plotting.forecast([], SINE), r"y_true has shape \(0,\)"),
        (
            lambda: plotting.forecast(SINE, np.ones((9, 2)), coverage=0.9),
            r"y_pred has shape \(9, 2\); with coverage=0.9 it must be \(n_steps, 3\)",
        ),
        (lambda: plotting.forecast(SINE, SINE, coverage=90), "coverage=90 must be finite and in"),
        (
            lambda: plotting.forecast(SINE, with_intervals(SINE[:9]).iloc[:, :4]),
            "columns .* must be 'forecast', and then 'lower 90%'",
        ),
        (
            lambda: plotting.forecast(
                with_intervals(SINE).set_axis(months(100)).iloc[:, 0], SINE[:9], start=95
            ),
            "y_pred ends 4 rows after y_true, and the times .* are unknown",
        ),
        (lambda: plotting.horizon_errors(backtested(2)), "has the columns 'a', 'b'. Set column"),
        (lambda: plotting.horizon_errors(backtested(), column="c"), "column='c' is none of 'a'"),
        (lambda: plotting.horizon_errors({}), "result is an empty dict"),
        (lambda: plotting.residuals(NOISE, n_lags=300), "n_lags=300 .* there are 300. Lower it"),
        (lambda: plotting.residuals(np.ones(9)), "All errors are 1: a constant"),
        (lambda: plotting.residuals([1.0, np.nan]), "errors is nan at index"),
        (lambda: plotting.states(SINE), r"H has shape \(100,\)"),
        (lambda: plotting.states(np.ones((4, 3)), units=[3]), r"units=\[3\] .* in \[0, 2\]"),
        (lambda: plotting.states(np.ones((4, 3)), units=0), "units=0 must be at least 1"),
        (lambda: plotting.spectrum(np.ones((2, 3))), r"W has shape \(2, 3\)"),
        (lambda: plotting.spectrum(sp.csr_array((5001, 5001))), "W has 5001 units.*up to 5000"),
        (lambda: plotting.penalty_path([1.0], [1.0, 2.0]), "2 rows, but alphas has 1 entries"),
        (lambda: plotting.penalty_path([-1.0], [1.0]), "penalty -1.0"),
        (lambda: plotting.penalty_path([1.0], [np.nan]), "no penalty with a finite score"),
        (lambda: plotting.closed_loop_search({"a": 1}), "has the keys a; required"),
        (lambda: plotting.closed_loop_search(TRIED | {"alpha": np.zeros(6)}), "penalty alpha=0.0"),
        (
            lambda: plotting.closed_loop_search(searched([{"alpha": "auto"}], [0.0])),
            "alpha='auto', from which .* Search over numbers",
        ),
        (
            lambda: plotting.closed_loop_search(TRIED | {"score": np.full(6, np.nan)}),
            "No candidate",
        ),
        (lambda: plotting.closed_loop_search(searched([{"n_units": 3}], [1.0])), "found none"),
        (lambda: plotting.closed_loop_search(TRIED, n_named=0), "n_named=0 must be at least 1"),
        (lambda: plotting.memory_profile([[1.0]]), r"profile has shape \(1, 1\)"),
    ],
)
def test_errors_name_value_and_bound(call, message):
    with pytest.raises(ValueError, match=message):
        call()
    assert not plt.get_fignums()  # nothing half drawn is left behind


@pytest.mark.slow
def test_without_matplotlib_the_error_names_it():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from reservoir import plotting\n"
        "try: plotting.memory_profile([1.0])\n"
        "except ImportError as error: print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install matplotlib" in run.stdout

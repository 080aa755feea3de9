"""Overviews of fitted models: their panels, what is drawn in them, what is refused."""

import warnings

import numpy as np
import pytest

plt = pytest.importorskip("matplotlib.pyplot")
from sklearn.base import clone  # noqa: E402
from sklearn.cluster import KMeans  # noqa: E402
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.linear_model import LogisticRegression, Ridge  # noqa: E402
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit  # noqa: E402
from sklearn.pipeline import FeatureUnion, make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

from reservoir import (  # noqa: E402
    ESNClassifier,
    ESNForecaster,
    ESNRegressor,
    ESNSequenceClassifier,
    LiquidStateMachine,
    NVARRegressor,
    ReservoirFeatures,
    ReservoirTransformer,
    RNNClassifier,
    RNNRegressor,
    forecast,
    plotting,
)
from reservoir.model_selection import channel_importance  # noqa: E402

pytestmark = pytest.mark.one_engine

WAVE = np.sin(0.2 * np.arange(240)) + 0.3 * np.sin(0.31 * np.arange(240))
X, Y = WAVE[:-1, None], WAVE[1:]
TWO = np.c_[WAVE, WAVE + 0.1 * np.random.default_rng(1).normal(size=240)]
LABELS = np.array(["down", "up"])[(np.diff(WAVE) > 0).astype(int)]
WHOLE = np.random.default_rng(0).normal(size=(20, 15, 2))
KIND = np.arange(20) % 2
WHOLE[:, :, 1] += 2 * KIND[:, None]
SERIES, LOOP = "last rows of y", ["observed", "prediction", "closed loop", "start of the forecast"]
ONE, TRIED, ERRORS = "eigenvalues of W", "penalties", ["errors", ""]
TWO_NETWORKS = ["eigenvalues of W, network 1", "eigenvalues of W, network 2"]


def esn(**options):
    return ESNRegressor(20, random_state=0, **options)


def features(seed=0):
    return ReservoirTransformer(20, random_state=seed)


def rnn(kind=RNNRegressor, **options):
    return kind(4, max_iter=1, init="esn", random_state=0, **options)


def search(**options):
    grid = {"leak_rate": [0.5, 1.0]}
    return GridSearchCV(esn(alpha=1e-6), grid, cv=TimeSeriesSplit(2), **options)


def titles(axes):
    return [ax.get_title(loc="left") for ax in axes]


def names(ax):
    return ax.get_legend_handles_labels()[1]


def line(ax, label):
    return next(drawn for drawn in ax.get_lines() if drawn.get_label() == label)


KINDS = {
    "network": (esn(), X, Y, [SERIES, "states", ONE, TRIED, *ERRORS], LOOP),
    "one penalty": (esn(alpha=1e-6), X, WAVE[:-1], [SERIES, "states", ONE, *ERRORS], LOOP[:2]),
    "outputs": (
        esn(),
        TWO[:-1],
        TWO[1:],
        [SERIES, "states", ONE, TRIED, "errors of output 1", ""],
        LOOP,
    ),
    "exogenous": (
        esn(),
        np.c_[X, np.cos(np.arange(239))],
        Y,
        [SERIES, "states", ONE, TRIED, *ERRORS],
        LOOP,
    ),
    "sequences": (
        esn(),
        [X[:90], X[100:]],
        [Y[:90], Y[100:]],
        [SERIES, "states", ONE, TRIED, *ERRORS],
        LOOP,
    ),
    "ids": (
        esn(sequence_column=0),
        np.c_[np.arange(239) > 100, X],
        Y,
        [SERIES, "states", ONE, TRIED, *ERRORS],
        LOOP,
    ),
    "scaler": (
        make_pipeline(StandardScaler(), esn()),
        X,
        Y,
        [SERIES, "states", ONE, TRIED, *ERRORS],
        LOOP,
    ),
    "scaled targets": (
        TransformedTargetRegressor(
            make_pipeline(StandardScaler(), esn()), transformer=StandardScaler()
        ),
        X,
        Y,
        [SERIES, "states", ONE, TRIED, *ERRORS],
        LOOP,
    ),
    "search": (search(), X, Y, [SERIES, "states", ONE, *ERRORS], LOOP),
    "deep": (
        make_pipeline(features(), features(1), Ridge(1e-6)),
        X,
        Y,
        [SERIES, "states", *TWO_NETWORKS, *ERRORS],
        LOOP,
    ),
    "side by side": (
        make_pipeline(FeatureUnion([("a", features()), ("b", features(1))]), Ridge(1e-6)),
        X,
        Y,
        [SERIES, "states", *TWO_NETWORKS, *ERRORS],
        LOOP,
    ),
    "by columns": (
        make_pipeline(ColumnTransformer([("a", features(), [0])]), Ridge(1e-6)),
        TWO,
        WAVE,
        [SERIES, ONE, "errors", ""],
        LOOP[:2],
    ),
    "lagged": (NVARRegressor(), X, Y, [SERIES, TRIED, *ERRORS], LOOP),
    "trained": (rnn(), X, Y, [SERIES, "states", ONE, *ERRORS], LOOP),
    "gates": (rnn(cell="lstm"), X, Y, [SERIES, "states", *ERRORS], LOOP),
    "labels": (
        ESNClassifier(20, random_state=0),
        X,
        LABELS,
        ["last labels, as probabilities", "states", ONE, TRIED],
        LOOP[:2],
    ),
    "labels by features": (
        make_pipeline(features(), LogisticRegression()),
        X,
        LABELS,
        ["last labels, as probabilities", "states", ONE],
        LOOP[:2],
    ),
    "states": (features(), X, None, ["states", ONE], []),
    "features of sequences": (ReservoirFeatures(5, random_state=0), WHOLE, None, [ONE], None),
    "whole sequences": (
        ESNSequenceClassifier(5, random_state=0),
        WHOLE,
        KIND,
        ["importance of channels", ONE],
        ["standard deviation over permutations"],
    ),
    "spikes": (
        make_pipeline(LiquidStateMachine(5, random_state=0), LogisticRegression()),
        WHOLE,
        KIND,
        ["importance of channels"],
        None,
    ),
    "last row": (
        rnn(RNNClassifier, target="last"),
        WHOLE,
        KIND,
        ["importance of channels", ONE],
        None,
    ),
}


@pytest.mark.filterwarnings("ignore")  # of fits that are too small to be good
@pytest.mark.fast_cases(5)
@pytest.mark.parametrize(("model", "X", "y", "panels", "legend"), KINDS.values(), ids=KINDS)
def test_each_kind_of_model_has_the_panels_of_what_it_has(model, X, y, panels, legend):
    axes = plotting.overview(clone(model).fit(X, y), X, y)
    assert titles(axes) == panels
    assert legend is None or names(axes[0]) == legend
    assert all(ax.has_data() for ax in axes)


def test_the_rows_are_those_of_predict_and_forecast():
    model = esn().fit(X, Y)
    ax = plotting.overview(model, X, Y)[0]
    rows = np.arange(239)
    np.testing.assert_array_equal(line(ax, "observed").get_xydata(), np.c_[rows, Y][-150:])
    found = line(ax, "prediction").get_xydata()
    np.testing.assert_array_equal(found, np.c_[rows, model.predict(X)][-150:])
    loop = forecast(model, 50, context=X[:-49])  # row 0 is the prediction of the last of these
    np.testing.assert_array_equal(line(ax, "closed loop").get_xydata(), np.c_[rows[-50:], loop])
    assert ax.get_xlabel() == "time step"


def test_states_of_long_series_are_those_of_their_end():
    rows = np.random.default_rng(0).normal(size=(1500, 1))
    model, read = esn(alpha=1e-6).fit(rows[:200], rows[:200, 0]), []
    expected = plotting.states(model.states(rows)[-150:]).get_lines()

    class Counted(ESNRegressor):
        def states(self, X):
            read.append(len(X))
            return super().states(X)

    model.__class__ = Counted
    drawn = plotting.overview(model, rows, rows[:, 0])[1].get_lines()
    assert read == [1150]  # all states might not fit into memory
    for line_, other in zip(drawn, expected, strict=True):
        np.testing.assert_allclose(line_.get_ydata(), other.get_ydata(), atol=1e-6)
    assert max(line_.get_xdata()[-1] for line_ in drawn) == 1499


def test_dates_and_names_are_on_the_axes():
    pd = pytest.importorskip("pandas")
    days = pd.date_range("2024-01-01", periods=239)
    table = pd.DataFrame(X, days, columns=["level"])
    y = pd.Series(Y, days, name="level")
    axes = plotting.overview(esn().fit(table, y), table, y)
    assert [ax.get_xlabel() for ax in axes[:2]] == ["time", "time"]
    assert axes[0].get_ylabel() == "level"
    assert line(axes[0], "closed loop").get_xdata()[-1] == days.to_numpy()[-1]
    assert titles(axes)[-2] == "errors of level"


def test_errors_are_those_after_the_washout_and_of_the_worst_output():
    Y = np.c_[TWO, np.random.default_rng(0).normal(size=240), np.ones(240)]
    model = esn(washout=40).fit(TWO, Y)
    axes = plotting.overview(model, TWO, Y)
    assert titles(axes)[-2] == "errors of output 2"
    error = (Y - model.predict(TWO))[40:, 2]
    expected = plotting.residuals(error)
    dots = [
        next(d for d in ax[0].get_lines() if "Ljung" in d.get_label())
        for ax in (axes[-2:], expected)
    ]
    np.testing.assert_array_equal(dots[0].get_xydata(), dots[1].get_xydata())


def test_a_loop_that_diverges_ends_where_it_leaves_the_range():
    model = esn(alpha=1e-6).fit(X, Y)
    model.coef_ *= 3
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ax = plotting.overview(model, X, Y)[0]
    loop = line(ax, "closed loop").get_ydata()
    n_shown = int(np.isfinite(loop).sum())
    assert n_shown < 50
    assert np.isnan(loop[n_shown:]).all()
    assert np.abs(loop[:n_shown]).max(initial=0) <= 1.5 * np.ptp(Y)
    assert not told or issubclass(told[0].category, RuntimeWarning)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("topology", ["random_sparse", "ring"])
def test_of_large_networks_the_largest_eigenvalues_are_drawn_if_they_are_found(
    topology, monkeypatch
):
    monkeypatch.setattr("reservoir.plotting._overview._DENSE_UNITS", 100)
    model = ReservoirTransformer(400, topology=topology, random_state=0).fit(X)
    axes = plotting.overview(model, X)
    if topology == "ring":  # all have one modulus
        assert titles(axes) == ["states"]
        return
    assert titles(axes) == ["states", "30 largest eigenvalues of W"]
    W = model.reservoir_.W
    sizes = np.sort(np.abs(np.linalg.eigvals(W.toarray())))[::-1]
    drawn = np.hypot(*line(axes[1], "eigenvalues").get_xydata().T)
    np.testing.assert_allclose(np.sort(drawn)[::-1], sizes[:30], rtol=1e-3)


def test_importances_are_those_of_channel_importance():
    model = ESNSequenceClassifier(5, random_state=0).fit(WHOLE, KIND)
    bars = plotting.overview(model, WHOLE, KIND)[0].patches
    found = channel_importance(model, WHOLE, KIND, random_state=0)
    np.testing.assert_array_equal([bar.get_width() for bar in bars], found.importances_mean)


# ---------------------------------------------------------------------- forecasters

NOISY = WAVE[:90] + 3 + 0.1 * np.random.default_rng(0).normal(size=90)


def forecaster(y, exog=None, **options):
    return ESNForecaster(n_networks=1, search="series", random_state=0, **options).fit(y, exog)


def test_a_forecaster_has_its_last_rows_and_the_shares_of_its_models():
    known = np.arange(100)[:, None] % 7 == 0
    model = forecaster(NOISY, known[:90])
    axes = plotting.overview(model, exog=known[90:])
    assert titles(axes) == ["last rows and forecast", "models in the average"]
    assert names(axes[0])[:3] == ["observed", "forecast", "90 % interval"]
    found = line(axes[0], "forecast").get_xydata()
    expected = np.c_[np.arange(90, 100), model.forecast(10, known[90:])]
    np.testing.assert_array_equal(found, expected)
    plt.close("all")
    with pytest.raises(ValueError, match="exog is missing"):
        plotting.overview(model)
    with pytest.raises(TypeError, match="draws its own last rows"):
        plotting.overview(model, NOISY)
    assert not plt.get_fignums()


def containers():
    """Yield containers of two series, and their ESNForecaster's options."""
    pd = pytest.importorskip("pandas")
    both = [NOISY, NOISY[::-1].copy()]
    ids, days = np.repeat([3, 5], 90), pd.date_range("2024-01-01", periods=90)
    long = pd.DataFrame({"id": ids, "y": np.concatenate(both)}, index=[*days, *days])
    yield both, {}
    yield np.c_[ids, np.concatenate(both)], {"sequence_column": 0}
    yield long, {"sequence_column": "id"}
    yield long.reset_index(drop=True), {"sequence_column": "id"}
    yield long.set_index("id", append=True).swaplevel()["y"], {}


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("number", range(5))
def test_each_of_several_series_is_drawn_with_its_forecast(number):
    y, options = list(containers())[number]
    model = forecaster(y, panel="shared", **options)
    axes = plotting.overview(model)
    assert [title.split(",")[1] for title in titles(axes)[:2]] == [" one of 2", " one of 2"]
    n = 24 if number in (0, 1, 3) else 14  # without dates, or two seasons of a week
    guess = model.forecast(n)
    rows = np.ravel(guess) if number in (0, 4) else np.asarray(guess)[:, 1]
    for k in range(2):
        drawn = line(axes[k], "forecast")
        np.testing.assert_array_equal(drawn.get_ydata(), rows[n * k : n * (k + 1)])
        assert len(line(axes[k], "observed").get_xdata()) == min(90, 4 * n)
        start = line(axes[k], "start of the forecast").get_xdata()[0]
        assert start == (90 if number in (0, 1, 3) else np.datetime64("2024-03-31"))


def test_frames_of_polars_are_drawn_with_intervals_and_names(polars):
    y = polars.DataFrame({"a": NOISY, "b": NOISY[::-1]})
    ax = plotting.forecast(forecaster(y, panel="each"), 5, coverage=0.9)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "b"]
    assert names(ax)[:3] == ["observed", "forecast", "90 % interval"]


# ---------------------------------------------------------------------- figures and errors


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("size", [(6.4, 4.8), (3, 2)], ids=str)
def test_panels_do_not_overlap_and_legends_cover_no_axes(size):
    model = esn().fit(X, Y)
    with plt.rc_context({"figure.figsize": size}):
        axes = plotting.overview(model, X, Y)
    figure = axes[0].figure.figure
    figure.draw_without_rendering()
    parts = [ax.figure for ax in axes]
    legends = [legend for part in dict.fromkeys(parts) for legend in part.legends]
    assert len(legends) == 4  # states need none
    boxes = [ax.get_tightbbox() for ax in axes] + [each.get_window_extent() for each in legends]
    for i, first in enumerate(boxes):
        assert not any(first.shrunk(0.98, 0.98).overlaps(other) for other in boxes[:i])
    assert figure.get_size_inches()[0] == size[0]
    low, high = axes[2].get_window_extent().x0, axes[3].get_window_extent().x0
    assert (high > low + 50) == (size[0] > 4)  # side by side if there is room


def test_given_axes_are_as_many_as_there_are_panels():
    model = esn().fit(X, Y)
    given = plt.figure().subplots(2, 3).ravel()
    assert plotting.overview(model, X, Y, ax=given).tolist() == given.tolist()
    with pytest.raises(ValueError, match="ax contains 5 Axes, but there are 6 panels"):
        plotting.overview(model, X, Y, ax=given[:5])


@pytest.mark.parametrize(
    ("draw", "error", "told"),
    [
        (lambda m: plotting.overview(m), TypeError, "ESNRegressor needs X and y"),
        (lambda m: plotting.overview(m, X), TypeError, "ESNRegressor needs X and y"),
        (
            lambda m: plotting.overview(m, X, Y[:-1]),
            ValueError,
            r"y has shape \(238,\), but the predictions",
        ),
        (lambda m: plotting.overview(m, X, TWO[1:]), ValueError, r"y has shape \(239, 2\), but"),
        (lambda m: plotting.overview(m, X, Y, exog=X), TypeError, "exog is for an ESNForecaster"),
        (lambda m: plotting.overview(esn(), X, Y), NotFittedError, "not fitted yet"),
        (lambda m: plotting.overview(ESNRegressor, X, Y), TypeError, "the class ESNRegressor"),
        (lambda m: plotting.overview(m.reservoir_), TypeError, "model is Reservoir; it must"),
        (lambda m: plotting.overview(X), TypeError, "model is ndarray; it must be a fitted"),
        (lambda m: plotting.overview(search(refit=False).fit(X, Y)), ValueError, "refit=True"),
        (lambda m: plotting.overview(KMeans(2).fit(X), X, Y), TypeError, "nothing that overview"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_a_sentence(draw, error, told):
    with pytest.raises(error, match=told):
        draw(esn(alpha=1e-6).fit(X, Y))
    assert not plt.get_fignums()

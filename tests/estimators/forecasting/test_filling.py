"""Gaps in series, filled from both sides."""

import numpy as np
import pytest
from scipy.signal import lfilter
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir import (
    ESNForecaster,
    ESNRegressor,
    NVARRegressor,
    RNNRegressor,
    fill_gap,
    fill_gaps,
    forecast,
)
from reservoir.datasets import load_sunspots
from reservoir.estimators.forecasting import filling
from reservoir.model_selection import ClosedLoopSearchCV, make_forecast_pairs

pytestmark = pytest.mark.both_engines

ESN = ESNRegressor(60, alpha=1e-2, random_state=0)


@pytest.fixture(scope="module")
def course():
    """Two variables that follow a third, which is known throughout."""
    t = np.arange(500)
    force = np.sin(0.11 * t) + 0.3 * np.cos(0.37 * t)
    rows = np.zeros((500, 2))
    for k in range(1, 500):
        rows[k, 0] = 0.8 * rows[k - 1, 0] + 0.5 * force[k]
        rows[k, 1] = 0.5 * rows[k - 1, 1] - 0.2 * rows[k - 1, 0]
    return 300 + 10 * rows, force


def with_gaps(values, *gaps):
    y = values.copy()
    for gap in gaps:
        y[slice(*gap)] = np.nan
    return y


def steady_model():
    """A model that has learned that everything stays as it is."""
    levels = [np.full(20, level) for level in (-2.0, 0.0, 1.0, 5.0)]
    return NVARRegressor(1, degree=1, alpha=1e-12).fit(
        [level[:-1, None] for level in levels], [level[1:] for level in levels]
    )


@pytest.mark.parametrize("n_steps", [1, 2, 7, 30])
def test_two_models_that_repeat_make_a_line(n_steps):
    model = steady_model()
    filled = fill_gap(model, model, n_steps, before=[9.0, 0.5], after=[3.5, 9.0], clip=False)
    line = np.interp(np.arange(n_steps), [-1, n_steps], [0.5, 3.5])
    np.testing.assert_allclose(filled, line, rtol=1e-6)


@pytest.mark.parametrize("known", [False, True])
def test_is_two_forecasts_by_hand(course, known):
    rows, force = course
    rows = (rows - 300) / 10
    exog = force if known else None
    series = [rows[:180], rows[260:]]
    given = [force[:180], force[260:]] if known else None
    forward = ESNRegressor(60, random_state=1).fit(*make_forecast_pairs(series, exog=given))
    turned = [part[::-1] for part in series]
    turned_given = [part[::-1] for part in given] if known else None
    backward = ESNRegressor(60, random_state=2).fit(*make_forecast_pairs(turned, exog=turned_given))
    before, after = rows[50:180], rows[260:330]
    filled = fill_gap(
        forward, backward, 80, before=before, after=after, exog=force[50:330] if known else None
    )
    ahead = forecast(
        forward,
        80,
        context=np.c_[before, force[51:181]] if known else before,
        exog=force[181:260, None] if known else None,
        clip=True,
    )
    back = forecast(
        backward,
        80,
        context=np.c_[after[::-1], force[259:329][::-1]] if known else after[::-1],
        exog=force[180:259, None][::-1] if known else None,
        clip=True,
    )[::-1]
    share = np.arange(1, 81)[:, None] / 81
    np.testing.assert_allclose(filled, (1 - share) * ahead + share * back, rtol=1e-9, atol=1e-12)
    # and all of it at once, on standardised values
    mean, scale = np.r_[rows[:180], rows[260:]].mean(axis=0), np.r_[rows[:180], rows[260:]].std(0)
    units, of_force = (rows - mean) / scale, (force - force.mean()) / force.std()
    by_hand = fill_gap(
        ESN.fit(*_pairs(units, of_force if known else None, False)),
        ESNRegressor(**ESN.get_params()).fit(*_pairs(units, of_force if known else None, True)),
        80,
        before=units[:180],
        after=units[260:],
        exog=of_force if known else None,
        clip=False,
    )
    whole = fill_gaps(with_gaps(rows, (180, 260)), ESN, exog=exog, weights="distance", clip=False)
    np.testing.assert_allclose(whole[180:260], by_hand * scale + mean, rtol=1e-6, atol=1e-9)


def _pairs(units, force, turn):
    parts = [slice(0, 180), slice(260, 500)]
    order = slice(None, None, -1) if turn else slice(None)
    if turn:
        parts = parts[::-1]
    given = None if force is None else [force[part][order] for part in parts]
    return make_forecast_pairs([units[part][order] for part in parts], exog=given)


MODELS = {
    "esn": ESN,
    "polynomials": NVARRegressor(2, alpha=1e-4),
    "trained": RNNRegressor(6, max_iter=3, random_state=0),
    "search": ClosedLoopSearchCV(ESN, {"alpha": [1e-2, 1e-4]}, horizon=20, n_starts=2),
}


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("name", MODELS)
def test_known_values_stay_and_all_is_filled(name, course):
    rows, force = course
    y = with_gaps(rows, (60, 75), (300, 301), (320, 350))
    y[400, 1] = np.nan  # one value of a row
    given = y.copy()
    filled = fill_gaps(y, MODELS[name], exog=force)
    np.testing.assert_array_equal(y, given)
    known = ~np.isnan(y)
    np.testing.assert_array_equal(filled[known], y[known])
    assert np.isfinite(filled).all()
    error = abs(filled - rows).sum(axis=0) / (~known).sum(axis=0) / rows.std(axis=0)
    assert (error < 0.2).all()
    assert not hasattr(MODELS[name], "coef_") or name == "esn"


@pytest.mark.filterwarnings("ignore:The readout has .* columns:UserWarning")
@pytest.mark.slow
def test_both_sides_are_better_than_one(global_random_seed):
    # an oscillation that noise drives: it is as easily foretold as traced back
    ratios = []
    for seed in range(global_random_seed, global_random_seed + 3):
        noise = np.random.default_rng(seed).normal(size=1900)
        series = lfilter([1.0], [1.0, -2 * 0.999 * np.cos(0.2), 0.999**2], noise)[500:]
        series /= series.std()
        y = with_gaps(series, *[(k, k + 30) for k in range(200, 1300, 100)])
        missing = np.isnan(y)
        model = ESNRegressor(30, input_scaling=0.3, alpha=1e-2, random_state=seed)
        both = fill_gaps(y, model)
        one = y.copy()
        for k in range(200, 1300, 100):  # a gap at the end has one side
            one[k : k + 30] = fill_gaps(np.r_[one[:k], np.full(30, np.nan)], model)[k:]
        errors = [np.linalg.norm((filled - series)[missing]) for filled in (both, one)]
        ratios.append(errors[0] / errors[1])
    assert np.median(ratios) < 0.9


def test_weights_by_error_trust_the_direction_that_can_be_foretold(course, global_random_seed):
    # what forgets its past grows without bounds when it is run backwards
    rows, force = course
    y = with_gaps(rows, (150, 180), (320, 350))
    missing = np.isnan(y)
    model = ESNRegressor(60, alpha=1e-4, random_state=global_random_seed)
    found = {
        name: np.sqrt(np.mean((fill_gaps(y, model, exog=force, weights=name) - rows)[missing] ** 2))
        for name in ("error", "distance")
    }
    assert found["error"] < 0.3 * found["distance"]


def test_weights_by_error_are_measured_within_the_stretches(course):
    # by hand: the same loops one by one, forward and backward
    rows, force = course
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    force = (force - force.mean()) / force.std()
    y = with_gaps(rows, (250, 270))
    by_error, by_distance = (
        fill_gaps(y, ESN, exog=force, weights=name)[250:270] for name in ("error", "distance")
    )
    units = np.r_[rows[:250], rows[270:]]
    mean, scale = units.mean(axis=0), units.std(axis=0)
    series, errors, sides = (rows - mean) / scale, [], []
    for turn in (1, -1):
        parts = [slice(0, 250), slice(270, 500)][::turn]
        parts = [(series[part][::turn], force[part][::turn]) for part in parts]
        model = ESNRegressor(**ESN.get_params())
        model.fit(*make_forecast_pairs([p for p, _ in parts], exog=[f for _, f in parts]))
        # loops of 20 steps that begin with row t of the pairs, listening from 40 rows before on
        places = [(i, t) for i, (p, _) in enumerate(parts) for t in range(30, len(p) - 1 - 20)]
        picked = np.unique(np.linspace(0, len(places) - 1, 16).astype(int))
        squares = []
        for i, t in (places[k] for k in picked):
            p, f = parts[i]
            said = forecast(
                model,
                20,
                context=np.c_[p[: t + 1], f[1 : t + 2]],
                exog=f[t + 2 : t + 21, None],
                clip=True,
            )
            squares.append((said - p[t + 1 : t + 21]) ** 2)
        errors.append(np.maximum.accumulate(np.mean(squares, axis=0), axis=0))
        p, f = series[::turn], force[::turn]
        a = 250 if turn == 1 else 230
        context, ahead = np.c_[p[:a], f[1 : a + 1]], f[a + 1 : a + 20, None]
        sides.append(forecast(model, 20, context=context, exog=ahead, clip=True)[::turn])
    share = errors[0] / (errors[0] + errors[1][::-1])
    expected = ((1 - share) * sides[0] + share * sides[1]) * scale + mean
    np.testing.assert_allclose(by_error, expected, atol=2e-3 * abs(by_error - by_distance).max())


def test_gaps_too_long_to_be_judged_are_weighted_by_distance(course):
    y = with_gaps(course[0], (150, 380))
    found = [
        fill_gaps(y, NVARRegressor(1, alpha=1.0), weights=name) for name in ("error", "distance")
    ]
    np.testing.assert_array_equal(*found)


def test_what_never_changes_stays():
    y = with_gaps(np.full(200, 7.0), (90, 110))
    np.testing.assert_allclose(fill_gaps(y, ESN), 7.0, rtol=1e-12)


def test_weights_of_one_gap(course):
    model = steady_model()
    weights = np.array([0.0, 1.0, 0.25])
    filled = fill_gap(model, model, 3, before=[1.0], after=[3.0], weights=weights)
    np.testing.assert_allclose(filled, [1.0, 3.0, 1.5], rtol=1e-6)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("gaps", [((0, 25), (200, 230)), ((120, 130), (480, 500))])
def test_directions_and_units_do_not_matter(gaps, course):
    rows, force = course
    y = with_gaps(rows, *gaps)
    filled = fill_gaps(y, ESN, exog=force)
    turned = fill_gaps(y[::-1], ESN, exog=force[::-1])[::-1]
    np.testing.assert_allclose(filled, turned, rtol=1e-6)
    kelvin = fill_gaps(y * [2.0, 0.5] - 7, ESN, exog=force * 1e3)
    np.testing.assert_allclose(kelvin, filled * [2.0, 0.5] - 7, rtol=1e-6)
    # a range or a function in the units of y
    low, high = np.array([295.0, 299.0]), np.array([310.0, 301.0])
    of_pair = fill_gaps(y, ESN, exog=force, clip=(low, high))
    of_function = fill_gaps(y, ESN, exog=force, clip=lambda row: np.clip(row, low, high))
    np.testing.assert_allclose(of_pair, of_function, rtol=1e-9)
    assert abs(of_pair - filled).max() > 1e-3


def test_what_is_filled_in_stays_near_the_known_values():
    y = with_gaps(load_sunspots().ravel(), (40, 60), (100, 130), (200, 230))
    model = ESNRegressor(300, leak_rate=1.0, alpha=1e-9, random_state=0)
    known = y[~np.isnan(y)]
    low, high = known.min(), known.max()
    filled = fill_gaps(y, model)
    width = (high - low) * (1 + 1e-12)
    assert low - width <= filled.min()
    assert filled.max() <= high + width
    with pytest.warns(RuntimeWarning, match="left the range"):
        free = fill_gaps(y, model, clip=False)
    assert abs(free).max() > 10 * (high - low)


def test_one_column_is_one_number(course):
    y = with_gaps(course[0][:, 0], (100, 120))
    flat = fill_gaps(y, ESN)
    assert flat.shape == (500,)
    np.testing.assert_allclose(flat, fill_gaps(y[:, None], ESN)[:, 0], rtol=1e-9)


def test_nothing_missing_is_a_copy(course):
    rows = course[0]
    filled = fill_gaps(rows, object())
    np.testing.assert_array_equal(filled, rows)
    assert filled is not rows


def test_tables_stay_tables(course):
    pd = pytest.importorskip("pandas")
    rows, force = course
    index = pd.date_range("2026-01-01", periods=500, freq="h")
    table = pd.DataFrame(with_gaps(rows, (50, 70)), index=index, columns=["load", "heat"])
    known = pd.DataFrame({"force": force}, index=index)
    filled = fill_gaps(table, ESN, exog=known)
    pd.testing.assert_index_equal(filled.index, index)
    assert list(filled.columns) == ["load", "heat"]
    np.testing.assert_array_equal(filled.to_numpy(), fill_gaps(table.to_numpy(), ESN, exog=force))
    series = fill_gaps(table["load"], ESN)
    assert series.name == "load"
    assert not series.isna().any()
    with pytest.raises(ValueError, match=r"different indices, first in row 0.*exog\.set_axis"):
        fill_gaps(table, ESN, exog=known.shift(1, freq="h"))
    with pytest.warns(UserWarning, match="No frequency"):
        fill_gaps(table.drop(index=index[200:203]), ESN)


def test_weights_per_row_serve_every_column(course):
    rows = (course[0] - 300) / 10
    weights = np.linspace(0, 1, 7)
    turned = ESNRegressor(30, alpha=1e-2, random_state=0).fit(*make_forecast_pairs(rows[::-1]))
    model = ESNRegressor(30, alpha=1e-2, random_state=0).fit(*make_forecast_pairs(rows))
    sides = {"before": rows[100:200], "after": rows[207:300]}
    one = fill_gap(model, turned, 7, **sides, weights=weights)
    each = fill_gap(model, turned, 7, **sides, weights=np.repeat(weights[:, None], 2, axis=1))
    np.testing.assert_array_equal(one, each)


def test_a_stretch_of_just_enough_rows_is_learned_from(course):
    y = with_gaps(course[0][:60, 0], (30, 40))
    assert not np.isnan(fill_gaps(y, ESN, min_rows=30)).any()
    with pytest.raises(ValueError, match="the longest has 30"):
        fill_gaps(y, ESN, min_rows=31)


def test_no_more_rows_are_listened_to_than_asked_for(course, monkeypatch):
    heard = []

    def watched(model, n_steps, *, context, **options):
        heard.append(len(context))
        return forecast(model, n_steps, context=context, **options)

    monkeypatch.setattr(filling, "forecast", watched)
    y = with_gaps(course[0][:, 0], (200, 210), (300, 305))
    fill_gaps(y, ESN, n_context=25)
    assert heard == [25] * 4
    heard.clear()
    fill_gaps(y, ESN)
    assert heard == [200, 300, 195, 290]


def test_a_direction_whose_loops_are_lost_does_not_count(course, monkeypatch):
    """Loops that overflow count as equally and very wrong, and make no NaN."""
    run_trials, y = filling.run_trials, with_gaps(course[0][:, 0], (200, 210))
    found = {}
    for lost in ([0], [1], [0, 1]):  # forwards in time, backwards, both
        calls = iter(range(2))

        def trials(*args, calls=calls, lost=lost, **options):
            said = run_trials(*args, **options)
            return np.full_like(said, np.inf) if next(calls) in lost else said

        monkeypatch.setattr(filling, "run_trials", trials)
        found[tuple(lost)] = fill_gaps(y, ESN)
    assert abs(found[0,] - found[1,]).max() > 0
    np.testing.assert_allclose(found[0, 1], (found[0,] + found[1,]) / 2, rtol=1e-12)


def test_without_a_clip_nothing_is_held(course):
    y = with_gaps(course[0][:, 0], (200, 230))
    np.testing.assert_array_equal(fill_gaps(y, ESN, clip=None), fill_gaps(y, ESN, clip=False))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"model": make_pipeline(StandardScaler(), ESN)}, TypeError, "needs the network itself"),
        ({"model": TransformedTargetRegressor(ESN)}, TypeError, "needs the network itself"),
        ({"model": ESNForecaster()}, TypeError, "got ESNForecaster"),
        ({"model": "esn"}, TypeError, "got str"),
        ({"min_rows": 1}, ValueError, "min_rows"),
        ({"min_rows": 400}, ValueError, r"min_rows=400 .*longest has 290"),
        ({"n_context": 0}, ValueError, "n_context"),
        ({"weights": "equal"}, ValueError, "weights='equal'"),
        ({"exog": np.zeros(499)}, ValueError, "exog has 499 rows.*500"),
        ({"exog": np.r_[np.nan, np.zeros(499)]}, ValueError, "exog contains NaN in column 0"),
        ({"y": np.full(500, np.nan)}, ValueError, "longest has 0"),
    ],
)
def test_errors(change, error, message, course):
    task = {"y": with_gaps(course[0], (200, 210)), "model": ESN, **change}
    with pytest.raises(error, match=message):
        fill_gaps(**task)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_steps": 0}, "n_steps"),
        ({"before": np.zeros(0)}, "has no rows"),
        ({"after": [np.nan]}, "after contains NaN in column 0, first in row 0"),
        ({"after": [[1.0]]}, r"before has shape \(2,\), but after has shape \(1, 1\)"),
        ({"exog": np.zeros((3, 1))}, "exog has 3 rows, but the series has 7"),
        ({"weights": [0.5, 0.5]}, r"must be between 0 and 1, of shape \(3,\)"),
        ({"weights": [0.0, 0.5, 1.5]}, "between 0 and 1.5"),
        ({"weights": [-0.5, 0.5, 1.0]}, "between -0.5 and 1"),
    ],
)
def test_errors_of_one_gap(change, message):
    model = steady_model()
    task = {"n_steps": 3, "before": [0.0, 1.0], "after": [1.0, 2.0], **change}
    with pytest.raises(ValueError, match=message):
        fill_gap(model, model, **task)

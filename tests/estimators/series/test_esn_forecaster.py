"""ESNForecaster of series that follow a dynamical law: containers, errors, accuracy."""

import logging
import pickle
import sys
import warnings

import numpy as np
import pytest

from helpers.series import assert_first_steps_stay
from reservoir import ESNForecaster, ESNRegressor, load, save
from reservoir.datasets import henon, logistic_map, lorenz, lorenz96, mackey_glass, roessler
from reservoir.estimators.series import model_search
from reservoir.model_selection import make_forecast_pairs

pytestmark = pytest.mark.one_engine

ORBIT = lorenz(200, dt=0.05, random_state=0)
NO_BETTER = "no network does better on these data than their mean"
SMALL = [{"n_units": 25}, {"n_units": 15, "spectral_radius": 0.4, "augment": "square"}]
LAGS = [{"n_units": 15, "n_lags": 3, "skip": 2, "augment": "square"}]


def small(**params):
    return ESNForecaster(**{"search": SMALL, "n_networks": 2, "random_state": 0} | params)


def tiny(**params):
    """What containers hold is read alike whatever the networks."""
    return small(**{"search": SMALL[:1], "n_networks": 1} | params)


def fields_of(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


def same(a, b):
    np.testing.assert_equal(fields_of(a), fields_of(b))
    np.testing.assert_array_equal(a.forecast(20), b.forecast(20))


@pytest.fixture(scope="module")
def fitted():
    return small().fit(ORBIT)


# --- containers ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def arrays():
    """Models of one column without and with its dimension, and of all columns, by the shape."""
    return {rows.shape[1:]: tiny().fit(rows) for rows in (ORBIT[:, 0], ORBIT[:, :1], ORBIT)}


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("rows", [ORBIT[:, 0], ORBIT[:, :1], ORBIT], ids=np.shape)
def test_lists_are_the_arrays_that_they_hold(rows, arrays):
    model = arrays[rows.shape[1:]]
    expected = model.forecast(7)
    assert expected.shape == (7, *rows.shape[1:])
    for given in (rows.tolist(), [rows], rows.astype(object)):
        np.testing.assert_array_equal(tiny().fit(given).forecast(7), expected)
    np.testing.assert_array_equal(model.forecast(7, context=rows.tolist()), expected)
    if rows.ndim == 1:  # is one column
        np.testing.assert_array_equal(arrays[(1,)].forecast(7)[:, 0], expected)
        np.testing.assert_array_equal(model.forecast(7, context=rows[:, None]), expected)


def test_trajectories_come_in_lists_object_arrays_and_three_dimensions():
    parts = [ORBIT[:100], ORBIT[100:]]
    expected = tiny().fit(parts).forecast(7)
    packed = np.empty(2, object)
    packed[:] = parts
    for given in (packed, np.stack(parts), [part.tolist() for part in parts]):
        np.testing.assert_array_equal(tiny().fit(given).forecast(7), expected)
    flat, table = (tiny().fit([part[:, of] for part in parts]).forecast(7) for of in (0, [0]))
    assert flat.shape == (7,)
    np.testing.assert_array_equal(flat, table[:, 0])


def test_tables_of_pandas_keep_their_names(arrays):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(ORBIT, columns=["x", "y", "z"])
    model = tiny().fit(frame)
    assert list(model.feature_names_in_) == ["x", "y", "z"]
    expected = pd.DataFrame(arrays[(3,)].forecast(5), pd.RangeIndex(200, 205), frame.columns)
    pd.testing.assert_frame_equal(model.forecast(5), expected)
    pd.testing.assert_frame_equal(model.forecast(5, context=frame), expected)
    with pytest.warns(UserWarning, match=r"context has no column names.*x, y, z, in this order"):
        model.forecast(5, context=ORBIT)
    with pytest.raises(ValueError, match="Column 0 of context is 'y', but in fit it was 'x'"):
        model.forecast(5, context=frame[["y", "x", "z"]])
    one = tiny().fit(frame["x"])
    np.testing.assert_array_equal(one.forecast(5), arrays[()].forecast(5))
    one.forecast(5, context=ORBIT[:, 0])  # one column is no question of order: no warning


def test_tables_of_polars(polars, arrays):
    frame = polars.DataFrame(ORBIT, schema=["x", "y", "z"])
    for given, shape in ((frame, (3,)), (frame["x"], ())):
        np.testing.assert_array_equal(tiny().fit(given).forecast(5), arrays[shape].forecast(5))


def test_forecasts_have_the_precision_of_the_data():
    double, single = ORBIT[:60], ORBIT[:60].astype(np.float32)
    for rows, dtype in (
        (double, np.float64),
        (single, np.float32),
        ([single, single], np.float32),
        ([single, double], np.float64),
        ([double, single], np.float64),
        (np.round(double).astype(int), np.float64),
    ):
        assert tiny().fit(rows).forecast(3).dtype == dtype
    pd = pytest.importorskip("pandas")
    assert (tiny().fit(pd.DataFrame(single)).forecast(3).dtypes == np.float32).all()


def test_an_offset_leaves_the_digits_that_it_leaves(fitted):
    offset = small().fit(1e9 + ORBIT).forecast(20) - 1e9
    np.testing.assert_allclose(offset, fitted.forecast(20), atol=0.02)


# --- chance, copies, files -----------------------------------------------------------------------


def test_the_same_seed_gives_the_same_bits_and_another_does_not(fitted):
    same(fitted, small().fit(ORBIT))
    other = small(random_state=1).fit(ORBIT)
    assert np.abs(other.forecast(20) - fitted.forecast(20)).max() > 0
    legacy = [small(random_state=np.random.RandomState(3)).fit(ORBIT) for _ in range(2)]
    same(*legacy)


def test_forecasts_change_nothing(fitted):
    first = fitted.forecast(10)
    fitted.forecast(3, context=ORBIT[:100])
    np.testing.assert_array_equal(fitted.forecast(10), first)
    np.testing.assert_array_equal(fitted.forecast(4), first[:4])
    assert repr(fitted.get_params()) == repr(small().get_params())  # so does fit


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_workers_change_no_bit(backend, fitted):
    joblib = pytest.importorskip("joblib")
    with joblib.parallel_backend(backend):
        same(small(n_jobs=2).fit(ORBIT), fitted)


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("case", ["plain", "lags", "exog", "found"])
def test_files_and_pickles_hold_every_bit(case, tmp_path, fitted):
    more = {"exog": ORBIT[:20, 1:]} if case == "exog" else {}
    model = {
        "plain": lambda: fitted,
        "lags": lambda: small(search=LAGS).fit(ORBIT),
        "exog": lambda: small().fit(ORBIT[:, :1], ORBIT[:, 1:]),
        "found": lambda: ESNForecaster(random_state=0).fit(ORBIT[:100, 0]),
    }[case]()
    save(model, tmp_path / "model.npz")
    for back in (load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_equal(fields_of(back), fields_of(model))
        np.testing.assert_array_equal(back.forecast(20, **more), model.forecast(20, **more))


def test_a_fit_that_fails_leaves_what_was_fitted(fitted, monkeypatch):
    model = pickle.loads(pickle.dumps(fitted))
    for bad in (BROKEN, ORBIT[:10], ORBIT[:, :2] * 0):
        with pytest.raises(ValueError, match="y"):
            model.fit(bad)
        same(model, fitted)
    with pytest.raises(ValueError, match="exog"):
        model.fit(ORBIT[:, :1], exog=ORBIT[:-1, 1])
    same(model, fitted)
    monkeypatch.setattr("reservoir.estimators.series.model_search.asdict", None)
    with pytest.raises(TypeError):  # behind the last network
        model.fit(ORBIT[:, :1])
    same(model, fitted)


def test_a_second_fit_is_a_first_one(fitted):
    same(small().fit(ORBIT[:, 0], exog=ORBIT[:, 1]).fit(ORBIT), fitted)


# --- what is kept, and shown ---------------------------------------------------------------------


def test_search_results_name_what_was_tried(fitted):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(fitted.search_results_)
    assert set(table.n_units) == {15, 25}
    assert sorted(table["rank"]) == list(range(1, len(table) + 1))
    best = table.loc[table["rank"].idxmin()]
    assert best.score == table.score.max() == fitted.best_score_
    numbers = {name: x for name, x in fitted.best_params_.items() if name != "augment"}
    assert {name: best[name] for name in numbers} == numbers
    assert (table.observed == "all").all()
    assert (table.groupby("n_units").alpha.nunique() == table.alpha.nunique()).all()


def test_progress_names_what_is_done(monkeypatch, caplog, capsys):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with caplog.at_level(logging.INFO, logger="reservoir"):
        small(verbose=1).fit(ORBIT)
    assert caplog.messages[0].startswith("fit, trying: network 1 of 2, ")
    assert caplog.messages[0].endswith(" s remaining")
    assert any(text.startswith("fit, fitting: network 1 of") for text in caplog.messages)
    assert capsys.readouterr().out == ""


# --- where forecasts begin -----------------------------------------------------------------------


@pytest.mark.parametrize("search", [SMALL, LAGS], ids=["one row", "lags"])
def test_a_context_is_another_start(search, fitted):
    model = fitted if search is SMALL else small(search=search).fit(ORBIT)
    least = 2 if search is SMALL else 5
    with pytest.raises(ValueError, match=f"context has 1 row, but .* need at least {least}"):
        model.forecast(3, context=ORBIT[:1])
    np.testing.assert_array_equal(model.forecast(20, context=ORBIT), model.forecast(20))
    # units forget: a late part of the series leads to nearly the same forecast
    part = model.forecast(20, context=ORBIT[-60:])
    np.testing.assert_allclose(part, model.forecast(20), atol=1e-3)
    elsewhere = model.forecast(3, context=ORBIT[:150])
    np.testing.assert_allclose(elsewhere, ORBIT[150:153], atol=1.0)
    with pytest.warns(UserWarning, match="context has 15 rows, but networks need about 20 before"):
        model.forecast(3, context=ORBIT[:15])


@pytest.mark.fast_cases(1)
@pytest.mark.filterwarnings("ignore:The forecast was clipped at its bounds")
@pytest.mark.parametrize("case", ["no seed", "lags", "exog", "context"])
def test_more_steps_change_none_of_the_first(case):
    y, known = (ORBIT[:, :1], ORBIT[60:, 1:]) if case == "exog" else (ORBIT, None)
    search, seed = LAGS if case == "lags" else SMALL[:1], None if case == "no seed" else 0
    model = small(search=search, random_state=seed)
    model.fit(y[:60], None if known is None else ORBIT[:60, 1:])
    context = y[50:100] if case == "context" else None

    def bands(n_steps):
        exog = None if known is None else known[:n_steps]
        return model.forecast(n_steps, exog, context, coverage=[0.5, 0.9])

    def paths(n_steps):
        exog = None if known is None else known[:n_steps]
        return model.simulate(n_steps, 4, random_state=1, exog=exog).swapaxes(0, 1)

    leeway = 1e-12 * np.ptp(y[:60], axis=0).min()
    for ahead in (bands, paths):
        assert_first_steps_stay(ahead, (1, 9), 50, leeway)


def test_forecasts_continue_from_the_last_trajectory():
    model = small().fit([ORBIT[:120], ORBIT[120:]])
    np.testing.assert_array_equal(model.forecast(9), model.forecast(9, context=ORBIT[120:]))
    with pytest.warns(UserWarning, match=r'season=\[1, 12\] has no effect.* panel="each"'):
        back = small(season=[1, 12]).fit([ORBIT[120:], ORBIT[:120]]).forecast(3)
    np.testing.assert_allclose(back, ORBIT[120:123], atol=1.0)


def test_no_step_is_learned_across_a_boundary():
    # a walk on a circle, cut where it has turned half way: the cut would be the largest step
    turn = 0.3 * np.arange(150)
    circle = np.column_stack([np.cos(turn), np.sin(turn)])
    model = small().fit([circle, -circle + [5.0, 0.0]])
    assert model.forecast(1, context=circle)[0, 0] == pytest.approx(np.cos(0.3 * 150), abs=1e-3)


@pytest.mark.fast_cases(1)
@pytest.mark.filterwarnings("ignore:The forecast was clipped:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:In closed loop no network:UserWarning")
@pytest.mark.parametrize("short", [2, 5, 12])
def test_short_trajectories_are_no_trouble_beside_a_long_one(short):
    model = small().fit([ORBIT[:100], *[ORBIT[k : k + short] for k in range(100, 180)]])
    assert np.isfinite(model.forecast(5)).all()
    noisy = np.random.default_rng(0).normal(size=(400, 2)).cumsum(axis=0)
    pieces = [noisy[:40], *[noisy[k : k + short] for k in range(40, 240, 4)]]
    assert np.isfinite(small(horizon=3).fit(pieces).forecast(5)).all()


# --- what is known beforehand --------------------------------------------------------------------


def driven(n, seed=0):
    """Return y and exog of a map whose row t depends on row t - 1 and the force of row t."""
    force = np.random.default_rng(seed).uniform(-1, 1, n)
    y = np.zeros(n)
    for t in range(1, n):
        y[t] = 0.5 * y[t - 1] + np.tanh(force[t])
    return y, force


def test_a_driven_system_is_forecast_with_what_drives_it():
    y, force = driven(500)
    model = small().fit(y[:400], exog=force[:400])
    forecast = model.forecast(100, exog=force[400:])
    assert np.abs(forecast - y[400:]).max() < 0.05
    # a row too early or too late, and the forecast is lost
    for wrong in (force[399:499], np.append(force[401:], 0.0)):
        assert np.abs(model.forecast(100, exog=wrong) - y[400:]).mean() > 0.3
    whole = model.forecast(50, exog=force[100:450], context=y[100:400])
    np.testing.assert_allclose(whole, forecast[:50], atol=1e-3)
    whole = model.forecast(9, exog=force[:409], context=y[:400])
    np.testing.assert_array_equal(whole, forecast[:9])
    with pytest.warns(UserWarning, match=NO_BETTER):
        small().fit(y[:400])


def test_a_constant_exogenous_column_does_no_harm(fitted):
    exog = np.full(200, 0.1)
    exog[::2] += 1e-17  # nothing that floating point holds
    model = small().fit(ORBIT, exog)
    found = model.forecast(5, exog=exog[:5])
    np.testing.assert_allclose(found, fitted.forecast(5), atol=0.3)


# --- what is no better than the mean ------------------------------------------------------------


def noise(n_rows, seed):
    return 5 + np.random.default_rng(seed).normal(size=n_rows)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("seed", range(5))  # a network may do better on rows of another seed
def test_networks_no_better_than_the_mean_forecast_the_mean(seed, tmp_path):
    y = noise(90, seed)
    with pytest.warns(UserWarning, match=rf"{NO_BETTER}.* The forecast is the mean\."):
        model = small(search="dynamics", n_networks=1).fit(y)
    assert model.kind_ == "dynamics"
    assert "forecast: the mean" in model.summary()
    save(model, tmp_path / "mean.npz")
    for one in (model, load(tmp_path / "mean.npz")):
        point, lower, upper = one.forecast(5, coverage=0.9).T
        np.testing.assert_allclose(point, y.mean())
        width = (upper - lower) / (3.3 * y.std())  # of normal rows
        assert 0.5 < width.min() <= width.max() < 2
        assert one.simulate(5, 200).std() == pytest.approx(y.std(), rel=0.5)
    np.testing.assert_allclose(model.forecast(2, context=y[:9] - 2), y.mean())
    np.testing.assert_allclose(model.update([6.0, np.nan, 4.0]).forecast(2), y.mean())
    pair = np.column_stack([y, y[::-1] - 3])
    with pytest.warns(UserWarning, match=NO_BETTER):
        model = small(search="dynamics", n_networks=1).fit([pair[:40], pair[40:]])
    np.testing.assert_allclose(model.forecast(2)[1], pair.mean(axis=0))


def no_good(monkeypatch):
    """Let data be taken for dynamics, of which a few networks then are no better than the mean."""
    fit, plans = model_search.fit_dynamics, model_search.plans_of_users(SMALL[:1])
    monkeypatch.setattr(model_search, "chosen_way", lambda *given: "dynamics")
    monkeypatch.setattr(model_search, "_WORTH", np.inf)
    monkeypatch.setattr(
        model_search, "fit_dynamics", lambda y, x, s, p: fit(y, x, s._replace(plans=plans), p)
    )


def test_models_of_series_replace_networks_no_better_than_the_mean(monkeypatch):
    y = noise(40, 0) + 9 * np.sin(np.pi * np.arange(40) / 2)
    expected = small(search="series", season=4).fit(y)
    no_good(monkeypatch)
    same(small(search="auto", season=4).fit(y), expected)


def test_the_mean_replaces_models_that_are_all_no_better(monkeypatch):
    no_good(monkeypatch)
    y = noise(40, 1)
    with pytest.warns(UserWarning, match="Neither networks .* The forecast is the mean"):
        model = small(search="auto", season=1).fit(y)
    assert model.kind_ == "series"
    assert model.search_results_["share"][model.search_results_["model"] == "mean"] == 1
    point, lower, upper = model.forecast(5, coverage=0.9).T
    np.testing.assert_allclose(point, y.mean())
    np.testing.assert_allclose(upper - lower, 3.3 * y.std(), rtol=0.5)
    model.update([7.0])
    np.testing.assert_allclose(model.forecast(2), np.append(y, 7.0).mean())


@pytest.mark.slow
@pytest.mark.parametrize(("dt", "n_rows"), [(0.2, 700), (0.4, 1500)])
def test_spikes_that_networks_miss_are_forecast_by_models_of_series(dt, n_rows):
    z = roessler(n_rows + 50, dt=dt, random_state=0)[:, 2]
    y, later = z[:n_rows], z[n_rows:]
    forecast = ESNForecaster(random_state=0).fit(y).forecast(50)
    assert forecast.min() >= 0
    assert np.abs(forecast - later).mean() < np.abs(y.mean() - later).mean()


@pytest.mark.filterwarnings(
    f"ignore:.*{NO_BETTER}:UserWarning", "ignore:The forecast was clipped:RuntimeWarning"
)
def test_what_was_never_negative_is_not_forecast_so(global_random_seed):
    y = np.exp(np.random.default_rng(global_random_seed).normal(size=80))
    model = small(search=SMALL[:1], n_networks=1, outliers="keep").fit(np.column_stack([y, y - 1]))
    lowest = model.forecast(20, coverage=0.99).min(axis=(0, 2))
    assert lowest[0] >= 0 > lowest[1]  # the other column may be negative
    assert model.simulate(20, 50)[..., 0].min() >= 0
    context = np.column_stack([y, y - 1])[:30]
    assert model.forecast(20, context=context)[:, 0].min() >= 0
    with pytest.warns(UserWarning, match=r"forecasts .* are between 0 and"):
        model.update([[1.0, 0.0], [-2.0, 0.0]])
    assert model._fits[0].bounds.low[0] < -2


# --- parameters ----------------------------------------------------------------------------------


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("n_networks", [1, 5])
@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.filterwarnings("ignore:In closed loop no network:UserWarning")
def test_the_ensemble_has_the_given_size(n_networks, noise):
    rows = ORBIT + noise * np.random.default_rng(0).normal(size=ORBIT.shape)
    model = small(n_networks=n_networks).fit(rows)
    assert len(model._fits[0].members) == n_networks
    assert np.isfinite(model.forecast(5)).all()


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("clip", [0, 0.1, "auto"])
def test_forecasts_stay_within_their_bounds_and_warn(clip):
    rows = np.exp(np.arange(300) / 40)[:, None]
    model = small(clip=clip).fit(rows)
    with pytest.warns(RuntimeWarning, match=r"clipped at its bounds.*step \d+ of 200"):
        forecast = model.forecast(200)
    width = {"auto": 1.0}.get(clip, clip) * np.ptp(rows)
    assert forecast.max() <= rows.max() + width * (1 + 1e-9)
    assert forecast[-1] == pytest.approx(rows.max() + width)


def test_a_forecast_that_only_touches_its_bounds_is_not_held():
    model = small(clip=0).fit(np.tile([0.0, 1.0], 100))
    np.testing.assert_allclose(model.forecast(50), np.tile([0.0, 1.0], 25), atol=1e-6)


def test_own_networks_have_defaults_and_horizons():
    own = {"n_units": 12}
    model = small(search=[own], horizon=7).fit(ORBIT)
    scales = {"spectral_radius": 0.05, "input_scaling": 0.3, "bias_scaling": 1.0}
    others = {"leak_rate": 1.0, "augment": None, "n_lags": 1, "skip": 1}
    assert model.best_params_ == own | scales | others
    assert model.best_score_ > small(search=[own], horizon=60).fit(ORBIT).best_score_


BAD_PARAMETERS = {
    "search": [
        ("automatic", 'must be "auto", "dynamics", "series", or a list of dicts'),
        ([], 'must be "auto", "dynamics", "series", or a list of dicts'),
        ({"n_units": 9}, 'must be "auto", "dynamics", "series", or a list of dicts'),
        ([{"n_unit": 9}], r"search\[0\] has the key 'n_unit', which is not one of n_units"),
        ([{"n_units": 9}, {"skip": 1}], r"search\[1\] has no n_units"),
        ([{"n_units": 0}], r"search\[0\]: n_units=0 must be at least 1"),
        ([{"n_units": 9.5}], r"search\[0\]: n_units must be an integer"),
        ([{"n_units": 9, "n_lags": 0}], r"n_lags=0 must be at least 1"),
        ([{"n_units": 9, "skip": -1}], r"skip=-1 must be at least 1"),
        ([{"n_units": 9, "leak_rate": 0}], r"leak_rate=0 must be finite and in \(0, 1\]"),
        ([{"n_units": 9, "input_scaling": [1, 2]}], r"input_scaling must be a number"),
        ([{"n_units": 9, "spectral_radius": -1}], r"spectral_radius=-1 must be finite and in \[0"),
        ([{"n_units": 9, "augment": "cube"}], "'cube' is not known.*even_square"),
        ([{"n_units": 9, "augment": np.tanh}], "augment is a function"),
        ([{"n_units": 9, "n_lags": 50, "skip": 10}], "uses 490 past rows.*at most 119"),
    ],
    "n_networks": [(0, "n_networks=0 must be at least 1"), (1.5, "must be an integer")],
    "clip": [(-1, r"clip=-1 must be finite and in \[0"), ("x", 'must be "auto" or a number'),
             (np.nan, "must be finite"), (None, "must be a number")],
    "horizon": [(0, "horizon=0 must be at least 1"), ("x", "must be an integer"),
                (180, "horizon=180 is too long for a loop.*200 consecutive.*must be at most 179")],
    "n_jobs": [(0, "n_jobs=0 means no workers")],
    "verbose": [(-1, "verbose=-1 must be at least 0")],
    "random_state": [("a", "random_state must be None"), (-1, "random_state=-1")],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [(name, *case) for name, cases in BAD_PARAMETERS.items() for case in cases],
)
def test_bad_parameters_raise(name, value, message):
    with pytest.raises((ValueError, TypeError), match=message):
        small(**{name: value}).fit(ORBIT)


# --- bad data ------------------------------------------------------------------------------------


BROKEN = np.where(np.arange(600).reshape(200, 3) == 22, np.nan, ORBIT)  # in row 7, column 1


BAD_SERIES = [
    (ORBIT[:29], "y has 29 rows.*at least 30 consecutive rows.*longer series"),
    ([ORBIT[:20]] * 3, "The longest trajectory of y has 20 rows"),
    ([ORBIT, ORBIT[:1]], "Trajectory 1 of y has 1 row, but.*2 rows or more, or omit it"),
    ([ORBIT, ORBIT[:0]], "trajectory 1 of y has no rows"),
    ([ORBIT, ORBIT[:, :2]], "y.*2"),
    (np.ones(90), r"All rows of y are equal \(value 1, n_samples=90\).*Omit constant columns"),
    (1e13 + np.arange(90) % 2, "All rows of y are equal up to a relative difference of 1e-12"),
    (ORBIT * [1, 0, 1] + 1, r"Column 1 of y is constant \(value 1"),
    ([ORBIT, BROKEN], "trajectory 1 of y contains NaN in column 1, first in row 7.*Fill it"),
]


@pytest.mark.parametrize(("y", "message"), BAD_SERIES)
def test_bad_series_raise(y, message):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        small().fit(y)
    assert "X" not in str(caught.value).split()


def test_tables_and_context_need_a_row_of_exog_for_each_row():
    y, exog = ORBIT[:, :1], ORBIT[:, 1]
    model = tiny().fit(y, exog)
    for call, message in (
        (lambda: tiny().fit([y, y], exog), "exog contains 1 table, but there are 2 trajectories"),
        (
            lambda: tiny().fit([y, y], [exog, exog[1:]]),
            "table 1 of exog has 199 rows, but 200.*row of y",
        ),
        (lambda: model.forecast(5, exog[:5], y[:100]), "exog has 5 rows, but 105 are needed"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize(
    ("context", "message"),
    [
        (ORBIT[:0], "context has no rows"),
        (ORBIT[:, :2], "context has 2 columns.*it had 3"),
        ([ORBIT] * 2, "context contains 2 trajectories"),
        (BROKEN, "context contains NaN"),
    ],
)
def test_bad_contexts_raise(context, message, fitted):
    with pytest.raises(ValueError, match=message):
        fitted.forecast(2, context=context)


# --- series of many kinds ------------------------------------------------------------------------

T = np.arange(400)
RNG = np.random.default_rng(0)
SERIES = {
    "sine": np.sin(0.2 * T),
    "sawtooth": T % 7.0,
    "period of two": T % 2.0,
    "trend and noise": 0.01 * T + 0.1 * RNG.normal(size=400),
    "line": 1.0 * T,
    "Mackey-Glass": mackey_glass(400, random_state=0).ravel(),
    "months": np.exp(
        4.8 + 0.01 * T[:144] + 0.15 * np.sin(T[:144] * np.pi / 6) + 0.03 * RNG.normal(size=144)
    ),
    "integers": (100 * np.sin(0.2 * T)).astype(int),
    "offset": 1e9 + 1e-2 * np.sin(0.2 * T),
    "tiny": 1e-12 * ORBIT,
    "huge": 1e12 * ORBIT,
    "Henon": henon(400, random_state=0),
    "logistic map": logistic_map(400, random_state=0),
    "step": np.where(T > 200, 1.0, 0.0),
    "30 rows": np.sin(0.4 * T[:30]),
    "40 rows of a flow": ORBIT[:40],
    "60 rows, 10 columns": np.sin(0.1 * T[:60, None] + np.arange(10)),
}


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("name", SERIES)
def test_series_of_all_kinds_are_forecast_without_a_warning(name):
    own = [{"n_units": 20, "augment": "square"}, *LAGS]
    model = small(search=own if len(SERIES[name]) > 100 else "dynamics")
    forecast = model.fit(SERIES[name]).forecast(10)
    assert np.isfinite(forecast).all()
    assert model.best_score_ > 0.3


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    "y",
    [RNG.normal(size=300), RNG.standard_t(1.2, size=300), RNG.integers(0, 2, 300) * 1.0],
    ids=["white", "heavy tails", "binary"],
)
def test_networks_of_users_no_better_than_the_mean_are_kept(y):
    with pytest.warns(UserWarning, match=rf"{NO_BETTER}.* unreliable beyond its first steps") as w:
        model = small(search=SMALL[:1]).fit(y)
    assert [each.filename for each in w] == [__file__]
    assert model.best_score_ < 1
    assert np.ptp(model.forecast(5)) > 1e-6  # not the mean


# --- how far it sees -----------------------------------------------------------------------------


def valid_steps(forecast, truth, rows):
    error = np.sqrt((((forecast - truth) / rows.std(axis=0)) ** 2).reshape(len(truth), -1).mean(1))
    return int(np.argmax(error > 0.3)) if (error > 0.3).any() else len(error)


def compared(series, n, seed):
    """Return how many steps are right, by the forecaster and by one network without leaks."""
    rows, truth = series[:n], series[n:]
    own = ESNForecaster(random_state=seed).fit(rows).forecast(len(truth))
    X, y = make_forecast_pairs(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of loops that are lost
        plain = ESNRegressor(100, leak_rate=1.0, alpha=1e-6, random_state=seed).fit(X, y)
        plain = plain.forecast(len(truth))
    return valid_steps(own, truth, rows), valid_steps(plain.reshape(truth.shape), truth, rows)


def noisy_lorenz(seed):
    orbit = lorenz(900, dt=0.05, random_state=seed)
    return orbit + 0.01 * orbit.std(axis=0) * np.random.default_rng(seed).normal(size=orbit.shape)


# A series for a seed, rows to learn from, and steps that a forecast is right for. The logistic map
# loses a bit in each step: double precision ends after 52.
SIGHT = {
    "flow": (lambda seed: lorenz(900, dt=0.05, random_state=seed), 700, 150),
    "flow with noise": (noisy_lorenz, 700, 20),
    "map": (lambda seed: henon(500, random_state=seed), 400, 40),
    "interval map": (lambda seed: logistic_map(460, random_state=seed), 400, 30),
    "one of three": (lambda seed: lorenz(600, dt=0.05, random_state=seed)[:, 0], 450, 30),
    "one of two": (lambda seed: henon(500, random_state=seed)[:, 0], 400, 25),
    "delay": (lambda seed: mackey_glass(600, random_state=seed), 450, 100),
}


@pytest.mark.filterwarnings("ignore:The units .* the bounds of:UserWarning")  # plain
@pytest.mark.slow
@pytest.mark.parametrize("name", SIGHT)
def test_it_sees_far_from_most_starts(name):
    """How far a chaotic forecast is right depends on where it starts: medians over seeds."""
    series_of, n_rows, least = SIGHT[name]
    own, plain = np.transpose([compared(series_of(seed), n_rows, seed) for seed in range(4)])
    print(name, own, plain)
    assert np.median(own) >= least
    assert np.median(own) >= 2 * np.median(plain)
    assert name != "interval map" or max(own) <= 52


@pytest.mark.parametrize("n_variables", [10, pytest.param(40, marks=pytest.mark.slow)])
def test_many_variables_are_forecast_together(n_variables):
    # fewer rows than features
    rows = lorenz96(260, n_features=n_variables, dt=0.01, random_state=0)
    model = small(search=[{"n_units": 150, "augment": "square"}]).fit(rows[:250])
    assert model._fits[0].members[0].source.width > 250
    forecast = model.forecast(10)
    persistence = np.abs(rows[249] - rows[250:]).mean()
    assert np.abs(forecast - rows[250:]).mean() < 0.5 * persistence


@pytest.mark.slow
def test_a_long_series_is_searched_on_a_stretch_and_learned_whole():
    rows = lorenz(25_200, dt=0.02, random_state=0)
    model = ESNForecaster(n_networks=1, random_state=0).fit(rows[:25_000])
    assert model.best_params_["n_units"] == 500
    assert set(model.search_results_["n_units"]) != {500}
    assert valid_steps(model.forecast(200), rows[25_000:], rows) == 200

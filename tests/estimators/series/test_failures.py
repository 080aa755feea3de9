"""Series of a panel that cannot be fitted, with errors="warn": the others are as without them."""

import warnings

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from reservoir import ESNForecaster, load, save  # noqa: E402
from reservoir.estimators.series.fits import Settings  # noqa: E402

pytestmark = pytest.mark.both_engines

N = 10
MONTHS = pd.date_range("2020-01-31", periods=N + 2, freq=pd.offsets.MonthEnd(), name="month")


def quick(**params):
    given = {"panel": "each", "n_networks": 1, "random_state": 0, "errors": "warn"}
    return ESNForecaster(**given | params)


def good(seed, n=N):
    values = 9 + np.random.default_rng(seed).normal(size=n).cumsum()
    return pd.Series(values, MONTHS[:n], name="y")


def bad_parts():
    """Series with a gap, without values, with a stamp twice, and two that can be fitted."""
    gap, empty, twice = good(1).drop(MONTHS[5]), good(2) * np.nan, good(3)[:9]
    twice = pd.concat([twice, twice[-1:]])
    return {"gap": gap, "a": good(4), "empty": empty, "twice": twice, "b": good(5)}


def fitted(model, y, *args):
    """Return the fitted model, and the text of its only warning."""
    with pytest.warns(UserWarning, match="could not be fitted") as caught:
        model.fit(y, *args)
    assert len(caught) == 1
    return model, str(caught[0].message)


def in_container(parts, container):
    """Return series by id in a container, and the column of ids."""
    if container == "list":
        return list(parts.values()), None
    table = pd.concat(parts, names=["shop"])
    return (table, None) if container == "levels" else (table.reset_index(level=0), "shop")


def parts_of(found):
    """Return the numbers of each series in a forecast, and its stamps."""
    if isinstance(found, list):
        return list(map(np.asarray, found)), [table.index for table in found]
    numbers, dates = found.drop(columns="shop", errors="ignore"), found.index.get_level_values(-1)
    cuts = range(2, len(found), 2)
    return np.split(np.asarray(numbers, dtype=float), cuts), np.split(dates, cuts)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("container", ["levels", "list", "ids"])
def test_the_others_are_forecast_as_without_the_bad_ones(container, tmp_path):
    parts = bad_parts()
    y, column = in_container(parts, container)
    ids = list(parts) if container != "list" else list(range(len(parts)))
    with pytest.raises(ValueError, match="has a gap: between") as first:
        quick(sequence_column=column, errors="raise").fit(y)
    model, told = fitted(quick(sequence_column=column), y)
    assert told.startswith("3 of 5 series could not be fitted")
    assert f"The first is {ids[0]!r}: {first.value}" in told
    assert list(model.failures_) == [ids[0], ids[2], ids[3]]
    for each, words in zip((0, 2, 3), (str(first.value), "0 rows without", "twice"), strict=True):
        assert words in model.failures_[ids[each]]
    only, _ = in_container({"a": parts["a"], "b": parts["b"]}, container)
    alone = quick(sequence_column=column, errors="raise").fit(only)
    assert alone.failures_ == {}
    wanted, _ = parts_of(alone.forecast(2, coverage=0.8))
    save(model, tmp_path / "model.npz")
    for each in (model, load(tmp_path / "model.npz")):
        rows, dates = parts_of(each.forecast(2, coverage=0.8))
        np.testing.assert_array_equal([rows[1], rows[4]], wanted)
        for i, last in zip((0, 2, 3), (N - 1, N - 1, 8), strict=True):
            assert np.isnan(rows[i]).all()
            assert rows[i].shape == rows[1].shape
            assert list(dates[i]) == [MONTHS[last] + k * pd.offsets.MonthEnd() for k in (1, 2)]
    assert f"not fitted: series {ids[0]!r}" in model.summary()
    assert len(model.last_rows_) == 2
    assert len(model.simulate(1, 2)) == 5


FRAME = pd.DataFrame({"x": "no", "a": good(4).to_numpy(), "b": np.nan, "c": good(5).to_numpy()})


def fitted_columns(y):
    """Return a model of columns of which two fail, and the forecast of the others alone."""
    model, told = fitted(quick(), y)
    assert "column 'x' of y" in told
    assert list(model.failures_) == ["x", "b"]
    found = model.forecast(2)
    assert type(found) is type(y)
    assert list(found.columns) == ["x", "a", "b", "c"]
    assert model.n_features_in_ == 4
    alone = quick().fit(y[["a", "c"]]).forecast(2)
    np.testing.assert_array_equal(found[["a", "c"]], alone)
    assert np.isnan(np.asarray(found[["x", "b"]])).all()
    return model, alone


def test_columns_of_a_frame_and_their_later_rows():
    model, _ = fitted_columns(FRAME.set_axis(MONTHS[:N]))
    after = model.update(FRAME[:2].set_axis(MONTHS[N:])).forecast(1)
    assert after.index[0] == MONTHS[-1] + pd.offsets.MonthEnd()


def test_columns_and_tables_of_polars(polars):
    y = polars.DataFrame(FRAME.to_dict("list"))
    model, alone = fitted_columns(y)
    assert model.update(y[:2]).forecast(1).shape == (1, 4)
    long = polars.concat(
        [polars.DataFrame({"id": [each] * N, "v": FRAME[each].to_list()}) for each in "acb"]
    )
    found = fitted(quick(sequence_column="id"), long)[0].forecast(2)
    assert found["id"].to_list() == ["a", "a", "c", "c", "b", "b"]
    np.testing.assert_array_equal(found["v"][:4].to_numpy(), alone.to_numpy().T.ravel())
    assert np.isnan(found["v"][4:].to_numpy()).all()


def test_known_inputs_and_later_rows_of_bad_series_are_ignored():
    def table(parts):
        rows = pd.concat(parts, names=["shop"]).to_frame()
        return rows.astype({"w": "category"}) if "w" in rows else rows

    parts = {"gap": good(1).drop(MONTHS[5]), "a": good(4), "b": good(5)}
    weather = pd.Series(["sun", "rain"] * (N // 2 + 1), MONTHS, name="w")
    inputs = {key: weather[: len(part)].set_axis(part.index) for key, part in parts.items()}
    inputs["gap"] = inputs["gap"].replace("sun", "snow")  # a category that others do not have
    y, exog = table(parts), table(inputs)
    model, _ = fitted(quick(), y, exog)
    few = y.index.isin(["a", "b"], level=0)
    alone = quick().fit(y[few], exog[few])
    unknown = pd.Series(["?"], MONTHS[:1], name="w")
    later = table(dict.fromkeys(parts, weather[N : N + 1]) | {"gap": unknown})
    one = later[later.index.isin(["a", "b"], level=0)]
    wanted = alone.forecast(1, one)
    for known in (later, one):
        np.testing.assert_array_equal(model.forecast(1, known)[1:], wanted)
    new = table({"gap": good(1)[:1], "a": good(4, N + 1)[N:], "b": good(5, N + 1)[N:]})
    alone.update(new[1:], one)
    model.update(new, later)
    one = one.set_axis(pd.MultiIndex.from_product([["a", "b"], MONTHS[N + 1 :]]))
    np.testing.assert_array_equal(model.forecast(1, one)[1:], alone.forecast(1, one))
    model.update(table({"gap": good(1)[-1:]}))  # of no other series


def test_tables_of_known_inputs_belong_to_series_by_their_order():
    y, known = [good(1) * np.nan, good(2), good(3)], [np.arange(N) % k for k in (2, 3, 4)]
    model, _ = fitted(quick(), y, known)
    later = [np.full(1, np.nan), np.ones(1), np.zeros(1)]
    wanted = quick().fit(y[1:], known[1:]).forecast(1, later[1:])
    np.testing.assert_array_equal(model.forecast(1, later)[1:], wanted)
    one = model.select([2, 0])
    np.testing.assert_array_equal(one.forecast(1, [later[2], later[0]])[0], wanted[1])
    with pytest.raises(ValueError, match="exog contains 1 tables, but there are 2 series"):
        one.forecast(1, later[:1])


def test_errors_of_all_series_and_of_the_whole_call_are_raised():
    parts = bad_parts()
    table, _ = in_container(parts, "ids")
    for params, y, told in (
        ({}, pd.concat({each: parts[each] for each in ("gap", "empty")}), "'gap' of y has a gap"),
        ({"sequence_column": "id"}, table, "sequence_column='id' is not in y"),
        ({}, [good(0) * np.nan], "y has 0 rows without missing values"),
        ({"errors": "drop"}, table, "errors='drop'"),
    ):
        with pytest.raises(ValueError, match=told):
            quick(**params).fit(y)


def test_a_table_with_other_columns_fails_wherever_it_is():
    tables = [np.ones((N, 2)), *(good(i).to_numpy() for i in (1, 2))]
    model, _ = fitted(quick(), tables)
    assert model.failures_[0].startswith("series 0 of y has 2 columns, but series 1 of y has 1.")
    found = model.forecast(3)
    assert [each.shape for each in found] == [(3, 2), (3,), (3,)]
    np.testing.assert_array_equal(found[1:], quick().fit(tables[1:]).forecast(3))


@pytest.mark.one_engine
def test_errors_within_a_fit(monkeypatch):
    original, faults = Settings.learn, {100: ValueError("overflow"), 200: KeyError("of a program")}

    def learn(settings, data):
        if data.values.max() in faults:
            raise faults[data.values.max()]
        return original(settings, data)

    monkeypatch.setattr(Settings, "learn", learn)
    one, other = good(1), good(2)
    wrong, worse = (one.where(np.arange(N) != 5, value) for value in faults)
    model, _ = fitted(quick(), [one, wrong, other])
    assert model.failures_ == {1: "overflow"}
    first, _, last = model.forecast(2)
    for found, wanted in zip((first, last), quick().fit([one, other]).forecast(2), strict=True):
        pd.testing.assert_series_equal(found, wanted)
    assert set(model.search_results_["series"]) == {0, 2}
    with pytest.raises(ValueError, match="overflow"):
        quick().fit([wrong, wrong])
    with pytest.raises(KeyError, match="of a program"):
        quick().fit([one, worse])


def test_shared_models_do_not_learn_from_bad_series():
    y, _ = in_container(bad_parts(), "levels")
    found = fitted(quick(panel="shared"), y)[0].forecast(2)
    alone = quick(panel="shared").fit(y.loc[["a", "b"]]).forecast(2)
    np.testing.assert_array_equal(found.loc[["a", "b"]], alone)
    assert found.loc[["gap", "empty", "twice"]].isna().all()


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("container", ["levels", "list"])
def test_failures_go_along_with_parts(container):
    parts = bad_parts()
    names = [["a", "gap"], ["empty", "b"]]
    tables = [in_container({key: parts[key] for key in each}, container)[0] for each in names]
    joined = ESNForecaster.concat([fitted(quick(), table)[0] for table in tables])
    whole = [*tables[0], *tables[1]] if container == "list" else pd.concat(tables)
    every, _ = fitted(quick(), whole)
    ids = [0, 1, 2, 3] if container == "list" else ["a", "gap", "empty", "b"]
    assert list(joined.failures_) == list(every.failures_) == ids[1:3]
    for mine, other in zip(joined.forecast(2), every.forecast(2), strict=True):
        np.testing.assert_array_equal(mine, other)
    part = joined.select([ids[2], ids[0]])
    assert list(part.failures_) == [ids[2]]
    assert len(part.forecast(1)) == 2
    assert joined.select([ids[0]]).failures_ == {}
    with pytest.raises(ValueError, match=f"None of these series could be fitted, for {ids[1]!r}"):
        joined.select([ids[1]])


def test_stamps_of_bad_series_are_never_missing():
    days, month = MONTHS[:N].to_list(), pd.offsets.MonthEnd()
    off = pd.to_datetime(["2020-01-03", "2020-01-09", "2020-04-05"])
    cases = {  # a series, and the stamp after it
        "no_stamp": (good(1).set_axis([pd.NaT] * N), MONTHS[N - 1] + month),
        "a_gap_then_none": (
            good(1).set_axis([*days[:4], *days[5:9], *[pd.NaT] * 2]),
            MONTHS[8] + month,
        ),
        "off_the_month": (good(1)[:3].set_axis(off), pd.Timestamp("2020-04-30")),
        "weekly": (
            pd.Series(np.nan, pd.date_range("2021-03-07", periods=5, freq="W")),
            pd.Timestamp("2021-04-11"),
        ),
        "a": (good(4), MONTHS[N - 1] + month),
    }
    y = pd.concat({key: rows for key, (rows, _) in cases.items()}, names=["shop", "month"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = quick().fit(y).forecast(1)
    assert dict(found.index) == {key: stamp for key, (_, stamp) in cases.items()}
    assert found.isna().tolist() == [True] * 4 + [False]


def test_a_table_with_a_column_of_times():
    columns = {"sequence_column": "shop", "time_column": "month", "target_column": "y"}
    parts = {"a": good(4), "gap": good(1).drop(MONTHS[5]), "b": good(5)}
    table = pd.concat(parts, names=["shop"]).reset_index().assign(x=np.arange(3 * N - 1) % 7)
    table = table.sample(frac=1, random_state=0)
    few = table[table["shop"] != "gap"]
    with pytest.warns(UserWarning, match="The first is 'gap': Column 'month' of series 'gap' of y"):
        model = quick(panel=None, **columns).fit(table)
    alone = quick(panel=None, **columns).fit(few)
    later = {key: pd.Series(1.0, MONTHS[N:], name="x") for key in "ba"}
    one = pd.concat(later, names=["shop"]).reset_index()
    wrong = pd.DataFrame({"shop": ["gap"], "month": [MONTHS[0]], "x": [np.nan]})
    wanted = alone.forecast(2, one, coverage=0.5)
    for exog in (one, pd.concat([wrong, one])):
        found = model.forecast(2, exog, coverage=0.5)
        assert list(found) == ["shop", "month", "y", "y lower 50%", "y upper 50%"]
        bad = found["shop"] == "gap"
        assert found.loc[bad, "month"].tolist() == MONTHS[N:].tolist()
        assert found.loc[bad, "y"].isna().all()
        pd.testing.assert_frame_equal(found[~bad].reset_index(drop=True), wanted)
    new = one.iloc[[0, 2]].assign(y=9.0)
    alone.update(new)
    model.update(pd.concat([new, wrong.assign(y=1.0)]))
    last = one.iloc[[1, 3]]
    np.testing.assert_array_equal(
        model.forecast(1, last)["y"].dropna(), alone.forecast(1, last)["y"]
    )


def test_a_missing_time_or_text_concerns_its_series_only():
    parts = dict(zip("abcdef", map(good, range(6)), strict=True))
    y = pd.concat(parts, names=["shop"]).reset_index()
    exog = y[["shop", "month"]].assign(x=np.arange(6 * N) % 7)
    y["month"] = y["month"].astype(object)
    y.loc[5 * N + 1, "month"] = "soon"  # of f
    y.loc[N + 2, "month"] = pd.NaT  # of b
    exog = exog[exog.index != 2 * N + 1]  # of c
    exog.loc[3 * N, "month"] = pd.NaT  # of d
    exog = exog[exog["shop"] != "e"]
    columns = {"sequence_column": "shop", "time_column": "month"}
    model, _ = fitted(quick(panel=None, **columns), y, exog)
    assert list(model.failures_) == list("bcdef")
    for each, told in (
        ("b", "y has no time in row 12 of column 'month' (NaN). Fill it, or drop that row."),
        ("c", "series 'c', from 2020-01-31 to 2020-10-31, each once, but it"),
        ("d", "exog has no time in row 29 of column 'month' (NaN). Fill it, or drop that row."),
        ("f", "Column 'month' of y (time_column) contains 'soon' (object), but dates"),
    ):
        assert told in model.failures_[each]
    later = pd.DataFrame({"shop": ["b", "a"], "month": [pd.NaT, MONTHS[N]], "y": 9.0, "x": 1.0})
    rows, known = later[["shop", "month", "y"]], later[["shop", "month", "x"]]
    model.update(rows, known)
    found = model.forecast(1, known.assign(month=[pd.NaT, MONTHS[N + 1]]))
    assert found["y"].isna().tolist() == [False] + [True] * 5
    with pytest.raises(ValueError, match="y has no time in row 0 of column 'month'"):
        model.update(rows[1:].assign(month=pd.NaT), later)
    with pytest.raises(ValueError, match="y has no time in row 12 of column 'month'"):
        quick(panel=None, errors="raise", **columns).fit(y, exog)


def test_a_list_with_a_masked_array_or_other_columns_of_known_inputs():
    rows, known = [np.asarray(good(seed)) for seed in range(3)], [np.ones((N, 1))] * 3
    masked = np.ma.masked_greater(rows[1], rows[1].min())
    model, told = fitted(quick(), [rows[0], masked, rows[2]], [*known[:2], np.ones((N, 2))])
    assert "The first is 1: series 1 of y contains a masked array" in told
    assert model.failures_[2].startswith("series 2 of exog has 2 columns, but in fit it had 1.")

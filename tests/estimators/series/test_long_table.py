"""Tables with columns for ids, times and targets: the same forecasts as with an index."""

import numpy as np
import pytest
from sklearn.base import clone

from reservoir import ESNForecaster, SeasonalNaive, load, save

pd = pytest.importorskip("pandas")

from reservoir.estimators.series.long_table import Columns, LongTable  # noqa: E402
from reservoir.series_models.candidates import Candidate  # noqa: E402
from reservoir.series_models.recursive_ridge import Autoregression  # noqa: E402
from reservoir.series_models.seasonal_naive import LastSeason  # noqa: E402

pytestmark = pytest.mark.one_engine
MONTHS = pd.date_range("2020-01", periods=30, freq="MS")
THREE = {"sequence_column": "shop", "time_column": "ds", "target_column": "y"}
SPANS = {"b": slice(0, 24), "a": slice(4, 22), "c": slice(8, 24)}


@pytest.fixture(autouse=True)
def one_model(monkeypatch):
    """Fit an autoregression, which uses known inputs, and the last value, not a dozen models."""
    settings = ESNForecaster._settings

    def only(data, n_networks):
        models = {"last value": LastSeason(1), "autoregression": Autoregression()}
        return [Candidate(name, False, model) for name, model in models.items()]

    def changed(self, *args):
        return settings(self, *args)._replace(candidates=only)

    monkeypatch.setattr(ESNForecaster, "_settings", changed)


def quick(**params):
    given = {"search": "series", "n_networks": 1, "clip": 9.0, "outliers": "keep"} | params
    return ESNForecaster(random_state=0, **given)


def long_table(rng, ids=tuple(SPANS), times=MONTHS, known=True):
    parts = []
    for each, span in zip(ids, SPANS.values(), strict=True):
        n = len(times[span])
        price = rng.normal(size=n)
        part = {"price": price, "y": 10 + price + rng.normal(size=n), "shop": each}
        parts.append(pd.DataFrame(part).assign(ds=times[span]))
    table = pd.concat(parts, ignore_index=True)
    return table if known else table.drop(columns="price")


def later_rows(table, n=3, step=pd.offsets.MonthBegin()):  # noqa: B008
    """Return n rows after each series, with prices alone."""
    parts = [
        pd.DataFrame({"shop": each, "ds": [part.iloc[-1] + (k + 1) * step for k in range(n)]})
        for each, part in table.groupby("shop", sort=False)["ds"]
    ]
    table = pd.concat(parts, ignore_index=True)
    return table.assign(price=np.random.default_rng(1).normal(size=len(table)))


def to_polars(pl, table):
    found = {}
    for name in table:
        text = table[name].dtype.kind not in "iufM"
        found[name] = table[name].tolist() if text else table[name].to_numpy()
    return pl.DataFrame(found)


def by_time(table):
    return table.sort_values(["shop", "ds"], ignore_index=True)


def test_three_columns_are_the_series_with_an_index(global_random_seed, tmp_path):
    rng = np.random.default_rng(global_random_seed)
    table = long_table(rng)
    future = later_rows(table)
    model = quick(**THREE).fit(table)
    made = model.forecast(3, exog=future, coverage=0.9)
    assert made.columns.tolist() == ["shop", "ds", "y", "y lower 90%", "y upper 90%"]
    assert made.index.equals(pd.RangeIndex(9))
    pd.testing.assert_frame_equal(made[["shop", "ds"]], future[["shop", "ds"]])
    pd.testing.assert_frame_equal(model.forecast(3, exog=future), made.iloc[:, :3])
    assert (model.forecast(3, exog=future.assign(price=5.0))["y"] != made["y"]).any()

    # a MultiIndex, a list of frames, and rows of any order
    levels, ahead = table.set_index(["shop", "ds"]), future.set_index(["shop", "ds"])
    other = quick(panel="each").fit(levels[["y"]], levels[["price"]])
    values = other.forecast(3, exog=ahead, coverage=0.9).to_numpy()
    np.testing.assert_array_equal(values, made.iloc[:, 2:])
    parts = [levels.loc[each] for each in SPANS]
    listed = quick(panel="each").fit([p[["y"]] for p in parts], [p[["price"]] for p in parts])
    values = listed.forecast(3, exog=[ahead.loc[each] for each in SPANS])
    np.testing.assert_array_equal(np.concatenate(values), made[["y"]])
    order = rng.permutation(len(table))
    shuffled = quick(**THREE).fit(table.iloc[order])
    found = shuffled.forecast(3, exog=future[::-1], coverage=0.9)
    assert found["shop"].unique().tolist() == table["shop"].iloc[order].unique().tolist()
    pd.testing.assert_frame_equal(by_time(found), by_time(made))

    # a part of the ids, a file, and the models of parts together
    some = quick(**THREE).fit(table[table["shop"] != "a"])
    only = quick(**THREE).fit(table[table["shop"] == "a"])
    rest = future[future["shop"] != "a"]
    alone = some.forecast(3, exog=rest, coverage=0.9)
    pd.testing.assert_frame_equal(alone, made[made["shop"] != "a"].reset_index(drop=True))
    save(model, tmp_path / "long.npz")
    again = load(tmp_path / "long.npz")
    for each in (again, ESNForecaster.concat([some, only]), again.select(["a", "b", "c"])):
        answer = each.forecast(3, exog=future, coverage=0.9)
        pd.testing.assert_frame_equal(by_time(answer), by_time(made))


def test_polars_comes_back_as_polars(polars):
    pl = polars
    table = long_table(np.random.default_rng(0))
    future = later_rows(table)
    kinds = table["price"].gt(0).map({True: "x", False: "w"})
    table = table.assign(price=kinds).sample(frac=1, random_state=0)
    future["price"] = np.resize(["w", "x"], len(future))
    dtype = pd.CategoricalDtype(["w", "x"])
    typed = [each.astype({"price": dtype}) for each in (table, future)]
    wanted = quick(**THREE).fit(typed[0]).forecast(3, exog=typed[1], coverage=0.8)
    same = {"price": pl.Categorical, "ds": pl.Date}
    mine, ahead = (to_polars(pl, each).cast(same) for each in (table, future))
    model = quick(**THREE).fit(mine)
    made = model.forecast(3, exog=ahead, coverage=0.8)
    assert made.columns == wanted.columns.tolist()
    assert made.schema["ds"] == pl.Date
    assert made["shop"].to_list() == wanted["shop"].tolist()
    assert made["ds"].to_list() == wanted["ds"].dt.date.tolist()
    np.testing.assert_array_equal(made.drop("shop", "ds").to_numpy(), wanted.iloc[:, 2:])
    assert model.last_rows_["a"].columns == ["ds", "y"]
    assert model.simulate(3, 2, exog=ahead).columns == ["shop", "ds", "0 y", "1 y"]


def test_update_continues_a_fit():
    table = long_table(np.random.default_rng(0), known=False)
    cut = table["ds"] < "2021-09"
    whole = SeasonalNaive(3, **THREE).fit(table)
    model = SeasonalNaive(3, **THREE).fit(table[cut])
    model.update(table[~cut].sample(frac=1, random_state=0))
    pd.testing.assert_frame_equal(model.forecast(4), whole.forecast(4))
    twice = table[~cut]
    with pytest.raises(ValueError, match=r"begins at 2021-09-01.*Its first 4 rows are known"):
        model.update(twice)
    paths = quick(**THREE).fit(table).simulate(2, 3)
    assert paths.columns.tolist() == ["shop", "ds", "0 y", "1 y", "2 y"]
    assert model.forecast(2)["ds"].tolist()[:2] == list(MONTHS[24:26])


def test_whole_numbers_are_times():
    """Also those that number the rows of each series from 0."""
    table = long_table(np.random.default_rng(0), times=np.arange(30)).astype({"ds": np.int32})
    table["ds"] -= table.groupby("shop")["ds"].transform("min").astype(np.int32)
    future = later_rows(table, step=1).astype({"ds": np.int32})
    model = quick(**THREE).fit(table)
    made = model.forecast(3, exog=future[::-1])
    assert made["ds"].tolist() == [24, 25, 26, 18, 19, 20, 16, 17, 18]
    pd.testing.assert_series_equal(made["ds"], future["ds"])
    with pytest.raises(ValueError, match=r"of series 'b', from 24 to 26.*no row for 24"):
        model.forecast(3, exog=future.assign(ds=future["ds"] - future["ds"] % 16))
    rows = future.assign(y=10.0)
    for first, known in ((0, table), (25, rows[rows["ds"] != 24])):
        with pytest.raises(ValueError, match=rf"of series 'b' .* at {first} .*but 24 follows"):
            model.update(known)
    after = model.update(rows).forecast(1, exog=later_rows(rows, 1, 1))
    assert after["ds"].tolist() == [27, 21, 19]
    one = SeasonalNaive(3, time_column="ds", target_column="y").fit(table[23::-1])
    assert one.forecast(2).columns.tolist() == ["ds", "y"]
    assert one.forecast(2)["ds"].tolist() == [24, 25]


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    ("ids", "dtype"),
    [
        ([7, 3, 5], "int32"),
        ([7, 3, 5], "Int64"),
        (list("bac"), "object"),
        (list("bac"), "string"),
        (list("bac"), pd.CategoricalDtype(["a", "b", "c", "d"], ordered=True)),
        ([7, 3, 5], "category"),
    ],
)
def test_ids_keep_their_dtype(ids, dtype):
    table = long_table(np.random.default_rng(0), ids, known=False).astype({"shop": dtype})
    twice = np.repeat(np.array(ids, object), 2).tolist()
    made = SeasonalNaive(3, **THREE).fit(table).forecast(2, coverage=0.5)
    assert made["shop"].dtype == table["shop"].dtype
    assert made["shop"].tolist() == twice
    made = SeasonalNaive(3, sequence_column="shop").fit(table.set_index("ds")).forecast(2)
    assert made["shop"].dtype == table["shop"].dtype
    assert made.index.tolist()[:2] == list(MONTHS[24:26])
    levels = table.set_index(["shop", "ds"])["y"]
    made = SeasonalNaive(3, panel="each").fit(levels).forecast(2)
    assert made.index.levels[0].dtype == levels.index.levels[0].dtype
    assert made.index.get_level_values("shop").tolist() == twice


def test_ids_of_polars_keep_their_dtype(polars):
    pl = polars
    table = to_polars(pl, long_table(np.random.default_rng(0), [7, 3, 5], known=False))
    for dtype in (pl.Int16, pl.Utf8, pl.Enum(["3", "5", "7"]), pl.Categorical):
        text = table if dtype == pl.Int16 else table.with_columns(pl.col("shop").cast(pl.Utf8))
        mine = text.with_columns(pl.col("shop").cast(dtype))
        made = SeasonalNaive(3, **THREE).fit(mine).forecast(1)
        assert made.schema["shop"] == mine.schema["shop"]
        assert made["shop"].cast(pl.Utf8).to_list() == ["7", "3", "5"]
        plain = SeasonalNaive(3, sequence_column="shop").fit(mine.drop("ds")).forecast(1)
        assert plain.schema["shop"] == mine.schema["shop"]


@pytest.mark.parametrize(
    ("times", "due"),
    [
        (MONTHS[:24], MONTHS[24]),
        (MONTHS[:24].tz_localize("Europe/Berlin"), MONTHS[24].tz_localize("Europe/Berlin")),
        (MONTHS[:24].to_period("M"), MONTHS[24].to_period("M")),
        (np.arange(24) / 4, 6.0),
    ],
    ids=["dates", "zone", "periods", "floats"],
)
def test_times_keep_their_kind(times, due):
    table = pd.DataFrame({"y": np.arange(24.0) % 3, "ds": times}).sample(frac=1, random_state=0)
    made = SeasonalNaive(3, time_column="ds").fit(table).forecast(3)
    assert made.columns.tolist() == ["ds", "y"]
    assert made["ds"].dtype == table["ds"].dtype
    assert made["y"].tolist() == [0.0, 1.0, 2.0]
    assert made["ds"].iloc[0] == due


def test_targets_by_name_and_number():
    table = long_table(np.random.default_rng(0))
    by_name = LongTable.of(table, None, Columns("shop", "ds", ["y", "price"]))
    assert by_name.targets == ("y", "price")
    assert by_name.known == ()
    assert LongTable.of(table, None, Columns(2, -1, 1)) == LongTable.of(
        table, None, Columns("shop", "ds", "y")
    )
    both = SeasonalNaive(3, sequence_column=2, time_column=3).fit(table).forecast(1, coverage=0.5)
    assert both.columns.tolist()[2:5] == ["price", "price lower 50%", "price upper 50%"]
    assert both.columns.tolist()[5] == "y"
    # an array: numbers alone
    array = table.assign(
        shop=[ord(each) for each in table["shop"]], ds=table.groupby("shop").cumcount()
    )
    rows = array.to_numpy(float)
    made = quick(sequence_column=2, time_column=3, target_column=1).fit(rows)
    future = np.column_stack([np.ones(6), np.repeat([98.0, 97, 99], 2), [24, 25, 18, 19, 16, 17]])
    found = made.forecast(2, exog=future)
    assert found.shape == (6, 3)
    np.testing.assert_array_equal(found[:, :2], future[:, 1:])
    wide = np.insert(future, 1, 0.0, axis=1)  # with the targets, which are not read
    np.testing.assert_array_equal(made.forecast(2, exog=wide), found)


def test_targets_with_an_index():
    """Without `time_column` the container, its index and its names stay."""
    table = long_table(np.random.default_rng(0)).set_index("ds")
    future = later_rows(table.reset_index()).set_index("ds")
    model = quick(sequence_column="shop", target_column="y").fit(table)
    made = model.forecast(3, exog=future, coverage=0.9)
    assert made.columns.tolist() == ["shop", "y forecast", "y lower 90%", "y upper 90%"]
    assert made.index.equals(future.index)
    both = quick(sequence_column="shop").fit(table[["shop", "y"]], table[["shop", "price"]])
    wanted = both.forecast(3, exog=future[["shop", "price"]], coverage=0.9)
    pd.testing.assert_frame_equal(made, wanted)
    for wrong, told in (
        (future.assign(z=1.0), "2 columns besides the ids, but in fit it had 1"),
        (None, "fit had 1 column of exog"),
    ):
        with pytest.raises(ValueError, match=told):
            both.forecast(3, exog=wrong)
    one = table[table["shop"] == "b"].drop(columns="shop")
    ahead = future[future["shop"] == "b"][["price"]]
    alone = quick(target_column="y").fit(one).forecast(3, exog=ahead)
    np.testing.assert_array_equal(alone["y"], made["y forecast"][:3])


def test_one_system_with_a_column_of_times():
    """Networks take it as well, with a context in the same columns."""
    rng = np.random.default_rng(0)
    force, y = rng.uniform(-1, 1, 200), np.zeros(200)
    for i in range(1, 200):
        y[i] = 1 - 1.4 * y[i - 1] ** 2 + 0.05 * force[i]
    table = pd.DataFrame({"t": np.arange(200), "force": force, "y": y})
    search = [{"n_units": 50, "input_scaling": 1.0}]
    model = ESNForecaster(search=search, n_networks=1, time_column="t", target_column="y")
    plain = ESNForecaster(search=search, n_networks=1, random_state=0).fit(y[:150], force[:150])
    model.set_params(random_state=0).fit(table[:150].sample(frac=1, random_state=1))
    assert model.kind_ == "dynamics"
    made = model.forecast(5, exog=table[150:155])
    np.testing.assert_array_equal(made["y"], plain.forecast(5, exog=force[150:155]))
    assert made["t"].tolist() == list(range(150, 155))
    moved = model.forecast(5, exog=table[195:], context=table[100:195])
    wanted = plain.forecast(5, exog=force[100:], context=y[100:195])
    np.testing.assert_array_equal(moved["y"], wanted)
    assert moved["t"].tolist() == list(range(195, 200))
    assert model.last_rows_.columns.tolist() == ["t", "y"]


TABLE = long_table(np.random.default_rng(0), known=False)


@pytest.mark.parametrize(
    ("change", "params", "told"),
    [
        ({}, {"target_column": "z"}, "target_column='z' is not in y; its columns are 'y', 'shop'"),
        ({}, {"target_column": "ds"}, "column 'ds' has two roles"),
        ({}, {"target_column": 7}, "target_column=7 is outside y, which has 3 columns"),
        ({"ds": TABLE["ds"].astype(str)}, {}, r"'2020-01-01' .*by pd\.to_datetime"),
        ({"ds": TABLE["ds"] - MONTHS[0]}, {}, r"durations by dt\.total_seconds\(\)"),
        ({"ds": TABLE["ds"].where(TABLE.index != 3)}, {}, "no time in row 3 of column 'ds'"),
        ({"shop": TABLE["shop"].where(TABLE.index != 3)}, {}, "no id in row 3 of column 'shop'"),
        ({"ds": TABLE["ds"].shift(1, fill_value=MONTHS[0])}, {}, "Column 'ds' of series 'b' of y "),
        ({"ds": 20200120 + TABLE.index + 69 * (TABLE.index > 11)}, {}, "'b' of y contains days"),
    ],
)
def test_columns_that_raise(change, params, told):
    with pytest.raises(ValueError, match=told):
        SeasonalNaive(**THREE | params).fit(TABLE.assign(**change))


def test_tables_that_raise():
    times, ids = SeasonalNaive(time_column=0), SeasonalNaive(sequence_column=0, time_column=1)
    model = SeasonalNaive(3, **THREE).fit(TABLE)
    for call, y, told in (
        (times.fit, [TABLE, TABLE], "columns of one table"),
        (times.fit, TABLE["y"], "columns of one table"),
        (times.fit, TABLE.set_index(["shop", "ds"]), "columns of one table"),
        (clone(model).fit, pd.concat([TABLE, TABLE[["y"]]], axis=1), "Rename one of the two"),
        (ids.fit, TABLE[["shop", "ds"]], "none is left"),
        (lambda y: quick(**THREE).fit(y, y), TABLE, "known inputs are the other columns of y"),
        (model.update, TABLE[["shop", "y"]], "y has no column 'ds'"),
        (model.update, TABLE.assign(z=1), "y has the column 'z'"),
    ):
        with pytest.raises(ValueError, match=told):
            call(y)
    several = quick(sequence_column="shop", time_column="ds")
    fits = [clone(several).fit(table) for table in (TABLE, TABLE.assign(z=1.0))]
    with pytest.raises(ValueError, match="fitted to different tables"):
        ESNForecaster.concat(fits)


def test_future_inputs_have_the_times_of_the_forecast():
    model = quick(**THREE).fit(long_table(np.random.default_rng(0)))
    future = later_rows(long_table(np.random.default_rng(0)))
    for wrong, told in [
        (future[future["ds"] > "2021-11"], "series 'a', from 2021-11-01 .*no row for 2021-11-01"),
        (future[future["shop"] != "c"], "series 'c', from 2022-01-01 .*no row for 2022-01-01"),
        (pd.concat([future, future[:1]]), "series 'b'.*two rows for the same time"),
        (later_rows(TABLE, 4), "series 'b'.*a row for 2022-04-01, which is none of them"),
        (future.drop(columns="price"), "exog has no column 'price'"),
        (future.assign(z=1), "exog has the column 'z'"),
        (future.assign(ds=range(9)), r"times of another dtype \(int64, not datetime64"),
        (None, "fit had 1 column of exog"),
    ]:
        with pytest.raises(ValueError, match=told):
            model.forecast(3, exog=wrong)
    with pytest.raises(ValueError, match="context continues one system"):
        model.forecast(3, exog=future, context=future)


def test_remedies_for_gaps_run():
    """Those of an index would not: a table of several series has no frequency."""
    gap, naive = TABLE.drop(index=3), SeasonalNaive(3, **THREE)
    told = r"Add rows with these times, and NaN .*number the rows of each series \(cumcount\)"
    with pytest.raises(ValueError, match=told):
        naive.fit(gap)
    made = naive.fit(pd.concat([gap, TABLE.loc[[3]].assign(y=np.nan)])).forecast(1)
    assert made["ds"].tolist() == [MONTHS[24], MONTHS[22], MONTHS[24]]
    numbered = gap.assign(ds=gap.groupby("shop").cumcount())
    assert naive.fit(numbered).forecast(1)["ds"].tolist() == [23, 18, 16]
    numbered = TABLE.assign(ds=TABLE.groupby("shop").cumcount()).drop(index=3)
    with pytest.raises(ValueError, match=r"Column 'ds' of series 'b' of y has a gap.* Add rows"):
        naive.fit(numbered)


def test_known_inputs_in_a_table_of_their_own():
    table = long_table(np.random.default_rng(0))
    future = later_rows(table)
    wanted = quick(**THREE).fit(table).forecast(3, exog=future)
    y, exog = table[["shop", "ds", "y"]], table[["ds", "shop", "price"]]
    model = quick(sequence_column="shop", time_column="ds").fit(y, exog[::-1])
    pd.testing.assert_frame_equal(model.forecast(3, exog=future), wanted)
    with pytest.raises(ValueError, match="exog must have the times of the rows of y of series 'b'"):
        quick(sequence_column="shop", time_column="ds").fit(y, exog[1:])


def test_a_column_that_rises_evenly_may_be_a_time():
    table = long_table(np.random.default_rng(0), times=np.arange(30.0), known=False)
    with pytest.warns(UserWarning, match="Column 'ds' of y rises.*name it `time_column`, or drop"):
        SeasonalNaive(3, sequence_column="shop").fit(table)
    uneven = table.assign(ds=table["ds"].where(table["shop"] != "c", table["y"]))
    SeasonalNaive(3, sequence_column="shop").fit(uneven)
    SeasonalNaive(3, sequence_column="shop").fit(table.drop(columns="y"))  # a trend

"""Panels of series: their containers, ids, exogenous tables, later rows, and errors."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from helpers.damaged_files import round_trip

pd = pytest.importorskip("pandas")

from reservoir.estimators.series import calendar, tables  # noqa: E402
from reservoir.estimators.series.containers import SeriesContainer  # noqa: E402
from reservoir.estimators.series.panel import Panel  # noqa: E402

MONTHS = pd.date_range("2020-01-31", periods=30, freq=pd.offsets.MonthEnd(), name="month")
N, H, K = 24, 6, 2  # rows, steps of a forecast, coverages
COVERAGES = [0.9, 0.5]
LABELS = ["forecast", "lower 90%", "upper 90%", "lower 50%", "upper 50%"]
VALUES = np.random.default_rng(0).normal(size=(N, 2))
FRAME = pd.DataFrame(VALUES, columns=["a", "b"])


def read_panel(y, column=None):
    rows = Panel.read(y, panel="each", sequence_column=column)
    return rows.panel, rows.values


def read_exog(panel, exog, *, following=False):
    first = exog[0] if isinstance(exog, list) else exog
    rows = [calendar.n_rows for calendar in panel.calendars]
    lengths = [H] * len(panel) if following else rows
    known = replace(panel, exog=SeriesContainer.of(first))
    return known.read_known(exog, lengths, following=following)


def dated_parts():
    """Three series of one column that differ in length, and end at different times."""
    spans = {"b": slice(0, 24), "a": slice(3, 15), "c": slice(10, 12)}
    rng = np.random.default_rng(1)
    made = {}
    for name, span in spans.items():
        index = MONTHS[span][np.arange(len(MONTHS[span]))]
        made[name] = pd.Series(rng.normal(size=len(index)), index, name="sales")
    return made


def forecasts(n_series, n_outputs=1):
    points = np.arange(n_series * H * n_outputs, dtype=float).reshape(n_series, H, n_outputs)
    bands = np.stack([[points - 1, points + 1], [points - 2, points + 2]])
    paths = np.stack([points, points + 1, points + 2])
    return list(points), list(np.moveaxis(bands, 2, 0)), list(np.moveaxis(paths, 1, 0))


def read_and_wrapped(y, column=None, n_outputs=1):
    """Return ids, values, and points, then these, bands and paths in the container of a panel."""
    panel, values = read_panel(y, column)
    panel = round_trip(panel)
    points, bands, paths = forecasts(len(panel), n_outputs)
    banded = panel.wrap_bands(points, bands, COVERAGES)
    return panel.ids, values, points, panel.wrap(points), banded, panel.wrap_paths(paths)


def following(part, n=H):
    month_ends = pd.offsets.MonthEnd()
    return pd.date_range(part.index[-1], periods=n + 1, freq=month_ends, name="month")[1:]


def test_columns_of_a_frame():
    y = pd.DataFrame({"a": VALUES[:, 0], 3: VALUES[:, 1]}, MONTHS[:N])
    y.iloc[:5, 1] = np.nan
    ids, values, points, back, banded, paths = read_and_wrapped(y)
    assert ids == ("a", 3)
    np.testing.assert_array_equal(np.hstack(values), y)
    pd.testing.assert_frame_equal(back, pd.DataFrame(np.hstack(points), MONTHS[N:], ["a", 3]))
    assert banded[3].columns.tolist() == LABELS
    np.testing.assert_array_equal(paths[(2, "a")], points[0][:, 0] + 2)


@pytest.mark.parametrize("make", [np.array, lambda rows: rows.tolist()])
def test_columns_of_an_array(make):
    ids, values, points, back, banded, _ = read_and_wrapped(make(VALUES))
    assert ids == (0, 1)
    np.testing.assert_array_equal(np.hstack(values), VALUES)
    np.testing.assert_array_equal(back, np.hstack(points))
    assert banded.shape == (H, 2, 1 + 2 * K)


def test_a_list_of_series():
    parts = dated_parts()
    ids, values, points, back, banded, paths = read_and_wrapped(list(parts.values()))
    assert ids == (0, 1, 2)
    assert [len(rows) for rows in values] == [24, 12, 2]
    for found, part, point in zip(back, parts.values(), points, strict=True):
        expected = pd.Series(point[:, 0], following(part), name="sales")
        pd.testing.assert_series_equal(found, expected, check_freq=False)
    assert [part.columns.tolist() for part in banded] == [LABELS] * 3
    assert [part.shape for part in paths] == [(H, 3)] * 3


def test_lists_and_stacks_of_arrays():
    tables = [VALUES, VALUES[:7], VALUES[3:]]
    _, values, points, back, *_ = read_and_wrapped(tables, None, 2)
    assert [len(rows) for rows in values] == [24, 7, 21]
    np.testing.assert_array_equal(back, points)
    objects = np.empty(3, dtype=object)
    objects[:] = tables
    back = read_and_wrapped(objects, None, 2)[3]
    assert (back.dtype, back.shape) == (object, (3,))
    stack = np.stack([VALUES] * 3)
    _, values, points, back, *_ = read_and_wrapped(stack, None, 2)
    np.testing.assert_array_equal(values, stack)
    np.testing.assert_array_equal(back, np.stack(points))
    ids, values, _, back, *_ = read_and_wrapped(VALUES[:, 0])
    assert len(ids) == len(values) == 1
    assert back.shape == (H,)


@pytest.mark.parametrize("by_time", [False, True])
@pytest.mark.parametrize("frame", [False, True])
def test_ids_in_a_multiindex(frame, by_time):
    parts = dated_parts()
    y = pd.concat(parts, names=["shop", "month"])
    if by_time:
        y = y.sort_index(level="month", kind="stable")
    ids, values, points, back, banded, drawn = read_and_wrapped(y.to_frame() if frame else y)
    assert set(ids) == set(parts)
    assert back.index.names == ["shop", "month"]
    for i, each in enumerate(ids):
        np.testing.assert_array_equal(values[i][:, 0], parts[each])
        assert back.loc[each].index.equals(following(parts[each]))
        np.testing.assert_array_equal(back.loc[each].to_numpy().ravel(), points[i][:, 0])
        assert banded.loc[each].shape == (H, len(LABELS))
        assert drawn.loc[each].shape == (H, 3)


def test_ids_of_two_levels():
    parts = dated_parts()
    y = pd.concat({("x", i): part for i, part in enumerate(parts.values())})
    ids, _, _, back, *_ = read_and_wrapped(y)
    assert ids == (("x", 0), ("x", 1), ("x", 2))
    assert back.index.nlevels == 3
    assert back.loc[("x", 1)].index.equals(following(parts["a"]))


@pytest.mark.parametrize("dated", [False, True])
@pytest.mark.parametrize("place", [0, 1])
def test_a_column_of_ids(dated, place):
    parts = dated_parts()
    y = pd.concat(parts, names=["shop"]).to_frame().assign(costs=1.0).reset_index("shop")
    y = y[["shop", "sales", "costs"]] if place == 0 else y[["sales", "shop", "costs"]]
    y = y if dated else y.reset_index(drop=True)
    for column in ("shop", place, place - 3):
        ids, values, points, back, banded, drawn = read_and_wrapped(y, column, 2)
        assert ids == ("b", "a", "c")
        assert [rows.shape for rows in values] == [(24, 2), (12, 2), (2, 2)]
    assert back.columns.tolist() == y.columns.tolist()
    assert back["shop"].tolist() == ["b"] * H + ["a"] * H + ["c"] * H
    np.testing.assert_array_equal(back[["sales", "costs"]], np.concatenate(points))
    if dated:
        assert back.index[back["shop"] == "a"].equals(following(parts["a"]))
    else:
        assert back.index.equals(pd.RangeIndex(3 * H))
    names = [f"{name} {label}" for name in ("sales", "costs") for label in LABELS]
    assert [name for name in banded if name != "shop"] == names
    assert drawn.shape == (3 * H, 1 + 3 * 2)


@pytest.mark.parametrize("ids", [[5.0, 3.0], ["b", "a"]])
def test_a_column_of_ids_in_an_array(ids):
    y = np.insert(VALUES.astype(type(ids[0]) if ids[0] == 5 else object), 1, 0, axis=1)
    y[:, 1] = np.repeat(np.array(ids, dtype=object), [15, 9])
    found, values, points, back, banded, drawn = read_and_wrapped(y, 1, 2)
    assert found == tuple(ids)
    np.testing.assert_array_equal(np.concatenate(values), VALUES)
    assert back[:, 1].tolist() == [ids[0]] * H + [ids[1]] * H
    np.testing.assert_array_equal(back[:, [0, 2]].astype(float), np.concatenate(points))
    assert banded.shape == (2 * H, 1 + 2 * (1 + 2 * K))
    assert drawn.shape == (3, 2 * H, 3)


def test_a_panel_can_be_pickled():
    panel, _ = read_panel(pd.concat(dated_parts()))
    assert pickle.loads(pickle.dumps(panel)) == panel == round_trip(panel)


TEXT = pd.DataFrame({"day": np.tile(["a", "b"], 12), "y": np.arange(24.0)})
LONG = pd.DataFrame({"id": ["a", "b", "a"], "y": [1.0, 2.0, 3.0]})
LEVELS = pd.Series([1.0, 2, 3], pd.MultiIndex.from_arrays([["a", "a", None], MONTHS[:3]]))


@pytest.mark.parametrize(
    ("y", "column", "told"),
    [
        (TEXT, None, "column 'day' of y contains text, for instance 'a' in row 0.*by time_column"),
        (LONG, "id", "id 'a' occurs again in row 2 of y"),
        (LONG, "shop", "'shop' is not in y; its columns are 'id', 'y'"),
        (LONG, 2, "outside y, which has 2 columns"),
        (LONG, 1.5, "int or a column name"),
        (VALUES, "id", "y has no column names"),
        (LONG[["id"]], "id", "no column besides"),
        ([VALUES, VALUES], 0, "sequence_column=0 is a column of ids"),
        (LEVELS, 0, "sequence_column=0 is a column of ids"),
        (LEVELS, None, "y has no id in row 2 of its index"),
        ([FRAME, FRAME[["b", "a"]]], None, "series 1 of y has the columns 'b', 'a'"),
        (FRAME.set_axis(["a", "a"], axis=1), None, "column 'a' twice"),
        (FRAME.set_axis(MONTHS[np.r_[:5, 7:26]]), None, "The index of y has a gap"),
    ],
)
def test_panels_that_raise(y, column, told):
    with pytest.raises((ValueError, TypeError), match=told):
        read_panel(y, column)


def test_exog_of_panels():
    parts = dated_parts()
    del parts["c"]
    panel, _ = read_panel(list(parts.values()))
    exog = [pd.DataFrame({"e": 1.0, "f": 2.0}, index=part.index) for part in parts.values()]
    assert [len(rows) for rows in read_exog(panel, exog)] == [24, 12]
    for wrong, told in (
        (exog[::-1], "does not match series 0 of y"),
        (exog[:1], "1 tables, but there are 2 series"),
    ):
        with pytest.raises(ValueError, match=told):
            read_exog(panel, wrong)
    # ids in another order, and later rows
    panel, _ = read_panel(pd.concat(parts))
    later = {k: pd.DataFrame({"e": 1.0 * i}, following(parts[k])) for i, k in enumerate("ab")}
    found = read_exog(panel, pd.concat(later), following=True)
    assert [rows[0, 0] for rows in found] == [1.0, 0.0]
    with pytest.raises(ValueError, match="no rows of series 'a'; it has rows of 'b'"):
        read_exog(panel, pd.concat({"b": later["b"]}), following=True)
    # one table for all columns
    panel, _ = read_panel(FRAME.set_axis(MONTHS[:N]))
    holidays = pd.Series(np.arange(N), MONTHS[:N])
    first, second = read_exog(panel, holidays)
    assert first is second
    with pytest.raises(ValueError, match="does not match column 'a' of y"):
        read_exog(panel, holidays.set_axis(MONTHS[1 : N + 1]))


@pytest.mark.parametrize("container", ["list", "levels", "ids"])
def test_later_rows_of_panels(container):
    parts = dated_parts()
    later = {k: parts[k].set_axis(following(parts[k], len(parts[k]))) for k in "cab"}
    if container == "list":
        later = {k: later[k] for k in parts}
    make, column = {
        "list": (lambda parts: list(parts.values()), None),
        "levels": (pd.concat, None),
        "ids": (lambda parts: pd.concat(parts).reset_index(0, name="y"), "level_0"),
    }[container]
    panel, _ = read_panel(make(parts), column)
    longer, values, *_ = panel.follow(make(later), sequence_column=column)
    for i, each in enumerate(parts):
        np.testing.assert_array_equal(values[i][:, 0], later[each])
        assert longer.calendars[i].following(3).equals(following(later[each], 3))
    with pytest.raises(ValueError, match=r"begins at 2020-01-31.* 24 rows are known"):
        panel.follow(make(parts), sequence_column=column)


def test_later_rows_of_some_series():
    parts = dated_parts()
    panel, _ = read_panel(pd.concat(parts))
    new = parts["a"].set_axis(following(parts["a"], 12))
    longer, values, *_ = panel.follow(pd.concat({"a": new}))
    assert [len(rows) for rows in values] == [0, 12, 0]
    assert longer.calendars[0] == panel.calendars[0]
    for wrong, told in (
        (pd.concat({"z": new}), "'z', which is not among the series of fit: 'b', 'a', 'c'"),
        ([new, new], r"2 series \(a list\), but fit had 3 \(a MultiIndex\)"),
    ):
        with pytest.raises(ValueError, match=told):
            panel.follow(wrong)
    columns, _ = read_panel(FRAME.set_axis(MONTHS[:N]))
    assert columns.follow(VALUES[:5]).panel.calendars[1].n_rows == N + 5


class Compared(str):
    """Text that counts how often it was compared."""

    __hash__ = str.__hash__
    times = 0

    def __eq__(self, other):
        Compared.times += 1
        return str.__eq__(self, other)


def test_many_series_are_looked_up_and_not_searched_for():
    n = 200
    ids = [Compared(f"s{i}") for i in range(n)]
    rows = np.empty((3 * n, 2), dtype=object)
    rows[:, 0], rows[:, 1] = np.repeat(np.array(ids, dtype=object), 3), np.arange(3.0 * n)
    panel, _ = read_panel(rows, 0)
    frame = pd.DataFrame(np.zeros((3, n)), columns=pd.Index(ids, dtype=object))
    for call in (lambda: panel.follow(rows, sequence_column=0), lambda: read_panel(frame)):
        Compared.times = 0
        call()
        assert Compared.times < 20 * n


@pytest.mark.parametrize("freq", ["D", "MS"])
def test_a_long_table_is_read_by_whole_columns(freq, monkeypatch):
    """Values once for all series, and the frequency of dates once, of the longest series."""
    dates = pd.DatetimeIndex(list(pd.date_range("2021", periods=50, freq=freq)))
    parts = {k: pd.DataFrame({"y": 1.0}, dates[k : k + 30]) for k in range(20)}
    calls = []
    for module, name in ((tables, "read_values"), (calendar, "frequency_text")):
        original = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *given, of=original, name=name: calls.append(name) or of(*given)
        )
    read = Panel.read(pd.concat(parts), panel="each")
    assert sorted(calls) == ["frequency_text", "read_values"]
    assert [each.n_rows for each in read.panel.calendars] == [30] * 20

"""Containers of series: forecasts, bands and paths in the container of the input."""

import numpy as np
import pytest

from helpers.damaged_files import round_trip

pd = pytest.importorskip("pandas")

from reservoir.estimators.series.calendar import Calendar  # noqa: E402
from reservoir.estimators.series.containers import SeriesContainer, band_labels  # noqa: E402
from reservoir.estimators.series.panel import Panel  # noqa: E402
from reservoir.estimators.series.tables import read_values  # noqa: E402

MONTHS = pd.date_range("2020-01-31", periods=30, freq=pd.offsets.MonthEnd(), name="month")
N, H, K = 24, 6, 2  # rows, steps of a forecast, coverages
COVERAGES = [0.9, 0.5]
LABELS = ["forecast", "lower 90%", "upper 90%", "lower 50%", "upper 50%"]
VALUES = np.random.default_rng(0).normal(size=(N, 2))
POINT = np.arange(H * 2.0).reshape(H, 2)
BANDS = np.arange(K * 2 * H * 2.0).reshape(K, 2, H, 2)
PATHS = np.arange(4 * H * 2.0).reshape(4, H, 2)


def container_and_calendar(table):
    return SeriesContainer.of(table), Calendar.of("y", table)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "Float64"])
@pytest.mark.parametrize("name", ["sales", 7, ("a", 1), None])
def test_a_series_comes_back_as_one_with_dates(dtype, name):
    y = pd.Series(np.arange(N), MONTHS[:N], name=name).astype(dtype)
    container, calendar = map(round_trip, container_and_calendar(y))
    wide = "float32" if dtype == "float32" else "float64"
    found = container.wrap(POINT[:, :1], calendar)
    expected = pd.Series(POINT[:, 0].astype(wide), MONTHS[N:], name=name)
    pd.testing.assert_series_equal(found, expected)
    banded = container.wrap_bands(POINT[:, :1], BANDS[..., :1], COVERAGES, calendar)
    assert banded.columns.tolist() == LABELS
    assert banded.index.equals(MONTHS[N:])
    np.testing.assert_array_equal(banded["lower 50%"], BANDS[1, 0, :, 0])
    np.testing.assert_array_equal(banded["upper 90%"], BANDS[0, 1, :, 0])
    paths = container.wrap_paths(PATHS[..., :1], calendar)
    assert paths.columns.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(paths[2], PATHS[2, :, 0])


@pytest.mark.parametrize("names", [["a", "b"], [3, 1], [("x", 1), ("x", 2)]])
def test_a_frame_comes_back_as_one(names):
    columns = pd.Index(names, name=None if isinstance(names[0], tuple) else "what")
    y = pd.DataFrame(VALUES, MONTHS[:N], columns)
    container, calendar = map(round_trip, container_and_calendar(y))
    expected = pd.DataFrame(POINT, MONTHS[N:], columns)
    pd.testing.assert_frame_equal(container.wrap(POINT, calendar), expected)
    banded = container.wrap_bands(POINT, BANDS, COVERAGES, calendar)
    assert banded.shape == (H, 2 * len(LABELS))
    for j, column in enumerate(names):
        assert banded[column].columns.tolist() == LABELS
        key = column if isinstance(column, tuple) else (column,)
        np.testing.assert_array_equal(banded[(*key, "lower 50%")], BANDS[1, 0, :, j])
    paths = container.wrap_paths(PATHS, calendar)
    pd.testing.assert_frame_equal(
        paths[2], pd.DataFrame(PATHS[2], MONTHS[N:], columns), check_names=False
    )
    assert paths.columns.names[0] == "path"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arrays_come_back_as_arrays(dtype):
    flat, calendar = container_and_calendar(VALUES[:, 0].astype(dtype))
    assert flat.wrap(POINT[:, :1], calendar).shape == (H,)
    assert flat.wrap(POINT[:, :1], calendar).dtype == dtype
    banded = flat.wrap_bands(POINT[:, :1], BANDS[..., :1], COVERAGES, calendar)
    assert banded.shape == (H, 1 + 2 * K)
    np.testing.assert_array_equal(banded[:, 3], BANDS[1, 0, :, 0])
    assert flat.wrap_paths(PATHS[..., :1], calendar).shape == (4, H)
    table, calendar = container_and_calendar(VALUES.astype(dtype))
    np.testing.assert_array_equal(table.wrap(POINT, calendar), POINT)
    banded = table.wrap_bands(POINT, BANDS, COVERAGES, calendar)
    assert banded.shape == (H, 2, 1 + 2 * K)
    assert banded.dtype == dtype
    np.testing.assert_array_equal(banded[:, 1, 2], BANDS[0, 1, :, 1])
    np.testing.assert_array_equal(table.wrap_paths(PATHS, calendar), PATHS)


def test_labels_of_coverages():
    assert band_labels([0.9, 0.975, 2 / 3, 0.29]) == [
        *("forecast", "lower 90%", "upper 90%", "lower 97.5%", "upper 97.5%"),
        *("lower 66.66666667%", "upper 66.66666667%", "lower 29%", "upper 29%"),
    ]


def test_polars_in_polars_out(polars):
    series, calendar = container_and_calendar(polars.Series("a", VALUES[:, 0]))
    assert series.wrap(POINT[:, :1], calendar).equals(polars.Series("a", POINT[:, 0]))
    banded = series.wrap_bands(POINT[:, :1], BANDS[..., :1], COVERAGES, calendar)
    assert banded.columns == LABELS
    table = polars.DataFrame(VALUES, schema=["a", "b"])
    frame, calendar = container_and_calendar(table)
    assert frame.wrap(POINT, calendar).equals(polars.DataFrame(POINT, schema=["a", "b"]))
    banded = frame.wrap_bands(POINT, BANDS, COVERAGES, calendar)
    assert banded.columns == [f"{name} {label}" for name in "ab" for label in LABELS]
    assert frame.wrap_paths(PATHS, calendar).columns[:3] == ["0 a", "0 b", "1 a"]
    np.testing.assert_array_equal(read_values("y", table), VALUES)
    with_null = polars.Series("a", [1, None, 3])
    np.testing.assert_array_equal(read_values("y", with_null)[:, 0], [1, np.nan, 3])
    dated = table.with_columns(when=polars.Series(MONTHS[:N].to_numpy()))
    with pytest.raises(TypeError, match="datetime column 'when'"):
        read_values("y", dated)
    with pytest.raises(ValueError, match="y contains text in column 'c'"):
        read_values("y", table.with_columns(c=polars.Series(["x"] * N)))
    ids = polars.Series("id", ["q"] * 15 + ["p"] * 9)
    rows = Panel.read(table.insert_column(1, ids), panel="each", sequence_column="id")
    panel, values = rows.panel, rows.values
    assert panel.ids == ("q", "p")
    np.testing.assert_array_equal(np.concatenate(values), VALUES)
    back = panel.wrap([POINT, POINT])
    assert back.columns == ["a", "id", "b"]
    assert back["id"].to_list() == ["q"] * H + ["p"] * H


def test_later_tables_must_have_the_same_columns():
    container = SeriesContainer.of(pd.DataFrame(VALUES, columns=["a", "b"]))
    container.check_same("y", VALUES)
    with pytest.raises(ValueError, match=r"Column 0 of y is 'b'.*'a'.*same order"):
        container.check_same("y", pd.DataFrame(VALUES, columns=["b", "a"]))
    with pytest.raises(ValueError, match="y has 1 column, but in fit it had 2"):
        container.check_same("y", VALUES[:, 0])

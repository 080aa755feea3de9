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
TABLE = np.concatenate([POINT[None], *BANDS])  # labels, steps, columns


def wrapped(table, n_columns=2):
    """Return points, bands and paths in the container of a table, all of it read from a file."""
    container, calendar = map(round_trip, (SeriesContainer.of(table), Calendar.of("y", table)))
    points, bands, paths = (rows[..., :n_columns] for rows in (POINT, BANDS, PATHS))
    banded = container.wrap_bands(points, bands, COVERAGES, calendar)
    return container.wrap(points, calendar), banded, container.wrap_paths(paths, calendar)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "Float64"])
@pytest.mark.parametrize("name", ["sales", 7, ("a", 1), None])
def test_a_series_comes_back_as_one_with_dates(dtype, name):
    y = pd.Series(np.arange(N), MONTHS[:N], name=name).astype(dtype)
    found, banded, paths = wrapped(y, 1)
    wide = "float32" if dtype == "float32" else "float64"
    expected = pd.Series(POINT[:, 0].astype(wide), MONTHS[N:], name=name)
    pd.testing.assert_series_equal(found, expected)
    expected = pd.DataFrame(TABLE[..., 0].T.astype(wide), MONTHS[N:], LABELS)
    pd.testing.assert_frame_equal(banded, expected)
    assert paths.columns.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(paths, PATHS[..., 0].T)


@pytest.mark.parametrize("names", [["a", "b"], [3, 1], [("x", 1), ("x", 2)]])
def test_a_frame_comes_back_as_one(names):
    columns = pd.Index(names, name=None if isinstance(names[0], tuple) else "what")
    found, banded, paths = wrapped(pd.DataFrame(VALUES, MONTHS[:N], columns))
    pd.testing.assert_frame_equal(found, pd.DataFrame(POINT, MONTHS[N:], columns))
    assert banded.shape == (H, 2 * len(LABELS))
    for j, column in enumerate(names):
        expected = pd.DataFrame(TABLE[..., j].T, MONTHS[N:], LABELS)
        pd.testing.assert_frame_equal(banded[column], expected, check_names=False)
    expected = pd.DataFrame(PATHS[2], MONTHS[N:], columns)
    pd.testing.assert_frame_equal(paths[2], expected, check_names=False)
    assert paths.columns.names[0] == "path"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arrays_come_back_as_arrays(dtype):
    flat, table = wrapped(VALUES[:, 0].astype(dtype), 1), wrapped(VALUES.astype(dtype))
    expected = POINT, np.moveaxis(TABLE, 0, -1), PATHS
    of_first = POINT[:, 0], TABLE[..., 0].T, PATHS[..., 0]
    for found, rows in zip([*flat, *table], [*of_first, *expected], strict=True):
        np.testing.assert_array_equal(found, rows)
        assert found.dtype == dtype


def test_labels_of_coverages():
    assert band_labels([0.9, 0.975, 2 / 3, 0.29]) == [
        *("forecast", "lower 90%", "upper 90%", "lower 97.5%", "upper 97.5%"),
        *("lower 66.66666667%", "upper 66.66666667%", "lower 29%", "upper 29%"),
    ]


def test_polars_in_polars_out(polars):
    found, banded, _ = wrapped(polars.Series("a", VALUES[:, 0]), 1)
    assert found.equals(polars.Series("a", POINT[:, 0]))
    assert banded.columns == LABELS
    table = polars.DataFrame(VALUES, schema=["a", "b"])
    found, banded, paths = wrapped(table)
    assert found.equals(polars.DataFrame(POINT, schema=["a", "b"]))
    assert banded.columns == [f"{name} {label}" for name in "ab" for label in LABELS]
    assert paths.columns[:3] == ["0 a", "0 b", "1 a"]
    np.testing.assert_array_equal(read_values("y", table), VALUES)
    with_null = polars.Series("a", [1, None, 3])
    np.testing.assert_array_equal(read_values("y", with_null)[:, 0], [1, np.nan, 3])
    dated = table.with_columns(when=polars.Series(MONTHS[:N].to_numpy()))
    with pytest.raises(TypeError, match="datetime column 'when'"):
        read_values("y", dated)
    with pytest.raises(ValueError, match="y contains text in column 'c'"):
        read_values("y", table.with_columns(c=polars.Series(["x"] * N)))
    ids = polars.Series("id", ["q"] * 15 + ["p"] * 9)
    read = Panel.read(table.insert_column(1, ids), panel="each", sequence_column="id")
    assert read.panel.ids == ("q", "p")
    np.testing.assert_array_equal(np.concatenate(read.values), VALUES)
    back = read.panel.wrap([POINT, POINT])
    assert back.columns == ["a", "id", "b"]
    assert back["id"].to_list() == ["q"] * H + ["p"] * H


def test_later_tables_must_have_the_same_columns():
    container = SeriesContainer.of(pd.DataFrame(VALUES, columns=["a", "b"]))
    container.check_same("y", VALUES)
    with pytest.raises(ValueError, match=r"Column 0 of y is 'b'.*'a'.*same order"):
        container.check_same("y", pd.DataFrame(VALUES, columns=["b", "a"]))
    with pytest.raises(ValueError, match="y has 1 column, but in fit it had 2"):
        container.check_same("y", VALUES[:, 0])

"""Tables of any library: their numbers, missing values, names that can be saved, errors."""

from array import array
from collections import deque

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from reservoir._validation.index import plain_name  # noqa: E402
from reservoir.estimators.series.tables import read_values  # noqa: E402


@pytest.mark.parametrize(
    "table",
    [
        [1, 2, None, 4],
        np.array([1, 2, np.nan, 4]),
        np.array([1, 2, None, 4], dtype=object),
        pd.Series([1, 2, np.nan, 4], dtype="float32"),
        pd.Series([1, 2, pd.NA, 4], dtype="Int64"),
        pd.Series([1, 2, None, 4], dtype=object),
        pd.Series([1, 2, pd.NA, 4], dtype=object),
        pd.DataFrame({"a": [1, 2, np.nan, 4]}),
    ],
)
def test_missing_values_are_nan(table):
    found = read_values("y", table)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [[1], [2], [np.nan], [4]])


@pytest.mark.parametrize(
    ("table", "error", "told"),
    [
        (pd.DataFrame({"a": [1.0, 2], "b": [1, -np.inf]}), ValueError, r"column 1 \('b'\).*row 1"),
        (pd.DataFrame({"a": [1], "t": pd.Timestamp(0)}), TypeError, "'t'.*set_index"),
        (["1", "2"], ValueError, "text, for instance '1' in row 0.*to_numeric"),
        (pd.DataFrame({"a": [1, 2], "b": ["1", "2"]}), ValueError,
         "y contains text in column 'b', for instance '1' in row 0.*dates by time_column, and one "
         "of ids by sequence_column"),
        ([1.0, {}], TypeError, "In y: .*dict'. Give a number"),
    ],
)  # fmt: skip
def test_values_that_raise(table, error, told):
    with pytest.raises(error, match=told):
        read_values("y", table)


def test_several_values_in_a_row_of_polars_raise(polars):
    for dtype in (polars.List(polars.Float64), polars.Array(polars.Float64, 2)):
        column = polars.Series("a", [[1.0, 2.0]] * 9, dtype=dtype)
        for table, place in ((column, ""), (column.to_frame(), " in column 'a'")):
            with pytest.raises(TypeError, match=rf"y contains values of dtype .*\){place}, but a"):
                read_values("y", table)


def test_any_sequence_of_numbers_is_a_series():
    for rows in (range(4), array("d", range(4)), deque(range(4))):
        np.testing.assert_array_equal(read_values("y", rows)[:, 0], range(4))


def test_names_that_can_be_saved():
    assert plain_name(("a", np.int64(3))) == ("a", 3)
    assert plain_name(None) is None
    assert plain_name(pd.Timestamp("2024-01-01")) == "2024-01-01 00:00:00"

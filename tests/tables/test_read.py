"""`read`: rows, bounds and ids of every container, and one error for each fault in all doors."""

import numpy as np
import pytest

from reservoir._tables import read, sequence_lengths

ROWS = np.random.default_rng(0).normal(size=(12, 2))
PARTS = [ROWS[:5], ROWS[5:6], ROWS[6:]]
IDS = np.repeat(["b", "c", "a"], [5, 1, 6])


def objects(parts):
    packed = np.empty(len(parts), dtype=object)
    packed[:] = parts
    return packed


def of_arrays():
    """Yield name, data, the column of ids, and what `read` finds: kind, lengths, ids."""
    yield "array", ROWS, None, ("table", [12], None)
    yield "Fortran", np.asfortranarray(ROWS), None, ("table", [12], None)
    yield "nested lists", ROWS.tolist(), None, ("table", [12], None)
    yield "list", PARTS, None, ("list", [5, 1, 6], None)
    yield "lists of lists", [part.tolist() for part in PARTS], None, ("list", [5, 1, 6], None)
    yield "objects", objects(PARTS), None, ("object", [5, 1, 6], None)
    yield "stack", ROWS.reshape(3, 4, 2), None, ("array", [4, 4, 4], None)
    numbers = np.repeat([3.0, 7.0, 1.0], [5, 1, 6])
    by_number = np.column_stack([ROWS, numbers])
    yield "ids last", by_number, -1, ("table", [5, 1, 6], (3.0, 7.0, 1.0))
    by_text = np.column_stack([IDS.astype(object), ROWS])
    yield "ids of text", by_text, 0, ("table", [5, 1, 6], ("b", "c", "a"))


def of_frames():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(ROWS, columns=["u", "v"])
    ids = ("b", "c", "a")
    yield "frame", frame, None, ("table", [12], None)
    yield "nullable", frame.astype("Float64"), None, ("table", [12], None)
    yield "sparse columns", frame.astype(pd.SparseDtype(float, 0.0)), None, ("table", [12], None)
    yield "list of frames", [frame[:5], frame[5:6], frame[6:]], None, ("list", [5, 1, 6], None)
    yield "id column", frame.assign(id=IDS), "id", ("table", [5, 1, 6], ids)
    levels = frame.set_axis(pd.MultiIndex.from_arrays([IDS, range(12)]))
    yield "levels", levels, None, ("table", [5, 1, 6], ids)
    outer = pd.MultiIndex.from_arrays([["s"] * 12, IDS, range(12)])
    two = tuple(("s", each) for each in ids)
    yield "two levels of ids", frame.set_axis(outer), None, ("table", [5, 1, 6], two)


@pytest.mark.parametrize("cases", [of_arrays, of_frames])
def test_every_container_gives_the_same_rows(cases):
    for name, data, column, (kind, lengths, ids) in cases():
        table = read("X", data, sequence_column=column)
        assert (table.container, table.ids) == (kind, ids), name
        assert table.lengths == np.diff(table.bounds).tolist() == lengths
        np.testing.assert_array_equal(np.concatenate(table.arrays), ROWS, err_msg=name)
        assert {(part.dtype.name, part.flags.c_contiguous) for part in table.arrays} == {
            ("float64", True)
        }
        assert sequence_lengths(data, column) == (lengths, kind == "table")


def test_floats_keep_their_precision_and_finite_arrays_are_not_copied():
    assert read("X", ROWS.astype("f4")).arrays[0].dtype == np.float32
    assert np.shares_memory(read("X", ROWS).arrays[0], ROWS)
    assert read("X", PARTS).arrays[1] is PARTS[1]
    assert read("X", PARTS, dtype="f4").arrays[1].dtype == np.float32
    cube = ROWS.reshape(3, 4, 2)
    assert np.shares_memory(read("X", cube, rows="series").arrays, cube)


def test_a_row_may_be_a_series():
    table = read("X", ROWS.T, rows="series")
    assert table.container == "rows"
    np.testing.assert_array_equal(np.asarray(table.arrays)[:, :, 0], ROWS.T)
    one_channel = read("X", [ROWS[:5, 0], ROWS[:3, 1].tolist()], rows="series")
    assert [part.shape for part in one_channel.arrays] == [(5, 1), (3, 1)]


def test_the_place_of_nan_is_that_of_the_user():
    holed = [part.copy() for part in PARTS]
    holed[2][1, 1] = np.nan
    stacked = np.column_stack([np.repeat([1, 2, 3], [5, 1, 6]), np.concatenate(holed)])
    for data, column, words in (
        (holed, None, "sequence 2 of X contains NaN in column 1, first in row 1,"),
        (np.concatenate(holed), None, "X contains NaN in column 1, first in row 7,"),
        (stacked, 0, "X contains NaN in column 2, first in row 7,"),
    ):
        with pytest.raises(ValueError, match=words):
            read("X", data, sequence_column=column)
        held = read("X", data, sequence_column=column, allow_nan=True)
        assert np.isnan(np.concatenate(held.arrays)[7, 1])


FAULTS = {
    "empty": ([], "X contains no sequences"),
    "other columns": ([ROWS, ROWS[:, :1]], "Sequence 1 of X has 1 columns, but"),
    "no rows": ([ROWS, ROWS[:0]], r"Sequence 1 of X has shape \(0, 2\), but"),
    "infinity": ([ROWS, np.full((4, 2), np.inf)], "sequence 1 of X contains infinity"),
    "two sources": (PARTS, "sequence_column=0 is for one table of several"),
}


@pytest.mark.parametrize("rows", ["steps", "series"])
@pytest.mark.parametrize("fault", FAULTS)
def test_what_several_sequences_must_have(fault, rows):
    data, words = FAULTS[fault]
    with pytest.raises(ValueError, match=words):
        read("X", data, rows=rows, sequence_column=0 if fault == "two sources" else None)

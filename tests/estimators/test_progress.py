"""Position of an estimator in its data: continuing, starting fresh, errors."""

import copy

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from reservoir import ESNRegressor
from reservoir._tables import Sequences, read_series
from reservoir.estimators.progress import Progress, StateShape

SHAPE = StateShape(3, 1, np.float64)


class Reader(BaseEstimator):
    """What `read_series` needs of an estimator."""


def chunk(*lengths, ids=None, container="table", first=0.0):
    arrays, row = [], first
    for n in lengths:
        arrays.append(np.arange(row, row + n)[:, None])
        row += n
    return Sequences(tuple(arrays), container, ids)


def following(sequences):
    """Targets that are the next rows."""
    return [X + 1 for X in sequences.arrays]


def learned(progress, sequences, new_sequence=False):
    continues = progress.enter(sequences, new_sequence)
    skips = progress.skips(sequences, continues)
    progress.add(sequences, following(sequences), continues=continues)
    return continues, skips


def test_a_table_continues_and_its_washout_is_spent_once():
    progress = Progress(1, washout=5)
    assert learned(progress, chunk(3)) == (False, [3])
    assert progress.n_steps == 3
    assert learned(progress, chunk(4, first=3.0)) == (True, [2])
    assert learned(progress, chunk(4, first=7.0)) == (True, [0])
    assert progress.n_steps == 11
    assert progress.pairing.problem is None  # over the seams, too
    np.testing.assert_array_equal(progress.last_output, [11.0])
    np.testing.assert_array_equal(progress.target_range, [[1.0], [11.0]])


@pytest.mark.parametrize("container", ["list", "object", "array"])
def test_items_of_a_container_are_sequences_of_their_own(container):
    progress = Progress(1, washout=2)
    learned(progress, chunk(4, container=container))
    assert learned(progress, chunk(1, 4, container=container)) == (False, [1, 2])
    assert progress.n_steps == 4


def test_a_new_sequence_starts_fresh():
    progress = Progress(1, washout=2)
    learned(progress, chunk(4))
    assert learned(progress, chunk(4), new_sequence=True) == (False, [2])
    assert progress.n_steps == 4


def test_ids_decide_what_continues_and_may_not_return():
    progress = Progress(1, washout=3)
    assert learned(progress, chunk(2, 2, ids=("a", "b"))) == (False, [2, 2])
    assert learned(progress, chunk(2, 4, ids=("b", "c"))) == (True, [1, 3])
    assert progress.n_steps == 4
    assert progress.last_id == "c"
    with pytest.raises(ValueError, match="Sequence id 'a' occurs again after its sequence"):
        progress.enter(chunk(2, ids=("a",)), False)
    with pytest.raises(ValueError, match="Sequence id 'b' occurs again"):
        progress.enter(chunk(2, 2, ids=("c", "b")), False)
    # the id of the last sequence may be told apart by hand
    assert progress.enter(chunk(2, ids=("c",)), True) is False


class Copied(str):
    """An id that counts how often any of them was copied."""

    times = 0

    def __deepcopy__(self, memo):
        Copied.times += 1
        return Copied(self)


@pytest.mark.both_engines
def test_chunks_share_the_ids_and_change_nothing():
    rows = np.empty((20, 2), dtype=object)
    rows[:, 0], rows[:, 1] = [Copied(name) for name in "abcdefghij" * 2], np.arange(20.0)
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    esn = ESNRegressor(5, washout=0, sequence_column=0, random_state=0)
    Copied.times = 0
    for begin in range(0, 16, 2):
        esn.partial_fit(rows[begin : begin + 2], np.arange(2.0))
    assert Copied.times <= 8  # the last one in each chunk, not all that were seen
    shallow = copy.copy(esn)
    with pytest.raises(ValueError, match="outputs"):
        esn.partial_fit(rows[16:18], np.zeros((2, 2)))
    esn.partial_fit(rows[16:18], np.arange(2.0))  # the chunk that failed has left no id
    assert set(esn._model.progress.ids) == set("abcdefghi")
    # who shares the ids does not see those that come later, and may take them in
    assert set(shallow._model.progress.ids) == set("abcdefgh")
    shallow.partial_fit(rows[18:], np.arange(2.0)).partial_fit(rows[16:18], np.arange(2.0))
    assert set(esn._model.progress.ids) == set("abcdefghi")
    with pytest.raises(ValueError, match="Sequence id 'b' occurs again"):
        shallow.partial_fit(rows[2:4], np.arange(2.0))


def test_a_seam_that_does_not_follow_is_a_problem_for_a_loop():
    progress = Progress(1)
    learned(progress, chunk(3))
    learned(progress, chunk(3, first=9.0))
    assert progress.pairing.problem == "y[-1, 0]=3, but X[0, 0]=9"
    assert Progress(1, compares=False).pairing.feedback


def test_an_index_that_does_not_follow_warns():
    pd = pytest.importorskip("pandas")
    days = pd.date_range("2024-01-01", periods=30, freq="D")
    frames = [pd.DataFrame({"x": np.arange(10.0)}, index=days[k : k + 10]) for k in (0, 10, 25 - 5)]
    first, second, late = (
        read_series(Reader(), frame, None, reset=True, dtype=np.float64, sequence_column=None)
        for frame in frames
    )
    progress = Progress(1)
    assert not progress.enter(first, False)
    progress.add(first, following(first), continues=False)
    assert progress.enter(second, False)  # no warning: it follows
    again = Progress(1)
    again.enter(first, False)
    again.add(first, following(first), continues=False)
    with pytest.warns(UserWarning, match=r"partial_fit continues .* X begins at 2024-01-21"):
        assert again.enter(late, False)
    again.continues = True
    with pytest.warns(UserWarning, match="does not follow it: training ended at 2024-01-30"):
        (state,) = again.starts(
            "last", first, SHAPE, last=np.ones(4), steady=lambda row, quiet: np.full(3, 0.5)
        )
    np.testing.assert_array_equal(state, [0.5, 0.5, 0.5, 0.0])


def test_where_runs_start():
    def starts(spec, *lengths, last=None):
        progress = Progress(1)
        sequences = chunk(*lengths, container="table" if len(lengths) == 1 else "list")
        steady = lambda row, quiet=False: row[0] + np.arange(3.0)  # noqa: E731
        return progress.starts(spec, sequences, SHAPE, last=last, steady=steady)

    end = np.arange(4.0)
    assert starts("last", 5, last=end)[0] is end
    np.testing.assert_array_equal(starts("last", 5), np.zeros((1, 4)))
    np.testing.assert_array_equal(starts("last", 5, 2, last=end), np.zeros((2, 4)))
    np.testing.assert_array_equal(starts("zeros", 5, last=end), np.zeros((1, 4)))
    np.testing.assert_array_equal(starts("steady", 5, 2), [[0, 1, 2, 0], [5, 6, 7, 0]])
    np.testing.assert_array_equal(starts(np.ones(3), 5, 2), [[1, 1, 1, 0]] * 2)
    np.testing.assert_array_equal(starts([[1, 2, 3, 4], [5, 6, 7, 8]], 5, 2)[1], [5, 6, 7, 8])
    with pytest.raises(ValueError, match=r"\(3,\) or \(n_sequences=2, 3\), or 4 with the last"):
        starts(np.ones(2), 5, 2)
    with pytest.raises(ValueError, match="initial_state contains NaN"):
        starts([1.0, np.nan, 0.0], 5)
    with pytest.raises(ValueError, match="initial_state='first' is not known"):
        starts("first", 5)

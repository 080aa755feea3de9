"""Odd values at the end of a series: which are found, and which are not."""

import numpy as np
import pytest

from reservoir.series_models.gaps import fill_gaps
from reservoir.series_models.outliers import LastRows, find_odd, n_last

KINDS = ("level", "seasonal", "walk", "growing", "counts", "tails")


def drawn(kind, seed):
    """Return a series without odd values, (n_rows, 1), and its seasons."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    n = int(rng.integers(60, 300))
    noise, t = rng.normal(size=n), np.arange(n)
    seasons = ()
    if kind == "level":
        y = 100 + noise
    elif kind == "seasonal":
        y, seasons = 50 + 10 * np.sin(2 * np.pi * t / 12) + noise, (12.0,)
    elif kind == "walk":
        y = np.cumsum(noise)
    elif kind == "growing":
        y, seasons = np.exp(3 + 0.02 * t + 0.5 * np.sin(2 * np.pi * t / 7) + 0.1 * noise), (7.0,)
    elif kind == "counts":
        y = rng.poisson(np.exp(rng.uniform(0.5, 3)), n).astype(float)
    else:
        y = 100 + rng.standard_t(4, n)
    return y[:, None], seasons


def odd_in(y, seasons=(), known=None):
    """Return the odd values of a series with gaps."""
    known = np.zeros((len(y), 0)) if known is None else known
    return LastRows.of(fill_gaps(y, known, seasons), y, keep=False).odd


@pytest.mark.parametrize("n_seeds", [2, pytest.param(50, marks=pytest.mark.slow)])
def test_clean_series_have_none(n_seeds):
    found = [odd_in(*drawn(kind, seed)) for kind in KINDS for seed in range(n_seeds)]
    assert sum(each is not None for each in found) <= max(2, len(found) // 100)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("kind", KINDS)
def test_spikes_are_found(kind):
    n_found = 0
    for seed in range(10):
        y, seasons = drawn(kind, seed)
        rng = np.random.default_rng(seed)
        row = len(y) - int(rng.integers(1, 11))
        y[row] += rng.choice([-1, 1]) * rng.uniform(15, 100) * y.std()
        odd = odd_in(y, seasons)
        n_found += odd is not None and odd.rows.tolist() == [row]
        if odd is not None:
            at = odd.rows.tolist().index(row)
            assert odd.values[at] == y[row]
            assert odd.sizes[at] > 4.5
            assert (odd.shift != 0) == (row == len(y) - 1)
    assert n_found >= 9


def test_only_earlier_rows_decide_on_a_value():
    y, seasons = drawn("seasonal", 0)
    y[-5] += 200
    one, other = y.copy(), y.copy()
    other[-4:] += np.random.default_rng(0).normal(size=(4, 1))
    sizes = [odd_in(each, seasons) for each in (one, other)]
    assert [each.rows.tolist() for each in sizes] == [[len(y) - 5]] * 2
    np.testing.assert_array_equal(sizes[0].expected, sizes[1].expected)


@pytest.mark.parametrize("n_odd", [1, 2, 3, 4, 6, 9])
def test_more_than_three_are_a_new_level(n_odd):
    y, _ = drawn("level", 1)
    y[-n_odd:] += 50
    odd = odd_in(y)
    if n_odd > 3:
        assert odd is None
        return
    assert odd.rows.tolist() == list(range(len(y) - n_odd, len(y)))
    assert odd.shift == pytest.approx([50], abs=3)


def test_columns_are_judged_by_themselves():
    rng = np.random.default_rng(0)
    y = 100 + rng.normal(size=(100, 3))
    y[-1, 0] = 0
    y[-4:, 1] += 50
    y[-3, 2] = np.nan
    odd = odd_in(y)
    assert list(zip(odd.rows.tolist(), odd.columns.tolist(), strict=True)) == [(99, 0)]
    assert odd.shift[0] == pytest.approx(-100, abs=3)
    assert (odd.shift[1:] == 0).all()
    removed = odd.removed_from(y)
    assert np.isnan(removed[99, 0])
    assert np.isnan(removed).sum() == 2
    np.testing.assert_array_equal(odd.removed_from(y[90:], 90), removed[90:])


def test_known_inputs_explain_a_value():
    rng = np.random.default_rng(0)
    promoted = (np.arange(200) % 23 == 0).astype(float)
    promoted[-1] = 1
    y = 100 + rng.normal(size=200) + 60 * promoted
    assert odd_in(y[:, None]) is None  # the same as earlier ones
    assert odd_in(y[:, None], known=promoted[:, None]) is None
    promoted[-1] = 0
    assert odd_in(y[:, None], known=promoted[:, None]).rows.tolist() == [199]


def test_zeros_and_constants():
    for level in (0.0, 7.0, -7e6):
        sevens = np.full((40, 1), level)
        sevens[-1] = level * (1 + 1e-14)
        assert odd_in(sevens) is None  # equal up to rounding
        sevens[-1] = level - 0.125
        assert odd_in(sevens).rows.tolist() == [39]
        assert np.isinf(odd_in(sevens).sizes).all()
    sales = np.zeros((100, 1))
    sales[-1] = 1
    assert np.isinf(odd_in(sales).sizes).all()  # no earlier value differed from its forecast
    assert odd_in(np.vstack([sales, [[0.0]]])) is None  # a rare demand
    sales[10] = 2
    assert odd_in(sales) is None  # a demand like an earlier one
    sales[-1] = 0
    assert odd_in(sales) is None


@pytest.mark.fast_cases(6)
@pytest.mark.parametrize("kind", ["level", "seasonal", "walk", "counts", "steps"])
@pytest.mark.parametrize("c", [1e-3, 1e3, 1e6])
def test_the_level_does_not_matter(kind, c, global_random_seed):
    y, seasons = drawn("counts" if kind == "steps" else kind, global_random_seed)
    if kind == "steps":  # most rows are equal to the one before
        y = np.repeat(y, 9, axis=0)[: len(y)]
    y[-3] += 8 * y.std()
    # on one side of 0, where no logarithm is taken
    y = np.round((y - y.max()) / y.std(), 6) - 1
    one, other = odd_in(y, seasons), odd_in(y - c, seasons)
    assert (one is None) == (other is None)
    if one is not None:
        np.testing.assert_array_equal(one.rows, other.rows)
        np.testing.assert_allclose(one.sizes, other.sizes, rtol=1e-5)
        np.testing.assert_allclose(one.expected - c, other.expected, atol=1e-5)


@pytest.mark.fast_cases("values")
@pytest.mark.parametrize("row", [-1, -4])
@pytest.mark.parametrize(("level", "spread"), [(263, 0.1), (50, 0.02), (1.08, 0.002), (0, 0.1)])
def test_a_value_beyond_thirty_deviations_is_odd_at_any_level(level, spread, row):
    y = np.round(level + spread * np.random.default_rng(0).normal(size=(200, 1)), 4)
    y[row] = level + 30 * spread
    assert odd_in(y).rows.tolist() == [200 + row]
    assert odd_in(y).expected == pytest.approx([level], abs=spread)


def test_a_step_of_the_recorded_resolution_is_not_odd():
    y = 20.0 + (np.arange(200) % 40 == 0)[:, None]  # whole degrees, most of them equal
    for step, is_odd in ((2, False), (4, False), (9, True)):
        y[-1] = 20 + step
        assert (odd_in(y) is not None) == is_odd


def test_short_series_are_not_judged():
    assert [n_last(n) for n in (5, 23, 24, 36, 40, 1000)] == [0, 0, 6, 9, 10, 10]
    y = np.full((23, 1), 5.0) + np.random.default_rng(0).normal(size=(23, 1))
    y[-1] = 500
    assert odd_in(y) is None


def test_units_do_not_matter():
    y, seasons = drawn("growing", 3)
    y[-2] = 0
    rows = [odd_in(scale * y, seasons) for scale in (1e-9, 1.0, 1e9)]
    for each in rows:
        assert each.rows.tolist() == [len(y) - 2]
        np.testing.assert_allclose(each.sizes, rows[1].sizes, rtol=1e-6)


def test_later_rows_are_judged_after_others():
    y, _ = drawn("level", 5)
    data = fill_gaps(y, np.zeros((len(y) + 30, 0)), ())
    later = np.full((30, 1), np.nan)
    later[:25] = 100
    later[-1] = 300
    odd = find_odd(data, later, 10)
    assert odd.rows.tolist() == [len(y) + 29]
    assert find_odd(data, later, 0) is None
    later[-12] = 300  # before the rows that are judged
    assert find_odd(data, later, 10) is None or len(y) + 18 not in find_odd(data, later, 10).rows

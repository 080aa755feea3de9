"""Distances between climates: power spectra, and distributions of rows."""

import numpy as np
import pytest

from reservoir.datasets import henon
from reservoir.metrics import power_spectrum_distance, sliced_wasserstein

T = np.arange(600)


def test_spectra_of_sines():
    slow, fast = np.sin(0.2 * T), np.sin(0.8 * T)
    assert power_spectrum_distance(slow, 3 * slow + 7) == pytest.approx(0, abs=1e-6)
    assert power_spectrum_distance(slow, np.sin(0.2 * T[:300] + 1)) < 0.05
    assert power_spectrum_distance(slow, fast) > 0.95
    # half the power at another frequency: the overlap is sqrt(1/2)
    both = slow + fast
    assert power_spectrum_distance(slow, both) == pytest.approx(np.sqrt(1 - 0.5**0.5), abs=0.01)
    # channels are averaged
    pair = power_spectrum_distance(np.c_[slow, slow], np.c_[slow, fast])
    assert pair == pytest.approx(power_spectrum_distance(slow, fast) / 2)


def test_spectra_of_what_is_constant_or_huge():
    slow = np.sin(0.2 * T)
    assert power_spectrum_distance(slow, np.zeros(600)) == 1
    assert power_spectrum_distance(1e200 * slow, 1e-200 * slow) == pytest.approx(0, abs=1e-6)


def test_wasserstein_of_a_shift_and_a_scale(global_random_seed):
    rows = np.random.default_rng(global_random_seed).normal(size=(400, 1))
    spread = rows.std()
    assert sliced_wasserstein(rows, rows[::-1]) == 0
    assert sliced_wasserstein(rows, rows + 3 * spread) == pytest.approx(3)
    assert sliced_wasserstein(100 * rows, 100 * rows + 300 * spread) == pytest.approx(3)
    wider = sliced_wasserstein(rows, 2 * rows)
    assert wider == pytest.approx(np.abs(rows).mean() / spread, rel=1e-6)


def test_wasserstein_projects_on_unit_directions(global_random_seed):
    rows = np.random.default_rng(global_random_seed).normal(size=(200, 2))
    shift = np.array([3.0, 4.0]) * rows.std(axis=0)
    # the mean of |cos| over directions in the plane is 2 / pi
    found = sliced_wasserstein(rows, rows + shift, 2000, random_state=global_random_seed)
    assert found == pytest.approx(5 * 2 / np.pi, rel=0.05)
    same = [sliced_wasserstein(rows, rows + shift, random_state=3) for _ in range(2)]
    assert same[0] == same[1]


def test_climates_tell_attractors_apart(global_random_seed):
    X = henon(4000, random_state=global_random_seed)
    held = np.tile(X[:8], (250, 1))  # a cycle, as a loop may fall into
    for distance in (power_spectrum_distance, lambda a, b: sliced_wasserstein(a, b, 50, 0)):
        assert distance(X[:2000], held) > 2 * distance(X[:2000], X[2000:])


@pytest.mark.parametrize("distance", [power_spectrum_distance, sliced_wasserstein])
def test_errors_of_climates(distance):
    rows = np.sin(0.2 * np.c_[T, T + 1.0])
    with pytest.raises(ValueError, match="y_true has 2 columns, but y_pred has 1"):
        distance(rows, rows[:, 0])
    with pytest.raises(ValueError, match="y_pred contains NaN"):
        distance(rows, np.full_like(rows, np.nan))
    with pytest.raises(ValueError, match="Column 1 of y_true is constant"):
        distance(rows * [1, 0], rows)


def test_errors_of_single_climates():
    with pytest.raises(ValueError, match="at least 16 rows; y_true has 600 and y_pred has 15"):
        power_spectrum_distance(T, T[:15])
    with pytest.raises(ValueError, match="n_projections=0"):
        sliced_wasserstein(T, T, n_projections=0)

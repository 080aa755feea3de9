"""Maps of crowds: the number of people is conserved, and they follow the time of day."""

from __future__ import annotations

import numpy as np
import pytest

from reservoir.datasets import crowd_density
from reservoir.datasets._crowd_density import _add_events, _counted, _covered, _shares, _town


def test_maps_hold_the_people():
    X = crowd_density(72, width=40, height=20, people=5e4, random_state=0)
    assert X.shape == (72, 800)
    assert X.min() >= 0
    # Poisson numbers of 50,000 in the mean, whose deviation is 224; and an event may be on
    np.testing.assert_allclose(X.sum(axis=1), 5e4, atol=5 * 224)
    assert np.linalg.matrix_rank(X) == 72
    week = crowd_density(250, width=40, height=20, random_state=0)
    assert np.linalg.matrix_rank(week) <= 160  # the antennas
    for kind in (X, week):
        assert kind.flags.c_contiguous


def test_days_and_weeks_recur_and_work_is_crowded(global_random_seed):
    crowded = []
    for seed in global_random_seed + 100 * np.arange(3):  # in few cities homes lie as close as work
        X = crowd_density(4 * 168, random_state=int(seed))
        hours = np.arange(len(X))
        working = hours // 24 % 7 < 5
        noon, night = (X[working & (hours % 24 == hour)] for hour in (11, 3))
        crowded.append(noon.max(axis=1).mean() / night.max(axis=1).mean())
        gaps = {lag: np.sum((X[lag:] - X[:-lag]) ** 2) / (len(X) - lag) for lag in (1, 12, 60, 168)}
        assert gaps[1] < gaps[168] < min(gaps[12], gaps[60])
    assert np.median(crowded) > 1.15


def test_shares_add_up_and_drift():
    rng = np.random.default_rng(0)
    shares = _shares(2881, 0.3, rng)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
    assert shares.min() >= 0
    home, work, road, leisure, away = shares.T
    assert away[0] == 0
    assert away[-1] == pytest.approx(0.3)
    monday = slice(0, 24)
    assert home[monday].argmax() in (0, 1, 2, 3, 4)
    assert work[monday].argmax() in range(10, 16)
    assert road[monday].argmax() in (7, 17, 18)
    assert leisure[monday].argmax() in (19, 20)
    saturday = slice(5 * 24, 6 * 24)
    assert work[saturday].max() < 0.3 * work[monday].max()
    assert leisure[saturday].sum() > 2 * leisure[monday].sum()
    np.testing.assert_array_equal(_shares(40_000, 0.3, rng)[-1], [0, 0, 0, 0, 1])  # no further


def test_places_and_cells(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    places, districts = _town(32, 24, rng)
    np.testing.assert_allclose(places.sum(axis=1), 1, rtol=1e-12)
    assert places.min() >= 0
    assert set(districts) <= set(range(8))
    covered = _covered(32, 24, places, rng)
    assert covered.shape == (768, 160)
    np.testing.assert_allclose(covered.sum(axis=1), 1, rtol=1e-12)
    assert _covered(8, 8, places[:, :64], rng).shape == (64, 16)


def test_events_move_people_and_make_none():
    rng = np.random.default_rng(0)
    places, _ = _town(32, 24, rng)
    covered = _covered(32, 24, places, rng)
    calm = np.full((20 * 168, 160), 1000 / 160)
    busy = calm.copy()
    _add_events(busy, covered, 3.0, 1000.0, rng)
    np.testing.assert_allclose(busy.sum(axis=1), 1000, rtol=1e-12)
    hours = np.flatnonzero(np.abs(busy - calm).max(axis=1) > 1e-9)
    days = np.unique(hours // 24)
    assert set(hours % 24) <= set(range(14, 24))
    # 60 events in the mean over 140 days, some on the same: 140 (1 - exp(-3 / 7)) = 49 days
    assert 49 - 3 * 6 < len(days) < 49 + 3 * 6
    _add_events(calm, covered, 0.0, 1000.0, rng)
    assert (calm == 1000 / 160).all()


def test_counts_are_poisson_and_stay():
    rng = np.random.default_rng(0)
    steady = _counted(np.full((2000, 50), 40.0), rng)
    assert steady.mean() == pytest.approx(40, rel=0.02)
    assert steady.var() == pytest.approx(40, rel=0.05)
    for lag in (1, 2):
        both = np.corrcoef(steady[:-lag].ravel(), steady[lag:].ravel())[0, 1]
        assert both == pytest.approx(0.8**lag, abs=0.02)
    sudden = _counted(np.tile([40.0, 10.0, 90.0], (20_000, 1)).T, rng)
    np.testing.assert_allclose(sudden.mean(axis=1), [40, 10, 90], rtol=0.02)
    np.testing.assert_allclose(sudden.var(axis=1), [40, 10, 90], rtol=0.05)


def test_errors_of_crowd_density():
    with pytest.raises(ValueError, match="width=7 must be at least 8"):
        crowd_density(10, width=7)
    with pytest.raises(TypeError, match="height must be an integer"):
        crowd_density(10, height=8.5)
    with pytest.raises(ValueError, match=r"people=0 must be finite and in \(0, inf"):
        crowd_density(10, people=0)
    with pytest.raises(ValueError, match=r"events=-1 must be finite and in \[0, inf"):
        crowd_density(10, events=-1)
    with pytest.raises(ValueError, match=r"drift=1.5 must be finite and in \[0, 1\]"):
        crowd_density(10, drift=1.5)

"""Visits of patients: times, findings and labels as documented."""

from __future__ import annotations

import numpy as np
import pytest

from reservoir.datasets import patient_visits


def test_visits_are_as_described(global_random_seed):
    X, y = patient_visits(400, random_state=global_random_seed)
    lengths = [len(rows) for rows in X]
    assert min(lengths) == 4
    assert max(lengths) == 20
    rows = np.concatenate(X)
    assert rows.shape[1] == 7
    assert np.isfinite(rows).all()
    gaps = np.concatenate([np.diff(visits[:, 0]) for visits in X])
    assert (gaps > 0).all()
    assert np.median(gaps) == pytest.approx(0.25, rel=0.1)
    assert gaps.max() > 1.0
    assert gaps.min() < 0.05
    assert set(np.unique(rows[:, 4:])) == {0.0, 1.0}
    assert (rows[:, 3] == np.round(rows[:, 3])).all()
    assert rows[:, 3].min() == 0
    assert (rows[:, 1:3] > 0).all()
    assert y.sum() == round(400 * 2 / 7)
    # a flare lowers the complement and shows in the others
    of_index = np.corrcoef(rows[:, 1:].T)[2]
    assert (of_index[:2] < -0.3).all()
    assert (of_index[3:] > 0.1).all()


def test_damage_follows_the_disease():
    X, y = patient_visits(1000, noise=0.0, random_state=0)
    burden = np.array([rows[:, 3].mean() * np.ptp(rows[:, 0]) for rows in X])
    # the more active and the longer known, the more often: almost none among the mildest
    order = np.argsort(burden)
    assert y[order[:250]].mean() < 0.1
    assert y[order[-250:]].mean() > 0.5
    noisy = patient_visits(1000, noise=100.0, random_state=0)[1]
    assert abs(np.corrcoef(noisy, burden)[0, 1]) < 0.1


def test_shares_and_seeds():
    assert patient_visits(10, positive=0.01, random_state=0)[1].sum() == 1
    assert patient_visits(10, positive=0.99, random_state=0)[1].sum() == 9
    one, other = (patient_visits(random_state=5) for _ in range(2))
    assert all((a == b).all() for a, b in zip(one[0], other[0], strict=True))
    assert (one[1] == other[1]).all()
    assert len(one[0]) == 140
    assert one[1].sum() == 40
    assert (patient_visits(random_state=6)[0][0][:4] != one[0][0][:4]).any()


@pytest.mark.parametrize(
    "bad", [{"n_patients": 3}, {"positive": 0}, {"positive": 1}, {"noise": -1}, {"noise": np.nan}]
)
def test_bad_values_raise(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        patient_visits(**bad)

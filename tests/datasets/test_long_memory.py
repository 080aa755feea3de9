"""Tasks of long memory: targets follow from the inputs, chance is as said, balls obey mechanics."""

from __future__ import annotations

import numpy as np
import pytest

from reservoir import RNNClassifier, RNNRegressor, datasets
from reservoir.datasets._bouncing_balls import _advance, _placed

NUMBERS = {"adding": lambda a, b: (a + b) / 2, "multiplication": lambda a, b: a * b}
LISTS = [*NUMBERS, "temporal_order"]
SYMBOLS = np.array(list("abcdXY"))


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("length", [10, 37, (10, 12), [50, 55]])
def test_lengths_seeds_and_types(name, length):
    make = getattr(datasets, name)
    X, y = make(200, length=length, random_state=1)
    low, high = (length, length) if isinstance(length, int) else length
    assert isinstance(X, list)
    assert len(X) == len(y) == 200
    assert {len(rows) for rows in X} == set(range(low, high + 1))
    width = 6 if name == "temporal_order" else 2
    for rows in X:
        assert rows.shape[1] == width
        assert rows.dtype == np.float64
        assert rows.flags.c_contiguous
        assert rows.flags.writeable
    again, other = (make(200, length=length, random_state=seed) for seed in (1, 2))
    np.testing.assert_array_equal(np.vstack(X), np.vstack(again[0]))
    np.testing.assert_array_equal(y, again[1])
    assert not np.array_equal(y, other[1])


@pytest.mark.parametrize("name", NUMBERS)
def test_targets_are_those_of_the_marked_numbers(name, global_random_seed):
    X, y = getattr(datasets, name)(500, length=(40, 44), random_state=global_random_seed)
    for rows, target in zip(X, y, strict=True):
        assert ((rows[:, 0] >= 0) & (rows[:, 0] < 1)).all()
        assert set(rows[:, 1]) == {0.0, 1.0}
        first, second = np.flatnonzero(rows[:, 1])  # two marks, no more
        assert first < len(rows) // 10 <= second < len(rows) // 2
        assert target == pytest.approx(NUMBERS[name](rows[first, 0], rows[second, 0]), abs=1e-15)


def test_marks_are_uniform():
    X, _ = datasets.adding(20_000, length=40, random_state=0)
    shares = np.mean([rows[:, 1] for rows in X], axis=0)
    np.testing.assert_allclose(shares[:4], 1 / 4, atol=0.015)  # five standard deviations
    np.testing.assert_allclose(shares[4:20], 1 / 16, atol=0.009)
    assert not shares[20:].any()


@pytest.mark.parametrize(
    ("name", "mean", "variance"), [("adding", 1 / 2, 1 / 24), ("multiplication", 1 / 4, 7 / 144)]
)
def test_what_the_best_constant_reaches(name, mean, variance):
    _, y = getattr(datasets, name)(100_000, length=10, random_state=0)
    assert y.mean() == pytest.approx(mean, abs=4e-3)
    assert y.var() == pytest.approx(variance, rel=0.02)
    if name == "adding":
        # half the sum of two uniform numbers has a triangular density: 1 - (1 - .08)^2
        assert np.mean(abs(y - mean) < 0.04) == pytest.approx(0.1536, abs=6e-3)


def test_products_are_of_the_same_inputs():
    added, product = (getattr(datasets, name)(20, random_state=5)[0] for name in NUMBERS)
    np.testing.assert_array_equal(np.vstack(added), np.vstack(product))


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("n_relevant", [2, 3])
@pytest.mark.parametrize("length", [10, 57, (100, 110)])
def test_temporal_order(length, n_relevant):
    X, y = datasets.temporal_order(4000, length=length, n_relevant=n_relevant, random_state=0)
    windows = (
        [(0.1, 0.2), (0.5, 0.6)] if n_relevant == 2 else [(0.1, 0.2), (0.33, 0.43), (0.66, 0.76)]
    )
    for rows, label in zip(X, y, strict=True):
        assert (rows.sum(axis=1) == 1).all()
        assert set(rows.ravel()) == {0.0, 1.0}
        places = np.flatnonzero(rows[:, 4:].any(axis=1))
        assert "".join(SYMBOLS[rows[places].argmax(axis=1)]) == label
        for place, (low, high) in zip(places, windows, strict=True):
            assert int(low * len(rows) + 1e-9) <= place < high * len(rows)
    labels, counts = np.unique(y, return_counts=True)
    assert len(labels) == 2**n_relevant
    np.testing.assert_allclose(counts / 4000, 0.5**n_relevant, atol=0.035)
    distractors = np.vstack(X)[:, :4].mean(axis=0)
    np.testing.assert_allclose(distractors, distractors.mean(), rtol=0.05)


@pytest.mark.parametrize("name", LISTS)
def test_refusals(name):
    make = getattr(datasets, name)
    for text in (make.__doc__, datasets.__doc__):
        assert "random_state" in text
    assert "Solved:" in make.__doc__
    with pytest.raises(ValueError, match="n_sequences=0 must be at least 1"):
        make(0)
    with pytest.raises(ValueError, match="length=9 must be at least 10"):
        make(2, length=9)
    with pytest.raises(ValueError, match="length=9 must be at least 10"):
        make(2, length=(9, 20))
    with pytest.raises(ValueError, match=r"length=\(20, 10\) must be \(shortest, longest\)\. Swap"):
        make(2, length=(20, 10))
    with pytest.raises(ValueError, match=r"length=\(20,\) must be a number or a pair"):
        make(2, length=(20,))
    with pytest.raises(TypeError, match="length must be an integer"):
        make(2, length=20.5)


def test_temporal_order_refuses_other_numbers_of_symbols():
    with pytest.raises(ValueError, match="n_relevant=4 must be 2 or 3"):
        datasets.temporal_order(2, n_relevant=4)


@pytest.mark.both_engines
def test_trained_networks_take_them_as_they_come():
    X, y = datasets.adding(30, length=(10, 12), random_state=0)
    network = RNNRegressor(4, target="last", max_iter=2, random_state=0)
    assert network.fit(X, y).predict(X).shape == (30,)
    X, y = datasets.temporal_order(30, length=(10, 12), random_state=0)
    labels = RNNClassifier(4, target="last", max_iter=2, random_state=0).fit(X, y).predict(X)
    assert set(labels) <= {"XX", "XY", "YX", "YY"}


# ---------------------------------------------------------------- bouncing balls


def moving(n_videos, n_balls, radius, seed):
    rng = np.random.default_rng(seed)
    places = np.stack([_placed(n_balls, radius, rng) for _ in range(n_videos)])
    angles = rng.uniform(0, 2 * np.pi, (n_videos, n_balls))
    return places, 0.05 * np.stack([np.cos(angles), np.sin(angles)], axis=-1)


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(
    ("n_balls", "radius"), [(1, 0.3), (2, 0.2), (3, 0.12), (3, 0.178), (12, 0.08)]
)
def test_energy_walls_and_no_overlap(n_balls, radius, global_random_seed):
    places, velocities = moving(10, n_balls, radius, global_random_seed)
    energy = (velocities**2).sum(axis=(1, 2))
    turned = np.zeros(10, bool)
    for _ in range(200):
        before = velocities.copy()
        _advance(places, velocities, radius)
        turned |= (before != velocities).any(axis=(1, 2))
        np.testing.assert_allclose((velocities**2).sum(axis=(1, 2)), energy, rtol=1e-11)
        assert (places > radius - 1e-12).all()
        assert (places < 1 - radius + 1e-12).all()
        distances = np.linalg.norm(places[:, :, None] - places[:, None], axis=-1)
        assert (distances + 2 * np.eye(n_balls) > 2 * radius - 1e-12).all()
    assert turned.all()


def test_two_balls_exchange_velocities_head_on():
    places = np.array([[[0.3, 0.5], [0.7, 0.5]]])
    velocities = np.array([[[0.1, 0.0], [-0.2, 0.0]]])
    _advance(places, velocities, 0.1)  # they touch after 2/3 of the frame
    np.testing.assert_allclose(velocities, [[[-0.2, 0.0], [0.1, 0.0]]], atol=1e-15)
    np.testing.assert_allclose(places, [[[0.3, 0.5], [0.6, 0.5]]], atol=1e-15)


def test_momentum_is_kept_where_balls_meet_askew():
    places = np.array([[[0.4, 0.46], [0.6, 0.54]]])
    velocities = np.array([[[0.05, 0.01], [-0.04, 0.0]]])
    momentum, before = velocities.sum(axis=1), velocities.copy()
    _advance(places, velocities, 0.1)
    assert not np.allclose(velocities, before)
    np.testing.assert_allclose(velocities.sum(axis=1), momentum, atol=1e-15)


def test_time_runs_backwards():
    places, velocities = moving(5, 3, 0.12, 0)
    start = places.copy()
    for _ in range(20):
        _advance(places, velocities, 0.12)
    assert abs(places - start).max() > 0.1
    velocities *= -1
    for _ in range(20):
        _advance(places, velocities, 0.12)
    np.testing.assert_allclose(places, start, atol=1e-8)


def test_frames_show_the_balls():
    X = datasets.bouncing_balls(20, n_frames=40, random_state=0)
    assert X.shape == (20, 40, 225)
    assert X.dtype == np.float64
    assert X.min() == 0.0
    assert X.max() == 1.0
    # a disc whose edge falls from 1 to 0 over one pixel: pi (r^2 + 1 / 12) in pixels
    assert X.mean() == pytest.approx(3 * np.pi * (0.12**2 + 1 / (12 * 15**2)), rel=5e-3)
    np.testing.assert_array_equal(X, datasets.bouncing_balls(20, n_frames=40, random_state=0))
    assert not np.array_equal(X, datasets.bouncing_balls(20, n_frames=40, random_state=1))
    fine = datasets.bouncing_balls(1, n_frames=30, size=120, n_balls=1, random_state=2)[0]
    rows, columns = np.divmod(np.arange(120**2), 120)
    centres = np.stack([fine @ columns, fine @ rows], axis=1) / fine.sum(axis=1, keepdims=True)
    moved = np.linalg.norm(np.diff(centres, axis=0), axis=1) / 120
    assert np.median(moved) == pytest.approx(0.05, rel=1e-3)
    assert moved.max() < 0.05 * 1.001  # less where it meets a wall


def test_bouncing_balls_refuse():
    make = datasets.bouncing_balls
    with pytest.raises(ValueError, match="n_videos=0 must be at least 1"):
        make(0)
    with pytest.raises(
        ValueError, match=r"n_balls=7 of radius=0.12 cover 32% .* Lower n_balls or radius"
    ):
        make(1, n_balls=7)
    with pytest.raises(ValueError, match=r"radius=0.5 must be finite and in \(0, 0.5\)"):
        make(1, radius=0.5)
    with pytest.raises(ValueError, match=r"speed=0 must be finite and in \(0, inf"):
        make(1, speed=0)

"""Videos of bouncing balls: conservation laws, reversibility, frames, errors."""

import numpy as np
import pytest

from reservoir import datasets
from reservoir.datasets._bouncing_balls import _advance, _placed


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


def test_errors_of_bouncing_balls():
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

"""Walks through a town: streets, shortest ways, recurring routes, detours."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components, dijkstra

from reservoir.datasets import street_walks


def lengths_of(walk, streets):
    return np.array([streets[a, b] for a, b in pairwise(walk)])


def test_the_town(global_random_seed):
    _, streets, places = street_walks(1, random_state=global_random_seed)
    assert streets.shape == (531, 531)
    assert places.shape == (531, 2)
    assert connected_components(streets)[0] == 1
    assert abs(streets - streets.T).max() == 0
    assert (streets.diagonal() == 0).all()
    rows, columns = streets.nonzero()
    apart = np.linalg.norm(places[rows] - places[columns], axis=1)
    np.testing.assert_allclose(streets[rows, columns], apart)
    assert 3 < len(rows) / 531 < 4.5  # as streets of towns do
    assert 40 < np.median(apart) < 120


def test_walks_are_shortest_ways_along_streets(global_random_seed):
    walks, streets, _ = street_walks(
        50, n_routes=None, detours=0.0, random_state=global_random_seed
    )
    shortest = dijkstra(streets)
    for walk in walks:
        steps = lengths_of(walk, streets)
        assert (steps > 0).all()
        assert len(walk) >= 8
        assert steps.sum() == pytest.approx(shortest[walk[0], walk[-1]])


def test_routes_come_again_and_detours_arrive(global_random_seed):
    strict = street_walks(600, n_routes=20, detours=0.0, random_state=global_random_seed)[0]
    ways = {tuple(walk) for walk in strict}
    assert 15 <= len(ways) <= 20
    walks, streets, _ = street_walks(600, n_routes=20, detours=0.3, random_state=global_random_seed)
    known = {tuple(walk) for walk in walks}
    shortest = dijkstra(streets)
    sizes = [lengths_of(walk, streets) for walk in walks]
    assert all((steps > 0).all() for steps in sizes)
    ends = {(walk[0], walk[-1]) for walk in walks}
    assert len(ends) <= 20
    longer = [
        steps.sum() > shortest[walk[0], walk[-1]] * (1 + 1e-9)
        for walk, steps in zip(walks, sizes, strict=True)
    ]
    assert 0.2 < np.mean(longer) <= 0.36
    assert len(known) > 20
    free = street_walks(200, n_routes=None, random_state=global_random_seed)[0]
    assert len({(walk[0], walk[-1]) for walk in free}) > 190


def test_seeds_and_small_towns():
    one, other = (street_walks(5, n_crossings=30, random_state=4) for _ in range(2))
    assert all((a == b).all() for a, b in zip(one[0], other[0], strict=True))
    assert abs(one[1] - other[1]).max() == 0
    assert len(one[0]) == 5
    assert any(
        len(a) != len(b) or (a != b).any()
        for a, b in zip(one[0], street_walks(5, n_crossings=30, random_state=5)[0], strict=True)
    )
    everybody = street_walks(40, n_crossings=25, n_routes=1, detours=1.0, random_state=0)[0]
    assert len({(walk[0], walk[-1]) for walk in everybody}) == 1


@pytest.mark.parametrize(
    "bad",
    [{"n_walks": 0}, {"n_crossings": 24}, {"n_routes": 0}, {"detours": -0.1}, {"detours": 1.1}],
)
def test_bad_values_raise(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        street_walks(**{"n_walks": 5, **bad})

"""Generated walks through the streets of a town, along recurring or random routes."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra, minimum_spanning_tree
from scipy.spatial import Delaunay

from reservoir._typing import Array, RandomState
from reservoir._validation import as_generator, check_count, check_number

_BLOCK = 80.0  # metres between crossings
_KEPT = 0.45  # share of the streets built in addition to the network that connects the town
_SHORTEST = 8  # least number of crossings of a walk
_TRIES = 100


def street_walks(
    n_walks: int,
    *,
    n_crossings: int = 531,
    n_routes: int | None = 60,
    detours: float = 0.1,
    random_state: RandomState = None,
) -> tuple[list[Array], sparse.csr_array, Array]:
    """Generate walks through a town; the task is to predict the next crossing of each walk.

    The town is generated, modelled on the walks of telephones through the centre of Turin in [1]_,
    which are private. Each walk takes the shortest route from one crossing to another. If
    `n_routes` is set, there are few routes, which recur like the routes of commuters; they share
    streets, and the street by which a walk leaves a crossing depends on where it came from. If
    `n_routes` is None, each walk is between two random crossings, and its destination cannot be
    known.

    Parameters
    ----------
    n_walks : int
        Number of walks.
    n_crossings : int >= 25, default=531
        Number of crossings of the town; [1]_ has 531.
    n_routes : int or None, default=60
        Number of recurring routes, which are equally frequent on average. With None routes recur
        only by chance.
    detours : float in [0, 1], default=0.1
        Share of the walks that leave the route at one crossing, by another street, and continue
        from there by the shortest route, which may lead back.
    random_state : None, int, Generator or RandomState, default=None
        Seed of the town and the walks. With None new ones are drawn at each call.

    Returns
    -------
    walks : list of ndarrays of shape (n_steps,), int
        The crossings of each walk, which are 8 or more and numbered from 0.
    streets : sparse array of shape (n_crossings, n_crossings), metres
        Symmetric matrix of the lengths of the streets between adjacent crossings.
    positions : ndarray of shape (n_crossings, 2), metres
        Positions of the crossings.

    Raises
    ------
    ValueError, TypeError
        If a parameter is outside its range.

    Notes
    -----
    Crossings are on a square grid with a spacing of 80 m, displaced at random by up to 0.3 times
    the spacing. Streets connect neighbours: they are the edges of the shortest network that
    connects all crossings, and 45 % of the edges of a Delaunay triangulation that are no longer
    than 1.6 times the spacing. All of this is our choice; the source states only the number of
    crossings.

    References
    ----------
    .. [1] A. Bay (2017), "Recurrent neural networks: methods and applications to non-linear
       predictions", PhD thesis, Politecnico di Torino, section 6.2.

    Examples
    --------
    >>> from reservoir.datasets import street_walks
    >>> walks, streets, positions = street_walks(200, random_state=0)
    >>> len(walks), streets.shape
    (200, (531, 531))
    >>> all(streets[a, b] > 0 for a, b in zip(walks[0][:-1], walks[0][1:]))
    True
    """
    n_crossings = check_count("n_crossings", n_crossings, minimum=25)
    check_count("n_crossings", n_crossings, size=n_crossings)
    n_walks = check_count("n_walks", n_walks, size=4)
    if n_routes is not None:
        n_routes = check_count("n_routes", n_routes, size=2)
    detours = check_number("detours", detours, low=0, high=1)
    rng = as_generator(random_state)
    places, streets = _town(n_crossings, rng)
    from_here = dijkstra(streets, return_predecessors=True)[1]
    routes = [_ends(from_here, rng) for _ in range(n_routes or 0)]
    walks = []
    for _ in range(n_walks):
        first, last = routes[rng.integers(len(routes))] if routes else _ends(from_here, rng)
        way = _way(from_here, first, last)
        walks.append(_with_detour(way, streets, from_here, rng) if rng.random() < detours else way)
    return walks, streets, places


def _town(n_crossings: int, rng: np.random.Generator) -> tuple[Array, sparse.csr_array]:
    """Return the positions of the crossings, and the streets between them."""
    side = int(np.ceil(np.sqrt(n_crossings)))
    grid = np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1).reshape(-1, 2)
    shift = rng.uniform(-0.3, 0.3, (n_crossings, 2))
    places = _BLOCK * (grid[:n_crossings] + shift)
    corners = Delaunay(places).simplices
    sides = np.unique(np.sort(corners[:, [[0, 1], [1, 2], [0, 2]]].reshape(-1, 2), axis=1), axis=0)
    lengths = np.linalg.norm(places[sides[:, 0]] - places[sides[:, 1]], axis=1)
    shape = n_crossings, n_crossings
    tree = minimum_spanning_tree(sparse.csr_array((lengths, tuple(sides.T)), shape=shape))
    built = (lengths <= 1.6 * _BLOCK) & (rng.random(len(sides)) < _KEPT)
    others = sparse.csr_array((lengths[built], tuple(sides[built].T)), shape=shape)
    one_way = sparse.csr_array(tree).maximum(others)
    return places, sparse.csr_array(one_way.maximum(one_way.T))


def _ends(from_here: Array, rng: np.random.Generator) -> tuple[int, int]:
    """Return two random crossings that are far enough apart, or the farthest of those drawn."""
    best, longest = (0, 0), 0
    for _ in range(_TRIES):
        first, last = (int(end) for end in rng.integers(len(from_here), size=2))
        n_steps = len(_way(from_here, first, last))
        if n_steps > longest:
            best, longest = (first, last), n_steps
        if n_steps >= _SHORTEST:
            break
    return best


def _way(from_here: Array, first: int, last: int) -> Array:
    """Return the crossings of the shortest route from `first` to `last`."""
    way = [last]
    while way[-1] != first:
        way.append(int(from_here[first, way[-1]]))
    return np.array(way[::-1])


def _with_detour(
    way: Array, streets: sparse.csr_array, from_here: Array, rng: np.random.Generator
) -> Array:
    """Return a route that leaves `way` at one crossing; `way` itself if that is not possible."""
    turns = rng.permutation(len(way) - 2) + 1
    for turn in turns:
        here = streets.indices[streets.indptr[way[turn]] : streets.indptr[way[turn] + 1]]
        others = np.setdiff1d(here, way)
        if len(others):
            aside = int(rng.choice(others))
            return np.concatenate([way[: turn + 1], _way(from_here, aside, int(way[-1]))])
    return way

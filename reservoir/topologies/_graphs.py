"""Random topologies with structure: small-world, scale-free and clustered graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array, RandomState
from reservoir._validation import as_generator, check_count, check_number
from reservoir._weights import distinct_columns, draw, fill_distinct, resolve_degree
from reservoir.topologies._connections import from_columns, from_entries, room_for_connections


def small_world(
    n_units: int,
    *,
    in_degree: float = 10,
    rewiring: float = 0.1,
    weights: Any = "normal",
    random_state: RandomState = None,
) -> sp.csr_array:
    """Generate a directed small-world graph: neighbours on a circle, some connections rewired.

    Every unit first receives from its `in_degree` nearest units on a circle (if
    `in_degree` is odd, one more of them is before the unit than after it). Then, with probability
    `rewiring`, the source of each connection is replaced by a unit drawn at random from all units
    except the unit itself and its other sources.

    Parameters
    ----------
    n_units : int
        Number of units.
    in_degree : int or float in (0, 1], default=10
        Exact number of connections per row, as in `random_sparse`; at most ``n_units - 1``,
        because no unit receives from itself.
    rewiring : float in [0, 1], default=0.1
        Probability that a connection is rewired. At about 0.1 paths are short, while neighbours are
        still clustered.
    weights : {"normal", "uniform", "bernoulli"} or a frozen scipy.stats distribution
        N(0, 1), U(-1, 1), or -1 and +1 with equal probability; default "normal".
    random_state : None, int, Generator or RandomState, default=None
        Seed.

    Returns
    -------
    csr_array of shape (n_units, n_units)

    References
    ----------
    .. [1] Watts, D. J. and Strogatz, S. H. (1998). Collective dynamics of 'small-world'
       networks. Nature 393, 440-442.

    Examples
    --------
    >>> abs(small_world(5, in_degree=2, rewiring=0.0, weights="bernoulli")).toarray()
    array([[0., 1., 0., 0., 1.],
           [1., 0., 1., 0., 0.],
           [0., 1., 0., 1., 0.],
           [0., 0., 1., 0., 1.],
           [1., 0., 0., 1., 0.]])
    """
    n_units = check_count("n_units", n_units, size=1.5)
    degree = min(resolve_degree("in_degree", in_degree, n_units), n_units - 1)
    rewiring = check_number("rewiring", rewiring, low=0.0, high=1.0)
    places, values = as_generator(random_state).spawn(2)
    # sources as distances from the unit, from 1 to n_units - 1, which exclude self-connections
    distance = np.arange(1, degree + 1)
    nearest = np.where(distance % 2, -(distance // 2 + 1), distance // 2) % max(n_units, 1)
    with room_for_connections(n_units, degree):
        steps = np.tile(nearest, (n_units, 1))
        # rewire some connections, and convert distances to columns
        kept = places.random(steps.shape) >= rewiring
        columns = (_rewire(steps, kept, n_units, places) + np.arange(n_units)[:, None]) % n_units
        columns.sort(axis=1)
        return from_columns(columns.astype(np.int32), draw(weights, columns.size, values))


def _rewire(steps: Array, kept: Array, n_units: int, generator: np.random.Generator) -> Array:
    """Replace the entries of `steps` that are not `kept` by random entries, distinct within rows.

    `steps` and `kept` have shape (n_units, degree); steps are distances from 1 to n_units - 1.
    """
    n_rows, degree = steps.shape
    if 8 * degree <= n_units - 1:
        drawn = generator.integers(0, n_units - 1, steps.shape)
        return fill_distinct(np.where(kept, steps - 1, drawn), kept, n_units - 1, generator) + 1
    out = np.empty((n_rows, degree), dtype=np.int64)
    for row in range(n_rows):  # many connections per row: the kept ones, then by random keys
        keys = generator.random(n_units - 1)
        keys[steps[row, kept[row]] - 1] = -1.0
        out[row] = np.argpartition(keys, degree - 1)[:degree] + 1 if degree else 0
    return out


def scale_free(
    n_units: int,
    *,
    in_degree: float = 10,
    weights: Any = "normal",
    random_state: RandomState = None,
) -> sp.csr_array:
    """Generate a scale-free graph by preferential attachment: few hubs, many units with few links.

    Units are added one after another. Each gets ``m = round(in_degree / 2)`` links to earlier
    units, which are chosen with a probability proportional to their number of links. (m is at
    least 1; Python rounds halves to even, so m is 2 for in-degrees 3, 4 and 5.) A link is a
    connection in both directions, with two independent weights. A pair that is drawn twice is
    linked only once, so the mean number of connections per row is slightly below 2 m. The numbers
    of connections follow a power law with exponent 3, and the graph is connected.

    Parameters
    ----------
    n_units : int
        Number of units.
    in_degree : int or float in (0, 1], default=10
        *Mean* number of connections per row, as an integer or a density (see `random_sparse`).
    weights : {"normal", "uniform", "bernoulli"} or a frozen scipy.stats distribution
        N(0, 1), U(-1, 1), or -1 and +1 with equal probability; default "normal".
    random_state : None, int, Generator or RandomState, default=None
        Seed.

    Returns
    -------
    csr_array of shape (n_units, n_units)
        The sparsity pattern is symmetric, but the weights are not.

    References
    ----------
    .. [1] Barabasi, A.-L. and Albert, R. (1999). Emergence of scaling in random networks.
       Science 286, 509-512.
    .. [2] Batagelj, V. and Brandes, U. (2005). Efficient generation of large random networks.
       Physical Review E 71, 036113. Algorithm 5, with its references resolved by doubling.

    Examples
    --------
    >>> scale_free(5, in_degree=2, weights="bernoulli", random_state=0).toarray()
    array([[ 0.,  1.,  1., -1.,  0.],
           [-1.,  0.,  0.,  0., -1.],
           [ 1.,  0.,  0.,  0.,  0.],
           [-1.,  0.,  0.,  0.,  0.],
           [ 0., -1.,  0.,  0.,  0.]])
    """
    n_units = check_count("n_units", n_units, size=1.5)
    n_links = max(1, round(resolve_degree("in_degree", in_degree, n_units) / 2))
    places, values = as_generator(random_state).spawn(2)
    with room_for_connections(n_units, 2 * n_links):
        # links in both directions, without the links of unit 0 to itself and without repetitions
        unit, other = _attach(n_units, n_links, places)
        apart = unit != other
        rows = np.concatenate([unit[apart], other[apart]])
        columns = np.concatenate([other[apart], unit[apart]])
        keys = np.unique(rows * n_units + columns)
        drawn = draw(weights, keys.size, values)
        return from_entries(n_units, keys // n_units, keys % n_units, drawn)


def _attach(n_units: int, n_links: int, generator: np.random.Generator) -> tuple[Array, Array]:
    """Return both ends of every link of a preferential attachment graph.

    The result is two arrays of shape (n_units n_links,): the unit that is added, and the earlier
    unit to which it is linked. Unit 0, from which the graph grows, has links only to itself, which
    the caller drops.
    """
    # The ends of link k are entries 2 k and 2 k + 1 of a list. The first is unit k // n_links. The
    # second is a copy of a random entry among those of earlier units. Every unit occurs in the list
    # as often as it has links, so the choice is proportional to the degree. An entry at an odd
    # position is itself a copy, so pointers are followed until all are at even positions.
    unit = np.arange(n_units * n_links) // n_links
    pointer = np.arange(2 * unit.size)
    pointer[1 : 2 * n_links : 2] = 0
    pointer[2 * n_links + 1 :: 2] = generator.integers(0, 2 * n_links * unit[n_links:])
    while True:
        onward = pointer[pointer]
        if np.array_equal(onward, pointer):
            return unit, pointer[1::2] // 2 // n_links
        pointer = onward


def cluster_labels(n_units: int, n_clusters: int) -> Array:
    """Return the cluster that each unit belongs to in a reservoir made by `clustered`.

    Parameters
    ----------
    n_units : int
        Number of units.
    n_clusters : int
        Number of clusters, at most `n_units`. A cluster consists of consecutive units; the sizes of
        clusters differ by at most one.

    Returns
    -------
    ndarray of shape (n_units,), int
        Labels 0 to ``n_clusters - 1``, ascending.

    Raises
    ------
    ValueError
        If there are more clusters than units.

    Examples
    --------
    >>> cluster_labels(7, 3)
    array([0, 0, 0, 1, 1, 2, 2])
    """
    n_units = check_count("n_units", n_units, size=1.5)
    n_clusters = check_count("n_clusters", n_clusters)
    if n_clusters > n_units:
        raise ValueError(
            f"n_clusters={n_clusters} must be at most n_units={n_units}. Lower n_clusters."
        )
    return np.arange(n_units) * n_clusters // n_units


def clustered(
    n_units: int,
    *,
    n_clusters: int = 4,
    in_degree: float = 10,
    between_degree: int = 1,
    weights: Any = "normal",
    random_state: RandomState = None,
) -> sp.csr_array:
    """Generate densely connected clusters with few connections between them.

    Parameters
    ----------
    n_units : int
        Number of units.
    n_clusters : int, default=4
        Number of clusters of consecutive units (see `cluster_labels`); capped at `n_units`.
    in_degree : int or float in (0, 1], default=10
        Exact number of connections per row from the unit's own cluster: an integer, capped at the
        size of the cluster, or a density within the cluster.
    between_degree : int, default=1
        Exact number of connections per row from all other clusters together, capped at their total
        size. With 0 the clusters are separate.
    weights : {"normal", "uniform", "bernoulli"} or a frozen scipy.stats distribution
        N(0, 1), U(-1, 1), or -1 and +1 with equal probability; default "normal".
    random_state : None, int, Generator or RandomState, default=None
        Seed.

    Returns
    -------
    csr_array of shape (n_units, n_units)

    See Also
    --------
    reservoir.scaling.scale_blocks : Scale each cluster to a separate spectral radius.

    References
    ----------
    .. [1] Deng, Z. and Zhang, Y. (2007). Collective behavior of a small-world recurrent neural
       system with scale-free distribution. IEEE Transactions on Neural Networks 18(5),
       1364-1375.

    Examples
    --------
    >>> clustered(6, n_clusters=2, in_degree=1.0, between_degree=0, weights="bernoulli",
    ...           random_state=0).toarray()
    array([[ 1.,  1., -1.,  0.,  0.,  0.],
           [-1., -1.,  1.,  0.,  0.,  0.],
           [-1., -1., -1.,  0.,  0.,  0.],
           [ 0.,  0.,  0.,  1.,  1.,  1.],
           [ 0.,  0.,  0.,  1.,  1.,  1.],
           [ 0.,  0.,  0.,  1.,  1., -1.]])
    """
    n_units = check_count("n_units", n_units, size=1.5)
    n_clusters = min(check_count("n_clusters", n_clusters), n_units)
    between_degree = check_count("between_degree", between_degree, minimum=0)
    resolve_degree("in_degree", in_degree, n_units)  # raise before any work is done
    places, values = as_generator(random_state).spawn(2)
    most = resolve_degree("in_degree", in_degree, -(-n_units // n_clusters)) + between_degree
    with room_for_connections(n_units, min(most, n_units)):
        # each cluster draws the sources of its own connections, then those in all other clusters
        sizes = np.bincount(cluster_labels(n_units, n_clusters))
        rows, columns = [], []
        starts = np.cumsum(sizes) - sizes
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
            members = np.arange(start, start + size)
            own = distinct_columns(size, size, resolve_degree("in_degree", in_degree, size), places)
            n_others = n_units - size
            others = distinct_columns(size, n_others, min(between_degree, n_others), places)
            others = others + np.where(others >= start, size, 0)  # skip the units of this cluster
            for block in (own + start, others):
                rows.append(np.repeat(members, block.shape[1]))
                columns.append(block.ravel())
        row, column = np.concatenate(rows), np.concatenate(columns)
        return from_entries(n_units, row, column, draw(weights, row.size, values))

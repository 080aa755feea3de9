"""Random topologies without clusters, hubs or other structure of a network."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array, RandomState
from reservoir._validation import as_generator, check_count, check_number, room_for
from reservoir._weights import distinct_columns, draw, resolve_degree
from reservoir.topologies._pieces import from_columns, from_entries, room_for_connections


def random_sparse(
    n_units: int,
    *,
    in_degree: float = 10,
    weights: Any = "normal",
    random_state: RandomState = None,
) -> sp.csr_array:
    """Every unit receives from `in_degree` different units, chosen at random.

    The number of connections per row is exact, so that all units receive equally many inputs and
    all rows of W are equally long. A unit may receive from itself.

    Parameters
    ----------
    n_units : int
        Number of units.
    in_degree : int or float in (0, 1], default=10
        An integer is the number of connections per row, capped at `n_units`; a real number is a
        density: ``max(1, round(in_degree * n_units))`` per row. So 1 is not 1.0. Ten is as good
        as more in practice and makes the cost of a step proportional to `n_units`.
    weights : {"normal", "uniform", "bernoulli"} or a frozen scipy.stats distribution
        N(0, 1), U(-1, 1), or -1 and +1 with equal probability; default "normal". The connections
        do not depend on it.
    random_state : None, int, Generator or RandomState, default=None
        Seed.

    Returns
    -------
    csr_array of shape (n_units, n_units)
        Unscaled; sorted int32 indices.

    Raises
    ------
    TypeError, ValueError
        If `in_degree` is a boolean, not positive, or a real number above 1; or if the weights'
        law is not known or gives NaN or infinity.

    References
    ----------
    .. [1] Jaeger, H. (2001). The "echo state" approach to analysing and training recurrent
       neural networks. GMD Report 148.

    Examples
    --------
    >>> random_sparse(5, in_degree=2, weights="bernoulli", random_state=0).toarray()
    array([[ 0.,  1.,  0.,  1.,  0.],
           [ 0., -1.,  0., -1.,  0.],
           [ 0., -1.,  0.,  0.,  1.],
           [ 0.,  0., -1., -1.,  0.],
           [-1.,  0.,  0.,  0.,  1.]])
    """
    n_units = check_count("n_units", n_units)
    degree = resolve_degree("in_degree", in_degree, n_units)
    # two streams of random numbers, so that the law of the weights does not change the connections
    places, values = as_generator(random_state).spawn(2)
    with room_for_connections(n_units, degree):
        columns = distinct_columns(n_units, n_units, degree, places)
        return from_columns(columns, draw(weights, n_units * degree, values))


def permutation(
    n_units: int, *, weight: float = 1.0, random_state: RandomState = None
) -> sp.csr_array:
    """Random permutation matrix: every unit receives from one unit and sends to one.

    Its eigenvalues lie on a circle of radius ``abs(weight)``; it consists of about
    ``log(n_units)`` separate cycles.

    Parameters
    ----------
    n_units : int
        Number of units.
    weight : float, default=1.0
        Weight of every connection.
    random_state : None, int, Generator or RandomState, default=None
        Seed.

    Returns
    -------
    csr_array of shape (n_units, n_units)

    References
    ----------
    .. [1] Boedecker, J., Obst, O., Mayer, N. M. and Asada, M. (2009). Initialization and
       self-organized optimization of recurrent neural network connectivity. HFSP Journal 3(5),
       340-349.

    Examples
    --------
    >>> permutation(5, random_state=0).toarray()
    array([[0., 0., 1., 0., 0.],
           [0., 0., 0., 0., 1.],
           [0., 0., 0., 1., 0.],
           [1., 0., 0., 0., 0.],
           [0., 1., 0., 0., 0.]])
    """
    n_units = check_count("n_units", n_units)
    weight = check_number("weight", weight)
    sources = as_generator(random_state).permutation(n_units)
    return from_columns(sources[:, None], np.full(n_units, weight))


def orthogonal(n_units: int, *, random_state: RandomState = None) -> Array:
    """Random orthogonal matrix, uniform (Haar) on the orthogonal group.

    All its singular values are 1, and all its eigenvalues lie on the unit circle.

    Parameters
    ----------
    n_units : int
        Number of units. The matrix is dense: 8 bytes times `n_units` squared.
    random_state : None, int, Generator or RandomState, default=None
        Seed.

    Returns
    -------
    ndarray of shape (n_units, n_units)

    References
    ----------
    .. [1] Mezzadri, F. (2007). How to generate random matrices from the classical compact
       groups. Notices of the AMS 54(5), 592-604.

    Examples
    --------
    >>> import numpy as np
    >>> W = orthogonal(5, random_state=0)
    >>> bool(np.allclose(W @ W.T, np.eye(5)))
    True
    """
    n_units = check_count("n_units", n_units)
    what = f"Matrices of n_units x n_units = {n_units} x {n_units} numbers, 3 at a time,"
    with room_for(what, 24.0 * n_units**2, "Use fewer units, or a sparse topology."):
        normal = as_generator(random_state).standard_normal((n_units, n_units))
        Q, R = np.linalg.qr(normal)
        # QR is unique only up to signs: without them Q is not uniform [1]_
        return Q * np.where(np.diag(R) < 0, -1.0, 1.0)


def band(
    n_units: int,
    *,
    lower: int = 2,
    upper: int = 2,
    weights: Any = "normal",
    random_state: RandomState = None,
) -> sp.csr_array:
    """Every unit receives from its neighbours on a line and itself, with random weights.

    Parameters
    ----------
    n_units : int
        Number of units.
    lower, upper : int, default=2
        Unit i receives from units ``i - lower`` to ``i + upper``.
    weights : {"normal", "uniform", "bernoulli"} or a frozen scipy.stats distribution
        N(0, 1), U(-1, 1), or -1 and +1 with equal probability; default "normal".
    random_state : None, int, Generator or RandomState, default=None
        Seed.

    Returns
    -------
    csr_array of shape (n_units, n_units)

    See Also
    --------
    toeplitz : a band with constant diagonals.

    Examples
    --------
    >>> band(5, lower=1, upper=0, weights="bernoulli", random_state=0).toarray()
    array([[ 1.,  0.,  0.,  0.,  0.],
           [ 1.,  1.,  0.,  0.,  0.],
           [ 0., -1., -1.,  0.,  0.],
           [ 0.,  0., -1., -1.,  0.],
           [ 0.,  0.,  0., -1., -1.]])
    """
    n_units = check_count("n_units", n_units)
    lower = min(check_count("lower", lower, minimum=0), n_units - 1)
    upper = min(check_count("upper", upper, minimum=0), n_units - 1)
    # the columns of every row's band, cut off at the ends of the line
    with room_for_connections(n_units, lower + upper + 1):
        rows = np.repeat(np.arange(n_units), lower + upper + 1)
        columns = rows + np.tile(np.arange(-lower, upper + 1), n_units)
        inside = (columns >= 0) & (columns < n_units)
        rows, columns = rows[inside], columns[inside]
        values = draw(weights, rows.size, as_generator(random_state))
        return from_entries(n_units, rows, columns, values)

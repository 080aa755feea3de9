"""Random topologies without further structure, and building blocks for other topologies.

Most building blocks take a matrix and return a new one. All other topologies are composed of these
functions.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array, RandomState
from reservoir._validation import as_generator, check_count, check_number, check_real, room_for
from reservoir._weights import distinct_columns, draw, resolve_degree


def random_sparse(
    n_units: int,
    *,
    in_degree: float = 10,
    weights: Any = "normal",
    random_state: RandomState = None,
) -> sp.csr_array:
    """Generate a random sparse matrix: every unit receives from `in_degree` different units.

    The number of connections per row is exact, so that all units receive the same number of inputs.
    A unit may receive from itself.

    Parameters
    ----------
    n_units : int
        Number of units.
    in_degree : int or float in (0, 1], default=10
        An integer is the number of connections per row, capped at `n_units`; a real number is a
        density, with ``max(1, round(in_degree * n_units))`` connections per row. So 1 differs from
        1.0. In practice 10 connections are as good as more, and the cost of a step is then
        proportional to `n_units`.
    weights : {"normal", "uniform", "bernoulli"} or a frozen scipy.stats distribution
        N(0, 1), U(-1, 1), or -1 and +1 with equal probability; default "normal". The connections
        do not depend on this choice.
    random_state : None, int, Generator or RandomState, default=None
        Seed.

    Returns
    -------
    csr_array of shape (n_units, n_units)
        Unscaled weights, with sorted int32 indices.

    Raises
    ------
    TypeError, ValueError
        If `in_degree` is a boolean, not positive, or a real number above 1; or if the law of the
        weights is not known or returns NaN or infinity.

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
    n_units = check_count("n_units", n_units, size=1.5)
    degree = resolve_degree("in_degree", in_degree, n_units)
    # two streams of random numbers, so that the law of the weights does not change the connections
    places, values = as_generator(random_state).spawn(2)
    with room_for_connections(n_units, degree):
        columns = distinct_columns(n_units, n_units, degree, places)
        return from_columns(columns, draw(weights, n_units * degree, values))


def diagonals(
    n_units: int,
    n_diagonals: int = 10,
    *,
    weights: Any = "normal",
    random_state: RandomState = None,
) -> sp.csr_array:
    """Generate a matrix of a few diagonals at random offsets.

    Unit i receives from the units ``(i + offset) % n_units``; the offsets are the same for all
    units. So the states that a diagonal multiplies are contiguous in memory, which makes compiled
    steps faster than with as many connections at random places.

    Parameters
    ----------
    n_units : int
        Number of units.
    n_diagonals : int, default=10
        Number of diagonals, which is the number of connections per row; capped at
        ``n_units - 1``, because no unit receives from itself, but a single one does. Estimators set
        it to their `in_degree`, which must then be an integer.
    weights : {"normal", "uniform", "bernoulli"} or a frozen scipy.stats distribution
        N(0, 1), U(-1, 1), or -1 and +1 with equal probability; default "normal". The offsets do not
        depend on this choice.
    random_state : None, int, Generator or RandomState, default=None
        Seed.

    Returns
    -------
    csr_array of shape (n_units, n_units)
        Unscaled weights, with sorted indices.

    Raises
    ------
    TypeError, ValueError
        If `n_diagonals` is not a positive integer; or if the law of the weights is not known or
        returns NaN or infinity.

    See Also
    --------
    random_sparse : As many connections, at other places in each row.
    band : The diagonals next to the main one.
    toeplitz : One weight per diagonal.

    Examples
    --------
    >>> diagonals(5, 2, weights="bernoulli", random_state=0).toarray()
    array([[ 0.,  1.,  1.,  0.,  0.],
           [ 0.,  0., -1., -1.,  0.],
           [ 0.,  0.,  0., -1.,  1.],
           [-1.,  0.,  0.,  0., -1.],
           [-1.,  1.,  0.,  0.,  0.]])
    """
    n_units = check_count("n_units", n_units, size=1.5)
    n_diagonals = min(check_count("n_diagonals", n_diagonals), max(n_units - 1, 1))
    # two streams of random numbers, so that the law of the weights does not change the offsets
    places, values = as_generator(random_state).spawn(2)
    with room_for_connections(n_units, n_diagonals):
        offsets = 1 + places.permutation(max(n_units - 1, 1))[:n_diagonals]
        columns = (np.arange(n_units)[:, None] + offsets) % n_units
        columns.sort(axis=1)
        return from_columns(columns, draw(weights, n_units * n_diagonals, values))


def permutation(
    n_units: int, *, weight: float = 1.0, random_state: RandomState = None
) -> sp.csr_array:
    """Generate a random permutation matrix: every unit receives from one unit and sends to one.

    Its eigenvalues are on a circle of radius ``abs(weight)``; it consists of about
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
    n_units = check_count("n_units", n_units, size=1.5)
    weight = check_number("weight", weight)
    sources = as_generator(random_state).permutation(n_units)
    return from_columns(sources[:, None], np.full(n_units, weight))


def orthogonal(n_units: int, *, random_state: RandomState = None) -> Array:
    """Generate a random orthogonal matrix, uniform (Haar) on the orthogonal group.

    All its singular values are 1, and all its eigenvalues are on the unit circle.

    Parameters
    ----------
    n_units : int
        Number of units. The matrix is dense and takes ``8 * n_units**2`` bytes.
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
    n_units = check_count("n_units", n_units, size=1.5)
    what = f"Matrices of n_units x n_units = {n_units} x {n_units} numbers, 3 at a time,"
    with room_for(what, 24.0 * n_units**2, "Use fewer units, or a sparse topology."):
        normal = as_generator(random_state).standard_normal((n_units, n_units))
        Q, R = np.linalg.qr(normal)
        # QR is unique only up to signs: without this correction Q is not uniform [1]_
        return Q * np.where(np.diag(R) < 0, -1.0, 1.0)


def band(
    n_units: int,
    *,
    lower: int = 2,
    upper: int = 2,
    weights: Any = "normal",
    random_state: RandomState = None,
) -> sp.csr_array:
    """Generate a random band matrix: units receive from their neighbours on a line and themselves.

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
    toeplitz : A band matrix with constant diagonals.

    Examples
    --------
    >>> band(5, lower=1, upper=0, weights="bernoulli", random_state=0).toarray()
    array([[ 1.,  0.,  0.,  0.,  0.],
           [ 1.,  1.,  0.,  0.,  0.],
           [ 0., -1., -1.,  0.,  0.],
           [ 0.,  0., -1., -1.,  0.],
           [ 0.,  0.,  0., -1., -1.]])
    """
    n_units = check_count("n_units", n_units, size=1.5)
    lower = min(check_count("lower", lower, minimum=0), n_units - 1)
    upper = min(check_count("upper", upper, minimum=0), n_units - 1)
    # the columns of the band in each row, without columns beyond the ends of the line
    with room_for_connections(n_units, lower + upper + 1):
        rows = np.repeat(np.arange(n_units), lower + upper + 1)
        columns = rows + np.tile(np.arange(-lower, upper + 1), n_units)
        inside = (columns >= 0) & (columns < n_units)
        rows, columns = rows[inside], columns[inside]
        values = draw(weights, rows.size, as_generator(random_state))
        return from_entries(n_units, rows, columns, values)


def cycle(n_units: int, *, weight: float = 1.0, step: int = 1) -> sp.csr_array:
    """Connect every unit to the unit `step` positions before it, around a circle.

    Parameters
    ----------
    n_units : int
        Number of units.
    weight : float, default=1.0
        Weight of every connection.
    step : int, default=1
        Unit i receives from unit ``(i - step) % n_units``; -1 is the backward cycle.

    Returns
    -------
    csr_array of shape (n_units, n_units)

    Examples
    --------
    >>> cycle(4, step=-1).toarray()
    array([[0., 1., 0., 0.],
           [0., 0., 1., 0.],
           [0., 0., 0., 1.],
           [1., 0., 0., 0.]])
    """
    n_units = check_count("n_units", n_units, size=1.5)
    weight = check_number("weight", weight)
    units = np.arange(n_units)
    return from_columns(((units - step) % n_units)[:, None], np.full(n_units, weight))


def add_diagonal(W: Any, *, offset: int, weight: float = 1.0) -> sp.csr_array:
    """Set all entries ``W[i, i + offset]`` of one diagonal to the same weight.

    Parameters
    ----------
    W : array_like or sparse array of shape (n_units, n_units)
        Recurrent weights; not changed.
    offset : int
        Offset of the diagonal. With -1 each unit receives from the unit before it, with +1 from the
        unit after it, with 0 from itself. An offset outside the matrix has no effect.
    weight : float, default=1.0
        The value of the entries.

    Returns
    -------
    csr_array of shape (n_units, n_units)

    Examples
    --------
    >>> import numpy as np
    >>> add_diagonal(np.zeros((3, 3)), offset=-1, weight=0.5).toarray()
    array([[0. , 0. , 0. ],
           [0.5, 0. , 0. ],
           [0. , 0.5, 0. ]])
    """
    weight = check_number("weight", weight)
    n_units, rows, columns, values = _entries(W)
    new = np.arange(max(0, -offset), max(max(0, -offset), min(n_units, n_units - offset)))
    return from_entries(
        n_units,
        np.concatenate([rows, new]),
        np.concatenate([columns, new + offset]),
        np.concatenate([values, np.full(new.size, weight)]),
    )


def add_self_loops(W: Any, *, weight: float = 1.0) -> sp.csr_array:
    """Connect every unit to itself with the same weight, by setting the diagonal of `W`.

    Parameters
    ----------
    W : array_like or sparse array of shape (n_units, n_units)
        Recurrent weights; not changed.
    weight : float, default=1.0
        The value of the diagonal.

    Returns
    -------
    csr_array of shape (n_units, n_units)

    Examples
    --------
    >>> add_self_loops(cycle(3), weight=0.5).toarray()
    array([[0.5, 0. , 1. ],
           [1. , 0.5, 0. ],
           [0. , 1. , 0.5]])
    """
    return add_diagonal(W, offset=0, weight=weight)


def add_jumps(W: Any, *, jump_size: int = 3, weight: float = 1.0) -> sp.csr_array:
    """Add connections in both directions between units `jump_size` apart.

    The jumps start at units 0, `jump_size`, 2 `jump_size`, ... If `jump_size` divides `n_units`,
    the last jump leads back to unit 0. Jumps beyond the last unit are omitted; so are jumps from a
    unit to itself, which occur if `jump_size` equals `n_units`.

    Parameters
    ----------
    W : array_like or sparse array of shape (n_units, n_units)
        Recurrent weights; not changed.
    jump_size : int, default=3
        Number of units from the start to the end of a jump; at least 2.
    weight : float, default=1.0
        Weight of the jumps, in both directions.

    Returns
    -------
    csr_array of shape (n_units, n_units)

    References
    ----------
    .. [1] Rodan, A. and Tino, P. (2012). Simple deterministically constructed cycle reservoirs
       with regular jumps. Neural Computation 24(7), 1822-1852.

    Examples
    --------
    >>> import numpy as np
    >>> add_jumps(np.zeros((5, 5)), jump_size=2).toarray()
    array([[0., 0., 1., 0., 0.],
           [0., 0., 0., 0., 0.],
           [1., 0., 0., 0., 1.],
           [0., 0., 0., 0., 0.],
           [0., 0., 1., 0., 0.]])
    """
    jump_size = check_count("jump_size", jump_size, minimum=2)
    weight = check_number("weight", weight)
    n_units, rows, columns, values = _entries(W)
    # the first and last units of jumps, without jumps from a unit to itself
    start = np.arange(n_units // jump_size) * jump_size
    end = (start + jump_size) % n_units
    start, end = start[start != end], end[start != end]
    return from_entries(
        n_units,
        np.concatenate([rows, start, end]),
        np.concatenate([columns, end, start]),
        np.concatenate([values, np.full(2 * start.size, weight)]),
    )


def with_weights(W: Any, weights: Any, *, random_state: RandomState = None) -> sp.csr_array:
    """Keep the connections of `W` and draw new weights for them.

    Parameters
    ----------
    W : array_like or sparse array of shape (n_units, n_units)
        Matrix whose stored entries (if it is an array, non-zero entries) are the connections; not
        changed.
    weights : {"normal", "uniform", "bernoulli"} or a frozen scipy.stats distribution
        N(0, 1), U(-1, 1), or -1 and +1 with equal probability.
    random_state : None, int, Generator or RandomState, default=None
        Seed.

    Returns
    -------
    csr_array of shape (n_units, n_units)

    Examples
    --------
    >>> with_weights(cycle(3), "bernoulli", random_state=1).toarray()
    array([[ 0.,  0., -1.],
           [ 1.,  0.,  0.],
           [ 0.,  1.,  0.]])
    """
    matrix = _square(W)
    matrix.data = draw(weights, matrix.nnz, as_generator(random_state))
    return matrix


def with_signs(W: Any, *, positive: float = 0.5, random_state: RandomState = None) -> sp.csr_array:
    """Keep the magnitudes of `W` and draw a sign for each connection.

    Parameters
    ----------
    W : array_like or sparse array of shape (n_units, n_units)
        Recurrent weights; not changed.
    positive : float in [0, 1], default=0.5
        Probability of a positive sign; with 0.5 the mean weight is zero.
    random_state : None, int, Generator or RandomState, default=None
        Seed.

    Returns
    -------
    csr_array of shape (n_units, n_units)

    Examples
    --------
    >>> with_signs(cycle(3), positive=0.0).toarray()
    array([[ 0.,  0., -1.],
           [-1.,  0.,  0.],
           [ 0., -1.,  0.]])
    """
    positive = check_number("positive", positive, low=0.0, high=1.0)
    matrix = _square(W)
    signs = np.where(as_generator(random_state).random(matrix.nnz) < positive, 1.0, -1.0)
    matrix.data = signs * np.abs(matrix.data)
    return matrix


def dale(W: Any, *, excitatory: float = 0.8, random_state: RandomState = None) -> sp.csr_array:
    """Set the same sign for all connections from a unit (Dale's principle).

    Parameters
    ----------
    W : array_like or sparse array of shape (n_units, n_units)
        Recurrent weights; not changed. The magnitudes are kept.
    excitatory : float in [0, 1], default=0.8
        Fraction of the units whose outgoing weights are positive: ``round(excitatory * n_units)``
        units, chosen at random. Four in five is the usual figure for cortex.
    random_state : None, int, Generator or RandomState, default=None
        Seed.

    Returns
    -------
    csr_array of shape (n_units, n_units)
        All entries of column j, the outgoing weights of unit j, have the same sign.

    Examples
    --------
    >>> W = [[1.0, -2.0, 3.0], [-4.0, 5.0, -6.0], [7.0, -8.0, 9.0]]
    >>> dale(W, excitatory=0.7, random_state=0).toarray()
    array([[ 1., -2.,  3.],
           [ 4., -5.,  6.],
           [ 7., -8.,  9.]])
    """
    excitatory = check_number("excitatory", excitatory, low=0.0, high=1.0)
    matrix = _square(W)
    n_units = matrix.shape[0]
    signs = np.full(n_units, -1.0)
    chosen = as_generator(random_state).permutation(n_units)[: round(excitatory * n_units)]
    signs[chosen] = 1.0
    matrix.data = np.abs(matrix.data) * signs[matrix.indices]
    return matrix


def from_entries(n_units: int, rows: Array, columns: Array, values: Array) -> sp.csr_array:
    """Return a csr_array of shape (n_units, n_units), given row, column and value of each entry.

    If there are several values for an entry, the last one is used. Indices are sorted.
    """
    # one number per entry, in reverse order, since `unique` returns the first of equal numbers
    keys = rows.astype(np.int64) * n_units + columns
    unique, from_end = np.unique(keys[::-1], return_index=True)
    data = np.asarray(values, dtype=np.float64)[::-1][from_end]
    indptr = np.searchsorted(unique, np.arange(n_units + 1, dtype=np.int64) * n_units)
    return _csr(data, unique % n_units, indptr, n_units)


def from_columns(columns: Array, values: Array | None = None) -> sp.csr_array:
    """Return a csr_array whose row i has its entries in the columns ``columns[i]``.

    `columns` has shape (n_units, degree), and is sorted within rows. `values` contains the entries
    row by row; by default all entries are 1.
    """
    n_units, degree = columns.shape
    data = np.ones(columns.size) if values is None else values.ravel()
    return _csr(data, columns.ravel(), np.arange(n_units + 1) * degree, n_units)


def room_for_connections(n_units: int, degree: int) -> contextlib.AbstractContextManager[None]:
    """Return a context that checks the memory for `degree` connections per unit."""
    return room_for(
        f"The weights of n_units={n_units} with {degree} connections each",
        12.0 * n_units * degree,
        "Use fewer units, or fewer connections (in_degree).",
    )


def _csr(data: Array, indices: Array, indptr: Array, n_units: int) -> sp.csr_array:
    """Return a csr_array of shape (n_units, n_units), with int32 indices if they suffice."""
    kind = np.int32 if indptr[-1] <= np.iinfo(np.int32).max else np.int64
    parts = (data, indices.astype(kind, copy=False), indptr.astype(kind, copy=False))
    return sp.csr_array(parts, shape=(n_units, n_units))


def _entries(W: Any) -> tuple[int, Array, Array, Array]:
    """Return n_units, and the rows, columns and values of the stored entries of a square matrix."""
    matrix = _square(W)
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return matrix.shape[0], rows, matrix.indices, matrix.data


def _square(W: Any) -> sp.csr_array:
    """Return a copy of a square matrix as a float64 csr_array without duplicate entries."""
    check_real("W", W)
    matrix = sp.csr_array(W, dtype=np.float64, copy=True)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"W must be square, (n_units, n_units); got shape {matrix.shape}.")
    matrix.sum_duplicates()
    return matrix

"""Scale whole matrices, rows and blocks to a spectral radius or a norm."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Matrix
from reservoir._validation import as_plain, check_number, check_scaling
from reservoir.scaling._checks import as_matrix, entries, row_of_entries, to_unit_size
from reservoir.scaling._large_blocks import largest_singular_value
from reservoir.scaling._radius import spectral_radius


def scale_to_spectral_radius(W: Any, radius: float) -> Matrix:
    """Scale `W` to a spectral radius.

    Parameters
    ----------
    W : array_like or sparse array of shape (n_units, n_units)
        Matrix to scale, real and finite; not changed.
    radius : float, at least 0
        The spectral radius of the result; with 0 the result is the zero matrix.

    Returns
    -------
    ndarray or csr_array of shape (n_units, n_units), float64
        Sparse if `W` is sparse.

    Raises
    ------
    ValueError
        If `W` has spectral radius 0, as a delay line or any other nilpotent matrix has, and
        `radius` is positive; if the result would overflow; if `W` is not square or not finite; or
        if the radius cannot be computed (`SpectralRadiusError`).

    References
    ----------
    .. [1] Jaeger, H. (2001). The "echo state" approach to analysing and training recurrent
       neural networks. GMD Report 148.

    Examples
    --------
    >>> import numpy as np
    >>> scale_to_spectral_radius(np.array([[0.0, 1.0], [-1.0, 0.0]]), 0.5)
    array([[ 0. ,  0.5],
           [-0.5,  0. ]])
    """
    radius = check_number("radius", radius, low=0.0)
    matrix = _unit_size(W, square=True)
    if radius == 0.0:
        return _times(matrix, 0.0)
    now = spectral_radius(matrix)
    if now == 0.0:
        raise ValueError(
            f"W has spectral radius 0 and cannot be scaled to radius={radius}: its powers vanish, "
            "like those of a delay line. Leave it unscaled (spectral_radius=None) or scale a norm, "
            "`W = reservoir.scaling.scale_to_norm(W, radius)`."
        )
    return _times(matrix, radius / now)


def scale_to_norm(W: Any, value: float, ord: Any = 2) -> Matrix:
    """Scale `W` to a norm.

    Parameters
    ----------
    W : array_like or sparse array of shape (n_rows, n_columns)
        Matrix to scale, real and finite; not changed.
    value : float, at least 0
        The norm of the result; with 0 the result is the zero matrix.
    ord : {1, 2, inf, "fro"}, default=2
        The norm: largest absolute column sum, largest singular value, largest absolute row sum, or
        root of the sum of squares (Frobenius). A 2-norm below 1 is sufficient for the echo state
        property of tanh units [1]_.

    Returns
    -------
    ndarray or csr_array of shape (n_rows, n_columns), float64
        Sparse if `W` is sparse.

    Raises
    ------
    ValueError
        If `W` is zero and `value` is positive; if the result would overflow; if `W` is not
        two-dimensional or not finite; or if `ord` is not known.

    References
    ----------
    .. [1] Jaeger, H. (2001). The "echo state" approach to analysing and training recurrent
       neural networks. GMD Report 148.

    Examples
    --------
    >>> import numpy as np
    >>> scale_to_norm(np.array([[0.0, 3.0], [0.0, 4.0]]), 1.0)
    array([[0. , 0.6],
           [0. , 0.8]])
    >>> scale_to_norm(np.array([[0.0, 3.0], [0.0, 4.0]]), 1.0, ord=np.inf)
    array([[0.  , 0.75],
           [0.  , 1.  ]])
    """
    value = check_number("value", value, low=0.0)
    matrix = _unit_size(W)
    now = _norm(matrix, ord)
    if value == 0.0:
        return _times(matrix, 0.0)
    if now == 0.0:
        raise ValueError(
            f"W, shape {matrix.shape}, is zero and cannot be scaled to the norm value={value}. "
            "Use a W that has connections."
        )
    return _times(matrix, value / now)


def scale_rows(W: Any, values: Any, ord: Any = 2) -> Matrix:
    """Scale each row of `W`, the weights of the connections to one unit, to a separate norm.

    Parameters
    ----------
    W : array_like or sparse array of shape (n_rows, n_columns)
        Matrix to scale, real and finite; not changed.
    values : float or array_like of shape (n_rows,), at least 0
        The norms of the rows. A row of zeros is not changed.
    ord : {1, 2, inf}, default=2
        The norm of a row: sum of moduli, root of the sum of squares, or largest modulus. With
        ``ord=1`` and values below 1, a reservoir of tanh units has the echo state property: its
        update is a contraction in the maximum norm.

    Returns
    -------
    ndarray or csr_array of shape (n_rows, n_columns), float64
        Sparse if `W` is sparse.

    Raises
    ------
    ValueError
        If a value is negative or not finite, if the number of values is wrong, if `W` is not
        two-dimensional or not finite, or if `ord` is not known.

    Examples
    --------
    >>> import numpy as np
    >>> scale_rows(np.array([[3.0, 4.0], [0.0, 2.0]]), [1.0, 0.5])
    array([[0.6, 0.8],
           [0. , 0.5]])
    """
    matrix = _unit_size(W)
    wanted = check_scaling("values", values, matrix.shape[0], "row")
    # the norms of the rows
    size = abs(sp.csr_array(matrix))
    if ord == 1:
        norms = size.sum(axis=1)
    elif ord == 2:
        norms = np.sqrt((size * size).sum(axis=1))
    elif ord == np.inf:
        norms = size.max(axis=1).toarray().ravel()
    else:
        raise ValueError(f"ord={ord!r} is not known for rows. Known: 1, 2, inf.")
    factors = np.divide(wanted, norms, out=np.ones(wanted.size), where=norms > 0)
    return _times(matrix, factors)


def scale_blocks(W: Any, labels: Any, radius: Any) -> Matrix:
    """Scale each diagonal block of `W` to a separate spectral radius.

    Connections between blocks are not changed. If there are none, the spectral radius of the whole
    matrix is the largest spectral radius of a block.

    Parameters
    ----------
    W : array_like or sparse array of shape (n_units, n_units)
        Matrix to scale, real and finite; not changed.
    labels : array_like of shape (n_units,), int
        The block of each unit, from 0 to n_blocks - 1, as returned by
        ``reservoir.topologies.cluster_labels``; the units of a block need not be adjacent.
    radius : float or array_like of shape (n_blocks,), at least 0
        The spectral radii of the blocks.

    Returns
    -------
    ndarray or csr_array of shape (n_units, n_units), float64
        Sparse if `W` is sparse.

    Raises
    ------
    ValueError
        If a block has spectral radius 0 and its `radius` is positive; if `labels` does not match
        W; if a radius is negative or not finite; or for a reason listed in
        `scale_to_spectral_radius`.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[2.0, 1.0, 7.0], [1.0, 2.0, 0.0], [0.0, 5.0, -4.0]])
    >>> scale_blocks(W, [0, 0, 1], [0.9, 0.5])
    array([[ 0.6,  0.3,  7. ],
           [ 0.3,  0.6,  0. ],
           [ 0. ,  5. , -0.5]])
    """
    # every unit needs a block, and every block a radius
    matrix = sp.csr_array(as_matrix(W))
    label = as_plain("labels", labels)
    if label.shape != (matrix.shape[0],) or not np.issubdtype(label.dtype, np.integer):
        raise ValueError(
            f"labels must be {matrix.shape[0]} integers, one per unit; got shape {label.shape}, "
            f"dtype {label.dtype}."
        )
    if label.size and label.min() < 0:
        raise ValueError(f"labels must be at least 0; got {label.min()}.")
    wanted = check_scaling("radius", radius, int(label.max(initial=-1)) + 1, "block")
    # the factor of each block
    factors = np.ones(wanted.size)
    for block in np.unique(label):
        units = np.flatnonzero(label == block)
        now = spectral_radius(matrix[units][:, units])
        if now == 0.0 and wanted[block] > 0.0:
            raise ValueError(
                f"Block {block} of W, {units.size} units, has spectral radius 0 and cannot be "
                f"scaled to radius={wanted[block]}. Add a cycle to it, or use radius 0."
            )
        factors[block] = wanted[block] / now if now > 0.0 else 0.0
    # scale the connections within blocks
    rows = label[row_of_entries(matrix)]
    inside = rows == label[matrix.indices]
    matrix.data[inside] *= factors[rows[inside]]
    matrix.eliminate_zeros()
    return matrix if sp.issparse(W) else matrix.toarray()


def _unit_size(W: Any, *, square: bool = False) -> Matrix:
    """Check `W`; return a copy, scaled by a power of two such that its largest entry is about 1."""
    matrix = as_matrix(W, square=square)
    to_unit_size(matrix)
    return matrix


def _times(matrix: Any, factor: Any) -> Any:
    """Multiply a matrix in place by a number, or each row by a number; raise if this overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.ndim(factor) == 0:
            entries(matrix)[...] *= factor
        elif sp.issparse(matrix):
            matrix.data *= factor[row_of_entries(matrix)]
        else:
            matrix *= factor[:, None]
    if not np.isfinite(entries(matrix)).all():
        raise ValueError(
            "The scaled W would contain values beyond the range of floats: use a smaller value."
        )
    if sp.issparse(matrix):
        matrix.eliminate_zeros()
    return matrix


def _norm(matrix: Any, ord: Any) -> float:
    """Return the norm of a matrix; `ord` as in `scale_to_norm`."""
    size = np.abs(matrix)
    if ord == 1:
        return float(size.sum(axis=0).max())
    if ord == np.inf:
        return float(size.sum(axis=1).max())
    if ord == "fro":
        return float(np.sqrt(np.sum(np.square(entries(matrix)))))
    if ord != 2:
        raise ValueError(f"ord={ord!r} is not known. Known: 1, 2, inf, 'fro'.")
    if min(matrix.shape) <= 500:
        return float(np.linalg.norm(matrix.toarray() if sp.issparse(matrix) else matrix, 2))
    norm = largest_singular_value(matrix)
    if norm is None:
        raise ValueError(
            "The 2-norm of W did not converge. Use ord='fro', which is an upper bound."
        )
    return norm

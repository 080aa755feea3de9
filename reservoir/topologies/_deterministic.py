"""Deterministic topologies: rings, delay lines and bands of constant weights.

Like all topologies they accept `random_state`, but they ignore it.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral

import scipy.sparse as sp

from reservoir._typing import RandomState
from reservoir._validation import check_count
from reservoir._weights import heads_of_lines
from reservoir.topologies._connections import add_diagonal, add_jumps, add_self_loops, cycle


def ring(n_units: int, *, weight: float = 1.0, random_state: RandomState = None) -> sp.csr_array:
    """Generate a ring, the simple cycle reservoir (SCR): unit i receives from unit i - 1.

    Unit 0 receives from the last unit. The eigenvalues are on a circle; the spectral radius is
    ``abs(weight)``.

    Parameters
    ----------
    n_units : int
        Number of units.
    weight : float, default=1.0
        Weight of every connection; after scaling to a spectral radius only its sign matters.
    random_state : ignored
        Accepted so that topologies are interchangeable.

    Returns
    -------
    csr_array of shape (n_units, n_units)

    References
    ----------
    .. [1] Rodan, A. and Tino, P. (2011). Minimum complexity echo state network. IEEE
       Transactions on Neural Networks 22(1), 131-144.

    Examples
    --------
    >>> ring(5).toarray()
    array([[0., 0., 0., 0., 1.],
           [1., 0., 0., 0., 0.],
           [0., 1., 0., 0., 0.],
           [0., 0., 1., 0., 0.],
           [0., 0., 0., 1., 0.]])
    """
    return cycle(n_units, weight=weight)


def delay_line(
    n_units: int, *, weight: float = 1.0, n_lines: int = 1, random_state: RandomState = None
) -> sp.csr_array:
    """Generate a delay line: unit i receives from unit i - 1, and unit 0 from no unit.

    Several lines begin at the units that inputs enter with ``input_weights="heads"``.

    The matrix is nilpotent: its spectral radius is 0 for every weight, so it cannot be scaled to
    another spectral radius.

    Parameters
    ----------
    n_units : int
        Number of units.
    weight : float, default=1.0
        Weight of every connection.
    n_lines : int, default=1
        Number of lines, at most `n_units`: line k begins at unit ``k * n_units // n_lines``.
    random_state : ignored
        Accepted so that topologies are interchangeable.

    Returns
    -------
    csr_array of shape (n_units, n_units)

    References
    ----------
    .. [1] Rodan, A. and Tino, P. (2011). Minimum complexity echo state network. IEEE
       Transactions on Neural Networks 22(1), 131-144.

    Examples
    --------
    >>> delay_line(4).toarray()
    array([[0., 0., 0., 0.],
           [1., 0., 0., 0.],
           [0., 1., 0., 0.],
           [0., 0., 1., 0.]])
    """
    W = toeplitz(n_units, diagonals={-1: weight})
    n_lines = check_count("n_lines", n_lines)
    if n_lines > n_units:
        raise ValueError(f"n_lines={n_lines} exceeds n_units={n_units}. Use fewer lines.")
    if n_lines > 1:
        W, later = W.tolil(), heads_of_lines(n_units, n_lines)[1:]
        W[later, later - 1] = 0.0
    return sp.csr_array(W)


def delay_line_feedback(
    n_units: int,
    *,
    weight: float = 1.0,
    feedback_weight: float = 0.1,
    random_state: RandomState = None,
) -> sp.csr_array:
    """Generate a delay line with feedback: unit i receives from units i - 1 and i + 1.

    Its spectral radius is ``2 sqrt(|weight * feedback_weight|) cos(pi / (n_units + 1))``.

    Parameters
    ----------
    n_units : int
        Number of units.
    weight : float, default=1.0
        Weight of the forward connections.
    feedback_weight : float, default=0.1
        Weight of the backward connections. The default is a tenth of the forward weight, as in the
        examples of [1]_ (r = 0.5, b = 0.05).
    random_state : ignored
        Accepted so that topologies are interchangeable.

    Returns
    -------
    csr_array of shape (n_units, n_units)

    References
    ----------
    .. [1] Rodan, A. and Tino, P. (2011). Minimum complexity echo state network. IEEE
       Transactions on Neural Networks 22(1), 131-144.

    Examples
    --------
    >>> delay_line_feedback(4).toarray()
    array([[0. , 0.1, 0. , 0. ],
           [1. , 0. , 0.1, 0. ],
           [0. , 1. , 0. , 0.1],
           [0. , 0. , 1. , 0. ]])
    """
    return toeplitz(n_units, diagonals={-1: weight, 1: feedback_weight})


def self_loop_delay_line(
    n_units: int,
    *,
    weight: float = 1.0,
    self_weight: float = 0.5,
    random_state: RandomState = None,
) -> sp.csr_array:
    """Generate a delay line whose units also receive from themselves: a cascade of leaky delays.

    The matrix is triangular; its spectral radius is ``abs(self_weight)``.

    Parameters
    ----------
    n_units : int
        Number of units.
    weight : float, default=1.0
        Weight of the forward connections.
    self_weight : float, default=0.5
        Weight of each unit on itself.
    random_state : ignored
        Accepted so that topologies are interchangeable.

    Returns
    -------
    csr_array of shape (n_units, n_units)

    References
    ----------
    .. [1] Elsarraj, D., Al Qisi, M., Rodan, A., Obeid, N., Sharieh, A. and Faris, H. (2019).
       Demystifying echo state network with deterministic simple topologies. International
       Journal of Computational Science and Engineering 19(3), 407-417.

    Examples
    --------
    >>> self_loop_delay_line(3).toarray()
    array([[0.5, 0. , 0. ],
           [1. , 0.5, 0. ],
           [0. , 1. , 0.5]])
    """
    return toeplitz(n_units, diagonals={-1: weight, 0: self_weight})


def forward_connection(
    n_units: int, *, weight: float = 1.0, random_state: RandomState = None
) -> sp.csr_array:
    """Generate two interleaved delay lines: unit i receives from unit i - 2.

    The spectral radius is 0 for every weight.

    Parameters
    ----------
    n_units : int
        Number of units.
    weight : float, default=1.0
        Weight of every connection.
    random_state : ignored
        Accepted so that topologies are interchangeable.

    Returns
    -------
    csr_array of shape (n_units, n_units)

    References
    ----------
    .. [1] Elsarraj, D., Al Qisi, M., Rodan, A., Obeid, N., Sharieh, A. and Faris, H. (2019).
       Demystifying echo state network with deterministic simple topologies. International
       Journal of Computational Science and Engineering 19(3), 407-417.

    Examples
    --------
    >>> forward_connection(4).toarray()
    array([[0., 0., 0., 0.],
           [0., 0., 0., 0.],
           [1., 0., 0., 0.],
           [0., 1., 0., 0.]])
    """
    return toeplitz(n_units, diagonals={-2: weight})


def cycle_with_jumps(
    n_units: int,
    *,
    weight: float = 1.0,
    jump_weight: float = 0.5,
    jump_size: int = 3,
    random_state: RandomState = None,
) -> sp.csr_array:
    """Generate a cycle reservoir with regular jumps (CRJ): a ring with two-way shortcuts.

    Parameters
    ----------
    n_units : int
        Number of units.
    weight : float, default=1.0
        Weight of the ring's connections.
    jump_weight : float, default=0.5
        Weight of the jumps; after scaling to a spectral radius only its ratio to `weight` matters.
    jump_size : int, default=3
        Number of units from the start to the end of a jump; at least 2. `add_jumps` describes the
        positions of the jumps.
    random_state : ignored
        Accepted so that topologies are interchangeable.

    Returns
    -------
    csr_array of shape (n_units, n_units)

    References
    ----------
    .. [1] Rodan, A. and Tino, P. (2012). Simple deterministically constructed cycle reservoirs
       with regular jumps. Neural Computation 24(7), 1822-1852.

    Examples
    --------
    >>> cycle_with_jumps(6).toarray()
    array([[0. , 0. , 0. , 0.5, 0. , 1. ],
           [1. , 0. , 0. , 0. , 0. , 0. ],
           [0. , 1. , 0. , 0. , 0. , 0. ],
           [0.5, 0. , 1. , 0. , 0. , 0. ],
           [0. , 0. , 0. , 1. , 0. , 0. ],
           [0. , 0. , 0. , 0. , 1. , 0. ]])
    """
    return add_jumps(cycle(n_units, weight=weight), jump_size=jump_size, weight=jump_weight)


def double_cycle(
    n_units: int,
    *,
    weight: float = 1.0,
    backward_weight: float = 0.5,
    random_state: RandomState = None,
) -> sp.csr_array:
    """Generate two cycles through the same units, one in each direction.

    Parameters
    ----------
    n_units : int
        Number of units. With one or two units the cycles coincide, and their weights are added.
    weight : float, default=1.0
        Weight of the forward cycle: unit i receives from unit i - 1.
    backward_weight : float, default=0.5
        Weight of the backward cycle. By default it is smaller than `weight`, so that signals travel
        mainly in one direction.
    random_state : ignored
        Accepted so that topologies are interchangeable.

    Returns
    -------
    csr_array of shape (n_units, n_units)

    References
    ----------
    .. [1] Fu, J., Li, G., Tang, J., Xia, L., Wang, L. and Duan, S. (2023). A double-cycle echo
       state network topology for time series prediction. Chaos 33(9), 093113.

    Examples
    --------
    >>> double_cycle(5).toarray()
    array([[0. , 0.5, 0. , 0. , 1. ],
           [1. , 0. , 0.5, 0. , 0. ],
           [0. , 1. , 0. , 0.5, 0. ],
           [0. , 0. , 1. , 0. , 0.5],
           [0.5, 0. , 0. , 1. , 0. ]])
    """
    forward = cycle(n_units, weight=weight)
    return forward + cycle(n_units, weight=backward_weight, step=-1)


def self_loop_cycle(
    n_units: int,
    *,
    weight: float = 1.0,
    self_weight: float = 0.5,
    random_state: RandomState = None,
) -> sp.csr_array:
    """Generate a ring whose units also receive from themselves.

    Parameters
    ----------
    n_units : int
        Number of units.
    weight : float, default=1.0
        Weight of the ring's connections.
    self_weight : float, default=0.5
        Weight of each unit on itself; after scaling to a spectral radius only its ratio to `weight`
        matters.
    random_state : ignored
        Accepted so that topologies are interchangeable.

    Returns
    -------
    csr_array of shape (n_units, n_units)

    References
    ----------
    .. [1] Elsarraj, D., Al Qisi, M., Rodan, A., Obeid, N., Sharieh, A. and Faris, H. (2019).
       Demystifying echo state network with deterministic simple topologies. International
       Journal of Computational Science and Engineering 19(3), 407-417.

    Examples
    --------
    >>> self_loop_cycle(4).toarray()
    array([[0.5, 0. , 0. , 1. ],
           [1. , 0.5, 0. , 0. ],
           [0. , 1. , 0.5, 0. ],
           [0. , 0. , 1. , 0.5]])
    """
    return add_self_loops(cycle(n_units, weight=weight), weight=self_weight)


def toeplitz(
    n_units: int,
    *,
    diagonals: Mapping[int, float] | None = None,
    random_state: RandomState = None,
) -> sp.csr_array:
    """Generate a band matrix with constant diagonals.

    Parameters
    ----------
    n_units : int
        Number of units.
    diagonals : mapping of int to float, default=None
        The weight on each diagonal, by the offset of the diagonal:
        ``W[i, i + offset] = weight``. With offset -1 a unit receives from the unit before it, with
        0 from itself, with +1 from the unit after it; offsets outside the matrix are ignored. None
        means ``{-1: 1.0, 0: 0.5, 1: 0.5}``.
    random_state : ignored
        Accepted so that topologies are interchangeable.

    Returns
    -------
    csr_array of shape (n_units, n_units)

    Raises
    ------
    TypeError
        If an offset is not an integer, or a weight is not a number.

    Examples
    --------
    >>> toeplitz(4, diagonals={-1: 1.0, 2: -0.5}).toarray()
    array([[ 0. ,  0. , -0.5,  0. ],
           [ 1. ,  0. ,  0. , -0.5],
           [ 0. ,  1. ,  0. ,  0. ],
           [ 0. ,  0. ,  1. ,  0. ]])
    """
    n_units = check_count("n_units", n_units, size=1.5)
    # set one diagonal after another in an empty matrix
    W = sp.csr_array((n_units, n_units))
    given = {-1: 1.0, 0: 0.5, 1: 0.5} if diagonals is None else diagonals
    for offset, weight in given.items():
        if isinstance(offset, bool) or not isinstance(offset, Integral):
            raise TypeError(f"diagonals: the offset {offset!r} must be an integer.")
        W = add_diagonal(W, offset=int(offset), weight=weight)
    return W

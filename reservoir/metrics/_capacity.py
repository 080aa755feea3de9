"""Memory capacity, kernel rank and generalization rank of a reservoir."""

from __future__ import annotations

from typing import Any

import numpy as np

from reservoir._typing import Array, ArrayLike, RandomState
from reservoir._validation import advising, as_generator, check_count, check_number
from reservoir.dynamics import Reservoir, run
from reservoir.dynamics.held_reservoir import as_reservoir
from reservoir.metrics._errors import as_table, check_no_constant_column
from reservoir.readouts import GramAccumulator


def memory_capacity(
    reservoir: Any,
    *,
    max_lag: int = 100,
    n_train: int = 4000,
    n_test: int = 4000,
    washout: int = 200,
    alpha: float = 1e-12,
    X: ArrayLike | None = None,
    random_state: RandomState = None,
    return_profile: bool = False,
) -> float | tuple[float, Array]:
    """Linear memory capacity of an open reservoir: past inputs estimated from the current state.

    It is the sum over lags k = 1, ..., max_lag of the squared correlation between u(t - k) and its
    ridge estimate from the state at time t, on rows that were not used for the fit [1]_.

    Parameters
    ----------
    reservoir : Reservoir or fitted estimator
        A reservoir with one input and without feedback, or a fitted estimator that has one.
    max_lag : int, default=100
        Longest lag in the sum. About twice the number of units covers the whole memory.
    n_train, n_test : int, rows, default=4000
        Number of rows that the readout is fitted on, and number of rows that the correlations are
        computed on.
    washout : int, rows, at least max_lag, default=200
        Number of rows before the fit, during which the reservoir forgets its zero initial state.
    alpha : float, default=1e-12
        Ridge penalty. The default only guards against a singular Gram matrix. A larger penalty
        reduces the measured capacity if inputs are small and states are about 0.01, say.
    X : array-like of shape (n_samples,) or (n_samples, 1), default=None
        Input of at least washout + n_train + n_test rows; further rows are ignored. If None, the
        input is drawn from U(-0.5, 0.5). The theory assumes independent draws.
    random_state : None, int, Generator or RandomState, default=None
        Seed of the random input; not used if `X` is passed.
    return_profile : bool, default=False
        Whether to also return the capacity of each lag.

    Returns
    -------
    total : float
        The memory capacity. In theory, it is at most n_units for independent inputs [1]_.
    profile : ndarray of shape (max_lag,)
        The capacity of lag k at index k - 1. Only returned if `return_profile` is set.

    Raises
    ------
    TypeError, ValueError
        If the reservoir has several inputs or feedback, a parameter is outside its range, or X is
        too short.

    Notes
    -----
    On n test rows, an estimate that is independent of the input has an expected squared correlation
    of 1 / (n - 1), and these contributions add up over many lags. The capacity of each lag is
    therefore computed as r^2 - (1 - r^2) / (n - 2), whose expectation is 0 if there is no memory
    [2]_. The capacity of a single lag can be slightly negative and is not clipped, so that the sum
    is not biased upwards. An estimate that does not vary has capacity 0.

    References
    ----------
    .. [1] Jaeger (2001), "Short term memory in echo state networks", GMD Report 152, definition 1
       and proposition 2.
    .. [2] Ezekiel (1930), "Methods of Correlation Analysis", Wiley (the adjusted squared
       correlation, for one regressor).

    Examples
    --------
    A delay line of 5 units stores the last five inputs: the current input, whose lag of 0 is not
    counted, and the four inputs before it.

    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir
    >>> from reservoir.metrics import memory_capacity
    >>> line = Reservoir(np.eye(5, k=-1), np.eye(5, 1), np.zeros(5), activation="identity")
    >>> total, profile = memory_capacity(line, max_lag=10, random_state=0, return_profile=True)
    >>> abs(profile).round(2)
    array([1., 1., 1., 1., 0., 0., 0., 0., 0., 0.])
    """
    reservoir = _read_driven(reservoir, n_features=1)
    n_units = reservoir.n_units
    max_lag = check_count("max_lag", max_lag, size=n_units)
    n_train = check_count("n_train", n_train, minimum=2, size=n_units)
    n_test = check_count("n_test", n_test, minimum=3, size=n_units)
    washout = check_count("washout", washout, size=n_units)
    alpha = check_number("alpha", alpha, low=0.0)
    if washout < max_lag:
        raise ValueError(
            f"washout={washout} must be at least max_lag={max_lag}, because otherwise lagged "
            "inputs would precede the first row. Raise washout."
        )
    # drive the reservoir, and align its states with the lagged inputs
    u = _memory_input(X, washout + n_train + n_test, random_state)
    H = run(reservoir, u[:, None])[washout:].astype(float, copy=False)
    windows = np.lib.stride_tricks.sliding_window_view(u, max_lag + 1)
    lagged = windows[washout - max_lag :, -2::-1]  # column k - 1: u(t - k)
    # one ridge readout for all lags, scored on the rows after the training rows
    with advising("n_features is the number of units: measure a smaller reservoir."):
        gram = GramAccumulator(H.shape[1], max_lag).update(H[:n_train], lagged[:n_train])
        solution = gram.solve(alpha)
    estimate = H[n_train:] @ solution.coef.T + solution.intercept
    size = np.abs(H).max(axis=0) @ np.abs(solution.coef.T) + np.abs(solution.intercept)
    profile = _adjusted_squared_correlation(lagged[n_train:], estimate, size)
    total = float(profile.sum())
    return (total, profile) if return_profile else total


def kernel_rank(
    reservoir: Any,
    *,
    n_streams: int | None = None,
    length: int = 100,
    rtol: float = 0.01,
    random_state: RandomState = None,
) -> int:
    """Kernel rank of an open reservoir: how many input streams lead to independent states.

    It is the rank of the matrix of final states under `n_streams` independent input streams [1]_
    [2]_. A linear readout can map that many streams to arbitrary outputs.

    Parameters
    ----------
    reservoir : Reservoir or fitted estimator
        A reservoir without feedback, or a fitted estimator that has one.
    n_streams : int, default=None
        Number of streams. If None, it is the number of units, which is the largest possible rank.
    length : int, rows, default=100
        Length of each stream, which is drawn from U(-0.5, 0.5). It should exceed the memory of the
        reservoir.
    rtol : float in (0, 1), default=0.01
        Singular values below rtol times the largest are not counted. Without a tolerance, the rank
        in floating point is almost always full, although directions of small singular values are
        lost in noise.
    random_state : None, int, Generator or RandomState, default=None
        Seed of the streams.

    Returns
    -------
    int
        The rank, which is at most min(n_units, n_streams).

    Raises
    ------
    TypeError, ValueError
        If the reservoir has feedback or a parameter is outside its range.

    See Also
    --------
    generalization_rank : Rank of the final states under streams that should lead to similar states.

    References
    ----------
    .. [1] Legenstein and Maass (2007), "Edge of chaos and prediction of computational performance
       for neural circuit models", Neural Networks 20, 323-334, section 3.
    .. [2] Buesing, Schrauwen and Legenstein (2010), "Connectivity, dynamics, and memory in
       reservoir computing with binary and analog neurons", Neural Computation 22, 1272-1311.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir
    >>> from reservoir.metrics import kernel_rank
    >>> line = Reservoir(np.eye(5, k=-1), np.eye(5, 1), np.zeros(5), activation="identity")
    >>> kernel_rank(line, random_state=0)
    5
    """
    reservoir = _read_driven(reservoir)
    streams = _streams(reservoir, n_streams, length, random_state)
    return _rank_of_final_states(reservoir, streams, rtol)


def generalization_rank(
    reservoir: Any,
    *,
    n_streams: int | None = None,
    length: int = 100,
    n_common: int = 3,
    rtol: float = 0.01,
    random_state: RandomState = None,
) -> int:
    """Generalization rank of an open reservoir: dependence on inputs that should be forgotten.

    It is the rank of the final states, as in `kernel_rank`, under streams that differ at first but
    have the same last `n_common` rows [1]_ [2]_. A low rank is good: the reservoir has forgotten
    the differences. The difference between the kernel rank and the generalization rank predicts
    performance [1]_.

    Parameters
    ----------
    reservoir : Reservoir or fitted estimator
        A reservoir without feedback, or a fitted estimator that has one.
    n_streams : int, default=None
        Number of streams. If None, it is the number of units.
    length : int, rows, default=100
        Length of each stream, which is drawn from U(-0.5, 0.5).
    n_common : int, rows, less than length, default=3
        Number of last rows that are the same in all streams.
    rtol : float in (0, 1), default=0.01
        Singular values below rtol times the largest are not counted.
    random_state : None, int, Generator or RandomState, default=None
        Seed of the streams.

    Returns
    -------
    int
        The rank, which is at most min(n_units, n_streams).

    Raises
    ------
    TypeError, ValueError
        If the reservoir has feedback or a parameter is outside its range.

    References
    ----------
    .. [1] Legenstein and Maass (2007), "Edge of chaos and prediction of computational performance
       for neural circuit models", Neural Networks 20, 323-334, sections 3 and 4.
    .. [2] Buesing, Schrauwen and Legenstein (2010), "Connectivity, dynamics, and memory in
       reservoir computing with binary and analog neurons", Neural Computation 22, 1272-1311.

    Examples
    --------
    A delay line of 5 units stores the last five inputs. The last three inputs are the same in all
    streams and together contribute one dimension; the two inputs before them contribute one
    dimension each.

    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir
    >>> from reservoir.metrics import generalization_rank
    >>> line = Reservoir(np.eye(5, k=-1), np.eye(5, 1), np.zeros(5), activation="identity")
    >>> generalization_rank(line, random_state=0)
    3
    """
    n_common = check_count("n_common", n_common, minimum=0)
    reservoir = _read_driven(reservoir)
    streams = _streams(reservoir, n_streams, length, random_state)
    if n_common >= streams.shape[1]:
        raise ValueError(
            f"n_common={n_common} must be smaller than length={length}: streams that are identical "
            "from the start all lead to the same state. Lower n_common."
        )
    if n_common:
        streams[:, -n_common:] = streams[0, -n_common:]
    return _rank_of_final_states(reservoir, streams, rtol)


def _read_driven(model: Any, n_features: int | None = None) -> Reservoir:
    """Return the reservoir of a model; raise if it has feedback or a wrong number of inputs."""
    reservoir = as_reservoir(model)
    if reservoir.W_fb is not None:
        raise ValueError(
            "The reservoir has feedback weights W_fb, but this measure is defined only for "
            "reservoirs that are driven by inputs alone."
        )
    if n_features is not None and reservoir.W_in.shape[1] != n_features:
        raise ValueError(
            f"The reservoir has n_features={reservoir.W_in.shape[1]}, but this measure requires "
            f"n_features={n_features}. Build one with a single column in W_in."
        )
    return reservoir


def _memory_input(X: ArrayLike | None, n_rows: int, random_state: RandomState) -> Array:
    """Return the input for `memory_capacity`, (n_rows,): the first rows of X, or random values."""
    if X is None:
        return as_generator(random_state).uniform(-0.5, 0.5, n_rows)
    table = as_table("X", X)
    if table.shape[1] != 1 or len(table) < n_rows:
        raise ValueError(
            f"X has shape {table.shape}, but one column and at least washout + n_train + n_test = "
            f"{n_rows} rows are required. Pass a longer series, or lower n_train or n_test."
        )
    check_no_constant_column(table[:n_rows], "X")
    return table[:n_rows, 0]


def _adjusted_squared_correlation(Y: Array, estimate: Array, size: Array) -> Array:
    """Return r^2 - (1 - r^2) / (n - 2), where r is the correlation of columns of Y and `estimate`.

    For independent columns, its expectation is 0. `size`, of shape (n_columns,), is a bound on the
    terms that are summed in each estimate. An estimate that varies by no more than their rounding
    errors is treated as constant, and its result is 0.
    """
    n_rows = len(Y)
    # an estimate that varies by no more than its rounding errors is constant
    a, b = Y - Y.mean(axis=0), estimate - estimate.mean(axis=0)
    a2, b2 = (a**2).sum(axis=0), (b**2).sum(axis=0)
    floor = n_rows * (n_rows * np.finfo(float).eps * size) ** 2
    varies = (b2 > floor) & (a2 > 0)
    r2 = (a * b).sum(axis=0) ** 2 / np.where(varies, a2 * b2, 1.0)
    r2 = np.minimum(r2, 1.0)
    return np.where(varies, r2 - (1.0 - r2) / (n_rows - 2), 0.0)


def _streams(
    reservoir: Reservoir, n_streams: int | None, length: int, random_state: RandomState
) -> Array:
    """Return random input streams, of shape (n_streams, length, n_features), from U(-0.5, 0.5)."""
    n_units, n_features = reservoir.W_in.shape
    length = check_count("length", length, size=n_features)
    n_streams = n_units if n_streams is None else n_streams
    n_streams = check_count("n_streams", n_streams, size=length * n_features + n_units)
    return as_generator(random_state).uniform(-0.5, 0.5, (n_streams, length, n_features))


def _rank_of_final_states(reservoir: Reservoir, streams: Array, rtol: float) -> int:
    """Return the numerical rank of the matrix with the state after each stream as rows."""
    rtol = check_number("rtol", rtol, low=0.0, high=1.0, low_open=True, high_open=True)
    states = np.stack([run(reservoir, stream)[-1] for stream in streams])
    values = np.linalg.svd(states.astype(float, copy=False), compute_uv=False)
    return int((values > rtol * values[0]).sum())

"""Test signals: superposed sines, classification, detection and memory tasks."""

from __future__ import annotations

import numpy as np

from reservoir._typing import Array, ArrayLike, RandomState
from reservoir._validation import as_generator, as_plain, check_count, check_number

# Frequencies of the multiple superposed oscillators, in radians per step.
MSO_FREQUENCIES = (0.2, 0.311, 0.42, 0.51, 0.63, 0.74, 0.85, 0.97, 1.08, 1.19, 1.27, 1.32)


def multiple_superposed_oscillators(
    n_samples: int,
    *,
    n_oscillators: int = 5,
    frequencies: ArrayLike | None = None,
    random_state: RandomState = None,
) -> Array:
    """Generate multiple superposed oscillators (MSO): a sum of sines with incommensurate periods.

    ``x(t) = sin(w_1 t) + ... + sin(w_n t)``, t = 0, 1, ...

    Parameters
    ----------
    n_samples : int
        Number of rows returned.
    n_oscillators : int, at most 12, default=5
        Number of oscillators. They have the first `n_oscillators` of the standard frequencies 0.2,
        0.311, 0.42, 0.51, 0.63, 0.74, 0.85, 0.97, 1.08, 1.19, 1.27, 1.32. MSO2 is the task of [1]_,
        MSO5 and MSO8 are the tasks of [2]_, and MSO12 is the task of [3]_. Ignored if `frequencies`
        is set.
    frequencies : array-like of shape (n,), radians per step, default=None
        Frequencies to use instead of the standard ones.
    random_state : None, int, Generator or RandomState, default=None
        With None all oscillators start at phase 0, as published. With a seed the phases are drawn
        from U(0, 2 pi).

    Returns
    -------
    x : ndarray of shape (n_samples, 1)
        The sum of the sines.

    Raises
    ------
    ValueError
        If a parameter is outside its range.

    References
    ----------
    .. [1] Jaeger and Haas (2004), "Harnessing nonlinearity", Science 304, 78-80; Xue, Yang and
       Haykin (2007), "Decoupled echo state networks with lateral inhibition", Neural Networks 20,
       365-376.
    .. [2] Koryakin, Lohmann and Butz (2012), "Balanced echo state networks", Neural Networks 36,
       35-45.
    .. [3] Gallicchio, Micheli and Pedrelli (2018), "Design of deep echo state networks", Neural
       Networks 108, 33-47.

    Examples
    --------
    >>> from reservoir.datasets import multiple_superposed_oscillators
    >>> multiple_superposed_oscillators(2, n_oscillators=2).ravel().round(4)
    array([0.    , 0.5047])
    """
    n_samples = check_count("n_samples", n_samples, size=2)
    if frequencies is None:
        n_oscillators = check_count("n_oscillators", n_oscillators)
        if n_oscillators > len(MSO_FREQUENCIES):
            raise ValueError(
                f"n_oscillators={n_oscillators} must be at most {len(MSO_FREQUENCIES)}, the number "
                "of standard frequencies. Set frequencies to use others."
            )
        frequencies = MSO_FREQUENCIES[:n_oscillators]
    # Phases 0 as published, or random ones.
    w = _check_vector("frequencies", frequencies)
    phases = np.zeros_like(w)
    if random_state is not None:
        phases = as_generator(random_state).uniform(0.0, 2.0 * np.pi, w.shape)
    t = np.arange(n_samples)[:, None]
    return np.sin(w * t + phases).sum(axis=1, keepdims=True)


def random_phase_sines(
    n_samples: int,
    *,
    n_features: int = 1,
    periods: ArrayLike = (20.0,),
    random_state: RandomState = None,
) -> Array:
    """Generate periodic inputs, which are sums of sines with random phases.

    ``x_j(t) = sqrt(2 / K) [sin(2 pi t / P_1 + phi_j1) + ... + sin(2 pi t / P_K + phi_jK)]`` with
    independent uniform phases [1]_. All columns have the same spectrum, and over a common period
    mean 0 and variance 1, but they have different shapes.

    Parameters
    ----------
    n_samples : int
        Number of rows returned.
    n_features : int, default=1
        Number of columns.
    periods : array-like of shape (K,), steps, default=(20.0,)
        The periods P_1, ..., P_K; with a single period the columns are pure sines.
    random_state : None, int, Generator or RandomState, default=None
        Seed of the phases. With None new phases are drawn at each call.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The inputs, one sum of sines per column.

    Raises
    ------
    ValueError
        If a parameter is outside its range.

    References
    ----------
    .. [1] Pintelon and Schoukens (2012), "System Identification: A Frequency Domain Approach",
       2nd edition, Wiley, section 4.2 (random-phase multisines).

    Examples
    --------
    >>> from reservoir.datasets import random_phase_sines
    >>> X = random_phase_sines(40, n_features=3, periods=[20, 10], random_state=0)
    >>> X.shape
    (40, 3)
    >>> bool(abs(X[:20] - X[20:]).max() < 1e-12)
    True
    """
    n_samples = check_count("n_samples", n_samples, size=2)
    n_features = check_count("n_features", n_features, size=n_samples)
    P = _check_vector("periods", periods)
    if not (P > 0.0).all():
        raise ValueError(f"periods={periods!r} must be positive numbers of steps.")
    phases = as_generator(random_state).uniform(0.0, 2.0 * np.pi, (n_features, len(P)))
    t = np.arange(n_samples)[:, None, None]
    return np.sin(2.0 * np.pi * t / P + phases).sum(axis=2) * np.sqrt(2.0 / len(P))


def sine_square(
    n_samples: int, *, period: int = 12, random_state: RandomState = None
) -> tuple[Array, Array]:
    """Generate a random sequence of sine and square waves, to be classified at every time step.

    The input is a sequence of periods, each of which is a sine or a square wave with equal
    probability. The values -1 and 1 occur in both waves, so the classification needs memory [1]_.

    Parameters
    ----------
    n_samples : int
        Number of rows returned; the last wave may be cut short.
    period : int, steps, at least 4, default=12
        Number of steps per wave; 12 as in [1]_.
    random_state : None, int, Generator or RandomState, default=None
        Seed of the sequence of waves. With None a new sequence is drawn at each call.

    Returns
    -------
    X : ndarray of shape (n_samples, 1)
        The signal, in [-1, 1].
    y : ndarray of shape (n_samples,), int
        The class of each step: 0 in a sine wave, 1 in a square wave.

    Raises
    ------
    ValueError
        If a parameter is outside its range.

    References
    ----------
    .. [1] Paquot, Duport, Smerieri, Dambre, Schrauwen, Haelterman and Massar (2012),
       "Optoelectronic reservoir computing", Scientific Reports 2, 287.

    Examples
    --------
    >>> from reservoir.datasets import sine_square
    >>> X, y = sine_square(36, random_state=1)
    >>> y[::12]
    array([0, 1, 1])
    >>> X[12:24].ravel()
    array([ 1.,  1.,  1.,  1.,  1.,  1., -1., -1., -1., -1., -1., -1.])
    """
    n_samples = check_count("n_samples", n_samples, size=2)
    period = check_count("period", period, minimum=4, size=3)
    labels = as_generator(random_state).integers(0, 2, -(-n_samples // period))
    step = np.arange(period)
    waves = np.stack([np.sin(2.0 * np.pi * step / period), np.where(2 * step < period, 1.0, -1.0)])
    X = waves[labels].reshape(-1, 1)[:n_samples]
    return X, np.repeat(labels, period)[:n_samples]


def subsequence_detection(
    n_samples: int = 20_000,
    *,
    mean_spacing: float = 40,
    length: int = 10,
    random_state: RandomState = None,
) -> tuple[Array, Array]:
    """Generate subsequence detection; the task is to raise an alarm after a pattern in noise.

    Both the pattern and the noise are drawn from N(0, 1), so only the order of the values
    distinguishes them.
    The pattern is drawn once and inserted many times; the label is 1 in the `length` steps after
    each insertion, and 0 elsewhere [1]_. At the last step of an alarm a memory of ``2 * length``
    steps is needed.

    Parameters
    ----------
    n_samples : int, default=20_000
        Number of rows returned; the default is from [1]_. Training and test rows must be from one
        call, because each call draws another pattern.
    mean_spacing : float >= 0, steps, default=40
        Mean number of noise steps from the end of an insertion to the start of the next. The
        spacings have a geometric distribution: at every step of noise the next insertion begins
        with the same probability, so that its time cannot be predicted. [1]_ does not state the
        distribution of its spacings, whose means are from 10 to 80.
    length : int, steps, default=10
        Number of steps of the pattern, and of the alarm.
    random_state : None, int, Generator or RandomState, default=None
        Seed of pattern, noise and spacings. With None new ones are drawn at each call.

    Returns
    -------
    X : ndarray of shape (n_samples, 1)
        The noise with the insertions of the pattern.
    y : ndarray of shape (n_samples,), int
        1 during an alarm, else 0.

    Raises
    ------
    ValueError
        If a parameter is outside its range.

    References
    ----------
    .. [1] Bay (2017), "Recurrent neural networks: methods and applications to non-linear
       predictions", PhD thesis, Politecnico di Torino, section 4.5.

    Examples
    --------
    >>> from reservoir.datasets import subsequence_detection
    >>> X, y = subsequence_detection(20, mean_spacing=4, length=3, random_state=0)
    >>> y
    array([0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0])
    >>> bool((X[3:6] == X[13:16]).all())  # the pattern before each alarm
    True
    """
    n_samples = check_count("n_samples", n_samples, size=2)
    mean_spacing = check_number("mean_spacing", mean_spacing, low=0)
    length = check_count("length", length, size=1)
    rng = as_generator(random_state)
    pattern = rng.standard_normal(length)
    X = rng.standard_normal(n_samples)
    y = np.zeros(n_samples, dtype=int)
    # NumPy's geometric numbers include the success, so they are at least 1 and have mean 1 / p.
    spacings = rng.geometric(1.0 / (1.0 + mean_spacing), n_samples // length + 1) - 1
    starts = np.cumsum(spacings) + length * np.arange(len(spacings))
    for start in starts[starts < n_samples]:
        X[start : start + length] = pattern[: n_samples - start]
        y[start + length : start + 2 * length] = 1
    return X.reshape(-1, 1), y


def memory_capacity_input(
    n_samples: int,
    *,
    max_lag: int = 100,
    low: float = -0.5,
    high: float = 0.5,
    random_state: RandomState = None,
) -> tuple[Array, Array]:
    """Generate white noise and its delayed copies: the task that defines the memory capacity.

    The inputs u(t) are independent draws from U(low, high); output k is u(t - k), for
    k = 1, ..., max_lag [1]_.

    Parameters
    ----------
    n_samples : int
        Number of rows returned.
    max_lag : int, default=100
        Longest delay, which is also the number of outputs.
    low, high : float, default=-0.5 and 0.5
        Range of the input, as in [1]_.
    random_state : None, int, Generator or RandomState, default=None
        Seed of the inputs. With None new inputs are drawn at each call.

    Returns
    -------
    X : ndarray of shape (n_samples, 1)
        The inputs u(t).
    y : ndarray of shape (n_samples, max_lag)
        The delayed inputs; column k - 1 is u(t - k), even in the first rows, because inputs are
        drawn from t = -max_lag on.

    Raises
    ------
    ValueError
        If a parameter is outside its range.

    See Also
    --------
    reservoir.metrics.memory_capacity : The sum over k of the squared correlations.

    References
    ----------
    .. [1] Jaeger (2001), "Short term memory in echo state networks", GMD Report 152.

    Examples
    --------
    >>> from reservoir.datasets import memory_capacity_input
    >>> X, y = memory_capacity_input(50, max_lag=3, random_state=0)
    >>> X.shape, y.shape
    ((50, 1), (50, 3))
    >>> bool((y[5:, 1] == X[3:-2, 0]).all())
    True
    """
    n_samples = check_count("n_samples", n_samples, size=2)
    max_lag = check_count("max_lag", max_lag, size=n_samples)
    low = check_number("low", low)
    high = check_number("high", high, low=low, low_open=True)
    u = as_generator(random_state).uniform(low, high, max_lag + n_samples)
    # Row t of the windows is u(t - max_lag), ..., u(t).
    windows = np.lib.stride_tricks.sliding_window_view(u, max_lag + 1)
    return windows[:, -1:].copy(), windows[:, -2::-1].copy()


def _check_vector(name: str, values: ArrayLike) -> Array:
    """Check that `values` is a non-empty list of finite numbers, and return a float64 array."""
    vector = as_plain(name, values, float)
    if vector.ndim != 1 or vector.size == 0 or not np.isfinite(vector).all():
        raise ValueError(f"{name}={values!r} must be a non-empty list of finite numbers.")
    return vector

"""Input weights, biases and feedback weights.

Weights are drawn from a `law`: a name in `INPUT_WEIGHTS`, a frozen scipy.stats distribution, or a
callable ``f(n_units, n_features, random_state=...)``. If `law` is an array, it is used unchanged.

Examples
--------
>>> sorted(INPUT_WEIGHTS)
['bernoulli', 'heads', 'irrational_signs', 'normal', 'uniform']
>>> input_weights(3, 2, law="irrational_signs", scaling=0.5)
array([[-0.5,  0.5],
       [-0.5,  0.5],
       [-0.5, -0.5]])
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array, RandomState
from reservoir._validation import (
    as_generator,
    check_choice,
    check_count,
    check_number,
    check_numbers,
    check_scaling,
    room_for,
)
from reservoir._weights import distinct_columns, draw, heads_of_lines, resolve_degree

__all__ = [
    "INPUT_WEIGHTS",
    "bias",
    "feedback_weights",
    "heads",
    "input_weights",
    "irrational_digits",
    "irrational_signs",
]

# decimal digits gained per term of the Chudnovsky series: log10(640320**3 / (24 * 6 * 2 * 6))
_DIGITS_PER_TERM = 14.18


def input_weights(
    n_units: int,
    n_features: int,
    *,
    law: Any = "uniform",
    scaling: Any = 1.0,
    connections: float | None = None,
    sparse: bool = False,
    random_state: RandomState = None,
    name: str = "input_weights",
) -> Any:
    """Draw the weights from the input features to the units.

    Parameters
    ----------
    n_units, n_features : int
        Number of units and number of features, the shape of the result.
    law : str, frozen scipy.stats distribution, callable or array_like, default="uniform"
        The distribution of the weights. "uniform" is U(-1, 1), "normal" is N(0, 1), "bernoulli" is
        -1 or +1 with equal probability; "irrational_signs" and "heads" are described in functions
        of these names. A callable ``f(n_units, n_features, random_state=...)`` returns the unscaled
        weights. An array of shape (n_units, n_features) is returned unchanged; `scaling` and
        `connections` are then ignored.
    scaling : float or array_like of shape (n_features,), default=1.0
        Non-negative factor by which each feature's column is multiplied. A single float is used for
        all features, which is appropriate for standardised inputs.
    connections : int, float in (0, 1] or None, default=None
        Exact number of features that each unit receives: an integer, capped at `n_features`, or a
        real number, the density, which means ``max(1, round(connections * n_features))``. None
        means all features.
    sparse : bool, default=False
        Whether to return a csr_array, which saves time if most weights are zero.
    random_state : None, int, Generator or RandomState, default=None
        Seed.
    name : str, default="input_weights"
        Name of the caller's parameter, for error messages.

    Returns
    -------
    ndarray or csr_array of shape (n_units, n_features), float64

    Raises
    ------
    TypeError, ValueError
        If the law is none of the above; if an array or the result of a callable has the wrong shape
        or contains NaN or infinity; if the scaling is negative, not finite or of the wrong length;
        if the law is "heads" and there are more features than units, or `connections`.

    Examples
    --------
    >>> W_in = input_weights(4, 3, law="bernoulli", scaling=[1.0, 0.5, 2.0], connections=2,
    ...                      random_state=0)
    >>> abs(W_in)
    array([[0. , 0.5, 2. ],
           [1. , 0.5, 0. ],
           [1. , 0. , 2. ],
           [1. , 0. , 2. ]])
    """
    n_units = check_count("n_units", n_units, size=1.5)
    n_features = check_count("n_features", n_features, size=1)
    factors = check_scaling("scaling", scaling, n_features)
    if isinstance(law, (np.ndarray, list, tuple)) or sp.issparse(law):
        W_in = _as_given(law, (n_units, n_features), name)
    else:
        # two streams of random numbers, so that `connections` does not change the weights
        places, values = as_generator(random_state).spawn(2)
        what = f"{name} of n_units x n_features = {n_units} x {n_features} numbers"
        remedy = "Use fewer units, or fewer columns."
        with room_for(what, 8.0 * n_units * n_features, remedy):
            W_in = _drawn(law, n_units, n_features, values, name) * factors
        if connections is not None:
            if isinstance(law, str) and law == "heads":
                raise ValueError(
                    f"connections={connections!r} chooses the features of a unit, but "
                    f'{name}="heads" gives each feature one unit. Omit connections.'
                )
            degree = resolve_degree("connections", connections, n_features)
            mask = np.zeros(W_in.shape, dtype=bool)
            columns = distinct_columns(n_units, n_features, degree, places)
            np.put_along_axis(mask, columns.astype(np.intp), True, axis=1)
            W_in = np.where(mask, W_in, 0.0)
    return sp.csr_array(W_in) if sparse else W_in


def bias(
    n_units: int, *, law: Any = "uniform", scaling: float = 0.1, random_state: RandomState = None
) -> Array:
    """Draw the bias of every unit.

    Parameters
    ----------
    n_units : int
        Number of units.
    law : str, frozen scipy.stats distribution, callable or array_like, default="uniform"
        As in `input_weights`, except that a callable is called as
        ``f(n_units, 1, random_state=...)``, and an array, which is returned unchanged, has shape
        (n_units,).
    scaling : float, default=0.1
        Factor by which the bias is multiplied. The default is small, so that tanh units stay near
        their linear range, but not zero, because without a bias a reservoir with an odd activation
        can only produce odd functions of the input.
    random_state : None, int, Generator or RandomState, default=None
        Seed.

    Returns
    -------
    ndarray of shape (n_units,), float64

    Examples
    --------
    >>> bias(3, law="bernoulli", random_state=0)
    array([-0.1,  0.1,  0.1])
    """
    n_units = check_count("n_units", n_units, size=1.5)
    if isinstance(law, (np.ndarray, list, tuple)):
        return _as_given(law, (n_units,), "bias")
    scaling = check_number("scaling", scaling, low=0.0)
    column = input_weights(
        n_units, 1, law=law, scaling=scaling, random_state=random_state, name="bias"
    )
    return column[:, 0]


def feedback_weights(
    n_units: int,
    n_outputs: int,
    *,
    law: Any = "uniform",
    scaling: Any = 1.0,
    connections: float | None = None,
    random_state: RandomState = None,
) -> Array:
    """Draw the weights from the outputs back to the units.

    Parameters
    ----------
    n_units, n_outputs : int
        Number of units and number of outputs, the shape of the result.
    law, scaling, connections, random_state
        As in `input_weights`, with outputs instead of features.

    Returns
    -------
    ndarray of shape (n_units, n_outputs), float64

    Examples
    --------
    >>> feedback_weights(2, 1, law=[[0.5], [-0.5]])
    array([[ 0.5],
           [-0.5]])
    """
    return input_weights(
        n_units,
        check_count("n_outputs", n_outputs),
        law=law,
        scaling=scaling,
        connections=connections,
        random_state=random_state,
        name="feedback_weights",
    )


def irrational_signs(
    n_units: int, n_features: int, *, number: str = "pi", random_state: RandomState = None
) -> Array:
    """Return weights -1 and +1 that follow the decimal digits of an irrational number.

    The weight is -1 for a digit from 0 to 4 and +1 for a digit from 5 to 9 [1]_. The digits after
    the decimal point are used in order, column by column; for one input the weights are the same as
    in [1]_. With these weights and the topology `ring`, the matrices W and W_in are deterministic.

    Parameters
    ----------
    n_units, n_features : int
        Number of units and number of features, the shape of the result.
    number : {"pi", "e"}, default="pi"
        The number whose digits are used.
    random_state : ignored
        Accepted so that laws are interchangeable.

    Returns
    -------
    ndarray of shape (n_units, n_features), float64
        The weights -1 and +1.

    References
    ----------
    .. [1] Rodan, A. and Tino, P. (2011). Minimum complexity echo state network. IEEE
       Transactions on Neural Networks 22(1), 131-144. Section III.

    Examples
    --------
    The digits 1 4 1 5 9 2:

    >>> irrational_signs(6, 1).ravel()
    array([-1., -1., -1.,  1.,  1., -1.])
    """
    n_units = check_count("n_units", n_units, size=1.5)
    n_features = check_count("n_features", n_features, size=1)
    digits = irrational_digits(n_units * n_features, number=number)
    return np.where(digits > 4.5, 1.0, -1.0).reshape(n_features, n_units).T.copy()


def heads(n_units: int, n_features: int, *, random_state: RandomState = None) -> Array:
    """Return weights by which each feature enters one unit, the head of its delay line.

    Feature k enters unit ``k * n_units // n_features`` with weight 1 and no other unit. With the
    topology `delay_line` of as many lines, each unit holds one past value of one feature.

    Parameters
    ----------
    n_units, n_features : int
        Number of units and number of features, the shape of the result.
    random_state : ignored
        Accepted so that laws are interchangeable.

    Returns
    -------
    ndarray of shape (n_units, n_features), float64

    Raises
    ------
    ValueError
        If there are more features than units.

    Examples
    --------
    >>> heads(4, 2).T
    array([[1., 0., 0., 0.],
           [0., 0., 1., 0.]])
    """
    n_units = check_count("n_units", n_units, size=1.5)
    n_features = check_count("n_features", n_features, size=1)
    if n_features > n_units:
        raise ValueError(
            f'input_weights="heads" needs a unit for each feature, but n_features={n_features} '
            f"exceeds n_units={n_units}. Use more units, or other input weights."
        )
    weights = np.zeros((n_units, n_features))
    weights[heads_of_lines(n_units, n_features), np.arange(n_features)] = 1.0
    return weights


def irrational_digits(n_digits: int, *, number: str = "pi") -> Array:
    """Return the decimal digits of pi or e after the decimal point.

    Parameters
    ----------
    n_digits : int
        Number of digits, beginning with the first after the decimal point.
    number : {"pi", "e"}, default="pi"
        The number whose digits are returned.

    Returns
    -------
    ndarray of shape (n_digits,), uint8

    References
    ----------
    .. [1] Chudnovsky, D. V. and Chudnovsky, G. V. (1988). Approximations and complex
       multiplication according to Ramanujan. In: Ramanujan Revisited, Academic Press, 375-472.

    Examples
    --------
    >>> irrational_digits(10)
    array([1, 4, 1, 5, 9, 2, 6, 5, 3, 5], dtype=uint8)
    >>> irrational_digits(10, number="e")
    array([7, 1, 8, 2, 8, 1, 8, 2, 8, 4], dtype=uint8)
    """
    n_digits = check_count("n_digits", n_digits)
    compute = {"pi": _pi, "e": _e}[check_choice("number", number, ("pi", "e"))]
    # with 20 guard digits the result is exact unless it is followed by 20 zeros or nines
    with decimal.localcontext(decimal.Context(prec=n_digits + 20, Emax=decimal.MAX_EMAX)):
        text = str(compute(n_digits))
    return np.frombuffer(text[2 : 2 + n_digits].encode(), dtype=np.uint8) - ord("0")


def _pi(n_digits: int) -> decimal.Decimal:
    """Return pi by the Chudnovsky series, in the precision of the current decimal context."""
    n_terms = int(n_digits / _DIGITS_PER_TERM) + 2
    _, Q, T = _split(_chudnovsky_term, 0, n_terms)
    return 426880 * _square_root(10005) * decimal.Decimal(Q) / T


def _square_root(number: int) -> decimal.Decimal:
    """Return a square root in the precision of the current decimal context.

    This is Newton's iteration for 1 / sqrt(number); ``Decimal.sqrt`` would take quadratic time.
    """
    wanted = decimal.getcontext().prec
    inverse, correct = decimal.Decimal(number**-0.5), 15
    while correct < wanted:
        correct *= 2
        with decimal.localcontext() as context:
            context.prec = min(correct, wanted) + 10
            inverse = inverse * (3 - number * inverse * inverse) / 2
    return number * inverse


def _e(n_digits: int) -> decimal.Decimal:
    """Return e by its exponential series, in the precision of the current decimal context."""
    n_terms, size = 2, 0.0
    while size < n_digits + 20:  # until the factorial in the remainder is large enough
        size += float(np.log10(n_terms))
        n_terms += 1
    _, Q, T = _split(_exponential_term, 1, n_terms)
    return 1 + decimal.Decimal(T) / Q


def _chudnovsky_term(k: int) -> tuple[int, int, int]:
    """Return P, Q and T of term k in the Chudnovsky series for pi, for binary splitting."""
    p = -(6 * k - 5) * (2 * k - 1) * (6 * k - 1) if k else 1
    q = 10939058860032000 * k**3 if k else 1  # 640320**3 / 24
    return p, q, p * (13591409 + 545140134 * k)


def _exponential_term(k: int) -> tuple[int, int, int]:
    """Return P, Q and T of term k in the series for e, for binary splitting."""
    return 1, k, 1


def _split(term: Callable[[int], tuple[int, int, int]], low: int, high: int) -> Any:
    """Return P, Q and T of the terms `low` to ``high - 1`` of a series, by binary splitting.

    P and Q are the products of all p and q of the terms, and T / Q is the sum of the terms.
    """
    if high - low == 1:
        return term(low)
    middle = (low + high) // 2
    P1, Q1, T1 = _split(term, low, middle)
    P2, Q2, T2 = _split(term, middle, high)
    parts = P1 * P2, Q1 * Q2, T1 * Q2 + P1 * T2
    # short numbers multiply faster as int, long ones as Decimal
    if isinstance(P1, int) and high - low >= 32:
        return tuple(map(decimal.Decimal, parts))
    return parts


def _law(name: str) -> Callable[..., Array]:
    """Return a function that draws weights from a named law, for `INPUT_WEIGHTS`."""

    def function(n_units: int, n_features: int, *, random_state: RandomState = None) -> Array:
        return draw(name, (n_units, n_features), as_generator(random_state))

    return function


#: The laws that estimators accept by name: ``f(n_units, n_features, *, random_state=None)``.
INPUT_WEIGHTS: dict[str, Callable[..., Array]] = {
    "uniform": _law("uniform"),
    "normal": _law("normal"),
    "bernoulli": _law("bernoulli"),
    "irrational_signs": irrational_signs,
    "heads": heads,
}


def _drawn(
    law: Any, n_units: int, n_features: int, generator: np.random.Generator, name: str
) -> Array:
    """Return unscaled weights, (n_units, n_features), from a law that is not an array."""
    # the results of names and callables are checked below; `draw` checks distributions
    shape = (n_units, n_features)
    if isinstance(law, str):
        function = INPUT_WEIGHTS[check_choice(name, law, INPUT_WEIGHTS)]
    elif hasattr(law, "rvs"):
        return draw(law, shape, generator, name=name)
    elif callable(law):
        function = law
    else:
        raise TypeError(
            f"{name} must be one of {', '.join(map(repr, sorted(INPUT_WEIGHTS)))}, a frozen "
            "scipy.stats distribution, a callable of n_units, n_features and random_state, or an "
            f"array of shape {shape}; got {law!r} of type {type(law).__name__}."
        )
    return _as_given(function(n_units, n_features, random_state=generator), shape, name)


def _as_given(values: Any, shape: tuple[int, ...], name: str) -> Array:
    """Return a user's weights as a float64 array; raise for a wrong shape, NaN or infinity."""
    array = check_numbers(name, values.toarray() if sp.issparse(values) else values, kinds="biuf")
    if array.shape != shape:
        raise ValueError(
            f"{name} must have shape {shape}; got {array.shape}. Rows are units, columns features."
            if len(shape) == 2
            else f"{name} must have shape {shape}, one value per unit; got {array.shape}."
        )
    if not np.isfinite(array).all():
        n_bad = int(np.count_nonzero(~np.isfinite(array)))
        raise ValueError(f"{name} contains {n_bad} NaN or infinite values. Replace them.")
    return array

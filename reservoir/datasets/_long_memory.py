"""Long-memory tasks, whose target at the end of a sequence depends on early inputs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from reservoir._typing import Array, RandomState
from reservoir._validation import as_generator, check_count

_LEAST = 10  # steps: a tenth of a shorter sequence is less than one step
# Start and end of the ranges of the relevant symbols' positions, in hundredths of the length.
_PLACES = {2: ((10, 20), (50, 60)), 3: ((10, 20), (33, 43), (66, 76))}
_DISTRACTORS = 4


def adding(
    n_sequences: int,
    *,
    length: int | tuple[int, int] = (100, 110),
    random_state: RandomState = None,
) -> tuple[list[Array], Array]:
    """Generate the adding problem; the target is half the sum of two marked numbers among many.

    Each step has a number from U(0, 1) and a mark, which is 1 at two steps and 0 elsewhere. One of
    these steps is in the first tenth of the sequence, the other in the rest of its first half. So
    at least half of each sequence is between the second number and the target at the end.

    Parameters
    ----------
    n_sequences : int
        Number of sequences.
    length : int or (int, int), steps, at least 10, default=(100, 110)
        Number of steps of each sequence. For a pair (shortest, longest) each length is drawn
        separately, and may be equal to either of them. The literature draws lengths from T to
        1.1 T [1]_, and refers to them as length T.
    random_state : None, int, Generator or RandomState, default=None
        Seed of lengths, numbers and marks. With None new ones are drawn at each call.

    Returns
    -------
    X : list of n_sequences ndarrays of shape (n_steps_i, 2)
        Sequences with two columns, the number and the mark.
    y : ndarray of shape (n_sequences,)
        Half the sum of the marked numbers, within [0, 1]: one target per sequence
        (``RNNRegressor(target="last")``).

    Raises
    ------
    ValueError, TypeError
        If a parameter is outside its range.

    See Also
    --------
    multiplication : The same problem with the product of the numbers.

    Notes
    -----
    *Solved:* a prediction is correct if its absolute error is below .04 [1]_; by convention a
    network has solved the task if it is correct on all but 1 % of new sequences. The best constant
    prediction, 1/2, has a mean squared error of 1/24 and is correct for 15 % of sequences.

    In the original task [1]_ numbers are drawn from U(-1, 1), the first and the last step are
    marked by -1, and the target is .5 + (x1 + x2) / 4. For numbers from U(0, 1) this is half the
    sum, so the same threshold applies. Marks that are only 0 or 1, and their positions, are from
    [2]_.

    References
    ----------
    .. [1] Hochreiter and Schmidhuber (1997), "Long short-term memory", Neural Computation 9,
       1735-1780, experiment 4.
    .. [2] Pascanu, Mikolov and Bengio (2013), "On the difficulty of training recurrent neural
       networks", ICML, 1310-1318.

    Examples
    --------
    >>> from reservoir.datasets import adding
    >>> X, y = adding(1, length=10, random_state=0)
    >>> X[0].T.round(2)
    array([[0.64, 0.27, 0.04, 0.02, 0.81, 0.91, 0.61, 0.73, 0.54, 0.94],
           [1.  , 0.  , 1.  , 0.  , 0.  , 0.  , 0.  , 0.  , 0.  , 0.  ]])
    >>> y.round(2)
    array([0.34])
    """
    X, marked = _marked_numbers(n_sequences, length, random_state)
    return X, marked.mean(axis=1)


def multiplication(
    n_sequences: int,
    *,
    length: int | tuple[int, int] = (100, 110),
    random_state: RandomState = None,
) -> tuple[list[Array], Array]:
    """Generate the multiplication problem; the target is the product of two marked numbers.

    The inputs are equal to the inputs of `adding` with the same seed, bit for bit. The target is
    not a linear function of the numbers that must be stored.

    Parameters
    ----------
    n_sequences : int
        Number of sequences.
    length : int or (int, int), steps, at least 10, default=(100, 110)
        Number of steps of each sequence, as in `adding`.
    random_state : None, int, Generator or RandomState, default=None
        Seed of lengths, numbers and marks. With None new ones are drawn at each call.

    Returns
    -------
    X : list of n_sequences ndarrays of shape (n_steps_i, 2)
        Sequences with two columns, the number and the mark.
    y : ndarray of shape (n_sequences,)
        The product of the marked numbers, within [0, 1].

    Raises
    ------
    ValueError, TypeError
        If a parameter is outside its range.

    See Also
    --------
    adding : The same problem with half the sum.

    Notes
    -----
    *Solved:* as in `adding`, with the same threshold of .04 [1]_. The best constant
    prediction, 1/4, has a mean squared error of 7/144.

    References
    ----------
    .. [1] Hochreiter and Schmidhuber (1997), "Long short-term memory", Neural Computation 9,
       1735-1780, experiment 5.

    Examples
    --------
    >>> from reservoir.datasets import multiplication
    >>> X, y = multiplication(1, length=10, random_state=0)
    >>> y.round(2)
    array([0.03])
    """
    X, marked = _marked_numbers(n_sequences, length, random_state)
    return X, marked.prod(axis=1)


def _marked_numbers(
    n_sequences: int, length: Any, random_state: RandomState
) -> tuple[list[Array], Array]:
    """Return sequences of numbers and marks, and the marked numbers, of shape (n_sequences, 2)."""
    rng = as_generator(random_state)
    lengths, begins = _lengths(n_sequences, length, rng)
    X = np.zeros((lengths.sum(), 2))
    X[:, 0] = rng.random(len(X))
    tenth, half = lengths // 10, lengths // 2
    places = begins[:, None] + rng.integers(np.c_[0 * tenth, tenth], np.c_[tenth, half])
    X[places, 1] = 1.0
    return np.split(X, begins[1:]), X[places, 0]


def temporal_order(
    n_sequences: int,
    *,
    length: int | tuple[int, int] = (100, 110),
    n_relevant: int = 2,
    random_state: RandomState = None,
) -> tuple[list[Array], Array]:
    """Generate the temporal order problem; the label is the order of X and Y among distractors.

    Each step has one of six symbols. At two (or three) steps the symbol is X or Y, and the order of
    these symbols is the label; at all other steps it is one of the distractors a, b, c and d. All
    draws are uniform.

    Parameters
    ----------
    n_sequences : int
        Number of sequences.
    length : int or (int, int), steps, at least 10, default=(100, 110)
        Number of steps of each sequence. For a pair (shortest, longest) each length is drawn
        separately, and may be equal to either of them. The default is from [1]_.
    n_relevant : {2, 3}, default=2
        Number of relevant symbols. Two symbols are at 10 to 20 % and at 50 to 60 % of the length
        (experiment 6a of [1]_). Three symbols are at 10 to 20 %, 33 to 43 % and 66 to 76 %
        (experiment 6b, also called the 3-bit temporal order problem).
    random_state : None, int, Generator or RandomState, default=None
        Seed of lengths, positions and symbols. With None new ones are drawn at each call.

    Returns
    -------
    X : list of n_sequences ndarrays of shape (n_steps_i, 6)
        Sequences with one column for each of the symbols a, b, c, d, X and Y: 1 in the column of
        the step's symbol, else 0.
    y : ndarray of shape (n_sequences,), str
        ``"XX"``, ``"XY"``, ``"YX"`` or ``"YY"``; with ``n_relevant=3``, three letters. There is one
        label per sequence (``RNNClassifier(target="last")``).

    Raises
    ------
    ValueError, TypeError
        If a parameter is outside its range.

    Notes
    -----
    *Solved:* by convention a network has solved the task if it labels all but 1 % of 10 000 new
    sequences correctly; a stricter criterion allows no errors. The original [1]_ requires every
    output to be within .3 of its target. A random guess is correct one time in four (or eight, for
    three symbols), with a cross-entropy of ``log(4)`` = 1.386 (or ``log(8)``). The original has two
    more symbols, for the first and the last step; the six symbols are from [2]_.

    References
    ----------
    .. [1] Hochreiter and Schmidhuber (1997), "Long short-term memory", Neural Computation 9,
       1735-1780, experiment 6.
    .. [2] Pascanu, Mikolov and Bengio (2013), "On the difficulty of training recurrent neural
       networks", ICML, 1310-1318.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.datasets import temporal_order
    >>> X, y = temporal_order(3, length=20, random_state=1)
    >>> for rows, label in zip(X, y):
    ...     print("".join(np.array(list("abcdXY"))[rows.argmax(axis=1)]), label)
    bcXdaaddabdYbdbbccaa XY
    ddXcdbbdabaXdabbdacb XX
    adaXbbadcdaYbcdbcabd XY
    """
    rng = as_generator(random_state)
    lengths, begins = _lengths(n_sequences, length, rng)
    n_relevant = check_count("n_relevant", n_relevant)
    if n_relevant not in _PLACES:
        raise ValueError(f"n_relevant={n_relevant} must be 2 or 3, as in the literature.")
    symbols = rng.integers(0, _DISTRACTORS, lengths.sum())
    ends = np.array(_PLACES[n_relevant])
    first, stop = (np.outer(lengths, ends[:, k]) // 100 for k in (0, 1))
    bits = rng.integers(0, 2, first.shape)
    symbols[begins[:, None] + rng.integers(first, stop)] = _DISTRACTORS + bits
    X = np.zeros((len(symbols), _DISTRACTORS + 2))
    X[np.arange(len(X)), symbols] = 1.0
    labels = np.array(["".join(word) for word in itertools.product("XY", repeat=n_relevant)])
    return np.split(X, begins[1:]), labels[bits @ (2 ** np.arange(n_relevant)[::-1])]


def _lengths(n_sequences: int, length: Any, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the length of each sequence, and its first row if all sequences are concatenated."""
    if isinstance(length, (tuple, list)):
        if len(length) != 2:
            raise ValueError(f"length={length!r} must be a number or a pair (shortest, longest).")
        low, high = (check_count("length", each, minimum=_LEAST, size=2) for each in length)
        if low > high:
            raise ValueError(f"length={length!r} must be (shortest, longest). Swap them.")
    else:
        low = high = check_count("length", length, minimum=_LEAST, size=2)
    n_sequences = check_count("n_sequences", n_sequences, size=2 * low)
    if isinstance(length, (tuple, list)):
        lengths = rng.integers(low, high, n_sequences, endpoint=True)
    else:
        lengths = np.full(n_sequences, low)
    return lengths, np.cumsum(lengths) - lengths

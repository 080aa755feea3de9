"""Penalties on the weights, and bounds on their gradients."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from reservoir._validation import check_number
from reservoir.training.params import Params, global_norm

__all__ = ["clip_by_norm", "clip_by_value", "penalty"]

_FREE = ("bias", "intercept")  # prefixes of the names of weights without penalty


def penalty(
    params: Params, *, l1: float = 0.0, l2: float = 0.0, free: Collection[str] | None = None
) -> tuple[float, Params]:
    """Return the elastic-net penalty, ``l1 sum |w| + l2 / 2 sum w^2``, and its gradient.

    The gradient of ``|w|`` at 0 is taken as 0.

    Parameters
    ----------
    params : dict of arrays
    l1 : float, at least 0, default=0.0
        Strength of the penalty on absolute values.
    l2 : float, at least 0, default=0.0
        Strength of the penalty on squares. It corresponds to `alpha` of scikit-learn's multilayer
        perceptrons, but is not divided by the number of samples in the batch.
    free : collection of str, optional
        Names of the weights without penalty, such as the result of `Network.free_of_penalty`. By
        default, the names that begin with "bias" or "intercept", either at their start or after the
        last dot ("0.bias").

    Returns
    -------
    value : float
    grads : dict of arrays
        The gradient, with the names, shapes and dtype of `params`; zeros for weights without
        penalty.

    Raises
    ------
    TypeError, ValueError
        If `l1` or `l2` is not a finite number of at least 0.

    References
    ----------
    H. Zou and T. Hastie, "Regularization and variable selection via the elastic net", Journal of
    the Royal Statistical Society B 67, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.regularizers import penalty
    >>> value, grads = penalty({"W": np.array([[-3.0]]), "bias": np.array([5.0])}, l1=1.0, l2=2.0)
    >>> value, grads
    (12.0, {'W': array([[-7.]]), 'bias': array([0.])})
    """
    l1 = check_number("l1", l1, low=0.0)
    l2 = check_number("l2", l2, low=0.0)
    value, grads = 0.0, {}
    for name, w in params.items():
        left_out = name.rpartition(".")[2].startswith(_FREE) if free is None else name in free
        if left_out or l1 == l2 == 0.0:
            grads[name] = np.zeros_like(w)
            continue
        grads[name] = l2 * w
        if l1:
            grads[name] += l1 * np.sign(w)
            value += l1 * float(np.abs(w).sum(dtype=np.float64))
        value += 0.5 * l2 * float(np.square(w, dtype=np.float64).sum())
    return value, grads


def clip_by_norm(grads: Params, max_norm: float) -> Params:
    """Scale a gradient down if its norm over all weights exceeds a maximum.

    Parameters
    ----------
    grads : dict of arrays
        The gradient. Not changed.
    max_norm : float, above 0

    Returns
    -------
    dict of arrays
        A gradient with the same direction. If the norm is at most `max_norm`, or if it is not
        finite, the same arrays are returned: check for NaN and infinity first (`all_finite`).

    Raises
    ------
    TypeError, ValueError
        If `max_norm` is not a positive number.

    References
    ----------
    R. Pascanu, T. Mikolov and Y. Bengio, "On the difficulty of training recurrent neural
    networks", ICML 2013, algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.regularizers import clip_by_norm
    >>> clip_by_norm({"W": np.array([[30.0]]), "bias": np.array([40.0])}, 1.0)
    {'W': array([[0.6]]), 'bias': array([0.8])}
    """
    max_norm = check_number("max_norm", max_norm, low=0.0, low_open=True)
    norm = global_norm(grads)
    if not max_norm < norm < np.inf:
        return dict(grads)
    return {name: g * (max_norm / norm) for name, g in grads.items()}


def clip_by_value(grads: Params, limit: float) -> Params:
    """Clip each component of a gradient to ``[-limit, limit]``.

    Parameters
    ----------
    grads : dict of arrays
        The gradient. Not changed.
    limit : float, above 0

    Returns
    -------
    dict of arrays
        The clipped gradient. Infinity becomes the limit, and NaN is kept: check for both first
        (`all_finite`).

    Raises
    ------
    TypeError, ValueError
        If `limit` is not a positive number.

    References
    ----------
    T. Mikolov, "Statistical language models based on neural networks", PhD thesis, Brno University
    of Technology, 2012, section 3.2.2.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.regularizers import clip_by_value
    >>> clip_by_value({"W": np.array([[-30.0, 0.5]])}, 1.0)
    {'W': array([[-1. ,  0.5]])}
    """
    limit = check_number("limit", limit, low=0.0, low_open=True)
    return {name: np.clip(g, -limit, limit) for name, g in grads.items()}

"""`certify_loop`: prove that a network in closed loop converges to a fixed point."""

from __future__ import annotations

from typing import Any

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_choice, dense, room_for
from reservoir.activations.enclosures import EPS
from reservoir.dynamics import Reservoir
from reservoir.dynamics.fed_back import as_limits
from reservoir.dynamics.held_reservoir import as_reservoir
from reservoir.stability._arguments import as_double, as_pair, as_real
from reservoir.stability._rounding import LARGEST, TINY, image_of_box, is_small
from reservoir.stability.proofs._certificate import Certificate
from reservoir.stability.proofs._diagonal_scaling import scaled_rows
from reservoir.stability.proofs._interval_network import read_network
from reservoir.stability.proofs._lyapunov import SHRINKS, least_rate
from reservoir.stability.proofs._max_norm import perron_bound
from reservoir.stability.proofs._quadratic_form import Step
from reservoir.stability.proofs._unit_scalings import balanced

_THEOREMS = {
    "max_norm": "C6: contraction of the closed loop",
    "lyapunov": "C6: contraction of the closed loop in a quadratic norm",
}
_MOST_SIZE = 1000  # largest number of units and outputs for method="lyapunov"
_CHEAP_SIZE = 300  # up to so many "auto" tries it as well
_MAX_ITER = 2000


def certify_loop(
    model: Any,
    readout: tuple[ArrayLike, ArrayLike] | None = None,
    *,
    include_input: bool | None = None,
    exog: ArrayLike | None = None,
    clip: tuple[ArrayLike, ArrayLike] | None = None,
    method: str = "auto",
) -> Certificate:
    """Prove that a network in closed loop converges to one fixed point from any state.

    A generator of oscillations should not do so: one that works **must** fail this test. A good
    generator needs the echo state property under teacher forcing: certify its reservoir with
    `certify`, not its loop.

    The state of the loop is the state of the reservoir together with the last output: with
    ``include_input=True`` the output that is fed back also enters the next output directly,
    ``y[t] = C x[t] + D y[t-1] + c``, so that the matrix W + W_fb C does not describe the loop.

    Parameters
    ----------
    model : fitted ESNRegressor with the built-in ridge, or Reservoir
    readout : (coef, intercept), optional
        The linear readout; required with a Reservoir. coef has shape (n_outputs, n_units [+
        n_features]): the weights of the states come first.
    include_input : bool, optional
        Whether coef contains weights of the input; required with a Reservoir.
    exog : array of shape (n_exog,), optional
        Constant exogenous inputs, the last columns of X; zero by default.
    clip : (low, high), optional
        Bounds to which outputs are clipped when they are fed back.
    method : {"auto", "max_norm", "lyapunov"}, default="auto"
        "max_norm" bounds the absolute values of all weights. "lyapunov" searches for a quadratic
        norm of states and outputs, which uses the signs of the weights and the cancellation in the
        readout. It supports up to 1000 units and outputs, and only a `clip` whose bounds the
        outputs do not reach: a clip that acts is a second nonlinearity, which this proof does not
        cover. "auto" tries "max_norm", then "lyapunov" up to 300 units and outputs.

    Returns
    -------
    Certificate
        Its box has shape (2, n_units + n_outputs): bounds of the units, then of the outputs, which
        are infinite if the outputs cannot be bounded. ``drive_min`` and ``drive_max`` bound the
        drive of the units by the outputs. ``resolution`` is None: the effect of rounding depends on
        the cancellation of the readout's terms, which the proof does not bound.

    Raises
    ------
    TypeError, ValueError
        If the readout is not linear or has a wrong shape, the lower bound of `clip` exceeds the
        upper, or `method` is not known or does not support so many units; UnboundedActivationError
        if the activation is unbounded or has no enclosure.

    Notes
    -----
    Theorem C6 of the page on stability; the quadratic norm is from C7. Without `clip` outputs are
    bounded only if ``|D|`` has spectral radius below 1.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir
    >>> from reservoir.stability import certify_loop
    >>> res = Reservoir([[0.2]], [[1.0]], [0.1])
    >>> certify_loop(res, ([[0.5]], [0.0]), include_input=False).holds
    True
    >>> certify_loop(res, ([[2.0]], [0.0]), include_input=False).holds
    False
    """
    check_choice("method", method, ("auto", "max_norm", "lyapunov"))
    reservoir = as_reservoir(model)
    loop = _Loop(reservoir, *_read_readout(model, readout, include_input), exog, clip)
    if method == "lyapunov" and loop.size > _MOST_SIZE:
        raise ValueError(
            f"method='lyapunov' of a loop needs dense matrices of n_units + n_outputs = "
            f'{loop.size}; it is available up to {_MOST_SIZE}. Use method="max_norm".'
        )
    return loop.certificate(method)


def _read_readout(model: Any, readout: Any, include_input: Any) -> tuple[Array, Array, bool]:
    """Return coefficients, intercept and include_input, from the arguments or a fitted model."""
    if readout is None:
        if not hasattr(model, "coef_"):
            raise TypeError(
                "certify_loop needs a linear readout: give readout=(coef, intercept) with a "
                "Reservoir, or a fitted ESNRegressor without readout=."
            )
        _check_features(model)
        readout = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
        # The weights of the inputs, if there are any, come after the weights of the states.
        include_input = readout[0].shape[1] > as_reservoir(model).n_units
    if include_input is None:
        raise ValueError(
            "include_input is required with readout=: True if coef contains weights of the input, "
            "else False."
        )
    if callable(readout):
        raise TypeError("certify_loop needs a linear readout, (coef, intercept); got a function.")
    parts = as_pair("readout", readout)
    coef, intercept = as_real("coef", parts[0]), as_real("intercept", parts[1])
    if coef.ndim != 2 or not np.isfinite(coef).all() or not np.isfinite(intercept).all():
        raise ValueError("coef must be a finite two-dimensional array, and intercept finite.")
    if not coef.size or intercept.shape not in ((), (len(coef),)):
        raise ValueError(
            f"coef must not be empty, and intercept must have shape ({len(coef)},); got "
            f"{coef.shape}, {intercept.shape}."
        )
    return coef, np.broadcast_to(intercept, (len(coef),)), bool(include_input)


def _check_features(model: Any) -> None:
    """Check that the readout of a fitted model receives the states and the present input only."""
    augment = getattr(model, "augment", None)
    if augment is not None:
        raise TypeError(
            f"certify_loop needs a readout that is linear in the states; the model has "
            f"augment={augment!r}. Use augment=None."
        )
    if getattr(model, "bidirectional", False):
        raise TypeError(
            "certify_loop needs states that depend on earlier rows only; the model has "
            "bidirectional=True. Use bidirectional=False."
        )
    n_lags = getattr(model, "n_lags_", 1)
    if n_lags > 1:
        raise TypeError(
            "certify_loop needs a readout of the states and the present input only; the readout "
            f"of the model receives n_lags_={n_lags} rows. Use n_lags=1."
        )


class _Loop:
    """The loop x' = (1 - a) x + a f(W x + V y + b), y' = C x' + D y + c, in double precision.

    V contains the columns of W_in or W_fb for the outputs. C, D and c are the readout's weights of
    states and of outputs, and its constant. Outputs are clipped before they are fed back, if there
    is a clip.
    """

    def __init__(
        self,
        reservoir: Reservoir,
        coef: Array,
        intercept: Array,
        include_input: bool,
        exog: Any,
        clip: Any,
    ) -> None:
        # Outputs are fed back as the first inputs, or through W_fb; other inputs are exogenous.
        n, q = reservoir.n_units, len(coef)
        n_columns = n + (reservoir.n_features if include_input else 0)
        if coef.shape[1] != n_columns:
            raise ValueError(f"coef must have shape ({q}, {n_columns}); got {coef.shape}.")
        W_in = as_double(reservoir.W_in)
        W_in = dense(W_in, "W_in")
        through_weights = reservoir.W_fb is not None
        n_fed = 0 if through_weights else q
        if through_weights and reservoir.n_outputs != q:
            raise ValueError(f"coef has {q} rows, but W_fb has {reservoir.n_outputs} columns.")
        if n_fed > reservoir.n_features:
            raise ValueError(f"coef has {q} rows, but W_in has {reservoir.n_features} columns.")
        given = _read_exog(exog, reservoir.n_features - n_fed)
        # The matrices of the loop. Exogenous inputs are constant: they go into b and c.
        self.V = reservoir.W_fb.astype(float) if through_weights else W_in[:, :q]  # type: ignore[union-attr]
        self.C, tail = coef[:, :n], coef[:, n:]
        self.D = tail[:, :n_fed] if include_input and n_fed else np.zeros((q, q))
        offset = W_in[:, n_fed:] @ given
        self.c = intercept + (tail[:, n_fed:] @ given if include_input else 0.0)
        network = read_network(reservoir, 0.0, 0.0)
        self.network = network.biased(network.bias + offset)
        # Bounds of the rounding errors of b and c, which affect every pre-activation and output.
        sums = np.abs(W_in[:, n_fed:]) @ np.abs(given) + np.abs(reservoir.bias)
        self.z_error = (len(given) + 4) * EPS * sums + TINY
        tails = np.abs(tail[:, n_fed:]) @ np.abs(given) if include_input else 0.0
        self.y_error = (len(given) + 4) * EPS * (tails + np.abs(intercept)) + TINY
        self.clip = _read_clip(clip, q)

    @property
    def size(self) -> int:
        """Number of units and outputs."""
        return self.C.shape[1] + len(self.C)

    def certificate(self, method: str) -> Certificate:
        """Return the certificate: a box for states and outputs, and the contraction inside it."""
        # Before any iteration the activation's range and a bound of the outputs are known.
        net, n = self.network, self.network.n_units
        reach = max(abs(net.enclosure.low), abs(net.enclosure.high))
        limit = self._largest_outputs(reach)
        low, high = np.full(n, net.enclosure.low), np.full(n, net.enclosure.high)
        y_low, y_high = -limit, limit
        gains = net.enclosure.slopes(np.full(n, -1e300), np.full(n, 1e300))[1]
        rate, weights, found_by = np.inf, None, "lyapunov" if method == "lyapunov" else "max_norm"
        p_low = p_high = np.full(n, np.inf)
        if np.isfinite(limit).all() and self._is_manageable(limit):
            # Intersect the box of states and outputs with its image until it shrinks no more.
            for _ in range(_MAX_ITER):
                z_low, z_high, p_low, p_high = self._preactivation(low, high, y_low, y_high)
                below, above = net.enclosure.values(z_low, z_high)
                below, above = np.maximum(low, below), np.minimum(high, above)
                change = max(np.max(below - low), np.max(high - above))
                low, high = below, above
                least, largest = self._outputs(low, high, y_low, y_high)
                y_low, y_high = np.maximum(y_low, least), np.minimum(y_high, largest)
                if change < 1e-9:
                    break
            least, gains = net.enclosure.slopes(z_low, z_high)
            free = self._is_free(y_low, y_high)
            rate, weights, found_by = self._contraction(method, least, gains, free)
        holds = bool(rate < 1)
        return Certificate(
            holds=holds,
            rate=float(rate),
            method=found_by,
            theorem=_THEOREMS[found_by] if holds else "none",
            box=np.array([np.append(low, y_low), np.append(high, y_high)]),
            gains=gains,
            weights=weights if holds else None,
            drive_min=p_low if np.isfinite(p_low).all() else np.full(n, -np.inf),
            drive_max=p_high,
        )

    def _is_manageable(self, limit: Array) -> bool:
        """Whether weights and outputs are so small that no sum or product overflows."""
        parts = self.network.A, abs(self.V), abs(self.C), abs(self.D)
        return (
            all(is_small(part) for part in parts)
            and max(limit.max(), np.abs(self.network.bias).max()) < LARGEST
        )

    def _largest_outputs(self, reach: float) -> Array:
        """Return an eventual bound of |y| for |x| <= `reach`; infinite if none is found."""
        q = len(self.C)
        forced = reach * np.abs(self.C).sum(axis=1) + np.abs(self.c) + self.y_error
        slack = 1 + (self.C.shape[1] + 2 * q + 20) * EPS
        clipped = self.clip is not None and np.isfinite(self.clip).all()
        # Clipped on both sides: D multiplies outputs within the clip.
        if clipped:
            assert self.clip is not None
            fed = np.maximum(np.abs(self.clip[0]), np.abs(self.clip[1]))
            return (forced + np.abs(self.D) @ fed) * slack
        # Else |y| <= |D| |y| + forced, which bounds y if |D| has spectral radius below 1.
        radius, _ = perron_bound(np.abs(self.D))
        if radius >= 1:
            return np.full(q, np.inf)
        bound = np.linalg.solve(np.eye(q) - np.abs(self.D), forced) * (1 + 1e-6)
        # The solution is rounded, so check that it is a bound.
        inside = ((forced + np.abs(self.D) @ bound) * slack <= bound).all() and (bound > 0).all()
        return bound if inside else np.full(q, np.inf)

    def _fed(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Return bounds of the fed-back values, from bounds of the outputs."""
        if self.clip is None:
            return low, high
        return np.clip(low, *self.clip), np.clip(high, *self.clip)

    def _preactivation(
        self, low: Array, high: Array, y_low: Array, y_high: Array
    ) -> tuple[Array, Array, Array, Array]:
        """Return bounds of the pre-activations, and of their part V y from the feedback."""
        net = self.network
        fed_low, fed_high = self._fed(y_low, y_high)
        p_low, p_high = image_of_box(self.V, fed_low, fed_high)
        z = net.W @ (0.5 * low + 0.5 * high) + net.bias
        size = np.maximum(np.abs(p_low), np.abs(p_high))
        radius = net.A @ (0.5 * high - 0.5 * low) + net.rounding(size) + self.z_error
        return z - radius + p_low, z + radius + p_high, p_low, p_high

    def _outputs(self, low: Array, high: Array, y_low: Array, y_high: Array) -> tuple[Array, Array]:
        """Return bounds of the next outputs, from bounds of the states and of the last outputs."""
        by_state = image_of_box(self.C, low, high)
        by_output = image_of_box(self.D, *self._fed(y_low, y_high))
        least, largest = by_state[0] + by_output[0] + self.c, by_state[1] + by_output[1] + self.c
        error = self.y_error + 8 * EPS * (np.abs(least) + np.abs(largest) + np.abs(self.c))
        return least - error, largest + error

    def _contraction(
        self, method: str, least: Array, gains: Array, free: bool
    ) -> tuple[float, Array | None, str]:
        """Return the proved rate in one norm of states and outputs, its weights and the method.

        `free` indicates that outputs are fed back as they are, not clipped.
        """
        rate, weights, found_by = np.inf, None, method
        if method != "lyapunov":
            rate, weights = perron_bound(self._comparison(gains), decide=None)
            found_by = "max_norm"
        tried = method == "lyapunov" or (method == "auto" and self.size <= _CHEAP_SIZE)
        if tried and free and not rate < 1:
            by_form, P = self._quadratic(least, gains)
            if by_form < rate:
                return by_form, P, "lyapunov"
        return rate, weights, found_by

    def _is_free(self, y_low: Array, y_high: Array) -> bool:
        """Whether outputs within these bounds, and near them, are fed back as they are."""
        if self.clip is None:
            return True
        return bool(((y_low > self.clip[0]) & (y_high < self.clip[1])).all())

    def _quadratic(self, least: Array, gains: Array) -> tuple[float, Array | None]:
        """Return the rate and P of a quadratic norm of states and outputs: theorem C7."""
        weakest = SHRINKS * float(self.network.leak.min())
        rate, P = least_rate(self.step(least, gains), weakest, scaling=self.scaling(gains))
        return rate * (1 + 4 * EPS), P

    def step(self, least: Array, gains: Array) -> Step:
        """Return a step of a difference of states and outputs, given bounds of the slopes."""
        net, (q, n) = self.network, self.C.shape
        W = dense(net.W)
        A = np.zeros((n + q, n + q))
        A[np.arange(n), np.arange(n)] = 1 - net.leak
        A[n:, :n], A[n:, n:] = self.C * (1 - net.leak), self.D
        B = np.vstack([np.diag(net.leak), self.C * net.leak])
        return Step(A, B, np.hstack([W, self.V]), np.maximum(least, 0.0), gains)

    def scaling(self, gains: Array) -> Array:
        """Return the logarithms of a scaling of units and outputs.

        Units are scaled as in a network with weights W + V C, and each output like the states that
        it is computed from.
        """
        of_units = balanced(gains[:, None] * (dense(self.network.W) + self.V @ self.C))
        reach = np.linalg.norm(self.C * np.exp(-of_units), axis=1)
        return np.append(of_units, -np.log(np.where(reach > 0, reach, 1.0)))

    def _comparison(self, gains: Array) -> Array:
        """Return L with (|e'|, |g'|) <= L (|e|, |g|), e differences of states and g of outputs."""
        net, (q, n) = self.network, self.C.shape
        what = f"Matrices of {n + q} x {n + q} units and outputs, 2 at a time,"
        with room_for(what, 16.0 * (n + q) ** 2, "Use fewer units."):
            L = np.zeros((n + q, n + q))
            L[:n, :n] = scaled_rows(net.leak * gains, dense(net.A))
        L[np.arange(n), np.arange(n)] += 1 - net.leak
        L[:n, n:] = (net.leak * gains)[:, None] * np.abs(self.V)
        L[n:] = np.abs(self.C) @ L[:n]
        L[n:, n:] += np.abs(self.D)
        return L * (1 + (n + 12) * EPS)


def _read_exog(exog: Any, n_exog: int) -> Array:
    """Return the checked constant exogenous inputs, of shape (n_exog,); zeros for None."""
    if exog is None:
        return np.zeros(n_exog)
    given = as_real("exog", exog)
    if given.shape != (n_exog,) or not np.isfinite(given).all():
        raise ValueError(f"exog must be finite, of shape ({n_exog},); got {given.shape}.")
    return given


def _read_clip(clip: Any, q: int) -> tuple[Array, Array] | None:
    """Return the checked bounds of the clip, each of shape (n_outputs,), or None."""
    limits = as_limits(clip, q, np.float64)
    if limits is None:
        return None
    return np.broadcast_to(limits[0], (q,)), np.broadcast_to(limits[1], (q,))

"""The result of a proof, from `certify`, `certify_cycle` and `certify_loop`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array, ArrayLike
from reservoir.stability._arguments import as_real
from reservoir.stability.proofs._interval_network import IntervalNetwork


@saved
@dataclass(frozen=True, eq=False, repr=False)
class Certificate:
    """What was proved of a network, and for which inputs; true if it holds.

    Attributes
    ----------
    holds : bool
        Whether the echo state property is proved: any two trajectories under the same admissible
        input approach each other, from any start. False means not proved, not disproved.
    rate : float, per step
        Proved factor: differences decay at every rate above it, up to a constant and after the
        states have come into the box. 1 or more, or infinite, where nothing is proved.
    method : {"max_norm", "two_norm", "series", "lyapunov"}
        What proved it; where it does not hold, what came nearest of what was tried.
    theorem : str
        Its name in the documentation; "none" where it does not hold.
    box : array of shape (2, n_units), of a cycle (period, 2, n_units)
        Bounds that every unit's state comes to lie in, lower then upper; of a cycle, the bounds
        before each step of its period. Infinite for an unbounded activation, whose proof holds for
        all states.
    gains : array of shape (n_units,), of a cycle (period, n_units)
        Largest slope of the activation inside the box.
    weights : array of shape (n_units,), of "lyapunov" (n_units, n_units), or None
        The norm that shrinks. max_norm: ``max_i |e_i| / weights_i`` shrinks by `rate` at every step
        inside the box (of a cycle: over every period that starts before step 0). two_norm:
        ``||weights * e||_2`` does so if all leak rates are equal. lyapunov: ``weights`` is a
        symmetric matrix P, and ``sqrt(e' P e)`` does so whatever the leak rates. None where the
        proof is of the long run only: by series, or where zonotopes have narrowed the box. The
        constant that goes with `rate` is the ratio of the largest weight to the smallest, or the
        root of P's condition number.
    drive_min, drive_max : arrays of shape (n_units,), of a cycle (period, n_units)
        The range of p = W_in u [+ W_fb y] that it covers. A closed loop is covered only while what
        is fed back keeps the drive inside.
    input_range : array of shape (2, n_features) or None
        The range of the inputs that it covers, if it was given, or made by an estimator.
    output_range : array of shape (2, n_outputs) or None
        The same for outputs that are fed back through W_fb.
    shared : bool
        Whether the proof rests on the units sharing their inputs: then it covers drives that
        inputs of `input_range` make, and no others.
    resolution : float or None
        The largest difference, in any unit, that rounding may sustain for ever between two
        trajectories under the same input, run in the reservoir's dtype. `rate` is that of the exact
        map; computed trajectories approach each other at that rate down to this difference. It is
        at most the width of a box that includes rounding errors, which may be far wider than `box`,
        and infinite where a leak rate is so small that rounding stalls the state. None where the
        proof has no `weights`, for a closed loop, and where no box bounds the states.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir
    >>> from reservoir.stability import certify
    >>> res = Reservoir([[3.78]], [[1.0]], [-3.0])
    >>> certify(res, -1.0, 1.0)
    Certificate(holds=True, rate=0..., method='max_norm', theorem='C2: contraction in ...')
    """

    holds: bool
    rate: float
    method: str
    theorem: str
    box: Array
    gains: Array
    weights: Array | None
    drive_min: Array
    drive_max: Array
    input_range: Array | None = None
    output_range: Array | None = None
    shared: bool = False
    resolution: float | None = None

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        floor = "" if self.resolution is None else f"resolution={self.resolution:.2g}, "
        return (
            f"Certificate(holds={self.holds}, rate={self.rate:.6g}, {floor}method={self.method!r}, "
            f"theorem={self.theorem!r})"
        )

    def covers(self, drive: ArrayLike) -> bool:
        """Whether every row of a drive lies in the certified range.

        Parameters
        ----------
        drive : array of shape (n_units,) or (n_samples, n_units)
            p = W_in u, the bias excluded.

        Returns
        -------
        bool
            False if the certificate does not hold.

        Raises
        ------
        ValueError
            If the shape does not fit, or the certificate is `shared`: ask `covers_inputs` then.
        """
        p = as_real("drive", drive)
        n_units = self.drive_min.shape[-1]
        if p.ndim not in (1, 2) or p.shape[-1] != n_units:
            raise ValueError(f"drive must have {n_units} columns, one per unit; got {p.shape}.")
        if self.shared:
            raise ValueError(
                "This certificate covers drives that inputs within input_range make, and no other "
                "drives: use covers_inputs(X)."
            )
        return self.holds and bool(((p >= self.drive_min) & (p <= self.drive_max)).all())

    def covers_inputs(self, X: ArrayLike) -> bool:
        """Whether every row of inputs lies in the range that the certificate was made for.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        bool
            False if the certificate does not hold.

        Raises
        ------
        ValueError
            If the certificate knows of no range of inputs, or X has another number of columns.
        """
        u = as_real("X", X)
        if self.input_range is None:
            raise ValueError(
                "This certificate knows the range of the drive only: make it by "
                "certify(..., input_range=(low, high)), or ask covers(drive)."
            )
        if u.ndim != 2 or u.shape[1] != self.input_range.shape[1]:
            raise ValueError(
                f"X must have shape (n_samples, {self.input_range.shape[1]}); got {u.shape}."
            )
        inside = (u >= self.input_range[0]) & (u <= self.input_range[1])
        return self.holds and bool(inside.all())


def no_certificate(network: IntervalNetwork) -> Certificate:
    """Return a certificate that does not hold, for a network whose sums may overflow."""
    ends = np.array([network.enclosure.low, network.enclosure.high])
    box = np.repeat(ends[:, None], network.n_units, axis=1)
    slopes = network.enclosure.slopes(np.full(1, -1e300), np.full(1, 1e300))[1]
    return Certificate(
        holds=False,
        rate=np.inf,
        method="max_norm",
        theorem="none",
        box=box,
        gains=np.repeat(slopes, network.n_units),
        weights=None,
        drive_min=network.drive_min,
        drive_max=network.drive_max,
    )

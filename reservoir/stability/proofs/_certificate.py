"""The result of a proof, from `certify`, `certify_cycle` and `certify_loop`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array, ArrayLike
from reservoir._workers import threads_for
from reservoir.dynamics import Reservoir
from reservoir.stability._arguments import as_real
from reservoir.stability._drive_ranges import shared_inputs
from reservoir.stability.proofs._forgetting_time import Forgetting
from reservoir.stability.proofs._interval_network import IntervalNetwork, read_network

_SEEN = 1e-3  # a difference of states that is hardly seen, of which `print` tells
_METHODS = {"max_norm": "maximum norm", "two_norm": "Euclidean norm", "lyapunov": "Lyapunov norm"}


@saved
@dataclass(frozen=True, eq=False, repr=False)
class Certificate:
    """Result of a proof for a network and a range of inputs; its truth value is `holds`.

    Attributes
    ----------
    holds : bool
        Whether the echo state property is proved: any two trajectories under the same admissible
        input approach each other, from any start. False means that it is not proved, not that it is
        disproved.
    rate : float, per step
        Proved factor per step: once the states are in the box, differences decay, up to a constant,
        at every rate above it. If nothing is proved, the rate is 1 or more, or infinite.
    method : {"max_norm", "two_norm", "series", "lyapunov"}
        The proof that succeeded or, if none did, the one with the least rate.
    theorem : str
        Name of the theorem in the documentation; "none" if the certificate does not hold.
    box : array of shape (2, n_units), or (period, 2, n_units) for a cycle
        Bounds that every unit's state enters, lower then upper; for a cycle, the bounds before
        each step of its period. Infinite for an unbounded activation, whose proof holds for all
        states.
    gains : array of shape (n_units,), or (period, n_units) for a cycle
        Largest slope of the activation inside the box.
    weights : array of shape (n_units,), or (n_units, n_units) for "lyapunov", or None
        Weights of the norm that shrinks. With "max_norm", ``max_i |e_i| / weights_i`` shrinks by
        `rate` at every step inside the box (for a cycle: over every period that starts before step
        0). With "two_norm", so does ``||weights * e||_2`` if all leak rates are equal. With
        "lyapunov", ``weights`` is a symmetric matrix P, and ``sqrt(e' P e)`` shrinks for any leak
        rates. None if only asymptotic decay is proved: by "series", or in a box narrowed by
        zonotopes. The constant that goes with `rate` is the ratio of the largest weight to the
        smallest, or the square root of P's condition number.
    drive_min, drive_max : arrays of shape (n_units,), or (period, n_units) for a cycle
        The certified range of p = W_in u [+ W_fb y]. A closed loop is covered only while the
        outputs that are fed back keep the drive within this range.
    input_range : array of shape (2, n_features) or None
        The certified range of the inputs, if it was given or set by an estimator.
    output_range : array of shape (2, n_outputs) or None
        The certified range of outputs that are fed back through W_fb.
    shared : bool
        Whether the proof uses the fact that the units share their inputs: then it covers only
        drives that result from inputs in `input_range`.
    resolution : float or None
        The largest difference, in any unit, that rounding may sustain for ever between two
        trajectories under the same input, run in the reservoir's dtype. `rate` is for the exact
        map; computed trajectories approach each other at that rate down to this difference. It is
        at most the width of a box that includes rounding errors, which may be far wider than `box`,
        and infinite if a leak rate is so small that rounding stalls the state. None if the proof
        has no `weights`, for a closed loop, if no box bounds the states, and with a `step_range`.
    reservoir : Reservoir or None
        The certified network; None for a closed loop.
    step_range : array of shape (2,) or None
        The shortest and the longest certified step, in units of the step that the leak rate is
        given for; `rate` holds for any step in between. None if all steps have length 1.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir
    >>> from reservoir.stability import certify
    >>> res = Reservoir([[3.78]], [[1.0]], [-3.0])
    >>> certify(res, -1.0, 1.0)
    Certificate(holds=True, rate=0..., method='max_norm', theorem='C2: contraction in ...')
    >>> print(certify(res, -1.0, 1.0))
    Proved (maximum norm, 1 unit): from any two starts, states differ by at most 0.001 after 17...
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
    reservoir: Reservoir | None = None
    step_range: Array | None = None

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        floor = "" if self.resolution is None else f"resolution={self.resolution:.2g}, "
        steps = ""
        if self.step_range is not None:
            steps = "step_range=({:g}, {:g}), ".format(*self.step_range)
        return (
            f"Certificate(holds={self.holds}, rate={self.rate:.6g}, {floor}{steps}"
            f"method={self.method!r}, theorem={self.theorem!r})"
        )

    def __str__(self) -> str:
        """Return what is proved in one sentence of plain words."""
        low, high = float(self.drive_min.min()), float(self.drive_max.max())
        each = (self.drive_min > low).any() or (self.drive_max < high).any()
        where = f"for drives within [{low:.3g}, {high:.3g}]"
        where += ", each within its own range" if each else ""
        if self.input_range is not None:
            low, high = float(self.input_range[0].min()), float(self.input_range[1].max())
            where += f", as of inputs within [{low:.3g}, {high:.3g}]"
        if not self.holds:
            return (
                f"Not proved: no method shows that states forget their start, {where}. That is no "
                "proof of the opposite."
            )
        try:
            steps = self.steps_to(_SEEN)
        except ValueError:
            share = 100 * max(1 - self.rate, 0.0)
            digits = max(1, 1 - int(np.floor(np.log10(share)))) if share > 0 else 1
            shown = np.floor(share * 10**digits) / 10**digits  # never more than is proved
            return (
                f"Proved: differences decay by {shown:.{digits}f} % a step in the long run, {where}"
            )
        n_units = self.drive_min.shape[-1]
        method = _METHODS.get(self.method, self.method)
        return (
            f"Proved ({method}, {n_units} unit{'s' * (n_units > 1)}): from any two starts, states "
            f"differ by at most {_SEEN:g} after {steps} steps, {where}"
        )

    def covers(self, drive: ArrayLike) -> bool:
        """Whether every row of a drive is within the certified range.

        Parameters
        ----------
        drive : array of shape (n_units,) or (n_samples, n_units)
            The drive p = W_in u, the bias excluded.

        Returns
        -------
        bool
            Also False if the certificate does not hold, whatever X is.

        Raises
        ------
        ValueError
            If the shape is wrong, or the certificate is `shared`: use `covers_inputs` then.
        """
        p = as_real("drive", drive)
        n_units = self.drive_min.shape[-1]
        if p.ndim not in (1, 2) or p.shape[-1] != n_units:
            raise ValueError(f"drive must have {n_units} columns, one per unit; got {p.shape}.")
        if self.shared:
            raise ValueError(
                "This certificate covers only drives that result from inputs within input_range. "
                "Check the inputs: `certificate.covers_inputs(X)`."
            )
        return self.holds and bool(((p >= self.drive_min) & (p <= self.drive_max)).all())

    def covers_inputs(self, X: ArrayLike) -> bool:
        """Whether every row of inputs is within the certified range.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        bool
            Also False if the certificate does not hold, whatever X is.

        Raises
        ------
        ValueError
            If the certificate has no `input_range`, or X has a different number of columns.
        """
        u = as_real("X", X)
        if self.input_range is None:
            raise ValueError(
                "This certificate has a range of the drive only. Certify with input_range, or "
                "check the drives: `certificate.covers(drive)`."
            )
        if u.ndim != 2 or u.shape[1] != self.input_range.shape[1]:
            raise ValueError(
                f"X must have shape (n_samples, {self.input_range.shape[1]}); got {u.shape}."
            )
        inside = (u >= self.input_range[0]) & (u <= self.input_range[1])
        return self.holds and bool(inside.all())

    def covers_steps(self, dt: ArrayLike) -> bool:
        """Whether the certificate covers steps of these lengths, in any order.

        Parameters
        ----------
        dt : float or array
            Lengths in units of the step that the leak rate is given for, as in ``run(..., dt=)``.

        Returns
        -------
        bool
            False if the certificate does not hold. Without a `step_range` it covers only steps of
            length 1.
        """
        lengths = as_real("dt", dt)
        shortest, longest = (1.0, 1.0) if self.step_range is None else self.step_range
        return self.holds and bool(((lengths >= shortest) & (lengths <= longest)).all())

    def steps_to(self, distance: ArrayLike) -> Any:
        """Return a proved number of steps after which any two trajectories are within `distance`.

        `rate` applies only inside the box, and up to a constant. This number, in contrast, counts
        all steps from the start, for any two initial states in the activation's range and any
        admissible input that is the same for both.

        Parameters
        ----------
        distance : float or array, above 0
            Largest remaining difference of a unit's two states. It must be at least `resolution`,
            if that is known.

        Returns
        -------
        int or array of int
            Steps after which no unit's states differ by more than `distance`. This holds for the
            exact map; a run in floating point may differ by another `resolution`.

        Raises
        ------
        ValueError
            If the certificate does not hold; if rounding may keep states farther apart than
            `distance` for ever; if no number is proved, which may happen if zonotopes have narrowed
            the box of a cycle or states need tens of thousands of steps to enter the box; for a
            closed loop; and with a `step_range`.

        Notes
        -----
        Theorem C8 of the page on stability. The computation takes milliseconds, or, if it needs
        full matrices, some tenths of a second for up to 200 units and longer for more units. The
        bound is sharp if all weights are positive. Pass all distances in one array: they are
        computed together.

        Examples
        --------
        A unit that shrinks differences by a factor of ten thousand per step inside its box, but
        needs eight steps, most of them to enter the box:

        >>> from reservoir.dynamics import Reservoir
        >>> from reservoir.stability import certify
        >>> certificate = certify(Reservoir([[3.78]], [[1.0]], [-3.0]), -0.5, 0.5)
        >>> certificate.steps_to(1e-6)
        8
        """
        distances = self._checked_distances(distance)
        assert self.reservoir is not None
        low, high = np.atleast_2d(self.drive_min).T, np.atleast_2d(self.drive_max).T
        network = read_network(self.reservoir, low.min(axis=1), high.max(axis=1))
        inputs = None
        if self.shared:
            inputs = shared_inputs(self.reservoir, self.input_range, self.output_range)[2]
        gains = np.atleast_2d(self.gains).T
        with threads_for(network.n_units):
            found = Forgetting(network, low, high, self.method, gains, inputs)
            steps = found.steps_to(distances.ravel())
        if not np.isfinite(steps).all():
            raise ValueError(
                f"No number of steps to a difference of {distances.min():g} is proved: bounds of "
                "the states from any start do not come close enough to the certified box. Certify "
                'with method="auto" and a smaller range of the drive, or a larger bias.'
            )
        counts = steps.astype(np.int64).reshape(distances.shape)
        return counts if distances.ndim else int(counts)

    def _checked_distances(self, distance: ArrayLike) -> Array:
        """Return the distances of `steps_to` as an array; raise if no number of steps exists."""
        distances = as_real("distance", distance)
        if not (np.isfinite(distances) & (distances > 0)).all():
            raise ValueError(f"distance={distance!r} must be finite and above 0.")
        if not self.holds:
            raise ValueError(
                "The certificate does not hold: nothing is proved about the differences. Check "
                "`if certificate:` first."
            )
        if self.reservoir is None:
            raise ValueError(
                "The number of steps is not available for a closed loop or for certificates of "
                "earlier versions. Use certify or certify_cycle."
            )
        if self.step_range is not None:
            raise ValueError(
                "The number of steps depends on their lengths, and this certificate covers {:g} to "
                "{:g}. Certify without step_range to get the number of steps of "
                "length 1.".format(*self.step_range)
            )
        if not np.isfinite(self.box).all():
            raise ValueError(
                "The activation is unbounded: two states may start at any distance from each "
                "other, and no number of steps brings all of them close. Use a bounded activation, "
                "such as 'tanh'."
            )
        if self.resolution is not None and (distances < self.resolution).any():
            raise ValueError(
                f"distance={distances.min():g} is below the resolution {self.resolution:g}: "
                "rounding may keep states farther apart for ever. Give at least the resolution, or "
                "compute in float64."
            )
        return distances


def no_certificate(network: IntervalNetwork) -> Certificate:
    """Return a certificate that does not hold, for a network with sums that may overflow."""
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

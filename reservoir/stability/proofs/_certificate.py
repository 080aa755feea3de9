"""The result of a proof, from `certify`, `certify_cycle` and `certify_loop`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array, ArrayLike
from reservoir._validation import code
from reservoir._workers import threads_for
from reservoir.dynamics import Reservoir
from reservoir.stability._arguments import as_real
from reservoir.stability._drive_ranges import shared_inputs
from reservoir.stability.proofs._forgetting_time import Forgetting
from reservoir.stability.proofs._interval_network import IntervalNetwork, read_network


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
        proof has no `weights`, for a closed loop, where no box bounds the states, and with a
        `step_range`.
    reservoir : Reservoir or None
        The network that it is about; None for a closed loop.
    step_range : array of shape (2,) or None
        The shortest and the longest step that it covers, in units of the step that the leak rate is
        given for; `rate` is that of any step between. None: steps of length 1.

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
                f"drives: ask for inputs, {code('certificate.covers_inputs(X)')}."
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
                "This certificate knows the range of the drive only. Certify with input_range, or "
                f"ask for drives, {code('certificate.covers(drive)')}."
            )
        if u.ndim != 2 or u.shape[1] != self.input_range.shape[1]:
            raise ValueError(
                f"X must have shape (n_samples, {self.input_range.shape[1]}); got {u.shape}."
            )
        inside = (u >= self.input_range[0]) & (u <= self.input_range[1])
        return self.holds and bool(inside.all())

    def covers_steps(self, dt: ArrayLike) -> bool:
        """Whether it covers steps of these lengths, in any order.

        Parameters
        ----------
        dt : float or array
            Lengths in units of the step that the leak rate is given for, as in ``run(..., dt=)``.

        Returns
        -------
        bool
            False if the certificate does not hold. Without a `step_range` it covers steps of
            length 1 alone.
        """
        lengths = as_real("dt", dt)
        shortest, longest = (1.0, 1.0) if self.step_range is None else self.step_range
        return self.holds and bool(((lengths >= shortest) & (lengths <= longest)).all())

    def steps_to(self, distance: ArrayLike) -> Any:
        """Return a proved number of steps after which any two trajectories are close.

        `rate` counts from inside the box and leaves a constant open. This counts from the start:
        two states anywhere in the activation's range, and from then on the same admissible input.

        Parameters
        ----------
        distance : float or array, above 0
            By how much a unit's two states may still differ. At least `resolution`, if that is
            known.

        Returns
        -------
        int or array of int
            After so many steps no unit's states differ by more. It holds for the exact map; a run
            in floating point may be off by another `resolution`.

        Raises
        ------
        ValueError
            If the certificate does not hold; if rounding may keep states farther apart than
            `distance` for ever; if no number is proved, as may be where zonotopes have narrowed the
            box of a cycle, or where states need tens of thousands of steps to come into it; for a
            closed loop; and with a `step_range`.

        Notes
        -----
        Theorem C8 of the page on stability. It takes milliseconds, where full matrices are needed
        some tenths of a second for up to 200 units, and more for more. The bound is sharp if all
        weights are positive. Give all distances in one array: they are found together.

        Examples
        --------
        A unit that shrinks differences ten thousand times per step inside its box, and needs eight
        steps all the same, most of them to come into the box:

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
                f"No number of steps to a difference of {distances.min():g} is proved: the box is "
                "narrower than what can be followed from the start. Certify with "
                'method="auto" and a smaller range of the drive, or a larger bias.'
            )
        counts = steps.astype(np.int64).reshape(distances.shape)
        return counts if distances.ndim else int(counts)

    def _checked_distances(self, distance: ArrayLike) -> Array:
        """Return the distances as an array, unless `steps_to` has to refuse them."""
        distances = as_real("distance", distance)
        if not (np.isfinite(distances) & (distances > 0)).all():
            raise ValueError(f"distance={distance!r} must be finite and above 0.")
        if not self.holds:
            raise ValueError(
                "The certificate does not hold: nothing is proved of the differences. Ask only "
                "`if certificate:`."
            )
        if self.reservoir is None:
            raise ValueError(
                "The steps are not known of a closed loop, nor of certificates of earlier "
                "versions: use certify or certify_cycle."
            )
        if self.step_range is not None:
            raise ValueError(
                "The number of steps depends on how long each of them is, and this certificate "
                "covers {:g} to {:g}. Certify without step_range to learn it of steps of "
                "length 1.".format(*self.step_range)
            )
        if not np.isfinite(self.box).all():
            raise ValueError(
                "The activation is unbounded: two states may begin at any distance from each "
                "other, and no number of steps brings all of them close. Use a bounded one, such "
                "as 'tanh'."
            )
        if self.resolution is not None and (distances < self.resolution).any():
            raise ValueError(
                f"distance={distances.min():g} is below the resolution {self.resolution:g}: "
                "rounding may keep states farther apart for ever. Give at least that, or compute "
                "in float64."
            )
        return distances


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

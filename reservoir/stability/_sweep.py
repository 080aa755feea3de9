"""Bifurcation sweeps: attractors, exponents and certificates over a grid of parameters.

It uses both the measures and the proofs, so it belongs to neither package.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reservoir._typing import Array, ArrayLike, RandomState
from reservoir._validation import (
    as_generator,
    as_plain,
    check_choice,
    check_count,
    check_n_jobs,
)
from reservoir._workers import one_blas_thread, run_jobs
from reservoir.dynamics import Reservoir
from reservoir.dynamics.held_reservoir import as_reservoir
from reservoir.scaling import spectral_radius
from reservoir.stability._arguments import UnboundedActivationError, warn_of_open_loop
from reservoir.stability._drive_ranges import periodic_drive
from reservoir.stability.measures._attractors import Attractors, attractors_of
from reservoir.stability.measures._exponents import lyapunov_exponents
from reservoir.stability.measures._trajectories import read_drive_series
from reservoir.stability.proofs._certify import certify
from reservoir.stability.proofs._certify_cycle import certify_cycle

PARAMETERS = ("spectral_radius", "bias", "input_scaling", "leak_rate")
_N_UNSETTLED = 3  # exponents are computed for at most this many trajectories without cycle


@dataclass(frozen=True, eq=False, repr=False)
class Sweep:
    """Results at each point of a grid; the axes of all arrays follow the order of `parameters`.

    Attributes
    ----------
    parameters : dict of name -> array of values
        The values of each parameter, which span the grid.
    attractors : object array of `Attractors`
        Results of `sample_attractors`.
    counts : int array
        Number of attracting cycles that were found.
    exponents : float array
        Largest conditional Lyapunov exponent of the trajectories, per step.
    certified : bool array
        Whether a certificate proves that all initial states lead to one response.

    Examples
    --------
    >>> from reservoir.dynamics import Reservoir
    >>> from reservoir.stability import sweep
    >>> grid = {"spectral_radius": [0.5, 2.0], "bias": [0.0, 1.0, 2.0]}
    >>> sweep(Reservoir([[1.0]], [[1.0]], [1.0]), [[0.0]], grid, random_state=0).counts
    array([[1, 1, 1],
           [2, 1, 1]])
    """

    parameters: dict[str, Array]
    attractors: Array
    counts: Array
    exponents: Array
    certified: Array

    def __repr__(self) -> str:
        grid = ", ".join(f"{name}: {len(values)}" for name, values in self.parameters.items())
        return (
            f"Sweep({grid}; attractors {self.counts.min()} to {self.counts.max()}, "
            f"{int(self.certified.sum())} of {self.certified.size} certified)"
        )


def sweep(
    reservoir: Reservoir | Callable[..., Reservoir] | Any,
    inputs: ArrayLike,
    parameters: Mapping[str, Any],
    *,
    n_initial_states: int = 20,
    n_periods: int = 200,
    max_multiple: int = 8,
    tol: float = 1e-6,
    certificate: str | None = "range",
    feedback: ArrayLike | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> Sweep:
    """Compute attractors, exponents and certificates of open reservoirs over a grid of parameters.

    Parameters
    ----------
    reservoir : Reservoir, fitted estimator, or callable
        Reservoir to which the parameters are applied. A callable receives the parameters of a grid
        point as keywords and returns its reservoir; it must be importable if `n_jobs` uses
        processes.
    inputs : array of shape (period, n_features)
        One period of the inputs; a single row of zeros for an autonomous network.
    parameters : dict of name -> values
        The values of each parameter; the grid is their Cartesian product. Unless `reservoir` is a
        callable the names are: "spectral_radius" (W is rescaled to it), "bias" and "input_scaling"
        (factors of the bias and of W_in) and "leak_rate" (replaces the reservoir's leak rate).
    n_initial_states, n_periods, max_multiple, tol
        As in `sample_attractors`, with fewer initial states by default.
    certificate : {"range", "cycle", None}, default="range"
        "range" uses `certify`, for all inputs whose drive W_in u (plus W_fb y) stays within the
        extremes of this drive. "cycle" uses `certify_cycle`, for this drive alone, which holds more
        often and costs more. None computes no certificate.
    feedback : array of shape (period, n_outputs), optional
        Outputs that are fed back at each step; required if the reservoir has feedback weights.
    random_state : None, int, Generator or RandomState, default=None
        Seed for drawing the initial states, which are the same at every grid point.
    n_jobs : int, default=None
        Number of joblib workers for the grid points. The result does not depend on it.

    Returns
    -------
    Sweep

    Raises
    ------
    TypeError, ValueError
        If a name is not known, a list of values is empty or not numeric, W should be rescaled but
        has spectral radius 0, or `sample_attractors` raises one.

    Notes
    -----
    The counts are lower bounds, as in `sample_attractors`; `certified` is a theorem: where it is
    True there is exactly one response. Nothing is certified if the activation has no enclosure or,
    with "cycle", is unbounded.

    The exponent of a cycle is the logarithm of the largest modulus of its multipliers, per step. Up
    to three of the trajectories that reached no cycle are continued for another `n_periods`, and
    their exponents are computed by `lyapunov_exponents`. `exponents` contains the largest of these.

    References
    ----------
    .. [1] Y. A. Kuznetsov, "Elements of Applied Bifurcation Theory", 3rd ed., Springer 2004,
       chapter 4.

    Examples
    --------
    The pitchfork bifurcation of one unit at gain 1, and the certificate below it:

    >>> from reservoir.dynamics import Reservoir
    >>> from reservoir.stability import sweep
    >>> unit = Reservoir([[1.0]], [[1.0]], [0.0])
    >>> found = sweep(unit, [[0.0]], {"spectral_radius": [0.5, 0.9, 2.0]}, random_state=0)
    >>> found.counts, found.certified
    (array([1, 1, 2]), array([ True,  True, False]))
    """
    # The computation of one grid point; the seed is drawn once, so that all points use the same
    # initial states.
    grid = _read_grid(reservoir, parameters)
    check_count("n_initial_states", n_initial_states)
    check_n_jobs(n_jobs)
    if certificate is not None:
        check_choice("certificate", certificate, ("range", "cycle"))
    family: Any = reservoir if _is_family(reservoir) else None
    if family is None:
        warn_of_open_loop(reservoir, periodic_drive(as_reservoir(reservoir), inputs, feedback))
        family = _Family(as_reservoir(reservoir), grid)
    point = _Point(
        family,
        inputs,
        certificate,
        {
            "n_initial_states": n_initial_states,
            "n_periods": n_periods,
            "max_multiple": max_multiple,
            "tol": tol,
            "feedback": feedback,
            "random_state": int(as_generator(random_state).integers(2**31)),
        },
    )
    # All grid points, and their results in the shape of the grid.
    values = [dict(zip(grid, choice, strict=True)) for choice in itertools.product(*grid.values())]
    found = list(run_jobs(point, [(chosen,) for chosen in values], n_jobs))
    shape = tuple(len(axis) for axis in grid.values())
    attractors = np.empty(len(found), dtype=object)
    attractors[:] = [result[0] for result in found]
    return Sweep(
        grid,
        attractors.reshape(shape),
        np.array([result[0].count for result in found]).reshape(shape),
        np.array([result[1] for result in found]).reshape(shape),
        np.array([result[2] for result in found]).reshape(shape),
    )


def _is_family(reservoir: Any) -> bool:
    """Whether the argument is a callable that returns reservoirs, not a reservoir or estimator."""
    return callable(reservoir) and not hasattr(reservoir, "reservoir_")


def _read_grid(reservoir: Any, parameters: Any) -> dict[str, Array]:
    """Return the checked values of each parameter."""
    if not isinstance(parameters, Mapping) or not parameters:
        raise ValueError(
            f"parameters={parameters!r} must be a non-empty dict of name -> values, such as "
            '`parameters = {"spectral_radius": [0.8, 1.2]}`.'
        )
    grid = {}
    for name, values in parameters.items():
        if not _is_family(reservoir):
            check_choice("parameters", name, PARAMETERS)
        axis = as_plain(f"parameters[{name!r}]", values)
        if axis.ndim != 1 or not len(axis):
            raise ValueError(
                f"parameters[{name!r}] must be a non-empty list of numbers; got {values!r}."
            )
        if axis.dtype.kind not in "iuf" or not np.isfinite(axis).all():
            raise ValueError(f"parameters[{name!r}] must be finite numbers; got {values!r}.")
        grid[name] = axis
    return grid


class _Family:
    """Reservoirs made from one by setting parameters; its spectral radius is computed once."""

    def __init__(self, reservoir: Reservoir, grid: Mapping[str, Array]) -> None:
        self.reservoir = reservoir.astype("float64")
        self.radius = 1.0
        if "spectral_radius" in grid:
            self.radius = spectral_radius(self.reservoir.W)
            if grid["spectral_radius"].min() < 0:
                raise ValueError(
                    f"spectral_radius={grid['spectral_radius'].min():g} must be at least 0."
                )
            if self.radius == 0:
                raise ValueError(
                    "W has spectral radius 0 (it is nilpotent), so it cannot be rescaled. "
                    "Give a callable that returns the reservoir for given parameters."
                )

    def __call__(self, **values: float) -> Reservoir:
        reservoir, changes = self.reservoir, {}
        if "spectral_radius" in values:
            changes["W"] = reservoir.W * (float(values["spectral_radius"]) / self.radius)
        if "bias" in values:
            changes["bias"] = reservoir.bias * float(values["bias"])
        if "input_scaling" in values:
            changes["W_in"] = reservoir.W_in * float(values["input_scaling"])
        if "leak_rate" in values:
            changes["leak_rate"] = float(values["leak_rate"])
        return replace(reservoir, **changes)


@dataclass(frozen=True, eq=False)
class _Point:
    """The computation of a grid point, called with its parameters in this process or another."""

    family: Callable[..., Reservoir]
    inputs: Any
    certificate: str | None
    options: dict[str, Any]

    def __call__(self, values: dict[str, float]) -> tuple[Attractors, float, bool]:
        # One thread: the order of sums, and so the last bits, may depend on the number of threads.
        with one_blas_thread():
            reservoir = as_reservoir(self.family(**values))
            found, _ = attractors_of(reservoir, self.inputs, **self.options)
            return found, self._exponent(reservoir, found), self._certified(reservoir)

    def _exponent(self, reservoir: Reservoir, found: Attractors) -> float:
        """Return the largest exponent of the cycles and of some trajectories that reached none."""
        drive = read_drive_series(reservoir, "inputs", self.inputs, self.options["feedback"])
        with np.errstate(divide="ignore"):  # a multiplier 0 is an exponent -inf
            exponents = list(np.log(found.moduli) / (found.multiples * len(drive)))
        whole = drive.repeated(self.options["n_periods"])
        for i in np.flatnonzero(found.labels < 0)[:_N_UNSETTLED]:
            (exponent,) = lyapunov_exponents(
                reservoir,
                whole.X,
                feedback=whole.feedback,
                initial_state=found.final_states[i],
                random_state=self.options["random_state"],
            )
            exponents.append(exponent)
        return float(max(exponents))

    def _certified(self, reservoir: Reservoir) -> bool:
        """Whether the requested certificate holds."""
        if self.certificate is None:
            return False
        feedback = self.options["feedback"]
        try:
            if self.certificate == "cycle":
                return bool(certify_cycle(reservoir, self.inputs, feedback=feedback).holds)
            p = periodic_drive(reservoir, self.inputs, feedback)
            margin = self._rounding(reservoir)
            return bool(certify(reservoir, p.min(axis=0) - margin, p.max(axis=0) + margin).holds)
        except UnboundedActivationError:
            return False

    def _rounding(self, reservoir: Reservoir) -> Array:
        """Return a bound of the rounding error of W_in u + W_fb y, of shape (n_units,)."""
        size = abs(reservoir.W_in) @ np.abs(np.asarray(self.inputs, dtype=float)).max(axis=0)
        if reservoir.W_fb is not None:
            given = np.asarray(self.options["feedback"], dtype=float)
            size = size + np.abs(reservoir.W_fb) @ np.abs(given).max(axis=0)
        n_terms = reservoir.n_features + reservoir.n_outputs + 4
        return n_terms * np.finfo(float).eps * size

"""Growth of the states of unbounded units, relative to their drive."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import caller_level
from reservoir.activations import get_activation
from reservoir.dynamics.reservoir import Reservoir
from reservoir.scaling import SpectralRadiusError, spectral_radius

if TYPE_CHECKING:
    from reservoir.dynamics.saturation import Names, Steps

_WINDOW = 32  # number of recorded steps, at the start of the run and at the end of each block
_GROWN = 1000.0  # a stable slow integrator that starts from zero grows by a factor of some hundred
_BELOW_ONE = 0.95  # spectral radius that the remedy aims at


@saved
class Growth:
    """Growth of the states of unbounded units, relative to the growth of their drive.

    If the inputs grow, the states of a stable reservoir grow in proportion. If states grow faster
    than the largest drive (inputs, outputs fed back, bias) so far, the reservoir itself is
    unstable. `first_size` and `first_drive` are the largest moduli in the first 32 steps after the
    washout, the drive's up to the last of these; `size` is the largest modulus in the last 32 steps
    of any block, `drive` in any step.
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self.first_size = self.first_drive = self.size = self.drive = 0.0

    def add(self, reservoir: Reservoir, skip: int, steps: Steps) -> None:
        """Record the steps from index `skip` on; record all steps if `skip` is negative."""
        skip = max(skip, 0)
        if self.n_rows < _WINDOW:
            end = skip + _WINDOW - self.n_rows
            self.first_drive = max(self.first_drive, _drive(reservoir, steps, end))
            self.first_size = max(self.first_size, _largest(steps.states[skip:end]))
        self.drive = max(self.drive, _drive(reservoir, steps))
        self.size = max(self.size, _largest(steps.states[skip:][-_WINDOW:]))
        self.n_rows += max(len(steps.states) - skip, 0)

    def merge(self, later: Growth) -> None:
        """Add the record of later steps to this one."""
        if self.n_rows < _WINDOW:
            self.first_size = max(self.first_size, later.first_size)
            self.first_drive = max(self.first_drive, later.first_drive)
        self.size, self.drive = max(self.size, later.size), max(self.drive, later.drive)
        self.n_rows += later.n_rows

    def warn(self, reservoir: Reservoir, names: Names) -> bool:
        """Warn if the states grew far more than their drive; return whether it was issued."""
        if self.first_size == 0 or self.first_drive == 0:
            return False
        with np.errstate(over="ignore"):
            growth = np.divide(self.size / self.first_size, self.drive / self.first_drive)
        if growth <= _GROWN or _settles(reservoir):
            return False
        activation = get_activation(reservoir.activation).name
        radius, remedy = _remedy(reservoir)
        warnings.warn(
            f"The states grew {growth:.2g} times as much as the inputs from the first rows to the "
            f"last: {activation} is unbounded{radius}. {remedy}, or use a bounded activation "
            'such as "tanh".',
            UserWarning,
            stacklevel=caller_level(),
        )
        return True


def _largest(values: Array) -> float:
    return float(max(values.max(initial=0.0), -values.min(initial=0.0)))


def _drive(reservoir: Reservoir, steps: Steps, end: int | None = None) -> float:
    """Return the largest modulus of the inputs, the outputs fed back and the biases."""
    received = () if steps.received is None else (steps.received[:end],)
    return max(_largest(each) for each in (steps.inputs[:end], reservoir.bias, *received))


def _settles(reservoir: Reservoir) -> bool:
    """Return whether the states are bounded for bounded inputs, however slowly they settle."""
    try:
        return spectral_radius(_leaky(reservoir.leak_rate, _bound(reservoir))) < 1
    except SpectralRadiusError:
        return False


def _bound(reservoir: Reservoir) -> Any:
    """Return a matrix that bounds how much states can grow in one step: W, or |W| entry by entry.

    For linear units W is exact. For other activations, whose slope is at most 1, |W| is a bound.
    """
    weights = sp.csr_array(reservoir.W)
    linear = get_activation(reservoir.activation).name == "identity"
    return weights if linear else abs(weights)


def _remedy(reservoir: Reservoir) -> tuple[str, str]:
    """Return text that states the leaky radius, and text that advises a stable spectral radius."""
    weights, leak = sp.csr_array(reservoir.W), reservoir.leak_rate
    bound = _bound(reservoir)
    try:
        of_weights, of_bound = spectral_radius(weights), spectral_radius(bound)
        now = spectral_radius(_leaky(leak, weights))
        if of_weights == 0:
            return "", "Use smaller recurrent weights"
        value = _BELOW_ONE * of_weights / of_bound
        while spectral_radius(_leaky(leak, bound * (value / of_weights))) >= 1:
            value /= 2
    except SpectralRadiusError:
        return "", "Lower spectral_radius"
    words = f", and the spectral radius of (1 - leak_rate) I + leak_rate W is {now:.4g}"
    return words, f"Set spectral_radius={value:.3g} to keep the states bounded"


def _leaky(leak: Any, weights: Any) -> Any:
    """Return (1 - a) I + a W, the linear part of a step with leak rate a."""
    rates = np.broadcast_to(np.asarray(leak, dtype=np.float64), weights.shape[:1])
    return sp.diags_array(1 - rates) + sp.diags_array(rates) @ weights

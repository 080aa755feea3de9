"""Growth of units without bounds, beside what drives them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import caller_level
from reservoir.activations import get_activation
from reservoir.dynamics.reservoir import Reservoir
from reservoir.dynamics.unit_steps import Names, Steps
from reservoir.scaling import SpectralRadiusError, spectral_radius

_WINDOW = 32  # steps, the first of all and the last of each block
_GROWN = 1000.0  # slow integrators grow some hundred times from zero
_BELOW_ONE = 0.95


@saved
class Growth:
    """How much units without bounds grow, beside what drives them.

    Inputs that grow take healthy states with them, and states that settle or decay fall behind the
    largest drive so far: where the states gain on it, the growth is the reservoir's own.

    Attributes
    ----------
    n_rows : int
        Steps that have passed behind the washout.
    first_size, first_drive : float
        Largest moduli of the states in the first of these steps, and of what drove the units until
        then.
    size, drive : float
        The same at the ends of all blocks of steps, and in all steps.
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self.first_size = self.first_drive = self.size = self.drive = 0.0

    def add(self, reservoir: Reservoir, skip: int, steps: Steps) -> None:
        """Look at steps from number `skip` on, all of them if that is negative."""
        skip = max(skip, 0)
        if self.n_rows < _WINDOW:
            end = skip + _WINDOW - self.n_rows
            self.first_drive = max(self.first_drive, _drive(reservoir, steps, end))
            self.first_size = max(self.first_size, _largest(steps.states[skip:end]))
        self.drive = max(self.drive, _drive(reservoir, steps))
        self.size = max(self.size, _largest(steps.states[skip:][-_WINDOW:]))
        self.n_rows += max(len(steps.states) - skip, 0)

    def merge(self, later: Growth) -> None:
        """Add what another record has seen of later steps."""
        if self.n_rows < _WINDOW:
            self.first_size = max(self.first_size, later.first_size)
            self.first_drive = max(self.first_drive, later.first_drive)
        self.size, self.drive = max(self.size, later.size), max(self.drive, later.drive)
        self.n_rows += later.n_rows

    def warn(self, reservoir: Reservoir, names: Names) -> bool:
        """Warn if the states grew by far more than what drives them; return whether."""
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
            f"last: {activation} has no bounds{radius}. {remedy}, or take a bounded activation "
            'such as "tanh".',
            UserWarning,
            stacklevel=caller_level(),
        )
        return True


def _largest(values: Array) -> float:
    return float(max(values.max(initial=0.0), -values.min(initial=0.0)))


def _drive(reservoir: Reservoir, steps: Steps, end: int | None = None) -> float:
    """Return the largest modulus among inputs, fed back outputs and biases."""
    received = () if steps.received is None else (steps.received[:end],)
    return max(_largest(each) for each in (steps.inputs[:end], reservoir.bias, *received))


def _settles(reservoir: Reservoir) -> bool:
    """Return whether states cannot grow for ever, however long they take to settle."""
    try:
        return spectral_radius(_leaky(reservoir.leak_rate, _bound(reservoir))) < 1
    except SpectralRadiusError:
        return False


def _bound(reservoir: Reservoir) -> Any:
    """Return what a step multiplies states by, at most.

    Of units that pass on no more than they receive, the moduli of W bound what comes of it.
    """
    weights = sp.csr_array(reservoir.W)
    linear = get_activation(reservoir.activation).name == "identity"
    return weights if linear else abs(weights)


def _remedy(reservoir: Reservoir) -> tuple[str, str]:
    """Return words for the leaky radius, and a spectral radius under which states cannot grow."""
    weights, leak = sp.csr_array(reservoir.W), reservoir.leak_rate
    bound = _bound(reservoir)
    try:
        of_weights, of_bound = spectral_radius(weights), spectral_radius(bound)
        now = spectral_radius(_leaky(leak, weights))
        if of_weights == 0:
            return "", "Give smaller recurrent weights"
        value = _BELOW_ONE * of_weights / of_bound
        while spectral_radius(_leaky(leak, bound * (value / of_weights))) >= 1:
            value /= 2
    except SpectralRadiusError:
        return "", "Lower spectral_radius"
    words = f", and the spectral radius of (1 - leak_rate) I + leak_rate W is {now:.4g}"
    return words, f"Lower it: spectral_radius={value:.3g} would hold the states"


def _leaky(leak: Any, weights: Any) -> Any:
    """Return (1 - a) I + a W, the linear part of a step."""
    rates = np.broadcast_to(np.asarray(leak, dtype=np.float64), weights.shape[:1])
    return sp.diags_array(1 - rates) + sp.diags_array(rates) @ weights

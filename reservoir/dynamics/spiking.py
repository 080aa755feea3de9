"""Spiking networks: leaky integrate-and-fire units with sparse synapses, simulated step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from reservoir._saving import saved
from reservoir._typing import Array

_MOST = 1e6  # in units of the threshold; at this current units fire at their highest possible rate

# Values of Maass, Natschlaeger and Markram (2002). The keys are the kinds of the presynaptic unit
# and of the postsynaptic unit, in this order: E is excitatory, I inhibitory
_PROBABILITY = {"EE": 0.3, "EI": 0.2, "IE": 0.4, "II": 0.1}
_STRENGTH = {"EE": 30.0, "EI": 60.0, "IE": -19.0, "II": -19.0}  # nA, means of gamma distributions
_INPUT_STRENGTH = {"E": 18.0, "I": 9.0}
_THRESHOLD = 15.0  # mV, with a membrane resistance of 1 MOhm: a current of 15 nA reaches it
_REST = 0.9  # background current and reset voltage, relative to the threshold: 13.5 / 15
_SIDE = 3  # units are placed on a grid of 3 x 3 x n points


@saved
@dataclass(frozen=True, eq=False)
class SpikingNetwork:
    """A network of leaky integrate-and-fire units.

    Times are in steps, voltages and currents in multiples of the threshold. The synaptic current of
    a unit decays and is increased by arriving spikes and inputs; the voltage of the unit relaxes
    towards the sum of this current and a background current::

        I(t) = exp(-1 / synapse_time) I(t-1) + W s(t-1) + W_in u(t)
        V(t) = V(t-1) + (1 - exp(-1 / membrane_time)) [background + I(t) - V(t-1)]

    When V reaches 1 the unit fires, s(t) = 1; V is set to `reset` and stays there for the next
    `refractory` steps, (n_units,). Row i of W, (n_units, n_units), and of W_in, (n_units,
    n_channels), contains the weights to unit i.
    """

    W: sp.csr_array
    W_in: sp.csr_array
    refractory: Array
    membrane_time: float
    synapse_time: float
    background: float = _REST
    reset: float = _REST

    @property
    def n_units(self) -> int:
        """Number of units."""
        return int(self.W.shape[0])

    def spikes(self, inputs: Array) -> Array:
        """Return the spikes of each unit for several series, each of which starts at rest.

        The result is bool, (n_series, n_steps, n_units). Inputs, (n_series, n_steps, n_channels),
        are spikes, which are 0 or 1, or currents.
        """
        n_series, n_steps = inputs.shape[:2]
        kept, moved = np.exp(-1.0 / self.synapse_time), -np.expm1(-1.0 / self.membrane_time)
        drive = np.clip(inputs, -_MOST, _MOST).astype(np.float64).transpose(1, 2, 0)
        current = np.zeros((self.n_units, n_series))
        voltage = np.full_like(current, self.reset)
        resting = np.zeros(current.shape, np.int64)
        fired = np.zeros(current.shape, bool)
        spikes = np.empty((n_series, n_steps, self.n_units), bool)
        for t in range(n_steps):
            current *= kept
            current += self.W @ fired.astype(np.float64)
            current += self.W_in @ np.ascontiguousarray(drive[t])
            voltage += moved * (self.background + current - voltage)
            voltage[resting > 0] = self.reset
            fired = voltage >= 1.0
            resting = np.where(fired, self.refractory[:, None], np.maximum(resting - 1, 0))
            voltage[fired] = self.reset
            spikes[:, t] = fired.T
        return spikes


def draw_spiking_network(
    n_units: int,
    n_channels: int,
    generator: np.random.Generator,
    *,
    inhibitory: float,
    connection_length: float,
    recurrent_scaling: float,
    input_scaling: float,
    input_density: float,
    refractory: tuple[int, int],
    **times: Any,
) -> SpikingNetwork:
    """Draw a random network with the connectivity of Maass, Natschlaeger and Markram (2002).

    Units are points of a grid. Two of them at a distance D are connected with probability ``C
    exp(-(D / connection_length)^2)``; C and the mean strength depend on which of the two are
    inhibitory, a fraction `inhibitory` of all. Strengths follow a gamma distribution whose standard
    deviation equals its mean, times the scalings; all outgoing weights of a unit have one sign
    (Dale's principle). `input_density` is the probability that a unit receives a channel,
    `refractory` the periods, in steps, of excitatory and of inhibitory units; `times` are
    `membrane_time` and `synapse_time`.
    """
    of_kinds, of_places, of_inputs = generator.spawn(3)
    inhibits = np.zeros(n_units, bool)
    inhibits[of_kinds.permutation(n_units)[: round(inhibitory * n_units)]] = True
    kinds = np.where(inhibits, "I", "E")
    points = np.stack(np.unravel_index(np.arange(n_units), (n_units, _SIDE, _SIDE)), axis=1)
    rows, columns, values = [], [], []
    for unit in range(n_units):  # one unit at a time, so that memory grows linearly
        pairs = np.char.add(kinds[unit], kinds)
        distance = np.linalg.norm((points - points[unit]) / connection_length, axis=1)
        chance = _by_kind(_PROBABILITY, pairs) * np.exp(-(distance**2))
        chance[unit] = 0.0
        targets = np.flatnonzero(of_places.random(n_units) < chance)
        mean = _by_kind(_STRENGTH, pairs[targets]) * recurrent_scaling / _THRESHOLD
        rows.append(targets)
        columns.append(np.full(targets.size, unit))
        values.append(of_places.standard_exponential(targets.size) * mean)
    parts = [np.concatenate(part) for part in (values, rows, columns)]
    W = sp.csr_array((parts[0], (parts[1], parts[2])), shape=(n_units, n_units))
    strength = _by_kind(_INPUT_STRENGTH, kinds)[:, None] * input_scaling / _THRESHOLD
    receives = of_inputs.random((n_units, n_channels)) < input_density
    W_in = sp.csr_array(receives * of_inputs.standard_exponential(receives.shape) * strength)
    return SpikingNetwork(W, W_in, np.where(inhibits, *refractory[::-1]), **times)


def _by_kind(table: dict[str, float], kinds: Array) -> Array:
    """Return the table's entry for each kind, as an array."""
    return np.array([table[str(kind)] for kind in kinds], dtype=float)

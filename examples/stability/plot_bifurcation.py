"""
Bifurcations: from chaos to one response, by the bias
=====================================================

As the bias of a network grows, its attractors shrink from chaos to one cycle, which is proved to be
the only response.

A network of spectral radius 1.5 under a periodic drive, and every state that one of its units takes
on the attractors that were found. From left to right the bias grows: what is a cloud ends
as five points, the states of one cycle. Where it is hatched, that is proved.
"""

import matplotlib.pyplot as plt
import numpy as np

from reservoir import plotting
from reservoir.building import build_reservoir
from reservoir.dynamics import run
from reservoir.stability import drive_range, stable_bias, sweep

period = 5
inputs = np.sin(2 * np.pi * np.arange(period) / period)[:, None]
options = {"spectral_radius": 1.5, "input_scaling": 0.2, "random_state": 0}
unbiased = build_reservoir(40, 1, bias_scaling=0.0, **options)
low, high = drive_range(unbiased, -1.0, 1.0)
bias = stable_bias(unbiased.W, low, high, random_state=0)
network = build_reservoir(40, 1, bias=bias, **options)

# %%
# Factor 1 is a bias that is certified for all inputs within [-1, 1]. The certificate asked for here
# is that of this one drive, and holds for smaller ones, too.
factors = np.linspace(0.0, 1.1, 56)
found = sweep(
    network,
    inputs,
    {"bias": factors},
    n_initial_states=10,
    n_periods=100,
    certificate="cycle",
    random_state=0,
)
certified = factors[found.certified]
several = factors[found.counts != 1]
print(f"certified from factor {certified.min():.2f} on")
print(f"other than one attractor found up to factor {several.max():.2f}")
assert (found.counts[found.certified] == 1).all()


# %%
# The states of the cycles; of trajectories that reached none, those of 20 periods more.
unit = int(np.argmin(abs(bias)))  # the least saturated


def states_of(attractors, factor):
    clouds = [states[:, unit] for states in attractors.states]
    moved = build_reservoir(40, 1, bias=factor * bias, **options)
    starts = attractors.final_states[attractors.labels < 0]
    series = np.tile(inputs, (20, 1))
    clouds += [run(moved, series, initial_state=start)[:, unit] for start in starts]
    return np.concatenate(clouds)


points = [
    states_of(a, factor) for a, factor in zip(found.attractors, factors, strict=True)
]
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
plotting.bifurcation(
    factors, points, certified=found.certified, parameter="bias factor", ax=ax
)
ax.set_ylabel(f"state of unit {unit}")
plt.show()

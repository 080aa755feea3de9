"""
Phase portraits: one cycle, and where there are two
===================================================

Twice the same two units under the same periodic drive, at a norm of 3.78, from the same initial
states. Left, a certified bias: all trajectories end in one cycle. Right, a bias that only meets the
row-norm bound: there are two cycles, and the start decides.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

from reservoir import plotting
from reservoir.dynamics import Reservoir, run
from reservoir.scaling import scale_to_norm
from reservoir.stability import (
    bias_bounds,
    certify,
    certify_cycle,
    drive_range,
    find_limit_cycle,
    sample_attractors,
    stable_bias,
)

period = 5
inputs = np.sin(2 * np.pi * np.arange(period) / period)[:, None]
rng = np.random.default_rng(561)  # chosen: its two cycles lie apart, as the picture wants it
W = scale_to_norm(rng.standard_normal((2, 2)), 3.78)
network = Reservoir(W, rng.uniform(-1, 1, (2, 1)), np.zeros(2))
low, high = drive_range(network, -1.0, 1.0)

# %%
# `stable_bias` finds a bias that `certify` proves for every input within [-1, 1]. `certify_cycle`
# speaks of this one drive, and proves a faster rate. That the cycle is unique is the theorem; the
# cycle itself is found by Newton's method, and its multipliers are inside the unit circle.
one = replace(network, bias=stable_bias(W, low, high, random_state=0))
cycle = find_limit_cycle(one, inputs)
print(f"certified bias {one.bias.round(2)}:")
print(f"  for all inputs within [-1, 1]: {certify(one, low, high)}")
print(f"  for this drive alone: rate {certify_cycle(one, inputs).rate:.4f} per step")
print(f"  cycle: residual {cycle.residual:.1e}, |multipliers| {abs(cycle.multipliers).round(4)}")

# %%
# The row-norm bound (Bay 2017, proposition 3.5) with a margin of 2 %, and its sign for each unit
# chosen. The source's own figure 3.7 draws such a network of norm 3.78. Sampling finds two cycles.
bounds = bias_bounds(W, low, high)
two = replace(network, bias=1.02 * np.array([bounds.upper[0], bounds.lower[1]]))
found = sample_attractors(two, inputs, random_state=0)
print(f"bias {two.bias.round(2)}:")
print(f"  meets the row-norm bound: {bounds.allow(two.bias)}")
print(f"  certified for this drive: {certify_cycle(two, inputs).holds}")
print(f"  {found.count} cycles, |largest multipliers| {found.moduli.round(4)}")
print(f"  reached from {found.basins.round(2)} of {len(found.labels)} initial states")


# %%
# A trajectory begins with its initial state. With two units of this norm one is near saturation on
# each of the cycles, which therefore look almost like lines.
def trajectories(reservoir, starts):
    series = np.tile(inputs, (8, 1))
    return [np.vstack([x, run(reservoir, series, initial_state=x)]) for x in starts]


starts = np.array([[-0.9, -0.9], [0.9, 0.9], [-0.8, 0.6], [0.8, -0.7]])
fig, (left, right) = plt.subplots(1, 2, figsize=(8, 4.4), layout="constrained")
plotting.phase_portrait(trajectories(one, starts), cycle=cycle, ax=left)
plotting.phase_portrait(trajectories(two, starts), cycle=found, ax=right)
left.set_title("certified bias", fontsize="medium")
right.set_title("row-norm bound met, not certified", fontsize="medium")
plt.show()

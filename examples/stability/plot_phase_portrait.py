"""
Phase portraits: a certified cycle, and where there are two
===========================================================

Two hundred units reach one cycle from any start, which is proved; two units have two cycles until a
bias leaves them one.

Two hundred units under a periodic input. Wherever they start, they come to one closed curve, and it
is proved that they must. Beside it stand the multipliers of the cycle: what a small distance from
it is multiplied by in each period. Further down are two units with two cycles, where the start
decides, and how a certified bias leaves them one.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

from reservoir import plotting
from reservoir.building import build_reservoir
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

# %%
# A certified limit cycle
# -----------------------
# The input has a period of 80 steps and two harmonics. The recurrent weights are an orthogonal
# matrix times 0.99. Such a network is certified without a bias, and with any: its norm is 0.99.
n_units, period = 200, 80
phase = 2 * np.pi * np.arange(period) / period
inputs = (np.sin(phase) + 0.4 * np.sin(2 * phase + 2.4))[:, None] / 1.4
network = build_reservoir(
    n_units,
    1,
    topology="orthogonal",
    spectral_radius=0.99,
    leak_rate=0.3,
    input_scaling=0.2,
    bias_scaling=0.0,
    random_state=0,
)
certificate = certify(network, *drive_range(network, -1.0, 1.0))
cycle = find_limit_cycle(network, inputs, n_transient=10)
print(certificate)
print(
    f"cycle of {len(cycle.states)} steps, residual {cycle.residual:.1e}, "
    f"stable: {cycle.stable}"
)

# %%
# What is proved. At each step the Euclidean distance between two trajectories shrinks, at least by
# the certified rate: the weights of the norm are all 1, and the slopes of tanh nowhere exceed the 1
# that the proof allows them. At the start it is at most the distance between opposite corners of
# the cube [-1, 1]^200. So, after so many periods, every trajectory is so close to the cycle.
assert np.ptp(certificate.weights) == 0
assert certificate.gains.min() >= 1
diagonal, shrinks = 2 * np.sqrt(n_units), certificate.rate**period
bands = {f"proved after {k} periods": diagonal * shrinks**k for k in (16, 20)}


# %%
# What is seen. Trajectories start outside the curve and inside it, each at its own step of the
# period. They arrive much sooner than the proof, which covers the slowest of all inputs and starts.
def trajectory(t, start):
    series = np.roll(np.tile(inputs, (3, 1)), -t, axis=0)
    return np.vstack([start, run(network, series, initial_state=start)])


before = np.roll(cycle.states, 1, axis=0)  # row t is the state before step t
starts = [(t, 0.3 * np.sign(before[t])) for t in range(0, period, 4)]
starts += [(t, before.mean(axis=0)) for t in range(0, period, 10)]
paths = [trajectory(t, start) for t, start in starts]

print(
    f"periods, distance from the cycle: proved, and the largest of {len(paths)} "
    "trajectories"
)
for k in range(4):
    seen = max(
        np.linalg.norm(path[k * period] - before[t])
        for (t, _), path in zip(starts, paths, strict=True)
    )
    print(f"{k:7d} {diagonal * shrinks**k:5.1f} {seen:8.4f}")
    assert seen <= diagonal * shrinks**k

# %%
# The bands around the curve are that proof: 16 and 20 periods after any start the state is inside.
# (It is so in all 200 dimensions; seen on a plane distances are shorter, never longer.) The disc on
# the right is proved, too: it holds all multipliers. The curve is computed, not proved, but
# it is where the true one is: `resolution`, what rounding can sustain, is far below a line's width.
assert abs(cycle.multipliers[0]) <= shrinks

fig, (left, right) = plt.subplots(
    1, 2, figsize=(6.2, 4.2), layout="constrained", width_ratios=(7, 4)
)
portrait = {"units": "pca", "n_transient": 2 * period, "smooth": True, "band": bands}
plotting.phase_portrait(paths, cycle=cycle, **portrait, legend=False, ax=left)
plotting.multipliers(cycle, bound=shrinks, legend=False, ax=right)
fig.legend(loc="outside lower center", ncols=3, frameon=False, fontsize="small")
fig.savefig("limit_cycle.png", dpi=160)
print("Picture: limit_cycle.png, in the folder that this was called from")

# %%
# One cycle, or two
# -----------------
# Figure 3.7 of Bay (2017) is the portrait of two units under a drive of period 5, with weights of
# norm 3.78: two starts lead to one cycle. Weights, input and bias are not printed. Here are two
# such units, twice. Left, a certified bias: all starts end in one cycle. Right, a bias that only
# meets the row-norm bound, as the source asks: there are two cycles, and the start decides.
period = 5
inputs = np.sin(2 * np.pi * np.arange(period) / period)[:, None]
# This seed was chosen: its two cycles lie apart, as the picture wants it.
rng = np.random.default_rng(561)
W = scale_to_norm(rng.standard_normal((2, 2)), 3.78)
network = Reservoir(W, rng.uniform(-1, 1, (2, 1)), np.zeros(2))
low, high = drive_range(network, -1.0, 1.0)

# %%
# `stable_bias` finds a bias that `certify` proves for every input within [-1, 1]. `certify_cycle`
# speaks of this one drive, and proves a faster rate. That the cycle is unique is the theorem; the
# cycle itself is found by Newton's method, and its multipliers are inside the unit circle.
one = replace(network, bias=stable_bias(W, low, high, random_state=0))
unique = find_limit_cycle(one, inputs)
print(f"certified bias {one.bias.round(2)}:")
print(f"  for all inputs within [-1, 1]: {certify(one, low, high)}")
print(f"  for this drive alone: rate {certify_cycle(one, inputs).rate:.4f} per step")
print(
    f"  cycle: residual {unique.residual:.1e}, |multipliers| "
    f"{abs(unique.multipliers).round(4)}"
)

# %%
# The row-norm bound (Bay 2017, proposition 3.5) with a margin of 2 %, and its sign for each unit
# chosen. Sampling finds two cycles.
bounds = bias_bounds(W, low, high)
two = replace(network, bias=1.02 * np.array([bounds.upper[0], bounds.lower[1]]))
found = sample_attractors(two, inputs, random_state=0)
print(f"bias {two.bias.round(2)}:")
print(f"  meets the row-norm bound: {bounds.allow(two.bias)}")
print(f"  certified for this drive: {certify_cycle(two, inputs).holds}")
print(f"  {found.count} cycles, |largest multipliers| {found.moduli.round(4)}")
print(f"  reached from {found.basins.round(2)} of {len(found.labels)} initial states")

# %%
# One call draws each: starts, where they are after each period, and the cycles. Each of the five
# markers of a cycle is the fixed point of its phase. A start has the colour of the cycle that it
# reaches. With two units of this norm one is near saturation on each of the cycles, which therefore
# look almost like lines. More such portraits: :doc:`/gallery/stability/plot_portraits`.
plt.rcParams["figure.figsize"] = (4.5, 4.2)
for reservoir, title in (
    (one, "certified bias"),
    (two, "row-norm bound met, not certified"),
):
    ax = plotting.phase_portrait(reservoir, inputs=inputs)
    ax.set_title(title, fontsize="medium")
plt.show()

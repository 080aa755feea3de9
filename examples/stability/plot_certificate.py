"""
Certificates: a box for all that can last
=========================================

A proved box for every state that a network can have in the end: narrow with a certified bias, wide
with a small one.

The bars hold, unit by unit, every state that the network can have in the end, whatever the input
does within its range. Above, with a certified bias, they are narrow, and inside them the network
contracts. Below, with a small bias, they say next to nothing, and nothing is certified: that is not
to say that the network misbehaves.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

from reservoir import plotting
from reservoir.building import build_reservoir
from reservoir.dynamics import Reservoir, run
from reservoir.stability import certify, drive_range, stable_bias

small = build_reservoir(
    50, 1, spectral_radius=1.2, input_scaling=0.2, bias_scaling=0.1, random_state=0
)
low, high = drive_range(small, -1.0, 1.0)
stable = replace(small, bias=stable_bias(small.W, low, high, random_state=0))

# %%
# Three inputs that keep within the range: random numbers, random signs, and a slow wave. Each runs
# for 300 steps, of which the first 100 are left out: the box holds in the end, not from the start.
# That much is true of both boxes; only the first is narrow enough for the second step of the proof.
rng = np.random.default_rng(0)
drives = [
    rng.uniform(-1, 1, (300, 1)),
    rng.choice([-1.0, 1.0], (300, 1)),
    np.sin(2 * np.pi * np.arange(300) / 60)[:, None],
]
fig, axes = plt.subplots(2, 1, figsize=(7.5, 6.5), layout="constrained")
for name, network, ax in [
    ("certified bias", stable, axes[0]),
    ("small bias", small, axes[1]),
]:
    certificate = certify(network, low, high)
    states = np.concatenate([run(network, X)[100:] for X in drives])
    width = certificate.box[1] - certificate.box[0]
    seen = np.ptp(states, axis=0)
    print(f"{name}: mean |b| {abs(network.bias).mean():.2f}, {certificate}")
    print(
        f"  mean width of the box {width.mean():.3f}, of the sampled states "
        f"{seen.mean():.3f}"
    )
    assert (states >= certificate.box[0]).all()
    assert (states <= certificate.box[1]).all()
    plotting.certificate(certificate, states, units=25, ax=ax)
    ax.set_title(f"{name}: {ax.get_title(loc='left')}", loc="left", fontsize="medium")
plt.show()

# %%
# The rate counts from inside the box. How long it takes from any start is proved as well:
# ``certificate.steps_to(1e-6)``. One unit of weight 3.78 with a leak rate of .3 has a rate of .7,
# whatever its bias. With the least bias that is certified (above) states linger where they would
# stay for a slightly smaller one; `stable_bias` keeps away from there by a margin (below), and they
# are forgotten four times as soon.
fig, axes = plt.subplots(2, 1, figsize=(7.5, 6), sharex=True, layout="constrained")
for margin, ax in [(0.0, axes[0]), (0.01, axes[1])]:
    bias = stable_bias([[3.78]], 0.0, 0.0, margin=margin, leak_rate=0.3, random_state=0)
    unit = Reservoir([[3.78]], [[1.0]], bias, leak_rate=0.3)
    certificate = certify(unit, 0.0, 0.0)
    starts = np.linspace(-1, 1, 9)[:, None]
    runs = [run(unit, np.zeros((400, 1)), initial_state=x) for x in starts]
    runs = np.array(
        [np.r_[x[None], states] for x, states in zip(starts, runs, strict=True)]
    )
    differences = np.abs(runs[1:] - runs[0]).max(axis=2).T
    plotting.forgetting(certificate, differences, ax=ax)
    print(
        f"margin {margin}: bias {bias[0]:.3f}, {certificate}, "
        f"{certificate.steps_to(1e-6)} steps"
    )
    ax.set_title(f"margin {margin}", loc="left", fontsize="medium")
    ax.set_xlim(0, 330)
plt.show()

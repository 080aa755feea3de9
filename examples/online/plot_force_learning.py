"""
Train a loop while it runs
==========================

A network learns in closed loop from its first step on (FORCE learning), instead of by teacher
forcing.

A network that feeds its outputs back to itself can be taught in two ways. `ESNRegressor.fit` feeds
back the *targets* (teacher forcing), and nobody knows whether the loop stays near them afterwards.
FORCE learning [1]_ lets the network hear its *own outputs* from the first step on, and corrects the
readout so quickly that these are nearly right at once. The errors that remain go round the loop,
so that the weights are learned on the states that the network visits when it runs alone.

.. [1] D. Sussillo and L. F. Abbott, "Generating coherent patterns of activity from chaotic neural
   networks", Neuron 63, 2009.
"""

import matplotlib.pyplot as plt
import numpy as np

from reservoir import ESNRegressor, force_train, plotting
from reservoir.datasets import lorenz
from reservoir.dynamics import run

# %%
# Before, during and after
# ------------------------
# The pattern is a sum of four sines, whose slowest period is 600 steps. The units, 300 with a
# spectral radius of 1.5 and no bias, are active by themselves: the weights of the readout, and with
# them the output, are zero for 600 steps (`washout`), and still the units never come to rest.
period, n_before, n_fit, n_alone = 600, 600, 3600, 2400
t = 2 * np.pi * np.arange(n_fit + n_alone) / period
y = np.sin(t) + np.sin(2 * t) / 2 + np.sin(3 * t) / 6 + np.sin(4 * t) / 3

esn = ESNRegressor(
    300,
    spectral_radius=1.5,
    leak_rate=0.1,
    bias_scaling=0.0,
    feedback=True,
    washout=n_before,
    random_state=2,
)
model, history = force_train(esn, y[:n_fit], return_history=True)
alone = model.forecast(n_alone)
print(
    f"alone for {n_alone} steps: error {np.sqrt(np.mean((alone - y[n_fit:]) ** 2)):.4f}"
)

# %%
# From step 600 on each second step corrects the weights. The error falls by a hundred times at
# once; the weights take longer to settle. From step 3600 on the loop runs alone.
fig, (top, middle, low) = plt.subplots(
    3, 1, figsize=(7, 6.5), sharex=True, layout="constrained", height_ratios=[2, 1, 1]
)
plotting.forecast(y, {"output": alone}, legend=False, ax=top)
top.plot(history.outputs[:, 0], color="C1", linewidth=1, label="output while learning")
plotting.running_error(
    history.errors,
    window=20,
    coefficients=history.weight_norm,
    legend=False,
    ax=[middle, low],
)
for ax in (top, middle, low):
    ax.axvspan(n_before, n_fit, color="C2", alpha=0.12, linewidth=0)
top.set(xlabel="", ylabel="output", ylim=(-2, 2.9))
for x, text in [(300, "before"), (2100, "learning"), (4800, "alone")]:
    top.text(x, 2.4, text, ha="center", fontsize="large")
fig.legend(loc="outside upper left", ncols=4, frameon=False)

# %%
# Three of the units before and after training. Only the readout was learned: the loop through it
# has turned irregular activity into a cycle of the pattern's period.
reservoir, n_shown = model.reservoir_, 3 * period
start = np.random.default_rng(0).uniform(-0.5, 0.5, 300)
nothing = np.empty((2000 + n_shown, 0))
silence = np.zeros((len(nothing), 1))
before = run(reservoir, nothing, feedback=silence, initial_state=start)[2000:, :3]
after = model.states(np.empty((n_shown, 0)))[:, :3]

fig, axes = plt.subplots(2, 1, figsize=(7, 4), sharex=True, layout="constrained")
for ax, states, title in zip(axes, (before, after), ("before", "after"), strict=True):
    plotting.states(states, ax=ax)
    ax.set_title(title)
axes[0].set_xlabel("")

# %%
# A chaotic target
# ----------------
# Lorenz's system in three variables. Here the first corrections, learned while the loop was far
# from the attractor, must be forgotten: ``forgetting=0.999``. No loop can follow chaos for long;
# what counts is that it goes on drawing the same butterfly, and that each maximum of z is followed
# by the next one as in the true system.
orbit = lorenz(18000, dt=0.01)
orbit = (orbit - orbit.mean(axis=0)) / (2 * orbit.std(axis=0))
chaotic = ESNRegressor(
    300, spectral_radius=1.2, leak_rate=0.3, feedback=True, random_state=0
)
follower = force_train(chaotic, orbit[:8000], alpha=1e-4, forgetting=0.999)
rows = follower.forecast(10000)


def successive_maxima(z):
    peaks = z[1:-1][(z[1:-1] > z[:-2]) & (z[1:-1] > z[2:])]
    return peaks[:-1], peaks[1:]


fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3.3), layout="constrained")
left.plot(*orbit[8000:12000, ::2].T, color="0.75", linewidth=2.5, label="system")
left.plot(*rows[:4000, ::2].T, color="C0", linewidth=0.8, label="loop alone")
left.set(xlabel="x", ylabel="z")
right.plot(*successive_maxima(orbit[8000:, 2]), "o", color="0.75", markersize=7)
right.plot(*successive_maxima(rows[:, 2]), ".", color="C0", markersize=5)
right.set(xlabel="maximum of z", ylabel="next maximum")
fig.legend(loc="outside upper left", ncols=2, frameon=False)

plt.show()

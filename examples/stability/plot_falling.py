"""
Trajectories that fall into proved bands
========================================

Twenty-eight trajectories of two hundred units fall, step by step, into the bands around a limit
cycle that a proof promises for any start.

The network is that of :doc:`/gallery/stability/plot_phase_portrait`, which explains the proof: 16
and 20 periods after any start, every trajectory is inside the wide and inside the narrow band. Here
it is seen how soon these starts are inside. The animation is the portrait itself, whose curves are
revealed one step after the other.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter

from reservoir import plotting
from reservoir.building import build_reservoir
from reservoir.dynamics import run
from reservoir.stability import certify, drive_range, find_limit_cycle

# %%
# The network, its cycle and the bands
# ------------------------------------
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
cycle = find_limit_cycle(network, inputs)
shrinks = certify(network, *drive_range(network, -1.0, 1.0)).rate ** period
bands = {
    f"proved after {k} periods": 2 * np.sqrt(n_units) * shrinks**k for k in (16, 20)
}

# %%
# Twenty-eight starts
# -------------------
# Eight begin at the mean state of the cycle, twenty outside, each at its own step of the period.
before = np.roll(cycle.states, 1, axis=0)  # row t is the state before step t
starts = [(t, 0.3 * np.sign(before[t])) for t in range(0, period, 4)]
starts += [(t, before.mean(axis=0)) for t in range(0, period, 10)]
paths, distances = [], []
for t, start in starts:
    series = np.roll(np.tile(inputs, (3, 1)), -t, axis=0)
    path = np.vstack([start, run(network, series, initial_state=start)])
    steps = (t + np.arange(len(path))) % period
    paths.append(path)
    distances.append(np.linalg.norm(path - before[steps], axis=1))
distances = np.array(distances)
for name, distance in bands.items():
    last = (distances > distance).any(axis=0).nonzero()[0].max() + 1
    print(
        f"{name}, distance {distance:.2f}: all {len(paths)} are inside after {last} steps"
    )

# %%
# The portrait, and the animation
# -------------------------------
# First the portrait, in one call. A smooth curve has twelve points from one state to the next: each
# picture of the animation shows where the trajectories are, and the last twelve steps of each. How
# many are inside the wide band and how many inside the narrow one is counted in all two hundred
# dimensions.
PER_STEP, TAIL = 12, 12
plt.rcParams["figure.figsize"] = (4.5, 4.4)
ax = plotting.phase_portrait(
    paths,
    cycle=cycle,
    units="pca",
    n_transient=2 * period + 3,
    smooth=True,
    band=bands,
)
curves = [
    (line, *line.get_data())
    for line in ax.get_lines()
    if line.get_label().endswith("transient")
]
(heads,) = ax.plot([], [], "o", color="C3", markersize=4, zorder=6)
title = ax.set_title(" ", fontsize="medium")


def show(step):
    now = PER_STEP * step
    for line, x, y in curves:
        tail = slice(max(0, now - PER_STEP * TAIL), now + 1)
        line.set_data(x[tail], y[tail])
    heads.set_data([x[now] for _, x, _ in curves], [y[now] for _, _, y in curves])
    wide, narrow = ((distances[:, step] <= d).sum() for d in bands.values())
    title.set_text(f"step {step}: {wide} and {narrow} of {len(paths)} are inside")


animation = FuncAnimation(ax.figure, show, frames=range(0, 2 * period + 3, 2))
animation.save("falling.gif", writer=PillowWriter(fps=12), dpi=80)
size = Path("falling.gif").stat().st_size
print(f"falling.gif, in the folder that this was called from: {size / 1e6:.1f} MB")
assert size < 1e6
for line, x, y in curves:
    line.set_data(x, y)
plt.show()

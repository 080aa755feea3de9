"""
Transients: how long a network remembers its start
==================================================

Five measures of how long a network remembers its start, over the spectral radius and for two
biases.

Five measures of the same networks over the spectral radius, with a small bias and with a larger
one. The start is forgotten the more slowly the larger the radius, until it is not forgotten at all:
the distance between responses leaves zero where the exponent crosses it. By then the memory of the
input is past its peak. With the larger bias all of this happens at larger radii.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

from reservoir import ESNRegressor
from reservoir.building import build_reservoir
from reservoir.datasets import narma
from reservoir.metrics import memory_capacity
from reservoir.stability import (
    consistency,
    echo_state_index,
    lyapunov_exponents,
    transient_length,
)

X = np.random.default_rng(0).uniform(-0.5, 0.5, (2000, 1))
radii = np.linspace(0.4, 2.2, 10)


def length_or_nan(reservoir):
    try:
        return transient_length(reservoir, X, random_state=0)
    except ValueError:  # the states do not agree within X
        return np.nan


# %%
# All are measured, not proved: with 10 initial states, and under one random input.
measures = {
    "steps until the start\nis forgotten (to 1e-6)": length_or_nan,
    "conditional Lyapunov\nexponent per step": lambda r: lyapunov_exponents(
        r, X, random_state=0
    )[0],
    "echo-state index:\nmean distance": lambda r: echo_state_index(
        r, X, washout=1000, random_state=0
    ),
    "consistency": lambda r: consistency(r, X, washout=1000, random_state=0),
    "memory capacity": lambda r: memory_capacity(
        r, n_train=1500, n_test=1500, random_state=0
    ),
}
fig, axes = plt.subplots(2, 3, figsize=(8.5, 5), layout="constrained")
for scaling, style in [(0.1, "C0o-"), (0.8, "C1s--")]:
    network = build_reservoir(
        100,
        1,
        spectral_radius=1.0,
        input_scaling=0.4,
        bias_scaling=scaling,
        random_state=0,
    )
    networks = [replace(network, W=radius * network.W) for radius in radii]
    curves = {
        name: [measure(r) for r in networks] for name, measure in measures.items()
    }
    label = f"bias within {scaling}"
    for ax, (name, values) in zip(axes.flat, curves.items(), strict=False):
        ax.plot(radii, values, style, markersize=4, label=label)
        ax.set_title(name, fontsize="medium")
        label = None
    lengths = dict(
        zip(radii.round(1).tolist(), curves[next(iter(measures))], strict=True)
    )
    print(
        f"bias within {scaling}: steps until the start is forgotten, by spectral radius"
    )
    print("  " + ", ".join(f"{r}: {n}" for r, n in lengths.items()))

axes[0, 0].set_yscale("log")
axes[0, 1].axhline(0, color="0.5", linewidth=1)
for ax in axes.flat[:5]:
    ax.set(xlabel="spectral radius", xlim=(0.3, 2.3))
axes[1, 2].axis("off")
fig.legend(loc="outside lower center", ncols=2, frameon=False)

# %%
# An estimator leaves out what it measures: ``washout="measured"`` plays the training series from
# different starts, and skips the rows on which the states still differ. The leak rate is 1, as in
# the networks above; with lower ones starts are remembered longer.
X, y = narma(1500, random_state=0)
for radius in (0.5, 0.9):
    esn = ESNRegressor(
        100,
        spectral_radius=radius,
        leak_rate=1.0,
        washout="measured",
        random_state=0,
    ).fit(X, y)
    steps = transient_length(esn, X, random_state=0)
    print(f"washout measured for spectral radius {radius}: {steps} rows")
plt.show()

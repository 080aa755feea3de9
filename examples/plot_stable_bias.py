"""
A certified bias: what it costs, and what it buys
=================================================

A bias saturates units, and saturated units remember less. Look at the hatched bars: of two biases
that are certified, the smallest is the worse one. The one that keeps the units steep remembers about
as much at every spectral radius, and at 1.5 more than the network without bias.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

from reservoir import ESNRegressor
from reservoir.building import build_reservoir
from reservoir.datasets import narma
from reservoir.metrics import memory_capacity, nrmse
from reservoir.stability import certify, drive_range, stable_bias

# %%
# Networks of 60 units, inputs within [-0.5, 0.5] times weights up to 0.4, so that the drive keeps
# within 0.2. "magnitude" asks for the smallest mean modulus of the bias, "slope" for the largest mean
# slope of the activations. Half of the former is not certified. Three seeds: median and range.
radii, seeds = [0.9, 1.2, 1.5], range(3)
names = ["no bias", "half the smallest", "smallest certified", "steepest certified"]
capacity = np.zeros((len(seeds), len(radii), len(names)))
certified = np.zeros(capacity.shape, dtype=bool)
for i, seed in enumerate(seeds):
    for j, radius in enumerate(radii):
        network = build_reservoir(
            60,
            1,
            spectral_radius=radius,
            input_scaling=0.4,
            bias_scaling=0.0,
            random_state=seed,
        )
        low, high = drive_range(network, -0.5, 0.5)
        least, steep = (
            stable_bias(network.W, low, high, objective=objective, random_state=seed)
            for objective in ("magnitude", "slope")
        )
        for k, bias in enumerate([network.bias, 0.5 * least, least, steep]):
            biased = replace(network, bias=bias)
            certified[i, j, k] = certify(biased, low, high).holds
            capacity[i, j, k] = memory_capacity(
                biased, n_train=2000, n_test=2000, random_state=seed
            )

print("memory capacity, median of seeds 0 to 2, and how many of the three are certified:")
for k, name in enumerate(names):
    values = zip(np.median(capacity, axis=0)[:, k], certified.sum(axis=0)[:, k], strict=True)
    print(f"  {name:18s}", "   ".join(f"{c:5.1f} ({n})" for c, n in values))

fig, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
styles = [("white", ""), ("0.8", ""), ("0.8", "////"), ("firebrick", "////")]
for k, (name, (color, hatch)) in enumerate(zip(names, styles, strict=True)):
    c = capacity[:, :, k]
    middle = np.median(c, axis=0)
    places = np.arange(len(radii)) + 0.2 * (k - 1.5)
    error = [middle - c.min(axis=0), c.max(axis=0) - middle]
    ax.bar(places, middle, 0.18, color=color, hatch=hatch, edgecolor="black", label=name)
    ax.errorbar(places, middle, error, color="black", linestyle="none", capsize=2)
ax.set_xticks(range(len(radii)), labels=map(str, radii))
ax.set(xlabel="spectral radius", ylabel="memory capacity")
ax.legend(title="hatched: certified", fontsize="small")

# %%
# In an estimator, ``bias="stable"`` takes the range of the inputs from the data, a tenth wider on both
# sides, and stores what was proved: whatever input of that range comes later, the network will
# forget how it was started. The task is NARMA10, from 2000 rows.
X, y = narma(4000, order=10, random_state=0)
for bias in ("uniform", "stable"):
    errors = []
    for seed in seeds:
        esn = ESNRegressor(
            100, spectral_radius=1.2, input_scaling=0.1, bias=bias, alpha=1e-8, random_state=seed
        ).fit(X[:2000], y[:2000])
        errors.append(nrmse(y[2000:], esn.predict(X[2000:])))
    print(f"bias={bias!r}: NRMSE of seeds 0 to 2 {np.round(errors, 3)}")
print(esn.certificate_)
print(f"  for inputs from {esn.certificate_.input_range[0]} to {esn.certificate_.input_range[1]}")
plt.show()

"""
A certified bias: what it costs, and what it buys
=================================================

Compare what certified biases cost in memory, beside orthogonal weights that are certified without
one.

A bias saturates units, and saturated units remember less. Look at the hatched bars: of two biases
that are certified, the smallest is the worse one. The one that keeps the units steep remembers
about as much at every spectral radius, and at 1.5 more than the network without bias. The dashed
line is what other weights remember, which are certified as they are: an orthogonal W.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

from reservoir import ESNRegressor
from reservoir.building import build_reservoir
from reservoir.datasets import load_sunspots
from reservoir.metrics import memory_capacity, nrmse
from reservoir.stability import certify, design, drive_range, stable_bias

# %%
# Networks of 50 units, inputs within [-0.5, 0.5] times weights up to 0.4, so that the drive keeps
# within 0.2. "magnitude" asks for the smallest mean modulus of the bias, "slope" for the largest
# mean slope of the activations. Half of the former is not certified. Three seeds: median and range.
radii, seeds = [0.9, 1.2, 1.5], range(3)
names = ["no bias", "half the smallest", "smallest certified", "steepest certified"]
capacity = np.zeros((len(seeds), len(radii), len(names)))
certified = np.zeros(capacity.shape, dtype=bool)
for i, seed in enumerate(seeds):
    for j, radius in enumerate(radii):
        network = build_reservoir(
            50,
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

print(
    "memory capacity, median of seeds 0 to 2, and how many of the three are certified:"
)
for k, name in enumerate(names):
    values = zip(
        np.median(capacity, axis=0)[:, k], certified.sum(axis=0)[:, k], strict=True
    )
    print(f"  {name:18s}", "   ".join(f"{c:5.1f} ({n})" for c, n in values))

# %%
# An orthogonal W of radius .99 needs no bias: no slope of tanh lets it stretch a difference. So a
# bias is the way to a proof where the weights are given, or the radius is to be above 1; else
# choose weights, or let ``stability.design`` choose.
orthogonal = []
for seed in seeds:
    network = build_reservoir(
        50,
        1,
        topology="orthogonal",
        spectral_radius=0.99,
        input_scaling=0.4,
        bias_scaling=0.0,
        random_state=seed,
    )
    assert certify(network, *drive_range(network, -0.5, 0.5)).holds
    orthogonal.append(
        memory_capacity(network, n_train=2000, n_test=2000, random_state=seed)
    )
print(f"  orthogonal, radius .99, certified: {np.median(orthogonal):.1f}")
print(design(50, (-0.5, 0.5), input_scaling=0.4, random_state=0))

fig, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
ax.axhline(
    np.median(orthogonal), color="black", linestyle="--", label="orthogonal, radius .99"
)
styles = [("white", ""), ("0.8", ""), ("0.8", "////"), ("C0", "////")]
for k, (name, (color, hatch)) in enumerate(zip(names, styles, strict=True)):
    c = capacity[:, :, k]
    middle = np.median(c, axis=0)
    places = np.arange(len(radii)) + 0.2 * (k - 1.5)
    error = [middle - c.min(axis=0), c.max(axis=0) - middle]
    ax.bar(
        places, middle, 0.18, color=color, hatch=hatch, edgecolor="black", label=name
    )
    ax.errorbar(places, middle, error, color="black", linestyle="none", capsize=2)
ax.set_xticks(range(len(radii)), labels=map(str, radii))
ax.set(xlabel="spectral radius", ylabel="memory capacity")
ax.legend(title="hatched, dashed: certified", fontsize="small", ncols=2)

# %%
# In an estimator, ``bias="stable"`` takes the range of the inputs from the data, a tenth wider on
# both sides, and stores what was proved: whatever input of that range comes later, the network will
# forget how it was started. Here it forecasts the sunspot number, a year ahead. One network is no
# comparison: the errors say that it works, not which one is better. A year beyond the range is
# not covered, and the certificate's `input_range` is there to be compared with.
root = np.sqrt(load_sunspots())  # the years 1700 to 2008
X, y, n_train = root[:-1], root[1:], 208
X = (X - X[:n_train].mean()) / X[:n_train].std()
for topology, bias in (("random_sparse", "uniform"), ("orthogonal", "stable")):
    esn = ESNRegressor(
        50,
        topology=topology,
        spectral_radius=0.99,
        leak_rate=1.0,  # as in the networks above, whose rates are those of W
        input_scaling=0.2,
        bias=bias,
        alpha=1e-1,
        random_state=0,
    ).fit(X[:n_train], y[:n_train])
    score = nrmse(y[n_train:], esn.predict(X[n_train:]))
    print(f"{topology}, bias={bias!r}: NRMSE of 100 years {score:.2f}")
certificate = esn.certificate_
low, high = certificate.input_range.ravel()
print(certificate)
beyond = (X[n_train:] < low) | (X[n_train:] > high)
print(
    f"  for inputs from {low:.2f} to {high:.2f}: {beyond.sum()} of the 100 "
    "years is beyond"
)
plt.show()

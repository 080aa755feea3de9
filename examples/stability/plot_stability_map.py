"""
Stability map: what the bias does to a large spectral radius
============================================================

Map attractors and Lyapunov exponents over spectral radius and bias, with the region in which one
response is proved.

One network over its spectral radius and the size of its bias, under a periodic drive. Left, how
many attractors were found; right, the largest conditional Lyapunov exponent. In the hatched region
a certificate proves that there is one attractor; beyond radius 1 a bias is what buys it.
"""

import matplotlib.pyplot as plt
import numpy as np

from reservoir import plotting
from reservoir.building import build_reservoir
from reservoir.stability import drive_range, stable_bias, sweep

# %%
# The drive has period 5. The bias is one that is certified at radius 1.5, for every input within
# the range of the drive; the vertical axis multiplies it.
inputs = np.sin(2 * np.pi * np.arange(5) / 5)[:, None]
network = build_reservoir(
    40, 1, spectral_radius=1.5, input_scaling=0.1, bias_scaling=0.0, random_state=4
)
low, high = drive_range(network, inputs.min(axis=0), inputs.max(axis=0))
bias = stable_bias(network.W, low, high, random_state=0)
network = build_reservoir(
    40, 1, spectral_radius=1.5, input_scaling=0.1, bias=bias, random_state=4
)
radii, factors = np.linspace(0.2, 1.6, 15), np.linspace(0.0, 1.2, 13)
found = sweep(
    network,
    inputs,
    {"spectral_radius": radii, "bias": factors},
    n_initial_states=8,
    n_periods=100,
    random_state=0,
)

# %%
# Sampling gives a lower bound of the number of attractors. A count of 0 says that no trajectory had
# reached a cycle after 100 periods: it is chaotic, quasi-periodic, or slow. Where it is certified
# nothing else can be found.
assert (found.counts[found.certified] == 1).all()
assert (found.exponents[found.certified] < 0).all()
beyond = radii > 1
print(f"{found.counts.size} networks, {found.certified.sum()} of them certified")
print(
    f"  above radius 1: {found.certified[beyond].sum()} of "
    f"{beyond.sum() * len(factors)}"
)
print(f"  most attractors found: {found.counts.max()}")
single = (found.counts == 1) & (found.exponents < 0)
print(
    f"  one attractor found, exponent below 0: {single.sum()}, so the "
    "certificate is cautious"
)

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
plotting.parameter_map(
    radii,
    factors,
    found.counts.T,
    certified=found.certified.T,
    quantity="number of attractors",
    ax=left,
)
plotting.parameter_map(
    radii, factors, found.exponents.T, certified=found.certified.T, ax=right
)
plt.show()

"""
Multipliers: outside the circle, and inside it
==============================================

A network of spectral radius 1.2 has one response, which is proved: the multipliers tell what its
eigenvalues do not.

Left, the eigenvalues of the recurrent weights: the spectral radius is 1.2, and some lie outside the
unit circle. By the usual rule of thumb this network would not do. Right, the multipliers of the
cycle that it settles on: what a small distance from it is multiplied by in each period. All are
inside, and for this network it is proved that there is no other response.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

from reservoir import plotting
from reservoir.building import build_reservoir
from reservoir.stability import (
    certify,
    drive_range,
    echo_state_conditions,
    find_limit_cycle,
    stable_bias,
)

period = 3
inputs = np.sin(2 * np.pi * np.arange(period) / period)[:, None]

# %%
# With the bias that ``stable_bias`` finds the network is certified for all inputs within [-1, 1].
# The known conditions look at the weights alone, and none of the sufficient ones holds.
network = build_reservoir(
    100,
    1,
    spectral_radius=1.2,
    input_scaling=0.2,
    random_state=0,
)
low, high = drive_range(network, -1.0, 1.0)
network = replace(network, bias=stable_bias(network.W, low, high, random_state=0))
print(echo_state_conditions(network.W))
certificate = certify(network, low, high)
print(
    f"certified: {certificate.holds}, differences decay at rate "
    f"{certificate.rate:.4f} per step"
)

# %%
# A multiplier belongs to a period of three steps. Its third root is a rate per step: that at which
# differences decay in the end, and the certified rate is an upper bound of it.
cycle = find_limit_cycle(network, inputs)
largest = abs(cycle.multipliers[0])
rate = largest ** (1 / period)
print(
    f"cycle of {len(cycle.states)} steps, residual {cycle.residual:.1e}, "
    f"stable: {cycle.stable}"
)
print(f"largest multiplier {largest:.4f} per period: rate {rate:.4f} per step")
assert rate <= certificate.rate < 1

fig, (left, right) = plt.subplots(1, 2, figsize=(8, 4.4), layout="constrained")
plotting.spectrum(network, ax=left)
plotting.multipliers(cycle, ax=right)
for ax in (left, right):
    ax.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3))
plt.show()

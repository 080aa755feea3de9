"""
Bias bounds: a theorem for one unit, a heuristic for two
========================================================

A theorem gives the biases with which one unit forgets its start; two units show that the same rule
fails for networks.

On the left, the biases that let one unit forget its start, as a function of its gain: a theorem. On
the right, the argument behind it: the map of the unit, which meets the diagonal only once. For
networks the same was concluded from the norm of each row of weights, taken as the gain. It is not
enough, and two units show it.
"""

import matplotlib.pyplot as plt
import numpy as np

from reservoir import plotting
from reservoir.dynamics import Reservoir
from reservoir.stability import (
    bias_bounds,
    certify,
    critical_bias,
    sample_attractors,
    stable_bias,
)

# %%
# One unit under a drive within [0, 2]. The bias must keep the whole range of bias plus drive
# outside the critical interval, so the far end of the drive counts. The bounds as they are printed
# in Bay (2017, eq. 3.3) take the near end; b = -2.0075 meets them, and the unit has two attractors.
bounds = bias_bounds(3.78, 0.0, 2.0)
print(
    f"gain 3.78, drive within [0, 2]: b < {bounds.upper[0]:.4f} or b > "
    f"{bounds.lower[0]:.4f}"
)
unit = Reservoir([[3.78]], [[1.0]], [-2.0075])
found = sample_attractors(unit, [[0.0], [2.0]], random_state=0)
ends = sorted(states[-1].item() for states in found.states)
print(
    f"  b = -2.0075: {found.count} attractors, at {np.round(ends, 5)} after each period"
)

# %%
# Two units that excite each other and themselves. The row-norm bound asks that the bias of each be
# critical for a gain as large as the norm of its row. This bias is, and the network has two fixed
# points; `certify` does not certify it. With equal biases the two act as one unit of gain 3, and
# the smallest bias that is certified is hardly above what that needs.
W, b = np.full((2, 2), 1.5), np.array([-0.7199, -0.7199])
rows = bias_bounds(W, 0.0, 0.0)
print(f"two units, no drive: the row-norm bound asks for |b| > {rows.lower[0]:.4f}")
print(f"  guaranteed: {rows.guaranteed}; b = {b[0]} meets it: {rows.allow(b)}")
pair = Reservoir(W, np.zeros((2, 1)), b)
for states in sample_attractors(pair, [[0.0]], random_state=0).states:
    print(f"  fixed point {states[0].round(5)}")
print(f"  certified: {certify(pair, 0.0, 0.0).holds}")
safe = stable_bias(W, 0.0, 0.0, objective="magnitude", random_state=0)
certificate = certify(Reservoir(W, np.zeros((2, 1)), safe), 0.0, 0.0)
print(
    f"  b = {safe.round(4)} certified: {certificate.holds}; one unit: "
    f"{critical_bias(3.0):.4f}"
)

# %%
# On the right, the section of what each of the two units computes along its row of weights: the map
# of one unit whose gain is the norm of the row, 1.5 sqrt(2). At this bias it lies beyond the
# critical map, which touches the diagonal, and a high state cannot last. For one unit this is a
# proof; for more than one unit it is a heuristic. Along the row, the state (x, y) has the length
# (x + y) / sqrt(2). But two units add up: if each is nearly as large as that, the next state is
# longer by a factor of nearly sqrt(2).
gain = np.linalg.norm(W[0])
fig, (left, right) = plt.subplots(1, 2, figsize=(8.5, 5.2), layout="constrained")
plotting.bias_region(
    np.linspace(-0.5, 4, 200), 0.0, 2.0, printed=True, legend=False, ax=left
)
left.plot(3.78, -2.0075, "ko", markersize=5)
line = {"arrowstyle": "-"}
left.annotate("two attractors", (3.78, -2.0075), (1.2, -1.6), arrowprops=line)
left.set_title("one unit, drive within [0, 2]", fontsize="medium")
plotting.cobweb(gain, b[0], initial_state=[0.9], tangents=True, legend=False, ax=right)
right.set_title(
    f"norm of a row {gain:.3f}, bias {b[0]}\none unit forgets; the two units do not",
    fontsize="medium",
)
fig.legend(loc="outside lower center", ncols=3, frameon=False, fontsize="small")
plt.show()

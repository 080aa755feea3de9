"""
Bias bounds: a theorem for one unit, a heuristic for two
========================================================

Above, the biases that let one unit forget its start, over its gain: a theorem. Below, the picture
from which the same was concluded for networks: two planes of slope 1 touch what a unit computes,
and both pass the origin on one side. It is not enough, and two units show it.
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
# Below, what each of the two units computes with this bias. Both planes pass the origin below it,
# so that to the right of their touching lines the next state is less than (x + y) / sqrt(2). For
# one unit that would be x itself, and a high state could not last. Two units add up: if each is
# nearly (x + y) / sqrt(2), their sum is nearly sqrt(2) times what it was.
fig = plt.figure(figsize=(7, 7), layout="constrained")
above = fig.add_subplot(2, 1, 1)
plotting.bias_region(np.linspace(-0.5, 4, 200), 0.0, 2.0, printed=True, ax=above)
above.plot(3.78, -2.0075, "ko", markersize=5)
line = {"arrowstyle": "-"}
above.annotate("two attractors", (3.78, -2.0075), (2.8, 0.2), arrowprops=line)
above.set_title("one unit, drive within [0, 2]", fontsize="medium")
below = fig.add_subplot(2, 1, 2, projection="3d")
plotting.bias_surface(W[0], b[0], ax=below)
below.set_box_aspect(None, zoom=1.05)
below.legend(loc="upper center", bbox_to_anchor=(0.5, 0), ncols=2, frameon=False)
below.set_title(f"two units: weights (1.5, 1.5), bias {b[0]}", fontsize="medium")
plt.show()

"""
Cobwebs: one unit, and when it forgets its past
===============================================

Cobwebs show when one unit forgets its past: always if its map is flat, and for some biases if it is
steep.

The map of one unit is an S, and the staircase between it and the diagonal is the unit's life. A
flat S meets the diagonal once. A steep one meets it three times or once, and the bias decides
which: the last two panels show a steep unit that forgets its start all the same.
"""

import matplotlib.pyplot as plt
import numpy as np

from reservoir import plotting
from reservoir.stability import bias_bounds, critical_bias

phases = np.sin(2 * np.pi * np.arange(3) / 3)  # a drive of period 3, within [-1, 1]
flat, steep = 0.19, 3.78
critical = critical_bias(steep)

# %%
# The unit is ``x[t] = tanh(w x[t-1] + b + p[t])``, with a drive p of which the bounds are known.
# For a gain w up to 1 in modulus every bias will do (theorem T0). For w > 1, theorem T1: the unit
# forgets its start under *every* drive in the range if and only if the sums b + p stay outside [-k,
# k], where k = w q - atanh q with q = sqrt(1 - 1/w) is the critical bias. Outside, a periodic drive
# leads to one limit cycle of its period, from any start.
bounds = bias_bounds(steep, phases.min(), phases.max())
print(f"critical bias at gain {steep}: {critical:.4f}")
print(f"drive within [{phases.min():.3f}, {phases.max():.3f}], by {bounds.basis}:")
print(f"  the bias must be below {bounds.upper[0]:.4f} or above {bounds.lower[0]:.4f}")
for bias in (-0.68, -2.97):
    which = "all" if bounds.allow(bias) else "not all"
    print(f"  b = {bias}: forgets its start under {which} drives in this range")
print(f"at gain {flat} any bias will do: {bias_bounds(flat, -1.0, 1.0).unrestricted}")

# %%
# The first five are the figures 3.1 to 3.5 of Bay (2017). At a constant critical drive the S
# touches the diagonal: two fixed points, of which the one where it touches attracts from one side
# only. The last one adds the drive to a certified bias. Note that the steps of a cycle lie on the
# maps of the phases, not where these cross the diagonal.
panels = [
    (f"w = {flat}, b = -0.68", flat, -0.68, [-0.9], False),
    (f"w = {flat}, b = -0.68, driven", flat, phases - 0.68, [-0.9], False),
    (f"w = {steep}, b = -0.68", steep, -0.68, [-0.45, 0.55], False),
    (f"w = {steep}, b = -{critical:.3f}", steep, -critical, [0.98], True),
    (f"w = {steep}, b = -2.97", steep, -2.97, [0.95], False),
    (f"w = {steep}, b = -2.97, driven", steep, phases - 2.97, [0.95], False),
]
fig, axes = plt.subplots(3, 2, figsize=(8.5, 7.6), layout="compressed")
for ax, (title, gain, drive, starts, tangents) in zip(axes.flat, panels, strict=True):
    plotting.cobweb(
        gain,
        drive,
        initial_state=starts,
        tangents=tangents,
        legend="outside",
        ax=ax,
    )
    ax.set_title(title, fontsize="medium")
    ax.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1])
plt.show()

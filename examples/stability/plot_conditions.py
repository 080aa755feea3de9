"""
How far the conditions on the weights reach
===========================================

See up to which spectral radius four conditions on the weights prove that a reservoir forgets its
start.

A reservoir without bias forgets its start, under every input, if one of four numbers of its weights
is below 1. Each is proportional to the spectral radius, so each has a largest radius up to which it
proves this; here is how it depends on the number of connections. Above, where no condition can
hold, some slopes between 0 and 1 have been found that make two trajectories part.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import eig

from reservoir.building import build_reservoir
from reservoir.stability import echo_state_conditions

# %%
# Two trajectories under one input differ by e, and after a step by D W e; the diagonal D holds
# slopes of tanh, anywhere in [0, 1]. An adversary chooses them for two steps, which are repeated:
# the slopes of each step are moved to where the leading eigenvalue of the product grows, a random
# half of them at a time.


def growth(W, rng, n_rounds=25):
    """Return the growth per step under the worst pair of slopes that is found."""
    slopes, worst = np.ones((2, len(W))), 0.0
    for _ in range(n_rounds):
        first, second = (d[:, None] * W for d in slopes)
        values, lefts, rights = eig(second @ first, left=True, right=True)
        k = np.argmax(abs(values))
        worst = max(worst, abs(values[k]) ** 0.5)
        left, right = (
            lefts[:, k].conj() / (lefts[:, k].conj() @ rights[:, k]),
            rights[:, k],
        )
        of_second = left * (W @ (first @ right)) / values[k]
        of_first = (left @ second) * (W @ right) / values[k]
        better = np.array([of_first.real > 0, of_second.real > 0])
        slopes = np.where(rng.random(slopes.shape) < 0.5, better, slopes)
    return worst


# %%
# Networks of 64 units, at a spectral radius of 1: one divided by a condition's number is the radius
# at which it ends.
degrees, n_seeds = [2, 4, 8, 16, 32, 64], 4
names = ["numerical_radius", "diagonal_schur", "spectral_norm", "abs_radius"]
reached = np.zeros((len(names) + 1, len(degrees), n_seeds))
for j, degree in enumerate(degrees):
    for seed in range(n_seeds):
        W = build_reservoir(
            64, 1, in_degree=degree, spectral_radius=1.0, random_state=seed
        ).W
        dense = W.toarray() if hasattr(W, "toarray") else W
        found = echo_state_conditions(W)
        reached[:-1, j, seed] = [1 / getattr(found, name) for name in names]
        reached[-1, j, seed] = 1 / growth(dense, np.random.default_rng(seed))
means = reached.mean(axis=2)
print("connections  " + "".join(f"{degree:7d}" for degree in degrees))
for name, row in zip([*names, "broken"], means, strict=True):
    print(f"{name:17}" + "".join(f"{value:7.2f}" for value in row))

# %%
# The numerical radius uses the signs of the weights, which the moduli forget, and asks less than a
# norm. Whatever one of the four proves, `certify` proves as well, and with it how fast differences
# fade.
fig, ax = plt.subplots(figsize=(6, 5), layout="constrained")
titles = [
    "numerical radius",
    "diagonal Schur stability",
    "spectral norm",
    r"radius of $|W|$",
]
for title, row, style in zip(titles, means, ["o-", "s--", "^-.", "D:"], strict=False):
    ax.plot(degrees, row, style, linewidth=2, label=title)
ax.fill_between(degrees, means[-1], 1.15, color="0.88", linewidth=0)
ax.text(11, 1.02, "broken by chosen slopes", ha="center", fontsize="large")
ax.set_xscale("log", base=2)
ax.set_xticks(degrees, [str(degree) for degree in degrees])
ax.set_xlim(degrees[0] / 1.1, degrees[-1] * 1.1)
ax.set_ylim(0, 1.15)
ax.set_xlabel("connections per unit", fontsize="large")
ax.set_ylabel("spectral radius that is proved", fontsize="large")
ax.legend(loc="lower left", frameon=False)
plt.show()

"""
Sunspots: two solar cycles from the network alone
=================================================

A network forecasts the last 22 years of the sunspot numbers, two solar cycles, from the years
before them.

The picture shows the yearly sunspot number, and a forecast of its last 22 years by an echo state
network that saw the years before only: from the dotted line on it lives on its own outputs. The
cycle goes on for two turns, a little late; how high it rises is the harder part, as the width of
the band says.
"""

import matplotlib.pyplot as plt
import numpy as np

from reservoir import ESNRegressor, plotting
from reservoir.datasets import load_sunspots
from reservoir.metrics import nrmse

sunspots = load_sunspots()  # (309, 1), the years 1700 to 2008
n_steps = 22
train, test = sunspots[:-n_steps], sunspots[-n_steps:]


def forecast(past, seed):
    # The root evens out low and high years; squared, no forecast is negative.
    root = np.sqrt(past)
    esn = ESNRegressor(
        100,
        spectral_radius=0.8,
        leak_rate=0.5,
        input_scaling=0.05,
        alpha=1e-3,
        random_state=seed,
    )
    esn.fit(root[:-1], root[1:])  # each year's input, the next year's target
    return esn.forecast(n_steps) ** 2


# %%
# Ten seeds, not one: each draws another reservoir. The NRMSE is the root mean squared error in
# standard deviations of the years that are forecast; their own mean would reach 1.
forecasts = [forecast(train, seed) for seed in range(10)]
scores = [nrmse(test, y) for y in forecasts]
mean, repeat = np.full_like(test, train.mean()), np.tile(train[-11:], (2, 1))
print(f"NRMSE (by std) of the last {n_steps} years, closed loop, seeds 0 to 9:")
print(
    f"  echo state network   {np.median(scores):.2f}  ({min(scores):.2f} to "
    f"{max(scores):.2f})"
)
print(f"  last 11 years again  {nrmse(test, repeat):.2f}")
print(f"  mean of the past     {nrmse(test, mean):.2f}")

# %%
# One stretch of 22 years is one draw. The same for every tenth year of the training years as the
# start, errors pooled, in standard deviations of the training years. The parameters were chosen
# here, not on the last 22 years; the score changes little around them.
starts = range(120, len(train) - n_steps + 1, 10)
future = np.concatenate([train[t : t + n_steps] for t in starts])
guess = np.concatenate([forecast(train[:t], seed=0) for t in starts])
repeat = np.concatenate([np.tile(train[t - 11 : t], (2, 1)) for t in starts])
print(f"{len(starts)} such forecasts within the training years:")
for name, y in [("echo state network ", guess), ("last 11 years again", repeat)]:
    error = np.sqrt(np.mean((y - future) ** 2)) / train.std()
    print(f"  {name}  {error:.2f}")

# %%
# The picture shows the seed with the median score. A regressor forecasts no intervals, but these
# forecasts within the training years have errors: nine roots of ten are off by at most `reach`,
# which makes a band around the root of each forecast.
shown = forecasts[np.argsort(scores)[len(scores) // 2]]
reach = np.quantile(abs(np.sqrt(guess) - np.sqrt(future)), 0.9)
root = np.sqrt(shown)
low, high = np.maximum(root - reach, 0) ** 2, (root + reach) ** 2
inside = (low <= test) & (test <= high)
print(f"years inside the 90 % band: {inside.sum()} of {n_steps}")

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
plotting.forecast(
    sunspots[-88:],
    np.column_stack([shown, low, high]),
    coverage=0.9,
    index=np.arange(1921, 2009),
    labels=["sunspots"],
    legend=False,
    ax=ax,
)
ax.set_xlabel("year")
fig.legend(loc="outside upper left", ncols=4, frameon=False)
fig.savefig("sunspots.png", dpi=150)
print("Picture: sunspots.png, in the folder that this was called from")

"""
Forecast a chaotic system
=========================

The first picture shows a forecast that stays on the truth for some twenty Lyapunov times and then
leaves it; the last one what remains after that: on its own the forecaster goes on drawing the same
butterfly. Between them stand the choice it made, and what noise and hidden variables cost.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir import ESNForecaster, ESNRegressor, forecast, plotting
from reservoir.datasets import LYAPUNOV_TIME, lorenz
from reservoir.metrics import valid_time
from reservoir.model_selection import ClosedLoopSearchCV, make_forecast_pairs

# %%
# Lorenz's convection model in three variables. In a Lyapunov time, here 22 rows, an error grows by
# a factor of e, so every digit counts, those of the data too: they are integrated to 13.
dt, n_fit = 0.05, 1400
lyapunov_time = LYAPUNOV_TIME["lorenz"]  # 1.1 time units
orbit = lorenz(3000, dt=dt, washout=200, rtol=1e-13, atol=1e-13)
seen = orbit[:n_fit]
unit = {"dt": dt, "lyapunov_time": lyapunov_time, "scale": seen.std(axis=0)}

# %%
# There is nothing to set. `fit` finds networks, `forecast` goes on from the last row.
forecaster = ESNForecaster(random_state=0).fit(seen)
n_steps = 660  # 30 Lyapunov times
guess, truth = forecaster.forecast(n_steps), orbit[n_fit : n_fit + n_steps]
times = np.arange(-66, n_steps) * dt / lyapunov_time
ax = plotting.forecast(
    orbit[n_fit - 66 : n_fit + n_steps], guess, index=times, labels=["x", "y", "z"]
)
ax.set_xlabel("Lyapunov times")
print(f"valid for {valid_time(truth, guess, **unit):.1f} Lyapunov times (error up to 0.3 std)")

# %%
# What the choice rests on
# ------------------------
# Each network of a bank was fitted under each penalty and ran on its own outputs from eight places
# in the data. The score counts the digits that these forecasts keep, on average over 100 steps. The
# smallest penalties win: the data have no noise, so there is nothing to smooth away.
results = forecaster.search_results_
plotting.closed_loop_search(results)
print(f"observed: {results['observed']}; noise {results['noise']:.0e} std")

# %%
# What a penalty costs
# --------------------
# One network with parameters of our own, under three penalties. On a logarithmic axis errors grow
# along a straight line, from the level where they start; the penalty sets this level. From 1e-11
# down, `ESNRegressor` solves by a QR decomposition (``solver="auto"``), which keeps the digits that
# sums of squares lose. `ClosedLoopSearchCV` makes the choice that `ESNForecaster` made.
esn = ESNRegressor(
    150,
    spectral_radius=0.05,
    input_scaling=0.3,
    bias_scaling=1.0,
    include_input=True,
    random_state=0,
)
pipe = make_pipeline(StandardScaler(), esn)
X, y = make_forecast_pairs(seen)
alphas = [1e-4, 1e-8, 1e-22]

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
styles = [("0.6", "-."), ("tab:blue", "--"), ("black", "-")]
for alpha, (color, line) in zip(alphas, styles, strict=True):
    rows = forecast(pipe.set_params(esnregressor__alpha=alpha).fit(X, y), n_steps, clip=True)
    error = np.sqrt(np.mean(((rows - truth) / unit["scale"]) ** 2, axis=1))
    ax.semilogy(times[66:], error, color=color, linestyle=line, label=f"alpha={alpha:.0e}")
ax.axhline(0.3, color="firebrick", linestyle=":", label="valid up to here")
ax.set(xlabel="Lyapunov times", ylabel="error / std")
ax.legend(frameon=False, fontsize="small", loc="lower right")

search = ClosedLoopSearchCV(pipe, {"esnregressor__alpha": alphas}, horizon=100, clip=True)
print("chosen in closed loop:", search.fit(X, y).best_params_)

# %%
# From other starts, with noise, and with one variable
# ----------------------------------------------------
# A single forecast says little: how long it is valid depends on where it starts. `context` holds
# the rows to go on from. With noise of 1 % a forecast starts from an error of a hundredth, and what
# is left are the Lyapunov times in which that grows to the threshold. Where y and z are hidden, a
# row does not tell the next one: the forecaster finds that out, and tries networks that remember x.
noisy = orbit + 0.01 * unit["scale"] * np.random.default_rng(0).normal(size=orbit.shape)
cases = {
    "all variables": (forecaster, orbit, 3),
    "1 % noise": (ESNForecaster(random_state=0).fit(noisy[:n_fit]), noisy, 3),
    "x alone": (ESNForecaster(random_state=0).fit(orbit[:n_fit, :1]), orbit, 1),
}
fig, ax = plt.subplots(figsize=(7, 2.2), layout="constrained")
ax.set_yticks([0, -1, -2], labels=list(cases))
ax.set(xlabel="valid time, Lyapunov times (the median in red)", xlim=(0, 31), ylim=(-2.6, 0.6))
for place, (name, (model, rows, n_columns)) in enumerate(cases.items()):
    unit["scale"] = seen.std(axis=0)[:n_columns]
    valid = []
    for start in range(n_fit, len(orbit) - n_steps, 80):
        guess = model.forecast(n_steps, context=rows[start - 100 : start, :n_columns])
        valid.append(valid_time(orbit[start : start + n_steps, :n_columns], guess, **unit))
    ax.plot(valid, np.full(len(valid), -place), "o", color="black", alpha=0.4)
    ax.plot(np.median(valid), -place, "|", color="firebrick", markersize=24, markeredgewidth=2)
    observed = model.search_results_["observed"]
    print(f"{name}: median {np.median(valid):.1f} of {len(valid)} starts; observed: {observed}")

# %%
# What remains
# ------------
# After it has left the truth the forecast stays on the attractor: the same butterfly, and each
# maximum of z follows from the last by the same tent-shaped map, which no one showed it.
free = forecaster.forecast(len(orbit) - n_fit)  # 72 Lyapunov times


def maxima(z):
    return z[1:-1][(z[1:-1] > z[:-2]) & (z[1:-1] > z[2:])]


fig, (left, middle, right) = plt.subplots(1, 3, figsize=(7, 2.8), layout="constrained")
for ax, rows, name, line, mark in [
    (left, orbit[n_fit:], "truth", {"color": "0.5"}, {"marker": "o", "s": 30}),
    (middle, free, "forecast", {"color": "firebrick"}, {"marker": "x", "s": 12}),
]:
    ax.plot(rows[:, 0], rows[:, 2], **line, linewidth=0.6)
    ax.set(xlabel="x", ylabel="z", title=name, xlim=(-21, 21), ylim=(0, 50))
    peaks = maxima(rows[:, 2])
    right.scatter(peaks[:-1], peaks[1:], color=line["color"], linewidth=1, label=name, **mark)
right.set(xlabel="maximum of z", ylabel="next maximum of z")
right.legend(frameon=False, fontsize="small")
plt.show()

"""
Crowds: the map of the next hour
================================

Forecast where the people of a town will be in an hour, with a network that learns on each day.

Where will the people of a town be in an hour? Bay (2017, section 7.2) forecasts maps of
mobile telephones, so that buses and the police are where the crowd will be. Those maps
are private; these are generated: people commute, go out, gather at events, and move to
the edges for the summer. A map becomes 50 numbers, an echo state network forecasts
these, and learns on each day.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import IncrementalPCA
from sklearn.linear_model import RidgeCV

from reservoir import ESNRegressor
from reservoir.datasets import crowd_density

n, day = 1440, 24  # hours: 60 days to learn from, and 60 to forecast
maps = crowd_density(2 * n, random_state=0)
truth = maps[n:]

# %%
# `IncrementalPCA` reads the first 60 days in portions, so that they need not fit in
# memory. Beside its components the models see a clock: one column for each hour of a
# working day, and one for each of a weekend.
basis = IncrementalPCA(50, batch_size=240).fit(maps[:n])
scale = basis.explained_variance_[0] ** 0.5
rows = basis.transform(maps) / scale
hours = np.arange(2 * n)
working, hour_of_day = (hours // day % 7 < 5)[:, None], np.eye(day)[hours % day]
clock = np.hstack([hour_of_day * working, hour_of_day * ~working])
X, y = np.hstack([rows[:-1], clock[1:]]), rows[1:]  # the clock is of the hour to come
forecasts = {"the hour before": maps[n - 1 : -1]}

# %%
# The rival is a ridge regression on the last three hours and the same clock.
F = np.hstack([rows[2:-1], rows[1:-2], rows[:-3], clock[3:]])
ridge = RidgeCV(np.logspace(-4, 3, 15)).fit(F[: n - 3], rows[3:n])
forecasts["ridge"] = basis.inverse_transform(ridge.predict(F[n - 3 :]) * scale)

# %%
# The network is fitted to the same 60 days. Then it forecasts the hours of a day, each
# from the maps until the hour before, and when the day is over, `partial_fit` learns
# from it. Small inputs keep it nearly linear, which serves here, as does a leak rate of
# 1: the maps have an hour for all that changes, and slow units are late.
options = {"leak_rate": 1.0, "input_scaling": 0.05, "spectral_radius": 0.5}
esn = ESNRegressor(200, **options, random_state=0).fit(X[: n - 1], y[: n - 1])
forecasts["network"] = basis.inverse_transform(esn.predict(X[n - 1 :]) * scale)
parts = []
for now in range(n - 1, 2 * n - 1, day):
    parts.append(esn.predict(X[now : now + day]))
    esn.partial_fit(X[now : now + day], y[now : now + day])
learned = basis.inverse_transform(np.vstack(parts) * scale)
forecasts["network, learning on"] = learned
for name, seen in forecasts.items():
    ratio = 10 * np.log10(np.sum(truth**2) / np.sum((truth - seen) ** 2))
    mean = np.abs(truth - seen).mean()
    print(f"{name}: {ratio:.1f} dB, mean error {mean:.2f} people per pixel")

# %%
# The ratio of signal to noise: ten decibels more are a tenth of the squared error. The
# clock and the hours before the last gain four together. Learning on gains a little
# more, because the town changes, and because there is more to learn from. Whether a
# network or a ridge does so matters little: a ridge that is fitted anew each day comes
# within a tenth of a decibel.
#
# Of the last 60 days, the hour with the largest error:
errors = np.abs(truth - learned)
worst = int(np.sum(errors**2, axis=1).argmax())
shown = {
    "truth": truth[worst],
    "forecast": learned[worst],
    "error in this hour": errors[worst],
    "error, mean of 60 days": errors.mean(axis=0),
}
fig, axes = plt.subplots(2, 2, figsize=(7, 5.6), layout="constrained")
for ax, (name, values) in zip(axes.flat, shown.items(), strict=True):
    top = truth[worst].max() if name in ("truth", "forecast") else values.max()
    image = ax.imshow(values.reshape(48, 64), cmap="magma", vmin=0, vmax=top)
    fig.colorbar(image, ax=ax, shrink=0.8, label="people per pixel")
    ax.set(title=name, xticks=[], yticks=[])
midnight = worst // day * day
fig.suptitle(f"day {61 + midnight // day}, from {worst - midnight} o'clock")

# %%
# A crowd has gathered where there was none an hour before: an event, which neither map
# nor clock announces. Otherwise errors are largest where most people are, and small.
# Below, the pixel with the largest error on that day. Two events came there, and the
# first hour of each is a surprise; then the network reckons with more people than the
# hour before had.
place, hour = errors[worst].argmax(), slice(midnight, midnight + day)
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.plot(truth[hour, place], "k.-", label="truth")
ax.plot(learned[hour, place], "--", color="C0", label="network, learning on")
ax.plot(maps[n - 1 : -1][hour, place], ":", color="C1", label="the hour before")
ax.set(xlabel="hour of the day", ylabel="people in the pixel", ylim=(0, None))
ax.legend(frameon=False, loc="upper left")
plt.show()

# %%
# ``examples/benchmarks/crowds.py`` has five towns, and networks whose weights are all
# trained; the source's tables stand beside ours in
# :doc:`the results </results/applications>`.

"""
Missing values and irregular time
=================================

Fill gaps in a series from both of their sides, and use rows at irregular times.

This series has no values for half a year; `fill_gaps` fills each gap, a run of missing values:
"""

from reservoir import ESNRegressor, fill_gaps
from reservoir.datasets import load_el_nino

truth = load_el_nino(as_frame=True)["temperature"]["1980":]
y = truth.mask((truth.index >= "2000-01") & (truth.index < "2000-07"))  # half a year
filled = fill_gaps(y, ESNRegressor(random_state=0))
print(filled["2000-01":"2000-06"].round(1).tolist())
ax = truth["1998":"2002"].plot(color="0.6", linewidth=3, figsize=(7, 2.8), ylabel="°C")
filled[y.isna()].plot(ax=ax, color="C0", xlabel="")

# %%
# Grey is what was measured, blue what was filled in. The rest of the page decides for each kind of
# gap what to fill, with what, and what to leave empty.
#
# A building
# ----------
# The record is generated, so the truth in every gap is known. It has the load of a building in kW,
# hour by hour, and the temperature. The load has a daily course, flatter at weekends, and follows
# the temperature slowly, in a curve. Its noise of 1 kW cannot be predicted.
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.signal import lfilter

from reservoir import ESNForecaster, RNNRegressor


def building(n_hours=2400, seed=0):
    rng = np.random.default_rng(seed)
    dates = pd.date_range("2026-01-05", periods=n_hours, freq="h")
    hour, workday = np.arange(n_hours), dates.day_of_week < 5
    weather = lfilter([1], [1, -0.98], rng.normal(0, 0.6, n_hours))
    temperature = weather + 4 * np.sin(2 * np.pi * (hour - 9) / 24)
    indoors = lfilter([0.1], [1, -0.9], temperature)
    load = 100 + np.where(workday, 20, 12) * np.sin(2 * np.pi * (hour - 8) / 24)
    load += 0.25 * indoors**2 - 1.5 * indoors + rng.normal(0, 1, n_hours)
    return pd.DataFrame({"load": load, "temperature": temperature}, index=dates)


truth = building()
hours, known = truth.index, truth[["temperature"]]
angle = 2 * np.pi * hours.hour / 24
inputs = known / 5  # about 1 in size, as the others
inputs = inputs.assign(workday=(hours.day_of_week < 5).astype(float))
inputs = inputs.assign(sin=np.sin(angle), cos=np.cos(angle))


def rmse(values, mask):
    return np.sqrt(np.mean((values - truth["load"])[mask] ** 2))


# %%
# Which filling is best?
# ----------------------
# Cut gaps where values are known, as long as the real ones, at many positions. Here there are seven
# each of 2, 12 and 48 hours. The simple rivals are pandas' ``ffill``, ``interpolate``, and the mean
# course of the day with a line over the rest (*day + line*). Two fillings use the inputs:
#
# - *both sides*: `fill_gaps` runs a network from each side of the gap.
# - *known inputs*: `ESNRegressor` predicts the load from inputs that are known in the gap.
#   ``missing_targets="skip"`` learns from the targets that exist. Rows without a target still drive
#   the network, so no time is lost.


def regressor(seed=0):
    return ESNRegressor(input_scaling=0.5, missing_targets="skip", random_state=seed)


warnings.filterwarnings("ignore", "Training kept its start")  # the rest is noise
kind_of_hour = (hours.day_of_week < 5) * 24 + hours.hour
rows = {}
for n in (2, 12, 48):
    places = np.arange(1250, 2250, 150)
    starts = places + np.random.default_rng(1).integers(0, 80, len(places))
    hole = np.isin(np.arange(len(truth)), [s + i for s in starts for i in range(n)])
    y = truth["load"].mask(hole)
    daily = y.groupby(kind_of_hour).transform("mean")
    esn = regressor().fit(inputs, y)
    fillings = {
        "last value": y.ffill(),
        "line": y.interpolate(),
        "day + line": (y - daily).interpolate() + daily,
        "both sides": fill_gaps(y, RNNRegressor(random_state=0), exog=inputs),
        "known inputs": pd.Series(esn.predict(inputs, initial_state="zeros"), hours),
    }
    rows[f"{n} hours"] = {name: rmse(values, hole) for name, values in fillings.items()}
table = pd.DataFrame(rows).T
print("root mean squared error in gaps, kW (noise alone: 1)")
print(table.round(2).to_string())

fig, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
for name, style in zip(table, [":", "--", "-.", "-", "--"], strict=True):
    ax.plot(table.index, table[name], style, marker="o", label=name)
ax.set(xlabel="length of the gap", yscale="log", ylabel="error, kW")
ax.set_yticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
ax.minorticks_off()
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))

# %%
# - A line is good enough for an hour or two. In longer gaps it misses the daily course.
# - *Day + line* is a strong rival that needs only pandas.
# - The two that use inputs in the gap are ahead. If something else was measured in the gap, use it.
#   Fillings without inputs are compared in :doc:`/results/series`.
#
# What may be missing in a series to be forecast
# ----------------------------------------------
# `ESNForecaster` takes NaN as it is: no model learns from values that were made up. The errors are
# those of the next 48 hours, with up to a third of the rows lost, alone or in blocks of 12.
print("root mean squared error of the 48 hours that follow, kW")
ahead = slice(1200, 1248)
for lost_share, length in [(0.0, 1), (0.3, 1), (0.3, 12)]:
    begins = np.random.default_rng(0).random(1201 - length) < lost_share / length
    hole = np.convolve(begins, np.ones(length)) > 0
    y = truth["load"][:1200].mask(hole)
    found = []
    for values in y, y.interpolate(limit_direction="both"):
        model = ESNForecaster(random_state=0).fit(values, exog=known[:1200])
        error = model.forecast(48, exog=known[ahead]) - truth["load"][ahead]
        found.append(f"{np.sqrt(np.mean(error**2)):.2f}")
    lost = f"{hole.mean():4.0%} missing, {length:2d} at a time"
    print(f"{lost}: NaN as it is {found[0]}, lines first {found[1]}")


# %%
# One forecast is one draw, so small differences are luck. But lines across nights and noons are
# learned as if they had happened. (`backtest` compares from many positions.)
#
# Gaps in inputs
# --------------
# Every row is a step of the network's state, so the network needs *some* input in each. NaN in
# inputs raises, and so do dates with holes. Here a thermometer fails a third of the time, for 12
# hours on average. An indicator is one more input: 1 where the value was made up.
rng = np.random.default_rng(3)
works = np.ones(len(truth), bool)
for t in range(1, len(truth)):
    works[t] = rng.random() > (1 / 24 if works[t - 1] else 11 / 12)
measured = inputs["temperature"].where(works)
ways = {"last value": measured.ffill().bfill(), "line": measured.interpolate().bfill()}


def errors(X, y, times=None):
    """Return the errors of seeds 0 to 2: fitted before hour 1800, judged after it."""
    past, found = X.index < hours[1800], []
    rows = X.reset_index(drop=True)
    for seed in range(3):
        esn = regressor(seed).set_params(time_column=times)
        esn.fit(rows[past], y.to_numpy()[past])
        predicted = esn.predict(rows[~past].reset_index(drop=True))
        found.append(rmse(pd.Series(predicted, X.index[~past]).reindex(hours), judged))
    return np.round(found, 2)


judged = hours >= hours[1800]
print(f"{1 - works.mean():.0%} of temperatures missing; errors of seeds 0 to 2, kW")
print("nothing missing ", errors(inputs, load := truth["load"]))
for name, temperature in ways.items():
    X = inputs.assign(temperature=temperature)
    marked = errors(X.assign(made_up=1.0 - works), load)
    print(f"{name:16s} {errors(X, load)}, with indicator {marked}")

# %%
# A failed input costs far more than a lost target. How it is filled matters less, and an indicator
# helps a little.
#
# Irregular time
# --------------
# For the network every row is one step, however long it took. A logger that writes at three of ten
# hours by chance can be taken as it comes (with dates in the index `fit` warns), with the length of
# each step as an input, with the times in a column that scales the leak (``time_column``), or on
# the grid of hours, with inputs by a line and targets left empty.
written = np.random.default_rng(0).random(len(truth)) < 0.3
X, y = inputs[written], truth["load"][written]
when = (X.index - X.index[0]).total_seconds() / 3600
grid = inputs["temperature"].where(written).interpolate().bfill()
judged &= written
for name, found in {
    "as it comes": errors(X, y),
    "step as an input": errors(X.assign(step=np.log(np.diff(when, prepend=-1))), y),
    "times in a column": errors(X.assign(when=when), y, "when"),
    "on the grid": errors(
        inputs.assign(temperature=grid), truth["load"].where(written)
    ),
}.items():
    print(f"{name:18s}", found)
plt.show()

# %%
# The grid and the times in a column are best. The grid has three times as many rows. Use
# ``time_column`` where it would be mostly empty; it needs a leak rate below 1. For a grid
# ``y.resample("h").mean()`` averages the values of an hour, and gives NaN where there are none.
#
# The decisions
# -------------
# ===================================  ================================================
# missing                              do
# ===================================  ================================================
# a few values of a series             a line
# long gaps, other inputs known there  ``ESNRegressor(missing_targets="skip")``, or
#                                      ``fill_gaps(y, RNNRegressor(), exog=...)``
# long gaps, nothing else known        day + line or ``fill_gaps``; judge by cut gaps
# values of a series to be forecast    leave NaN
# targets                              leave NaN, ``missing_targets="skip"``
# inputs                               a line; an indicator if it helps held-out rows
# values in whole series               ``missing_values="interpolate"``
# times at irregular distances         a grid, or ``time_column``
# ===================================  ================================================
#
# Series with dates: :doc:`/conventions`. Forecasts with inputs: :doc:`plot_known_inputs`. Targets
# of a model that learns in use: :doc:`plot_learn_while_it_runs`.

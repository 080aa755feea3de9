"""
Missing values and irregular time
=================================

A meter counts what a building takes from the grid, hour by hour, and now and then says
nothing; the thermometer fails, too, and some loggers write when they like. Fifteen
minutes from such records to a decision for each kind of gap: what to fill, and with
what, what to leave empty, and what that costs.
"""

# %%
# In short
# --------
# Fill each gap, a run of missing values, from both of its sides:
import matplotlib.pyplot as plt

from reservoir import RNNRegressor, fill_gaps
from reservoir.datasets import load_el_nino

truth = load_el_nino(as_frame=True)["temperature"]["1980":]
y = truth.mask((truth.index >= "2000-01") & (truth.index < "2000-07"))  # half a year
filled = fill_gaps(y, RNNRegressor(random_state=0))
print(filled["2000-01":"2000-06"].round(1).tolist())
ax = truth["1998":"2002"].plot(color="0.6", linewidth=3, figsize=(7, 2.8), ylabel="°C")
filled[y.isna()].plot(ax=ax, color="C0", xlabel="")
plt.show()

# %%
# Grey is what was measured, blue what was filled in. Is that better than a straight
# line? That, and what to do where it is inputs that are missing, is the rest.
import copy

import numpy as np
import pandas as pd

from reservoir import ESNForecaster, ESNRegressor

# %%
# A building
# ----------
# The record is generated, so that the truth in every gap is known. The load has a daily
# course, flatter at weekends, and follows the temperature slowly, in a curve: heating
# when it is cold, cooling when it is hot. Noise of 1 kW is what nobody can guess.


def building(n_hours=2400, seed=0):
    rng = np.random.default_rng(seed)
    dates = pd.date_range("2026-01-05", periods=n_hours, freq="h")
    hour, workday = np.arange(n_hours), dates.day_of_week < 5
    weather, indoors = np.zeros(n_hours), np.zeros(n_hours)
    for t in range(1, n_hours):
        weather[t] = 0.98 * weather[t - 1] + rng.normal(0, 0.6)
    temperature = weather + 4 * np.sin(2 * np.pi * (hour - 9) / 24)
    for t in range(1, n_hours):
        indoors[t] = 0.9 * indoors[t - 1] + 0.1 * temperature[t]
    load = 100 + np.where(workday, 20, 12) * np.sin(2 * np.pi * (hour - 8) / 24)
    load += 0.25 * indoors**2 - 1.5 * indoors + rng.normal(0, 1, n_hours)
    return pd.DataFrame({"load": load, "temperature": temperature}, index=dates)


truth = building()
known = truth[["temperature"]]
print(len(truth), "hours")

# %%
# How good is that, and against what?
# -----------------------------------
# A real gap has no truth to compare with, so cut gaps of your own where values are
# known: as long as the real ones, at many places. Here seven each, of 2, 12 and 48
# hours. The rivals are pandas' ``ffill`` and ``interpolate``, and the mean course of
# the day with a straight line over what remains. The forecaster is fitted once and then
# walks along the record: `update` takes the rows up to the next gap, earlier gaps among
# them, as NaN. It knows what was before a gap; `fill_gaps` knows both sides of it, and
# runs one network from each. The forecaster finds the day by itself and gets the
# temperature as `exog`; `fill_gaps` gets hour and workday as well.
#
# The last column is another kind of model. Where inputs are known *throughout* the gap,
# the load need not be forecast from its own past: `ESNRegressor` reads it off
# temperature, hour and day. Of targets with gaps ``missing_targets="skip"`` learns what
# there is; the rows without target still drive the network, so that no time is lost.
hours = truth.index
angle = 2 * np.pi * hours.hour / 24
inputs = pd.DataFrame(
    {
        "temperature": truth["temperature"] / 5,  # about 1 in size, as the others
        "workday": (hours.day_of_week < 5).astype(float),
        "sin": np.sin(angle),
        "cos": np.cos(angle),
    },
    index=hours,
)


def read_off(seed=0):
    return ESNRegressor(input_scaling=0.5, missing_targets="skip", random_state=seed)


def rmse(values, mask):
    return np.sqrt(np.mean((values - truth["load"])[mask] ** 2))


def walk(forecaster, y, starts, n):
    """Fill gaps of n rows, one by one, behind the 1200 rows of the fit."""
    y, forecaster, last = y.copy(), copy.deepcopy(forecaster), 1200
    for s in starts:
        forecaster.update(y_gaps[last:s], exog=known[last:s])
        y[s : s + n] = forecaster.forecast(n, exog=known[s : s + n])
        last = s
    return y


fitted = ESNForecaster(random_state=0).fit(truth["load"][:1200], exog=known[:1200])
kind_of_hour = (hours.day_of_week < 5) * 24 + hours.hour
rows = {}
for n in (2, 12, 48):
    places = np.arange(1250, 2250, 150)
    starts = places + np.random.default_rng(1).integers(0, 80, len(places))
    hole = np.zeros(len(truth), bool)
    for s in starts:
        hole[s : s + n] = True
    y_gaps = truth["load"].mask(hole)
    daily = y_gaps.groupby(kind_of_hour).transform("mean")
    esn = read_off().fit(inputs, y_gaps)
    fillings = {
        "last value": y_gaps.ffill(),
        "line": y_gaps.interpolate(),
        "day + line": (y_gaps - daily).interpolate() + daily,
        "forecast": walk(fitted, y_gaps, starts, n),
        "both sides": fill_gaps(y_gaps, RNNRegressor(random_state=0), exog=inputs),
        "known inputs": pd.Series(esn.predict(inputs, initial_state="zeros"), hours),
    }
    rows[f"{n} hours"] = {name: rmse(values, hole) for name, values in fillings.items()}
table = pd.DataFrame(rows).T
print("root mean squared error in gaps, kW (noise alone: 1)")
print(table.round(2).to_string())

fig, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
for name, style in zip(table, [":", "--", "-.", "-", "--", "-"], strict=True):
    ax.plot(range(3), table[name], style, marker="o", label=name)
ax.set(xticks=range(3), xticklabels=table.index, yscale="log", ylabel="error, kW")
ax.set_yticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
ax.minorticks_off()
ax.set_xlabel("length of the gap")
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))

# %%
# The picture shows the error of each filling against the length of the gap.
#
# - An hour or two: a line is good enough. Over half a day and more, the line and the
#   last value miss the daily course itself.
# - *Day + line* is a strong rival, and wants nothing but pandas: it knows both ends of
#   the gap, where the forecast knows only what was before. The forecast finds the daily
#   course by itself, and is ahead in the longest gaps. On slow series with a season,
#   try *day + line* (month + line, for months) before any network.
# - Nothing comes near the two that are told what is known in the gap: the loops from
#   both sides, and the model that reads the load off, without any loop. If something
#   else was measured in the gap, use it. Without it, both sides are no better than *day
#   + line* here; :doc:`/results/series` has a table.
#
# What may be missing in a series to be forecast
# ----------------------------------------------
# `ESNForecaster` takes NaN as it is, and it need not be filled beforehand: no model
# learns from what was made up. The next 48 hours, with up to a third of the rows before
# lost at random, and in blocks of 12; beside it the same record filled by lines first.
print("root mean squared error of the 48 hours that follow, kW")
y_past, ahead = truth["load"][:1200], slice(1200, 1248)
for lost_share, length in [(0.0, 1), (0.3, 1), (0.3, 12)]:
    rng = np.random.default_rng(0)
    starts = np.flatnonzero(rng.random(1200 - length) < lost_share / length)
    hole = np.zeros(1200, bool)
    for s in starts:
        hole[s : s + length] = True
    y = y_past.mask(hole)
    fills = {"NaN as it is": y}
    if lost_share:
        fills["lines first"] = y.interpolate(limit_direction="both")
    print(f"{hole.mean():4.0%} missing, {length:2d} at a time:", end="")
    for name, values in fills.items():
        model = ESNForecaster(random_state=0).fit(values, exog=known[:1200])
        error = model.forecast(48, exog=known[ahead]) - truth["load"][ahead]
        print(f"  {name} {np.sqrt(np.mean(error**2)):.2f}", end="")
    print()


# %%
# Left as NaN, rows lost at random cost nothing here, and blocks something. Lines across
# nights and noons are learned as if they had happened. (This is one forecast of one
# record; `backtest` repeats it from many places.)
#
# Gaps in inputs
# --------------
# A row without temperature is another matter: every row is a step of the network's
# state, so the network needs *some* input, and leaving the row out would shift time.
# NaN in inputs is refused, therefore; in targets until you say what it means; and dates
# with holes, too.
#
# Fill inputs by what is plausible. Three ways, for a thermometer that fails a third of
# the time, for 12 hours on average; the load is read off from the last 600 hours. An
# indicator is one more input, 1 where the value was made up, so that the readout can
# trust it less.
rng = np.random.default_rng(3)
works = np.ones(len(truth), bool)
for t in range(1, len(truth)):
    works[t] = rng.random() > (1 / 24 if works[t - 1] else 11 / 12)
measured = inputs["temperature"].where(works)
ways = {
    "nothing missing": inputs["temperature"],
    "mean": measured.fillna(measured.mean()),
    "last value": measured.ffill().bfill(),
    "line": measured.interpolate(limit_direction="both"),
}
print(f"{1 - works.mean():.0%} of temperatures missing; error of the load, kW")
for name, temperature in ways.items():
    found = {"": [], "with indicator": []}
    for marks, errors in found.items():
        X = inputs.assign(temperature=temperature)
        if marks:
            X["made_up"] = 1.0 - works
        for seed in range(3):
            esn = read_off(seed).fit(X[:1800], truth["load"][:1800])
            guess = pd.Series(esn.predict(X[1800:]), hours[1800:])
            errors.append(rmse(guess.reindex(hours), hours >= hours[1800]))
    plain, marked = (np.mean(errors) for errors in found.values())
    marked = f", with indicator {marked:.2f}" if name != "nothing missing" else ""
    print(f"{name:16s} {plain:.2f}{marked}")


# %%
# A failed input costs far more than a lost target: compare the column *known inputs*
# above. How it is filled matters less than that it failed; the line with an indicator
# is best here. What helps is a second thermometer, or the nearest weather station. Whole
# series with one label are filled by `ESNSequenceClassifier` itself:
# ``missing_values="interpolate"``, as :doc:`/guide/data` says.
#
# Irregular time
# --------------
# To the network every row is one step, however long it took, unless it is told. A logger
# that writes when it likes, at three of ten hours by chance, can be taken as it comes
# (with dates in the index `fit` warns), with the length of each step as an input, with
# the times in a column that scales the leak (``time_column``), or be laid on the grid of
# hours by pandas: inputs by a line, targets left empty and skipped.
rng = np.random.default_rng(0)
written = rng.random(len(truth)) < 0.3
X, y = inputs[written], truth["load"][written]
when = (X.index - X.index[0]).total_seconds() / 3600
steps = np.log(np.diff(when, prepend=-1))
grid = inputs.assign(temperature=inputs["temperature"].where(written).interpolate())
grid = grid.bfill()
on_grid = truth["load"].where(written)
split, test = hours[1800], written & (hours >= hours[1800])


def judge(X, y, seed, times=None):
    X, past = X.reset_index(drop=True), X.index < split
    esn = read_off(seed).set_params(time_column=times)
    esn.fit(X[past], y.to_numpy()[past])
    guess = pd.Series(esn.predict(X[~past].reset_index(drop=True)), y.index[~past])
    return rmse(guess.reindex(hours), test)


print("error of the load, kW, seeds 0 to 2")
for name, (rows_in, rows_out, *times) in {
    "as it comes": (X, y),
    "step as an input": (X.assign(step=steps), y),
    "times in a column": (X.assign(when=when), y, "when"),
    "on the grid": (grid, on_grid),
}.items():
    errors = [judge(rows_in, rows_out, seed, *times) for seed in range(3)]
    print(f"{name:18s}", np.round(errors, 2))
plt.show()

# %%
# The grid is best, as it usually is while gaps are not much longer than what the system
# remembers: its steps mean the same everywhere. It costs rows, here three times as
# many. Told the times, the network comes close to it on the rows there are, and that is
# what is left where a grid would be mostly empty, with events that are days apart: the
# longer a step took, the more of what was before is forgotten. It needs a leak rate below
# 1. The step as an input is better than nothing. Choose the grid by what happens between
# two rows, not by the shortest gap: ``y.resample("h").mean()`` puts several
# measurements of an hour into one, and NaN where there is none.
#
# The decisions
# -------------
# ===================================  ================================================
# missing                              do
# ===================================  ================================================
# a few values of a series             a line
# long gaps, other inputs known there  ``ESNRegressor(missing_targets="skip")``, or
#                                      ``fill_gaps(y, RNNRegressor(), exog=...)``
# long gaps, nothing else known        day + line or ``fill_gaps``; judge by gaps of yours
# values of a series to be forecast    leave NaN, `ESNForecaster` takes it
# targets                              leave NaN, ``missing_targets="skip"``
# inputs                               line; an indicator if held-out rows like it
# values in whole series               ``missing_values="interpolate"``
# times at irregular distances         a grid, targets left empty; ``time_column``
#                                      where it would be mostly empty
# ===================================  ================================================
#
# How series with dates are read is told in :doc:`/conventions`; how a forecast with
# inputs is judged, in :doc:`plot_known_inputs`; what to do about targets of a model
# that learns in use, in :doc:`plot_learn_while_it_runs`.

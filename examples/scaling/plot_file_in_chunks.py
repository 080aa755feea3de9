"""
A file that does not fit in memory
==================================

Fit half a year of minutes a week at a time, with the weights of one fit to all rows.

A sensor has been read every minute for half a year, and the file is read a week at a time: each
week goes through ``partial_fit`` and is dropped. What the network keeps does not grow with the
file, and the weights that it ends with are those of one ``fit`` to all the rows. The picture shows
both.
"""

import tempfile
import tracemalloc
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from reservoir import ESNRegressor

# %%
# The file
# --------
# A house is heated, and its wall keeps what was heated before: the room's temperature follows
# the heater's power and the weather with two delays, and windows are opened when it gets warm.
# The question is what the room's thermometer should read, from the other two alone; where it
# says something else, it is broken. Here the file is written first; any CSV with one row per
# time step does.
DAY, N_DAYS = 24 * 60, 182
rng = np.random.default_rng(0)
minutes = np.arange(DAY * N_DAYS)
year, day = 2 * np.pi * minutes / (365 * DAY), 2 * np.pi * minutes / DAY
weather = 8 - 9 * np.cos(year) - 4 * np.cos(day)
weather += np.repeat(np.cumsum(rng.normal(0, 0.3, 24 * N_DAYS)) % 8 - 4, 60)
power = rng.uniform(0, 3, 24 * N_DAYS)  # of the heater, set every hour, off at night
heater = np.repeat(power, 60) * (minutes % DAY > 6 * 60)
room = np.empty(len(minutes))
air = wall = 18.0
for t in minutes:
    window = 0.02 * max(air - 23, 0)
    air += 0.03 * heater[t] + 0.02 * (wall - air)
    air += (0.002 + window) * (weather[t] - air)
    wall += 0.001 * (air - wall) + 0.0005 * (weather[t] - wall)
    room[t] = air
room += rng.normal(0, 0.1, len(room))

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "house.csv"
frame = pd.DataFrame({"heater": heater, "weather": weather, "room": room})
frame.to_csv(path, index=False, float_format="%.2f")
print(f"{path.name}: {len(frame):,} rows, {path.stat().st_size / 1e6:.1f} MB")
del frame, minutes, weather, heater, room  # from here on there is the file only

# %%
# A week at a time
# ----------------
# ``pandas.read_csv(chunksize=...)`` hands out the next rows and forgets the last ones. The
# network goes on where the week before ended. Three things differ from a plain ``fit``:
#
# - Inputs are scaled by constants that are known before, since no scaler has seen the whole file;
#   scikit-learn's ``StandardScaler().partial_fit`` in a first pass over the file is the other way.
# - The washout is a number, so that it does not depend on the length of the first chunk.
# - The last four weeks are not learned from: they are for the test.
#
# The leak rate says how slow the network is: 0.003 per minute is a memory of hours, as the walls
# have.
WEEK, N_WEEKS, N_TEST = 7 * DAY, N_DAYS // 7, 4


def weeks():
    with pd.read_csv(path, chunksize=WEEK) as chunks:
        for chunk in chunks:
            inputs = chunk[["heater", "weather"]].to_numpy() / [3.0, 10.0]
            yield inputs, chunk["room"].to_numpy() - 20


def make_network():
    return ESNRegressor(
        200,
        leak_rate=0.003,
        spectral_radius=0.5,
        input_scaling=0.3,
        washout=DAY,
        random_state=0,
    )


esn = make_network()
tracemalloc.start()  # counts what Python and NumPy ask for
peaks = []
for week, (X, y) in enumerate(weeks()):
    if week >= N_WEEKS - N_TEST:
        break
    tracemalloc.reset_peak()
    esn.partial_fit(X, y)
    peaks.append(tracemalloc.get_traced_memory()[1] / 1e6)
tracemalloc.stop()
print(
    f"memory in the second week: {peaks[1]:.1f} MB, in the last one: {peaks[-1]:.1f} MB"
)

# %%
# The weeks that were held back
# -----------------------------
# They are predicted in chunks as well: ``stream`` keeps the state of the network from one to the
# next. The rival is a straight line through the same two inputs, learned in the same weeks.
sums = np.zeros((3, 3)), np.zeros(3)
session = esn.stream()
errors, line_errors = [], []
for week, (X, y) in enumerate(weeks()):
    Z = np.column_stack([X, np.ones(len(X))])
    if week < N_WEEKS - N_TEST:
        sums = sums[0] + Z.T @ Z, sums[1] + Z.T @ y
        continue
    predicted = session.predict(X)
    errors.append(predicted - y)
    line_errors.append(Z @ np.linalg.solve(*sums) - y)


def rms(parts):
    return np.sqrt(np.mean(np.concatenate(parts) ** 2))


print(f"error in the last {N_TEST} weeks, K (the thermometer's own noise is 0.10):")
print(f"  straight line       {rms(line_errors):.2f}")
print(f"  echo state network  {rms(errors):.2f}")

# %%
# The same as one fit
# -------------------
# This file is small enough to check what was said: one ``fit`` to all training weeks gives the
# same weights, to rounding. It does not store the states either. With `n` units either way keeps
# two matrices of `n` by `n` numbers, one for each half of the rows by which the penalty is chosen,
# and works through the rows in blocks.
X, y = (np.concatenate(parts) for parts in zip(*list(weeks())[:-N_TEST], strict=True))
whole = make_network().fit(X, y)
gap = np.abs(whole.coef_ - esn.coef_).max() / np.abs(whole.coef_).max()
print(
    f"largest difference between the two sets of weights: {gap:.0e} of the "
    "largest weight"
)

# %%
# In pictures
# -----------
# Above, two days of the test, with the thermometer in grey. Below, the most memory that each
# week took, against the number of rows read so far. All states of the training weeks would take
# as much as the dashed line says; nothing ever holds them.
fig, (top, bottom) = plt.subplots(2, 1, figsize=(7, 6.5), layout="constrained")
hours = np.arange(2 * DAY) / 60
top.plot(
    hours, (predicted - errors[-1])[: 2 * DAY] + 20, color="0.6", label="thermometer"
)
top.plot(hours, predicted[: 2 * DAY] + 20, color="C0", label="echo state network")
top.set(xlabel="hours", ylabel="room, °C")
top.legend(frameon=False)
rows = WEEK * np.arange(1, len(peaks) + 1) / 1000
bottom.semilogy(
    rows, peaks, "o-", color="black", markersize=4, label="partial_fit, week by week"
)
bottom.semilogy(
    rows, 8e-3 * 200 * rows, "--", color="0.5", label="states, if they were stored"
)
bottom.set(xlabel="thousand rows read", ylabel="memory, MB", ylim=(1, None))
bottom.legend(frameon=False)
plt.show()
folder.cleanup()

# %%
# NumPy files work in the same way: ``np.load(name, mmap_mode="r")`` reads from the disk what is
# asked for, so that ``X[start : start + n]`` is a chunk. Where recordings lie in files of their
# own, say ``partial_fit(X, y, new_sequence=True)`` with the first rows of each. Such a fit can
# be stopped at any chunk, saved with ``reservoir.save`` and continued in another process.

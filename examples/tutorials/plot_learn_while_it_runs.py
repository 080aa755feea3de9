"""
Learn while it runs
===================

A model is fitted to a plant, and then the plant changes: its gain jumps, later it creeps. A model
that was fitted once is soon wrong, and one that learns from all rows alike adapts more slowly with
every row. Fifteen minutes on what follows such a plant, what that costs while nothing changes, and
how to choose how much to forget.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import reservoir
from reservoir import ESNClassifier, ESNRegressor, RNNRegressor

# %%
# A plant whose gain changes
# --------------------------
# The output of the plant depends on past inputs, and not linearly; it is measured with noise. The
# gain is 1 for 2500 rows and then falls to .5 at once; from row 4000 to row 7000 it creeps up to
# 1.5, and stays there. The models know nothing of a gain: they see inputs and outputs.
n_rows, n_fit = 9000, 1000
gain = np.interp(np.arange(n_rows), [2500, 2500, 4000, 7000], [1.0, 0.5, 0.5, 1.5])


def plant(gain, rng):
    u = rng.uniform(-1, 1, len(gain))
    v = np.zeros(len(gain))
    for t in range(2, len(gain)):
        v[t] = 0.6 * v[t - 1] + u[t]
    y = gain * (np.tanh(v) + 0.5 * v * np.roll(u, 2))
    return u[:, None], y + 0.05 * rng.standard_normal(len(gain))


X, y = plant(gain, np.random.default_rng(0))


# %%
# Predict, then learn
# -------------------
# A stream has no test set, and needs none: each row can be predicted before it is learned from.
# The error of these predictions is called prequential, and is what a model in use would have had.
# Here 50 rows are predicted at a time, and then handed to `partial_fit`, which goes on where the
# last rows ended; `predict` does so, too, and changes nothing.
def follow(model, every=50):
    model.fit(X[:n_fit], y[:n_fit])
    errors = []
    for now in range(n_fit, n_rows, every):
        rows = slice(now, now + every)
        errors.append(model.predict(X[rows]) - y[rows])
        model.partial_fit(X[rows], y[rows])
    return np.concatenate(errors)


# %%
# Five models follow the plant. The first is fitted to 1000 rows and then left as it is. The second
# gives all rows the same weight, which is what `partial_fit` does by default: chunk by chunk it
# arrives at what one `fit` to all rows would give. The third forgets: with ``forgetting=0.99``
# each new row multiplies the weights of all rows before it by .99. The weights then add up to 1 /
# (1 - .99) = 100 rows, which is called its memory. The penalty `alpha` is not forgotten, so that
# 101 coefficients can be found from a memory of 100 rows.
network = {"input_scaling": 0.5, "spectral_radius": 0.6, "alpha": 1e-4, "washout": 100}
network["random_state"] = 0
errors = {}
once = ESNRegressor(**network).fit(X[:n_fit], y[:n_fit])
errors["fitted once"] = once.predict(X[n_fit:]) - y[n_fit:]
errors["partial_fit"] = follow(ESNRegressor(**network))
errors["forgetting=0.99"] = follow(ESNRegressor(**network, forgetting=0.99))


# %%
# Row by row
# ----------
# Behind `partial_fit` all coefficients are solved for anew when they are next needed, here once in
# 50 rows. The cost of that grows with the cube of the number of units. Where each row is to be
# learned from at once, the fourth way is cheaper: `stream()` returns a session, which carries the
# network's state along, and whose `learn` updates the coefficients by recursive least squares, at
# a cost that grows with the square. First `predict` a row, then `learn` the same row with its
# target. The estimator that the session came from is not changed. `score_` is the prequential R^2,
# in which older rows fade, too.
def follow_rows(session):
    guesses = []
    for t in range(n_fit, n_rows):
        guesses.append(session.predict(X[t : t + 1])[0])
        session.learn(X[t : t + 1], y[t : t + 1])
    return np.array(guesses) - y[n_fit:]


session = ESNRegressor(**network, forgetting=0.99).fit(X[:n_fit], y[:n_fit]).stream()
errors["stream().learn"] = follow_rows(session)
print(f"R^2 of the last rows, by the session itself: {session.score_:.3f}")

# %%
# The fifth adapts all its weights, not only those of the readout: a trained network of 20 units.
# With each chunk it fits them to the last 300 rows by least squares, and keeps the result if it
# predicts better.
trained = RNNRegressor(
    20, online="least_squares", online_window=300, max_iter=0, washout=100, random_state=0
)
errors["trained network"] = follow(trained)

# %%
# Who follows?
# ------------
# The root mean squared error of the last 200 predictions, below the gain of the plant. The grey
# line is the standard deviation of the noise, which nobody can predict.
styles = {
    "fitted once": ("black", ":"),
    "partial_fit": ("tab:orange", "-."),
    "forgetting=0.99": ("tab:blue", "-"),
    "stream().learn": ("tab:red", "--"),
    "trained network": ("tab:green", (0, (5, 1, 1, 1, 1, 1))),
}
fig, (top, ax) = plt.subplots(
    2, 1, figsize=(6.4, 4.8), sharex=True, height_ratios=[1, 3], layout="constrained"
)
top.plot(gain, color="black")
top.set(ylabel="gain", ylim=(0, 1.8))
times = np.arange(n_fit, n_rows)
for name, (color, style) in styles.items():
    running = np.sqrt(np.convolve(errors[name] ** 2, np.ones(200) / 200, "valid"))
    ax.plot(times[199:], running, color=color, linestyle=style, label=name)
ax.axhline(0.05, color="0.6", linewidth=1)
ax.annotate("noise", (n_rows, 0.05), xytext=(-2, 2), textcoords="offset points", ha="right")
ax.set(xlabel="row", ylabel="RMS error of 200 rows", yscale="log", xlim=(n_fit, n_rows))
ax.set_ylim(0.04, 0.5)
ax.set_yticks([0.05, 0.1, 0.2, 0.5], ["0.05", "0.1", "0.2", "0.5"])
ax.minorticks_off()
fig.legend(loc="outside lower center", ncols=3, frameon=False)

phases = {
    "before": (1000, 2500),
    "jump": (2500, 4000),
    "creep": (4000, 7000),
    "after": (7000, 9000),
}


def by_phase(errors):
    parts = [errors[first - n_fit : last - n_fit] for first, last in phases.values()]
    return [np.sqrt(np.mean(part**2)) for part in parts]


print("root mean squared error" + "".join(f"{phase:>9s}" for phase in phases))
for name, found in errors.items():
    print(f"{name:23s}" + "".join(f"{error:9.3f}" for error in by_phase(found)))

# %%
# - While nothing changes (*before*), forgetting costs something: .075 against .059. A hundred rows
#   say less of the plant than all rows do.
# - Behind the jump, `partial_fit` describes the mean of old and new rows. After 1500 new ones it
#   has not outweighed the 2400 before them. When it is right at last, near row 5000, the gain is
#   on its way to somewhere else. (That the model fitted once is right near row 5500 is no merit:
#   the gain passes 1.)
# - With forgetting the errors are small again as soon as a few memories' worth of rows have come,
#   and stay so while the gain creeps. Row by row is slightly better than 50 rows at a time, since
#   what the last rows tell is used at once.
# - The trained network does about as well with a fifth of the units, but costs more per row. It is
#   ahead where more changes than a readout can make up for (:doc:`/gallery/online/plot_online_adaptation`).
#
# If the plant may change, forget. If you are sure that it will not, `partial_fit` without
# forgetting is the best there is.
#
# How much to forget
# ------------------
# A long memory averages the noise out, a short one is up to date; in between the error has a
# valley. Where it lies depends on how fast the plant changes, on the noise, and on the number of
# units. Take rows that have been recorded, follow them with several factors, and keep the best.
# Since each row is predicted before it is learned from, none need to be held back.
memories = np.array([30, 50, 100, 200, 500, 1000, 3000])
found = [follow(ESNRegressor(**network, forgetting=1 - 1 / rows)) for rows in memories]
fig, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
markers = {"before": "o:", "jump": "s--", "creep": "^-.", "after": "v:"}
for phase, valley in zip(phases, np.transpose([by_phase(each) for each in found]), strict=True):
    ax.plot(memories, valley, markers[phase], markersize=5, label=phase)
valley = [np.sqrt(np.mean(each**2)) for each in found]
ax.plot(memories, valley, "k-", linewidth=2, label="all rows")
ax.set(
    xscale="log", yscale="log", xlabel="memory in rows, 1 / (1 - forgetting)", ylabel="RMS error"
)
ax.set_xticks(memories, [str(rows) for rows in memories])
ax.set_yticks([0.05, 0.1, 0.2], ["0.05", "0.1", "0.2"])
ax.set_ylim(0.05, 0.3)
ax.minorticks_off()
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
best = memories[np.argmin(valley)]
print(f"the least error of all rows: memory of {best} rows, forgetting {1 - 1 / best:.4g}")

# %%
# The constant stretch (*before*) wants as much memory as it can get, the jump as little as
# possible, and the creep about a hundred rows. The valley of all rows is flat: any factor from .98
# to .998 is within a fifth of the best. So the factor need not be exact, but its order of
# magnitude has to be right, and it is easier to think of as a memory: for how many rows does the
# plant stay much the same? With a memory below the number of units the penalty `alpha` matters
# more, and should be chosen in the same way.
#
# Classes that appear later
# -------------------------
# A classifier learns in the same way. Here it listens to a machine: a sine while that idles, a
# saw-tooth under load, and one day a square wave, a fault that the first rows do not show. It has
# to be named nevertheless in the first `partial_fit`, where `classes` lists what may come.
state = np.repeat(["idle", "load", "idle", "load", "fault", "idle", "fault", "load"], 250)
phase = 2 * np.pi * np.arange(len(state)) / 21.3
hum = np.select(
    [state == "idle", state == "load"],
    [np.sin(phase), phase / np.pi % 2 - 1],
    np.sign(np.sin(phase)),
)
hum = (hum + 0.3 * np.random.default_rng(1).standard_normal(len(hum)))[:, None]
classifier = ESNClassifier(100, forgetting=0.999, alpha=1e-2, washout=50, random_state=0)
classifier.partial_fit(hum[:500], state[:500], classes=["idle", "load", "fault"])
session = classifier.stream()
for first in range(500, len(hum), 250):
    right = 0
    for t in range(first, first + 250):
        right += session.predict(hum[t : t + 1])[0] == state[t]
        session.learn(hum[t : t + 1], state[t : t + 1])
    print(f"rows {first} to {first + 249}, {state[first]:5s} {right / 250:.0%} right")

# %%
# When the fault first comes, two rows of five are told right, the second time four of five: there
# is no need to fit anything again.
#
# Saving in the middle
# --------------------
# A session is saved with all that it has learned, with its state and its score. What was loaded
# goes on with the same numbers.
with tempfile.TemporaryDirectory() as folder:
    reservoir.save(session, Path(folder) / "session.npz")
    again = reservoir.load(Path(folder) / "session.npz")
print("the same afterwards:", np.array_equal(again.predict(hum[:5]), session.predict(hum[:5])))

# %%
# When a detector says so
# -----------------------
# One rate of forgetting is a compromise between quiet times and jumps. A drift detector can settle
# it. `river <https://riverml.xyz>`_ has several; ADWIN keeps a window of errors, and says when
# their mean has changed. A session calls `callback` after each `learn`, and the callback may make
# it forget what it has learned so far. This part needs river (``pip install river``); with version
# 0.26 the jump is found after 36 rows, and the errors are .059, .085, .096 and .071: as small as
# those without forgetting while nothing changes, and smaller than with it behind the jump. The
# creep is found twice, which is too seldom: there forgetting at a steady rate does better.
try:
    from river import drift
except ImportError:
    print("river is not installed: no detector")
else:
    detector, found_at = drift.ADWIN(), []

    def watch(session):
        for error in np.abs(session.last_errors_):
            detector.update(error)
            if detector.drift_detected:
                session.forget(0.01)  # what was learned so far weighs a hundredth
                found_at.append(n_fit + session.n_learned_)

    esn = ESNRegressor(**network, forgetting=0.999).fit(X[:n_fit], y[:n_fit])
    found = follow_rows(esn.stream(callback=watch))
    print("drift found at rows", found_at)
    print(f"{'with a detector':23s}" + "".join(f"{error:9.3f}" for error in by_phase(found)))
plt.show()

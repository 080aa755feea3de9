"""
Labels at every step
====================

Tell at each row of a noisy recording whether a machine is off, idles or runs; a network learns it
from a recording with labels.
"""

import matplotlib.pyplot as plt
import numpy as np

from reservoir import ESNClassifier

rng = np.random.default_rng(0)
y = np.repeat(rng.choice(["off", "idle", "run"], 100), 30)  # 100 segments of 30 rows
X = np.select([y == "off", y == "idle"], [0.0, 1.0], 2.0) + rng.normal(size=3000)
clf = ESNClassifier(random_state=0).fit(X[:2000, None], y[:2000])
print(f"right: {clf.score(X[2000:, None], y[2000:]):.1%}")
plt.figure(figsize=(7, 2.6), layout="constrained")
plt.plot(X[2000:2400], color="0.75", label="recording")
plt.plot(clf.predict_proba(X[2000:, None])[:400, 2], label="probability of run")
plt.figlegend(loc="outside upper center", ncols=2, frameon=False)

# %%
# The noise is as large as the steps between the levels, so a single row says little. The state of
# the network remembers the rows before. The rest of the page labels what people do, and decides how
# long a display should wait before it shows a change, and when to raise an alarm.
#
# The data
# --------
# A sensor at the belt records people who stand, walk, climb stairs and come down again. Now and
# then somebody stumbles, for .6 seconds. The data are generated, so the truth is known at every
# step. Each person has a pace, a strength and a tilted sensor. Climbing and coming down are the
# same movement, forwards and backwards: no single row distinguishes them, and no mean.
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir.model_selection import stack_sequences

rate = 25  # rows a second
kinds = {"stand": 0.0, "walk": 1.0, "up": 0.8, "down": 0.8}  # and the forward movement


def steps(kind, phase):
    waves = np.sin(np.outer(phase, [1, 2, 3])) / [1, 2, 3]
    vertical = {"stand": 0 * phase, "up": waves.sum(axis=1), "down": -waves.sum(axis=1)}
    vertical["walk"] = 1.2 * np.sin(phase) + 0.5 * np.cos(2 * phase)
    return np.c_[1.8 * vertical[kind], kinds[kind] * np.cos(phase)]


def recording(rng, n_rows=120 * rate):
    pace, strength = rng.uniform(1.6, 2.1), rng.uniform(0.8, 1.3)
    tilt = rng.normal(0, 0.15)
    rows, labels, kind, phase = [], [], None, 0.0
    while len(labels) < n_rows:
        kind = rng.choice([other for other in kinds if other != kind])
        n = int(rng.uniform(4, 12) * rate)
        speed = pace * rng.uniform(0.9, 1.05)
        moved = 2 * np.pi * (speed / rate + rng.normal(0, 0.006, n))
        part, names = strength * steps(kind, phase + np.cumsum(moved)), [kind] * n
        phase += moved.sum()
        if kind != "stand" and rng.random() < 0.4:
            at = rng.integers(rate, n - rate)
            t = np.arange(n - at) / rate
            shake = rng.choice([-4, 4]) * np.exp(-t / 0.2) * np.sin(6 * np.pi * t)
            part[at:] += np.c_[shake, shake / 2]
            names[at : at + 15] = ["stumble"] * 15
        rows.append(part)
        labels += names
    turn = [[np.cos(tilt), -np.sin(tilt)], [np.sin(tilt), np.cos(tilt)]]
    X = np.concatenate(rows) @ turn + rng.normal(0, 0.5, (len(labels), 2))
    return X[:n_rows], np.array(labels)[:n_rows]


rng = np.random.default_rng(0)
X, y = map(list, zip(*[recording(rng) for _ in range(32)], strict=True))  # 32 people
train, test = slice(0, 16), slice(16, 32)

# %%
# Fit, predict
# ------------
# `fit` takes a list of recordings and a list of labels, one for each row. Each recording starts
# from the initial state. A third of the units follows each row, the others average over about three
# and ten rows. Scale values of very different size first; these are about 1.
clf = ESNClassifier(random_state=0).fit(X[train], y[train])
labels = clf.predict(X[test])  # a list again, one array of labels per recording
right = np.array([a == b for a, b in zip(labels, y[test], strict=True)])
print(f"right in all rows: {right.mean():.1%}")
print(f"right in the first second: {right[:, :rate].mean():.1%}")

# %%
# The first rows of a recording are the weakest, since the network does not know what was before.
# `fit` leaves out ``washout_`` of them, `predict` labels them all.
#
# Two rivals
# ----------
# Both are logistic regressions. One sees the row alone. The other sees what an engineer would
# compute from the last second: mean, deviation, extremes and skewness of values and differences.


def summaries(x, n=rate):
    values = pd.DataFrame(np.c_[x, np.diff(x, axis=0, prepend=x[:1])])
    last = values.rolling(n, min_periods=1)
    parts = [values, last.mean(), last.std(), last.min(), last.max(), last.skew()]
    return np.nan_to_num(np.hstack(parts))


truth = np.concatenate(y[test])
for name, features in {"row": np.asarray, "summaries": summaries}.items():
    rival = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    rival.fit(np.vstack([features(x) for x in X[train]]), np.concatenate(y[train]))
    score = rival.score(np.vstack([features(x) for x in X[test]]), truth)
    print(f"{name:10s} right in {score:.1%} of the rows")

# %%
# Cross-validation
# ----------------
# Most tools of scikit-learn take one table, not a list. `stack_sequences` makes one. Its first
# column tells to which recording a row belongs, and ``sequence_column=0`` reads it. No person may
# be in two folds: ``GroupKFold`` takes the groups. Never shuffle rows into folds: neighbours are
# almost equal. The probabilities of each person come from a fit without that person.
table, stacked, person = stack_sequences(X[train], y[train])
by_column = ESNClassifier(sequence_column=0, random_state=0)
proba = cross_val_predict(
    by_column, table, stacked, groups=person, cv=GroupKFold(4), method="predict_proba"
)
held_out = clf.classes_[proba.argmax(axis=1)]
print(f"right on held-out people: {np.mean(held_out == stacked):.1%}")

# %%
# First decision: how long to wait
# --------------------------------
# A mean of the last probabilities changes less often, and later. The delay is the median time until
# a change is shown.
by_person = [(proba[person == p], stacked[person == p]) for p in range(16)]
true = np.mean([np.sum(known[1:] != known[:-1]) / 2 for _, known in by_person])
print(f"true changes a minute: {true:.1f}")
for n in (1, 6, 12, 25):
    correct, changes, waits = [], [], []
    for p, known in by_person:
        calm = pd.DataFrame(p).rolling(n, min_periods=1).mean().to_numpy()
        shown = clf.classes_[calm.argmax(axis=1)]
        correct.append(np.mean(shown == known))
        changes.append(np.sum(shown[1:] != shown[:-1]) / 2)  # two minutes
        for b in np.flatnonzero(known[1:] != known[:-1]) + 1:
            seen = np.flatnonzero(shown[b:] == known[b])
            if "stumble" not in known[b - 1 : b + 75] and len(seen):
                waits.append(seen[0] / rate)
    found = f"right {np.mean(correct):.1%}, {np.mean(changes):4.1f} changes a minute"
    print(f"mean of {n / rate:.2f} s: {found}, delay {np.median(waits):.2f} s")

# %%
# A display can wait half a second. An alarm should not: a stumble is over too soon.
#
# Second decision: when to raise an alarm
# ---------------------------------------
# *Stumble* is seldom the most probable label, since stumbles are rare. ``class_weight="balanced"``
# gives all kinds the same weight in the fit. Or the alarm is raised if the *probability* exceeds a
# threshold. Say that a missed stumble costs as much as five seconds of false alarm. An alarm may
# come in the second in which the stumble begins, or in the next one.


def alarms(flags, truth):
    """Count missed stumbles and seconds of false alarm."""
    alarm = flags.reshape(-1, rate).any(axis=1)
    stumble = (truth == "stumble").reshape(-1, rate).any(axis=1)
    before = np.r_[False, stumble[:-1]]
    missed = stumble & ~before & ~alarm & ~np.r_[alarm[1:], False]
    return missed.sum(), (alarm & ~stumble & ~before).sum()


column = list(clf.classes_).index("stumble")
thresholds = np.linspace(0.02, 0.8, 40)
found = np.array([alarms(proba[:, column] > t, stacked) for t in thresholds])
costs = found @ [5, 1]
best = thresholds[costs.argmin()]

fig, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
ax.plot(thresholds, found[:, 0], "--", color="black", label="stumbles missed")
ax.plot(thresholds, found[:, 1], ":", color="C1", label="seconds of false alarm")
ax.plot(thresholds, costs, color="C0", label="cost: 5 missed + false")
ax.axvline(best, color="0.7", linewidth=1)
ax.set(xlabel="alarm from this probability on", ylabel="number in 32 minutes")
ax.set_ylim(0, 400)
ax.legend(frameon=False)
# sphinx_gallery_thumbnail_number = 2

# %%
# The grey line is at the least cost. The verdict, on the sixteen people of the test:
balanced = ESNClassifier(class_weight="balanced", random_state=0).fit(
    X[train], y[train]
)
plain, bold = np.concatenate(labels), np.concatenate(balanced.predict(X[test]))
likely = np.concatenate(clf.predict_proba(X[test]))[:, column] > best
for name, flags, labels in [
    ("the most probable label", plain == "stumble", plain),
    ('class_weight="balanced"', bold == "stumble", bold),
    (f"threshold {best:.2f}", likely, plain),
]:
    missed, false = alarms(flags, truth)
    cost = f"missed {missed:2d}, false {false:3d}, cost {5 * missed + false:3d}"
    print(f"{name:24s} {cost}, rows right {np.mean(labels == truth):.1%}")
plt.show()

# %%
# By the most probable label the program misses many stumbles. Balanced weights find most of them,
# with many false alarms. The threshold costs least, and leaves the other labels as they are.
#
# To take away
# ------------
# - The display shows the mean of half a second. The alarm uses the probability of the row.
# - The threshold is where missed stumbles and false alarms cost least, on held-out people.
# - In use, row by row, open ``session = clf.stream()`` and call ``session.predict_proba(row)``.
# - `RNNClassifier` takes the same lists and trains all weights (:doc:`/guide/training`).
#
# One label for a whole recording: :doc:`plot_classify_whole_series`. Labels that arrive while the
# program runs: :doc:`plot_learn_while_it_runs`. A file for another process: :doc:`/saving`.

"""
Classify whole series
=====================

Tell which figure a hand draws in the air, from the accelerations that a wristband measures.

Each series is an array of time steps and channels, of any length, and has one label:
"""

import matplotlib.pyplot as plt
from sklearn.metrics import ConfusionMatrixDisplay

from reservoir import ESNSequenceClassifier
from reservoir.datasets import gestures

X, y = gestures(380, noise=1.5, random_state=0)
train, test = slice(0, 80), slice(80, None)
clf = ESNSequenceClassifier(random_state=0).fit(X[train], y[train])
print(f"right on {len(X[test])} new gestures: {clf.score(X[test], y[test]):.1%}")
predicted = clf.predict(X[test])
fig, ax = plt.subplots(figsize=(5, 4.6), layout="constrained")
style = {"cmap": "Blues", "xticks_rotation": 90, "colorbar": False, "ax": ax}
ConfusionMatrixDisplay.from_predictions(y[test], predicted, **style)

# %%
# Each series drives a random network, the reservoir. The states of its units are summarised in a
# row of numbers, and a linear model is fitted to these rows. Nothing had to be set, scaled or
# brought to one length. The network confuses few gestures, mostly those that begin alike.
#
# The rest of the page decides when a program should act on a gesture and when it should ask again,
# which channel it needs, and how long it must wait.
#
# Look at the data
# ----------------
# Three gestures of four kinds, channel by channel. Left and right differ only in their order.
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir.model_selection import channel_importance

rate = 50  # time steps a second
channels = ["sideways", "forwards", "upwards"]
kinds = ["left", "right", "push", "circle"]
fig, axes = plt.subplots(3, 4, sharex=True, sharey="row", layout="constrained")
fig.set_size_inches(7, 4)
fig.supxlabel("seconds", fontsize="medium")
for column, label in zip(axes.T, kinds, strict=True):
    for i in np.flatnonzero(y == label)[:3]:
        for ax, values in zip(column, X[i].T, strict=True):
            ax.plot(np.arange(len(values)) / rate, values, linewidth=0.8)
    column[0].set_title(label, fontsize="medium")
for ax, name in zip(axes[:, 0], channels, strict=True):
    ax.set_ylabel(f"{name}\nm/s²")
# sphinx_gallery_thumbnail_number = 2

# %%
# Two rivals
# ----------
# Both end in a logistic regression. The first sees mean and standard deviation of each channel, the
# second the raw series at 50 equidistant times. Five seeds have other gestures and other networks.


def summaries(series):
    return np.array([np.r_[rows.mean(axis=0), rows.std(axis=0)] for rows in series])


def resampled(series, n=50):
    def one(rows):
        at, steps = np.linspace(0, len(rows) - 1, n), np.arange(len(rows))
        return np.ravel([np.interp(at, steps, channel) for channel in rows.T])

    return np.array([one(rows) for rows in series])


def compare(seed):
    X, y = gestures(380, noise=1.5, random_state=seed)
    found = {}
    for name, rows in {
        "mean and deviation": summaries,
        "raw series": resampled,
    }.items():
        rival = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        rival.fit(rows(X[train]), y[train])
        found[name] = rival.score(rows(X[test]), y[test])
    network = ESNSequenceClassifier(random_state=seed).fit(X[train], y[train])
    return {**found, "network": network.score(X[test], y[test])}


shares = 100 * pd.DataFrame([compare(seed) for seed in range(5)]).rename_axis("seed")
print("right on 300 new gestures, %")
print(shares.round(1).to_string())

# %%
# From a table
# ------------
# A long table has a row for each time step. An index of two levels, the last of which is time, or a
# column that you name (``sequence_column="gesture"``) tells to which series a row belongs.
tables = [pd.DataFrame(series, columns=channels) for series in X]
frame = pd.concat(tables, keys=range(len(X)), names=["gesture", "step"])
print(frame.loc[0].head(3).round(2))
indexed = ESNSequenceClassifier(random_state=0).fit(frame.loc[:79], y[train])
print("same labels:", (indexed.predict(frame.loc[80:]) == predicted).all())

# %%
# Series of one length may also be an array (n_series, n_steps, n_channels). Series of aeon and
# sktime have channels before steps: use `from_channels_first`. Missing values raise until you say
# how to fill them: :doc:`plot_missing_values`.
#
# When should the program act?
# ----------------------------
# Say that to act on a wrong gesture is as bad as to ask ten times. Then act if 10 times the
# probability of being wrong is less than 1: from 90 % on. This rule needs true probabilities. Each
# training gesture gets them from a fit without it, so that they are true for new ones, too.
#
# Two checks. On the left, the test gestures in five groups: mean probability, and the share that
# was right (bars: two standard errors). On the right, the cost for each gesture against the
# threshold; 100 % never acts. If nobody has 300 labelled gestures to spare, cross-validation on the
# training gestures checks the rule (dashed). If the program will serve new people, no person may be
# in two folds: ``cv=GroupKFold()`` and ``groups=``.
sure, right = clf.predict_proba(X[test]).max(axis=1), predicted == y[test]
groups = np.array_split(np.argsort(sure), 5)
given, found = np.array([[sure[g].mean(), right[g].mean()] for g in groups]).T
error = 2 * np.sqrt(found * (1 - found) / len(groups[0]))
folds = cross_val_predict(clf, X[train], y[train], cv=5, method="predict_proba")
fold_sure, fold_right = folds.max(axis=1), clf.classes_[folds.argmax(1)] == y[train]


def cost(sure, right, threshold):
    return np.mean(sure < threshold) + 10 * np.mean(~right & (sure >= threshold))


thresholds = np.linspace(0.3, 1, 71)
fig, (left, decision) = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
left.plot([0, 100], [0, 100], color="0.7", linestyle=":")
left.errorbar(100 * given, 100 * found, 100 * error, fmt="o", color="C0")
left.set(xlabel="mean probability, %", ylabel="% right")
left.set(xlim=(20, 102), ylim=(20, 102))
costs = [cost(sure, right, t) for t in thresholds]
fold_costs = [cost(fold_sure, fold_right, t) for t in thresholds]
decision.plot(100 * thresholds, costs, color="C0", label="300 new gestures")
decision.plot(100 * thresholds, fold_costs, "--", color="0.4", label="five folds of 80")
decision.axvline(90, color="0.7", linestyle=":")
decision.set(xlabel="acts from this probability on, %", ylabel="cost of a gesture")
decision.set_ylim(0, None)
decision.legend(frameon=False)
for name, t in {"always acts": 0, "always asks": 1.01, "asks below 90 %": 0.9}.items():
    asks, wrong = np.mean(sure < t), np.mean(~right & (sure >= t))
    print(f"{name:16s} asks {asks:4.0%}, acts wrongly {wrong:5.1%}", end="")
    print(f", cost {cost(sure, right, t):.2f}")

# %%
# The cost of the rule is less than half of that of the simple ones. Beyond some 80 % the curve is
# flat, so the exact cost of an error matters little.
#
# Which channel matters
# ---------------------
# Each channel in turn is taken from other gestures (bars: standard deviation of three repetitions).
# That needs no new fit, but a wrong channel misleads. To see whether a sensor can go, fit without
# it.
importance = channel_importance(clf, X[test], y[test], n_repeats=3, random_state=0)
without = []
for c in range(3):
    rest = [np.delete(series, c, axis=1) for series in X]
    fewer = ESNSequenceClassifier(random_state=0).fit(rest[train], y[train])
    without.append(clf.score(X[test], y[test]) - fewer.score(rest[test], y[test]))
lost = pd.DataFrame(index=channels)
lost["taken from other gestures"] = 100 * importance.importances_mean
lost["left out, new fit"] = 100 * np.array(without)
print("accuracy lost, percentage points")
print(lost.round(1).to_string())

# %%
# How early can the program know?
# -------------------------------
# One classifier was fitted to whole gestures, and receives their first .4 seconds, .8 seconds and
# so on. The other is fitted to beginnings of just this length, and is right sooner.
seconds = np.array([0.4, 0.8, 1.2, 1.6, 2.0, 2.5])
whole, early = [], []
for end in seconds:
    begun = [series[: int(end * rate)] for series in X]
    whole.append(100 * clf.score(begun[test], y[test]))
    fitted = ESNSequenceClassifier(random_state=0).fit(begun[train], y[train])
    early.append(100 * fitted.score(begun[test], y[test]))

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.plot(seconds, early, "o-", color="C0", label="fitted to beginnings")
ax.plot(seconds, whole, "s--", color="0.4", label="fitted to whole gestures")
ax.axhline(100 / 8, color="0.7", linestyle=":", label="guessing")
ax.set(xlabel="seconds received", ylabel="% right", ylim=(0, 100))
ax.legend(frameon=False)
plt.show()

# %%
# The decision
# ------------
# A program that must react early is fitted to beginnings, of the length where the blue line becomes
# flat. One that can wait uses the whole gesture. Both ask again below the threshold. A single new
# gesture is a list of one:
label, chance = clf.predict(X[-1:])[0], clf.predict_proba(X[-1:]).max()
print(f"{label}{'' if chance >= 0.9 else '? Once more, please'} ({chance:.0%})")

# %%
# - Trained networks need many more series than these eighty (:doc:`/guide/classification`).
# - Do not pad series: zeros at the end are data like all others.
# - One label *per step* is another task: :doc:`plot_labels_at_every_step`.
# - A fitted classifier goes into a file: :doc:`/saving`.

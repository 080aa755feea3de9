"""
Classify whole series
=====================

A wristband feels accelerations while a hand draws a figure in the air, and a program is
to say which figure it was: one label for a whole series. Fifteen minutes from such data
to a decision: when should the program act, when had it better ask again, which channel
does it need, and how long must it wait?
"""

# %%
# Fit, predict
# ------------
# A list of arrays, one for each series, is all it takes: rows are time steps, here 50
# in a second, and columns are channels. Series differ in length, and there is one label
# for each. These lines are the whole of it:
from reservoir import ESNSequenceClassifier
from reservoir.datasets import gestures

X, y = gestures(380, noise=1.5, random_state=0)
train, test = slice(0, 80), slice(80, None)
clf = ESNSequenceClassifier(random_state=0).fit(X[train], y[train])
print(clf.predict(X[test])[:5].tolist(), "were", y[test][:5].tolist())
print(f"right on {len(X[test])} new gestures: {clf.score(X[test], y[test]):.1%}")

# %%
# Nothing had to be set, scaled or brought to one length. Each series drives a random
# network, the reservoir, which stays as it is; what its units do is summed up in a row
# of numbers, and a linear model is fitted to these rows.
#
# Look at the data
# ----------------
# The picture shows three gestures of four kinds, channel by channel. Left and right
# differ in nothing but what comes first.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir.model_selection import channel_importance

rate = 50
channels = ["sideways", "forwards", "upwards"]
shown = ["left", "right", "push", "circle"]
print("lengths:", sorted(len(series) for series in X)[:: len(X) // 4])

fig, axes = plt.subplots(3, 4, sharex=True, sharey="row", layout="constrained")
fig.set_size_inches(7, 4)
fig.supxlabel("seconds", fontsize="medium")
for column, label in zip(axes.T, shown, strict=True):
    for series in [X[i] for i in np.flatnonzero(y == label)[:3]]:
        for ax, values in zip(column, series.T, strict=True):
            ax.plot(np.arange(len(values)) / rate, values, linewidth=0.8)
    column[0].set_title(label, fontsize="medium")
for ax, name in zip(axes[:, 0], channels, strict=True):
    ax.set_ylabel(f"{name}\nm/s²")

# %%
# Against what?
# -------------
# Two rivals that need no network. The first sees the mean and the standard deviation of
# each channel; the second the raw series, brought to 50 steps by linear interpolation,
# all in one row. Both end in a logistic regression. Five seeds, each with gestures and
# a network of its own: one figure alone says little.


def summaries(series):
    return np.array([np.r_[rows.mean(axis=0), rows.std(axis=0)] for rows in series])


def resampled(series, n=50):
    at = [np.linspace(0, len(rows) - 1, n) for rows in series]
    return np.array(
        [
            np.ravel([np.interp(t, np.arange(len(rows)), c) for c in rows.T])
            for t, rows in zip(at, series, strict=True)
        ]
    )


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
# What is mistaken for what
# -------------------------
# Each row of a matrix stands for what was drawn, each column for what was said. The
# rival cannot tell left from right, nor push from pull, nor the two circles; the
# network mistakes few, and mostly what begins alike.
said = clf.predict(X[test])
rival = make_pipeline(StandardScaler(), LogisticRegression())
rival.fit(summaries(X[train]), y[train])
answers = {"network": said, "mean and deviation": rival.predict(summaries(X[test]))}
fig, axes = plt.subplots(1, 2, figsize=(7, 4), sharey=True, layout="compressed")
for ax, (title, labels) in zip(axes, answers.items(), strict=True):
    ConfusionMatrixDisplay.from_predictions(
        y[test], labels, ax=ax, cmap="Blues", colorbar=False, xticks_rotation=90
    )
    ax.set(title=title, xlabel="said", ylabel="drawn" if ax is axes[0] else "")

# %%
# From a table
# ------------
# Long tables have a row for each time step and say which series it belongs to: in an
# index of two levels, the last of which is time, or in a column, which you name
# (``sequence_column="gesture"``). The answers are the same.
frame = pd.concat(
    [pd.DataFrame(series, columns=channels) for series in X],
    keys=range(len(X)),
    names=["gesture", "step"],
)
print(frame.loc[0].head(3).round(2))
indexed = ESNSequenceClassifier(random_state=0).fit(frame.loc[:79], y[train])
print("same answers:", (indexed.predict(frame.loc[80:]) == said).all())

# %%
# Series of one length may also be an array (n_series, n_steps, n_channels). Those of
# aeon and sktime have channels before steps; `from_channels_first` turns them round.
# Missing values are refused until you say what is to stand for them:
# :doc:`plot_missing_values`.
#
# What the probabilities are worth
# --------------------------------
# A program that acts on a gesture should know when it does not know. Probabilities are
# fitted to what the model says of each training gesture when fitted without it, so that
# they hold for new ones. On the left of the picture, answers in five groups of equal
# size: how sure they were, and how many were right (bars: two standard errors). On the
# diagonal, probabilities mean what they say.
sure = clf.predict_proba(X[test]).max(axis=1)
right = said == y[test]
groups = np.array_split(np.argsort(sure), 5)
given, found = np.array([[sure[g].mean(), right[g].mean()] for g in groups]).T
error = 2 * np.sqrt(found * (1 - found) / len(groups[0]))

# %%
# The decision needs a cost: say, to act on a wrong gesture is as bad as to ask ten
# times. If the probabilities hold, the rule follows: act if 10 times the probability of
# being wrong is less than 1, from 90 % on. Where nobody has 300 labelled gestures to
# spare, cross-validation on the training gestures checks the rule: five fits, each
# without a fifth of them, which is then asked for. Lists go through scikit-learn as
# they are. (If the program will serve people it has not met, no person may be in two
# folds: ``cv=GroupKFold()`` and ``groups=`` with a name per series.)
#
# On the right, the cost per gesture against the threshold, on both: 100 % never acts.
folds = cross_val_predict(
    ESNSequenceClassifier(random_state=0),
    X[train],
    y[train],
    cv=5,
    method="predict_proba",
)
fold_sure, fold_right = (
    folds.max(axis=1),
    clf.classes_[folds.argmax(axis=1)] == y[train],
)
print(f"five folds of the training gestures: {fold_right.mean():.1%} right")


def cost(sure, right, threshold):
    return np.mean(sure < threshold) + 10 * np.mean(~right & (sure >= threshold))


thresholds = np.linspace(0.3, 1, 71)
fig, (left, decision) = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
left.plot([0, 100], [0, 100], color="0.7", linestyle=":")
left.errorbar(100 * given, 100 * found, 100 * error, fmt="o", color="C0")
left.set(xlabel="probability given, %", ylabel="% right")
left.set(xlim=(20, 102), ylim=(20, 102))
costs = [cost(sure, right, t) for t in thresholds]
fold_costs = [cost(fold_sure, fold_right, t) for t in thresholds]
decision.plot(100 * thresholds, costs, color="C0", label="300 new gestures")
decision.plot(100 * thresholds, fold_costs, "--", color="0.4", label="five folds of 80")
decision.axvline(90, color="0.7", linestyle=":")
decision.set(xlabel="acts from this probability on, %", ylabel="cost per gesture")
decision.set_ylim(0, None)
decision.legend(frameon=False)


# %%
# Beyond some 80 % the curve is flat, so that little depends on the last digit of the
# cost. The verdict on new gestures:
at = 0.9

for name, each in {
    "always acts": 0.0,
    "always asks": 1.01,
    "asks below 90 %": at,
}.items():
    asks, wrong = np.mean(sure < each), np.mean(~right & (sure >= each))
    print(
        f"{name:16s} asks {asks:4.0%}, acts wrongly {wrong:5.1%}, "
        f"cost {cost(sure, right, each):.2f}"
    )

# %%
# Which channel matters
# ---------------------
# Each channel in turn is taken from other gestures: what the classifier loses is what
# it has from this channel (bars: standard deviation of three repetitions). This costs
# no fit, but a channel that is wrong misleads; one that was never there is missed less,
# as far as the others know the same. Whether a sensor can go is shown by fitting
# without it.
importance = channel_importance(clf, X[test], y[test], n_repeats=3, random_state=0)
without = []
for c in range(3):
    rest = [np.delete(series, c, axis=1) for series in X]
    fewer = ESNSequenceClassifier(random_state=0).fit(rest[train], y[train])
    without.append(clf.score(X[test], y[test]) - fewer.score(rest[test], y[test]))

fig, ax = plt.subplots(figsize=(7, 2.4), layout="constrained")
place = np.arange(3)
ax.barh(
    place - 0.2,
    100 * importance.importances_mean,
    0.4,
    xerr=100 * importance.importances_std,
    color="C0",
    label="taken from other gestures",
)
ax.barh(
    place + 0.2,
    100 * np.array(without),
    0.4,
    color="0.6",
    label="left out, and fitted anew",
)
ax.set(yticks=place, yticklabels=channels, xlabel="accuracy lost, percentage points")
ax.legend(frameon=False)
ax.invert_yaxis()

# %%
# Which time matters
# ------------------
# How early can it be said? One classifier knows whole gestures, and is asked after
# their first .4 seconds, .7 seconds and so on. The other one is fitted to beginnings of
# just this length: it knows that the rest is still to come, and is right sooner.
seconds = np.array([0.4, 0.8, 1.2, 1.6, 2.0, 2.5])
whole, early = [], []
for end in seconds:
    begun = [series[: int(end * rate)] for series in X]
    whole.append(clf.score(begun[test], y[test]))
    fitted = ESNSequenceClassifier(random_state=0).fit(begun[train], y[train])
    early.append(fitted.score(begun[test], y[test]))

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.plot(
    seconds,
    100 * np.array(early),
    "o-",
    color="C0",
    label="fitted on beginnings",
)
ax.plot(seconds, 100 * np.array(whole), "s--", color="0.4", label="fitted on wholes")
ax.axhline(100 / 8, color="0.7", linestyle=":", label="guessing")
ax.set(xlabel="seconds heard", ylabel="% right", ylim=(0, 100))
ax.legend(frameon=False)
plt.show()

# %%
# The decision
# ------------
# A program that must answer early is fitted to beginnings, at the length where the blue
# line becomes flat. One that can wait hears the whole gesture. Both ask again below the
# threshold that the costs ask for. A single new gesture is a list of one:
guess, chance = clf.predict(X[-1:])[0], clf.predict_proba(X[-1:]).max()
asks = "" if chance >= at else "? Once more, please"
print(f"{guess}{asks} ({chance:.0%})")

# %%
# What to watch out for: trained networks need more series than these eighty, by far
# (:doc:`/guide/classification` has the figures); a series must not be padded, for zeros at its end
# are data like all others; and one label *per step* is another task,
# :doc:`plot_labels_at_every_step`. A fitted classifier goes into a file as
# :doc:`/saving` says.

# sphinx_gallery_thumbnail_number = 2

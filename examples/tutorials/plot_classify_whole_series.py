"""
Classify whole series
=====================

A wristband feels accelerations while a hand draws a figure in the air, and a program is to say
which figure it was: one label for a whole series. Series differ in length; left and right differ in
nothing but what comes first. Ten minutes from such data to a decision: how good is it, when should
the program rather ask again, which channel does it need, and how long must it wait?
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir import ESNSequenceClassifier
from reservoir.datasets import gestures
from reservoir.model_selection import channel_importance

# %%
# A list of arrays, one for each series, is all it takes: rows are time steps, here 50 in a second,
# and columns are channels. There is one label per series.
X, y = gestures(380, noise=1.5, random_state=0)
train, test = slice(0, 80), slice(80, None)
rate = 50
channels = ["sideways", "forwards", "upwards"]
print([series.shape for series in X[:4]], y[:4].tolist())

shown = ["left", "right", "push", "circle"]
fig, axes = plt.subplots(3, 4, figsize=(7, 4), sharex=True, sharey="row", layout="constrained")
fig.supxlabel("seconds (three gestures of each kind)", fontsize="medium")
for column, label in zip(axes.T, shown, strict=True):
    for series in [X[i] for i in np.flatnonzero(y == label)[:3]]:
        for ax, values in zip(column, series.T, strict=True):
            ax.plot(np.arange(len(values)) / rate, values, linewidth=0.8)
    column[0].set_title(label, fontsize="medium")
for ax, name in zip(axes[:, 0], channels, strict=True):
    ax.set_ylabel(f"{name}\nm/s²")
# %%
# Fit, predict
# ------------
# Nothing has to be set or scaled. Each series drives a random network, the reservoir, which stays
# as it is; what its units do is summed up in a row of numbers, and a linear model is fitted to
# these rows. What does the network gain? The simplest rival does without: it sees the mean and the
# standard deviation of each channel.
clf = ESNSequenceClassifier(random_state=0).fit(X[train], y[train])


def summaries(series):
    return np.array([np.r_[rows.mean(axis=0), rows.std(axis=0)] for rows in series])


rival = make_pipeline(StandardScaler(), LogisticRegression()).fit(summaries(X[train]), y[train])
print(f"right on {len(X[test])} new gestures: {clf.score(X[test], y[test]):.1%}")
print(f"mean and deviation of channels alone: {rival.score(summaries(X[test]), y[test]):.1%}")

# %%
# The same from a table
# ---------------------
# Long tables have a row for each time step and say which series it belongs to: in an index of two
# levels, the last of which is time, or in a column, which you name. The answers are the same.
frame = pd.concat(
    [pd.DataFrame(series, columns=channels) for series in X],
    keys=range(len(X)),
    names=["gesture", "step"],
)
print(frame.loc[0].head(3).round(2))

indexed = ESNSequenceClassifier(random_state=0).fit(frame.loc[:79], y[train])
column = frame.reset_index("gesture")
by_id = ESNSequenceClassifier(sequence_column="gesture", random_state=0)
by_id.fit(column[column["gesture"] < 80], y[train])

from_list = clf.predict(X[test])
from_index = indexed.predict(frame.loc[80:])
from_column = by_id.predict(column[column["gesture"] >= 80])
print("same answers:", (from_list == from_index).all() and (from_list == from_column).all())

# %%
# Series of one length may also be an array (n_series, n_steps, n_channels). Those of aeon and
# sktime have channels before steps; `from_channels_first` of `reservoir.model_selection` turns them
# round. Missing values (NaN) are refused, unless you say what is to stand for them:
# ``missing_values="hold"``, the last known value, or ``"interpolate"``.
#
# What is mistaken for what
# -------------------------
# Each row of a matrix stands for what was drawn, each column for what was said. The rival cannot
# tell left from right, nor push from pull; most of the network's mistakes are made there, too.
fig, axes = plt.subplots(1, 2, figsize=(7, 4), sharey=True, layout="compressed")
for ax, said, title in [
    (axes[0], from_list, "network"),
    (axes[1], rival.predict(summaries(X[test])), "mean and deviation"),
]:
    ConfusionMatrixDisplay.from_predictions(
        y[test], said, ax=ax, cmap="Blues", colorbar=False, xticks_rotation=90
    )
    ax.set(title=title, xlabel="said", ylabel="drawn" if ax is axes[0] else "")

# %%
# How sure is the figure?
# -----------------------
# Nobody has 300 labelled gestures to spare. Cross-validation makes do with the training gestures:
# five fits, each without a fifth of them, which is then asked for. Each fit has fewer examples, so
# that the mean is a little too low; the folds tell how much is chance. Lists go through
# scikit-learn as they are.
scores = cross_val_score(ESNSequenceClassifier(random_state=0), X[train], y[train], cv=5)
print(f"five folds: {scores.round(2)}, mean {scores.mean():.1%}")

# %%
# If the program will serve people it has not met, no person may be in two folds:
# ``cv=GroupKFold()`` and ``groups=`` with a name per series.
#
# What the probabilities are worth
# --------------------------------
# A program that acts on a gesture should know when it does not know. Probabilities are fitted to
# what the model says of each training gesture when fitted without it, so that they hold for new
# ones. On the left, answers in five groups of equal size: how sure they were, and how many were
# right (bars: two standard errors). On the diagonal, probabilities mean what they say.
#
# On the right, the decision: the program acts if it is sure enough, and else asks for the gesture
# once more. The higher the threshold, the more questions and the fewer mistakes.
sure = clf.predict_proba(X[test]).max(axis=1)
right = from_list == y[test]
groups = np.array_split(np.argsort(sure), 5)
given, found = np.array([[sure[g].mean(), right[g].mean()] for g in groups]).T
error = 2 * np.sqrt(found * (1 - found) / len(groups[0]))

fig, (left, decision) = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
left.plot([0, 100], [0, 100], color="0.7", linestyle=":")
left.errorbar(100 * given, 100 * found, 100 * error, fmt="o", color="firebrick")
left.set(xlabel="probability given, %", ylabel="% right", xlim=(20, 102), ylim=(20, 102))
thresholds = np.linspace(0.3, 0.99, 70)
asks = np.array([np.mean(sure < t) for t in thresholds])
wrong = np.array([np.mean(~right & (sure >= t)) for t in thresholds])
decision.plot(100 * thresholds, 100 * asks, color="black", linestyle="--", label="asks again")
decision.plot(100 * thresholds, 100 * wrong, color="firebrick", label="acts, and is wrong")
decision.set(xlabel="acts from this probability on, %", ylabel="% of gestures", ylim=(0, None))
decision.legend(frameon=False)

at = 0.8
acts = sure >= at
print(
    f"from {at:.0%} on: asks again for {np.mean(~acts):.0%}, wrong on {np.mean(acts & ~right):.1%}"
)

# %%
# Which channel matters
# ---------------------
# Each channel in turn is taken from other gestures: what the classifier loses is what it has from
# this channel (bars: standard deviation of five repetitions). This costs no fit, but a channel that
# is wrong misleads; one that was never there is missed less, as far as the others know the same.
# Whether a sensor can go is shown by fitting without it.
importance = channel_importance(clf, X[test], y[test], random_state=0)
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
    color="firebrick",
    label="taken from other gestures",
)
ax.barh(place + 0.2, 100 * np.array(without), 0.4, color="0.6", label="left out, and fitted anew")
ax.set(yticks=place, yticklabels=channels, xlabel="accuracy lost, percentage points")
ax.legend(frameon=False)
ax.invert_yaxis()

# %%
# Which time matters
# ------------------
# How early can it be said? One classifier knows whole gestures, and is asked after their first .4
# seconds, .7 seconds and so on. The other one is fitted to beginnings of just this length: it knows
# that the rest is still to come, and is right sooner.
seconds = np.array([0.4, 0.7, 1.0, 1.3, 1.6, 2.0, 2.5])
whole, early = [], []
for end in seconds:
    begun = [series[: int(end * rate)] for series in X]
    whole.append(clf.score(begun[test], y[test]))
    fitted = ESNSequenceClassifier(random_state=0).fit(begun[train], y[train])
    early.append(fitted.score(begun[test], y[test]))

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.plot(seconds, 100 * np.array(early), "o-", color="firebrick", label="fitted on beginnings")
ax.plot(seconds, 100 * np.array(whole), "s--", color="0.4", label="fitted on whole gestures")
ax.axhline(100 / 8, color="0.7", linestyle=":", label="guessing")
ax.set(xlabel="seconds heard", ylabel="% right", ylim=(0, 100))
ax.legend(frameon=False)
plt.show()

# %%
# The decision
# ------------
# A program that must answer early is fitted to beginnings, at the length where the red line becomes
# flat. One that can wait hears the whole gesture. Both ask again below a threshold from the picture
# of probabilities. A single new gesture is a list of one:
guess, chance = clf.predict(X[-1:])[0], clf.predict_proba(X[-1:]).max()
print(f"{guess} ({chance:.0%})" if chance >= at else f"{guess}? Once more, please ({chance:.0%}).")

"""
Classify whole series
=====================

A wristband feels accelerations while a hand draws a figure in the air, and a program is to say which
figure it was: one label for a whole series. Series differ in length; left and right differ in
nothing but what comes first. Ten minutes from such data to a decision: how good is it, when
should the program rather ask again, which channel does it need, and how long must it wait?
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
# A list of arrays is all it takes: a row for each time step, a column for each channel, as many rows
# as the series has. Here 50 rows are a second. There is one label per series.
X, y = gestures(560, random_state=0)
train, test = slice(0, 160), slice(160, None)
rate = 50
channels = ["right", "front", "up"]
print([series.shape for series in X[:4]], y[:4].tolist())

shown = ["left", "right", "circle", "eight"]
fig, axes = plt.subplots(3, 4, figsize=(7, 4), sharex=True, sharey="row", layout="constrained")
for column, label in zip(axes.T, shown, strict=True):
    for series in [X[i] for i in np.flatnonzero(y == label)[:3]]:
        for ax, values in zip(column, series.T, strict=True):
            ax.plot(np.arange(len(values)) / rate, values, linewidth=0.8)
    column[0].set_title(label, fontsize="medium")
for ax, name in zip(axes[:, 0], channels, strict=True):
    ax.set_ylabel(f"{name}\nm/s²")
fig.supxlabel("seconds (three gestures of each kind)", fontsize="medium")

# %%
# Fit, predict
# ------------
# Nothing has to be set or scaled. A fixed random network, the reservoir, listens to each series; what
# its units do is summed up in a row of numbers, and a linear model on these is fitted. What does it
# gain? The simplest rival does without the network: mean and standard deviation of each channel.
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

indexed = ESNSequenceClassifier(random_state=0).fit(frame.loc[:159], y[train])
column = frame.reset_index("gesture")
by_id = ESNSequenceClassifier(sequence_column="gesture", random_state=0)
by_id.fit(column[column["gesture"] < 160], y[train])

from_list = clf.predict(X[test])
from_index = indexed.predict(frame.loc[160:])
from_column = by_id.predict(column[column["gesture"] >= 160])
print("same answers:", (from_list == from_index).all() and (from_list == from_column).all())

# %%
# Arrays of one length, (n_series, n_steps, n_channels), are fine as well. Those of aeon and sktime
# have channels before steps: `reservoir.model_selection.from_channels_first` turns them round. Values
# that are missing (NaN) are refused, unless you say what is to stand for them:
# ``missing_values="hold"`` or ``"interpolate"``.
#
# What is mistaken for what
# -------------------------
# A row of the matrix is what was drawn, a column what was said. On the left the network, on the
# right the rival, which cannot tell left from right nor push from pull.
fig, axes = plt.subplots(1, 2, figsize=(7, 3.9), sharey=True, layout="constrained")
for ax, said, title in [
    (axes[0], from_list, "network"),
    (axes[1], rival.predict(summaries(X[test])), "mean and deviation"),
]:
    ConfusionMatrixDisplay.from_predictions(
        y[test], said, ax=ax, cmap="Blues", colorbar=False, xticks_rotation=90
    )
    ax.set(title=title, xlabel="said", ylabel="")
axes[0].set_ylabel("drawn")

# %%
# How sure is the figure?
# -----------------------
# With little data one split says little. Cross-validation fits five times, each time without a
# fifth of the training gestures, and asks for these. Lists go through scikit-learn as they are.
scores = cross_val_score(ESNSequenceClassifier(random_state=0), X[train], y[train], cv=5)
print(f"five folds: {scores.round(2)}, mean {scores.mean():.1%}")

# %%
# If people must not be mixed up between folds, split by person: ``cv=GroupKFold()`` and ``groups=``.
#
# What the probabilities are worth
# --------------------------------
# A program that acts on a gesture should know when it does not know. `predict_proba` is fitted to
# the scores that each training gesture got from a model fitted without it, so it is honest on
# gestures that are new. On the left: of the answers given with this probability, so many were right;
# on the diagonal, probabilities mean what they say. On the right, the decision: the program
# acts if it is sure enough, and else asks for the gesture once more. The higher the threshold, the
# fewer mistakes and the more questions.
sure = clf.predict_proba(X[test]).max(axis=1)
right = from_list == y[test]
order = np.argsort(sure)
groups = np.array_split(order, 6)  # equally many answers in each

fig, (left, decision) = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
left.plot([0, 1], [0, 1], color="0.7", linestyle=":")
left.plot([sure[g].mean() for g in groups], [right[g].mean() for g in groups], "o", color="firebrick")
left.set(xlabel="probability given", ylabel="share right", xlim=(0.3, 1.03), ylim=(0.3, 1.03))
thresholds = np.linspace(0.3, 0.99, 70)
asks = np.array([(sure < t).mean() for t in thresholds])
wrong = np.array([(~right & (sure >= t)).mean() for t in thresholds])
decision.plot(thresholds, 100 * asks, color="black", linestyle="--", label="asks again")
decision.plot(thresholds, 100 * wrong, color="firebrick", label="acts, and is wrong")
decision.set(xlabel="acts from this probability on", ylabel="% of gestures", ylim=(0, None))
decision.legend(frameon=False)

at = 0.8
print(f"threshold {at}: asks again for {np.mean(sure < at):.0%}, wrong on {np.mean(~right & (sure >= at)):.1%}")

# %%
# Which channel matters
# ---------------------
# Each channel in turn is taken from other gestures; what is lost then is what the classifier had
# from it. A channel whose loss is no more than the bars of its repetitions could be left out, which
# is proved only by fitting without it.
found = channel_importance(clf, X[test], y[test], random_state=0)
without = []
for c in range(3):
    rest = [np.delete(series, c, axis=1) for series in X]
    fewer = ESNSequenceClassifier(random_state=0).fit(rest[train], y[train])
    without.append(clf.score(X[test], y[test]) - fewer.score(rest[test], y[test]))

fig, ax = plt.subplots(figsize=(7, 2.4), layout="constrained")
place = np.arange(3)
ax.barh(place - 0.2, 100 * found.importances_mean, 0.4, xerr=100 * found.importances_std,
        color="firebrick", label="taken from other gestures")
ax.barh(place + 0.2, 100 * np.array(without), 0.4, color="0.6", label="left out, and fitted anew")
ax.set(yticks=place, yticklabels=channels, xlabel="accuracy lost, percentage points")
ax.invert_yaxis()
ax.legend(frameon=False)

# %%
# Which time matters
# ------------------
# How early can it be said? The classifier that knows whole gestures is asked after their first half
# second, second, and so on; beside it one that was fitted on beginnings of just this length. Most
# gestures begin within the first .8 seconds and take about a second.
seconds = np.array([0.4, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0])
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
# For a program that must answer early: fit on beginnings, at the length from which the red line is
# flat. For one that can wait: the whole gesture, the threshold from the picture of probabilities,
# and no channel less. A new gesture is a list of one:
guess, chance = clf.predict(X[-1:])[0], clf.predict_proba(X[-1:]).max()
print(f"{guess} ({chance:.0%})" if chance >= at else f"{guess}? Once more, please ({chance:.0%}).")

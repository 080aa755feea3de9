"""
Speakers: one label per utterance
=================================

A network tells which of nine men spoke, from utterances of 7 to 29 steps.

Nine men say "ae", and the network says who it was. An utterance is a series of 7 to 29 steps, with
twelve numbers for the sound at each (Kudo et al. 1999). The data are aeon's
``load_japanese_vowels``; without aeon the same code speaks of generated gestures. Look at the two
matrices: the network hears a course in time, its rival knows no more than the mean and the
deviation of each channel.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeClassifierCV
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir import ESNSequenceClassifier
from reservoir.datasets import gestures
from reservoir.model_selection import channel_importance, from_channels_first

try:
    from aeon.datasets import load_japanese_vowels
except ImportError:
    what, ticks, names = "gesture", 90, ["sideways", "forwards", "upwards"]
    X, y = gestures(640, random_state=0)
    X_train, y_train, X_test, y_test = X[:270], y[:270], X[270:], y[270:]
else:
    what, ticks, names = "speaker", 0, list(range(1, 13))
    X_train, y_train = load_japanese_vowels(split="train")
    X_test, y_test = load_japanese_vowels(split="test")
    X_train, X_test = from_channels_first(X_train), from_channels_first(X_test)
lengths = [len(series) for series in X_train]
print(f"{len(X_train)} series of {min(lengths)} to {max(lengths)} steps to learn from")


# %%
def summaries(series):
    return np.array([np.r_[rows.mean(axis=0), rows.std(axis=0)] for rows in series])


network = ESNSequenceClassifier(random_state=0).fit(X_train, y_train)
rival = make_pipeline(StandardScaler(), RidgeClassifierCV(np.logspace(-3, 3, 10)))
rival.fit(summaries(X_train), y_train)
said = {
    "network": network.predict(X_test),
    "mean and deviation": rival.predict(summaries(X_test)),
}
for name, labels in said.items():
    print(f"{name}: {np.mean(labels == y_test):.1%} of {len(y_test)} right")

# %%
# In each row stands what became of one class: on the diagonal what was right.
fig, axes = plt.subplots(1, 2, figsize=(7, 4), sharey=True, layout="compressed")
for ax, (name, labels) in zip(axes, said.items(), strict=True):
    ConfusionMatrixDisplay.from_predictions(
        y_test, labels, ax=ax, cmap="Blues", colorbar=False, xticks_rotation=ticks
    )
    ax.set(title=name, xlabel="said to be", ylabel=what if ax is axes[0] else "")

# %%
# What differs? On the right, what is lost when a channel is taken from other series (bars: standard
# deviation of three repetitions): of speakers no single channel says much, for they say the same in
# part. On the left the channel that says most: its mean course for four classes, from the beginning
# to the end of the series.
importance = channel_importance(network, X_test, y_test, n_repeats=3, random_state=0)
channel = int(np.argmax(importance.importances_mean))
share = np.linspace(0, 1, 50)
fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
for label, line in zip(network.classes_[::2][:4], ["-", "--", ":", "-."], strict=True):
    mine = [X_train[i][:, channel] for i in np.flatnonzero(y_train == label)]
    curves = [
        np.interp(share, np.linspace(0, 1, len(values)), values) for values in mine
    ]
    left.plot(100 * share, np.mean(curves, axis=0), line, label=f"{what} {label}")
left.set(xlabel="% of the series", ylabel=f"channel {names[channel]}, mean")
left.legend(
    frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0, 1), ncols=2
)
mean, deviation = 100 * importance.importances_mean, 100 * importance.importances_std
right.bar(np.arange(len(mean)), mean, yerr=deviation, color="C0")
right.set(xlabel="channel", ylabel="accuracy lost, % points")
right.set_xticks(np.arange(len(mean)), names)
plt.show()

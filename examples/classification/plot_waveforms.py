"""
Waveforms: one label per time step
==================================

A network tells sine from square waves at each step of a noisy row, which a classifier of single
steps cannot do.

A noisy row of sine and square waves comes in, and at each step the network says which of the two it
hears. Look at the bars: a classifier that sees one step alone fails where the sine is near its
crest, as the square is always; a network that remembers the steps before hardly does.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.tree import DecisionTreeClassifier

from reservoir import ESNClassifier
from reservoir.datasets import sine_square

n_train, period, noise = 2400, 12, 0.2

# %%
# Five seeds, each with data, noise and a network of its own. `predict` goes on from the state at
# the end of training, so the first test wave is heard in its place.
wrong = {"network": [], "no memory": []}
for seed in range(5):
    X, y = sine_square(2 * n_train, period=period, random_state=seed)
    X = X + noise * np.random.default_rng(seed).standard_normal(X.shape)
    esn = ESNClassifier(200, random_state=seed)
    # The rival: thresholds on the input of this step.
    tree = DecisionTreeClassifier(min_samples_leaf=50)
    for name, classifier in zip(wrong, [esn, tree], strict=True):
        classifier.fit(X[:n_train], y[:n_train])
        errors = classifier.predict(X[n_train:]) != y[n_train:]
        wrong[name].append(errors.reshape(-1, period))  # a wave per row

print("accuracy, median and range of seeds 0 to 4:")
for name, errors in wrong.items():
    right = [1 - e.mean() for e in errors]
    print(
        f"  {name:9s}  {np.median(right):.3f}  ({min(right):.3f} to {max(right):.3f})"
    )

# %%
# The last seed's first test waves, the probability of a square wave that the network gives each
# step, and how often each step of a wave goes wrong.
shown = slice(n_train, n_train + 10 * period)
fig, axes = plt.subplots(3, 1, figsize=(7, 6), layout="constrained")
axes[0].plot(X[shown], color="black", linewidth=1)
axes[0].set_ylabel("input")
axes[1].step(
    range(10 * period), y[shown], where="mid", color="0.65", linewidth=3, label="truth"
)
score = esn.predict_proba(X[n_train:])[: 10 * period, 1]
axes[1].plot(score, color="C0", marker=".", linewidth=0.8, label="network")
axes[1].set(
    xlabel="time step", yticks=[0, 0.5, 1], yticklabels=["sine", "0.5", "square"]
)
axes[1].legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False)
for shift, name, color in [(-0.2, "no memory", "0.8"), (0.2, "network", "C0")]:
    share = np.concatenate(wrong[name]).mean(axis=0)
    axes[2].bar(
        np.arange(period) + shift,
        share,
        0.4,
        color=color,
        edgecolor="black",
        label=name,
    )
axes[2].set(
    xlabel="step within the wave", ylabel="share of errors", xticks=range(period)
)
axes[2].legend(frameon=False)
plt.show()

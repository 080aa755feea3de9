"""
Spikes: a liquid state machine
==============================

A network of spiking units recognises templates of spikes by their timing alone.

Eight templates, each a train of eight spikes, come in with every spike a little early or
late, and the question is which template it was. All have as many spikes, so counting says
nothing: the timing alone tells. Look at the curves: a network of spiking units can tell
the templates apart, about as well as equally many tanh units under the same readout; what
`ESNSequenceClassifier` adds to tanh units counts for more than whether units spike.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.signal import lfilter
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir import ESNSequenceClassifier, LiquidStateMachine, ReservoirFeatures
from reservoir.datasets import spike_patterns

n_train, jitters = 200, [2, 4, 8, 16]  # steps, of 1 ms each

# %%
# The liquid state machine of Maass, Natschlaeger and Markram (2002) has 135 leaky
# integrate-and-fire units, whose filtered spikes are kept as last values and means. Its
# rivals read the input behind the same filter: 135 tanh units, kept likewise; the input's
# last value and mean alone; `ESNSequenceClassifier` as it comes, with more units, other
# pools, both directions and differences. All but that one end in the same ridge.
plain = {"differences": False, "bidirectional": False, "leak_rate": 1.0}
names = ["ESNSequenceClassifier", "tanh units", "spiking units", "input alone"]
right = np.empty((len(names), len(jitters), 5))
for i, seed in np.ndindex(len(jitters), 5):
    X, y = spike_patterns(n_train + 300, jitter=jitters[i], random_state=seed)
    smooth = lfilter([1], [1, -np.exp(-1 / 30)], X, axis=1)
    tanh = ReservoirFeatures(135, pool=("last", "mean"), random_state=seed, **plain)
    liquid = LiquidStateMachine(random_state=seed)
    summary = np.hstack([smooth[:, -1], smooth.mean(axis=1)])
    ridge = make_pipeline(StandardScaler(), RidgeClassifierCV(np.logspace(-1, 4, 11)))
    cases = [(ESNSequenceClassifier(random_state=seed), smooth)]
    cases += [(ridge, tanh.fit_transform(smooth)), (ridge, liquid.fit_transform(X))]
    for k, (model, F) in enumerate([*cases, (ridge, summary)]):
        model.fit(F[:n_train], y[:n_train])
        right[k, i, seed] = model.score(F[n_train:], y[n_train:])

print("share right, median of seeds 0 to 4; jitter", *jitters)
for name, shares in zip(names, np.median(right, axis=2), strict=True):
    print(f"  {name:22s}", *(f"{share:.2f}" for share in shares))

# %%
# One series and what the spiking units make of it, those that inhibit above the line; then
# the share of right answers, with the range of the seeds. Who guesses is right once in 8.
spikes = liquid.spikes(X[:1])[0]
order = np.argsort(liquid.network_.W.sum(axis=0) < 0, kind="stable")
heights = {"height_ratios": [1, 5, 6]}
fig, (top, raster, curves) = plt.subplots(
    3, figsize=(7, 8), layout="constrained", gridspec_kw=heights
)
top.vlines(np.flatnonzero(X[0, :, 0]), 0, 1, color="black")
top.set(xlim=(0, 200), xticks=[], yticks=[], ylabel="input")
raster.plot(*np.nonzero(spikes[:, order]), "|", color="black", markersize=3)
raster.axhline(0.8 * 135 - 0.5, color="C0", linewidth=0.8)
raster.set(xlim=(0, 200), xlabel="time step", ylabel="unit")
looks = [("s-", "0.6"), ("o-", "black"), ("^-", "C0"), ("x:", "0.4")]
for name, shares, (style, color) in zip(names, right, looks, strict=True):
    curves.fill_between(jitters, shares.min(1), shares.max(1), color=color, alpha=0.2)
    curves.plot(jitters, np.median(shares, axis=1), style, color=color, label=name)
curves.axhline(1 / 8, color="0.6", linewidth=0.8)
curves.set(xscale="log", xticks=jitters, xticklabels=jitters, ylim=(0, 1.02))
curves.set(xlabel="jitter, standard deviation in steps", ylabel="share right")
curves.minorticks_off()
curves.legend(loc="lower left", bbox_to_anchor=(0, 0.28), frameon=False)
plt.show()

"""
Street walks: where does somebody go next?
==========================================

Predict the next crossing of people who walk by habit, from the crossings before.

A telephone is at one crossing, then at the next (Bay 2017, section 6.2: 531 crossings of Turin).
Who walks by habit can be foretold, if one remembers where they came from. The town and its sixty
habits are generated (``datasets.street_walks``); one walk in ten makes a detour.
"""

from collections import Counter, defaultdict

import matplotlib.pyplot as plt
import numpy as np

from reservoir import RNNClassifier
from reservoir.datasets import street_walks

walks, streets, places = street_walks(1600, random_state=0)
END = len(places)  # a symbol for the end of a walk, and for the beginning of one
walks = [np.r_[END, walk, END] for walk in walks]
train, test = walks[:1500], walks[1500:]
symbols = np.unique(np.concatenate(train))
test = [walk for walk in test if np.isin(walk, symbols).all()]  # no crossing is new


def codes(crossings):
    return np.searchsorted(symbols, crossings)


# %%
# A plain network of 128 units reads crossings by their numbers, and learns which comes next.
network = RNNClassifier(
    128,
    init="orthogonal",
    n_symbols=len(symbols),
    learning_rate_init=0.003,
    max_iter=20,
    initial_state="zeros",
    dtype="float32",
    random_state=0,
)
network.fit([codes(w[:-1])[:, None] for w in train], [codes(w[1:]) for w in train])


# %%
# The rivals count what followed the last three crossings, or all of the walk so far (or fewer,
# where these never came). All continue a walk of which the first crossings are known, and say each
# time what is likeliest. The network may be held to the streets: ``allowed`` is the matrix of what
# joins what.
def counted(walk, known, order):
    said = list(walk[: known + 1])
    while len(said) < len(walk):
        keys = [tuple(said[-n:]) for n in range(min(order, len(said)), 0, -1)]
        found = next((counts[key] for key in keys if key in counts), Counter([END]))
        said.append(found.most_common(1)[0][0])
    return np.array(said)


counts = defaultdict(Counter)
for walk in train:
    for t in range(1, len(walk)):
        for n in range(1, t + 1):
            counts[tuple(walk[t - n : t])][walk[t]] += 1
joined = np.ones((len(symbols), len(symbols)), dtype=bool)
joined[:-1, :-1] = streets[symbols[:-1]][:, symbols[:-1]].toarray() > 0


def continued(walk, known, allowed=None):
    n = len(walk) - known - 1
    context = codes(walk[: known + 1])
    drawn = network.sample(n, context=context, temperature=0, allowed=allowed)
    return np.r_[walk[: known + 1], symbols[drawn]]


def right(say, known, **options):
    pairs = [
        (say(w, known, **options)[known + 1 : -1], w[known + 1 : -1]) for w in test
    ]
    return np.mean(np.concatenate([said == true for said, true in pairs]))


known = [1, 2, 3, 4, 5, 6]
shares = {
    "network": [right(continued, k) for k in known],
    "network, held to streets": [right(continued, k, allowed=joined) for k in known],
    "counts, all crossings": [right(counted, k, order=99) for k in known],
    "counts, last three": [right(counted, k, order=3) for k in known],
}
for name, values in shares.items():
    print(f"{name}: {', '.join(f'{100 * v:.0f} %' for v in values)} right")

# %%
fig, (left, ax) = plt.subplots(1, 2, figsize=(7, 3.6), layout="constrained")
rows, columns = streets.nonzero()
ends = np.stack([places[rows], places[columns]])
left.plot(ends[:, :, 0], ends[:, :, 1], color="0.86", lw=1)
for walk, colour in zip(test[:4], ["C0", "C1", "C2", "C4"], strict=True):
    said = continued(walk, 2, allowed=joined)
    true, said = (places[w[(w != END)]] for w in (walk, said))
    left.plot(*true.T, color=colour, lw=5, alpha=0.35)
    left.plot(*said.T, color=colour, lw=1.5)
    left.plot(*true[0], "o", color=colour)
left.set(aspect="equal", xticks=[], yticks=[], title="walked (wide), said (thin)")
for (name, values), style in zip(
    shares.items(), ["o-", "s:", "d-.", "^--"], strict=True
):
    ax.plot(known, 100 * np.array(values), style, label=name)
ax.set(xlabel="crossings known", ylabel="% of the rest right", ylim=(0, 100))
ax.legend(frameon=False, loc="lower right", fontsize="small")
plt.show()

# %%
# Three crossings are not enough to tell habits apart that share a street; to remember the whole
# walk is. The network does, and so does a table of all that was walked, which takes no training:
# where walks come again it is level. A habit is mostly told by where it begins, so more crossings
# add little; the mask changes little, too, for the network knows the streets. Where nobody has
# habits, memory beyond three crossings pays nothing: ``examples/benchmarks/street_walks.py``.

"""
Characters: a network writes like the handbook
==============================================

A network reads Python's own handbook letter by letter, predicts the next letter, and writes a text
of its own.

A network reads a text letter by letter and says which comes next; drawn from what it says, letters
become a text of its own (Bay 2017, section 6.1, with plays of Shakespeare). Here it reads Python's
own handbook, which every Python has with it. How well does it know the text? In bits per character,
less is better, beside the oldest rival: to count which letters followed the last four.
"""

from collections import Counter, defaultdict
from pydoc_data import topics

import matplotlib.pyplot as plt
import numpy as np

from reservoir import RNNClassifier

text = "".join(topics.topics[name] for name in sorted(topics.topics))[:44_000]
letters, codes = np.unique(list(text), return_inverse=True)
train, test = codes[:40_000], codes[40_000:]
print(f"{len(letters)} symbols; guessing takes {np.log2(len(letters)):.2f} bits")

# %%
# An LSTM with 64 units. With ``n_symbols`` a letter is given by its number, and 32 passages are
# read side by side.
network = RNNClassifier(
    64,
    cell="lstm",
    init="orthogonal",
    n_symbols=len(letters),
    learning_rate_init=0.01,
    max_iter=12,
    dtype="float32",
    random_state=0,
)
passages = train.reshape(32, -1)
network.fit(list(passages[:, :-1, None]), list(passages[:, 1:]))
said = network.predict_proba(codes[39_800:-1, None], initial_state="zeros")[
    -len(test) :
]
places = np.searchsorted(network.classes_, test)
lstm = -np.log2(said[np.arange(len(test)), places]).mean()


# %%
# The rival mixes what followed the last four letters, the last three, and so on, each the more the
# more often it was seen and the fewer different letters came (Witten and Bell 1991).
def n_gram_bits(longest):
    counts = [defaultdict(Counter) for _ in range(longest + 1)]
    for t in range(longest, len(train)):
        for n, table in enumerate(counts):
            table[tuple(train[t - n : t])][train[t]] += 1
    bits = 0.0
    for t in range(len(train), len(codes)):
        p = 1 / len(letters)
        for n, table in enumerate(counts):
            seen = table.get(tuple(codes[t - n : t]))
            if seen:
                p = (seen[codes[t]] + len(seen) * p) / (seen.total() + len(seen))
        bits -= np.log2(p)
    return bits / len(test)


names = ["counts", "after 1 letter", *(f"after {n} letters" for n in (2, 3, 4)), "LSTM"]
bits = dict(zip(names, [*map(n_gram_bits, range(5)), lstm], strict=True))
for name, value in bits.items():
    print(f"{name}: {value:.2f} bits per character")
fig, ax = plt.subplots(figsize=(5, 2.6), layout="constrained")
ax.barh(list(bits), list(bits.values()), color=["0.75"] * 5 + ["C0"])
ax.set(xlabel="bits per character of the text behind")
ax.invert_yaxis()
plt.show()

# %%
# Now it writes. At a low temperature likely letters become likelier: it repeats itself. At a high
# one it makes words up.
for temperature in (0.3, 0.7, 1.0):
    drawn = network.sample(
        160, context=train[-200:], temperature=temperature, random_state=0
    )
    print(f"--- temperature {temperature}", "".join(letters[drawn]), sep="\n")

# %%
# Counting is ahead: the handbook repeats its phrases, and forty thousand letters are few for a
# network. So it stays with more of the text, more units and more epochs, which
# ``examples/benchmarks/text.py`` has.

"""
Hello: three units learn to write a word
========================================

Three trained units learn to write a word in which a letter alone does not tell the next one.

After an h comes an e, but what comes after an l? Once another l, then an o: the letter alone does
not say. A recurrent network remembers what it has read, and three units are enough for this word
(Bay 2017, section 6.1). What it takes is a learning rate that is large enough for forty epochs.
"""

import matplotlib.pyplot as plt
import numpy as np

from reservoir import RNNClassifier

letters = ["e", "h", "l", "o"]
word = [letters.index(letter) for letter in "hello"]
X, y = np.array(word[:-1])[:, None], np.array(word[1:])  # a letter, and the next

# %%
# The same plain network learns with the steps of Adagrad, from random weights at two learning
# rates, and from what `RNNClassifier` does by itself: a reservoir whose readout and recurrent
# weights are fitted by least squares before the first epoch. Every word begins at rest, which
# ``initial_state="zeros"`` says; else `predict` would go on where the word of training ended.
starts = {
    "random weights, rate .01": {"init": "glorot", "learning_rate_init": 0.01},
    "random weights, rate .3": {"init": "glorot", "learning_rate_init": 0.3},
    "least-squares start, rate .3": {"learning_rate_init": 0.3},
}
networks = {}
for name, chosen in starts.items():
    networks[name] = RNNClassifier(
        3,
        **chosen,
        n_symbols=4,
        solver="adagrad",
        max_iter=40,
        n_iter_no_change=40,
        early_stopping=False,
        washout=0,
        initial_state="zeros",
        random_state=0,
    ).fit(X, y)
    written = "h" + "".join(letters[k] for k in networks[name].predict(X))
    print(f"{name}: {written}, {networks[name].loss_curve_[-1]:.3f} nats per letter")

# %%
# The first writes what is most frequent, as the plain network of the source did; it has not failed
# to learn, it has not got far. On the right the probabilities of the last network: each row is a
# letter that it reads, and the two rows with an l differ.
fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
for (name, network), line in zip(networks.items(), [":", "--", "-"], strict=True):
    left.plot(network.loss_curve_, line, label=name)
left.axhline(np.log(4), color="grey", lw=0.8)
left.text(40, 1.2, "guessing", va="top", ha="right", color="dimgrey")
left.set(xlabel="epoch", ylabel="loss, nats per letter", yscale="log")
left.legend(
    frameon=False, fontsize="small", loc="upper right", bbox_to_anchor=(1, 0.82)
)
best = networks["least-squares start, rate .3"]
table = best.predict_proba(X)
right.imshow(table, cmap="Blues", vmin=0, vmax=1)
for (row, column), p in np.ndenumerate(table):
    colour = "white" if p > 0.5 else "black"
    right.text(column, row, f"{p:.2f}", ha="center", va="center", color=colour)
right.set(xlabel="next letter", ylabel="letter read")
right.set_xticks(range(3), [letters[k] for k in best.classes_])
right.set_yticks(range(4), [letters[k] for k in word[:-1]])
plt.show()

# %%
# ``examples/benchmarks/hello.py`` has ten seeds, five rates, an LSTM and gradient control.

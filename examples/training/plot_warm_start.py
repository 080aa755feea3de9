"""
Warm starts: where training begins
==================================

Two tasks, four starts, one way to train. Left the training loss over epochs, right over seconds, so
that the time of a fitted start counts: its curve begins where the start is ready. Broken lines
solve for the readout after each epoch, from which random starts gain a lot. The least-squares start
is ahead of all that the others reach before its first epoch, and training adds little to it.
"""

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from reservoir import RNNRegressor
from reservoir.datasets import mackey_glass, narma

n_epochs, n_train = 30, 2000
starts = {
    "glorot": "tab:gray",
    "orthogonal": "tab:olive",
    "esn": "tab:green",
    "least_squares": "tab:blue",
}

# %%
# Both series are standardised, so that a loss of 1 is that of a network which knows nothing. After
# the name: units, learning rate of Adam, input, target.
u, y = narma(2 * n_train, random_state=0)
x = mackey_glass(2 * n_train + 1, random_state=0).ravel()
tasks = {
    "NARMA10, 100 units": (
        100,
        3e-3,
        (u - u.mean()) / u.std(),
        (y - y.mean()) / y.std(),
    ),
    "Mackey-Glass, one step ahead, 64 units": (
        64,
        1e-3,
        (x[:-1] - x.mean()) / x.std(),
        (x[1:] - x.mean()) / x.std(),
    ),
}


def seconds_of(rnn, X, y):
    tick = time.perf_counter()
    rnn.fit(X, y)
    return time.perf_counter() - tick


# %%
# ``max_iter=0`` is the start alone, with the time that it takes. (The first fit, which loads the
# compiled loops, is not timed.) On Mackey-Glass the first steps of Adam are too long for what least
# squares has found: without `refit_readout` training diverges, warns, and returns the start.
warnings.simplefilter("ignore", ConvergenceWarning)
fig, axes = plt.subplots(2, 2, figsize=(9, 6.5), layout="constrained", sharey="row")
RNNRegressor(8, max_iter=50, random_state=0).fit(
    np.zeros((5000, 1)), np.arange(5000) % 2
)
for (left, right), (task, (n_units, rate, X, y)) in zip(
    axes, tasks.items(), strict=True
):
    X = np.reshape(X, (-1, 1))
    print(f"{task}: NMSE on {n_train} rows that follow")
    for init, color in starts.items():
        for refit in (False, True):
            rnn = RNNRegressor(
                n_units,
                init=init,
                learning_rate_init=rate,
                refit_readout=refit,
                n_iter_no_change=n_epochs,
                washout=50,
                random_state=0,
            )
            begun = seconds_of(rnn.set_params(max_iter=0), X[:n_train], y[:n_train])
            ended = seconds_of(
                rnn.set_params(max_iter=n_epochs), X[:n_train], y[:n_train]
            )
            losses = np.minimum.accumulate(rnn.loss_curve_)  # the best weights are kept
            seconds = np.linspace(begun, ended, len(losses))
            style = {
                "color": color,
                "linestyle": "--" if refit else "-",
                "linewidth": 1.4,
            }
            left.plot(losses, **style)
            right.plot(seconds, losses, label=None if refit else init, **style)
            error = 1 - rnn.score(X[n_train:], y[n_train:])
            note = ", refit_readout" if refit else ""
            print(
                f"  {init + note:30s}{error:9.2e}   {begun:.2f} s + "
                f"{ended - begun:.2f} s"
            )
    for ax in (left, right):
        ax.set_yscale("log")
        ax.grid(alpha=0.25)
    left.set(xlabel="epochs", ylabel="training loss (NMSE)", xlim=(-1, n_epochs))
    left.set_title(task, fontsize="medium", loc="left")
    right.set(xlabel="seconds, the start's among them", xscale="log")
axes[0, 1].plot([], [], "k--", label="readout solved for\nafter each epoch")
fig.legend(
    *axes[0, 1].get_legend_handles_labels(), loc="outside right center", frameon=False
)
plt.show()

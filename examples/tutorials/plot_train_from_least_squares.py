"""
Train a network from a least-squares start
==========================================

You have inputs and a target at each step, and wonder whether to train all weights of a recurrent network,
instead of the readout alone. Here training begins where least squares has led already. At the end you will
know what that start reaches, what gradients add to it, what an echo state network does for the same
price, and when training is worth it.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from reservoir import ESNRegressor, RNNRegressor
from reservoir.datasets import narma

# %%
# The task
# --------
# NARMA10 is a standard test of system identification: the output depends on the last ten inputs and
# outputs, and on products of them. We have 2000 rows to learn from, and 2000 that follow to judge by.
# Both columns are standardised, so that an error of 1 is that of a model which knows nothing but
# the mean; all errors below are mean squared errors in this unit.
X, y = narma(4000, random_state=0)
X = (X - X[:2000].mean()) / X[:2000].std()
y = (y - y[:2000].mean()) / y[:2000].std()
X_fit, y_fit, X_new, y_new = X[:2000], y[:2000], X[2000:], y[2000:]

fig, (above, below) = plt.subplots(2, figsize=(6.4, 3), sharex=True, layout="constrained")
above.plot(X[:200, 0], color="0.5")
below.plot(y[:200], color="tab:blue")
above.set_ylabel("input")
below.set(xlabel="step", ylabel="target")


# %%
# The picture shows 200 steps: noise goes in, something slower comes out. Start with the simplest
# rivals. A ridge regression on the last twenty inputs is linear and has no network. An echo state network
# as it comes is worse than that: its input is too strong for a memory of ten steps. A search of a second or
# two mends that, and more units cost little.
def error(model):
    return 1 - model.score(X_new, y_new)


def lags(X):
    return np.column_stack([np.roll(X[:, 0], lag) for lag in range(20)])


linear = Ridge().fit(lags(X_fit)[20:], y_fit[20:])
print(f"ridge on 20 lags           {1 - linear.score(lags(X_new)[20:], y_new[20:]):.3f}")
esn = ESNRegressor(100, random_state=0).fit(X_fit, y_fit)
print(f"reservoir as it comes      {error(esn):.3f}")
grid = {"input_scaling": [0.03, 0.1, 0.3], "spectral_radius": [0.8, 0.9, 0.98]}
search = GridSearchCV(ESNRegressor(100, random_state=0), grid, cv=TimeSeriesSplit(3))
search.fit(X_fit, y_fit)
print(f"reservoir, searched        {error(search):.3f}  {search.best_params_}")
large = search.best_estimator_.set_params(n_units=400, alpha=np.logspace(-8, 0, 9))
print(f"the same with 400 units    {error(large.fit(X_fit, y_fit)):.3f}")

# %%
# The start alone
# ---------------
# `RNNRegressor` trains all weights. Before the first gradient it fits them by least squares: it draws a
# reservoir, computes which states would have given the right outputs, and regresses the weights on them, layer
# by layer. ``max_iter=0`` stops there. Three seeds, since the draw matters; times are those of this build,
# in seconds of processor time, for one network.
def compare(rows):
    print(f"{'64 units':33s}seed 0 seed 1 seed 2  seconds")
    for name, parameters in rows.items():
        tick, found = time.process_time(), []
        for seed in range(3):
            rnn = RNNRegressor(64, random_state=seed, **parameters).fit(X_fit, y_fit)
            found.append(error(rnn))
        seconds = (time.process_time() - tick) / 3
        print(f"{name:33s}" + "".join(f"{one:6.3f} " for one in found) + f"{seconds:8.1f}")


RNNRegressor(8, max_iter=1).fit(X_fit[:200], y_fit[:200])  # loads what is compiled
compare(
    {
        "least-squares start, no training": {"max_iter": 0},
        "random start, Adam, 60 epochs": {
            "init": "glorot",
            "learning_rate_init": 3e-3,
            "max_iter": 60,
        },
    }
)

# %%
# In a fraction of a second, and without a learning rate, the start is nearly where the usual way of training
# comes after 60 epochs.
#
# Train from there
# ----------------
# As it comes, `RNNRegressor` goes on with Adam, for at most 200 epochs. ``solver="lbfgs"`` takes all data at
# once, and has no learning rate. ``early_stopping=True`` holds out the last tenth of the rows, keeps the
# weights that do best there, and stops when ten epochs in a row have not helped.
compare(
    {
        "Adam, as it comes": {"max_iter": 60},
        "L-BFGS, 40 steps": {"solver": "lbfgs", "max_iter": 40},
        "Adam, early stopping": {"early_stopping": True, "max_iter": 100},
    }
)

# %%
# Whatever is chosen, `fit` returns the best weights that it has seen, the start among them: the loss that
# it looks at cannot become worse by training. Watch that loss, and the one of rows that were held out:
curves = {
    "least-squares start": RNNRegressor(64, random_state=0, max_iter=60, n_iter_no_change=60),
    "random start": RNNRegressor(
        64,
        init="glorot",
        learning_rate_init=3e-3,
        random_state=0,
        max_iter=60,
        n_iter_no_change=60,
    ),
}

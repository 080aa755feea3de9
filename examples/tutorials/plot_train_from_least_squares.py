"""
Train a network from a least-squares start
==========================================

You have inputs and a target at each step, and wonder whether to train all weights of a
recurrent network, instead of the readout alone. Here training begins where least
squares has led already. At the end you will know what that start reaches, what
gradients add to it, what an echo state network does for the same price, and when
training is worth it.
"""

import copy
import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from reservoir import ESNRegressor, RNNRegressor
from reservoir.datasets import narma

# %%
# The task
# --------
# NARMA10 is a standard test of system identification: the output depends on the last
# ten inputs and outputs, and on products of them. We have 2000 rows to learn from, and
# 2000 that follow to judge by. Both columns are standardised, so that an error of 1 is
# that of a model which knows nothing but the mean; all errors below are mean squared
# errors in this unit.
X, y = narma(4000, random_state=0)
X = (X - X[:2000].mean()) / X[:2000].std()
y = (y - y[:2000].mean()) / y[:2000].std()
X_fit, y_fit, X_new, y_new = X[:2000], y[:2000], X[2000:], y[2000:]

shape = {"figsize": (6.4, 3), "sharex": True, "layout": "constrained"}
fig, (above, below) = plt.subplots(2, **shape)
above.plot(X[:200, 0], color="0.5")
below.plot(y[:200], color="C0")
above.set_ylabel("input")
below.set(xlabel="step", ylabel="target")


# %%
# The picture shows 200 steps: noise goes in, something slower comes out. Start with the
# simplest rivals. A ridge regression on the last twenty inputs is linear and has no
# network. An echo state network may be worse than that: here its input is too strong for
# a memory of ten steps. A search of a second or two mends that, and more units cost
# little. Its leak rate is 1, since slow units smear the inputs that NARMA10 multiplies;
# the penalty of the hundred units is next to none, since there is no noise.
def error(model):
    return 1 - model.score(X_new, y_new)


def lags(X):
    return np.column_stack([np.roll(X[:, 0], lag) for lag in range(20)])


linear = Ridge().fit(lags(X_fit)[20:], y_fit[20:])
score = linear.score(lags(X_new)[20:], y_new[20:])
print(f"ridge on 20 lags           {1 - score:.3f}")
esn = ESNRegressor(100, leak_rate=1.0, alpha=1e-6, random_state=0)
print(f"reservoir, not searched    {error(esn.fit(X_fit, y_fit)):.3f}")
grid = {"input_scaling": [0.03, 0.1, 0.3], "spectral_radius": [0.8, 0.9, 0.98]}
search = GridSearchCV(clone(esn), grid, cv=TimeSeriesSplit(3))
search.fit(X_fit, y_fit)
print(f"reservoir, searched        {error(search):.3f}  {search.best_params_}")
large = clone(search.best_estimator_)
large.set_params(n_units=400, alpha="auto")  # the penalty is chosen for these units
print(f"the same with 400 units    {error(large.fit(X_fit, y_fit)):.3f}")


# %%
# The start alone
# ---------------
# `RNNRegressor` trains all weights. First it fits them by least squares: it draws two
# reservoirs, tries each at three strengths of the inputs, works out which states would
# have given the right outputs, and regresses the weights on those. ``max_iter=0`` stops
# there. The rival begins with random weights, as networks usually do, under Adam with a
# learning rate three times the default. Three seeds each; the time is that of one fit
# on the machine that built this page.
def compare(name, go_on_from=(None,) * 3, **parameters):
    tick, networks = time.process_time(), []
    for seed, start in enumerate(go_on_from):
        if start is None:
            rnn = RNNRegressor(100, random_state=seed, **parameters)
        else:
            rnn = copy.deepcopy(start).set_params(warm_start=True, **parameters)
        networks.append(rnn.fit(X_fit, y_fit))
    seconds = (time.process_time() - tick) / 3
    errors = "".join(f"{error(rnn):7.4f}" for rnn in networks)
    print(f"{name:33s}{errors}{seconds:7.1f} s")
    return networks


RNNRegressor(8, max_iter=1, random_state=0).fit(X_fit[:200], y_fit[:200])  # warms up
print(f"{'100 units':33s} seed 0 seed 1 seed 2")
starts = compare("least-squares start, no training", max_iter=0)
glorot = {"init": "glorot", "learning_rate_init": 3e-3, "n_iter_no_change": 40}
random = compare("random start, 40 epochs of Adam", max_iter=40, **glorot)

# %%
# Two starts of three are ahead of 40 epochs from random weights, the third is close, and
# there is no learning rate to choose. What was drawn, tried and kept is a table; here that
# of seed 0. Its errors are those of rows that the readouts were not fitted to, in units of
# the variance.
table = starts[0].start_results_
print("reservoir  inputs times  error  halfway  kept")
for draw, scaling, begun, halfway, kept in zip(
    table["draw"],
    table["input_scaling"],
    table["error"],
    table["halfway_error"],
    table["kept"],
    strict=True,
):
    print(
        f"{draw:9d} {scaling:13g} {begun:6.3f} {halfway:8.3f}  {'yes' if kept else ''}"
    )

# %%
# Train from there
# ----------------
# Adam takes small steps of all weights, L-BFGS large ones. Neither goes far from such a
# start: its readout is at its optimum, and a step of the recurrent weights that leaves
# the readout behind makes everything worse. *Variable projection* solves for the readout
# inside: L-BFGS moves the recurrent weights alone, and each time they are tried the
# readout is the best one for them. It is what `RNNRegressor` does as it comes. A fifth
# of the rows, in segments, only tells it when to stop; in the end the readout learns from
# them, too. All three go on from the starts above (``warm_start=True``); the time is that
# of what they add.
print(f"{'100 units':33s} seed 0 seed 1 seed 2")
adam = compare("Adam, at most 40 epochs", starts, solver="adam", max_iter=40)
lbfgs = compare("L-BFGS, 40 steps", starts, solver="lbfgs", max_iter=40)
trained = compare("variable projection, 200 steps", starts, solver="auto", max_iter=200)

# sphinx_gallery_thumbnail_number = 2
fig, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
for networks, name, style in (
    (random, "random start, Adam", {"color": "0.5"}),
    (adam, "least-squares start, Adam", {"color": "C0", "linestyle": "--"}),
    (lbfgs, "least-squares start, L-BFGS", {"color": "C1", "linestyle": ":"}),
    (trained, "least-squares start, variable projection", {"color": "C2"}),
):
    ax.semilogy(np.minimum.accumulate(networks[2].loss_curve_), label=name, **style)
ax.set(
    xlabel="epochs or iterations", ylabel="training loss\n(best so far)", xlim=(-2, 200)
)
ax.legend(frameon=False, loc="upper right")
done, best_epoch = adam[2].n_iter_, adam[2].best_epoch_
print(f"seed 2, Adam: {done} epochs, the best is number {best_epoch}")

# %%
# The picture shows the training loss of seed 2: random weights do not come in 40 epochs
# where this start begins. Behind it Adam and L-BFGS find next to nothing, and variable
# projection most of what there is to find.
#
# Whatever is chosen, `fit` returns the best weights that it has seen, the start among
# them: the loss that it looks at cannot become worse by training.
#
# Go on from a fitted echo state network
# --------------------------------------
# Do you have an echo state network that is not good enough? `to_rnn` makes a trained
# network of it, with the same outputs, and `fit` goes on from its weights. Here it is
# the first from above. Leaks are not trained: it begins without any.
same = esn.to_rnn()
print(f"as a reservoir             {error(esn):.4f}")
print(f"as a network, not trained  {error(same):.4f}")
print(f"trained, as it comes       {error(same.fit(X_fit, y_fit)):.4f}")

# %%
# In torch
# --------
# With torch installed (``pip install torch``; this page was built without it, the lines
# were tried with 2.13), the same network goes on there, with any optimiser and loss, on
# any device, and comes back. `module` takes arrays of shape (batch, time, features);
# its cell must be one that torch has, so without a leak (``leak_rate=1``).
#
# .. code-block:: python
#
#     import torch
#
#     module = esn.to_rnn().to_torch()  # torch.nn.RNN and torch.nn.Linear, our weights
#     inputs = torch.from_numpy(X_fit[None])  # the rows and targets of `fit`
#     targets = torch.from_numpy(y_fit[None, :, None])
#     optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)
#     for epoch in range(100):
#         optimizer.zero_grad()
#         wrong = (module(inputs) - targets)[:, 100:]  # the washout does not count
#         (wrong**2).mean().backward()
#         optimizer.step()
#     again = RNNRegressor.from_torch(module)  # with predict, score, forecast, fit ...
#     print(again.score(X_new, y_new))
#
# When is training worth it?
# --------------------------
# Put the figures side by side; of the networks the median of the three seeds.
print(f"reservoir of 100 units, searched   {error(search):.4f}")
print(f"reservoir of 400 units, searched   {error(large):.4f}")
print(
    f"least-squares start, 100 units     {np.median([error(rnn) for rnn in starts]):.4f}"
)
print(
    f"the same, trained                  {np.median([error(rnn) for rnn in trained]):.4f}"
)

# %%
# - A reservoir is the first thing to try: its fit is one regression. More units are the
#   cheapest way to make it better.
# - A trained network is the second, where the target is a smooth function of what was
#   before and there is little noise: 100 units are then far ahead of a reservoir of four
#   times as many, which matters where it has to be small, too: on a controller, or where
#   it is asked a million times a day. With few rows and much noise compare it with a
#   reservoir and with linear models: every weight can fit noise.
# - Begin with random weights (``init="orthogonal"``, cells "lstm" and "gru") where the
#   target depends on what was hundreds of steps ago: that is what the start cannot see.
#   With one target at the end of each sequence (``target="last"``) a fit tries three
#   starts by itself.
#
# Which start and which solver for which task: :doc:`/guide/training`; the figures on
# other tasks: :doc:`/results/training`. How a start finds a teacher's weights:
# :doc:`/gallery/training/plot_teacher_student`.
plt.show()

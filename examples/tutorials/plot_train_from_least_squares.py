"""
Train a network from a least-squares start
==========================================

Train all weights of a recurrent network, from a start that least squares fits.

An echo state network fits its readout alone; `RNNRegressor` goes on from there:
"""

import matplotlib.pyplot as plt

from reservoir import RNNRegressor
from reservoir.datasets import narma

X, y = ((v - v[:2000].mean()) / v[:2000].std() for v in narma(4000, random_state=0))
X_fit, y_fit, X_new, y_new = X[:2000], y[:2000], X[2000:], y[2000:]
rnn = RNNRegressor(100, random_state=0).fit(X_fit, y_fit)
print(f"R² on new rows: {rnn.score(X_new, y_new):.4f}")
plt.figure(figsize=(6.4, 3), layout="constrained")
plt.plot(y_new[100:220], color="0.6", linewidth=3, label="target")
plt.plot(rnn.predict(X_new)[100:220], color="C0", label="prediction")
plt.figlegend(loc="outside upper left", ncols=2, frameon=False)

# %%
# The rest of the page shows what the start reaches alone, what training adds, what an echo state
# network does for the same price, and when training is worth it.
#
# The task and the simplest rivals
# --------------------------------
# NARMA10 is a standard test. The output depends on the last ten inputs and outputs, and on products
# of them. There are 2000 rows to learn from and 2000 new ones. All errors are mean squared errors
# on the new rows, in units of the target's variance: the mean alone has an error of 1.
#
# The first rival is a ridge regression on the last 20 inputs. The second is an echo state network.
# Its leak rate is 1, since slow units smear the inputs that NARMA10 multiplies.
import copy
import time

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from reservoir import ESNRegressor


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
# Without a search the reservoir is worse than the ridge: the input is too strong for a memory of
# ten steps. A search of a second or two mends that.
#
# The start alone
# ---------------
# A fit begins with two random reservoirs, each with three strengths of the inputs. It computes the
# states that would have given the right outputs, and regresses the weights on these states.
# ``max_iter=0`` stops there. The rival begins with random weights, as networks usually do, and
# takes 40 epochs of Adam at three times the default learning rate.
def compare(name, starts=(None,) * 3, **parameters):
    tick, networks = time.process_time(), []
    for seed, start in enumerate(starts):
        if start is None:
            rnn = RNNRegressor(100, random_state=seed, **parameters)
        else:
            rnn = copy.deepcopy(start).set_params(warm_start=True, **parameters)
        networks.append(rnn.fit(X_fit, y_fit))
    seconds = (time.process_time() - tick) / 3
    errors = "".join(f"{error(rnn):7.4f}" for rnn in networks)
    print(f"{name:33s}{errors}{seconds:7.1f} s a fit")
    return networks


print(f"{'100 units':33s} seed 0 seed 1 seed 2")
starts = compare("least-squares start, no training", max_iter=0)
glorot = {"init": "glorot", "learning_rate_init": 3e-3, "n_iter_no_change": 40}
random = compare("random start, 40 epochs of Adam", max_iter=40, **glorot)

# %%
# The starts are ahead of 40 epochs from random weights, one of them by little, and there is no
# learning rate to choose. `start_results_` lists what was tried. Its errors are measured on rows
# that the readouts were not fitted to.
columns = ["draw", "input_scaling", "error", "halfway_error", "kept"]
table = pd.DataFrame(starts[0].start_results_)[columns]
print(table.round(3).to_string(index=False))

# %%
# Train from there
# ----------------
# Adam takes small steps of all weights. It does not go far from such a start: the readout is at its
# optimum, and a step of the recurrent weights alone makes everything worse. *Variable projection*
# moves the recurrent weights by L-BFGS, and solves for the best readout at each step. This is the
# default. A fifth of the rows, in segments, indicates when to stop. In the end the readout learns
# from them, too. Both solvers continue from the starts above (``warm_start=True``).
print(f"{'100 units':33s} seed 0 seed 1 seed 2")
adam = compare("Adam, at most 40 epochs", starts, solver="adam", max_iter=40)
trained = compare("variable projection, 100 steps", starts, solver="auto", max_iter=100)

# sphinx_gallery_thumbnail_number = 2
fig, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
for networks, name, style in (
    (random, "random start, Adam", {"color": "0.5"}),
    (adam, "least-squares start, Adam", {"color": "C0", "linestyle": "--"}),
    (trained, "least-squares start, variable projection", {"color": "C2"}),
):
    ax.semilogy(np.minimum.accumulate(networks[2].loss_curve_), label=name, **style)
ax.set(xlabel="epochs or iterations", ylabel="training loss\n(best so far)")
ax.set_xlim(-2, 100)
ax.legend(frameon=False, loc="upper right")

# %%
# The picture shows the training loss of seed 2. In 40 epochs random weights do not arrive where the
# least-squares start begins. From there Adam finds almost nothing, and variable projection finds
# most of what is left. `fit` returns the best weights that it has seen, the start among them.
#
# Continue from a fitted echo state network
# -----------------------------------------
# `to_rnn` turns an echo state network into a trainable one with the same outputs. `fit` continues
# from its weights. Leaks are not trained: it begins without any. Here it is the reservoir that was
# not searched.
same = esn.to_rnn()
print(f"as a reservoir             {error(esn):.4f}")
print(f"as a network, not trained  {error(same):.4f}")
print(f"trained, as it comes       {error(same.fit(X_fit, y_fit)):.4f}")

# %%
# In torch
# --------
# With torch installed (``pip install torch``; this page was built without it, the lines were tried
# with 2.13), the same network continues there, with any optimiser and loss, on any device, and
# comes back. `module` takes arrays of shape (batch, time, features), in float64. Networks with a
# leak go to torch as well, as a module of their own.
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
#         wrong = (module(inputs) - targets)[:, 100:]  # without the washout
#         (wrong**2).mean().backward()
#         optimizer.step()
#     again = RNNRegressor.from_torch(module)  # with predict, score, forecast, fit ...
#     print(again.score(X_new, y_new))
#
# When is training worth it?
# --------------------------
# The errors side by side. Of starts and trained networks it is the median of three seeds:
print(f"reservoir of 100 units, searched   {error(search):.4f}")
print(f"reservoir of 400 units, searched   {error(large):.4f}")
for name, networks in (("start, 100 units", starts), ("start, trained", trained)):
    print(f"least-squares {name:20s} {np.median([*map(error, networks)]):.4f}")

# %%
# - Try a reservoir first: its fit is one regression. More units are the cheapest way to make it
#   better.
# - Train a network if the target is a smooth function of the past and there is little noise. Here
#   100 trained units are far ahead of a reservoir of four times as many. That matters most where
#   the model has to be small or fast.
# - With few rows and much noise compare it with a reservoir and with linear models: every weight
#   can fit noise.
# - Begin with random weights (``init="orthogonal"``, cells "lstm" and "gru") if the target depends
#   on what happened hundreds of steps ago: the least-squares start cannot see that far. With one
#   target at the end of each sequence (``target="last"``) a fit tries three starts automatically.
#
# Which start and which solver for which task: :doc:`/guide/training`; the figures on
# other tasks: :doc:`/results/training`. How a start finds a teacher's weights:
# :doc:`/gallery/training/plot_teacher_student`.
plt.show()

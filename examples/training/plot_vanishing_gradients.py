"""
Vanishing gradients: how far back a network can learn
=====================================================

See how far back a network can learn: two students of a teacher with a long memory, one under
gradient control.

The gradient of a loss over k steps holds a product of k Jacobians, one for each step. The *teacher*
has Jacobians with all singular values near 1, and remembers for a thousand steps. Two *students*
learn its outputs from the same start and the same data, one of them under gradient control.

The norm of the product, on the left, falls where gradients vanish. It follows the one direction
that is kept best, and by itself hardly tells the students apart. All directions, on the right, do:
over 50 steps back most of them are lost to the plain student, which magnifies a few and learns next
to nothing of a teacher with so long a memory. Under control nearly all arrive with a hundredth of
their size or more, and the test error is lower.

The last picture is of untrained networks: what of a gradient arrives from each step, by the
spectral radius that the recurrent weights are drawn with.
"""

from functools import reduce

import matplotlib.pyplot as plt
import numpy as np

from reservoir import RNNRegressor, plotting
from reservoir.datasets import temporal_order
from reservoir.training.bptt import Network, make_batch, predict
from reservoir.training.cells import SimpleCell
from reservoir.training.gradient_control import (
    GradientControl,
    control_penalty,
    jacobian_product_norms,
    step_jacobians,
)
from reservoir.training.initializers import initialize
from reservoir.training.optimizers import adam
from reservoir.training.temporal_gradients import temporal_gradient_norms


# %%
# The teacher has no task: its weights, orthogonal at first, descend on the penalties alone.
def make_teacher(n_units, rng):
    cell, W_in = SimpleCell(n_units), 0.01 * rng.normal(size=(n_units, 64))
    W = np.linalg.qr(rng.normal(size=(n_units, n_units)))[0]
    params = {"W_in": W_in, "W": W, "bias": -W_in.sum(axis=1) / 2}
    control = GradientControl(weight=1.0, low=0.95, high=1.05, n_samples=8)
    optimizer, state = adam(1e-3), None
    memory = optimizer.init(params)
    for _ in range(400):
        trace = cell.forward(params, rng.uniform(size=(100, 1, 64)), state)
        _, direct, d_pre = control_penalty(cell, params, trace, control, rng)
        grads, _, _ = cell.backward(
            params, trace, np.zeros_like(trace.states[1:]), d_pre=d_pre
        )
        grads["W"] += direct["W"]
        params, memory = optimizer.update(params, grads, memory)
        state = trace.end
    params["coef"] = rng.normal(size=(64, n_units)) / (
        trace.states.std() * np.sqrt(n_units)
    )
    params["intercept"] = np.zeros(64)
    return Network(cell, 64, 64, "tanh"), params


def singular_values_over(depth, cell, params, X):
    """Singular values of the product of the last Jacobians: one for each direction."""
    steps = np.arange(len(X) - depth, len(X))
    trace = cell.forward(params, X[:, None])
    J = step_jacobians(cell, params, trace, steps, np.zeros_like(steps))
    return np.linalg.svd(reduce(np.matmul, J[::-1]), compute_uv=False)


# %%
# Students of two sizes. The learning rates were searched for each, on another seed.
fig, axes = plt.subplots(
    2, 2, figsize=(9, 6), layout="constrained", width_ratios=[2, 1]
)
for (left, right), n_units in zip(axes, (16, 64), strict=True):
    rng = np.random.default_rng(0)
    network, teacher = make_teacher(n_units, rng)
    X, X_test = rng.uniform(size=(2, 2000, 64))
    y, y_test = (predict(network, teacher, x[:, None])[0][:, 0] for x in (X, X_test))
    weights = {"teacher": teacher}
    for name, rate, control in [("plain", 1e-3, 0.0), ("controlled", 3e-3, 0.1)]:
        student = RNNRegressor(
            n_units,
            output="tanh",
            init="orthogonal",
            learning_rate_init=rate,
            truncation=100,
            max_iter=100,
            n_iter_no_change=100,
            washout=0,
            gradient_control=control,
            random_state=0,
        ).fit(X, y)
        weights[name] = student.params_
        error = np.mean((student.predict(X_test) - y_test) ** 2)
        print(
            f"{n_units} units, {name}: test MSE {error:.3f} (variance "
            f"{y_test.var():.3f})"
        )
    logs = [
        jacobian_product_norms(network.cell, w, X_test, 1000) for w in weights.values()
    ]
    table = np.transpose(logs)
    table[table < np.log(1e-20)] = -np.inf  # a curve ends there
    plotting.jacobian_norms(table, labels=list(weights), legend=False, ax=left)
    left.set_title(
        f"{n_units} units: norm of the product of Jacobians", fontsize="medium"
    )
    share = np.arange(1, n_units + 1) / n_units
    for w, style in zip(weights.values(), ("C0-", "C1--", "C2-."), strict=True):
        values = singular_values_over(50, network.cell, w, X_test)
        right.semilogy(share, values, style, linewidth=1.4)
    right.set(
        xlabel="share of directions",
        ylabel="singular value",
        xlim=(0, 1),
        ylim=(1e-12, 1e3),
    )
    right.set_title("the product over 50 steps", fontsize="medium")
handles, labels = axes[0, 0].get_legend_handles_labels()
fig.legend(handles, labels, loc="outside upper left", ncols=4, frameon=False)
plt.show()

# %%
# Where a gradient comes from is decided before any training. A network of 50 units is
# to say, after 100 steps, in which order it has met two symbols, one between the 10th
# and the 20th step and one between the 50th and the 60th: the gradient of that loss is
# a sum over the steps at which the weights acted, and drawn is the norm of each term,
# by the spectral radius of the recurrent weights at the start (after Galvan 2016). At
# radius .7 less than a ten-millionth of the last step's share comes from the symbols,
# at .9 less than a ten-thousandth: training will hardly learn of them. At 1.3 it is
# about a half from the second symbol, and a fifth or more from the first.
X, y = temporal_order(50, length=100, random_state=0)
classes = (y[:, None] == np.unique(y)).astype(float)
batch = make_batch(X, list(classes), last=True)
network = Network(SimpleCell(50), X[0].shape[1], 4, "softmax", "cross_entropy")
radii = (0.7, 0.9, 1.1, 1.3)
fig, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
norms = []
for radius in radii:
    weights = initialize(
        network.weights(), "spectral", spectral_radius=radius, random_state=0
    )
    norms.append(temporal_gradient_norms(network, weights, batch))
plotting.temporal_gradients(
    np.transpose(norms), labels=[f"radius {radius}" for radius in radii], ax=ax
)
ax.set_title("what of the gradient arrives from each step", fontsize="medium")
plt.show()

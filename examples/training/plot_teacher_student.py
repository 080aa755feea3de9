"""
Teacher and student: what least squares reaches before any gradient
===================================================================

Eight iterations of least squares bring a network of 128 units to its teacher's outputs, before any
gradient step.

A network of 128 units learns to answer as another one does. Left, one of the 64 outputs on data
that no student has seen: eight iterations of least squares lie on the teacher; ten epochs of
gradient steps from the same random weights, or seven iterations of the recipe as it was printed, do
not. Right, the table that Bay (2017) printed beside what is measured here.
"""

import matplotlib.pyplot as plt
import numpy as np

from reservoir.training.bptt import Network, predict
from reservoir.training.cells import SimpleCell
from reservoir.training.initializers import initialize
from reservoir.training.least_squares import ls_fit
from reservoir.training.optimizers import adam
from reservoir.training.trainer import Data, train

# %%
# Teacher and student have the same shape, and parameters from N(0, .065^2); 64 inputs are uniform
# on [0, 1]. 2000 steps are there to learn from, 2000 others to test on.
network = Network(SimpleCell(128), n_features=64, n_outputs=64, output="tanh")


def outputs(params, X):
    return predict(network, params, X[:, None])[0][:, 0]


def epochs(params, X, Y, n):
    data = Data([X], [Y])
    return train(network, params, data, adam(1e-3), max_iter=n, truncation=50).params


# %%
# "bay2017" is the recipe as it is printed: a tenth of the way at a time, without penalty or guard.
# The printed table does not say how its networks were trained; here by Adam, on chunks of 50 steps.
printed = {
    "random, 10 epochs": 23.58,
    "random, 17 epochs": 4.51,
    "source's recipe, 7 iterations": 9.14,
    "source's recipe, 10 iterations": 3.43,
    "source's recipe, 7, then 10 epochs": 1.00,
    "ls_fit, 3 iterations": np.nan,
    "ls_fit, 8 iterations": np.nan,
    "ls_fit, 8, then 10 epochs": np.nan,
}
measured = {name: [] for name in printed}
for seed in range(3):
    rng = np.random.default_rng(seed)
    teacher, start = (
        initialize(network.shapes(), "normal", scale=0.065, random_state=rng)
        for _ in range(2)
    )
    X, X_test = rng.random((2, 2000, 64))
    Y, Y_test = outputs(teacher, X), outputs(teacher, X_test)
    literal, ours = (
        {
            n: ls_fit(start, X, Y, output="tanh", n_iter=n, method=method).params
            for n in counts
        }
        for method, counts in [("bay2017", (7, 10)), ("mixed", (3, 8))]
    )
    students = [
        epochs(start, X, Y, 10),
        epochs(start, X, Y, 17),
        *literal.values(),
        epochs(literal[7], X, Y, 10),
        *ours.values(),
        epochs(ours[8], X, Y, 10),
    ]
    answers = dict(
        zip(printed, (outputs(params, X_test) for params in students), strict=True)
    )
    for name, rows in answers.items():
        measured[name].append(1e3 * np.mean((rows - Y_test) ** 2))

print(
    "test MSE x 1000, seeds 0 to 2; variance of the targets "
    f"{1e3 * Y_test.var(axis=0).mean():.0f}"
)
print(f"{'':36s}{'printed':>8s}{'median':>8s}{'worst':>8s}")
for name, errors in measured.items():
    said = 8 * " " if np.isnan(printed[name]) else f"{printed[name]:8.2f}"
    print(f"{name:36s}{said}{np.median(errors):8.2f}{max(errors):8.2f}")

# %%
# The last seed's first output, and the table. Each dot is a seed.
fig, (left, right) = plt.subplots(
    1, 2, figsize=(10, 4), layout="constrained", width_ratios=[1.15, 1]
)
steps = np.arange(100, 150)
left.plot(
    steps, Y_test[steps, 0], color="black", linewidth=3, alpha=0.3, label="teacher"
)
for name, style in [
    ("random, 10 epochs", {"color": "0.5", "linestyle": ":"}),
    ("source's recipe, 7 iterations", {"color": "C1", "linestyle": "--"}),
    ("ls_fit, 8 iterations", {"color": "C0"}),
]:
    left.plot(steps, answers[name][steps, 0], linewidth=1.4, label=name, **style)
left.set(xlabel="time step (test data)", ylabel="output 0", xlim=(100, 149))
left.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
rows = np.arange(len(printed))[::-1]
for row, errors in zip(rows, measured.values(), strict=True):
    label = None if row else "measured"
    right.plot(errors, [row] * len(errors), "C0o", markersize=5, label=label)
right.plot(
    list(printed.values()), rows, "x", color="black", markersize=7, label="printed"
)
right.set_yticks(rows, list(printed))
right.set(xscale="log", xlabel="test MSE x 1000")
right.grid(axis="x", which="both", alpha=0.25)
right.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
plt.show()

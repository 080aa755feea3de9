"""
Trained networks that go on learning
====================================

A system changes little by little: four ways to keep learning, beside a network that learns no more.

A network learns the outputs of a system, and then the system changes: its weights move, little by
little, until nothing of the old ones is left. A network that no longer learns is soon worse than
none. Four ways to follow, all of which see each row once, 50 rows at a time, after they have
predicted them.
"""

import matplotlib.pyplot as plt
import numpy as np

from reservoir import ESNRegressor, RNNRegressor, plotting

n_units, n_fit, n_rows, every, window = 32, 1000, 4000, 50, 300
learners = {
    "not adapted": None,
    "ESN, readout refitted": None,
    "back-propagation": {"online": "bptt", "learning_rate_init": 1e-2},
    "real-time recurrent learning": {"online": "rtrl", "learning_rate_init": 1e-3},
    "least squares": {"online": "least_squares", "online_window": window},
}


# %%
# The system is a network of 32 tanh units, with 8 inputs and 4 outputs. Its weights stay for 1000
# rows, and turn to others in the 3000 rows that follow, at equal size.
def drifting_system(rng):
    shapes = [(n_units, n_units), (n_units, 8), (n_units,), (4, n_units), (4,)]
    begin, end = (
        [0.2 * rng.standard_normal(shape) for shape in shapes] for _ in range(2)
    )
    X, Y = rng.standard_normal((n_rows, 8)), np.empty((n_rows, 4))
    h = np.zeros(n_units)
    for t, x in enumerate(X):
        s = np.pi / 2 * max(0, (t - n_fit) / (n_rows - n_fit))
        W, W_in, bias, C, c = (
            np.cos(s) * a + np.sin(s) * b for a, b in zip(begin, end, strict=True)
        )
        h = np.tanh(W @ h + W_in @ x + bias)
        Y[t] = np.tanh(C @ h + c)
    return X, Y


# %%
# `partial_fit` goes on where the last rows ended, and so does `predict`. The echo state network has
# a hundred units, more than the others, and fits its readout anew to the last 300 rows. Its leak
# rate is 1, as that of the system.
def squared_errors(name, X, Y, seed):
    options = {"output": "tanh", "max_iter": 0, "washout": 0, "random_state": seed}
    model = RNNRegressor(n_units, **options, **(learners[name] or {}))
    if name.startswith("ESN"):
        options = {"leak_rate": 1.0, "input_scaling": 0.3, "washout": 20}
        model = ESNRegressor(100, **options, random_state=seed)
    model.fit(X[:n_fit], Y[:n_fit])
    found, state = [], "last"
    for now in range(n_fit, n_rows, every):
        rows = slice(now, now + every)
        guess, state = model.predict(X[rows], initial_state=state, return_state=True)
        found.append(np.mean((guess - Y[rows]) ** 2))
        if learners[name] is not None:
            model.partial_fit(X[rows], Y[rows])
            state = "last"
        elif name.startswith("ESN"):
            back = slice(now + every - window, now + every)
            model.fit(X[back], Y[back])
            state = "last"
    return np.array(found) / Y[n_fit:].var(axis=0).mean()


seeds = range(3)
data = [drifting_system(np.random.default_rng(seed)) for seed in seeds]
curves = {
    name: np.array([squared_errors(name, *data[seed], seed) for seed in seeds])
    for name in learners
}
print("NMSE of predictions made before learning, mean of 3000 rows, seeds 0 to 2:")
for name, errors in curves.items():
    print(f"  {name:30s}" + "".join(f"{error:8.3f}" for error in errors.mean(axis=1)))

# %%
# Root mean squares over seeds, and over four updates at a time. Least squares and real-time
# recurrent learning do equally well here; the first takes no learning rate, and the second grows
# with the fourth power of the number of units.
ax = plotting.running_error(
    {name: np.sqrt(errors.mean(axis=0)) for name, errors in curves.items()},
    window=4,
    index=np.arange(n_fit, n_rows, every),
)
ax.set(xlabel="time step", ylabel="NRMSE of 200 steps", xlim=(n_fit, n_rows))
plt.show()

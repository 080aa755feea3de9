"""Trained networks that learn on by least squares: ten systems that drift, ten that do not.

    python examples/benchmarks/trained_online.py [n_seeds] [first_seed]

1000 rows are fitted; 2000 more come 50 at a time, each predicted before it is learned from. Squared
errors of these predictions, over those of the same network left as it is: below 1 learning on has
gained. "each step" takes every step of `ls_online_step`, over a window of 300 rows;
"least_squares" is `RNNRegressor(online="least_squares")`, which holds its weights until others
predict better. Means over seeds (100 to 102 by default, which no setting was chosen on), and the
worst seed. A few minutes on one core.
"""

from __future__ import annotations

import os

from _command_line import run_main

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from reservoir import RNNRegressor
from reservoir.training.least_squares import ls_online_step

N_FIT, N_ROWS, EVERY, WINDOW, N_UNITS = 1000, 3000, 50, 300, 32


def student_of(n_units, n_features, n_outputs, size):
    """Return a system: a random tanh network whose weights turn to others of equal size."""

    def system(rng, drift):
        shapes = [(n_units, n_units), (n_units, n_features), (n_units,)]
        shapes += [(n_outputs, n_units), (n_outputs,)]
        begin, end = ([size * rng.standard_normal(shape) for shape in shapes] for _ in range(2))
        X, Y = rng.standard_normal((N_ROWS, n_features)), np.empty((N_ROWS, n_outputs))
        h = np.zeros(n_units)
        for t, x in enumerate(X):
            s = np.pi / 2 * drift[t]
            W, W_in, bias, C, c = (
                np.cos(s) * a + np.sin(s) * b for a, b in zip(begin, end, strict=True)
            )
            h = np.tanh(W @ h + W_in @ x + bias)
            Y[t] = np.tanh(C @ h + c)
        return X, Y

    return system


def narma(rng, drift):
    """NARMA of order 10, whose memory fades and whose gain grows."""
    u, y = rng.uniform(0, 0.5, N_ROWS), np.zeros(N_ROWS + 1)
    for t in range(N_ROWS):
        a, b, gain = 0.3 - 0.15 * drift[t], 0.05 - 0.02 * drift[t], 1.5 + drift[t]
        past, late = y[max(t - 9, 0) : t + 1].sum(), u[max(t - 9, 0)]
        y[t + 1] = a * y[t] + b * y[t] * past + gain * late * u[t] + 0.1
    return 4 * u[:, None] - 1, 4 * (y[1:, None] - 0.4)


def autoregression(rng, drift):
    """The next value of an AR(2) series, whose poles creep along a circle of radius .9."""
    y, e = np.zeros(N_ROWS + 3), 0.5 * rng.standard_normal(N_ROWS + 3)
    for t in range(2, N_ROWS + 3):
        angle = 0.4 + 0.8 * drift[min(max(t - 3, 0), N_ROWS - 1)]
        y[t] = 1.8 * np.cos(angle) * y[t - 1] - 0.81 * y[t - 2] + e[t]
    return y[2:-1, None], y[3:, None]


def mackey_glass(rng, drift):
    """The next value of a Mackey-Glass series, 2 time units on; its delay creeps from 17 to 23."""
    values, out = [1.2 + 0.2 * rng.standard_normal()] * 60, []
    for t in range(-300, N_ROWS + 1):
        delay = 2 * (17 + 6 * drift[min(max(t, 0), N_ROWS - 1)])
        whole, part = int(delay), delay % 1
        for _ in range(4):  # Euler steps of half a time unit
            late = (1 - part) * values[-1 - whole] + part * values[-2 - whole]
            x = values[-1]
            values.append(x + 0.5 * (0.2 * late / (1 + late**10) - 0.1 * x))
        out.append(3 * (values[-1] - 0.9))
    series = np.array(out[300:])[:, None]
    return series[:-1], series[1:]


SYSTEMS = {
    "teacher, 32 units": student_of(32, 8, 4, 0.2),
    "teacher, 8 units": student_of(8, 2, 1, 0.5),
    "NARMA": narma,
    "AR(2)": autoregression,
    "Mackey-Glass": mackey_glass,
}
NOISE = {"drifting": (0.0, 0.3), "constant": (0.1, 0.5)}


def draw(name, kind, noise, seed):
    """Return inputs and noisy targets; of series the inputs are the noisy values before."""
    rng = np.random.default_rng([seed, list(SYSTEMS).index(name), int(100 * noise)])
    drift = np.zeros(N_ROWS)
    if kind == "drifting":
        drift[N_FIT:] = np.linspace(0, 1, N_ROWS - N_FIT)
    X, Y = SYSTEMS[name](rng, drift)
    Y = Y + noise * Y[:N_FIT].std(axis=0) * rng.standard_normal(Y.shape)
    if name in ("AR(2)", "Mackey-Glass"):
        X = np.vstack([X[:1], Y[:-1]])
    return X, Y


def each_step(model, X, Y):
    """Return predictions of a learner that takes every step."""
    model.set_params(online="bptt")
    rows, state = [], model.state_
    for now in range(N_FIT, N_ROWS, EVERY):
        new, back = slice(now, now + EVERY), slice(now + EVERY - WINDOW, now + EVERY)
        rows.append(model.predict(X[new], initial_state=state).reshape(EVERY, -1))
        before = slice(max(back.start - 100, 0), back.start)
        start = model.predict(X[before], initial_state="zeros", return_state=True)[1]
        step = ls_online_step(model.params_, X[back], Y[back], credit=True, state=start)
        model.params_, state = step.params, step.state[0]
    return np.vstack(rows)


def prequential(way, X, Y, seed):
    """Return the mean squared error of predictions made before learning."""
    model = RNNRegressor(
        N_UNITS, max_iter=0, washout=50, online="least_squares", online_window=WINDOW,
        random_state=seed,
    )  # fmt: skip
    model.fit(X[:N_FIT], Y[:N_FIT])
    if way == "as it is":
        rows = model.predict(X[N_FIT:])
    elif way == "each step":
        rows = each_step(model, X, Y)
    else:
        parts = []
        for now in range(N_FIT, N_ROWS, EVERY):
            parts.append(model.predict(X[now : now + EVERY]))
            model.partial_fit(X[now : now + EVERY], Y[now : now + EVERY])
        rows = np.vstack(parts)
    return np.mean((rows - Y[N_FIT:]) ** 2)


def main(n_seeds=3, first=100):
    """Print the tables."""
    seeds = range(first, first + n_seeds)
    print(f"seeds {first} to {first + n_seeds - 1}; errors over those of the network as it is")
    for kind, noises in NOISE.items():
        print(f"\n{kind + ', noise':26s}{'NMSE as it is':>14s}{'each step':>11s}", end="")
        print(f"{'least_squares':>15s}{'worst':>8s}")
        for name in SYSTEMS:
            for noise in noises:
                found = []
                for seed in seeds:
                    X, Y = draw(name, kind, noise, seed)
                    ways = ("as it is", "each step", "least_squares")
                    errors = [prequential(way, X, Y, seed) for way in ways]
                    nmse = errors[0] / Y[N_FIT:].var(axis=0).mean()
                    found.append([nmse, errors[1] / errors[0], errors[2] / errors[0]])
                mean, worst = np.mean(found, axis=0), np.max(found, axis=0)[2]
                print(f"{name + f', {100 * noise:.0f} %':26s}{mean[0]:14.3f}", end="")
                print(f"{mean[1]:11.3f}{mean[2]:15.3f}{worst:8.3f}", flush=True)


if __name__ == "__main__":
    run_main(main)

"""Loops trained by FORCE and by teacher forcing: which share of seeds runs alone afterwards?

Four tasks: a sum of four sines (periods 600, 300, 200 and 150 steps), the same with measurement
noise, a triangle wave of period 600, and the Lorenz attractor (x, y and z in steps of .01). A
periodic loop succeeds if it runs alone over 3000 steps with an error below a tenth of the standard
deviation (a third where targets are noisy). It comes back if it does so, up to a shift in time,
after all of its states were pushed by U(-.3, .3). The loop of Lorenz succeeds if over 8000 steps
alone each maximum of z follows from the one before as on the attractor (median error below a tenth
of their deviation), and the deviations of all outputs are within a fifth of the true ones.

    python examples/benchmarks/loop_training.py [--n-seeds 10]
"""

import argparse
import time
import warnings

import numpy as np

from reservoir import ESNRegressor, force_train
from reservoir.datasets import LYAPUNOV_TIME, lorenz
from reservoir.metrics import valid_time

PERIOD, DT = 600, 0.01
PERIODIC = {"n_units": 300, "leak_rate": 0.1, "feedback": True, "alpha": 1e-6}
CHAOTIC = {"n_units": 300, "leak_rate": 0.3, "feedback": True, "alpha": 1e-6}
TAUGHT = {
    "teacher": {},
    "teacher, noise 1e-4": {"noise": 1e-4},
    "teacher, noise 1e-3": {"noise": 1e-3},
    "teacher, noise 1e-2": {"noise": 1e-2},
}


def sines(n_steps):
    t = 2 * np.pi * np.arange(n_steps) / PERIOD
    return np.sin(t) + np.sin(2 * t) / 2 + np.sin(3 * t) / 6 + np.sin(4 * t) / 3


def triangle(n_steps):
    return 1 - 4 * np.abs(np.arange(n_steps) / PERIOD % 1 - 0.5)


def attractor(n_steps):
    orbit = lorenz(n_steps, dt=DT)
    return (orbit - orbit.mean(axis=0)) / (2 * orbit.std(axis=0))


def maxima(z):
    inner = z[1:-1]
    return inner[(inner > z[:-2]) & (inner > z[2:])]


def map_error(rows, truth):
    """Median error of maxima of z as the attractor's own map continues them, per deviation."""
    known, seen = maxima(truth[:, 2]), maxima(rows[:, 2])
    if len(seen) < 30:
        return np.inf
    order = np.argsort(known[:-1])
    expected = np.interp(seen[:-1], known[:-1][order], known[1:][order])
    return float(np.median(np.abs(expected - seen[1:])) / known.std())


def rms(rows, truth):
    return float(np.sqrt(np.mean((rows - truth) ** 2)) / truth.std())


def comes_back(model, truth, bound, seed):
    rng = np.random.default_rng(seed)
    kick = np.append(rng.uniform(-0.3, 0.3, model.n_units), 0.0)
    rows = model.forecast(
        4 * PERIOD, exog=no_input(model, 4 * PERIOD), initial_state=model.state_ + kick
    )[-PERIOD:]
    return min(rms(rows, np.roll(truth[:PERIOD], shift)) for shift in range(PERIOD)) < bound


def no_input(model, n_steps):
    return None if model.n_features_in_ == 0 else np.zeros((n_steps, 1))


def trained(way, params, y, force, seed):
    """Return a network that was trained in one of the ways."""
    esn = ESNRegressor(**params, random_state=seed)
    if way in ("force", "force, uncorrected"):
        return force_train(esn, y, n_test=0, feed_corrected=way == "force", **force)
    n_taught = len(y) // 2 if way == "teacher, then force" else len(y)
    X = np.zeros((len(y), 1))
    esn.set_params(**TAUGHT.get(way, {})).fit(X[:n_taught], y[:n_taught])
    if way == "teacher, then force":
        return force_train(esn, y[n_taught:], exog=X[n_taught:], n_test=0, **force)
    return esn


def periodic(way, params, signal, force, seed, level=0.0):
    """Return success, error and return after a push of one network."""
    clean, n_fit = signal(10 * PERIOD + 3000), 10 * PERIOD
    noise = level * clean.std() * np.random.default_rng(seed).normal(size=n_fit)
    model = trained(way, params, clean[:n_fit] + noise, force, seed)
    rows, truth = model.forecast(3000, exog=no_input(model, 3000)), clean[n_fit:]
    bound = 1 / 3 if level else 0.1
    error = rms(rows, truth)
    return error < bound, error, comes_back(model, truth, bound, seed)


def chaotic(way, params, orbit, force, seed):
    """Return success, valid time and error of the map of one network."""
    n_fit = 8000
    model = trained(way, params, orbit[:n_fit], force, seed)
    rows, truth = model.forecast(8000, exog=no_input(model, 8000)), orbit[n_fit:]
    unit = {"dt": DT, "lyapunov_time": LYAPUNOV_TIME["lorenz"], "scale": orbit.std(axis=0)}
    error, spread = map_error(rows, orbit), rows[2000:].std(axis=0) / orbit.std(axis=0)
    good = error < 0.1 and bool((np.abs(spread - 1) < 0.2).all())
    return good, valid_time(truth, rows, **unit), error


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--n-seeds", type=int, default=10)
    n_seeds = parser.parse_args().n_seeds
    warnings.simplefilter("ignore", RuntimeWarning)
    orbit = attractor(16000)
    slow, fast = {"alpha": 0.01}, {"alpha": 1e-4, "forgetting": 0.999}
    tasks = {
        "four sines": (periodic, PERIODIC, (sines, slow), {}),
        "four sines, noise .1": (periodic, PERIODIC, (sines, slow), {"level": 0.1}),
        "triangle": (periodic, PERIODIC, (triangle, slow), {}),
        "Lorenz": (chaotic, CHAOTIC, (orbit, fast), {}),
    }
    print("succeed: share of seeds; then medians. Periodic: error, share that comes back after a")
    print("push. Lorenz: valid time in Lyapunov times, error of the map of maxima of z.\n")
    print(f"{'task':22}{'radius':8}{'way':22}{'succeed':>8}{'median':>9}{'':>9}{'s each':>8}")
    for name, (play, params, (signal, force), more) in tasks.items():
        for radius in (0.9, 1.2, 1.5):
            for way in (*TAUGHT, "force", "force, uncorrected", "teacher, then force"):
                begin = time.perf_counter()
                wide = {**params, "spectral_radius": radius}
                runs = [play(way, wide, signal, force, seed, **more) for seed in range(n_seeds)]
                each = (time.perf_counter() - begin) / n_seeds
                good, first, second = (np.array(part, float) for part in zip(*runs, strict=True))
                last = second.mean() if play is periodic else np.median(second)
                print(
                    f"{name:22}{radius:<8}{way:22}{good.mean():8.0%}{np.median(first):9.3g}"
                    f"{last:9.3g}{each:8.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()

"""Forecasts of the next hour's map of a town (Bay 2017, section 7.2, tables 7.2 to 7.4).

Usage: ``python examples/benchmarks/crowds.py [n_seeds]`` (5 by default, towns and networks from the
seeds 0, 1, ...) learns from 60 days of `crowd_density` and forecasts each hour of 60 more, always
from what was until the hour before. Maps are described by 50 components of scikit-learn's
`IncrementalPCA`, fitted to the first 60 days. Printed are the signal-to-noise ratio of the
forecasts in dB, 10 log10 of the sum of squares of the maps over that of the errors (mean over
seeds, standard deviation), and the mean absolute error at three pixels, in people: the fullest on
the whole, and those with a half and a quarter of its mean. Five minutes.

Settings were chosen on the seeds 101 to 103. Whatever learns on does so once a day:

- ridge: regression on the last three hours and the clock; fitted anew each day where it says so.
- BPTT, INIT: networks of 128 units from orthogonal weights, 100 epochs; from a least-squares start,
  left as it is or trained for 100 epochs by Adam, or for 100 iterations of variable projection
  (VP), the default. "UPDATE": each day a step of `ls_online_step` on two weeks; `partial_fit` with
  ``online="least_squares"`` takes a step only if it has proved better.
- ESN: 300 units; leak of 1, as it comes in scalings and radius, or with input_scaling=.05 and
  spectral_radius=.5; the penalty by generalised cross-validation; `partial_fit` each day.
"""

from __future__ import annotations

import numpy as np
from _command_line import run_main
from sklearn.decomposition import IncrementalPCA
from sklearn.linear_model import Ridge, RidgeCV
from threadpoolctl import threadpool_limits

from reservoir import ESNRegressor, RNNRegressor
from reservoir.datasets import crowd_density
from reservoir.training.least_squares import ls_online_step

N, DAY, WEEK, RANK, WINDOW = 1440, 24, 168, 50, 336
ALPHAS = np.logspace(-4, 3, 15)
ECHO = {"n_units": 300, "leak_rate": 1.0, "alpha": ALPHAS, "alpha_selection": "gcv"}
CHOSEN = {"input_scaling": 0.05, "spectral_radius": 0.5}


def clock(n_hours):
    """Return a column for each hour of a working day, and one for each of a weekend."""
    hours = np.arange(n_hours)
    working = (hours // DAY % 7 < 5)[:, None]
    hour_of_day = np.eye(DAY)[hours % DAY]
    return np.hstack([hour_of_day * working, hour_of_day * ~working])


class Town:
    """Maps, their components, and what networks are given: all known an hour before its target."""

    def __init__(self, seed):
        self.seed, self.maps = seed, crowd_density(2 * N, random_state=seed)
        self.basis = IncrementalPCA(RANK, batch_size=240).fit(self.maps[:N])
        components = self.basis.transform(self.maps)
        self.scale = components[:N].std(axis=0).max()
        self.rows = components / self.scale
        self.X, self.y = self.rows[:-1], self.rows[1:]
        self.with_clock = np.hstack([self.X, clock(2 * N)[1:]])  # of the hour to come
        fullness = self.maps[:N].mean(axis=0)
        wanted = fullness.max() * np.array([1.0, 0.5, 0.25])
        self.pixels = np.abs(fullness[:, None] - wanted).argmin(axis=0)

    def scores(self, components=None, *, maps=None):
        """Return the signal-to-noise ratio of forecasts, and the errors at the three pixels."""
        truth = self.maps[N:]
        if maps is None:
            maps = self.basis.inverse_transform(components * self.scale)
        ratio = 10 * np.log10(np.sum(truth**2) / np.sum((truth - maps) ** 2))
        return [ratio, *np.abs(truth - maps)[:, self.pixels].mean(axis=0)]


def simple(town):
    """Yield the forecasts without a network."""
    yield "rank 50, no forecast", town.scores(town.rows[N:])
    yield "the hour before (REPL)", town.scores(maps=town.maps[N - 1 : -1])
    yield "the week before", town.scores(maps=town.maps[N - WEEK : -WEEK])
    hours = np.arange(3, 2 * N)
    lags = [town.rows[hours - lag] for lag in (1, 2, 3)]
    F, Y = np.hstack([*lags, clock(2 * N)[3:]]), town.rows[3:]
    model = RidgeCV(ALPHAS).fit(F[: N - 3], Y[: N - 3])
    yield "ridge", town.scores(model.predict(F[N - 3 :]))
    anew = []
    for now in range(N - 3, 2 * N - 3, DAY):
        daily = Ridge(model.alpha_).fit(F[:now], Y[:now])
        anew.append(daily.predict(F[now : now + DAY]))
    yield "ridge, daily", town.scores(np.vstack(anew))


def learn_on(model, X, y):
    """Return a fitted model's forecasts, where it learns from each day when that is over."""
    parts = []
    for now in range(N - 1, 2 * N - 1, DAY):
        parts.append(model.predict(X[now : now + DAY]))
        model.partial_fit(X[now : now + DAY], y[now : now + DAY])
    return np.vstack(parts)


def each_step(model, X, y):
    """Return the forecasts of a network that takes a step of least squares each day."""
    parts, state = [], model.state_
    for now in range(N - 1, 2 * N - 1, DAY):
        rows = model.predict(X[now : now + DAY], initial_state=state)
        parts.append(rows)
        back = slice(now + DAY - WINDOW, now + DAY)
        before = slice(back.start - 100, back.start)
        start = model.predict(X[before], initial_state="zeros", return_state=True)[1]
        step = ls_online_step(model.params_, X[back], y[back], state=start)
        model.params_, state = step.params, step.state[0]
    return np.vstack(parts)


def trained(town):
    """Yield the forecasts of networks whose weights are all trained."""
    fit, new, y = slice(N - 1), slice(N - 1, None), town.y
    for X, also in ((town.X, ""), (town.with_clock, ", clock")):
        options = {"random_state": town.seed, "online": "least_squares", "online_window": WINDOW}
        model = RNNRegressor(128, init="orthogonal", max_iter=100, random_state=town.seed)
        yield f"BPTT{also}", town.scores(model.fit(X[fit], y[fit]).predict(X[new]))
        runs = (("INIT", 0, "auto"), ("INIT + BPTT", 100, "adam"), ("INIT + VP", 100, "auto"))
        for name, epochs, solver in runs:
            options |= {"max_iter": epochs, "solver": solver}
            model = RNNRegressor(128, init="least_squares", **options)
            model.fit(X[fit], y[fit])
            yield name + also, town.scores(model.predict(X[new]))
            if epochs == 0:
                yield f"INIT, partial_fit{also}", town.scores(learn_on(model, X, y))
                model.fit(X[fit], y[fit]).set_params(online="bptt")
                yield f"INIT + UPDATE{also}", town.scores(each_step(model, X, y))


def fixed(town):
    """Yield the forecasts of echo state networks."""
    X, y = town.with_clock, town.y
    for name, options in (("ESN, leak of 1", {}), ("ESN", CHOSEN)):
        model = ESNRegressor(**ECHO, random_state=town.seed, **options)
        model.fit(X[: N - 1], y[: N - 1])
        yield name, town.scores(model.predict(X[N - 1 :]))
        yield f"{name}, daily", town.scores(learn_on(model, X, y))


def main(n_seeds=5):
    """Measure and print."""
    found = {}
    for seed in range(n_seeds):
        town = Town(seed)
        for part in (simple, trained, fixed):
            for name, scores in part(town):
                found.setdefault(name, []).append(scores)
    header = f"{'SNR, dB':>16s}{'fullest':>10s}{'half':>8s}{'quarter':>9s}"
    print(f"{f'seeds 0 to {n_seeds - 1}':26s}{header}")
    for name, rows in found.items():
        means = np.mean(rows, axis=0)
        spread = np.std(rows, axis=0, ddof=1)[0] if n_seeds > 1 else 0.0
        errors = f"{means[1]:10.2f}{means[2]:8.2f}{means[3]:9.2f}"
        print(f"{name:26s}{means[0]:8.2f} ± {spread:.2f} {errors}")
    ratios = {name: np.array(rows)[:, 0] for name, rows in found.items()}
    for first, second in (
        ("ESN, daily", "ridge"),
        ("ESN, daily", "ridge, daily"),
        ("ESN", "ridge"),
        ("ESN, daily", "ESN"),
    ):
        gain = ratios[first] - ratios[second]
        print(f"{first} - {second}: {gain.mean():.2f} dB, {gain.min():.2f} to {gain.max():.2f}")


if __name__ == "__main__":
    with threadpool_limits(1):
        run_main(main)

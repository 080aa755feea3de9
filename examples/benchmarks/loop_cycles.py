"""Cycles of closed loops: are period and multipliers those of the oscillator that was learned?

Van der Pol at dt .1. Networks of 200 units are taught the cycle, 1000 rows, alone or after twelve
transients of 300 rows from starts at radii .5 to 3.5; seeds 0 to 2, n_lags 1 and 2. A row of a
table has the worst relative error of the period and the least and greatest second multiplier of
the runs that found a cycle, and their number. Starts of a forecast: the greatest distance from the
oscillator's own path within 60 steps, over twelve starts, after its output was held until the
network settled, and after twenty rows of the path. Seconds are processor times on one BLAS thread.

    python examples/benchmarks/loop_cycles.py
"""

import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from _command_line import run_main
from scipy.integrate import solve_ivp

from reservoir import ESNRegressor
from reservoir.stability import LimitCycleError, find_loop_cycle, loop_exponents

DT = 0.1
NETWORK = {"n_units": 200, "input_scaling": 0.5, "alpha": 1e-10, "washout": 20}
RADII, ANGLES = np.linspace(0.5, 3.5, 12), 2.4 * np.arange(12)
STARTS = np.c_[RADII * np.cos(ANGLES), RADII * np.sin(ANGLES)]
EXACT = {"rtol": 1e-11, "atol": 1e-12, "method": "DOP853"}


def slope(_, s, mu):
    return [s[1], mu * (1 - s[0] ** 2) * s[1] - s[0]]


def path(mu, start, n):
    times = DT * np.arange(n + 1)
    return solve_ivp(slope, (0, times[-1]), start, t_eval=times, args=(mu,), **EXACT).y.T


def truth(mu):
    """Return the period in steps, and the second multiplier by Liouville's formula."""

    def passing(_, s, mu):
        return s[0]

    passing.direction = 1
    run = solve_ivp(slope, (0, 200), [2, 0], args=(mu,), events=passing, **EXACT)
    period, start = np.diff(run.t_events[0])[-1], run.y_events[0][-1]

    def with_growth(t, s, mu):
        return [*slope(t, s[:2], mu), mu * (1 - s[0] ** 2)]

    end = solve_ivp(with_growth, (0, period), [*start, 0], args=(mu,), **EXACT).y[2, -1]
    return period / DT, np.exp(end)


def fitted(sequences, n_lags, seed):
    model = ESNRegressor(**NETWORK, n_lags=n_lags, random_state=seed)
    return model.fit([s[:-1] for s in sequences], [s[1:] for s in sequences])


def show(mu, name, sequences, seconds):
    period, _ = truth(mu)
    errors, multipliers, n_runs = [], [], 0
    for seed in range(3):
        for n_lags in (1, 2):
            model, n_runs = fitted(sequences, n_lags, seed), n_runs + 1
            begin = time.process_time()
            try:
                found = find_loop_cycle(model, context=sequences[-1])
            except LimitCycleError:
                continue
            seconds.append(time.process_time() - begin)
            errors.append(abs(found.period / period - 1))
            multipliers.append(abs(found.multipliers[1]))
    print(
        f"{mu:<5}{name:18}{max(errors):10.0e}{min(multipliers):12.5f} to {max(multipliers):.5f}"
        f"{len(errors):6} of {n_runs}"
    )


def show_exponents(mu, sequences):
    period, true = truth(mu)
    found = [
        loop_exponents(fitted(sequences, 1, seed), 2, 5000, context=sequences[-1], random_state=0)
        for seed in range(3)
    ]
    along, second = np.exp(period * np.array(found)).T
    print(
        f"\nby exponents, mu {mu}: second off by {abs(second / true - 1).max():.1%}, "
        f"first {along.min():.3f} to {along.max():.3f}"
    )


def show_starts(mu, sequences):
    model = fitted(sequences, 1, 0)
    rng = np.random.default_rng(0)
    held, warm = [], []
    for start in rng.uniform(-2, 2, (12, 2)):
        own = path(mu, start, 100)
        for strays, context, begin, n in (
            (held, own[20:21], {"initial_state": "steady"}, 20),
            (warm, own[:21], {}, 20),
        ):
            rows = model.forecast(60, context=context, **begin)
            strays.append(np.linalg.norm(rows - own[n + 1 : n + 61], axis=1).max())
    print(
        f"\nstray within 60 steps: held {min(held):.2f} to {max(held):.2f}, "
        f"after 20 rows {min(warm):.5f} to {max(warm):.5f}"
    )


def main():
    seconds = []
    print(f"{'mu':5}{'taught':18}{'period':>10}{'second multiplier':>23}{'found':>11}")
    for mu in (0.3, 0.4, 1.0):
        cycle = path(mu, [2, 0], 1500)[500:]
        transients = [path(mu, start, 300) for start in STARTS]
        print(f"{mu:<5}{'the oscillator':18}{'':10}{truth(mu)[1]:12.5f}")
        show(mu, "with transients", [*transients, cycle], seconds)
        show(mu, "the cycle alone", [cycle], seconds)
        if mu == 0.3:
            taught = [*transients, cycle]
    show_exponents(0.3, taught)
    show_starts(0.3, taught)
    print(f"\nseconds of find_loop_cycle, 200 units: {np.median(seconds):.2f}")


if __name__ == "__main__":
    run_main(main)

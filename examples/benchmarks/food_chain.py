"""A collapse forecast from data before it: networks that receive a parameter as a known input.

The food chain of McCann and Yodzis (1994) as in Kong, Fan, Grebogi and Lai (2021, Phys. Rev.
Research 3, 013090), a row per time unit. Networks are trained on 3000 rows at each of K = .97, .98
and .99, and receive K as a known input. From rows at .99 that they have not seen, loops run for
5000 steps at another K. Collapsed: the predator falls below .4 (on the attractors it stays above
.55). Lost: a row is beyond 3, or the last 300 rows are almost at rest. The chain starts from the
same rows. Seeds are 0 to N - 1. What is set is compared first, without .99: trained at .97 and .98,
for networks that meet .99 as a new value.

    python examples/benchmarks/food_chain.py [--n-seeds 50]
"""

import argparse
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.integrate import solve_ivp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir import ESNRegressor, NVARRegressor, forecast
from reservoir.metrics import sliced_wasserstein
from reservoir.model_selection import PerStep, make_forecast_pairs

TRAINED = (0.97, 0.98, 0.99)
GRID = (0.95, 0.96, 0.97, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 1.0, 1.001, 1.005, 1.01)
N_ROWS, N_STEPS, N_CONTEXT = 3000, 5000, 100
STARTS = range(3500, 13500, 1000)  # rows of the series at .99 from which loops start
NETWORK = {"n_units": 300, "n_lags": 1, "spectral_radius": 0.6, "leak_rate": 0.8, "alpha": 1e-6}
NETWORK |= {"bias_scaling": 2.0}
CHANNEL = 0.01  # input scaling of K; that of the three species is .5


def slope(t, state, K):
    R, C, P = state.reshape(3, -1)
    eaten, caught = 2.009 * R / (R + 0.16129), 2.876 * C / (C + 0.5)
    plants = R * (1 - R / K) - 0.4 * C * eaten
    return np.concatenate(
        [plants, 0.4 * C * (eaten - 1) - 0.08 * P * caught, 0.08 * P * (caught - 1)]
    )


def food_chain(K, starts, n_rows):
    """Return the rows after each start, (n_starts, n_rows, 3), each at its own K."""
    options = {"method": "DOP853", "rtol": 1e-8, "atol": 1e-10, "args": (np.asarray(K),)}
    times = np.arange(1, n_rows + 1)
    found = solve_ivp(slope, (0, n_rows), np.ravel(np.transpose(starts)), t_eval=times, **options)
    return found.y.reshape(3, len(K), n_rows).transpose(1, 2, 0)


def network(seed, channel=CHANNEL, **changes):
    scales = [0.5, 0.5, 0.5, channel]
    esn = ESNRegressor(**NETWORK | {"input_scaling": scales, "random_state": seed} | changes)
    return make_pipeline(PerStep(StandardScaler()), esn)


def polynomials(n_lags, degree, alpha=1e-4):
    model = NVARRegressor(n_lags=n_lags, degree=degree, alpha=alpha)
    return make_pipeline(PerStep(StandardScaler()), model)


def loops(model, rows, before, grid, starts):
    """Return loops at each K, (n_values, n_starts, N_STEPS, 3), after contexts at K = before."""
    contexts, known = [], []
    for K in grid:
        for start in starts:
            context = np.column_stack([rows[start - N_CONTEXT : start], [before] * N_CONTEXT])
            context[-1, -1] = K  # exog is that of the target's row
            contexts.append(context)
            known.append(np.full((N_STEPS - 1, 1), K))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # some diverge
        made = forecast(model, N_STEPS, context=contexts, exog=known)
    return np.reshape(made, (len(grid), len(starts), N_STEPS, 3))


def collapse(rows):
    """Return the step of the collapse, N_STEPS if there is none, NaN if the loop is lost."""
    low = np.flatnonzero(rows[:, 2] < 0.4)
    if np.abs(rows[: low[0] if len(low) else None]).max(initial=0.0) > 3 or rows.min() < -3:
        return np.nan
    if len(low):
        return float(low[0])
    return float(N_STEPS) if np.ptp(rows[-300:, 2]) > 0.2 else np.nan


def steps_of(runs):
    """Return the steps of collapses, (n_values, n_starts)."""
    return np.array([[collapse(rows) for rows in at] for at in runs])


def shares(name, steps):
    """Print for each K the per cent of loops that collapse, and that are lost if any are."""
    fallen, lost = (100 * np.mean(of, axis=(0, 2)) for of in (steps < N_STEPS, np.isnan(steps)))
    cells = (f"{a:.0f}" + (f"+{b:.0f}" if b else "") for a, b in zip(fallen, lost, strict=True))
    print(f"{name:24}" + "".join(f"{cell:>8}" for cell in cells), flush=True)


def choose(series, n_seeds=8):
    """Compare settings by what networks trained at .97 and .98 do at .99."""
    X, y = make_forecast_pairs(
        [rows[:N_ROWS] for rows in series[:2]],
        exog=[np.full((N_ROWS, 1), K) for K in TRAINED[:2]],
    )
    truth = series[2][-N_STEPS:]
    floor = sliced_wasserstein(truth, series[2][:N_STEPS], random_state=0)
    print(
        f"trained at .97 and .98, run at .99; {n_seeds} networks; distance of the truth {floor:.2f}"
    )
    settings = {f"channel {c:g}": {"channel": c} for c in (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)}
    settings |= {"channel 1, bias 1": {"channel": 1.0, "bias_scaling": 1.0}}
    settings |= {"channel .01, bias 1": {"bias_scaling": 1.0}}
    settings |= {"radius .9, leak .3": {"spectral_radius": 0.9, "leak_rate": 0.3}}
    settings |= {"penalty 1e-8": {"alpha": 1e-8}, "penalty 1e-4": {"alpha": 1e-4}}
    for name, changes in settings.items():
        distances, n_gone = [], 0
        for seed in range(n_seeds):
            model = network(seed, **changes).fit(X, y)
            rows = loops(model, series[2], 0.99, [0.99], STARTS[:1])[0, 0]
            gone = collapse(rows) != N_STEPS
            n_gone += gone
            if not gone:
                distances.append(sliced_wasserstein(truth, rows, random_state=0))
        middle = f"{np.median(distances):.2f}" if distances else "-"
        print(f"{name:24}{n_gone} gone, distance {middle}", flush=True)


def critical(rows):
    """Print how often the chain itself collapses, later than 1000 rows after the change of K."""
    print("\nthe chain over 20,000 rows: collapses after more than 1000, of 10")
    grid = (0.9995, 0.9997, 0.9998, 0.9999)
    starts = [rows[start - 1] for _ in grid for start in STARTS]
    made = food_chain(np.repeat(grid, len(STARTS)), starts, 20_000)
    late = (made[:, 1000:, 2].min(axis=1) < 0.4) & (made[:, :1000, 2].min(axis=1) >= 0.4)
    for K, found in zip(grid, late.reshape(len(grid), -1), strict=True):
        print(f"K = {K}: {found.sum()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-seeds", type=int, default=50)
    n_seeds = parser.parse_args().n_seeds
    began = time.process_time()
    series = food_chain(TRAINED, [[0.7, 0.2, 0.8]] * 3, 15_000)[:, 1000:]
    choose(series)
    critical(series[2])
    X, y = make_forecast_pairs(
        [rows[:N_ROWS] for rows in series], exog=[np.full((N_ROWS, 1), K) for K in TRAINED]
    )
    models = {
        "networks": [network(seed) for seed in range(n_seeds)],
        "channel 1": [network(seed, 1.0) for seed in range(n_seeds)],
        "linear, 20 lags": [polynomials(20, 1)],
        "degree 3, 2 lags, 1e-6": [polynomials(2, 3, alpha=1e-6)],
        "degree 3, 2 lags, 1e-4": [polynomials(2, 3)],
        "degree 4, 1 lag": [polynomials(1, 4)],
    }
    print(f"\n{f'{n_seeds} networks, 10 loops':24}" + "".join(f"{K:>8}" for K in GRID))
    begins = [series[2][start - 1] for _ in GRID for start in STARTS]
    truth = food_chain(np.repeat(GRID, len(STARTS)), begins, N_STEPS)
    found = {"the chain": steps_of(truth.reshape(len(GRID), len(STARTS), N_STEPS, 3))[None]}
    shares("the chain", found["the chain"])
    for name, members in models.items():
        made = (loops(model.fit(X, y), series[2], 0.99, GRID, STARTS) for model in members)
        found[name] = np.array([steps_of(runs) for runs in made])
        shares(name, found[name])
    print("\nmedian steps to the collapse")
    for name in ("the chain", "networks"):
        middle = np.nanmedian(found[name], axis=(0, 2))
        print(f"{name:24}" + "".join(f"{m:8.0f}" if m < N_STEPS else f"{'-':>8}" for m in middle))
    most = (found["networks"] < N_STEPS).sum(axis=2) > len(STARTS) / 2
    print("\nnetworks by the least K at which most loops collapse")
    counts = np.bincount(most.argmax(axis=1)[most.any(axis=1)], minlength=len(GRID))
    for K, n_first in zip(GRID, counts, strict=True):
        if n_first:
            print(f"K = {K}: {n_first}")
    print(f"none: {(~most.any(axis=1)).sum()}")
    never = ~most[:, GRID.index(1.0) :].all(axis=1)
    print(f"not at each K from 1 on: {never.sum()}")
    print(f"\nseconds: {time.process_time() - began:.0f}")


if __name__ == "__main__":
    main()

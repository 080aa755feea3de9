"""How well are gaps filled, beside lines and seasonal means?

Usage: ``python examples/benchmarks/gaps.py [--seeds N]`` (by default 5) prints, for each series and
length of gap, the root mean squared error in seven gaps over the standard deviation of the known
values: the median over networks drawn with seeds from 0, and the worst.

- line: a straight line from the last known value to the next.
- season + line: the mean course of the season, and a line for what remains.
- one side: `ESNRegressor` forecasts into each gap from what was before it.
- by distance, by error: `fill_gaps` with the same network, and its two ways to weight both sides.
- penalty chosen, trained: `fill_gaps` by error with ``alpha=np.logspace(-6, 2, 9)``; and with
  `RNNRegressor`, as it comes.

The networks are as they come; the load of a building is generated, with temperature, workday and
hour of the day as `exog` in the second of its rows.
"""

from __future__ import annotations

import argparse
import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from reservoir import ESNRegressor, RNNRegressor, fill_gaps
from reservoir.datasets import load_co2, load_el_nino, load_sunspots, lorenz, mackey_glass

LENGTHS = (2, 12, 48)
COLUMNS = (
    *("line", "season + line", "one side", "by distance", "by error"),
    *("penalty chosen", "trained"),
)


class Series(NamedTuple):
    """Values, what is known beside them, and which part of the season each row is."""

    name: str
    values: np.ndarray
    exog: np.ndarray | None = None
    season: np.ndarray | None = None


def building(n_hours: int = 2400, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return hourly load, what is known of each hour, and which hour of the week it is."""
    rng = np.random.default_rng(seed)
    hour, weather, indoors = np.arange(n_hours), np.zeros(n_hours), np.zeros(n_hours)
    workday = hour // 24 % 7 < 5
    for t in range(1, n_hours):
        weather[t] = 0.98 * weather[t - 1] + rng.normal(0, 0.6)
    temperature = weather + 4 * np.sin(2 * np.pi * (hour - 9) / 24)
    for t in range(1, n_hours):
        indoors[t] = 0.9 * indoors[t - 1] + 0.1 * temperature[t]
    load = 100 + np.where(workday, 20, 12) * np.sin(2 * np.pi * (hour - 8) / 24)
    load += 0.25 * indoors**2 - 1.5 * indoors + rng.normal(0, 1, n_hours)
    angle = 2 * np.pi * hour / 24
    return load, np.c_[temperature, workday, np.sin(angle), np.cos(angle)], workday * 24 + hour % 24


def all_series() -> list[Series]:
    """Return the series in which gaps are cut."""
    load, known, hours = building()
    co2 = load_co2(as_frame=True).iloc[:, 0].interpolate().to_numpy()
    el_nino = load_el_nino(as_frame=True)["temperature"]
    return [
        Series("load of a building", load, None, hours),
        Series("the same, with exog", load, known, hours),
        Series("El Nino, monthly", el_nino.to_numpy(), None, el_nino.index.month.to_numpy()),
        Series("CO2, weekly", co2, None, np.arange(len(co2)) % 52),
        Series("sunspots, yearly", load_sunspots().ravel()),
        Series("Mackey-Glass", mackey_glass(2400, random_state=0)[:, 0]),
        Series("Lorenz, dt=.05", lorenz(2400, dt=0.05, random_state=0)),
    ]


def cut(values: np.ndarray, length: int) -> np.ndarray:
    """Return where seven gaps are, at random places of the middle four fifths."""
    n = len(values)
    starts = np.linspace(0.1 * n, 0.9 * n - length, 7).astype(int)
    starts += np.random.default_rng(1).integers(0, max(1, n // 40), 7)
    missing = np.zeros(n, bool)
    for start in starts:
        missing[start : start + length] = True
    return missing


def line(values: np.ndarray) -> np.ndarray:
    """Fill gaps by straight lines."""
    return pd.DataFrame(values).interpolate().to_numpy().reshape(values.shape)


def one_side(values: np.ndarray, missing: np.ndarray, **options: object) -> np.ndarray:
    """Fill each gap as if nothing came after it."""
    filled, exog = values.copy(), options.pop("exog")
    for start in np.flatnonzero(missing & ~np.r_[False, missing[:-1]]):
        stop = start + int(np.argmin(missing[start:]))
        known = None if exog is None else exog[:stop]
        past = np.where(missing.reshape(-1, *[1] * (values.ndim - 1)), np.nan, values)[:stop]
        filled[start:stop] = fill_gaps(past, exog=known, **options)[start:]
    return filled


def row(series: Series, length: int, n_seeds: int) -> str:
    """Return the line of one series and one length of gap."""
    values, exog = series.values, series.exog
    missing = cut(values, length)
    y = values.copy()
    y[missing] = np.nan
    spread = values[~missing].std(axis=0)
    found: dict[str, list[np.ndarray]] = {name: [] for name in COLUMNS}
    found["line"] = [line(y)]
    if series.season is not None:
        course = pd.Series(y).groupby(series.season).transform("mean").to_numpy()
        found["season + line"] = [line(y - course) + course]
    for seed in range(n_seeds):
        network = {"n_units": 100, "leak_rate": 1.0, "random_state": seed}
        esn = ESNRegressor(alpha=1e-6, **network)
        chosen = ESNRegressor(alpha=np.logspace(-6, 2, 9), alpha_selection="gcv", **network)
        found["one side"].append(one_side(y, missing, model=esn, exog=exog))
        found["by distance"].append(fill_gaps(y, esn, exog=exog, weights="distance"))
        found["by error"].append(fill_gaps(y, esn, exog=exog))
        found["penalty chosen"].append(fill_gaps(y, chosen, exog=exog))
        found["trained"].append(fill_gaps(y, RNNRegressor(random_state=seed), exog=exog))
    cells = []
    for name in COLUMNS:
        errors = [np.sqrt(np.mean(((f - values)[missing] / spread) ** 2)) for f in found[name]]
        best = f"{np.median(errors):.3g}" if errors else ""
        cells.append(f"{best} / {max(errors):.3g}" if len(errors) > 1 else best)
    return f"{series.name:22s}{length:5d}" + "".join(f"{cell:>18s}" for cell in cells)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    n_seeds = parser.parse_args().seeds
    print(f"seeds 0 to {n_seeds - 1}, median / worst")
    print(f"{'':22s}{'rows':>5s}" + "".join(f"{name:>18s}" for name in COLUMNS))
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # loops that leave the data are in the errors
        for series in all_series():
            for length in LENGTHS:
                if length * 20 <= len(series.values):
                    print(row(series, length, n_seeds), flush=True)


if __name__ == "__main__":
    main()

"""The series of `series.py`: fifteen real ones, short yearly ones, and generated ones."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.signal import lfilter

from reservoir.datasets import load_co2, load_el_nino, load_sunspots

Array = np.ndarray
GENERATED = ("seasonal", "trending", "integrated", "counts")
STATIONARY = (("season", 60), ("season", 200), ("level", 60), ("counts", 60))
CYCLES = ("cycle", "integrated cycle", "smooth", "damped trend", "cycle and season")
MACRO = ("realgdp", "realcons", "realinv", "realdpi", "cpi", "m1", "tbilrate", "unemp")


@dataclass(frozen=True)
class OneSeries:
    """A series, with dates where it has some, and the rows of its season, 1 for none."""

    name: str
    values: pd.Series
    season: int


def shipped() -> list[OneSeries]:
    """Return the three series of the library."""
    co2 = load_co2(as_frame=True)["co2"].resample("MS").mean()
    return [
        OneSeries("CO2, monthly means", co2, 12),
        OneSeries("El Nino", load_el_nino(as_frame=True)["temperature"].iloc[-600:], 12),
        OneSeries("sunspots", load_sunspots(as_frame=True)["sunspots"], 1),
    ]


def fifteen() -> list[OneSeries]:
    """Return the series of the protocol: three of the library, twelve of statsmodels."""
    found = shipped()
    nile = _data_of("nile")["volume"]
    found.append(OneSeries("Nile", _dated(nile, "1871", "YS"), 1))
    macro = _data_of("macrodata")
    found += [OneSeries(name, _dated(macro[name], "1959-01", "QS"), 4) for name in MACRO]
    money = _data_of("interest_inflation")
    found += [OneSeries(name, _dated(money[name], "1972-04", "QS"), 4) for name in ("Dp", "R")]
    electric = _data_of("elec_equip").iloc[:, 0]
    return [*found, OneSeries("electrical equipment", _dated(electric, "1995-01", "MS"), 12)]


def yearly() -> list[OneSeries]:
    """Return short series of years: fertility of every sixth country, investments of firms."""
    table = _data_of("fertility")
    years = [name for name in table.columns if name.isdigit()][:52]
    found = []
    for i in range(0, len(table), 6):
        row = table.iloc[i]
        values = row[years].to_numpy(float)
        if np.isfinite(values).all():
            found.append(OneSeries(f"fertility, {row['Country Name']}", _years(values, 1960), 1))
    for firm, rows in _data_of("grunfeld").groupby("firm", sort=False):
        for name in ("invest", "value", "capital"):
            values = rows[name].to_numpy(float)
            found.append(OneSeries(f"{name}, {firm}", _years(values, 1935), 1))
    return found


def generated(kind: str, number: int, n_rows: int | None = None) -> OneSeries:
    """Return a drawn series, without dates, of 120 to 300 rows if their number is not given.

    "seasonal": a season and an autoregression of order 1 about a level; "trending": the same with a
    straight trend; "integrated": a random walk with drift; "counts": Poisson draws about a season.
    """
    rng = np.random.default_rng([GENERATED.index(kind), number])
    n_drawn, season = int(rng.integers(120, 301)), int(rng.choice([4, 7, 12]))
    n_rows = n_rows or n_drawn
    t = np.arange(n_rows)
    profile = rng.normal(size=season)
    profile = ((profile - profile.mean()) / profile.std())[t % season]
    if kind == "counts":
        values = rng.poisson(np.exp(rng.uniform(0.5, 3) + 0.4 * profile)).astype(float)
        return OneSeries(f"counts {number}", pd.Series(values), season)
    steps = rng.normal(size=n_rows)
    if kind == "integrated":
        values = np.cumsum(steps + rng.uniform(-0.2, 0.2))
        return OneSeries(f"integrated {number}", pd.Series(values), 1)
    rest = np.zeros(n_rows)
    memory = rng.uniform(0, 0.9)
    for i in range(1, n_rows):
        rest[i] = memory * rest[i - 1] + steps[i]
    values = 30 + rng.uniform(0.5, 3) * profile + rest
    if kind == "trending":
        values = values + rng.uniform(-0.1, 0.1) * t
    return OneSeries(f"{kind} {number}", pd.Series(values), season)


def stationary(kind: str, number: int, n_rows: int) -> OneSeries:
    """Return a drawn series whose law does not change: "level" or "season" and noise, or counts."""
    rng = np.random.default_rng([n_rows, number])
    season, rows = (12 if kind == "season" else 1), np.arange(n_rows)
    level = 50 + 5 * (season > 1) * np.sin(2 * np.pi * rows / season)
    values = rng.poisson(6.0, n_rows) if kind == "counts" else level + rng.normal(size=n_rows)
    return OneSeries(f"{kind} {number}", pd.Series(values.astype(float)), season)


def windows(n_rows: int, number: int) -> list[OneSeries]:
    """Return windows of the three series of the library, two of them also as quarters.

    Windows are numbered from 0 to 23, at equal distances.
    """
    found = shipped()
    quarters = (
        OneSeries(f"{s.name}, quarters", s.values.resample("QS").mean(), 4) for s in found[:2]
    )
    return [
        OneSeries(s.name, s.values.iloc[first : first + n_rows], s.season)
        for s in (*found, *quarters)
        for first in [(len(s.values) - n_rows) * number // 23]
    ]


def cyclic(kind: str, number: int) -> OneSeries:
    """Return a drawn series, without dates, of 60 to 120 rows ("smooth": 30 to 70).

    "cycle": an autoregression of order 2 whose roots are complex, with cycles of 5 to 20 rows and
    of modulus .8 to .98; "integrated cycle": its sums, with drift; "smooth": an autoregression of
    order 1, summed twice; "damped trend": a random walk whose growth is an autoregression of order
    1 with a coefficient of .7 to .97, and noise; "cycle and season": with a season of 4 rows.
    """
    rng = np.random.default_rng([len(GENERATED) + CYCLES.index(kind), number])
    n_rows = int(rng.integers(30, 71) if kind == "smooth" else rng.integers(60, 121))
    modulus, length = rng.uniform(0.8, 0.98), rng.uniform(5, 20)
    memory, noise, drift = rng.uniform(0.7, 0.97), rng.choice([0, 0.3, 1.0]), rng.uniform(-1, 1)
    coef = {"smooth": [memory - 0.2], "damped trend": [memory]}.get(
        kind, [2 * modulus * np.cos(2 * np.pi / length), -(modulus**2)]
    )
    rows = lfilter([1.0], [1.0, *np.negative(coef)], rng.normal(size=60 + n_rows))[60:]
    values = 50 + rows
    if kind == "integrated cycle":
        values = 100 + np.cumsum(rows + drift)
    elif kind == "smooth":
        values = 100 + rows.cumsum().cumsum()
    elif kind == "damped trend":
        values = 20 + 0.3 * rows.cumsum() + noise * rng.normal(size=n_rows)
    season = 4 if kind == "cycle and season" else 1
    if season > 1:
        values = values + rows.std() * rng.normal(size=season)[np.arange(n_rows) % season]
    return OneSeries(f"{kind} {number}", pd.Series(values), season)


def _data_of(name: str) -> Any:
    """Return a data set of statsmodels."""
    return importlib.import_module(f"statsmodels.datasets.{name}").load_pandas().data


def _dated(values: Any, start: str, freq: str) -> pd.Series:
    dates = pd.date_range(start, periods=len(values), freq=freq)
    return pd.Series(values.to_numpy(float), dates)


def _years(values: Array, first: int) -> pd.Series:
    return pd.Series(values, pd.period_range(str(first), periods=len(values), freq="Y"))

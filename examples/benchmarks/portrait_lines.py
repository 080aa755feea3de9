"""Lines of a phase portrait: those that a user writes now, and before networks were run for it.

Usage: ``python examples/benchmarks/portrait_lines.py`` draws four portraits in both ways, and
prints the number of lines of each, without imports and the model, and the cycles in both legends.
The lines before need arrays, so that they run a network from several starts, and look for the
cycle: of a closed loop by crossings of a free run, without the multiplier, which takes the
derivative of the return map. A few seconds.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
from _command_line import run_main

mpl.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir import ESNRegressor, forecast, plotting
from reservoir.datasets import load_el_nino
from reservoir.dynamics import run
from reservoir.stability import find_limit_cycle, sample_attractors


def driven_before(model, inputs):
    starts = np.random.default_rng(0).uniform(-1, 1, (12, 100))
    drive = np.tile(inputs, (30, 1))
    paths = [np.vstack([x, run(model.reservoir_, drive, initial_state=x)]) for x in starts]
    cycle = find_limit_cycle(model.reservoir_, inputs)
    plotting.phase_portrait(paths, cycle=cycle, units="pca", smooth=True)


def several_before(model, inputs):
    starts = np.random.default_rng(0).uniform(-1, 1, (12, 100))
    drive = np.tile(inputs, (30, 1))
    paths = [np.vstack([x, run(model.reservoir_, drive, initial_state=x)]) for x in starts]
    found = sample_attractors(model.reservoir_, inputs, random_state=0)
    plotting.phase_portrait(paths, cycle=found, units="pca", smooth=True)


def loop_before(model, orbit):
    starts = np.random.default_rng(0).uniform(orbit.min(0), orbit.max(0), (12, 2))
    paths = []
    for start in starts:
        held = np.tile(start, (300, 1))
        paths.append(np.vstack([start, forecast(model, 300, context=held)]))
    free = forecast(model, 2000, context=orbit)[1000:]
    x = free[:, 0] - free[:, 0].mean()
    k = np.flatnonzero((x[:-1] < 0) & (x[1:] >= 0))
    times = k + x[k] / (x[k] - x[k + 1])
    period = np.diff(times).mean()
    cycle = CubicSpline(np.arange(len(free)), free)(times[0] + np.arange(period))
    labels = [f"cycle of period {period:.4g}"]
    plotting.phase_portrait(paths, cycle=cycle, smooth=True, labels=labels)


def driven_now(model, inputs):
    plotting.phase_portrait(model.reservoir_, inputs=inputs)


def loop_now(model, orbit):
    plotting.phase_portrait(model)


def of_year(random_state: int, **parameters: Any) -> dict[str, Any]:
    """Return a network of El Nino's temperatures, and the mean year."""
    series = load_el_nino()
    values = ((series - series.mean()) / series.std())[:, None]
    model = ESNRegressor(100, leak_rate=1.0, input_scaling=0.3, random_state=random_state)
    model.set_params(**parameters).fit(values[:-1], values[1:])
    return {"model": model, "inputs": values[:732].reshape(-1, 12).mean(axis=0)[:, None]}


def of_oscillator(scale: float) -> dict[str, Any]:
    """Return a network of Van der Pol's oscillator, times a scale, and its cycle."""

    def slope(_: float, s: Any) -> list[float]:
        return [s[1], 0.4 * (1 - s[0] ** 2) * s[1] - s[0]]

    times = 0.1 * np.arange(1001)
    angles, radii = 2.4 * np.arange(13), np.linspace(0.5, 3.5, 13)
    starts = [r * np.array([np.cos(a), np.sin(a)]) for a, r in zip(angles, radii, strict=True)]
    runs = [solve_ivp(slope, (0, 100), s, t_eval=times, rtol=1e-10).y.T * scale for s in starts]
    model: Any = ESNRegressor(200, input_scaling=0.5, alpha=1e-10, washout=20, random_state=0)
    if scale != 1:  # scalers of scikit-learn take one table: the longest transient, then the cycle
        model = make_pipeline(StandardScaler(), model)
        return {"model": model.fit(runs[-1][:-1], runs[-1][1:]), "orbit": runs[-1]}
    model.fit([rows[:-1] for rows in runs], [rows[1:] for rows in runs])
    return {"model": model, "orbit": runs[-1]}


CASES = {
    "a driven network": (
        of_year(0, topology="orthogonal", spectral_radius=0.99, bias="stable"),
        driven_before,
        driven_now,
    ),
    "two attractors": (of_year(2, spectral_radius=1.2), several_before, driven_now),
    "a closed loop": (of_oscillator(1.0), loop_before, loop_now),
    "a pipeline with a scaler": (of_oscillator(50.0), loop_before, loop_now),
}


def cycles(draw: Callable[..., None], variables: dict[str, Any]) -> str:
    """Draw a portrait, and return the names of its cycles."""
    draw(**variables)
    names = plt.gcf().axes[0].get_legend_handles_labels()[1]
    plt.close("all")
    return "; ".join(name for name in names if "cycle" in name)


def main() -> None:
    """Draw each portrait in both ways."""
    print(f"{'':26s}{'before':>8s}{'now':>6s}")
    for name, (variables, before, now) in CASES.items():
        counts = [len(inspect.getsource(draw).splitlines()) - 1 for draw in (before, now)]
        print(f"{name:26s}{counts[0]:8d}{counts[1]:6d}")
        for words, draw in (("before", before), ("now", now)):
            print(f"    {words}: {cycles(draw, variables)}", flush=True)


if __name__ == "__main__":
    run_main(main)

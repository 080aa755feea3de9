"""Trajectories of the systems of dysts (Gilpin 2021, 2023), integrated once and kept on disk.

Usage: ``python examples/benchmarks/_dysts_systems.py [--points-per-period 30] [--rows 8000]
[--data DIR] [--jobs N]`` fills DIR and says what was left out.

Needs ``pip install dysts --no-deps``: of what dysts depends on, its equations need nothing but
NumPy, SciPy and, for speed, numba. The packages that it imports beside are replaced by empty
ones where they are absent.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
import time
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.integrate import ode

N_ROWS, POINTS_PER_PERIOD = 8000, 30
DATA = Path(tempfile.gettempdir()) / "dysts_trajectories"
BUDGET = 30.0  # seconds of processor time for one attempt at a system
# Hairer's explicit method first; where it finds the system stiff or takes too long, LSODA
ATTEMPTS = (("dop853", 1e-12), ("lsoda", 1e-12), ("lsoda", 1e-9))
LEFT_OUT = {"VossDelay": "minutes in dysts's own integrator, and then it comes to rest"}


@dataclass(frozen=True)
class System:
    """A trajectory and what dysts knows of it.

    Attributes
    ----------
    rows : array of shape (n_rows, n_coordinates)
    exponent : float, per time unit of the system
        The largest Lyapunov exponent, as dysts estimates it.
    dt : float, time units of the system
        Time between two rows.
    method : str
        How it was integrated; where `rows` is empty, why it was not.
    """

    name: str
    rows: np.ndarray
    exponent: float
    dt: float
    method: str

    @property
    def lyapunov_times_per_step(self) -> float:
        """Return the time between two rows, in Lyapunov times."""
        return self.exponent * self.dt


def load_systems(
    *,
    points_per_period: int = POINTS_PER_PERIOD,
    n_rows: int = N_ROWS,
    folder: Path = DATA,
    every: int = 1,
    n_jobs: int = 1,
) -> Iterator[System]:
    """Yield the systems; those not in `folder` are integrated now.

    Of a system that could not be integrated, or comes to rest, `rows` is empty.

    Parameters
    ----------
    points_per_period : int, default=30
        Rows per period, the dominant one of the spectrum as dysts gives it.
    n_rows : int, default=8000
    folder : Path
        Where trajectories are kept, one file for each system.
    every : int, default=1
        Take every k-th system of the alphabet.
    n_jobs : int, default=1
        Processes that integrate side by side.
    """
    folder.mkdir(parents=True, exist_ok=True)
    jobs = (delayed(_load)(name, points_per_period, n_rows, folder) for name in names()[::every])
    yield from Parallel(n_jobs, return_as="generator")(jobs)


def _load(name: str, points_per_period: int, n_rows: int, folder: Path) -> System:
    """Read a system from its file, or integrate it and write the file."""
    path = folder / f"{name}_{points_per_period}_{n_rows}.npz"
    if path.exists():
        with np.load(path) as kept:
            rows = kept["rows"]
            exponent, dt = float(kept["exponent"]), float(kept["dt"])
            return System(name, rows, exponent, dt, str(kept["method"]))
    system = integrate(name, points_per_period, n_rows)
    part = path.with_suffix(f".{os.getpid()}.npz")  # another process may read or write the same
    np.savez(part, **{key: value for key, value in vars(system).items() if key != "name"})
    part.replace(path)
    return system


def integrate(name: str, points_per_period: int, n_rows: int, *, budget: float = BUDGET) -> System:
    """Integrate a system from the start that dysts gives, which lies on its attractor."""
    if name in LEFT_OUT:
        return System(name, np.empty((0, 0)), np.nan, np.nan, f"left out: {LEFT_OUT[name]}")
    model = getattr(equations(), name)()
    exponent, dt = float(model.maximum_lyapunov_estimated), float(model.period / points_per_period)
    if hasattr(model, "delayed_rhs"):
        rows, method = _delayed(model, points_per_period, n_rows), "dysts's own Euler steps"
    else:
        rows, method = _ordinary(model, dt * np.arange(n_rows), budget)
    if rows is None:
        return System(name, np.empty((0, 0)), exponent, dt, f"not integrated: {method}")
    post = getattr(model, "_postprocessing", None)
    if post is not None and not hasattr(model, "delayed_rhs"):  # phases, brought into a circle
        rows = np.stack(post(*rows.T), axis=1)
    last = rows[-max(n_rows // 10, 2) :]
    if np.all(np.ptp(last, axis=0) <= 1e-3 * np.ptp(rows, axis=0)):
        return System(name, np.empty((0, 0)), exponent, dt, "left out: it comes to rest")
    return System(name, rows, exponent, dt, method)


def _ordinary(model: Any, times: np.ndarray, budget: float) -> tuple[np.ndarray | None, str]:
    """Rows at `times`, by the first of `ATTEMPTS` that gets through; and what happened."""
    start = np.asarray(model.ic, dtype=float)
    reasons = []
    for method, tolerance in ATTEMPTS:
        solver = ode(lambda t, x: model.rhs(x, t))
        solver.set_integrator(method, rtol=tolerance, atol=tolerance, nsteps=20_000)
        solver.set_initial_value(start, times[0])
        rows = np.empty((len(times), len(start)))
        rows[0] = start
        deadline = time.process_time() + budget
        for k, t in enumerate(times[1:], 1):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the solver says in words that it fails
                rows[k] = solver.integrate(t)
            sound = solver.successful() and np.isfinite(rows[k]).all()
            if not sound or time.process_time() > deadline:
                reason = "out of time" if sound else f"fails at t = {t:.3g}"
                reasons.append(f"{method} at {tolerance:g} {reason}")
                break
        else:
            return rows, f"{method} at {tolerance:g}"
    return None, "; ".join(reasons)


def _delayed(model: Any, points_per_period: int, n_rows: int) -> np.ndarray | None:
    """A delay equation: the series now and at nine delays, as dysts integrates and stacks it."""
    try:
        rows = model.make_trajectory(n_rows, resample=True, pts_per_period=points_per_period)
    except ValueError:  # one system has a start of the wrong shape
        return None
    return rows if np.isfinite(rows).all() else None


def names() -> list[str]:
    """Return the names of all flows, in alphabetical order."""
    flows = equations()
    kinds = (flows.DynSys, flows.DynSysDelay)
    return sorted(
        name
        for name, value in vars(flows).items()
        if isinstance(value, type) and issubclass(value, kinds) and value not in kinds
    )


def equations() -> Any:
    """Import ``dysts.flows`` without what dysts needs for other purposes."""
    if "gluonts" not in sys.modules and importlib.util.find_spec("gluonts") is None:
        for package in ("gluonts", "gluonts.dataset", "gluonts.dataset.arrow"):
            sys.modules[package] = _Empty(package)
            sys.modules[package].__path__ = []  # so that it may hold other packages
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import dysts.flows
    return dysts.flows


class _Empty(types.ModuleType):
    """A package from which every name can be imported."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which trajectories are wanted."""
    parser.add_argument("--points-per-period", type=int, default=POINTS_PER_PERIOD, metavar="N")
    parser.add_argument("--data", type=Path, default=DATA, metavar="DIR", help="kept trajectories")
    parser.add_argument("--systems", type=int, default=1, metavar="K", help="every K-th system")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes")


def main() -> None:
    """Integrate all systems, and say how."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=N_ROWS, metavar="N")
    add_options(parser)
    options = parser.parse_args()
    systems = load_systems(
        points_per_period=options.points_per_period,
        n_rows=options.rows,
        folder=options.data,
        every=options.systems,
        n_jobs=options.jobs,
    )
    found = []
    for system in systems:
        found.append(len(system.rows) > 0)
        print(f"{system.name:28s} {system.method}", flush=True)
    print(f"{sum(found)} of {len(found)} systems, in {options.data}")


if __name__ == "__main__":
    main()

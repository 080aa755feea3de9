"""Whether ESNForecaster takes a series for dynamics, rightly or not, and intervals of dynamics.

Usage: ``python examples/benchmarks/dynamics_or_series.py [--numbers 100 125] [--every 2]
[--begin 1] [--end 4600] [--maps 8 14] [--data DIR] [--each]``

Random series of twenty laws, real ones cut at several places, rows of systems of dysts and of maps.
Each is forecast as it comes. Where that is by networks, it is forecast by models of series as well,
and rows of systems and maps always in both ways. "To series" is the error of networks relative to
that of models of series, the geometric mean over the first 8, 32 and 128 rows. A series is "missed"
if it is not taken for dynamics but this is below 0.8, and "wrong" if it is, but this is above 1.25.

Printed are counts by kind, then the shares inside intervals of "dynamics". Settings were chosen
with the numbers 0 to 34, every fourth system from 0 on before row 5620 and every fourth from 2 on
before row 3600, and maps 0 to 7.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from _dynamics_or_series_sets import AHEAD, Case, maps, random_series, real_series, systems
from _dysts_systems import DATA
from _timing import machine
from threadpoolctl import threadpool_limits

from reservoir import ESNForecaster

Array = np.ndarray
AHEADS = (8, 32, AHEAD)
COVERAGES = (0.8, 0.95)
STEPS = ((0, 8), (8, 32), (32, AHEAD))
MISSED, WRONG = 0.8, 1.25


class Outcome(NamedTuple):
    """What became of a case.

    Attributes
    ----------
    is_dynamics : bool
    to_series : float
        Error of networks relative to that of models of series; NaN if only the latter were tried.
    inside : array of shape (n_coverages, n_steps), or None
        Shares of the values inside intervals of "dynamics"; None if it was not tried.
    """

    is_dynamics: bool
    to_series: float
    inside: Array | None


class Forecast(NamedTuple):
    """Mean errors over the first rows, and the shares inside intervals by step."""

    errors: Array
    inside: Array


def outcome_of(case: Case, *, both: bool) -> Outcome:
    """Forecast a case as it comes, and in the other way."""
    model = fitted(case, "auto")
    if model.kind_ == "series" and not both:
        return Outcome(False, np.nan, None)
    other = "series" if model.kind_ == "dynamics" else "dynamics"
    found = {model.kind_: judged(model, case), other: judged(fitted(case, other), case)}
    errors = {way: np.maximum(one.errors, 1e-12) for way, one in found.items()}
    to_series = np.exp(np.log(errors["dynamics"] / errors["series"]).mean())
    return Outcome(model.kind_ == "dynamics", float(to_series), found["dynamics"].inside)


def fitted(case: Case, search: str) -> ESNForecaster:
    """Return a forecaster fitted to the rows before."""
    season = case.season if case.season > 1 else None
    return ESNForecaster(search=search, season=season, random_state=0).fit(case.past)


def judged(model: ESNForecaster, case: Case) -> Forecast:
    """Return the errors of a forecast and the shares inside its intervals."""
    n_steps = len(case.future)
    table = model.forecast(n_steps, coverage=list(COVERAGES)).reshape(*case.future.shape, -1)
    errors = np.abs(table[..., 0] - case.future) / case.past.std(axis=0)
    low, high = table[..., 1::2], table[..., 2::2]
    inside = (low <= case.future[..., None]) & (case.future[..., None] <= high)
    means = np.array([errors[:ahead].mean() for ahead in AHEADS])
    return Forecast(means, inside.mean(axis=1).T)


def line_of(name: str, found: list[Outcome]) -> str:
    """Return a line of the first table."""
    taken = [one for one in found if one.is_dynamics]
    ratios = np.array([one.to_series for one in taken])
    wrong = int((ratios > WRONG).sum())
    missed = sum(not one.is_dynamics and one.to_series < MISSED for one in found)
    mean = f"{np.exp(np.log(ratios).mean()):10.2f}" if len(ratios) else f"{'':10s}"
    return f"{name:21s}{len(found):7d}{len(taken):10d}{mean}{wrong:7d}{missed:8d}"


def lines_of_coverage(outcomes: dict[str, list[Outcome]]) -> Iterable[str]:
    """Yield the lines of the second table."""
    heads = [f"{first + 1} to {last}" for first, last in STEPS] + ["all"]
    yield f"{'inside, %':21s}{'cases':>7s}" + "".join(f"{head:>16s}" for head in heads)
    every = []
    for name in sorted(outcomes):
        shares = [one.inside for one in outcomes[name] if one.inside is not None]
        if shares and name.startswith(("all", "first", "map")):
            yield line_of_coverage(name, np.array(shares))
            every += shares
    if every:
        yield line_of_coverage("every system and map", np.array(every))


def line_of_coverage(name: str, shares: Array) -> str:
    """Return a line of the second table; its standard error is that of the last cell."""
    cells = [shares[:, :, first:last].mean(axis=2) for first, last in (*STEPS, (0, AHEAD))]
    text = "".join("{:9.1f} {:6.1f}".format(*100 * cell.mean(axis=0)) for cell in cells)
    errors = 100 * cells[-1].std(axis=0) / np.sqrt(len(shares))
    return f"{name:21s}{len(shares):7d}{text}  +-{errors[0]:4.1f} {errors[1]:4.1f}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--numbers", type=int, nargs=2, default=(100, 125), help="of random series")
    parser.add_argument("--maps", type=int, nargs=2, default=(8, 14), help="numbers of maps")
    parser.add_argument("--every", type=int, default=2, help="every k-th system")
    parser.add_argument("--begin", type=int, default=1, help="from which system on")
    parser.add_argument("--end", type=int, default=4600, help="last row of systems that is known")
    parser.add_argument("--data", type=Path, default=DATA, metavar="DIR", help="kept trajectories")
    parser.add_argument("--each", action="store_true", help="print each case with networks")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(machine(), end="\n\n")
    groups = {
        "random series": random_series(range(*options.numbers)),
        "real series": real_series(),
        "systems": systems(
            every=options.every, begin=options.begin, end=options.end, folder=options.data
        ),
        "maps": maps(range(*options.maps)),
    }
    outcomes: dict[str, list[Outcome]] = defaultdict(list)
    sums: dict[str, list[Outcome]] = {name: [] for name in groups}
    with threadpool_limits(1):
        for name, cases in groups.items():
            for case in cases:
                one = outcome_of(case, both=name in ("systems", "maps"))
                outcomes[case.kind].append(one)
                sums[name].append(one)
                if options.each and np.isfinite(one.to_series):
                    print(f"{case.kind:20s} {case.name:30s} {one.is_dynamics} {one.to_series:.3f}")
    print(f"{'':21s}{'cases':>7s}{'dynamics':>10s}{'to series':>10s}{'wrong':>7s}{'missed':>8s}")
    for name, found in (outcomes | sums).items():
        print(line_of(name, found))
    print()
    for line in lines_of_coverage(outcomes):
        print(line)


if __name__ == "__main__":
    main()

"""What is learned of series that follow a rule of their own: networks in one closed loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.estimators.series._later_rows import fill_later
from reservoir.estimators.series._series_tables import Scale, trajectories
from reservoir.loops.bank_search import Choice, Search
from reservoir.loops.ensemble_feedback import EnsembleRun, run_ensemble
from reservoir.loops.loop_design import Trajectories
from reservoir.loops.network_plan import NetworkPlan
from reservoir.loops.network_trial import Member, states_at

Report = Callable[[Iterable[Any], int, str], Iterable[Any]]
_LEARNED = 0.7  # part of the rows that networks are fitted to where errors are looked at
_N_ORIGINS = 40


@saved
@dataclass(frozen=True, eq=False)
class DynamicalFit:
    """Networks, the scales of rows, and the end of the data.

    Attributes
    ----------
    members : list of Member
    scale : Scale
    scale_of_exog : Scale or None
    limits : array of shape (2, n_outputs)
        What the loop is held within, without units.
    washout : int
        Rows in which networks forget where they started.
    levels, known : arrays of shape (n_rows, n_outputs) and (n_rows, n_exog)
        The last trajectory, without units.
    earlier : list of pairs of arrays
        Levels and exogenous rows of the trajectories before it.
    """

    members: list[Member]
    scale: Scale
    scale_of_exog: Scale | None
    limits: Array
    washout: int
    levels: Array
    known: Array
    earlier: list[tuple[Array, Array]]

    @property
    def min_rows(self) -> int:
        """Rows of a context that networks need."""
        past = max(getattr(member.source, "n_past", 0) for member in self.members)
        return max(past + 1, 2)

    def standard_exog(self, known: Array) -> Array:
        """Return exogenous rows without units."""
        return known if self.scale_of_exog is None else self.scale_of_exog.standardise(known)

    def after(self, levels: Array, known: Array) -> DynamicalFit:
        """Return the fit at the end of other rows, in their own units."""
        return replace(self, levels=self.scale.standardise(levels), known=self.standard_exog(known))

    def extended(self, levels: Array, known: Array) -> DynamicalFit:
        """Return the fit after further rows, in their own units.

        What is missing among them is filled with what is forecast for it.
        """
        later, known = self.scale.standardise(levels), self.standard_exog(known)

        def forecast(before: Array, n_steps: int) -> Array:
            begin = len(before)
            seen = self._joined(before, known[:begin])
            following = known[begin : begin + n_steps, None]
            return seen._run([len(seen.levels)], following).levels[:, 0]

        return self._joined(fill_later(later, forecast), known)

    def _joined(self, levels: Array, known: Array) -> DynamicalFit:
        """Return the fit after further rows without units."""
        return replace(
            self,
            levels=np.concatenate([self.levels, levels]),
            known=np.concatenate([self.known, known]),
        )

    def forecast(self, n_steps: int, known: Array) -> tuple[Array, int]:
        """Run the loop behind the last row, (n_steps, n_outputs), in units of the data.

        The number that comes with it is that of the steps before it is held at its bounds.
        """
        run = self._run([len(self.levels)], self.standard_exog(known)[:, None])
        return self.scale.restore(run.levels[:, 0]), int(run.n_free[0])

    def _run(self, places: list[int], known: Array) -> EnsembleRun:
        """Run loops from beginnings of the data, without units.

        Parameters
        ----------
        places : list of int
            How many rows each knows, ascending.
        known : array of shape (n_steps, n_places, n_exog)
            Of the rows behind.
        """
        one = Trajectories([self.levels], [self.known])
        # the row itself goes in with what is known of the next one
        last = [(0, place - 1) for place in places]
        states = [states_at(member.source, one, last) for member in self.members]
        rows = self.levels[np.array(places) - 1]
        return run_ensemble(
            self.members, states, rows, len(known), exog=known, clip=tuple(self.limits)
        )

    def from_places(self, places: Array, n_steps: int) -> Array:
        """Return forecasts from beginnings of the data, (n_places, n_steps, n_outputs).

        Behind the data the last exogenous row goes on.
        """
        rows = np.minimum(np.add.outer(np.arange(n_steps), places), len(self.known) - 1)
        return self.scale.restore(
            self._run(places.tolist(), self.known[rows]).levels.swapaxes(0, 1)
        )


def limits_of(rows: Array, widths: float) -> Array:
    """Return the range of rows, widened by so many widths, (2, n_outputs)."""
    low, high = rows.min(axis=0), rows.max(axis=0)
    return np.array([low - widths * (high - low), high + widths * (high - low)])


def fit_networks(
    levels: list[Array],
    known: list[Array],
    *,
    widths: float,
    plans: Sequence[NetworkPlan] | None,
    n_members: int,
    n_steps: int | None,
    seed: int,
    n_jobs: int | None,
    report: Report,
) -> tuple[DynamicalFit, Choice]:
    """Find networks that go on as trajectories do; parameters as of `Search`, data with units."""
    scale = Scale.of(levels)
    scale_of_exog = Scale.of(known) if known else None
    data = trajectories(
        [scale.standardise(level) for level in levels],
        [scale_of_exog.standardise(rows) for rows in known] if scale_of_exog else [],
    )
    limits = limits_of(np.concatenate(data.levels), widths)
    choice = Search(
        data,
        tuple(limits),
        plans=plans,
        n_members=n_members,
        n_steps=n_steps,
        seed=seed,
        n_jobs=n_jobs,
        report=report,
    ).run()
    fit = DynamicalFit(
        choice.members,
        scale,
        scale_of_exog,
        limits,
        choice.washout,
        data.levels[-1],
        data.exog[-1],
        list(zip(data.levels[:-1], data.exog[:-1], strict=True)),
    )
    return fit, choice


def first_rows(n_rows: int) -> int:
    """Return how many rows networks are fitted to where their errors are looked at."""
    return int(_LEARNED * n_rows)


def origins_behind(first: int, n_rows: int, n_steps: int) -> Array:
    """Return places from which forecasts are compared with what followed, ascending."""
    last = max(first, n_rows - max(1, n_steps // 4))
    return np.unique(np.linspace(first, last, _N_ORIGINS).astype(int))

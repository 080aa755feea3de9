"""A forecaster that finds its networks by itself."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import (
    as_generator,
    caller_level,
    check_count,
    check_n_jobs,
    check_number,
)
from reservoir.estimators._parameters import (
    check_parameters,
    documented,
    natural_or_switch,
    parameter,
)
from reservoir.estimators._reporting import leaving_no_trace, progress
from reservoir.estimators.series._own_networks import check_search, plans_of_users
from reservoir.estimators.series._series_tables import (
    Scale,
    dtype_of,
    is_flat,
    read_tables,
    refuse_constants,
    refuse_lengths,
    refuse_short,
    trajectories,
)
from reservoir.loops.bank_search import Search
from reservoir.loops.committee import run_committee
from reservoir.loops.loop_design import Trajectories
from reservoir.loops.network_trial import states_at

__all__ = ["ESNForecaster"]

_WORTH = 0.1  # by so much a score must be better than that of the mean


def _check_clip(name: str, value: Any) -> None:
    if isinstance(value, str) and value == "auto":
        return
    if isinstance(value, str) or np.ndim(value) > 0:
        raise ValueError(f'clip={value!r} must be "auto" or a number of widths, at least 0.')
    check_number(name, value, low=0.0)


def _check_horizon(name: str, value: Any) -> None:
    if not (isinstance(value, str) and value == "auto"):
        check_count(name, value)


@saved
@documented()
@dataclass(eq=False, repr=False, kw_only=True)
class ESNForecaster(BaseEstimator):
    """Forecasts a series, or several variables together, with networks that it finds by itself.

    For series that follow a rule of their own: flows and maps, chaotic or not, with all variables
    observed or some. `fit` standardises the data, finds out how noisy they are and whether a row
    tells the next one, tries a bank of echo state networks and ridge penalties by closed loops
    from places within the data [1]_, and keeps the best network under several seeds. Where rows of
    the past are needed, and do not tell the next one to four digits, the bank consists of radial
    units [4]_ on lagged rows; the best of them, which no seed changes, are kept. `forecast` feeds
    the median of what the networks say back to all of them. They learn increments, from one row to
    the next, through all the digits of the data [2]_.

    Parameters
    ----------
    {PARAMETERS}

    Attributes
    ----------
    search_results_ : dict of arrays, for pandas.DataFrame
        A row for each network and penalty that was tried: the network's parameters, `alpha` (per
        row), `score` (minus the mean decimal logarithm of the error of loops within the data, in
        standard deviations; greater is better), `score_left_out` (of loops in blocks of the data
        that the fit had not seen), either NaN where such loops were not run, and `rank`. Radial
        units have `n_units` (the most there may be), `width` (of their bells, in standard
        deviations), `memory` (steps after which a row counts 1 / e times as much), `n_lags` and
        `skip`; they are chosen by `score_left_out` alone. `observed` is "all"
        if a row tells the next one, else "some", and `noise` the error of one step, in standard
        deviations, that remains in rows that were not fitted.
    best_params_ : dict
        The parameters of the best network, grown to its final size. Those of radial units cannot
        be given in `search`.
    best_score_ : float
        Its score.
    n_features_in_ : int
        Variables that are forecast.
    feature_names_in_ : array of shape (n_features_in_,)
        Their names, if y had names that are all strings.

    See Also
    --------
    ESNRegressor : One network with parameters of your own.
    reservoir.model_selection.ClosedLoopSearchCV : The same choice among networks of your own.
    NVARRegressor : Polynomials of lagged values in the place of a network.
    reservoir.plotting.closed_loop_search : Draws `search_results_`.

    Notes
    -----
    Networks and penalties were chosen by resampling over the systems of Gilpin (2021 [3]_).
    A loop is held within the range of the training data, widened by `clip` times its width, and
    forecasts are returned so. The bank is tried on the last 2000 rows of a longer series; from
    3000 rows on the best network grows to 500 units and is fitted on all of them.

    References
    ----------
    .. [1] A. Racca and L. Magri, "Robust optimization and validation of echo state networks for
       learning chaotic dynamics", Neural Networks 142, 2021.
    .. [2] G. H. Golub and C. F. Van Loan, "Matrix Computations", 4th edition, Johns Hopkins
       University Press, 2013, chapter 5.
    .. [3] W. Gilpin, "Chaos as an interpretable benchmark for forecasting and data-driven
       modelling", NeurIPS Datasets and Benchmarks, 2021.
    .. [4] M. Casdagli, "Nonlinear prediction of chaotic time series", Physica D 35, 1989.

    Examples
    --------
    >>> from reservoir import ESNForecaster
    >>> from reservoir.datasets import lorenz
    >>> orbit = lorenz(1300, dt=0.05, random_state=0)
    >>> forecaster = ESNForecaster(random_state=0).fit(orbit[:1000])
    >>> forecast = forecaster.forecast(100)  # five time units: 4.5 Lyapunov times
    >>> bool(abs(forecast - orbit[1000:1100]).max() < 0.5)
    True
    """

    search: Any = parameter(
        "auto",
        '"auto" or list of dicts',
        """The networks to try: a bank that suits the data, or your own, each a dict with
        `n_units` and, if you like, `spectral_radius` (default 0.05), `input_scaling` (0.3, of
        standardised rows), `bias_scaling` (1), `leak_rate` (1), `augment` (None, "square" or
        "even_square"), `n_lags` (1) and `skip` (1), as in ESNRegressor and NVARRegressor. Your
        own networks keep their size, also on long series.""",
        check_search,
    )
    n_networks: int = parameter(
        3,
        "int",
        """Networks whose median is fed back.""",
        check_count,
    )
    clip: Any = parameter(
        "auto",
        '"auto" or float',
        """Widths of the range of the training data that a forecast may leave it by; "auto" is
        1.""",
        _check_clip,
    )
    horizon: Any = parameter(
        "auto",
        'int or "auto"',
        """Steps of the loops that networks are chosen by. "auto" is a fifth of the series, at
        most 100, from 1500 rows on 150.""",
        _check_horizon,
    )
    n_jobs: int | None = parameter(
        None,
        "int",
        """Workers for the networks of the bank (joblib). The result does not depend on it, to the
        bit: each network is fitted on one BLAS thread.""",
        lambda name, value: check_n_jobs(value),
    )
    verbose: int = parameter(
        0,
        "int",
        """Whether progress is shown.""",
        natural_or_switch,
    )
    random_state: Any = parameter(None, "int, Generator, RandomState or None")

    def fit(self, y: Any, exog: Any = None) -> ESNForecaster:
        """Find networks that go on as the series does.

        Parameters
        ----------
        y : array of shape (n_samples,) or (n_samples, n_outputs), Series, DataFrame, or a list
            Rows at equal steps of time, 30 or more. A list holds trajectories of the same system;
            forecasts without a context go on from the last one.
        exog : array of shape (n_samples, n_exog), DataFrame, or a list of them, optional
            What is known beforehand of each row of y, row by row: a force, an hour, a price.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If the series is too short, a column is constant, a value is NaN or infinite, y and
            exog differ in length, or a parameter is refused.

        Warns
        -----
        UserWarning
            If no network does better in closed loop than the mean of the data.
        """
        check_parameters(self)
        # small matrices: more BLAS threads cost time, and would change the last bits
        with leaving_no_trace(self), threadpool_limits(1):
            self._fit(y, exog)
        return self

    def _fit(self, y: Any, exog: Any) -> None:
        """Read the series, find networks, and run them to the end."""
        levels = read_tables("y", self, y, reset=True)
        refuse_short(levels)
        refuse_constants("y", levels)
        self._known = _Exog()
        known = self._read_exog(exog, [len(level) for level in levels], reset=True)
        self._one_dimensional = is_flat(y)
        self._dtype = dtype_of(y)
        # without units
        self._scale = Scale.of(levels)
        self._scale_of_exog = Scale.of(known) if known else None
        data = self._trajectories(levels, known)
        rows = np.concatenate(data.levels)
        widths = 1.0 if isinstance(self.clip, str) else float(self.clip)
        low, high = rows.min(axis=0), rows.max(axis=0)
        self._limits = np.array([low - widths * (high - low), high + widths * (high - low)])
        self._choose(data)
        self._states = self._states_behind(data)
        self._last = data.levels[-1][-1]

    def _choose(self, data: Trajectories) -> None:
        """Search for networks, and keep what came of it."""
        choice = Search(
            data,
            tuple(self._limits),
            plans=plans_of_users(self.search),
            n_members=self.n_networks,
            n_steps=None if isinstance(self.horizon, str) else self.horizon,
            seed=int(as_generator(self.random_state).integers(2**31)),
            n_jobs=self.n_jobs,
            report=self._report,
        ).run()
        self._members = choice.members
        self._washout = choice.washout
        self.search_results_ = choice.results
        self.best_params_ = asdict(choice.plan)
        self.best_score_ = choice.score
        if choice.score <= choice.score_of_mean + _WORTH:
            warnings.warn(
                "In closed loop no network does better on these data than their mean: best_score_"
                f"={choice.score:.3f}, and the mean has {choice.score_of_mean:.3f}. Do not trust "
                "the forecast beyond its first steps.",
                UserWarning,
                stacklevel=caller_level(),
            )

    def _report(self, results: Iterable[Any], total: int, what: str) -> Iterable[Any]:
        return progress(results, total, int(self.verbose), what=what, unit="network")

    def forecast(self, n_steps: int, exog: Any = None, context: Any = None) -> Array:
        """Forecast the rows that follow the training data, or a context.

        Parameters
        ----------
        n_steps : int
        exog : array of shape (n_steps, n_exog), optional
            Of the rows that are forecast; with a context (n_context + n_steps, n_exog), its rows
            first.
        context : array of shape (n_context, n_outputs), Series or DataFrame, optional
            Rows of the same system to go on from. Its first rows serve networks to forget where
            they started.

        Returns
        -------
        array of shape (n_steps,) or (n_steps, n_outputs)
            As y was. Within the range of the training data, widened by `clip`.

        Raises
        ------
        ValueError
            If n_steps < 1, the context is shorter than what a network sees at once, or shapes or
            names do not fit.

        Warns
        -----
        RuntimeWarning
            If the loop reaches the bounds of `clip`. The message names the step; nothing after
            it is to be trusted.
        UserWarning
            If the context is shorter than the washout.
        """
        check_is_fitted(self)
        n_steps = check_count("n_steps", n_steps)
        if context is None:
            (known,) = self._read_exog(exog, [n_steps], reset=False) or [np.zeros((n_steps, 0))]
            states, last = self._states, self._last
        else:
            levels = read_tables("context", self, context, reset=False)
            if len(levels) != 1:
                raise ValueError(
                    f"context holds {len(levels)} trajectories, and a forecast goes on from one. "
                    "Call forecast for each."
                )
            self._check_context(levels[0])
            n_rows = len(levels[0]) + n_steps
            every = self._read_exog(exog, [n_rows], reset=False) or [np.zeros((n_rows, 0))]
            known = every[0][len(levels[0]) :]
            data = self._trajectories(
                levels, [every[0][: len(levels[0])]] if exog is not None else []
            )
            states, last = self._states_behind(data), data.levels[0][-1]
        with threadpool_limits(1):
            rows, _, n_free = run_committee(
                self._members,
                states,
                last,
                n_steps,
                exog=self._scale_of_exog.standardise(known) if self._scale_of_exog else known,
                clip=tuple(self._limits),
            )
        _warn_of_bounds(n_free, n_steps)
        rows = self._scale.restore(rows).astype(self._dtype)
        return rows[:, 0] if self._one_dimensional else rows

    def _states_behind(self, data: Trajectories) -> list[Array]:
        """Return, for each network, the state before the last row of the last trajectory."""
        # the row itself goes in with what is known of the next one
        last = len(data.levels) - 1
        one = Trajectories(data.levels[-1:], data.exog[-1:])
        place = [(0, len(data.levels[last]) - 1)]
        return [states_at(member.source, one, place)[0] for member in self._members]

    def _check_context(self, rows: Array) -> None:
        past = max(getattr(member.source, "n_past", 0) for member in self._members)
        fewest = max(past + 1, 2)
        if len(rows) < fewest:
            raise ValueError(
                f"context has {len(rows)} row{'s' * (len(rows) != 1)}, and the networks need at "
                f"least {fewest} to go on from. After {self._washout + 1} they have forgotten "
                "where they started: give that many or more."
            )
        if len(rows) <= self._washout:
            warnings.warn(
                f"context has {len(rows)} rows, and networks need about {self._washout} before the "
                "last one to forget where they started. The forecast may be less exact than it "
                f"could be. Give {self._washout + 1} or more.",
                UserWarning,
                stacklevel=caller_level(),
            )

    def _trajectories(self, levels: list[Array], known: list[Array]) -> Trajectories:
        """Return series without units."""
        return trajectories(
            [self._scale.standardise(level) for level in levels],
            [self._scale_of_exog.standardise(rows) for rows in known]
            if self._scale_of_exog
            else [],
        )

    def _read_exog(self, exog: Any, lengths: list[int], *, reset: bool) -> list[Array]:
        """Return exogenous tables of these lengths; an empty list if there are none."""
        if exog is None:
            if not reset and self._scale_of_exog is not None:
                raise ValueError(
                    f"exog is missing: the series was fitted with {len(self._scale_of_exog.mean)} "
                    f"columns of it. Give it with {lengths[0]} rows."
                )
            return []
        if not reset and self._scale_of_exog is None:
            raise ValueError("exog was given, and the series was fitted without. Leave it out.")
        tables = read_tables("exog", self._known, exog, reset=reset)
        refuse_lengths(
            tables,
            lengths,
            "y" if reset else "the forecast, behind those of the context if there is one",
        )
        return tables

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_states")


@saved
class _Exog(BaseEstimator):
    """Holds number and names of the exogenous columns."""


def _warn_of_bounds(n_free: int, n_steps: int) -> None:
    """Say so where the loop was held at its bounds."""
    if n_free == n_steps:
        return
    warnings.warn(
        f"The forecast was held at its bounds (clip), first in step {n_free} of {n_steps}, counted "
        "from 0: it left the range of the training data. The rows from there on are not to be "
        "trusted. More rows in fit, or fewer steps, help.",
        RuntimeWarning,
        stacklevel=caller_level(),
    )

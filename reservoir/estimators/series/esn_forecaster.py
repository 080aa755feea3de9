"""A forecaster that finds its models by itself."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import as_generator, caller_level, check_count
from reservoir._workers import one_blas_thread
from reservoir.estimators.describe import Described, described_html
from reservoir.estimators.parameters import check_parameters, documented
from reservoir.estimators.reporting import progress, restored_on_error
from reservoir.estimators.series._calendar import Calendar
from reservoir.estimators.series._dynamical_fit import DynamicalFit
from reservoir.estimators.series._fitting import (
    Settings,
    bands_of_networks,
    chosen_way,
    fit_dynamics,
    fit_each,
    fit_shared,
    seasons_for,
    series_data,
)
from reservoir.estimators.series._forecaster_checks import (
    check_context,
    check_enough_values,
    check_together,
    check_update,
    warn_of_bounds,
    warn_of_constants,
    warn_of_numbers,
)
from reservoir.estimators.series._forecaster_parameters import ForecasterParameters
from reservoir.estimators.series._known_inputs import KnownInputs, read_coverages
from reservoir.estimators.series._own_networks import plans_of_users
from reservoir.estimators.series._series_container import SeriesContainer
from reservoir.estimators.series._series_panels import Panel, read_panel
from reservoir.estimators.series._series_tables import (
    check_long_enough,
    check_varies,
    dtype_of,
    is_collection,
    read_tables,
)
from reservoir.estimators.series._series_values import read_values
from reservoir.estimators.series._spread import Spread
from reservoir.estimators.series._statistical_fit import StatisticalFit
from reservoir.estimators.series._summary import html_of, summary_of
from reservoir.series_models.ensemble import best_of, table_of
from reservoir.series_models.series_data import SeriesData

__all__ = ["ESNForecaster"]

_WORTH = 0.1  # by so much a score must be better than that of the mean


@saved
@documented()
@dataclass(eq=False, repr=False, kw_only=True)
class ESNForecaster(Described, ForecasterParameters, BaseEstimator):
    """Forecasts a series, or several variables together, with models that it finds by itself.

    `fit` looks at the data. Series that follow a rule of their own, flows and maps, chaotic or not,
    get networks that learn the rule: a bank of echo state networks and ridge penalties is tried by
    closed loops from places within the data [1]_, and the best is kept under several seeds. All
    others, with trends, seasons and noise, get an average of models that are compared by forecasts
    of rows they have not seen: networks in closed loop and for all horizons at once, linear
    autoregression, Theta [2]_, and the last season again with drift, on logarithms and as the
    values are. `summary` says what was chosen. `forecast` returns what y was: a Series or DataFrame
    with its dates continued, or an array.

    Parameters
    ----------
    {PARAMETERS}

    Attributes
    ----------
    kind_ : {"dynamics", "series"}
        Which of the two ways suits the data.
    seasons_ : tuple of float
        Rows per period, ascending; empty for none.
    search_results_ : dict of arrays, for pandas.DataFrame
        For "series" a row for each model and series: `series` (its id; "all" for a panel that is
        "shared", with one row for each model), `model`, `scale` ("log" or
        "plain"), `error` (mean absolute error of forecasts of rows that were not fitted, relative
        to the best model's) and `share` (in the average).
        For "dynamics" a row for each network and penalty: the network's parameters, `alpha` (per
        row), `score` (minus the mean decimal logarithm of the error of loops within the data, in
        standard deviations; greater is better), `score_left_out` (of loops in blocks of the data
        that the fit had not seen), either NaN where such loops were not run, and `rank`. Radial
        units [3]_ have `n_units` (the most there may be), `width` (of their bells, in standard
        deviations), `memory` (steps after which a row counts 1 / e times as much), `n_lags` and
        `skip`; they are chosen by `score_left_out` alone. `observed` is "all" if a row tells the
        next one, else "some", and `noise` the error of one step, in standard deviations, that
        remains in rows that were not fitted.
    best_params_ : dict
        For "dynamics" the parameters of the best network, grown to its final size (those of radial
        units cannot be given in `search`); for "series" name and scale of the best model.
    best_score_ : float
        For "dynamics" the score of the best network; for "series" minus the error of the average
        relative to that of the best naive forecast, the mean over series.
    n_features_in_ : int
        Variables that are forecast; series of a panel.
    feature_names_in_ : array of shape (n_features_in_,)
        Their names, if y had names that are all strings.

    See Also
    --------
    ESNRegressor : One network with parameters of your own.
    reservoir.model_selection.backtest : Errors of forecasts from many places in a series.
    reservoir.model_selection.ClosedLoopSearchCV : The choice among networks of your own.
    NVARRegressor : Polynomials of lagged values in the place of a network.
    reservoir.plotting.forecast : Draws history, forecast and intervals.
    reservoir.plotting.closed_loop_search : Draws `search_results_` of "dynamics".

    Notes
    -----
    Networks and penalties were chosen by resampling: those for "dynamics" over the systems of
    Gilpin (2021 [4]_), those for "series" over real and generated series. The two ways are told
    apart by one step: where networks on the values do much better than a linear autoregression of
    differences there is a rule. In between, both forecast the end of the series.
    Forecasts are held within the range of the training data, widened by `clip` times its width.

    References
    ----------
    .. [1] A. Racca and L. Magri, "Robust optimization and validation of echo state networks for
       learning chaotic dynamics", Neural Networks 142, 2021.
    .. [2] V. Assimakopoulos and K. Nikolopoulos, "The theta model: a decomposition approach to
       forecasting", International Journal of Forecasting 16, 2000.
    .. [3] M. Casdagli, "Nonlinear prediction of chaotic time series", Physica D 35, 1989.
    .. [4] W. Gilpin, "Chaos as an interpretable benchmark for forecasting and data-driven
       modelling", NeurIPS Datasets and Benchmarks, 2021.

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

    def fit(self, y: Any, exog: Any = None) -> ESNForecaster:
        """Find models that go on as the series does.

        Parameters
        ----------
        y : array of shape (n_samples,) or (n_samples, n_outputs), Series, DataFrame, or a list
            Rows at equal steps of time, 5 or more, for "dynamics" 30; missing values are NaN, and
            make a series none of "dynamics". Columns are variables of one system that are forecast
            together, and a list holds trajectories of it, where forecasts go on from the last one;
            `panel` makes separate series of them.
        exog : array of shape (n_samples, n_exog), DataFrame, or a list of them, optional
            What is known beforehand of each row of y, row by row: a force, a price, a holiday.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If the series is too short, the index has gaps or no frequency, a value is infinite, y
            and exog differ in rows, or a parameter is refused.

        Warns
        -----
        UserWarning
            If all values are equal, no network does better in closed loop than the mean, or
            numbers in the index may be dates.
        """
        check_parameters(self)
        check_together(self.search, self.panel, self.sequence_column, y)
        # small matrices: more BLAS threads cost time, and would change the last bits
        with restored_on_error(self), one_blas_thread():
            self._fit(y, exog)
        return self

    def _fit(self, y: Any, exog: Any) -> None:
        for name in ("seasons_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        self._seed = seed = int(as_generator(self.random_state).integers(2**31))
        settings = self._settings(seed)
        if self.panel is None and is_collection(y):
            self._fit_trajectories(y, exog, settings)
            return
        if self.panel is None:
            rows, calendar = [read_values("y", y)], Calendar.of("y", y)
            container = SeriesContainer.of(y)
            self._panel = Panel("one", (0,), (container,), (calendar,), container)
        else:
            self._panel, rows = read_panel("y", y, self.sequence_column)
        self._note_columns()
        check_enough_values(rows, self._panel)
        warn_of_numbers(self._panel)
        self._known = KnownInputs.of(exog)
        known = self._read_known(exog, [len(each) for each in rows], following=False)
        seasons = seasons_for(self.season, self._panel.calendars)
        jobs = []
        for values, each in zip(rows, known, strict=True):
            jobs.append((*series_data(values, each, seasons, seed), settings))
        if self.panel is None and self._way(jobs[0][0], settings) == "dynamics":
            self._fit_trajectories(y, exog, settings)
            return
        self.kind_, self.seasons_ = "series", seasons
        self._fit_series(jobs)

    def _way(self, data: SeriesData, settings: Settings) -> str:
        """Return "dynamics" or "series": as `search` asks, or as the data do."""
        if not isinstance(self.search, str):
            return "dynamics"
        return chosen_way(data, settings) if self.search == "auto" else self.search

    def _settings(self, seed: int) -> Settings:
        return Settings(
            plans=plans_of_users(self.search),
            n_networks=self.n_networks,
            widths=1.0 if isinstance(self.clip, str) else float(self.clip),
            horizon=None if isinstance(self.horizon, str) else self.horizon,
            seed=seed,
            n_jobs=self.n_jobs,
            report=self._report,
        )

    def _fit_series(self, jobs: list[Any]) -> None:
        """Find models for each series."""
        if self.panel == "shared":
            found = fit_shared(jobs, self._panel.calendars, partial(self._report, unit="model"))
        else:
            found = fit_each(jobs, partial(self._report, unit="series"))
        self._fits: list[Any] = [fit for fit, _ in found]
        self.best_score_ = -float(np.mean([each.relative_error for _, each in found]))
        learned = [each for _, each in (found[:1] if self.panel == "shared" else found)]
        ids = ("all",) if self.panel == "shared" else self._panel.ids
        self.search_results_ = table_of(learned, ids)
        self.best_params_ = best_of(learned)
        warn_of_constants(self._fits, self._panel)

    def _fit_trajectories(self, y: Any, exog: Any, settings: Settings) -> None:
        """Find networks for trajectories of one system."""
        levels = read_tables("y", self, y, reset=True)
        check_long_enough(levels)
        check_varies("y", levels)
        last, name = (y[-1], f"trajectory {len(y) - 1} of y") if is_collection(y) else (y, "y")
        container, calendar = SeriesContainer.of(last), Calendar.of(name, last)
        container = replace(container, dtype=np.dtype(dtype_of(y)).name)
        self._panel = Panel("one", (0,), (container,), (calendar,), container)
        lengths, self._known = [len(level) for level in levels], KnownInputs.of(exog)
        if is_collection(y):
            known = self._known.read_trajectories(exog, lengths, self.missing_values)
        else:
            known = self._read_known(exog, lengths, following=False)
        self.kind_, self.seasons_ = "dynamics", ()
        fit, choice = fit_dynamics(levels, known if known[0].shape[1] else [], settings)
        self._fits = [fit]
        self.search_results_ = choice.results
        self.best_params_ = asdict(choice.plan)  # type: ignore[call-overload]
        self.best_score_ = choice.score
        if choice.score <= choice.score_of_mean + _WORTH:
            warnings.warn(
                "In closed loop no network does better on these data than their mean: best_score_"
                f"={choice.score:.3f}, and the mean has {choice.score_of_mean:.3f}. Do not trust "
                "the forecast beyond its first steps.",
                UserWarning,
                stacklevel=caller_level(),
            )

    def _memory_advice(self) -> str:
        """Return which parameters to change where memory fails."""
        return "Lower n_units in search=, n_networks or n_jobs, or give fewer rows or series."

    def _report(
        self, results: Iterable[Any], total: int, what: str, unit: str = "network"
    ) -> Iterable[Any]:
        return progress(results, total, int(self.verbose), what=what, unit=unit)

    def forecast(
        self, n_steps: int, exog: Any = None, context: Any = None, coverage: Any = None
    ) -> Any:
        """Forecast the rows that follow the training data, or a context.

        Parameters
        ----------
        n_steps : int
        exog : array of shape (n_steps, n_exog), DataFrame, or one for each series, optional
            Of the rows that are forecast; with a context (n_context + n_steps, n_exog), its rows
            first.
        context : array of shape (n_context, n_outputs), Series or DataFrame, optional
            For "dynamics": rows of the same system to go on from. Its first rows serve networks to
            forget where they started.
        coverage : float or list of floats, optional
            Shares of the values to come, such as 0.9, that intervals are to hold, each step by
            itself.

        Returns
        -------
        array, Series, DataFrame, or list
            As y was, with its index continued, within the range of the training data, widened by
            `clip`; its first rows are the same however many follow. With `coverage` a DataFrame
            with the columns "forecast", "lower 90%", "upper 90%" and so on (of a DataFrame as the
            last level of its columns); of arrays an array with these along its last axis, (n_steps,
            1 + 2 n_coverages) or (n_steps, n_outputs, 1 + 2 n_coverages).

        Raises
        ------
        ValueError
            If n_steps < 1, a coverage is not between 0 and 1, the context is shorter than what a
            network sees at once, or shapes, names or dates do not fit.

        Warns
        -----
        RuntimeWarning
            If the forecast, or most of the average that it is, reaches the bounds of `clip`. The
            message names the step; nothing after it is to be trusted.
        UserWarning
            If the context is shorter than the washout.
        """
        check_is_fitted(self)
        n_steps = check_count("n_steps", n_steps)
        coverages = read_coverages(coverage)
        panel, fits, known = self._start(n_steps, exog, context)
        with one_blas_thread():
            points = self._points(panel, fits, known, n_steps)
            if not coverages:
                return panel.wrap(points)
            bands = [
                self._bands(fit).ends(point, coverages)
                for fit, point in zip(fits, points, strict=True)
            ]
        return panel.wrap_bands(points, bands, coverages)

    def simulate(
        self, n_steps: int, n_paths: int = 100, exog: Any = None, random_state: Any = None
    ) -> Any:
        """Draw ways in which the series may go on, around its forecast.

        Errors of forecasts from places in the data are mixed and added, so that each path wanders
        as these errors do, and all together spread as the intervals of `forecast`.

        Parameters
        ----------
        n_steps : int
        n_paths : int, default=100
        exog : as in `forecast`
        random_state : int, Generator, RandomState or None
            None: that of the estimator.

        Returns
        -------
        array of shape (n_paths, n_steps) or (n_paths, n_steps, n_outputs), DataFrame, or list
            Of a Series a DataFrame with a column for each path; of a DataFrame one whose columns
            have the path as their first level. With the same seed the first steps are the same
            however many follow.

        Raises
        ------
        ValueError
            As `forecast`.
        """
        check_is_fitted(self)
        n_steps, n_paths = check_count("n_steps", n_steps), check_count("n_paths", n_paths)
        panel, fits, known = self._start(n_steps, exog, None)
        generator = as_generator(self.random_state if random_state is None else random_state)
        with one_blas_thread():
            points = self._points(panel, fits, known, n_steps)
            # of each series its own: what one draws does not depend on how far another goes
            generators = map(np.random.default_rng, generator.integers(2**63, size=len(fits)))
            paths = [
                self._bands(fit).paths(point, n_paths, own)
                for fit, point, own in zip(fits, points, generators, strict=True)
            ]
        return panel.wrap_paths(paths)

    def update(self, y: Any, exog: Any = None) -> ESNForecaster:
        """Go on behind later rows, without learning anew.

        Parameters
        ----------
        y : as in `fit`
            The rows that follow those of `fit` and of earlier updates. In the place of missing
            values models get what was forecast for them.
        exog : as in `fit`
            Of the same rows.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the rows do not follow, columns differ, or a value has no logarithm that models need.
        """
        check_is_fitted(self)
        with restored_on_error(self):
            panel, rows = self._panel.follow("y", y, self.sequence_column)
            known = self._read_known(exog, [len(each) for each in rows], following=True)
            check_update(self._fits, rows, panel)
            self._fits = [
                fit.extended(*pair) for fit, *pair in zip(self._fits, rows, known, strict=True)
            ]
            self._panel = panel
        return self

    def summary(self) -> str:
        """Return what was found in the data, and what was chosen by how much, as text.

        Returns
        -------
        str
        """
        check_is_fitted(self)
        return summary_of(self)

    # ------------------------------------------------------------------ steps of a forecast

    def _start(self, n_steps: int, exog: Any, context: Any) -> tuple[Panel, list[Any], list[Array]]:
        """Return where forecasts begin: the panel, the fits, and what is known of the steps."""
        if context is None:
            lengths = [n_steps] * len(self._fits)
            known = self._read_known(exog, lengths, following=True)
            return self._panel, self._fits, known
        if self.kind_ != "dynamics":
            raise ValueError(
                'context goes with kind_="dynamics", series that follow a rule; this one has '
                f"kind_={self.kind_!r}. Use update for rows that follow, or fit anew."
            )
        (before,) = self._panel.calendars
        levels = read_tables("context", self, context, reset=False)
        if len(levels) != 1:
            raise ValueError(
                f"context holds {len(levels)} trajectories, and a forecast goes on from one. "
                "Call forecast for each."
            )
        (rows,) = levels
        calendar = Calendar.of("context", context, like=before)
        panel = replace(self._panel, calendars=(calendar,))
        (fit,) = self._fits
        check_context(fit, rows)
        (every,) = self._known.read_trajectories(
            None if exog is None else [exog],
            [len(rows) + n_steps],
            self.missing_values,
            "the context and the forecast behind it",
        )
        return panel, [fit.after(rows, every[: len(rows)])], [every[len(rows) :]]

    def _points(
        self, panel: Panel, fits: list[Any], known: list[Array], n_steps: int
    ) -> list[Array]:
        """Return forecasts, (n_steps, n_outputs) each; warn where they were held."""
        found = [fit.forecast(n_steps, rows) for fit, rows in zip(fits, known, strict=True)]
        warn_of_bounds([n_free for _, n_free in found], n_steps, panel)
        return [levels for levels, _ in found]

    def _bands(self, fit: DynamicalFit | StatisticalFit) -> Spread:
        """Return what is known of the errors of forecasts of one series."""
        if isinstance(fit, StatisticalFit):
            bounds = fit.ensemble.bounds
            return Spread(fit.bands, bounds.low, bounds.high)
        low, high = fit.scale.restore(fit.limits)
        # the seed of fit, which a file of an earlier version does not hold
        settings = self._settings(getattr(self, "_seed", 0))
        return Spread(bands_of_networks(fit, settings), low, high)

    def _read_known(self, exog: Any, lengths: list[int], *, following: bool) -> list[Array]:
        """Return known inputs for each series, of its rows or of those behind it."""
        column = self.sequence_column
        how = self.missing_values
        return self._known.read(self._panel, exog, lengths, how, column, following=following)

    def _note_columns(self) -> None:
        """Set number and names of what is forecast."""
        panel = self._panel
        if panel.kind == "one":
            names: tuple[Any, ...] = panel.containers[0].names
            self.n_features_in_ = panel.containers[0].n_outputs
        else:
            names = panel.ids if panel.kind == "columns" else ()
            self.n_features_in_ = len(panel) if panel.kind == "columns" else 1
        if names and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fits")

    def _repr_html_inner(self) -> str:
        return described_html(self, lambda: html_of(self))

"""A forecaster that chooses its models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from reservoir._saving import saved
from reservoir._typing import Array, Report
from reservoir._validation import (
    as_generator,
    check_choice,
    check_count,
    check_fixed,
    check_n_jobs,
    check_number,
    fixed_parameters,
)
from reservoir._workers import one_blas_thread
from reservoir.estimators.describe import Described, described_html, html_of, summary_of
from reservoir.estimators.parameters import (
    check_parameters,
    documented,
    natural_or_switch,
    parameter,
    with_other_names,
)
from reservoir.estimators.reporting import ProgressReport, restored_on_error
from reservoir.estimators.series.checks import (
    check_possible,
    check_season,
    check_together,
    check_update,
    panel_of,
    read_coverages,
    warn_beyond_bounds,
    warn_of_bounds,
    warn_of_odd,
    warn_of_times,
)
from reservoir.estimators.series.failures import Failures, completed, fit_panel
from reservoir.estimators.series.fits import Fit, Settings
from reservoir.estimators.series.long_table import Columns, Errors, LongTable
from reservoir.estimators.series.model_search import (
    Found,
    ModelSearch,
    check_search,
    plans_of_users,
)
from reservoir.estimators.series.panel import Panel
from reservoir.estimators.series.parts import joined, some_of

__all__ = ["ESNForecaster"]


def _check_clip(name: str, value: Any) -> None:
    if isinstance(value, str) and value == "auto":
        return
    if isinstance(value, str) or np.ndim(value) > 0:
        raise ValueError(
            f'clip={value!r} must be "auto" or a number, at least 0: by how many widths of the '
            "range of the training data a forecast may leave that range."
        )
    check_number(name, value, low=0.0)


def _check_horizon(name: str, value: Any) -> None:
    if not (isinstance(value, str) and value == "auto"):
        check_count(name, value)


def _check_panel(name: str, value: Any) -> None:
    if value is not None:
        check_choice(name, value, ("each", "shared"))


def _check_outliers(name: str, value: Any) -> None:
    check_choice(name, value, ("warn", "missing", "keep"))


def _check_errors(name: str, value: Any) -> None:
    check_choice(name, value, ("raise", "warn"))


def _check_missing(name: str, value: Any) -> None:
    check_choice(name, value, ("raise", "hold", "interpolate"))


@saved
@documented()
@dataclass(eq=False, repr=False, kw_only=True)
class ESNForecaster(Described, BaseEstimator):
    """Forecaster of one or several time series that chooses its models from the data.

    `fit` chooses between two kinds of models. If the series follows a deterministic rule (a flow or
    a map, chaotic or not), networks learn the rule: candidate echo state networks and ridge
    penalties are compared by closed loops within the data [1]_, and the best combination is fitted
    with several seeds. Where these networks are poor, radial units and analogues, past rows that
    are most like the last ones [6]_, are compared with them, and the best is taken. All other
    series, with trends, seasons and noise, are forecast by an average of models that are compared
    on held-out rows: networks in closed loop, networks that forecast all horizons at once, linear
    autoregression, an average of ARI models (autoregressions of levels and of first and second
    differences), Theta [2]_, the last season with drift, the mean if a test finds no dependence
    between rows and, if more than half of the values are 0, a model of intermittent demand [5]_.
    Most of them are fitted to the values and, if these are positive, to their logarithms as well.
    `summary` describes the choice. `forecast` returns the type of y: an array, or a Series or
    DataFrame whose index continues the index of y.

    Parameters
    ----------
    {PARAMETERS}

    Attributes
    ----------
    kind_ : {"dynamics", "series"}
        The kind of models that was chosen.
    seasons_ : tuple of float, or dict of these
        Rows per period of each season, ascending; empty if there are no seasons. With
        ``panel="each"`` those of each series, by its id.
    last_rows_ : array, Series, DataFrame, or dict of these
        The known rows after which forecasts start, in the container of y; for several series the
        rows of each id. With `time_column` these are tables of times and targets.
    search_results_ : dict of arrays
        Results of the search, which can be passed to pandas.DataFrame.
        For "series" there is a row for each model and series, with the columns `series` (the id of
        the series; with ``panel="shared"`` there is one row for each model, and the id is "all"),
        `model`, `scale` ("log" or "plain"), `error` (the mean absolute error of forecasts of
        held-out rows, relative to the error of the best model; in columns of intermittent demand
        times the root mean squared error of the sum of each forecast, because the absolute error
        alone is least for a forecast of 0) and `share` (the model's weight in the average, which
        follows from errors to which single large ones and older rows contribute less).
        For "dynamics" there is a row for each combination of network and penalty, with the
        network's parameters, `alpha` (the penalty per row), `score` (minus the mean decimal
        logarithm of the error of loops within the data, in standard deviations; greater is
        better), `score_left_out` (the same score for loops in held-out blocks of the data) and
        `rank`. Either score is NaN where such loops were not run. Radial units [3]_ have the
        parameters `n_units` (their largest number), `width` (of their bells, in standard
        deviations), `memory` (the number of steps after which the weight of a row is 1 / e),
        `n_lags` and `skip`; they are chosen by `score_left_out` alone, as are analogues, whose only
        parameter is `n_lags`, the number of rows that are compared. Parameters that a candidate
        does not have are NaN or None. `observed` is "all" if a row determines the next one, else
        "some", and `noise` is the one-step error in held-out rows, in standard deviations.
    best_params_ : dict
        For "dynamics" the parameters of the best network at its final size (parameters of radial
        units and of analogues cannot be used in `search`); for "series" the name and scale of the
        best model.
    best_score_ : float
        For "dynamics" the score of the best network; for "series" minus the ratio of the error of
        the average to the error of the best naive forecast, averaged over series.
    failures_ : dict
        The message of each series that could not be fitted, by its id; empty unless `errors` is
        "warn". Other attributes leave these series out.
    n_features_in_ : int
        Number of variables that are forecast, or of series if these are the columns of y.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of these variables or series; defined only if y has names that are all strings.

    See Also
    --------
    ESNRegressor : One network whose parameters the user sets.
    reservoir.model_selection.backtest : Errors of forecasts from many origins in a series.
    reservoir.model_selection.ClosedLoopSearchCV : Search among networks that the user defines.
    NVARRegressor : Polynomials of lagged values instead of a network.
    reservoir.plotting.forecast : Draws history, forecast and intervals.
    reservoir.plotting.overview : Draws the forecast and the models that were tried.
    reservoir.plotting.closed_loop_search : Draws `search_results_` of "dynamics".

    Notes
    -----
    The candidate networks and penalties were selected by resampling: for "dynamics" over the
    systems of Gilpin (2021 [4]_), for "series" over real and generated series. The choice between
    the two kinds is made by one-step errors: the series follows a rule if networks are much better
    than a linear autoregression of differences. If the comparison is not clear, both kinds forecast
    the last 30 % of the rows over 8, 32 and 128 steps, or over `horizon`, and networks are chosen
    if their errors over any of these are clearly smaller: by a fifth and by two standard errors, or
    by one standard error if their one-step errors are smaller by a quarter.
    Networks that score no better than the mean of the data are not used: with ``search="auto"``
    models of series are fitted instead, and if the errors of these in held-out rows are no smaller
    than those of the mean either, or with ``search="dynamics"``, the forecast is the mean, with
    intervals by its errors. Networks that the user defines are kept, with a warning.
    Forecasts are clipped to the range of the training data, widened on either side by `clip` times
    its width.

    References
    ----------
    .. [1] A. Racca and L. Magri, "Robust optimization and validation of echo state networks for
       learning chaotic dynamics", Neural Networks 142, 2021.
    .. [2] V. Assimakopoulos and K. Nikolopoulos, "The theta model: a decomposition approach to
       forecasting", International Journal of Forecasting 16, 2000.
    .. [3] M. Casdagli, "Nonlinear prediction of chaotic time series", Physica D 35, 1989.
    .. [4] W. Gilpin, "Chaos as an interpretable benchmark for forecasting and data-driven
       modelling", NeurIPS Datasets and Benchmarks, 2021.
    .. [5] R. H. Teunter, A. A. Syntetos and M. Z. Babai, "Intermittent demand: linking forecasting
       to inventory obsolescence", European Journal of Operational Research 214, 2011.
    .. [6] E. N. Lorenz, "Atmospheric predictability as revealed by naturally occurring analogues",
       Journal of the Atmospheric Sciences 26, 1969.

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
        '"auto", "dynamics", "series" or list of dicts',
        """Candidate models. "dynamics" tries networks for series that follow a rule, "series" tries
        models for series with trends and seasons, and "auto" chooses between the two by the data. A
        list defines networks, each by a dict with `n_units` and optionally `spectral_radius`
        (default 0.05), `input_scaling` (0.3, for standardised rows), `bias_scaling` (1),
        `leak_rate` (1), `augment` (None, "square" or "even_square"; default None), `n_lags` (1) and
        `skip` (1), as in ESNRegressor and NVARRegressor. These networks keep their size, also on
        long series.""",
        check_search,
    )
    season: Any = parameter(
        None,
        "float or list of floats",
        """Number of rows per period of one season or of several, such as 12 or [24, 168]; 1 means
        no season. None infers seasons from the frequency of the index: 12 rows for months, 24 and
        168 for hours, and so on, provided that the series contains at least one and a half
        periods; `summary` lists the seasons for which it is too short. If there are no dates, `fit`
        warns of a season that makes forecasts of held-out rows clearly better, in series of 40 rows
        and five periods or more. "dynamics" does not use seasons.""",
        check_season,
    )
    panel: Any = parameter(
        None,
        '"each" or "shared"',
        """Whether y contains several separate series. With None, columns are variables of one
        system. Otherwise, each column is a series of a panel and is forecast separately; the series
        may also be the items of a list, or be identified by a MultiIndex or a column of ids.
        "each" finds models for each series separately. "shared" learns from all series together,
        which helps if they are short and similar: networks in closed loop and autoregressions have
        one readout for all series, each of which is standardised separately, and models are
        compared by their forecasts of all series, so that their weights in the average are the same
        for each series (if a series is too short for a model, the other models' weights are
        greater). The last season, Theta, intermittent demand, the direct network and the intervals
        are fitted to each series separately, and all series have the seasons of the longest one.
        With "each" a series has its own seasons, and its forecasts and sample paths are the same to
        the last bit whichever series share the call: many series can be fitted in parts. With
        either option `kind_` is "series".""",
        _check_panel,
    )
    sequence_column: Any = parameter(
        None,
        "int or str",
        """The column of y and of exog that contains the ids of series, by number or name. With
        ``panel=None`` it means "each". Forecasts have the ids in a column of the same type.""",
        fixed="",
    )
    time_column: Any = parameter(
        None,
        "int or str",
        """The column of y and of exog that contains the time of each row, by number or name: dates,
        periods or numbers at equal steps. It takes the place of the index, so that rows may be in
        any order: they are grouped by id, in order of first appearance, and sorted by time.
        Forecasts have the columns of ids and times first, then the targets, in rows that are
        numbered from 0. In networks, such as ESNRegressor, a `time_column` has another meaning:
        times at unequal steps, by which their leak rates change. pandas is needed.""",
    )
    target_column: Any = parameter(
        None,
        "int, str or list of these",
        """The column of y that is forecast, by number or name, or several. All columns but these,
        the ids and the times then are known inputs, and `exog` is for `forecast` only. With None
        all columns are forecast.""",
    )
    n_networks: int = parameter(
        3,
        "int",
        """Number of networks in closed loop. The median of their forecasts is the joint forecast,
        which is also fed back to them.""",
        partial(check_count, size=1000),
    )
    clip: Any = parameter(
        "auto",
        '"auto" or float',
        """Distance by which a forecast may leave the range of the training data, in widths of that
        range; "auto" is 1, and 2 for intervals and sample paths of models of series without a
        season. Forecasts of nonnegative data are always nonnegative, those of bool columns always
        between 0 and 1.""",
        _check_clip,
        fixed="",
    )
    horizon: Any = parameter(
        "auto",
        'int or "auto"',
        """Number of steps of the forecasts by which models are compared. With "auto" it is, for
        "dynamics", a fifth of the rows and at most 100, or 150 if there are 1500 rows or more; for
        "series" it is the length of a season, at least 8 and at most 60, but no more than a fifth
        of the rows.""",
        _check_horizon,
    )
    missing_values: str = parameter(
        "raise",
        '{"raise", "hold", "interpolate"}',
        """How missing values in `exog` are treated: "raise" raises an error, "hold" repeats the
        value before them, and "interpolate" interpolates linearly; a missing category then is a
        mixture of the categories before and after it. Missing values in y are always accepted for
        "series": they are not used for training.""",
        _check_missing,
        fixed="",
    )
    outliers: str = parameter(
        "warn",
        '{"warn", "missing", "keep"}',
        """How odd values among the last ten rows are treated, such as the value of a day that is
        not over yet. A value is odd if its difference from a forecast of one step far exceeds all
        such differences in the rows before. With "warn" and "missing", up to three odd values count
        as missing, with or without a warning. If a series ends with them, intervals contain the
        level of these values, too, and a quarter of the sample paths is there. More than three odd
        values are a new level, and count like other values; with "keep" all do.""",
        _check_outliers,
        fixed="",
    )
    errors: str = parameter(
        "raise",
        '{"raise", "warn"}',
        """What happens if a series of a panel cannot be fitted, because it is too short or its
        dates have gaps. "raise" raises the error. With "warn" the others are fitted as without it,
        a warning has the number of such series, `failures_` the message of each, and their
        forecasts are NaN. `update` and `exog` may contain their rows, which are not used. Errors of
        the whole call, such as a missing column, are raised.""",
        _check_errors,
        fixed="",
    )
    n_jobs: int | None = parameter(
        None,
        "int",
        """Number of joblib workers, which share the candidate networks or the series of a panel. It
        does not change a bit of the result, since each network is fitted with one BLAS thread.""",
        lambda name, value: check_n_jobs(value),
        fixed="",
    )
    verbose: int = parameter(
        0,
        "int",
        """Whether progress is reported.""",
        natural_or_switch,
        fixed="",
    )
    random_state: Any = parameter(None, "int, Generator, RandomState or None", fixed="")

    @with_other_names
    def fit(self, y: Any, exog: Any = None) -> ESNForecaster:
        """Choose models of the series and fit them.

        Parameters
        ----------
        y : array of shape (n_samples,) or (n_samples, n_outputs), Series, DataFrame, or a list
            Rows at equal time steps, at least 5, or at least 30 for "dynamics". Missing values are
            NaN; "dynamics" does not accept any. Without `panel`, columns are variables of one
            system that are forecast together, and a list contains trajectories of that system, the
            last of which is continued by `forecast`. With `panel`, columns and the items of a list
            are separate series. One table may name its ids, times and targets by `sequence_column`,
            `time_column` and `target_column`. Columns of dtype bool are 0 and 1; their forecasts,
            intervals and sample paths are floats between 0 and 1.
        exog : array of shape (n_samples, n_exog), DataFrame, or a list of them, optional
            Inputs that are known for each row of y and for the rows to be forecast, such as a
            force, a price or a holiday. An unordered column of pandas dtype `category` (of
            Categorical or Enum in polars) becomes a column of 0 and 1 for each of its categories.
            Later calls accept these categories only, in any order of the dtype. Ordered categories
            must be numbers, which are taken as such. With `target_column` such inputs are columns
            of y, and `exog` must be None.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If the series is too short, the index has gaps or no frequency, a value is infinite, y
            and exog differ in their number of rows, if there is no such column, or a parameter is
            invalid.

        Warns
        -----
        UserWarning
            If all values are equal, if neither networks in closed loop nor models of series
            forecast better than the mean of the data, if numbers in the index may be dates, if a
            series without dates has a season that was not set, if `season` has no effect because
            several tables are trajectories of one system, if the last rows have odd values
            (`outliers`), or if without `time_column` one of several columns rises by equal steps in
            every series, as times do.
        """
        check_parameters(self)
        check_together(self.search, self.panel, self.sequence_column)
        # with small matrices more BLAS threads only cost time, and would change the last bits
        with restored_on_error(self), one_blas_thread():
            table = self._long = LongTable.of(y, exog, Columns.of(self))
            skips = self._panel_kind is not None and self.errors == "warn"
            errors: Errors = {}
            y, exog = table.split(y, exog, errors=errors if skips else None)
            report, failures = ProgressReport(self.verbose), None
            with table.in_messages():
                if skips:
                    search = self._new_search(report)
                    panel, found, failures = fit_panel(y, exog, search, errors, **self._reading())
                else:
                    rows = Panel.read(y, exog, panel=self._panel_kind, **self._reading())
                    search = self._new_search(report)
                    panel, found = rows.panel, search.run(rows)
            self._publish(panel, search, found, failures and failures.worded(table.worded))
            report.finish()
            self._warn_of_odd([0] * len(self._fits))
            if self.time_column is None:
                warn_of_times([fit.rows for fit in self._fits], self._panel)
            if self._failed is not None:
                self._failed.warn()
        return self

    def _new_search(self, report: ProgressReport) -> ModelSearch:
        """Return the search for models that is defined by the parameters."""
        way = self.search if isinstance(self.search, str) else "dynamics"
        way = way if self._panel_kind is None else "series"
        seed = int(as_generator(self.random_state).integers(2**31))
        settings = self._settings(seed, report.follow)
        skips = self.errors == "warn"
        return ModelSearch(way, self.season, self.panel == "shared", settings, skips)

    def _publish(
        self, panel: Panel, search: ModelSearch, found: Found, failures: Failures | None
    ) -> None:
        """Set the fitted attributes."""
        self._failures = failures
        self._panel, self._fits, self._seed = panel, found.fits, search.settings.seed
        self._fixed = fixed_parameters(self)
        self.kind_, self.seasons_ = found.kind, found.seasons_of(panel, self._panel_kind == "each")
        self.search_results_, self.best_params_ = found.results, found.best_params
        self.best_score_, self._scores = found.best_score, found.scores
        (panel if failures is None else failures.panel).describe_columns(self)

    def _settings(self, seed: int, report: Report) -> Settings:
        return Settings(
            plans=plans_of_users(self.search),
            n_networks=self.n_networks,
            widths=self._widths(),
            horizon=None if isinstance(self.horizon, str) else self.horizon,
            seed=seed,
            n_jobs=self.n_jobs,
            report=report,
            keep_odd=self.outliers == "keep",
            reaches_farther=isinstance(self.clip, str),
        )

    def _widths(self) -> float:
        return 1.0 if isinstance(self.clip, str) else float(self.clip)

    @property
    def _panel_kind(self) -> Any:
        """The parameter `panel`, "each" if only a column of ids was named."""
        return panel_of(self.panel, self.sequence_column)

    @property
    def _table(self) -> LongTable:
        """The roles of columns; files of earlier versions have none."""
        return getattr(self, "_long", LongTable())

    def _reading(self) -> dict[str, Any]:
        """Return the parameters that define how `Panel` reads containers, by name."""
        table = self._table
        ids = table.id_place if table.labels else self.sequence_column
        return {"sequence_column": ids, "missing_values": self.missing_values}

    def _warn_of_odd(self, first_rows: Sequence[int]) -> None:
        """Warn of odd values from the given row of each series on, if `outliers` is "warn"."""
        if self.outliers == "warn":
            warn_of_odd(self._fits, self._panel, first_rows)

    def _memory_advice(self) -> str:
        """Return the advice for a failed memory check: which parameters to lower."""
        return "Lower n_networks, n_jobs or the n_units of search, or give fewer rows or series."

    @with_other_names
    def forecast(
        self, n_steps: int, exog: Any = None, context: Any = None, coverage: Any = None
    ) -> Any:
        """Forecast the rows that follow the training data or a context.

        Parameters
        ----------
        n_steps : int
            Number of rows to forecast.
        exog : array of shape (n_steps, n_exog), DataFrame, or one for each series, optional
            Known inputs of the forecast rows. With a context, they have shape
            (n_context + n_steps, n_exog) and begin with the inputs of the context. Columns that had
            categories in `fit` must be of dtype `category`, with some of the same categories. With
            `time_column` it has the columns of ids and times as well, in rows of any order: those
            of the forecast. Columns of targets are not read.
        context : array of shape (n_context, n_outputs), Series or DataFrame, optional
            Other rows of the same system, which the forecast continues; for "dynamics" only. The
            networks need its first rows to forget their initial states. With `target_column` it has
            the known inputs of its rows, and `exog` those of the steps alone.
        coverage : float or list of floats, optional
            Probabilities, such as 0.9, with which intervals should contain the value at each step.
            If the errors of earlier forecasts clearly differ between the phases of a season, such
            as the days of the week, so do the widths of the intervals, though less: in phases with
            small errors they are too wide.

        Returns
        -------
        array, Series, DataFrame, or list
            Forecasts in the container of y, whose index they continue. They are within the range of
            the training data, widened as `clip` allows, and the first rows do not depend on
            `n_steps`. With `coverage` a Series becomes a DataFrame with the columns "forecast",
            "lower 90%", "upper 90%" and so on; in a DataFrame these are the last level of the
            columns. For arrays these are along the last axis of an array of shape
            (n_steps, 1 + 2 n_coverages) or (n_steps, n_outputs, 1 + 2 n_coverages). With
            `time_column` it is a table of ids, times and targets, "y" and with `coverage` "y lower
            90%" and so on, in rows by id, in order of first appearance in `fit`, then by time.

        Raises
        ------
        ValueError
            If n_steps < 1, if a coverage is not between 0 and 1, if the context has fewer rows than
            a network needs as inputs, or if shapes, names, dates or categories do not match the
            training data.

        Warns
        -----
        RuntimeWarning
            If the forecast, or models with most of the weight in its average, reach the bounds that
            `clip` defines. The message names the step; the forecast is unreliable from that step
            on.
        UserWarning
            If the context is too short for networks to forget their initial states (the washout).
        """
        coverages = read_coverages(coverage)
        panel, points, bands = self._computed(n_steps, exog, context, coverages)
        panel, points, bands = completed(self._failed, panel, points, bands)
        return self._table.back(panel.wrap_all(points, bands, coverages), panel)

    def _computed(
        self, n_steps: Any, exog: Any, context: Any, coverages: Sequence[float]
    ) -> tuple[Panel, list[Array], list[Array]]:
        """Return the panel at the forecast origin, forecasts of its series, and their bands."""
        check_is_fitted(self)
        n_steps = self._check_steps(n_steps)
        panel, fits, known = self._start(n_steps, exog, context)
        report = ProgressReport(self.verbose)
        settings = self._settings(self._seed, report.follow)
        with one_blas_thread():
            points = self._points(panel, fits, known, n_steps)
            if not coverages:
                return panel, points, []
            bands = [
                fit.intervals(settings).ends(point, coverages)
                for fit, point in zip(fits, points, strict=True)
            ]
            report.finish()
        return panel, points, bands

    @with_other_names
    def simulate(
        self, n_steps: int, n_paths: int = 100, exog: Any = None, random_state: Any = None
    ) -> Any:
        """Draw sample paths of the series around its forecast.

        Random errors are added to the forecast. They have the distribution and the correlations of
        the errors of forecasts within the data, so that the paths together have the spread of the
        intervals of `forecast`.

        Parameters
        ----------
        n_steps : int
            Number of rows in each path.
        n_paths : int, default=100
            Number of paths.
        exog : as in `forecast`
        random_state : int, Generator, RandomState or None
            Seed of the paths. With None, the `random_state` of the estimator is used. In a panel
            the random numbers of a series are drawn by its id.

        Returns
        -------
        array of shape (n_paths, n_steps) or (n_paths, n_steps, n_outputs), DataFrame, or list
            For a Series the paths are the columns of a DataFrame; for a DataFrame the number of the
            path is the first level of the columns. With `time_column` it is a table of ids, times
            and a column for each path, "0 y", "1 y" and so on. With the same seed, the first steps
            of the paths do not depend on `n_steps`.

        Raises
        ------
        ValueError
            As in `forecast`, or if n_paths < 1.
        """
        check_is_fitted(self)
        n_steps = self._check_steps(n_steps)
        n_paths = check_count("n_paths", n_paths, size=2 * n_steps * len(self._panel))
        panel, fits, known = self._start(n_steps, exog, None)
        report = ProgressReport(self.verbose)
        settings = self._settings(self._seed, report.follow)
        generator = as_generator(self.random_state if random_state is None else random_state)
        with one_blas_thread():
            points = self._points(panel, fits, known, n_steps)
            drawn = int(generator.integers(2**63))
            paths = [
                fit.intervals(settings).paths(point, n_paths, panel.generator_of(i, drawn))
                for i, (fit, point) in enumerate(zip(fits, points, strict=True))
            ]
            report.finish()
        panel, paths = completed(self._failed, panel, paths)
        return self._table.back(panel.wrap_paths(paths), panel)

    @with_other_names
    def update(self, y: Any, exog: Any = None) -> ESNForecaster:
        """Append later rows, so that forecasts start after them, without learning from them.

        Parameters
        ----------
        y : as in `fit`
            The rows that follow those passed to `fit` and to earlier calls of `update`. Missing
            values are replaced by their forecasts, and so are odd ones at the end (`outliers`).
        exog : as in `fit`
            Known inputs of these rows.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the rows do not begin right after the last known row, if the columns or categories
            differ from those in `fit`, if a value is not positive although models use its
            logarithm, or if a value is not between 0 and 1 although its column was bool in `fit`.

        Warns
        -----
        UserWarning
            If the last rows have odd values (`outliers`), or if a value is beyond the bounds of
            forecasts: these are then widened, but the models were not fitted to such values.
        """
        check_is_fitted(self)
        check_fixed(self, getattr(self, "_fixed", {}))  # missing in files of earlier versions
        failures = self._failed
        with restored_on_error(self):
            y, exog = self._table.split_later(y, exog, self._panel)
            every, reading = y, self._reading()
            ids = reading["sequence_column"]
            if failures is not None:
                y, exog = failures.without(y, exog, ids)
                if y is None:
                    self._failures = failures.after(self._panel, every, ids)
                    return self
            with self._table.in_messages():
                rows = self._panel.follow(y, exog, **reading)
            keep, n_later = self.outliers == "keep", [len(values) for values in rows.values]
            later = [
                fit.without_odd(*pair, keep=keep)
                for fit, *pair in zip(self._fits, rows.values, rows.known, strict=True)
            ]
            check_update(later, n_later, rows.panel)
            widths = self._widths()
            self._fits = [each.appended(widths) for each in later]
            ends = [fit.ending.end for fit in self._fits]
            self._panel = rows.panel
            if failures is not None:
                self._failures = failures.after(rows.panel, every, ids)
            self._warn_of_odd([end - n for end, n in zip(ends, n_later, strict=True)])
            warn_beyond_bounds(later, n_later, rows.panel)
        return self

    def select(self, ids: Any) -> ESNForecaster:
        """Return a forecaster of some of the series of a panel.

        Parameters
        ----------
        ids : list
            Ids of the series, in the order of the forecasts: those of a column of
            ids or a MultiIndex, names of columns, or numbers of the items of a list.

        Returns
        -------
        ESNForecaster
            A new forecaster. Its forecasts have the same bits.

        Raises
        ------
        ValueError
            If there is no such series, an id is named twice, or the forecaster has no panel.

        Examples
        --------
        >>> import numpy as np
        >>> from reservoir import ESNForecaster
        >>> y = np.random.default_rng(0).normal(size=(40, 3)).cumsum(axis=0)
        >>> model = ESNForecaster(panel="each", n_networks=1, random_state=0).fit(y)
        >>> model.select([2, 0]).forecast(5).shape
        (5, 2)
        """
        check_is_fitted(self)
        return some_of(self, ids)

    @classmethod
    def concat(cls, models: Any) -> ESNForecaster:
        """Return one forecaster of the series of several, which were fitted apart.

        Parameters
        ----------
        models : list of ESNForecaster
            Fitted forecasters with ``panel="each"`` and equal parameters, each of other series of
            the same kind of table. Only `n_jobs` and `verbose` may differ.

        Returns
        -------
        ESNForecaster
            A new forecaster with the parameters of the first, which forecasts as one does that was
            fitted to all series at once. The items of lists are numbered in turn.

        Raises
        ------
        ValueError
            If a series is in two of the models, if parameters or columns differ, or if the models
            are not those of separate series: one that is shared cannot be joined.
        TypeError
            If an item is no ESNForecaster.

        Examples
        --------
        >>> import numpy as np
        >>> from reservoir import ESNForecaster
        >>> parts = [np.random.default_rng(seed).normal(size=40).cumsum() for seed in (0, 1)]
        >>> models = [ESNForecaster(panel="each", n_networks=1).fit([part]) for part in parts]
        >>> both = ESNForecaster.concat(models).forecast(3)
        >>> bool((both[1] == models[1].forecast(3)[0]).all())
        True
        """
        return joined(list(models), cls)

    @property
    def failures_(self) -> dict[Any, str]:
        """The message of each series that could not be fitted, by its id."""
        check_is_fitted(self)
        return {} if self._failed is None else dict(self._failed.messages)

    @property
    def _failed(self) -> Failures | None:
        # missing in files of earlier versions
        return getattr(self, "_failures", None)

    @property
    def last_rows_(self) -> Any:
        """The known rows after which forecasts start: those of `fit` and `update`.

        They are in the container of y; for several series, a dict with the rows of each id. Missing
        values are filled, and odd last values are replaced unless ``outliers="keep"``, as the
        models continue them.
        """
        check_is_fitted(self)
        return self._table.back_past(self._panel.wrap_past([fit.rows for fit in self._fits]))

    def summary(self) -> str:
        """Return a summary of the kind of data and of the chosen models with their scores.

        Returns
        -------
        str
            Several lines of text.
        """
        check_is_fitted(self)
        return summary_of(self)

    # ------------------------------------------------------------------ steps of a forecast

    def _check_steps(self, n_steps: Any) -> int:
        # as many numbers, at least, for each variable of a series: models, points, bands
        n_columns = sum(each.n_outputs for each in self._panel.containers)
        return check_count("n_steps", n_steps, size=8 * n_columns)

    def _start(self, n_steps: int, exog: Any, context: Any) -> tuple[Panel, list[Fit], list[Array]]:
        """Return the panel and the fits at the forecast origin, and the known inputs after it."""
        missing, reading = self.missing_values, self._reading()
        if context is None:
            exog = self._table.future(exog, self._panel, n_steps)
            if self._failed is not None:
                _, exog = self._failed.without(None, exog, reading["sequence_column"])
            known = self._panel.read_known(
                exog,
                [n_steps] * len(self._fits),
                **reading,
                following=True,
                partner="the forecast",
            )
            return self._panel, self._fits, known
        context, exog = self._table.context(context, exog)
        rows = self._panel.read_context(context, exog, n_steps, missing_values=missing)
        (values,), (known_rows,) = rows.values, rows.known
        check_possible("context", self._fits[0], values)
        fit = self._fits[0].after(values, known_rows[: len(values)])
        return rows.panel, [fit], [known_rows[len(values) :]]

    def _points(
        self, panel: Panel, fits: list[Fit], known: list[Array], n_steps: int
    ) -> list[Array]:
        """Return the forecast of each series, (n_steps, n_outputs); warn if one was clipped."""
        found = [fit.forecast(n_steps, rows) for fit, rows in zip(fits, known, strict=True)]
        warn_of_bounds([n_free for _, n_free in found], n_steps, panel)
        return [levels for levels, _ in found]

    @property
    def predict(self) -> Any:
        """Not available: `forecast` returns the rows that follow the series."""
        raise AttributeError(
            "ESNForecaster has no predict: it continues the series of fit. Use "
            "`model.forecast(n_steps=12)`."
        )

    @property
    def score(self) -> Any:
        """Not available: `reservoir.model_selection.backtest` scores forecasts of past rows."""
        raise AttributeError(
            "ESNForecaster has no score: a forecast is scored against rows that fit has not seen. "
            "Use `reservoir.model_selection.backtest(model, y, horizon=12)`."
        )

    @property
    def plot(self) -> Any:
        """Not available: `reservoir.plotting.forecast` draws the forecast of a fitted model."""
        raise AttributeError(
            "ESNForecaster has no plot: its forecasts are numbers, which a function draws. Use "
            "`reservoir.plotting.forecast(model, 12, coverage=0.9)`."
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fits")

    def _repr_html_inner(self) -> str:
        return described_html(self, lambda: html_of(self))

"""A forecaster that chooses its models."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import (
    as_generator,
    check_choice,
    check_count,
    check_n_jobs,
    check_number,
)
from reservoir._workers import one_blas_thread
from reservoir.estimators.describe import Described, described_html
from reservoir.estimators.parameters import (
    check_parameters,
    documented,
    natural_or_switch,
    parameter,
)
from reservoir.estimators.reporting import progress, restored_on_error
from reservoir.estimators.series.checks import (
    check_together,
    check_update,
    read_coverages,
    warn_of_bounds,
)
from reservoir.estimators.series.fits import Fit, Settings
from reservoir.estimators.series.model_search import (
    Found,
    ModelSearch,
    check_search,
    plans_of_users,
)
from reservoir.estimators.series.panel import Panel
from reservoir.estimators.series.summary import html_of, summary_of

__all__ = ["ESNForecaster"]


def _check_clip(name: str, value: Any) -> None:
    if isinstance(value, str) and value == "auto":
        return
    if isinstance(value, str) or np.ndim(value) > 0:
        raise ValueError(f'clip={value!r} must be "auto" or a number of widths, at least 0.')
    check_number(name, value, low=0.0)


def _check_horizon(name: str, value: Any) -> None:
    if not (isinstance(value, str) and value == "auto"):
        check_count(name, value)


def _check_season(name: str, value: Any) -> None:
    if value is None:
        return
    if np.ndim(value) > 1 or np.size(value) == 0:
        raise ValueError(
            f"{name}={value!r} must be a number of rows per period, several, 1 for none, or None."
        )
    for each in np.atleast_1d(np.asarray(value, dtype=object)).tolist():
        check_number(name, each, low=1.0)


def _check_panel(name: str, value: Any) -> None:
    if value is not None:
        check_choice(name, value, ("each", "shared"))


def _check_missing(name: str, value: Any) -> None:
    check_choice(name, value, ("raise", "hold", "interpolate"))


@saved
@documented()
@dataclass(eq=False, repr=False, kw_only=True)
class ESNForecaster(Described, BaseEstimator):
    """Forecasts of a series, or of several variables together, with models that it chooses.

    `fit` chooses by the data. For series that follow a deterministic rule, flows and maps, chaotic
    or not, networks learn the rule: candidate echo state networks and ridge penalties are compared
    by closed loops within the data [1]_, and the best is fitted with several seeds. All other
    series, with trends, seasons and noise, are forecast by an average of models that are compared
    on held-out rows: networks in closed loop and for all horizons at once, linear autoregression,
    Theta [2]_, and the last season with drift, of logarithms and of the values. `summary` shows
    the choice. `forecast` returns the type of y: a Series or DataFrame with its dates continued, or
    an array.

    Parameters
    ----------
    {PARAMETERS}

    Attributes
    ----------
    kind_ : {"dynamics", "series"}
        Which of the two kinds of models was chosen.
    seasons_ : tuple of float
        Rows per period, ascending; empty for none.
    search_results_ : dict of arrays, for pandas.DataFrame
        For "series" a row for each model and series: `series` (its id; "all" for a panel that is
        "shared", with one row for each model), `model`, `scale` ("log" or
        "plain"), `error` (mean absolute error of forecasts of held-out rows, relative
        to the best model's) and `share` (in the average).
        For "dynamics" a row for each network and penalty: the network's parameters, `alpha` (per
        row), `score` (minus the mean decimal logarithm of the error of loops within the data, in
        standard deviations; greater is better), `score_left_out` (the score of loops in held-out
        blocks of the data), either NaN where such loops were not run, and `rank`. Radial
        units [3]_ have `n_units` (at most), `width` (of their bells, in standard
        deviations), `memory` (steps after which the weight of a row is 1 / e), `n_lags` and
        `skip`; they are chosen by `score_left_out` alone. `observed` is "all" if a row determines
        the next one, else "some", and `noise` is the error of one step in held-out rows, in
        standard deviations.
    best_params_ : dict
        For "dynamics" the parameters of the best network at its final size (parameters of radial
        units cannot be given in `search`); for "series" name and scale of the best model.
    best_score_ : float
        For "dynamics" the score of the best network; for "series" minus the error of the average
        relative to the error of the best naive forecast, the mean over series.
    n_features_in_ : int
        Variables that are forecast; series of a panel.
    feature_names_in_ : array of shape (n_features_in_,)
        Their names, if y had names that are all strings.

    See Also
    --------
    ESNRegressor : One network with given parameters.
    reservoir.model_selection.backtest : Errors of forecasts from many origins in a series.
    reservoir.model_selection.ClosedLoopSearchCV : The choice among given networks.
    NVARRegressor : Polynomials of lagged values instead of a network.
    reservoir.plotting.forecast : Draws history, forecast and intervals.
    reservoir.plotting.closed_loop_search : Draws `search_results_` of "dynamics".

    Notes
    -----
    Networks and penalties were chosen by resampling: those for "dynamics" over the systems of
    Gilpin (2021 [4]_), those for "series" over real and generated series. The choice
    between the two is made by one-step errors: where networks are much better than a linear
    autoregression of differences, there is a rule. In between, both forecast the end of the series.
    Forecasts are clipped to the range of the training data, widened by `clip` times its width.

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

    search: Any = parameter(
        "auto",
        '"auto", "dynamics", "series" or list of dicts',
        """Candidates: those that suit the data; networks for series that follow a rule; models for
        series with trends and seasons; or given networks, each a dict with
        `n_units` and optionally `spectral_radius` (default 0.05), `input_scaling` (0.3, of
        standardised rows), `bias_scaling` (1), `leak_rate` (1), `augment` (None, "square" or
        "even_square"), `n_lags` (1) and `skip` (1), as in ESNRegressor and NVARRegressor. Given
        networks keep their size, also on long series.""",
        check_search,
    )
    season: Any = parameter(
        None,
        "float or list of floats",
        """Rows per period, of one season or of several: 12, or [24, 168]. 1 means none. None uses
        the frequency of the index: months have 12, hours 24 and 168, and so on, if the rows
        contain two whole periods of the shortest, three of the others. "dynamics" uses no
        seasons.""",
        _check_season,
    )
    panel: Any = parameter(
        None,
        '"each" or "shared"',
        """None: columns are variables of one system. Otherwise columns are series that are forecast
        one by one, as are the series of a list, of a MultiIndex, or of a column of ids. "each"
        finds models for each series alone. "shared" learns from all series together: networks in
        closed loop and autoregressions have one readout for all series, each of which is
        standardised separately, and models are compared by the forecasts of all, so that they have
        the same shares in each average (other models have more where a series is too short for
        one). The last season, Theta, the direct network and the intervals are fitted to each
        series. All series have the seasons of the longest. This helps where series are short and
        similar. Both are of the kind "series".""",
        _check_panel,
    )
    sequence_column: Any = parameter(
        None,
        "int or str",
        """With `panel`: the column of y, and of exog, that contains the ids of series.""",
    )
    n_networks: int = parameter(
        3,
        "int",
        """Number of networks whose median is the forecast, and is fed back in closed loop.""",
        check_count,
    )
    clip: Any = parameter(
        "auto",
        '"auto" or float',
        """By how many widths of the range of the training data a forecast may leave it; "auto" is
        1. For "series" forecasts of nonnegative data are nonnegative, too.""",
        _check_clip,
    )
    horizon: Any = parameter(
        "auto",
        'int or "auto"',
        """Steps of the forecasts by which models are chosen. "auto" is, for "dynamics", a fifth of
        the series, at most 100, from 1500 rows on 150; for "series" a season, 8 to 60, and at most
        a fifth of the rows.""",
        _check_horizon,
    )
    missing_values: str = parameter(
        "raise",
        '{"raise", "hold", "interpolate"}',
        """How missing values in `exog` are treated: an error, the value before them, or a straight
        line. Missing values in y need no treatment: models do not learn them.""",
        _check_missing,
    )
    n_jobs: int | None = parameter(
        None,
        "int",
        """Workers for the candidate networks, or for the series of a panel (joblib). The result
        is the same to the bit: each network is fitted on one BLAS thread.""",
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
        """Find models of the series.

        Parameters
        ----------
        y : array of shape (n_samples,) or (n_samples, n_outputs), Series, DataFrame, or a list
            Rows at equal steps of time, 5 or more, for "dynamics" 30; missing values are NaN, and
            exclude "dynamics". Columns are variables of one system that are forecast together, and
            a list contains trajectories of it, the last of which is forecast; with `panel` columns
            and the items of a list are separate series.
        exog : array of shape (n_samples, n_exog), DataFrame, or a list of them, optional
            Known inputs of each row of y: a force, a price, a holiday.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If the series is too short, the index has gaps or no frequency, a value is infinite, y
            and exog differ in rows, or a parameter is invalid.

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
            rows = Panel.read(y, exog, panel=self.panel, **self._reading())
            search = self._new_search()
            self._publish(rows.panel, search, search.run(rows))
        return self

    def _new_search(self) -> ModelSearch:
        """Return the search for models that the parameters define."""
        way = self.search if isinstance(self.search, str) else "dynamics"
        way = way if self.panel is None else "series"
        seed = int(as_generator(self.random_state).integers(2**31))
        return ModelSearch(way, self.season, self.panel == "shared", self._settings(seed))

    def _publish(self, panel: Panel, search: ModelSearch, found: Found) -> None:
        """Set the fitted attributes."""
        self._panel, self._fits, self._seed = panel, found.fits, search.settings.seed
        self.kind_, self.seasons_ = found.kind, found.seasons
        self.search_results_, self.best_params_ = found.results, found.best_params
        self.best_score_ = found.best_score
        self.n_features_in_, names = panel.columns
        self.__dict__.pop("feature_names_in_", None)
        if names and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)

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

    def _reading(self) -> dict[str, Any]:
        """Return the parameters of reading, by name."""
        return {
            "sequence_column": self.sequence_column,
            "missing_values": self.missing_values,
        }

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
            Known inputs of the forecast rows; with a context (n_context + n_steps, n_exog), rows of
            the context first.
        context : array of shape (n_context, n_outputs), Series or DataFrame, optional
            For "dynamics": rows of the same system, after which to forecast. In the first of them
            networks forget their initial states.
        coverage : float or list of floats, optional
            Probabilities, such as 0.9, with which intervals are to contain the value of each step.

        Returns
        -------
        array, Series, DataFrame, or list
            In the container of y, with its index continued, within the range of the training data,
            widened by `clip`; its first rows do not depend on `n_steps`. With `coverage` a
            DataFrame with the columns "forecast", "lower 90%", "upper 90%" and so on (for a
            DataFrame as the last level of its columns); for arrays an array with these along its
            last axis, (n_steps, 1 + 2 n_coverages) or (n_steps, n_outputs, 1 + 2 n_coverages).

        Raises
        ------
        ValueError
            If n_steps < 1, a coverage is not between 0 and 1, the context is shorter than the
            past that a network uses, or shapes, names or dates do not fit.

        Warns
        -----
        RuntimeWarning
            If the forecast, or most models of its average, reach the bounds of `clip`. The message
            names the step; the forecast is unreliable from there on.
        UserWarning
            If the context is shorter than the washout.
        """
        check_is_fitted(self)
        n_steps = check_count("n_steps", n_steps)
        coverages = read_coverages(coverage)
        panel, fits, known = self._start(n_steps, exog, context)
        # files of earlier versions have no seed of fit
        settings = self._settings(getattr(self, "_seed", 0))
        with one_blas_thread():
            points = self._points(panel, fits, known, n_steps)
            if not coverages:
                return panel.wrap(points)
            bands = [
                fit.intervals(settings).ends(point, coverages)
                for fit, point in zip(fits, points, strict=True)
            ]
        return panel.wrap_bands(points, bands, coverages)

    def simulate(
        self, n_steps: int, n_paths: int = 100, exog: Any = None, random_state: Any = None
    ) -> Any:
        """Draw sample paths of the series around its forecast.

        Errors of forecasts within the data are mixed and added, so that each path varies as these
        errors do, and all paths together spread as the intervals of `forecast`.

        Parameters
        ----------
        n_steps : int
        n_paths : int, default=100
        exog : as in `forecast`
        random_state : int, Generator, RandomState or None
            None: the `random_state` of the estimator.

        Returns
        -------
        array of shape (n_paths, n_steps) or (n_paths, n_steps, n_outputs), DataFrame, or list
            For a Series a DataFrame with a column for each path; for a DataFrame one whose columns
            have the path as their first level. With the same seed the first steps do not depend on
            `n_steps`.

        Raises
        ------
        ValueError
            As `forecast`.
        """
        check_is_fitted(self)
        n_steps, n_paths = check_count("n_steps", n_steps), check_count("n_paths", n_paths)
        panel, fits, known = self._start(n_steps, exog, None)
        settings = self._settings(getattr(self, "_seed", 0))
        generator = as_generator(self.random_state if random_state is None else random_state)
        with one_blas_thread():
            points = self._points(panel, fits, known, n_steps)
            # a generator for each series: its paths do not depend on the length of others
            generators = map(np.random.default_rng, generator.integers(2**63, size=len(fits)))
            paths = [
                fit.intervals(settings).paths(point, n_paths, own)
                for fit, point, own in zip(fits, points, generators, strict=True)
            ]
        return panel.wrap_paths(paths)

    def update(self, y: Any, exog: Any = None) -> ESNForecaster:
        """Continue after later rows, without learning from them.

        Parameters
        ----------
        y : as in `fit`
            The rows that follow the rows of `fit` and of earlier updates. Missing values are
            replaced by their forecasts.
        exog : as in `fit`
            Known inputs of the same rows.

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
            rows = self._panel.follow(y, exog, **self._reading())
            check_update(self._fits, rows.values, rows.panel)
            self._fits = [
                fit.extended(*pair)
                for fit, *pair in zip(self._fits, rows.values, rows.known, strict=True)
            ]
            self._panel = rows.panel
        return self

    def summary(self) -> str:
        """Return the kind of the data, and the chosen models with their scores, as text.

        Returns
        -------
        str
        """
        check_is_fitted(self)
        return summary_of(self)

    # ------------------------------------------------------------------ steps of a forecast

    def _start(self, n_steps: int, exog: Any, context: Any) -> tuple[Panel, list[Fit], list[Array]]:
        """Return the panel and the fits at the forecast origin, and known inputs of the steps."""
        missing = self.missing_values
        if context is None:
            known = self._panel.read_known(
                exog,
                [n_steps] * len(self._fits),
                **self._reading(),
                following=True,
                partner="the forecast",
            )
            return self._panel, self._fits, known
        rows = self._panel.read_context(context, exog, n_steps, missing_values=missing)
        (values,), (known_rows,) = rows.values, rows.known
        fit = self._fits[0].after(values, known_rows[: len(values)])
        return rows.panel, [fit], [known_rows[len(values) :]]

    def _points(
        self, panel: Panel, fits: list[Fit], known: list[Array], n_steps: int
    ) -> list[Array]:
        """Return forecasts, (n_steps, n_outputs) each; warn where they were clipped."""
        found = [fit.forecast(n_steps, rows) for fit, rows in zip(fits, known, strict=True)]
        warn_of_bounds([n_free for _, n_free in found], n_steps, panel)
        return [levels for levels, _ in found]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fits")

    def _repr_html_inner(self) -> str:
        return described_html(self, lambda: html_of(self))

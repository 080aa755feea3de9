"""An overview of a fitted model: its rows, its network, its penalty and its errors."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackNoConvergence, eigs
from sklearn.base import is_classifier, is_regressor
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from reservoir._tables import container_of, sequence_lengths
from reservoir._typing import Array
from reservoir._validation import as_plain
from reservoir.dynamics import run
from reservoir.estimators import (
    ESNForecaster,
    LiquidStateMachine,
    ReservoirFeatures,
    ReservoirTransformer,
)
from reservoir.estimators.forecasting.forecast import forecast as free_run
from reservoir.estimators.forecasting.pipeline import Layout, walk
from reservoir.model_selection import ChannelImportance, channel_importance
from reservoir.plotting._forecast import forecast, names_in
from reservoir.plotting._penalty_path import penalty_path
from reservoir.plotting._picture import (
    NARROW,
    Picture,
    check_legend,
    legend_of_figure,
    matplotlib_modules,
    read_line_kw,
)
from reservoir.plotting._plot_arguments import columns, stamps_of
from reservoir.plotting._residuals import residuals
from reservoir.plotting._search_scores import closed_loop_search
from reservoir.plotting._spectrum import spectrum
from reservoir.plotting._states import states

_ROWS, _FREE_ROWS = 150, 50  # of the series, the last ones; the latter in closed loop as well
_WARM_UP = 1000  # rows before those whose states are drawn; all states need not fit into memory
_MOST_OUTPUTS, _MOST_SERIES, _MOST_NETWORKS = 6, 3, 4
_DENSE_UNITS, _LEADING = 1000, 30  # all eigenvalues of more units take more than seconds
_AHEAD = {"series": 24, "dynamics": 100}  # rows of a forecast without a season, by `kind_`


class _Panel(NamedTuple):
    """A part of the overview; ``draw(ax=..., legend=..., line_kw=...)`` draws it."""

    title: str
    draw: Callable[..., Any]
    is_wide: bool = False
    n_axes: int = 1


def overview(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    exog: Any = None,
    legend: bool | str = True,
    line_kw: Mapping[str, Any] | None = None,
    ax: Any = None,
) -> Any:
    """Draw what a fitted model is, in one figure: its rows, network, penalty and errors.

    It has a panel for each thing that the model has. A model of steps has the last rows of y
    with its predictions, and with a closed loop over the last of them if it was trained to
    predict its next input (`forecast`); the states of its last network; the
    eigenvalues of W (`spectrum`); the penalties that were tried (`penalty_path`); and the errors
    of its predictions after the washout (`residuals`), of several outputs those of the one with
    the largest errors relative to its range. A forecaster has its last rows and the next ones, with
    an interval of 90 %, and the models that it tried or averages (`closed_loop_search`). A model of
    whole sequences has the importance of their channels
    (`reservoir.model_selection.channel_importance`) in place of rows and errors. The networks
    are found inside pipelines, searches and `TransformedTargetRegressor`, up to four of them.

    Parameters
    ----------
    model : fitted estimator, pipeline or search
        An estimator of this package, or one of scikit-learn that contains such estimators.
    X : array of shape (n_samples, n_features), or sequences, default=None
        The rows, or whole sequences, on which the model is drawn, as in its `predict`; required if
        it has one. Of several sequences of rows the last one is drawn.
    y : array of shape (n_samples,) or (n_samples, n_outputs), or as in `fit`, default=None
        The targets of X, or their labels; required if the model has a `predict`.
    exog : array of shape (n_steps, n_exog), DataFrame, or one for each series, default=None
        Known inputs of the rows to forecast, for a `reservoir.ESNForecaster` that was fitted with
        such inputs.
    legend : bool or "outside", default=True
        Whether to draw legends: in a new figure above each panel, in given axes inside them, with
        "outside" to their right.
    line_kw : dict, default=None
        Properties of the curves that are the subject of each panel, as of
        `matplotlib.lines.Line2D`.
    ax : matplotlib Axes or array of Axes, default=None
        Axes to draw on, as many as there are panels, and one more for errors; by default those of
        a new figure, as wide as other figures and half as high for each row of panels.

    Returns
    -------
    array of shape (n_panels,) of matplotlib Axes
        Errors have two Axes, their autocorrelation and their distribution. Each panel is a part of
        one figure, ``axes[0].figure.figure``.

    Raises
    ------
    TypeError
        If `model` is not a fitted estimator or has nothing to draw, or if X or y is missing; or if
        X and y are given for an `ESNForecaster`, or `exog` for another model.
    ValueError
        If X and y have different numbers of rows, or `ax` has the wrong number of Axes.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    Examples
    --------
    >>> from reservoir import ESNRegressor, plotting
    >>> from reservoir.datasets import mackey_glass
    >>> series = mackey_glass(1000, random_state=0)
    >>> X, y = series[:-1], series[1:]
    >>> model = ESNRegressor(100, random_state=0).fit(X, y)
    >>> axes = plotting.overview(model, X, y)
    >>> [ax.get_title(loc="left") for ax in axes[:4]]
    ['last rows of y', 'states', 'eigenvalues of W', 'penalties']
    >>> axes[0].get_legend_handles_labels()[1]
    ['observed', 'prediction', 'closed loop', 'start of the forecast']
    """
    _check_model(model)
    with warnings.catch_warnings():
        # the rows of the training begin anew, and the errors of the first ones are not drawn
        warnings.filterwarnings("ignore", 'initial_state="last" continues from the end')
        panels = [*_panels(model, X, y, exog)]
    if not panels:
        raise TypeError(
            f"{type(model).__name__} has nothing that overview draws: no network, no predictions "
            "and no forecasts. Draw its rows by other functions of reservoir.plotting."
        )
    n_axes = [panel.n_axes for panel in panels]
    if ax is None:
        check_legend(legend)
        read_line_kw(line_kw)
        every = _new_axes(panels)
    else:
        given = Picture.several(ax, sum(n_axes), legend, line_kw, below=False)
        parts = np.split(np.array([each.ax for each in given]), np.cumsum(n_axes)[:-1])
        every = [list(part) for part in parts]
    for panel, axes in zip(panels, every, strict=True):
        target = axes[0] if panel.n_axes == 1 else np.array(axes)
        panel.draw(ax=target, legend=ax is not None and legend, line_kw=line_kw)
        axes[0].set_title(panel.title, loc="left", fontsize="medium")
        if ax is None and legend:
            legend_of_figure(axes)
    return np.array([each for axes in every for each in axes])


def _check_model(model: Any) -> None:
    """Raise if a model is not a fitted estimator."""
    if isinstance(model, type) or not hasattr(model, "get_params"):
        what = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise TypeError(
            f"model is {what}; it must be a fitted estimator, or a pipeline or search that "
            "contains one."
        )
    check_is_fitted(model)
    if hasattr(model, "cv_results_") and not hasattr(model, "best_estimator_"):
        raise ValueError(
            f"{type(model).__name__} was fitted with refit=False, so it has no fitted model. Use "
            "refit=True, or fit a model with the best parameters."
        )


def _new_axes(panels: Sequence[_Panel]) -> list[Any]:
    """Return the Axes of each panel, in a new figure; narrow panels are in pairs."""
    pyplot = matplotlib_modules().pyplot
    width, height = pyplot.rcParams["figure.figsize"]
    beside = width >= NARROW
    rows: list[list[_Panel]] = []
    for panel in panels:
        if beside and rows and not panel.is_wide and [p.is_wide for p in rows[-1]] == [False]:
            rows[-1].append(panel)
        else:
            rows.append([panel])
    parts = [1 if beside else row[0].n_axes for row in rows]
    tall = max(height, sum(parts) * height / (1 + beside))
    figure = pyplot.figure(figsize=(width, tall), layout="constrained")
    grid = figure.add_gridspec(len(rows), 2, height_ratios=parts)
    every = []
    for i, row in enumerate(rows):
        for j, panel in enumerate(row):
            place = figure.add_subfigure(grid[i, :] if len(row) == 1 else grid[i, j])
            shape = (1, panel.n_axes) if beside else (panel.n_axes, 1)
            every.append(list(place.subplots(*shape, squeeze=False).ravel()))
    return every


# ---------------------------------------------------------------------- panels


def _panels(model: Any, X: Any, y: Any, exog: Any) -> Iterator[_Panel]:
    """Yield the panels of a fitted model."""
    inside = [leaf for leaf, _ in _leaves(model, None)]
    if isinstance(inside[-1], ESNForecaster):
        if X is not None or y is not None:
            raise TypeError("An ESNForecaster draws its own last rows. Omit X and y.")
        yield from _of_forecaster(inside[-1], exog)
        return
    if exog is not None:
        raise TypeError("exog is for an ESNForecaster. Give inputs as columns of X.")
    predicts = is_regressor(model) or is_classifier(model)
    if predicts and (X is None or y is None):
        raise TypeError(
            f"The overview of {type(model).__name__} needs X and y, the rows that it predicts: "
            f"`plotting.overview(model, X, y)`."
        )
    whole = any(_is_of_sequences(leaf) for leaf in inside)
    if whole and predicts:
        found = channel_importance(model, X, y, random_state=0)
        yield _Panel("importance of channels", partial(_draw_importance, found), is_wide=True)
    shown = None
    if not whole and X is not None:
        X, y = _one_sequence(inside, X, y)
        shown = _Rows.of(model, X, y) if predicts else None
        if shown is not None:
            title = "last labels, as probabilities" if is_classifier(model) else "last rows of y"
            yield _Panel(title, shown.draw, is_wide=True)
        yield from _states_of(model, X, y)
    yield from _of_networks(inside)
    if shown is not None and not is_classifier(model):
        yield from shown.errors([leaf.washout_ for leaf in inside if hasattr(leaf, "washout_")])


def _leaves(model: Any, X: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the fitted estimators inside a model, with the X that each receives, if it is known."""
    while hasattr(model, "best_estimator_") or isinstance(model, FrozenEstimator):
        model = getattr(model, "best_estimator_", None) or model.estimator
    if isinstance(model, TransformedTargetRegressor):
        yield from _leaves(model.regressor_, X)
    elif isinstance(model, Pipeline):
        for k, (_, step) in enumerate(model.steps):
            if step is not None and step != "passthrough":
                yield from _leaves(step, X)
                X = None if X is None or k == len(model) - 1 else step.transform(X)
    elif isinstance(model, (FeatureUnion, ColumnTransformer)):
        of_union = isinstance(model, FeatureUnion)
        for part in model.transformer_list if of_union else model.transformers_:
            if not isinstance(part[1], str):
                yield from _leaves(part[1], X if of_union else None)
    else:
        yield model, X
        if hasattr(model, "features_"):  # of whole sequences
            yield model.features_, None


def _is_of_sequences(leaf: Any) -> bool:
    """Whether an estimator has one row of results for a whole sequence."""
    of_last = getattr(leaf, "target", None) == "last"
    return of_last or isinstance(leaf, (LiquidStateMachine, ReservoirFeatures))


def _one_sequence(inside: Sequence[Any], X: Any, y: Any) -> tuple[Any, Any]:
    """Return X and y, or of several sequences the last ones."""
    if container_of(X) != "table":
        return X[len(X) - 1], None if y is None else y[len(y) - 1]
    ids = (getattr(leaf, "sequence_column", None) for leaf in inside)
    column = next((each for each in ids if each is not None), None)
    last = slice(-sequence_lengths(X, column)[0][-1], None)
    y = None if y is None else _safe_indexing(y, last)
    levels = getattr(getattr(y, "index", None), "nlevels", 1)
    return _safe_indexing(X, last), y.droplevel(list(range(levels - 1))) if levels > 1 else y


class _Rows(NamedTuple):
    """Observed rows, predictions, and the outputs of a closed loop over the last rows."""

    table: Any
    names: list[str] | None
    truth: Array
    fit: Array
    free: Array | None

    @classmethod
    def of(cls, model: Any, X: Any, y: Any) -> _Rows:
        """Return the rows of a model of steps; a classifier has a column for each class."""
        predicted = np.asarray(model.predict(X))
        if is_classifier(model):
            classes = np.asarray(model.classes_)
            names: Any = [f"class {each}" for each in classes]
            truth = (np.asarray(y).reshape(-1, 1) == classes).astype(float)
            fit = (predicted.reshape(-1, 1) == classes).astype(float)
            fit = np.asarray(model.predict_proba(X)) if hasattr(model, "predict_proba") else fit
        else:
            truth, fit, names = columns("y", y), columns("predictions", predicted), names_in(y)
        if truth.shape != fit.shape:
            raise ValueError(
                f"y has shape {np.shape(y)}, but the predictions for X have shape "
                f"{predicted.shape}. Give the targets of the rows of X."
            )
        free = None if is_classifier(model) else _closed_loop(model, X, fit.shape)
        return cls(y, names, truth, fit, free)

    def draw(self, **style: Any) -> None:
        """Draw the last rows."""
        n, q = min(_ROWS, len(self.truth)), min(_MOST_OUTPUTS, self.truth.shape[1])
        named = {"prediction": self.fit[-n:, :q]}
        if self.free is not None:
            named["closed loop"] = self.free[:, :q]
        labels = self.names and self.names[:q]
        times = _times(self.table, len(self.truth), n)
        ax = forecast(self.truth[-n:, :q], named, index=times, labels=labels, **style)
        _name_steps(ax, times)

    def errors(self, washouts: Sequence[Any]) -> Iterator[_Panel]:
        """Yield a panel of the errors of one output, those that are largest for its range."""
        n = len(self.truth)
        first = min(max([n // 10, *(int(np.max(each)) for each in washouts)]), n // 2)
        truth: Any = np.ma.masked_invalid(self.truth[first:])
        errors, spreads = truth - self.fit[first:], np.ma.filled(truth.std(axis=0), 0.0)
        sizes = np.ma.filled((errors**2).mean(axis=0), 0.0) / np.where(spreads > 0, spreads, 1) ** 2
        worst = int(np.argmax(sizes))
        rows = errors[:, worst].compressed()
        if len(rows) > 2 and np.ptp(rows) > 0:
            name = self.names[worst] if self.names else f"output {worst}"
            of = f" of {name}" if len(sizes) > 1 or self.names else ""
            yield _Panel(f"errors{of}", partial(residuals, rows), is_wide=True, n_axes=2)


def _closed_loop(model: Any, X: Any, shape: tuple[int, int]) -> Array | None:
    """Return the outputs of a closed loop over the last rows; None if there is no such loop.

    Rows from the first on that is further away than the range of the targets are NaN.
    """
    n, n_rows = min(_FREE_ROWS, shape[0] // 3), len(X)
    try:
        layout = Layout(walk(model))
        layout.check_trained_for_loop()
    except (TypeError, ValueError):
        return None
    if layout.feedback or n < 2:
        return None
    later = np.asarray(_safe_indexing(X, slice(n_rows - n + 1, None)), dtype=float)
    exog = later[:, layout.columns[layout.n_outputs :]] if layout.n_exog else None
    context = _safe_indexing(X, slice(0, n_rows - n + 1))
    rows = np.asarray(free_run(model, n, context=context, exog=exog), float).reshape(n, -1)
    low, high = layout.to_units(layout.network.progress.target_range)
    far = (np.abs(rows - (low + high) / 2) > high - low).any(axis=1)
    rows[np.maximum.accumulate(far)] = np.nan
    return rows


def _times(table: Any, n_rows: int, n: int) -> Array:
    """Return the times of a table's last n rows, or if it has none their numbers among all rows."""
    stamps = stamps_of(table)
    return np.arange(n_rows - n, n_rows) if stamps is None else stamps[-n:]


def _name_steps(ax: Any, times: Array) -> None:
    ax.set_xlabel("time" if times.dtype.kind == "M" else "time step")


def _states_of(model: Any, X: Any, y: Any) -> Iterator[_Panel]:
    """Yield a panel of the states of the last network whose inputs are known."""
    found, n_rows = None, len(X)
    for leaf, inputs in _leaves(model, _safe_indexing(X, slice(-_ROWS - _WARM_UP, None))):
        network = getattr(leaf, "reservoir_", None)
        if inputs is None:
            continue
        if hasattr(leaf, "states"):
            found = np.asarray(leaf.states(inputs))
        elif isinstance(leaf, ReservoirTransformer):
            found = np.asarray(leaf.transform(inputs))
        elif network is not None and network.n_features == np.shape(inputs)[1]:
            found = np.asarray(run(network, as_plain("X", inputs)))
    if found is not None:
        n = min(_ROWS, len(found))
        times = _times(y, n_rows, n)

        def draw(**style: Any) -> None:
            _name_steps(states(found[-n:], index=times, **style), times)

        yield _Panel("states", draw, is_wide=True)


def _of_networks(inside: Sequence[Any]) -> Iterator[_Panel]:
    """Yield panels of the eigenvalues of each network, and of the penalties that were tried."""
    networks = [leaf.reservoir_ for leaf in inside if hasattr(leaf, "reservoir_")]
    for k, network in enumerate(networks[:_MOST_NETWORKS]):
        values, which = _eigenvalues(network.W)
        name = f", network {k + 1}" if len(networks) > 1 else ""
        if len(values):
            yield _Panel(f"{which}eigenvalues of W{name}", partial(spectrum, values))
    for leaf in inside:
        if getattr(leaf, "alpha_scores_", None) is None or not hasattr(leaf, "alphas_"):
            continue
        scores = columns("scores", leaf.alpha_scores_)[:, :_MOST_OUTPUTS]
        if np.isfinite(scores).all(axis=1).any():
            chosen = np.ravel(leaf.alpha_)[:_MOST_OUTPUTS]
            yield _Panel("penalties", partial(penalty_path, leaf.alphas_, scores, selected=chosen))


def _eigenvalues(W: Any) -> tuple[Array, str]:
    """Return the eigenvalues of W, of a large W the largest ones, if they are found in a second.

    They are not if all have the same modulus, as those of a ring.
    """
    if W.shape[0] <= _DENSE_UNITS:
        return np.linalg.eigvals(W.toarray() if sp.issparse(W) else W), ""
    start = np.random.default_rng(0).normal(size=W.shape[0])
    bounds: Any = {"tol": 1e-3, "ncv": 4 * _LEADING, "maxiter": 15, "v0": start}
    try:
        values = eigs(W.astype(float), _LEADING, return_eigenvectors=False, **bounds)
    except ArpackNoConvergence as error:
        values = error.eigenvalues
    return values, f"{len(values)} largest "


def _draw_importance(found: ChannelImportance, **style: Any) -> None:
    """Draw a bar for each channel, with the standard deviation over permutations."""
    picture = Picture(style["ax"], style["legend"], style["line_kw"])
    theme, rows = picture.theme, -np.arange(len(found.importances_mean))
    bars = {"color": theme.colour(0), "edgecolor": theme.ink, "linewidth": 0.6}
    picture.ax.barh(rows, found.importances_mean, **bars)
    line = theme.marker("|", 6) | {"color": theme.ink, "linewidth": theme.width(1.2)}
    for row, mean, std in zip(rows, found.importances_mean, found.importances_std, strict=True):
        label = "_" if row else "standard deviation over permutations"
        picture.ax.plot([mean - std, mean + std], [row, row], **picture.subject(line, label))
    picture.label_bands(found.names or [f"channel {k}" for k in range(len(rows))])
    picture.ax.set_xlabel("loss of score if permuted")
    picture.finish()


# ---------------------------------------------------------------------- forecasters


def _of_forecaster(model: Any, exog: Any) -> Iterator[_Panel]:
    """Yield panels of the forecasts of each series, and of the models of a forecaster."""
    past = model.last_rows_
    length = min(map(len, past.values())) if isinstance(past, dict) else len(past)
    seasons = model.seasons_
    known = sum(seasons.values(), ()) if isinstance(seasons, dict) else seasons
    ahead = max([math.ceil(2 * each) for each in known], default=_AHEAD[model.kind_])
    n_steps = max(1, min(ahead, length // 3)) if exog is None else len(exog)
    model.forecast(n_steps, exog)  # raises before there is a figure
    for name in [*past][:_MOST_SERIES] if isinstance(past, dict) else [None]:
        draw = partial(forecast, model, n_steps, exog=exog, series=name, coverage=0.9)
        title = "last rows and forecast" if name is None else f"series {name}, one of {len(past)}"
        yield _Panel(title, draw, is_wide=True)
    shares = "share" in model.search_results_
    title = "models in the average" if shares else "networks that were tried"
    yield _Panel(title, partial(closed_loop_search, model, n_named=3), is_wide=True)

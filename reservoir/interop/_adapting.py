"""Adapters of estimators to the interfaces of aeon and sktime."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sklearn.base import is_classifier, is_regressor


def as_aeon(estimator: Any) -> Any:
    """Adapt an estimator of whole sequences to aeon's interface.

    The result takes aeon's collections, (n_cases, n_channels, n_timepoints) or a list of arrays
    (n_channels, n_timepoints_i), and works wherever aeon's own estimators do: in its pipelines,
    ensembles and benchmarks. `estimator` receives the series with time as the first axis.

    Parameters
    ----------
    estimator : scikit-learn estimator
        A classifier, regressor or transformer that takes a 3-D array (n_sequences, n_steps,
        n_channels) or a list of arrays (n_steps_i, n_channels): `ESNSequenceClassifier`,
        `ESNSequenceRegressor`, `ReservoirFeatures`, `RNNClassifier` with ``target="last"``, or a
        pipeline that begins with `ReservoirFeatures`. A transformer must return one row per
        sequence.

    Returns
    -------
    aeon estimator
        A `BaseClassifier`, `BaseRegressor` or `BaseCollectionTransformer` of aeon. Its only
        parameter is `estimator`; nested parameters are set as ``estimator__n_units``. `fit` stores
        the fitted estimator as `estimator_`. Missing values are accepted if `estimator` accepts
        them (`missing_values`).

    Raises
    ------
    ImportError
        If aeon is not installed.
    TypeError
        If `estimator` is not a classifier, a regressor or a transformer.

    See Also
    --------
    as_sktime : The same for sktime.
    reservoir.model_selection.from_channels_first : Converts aeon's collections to time first.

    Examples
    --------
    >>> from aeon.datasets import load_basic_motions  # doctest: +SKIP
    >>> from reservoir import ESNSequenceClassifier
    >>> from reservoir.interop import as_aeon
    >>> X, y = load_basic_motions(split="train")  # doctest: +SKIP
    >>> clf = as_aeon(ESNSequenceClassifier(100, random_state=0))  # doctest: +SKIP
    >>> clf.fit(X, y).score(*load_basic_motions(split="test"))  # doctest: +SKIP
    1.0
    """
    kind = _kind_of(estimator, "aeon")
    return getattr(_load("_aeon_estimators", "aeon"), f"Aeon{kind}")(estimator)


def as_sktime(estimator: Any) -> Any:
    """Adapt an estimator of whole sequences, or a forecaster of series, to sktime's interface.

    The result works wherever sktime's own estimators do. A sequence estimator takes sktime's panels
    in any of their types, with series of equal or different lengths; `estimator` receives them with
    time first, and the time index is not used.

    Parameters
    ----------
    estimator : scikit-learn estimator
        A classifier, regressor or transformer that takes a 3-D array (n_sequences, n_steps,
        n_channels) or a list of arrays (n_steps_i, n_channels), as in `as_aeon`; or an
        `ESNForecaster`.

    Returns
    -------
    sktime estimator
        A `BaseClassifier`, `BaseRegressor`, `BaseTransformer` (from panels to tables) or
        `BaseForecaster` of sktime. Its only parameter is `estimator`; nested parameters are set as
        ``estimator__n_units``. `fit` stores the fitted estimator as `estimator_`. Missing values
        are accepted if `estimator` accepts them (`missing_values`). A forecaster predicts intervals
        and quantiles, takes known inputs as X (one row for every step up to the last one
        requested), forecasts all columns of y together, and continues from later rows with
        `update`, without refitting.

    Raises
    ------
    ImportError
        If sktime is not installed.
    TypeError
        If `estimator` is not a classifier, a regressor, a transformer or a forecaster.

    See Also
    --------
    as_aeon : The same for aeon.
    reservoir.model_selection.from_channels_first : Converts sktime's arrays to time first.

    Examples
    --------
    >>> from sktime.datasets import load_basic_motions  # doctest: +SKIP
    >>> from reservoir import ESNSequenceClassifier
    >>> from reservoir.interop import as_sktime
    >>> X, y = load_basic_motions(split="train")  # doctest: +SKIP
    >>> clf = as_sktime(ESNSequenceClassifier(100, random_state=0))  # doctest: +SKIP
    >>> clf.fit(X, y).score(*load_basic_motions(split="test"))  # doctest: +SKIP
    1.0

    >>> from sktime.datasets import load_airline  # doctest: +SKIP
    >>> from reservoir import ESNForecaster
    >>> forecaster = as_sktime(ESNForecaster(random_state=0))  # doctest: +SKIP
    >>> forecast = forecaster.fit(load_airline()).predict(fh=[1, 2, 3])  # doctest: +SKIP
    >>> forecast.index.astype(str).tolist()  # doctest: +SKIP
    ['1961-01', '1961-02', '1961-03']
    """
    kind = _kind_of(estimator, "sktime")
    module = "_sktime_forecaster" if kind == "Forecaster" else "_sktime_estimators"
    return getattr(_load(module, "sktime"), f"Sktime{kind}")(estimator)


def _kind_of(estimator: Any, library: str) -> str:
    """Return the kind of an estimator; raise a TypeError if it is of no supported kind."""
    if not isinstance(estimator, type) and hasattr(estimator, "fit"):
        if is_classifier(estimator):
            return "Classifier"
        if is_regressor(estimator):
            return "Regressor"
        if hasattr(estimator, "transform"):
            return "Transformer"
        if library == "sktime" and hasattr(estimator, "forecast"):
            return "Forecaster"
    raise TypeError(
        "estimator must be a classifier, a regressor or a transformer of whole sequences, such as "
        f"an ESNSequenceClassifier; got {estimator!r}."
    )


def _load(module: str, library: str) -> Any:
    """Import a module that needs a library; if it is missing, the error names the package."""
    try:
        import_module(library)
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        raise ImportError(f"as_{library} needs {library}. Run: pip install {library}") from error
    return import_module(f"reservoir.interop.{module}")

"""A meta-transformer that applies scikit-learn's transformers to collections of sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, MetaEstimatorMixin, TransformerMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from reservoir._tables import container_of
from reservoir._tables.frames import stacked
from reservoir._typing import Array
from reservoir._validation import check_instance, check_unmasked
from reservoir.estimators.forecasting.row_steps import Affine, affine
from reservoir.model_selection._scoring import continues_in


def _inner_has(name: str) -> Any:
    """Return a check for `available_if`: whether the inner transformer has a method."""

    def check(self: PerStep) -> bool:
        getattr(self.transformer_ if hasattr(self, "transformer_") else self.transformer, name)
        return True

    return check


class PerStep(  # type: ignore[call-arg]
    MetaEstimatorMixin,
    TransformerMixin,
    BaseEstimator,
    auto_wrap_output_keys=None,  # the inner transformer wraps; scikit-learn cannot wrap a list
):
    """Apply a transformer of tables to the rows of a collection of sequences.

    Scikit-learn's scalers and other transformers only take tables. `PerStep` fits one on the rows
    of all sequences together, and transforms each sequence.

    Parameters
    ----------
    transformer : transformer
        The transformer of rows, for example `sklearn.preprocessing.StandardScaler()`. It must
        return one row for each input row, and should not mix rows.

    Attributes
    ----------
    transformer_ : transformer
        The fitted clone of `transformer`.
    n_features_in_ : int
        Number of columns of each sequence.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if the sequences are DataFrames.

    Notes
    -----
    A 2-D X is one table and is passed to the transformer unchanged, with y. For sequences, y is not
    passed, so transformers that need it only work on tables. `set_output` is passed to the
    transformer: the items of a list then become DataFrames, while a 3-D array stays an array.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> from reservoir.model_selection import PerStep
    >>> Xs = [np.array([[0.0], [1.0]]), np.array([[2.0], [3.0], [4.0]])]
    >>> scaled = PerStep(StandardScaler()).fit_transform(Xs)
    >>> [x.ravel().round(2) for x in scaled]
    [array([-1.41, -0.71]), array([0.  , 0.71, 1.41])]
    """

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit(self, X: Any, y: Any = None) -> PerStep:
        """Fit the transformer on the rows of all sequences.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or list, object array or 3-D array of them
        y : array-like, default=None
            Passed to the transformer for a 2-D X only.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If there is no sequence, the numbers of columns differ, or a reservoir in the
            transformer has ``initial_state="last"`` and X is a collection.
        """
        check_instance("transformer", self.transformer)
        items = _items(X)
        if items is not None and continues_in(self.transformer):
            raise ValueError(
                'PerStep transforms each sequence alone, and initial_state="last" in '
                f"{self.transformer!r} would begin each at the end of the rows of all. Use "
                'initial_state="zeros" there, or a ReservoirTransformer without PerStep, which '
                "accepts sequences itself."
            )
        transformer = clone(self.transformer)
        self.transformer_ = (
            transformer.fit(X, y) if items is None else transformer.fit(stacked(items))
        )
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit the transformer, and transform each sequence.

        Parameters
        ----------
        X, y
            As in `fit`.

        Returns
        -------
        X_new : as from `transform`; for a table as from the transformer's own `fit_transform`
        """
        if _items(X) is not None or not hasattr(self.transformer, "fit_transform"):
            return self.fit(X, y).transform(X)
        check_instance("transformer", self.transformer)
        self.transformer_ = clone(self.transformer)
        return self.transformer_.fit_transform(X, y)

    def transform(self, X: Any) -> Any:
        """Transform each sequence.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        X_new : same type of container as X
            Sequences of shape (n_samples_i, n_features_out).
        """
        check_is_fitted(self)
        return _apply(self.transformer_.transform, X)

    @available_if(_inner_has("inverse_transform"))
    def inverse_transform(self, X: Any) -> Any:
        """Apply the inverse transformation to each sequence.

        Parameters
        ----------
        X : as returned by `transform`

        Returns
        -------
        X_original : same type of container as X
        """
        check_is_fitted(self)
        return _apply(self.transformer_.inverse_transform, X)

    @available_if(_inner_has("get_feature_names_out"))
    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the transformer's names of the output columns.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the input columns, passed to the transformer.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        return self.transformer_.get_feature_names_out(input_features)

    @available_if(_inner_has("set_output"))
    def set_output(self, *, transform: str | None = None) -> PerStep:
        """Set the container of the tables that the transformer returns.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            None leaves the setting unchanged.

        Returns
        -------
        self
        """
        for inner in (self.transformer, getattr(self, "transformer_", None)):
            if inner is not None:
                inner.set_output(transform=transform)
        return self

    @property
    def n_features_in_(self) -> int:
        """Number of columns seen in fit."""
        try:
            check_is_fitted(self)
        except ValueError as error:
            raise AttributeError(f"{type(self).__name__} has no n_features_in_ yet.") from error
        return self.transformer_.n_features_in_

    @property
    def feature_names_in_(self) -> Array:
        """Names of the columns seen in fit."""
        return self.transformer_.feature_names_in_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "transformer_")

    def __sklearn_tags__(self) -> Any:
        # the tags of the inner transformer, plus collections of sequences
        tags = super().__sklearn_tags__()
        inner = get_tags(self.transformer)
        tags.input_tags = inner.input_tags
        tags.input_tags.three_d_array = True
        tags.target_tags.required = inner.target_tags.required
        tags.transformer_tags = inner.transformer_tags
        tags.non_deterministic = inner.non_deterministic
        tags.requires_fit = True
        return tags


@affine.register
def _(step: PerStep, n_columns: int) -> Affine | None:
    return affine(step.transformer_, n_columns)


def _items(X: Any) -> list[Any] | None:
    """Check and return the sequences of a collection; None if X is a table."""
    check_unmasked("X", X)
    if container_of(X) == "table":
        return None
    items = list(X)
    if not items:
        raise ValueError("X contains no sequences (n_sequences=0); at least 1 is required.")
    shapes = [np.shape(item) for item in items]
    for i, shape in enumerate(shapes):
        if len(shape) != 2 or shape[1] != shapes[0][1]:
            raise ValueError(
                f"Sequence {i} of X has shape {shape}, but sequence 0 has {shapes[0]}: all must be "
                "2-D with the same number of columns."
            )
    return items


def _apply(method: Any, X: Any) -> Any:
    """Return the results of a method for a table, or for each sequence in the container of X."""
    items = _items(X)
    if items is None:
        return method(X)
    results = [method(item) for item in items]
    for i, (item, result) in enumerate(zip(items, results, strict=True)):
        if result.shape[0] != len(item):
            raise ValueError(
                f"Sequence {i} has {len(item)} rows but its transform has {result.shape[0]}: "
                "PerStep needs a transformer that returns one row per input row."
            )
    # back into the container of X; a 3-D array cannot contain sparse matrices
    if not isinstance(X, np.ndarray):
        return results
    if X.ndim == 3:
        return np.stack([r.toarray() if sp.issparse(r) else np.asarray(r) for r in results])
    packed = np.empty(len(results), dtype=object)
    packed[:] = results
    return packed

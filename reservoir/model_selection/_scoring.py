"""A scorer that excludes the washout, the rows in which the reservoir warms up."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring, get_scorer

from reservoir._tables import sequence_lengths
from reservoir._tables.targets import with_targets
from reservoir._typing import Array
from reservoir._validation import caller_level, check_count, check_unmasked


def washout_scorer(
    scoring: Any = None, washout: int = 100, *, sequence_column: int | str | None = None
) -> Callable[..., Any]:
    """Make a scorer that ignores the first rows of each test sequence.

    The estimator predicts all rows, and the predictions and targets of the washout are then
    dropped. Rows whose target is NaN are dropped as well if the estimator, or one inside it, has
    ``missing_targets="skip"``; scikit-learn's own scorers reject them.

    Parameters
    ----------
    scoring : str, callable, list, tuple, dict or None, default=None
        The scoring, as in scikit-learn. None means the accuracy for classifiers, else R^2.
    washout : int, rows, default=100
        Number of rows dropped at the start of each sequence: the `context` of `ContextSplit`.
    sequence_column : int, str or None, default=None
        Id column of a test table with several sequences. None uses the parameter
        `sequence_column` of the estimator, also inside a Pipeline.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y, sample_weight=None)``, for `scoring=` in
        `sklearn.model_selection.cross_val_score`, `GridSearchCV` and others.

    Raises
    ------
    TypeError, ValueError
        If `washout` is not an integer of at least 0 or `scoring` is unknown; when called, if a
        sequence has no row after the washout, y is not one target per row, or no row has a target.

    Notes
    -----
    Sequences are those of the test set: all rows of a table, runs of equal ids in the
    `sequence_column`, the outer levels of a pandas MultiIndex, or the items of a list, object array
    or 3-D array. The remaining rows are concatenated before they are scored, so every scorer of
    scikit-learn works on lists of sequences too: `cross_val_score` and the search classes split a
    list into lists, with each sequence as one sample, and pass these lists to the scorer.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from reservoir.model_selection import washout_scorer
    >>> X = np.arange(10.0)[:, None]
    >>> y = 2.0 * X[:, 0]
    >>> model = LinearRegression().fit(X, y)
    >>> y[0] = 1000.0
    >>> scoring = washout_scorer("neg_mean_absolute_error", washout=1)
    >>> bool(abs(scoring(model, X, y)) < 1e-9)
    True
    """
    washout = check_count("washout", washout, minimum=0)
    if isinstance(scoring, str):
        get_scorer(scoring)  # raise for an unknown name here, not in the middle of a search
    return _WashoutScorer(scoring, washout, sequence_column)


class _WashoutScorer:
    """The scorer that `washout_scorer` returns: a class, so that it can be pickled and printed."""

    def __init__(self, scoring: Any, washout: int, sequence_column: int | str | None) -> None:
        self.scoring = scoring
        self.washout = washout
        self.sequence_column = sequence_column

    def __repr__(self) -> str:
        column = "" if self.sequence_column is None else f", sequence_column={self.sequence_column}"
        return f"washout_scorer({self.scoring!r}, washout={self.washout}{column})"

    def __call__(self, estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        scoring = self.scoring
        if scoring is None:
            scoring = "accuracy" if is_classifier(estimator) else "r2"
        # scikit-learn's scorer receives an estimator that drops the washout, and trimmed targets
        column = self.sequence_column
        if column is None:
            column = sequence_column_of(estimator, "washout_scorer")
        lengths, is_table = sequence_lengths(X, column)
        if column is None and is_table and len(lengths) == 1:
            _warn_of_context_run_twice(estimator)
        trimmed = _Trimmed(estimator, self.washout, column)
        scorer = check_scoring(trimmed, scoring=scoring)
        targets = None if y is None else trimmed.trim(X, y, "y")
        weight = None
        if sample_weight is not None:
            weight = trimmed.trim(X, sample_weight, "sample_weight")
        # rows without a target
        if targets is not None and "skip" in parameters_of(estimator, "missing_targets").values():
            targets, known = with_targets(targets, labels=is_classifier(estimator))
            targets, weight = targets[known], None if weight is None else weight[known]
            trimmed.only(known)
        if weight is None:
            return scorer(trimmed, X, targets)
        return scorer(trimmed, X, targets, sample_weight=weight)


def sequence_column_of(estimator: Any, caller: str | None = None) -> int | str | None:
    """Return the id column of X, the `sequence_column` of an estimator or of one inside it."""
    found = set(parameters_of(estimator, "sequence_column").values())
    if len(found) > 1:
        raise ValueError(
            f"The estimator has several values of sequence_column: {sorted(map(str, found))}. "
            + (f"Give {caller} the value" if caller else "Use the same value everywhere")
            + " for X: sequence_column=..."
        )
    return found.pop() if found else None


def parameters_of(estimator: Any, parameter: str) -> dict[str, Any]:
    """Return the values, except None, of a parameter in an estimator and the estimators inside."""
    if not hasattr(estimator, "get_params"):
        return {}
    return {
        name: value
        for name, value in estimator.get_params(deep=True).items()
        if name.rpartition("__")[2] == parameter and value is not None
    }


def continues_in(estimator: Any) -> list[str]:
    """Return the names of the parameters ``initial_state`` that are "last"."""
    found = parameters_of(estimator, "initial_state")
    return [name for name, value in found.items() if isinstance(value, str) and value == "last"]


def _warn_of_context_run_twice(estimator: Any) -> None:
    """Warn if some steps of a model start from zeros, and others where training ended."""
    last, found = continues_in(estimator), parameters_of(estimator, "initial_state")
    if last and any(isinstance(value, str) and value == "zeros" for value in found.values()):
        warnings.warn(
            f'{last[0]}="last", but another step starts from zeros. A step that continues from the '
            "end of training would run over the rows that ContextSplit puts before a test block a "
            'second time. Use "zeros" in all steps with ContextSplit, and "last" in all without.',
            UserWarning,
            stacklevel=caller_level(),
        )


class _Trimmed:
    """A fitted estimator whose predictions lack the first rows of each sequence.

    Scorers of scikit-learn receive it instead of the estimator. All other attributes are passed
    through.
    """

    def __init__(self, estimator: Any, washout: int, sequence_column: int | str | None) -> None:
        self._estimator = estimator
        self._washout = washout
        self._sequence_column = sequence_column
        self._known: Array | None = None

    def only(self, known: Array) -> None:
        """Restrict predictions by a mask of the rows remaining after each sequence's washout."""
        self._known = known

    def __getattr__(self, name: str) -> Any:
        own = ("_estimator", "_washout", "_sequence_column", "_known")
        if name.startswith("_Trimmed") or name in own:
            raise AttributeError(name)  # while unpickling, before the fields are there
        value = getattr(self._estimator, name)
        if name not in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
            return value

        def respond(X: Any) -> Array:
            rows = self.trim(X, value(X), name)
            return rows if self._known is None else rows[self._known]

        respond.__name__ = name  # scikit-learn reads it
        return respond

    def trim(self, X: Any, rows: Any, name: str) -> Array:
        """Remove the washout of each sequence, and concatenate the remaining rows.

        `X` determines where the sequences start. `rows` are predictions, targets or weights, one
        entry per row of X, in the same type of container; `name` is theirs in messages. Returns
        (n_remaining,) or (n_remaining, n_outputs).
        """
        # the rows by sequence
        check_unmasked(name, rows)
        lengths, is_table = sequence_lengths(X, self._sequence_column)
        parts = [rows] if is_table else list(rows)
        if is_table and len(lengths) > 1:
            parts = np.split(np.asarray(rows), np.cumsum(lengths)[:-1])
        parts = [np.asarray(part) for part in parts]
        if [part.shape[:1] for part in parts] != [(n,) for n in lengths]:
            raise ValueError(
                f"{name} must have one entry per row of X, in the container of X; the sequences "
                f"of X have {lengths} rows, {name} has {[part.shape for part in parts]}. For one "
                "label per sequence use scikit-learn's scorer."
            )
        # a sequence without a row to score would silently be missing from the score
        short = [i for i, n in enumerate(lengths) if n <= self._washout]
        if short:
            raise ValueError(
                f"washout={self._washout} leaves no rows to score: test sequence {short[0]} has "
                f"n_samples={lengths[short[0]]}. Lower it, or use longer test sequences."
            )
        return np.concatenate([part[self._washout :] for part in parts])

"""Forecasts of fields: one network per block of places, all with the same weights and readout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from reservoir._saving import saved
from reservoir._tables import Sequences, read_series
from reservoir._typing import Array
from reservoir._validation import (
    check_count,
    check_penalties,
    check_switch,
    continued,
    ending_of,
)
from reservoir._workers import threads_for
from reservoir.dynamics.closed_loop import loop_limit
from reservoir.estimators.describe import Described
from reservoir.estimators.esn.source_estimator import SourceRegressor
from reservoir.estimators.forecasting.predictor import Predictor
from reservoir.estimators.parameters import (
    check_parameters,
    documented,
    parameter,
    read_dtype,
    with_other_names,
)
from reservoir.estimators.progress import warn_of_leaving
from reservoir.estimators.reading import asks_for_pandas, framed, in_frames
from reservoir.estimators.reporting import restored_on_error
from reservoir.estimators.time_series_estimator import TimeSeriesEstimator
from reservoir.loops.loop_by_loop import evenly_spaced_starts
from reservoir.loops.path_loops import mean_log_errors
from reservoir.readouts.selection import is_path

__all__ = ["LocalForecaster"]

_LEARNED = 0.8  # share of each sequence that is learned from while free runs choose the penalty
_N_STARTS = 8  # free runs
_LONGEST = 50  # steps of each
_FEWEST_ROWS = 20  # of a sequence whose end is held out

# parameters of the inner estimator that blocks cannot have, and the value that each must have
_REFUSED = {
    "feedback": (False, "the outputs of a block are inputs of its neighbours"),
    "bidirectional": (False, "a forecast has no later rows"),
    "time_column": (None, "all columns are places"),
    "sequence_column": (None, "all columns are places"),
    "readout": (None, "the readout of all blocks is the built-in one"),
    "alpha_per_target": (False, "all blocks have one penalty"),
}


def _check_estimator(name: str, value: Any) -> None:
    if not isinstance(value, SourceRegressor):
        raise TypeError(f"{name} must be an ESNRegressor or an NVARRegressor; got {value!r}.")
    for each, (wanted, why) in _REFUSED.items():
        given = getattr(value, each, wanted)
        if given is not wanted:
            raise ValueError(
                f"{name} has {each}={given!r}, which LocalForecaster cannot use: {why}. Use "
                f"{each}={wanted}."
            )


def _check_alphas(name: str, value: Any) -> None:
    if value is None:
        return
    if check_penalties(name, value).ndim != 1 or np.size(value) == 0:
        raise ValueError(
            f"{name} must have shape (n_alphas,); it has shape {np.shape(value)}. Use alpha of the "
            "estimator for a single penalty."
        )


@saved
@documented()
@dataclass(eq=False, repr=False)
class LocalForecaster(MetaEstimatorMixin, Described, BaseEstimator):
    """Forecaster of many coupled variables: one small network per block of places.

    Where neighbours act on neighbours (waves, traffic along a road), each block has a network that
    receives its own places and those beside it. All networks have the same weights and one readout,
    which is learned from the rows of all blocks; in a forecast they exchange their outputs at every
    step [1]_. All places must obey one law: pass values in common units, with one centre and one
    width for all columns. A scaler of each column breaks the law that they share.

    Parameters
    ----------
    {PARAMETERS}

    Attributes
    ----------
    estimator_ : estimator
        The network of a block: `estimator`, fitted to all blocks.
    neighbourhood_ : array of shape (n_blocks, n_heard)
        The places that each block receives, first those that it owns.
    alpha_ : float
        The penalty used.
    alphas_ : array of shape (n_alphas,)
        The penalties that were tried; only if there was a choice.
    alpha_scores_ : array of shape (n_alphas,)
        Error of the free runs with each penalty, in standard deviations of the field: the geometric
        mean over the steps of each run, then the median over the runs.
    n_features_in_ : int
        Number of places.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the places; defined only if X has names that are all strings.

    See Also
    --------
    ESNRegressor : A single network of all variables; for few of them.

    References
    ----------
    .. [1] J. Pathak, B. Hunt, M. Girvan, Z. Lu and E. Ott, "Model-free prediction of large
       spatiotemporally chaotic systems from data: a reservoir computing approach", Physical Review
       Letters 120, 024102, 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import ESNRegressor, LocalForecaster
    >>> from reservoir.datasets import kuramoto_sivashinsky
    >>> u = kuramoto_sivashinsky(1010)
    >>> network = ESNRegressor(100, augment="square", input_scaling=0.1, alpha=1e-2, random_state=0)
    >>> model = LocalForecaster(network, block=8, halo=4).fit(u[:1000])
    >>> bool(np.abs(model.forecast(10) - u[1000:]).max() < 0.25 * u.std())
    True
    """

    estimator: Any = parameter(
        MISSING,
        "ESNRegressor or NVARRegressor",
        """The network of a block, which is cloned. It learns the next row of the places that the
        block owns. ``n_lags="auto"`` is 1 here, and ``input_alpha="auto"`` is None.""",
        _check_estimator,
    )
    block: int = parameter(
        1,
        "int",
        "Number of adjacent places that a block owns; the number of places is a multiple of it.",
        check_count,
        kw_only=True,
    )
    halo: int = parameter(
        3,
        "int, at least 0",
        "Number of places on either side of a block that its network receives, too.",
        lambda name, value: check_count(name, value, minimum=0),
        kw_only=True,
    )
    periodic: bool = parameter(
        True,
        "bool",
        """Whether the places are a ring, so that the first is beside the last. If not, the value
        at an edge stands for the places beyond it.""",
        check_switch,
        kw_only=True,
    )
    neighbourhood: Any = parameter(
        None,
        "array of int of shape (n_blocks, n_heard)",
        """The places that each block receives, instead of those by `halo` and `periodic`, for a
        grid or any graph. The first `block` columns are the places that a block owns; each place
        belongs to one block. Places may be repeated, as at an edge.""",
        kw_only=True,
    )
    alphas: Any = parameter(
        None,
        "array of shape (n_alphas,)",
        """Penalties to choose from, by free runs of the whole field in the last fifth of the rows.
        None takes them from `alpha` of the estimator, where a number is the penalty, and "auto" is
        a path of powers of ten.""",
        _check_alphas,
        kw_only=True,
    )

    # ------------------------------------------------------------------ learning

    def fit(self, X: Any, y: Any = None) -> LocalForecaster:
        """Learn the next row of the field from each row.

        Parameters
        ----------
        X : array of shape (n_steps, n_places), DataFrame, or list of these
            The field, or several recordings of it; at least three rows each.
        y : None
            Not used: the targets are the next rows.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If `y` is given, or a parameter or X is invalid; the message gives a remedy.
        """
        if y is not None:
            raise TypeError("LocalForecaster learns the next row of X, and takes no y. Use fit(X).")
        check_parameters(self)
        inner = clone(self.estimator)
        # both would be chosen by rows of single blocks
        for name, value in (("n_lags", 1), ("input_alpha", None)):
            if isinstance(getattr(inner, name, None), str):
                inner.set_params(**{name: value})
        with restored_on_error(self):
            rows = self._read(X, inner, 3, reset=True)
            self.neighbourhood_ = self._neighbours(rows[0].shape[1])
            for name in ("alphas_", "alpha_scores_"):
                self.__dict__.pop(name, None)
            if self.alphas is not None or is_path(inner.alpha):
                self._choose_penalty(inner, rows)
                inner.set_params(alpha=float(self.alphas_[_best(self.alpha_scores_)]))
            self.estimator_ = self._learn(inner, rows)
            self.alpha_ = float(self.estimator_.alpha_)
            self._state: Array | None = None
            self._last, self._ended = rows[-1][-1], None
            if len(rows) == 1:  # after several recordings a forecast begins from a context
                self._state = self._field().after(rows[0][:-1])
                self._ended = ending_of(X if hasattr(X, "shape") else X[0])
        return self

    def _learn(self, inner: Any, rows: Sequence[Array]) -> Any:
        """Return a network fitted to all blocks, each of which is a sequence."""
        owned = self.neighbourhood_[:, : self.block]
        Xs = [each[:-1, heard] for each in rows for heard in self.neighbourhood_]
        return clone(inner).fit(Xs, [each[1:, own] for each in rows for own in owned])

    def _choose_penalty(self, inner: Any, rows: Sequence[Array]) -> None:
        """Set the penalties, and the errors of free runs with each in rows that are held out."""
        _check_choice(inner, min(map(len, rows)))
        if self.alphas is not None:
            inner = clone(inner).set_params(alpha=np.asarray(self.alphas, dtype=float))
        cuts = [int(_LEARNED * len(each)) for each in rows]
        held_out = min(len(each) - cut for each, cut in zip(rows, cuts, strict=True))
        learned = [each[:cut] for each, cut in zip(rows, cuts, strict=True)]
        field = _Field(self._learn(inner, learned), self.neighbourhood_, self.block)
        n_steps = min(_LONGEST, held_out // 2)
        lengths = [len(each) - 1 for each in rows]
        starts = evenly_spaced_starts(cuts, lengths, n_steps, _N_STARTS)
        states = np.stack(
            [
                state
                for i, each in enumerate(rows)
                for state in field.states_before(each, [t for k, t in starts if k == i])
            ]
        )
        first = np.stack([rows[i][t] for i, t in starts])
        followed = np.stack([rows[i][t + 1 : t + 1 + n_steps] for i, t in starts], axis=1)
        spread = np.full(first.shape[1], np.concatenate(learned).std() or 1.0)
        self.alphas_ = np.asarray(field.network.estimator.alphas_)
        errors = []
        for readout in field.readouts(self.alphas_):  # one by one, to save memory
            outputs, _ = field.run(readout, states, first, n_steps)
            logs = mean_log_errors(outputs[:, None], followed, spread)
            errors.append(10 ** np.median(logs))
        self.alpha_scores_ = np.array(errors)

    # ------------------------------------------------------------------ using the fitted model

    @with_other_names
    def forecast(self, n_steps: int, *, context: Any = None) -> Any:
        """Forecast the field in closed loop.

        Parameters
        ----------
        n_steps : int
            Number of rows to forecast.
        context : array of shape (n_context, n_places), optional
            Rows after which the forecast begins; the networks start as those of `predict`. By
            default it begins after the last row of `fit`.

        Returns
        -------
        array of shape (n_steps, n_places)

        Raises
        ------
        ValueError
            If n_steps < 1, the context is no table of as many places, or it is missing after a fit
            to several recordings.

        Warns
        -----
        RuntimeWarning
            If a place leaves the range of training by more than ten times its width, or the loop
            diverges; the message gives the step and the place.
        """
        check_is_fitted(self)
        n_steps = check_count("n_steps", n_steps, size=len(self._last))
        field, state, last, ended = self._field(), self._state, self._last, self._ended
        if context is not None:
            (rows, *others) = self._read(context, self.estimator_, 1)
            if others:
                raise ValueError(
                    f"context has {1 + len(others)} sequences, but one field is forecast. Pass one "
                    "table."
                )
            state, last = field.after(rows[:-1]), rows[-1]
            ended = ending_of(context if hasattr(context, "shape") else context[0], ended)
        if state is None:
            raise ValueError(
                "The model was fitted to several recordings, so that there is no last row to "
                "continue from. Pass context, the rows before the forecast."
            )
        outputs, n_valid = field.run(field.network.readout(), state[None], last[None], n_steps)
        made = outputs[:, 0].astype(self._last.dtype)
        reach = field.network.progress.target_range
        bounds = np.array([[reach[0].min()], [reach[1].max()]])
        warn_of_leaving([(made, n_valid)], np.repeat(bounds, made.shape[1], axis=1), clipped=None)
        if not asks_for_pandas(self):
            return made
        index = None if ended is None else continued(ended, n_steps)
        return framed(made, index, getattr(self, "feature_names_in_", None))

    def predict(self, X: Any) -> Any:
        """Forecast one step from each row.

        Parameters
        ----------
        X : array of shape (n_steps, n_places), DataFrame, or list of these

        Returns
        -------
        array of shape (n_steps, n_places), or list of these
            Row t is the forecast of row t + 1.
        """
        check_is_fitted(self)
        rows = self._read(X, self.estimator_, 1)
        made = [self._field().over(each)[0] for each in rows]
        several = isinstance(X, (list, tuple)) or np.ndim(X) == 3
        if not asks_for_pandas(self):
            return made if several else made[0]
        sequences = Sequences(tuple(rows), "list" if several else "table")
        names = getattr(self, "feature_names_in_", None)
        return in_frames(made if several else made[0], X, sequences, names)

    def score(self, X: Any, y: Any = None) -> float:
        """Return R^2 of the forecasts of one step, the mean over places.

        Parameters
        ----------
        X : as in `fit`
        y : None
            Not used.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        rows = self._read(X, self.estimator_, 2)
        made = [self._field().over(each[:-1])[0] for each in rows]
        return float(r2_score(np.concatenate([each[1:] for each in rows]), np.concatenate(made)))

    set_output = TimeSeriesEstimator.set_output

    def _read(self, X: Any, inner: Any, least: int, *, reset: bool = False) -> list[Array]:
        """Return the rows of each recording, in the precision of the network."""
        sequences = read_series(self, X, reset=reset, dtype=read_dtype(inner.dtype))
        for i, n_rows in enumerate(sequences.lengths):
            if n_rows < least:
                which = "" if len(sequences) == 1 else f" in sequence {i}"
                raise ValueError(
                    f"X has {n_rows} row(s){which}; at least {least} are needed, since each row is "
                    "forecast from the one before. Pass more rows."
                )
        return list(sequences.arrays)

    def _neighbours(self, n_places: int) -> Array:
        """Return the places that each block receives, those that it owns first."""
        block, halo = self.block, self.halo
        if n_places % block:
            raise ValueError(
                f"block={block} does not divide the {n_places} places. Use a divisor of {n_places}."
            )
        if self.neighbourhood is not None:
            return _checked_places(self.neighbourhood, block, n_places)
        if self.periodic and block + 2 * halo > n_places:
            raise ValueError(
                f"halo={halo} on both sides of block={block} is more than the ring of {n_places} "
                "places. Use a smaller halo, or periodic=False."
            )
        around = np.r_[0:block, -halo:0, block : block + halo]
        heard = np.arange(0, n_places, block)[:, None] + around
        return heard % n_places if self.periodic else np.clip(heard, 0, n_places - 1)

    def _field(self) -> _Field:
        return _Field(self.estimator_, self.neighbourhood_, self.block)

    def _description(self) -> dict[str, str]:
        """Return sizes and the penalty, for HTML."""
        n_blocks, n_heard = self.neighbourhood_.shape
        own = f"{n_blocks} of {self.block} places, each receives {n_heard}"
        return {"blocks": own, "penalty": f"{self.alpha_:.3g}"}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")


class _Field:
    """The network of a block, run at all blocks side by side.

    `places` are those that each block receives, (n_blocks, n_heard); it owns the first `block`.
    """

    def __init__(self, estimator: Any, places: Array, block: int) -> None:
        self.network: Predictor = estimator._predictor()
        self.places, self.owned = places, places[:, :block]

    def over(self, rows: Array, states: list[Array] | None = None) -> tuple[Array, list[Array]]:
        """Return the forecast of the row after each row, and the states of blocks at the end."""
        heard = Sequences(tuple(rows[:, each] for each in self.places), "list")
        if states is None:
            states = self.network.starts(None, heard, as_in_training=True)
        outputs, ends = self.network.run_over(heard, states)
        made = np.empty(rows.shape, self.network.dtype)
        made[:, self.owned] = np.stack(outputs, axis=1)
        return made, ends

    def after(self, rows: Array) -> Array:
        """Return the states of blocks after rows, (n_blocks, state_size)."""
        return np.stack(self.over(rows)[1])

    def states_before(self, rows: Array, times: Sequence[int]) -> list[Array]:
        """Return the states of blocks before rows at ascending times, each as by `after`."""
        states, found = None, []
        for begin, end in pairwise([0, *times]):
            _, states = self.over(rows[begin:end], states)
            found.append(np.stack(states))
        return found

    def readouts(self, alphas: Array) -> list[Any]:
        """Return coefficients and intercept with each penalty."""
        path = self.network.readout_path(alphas.tolist())
        assert path is not None  # as the built-in readout has one
        return path

    def run(self, readout: Any, states: Array, rows: Array, n_steps: int) -> tuple[Array, int]:
        """Run the field in closed loop from several starts.

        `states` have shape (n_starts, n_blocks, state_size), `rows`, (n_starts, n_places), are the
        inputs of the first step. Returns (n_steps, n_starts, n_places), and the step at which a run
        left the range of numbers whose squares are finite; later rows repeat the last one.
        """
        coef, intercept = readout
        flat = states.reshape(len(rows) * len(self.places), -1)
        source, state = self.network.source.trimmed(flat)  # type: ignore[attr-defined]
        made, fed = np.empty((n_steps, *rows.shape)), rows.copy()
        limit, lost = loop_limit(source.dtype), np.zeros(len(rows), dtype=bool)
        n_valid = n_steps
        with threads_for(source.width), np.errstate(over="ignore", invalid="ignore"):
            for k in range(n_steps):
                heard = fed[:, self.places].reshape(len(state), -1)
                features, state = source.advance(state, heard)
                outputs = (features @ coef.T + intercept).reshape(len(rows), *self.owned.shape)
                left = ~(np.abs(outputs) < limit).all(axis=(1, 2))
                if left.any():
                    lost |= left
                    n_valid = min(n_valid, k)
                made[k][:, self.owned] = outputs
                made[k][lost] = fed[lost]
                fed = made[k].astype(fed.dtype)
        return made, n_valid


def _best(errors: Array) -> int:
    """Return the place of the least error; of equal ones the last, of the largest penalty."""
    return len(errors) - 1 - int(np.argmin(errors[::-1]))


def _check_choice(inner: Any, n_rows: int) -> None:
    """Check that free runs can choose the penalty; `n_rows` has the shortest recording."""
    if getattr(inner, "input_alpha", None) is not None:
        raise ValueError(
            f"input_alpha={inner.input_alpha!r} of the estimator is a penalty beside the one "
            "that free runs choose. Use input_alpha=None, or a number as alpha."
        )
    if inner.alpha_selection != "auto":
        raise ValueError(
            f"alpha_selection={inner.alpha_selection!r} of the estimator compares rows of "
            "single blocks, but LocalForecaster chooses the penalty by runs of the whole "
            'field. Use alpha_selection="auto", or a number as alpha.'
        )
    if n_rows < _FEWEST_ROWS:
        raise ValueError(
            "The penalty is chosen by free runs in the last fifth of the rows, and a recording has "
            f"{n_rows} rows, fewer than {_FEWEST_ROWS}. Use a number as alpha."
        )


def _checked_places(value: Any, block: int, n_places: int) -> Array:
    """Return a neighbourhood of integers whose first columns are a partition of the places."""
    places = np.asarray(value)
    n_blocks = n_places // block
    if places.dtype.kind not in "iu" or places.ndim != 2 or places.shape[1] < block:
        raise ValueError(
            f"neighbourhood must be an array of integers of shape (n_blocks, n_heard) with n_heard "
            f">= block={block}; got dtype {places.dtype} and shape {places.shape}."
        )
    if len(places) != n_blocks or places.min() < 0 or places.max() >= n_places:
        raise ValueError(
            f"neighbourhood has {len(places)} rows, and places from {places.min()} to "
            f"{places.max()}; {n_places} places in blocks of {block} need {n_blocks} rows, and "
            f"places from 0 to {n_places - 1}."
        )
    counts = np.bincount(places[:, :block].ravel(), minlength=n_places)
    if (counts != 1).any():
        place = int(np.argmax(counts != 1))
        raise ValueError(
            f"The first {block} column(s) of neighbourhood, the places that blocks own, contain "
            f"place {place} {counts[place]} times; each place must belong to one block. Put "
            "places that a block only receives into later columns."
        )
    return places.astype(np.int64)

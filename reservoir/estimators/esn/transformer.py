"""Transformer that returns reservoir states as features."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from reservoir._saving import saved
from reservoir._tables import Sequences
from reservoir._typing import Array
from reservoir._validation import as_generator, check_choice, resolve_washout
from reservoir.dynamics.feature_source import Run
from reservoir.dynamics.held_reservoir import Training
from reservoir.dynamics.open_loop import room_for_states
from reservoir.dynamics.saturation import Record, held_by_bias
from reservoir.estimators.describe import Described, description_of_reservoir, no_certificate
from reservoir.estimators.esn.readout_model import initial_states, warn_of_range
from reservoir.estimators.esn.sources import reservoir_source
from reservoir.estimators.parameters import documented, shared
from reservoir.estimators.progress import Progress
from reservoir.estimators.reading import Columns, DataReader
from reservoir.estimators.reporting import restored_on_error
from reservoir.estimators.session import StateStream

__all__ = ["ReservoirTransformer"]

_AFTER_GAP = (
    "Steps behind this one see the gap only with an index, which "
    'set_output(transform="pandas") on the pipeline keeps. To cross-validate, warm up each test '
    'block with the rows before it: initial_state="zeros" in all steps, with ContextSplit and '
    'washout_scorer. For a new start without this warning, use initial_state="steady" or '
    '"zeros".'
)


@saved
@documented()
@dataclass(eq=False, repr=False)
class ReservoirTransformer(
    Described, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Transform a series into the states of a reservoir that it drives.

    The result has one row of states per row of X. `fit` builds the reservoir, and learns nothing
    from the values of X; `transform` continues from its end. Several sequences are passed as for
    `ESNRegressor`. `reservoir.forecast` closes the loop of a pipeline of transformers and a
    regressor, such as a deep reservoir.

    The defaults differ from those of `ESNRegressor` (300 units with leak rates 0.5 and 0.3, chosen
    on many tasks): 100 units without a leak are few features for the next step, and remember the
    last rows only. ``ReservoirTransformer(300, leak_rate=(0.5, 0.3))`` has the same reservoir.

    The states contain no ids: a network behind them would read several sequences as one. Lists and
    3-D arrays stay what they are, and a MultiIndex stays with ``set_output(transform="pandas")``. A
    column of ids, or of times, passes beside the states, as column 0 in
    ``make_column_transformer(("passthrough", [0]), (ReservoirTransformer(sequence_column=0),
    [0, 1]))``. A ridge needs no ids.

    Parameters
    ----------
    {PARAMETERS}

    Attributes
    ----------
    reservoir_ : reservoir.dynamics.Reservoir
        The reservoir with its fixed weights.
    state_ : array of shape (n_units,)
        The state at the end of the (last) series of fit, or of the last chunk. With a
        `time_column` the shape is (n_units + 1,), and the last entry is the time of the last row,
        in steps since the first row.
    time_step_ : float or None
        The time between two rows to which `leak_rate` refers; None without a `time_column`.
    certificate_ : reservoir.stability.Certificate
        With ``bias="stable"``: the property that is proved, and the range of inputs that it covers.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns of X, if it had names.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from reservoir import ReservoirTransformer
    >>> from reservoir.datasets import narma
    >>> X, y = narma(1000, random_state=0)
    >>> pipe = make_pipeline(ReservoirTransformer(100, random_state=0), Ridge(1e-6))
    >>> bool(pipe.fit(X[:800], y[:800]).score(X[800:], y[800:]) > 0.7)
    True
    """

    n_units: int = shared.n_units
    _: KW_ONLY
    topology: Any = shared.topology
    in_degree: float = shared.in_degree
    weights: Any = shared.weights
    input_weights: Any = shared.input_weights
    spectral_radius: float | None = shared.spectral_radius
    leak_rate: Any = shared.leak_rate
    activation: Any = shared.activation
    input_scaling: Any = shared.input_scaling
    bias: Any = shared.bias
    bias_scaling: float = shared.bias_scaling
    time_column: Any = shared.time_column
    time_step: Any = shared.time_step
    random_state: Any = shared.random_state
    initial_state: Any = shared.but(
        "initial_state",
        text="""State before the first row. "last": `fit_transform` starts from zeros, and
        `transform` from the state at the end of `fit`, if fit received one sequence and X is one,
        as the `predict` of a network behind it does. It does so for the rows of fit as well, which
        an array does not show: an index of dates, periods or numbers does, and the run then starts
        from "steady" with a warning. "zeros": all runs start from zeros. "steady" and arrays: as in
        `ESNRegressor`. Cross-validation with `reservoir.model_selection.ContextSplit` needs "zeros"
        in all steps of a pipeline.""",
    )
    sequence_column: Any = shared.sequence_column
    dtype: Any = shared.dtype

    def _description(self) -> dict[str, str]:
        certificate = getattr(self, "certificate_", None)
        return description_of_reservoir(self, self.reservoir_, certificate)

    def fit(self, X: Any, y: Any = None) -> ReservoirTransformer:
        """Build the reservoir for the columns of X, and run over X to its end.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or sequences
        y : targets, optional
            Not learned from. `reservoir.forecast` of a pipeline begins with the last of them.

        Returns
        -------
        self
        """
        self._fit(X, y, keep=False)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Build the reservoir, and return its states when driven by X.

        Parameters
        ----------
        X, y
            As in `fit`.

        Returns
        -------
        States, as from `transform`, but starting from zeros where `transform` would continue from
        the end of fit.
        """
        return self._fit(X, y, keep=True)

    def partial_fit(
        self, X: Any, y: Any = None, *, new_sequence: bool = False
    ) -> ReservoirTransformer:
        """Run over the next chunk of rows, so that `transform` continues from its end.

        The first call is a `fit`; the weights do not change after it.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or sequences
            A table continues where the last call ended; each item of a list is a separate sequence.
        y : targets, optional
            As in `fit`.
        new_sequence : bool, default=False
            Whether the chunk starts a new sequence. With `sequence_column`, a new id starts a new
            sequence automatically.

        Returns
        -------
        self

        Warns
        -----
        UserWarning
            If the index shows that a chunk does not begin where the last one ended, and
            `new_sequence` is False.
        """
        with restored_on_error(self):
            if "_source" in vars(self):
                self._reader.check_fixed(self)
                sequences = self._reader.inputs(self, X)
                warn_of_range(self._source, getattr(self, "certificate_", None), sequences)
            else:
                sequences = self._build(X, y)
            self._follow(sequences, y, new_sequence=new_sequence)
        return self

    def transform(self, X: Any) -> Any:
        """Return the states of the reservoir when driven by X.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or sequences

        Returns
        -------
        array of shape (n_samples, n_units), or sequences in the container of X

        Warns
        -----
        UserWarning
            If ``initial_state="last"`` and the index shows that X does not begin right after the
            rows of fit; the run then starts from "steady". If more than a fifth of the rows are
            outside the range of a column in fit by more than half its width.
        """
        check_is_fitted(self)
        sequences = self._reader.inputs(self, X)
        self._reader.warn_of_rows_beyond(self, sequences)
        starts, engine = self._starts(sequences), self._source.engine_for(self._n_trained)
        # without the ends of `_run`, which take a third of the time of a list of short sequences
        runs = [Run(engine=engine)] * len(starts)
        states = self._source.states(sequences.arrays, starts, runs)
        return self._restored(sequences, states)

    def stream(self, initial_state: Any = "last") -> StateStream:
        """Return a session that keeps its state from chunk to chunk.

        Parameters
        ----------
        initial_state : {"last", "zeros", "steady"} or array, default="last"
            The state before the first row.

        Returns
        -------
        StateStream
            A session with `transform`, `state` and `reset`. The transformer is not changed.
        """
        check_is_fitted(self)
        return StateStream(self, initial_state)

    def _fit(self, X: Any, y: Any, *, keep: bool) -> Any:
        """Build the reservoir and run over X; return the states if they are to be kept."""
        with restored_on_error(self):
            sequences = self._build(X, y)
            parts = self._follow(sequences, y, keep=keep)
            self._progress.continues = len(sequences) == 1
            return self._restored(sequences, parts) if keep else None

    def _restored(self, sequences: Sequences, parts: list[Array]) -> Any:
        """Return states in the container of X; `set_output` makes a frame of one table only."""
        output = _get_output_config("transform", self)["dense"]
        if output != "default" and sequences.container != "table":
            raise ValueError(
                f"set_output(transform={output!r}) makes one table, but X is a collection of "
                f"{len(sequences)} sequences. Pass one table whose MultiIndex identifies the "
                'sequences, or use transform="default".'
            )
        return sequences.restore(parts)

    def _build(self, X: Any, y: Any) -> Sequences:
        """Build the reservoir for the columns of X, and return X as sequences."""
        if isinstance(self.initial_state, str):
            check_choice("initial_state", self.initial_state, ("last", "steady", "zeros"))
        reader = DataReader(self)
        sequences, columns = reader.first_inputs(self, X)
        generator = as_generator(self.random_state)
        source, certificate = reservoir_source(
            self, reader.clock, sequences.arrays, None, generator
        )
        for name in ("certificate_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        if certificate is not None:
            self.certificate_ = certificate
        self.__dict__.update(columns.fitted)
        washout = min(resolve_washout("auto", sequences.lengths))
        self._reader, self._source = reader, source
        targets = _targets(y, sequences)
        self._progress = Progress(targets[0].shape[1] if targets else 0, washout=washout)
        self.time_step_ = None if reader.clock is None else reader.clock.step
        self.reservoir_, self._n_features_out = source.reservoir, source.reservoir.n_units
        self._n_trained = 0
        # a bias chosen for its certificate saturates units by design
        by_design = certificate is not None and held_by_bias(source.reservoir)
        self._activity = None if by_design else source.activity()
        return sequences

    def _follow(
        self, sequences: Sequences, y: Any, *, new_sequence: bool = False, keep: bool = False
    ) -> list[Array]:
        """Run over the rows of a fit, or of a chunk, to their end; return the states to `keep`."""
        self._progress = progress = self._progress.draft()
        continues = progress.enter(sequences, new_sequence)
        starts = self._starts(sequences, anew=True)
        if continues:
            starts[0] = self.state_
        self._n_trained += sum(sequences.lengths)
        activity = copy.copy(vars(self).get("_activity"))  # missing in files of earlier versions
        skips = progress.skips(sequences, continues)
        parts, ends = self._run(sequences, starts, skips, keep=keep, activity=activity)
        self.state_: Array = ends[-1]
        targets = _targets(y, sequences)
        if targets and targets[0].shape[1] == progress.last_output.size:
            progress.add(sequences, targets, continues=continues)
        else:
            progress.count(sequences, continues=continues)
            progress.last_output[:] = np.nan  # not known any more
            progress.last_is_target = False
        progress.continues = True
        names = self._reader.names_of_columns(Columns.of(self), sequences)
        warned = activity is not None and activity.warn(self.reservoir_, names)
        self._activity = None if warned else activity
        return parts

    def _starts(self, sequences: Sequences, spec: Any = None, *, anew: bool = False) -> list[Array]:
        """Return the state before each sequence; by default as the parameter specifies."""
        spec = self.initial_state if spec is None else spec
        last = self.state_ if self._progress.continues and not anew else None
        return initial_states(self._source, self._progress, spec, sequences, last, _AFTER_GAP)

    def _run(
        self,
        sequences: Sequences,
        starts: list[Array],
        skips: Sequence[int] = (),
        *,
        keep: bool = True,
        activity: Record | None = None,
    ) -> tuple[list[Array], list[Array]]:
        """Return the states in each row, if they are to be kept, and at each sequence's end."""
        n_units, dtype = self.reservoir_.n_units, self.reservoir_.dtype
        lengths, ends = sequences.lengths if keep else [], list(starts)
        with room_for_states(1, sum(lengths), n_units, dtype):
            parts = [np.empty((n, n_units), dtype) for n in lengths]
        engine = self._source.engine_for(self._n_trained)
        skips = skips or [0] * len(starts)
        runs = [Run(engine=engine, activity=activity, skip=skip) for skip in skips]
        blocks = self._source.iter_many_features(sequences.arrays, starts, runs)
        for i, first, rows, end in blocks:
            ends[i] = end
            if keep:
                parts[i][first : first + len(rows)] = rows
        return parts, ends

    @property
    def training_(self) -> Training:
        """Range of the inputs in fit, which `stability.certify` reads."""
        # the states are no next inputs, whatever the targets are
        return self._progress.training(self._reader.clock)._replace(predicts_next_input=False)

    if not TYPE_CHECKING:  # with it a type checker would accept any misspelt attribute

        def __getattr__(self, name: str) -> Any:
            if name == "certificate_":
                raise AttributeError(no_certificate(self))
            return object.__getattribute__(self, name)  # raises Python's own AttributeError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = []  # set by the parameter dtype, not by X
        return tags


def _targets(y: Any, sequences: Sequences) -> list[Array] | None:
    """Return y as numbers, an array for each sequence; None if it is not numbers in these rows."""
    if y is None:
        return None
    try:
        table = sequences.container == "table"
        parts = sequences.split(np.asarray(y, dtype=np.float64)) if table else list(y)
        found = [np.asarray(part, dtype=np.float64).reshape(len(part), -1) for part in parts]
    except (IndexError, TypeError, ValueError):  # labels, or another container
        return None
    widths = {part.shape[1] for part in found}
    same = [len(part) for part in found] == sequences.lengths and len(widths) == 1
    return found if same else None

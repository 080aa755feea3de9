"""Pipelines whose steps keep a state from row to row, as one network.

A `Stage` is a fitted step with its source of features. `ChainForecaster` joins the stages, from the
first that keeps a state on, with the regressor behind them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils._set_output import _wrap_data_with_container

from reservoir._tables import Sequences, container_of
from reservoir._tables.frames import take_columns
from reservoir._typing import Array
from reservoir.dynamics.chained import ChainedSource, JoinedSource, RowFunction
from reservoir.dynamics.closed_loop import LoopRun
from reservoir.dynamics.feature_source import FeatureSource
from reservoir.estimators.forecasting.predictor import Forecaster, Predictor, Step, forecaster_of
from reservoir.estimators.forecasting.row_steps import (
    Affine,
    affine,
    as_rows,
    check_without_memory,
    compose,
    folded,
    row_function,
    with_names,
)
from reservoir.estimators.reading import Columns

NO_STATE = np.zeros(0)


def keeps_a_state(step: Any) -> bool:
    """Whether a step, or one inside it, transforms a row by the rows before it."""
    inside = step.get_params().values() if hasattr(step, "get_params") else ()
    return any(is_reservoir(one) for one in (step, *inside))


def is_reservoir(step: Any) -> bool:
    """Whether an object transforms rows to states."""
    return hasattr(step, "transform") and hasattr(step, "stream")


def steps_of(steps: Sequence[tuple[str, Any]]) -> list[Any]:
    """Return the steps of a pipeline that do something, of pipelines inside as well."""
    found: list[Any] = []
    for _, step in steps:
        if isinstance(step, Pipeline):
            found += steps_of(step.steps)
        elif step is not None and step != "passthrough":
            found.append(step)
    return found


@affine.register
def _(step: Pipeline, n_columns: int) -> Affine | None:
    return compose(tuple(steps_of(step.steps)), n_columns)


# ---------------------------------------------------------------------- stages


class Stage(ABC):
    """A fitted step of a pipeline: its source of features, and its runs.

    `end`, (state_size,), is the state at the end of training; `reservoirs` are the transformers
    inside, in order.
    """

    source: FeatureSource
    end: Array = NO_STATE
    reservoirs: Sequence[Any] = ()

    @abstractmethod
    def run(self, X: Any, *, as_in_training: bool = False) -> tuple[Any, Array]:
        """Transform one sequence, and return the state after it.

        By default the run starts as in `transform`, otherwise as in `fit_transform`.
        """

    def to_first(self, rows: Array) -> Array:
        """Return inputs of the stage as inputs of its first reservoir."""
        return rows


class ReservoirStage(Stage):
    """A transformer that keeps a state."""

    def __init__(self, step: Any) -> None:
        self.step, self.source, self.end = step, step._source, step.state_
        self.reservoirs = [step]

    def run(self, X: Any, *, as_in_training: bool = False) -> tuple[Any, Array]:
        """Run the reservoir over the rows."""
        step, given = self.step, isinstance(X, Sequences)
        sequences = X if given else step._reader.inputs(step, X)
        step._reader.warn_of_rows_beyond(step, sequences)
        (rows,), (end,) = step._run(sequences, step._starts(sequences, anew=as_in_training))
        return (rows if given else _wrap_data_with_container("transform", rows, X, step)), end


class RowStage(Stage):
    """A transformer without memory."""

    def __init__(self, step: Any) -> None:
        self.step, self.source = step, row_function(step)

    def run(self, X: Any, *, as_in_training: bool = False) -> tuple[Any, Array]:
        """Transform the rows."""
        rows = self.step.transform(X)
        check_without_memory(self.step, X, rows)
        return rows, NO_STATE

    def to_first(self, rows: Array) -> Array:
        """Return the transformed rows."""
        return self.source.function(rows)  # type: ignore[attr-defined, no-any-return]


class SeriesStage(Stage):
    """Stages one after the other."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.stages = stages
        self.source = ChainedSource(tuple(stage.source for stage in stages))
        self.end = np.concatenate([stage.end for stage in stages])
        self.reservoirs = [one for stage in stages for one in stage.reservoirs]

    def run(self, X: Any, *, as_in_training: bool = False) -> tuple[Any, Array]:
        """Run each stage over the results of the one before it."""
        rows, ends = X, []
        for stage in self.stages:
            rows, end = stage.run(rows, as_in_training=as_in_training)
            ends.append(end)
        return rows, np.concatenate(ends)

    def to_first(self, rows: Array) -> Array:
        """Return the rows that the first stage with a reservoir receives, as its reservoir does."""
        for stage in self.stages:
            rows = stage.to_first(rows)
            if stage.reservoirs:
                break
        return rows


class JoinedStage(Stage):
    """Stages side by side, of a FeatureUnion or a ColumnTransformer."""

    def __init__(self, step: Any) -> None:
        self.step = step
        self.parts = list(_parts_of(step))
        sources = tuple(stage.source for _, stage in self.parts)
        n = max(int(columns.max(initial=-1)) + 1 for columns, _ in self.parts)
        columns = tuple(columns for columns, _ in self.parts)
        self.source = JoinedSource(sources, columns, getattr(step, "n_features_in_", n))
        self.end = np.concatenate([stage.end for _, stage in self.parts])
        self.reservoirs = [one for _, stage in self.parts for one in stage.reservoirs]

    def run(self, X: Any, *, as_in_training: bool = False) -> tuple[Any, Array]:
        """Run each stage over its columns."""
        X = X.arrays[0] if isinstance(X, Sequences) else X
        found = [
            stage.run(take_columns(X, columns), as_in_training=as_in_training)
            for columns, stage in self.parts
        ]
        parts, ends = zip(*found, strict=True)
        rows = np.hstack([as_rows(part) for part in parts])
        return _wrap_data_with_container("transform", rows, X, self.step), np.concatenate(ends)

    def to_first(self, rows: Array) -> Array:
        """Return the columns of the first stage with a reservoir, as the reservoir reads them."""
        columns, stage = next(part for part in self.parts if part[1].reservoirs)
        return stage.to_first(rows[:, columns])


def _parts_of(step: Any) -> Iterator[tuple[Array, Stage]]:
    """Yield the columns and the stage of each part of a step that joins several."""
    weights = step.transformer_weights or {}
    if isinstance(step, FeatureUnion):
        one = next(part for _, part in step.transformer_list if keeps_a_state(part))
        every = np.arange(one.n_features_in_)
        named = [(name, part, every) for name, part in step.transformer_list]
    else:
        places = step._transformer_to_input_indices
        named = [
            (name, part, np.asarray(places[name], dtype=np.intp))
            for name, part, _ in step.transformers_
        ]
    for name, part, columns in named:
        if not (isinstance(part, str) and part == "drop") and len(columns):
            stage = stage_of(part)
            if name in weights:
                stage = SeriesStage([stage, _Weighted(weights[name])])
            yield columns, stage


class _Weighted(Stage):
    """Rows times a weight."""

    def __init__(self, weight: float) -> None:
        self.weight, self.source = weight, RowFunction(lambda rows: weight * rows, 0, weight)

    def run(self, X: Any, *, as_in_training: bool = False) -> tuple[Any, Array]:
        """Return the rows times the weight."""
        return self.weight * as_rows(X), NO_STATE


def stage_of(step: Any) -> Stage:
    """Return the stage of a fitted step; raise if it hides a state."""
    if isinstance(step, str):  # "passthrough"
        return _Weighted(1.0)
    if is_reservoir(step):
        return ReservoirStage(step)
    if not keeps_a_state(step):
        return RowStage(step)
    if isinstance(step, Pipeline):
        return SeriesStage([stage_of(one) for one in steps_of(step.steps)])
    if isinstance(step, (FeatureUnion, ColumnTransformer)):
        return JoinedStage(step)
    raise ValueError(
        f"{type(step).__name__} contains a ReservoirTransformer, whose state forecast must keep "
        "from row to row. Use Pipeline, FeatureUnion or ColumnTransformer around it."
    )


# ---------------------------------------------------------------------- networks


def is_plain_regressor(model: Any) -> bool:
    """Whether a model is a regressor that does not forecast by itself."""
    unknown = forecaster_of.dispatch(type(model)) is forecaster_of.dispatch(object)
    return unknown and is_regressor(model) and not hasattr(model, "forecast")


class RegressorForecaster:
    """A regressor of scikit-learn behind the steps of a pipeline: a readout of one row."""

    feeds_back, id_column, n_units, certificate, state = False, None, 0, None, NO_STATE

    def __init__(self, model: Any) -> None:
        self.model, self.n_features_in = model, model.n_features_in_
        probe = np.random.default_rng(0).normal(size=(3, model.n_features_in_))
        outputs = self._predict(probe)
        self.one_dimensional, self.n_outputs = outputs.ndim == 1, outputs[0].size
        # float32 coefficients predict in float32
        dtype = getattr(getattr(model, "coef_", outputs), "dtype", outputs.dtype)
        self.dtype = dtype if dtype in (np.float32, np.float64) else np.dtype(np.float64)
        self._linear = _linear_form(model, probe, outputs)

    def _predict(self, rows: Array) -> Array:
        return np.asarray(self.model.predict(with_names(self.model, rows)))

    def check_can_loop(self) -> None:
        """Raise never: the steps before it keep the state."""

    def read(self, X: Any) -> Sequences:
        """Return rows as one sequence."""
        return Sequences((as_rows(X),), "table")

    def follow(self, sequences: Sequences, *, as_in_training: bool) -> tuple[Array, Array]:
        """Return outputs and end state of a run over one sequence."""
        rows = sequences.arrays[0]
        return self._predict(rows).reshape(len(rows), -1), NO_STATE

    def readout(self) -> Any:
        """Return (coef, intercept), or a function of one row of features."""
        return self._linear or (lambda features: self._predict(features[None]).reshape(-1))


def _linear_form(model: Any, probe: Array, outputs: Array) -> tuple[Array, Array] | None:
    """Return (coef, intercept) if a regressor predicts by them, as a few rows show."""
    try:
        coef = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
        intercept = np.asarray(model.intercept_, dtype=np.float64) * np.ones(len(coef))
        predicted = probe @ coef.T + intercept
    except (AttributeError, TypeError, ValueError):
        return None
    near = np.allclose(predicted, outputs.reshape(len(probe), -1), rtol=1e-4, atol=1e-6)
    return (coef, intercept) if near else None


@dataclass(frozen=True)
class _Table(Sequences):
    """One sequence with the table that it was read from, whose index the stages need."""

    table: Any = None


class ChainForecaster(Forecaster):
    """Steps of a pipeline that keep states, and the network or regressor behind them, as a network.

    `steps` go from the first that keeps a state to the last before the regressor, `inner`.
    """

    feeds_back, certificate = False, None

    def __init__(self, steps: Sequence[Any], inner: Any) -> None:
        self.inner, last = inner, inner.network
        front = SeriesStage([stage_of(step) for step in (*steps, *inner.inputs)])
        _check_chain(front, inner)
        self.front, first = front, front.reservoirs[0]
        self.progress = first._progress
        sources, self.state = front.source.sources, front.end  # type: ignore[attr-defined]
        if not isinstance(last, RegressorForecaster):
            sources = (*sources, last.source)
            self.state = np.concatenate([front.end, last.state])
        self.source = ChainedSource(sources)
        self.n_outputs, self.n_units = self.progress.last_output.size, self.state.size
        self.dtype, self.one_dimensional = last.dtype, inner.one_dimensional
        self.reads_targets = isinstance(front.stages[0], ReservoirStage)
        self.id_column = first._reader.id_place(Columns.of(first)) if self.reads_targets else None
        self.n_features_in = self.source.n_features + (self.id_column is not None)

    def to_first(self, rows: Array, *, check: bool = False) -> Array:
        """Return inputs as inputs of the first reservoir, whose `progress` this is."""
        if check and not self.reads_targets:
            table = with_names(self.front.stages[0].step, rows)  # type: ignore[attr-defined]
            self.front.run(table, as_in_training=True)
        return self.front.to_first(rows)

    def check_can_loop(self) -> None:
        """Check each source, and that the steps behind the first have no other memory."""
        self.inner.network.check_can_loop()
        self.source.check_can_loop()
        rows = self.progress.pairing.inputs
        if self.reads_targets and len(rows):
            self.front.run(Sequences((rows.astype(self.source.sources[0].dtype),), "table"))

    def read(self, X: Any) -> Sequences:
        """Return rows of input as sequences."""
        if self.reads_targets:
            first = self.front.reservoirs[0]
            sequences: Sequences = first._reader.inputs(first, X)
            return sequences
        container = container_of(X)
        tables = [X] if container == "table" else list(X)
        arrays = tuple(np.asarray(table, dtype=np.float64) for table in tables)
        return _Table(arrays, container, table=X if container == "table" else None)

    def follow(self, sequences: Sequences, *, as_in_training: bool) -> tuple[Array, Array]:
        """Return outputs and end state of a run over one sequence, from the start of a run."""
        table = getattr(sequences, "table", None)
        rows, end = self.front.run(
            sequences if table is None else table, as_in_training=as_in_training
        )
        last = self.inner.network
        read = last.read(rows)
        if isinstance(last, Predictor):
            starts = last.starts(None, read, as_in_training=as_in_training)
            (outputs,), (after,) = last.run_over(read, starts)
        else:
            outputs, after = last.follow(read, as_in_training=as_in_training)
        return self._to_units(outputs), np.concatenate([end, after])

    def starts(self, spec: Any, sequences: Sequences) -> list[Array]:
        """Raise: each step has an initial state of its own."""
        raise ValueError("A pipeline has no initial_state; set the parameter of its steps.")

    def warm_up(self, sequences: Sequences, spec: Any) -> tuple[list[Array], list[Array]]:
        """Return outputs and end states of a run that starts as `predict` of the pipeline does."""
        outputs, end = self.follow(sequences, as_in_training=False)
        return [outputs], [end]

    def states_at(
        self,
        places: Sequence[tuple[int, int]],
        sequences: Sequences,
        targets: Sequence[Array] | None = None,
        *,
        as_in_training: bool = True,
    ) -> list[Array]:
        """Return the state before each (sequence, row)."""
        cut = [Sequences((sequences.arrays[i][:t],), "table") for i, t in places]
        return [self.follow(rows, as_in_training=as_in_training)[1] for rows in cut]

    def readout(self) -> Any:
        """Return the readout of a loop, in the units of the targets that the first step saw."""
        readout: Any = self.inner.network.readout()
        if not self.inner.outputs:
            return readout
        found = compose(self.inner.outputs, self.n_outputs, inverse=True)
        if found is not None:
            return folded(found, readout)
        plain = readout if callable(readout) else (lambda v: readout[0] @ v + readout[1])
        return lambda features: self._to_units(plain(features)[None])[0]

    def _to_units(self, outputs: Array) -> Array:
        """Return outputs after the steps of targets that are behind the stages."""
        for step in self.inner.outputs:
            outputs = np.reshape(step.inverse_transform(outputs), (len(outputs), -1))
        return outputs

    def tangent(self) -> Step:
        """Return the step of the chain with differences, in double precision."""
        return self.source.astype(np.float64).tangent

    def run(self, readout: Any, n_steps: int, **options: Any) -> tuple[Array, Array, int]:
        """Run in closed loop."""
        return self.source.run_loop(readout, LoopRun(n_steps, **options))


def _check_chain(front: SeriesStage, inner: Any) -> None:
    """Raise if the stages and the regressor behind them cannot be run as one network."""
    last, name = inner.network, type(inner.innermost).__name__
    sources = isinstance(last, RegressorForecaster) or hasattr(last, "source")
    if not sources or last.feeds_back:
        why = "has feedback weights" if sources else "is no source of features"
        raise ValueError(
            f"forecast follows steps that keep a state from row to row, but {name} behind them "
            f"{why}. Use ESNRegressor without feedback, NVARRegressor or a linear model."
        )
    nested = front.reservoirs[isinstance(front.stages[0], ReservoirStage) :]
    ids = [one for one in nested if one.sequence_column is not None]
    if ids or last.id_column is not None:
        raise ValueError(
            "forecast feeds back one sequence without ids, but a step behind the first reads a "
            "sequence_column. Pass the sequences as a list instead of ids."
        )
    if not front.reservoirs[0]._progress.last_output.size:
        raise ValueError(
            "forecast begins with the last target, but the first ReservoirTransformer has kept "
            "none: it was fitted without y, or saved by an earlier version. Fit the pipeline again."
        )

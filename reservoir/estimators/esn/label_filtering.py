"""A filter over the labels of an echo state network: learned after a fit, applied in each run."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from reservoir._tables import Sequences
from reservoir._typing import Array
from reservoir.estimators.esn.readout_model import ReadoutModel, ReadoutPredictor
from reservoir.estimators.esn.readout_training import open_loop_outputs, tails_of
from reservoir.estimators.forecasting.predictor import Outputs
from reservoir.estimators.reading import DataReader, TrainingData
from reservoir.readouts.contract import Readout
from reservoir.readouts.label_filter import (
    LabelFilter,
    LabelledSequence,
    fitted_filter,
    neutral_filter,
)
from reservoir.readouts.temperature import probabilities

Fits = dict[int, tuple[Array, Array]]


def check_transition(estimator: Any, reader: DataReader) -> None:
    """Check that the parameters support a filter over the labels."""
    what = 'transition="auto" cannot be combined with'
    if estimator.readout is not None:
        raise ValueError(
            f"{what} readout={estimator.readout!r}: the filter is chosen on held-out rows, which "
            "the built-in ridge scores from its sums. Use readout=None, or transition=None."
        )
    if estimator.feedback:
        raise ValueError(
            f"{what} feedback=True, which feeds scores back, so that the states contain the labels "
            "before. Use feedback=False, or transition=None."
        )
    if reader.clock is not None:
        raise ValueError(
            f"{what} time_column={estimator.time_column!r}: transitions are counted from row to "
            "row, whatever the time between. Use a regular grid without time_column, or "
            "transition=None."
        )
    if estimator.forgetting < 1:
        raise ValueError(
            f"{what} forgetting={estimator.forgetting}: no rows could be held out to choose the "
            "filter. Use forgetting=1.0, or transition=None."
        )


def raise_in_chunks() -> None:
    """Raise an error about chunks, whose rows cannot be scored again."""
    raise ValueError(
        'transition="auto" needs fit: partial_fit keeps no rows, and the filter is chosen in a '
        "second run over them. Use fit, or transition=None."
    )


def with_filter(
    model: ReadoutModel,
    fits: Fits,
    empty: Readout,
    data: TrainingData,
    starts: list[Array],
    skips: list[int],
    solution: dict[str, Any],
) -> ReadoutModel:
    """Return a copy of a fitted model with a filter, chosen by the log loss of held-out rows.

    `fits` has, by part of the rows, the (coef, intercept) of a fit on the other parts; `empty` is a
    readout with the same settings, which tells the part of each row. `solution` has the fitted
    attributes of the readout; the rest is as in `ReadoutModel.fitted`.
    """
    one, source = copy.copy(model), model.source
    readouts = [(solution["coef_"], solution["intercept_"]), *fits.values()]
    coef = np.concatenate([each for each, _ in readouts]).astype(source.dtype)
    intercept = np.concatenate([each for _, each in readouts]).astype(source.dtype)
    before = [start[: source.state_size] for start in starts]
    scores, _ = open_loop_outputs(
        source, data.arrays, before, lambda rows: rows @ coef.T + intercept, engine=model.engine
    )
    temperature, tails = solution["temperature_"], tails_of(source, skips)
    lengths = [n - tail for n, tail in zip(data.sequences.lengths, tails, strict=True)]
    cuts, sequences = empty.cut(lengths, skips), []
    for i, rows in enumerate(scores):
        used = slice(skips[i], len(rows) - tails[i])
        parts = _parts_of(cuts[i], len(rows))
        weights = None if data.weights is None else data.weights[i]
        rows = rows.reshape(len(rows), len(readouts), -1)
        sequences.append(
            _labelled(rows, parts, used, list(fits), data.targets[i], weights, temperature)
        )
    n_classes = sequences[0].probabilities.shape[1]
    one.label_filter = fitted_filter(sequences) if fits else neutral_filter(n_classes)
    end = np.zeros(n_classes, source.state_dtype)
    last = scores[-1][:, : model.n_outputs]
    assert model.state is not None
    one.state = np.concatenate([model.state, one.label_filter.run(last, temperature, end)[1]])
    return one


def _parts_of(cuts: tuple[tuple[int, int], ...], n_rows: int) -> Array:
    """Return the part of each row, -1 for rows without one."""
    parts, start = np.full(n_rows, -1), 0
    for part, end in cuts:
        parts[start:end] = part
        start = max(start, end)
    return parts


def _labelled(
    scores: Array,
    parts: Array,
    used: slice,
    held_out: list[int],
    targets: Array,
    weights: Array | None,
    temperature: float,
) -> LabelledSequence:
    """Return the labels of a sequence, with probabilities by fits that exclude them.

    `scores` has shape (n_rows, 1 + n_fits, n_outputs): under the fit on all rows, then under the
    fits on the rows outside each part in `held_out`.
    """
    which = np.zeros(len(scores), dtype=int)
    for k, part in enumerate(held_out):
        which[parts == part] = k + 1
    shares = probabilities(scores[np.arange(len(scores)), which].astype(float), temperature)
    known = np.zeros(len(scores), dtype=bool)
    known[used] = ~np.isnan(targets[used]).any(axis=1)
    codes = np.nan_to_num(targets)
    labels = codes.argmax(axis=1) if codes.shape[1] > 1 else (codes[:, 0] > 0).astype(int)
    given = np.ones(len(scores)) if weights is None else weights
    return LabelledSequence(shares, labels, np.where(known, given, 0.0), which > 0)


class FilteringPredictor(ReadoutPredictor):
    """A source of features with a solved readout, whose scores a filter over the labels changes.

    A state continues with the start of the filter in the next row, (n_classes,), which is zero
    where a sequence begins.
    """

    @property
    def label_filter(self) -> LabelFilter:
        """The filter of the model."""
        found: LabelFilter = self.model.label_filter  # type: ignore[assignment]
        return found

    def starts(
        self, spec: Any, sequences: Sequences, *, as_in_training: bool = False
    ) -> list[Array]:
        """Return the state before each sequence; an array may be of the source alone."""
        spec = self.estimator.initial_state if spec is None else spec
        size, width = self.source.state_size, len(self.label_filter.frequencies)
        given = None if isinstance(spec, str) else np.asarray(spec)
        with_filter = given is not None and given.ndim in (1, 2) and given.shape[-1] == size + width
        of_source = given[..., :size] if with_filter and given is not None else spec
        made = super().starts(of_source, sequences, as_in_training=as_in_training)
        tails = [np.zeros(width, self.source.state_dtype)] * len(made)
        if with_filter and given is not None:
            each = np.broadcast_to(given[..., size:], (len(made), width))
            tails = [tail.astype(self.source.state_dtype) for tail in each]
        # a state from the end of training is whole
        pairs = zip(made, tails, strict=True)
        return [s if len(s) > size else np.concatenate([s, tail]) for s, tail in pairs]

    def run_over(
        self,
        sequences: Sequences,
        starts: list[Array],
        outputs_of: Outputs | None = None,
        n_rows: int | None = None,
    ) -> tuple[list[Array], list[Array]]:
        """Return filtered outputs and the end state of each sequence.

        Results of `outputs_of` are not filtered.
        """
        size = self.source.state_size
        before = [start[:size] for start in starts]
        outputs, ends = super().run_over(sequences, before, outputs_of, n_rows)
        tails = [start[size:] for start in starts]
        if outputs_of is None:
            temperature, run = self.estimator.temperature_, self.label_filter.run
            pairs = zip(outputs, tails, strict=True)
            filtered = [run(rows, temperature, tail) for rows, tail in pairs]
            outputs, tails = [rows for rows, _ in filtered], [tail for _, tail in filtered]
        return outputs, [np.concatenate(pair) for pair in zip(ends, tails, strict=True)]

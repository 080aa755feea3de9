"""Build the reservoir of an estimator from its parameters, as a source of features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from reservoir._tables import Clock
from reservoir._typing import Array
from reservoir._validation import as_generator
from reservoir.building import Recipe
from reservoir.dynamics import Reservoir
from reservoir.dynamics.both_directions import BothDirections
from reservoir.dynamics.feature_source import FeatureSource
from reservoir.dynamics.features import DrivenReservoir
from reservoir.dynamics.past_inputs import PastInputs
from reservoir.dynamics.timed_reservoir import TimedReservoir
from reservoir.estimators.esn.readout_model import ReadoutModel
from reservoir.estimators.esn.readout_training import is_measured
from reservoir.estimators.parameters import read_dtype
from reservoir.estimators.reading import DataReader, TrainingData
from reservoir.readouts.input_rows import InputRows, most_input_rows
from reservoir.readouts.selection import is_path, rule_for
from reservoir.stability import Certificate, certify, drive_range
from reservoir.stability.certified_bias import MARGIN, widened_range


def reservoir_model(estimator: Any, reader: DataReader, data: TrainingData) -> ReadoutModel:
    """Return an untrained model over the reservoir that an estimator's parameters describe.

    Parameters are checked first, since connecting the units may take minutes.
    """
    check_reservoir(estimator, reader)
    runs = 2 if estimator.bidirectional else 1
    if isinstance(estimator.n_units, Integral):
        estimator._new_readout(reader).check_room(runs * int(estimator.n_units), data.n_rows)
    generator = as_generator(estimator.random_state)
    fed_back = data.targets if estimator.feedback else None
    source, certificate = reservoir_source(
        estimator, reader.clock, data.arrays, fed_back, generator
    )
    # a number, not a generator: in older NumPy a copied generator loses its spawn count
    seed = int(generator.spawn(1)[0].integers(2**63)) if estimator.noise > 0 else None
    return ReadoutModel(source, data.n_outputs, certificate=certificate, noise_seed=seed)


def check_reservoir(estimator: Any, reader: DataReader) -> None:
    """Check that the parameters of an echo state network are compatible."""
    if estimator._skips_missing() and estimator.feedback:
        raise ValueError(
            "missing_targets='skip' cannot be combined with feedback=True: each target is fed back "
            "into the next step. Fill the missing targets, or use feedback=False."
        )
    if estimator.bidirectional:
        _check_both_directions(estimator, reader)
    if _n_lags(estimator) > 1:
        _check_lags(estimator, reader)
    if reader.clock is not None:
        _check_timed(estimator)


def _n_lags(estimator: Any) -> int:
    """Return `n_lags` if it is a number; with "auto" it adapts to the other parameters."""
    n_lags = getattr(estimator, "n_lags", 1)
    return 1 if isinstance(n_lags, str) else int(n_lags)


def _held_rows(estimator: Any, n_columns: int) -> int:
    """Return the number of rows of the input that the readout may receive.

    With "auto" it is 1 wherever the readout does not choose its penalty by comparing rows.
    """
    n_lags = getattr(estimator, "n_lags", 1)
    if not isinstance(n_lags, str):
        return int(n_lags)
    searches = (
        estimator.readout is None
        and is_path(estimator.alpha)
        and estimator.forgetting == 1
        and estimator.include_input
        and not rule_for(estimator.alpha_selection, 1.0).in_loops
    )
    return most_input_rows(n_columns) if searches else 1


def input_rows(estimator: Any, source: FeatureSource) -> InputRows | None:
    """Return the features that are rows of the input; None if the built-in ridge has none."""
    if not hasattr(estimator, "input_alpha"):
        return None
    if estimator.readout is not None or not estimator.include_input:
        return None
    n_rows, inner = 1, source
    if isinstance(source, PastInputs):
        n_rows, inner = source.n_lags, source.source
    places = [k for k in range(inner.width) if inner.input_column(k) is not None]
    if not places:
        return None
    chosen = isinstance(estimator.n_lags, str) and not estimator.bidirectional
    return InputRows(places[0], len(places), n_rows, chosen)


def _check_both_directions(estimator: Any, reader: DataReader) -> None:
    """Check that the parameters support runs over each sequence in both directions."""
    what = "bidirectional=True cannot be combined with"
    if estimator.feedback:
        raise ValueError(
            f"{what} feedback=True: outputs are fed back from row to row, and a run backwards "
            "would need outputs of later rows. Use feedback=False, or bidirectional=False."
        )
    if _n_lags(estimator) > 1:
        raise ValueError(
            f"{what} n_lags={estimator.n_lags}: the readout would receive inputs before each row "
            "but none after it. Use n_lags=1, or bidirectional=False and later rows as columns of "
            "X."
        )
    if reader.clock is not None:
        raise ValueError(
            f"{what} time_column={estimator.time_column!r}: the lengths of steps are the times "
            "since the row before. Use bidirectional=False, or a regular grid without time_column."
        )


def _check_lags(estimator: Any, reader: DataReader) -> None:
    """Check that the readout receives the lagged inputs, and that rows are evenly spaced."""
    if not estimator.include_input:
        raise ValueError(
            f"n_lags={estimator.n_lags}: the lags are inputs that the readout receives in addition "
            "to the present one, and include_input=False excludes inputs from it. Use "
            "include_input=True, or n_lags=1."
        )
    if reader.clock is not None:
        raise ValueError(
            f"time_column={estimator.time_column!r} cannot be combined with "
            f"n_lags={estimator.n_lags}: with rows at irregular times a lag has no fixed length. "
            "Use n_lags=1, or a regular grid without time_column."
        )


def _check_timed(estimator: Any) -> None:
    """Check that the parameters support steps of different lengths."""
    what = f"time_column={estimator.time_column!r} cannot be combined with"
    if estimator.feedback:
        raise ValueError(
            f"{what} feedback=True: outputs are fed back once per row, whatever the length of the "
            "step. Use feedback=False, or a regular grid without time_column."
        )
    if is_measured(estimator.washout):
        raise ValueError(
            f'{what} washout="measured", which compares runs of equal steps. Give an integer '
            'or "auto".'
        )


class Ranges(NamedTuple):
    """Ranges of inputs and fed-back outputs for which bias="stable" certifies a reservoir.

    Each is an array of shape (2, n_columns), the lower bounds first. `steps` contains the lengths
    of the shortest and the longest step if rows are at irregular times.
    """

    inputs: Array
    outputs: Array | None = None
    steps: tuple[float, float] | None = None

    def drive(self, reservoir: Reservoir) -> tuple[Array, Array]:
        """Return the bounds of the drive."""
        low, high = (None, None) if self.outputs is None else self.outputs
        return drive_range(reservoir, *self.inputs, feedback_low=low, feedback_high=high)

    def certify(self, reservoir: Reservoir) -> Certificate:
        """Return the certificate of a reservoir for the ranges."""
        certificate = certify(reservoir, *self.drive(reservoir), step_range=self.steps)
        return replace(certificate, input_range=self.inputs, output_range=self.outputs)


def ranges_of(
    arrays: Sequence[Array],
    targets: Sequence[Array] | None = None,
    steps: Sequence[Array] | None = None,
) -> Ranges:
    """Return the ranges of a series and of the targets that are fed back, widened by a margin.

    `steps` are the lengths of the steps of each series, if they differ; their range is then widened
    by a tenth on both sides.
    """
    lengths = None
    if steps is not None:
        every = np.concatenate([[1.0], *steps])  # the first step has length 1
        lengths = float(every.min() / (1 + MARGIN)), float(every.max() * (1 + MARGIN))
    outputs = None if targets is None else widened_range(targets)
    return Ranges(widened_range(arrays), outputs, lengths)


def reservoir_source(
    estimator: Any,
    clock: Clock | None,
    rows: Sequence[Array],
    targets: Sequence[Array] | None,
    generator: np.random.Generator,
) -> tuple[DrivenReservoir | BothDirections | PastInputs | TimedReservoir, Certificate | None]:
    """Return the reservoir that an estimator's parameters describe, and its certificate, if any.

    `targets`, (n_samples, n_outputs) for each sequence, are fed back; None if outputs are not.
    `clock` gives the lengths of steps if rows are at irregular times. `generator` draws the
    weights.
    """
    steps = None
    if clock is not None:
        steps = [np.diff(each[:, clock.place]) for each in rows]
        rows = [clock.channels(each) for each in rows]
    stable = isinstance(estimator.bias, str) and estimator.bias == "stable"
    ranges = ranges_of(rows, targets, steps) if stable else None
    n_outputs = 0 if targets is None else targets[0].shape[1]
    recipe = Recipe.from_attributes(
        estimator,
        drive_bounds=None if ranges is None else ranges.drive,
        step_range=None if ranges is None else ranges.steps,
        feedback_scaling=estimator.feedback_scaling if n_outputs else 1.0,
        dtype=read_dtype(estimator.dtype),
    )
    repeatable = isinstance(estimator.random_state, Integral)
    n_features = rows[0].shape[1]
    built = recipe.build(estimator.n_units, n_features, n_outputs, generator, repeatable=repeatable)
    source = DrivenReservoir.seen_through(
        getattr(estimator, "augment", None),
        built,
        rows[0],
        include_input=bool(getattr(estimator, "include_input", False)),
    )
    certificate = None if ranges is None else ranges.certify(built)
    if clock is not None:
        return TimedReservoir(source, clock), certificate
    if getattr(estimator, "bidirectional", False):
        return BothDirections(source), certificate
    n_rows = _held_rows(estimator, n_features)
    return source if n_rows == 1 else PastInputs(source, n_rows, int(estimator.skip)), certificate

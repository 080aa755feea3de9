"""Closed-loop runs over held-out rows, by which alpha_selection="forecast" scores penalties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from reservoir._typing import Array
from reservoir._workers import threads_for
from reservoir.estimators.esn.readout_training import TrainingSequence, state_after
from reservoir.estimators.progress import NextInputCheck, affine_pairs
from reservoir.loops.loop_by_loop import evenly_spaced_starts, states_before
from reservoir.loops.path_loops import mean_log_errors

_N_STARTS = 8  # loops, as in a closed-loop search
_LONGEST = 50  # steps of each: most chaotic loops have diverged by then, and fits stay fast
_SHORTEST = 2
_SETTING = "alpha_selection='forecast'"
_OTHER = 'Use alpha_selection="auto", or a number as alpha.'


def check_free_runs(model: Any) -> None:
    """Check that all outputs of a model can be fed back together, in one loop."""
    setting = f"alpha_selection={model.alpha_selection!r}"
    if is_classifier(model):
        raise ValueError(
            f"{setting} feeds outputs back as inputs, but the outputs of {type(model).__name__} "
            f"are scores of labels. {_OTHER}"
        )
    if model.alpha_per_target:
        raise ValueError(
            f"{setting} scores closed loops into which all outputs are fed back, so that outputs "
            f"have no separate errors, but alpha_per_target={model.alpha_per_target} selects a "
            'penalty for each output. Use alpha_per_target=False, or alpha_selection="auto".'
        )
    if model.bidirectional:
        raise ValueError(
            f"{setting} runs closed loops, but bidirectional=True needs rows that a loop has not "
            f"reached yet. {_OTHER}"
        )
    if getattr(model, "time_column", None) is not None:
        raise ValueError(
            f"{setting} cannot be combined with time_column={model.time_column!r}: in a closed "
            f"loop the time of the next row is not known. {_OTHER}"
        )


@dataclass(frozen=True)
class FreeRunTrial:
    """Closed loops from several origins in held-out rows, which can be run with any readout.

    The loops are compared with `followed`, in units of the inputs like all else: the targets are
    inputs times `scale` plus `offset`.
    """

    model: Any
    states: Array  # (n_starts, state_size), before the first steps
    outputs: Array  # (n_starts, n_outputs), which the first steps receive
    exog: Array | None  # (n_starts, n_steps, n_exog)
    followed: Array  # (n_steps, n_starts, n_outputs), NaN if missing
    spread: Array  # standard deviations of the targets that are learned from
    scale: Array
    offset: Array

    def errors(self, coefs: Array, intercepts: Array) -> Array:
        """Return the typical error per step with each readout, of shape (n_readouts, 1).

        Errors are in standard deviations of the targets: the geometric mean over the steps of each
        loop, then the median over the loops.
        """
        dtype = self.model.source.dtype
        readouts = [
            (
                (coef / self.scale[:, None]).astype(dtype),
                ((intercept - self.offset) / self.scale).astype(dtype),
            )
            for coef, intercept in self.model.of_outputs(list(zip(coefs, intercepts, strict=True)))
        ]
        with threads_for(coefs.shape[2]), np.errstate(over="ignore", invalid="ignore"):
            rows = self.model.run_many(
                readouts,
                len(self.followed),
                initial_states=self.states,
                initial_outputs=self.outputs,
                exog=self.exog,
            )
        logs = mean_log_errors(rows, self.followed, self.spread)
        return 10 ** np.median(logs, axis=1)[:, None]


def free_runs(
    model: Any, sequences: Sequence[TrainingSequence], targets: Sequence[Array]
) -> FreeRunTrial:
    """Prepare the closed loops by which penalties are scored, before anything is learned.

    The model must not have learned from these rows. The rows of part 0 of each sequence are learned
    from; those after them are held out. Targets are (n_samples, n_outputs).
    """
    source, n_outputs = model.source, targets[0].shape[1]
    scale, offset = np.ones(n_outputs), np.zeros(n_outputs)
    if not source.n_fed_back:
        scale, offset = _units_of_inputs(sequences, targets)
    # rows of weight 0 are not compared with either
    known = [
        _known(sequence, (Y - offset) / scale)
        for sequence, Y in zip(sequences, targets, strict=True)
    ]
    ends = [dict(sequence.cuts).get(0, 0) for sequence in sequences]
    learned = np.concatenate([Y[:end] for Y, end in zip(known, ends, strict=True)])
    origins, n_steps = _origins(sequences, ends, known)
    # run teacher-forced up to each origin, as in training but without noise
    starts = [
        np.concatenate([sequence.state, sequence.last_output[: source.n_fed_back]])
        for sequence in sequences
    ]
    engine = source.engine_for(sum(len(sequence.X) for sequence in sequences))

    def warm_up(i: int, begin: int, end: int, state: Array) -> Array:
        rows, teacher = sequences[i].X[begin:end], targets[i][begin:end]
        return state_after(source, rows, teacher, state, engine=engine)

    states = np.stack(states_before(origins, starts, warm_up))[:, : source.state_size]
    # inputs of each loop, and the true values that its outputs are compared with
    windows = np.stack([sequences[i].X[t : t + n_steps] for i, t in origins])
    outputs, exog = windows[:, 0, :n_outputs], windows[:, :, n_outputs:]
    if source.n_fed_back:
        outputs, exog = np.stack([targets[i][t - 1] for i, t in origins]), windows
    followed = np.stack([known[i][t : t + n_steps] for i, t in origins], axis=1)
    spread = learned[~np.isnan(learned).any(axis=1)].std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    given = exog if exog.shape[2] else None
    return FreeRunTrial(model, states, outputs, given, followed, spread, scale, offset)


def _known(sequence: TrainingSequence, targets: Array) -> Array:
    """Return the targets of a sequence, with NaN in rows of weight 0."""
    if sequence.weights is None:
        return targets
    return np.where(sequence.weights[:, None] > 0, targets, np.nan)


def _units_of_inputs(
    sequences: Sequence[TrainingSequence], targets: Sequence[Array]
) -> tuple[Array, Array]:
    """Return scale and offset from the next inputs to the targets; raise if there are none."""
    n_outputs, n_features = targets[0].shape[1], sequences[0].X.shape[1]
    if n_outputs > n_features:
        raise ValueError(
            f"{_SETTING} feeds outputs back as inputs, but y has {n_outputs} columns and X "
            f"has {n_features}. The first columns of X must contain the variables of y. {_OTHER}"
        )
    pairing = NextInputCheck(n_outputs, feedback=False)
    for sequence, Y in zip(sequences, targets, strict=True):
        pairing.add(sequence.X, Y)
    if pairing.problem is None:
        return np.ones(n_outputs), np.zeros(n_outputs)
    found = affine_pairs([sequence.X for sequence in sequences], targets)
    if found is None:
        raise ValueError(
            f"{_SETTING} feeds outputs back as inputs and needs y[t] == X[t+1], possibly in "
            f"other units. Here {pairing.problem}. Make such pairs by "
            f'model_selection.make_forecast_pairs with horizon=1, or use alpha_selection="auto".'
        )
    return found


def _origins(
    sequences: Sequence[TrainingSequence], ends: Sequence[int], known: Sequence[Array]
) -> tuple[list[tuple[int, int]], int]:
    """Return the origins of the loops and their number of steps; raise if rows are too few."""
    lengths = [len(sequence.X) for sequence in sequences]
    first = [max(1, sequence.skip, end) for sequence, end in zip(sequences, ends, strict=True)]
    held_out = [n - begin for n, begin in zip(lengths, first, strict=True) if n > begin]
    learned = [
        Y[sequence.skip : end] for sequence, end, Y in zip(sequences, ends, known, strict=True)
    ]
    n_learned = sum(int(np.sum(~np.isnan(Y).any(axis=1))) for Y in learned)
    n_steps = min(_LONGEST, sum(held_out) // max(2 * len(held_out), 1))
    if n_steps < _SHORTEST or not n_learned:
        raise ValueError(
            f"{_SETTING} holds out the last fifth of the rows after the washout: the end of each "
            f"sequence, or whole sequences. There are {sum(held_out)} held-out rows in "
            f"{len(held_out)} sequences, and {n_learned} rows to learn from. At least "
            f"{2 * _SHORTEST} held-out rows in each sequence and 1 row to learn from are needed. "
            'Use a longer series, a smaller washout, or alpha_selection="auto".'
        )
    origins = [
        (i, t)
        for i, t in evenly_spaced_starts(first, lengths, n_steps, _N_STARTS)
        if not np.isnan(known[i][t : t + n_steps]).any(axis=1).all()
    ]
    if not origins:
        raise ValueError(
            f"{_SETTING} has nothing to compare loops with: all {sum(held_out)} held-out targets "
            'are missing or have weight 0. Use alpha_selection="auto".'
        )
    return origins, n_steps

"""Free runs in held-out rows: what alpha_selection="forecast" judges penalties by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from reservoir._typing import Array
from reservoir._workers import threads_for
from reservoir.estimators.esn.readout_training import TrainingSequence, state_behind
from reservoir.estimators.progress import NextInputCheck, affine_pairs
from reservoir.loops.loop_by_loop import places_behind, states_before
from reservoir.loops.path_loops import mean_log_errors

_N_STARTS = 8  # loops, as in a closed-loop search
_LONGEST = 50  # steps of each: most chaotic loops are lost by then, and a fit must not take long
_SHORTEST = 2
_ASKED = "alpha_selection='forecast'"
_OTHER = 'Use alpha_selection="auto", or a number as alpha.'


def check_free_runs(model: Any) -> None:
    """Refuse parameters under which outputs are not run on, or not all together."""
    asked = f"alpha_selection={model.alpha_selection!r}"
    if is_classifier(model):
        raise ValueError(
            f"{asked} runs networks on their own outputs, and {type(model).__name__}'s are "
            f"scores of labels. {_OTHER}"
        )
    if model.alpha_per_target:
        raise ValueError(
            f"{asked} judges loops that all outputs are fed back into, so that no output has an "
            f"error of its own, and alpha_per_target={model.alpha_per_target} asks for a penalty "
            'for each. Use alpha_per_target=False, or alpha_selection="auto".'
        )
    if getattr(model, "time_column", None) is not None:
        raise ValueError(
            f"{asked} cannot go with time_column={model.time_column!r}: no loop knows when its "
            f"next row comes. {_OTHER}"
        )


@dataclass(frozen=True)
class FreeRunTrial:
    """Closed loops from places in held-out rows, under any readouts.

    Attributes
    ----------
    model : ReadoutModel
        Whose loops they are.
    states : array of shape (n_starts, state_size)
        Before the first steps.
    outputs : array of shape (n_starts, n_outputs)
        What the first steps receive of the outputs.
    exog : array of shape (n_starts, n_steps, n_exog) or None
    followed : array of shape (n_steps, n_starts, n_outputs)
        What the outputs are compared with; NaN where nothing is known.
    spread : array of shape (n_outputs,)
        Standard deviations of the targets learned from.
    scale, offset : arrays of shape (n_outputs,)
        Targets are inputs times `scale`, plus `offset`; all else is in units of the inputs.
    """

    model: Any
    states: Array
    outputs: Array
    exog: Array | None
    followed: Array
    spread: Array
    scale: Array
    offset: Array

    def errors(self, coefs: Array, intercepts: Array) -> Array:
        """Return the typical error of a step under each readout, (n_readouts, 1).

        In standard deviations: the geometric mean over steps, the median over loops.
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
    """Prepare the loops that penalties are judged by, before anything is learned.

    Parameters
    ----------
    model : ReadoutModel
        That has learned nothing of these rows.
    sequences : sequence of TrainingSequence
        Of part 0 of their rows is learned, those behind it are held out.
    targets : sequence of arrays of shape (n_samples, n_outputs)
    """
    source, n_outputs = model.source, targets[0].shape[1]
    scale, offset = np.ones(n_outputs), np.zeros(n_outputs)
    if not source.n_fed_back:
        scale, offset = _units_of_inputs(sequences, targets)
    # rows that are not learned from are not compared with either
    known = [
        _known(sequence, (Y - offset) / scale)
        for sequence, Y in zip(sequences, targets, strict=True)
    ]
    ends = [dict(sequence.cuts).get(0, 0) for sequence in sequences]
    learned = np.concatenate([Y[:end] for Y, end in zip(known, ends, strict=True)])
    places, n_steps = _places(sequences, ends, known)
    # listen to the rows before each place, as in training but for noise
    starts = [
        np.concatenate([sequence.state, sequence.last_output[: source.n_fed_back]])
        for sequence in sequences
    ]
    engine = source.engine_for(sum(len(sequence.X) for sequence in sequences))

    def listen(i: int, begin: int, end: int, state: Array) -> Array:
        rows, taught = sequences[i].X[begin:end], targets[i][begin:end]
        return state_behind(source, rows, taught, state, engine=engine)

    states = np.stack(states_before(places, starts, listen))[:, : source.state_size]
    # what enters each loop, and what its outputs are compared with
    windows = np.stack([sequences[i].X[t : t + n_steps] for i, t in places])
    outputs, exog = windows[:, 0, :n_outputs], windows[:, :, n_outputs:]
    if source.n_fed_back:
        outputs, exog = np.stack([targets[i][t - 1] for i, t in places]), windows
    followed = np.stack([known[i][t : t + n_steps] for i, t in places], axis=1)
    spread = learned[~np.isnan(learned).any(axis=1)].std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    given = exog if exog.shape[2] else None
    return FreeRunTrial(model, states, outputs, given, followed, spread, scale, offset)


def _known(sequence: TrainingSequence, targets: Array) -> Array:
    """Return targets, with NaN where a row has no weight."""
    if sequence.weights is None:
        return targets
    return np.where(sequence.weights[:, None] > 0, targets, np.nan)


def _units_of_inputs(
    sequences: Sequence[TrainingSequence], targets: Sequence[Array]
) -> tuple[Array, Array]:
    """Return scale and offset of targets that are the next inputs; refuse others."""
    n_outputs, n_features = targets[0].shape[1], sequences[0].X.shape[1]
    if n_outputs > n_features:
        raise ValueError(
            f"{_ASKED} feeds outputs back as inputs, but y has {n_outputs} columns and X "
            f"{n_features}: the first columns of X must be the outputs. {_OTHER}"
        )
    pairing = NextInputCheck(n_outputs, feedback=False)
    for sequence, Y in zip(sequences, targets, strict=True):
        pairing.add(sequence.X, Y)
    if pairing.problem is None:
        return np.ones(n_outputs), np.zeros(n_outputs)
    found = affine_pairs([sequence.X for sequence in sequences], targets)
    if found is None:
        raise ValueError(
            f"{_ASKED} feeds outputs back as inputs and needs y[t] == X[t+1], or the same in "
            f"other units; {pairing.problem}. Make such pairs with "
            f'model_selection.make_forecast_pairs, horizon 1, or use alpha_selection="auto".'
        )
    return found


def _places(
    sequences: Sequence[TrainingSequence], ends: Sequence[int], known: Sequence[Array]
) -> tuple[list[tuple[int, int]], int]:
    """Return where loops begin, and how many steps they take; refuse too few rows."""
    lengths = [len(sequence.X) for sequence in sequences]
    first = [max(1, sequence.skip, end) for sequence, end in zip(sequences, ends, strict=True)]
    held = [n - begin for n, begin in zip(lengths, first, strict=True) if n > begin]
    learned = [
        Y[sequence.skip : end] for sequence, end, Y in zip(sequences, ends, known, strict=True)
    ]
    kept = sum(int(np.sum(~np.isnan(Y).any(axis=1))) for Y in learned)
    n_steps = min(_LONGEST, sum(held) // max(2 * len(held), 1))
    if n_steps < _SHORTEST or not kept:
        raise ValueError(
            f"{_ASKED} holds out the last fifth of the rows "
            f"behind the washout, of each sequence or whole sequences, and finds {sum(held)} in "
            f"{len(held)} sequences, with {kept} to learn from; {2 * _SHORTEST} in each and 1 are "
            'the least. Give a longer series, a smaller washout, or alpha_selection="auto".'
        )
    places = [
        (i, t)
        for i, t in places_behind(first, lengths, n_steps, _N_STARTS)
        if not np.isnan(known[i][t : t + n_steps]).any(axis=1).all()
    ]
    if not places:
        raise ValueError(
            f"{_ASKED} has nothing to compare loops with: all "
            f"{sum(held)} targets that are held out are missing or of weight 0. "
            'Use alpha_selection="auto".'
        )
    return places, n_steps

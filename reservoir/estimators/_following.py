"""Whether rows go on right after those of training, as far as an index tells."""

from __future__ import annotations

import warnings
from typing import NamedTuple

from reservoir._validation import Ending, Sequences, caller_level

Ended = tuple[Ending | None, Ending | None]
NOWHERE: Ended = (None, None)  # no index told where X and y ended


class Gap(NamedTuple):
    """Rows that do not follow: where those before ended and where these begin, as text."""

    name: str
    end: str
    begin: str


def gap_before(ended: Ended, sequences: Sequences) -> Gap | None:
    """Return the gap between training and the first sequence; None if there is none, or none known.

    The index of X decides; where it tells nothing, on either side, that of y.
    """
    times = sequences.times
    for name, ending, span in zip("Xy", ended, (times.X, times.y), strict=True):
        if ending is None or span is None or ending.kind != span.first.kind:
            continue
        if ending.plain and span.first.plain:
            continue
        if span.first.follows(ending):
            return None
        return Gap(name, ending.shown, span.first.show(0))
    return None


def endings(ended: Ended, sequences: Sequences, *, goes_on: bool) -> Ended:
    """Return where the last sequence ends; `goes_on`: the first is a further chunk of another."""
    same = goes_on and len(sequences) == 1
    x, y = sequences.times.ended(ended if same else NOWHERE)
    if not same:
        return x, y
    # rows that are numbered from 0 in every chunk say nothing of where they stand in the whole
    return None if x and x.plain else x, None if y and y.plain else y


def warn_of_restart(gap: Gap, *, from_zeros: bool) -> None:
    """Say that a run does not go on from the state at the end of training."""
    start = "zeros" if from_zeros else "the steady state of its first row"
    warnings.warn(
        f'initial_state="last" goes on from the end of training, but {gap.name} begins at '
        f"{gap.begin} and does not follow it: training ended at {gap.end}. This run starts from "
        f"{start} instead. To cross-validate, let the rows before a test block warm it up: "
        'initial_state="zeros" with ContextSplit and washout_scorer. To go on all the same give '
        "initial_state=model.state_ to predict; to start anew without this warning, "
        'initial_state="steady" or "zeros".',
        UserWarning,
        stacklevel=caller_level(),
    )


def warn_of_gap(gap: Gap) -> None:
    """Say that a chunk is learned from as if it followed."""
    warnings.warn(
        f"partial_fit goes on from the state at the end of the last chunk, but {gap.name} begins "
        f"at {gap.begin} and that chunk ended at {gap.end}. Give new_sequence=True where a chunk "
        "does not follow, or the rows between.",
        UserWarning,
        stacklevel=caller_level(),
    )

"""Networks that read rows to come: what needs them one by one, or in chunks, is refused by name."""

from __future__ import annotations

from typing import Any

from reservoir._typing import Array
from reservoir._validation import Sequences
from reservoir.training.bptt import Network


def require_causal(model: Any, what: str) -> None:
    """Refuse what a fitted network cannot do whose states depend on rows to come."""
    if not model.network_.cell.causal:
        remedy = 'Use a cell without one, such as cell="lstm"; predict takes whole recordings'
        _refuse(model.cell, what, remedy)


def check_recordings(estimator: Any, network: Network, sequences: Sequences) -> None:
    """Refuse settings that cut recordings, or carry states on, before such a network is trained."""
    if network.cell.causal:
        return
    if not isinstance(estimator.truncation, (str, type(None))):
        what = f"truncation={estimator.truncation} cuts rows to come off"
        _refuse(estimator.cell, what, 'Use truncation="auto", whole sequences')
    last = None if len(sequences) > 1 else sequences.arrays[0]
    check_start(estimator.cell, estimator.initial_state, last)


def check_start(cell: Any, spec: Any, last: Array | None) -> None:
    """Refuse any start but zeros; "last" is that where `last`, a run to go on from, is None."""
    if isinstance(spec, str) and (spec == "zeros" or (spec == "last" and last is None)):
        return
    said = repr(spec) if isinstance(spec, str) else "an array"
    what = f"initial_state={said} goes on from a state that rows before it have led to"
    _refuse(cell, what, 'Set initial_state="zeros"')


def _refuse(cell: Any, what: str, remedy: str) -> None:
    raise ValueError(
        f"{what}, and cell={cell!r} has a part that reads rows from the end of a recording back "
        f"to its start. {remedy}."
    )

"""Runs of trained networks that overflow, or that cannot go on from another network."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reservoir._typing import Array
from reservoir.training.bptt import Network
from reservoir.training.trainer import Training


def refuse_overflow(name: str, parts: list[Array], numbers: Sequence[int] | None = None) -> None:
    for i, rows in enumerate(parts):
        if not np.isfinite(rows).all():
            row = int(np.argmin(np.isfinite(rows).all(axis=1)))
            number = i if numbers is None else numbers[i]
            where = f"row {row}" if len(parts) == 1 else f"row {row} of sequence {number}"
            raise ValueError(
                f"The {name} of {where} overflows {rows.dtype}: the input there is far outside "
                "what the network was trained on. Check that row, or scale the data."
            )


def refuse_lost(done: Training) -> None:
    if not np.isfinite(done.criterion[done.best_epoch]):
        raise ValueError(
            "The loss overflows from the start on. Scale X and y, or use a bounded activation "
            'such as "tanh".'
        )


def check_same(network: Network, before: Network) -> None:
    for name in ("cell", "n_features", "n_outputs", "include_input"):
        ours, theirs = getattr(network, name), getattr(before, name)
        if ours != theirs:
            raise ValueError(
                f"warm_start=True goes on with the network of the last fit, which had "
                f"{name}={theirs!r}; now it is {ours!r}. Use warm_start=False."
            )

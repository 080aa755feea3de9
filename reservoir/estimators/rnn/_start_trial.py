"""Starts on trial: for one target per sequence no rule says which start suits, some epochs do.

A reservoir under a ridge readout knows patients and speakers before any gradient; what decides long
before the end of a sequence is learned from random weights, or not at all. So where ``init="auto"``
meets ``target="last"``, each start is trained for a while on three quarters of the sequences, the
last quarter says who was best, and the best goes on from there, with all of them.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import train_test_split

from reservoir._typing import Array
from reservoir.estimators._reporting import say
from reservoir.estimators.rnn._starting_weights import starting_weights
from reservoir.estimators.rnn._training_run import run_training
from reservoir.training.bptt import Network
from reservoir.training.params import Params
from reservoir.training.trainer import Data

CANDIDATES = ("least_squares", "esn", "orthogonal")
_HELD = 0.25  # of the sequences
_FEWEST = 12  # sequences: fewer say nothing
_PART, _LEAST = 8, 10  # epochs of a trial: an eighth of all, ten at least, if there are so many


def wants_trial(estimator: Any, network: Network, data: Data) -> bool:
    """Say whether starts are to be compared: nobody has named one, and there is what to compare."""
    named = not isinstance(estimator.init, str) or estimator.init != "auto"
    if named or estimator.target != "last" or not estimator.max_iter:
        return False
    return network.cell.layer() is not None and len(data) >= _FEWEST


def best_start(
    estimator: Any, network: Network, data: Data, generator: np.random.Generator
) -> tuple[str, Params] | None:
    """Return the start that some epochs suit best, and its weights then.

    None if weights of 0 leave no sequence to learn from, or none to compare by.
    """
    kept, held = (data.picked(index) for index in _parted(estimator, data, generator))
    if _counted(kept) < 2 or not _counted(held):
        return None
    short = copy(estimator)
    short.max_iter = min(estimator.max_iter, max(_LEAST, estimator.max_iter // _PART))
    short.verbose = False
    found = []
    for name, spawned in zip(CANDIDATES, generator.spawn(len(CANDIDATES)), strict=True):
        short.init = name
        params = starting_weights(short, network, None, None, kept, generator=spawned)
        done = run_training(short, network, params, kept, held, spawned)
        loss = done.criterion[done.best_epoch]
        found.append((loss if np.isfinite(loss) else np.inf, name, done.params))
        if estimator.verbose:
            say(
                f"Trial of init={name!r}: loss {loss:.6g} of held-out sequences in epoch "
                f"{done.best_epoch}"
            )
    _, name, params = min(found, key=lambda one: one[0])
    return name, params


def _parted(estimator: Any, data: Data, generator: np.random.Generator) -> tuple[Array, Array]:
    """Draw which sequences are learned from and which are held out; of labels a share of each."""
    n, labels = len(data), None
    if is_classifier(estimator):
        coded, codes, counts = np.unique(
            np.stack(list(data.targets)), axis=0, return_inverse=True, return_counts=True
        )
        if counts.min() > 1 and len(coded) <= _HELD * n:
            labels = codes.ravel()
    seed = int(generator.integers(2**31))
    kept, held = train_test_split(np.arange(n), test_size=_HELD, stratify=labels, random_state=seed)
    return np.sort(kept), np.sort(held)


def _counted(data: Data) -> int:
    """Return how many sequences have a weight."""
    if data.weights is None:
        return len(data)
    return sum(bool(np.any(np.asarray(weight) > 0)) for weight in data.weights)

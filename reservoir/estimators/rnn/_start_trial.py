"""Starts on trial: for one target per sequence no rule says which start suits, some epochs do.

A reservoir under a ridge readout knows patients and speakers before any gradient; what decides long
before the end of a sequence is learned from random weights, or not at all. So where ``init="auto"``
meets ``target="last"``, each start is trained for a while on three quarters of the sequences, the
last quarter says which is ahead, and it goes on from there, with all of them. Random weights are
taken unless another start is clearly ahead: a start that has learned its three quarters by heart is
ahead of nothing, and what random weights stand on for some epochs is often a plateau, not the end.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from scipy.stats import t
from sklearn.base import is_classifier
from sklearn.model_selection import train_test_split

from reservoir._typing import Array
from reservoir.estimators._reporting import say
from reservoir.estimators.rnn._starting_weights import starting_weights
from reservoir.estimators.rnn._training_run import run_training
from reservoir.training.bptt import Network
from reservoir.training.params import Params
from reservoir.training.trainer import Data, data_loss

CANDIDATES = ("least_squares", "esn", "orthogonal")
BASE = "orthogonal"  # what is taken unless another is clearly ahead
_BY_CHANCE = 0.025  # how often noise is ahead
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
    """Return the start that is to be trained, and its weights after some epochs.

    None if weights of 0 leave no sequences to learn from, or to compare by.
    """
    kept, held = (data.picked(index) for index in _parted(estimator, data, generator))
    held = held.picked(_counted(held))
    if len(_counted(kept)) < 2 or len(held) < 2:
        return None
    short = copy(estimator)
    short.max_iter = min(estimator.max_iter, max(_LEAST, estimator.max_iter // _PART))
    short.n_iter_no_change = short.max_iter + 1  # some epochs on a plateau say nothing
    short.verbose = False
    trained, losses = {}, {}
    for name, spawned in zip(CANDIDATES, generator.spawn(len(CANDIDATES)), strict=True):
        short.init = name
        params = starting_weights(short, network, None, None, kept, generator=spawned)
        done = run_training(short, network, params, kept, held, spawned)
        trained[name], losses[name] = done.params, _losses(network, done.params, held)
        if estimator.verbose:
            say(
                f"Trial of init={name!r}: loss {done.criterion[done.best_epoch]:.6g} of held-out "
                f"sequences in epoch {done.best_epoch}"
            )
    weights = np.ones(len(held)) if held.weights is None else np.ravel(list(held.weights))
    ahead = [name for name in CANDIDATES if _is_ahead(losses[name], losses[BASE], weights)]
    best = min(ahead, key=lambda name: weights @ losses[name], default=BASE)
    if estimator.verbose:
        say(f"Training goes on from init={best!r}")
    return best, trained[best]


def _losses(network: Network, params: Params, data: Data) -> Array:
    """Return the loss of each sequence."""
    each = (data.picked(np.array([i])) for i in range(len(data)))
    with np.errstate(over="ignore", invalid="ignore"):
        return np.array([data_loss(network, params, one) for one in each])


def _is_ahead(losses: Array, of: Array, weights: Array) -> bool:
    """Say whether losses are clearly the lower ones, by a paired t test."""
    if not np.isfinite(losses).all():
        return False
    if not np.isfinite(of).all():
        return True
    gains, shares = of - losses, weights / weights.sum()
    mean, largest = float(shares @ gains), float(shares @ shares)
    if largest == 1:  # a single sequence
        return False
    # of a mean with unequal weights; with equal ones the variance over n
    variance = largest / (1 - largest) * float(shares @ (gains - mean) ** 2)
    return mean > t.isf(_BY_CHANCE, 1 / largest - 1) * np.sqrt(variance)


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


def _counted(data: Data) -> Array:
    """Return which sequences have a weight."""
    if data.weights is None:
        return np.arange(len(data))
    return np.flatnonzero([np.any(np.asarray(weight) > 0) for weight in data.weights])

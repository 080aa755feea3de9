"""A forward filter over the labels of a sequence, which follow each other as in a Markov chain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.readouts.temperature import probabilities

#: Powers of the evidence, and shares of the learned transitions, among which a filter is chosen.
POWERS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
SHARES = (0.25, 0.5, 0.75, 0.9, 1.0)
_PIECE = 1000  # rows after which the filters to choose from restart, so that pieces run together
_TINY = np.finfo(np.float32).tiny  # of a probability, so that its logarithm is finite


@saved
class LabelFilter:
    """Forward filter over the labels of a sequence: ``p_t ~ (T' p_(t-1)) (q_t / f)^a`` at row t.

    Here q_t are the readout's probabilities, f the `frequencies` of the classes, (n_classes,), all
    positive, a the `power`, and T the `transition`, (n_classes, n_classes): T_ij is the probability
    that class j follows class i. ``T = 1 f' + g (M - 1 f')`` mixes the transitions M of the labels
    with independent labels. A readout over states with memory knows past rows already: a < 1 and g
    < 1 do not count them twice. Before the first row f takes the place of T' p. With a = 1 and g =
    0 nothing is filtered.
    """

    def __init__(self, frequencies: Array, transition: Array, power: float) -> None:
        self.frequencies, self.transition, self.power = frequencies, transition, power

    @property
    def is_neutral(self) -> bool:
        """Whether the filter returns the probabilities of the readout."""
        return self.power == 1.0 and bool((self.transition == self.frequencies).all())

    def run(self, scores: Array, temperature: float, start: Array) -> tuple[Array, Array]:
        """Filter the scores of consecutive rows.

        `scores` are (n_rows, n_classes), or (n_rows, 1) for two classes, whose scores are then -s
        and s. Return scores of this shape, whose softmax after division by `temperature` is p, and
        the start of the row after the last. A start is the logarithm of T' p over f before a row,
        (n_classes,); zeros where a sequence begins.
        """
        if self.is_neutral:
            return scores, np.zeros_like(start)
        evidence = _evidence(probabilities(scores.astype(float), temperature), self.frequencies)
        evidence **= self.power
        prior, found = self.frequencies * np.exp(start.astype(float)), np.empty_like(evidence)
        for t, seen in enumerate(evidence):
            now = prior * seen
            found[t] = now = now / now.sum()
            prior = now @ self.transition
        logs = temperature * np.log(np.maximum(found, _TINY))
        if scores.shape[1] == 1:
            logs = (logs[:, 1:] - logs[:, :1]) / 2
        return logs.astype(scores.dtype), np.log(prior / self.frequencies).astype(start.dtype)


class LabelledSequence(NamedTuple):
    """The labels of a sequence, and probabilities of fits, some of whose rows are held out.

    `probabilities` are (n_rows, n_classes); the others have an entry a row. `labels` are the places
    of labels among the classes. Rows of weight 0 count nowhere. `scored` marks the held-out rows,
    whose probabilities are of a fit without them.
    """

    probabilities: Array
    labels: Array
    weights: Array
    scored: Array


def fitted_filter(sequences: Sequence[LabelledSequence]) -> LabelFilter:
    """Choose the filter under which labels of held-out rows have the least log loss.

    Transitions are counted between neighbouring rows that have weight, each with the weight of the
    later row, and one more transition of average weight from each class, to all in proportion to
    their frequencies. If no filter has a lower log loss than the probabilities as they are, the
    filter is neutral.
    """
    n_classes = sequences[0].probabilities.shape[1]
    frequencies = class_frequencies(sequences, n_classes)
    moves = transitions(sequences, frequencies)
    independent = np.tile(frequencies, (n_classes, 1))
    choices = [(1.0, 0.0), *((power, share) for share in SHARES for power in POWERS)]
    mixtures = np.stack([independent + share * (moves - independent) for _, share in choices])
    powers = np.array([power for power, _ in choices])
    losses = _log_losses(list(_pieces(sequences)), frequencies, mixtures, powers)
    best = int(np.argmin(losses))  # of equal losses the first: no filter
    return LabelFilter(frequencies, mixtures[best], float(powers[best]))


def neutral_filter(n_classes: int) -> LabelFilter:
    """Return a filter that changes nothing, for fits without held-out rows."""
    equal = np.full(n_classes, 1 / n_classes)
    return LabelFilter(equal, np.tile(equal, (n_classes, 1)), 1.0)


def class_frequencies(sequences: Sequence[LabelledSequence], n_classes: int) -> Array:
    """Return the weighted frequencies of the classes, (n_classes,), each at least of half a row."""
    counts, n_rows = np.zeros(n_classes), 0
    for each in sequences:
        has = each.weights > 0
        counts += np.bincount(each.labels[has], each.weights[has], n_classes)
        n_rows += int(has.sum())
    counts += 0.5 * counts.sum() / max(n_rows, 1)
    result: Array = counts / counts.sum()
    return result


def transitions(sequences: Sequence[LabelledSequence], frequencies: Array) -> Array:
    """Return the probabilities that one class follows another, (n_classes, n_classes)."""
    counts, n_pairs = np.zeros((len(frequencies), len(frequencies))), 0
    for each in sequences:
        has = each.weights > 0
        both = np.flatnonzero(has[:-1] & has[1:])
        np.add.at(counts, (each.labels[both], each.labels[both + 1]), each.weights[both + 1])
        n_pairs += len(both)
    counts += frequencies * (counts.sum() / n_pairs if n_pairs else 1.0)
    result: Array = counts / counts.sum(axis=1, keepdims=True)
    return result


def _evidence(shares: Array, frequencies: Array) -> Array:
    """Return probabilities over frequencies, of which the largest in a row is 1."""
    ratios = shares / frequencies
    result: Array = ratios / ratios.max(axis=-1, keepdims=True)
    return result


def _pieces(sequences: Sequence[LabelledSequence]) -> Iterator[LabelledSequence]:
    """Cut sequences into pieces of a limited number of rows."""
    for each in sequences:
        for start in range(0, len(each.labels), _PIECE):
            yield LabelledSequence(*(rows[start : start + _PIECE] for rows in each))


def _log_losses(
    sequences: Sequence[LabelledSequence], frequencies: Array, mixtures: Array, powers: Array
) -> Array:
    """Return the total log loss of each filter on the held-out rows, (n_filters,).

    All sequences and filters run together, one row of each sequence at a time.
    """
    by_length = sorted(sequences, key=lambda each: -len(each.labels))
    lengths = np.array([len(each.labels) for each in by_length])
    first = np.cumsum(lengths) - lengths
    shares, labels, weights, scored = (
        np.concatenate(rows) for rows in zip(*by_length, strict=True)
    )
    evidence = _evidence(shares, frequencies)
    weights = np.where(scored, weights, 0.0)
    prior = np.tile(frequencies, (len(powers), len(first), 1))
    losses = np.zeros(len(powers))
    for t in range(lengths[0]):
        rows = first[: np.searchsorted(-lengths, -t)] + t  # of sequences with more than t rows
        now = prior[:, : len(rows)] * evidence[rows] ** powers[:, None, None]
        now /= now.sum(axis=2, keepdims=True)
        right = now[:, np.arange(len(rows)), labels[rows]]
        losses -= np.log(np.maximum(right, _TINY)) @ weights[rows]
        prior = now @ mixtures
    return losses

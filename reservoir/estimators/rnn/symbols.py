"""Arguments of `RNNClassifier.sample`: the symbols to read first, and the allowed transitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from reservoir._tables import Sequences
from reservoir._typing import Array
from reservoir._validation import as_plain
from reservoir.estimators.rnn.network_model import NetworkModel

_FEEDS_BACK = (
    "sample feeds each symbol that it draws back as the next input. X must therefore contain the "
    "symbols one-hot, with a column for each class in the order of classes_, or, with n_symbols, "
    "as their indices in classes_; and y[t] must be the symbol of X[t+1]. "
)


def check_alphabet(classifier: Any) -> None:
    """Check that the classes of a network are the symbols that it reads."""
    if classifier.target != "step" or classifier._reader.targets.per_sequence:
        raise ValueError('sample needs a label at every step, but this network has target="last".')
    if classifier._model.clock is not None:
        classifier._model.clock.check_can_loop()
    n_inputs, n_classes = classifier.network_.n_features, len(classifier.classes_)
    if n_inputs != n_classes:
        raise ValueError(
            f"{_FEEDS_BACK}Here the network reads {n_inputs} column(s), but there are "
            f"{n_classes} classes. From an array of symbols create "
            "`X, y = symbols[:-1, None] == np.unique(symbols), symbols[1:]`, then call fit; "
            "if y does not contain all symbols, pass all of them as classes to partial_fit."
        )
    problem = classifier._model.progress.pairing.problem
    if problem is not None:
        raise ValueError(f"{_FEEDS_BACK}Here, with y as columns of classes, {problem}.")


def begin(classifier: Any, context: Any, initial_state: Any) -> tuple[int, Array]:
    """Return the last known symbol, and the state before it.

    This is the state after all other symbols of the context, or the state at the end of training.
    """
    if context is None:
        return _end_of_training(classifier, initial_state)
    sequences = _read_context(classifier, context)
    rows = sequences.arrays[0]
    symbols = _symbols_of(rows, coded=classifier.network_.coded)
    predictor = classifier._predictor()
    start = predictor.starts(initial_state, sequences)[0]
    if len(rows) == 1:
        return int(symbols[-1]), start
    return int(symbols[-1]), predictor.state_after(rows[:-1], None, start)


def _end_of_training(classifier: Any, initial_state: Any) -> tuple[int, Array]:
    progress = classifier._model.progress
    if not progress.continues:
        raise ValueError(
            "After training on several sequences there is no single state to continue from: sample "
            "needs a context, the symbols to read first."
        )
    if np.isnan(progress.last_output).any():
        raise ValueError(
            "The last training label is missing, so there is no first symbol. Pass a context."
        )
    symbol = int(np.argmax(progress.last_output))
    if initial_state is None:
        return symbol, classifier.state_
    one = Sequences((row_of_symbol(classifier._model, symbol)[None],), "table")
    return symbol, classifier._predictor().starts(initial_state, one)[0]


def _read_context(classifier: Any, context: Any) -> Sequences:
    """Return the rows of a context, given as symbols or as X in fit."""
    if isinstance(context, str):
        raise TypeError(
            f"context={context!r} is a single string. Pass its symbols one by one: "
            f"`context = list(context)`."
        )
    if np.ndim(context) != 1:
        sequences: Sequences = classifier._reader.inputs(classifier, context)
        if len(sequences) != 1:
            raise ValueError(f"context must be one sequence; got {len(sequences)} sequences.")
        return sequences
    symbols = as_plain("context", context)
    if not len(symbols):
        raise ValueError("context contains no symbol. Pass at least one, or context=None.")
    classes = classifier.classes_
    known = np.isin(symbols, classes)
    if not known.all():
        raise ValueError(
            f"context contains {symbols[~known].tolist()[0]!r}, which is not among the classes "
            f"{_shown(classes)}."
        )
    places = np.searchsorted(classes, symbols)
    rows = np.stack([row_of_symbol(classifier._model, place) for place in places])
    return Sequences((rows,), "table")


def row_of_symbol(model: NetworkModel, symbol: int) -> Array:
    """Return the row of X for a symbol: its number, or one-hot."""
    if model.network.coded:
        return np.array([symbol], dtype=model.dtype)
    row = np.zeros(model.network.n_features, model.dtype)
    row[symbol] = 1
    return row


def _symbols_of(rows: Array, *, coded: bool) -> Array:
    """Return the symbol of each row of a context."""
    if coded:
        return rows[:, 0].astype(int)
    one_hot = ((rows == 0) | (rows == 1)).all(axis=1) & (rows.sum(axis=1) == 1)
    if not one_hot.all():
        row = int(np.argmin(one_hot))
        raise ValueError(
            f"Row {row} of context is not a symbol: one of its columns must be 1, the others 0. "
            f"{_FEEDS_BACK}"
        )
    return rows.argmax(axis=1)


def read_allowed(allowed: Any, classes: Array, first: int) -> Callable[[int], Array | None]:
    """Return a function from the last symbol to the symbols that may follow; None means all."""
    if allowed is None:
        return lambda symbol: None
    n = len(classes)
    table = allowed
    if not sparse.issparse(allowed) or allowed.ndim == 1:
        table = allowed.toarray() if sparse.issparse(allowed) else as_plain("allowed", allowed)
    if table.shape not in ((n,), (n, n)) or table.dtype.kind not in "biuf":
        raise ValueError(
            f"allowed must be a mask of shape ({n},), with an entry for each class in the order of "
            f"classes_, or an adjacency matrix of shape ({n}, {n}), with a row for each last "
            f"symbol; got {table.dtype} of shape {table.shape}."
        )
    if table.ndim == 1:
        mask = np.flatnonzero(_as_mask(table))
        if not len(mask):
            raise ValueError("allowed excludes all symbols: at least one must be True.")
        return lambda symbol: mask
    if sparse.issparse(table):  # a copy, since it is changed below
        _as_mask(table.tocsr().data)
        matrix = sparse.csr_array(table, copy=True)
    else:
        matrix = sparse.csr_array(_as_mask(table))
    matrix.sum_duplicates()  # each symbol once, in order
    matrix.eliminate_zeros()
    _check_no_dead_ends(matrix, classes, first)
    ends, indices = matrix.indptr, matrix.indices
    return lambda symbol: indices[ends[symbol] : ends[symbol + 1]]


def _as_mask(values: Array) -> Array:
    if not np.isfinite(values).all():
        raise ValueError("allowed contains NaN or infinity. Use True or 1 for allowed symbols.")
    return values != 0


def _check_no_dead_ends(matrix: Any, classes: Array, first: int) -> None:
    """Check that no symbol that a walk can reach has no allowed successor."""
    met = csgraph.breadth_first_order(matrix, first, return_predecessors=False)
    stuck = np.sort(met[np.diff(matrix.indptr)[met] == 0])
    if len(stuck):
        raise ValueError(
            f"allowed excludes all symbols after {classes[stuck].tolist()[0]!r} (row "
            f"{stuck[0]}), which may be drawn. Allow a symbol in that row, for instance the symbol "
            "itself, or exclude the symbol in the other rows."
        )


def _shown(classes: Array) -> str:
    names = ", ".join(map(repr, classes[:10].tolist()))
    return f"[{names}]" if len(classes) <= 10 else f"[{names}, ... {len(classes)} in total]"

"""What all least-squares methods share: the data as one batch, its rows in blocks, the checks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reservoir._typing import Array, RandomState
from reservoir._validation import as_generator, check_choice, check_count, check_number
from reservoir.training.bptt import Batch, Network, make_batch
from reservoir.training.cells import Cell, GRUCell, LSTMCell, SimpleCell
from reservoir.training.losses import OUTPUTS, check_targets, invert_output
from reservoir.training.params import Params

BLOCK_ROWS = 512
TARGETS = ("step", "last")


@dataclass(frozen=True, eq=False)
class Task:
    """A network, the batch it is to fit, and which rows decide what.

    Scores and errors are measured in units of `scale`, which is the standard deviation of each
    output where the output function is the identity: an output in large units is worth no more
    than another.

    Parameters
    ----------
    network : Network
    batch : Batch
    fit, judge : arrays of int
        Places in `batch.targets`: rows that the regressions see, and rows whose error decides
        whether a step is kept.
    washout : int
    rng_seed : int
        Of the start states that `echo_gap` compares.
    start : array of shape (n_sequences, state_size), optional
        Zeros by default.
    """

    network: Network
    batch: Batch
    fit: Array
    judge: Array
    washout: int = 0
    rng_seed: int = 0
    start: Array | None = None
    latent: Array = field(init=False)
    scale: Array = field(init=False)
    input_scale: Array = field(init=False)

    def __post_init__(self) -> None:
        output, targets = self.network.output, self.batch.targets
        latent = invert_output(targets.astype(np.float64, copy=False), output)
        scale = np.ones(self.network.n_outputs)
        if output == "identity":
            scale = _spread(latent[self.fit])
        inputs = self.batch.inputs.reshape(-1, self.network.n_features)
        # padding counts as zeros: only the unit is wanted
        object.__setattr__(self, "latent", latent / scale)
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "input_scale", _spread(inputs))

    @property
    def cell(self) -> Cell:
        """The recurrent layer."""
        return self.network.cell

    def steps(self, places: Array) -> Array:
        """Rows of the flattened (n_steps * n_sequences) arrays that belong to targets."""
        return places if self.batch.rows is None else self.batch.rows[places]

    def ran(self) -> Array:
        """Rows of the flattened arrays that are no padding."""
        n_steps, n_sequences = self.batch.inputs.shape[:2]
        if (self.batch.lengths == n_steps).all():
            return np.arange(n_steps * n_sequences)
        return np.flatnonzero(np.arange(n_steps)[:, None] < self.batch.lengths)

    def weights(self, places: Array) -> Array | None:
        """Weights of rows that have targets."""
        return None if self.batch.weights is None else self.batch.weights[places]


def _spread(A: Array) -> Array:
    """Return the standard deviation of each column, 1 where it is constant or its square is 0."""
    spread = A.std(axis=0, dtype=np.float64)
    least = np.maximum(1e-12 * np.abs(A).max(axis=0, initial=0.0), 1e-150)
    return np.where(spread <= least, 1.0, spread)


def blocks(rows: Array) -> Iterator[tuple[slice, Any]]:
    """Cut a list of rows into blocks: where they stand in the list, and how to take them."""
    for first in range(0, len(rows), BLOCK_ROWS):
        where = slice(first, min(first + BLOCK_ROWS, len(rows)))
        yield where, take_of(rows[where])


def take_of(rows: Array) -> Any:
    """Return how to take rows: by a slice, which copies nothing, if they follow each other."""
    if rows[-1] - rows[0] == len(rows) - 1:
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


def flat(A: Array) -> Array:
    """View an array (n_steps, n_sequences, k) as rows."""
    return A.reshape(-1, A.shape[-1])


def make_task(
    params: Params,
    X: Any,
    Y: Any,
    *,
    cell: Cell | None,
    output: str,
    include_input: bool,
    washout: int = 0,
    target: str = "step",
    sample_weight: Any = None,
    holdout: float = 0.0,
    random_state: RandomState = 0,
    start: Any = None,
) -> tuple[Task, Params]:
    """Read what a public function was given; returns the task, and a copy of the weights."""
    check_choice("output", output, OUTPUTS)
    check_choice("target", target, TARGETS)
    check_count("washout", washout, minimum=0)
    check_number("holdout", holdout, low=0.0, high=1.0, high_open=True)
    if cell is not None and not isinstance(cell, (SimpleCell, LSTMCell, GRUCell)):
        raise ValueError(
            f"Least squares knows SimpleCell, LSTMCell and GRUCell; got {type(cell).__name__}. "
            "Train it by gradients, for instance with solver='adam' or 'lbfgs', or online='bptt'."
        )
    weights = _read_weights(params)
    dtype = weights["W"].dtype
    inputs = _read_sequences("X", X, dtype)
    last = target == "last"
    targets = _read_sequences("Y", Y, dtype) if not last else _read_last(Y, len(inputs), dtype)
    _check_pairs(inputs, targets, last)
    cell = SimpleCell(len(weights["W"])) if cell is None else cell
    network = Network(
        cell, inputs[0].shape[1], targets[0].shape[-1], output, include_input=include_input
    )
    _check_shapes(weights, network)
    per_row = None
    if sample_weight is not None:
        per_row = _read_sample_weight(sample_weight, inputs, last)
    batch = make_batch(inputs, targets, weights=per_row, washout=0 if last else washout, last=last)
    if len(batch.targets) < 2:
        raise ValueError(
            f"A least-squares fit needs at least 2 rows with a target; {len(batch.targets)} are "
            f"left behind washout={washout}, of at most n_samples={batch.lengths.max()} each. "
            'Give more rows or sequences, or start from random weights, such as "orthogonal".'
        )
    check_targets(batch.targets, output, "mse")
    seed = int(as_generator(random_state).integers(2**31))
    fit, judge = _hold_out(batch, holdout, seed)
    begin = _read_start(start, cell, len(inputs), dtype)
    return Task(network, batch, fit, judge, washout, seed, begin), weights


def _read_start(start: Any, cell: Cell, n_sequences: int, dtype: Any) -> Array | None:
    if start is None:
        return None
    states = np.atleast_2d(np.asarray(start, dtype=dtype))
    if states.shape != (n_sequences, cell.state_size) or not np.isfinite(states).all():
        raise ValueError(
            f"state must be finite and have shape {(n_sequences, cell.state_size)}; got shape "
            f"{np.shape(start)}."
        )
    return states


def _read_weights(params: Any) -> Params:
    if not isinstance(params, dict) or "W" not in params:
        raise TypeError('params must be a dict of arrays with the names "W_in", "W", "bias", ...')
    dtype = np.asarray(params["W"]).dtype
    dtype = dtype if dtype in (np.float32, np.float64) else np.dtype(np.float64)
    weights = {name: np.array(array, dtype=dtype, order="C") for name, array in params.items()}
    for name, array in weights.items():
        if not np.isfinite(array).all():
            raise ValueError(f"params[{name!r}] holds NaN or infinity.")
    return weights


def _check_shapes(weights: Params, network: Network) -> None:
    """Compare names and shapes; a readout that is missing is fitted from nothing."""
    shapes = network.shapes()
    unknown = sorted(set(weights) - set(shapes))
    if unknown:
        raise ValueError(f"params holds unknown names {unknown}. Known: {sorted(shapes)}.")
    for name, shape in shapes.items():
        if name not in weights:
            if name in ("coef", "intercept"):
                weights[name] = np.zeros(shape, weights["W"].dtype)
                continue
            raise ValueError(f"params lacks {name!r}, of shape {shape}.")
        if weights[name].shape != shape:
            raise ValueError(
                f"params[{name!r}] must have shape {shape}; got {weights[name].shape}."
            )


def _read_sequences(name: str, A: Any, dtype: Any, ndim: int = 2) -> list[Array]:
    """Return a 2-D array, a 3-D array or a list of 2-D arrays as a list."""
    if isinstance(A, (list, tuple)) and len(A) and np.ndim(A[0]) == ndim:
        parts = [np.asarray(part, dtype=dtype) for part in A]
    else:
        array = np.asarray(A, dtype=dtype)
        parts = [array] if array.ndim == ndim else list(array) if array.ndim == ndim + 1 else []
    if not parts or any(part.ndim != ndim or len(part) == 0 for part in parts):
        raise ValueError(
            f"{name} must be one sequence of rows (n_samples, n_columns), an array "
            f"(n_sequences, n_steps, n_columns) or a list of 2-D arrays; got shape "
            f"{np.shape(A) if not isinstance(A, (list, tuple)) else [np.shape(a) for a in A]}."
        )
    widths = {part.shape[1:] for part in parts}
    if len(widths) > 1 or 0 in parts[0].shape:
        raise ValueError(f"all sequences of {name} must have one number of columns, at least 1.")
    for part in parts:
        if not np.isfinite(part).all():
            raise ValueError(f"{name} holds NaN or infinity. Leave rows out by sample_weight=0.")
    return parts


def _read_last(Y: Any, n_sequences: int, dtype: Any) -> list[Array]:
    array = np.asarray(Y, dtype=dtype)
    if array.ndim != 2 or len(array) != n_sequences:
        raise ValueError(
            f'target="last" needs Y of shape (n_sequences={n_sequences}, n_outputs); got '
            f"{array.shape}."
        )
    if not np.isfinite(array).all():
        raise ValueError("Y holds NaN or infinity.")
    return list(array)


def _check_pairs(inputs: list[Array], targets: list[Array], last: bool) -> None:
    if len(inputs) != len(targets):
        raise ValueError(f"X holds {len(inputs)} sequences, Y {len(targets)}; both must agree.")
    for i, (X, Y) in enumerate(zip(inputs, targets, strict=True)):
        if not last and len(X) != len(Y):
            raise ValueError(f"sequence {i} has {len(X)} rows in X and {len(Y)} in Y.")


def _read_sample_weight(sample_weight: Any, inputs: list[Array], last: bool) -> list[Array]:
    if last:
        parts = [*np.asarray(sample_weight, dtype=np.float64).reshape(-1, 1)]
        expected = [(1,)] * len(inputs)
    else:
        parts = _read_sequences("sample_weight", sample_weight, np.float64, ndim=1)
        expected = [(len(X),) for X in inputs]
    shapes = [np.shape(part) for part in parts]
    if shapes != expected:
        raise ValueError(f"sample_weight must have one number per target; got shapes {shapes}.")
    if any((np.asarray(part) < 0).any() or not np.isfinite(part).all() for part in parts):
        raise ValueError("sample_weight must be finite and at least 0 in every row.")
    return parts


def _hold_out(batch: Batch, share: float, seed: int) -> tuple[Array, Array]:
    """Return the places to fit and to judge: whole sequences held out, or the end of each."""
    every = np.arange(len(batch.targets))
    if share == 0.0:
        return every, every
    n_sequences = batch.inputs.shape[1]
    rows = every if batch.rows is None else batch.rows
    step, sequence = rows // n_sequences, rows % n_sequences
    if n_sequences * share >= 1:
        picked = np.random.default_rng(seed).permutation(n_sequences)
        held = np.isin(sequence, picked[: int(n_sequences * share)])
    else:
        held = step >= np.ceil(batch.lengths * (1 - share)).astype(int)[sequence]
    if held.sum() < 1 or (~held).sum() < 2:
        raise ValueError(
            f"holdout={share:g} leaves {(~held).sum()} rows to fit and {held.sum()} to judge: at "
            "least 2 and 1 are needed."
        )
    return every[~held], every[held]

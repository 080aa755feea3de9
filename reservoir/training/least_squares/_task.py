"""Data of the least-squares methods: a batch, and the rows to fit and to score."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reservoir._typing import Array, RandomState
from reservoir._validation import as_generator, check_choice, check_count, check_number
from reservoir._validation.arrays import read_array_targets, read_array_weights, read_arrays
from reservoir.training.bptt import Batch, Network, make_batch
from reservoir.training.cells import Cell, Layer, SimpleCell
from reservoir.training.cells.cell_parts import as_rows
from reservoir.training.codes import are_codes, mean_and_spread, valid_codes
from reservoir.training.losses import OUTPUTS, check_targets, invert_output
from reservoir.training.params import Params

BLOCK_ROWS = 512


@dataclass(frozen=True, eq=False)
class Task:
    """A least-squares task: a network, a batch, and the rows used for the fit and for the error.

    `fit` and `scored` index `batch.targets`: the rows of the regressions, and the rows whose error
    decides whether a step is kept. `latent`, (n_rows, n_outputs), are the targets before the output
    function, divided by `scale`: the standard deviation of each output for the identity, else 1.
    """

    network: Network
    batch: Batch
    fit: Array
    scored: Array
    washout: int = 0
    rng_seed: int = 0
    start: Array | None = None  # (n_sequences, state_size), zeros by default
    latent: Array = field(init=False)
    inputs: Array = field(init=False)  # (n_steps * n_sequences, n_channels), columns with weights
    scale: Array = field(init=False)
    input_scale: Array = field(init=False)  # unit of the inputs

    def __post_init__(self) -> None:
        output, targets = self.network.output, self.batch.targets
        latent = invert_output(targets.astype(np.float64, copy=False), output)
        scale = np.ones(self.network.n_outputs)
        if output == "identity":
            scale = _spread(latent[self.fit])
        object.__setattr__(self, "inputs", as_rows(self.cell.channels(self.batch.inputs)))
        # padding is included as zeros, since the scale of the inputs need not be exact
        object.__setattr__(self, "latent", latent / scale)
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "input_scale", self._input_scale())

    def _input_scale(self) -> Array:
        rows = self.inputs
        if not self.network.coded:
            return _spread(rows)
        spread = mean_and_spread(rows[self.ran()], self.network.n_features, len(rows))[1]
        return np.where(spread > 0, spread, 1.0)

    @property
    def cell(self) -> Cell:
        """The cell of the network."""
        return self.network.cell

    def steps(self, places: Array) -> Array:
        """Return the row indices in flattened (n_steps * n_sequences) arrays of some targets."""
        return places if self.batch.rows is None else self.batch.rows[places]

    def ran(self) -> Array:
        """Return the row indices in flattened arrays of all steps that are not padding."""
        n_steps, n_sequences = self.batch.inputs.shape[:2]
        if (self.batch.lengths == n_steps).all():
            return np.arange(n_steps * n_sequences)
        return np.flatnonzero(np.arange(n_steps)[:, None] < self.batch.lengths)

    def weights(self, places: Array) -> Array | None:
        """Return the weights of some targets; None if all are 1."""
        return None if self.batch.weights is None else self.batch.weights[places]


def _spread(A: Array) -> Array:
    """Return the standard deviation of each column, or 1 if it is 0 or nearly 0."""
    spread = A.std(axis=0, dtype=np.float64)
    least = np.maximum(1e-12 * np.abs(A).max(axis=0, initial=0.0), 1e-150)
    return np.where(spread <= least, 1.0, spread)


def blocks(rows: Array) -> Iterator[tuple[slice, Any]]:
    """Yield, for each block of an array of row indices, its slice and an index for its rows."""
    for first in range(0, len(rows), BLOCK_ROWS):
        where = slice(first, min(first + BLOCK_ROWS, len(rows)))
        yield where, take_of(rows[where])


def take_of(rows: Array) -> Any:
    """Return an index for rows: a slice, which needs no copy, if the rows are consecutive."""
    if rows[-1] - rows[0] == len(rows) - 1:
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


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
    """Check the arguments of a public function, and return a task and a copy of the weights."""
    check_choice("output", output, OUTPUTS)
    check_choice("target", target, ("step", "last"))
    check_count("washout", washout, minimum=0)
    check_number("holdout", holdout, low=0.0, high=1.0, high_open=True)
    # the network, from the shapes of weights and data
    layer = Layer if cell is None else _layer_of(cell)
    last, name = target == "last", layer.recurrent
    weights = _read_params(params, name)
    cell = SimpleCell(len(weights[name])) if cell is None else cell
    dtype = weights[name].dtype
    inputs = read_arrays("X", X, cell.held_in(dtype))
    targets = read_array_targets(Y, inputs, last=last)
    n_features, n_outputs = inputs[0].shape[1], targets[0].shape[-1]
    n_weights = weights[layer.inputs].shape[-1:] if layer.inputs in weights else ()
    # a single column of integers, while W_in has several columns: codes of symbols
    coded = n_features == 1 and n_weights > (1,) and not include_input
    if coded and all(valid_codes(rows, n_weights[0]).all() for rows in inputs):
        n_features = n_weights[0]
    network = Network(
        cell,
        n_features,
        n_outputs,
        output,
        include_input=include_input,
        coded=are_codes(inputs[0], n_features),
    )
    _check_shapes(weights, network)
    # the batch of all sequences, with their targets
    per_row = read_array_weights(sample_weight, inputs, last=last)
    skip = 0 if last else washout
    batch = make_batch(inputs, targets, weights=per_row, washout=skip, last=last, dtype=dtype)
    if len(batch.targets) < 2:
        raise ValueError(
            f"A least-squares fit needs at least 2 rows with a target; {len(batch.targets)} remain "
            f"after washout={washout}, of at most n_samples={batch.lengths.max()} per sequence. "
            'Use more rows or sequences, or start from random weights, such as "orthogonal".'
        )
    check_targets(batch.targets, output, "mse")
    seed = int(as_generator(random_state).integers(2**31))
    fit, scored = _hold_out(batch, holdout, seed)
    states = _read_start(start, cell, inputs)
    return Task(network, batch, fit, scored, washout, seed, states), weights


def _read_start(start: Any, cell: Cell, inputs: list[Array]) -> Array | None:
    if start is None:
        return None
    shape = (len(inputs), cell.state_size)
    states = np.atleast_2d(np.asarray(start, dtype=inputs[0].dtype))
    if states.shape != shape or not np.isfinite(states).all():
        raise ValueError(
            f"state must be finite and have shape {shape}; got shape {np.shape(start)}."
        )
    return states


def fitted_layer(cell: Cell) -> Layer | None:
    """Return the cell's layer if a regression can fit it, and None otherwise."""
    layer = cell.layer()
    return None if layer is None or layer.inverse is None else layer


def _layer_of(cell: Cell) -> Layer:
    layer = cell.layer()
    if layer is None:
        raise ValueError(
            "Least squares needs a cell that declares a layer, as SimpleCell, LSTMCell and GRUCell "
            f"do; got {type(cell).__name__}. Train it by gradients, for instance with "
            "solver='adam' or 'lbfgs', or online='bptt'."
        )
    return layer


def _read_params(params: Any, W: str) -> Params:
    """Return a copy of the weights, all in the recurrent weights' dtype; they must be finite."""
    if not isinstance(params, dict) or W not in params:
        raise TypeError(
            f'params must be a dict of arrays with the names "W_in", "{W}", "bias", ...'
        )
    dtype = np.asarray(params[W]).dtype
    dtype = dtype if dtype in (np.float32, np.float64) else np.dtype(np.float64)
    weights = {name: np.array(array, dtype=dtype, order="C") for name, array in params.items()}
    for name, array in weights.items():
        if not np.isfinite(array).all():
            raise ValueError(f"params[{name!r}] contains NaN or infinity.")
    return weights


def _check_shapes(weights: Params, network: Network) -> None:
    """Check the names and shapes of weights, and add a readout of zeros if there is none."""
    shapes = network.shapes()
    unknown = sorted(set(weights) - set(shapes))
    if unknown:
        raise ValueError(f"params has unknown names {unknown}. Known: {sorted(shapes)}.")
    for name, shape in shapes.items():
        if name in ("coef", "intercept"):
            dtype = next(iter(weights.values())).dtype
            weights.setdefault(name, np.zeros(shape, dtype))
        if name not in weights:
            raise ValueError(f"params lacks {name!r}, which must have shape {shape}.")
        if weights[name].shape != shape:
            raise ValueError(
                f"params[{name!r}] must have shape {shape}; got {weights[name].shape}."
            )


def _hold_out(batch: Batch, share: float, seed: int) -> tuple[Array, Array]:
    """Return the indices of the targets to fit and to score.

    Some sequences are held out, or the end of each sequence if there are few.
    """
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
            f"holdout={share:g} leaves {(~held).sum()} rows to fit and {held.sum()} to score. At "
            "least 2 rows to fit and 1 to score are needed."
        )
    return every[~held], every[held]

"""Initial weights computed from data: a reservoir with a fitted readout, and least squares.

A cell with a `layer` is drawn as a reservoir, and fitted. Any other cell assembles its weights from
those of its parts (`Cell.weights_from_data`), each of which is fitted as if it alone had to predict
the targets; then the readout is fitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation import (
    as_generator,
    check_choice,
    check_count,
    check_number,
    dense,
    resolve_washout,
)
from reservoir.building import build_reservoir
from reservoir.training._data import Data
from reservoir.training._evaluation import refit_readout
from reservoir.training.bptt import Network
from reservoir.training.cells import Cell
from reservoir.training.codes import mean_and_spread, valid_codes
from reservoir.training.least_squares._iterate import held_out_error
from reservoir.training.least_squares._ls_fit import MixedFit, with_open_gates
from reservoir.training.least_squares._task import Task, make_task
from reservoir.training.params import Params

__all__ = ["STARTS", "StartResult", "start"]

#: Names of starts computed from data.
STARTS = ("esn", "least_squares")
#: Factors of the input weights that are tried: the best input scaling depends on the task.
INPUT_SCALINGS = (1.0, 0.3, 0.1)
_HEDGE = 4.0  # times the smallest error, up to which full input weights are fitted too
N_DRAWS = 2  # reservoirs, of which one is fitted to the end
_UNINFORMATIVE = 0.98  # error of a readout that explains next to nothing of the variance
_N_ITER = 20  # maximum: the iterations stop when the error no longer falls


class NoStart(ValueError):
    """Raised if a cell has no start from data, in general or with its settings."""


@dataclass(frozen=True, eq=False)
class StartResult:
    """Initial weights computed from data, and the candidates that they were chosen from.

    Parameters
    ----------
    params : dict of arrays
        The weights by name.
    input_scalings : tuple of floats
        The factors of the input weights that were tried.
    errors : array of shape (n_draws, n_scalings)
        Held-out error of each reservoir with each factor, with only the readout fitted; NaN if
        there is only one candidate.
    halfway : array of shape (n_draws, n_scalings)
        The same errors after half of the iterations; NaN for the factors that were not chosen, and
        if only one reservoir was fitted.
    draw, scaling : int
        Indices of the reservoir and of the factor that were chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.starts import StartResult
    >>> errors = np.array([[0.3, 0.2, 0.4]])
    >>> found = StartResult({}, (1.0, 0.3, 0.1), errors, np.nan * errors, draw=0, scaling=1)
    >>> found.input_scalings[found.scaling]
    0.3
    """

    params: Params
    input_scalings: tuple[float, ...]
    errors: Array
    halfway: Array
    draw: int
    scaling: int


def start(
    network: Network,
    inputs: Sequence[Array],
    targets: Sequence[Array],
    *,
    scheme: str = "least_squares",
    weights: Sequence[Array] | None = None,
    initial_states: Array | None = None,
    target: str = "step",
    n_iter: int = _N_ITER,
    n_draws: int = N_DRAWS,
    input_scalings: Sequence[float] = INPUT_SCALINGS,
    tau: float | None = None,
    pass_on: bool = False,
    random_state: Any = None,
    dtype: Any = None,
) -> StartResult:
    """Compute initial weights for training from data.

    The recurrent layer is drawn as a reservoir with spectral radius .9, ten connections per unit,
    and input weights that act on each feature as if it had mean 0 and variance 1 / n_features.
    Gates are opened by their biases, and their weights are 0. The scheme "esn" fits the readout by
    ridge regression; "least_squares" then also fits the recurrent layer
    (`reservoir.training.least_squares.ls_fit`).

    How strong the inputs should be depends on the task, and some draws are better than others. The
    input weights of each reservoir are therefore also tried at .3 and .1 times their size, and two
    reservoirs are drawn. These six candidates are compared by the errors of readouts in rows that
    the readouts were not fitted to: five blocks of time, or five groups of sequences. "esn" takes
    the best one, or the largest input weights if no readout explains 2 % of the variance.
    "least_squares" fits the best candidate of each reservoir for half of the iterations, compares
    the two again, and fits the better one further. For the reservoir without the smallest error, it
    takes the largest input weights instead, unless their error is more than four times the
    smallest: a readout alone is better with nearly linear units, but least squares gains more from
    strongly driven ones.

    All this applies to a cell with a `layer`: `SimpleCell`, `TimedLeakyCell`, `LSTMCell` and
    `GRUCell`. Other cells compute their weights part by part (`Cell.weights_from_data`): each part
    with a layer is fitted in this way to the targets of the whole network, from a state of zeros,
    and the readout is fitted to the states of the whole cell. The candidates of the parts are not
    reported.

    Parameters
    ----------
    network : Network
        A network whose cell `starts_from_data`.
    inputs : sequence of arrays of shape (n_steps_i, n_features)
    targets : sequence of arrays of shape (n_steps_i, n_outputs), or (n_outputs,) for "last"
    scheme : {"least_squares", "esn"}, default="least_squares"
        Whether all weights are fitted, or only the readout.
    weights : sequence of arrays of shape (n_steps_i,), optional
        Weights of the rows; 0 excludes a row. By default, if there is only one sequence, its first
        rows are excluded as a washout, since the state still depends on the initial zeros: a tenth
        of the rows, and at most 100. For "last", one weight per sequence.
    initial_states : array of shape (n_sequences, state_size), optional
        The state before each sequence; by default zeros.
    target : {"step", "last"}, default="step"
        Whether each step has a target, or only the last step.
    n_iter : int, default=20
        Maximal number of iterations of "least_squares", at least 0.
    n_draws : int, default=2
        Number of reservoirs that are drawn, at least 1.
    input_scalings : sequence of floats, default=(1.0, 0.3, 0.1)
        Factors of the input weights that are tried, at least one, each above 0.
    tau : float, optional
        Relative distance from the best cross-validation score within which a larger ridge penalty
        is preferred; larger values keep the readout small. By default .05 for squared and absolute
        errors, and .2 for other losses, which the regressions do not minimise.
    pass_on : bool, default=False
        Whether upper layers of a stack pass on the states of the layer below at .3 of their size,
        instead of being fitted, if they have as many units. Such a stack is worse than a fitted
        one, but 75 or more iterations of variable projection then reach smaller errors.
    random_state : int, Generator, RandomState or None
        Source of the random reservoir.
    dtype : dtype, optional
        The dtype of the weights; by default that of the inputs, or float64 for whole numbers.

    Returns
    -------
    StartResult
        The weights, and the errors of the candidates.

    Raises
    ------
    ValueError
        If a parameter is out of its range, if the cell or a part of it has no start from data
        (`NoStart`), if `Cell.weights_from_data` returns other weights than the cell has, or if the
        states of all candidates diverge.

    Examples
    --------
    >>> from reservoir.datasets import narma
    >>> from reservoir.training.bptt import Network, loss_value, make_batch
    >>> from reservoir.training.cells import SimpleCell
    >>> from reservoir.training.starts import start
    >>> X, y = narma(1000, random_state=0)
    >>> network, batch = Network(SimpleCell(30), 1, 1), make_batch([X], [y[:, None]], washout=100)
    >>> drawn = start(network, [X], [y[:, None]], scheme="esn", random_state=0)
    >>> fitted = start(network, [X], [y[:, None]], random_state=0)
    >>> errors = [loss_value(network, found.params, batch)[0] for found in (drawn, fitted)]
    >>> errors[1] < 0.8 * errors[0]
    True
    """
    check_choice("scheme", scheme, STARTS)
    check_count("n_iter", n_iter, minimum=0)
    check_count("n_draws", n_draws)
    scalings = _read_scalings(input_scalings)
    generator = as_generator(random_state)
    if weights is None and target == "step" and len(inputs) == 1:
        skip = resolve_washout("auto", [len(inputs[0])])[0]
        weights = [(np.arange(len(inputs[0])) >= skip) * 1.0]
    if tau is None:
        tau = 0.05 if network.loss in ("mse", "mae") else 0.2
    check_number("tau", tau, low=0.0)
    if dtype is None:
        dtype = inputs[0].dtype if inputs[0].dtype.kind == "f" else np.float64
    n_iter = n_iter if scheme == "least_squares" else 0
    options = (target, n_iter, n_draws, scalings, tau, dtype, bool(pass_on))
    fit = _PartFit(network, list(targets), weights, generator, *options)
    if network.cell.layer() is not None:
        return fit.of_layer(network, list(inputs), initial_states)
    params = fit.of_parts(network.cell, list(inputs))
    readout = {name: np.zeros(network.shapes()[name], dtype) for name in ("coef", "intercept")}
    data = Data(inputs, targets, weights, initial_states, target == "last", dtype)
    params = refit_readout(network, {**params, **readout}, data, tau=tau)
    nothing = np.full((1, 1), np.nan)
    return StartResult(params, (1.0,), nothing, nothing, draw=0, scaling=0)


@dataclass(frozen=True, eq=False)
class _PartFit:
    """The function `fit` that `Cell.weights_from_data` receives."""

    network: Network
    targets: list[Array]
    weights: Sequence[Array] | None
    generator: np.random.Generator
    target: str
    n_iter: int
    n_draws: int
    scalings: tuple[float, ...]
    tau: float
    dtype: Any
    passes_on: bool

    def __call__(self, cell: Cell, inputs: Sequence[Array], *, backward: bool = False) -> Params:
        """Return the weights of a part of the cell, without a readout."""
        fit = self._reversed() if backward else self
        if cell.layer() is None:
            return fit.of_parts(cell, inputs)
        n_features = self._n_features(inputs)
        part = replace(
            self.network,
            cell=cell,
            n_features=n_features,
            include_input=False,
            coded=n_features > inputs[0].shape[1],
        )
        params = fit.of_layer(part, inputs).params
        return {name: params[name] for name in cell.weights(n_features)}

    def of_layer(
        self, network: Network, inputs: Sequence[Array], initial_states: Array | None = None
    ) -> StartResult:
        """Return the start of a network whose cell has a layer."""
        draws = [
            _drawn(network, inputs, self.scalings, self.generator, self.dtype)
            for _ in range(self.n_draws)
        ]
        task, _ = make_task(
            draws[0][0],
            list(inputs),
            self.targets,
            cell=network.cell,
            output=network.output,
            include_input=network.include_input,
            target=self.target,
            sample_weight=None if self.weights is None else list(self.weights),
            random_state=self.generator,
            start=initial_states,
        )
        return _best_fit(task, draws, self.scalings, self.n_iter, self.tau)

    def of_parts(self, cell: Cell, inputs: Sequence[Array]) -> Params:
        """Return the weights that a cell without a layer assembles, after checking them."""
        found = cell.weights_from_data(self, inputs)
        if found is None:
            raise NoStart(
                "A start from data needs a cell that declares a layer, as SimpleCell, LSTMCell and "
                "GRUCell do, or weights_from_data that returns weights; got "
                f'{type(cell).__name__}. Use an initializer, such as "glorot".'
            )
        shapes = cell.shapes(self._n_features(inputs))
        return _checked(type(cell).__name__, found, shapes, self.dtype)

    def _n_features(self, inputs: Sequence[Array]) -> int:
        """Return the number of input columns that have weights, also if the inputs are codes."""
        n_columns, n_symbols = inputs[0].shape[1], self.network.n_features
        coded = self.network.coded and n_columns == 1
        coded = coded and all(valid_codes(X, n_symbols).all() for X in inputs)
        return n_symbols if coded else n_columns

    def _reversed(self) -> _PartFit:
        """Return the same for rows in reverse order."""
        if self.target == "last":
            return self
        weights = None if self.weights is None else [w[::-1] for w in self.weights]
        return replace(self, targets=[Y[::-1] for Y in self.targets], weights=weights)


def _checked(name: str, found: Any, shapes: dict[str, tuple[int, ...]], dtype: Any) -> Params:
    """Check the weights that a cell's `weights_from_data` has returned; return them in a dtype."""
    what = f"{name}.weights_from_data"
    if not isinstance(found, dict) or set(found) != set(shapes):
        got = sorted(found) if isinstance(found, dict) else type(found).__name__
        raise ValueError(f"{what} must return a dict with the names {sorted(shapes)}; got {got}.")
    params = {key: np.array(found[key], dtype, order="C") for key in shapes}
    for key, array in params.items():
        if array.shape != shapes[key] or not np.isfinite(array).all():
            got = f"shape {array.shape}" if array.shape != shapes[key] else "NaN or infinity"
            raise ValueError(f"{what}: {key!r} must be finite, of shape {shapes[key]}; got {got}.")
    return params


def _best_fit(
    task: Task, draws: list[list[Params]], scalings: tuple[float, ...], n_iter: int, tau: float
) -> StartResult:
    """Fit the best of several reservoirs, each of which is given with several input scalings."""
    shape = (len(draws), len(scalings))
    errors, halfway = np.full(shape, np.nan), np.full(shape, np.nan)
    best = (0, 0)
    # compare the candidates with only the readout fitted
    if errors.size > 1:
        for i, j in np.ndindex(shape):
            opened = with_open_gates(task.cell, draws[i][j])
            errors[i, j] = held_out_error(task, opened, tau)
        best = _index_of_least(errors)
        # errors of readouts that predict nothing do not show how strong the inputs should be
        if not n_iter and task.network.output == "identity" and errors[best] > _UNINFORMATIVE:
            stable = np.isfinite(errors[best[0]])
            best = best[0], int(np.argmax(np.where(stable, scalings, 0.0)))
    # compare one candidate of each reservoir after half of the iterations
    fits = {}
    if n_iter > 1 and len(draws) > 1 and np.isfinite(errors.min(axis=1)).all():
        for i in range(len(draws)):
            j = best[1] if i == best[0] else _rival(errors[i], errors[best], scalings)
            fits[i, j] = MixedFit(task, draws[i][j], tau=tau).run(n_iter // 2)
            halfway[i, j] = held_out_error(task, fits[i, j].iterate.params, tau)
        best, n_iter = _index_of_least(halfway), n_iter - n_iter // 2
    fit = fits[best] if fits else MixedFit(task, draws[best[0]][best[1]], tau=tau)
    return StartResult(fit.run(n_iter).result().params, scalings, errors, halfway, *best)


def _read_scalings(input_scalings: Sequence[float]) -> tuple[float, ...]:
    scalings = tuple(input_scalings)
    if not scalings:
        raise ValueError("input_scalings is empty. Give at least one factor, such as (1.0,).")
    for i, scaling in enumerate(scalings):
        check_number(f"input_scalings[{i}]", scaling, low=0.0, low_open=True)
    return tuple(map(float, scalings))


def _rival(errors: Array, least: float, scalings: tuple[float, ...]) -> int:
    """Return the index of the input scaling of a reservoir that did not have the least error."""
    largest = int(np.argmax(scalings))
    return largest if errors[largest] <= _HEDGE * least else int(errors.argmin())


def _index_of_least(errors: Array) -> tuple[int, int]:
    i, j = np.unravel_index(np.nanargmin(errors), errors.shape)
    return int(i), int(j)


def _drawn(
    network: Network,
    inputs: Sequence[Array],
    scalings: tuple[float, ...],
    generator: np.random.Generator,
    dtype: Any,
) -> list[Params]:
    """Draw a reservoir, and return weights with it as the recurrent layer, for each input scaling.

    The other weights are 0.
    """
    cell, p = network.cell, network.n_channels
    layer = cell.layer()
    assert layer is not None
    reservoir = build_reservoir(
        cell.n_units, p, input_scaling=1 / np.sqrt(p), random_state=generator
    )
    rows = cell.channels(np.concatenate(inputs))
    mean, spread = mean_and_spread(rows, p)
    W_in = reservoir.W_in / np.where(spread > 0, spread, 1.0)
    candidates = []
    for scaling in scalings:
        params = {name: np.zeros(shape, dtype) for name, shape in network.shapes().items()}
        params[layer.inputs][layer.rows] = scaling * W_in
        params[layer.recurrent][layer.rows] = dense(reservoir.W)
        params[layer.bias][layer.rows] = reservoir.bias - scaling * W_in @ mean
        candidates.append(params)
    return candidates

"""The leaky cell for rows at irregular times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import check_count
from reservoir.dynamics.reference import leaks_of
from reservoir.training.cells.cell import Cell, Trace, Weight
from reservoir.training.cells.cell_parts import ends_of, states_at
from reservoir.training.cells.layer import Layer
from reservoir.training.cells.simple import SimpleCell
from reservoir.training.params import Params


@saved
@dataclass(frozen=True)
class TimedLeakyCell(Cell):
    """Leaky cell for rows at irregular times, with steps of length dt.

    ``h = (1 - a)^dt h + (1 - (1 - a)^dt) f(W h + W_in x + bias)``

    One column of the inputs contains the times of the rows, in units of steps: dt is the difference
    between the time of a row and the time of the previous row. The weights and the readout do not
    use this column. A state contains the states of the units, followed by the time of the previous
    row, so that a run can continue across a gap, no matter how the rows are divided into chunks. A
    run without an initial state starts one step before its first row. Times are data, and their
    gradients are 0. Inputs and states are float64 for any dtype of the weights. The loops run in
    NumPy and are not compiled.

    Parameters
    ----------
    n_units : int
    activation : str, default="tanh"
        As in `SimpleCell`.
    leak_rate : float in (0, 1] or tuple of n_units such numbers, default=0.3
        The leak rate a: the share of the state that is replaced in a step of length 1. Units with a
        leak rate of 1 do not depend on the times.
    place : int, default=0
        Index of the column of times in the inputs.

    Raises
    ------
    TypeError, ValueError
        If a parameter is outside its range. In a run, if the times do not increase.

    References
    ----------
    H. Jaeger, M. Lukosevicius, D. Popovici and U. Siewert, "Optimization and applications of echo
    state networks with leaky-integrator neurons", Neural Networks 20, 2007, for the leak; M. C.
    Mozer, D. Kazakov and R. V. Lindsey, "Discrete event, continuous time RNNs", arXiv:1710.04110,
    2017, for states that decay with the time between rows.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.cells import TimedLeakyCell
    >>> cell = TimedLeakyCell(1, leak_rate=0.5, place=1)
    >>> weights = {"W_in": np.ones((1, 1)), "W": np.zeros((1, 1)), "bias": np.zeros(1)}
    >>> X = np.array([[[1.0, 0.0]], [[1.0, 1.0]], [[1.0, 3.0]]])  # the last step takes longer
    >>> trace = cell.forward(weights, X)
    >>> trace.states.ravel().round(3), trace.end.round(3)
    (array([0.   , 0.381, 0.571, 0.714]), array([[0.714, 3.   ]]))
    """

    n_units: int
    activation: str = "tanh"
    leak_rate: float | tuple[float, ...] = 0.3
    place: int = 0

    def __post_init__(self) -> None:
        even = self.at_even_steps()  # validates all but `place`
        object.__setattr__(self, "leak_rate", even.leak_rate)
        check_count("place", self.place, minimum=0)

    @property
    def state_size(self) -> int:
        """Number of units, plus one for the time of the previous row."""
        return self.n_units + 1

    def at_even_steps(self) -> SimpleCell:
        """Return the `SimpleCell` that is equivalent if every step has length 1."""
        return SimpleCell(self.n_units, self.activation, self.leak_rate)

    def n_channels(self, n_features: int) -> int:
        """Return the number of columns except the column of times, n_features - 1."""
        return n_features - 1

    def channels(self, X: Array) -> Array:
        """Return the inputs X without the column of times."""
        return np.delete(X, self.place, axis=-1)

    def before(self, row: Array, state: Array) -> Array:
        """Return the state with its time set to one step before the time of a row."""
        dated = np.array(state, dtype=np.float64)
        dated[..., -1] = row[..., self.place] - 1
        return dated

    def held_in(self, dtype: Any) -> Any:
        """Return float64, which times need regardless of the `dtype` of the weights."""
        return np.dtype(np.float64)

    def weights(self, n_features: int) -> dict[str, Weight]:
        """Return the weights' descriptions by name, for `n_features` columns including times."""
        if n_features <= self.place:
            raise ValueError(
                f"place={self.place} is outside inputs of {n_features} columns. It must be the "
                "index of the column of times, counted from 0."
            )
        return self.at_even_steps().weights(self.n_channels(n_features))

    def forward(
        self, params: Params, X: Array, state: Array | None = None, lengths: Array | None = None
    ) -> Trace:
        """Run over inputs X with weights `params`; for `state` and `lengths` see `Cell.forward`.

        By default, the initial state is zeros, at the time one step before the first row.
        """
        if state is None:
            state = self.before(X[0], np.zeros((X.shape[1], self.state_size), X.dtype))
        ends = ends_of(X, lengths)
        times = np.concatenate([state[None, :, -1], X[:, :, self.place]])
        dtype = params["W"].dtype
        leak = leaks_of(self.leak_rate, _lengths_of_steps(times, ends), dtype)[0]
        start = np.ascontiguousarray(state[:, :-1], dtype)
        channels = self.channels(X).astype(dtype, copy=False)
        units = self.at_even_steps()._run(params, channels, start, lengths, leak)
        end = np.column_stack([units.end, states_at(times, ends)])
        return Trace(X, units.states, end, ends, units.values, {"units": units})

    def backward(
        self,
        params: Params,
        trace: Trace,
        dH: Array,
        *,
        d_end: Array | None = None,
        d_pre: Array | None = None,
        inputs: bool = False,
    ) -> tuple[Params, Array, Array | None]:
        """Back-propagate a gradient through time; the gradient with respect to times is 0.

        For `params`, `trace`, `dH`, `d_end`, `d_pre` and `inputs` see `Cell.backward`.
        """
        grads, d_start, d_inputs = self.at_even_steps().backward(
            params,
            trace.kept["units"],
            dH,
            d_end=None if d_end is None else d_end[:, :-1],
            d_pre=d_pre,
            inputs=inputs,
        )
        d_state = np.column_stack([d_start, np.zeros_like(d_start[:, :1])])
        if d_inputs is not None:
            d_inputs = np.insert(d_inputs, self.place, 0, axis=2)
        return grads, d_state, d_inputs

    # ------------------------------------------------------------------ optional capabilities

    def layer(self) -> Layer:
        """Return the cell as a layer that can be drawn, but not fitted by a regression.

        To obtain targets for f, one would have to divide by the leak, which is near 0 for short
        steps. Therefore, "least_squares" fits the readout, and then takes gradient steps.
        """
        return Layer(slice(0, self.n_units))

    def random_states(self, uniform: Array, reach: float) -> Array:
        """Return random states; for `uniform` and `reach` see `Cell.random_states`."""
        return self.at_even_steps().random_states(uniform, reach)

    def tangent(self, params: Params, trace: Trace, d_params: Params) -> Array:
        """Return the states' tangent; for `params`, `trace`, `d_params` see `Cell.tangent`."""
        return self.at_even_steps().tangent(params, trace.kept["units"], d_params)

    def check_controllable(self) -> None:
        """Raise an error, since gradient control does not support states that depend on times."""
        self._raise_no_control()

    def _raise_no_control(self) -> NoReturn:
        raise ValueError(
            "gradient_control keeps the singular values of step Jacobians near 1, but with "
            "irregular times, a long step forgets by design. Use gradient_control=0, or rows on a "
            "regular grid without time_column."
        )


def _lengths_of_steps(times: Array, ends: Array) -> Array:
    """Return the length of each step, (n_steps, n_sequences); steps in the padding have length 1.

    The first row of `times` belongs to the initial states.
    """
    dt = np.diff(times, axis=0)
    steps = np.arange(len(dt))[:, None]
    dt[steps >= ends] = 1
    rises = dt > 0
    if not rises.all():
        step, sequence = np.unravel_index(np.argmin(rises), dt.shape)
        raise ValueError(
            f"Times must increase: row {step} of sequence {sequence} is at time "
            f"{times[step + 1, sequence]:g}, but the previous row is at time "
            f"{times[step, sequence]:g}. Sort the rows by time, and pass no state at the start of "
            "a sequence."
        )
    return dt

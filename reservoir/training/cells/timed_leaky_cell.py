"""The leaky cell under rows that come at irregular times."""

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
    """``h = (1 - a)^dt h + (1 - (1 - a)^dt) f(W h + W_in x + bias)``, dt the time of the step.

    One column of the inputs holds the times of the rows, in steps: dt is that of a row less that of
    the row before. Weights and readout do not see it. A state has one number more than there are
    units, the time of the row before, so that a run goes on over a gap in whatever chunks its rows
    come; a run without a state begins one step before its first row. Times are data: their
    gradients are 0. Inputs and states are float64, whatever the dtype of the weights. The loops are
    NumPy's, not compiled.

    Parameters
    ----------
    n_units : int
    activation : str, default="tanh"
        As in `SimpleCell`.
    leak_rate : float in (0, 1] or tuple of n_units such numbers, default=0.3
        a, the share of the state that a step of length 1 renews. Units with a leak rate of 1 take
        no account of the time.
    place : int, default=0
        Where the times stand among the columns of the inputs.

    Raises
    ------
    TypeError, ValueError
        If a parameter is outside its range; in a run, if times do not rise.

    References
    ----------
    H. Jaeger, M. Lukosevicius, D. Popovici and U. Siewert, "Optimization and applications of echo
    state networks with leaky-integrator neurons", Neural Networks 20, 2007, for the leak; M. C.
    Mozer, D. Kazakov and R. V. Lindsey, "Discrete event, continuous time RNNs", arXiv:1710.04110,
    2017, for states that fade by the time between rows.

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
        even = self.at_even_steps()  # looks at all but the place
        object.__setattr__(self, "leak_rate", even.leak_rate)
        check_count("place", self.place, minimum=0)

    @property
    def state_size(self) -> int:
        """Units, and the time of the row before."""
        return self.n_units + 1

    def at_even_steps(self) -> SimpleCell:
        """Return the simple cell that this one is where every step has length 1."""
        return SimpleCell(self.n_units, self.activation, self.leak_rate)

    def n_channels(self, n_features: int) -> int:
        """Return how many of n_features columns are left without that of times."""
        return n_features - 1

    def channels(self, X: Array) -> Array:
        """Return inputs X without their column of times."""
        return np.delete(X, self.place, axis=-1)

    def before(self, row: Array, state: Array) -> Array:
        """Return a state whose time is one step before that of a row."""
        dated = np.array(state, dtype=np.float64)
        dated[..., -1] = row[..., self.place] - 1
        return dated

    def held_in(self, dtype: Any) -> Any:
        """Return float64, which times need, whatever the `dtype` of weights."""
        return np.dtype(np.float64)

    def weights(self, n_features: int) -> dict[str, Weight]:
        """Return what the weights are, by name, for inputs of n_features, the times among them."""
        if n_features <= self.place:
            raise ValueError(
                f"place={self.place} is outside inputs of {n_features} columns: give the column "
                "of times, counted from 0."
            )
        return self.at_even_steps().weights(self.n_channels(n_features))

    def forward(
        self, params: Params, X: Array, state: Array | None = None, lengths: Array | None = None
    ) -> Trace:
        """Run over inputs X with weights `params`; `state` and `lengths` as in `Cell.forward`.

        Without `state`: zeros, one step before the first row.
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
        """Carry a gradient back through time; that at times is 0.

        `params`, `trace`, `dH`, `d_end`, `d_pre` and `inputs` as in `Cell.backward`.
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

    # ------------------------------------------------------------------ what it declares

    def layer(self) -> Layer:
        """Return all of it as a layer that is drawn; no regression fits it.

        What a target for a state asks of f would be divided by a leak that is near 0 after a short
        step. So "least_squares" fits the readout, then follows the gradient of the states.
        """
        return Layer(slice(0, self.n_units))

    def random_states(self, uniform: Array, reach: float) -> Array:
        """Return random states; `uniform` and `reach` as in `Cell.random_states`."""
        return self.at_even_steps().random_states(uniform, reach)

    def tangent(self, params: Params, trace: Trace, d_params: Params) -> Array:
        """Return how the states move; `params`, `trace`, `d_params` as in `Cell.tangent`."""
        return self.at_even_steps().tangent(params, trace.kept["units"], d_params)

    def check_controllable(self) -> None:
        """Refuse gradient control: a state says when it was, which no weight moves."""
        self._raise_no_control()

    def _raise_no_control(self) -> NoReturn:
        raise ValueError(
            "gradient_control holds the Jacobians of steps near 1, and with times among the inputs "
            "a long step forgets by design. Use gradient_control=0, or rows on a regular grid "
            "without time_column."
        )


def _lengths_of_steps(times: Array, ends: Array) -> Array:
    """Return the length of each step (n_steps, n_sequences); 1 where rows are padding.

    The first of `times` is that of the state before.
    """
    dt = np.diff(times, axis=0)
    steps = np.arange(len(dt))[:, None]
    dt[steps >= ends] = 1
    rises = dt > 0
    if not rises.all():
        step, sequence = np.unravel_index(np.argmin(rises), dt.shape)
        raise ValueError(
            f"Times must rise: row {step} of sequence {sequence} is at time "
            f"{times[step + 1, sequence]:g}, and the one before at {times[step, sequence]:g}. Sort "
            "rows by time; where a sequence begins give no state."
        )
    return dt

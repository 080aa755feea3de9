"""The structurally constrained recurrent network: slow context units next to hidden units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import check_count, check_numbers, check_switch
from reservoir.training.cells.cell import Cell, PartFit, Trace, Weight
from reservoir.training.cells.cell_parts import as_rows, drawn_weights, ends_of, enter, states_at
from reservoir.training.cells.simple import SimpleCell
from reservoir.training.params import Params

_CONTEXT_PER_UNIT = 0.4  # as Mikolov et al.: 40 context units for 100 hidden ones


@saved
@dataclass(frozen=True)
class SCRNCell(Cell):
    """Structurally constrained recurrent network, with hidden units h and context units s.

    The update is ``s = (1 - a) B x + a s`` and ``h = f(P s + A x + R h + bias)``; the readout
    receives [h, s], which is also the state. Context units are linear and independent of each
    other: each is an exponential moving average of one component of B x over about 1 / (1 - a)
    steps. A, R, B and P are the weights ``W_in``, ``W``, ``W_in_context`` and ``W_context``.

    Parameters
    ----------
    n_units : int
        Number of hidden units, h.
    n_context : int, optional
        Number of context units, s. By default, it is .4 `n_units`, and at least one: 40 context
        units for 100 hidden units, as in [1]_.
    activation : str, default="tanh"
        The activation f, a name in `reservoir.activations.ACTIVATIONS`; "logistic" in [1]_.
    decay : float in (0, 1) or tuple of n_context such numbers, default=0.95
        The decay a, the share of a context unit that is kept in each step; the default is from
        [1]_.
    learn_decay : bool, default=False
        Whether to train a separate decay for each context unit, ``a = logistic(logit(decay) + b)``.
        Here, b is the weight ``decay`` (n_context,), which is initially 0 and is not penalised.

    Raises
    ------
    TypeError, ValueError
        If a parameter is outside its range.

    References
    ----------
    .. [1] T. Mikolov, A. Joulin, S. Chopra, M. Mathieu and M. Ranzato, "Learning longer memory in
       recurrent neural networks", ICLR workshop 2015.

    Examples
    --------
    >>> from reservoir.training.cells import SCRNCell
    >>> cell = SCRNCell(5)
    >>> cell.shapes(n_features=3)
    {'W_in': (5, 3), 'W': (5, 5), 'W_context': (5, 2), 'bias': (5,), 'W_in_context': (2, 3)}
    >>> cell.width, cell.state_size
    (7, 7)
    """

    n_units: int
    n_context: int | None = None
    activation: str = "tanh"
    decay: float | tuple[float, ...] = 0.95
    learn_decay: bool = False

    def __post_init__(self) -> None:
        self._hidden()  # validates n_units and the activation
        if self.n_context is not None:
            check_count("n_context", self.n_context)
        check_switch("learn_decay", self.learn_decay)
        decay, m = check_numbers("decay", self.decay), self._n_context
        if decay.shape not in ((), (m,)) or not ((decay > 0) & (decay < 1)).all():
            raise ValueError(
                f"decay={self.decay!r} must be a number between 0 and 1, or {m} such numbers, one "
                "per context unit. With 0, a unit has no memory; with 1, its input has no effect."
            )
        if not isinstance(self.decay, float):  # arrays can be neither compared nor hashed
            object.__setattr__(self, "decay", tuple(decay.tolist()) if decay.ndim else float(decay))

    @property
    def _n_context(self) -> int:
        if self.n_context is None:
            return max(1, round(_CONTEXT_PER_UNIT * self.n_units))
        return self.n_context

    @property
    def width(self) -> int:
        """Total number of hidden and context units."""
        return self.n_units + self._n_context

    @property
    def state_size(self) -> int:
        """Total number of hidden and context units."""
        return self.width

    def weights(self, n_features: int) -> dict[str, Weight]:
        """Return the weights' descriptions by name, for inputs of `n_features` columns."""
        n, m = self.n_units, self._n_context
        weights = {
            "W_in": Weight((n, n_features), "input"),
            "W": Weight((n, n), "recurrent"),
            "W_context": Weight((n, m), "input"),
            "bias": Weight((n,), "bias"),
            "W_in_context": Weight((m, n_features), "input"),
        }
        return {**weights, "decay": Weight((m,), "decay")} if self.learn_decay else weights

    def _hidden(self) -> SimpleCell:
        """Return the hidden units as a simple cell, whose inputs are [x, s]."""
        return SimpleCell(self.n_units, self.activation)

    @staticmethod
    def _hidden_params(params: Params) -> Params:
        W_in = np.hstack([params["W_in"], params["W_context"]])
        return {"W_in": W_in, "W": params["W"], "bias": params["bias"]}

    def _shares(self, params: Params) -> tuple[Array, Array]:
        """Return a and 1 - a for each context unit; 1 - a is accurate even if a is near 1."""
        decay = np.broadcast_to(np.asarray(self.decay, np.float64), (self._n_context,))
        parts = decay, 1 - decay
        if self.learn_decay:
            at = logit(decay) + params["decay"]
            parts = expit(at), expit(-at)
        kept, taken = (part.astype(params["W"].dtype) for part in parts)
        return kept, taken

    def forward(
        self, params: Params, X: Array, state: Array | None = None, lengths: Array | None = None
    ) -> Trace:
        """Run over inputs X with weights `params`; for `state` and `lengths` see `Cell.forward`."""
        n, start = self.n_units, self._start(X, state)
        kept, taken = self._shares(params)
        driven = X @ params["W_in_context"].T
        states = np.empty((len(X) + 1, X.shape[1], self.width), driven.dtype)
        S = states[:, :, n:]
        S[0] = start[:, n:]
        np.multiply(driven, taken, out=S[1:])
        for t in range(len(X)):
            S[t + 1] += kept * S[t]
        seen = np.concatenate([X, S[1:]], axis=2)
        hidden = self._hidden().forward(
            self._hidden_params(params), seen, np.ascontiguousarray(start[:, :n]), lengths
        )
        states[:, :, :n] = hidden.states
        ends = ends_of(X, lengths)
        kept_for_later = {"hidden": hidden, "driven": driven}
        return Trace(X, states, states_at(states, ends), ends, hidden.values, kept_for_later)

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
        """Back-propagate a gradient through time.

        For `params`, `trace`, `dH`, `d_end`, `d_pre` and `inputs` see `Cell.backward`.
        """
        n, p = self.n_units, trace.inputs.shape[2]
        kept, taken = self._shares(params)
        enter(dH, trace.lengths, d_end)
        # hidden units, and the gradient with respect to their inputs [x, s]
        grads, d_hidden, d_seen = self._hidden().backward(
            self._hidden_params(params),
            trace.kept["hidden"],
            np.ascontiguousarray(dH[:, :, :n]),
            d_pre=d_pre,
            inputs=True,
        )
        assert d_seen is not None
        # context units: the transposed filter
        D = d_seen[:, :, p:] + dH[:, :, n:]
        for t in range(len(D) - 1, 0, -1):
            D[t - 1] += kept * D[t]
        d_context = kept * D[0]
        if self.learn_decay:
            grads["decay"] = kept * taken * self._at_kept(trace, D)
        D *= taken
        grads["W_in"], grads["W_context"] = grads["W_in"][:, :p], grads["W_in"][:, p:]
        grads["W_in_context"] = as_rows(D).T @ as_rows(trace.inputs)
        d_inputs = d_seen[:, :, :p] + D @ params["W_in_context"] if inputs else None
        return grads, np.hstack([d_hidden, d_context]), d_inputs

    def _at_kept(self, trace: Trace, D: Array) -> Array:
        """Return the gradient for the decay a, given the one for the context units."""
        change = trace.states[:-1, :, self.n_units :] - trace.kept["driven"]
        return np.asarray(np.einsum("tbm,tbm->m", D, change))

    # ------------------------------------------------------------------ optional capabilities

    def weights_from_data(self, fit: PartFit, inputs: Sequence[Array]) -> Params:
        """Return the hidden units as a simple cell that ignores random context units.

        The context units have about the variance of 1 if the inputs are white noise; the readout
        receives them. For `fit` and `inputs` see `Cell.weights_from_data`.
        """
        m = self._n_context
        params = {**fit(self._hidden(), inputs), "W_context": np.zeros((self.n_units, m))}
        # an average over white noise has the variance (1 - a) / (1 + a)
        kept = np.broadcast_to(self.decay, (m,))
        scale = np.sqrt((1 + kept) / (1 - kept))
        params["W_in_context"] = scale[:, None] * drawn_weights(fit, m, inputs)[0]
        return {**params, "decay": np.zeros(m)} if self.learn_decay else params

    def check_controllable(self) -> None:
        """Raise an error if the activation does not provide its slope and curvature."""
        self._hidden().check_controllable()

    def step_jacobians(self, params: Params, trace: Trace, steps: Array, sequences: Array) -> Array:
        """Return step Jacobians ``[[F R, F P Q], [0, Q]]``, with F = diag(f'(z)) and Q = diag(a).

        For `params`, `trace`, `steps` and `sequences` see `Cell.step_jacobians`.
        """
        n, kept = self.n_units, self._shares(params)[0]
        slopes = self._hidden().slopes(trace)[steps, sequences][:, :, None]
        J = np.zeros((len(slopes), self.width, self.width), slopes.dtype)
        J[:, :n, :n] = slopes * params["W"]
        J[:, :n, n:] = slopes * (params["W_context"] * kept)
        J[:, n:, n:] = np.diag(kept)
        return J

    def jacobian_gradient(
        self, params: Params, trace: Trace, steps: Array, sequences: Array, G: Array
    ) -> tuple[Params, Array | None]:
        """Back-propagate a gradient with respect to step Jacobians.

        The gradient has direct parts with respect to R, P and a, and a part with respect to z. For
        `params`, `trace`, `steps`, `sequences` and `G` see `Cell.jacobian_gradient`.
        """
        n, (kept, taken) = self.n_units, self._shares(params)
        # the upper rows are diag(f') V, as for a simple cell with recurrent weights V = [R, P Q]
        V = np.hstack([params["W"], params["W_context"] * kept])
        upper, d_pre = self._hidden().jacobian_gradient({"W": V}, trace, steps, sequences, G[:, :n])
        d_R, d_PQ = upper["W"][:, :n], upper["W"][:, n:]
        grads = {"W": d_R, "W_context": d_PQ * kept}
        if self.learn_decay:
            d_kept = (d_PQ * params["W_context"]).sum(axis=0)
            d_kept += np.einsum("smm->m", G[:, n:, n:])
            grads["decay"] = kept * taken * d_kept
        return grads, d_pre

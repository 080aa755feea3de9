"""`ls_fit`: layer-wise steps as long as they help, then back-propagated displacements."""

from __future__ import annotations

from typing import Any

from reservoir._typing import RandomState
from reservoir._validation import check_choice, check_count, check_number
from reservoir.training.cells import Cell, Layer
from reservoir.training.least_squares._bay import bay_fit
from reservoir.training.least_squares._credit import CreditSteps
from reservoir.training.least_squares._iterate import (
    Iterate,
    LeastSquaresResult,
    begin,
    better,
    conclude,
    with_readout,
)
from reservoir.training.least_squares._regression import choose_ridge
from reservoir.training.least_squares._state_targets import (
    layer_coef,
    layer_weights,
    mixed_targets,
    recurrent_gram,
    toward,
)
from reservoir.training.least_squares._task import Task, fitted_layer, make_task
from reservoir.training.params import Params

_STEPS = (0.7, 0.35, 0.175, 0.0875)
_LITERAL_STEP = 0.1
_WORTH = 0.15  # after a layer-wise step that lowers the error by less, use credit steps
_TOL = 1e-3


def layer_step(
    task: Task,
    layer: Layer,
    iterate: Iterate,
    *,
    tau: float,
    delta: float,
    steps: tuple[float, ...] = _STEPS,
    prior: Params | None = None,
) -> Iterate | None:
    """Return the iterate after a layer-wise step that lowers the error, or None if none does.

    The ridge penalties shrink weights towards the weights `prior`, or towards zero if `prior` is
    None.
    """
    targets = mixed_targets(task, layer, iterate, delta)
    centre = None if prior is None else layer_coef(task, layer, prior)
    gram = recurrent_gram(task, iterate, targets, centre)
    coef, intercept, _ = choose_ridge(gram, tau, far=centre is not None)
    if centre is not None:
        coef, intercept = coef + centre[0], intercept + centre[1]
    goal = layer_weights(task, layer, coef, intercept)
    for step in steps:
        candidate = with_readout(task, toward(iterate.params, layer, goal, step), tau, prior)
        if candidate is not None and better(task, candidate, iterate):
            return candidate
    return None


class MixedFit:
    """Layer-wise steps while each lowers the error by 15 %, then, with `credit`, credit steps.

    Weights and rows must already be validated. Without `credit`, all steps are layer-wise. `run`
    can be called repeatedly, and continues where it stopped.
    """

    def __init__(
        self, task: Task, params: Params, *, tau: float, delta: float = 0.3, credit: bool = True
    ) -> None:
        self.task, self.given, self.tau, self.delta = task, params, tau, delta
        self.iterate = begin(task, with_open_gates(task.cell, params), tau)
        self.errors = [self.iterate.mse]
        self._layer = fitted_layer(task.cell)  # None once layer-wise steps gain little
        self._credit_steps = CreditSteps(task, tau) if credit else None
        self._converged = False

    def run(self, n_iter: int) -> MixedFit:
        """Take at most `n_iter` steps, as long as they lower the error."""
        for _ in range(n_iter):
            if self._converged:
                break
            self._converged = not self._step()
        return self

    def _step(self) -> bool:
        """Take a step, and return whether another one is worth trying."""
        iterate, new, by_layer = self.iterate, None, self._layer is not None
        # a layer-wise step, which is the last one if it gains little
        if self._layer is not None:
            new = layer_step(self.task, self._layer, iterate, tau=self.tau, delta=self.delta)
        if self._credit_steps is not None:
            if new is None or new.error > (1 - _WORTH) * iterate.error:
                self._layer = None
            # otherwise a credit step
            if new is None:
                new, by_layer = self._credit_steps.step(iterate), False
        if new is None:
            return False
        self.iterate = new
        self.errors.append(new.mse)
        gained = new.error <= (1 - _TOL) * iterate.error
        return gained or (by_layer and self._credit_steps is not None)

    def result(self) -> LeastSquaresResult:
        """Return the weights reached, or the given ones if their error is smaller."""
        return conclude(self.task, self.given, self.iterate, self.errors, self.tau)


def with_open_gates(cell: Cell, params: Params) -> Params:
    """Return the weights that layer-wise steps start from: those of a cell with open gates."""
    return params if fitted_layer(cell) is None else cell.open_gates(params)


def ls_fit(
    params: Params,
    X: Any,
    Y: Any,
    *,
    output: str = "identity",
    n_iter: int = 8,
    tau: float = 0.05,
    method: str = "mixed",
    washout: int = 0,
    cell: Cell | None = None,
    include_input: bool = False,
    credit: bool = True,
    delta: float = 0.3,
    target: str = "step",
    sample_weight: Any = None,
    holdout: float = 0.0,
    random_state: RandomState = 0,
) -> LeastSquaresResult:
    """Fit all weights of a recurrent network by least squares, layer by layer.

    Each iteration fits the recurrent layer to states that would produce the targets, moves the
    weights towards that fit, and refits the readout exactly. The result is kept only if the error
    of the simulated network falls and the network still forgets its initial state. Once such a step
    lowers the error by less than 15 %, the remaining iterations take the steps of `credit_fit`,
    which use back-propagated displacements, provided that `credit` is True. See
    `reservoir.training.least_squares` for the equations.

    Parameters
    ----------
    params : dict of arrays
        Initial weights: "W_in" (g n_units, n_features), "W" (g n_units, n_units) and "bias"
        (g n_units,) for g gates, any other weights of the cell, and optionally a readout, "coef"
        (n_outputs, n_units [+ n_features]) and "intercept" (n_outputs,). A random reservoir is
        sufficient. Not changed. The gates of an LSTM or GRU are opened first, by setting their
        weights to 0 and their biases to +-6.
    X : array of shape (n_samples, n_features), (n_sequences, n_steps, n_features), or list
        Inputs: one sequence, several sequences of equal length, or a list of 2-D arrays of any
        lengths.
    Y : arrays of shape (n_samples, n_outputs), in the same container
        Targets, which must be in the range of the output function. With ``target="last"``, a single
        array of shape (n_sequences, n_outputs).
    output : {"identity", "tanh", "logistic", "softmax"}, default="identity"
        Output function of the readout.
    n_iter : int, default=8
        Maximal number of iterations. 0 fits only the readout.
    tau : float, default=0.05
        Tolerance of the choice of penalties: each regression uses the largest penalty whose
        cross-validation score is within a factor 1 + tau of the smallest score. With a larger tau,
        weights are smaller, less noise is fitted, and the error is larger.
    method : {"mixed", "bay2017"}, default="mixed"
        "mixed" is the method described above. "bay2017" is the algorithm as printed in the thesis,
        for comparison: there are no penalties and no checks of the error, and it starts from the
        given readout. See Notes for two settings that the thesis does not print.
    washout : int, default=0
        Number of rows at the start of each sequence that are excluded from the regressions and
        errors. If runs start from zeros, one-dimensional tasks need about 50.
    cell : Cell, optional
        The cell, by default ``SimpleCell(n_units)`` with tanh. It must declare a layer
        (`Cell.layer`). Layer-wise steps are available for `GRUCell`, for `LSTMCell`, and for
        `SimpleCell`, with or without a leak, if its activation has an inverse and is bounded or
        linear ("tanh", "logistic", "identity"). With other activations, only credit steps are used.
    include_input : bool, default=False
        Whether the readout uses [h, x] instead of only h.
    credit : bool, default=True
        Whether credit steps follow. If False, there are only layer-wise steps, without a backward
        pass.
    delta : float in [0, 1], default=0.3
        Position of the target states between the states nearest to the present ones (0) and the
        states of least norm (1).
    target : {"step", "last"}, default="step"
        Whether each step has a target, or only the last step.
    sample_weight : array or list, one number per row of Y, optional
        Weights of the rows. Rows of weight 0 or False drive the network, but are excluded from both
        regressions and from the errors. Their targets may be any finite numbers.
    holdout : float in [0, 1), default=0.0
        Share of the data that is held out, and whose error determines which steps are kept. These
        are whole sequences drawn at random if there are enough sequences, and otherwise the end of
        each sequence. Finally, the readout is fitted to all rows.
    random_state : int, Generator or RandomState, default=0
        Source of the random initial states that must be forgotten, and of the random choice of
        held-out sequences.

    Returns
    -------
    LeastSquaresResult
        The weights, the history of the error, and the number of accepted iterations. On the scored
        rows (the held-out rows, or all rows), the error is never above that with the given weights.

    Raises
    ------
    ValueError
        If a name is unknown, if shapes disagree, if a value is NaN or infinite, if targets are
        outside the range of the output function, if too few rows remain, or if the given network
        diverges.
    TypeError
        If `params` is not a dict of arrays, or if a number is of the wrong type.

    Notes
    -----
    ``method="bay2017"`` needs two numbers that the thesis [1]_ does not print. The step in (5.4)
    and (5.7) is .1, which reproduces its table 5.1. The states wanted by (5.1) may lie outside the
    range of the activation: they are clipped to a distance e = 1e-3 from its bounds (1 - e for
    tanh), so that its inverse is finite. The smaller e, the larger the pre-activations of the few
    clipped states, and the more these dominate the regression (5.3).

    References
    ----------
    .. [1] A. Bay, "Recurrent neural networks: methods and applications to non-linear predictions",
       doctoral dissertation, Politecnico di Torino, 2017, chapter 5, eqs. (5.1) to (5.7).

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.least_squares import ls_fit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(500, 4))
    >>> Y = np.tanh(X[:, :2] - 2 * X[:, 2:] * np.roll(X[:, :2], 1, axis=0))
    >>> start = {
    ...     "W_in": 0.3 * rng.normal(size=(20, 4)),
    ...     "W": 0.3 * rng.normal(size=(20, 20)),
    ...     "bias": 0.3 * rng.normal(size=20),
    ... }
    >>> result = ls_fit(start, X, Y, output="tanh", washout=1)
    >>> sorted(result.params), bool(result.history[-1] < 0.3 * result.history[0])
    (['W', 'W_in', 'bias', 'coef', 'intercept'], True)
    """
    check_choice("method", method, ("mixed", "bay2017"))
    check_count("n_iter", n_iter, minimum=0)
    check_number("tau", tau, low=0.0)
    check_number("delta", delta, low=0.0, high=1.0)
    task, weights = make_task(
        params,
        X,
        Y,
        cell=cell,
        output=output,
        include_input=include_input,
        washout=washout,
        target=target,
        sample_weight=sample_weight,
        holdout=holdout,
        random_state=random_state,
    )
    layer = fitted_layer(task.cell)
    if layer is None and (method == "bay2017" or not credit):
        raise ValueError(
            f"{task.cell} has no layer-wise step. Layer-wise steps need a GRUCell, an LSTMCell, or "
            "a SimpleCell with activation 'tanh', 'logistic', 'identity' or another one that is "
            "bounded and has an inverse. Use method='mixed' with credit=True."
        )
    if method == "bay2017":
        assert layer is not None
        opened = task.cell.open_gates(weights)
        return bay_fit(task, layer, opened, n_iter, _LITERAL_STEP)
    return MixedFit(task, weights, tau=tau, delta=delta, credit=credit).run(n_iter).result()

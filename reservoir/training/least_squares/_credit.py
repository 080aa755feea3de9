"""Least squares on back-propagated displacements: a backward pass, then a preconditioned step.

Let D(t) be the gradient of the squared errors with respect to the pre-activations of step t,
back-propagated through time, and let R(t) = [x(t), h(t-1)], centred. The ridge regression of -D on
R changes the weights by ``-(R'R + m I)^-1 R'D``. R'D is the gradient with respect to the weights,
so that one backward pass and one Gram matrix suffice. The gradients D of the units are correlated,
mainly through the readout. If one also divides by their second moments S = D'D, the result is a
step with Kronecker-factored curvature::

    dW = -(S + s I)^-1 (D'R) (R'R + m I)^-1
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from reservoir._typing import Array, RandomState
from reservoir._validation import check_count, check_number
from reservoir.readouts import GramAccumulator
from reservoir.training.cells import Cell, Layer
from reservoir.training.cells.cell_parts import as_rows
from reservoir.training.least_squares._iterate import (
    Iterate,
    LeastSquaresResult,
    begin,
    better,
    conclude,
    readout_features,
    regressors,
    scores,
    with_readout,
)
from reservoir.training.least_squares._regression import sum_rows
from reservoir.training.least_squares._task import Task, blocks, make_task
from reservoir.training.params import Params

_FIRST_MOVE = 0.1  # root mean square change of the pre-activations in the first step
_LARGEST_MOVE = 0.5  # maximum in any step: the linear approximation is not valid farther away
_PENALTY = 0.03  # m, in units of the mean eigenvalue of R'R
_SLOPE_PENALTY = 1.0  # s, in units of the mean eigenvalue of S
_MAX_CUTS = 12


class CreditSteps:
    """Credit steps down the squared error, which start from the length of the previous step."""

    def __init__(self, task: Task, tau: float, prior: Params | None = None) -> None:
        self.task, self.tau, self.prior = task, tau, prior
        self.length: float | None = None

    def step(self, iterate: Iterate) -> Iterate | None:
        """Return the iterate after a step that lowers the error, or None if none is found.

        Do not take another step from the same `iterate`: the trace of a gated cell can be used for
        only one backward pass.
        """
        try:
            direction, move, slope = self._direction(iterate)
        except linalg.LinAlgError:  # the scales of inputs, or of their means, differ too much
            return None
        if not (np.isfinite(move) and move > 0 and slope < 0):
            return None
        # try the last length, then shorter ones until the error falls
        if self.length is None:
            self.length = _FIRST_MOVE / move
        self.length = min(self.length, _LARGEST_MOVE / move)
        for cut in range(_MAX_CUTS):
            moved = dict(iterate.params)
            for name, change in direction.items():
                moved[name] = (moved[name] + self.length * change).astype(moved[name].dtype)
            candidate = with_readout(self.task, moved, self.tau, self.prior)
            if candidate is not None and better(self.task, candidate, iterate):
                if cut == 0:
                    self.length *= 2
                return candidate
            self.length *= _shorten(candidate, iterate, slope * self.length)
        return None

    def _direction(self, iterate: Iterate) -> tuple[Params, float, float]:
        """Return a step, its effect on the pre-activations, and the error's derivative along it."""
        # the direction: the gradient, divided by second moments on both sides
        task = self.task
        grads, D = self._gradient(iterate)
        gram = _regressors(task, iterate)
        layer = task.cell.layer()
        assert layer is not None  # checked by `make_task`
        out = _precondition(task, layer, grads, D, gram)
        # its root mean square effect on the pre-activations, and the error's derivative along it
        W = np.hstack([out[layer.inputs] * task.input_scale, out[layer.recurrent]])
        mean_move = W @ gram.mean_h + out[layer.bias]
        if layer.second_bias is not None:
            mean_move[layer.rows] += out[layer.second_bias]
        squares = np.einsum("ij,ij->i", W @ gram.gram, W) / gram.weight + mean_move**2
        n_rows = len(task.fit) * task.network.n_outputs
        slope = 2 * sum(float(np.vdot(out[name], grads[name])) for name in out) / n_rows
        return out, float(np.sqrt(np.mean(squares))), slope

    def _gradient(self, iterate: Iterate) -> tuple[Params, Array]:
        """Return the gradients of half the squared error, by weights and by pre-activations."""
        task, trace, params = self.task, iterate.trace, iterate.params
        dH = np.zeros_like(trace.states[1:])
        rows, C = as_rows(dH), params["coef"][:, : task.cell.width]
        for where, take in blocks(task.steps(task.fit)):
            places = task.fit[where]
            error = (
                scores(params, readout_features(task, trace, take)) / task.scale
                - task.latent[places]
            )
            error /= task.scale
            weights = task.weights(places)
            if weights is not None:
                error *= weights[:, None]
            rows[take] = error @ C
        D = trace.place_of_slopes(dH)  # before `backward`, which writes to it
        with np.errstate(over="ignore", invalid="ignore"):
            grads, _, _ = task.cell.backward(params, trace, dH)
        return grads, as_rows(D)


def _shorten(candidate: Iterate | None, iterate: Iterate, slope: float) -> float:
    """Return the factor for a shorter step, from a parabola through both errors and the slope."""
    if candidate is None or candidate.error <= iterate.error:
        return 0.5
    return float(np.clip(-slope / (2 * (candidate.error - iterate.error - slope)), 0.1, 0.5))


def _regressors(task: Task, iterate: Iterate) -> GramAccumulator:
    """Return the summed products of [x(t), h(t-1)] over all rows except padding."""
    rows = task.ran()
    nothing = np.zeros((len(rows), 1))
    parts = (
        (regressors(task, iterate.trace, take), nothing[where], None)
        for where, take in blocks(rows)
    )
    return sum_rows(parts, task.network.n_channels + task.cell.width, 1)


def _precondition(
    task: Task, layer: Layer, grads: Params, D: Array, gram: GramAccumulator
) -> Params:
    """Return a step: minus the gradient, divided by second moments on both sides, per gate."""
    # on the right: the second moments of the centred regressors, plus a ridge penalty
    p, n = task.network.n_channels, task.cell.n_units
    matrix = gram.gram
    matrix[np.diag_indices(len(matrix))] += _PENALTY * np.trace(matrix) / len(matrix) + 1e-300
    factor = linalg.cho_factor(matrix, check_finite=False)
    sums = grads[layer.bias].astype(np.float64)
    # a reset gate scales the gradients for W and the second bias, but not for W_in and bias
    recurrent_sums = sums.copy()
    if layer.second_bias is not None:
        recurrent_sums[layer.rows] = grads[layer.second_bias]
    cross = np.hstack(
        [
            grads[layer.inputs] / task.input_scale - np.outer(sums, gram.mean_h[:p]),
            grads[layer.recurrent] - np.outer(recurrent_sums, gram.mean_h[p:]),
        ]
    )
    coef = linalg.cho_solve(factor, cross.T, check_finite=False).T
    both = np.hstack([coef, sums[:, None] / gram.weight])
    # on the left: the second moments of D, one gate at a time
    for first in range(0, len(both), n):
        rows = slice(first, first + n)
        S = D[:, rows].T.astype(np.float64) @ D[:, rows]
        mean = np.trace(S) / n
        if mean > 0:
            S /= mean
            S[np.diag_indices(n)] += _SLOPE_PENALTY
            both[rows] = linalg.solve(S, both[rows], assume_a="pos", check_finite=False)
    # conversion to weights for inputs in their original units
    coef, shift = both[:, :-1], both[:, -1]
    out = {
        layer.inputs: -coef[:, :p] / task.input_scale,
        layer.recurrent: -coef[:, p:],
        layer.bias: coef @ gram.mean_h - shift,
    }
    if layer.second_bias is not None:  # the two biases are added: each takes half of the step
        out[layer.bias][layer.rows] /= 2
        out[layer.second_bias] = out[layer.bias][layer.rows].copy()
    for name in grads.keys() - out.keys():  # other weights: plain gradient steps
        out[name] = -grads[name].astype(np.float64) / gram.weight
    return out


def credit_fit(
    params: Params,
    X: Any,
    Y: Any,
    *,
    output: str = "identity",
    n_iter: int = 10,
    tau: float = 0.05,
    washout: int = 0,
    cell: Cell | None = None,
    include_input: bool = False,
    target: str = "step",
    sample_weight: Any = None,
    holdout: float = 0.0,
    tol: float = 1e-4,
    random_state: RandomState = 0,
) -> LeastSquaresResult:
    """Improve the weights of a network by least squares on back-propagated displacements.

    Each iteration costs one forward and one backward pass, and another forward pass whenever the
    step is shortened. The readout is refitted exactly for each candidate, and a candidate is kept
    if the error falls and the network forgets its initial state. For fixed states, the root mean
    square change of the pre-activations is at most .5 per step. The steps can be applied to every
    cell with a `layer`, without opening its gates. They use the effect of a state on later outputs,
    which the layer-wise steps of `ls_fit` do not.

    Parameters
    ----------
    params, X, Y, output, tau, washout, cell, include_input, target, sample_weight, random_state
        As in `ls_fit`. Rows without a target only pass the gradient of later rows on.
    n_iter : int, default=10
        Maximal number of iterations.
    holdout : float in [0, 1), default=0.0
        As in `ls_fit`. If the targets are noisy, it keeps the steps from fitting the noise.
    tol : float, default=1e-4
        Minimal relative decrease of the error: the iterations stop after a smaller decrease.

    Returns
    -------
    LeastSquaresResult

    Raises
    ------
    ValueError, TypeError
        Under the same conditions as in `ls_fit`.

    References
    ----------
    J. Martens and R. Grosse, "Optimizing neural networks with Kronecker-factored approximate
    curvature", ICML 2015, for the second moments on both sides; G. H. Golub and V. Pereyra, SIAM
    Journal on Numerical Analysis 10, 1973, for the refitted readout (variable projection).

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.least_squares import credit_fit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (400, 1))
    >>> Y = X * np.roll(X, 1, axis=0)  # the product of the last two inputs
    >>> start = {
    ...     "W_in": rng.normal(size=(10, 1)),
    ...     "W": 0.2 * rng.normal(size=(10, 10)),
    ...     "bias": 0.3 * rng.normal(size=10),
    ... }
    >>> result = credit_fit(start, X, Y, washout=10)
    >>> bool(result.history[-1] < 0.2 * result.history[0])
    True
    """
    check_count("n_iter", n_iter, minimum=0)
    check_number("tau", tau, low=0.0)
    check_number("tol", tol, low=0.0)
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
    iterate, steps = begin(task, weights, tau), CreditSteps(task, tau)
    errors = [iterate.mse]
    for _ in range(n_iter):
        new = steps.step(iterate)
        if new is None:
            break
        before, iterate = iterate.error, new
        errors.append(new.mse)
        if iterate.error > (1 - tol) * before:
            break
    return conclude(task, weights, iterate, errors, tau)

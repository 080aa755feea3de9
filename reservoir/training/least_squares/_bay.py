"""The algorithm of Bay (2017), chapter 5, as printed.

Let ``h(t)`` be the states of the forward run, and ``h_back(t) = C+ (f_y^-1(y(t)) - c)``, eq. (5.1).
Each iteration solves two least-squares problems, and moves the weights part of the way towards the
solution::

    [W_in W b]  of  W_in x(t) + W h(t-1) + b = f_h^-1(h_back(t))      (5.3)
    [C c]       of  C h(t) + c = f_y^-1(y(t))                         (5.6)
    P <- P + step (P^ - P)                                            (5.4), (5.7)

The forward states are the regressors, and the backward states the targets: only this interpretation
reproduces the printed table. There is no penalty and no check of the error: after about 15
iterations the error rises again.
"""

from __future__ import annotations

import numpy as np

from reservoir.readouts import GramAccumulator
from reservoir.training.cells import Layer
from reservoir.training.least_squares._iterate import (
    Iterate,
    LeastSquaresResult,
    measure,
    readout_gram,
    simulate,
)
from reservoir.training.least_squares._state_targets import (
    backward_states,
    layer_weights,
    recurrent_gram,
    toward,
)
from reservoir.training.least_squares._task import Task
from reservoir.training.params import Params


def bay_fit(
    task: Task, layer: Layer, params: Params, n_iter: int, step: float
) -> LeastSquaresResult:
    """Run the iterations of the printed algorithm, and return the best weights seen."""
    iterate = measure(task, params, simulate(task, params))
    if iterate is None:
        raise ValueError("The states that params produce for X diverge. Scale X or W down.")
    best, history = iterate, [iterate.mse]
    for _ in range(n_iter):
        iterate = _next(task, layer, iterate, step)
        if iterate is None:
            break
        history.append(iterate.mse)
        best = iterate if iterate.mse < best.mse else best
    return LeastSquaresResult(best.params, np.array(history), len(history) - 1)


def _next(task: Task, layer: Layer, iterate: Iterate, step: float) -> Iterate | None:
    goal = _solve(recurrent_gram(task, iterate, backward_states(task, layer, iterate)))
    coef, intercept = _solve(readout_gram(task, iterate.trace))
    moved = toward(iterate.params, layer, layer_weights(task, layer, *goal), step)
    scaled = {"coef": coef * task.scale[:, None], "intercept": intercept * task.scale}
    for name, values in scaled.items():
        moved[name] += (step * (values - moved[name])).astype(moved[name].dtype)
    return measure(task, moved, simulate(task, moved))


def _solve(gram: GramAccumulator) -> tuple[np.ndarray, np.ndarray]:
    solution = gram.solve(0.0)
    return solution.coef, solution.intercept

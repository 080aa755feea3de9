r"""Least-squares starts: all weights of a recurrent network from a few regressions.

A network ``h(t) = f(W h(t-1) + W_in x(t) + b)``, ``y(t) = f_y(C h(t) + c)`` is linear between its
two functions. Given states, its readout is a regression of ``z(t) = f_y^-1(y(t))``; given states
*and* targets for them, so is its recurrent layer (Bay 2017, chapter 5). `ls_fit` iterates::

    H = states(P);  (C, c) = ridge(H, Z)                               readout, always exact
    H* = (1 - d) H + (Z - c - (1 - d) H C') C+'                        wanted states, d = .3
    H* pulled into the range of f
    (W_in^, W^, b^) = ridge([x(t), h(t-1)], f^-1(H*))
    P <- P + l (P^ - P),  l = .7, .35, ..., then the readout;
         kept if the simulated error drops and the start is forgotten (echo gap <= error)

and, when that gains less than 15 %, goes on with steps of `credit_fit`, which back-propagate what
the wanted states cannot know: credit from the future. With D(t) the slopes of the squared error at
the pre-activations and R(t) = [x(t), h(t-1)]::

    dW = -(D'D + s I)^-1 (D'R) (R'R + m I)^-1,  then the readout, kept as above

A leak a: f(z) is to change by as much as the state. The penalty of each ridge is the largest within
1 + tau of the best score of generalised cross-validation, from one eigendecomposition of a Gram
matrix; Gram matrices are summed block by block, so that no matrix of all rows' regressors is made.
The intercept is not penalised. Inputs count in units of their spread, and so do outputs behind the
identity.

It is no general accelerator: it finds what a network can do with the memory that it has, or that a
short path of credit steps gives it.
"""

from reservoir.training.least_squares._credit import credit_fit
from reservoir.training.least_squares._iterate import LeastSquaresResult
from reservoir.training.least_squares._ls_fit import ls_fit
from reservoir.training.least_squares._online_step import OnlineStep, ls_online_step

__all__ = ["LeastSquaresResult", "OnlineStep", "credit_fit", "ls_fit", "ls_online_step"]

r"""Least-squares training, which fits all weights of a recurrent network by a few regressions.

A network ``h(t) = f(W h(t-1) + W_in x(t) + b)``, ``y(t) = f_y(C h(t) + c)`` is linear apart from
the functions f and f_y. Given the states, the readout can be fitted by a regression with the
targets ``z(t) = f_y^-1(y(t))``. Given the states *and* targets for the states, the recurrent layer
can also be fitted by a regression (Bay 2017, chapter 5). `ls_fit` iterates::

    H = states(P);  (C, c) = ridge(H, Z)                               readout, always exact
    H* = (1 - d) H + (Z - c - (1 - d) H C') C+'                        target states, d = .3
    H* shrunk and clipped to the range of f
    (W_in^, W^, b^) = ridge([x(t), h(t-1)], f^-1(H*))
    P <- P + l (P^ - P),  l = .7, .35, ..., then the readout;
         kept if the simulated error falls and the initial state is forgotten (echo gap <=
         error / 10)

Once an iteration lowers the error by less than 15 %, `ls_fit` continues with the steps of
`credit_fit`, which back-propagate information that the target states lack: the effect of a state on
later outputs. Let D(t) be the gradient of the squared error with respect to the pre-activations,
and R(t) = [x(t), h(t-1)]. Then ::

    dW = -(D'D + s I)^-1 (D'R) (R'R + m I)^-1,  then the readout, kept as above

With a leak, the target of f(z) changes by the same amount as the target state. The penalty of each
ridge regression is the largest one whose score in generalised cross-validation is within a factor
1 + tau of the best score; the scores are computed from one eigendecomposition of a Gram matrix.
Gram matrices are summed block by block, so that no matrix of the regressors of all rows is created.
The intercept is not penalised. Inputs are divided by their standard deviation, and so are the
outputs if the output function is the identity.

Least squares does not accelerate training in general: it finds what a network can do with its
present memory, or with the memory that a few credit steps add.
"""

from reservoir.training.least_squares._credit import credit_fit
from reservoir.training.least_squares._iterate import LeastSquaresResult
from reservoir.training.least_squares._ls_fit import ls_fit
from reservoir.training.least_squares._online_step import OnlineStep, ls_online_step

__all__ = ["LeastSquaresResult", "OnlineStep", "credit_fit", "ls_fit", "ls_online_step"]

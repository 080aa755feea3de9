"""Parameter descriptions that several estimators share, written once."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T", bound=type)

RESERVOIR = """
n_units : int, default=100
    Number of reservoir units N. More units fit more, at a cost that grows with N for a step
    (sparse topologies) and with N^3 for the fit; 100 answers within a second.
topology : str, callable or array, default="random_sparse"
    Who receives from whom: a name in `reservoir.topologies.TOPOLOGIES`,
    ``f(n_units, random_state=...)``, or W itself, dense or sparse, (n_units, n_units).
in_degree : int or float in (0, 1], default=10
    Connections per unit, or their density; ignored by topologies without it. Ten keep the cost
    of a step linear in N without loss on the usual tasks.
weights : {"normal", "uniform", "bernoulli"} or scipy.stats distribution, default="normal"
    Law of the recurrent weights; ignored by topologies without it.
input_weights : str, scipy.stats distribution, callable or array, default="uniform"
    Law of W_in, ``f(n_units, n_features, random_state=...)``, or W_in itself, taken as given.
spectral_radius : float or None, default=0.9
    Largest absolute eigenvalue that W is scaled to; larger remembers longer. None leaves W as
    it is (a delay line has radius 0 and cannot be scaled).
leak_rate : float in (0, 1] or array of shape (n_units,), per step, default=1.0
    How much of the state is new at each step; lower it for slow series.
activation : str or Activation, default="tanh"
    "tanh", "logistic", "relu", "leaky_relu", "softplus" or "identity".
input_scaling : float or array of shape (n_features,), default=1.0
    Input weights are U(-1, 1) times this, per column; 1 suits standardised inputs.
bias : str or array of shape (n_units,), default="uniform"
    "uniform", U(-1, 1), "normal" or "bernoulli", times `bias_scaling`; or the bias itself.
    "stable": with which the reservoir is proved to forget its start, also above spectral radius
    1, for every input within the range of X in fit, a tenth of its width added on both sides;
    `certificate_` says so.
bias_scaling : float, default=0.1
    Without a bias a tanh reservoir computes odd functions of its input only.
"""

READOUT = """
alpha : float or array of shape (n_alphas,), default=1e-6
    Ridge penalty, scikit-learn's: ``||Y - HC||^2 + alpha ||C||^2``, not divided by the number
    of rows. From an array one is chosen by `alpha_selection`, at the cost of one
    eigendecomposition (per block).
alpha_selection : {"gcv", "blocked", "holdout"}, default="gcv"
    Generalised cross-validation; 5 consecutive blocks of time, each scored by a fit on the
    others; or the last 20 % of each sequence, scored by a fit on the rest.
alpha_per_target : bool, default=False
    Whether each output gets a penalty of its own.
readout : scikit-learn estimator, optional
    Replaces the built-in ridge; `alpha` is then unused and the states are stored.
fit_intercept : bool, default=True
    The intercept is not penalised.
include_input : bool, default=True
    Whether the readout sees the input beside the states.
washout : int, "auto" or "measured", default="auto"
    Rows at the start of each sequence that the fit leaves out, because the states there still
    remember the initial state. "auto" is ``min(100, n_samples // 10)``; "measured": as many as it
    takes states from different starts to agree (`reservoir.stability.transient_length`).
initial_state : {"last", "zeros", "steady"} or array, default="last"
    Where a run starts. "last": `predict` goes on from the end of training (so TimeSeriesSplit
    scores what it should) if fit saw one sequence and X is one; otherwise, and in training,
    zeros. Where an index of dates, periods or numbers tells that X does not begin right after
    training, the run starts from "steady" and a warning says so. Without such an index (arrays;
    rows numbered from 0) nothing can be known, and X is taken to follow: cross-validate with
    `reservoir.model_selection.ContextSplit` and "zeros". "steady": the state that the first row
    leads to when it is held, zeros if there is none. An array has shape (n_units,) or
    (n_sequences, n_units); with feedback the last output may follow the units.
feedback : bool, default=False
    Whether the previous output enters the reservoir: the target in fit (teacher forcing), its
    own output in predict. X then holds exogenous inputs only.
feedback_scaling : float or array of shape (n_outputs,), default=1.0
    Feedback weights are U(-1, 1) times this.
noise : float, default=0.0
    Standard deviation of Gaussian noise on the states, in fit only: makes a network that runs
    on its own outputs robust.
"""

COLUMN = """
sequence_column : int or str, optional
    Column of X that tells the sequences apart; it counts in `n_features_in_` and never enters
    the reservoir. Rows of one id must be adjacent.
dtype : {"float64", "float32"}, default="float64"
    Of states and outputs. Gram matrices are float64 in either case.
"""

COMMON = (
    COLUMN
    + """n_jobs : int, optional
    Workers for the sequences of a fit (joblib). The result does not depend on it.
"""
)

LAST = """
verbose : int, default=0
    1 shows a progress line.
missing_targets : {"raise", "skip"}, default="raise"
    Whether rows with NaN in y are refused, or drive the reservoir and are left out of the fit,
    of `score` and of `reservoir.model_selection.washout_scorer`. scikit-learn's own scorers
    (``scoring="r2"``) refuse them in any case.
random_state : int, Generator, RandomState or None, default=None
    Seed of all weights and of the noise.
"""

FITTED = """
coef_ : array of shape (n_outputs, n_units [+ n_features]), or 1-D for 1-D y
    Weights of the built-in readout: states first, then inputs.
intercept_ : float or array of shape (n_outputs,)
alpha_ : float or array of shape (n_outputs,)
    The penalty used.
alpha_scores_ : array of shape (n_alphas, n_outputs)
    What `alpha_selection` thinks of each penalty, if `alpha` is an array: mean squared errors.
readout_ : estimator
    The fitted `readout`, if one was given.
reservoir_ : reservoir.dynamics.Reservoir
certificate_ : reservoir.stability.Certificate
    With ``bias="stable"``: what was proved, and for which range of inputs.
washout_ : array of shape (n_sequences,)
    Rows that fit left out of each sequence.
state_ : array of shape (n_units,), with feedback (n_units + n_outputs,)
    The state at the end of training (of its last sequence), then the last target.
n_outputs_ : int
n_features_in_ : int
feature_names_in_ : array of shape (n_features_in_,)
    If X had names.
"""


def describe(**blocks: str) -> Callable[[_T], _T]:
    """Fill ``{name}`` in a class's docstring with parameter blocks."""

    def fill(cls: _T) -> _T:
        doc = cls.__doc__ or ""
        for name, text in blocks.items():
            doc = doc.replace(f"    {{{name}}}\n", textwrap.indent(text.strip("\n"), "    ") + "\n")
        cls.__doc__ = doc
        return cls

    return fill

"""The parameters of echo state estimators, beside those of their reservoir."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from sklearn.base import ClassifierMixin

from reservoir._validation import (
    check_choice,
    check_n_jobs,
    check_number,
    check_switch,
)
from reservoir.dynamics.augment import check_augment
from reservoir.estimators._parameters import parameter
from reservoir.readouts.ridge import SOLVERS, check_alpha
from reservoir.readouts.selection import SELECTIONS
from reservoir.readouts.sums import check_forgetting


@dataclass(eq=False, repr=False, kw_only=True)
class ReadoutParameters:
    """What describes a readout, and how it is learned."""

    alpha: Any = parameter(
        "auto",
        '"auto", float or array of shape (n_alphas,)',
        """Ridge penalty, scikit-learn's: ``||Y - HC||^2 + alpha ||C||^2``, not divided by the
        number of rows. "auto": from the powers of ten between penalties that do nothing (1e-11 of
        the mean square sum of the features; 1e-8 of a small one where these differ much) and what
        leaves the mean of the targets (100 times the sum over features) one is chosen by
        `alpha_selection`; from an array likewise. The fitted attributes `alphas_` and
        `alpha_scores_` hold what was tried. A choice costs as much as one fit more, at most three:
        if outputs are asked for after each row that is learned, use a session (`stream`), or one
        number.""",
        check_alpha,
    )
    solver: str = parameter(
        "auto",
        '{"auto", "cholesky", "qr"}',
        """What the ridge is solved from. "cholesky": the Gram matrix of the features, which has
        half of their digits: penalties below some 1e-12 of its largest eigenvalue (about n_samples
        times n_features times the features' variance) are lost in rounding errors. "qr": a
        triangular factor with all digits (`reservoir.readouts.QRAccumulator`), in about twice the
        time; penalties count down to some 1e-30 times n_samples. "auto" is "qr" if dtype is
        "float64" and the least penalty is below 1e-11, else "cholesky"; the data do not matter.
        A penalty below 1e-12 is wise where the data have no noise, as in simulations of dynamical
        systems: one-step errors and closed loops then gain many digits. With noise, that of
        measurements or of single precision too, it fits the noise: larger ones generalise. Chunks
        of partial_fit keep to the solver of the first. Unused with `readout`.""",
        lambda name, value: check_choice(name, value, ("auto", *SOLVERS)),
    )
    alpha_selection: str = parameter(
        "auto",
        '{"auto", "halves", "blocked", "holdout", "gcv", "reml", "reml_ar1", "forecast"}',
        """How a penalty is chosen where there is a choice. "halves": runs of neighbouring rows
        belong to two halves in turns, each scored by a fit on the other. "blocked": 5 consecutive
        blocks of time, each scored by a fit on the others. "holdout": the last 20 % of each
        sequence, scored by a fit on the rest. "gcv": generalised cross-validation. "reml":
        restricted maximum likelihood, from the same sums and less misled by errors that depend on
        their neighbours. "reml_ar1": the same with AR(1) errors, from a second sum, over
        differences of neighbouring rows. "forecast", of regressors whose y is the next row of X, in
        any unit, or with `feedback`: closed loops in the last fifth of each sequence, or in whole
        sequences where there are many, under coefficients from the rest. There are up to 8, from
        places at equal distances, each half as long as what a sequence has there, and 50 steps at
        most; the median decides of what `reservoir.model_selection.ClosedLoopSearchCV` scores, and
        rows of weight 0 or without a target do not count. "auto": "halves", or "reml" where a half
        would have fewer than 8 rows, and where `forgetting` is less than 1. Chunks of partial_fit
        can be neither "blocked", "holdout" nor "forecast"; with the others any split of the rows is
        one fit. Several outputs
        count in units of the variance of their targets, classes all alike. A session goes on with
        the penalty that it began with.""",
        lambda name, value: check_choice(name, value, ("auto", *SELECTIONS)),
    )
    alpha_per_target: bool = parameter(
        False,
        "bool",
        """Whether each output gets a penalty of its own. "forecast" has one for all.""",
        check_switch,
    )
    forgetting: float = parameter(
        1.0,
        "float in (0, 1]",
        """What each row that the fit learns from multiplies the weights of all rows before it by,
        in `fit` and `partial_fit` alike: ``1 - 1/n`` remembers about n rows, 1.0 all of them. Rows
        of the washout, of weight 0 or without a target (``missing_targets="skip"``) count as none.
        Later sequences are younger; the penalty is not forgotten. With less than 1 several
        sequences run one by one, `alpha_selection` must be "auto", "gcv", "reml" or "reml_ar1" if
        there is a choice of penalties, and `readout` must be None.""",
        check_forgetting,
    )
    readout: Any = parameter(
        None,
        "scikit-learn estimator",
        """Replaces the built-in ridge; `alpha` is then unused and the features are stored.""",
    )
    fit_intercept: bool = parameter(
        True,
        "bool",
        """The intercept is not penalised.""",
        check_switch,
    )
    washout: Any = parameter(
        "auto",
        'int, "auto" or "measured"',
        """Rows at the start of each sequence that the fit leaves out, because the states there
        still remember the initial state. "auto" is ``min(100, n_samples // 10)``; "measured":
        as many as it takes states from different starts to agree
        (`reservoir.stability.transient_length`).""",
    )
    n_jobs: int | None = parameter(
        None,
        "int",
        """Workers for the sequences of a fit (joblib). The result does not depend on it.""",
        lambda name, value: check_n_jobs(value),
    )

    def _memory_advice(self) -> str:
        """Return which parameters to change where memory fails."""
        if self.readout is not None:
            return f"Lower {self._sizes()}, or give fewer rows; partial_fit takes some at a time."
        few = "RidgeClassifier" if isinstance(self, ClassifierMixin) else "Ridge"
        return (
            f"Lower {self._sizes()}; or, where rows are few, give a "
            f"sklearn.linear_model.{few} as readout, which stores n_samples x n_features numbers "
            "and solves for one number per row."
        )

    def _sizes(self) -> str:
        """Return the parameters that the number of features grows with."""
        return f"n_units={self.n_units}"  # type: ignore[attr-defined]


@dataclass(eq=False, repr=False, kw_only=True)
class DrivenParameters:
    """What a readout sees of a reservoir, and what comes back into it from the readout."""

    augment: Any = parameter(
        None,
        '{"square", "even_square"} or callable',
        """What the readout sees in the place of the states x. "square": ``[x, x^2]``, twice as many
        columns; a readout of tanh units then has even functions as well, and learns from short
        series. "even_square": the states of units of even index, counted from 0, are replaced by
        their squares, which costs nothing: one half of the units, as Pathak, Lu, Hunt, Girvan and
        Ott do ("Using machine learning to replicate chaotic attractors and calculate Lyapunov
        exponents from data", Chaos 27, 121102, 2017). A function gets states, (n_rows, n_units),
        and returns an array of any width with a row for each row, which must not depend on the
        other rows. Inputs (`include_input`) stand behind.""",
        lambda name, value: check_augment(value),
    )
    feedback: bool = parameter(
        False,
        "bool",
        """Whether the previous output enters the reservoir: the target in fit (teacher forcing),
        its own output in predict. X then holds exogenous inputs only.""",
        check_switch,
    )
    feedback_scaling: Any = parameter(
        1.0,
        "float or array of shape (n_outputs,)",
        """Feedback weights are U(-1, 1) times this.""",
    )
    noise: float = parameter(
        0.0,
        "float",
        """Standard deviation of Gaussian noise on the states, in fit only: makes a network that
        runs on its own outputs robust.""",
        partial(check_number, low=0.0),
    )

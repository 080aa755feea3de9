"""Parameters of estimators, each written once: its default, its documentation, its check.

An estimator is a dataclass whose fields are its parameters. Those that several estimators have are
written here, in groups; a class lists the ones it has: ``alpha: Any = shared.alpha``, or with a
change ``shared.but("alpha", default=1.0)``. `documented` puts the descriptions into the docstring,
`check_parameters` runs the checks.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import KW_ONLY, MISSING, dataclass, field, fields
from functools import partial
from typing import Any, TypeVar

import numpy as np

from reservoir._validation import (
    check_choice,
    check_count,
    check_n_jobs,
    check_number,
    check_switch,
)
from reservoir.dynamics.augment import check_augment
from reservoir.readouts.ridge import SOLVERS, check_alpha
from reservoir.readouts.selection import SELECTIONS
from reservoir.readouts.sums import check_forgetting

_T = TypeVar("_T", bound=type)
Check = Callable[[str, Any], Any]


def parameter(
    default: Any,
    kind: str,
    text: str = "",
    check: Check | None = None,
    *,
    group: str = "",
    **options: Any,
) -> Any:
    """Return a field of an estimator.

    Parameters
    ----------
    default : object
    kind : str
        What it may be, as numpydoc writes it behind the colon.
    text : str
        What it does, and why the default is what it is.
    check : callable, optional
        ``check(name, value)`` refuses what the parameter may not be. None where it is refused at
        the place that it is for, as those of a reservoir are.
    group : str
        The class that it is written in, where several estimators have it.
    **options
        Further arguments of `dataclasses.field`.
    """
    about = {"kind": kind, "text": inspect.cleandoc(text), "check": check, "group": group}
    return field(default=default, metadata=about, **options)


def changed(
    cls: type,
    name: str,
    *,
    default: Any = MISSING,
    kind: str = "",
    text: str = "",
    more: str = "",
) -> Any:
    """Return a parameter of `cls` with another default, kind or text, or with more text."""
    old = cls.__dataclass_fields__[name]  # type: ignore[attr-defined]
    return parameter(
        old.default if default is MISSING else default,
        kind or old.metadata["kind"],
        "\n".join(part for part in (text or old.metadata["text"], inspect.cleandoc(more)) if part),
        old.metadata["check"],
        group=old.metadata["group"] or cls.__name__,
        kw_only=old.kw_only,
    )


class Shared:
    """Parameters by name, from the groups that they are written in.

    Each access makes a field of its own, so that several classes may list the same parameter.

    Parameters
    ----------
    *groups : dataclasses
    """

    def __init__(self, *groups: type) -> None:
        self._groups = groups

    def __getattr__(self, name: str) -> Any:
        """Return a parameter as it is written."""
        return self.but(name)

    def but(self, name: str, **changes: Any) -> Any:
        """Return a parameter with some changes, as `changed` takes them."""
        for group in self._groups:
            if name in group.__dataclass_fields__:  # type: ignore[attr-defined]
                return changed(group, name, **changes)
        raise AttributeError(f"no group of parameters has {name!r}")


def check_parameters(estimator: Any) -> None:
    """Refuse parameters that cannot be right, each alone."""
    for each in fields(estimator):
        check = each.metadata["check"]
        if check is not None:
            check(each.name, getattr(estimator, each.name))


def documented(**blocks: str) -> Callable[[_T], _T]:
    """Fill the docstring of a class: ``{PARAMETERS}`` with its fields, ``{NAME}`` with a block."""

    def fill(cls: _T) -> _T:
        parts = {"PARAMETERS": "\n".join(_entry(each) for each in fields(cls))}  # type: ignore[arg-type]
        lines: list[str] = []
        for line in (cls.__doc__ or "").splitlines():
            name = line.strip().removeprefix("{").removesuffix("}")
            text = (parts | blocks).get(name) if line.strip() == f"{{{name}}}" else None
            lines.append(line if text is None else textwrap.indent(text.strip("\n"), "    "))
        cls.__doc__ = "\n".join(lines)
        return cls

    return fill


def _entry(each: Any) -> str:
    """Return what numpydoc says of a field."""
    default = f"default={each.default!r}".replace("'", '"')
    kind, text = each.metadata["kind"], each.metadata["text"]
    head = f"{each.name} : {kind}, " + ("optional" if each.default is None else default)
    return f"{head}\n{textwrap.indent(text, '    ')}" if text else head


def natural_or_switch(name: str, value: Any) -> None:
    """Check a verbosity: a count, or a switch."""
    if not isinstance(value, (bool, np.bool_)):
        check_count(name, value, minimum=0)


def one_of(*names: str) -> Check:
    """Return the check that a value is one of these names."""
    return partial(check_choice, known=names)


def read_dtype(dtype: Any) -> Any:
    """Return numpy's float32 or float64 for an estimator's parameter `dtype`."""
    try:
        resolved = np.dtype(dtype)
    except TypeError:
        resolved = None
    if resolved not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r} must be 'float32' or 'float64'.")
    return resolved


@dataclass(eq=False, repr=False)
class ReservoirParameters:
    """Parameters of a reservoir; `reservoir.building` checks them where they are used."""

    n_units: int = parameter(
        100,
        "int",
        """Number of reservoir units N. More units fit more, at a cost that grows with N for a step
        (sparse topologies) and with N^3 for the fit; 100 answers within a second.""",
    )
    _: KW_ONLY
    topology: Any = parameter(
        "random_sparse",
        "str, callable or array",
        """Who receives from whom: a name in `reservoir.topologies.TOPOLOGIES`, ``f(n_units,
        random_state=...)``, or W itself, dense or sparse, (n_units, n_units).""",
    )
    in_degree: float = parameter(
        10,
        "int or float in (0, 1]",
        """Connections per unit, or their density; ignored by topologies without it. Ten keep the
        cost of a step linear in N without loss on the usual tasks.""",
    )
    weights: Any = parameter(
        "normal",
        '{"normal", "uniform", "bernoulli"} or scipy.stats distribution',
        """Law of the recurrent weights; ignored by topologies without it.""",
    )
    input_weights: Any = parameter(
        "uniform",
        "str, scipy.stats distribution, callable or array",
        """Law of W_in, ``f(n_units, n_features, random_state=...)``, or W_in itself, taken as
        given.""",
    )
    spectral_radius: float | None = parameter(
        0.9,
        "float or None",
        """Largest absolute eigenvalue that W is scaled to; larger remembers longer. None leaves W
        as it is (a delay line has radius 0 and cannot be scaled).""",
    )
    leak_rate: Any = parameter(
        1.0,
        "float in (0, 1], tuple of a few, or array of shape (n_units,), per step",
        """How much of the state is new at each step; lower it for slow series. A tuple of more than
        one rate and fewer than n_units, such as (0.5, 0.3), has one for each group of neighbouring
        units, whose sizes differ by one at most; all units hear each other, unlike the groups of
        `ReservoirFeatures`. One unit has the first rate.""",
    )
    activation: Any = parameter(
        "tanh",
        "str or Activation",
        """"tanh", "logistic", "relu", "leaky_relu", "softplus" or "identity".""",
    )
    input_scaling: Any = parameter(
        1.0,
        "float or array of shape (n_features,)",
        """Input weights are U(-1, 1) times this, per column; 1 suits standardised inputs.""",
    )
    bias: Any = parameter(
        "uniform",
        "str or array of shape (n_units,)",
        """"uniform", U(-1, 1), "normal" or "bernoulli", times `bias_scaling`; or the bias itself.
        "stable": with which the reservoir is proved to forget its start, also above spectral
        radius 1, for every input within the range of X in fit, a tenth of its width added on
        both sides; `certificate_` says so. With ``topology="orthogonal"`` or ``"ring"`` and
        ``spectral_radius=0.99`` the uniform one will do, and memory is long; where another
        bias has to be found, and costs memory, a warning says so.""",
    )
    bias_scaling: float = parameter(
        0.1,
        "float",
        """Without a bias a tanh reservoir computes odd functions of its input only.""",
    )


@dataclass(eq=False, repr=False, kw_only=True)
class SequenceParameters:
    """Parameters of every estimator of sequences."""

    initial_state: Any = parameter(
        "last",
        '{"last", "zeros", "steady"} or array',
        """Where a run starts. "last": `predict` goes on from the end of training (so
        TimeSeriesSplit scores what it should) if fit saw one sequence and X is one; otherwise,
        and in training, zeros. Where an index of dates, periods or numbers tells that X does
        not begin right after training, the run starts from "steady" and a warning says so.
        Without such an index (arrays; rows numbered from 0) nothing can be known, and X is
        taken to follow: cross-validate with `reservoir.model_selection.ContextSplit` and
        "zeros". "steady": the state that the first row leads to when it is held, zeros if there
        is none. An array has shape (n_units,) or (n_sequences, n_units); with feedback the last
        output may follow the units.""",
    )
    sequence_column: Any = parameter(
        None,
        "int or str",
        """Column of X that tells the sequences apart; it counts in `n_features_in_` and never
        enters the reservoir. Rows of one id must be adjacent.""",
    )
    dtype: Any = parameter(
        "float64",
        '{"float64", "float32"}',
        """Of states and outputs. Gram matrices are float64 in either case.""",
    )


def check_time_step(name: str, value: Any) -> None:
    """Check a length of time: a positive number, or "auto"."""
    if isinstance(value, str):
        check_choice(name, value, ("auto",))
    else:
        check_number(name, value, low=0.0, low_open=True)


@dataclass(eq=False, repr=False, kw_only=True)
class TimeParameters:
    """Parameters of every estimator that takes account of when rows were measured."""

    time_column: Any = parameter(
        None,
        "int or str",
        """Column of X that says when each row was measured: numbers that rise within a sequence,
        such as hours or days. The state then moves by ``1 - (1 - leak_rate) ** dt`` of the way,
        where dt is the time since the row before in units of `time_step`: after a long gap more of
        what was before is forgotten. Units with a leak rate of 1 take no account of it. The column
        counts in `n_features_in_` and enters nothing else. Such runs are NumPy's, not compiled.""",
    )
    time_step: Any = parameter(
        "auto",
        'float or "auto"',
        """The gap for which `leak_rate` is given, in units of `time_column`; "auto" is the median
        gap in fit.""",
        check_time_step,
    )


@dataclass(eq=False, repr=False, kw_only=True)
class DrawnParameters:
    """Parameters of every estimator that draws weights."""

    random_state: Any = parameter(
        None,
        "int, Generator, RandomState or None",
        """Seed of all weights, and of what else is drawn: noise, the order of sequences, what is
        held out.""",
    )


@dataclass(eq=False, repr=False, kw_only=True)
class InputParameters:
    """Parameters of every estimator whose readout sees states."""

    include_input: bool = parameter(
        True,
        "bool",
        """Whether the readout sees the input beside the states.""",
        check_switch,
    )


@dataclass(eq=False, repr=False, kw_only=True)
class LearnerParameters:
    """Parameters of every estimator that learns outputs."""

    verbose: int = parameter(
        0,
        "int",
        """1 shows a progress line.""",
        natural_or_switch,
    )


@dataclass(eq=False, repr=False, kw_only=True)
class LabelParameters:
    """Parameters of every classifier."""

    class_weight: Any = parameter(
        None, 'dict or "balanced"', """Weights of the classes, as in scikit-learn."""
    )


def _check_solver(name: str, value: Any) -> None:
    check_choice(name, value, ("auto", *SOLVERS))


def _check_selection(name: str, value: Any) -> None:
    check_choice(name, value, ("auto", *SELECTIONS))


def _check_n_jobs(name: str, value: Any) -> None:
    check_n_jobs(value)


def _check_augment(name: str, value: Any) -> None:
    check_augment(value)


@dataclass(eq=False, repr=False, kw_only=True)
class ReadoutParameters:
    """Parameters of a readout, and of how it is learned."""

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
        _check_solver,
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
        _check_selection,
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
        _check_n_jobs,
    )


@dataclass(eq=False, repr=False, kw_only=True)
class DrivenParameters:
    """Parameters of the features that a readout sees of a reservoir, and of its feedback."""

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
        _check_augment,
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


@dataclass(eq=False, repr=False, kw_only=True)
class TargetParameters:
    """Parameters of every regressor over features."""

    missing_targets: str = parameter(
        "raise",
        '{"raise", "skip"}',
        """Whether rows with NaN in y are refused, or are seen by the rows after them and left out
        of the fit, of `score` and of `reservoir.model_selection.washout_scorer`. scikit-learn's own
        scorers (``scoring="r2"``) refuse them in any case.""",
        one_of("raise", "skip"),
    )


#: Where an estimator takes its parameters from: ``alpha: Any = shared.alpha``.
shared = Shared(
    ReservoirParameters,
    TimeParameters,
    DrawnParameters,
    DrivenParameters,
    InputParameters,
    ReadoutParameters,
    SequenceParameters,
    LearnerParameters,
    LabelParameters,
    TargetParameters,
)

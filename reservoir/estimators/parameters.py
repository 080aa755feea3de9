"""Parameters of estimators, each defined once: its default, its documentation, its check.

An estimator is a dataclass whose fields are its parameters. Parameters of several estimators are
defined here, in groups; a class lists those it has: ``alpha: Any = shared.alpha``, or with a change
``shared.but("alpha", default=1.0)``. `documented` inserts the descriptions into the docstring,
`check_parameters` runs the checks.
"""

from __future__ import annotations

import functools
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
    check_instance,
    check_n_jobs,
    check_number,
    check_switch,
)
from reservoir.dynamics.augment import check_augment
from reservoir.estimators.other_names import OTHER_NAMES
from reservoir.readouts.ridge import SOLVERS
from reservoir.readouts.selection import SELECTIONS, check_alpha
from reservoir.readouts.sums import check_forgetting

_T = TypeVar("_T", bound=type)
Check = Callable[[str, Any], Any]
_F = TypeVar("_F", bound=Callable[..., Any])


def parameter(
    default: Any,
    kind: str,
    text: str = "",
    check: Check | None = None,
    *,
    group: str = "",
    fixed: str = "fit",
    **options: Any,
) -> Any:
    """Return a field of an estimator, with further `options` of `dataclasses.field`.

    `kind` is the type and `text` the description, as in numpydoc. ``check(name, value)`` raises if
    a value is invalid; it is None if the value is checked where it is used. `group` is the class
    that defines a shared parameter. Later rows cannot change it from the first rows on ("fit"), or
    from the first chunk of a trained network ("online"); they can ("") if each call reads it, or
    only `fit`.
    """
    about = {"kind": kind, "text": inspect.cleandoc(text), "check": check}
    about |= {"group": group, "fixed": fixed}
    return field(default=default, metadata=about, **options)


class Shared:
    """Parameters by name, from the groups (dataclasses) that define them.

    Each access returns a new field, so that several classes may list the same parameter.
    """

    def __init__(self, *groups: type) -> None:
        self._groups = groups

    def __getattr__(self, name: str) -> Any:
        """Return a parameter unchanged."""
        return self.but(name)

    def but(
        self,
        name: str,
        *,
        default: Any = MISSING,
        kind: str = "",
        text: str = "",
        more: str = "",
    ) -> Any:
        """Return a parameter with another default, kind or text, or with text appended."""
        having: Any = (g for g in self._groups if name in g.__dataclass_fields__)  # type: ignore[attr-defined]
        group = next(having, None)
        if group is None:
            raise AttributeError(f"no group of parameters has {name!r}")
        old = group.__dataclass_fields__[name]
        about = old.metadata
        return parameter(
            old.default if default is MISSING else default,
            kind or about["kind"],
            "\n".join(part for part in (text or about["text"], inspect.cleandoc(more)) if part),
            about["check"],
            group=about["group"] or group.__name__,
            fixed=about["fixed"],
            kw_only=old.kw_only,
        )


def check_parameters(estimator: Any) -> None:
    """Check each parameter by itself; raise if one is invalid."""
    for each in fields(estimator):
        value = getattr(estimator, each.name)
        for check in filter(None, (check_instance, each.metadata["check"])):
            check(each.name, value)


def documented(**blocks: str) -> Callable[[_T], _T]:
    """Fill the docstring of a class: ``{PARAMETERS}`` with its fields, ``{NAME}`` with a block.

    The constructor names its own parameter where a keyword of another library is given.
    """

    def fill(cls: _T) -> _T:
        parts = {"PARAMETERS": "\n".join(_entry(each) for each in fields(cls))}  # type: ignore[arg-type]
        lines: list[str] = []
        for line in (cls.__doc__ or "").splitlines():
            name = line.strip().removeprefix("{").removesuffix("}")
            text = (parts | blocks).get(name) if line.strip() == f"{{{name}}}" else None
            lines.append(line if text is None else textwrap.indent(text.strip("\n"), "    "))
        cls.__doc__ = "\n".join(lines)
        if "__init__" in vars(cls):
            cls.__init__ = with_other_names(cls.__init__)  # type: ignore[misc]
        return cls

    return fill


def with_other_names(function: _F) -> _F:
    """Return a function whose TypeError for an unknown keyword names the keyword that it has.

    Signature and class of the error stay. A method `forecast` of the same object is searched as
    well, since other libraries pass to constructors what is passed to it here.
    """
    known = inspect.signature(function).parameters

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        # checked first, so that an error from within the function is not touched
        unknown = [name for name in keywords if name not in known]
        if not unknown:
            return function(*args, **keywords)
        try:
            return function(*args, **keywords)
        except TypeError as error:
            method = getattr(type(args[0]), "forecast", None) if args else None
            advice = [_advice(name, known, method) for name in unknown if name in OTHER_NAMES]
            named = ", ".join(each for each in advice if each)
            raise TypeError(f"{error}. Its name here: {named}" if named else str(error)) from None

    return call  # type: ignore[return-value]


def _advice(name: str, known: Any, method: Any) -> str:
    """Return an example with the name here, or nothing if neither callable has such a parameter."""
    of_method = inspect.signature(method).parameters if inspect.isfunction(method) else ()
    for parameters, where in ((known, ""), (of_method, " (in the method forecast)")):
        for example in OTHER_NAMES[name]:
            if example.partition("=")[0] in parameters:
                return f"{name}: {example}{where}"
    return ""


def attributes_of(cls: type) -> str:
    """Return the entries of the fitted attributes, with which a class's docstring ends."""
    return inspect.cleandoc(cls.__doc__ or "").partition("Attributes\n----------\n")[2]


def _entry(each: Any) -> str:
    """Return the numpydoc entry of a field."""
    default = f"default={each.default!r}".replace("'", '"')
    kind, text = each.metadata["kind"], each.metadata["text"]
    head = f"{each.name} : {kind}"
    if each.default is not MISSING:
        head += ", optional" if each.default is None else f", {default}"
    return f"{head}\n{textwrap.indent(text, '    ')}" if text else head


def natural_or_switch(name: str, value: Any) -> None:
    """Check that a verbosity is a count or a switch."""
    if not isinstance(value, (bool, np.bool_)):
        check_count(name, value, minimum=0)


def one_of(*names: str) -> Check:
    """Return a check that a value is one of these names."""
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
    """Parameters of a reservoir; `reservoir.building` checks them when they are used."""

    n_units: int = parameter(
        100,
        "int",
        """Number of reservoir units N. More units can fit more complex series. The cost of a step
        grows with N (for sparse topologies), and the cost of the fit with N^3; 100 units take less
        than a second.""",
    )
    _: KW_ONLY
    topology: Any = parameter(
        "random_sparse",
        "str, callable or array",
        """Connections between units: a name in `reservoir.topologies.TOPOLOGIES`, a function
        ``f(n_units, random_state=...)`` that returns W, or W itself, a dense or sparse array of
        shape (n_units, n_units).""",
    )
    in_degree: float = parameter(
        10,
        "int or float in (0, 1]",
        """Number of connections per unit, or their density; with ``topology="diagonals"`` the
        number of diagonals, an integer; ignored by topologies that do not use it. Ten connections
        keep the cost of a step linear in N without loss of accuracy on common tasks.""",
    )
    weights: Any = parameter(
        "normal",
        '{"normal", "uniform", "bernoulli"} or scipy.stats distribution',
        """Distribution of the recurrent weights; ignored by topologies that do not use it.""",
    )
    input_weights: Any = parameter(
        "uniform",
        "str, scipy.stats distribution, callable or array",
        """Distribution of W_in, a function ``f(n_units, n_features, random_state=...)`` that
        returns W_in, or W_in itself, which is used unchanged. "heads" lets each input enter one
        unit alone, as delay lines need it.""",
    )
    spectral_radius: float | None = parameter(
        0.9,
        "float or None",
        """Spectral radius (largest absolute eigenvalue) to which W is scaled; a larger one means
        longer memory. None leaves W unchanged (a delay line has radius 0 and cannot be scaled).""",
    )
    leak_rate: Any = parameter(
        1.0,
        "float in (0, 1], tuple of a few, or array of shape (n_units,), per step",
        """Fraction of the state that is new at each step; lower it for slow series. A tuple of more
        than one and fewer than n_units rates, such as (0.5, 0.3), assigns one rate to each group of
        neighbouring units; the sizes of the groups differ by one at most. Units of different groups
        are connected, unlike in `ReservoirFeatures`. One or two units have the first rates.""",
    )
    activation: Any = parameter(
        "tanh",
        "str or Activation",
        """Activation function of the units: "tanh", "logistic", "relu", "leaky_relu", "softplus",
        "identity", or an `Activation`.""",
    )
    input_scaling: Any = parameter(
        1.0,
        "float or array of shape (n_features,)",
        """Factor of the input weights, which are drawn from U(-1, 1), for each column of X; 1 suits
        standardised inputs.""",
    )
    bias: Any = parameter(
        "uniform",
        "str or array of shape (n_units,)",
        """Distribution of the bias: "uniform" (U(-1, 1)), "normal" or "bernoulli", multiplied by
        `bias_scaling`; or the bias itself. "stable": a bias with which the reservoir is proved to
        forget its initial state, even with a spectral radius above 1, for every input within the
        range of X in fit, widened by a tenth on both sides; the proof is in `certificate_`. With
        ``topology="orthogonal"`` or ``"ring"`` and ``spectral_radius=0.99`` the uniform bias
        suffices, and memory is long; if another bias has to be found, the memory is shorter, and a
        warning is raised.""",
    )
    bias_scaling: float = parameter(
        0.1,
        "float",
        """Factor by which a random bias is multiplied. Without a bias, a tanh reservoir computes
        only odd functions of its input.""",
    )


def check_time_step(name: str, value: Any) -> None:
    """Check that a time step is a positive number or "auto"."""
    if isinstance(value, str):
        check_choice(name, value, ("auto",))
    else:
        check_number(name, value, low=0.0, low_open=True)


@dataclass(eq=False, repr=False, kw_only=True)
class CommonParameters:
    """Parameters of data, random numbers and reports that most estimators have."""

    initial_state: Any = parameter(
        "last",
        '{"last", "zeros", "steady"} or array',
        """State before the first row. "last": `predict` continues from the end of training (as
        TimeSeriesSplit requires) if fit received one sequence and X is one sequence; otherwise, and
        in training, the state is zero. If an index of dates, periods or numbers shows that X does
        not begin right after training, the run starts from "steady" with a warning. Without such an
        index (arrays; rows numbered from 0) X is assumed to follow: cross-validate with
        `reservoir.model_selection.ContextSplit` and "zeros". "steady": the state to which the first
        row leads when it is repeated, or zeros if there is no such state. "zeros": a state of
        zeros. An array has shape (n_units,) or (n_sequences, n_units); with feedback, the last
        output may follow the states of the units.""",
        fixed="",
    )
    sequence_column: Any = parameter(
        None,
        "int or str",
        """Column of X that contains the id of each row's sequence; it counts in `n_features_in_`,
        but never enters the reservoir. Rows with the same id must be adjacent.""",
    )
    dtype: Any = parameter(
        "float64",
        '{"float64", "float32"}',
        """Precision of states and outputs. Gram matrices are float64 in either case.""",
    )
    time_column: Any = parameter(
        None,
        "int or str",
        """Column of X that contains the time of each row: numbers that increase within a sequence,
        such as hours or days. The state is then updated with the leak rate ``1 - (1 - leak_rate) **
        dt``, where dt is the time since the previous row in units of `time_step`: after a long gap
        more of the past is forgotten. Units with a leak rate of 1 are not affected. The column
        counts in `n_features_in_` and is used for nothing else. Runs with a time column use NumPy
        instead of compiled code. In ESNForecaster a `time_column` has another meaning: dates at
        equal steps, in place of an index.""",
    )
    time_step: Any = parameter(
        "auto",
        'float or "auto"',
        """Time between two rows to which `leak_rate` refers, in units of `time_column`; "auto" is
        the median time between the rows of fit.""",
        check_time_step,
    )
    random_state: Any = parameter(
        None,
        "int, Generator, RandomState or None",
        """Seed of all weights and of all other random choices: noise, the order of sequences,
        held-out rows.""",
    )
    include_input: bool = parameter(
        True,
        "bool",
        """Whether the readout receives the input in addition to the states.""",
        check_switch,
    )
    verbose: int = parameter(
        0,
        "int",
        """Verbosity: 0 shows nothing, 1 shows a progress line.""",
        natural_or_switch,
        fixed="",
    )
    class_weight: Any = parameter(
        None, 'dict or "balanced"', """Weights of the classes, as in scikit-learn.""", fixed=""
    )
    missing_targets: str = parameter(
        "raise",
        '{"raise", "skip"}',
        """Handling of rows with NaN in y. "raise": an error is raised. "skip": the rows update the
        states, but are excluded from the fit, from `score` and from
        `reservoir.model_selection.washout_scorer`. The scorers of scikit-learn (``scoring="r2"``)
        always reject them.""",
        one_of("raise", "skip"),
        fixed="",
    )


@dataclass(eq=False, repr=False, kw_only=True)
class ReadoutParameters:
    """Parameters of a readout, and of how it is learned."""

    alpha: Any = parameter(
        "auto",
        '"auto", float or array of shape (n_alphas,)',
        """Ridge penalty as in scikit-learn: ``||Y - HC||^2 + alpha ||C||^2``, not divided by the
        number of rows. "auto": `alpha_selection` chooses one of the powers of ten, from a penalty
        without effect (1e-11 times the mean over the features of their sums of squares; 1e-8 times
        a small one of these sums if they differ greatly) to a penalty that leaves only the mean of
        the targets (100 times the total of these sums). An array contains the candidates
        themselves. The fitted attributes `alphas_` and `alpha_scores_` contain the candidates and
        their scores. The choice costs as much as one to three more fits: if outputs are needed
        after each row that is learned, use a session (`stream`), or set one number.""",
        check_alpha,
        fixed="",
    )
    solver: str = parameter(
        "auto",
        '{"auto", "cholesky", "qr"}',
        """Matrix from which the ridge is solved. "cholesky": the Gram matrix of the features, which
        retains half of their precision: penalties below about 1e-12 times its largest eigenvalue
        (about n_samples times n_features times the features' variance) are lost in rounding errors.
        "qr": a triangular factor with full precision (`reservoir.readouts.QRAccumulator`), in about
        twice the time; penalties have an effect down to about 1e-30 times n_samples. "auto" is "qr"
        if dtype is "float64" and the smallest penalty is below 1e-11, else "cholesky"; this choice
        does not depend on the data. A penalty below 1e-12 is recommended for data without noise,
        such as simulations of dynamical systems: one-step errors and closed loops then become more
        accurate by orders of magnitude. If there is noise, including measurement noise and the
        rounding of single precision, so small a penalty fits the noise, and larger ones generalise
        better. All chunks of partial_fit use the solver of the first chunk. Unused with
        `readout`.""",
        lambda name, value: check_choice(name, value, ("auto", *SOLVERS)),
        fixed="",
    )
    alpha_selection: str = parameter(
        "auto",
        '{"auto", "halves", "blocked", "holdout", "gcv", "reml", "reml_ar1", "forecast"}',
        """Rule by which one of several penalties is chosen. "halves": runs of neighbouring rows are
        assigned alternately to two halves, each scored by a fit to the other. "blocked": 5
        consecutive blocks of time, each scored by a fit to the others. "holdout": the last 20 % of
        each sequence, scored by a fit to the rest. "gcv": generalised cross-validation. "reml":
        restricted maximum likelihood, from the same sums as "gcv", and less misled by correlated
        errors. "reml_ar1": the same with AR(1) errors, from a second set of sums over differences
        of neighbouring rows. "forecast", for regressors whose y is the next row of X, in any units,
        or with `feedback`: closed loops in the last fifth of each sequence, or in whole sequences
        if there are many, with coefficients that are fitted to the rest. Up to 8 loops start from
        equally spaced origins; each has half the length of the held-out rows, at most 50 steps. The
        median of the scores of `reservoir.model_selection.ClosedLoopSearchCV` determines the
        penalty; rows of weight 0 or without a target do not count. "auto": "halves", or "reml" if a
        half would have fewer than 8 rows, or if `forgetting` is less than 1. partial_fit does not
        support "blocked", "holdout" and "forecast"; with the others the result does not depend on
        how the rows are split into chunks. The error of each output is divided by the variance of
        its targets before outputs are averaged; the classes of a classifier count equally. A
        session keeps the penalty with which it began.""",
        lambda name, value: check_choice(name, value, ("auto", *SELECTIONS)),
        fixed="",
    )
    alpha_per_target: bool = parameter(
        False,
        "bool",
        """Whether a separate penalty is chosen for each output. "forecast" does not support this:
        it chooses one penalty for all outputs.""",
        check_switch,
        fixed="",
    )
    forgetting: float = parameter(
        1.0,
        "float in (0, 1]",
        """Factor by which each training row multiplies the weights of all rows before it, in `fit`
        and `partial_fit`: ``1 - 1/n`` retains about n rows, 1.0 all of them. Rows of the washout,
        of weight 0 or without a target (``missing_targets="skip"``) do not count. Later sequences
        count as more recent. The penalty decays in sessions and `force_train` only: to no less than
        a tenth, then it is restored for one coefficient after the other; coefficients thus differ
        from those of `partial_fit`. With a value below 1, several sequences are run one by one,
        `alpha_selection` must be "auto", "gcv", "reml" or "reml_ar1" if there are several
        candidates for the penalty, and `readout` must be None.""",
        check_forgetting,
        fixed="",
    )
    readout: Any = parameter(
        None,
        "scikit-learn estimator",
        """Estimator that replaces the built-in ridge; `alpha` is then unused, and the features of
        all rows are stored during the fit.""",
        fixed="",
    )
    fit_intercept: bool = parameter(
        True,
        "bool",
        """Whether to fit an intercept, which is not penalised.""",
        check_switch,
        fixed="",
    )
    washout: Any = parameter(
        "auto",
        'int, "auto" or "measured"',
        """Number of rows at the start of each sequence that are excluded from the fit, because the
        states there still depend on the initial state. "auto" is ``min(100, n_samples // 10)``;
        "measured" is the number of steps after which states from different initial states agree
        (`reservoir.stability.transient_length`).""",
    )
    n_jobs: int | None = parameter(
        None,
        "int",
        """Number of parallel workers (joblib) over the sequences of a fit. The result does not
        depend on it.""",
        lambda name, value: check_n_jobs(value),
        fixed="",
    )


@dataclass(eq=False, repr=False, kw_only=True)
class DrivenParameters:
    """Parameters of the features that a readout receives from a reservoir, and of its feedback."""

    augment: Any = parameter(
        None,
        '{"square", "even_square"} or callable',
        """Features that the readout receives instead of the states x. "square": ``[x, x^2]``, twice
        as many columns; the readout of a network of tanh units can then represent even functions as
        well, and learns from short series. "even_square": the states of the units with an even
        index, counted from 0, are replaced by their squares, at no cost; these are half of the
        units, as in Pathak, Lu, Hunt, Girvan and Ott ("Using machine learning to replicate chaotic
        attractors and calculate Lyapunov exponents from data", Chaos 27, 121102, 2017). A function
        receives states of shape (n_rows, n_units), and returns an array with one row of features
        for each row of states, and any number of columns; no row may depend on the other rows.
        Inputs (`include_input`) come after these columns.""",
        lambda name, value: check_augment(value),
    )
    feedback: bool = parameter(
        False,
        "bool",
        """Whether the previous output is an input of the reservoir: the target in fit (teacher
        forcing), the predicted output in predict. X then contains exogenous inputs only.""",
        check_switch,
    )
    feedback_scaling: Any = parameter(
        1.0,
        "float or array of shape (n_outputs,)",
        """Factor of the feedback weights, which are drawn from U(-1, 1), for each output.""",
    )
    noise: float = parameter(
        0.0,
        "float",
        """Standard deviation of the Gaussian noise that is added to the states in fit only; it
        makes closed loops robust.""",
        partial(check_number, low=0.0),
    )
    bidirectional: bool = parameter(
        False,
        "bool",
        """Whether the reservoir also runs over each sequence backwards, from its last row, so that
        the readout receives the states of both runs: twice as many states, in up to four times the
        time. Each prediction then depends on earlier and on later rows, and each sequence is a
        whole recording. Rows at its end are excluded from the fit as well, as many as at its start
        (`washout`). As no run continues from an earlier one, `partial_fit`, `stream`, `forecast`
        and ``return_state=True`` raise an error, and ``initial_state="last"`` is "zeros"; with
        "steady" the run backwards starts from the steady state of the last row. An array contains
        the states before the first row, and may continue with the states after the last row (zeros
        by default). Cannot be combined with `feedback`, `time_column` and `n_lags`.""",
        check_switch,
    )


#: The parameters that estimators list: ``alpha: Any = shared.alpha``.
shared = Shared(ReservoirParameters, DrivenParameters, ReadoutParameters, CommonParameters)

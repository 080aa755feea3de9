"""Parameters of estimators, each written once: its default, its documentation, its check.

An estimator is a dataclass, and its parameters are fields that it inherits: `ReservoirParameters`
for what describes a reservoir, `SequenceParameters` for what every estimator of sequences has,
`LearnerParameters` and `LabelParameters` for those that learn outputs and labels, `InputParameters`
where a readout sees states, `DrawnParameters` where weights are drawn, `TimeParameters` where rows
may come at irregular times, and its own.
`documented` puts the descriptions into the docstring, `check_parameters` runs the checks.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import KW_ONLY, MISSING, dataclass, field, fields
from functools import partial
from typing import Any, TypeVar

import numpy as np

from reservoir._validation import check_choice, check_count, check_number, check_switch

_T = TypeVar("_T", bound=type)
Check = Callable[[str, Any], Any]


def parameter(
    default: Any, kind: str, text: str = "", check: Check | None = None, **options: Any
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
    **options
        Further arguments of `dataclasses.field`.
    """
    about = {"kind": kind, "text": inspect.cleandoc(text), "check": check}
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
        kw_only=old.kw_only,
    )


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


@dataclass(eq=False, repr=False)
class ReservoirParameters:
    """What describes a reservoir; `reservoir.building` checks it where it is used."""

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
    """What every estimator of sequences has."""

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
    """What every estimator has that takes account of when rows were measured."""

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
    """What every estimator has that draws weights."""

    random_state: Any = parameter(
        None,
        "int, Generator, RandomState or None",
        """Seed of all weights, and of what else is drawn: noise, the order of sequences, what is
        held out.""",
    )


@dataclass(eq=False, repr=False, kw_only=True)
class InputParameters:
    """What every estimator has whose readout sees states."""

    include_input: bool = parameter(
        True,
        "bool",
        """Whether the readout sees the input beside the states.""",
        check_switch,
    )


@dataclass(eq=False, repr=False, kw_only=True)
class LearnerParameters:
    """What every estimator has that learns outputs."""

    verbose: int = parameter(
        0,
        "int",
        """1 shows a progress line.""",
        natural_or_switch,
    )


@dataclass(eq=False, repr=False, kw_only=True)
class LabelParameters:
    """What every classifier has."""

    class_weight: Any = parameter(
        None, 'dict or "balanced"', """Weights of the classes, as in scikit-learn."""
    )

"""`design`: the certified reservoir with the longest memory."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any

import numpy as np

from reservoir._typing import Array, ArrayLike, RandomState
from reservoir._validation import (
    as_generator,
    caller_level,
    check_choice,
    check_count,
    check_number,
    check_numbers,
)
from reservoir._validation.arrays import read_arrays
from reservoir.activations import Activation, get_activation
from reservoir.drawing import Drawing
from reservoir.dynamics import Reservoir
from reservoir.metrics.memory_estimate import estimated_memory
from reservoir.stability._arguments import as_pair, enclosure_of, read_ends
from reservoir.stability._certified_values import stable_bias
from reservoir.stability._drive_ranges import drive_range
from reservoir.stability.certified_bias import RADIUS, smaller_radii, widened_range
from reservoir.stability.proofs._certificate import Certificate
from reservoir.stability.proofs._certify import certify
from reservoir.topologies import TOPOLOGIES, delay_line

# Topologies that are tried by default, each with the number of units up to which it is tried.
_TRIED = {
    "orthogonal": 2000,
    "ring": sys.maxsize,
    "cycle_with_jumps": sys.maxsize,
    "random_sparse": 500,
}
_HEAD = ("topology", "radius", "bias", "mean |b|", "certified", "rate", "memory")


@dataclass(frozen=True, eq=False, repr=False)
class Alternative:
    """A reservoir that `design` compares with others.

    Attributes
    ----------
    topology : str
        Name of the topology.
    spectral_radius : float
        Spectral radius of W.
    bias : {"drawn", "none", "searched"}
        Origin of the bias: drawn from its distribution, zeros, or found by `stable_bias`.
    reservoir : Reservoir
        The reservoir itself.
    certificate : Certificate
        Certificate for the range of inputs; it does not hold for reservoirs that are listed only
        for comparison.
    memory : float or None
        Approximate number of past inputs that a linear readout can recover from the states; None
        if a dense W is too large for the estimate.
    parameters : dict
        Parameters of `build_reservoir`, or of an estimator, that reproduce this reservoir.

    Examples
    --------
    >>> from reservoir.stability import design
    >>> other = design(20, topologies=["ring"], random_state=0).alternatives[-1]
    >>> other.bias, other.certified, round(other.mean_bias, 2)
    ('drawn', True, 0.05)
    """

    topology: str
    spectral_radius: float
    bias: str
    reservoir: Reservoir
    certificate: Certificate
    memory: float | None
    parameters: dict[str, Any]

    @property
    def certified(self) -> bool:
        """Whether the certificate holds."""
        return self.certificate.holds

    @property
    def mean_bias(self) -> float:
        """Mean absolute value of the bias."""
        return float(np.mean(np.abs(self.reservoir.bias)))

    def __repr__(self) -> str:
        return _table([self])


@dataclass(frozen=True, eq=False, repr=False)
class Design:
    """The certified reservoir with the longest memory, and the alternatives it was compared with.

    Attributes
    ----------
    reservoir : Reservoir
        The chosen reservoir.
    certificate : Certificate
        The reservoir's certificate, which holds for the range of the inputs.
    memory : float or None
        Approximate number of past inputs that a linear readout can recover from the states.
    alternatives : tuple of Alternative
        All reservoirs that were tried: the certified ones first, by decreasing memory. The first
        is the chosen one.

    Examples
    --------
    >>> from reservoir import ESNRegressor
    >>> from reservoir.datasets import narma
    >>> from reservoir.stability import design
    >>> X, y = narma(500, random_state=0)
    >>> found = design(50, X, topologies=["orthogonal"], input_scaling=0.5, random_state=0)
    >>> esn = ESNRegressor(**found.parameters).fit(X, y)
    >>> bool((esn.reservoir_.W == found.reservoir.W).all())
    True
    """

    reservoir: Reservoir
    certificate: Certificate
    memory: float | None
    alternatives: tuple[Alternative, ...]

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters that reproduce the reservoir: ``ESNRegressor(**design.parameters)``.

        A drawn bias, or a bias of zeros, is given as ``bias="stable"``: `fit` then certifies it for
        the range of the X it receives and sets ``certificate_``. A searched bias is given as an
        array.
        """
        return dict(self.alternatives[0].parameters)

    def __repr__(self) -> str:
        return _table(self.alternatives)


def design(
    n_units: int,
    inputs: Any = (-1.0, 1.0),
    *,
    n_features: int | None = None,
    topologies: Sequence[str] | None = None,
    spectral_radius: float | None = None,
    bias_scaling: float | Sequence[float] = (0.0, 0.1),
    input_scaling: float | ArrayLike = 1.0,
    leak_rate: float | ArrayLike = 1.0,
    activation: str | Activation = "tanh",
    in_degree: float = 10,
    weights: Any = "normal",
    input_weights: Any = "uniform",
    dtype: Any = "float64",
    random_state: RandomState = None,
) -> Design:
    """Find the certified reservoir with the longest memory, among those that mix their inputs.

    A delay line remembers longer, but it mixes nothing: it is only tried if `topologies` names it.
    Suitable weights or a suitable bias make a proof possible. An orthogonal W, or a ring, with a
    radius just below 1 is certified for every input without a bias, and has a longer memory than a
    random W; a bias that saturates units shortens the memory. This function tries and compares
    both.

    Parameters
    ----------
    n_units : int
        Number of units.
    inputs : (low, high) or array of shape (n_samples, n_features), default=(-1.0, 1.0)
        A tuple is the range of the inputs: numbers or arrays of shape (n_features,). An array, or
        a list of arrays, is the series X: the range is then the range of X, widened on both sides
        by a tenth of its width, as for ``bias="stable"``.
    n_features : int, default=None
        Number of inputs; None infers it from the other arguments.
    topologies : sequence of str, default=None
        Names in `reservoir.topologies.TOPOLOGIES`. None tries "ring" and "cycle_with_jumps",
        "orthogonal" up to 2000 units and "random_sparse" up to 500 units. "delay_line" is built
        with one line per input, ``input_weights="heads"`` and the radius as its weight.
    spectral_radius : float, default=None
        Radius that is tried first; smaller ones are tried if it is not certified. None is 0.99
        over the largest slope of the activation: .99 for tanh, 3.96 for "logistic".
    bias_scaling : float or sequence of float, default=(0.0, 0.1)
        Scalings of a uniform bias that are tried. Memory is longest without a bias, but a tanh
        reservoir then computes only odd functions of its input: use 0.1 if products of inputs
        matter, or in case of doubt.
    input_scaling, leak_rate, activation, in_degree, weights, input_weights, dtype, random_state
        As in `build_reservoir`. If `random_state` is not an integer, an integer seed is drawn from
        it.

    Returns
    -------
    Design

    Raises
    ------
    UnboundedActivationError
        If the activation has no enclosure; a subclass of ValueError.
    TypeError, ValueError
        If an argument is out of range, a topology requires more units, or no reservoir is
        certified.

    Notes
    -----
    Each topology is tried at the requested radius, with each scaling of the bias. If none is
    certified, `stable_bias` finds another bias (not for "relu" and other unbounded activations),
    and the radius is lowered in steps of 3 % until the drawn bias is certified. All certificates
    are by ``method="auto"``.

    ``memory`` is an estimate of the linear memory capacity [1]_: the sum, over lags and inputs, of
    the squared correlation of a past input with its best linear estimate from the states. Lags
    extend to 100, or to twice the number of units up to 500, and further with a leak. Inputs are
    drawn independently: uniformly from the range, or from the rows of X. For one input without a
    leak the estimate agrees with `metrics.memory_capacity` to a few percent. A task may need more
    than memory: a larger input scaling shortens the memory but makes the states more nonlinear.

    References
    ----------
    .. [1] Jaeger (2001), "Short term memory in echo state networks", GMD Report 152.

    Examples
    --------
    >>> from reservoir.stability import design
    >>> design(100, (-1, 1), topologies=["orthogonal", "ring"], input_scaling=0.2, random_state=0)
    topology    radius  bias   mean |b|  certified  rate    memory
    orthogonal  0.99    none   0.00      yes        0.9900  60...
    ring        0.99    none   0.00      yes        0.9900  55...
    orthogonal  0.99    drawn  0.05      yes        0.9900  53...
    ring        0.99    drawn  0.05      yes        0.9900  40...
    """
    n_units = check_count("n_units", n_units)
    lipschitz = get_activation(activation).lipschitz
    bounded = enclosure_of(activation, unbounded=True).bounded
    if spectral_radius is None:
        spectral_radius = RADIUS / lipschitz
    radius = check_number("spectral_radius", spectral_radius, low=0.0, low_open=True)
    n_features = _number_of_features(inputs, input_scaling, n_features)
    box, draw = _inputs(inputs, n_features)
    if not isinstance(random_state, Integral):
        random_state = int(as_generator(random_state).integers(2**31))
    drawing = Drawing(
        topology=None,
        in_degree=in_degree,
        weights=weights,
        input_weights=input_weights,
        spectral_radius=radius,
        leak_rate=leak_rate,
        activation=activation,
        input_scaling=input_scaling,
        bias="uniform",
        bias_scaling=0.0,
        feedback_scaling=1.0,
        dtype=dtype,
    )
    trials = _Trials(drawing, n_units, box, draw, random_state, _scalings(bias_scaling), bounded)
    names = _names(topologies, n_units)
    if "delay_line" in names:
        _check_line(drawing, n_units, n_features)
    found = [one for name in names for one in trials.of_topology(name)]
    found.sort(key=lambda one: (not one.certified, -1.0 if one.memory is None else -one.memory))
    if not found or not found[0].certified:
        raise ValueError(
            f"No reservoir is certified for topologies={topologies!r} with activation="
            f'{activation!r}. Give "orthogonal" or "ring", or omit the argument.'
        )
    best = found[0]
    _warn_of_no_memory(best)
    return Design(best.reservoir, best.certificate, best.memory, tuple(found))


def _warn_of_no_memory(best: Alternative) -> None:
    """Warn if even the best reservoir stores almost nothing of its inputs."""
    if best.memory is not None and best.memory < 0.5:
        warnings.warn(
            f"The reservoir with the longest memory stores only {best.memory:.1f} past inputs: the "
            "inputs saturate the units, or are constant. Scale the inputs (StandardScaler), or "
            "lower input_scaling.",
            UserWarning,
            stacklevel=caller_level(),
        )


def _number_of_features(inputs: Any, input_scaling: Any, n_features: int | None) -> int:
    """Return the number of inputs: `n_features`, or from the shapes of the other arguments."""
    if isinstance(inputs, tuple):
        shapes = [np.shape(end) for end in inputs]
        shapes.append(check_numbers("input_scaling", input_scaling).shape)
    else:
        shapes = [_series(inputs)[0].shape[1:]]
    known = [shape[0] for shape in shapes if len(shape) == 1]
    if n_features is None:
        return known[0] if known else 1
    n_features = check_count("n_features", n_features)
    if known and known[0] != n_features:
        raise ValueError(
            f"n_features={n_features}, but the other arguments have {known[0]} inputs. Omit "
            "n_features."
        )
    return n_features


def _inputs(inputs: Any, n_features: int) -> tuple[Array, Callable[[int], Array]]:
    """Return the range of the inputs, of shape (2, n_features), and a function that draws rows."""
    if isinstance(inputs, tuple):
        low, high = as_pair("inputs", inputs)
        box = np.array(read_ends("inputs[0]", "inputs[1]", n_features, low, high))
        return box, lambda n: np.random.default_rng(0).uniform(box[0], box[1], (n, n_features))
    arrays = _series(inputs)
    rows = np.concatenate(arrays)
    return widened_range(arrays), lambda n: np.random.default_rng(0).choice(rows, n)


def _series(inputs: Any) -> list[Array]:
    """Return one series or several as a list of arrays."""
    return read_arrays("inputs", inputs, np.float64, remedy="Fill such values, or drop their rows.")


def _scalings(bias_scaling: Any) -> tuple[float, ...]:
    """Return the scalings of the bias, checked."""
    given = check_numbers("bias_scaling", bias_scaling).ravel()
    if not len(given):
        raise ValueError("bias_scaling is empty; give a number, or several.")
    return tuple(check_number("bias_scaling", float(value), low=0.0) for value in given)


def _check_line(drawing: Drawing, n_units: int, n_features: int) -> None:
    """Raise if the other arguments do not allow delay lines."""
    if np.any(check_numbers("leak_rate", drawing.leak_rate) != 1.0):
        raise ValueError(
            f'leak_rate={drawing.leak_rate!r}, but topologies has "delay_line", whose units hold '
            "one input each only with leak_rate=1.0. Use that, or other topologies."
        )
    law = drawing.input_weights
    if not isinstance(law, str) or law not in ("uniform", "heads"):
        raise ValueError(
            f'input_weights={law!r}, but topologies has "delay_line", which takes '
            'input_weights="heads". Omit input_weights, or use other topologies.'
        )
    if n_features > n_units:
        raise ValueError(
            f'topologies has "delay_line", which needs a unit per input, but n_features='
            f"{n_features} exceeds n_units={n_units}. Use more units, or other topologies."
        )


def _names(topologies: Sequence[str] | None, n_units: int) -> list[str]:
    """Return the topologies to try, checked."""
    if topologies is None:
        return [name for name, most in _TRIED.items() if n_units <= most]
    names = [topologies] if isinstance(topologies, str) else list(topologies)
    if not names:
        raise ValueError("topologies is empty; give names, or None.")
    for name in names:
        check_choice("topologies", name, TOPOLOGIES)
    return names


@dataclass(frozen=True, eq=False)
class _Trials:
    """Settings shared by all reservoirs that one design compares."""

    drawing: Drawing
    n_units: int
    box: Array
    draw: Callable[[int], Array]
    seed: int
    scalings: tuple[float, ...]
    bounded: bool

    def of_topology(self, name: str) -> Iterator[Alternative]:
        """Yield a topology's certified reservoirs, and uncertified ones of the requested radius."""
        wanted = self.drawing.spectral_radius
        found = [self._drawn(name, wanted, scaling) for scaling in self.scalings]
        # Uncertified reservoirs are listed for comparison, but not those with an unbounded
        # activation: their states may diverge, and without a box no bias makes a proof possible.
        yield from (self._measured(one) for one in found if one.certified or self.bounded)
        if any(one.certified for one in found):
            return
        if self.bounded:
            yield self._measured(self._searched(found[-1]))
        for radius in smaller_radii(wanted, get_activation(self.drawing.activation).lipschitz):
            if self._drawn(name, radius, self.scalings[0]).certified:
                found = [self._drawn(name, radius, scaling) for scaling in self.scalings]
                yield from (self._measured(one) for one in found if one.certified)
                return

    def _drawn(self, name: str, radius: float, scaling: float) -> Alternative:
        """Return a reservoir with a uniform or zero bias; its memory is not yet estimated."""
        drawing = replace(self.drawing, topology=name, spectral_radius=radius, bias_scaling=scaling)
        n_features = self.box.shape[1]
        if name == "delay_line":  # its radius is 0 and cannot be scaled
            lines = delay_line(self.n_units, weight=radius, n_lines=n_features)
            drawing = replace(
                drawing, topology=lines, spectral_radius=None, input_weights="heads", leak_rate=1.0
            )
            radius = 0.0
        generator = np.random.default_rng(self.seed)
        made, _ = drawing.draw(self.n_units, n_features, 0, generator, repeatable=True)
        certificate = self._certificate(made)
        parameters: dict[str, Any] = {"n_units": self.n_units, "random_state": self.seed}
        parameters |= {one.name: getattr(drawing, one.name) for one in fields(drawing)}
        del parameters["feedback_scaling"]
        parameters["bias"] = "stable" if certificate.holds else "uniform"
        bias = "drawn" if scaling else "none"
        return Alternative(name, radius, bias, made, certificate, None, parameters)

    def _searched(self, drawn: Alternative) -> Alternative:
        """Return a drawn reservoir with its bias replaced by the one that `stable_bias` finds."""
        made = drawn.reservoir
        bias = stable_bias(
            made.W,
            *drive_range(made, *self.box),
            leak_rate=made.leak_rate,
            activation=made.activation,
            random_state=self.seed,
        )
        made = replace(made, bias=bias)
        return replace(
            drawn,
            bias="searched",
            reservoir=made,
            certificate=self._certificate(made),
            parameters=drawn.parameters | {"bias": bias},
        )

    def _certificate(self, reservoir: Reservoir) -> Certificate:
        low, high = self.box
        return certify(reservoir, *drive_range(reservoir, low, high), input_range=(low, high))

    def _measured(self, one: Alternative) -> Alternative:
        return replace(one, memory=estimated_memory(one.reservoir, self.draw))


def _table(rows: Sequence[Alternative]) -> str:
    """Return a table of reservoirs, one in each line."""
    lines = [_HEAD]
    for one in rows:
        memory = "-" if one.memory is None else f"{one.memory:.1f}"
        rate = f"{one.certificate.rate:.4f}" if one.certified else "-"
        certified = "yes" if one.certified else "no"
        numbers = (
            f"{one.spectral_radius:g}",
            one.bias,
            f"{one.mean_bias:.2f}",
            certified,
            rate,
            memory,
        )
        lines.append((one.topology, *numbers))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )

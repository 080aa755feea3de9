"""Build an immutable `Reservoir` from topology, scaling, input weights, bias and feedback."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields, replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array, ArrayLike, RandomState
from reservoir._validation import as_generator, check_choice, check_count, check_numbers, dense
from reservoir.drawing import Drawing, clear_cache
from reservoir.dynamics import Reservoir, join_reservoirs
from reservoir.stability.certified_bias import certified_reservoir

__all__ = ["build_reservoir", "clear_cache"]


def build_reservoir(
    n_units: int,
    n_features: int,
    *,
    topology: Any = "random_sparse",
    in_degree: float = 10,
    weights: Any = "normal",
    input_weights: Any = "uniform",
    spectral_radius: float | None = 0.9,
    leak_rate: float | ArrayLike = 1.0,
    activation: Any = "tanh",
    input_scaling: float | ArrayLike = 1.0,
    bias: Any = "uniform",
    bias_scaling: float = 0.1,
    drive_bounds: Any = None,
    step_range: tuple[float, float] | None = None,
    n_outputs: int = 0,
    feedback_scaling: float | ArrayLike = 1.0,
    dtype: Any = "float64",
    random_state: RandomState = None,
) -> Reservoir:
    """Build a reservoir with random weights.

    If the topology is a name and the seed is an integer, W is cached at spectral radius 1, so that
    another reservoir that differs only in radius, scaling or leak rate costs almost nothing
    (`clear_cache` empties the cache).

    A separate generator is spawned from `random_state` for each matrix, so that a change of
    `input_scaling`, for instance, does not change W.

    Parameters
    ----------
    n_units : int
        Number of units N.
    n_features : int
        Number of inputs.
    topology : str, callable or array, default="random_sparse"
        A name in `reservoir.topologies.TOPOLOGIES`; a function ``f(n_units, random_state=...)``
        that returns W; or W itself, dense or sparse, of shape (n_units, n_units).
    in_degree : int or float in (0, 1], default=10
        Number of connections per row (int), or their density (float). A constant number keeps the
        cost of a step linear in N. With ``topology="diagonals"`` it is the number of diagonals, an
        integer. Ignored by topologies that have no such parameter.
    weights : str or frozen scipy.stats distribution, default="normal"
        Distribution of the recurrent weights; ignored by topologies that have no such parameter.
    input_weights : str, frozen scipy.stats distribution, callable or array, default="uniform"
        Distribution of W_in; a function ``f(n_units, n_features, random_state=...)`` that returns
        W_in before scaling; or W_in itself, which is used unchanged. "heads" lets each input enter
        one unit alone, as delay lines need it.
    spectral_radius : float or None, default=0.9
        The spectral radius to which W is scaled, even if W is given as an array; if None, W is not
        scaled. It is the radius of W itself, not of the matrix with leak.
    leak_rate : float in (0, 1], tuple of a few, or array of shape (n_units,), per step, default=1.0
        A tuple of more than one and fewer than n_units rates contains one rate for each group of
        neighbouring units. The sizes of groups differ by at most one, and units of different groups
        may be connected.
    activation : str or Activation, default="tanh"
        Activation function of the units.
    input_scaling : float or array of shape (n_features,), default=1.0
        Factor by which each column of W_in is multiplied.
    bias : str, frozen scipy.stats distribution or array of shape (n_units,), default="uniform"
        Distribution of the bias, or the bias itself, which is used unchanged. With "stable" the
        reservoir is certified to have the echo state property for every drive within
        `drive_bounds`: the bias is uniform if that can be certified, else the result of
        `reservoir.stability.stable_bias`. If the latter reduces the memory of the reservoir, a
        warning suggests weights that need no such bias, such as ``topology="orthogonal"`` with
        ``spectral_radius=0.99``.
    bias_scaling : float, default=0.1
        Factor by which a random bias is multiplied.
    drive_bounds : (drive_min, drive_max) or callable, optional
        Bounds on the drive p = W_in u [+ W_fb y], for ``bias="stable"``: two numbers or arrays of
        shape (n_units,), or a function of the reservoir that returns them, such as
        ``lambda res: drive_range(res, -1, 1)`` for inputs in [-1, 1].
    step_range : (shortest, longest), optional
        Range of step lengths, for ``bias="stable"``: the certificate is valid for steps of any
        length in this range, as in ``dynamics.run(..., dt=)``; see `reservoir.stability.certify`.
        By default it is valid for steps of length 1.
    n_outputs : int, default=0
        Number of outputs that are fed back; with 0 there are no feedback weights.
    feedback_scaling : float or array of shape (n_outputs,), default=1.0
        Factor by which each column of the feedback weights is multiplied.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the weights and states.
    random_state : int, Generator, RandomState or None, default=None
        Seed.

    Returns
    -------
    Reservoir
        The reservoir, which is immutable.

    Raises
    ------
    ValueError
        If a name is not known (the message lists close matches), a value is out of range, or a
        shape does not match; if W has spectral radius 0 and a positive radius is requested; if
        ``bias="stable"`` is set without `drive_bounds` or with an unbounded activation; or if
        `drive_bounds` or `step_range` is set with another bias.

    Examples
    --------
    >>> from reservoir.building import build_reservoir
    >>> from reservoir.scaling import spectral_radius
    >>> res = build_reservoir(100, 2, spectral_radius=0.8, random_state=0)
    >>> res
    Reservoir(n_units=100, n_features=2, n_outputs=0, connections=1000, activation='tanh',
              dtype=float64)
    >>> round(spectral_radius(res.W), 6)
    0.8
    """
    recipe = Recipe(
        topology=topology,
        in_degree=in_degree,
        weights=weights,
        input_weights=input_weights,
        spectral_radius=spectral_radius,
        leak_rate=leak_rate,
        activation=activation,
        input_scaling=input_scaling,
        bias=bias,
        bias_scaling=bias_scaling,
        drive_bounds=drive_bounds,
        step_range=step_range,
        feedback_scaling=feedback_scaling,
        dtype=dtype,
    )
    generator, repeatable = as_generator(random_state), isinstance(random_state, Integral)
    check_count("n_features", n_features, size=1)
    return recipe.build(n_units, n_features, n_outputs, generator, repeatable=repeatable)


@dataclass(frozen=True, kw_only=True, eq=False)
class Recipe(Drawing):
    """Parameters of a reservoir other than its sizes and its seed.

    The fields are the parameters of `build_reservoir` of the same names; `build` checks them.
    """

    drive_bounds: Any
    step_range: Any = None

    @classmethod
    def from_attributes(cls, owner: Any, **others: Any) -> Recipe:
        """Return a recipe whose fields are from `others`, or else from the attributes of `owner`.

        Fields that have a default value are not read from `owner`.
        """
        required = [field.name for field in fields(cls) if field.default is MISSING]
        names = [name for name in required if name not in others]
        return cls(**{name: getattr(owner, name) for name in names}, **others)

    def build(
        self,
        n_units: int,
        n_features: int,
        n_outputs: int,
        generator: np.random.Generator,
        *,
        repeatable: bool,
    ) -> Reservoir:
        """Return a reservoir of the given sizes, certified if its bias is "stable".

        Parameters as in `draw`.
        """
        law, stable = _bias_law(self)
        drawn, of_bias = replace(self, bias=law).draw(
            n_units, n_features, n_outputs, generator, repeatable=repeatable
        )
        # certified after the conversion to `dtype`, so that the proof holds for rounded weights
        return _stabilised(drawn, self, of_bias) if stable else drawn

    def build_groups(
        self,
        n_units: int,
        n_features: int,
        generator: np.random.Generator,
        *,
        repeatable: bool,
        kinds: Sequence[Array] | None = None,
    ) -> Reservoir:
        """Return a reservoir with groups of units that differ in leak rate and in their inputs.

        Each item of `kinds` is an array with the columns of the inputs that a group receives. There
        is a group for each pair of such an item and a leak rate, ordered by item. (If there is one
        leak rate per unit, groups differ only in their inputs.) The sizes of groups differ by at
        most one. Groups are not connected: W is block-diagonal, and each block is scaled to the
        spectral radius separately. If W or the input weights are given as arrays, they are not
        split into groups.
        """
        n_units = check_count("n_units", n_units, size=1.5)
        rates = np.atleast_1d(check_numbers("leak_rate", self.leak_rate))
        if rates.ndim != 1 or not 1 <= len(rates) <= n_units:
            raise ValueError(
                f"leak_rate has shape {rates.shape}, but n_units={n_units}. Use a single number, "
                "one number per unit, or a few numbers, one for each group of units."
            )
        kinds = [np.arange(n_features)] if kinds is None else list(kinds)
        n_rates = len(rates) if len(rates) < n_units else 1
        n_groups = n_rates * len(kinds)
        if n_groups > n_units:
            raise ValueError(
                f"n_units={n_units} is too few for {n_groups} groups: {n_rates} leak rates times "
                f"{len(kinds)} kinds of inputs. Use more units, or fewer groups."
            )
        sizes = [len(part) for part in np.array_split(np.arange(n_units), n_groups)]
        if len(rates) < n_units:
            rates = np.repeat(np.tile(rates, len(kinds)), sizes)
        groups = [
            Group(end - size, end, kinds[k // n_rates], rates[end - size : end])
            for k, (size, end) in enumerate(zip(sizes, np.cumsum(sizes).tolist(), strict=True))
        ]
        law = self.input_weights
        own = any(len(group.columns) < n_features for group in groups)
        if own and isinstance(law, str) and law == "heads":
            raise ValueError(
                'input_weights="heads" gives every input a unit in each group, but groups that '
                "receive differences have inputs of their own. Set differences=False, or use other "
                "input weights."
            )
        if len(groups) > 1 and (isinstance(self.topology, str) or callable(self.topology)):
            return self._build_blocks(groups, n_features, generator, repeatable)
        whole = replace(self, leak_rate=rates if len(np.unique(rates)) > 1 else rates[0])
        built = whole.build(n_units, n_features, 0, generator, repeatable=repeatable)
        return built if len(_rows_of(self.input_weights)) else _with_own_inputs(built, groups)

    def _build_blocks(
        self,
        groups: Sequence[Group],
        n_features: int,
        generator: np.random.Generator,
        repeatable: bool,
    ) -> Reservoir:
        """Build one reservoir per group and join them; arrays are split between the groups."""
        n_units = groups[-1].end
        for name in ("input_weights", "bias"):
            rows = len(_rows_of(getattr(self, name)))
            if rows not in (0, n_units):
                raise ValueError(
                    f"{name} has {rows} rows, but needs one per unit: n_units={n_units}."
                )
        blocks = []
        for group, child in zip(groups, generator.spawn(len(groups)), strict=True):
            changed = {
                name: given[group.begin : group.end]
                for name in ("input_weights", "bias")
                if len(given := _rows_of(getattr(self, name))) == n_units
            }
            rates = group.leak_rates
            changed["leak_rate"] = rates if len(np.unique(rates)) > 1 else float(rates[0])
            size = group.end - group.begin
            block = replace(self, **changed)
            blocks.append(block.build(size, n_features, 0, child, repeatable=repeatable))
        joined = join_reservoirs(blocks)
        return joined if len(_rows_of(self.input_weights)) else _with_own_inputs(joined, groups)


class Group(NamedTuple):
    """Units `begin` to `end` - 1 of a reservoir, the columns of their inputs, their leak rates."""

    begin: int
    end: int
    columns: Array
    leak_rates: Array


def _with_own_inputs(reservoir: Reservoir, groups: Sequence[Group]) -> Reservoir:
    """Return a reservoir in which each group receives only its own inputs."""
    if all(len(group.columns) == reservoir.n_features for group in groups):
        return reservoir
    received = np.zeros((reservoir.n_units, reservoir.n_features), bool)
    for group in groups:
        received[group.begin : group.end, group.columns] = True
    W_in = dense(reservoir.W_in, "W_in")
    return replace(reservoir, W_in=np.where(received, W_in, W_in.dtype.type(0)))


def _rows_of(given: Any) -> Any:
    """Return weights that are given as an array or as rows; an empty array for other weights."""
    known = sp.issparse(given) or isinstance(given, (np.ndarray, list, tuple))
    return (given if sp.issparse(given) else np.asarray(given)) if known else np.empty(0)


def _bias_law(recipe: Recipe) -> tuple[Any, bool]:
    """Return the distribution of the bias, and whether the reservoir must be certified."""
    law = recipe.bias
    if isinstance(law, str) and law == "stable":
        return "uniform", True
    for name in ("drive_bounds", "step_range"):
        if getattr(recipe, name) is not None:
            raise ValueError(f'{name} is only used with bias="stable". Omit it, or set this bias.')
    if isinstance(law, str):
        check_choice("bias", law, ("uniform", "normal", "bernoulli", "stable"))
    return law, False


def _stabilised(reservoir: Reservoir, recipe: Recipe, generator: np.random.Generator) -> Reservoir:
    """Return a certified reservoir, whose bias is replaced if that is necessary."""
    bounds = recipe.drive_bounds
    if bounds is None:
        raise ValueError(
            'bias="stable" needs drive_bounds, the range of the drive p = W_in u for which it '
            "is certified: a pair (drive_min, drive_max), or a function of the reservoir."
        )
    low, high = bounds(reservoir) if callable(bounds) else bounds
    return certified_reservoir(reservoir, low, high, generator, recipe.step_range)

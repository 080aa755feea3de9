"""A source of features without units: polynomials of the present input and of previous inputs."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.dynamics.closed_loop import LoopRun, loop_limit
from reservoir.dynamics.feature_source import PLAIN_RUN, Block, FeatureSource, Run
from reservoir.dynamics.fed_back import as_hold
from reservoir.dynamics.open_loop import block_rows

BASES = ("monomial", "chebyshev")
_MOST_TERMS = 20_000  # solving a readout with more terms takes 3 GB and more
_CONSTANT = 8.0  # an input is constant if its range is below this multiple of its rounding error
_PLANS = 32  # number of plans that are cached


Factors = tuple[tuple[int, int], ...]


class Plan(NamedTuple):
    """A plan for computing products of powers, each by multiplying two terms computed earlier.

    Terms are computed in order: first the powers of each variable, then products of powers of two
    variables, of three, and so on. A level is (start, stop, left, right): terms ``start:stop`` are
    products of the terms with indices `left` and `right`. `order` is the term in each column of the
    features, by total degree and then as in scikit-learn's PolynomialFeatures.
    """

    levels: tuple[tuple[int, int, Array, Array], ...]
    order: Array
    factors: tuple[Factors, ...]  # the pairs (variable, power) of each column


@functools.lru_cache(maxsize=_PLANS)
def plan_of(n_variables: int, degree: int) -> Plan:
    """Return the plan for all products of powers of total degree 1 to `degree`."""
    terms: list[Factors] = [((j, k),) for k in range(1, degree + 1) for j in range(n_variables)]
    number = {term: i for i, term in enumerate(terms)}
    levels, begin = [], 0
    # a term of the next level is a term of the previous level times a power of a later variable,
    # so that each term is computed once
    while begin < len(terms):
        start, left, right = len(terms), [], []
        for i in range(begin, start):
            rest = degree - sum(power for _, power in terms[i])
            for j in range(terms[i][-1][0] + 1, n_variables):
                for k in range(1, rest + 1):
                    left.append(i)
                    right.append(number[((j, k),)])
                    terms.append((*terms[i], (j, k)))
        if left:
            levels.append((start, len(terms), np.array(left), np.array(right)))
        begin = start
    order = sorted(range(len(terms)), key=lambda i: _column_key(terms[i]))
    return Plan(tuple(levels), np.array(order), tuple(terms[i] for i in order))


def _column_key(term: Factors) -> tuple[int, Factors]:
    """Return the sort key of columns: the degree, then high powers of early variables first."""
    return sum(power for _, power in term), tuple((j, -power) for j, power in term)


def count_terms(n_variables: int, degree: int) -> int:
    """Return the number of products of powers of total degree 1 to `degree`."""
    return math.comb(n_variables + degree, degree) - 1


@saved
@dataclass(frozen=True, eq=False)
class LaggedPolynomials(FeatureSource):
    """A source whose features are all products of powers of the last inputs, up to total `degree`.

    The `n_lags` rows in use, the present one included, are `skip` steps apart; a state contains
    those before the present one, oldest first. By `basis`, factors are powers or Chebyshev
    polynomials of ``(u - centre) / width_of_input``, whose dtype is also that of the features.
    """

    n_features: int
    n_lags: int
    skip: int
    degree: int
    basis: str
    centre: Array
    width_of_input: Array

    @classmethod
    def for_inputs(
        cls, rows: Sequence[Array], *, n_lags: int, skip: int, degree: int, basis: str
    ) -> LaggedPolynomials:
        """Return a source for sequences, whose range sets the scale of Chebyshev polynomials.

        Constant inputs are centred but not rescaled. Raise ValueError if there are more terms than
        a readout can be solved for.
        """
        n_features, dtype = rows[0].shape[1], rows[0].dtype
        n_terms = count_terms(n_lags * n_features, degree)
        if n_terms > _MOST_TERMS:
            raise ValueError(
                f"n_lags={n_lags} and degree={degree} give {n_terms} terms for {n_features} "
                f"inputs; a readout is solved for at most {_MOST_TERMS} terms. Lower "
                "degree or n_lags, or use ESNRegressor, whose n_units does not grow with them."
            )
        centre, width = np.zeros(n_features), np.ones(n_features)
        if basis == "chebyshev":
            low = np.min([part.min(axis=0) for part in rows], axis=0).astype(np.float64)
            high = np.max([part.max(axis=0) for part in rows], axis=0).astype(np.float64)
            rounding = _CONSTANT * np.finfo(dtype).eps * np.maximum(np.abs(low), np.abs(high))
            centre, half = low / 2 + high / 2, high / 2 - low / 2
            width = np.where(half > rounding, half, 1.0)
        scaling = centre.astype(dtype), width.astype(dtype)
        return cls(n_features, n_lags, skip, degree, basis, *scaling)

    @property
    def dtype(self) -> Any:
        """Data type of the features and of the states."""
        return self.centre.dtype

    @property
    def n_past(self) -> int:
        """Number of rows before the present one that a state contains."""
        return (self.n_lags - 1) * self.skip

    @property
    def past_in_words(self) -> str:
        """Text for messages: the number of past rows in use and the parameters that set it."""
        return f"n_lags={self.n_lags} and skip={self.skip} use {self.n_past} rows"

    @property
    def memory(self) -> int:
        """Number of rows after which an earlier state has no influence; equal to `n_past`."""
        return self.n_past

    @property
    def fitted(self) -> dict[str, Any]:
        """The input range that scales Chebyshev polynomials, as the attribute `input_range_`."""
        if self.basis != "chebyshev":
            return {}
        return {"input_range_": self.centre + np.array([[-1], [1]]) * self.width_of_input}

    @property
    def description(self) -> dict[str, str]:
        """Description of the terms for notebooks."""
        terms = f"{self.width} terms: products of up to {self.degree} of "
        return {"Features": f"{terms}{self.n_lags} lagged rows, {self.skip} rows apart"}

    @property
    def state_size(self) -> int:
        """Number of entries of a state: all entries of the past rows."""
        return self.n_past * self.n_features

    @property
    def width(self) -> int:
        """Number of terms."""
        return count_terms(self.n_lags * self.n_features, self.degree)

    @property
    def _plan(self) -> Plan:
        return plan_of(self.n_lags * self.n_features, self.degree)

    @property
    def _places(self) -> Array:
        """Indices of the rows in use, present row first, within the past and present rows."""
        return self.n_past - self.skip * np.arange(self.n_lags)

    def _terms(
        self, lagged: Array, multiply: Callable[..., Any] = np.multiply, one: Any = 1
    ) -> Array:
        """Return the terms in the order of the plan, of shape (n_terms,) or (n_terms, n_rows).

        `lagged` has shape (n_lags, n_features) or (n_lags, n_features, n_rows), respectively.
        `multiply` and `one` are the product of terms and its neutral element.
        """
        several = lagged.shape[2:]
        column = (-1, *(1 for _ in several))
        scaled = (lagged - self.centre.reshape(column) * one) / self.width_of_input.reshape(column)
        v = scaled.reshape(-1, *several)
        m = len(v)
        terms = np.empty((self.width, *several), self.dtype)
        # powers, or Chebyshev's recurrence T[k] = 2 v T[k-1] - T[k-2]
        terms[:m] = v
        twice = 2 * v if self.basis == "chebyshev" else v
        for k in range(1, self.degree):
            power = terms[k * m : (k + 1) * m]
            multiply(twice, terms[(k - 1) * m : k * m], out=power)
            if self.basis == "chebyshev":
                power -= terms[(k - 2) * m : (k - 1) * m] if k > 1 else one
        for start, stop, left, right in self._plan.levels:
            multiply(terms[left], terms[right], out=terms[start:stop])
        return terms

    def _features(self, lagged: Array, *products: Any) -> Array:
        """Return the terms as rows of features, in the order of the columns."""
        with np.errstate(over="ignore", invalid="ignore"):
            terms = self._terms(lagged, *products)
        return np.ascontiguousarray(terms[self._plan.order].T)

    def iter_features(self, rows: Array, state: Array, run: Run = PLAIN_RUN) -> Iterator[Block]:
        """Run over one sequence, block by block; the engine makes no difference."""
        past = state.reshape(self.n_past, self.n_features)
        n_rows = block_rows(self.width, len(rows))
        for start in range(0, len(rows), n_rows):
            part = rows[start : start + n_rows]
            known = np.concatenate([past, part])
            lagged = np.stack([known[k : k + len(part)].T for k in self._places])
            past = known[len(part) :]
            yield start, self._features(lagged), past.ravel().copy()

    def advance(
        self, states: Array, inputs: Array, teachers: Array | None = None
    ) -> tuple[Array, Array]:
        """Take one step of many runs side by side."""
        return self._stepped(states, inputs)

    def tangent(self, states: Array, inputs: Array) -> tuple[Array, Array]:
        """Take one step with differences: terms are multiplied by the product rule."""
        one = np.zeros(len(states))
        one[0] = 1
        return self._stepped(states, inputs, _product_rule, one)

    def astype(self, dtype: Any) -> LaggedPolynomials:
        """Return the source with features of another dtype."""
        scaling = {name: getattr(self, name).astype(dtype) for name in ("centre", "width_of_input")}
        return replace(self, **scaling)

    def _stepped(self, states: Array, inputs: Array, *products: Any) -> tuple[Array, Array]:
        """Return the features and the states after a step."""
        past = states.reshape(len(states), self.n_past, self.n_features)
        known = np.concatenate([past, np.asarray(inputs, self.dtype)[:, None]], axis=1)
        features = self._features(known[:, self._places].transpose(1, 2, 0), *products)
        return features, known[:, 1:].reshape(len(states), self.state_size)

    def initial_state_of(self, row: Array) -> Array:
        """Return the state in which all past rows equal the first row."""
        return np.tile(np.asarray(row, self.dtype), self.n_past)

    def steady_state(self, row: Array, *, quiet: bool = False) -> Array:
        """Return the fixed point for a constant input."""
        return self.initial_state_of(row)

    def run_loop(self, readout: Any, loop: LoopRun) -> tuple[Array, Array, int]:
        """Run in closed loop: outputs are the first columns of the input, `exog` is the others."""
        n, dtype, places, n_steps = self.n_past, self.dtype, self._places, loop.n_steps
        output = np.array(loop.initial_output, dtype)
        limited, limit = as_hold(loop.clip, output.size, dtype), loop_limit(dtype)
        predict = self._as_function(readout)
        # all rows: the past rows of the state, then the input of each step
        known = np.empty((n + n_steps, self.n_features), dtype)
        known[:n] = np.reshape(loop.initial_state, (n, self.n_features))
        if loop.exog is not None:
            known[n:, output.size :] = loop.exog
        outputs = np.empty((n_steps, output.size), dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            for k in range(n_steps):
                known[n + k, : output.size] = limited(output)
                lagged = known[places + k]
                new = np.asarray(predict(lagged[0], self._terms(lagged)), dtype)
                if new.shape != output.shape:
                    raise ValueError(f"readout must return shape {output.shape}; got {new.shape}.")
                # diverged: repeat the last good output
                if not (np.abs(new) < limit).all():
                    outputs[k:] = output
                    return outputs, known[k : k + n].ravel().copy(), k
                outputs[k] = output = new
        return outputs, known[n_steps : n_steps + n].ravel().copy(), n_steps

    def _as_function(self, readout: Any) -> Callable[[Array, Array], Array]:
        """Return a readout as a function of the present inputs and the terms in the plan's order.

        If a flow is sampled finely, an output is nearly equal to the last input. Integer multiples
        of the inputs are therefore separated from the linear terms and added last, unscaled,
        because scaling and centring would round them several times.
        """
        order = self._plan.order
        if callable(readout):
            return lambda inputs, terms: readout(terms[order])
        coef, intercept = (np.asarray(part, self.dtype) for part in readout)
        turned = np.empty_like(coef)
        turned[:, order] = coef
        q = len(coef)
        width, centre = self.width_of_input[:q], self.centre[:q]
        # the first terms are the present inputs, scaled
        whole = np.rint(turned[:, : len(width)] / width)
        turned[:, : len(width)] -= whole * width
        constant = intercept - whole @ centre
        return lambda inputs, terms: whole @ inputs[: len(width)] + (turned @ terms + constant)

    def repeating(self, n_outputs: int) -> tuple[Array, Array]:
        """Return the coefficients and intercept for which the outputs equal the first inputs."""
        coef = np.zeros((n_outputs, self.width), self.dtype)
        # the first columns are the inputs of the present row
        np.fill_diagonal(coef, self.width_of_input[:n_outputs])
        return coef, self.centre[:n_outputs].copy()

    def names(self, inputs: Sequence[str]) -> list[str]:
        """Return the names of the columns, built from the names of the inputs."""
        lags = ["" if lag == 0 else f"[t-{lag * self.skip}]" for lag in range(self.n_lags)]
        variables = [f"{name}{lag}" for lag in lags for name in inputs]
        if self.basis == "chebyshev":
            return [
                " ".join(f"T{power}({variables[j]})" for j, power in factors)
                for factors in self._plan.factors
            ]
        return [
            " ".join(variables[j] + (f"^{power}" if power > 1 else "") for j, power in factors)
            for factors in self._plan.factors
        ]

    def input_column(self, column: int) -> int | None:
        """Return the input column that a linear term copies, lagged or not; None otherwise."""
        linear = column < self.n_lags * self.n_features
        return column % self.n_features if linear else None

    def overflow_of(self, column: int) -> tuple[str, str]:
        """Return a message and a remedy for a term whose squares overflow."""
        name = self.names([f"x{i}" for i in range(self.n_features)])[column]
        what = f"The squares of the terms overflow, first for {name}"
        return what, "Scale X (StandardScaler), or lower degree."


def _product_rule(a: Array, b: Array, out: Array) -> None:
    """Multiply terms, in the first columns, together with their differences, in the others."""
    np.multiply(a[..., :1], b, out=out)
    out[..., 1:] += a[..., 1:] * b[..., :1]

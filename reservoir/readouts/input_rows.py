"""Rows of the input beside the states: how many the readout receives, and their penalty.

The readout of a network also receives the present row of the input, and rows before it. Sums are
made over all rows that it may receive; `solve_with_inputs` decides how many it does receive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg
from scipy.linalg import blas

from reservoir._saving import saved
from reservoir._typing import Array, ArrayLike
from reservoir.readouts.gram import GramAccumulator, ReducedGram, rounding_of
from reservoir.readouts.selection import SELECTIONS, Penalties, least_score
from reservoir.readouts.sums import RidgeSolution, RowSums, Solved, sums_of

MOST_ROWS = 20  # of the input that the readout receives, the present one included
MOST_COLUMNS = 80  # of these rows together
_ROWS_PER_COLUMN = 10  # learned rows for each column of the input's rows
_LEAST_GAIN = 3e-4  # of the held-out R^2, which older rows or a second penalty must bring
# held-out errors, in variances of y, below which a closed loop keeps to one row and one penalty:
# with the search, and without it
_CLEAN = (3e-3, 0.05)
# factor a step by which the rows of the input alone may multiply outputs far outside the learned
# range, where the states are constant; one row and one penalty remain if they do so less
_MOST_GROWTH = 1.2
_DECADES_BELOW = 4  # of the path of penalties of the states, where the path of the input begins
_AROUND_ONE = 2  # decades about the one penalty, in which both penalties are equal at first
_AROUND = 2  # decades about that penalty, in which every penalty of the states is tried
_COARSE = 6  # every sixth of all penalties of the states is tried beside them
_RATIOS = (1.0, 1e2, 1e4)  # of both penalties, for rules that score one penalty at a time


@saved
@dataclass(frozen=True)
class InputRows:
    """The features that copy rows of the input: from `start` on, `n_columns` for each row.

    There are `n_rows` rows, the present one included; rows before it are the last features. If
    `chosen`, the readout receives only as many of these rows as lower its held-out error.
    """

    start: int
    n_columns: int
    n_rows: int
    chosen: bool

    @property
    def apart(self) -> bool:
        """Whether a Gram matrix keeps the rows before the present one apart."""
        return self.chosen and self.n_rows > 1

    @property
    def least(self) -> int:
        """Number of rows that the readout receives in any case."""
        return 1 if self.chosen else self.n_rows

    def width(self, n_rows: int) -> int:
        """Return the number of features up to a number of rows."""
        return self.start + n_rows * self.n_columns

    def scales(self, width: int, n_rows: int, ratio: float) -> Array | None:
        """Return factors of the features, for a penalty of the input `ratio` times smaller.

        One penalty of the features times these factors is both penalties; coefficients are to be
        multiplied by them, too. The result is None if all factors are 1.
        """
        if ratio == 1:
            return None
        scales = np.ones(width)
        scales[self.start : self.width(n_rows)] = np.sqrt(ratio)
        return scales

    def sums(self, n_outputs: int, forgetting: float) -> GramBesideOlderRows:
        """Return sums over no rows, with the rows before the present one apart."""
        n, n_older = self.width(1), (self.n_rows - 1) * self.n_columns
        return GramBesideOlderRows(n, n_outputs, n_older=n_older, forgetting=forgetting)

    def most(self, n_samples: int) -> int:
        """Return the number of rows to try after learning from `n_samples` rows."""
        return int(np.clip(n_samples // (_ROWS_PER_COLUMN * self.n_columns), 1, self.n_rows))


def ratio_of(alpha: float, input_alpha: float) -> float:
    """Return the ratio of both penalties; 1 if they are equal, also to 0."""
    return 1.0 if alpha == input_alpha else float(alpha / input_alpha)


def most_input_rows(n_columns: int) -> int:
    """Return the number of rows of the input over which sums are made, the present one included."""
    return max(1, min(MOST_ROWS, MOST_COLUMNS // n_columns))


@saved
class GramBesideOlderRows(GramAccumulator):
    """Sums over features and present input, and apart from them sums with older rows of the input.

    The features are those without older rows: all their sums are the same to the bit as without
    older rows, while a product of wider matrices has other rounding errors. `_leading` includes
    older rows. H has `n_older` further columns in `update`. `older` are the sums of these columns,
    whose targets are the targets and the other features; their squares (`sum_y2`) are not added up.
    """

    def __init__(
        self, n_features: int, n_outputs: int, *, n_older: int, forgetting: float = 1.0
    ) -> None:
        self.older = GramAccumulator(n_older, n_outputs + n_features, forgetting=forgetting)
        super().__init__(n_features, n_outputs, forgetting=forgetting)

    @property
    def forgetting(self) -> float:  # type: ignore[override]
        """Factor by which each new row multiplies the weights of all rows before it."""
        return self.older.forgetting

    @forgetting.setter
    def forgetting(self, value: float) -> None:
        self.older.forgetting = value

    @property
    def n_columns(self) -> int:
        """Number of columns of the rows that are added."""
        return self.n_features + self.older.n_features

    def _empty(self, forgetting: float = 1.0) -> GramBesideOlderRows:
        n_older = self.older.n_features
        return type(self)(self.n_features, self.n_outputs, n_older=n_older, forgetting=forgetting)

    def _reset(self) -> None:
        super()._reset()
        self.older._reset()

    def _add_block(
        self, h: Array, y: Array, w: Array | None, sign: int, room: Array
    ) -> tuple[Array, Array]:
        """Add (or subtract) one block, with older rows in the last columns."""
        n, sums = self.n_features, self.older
        room[:] = h[:, :n]
        # `room` then contains the centred features, times the roots of the weights
        means, rests = super()._add_block(room, y, w, sign, room)
        ageing, ages = sums._row_ages(len(h))
        if ages is not None:
            w = ages if w is None else w * ages
        w = np.ones(len(h)) if w is None else w
        weight, root = float(w.sum()), np.sqrt(w)
        mean = (w / weight) @ h[:, n:]
        older = (h[:, n:] - mean) * root[:, None]
        y = (y - means[: self.n_outputs]) * root[:, None]
        rest = root @ older / weight
        sums._age(ageing, sums_of(ages), len(h))
        sums._upper = blas.dsyrk(float(sign), older.T, ageing, sums._upper, overwrite_c=True)
        older *= sign
        sums.cross[:, : self.n_outputs] += older.T @ y
        sums.cross[:, self.n_outputs :] += older.T @ room
        sums._add_outer(-sign * weight, rest, rests)
        sums._shift(mean + rest, means + rests, weight, len(h), sign)
        return means, rests

    def _combine(
        self, other: GramAccumulator, sign: int, *, use_up: bool = False
    ) -> GramAccumulator:
        assert isinstance(other, GramBesideOlderRows)
        self.older._combine(other.older, sign, use_up=use_up)
        return super()._combine(other, sign, use_up=use_up)

    def after(self, earlier: GramAccumulator) -> GramAccumulator:  # type: ignore[override]
        """Return sums over an earlier accumulator's rows, followed by the rows of this one."""
        return RowSums.after(self, earlier)

    def _discount(self, factor: float) -> None:
        self.older._discount(factor)
        super()._discount(factor)

    def _leading(  # type: ignore[override]
        self, n_features: int, scales: Array | None = None
    ) -> GramAccumulator:
        """Return sums over the first features, with older rows if they are among them."""
        n, more = self.n_features, n_features - self.n_features
        if more <= 0:
            return super()._leading(n_features, scales)
        of_older = self.older.cross[:more]
        upper = np.zeros((n + more, n + more), order="F")
        upper[:n, :n], upper[n:, n:] = self._upper, self.older._upper[:more, :more]
        upper[:n, n:] = of_older[:, self.n_outputs :].T
        cross = np.vstack([self.cross, of_older[:, : self.n_outputs]])
        whole = self._over(upper, cross, np.append(self.mean_h, self.older.mean_h[:more]))
        return whole if scales is None else whole._leading(n_features, scales)


class _Choice(NamedTuple):
    """A choice of penalties, and of the number of rows of the input that the readout receives.

    `solve` returns what `RidgeReadout.solve` needs. `input_alpha` is the penalty of the `n_rows`
    rows: a float, or an array of shape (n_outputs,). `chosen` are fitted attributes. `score` is the
    least score, in variances of the targets.
    """

    solve: Callable[[], tuple[RidgeSolution, Solved]]
    n_rows: int
    input_alpha: Any
    chosen: dict[str, Any]
    score: float


def solve_with_inputs(readout: Any, total: RowSums) -> tuple[RidgeSolution, Solved, dict[str, Any]]:
    """Return the solution of a `RidgeReadout` that receives rows of the input, and attributes.

    With ``input_alpha="auto"`` the rows of the input have a penalty of their own, and with
    `InputRows.chosen` older rows are received, only where that raises the R^2 of held-out rows.
    `total` are the sums over all rows.
    """
    n_rows, settings = readout.inputs.least, readout.settings
    given, alpha = settings.input_alpha, settings.alpha
    if readout.rule is None:
        input_alpha = float(given) if isinstance(given, Real) else alpha
        solution, solved = _under_both(readout, total, n_rows, alpha, input_alpha)
        return solution, solved, {"n_lags_": n_rows, "input_alpha_": input_alpha}
    best = _chosen(readout, total, given)
    return *best.solve(), best.chosen | {"n_lags_": best.n_rows, "input_alpha_": best.input_alpha}


def _chosen(readout: Any, total: RowSums, given: Any) -> _Choice:
    """Return the best solution under a rule that chooses the penalty of the states."""
    inputs = readout.inputs
    few = inputs.least
    many = inputs.most(total.n_samples) if inputs.chosen else few
    if isinstance(given, Real):
        fixed = dict.fromkeys([few, many])
        tried: list[Callable[[], _Choice]] = [
            partial(_under_fixed, readout, total, n, float(given)) for n in fixed
        ]
    else:
        tried = [partial(_by_rule, readout, total, few)]
        if given == "auto" or many > few:
            tried = _searches(readout, total, few, many, given) or tried
    best = tried[0]()
    if best.score <= _LEAST_GAIN:  # no search can gain as much
        return best
    least = min((each() for each in tried[1:]), key=lambda choice: choice.score, default=best)
    if not least.score < best.score - _LEAST_GAIN:
        return best
    if inputs.chosen and readout.settings.next_inputs:
        clean = least.score < _CLEAN[0] and best.score < _CLEAN[1]
        before, growth = (_growth(choice, readout, total) for choice in (best, least))
        if clean or growth > max(before, _MOST_GROWTH):
            return best
    return least


def _growth(choice: _Choice, readout: Any, total: RowSums) -> float:
    """Return the factor by which rows of the input alone multiply outputs in a closed loop.

    It is the spectral radius of their coefficients. Outputs far outside the learned range, where
    the states no longer change, diverge if it is above 1. Rows are taken as consecutive; inputs and
    outputs are in units of their deviations, since outputs may be scaled inputs.
    """
    start, d = readout.inputs.start, readout.inputs.n_columns
    received = np.sqrt(total.square_sums()[start : start + d])
    predicted = np.sqrt(readout.units(total) * total.weight)
    coef = choice.solve()[0].coef[:, start:] * np.tile(received, choice.n_rows)
    step = np.eye(coef.shape[1], k=-d)
    step[: len(coef)] = coef / np.where(predicted > 0, predicted, 1.0)[:, None]
    return float(np.abs(linalg.eigvals(step, check_finite=False)).max())


def _searches(
    readout: Any, total: RowSums, few: int, many: int, given: Any
) -> list[Callable[[], _Choice]]:
    """Return searches, first of one penalty over few rows; none without parts to compare."""
    settings, (name, rule) = readout.settings, readout.resolved()
    inputs = readout.inputs
    if rule.in_loops or (settings.selection == "auto" and name != "halves"):
        return []
    if inputs.width(inputs.n_rows) < readout.width:  # states of a run backwards come last
        return []
    narrow, wide = (_penalties(readout, total, n) for n in (few, many))
    if narrow.min() <= 0:
        return []
    two = given == "auto"
    fast = two and name == "halves" and isinstance(total, GramAccumulator)
    if fast and not settings.alpha_per_target:
        assert isinstance(total, GramAccumulator)
        halves = _Halves(readout, total, (few, many), (narrow, wide))
        if min(narrow.min(), wide.min()) > halves.noise:
            return [halves.with_one_penalty, halves.with_two_penalties]
    ratios = _RATIOS if two else (1.0,)
    return [partial(_by_rule, readout, total, few)] + [
        partial(_by_rule, readout, total, many, ratio) for ratio in ratios
    ]


def _penalties(readout: Any, total: RowSums, n_rows: int) -> Array:
    """Return the penalties of the states to choose from."""
    sums = total._leading(readout.width_of(n_rows))
    return np.asarray(readout.penalties(sums), dtype=np.float64)


def _by_rule(readout: Any, total: RowSums, n_rows: int, ratio: float = 1.0) -> _Choice:
    """Return the choice of the readout's rule, with a penalty of the input `ratio` times smaller.

    Both penalties are one penalty of scaled features.
    """
    one = readout.narrowed(n_rows, ratio)
    total = total._leading(one.width, readout.inputs.scales(one.width, n_rows, ratio))
    solution, solved, chosen, _ = one.choose(total)
    score = _least(solution.scores, one.units(total), readout.settings.alpha_per_target)
    input_alpha = solution.alpha if ratio == 1 else solution.alpha / ratio
    solution = _unscaled(readout, solution, n_rows, ratio)
    return _Choice(lambda: (solution, solved), n_rows, input_alpha, chosen, score)


def _unscaled(readout: Any, solution: RidgeSolution, n_rows: int, ratio: float) -> RidgeSolution:
    """Return the solution for the features, given that for the features times their scales."""
    scales = readout.inputs.scales(solution.coef.shape[1], n_rows, ratio)
    return solution if scales is None else solution._replace(coef=solution.coef * scales)


def _least(scores: Array, units: ArrayLike, per_target: bool) -> float:
    """Return the least score, in units of the targets' variances."""
    scores = scores / np.where(np.greater(units, 0), units, 1.0)
    return float(scores.min(axis=0).mean() if per_target else scores.mean(axis=1).min())


def _under_both(
    readout: Any, total: RowSums, n_rows: int, alpha: Any, input_alpha: Any
) -> tuple[RidgeSolution, Solved]:
    """Return the solution under given penalties."""
    ratio = 1.0 if input_alpha is alpha else ratio_of(alpha, input_alpha)
    width, intercept = readout.width_of(n_rows), readout.settings.fit_intercept
    sums = total._leading(width, readout.inputs.scales(width, n_rows, ratio))
    solved = sums._solve(sums._check_alpha(alpha), intercept)
    solution = sums._solution(solved.coef, alpha, intercept)
    return _unscaled(readout, solution, n_rows, ratio), solved


def _under_fixed(readout: Any, total: RowSums, n_rows: int, input_alpha: float) -> _Choice:
    """Return the choice of the readout's rule, with one penalty of the input for all others."""
    settings, alphas = readout.settings, _penalties(readout, total, n_rows)
    each = []
    for alpha in alphas:
        one = readout.narrowed(n_rows, ratio_of(alpha, input_alpha))
        one.settings = replace(one.settings, alpha=np.array([alpha]), alpha_per_target=False)
        each.append(one.choose(one.total()))
    scores = np.concatenate([solution.scores for solution, *_ in each])
    units, per_target = readout.units(total), settings.alpha_per_target
    best = least_score(alphas, scores, per_target, units)

    def solve() -> tuple[RidgeSolution, Solved]:
        found = [
            _under_both(readout, total, n_rows, alpha, input_alpha) for alpha in np.ravel(best)
        ]
        (solution, solved), targets = found[0], range(len(found))
        coef, intercept = solution[:2]
        if len(found) > 1:
            coef = np.stack([found[k][0].coef[k] for k in targets])
            intercept = np.stack([found[k][0].intercept[k] for k in targets])
        return RidgeSolution(coef, intercept, best, scores), solved

    chosen = {"alphas_": alphas, "alpha_scores_": scores}
    chosen["alpha_selection_"] = each[0][2]["alpha_selection_"]
    return _Choice(solve, n_rows, input_alpha, chosen, _least(scores, units, per_target))


class _Halves:
    """Search of two penalties by two halves of the rows, from one reduction of each half.

    `n_rows` are the numbers of rows of the input under one penalty, and under two; `alphas` are the
    penalties of the states to choose from, under one and under two.
    """

    def __init__(
        self,
        readout: Any,
        total: GramAccumulator,
        n_rows: tuple[int, int],
        alphas: tuple[Array, Array],
    ) -> None:
        self.readout, self.total, self.n_rows, self.alphas = readout, total, n_rows, alphas
        self.intercept = readout.settings.fit_intercept
        few, many = (readout.width_of(n) for n in n_rows)
        parts = [sums for _, sums in sorted(readout.parts.items())]
        self.halves = [
            _Half(part._leading(few), part._leading(many), readout.inputs, self.intercept)
            for part in parts
        ]
        self.units = readout.units(total)
        self.noise = max(half.noise for half in self.halves)

    def with_one_penalty(self) -> _Choice:
        """Return the choice of one penalty for the states and few rows."""
        n_rows, alphas = self.n_rows[0], self.alphas[0]
        total = self.total._leading(self.readout.width_of(n_rows))
        first, second = self.halves
        folds: Any = [(second, first.narrow), (first, second.narrow)]
        path: Any = None  # which this rule does not need
        scored = Penalties(alphas, total, path, folds, self.intercept)
        scores = SELECTIONS["halves"].scores(scored)
        self.alpha = self._best(alphas, scores)
        return self._choice(n_rows, (self.alpha, self.alpha), alphas, scores)

    def with_two_penalties(self) -> _Choice:
        """Return the choice of two penalties, by three scans."""
        n_rows, alphas = self.n_rows[1], self.alphas[1]
        least = alphas.min()  # without the rounding errors of powers of ten
        below = [float(f"{least / 10**k:.15g}") for k in range(1, _DECADES_BELOW + 1)]
        every = np.unique(np.append(below, alphas))
        every = every[every > max(half.noise_of_inputs for half in self.halves)]
        around = _near(alphas, self.alpha, _AROUND_ONE)
        alpha = self._best(around, self._scores(around, around))
        input_alpha = self._best(every, self._scores(alpha, every))
        around = np.union1d(_near(alphas, alpha, _AROUND), alphas[::_COARSE])
        scores = self._scores(around, input_alpha)
        best = self._best(around, scores)
        if best not in _near(alphas, alpha, _AROUND - 1):
            around = _near(alphas, best, 1)
            scores = self._scores(around, input_alpha)
            best = self._best(around, scores)
        return self._choice(n_rows, (best, input_alpha), around, scores)

    def _choice(
        self, n_rows: int, penalties: tuple[float, float], alphas: Array, scores: Array
    ) -> _Choice:
        chosen = {"alphas_": alphas, "alpha_selection_": "halves", "alpha_scores_": scores}
        solve = cache(partial(_under_both, self.readout, self.total, n_rows, *penalties))
        return _Choice(solve, n_rows, penalties[1], chosen, _least(scores, self.units, False))

    def _best(self, alphas: Array, scores: Array) -> float:
        return float(least_score(alphas, scores, False, self.units))

    def _scores(self, alphas: ArrayLike, input_alphas: ArrayLike) -> Array:
        """Return the mean squared errors of each half under fits to the other half."""
        first, second = self.halves
        penalties = np.broadcast_arrays(alphas, input_alphas)
        errors = second.errors(*first.fits(*penalties)) + first.errors(*second.fits(*penalties))
        return errors / self.total.weight


class _Half:
    """One half of the rows: the fits to it, and their errors in it.

    `narrow` and `wide` are sums without and with the rows of the input that are searched. Let M be
    the Gram matrix of the states and the present row, plus the penalty `a` of the states. Its
    tridiagonal reduction solves M for any `a`. The coefficients b of the input's rows solve the
    Schur complement of the states, plus the penalty of these rows.
    """

    def __init__(
        self, narrow: GramAccumulator, wide: GramAccumulator, inputs: InputRows, fit_intercept: bool
    ) -> None:
        self.narrow, self.sums, self.fit_intercept = narrow, wide, fit_intercept
        self.gram, self.cross = wide._normal_equations(fit_intercept)
        self.squares_y = wide._squares_y(fit_intercept)
        n, d = inputs.width(1), inputs.n_columns
        self.noise = rounding_of(self.gram)
        self.noise_of_inputs = rounding_of(self.gram[inputs.start :, inputs.start :])
        self.n, self.d, self.start = n, d, inputs.start
        self.reduced = ReducedGram(self.gram[:n, :n].copy(order="F"))
        unit = np.zeros((n, d))
        unit[inputs.start :] = np.eye(d)
        beside = np.hstack([unit, self.gram[:n, n:], self.cross[:n]])
        self.beside = self.reduced.rotated(beside, "T")
        self.known: dict[float, tuple[Array, Array, Array]] = {}

    def along(self, alphas: Array, fit_intercept: bool) -> tuple[Array, Array]:
        """Return `GramAccumulator.along` of the narrow sums, from the reduction if it is theirs."""
        if self.narrow.n_features != self.n:
            return self.narrow.along(alphas, fit_intercept)
        coefs = self.reduced.along(self.cross[: self.n], alphas)
        return coefs, np.array(
            [self.narrow._intercept(coef) * float(fit_intercept) for coef in coefs]
        )

    def fits(self, alphas: Array, input_alphas: Array) -> tuple[Array, Array]:
        """Return coefficients and intercepts under pairs of penalties, of states and of the input.

        The shapes are (n_fits, n_outputs, n_features) and (n_fits, n_outputs).
        """
        states, rows = [], []
        for alpha, input_alpha in zip(alphas.tolist(), input_alphas.tolist(), strict=True):
            solved, complement, cross = self._without_states(alpha)
            found = _ridge(complement, cross, input_alpha)
            rows.append(found.T)
            moved = found.copy()
            moved[: self.d] *= input_alpha - alpha
            states.append(solved[:, len(moved) :] - solved[:, : len(moved)] @ moved)
        of_states = self.reduced.rotated_back(np.stack(states, axis=1))
        coefs = np.concatenate([of_states[:, :, : self.start], np.array(rows)], axis=2)
        intercepts = self.sums.mean_y - coefs @ self.sums.mean_h
        return coefs, intercepts * float(self.fit_intercept)

    def _without_states(self, alpha: float) -> tuple[Array, Array, Array]:
        """Return rotated solutions of the states, and the Schur complement with its targets.

        Several scans try the same penalty of the states: they are kept.
        """
        if alpha not in self.known:
            d, n_inputs = self.d, self.d + len(self.gram) - self.n
            solved, _ = self.reduced.solve(alpha, self.beside)
            inner = self.beside[:, :n_inputs].T @ solved
            present = linalg.inv(inner[:d, :d], check_finite=False)  # the complement, plus alpha
            whole = np.empty((n_inputs, n_inputs + self.cross.shape[1]))
            whole[:d] = present @ inner[:d]
            whole[:d, :d] = present - alpha * np.eye(d)
            across = whole[:d, d:n_inputs]
            whole[d:, :d] = across.T
            whole[d:, d:n_inputs] = self.gram[self.n :, self.n :]
            whole[d:, n_inputs:] = self.cross[self.n :]
            whole[d:, d:] += across.T @ inner[:d, d:] - inner[d:, d:]
            self.known[alpha] = solved, whole[:, :n_inputs], whole[:, n_inputs:]
        return self.known[alpha]

    def errors(self, coefs: Array, intercepts: Array) -> Array:
        """Return `RowSums.squared_errors`, for all candidates in one product."""
        sums, flat = self.sums, coefs.reshape(-1, coefs.shape[2])
        slopes = (flat @ self.gram).reshape(coefs.shape) - 2 * self.cross.T
        errors = np.maximum(self.squares_y + (coefs * slopes).sum(axis=2), 0.0)
        if self.fit_intercept:
            errors += sums.weight * (sums.mean_y - coefs @ sums.mean_h - intercepts) ** 2
        return errors


def _near(alphas: Array, alpha: float, decades: int) -> Array:
    """Return the penalties within so many decades of another one."""
    return alphas[np.abs(np.log10(alphas / alpha)) < decades + 0.5]


def _ridge(gram: Array, cross: Array, alpha: float) -> Array:
    """Return the coefficients under a penalty, (n_columns, n_outputs)."""
    penalised = np.array(gram, order="F")
    penalised[np.diag_indices(len(gram))] += alpha
    _, found, info = linalg.lapack.dposv(penalised, cross, lower=1, overwrite_a=True)
    if info == 0:
        return found
    values, vectors = linalg.eigh(gram, check_finite=False)
    return vectors @ ((vectors.T @ cross) / (np.maximum(values, 0) + alpha)[:, None])

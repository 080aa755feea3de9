"""Selection of a ridge penalty: rules, the rows that they use, and the path that they score.

A rule is an entry of `SELECTIONS`; estimators and `ridge_path` refer to it by that name only.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_choice, check_penalties
from reservoir.readouts.contract import Cuts
from reservoir.readouts.dependent_errors import NeighbourSums
from reservoir.readouts.eigen import PenaltyPath
from reservoir.readouts.sums import RidgeSolution, RowSums, Solved

_N_BLOCKS = 5  # folds of the blocked selection, scikit-learn's default number
_HELD_OUT = 0.2  # fraction of the rows on which the hold-out selection scores fits
_LEAST_FACTOR = 0.01  # of scores of classes, also if they are unrelated to held-out labels
_N_GROUPS = 5  # a fraction 1 / _N_GROUPS of rows or sequences is held out for closed loops

#: Pairs of sums: over the rows of a fit, and over the rows on which it is scored.
Folds = Iterable[tuple[RowSums, RowSums]]


class Penalties(NamedTuple):
    """Penalties, (n_alphas,), and the rows of a fit by which a rule scores them.

    `sums` are over all rows; `path` returns their ridge solutions for any penalty. `folds` are
    pairs of sums for each block: over all other rows, computed when needed, and over the block.
    `neighbours` are sums over the differences of neighbouring rows, for rules that need them.
    """

    alphas: Array
    sums: RowSums
    path: Callable[[], PenaltyPath]
    folds: Folds
    fit_intercept: bool
    neighbours: NeighbourSums | None = None


class SelectionRule(ABC):
    """Rule that chooses the penalty with the lowest score; of equal scores, the largest penalty.

    A rule receives sums over all rows, of either class in `SOLVERS`, and needs at least
    `min_blocks` sums over parts of the rows. Only a rule without blocks, or whose blocks alternate,
    works in partial_fit, which keeps a single sum over all rows: such blocks are two halves, to
    which `Runs` assigns rows in turn. A rule may need sums over differences of `neighbours`, or
    loops that an estimator runs (`in_loops`).
    """

    min_blocks = 0
    alternates = neighbours = in_loops = False

    def cut(self, lengths: Sequence[int], skips: Sequence[int]) -> Cuts:
        """Return the part of the sums that each row belongs to, as pairs (part, end) a sequence.

        Rows from the previous pair's `end`, or from 0, to `end` belong to `part`. `lengths` are
        numbers of rows of the sequences, `skips` numbers of washout rows at their starts.
        """
        return [((0, length),) for length in lengths]

    def blocks(self, parts: dict[int, RowSums]) -> list[RowSums]:
        """Return the parts on which fits are scored."""
        return []

    def check(  # noqa: B027 (most rules have nothing to check)
        self, name: str, blocks: Sequence[RowSums] | None
    ) -> None:
        """Check that the rule can score fits on these blocks; `name` is its name in messages."""

    @abstractmethod
    def scores(self, penalties: Penalties) -> Array:
        """Return the score of each penalty, which estimates the error, (n_alphas, n_outputs)."""


class _FromPath(SelectionRule):
    """Scores of all penalties from one decomposition of all rows, without held-out rows."""

    def __init__(self, score: Callable[[PenaltyPath, float], Array]) -> None:
        self.score = score

    def scores(self, penalties: Penalties) -> Array:
        found = penalties.path()
        return np.array([self.score(found, alpha) for alpha in penalties.alphas])


class _NeighboursDepend(SelectionRule):
    """Restricted maximum likelihood with AR(1) errors, from sums over neighbouring rows."""

    neighbours = True

    def scores(self, penalties: Penalties) -> Array:
        assert penalties.neighbours is not None
        alphas, sums = penalties.alphas, penalties.sums
        return penalties.neighbours.scores(sums, alphas, penalties.fit_intercept)


class _Blocked(SelectionRule):
    """Blocks of consecutive rows, each scored by a fit on all other rows."""

    min_blocks = 2

    def cut(self, lengths: Sequence[int], skips: Sequence[int]) -> Cuts:
        kept = [max(length - skip, 0) for length, skip in zip(lengths, skips, strict=True)]
        total, before, cuts = sum(kept), 0, []
        ends = [round(total * (k + 1) / _N_BLOCKS) for k in range(_N_BLOCKS)]
        for skip, n in zip(skips, kept, strict=True):
            within = [skip + min(max(end - before, 0), n) for end in ends]
            cuts.append(tuple(enumerate(within)))
            before += n
        return cuts

    def blocks(self, parts: dict[int, RowSums]) -> list[RowSums]:
        # a long gap in the targets may leave a block empty
        return [part for part in parts.values() if part.n_samples]

    def check(self, name: str, blocks: Sequence[RowSums] | None) -> None:
        n_blocks = 0 if blocks is None else len(blocks)
        if n_blocks < self.min_blocks:
            raise ValueError(f"selection={name!r} needs two blocks or more; got {n_blocks}.")

    def scores(self, penalties: Penalties) -> Array:
        return _held_out_errors(penalties)[0]


class _HoldOut(_Blocked):
    """The last rows of each sequence, scored by a fit on the rows before them."""

    min_blocks = 1

    def cut(self, lengths: Sequence[int], skips: Sequence[int]) -> Cuts:
        kept = [max(length - skip, 0) for length, skip in zip(lengths, skips, strict=True)]
        held_out = [round(_HELD_OUT * n) for n in kept]
        return [((0, length - n), (1, length)) for length, n in zip(lengths, held_out, strict=True)]

    def blocks(self, parts: dict[int, RowSums]) -> list[RowSums]:
        return [parts[1]] if 1 in parts else []

    def check(self, name: str, blocks: Sequence[RowSums] | None) -> None:
        n_blocks = 0 if blocks is None else len(blocks)
        if n_blocks != 1:
            raise ValueError(f"selection={name!r} needs blocks=[held_out]; got {n_blocks} blocks.")


class FreeRuns(_HoldOut):
    """Closed loops over the last rows, with coefficients fitted to the rows before them.

    The last fifth of each sequence is held out. If there are at least five sequences, and none has
    more than a fifth of the rows, the last whole sequences are held out instead. ``errors(coefs,
    intercepts)``, set by an estimator, takes the results of `RowSums.along`, runs a closed loop
    under each penalty and returns the errors as scores, (n_alphas, 1).
    """

    in_loops = True

    def __init__(self, errors: Callable[[Array, Array], Array] | None = None) -> None:
        self.errors = errors

    def scaled(self, scales: Array) -> FreeRuns:
        """Return the rule for sums over features times scales, whose loops have the features."""
        run = self.errors
        assert run is not None
        return FreeRuns(lambda coefs, intercepts: run(coefs * scales, intercepts))

    def cut(self, lengths: Sequence[int], skips: Sequence[int]) -> Cuts:
        """Return the rows to learn from as part 0, and the held-out rows as part 1."""
        kept = np.maximum(np.subtract(lengths, skips), 0)
        held_out = kept // _N_GROUPS
        if len(kept) >= _N_GROUPS and kept.max() <= kept.sum() / _N_GROUPS:
            at_end = np.cumsum(kept[::-1])[::-1] <= kept.sum() / _N_GROUPS
            at_end[-1] = True
            held_out = np.where(at_end, lengths, 0)
        ends = np.subtract(lengths, held_out).tolist()
        return [((0, end), (1, length)) for length, end in zip(lengths, ends, strict=True)]

    def check(self, name: str, blocks: Sequence[RowSums] | None) -> None:
        """Check that an estimator runs closed loops, and that there is one held-out block."""
        if self.errors is None:
            raise ValueError(
                f"selection={name!r} needs closed loops, which sums over rows cannot run. Use "
                f"ESNRegressor(alpha_selection={name!r}), or another estimator that forecasts, or "
                'selection="reml" here.'
            )
        super().check(name, blocks)

    def scores(self, penalties: Penalties) -> Array:
        """Return the error of closed loops under each penalty, for all outputs together."""
        assert self.errors is not None
        ((before, _),) = penalties.folds
        return self.errors(*before.along(penalties.alphas, penalties.fit_intercept))


class _Halves(_Blocked):
    """Two halves, to which runs of rows are assigned in turn, each scored by a fit on the other."""

    alternates = True

    def cut(self, lengths: Sequence[int], skips: Sequence[int]) -> Cuts:
        return Runs().cut(lengths, skips)

    def check(self, name: str, blocks: Sequence[RowSums] | None) -> None:
        n_blocks = 0 if blocks is None else len(blocks)
        if n_blocks != 2:
            raise ValueError(f"selection={name!r} needs two blocks; got {n_blocks}.")


class ScaledScores(_Blocked):
    """Blocks as of another rule, for scores of classes, which are scaled by the best factor first.

    A temperature scales the scores when they become probabilities. Without the factor, scores that
    are too large where rows are new, as if many rows depend on each other, would count as worse
    than the same score for all rows. `slope` and `curvature`, (n_alphas, n_outputs), set by
    `scores`, give the squared held-out error by the factor on deviations of scores from the mean
    over the classes.
    """

    slope: Array
    curvature: Array

    def scores(self, penalties: Penalties) -> Array:
        """Return the squared errors of scaled scores."""
        # errors are quadratic in the factor: three values determine them
        factors, centre = (0.0, 0.5, 1.0), centre_of_codes(penalties.sums.n_outputs)
        none, half, whole = _held_out_errors(penalties, factors, centre)
        self.slope, self.curvature = 4 * half - 3 * none - whole, 2 * (none + whole - 2 * half)
        best = _factors(self.slope, self.curvature)[:, None]
        return none + best * self.slope + best**2 * self.curvature

    def factor_at(self, alphas: Array, chosen: float | Array) -> float:
        """Return the best factor for the chosen penalty, or for the penalties of each output."""
        places = [int(np.flatnonzero(alphas == alpha)[0]) for alpha in np.ravel(chosen)]
        which = places, np.arange(len(places)) if len(places) > 1 else slice(None)
        found = _factors(*(np.atleast_2d(each[which]) for each in (self.slope, self.curvature)))
        return float(found[0])


def _held_out_errors(
    penalties: Penalties, factors: Sequence[float] = (1.0,), centre: float = 0.0
) -> Array:
    """Return mean squared errors in held-out blocks, (n_factors, n_alphas, n_outputs).

    Predictions are first moved away from `centre` by each factor.
    """
    errors, weight = [np.zeros(1)] * len(factors), 0.0
    for fitted, scored in penalties.folds:
        coefs, intercepts = fitted.along(penalties.alphas, penalties.fit_intercept)
        for i, factor in enumerate(factors):
            moved = centre + factor * (intercepts - centre)
            errors[i] = errors[i] + scored.squared_errors(factor * coefs, moved)
        weight += scored.weight
    return np.array(errors) / weight


def centre_of_codes(n_columns: int) -> float:
    """Return the mean over the classes of the labels' codes, of which one is +1 and others -1.

    Scaling scores about it does not change which class has the largest one. Two classes have a
    single column, whose sign tells them apart.
    """
    return 2 / n_columns - 1 if n_columns > 1 else 0.0


def _factors(slope: Array, curvature: Array) -> Array:
    """Return the factors, one for all outputs, at which the sums of squared errors are least."""
    bend, fall = 2 * curvature.sum(axis=1), -slope.sum(axis=1)
    return np.clip(fall / np.where(bend > 0, bend, np.inf), _LEAST_FACTOR, 1.0)


_LEAST_RUN = 8  # least rows of a run that ends with a sequence; twice as many within a sequence
_GROWTH = 5  # a run has at least 1/5 as many rows as are before it, or 2/5 within a sequence


@saved
class Runs:
    """Runs of rows that are assigned to two halves in turn, as rows arrive.

    Errors of neighbouring rows depend on one another, so that with short runs one half would not be
    an independent test of the other. Runs grow with the number of rows before them: the end of a
    run depends on earlier rows alone, not on the number of later rows or on how rows are split into
    calls. A run ends at the end of a sequence, or once it contains twice its least number of rows
    from one sequence.
    """

    def __init__(self, n_rows: int = 0) -> None:
        self.n_rows = n_rows  # number of rows of all runs so far
        self.filled = self.within = 0  # number of rows of this run, and of those in this sequence
        self.half = 0
        self.least = max(_LEAST_RUN, n_rows // _GROWTH)

    def cut(self, lengths: Sequence[int], skips: Sequence[int], *, continues: bool = False) -> Cuts:
        """Assign each row to one of two halves, each of which scores fits to the other.

        If the first sequence `continues` the last one of the previous call, so do its halves.
        """
        cuts = []
        for length, skip in zip(lengths, skips, strict=True):
            if not continues:
                self._begin_sequence()
            cuts.append(tuple(self._halves_of(skip, length)))
            continues = False
        return cuts

    def _begin_sequence(self) -> None:
        self.within = 0
        if self.filled >= self.least:
            self._turn()

    def _halves_of(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        while start < end:
            n = min(end - start, 2 * self.least - self.within)
            start += n
            self.n_rows += n
            self.filled += n
            self.within += n
            yield self.half, start
            if self.within == 2 * self.least:
                self._turn()

    def _turn(self) -> None:
        self.half, self.filled, self.within = 1 - self.half, 0, 0
        self.least = max(_LEAST_RUN, self.n_rows // _GROWTH)


#: Maps the values of ``alpha_selection`` and ``ridge_path(selection=...)`` to rules.
SELECTIONS: dict[str, SelectionRule] = {
    "gcv": _FromPath(lambda path, alpha: path.gcv(alpha)),
    "reml": _FromPath(lambda path, alpha: path.reml(alpha)),
    "reml_ar1": _NeighboursDepend(),
    "halves": _Halves(),
    "blocked": _Blocked(),
    "holdout": _HoldOut(),
    "forecast": FreeRuns(),
}


def least_score(
    alphas: Array, scores: Array, per_target: bool, variances: ArrayLike = 1.0
) -> float | Array:
    """Return the penalty with the lowest score; of equal scores the largest penalty.

    Scores are (n_alphas, n_outputs). If `per_target`, each output gets a separate penalty,
    (n_outputs,); otherwise one penalty minimises the sum of the scores, in units of the targets'
    variances.
    """
    order = np.argsort(-alphas, kind="stable")
    if per_target:
        return alphas[order[np.argmin(scores[order], axis=0)]]
    units = np.where(np.greater(variances, 0), variances, 1.0)
    return float(alphas[order[np.argmin((scores[order] / units).sum(axis=1))]])


def folds(sums: RowSums, blocks: Sequence[RowSums], rest: Sequence[RowSums]) -> Folds:
    """Yield, for each block, the sums over all other rows, `rest` included, and over the block."""
    for k, block in enumerate(blocks):
        if not 0 < block.n_samples < sums.n_samples:
            raise ValueError(
                f"A block of {block.n_samples} rows leaves {sums.n_samples - block.n_samples} of "
                f"{sums.n_samples} rows for the fit. The block and the fit both need at least one "
                "row. Use fewer blocks."
            )
        yield sums.without(block, [*blocks[:k], *blocks[k + 1 :], *rest]), block


# bounds of the default path: the mean and the total of the features' sums of squares times these
_PATH = (1e-11, 100.0)
_OF_SMALL = 1e-8  # lower bound, relative to the sums of squares of features in small units
_LEAST_OF_GRAM = 1e-11  # penalty whose effect is lost in the rounding errors of a Gram matrix


def ridge_path(
    gram: RowSums,
    alphas: ArrayLike,
    *,
    selection: str = "gcv",
    blocks: Sequence[RowSums] | None = None,
    rest: RowSums | None = None,
    fit_intercept: bool = True,
    per_target: bool = False,
) -> RidgeSolution:
    """Choose a ridge penalty from a path, and return the solution for it.

    Parameters
    ----------
    gram : GramAccumulator or QRAccumulator
        Sums over all rows.
    alphas : array of shape (n_alphas,), at least 0
        Penalties to choose from.
    selection : {"gcv", "reml", "halves", "blocked", "holdout"}, default="gcv"
        "gcv": generalised cross-validation [1]_, from one decomposition. "reml": restricted maximum
        likelihood [2]_, from the same decomposition; it is less misled by autocorrelated errors
        [3]_, and never selects a penalty of 0. "blocked": each block is scored by a fit on all
        other rows. "halves": as "blocked", with two blocks. "holdout": as "blocked", with a single
        block of held-out rows. Estimators also have the rules "reml_ar1", which needs the order of
        the rows, and "forecast", which needs closed loops; `gram` can provide neither.
    blocks : sequence of accumulators, optional
        Sums over parts of the rows of `gram`, each over consecutive rows. "blocked" requires two or
        more, "halves" two and "holdout" one.
    rest : accumulator, optional
        Sums over the rows of `gram` outside the blocks; not needed if the blocks contain all rows.
        A QRAccumulator requires it. Without it, a GramAccumulator subtracts the block, whose
        rounding errors remain.
    fit_intercept : bool, default=True
    per_target : bool, default=False
        Whether each output gets a separate penalty; otherwise one penalty minimises the sum of the
        scores over outputs, each in units of the variance of its targets.

    Returns
    -------
    RidgeSolution
        The solution fitted on all rows, with `scores` of shape (n_alphas, n_outputs) in the order
        of `alphas`. The penalty with the lowest score is chosen; of equal scores, the largest
        penalty.

    Raises
    ------
    ValueError
        If a penalty is negative or not finite, the blocks do not fit the selection, or the
        selection needs the order of the rows.

    References
    ----------
    .. [1] G. H. Golub, M. Heath and G. Wahba, "Generalized cross-validation as a method for
       choosing a good ridge parameter", Technometrics 21, 1979, eq. (1.4).
    .. [2] S. N. Wood, "Fast stable restricted maximum likelihood and marginal likelihood estimation
       of semiparametric generalized linear models", J. Royal Stat. Soc. B 73, 2011.
    .. [3] T. Krivobokova and G. Kauermann, "A note on penalized spline smoothing with correlated
       errors", J. American Stat. Assoc. 102, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.readouts import GramAccumulator, ridge_path
    >>> rng = np.random.default_rng(0)
    >>> H = rng.normal(size=(200, 5))
    >>> y = 0.1 * H.sum(axis=1) + rng.normal(size=200)
    >>> gram = GramAccumulator(5, 1).update(H, y)
    >>> solution = ridge_path(gram, [1e-3, 1e2, 1e5])
    >>> solution.alpha, solution.scores.shape
    (100.0, (3, 1))
    """
    check_choice("selection", selection, SELECTIONS)
    if SELECTIONS[selection].neighbours:
        raise ValueError(
            f"selection={selection!r} compares neighbouring rows, but sums do not record which "
            f"rows were neighbours. Use ESNRegressor(alpha_selection={selection!r}), or another "
            'estimator with this parameter, or selection="reml" here.'
        )
    SELECTIONS[selection].check(selection, blocks)
    options = SELECTIONS[selection], fit_intercept, per_target, variances_of(gram)
    return along_penalties(gram, alphas, blocks, rest, *options)[0]


def along_penalties(
    gram: RowSums,
    alphas: ArrayLike,
    blocks: Sequence[RowSums] | None,
    rest: RowSums | None,
    rule: SelectionRule,
    fit_intercept: bool,
    per_target: bool,
    units: ArrayLike,
    neighbours: NeighbourSums | None = None,
) -> tuple[RidgeSolution, Solved]:
    """Return the solution of `ridge_path`, and the leverages of rows in that fit."""
    alphas = np.atleast_1d(check_penalties("alpha", alphas))
    if alphas.ndim != 1 or alphas.size == 0:
        raise ValueError(f"alphas must have shape (n_alphas,); got {alphas.shape}.")
    path = functools.cache(partial(gram.path, fit_intercept))
    parts = folds(gram, blocks or (), () if rest is None else (rest,))
    scores = rule.scores(Penalties(alphas, gram, path, parts, fit_intercept, neighbours))
    best = least_score(alphas, scores, per_target, units)
    # solved again: the path has larger rounding errors, and results must equal `solve` bitwise
    solved = gram._solve(best, fit_intercept, path)
    return gram._solution(solved.coef, best, fit_intercept, scores), solved


def variances_of(sums: RowSums) -> Array:
    """Return the variance of each target, (n_outputs,)."""
    zeros = np.zeros((1, sums.n_outputs, sums.n_features))
    constant = sums._solution(zeros[0], 0.0, True)
    return sums.squared_errors(zeros, constant.intercept[None])[0] / sums.weight


def default_path(sums: RowSums, leading: tuple[int, Array] | None = None) -> Array:
    """Return powers of ten, from penalties without effect to penalties that leave only the mean.

    Let S be the sums of squares of the features about their means. The path, (n_alphas,), goes from
    1e-11 times the mean of S, or 1e-8 times the 10 % quantile of S if that is smaller, to 100 times
    the total of S. `leading` are a number of features that stand for other ones, and the sums of
    squares of these.
    """
    squares = sums.square_sums()
    if leading is not None:
        squares = np.append(leading[1], squares[leading[0] :])
    if not squares.any():
        return np.ones(1)
    squares = squares[squares > sums.held * squares.max()]  # smaller ones are rounding errors
    least = min(_PATH[0] * squares.mean(), _OF_SMALL * np.quantile(squares, 0.1))
    ends = np.ceil(np.log10([least, _PATH[1] * squares.sum()]))
    exponents = range(int(ends[0]), int(ends[1]) + 1)
    return np.array([float(f"1e{k}") for k in exponents])  # 10.0**k has rounding errors


def check_alpha(name: str, value: Any) -> None:
    """Check that a value is a penalty, an array of penalties or "auto"."""
    if isinstance(value, str):
        check_choice(name, value, ("auto",))
    elif check_penalties(name, value).ndim > 1 or np.size(value) == 0:
        raise ValueError(
            "alpha must be a number or have shape (n_alphas,), with penalties to choose from; got "
            f"shape {np.shape(value)}."
        )


def is_path(alpha: Any) -> bool:
    """Whether `alpha` is an array of penalties to choose from, or "auto"."""
    return isinstance(alpha, str) or np.ndim(alpha) > 0


def rule_for(selection: str, forgetting: float) -> SelectionRule:
    """Return the rule; "auto" is "halves", or "reml" with forgetting, which needs a single sum."""
    if selection == "auto":
        selection = "halves" if forgetting == 1 else "reml"
    return SELECTIONS[selection]


def solver_for(solver: str, alpha: Any, dtype: Any) -> str:
    """Return the class of sums to use; "auto" depends only on the penalties and the dtype.

    The choice is thus made before the first row, and does not depend on how rows are split.
    """
    if solver != "auto":
        return solver
    if is_path(alpha) and not np.ndim(alpha):
        return "cholesky"
    small = np.min(alpha) < _LEAST_OF_GRAM and np.dtype(dtype) == np.float64
    return "qr" if small else "cholesky"

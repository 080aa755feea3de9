"""The ridge: its penalty chosen from a path, and the readout that sums rows for it."""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_choice, check_penalties
from reservoir.readouts.contract import Outputs, Readout, ReadoutSettings, RowsAndColumns
from reservoir.readouts.dependent_errors import NeighbourSums, RunEnd, starts_of
from reservoir.readouts.eigen import EPS
from reservoir.readouts.gram import GramAccumulator
from reservoir.readouts.qr import QRAccumulator
from reservoir.readouts.ridge_rows import RidgeRows, rounded
from reservoir.readouts.row_sample import RowSample
from reservoir.readouts.selection import (
    SELECTIONS,
    Cuts,
    Runs,
    SelectionRule,
    folds,
    least_score,
)
from reservoir.readouts.sums import RidgeSolution, RowSums, Solved, room_for_matrices
from reservoir.readouts.temperature import fitted_temperature


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
    """Choose a ridge penalty from a path, and solve for it.

    Parameters
    ----------
    gram : GramAccumulator or QRAccumulator
        All rows.
    alphas : array of shape (n_alphas,), at least 0
    selection : {"gcv", "reml", "halves", "blocked", "holdout"}, default="gcv"
        "gcv": generalised cross-validation [1]_, from one decomposition. "reml": restricted maximum
        likelihood [2]_, from the same one; less misled by errors that depend on one another [3]_,
        and it never takes a penalty of 0. "blocked": each
        block is scored by a fit on all other rows. "halves": the same with two blocks. "holdout":
        the same with one, the rows held out. The rules "reml_ar1" and "forecast" of estimators need
        the order of the rows and closed loops, of which `gram` knows nothing.
    blocks : sequence of accumulators, optional
        Parts of `gram`, each over consecutive rows. Needed by "blocked" (two or more), "halves"
        (two) and "holdout" (one).
    rest : accumulator, optional
        The rows of `gram` outside the blocks, unless these are all rows. A QRAccumulator needs it;
        a GramAccumulator subtracts without it, and keeps rounding errors of what it takes away.
    fit_intercept : bool, default=True
    per_target : bool, default=False
        Whether each output gets a penalty of its own; else the sum over outputs decides, each in
        units of the variance of its targets.

    Returns
    -------
    RidgeSolution
        Fitted on all rows; `scores` of shape (n_alphas, n_outputs) in the order of `alphas`.
        Equal scores: the larger penalty.

    Raises
    ------
    ValueError
        If a penalty is negative or not finite, or the blocks do not fit the selection, or that
        needs the order of the rows.

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
            f"selection={selection!r} compares neighbouring rows, and sums do not know which rows "
            f"were neighbours. Use ESNRegressor(alpha_selection={selection!r}), or another "
            'estimator, or selection="reml" here.'
        )
    SELECTIONS[selection].check(selection, blocks)
    how = SELECTIONS[selection], fit_intercept, per_target, _variances(gram)
    return _along_path(gram, alphas, blocks, rest, *how)[0]


def _along_path(
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
    """Return what `ridge_path` does, and the leverages of rows in it."""
    alphas = np.atleast_1d(check_penalties("alpha", alphas))
    if alphas.ndim != 1 or alphas.size == 0:
        raise ValueError(f"alphas must have shape (n_alphas,); got {alphas.shape}.")
    path = functools.cache(partial(gram.path, fit_intercept))
    parts = folds(gram, blocks or (), () if rest is None else (rest,))
    scores = rule.scores(gram, path, alphas, parts, fit_intercept, neighbours)
    best = least_score(alphas, scores, per_target, units)
    # a path loses more to rounding; so the solution agrees with `solve` to the last bit
    solved = gram._solve(best, fit_intercept, path)
    return gram._solution(solved.coef, best, fit_intercept, scores), solved


def _variances(sums: RowSums) -> Array:
    """Return the variance of each target, (n_outputs,)."""
    zeros = np.zeros((1, sums.n_outputs, sums.n_features))
    constant = sums._solution(zeros[0], 0.0, True)
    return sums.squared_errors(zeros, constant.intercept[None])[0] / sums.weight


_LEAST_LEFT = np.sqrt(EPS)  # of a row that the fit goes through there is nothing to tell


def _temperature(kept: RowSample, solution: RidgeSolution, solved: Solved, own: float) -> float:
    """Return the temperature that suits the scores of rows left out, one at a time.

    Parameters
    ----------
    kept : RowSample
    solution, solved
        The fit on all rows.
    own : float
        What the intercept adds to a row's own output, per unit of weight.
    """
    if len(kept) == 0:
        return 1.0
    _, features, targets, weights = kept.rows()
    features = features.astype(np.float64, copy=False)
    leverage = solved.leverage(features).reshape(len(features), -1) + own
    left = np.maximum(1 - weights[:, None] * leverage, _LEAST_LEFT)
    errors = targets - (features @ solution.coef.T + solution.intercept)
    return fitted_temperature(targets - errors / left, targets, weights)


def check_alpha(name: str, value: Any) -> None:
    """Refuse what is neither a penalty nor a path of them."""
    if isinstance(value, str):
        check_choice(name, value, ("auto",))
    elif check_penalties(name, value).ndim > 1 or np.size(value) == 0:
        raise ValueError(
            "alpha must be a number or have shape (n_alphas,), penalties to choose from; got "
            f"shape {np.shape(value)}."
        )


#: What the parameter `solver` may name, beside "auto": the sums that are kept.
SOLVERS: dict[str, type[RowSums]] = {"cholesky": GramAccumulator, "qr": QRAccumulator}
_LEAST_HALF = 8  # rows of a half of which "auto" expects that it tells of the other
_PATH = (1e-11, 100.0)  # of the mean square sum of the features, and of the sum over features
_STILL = 1e-6  # of its mean: a column that moves by less says nothing of units
_OF_SMALL = 1e-8  # of the square sum of features in small units, beside others in large ones
_SMALL = 1e-4  # of the mean square sum of the features: a penalty that does not keep errors small
_LEAST_OF_GRAM = 1e-11  # below such penalties a Gram matrix loses what they would show


def solver_for(solver: str, alpha: Any, dtype: Any) -> str:
    """Return which of `SOLVERS` is meant; "auto" looks at penalties and precision alone.

    So the choice is made before the first row, and any split of the rows leads to the same.
    """
    if solver != "auto":
        return solver
    if is_path(alpha) and not np.ndim(alpha):
        return "cholesky"
    small = np.min(alpha) < _LEAST_OF_GRAM and np.dtype(dtype) == np.float64
    return "qr" if small else "cholesky"


def is_path(alpha: Any) -> bool:
    """Whether `alpha` leaves a choice of penalties: an array of them, or "auto"."""
    return isinstance(alpha, str) or np.ndim(alpha) > 0


def default_path(sums: RowSums) -> Array:
    """Return the powers of ten from penalties that do nothing to those that leave only the mean.

    Parameters
    ----------
    sums : accumulator
        Over all rows.

    Returns
    -------
    array of shape (n_alphas,)
        From 1e-11 of the mean over features of the sum of their squares about the mean, or from
        1e-8 of one that is smaller than nine tenths of them, to 100 times the sum over features.
    """
    squares = sums.square_sums()
    if not squares.any():
        return np.ones(1)
    squares = squares[squares > sums.held * squares.max()]  # others are lost in rounding errors
    least = min(_PATH[0] * squares.mean(), _OF_SMALL * np.quantile(squares, 0.1))
    ends = np.ceil(np.log10([least, _PATH[1] * squares.sum()]))
    exponents = range(int(ends[0]), int(ends[1]) + 1)
    return np.array([float(f"1e{k}") for k in exponents])  # powers have rounding errors


def rule_for(selection: str, forgetting: float) -> SelectionRule:
    """Return the rule that is meant; "auto" takes halves, unless what forgets has one sum only."""
    if selection == "auto":
        selection = "halves" if forgetting == 1 else "reml"
    return SELECTIONS[selection]


@saved
class RidgeReadout(Readout):
    """The ridge: sums over rows, one accumulator for each part that the selection asks for.

    For a classifier a few rows are kept beside, whose scores under a fit without them say at which
    temperature scores are probabilities.
    """

    fitted = (
        "coef_",
        "intercept_",
        "alpha_",
        "alphas_",
        "alpha_scores_",
        "alpha_selection_",
        "training_error_",
        "temperature_",
    )
    forgets = lazy = True
    kept: RowSample | None = None
    runs: Runs | None = None  # where rows belong to two halves in turns
    neighbours: NeighbourSums | None = None  # where the rule asks for them
    # first rows of the sequences to come, and the row that the first of these may go on from
    sequences: tuple[Array, RunEnd | None] | None = None

    def __init__(self, settings: ReadoutSettings) -> None:
        super().__init__(settings)
        self.solver: str | None = None  # until it begins, when parameters have been checked
        self.parts: dict[int, RowSums] = {}

    @classmethod
    def takes(cls, readout: Any) -> bool:
        """Whether there is no readout of the user's own."""
        return readout is None

    @property
    def ordered(self) -> bool:  # type: ignore[override]
        """Whether rows must come in order: what is forgotten depends on it."""
        return self.settings.forgetting < 1

    @property
    def n_rows(self) -> int:
        """Rows seen."""
        return sum(sums.n_samples for sums in self.parts.values())

    def check_room(self, width: int, n_rows: int = 0) -> None:
        """Refuse more features than there is memory to solve for."""
        asked = self.settings
        kind = SOLVERS[self.solver or solver_for(asked.solver, asked.alpha, asked.dtype)]
        own = kind.to_solve if self.rule is None else kind.of_path + self.rule.neighbours
        with room_for_matrices(width, own):
            pass

    def begin(self, width: int, n_outputs: int) -> RidgeReadout:
        """Return an empty readout of the same settings, with a solver decided on."""
        self.check_room(width)
        empty, asked = super().begin(width, n_outputs), self.settings
        empty.solver = self.solver or solver_for(asked.solver, asked.alpha, asked.dtype)
        empty.runs = self.runs
        if self.sequences is not None:
            differences = SOLVERS[empty.solver](width, n_outputs, forgetting=asked.forgetting)
            empty.neighbours = NeighbourSums(differences, *self.sequences)
        empty.kept = None if asked.classes is None else RowSample(forgetting=asked.forgetting)
        return empty

    def go_on_from(self, earlier: RidgeReadout) -> None:
        """Keep to the solver that the first chunk has decided on."""
        asked = self.settings.solver
        if asked not in ("auto", earlier.solver):
            raise ValueError(
                f"solver={asked!r} cannot go on from sums of earlier calls that are kept for "
                f'{earlier.solver!r}. Use fit, solver={earlier.solver!r} or solver="auto".'
            )
        self.solver = earlier.solver
        if self.rule is not None and self.rule.alternates:
            self.runs = copy.copy(earlier.runs) or Runs(earlier.n_rows)
        if self.rule is not None and self.rule.neighbours and earlier.n_rows:
            if earlier.neighbours is None:
                raise ValueError(
                    f"alpha_selection={self.settings.selection!r} compares neighbouring rows, "
                    "which earlier calls, under another selection or one alpha, have not done. Use "
                    'fit, or alpha_selection="reml".'
                )
            self.sequences = (np.empty(0, np.int64), earlier.neighbours.last)

    @property
    def rule(self) -> SelectionRule | None:
        """How the penalty is chosen; None if it is given."""
        asked = self.settings
        if not is_path(asked.alpha):
            return None
        return asked.rule or rule_for(asked.selection, asked.forgetting)

    def cut(
        self, lengths: list[int], skips: list[int], *, continues: bool = False, number: int = 0
    ) -> Cuts:
        """Return which part of the sums each row belongs to, as the selection wants it."""
        rule = self.rule
        if rule is None:
            return super().cut(lengths, skips)
        if rule.neighbours:
            before = None if self.sequences is None else self.sequences[1]
            self.sequences = (starts_of(lengths, number, continues), before)
        if not rule.alternates:
            return rule.cut(lengths, skips)
        if self.runs is None:
            self.runs = Runs()
        return self.runs.cut(lengths, skips, continues=continues)

    def after(self, earlier: RidgeReadout) -> RidgeReadout:
        """Return a readout that has seen what an earlier one has, and then what this one has."""
        one = copy.copy(self)
        # halves are aged by rows of their own alone: what is not dealt out any more is one sum
        dealt_out = self.runs is not None or len(earlier.parts) < 2
        before = dict(earlier.parts) if dealt_out else {0: earlier.total()}
        own = {p: s.after(before[p]) if p in before else s for p, s in self.parts.items()}
        one.parts = before | own
        if self.neighbours is not None and earlier.neighbours is not None:
            one.neighbours = self.neighbours.after(earlier.neighbours)
        if earlier.kept is not None:
            one.kept = earlier.kept.copy()
            if self.kept is not None:
                one.kept.merge(self.kept)
        return one

    def check_partial(self) -> None:
        """Refuse a selection that needs more than one sum over all rows."""
        # what `solve`, which may be called much later, would have to refuse
        check_alpha("alpha", self.settings.alpha)
        if is_path(self.settings.alpha):
            check_choice("alpha_selection", self.settings.selection, ("auto", *SELECTIONS))
        if self.rule is not None and self.rule.min_blocks and not self.rule.alternates:
            raise ValueError(
                f"partial_fit cannot choose alpha by alpha_selection={self.settings.selection!r}, "
                'which depends on how many rows are to come. Use alpha_selection="auto" or '
                '"reml", or give one number as alpha.'
            )

    def sample(
        self, numbers: Array, features: Array, targets: Array, weights: Array | None = None
    ) -> None:
        """Keep some rows, if they are a classifier's, and compare neighbours, where that counts."""
        if self.kept is not None:
            self.kept.add(numbers, features, targets, weights)
        if self.neighbours is not None:
            self.neighbours.add(numbers, features, targets, weights)

    def separate(self) -> None:
        """Let the rows to come be no neighbours of those so far."""
        if self.neighbours is not None:
            self.neighbours.separate()

    def update(
        self, features: Array, targets: Array, weights: Array | None = None, *, part: int = 0
    ) -> None:
        """Add rows to the sums of a part; the memory of the features is used up."""
        if part not in self.parts:
            assert self.solver is not None
            kind, factor = SOLVERS[self.solver], self.settings.forgetting
            self.parts[part] = kind(self.width, self.n_outputs, forgetting=factor)
        missing = "skip" if self.settings.skip_missing else "raise"
        self.parts[part].update(features, targets, weights, missing=missing, overwrite_h=True)

    def extend(self, features: Array, targets: Array, weights: Array | None) -> None:
        """Add rows that continue those seen; the memory of the features is used up."""
        start, n = 0, len(features)
        cuts = ((0, n),) if self.runs is None else self.runs.cut([n], [0], continues=True)[0]
        for part, end in cuts:
            own = slice(start, end)
            self.update(
                features[own], targets[own], None if weights is None else weights[own], part=part
            )
            start = end

    def merge(self, other: RidgeReadout) -> None:
        """Add what another one has seen; its sums may become this one's."""
        for part, sums in other.parts.items():
            self.parts[part] = self.parts[part].merge(sums) if part in self.parts else sums
        if self.neighbours is not None and other.neighbours is not None:
            self.neighbours.merge(other.neighbours)
        if self.kept is None:
            self.kept = other.kept
        elif other.kept is not None:
            self.kept.merge(other.kept)

    def held_by_rows(self) -> RowsAndColumns | None:
        """Return how many rows hold how many columns, where the penalty is given, and small."""
        asked = self.settings
        if isinstance(asked.alpha, str) or np.size(asked.alpha) != 1 or self.n_rows == 0:
            return None
        sums = self.total()
        (alpha,) = np.ravel(asked.alpha).tolist()
        if alpha > _SMALL * sums.mean_square_sum():
            return None
        remembered = np.inf if sums.forgetting == 1 else 1 / (1 - sums.forgetting)
        columns = self.width + bool(asked.fit_intercept)
        return RowsAndColumns(sums.n_effective, remembered, columns, float(alpha))

    def spread_of_targets(self) -> Array:
        """Return the standard deviation of each target, (n_outputs,)."""
        return np.sqrt(_variances(self.total()))

    def columns_apart(self, which: Sequence[int], among: Sequence[int]) -> float | None:
        """Return how much smaller one of some columns is than others, if it is lost beside them.

        A Gram matrix has half of the digits, and penalties are not in the units of columns.
        """
        total = self.total() if self.n_rows else None
        if self.rule is None or not isinstance(total, GramAccumulator) or not len(which):
            return None
        squares = total.square_sums()
        varying = squares > total.weight * (_STILL * total.mean_h) ** 2
        small = squares[which][varying[which]].min(initial=np.inf)
        large = squares[among].max()
        return float(np.sqrt(large / small)) if small < total.held * large else None

    def total(self) -> RowSums:
        """Return the sums over all rows; not to be changed, as the parts may be one."""
        # in order: rows of short sequences are gathered, so that a later part may have come before
        first, *others = (sums for _, sums in sorted(self.parts.items()))
        for k, sums in enumerate(others):
            first = (first.copy() if k == 0 else first).merge(sums)
        return first

    def solve(self) -> dict[str, Any]:
        """Return coefficients and penalty; parts that more rows cannot be added to become one."""
        if self.n_rows == 0:
            raise ValueError("No rows to fit: every row has weight 0 or a missing target.")
        settings, total = self.settings, self.total()
        intercept = settings.fit_intercept
        chosen: dict[str, Any] = {}
        if self.rule is None:
            alpha = total._check_alpha(settings.alpha)
            solved = total._solve(alpha, intercept)
            solution = total._solution(solved.coef, alpha, intercept)
        else:
            solution, solved, chosen = self._choose(total)
        # what is kept for more rows to come
        if self.rule is None or not self.rule.alternates:
            self.parts = {0: total}
        found = rounded(solution, settings) | {"alpha_": solution.alpha} | chosen
        found["training_error_"] = total._root_mean_squares(solution)
        if self.kept is not None:
            own = 1 / total.weight if intercept else 0.0
            found["temperature_"] = _temperature(self.kept, solution, solved, own)
        return found

    def _choose(self, total: RowSums) -> tuple[RidgeSolution, Solved, dict[str, Any]]:
        """Return the solution for the penalty that the rule prefers, and what it says of each."""
        settings, selection, rule = self.settings, self.settings.selection, self.rule
        assert rule is not None
        parts = dict(sorted(self.parts.items()))
        aged = any(min(part.forgetting, part.ageing) < 1 for part in parts.values())
        if selection == "auto":
            few = len(parts) < 2 or min(part.n_samples for part in parts.values()) < _LEAST_HALF
            selection = "reml" if few or aged else "halves"
            rule = SELECTIONS[selection]
        elif rule.alternates and aged:
            raise ValueError(
                f"alpha_selection={selection!r} compares parts of the rows, and rows of earlier "
                'calls have been forgotten in part. Use fit, or alpha_selection="auto" or "reml".'
            )
        blocks = rule.blocks(parts)
        self._check_blocks(blocks, rule.min_blocks, total.n_samples)
        rule.check(selection, blocks)
        alphas = default_path(total) if isinstance(settings.alpha, str) else settings.alpha
        solution, solved = _along_path(
            total,
            alphas,
            blocks,
            self._rest(blocks),
            rule,
            settings.fit_intercept,
            settings.alpha_per_target,
            # scores of classes are in one unit: their sum is Brier's
            _variances(total) if settings.classes is None else 1.0,
            self.neighbours,
        )
        chosen = {"alphas_": np.array(alphas, dtype=np.float64), "alpha_selection_": selection}
        return solution, solved, chosen | {"alpha_scores_": solution.scores}

    def _rest(self, blocks: list[RowSums]) -> RowSums | None:
        """Return the rows that are not scored on, in one sum."""
        total: RowSums | None = None
        for part in self.parts.values():
            if not any(part is block for block in blocks):
                total = part if total is None else total.copy().merge(part)
        return total

    def _check_blocks(self, blocks: list[RowSums], min_blocks: int, n_rows: int) -> None:
        sizes = [block.n_samples for block in blocks]
        if min_blocks and (len(sizes) < min_blocks or min(sizes) < 1 or max(sizes) >= n_rows):
            raise ValueError(
                f"alpha_selection={self.settings.selection!r} has too few rows to choose from: "
                f"{n_rows} behind the washout, in parts of {sizes}. Give a longer series, a "
                'smaller washout, or alpha_selection="auto" or "reml".'
            )

    def row_learner(self, model: Any) -> RidgeRows:
        """Return what goes on row by row, under the penalty that was used."""
        settings = replace(self.settings, decode=None)  # what is kept can be saved
        own = copy.deepcopy(self.renewed(settings))
        return RidgeRows(
            own,
            own.total(),
            model.alpha_,
            forgetting=settings.forgetting,
            fit_intercept=settings.fit_intercept,
        )

    def fade(self, *, forgetting: float | None = None, factor: float = 1.0) -> None:
        """Let the rows so far weigh `factor` times as much, and those to come forget as told."""
        if min(1.0 if forgetting is None else forgetting, factor) < 1 and self.parts:
            # rows of a half age with each row of the other, too: one sum of all
            self.parts, self.runs = {0: self.total()}, None
        for part, sums in self.parts.items():
            if forgetting is not None:
                sums.forgetting = forgetting
            self.parts[part] = sums.discounted(factor)
        if self.neighbours is not None:
            self.neighbours.fade(forgetting=forgetting, factor=factor)
        if self.kept is not None:
            if forgetting is not None:
                self.kept.merge(RowSample(forgetting=forgetting))
            self.kept.discount(factor)

    @staticmethod
    def linear(model: Any) -> tuple[Array, Array]:
        """Return what a compiled loop takes: coefficients and intercept."""
        return np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)

    @classmethod
    def outputs(cls, model: Any) -> Outputs:
        """Return the function from features to outputs."""
        coef, intercept = cls.linear(model)
        return lambda features: features @ coef.T + intercept

    def linear_path(
        self, alphas: Sequence[float], *, fit_intercept: bool, dtype: Any
    ) -> list[Any] | None:
        """Return coefficients and intercept under each penalty, from one decomposition."""
        total = self.total()
        path = total.path(fit_intercept)
        each = [total._solution(path.coef(alpha), alpha, fit_intercept) for alpha in alphas]
        with np.errstate(over="ignore", invalid="ignore"):
            return [(one.coef.astype(dtype), one.intercept.astype(dtype)) for one in each]

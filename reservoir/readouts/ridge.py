"""The ridge readout, which is fitted from sums over rows, or from few rows themselves."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_choice, room_for
from reservoir.readouts.contract import Outputs, Readout, ReadoutSettings, RowsAndColumns
from reservoir.readouts.dependent_errors import NeighbourSums, RunEnd, starts_of
from reservoir.readouts.few_rows import Block, FewRows, block_of, standard_columns
from reservoir.readouts.gram import GramAccumulator
from reservoir.readouts.input_rows import InputRows, ratio_of, solve_with_inputs
from reservoir.readouts.qr import QRAccumulator
from reservoir.readouts.ridge_rows import RidgeRows, rounded
from reservoir.readouts.row_sample import RowSample
from reservoir.readouts.selection import (
    SELECTIONS,
    Cuts,
    Runs,
    ScaledScores,
    SelectionRule,
    along_penalties,
    check_alpha,
    default_path,
    folds,
    is_path,
    rule_for,
    solver_for,
    variances_of,
)
from reservoir.readouts.sums import RidgeSolution, RowSums, Solved, room_for_matrices
from reservoir.readouts.temperature import held_out_temperature

#: Maps values of the parameter `solver`, except "auto", to the class of the sums.
SOLVERS: dict[str, type[RowSums]] = {"cholesky": GramAccumulator, "qr": QRAccumulator}
_LEAST_HALF = 8  # rows that "auto" requires in each half, to score a fit on the other half
_STILL = 1e-6  # variation, relative to its mean, below which a column does not show its unit
_SMALL = 1e-4  # penalty, relative to the mean sum of squares, below which it limits no errors


@saved
class RidgeReadout(Readout):
    """Ridge readout, with an accumulator for each part of the rows that the selection needs.

    For a classifier it also stores a sample of rows, whose held-out scores determine the
    temperature at which scores are converted to probabilities. If a fit has at most half as many
    rows as features, the readout keeps these rows instead.
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
        "n_lags_",
        "input_alpha_",
    )
    forgets = lazy = True
    rows: list[Block] | None = None  # set as long as rows are kept, instead of `parts` and `kept`
    leading: tuple[int, Array] | None = None  # as in `default_path`
    n_expected = 0  # rows of the current fit
    kept: RowSample | None = None
    runs: Runs | None = None  # set if rows are assigned to two halves in turn
    inputs: InputRows | None = None  # set if rows of the input may have a penalty of their own
    neighbours: NeighbourSums | None = None  # set if the rule needs them
    # first rows of the next sequences, and the row that the first of them may continue
    sequences: tuple[Array, RunEnd | None] | None = None

    def __init__(self, settings: ReadoutSettings) -> None:
        super().__init__(settings)
        self.solver: str | None = None  # set by `begin`, once parameters have been checked
        self.parts: dict[int, RowSums] = {}

    @classmethod
    def takes(cls, readout: Any) -> bool:
        """Whether the estimator has no custom readout."""
        return readout is None

    @property
    def ordered(self) -> bool:  # type: ignore[override]
        """Whether rows must arrive in order, as forgetting requires."""
        return self.settings.forgetting < 1

    @property
    def n_rows(self) -> int:
        """Number of rows seen."""
        if self.rows is not None:
            return sum(len(block[1]) for block in self.rows)
        return sum(sums.n_samples for sums in self.parts.values())

    def check_room(self, width: int, n_rows: int = 0) -> None:
        """Check that there is enough memory to solve for `width` features."""
        settings = self.settings
        kind = SOLVERS[self.solver or solver_for(settings.solver, settings.alpha, settings.dtype)]
        n_matrices = kind.to_solve if self.rule is None else kind.of_path + self.rule.neighbours
        room = room_for_matrices(width, n_matrices)
        if self._keeps_rows(width, n_rows):
            n_bytes = n_rows * (width * np.dtype(settings.dtype).itemsize + 8 * n_matrices * n_rows)
            what = f"The features of {n_rows} rows x {width} features, and products between rows,"
            room = room_for(what, n_bytes, "Use fewer features or rows.")
        with room:
            pass

    def _keeps_rows(self, width: int, n_rows: int) -> bool:
        """Whether rows are kept: for so few rows, products between rows are the smaller matrix."""
        settings = self.settings
        solver = self.solver or solver_for(settings.solver, settings.alpha, settings.dtype)
        plain = settings.forgetting == 1 and not settings.partial and solver == "cholesky"
        plain = plain and not (self.rule is not None and self.rule.neighbours)
        if self.inputs is not None:  # which stay as they are
            width -= self.inputs.n_rows * self.inputs.n_columns
        return plain and 0 < 2 * n_rows <= width

    def begin(self, width: int, n_outputs: int) -> RidgeReadout:
        """Return an empty readout with the same settings, and choose its solver."""
        self.check_room(width, self.n_expected)
        empty, settings = super().begin(width, n_outputs), self.settings
        if self._keeps_rows(width, self.n_expected):
            empty.rows = []
        empty.solver = self.solver or solver_for(settings.solver, settings.alpha, settings.dtype)
        empty.runs, empty.inputs = self.runs, self.inputs
        forgetting = settings.forgetting
        if self.sequences is not None:
            empty.neighbours = NeighbourSums(empty._no_sums(), *self.sequences)
        empty.kept = None if settings.classes is None else RowSample(forgetting=forgetting)
        return empty

    def go_on_from(self, earlier: RidgeReadout) -> None:
        """Continue with the solver and the sequences of an earlier chunk, or raise."""
        requested = self.settings.solver
        if requested not in ("auto", earlier.solver):
            raise ValueError(
                f"solver={requested!r} cannot continue the sums of earlier calls, which were made "
                f"with solver={earlier.solver!r}. Use fit, solver={earlier.solver!r} or "
                'solver="auto".'
            )
        self.solver, self.inputs = earlier.solver, earlier.inputs
        if self.rule is not None and self.rule.alternates:
            self.runs = copy.copy(earlier.runs) or Runs(earlier.n_rows)
        if self.rule is not None and self.rule.neighbours and earlier.n_rows:
            if earlier.neighbours is None:
                raise ValueError(
                    f"alpha_selection={self.settings.selection!r} compares neighbouring rows, but "
                    "earlier calls used another selection or a single alpha, and did not compare "
                    'them. Use fit, or alpha_selection="reml".'
                )
            self.sequences = (np.empty(0, np.int64), earlier.neighbours.last)

    @property
    def rule(self) -> SelectionRule | None:
        """Rule that chooses the penalty; None if alpha is a single number."""
        settings = self.settings
        if not is_path(settings.alpha):
            return None
        return settings.rule or rule_for(settings.selection, settings.forgetting)

    def cut(
        self, lengths: list[int], skips: list[int], *, continues: bool = False, number: int = 0
    ) -> Cuts:
        """Return the part of the sums that each row belongs to, under the selection rule."""
        rule, self.n_expected = self.rule, sum(lengths)
        if rule is None:
            return (
                Runs().cut(lengths, skips) if self.settings.halves else super().cut(lengths, skips)
            )
        if rule.neighbours:
            before = None if self.sequences is None else self.sequences[1]
            self.sequences = (starts_of(lengths, number, continues), before)
        if not rule.alternates:
            in_halves = self.settings.halves and not rule.min_blocks
            return (Runs() if in_halves else rule).cut(lengths, skips)
        if self.runs is None:
            self.runs = Runs()
        return self.runs.cut(lengths, skips, continues=continues)

    def after(self, earlier: RidgeReadout) -> RidgeReadout:
        """Return a readout of an earlier readout's rows, followed by the rows of this readout."""
        mine, earlier = self.summed(), earlier.summed()
        one = copy.copy(mine)
        # a half ages only with its own rows: if rows are no longer assigned to halves, earlier rows
        # become a single sum, which ages with all new rows
        keeps_parts = self.runs is not None or len(earlier.parts) < 2
        before = dict(earlier.parts) if keeps_parts else {0: earlier.total()}
        new = {p: s.after(before[p]) if p in before else s for p, s in mine.parts.items()}
        one.parts = before | new
        if self.neighbours is not None and earlier.neighbours is not None:
            one.neighbours = self.neighbours.after(earlier.neighbours)
        if earlier.kept is not None:
            one.kept = earlier.kept.copy()
            if mine.kept is not None:
                one.kept.merge(mine.kept)
        return one

    def check_partial(self) -> None:
        """Raise if alpha is invalid, or its selection depends on the number of later rows."""
        # otherwise `solve`, which may be called much later, would raise these errors
        check_alpha("alpha", self.settings.alpha)
        if is_path(self.settings.alpha):
            check_choice("alpha_selection", self.settings.selection, ("auto", *SELECTIONS))
        if self.rule is not None and self.rule.min_blocks and not self.rule.alternates:
            raise ValueError(
                f"partial_fit cannot choose alpha by alpha_selection={self.settings.selection!r}, "
                'which depends on how many rows will follow. Use alpha_selection="auto" or '
                '"reml", or set alpha to a single number.'
            )

    def sample(
        self, numbers: Array, features: Array, targets: Array, weights: Array | None = None
    ) -> None:
        """Store a sample of a classifier's rows, and compare neighbouring rows if the rule does."""
        if self.rows is not None:
            skip_missing = self.settings.skip_missing
            self.rows.append(block_of(numbers, features, targets, weights, skip_missing))
        elif self.kept is not None:
            self.kept.add(numbers, features, targets, weights)
        if self.neighbours is not None:
            self.neighbours.add(numbers, features, targets, weights)

    def separate(self) -> None:
        """Start a new sequence: the next rows are not neighbours of the previous ones."""
        if self.neighbours is not None:
            self.neighbours.separate()

    def update(
        self, features: Array, targets: Array, weights: Array | None = None, *, part: int = 0
    ) -> None:
        """Add rows to the sums of a part; `features` may be overwritten."""
        if self.rows is not None:  # `sample` has kept them
            self.rows[-1] = (part, *self.rows[-1][1:])
            return
        if part not in self.parts:
            self.parts[part] = self._no_sums()
        missing = "skip" if self.settings.skip_missing else "raise"
        self.parts[part].update(features, targets, weights, missing=missing, overwrite_h=True)

    def _no_sums(self) -> RowSums:
        """Return sums over no rows."""
        assert self.solver is not None
        kind, forgetting = SOLVERS[self.solver], self.settings.forgetting
        if kind is GramAccumulator and self.inputs is not None and self.inputs.apart:
            return self.inputs.sums(self.n_outputs, forgetting)
        return kind(self.width, self.n_outputs, forgetting=forgetting)

    def extend(self, features: Array, targets: Array, weights: Array | None) -> None:
        """Add rows that continue the previous ones; `features` may be overwritten."""
        start, n = 0, len(features)
        cuts = ((0, n),) if self.runs is None else self.runs.cut([n], [0], continues=True)[0]
        for part, end in cuts:
            rows = slice(start, end)
            self.update(
                features[rows], targets[rows], None if weights is None else weights[rows], part=part
            )
            start = end

    def merge(self, other: RidgeReadout) -> None:
        """Add the rows of another readout, whose sums may become part of this one."""
        if self.rows is not None:
            self.rows += other.rows or []
        for part, sums in other.parts.items():
            self.parts[part] = self.parts[part].merge(sums) if part in self.parts else sums
        if self.neighbours is not None and other.neighbours is not None:
            self.neighbours.merge(other.neighbours)
        if self.kept is None:
            self.kept = other.kept
        elif other.kept is not None:
            self.kept.merge(other.kept)

    def held_by_rows(self) -> RowsAndColumns | None:
        """Return the numbers of rows and columns if there is a single small penalty, else None."""
        settings = self.settings
        if isinstance(settings.alpha, str) or np.size(settings.alpha) != 1 or self.n_rows == 0:
            return None
        if self.rows is not None:  # at most half as many as columns
            return None
        sums = self.total()
        (alpha,) = np.ravel(settings.alpha).tolist()
        if alpha > _SMALL * sums.mean_square_sum():
            return None
        remembered = np.inf if sums.forgetting == 1 else 1 / (1 - sums.forgetting)
        width = self.width if self.inputs is None else self.width_of(self.inputs.least)
        columns = width + bool(settings.fit_intercept)
        return RowsAndColumns(sums.n_effective, remembered, columns, float(alpha))

    def spread_of_targets(self) -> Array:
        """Return the standard deviation of each target, (n_outputs,)."""
        return np.sqrt(variances_of(self.total()))

    def columns_apart(self, which: Sequence[int], among: Sequence[int]) -> float | None:
        """Return the ratio of a large column to a small one that it makes negligible, else None.

        A Gram matrix has half of the significant digits, and a penalty does not adapt to the units
        of columns.
        """
        if self.rule is None or self.solver != "cholesky" or not len(which) or not self.n_rows:
            return None
        columns = np.union1d(which, among)
        if self.rows is not None:
            rows = standard_columns(self.rows, columns)
            squares, mean, weight = rows.square_sums(), rows.mean, rows.weights.sum()
        else:
            total = self.total()
            assert isinstance(total, GramAccumulator)
            columns = columns[columns < total.n_features]
            squares, mean = total.square_sums()[columns], total.mean_h[columns]
            weight = total.weight
        varying = squares > weight * (_STILL * mean) ** 2
        small = squares[varying & np.isin(columns, which)].min(initial=np.inf)
        large = squares[np.isin(columns, among)].max()
        return float(np.sqrt(large / small)) if small < GramAccumulator.held * large else None

    def total(self) -> RowSums:
        """Return the sums over all rows, which must not be changed: they may be the only part."""
        # sorted by part: rows of short sequences are collected, so a later part may be added first
        first, *others = (sums for _, sums in sorted(self.parts.items()))
        for k, sums in enumerate(others):
            first = (first.copy() if k == 0 else first).merge(sums)
        return first

    def summed(self) -> RidgeReadout:
        """Return a readout of the same rows that has sums over them instead."""
        if self.rows is None:
            return self
        one = copy.copy(self)
        one.rows, one.parts, one.runs = None, {}, copy.copy(self.runs)
        one.settings = replace(self.settings, forgetting=1.0)
        one.kept = None if self.kept is None else RowSample()
        for part, numbers, features, *rest in self.rows:
            one.sample(numbers, features, *rest)
            one.update(features.copy(), *rest, part=part)
        one.settings = self.settings
        return one

    def solve(self) -> dict[str, Any]:
        """Return coefficients and penalty; parts to which no rows can be added are merged."""
        if self.n_rows == 0:
            raise ValueError("No rows to fit: every row has weight 0 or a missing target.")
        if self.rows is not None:
            found = (few := FewRows(self)).reduced().solve()
            fit = few.of_features(found["coef_"], found["intercept_"])
            if self.rule is None or not self.rule.alternates:
                self.rows = [(0, *block[1:]) for block in self.rows]
            return found | rounded(RidgeSolution(*fit, found["alpha_"], None), self.settings)
        settings, total = self.settings, self.total()
        intercept = settings.fit_intercept
        chosen, factor = dict[str, Any](), 1.0
        if self.inputs is not None:
            solution, solved, chosen = solve_with_inputs(self, total)
        elif self.rule is None:
            alpha = total._check_alpha(settings.alpha)
            solved = total._solve(alpha, intercept)
            solution = total._solution(solved.coef, alpha, intercept)
        else:
            solution, solved, chosen, factor = self.choose(total)
        # sums to which later rows are added
        if self.rule is None or not self.rule.alternates:
            self.parts = {0: total}
        found = rounded(solution, settings) | {"alpha_": solution.alpha} | chosen
        found["training_error_"] = total._leading(solution.coef.shape[1])._root_mean_squares(
            solution
        )
        if self.kept is not None:
            of_intercept = 1 / total.weight if intercept else 0.0
            found["temperature_"] = held_out_temperature(
                self.kept, solution, solved, of_intercept, factor
            )
        return found

    def choose(self, total: RowSums) -> tuple[RidgeSolution, Solved, dict[str, Any], float]:
        """Return the solution for the penalty that the rule chooses, and fitted attributes.

        The last result is the factor by which the scores of a classifier are too large in held-out
        blocks; 1 if there are no blocks.
        """
        settings = self.settings
        parts = dict(sorted(self.parts.items()))
        selection, rule = self.resolved()
        blocks = rule.blocks(parts)
        self._check_blocks(blocks, rule.min_blocks, total.n_samples)
        rule.check(selection, blocks)
        scaled = ScaledScores() if settings.classes is not None and blocks else None
        alphas = self.penalties(total)
        solution, solved = along_penalties(
            total,
            alphas,
            blocks,
            self._rest(blocks),
            scaled or rule,
            settings.fit_intercept,
            settings.alpha_per_target,
            self.units(total),
            self.neighbours,
        )
        chosen = {"alphas_": np.array(alphas, dtype=np.float64), "alpha_selection_": selection}
        chosen["alpha_scores_"] = solution.scores
        factor = 1.0 if scaled is None else scaled.factor_at(np.asarray(alphas), solution.alpha)
        return solution, solved, chosen, factor

    def resolved(self) -> tuple[str, SelectionRule]:
        """Return the rule and its name, after "auto" has been resolved for the rows so far."""
        selection, rule, parts = self.settings.selection, self.rule, list(self.parts.values())
        assert rule is not None
        aged = any(min(part.forgetting, part.ageing) < 1 for part in parts)
        if selection == "auto":
            few = len(parts) < 2 or min(part.n_samples for part in parts) < _LEAST_HALF
            selection = "reml" if few or aged else "halves"
            return selection, SELECTIONS[selection]
        if rule.alternates and aged:
            raise ValueError(
                f"alpha_selection={selection!r} compares parts of the rows, but rows of earlier "
                'calls are partly forgotten. Use fit, or alpha_selection="auto" or "reml".'
            )
        return selection, rule

    def penalties(self, total: RowSums) -> Any:
        """Return the penalties to choose from."""
        given = self.settings.alpha
        return default_path(total, self.leading) if isinstance(given, str) else given

    def units(self, total: RowSums) -> ArrayLike:
        """Return the units in which scores of outputs are summed."""
        # scores of classes have the same unit: their sum is the Brier score
        return variances_of(total) if self.settings.classes is None else 1.0

    def width_of(self, n_rows: int) -> int:
        """Return the number of features with so many rows of the input."""
        assert self.inputs is not None
        fewer = self.inputs.chosen or n_rows < self.inputs.n_rows
        return self.inputs.width(n_rows) if fewer else self.width

    def narrowed(self, n_rows: int, ratio: float = 1.0) -> RidgeReadout:
        """Return a readout that receives fewer rows of the input; not to be changed.

        A ratio of the states' penalty to the input's multiplies these rows by its root: one penalty
        is then both.
        """
        assert self.inputs is not None
        width = self.width_of(n_rows)
        scales = self.inputs.scales(width, n_rows, ratio)
        one = copy.copy(self)
        one.width, one.inputs = width, None
        if self.settings.rule is not None and scales is not None:
            one.settings = replace(self.settings, rule=self.settings.rule.scaled(scales))
        one.parts = {part: sums._leading(width, scales) for part, sums in self.parts.items()}
        if self.rows is not None:
            one.rows = [(*block[:2], block[2][:, :width], *block[3:]) for block in self.rows]
        if self.neighbours is not None:
            one.neighbours = copy.copy(self.neighbours)
            one.neighbours.differences = self.neighbours.differences._leading(width, scales)
        return one

    def held_out_fits(self, alpha: float | Array) -> dict[int, tuple[Array, Array]]:
        """Return, for each part that is held out, coefficients and intercept without its rows.

        To be called before `solve`, which may merge the parts. The penalty `alpha`, a float or
        (n_outputs,), was chosen from all rows. The result is empty if there are not enough rows for
        two parts.
        """
        if self.rows is not None:
            found = (few := FewRows(self)).reduced().held_out_fits(alpha)
            return {part: few.of_features(*fit) for part, fit in found.items()}
        parts, rule = dict(sorted(self.parts.items())), self.rule
        blocks = rule.blocks(parts) if rule is not None and rule.min_blocks else []
        blocks = blocks or list(parts.values())
        sizes = [block.n_samples for block in blocks]
        n_rows = sum(part.n_samples for part in parts.values())
        if min(sizes) < _LEAST_HALF or n_rows - max(sizes) < _LEAST_HALF:
            return {}
        rest = self._rest(blocks)
        others = folds(self.total(), blocks, () if rest is None else (rest,))
        intercept, fits = self.settings.fit_intercept, {}
        for block, (fitted, _) in zip(blocks, others, strict=True):
            solved = fitted._solution(fitted._solve(alpha, intercept).coef, alpha, intercept)
            (place,) = (k for k, part in parts.items() if part is block)
            fits[place] = solved.coef, solved.intercept
        return fits

    def _rest(self, blocks: list[RowSums]) -> RowSums | None:
        """Return the sum over the rows that are not scored."""
        total: RowSums | None = None
        for part in self.parts.values():
            if not any(part is block for block in blocks):
                total = part if total is None else total.copy().merge(part)
        return total

    def _check_blocks(self, blocks: list[RowSums], min_blocks: int, n_rows: int) -> None:
        sizes = [block.n_samples for block in blocks]
        if min_blocks and (len(sizes) < min_blocks or min(sizes) < 1 or max(sizes) >= n_rows):
            raise ValueError(
                f"alpha_selection={self.settings.selection!r} has too few rows to choose alpha: "
                f"{n_rows} rows remain after the washout, in parts of {sizes} rows. Use a longer "
                'series, a smaller washout, or alpha_selection="auto" or "reml".'
            )

    def row_learner(self, model: Any) -> RidgeRows:
        """Return an online learner that continues row by row, under the penalties of the fit."""
        settings = replace(self.settings, decode=None)  # a function could not be saved
        readout = self.renewed(settings)
        readout = copy.deepcopy(readout) if self.rows is None else readout.summed()
        n_rows, input_alpha = getattr(model, "n_lags_", 1), getattr(model, "input_alpha_", None)
        return RidgeRows(readout, model.alpha_, input_alpha, n_rows)

    def fade(self, *, forgetting: float | None = None, factor: float = 1.0) -> None:
        """Multiply the weights of all rows so far by `factor`, and set the forgetting factor."""
        if min(1.0 if forgetting is None else forgetting, factor) < 1 and self.parts:
            # each row must age with all later rows, including the other half's: keep a single sum
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
        """Return coefficients and intercept, for a compiled loop."""
        return np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)

    @classmethod
    def outputs(cls, model: Any) -> Outputs:
        """Return the function from features to outputs."""
        coef, intercept = cls.linear(model)
        return lambda features: features @ coef.T + intercept

    def linear_path(
        self, alphas: Sequence[float], *, model: Any, fit_intercept: bool, dtype: Any
    ) -> list[Any] | None:
        """Return coefficients and intercept under each penalty, from one decomposition."""
        if self.rows is not None:
            few = FewRows(self.renewed(ReadoutSettings(fit_intercept=fit_intercept)))
            options: Any = {"model": model, "fit_intercept": fit_intercept, "dtype": "float64"}
            path = few.reduced().linear_path(alphas, **options)
            return [tuple(each.astype(dtype) for each in few.of_features(*one)) for one in path]
        one, scales = self, None
        if self.inputs is not None:
            penalties = np.ravel(model.alpha_)[0], np.ravel(model.input_alpha_)[0]
            ratio = ratio_of(*penalties)
            one = self.narrowed(model.n_lags_, ratio)
            scales = self.inputs.scales(one.width, model.n_lags_, ratio)
        total = one.total()
        path = total.path(fit_intercept)
        each = [total._solution(path.coef(alpha), alpha, fit_intercept) for alpha in alphas]
        if scales is not None:
            each = [one._replace(coef=one.coef * scales) for one in each]
        with np.errstate(over="ignore", invalid="ignore"):
            return [(one.coef.astype(dtype), one.intercept.astype(dtype)) for one in each]

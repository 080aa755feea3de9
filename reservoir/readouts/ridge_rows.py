"""Online ridge for sessions, whose coefficients are updated after every row."""

from __future__ import annotations

from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.readouts.contract import Decode, Readout, ReadoutSettings, RowLearner
from reservoir.readouts.input_rows import ratio_of
from reservoir.readouts.penalised_factor import PenalisedFactor
from reservoir.readouts.sums import RidgeSolution

_GATHERED_ROWS = 256  # rows that are added to the sums at once, by a single product


@saved
class RidgeRows(RowLearner):
    """Triangular factors for the coefficients, and the sums from which partial_fit continues.

    `readout` is a copy of the estimator's with its settings, which only this learner uses. The
    penalties are those of the fit, floats or (n_outputs,), and do not change; an `input_alpha` of
    None is `alpha`. The fit uses `n_rows` rows of the input.
    """

    name = "the built-in ridge"
    # factors of the first features, for each penalty; missing in files of earlier versions
    scales: tuple[Array, ...] = ()

    def __init__(self, readout: Any, alpha: Any, input_alpha: Any, n_rows: int = 1) -> None:
        self.kept, settings = readout, readout.settings
        alphas = np.broadcast_to(np.asarray(alpha, dtype=np.float64), (readout.n_outputs,))
        each, which, self.which = np.unique(alphas, return_index=True, return_inverse=True)
        inputs = alphas if input_alpha is None else np.broadcast_to(input_alpha, alphas.shape)
        self.factors, scales = [], []
        for one, other in zip(each.tolist(), inputs[which].tolist(), strict=True):
            ratio = ratio_of(one, other)
            narrow = readout if readout.inputs is None else readout.narrowed(n_rows, ratio)
            if readout.inputs is not None:
                factors = readout.inputs.scales(narrow.width, n_rows, ratio)
                scales.append(np.ones(narrow.width) if factors is None else factors)
            options = {name: getattr(settings, name) for name in ("forgetting", "fit_intercept")}
            self.factors.append(PenalisedFactor.from_sums(narrow.total(), one, **options))
        self.scales = tuple(scales)
        self.waiting: list[tuple[Array, Array, Array | None]] = []
        self.n_waiting = 0

    def learn(self, features: Array, targets: Array, weights: Array | None, decode: Decode) -> None:
        """Add rows to the factors immediately, and to the sums in batches."""
        for k, factor in enumerate(self.factors):
            rows = features[:, : len(self.scales[k])] * self.scales[k] if self.scales else features
            factor.add(rows, targets, weights)
        self.waiting.append((features.copy(), targets, weights))
        self.n_waiting += len(features)
        if self.n_waiting >= _GATHERED_ROWS:
            self._add_to_sums()

    def sample(
        self, numbers: Array, features: Array, targets: Array, weights: Array | None
    ) -> None:
        """Store a sample of a classifier's rows, and compare neighbouring rows if the rule does."""
        self.kept.sample(numbers, features, targets, weights)

    def separate(self) -> None:
        """Start a new sequence: the next rows are not neighbours of the previous ones."""
        self.kept.separate()

    def _add_to_sums(self) -> None:
        if not self.waiting:
            return
        H, Y, w = zip(*self.waiting, strict=True)
        self.waiting, self.n_waiting = [], 0
        weights = None
        if any(part is not None for part in w):
            rows = zip(H, w, strict=True)
            weights = np.concatenate([np.ones(len(h)) if one is None else one for h, one in rows])
        self.kept.extend(np.concatenate(H), np.concatenate(Y), weights)

    def fitted(self, settings: ReadoutSettings) -> dict[str, Any]:
        """Return coefficients and intercept."""
        found = [factor.coef() for factor in self.factors]
        if self.scales:
            pairs = zip(found, self.scales, strict=True)
            found = [(coef * scales, intercept) for (coef, intercept), scales in pairs]
        coef, intercept = found[0]
        if len(found) > 1:
            rows = range(len(self.which))
            coef = np.stack([found[self.which[k]][0][k] for k in rows])
            intercept = np.stack([found[self.which[k]][1][k] for k in rows])
        return rounded(RidgeSolution(coef, intercept, 0.0, None), settings)

    def readout(self) -> Readout:
        """Return the readout, with all rows added to its sums."""
        self._add_to_sums()
        return self.kept

    @property
    def forgetting(self) -> float:
        """Factor by which each new row multiplies the weights of all earlier rows."""
        return self.factors[0].forgetting

    @forgetting.setter
    def forgetting(self, value: float) -> None:
        self._add_to_sums()
        for factor in self.factors:
            factor.forgetting = value
        self.kept.fade(forgetting=self.factors[0].forgetting)

    def forget(self, factor: float) -> None:
        """Multiply the weights of all rows so far by `factor`; the penalty is unchanged."""
        self._add_to_sums()
        for each in self.factors:
            each.discount(factor)
        self.kept.fade(factor=factor)


def rounded(solution: RidgeSolution, settings: ReadoutSettings) -> dict[str, Any]:
    """Return coefficients and intercept in the dtype and the shape of the outputs."""
    dtype, one = settings.dtype, settings.one_dimensional
    with np.errstate(over="ignore", invalid="ignore"):
        coef, intercept = solution.coef.astype(dtype), solution.intercept.astype(dtype)
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError(
            f"The readout's coefficients overflow {dtype}: the targets are near the largest "
            "float. Scale y, for instance with TransformedTargetRegressor."
        )
    return {
        "coef_": coef[0] if one else coef,
        "intercept_": intercept[0] if one else intercept,
    }

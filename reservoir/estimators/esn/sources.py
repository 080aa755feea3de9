"""From an estimator's parameters to its source of features: the kinds there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir.building import Recipe
from reservoir.dynamics import Reservoir
from reservoir.dynamics.feature_source import FeatureSource
from reservoir.dynamics.features import DrivenReservoir
from reservoir.dynamics.past_inputs import PastInputs
from reservoir.dynamics.polynomial_lags import LaggedPolynomials
from reservoir.dynamics.timed_reservoir import TimedReservoir
from reservoir.estimators._base import read_dtype
from reservoir.stability import Certificate, certify, drive_range
from reservoir.stability.certified_bias import MARGIN, widened_range


class Ranges(NamedTuple):
    """What bias="stable" certifies: ranges of the inputs, and of outputs that are fed back.

    Each is an array of shape (2, n_columns), lower ends first. `steps` are the shortest and the
    longest step, where rows come at irregular times.
    """

    inputs: Array
    outputs: Array | None = None
    steps: tuple[float, float] | None = None

    def drive(self, reservoir: Reservoir) -> tuple[Array, Array]:
        """Return the bounds of the drive."""
        if self.outputs is None:
            return drive_range(reservoir, *self.inputs)
        return drive_range(
            reservoir, *self.inputs, feedback_low=self.outputs[0], feedback_high=self.outputs[1]
        )

    def certify(self, reservoir: Reservoir) -> Certificate:
        """Return the certificate of a reservoir for the ranges."""
        certificate = certify(reservoir, *self.drive(reservoir), step_range=self.steps)
        return replace(certificate, input_range=self.inputs, output_range=self.outputs)


def ranges_of(
    arrays: Sequence[Array],
    targets: Sequence[Array] | None = None,
    steps: Sequence[Array] | None = None,
) -> Ranges:
    """Return the ranges of a series and of the targets that are fed back, widened by a margin.

    `steps` are the lengths of the steps of each series, if they differ; their range is widened by
    a tenth of either end.
    """
    lengths = None
    if steps is not None:
        taken = np.concatenate([[1.0], *steps])  # a first step takes 1
        lengths = float(taken.min() / (1 + MARGIN)), float(taken.max() * (1 + MARGIN))
    outputs = None if targets is None else widened_range(targets)
    return Ranges(widened_range(arrays), outputs, lengths)


def reservoir_source(
    estimator: Any,
    rows: Sequence[Array],
    targets: Sequence[Array] | None,
    generator: np.random.Generator,
) -> tuple[DrivenReservoir | PastInputs | TimedReservoir, Certificate | None]:
    """Return the reservoir that an estimator's parameters describe, and what is proved of it."""
    clock = getattr(estimator, "_clock", None)
    steps = None
    if clock is not None:
        steps = [np.diff(each[:, clock.place]) for each in rows]
        rows = [clock.channels(each) for each in rows]
    stable = isinstance(estimator.bias, str) and estimator.bias == "stable"
    ranges = ranges_of(rows, targets, steps) if stable else None
    n_outputs = 0 if targets is None else targets[0].shape[1]
    recipe = Recipe.from_attributes(
        estimator,
        drive_bounds=None if ranges is None else ranges.drive,
        step_range=None if ranges is None else ranges.steps,
        feedback_scaling=estimator.feedback_scaling if n_outputs else 1.0,
        dtype=read_dtype(estimator.dtype),
    )
    repeatable = isinstance(estimator.random_state, Integral)
    n_features = rows[0].shape[1]
    built = recipe.build(estimator.n_units, n_features, n_outputs, generator, repeatable=repeatable)
    source = DrivenReservoir.seen_through(
        getattr(estimator, "augment", None),
        built,
        rows[0],
        include_input=bool(getattr(estimator, "include_input", False)),
    )
    certificate = None if ranges is None else ranges.certify(built)
    if clock is not None:
        return TimedReservoir(source, clock), certificate
    n_lags = int(getattr(estimator, "n_lags", 1))
    return source if n_lags == 1 else PastInputs(source, n_lags, int(estimator.skip)), certificate


def polynomials_source(
    estimator: Any,
    rows: Sequence[Array],
    targets: Sequence[Array] | None,
    generator: np.random.Generator,
) -> tuple[LaggedPolynomials, None]:
    """Return the polynomials that an estimator's parameters describe."""
    source = LaggedPolynomials.for_inputs(
        rows,
        n_lags=estimator.n_lags,
        skip=estimator.skip,
        degree=estimator.degree,
        basis=estimator.basis,
    )
    return source, None


Builder = Callable[..., tuple[FeatureSource, Certificate | None]]

#: Kind of source -> ``build(estimator, rows, targets, generator)``, what makes it from an
#: estimator's parameters and the training data (`targets`: None if outputs are not fed back), with
#: a certificate or None. An estimator says which kind it wants by its attribute `_source_kind`.
SOURCES: dict[str, Builder] = {
    "reservoir": reservoir_source,
    "lagged_polynomials": polynomials_source,
}

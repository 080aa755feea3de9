"""Bands around a forecast and sample paths, learned from errors at rolling origins.

In the spirit of split-conformal prediction (Vovk, Gammerman and Shafer 2005; for several horizons
Stankeviciute, Alaa and van der Schaar 2021), errors of forecasts of held-out rows predict the
errors of a new forecast. Errors at successive origins overlap and depend on each other, so there is
no guarantee for finite samples:

- Errors of a positive column are ratios (differences of logarithms) if the likelihood shows that
  ratios vary less in size than differences.
- The scale by horizon is the mean absolute error, made monotone by isotonic regression. The first
  origin has half the weight of the last. Beyond the validated horizons, the scale grows as a power
  of the horizon that is fitted to the last two thirds of them.
- If at least four periods of a season were forecast, and the sizes of errors clearly differ between
  its phases (p < 0.001), each phase has a factor to the scale: its mean relative error, shrunk.
- Absolute errors, divided by their scale, are pooled over horizons and origins. Their quantiles are
  used up to a coverage of 95 %, and those of a normal distribution beyond it, joined continuously.
  Bands are symmetric on the scale of the errors.
- If there are few errors, quantiles are shrunk towards normal ones, and multiplied by the ratio of
  the quantiles of Student's t to normal ones, with three degrees of freedom for each window of
  `n_steps` forecast rows (more beyond the validated horizons; at least a season if the first
  forecasts saw few periods). There are at least 2, if two rows were forecast, and at most 12, or a
  quarter of the windows if that is more: the future often differs from the past by more than the
  few windows of the past differ.
- Bands are never narrower than those of the error of rounding, which is uniform with the width of
  the resolution: the least difference of two values of the series.

If the future differs from the origins, as at a turning point of a short and smooth series, bands
are too narrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.series_models import _error_scales as error_scales

_PER_WINDOW = 3  # degrees of freedom for each window of rows that is as long as a forecast
_LEAST, _MOST = 2.0, 12.0  # bounds on the degrees of freedom of Student's t, if windows are few
_MANY = 12  # if they are many, it has at most 1 / 12 of the errors' degrees of freedom
_OUTERMOST = 0.95  # coverage up to which empirical quantiles of errors are used
_FARTHEST = 0.99  # coverage above which the allowance for few errors is constant
_N_QUANTILES = 96
_NORMAL_FREEDOM = 6  # degrees of freedom at which normal and empirical quantiles weigh the same
_COMMON = 5  # degrees of freedom at which half of the measured common variance is used
_MEAN_OF_NORMAL = np.sqrt(2 / np.pi)  # mean absolute value of a standard normal variable
_CLOSEST = 0.999  # largest correlation of neighbouring horizons
_MEASURED = 0.5  # weight of the measured correlations; the remainder is from a Markov chain


@saved
@dataclass(frozen=True, eq=False)
class Bands:
    """The distribution of forecast errors, for bands and sample paths.

    Errors are ratios in the columns of `log`. `scales`, one array per column, are non-decreasing
    mean absolute errors by horizon, which later grow with the powers `growths`, in [0, 1]. `along`
    and `across` are correlations of horizons and of columns. `phases`, one array per column, are
    factors to the scales by the number of the forecast row modulo their length, which is 1 for
    columns whose errors do not depend on a season.
    """

    log: Array
    scales: tuple[Array, ...]
    growths: Array
    quantiles: Array  # (96, n_outputs), of errors per scale, at coverages from 0 to 0.95
    freedom: Array
    along: Array
    across: Array
    rounding: Array | None = None  # standard deviations
    common: float | None = None  # share of variance of all steps of a path; None in older files
    phases: tuple[Array, ...] | None = None

    @classmethod
    def of(
        cls,
        point: Array,
        followed: Array,
        origins: Array,
        positive: Array,
        *,
        window: float = 0.0,
        resolution: Array | None = None,
        grows: bool = False,
        seasons: Sequence[float] = (),
    ) -> Bands:
        """Learn the distribution of errors from forecasts `point` and actual values `followed`.

        Both are (n_origins, n_steps, n_outputs), in the units of the series; actual values are NaN
        if unknown, and a column without any raises a ValueError. `origins` are the numbers of rows
        before them, ascending. Three degrees of freedom count for at least `window` rows.
        `resolution` is the least difference of two values of a column, 0 if all are equal. With
        `grows`, for series without a season whose rows depend on each other, later scales are
        widened, because a few windows show too little growth with the horizon. Scales may differ
        between the phases of one of the `seasons`, in rows.
        """
        known = np.isfinite(followed)
        if not known.any(axis=(0, 1)).all():
            empty = np.flatnonzero(~known.any(axis=(0, 1))).tolist()
            raise ValueError(
                f"columns {empty} have no observed value after any origin, so that there are no "
                "errors from which to learn bands. Use more rows, or drop these columns."
            )
        log = error_scales.log_columns(point, followed, positive)
        errors = np.where(known, _on_scale(followed, log, known) - _on_scale(point, log), np.nan)
        shares = error_scales.shares_of_origins(origins)
        phases = _scales_by_phase(errors, origins, shares, seasons)
        errors /= _at_rows(phases, np.add.outer(origins, np.arange(errors.shape[1])))
        sizes = [error_scales.sizes_by_horizon(column, shares) for column in _columns(errors)]
        scales = tuple(error_scales.rising(*of_column) for of_column in sizes)
        relative = _relative(errors, scales)  # before they are widened
        prior = error_scales.GROWING if grows else error_scales.WALKING
        if grows:
            n_windows = [_n_rows(column, origins) / column.shape[1] for column in _columns(errors)]
            scales = tuple(map(error_scales.widened, scales, n_windows))
        columns = _columns(relative)
        freedom = np.array([_degrees_of_freedom(column, origins, window) for column in columns])
        along, common = _between_horizons(relative)
        trust = float(freedom.mean() / (_COMMON + freedom.mean()))
        by_column = zip(columns, freedom.tolist(), strict=True)
        return cls(
            log,
            scales,
            np.array([error_scales.growth_of(*of_column, prior) for of_column in sizes]),
            np.column_stack([_quantiles(*each, shares) for each in by_column]),
            freedom,
            along,
            _between_outputs(relative),
            None if resolution is None else resolution / np.sqrt(12),
            trust * common,
            phases,
        )

    def around(self, point: Array, coverages: Sequence[float], first: int = 0) -> Array:
        """Return lower and upper bands around a forecast, (n_coverages, 2, n_steps, n_outputs).

        `point`, (n_steps, n_outputs), is in the units of the series, and positive in columns whose
        errors are ratios; `first` is the number of rows before it. Bands of a smaller coverage are
        inside those of a greater one.
        """
        self._check(point)
        requested = np.asarray(coverages, dtype=float)
        if not np.all((requested > 0) & (requested < 1)):
            raise ValueError(
                f"coverage={coverages!r} must be between 0 and 1, both excluded: with a coverage "
                "of 0.9, a band contains nine of ten values."
            )
        deviations = stats.norm.isf((1 - requested) / 2)  # finite for any requested < 1
        sizes = self._errors_at(deviations[:, None, None], len(point))
        reach = sizes * self._scales(len(point), first)
        ends = np.stack([self._moved(point, -reach), self._moved(point, reach)], axis=1)
        if self.rounding is None:
            return ends
        least = deviations[:, None, None] * self.rounding
        lower, upper = np.minimum(ends[:, 0], point - least), np.maximum(ends[:, 1], point + least)
        return np.stack([lower, upper], axis=1)

    def paths(
        self, point: Array, n_paths: int, generator: np.random.Generator, first: int = 0
    ) -> Array:
        """Draw sample paths, (n_paths, n_steps, n_outputs), around a forecast as in `around`.

        At each step they have the distribution of the bands; their errors are correlated between
        horizons and columns as those at rolling origins (a Gaussian copula), and beyond the
        validated horizons depend on the previous one. If sums of errors vary more, some variance is
        common to all steps of a path; this fraction is shrunk towards 0, by half at 5 degrees of
        freedom.
        """
        self._check(point)
        deviations = _dependent_normals(
            generator,
            (n_paths, *point.shape),
            self.along,
            self.across,
            growth=float(self.growths.mean()),
            common=_COMMON / (_COMMON + float(self.freedom.mean()))
            if self.common is None
            else self.common,
        )
        errors = np.sign(deviations) * self._errors_at(np.abs(deviations), len(point))
        paths = self._moved(point, errors * self._scales(len(point), first))
        if self.rounding is None:
            return paths
        least = point + deviations * self.rounding
        narrow = np.abs(paths - point) < np.abs(least - point)
        return np.where(narrow, least, paths)

    def _check(self, point: Array) -> None:
        if np.any(point[:, self.log] <= 0):
            raise ValueError(
                f"the forecast falls to {point[:, self.log].min():.3g} in a column that had only "
                "positive values, so that its errors are ratios. Clip the forecast above 0."
            )

    def _scales(self, n_steps: int, first: int = 0) -> Array:
        pairs = zip(self.scales, self.growths, strict=True)
        scales = np.column_stack([error_scales.extended(s, g, n_steps) for s, g in pairs])
        if self.phases is None:
            return scales
        return scales * _at_rows(self.phases, first + np.arange(n_steps))

    def _errors_at(self, deviations: Array, n_steps: int) -> Array:
        """Return the absolute errors at which |z| has the same quantile, relative to their scale.

        `deviations` can be broadcast to the result, which has shape (..., n_steps, n_outputs).
        """
        coverages = np.linspace(0, _OUTERMOST, _N_QUANTILES)
        edge = stats.norm.ppf((1 + _OUTERMOST) / 2)
        inner = stats.norm.ppf((1 + coverages) / 2)
        shape = (*deviations.shape[:-2], n_steps, len(self.log))
        deviations = np.broadcast_to(deviations, shape)
        found = np.empty(shape)
        for j, (quantiles, scale) in enumerate(zip(self.quantiles.T, self.scales, strict=True)):
            size = deviations[..., j]
            plain = np.interp(size, inner, quantiles) * np.maximum(size / edge, 1.0)
            windows = np.minimum(len(scale) / np.arange(1, n_steps + 1), 1.0)
            found[..., j] = plain * _allowances(size, self.freedom[j] * windows)
        return found

    def _moved(self, point: Array, errors: Array) -> Array:
        """Return a forecast with added errors, in the units of the series."""
        with np.errstate(over="ignore", under="ignore"):
            ratios = point * np.exp(np.where(self.log, errors, 0.0))
        return np.where(self.log, ratios, point + errors)


def _on_scale(values: Array, log: Array, known: Array | bool = True) -> Array:
    return np.where(log, np.log(np.where(log & known, values, 1.0)), values)


def _columns(errors: Array) -> list[Array]:
    return [errors[..., j] for j in range(errors.shape[-1])]


def _relative(errors: Array, scales: tuple[Array, ...]) -> Array:
    """Return errors divided by their horizon's scale; they are unchanged where the scale is 0."""
    found = np.full(errors.shape, np.nan)
    for j, scale in enumerate(scales):
        part = errors[:, : len(scale), j]
        found[:, : len(scale), j] = np.where(
            scale > 0, part / np.where(scale > 0, scale, 1.0), part
        )
    return found


def _scales_by_phase(
    errors: Array, origins: Array, shares: Array, seasons: Sequence[float]
) -> tuple[Array, ...]:
    """Return the factors of each column's phases to its scales, as `Bands.phases`."""
    sizes = [error_scales.sizes_by_horizon(column, shares)[0] for column in _columns(errors)]
    columns = _columns(_relative(errors, tuple(sizes)))
    return tuple(error_scales.scales_by_phase(each, origins, seasons) for each in columns)


def _at_rows(phases: tuple[Array, ...], rows: Array) -> Array:
    """Return the factors at numbers of rows, (..., n_outputs)."""
    return np.stack([factors[rows % len(factors)] for factors in phases], axis=-1)


def _quantiles(relative: Array, freedom: float, shares: Array) -> Array:
    """Return weighted quantiles of absolute errors, for coverages from 0 to `_OUTERMOST`.

    If there are few errors, they are shrunk towards the quantiles of a normal distribution.
    """
    known = np.isfinite(relative)
    sizes = np.abs(relative[known])
    weights = np.broadcast_to(shares[:, None], relative.shape)[known]
    order = np.argsort(sizes, kind="stable")
    below = np.cumsum(weights[order]) - weights[order] / 2
    coverages = np.linspace(0, _OUTERMOST, _N_QUANTILES)
    empirical = np.interp(coverages, [0, *(below / weights.sum())], [0, *sizes[order]])
    normal = stats.norm.ppf((1 + coverages) / 2) * (sizes.mean() / _MEAN_OF_NORMAL)
    trust = freedom / (freedom + _NORMAL_FREEDOM)
    return trust * empirical + (1 - trust) * normal


def _n_rows(errors: Array, origins: Array) -> int:
    """Return the number of rows of a column with a known error, (n_origins, n_steps)."""
    rows = np.add.outer(origins, np.arange(errors.shape[1]))
    return len(np.unique(rows[np.isfinite(errors)]))


def _degrees_of_freedom(relative: Array, origins: Array, window: float) -> float:
    n_rows = _n_rows(relative, origins)
    return max(_PER_WINDOW * n_rows / max(relative.shape[1], window), min(n_rows, _LEAST))


def _allowances(deviations: Array, freedom: Array) -> Array:
    """Return quantiles of Student's t divided by normal quantiles, (..., n_steps).

    `freedom`, (n_steps,), are the degrees of freedom of the errors at each horizon.
    """
    farthest = stats.norm.ppf((1 + _FARTHEST) / 2)
    grid = np.linspace(0.01, farthest, 100)
    found = np.empty(deviations.shape)
    least, most = min(freedom[0], _LEAST), max(freedom[0] / _MANY, _MOST)
    rounded = np.round(np.clip(freedom, least, most), 1)  # few values: quantiles are slow
    for each in np.unique(rounded).tolist():
        ratios = stats.t.ppf(stats.norm.cdf(grid), each) / grid
        same = rounded == each
        found[..., same] = np.interp(deviations[..., same], grid, ratios)
    return found


def _between_horizons(relative: Array) -> tuple[Array, float]:
    """Return the correlations of errors between horizons, and the variance common to all of them.

    `relative`, (n_origins, n_steps, n_outputs), are errors divided by their scale; NaN where
    unknown. The correlations are the mean of two estimates, from complete trajectories and from a
    Markov chain of neighbours, since few trajectories say little about distant horizons. The common
    fraction of the variance, in [0, 1), makes sums of errors vary as they do in the trajectories.
    """
    known = np.isfinite(relative)
    filled = np.where(known, relative, 0.0)
    both = known[:, 1:] & known[:, :-1]
    left, right = np.where(both, filled[:, :-1], 0.0), np.where(both, filled[:, 1:], 0.0)
    norms = np.sqrt(np.square(left).sum((0, 2)) * np.square(right).sum((0, 2)))
    products = (left * right).sum((0, 2))
    steps = np.where(norms > 0, products / np.where(norms > 0, norms, 1.0), 0.0)
    steps = np.clip(steps, -_CLOSEST, _CLOSEST)
    chain = _chain(steps)
    whole = known.all(axis=(1, 2))
    trajectories = np.swapaxes(relative[whole], 1, 2).reshape(-1, relative.shape[1])
    norms = np.sqrt(np.square(trajectories).sum(axis=0))
    if min(trajectories.shape) < 2 or not np.all(norms > 0):
        return chain, 0.0
    unit = trajectories / norms
    measured = unit.T @ unit
    found = _MEASURED * measured + (1 - _MEASURED) * chain
    least = found.size * (1 - _CLOSEST)  # below it, all errors are one
    common = (measured.sum() - found.sum()) / max(found.size - found.sum(), least)
    return found, max(float(common), 0.0)


def _chain(steps: Array) -> Array:
    """Return the correlations of a Markov chain, from the correlations between neighbours."""
    size = len(steps) + 1
    found = np.eye(size)
    for k in range(1, size):
        found[k, :k] = found[:k, k] = found[k - 1, :k] * steps[k - 1]
    return found


def _between_outputs(relative: Array) -> Array:
    """Return the correlations of errors between columns, (n_outputs, n_outputs)."""
    n_outputs = relative.shape[-1]
    rows = relative.reshape(-1, n_outputs)
    rows = rows[np.isfinite(rows).all(axis=1)]
    norms = np.sqrt(np.square(rows).sum(axis=0))
    unit = rows / np.where(norms > 0, norms, 1.0)
    found = _CLOSEST * unit.T @ unit
    np.fill_diagonal(found, 1.0)
    return found


def _dependent_normals(
    generator: np.random.Generator,
    shape: tuple[int, int, int],
    along: Array,
    across: Array,
    *,
    growth: float,
    common: float,
) -> Array:
    """Draw standard normal variables that are correlated between steps and between columns.

    The result has the `shape` (n_paths, n_steps, n_outputs). Steps beyond the correlations `along`,
    (n_validated, n_validated), follow a Markov chain, in which 1 minus the correlation of
    neighbours falls as the horizon to the power -2 * growth: for a random walk (growth 0.5), as one
    over it. `across` are the correlations of columns. `common` is the variance shared by all steps
    of a path.
    """
    (n_paths, n_steps, n_outputs), n_known = shape, len(along)
    # drawn step by step, with the root of all correlations: longer paths begin with the same steps
    whole = generator.standard_normal((n_paths, 1, n_outputs)) @ _root(across).T
    n_drawn = max(n_steps, n_known)
    mixed = generator.standard_normal((n_drawn, n_paths, n_outputs)) @ _root(across).T
    found = np.empty((n_drawn, n_paths, n_outputs))
    found[:n_known] = np.tensordot(_root(along), mixed[:n_known], 1)
    gaps = 1 - np.diag(along, 1)
    latest = np.arange(len(gaps) * 3 // 4, len(gaps))
    rate = (gaps[latest] * (latest + 1.0) ** (2 * growth)).mean() if len(latest) else 1.0
    for h in range(n_known, n_steps):
        step = float(np.clip(1 - rate / h ** (2 * growth), -_CLOSEST, _CLOSEST))
        found[h] = step * found[h - 1] + np.sqrt(1 - step**2) * mixed[h]
    found = found[:n_steps].swapaxes(0, 1)
    return np.sqrt(1 - common) * found + np.sqrt(common) * whole


def _root(correlations: Array) -> Array:
    """Return the symmetric square root of a correlation matrix, which may be singular.

    This root is unique; with another root, paths would depend on the signs that a linear algebra
    library chooses for eigenvectors.
    """
    values, vectors = np.linalg.eigh(correlations)
    root: Array = vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
    return root

"""Models that are learned from several series together, and compared by forecasts of them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reservoir._typing import Array, Report
from reservoir._workers import one_blas_thread, run_jobs
from reservoir.series_models.candidates import Candidate, Forecasting, candidates_for, costs_of
from reservoir.series_models.ensemble import (
    Ensemble,
    Learned,
    default_steps,
    favours,
    handicaps,
    without_small,
)
from reservoir.series_models.mean_of_rows import may_be_independent
from reservoir.series_models.rolling import (
    RollingForecasts,
    shares_by,
    values_after,
)
from reservoir.series_models.series_data import Bounds, SeriesData, origins_of


def learn_shared(
    series: Sequence[SeriesData],
    *,
    n_networks: int,
    n_steps: int | None,
    widths: float,
    seed: int,
    n_jobs: int | None,
    report: Report,
) -> list[Learned]:
    """Compare models on several series together, and fit the models of the average.

    Common to all are the readouts of networks and autoregressions, the errors by which models are
    chosen, and the weights, which increase if other models need more rows. Units, bounds and all
    other models are separate. The series have the same columns, known inputs and seasons. One
    series gives the same forecasts as `learn`, whose other parameters these are.
    """
    longest = max(series, key=lambda data: data.n_rows)
    positive: Array = np.any([data.positive for data in series], axis=0)
    intermittent = any(data.intermittent.any() for data in series)
    candidates = candidates_for(
        replace(longest, positive=positive),
        n_networks,
        intermittent=intermittent,
        independent=all(map(may_be_independent, series)),
    )
    bounds = [Bounds.of(data.values, data.positive, widths, data.possible) for data in series]
    steps = [default_steps(data) if n_steps is None else n_steps for data in series]
    jobs = [(candidate, series, steps, bounds, seed) for candidate in candidates]
    results = run_jobs(roll_shared, jobs, n_jobs)
    costs = costs_of(candidates, series)
    by_model = list(report(results, costs, "models", unit="model"))
    rolled = []
    for i, (data, n) in enumerate(zip(series, steps, strict=True)):
        origins = np.concatenate(origins_of(data, n))
        one = np.stack([model[i] for model in by_model])
        followed = values_after(data, origins, n)
        rolled.append(RollingForecasts(origins, one, followed, data.intermittent))
    errors = shared_errors(rolled)
    n_rows = sum(data.n_rows for data in series)
    weighted = shared_errors(rolled, typical=True)
    weighted *= handicaps(candidates, n_rows, longest.seasons)
    n_windows = sum(rolling.n_windows for rolling in rolled)
    common = shares_by(weighted, n_windows, favours(candidates))
    shares = [shares_in(rolling, common) for rolling in rolled]
    used = np.flatnonzero(np.any(shares, axis=0)).tolist()
    fits = list(run_jobs(fit_candidate, [(candidates[m], series, seed) for m in used], n_jobs))
    learned = []
    for i, rolling in enumerate(rolled):
        pairs = [(fit[i], shares[i][m]) for m, fit in zip(used, fits, strict=True) if shares[i][m]]
        members, weights = zip(*pairs, strict=True)
        ensemble = Ensemble(list(members), np.array(weights), bounds[i])
        # the weights follow from the errors on all series, of which those of this one are few
        average = rolling.combined(shares[i])
        learned.append(Learned(ensemble, candidates, errors, shares[i], rolling, average))
    return learned


@one_blas_thread()
def roll_shared(
    candidate: Candidate,
    series: Sequence[SeriesData],
    n_steps: Sequence[int],
    bounds: Sequence[Bounds],
    seed: int,
) -> list[Array]:
    """Fit a model to the first rows of all series, and return forecasts from later origins.

    Each fit uses about the same fraction of every series. A short series may have fewer fits;
    earlier fits of others then use the rows of its first fit. Forecasts of a series, of `n_steps`
    steps clipped to its `bounds`, are (n_origins_i, n_steps_i, n_outputs), NaN if it had too few
    rows for the model.
    """
    ahead = [data.with_room(data.n_rows + n) for data, n in zip(series, n_steps, strict=True)]
    groups = [origins_of(data, n) for data, n in zip(series, n_steps, strict=True)]
    n_fits = max(map(len, groups))
    found: list[list[Array]] = [[] for _ in series]
    for k in range(n_fits):
        late = [k - (n_fits - len(group)) for group in groups]
        origins = [group[max(at, 0)] for group, at in zip(groups, late, strict=True)]
        parts = [data.until(int(at[0])) for data, at in zip(ahead, origins, strict=True)]
        for i, fitted in enumerate(fit_candidate(candidate, parts, seed)):
            if late[i] < 0:
                continue
            predicted = np.full((len(origins[i]), n_steps[i], parts[i].values.shape[1]), np.nan)
            if fitted is not None:
                predicted = fitted.forecast(ahead[i], origins[i], n_steps[i], bounds[i])
            found[i].append(predicted)
    return [np.concatenate(forecasts) for forecasts in found]


@one_blas_thread()
def fit_candidate(
    candidate: Candidate, series: Sequence[SeriesData], seed: int
) -> list[Forecasting | None]:
    """Return the model of each series, fitted to all together; None for series too short to fit."""
    long_enough = [data.n_rows >= candidate.model.min_rows for data in series]
    histories = [
        data.history(candidate.log) for data, fits in zip(series, long_enough, strict=True) if fits
    ]
    models: Any = iter(candidate.model.fit_shared(histories, seed) if histories else ())
    return [Forecasting(candidate.log, next(models)) if fits else None for fits in long_enough]


def shared_errors(rolled: Sequence[RollingForecasts], *, typical: bool = False) -> Array:
    """Return the error of each model over all series, relative to the best model, (n_models,).

    It is the mean of the model's errors on the series to which it could be fitted, each relative to
    the median error of all models on that series. The median is used because the error of the best
    model may be almost zero on a single series. `typical` is as in `RollingForecasts.errors`.
    """
    errors = np.stack([rolling.errors(typical=typical) for rolling in rolled])
    fitted = np.isfinite(errors)
    medians = np.nanmedian(np.where(fitted, errors, np.nan), axis=1, keepdims=True)
    relative = np.where(fitted, errors, 0.0) / medians
    counts = fitted.sum(axis=0)
    mean = np.where(counts, relative.sum(axis=0) / np.maximum(counts, 1), np.inf)
    return mean / mean.min()


def shares_in(rolling: RollingForecasts, shares: Array) -> Array:
    """Return the weights of models in the average of one series, (n_models,)."""
    fitted = np.isfinite(rolling.errors())
    available = np.where(fitted, shares, 0.0)
    if not available.any():
        available = rolling.weights()
    return without_small(available / available.sum())

"""Networks side by side: the fits and forecasts are those of each network alone."""

from dataclasses import replace

import numpy as np
import pytest

from helpers.series import data_of, seasonal
from reservoir.series_models import recursive_ridge, side_by_side
from reservoir.series_models.candidates import Candidate, candidates_for
from reservoir.series_models.growth_sums import MaskedSums, masked_ridge
from reservoir.series_models.recursive_ridge import LoopNetwork
from reservoir.series_models.series_data import Bounds, origins_of
from reservoir.series_models.side_by_side import fit_together, roll_loops

pytestmark = pytest.mark.both_engines
N_STEPS = 7


def loops_for(data):
    return [each for each in candidates_for(data, 1) if isinstance(each.model, LoopNetwork)]


def with_gaps(data):
    observed = data.observed.copy()
    observed[20:23] = observed[41, 0] = False
    return replace(data, observed=observed)


SERIES = {
    "one column": data_of(seasonal(50)),
    "few rows": data_of(seasonal(19), ()),
    "gaps": with_gaps(data_of(seasonal(60))),
    "columns and known inputs": with_gaps(data_of(seasonal(45, n_outputs=2), n_known=1)),
}


def one_by_one(candidate, data, bounds):
    """Forecasts from all origins, by one fit after the other."""
    found = []
    for group in origins_of(data, N_STEPS):
        predicted = np.full((len(group), N_STEPS, data.values.shape[1]), np.nan)
        if group[0] >= candidate.model.min_rows:
            fitted = candidate.fit(data.until(int(group[0])), 3)
            predicted[:] = fitted.forecast(data, group, N_STEPS, bounds)
        found.append(predicted)
    return np.concatenate(found)


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(
    ("name", "engine"), zip(SERIES, ["auto", "numpy", "auto", "numpy"], strict=True)
)
def test_all_fits_together_are_those_one_by_one(name, engine, monkeypatch):
    if engine == "numpy":
        monkeypatch.setattr(recursive_ridge, "engine_of", lambda *_: "numpy")
        monkeypatch.setattr(side_by_side, "engine_of", lambda *_: "numpy")
    data = SERIES[name]
    data = data.with_room(data.n_rows + N_STEPS)
    bounds = Bounds.of(data.values, data.positive, 1.0)
    long_lag = LoopNetwork(data.n_rows - N_STEPS - 8)  # only the last fit has enough rows
    candidates = [*loops_for(data)[-3:], Candidate("long lag", False, long_lag)]
    found = roll_loops(candidates, data, N_STEPS, bounds, 3)
    assert np.isnan(found[-1][0]).all()
    assert np.isfinite(found[-1][-1]).all()
    for candidate, ours in zip(candidates, found, strict=True):
        np.testing.assert_allclose(ours, one_by_one(candidate, data, bounds), rtol=1e-12)
    # fits to all rows, other models among them
    candidates.insert(1, candidates_for(data, 1)[0])
    end = np.array([data.n_rows])
    for candidate, fitted in zip(candidates, fit_together(candidates, data, 3), strict=True):
        alone = candidate.fit(data, 3).forecast(data, end, N_STEPS, bounds)
        np.testing.assert_allclose(fitted.forecast(data, end, N_STEPS, bounds), alone, rtol=1e-12)


def test_a_network_is_the_same_whatever_runs_beside_it(monkeypatch):
    """Other candidates, and how many lanes share a run."""
    pytest.importorskip("numba")
    data = SERIES["one column"]
    bounds = Bounds.of(data.values, data.positive, 1.0)
    candidates = loops_for(data)
    together = roll_loops(candidates, data, N_STEPS, bounds, 0)
    for candidate, ours in zip(candidates, together, strict=True):
        np.testing.assert_array_equal(roll_loops([candidate], data, N_STEPS, bounds, 0)[0], ours)
    monkeypatch.setattr(side_by_side, "_NUMBERS", 60 * 100 * 3)  # three lanes at a time
    np.testing.assert_array_equal(roll_loops(candidates, data, N_STEPS, bounds, 0), together)


@pytest.mark.parametrize("n_rows", [4, 40])
def test_a_ridge_of_few_or_many_rows_equals_that_of_sums(n_rows, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    features, targets = rng.normal(size=(n_rows, 8)) + 5, rng.normal(size=(n_rows, 4))
    features[:, 3] = 1.0
    observed = rng.random((n_rows, 4)) < 0.8
    observed[:, 1], observed[:, 2], observed[:, 3] = True, observed[:, 0], False
    sums = MaskedSums(8, observed)
    sums.update(features, targets, 0)
    found = masked_ridge(features, targets, observed, 0.5)
    for ours, theirs in zip(found, sums.solve(0.5), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)

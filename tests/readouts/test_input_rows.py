"""Tests of rows of the input beside the states: sums that keep them apart, and the search."""

import numpy as np
import pytest

from reservoir.readouts import GramAccumulator, QRAccumulator
from reservoir.readouts.input_rows import GramBesideOlderRows, InputRows, _Half

N_STATES, D, N_ROWS = 7, 2, 4
INPUTS = InputRows(N_STATES, D, N_ROWS, True)


def rows(rng, n=60, n_outputs=2):
    """Return states, present and older rows of an input, and targets."""
    H = rng.normal(size=(n, INPUTS.width(N_ROWS))) + 3.0
    H[:, 2] = 1.5  # a constant state
    return H, H @ rng.normal(size=(H.shape[1], n_outputs)) + rng.normal(size=(n, n_outputs))


def apart(n_outputs=2, **options):
    """Return empty sums with the older rows apart."""
    n = INPUTS.width(1)
    return GramBesideOlderRows(n, n_outputs, n_older=INPUTS.width(N_ROWS) - n, **options)


def same(one, other, tolerance=1e-9):
    """Assert that two accumulators have the same sums."""
    for name in ("n_samples", "weight", "mean_h", "mean_y", "cross", "sum_y2", "gram"):
        np.testing.assert_allclose(
            getattr(one, name), getattr(other, name), rtol=tolerance, atol=tolerance
        )


@pytest.mark.parametrize("forgetting", [1.0, 0.98])
def test_sums_apart_equal_sums_over_all_columns(global_random_seed, forgetting):
    """All rows, weights, missing targets, copies, merges and discounts; narrow sums to the bit."""
    rng = np.random.default_rng(global_random_seed)
    H, Y = rows(rng)
    Y[5] = np.nan
    w, n = rng.uniform(size=len(H)), INPUTS.width(1)
    made = [
        apart(forgetting=forgetting),
        GramAccumulator(H.shape[1], 2, forgetting=forgetting),
        GramAccumulator(n, 2, forgetting=forgetting),
    ]
    for k, sums in enumerate(made):
        width = n if k == 2 else H.shape[1]
        first = sums.copy().update(H[:20, :width], Y[:20], w[:20], missing="skip")
        second = sums.copy().update(H[20:, :width].copy(), Y[20:], w[20:], overwrite_h=True)
        made[k] = second.after(first).discounted(0.9)
    same(made[0]._leading(H.shape[1]), made[1])
    same(made[0]._leading(n + D), made[1]._leading(n + D))
    same(made[0]._leading(n), made[2], tolerance=0 if forgetting == 1 else 1e-12)


@pytest.mark.parametrize("kind", [GramAccumulator, QRAccumulator])
@pytest.mark.parametrize("n", [3, 60])
def test_leading_sums_are_those_of_scaled_columns(global_random_seed, kind, n):
    """The sums over the first columns, times their scales, of both kinds, with few rows, too."""
    rng = np.random.default_rng(global_random_seed)
    H, Y = rows(rng, n)
    scales = rng.uniform(0.1, 10, size=9)
    one = kind(H.shape[1], 2).update(H, Y)._leading(9, scales)
    other = kind(9, 2).update(H[:, :9] * scales, Y)
    for alpha in (0.1, 10.0):
        np.testing.assert_allclose(one.solve(alpha).coef, other.solve(alpha).coef, rtol=1e-7)
    np.testing.assert_allclose(one.path().gcv(1.0), other.path().gcv(1.0), rtol=1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_rows", [1, N_ROWS])
def test_fits_of_the_search_are_ridge_under_two_penalties(
    global_random_seed, fit_intercept, n_rows
):
    """The Schur complement gives the solution of the penalised normal equations."""
    rng = np.random.default_rng(global_random_seed)
    H, Y = rows(rng)
    width = INPUTS.width(n_rows)
    sums = apart().update(H, Y)
    half = _Half(sums._leading(INPUTS.width(1)), sums._leading(width), INPUTS, fit_intercept)
    pairs = np.array([(1e-3, 1e-6), (1e-3, 1e-3), (1e-3, 1e4), (5.0, 0.1), (1e3, 1e-5)])
    coefs, intercepts = half.fits(*pairs.T)
    X, T = H[:, :width].copy(), Y
    if fit_intercept:
        X, T = X - X.mean(axis=0), Y - Y.mean(axis=0)
    for k, (alpha, other) in enumerate(pairs):
        penalty = np.where(np.arange(width) < N_STATES, alpha, other)
        right = np.linalg.solve(X.T @ X + np.diag(penalty), X.T @ T).T
        np.testing.assert_allclose(coefs[k], right, rtol=1e-6, atol=1e-9)
        errors = np.square(Y - H[:, :width] @ coefs[k].T - intercepts[k]).sum(axis=0)
        found = half.errors(coefs[k : k + 1], intercepts[k : k + 1])[0]
        np.testing.assert_allclose(found, errors, rtol=1e-7)

"""The ridge of a sliding window against a fit of its rows."""

import numpy as np
import pytest
from test_penalised_factor import data, ridge

from reservoir.readouts import SlidingWindow


def assert_the_windows_fit(H, Y, n_rows, sizes, weights=None, every=7, rtol=1e-8, **options):
    """Feed the rows in chunks, and compare with the fit of the last `n_rows` now and then."""
    model = SlidingWindow(n_rows, **options)
    start, k = 0, 0
    while start < len(H):
        end = min(start + sizes[k % len(sizes)], len(H))
        model.partial_fit(
            H[start:end], Y[start:end], None if weights is None else weights[start:end]
        )
        if k % every == 0 or end == len(H):
            rows = slice(max(0, end - n_rows), end)
            h, y = H[rows], Y[rows]
            mean = h.mean(axis=0) if model.fit_intercept else 0.0
            seen = None if weights is None else weights[rows]
            C, c = ridge(h - mean, y, model.alpha, seen, model.fit_intercept)
            error = np.abs(model.predict(h) - ((h - mean) @ C.T + c))
            assert (error <= rtol * y.std(axis=0) + 1e-14 * np.abs(y).max()).all(), end
        start, k = end, k + 1
    return model


@pytest.mark.fast_cases("values")
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [1e-6, 1e-10, 1.0])
@pytest.mark.parametrize(
    ("n_rows", "sizes"), [(60, [1]), (60, [7, 1, 30]), (60, [100, 3]), (6, [1])]
)
def test_it_is_the_fit_of_the_window(n_rows, sizes, alpha, fit_intercept):
    H, Y = data(200, 12)
    assert_the_windows_fit(H, Y, n_rows, sizes, alpha=alpha, fit_intercept=fit_intercept)


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "case",
    ["outlying rows", "outlying values", "outlying targets", "constant", "dependent", "offset"],
)
def test_whatever_enters_and_leaves(case, seed):
    H, Y = data(250, 8, seed=seed)
    if case == "outlying rows":
        H[::97] *= 1e6
    elif case == "outlying values":
        H[::97, 3] *= 1e6
    elif case == "outlying targets":
        Y[::97] *= 1e6
    elif case == "constant":
        H[:, 2], H[:, 4], H[100:200, 5], H[120:220] = 2.5, 0.0, -1.0, H[120]
    elif case == "dependent":
        H = np.hstack([H[:, :2]] * 4) + 1e-6 * H
    else:
        H += 1e4
    assert_the_windows_fit(H, Y, 40, [1])


def test_weighted_rows_enter_and_those_of_weight_zero_do_not():
    H, Y = data(300, 6)
    weights = np.random.default_rng(0).uniform(0.1, 3, 300)
    assert_the_windows_fit(H, Y, 50, [1, 4], weights)
    weights[::3] = 0.0
    enter = weights > 0
    some = SlidingWindow(50).fit(H[:150], Y[:150], weights[:150])
    some.partial_fit(H[150:], Y[150:], weights[150:])
    all_ = SlidingWindow(50).fit(H[enter], Y[enter], weights[enter])
    np.testing.assert_allclose(some.predict(H), all_.predict(H), rtol=1e-9)


@pytest.mark.parametrize(
    "n_samples", [6_000, pytest.param(100_000, marks=pytest.mark.slow, id="very many")]
)
def test_after_many_rows_it_has_lost_no_digits(n_samples):
    H, Y = data(n_samples, 6)
    H[::2973] *= 1e6
    model = assert_the_windows_fit(H, Y, 100, [1, 9, 20], every=97)
    # nearly all of the way by up- and downdates
    assert model._window.n_remade <= 2 + 4 * n_samples // 2973


@pytest.mark.slow
def test_after_40_000_single_rows_it_has_lost_no_digits():
    H, Y = data(40_000, 10)
    model = assert_the_windows_fit(H, Y, 100, [1], every=397)
    assert model._window.n_remade < 10

"""The recursive ridge against least squares on all rows."""

import numpy as np
import pytest

from reservoir.readouts import GramAccumulator, QRAccumulator
from reservoir.readouts.penalised_factor import PenalisedFactor


def data(n_rows, n_features, n_outputs=2, seed=0, offset=0.0):
    rng = np.random.default_rng(seed)
    H = rng.normal(size=(n_rows, n_features)) * np.linspace(0.5, 2, n_features) + offset
    Y = H @ rng.normal(size=(n_features, n_outputs)) + 3
    return H, Y + rng.normal(size=Y.shape)


def ridge(H, Y, penalties, weights=None, fit_intercept=True):
    """Coefficients and intercepts by a QR decomposition of all rows over the penalties."""
    n, w = H.shape[1], np.ones(len(H)) if weights is None else weights
    shift = w @ H / w.sum() if fit_intercept else np.zeros(n)
    roots = np.sqrt(w)[:, None]
    ones = np.full((len(H), int(fit_intercept)), 1.0)
    rows = np.hstack([ones, H - shift]) * roots
    below = np.hstack([np.zeros((n, ones.shape[1])), np.diag(np.sqrt(penalties * np.ones(n)))])
    right = np.vstack([Y * roots, np.zeros((n, Y.shape[1]))])
    Q, R = np.linalg.qr(np.vstack([rows, below]))
    C = np.linalg.solve(R, Q.T @ right)
    if not fit_intercept:
        return C.T, np.zeros(Y.shape[1])
    return C[1:].T, C[0] - shift @ C[1:]


def assert_same_outputs(factor, reference, H, Y, rtol=1e-8):
    C, c = reference
    scale = rtol * Y.std(axis=0)
    assert (np.abs(factor.outputs(H) - (H @ C.T + c)) <= scale).all()
    C, c = factor.coef()
    assert (np.abs(factor.outputs(H) - (H @ C.T + c)) <= scale).all()


def fed(factor, H, Y, sizes, weights=None):
    """Add rows in chunks of the sizes given, again and again."""
    start, k = 0, 0
    while start < len(H):
        part = slice(start, start + sizes[k % len(sizes)])
        factor.add(H[part], Y[part], None if weights is None else weights[part])
        start, k = part.stop, k + 1
    return factor


@pytest.mark.parametrize("sizes", [[1], [7], [1, 60, 3], [1000]])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [1e-6, 1.0])
def test_it_is_the_ridge_of_all_rows(sizes, fit_intercept, alpha):
    H, Y = data(400, 20)
    weights = np.random.default_rng(1).integers(0, 3, len(H)).astype(float)
    for w in (None, weights):
        factor = PenalisedFactor(20, 2, alpha, fit_intercept=fit_intercept)
        for begin, end in ((0, 3), (3, 15), (15, 400)):
            fed(factor, H[begin:end], Y[begin:end], sizes, None if w is None else w[begin:end])
            seen = None if w is None else w[:end]
            expected = ridge(H[:end], Y[:end], alpha, seen, fit_intercept)
            assert_same_outputs(factor, expected, H, Y)


@pytest.mark.fast_cases(8)
@pytest.mark.parametrize("forgetting", [0.999, 0.95, 0.5, 0.01, 1e-9])
@pytest.mark.parametrize("sizes", [[1], [7, 1], [300]])
def test_forgetting_is_the_weighted_ridge(forgetting, sizes):
    H, Y = data(300, 12)
    factor = fed(PenalisedFactor(12, 2, 0.1, forgetting=forgetting), H, Y, sizes)
    assert (factor.penalties <= 0.1 * (1 + 1e-12)).all()
    least = 0.1 * forgetting if forgetting > 0.1 else 1.0
    assert (factor.penalties >= 0.1 * least * (1 - 1e-9)).all()
    weights = forgetting ** np.arange(len(H))[::-1].astype(float)
    expected = ridge(H, Y, factor.penalties, weights)
    assert_same_outputs(factor, expected, H, Y)


@pytest.mark.parametrize("kind", [GramAccumulator, QRAccumulator])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [1e-30, 1e-3])
def test_it_continues_from_sums(kind, fit_intercept, alpha):
    H, Y = data(300, 15, offset=3.0)
    sums = kind(15, 2).update(H[:200], Y[:200])
    factor = PenalisedFactor.from_sums(sums, alpha, fit_intercept=fit_intercept)
    solution = sums.solve(alpha, fit_intercept=fit_intercept)
    assert_same_outputs(factor, (solution.coef, solution.intercept), H, Y)
    fed(factor, H[200:], Y[200:], [1])
    assert_same_outputs(factor, ridge(H, Y, alpha, None, fit_intercept), H, Y)


def test_discounted_rows_weigh_less_and_the_penalty_stays():
    H, Y = data(200, 10)
    factor = PenalisedFactor(10, 2, 0.5)
    factor.add(H[:150], Y[:150])
    factor.discount(0.2)
    np.testing.assert_allclose(factor.penalties, 0.5)
    factor.add(H[150:], Y[150:])
    weights = np.where(np.arange(200) < 150, 0.2, 1.0)
    assert_same_outputs(factor, ridge(H, Y, 0.5, weights), H, Y)
    factor.discount(0.0)
    assert not np.any(factor.coef()[0])
    factor.add(H[150:], Y[150:])
    assert_same_outputs(factor, ridge(H[150:], Y[150:], 0.5), H, Y)


def test_reading_changes_nothing_and_copies_are_apart():
    H, Y = data(100, 10)
    read, unread = PenalisedFactor(10, 2, 1e-6), PenalisedFactor(10, 2, 1e-6)
    for h, y in zip(H, Y, strict=True):
        read.add(h[None], y[None])
        read.outputs(h[None])
        unread.add(h[None], y[None])
    other = read.copy()
    other.add(H[:5], -Y[:5])
    np.testing.assert_array_equal(read.outputs(H), unread.outputs(H))
    assert not np.array_equal(other.outputs(H), read.outputs(H))


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_what_cannot_be_squared_raises_and_changes_nothing(value):
    H, Y = data(20, 3)
    factor = PenalisedFactor(3, 2, 1.0)
    factor.add(H, Y)
    before = factor.coef()
    H[2, 1] = value
    with pytest.raises(ValueError, match=r"H contains NaN or infinity.* column 1"):
        factor.add(H, Y)
    assert factor.n_samples == 20
    np.testing.assert_array_equal(factor.coef()[0], before[0])


@pytest.mark.parametrize("size", [1, 2, 5, 40])
def test_short_rows_do_not_wait_for_the_first_intercept(size):
    H, Y = data(40, 3)
    factor = fed(PenalisedFactor(3, 2, 1.0), 1e-3 * H, Y, [size])
    assert_same_outputs(factor, ridge(1e-3 * H, Y, 1.0), 1e-3 * H, Y)


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("forgetting", [1.0, 0.99, 0.9])
@pytest.mark.parametrize("sizes", [[1], [500]])
@pytest.mark.parametrize("of", ["features", "targets"])
def test_a_first_row_far_off_costs_later_ones_no_digits(forgetting, sizes, of):
    for seed in range(3):
        H, Y = data(500, 6, seed=seed)
        (H if of == "features" else Y)[0] = 1e10
        weights = np.r_[1e-32, np.ones(len(H) - 1)]
        one = PenalisedFactor(6, 2, 1e-6, forgetting=forgetting)
        fed(one, H, Y, sizes, weights)
        aged = weights * forgetting ** np.arange(len(H))[::-1].astype(float)
        expected = ridge(H[1:], Y[1:], one.penalties, aged[1:])
        assert_same_outputs(one, expected, H[-50:], Y[-50:])

"""The triangular factor of features and targets: the ridge with all its digits."""

import io

import joblib
import numpy as np
import pytest
from scipy import linalg

from reservoir.readouts import GramAccumulator, QRAccumulator


def rows(n_samples=700, n_features=12, n_outputs=2, seed=0):
    rng = np.random.default_rng(seed)
    H = rng.normal(size=(n_samples, n_features)) @ rng.normal(size=(n_features, n_features)) + 3
    return H, H @ rng.normal(size=(n_features, n_outputs)) + rng.normal(size=(n_samples, n_outputs))


def ridge(H, Y, alpha, weights=None, fit_intercept=True):
    """Ridge by least squares on stored rows: the slow, obvious one."""
    w = np.ones(len(H)) if weights is None else weights
    h, y = (np.average(M, axis=0, weights=w) if fit_intercept else 0.0 for M in (H, Y))
    tall = np.vstack([np.sqrt(w)[:, None] * (H - h), np.sqrt(alpha) * np.eye(H.shape[1])])
    right = np.vstack([np.sqrt(w)[:, None] * (Y - y), np.zeros((H.shape[1], Y.shape[1]))])
    coef = linalg.lstsq(tall, right)[0].T
    return coef, (y - coef @ h if fit_intercept else np.zeros(Y.shape[1]))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 1e-20, 1e-3, 10.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_equals_least_squares_on_stored_rows(fit_intercept, alpha, weighted, seed):
    H, Y = rows(seed=seed)
    weights = np.random.default_rng(seed).uniform(0, 2, len(H)) if weighted else None
    accumulator = QRAccumulator(12, 2).update(H, Y, weights)
    coef, intercept, used, _ = accumulator.solve(alpha, fit_intercept=fit_intercept)
    expected = ridge(H, Y, alpha, weights, fit_intercept)
    np.testing.assert_allclose(coef, expected[0], rtol=0, atol=1e-11)
    np.testing.assert_allclose(intercept, expected[1], rtol=0, atol=1e-10)
    assert used == alpha
    gram = GramAccumulator(12, 2).update(H, Y, weights).solve(alpha, fit_intercept=fit_intercept)
    np.testing.assert_allclose(coef, gram.coef, rtol=0, atol=1e-8)
    assert accumulator.weight == pytest.approx(len(H) if weights is None else weights.sum())


@pytest.mark.parametrize("condition", [1e4, 1e8, 1e12])
@pytest.mark.parametrize("seed", range(3))
def test_holds_the_digits_that_a_gram_matrix_loses(condition, seed):
    """The residual stays at rounding errors, whatever the condition; a Gram matrix's does not."""
    rng = np.random.default_rng(seed)
    U = linalg.qr(rng.normal(size=(2000, 30)), mode="economic")[0]
    V = linalg.qr(rng.normal(size=(30, 30)))[0]
    H = U * np.logspace(0, -np.log10(condition), 30) @ V
    Y = H @ rng.normal(size=(30, 1)) / np.sqrt(30)
    residuals = []
    for accumulator in (QRAccumulator(30, 1), GramAccumulator(30, 1)):
        coef, intercept, _, _ = accumulator.update(H, Y).solve(1e-30)
        residuals.append(np.abs(Y - H @ coef.T - intercept).max() / np.abs(Y).max())
    assert residuals[0] < 1e-13
    assert condition < 1e8 or residuals[1] > 1e3 * residuals[0]


def test_any_split_and_any_merge_give_one_sum():
    H, Y = rows(1600)
    weights = np.linspace(0, 1, 1600)
    whole = QRAccumulator(12, 2).update(H, Y, weights)
    parts = [
        QRAccumulator(12, 2).update(H[part], Y[part], weights[part])
        for part in (slice(0, 3), slice(3, 900), slice(900, 1600))
    ]
    merged = parts[0].copy().merge(parts[1]).merge(parts[2]).merge(QRAccumulator(12, 2))
    one = QRAccumulator(12, 2)
    for begin in range(0, 1600, 37):
        part = slice(begin, begin + 37)
        one.update(H[part], Y[part], weights[part])
    for other in (merged, one):
        assert other.n_samples == whole.n_samples == 1599
        assert other.weight == pytest.approx(whole.weight)
        np.testing.assert_allclose(np.abs(other.R), np.abs(whole.R), rtol=0, atol=1e-10)
        np.testing.assert_allclose(
            other.solve(1e-6).coef, whole.solve(1e-6).coef, rtol=0, atol=1e-11
        )
    # what was merged is as it was
    assert parts[1].n_samples == 897
    assert parts[0].n_samples == 2


def test_the_factor_is_that_of_a_qr_decomposition():
    H, Y = rows(1100)
    accumulator = QRAccumulator(12, 2).update(H, Y)
    table = np.hstack([np.ones((1100, 1)), H, Y])
    expected = linalg.qr(table, mode="r")[0][:15]
    np.testing.assert_allclose(np.abs(accumulator.R), np.abs(expected), rtol=0, atol=1e-10)
    assert not np.tril(accumulator.R, -1).any()


def test_an_offset_costs_no_digits_of_what_moves():
    H, Y = rows()
    plain = QRAccumulator(12, 2).update(H, Y).solve(1e-3)
    far = QRAccumulator(12, 2).update(H + 1e6, Y + 1e6).solve(1e-3)
    np.testing.assert_allclose(far.coef, plain.coef, rtol=0, atol=1e-8)


@pytest.mark.parametrize("alpha", [0.0, 1e-30, 1e-6])
def test_constant_columns_and_equal_ones(alpha):
    H, Y = rows()
    H[:, 3], H[:, 5] = 0.1, H[:, 4]
    coef, intercept, _, _ = QRAccumulator(12, 2).update(H, Y).solve(alpha)
    assert np.isfinite(coef).all()
    np.testing.assert_array_equal(coef[:, 3], 0.0)
    np.testing.assert_allclose(coef[:, 4], coef[:, 5], rtol=0, atol=1e-5 if alpha else 1e-10)
    rest = [0, 1, 2, 4, 6, 7, 8, 9, 10, 11]
    expected, shift = ridge(H[:, rest], Y, 0.0)
    found = H @ coef.T + intercept
    np.testing.assert_allclose(found, H[:, rest] @ expected.T + shift, rtol=0, atol=1e-6)


def test_fewer_rows_than_columns_give_the_least_norm():
    H, Y = rows(8)
    coef, intercept, _, _ = QRAccumulator(12, 2).update(H, Y).solve(0.0)
    expected, shift = ridge(H, Y, 0.0)
    np.testing.assert_allclose(coef, expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(intercept, shift, rtol=0, atol=1e-9)


def test_a_penalty_for_each_output():
    H, Y = rows()
    accumulator = QRAccumulator(12, 2).update(H, Y)
    both = accumulator.solve([1e-3, 100.0])
    np.testing.assert_array_equal(both.coef[0], accumulator.solve(1e-3).coef[0])
    np.testing.assert_array_equal(both.coef[1], accumulator.solve(100.0).coef[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_any_layout(dtype):
    H, Y = rows()
    H, Y = H.astype(dtype), Y.astype(dtype)
    expected = QRAccumulator(12, 2).update(H.astype(float), Y.astype(float)).R
    for h, y in ((H, Y), (np.asfortranarray(H), np.asfortranarray(Y)), (H[::-1][::-1], Y)):
        before = h.copy()
        np.testing.assert_array_equal(QRAccumulator(12, 2).update(h, y).R, expected)
        np.testing.assert_array_equal(h, before)


def test_missing_targets_and_weights_of_zero_leave_rows_out():
    H, Y = rows()
    expected = QRAccumulator(12, 2).update(np.delete(H, [4, 600], 0), np.delete(Y, [4, 600], 0))
    gaps, weights = Y.copy(), np.ones(len(Y))
    gaps[4, 1], weights[600] = np.nan, 0.0
    found = QRAccumulator(12, 2).update(H, gaps, weights, missing="skip")
    np.testing.assert_allclose(np.abs(found.R), np.abs(expected.R), rtol=0, atol=1e-10)
    assert found.n_samples == len(H) - 2


def test_it_is_pickled():
    H, Y = rows()
    file = io.BytesIO()
    joblib.dump(QRAccumulator(12, 2).update(H[:400], Y[:400]), file)
    file.seek(0)
    again = joblib.load(file).update(H[400:], Y[400:])
    whole = QRAccumulator(12, 2).update(H[:400], Y[:400]).update(H[400:], Y[400:])
    np.testing.assert_array_equal(again.R, whole.R)


def test_bad_input_changes_nothing():
    H, Y = rows()
    accumulator = QRAccumulator(12, 2)
    with pytest.raises(ValueError, match="No rows to fit: n_samples=0"):
        accumulator.solve(1.0)
    accumulator.update(H, Y)
    before = accumulator.R.copy()
    bad = H.copy()
    bad[600, 7] = np.inf  # in the second block
    for args, message in (
        ((bad, Y), r"H holds NaN or infinity in column 7.*sample_weight=0"),
        ((H, np.where(Y > 2, np.nan, Y)), r"Y holds NaN .*missing='skip'"),
        ((H[:, :3], Y), r"H must have shape \(n_samples, 12\)"),
        ((H, Y[:5]), r"Y must have shape \(700, 2\)"),
        ((H, Y, -np.ones(700)), "at least 0"),
    ):
        with pytest.raises(ValueError, match=message):
            accumulator.update(*args)
    for alpha in (-1.0, np.nan, [1.0, -1.0]):
        with pytest.raises(ValueError, match="alpha=.* must be finite and at least 0"):
            accumulator.solve(alpha)
    with pytest.raises(ValueError, match=r"shape \(n_outputs=2,\); got shape \(3,\)"):
        accumulator.solve([1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="must agree"):
        accumulator.merge(QRAccumulator(12, 1))
    np.testing.assert_array_equal(accumulator.R, before)
    assert accumulator.n_samples == 700

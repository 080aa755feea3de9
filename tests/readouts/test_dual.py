"""Leave-one-out of a ridge on few rows equals fits without each row."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.preprocessing import StandardScaler

from reservoir.readouts import leave_one_out_ridge

ALPHAS = np.array([1e-3, 0.1, 10.0, 1e4])


def rows(n, d, n_outputs=2, seed=0):
    rng = np.random.default_rng(seed)
    H = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-3, 3, d) + rng.normal(size=d)
    Y = (H / H.std(axis=0)) @ rng.normal(size=(d, n_outputs)) + rng.normal(size=(n, n_outputs))
    return H, Y + 5


def standardized(H, w):
    """Columns of weighted mean 0 and standard deviation 1; constant ones are left out."""
    mean = np.average(H, axis=0, weights=w)
    scale = np.sqrt(np.average((H - mean) ** 2, axis=0, weights=w))
    used = scale > 1e-10 * np.abs(mean)
    return (H[:, used] - mean[used]) / scale[used]


def refitted(H, Y, alpha, w):
    """The prediction for each row from a ridge on all others, by augmented least squares."""
    Z, found = standardized(H, w), np.empty_like(Y)
    n, d = Z.shape
    for i in range(n):
        rest = np.arange(n) != i
        root = np.sqrt(w[rest])[:, None]
        A = np.block([[root, root * Z[rest]], [np.zeros((d, 1)), np.sqrt(alpha) * np.eye(d)]])
        b = np.vstack([root * Y[rest], np.zeros((d, Y.shape[1]))])
        solution = np.linalg.lstsq(A, b, rcond=None)[0]
        found[i] = solution[0] + Z[i] @ solution[1:]
    return found


def tricky(kind, n, d, seed):
    """Features that make trouble, beside plain ones."""
    H, Y = rows(n, d, seed=seed)
    rng = np.random.default_rng(seed + 100)
    w = np.ones(n)
    if kind == "weights":
        w = rng.uniform(0.1, 3, n) ** 2
    elif kind == "heavy":
        w[n // 2] = 1e3
    elif kind == "constant":
        H[:, ::3] = [0.3, 1e5, 0.0][seed % 3]
    elif kind == "twins":
        H[n // 2 :], Y[n // 2 :] = H[: n - n // 2], Y[: n - n // 2]
    elif kind == "collinear":
        H[:, d // 2 :] = H[:, : d - d // 2] * 2 - 1
    elif kind == "lonely":
        H[:, 0] = np.arange(n) == 1  # a column in which one row is alone
    return H, Y, w


@pytest.mark.fast_cases(10)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", [(12, 30), (20, 20), (21, 20), (40, 7)])
@pytest.mark.parametrize(
    "kind", ["plain", "weights", "heavy", "constant", "twins", "collinear", "lonely"]
)
def test_rows_left_out_are_those_of_fits_without_them(kind, shape, seed):
    H, Y, w = tricky(kind, *shape, seed)
    for alpha in ALPHAS:
        ridge = leave_one_out_ridge(H, Y, [alpha], w)
        expected = refitted(H, Y, alpha, w)
        np.testing.assert_allclose(ridge.left_out, expected, rtol=1e-6, atol=1e-6)
        error = np.average((Y - expected) ** 2, axis=0, weights=w)
        np.testing.assert_allclose(ridge.scores[0], error, rtol=1e-5)


@pytest.mark.parametrize("shape", [(15, 60), (60, 15)])
@pytest.mark.parametrize("per_target", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_scikit_learn_chooses_the_same(shape, per_target, weighted):
    for seed in range(5):
        H, Y = rows(*shape, n_outputs=3, seed=seed)
        w = np.random.default_rng(seed).uniform(0.5, 2, len(H)) if weighted else None
        mine = leave_one_out_ridge(H, Y, ALPHAS, w, per_target=per_target)
        Z = standardized(H, np.ones(len(H)) if w is None else w)
        theirs = RidgeCV(ALPHAS, alpha_per_target=per_target, store_cv_results=True).fit(Z, Y, w)
        np.testing.assert_array_equal(mine.alpha, theirs.alpha_)
        np.testing.assert_allclose(H @ mine.coef.T + mine.intercept, theirs.predict(Z), rtol=1e-7)
        if not weighted:  # it weighs the squared errors of rows with the weights twice
            errors = theirs.cv_results_.mean(axis=0).T
            np.testing.assert_allclose(mine.scores, errors, rtol=1e-6)


@pytest.mark.parametrize("shape", [(30, 80), (80, 30)])
def test_a_weight_is_a_repeated_row(shape):
    H, Y = rows(*shape)
    times = np.random.default_rng(1).integers(0, 4, len(H))
    mine = leave_one_out_ridge(H, Y, [1.0], times)
    repeated = leave_one_out_ridge(np.repeat(H, times, axis=0), np.repeat(Y, times, axis=0), [1.0])
    np.testing.assert_allclose(mine.coef, repeated.coef, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(mine.intercept, repeated.intercept, rtol=1e-8)
    # a row of no weight is left out of the fit already
    fitted = H @ mine.coef.T + mine.intercept
    np.testing.assert_allclose(mine.left_out[times == 0], fitted[times == 0])
    # other units of the weights are other units of the penalty
    scaled = leave_one_out_ridge(H, Y, [7.0], 7 * times)
    np.testing.assert_allclose(scaled.left_out, mine.left_out, rtol=1e-8)


def test_rows_and_columns_lead_to_the_same():
    # as many rows as columns go one way; a constant column more or less makes no difference
    H, Y = rows(40, 41, seed=3)
    H[:, 0] = H[:, 1] = 1.0
    by_rows = leave_one_out_ridge(H, Y, ALPHAS)
    by_columns = leave_one_out_ridge(H[:, 2:], Y, ALPHAS)
    np.testing.assert_allclose(by_rows.scores, by_columns.scores, rtol=1e-7)
    np.testing.assert_allclose(by_rows.left_out, by_columns.left_out, rtol=1e-7)
    np.testing.assert_allclose(by_rows.coef[:, 2:], by_columns.coef, rtol=1e-6)
    assert not by_rows.coef[:, :2].any()


@pytest.mark.parametrize("shape", [(20, 50), (50, 20)])
def test_small_penalties_make_no_nan(shape):
    H, Y = rows(*shape)
    H[1] = H[0]  # twins with different targets
    for weights in (None, np.r_[1.0, np.full(shape[0] - 1, 1e-12)]):
        path = leave_one_out_ridge(H, Y, [0.0, 1e-300, 1e-12, 1.0, 1e12, 1e300], weights)
        assert np.isfinite(path.scores).all()
        assert np.isfinite(path.left_out).all()
    # without a penalty: least squares, or the interpolation of least norm, up to rounding
    exact = leave_one_out_ridge(*rows(*shape, seed=1), [0.0])
    expected = refitted(*rows(*shape, seed=1), 1e-9, np.ones(shape[0]))
    np.testing.assert_allclose(exact.left_out, expected, rtol=1e-4, atol=1e-4)


def test_uninformative_columns_predict_the_mean_of_the_others():
    y = np.arange(6.0)
    ridge = leave_one_out_ridge(np.ones((6, 20)), y, [1.0, 10.0])
    np.testing.assert_allclose(ridge.left_out[:, 0], (y.sum() - y) / 5)
    assert ridge.alpha == 10.0
    assert not ridge.coef.any()
    assert leave_one_out_ridge(np.ones((6, 2)), y, [1.0]).left_out == pytest.approx(ridge.left_out)


@pytest.mark.parametrize("shape", [(60, 700), (700, 60)])
def test_single_precision_is_read_as_it_is(shape):
    H, Y = rows(*shape)
    H = np.tanh(StandardScaler().fit_transform(H)).astype(np.float32)
    single, double = (leave_one_out_ridge(X, Y, ALPHAS) for X in (H, H.astype(np.float64)))
    np.testing.assert_array_equal(single.left_out, double.left_out)
    ridge = Ridge(double.alpha).fit(StandardScaler().fit_transform(H.astype(np.float64)), Y)
    said = ridge.predict(StandardScaler().fit_transform(H.astype(np.float64)))
    np.testing.assert_allclose(H @ double.coef.T + double.intercept, said, rtol=1e-6, atol=1e-8)
    # a column that differs by the rounding errors of single precision is constant
    H[:, 0] = 0.9 * (1 + 1e-7 * (np.arange(len(H)) % 2))
    assert not leave_one_out_ridge(H, Y, ALPHAS).coef[:, 0].any()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"alphas": []}, "alphas must have shape"),
        ({"alphas": [-1.0]}, "at least 0"),
        ({"sample_weight": [1.0] + [0.0] * 9}, "at least two rows of positive weight; got 1"),
        ({"sample_weight": [-1.0] * 10}, "at least 0 in every row"),
        ({"sample_weight": [1.0]}, r"must have shape \(10,\)"),
        ({"Y": np.ones(9)}, r"got \(10, 3\) and \(9, 1\)"),
        ({"Y": np.full(10, np.nan)}, "Y contains NaN"),
        ({"H": np.full((10, 3), np.inf)}, "H contains NaN or infinity"),
    ],
)
def test_what_cannot_be_fitted_raises(change, message):
    given = {"H": rows(10, 3)[0], "Y": np.arange(10.0), "alphas": [1.0]} | change
    with pytest.raises(ValueError, match=message):
        leave_one_out_ridge(**given)

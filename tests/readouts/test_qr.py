"""The triangular factor of features and targets: ridge regression with all digits."""

import pickle

import numpy as np
import pytest
from scipy import linalg

from helpers import naive
from reservoir.datasets import lorenz
from reservoir.dynamics.polynomial_lags import LaggedPolynomials
from reservoir.readouts import GramAccumulator, QRAccumulator, ridge_path

INTERCEPT = pytest.mark.parametrize("fit_intercept", [True, False])


def rows(n_samples=700, n_features=12, n_outputs=2, seed=0):
    rng = np.random.default_rng(seed)
    H = rng.normal(size=(n_samples, n_features)) @ rng.normal(size=(n_features, n_features)) + 3
    return H, H @ rng.normal(size=(n_features, n_outputs)) + rng.normal(size=(n_samples, n_outputs))


def factor_of(H, Y, weights=None, **options):
    return QRAccumulator(H.shape[1], Y.shape[1]).update(H, Y, weights, **options)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 1e-20, 1e-3, 10.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_equals_least_squares_on_stored_rows(fit_intercept, alpha, weighted, seed):
    H, Y = rows(seed=seed)
    weights = np.random.default_rng(seed).uniform(0, 2, len(H)) if weighted else None
    accumulator = QRAccumulator(12, 2).update(H, Y, weights)
    coef, intercept, used, _ = accumulator.solve(alpha, fit_intercept=fit_intercept)
    expected = naive.ridge(H, Y, alpha, weights=weights, fit_intercept=fit_intercept)
    np.testing.assert_allclose(coef, expected[0], rtol=0, atol=1e-11)
    np.testing.assert_allclose(intercept, expected[1], rtol=0, atol=1e-10)
    assert used == alpha
    gram = GramAccumulator(12, 2).update(H, Y, weights).solve(alpha, fit_intercept=fit_intercept)
    np.testing.assert_allclose(coef, gram.coef, rtol=0, atol=1e-8)
    assert accumulator.weight == pytest.approx(len(H) if weights is None else weights.sum())


@pytest.mark.parametrize("condition", [1e4, 1e8, 1e12])
def test_holds_the_digits_that_a_gram_matrix_loses(condition, global_random_seed):
    """The residual stays at rounding errors, whatever the condition; a Gram matrix's does not."""
    rng = np.random.default_rng(global_random_seed)
    U = linalg.qr(rng.normal(size=(2000, 30)), mode="economic")[0]
    V = linalg.qr(rng.normal(size=(30, 30)))[0]
    H = U * np.logspace(0, -np.log10(condition), 30) @ V
    Y = H @ rng.normal(size=(30, 1)) / np.sqrt(30)

    def residual(coef, intercept):
        return np.abs(Y - H @ coef.T - intercept).max() / np.abs(Y).max()

    factor, gram = factor_of(H, Y), GramAccumulator(30, 1).update(H, Y)
    path = factor.path()
    found = [residual(*factor.solve(1e-30)[:2]), residual(*gram.solve(1e-30)[:2])]
    assert found[0] < 1e-13
    coef = path.coef(1e-30)
    assert residual(coef, path.intercept(coef)) < 1e-13
    assert condition < 1e8 or found[1] > 1e3 * found[0]


@pytest.mark.parametrize("seed", range(3))
def test_the_units_of_the_columns_cost_no_digits(seed):
    """Nor do they decide which directions are rounding errors."""
    rng = np.random.default_rng(seed)
    H = np.cos(rng.uniform(0, 2, (1, 40)) * np.linspace(0, 3, 900)[:, None])  # singular to rounding
    Y = H @ rng.normal(size=(40, 1)) / 6
    units = 10.0 ** rng.integers(-6, 7, 40)
    factor = factor_of(H * units, Y)
    path = factor.path()
    for alpha in (0.0, 1e-40):
        for coef in (factor.solve(alpha).coef, path.coef(alpha)):
            terms = np.abs(coef * units).sum()  # least norm is that of coefficients in these units
            assert np.abs(Y - H * units @ coef.T - path.intercept(coef)).max() < 1e-14 * terms
            assert terms < 1e4


def test_nearly_dependent_columns_are_fitted_as_well_as_from_stored_rows(global_random_seed):
    """Where R is singular but for rounding, no step on the way from R may add errors."""
    series = lorenz(3000, random_state=global_random_seed)
    H = LaggedPolynomials.for_inputs([series], n_lags=1, skip=1, degree=11, basis="chebyshev")
    H, alpha = H._features(series.T[None]), 3e-27
    Y = H @ np.random.default_rng(global_random_seed).normal(size=(H.shape[1], 2))
    solution = QRAccumulator(H.shape[1], 2).update(H, Y).solve(alpha)
    penalty = np.eye(1 + H.shape[1])[1:] * np.sqrt(alpha)
    Q, R = linalg.qr(np.vstack([np.insert(H, 0, 1, axis=1), penalty]), mode="economic")
    stored = linalg.solve_triangular(R, Q[: len(H)].T @ Y)
    errors = [
        np.sqrt(((Y - H @ coef.T - intercept) ** 2).mean())
        for coef, intercept in ((solution.coef, solution.intercept), (stored[1:].T, stored[0]))
    ]
    assert errors[0] < 1.15 * errors[1]


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


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_samples", [0, 1, 14, 15, 16])  # 15 columns
def test_fewer_rows_than_columns_have_a_factor_that_is_read_and_not_kept(n_samples, seed):
    """To look at it in between, or to save and load, changes no bit of what comes later."""
    H, Y = rows(n_samples + 40, seed=seed)
    H[:, 2], H[:, 4], H[:, 6] = 0.0, H[:, 3], 1.0
    one, other = (QRAccumulator(12, 2).update(H[:n_samples], Y[:n_samples]) for _ in range(2))
    table = np.hstack([np.ones((n_samples, 1)), H[:n_samples], Y[:n_samples]])
    assert one.R.shape == (15, 15)
    assert not np.tril(one.R, -1).any()
    np.testing.assert_allclose(one.R.T @ one.R, table.T @ table, rtol=0, atol=1e-10)
    if n_samples:
        one.solve(1e-3)
    one = pickle.loads(pickle.dumps(one))
    for sums in (one, other):
        sums.update(H[n_samples:], Y[n_samples:])
    np.testing.assert_array_equal(one.R, other.R)


def test_files_of_earlier_versions_hold_the_factor_of_few_rows():
    H, Y = rows(40)
    few = QRAccumulator(12, 2).update(H[:5], Y[:5])
    few.__setstate__({**few.__getstate__(), "R": few.R})
    whole = QRAccumulator(12, 2).update(H, Y)
    for sums in (few.copy().update(H[5:], Y[5:]), QRAccumulator(12, 2).update(H[5:], Y[5:])):
        merged = sums if sums.n_samples == 40 else sums.merge(few)
        assert merged.n_samples == 40
        np.testing.assert_allclose(merged.R.T @ merged.R, whole.R.T @ whole.R, rtol=0, atol=1e-8)


def test_an_offset_costs_no_digits_of_what_moves():
    H, Y = rows()
    plain = QRAccumulator(12, 2).update(H, Y).solve(1e-3)
    far = QRAccumulator(12, 2).update(H + 1e6, Y + 1e6).solve(1e-3)
    np.testing.assert_allclose(far.coef, plain.coef, rtol=0, atol=1e-8)


@pytest.mark.parametrize("alpha", [0.0, 1e-30, 1e-13, 1e-6])
@pytest.mark.parametrize("n_samples", [700, 20_000])
@pytest.mark.parametrize("unit", [1.0, 1e6])
def test_dependent_columns_of_noisy_data_get_sensible_coefficients(
    alpha, n_samples, unit, global_random_seed
):
    """Constant columns get zero, equal ones half of what one would, and no other is disturbed."""
    H, Y = rows(n_samples, seed=global_random_seed)
    H[:, 3], H[:, 5], H[:, 7] = 0.1, H[:, 4], unit * H[:, 7]
    factor = factor_of(H, Y)
    rest = [0, 1, 2, 4, 6, 7, 8, 9, 10, 11]
    # of two equal columns each is penalised: half of what one costs
    unit_of = np.where(np.array(rest) == 7, unit, 1.0)
    root = np.sqrt(alpha) / unit_of * np.where(np.array(rest) == 4, np.sqrt(0.5), 1.0)
    centred = [(H[:, rest] - H[:, rest].mean(0)) / unit_of, Y - Y.mean(0)]
    expected = linalg.lstsq(
        np.vstack([centred[0], np.diag(root)]), np.pad(centred[1], [(0, 10), (0, 0)])
    )
    expected = expected[0].T
    apart = 1e-6  # what rounding may part two equal columns by, where a penalty alone holds them
    if alpha == 1e-6:
        apart = np.finfo(float).eps * linalg.norm(H[:, 4]) * linalg.norm(Y - Y.mean(0)) / alpha
    for coef in (factor.solve(alpha).coef, factor.path().coef(alpha)):
        np.testing.assert_array_equal(coef[:, 3], 0.0)
        np.testing.assert_allclose(coef[:, 4], coef[:, 5], rtol=0, atol=apart)
        coef[:, 7] *= unit
        coef[:, 4] += coef[:, 5]
        np.testing.assert_allclose(coef[:, rest], expected, rtol=0, atol=1e-6)


@INTERCEPT
def test_many_dependent_columns_of_noisy_data(fit_intercept, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    H = rng.normal(size=(3000, 20)) @ rng.normal(size=(20, 60))
    Y = rng.normal(size=(3000, 2))
    expected = np.linalg.lstsq(H - fit_intercept * H.mean(0), Y - fit_intercept * Y.mean(0), 1e-10)
    factor = factor_of(H, Y)
    for alpha in (0.0, 1e-25):
        coef = factor.solve(alpha, fit_intercept=fit_intercept).coef
        np.testing.assert_allclose(coef, expected[0].T, rtol=0, atol=1e-13)
        coef = factor.path(fit_intercept).coef(alpha)
        np.testing.assert_allclose(coef, expected[0].T, rtol=0, atol=1e-13)


def test_fewer_rows_than_columns_give_the_least_norm():
    H, Y = rows(8)
    coef, intercept, _, _ = QRAccumulator(12, 2).update(H, Y).solve(0.0)
    expected, shift = naive.ridge(H, Y, 0.0)
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
        np.testing.assert_array_equal(factor_of(h, y, overwrite_h=True).R, expected)
        np.testing.assert_array_equal(h, before)


def test_missing_targets_and_weights_of_zero_leave_rows_out():
    H, Y = rows()
    expected = QRAccumulator(12, 2).update(np.delete(H, [4, 600], 0), np.delete(Y, [4, 600], 0))
    gaps, weights = Y.copy(), np.ones(len(Y))
    gaps[4, 1], weights[600] = np.nan, 0.0
    found = QRAccumulator(12, 2).update(H, gaps, weights, missing="skip")
    np.testing.assert_allclose(np.abs(found.R), np.abs(expected.R), rtol=0, atol=1e-10)
    assert found.n_samples == len(H) - 2


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
        ((bad, Y), r"H contains NaN or infinity, or .* in column 7"),
        ((H, np.where(Y > 2, np.nan, Y)), r"Y contains NaN or infinity, or .* in column [01]"),
        ((H[:, :3], Y), r"H must have shape \(n_samples, 12\)"),
        ((H, Y[:5]), r"Y must have shape \(700, 2\)"),
        ((H, Y, -np.ones(700)), "at least 0"),
    ):
        with pytest.raises(ValueError, match=message):
            accumulator.update(*args)
    for alpha in (-1.0, np.nan, [1.0, -1.0]):
        with pytest.raises(ValueError, match=r"alpha=.* must be finite and at least 0"):
            accumulator.solve(alpha)
    with pytest.raises(ValueError, match=r"shape \(n_outputs=2,\); got shape \(3,\)"):
        accumulator.solve([1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="must have the same"):
        accumulator.merge(QRAccumulator(12, 1))
    np.testing.assert_array_equal(accumulator.R, before)
    assert accumulator.n_samples == 700


def test_squares_that_overflow_raise_before_anything_changes():
    H, Y = rows()
    factor = factor_of(H, Y)
    before = factor.R.copy()
    for args, message in (
        ((np.where(H > 5, 1e200, H), Y), "H contains NaN or infinity, or values whose squares"),
        ((H, np.where(Y > 5, -1e170, Y)), "Y contains NaN or infinity, or values whose squares"),
        ((1e3 * H, Y, np.full(700, 1e305)), "H contains NaN or infinity, or values whose squares"),
    ):
        with pytest.raises(ValueError, match=message):
            factor.update(*args)
    huge = factor_of(np.full((10, 12), 3e153), Y[:10])
    with pytest.raises(ValueError, match="H contains NaN or infinity, or values whose squares"):
        huge.merge(huge.copy())
    np.testing.assert_array_equal(factor.R, before)


# --- choosing the penalty ----------------------------------------------------------------------

ALPHAS = [1e-14, 1e-6, 1e-1, 1.0, 1e2, 1e4]


@INTERCEPT
@pytest.mark.parametrize("n_samples", [80, 13, 9])  # 12 features: more rows than these, and fewer
@pytest.mark.parametrize("weighted", [False, True])
def test_gcv_equals_the_hat_matrix(fit_intercept, n_samples, weighted):
    H, Y = rows(n_samples)
    weights = np.random.default_rng(1).uniform(0.2, 3, n_samples) if weighted else None
    alphas = [1e-2, 1.0, 1e2]
    solution = ridge_path(factor_of(H, Y, weights), alphas, fit_intercept=fit_intercept)
    expected = [naive.gcv(H, Y, a, weights=weights, fit_intercept=fit_intercept) for a in alphas]
    # with fewer rows than columns residuals are alpha / (alpha + s^2) of the targets, and squared
    for scores, naive_scores, alpha in zip(solution.scores, expected, alphas, strict=True):
        lost = (1 + np.linalg.norm(H, 2) ** 2 / alpha) ** 2 if n_samples < H.shape[1] else 0.0
        rtol = 1e-8 + np.finfo(float).eps * lost
        np.testing.assert_allclose(scores, naive_scores, rtol=rtol)


def test_rows_outside_the_blocks_must_be_given():
    H, Y = rows(90)
    block = factor_of(H[60:], Y[60:])
    with pytest.raises(ValueError, match=r"The blocks contain 30 of 90 rows.* as `rest`"):
        ridge_path(factor_of(H, Y), ALPHAS, selection="holdout", blocks=[block])


def test_without_noise_the_score_tells_penalties_apart_that_a_gram_matrix_cannot():
    """The residual squares are a sum, not a difference: they may be 1e-30 of the targets'."""
    t = np.linspace(0, 1, 2000)[:, None]
    H = t ** np.arange(1, 13)
    Y = np.cos(5 * t)
    alphas = [1e-18, 1e-16, 1e-14, 1e-12]
    factor = factor_of(H, Y)
    solution = ridge_path(factor, alphas)
    assert solution.alpha == 1e-18
    assert (np.diff(solution.scores[:, 0]) > 0).all()
    for alpha, score in zip(alphas, solution.scores[:, 0], strict=True):
        coef, intercept, _, _ = factor.solve(alpha)
        assert score == pytest.approx(np.mean((Y - H @ coef.T - intercept) ** 2), rel=0.02)
    gram = ridge_path(GramAccumulator(12, 1).update(H, Y), alphas)
    assert np.ptp(gram.scores[:3]) < 1e-6 * gram.scores[0]


def test_a_perfect_fit_prefers_the_larger_penalty():
    H, _ = rows(200)
    solution = ridge_path(factor_of(H, H @ np.ones((12, 1))), [1e-40, 1e-36, 1e-3])
    assert solution.alpha == 1e-36  # both are exact to rounding
    np.testing.assert_allclose(solution.coef, 1.0, rtol=1e-10)


def test_a_penalty_is_chosen_for_each_target(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    H = rng.normal(size=(60, 20))
    Y = np.column_stack([H[:, 0], 0.05 * H[:, 1] + rng.normal(size=60)])
    factor = factor_of(H, Y)
    solution = ridge_path(factor, ALPHAS, per_target=True)
    assert solution.alpha[0] < solution.alpha[1]
    np.testing.assert_array_equal(solution.coef, factor.solve(solution.alpha).coef)
    for k in (0, 1):
        alone = ridge_path(factor_of(H, Y[:, [k]]), ALPHAS)
        assert alone.alpha == solution.alpha[k]
        np.testing.assert_allclose(solution.scores[:, [k]], alone.scores, rtol=1e-9, atol=1e-28)


@pytest.mark.parametrize("kind", [GramAccumulator, QRAccumulator])
def test_both_kinds_give_a_path_and_the_errors_on_their_rows(kind):
    """What a search over penalties takes from the sums of one fit."""
    H, Y = rows()
    sums = kind(12, 2).update(H, Y)
    path = sums.path()
    for alpha in (1e-2, np.array([1.0, 50.0])):
        coef = path.coef(alpha)
        np.testing.assert_allclose(coef, sums.solve(alpha).coef, rtol=1e-7)
        np.testing.assert_allclose(path.intercept(coef), sums.solve(alpha).intercept, rtol=1e-7)
        error = sums.squared_errors(coef[None], path.intercept(coef)[None])
        residual = Y - H @ coef.T - path.intercept(coef)
        np.testing.assert_allclose(error, (residual**2).sum(axis=0)[None], rtol=1e-9)
        pooled = path.pooled()
        if np.ndim(alpha) == 0:
            assert pooled.gcv(alpha)[0] == pytest.approx(path.gcv(alpha).sum())
            centred = H - H.mean(axis=0)
            inverse = np.linalg.inv(centred.T @ centred + alpha * np.eye(12))
            assert path.freedom(alpha) == pytest.approx(np.trace(centred @ inverse @ centred.T))
    part, others = kind(12, 2).update(H[:99], Y[:99]), kind(12, 2).update(H[99:], Y[99:])
    rest = sums.without(part, [others])
    assert (sums.n_samples, part.n_samples, rest.n_samples) == (700, 99, 601)
    np.testing.assert_allclose(rest.solve(1.0).coef, others.solve(1.0).coef, rtol=1e-8)

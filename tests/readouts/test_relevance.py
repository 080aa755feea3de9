"""Columns weighted by their relation to the targets: equal to a naive version, and validated."""

import numpy as np
import pytest
from sklearn.feature_selection import f_classif, f_regression
from sklearn.linear_model import Ridge
from sklearn.metrics import log_loss

from reservoir.readouts import leave_one_out_ridge, relevance
from reservoir.readouts.dual import ridge_at
from reservoir.readouts.relevance import folds_for, relevance_ridge, relevance_weights
from reservoir.readouts.temperature import fitted_temperature, probabilities


def table(n, d, *, n_classes=3, seed=0):
    """Columns of which some differ between classes, one is constant; labels; columns of +-1."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    H = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-3, 3, d)
    H[:, : d // 4] += H[:, : d // 4].std(axis=0) * rng.normal(size=(n_classes, d // 4))[y]
    H[:, d // 2] = 0.7
    Y = 2.0 * (y[:, None] == np.arange(n_classes)) - 1
    return H, y, Y[:, 1:] if n_classes == 2 else Y


def from_f(F):
    F = F + 1e-3
    return np.sqrt(F / F.mean())


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("shape", [(30, 80), (90, 20)])
def test_weights_are_roots_of_scikit_learns_statistics(shape, n_classes):
    H, y, Y = table(*shape, n_classes=n_classes)
    varies = np.arange(shape[1]) != shape[1] // 2
    found = relevance_weights(H, Y, np.ones(len(H)))
    np.testing.assert_allclose(found[varies], from_f(f_classif(H[:, varies], y)[0]), rtol=1e-7)
    assert found[~varies] == 1.0
    np.testing.assert_array_equal(found, relevance_weights(H, Y, np.full(len(H), 7.0)))
    # numbers, whatever their unit
    target = H[:, :1] / H[:, 0].std() + np.random.default_rng(1).normal(size=(len(H), 1))
    for unit in (1.0, 1e-200, 1e150):
        found = relevance_weights(H, unit * target, np.ones(len(H)))
        expected = from_f(f_regression(H[:, varies], target[:, 0])[0])
        np.testing.assert_allclose(found[varies], expected, rtol=1e-7)


def test_rows_that_weigh_more_count_more():
    H, _, Y = table(40, 30)
    times = np.random.default_rng(0).integers(1, 4, 40)
    weighted = relevance_weights(H, Y, times)
    repeated = relevance_weights(
        np.repeat(H, times, 0), np.repeat(Y, times, 0), np.ones(times.sum())
    )
    # degrees of freedom aside, which are those of different rows
    much = repeated > 0.3
    assert much.sum() > 10
    np.testing.assert_allclose(weighted[much], repeated[much], rtol=5e-3)
    assert abs(weighted - relevance_weights(H, Y, np.ones(40))).max() > 0.1


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_uninformative_targets_and_columns(value):
    H, _, Y = table(20, 30)
    for table_, targets in ((H, np.full_like(Y, value)), (np.full_like(H, value), Y)):
        np.testing.assert_allclose(relevance_weights(table_, targets, np.ones(20)), 1.0)
        ridge = relevance_ridge(table_, targets, [0.0, 1.0], np.ones(20), folds_for(targets))
        assert np.isfinite(ridge.coef).all()
        assert np.isfinite(ridge.left_out).all()
        assert np.isfinite(ridge.scores).all()
    # as many classes as rows: every column tells all of them apart
    np.testing.assert_allclose(relevance_weights(H[:5, :10], np.eye(5), np.ones(5)), 1.0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(30, 80), (90, 20)])
def test_rows_left_out_are_those_of_fits_and_weights_without_them(shape, weighted):
    H, _, Y = table(*shape)
    rng = np.random.default_rng(2)
    w = rng.uniform(0.5, 3, len(H)) if weighted else np.ones(len(H))
    folds = rng.permutation(np.arange(len(H)) % 5) - 1  # the rows of -1 are never left out
    ridge = relevance_ridge(H, Y, [100.0, 3.0], w, folds[None])
    center = np.average(H, axis=0, weights=w)
    spread = H.std(axis=0)  # without weights
    varies = np.arange(shape[1]) != shape[1] // 2
    Z = np.where(varies, H - center, 0.0) / np.where(varies, spread, 1.0)
    errors = np.zeros((2, 3))
    for fold in range(4):
        kept, out = folds != fold, folds == fold
        factors = relevance_weights(H[kept], Y[kept], w[kept])
        for k, alpha in enumerate((100.0, 3.0)):
            fit = Ridge(alpha).fit(Z[kept] * factors, Y[kept], w[kept])
            said = fit.predict(Z[out] * factors)
            errors[k] += w[out] @ (said - Y[out]) ** 2
            if alpha == ridge.alpha:
                np.testing.assert_allclose(ridge.left_out[0, out], said, rtol=1e-6, atol=1e-8)
    assert np.isnan(ridge.left_out[0, folds < 0]).all()
    np.testing.assert_allclose(ridge.scores, errors / w[folds >= 0].sum(), rtol=1e-6)
    assert ridge.alpha == (100.0, 3.0)[np.argmin(errors.sum(axis=1))]
    # the fit itself has seen all rows
    factors = relevance_weights(H, Y, w)
    fit = Ridge(ridge.alpha).fit(Z * factors, Y, w)
    np.testing.assert_allclose(
        H @ ridge.coef.T + ridge.intercept, fit.predict(Z * factors), rtol=1e-6
    )


def test_several_deals_count_alike():
    for seed in range(3):
        H, _, Y = table(60, 20, seed=seed)
        w = np.random.default_rng(seed).uniform(0.5, 3, 60)
        folds = folds_for(Y)
        assert len(folds) == 3
        alone = [relevance_ridge(H, Y, [100.0, 3.0], w, deal[None]) for deal in folds]
        ridge = relevance_ridge(H, Y, [100.0, 3.0], w, folds)
        np.testing.assert_allclose(ridge.scores, np.mean([one.scores for one in alone], axis=0))
        assert ridge.alpha == (100.0, 3.0)[np.argmin(ridge.scores.sum(axis=1))]
        for said, deal in zip(ridge.left_out, folds, strict=True):
            one = relevance_ridge(H, Y, [ridge.alpha], w, deal[None])
            np.testing.assert_allclose(said, one.left_out[0])
            np.testing.assert_allclose(ridge.coef, one.coef)


def labelled(n, n_classes=3, seed=0):
    """Columns of +-1 for labels in an order of no sense; one column for two classes."""
    y = np.random.default_rng(seed).permutation(np.arange(n) % n_classes)
    Y = 2.0 * (y[:, None] == np.arange(n_classes)) - 1
    return y, Y[:, 1:] if n_classes == 2 else Y


SIZES = [2, 3, 50, 51, 99, 100, 199, 500, 501, 2499, 2500, 3001, 14_000, 14_995, 14_996, 100_000]


@pytest.mark.fast_cases(8)
@pytest.mark.parametrize("n", SIZES)
def test_folds_leave_most_rows_to_learn_from(n):
    y, Y = labelled(n)
    folds = folds_for(Y)
    assert folds.shape == (3 if 50 < n < 100 else 1, n)
    tried = folds >= -1
    assert (tried.sum(axis=1) == min(n, 3000)).all()
    for deal in folds:
        assert np.array_equal(deal >= 0, folds[0] >= 0)
        sizes = np.bincount(deal[deal >= 0])
        assert sizes.sum() == min(n, 500)
        assert sizes.max() - sizes.min() <= 1
        assert sizes.max() <= max(1, -(-min(n, 3000) // 5))
        # of every class as many
        for part in (deal >= 0, deal == -1, *(deal == k for k in range(len(sizes)))):
            of_part = np.bincount(y[part], minlength=3)
            assert of_part.max() - of_part.min() <= 2
    if n <= 50:
        assert sorted(folds[0]) == list(range(n))


def test_any_number_of_rows_has_folds():
    for n in [*range(2, 130, 3), *np.random.default_rng(0).integers(130, 15_000, 12)]:
        for Y in (labelled(n)[1], np.random.default_rng(n).normal(size=(n, 1)), np.ones((n, 1))):
            for deal in folds_for(Y):
                sizes = np.bincount(deal[deal >= 0])
                assert 0 < sizes.min() <= sizes.max() <= 1 + np.count_nonzero(deal >= -1) / 5
                assert sizes.sum() == min(n, 500)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("n", [60, 120, 700, 4000])
def test_folds_do_not_ask_for_the_names_of_classes(n, n_classes):
    for seed in range(3):
        _, Y = labelled(n, n_classes, seed)
        Y[:: n // 5] *= 0.5  # labels that differ among equal sequences
        folds = folds_for(Y)
        if n_classes == 2:
            np.testing.assert_array_equal(folds_for(-Y), folds)
        else:
            order = np.random.default_rng(seed).permutation(n_classes)
            np.testing.assert_array_equal(folds_for(Y[:, order]), folds)
            np.testing.assert_array_equal(folds_for(Y[:, ::-1]), folds)


@pytest.mark.parametrize("n", [60, 120, 4000])
@pytest.mark.parametrize("decimals", [0, 15])
def test_folds_do_not_ask_for_the_units_of_numbers(n, decimals):
    for seed in range(3):
        Y = np.round(np.random.default_rng(seed).normal(size=(n, 3)), decimals)
        folds, one = folds_for(Y), folds_for(Y[:, :1])
        np.testing.assert_array_equal(folds_for(Y[:, [2, 0, 1]]), folds)
        np.testing.assert_array_equal(folds_for(Y * [3.0, 1e-3, 7e8] + [0, 1, 5e8]), folds)
        for unit in (3.0, -1.0, 1e-3, 1e150):
            np.testing.assert_array_equal(folds_for(unit * Y[:, :1] + unit), one)


def test_rows_of_similar_numbers_are_left_out_at_different_times():
    y = np.random.default_rng(0).normal(size=(120, 1))
    (folds,) = folds_for(y)
    near = folds[np.argsort(y[:, 0])]
    for start in range(112):
        assert len(set(near[start : start + 8])) == 8


def test_labels_without_any_sense_are_not_believed(global_random_seed):
    """Leave-one-out with weights that have seen all labels finds sense in them; folds do not."""
    rng = np.random.default_rng(global_random_seed)
    losses = []
    for _ in range(3):  # a temperature of 60 rows is a matter of chance: its loss on average
        y = rng.integers(0, 3, 460)
        H, Y = rng.normal(size=(460, 1000)), 2.0 * (y[:, None] == np.arange(3)) - 1
        mine, alphas = slice(0, 60), np.logspace(-2, 4, 7)
        weights = relevance_weights(H[mine], Y[mine], np.ones(60))
        seen = leave_one_out_ridge(H[mine], Y[mine], alphas, column_weights=weights)
        ridge = relevance_ridge(H[mine], Y[mine], alphas, np.ones(60), folds_for(Y[mine]))
        assert seen.scores.sum(axis=1).min() < 0.75 * ridge.scores.sum(axis=1).min()
        for fit, left_out in ((seen, seen.left_out), (ridge, ridge.left_out[0])):
            temperature = fitted_temperature(left_out, Y[mine])
            scores = H[60:] @ fit.coef.T + fit.intercept
            losses.append(log_loss(y[60:], probabilities(scores, temperature)))
    believed, doubted = np.reshape(losses, (3, 2)).mean(axis=0)
    assert doubted < np.log(3) + 0.15 < believed - 0.5


@pytest.mark.parametrize("weights", [np.ones(3), np.full(20, -1.0), np.full(20, np.inf)])
def test_column_weights_that_cannot_be_raise(weights):
    H, _, Y = table(10, 20)
    with pytest.raises(ValueError, match=r"column_weights must have shape \(20,\)"):
        leave_one_out_ridge(H, Y, [1.0], column_weights=weights)


def test_a_weight_of_zero_leaves_a_column_out():
    H, _, Y = table(10, 20)
    weights = np.arange(20) % 2 * 3.0
    some = leave_one_out_ridge(H, Y, [1.0], column_weights=weights)
    rest = leave_one_out_ridge(H[:, 1::2], Y, [1.0 / 9])
    np.testing.assert_allclose(some.left_out, rest.left_out, rtol=1e-9)
    np.testing.assert_allclose(some.coef[:, 1::2], rest.coef, rtol=1e-9)
    assert not some.coef[:, ::2].any()


@pytest.mark.parametrize("shape", [(30, 80), (80, 30)])
def test_one_penalty_needs_no_eigendecomposition(shape):
    """Of large matrices, that is; repeated rows and no penalty leave Cholesky without factors."""
    rng = np.random.default_rng(0)
    H, Y = rng.normal(size=shape) @ rng.normal(size=(shape[1], shape[1])), rng.normal(size=shape)
    weights, columns = rng.uniform(0.5, 2, shape[0]), rng.uniform(0, 2, shape[1])
    H[:, 3] = 1.0
    for alpha in (0.01, 10.0):
        coef, intercept = ridge_at(H, Y[:, :3], alpha, weights, columns)
        same = leave_one_out_ridge(H, Y[:, :3], alpha, weights, column_weights=columns)
        np.testing.assert_allclose(coef, same.coef, rtol=0, atol=1e-9 * abs(same.coef).max())
        np.testing.assert_allclose(intercept, same.intercept, rtol=0, atol=1e-9)
    H[1::2] = H[::2]
    coef, _ = ridge_at(H, Y[:, :3], 0.0, weights, columns)
    same = leave_one_out_ridge(H, Y[:, :3], 0.0, weights, column_weights=columns)
    np.testing.assert_allclose(H @ coef.T, H @ same.coef.T, rtol=0, atol=1e-6)


def test_large_tables_are_fitted_as_small_ones_are(monkeypatch):
    rng = np.random.default_rng(1)
    H, Y = rng.normal(size=(40, 60)), np.repeat([[-1.0], [1.0]], 20, axis=0)
    given = H, Y, np.logspace(-2, 2, 5), np.ones(40), folds_for(Y)
    expected = relevance_ridge(*given)
    monkeypatch.setattr(relevance, "_LARGE", 10)
    for one, other in zip(relevance_ridge(*given), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def test_of_many_rows_some_choose_the_penalty_and_all_are_fitted(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    H = rng.normal(size=(4000, 6))
    Y = H[:, :2] + rng.normal(size=(4000, 2))
    folds = folds_for(Y)
    weights, alphas = np.ones(len(Y)), [1e-2, 1.0, 1e2, 1e6]
    found = relevance_ridge(H, Y, alphas, weights, folds)
    np.testing.assert_array_equal(np.isfinite(found.left_out).all(axis=2), folds >= 0)
    tried = folds[0] >= -1
    alone = relevance_ridge(H[tried], Y[tried], alphas, weights[tried], folds[:, tried])
    np.testing.assert_allclose(found.scores, alone.scores)
    columns = relevance_weights(H, Y, weights)
    exact = leave_one_out_ridge(H, Y, [found.alpha], weights, column_weights=columns)
    np.testing.assert_allclose(found.coef, exact.coef, rtol=1e-9)
    assert found.alpha < 1e6


@pytest.mark.parametrize("value", [-1.0, 0.1, 5.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_target_constant_among_the_rows_has_no_effect(value, seed):
    """As the column of a class that only the fold left out has."""
    rng = np.random.default_rng(seed)
    H, Y, w = rng.normal(size=(41, 9)), rng.normal(size=(41, 1)), rng.uniform(0.1, 2, 41)
    both = np.column_stack([np.full(41, value), Y])
    expected = relevance_weights(H, Y, w)
    np.testing.assert_allclose(relevance_weights(H, both, w), expected, rtol=1e-9)
    both[::4, 0] = 7.0
    folds = np.where(np.arange(41) % 4, -1, 0)
    said = [relevance.left_out_by_folds(H, y, np.ones(1), w, folds) for y in (Y, both)]
    np.testing.assert_allclose(said[1][0, ::4, 1], said[0][0, ::4, 0], rtol=1e-9)

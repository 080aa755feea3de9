"""Ridge readouts from Gram matrices against stored states, the hat matrix and scikit-learn."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, stats
from sklearn.linear_model import Ridge

from helpers import naive
from reservoir.building import build_reservoir
from reservoir.datasets import mackey_glass
from reservoir.dynamics import run
from reservoir.readouts import GramAccumulator, QRAccumulator, RidgeSolution, ridge_path
from reservoir.readouts.contract import ReadoutSettings
from reservoir.readouts.ridge import RidgeReadout

pytestmark = pytest.mark.one_engine

ALPHAS = [1e-6, 1e-3, 1e-1, 1.0, 1e2, 1e4]
INTERCEPT = pytest.mark.parametrize("fit_intercept", [True, False])
needs_longer_format = pytest.mark.skipif(
    np.finfo(np.longdouble).eps == np.finfo(np.float64).eps, reason="long doubles are doubles here"
)


def rows(n_samples=80, n_features=6, n_outputs=2, seed=0, offset=0.0, noise=0.5):
    rng = np.random.default_rng(seed)
    H = rng.normal(size=(n_samples, n_features)) * np.linspace(0.5, 2, n_features) + offset
    Y = (
        H @ rng.normal(size=(n_features, n_outputs))
        + 3
        + noise * rng.normal(size=(n_samples, n_outputs))
    )
    return H, Y


def gram_of(H, Y, weights=None, **options):
    return GramAccumulator(H.shape[1], Y.shape[1]).update(H, Y, weights, **options)


def assert_same_gram(left, right, rtol=1e-10, n_samples=True):
    """Equal relative to the size of the products, as computed with means of the same data."""
    if n_samples:
        assert left.n_samples == right.n_samples
    assert left.weight == pytest.approx(right.weight, rel=rtol)
    scale_h, scale_y = np.sqrt(np.diagonal(right.gram)), np.sqrt(right.sum_y2)
    for a, b, scale in (
        (left.gram, right.gram, np.outer(scale_h, scale_h)),
        (left.cross, right.cross, np.outer(scale_h, scale_y)),
        (left.sum_y2, right.sum_y2, scale_y**2),
        (left.mean_h, right.mean_h, 1 + np.abs(right.mean_h)),
        (left.mean_y, right.mean_y, 1 + np.abs(right.mean_y)),
    ):
        assert (np.abs(a - b) <= rtol * scale).all()


# --- accumulation ------------------------------------------------------------------------------


@pytest.mark.parametrize("n_samples", [1, 5, 512, 513, 1500])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_sums_equal_their_definition(n_samples, offset):
    H, Y = rows(n_samples, offset=offset)
    gram = gram_of(H, Y)
    h, y = H - H.mean(axis=0), Y - Y.mean(axis=0)
    atol = 1e-10 * n_samples
    np.testing.assert_allclose(gram.gram, h.T @ h, rtol=1e-9, atol=atol)
    np.testing.assert_allclose(gram.cross, h.T @ y, rtol=1e-9, atol=atol * (1 + offset * 1e-6))
    np.testing.assert_allclose(gram.sum_y2, (y**2).sum(axis=0), rtol=1e-9, atol=atol)
    np.testing.assert_allclose(gram.mean_h, H.mean(axis=0), rtol=1e-13, atol=1e-13)
    assert (gram.n_samples, gram.weight) == (n_samples, n_samples)
    np.testing.assert_array_equal(gram.gram, gram.gram.T)


@settings(max_examples=30, deadline=None)
@given(
    cuts=st.lists(st.integers(0, 700), max_size=5),
    order=st.randoms(use_true_random=False),
    offset=st.sampled_from([0.0, 1e3]),
    weighted=st.booleans(),
)
def test_any_chunking_and_merge_order_equals_one_update(cuts, order, offset, weighted):
    H, Y = rows(700, offset=offset)
    weights = np.random.default_rng(1).integers(0, 4, 700) if weighted else None
    edges = [0, *sorted(cuts), 700]
    parts = [slice(a, b) for a, b in itertools.pairwise(edges)]
    whole = gram_of(H, Y, weights)
    chunked = GramAccumulator(6, 2)
    grams = []
    for part in parts:
        w = None if weights is None else weights[part]
        chunked.update(H[part], Y[part], w)
        grams.append(gram_of(H[part], Y[part], w))
    order.shuffle(grams)
    merged = GramAccumulator(6, 2)
    for gram in grams:
        merged.merge(gram)
    assert_same_gram(chunked, whole)
    assert_same_gram(merged, whole)


@pytest.mark.parametrize("seed", range(4))
def test_a_column_that_varies_in_the_rows_left_out_alone_has_the_coefficient_zero(seed):
    """What is left of large numbers that are subtracted would be fitted by a small penalty."""
    H, Y = rows(500, seed=seed)
    H[:, 2] = np.where(np.arange(500) < 400, 0.0, 1e3 * H[:, 2])
    alphas, rest = [1e-8, 1e-6, 1e-3], np.array_split(np.arange(400), 3)
    block, others = gram_of(H[400:], Y[400:]), [gram_of(H[part], Y[part]) for part in rest]
    kept = {"blocks": [block], "rest": gram_of(H[:400], Y[:400])}
    scores = ridge_path(gram_of(H, Y), alphas, selection="holdout", **kept).scores
    without = np.delete(H, 2, axis=1)
    expected = naive.block_scores(without, Y, alphas, [np.arange(400, 500)])
    np.testing.assert_allclose(scores, expected, rtol=1e-10)
    path = gram_of(H, Y).without(block, others).path()
    for alpha in (1e-8, np.array([1e-8, 1e-6])):  # the way of penalties for each output
        assert not path.coef(alpha)[:, 2].any()


@settings(max_examples=20, deadline=None)
@given(start=st.integers(0, 690), length=st.integers(1, 600), weighted=st.booleans())
def test_downdate_and_subtract_undo_update(start, length, weighted):
    H, Y = rows(700, offset=5.0)
    weights = np.random.default_rng(1).uniform(0.5, 2, 700) if weighted else np.ones(700)
    out = np.arange(start, min(start + length, 690))
    rest = np.setdiff1d(np.arange(700), out)
    expected = gram_of(H[rest], Y[rest], weights[rest])
    downdated = gram_of(H, Y, weights).downdate(H[out], Y[out], weights[out])
    subtracted = gram_of(H, Y, weights).subtract(gram_of(H[out], Y[out], weights[out]))
    # what is left may be much smaller than what was taken: relative to the whole
    loss = 700 / len(rest)
    assert_same_gram(downdated, expected, rtol=1e-10 * loss)
    assert_same_gram(subtracted, expected, rtol=1e-10 * loss)


def test_taking_everything_away_leaves_an_empty_accumulator():
    H, Y = rows(600)
    for empty in (gram_of(H, Y).downdate(H, Y), gram_of(H, Y).subtract(gram_of(H, Y))):
        assert (empty.n_samples, empty.weight) == (0, 0.0)
        assert not empty.gram.any()
        assert_same_gram(empty.update(H, Y), gram_of(H, Y), rtol=1e-15)


def test_what_was_not_added_cannot_be_taken_away():
    H, Y = rows(600)
    gram, before = gram_of(H[:550], Y[:550]), gram_of(H[:550], Y[:550])
    message = "Cannot subtract 600 rows of total weight 600: only 550 rows"
    with pytest.raises(ValueError, match=message):
        gram.downdate(H, Y)
    with pytest.raises(ValueError, match=message):
        gram.subtract(gram_of(H, Y))
    assert_same_gram(gram, before, rtol=0)  # nothing has changed
    with pytest.raises(ValueError, match="remaining rows would be lost in rounding errors"):
        gram_of(H[:2], Y[:2], [1e20, 1.0]).downdate(H[:1], Y[:1], [1e20])


@INTERCEPT
def test_integer_weights_equal_repeated_rows(fit_intercept):
    H, Y = rows()
    weights = np.random.default_rng(1).integers(0, 4, len(H))
    weighted = gram_of(H, Y, weights)
    repeated = gram_of(np.repeat(H, weights, axis=0), np.repeat(Y, weights, axis=0))
    assert_same_gram(weighted, repeated, n_samples=False)
    assert weighted.n_samples == np.count_nonzero(weights)
    left = weighted.solve(0.1, fit_intercept=fit_intercept)
    right = repeated.solve(0.1, fit_intercept=fit_intercept)
    np.testing.assert_allclose(left.coef, right.coef, rtol=1e-10)
    np.testing.assert_allclose(left.intercept, right.intercept, rtol=1e-10, atol=1e-12)


def test_rows_of_weight_zero_are_not_read():
    H, Y = rows(10)
    H[3], Y[4] = np.nan, np.inf
    weights = np.ones(10)
    weights[[3, 4]] = 0
    assert_same_gram(
        gram_of(H, Y, weights),
        gram_of(np.delete(H, [3, 4], 0), np.delete(Y, [3, 4], 0)),
        rtol=1e-15,
    )


def test_rows_with_missing_targets_are_left_out_on_request():
    H, Y = rows(1200)
    gone = np.arange(0, 1200, 7)
    Y[gone, gone % 2] = np.nan  # NaN in one of two outputs is enough
    kept = np.setdiff1d(np.arange(1200), gone)
    assert_same_gram(gram_of(H, Y, missing="skip"), gram_of(H[kept], Y[kept]), rtol=1e-12)
    w = np.linspace(0.5, 1, 1200)
    assert_same_gram(
        gram_of(H, Y, w, missing="skip"), gram_of(H[kept], Y[kept], w[kept]), rtol=1e-12
    )
    both = gram_of(H, Y, missing="skip").downdate(H[:100], Y[:100], missing="skip")
    assert_same_gram(both, gram_of(H[100:], Y[100:], missing="skip"), rtol=1e-10)
    with pytest.raises(ValueError, match=r"Y contains NaN or infinity, or .* in column 0"):
        gram_of(H, Y)
    with pytest.raises(ValueError, match=r"missing='skpi' is not known\. Did you mean 'skip'"):
        gram_of(H, Y, missing="skpi")
    nothing = gram_of(H, np.full_like(Y, np.nan), missing="skip")
    with pytest.raises(ValueError, match=r"No rows to fit: n_samples=0\. No rows were added, or"):
        nothing.solve(1.0)


@settings(max_examples=25, deadline=None)
@given(
    layout=st.sampled_from(["C", "F", "strided", "read-only"]),
    dtype=st.sampled_from(["float64", "float32", "int64"]),
    n_samples=st.integers(1, 30),
    n_features=st.integers(1, 5),
    n_outputs=st.integers(1, 3),
)
def test_shapes_layouts_and_dtypes(layout, dtype, n_samples, n_features, n_outputs):
    plain_H, plain_Y = (part.astype(dtype) for part in rows(n_samples, n_features, n_outputs))
    H, Y = plain_H.copy(), plain_Y.copy()
    if layout == "F":
        H, Y = np.asfortranarray(H), np.asfortranarray(Y)
    elif layout == "strided":
        H, Y = np.repeat(H, 2, axis=1)[:, ::2], np.repeat(Y, 2, axis=0)[::2]
    elif layout == "read-only":
        H.flags.writeable = Y.flags.writeable = False
    gram = gram_of(H, Y)
    assert_same_gram(gram, gram_of(plain_H.astype(float), plain_Y.astype(float)), rtol=1e-14)
    np.testing.assert_array_equal(H, plain_H)  # the arguments are left alone
    np.testing.assert_array_equal(Y, plain_Y)
    for part in (gram.gram, gram.cross, gram.sum_y2, gram.mean_h, gram.mean_y):
        assert part.dtype == np.float64
    solution = gram.solve(1.0)
    assert solution.coef.shape == (n_outputs, n_features)
    assert solution.intercept.shape == (n_outputs,)
    assert np.isfinite(solution.coef).all()


def test_one_output_may_be_one_dimensional():
    H, Y = rows(n_outputs=1)
    gram = GramAccumulator(6, 1).update(H, Y[:, 0])
    assert_same_gram(gram, gram_of(H, Y), rtol=0)


def test_copies_and_pickles_are_independent():
    H, Y = rows()
    gram = gram_of(H, Y)
    for other in (gram.copy(), pickle.loads(pickle.dumps(gram))):
        assert_same_gram(other, gram, rtol=0)
        other.update(H, Y)
        assert gram.n_samples == len(H)
        assert_same_gram(gram, gram_of(H, Y), rtol=0)


def test_merge_does_not_change_the_other():
    H, Y = rows()
    other = gram_of(H[:30], Y[:30])
    gram = GramAccumulator(6, 2).merge(other)
    gram.update(H[30:], Y[30:])
    assert_same_gram(other, gram_of(H[:30], Y[:30]), rtol=0)


@pytest.mark.parametrize(
    "which, value", [("H", np.nan), ("Y", np.inf), ("H", 1e200), ("Y", -1e300)]
)
def test_errors_of_nan_and_overflow_name_the_column(which, value):
    H, Y = rows()
    (H if which == "H" else Y)[11, 1] = value
    gram = gram_of(*rows(seed=1))
    with pytest.raises(ValueError, match=f"{which} contains NaN or infinity, or .* in column 1"):
        gram.update(H, Y)
    assert_same_gram(gram, gram_of(*rows(seed=1)), rtol=0)  # a refused block leaves no trace


def test_huge_constants_are_finite_and_huge_steps_raise():
    huge = np.full((600, 1), 1.1e150)
    solution = GramAccumulator(1, 1).update(huge, huge).solve(1.0)
    assert solution.coef == 0.0
    assert solution.intercept == pytest.approx(1.1e150)
    huge = np.full((512, 1), 2.0**600)  # the mean of one block is exact, its square is not finite
    assert GramAccumulator(1, 1).update(huge, huge).solve(1.0).intercept == 2.0**600
    zeros = np.zeros((512, 1))
    with pytest.raises(ValueError, match="H contains NaN or infinity, or values whose squares"):
        GramAccumulator(1, 1).update(zeros, zeros).update(huge, zeros)
    with pytest.raises(ValueError, match="Y contains NaN or infinity, or values whose squares"):
        GramAccumulator(1, 1).update(zeros, zeros).merge(GramAccumulator(1, 1).update(zeros, huge))
    with pytest.raises(ValueError, match="The Gram matrix overflows: scale the data down"):
        GramAccumulator(1, 1).update(huge, huge).solve(1.0, fit_intercept=False)


def test_arguments_are_checked():
    gram, (H, Y) = GramAccumulator(6, 2), rows(10)
    with pytest.raises(ValueError, match=r"H must have shape \(n_samples, 6\); got \(10, 5\)"):
        gram.update(H[:, :5], Y)
    with pytest.raises(ValueError, match=r"Y must have shape \(10, 2\); got \(9, 2\)"):
        gram.update(H, Y[:9])
    with pytest.raises(ValueError, match=r"sample_weight must have shape \(10,\); got \(9,\)"):
        gram.update(H, Y, np.ones(9))
    for bad in (-1.0, np.nan, np.inf, 1e308):
        with pytest.raises(ValueError, match="sample_weight must be finite and at least 0"):
            gram.update(H, Y, np.full(10, bad))
    with pytest.raises(ValueError, match=r"this one has \(6, 2\) and the other one has \(5, 2\)"):
        gram.merge(GramAccumulator(5, 2))
    with pytest.raises(ValueError, match="n_features=0 must be at least 1"):
        GramAccumulator(0, 1)
    with pytest.raises(ValueError, match="No rows to fit: n_samples=0"):
        gram.solve(1.0)
    gram.update(H, Y)
    for bad in (-1.0, np.nan, np.inf, True, "small"):
        with pytest.raises(ValueError, match=r"alpha=.* must be finite and at least 0"):
            gram.solve(bad)
        with pytest.raises(ValueError, match=r"alpha=.* must be finite and at least 0"):
            ridge_path(gram, bad)
    with pytest.raises(ValueError, match=r"shape \(n_outputs=2,\); got shape \(3,\)"):
        gram.solve([1.0, 1.0, 1.0])


# --- one penalty -------------------------------------------------------------------------------


@INTERCEPT
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e3])
def test_solve_equals_scikit_learn(fit_intercept, n_outputs, weighted, offset, alpha):
    if offset and not fit_intercept:
        offset = 10.0  # without an intercept the offset is signal: 1e6 squared leaves no digits
    H, Y = rows(200, n_outputs=n_outputs, offset=offset)
    weights = np.random.default_rng(1).uniform(0, 3, 200) if weighted else None
    solution = gram_of(H, Y, weights).solve(alpha, fit_intercept=fit_intercept)
    peer = Ridge(alpha=alpha, fit_intercept=fit_intercept, solver="svd").fit(H, Y, weights)
    coef = np.atleast_2d(peer.coef_)
    np.testing.assert_allclose(solution.coef, coef, rtol=1e-8, atol=1e-8 * np.abs(coef).max())
    np.testing.assert_allclose(
        solution.intercept, np.full(n_outputs, peer.intercept_), rtol=1e-8, atol=1e-8
    )
    np.testing.assert_allclose(
        H @ solution.coef.T + solution.intercept,
        peer.predict(H).reshape(200, -1),
        rtol=0,
        atol=1e-8 * np.abs(Y).max(),
    )


@INTERCEPT
@pytest.mark.parametrize("weighted", [False, True])
def test_solve_equals_the_stored_solutions(fit_intercept, weighted):
    H, Y = rows()
    weights = np.random.default_rng(1).uniform(0.1, 3, len(H)) if weighted else None
    solution = gram_of(H, Y, weights).solve(0.7, fit_intercept=fit_intercept)
    for slow in (naive.ridge, naive.ridge_normal_equations):
        coef, intercept = slow(H, Y, 0.7, weights=weights, fit_intercept=fit_intercept)
        np.testing.assert_allclose(solution.coef, coef, rtol=0, atol=1e-11)
        np.testing.assert_allclose(solution.intercept, intercept, rtol=0, atol=1e-11)


def test_attributes_of_a_solution():
    solution = gram_of(*rows()).solve(0.5)
    assert isinstance(solution, RidgeSolution)
    assert (solution.alpha, solution.scores) == (0.5, None)
    assert gram_of(*rows()).solve(0.5, fit_intercept=False).intercept.tolist() == [0.0, 0.0]


def test_penalty_per_output():
    H, Y = rows(n_outputs=3)
    gram, alphas = gram_of(H, Y), [0.0, 1.0, 1e3]
    solution = gram.solve(alphas)
    np.testing.assert_array_equal(solution.alpha, alphas)
    for k, alpha in enumerate(alphas):
        single = gram.solve(alpha)
        np.testing.assert_allclose(solution.coef[k], single.coef[k], rtol=1e-10)
        np.testing.assert_allclose(solution.intercept[k], single.intercept[k], rtol=1e-10)


@INTERCEPT
@pytest.mark.parametrize("case", ["duplicate", "constant", "fewer rows", "low rank"])
def test_least_norm_where_the_gram_is_singular(case, fit_intercept):
    rng = np.random.default_rng(0)
    H, _ = rows(40)
    if case == "duplicate":
        H = H[:, [0, 1, 2, 3, 0, 1]]
    elif case == "constant":
        H[:, 2] = 3.0 if fit_intercept else 0.0
    elif case == "fewer rows":
        H = rng.normal(size=(5, 12))
    else:
        H = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 8))
    Y = H @ rng.normal(size=(H.shape[1], 2)) + 0.1 * rng.normal(size=(len(H), 2)) + fit_intercept
    solution = gram_of(H, Y).solve(0.0, fit_intercept=fit_intercept)
    mean_h, mean_y = (H.mean(axis=0), Y.mean(axis=0)) if fit_intercept else (0.0, 0.0)
    expected = np.linalg.lstsq(H - mean_h, Y - mean_y, rcond=1e-10)[0].T
    np.testing.assert_allclose(solution.coef, expected, rtol=0, atol=1e-7 * np.abs(expected).max())
    np.testing.assert_allclose(
        H @ solution.coef.T + solution.intercept,
        (H - mean_h) @ expected.T + mean_y,
        rtol=0,
        atol=1e-8 * np.abs(Y).max(),
    )


def test_one_row_gives_the_mean():
    solution = GramAccumulator(2, 1).update([[1.0, 2.0]], [5.0]).solve(0.0)
    assert solution.coef.tolist() == [[0.0, 0.0]]
    assert solution.intercept.tolist() == [5.0]


@pytest.mark.parametrize("alpha", [0.0, 1e-6, 1.0])
def test_constant_features_and_targets_are_finite(alpha):
    H, Y = rows()
    H[:, 2], Y[:, 1] = 7.0, -4.0
    for solution in (gram_of(H, Y).solve(alpha), ridge_path(gram_of(H, Y), [alpha, 10.0])):
        assert np.isfinite(solution.coef).all()
        np.testing.assert_allclose(solution.coef[:, 2], 0.0, atol=1e-12)
        np.testing.assert_allclose(solution.coef[1], 0.0, atol=1e-12)
        assert solution.intercept[1] == pytest.approx(-4.0)
    constant = gram_of(np.ones((9, 3)), np.ones((9, 1))).solve(alpha)
    assert constant.coef.tolist() == [[0.0, 0.0, 0.0]]
    assert constant.intercept.tolist() == [1.0]


@pytest.mark.parametrize("alpha", [0.0, 1e-30, 1e-6])
@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e6 / 7])
def test_the_rounding_errors_of_a_constant_are_not_fitted(alpha, value):
    H, Y = rows(1100)
    H[:, 2] = value  # not a binary fraction: less its mean it is not zero
    clean = np.delete(H, 2, axis=1)
    solution = gram_of(H, Y).solve(alpha)
    expected = gram_of(clean, Y).solve(alpha)
    np.testing.assert_allclose(solution.coef[:, 2], 0.0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.delete(solution.coef, 2, 1), expected.coef, rtol=1e-10)
    # the same for a state that has settled but for its last digit
    H[:, 2] += np.random.default_rng(1).integers(-1, 2, len(H)) * np.spacing(value)
    settled = gram_of(H, Y).solve(alpha)
    np.testing.assert_allclose(settled.coef, solution.coef, rtol=1e-10, atol=1e-12)
    alone = gram_of(H[:, [2]], Y)
    assert not alone.solve(alpha).coef.any()
    assert not ridge_path(alone, [alpha, 1e-3]).coef.any()


def test_a_column_in_large_units_does_not_silence_the_others():
    H, Y = rows(300)
    H[:, 0] *= 1e8  # its square exceeds that of the others by more than 1 / eps
    solution = gram_of(H, Y).solve(1e-3)
    predicted = H @ solution.coef.T + solution.intercept
    coef, intercept = naive.ridge(H * [1e-8, 1, 1, 1, 1, 1], Y, 1e-3)
    expected = H * [1e-8, 1, 1, 1, 1, 1] @ coef.T + intercept
    np.testing.assert_allclose(predicted, expected, rtol=0, atol=1e-4)


def test_float32_rows_equal_their_float64_copies():
    H, Y = (part.astype(np.float32) for part in rows(700))
    left, right = gram_of(H, Y), gram_of(H.astype(float), Y.astype(float))
    assert_same_gram(left, right, rtol=0)


# --- choosing the penalty ----------------------------------------------------------------------


@INTERCEPT
@pytest.mark.parametrize("n_samples", [80, 7, 5])  # 6 features: more rows than features, and fewer
@pytest.mark.parametrize("weighted", [False, True])
def test_gcv_equals_the_hat_matrix(fit_intercept, n_samples, weighted):
    H, Y = rows(n_samples)
    weights = np.random.default_rng(1).uniform(0.2, 3, n_samples) if weighted else None
    alphas = [1e-2, 1.0, 1e2]
    solution = ridge_path(gram_of(H, Y, weights), alphas, fit_intercept=fit_intercept)
    expected = [naive.gcv(H, Y, a, weights=weights, fit_intercept=fit_intercept) for a in alphas]
    np.testing.assert_allclose(solution.scores, expected, rtol=1e-8)


@INTERCEPT
@pytest.mark.parametrize("n_samples", [80, 7, 5])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sums", [GramAccumulator, QRAccumulator])
def test_reml_equals_the_density_of_contrasts(fit_intercept, n_samples, weighted, sums):
    """Normal contrasts of the rows, with coefficients of variance s^2 / alpha; s^2 as it fits."""
    H, Y = rows(n_samples)
    w = np.random.default_rng(1).uniform(0.2, 3, n_samples) if weighted else np.ones(n_samples)
    root = np.sqrt(w)[:, None]
    contrasts = linalg.null_space(root.T) if fit_intercept else np.eye(n_samples)
    h, y = contrasts.T @ (root * H), contrasts.T @ (root * Y)
    m, alphas = len(y), [1e-2, 1.0, 1e2]
    total = sums(6, 2).update(H, Y, w)
    options = {"selection": "reml", "fit_intercept": fit_intercept}
    scores = ridge_path(total, alphas, **options).scores
    for alpha, score in zip(alphas, scores, strict=True):
        V = np.eye(m) + h @ h.T / alpha
        for target, variance in zip(y.T, score, strict=True):
            s2 = target @ np.linalg.solve(V, target) / m
            likelihood = stats.multivariate_normal.logpdf(target, cov=s2 * V)
            expected = -m / 2 * (np.log(2 * np.pi * variance) + 1)
            assert likelihood == pytest.approx(expected, rel=1e-8)


def test_reml_of_rows_that_have_aged_counts_them_by_their_factors():
    """Weights of integers are rows that come several times, to the penalty that is chosen."""
    H, Y = rows(300)
    gram = GramAccumulator(6, 2, forgetting=0.98).update(H, Y)
    path, total = gram.path(), gram.n_samples
    ages = 0.98 ** np.arange(total - 1, -1, -1)
    centred = H - ages @ H / ages.sum()
    values = np.linalg.eigvalsh((ages[:, None] * centred).T @ centred)
    m = ages.sum() - 1
    for alpha in (1e-2, 1.0, 1e2):
        coef, intercept = naive.ridge(H, Y, alpha, weights=ages)
        residual = Y - H @ coef.T - intercept
        objective = ages @ residual**2 + alpha * (coef**2).sum(axis=1)
        expected = objective / m * np.exp(np.log1p(values / alpha).sum() / m)
        np.testing.assert_allclose(path.reml(alpha), expected, rtol=1e-8)
    assert np.isinf(path.reml(0.0)).all()


@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_gcv_with_a_large_offset(offset):
    H, Y = rows(offset=offset)
    scores = ridge_path(gram_of(H, Y), ALPHAS).scores
    expected = ridge_path(gram_of(H - offset, Y - Y.mean(axis=0)), ALPHAS).scores
    np.testing.assert_allclose(scores, expected, rtol=1e-6)


@INTERCEPT
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("selection", ["blocked", "holdout"])
@pytest.mark.parametrize("sums", [GramAccumulator, QRAccumulator])
def test_block_scores_equal_explicit_refits(fit_intercept, weighted, selection, sums):
    H, Y = rows(90)
    alphas = ALPHAS if sums is GramAccumulator else [1e-14, *ALPHAS[1:]]
    weights = np.random.default_rng(1).uniform(0.2, 3, 90) if weighted else np.ones(90)
    parts = np.array_split(np.arange(90), 4)  # of unequal lengths
    if selection == "holdout":
        parts = [np.arange(70, 90)]
    outside = np.setdiff1d(np.arange(90), np.concatenate(parts))
    every, *blocks, rest = (
        sums(6, 2).update(H[p], Y[p], weights[p]) for p in (np.arange(90), *parts, outside)
    )
    before = copy.deepcopy(every)
    options = {"selection": selection, "blocks": blocks, "fit_intercept": fit_intercept}
    options |= {} if sums is GramAccumulator else {"rest": rest}  # which sums can be taken from
    solution = ridge_path(every, alphas, **options)
    expected = naive.block_scores(H, Y, alphas, parts, weights=weights, fit_intercept=fit_intercept)
    np.testing.assert_allclose(solution.scores, expected, rtol=1e-9)
    in_units = expected / np.cov(Y.T, aweights=weights, ddof=0).diagonal()
    assert solution.alpha == alphas[int(np.argmin(in_units.sum(axis=1)))]
    refit = every.solve(solution.alpha, fit_intercept=fit_intercept)
    np.testing.assert_array_equal(solution.coef, refit.coef)
    if sums is QRAccumulator:  # nothing was taken away for good
        np.testing.assert_array_equal(every.R, before.R)
        return
    assert_same_gram(every, before, rtol=0)


@pytest.mark.parametrize("alpha", [0.0, 1e-9, 1e-3, 1e3])
def test_a_path_of_one_equals_solve(alpha):
    H, Y = rows()
    gram = gram_of(H, Y)
    solution = ridge_path(gram, [alpha])
    single = gram.solve(alpha)
    assert solution.alpha == alpha
    np.testing.assert_array_equal(solution.coef, single.coef)
    np.testing.assert_array_equal(solution.intercept, single.intercept)


def test_scores_come_in_the_order_of_alphas():
    gram = gram_of(*rows())
    shuffled = [ALPHAS[i] for i in (3, 0, 5, 2, 4, 1)]
    scores = dict(zip(ALPHAS, ridge_path(gram, ALPHAS).scores.tolist(), strict=True))
    again = ridge_path(gram, shuffled)
    assert again.scores.tolist() == [scores[a] for a in shuffled]
    assert again.alpha == ridge_path(gram, ALPHAS).alpha


@pytest.mark.parametrize("alphas", [[1e-3, 10.0, 1.0], [10.0, 1.0, 1e-3], [1e-3, 1.0, 10.0]])
def test_ties_go_to_the_larger_penalty(alphas, global_random_seed):
    H, Y = rows(seed=global_random_seed)
    assert ridge_path(gram_of(H, np.ones_like(Y)), alphas).alpha == 10.0  # nothing to explain
    parts = [slice(0, 40), slice(40, 80)]
    blocks = [gram_of(H[p], np.ones_like(Y[p])) for p in parts]
    tied = ridge_path(gram_of(H, np.ones_like(Y)), alphas, selection="blocked", blocks=blocks)
    assert tied.alpha == 10.0
    assert (tied.scores <= np.finfo(float).eps ** 2).all()  # nothing but rounding, squared


def test_penalty_per_target(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    H = rng.normal(size=(60, 20))
    Y = np.column_stack(
        [H[:, 0] + 1e-3 * rng.normal(size=60), 0.05 * H[:, 1] + rng.normal(size=60)]
    )
    gram = gram_of(H, Y)
    solution = ridge_path(gram, ALPHAS, per_target=True)
    scores = np.array([naive.gcv(H, Y, a) for a in ALPHAS])
    expected = np.array(ALPHAS)[scores.argmin(axis=0)]
    assert expected[0] < expected[1]  # the case is one in which the outputs differ
    np.testing.assert_array_equal(solution.alpha, expected)
    np.testing.assert_allclose(solution.coef, gram.solve(expected).coef, rtol=0, atol=1e-12)
    together = ridge_path(gram, ALPHAS)
    assert together.alpha == ALPHAS[int((scores / Y.var(axis=0)).sum(axis=1).argmin())]


def test_path_checks_its_arguments():
    H, Y = rows()
    gram, block = gram_of(H, Y), gram_of(H[:40], Y[:40])
    with pytest.raises(ValueError, match=r"selection='gvc' is not known\. Did you mean 'gcv'"):
        ridge_path(gram, ALPHAS, selection="gvc")
    with pytest.raises(ValueError, match=r"alphas must have shape \(n_alphas,\); got \(0,\)"):
        ridge_path(gram, [])
    with pytest.raises(ValueError, match="selection='blocked' needs two blocks or more; got 1"):
        ridge_path(gram, ALPHAS, selection="blocked", blocks=[block])
    with pytest.raises(ValueError, match=r"selection='holdout' needs blocks=\[held_out\]; got 2"):
        ridge_path(gram, ALPHAS, selection="holdout", blocks=[block, block])
    with pytest.raises(ValueError, match="A block of 80 rows leaves 0 of 80 rows for the fit"):
        ridge_path(gram, ALPHAS, selection="holdout", blocks=[gram])
    with pytest.raises(ValueError, match="A block of 0 rows leaves 80 of 80 rows for the fit"):
        ridge_path(gram, ALPHAS, selection="holdout", blocks=[GramAccumulator(6, 2)])


# --- where the Gram matrix is at the end of its digits -----------------------------------------


@pytest.fixture(scope="module")
def mackey_glass_states():
    """Rows to fit, rows to test and the test error by SVD for some penalties; cond(Gram) 1e14."""
    series = np.asarray(mackey_glass(2900)).reshape(-1, 1)
    series = (series - series.mean()) / series.std()
    reservoir = build_reservoir(300, 1, spectral_radius=0.9, leak_rate=0.5, random_state=1)
    H, Y = run(reservoir, series[:-1])[100:], series[101:]
    H, Y, H_new, Y_new = H[:2000], Y[:2000], H[2000:], Y[2000:]
    best = {a: error(H_new, Y_new, *naive.ridge(H, Y, a)) for a in (1e-6, 1e-8, 1e-9)}
    return H, Y, H_new, Y_new, best


def error(H, Y, coef, intercept):
    return float(np.mean((H @ coef.T + intercept - Y) ** 2))


def test_a_tiny_penalty_costs_little_accuracy_on_new_data(mackey_glass_states):
    H, Y, H_new, Y_new, best = mackey_glass_states
    gram = gram_of(H, Y)
    assert np.linalg.cond(gram.gram) > 1e13
    for alpha in best:  # down to about 8 eps times the largest eigenvalue
        solution = gram.solve(alpha)
        assert error(H_new, Y_new, solution.coef, solution.intercept) < 1.02 * best[alpha]
    for alpha in (1e-11, 1e-13, 0.0):  # below, directions are cut off instead of blown up
        solution = gram.solve(alpha)
        assert error(H_new, Y_new, solution.coef, solution.intercept) < 1.3 * best[1e-9]


@pytest.mark.parametrize("selection", ["gcv", "blocked", "holdout"])
def test_the_choice_from_the_gram_is_as_good_as_one_from_stored_states(
    mackey_glass_states, selection
):
    H, Y, H_new, Y_new, best = mackey_glass_states
    alphas = 10.0 ** np.arange(-12, 3)
    parts = np.array_split(np.arange(len(H)), 5)
    blocks = [gram_of(H[p], Y[p]) for p in parts]
    blocks = {"gcv": None, "blocked": blocks, "holdout": blocks[-1:]}[selection]
    solution = ridge_path(gram_of(H, Y), alphas, selection=selection, blocks=blocks)
    assert error(H_new, Y_new, solution.coef, solution.intercept) < 1.1 * min(best.values())


def test_a_perfect_fit_has_a_score_of_rounding_size(global_random_seed):
    H, _ = rows(200, seed=global_random_seed)
    Y = H @ np.ones((6, 1))
    solution = ridge_path(gram_of(H, Y), [1e-14, 1e-12, 1e-3])
    assert (solution.scores > 0).all()
    assert solution.scores.min() < 1e-12 * Y.var()
    assert solution.alpha == 1e-12  # both are exact to rounding: the larger penalty
    np.testing.assert_allclose(solution.coef, 1.0, rtol=1e-10)


@needs_longer_format
def test_light_rows_far_away_cost_no_digits():
    rng = np.random.default_rng(0)
    H = rng.normal(size=(2048, 4))
    H[:512] += 1e6
    w = np.where(np.arange(2048) < 512, 1e-9, 1.0)
    longer, weights = H.astype(np.longdouble), w.astype(np.longdouble)[:, None]
    centred = longer - (weights * longer).sum(axis=0) / weights.sum()
    exact = ((weights * centred).T @ centred).astype(np.float64)
    gram = GramAccumulator(4, 1).update(H, H[:, :1], w)
    np.testing.assert_allclose(gram.gram, exact, rtol=0, atol=1e-12 * np.abs(exact).max())


def test_a_row_far_away_can_be_taken_away_again():
    rng = np.random.default_rng(0)
    H = rng.normal(size=(2000, 3))
    far = np.full((1, 3), 1e5)
    gram = GramAccumulator(3, 1).update(far, far[:, :1]).update(H, H[:, :1])
    gram.downdate(far, far[:, :1])
    np.testing.assert_allclose(gram.gram, gram_of(H, H[:, :1]).gram, rtol=0, atol=1e-4)


@pytest.mark.parametrize("scale", [1e-170, 1e-100, 1e100])
def test_only_the_ratio_of_weights_counts(scale):
    H, Y = rows(1500)
    w = np.random.default_rng(0).uniform(0.5, 2, 1500)
    plain, scaled = gram_of(H, Y, w), gram_of(H, Y, scale * w)
    np.testing.assert_allclose(scaled.gram / scale, plain.gram, rtol=1e-10)
    np.testing.assert_allclose(scaled.cross / scale, plain.cross, rtol=1e-9, atol=1e-10)


def test_weights_that_overflow_raise():
    H, Y = rows(600)
    with pytest.raises(ValueError, match="H contains NaN or infinity, or values whose squares"):
        gram_of(1e3 * H, Y, np.full(600, 1e305))


@pytest.mark.parametrize("layout", ["strided", "F"])
def test_the_layout_of_the_rows_changes_no_bit(layout):
    H, Y = rows(700)
    plain = gram_of(H, Y)
    if layout == "F":
        H, Y = np.asfortranarray(H), np.asfortranarray(Y)
    else:
        H, Y = np.repeat(H, 2, axis=1)[:, ::2], np.repeat(Y, 2, axis=1)[:, ::2]
    other = gram_of(H, Y)
    np.testing.assert_array_equal(other.gram, plain.gram)
    np.testing.assert_array_equal(other.cross, plain.cross)


def test_rows_may_be_worked_on_in_place_on_request_only():
    rng = np.random.default_rng(0)
    H, Y = rng.normal(5, 1, (1300, 7)), rng.normal(size=(1300, 2))
    plain = GramAccumulator(7, 2).update(before := H.copy(), Y)
    np.testing.assert_array_equal(before, H)
    fixed = H.copy()
    fixed.flags.writeable = False
    for rows in (
        H.copy(),
        fixed,
        np.asfortranarray(H),
        H.astype(np.float32),
        np.repeat(H, 2, axis=0)[::2],
    ):
        other = GramAccumulator(7, 2).update(rows, Y, overwrite_h=True)
        atol = 1e-3 if rows.dtype == np.float32 else 1e-9
        np.testing.assert_allclose(other.gram, plain.gram, rtol=0, atol=atol)
        np.testing.assert_allclose(other.cross, plain.cross, rtol=0, atol=atol)


@needs_longer_format
@pytest.mark.parametrize("jump", [0.0, 1e3, 1e6])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_series_that_jumps_costs_no_more_digits_than_its_range(jump, weighted):
    rng = np.random.default_rng(0)
    H = rng.normal(size=(5000, 6))
    H[:512] += jump  # the first block, about whose mean the first sums are taken
    w = rng.uniform(0.5, 2.0, 5000) if weighted else np.ones(5000)
    gram = GramAccumulator(6, 1).update(H, H[:, :1], w if weighted else None)
    longer = H.astype(np.longdouble)
    centred = longer - (w[:, None] * longer).sum(axis=0) / w.sum()
    exact = ((w[:, None] * centred).T @ centred).astype(np.float64)
    np.testing.assert_allclose(gram.gram, exact, rtol=0, atol=1e-14 * np.abs(exact).max())
    np.testing.assert_allclose(gram.cross, exact[:, :1], rtol=0, atol=1e-14 * np.abs(exact).max())


@pytest.mark.parametrize("selection", ["blocked", "holdout"])
def test_parts_may_come_in_any_order(selection):
    """Rows of short sequences are gathered, and their parts begin in another order."""
    H, Y = rows(n_samples=97)
    parts = np.array_split(np.arange(97), 5 if selection == "blocked" else 2)
    found = []
    for order in (range(len(parts)), reversed(range(len(parts)))):
        settings = ReadoutSettings(alpha=ALPHAS, selection=selection)
        readout = RidgeReadout(settings).begin(H.shape[1], Y.shape[1])
        for part in order:
            readout.update(H[parts[part]].copy(), Y[parts[part]], part=part)
        found.append(readout.solve())
    assert found[0].keys() == found[1].keys()
    for name, value in found[0].items():
        assert np.array_equal(value, found[1][name]), name

"""A penalty chosen by two halves: runs of growing length, the default path, any split."""

import contextlib
import copy
import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import naive
from reservoir import ESNClassifier, ESNRegressor, NVARRegressor, load, save
from reservoir.datasets import narma, sine_square
from reservoir.readouts import GramAccumulator, QRAccumulator
from reservoir.readouts.gram import along_path
from reservoir.readouts.selection import Runs, default_path

pytestmark = pytest.mark.both_engines


def halves_of(lengths, skips=None, splits=()):
    """Return which half each row behind the washout belongs to, one array for each sequence.

    The last sequence comes in chunks that end at `splits`.
    """
    runs, found = Runs(), []
    for i, n in enumerate(lengths):
        ends = [*splits, n] if i == len(lengths) - 1 else [n]
        rows = []
        for k, (a, b) in enumerate(itertools.pairwise([0, *ends])):
            skip = skips[i] if skips and k == 0 else 0
            (cuts,) = runs.cut([b - a], [skip], continues=k > 0)
            start = skip
            for half, end in cuts:
                rows += [half] * (end - start)
                start = end
        found.append(np.array(rows, dtype=int))
    return found


@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 400), min_size=1, max_size=5),
    splits=st.sets(st.integers(1, 399), max_size=4),
)
def test_rows_belong_to_the_same_half_in_any_split(lengths, splits):
    splits = sorted(split for split in splits if split < lengths[-1])
    whole, parts = halves_of(lengths), halves_of(lengths, splits=splits)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)
    # a longer series begins as a shorter one
    np.testing.assert_array_equal(
        halves_of([*lengths[:-1], 2 * lengths[-1]])[-1][: lengths[-1]], whole[-1]
    )


@pytest.mark.parametrize("n", [100, 1000, 30_000])
def test_runs_grow_with_the_rows_and_halves_are_alike(n):
    (halves,) = halves_of([n])
    starts = np.flatnonzero(np.diff(halves, prepend=1 - halves[0]))
    lengths = np.diff(starts)  # without the last run, which may have just begun
    assert (lengths >= np.maximum(16, 2 * (starts[:-1] // 5))).all()
    assert lengths.max() <= 2 * n / 5
    assert 0.3 < halves.mean() < 0.7
    (washed,) = halves_of([n], [40])
    np.testing.assert_array_equal(washed, halves[: n - 40])


def test_a_short_sequence_is_in_one_half():
    of_each = halves_of([12] * 200)
    assert all(np.unique(half).size == 1 for half in of_each)
    assert 0.3 < np.mean([half[0] for half in of_each]) < 0.7


@pytest.mark.parametrize("kind", [GramAccumulator, QRAccumulator])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_features", [1, 2, 7])
def test_coefficients_along_a_path_are_those_of_each_penalty(kind, fit_intercept, n_features):
    rng = np.random.default_rng(n_features)
    H, Y = rng.normal(2, 1, (60, n_features)), rng.normal(size=(60, 2))
    H[:, -1] = 0 if n_features > 2 else H[:, -1]
    sums, alphas = kind(n_features, 2).update(H, Y), np.array([1e-9, 1e-3, 1.0, 1e4])
    coefs, intercepts = sums.along(alphas, fit_intercept)
    for alpha, coef, intercept in zip(alphas, coefs, intercepts, strict=True):
        expected = naive.ridge(H, Y, alpha, fit_intercept=fit_intercept)
        np.testing.assert_allclose(coef, expected[0], rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(intercept, expected[1], rtol=1e-8, atol=1e-12)
    if n_features > 2:
        assert not coefs[:, :, -1].any()


def test_a_path_is_exact_for_badly_conditioned_features():
    rng = np.random.default_rng(0)
    H = rng.normal(size=(400, 80)) @ np.diag(np.logspace(0, -4, 80)) @ rng.normal(size=(80, 80))
    gram, cross = H.T @ H, H.T @ rng.normal(size=(400, 3))
    alphas = np.logspace(-3, 6, 5)
    found = along_path(gram.copy(), cross, alphas)
    for alpha, coef in zip(alphas, found, strict=True):
        expected = np.linalg.solve(gram + alpha * np.eye(80), cross).T
        np.testing.assert_allclose(coef, expected, rtol=0, atol=1e-7 * abs(expected).max())


def esn(**params):
    return ESNRegressor(
        **{
            "n_units": 30,
            "n_lags": 1,
            "input_alpha": None,
            "washout": 20,
            "random_state": 0,
            **params,
        }
    )


def targets(n, seed):
    """Return inputs, and targets in two units whose errors depend on their neighbours."""
    X, y = narma(n, saturated=True, random_state=seed)
    noise = np.random.default_rng(seed).normal(size=n)
    for t in range(1, n):
        noise[t] += 0.9 * noise[t - 1]
    return X, np.column_stack([y + 0.05 * noise, 1000 * (X[:, 0] + noise)])


@pytest.mark.parametrize("per_target", [False, True])
@pytest.mark.parametrize("solver", ["cholesky", "qr"])
def test_scores_are_those_of_explicit_refits(per_target, solver, global_random_seed):
    X, Y = targets(300, global_random_seed)
    Xs, Ys = np.split(X, [90, 120]), np.split(Y, [90, 120])
    model = esn(alpha_per_target=per_target, solver=solver).fit(Xs, Ys)
    H = [np.hstack([s, x])[20:] for s, x in zip(model.states(Xs), Xs, strict=True)]
    rows = np.concatenate(halves_of([90, 30, 180], [20, 20, 20]))
    H, Y = np.vstack(H), np.concatenate([part[20:] for part in Ys])
    folds = [np.flatnonzero(rows == half) for half in (0, 1)]
    expected = naive.block_scores(H, Y, model.alphas_, folds)
    np.testing.assert_allclose(model.alpha_scores_, expected, rtol=1e-5)
    units = 1.0 if per_target else Y.var(axis=0)
    scores = expected if per_target else (expected / units).sum(axis=1)
    np.testing.assert_array_equal(model.alpha_, model.alphas_[scores.argmin(axis=0)])
    assert model.alpha_selection_ == "halves"


def test_units_of_the_targets_do_not_matter():
    X, Y = targets(400, 0)
    one, other = esn().fit(X, Y), esn().fit(X, Y * [1e6, 1e-3])
    assert one.alpha_ == other.alpha_
    np.testing.assert_allclose(other.predict(X), one.predict(X) * [1e6, 1e-3], rtol=1e-6)


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(
    "make",
    [
        esn,
        lambda **params: esn(feedback=True, **params),
        lambda **params: NVARRegressor(2, washout=20, **params),
        lambda **params: ESNClassifier(30, washout=20, random_state=0, **params),
    ],
)
def test_chunks_files_and_copies_choose_what_a_fit_does(make, tmp_path):
    X, Y = targets(500, 1)
    Y = (Y[:, 0] > Y[:, 0].mean()) if isinstance(make(), ESNClassifier) else Y[:, 0]
    whole, parts = make().fit(X, Y), make()
    known = {"classes": [False, True]} if isinstance(parts, ESNClassifier) else {}
    for a, b in itertools.pairwise([0, 1, 13, 200, 207, 500]):
        parts.partial_fit(X[a:b], Y[a:b], **known)
        save(parts, tmp_path / "model.npz")
        parts = copy.deepcopy(load(tmp_path / "model.npz"))
    assert parts.alpha_ == whole.alpha_
    np.testing.assert_array_equal(parts.alphas_, whole.alphas_)
    np.testing.assert_allclose(parts.alpha_scores_, whole.alpha_scores_, rtol=1e-4)
    scale = abs(whole.coef_).max()
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=0, atol=1e-5 * scale)


def test_rows_of_weight_zero_and_missing_targets_count_none():
    X, Y = targets(400, 2)
    weights = np.random.default_rng(0).integers(0, 3, 400).astype(float)
    gaps = Y.copy()
    gaps[weights == 0] = np.nan
    weighed = esn().fit(X, Y, sample_weight=weights)
    skipped = esn(missing_targets="skip").fit(X, gaps, sample_weight=weights)
    np.testing.assert_allclose(skipped.alpha_scores_, weighed.alpha_scores_, rtol=1e-9)
    # all weights times 100, and all penalties: the same
    heavy = esn().fit(X, Y, sample_weight=100 * weights)
    assert heavy.alpha_ == 100 * weighed.alpha_
    np.testing.assert_allclose(heavy.predict(X), weighed.predict(X), rtol=1e-5)


@pytest.mark.parametrize("change", [{}, {"n": 60}, {"scale": 1e3}])
def test_the_default_path_goes_from_nothing_to_the_mean(change):
    rng = np.random.default_rng(0)
    n, scale = change.get("n", 3000), change.get("scale", 1.0)
    H, y = scale * rng.normal(3, 1, (n, 40)), rng.normal(5, 1, n)
    sums = GramAccumulator(40, 1).update(H, y)
    alphas = default_path(sums)
    np.testing.assert_allclose(np.diff(np.log10(alphas)), 1.0, atol=1e-12)
    least, most = (sums.solve(alpha) for alpha in (alphas[0], alphas[-1]))
    free = naive.ridge(H, y[:, None], 0.0)[0]
    np.testing.assert_allclose(least.coef, free, rtol=1e-6, atol=1e-9 / scale)
    assert np.ptp(H @ most.coef.T) < 0.02 * y.std()
    assert default_path(GramAccumulator(2, 1).update(np.ones((9, 2)), np.ones(9))) == 1.0


def test_where_there_is_nothing_to_learn_the_mean_is_left(global_random_seed):
    """No more than .05 of R^2 below it, the bound of docs/results/as_it_comes.md."""
    rng = np.random.default_rng(global_random_seed)
    scores = []
    for _ in range(9):
        X, y = rng.normal(size=(700, 2)), rng.normal(size=700)
        scores.append(
            esn(random_state=int(rng.integers(99))).fit(X[:200], y[:200]).score(X[200:], y[200:])
        )
    assert np.median(scores) > -0.05


def test_few_rows_and_sums_that_forget_take_one_sum():
    X, Y = targets(60, 0)
    for n in (1, 2, 12, 20):
        few = (
            esn(washout=0).fit(X[:n], Y[:n]) if n > 1 else esn(washout=0).partial_fit(X[:1], Y[:1])
        )
        assert few.alpha_selection_ == "reml"
        assert np.isfinite(few.predict(X)).all()
    assert esn(forgetting=0.98).fit(X, Y).alpha_selection_ == "reml"
    model = esn().fit(*targets(300, 0))
    model.set_params(forgetting=0.9).partial_fit(X, Y)
    assert model.alpha_selection_ == "reml"
    session = esn().fit(*targets(300, 0)).stream()
    session.forget(0.5)
    assert session.learn(X, Y).to_estimator().partial_fit(X, Y).alpha_selection_ == "reml"
    with pytest.raises(ValueError, match=r"alpha_selection='halves'.*too few rows"):
        esn(alpha_selection="halves", washout=0).fit(X[:10], Y[:10])


def test_halves_forgotten_in_part_raise_with_an_alternative():
    X, y = narma(200, random_state=0)
    session = ESNRegressor(5, alpha_selection="halves", random_state=0).fit(X, y).stream()
    model = session.learn(X, y).forget(0.5).to_estimator()
    with pytest.raises(ValueError, match=r"'halves' compares parts.* alpha_selection=\"auto\""):
        model.partial_fit(X, y).predict(X)
    assert model.set_params(alpha_selection="auto").partial_fit(X, y).alpha_selection_ == "reml"


@pytest.mark.parametrize("forgetting", [0.01, 1e-6])
@pytest.mark.parametrize("selection", ["auto", "reml_ar1"])
def test_what_forgets_nearly_all_at_once_scores_without_a_warning(selection, forgetting):
    X, y = narma(200, random_state=0)
    given = {"forgetting": forgetting, "alpha_selection": selection, "random_state": 0}
    model = ESNRegressor(20, **given).fit(X, y)
    assert not np.isnan(model.alpha_scores_).any()


def test_rows_of_a_session_stay_in_their_half():
    X, Y = targets(500, 3)
    whole = esn().fit(X, Y)
    session = esn().fit(X[:200], Y[:200]).stream()
    for a, b in itertools.pairwise([200, 201, 260, 430]):
        session.learn(X[a:b], Y[a:b])
    model = session.to_estimator().partial_fit(X[430:], Y[430:])
    np.testing.assert_allclose(model.alpha_scores_, whole.alpha_scores_, rtol=1e-4)


@pytest.mark.slow
def test_dependent_errors_mislead_it_less_than_cross_validation(global_random_seed):
    """200 rows of NARMA10 whose errors are an autoregression of .9 as large as the target."""
    found = {"auto": [], "gcv": []}
    for seed in range(global_random_seed, global_random_seed + 9):
        X, y = narma(1200, saturated=True, random_state=seed)
        X, y = (X - X.mean()) / X.std(), (y - y.mean()) / y.std()
        noise = np.random.default_rng(seed).normal(size=200)
        for t in range(1, 200):
            noise[t] += 0.9 * noise[t - 1]
        for rule, scores in found.items():
            model = ESNRegressor(100, alpha_selection=rule, random_state=seed)
            model.fit(X[:200], y[:200] + noise / noise.std())
            scores.append(model.score(X[200:], y[200:]))
    assert np.median(found["auto"]) > 0
    assert np.median(found["gcv"]) < np.median(found["auto"]) - 0.5


def test_a_custom_readout_ignores_the_default_path():
    from sklearn.linear_model import Ridge

    X, y = sine_square(200, random_state=0)
    model = ESNRegressor(20, readout=Ridge(), random_state=0).fit(X, y)
    assert not hasattr(model, "alpha_")
    with pytest.raises(ValueError, match="alpha is an array"):
        model.set_params(alpha=[1.0, 2.0]).fit(X, y)


@pytest.mark.parametrize(("size", "is_told"), [(1e3, False), (1e5, True)])
def test_columns_in_small_units_are_learned_from_or_warn(size, is_told):
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [rng.normal(size=700), size * rng.normal(size=700), np.tile([0.3, 0.7], 350)]
    )
    y = X[:, 0] + 0.5 * np.roll(X[:, 0], 1) + 0.1 * rng.normal(size=700)

    def score(X=X, **params):
        return NVARRegressor(2, **params).fit(X[:500], y[:500]).score(X[500:], y[500:])

    told = partial(pytest.warns, UserWarning, match="differ in size by a factor of")
    with told() if is_told else contextlib.nullcontext():
        found = score()
    assert (found > 0.95) != is_told
    assert score(solver="qr") > 0.95
    assert score(X / X.std(axis=0)) > 0.95

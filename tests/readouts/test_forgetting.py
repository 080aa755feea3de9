"""Forgetting: each new row reduces the weight of earlier rows, in sums and in estimators."""

import itertools

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from sklearn.linear_model import Ridge, SGDRegressor
from sklearn.metrics import log_loss

from helpers import naive
from reservoir import ESNClassifier, ESNRegressor, NVARRegressor, load, save
from reservoir.datasets import narma, sine_square
from reservoir.model_selection import stack_sequences
from reservoir.readouts import GramAccumulator, QRAccumulator, ridge_path
from reservoir.readouts.eigen import aged_inflation
from reservoir.readouts.row_sample import CAPACITY, RowSample

pytestmark = pytest.mark.one_engine

KINDS = (GramAccumulator, QRAccumulator)
SOLVERS = ("cholesky", "qr")


def rows(seed, n=400, n_features=6, n_outputs=2):
    """Features with an offset, targets, and weights of which some are zero."""
    rng = np.random.default_rng(seed)
    H = rng.normal(size=(n, n_features)) + 3
    Y = H[:, :n_outputs] + rng.normal(size=(n, n_outputs))
    weights = rng.uniform(0.1, 2, n) * (rng.random(n) > 0.2)
    return H, Y, weights


def left_of(weights, forgetting):
    """What is left of the weights of rows: each that enters takes its share, one by one."""
    left = np.zeros(len(weights))
    for i, weight in enumerate(weights):
        if weight > 0:
            left *= forgetting
            left[i] = weight
    return left


def in_parts(kind, cuts, H, Y, weights, forgetting):
    """Sums of rows that come in parts, each in an accumulator of its own that is merged."""
    total = kind(H.shape[1], Y.shape[1])
    for a, b in itertools.pairwise((0, *cuts, len(H))):
        part = kind(H.shape[1], Y.shape[1], forgetting=forgetting)
        total.merge(part.update(H[a:b], Y[a:b], weights[a:b]))
    return total


# --- sums ---------------------------------------------------------------------------------------


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("forgetting", [0.3, 0.9, 0.99, 0.999, 1.0])
def test_sums_are_those_of_a_ridge_with_decaying_weights(kind, forgetting):
    for seed in range(5):
        H, Y, weights = rows(seed, n=700)
        coef, intercept = naive.ridge(H, Y, 0.5, weights=left_of(weights, forgetting))
        whole = kind(6, 2, forgetting=forgetting).update(H, Y, weights)
        for sums in (
            whole,
            whole.copy(),
            in_parts(kind, (1, 2, 90, 650), H, Y, weights, forgetting),
        ):
            found = sums.solve(0.5)
            np.testing.assert_allclose(found.coef, coef, rtol=0, atol=1e-12)
            np.testing.assert_allclose(found.intercept, intercept, rtol=0, atol=1e-11)
            assert sums.n_samples == (weights > 0).sum()
            assert sums.weight == pytest.approx(left_of(weights, forgetting).sum(), rel=1e-12)
            ages = left_of(weights > 0, forgetting)
            assert sums.n_effective == pytest.approx(ages.sum() ** 2 / (ages @ ages), rel=1e-10)
            assert sums.ageing == pytest.approx(forgetting**sums.n_samples, rel=1e-9, abs=1e-300)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    cuts=st.lists(st.integers(0, 60), max_size=6),
    factors=st.lists(st.sampled_from([0.05, 0.7, 0.99, 1.0]), min_size=7, max_size=7),
    kind=st.sampled_from(KINDS),
)
def test_each_row_ages_what_is_there_by_its_own_factor(seed, cuts, factors, kind):
    """Also where the factors change, and however the sums are put together."""
    H, Y, weights = rows(seed, n=60)
    one_by_one = kind(6, 2)
    merged, after = kind(6, 2), kind(6, 2)
    left = np.zeros(60)
    for factor, (a, b) in zip(factors, itertools.pairwise((0, *sorted(cuts), 60)), strict=False):
        for i in range(a, b):
            one_by_one.forgetting = factor
            one_by_one.update(H[i : i + 1], Y[i : i + 1], weights[i : i + 1])
            if weights[i] > 0:
                left *= factor
                left[i] = weights[i]
        part = kind(6, 2, forgetting=factor).update(H[a:b], Y[a:b], weights[a:b])
        before = after.n_samples, after.weight
        merged, last = merged.merge(part), after
        after = part.after(after)
        assert (last.n_samples, last.weight) == before  # the earlier sums stay as they were
    coef, intercept = naive.ridge(H, Y, 1e-2, weights=left)
    size = np.abs(coef).max()
    for sums in (one_by_one, merged, after):
        found = sums.solve(1e-2)
        np.testing.assert_allclose(found.coef, coef, rtol=0, atol=1e-9 * max(size, 1))
        np.testing.assert_allclose(found.intercept, intercept, rtol=0, atol=1e-8 * max(size, 1))
        assert sums.n_effective == pytest.approx(one_by_one.n_effective, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_forgotten_is_gone_and_leaves_no_nan(kind):
    """100,000 rows at .9: factors of old rows are below any number, and nothing wears off."""
    rng = np.random.default_rng(0)
    H, y = rng.normal(size=(100_000, 4)), rng.normal(size=100_000)
    H[50_000:, 3] = 0.0  # a column that has ended fades below the smallest number
    with np.errstate(all="raise", under="ignore"):
        sums = kind(4, 1, forgetting=0.9).update(H, y)
        found = sums.solve(1e-3)
    assert sums.ageing == 0
    assert sums.weight == pytest.approx(10, rel=1e-12)
    assert found.coef[0, 3] == 0
    coef, _ = naive.ridge(H[-500:], y[-500:, None], 1e-3, weights=left_of(np.ones(500), 0.9))
    np.testing.assert_allclose(found.coef, coef, rtol=0, atol=1e-11)
    matrix = sums.R if kind is QRAccumulator else sums._upper
    assert not ((matrix != 0) & (np.abs(matrix) < 1e-300)).any()
    # a merge with sums that have forgotten everything before
    other = kind(4, 1).update(1e150 * H[:100], y[:100]).merge(sums)
    np.testing.assert_array_equal(other.solve(1e-3).coef, found.coef)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_weight_or_target_age_nothing(kind):
    H, Y, weights = rows(0, n=100)
    Y[::9, 0] = np.nan
    enters = (weights > 0) & ~np.isnan(Y).any(axis=1)
    some = kind(6, 2, forgetting=0.9).update(H, Y, weights, missing="skip")
    few = kind(6, 2, forgetting=0.9).update(H[enters], Y[enters], weights[enters])
    np.testing.assert_allclose(some.solve(0.1).coef, few.solve(0.1).coef, rtol=0, atol=1e-13)
    assert some.ageing == few.ageing


def test_rows_that_have_aged_are_not_taken_away():
    H, Y, _ = rows(0, n=50)
    aged, plain = GramAccumulator(6, 2, forgetting=0.9), GramAccumulator(6, 2)
    aged.update(H, Y), plain.update(H, Y)
    message = r"forget.*forgetting=0.9.*new accumulator, or use forgetting=1.0"
    for take_away in (
        lambda: aged.downdate(H[:5], Y[:5]),
        lambda: aged.subtract(plain),
        lambda: plain.copy().subtract(aged),
        lambda: aged.without(plain),
        lambda: QRAccumulator(6, 2, forgetting=0.9).without(QRAccumulator(6, 2), []),
    ):
        with pytest.raises(ValueError, match=message):
            take_away()
    with pytest.raises(ValueError, match=r"forgetting=1, rows aged by 0.005"):
        plain.copy().merge(aged).downdate(H[:5], Y[:5])


@pytest.mark.parametrize("bad", [0.0, -0.1, 1.01, np.nan, np.inf])
def test_factors_are_checked(bad):
    for make in (lambda: GramAccumulator(2, 1, forgetting=bad), lambda: fitted(forgetting=bad)):
        with pytest.raises(ValueError, match=rf"forgetting={bad}.*\(0, 1\].*1 - 1/n"):
            make()
    with pytest.raises(TypeError, match="forgetting must be a number"):
        GramAccumulator(2, 1, forgetting="0.9")


def fitted(**params):
    X, y = narma(120, random_state=0)
    return ESNRegressor(10, random_state=0, **params).fit(X, y)


# --- the choice of a penalty --------------------------------------------------------------------

ALPHAS = np.logspace(-4, 4, 9)


def errors_ahead(sums, H, y, n_blocks=20, block=50):
    """Errors of the next rows: under the best penalty of all, under those chosen, and by scores.

    Then the middle one of the penalties chosen, and of those that scores by n_samples would choose.
    """
    fixed, chosen, said, picks, by_count = np.zeros(len(ALPHAS)), 0.0, 0.0, [], []
    for start in range(0, n_blocks * block, block):
        h, t = H[start : start + block], y[start : start + block]
        path, solution = sums.path(), ridge_path(sums, ALPHAS)
        coefs = [path.coef(alpha) for alpha in ALPHAS]
        errors = np.array([np.mean((t - h @ c[0] - path.intercept(c)) ** 2) for c in coefs])
        fixed += errors / n_blocks
        best = int(np.flatnonzero(solution.alpha == ALPHAS)[0])
        chosen += errors[best] / n_blocks
        said += solution.scores[best, 0] / n_blocks
        path.ages = None  # as if all of n_samples rows counted
        by_count.append(ALPHAS[np.argmin([path.gcv(alpha)[0] for alpha in ALPHAS])])
        picks.append(solution.alpha)
        sums.update(h, t)
    return fixed.min(), chosen, said, np.median(picks), np.median(by_count)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("n_features", [60, 150])
@pytest.mark.parametrize("kind", KINDS)
def test_penalties_are_chosen_by_what_is_remembered(kind, n_features, global_random_seed):
    """20,000 rows at .99 weigh as much as some 200: what is chosen predicts the next rows well."""
    rng = np.random.default_rng(global_random_seed)
    H = rng.normal(size=(20_000, n_features)) * np.linspace(1, 0.1, n_features)
    y = 2 * H @ rng.normal(size=n_features) / np.sqrt(n_features) + rng.normal(size=20_000)
    # what came before the last 2500 of the first 19,000 rows is forgotten: it counts as one
    sums = kind(n_features, 1, forgetting=0.99).update(H[16_500:19_000], y[16_500:19_000])
    sums.n_samples = 19_000
    best, chosen, said, alpha, by_count = errors_ahead(sums, H[19_000:], y[19_000:])
    assert chosen < 1.03 * best
    assert said == pytest.approx(chosen, rel=0.1)
    assert by_count < 0.02 * alpha


def test_the_inflation_of_residuals_is_that_of_every_row_for_itself():
    """Against Q found from the leverages of all rows; to count effective rows would not do."""
    falling = 0.99 ** np.arange(3000.0)
    slowly = 0.999 ** np.arange(20_000.0)
    for ages, accuracy in (
        (falling, 0.03),
        (falling[:100], 0.02),
        (slowly, 3e-3),
        (falling[:1], 0),
    ):
        total, squares = ages.sum(), ages @ ages
        n = total**2 / squares
        for dof in np.array([0.01, 0.1, 0.5, 0.8]) * n:

            def excess(Q, ages=ages, dof=dof):
                return (ages * Q / (1 + ages * Q)).sum() - dof

            Q = brentq(excess, 0, 1e6, xtol=1e-14)
            expected = 1 / (ages / (1 + ages * Q) ** 2).sum()
            found = aged_inflation(dof, total, squares)
            assert found == pytest.approx(expected, rel=max(accuracy, 1e-12))
            if accuracy and dof > 0.6 * n:
                assert 1 / (total * (1 - dof / n) ** 2) > 1.5 * expected
    assert aged_inflation(50.0, 40.0, 40.0) == aged_inflation(1e9, 10.0, 5.3) == np.inf


def test_scores_without_forgetting_are_unchanged():
    """Sums that never aged, and the limit of a factor that goes to 1."""
    H, Y, _ = rows(0)
    plain = ridge_path(GramAccumulator(6, 2).update(H, Y), ALPHAS)
    for kind in KINDS:
        slowly = ridge_path(kind(6, 2, forgetting=1 - 1e-13).update(H, Y), ALPHAS)
        np.testing.assert_allclose(slowly.scores, plain.scores, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_without_freedom_left_is_not_chosen(kind, global_random_seed):
    """More features than rows are remembered: small penalties go through the last rows."""
    H, Y, _ = rows(global_random_seed, n=30, n_features=40)
    for forgetting in (0.01, 0.5, 0.9, 0.99):
        sums = kind(40, 2, forgetting=forgetting).update(H, Y)
        with np.errstate(all="raise", under="ignore"):
            found = ridge_path(sums, [0.0, 1e-14, 1e-8, 1.0, 100.0])
        assert not np.isnan(found.scores).any()
        assert found.alpha >= 1.0


# --- estimators ---------------------------------------------------------------------------------

N = 240


def data(seed=0):
    X, y = narma(N, random_state=seed)
    weights = np.random.default_rng(seed).uniform(0.5, 2, N)
    weights[100:110] = 0
    return X, np.column_stack([y, y[::-1]]), weights


def esn(**params):
    return ESNRegressor(
        **{"n_units": 12, "washout": 9, "random_state": 0, "alpha": 1e-3, "n_lags": 1, **params}
    )


def naive_coef(model, X, Y, weights, forgetting, skip=9):
    """The coefficients of a ridge whose weights decay over the rows behind the washout."""
    H = np.hstack([model.states(X, initial_state="zeros"), X])[skip:]
    known = ~np.isnan(Y[skip:]).any(axis=1)
    left = left_of(weights[skip:] * known, forgetting)
    return naive.ridge(H[known], Y[skip:][known], 1e-3, weights=left[known])


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_fit_is_the_naive_ridge_with_decaying_weights(solver):
    for seed, forgetting in itertools.product(range(3), (0.9, 0.99)):
        X, Y, weights = data(seed)
        Y[50:60, 1] = np.nan
        model = esn(solver=solver, forgetting=forgetting, missing_targets="skip")
        model.fit(X, Y, weights)
        coef, intercept = naive_coef(model, X, Y, weights, forgetting)
        np.testing.assert_allclose(model.coef_, coef, rtol=0, atol=1e-9)
        np.testing.assert_allclose(model.intercept_, intercept, rtol=0, atol=1e-9)


VARIANTS = {
    "plain": {},
    "digits": {"solver": "qr"},
    "path": {"alpha": [1e-6, 1e-3, 1.0]},
    "path per target": {"alpha": [1e-6, 1e-3, 1.0], "alpha_per_target": True},
    "noise": {"noise": 1e-2},
    "feedback": {"feedback": True},
    "single precision": {"dtype": "float32"},
    "gaps": {"missing_targets": "skip"},
    "no intercept": {"fit_intercept": False},
}


@pytest.mark.fast_cases(9)
@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("cuts", [(1, 2, 3, 101), (120,)])
def test_any_split_of_the_rows_is_one_fit(name, cuts):
    X, Y, weights = data()
    if name == "gaps":
        Y[50:60, 1] = np.nan
    params = {"forgetting": 0.97, **VARIANTS[name]}
    whole, parts = esn(**params).fit(X, Y, weights), esn(**params)
    for a, b in itertools.pairwise((0, *cuts, N)):
        parts.partial_fit(X[a:b], Y[a:b], weights[a:b])
    atol = 1e-4 if name == "single precision" else 1e-9
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=0, atol=atol)
    np.testing.assert_allclose(parts.intercept_, whole.intercept_, rtol=0, atol=atol)
    np.testing.assert_array_equal(parts.alpha_, whole.alpha_)
    assert whole._model.readout.parts[0].ageing < 0.01
    unforgetting = esn(**{**params, "forgetting": 1.0}).fit(X, Y, weights)
    assert np.abs(unforgetting.coef_ - whole.coef_).max() > 1e-2 * np.abs(whole.coef_).max()


def test_later_sequences_are_younger_whatever_the_container_and_the_workers():
    rng = np.random.default_rng(0)
    lengths = (3000, 5500, 400, 8300, 20)
    Xs = [rng.normal(size=(n, 2)) for n in lengths]
    ys = [np.cumsum(X, axis=0)[:, 0] for X in Xs]
    weights = [rng.uniform(0.5, 1.5, n) for n in lengths]
    model = esn(forgetting=0.999).fit(Xs, ys, weights)
    with joblib.parallel_config(backend="threading"):
        two = esn(forgetting=0.999, n_jobs=2).fit(Xs, ys, weights)
    np.testing.assert_array_equal(two.coef_, model.coef_)
    H = np.vstack([np.hstack([s, X])[9:] for s, X in zip(model.states(Xs), Xs, strict=True)])
    t, w = (np.concatenate([part[9:] for part in each]) for each in (ys, weights))
    coef, _ = naive.ridge(H, t[:, None], 1e-3, weights=w * 0.999 ** np.arange(len(w))[::-1])
    np.testing.assert_allclose(model.coef_, coef[0], rtol=0, atol=1e-8)
    # in chunks: a list, tables that are new sequences, tables with ids
    chunks = esn(forgetting=0.999).partial_fit(Xs[:2], ys[:2], weights[:2])
    chunks.partial_fit(Xs[2:], ys[2:], weights[2:])
    tables, ids = esn(forgetting=0.999), esn(forgetting=0.999, sequence_column=0)
    for i, (X, y, w) in enumerate(zip(Xs, ys, weights, strict=True)):
        tables.partial_fit(X, y, w, new_sequence=True)
        ids.partial_fit(np.column_stack([np.full(len(X), i), X]), y, w)
    for other in (chunks, tables, ids):
        np.testing.assert_allclose(other.coef_, model.coef_, rtol=0, atol=1e-9)
    table, target, _ = stack_sequences(Xs, ys)
    by_id = esn(forgetting=0.999, sequence_column=0).fit(table, target, np.concatenate(weights))
    np.testing.assert_allclose(by_id.coef_, model.coef_, rtol=0, atol=1e-9)


def test_the_factor_may_change_from_call_to_call():
    X, Y, weights = data()
    model = esn(forgetting=0.9).partial_fit(X[:80], Y[:80], weights[:80])
    model.set_params(forgetting=1.0).partial_fit(X[80:150], Y[80:150], weights[80:150])
    model.set_params(forgetting=0.98).partial_fit(X[150:], Y[150:], weights[150:])
    H = np.hstack([model.states(X, initial_state="zeros"), X])
    left = np.zeros(N)
    for i in range(9, N):
        if weights[i] > 0:
            left *= 0.9 if i < 80 else 1.0 if i < 150 else 0.98
            left[i] = weights[i]
    coef, _ = naive.ridge(H, Y, 1e-3, weights=left)
    np.testing.assert_allclose(model.coef_, coef, rtol=0, atol=1e-9)


def test_polynomials_forget_and_increments_too():
    X = narma(N, random_state=0)[1][:, None]
    for increments in (False, True):
        params = {"n_lags": 3, "forgetting": 0.97, "increments": increments, "alpha": 1e-3}
        whole, parts = NVARRegressor(**params).fit(X[:-1], X[1:]), NVARRegressor(**params)
        for a, b in itertools.pairwise((0, 1, 3, 100, N - 1)):
            parts.partial_fit(X[a:b], X[a + 1 : b + 1])
        np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=0, atol=1e-9)
        plain = NVARRegressor(**{**params, "forgetting": 1.0}).fit(X[:-1], X[1:])
        assert np.abs(plain.coef_ - whole.coef_).max() > 1e-2


def test_after_a_drift_forgetting_finds_the_new_system(global_random_seed):
    """The gain of a plant jumps: what has forgotten the old one is as good as a fit on the new."""
    rng = np.random.default_rng(global_random_seed)
    u = rng.uniform(-1, 1, (6000, 1))
    y = np.concatenate([u[:3000], -2 * u[3000:]])[:, 0] + 0.01 * rng.normal(size=6000)
    error = {}
    for forgetting in (1.0, 0.99):
        model = esn(forgetting=forgetting, random_state=global_random_seed)
        for a in range(0, 5000, 1000):
            model.partial_fit(u[a : a + 1000], y[a : a + 1000])
        error[forgetting] = np.mean((model.predict(u[5000:]) - y[5000:]) ** 2)
    anew = esn(random_state=global_random_seed).fit(u[4000:5000], y[4000:5000])
    expected = np.mean((anew.predict(u[5000:]) - y[5000:]) ** 2)
    assert error[0.99] < 1.3 * expected
    assert error[1.0] > 100 * expected


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"readout": Ridge()}, r"forgetting=0.9 is a par.* which readout=Ridge\(\).*readout=None"),
        (
            {"alpha": [1.0, 2.0], "alpha_selection": "blocked"},
            r"alpha_selection='blocked'.*forgetting=0.9.*\"auto\" or \"reml\", a number",
        ),
        (
            {"alpha": [1.0, 2.0], "alpha_selection": "holdout"},
            r"alpha_selection='holdout'.*forgetting=0.9.*forgetting=1.0",
        ),
    ],
)
def test_what_cannot_forget_raises(params, message):
    X, Y, _ = data()
    with pytest.raises(ValueError, match=message):
        esn(forgetting=0.9, **params).fit(X, Y[:, 0])
    online = {**params, "readout": SGDRegressor()} if "readout" in params else params
    with pytest.raises(ValueError, match=r"forgetting=0\.9"):
        esn(forgetting=0.9, **online).partial_fit(X, Y[:, 0])
    model = esn(**({} if "alpha" in params else online)).partial_fit(X, Y[:, 0])
    state = model.state_
    with pytest.raises(ValueError, match=r"forgetting=0\.9"):
        model.set_params(forgetting=0.9, **online).partial_fit(X, Y[:, 0])
    assert model.state_ is state
    # a selection that is not asked for is not in the way
    esn(forgetting=0.9, alpha_selection="blocked").fit(X, Y)


# --- classes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("forgetting", [0.9, 0.995, 0.9999])
def test_the_rows_kept_for_probabilities_are_the_latest(forgetting):
    """As many as there is room for, from about as far back as rows are remembered."""
    n, rng = 40_000, np.random.default_rng(0)
    numbers = np.arange(n)
    weights = np.where(numbers % 5 == 0, 0.0, 1.0 + numbers % 3)
    enters = weights > 0

    def kept(cuts):
        total = RowSample(forgetting=forgetting)
        for a, b in itertools.pairwise((0, *cuts, n)):
            one = RowSample(forgetting=forgetting) if rng.random() < 0.5 else total
            columns = numbers[a:b, None]
            one.add(numbers[a:b], columns, columns, weights[a:b])
            if one is not total:
                total.merge(one)
        return total.rows()

    whole = kept(())
    memory, reach = 1 / (1 - forgetting), enters[whole[0][0] :].sum()
    assert len(whole[0]) == CAPACITY
    assert reach == CAPACITY if memory < CAPACITY else 0.8 * memory < reach < 2.5 * memory
    later = enters.sum() - np.cumsum(enters)
    expected = weights * forgetting ** later.astype(float)
    np.testing.assert_allclose(whole[3], expected[whole[0]], rtol=1e-9, atol=1e-300)
    for cuts in (np.sort(rng.integers(0, n, 40)), (n - 300, *range(n - 100, n - 50))):
        for a, b in zip(kept(cuts), whole, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-300)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cuts", [(700,), (1, 2, 3, 40, 1100), tuple(range(900, 1000))])
def test_a_classifier_forgets_in_any_split(cuts, tmp_path):
    X, y = sine_square(1200, random_state=0)
    X = X + 0.3 * np.random.default_rng(0).normal(size=X.shape)
    weights = np.random.default_rng(1).uniform(0.5, 2, 1200)
    params = {"n_units": 15, "random_state": 0, "washout": 10, "forgetting": 0.99}
    whole, parts = ESNClassifier(**params).fit(X, y, weights), ESNClassifier(**params)
    for a, b in itertools.pairwise((0, *cuts, 1200)):
        parts.partial_fit(X[a:b], y[a:b], [0, 1], weights[a:b])
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=0, atol=1e-9)
    assert parts.temperature_ == pytest.approx(whole.temperature_, rel=1e-6)
    save(parts, tmp_path / "labels.npz")
    again = load(tmp_path / "labels.npz")
    for model in (parts, again):
        model.partial_fit(X[:50], y[:50])
    np.testing.assert_array_equal(again.predict_proba(X), parts.predict_proba(X))
    assert not whole._model.readout.kept.rows()[0].min() < 1200 - CAPACITY


def test_probabilities_follow_when_labels_become_noisy(global_random_seed):
    """At first labels are certain, then three in ten are wrong: probabilities say so."""
    rng = np.random.default_rng(global_random_seed)
    X = rng.normal(size=(11000, 1))
    y = (X[:, 0] > 0).astype(int)
    wrong = rng.random(11000) < np.where(np.arange(11000) < 8000, 0.0, 0.3)
    y = np.where(wrong, 1 - y, y)
    loss, too_sure = {}, {}
    for forgetting in (1.0, 0.998):
        model = ESNClassifier(10, forgetting=forgetting, random_state=global_random_seed).fit(
            X[:10000], y[:10000]
        )
        probabilities = model.predict_proba(X[10000:])
        loss[forgetting] = log_loss(y[10000:], probabilities)
        too_sure[forgetting] = probabilities.max(axis=1).mean() - 0.7
    assert loss[0.998] < loss[1.0] - 0.05
    assert too_sure[0.998] < 0.5 * too_sure[1.0]
    assert too_sure[1.0] > 0.05


@pytest.mark.parametrize("kind", [GramAccumulator, QRAccumulator])
def test_rows_of_which_nothing_is_left_are_gone(kind):
    """Also where factors are multiplied up; what comes then is all there is."""
    H, y = np.random.default_rng(0).standard_normal((2, 40, 3))
    sums = kind(3, 3, forgetting=0.99).update(H[:20], y[:20])
    for factor in (1e-60, 1e-60, 1e-300):
        sums = sums.discounted(factor).update(H[20:21], y[20:21])
    sums = sums.discounted(1e-200).update(H[20:], y[20:])
    alone = kind(3, 3, forgetting=0.99).update(H[20:], y[20:])
    assert sums.n_effective == pytest.approx(alone.n_effective)
    np.testing.assert_allclose(sums.path().gcv(0.1), alone.path().gcv(0.1))
    np.testing.assert_allclose(sums.solve(0.1).coef, alone.solve(0.1).coef)

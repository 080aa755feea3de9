"""A penalty under AR(1) errors: sums over neighbouring rows against dense densities."""

import itertools

import numpy as np
import pytest
from scipy import linalg, stats
from scipy.signal import lfilter

from reservoir import ESNRegressor, load, save
from reservoir.readouts import GramAccumulator, QRAccumulator, dependent_errors, ridge_path
from reservoir.readouts.dependent_errors import RHOS, NeighbourSums, starts_of
from reservoir.readouts.ridge import RidgeReadout

pytestmark = pytest.mark.one_engine

KINDS = (GramAccumulator, QRAccumulator)
ALPHAS = np.logspace(-2, 2, 3)
PATH = np.logspace(-6, 3, 10)
# numbers of rows: two sequences that touch, and a gap within the second
NUMBERS, STARTS = np.r_[0:15, 15:31, 34:50], np.array([0, 15])
RUNS = [slice(0, 15), slice(15, 31), slice(31, 47)]


def rows(n=47, n_features=5, seed=0):
    rng = np.random.default_rng(seed)
    H = rng.normal(size=(n, n_features)).cumsum(axis=0) + 3
    Y = H[:, :2] @ rng.normal(size=(2, 2)) + rng.normal(size=(n, 2)).cumsum(axis=0)
    return H, Y, rng.uniform(0.05, 3, n)


def precision(rho, weights, runs):
    """The errors' precision: (1 - rho)^2 W + rho L, L the Laplacian of the runs' paths."""
    dense = (1 - rho) ** 2 * np.diag(weights)
    for run in runs:
        for t in range(run.start + 1, run.stop):
            edge = np.array([[1.0, -1.0], [-1.0, 1.0]])
            dense[t - 1 : t + 1, t - 1 : t + 1] += rho * edge * np.sqrt(weights[t - 1] * weights[t])
    return dense


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("rho", RHOS[[0, 2, 6]])
def test_scores_equal_the_density_of_contrasts(kind, weighted, fit_intercept, rho, monkeypatch):
    """Normal contrasts of the weighted rows, coefficients of variance s^2 / alpha; s^2 as fits."""
    monkeypatch.setattr(dependent_errors, "RHOS", np.array([rho]))
    H, Y, w = rows()
    given = w if weighted else None
    w = w if weighted else np.ones(len(w))
    neighbours = NeighbourSums(kind(5, 2), STARTS)
    # the sequences take turns, within what comes at once and from one call to the next
    for part in (np.r_[0:4, 15:20, 4:9], np.r_[9:15, 20:33], np.r_[33:47]):
        neighbours.add(NUMBERS[part], H[part], Y[part], None if given is None else given[part])
    scores = neighbours.scores(kind(5, 2).update(H, Y, given), ALPHAS, fit_intercept)

    root = np.sqrt(w)[:, None]
    dense = precision(rho, w, RUNS) / (root * root.T)
    assert neighbours.log_dets == pytest.approx(np.linalg.slogdet(dense)[1], rel=1e-10, abs=1e-12)
    contrasts = linalg.null_space(root.T) if fit_intercept else np.eye(len(w))
    h, y, m = contrasts.T @ (root * H), contrasts.T @ (root * Y), contrasts.shape[1]
    errors = contrasts.T @ np.linalg.solve(dense, contrasts)
    for alpha, score in zip(ALPHAS, scores, strict=True):
        V = errors + h @ h.T / alpha
        for target, variance in zip(y.T, score, strict=True):
            s2 = target @ np.linalg.solve(V, target) / m
            likelihood = stats.multivariate_normal.logpdf(target, cov=s2 * V)
            expected = -m / 2 * (np.log(2 * np.pi * variance) + 1)
            assert likelihood == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_without_autocorrelation_it_is_reml(kind, monkeypatch):
    monkeypatch.setattr(dependent_errors, "RHOS", np.zeros(1))
    H, Y, w = rows()
    neighbours = NeighbourSums(kind(5, 2), STARTS)
    neighbours.add(NUMBERS, H, Y, w)
    sums, alphas = kind(5, 2).update(H, Y, w), np.r_[0.0, 1e-18, PATH]
    for some in (alphas, PATH, [0.0]):
        expected = ridge_path(sums, some, selection="reml").scores
        scores = neighbours.scores(sums, np.asarray(some), True)
        np.testing.assert_allclose(scores, expected, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_differences_of_a_constant_column_are_rounding_errors(kind):
    H, Y, w = rows()
    H *= 1e-9
    scores = []
    for column in (0.0, 1e6 + 1e-10 * np.random.default_rng(0).integers(-2, 3, 47)):
        H[:, 1] = column
        neighbours = NeighbourSums(kind(5, 2), STARTS)
        neighbours.add(NUMBERS, H, Y, w)
        sums = kind(5, 2).update(H, Y, w)
        scores.append(neighbours.scores(sums, np.array([1e-20, 1e-19]), True))
    np.testing.assert_allclose(*scores, rtol=1e-6)


def test_rows_that_have_aged_count_by_their_factors(monkeypatch):
    """An edge, and the pivot given the rows before, have the age of the later row."""
    rho, forgetting = 0.8, 0.95
    monkeypatch.setattr(dependent_errors, "RHOS", np.array([0.0, rho]))
    H, Y, w = rows()
    ages = forgetting ** np.arange(len(w) - 1, -1.0, -1.0)
    neighbours = NeighbourSums(GramAccumulator(5, 2, forgetting=forgetting), STARTS)
    for part in np.split(np.arange(47), [1, 20, 33]):
        neighbours.add(NUMBERS[part], H[part], Y[part], w[part])
    differences, log_det = np.zeros((5, 5)), 0.0
    for run in RUNS:
        lower = linalg.cholesky(precision(rho, w, RUNS)[run, run], lower=True)
        log_det += ages[run] @ np.log(np.diagonal(lower) ** 2 / w[run])
        steps, edges = np.diff(H[run], axis=0), np.sqrt(w[run][1:] * w[run][:-1])
        differences += (steps.T * edges * ages[run][1:]) @ steps
    sums = neighbours.differences
    found = sums.gram + sums.weight * np.outer(sums.mean_h, sums.mean_h)
    np.testing.assert_allclose(found, differences, rtol=0, atol=1e-12 * np.trace(differences))
    assert neighbours.log_dets == pytest.approx([0.0, log_det], rel=1e-10)
    neighbours.fade(factor=0.5)
    assert neighbours.log_dets == pytest.approx([0.0, 0.5 * log_det], rel=1e-10)
    assert neighbours.last.age == 0.5


# --- in estimators ------------------------------------------------------------------------------


def series(n=900, seed=0, phi=0.9, size=1.0):
    """A filter of white noise as target, with AR(1) errors; standard deviation 1 each."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 1))
    clean = lfilter([1, 0.7, 0.5, 0.3], [1], X[:, 0])
    error = lfilter([1], [1, -phi], rng.normal(size=n))
    return X, clean / clean.std() + size * error / error.std(), clean / clean.std()


def esn(n_units=15, **params):
    given = {"alpha": PATH, "alpha_selection": "reml_ar1", "leak_rate": 0.5, "random_state": 0}
    return ESNRegressor(n_units, **given | params)


def closed_form(lengths):
    """Logarithms of the determinants for runs of so many rows of equal weight."""
    return [sum(np.log((1 - r) * (1 - r ** (2 * n)) / (1 + r)) for n in lengths) for r in RHOS]


def assert_same_choice(one, other, rtol=1e-9):
    np.testing.assert_allclose(one.alpha_scores_, other.alpha_scores_, rtol=rtol)
    assert one.alpha_ == other.alpha_
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=0, atol=1e-8)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("solver", ["cholesky", "qr"])
@pytest.mark.parametrize("forgetting", [1.0, 0.995])
@pytest.mark.parametrize("weighted", [False, True])
def test_any_split_is_one_fit_saved_between(solver, forgetting, weighted, tmp_path):
    X, y, _ = series(700)
    y[[50, 51, 300]] = np.nan
    w = np.random.default_rng(1).uniform(0, 2, 700) if weighted else np.ones(700)
    w[20] = w[500] = 0.0
    params = {
        "solver": solver, "forgetting": forgetting, "missing_targets": "skip", "washout": 3
    }  # fmt: skip
    whole = esn(**params).fit(X, y, w)
    parts = esn(**params)
    for a, b in ((0, 2), (2, 50), (50, 51), (51, 52), (52, 600)):
        parts.partial_fit(X[a:b], y[a:b], w[a:b])
    save(parts, tmp_path / "esn.npz")
    parts = load(tmp_path / "esn.npz").partial_fit(X[600:], y[600:], w[600:])
    assert_same_choice(parts, whole)
    other = esn(**params | {"alpha_selection": "reml"}).fit(X, y, w)
    assert np.abs(other.alpha_scores_ / whole.alpha_scores_ - 1).max() > 0.01


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("washout", [0, 5])
def test_sequences_are_no_neighbours(washout, n_jobs):
    """One by one in chunks as all at once, side by side, in two batches that are merged."""
    X, y, _ = series(12_000)
    edges = np.r_[0, 600, 606, 618, 5000, 9000, 9500, 12_000]
    lists = [[A[a:b] for a, b in itertools.pairwise(edges)] for A in (X, y)]
    whole = esn(8, washout=washout, n_jobs=n_jobs).fit(*lists)
    chunks = esn(8, washout=washout)
    for one, target in zip(*lists, strict=True):
        half = len(one) // 2
        chunks.partial_fit(one[: half + 1], target[: half + 1], new_sequence=True)
        if half > 1:
            chunks.partial_fit(one[half + 1 :], target[half + 1 :])
    assert_same_choice(chunks, whole)
    assert len(whole._model.readout.neighbours.ends) == 1  # where the last sequence may go on
    log_dets = whole._model.readout.neighbours.log_dets
    np.testing.assert_allclose(log_dets, closed_form(np.diff(edges) - washout), rtol=1e-9)


def test_a_session_learns_as_the_estimator_does():
    X, y, _ = series(500)
    start = esn(washout=0).fit(X[:200], y[:200])
    session = start.stream()
    for a in range(200, 300, 7):
        session.learn(X[a : min(a + 7, 300)], y[a : min(a + 7, 300)])
    found = session.to_estimator().partial_fit(X[300:], y[300:])
    expected = esn(washout=0).fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
    assert_same_choice(found, expected)


@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_a_session_forgets_as_the_estimator_does(factor):
    X, y, _ = series(400)
    session = esn(washout=0).fit(X[:200], y[:200]).stream()
    session.learn(X[200:250], y[200:250]).forgetting = 0.99
    found = session.learn(X[250:300], y[250:300]).forget(factor).to_estimator()
    expected = esn(washout=0).fit(X[:250], y[:250]).set_params(forgetting=0.99)
    expected.partial_fit(X[250:300], y[250:300])
    expected._model.readout.fade(factor=factor)
    for model in (found, expected):
        model.set_params(forgetting=0.99).partial_fit(X[300:], y[300:])
    assert_same_choice(found, expected)
    np.testing.assert_allclose(
        found._model.readout.neighbours.log_dets,
        expected._model.readout.neighbours.log_dets,
        rtol=1e-9,
    )


def test_rows_that_a_session_leaves_out_end_a_run():
    X, y, _ = series(340)
    session = esn(washout=0).fit(X[:200], y[:200]).stream().learn(X[200:300], y[200:300])
    # rows that were run over and not learned from stand between: no neighbours
    session.predict(X[300:310])
    for model, lengths in (
        (session.to_estimator().partial_fit(X[310:340], y[310:340]), [300, 30]),
        (session.learn(X[310:340], y[310:340]).to_estimator(), [300, 30]),
    ):
        log_dets = model._model.readout.neighbours.log_dets
        np.testing.assert_allclose(log_dets, closed_form(lengths), rtol=1e-9)


def test_it_chooses_larger_penalties_under_dependent_errors_and_predicts_better():
    alphas, scores = [], []
    for seed in range(5):
        X, y, clean = series(700, seed)
        models = [
            esn(60, leak_rate=0.3, alpha="auto", alpha_selection=rule).fit(X[:200], y[:200])
            for rule in ("reml", "reml_ar1")
        ]
        alphas.append([model.alpha_ for model in models])
        scores.append([model.score(X[200:], clean[200:]) for model in models])
    few, many = np.median(alphas, axis=0)
    assert many > few
    worse, better = np.median(scores, axis=0)
    assert better > max(worse + 0.2, 0.5)


def test_what_cannot_compare_neighbours_raises():
    H, Y, _ = rows()
    with pytest.raises(ValueError, match=r"'reml_ar1' compares neighbouring .* selection=\"reml\""):
        ridge_path(GramAccumulator(5, 2).update(H, Y), ALPHAS, selection="reml_ar1")
    X, y, _ = series(300)
    model = esn(alpha_selection="reml").partial_fit(X[:200], y[:200])
    model.set_params(alpha_selection="reml_ar1")
    with pytest.raises(ValueError, match=r'compares neighbouring.* alpha_selection="reml"'):
        model.partial_fit(X[200:], y[200:])
    model.fit(X, y)
    assert model.alpha_selection_ == "reml_ar1"
    assert isinstance(model._model.readout, RidgeReadout)


def test_starts_of_sequences():
    np.testing.assert_array_equal(starts_of([3, 4, 5], 10, False), [10, 13, 17])
    np.testing.assert_array_equal(starts_of([3, 4, 5], 10, True), [13, 17])

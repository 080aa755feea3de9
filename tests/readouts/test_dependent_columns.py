"""Every kind of sums over rows, with columns that are zero, equal, constant or dependent.

Rows come in chunks of one up to more than the number of columns, with weights and with forgetting;
the sums must lead to the ridge of the stored rows.
"""

import numpy as np
import pytest

from helpers import naive
from reservoir import NVARRegressor
from reservoir.readouts import (
    GramAccumulator,
    QRAccumulator,
    RecursiveLeastSquares,
    SlidingWindow,
    leave_one_out_ridge,
    ridge_path,
)
from reservoir.readouts.penalised_factor import PenalisedFactor
from reservoir.readouts.relevance import left_out_by_folds

KINDS = pytest.mark.parametrize("kind", [GramAccumulator, QRAccumulator])
SEEDS = pytest.mark.parametrize(
    "seeds", [range(12), pytest.param(range(12, 200), marks=pytest.mark.slow)], ids=["few", "many"]
)


class Rows:
    """Rows of a draw, and the chunks that they come in.

    `known` are weights that no forgetting has touched, None where there are none; `weights` are
    what is left of them in the end.
    """

    def __init__(self, seed, *, forgetting=None):
        rng = self.rng = np.random.default_rng(seed)
        n, d, q = rng.integers(2, 50), rng.integers(1, 14), rng.integers(1, 3)
        H = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-1, 3, d)
        for j, kind in enumerate(rng.integers(0, 12, d)):
            if kind == 0:
                H[:, j] = 0.0
            elif kind == 1:
                H[:, j] = rng.choice([1.0, 0.1, -300.0])
            elif kind == 2:
                H[:, j] = H[:, rng.integers(j + 1)]
            elif kind == 3:
                H[:, j] = 1 - H[:, :j].sum(axis=1)
            elif kind == 4:  # as an hour or a holiday
                H[:, j] = np.arange(n) % d == j
            elif kind == 5:  # as a relu unit
                H[:, j] = np.maximum(H[:, j], 0.0)
            elif kind == 6:
                H[: n // 2, j] = 0.0
            elif kind == 7:
                H[n // 2 :, j] = 0.0
        if rng.uniform() < 0.2:
            H = H[rng.integers(0, n // 2, n)]
        self.H, self.n, self.d, self.q = H, n, d, q
        self.Y = (H / np.maximum(1, np.abs(H).max(axis=0))) @ rng.normal(size=(d, q))
        self.Y += rng.normal(size=(n, q)) + 1
        self.known = None
        if rng.uniform() < 0.5:
            self.known = rng.uniform(0.1, 3, n) * (rng.uniform(size=n) < 0.7)
            self.known[-1] = 1.0
        self.forgetting = rng.choice([1.0, 0.99, 0.7]) if forgetting is None else forgetting
        self.weights = np.ones(n) if self.known is None else self.known
        enter = self.weights > 0
        after = np.cumsum(enter[::-1])[::-1] - enter
        self.weights = np.where(enter, self.weights * self.forgetting**after, 0.0)
        self.fit_intercept = bool(rng.integers(2))

    def chunks(self):
        """Yield features, targets and weights of one chunk after the other."""
        most, begin = self.rng.choice([1, 2, self.d, 2 * self.d + 5]), 0
        while begin < self.n:
            rows = slice(begin, begin + self.rng.integers(1, most + 1))
            yield self.H[rows], self.Y[rows], None if self.known is None else self.known[rows]
            begin = rows.stop

    def kept(self, kind):
        """Return the sums of all rows, by updates, copies, merges and both orders of them."""
        total = kind(self.d, self.q, forgetting=self.forgetting)
        for chunk in self.chunks():
            part = kind(self.d, self.q, forgetting=self.forgetting).update(*chunk)
            way = self.rng.integers(4)
            if way == 0:
                total.update(*chunk)
            elif way == 1:
                total = total.copy().merge(part)
            elif way == 2:
                total = part.after(total)
            else:  # merged before it is merged
                empty = kind(self.d, self.q, forgetting=self.forgetting)
                total.merge(empty.merge(part).copy())
        return total

    def ridge(self, alpha):
        """Return coefficients and intercept of the ridge of the rows that are stored."""
        of = {"weights": self.weights, "fit_intercept": self.fit_intercept}
        return naive.ridge(self.H, self.Y, alpha, **of)

    def assert_outputs(self, coef, intercept, expected, tol):
        """The outputs of both, weighted as the rows are, must agree."""
        found = self.H @ np.reshape(coef, (self.q, self.d)).T + intercept
        error = np.abs(found - (self.H @ expected[0].T + expected[1]))
        root = np.sqrt(self.weights / self.weights.max())
        assert (root[:, None] * error).max() <= tol * np.abs(self.Y).max()


@KINDS
@SEEDS
def test_sums_of_any_split_are_those_of_the_stored_rows(kind, seeds):
    alphas, tol = ((1e-9, 1e-3, 1.0), 1e-9) if kind is QRAccumulator else ((1e-3, 1.0), 1e-6)
    for seed in seeds:
        rows = Rows(seed)
        sums, intercept = rows.kept(kind), rows.fit_intercept
        assert sums.weight == pytest.approx(rows.weights.sum())
        for alpha in alphas:
            expected, path = rows.ridge(alpha), sums.path(intercept)
            rows.assert_outputs(*sums.solve(alpha, fit_intercept=intercept)[:2], expected, tol)
            coef = path.coef(alpha)
            rows.assert_outputs(coef, path.intercept(coef), expected, tol)
            R, Z, means = sums.penalised_factor(alpha, intercept)
            coef = np.linalg.solve(R, Z).T
            c = means[rows.d :] - coef @ means[: rows.d]
            rows.assert_outputs(coef, c, expected, tol)
            errors = rows.weights @ (rows.Y - rows.H @ expected[0].T - expected[1]) ** 2
            found = sums.squared_errors(expected[0][None], expected[1][None])[0]
            np.testing.assert_allclose(found, errors, atol=tol * (rows.weights @ rows.Y**2).max())
        lighter = sums.copy().discounted(0.25).solve(0.25, fit_intercept=intercept)
        rows.assert_outputs(*lighter[:2], rows.ridge(1.0), tol)


@KINDS
@SEEDS
def test_scores_are_those_of_fits_to_the_stored_rows(kind, seeds):
    tol = 1e-8 if kind is QRAccumulator else 1e-6
    for seed in seeds:
        rows = Rows(seed, forgetting=1.0)
        alphas = np.array([1e-2, 1.0, 100.0])
        of = {"weights": rows.weights, "fit_intercept": rows.fit_intercept}
        cuts = np.array_split(np.arange(rows.n), rows.rng.integers(2, 6))
        cuts = [cut for cut in cuts if rows.weights[cut].any()]
        blocks = [kind(rows.d, rows.q).update(rows.H[c], rows.Y[c], rows.weights[c]) for c in cuts]
        sums = rows.kept(kind)
        there = rows.weights > 0
        # of fewer rows than columns too little is left to score
        tried = {"gcv": ([], None)} if there.sum() > rows.d + 1 else {}
        if len(cuts) > 1:
            rest = blocks[0].copy()
            for block in blocks[1:-1]:
                rest.merge(block)
            tried |= {"blocked": (blocks, None), "holdout": (blocks[-1:], rest)}
        for selection, (scored, others) in tried.items():
            found = ridge_path(
                sums,
                alphas,
                selection=selection,
                blocks=scored,
                rest=others,
                fit_intercept=rows.fit_intercept,
            ).scores
            if selection == "gcv":
                given = rows.H[there], rows.Y[there]
                of_rows = {**of, "weights": rows.weights[there]}
                expected = np.array([naive.gcv(*given, alpha, **of_rows) for alpha in alphas])
            else:
                expected = naive.block_scores(rows.H, rows.Y, alphas, cuts[-len(scored) :], **of)
            np.testing.assert_allclose(found, expected, rtol=tol, atol=tol * (rows.Y**2).max())


@SEEDS
def test_rows_one_by_one_lead_to_the_ridge_of_the_stored_rows(seeds):
    for seed in seeds:
        rows = Rows(seed)
        alpha, intercept = rows.rng.choice([1e-6, 1.0]), rows.fit_intercept
        own = {"alpha": alpha, "fit_intercept": intercept}
        model = RecursiveLeastSquares(forgetting=rows.forgetting, **own)
        factor, half = None, [GramAccumulator, QRAccumulator][seed % 2](rows.d, rows.q)
        half.forgetting = rows.forgetting
        for chunk in rows.chunks():
            model.partial_fit(*chunk)
            if factor is None and half.n_samples < rows.d:
                half.update(*chunk)
            else:
                start = {"forgetting": rows.forgetting, "fit_intercept": intercept}
                factor = factor or PenalisedFactor.from_sums(half, alpha, **start)
                factor.add(*chunk)
        for each in [model._factor] if factor is None else [model._factor, factor]:
            # the penalty of each coefficient may have faded: in its units it is one
            units = np.sqrt(each.penalties)
            of = {"weights": rows.weights, "fit_intercept": intercept}
            coef, c = naive.ridge(rows.H / units, rows.Y, 1.0, **of)
            tol = 1e-6 if each is factor and seed % 2 == 0 else 1e-8
            rows.assert_outputs(*each.coef(), (coef / units, c), tol)


@SEEDS
def test_a_window_is_the_ridge_of_its_rows(seeds):
    for seed in seeds:
        rows = Rows(seed, forgetting=1.0)
        alpha, n_rows = rows.rng.choice([1e-6, 1.0]), int(rows.rng.integers(1, 40))
        model = SlidingWindow(n_rows, alpha=alpha, fit_intercept=rows.fit_intercept)
        for chunk in rows.chunks():
            model.partial_fit(*chunk)
        inside = np.flatnonzero(rows.weights)[-n_rows:]
        rows.H, rows.Y, rows.weights = rows.H[inside], rows.Y[inside], rows.weights[inside]
        found = model.coef_, model.intercept_
        rows.assert_outputs(*found, rows.ridge(alpha), 1e-8)


@SEEDS
def test_rows_left_out_are_those_of_fits_without_them(seeds):
    for seed in seeds:
        rows = Rows(seed, forgetting=1.0)
        alphas, there = np.array([1e-2, 1.0, 100.0]), rows.weights > 0
        H, Y, weights = rows.H[there], rows.Y[there], rows.weights[there]
        if len(H) < 4:
            continue
        share = weights / weights.sum()
        deviations = np.sqrt(share @ (H - share @ H) ** 2)
        varies = deviations > 1e-12 * np.abs(H).max(axis=0)
        Z = np.where(varies, (H - share @ H) / np.where(varies, deviations, 1.0), 0.0)

        def said_without(out, Z, Y=Y, weights=weights, alphas=alphas):
            fits = [naive.ridge(Z[~out], Y[~out], a, weights=weights[~out]) for a in alphas]
            return np.stack([Z[out] @ coef.T + c for coef, c in fits])

        each = np.eye(len(H), dtype=bool)
        errors = np.concatenate([said_without(one, Z) for one in each], axis=1) - Y
        expected = np.einsum("i,aij->aj", share, errors**2)
        found = leave_one_out_ridge(H, Y, alphas, weights).scores
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        # folds, with columns weighed by what they say of the targets, and of a spread in which each
        # row counts once; one target is constant
        Z *= np.where(varies, deviations / np.where(varies, H.std(axis=0), 1.0), 0.0)
        Y[:, 0] = rows.rng.choice([0.0, 0.1])
        folds = np.arange(len(H)) % 3
        said = left_out_by_folds(H, Y, alphas, weights, folds)
        for k in range(3):
            out = folds == k
            F = np.where(varies, naive_relevance(Z[~out], Y[~out], weights[~out]), 0.0)
            root = np.sqrt(F / F[varies].mean()) if varies.any() else F
            expected = said_without(out, Z * root, Y)
            np.testing.assert_allclose(said[:, out], expected, rtol=0, atol=1e-6 * np.abs(Y).max())


def naive_relevance(Z, Y, weights):
    """The F statistic of each column, by least squares on the targets that vary."""
    varies = np.ptp(Y, axis=0) > 0
    n_known = np.count_nonzero(varies)
    freedom = max(len(Y) - 1 - n_known, 1) / max(n_known, 1)
    roots = np.sqrt(weights / weights.sum())[:, None]
    X = roots * np.column_stack([np.ones(len(Y)), Y[:, varies]])
    F = np.empty(Z.shape[1])
    for j, z in enumerate(Z.T):
        z = roots[:, 0] * (z - weights @ z / weights.sum())
        rest = z - X @ np.linalg.lstsq(X, z, rcond=None)[0]
        part = 1 - rest @ rest / (z @ z) if z @ z > 1e-14 else 0.0
        F[j] = part / max(1 - part, 1e-3) * freedom + 1e-3
    return F


@pytest.mark.fast_cases(5)
@pytest.mark.parametrize("n_rows", [2, 5, 24, 26, 240])
@pytest.mark.parametrize("solver", ["qr", "auto", "cholesky"])
def test_chunks_of_hours_and_a_temperature(n_rows, solver):
    """In a chunk most hours do not come; the temperature stands behind them."""
    rng = np.random.default_rng(n_rows)
    X = np.column_stack([np.eye(24)[np.arange(240) % 24], rng.normal(size=240)])
    y = 2 * X[:, -1] + np.sin(np.arange(240) % 24) + 0.3 * rng.normal(size=240)
    model = NVARRegressor(1, degree=1, alpha=1e-12, solver=solver, washout=0)
    for begin in range(0, 240, n_rows):
        model.partial_fit(X[begin : begin + n_rows], y[begin : begin + n_rows])
    coef, intercept = naive.ridge(X, y[:, None], 1e-12)
    assert model.coef_[-1] == pytest.approx(coef[0, -1], rel=1e-6)
    np.testing.assert_allclose(model.predict(X), X @ coef[0] + intercept, atol=1e-6)


@pytest.mark.parametrize("selection", ["gcv", "blocked", "holdout"])
@pytest.mark.parametrize("solver", ["qr", "cholesky"])
def test_short_parts_of_hours_and_a_temperature(selection, solver):
    """A fit that chooses the penalty merges parts of fewer rows than columns."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.eye(24)[np.arange(60) % 24], rng.normal(size=60)])
    y = 2 * X[:, -1] + np.sin(np.arange(60) % 24) + 0.3 * rng.normal(size=60)
    own = {"alpha": [1e-12, 1e-3], "alpha_selection": selection, "solver": solver}
    model = NVARRegressor(1, degree=1, washout=0, **own).fit(X, y)
    coef, intercept = naive.ridge(X, y[:, None], model.alpha_)
    np.testing.assert_allclose(model.predict(X), X @ coef[0] + intercept, atol=1e-6)
    if selection == "gcv":
        return
    blocks = np.array_split(np.arange(60), 5)
    expected = naive.block_scores(
        X, y[:, None], [1e-3], blocks[-1:] if "h" in selection else blocks
    )
    np.testing.assert_allclose(model.alpha_scores_[1:], expected, rtol=1e-6)

"""Echo state estimators: purity, chunks, seeds, weights, containers, readouts."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge, SGDRegressor
from sklearn.pipeline import make_pipeline

from reservoir import ESNClassifier, ESNRegressor, ReservoirTransformer
from reservoir.building import build_reservoir
from reservoir.dynamics import run
from reservoir.readouts import GramAccumulator

pytestmark = pytest.mark.both_engines

SEEDS = [0, 1, 2]


def series(n=400, n_features=2, n_outputs=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, n_features))
    lagged = np.vstack([np.zeros((2, n_features)), X[:-2]])
    Y = np.sin(X[:, :1]) + lagged[:, :1] * np.arange(1, n_outputs + 1)
    return X, (Y[:, 0] if n_outputs == 1 else Y)


VARIANTS = {
    "plain": {},
    "leaky": {"leak_rate": 0.3},
    "feedback": {"feedback": True, "feedback_scaling": 0.1},
    "noise": {"noise": 1e-3},
    "noisy feedback": {"feedback": True, "feedback_scaling": 0.1, "noise": 1e-3},
    "path": {"alpha": np.logspace(-6, 0, 4)},
    "float32": {"dtype": "float32"},
    "no input": {"include_input": False, "fit_intercept": False},
}


@pytest.mark.fast_cases(9)
@pytest.mark.parametrize("params", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("n_outputs", [1, 2])
class TestRegressor:
    def make(self, params, **more):
        return ESNRegressor(30, washout=20, random_state=3, **{**params, **more})

    @pytest.mark.fast_cases(4)
    @pytest.mark.parametrize("splits", [[200], [5, 19, 21, 22, 300], list(range(10, 400, 10))])
    def test_partial_fit_in_any_split_is_one_fit(self, params, n_outputs, splits):
        X, y = series(n_outputs=n_outputs)
        whole = self.make(params).fit(X, y)
        parts = self.make(params)
        for rows in np.split(np.arange(len(X)), splits):
            parts.partial_fit(X[rows], y[rows])
        scale = np.abs(whole.coef_).max()
        tolerance = 1e-3 if "dtype" in params else 1e-10  # float32 states differ in the last digit
        np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=0, atol=tolerance * scale)
        np.testing.assert_allclose(parts.state_, whole.state_, rtol=0, atol=1e-6)
        assert parts.alpha_ == whole.alpha_

    @pytest.mark.fast_cases(4)
    def test_partial_fit_continues_from_fit(self, params, n_outputs):
        X, y = series(n_outputs=n_outputs)
        whole = self.make(params).fit(X, y)
        parts = self.make(params).fit(X[:150], y[:150]).partial_fit(X[150:], y[150:])
        tolerance = 1e-3 if "dtype" in params else 1e-10
        scale = np.abs(whole.coef_).max()
        np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("seed", SEEDS)
def test_states_and_readout_are_those_of_the_low_level_functions(seed):
    X, y = series(seed=seed)
    esn = ESNRegressor(40, washout=30, alpha=1e-3, random_state=seed).fit(X, y)
    reservoir = build_reservoir(40, 2, leak_rate=(0.5, 0.3), random_state=seed)
    H = np.hstack([run(reservoir, X), X])
    solution = GramAccumulator(42, 1).update(H[30:], y[30:]).solve(1e-3)
    np.testing.assert_allclose(esn.coef_, solution.coef[0], rtol=1e-9, atol=1e-12)
    ridge = Ridge(1e-3).fit(H[30:], y[30:])
    np.testing.assert_allclose(esn.coef_, ridge.coef_, rtol=0, atol=1e-8)
    zeros = esn.predict(X, initial_state="zeros")
    np.testing.assert_allclose(zeros, ridge.predict(H), rtol=0, atol=1e-8)
    np.testing.assert_allclose(esn.states(X, initial_state="zeros"), H[:, :40], atol=1e-14)


def test_one_or_two_units_have_the_first_of_the_leak_rates():
    X, y = series()
    esn = ESNRegressor(1, random_state=0).fit(X, y)
    assert esn.reservoir_.leak_rate == 0.5
    esn = ESNRegressor(2, leak_rate=(0.5, 0.3, 0.1)).fit(X, y)
    np.testing.assert_array_equal(esn.reservoir_.leak_rate, [0.5, 0.3])
    with pytest.raises(ValueError, match=r"shape \(3,\); got shape \(4,\). Give one number, or"):
        ESNRegressor(3, leak_rate=(0.5, 0.3, 0.1, 0.05)).fit(X, y)


def test_one_generator_per_matrix():
    X, y = series()
    base = ESNRegressor(30, random_state=0).fit(X, y).reservoir_
    for change in (
        {"input_scaling": 2.0},
        {"bias_scaling": 1.0},
        {"feedback": True},
        {"leak_rate": 0.5},
        {"noise": 0.1},
    ):
        other = ESNRegressor(30, random_state=0, **change).fit(X, y).reservoir_
        assert np.array_equal(other.W.toarray(), base.W.toarray()), change
    states = ReservoirTransformer(30, random_state=0).fit(X).reservoir_
    assert np.array_equal(states.W.toarray(), base.W.toarray())
    assert np.array_equal(states.W_in, base.W_in)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("feedback", [False, True])
def test_n_jobs_does_not_change_a_bit(feedback):
    Xs, ys = zip(*[series(n=2100 + 10 * k, seed=k) for k in range(4)], strict=True)
    fits = [
        ESNRegressor(
            20, n_jobs=n_jobs, feedback=feedback, feedback_scaling=0.1, noise=1e-3, random_state=0
        ).fit(list(Xs), list(ys))
        for n_jobs in (None, 1, 2)
    ]
    for other in fits[1:]:
        assert np.array_equal(other.coef_, fits[0].coef_)
        assert np.array_equal(other.state_, fits[0].state_)


def test_a_gap_over_a_whole_block_leaves_the_others_to_choose_by():
    X, y = series(n=600)
    y[270:400] = np.nan  # the third of the five blocks of the 540 rows behind the washout, and more
    esn = ESNRegressor(
        30,
        alpha=np.logspace(-6, 0, 4),
        n_lags=1,
        input_alpha=None,
        alpha_selection="blocked",
        missing_targets="skip",
        washout=60,
        random_state=0,
    ).fit(X, y)
    features = np.hstack([esn.states(X, initial_state="zeros"), X])
    number, known = (np.arange(600) - 60) // 108, ~np.isnan(y) & (np.arange(600) >= 60)
    blocks = [known & (number == k) for k in (0, 1, 3, 4)]
    assert not (known & (number == 2)).any()
    scores = []
    for alpha in esn.alpha:
        fits = [Ridge(alpha).fit(features[known & ~b], y[known & ~b]) for b in blocks]
        pairs = zip(fits, blocks, strict=True)
        squares = [np.sum((ridge.predict(features[b]) - y[b]) ** 2) for ridge, b in pairs]
        scores.append(sum(squares) / known.sum())
    np.testing.assert_allclose(esn.alpha_scores_.ravel(), scores, rtol=1e-6)


def test_missing_targets_are_skipped_on_request():
    X, y = series(n_outputs=2)
    holes = y.copy()
    holes[50:60, 0] = np.nan
    with pytest.raises(ValueError, match=r"NaN in column 0, first in row 50"):
        ESNRegressor(20).fit(X, holes)
    weights = np.ones(len(X))
    weights[50:60] = 0
    skipped = ESNRegressor(20, missing_targets="skip", random_state=0).fit(X, holes)
    weighed = ESNRegressor(20, random_state=0).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(skipped.coef_, weighed.coef_, atol=1e-12)
    with pytest.raises(ValueError, match="feedback"):
        ESNRegressor(20, missing_targets="skip", feedback=True).fit(X, holes)


@pytest.mark.parametrize("selection", ["gcv", "blocked", "holdout"])
@pytest.mark.parametrize("per_target", [False, True])
def test_alpha_from_a_path(selection, per_target, global_random_seed):
    X, Y = series(n=600, n_outputs=2, seed=global_random_seed)
    rng = np.random.default_rng([global_random_seed, 1])
    Y = Y + rng.normal(size=Y.shape) * [0.003, 3]
    alphas = np.logspace(-8, 4, 13)
    esn = ESNRegressor(
        50,
        alpha=alphas,
        alpha_selection=selection,
        alpha_per_target=per_target,
        n_lags=1,
        input_alpha=None,
        random_state=global_random_seed,
    ).fit(X, Y)
    assert esn.alpha_scores_.shape == (13, 2)
    if per_target:
        best = alphas[np.argmin(esn.alpha_scores_, axis=0)]
        assert np.array_equal(esn.alpha_, best)
        if selection != "holdout":  # a fifth of the rows may be too few to tell
            assert esn.alpha_[0] < esn.alpha_[1]  # the second output is the noisier
        single = ESNRegressor(50, alpha=esn.alpha_[1], random_state=global_random_seed).fit(
            X, Y[:, 1]
        )
        np.testing.assert_allclose(esn.coef_[1], single.coef_, atol=1e-8)
    else:
        in_units = esn.alpha_scores_ / Y[int(esn.washout_[0]) :].var(axis=0)
        assert esn.alpha_ == alphas[np.argmin(in_units.sum(axis=1))]
        fixed = ESNRegressor(50, alpha=esn.alpha_, random_state=global_random_seed).fit(X, Y)
        np.testing.assert_allclose(esn.coef_, fixed.coef_, atol=1e-8)


class TestReadout:
    def test_any_regressor(self):
        X, y = series()
        built_in = ESNRegressor(30, alpha=1e-3, random_state=0).fit(X, y)
        own = ESNRegressor(30, readout=Ridge(1e-3), random_state=0).fit(X, y)
        assert not hasattr(own, "coef_")
        np.testing.assert_allclose(own.predict(X), built_in.predict(X), atol=1e-7)

    def test_closed_loop_with_a_regressor(self):
        wave = np.sin(0.2 * np.arange(500))
        esn = ESNRegressor(50, readout=Ridge(1e-6), random_state=0).fit(wave[:-1, None], wave[1:])
        truth = np.sin(0.2 * np.arange(500, 550))
        np.testing.assert_allclose(esn.forecast(50), truth, atol=0.05)

    def test_weights_reach_it_or_raise(self):
        X, y = series()
        weights = np.linspace(0, 1, len(X))
        own = ESNRegressor(30, readout=Ridge(1e-3), random_state=0)
        built_in = ESNRegressor(30, alpha=1e-3, random_state=0)
        np.testing.assert_allclose(
            own.fit(X, y, sample_weight=weights).predict(X),
            built_in.fit(X, y, sample_weight=weights).predict(X),
            atol=1e-7,
        )
        from sklearn.neighbors import KNeighborsRegressor

        with pytest.raises(TypeError, match="KNeighborsRegressor does not accept sample_weight"):
            ESNRegressor(30, readout=KNeighborsRegressor()).fit(X, y, sample_weight=weights)

    def test_partial_fit_needs_the_readouts(self):
        X, y = series()
        esn = ESNRegressor(30, readout=SGDRegressor(random_state=0), random_state=0)
        esn.partial_fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
        assert esn.predict(X).shape == y.shape
        with pytest.raises(TypeError, match="Ridge has no partial_fit"):
            ESNRegressor(30, readout=Ridge()).partial_fit(X, y)

    def test_an_array_of_alphas_raises(self):
        X, y = series()
        with pytest.raises(ValueError, match="readout= replaces"):
            ESNRegressor(30, readout=Ridge(), alpha=[1.0, 2.0]).fit(X, y)


class TestInitialState:
    def test_last_scores_what_time_series_split_means(self):
        X, y = series()
        esn = ESNRegressor(30, random_state=0).fit(X[:300], y[:300])
        going_on = esn.predict(X[300:])
        whole = esn.predict(X, initial_state="zeros")[300:]
        np.testing.assert_allclose(going_on, whole, atol=1e-12)

    def test_steady_is_a_fixed_point(self):
        X, y = series()
        esn = ESNRegressor(30, initial_state="steady", leak_rate=0.4, random_state=0).fit(X, y)
        states = esn.states(np.tile(X[:1], (5, 1)))
        np.testing.assert_allclose(states, np.tile(states[:1], (5, 1)), atol=1e-12)

    def test_no_fixed_point_warns_and_starts_from_zeros(self):
        from sklearn.exceptions import ConvergenceWarning

        X, y = series()
        esn = ESNRegressor(30, spectral_radius=3.0, random_state=0).fit(X, y)
        with pytest.warns(ConvergenceWarning, match="no fixed point"):
            steady = esn.predict(X[:20], initial_state="steady")
        assert np.array_equal(steady, esn.predict(X[:20], initial_state="zeros"))

    @pytest.mark.parametrize("feedback", [False, True])
    def test_arrays(self, feedback):
        X, y = series()
        one = {"n_lags": 1, "random_state": 0}
        esn = ESNRegressor(30, feedback=feedback, feedback_scaling=0.1, **one).fit(X, y)
        rng = np.random.default_rng(0)
        state = rng.uniform(-1, 1, 30)
        one = esn.predict(X[:20], initial_state=state)
        if feedback:
            padded = np.append(state, 0.0)
            assert np.array_equal(esn.predict(X[:20], initial_state=padded), one)
        several = esn.predict([X[:20], X[:20]], initial_state=np.stack([state, 0 * state]))
        np.testing.assert_array_equal(several[0], one)
        np.testing.assert_array_equal(several[1], esn.predict(X[:20], initial_state="zeros"))

    def test_the_constructors_is_used_in_training_too(self):
        X, y = series()
        state = np.full(30, 0.5)
        params = {"alpha": 1e-6, "washout": 0, "random_state": 0}
        esn = ESNRegressor(30, initial_state=state, **params).fit(X, y)
        H = np.hstack([run(esn.reservoir_, X, initial_state=state), X])
        reference = GramAccumulator(32, 1).update(H, y).solve(1e-6)
        np.testing.assert_allclose(esn.coef_, reference.coef[0], rtol=1e-6, atol=1e-9)


def test_noise_is_in_fit_only():
    X, y = series()
    esn = ESNRegressor(30, leak_rate=1.0, noise=0.1, random_state=0).fit(X, y)
    np.testing.assert_array_equal(
        esn.states(X, initial_state="zeros"), run(build_reservoir(30, 2, random_state=0), X)
    )


@pytest.mark.filterwarnings("ignore:The units .* the bounds of:UserWarning")  # they may here
def test_huge_constant_and_flat_data_are_finite_or_named():
    X, y = series()
    constant = np.full_like(X, 7.0)
    for data, target in ((constant, y), (X, np.full(len(X), 3.0)), (constant, constant[:, 0])):
        for alpha in (0.0, 1e-6, [1e-6, 1.0]):
            esn = ESNRegressor(30, alpha=alpha, random_state=0).fit(data, target)
            assert np.isfinite(esn.predict(data)).all()
            assert np.isfinite(esn.coef_).all()
    flat = ESNRegressor(30, random_state=0).fit(X, np.full(len(X), 3.0)).predict(X)
    np.testing.assert_allclose(flat, 3.0, atol=1e-9)
    with pytest.raises(ValueError, match="overflow"):
        ESNRegressor(30, random_state=0).fit(X * 1e300, y)
    esn = ESNRegressor(30, include_input=False, random_state=0).fit(X * 1e300, y)
    assert np.isfinite(esn.predict(X * 1e300)).all()
    with pytest.raises(ValueError, match="overflow"):
        ESNRegressor(30, random_state=0).fit(X, y * 1e300)
    with pytest.raises(ValueError, match="not finite"):
        ESNRegressor(30, activation="relu", spectral_radius=100.0, random_state=0).fit(X, y)


def test_metadata_routing():
    """Weights and new_sequence are requested like scikit-learn's own."""
    import sklearn
    from sklearn.model_selection import cross_validate

    X, y = series()
    weights = np.linspace(0, 1, len(X))
    with sklearn.config_context(enable_metadata_routing=True):
        esn = ESNRegressor(20, random_state=0).set_fit_request(sample_weight=True)
        pipe = make_pipeline(ReservoirTransformer(5, random_state=0), esn)
        routed = pipe.fit(X, y, sample_weight=weights)[-1].coef_
        out = cross_validate(
            esn.set_score_request(sample_weight=True),
            X,
            y,
            params={"sample_weight": weights},
            cv=3,
            error_score="raise",
        )
        assert np.isfinite(out["test_score"]).all()
        requests = ESNRegressor().set_partial_fit_request(new_sequence=True)
        assert requests.get_metadata_routing().partial_fit.requests["new_sequence"] is True
    states = ReservoirTransformer(5, random_state=0).fit_transform(X)
    direct = ESNRegressor(20, random_state=0).fit(states, y, sample_weight=weights).coef_
    np.testing.assert_allclose(routed, direct, atol=1e-12)


def test_set_output_leaves_predictions_alone():
    pd = pytest.importorskip("pandas")
    X, y = series()
    frame = pd.DataFrame(X, columns=["a", "b"])
    pipe = make_pipeline(ReservoirTransformer(5, random_state=0), ESNRegressor(20, random_state=0))
    pipe.set_output(transform="pandas").fit(frame, pd.Series(y))
    assert isinstance(pipe[:-1].transform(frame), pd.DataFrame)
    assert list(pipe[-1].feature_names_in_) == [f"reservoirtransformer{k}" for k in range(5)]
    assert isinstance(pipe.predict(frame), np.ndarray)


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("feedback", [False, True])
@pytest.mark.parametrize("splits", [[40], [80], [5, 90, 141, 200]])
def test_partial_fit_with_noise_over_sequences_is_one_fit(feedback, splits):
    X, y = series(n=240)
    X = np.column_stack([np.repeat([0.0, 1.0, 2.0], 80), X])
    make = ESNRegressor(
        20,
        noise=0.1,
        washout=7,
        sequence_column=0,
        feedback=feedback,
        feedback_scaling=0.1,
        random_state=0,
    )
    whole, parts = clone(make).fit(X, y), clone(make)
    for rows in np.split(np.arange(len(X)), splits):
        parts.partial_fit(X[rows], y[rows])
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=0, atol=1e-10)


@pytest.mark.parametrize("params", [{}, {"noise": 0.1}, {"alpha": [1e-4, 1.0]}])
def test_a_fit_that_fails_changes_nothing(params):
    X, y = series()
    esn = ESNRegressor(20, washout=10, random_state=0, **params)
    fresh = clone(esn)
    for bad in ({"initial_state": np.zeros(3)}, {"washout": -1}, {"alpha": -1.0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            clone(esn).set_params(**bad).fit(X, y)
    with pytest.raises(ValueError, match="overflow"):
        fresh.fit(X * 1e300, y)
    assert not hasattr(fresh, "reservoir_")
    esn.fit(X[:200], y[:200])
    before = esn.predict(X)
    wild = X[200:].copy()
    wild[50] = 1e300
    for method in (esn.fit, esn.partial_fit):
        with pytest.raises(ValueError, match="overflow"):
            method(wild, y[200:])
        assert np.array_equal(esn.predict(X), before)
    with pytest.raises(ValueError, match="outputs"):
        esn.partial_fit(X[200:], np.column_stack([y, y])[200:])
    with pytest.raises(ValueError, match="dimension"):
        esn.partial_fit(X[200:], y[200:, None])
    assert esn.predict(X).shape == y.shape
    esn.partial_fit(X[200:], y[200:])
    whole = clone(esn).fit(X, y)
    np.testing.assert_allclose(esn.coef_, whole.coef_, rtol=0, atol=1e-10)


def test_partial_fit_continues_with_the_readout_it_began_with():
    X, y = series()
    for first, second in ((None, SGDRegressor()), (SGDRegressor(random_state=0), None)):
        esn = ESNRegressor(20, readout=first, random_state=0).partial_fit(X[:200], y[:200])
        before = esn.predict(X[200:])
        with pytest.raises(ValueError, match="differs in kind from the readout of earlier calls"):
            esn.set_params(readout=second).partial_fit(X[200:], y[200:])
        assert np.array_equal(esn.predict(X[200:]), before)
        assert np.isfinite(esn.fit(X, y).predict(X)).all()


class Falling(SGDRegressor):
    """Changes itself before it fails on targets that are too large."""

    def partial_fit(self, X, y, sample_weight=None):
        super().partial_fit(X, y, sample_weight)
        if np.abs(y).max() > 100:
            raise ArithmeticError("too large")
        return self


def test_a_readout_that_fails_half_way_changes_nothing():
    X, y = series()
    readout = Falling(random_state=0)
    esn = ESNRegressor(20, readout=readout, random_state=0).partial_fit(X[:200], y[:200])
    before, held = esn.predict(X[200:]), esn.readout_
    with pytest.raises(ArithmeticError):
        esn.partial_fit(X[200:], 1e3 * y[200:])
    assert esn.readout_ is held
    assert np.array_equal(esn.predict(X[200:]), before)
    again = ESNRegressor(20, readout=readout, random_state=0).partial_fit(X[:200], y[:200])
    again.partial_fit(X[200:], y[200:])
    esn.partial_fit(X[200:], y[200:])
    assert np.array_equal(esn.readout_.coef_, again.readout_.coef_)


def test_partial_fit_checks_parameters_of_the_reservoir_once():
    X, y = series()
    esn = ESNRegressor(20, alpha=1e-6, random_state=0).partial_fit(X[:200], y[:200])
    # what this chunk does not depend on may wait for the next fit
    esn.set_params(missing_targets="skip", alpha_per_target=2)
    esn.partial_fit(X[200:], y[200:])
    plain = ESNRegressor(20, alpha=1e-6, random_state=0).partial_fit(X[:200], y[:200])
    assert np.array_equal(esn.coef_, plain.partial_fit(X[200:], y[200:]).coef_)
    with pytest.raises(TypeError, match="alpha_per_target"):
        esn.fit(X, y)


def test_scores_of_sequences_are_those_of_their_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4, 60, 2))
    y = X.sum(axis=2) + rng.normal(size=(4, 60))
    weights = rng.uniform(size=(4, 60))
    for make, target in ((ESNRegressor, y), (ESNClassifier, y > 0)):
        esn = make(20, random_state=0).fit(X, target)
        score = esn.score(X, target)
        assert score == esn.score(list(X), list(target)) == esn.score(tuple(X), tuple(target))
        weighted = esn.score(X, target, sample_weight=weights)
        assert weighted == esn.score(list(X), list(target), sample_weight=list(weights)) != score


def test_outputs_that_overflow_are_named():
    X, y = series()
    esn = ESNRegressor(20, random_state=0).fit(X, y * 100)
    wild = X.copy()
    wild[7] = 1e307
    with pytest.raises(ValueError, match="output of row 7 overflows float64"):
        esn.predict(wild)
    with pytest.raises(ValueError, match="overflow float32"):
        ESNRegressor(20, dtype="float32", random_state=0).fit(X, y * 1e40)


def test_readouts_get_one_column_as_a_vector_and_must_fit_the_task():
    from sklearn.ensemble import GradientBoostingRegressor

    X, y = series()
    own = ESNRegressor(10, readout=GradientBoostingRegressor(n_estimators=5), random_state=0)
    assert own.fit(X, y[:, None]).predict(X).shape == (len(X), 1)  # and no warning
    with pytest.raises(TypeError, match="not a classifier"):
        ESNClassifier(10, readout=Ridge()).fit(X, y > 0)

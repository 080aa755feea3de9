"""The interfaces of readouts, sources, rules, targets, forecasters and others: toys that use them.

The toys are in `tests/helpers/toys`, one file each, written as `docs/extending.md` describes; here
they are registered in the same way as the parts of the package.
"""

from contextlib import contextmanager

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.toys.akaike_selection import Akaike
from helpers.toys.drift import Drift
from helpers.toys.lag_regressor import LagRegressor
from helpers.toys.mean_level import MeanLevel
from helpers.toys.nearest_readout import NearestReadout
from helpers.toys.ordered_labels import OrderedRegressor
from helpers.toys.travel import Travel
from reservoir import ESNClassifier, ESNRegressor, ReservoirFeatures, forecast, load, save
from reservoir.building import build_reservoir
from reservoir.datasets import narma, sine_square
from reservoir.dynamics import run
from reservoir.dynamics.both_directions import BothDirections
from reservoir.dynamics.closed_loop import LoopRun
from reservoir.dynamics.features import DrivenReservoir
from reservoir.dynamics.past_inputs import LaggedSource
from reservoir.dynamics.pooling import POOLS
from reservoir.estimators.reporting import not_reported
from reservoir.readouts import READOUTS, kind_of
from reservoir.readouts.ridge import RidgeReadout
from reservoir.readouts.selection import SELECTIONS
from reservoir.readouts.stored import StoredReadout
from reservoir.series_models.candidates import Candidate
from reservoir.series_models.gaps import fill_gaps
from reservoir.series_models.rolling import roll
from reservoir.series_models.seasonal_naive import LastSeason
from reservoir.series_models.series_data import Bounds

pytestmark = pytest.mark.one_engine
X, Y = narma(400, random_state=0)
TRAIN, TEST = slice(0, 300), slice(300, 400)


@contextmanager
def registered(table, name, entry):
    table[name] = entry
    try:
        yield
    finally:
        del table[name]


@pytest.fixture
def toys():
    with (
        registered(READOUTS, "nearest", NearestReadout),
        registered(SELECTIONS, "akaike", Akaike()),
    ):
        yield


def esn(**params):
    return ESNRegressor(15, random_state=0, **params)


MODELS = {
    "readout": lambda: esn(readout="nearest"),
    "source": lambda: LagRegressor(n_lags=12, random_state=0),
    "rule": lambda: esn(alpha=np.logspace(-8, 2, 6), alpha_selection="akaike"),
    "rule, all digits": lambda: esn(alpha=[1e-18, 1e-3], alpha_selection="akaike"),
    "all": lambda: LagRegressor(readout="nearest", n_lags=4, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_toy_is_fitted_cloned_pickled_saved_and_loaded(name, toys, tmp_path):
    model = MODELS[name]().fit(X[TRAIN], Y[TRAIN])
    expected = model.predict(X[TEST])
    assert np.isfinite(expected).all()
    assert expected.shape == Y[TEST].shape
    save(model, tmp_path / "toy.npz")
    joblib.dump(model, tmp_path / "toy.joblib")
    for again in (
        clone(model).fit(X[TRAIN], Y[TRAIN]),
        load(tmp_path / "toy.npz"),
        joblib.load(tmp_path / "toy.joblib"),
    ):
        np.testing.assert_array_equal(again.predict(X[TEST]), expected)
    # what was loaded goes on learning where the other stopped
    loaded = load(tmp_path / "toy.npz").partial_fit(X[TEST], Y[TEST])
    np.testing.assert_array_equal(
        loaded.predict(X[:50]), model.partial_fit(X[TEST], Y[TEST]).predict(X[:50])
    )


@pytest.mark.parametrize("name", MODELS)
def test_any_split_of_the_rows_equals_one_fit(name, toys):
    whole = MODELS[name]().set_params(washout=20).fit(X[TRAIN], Y[TRAIN])
    parts = MODELS[name]().set_params(washout=20)
    for a, b in ((0, 7), (7, 150), (150, 300)):
        parts.partial_fit(X[a:b], Y[a:b])
    assert not {"coef_", "rows_"} & set(vars(parts))  # solved for when they are first read
    np.testing.assert_allclose(parts.predict(X[TEST]), whole.predict(X[TEST]), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("model", "grid"),
    [
        (esn(), {"readout": [None, "nearest"]}),
        (LagRegressor(), {"n_lags": [1, 3, 12]}),
        (esn(alpha=[1e-6, 1e-2]), {"alpha_selection": ["gcv", "akaike"]}),
    ],
)
def test_a_toy_is_searched_in_a_pipeline(model, grid, toys):
    pipe = make_pipeline(StandardScaler(), model)
    step = pipe.steps[-1][0]
    search = GridSearchCV(
        pipe, {f"{step}__{key}": values for key, values in grid.items()}, cv=TimeSeriesSplit(3)
    )
    search.fit(X[TRAIN], Y[TRAIN])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict(X[TEST]).shape == Y[TEST].shape


def test_the_nearest_readout_equals_scikit_learns(toys):
    lists = [X[:130], X[130:200], X[200:300]], [Y[:130], Y[130:200], Y[200:300]]
    for data in ((X[TRAIN], Y[TRAIN]), lists):
        ours = esn(readout="nearest").fit(*data).predict(X[TEST])
        theirs = esn(readout=KNeighborsRegressor(1)).fit(*data).predict(X[TEST])
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


def test_lagged_inputs_equal_a_ridge_on_a_table_of_lags(toys):
    model = LagRegressor(n_lags=5, alpha=1e-3, washout=10).fit(X[TRAIN], Y[TRAIN])
    table = np.hstack([np.roll(X, 5 - k, axis=0) for k in range(6)])
    ridge = Ridge(1e-3).fit(table[10:300], Y[10:300])
    np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.predict(X[TEST]), ridge.predict(table[TEST]), atol=1e-9)
    assert not hasattr(model, "reservoir_")
    assert model.state_.shape == (5 * X.shape[1],)
    # sequences, and a run from a state of one's own
    several = model.predict([X[TEST], X[:70]], initial_state="zeros")
    np.testing.assert_array_equal(several[1], model.predict(X[:70], initial_state="zeros"))
    rows, state = model.predict(X[300:350], return_state=True)
    rest = model.predict(X[350:400], initial_state=state)
    np.testing.assert_array_equal(np.concatenate([rows, rest]), model.predict(X[TEST]))
    assert model.states(X[TEST]).shape == (100, 6 * X.shape[1])


@pytest.mark.filterwarnings("ignore:The closed loop:RuntimeWarning")
def test_a_source_loops_by_its_steps(toys):
    Z = np.column_stack([np.sin(0.3 * np.arange(300)), np.cos(0.11 * np.arange(300))])
    model = LagRegressor(n_lags=3).fit(Z[:-1], Z[1:, 0])
    past, output, rows = list(Z[-4:-1]), Z[-1, 0], []
    for e in Z[:40, 1]:
        past.append([np.clip(output, -0.9, 0.9), e])
        output = model.coef_ @ np.concatenate(past[-4:]) + model.intercept_
        rows.append(output)
    found, state = model.forecast(40, exog=Z[:40, 1], clip=(-0.9, 0.9), return_state=True)
    np.testing.assert_allclose(found, rows, rtol=0, atol=1e-12)
    np.testing.assert_allclose(state, np.concatenate(past[-3:]), rtol=0, atol=1e-12)
    # the readout as a function, and a loop that diverges
    after = {"initial_state": model.state_, "initial_output": Z[-1, :1], "exog": Z[:40, 1:]}
    source, ridge = model._model.source, (np.atleast_2d(model.coef_), model.intercept_)
    linear = source.run_loop(ridge, LoopRun(40, **after))[0]
    called = source.run_loop(lambda v: ridge[0] @ v + ridge[1], LoopRun(40, **after))[0]
    np.testing.assert_array_equal(linear, called)
    rows, state, n_valid = source.run_loop((1e30 * ridge[0], 0.0), LoopRun(40, **after))
    assert 1 < n_valid < 40
    np.testing.assert_array_equal(rows[n_valid:], np.tile(rows[n_valid - 1], (40 - n_valid, 1)))
    assert np.isfinite(state).all()
    with pytest.raises(ValueError, match=r'washout="measured" .*LaggedInputs'):
        LagRegressor(washout="measured").fit(X, Y)


def test_sources_without_a_closed_loop_raise():
    inner = DrivenReservoir(build_reservoir(5, 1, random_state=0))
    with pytest.raises(ValueError, match="BothDirections cannot run in closed loop"):
        BothDirections(inner).run_loop(None, LoopRun(3, np.zeros(10), [0.0]))
    with pytest.raises(ValueError, match="BothDirections cannot run in closed loop"):
        LaggedSource(BothDirections(inner), 1).check_can_loop()


@pytest.mark.parametrize("solver", ["cholesky", "qr"])
def test_the_rule_scores_with_akaikes_criterion(toys, solver):
    alphas = np.logspace(-6, 3, 8)
    one = {"n_lags": 1, "input_alpha": None}
    model = esn(alpha=alphas, alpha_selection="akaike", solver=solver, **one)
    model = model.fit(X[TRAIN], Y[TRAIN])
    H = np.hstack([esn().fit(X[TRAIN], Y[TRAIN]).states(X[TRAIN], initial_state="zeros"), X[TRAIN]])
    H, y = H[30:], Y[30:300]
    centred = H - H.mean(axis=0)
    for alpha, score in zip(alphas, model.alpha_scores_[:, 0], strict=True):
        residual = y - Ridge(alpha).fit(H, y).predict(H)
        inverse = np.linalg.inv(centred.T @ centred + alpha * np.eye(H.shape[1]))
        dof = 1 + np.trace(centred @ inverse @ centred.T)
        expected = np.mean(residual**2) * np.exp(2 * dof / len(y))
        assert score == pytest.approx(expected, rel=1e-6)
    assert model.alpha_ == alphas[np.argmin(model.alpha_scores_)]
    with pytest.raises(ValueError, match=r"alpha_selection='akaika'.*Did you mean 'akaike'"):
        esn(alpha=alphas, alpha_selection="akaika").fit(X[TRAIN], Y[TRAIN])


# ------------------------------------------------------------------------------- the registries


def test_the_last_kind_that_takes_a_readout_is_used(toys):
    assert kind_of(None) is RidgeReadout
    assert kind_of(Ridge()) is StoredReadout
    assert kind_of("nearest") is NearestReadout
    assert kind_of("farthest") is None
    with pytest.raises(TypeError, match="readout must be"):
        esn(readout="farthest").fit(X, Y)


def test_a_new_fit_forgets_what_another_readout_left(toys):
    model = esn(readout="nearest").fit(X[TRAIN], Y[TRAIN])
    model.set_params(readout=None).fit(X[TRAIN], Y[TRAIN])
    assert not hasattr(model, "rows_")
    np.testing.assert_array_equal(
        model.predict(X[TEST]), esn().fit(X[TRAIN], Y[TRAIN]).predict(X[TEST])
    )
    model.set_params(readout="nearest").fit(X[TRAIN], Y[TRAIN])
    assert not hasattr(model, "coef_")


def test_a_readout_serves_a_classifier(toys, global_random_seed):
    signal, labels = sine_square(600, random_state=global_random_seed)
    model = ESNClassifier(20, readout="nearest", random_state=global_random_seed)
    model.fit(signal[:400], labels[:400])
    assert set(model.predict(signal[400:])) <= set(labels)
    assert model.score(signal[400:], labels[400:]) > 0.8


# ------------------------------------------------------------------------ targets and forecasts


def test_targets_of_another_kind(tmp_path):
    order = np.array(["low", "middle", "high"])
    labels = order[np.digitize(Y, [0.3, 0.45])]
    model = OrderedRegressor(40, random_state=0).fit(X[TRAIN], labels[TRAIN])
    ranks = ESNRegressor(40, random_state=0).fit(X[TRAIN], np.digitize(Y[TRAIN], [0.3, 0.45]))
    np.testing.assert_array_equal(model.coef_, np.atleast_2d(ranks.coef_))
    predicted = order[np.clip(np.rint(ranks.predict(X[TEST])), 0, 2).astype(int)]
    np.testing.assert_array_equal(model.predict(X[TEST]), predicted)
    assert model.score(X[TEST], labels[TEST]) == np.mean(predicted == labels[TEST])
    assert "From low to high." in OrderedRegressor.__doc__
    save(model, tmp_path / "ordered.npz")
    again = load(tmp_path / "ordered.npz")
    np.testing.assert_array_equal(again.predict(X[TEST]), predicted)
    assert again.get_params()["order"] == ("low", "middle", "high")


def test_whatever_offers_the_forecasters_side_is_forecast_through_a_pipeline():
    series = 3.0 + 0.5 * np.arange(100)
    alone = Drift().fit(series[:-1, None], series[1:])
    expected = series[-1] + 0.5 * np.arange(1, 11)
    np.testing.assert_allclose(forecast(alone, 10), expected)
    pipe = make_pipeline(StandardScaler(), Drift())
    model = TransformedTargetRegressor(pipe, transformer=StandardScaler())
    model.fit(series[:-1, None], series[1:])
    np.testing.assert_allclose(forecast(model, 10), expected)
    np.testing.assert_allclose(forecast(model, 10, context=series[:50, None]), series[50:60])
    with pytest.raises(ValueError, match=r"needs y\[t\] == X\[t\+1\] in training"):
        forecast(Drift().fit(series[:-1, None], series[:-1]), 10)
    with pytest.raises(TypeError, match="got Ridge"):
        forecast(Ridge().fit(series[:-1, None], series[1:]), 10)


# --- pools


def test_a_toy_pool_is_a_value_of_the_parameter(tmp_path):
    rng = np.random.default_rng(0)
    data = [rng.normal(size=(n, 2)) for n in (3, 900, 40)]
    with registered(POOLS, "travel", Travel):
        features = ReservoirFeatures(
            10,
            leak_rate=0.5,
            pool=("max", "travel"),
            dtype="float64",
            random_state=0,
            bidirectional=False,
        )
        rows = clone(features).fit_transform(data)
        features.fit(data)
        save(features, tmp_path / "toy.npz")
        np.testing.assert_array_equal(load(tmp_path / "toy.npz").transform(data), rows)
        assert features.get_feature_names_out()[10] == "travel_unit0"
        inputs = features._inputs(data)
    for row, each in zip(rows, inputs, strict=True):
        states = run(features.reservoir_, each)
        way = abs(np.diff(states, axis=0, prepend=np.zeros((1, 10)))).mean(axis=0)
        np.testing.assert_allclose(row, [*states.max(axis=0), *way], rtol=0, atol=1e-13)


# --- models of series


def test_a_toy_model_of_series_is_compared_and_averaged(global_random_seed):
    values = 5 + 0.1 * np.random.default_rng(global_random_seed).normal(size=(240, 2))
    data = fill_gaps(values, np.zeros((240, 0)), ())
    bounds = Bounds.of(values, data.positive, 1.0)
    candidates = [
        Candidate("mean", False, MeanLevel(20)),
        Candidate("mean of logarithms", True, MeanLevel(20)),
        Candidate("last value", False, LastSeason(1)),
        Candidate("too long", False, MeanLevel(160)),
    ]
    found = roll(candidates, data, 3, bounds, global_random_seed, not_reported)
    for origin, rows in zip(found.origins, found.predicted[0], strict=True):
        expected = values[origin - 20 : origin].mean(axis=0)
        np.testing.assert_allclose(rows, [expected] * 3, rtol=1e-12)
    weights = found.weights()
    assert weights[0] > 2 * weights[2]
    assert weights[1] == pytest.approx(weights[0], rel=0.05)
    assert weights[3] == 0
    fitted = candidates[1].fit(data, seed=global_random_seed)
    said = fitted.forecast(data, np.array([220, 240]), 2, bounds)
    expected = np.exp(np.log(values[220:]).mean(axis=0))
    np.testing.assert_allclose(said[1], [expected] * 2, rtol=1e-12)

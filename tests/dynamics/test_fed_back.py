"""Fed-back outputs changed by a function of the user."""

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PowerTransformer, StandardScaler

from reservoir import ESNRegressor, NVARRegressor, RNNRegressor, forecast
from reservoir.dynamics import Reservoir, run_closed_loop, step
from reservoir.estimators.forecasting.loop_trials import run_trials
from reservoir.model_selection import ClosedLoopSearchCV, forecast_scorer

pytestmark = pytest.mark.both_engines

LOW, HIGH = np.array([-0.4, 0.1]), np.array([0.5, 0.6])


@pytest.fixture(scope="module")
def waves():
    t = np.arange(500)
    return np.column_stack([np.sin(0.2 * t), 0.4 + 0.5 * np.cos(0.2 * t) * np.sin(0.031 * t)])


def esn(**params):
    return ESNRegressor(40, leak_rate=0.4, alpha=1e-4, random_state=0, **params)


def scaled(network, inputs, targets):
    inner = TransformedTargetRegressor(network, transformer=targets)
    return make_pipeline(inputs, inner)


MODELS = {
    "network": esn(),
    "float32": esn(dtype=np.float32),
    "feedback": esn(feedback=True),
    "scaled": scaled(esn(), StandardScaler(), MinMaxScaler((-1, 3))),
    "scaled feedback": TransformedTargetRegressor(
        esn(feedback=True), transformer=MinMaxScaler((0, 2))
    ),
    "bent": scaled(esn(), PowerTransformer(), StandardScaler()),
    "bent feedback": TransformedTargetRegressor(
        esn(feedback=True), transformer=PowerTransformer(standardize=False)
    ),
    "polynomials": NVARRegressor(3, alpha=1e-4),
    "trained": RNNRegressor(8, max_iter=2, random_state=0),
    "gated": RNNRegressor(8, cell="gru", max_iter=2, random_state=0),
}


def held(y):
    """The pair's work, in place, so that a copy is needed."""
    np.clip(y, LOW, HIGH, out=y)
    return y


def data_of(name, waves):
    """Return X and y; with feedback weights the inputs are exogenous."""
    X = np.linspace(0, 1, 500)[:, None] if "feedback" in name else waves
    return X[:400], waves[1:401]


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("name", MODELS)
def test_a_function_that_clips_is_the_pair(name, waves):
    X, y = data_of(name, waves)
    model = MODELS[name].fit(X, y)
    exog = {"exog": np.ones((40, 1))} if "feedback" in name else {}
    said = forecast(model, 40, clip=held, **exog)
    free = forecast(model, 40, **exog)
    of_pair = forecast(model, 40, clip=(LOW, HIGH), **exog)
    digits = 1e-5 if name == "float32" else 1e-9
    np.testing.assert_allclose(said, of_pair, rtol=digits, atol=digits)
    assert abs(said - free).max() > 1e-3  # the range matters
    assert ((said < LOW) | (said > HIGH)).any()  # and what was said is returned
    same = forecast(model, 40, clip=lambda y: y, **exog)
    np.testing.assert_allclose(same, free, rtol=10 * digits, atol=10 * digits)


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("name", ["network", "feedback", "scaled", "bent", "polynomials", "gated"])
def test_many_loops_are_the_single_ones(name, waves):
    X, y = data_of(name, waves)
    model = MODELS[name].fit(X, y)
    places = [(0, 150), (0, 260)]
    said, of_pair = (run_trials(model, X, y, places, 30, clip=c) for c in (held, (LOW, HIGH)))
    np.testing.assert_allclose(said, of_pair, rtol=1e-9, atol=1e-9)
    free = run_trials(model, X, y, places, 30)
    assert abs(said - free).max() > 1e-3


@pytest.mark.parametrize("seed", range(3))
def test_a_threshold_is_the_loop_by_hand(seed):
    rng = np.random.default_rng(seed)
    network = Reservoir(
        0.3 * rng.normal(size=(7, 7)), rng.normal(size=(7, 4)), rng.normal(size=7), leak_rate=0.6
    )
    readout = rng.normal(size=(3, 7)), np.array([0.2, -0.1, 0.0])
    exog = rng.normal(size=(25, 1))
    outputs, end = run_closed_loop(
        network, readout, 25, initial_output=[1, 0, 1], exog=exog, clip=lambda y: y > 0
    )
    state, fed = np.zeros(7), np.array([1.0, 0, 1])
    for k in range(25):
        state = step(network, state, np.r_[fed > 0, exog[k]])
        fed = readout[0] @ state + readout[1]
        np.testing.assert_allclose(outputs[k], fed, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(end, state, rtol=1e-12, atol=1e-12)


def test_searches_and_scorers_take_functions(waves):
    X, y = waves[:-1], waves[1:]
    found = {}
    for name, clip in (("function", held), ("pair", (LOW, HIGH))):
        search = ClosedLoopSearchCV(esn(), {"alpha": [1e-2, 1e-6]}, horizon=30, clip=clip)
        search.fit(X, y)
        score = forecast_scorer(30, n_starts=2, clip=clip)(search.best_estimator_, X, y)
        found[name] = [*search.cv_results_["mean_test_score"], score, *search.forecast(20).ravel()]
    np.testing.assert_allclose(found["function"], found["pair"], rtol=1e-6)


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(
    ("clip", "message"),
    [
        (lambda y: y[:1], r"shape \(2,\); got \(1,\)"),
        (lambda y: y[None], r"shape \(2,\); got \(1, 2\)"),
        (lambda y: [0.0, np.inf], "returned inf for output 1"),
        (lambda y: [np.nan, 0.0], "returned nan for output 0"),
    ],
)
@pytest.mark.parametrize("name", ["network", "feedback", "scaled", "bent", "gated"])
def test_what_a_function_must_return(name, clip, message, waves):
    X, y = data_of(name, waves)
    model = MODELS[name].fit(X, y)
    exog = {"exog": np.ones((5, 1))} if "feedback" in name else {}
    with pytest.raises(ValueError, match=message):
        forecast(model, 5, clip=clip, **exog)

"""Keywords of other libraries: the TypeError names ours."""

import inspect
import pickle

import pytest
from sklearn.base import clone

import reservoir
from reservoir import ESNForecaster, ESNRegressor, RNNRegressor, forecast

CALLS = {
    "h: n_steps=12 (in the method forecast)": lambda: ESNForecaster(h=12),
    "season_length: season=12": lambda: ESNForecaster(season_length=12),
    'lags: search="auto"': lambda: ESNForecaster(lags=12),
    "level: coverage=0.9": lambda: ESNForecaster().forecast(12, level=[90]),
    "fh: n_steps=12": lambda: ESNForecaster().forecast(fh=12),
    "steps: n_steps=12": lambda: forecast(ESNRegressor(), steps=12),
    "horizon: n_steps=12": lambda: ESNRegressor().forecast(horizon=12),
    "units: n_units=300": lambda: ESNRegressor(units=100),
    "sr: spectral_radius=0.9, lr: leak_rate=0.3": lambda: ESNRegressor(sr=0.9, lr=0.3),
    "lr: learning_rate_init=0.01": lambda: RNNRegressor(lr=0.1),
    "lags: n_lags=12": lambda: ESNRegressor(lags=12),
    "rc_connectivity: in_degree=10": lambda: ESNRegressor(rc_connectivity=0.1),
    "ridge: alpha=1e-6": lambda: ESNRegressor(ridge=1e-6),
    "leaking_rate: leak_rate=0.3, hidden_size: n_units=300": lambda: ESNRegressor(
        leaking_rate=0.5, hidden_size=50
    ),
    "n_hidden: n_units=300": lambda: RNNRegressor(n_hidden=50),
    'search=[{"n_units": 300, "spectral_radius": 0.9, "leak_rate": 0.3}]': lambda: ESNForecaster(
        hidden_size=50
    ),
    "sp: season=12": lambda: ESNForecaster(sp=12),
    "X: exog=X": lambda: ESNForecaster().fit([1.0], X=[2.0]),
    "xreg: exog=X": lambda: ESNForecaster().forecast(12, xreg=[2.0]),
    "exogenous: exog=X": lambda: ESNForecaster().update([1.0], exogenous=[2.0]),
    "n_periods: n_steps=12": lambda: ESNForecaster().simulate(n_periods=12),
}


@pytest.mark.parametrize(("told", "call"), CALLS.items(), ids=CALLS)
def test_the_name_here_stands_in_the_error(told, call):
    with pytest.raises(TypeError) as caught:
        call()
    assert "got an unexpected keyword argument" in str(caught.value)
    assert str(caught.value).endswith(told)


def test_other_keywords_and_other_errors_are_as_python_says_them():
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'foo'$"):
        ESNRegressor(foo=1)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        ESNForecaster().forecast()


@pytest.mark.parametrize("name", ["ESNRegressor", "ESNForecaster", "RNNClassifier"])
def test_constructors_are_as_before(name):
    kind = getattr(reservoir, name)
    parameters = inspect.signature(kind).parameters.values()
    assert not any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in parameters)
    model = kind(random_state=3)
    assert clone(model).get_params() == model.get_params()
    assert set(model.get_params()) == {p.name for p in parameters}
    assert pickle.loads(pickle.dumps(model)).random_state == 3


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("predict", "forecast(n_steps=12)"),
        ("score", "backtest(model, y, horizon=12)"),
        ("plot", "forecast(model, 12, coverage=0.9)"),
    ],
)
def test_a_forecaster_says_what_stands_for_the_methods_of_others(name, told):
    model = ESNForecaster()
    assert not hasattr(model, name)
    with pytest.raises(AttributeError) as caught:
        getattr(model, name)
    assert told in str(caught.value)

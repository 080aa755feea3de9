"""Code in messages is a constant, in backticks: run after the call that failed, it helps."""

import warnings

import numpy as np
import pytest

import reservoir.plotting
from reservoir import ESNForecaster, ESNRegressor, RNNClassifier
from reservoir.building import build_reservoir
from reservoir.stability import certify, drive_range

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.one_engine

IMPORTS = """
import dataclasses, scipy.stats
import reservoir.topologies, reservoir.training.jacobian_products, reservoir.training.schedules
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from reservoir import *
from reservoir.activations import ACTIVATIONS, get_activation
from reservoir.dynamics import run
from reservoir.model_selection import PerStep, backtest, make_forecast_pairs
from reservoir.stability import sweep
"""
rng = np.random.default_rng(0)
ROWS = rng.normal(size=(40, 2))
DAYS = pd.date_range("2020-01-01", periods=40)
TABLE, TARGET = pd.DataFrame(ROWS, DAYS, ["u", "v"]), pd.Series(ROWS[:, 0], DAYS)
IDS = pd.MultiIndex.from_product([["b", "a"], range(20)])
SINE = np.sin(np.arange(200) / 5)
SYMBOLS = np.array(list("abc" * 8))
SMALL = build_reservoir(5, 1, spectral_radius=0.5, random_state=0)
PROVED = certify(SMALL, *drive_range(SMALL, -1, 1), input_range=(-1, 1))


def esn(cls=ESNRegressor, **params):
    return cls(5, random_state=0, **params)


def speaker():
    X = (SYMBOLS[:-1, None] == np.unique(SYMBOLS)).astype(float)
    return RNNClassifier(5, max_iter=1, random_state=0).fit(X, SYMBOLS[1:])


def series():
    return ESNForecaster(search="series", horizon=1, n_networks=1, random_state=0)


# data; the call that raises or warns; the remedy; the variable that takes its value: "" where it
# is a statement, "result" where it takes the place of the call
CASES = [
    ("weights = 3", "build_reservoir(5, 1, weights=weights)", "scipy.stats.uniform(-1, 2)",
     "weights"),
    ("m = esn().fit(ROWS[:, :1], ROWS[:, 1]); X = ROWS[:, 0]", "run(m.reservoir_, X)",
     "np.reshape(X, (-1, 1))", "X"),
    ("m = esn().fit(ROWS, ROWS[:, 1]); X = ROWS[0]", "run(m.reservoir_, X)",
     "np.reshape(X, (1, -1))", "X"),
    ("model = esn()", "force_train(model, SINE)", "model.set_params(feedback=True)", "model"),
    ("y = TARGET.where(np.arange(40) != 9); exog = TABLE[['v']][::-1]",
     "fill_gaps(y, esn(), exog=exog, min_rows=5)", "exog.loc[y.index]", "exog"),
    ("y = TARGET.where(np.arange(40) != 9); exog = TABLE[['v']].set_axis(DAYS.shift(1))",
     "fill_gaps(y, esn(), exog=exog, min_rows=5)", "exog.set_axis(y.index)", "exog"),
    ("m = esn().fit(TABLE[:-1], TABLE['u'][1:]); exog = pd.DataFrame({'w': np.ones(3)})",
     "m.forecast(3, exog=exog)", "exog.to_numpy()", "exog"),
    ("pipe = make_pipeline(StandardScaler(), esn()); n_steps = 3",
     "pipe.fit(ROWS[:-1, :1], ROWS[1:, 0])[-1].forecast(3)", "reservoir.forecast(pipe, n_steps)",
     "result"),
    ("model = series().fit(TARGET[:24]); n_steps = 3", "reservoir.forecast(model, 3)",
     "model.forecast(n_steps)", "result"),
    ("model = speaker(); n_steps = 3", "reservoir.forecast(model, 3)", "model.sample(n_steps)",
     "result"),
    ("s = esn().fit(TABLE[:20], TARGET[:20]).stream(); s.predict(TABLE[20:25]); session = s",
     "session.predict(TABLE[30:])", "session.reset()", ""),
    ("X = TABLE.assign(id=np.repeat([1, 2], 20))\n"
     "session = esn(sequence_column='id').fit(X, TARGET).stream(); session.predict(X[:20])",
     "session.predict(X[20:])", "session.reset()", ""),
    ("X = [1e4 * ROWS] * 2; scaler = 'passthrough'",
     "make_pipeline(scaler, esn()).fit(X, [ROWS[:, 0]] * 2)", "PerStep(StandardScaler())",
     "scaler"),
    ("X = 1e4 * TABLE.set_axis(IDS); scaler = 'passthrough'",
     "make_pipeline(scaler, esn()).fit(X, ROWS[:, 0])",
     'StandardScaler().set_output(transform="pandas")', "scaler"),
    ("activation = dataclasses.replace(get_activation('tanh'), name='own')",
     "RNNRegressor(5, activation=activation, max_iter=1).fit(ROWS, ROWS[:, 0])",
     "ACTIVATIONS[activation.name] = activation", ""),
    ("symbols = SYMBOLS; X, y = np.zeros((23, 1)), symbols[1:]",
     "RNNClassifier(5, max_iter=1).fit(X, y).sample(3)",
     "X, y = symbols[:-1, None] == np.unique(symbols), symbols[1:]", ""),
    ("context = 'abc'", "speaker().sample(3, context=context)", "context = list(context)", ""),
    ("X = TABLE.set_axis(IDS); y = pd.Series(np.repeat([1, 0], 20), IDS).sort_index()",
     "esn(ESNSequenceClassifier).fit(X, y)", "y = y.loc[X.index]", ""),
    ("model = series().fit(TARGET[:24])", "model.predict", "model.forecast(n_steps=12)", "result"),
    ("model, y = Last(), SINE[:99]", "series().score",
     "reservoir.model_selection.backtest(model, y, horizon=12)", "result"),
    ("y, exog = TARGET, TABLE[['v']][::-1]", "backtest(Last(), y, horizon=1, exog=exog)",
     "exog.loc[y.index]", "exog"),
    ("y, exog = TARGET, TABLE[['v']].set_axis(DAYS.shift(1))",
     "backtest(Last(), y, horizon=1, exog=exog)", "exog.set_axis(y.index)", "exog"),
    ("series = TARGET; exog = TABLE[['v']].reset_index(drop=True)",
     "make_forecast_pairs(series, exog=exog)", "exog.set_axis(series.index)", "exog"),
    ("model, y = force_train(esn(feedback=True), SINE), SINE",
     "model.partial_fit(np.zeros((200, 0)), y)", "reservoir.force_train(model, y)", "result"),
    ("W = 3 * np.eye(5, k=1); radius = 0.9",
     "reservoir.scaling.scale_to_spectral_radius(W, radius)",
     "W = reservoir.scaling.scale_to_norm(W, radius)", None),
    ("parameters = ['spectral_radius']",
     "sweep(SMALL, [[0.5]], parameters, n_initial_states=2, n_periods=20)",
     'parameters = {"spectral_radius": [0.8, 1.2]}', ""),
    ("certificate = dataclasses.replace(PROVED, shared=True); X = np.zeros((3, 1))",
     "certificate.covers(np.zeros((3, 5)))", "certificate.covers_inputs(X)", "result"),
    ("certificate = dataclasses.replace(PROVED, input_range=None); drive = np.zeros((3, 5))",
     "certificate.covers_inputs(np.zeros((3, 1)))", "certificate.covers(drive)", "result"),
    ("model, input_range = SMALL, ([-1.0], [1.0]); drive_min = drive_max = np.zeros(5)",
     "certify(model, drive_min, drive_max, input_range=input_range)",
     "drive_min, drive_max = reservoir.stability.drive_range(model, *input_range)", ""),
    ("J = np.eye(64); values = -J",
     "reservoir.training.jacobian_products.unrelated_growth(values)",
     "np.linalg.svd(J, compute_uv=False)", "values"),
    ("schedule = 0.1", "reservoir.training.schedules.linear_warmup(schedule, 3)",
     "reservoir.training.schedules.constant(schedule)", "schedule"),
]  # fmt: skip


class Last:
    """A forecaster that repeats the last row."""

    def fit(self, y, exog=None):
        self.last = np.asarray(y)[-1]
        return self

    def forecast(self, n_steps, exog=None):
        return np.repeat(self.last[None], n_steps, axis=0)


def said(call, names):
    """Return what a call says in errors and warnings."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            names["result"] = eval(call, names)
        except Exception as error:
            return str(error)
    return "\n".join(str(each.message) for each in told)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("data", "call", "remedy", "into"), CASES, ids=[each[2] for each in CASES])
def test_a_remedy_helps(data, call, remedy, into):
    names = dict(globals())
    exec(IMPORTS + data, names)
    assert f"`{remedy}`" in said(call, names)
    names.pop("result", None)
    if into:
        names[into] = eval(remedy, names)
    else:
        exec(remedy, names)
    if into == "":
        again = said(call, names)
        assert "result" in names, again
        assert f"`{remedy}`" not in again
    names["ACTIVATIONS"].pop("own", None)


@pytest.mark.slow
def test_a_plot_is_drawn_as_the_message_says():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    model, X, y = esn().fit(ROWS, ROWS[:, 0]), ROWS, ROWS[:, 0]
    names = {"plotting": reservoir.plotting, "model": model, "X": X, "y": y}
    for call in ("plotting.overview(model, X, y)", "plotting.residuals(model, X, y)"):
        with pytest.raises(TypeError) as caught:
            eval(call.replace(", X, y", ""), names)
        assert f"`{call}`" in str(caught.value)
        assert len(eval(call, names)) > 1
    with pytest.raises(TypeError, match=r"`fig, ax = plt\.subplots\(\)`"):
        reservoir.plotting.memory_profile([1.0], ax=plt.figure().add_subplot(projection="3d"))
    with pytest.raises(AttributeError, match=r"`reservoir\.plotting\.forecast\(model, 12, cov"):
        _ = series().plot
    plt.close("all")

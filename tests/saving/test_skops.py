"""Models in files of skops: the types of `skops_types` are all that its loader must trust."""

import sys
from functools import partial

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import reservoir
from reservoir._saving import SAVED
from reservoir.datasets import mackey_glass, narma
from reservoir.interop import skops_types
from reservoir.model_selection import (
    ClosedLoopSearchCV,
    ContextSplit,
    PerStep,
    forecast_scorer,
    make_forecast_pairs,
    washout_scorer,
)
from reservoir.readouts import LMS, RecursiveLeastSquares, SlidingWindow
from reservoir.training.cells import DeepTransitionCell, FeedforwardCell, bidirectional, stacked
from reservoir.training.curricula import EasyFirst, GrowingLength
from reservoir.training.gradient_control import GradientControl
from reservoir.training.hessian_free import HessianFree
from reservoir.training.omega import Omega
from reservoir.training.temporal_gradients import SimplexDirection

pytestmark = pytest.mark.one_engine

X, Y = narma(60, random_state=0)
LABELS = Y.mean() < Y
TIMED = np.column_stack([np.arange(60), X])
ODD = np.append(np.random.default_rng(0).poisson(0.3, 60), 90.0)
SPIKES = np.zeros((4, 110))
SPIKES[:, [2, 19, 31, 36, 53, 60, 82, 91, 107]] = Y[:9]
SERIES = mackey_glass(200, random_state=0)
IN_EARLIER_FILES = {"reservoir.loops.loop_design.NetworkPlan"}
OF_CELLS = stacked(bidirectional("gru"), FeedforwardCell(2), DeepTransitionCell(5, (2,)))

esn = partial(reservoir.ESNRegressor, 10, random_state=0)
labels = partial(reservoir.ESNClassifier, 10, random_state=0)
rnn = partial(reservoir.RNNRegressor, 5, init="esn", max_iter=1, random_state=0)
forecaster = partial(reservoir.ESNForecaster, n_networks=1, random_state=0)


@pytest.fixture
def sio():
    return pytest.importorskip("skops.io")  # not when tests are collected: it takes .3 s


def session(model, y=Y):
    begun = model.fit(X, y).stream().learn(X[:20], y[:20])
    begun.predict(X[20:24])
    return begun


def on_a_frame(make):
    pd = pytest.importorskip("pandas")
    days = pd.date_range("2020-01-01", periods=60, tz="Europe/Berlin")
    return make().fit(pd.DataFrame(X, index=days, columns=["u"]), pd.Series(Y, index=days))


def on_columns():
    """Return a forecaster of a table of ids and times, one series of which has a gap."""
    pd = pytest.importorskip("pandas")
    columns = {"id": np.repeat(["a", "b"], 20), "t": np.tile(np.arange(20), 2), "y": Y[:40]}
    names = {"sequence_column": "id", "time_column": "t", "errors": "warn"}
    with pytest.warns(UserWarning, match="1 of 2 series could not be fitted"):
        return forecaster(search="series", **names).fit(pd.DataFrame(columns).drop(index=5))


USUAL = {
    "frame": lambda: on_a_frame(esn),
    "stable": lambda: esn(bias="stable", spectral_radius=0.5).fit(X, Y),
    "relu": lambda: esn(activation="relu").fit(X, Y),
    "session": lambda: session(esn()),
    "session of labels": lambda: session(labels(), LABELS),
    "search": lambda: GridSearchCV(
        make_pipeline(PerStep(StandardScaler()), esn()),
        {"esnregressor__leak_rate": [0.3]},
        cv=ContextSplit(2),
        scoring=washout_scorer("r2", 5),
    ).fit(X, Y),
    "search of loops": lambda: ClosedLoopSearchCV(
        esn(), {"leak_rate": [0.3]}, horizon=5, n_starts=2
    ).fit(*make_forecast_pairs(SERIES)),
}
OTHERS = {
    "triangular factor": lambda: esn(solver="qr").fit(X, Y),
    "lags": lambda: esn(n_lags=2, alpha_selection="reml_ar1").fit(X, Y),
    "both directions": lambda: esn(bidirectional=True, initial_state="zeros").fit(X, Y),
    "filter": lambda: labels(transition="auto").fit(X, LABELS),
    "states": lambda: reservoir.ReservoirTransformer(10).fit(X),
    "session of states": lambda: reservoir.ReservoirTransformer(10).fit(X).stream(),
    "timed": lambda: esn(leak_rate=0.3, time_column=0).fit(TIMED, Y),
    "polynomials": lambda: reservoir.NVARRegressor().fit(X, Y),
    "field": lambda: reservoir.LocalForecaster(esn(alpha=1e-3), halo=0).fit(X),
    "session of squares": lambda: session(esn(readout=RecursiveLeastSquares())),
    "session of steps": lambda: session(esn(readout=LMS())),
    "session of a window": lambda: session(esn(readout=SlidingWindow(20))),
    "force": lambda: reservoir.force_train(esn(feedback=True), Y, n_test=0),
    "features": lambda: reservoir.ReservoirFeatures(10).fit([X, X]),
    "spikes": lambda: reservoir.LiquidStateMachine(10).fit([X, X]),
    "labels of series": lambda: reservoir.ESNSequenceClassifier(10).fit(
        [X, -X, 2 * X, -2 * X], [0, 1, 0, 1]
    ),
    "sizes of series": lambda: reservoir.ESNSequenceRegressor(10).fit([X, -X], [0.0, 1.0]),
    **{
        f"network, {name}": lambda options=options: rnn(**options).fit(X, Y)
        for name, options in {
            "lstm": {"cell": "lstm"},
            "gru": {"cell": "gru"},
            "scrn": {"cell": "scrn", "init": "auto"},
            "gated feedback": {"cell": "gated_feedback", "init": "auto"},
            "omega": {"gradient_control": Omega(0.1)},
            "simplex": {"gradient_control": SimplexDirection()},
            "hessian-free": {"solver": HessianFree()},
            "easy first": {"curriculum": EasyFirst(1, first=1.0), "max_iter": 2},
            "growing": {"curriculum": GrowingLength(1, first=60), "max_iter": 2},
        }.items()
    },
    "network of labels": lambda: reservoir.RNNClassifier(5, init="esn", max_iter=1).fit(X, LABELS),
    "network of cells": lambda: rnn(cell=OF_CELLS, init="auto").fit([X, X], [Y, Y]),
    "timed network": lambda: rnn(cell="leaky", time_column=0).fit(TIMED, Y),
    "learning": lambda: rnn(gradient_control=GradientControl(0.1)).fit(X, Y).partial_fit(X, Y),
    **{
        f"session, {online}": lambda online=online: session(rnn(online=online))
        for online in ("bptt", "rtrl", "least_squares")
    },
    "loops": lambda: forecaster(search="dynamics").fit(SERIES[:80]),
    "loops of spikes": lambda: forecaster(search="dynamics").fit(SPIKES.ravel()),
    "series": lambda: forecaster(search="series", season=4).fit(Y[:40]),
    "columns": on_columns,
    "naive": lambda: reservoir.SeasonalNaive(6).fit(SERIES),
    "counts": lambda: forecaster(search="series", outliers="missing").fit(ODD),
}


@pytest.mark.fast_cases(4)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
@pytest.mark.parametrize("name", USUAL)
def test_models_load_by_the_types_that_are_returned(name, sio):
    model = USUAL[name]()
    again = sio.loads(sio.dumps(model), trusted=skops_types())
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_searches_by_forecasts_load(sio):
    search = GridSearchCV(
        esn(), {"leak_rate": [0.3]}, cv=TimeSeriesSplit(2), scoring=forecast_scorer(5, n_starts=2)
    ).fit(*make_forecast_pairs(SERIES))
    trusted = [*skops_types(), "sklearn.model_selection._split.TimeSeriesSplit"]
    assert sio.loads(sio.dumps(search), trusted=trusted).best_score_ == search.best_score_


@pytest.mark.slow
def test_every_saved_class_is_in_a_model_that_loads(sio):
    asked = set()
    for make in (USUAL | OTHERS).values():
        data = sio.dumps(make())
        asked.update(sio.get_untrusted_types(data=data))
        sio.loads(data, trusted=skops_types())
    assert asked <= set(skops_types())
    ours = {  # not those of examples and toys, which other tests may have registered
        f"{cls.__module__}.{cls.__qualname__}"
        for cls in SAVED.values()
        if cls.__module__.startswith("reservoir.")
        and getattr(sys.modules[cls.__module__], cls.__name__, None) is cls
    }
    assert ours - asked == IN_EARLIER_FILES

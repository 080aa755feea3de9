"""What `results.py` keeps of trained networks and of sessions, and what these learn from."""

import contextlib
import copy
import pickle
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from reservoir import load, save
from reservoir.datasets import lorenz, mackey_glass
from reservoir.dynamics import engines as of_reservoirs
from reservoir.estimators.esn.readout_model import ReadoutModel
from reservoir.model_selection import make_forecast_pairs
from reservoir.training import loop_engines
from reservoir.training.online import LEARNERS

LEFT = "coef_ intercept_ alpha_ temperature_ best_loss_ best_epoch_ n_iter_ init_ state_ washout_"
LEFT = (*LEFT.split(), "time_step_", "classes_", "loss_curve_", "validation_loss_curve_")
GATED = ("lstm", "gru")
COMPILED = ("rnn", "leaky", *GATED)  # cells whose loops are compiled
CELLS_OF = {online: ("rnn", "leaky") if online == "rtrl" else COMPILED for online in LEARNERS}


def learned(model):
    """Return what training, or a session, has left."""
    found = {name: getattr(model, name) for name in LEFT if hasattr(model, name)}
    found = {name: str(v) if v is None else np.asarray(v) for name, v in found.items()}
    return found | {f"params_ {name}": v for name, v in getattr(model, "params_", {}).items()}


def numbers_of(model, X, n_steps=0, **options):
    """Return what training has left, what the network says of X, and its forecast."""
    found = learned(model)
    for name in ("predict", "states", "predict_proba", "decision_function"):
        if hasattr(model, name):
            found[name] = getattr(model, name)(X)
    if n_steps:
        found["forecast"], found["end"] = model.forecast(n_steps, return_state=True, **options)
    return found


def reread(model):
    """Return a model as it comes from a file."""
    with tempfile.TemporaryDirectory() as folder:
        save(model, Path(folder) / "model.npz")
        return load(Path(folder) / "model.npz")


def unpickled(model):
    """Return a model as another process gets it."""
    return pickle.loads(pickle.dumps(model))


@contextlib.contextmanager
def on_engine(engine):
    """Run all loops on one engine, however short they are."""
    names = ("_WORTH_LOADING", "_WORTH_COMPILING")
    places = [(module, name) for module in (of_reservoirs, loop_engines) for name in names]
    places = [(*place, 0.0 if engine == "numba" else np.inf) for place in places]
    places.append((ReadoutModel, "engine", engine))
    before = [getattr(owner, name) for owner, name, _ in places]
    for owner, name, value in places:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for (owner, name, _), value in zip(places, before, strict=True):
            setattr(owner, name, value)


@cache
def series(n=160):
    """Return pairs of a forecast."""
    return make_forecast_pairs(mackey_glass(n + 41, random_state=0)[40:])


@cache
def flows():
    """Return pairs of forecasts of several sequences of three columns."""
    pairs = [make_forecast_pairs(lorenz(30 + 6 * i, random_state=i) / 10) for i in range(5)]
    return [X for X, _ in pairs], [y for _, y in pairs]


def classes_of(y):
    """Return which third of its range each number is in."""
    return np.array(["low", "middle", "top"])[np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))]


def in_chunks(model, X, y, sizes=(30, 1, 19), **options):
    """Learn online from chunks of these sizes, in turn."""
    start, turn = 0, 0
    while start < len(X):
        end = start + sizes[turn % len(sizes)]
        model.partial_fit(X[start:end], y[start:end], **options)
        start, turn = end, turn + 1
    return model


def session_of(model, X, y, *, weighs=False, **options):
    """Return what a session says and has learned: in time, row by row, late, saved, begun again."""
    session = model.stream(score_forgetting=0.9, **options)
    weight = {"sample_weight": np.arange(10) % 3} if weighs else {}
    said = [session.predict(X[:10])]
    session.learn(X[:10], y[:10], **weight)
    for t in range(10, 14):
        said.append(session.predict(X[t : t + 1]))
        session.learn(X[t : t + 1], y[t : t + 1])
    session.learn(X[14:20], y[14:20])  # not predicted before
    found = {"errors": session.last_errors_}
    session.predict(X[20:25])
    session.learn(X[22:24], y[22:24])  # those before are given up
    session.reset()
    said += [session.predict(X[20:25]), session.predict(X[25:30])]
    session.learn(X[20:23], y[20:23])  # late, and in other chunks
    session = reread(session)
    session.learn(X[23:27], y[23:27])
    half = session.to_estimator()  # some rows wait
    session = unpickled(session).learn(X[27:30], y[27:30])
    if weighs:
        session.forgetting = 0.98
        session.forget(0.5)
    session.reset()
    said.append(session.predict(X[:8]))
    session.learn(X[:8], y[:8], predicted=True).learn(X[8:12], y[8:12], predicted=False)
    if hasattr(session, "predict_proba"):
        said.append(session.predict_proba(X[12:18]))
        session.learn(X[12:18], y[12:18])
    found |= {"said": said, "score": session.score_, "state": session.state}
    found["n_learned_"] = session.n_learned_
    for name, one in (("half", half), ("end", session.to_estimator())):
        one = copy.deepcopy(one)
        found |= {f"{name} {key}": value for key, value in numbers_of(one, X[30:]).items()}
        one.partial_fit(X[30:36], y[30:36]).partial_fit(X[36:], y[36:])
        found |= {f"{name} on {key}": value for key, value in numbers_of(one, X).items()}
    return found

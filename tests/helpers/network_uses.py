"""Configurations of trained networks for `results.py`: their runs, loops and online learning.

Each function is a group. Few units, few rows, few epochs: what counts is that every way through the
code is taken.
"""

import importlib.util
from functools import partial

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import SGDClassifier

from helpers.network_numbers import (
    CELLS_OF,
    COMPILED,
    GATED,
    classes_of,
    flows,
    in_chunks,
    learned,
    numbers_of,
    reread,
    series,
    session_of,
    unpickled,
)
from reservoir import ESNClassifier, ESNRegressor, NVARRegressor, RNNRegressor
from reservoir.datasets import narma
from reservoir.training.omega import Omega
from reservoir.training.online import LEARNERS
from reservoir.training.temporal_gradients import SimplexDirection


def of_times(made, labels):
    """Rows that come at irregular times."""
    U, v = narma(160, random_state=0)
    times = np.cumsum(np.random.default_rng(0).uniform(0.5, 1.5, 160))
    timed, kinds = np.column_stack([times, U]), classes_of(v.ravel())
    several = [timed[:60], timed[60:100], timed[100:]]
    parts = [v[:60], v[60:100], v[100:]]
    base = {"cell": "leaky", "time_column": 0, "leak_rate": 0.4, "max_iter": 2}
    for step in ("auto", 0.7):
        rnn = made(6, time_step=step, **base).fit(timed[:120], v[:120])
        yield f"step {step}", numbers_of(rnn, timed[120:])
        yield f"step {step} online", numbers_of(rnn.partial_fit(timed[120:], v[120:]), timed)
    yield "several", numbers_of(made(6, **base).fit(several, parts), several)
    yield "labels", numbers_of(labels(6, **base).fit(timed, kinds), timed)
    for online in ("bptt", "least_squares"):
        rnn = made(6, online=online, washout=0, **base).partial_fit(timed[:60], v[:60])
        rnn = reread(rnn.partial_fit(timed[60:90], v[60:90]))
        yield f"{online}", numbers_of(rnn.partial_fit(timed[90:120], v[90:120]), timed[120:])
        yield f"{online} session", session_of(rnn, timed[120:], v[120:])
    base["time_step"] = 0.9
    esn = ESNRegressor(
        8, leak_rate=0.4, time_column=0, time_step=0.9, include_input=False, random_state=0
    )
    esn.fit(timed[:120], v[:120])
    yield "to_rnn", numbers_of(esn.to_rnn().partial_fit(timed[120:], v[120:]), timed)
    rnn = made(8, init=FrozenEstimator(esn), **base).fit(timed, v)
    yield "esn", numbers_of(rnn, timed)


def of_runs(made, labels):
    """Where runs start, and where they end."""
    X, y = series()
    Xs, ys = flows()
    for cell in COMPILED:
        for given in ("last", "zeros", "steady", "array"):
            options = {"cell": cell, "max_iter": 1, "init": "orthogonal"}
            size = 12 if cell == "lstm" else 6
            state = np.linspace(-0.5, 0.5, size) if given == "array" else given
            rnn = made(6, initial_state=state, **options).fit(X[:120], y[:120])
            several = made(6, initial_state=state, **options).fit(Xs, ys)
            clf = labels(6, initial_state=state, **options).fit(X[:120], classes_of(y[:120, 0]))
            found = learned(rnn)
            for spec in (None, "last", "zeros", "steady", np.linspace(0.1, 0.9, size)):
                name = "array" if isinstance(spec, np.ndarray) else spec
                run = {"initial_state": spec, "return_state": True}
                found[f"one {name}"], found[f"one end {name}"] = rnn.predict(X[120:], **run)
                found[f"label {name}"], found[f"label end {name}"] = clf.predict(X[120:], **run)
                found[f"share {name}"], found[f"share end {name}"] = clf.predict_proba(X, **run)
                found[f"scores {name}"] = clf.decision_function(X, initial_state=spec)
                found[f"states {name}"] = rnn.states(X[120:], initial_state=spec)
                found[f"many {name}"], found[f"ends {name}"] = several.predict(Xs, **run)
                found[f"many states {name}"] = several.states(Xs, initial_state=spec)
            found["score"] = [rnn.score(X, y), several.score(Xs, ys), clf.score(X, classes_of(y))]
            yield f"{cell} from {given}", found


def of_loops(made, labels):
    """Forecasts: on from training, behind a context, driven, clipped, from a state."""
    X, y = series()
    wide = np.column_stack([X[:-1], np.sin(np.arange(len(X) - 1))])
    hold = partial(np.clip, a_min=0.6, a_max=1.1)
    for cell in COMPILED:
        for name, options in (("", {}), (" input", {"include_input": True, "init": "esn"})):
            rnn = made(8, cell=cell, max_iter=2, **options).fit(X, y)
            driven = made(8, cell=cell, max_iter=2, **options).fit(wide, y[:-1])
            found = learned(rnn) | {f"driven {k}": v for k, v in learned(driven).items()}
            for clip in (False, True, (0.7, 1.0), hold):
                said = "hold" if callable(clip) else str(clip)
                for spec in (None, "zeros", "steady", "last"):
                    run = {"clip": clip, "initial_state": spec, "return_state": True}
                    keys = (f"{said} {spec}", f"end {said} {spec}")
                    found.update(zip(keys, rnn.forecast(12, **run), strict=True))
                    rows = rnn.forecast(12, context=X[:30], **run)
                    found.update(zip([f"context {k}" for k in keys], rows, strict=True))
                    rows = driven.forecast(12, exog=wide[:12, 1:], **run)
                    found.update(zip([f"driven {k}" for k in keys], rows, strict=True))
                    rows = driven.forecast(12, context=wide[:30], exog=wide[:11, 1:], **run)
                    found.update(zip([f"driven context {k}" for k in keys], rows, strict=True))
            yield f"{cell}{name}", found
    low, unit = X.min(), np.ptp(X) * 1.1
    for output in ("tanh", "logistic"):
        rnn = made(8, output=output, max_iter=2).fit((X - low) / unit, (y - low) / unit)
        yield output, numbers_of(rnn, X, 12)


def of_symbols(made, labels):
    """Symbols as inputs, by number and one-hot, and what is drawn after them."""
    codes = np.random.default_rng(0).integers(0, 4, 160)
    codes[1::2] = (codes[::2] + 1) % 4
    names = np.array(list("abcd"))[codes]
    allowed = np.ones((4, 4)) - np.eye(4)
    one_hot = np.eye(4)[codes[:-1]]
    for cell in COMPILED:
        for n_symbols, X in ((4, codes[:-1, None]), (None, one_hot)):
            options = {"cell": cell, "n_symbols": n_symbols, "max_iter": 3}
            clf = labels(6, learning_rate_init=0.03, **options).fit(X, names[1:])
            found = numbers_of(clf, X)
            draws = {
                "plain": {},
                "cold": {"temperature": 0.0},
                "warm": {"temperature": 2.0, "context": list("abca"), "initial_state": "zeros"},
                "one": {"context": ["b"], "allowed": sparse.csr_array(allowed)},
                "mask": {"allowed": np.array([1, 0, 1, 1]), "context": X[:9]},
                "graph": {"allowed": allowed, "initial_state": "steady"},
            }
            for name, draw in draws.items():
                drawn = clf.sample(12, random_state=1, return_state=True, **draw)
                found[name], found[f"{name} state"] = drawn
            yield f"{cell} {n_symbols}", found
            clf = labels(6, washout=0, **options)
            for part in (slice(0, 50), slice(50, 51), slice(51, 159)):
                clf.partial_fit(X[part], names[1:][part], classes=list("abcd"))
            found = numbers_of(reread(clf).partial_fit(X, names[1:], new_sequence=True), X)
            yield f"{cell} {n_symbols} online", found
            rnn = made(6, output="softmax", init="orthogonal", **options)
            rnn.fit(X, np.eye(4)[codes[1:]])
            yield f"{cell} {n_symbols} shares", numbers_of(rnn, X)
            yield f"{cell} {n_symbols} session", session_of(clf, X[:60], names[1:61])


def of_online(made, labels):
    """Every way to learn online: from scratch and after `fit`, broken off and saved half-way."""
    X, y = series(110)
    kinds = classes_of(y[:, 0])
    known = {"classes": ["low", "middle", "top"]}
    for online in LEARNERS:
        for cell in CELLS_OF[online]:
            options = {"online": online, "cell": cell, "online_window": 40, "max_iter": 1}
            options |= {"learning_rate_init": 0.01, "init": "orthogonal", "truncation": 12}
            name = f"{online} {cell}"
            rnn = in_chunks(made(5, washout=0, **options), X[:50], y[:50])
            yield name, numbers_of(rnn, X, 8)
            for again in (reread, unpickled):
                found = numbers_of(in_chunks(again(rnn), X[50:], y[50:], (5, 20)), X, 8)
                yield f"{name} {again.__name__}", found
            rnn = made(5, **options).fit(X[:50], y[:50])
            in_chunks(rnn, X[50:80], y[50:80])
            yield f"{name} after fit", numbers_of(rnn, X, 8)
            rnn = in_chunks(reread(rnn), X[80:], y[80:]).partial_fit(X, y, new_sequence=True)
            yield f"{name} after fit, saved", numbers_of(rnn, X, 8)
            yield f"{name} fitted again", numbers_of(rnn.fit(X, y), X)
            clf = in_chunks(labels(5, **options), X[:50], kinds[:50], **known)
            yield f"{name} labels", numbers_of(in_chunks(reread(clf), X[50:], kinds[50:]), X)
            clf = labels(5, **options).fit(X[:50], kinds[:50])
            yield f"{name} labels after fit", numbers_of(in_chunks(clf, X[50:], kinds[50:]), X)


def of_more_online(made, labels):
    """Solvers, penalties, starts, washouts and sequences of learning online."""
    X, y = series(70)
    Xs, ys = flows()
    cases = {
        "sequences": {},
        "penalties": {"l1": 1e-3, "alpha": 1e-3, "clip_norm": 0.1},
        "unclipped": {"clip_norm": None, "include_input": True},
        "momentum": {"solver": "momentum", "init": "orthogonal"},
        "rmsprop": {"solver": "rmsprop", "truncation": 6, "online_window": 11},
        "start": {"init": "least_squares", "washout": 10},
        "zeros": {"initial_state": "zeros", "washout": 3},
        "steady": {"initial_state": "steady", "truncation": None},
    }
    for online in LEARNERS:
        for name, options in cases.items():
            rnn = made(5, online=online, **{"online_window": 30} | options)
            rnn.partial_fit(Xs[0], ys[0]).partial_fit(Xs[1:4], ys[1:4])
            rnn.partial_fit(Xs[4][:9], ys[4][:9], new_sequence=True)
            yield f"{online} {name}", numbers_of(rnn.partial_fit(Xs[4][9:], ys[4][9:]), Xs)
            rnn = clone(rnn).set_params(max_iter=1).fit(X[:40], y[:40], X[:40, 0] > 1)
            yield f"{online} {name} after fit", numbers_of(in_chunks(rnn, X[40:], y[40:]), X)
    for name, control in (("control", 0.1), ("omega", Omega(0.5)), ("simplex", SimplexDirection())):
        rnn = in_chunks(made(5, gradient_control=control, cell="leaky"), X, y)
        yield name, numbers_of(rnn, X)


def of_network_sessions(made, labels):
    """Sessions of trained networks; some go on in a loop."""
    X, y = series(130)
    kinds = classes_of(y[:, 0])
    for online in LEARNERS:
        for cell in CELLS_OF[online]:
            options = {"online": online, "cell": cell, "online_window": 30, "truncation": 8}
            options |= {"max_iter": 1, "init": "orthogonal", "learning_rate_init": 0.01}
            rnn = made(5, **options).fit(X[:90], y[:90])
            before = numbers_of(rnn, X)
            found = session_of(rnn, X[90:], y[90:])
            yield f"{online} {cell}", found | {f"left {k}": v for k, v in before.items()}
            clf = labels(5, **options).fit(X[:90], kinds[:90])
            yield f"{online} {cell} labels", session_of(clf, X[90:], kinds[90:])
            if cell in GATED[1:]:
                continue
            chunks = in_chunks(made(5, washout=4, **options), X[50:90], y[50:90])
            for start in ("zeros", "steady", chunks.state_ / 2)[: 3 if cell == "rnn" else 1]:
                name = "array" if isinstance(start, np.ndarray) else start
                found = session_of(chunks, X[90:], y[90:], initial_state=start)
                yield f"{online} {cell} from {name}", found
    rnn = made(5, max_iter=1).fit(X[:90], y[:90])
    session = rnn.stream().learn(X[90:120], y[90:120])
    session.predict(X[120:130])
    found = {"loop": session.to_estimator().forecast(10)}
    hinge = labels(5, loss="hinge", max_iter=1).fit(X[:90], kinds[:90])
    yield "margins", session_of(hinge, X[90:], kinds[90:])
    if importlib.util.find_spec("pandas") is not None:
        import pandas as pd

        frame = pd.DataFrame(X, pd.date_range("2024-01-01", periods=130), ["x"])
        rnn = made(5, max_iter=1).fit(frame[:90], y[:90])
        yield "dates", session_of(rnn, frame[90:], pd.DataFrame(y, frame.index)[90:])
    gaps = np.where(np.arange(130)[:, None] % 5 == 2, np.nan, y)
    rnn = made(5, max_iter=1, missing_targets="skip").fit(X[:90], gaps[:90])
    yield "gaps", session_of(rnn, X[90:], gaps[90:]) | found


def of_esn_sessions(made, labels):
    """Sessions of networks whose readout alone learns."""
    U, v = narma(160, random_state=0)
    kinds = classes_of(v.ravel())
    dtype = made.keywords["dtype"]
    made = partial(ESNRegressor, 12, dtype=dtype, random_state=0)
    cases = {
        "plain": {},
        "washout": {"washout": 15, "initial_state": "zeros"},
        "forgetting": {"forgetting": 0.99},
        "digits": {"solver": "qr"},
        "penalties": {"alpha": [1e-6, 1e-2]},
        "feedback": {"feedback": True, "alpha": 1.0},
        "squares": {"augment": "square"},
        "gaps": {"missing_targets": "skip"},
    }
    for name, options in cases.items():
        esn = made(**options).fit(U[:90], v[:90])
        targets = v.copy()
        targets[92::7] = np.nan if name == "gaps" else targets[92::7]
        weighs = name != "digits"
        for start in ("last", "zeros", "steady"):
            found = session_of(esn, U[90:], targets[90:], weighs=weighs, initial_state=start)
            yield f"{name} from {start}", found
    for name, options in (("labels", {}), ("forgetful labels", {"forgetting": 0.99})):
        clf = ESNClassifier(12, dtype=dtype, random_state=0, **options).fit(U[:90], kinds[:90])
        yield name, session_of(clf, U[90:], kinds[90:], weighs=True)
    clf = ESNClassifier(12, readout=SGDClassifier("log_loss", random_state=0), random_state=0)
    session = clf.fit(U[:90], kinds[:90]).stream()
    found = {"said": session.predict_proba(U[90:120])}
    session.learn(U[90:120], kinds[90:120])
    yield "readout of its own", found | {"next": session.predict(U[120:])}
    polynomials = NVARRegressor(2, dtype=dtype).fit(U[:90], v[:90])
    yield "polynomials", session_of(polynomials, U[90:], v[90:], weighs=True)
    esn = made(feedback=True, alpha=1.0).partial_fit(U[:90], v[:90])
    session = esn.stream(callback=lambda s: s.forget(0.9)).learn(U[90:], v[90:])
    found = {"score": session.score_, "loop": session.to_estimator().forecast(5, exog=U[:5])}
    yield "watched", found | learned(session.to_estimator())


def of_torch(made, labels):
    """Networks to torch and back, where torch is installed."""
    if importlib.util.find_spec("torch") is None:
        return
    X, y = series()
    for cell in ("rnn", *GATED):
        rnn = made(6, cell=cell, max_iter=1).fit(X, y)
        again = RNNRegressor.from_torch(rnn.to_torch(), max_iter=2, random_state=0)
        yield cell, numbers_of(again, X)
        yield f"{cell} trained", numbers_of(again.fit(X, y), X)

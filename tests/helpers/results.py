"""Numbers of many configurations, to the bit: before and after a change that must change none.

    python tests/helpers/results.py record before.npz   # on the old code
    python tests/helpers/results.py compare before.npz  # on the new: exits with 1 if any differ

`float32` after the file restricts both to single precision, half of the time.

Every estimator in several containers, with and without feedback, in both precisions, on the NumPy
engine and (where numba is installed) on kernels, by fit and by partial_fit, with forecasts. Most of
trained networks, and sessions, stand in `network_training.py` and `network_uses.py`. Bits are equal
on one machine with the same libraries and one BLAS thread; elsewhere they need not be.
It stops if another `reservoir` than that of this checkout would be imported, and if a configuration
does not run on the engine that was asked for: then it would say "equal" of nothing.
"""

import os
import sys
import warnings
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy comes: sums in one order

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import reservoir
from reservoir import (
    ESNClassifier,
    ESNForecaster,
    ESNRegressor,
    ESNSequenceClassifier,
    ESNSequenceRegressor,
    LiquidStateMachine,
    NVARRegressor,
    ReservoirFeatures,
    ReservoirTransformer,
    RNNClassifier,
    RNNRegressor,
    _kernels,
    forecast,
)
from reservoir._kernels import _networks
from reservoir.datasets import gestures, lorenz, mackey_glass, narma
from reservoir.estimators.esn.readout_model import ReadoutModel
from reservoir.model_selection import make_forecast_pairs, stack_sequences

sys.path.insert(0, str(Path(__file__).parents[1]))
from helpers import network_training as training
from helpers import network_uses as uses
from helpers.network_numbers import on_engine

ENGINES = ("numpy", "numba") if _kernels.usable() else ("numpy",)
ROOT = Path(__file__).resolve().parents[2]
kernel_calls = 0


def numbers(model, X, n_steps=20, **options):
    """Return what a fitted network says of X, its states, and its forecast."""
    found = {"predict": model.predict(X)}
    for name in ("states", "predict_proba", "decision_function"):
        if hasattr(model, name):
            found[name] = getattr(model, name)(X)
    for name in ("coef_", "alpha_", "state_", "temperature_", "certificate_"):
        value = getattr(model, name, None)
        if value is not None:
            found[name] = value.rate if name == "certificate_" else value
    if hasattr(model, "forecast") and n_steps:
        found["forecast"] = model.forecast(n_steps, **options)
        found["clip"] = model.forecast(n_steps, clip=True, **options)
    return found


def of_esn(engine, dtype):
    """Echo state networks: pairs of a forecast, feedback, sequences, chunks, readouts."""
    X, y = make_forecast_pairs(mackey_glass(900, random_state=0))
    U, v = narma(900, random_state=0)
    flows = [lorenz(200 + 20 * i, random_state=i) / 10 for i in range(4)]
    base = {"dtype": dtype, "random_state": 0}

    def made(**options):
        esn = ESNRegressor(60, **{**base, **options})
        ReadoutModel.engine = engine
        return esn

    yield "plain", numbers(made().fit(X[:700], y[:700]), X[700:])
    yield "penalties", numbers(made(alpha=[1e-8, 1e-4, 1.0]).fit(X[:700], y[:700]), X[700:])
    for selection in ("blocked", "holdout"):
        esn = made(alpha=[1e-8, 1e-4], alpha_selection=selection)
        yield selection, numbers(esn.fit(X[:700], y[:700]), X[700:])
    yield "digits", numbers(made(solver="qr", alpha=[1e-12, 1e-8]).fit(X[:700], y[:700]), X[700:])
    for name in ("square", "even_square"):
        yield name, numbers(made(augment=name).fit(X[:700], y[:700]), X[700:])
    yield "noise", numbers(made(noise=1e-3).fit(X[:700], y[:700]), X[700:])
    yield "stable", numbers(made(bias="stable", leak_rate=0.5).fit(X[:700], y[:700]), X[700:])
    yield "readout", numbers(made(readout=Ridge(1e-6)).fit(X[:700], y[:700].ravel()), X[700:])
    fed = made(feedback=True, alpha=1.0).fit(U[:700], v[:700])
    yield "feedback", numbers(fed, U[700:], exog=U[700:720])
    chunks = made(washout=50)
    for start in range(0, 700, 175):
        chunks.partial_fit(X[start : start + 175], y[start : start + 175])
    yield "chunks", numbers(chunks, X[700:])
    path, cuts = {"alpha": [1e-8, 1e-4, 1.0], "forgetting": 0.99}, range(0, 700, 175)
    for name, options in (("", {}), (" path", path), (" digits", {"solver": "qr"})):
        options = {"forgetting": 0.995, "washout": 50, **options}
        yield f"forgetting{name}", numbers(made(**options).fit(X[:700], y[:700]), X[700:])
        chunks = made(**options)
        for start in cuts:
            chunks.partial_fit(X[start : start + 175], y[start : start + 175])
        yield f"forgetting{name} in chunks", numbers(chunks, X[700:])
    pairs = [make_forecast_pairs(flow) for flow in flows]
    Xs, ys = [a for a, _ in pairs], [b for _, b in pairs]
    several = made(washout=10).fit(Xs, ys)
    yield "sequences", numbers(several, Xs[:2], context=Xs[0])
    table, targets, _ = stack_sequences(Xs, ys)
    by_id = made(washout=10, sequence_column=0).fit(table, targets)
    yield "ids", numbers(by_id, table, n_steps=0)
    cube = np.stack([flow[:150] for flow in flows])
    yield "cube", numbers(made(washout=10).fit(cube[:, :-1], cube[:, 1:]), cube, n_steps=0)
    labels = (v[:, None].ravel() > np.median(v)).astype(int)
    classifier = ESNClassifier(60, **base)
    yield "labels", numbers(classifier.fit(U[:700], labels[:700]), U[700:], n_steps=0)
    forgetful = ESNClassifier(60, forgetting=0.995, **base)
    yield "forgotten labels", numbers(forgetful.fit(U[:700], labels[:700]), U[700:], n_steps=0)
    pipe = make_pipeline(StandardScaler(), made())
    both = TransformedTargetRegressor(pipe, transformer=StandardScaler())
    yield "scalers", {"forecast": forecast(both.fit(X[:700], y[:700]), 20)}


def of_sequences(engine, dtype):
    """Whole sequences: containers, gaps, both directions, readouts, how the penalty is chosen."""
    Xs, y = gestures(60, n_classes=3, random_state=0)
    per_row = [np.full(len(x), label) for x, label in zip(Xs, y, strict=True)]
    table, labels, _ = stack_sequences(Xs, per_row)
    rows = np.stack([x[:50, 0] for x in Xs])
    gaps = [np.where(np.arange(len(x))[:, None] % 7 == 3, np.nan, x) for x in Xs]
    sizes = np.array([[np.ptp(x), len(x)] for x in Xs], float)
    base = {"n_units": 60, "dtype": dtype, "random_state": 0}
    ReservoirFeatures._engine_for = lambda features, n_steps: engine

    pools = ("mean", "std", "max", "min", "last", "quantiles")
    features = ReservoirFeatures(pool=pools, bidirectional=True, **base)
    yield "features", {"features": features.fit(Xs[:40]).transform(Xs)}
    clf = ESNSequenceClassifier(**base)
    yield "series", numbers(clf.fit(Xs[:40], y[:40]), Xs)
    yield "series by ids", numbers(clf.set_params(sequence_column=0).fit(table, labels), table)
    clf = ESNSequenceClassifier(bidirectional=True, relevance_weights=False, **base)
    yield "leave-one-out", numbers(clf.fit(Xs[:40], y[:40]), Xs)
    clf = ESNSequenceClassifier(differences=False, input_scaling=(0.1, 1.0), **base)
    yield "series as rows", numbers(clf.fit(rows[:40], y[:40] == y[0]), rows)
    clf = ESNSequenceClassifier(readout=LogisticRegression(), **base)
    yield "logistic", numbers(clf.fit(Xs[:40], y[:40]), Xs)
    esn = ESNSequenceRegressor(missing_values="interpolate", add_indicator=True, **base)
    yield "sizes", numbers(esn.fit(gaps[:40], sizes[:40]), gaps)
    esn = ESNSequenceRegressor(readout=Ridge(), leak_rate=0.5, scaling=None, **base)
    yield "size by ridge", numbers(esn.fit(Xs[:40], sizes[:40, 0]), Xs)


def of_networks(engine, dtype):
    """Yield names and results of trained networks, and of sessions, on an engine."""
    made = partial(RNNRegressor, dtype=dtype, random_state=0)
    labels = partial(RNNClassifier, dtype=dtype, random_state=0)
    groups = [training.of_trials, training.of_containers, uses.of_runs, uses.of_loops]
    if dtype == "float64":
        groups += [uses.of_online]
    if engine == "numpy":  # kernels are asked for in the same places
        groups += [training.of_starts, training.of_given_starts, training.of_weights]
        groups += [training.of_cells, uses.of_times, uses.of_symbols, uses.of_network_sessions]
        groups += [uses.of_esn_sessions]
    if engine == "numpy" and dtype == "float64":
        groups += [training.of_solvers, training.of_penalties, training.of_stopping]
        groups += [uses.of_more_online, uses.of_torch]
    with on_engine(engine):
        for group in groups:
            for name, found in group(made, labels):
                yield f"{group.__name__}: {name}", found


def of_others(dtype):
    """Transformers and trained networks."""
    X, y = make_forecast_pairs(mackey_glass(500, random_state=0))
    transformer = ReservoirTransformer(40, dtype=dtype, random_state=0)
    yield "transformer", {"states": transformer.fit_transform(X)}
    series = gestures(20, random_state=0)[0]
    machine = LiquidStateMachine(dtype=dtype, random_state=0)
    yield "spikes", {"features": machine.fit_transform(series)}
    yield "polynomials", numbers(NVARRegressor(3, dtype=dtype).fit(X[:400], y[:400]), X[400:])
    forecaster = ESNForecaster(random_state=0).fit(X[:300].astype(dtype))
    yield "bank", {"forecast": forecaster.forecast(20)}
    months = np.arange(72)
    sales = 50 + months / 4 + 9 * np.sin(months * np.pi / 6) + X[:72, 0]
    series = ESNForecaster(season=12, random_state=0).fit(sales.astype(dtype))
    paths = series.simulate(12, 5)
    yield "series", {"forecast": series.forecast(12, coverage=[0.8, 0.95]), "paths": paths}
    table = np.column_stack([sales, -sales[::-1], np.round(sales)]).astype(dtype)
    panel = ESNForecaster(season=12, panel="each", random_state=0).fit(table[:60])
    yield "panel", {"forecast": panel.update(table[60:]).forecast(12, coverage=0.9)}
    for cell in ("rnn", "leaky", "lstm", "gru"):
        options = {"cell": cell, "max_iter": 3, "dtype": dtype, "random_state": 0}
        rnn = RNNRegressor(10, **options).fit(X[:400], y[:400])
        yield cell, numbers(rnn, X[400:])
        labels = (y[:400].ravel() > np.median(y)).astype(int)
        classifier = RNNClassifier(10, init="orthogonal", **options).fit(X[:400], labels)
        yield f"{cell} labels", numbers(classifier, X[400:], n_steps=0)
        online = RNNRegressor(10, init="orthogonal", washout=0, **options)
        for start in range(0, 400, 100):
            online.partial_fit(X[start : start + 100], y[start : start + 100])
        yield f"{cell} online", numbers(online, X[400:])


def count_kernels():
    """Count the calls of compiled kernels in `kernel_calls`."""
    for module in (_kernels, _networks):

        def counted(kernel, *args, call=module.call):
            global kernel_calls
            kernel_calls += 1
            return call(kernel, *args)

        module.call = counted


def check_engine(engine, name, n_calls):
    """Stop if a configuration has not run on the engine that was asked for."""
    if engine and (n_calls > 0) != (engine == "numba"):
        raise SystemExit(f"{name}, asked for {engine}: {n_calls} calls of compiled kernels")


def keep(arrays, name, array):
    """Add an array, objects as text: no file without pickles holds them. Stop at a second one."""
    if name in arrays:
        raise SystemExit(f"{name} is there twice")
    arrays[name] = array.astype(str) if array.dtype.hasobject else array


def collected(*dtypes):
    """Return name -> array of all configurations, in some dtypes or both."""
    if not Path(reservoir.__file__).is_relative_to(ROOT):
        raise SystemExit(f"{reservoir.__file__} is not in {ROOT}: set PYTHONPATH to the checkout")
    count_kernels()
    arrays, n_configurations = {}, 0
    for dtype in dtypes or ("float64", "float32"):
        groups = (of_esn, of_sequences, of_networks)
        runs = [(engine, of(engine, dtype)) for of in groups for engine in ENGINES]
        runs.append(("", of_others(dtype)))
        for engine, configurations in runs:
            before = kernel_calls
            for name, found in configurations:
                check_engine(engine, name, kernel_calls - before)
                n_configurations, before = n_configurations + 1, kernel_calls
                for what, value in found.items():
                    parts = value if isinstance(value, list) else [value]
                    for i, part in enumerate(parts):
                        keep(arrays, f"{dtype} {engine} {name}: {what} {i}", np.asarray(part))
    print(f"{n_configurations} configurations, {len(arrays)} arrays")
    return arrays


def compare(arrays, file):
    """Name what differs; return how much does."""
    with np.load(file) as before:
        names = sorted(set(before.files) | set(arrays))
        differing = [
            name
            for name in names
            if name not in arrays
            or name not in before.files
            or before[name].dtype != arrays[name].dtype
            or before[name].shape != arrays[name].shape
            or before[name].tobytes() != arrays[name].tobytes()
        ]
    print("\n".join(differing) or "every bit is the same")
    return len(differing)


if __name__ == "__main__":
    what, file, *dtypes = sys.argv[1:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = collected(*dtypes)
    if what == "record":
        np.savez(file, **made)
    else:
        sys.exit(compare(made, file) > 0)

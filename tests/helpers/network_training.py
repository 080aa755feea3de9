"""Configurations of trained networks for `results.py`: where training starts, how it goes, by what.

Each function is a group. Few units, few rows, few epochs: what counts is that every way through the
code is taken.
"""

import copy
from functools import partial

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from helpers.network_numbers import COMPILED, GATED, classes_of, flows, numbers_of, reread, series
from reservoir import ESNClassifier, ESNRegressor
from reservoir.datasets import adding, lorenz, temporal_order
from reservoir.model_selection import make_forecast_pairs, stack_sequences
from reservoir.training import cells
from reservoir.training.gradient_control import GradientControl
from reservoir.training.hessian_free import HessianFree
from reservoir.training.initializers import INITIALIZERS
from reservoir.training.omega import Omega
from reservoir.training.online import LEARNERS
from reservoir.training.optimizers import OPTIMIZERS
from reservoir.training.schedules import SCHEDULES
from reservoir.training.starts import STARTS
from reservoir.training.temporal_gradients import SimplexDirection


def of_starts(made, labels):
    """Every start by name; none but the start; training that goes on."""
    X, y = series(100)
    kinds = classes_of(y[:, 0])
    for init in ("auto", *STARTS, *INITIALIZERS):
        yield init, numbers_of(made(8, init=init, max_iter=2).fit(X, y), X, 10)
        yield f"{init} alone", numbers_of(made(8, init=init, max_iter=0).fit(X, y), X)
        yield f"{init} of labels", numbers_of(labels(8, init=init, max_iter=2).fit(X, kinds), X)
        for cell in GATED:
            rnn = made(5, init=init, cell=cell, max_iter=1).fit(X, y)
            yield f"{init} of {cell}", numbers_of(rnn, X)
    for cell in COMPILED:
        rnn = made(6, cell=cell, max_iter=2, warm_start=True).fit(X, y)
        rnn = rnn.set_params(max_iter=3).fit(X[:70], y[:70])
        yield f"warm {cell}", numbers_of(rnn, X, 10)
        clf = labels(6, cell=cell, max_iter=2, warm_start=True).fit(X, kinds)
        yield f"warm labels of {cell}", numbers_of(clf.set_params(solver="sgd").fit(X, kinds), X)


def of_given_starts(made, labels):
    """Estimators as starts, fitted or not; an echo state network that is trained on."""
    X, y = series(100)
    kinds = classes_of(y[:, 0])
    ESN = partial(ESNRegressor, 8, include_input=False, dtype=made.keywords["dtype"])
    given = {
        "rnn": ("rnn", made(8, max_iter=1, init="esn")),
        "gru": ("gru", made(8, max_iter=1, cell="gru")),
        "esn": ("leaky", ESN(leak_rate=0.3, random_state=1)),
        "plain esn": ("rnn", ESN(leak_rate=1.0, random_state=2)),
    }
    for name, (cell, model) in given.items():
        for how in ("unfitted", "fitted", "frozen"):
            start = model if how == "unfitted" else clone(model).fit(X[:60], y[:60])
            start = FrozenEstimator(start) if how == "frozen" else start
            rnn = made(8, cell=cell, init=start, max_iter=2)
            yield f"{name} {how}", numbers_of(rnn.fit(X, y), X, 10)
            rnn = clone(rnn).set_params(washout=0).partial_fit(X[:50], y[:50])
            yield f"{name} {how} online", numbers_of(rnn.partial_fit(X[50:], y[50:]), X)
    for name, values in (("two", kinds == "low"), ("three", kinds)):
        clf = ESNClassifier(8, include_input=False, leak_rate=1.0, random_state=1)
        yield f"{name} classes", numbers_of(labels(8, init=clf, max_iter=2).fit(X, values), X)
    for name, options in (("leaks", {}), ("no leaks", {"leak_rate": 1.0, "bias": "stable"})):
        esn = ESN(random_state=0, **options | {"include_input": True}).fit(X, y)
        rnn = esn.to_rnn()
        yield f"to_rnn {name}", numbers_of(rnn, X, 10)
        yield f"to_rnn {name} online", numbers_of(copy.deepcopy(rnn).partial_fit(X, y), X)
        rnn = clone(rnn).set_params(max_iter=2).fit(X, y)
        yield f"to_rnn {name} trained", numbers_of(rnn, X, 10)


def of_trials(made, labels):
    """Starts that are compared; loops of which a start, or training, is lost."""
    Xs, y = adding(16, length=(10, 13), random_state=0)
    codes, kinds = temporal_order(24, length=(10, 12), random_state=0)
    for cell in COMPILED:
        rnn = made(5, cell=cell, target="last", max_iter=2)
        yield f"numbers by {cell}", numbers_of(rnn.fit(Xs, y), Xs)
        clf = labels(5, cell=cell, target="last", max_iter=2, learning_rate_init=0.03)
        yield f"labels by {cell}", numbers_of(clf.fit(codes, kinds), codes)
    weights = np.arange(16) % 3
    yield "weights", numbers_of(made(5, target="last", max_iter=2).fit(Xs, y, weights), Xs)
    yield "untrained", numbers_of(made(5, target="last", max_iter=0).fit(Xs, y), Xs)
    few = made(5, target="last", max_iter=2).fit(Xs[:8], y[:8])
    yield "few", numbers_of(few, Xs)
    X, y = make_forecast_pairs(np.cumsum(lorenz(120, random_state=0), axis=0) / 100)
    for n_units in (3, 40):
        options = {"max_iter": 3, "learning_rate_init": 0.1}
        rnn = made(n_units, **options).fit(X, y)
        yield f"loops of {n_units}", numbers_of(rnn, X, 30, clip=True)
        rnn = made(n_units, include_input=True, **options).fit(X, y[:, :1])
        yield f"driven loops of {n_units}", numbers_of(rnn, X)


def of_solvers(made, labels):
    """Solvers, schedules, batches and truncations, outputs and losses."""
    X, y = series(100)
    Xs, ys = flows()
    kinds = classes_of(y[:, 0])
    for solver in (*OPTIMIZERS, "lbfgs", "least_squares", "hessian_free"):
        options = {"solver": solver, "max_iter": 2}
        yield solver, numbers_of(made(6, init="esn", **options).fit(X, y), X)
        yield f"{solver} several", numbers_of(made(6, cell="leaky", **options).fit(Xs, ys), Xs)
        if solver != "least_squares":
            yield f"{solver} labels", numbers_of(labels(6, **options).fit(X, kinds), X)
    for cell in COMPILED:
        settings = HessianFree(0.2, 0.5, gradient_size=4, curvature_size=2, max_cg=5)
        for name, solver in (("hessian_free", settings), ("lbfgs", "lbfgs")):
            rnn = made(5, cell=cell, solver=solver, max_iter=2, alpha=1e-3).fit(Xs, ys)
            yield f"{name} of {cell}", numbers_of(rnn, Xs)
    for name in SCHEDULES:
        rnn = made(6, learning_rate=name, learning_rate_init=0.01, max_iter=4)
        yield name, numbers_of(rnn.fit(X, y), X)
    for size in (1, 2, "auto"):
        for truncation in (None, 7, "auto"):
            rnn = made(6, batch_size=size, truncation=truncation, max_iter=2)
            yield f"batches {size} {truncation}", numbers_of(rnn.fit(Xs, ys), Xs)
    y = (y - y.min()) / np.ptp(y)
    for output, loss in (("tanh", "auto"), ("logistic", "auto"), ("logistic", "mse")):
        rnn = made(6, output=output, loss=loss, max_iter=2).fit(X, y * 0.9)
        yield f"{output} {loss}", numbers_of(rnn, X)
    for loss in ("mae", "hinge"):
        yield loss, numbers_of(made(6, loss=loss, max_iter=2).fit(X, np.sign(y - 0.5)), X)
    shares = np.hstack([y, 1 - y])
    yield "softmax", numbers_of(made(6, output="softmax", max_iter=2).fit(X, shares), X)
    yield "margins", numbers_of(labels(6, loss="hinge", max_iter=2).fit(X, kinds), X)


def of_penalties(made, labels):
    """What holds gradients and weights; what a readout sees; training that diverges."""
    X, y = series(100)
    Xs, ys = flows()
    rising = {"solver": "sgd", "init": "normal", "activation": "relu", "learning_rate_init": 1e9}
    cases = {
        "control": {"gradient_control": 0.1},
        "interval": {"gradient_control": GradientControl(0.5, "interval", n_samples=3)},
        "omega": {"gradient_control": Omega(0.5)},
        "exact omega": {"gradient_control": Omega(0.5, exact=True), "init": "orthogonal"},
        "simplex": {"gradient_control": SimplexDirection(), "truncation": 10},
        "control by lbfgs": {"gradient_control": 0.1, "solver": "lbfgs"},
        "unclipped": {"clip_norm": None},
        "clipped": {"clip_norm": 0.01},
        "l1": {"l1": 1e-3},
        "l2": {"alpha": 1e-3},
        "both by lbfgs": {"l1": 1e-4, "alpha": 1e-3, "solver": "lbfgs"},
        "readout as trained": {"refit_readout": False},
        "input": {"include_input": True},
        "washout": {"washout": 7},
        "diverging": rising | {"clip_norm": None, "refit_readout": False},
    }
    for cell in ("rnn", "leaky"):
        for name, options in cases.items():
            options = {"cell": cell, "max_iter": 2} | options
            yield f"{name} {cell}", numbers_of(made(6, **options).fit(X, y), X)
            if name != "diverging":
                yield f"{name} {cell} several", numbers_of(made(6, **options).fit(Xs, ys), Xs)
    for cell in GATED:
        options = {"cell": cell, "clip_norm": None, "l1": 1e-3, "include_input": True}
        yield cell, numbers_of(made(6, max_iter=2, **options).fit(Xs, ys), Xs, 8, context=Xs[0])
    leaks = made(6, cell="leaky", leak_rate=np.linspace(0.1, 1, 6), max_iter=2)
    yield "leak rates", numbers_of(leaks.fit(X, y), X, 10)
    for activation in ("logistic", "leaky_relu", "softplus", "identity"):
        rnn = made(6, activation=activation, max_iter=2).fit(X, y)
        yield activation, numbers_of(rnn, X)


def of_stopping(made, labels):
    """Early stopping: at the end of a sequence, by others, by whole sequences with one target."""
    X, y = series(100)
    Xs, ys = flows()
    series_, sums = adding(16, length=(10, 13), random_state=0)
    codes, order = temporal_order(24, length=(10, 12), random_state=0)
    soon = {"early_stopping": True, "max_iter": 6, "n_iter_no_change": 2, "tol": 0.05}
    for cell in COMPILED:
        for share in (0.1, 0.4):
            options = soon | {"cell": cell, "validation_fraction": share}
            yield f"one {cell} {share}", numbers_of(made(5, **options).fit(X, y), X)
            yield f"several {cell} {share}", numbers_of(made(5, **options).fit(Xs, ys), Xs)
            rnn = made(5, target="last", **options | {"max_iter": 3}).fit(series_, sums)
            yield f"last {cell} {share}", numbers_of(rnn, series_)
            clf = labels(5, target="last", init="orthogonal", **options).fit(codes, order)
            yield f"labels {cell} {share}", numbers_of(clf, codes)
    for solver in ("lbfgs", "least_squares", "hessian_free"):
        yield solver, numbers_of(made(5, solver=solver, **soon).fit(X, y), X)
    rnn = made(5, warm_start=True, **soon).fit(X, y)
    yield "no longer", numbers_of(rnn.set_params(early_stopping=False).fit(X, y), X)


def of_containers(made, labels):
    """Sequences in lists, cubes and tables with ids; one target per sequence."""
    Xs, ys = flows()
    kinds = [classes_of(y[:, 0]) for y in ys]
    table, targets, _ = stack_sequences(Xs, ys)
    names = stack_sequences(Xs, kinds)[1]
    cube, rows = np.stack([X[:25] for X in Xs]), np.stack([y[:25] for y in ys])
    sums, last = np.array([y.sum(axis=0) for y in ys]), [k[-1] for k in kinds]
    series_, totals = adding(16, length=(10, 13), random_state=0)
    by_id, repeated, _ = stack_sequences(
        series_, [np.full(len(X), t) for X, t in zip(series_, totals, strict=True)]
    )
    for cell in COMPILED:
        options = {"cell": cell, "max_iter": 2}
        yield f"list {cell}", numbers_of(made(6, **options).fit(Xs, ys), Xs[::-1])
        rnn = made(6, sequence_column=0, **options).fit(table, targets)
        yield f"ids {cell}", numbers_of(rnn, table)
        later = table + np.eye(1, table.shape[1]) * 100  # other ids
        rnn.partial_fit(later, targets)
        yield f"ids {cell} online", numbers_of(rnn, table)
        yield f"cube {cell}", numbers_of(made(6, **options).fit(cube, rows), cube)
        clf = labels(6, **options).fit(Xs, kinds)
        yield f"labels {cell}", numbers_of(clf, Xs)
        clf = labels(6, sequence_column=0, **options).fit(table, names)
        yield f"labels by ids {cell}", numbers_of(clf, table)
        rnn = made(6, target="last", **options).fit(Xs, sums)
        yield f"last {cell}", numbers_of(rnn, Xs)
        rnn = made(6, target="last", sequence_column=0, **options).fit(by_id, repeated)
        yield f"last by ids {cell}", numbers_of(rnn, by_id)
        clf = labels(6, target="last", **options).fit(Xs, last)
        yield f"last label {cell}", numbers_of(clf, Xs)


def of_weights(made, labels):
    """Weights of rows, of sequences and of classes; targets that are missing."""
    X, y = series()
    Xs, ys = flows()
    kinds = classes_of(y[:, 0])
    rows, parts = np.arange(len(X)) % 4, [np.arange(len(x)) % 3 for x in Xs]
    gaps = np.where(np.arange(len(y))[:, None] % 5 == 2, np.nan, y)
    some = [np.where(np.arange(len(v))[:, None] % 4 == 1, np.nan, v) for v in ys]
    unknown = np.where(np.arange(len(y)) % 5 == 2, None, kinds.astype(object))
    for name, options in (("adam", {}), ("lbfgs", {"solver": "lbfgs"}), ("gru", {"cell": "gru"})):
        options = {"max_iter": 2, **options}
        yield f"rows {name}", numbers_of(made(6, **options).fit(X, y, rows), X)
        yield f"parts {name}", numbers_of(made(6, **options).fit(Xs, ys, parts), Xs)
        yield f"labels {name}", numbers_of(labels(6, **options).fit(X, kinds, rows), X)
        for weight in ("balanced", {"low": 2.0, "middle": 0.5, "top": 1.0}):
            clf = labels(6, class_weight=weight, **options).fit(X[:99], kinds[:99])
            yield f"classes {name} {weight}", numbers_of(clf, X)
        skip = options | {"missing_targets": "skip"}
        rnn = made(6, **skip).fit(X, gaps)
        yield f"gaps {name}", numbers_of(rnn, X) | {"score": rnn.score(X, gaps)}
        yield f"gaps in several {name}", numbers_of(made(6, **skip).fit(Xs, some), Xs)
        yield f"missing labels {name}", numbers_of(labels(6, **skip).fit(X, unknown), X)
        stopped = made(6, early_stopping=True, **skip).fit(X, gaps)
        yield f"gaps, stopped {name}", numbers_of(stopped, X)
    for online in LEARNERS:
        rnn = made(6, online=online, missing_targets="skip", washout=3)
        for start in range(0, 160, 32):
            rnn.partial_fit(X[start : start + 32], gaps[start : start + 32])
        yield f"gaps {online}", numbers_of(rnn, X)


def of_cells(made, labels):
    """Cells without kernels, and cells made of cells."""
    X, y = series(80)
    Xs, ys = (part[:3] for part in flows())
    made, labels = partial(made, 4, max_iter=2), partial(labels, 4, max_iter=2)
    inner = cells.SimpleCell(4)
    kinds = {
        "scrn": "scrn",
        "gated_feedback": "gated_feedback",
        "recipe": cells.stacked("gru", "rnn"),
        "shortcuts": cells.stacked("leaky", "lstm", input_shortcuts=True, readout_shortcuts=True),
        "dropout": cells.stacked("rnn", "rnn", dropout=0.3),
        "same dropout": cells.stacked(cells.GRUCell(3), "rnn", dropout=0.3, same_mask=True),
        "stacked": cells.StackedCell((cells.SimpleCell(3), cells.SimpleCell(4))),
        "peephole": cells.LSTMCell(4, peephole=True),
        "decay": cells.SCRNCell(4, n_context=2, learn_decay=True),
        "feedback of lstm": cells.GatedFeedbackCell(4, kind="lstm"),
        "feedback of gru": cells.GatedFeedbackCell(4, n_layers=3, kind="gru"),
        "deep": cells.DeepTransitionCell(4, (3,), shortcut=True),
        "feedforward": cells.stacked(cells.FeedforwardCell(4), "rnn"),
    }
    for name, cell in kinds.items():
        rnn = made(cell=cell, truncation=20).fit(X[:50], y[:50])
        yield f"cell {name}", numbers_of(rnn, X, 8)
        rnn = reread(rnn).partial_fit(X[50:], y[50:])
        yield f"cell {name} online", numbers_of(rnn, X, 8, clip=True)
        yield f"cell {name} several", numbers_of(made(cell=cell).fit(Xs, ys), Xs)
        clf = labels(cell=cell).fit(X, classes_of(y[:, 0]))
        yield f"cell {name} labels", numbers_of(clf, X)
    both = (cells.bidirectional("lstm"), cells.stacked(cells.bidirectional("rnn", "gru"), "leaky"))
    for cell in (*both, cells.BidirectionalCell((inner, inner))):
        yield f"cell {cell}", numbers_of(made(cell=cell).fit(Xs, ys), Xs)
        rnn = made(cell=cell, target="last", solver="lbfgs").fit(Xs, [v[0] for v in ys])
        yield f"cell {cell} last", numbers_of(rnn, Xs)
        stops = made(cell=cell, early_stopping=True).fit(Xs, ys)
        yield f"cell {cell} stops", numbers_of(stops, Xs)

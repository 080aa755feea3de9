"""Small networks of every cell, data for them, and their gradients by central differences."""

import numpy as np

from reservoir.activations import ACTIVATIONS
from reservoir.training.bptt import loss_and_gradient, loss_value, make_batch
from reservoir.training.cells import (
    BidirectionalCell,
    DeepTransitionCell,
    FeedforwardCell,
    GatedFeedbackCell,
    GRUCell,
    LSTMCell,
    SCRNCell,
    SimpleCell,
    StackedCell,
    TimedLeakyCell,
)
from reservoir.training.losses import OUTPUTS, apply_output

N_UNITS, P, Q = 5, 3, 2
CELL_LIST = {
    **{f"simple {name}": SimpleCell(N_UNITS, activation=name) for name in sorted(ACTIVATIONS)},
    "leaky": SimpleCell(N_UNITS, leak_rate=0.4),
    "leaky per unit": SimpleCell(N_UNITS, "logistic", leak_rate=(0.1, 0.4, 1.0, 0.7, 0.2)),
    "irregular times": TimedLeakyCell(N_UNITS, leak_rate=0.4, place=1),
    "irregular times, per unit": TimedLeakyCell(
        N_UNITS, "softplus", leak_rate=(0.1, 0.4, 1.0, 0.7, 0.2), place=2
    ),
    "lstm": LSTMCell(N_UNITS),
    "lstm with peepholes": LSTMCell(N_UNITS, peephole=True),
    "gru": GRUCell(N_UNITS),
    "gru, reset within": GRUCell(N_UNITS, reset_after=False),
    "scrn": SCRNCell(N_UNITS, activation="logistic", decay=0.7),
    "scrn that learns its decay": SCRNCell(N_UNITS, 3, decay=(0.3, 0.6, 0.9), learn_decay=True),
    **{
        f"gated feedback {kind}": GatedFeedbackCell(3, n_layers, kind)
        for kind, n_layers in (("rnn", 3), ("lstm", 2), ("gru", 2))
    },
    "stack": StackedCell((LSTMCell(2), SimpleCell(3, leak_rate=0.5), GRUCell(N_UNITS))),
    "stack with shortcuts": StackedCell((GRUCell(3), LSTMCell(2)), True, True),
    "deep input and output": StackedCell(
        (FeedforwardCell(4, "softplus"), SimpleCell(3), FeedforwardCell(N_UNITS, "logistic"))
    ),
    "no memory": FeedforwardCell(N_UNITS),
    "deep transition": DeepTransitionCell(N_UNITS, (3, 4)),
    "deep transition, shortcut": DeepTransitionCell(N_UNITS, (4,), "softplus", shortcut=True),
    "both directions": BidirectionalCell((LSTMCell(3), GRUCell(2))),
    "stack of both directions": StackedCell(
        (BidirectionalCell((SimpleCell(2), LSTMCell(2))), LSTMCell(N_UNITS))
    ),
}
CAUSAL = {name: cell for name, cell in CELL_LIST.items() if cell.causal}
PAIRS = [
    *((output, loss) for loss in ("mse", "mae") for output in OUTPUTS),
    ("logistic", "bce"),
    ("softmax", "cross_entropy"),
    ("identity", "hinge"),
    ("tanh", "hinge"),
]


def draw(network, seed, scale=0.6):
    rng = np.random.default_rng(seed)
    return {name: scale * rng.standard_normal(shape) for name, shape in network.shapes().items()}


def with_times(cell, X):
    """Return inputs, with irregular times that rise in the column of a cell that reads some."""
    if isinstance(cell, TimedLeakyCell):
        X[..., cell.place] = 5 + np.cumsum(0.1 + np.abs(X[..., cell.place]), axis=0)
    return X


def targets_for(network, rng, n):
    if network.loss == "hinge":
        return rng.choice([-1.0, 1.0], (n, Q))
    z = rng.standard_normal((n, Q))
    return apply_output(z, network.output)


def ragged(network, seed, *, weights=False, **options):
    rng = np.random.default_rng(seed)
    X = [with_times(network.cell, rng.standard_normal((n, P))) for n in (7, 4, 6)]
    n_rows = [1] * 3 if options.get("last") else [len(x) for x in X]
    Y = [targets_for(network, rng, n) for n in n_rows]
    given = [rng.uniform(0, 2, n) for n in n_rows] if weights else None
    return make_batch(X, Y, weights=given, **options)


def check(network, batch, params, state=None, control=None):
    """Compare every component of the gradient with central differences."""
    names = list(params)
    sizes = [params[name].size for name in names]

    def unpack(vector):
        parts = np.split(vector, np.cumsum(sizes)[:-1])
        return {k: v.reshape(params[k].shape) for k, v in zip(names, parts, strict=True)}

    def value(vector):
        return loss_value(network, unpack(vector), batch, state)[0]

    loss, grads, end = loss_and_gradient(network, params, batch, state)
    x = np.concatenate([params[name].ravel() for name in names])
    h = 1e-5
    numeric = np.array([(value(x + h * e) - value(x - h * e)) / (2 * h) for e in np.eye(x.size)])
    analytic = np.concatenate([grads[name].ravel() for name in names])
    error = np.linalg.norm(analytic - numeric) / np.linalg.norm(numeric)
    assert error < 1e-6, error
    assert loss == value(x)
    np.testing.assert_array_equal(end, loss_value(network, params, batch, state)[1])

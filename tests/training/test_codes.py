"""Symbols as inputs by number: the same network as with one-hot columns, without the columns."""

import tracemalloc

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator

from reservoir import ESNClassifier, RNNClassifier, RNNRegressor, load, save
from reservoir.training.bptt import Network, loss_and_gradient, make_batch, predict
from reservoir.training.cells import (
    BidirectionalCell,
    DeepTransitionCell,
    GRUCell,
    LSTMCell,
    SimpleCell,
    StackedCell,
)
from reservoir.training.initializers import initialize
from reservoir.training.omega import Omega
from reservoir.training.rtrl import rtrl_gradient
from reservoir.training.temporal_gradients import SimplexDirection

pytestmark = pytest.mark.both_engines

N_SYMBOLS = 5
CELLS = {
    "rnn": SimpleCell(6),
    "leaky": SimpleCell(6, "relu", leak_rate=0.4),
    "lstm": LSTMCell(6),
    "peephole": LSTMCell(6, peephole=True),
    "gru": GRUCell(6),
    "gru, reset within": GRUCell(6, reset_after=False),
}


def symbols(n=160, seed=0):
    rng = np.random.default_rng(seed)
    walk = np.cumsum(rng.integers(0, 3, n)) % N_SYMBOLS
    return np.where(rng.random(n) < 0.1, rng.integers(0, N_SYMBOLS, n), walk)


def columns(codes):
    return np.eye(N_SYMBOLS)[codes]


def numbers(codes, seed=1):
    """Return numbers that depend on the last two symbols."""
    values = np.random.default_rng(seed).normal(size=N_SYMBOLS)
    return values[codes] * np.roll(values[codes], 1)


def pair(cls, **params):
    """Return a network of codes and one of one-hot columns."""
    params = {"init": "esn", "max_iter": 3, "washout": 5, "random_state": 0, **params}
    return cls(6, n_symbols=N_SYMBOLS, **params), cls(6, **params)


# -------------------------------------------------------------------------- gradients


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CELLS)
def test_gradients_are_those_of_columns(name, dtype):
    """Sequences of several lengths: what is padding has no part in the gradient."""
    dense = Network(CELLS[name], N_SYMBOLS, 2)
    coded = Network(CELLS[name], N_SYMBOLS, 2, coded=True)
    params = initialize(dense.weights(), "glorot", random_state=0)
    params = {key: array.astype(dtype) for key, array in params.items()}
    codes = [symbols(n, seed=n) for n in (30, 12, 25)]
    targets = [np.random.default_rng(n).normal(size=(n, 2)).astype(dtype) for n in (30, 12, 25)]
    given = [c[:, None].astype(dtype) for c in codes]
    one, two = (
        loss_and_gradient(network, params, make_batch(inputs, targets))
        for network, inputs in ((coded, given), (dense, [columns(c).astype(dtype) for c in codes]))
    )
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    assert one[0] == pytest.approx(two[0], rel=tolerance)
    for key in two[1]:
        assert one[1][key].dtype == dtype
        assert one[1][key].shape == params[key].shape
        scale = np.abs(two[1][key]).max()
        np.testing.assert_allclose(one[1][key], two[1][key], atol=tolerance * scale, rtol=0)
    np.testing.assert_allclose(one[2], two[2], rtol=tolerance, atol=tolerance)


def test_real_time_gradients_too():
    network = Network(SimpleCell(4), N_SYMBOLS, 1, coded=True)
    params = initialize(network.weights(), "glorot", random_state=0)
    codes = symbols(20)[:, None].astype(float)
    Y = np.random.default_rng(0).normal(size=(20, 1))
    _, forwards, _ = rtrl_gradient(network, params, codes, Y)
    _, backwards, _ = loss_and_gradient(network, params, make_batch([codes], [Y]))
    for name, array in backwards.items():
        np.testing.assert_allclose(forwards[name], array, atol=1e-12)


def test_a_symbol_that_never_comes_has_no_gradient():
    network = Network(GRUCell(3), 4, 1, coded=True)
    params = initialize(network.weights(), "glorot", random_state=0)
    codes = np.array([[0.0], [2.0], [2.0]])
    grads = loss_and_gradient(network, params, make_batch([codes], [np.ones((3, 1))]))[1]
    assert not grads["W_in"][:, [1, 3]].any()
    assert grads["W_in"][:, [0, 2]].any(axis=0).all()
    assert predict(network, params, codes[:, None])[0].shape == (3, 1, 1)


# -------------------------------------------------------------------------- estimators

WAYS = {
    "adam": {"init": "orthogonal"},
    "start": {"init": "auto", "max_iter": 0},
    "start and adam": {"init": "least_squares"},
    "reservoir": {},
    "lbfgs": {"solver": "lbfgs", "init": "glorot"},
    "control": {"gradient_control": 0.1, "init": "glorot", "cell": "leaky"},
    "early": {"early_stopping": True, "init": "orthogonal", "learning_rate_init": 0.01},
}


@pytest.mark.fast_cases(1)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # three epochs
@pytest.mark.parametrize("cell", ["rnn", "leaky", "lstm", "gru"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cls", [RNNRegressor, RNNClassifier])
def test_fits_are_those_of_columns(cls, way, cell):
    params = {"cell": cell, **WAYS[way]}
    codes = symbols()
    y = numbers(codes) if cls is RNNRegressor else np.roll(codes, -1)
    coded, dense = pair(cls, **params)
    coded.fit(codes[:, None], y)
    dense.fit(columns(codes), y)
    say = "predict" if cls is RNNRegressor else "predict_proba"
    one, two = getattr(coded, say)(codes[:, None]), getattr(dense, say)(columns(codes))
    np.testing.assert_allclose(one, two, atol=1e-6 * np.abs(two).max())
    np.testing.assert_allclose(coded.loss_curve_, dense.loss_curve_, rtol=1e-6)
    assert coded.params_["W_in"].shape == dense.params_["W_in"].shape
    assert coded.n_features_in_ == 1


WITH_TANGENTS = {
    "omega": ("rnn", {"gradient_control": Omega(1.0)}),
    "omega, exact": ("leaky", {"gradient_control": Omega(1.0, exact=True)}),
    "simplex": ("rnn", {"gradient_control": SimplexDirection()}),
    "simplex, gated": ("gru", {"gradient_control": SimplexDirection()}),
    "hessian-free": ("rnn", {"solver": "hessian_free"}),
    "hessian-free, gated": ("lstm", {"solver": "hessian_free"}),
}


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("way", WITH_TANGENTS)
def test_ways_that_go_over_the_sequence_again(way):
    """They run through the inputs once more, forwards or step by step, past what the cell did."""
    cell, params = WITH_TANGENTS[way]
    codes = [symbols(n, seed=n) for n in (60, 35, 50)]
    y = [np.roll(part, -1) for part in codes]
    coded, dense = pair(RNNClassifier, cell=cell, init="orthogonal", **params)
    coded.fit([part[:, None] for part in codes], y)
    dense.fit([columns(part) for part in codes], y)
    assert dense.loss_curve_[-1] < dense.loss_curve_[0] - 0.002
    assert coded.network_.coded
    for name, weights in dense.params_.items():
        np.testing.assert_allclose(coded.params_[name], weights, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(coded.loss_curve_, dense.loss_curve_, rtol=1e-9)


def test_starts_from_another_network():
    """Fitted on codes or on columns: the weights are the same, and so is what they start."""
    codes = symbols()
    y = np.roll(codes, -1)
    first = pair(RNNClassifier, max_iter=2)
    for model, X in zip(first, (codes[:, None], columns(codes)), strict=True):
        model.fit(X, y)
    esn = ESNClassifier(6, leak_rate=1.0, include_input=False, random_state=0)
    esn = esn.fit(columns(codes), y)
    frozen = [FrozenEstimator(model) for model in (*first, esn)]
    for one, other in ((frozen[0], frozen[1]), (frozen[1], frozen[0]), (frozen[2], frozen[2])):
        coded = pair(RNNClassifier, init=one)[0].fit(codes[:, None], y)
        dense = pair(RNNClassifier, init=other)[1].fit(columns(codes), y)
        np.testing.assert_allclose(
            coded.predict_proba(codes[:, None]), dense.predict_proba(columns(codes)), atol=1e-9
        )
    # not frozen, it is fitted first, to what the network is given
    again = pair(RNNClassifier, init=first[0])[0].fit(codes[:, None], y)
    by_hand = pair(RNNClassifier, init=frozen[0])[0].fit(codes[:, None], y)
    np.testing.assert_allclose(again.loss_curve_, by_hand.loss_curve_, rtol=1e-12)
    # takes codes for numbers
    with pytest.raises(
        ValueError, match=r"n_features=1, but this network has 5.* n_symbols if either sets it"
    ):
        pair(RNNClassifier, init=first[1])[0].fit(codes[:, None], y)


def test_least_squares_steps():
    codes = symbols()
    coded, dense = pair(RNNRegressor, solver="least_squares", init="glorot")
    coded.fit(codes[:, None], numbers(codes))
    dense.fit(columns(codes), numbers(codes))
    np.testing.assert_allclose(
        coded.predict(codes[:, None]), dense.predict(columns(codes)), atol=1e-6
    )


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("online", ["bptt", "rtrl", "least_squares"])
def test_learning_online(online):
    codes = symbols(200)
    y = numbers(codes)
    coded, dense = pair(RNNRegressor, online=online, online_window=60, truncation=20)
    for model, X in ((coded, codes[:, None]), (dense, columns(codes))):
        model.fit(X[:80], y[:80])
        model.partial_fit(X[80:140], y[80:140])
        session = model.stream()
        session.learn(X[140:180], y[140:180])
        model.said = session.predict(X[180:])
    np.testing.assert_allclose(coded.said, dense.said, atol=1e-6)
    fresh = [model.set_params(init="orthogonal") for model in pair(RNNRegressor, online=online)]
    for model, X in zip(fresh, (codes[:, None], columns(codes)), strict=True):
        model.partial_fit(X[:50], y[:50])
    rows = fresh[0].predict(codes[:, None]), fresh[1].predict(columns(codes))
    np.testing.assert_allclose(*rows, atol=1e-6)


def test_containers_states_and_files(tmp_path):
    codes = symbols(90)
    parts = [codes[:40], codes[40:65], codes[65:]]
    y = [np.roll(part, -1) for part in parts]
    same = {"init": "orthogonal", "max_iter": 0}  # weights that no solver has a part in
    coded, dense = pair(RNNClassifier, cell="gru", dtype="float32", **same)
    coded.fit([part[:, None] for part in parts], y)
    dense.fit([columns(part) for part in parts], y)
    # step by step: gates that are drawn at random amplify rounding from one to the next
    before = dense.states(columns(codes))[:-1]
    for code, state in zip(codes[1:], before, strict=True):
        one = coded.states(code[None, None], initial_state=state)
        two = dense.states(columns(code[None]), initial_state=state)
        np.testing.assert_allclose(one, two, atol=1e-6)
    starts = [part[:1] for part in parts]
    ours = coded.predict_proba([part[:, None] for part in starts])
    theirs = dense.predict_proba([columns(part) for part in starts])
    np.testing.assert_allclose(np.concatenate(ours), np.concatenate(theirs), atol=1e-6)
    # a table with ids
    table = np.column_stack([np.repeat([7, 8, 9], [40, 25, 25]), codes])
    by_id = pair(RNNClassifier, cell="gru", sequence_column=0)[0].fit(table, np.concatenate(y))
    assert by_id.network_.n_features == N_SYMBOLS
    save(coded, tmp_path / "coded.npz")
    again = load(tmp_path / "coded.npz")
    np.testing.assert_array_equal(
        again.predict_proba(codes[:, None]), coded.predict_proba(codes[:, None])
    )
    np.testing.assert_array_equal(again.fit(codes[:, None], codes).n_symbols, N_SYMBOLS)


def test_a_frame_with_a_name():
    pd = pytest.importorskip("pandas")
    codes = symbols(90)
    frame = pd.DataFrame({"symbol": codes})
    named = pair(RNNClassifier)[0].fit(frame, np.roll(codes, -1))
    assert np.isfinite(named.predict_proba(frame)).all()


def test_one_label_per_sequence():
    parts = [symbols(n, seed=n) for n in range(10, 30)]
    y = [int(part[-2] > 1) for part in parts]
    coded, dense = pair(RNNClassifier, target="last", cell="lstm", washout=0)
    coded.fit([part[:, None] for part in parts], y)
    dense.fit([columns(part) for part in parts], y)
    one = coded.predict_proba([part[:, None] for part in parts])
    np.testing.assert_allclose(one, dense.predict_proba([columns(p) for p in parts]), atol=1e-9)


def test_symbols_are_drawn_as_from_columns():
    codes = symbols(300)
    coded, dense = pair(RNNClassifier, cell="lstm")
    coded.fit(codes[:-1, None], codes[1:])
    dense.fit(columns(codes[:-1]), codes[1:])
    for options in ({}, {"context": [0, 3, 1]}, {"temperature": 0}, {"allowed": [1, 1, 0, 1, 1]}):
        one, two = (model.sample(50, random_state=0, **options) for model in (coded, dense))
        np.testing.assert_array_equal(one, two)
    by_rows = coded.sample(9, context=np.array([[0], [3]]), random_state=0)
    np.testing.assert_array_equal(by_rows, coded.sample(9, context=[0, 3], random_state=0))
    parts = pair(RNNClassifier, init="orthogonal")[0]
    for rows in np.split(np.arange(297), 3):
        parts.partial_fit(codes[rows, None], codes[rows + 1], classes=np.arange(N_SYMBOLS))
    assert len(parts.sample(3, random_state=0)) == 3
    late = pair(RNNClassifier)[0].fit(codes[:, None], codes)
    with pytest.raises(ValueError, match=r"y\[t\] must be the symbol of X\[t\+1\].*X\[1, 0\]="):
        late.sample(3)


def test_integers_alone_are_numbers():
    codes = symbols()
    plain = RNNRegressor(6, max_iter=1, init="esn", random_state=0)
    as_float = plain.fit(codes[:, None].astype(float), numbers(codes)).predict(codes[:, None])
    assert plain.network_.n_features == 1
    np.testing.assert_array_equal(
        plain.fit(codes[:, None], numbers(codes)).predict(codes[:, None]), as_float
    )


@pytest.mark.slow
@pytest.mark.parametrize(("init", "n_symbols"), [("orthogonal", 1000), ("least_squares", 200)])
def test_memory_does_not_grow_with_the_number_of_symbols(init, n_symbols):
    n = 10_000
    codes = np.random.default_rng(0).integers(0, n_symbols, (n, 1))
    y = np.random.default_rng(1).normal(size=n)
    rnn = RNNRegressor(4, n_symbols=n_symbols, init=init, max_iter=1, random_state=0)
    rnn.fit(codes, y)  # what is imported or compiled on the way does not count
    tracemalloc.start()
    rnn.fit(codes, y).predict(codes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    columns_alone = n * n_symbols * 8
    assert peak < columns_alone * (0.05 if init == "orthogonal" else 0.7)


def test_errors():
    codes = symbols()
    y = numbers(codes)
    for value, error in ((1, ValueError), (0, ValueError), (2.5, TypeError), ("auto", TypeError)):
        with pytest.raises(error, match="n_symbols"):
            RNNRegressor(4, n_symbols=value).fit(codes[:, None], y)
    coded = RNNRegressor(4, n_symbols=N_SYMBOLS, max_iter=0, init="orthogonal", random_state=0)
    with pytest.raises(ValueError, match="one column of symbol numbers, but X has 5 columns"):
        coded.fit(columns(codes), y)
    for wrong in (N_SYMBOLS, -1, 0.5):
        bad = codes[:, None].astype(float)
        bad[3] = wrong
        with pytest.raises(ValueError, match=rf"whole numbers from 0 to 4; row 3 is {wrong:g}"):
            coded.fit(bad, y)
        coded.fit(codes[:, None], y)
        with pytest.raises(ValueError, match="row 3 is"):
            coded.predict(bad)
        with pytest.raises(ValueError, match="row 3 is"):
            coded.partial_fit(bad, y)
    with pytest.raises(ValueError, match="sequence 1 of X"):
        coded.fit([codes[:50, None], codes[50:, None] + 3], [y[:50], y[50:]])
    with pytest.raises(ValueError, match="include_input=True cannot be combined with n_symbols=5"):
        RNNRegressor(4, n_symbols=5, include_input=True).fit(codes[:, None], y)
    with pytest.raises(ValueError, match="dtype float32 cannot represent so many"):
        RNNRegressor(4, n_symbols=2**25, dtype="float32").fit(codes[:, None], y)
    with pytest.raises(ValueError, match=r"n_symbols=5 the inputs are symbols.*RNNClassifier"):
        coded.fit(codes[:, None], y).forecast(3)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    "cell",
    [
        StackedCell((LSTMCell(4), SimpleCell(8))),
        BidirectionalCell((GRUCell(4), GRUCell(4))),
        DeepTransitionCell(8, (4,)),
    ],
    ids=lambda cell: type(cell).__name__,
)
def test_cells_made_of_cells_read_codes(cell):
    codes = symbols()
    settings = {"n_units": cell.n_units, "cell": cell, "max_iter": 3, "random_state": 0}
    settings |= {"initial_state": "zeros", "init": "esn"}
    ones = RNNRegressor(**settings).fit(columns(codes), numbers(codes))
    ours = RNNRegressor(n_symbols=N_SYMBOLS, **settings).fit(codes[:, None], numbers(codes))
    np.testing.assert_allclose(
        ours.predict(codes[:, None]), ones.predict(columns(codes)), rtol=1e-7, atol=1e-9
    )


@pytest.mark.parametrize("cell", ["scrn", "gated_feedback"])
def test_cells_that_read_no_codes_raise(cell):
    codes = np.arange(40)[:, None] % 3
    with pytest.raises(ValueError, match=r"n_symbols=3: .*Cell does not support the numbers of"):
        RNNRegressor(4, cell=cell, n_symbols=3).fit(codes, codes[:, 0])

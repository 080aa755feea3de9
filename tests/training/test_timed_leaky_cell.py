"""`TimedLeakyCell`, and trained networks with it. Others: estimators/esn/test_time_column.py."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from helpers.irregular_rows import table, timed
from reservoir import ESNRegressor, RNNClassifier, RNNRegressor
from reservoir.dynamics import run
from reservoir.training.bptt import Network
from reservoir.training.cells import SimpleCell, StackedCell, TimedLeakyCell
from reservoir.training.gradient_control import GradientControl
from reservoir.training.starts import start

pytestmark = pytest.mark.one_engine
MADE = {"cell": "leaky", "leak_rate": 0.3, "time_column": 1, "random_state": 0}
FAST = {"init": "esn", "max_iter": 2, **MADE}


def draw(cell, n_features, seed=0):
    rng = np.random.default_rng(seed)
    shapes = cell.shapes(n_features)
    return {name: 0.6 * rng.standard_normal(shape) for name, shape in shapes.items()}


# ---------------------------------------------------------------------------------- the cell


@pytest.mark.parametrize("leak", [0.3, (0.1, 1.0, 0.5)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_run_is_that_of_a_reservoir_with_these_steps(dtype, leak):
    times, u, _ = timed(40, begin=5.0)
    cell = TimedLeakyCell(3, "logistic", leak, place=1)
    params = {name: array.astype(dtype) for name, array in draw(cell, 3).items()}
    trace = cell.forward(params, table(times, u).astype(dtype)[:, None])
    states = run(cell.at_even_steps().reservoir(params), u, dt=np.r_[1.0, np.diff(times)])
    atol = 1e-13 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(trace.states[1:, 0], states, rtol=0, atol=atol)
    assert trace.states.dtype == dtype
    assert trace.end.dtype == np.float64  # its last number is a time
    assert trace.end[0, -1] == dtype(times[-1])


def test_steps_of_length_one_are_those_of_the_simple_cell():
    _, u, _ = timed(30)
    cell, simple = TimedLeakyCell(4, leak_rate=0.3, place=1), SimpleCell(4, leak_rate=0.3)
    params, X = draw(simple, 2), np.stack([u, -u], axis=1)
    even = np.stack([table(7.0 + np.arange(30), rows) for rows in (u, -u)], axis=1)
    expected, found = simple.forward(params, X), cell.forward(params, even)
    np.testing.assert_array_equal(found.states, expected.states)
    grads, _, at_inputs = cell.backward(params, found, np.ones((30, 2, 4)), inputs=True)
    theirs, _, at_channels = simple.backward(params, expected, np.ones((30, 2, 4)), inputs=True)
    for name in grads:
        np.testing.assert_allclose(grads[name], theirs[name], rtol=1e-12)
    np.testing.assert_allclose(at_inputs[..., [0, 2]], at_channels, rtol=1e-12)
    assert not at_inputs[..., 1].any()


def test_padding_far_from_its_sequence_does_nothing():
    times, u, _ = timed(6, begin=1e9)
    cell = TimedLeakyCell(3, leak_rate=0.9, place=1)
    X = np.zeros((6, 2, 3))
    X[:, 0], X[:4, 1] = table(times, u), table(times, u)[:4]
    trace = cell.forward(draw(cell, 3), X, lengths=np.array([6, 4]))
    assert np.isfinite(trace.states).all()
    np.testing.assert_array_equal(trace.end[1, :-1], trace.states[4, 0])
    np.testing.assert_array_equal(trace.end[:, -1], times[[5, 3]])
    # a chunk without a row of one sequence leaves its state as it was
    before = trace.end.copy()
    before[0, -1] = times[3]
    rest = cell.forward(draw(cell, 3), X[4:], before, np.array([2, 0]))
    np.testing.assert_array_equal(rest.end[1], trace.end[1])


def test_the_tangent_is_the_derivative_along_a_direction():
    times, u, _ = timed(9, begin=3.0)
    cell = TimedLeakyCell(4, "softplus", (0.1, 0.4, 1.0, 0.7), place=1)
    params, along = draw(cell, 3), draw(cell, 3, seed=1)
    X = table(times, u)[:, None]

    def states(h):
        moved = {name: params[name] + h * along[name] for name in params}
        return cell.forward(moved, X).states[1:]

    found = cell.tangent(params, cell.forward(params, X), along)
    np.testing.assert_allclose(found, (states(1e-6) - states(-1e-6)) / 2e-6, atol=1e-8)


def test_errors_of_the_cell():
    times, u, _ = timed(5)
    cell = TimedLeakyCell(3, place=1)
    X = table(times[::-1], u)[:, None]
    with pytest.raises(ValueError, match="Times must increase: row 1 of sequence 0"):
        cell.forward(draw(cell, 3), X)
    with pytest.raises(ValueError, match="place=1 is outside inputs of 1 columns"):
        cell.shapes(1)
    with pytest.raises(ValueError, match="cannot be a part of another cell"):
        StackedCell((cell, SimpleCell(3)))
    with pytest.raises(ValueError, match="place=-1 must"):
        TimedLeakyCell(3, place=-1)
    with pytest.raises(ValueError, match=r"leak_rate=0\.0 must"):
        TimedLeakyCell(3, leak_rate=0.0)
    with pytest.raises(ValueError, match="gradient_control keeps the singular values"):
        GradientControl(0.1).check(cell)


def test_starts_from_data_do_not_see_the_times():
    times, u, y = timed(200, begin=0.0)
    network = Network(TimedLeakyCell(10, place=1), 3, 1, include_input=True)
    assert network.shapes()["W_in"] == (10, 2)
    assert network.shapes()["coef"] == (1, 12)
    for scheme in ("esn", "least_squares"):
        weights = [
            start(network, [table(t, u)], [y[:, None]], scheme=scheme, random_state=0).params
            for t in (times, times + 1e4)
        ]
        for name in network.shapes():
            np.testing.assert_allclose(weights[0][name], weights[1][name], rtol=1e-6, atol=1e-8)


# ----------------------------------------------------------------------------- the estimators


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("online", ["bptt", "least_squares"])
def test_chunks_and_sessions_continue_over_a_gap(online):
    times, u, y = timed()
    X = table(times, u)
    made = {**FAST, "init": "orthogonal", "online": online, "truncation": 10, "washout": 0}
    given = {"time_step": float(np.median(np.diff(times[:200])))}
    whole = RNNRegressor(10, **made, **given).partial_fit(X[:200], y[:200])
    chunks = RNNRegressor(10, **made, **given)
    for begin, end in ((0, 70), (70, 80), (80, 120), (120, 200)):
        chunks.partial_fit(X[begin:end], y[begin:end])
    expected = whole.predict(X[200:])
    np.testing.assert_allclose(chunks.predict(X[200:]), expected, rtol=0, atol=1e-9)
    session = whole.stream()
    rows = [session.predict(X[i : i + 1])[0] for i in range(200, 300)]
    np.testing.assert_allclose(rows, expected, rtol=0, atol=1e-9)
    session.learn(X[200:], y[200:])
    learned = chunks.partial_fit(X[200:], y[200:])
    late = np.column_stack([X[:5, 0], times[-1] + np.arange(1.0, 6), X[:5, 2]])
    np.testing.assert_allclose(session.predict(late), learned.predict(late), rtol=0, atol=1e-9)
    for go_on in (session.predict, lambda rows: learned.partial_fit(rows, y[:50])):
        with pytest.raises(
            ValueError, match=r"Times must increase: these rows begin at 1000.*reset"
        ):
            go_on(X[:50])
    learned.partial_fit(X[:50], y[:50], new_sequence=True)
    assert learned.state_[-1] < learned._model.clock.step * 50


def test_the_steady_state_is_left_by_no_constant_input():
    times, u, y = timed()
    X = table(times, u)
    rnn = RNNRegressor(10, **FAST).fit(X[:200], y[:200])
    held = np.column_stack(
        [np.tile(X[200], (100, 1))[:, 0], 2e5 + np.arange(100), [X[200, 2]] * 100]
    )
    states = rnn.states(held, initial_state="steady")
    np.testing.assert_allclose(states, np.tile(states[0], (100, 1)), rtol=0, atol=1e-10)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("target", ["step", "last"])
def test_labels(target):
    rng = np.random.default_rng(0)
    parts = [timed(int(rng.integers(5, 15)), seed) for seed in range(40)]
    late = [i % 2 for i in range(40)]  # whether the last row comes late: only the times say it
    X = []
    for (times, u, _), is_late in zip(parts, late, strict=True):
        times[-1] += 60 * is_late
        X.append(table(times, np.ones_like(u)))
        X[-1][-1, [0, 2]] = -1
    made = {"target": target, "max_iter": 60, "learning_rate_init": 0.02}
    clf = RNNClassifier(8, **{**FAST, **made, "init": "auto"})
    y = labels = np.array(["on time", "late"])[late]
    if target == "step":
        y = [np.r_[["on time"] * (len(x) - 1), [y]] for x, y in zip(X, labels, strict=True)]
    clf.fit(X[:30], y[:30])
    if target == "last":
        assert clf.score(X[30:], labels[30:]) == 1.0
    else:
        assert [rows[-1] for rows in clf.predict(X[30:])] == labels[30:].tolist()
        with pytest.raises(ValueError, match="A forecast needs steps of equal length"):
            clf.sample(3)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("solver", ["lbfgs", "least_squares", "hessian_free"])
def test_solvers_that_take_all_data_lower_the_loss(solver):
    times, u, y = timed(150)
    rnn = RNNRegressor(8, solver=solver, **FAST).fit(table(times, u), y)
    assert rnn.loss_curve_[-1] < rnn.loss_curve_[0]


def test_an_echo_state_network_is_trained_further():
    times, u, y = timed()
    X = table(times, u)
    esn = ESNRegressor(20, leak_rate=0.3, time_column=1, random_state=0).fit(X[:200], y[:200])
    expected = esn.predict(X[200:])
    rnn = esn.to_rnn()
    np.testing.assert_allclose(rnn.predict(X[200:]), expected, rtol=0, atol=1e-10)
    assert rnn.time_step_ == esn.time_step_
    # fitted on other rows it keeps what a step is; and so does a warm start
    rnn.set_params(max_iter=2).fit(X[100:200:3], y[100:200:3])
    assert rnn.time_step_ == esn.time_step_
    start = RNNRegressor(20, **{**FAST, "max_iter": 0}, include_input=True)
    start.set_params(init=clone(esn)).fit(X[:200], y[:200])
    np.testing.assert_allclose(start.predict(X[200:]), expected, rtol=0, atol=1e-10)
    start.set_params(warm_start=True).fit(X[:200:2], y[:200:2])
    assert start.time_step_ == esn.time_step_
    start.set_params(warm_start=False, init=FrozenEstimator(esn), time_step=2.0)
    with pytest.raises(
        ValueError, match="the same leak rate would correspond to another time constant"
    ):
        start.fit(X, y)
    start.set_params(time_column=None, time_step="auto")
    with pytest.raises(ValueError, match=r"has cell=TimedLeakyCell.*and time_column"):
        start.fit(u, y)


def test_what_needs_equal_steps_raises():
    times, u, y = timed(80)
    X = table(times, u)
    rnn = RNNRegressor(5, **FAST).fit(X, y)
    # y[t] == X[t+1] tries no loops
    assert RNNRegressor(5, **{**FAST, "init": "auto"}).fit(X[:-1], u[1:, 0]).n_iter_ == 2
    rnn.set_params(online="rtrl")
    with pytest.raises(ValueError, match="Real-time recurrent learning needs a SimpleCell"):
        rnn.partial_fit(X, y)

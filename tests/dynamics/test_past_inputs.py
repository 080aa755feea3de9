"""Past inputs beside the states: features, steps of many runs, closed loops."""

import numpy as np
import pytest

from reservoir import _kernels
from reservoir.building import build_reservoir
from reservoir.dynamics import closed_loop, run, step
from reservoir.dynamics.closed_loop import LoopRun
from reservoir.dynamics.feature_source import Run
from reservoir.dynamics.features import DrivenReservoir
from reservoir.dynamics.past_inputs import PastInputs
from reservoir.loops.path_loops import run_source_loops

pytestmark = pytest.mark.both_engines
ENGINES = ("numpy", "numba") if _kernels.usable() else ("numpy",)
KINDS = [(2, 1), (3, 2), (10, 1)]


def source_of(n_lags=3, skip=2, n_features=2, n_outputs=0, augment=None, dtype=None, **options):
    reservoir = build_reservoir(12, n_features, n_outputs=n_outputs, random_state=0, **options)
    reservoir = reservoir.astype(dtype or "float64")
    return PastInputs(DrivenReservoir(reservoir, True, augment), n_lags, skip)


def inputs(n_rows, n_features=2, seed=1):
    return np.random.default_rng(seed).normal(size=(n_rows, n_features))


def by_hand(states, rows, n_lags, skip):
    """Features row by row; the rows before the first one are like it."""
    table = []
    for t, x in enumerate(states):
        seen = [rows[max(t - k * skip, 0)] for k in range(n_lags)]
        table.append(np.concatenate([x, *seen]))
    return np.array(table)


@pytest.mark.parametrize(("n_lags", "skip"), KINDS)
def test_features_are_states_and_lagged_rows(n_lags, skip):
    source, rows = source_of(n_lags, skip), inputs(700)
    n_past = (n_lags - 1) * skip
    expected = by_hand(run(source.reservoir, rows), rows, n_lags, skip)
    assert source.width == expected.shape[1]
    assert source.state_size == 12 + 2 * n_past
    state, found = source.initial_state_of(rows[0]), []
    for begin, end in ((0, 1), (1, 4), (4, 700)):  # several blocks, some shorter than the past
        for _, features, after in source.iter_features(rows[begin:end], state):
            found.append(features.copy())
            state = after
    np.testing.assert_allclose(np.concatenate(found), expected, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(state[: 2 * n_past], rows[700 - n_past :].ravel())
    columns = [source.input_column(j) for j in range(source.width)]
    assert columns == [None] * 12 + [0, 1] * n_lags


@pytest.mark.parametrize("augment", [None, "square"])
def test_runs_side_by_side_are_runs_alone(augment):
    source = source_of(augment=augment)
    series = [inputs(n, seed=n) for n in (3, 40, 41, 60)]
    starts = [source.initial_state_of(rows[0]) for rows in series]
    together = [np.empty((len(rows), source.width)) for rows in series]
    runs = [Run()] * len(series)
    for index, start, features, end in source.iter_many_features(series, starts, runs):
        together[index][start : start + len(features)] = features
        if start + len(features) == len(series[index]):
            starts[index] = end
    for rows, found, end in zip(series, together, starts, strict=True):
        state, alone = source.initial_state_of(rows[0])[None], []
        for row in rows:
            features, state = source.advance(state, row[None])
            alone.append(features[0])
        np.testing.assert_allclose(found, alone, rtol=0, atol=1e-13)
        np.testing.assert_allclose(end, state[0], rtol=0, atol=1e-13)


def test_a_constant_input_leads_to_the_steady_state():
    source, row = source_of(), np.array([0.3, -0.2])
    steady = source.steady_state(row)
    _, after = source.advance(steady[None], row[None])
    np.testing.assert_allclose(after[0], steady, rtol=0, atol=1e-12)


def loop_by_hand(source, coef, intercept, state, output, exog, hold=lambda y: y):
    """A loop whose first inputs are its outputs; with feedback weights they are none."""
    reservoir, n = source.reservoir, source.n_past
    units, past = state[source.n_held :], list(state[: source.n_held].reshape(n, -1))
    said = []
    for row in exog:
        fed = hold(output)
        if reservoir.W_fb is None:
            row = np.concatenate([fed, row])
            units = step(reservoir, units, row)
        else:
            units = step(reservoir, units, row, fed)
        past.append(row)
        seen = [past[-1 - k * source.skip] for k in range(source.n_lags)]
        output = coef @ np.concatenate([units, *seen]) + intercept
        said.append(output)
    return np.array(said), np.concatenate([*past[len(past) - n :], units])


@pytest.mark.fast_cases("values")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n_outputs", [0, 1])
def test_a_loop_is_the_loop_by_hand(engine, n_outputs):
    source = source_of(n_outputs=n_outputs)
    rng = np.random.default_rng(2)
    coef, intercept = rng.normal(size=(1, source.width)) / 6, rng.normal(size=1)
    state = rng.normal(size=source.state_size) / 4
    exog, first = inputs(30, 2 if n_outputs else 1), np.array([0.4])
    where = {"initial_state": state, "initial_output": first, "exog": exog, "engine": engine}
    clip = (-0.5, 0.9)
    for hold in (None, clip, lambda y: 0.5 * y + 0.1):
        bounded = {None: lambda y: y, clip: lambda y: np.clip(y, *clip)}.get(hold, hold)
        expected = loop_by_hand(source, coef, intercept, state, first, exog, bounded)
        found = source.run_loop((coef, intercept), LoopRun(30, clip=hold, **where))
        assert found[2] == 30
        for ours, theirs in zip(found, expected, strict=False):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)
        called = source.run_loop(lambda v: coef @ v + intercept, LoopRun(30, clip=hold, **where))
        np.testing.assert_allclose(called[0], expected[0], rtol=0, atol=1e-12)
    nothing, same, _ = source.run_loop((coef, intercept), LoopRun(0, **where | {"exog": exog[:0]}))
    assert nothing.shape == (0, 1)
    np.testing.assert_array_equal(same, state)


def test_many_loops_are_loops_one_by_one():
    source, rng = source_of(), np.random.default_rng(3)
    readouts = [(rng.normal(size=(2, source.width)) / 9, rng.normal(size=2)) for _ in range(3)]
    states, firsts = rng.normal(size=(2, source.state_size)), rng.normal(size=(2, 2))
    rows = run_source_loops(source, readouts, 9, initial_states=states, initial_outputs=firsts)
    for i, readout in enumerate(readouts):
        for j, (state, first) in enumerate(zip(states, firsts, strict=True)):
            alone, _, _ = source.run_loop(
                readout, LoopRun(9, initial_state=state, initial_output=first)
            )
            np.testing.assert_allclose(rows[:, i, j], alone, rtol=0, atol=1e-12)


def kept(source, n_used):
    """Number of features with `n_used` rows, which are the first features with more rows."""
    return source.width - (source.n_lags - n_used) * source.n_features


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n_used", [1, 2, 4])
def test_fewer_rows_are_the_first_features_and_the_same_states(n_used, dtype, engine):
    whole = source_of(4, 2, n_outputs=1, augment="square", dtype=dtype)
    source, series = whole.using(n_used), [inputs(n).astype(dtype) for n in (3, 40, 60)]
    starts = [whole.initial_state_of(rows[0]).astype(dtype) for rows in series]
    teachers, n = [inputs(len(rows), 1) for rows in series], kept(whole, n_used)
    columns = [whole.input_column(j) for j in range(n)]
    assert source.width == n
    assert columns == [source.input_column(j) for j in range(n)]
    runs = [Run(teacher, engine=engine) for teacher in teachers]
    alone = []
    for rows, start, options in zip(series, starts, runs, strict=True):
        one, other = (
            [(features.copy(), end) for _, features, end in each]
            for each in (
                source.iter_features(rows, start, options),
                whole.iter_features(rows, start, options),
            )
        )
        alone += [(ours, other[k][0][:, :n], end, other[k][1]) for k, (ours, end) in enumerate(one)]
    many = zip(
        source.iter_many_features(series, starts, runs),
        whole.iter_many_features(series, starts, runs),
        strict=True,
    )
    alone += [(ours[2], theirs[2][:, :n], ours[3], theirs[3]) for ours, theirs in many]
    start, row, teacher = (
        np.stack([each] * 3) for each in (starts[2], series[2][3], teachers[2][3])
    )
    ours, theirs = source.advance(start, row, teacher), whole.advance(start, row, teacher)
    alone += [(ours[0], theirs[0][:, :n], ours[1], theirs[1])]
    for ours, theirs, end, same in alone:
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(end, same)
        assert ours.dtype == end.dtype == dtype


@pytest.mark.parametrize("n_used", [0, 4])
def test_features_contain_one_row_up_to_all(n_used):
    with pytest.raises(ValueError, match=rf"n_used={n_used} must be from 1 to n_lags=3\."):
        source_of(3).using(n_used)


LOOPS = {  # columns of the input, outputs that are fed back through weights, other options
    "own outputs": (2, 0, {}),
    "exog": (3, 0, {"augment": "square"}),
    "feedback": (2, 2, {"augment": "even_square", "dtype": "float32"}),
    "exog of float32": (4, 0, {"skip": 3, "dtype": "float32"}),
}


@pytest.mark.fast_cases("values")
@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("n_used", [1, 2, 6])
def test_compiled_loops_are_those_of_numpy(name, n_used, monkeypatch):
    n_features, n_outputs, options = LOOPS[name]
    whole, n_steps = source_of(6, n_features=n_features, n_outputs=n_outputs, **options), 700
    source, rng = whole.using(n_used), np.random.default_rng(4)
    coef, intercept = rng.normal(size=(2, source.width)) / (2 * source.width), rng.normal(size=2)
    padded = np.zeros((2, whole.width))
    padded[:, : source.width] = coef
    n_exog = n_features if n_outputs else n_features - 2
    where = {
        "initial_state": rng.normal(size=whole.state_size) / 4,
        "initial_output": rng.normal(size=2),
        "exog": rng.normal(size=(n_steps, n_exog)) if n_exog else None,
        "clip": (-0.8, [0.9, 0.4]),
    }
    expected = source.run_loop((coef, intercept), LoopRun(n_steps, engine="numpy", **where))
    others = [whole.run_loop((padded, intercept), LoopRun(n_steps, engine="numpy", **where))]
    others += [source.run_loop(lambda v: coef @ v + intercept, LoopRun(n_steps, **where))]
    if n_used == 1:  # the same bits without past rows
        alone = where | {"initial_state": where["initial_state"][whole.n_held :]}
        for engine in ENGINES:
            ours = source.run_loop((coef, intercept), LoopRun(n_steps, engine=engine, **where))
            same = source.source.run_loop(
                (coef, intercept), LoopRun(n_steps, engine=engine, **alone)
            )
            np.testing.assert_array_equal(ours[0], same[0])
            np.testing.assert_array_equal(ours[1][whole.n_held :], same[1])
    if "numba" in ENGINES:
        compiled, called = _kernels.closed_loop, []
        monkeypatch.setattr(
            _kernels, "closed_loop", lambda *a, **k: called.append(k) or compiled(*a, **k)
        )
        others += [source.run_loop((coef, intercept), LoopRun(n_steps, engine="numba", **where))]
        monkeypatch.setattr(closed_loop, "steps_in_numpy", lambda *_: 9)  # then kernels
        others += [source.run_loop((coef, intercept), LoopRun(n_steps, **where))]
        assert len(called) == (4 if n_exog else 2)  # with exogenous inputs in two blocks each
    tolerance = 1e-12 if source.dtype == "float64" else 1e-4
    for found in others:
        assert found[2] == n_steps
        np.testing.assert_allclose(found[0], expected[0], rtol=0, atol=tolerance)
        np.testing.assert_allclose(found[1], expected[1], rtol=0, atol=tolerance)


def test_loops_side_by_side_need_only_the_rows_in_use():
    whole, rng = source_of(4), np.random.default_rng(5)
    states, firsts = rng.normal(size=(2, whole.state_size)), rng.normal(size=(2, 1))
    exog = rng.normal(size=(2, 9, 1))
    where = {"initial_states": states, "initial_outputs": firsts, "exog": exog}
    for n_used in (1, 2, 4):
        source = whole.using(n_used)
        readout = rng.normal(size=(1, source.width)) / 9, rng.normal(size=1)
        rows = run_source_loops(source, [readout], 9, **where)
        for i in range(2):
            options = {"initial_state": states[i], "initial_output": firsts[i], "exog": exog[i]}
            alone, _, _ = source.run_loop(readout, LoopRun(9, **options))
            np.testing.assert_allclose(rows[:, 0, i], alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_diverging_loop_keeps_its_last_finite_state(engine):
    source = source_of(n_features=1, activation="identity")
    coef = np.full((1, source.width), 3.0)
    state, first = np.full(source.state_size, 0.1), np.ones(1)
    with np.errstate(over="ignore", invalid="ignore"):
        rows, after, n_valid = source.run_loop(
            (coef, np.zeros(1)), LoopRun(400, state, first, engine=engine)
        )
    assert 10 < n_valid < 400
    np.testing.assert_array_equal(rows[n_valid:], np.tile(rows[n_valid - 1], (400 - n_valid, 1)))
    fed = np.concatenate([first, rows[:n_valid, 0]])[n_valid - source.n_past : n_valid]
    np.testing.assert_array_equal(after[: source.n_held], fed)
    assert np.isfinite(after).all()

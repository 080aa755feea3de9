"""Closed loops from given states, compared with the data that followed."""

import numpy as np
import pytest

from reservoir import ESNRegressor
from reservoir.datasets import mackey_glass
from reservoir.dynamics import run_closed_loop, step
from reservoir.loops.loop_score import Baseline, LoopScore, run_loops, score_loops


@pytest.mark.one_engine
def test_loops_side_by_side_equal_closed_loops_one_by_one():
    series = mackey_glass(400, random_state=0)
    esn = ESNRegressor(30, include_input=False, random_state=0).fit(series[:-1], series[1:])
    reservoir = esn.reservoir_
    places = [100, 200, 300]
    states = esn.states(series, initial_state="zeros")[[t - 1 for t in places]]

    def advance(inputs, state):
        state = np.stack([step(reservoir, x, u) for x, u in zip(state, inputs, strict=True)])
        return state @ np.atleast_2d(esn.coef_).T + esn.intercept_, state

    rows = run_loops(advance, series[places].copy(), states, 20, 1)
    for k, t in enumerate(places):
        ridge = np.atleast_2d(esn.coef_), np.atleast_1d(esn.intercept_)
        expected, _ = run_closed_loop(
            reservoir, ridge, 20, initial_state=states[k], initial_output=series[t]
        )
        np.testing.assert_allclose(rows[:, k], expected, rtol=0, atol=1e-12)


def test_exogenous_columns_enter_with_their_step():
    seen = []

    def advance(inputs, state):
        seen.append(inputs.copy())
        return 2 * inputs[:, :1], state

    rows = run_loops(advance, np.array([[1.0, 10.0]]), np.zeros((1, 0)), 3, 1, lambda k: 10.0 + k)
    np.testing.assert_array_equal(np.concatenate(seen), [[1, 10], [2, 11], [4, 12]])
    np.testing.assert_array_equal(rows[:, 0, 0], [2, 4, 8])


def test_what_is_lost_is_counted_and_its_error_cut_off():
    yardstick = Baseline.of([np.array([[0.0], [2.0]]), np.array([[1.0], [1.0]])])
    assert [float(part[0]) for part in yardstick[:3]] == [0.0, 2.0, 2.0]
    followed = [np.ones((2, 1)), np.ones((2, 1)), np.ones((1, 1))]
    rows = np.ones((2, 3, 1))
    assert score_loops(rows, followed, yardstick) == LoopScore(0, 0.0)
    rows[1, 0] = 3.9  # within a width of the range, but wrong
    n_lost, error = score_loops(rows, followed, yardstick)
    assert n_lost == 0
    assert error == pytest.approx(1.5 / np.sqrt(5))
    rows[1, 1] = 4.1
    assert score_loops(rows, followed, yardstick).n_lost == 1
    rows[1, 2] = np.nan  # behind what is compared, and lost all the same
    assert score_loops(rows, followed, yardstick).n_lost == 2
    assert score_loops(rows, followed, yardstick, leeway=2.0).n_lost == 1


def test_constant_targets_have_a_baseline():
    yardstick = Baseline.of([np.full((5, 2), [0.0, 7.0])])
    np.testing.assert_array_equal(yardstick.width, [1.0, 7.0])
    np.testing.assert_array_equal(yardstick.spread, [1.0, 1.0])

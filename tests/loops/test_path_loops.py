"""Closed loops with many readouts side by side, and the error that selects a penalty."""

import numpy as np
import pytest

from reservoir import ESNRegressor
from reservoir.building import build_reservoir
from reservoir.datasets import mackey_glass
from reservoir.dynamics import step
from reservoir.dynamics.feature_source import FeatureSource
from reservoir.dynamics.features import DrivenReservoir
from reservoir.loops.path_loops import log_errors, run_path_loops

pytestmark = pytest.mark.one_engine


@pytest.mark.parametrize("topology", ["random_sparse", "orthogonal"])
@pytest.mark.parametrize("feedback", [False, True])
@pytest.mark.parametrize("leak_rate", [1.0, np.linspace(0.1, 1, 20)], ids=["no leak", "leaks"])
def test_many_runs_take_the_step_of_one(topology, feedback, leak_rate):
    rng = np.random.default_rng(0)
    reservoir = build_reservoir(
        20,
        3,
        n_outputs=2 if feedback else 0,
        topology=topology,
        leak_rate=leak_rate,
        random_state=0,
    )
    states, inputs, fed = (rng.normal(size=(7, width)) for width in (20, 3, 2))
    source = DrivenReservoir(reservoir, include_input=True)
    teachers = fed if feedback else None
    features, after = source.advance(states, inputs, teachers)
    for k in range(7):
        expected = step(reservoir, states[k], inputs[k], fed[k] if feedback else None)
        np.testing.assert_allclose(after[k], expected, rtol=0, atol=1e-14)
        np.testing.assert_allclose(features[k], [*expected, *inputs[k]], rtol=0, atol=1e-14)
    for found, general in zip(
        (features, after), FeatureSource.advance(source, states, inputs, teachers), strict=True
    ):
        np.testing.assert_allclose(found, general, rtol=0, atol=1e-14)


def test_a_path_of_readouts_equals_forecasts_one_by_one():
    series = mackey_glass(600, random_state=0)
    models = [
        ESNRegressor(40, alpha=alpha, random_state=0).fit(series[:-1], series[1:])
        for alpha in (1e-8, 1e-4, 1.0)
    ]
    places = [150, 300, 450]
    states = models[0].states(series, initial_state="zeros")[[t - 1 for t in places]]
    rows = run_path_loops(
        DrivenReservoir(models[0].reservoir_, include_input=True),
        np.stack([np.atleast_2d(m.coef_) for m in models]),
        np.stack([np.atleast_1d(m.intercept_) for m in models]),
        states,
        series[places],
        50,
        clip=(np.array([0.3]), np.array([1.3])),
    )
    assert rows.shape == (50, 3, 3, 1)
    for a, model in enumerate(models):
        for k, t in enumerate(places):
            expected = model.forecast(
                50, context=series[t : t + 1], initial_state=states[k], clip=(0.3, 1.3)
            )
            np.testing.assert_allclose(rows[:, a, k, 0], expected.ravel(), rtol=0, atol=1e-9)


def test_increments_are_added_to_what_came_in():
    reservoir = build_reservoir(3, 1, random_state=0)
    source = DrivenReservoir(reservoir)
    rows = run_path_loops(
        source,
        np.zeros((1, 1, 3)),
        np.array([[0.5]]),
        np.zeros((2, 3)),
        np.array([[1.0], [2.0]]),
        4,
        increments=True,
        clip=(np.array([-9.0]), np.array([3.0])),
    )
    np.testing.assert_allclose(rows[:, 0, 0, 0], [1.5, 2.0, 2.5, 3.0])
    np.testing.assert_allclose(rows[:, 0, 1, 0], [2.5, 3.0, 3.5, 3.5])  # 3 is fed back


def test_exogenous_columns_enter_with_their_step():
    seen = []

    class Watching(DrivenReservoir):
        def advance(self, states, inputs, teachers=None):
            seen.append(inputs.copy())
            return super().advance(states, inputs, teachers)

    source = Watching(build_reservoir(3, 2, random_state=0))
    run_path_loops(
        source,
        np.zeros((2, 1, 3)),
        np.ones((2, 1)),
        np.zeros((1, 3)),
        np.array([[7.0, 0.0]]),
        3,
        exog=lambda k: np.array([[10.0 * k]]),
    )
    np.testing.assert_array_equal([each[0] for each in seen], [[7, 0], [1, 10], [1, 20]])


def test_errors_are_cut_off_at_both_ends():
    rows = np.array([[1.0, 2.0], [1e-12, 0.0], [np.nan, 0.0], [3e-3, 4e-3], [1e200, 0.0]])
    found = log_errors(rows, np.zeros(2), np.array([1.0, 1.0]))
    np.testing.assert_allclose(found, [0.0, -9.0, 0.0, np.log10(5e-3 / np.sqrt(2)), 0.0])

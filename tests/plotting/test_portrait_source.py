"""Phase portraits of networks that are run: closed loops, pipelines, driven reservoirs."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

plt = pytest.importorskip("matplotlib.pyplot")

from reservoir import (  # noqa: E402
    ESNForecaster,
    ESNRegressor,
    NVARRegressor,
    ReservoirTransformer,
    force_train,
    plotting,
)
from reservoir.datasets import henon  # noqa: E402
from reservoir.dynamics import Reservoir, run  # noqa: E402
from reservoir.stability import find_limit_cycle, find_loop_cycle  # noqa: E402

pytestmark = pytest.mark.one_engine

TURN = 2 * np.pi / 40.3
MATRIX = np.array([[np.cos(TURN), -np.sin(TURN)], [np.sin(TURN), np.cos(TURN)]])
DRIVE = 0.1 * np.sin(2 * np.pi * np.arange(5) / 5)[:, None]
TWO = Reservoir([[2.0, 0.3], [0.2, 0.5]], [[1.0], [1.0]], [0.0, 0.0])

ONE = Reservoir([[2.0]], [[1.0]], [0.0])
FED_BACK = Reservoir(0.5 * np.eye(2), np.ones((2, 1)), [0, 0], W_fb=np.ones((2, 1)))


def spiral(start=(0.3, 0.0), n=300):
    """Rows that approach the unit circle in turns of 40.3 steps."""
    rows = [np.array(start)]
    for _ in range(n):
        rows.append((1.02 - 0.02 * rows[-1] @ rows[-1]) * MATRIX @ rows[-1])
    return np.array(rows)


ROWS = spiral()
CUBIC = NVARRegressor(n_lags=1, degree=3, alpha=0).fit(ROWS[:-1], ROWS[1:])
NAME = "cycle of period 40.3, multiplier 0.193"


def labels(ax):
    return ax.get_legend_handles_labels()[1]


def drawn(ax, ending):
    return [line.get_xydata() for line in ax.get_lines() if line.get_label().endswith(ending)]


def test_a_closed_loop_in_one_call():
    ax = plotting.phase_portrait(CUBIC, n_starts=5)
    assert labels(ax) == ["start: held", "transient", NAME]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("output 0", "output 1", "")
    (curve,) = drawn(ax, NAME)
    # round, and round the seam, too
    np.testing.assert_allclose(np.linalg.norm(curve, axis=1), 1, atol=5e-4)
    np.testing.assert_allclose(curve[-1], curve[0], atol=1e-5)
    starts = np.concatenate(drawn(ax, "start: held"))
    assert len(np.unique(starts, axis=0)) == 5
    assert (starts >= ROWS.min(axis=0)).all()
    assert (starts <= ROWS.max(axis=0)).all()
    for path in drawn(ax, "transient"):  # each is drawn until it is on the curve
        assert abs(np.linalg.norm(path[-1]) - 1) < 0.03
        assert len(path) < 300 * 12


def test_starts_are_the_ends_of_contexts():
    contexts = [spiral(start, 15) for start in ([0.5, 0.5], [1.5, 0.0])]
    ax = plotting.phase_portrait(CUBIC, context=contexts, smooth=False)
    assert labels(ax)[0] == "start: end of context"
    for start, path, context in zip(
        drawn(ax, "context"), drawn(ax, "transient"), contexts, strict=True
    ):
        np.testing.assert_array_equal(start[0], context[-1])
        rows = CUBIC.forecast(len(path) - 1, context=context)
        np.testing.assert_allclose(path, np.vstack([context[-1:], rows]))
    one = plotting.phase_portrait(CUBIC, context=contexts[0])
    assert len(drawn(one, "context")) == 1


def test_a_pipeline_has_the_names_and_units_of_its_columns():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame([5.0, -200.0] + [0.1, 30.0] * ROWS, columns=["angle", "speed"])
    model = make_pipeline(StandardScaler(), NVARRegressor(n_lags=1, degree=3, alpha=1e-12))
    ax = plotting.phase_portrait(model.fit(table[:-1], table[1:]), n_starts=2)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("angle", "speed")
    (curve,) = drawn(ax, NAME)
    radius = np.linalg.norm((curve - [5.0, -200.0]) / [0.1, 30.0], axis=1)
    np.testing.assert_allclose(radius, 1, atol=1e-3)


def test_outputs_have_the_names_of_the_targets():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(ROWS, columns=["x", "v"])
    model = NVARRegressor(n_lags=1, degree=3, alpha=0).fit(ROWS[:-1], table[1:])
    ax = plotting.phase_portrait(model, n_starts=1, cycle=False)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x", "v")
    one = NVARRegressor(n_lags=2, degree=1, alpha=0).fit(ROWS[:-1, :1], table["x"][1:])
    ax = plotting.phase_portrait(one, context=ROWS[:50, :1], delay=9, cycle=False)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x", "x, 9 steps before")


def test_a_start_is_found_in_columns_of_any_order():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(ROWS, columns=["x", "v"])
    model = NVARRegressor(n_lags=1, degree=3, alpha=0).fit(table[:-1], table[1:])
    ax = plotting.phase_portrait(model, context=table[["v", "x"]][:9], cycle=False)
    np.testing.assert_allclose(drawn(ax, "context")[0], ROWS[8:9])


def test_a_loop_that_does_not_repeat_itself_has_no_cycle():
    X = henon(300)
    model = NVARRegressor(n_lags=1, degree=2).fit(X[:-1], X[1:])
    ax = plotting.phase_portrait(model, context=X[:20])
    assert ax.get_title() == "no cycle found"
    assert labels(ax) == ["start: end of context", "from step 150 on"]
    (points,) = [line for line in ax.get_lines() if line.get_label() == "from step 150 on"]
    assert points.get_linestyle() == "None"  # the points of a map are on no curve
    assert not ax.collections
    none = plotting.phase_portrait(model, context=X[:20], cycle=False)
    assert none.get_title() == ""
    given = plotting.phase_portrait(CUBIC, n_starts=2, cycle=spiral()[-40:])
    assert "cycle of period 40" in labels(given)


def test_a_loop_that_is_slow_is_run_until_it_is_on_its_cycle():
    rows = [np.array([0.3, 0.0])]
    for _ in range(300):
        rows.append((1.002 - 0.002 * rows[-1] @ rows[-1]) * MATRIX @ rows[-1])
    X = np.array(rows)
    model = NVARRegressor(n_lags=1, degree=3, alpha=0).fit(X[:-1], X[1:])
    far = [[9.0, 9.0]]  # from where the loop diverges
    ax = plotting.phase_portrait(model, context=[far, X[:9]], smooth=False)
    assert labels(ax)[-1].startswith("cycle of period 40.3, multiplier 0.8")
    path = drawn(ax, "transient")[-1]
    assert len(path) > 600
    assert abs(np.linalg.norm(path[-1]) - 1) < 0.03


def test_components_of_a_loop_of_three_outputs():
    rows = np.c_[ROWS, ROWS[:, :1] * ROWS[:, 1:]]
    model = ESNRegressor(60, n_lags=1, alpha=1e-8, random_state=0).fit(rows[:-1], rows[1:])
    ax = plotting.phase_portrait(model, context=rows[:100], cycle=False)
    assert ax.get_xlabel().startswith("first component")
    space = plt.figure().add_subplot(projection="3d")
    plotting.phase_portrait(model, context=rows[:100], cycle=False, ax=space)
    assert space.get_zlabel() == "output 2"


def test_a_loop_through_feedback_weights_starts_at_the_end_of_training():
    model = ESNRegressor(40, feedback=True, leak_rate=0.3, alpha=0.1, n_lags=1, random_state=0)
    ax = plotting.phase_portrait(force_train(model, ROWS[100:], n_test=0), cycle=False)
    assert labels(ax)[0] == "start: end of training"


def test_a_loop_cycle_is_drawn_with_trajectories():
    cycle = find_loop_cycle(CUBIC)
    ax = plotting.phase_portrait(ROWS, cycle=cycle, smooth=True)
    assert labels(ax) == ["initial state", "transient", NAME]
    assert ax.get_xlabel() == "output 0"
    states = np.c_[ROWS, ROWS]  # of the width of states: state_ here has no entries but rows
    with pytest.raises(ValueError, match="array in cycle must have n_units=4"):
        plotting.phase_portrait(states, cycle=cycle)
    ax = plotting.multipliers(cycle)
    assert "largest modulus 1" in labels(ax)


def test_a_reservoir_under_zeros_has_two_attractors():
    ax = plotting.phase_portrait(TWO, n_starts=8)
    names = labels(ax)
    assert len(names) == 4
    assert names[2].startswith("fixed point, no. 1, multiplier 0.")
    assert names[3].startswith("fixed point, no. 2, multiplier 0.")
    starts = [line for line in ax.get_lines() if line.get_label().endswith("initial state")]
    cycles = [next(line for line in ax.get_lines() if line.get_label() == n) for n in names[2:]]
    side = {cycle.get_color(): np.sign(cycle.get_xydata()[0, 0]) for cycle in cycles}
    for start in starts[1:]:  # all but zeros, which stay
        x = run(TWO, np.zeros((200, 1)), initial_state=start.get_xydata()[0])[-1]
        assert side[start.get_color()] == np.sign(x[0])


def test_a_driven_reservoir_is_drawn_once_a_period_and_its_cycle_at_every_phase():
    stable = Reservoir([[0.5, -0.3], [0.4, 0.2]], [[1.0], [0.5]], [0.1, 0.0])
    ax = plotting.phase_portrait(stable, inputs=DRIVE, n_starts=4)
    cycle = find_limit_cycle(stable, DRIVE)
    assert labels(ax)[2].startswith("cycle of period 5, multiplier")
    states = drawn(ax, labels(ax)[2])[0]
    np.testing.assert_allclose(states, [*cycle.states, cycle.states[0]], atol=1e-8)
    for path in drawn(ax, "transient"):  # each ends at the phase at which it is drawn
        np.testing.assert_allclose(path[-1], cycle.states[-1], atol=0.02)
    assert ax.get_aspect() == "auto"
    slow = 0.5 * np.sin(2 * np.pi * np.arange(24) / 24)[:, None]
    ax = plotting.phase_portrait(stable, inputs=slow, n_starts=3)
    assert len(drawn(ax, labels(ax)[2])[0]) == 24 * 12 + 1  # smooth
    assert all(len(path) < 24 for path in drawn(ax, "transient"))  # which those rows are not
    starts = np.concatenate(drawn(ax, "initial state"))
    np.testing.assert_array_equal(starts[:3], [[0, 0], [1, 1], [-1, -1]])
    after = run(stable, slow, initial_state=starts[1])[-1]
    np.testing.assert_allclose(drawn(ax, "transient")[1][1], after)


def test_an_open_reservoir_is_titled():
    model = ReservoirTransformer(5, random_state=0).fit(ROWS)
    ax = plotting.phase_portrait(model, n_starts=3)
    assert ax.get_title() == "open reservoir"
    assert ax.get_xlabel().startswith("first component")
    ax = plotting.phase_portrait(TWO, n_starts=3, cycle=False, field=TWO, inputs=[0.1])
    assert "next step" in labels(ax)


def test_a_loop_of_one_output_is_drawn_against_its_past():
    wave = np.sin(2 * np.pi * np.arange(600) / 25.5)
    model = NVARRegressor(n_lags=2, degree=1, alpha=0).fit(wave[:-1, None], wave[1:])
    ax = plotting.phase_portrait(model, context=[wave[:100, None], wave[3:50, None]])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("output 0", "output 0, 6 steps before")
    (curve,) = drawn(ax, labels(ax)[-1])
    x, before = curve.T
    turn = 2 * np.pi * 6 / 25.5
    np.testing.assert_allclose(
        ((before - x * np.cos(turn)) / np.sin(turn)) ** 2 + x**2, 1, atol=5e-3
    )
    ax = plotting.phase_portrait(model, context=wave[:100, None], cycle=False)
    assert ax.get_ylabel() == "output 0, 7 steps before"  # the first zero of the autocorrelation
    space = plt.figure().add_subplot(projection="3d")
    plotting.phase_portrait(model, context=wave[:100, None], delay=4, ax=space)
    assert space.get_zlabel() == "output 0, 8 steps before"


def test_cycles_of_whole_steps_keep_their_points():
    x = [0.3]
    for _ in range(30):
        x.append(3.2 * x[-1] * (1 - x[-1]))
    X = np.array(x)[:, None]
    model = NVARRegressor(n_lags=1, degree=2, alpha=0).fit(X[:-1], X[1:])
    ax = plotting.phase_portrait(model, n_starts=3)
    (points,) = drawn(ax, "cycle of period 2, multiplier 0.16")
    high, low = 0.7994555, 0.5130445
    np.testing.assert_allclose(points[0], points[1][::-1], atol=1e-6)
    np.testing.assert_allclose(np.sort(points[0]), [low, high], atol=1e-4)


def test_the_former_name_is_accepted():
    with pytest.warns(FutureWarning, match="trajectories is called source now") as told:
        ax = plotting.phase_portrait(trajectories=ROWS)
    assert told[0].filename == __file__
    assert labels(ax) == labels(plotting.phase_portrait(ROWS))


@pytest.mark.fast_cases(6)
@pytest.mark.parametrize(
    "call, error, match",
    [
        (lambda: plotting.phase_portrait(ESNForecaster()), TypeError, "source is ESNForecaster"),
        (lambda: plotting.phase_portrait(Ridge().fit(ROWS, ROWS)), TypeError, "Ridge"),
        (lambda: plotting.phase_portrait(CUBIC, inputs=DRIVE), ValueError, "closed loop has none"),
        (lambda: plotting.phase_portrait(TWO, context=ROWS), ValueError, "driven by inputs"),
        (lambda: plotting.phase_portrait(TWO, inputs=[1.0]), ValueError, r"inputs has shape"),
        (lambda: plotting.phase_portrait(ROWS, context=ROWS), TypeError, "context is for a fitted"),
        (lambda: plotting.phase_portrait(CUBIC, delay=3), ValueError, "delay=3 is for a closed"),
        (lambda: plotting.phase_portrait(ROWS, delay=3), ValueError, "delay=3 is for a closed"),
        (lambda: plotting.phase_portrait(FED_BACK), ValueError, "source has feedback weights"),
        (
            lambda: plotting.phase_portrait(
                ESNRegressor(5, feedback=True, random_state=0).fit(ROWS, ROWS)
            ),
            ValueError,
            "X of source has 2 exogenous columns",
        ),
        (lambda: plotting.phase_portrait(ONE), ValueError, "source has one unit.*plotting.cobweb"),
        (lambda: plotting.phase_portrait(TWO, n_starts=0), ValueError, "n_starts=0"),
    ],
)
def test_errors_of_sources(call, error, match):
    with pytest.raises(error, match=match):
        call()

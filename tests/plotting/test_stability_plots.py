"""Plots of stability: their content against given values and theory; errors."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

plt = pytest.importorskip("matplotlib.pyplot")
from matplotlib.colors import to_rgb  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402

from reservoir import ESNRegressor, NVARRegressor, plotting  # noqa: E402
from reservoir.dynamics import Reservoir, run, step  # noqa: E402
from reservoir.stability import certify, certify_cycle, critical_bias  # noqa: E402

pytestmark = pytest.mark.one_engine

RNG = np.random.default_rng(0)
STARTS = ([-0.9, 0.9], [0.9, -0.9], [0.2, 0.95])
RESERVOIR = Reservoir([[0.7, -0.9], [0.9, 0.6]], [[1.0], [0.5]], [0.4, 0.1])
INPUTS = np.cos(2 * np.pi * np.arange(200) / 5)[:, None]
PATHS = [np.vstack([x, run(RESERVOIR, INPUTS, initial_state=x)]) for x in STARTS]
CYCLE = PATHS[0][-5:]
COUNT = "number of attractors"
RADII, BIASES = np.linspace(0.5, 1.5, 6), np.linspace(0.0, 2.0, 4)
EXPONENTS = np.log(RADII) - 0.2 * BIASES[:, None]

WAVE = 2 * np.pi * np.arange(60)[:, None] / 21.3
WAVE = 0.95 ** np.arange(60)[:, None] * np.hstack([np.sin(WAVE), np.cos(WAVE)])
LINEAR = NVARRegressor(n_lags=1, degree=1, alpha=0).fit(WAVE[:-1], WAVE[1:])  # a spiral to rest
STARTS_OF_LOOP = np.array([[1.0, 0.5], [-0.5, -1.0]])


def labels(ax):
    return ax.get_legend_handles_labels()[1]


def line(ax, label):
    return next(drawn for drawn in ax.get_lines() if drawn.get_label() == label)


def grey(colour):
    return np.dot(to_rgb(colour), (0.299, 0.587, 0.114))


def box(holds=True, rate=0.5, shape=(2, 3)):
    """Stand in for a certificate: intervals [-0.5, 0.5]."""
    ends = np.broadcast_to(np.array([[-0.5], [0.5]]), shape)
    kind = type("Stub", (SimpleNamespace,), {"__bool__": lambda self: self.holds})
    return kind(holds=holds, rate=rate, box=ends)


DRAWINGS = {
    "phase_portrait": lambda ax: plotting.phase_portrait(
        PATHS, cycle=CYCLE, field=RESERVOIR, inputs=INPUTS[0], ax=ax
    ),
    "phase_portrait of late states": lambda ax: plotting.phase_portrait(PATHS, ax=ax),
    "phase_portrait of components": lambda ax: plotting.phase_portrait(
        PATHS, cycle=CYCLE, units="pca", ax=ax
    ),
    "phase_portrait with a band": lambda ax: plotting.phase_portrait(
        PATHS, cycle=CYCLE, smooth=True, band={"near": 0.1, "far": 0.3}, ax=ax
    ),
    "phase_portrait of a closed loop": lambda ax: plotting.phase_portrait(
        LINEAR, context=[row[None] for row in STARTS_OF_LOOP], ax=ax
    ),
    "cobweb": lambda ax: plotting.cobweb(3.78, -0.68, tangents=True, ax=ax),
    "cobweb of a cycle": lambda ax: plotting.cobweb(0.19, np.arange(7) / 9, ax=ax),
    "bias_region": lambda ax: plotting.bias_region(
        np.linspace(-3, 3, 31), 0, 2, leak_rate=0.6, printed=True, ax=ax
    ),
    "parameter_map": lambda ax: plotting.parameter_map(
        RADII, BIASES, EXPONENTS, certified=EXPONENTS < -0.3, ax=ax
    ),
    "parameter_map of counts": lambda ax: plotting.parameter_map(
        RADII, BIASES, np.arange(24).reshape(4, 6), quantity=COUNT, ax=ax
    ),
    "bifurcation": lambda ax: plotting.bifurcation(
        [0.0, 1.0], [[0.5, -0.5], [0.9]], certified=[False, True], ax=ax
    ),
    "multipliers": lambda ax: plotting.multipliers([0.5, -0.8], ax=ax),
    "multipliers with a bound": lambda ax: plotting.multipliers([0.5], bound=0.8, ax=ax),
    "certificate": lambda ax: plotting.certificate(box(), np.zeros((5, 3)), ax=ax),
    "forgetting": lambda ax: plotting.forgetting(held(), [2.0, 1.0, 1e-3], ax=ax),
}


# Phase portraits


def test_portrait_draws_the_rows_and_the_closed_cycle():
    ax = plotting.phase_portrait(PATHS, cycle=CYCLE, n_transient=30)
    transients = [d for d in ax.get_lines() if d.get_label().endswith("transient")]
    assert len(transients) == len(PATHS)
    for drawn, path in zip(transients, PATHS, strict=True):
        np.testing.assert_array_equal(drawn.get_xydata(), path[:30])
    closed = np.vstack([CYCLE, CYCLE[:1]])
    np.testing.assert_array_equal(line(ax, "cycle of period 5").get_xydata(), closed)
    assert labels(ax) == ["initial state", "transient", "cycle of period 5"]
    starts = [d for d in ax.get_lines() if d.get_label().endswith("initial state")]
    np.testing.assert_array_equal([d.get_xydata()[0] for d in starts], STARTS)
    assert ax.get_xlabel() == "column 0"  # of states or of data: arrays do not say it


def test_portrait_stops_a_transient_where_it_meets_the_cycle():
    ax = plotting.phase_portrait(PATHS, cycle=CYCLE)
    reach = 0.01 * np.ptp(np.vstack(PATHS), axis=0).max()
    for drawn in (d for d in ax.get_lines() if d.get_label().endswith("transient")):
        rows = drawn.get_xydata()
        gap = np.abs(rows[:, None] - CYCLE).max(axis=2).min(axis=1)
        assert len(rows) < 100
        assert gap[-2] > 0.5 * reach
        assert gap[-1] <= reach
    on_it = plotting.phase_portrait(CYCLE, cycle=CYCLE)
    assert labels(on_it) == ["initial state", "cycle of period 5"]


def test_portrait_without_a_cycle_takes_the_late_rows():
    ax = plotting.phase_portrait(PATHS[0], n_transient=120)
    np.testing.assert_array_equal(line(ax, "from step 120 on").get_xydata(), PATHS[0][120:])
    np.testing.assert_array_equal(line(ax, "transient").get_xydata(), PATHS[0][:121])
    assert "from step 100 on" in labels(plotting.phase_portrait(PATHS))
    mixed = plotting.phase_portrait([PATHS[0], PATHS[1][:50]])
    assert "second half" in labels(mixed)


def test_portrait_of_named_trajectories_and_columns():
    pd = pytest.importorskip("pandas")
    truth, forecast = (pd.DataFrame(path, columns=["load", "price"]) for path in PATHS[:2])
    ax = plotting.phase_portrait([truth, forecast], labels=["truth", "forecast"])
    assert labels(ax) == ["initial state", "truth", "forecast"]
    for name, path in zip(labels(ax)[1:], PATHS, strict=False):
        np.testing.assert_array_equal(line(ax, name).get_xydata(), path)
    assert line(ax, "truth").get_color() != line(ax, "forecast").get_color()
    assert line(ax, "truth").get_marker() != line(ax, "forecast").get_marker()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("load", "price")
    assert plotting.phase_portrait(truth, units=(1, 0)).get_xlabel() == "price"
    for given in ([PATHS[0], forecast], PATHS):  # any of the tables, or that of the cycle
        assert plotting.phase_portrait(given, cycle=truth[-5:]).get_ylabel() == "price"
    with pytest.raises(ValueError, match="must be a list of 2 names, one per trajectory"):
        plotting.phase_portrait([truth, forecast], labels=["truth"])


def test_portrait_of_an_estimator_names_its_states():
    model = ESNRegressor(5, random_state=0)
    with pytest.raises(NotFittedError):
        plotting.phase_portrait(model)
    for given in ([model], model.states):
        with pytest.raises(TypeError, match="Pass its states under some rows, which its method"):
            plotting.phase_portrait(given)
    with pytest.raises(TypeError, match="cycle is ESNRegressor"):
        plotting.phase_portrait(PATHS, cycle=model)


def test_portrait_takes_objects_and_several_cycles():
    whole = SimpleNamespace(states=CYCLE)
    ax = plotting.phase_portrait(PATHS, cycle=whole)
    assert "cycle of period 5" in labels(ax)
    assert ax.get_xlabel() == "state of unit 0"
    two = SimpleNamespace(states=[CYCLE, CYCLE[:1] + 0.1])
    for cycles in (two, two.states, [whole, SimpleNamespace(states=two.states[1])]):
        ax = plotting.phase_portrait(PATHS, cycle=cycles)
        assert labels(ax)[2:] == ["cycle of period 5, no. 1", "fixed point, no. 2"]
        first, second = (line(ax, name) for name in labels(ax)[2:])
        assert first.get_marker() != second.get_marker()
        assert first.get_markerfacecolor() != second.get_markerfacecolor()
    many = plotting.phase_portrait(PATHS, cycle=[CYCLE + 0.01 * k for k in range(9)])
    assert labels(many)[2:] == ["9 cycles"]


def test_portrait_reads_in_black_and_white():
    ax = plotting.phase_portrait(PATHS, cycle=CYCLE)
    transient, cycle = line(ax, "transient"), line(ax, "cycle of period 5")
    assert transient.get_linestyle() != cycle.get_linestyle()
    assert cycle.get_linewidth() > 1.5 * transient.get_linewidth()
    assert cycle.get_marker() != transient.get_marker()


def test_arrows_point_forwards():
    ax = plotting.phase_portrait(PATHS[:1], cycle=CYCLE)
    closed = np.vstack([CYCLE, CYCLE[:1]])
    for quiver, path in zip(quivers(ax), (PATHS[0], closed), strict=True):
        steps = np.diff(path, axis=0)
        middles = path[:-1] + steps / 2
        for place, arrow in zip(quiver.get_offsets(), np.c_[quiver.U, quiver.V], strict=True):
            k = np.argmin(np.abs(middles - place).max(axis=1))
            np.testing.assert_allclose(place, middles[k])
            np.testing.assert_allclose(arrow, steps[k] / np.hypot(*steps[k]))


def quivers(ax):
    return [q for q in ax.collections if hasattr(q, "U")]


@pytest.mark.parametrize("smooth", [True, False])
def test_arrows_are_on_each_curve_once(smooth):
    turn = 2 * np.pi * np.arange(240) / 40
    circle = np.c_[np.cos(turn), np.sin(turn)]
    paths = [np.vstack([[0.1 * k, 0.0], circle[k:]]) for k in range(12)]
    ax = plotting.phase_portrait(paths, smooth=smooth)
    arrows = [len(quiver.U) for quiver in quivers(ax)]
    assert sorted(arrows)[-1] == 6
    assert sorted(arrows)[:-1] == [1] * (0 if smooth else 12)  # transients have fewer, or none
    apart = plotting.phase_portrait([*paths, 3 + circle], smooth=smooth)
    assert sorted(len(quiver.U) for quiver in quivers(apart))[-2:] == [6, 6]


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("size", [(6.4, 4.8), (3.6, 2.7), (9, 4), (4, 8)])
def test_the_legend_is_next_to_axes_of_equal_scales(size):
    with plt.rc_context({"figure.figsize": size}):
        for ax in (
            plotting.phase_portrait([LOOP], cycle=LOOP, smooth=True),
            plotting.phase_portrait([LOOP[:, ::-1]], cycle=LOOP[:, ::-1], smooth=True),
            plotting.spectrum([0.5, -0.2]),
        ):
            ax.figure.canvas.draw()
            (legend,) = ax.figure.legends
            box, axes = legend.get_window_extent(), ax.get_window_extent()
            inch = ax.figure.dpi
            assert 0 <= box.y0 - axes.y1 < 0.3 * inch
            assert abs(box.x0 + box.x1 - axes.x0 - axes.x1) < 0.9 * inch  # twice a y-label
            assert box.x0 >= 0
            assert box.x1 <= ax.figure.bbox.x1


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("scale", [(200, 400), (1, 0.3), (0.02, 0.03)])
@pytest.mark.parametrize(("smooth", "size"), [(False, (3.6, 2.7)), (True, (4.5, 4.0))])
def test_numbers_below_a_portrait_do_not_overlap(smooth, size, scale):
    loop = np.c_[np.cos(ANGLE), np.sin(ANGLE)] * scale
    with plt.rc_context({"figure.figsize": size}):
        portrait = plotting.phase_portrait(loop, cycle=loop, smooth=smooth)
        circle = plotting.multipliers([0.5, -0.2])
    for ax in (portrait, circle):
        ax.figure.draw_without_rendering()
        low, high = sorted(ax.get_xlim())
        shown = [t for t in ax.get_xticklabels() if low <= t.get_position()[0] <= high]
        boxes = [t.get_window_extent() for t in shown]
        assert all(a.x1 < b.x0 for a, b in itertools.pairwise(boxes))


def test_rows_of_one_column_are_drawn_against_their_past():
    wave = np.sin(2 * np.pi * np.arange(200) / 40)[:, None]
    ax = plotting.phase_portrait(wave, cycle=wave[:40])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("column 0", "column 0, 10 steps before")
    x, before = line(ax, "cycle of period 40").get_xydata().T
    np.testing.assert_allclose(x**2 + before**2, 1)
    ax = plotting.phase_portrait(wave, delay=3)
    assert ax.get_ylabel() == "column 0, 3 steps before"
    with pytest.raises(ValueError, match="delay=200 leaves no rows of any trajectory"):
        plotting.phase_portrait(wave, delay=200)


@pytest.mark.parametrize("units", [(0, 1), (1, 0)])
def test_field_points_to_the_next_step(units):
    feeding = Reservoir(RESERVOIR.W, RESERVOIR.W_in, RESERVOIR.bias, W_fb=np.ones((2, 1)))
    for reservoir in (RESERVOIR, feeding):
        ax = plotting.phase_portrait(
            PATHS, cycle=CYCLE, units=units, field=reservoir, inputs=INPUTS[1]
        )
        quiver = quivers(ax)[-1]
        assert "next step" in labels(ax)
        for k in (0, 100, 288):
            here = np.asarray(quiver.get_offsets()[k])
            there = step(reservoir, here[list(units)], INPUTS[1])[list(units)]
            arrow = np.array([quiver.U[k], quiver.V[k]])
            cosine = arrow @ (there - here) / np.hypot(*arrow) / np.hypot(*(there - here))
            assert cosine == pytest.approx(1)


def test_components_hold_the_variance_of_the_cycle():
    angle = 2 * np.pi * np.arange(12) / 12
    basis = np.linalg.qr(RNG.normal(size=(20, 2)))[0].T
    circle = np.c_[3 * np.cos(angle), np.sin(angle)] @ basis
    ax = plotting.phase_portrait(circle, cycle=circle, units="pca")
    assert ax.get_xlabel() == "first component (90%)"
    assert ax.get_ylabel() == "second component (10%)"
    shown = line(ax, "cycle of period 12").get_xydata()
    np.testing.assert_allclose(np.abs(shown).max(axis=0), [3, 1], rtol=1e-9)
    # a fixed point spans no plane: the trajectories do
    point = plotting.phase_portrait(circle, cycle=circle[:1], units="pca")
    assert point.get_xlabel().startswith("first component (")
    assert "nan" not in point.get_xlabel()


ANGLE = 2 * np.pi * np.arange(40) / 40
LOOP = np.c_[3 * np.cos(ANGLE), np.sin(ANGLE) + 0.4 * np.sin(2 * ANGLE)]


def test_smooth_curves_go_through_all_states():
    path = np.vstack([[4.0, 2.0], 1.2 * LOOP[1:8]])
    ax = plotting.phase_portrait([path], cycle=LOOP, n_transient=8, smooth=True)
    curve, transient = (line(ax, name).get_xydata() for name in ("cycle of period 40", "transient"))
    np.testing.assert_allclose(curve[::12], np.vstack([LOOP, LOOP[:1]]), atol=1e-12)
    np.testing.assert_allclose(transient[::12], path, atol=1e-12)
    between = np.c_[3 * np.cos(ANGLE + np.pi / 40), np.sin(ANGLE + np.pi / 40)]
    between[:, 1] += 0.4 * np.sin(2 * ANGLE + np.pi / 20)
    np.testing.assert_allclose(curve[6::12], between, atol=0.002)  # round, and round the seam, too
    assert line(ax, "cycle of period 40").get_marker() == "None"
    assert ax.get_aspect() == 1


def test_portrait_in_space_and_names_of_cycles():
    orbit = np.c_[LOOP, np.cos(ANGLE)]
    ax = plt.figure().add_subplot(projection="3d")
    assert plotting.phase_portrait([orbit], cycle=orbit, labels=["orbit"], ax=ax) is ax
    assert ax.get_zlabel() == "column 2"
    np.testing.assert_allclose(np.c_[line(ax, "orbit").get_data_3d()][:40], orbit)
    ax.figure.canvas.draw()
    ax = plt.figure().add_subplot(projection="3d")
    plotting.phase_portrait([orbit], cycle=orbit, units="pca", ax=ax)
    assert ax.get_zlabel().startswith("third component (")
    with pytest.raises(ValueError, match="field and band are drawn on a plane"):
        plotting.phase_portrait([orbit], cycle=orbit, band=0.1, ax=ax)
    with pytest.raises(ValueError, match=r"labels=\['a', 'b'\] must be a list of 1 names"):
        plotting.phase_portrait([orbit], cycle=orbit, labels=["a", "b"])


def band_edges(ax):
    """Return the points on the edges of the bands, one array for each band."""
    bands = [drawn for drawn in ax.collections if getattr(drawn, "filled", False)]
    return [np.vstack([path.vertices for path in band.get_paths()]) for band in bands]


@pytest.mark.slow
def test_the_edge_of_a_band_is_as_far_from_the_cycle_as_it_says():
    fine = 2 * np.pi * np.arange(4000) / 4000
    curve = np.c_[3 * np.cos(fine), np.sin(fine) + 0.4 * np.sin(2 * fine)]
    bands = {"narrow": 0.1, "wide": 0.5}
    ax = plotting.phase_portrait([LOOP], cycle=LOOP, smooth=True, band=bands)
    assert labels(ax)[-2:] == ["wide", "narrow"]  # the wide one below
    for edge, distance in zip(band_edges(ax), (0.5, 0.1), strict=True):
        gap = np.hypot(*(edge[:, None] - curve).transpose(2, 0, 1)).min(axis=1)
        np.testing.assert_allclose(gap, distance, atol=0.01)
    wide, narrow = ax.patches
    assert (
        wide.get_facecolor()[3] < narrow.get_facecolor()[3]
    )  # as they look where one lies on the other
    disc = band_edges(plotting.phase_portrait([LOOP], cycle=LOOP[:1], band=0.2))[0]
    np.testing.assert_allclose(np.hypot(*(disc - LOOP[0]).T), 0.2, atol=0.002)


def test_starts_beside_a_band_are_not_on_the_edge_of_the_axes():
    edge = 3 + 1.05 * 0.5  # of the grid on which the band is computed
    ax = plotting.phase_portrait([[[edge, 0.0], [0.0, 0.0]]], cycle=LOOP, band=0.5)
    assert ax.get_xlim()[1] > edge + 0.1


def test_states_near_the_cycle_are_drawn_inside_its_band():
    rng = np.random.default_rng(1)
    basis = np.linalg.qr(rng.normal(size=(20, 3)))[0].T
    cycle = np.c_[LOOP, 0.3 * np.cos(3 * ANGLE)] @ basis
    offsets = rng.normal(size=(40, 20))
    near = cycle + 0.25 * offsets / np.linalg.norm(offsets, axis=1)[:, None]
    ax = plotting.phase_portrait(near, cycle=cycle, units="pca", band=0.25, n_transient=40)
    band = next(drawn for drawn in ax.collections if hasattr(drawn, "levels"))
    shown = line(ax, "transient").get_xydata()
    # even-odd: inside the outer edge, not inside the inner one
    assert (sum(p.contains_points(shown) for p in band.get_paths()) % 2 == 1).all()


# Cobwebs


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize(
    ("gain", "drive", "stable", "unstable"),
    [
        (0.19, -0.68, 1, 0),  # Bay 2017, figure 3.1
        (3.78, -0.68, 2, 1),  # 3.3
        (3.78, -2.97, 1, 0),  # 3.5
        (-0.5, 0.3, 1, 0),
        (-3.78, 0.1, 0, 1),
        (60.0, 0.0, 2, 1),
        (1.0, 0.0, 0, 1),  # marginal: the slope is 1
    ],
)
def test_cobweb_finds_all_fixed_points(gain, drive, stable, unstable):
    ax = plotting.cobweb(gain, drive)
    drawn = {}
    for name in labels(ax):
        if "fixed point" in name:
            drawn["unstable" if "unstable" in name else "stable"] = line(ax, name)
    counts = [len(drawn[k].get_xdata()) if k in drawn else 0 for k in ("stable", "unstable")]
    assert counts == [stable, unstable]
    for name, points in drawn.items():
        x, y = points.get_data()
        np.testing.assert_allclose(x, np.tanh(gain * x + drive), atol=1e-9)
        np.testing.assert_allclose(x, y, atol=1e-9)
        slope = np.abs(gain * (1 - np.tanh(gain * x + drive) ** 2))
        assert ((slope < 1) == (name == "stable")).all()
    if len(drawn) == 2:
        faces = [grey(drawn[k].get_markerfacecolor()) for k in ("stable", "unstable")]
        assert faces == [0, pytest.approx(1)]


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("leak_rate", [1.0, 0.4])
@pytest.mark.parametrize("gain", [1.05, 1.5, 3.78, 20.0])
def test_cobweb_counts_change_at_the_critical_bias(gain, leak_rate):
    # 1e-8 from the tangency two of the fixed points are 1e-4 apart or less, below the grid's step
    for sign in (1, -1):
        for factor, n_points in ((1 - 1e-8, 3), (1 + 1e-8, 1)):
            ax = plotting.cobweb(gain, sign * factor * critical_bias(gain), leak_rate=leak_rate)
            points = [d for d in ax.get_lines() if "fixed" in d.get_label()]
            assert sum(len(d.get_xdata()) for d in points) == n_points


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("leak_rate", [1.0, 0.4])
@pytest.mark.parametrize("gain", [1.05, 1.5, 3.78, 20.0, 200.0])
def test_a_tangent_map_has_one_stable_and_one_marginal_point(gain, leak_rate):
    for drive in (critical_bias(gain), -critical_bias(gain)):
        ax = plotting.cobweb(gain, drive, leak_rate=leak_rate)
        assert labels(ax)[-2:] == ["1 stable fixed point", "1 unstable fixed point"]
        touch = line(ax, "1 unstable fixed point").get_xdata()
        np.testing.assert_allclose(touch, -np.sign(drive) * np.sqrt(1 - 1 / gain), atol=1e-6)


@pytest.mark.parametrize("activation", ["tanh", "logistic"])
def test_cobweb_of_a_periodic_drive_shows_the_cycle_not_the_fixed_points_of_phases(activation):
    drive = np.sin(2 / 3 * np.pi * np.arange(3)) - 0.68  # Bay 2017, figure 3.2
    ax = plotting.cobweb(0.19, drive, initial_state=[0.9, 0.1], activation=activation)
    assert labels(ax)[:3] == ["map of phase 0", "map of phase 1", "map of phase 2"]
    styles = {line(ax, name).get_linestyle() for name in labels(ax)[:3]}
    assert len(styles) == 3
    cycle = line(ax, "1 stable cycle of period 3").get_xydata()
    res = Reservoir([[0.19]], [[1.0]], [0.0], activation=activation)
    states = run(res, np.tile(drive, 40)[:, None])[:, 0]
    np.testing.assert_allclose(cycle[:, 1], states[-3:], atol=1e-12)
    np.testing.assert_allclose(cycle[:, 0], np.roll(states[-3:], 1), atol=1e-12)
    assert np.abs(cycle[:, 0] - cycle[:, 1]).min() > 1e-3


def test_cobweb_steps_go_between_the_map_and_the_diagonal():
    drive = np.array([0.3, -0.2])
    ax = plotting.cobweb(2.0, drive, leak_rate=0.5, initial_state=[1.4, -0.2], n_steps=7)
    res = Reservoir([[2.0]], [[1.0]], [0.0], leak_rate=0.5)
    inputs = np.resize(drive, 7)[:, None]
    for label, start in (("steps", 1.4), ("_steps", -0.2)):
        states = np.r_[start, run(res, inputs, initial_state=[start])[:, 0]]
        x, y = line(ax, label).get_data()
        np.testing.assert_allclose(x, np.repeat(states, 2)[:-1])
        np.testing.assert_allclose(y, np.repeat(states, 2)[1:])
    assert line(ax, "steps").get_linestyle() != line(ax, "_steps").get_linestyle()
    assert ax.get_xlim()[1] > 1.4


@pytest.mark.parametrize("leak_rate", [1.0, 0.3])
def test_tangents_touch_the_diagonal(leak_rate):
    ax = plotting.cobweb(3.78, -2.97, leak_rate=leak_rate, tangents=True)
    assert "critical drives ±1.958" in labels(ax)
    for name, side in (("critical drives ±1.958", 1), ("_tangent", -1)):
        x, y = line(ax, name).get_data()
        inner = side * x > 0.5
        gap = side * (x - y)[inner]
        assert gap.min() == pytest.approx(0, abs=1e-4)
        assert gap.min() >= 0
        near = line(ax, "_touch").get_xdata()[0] if side > 0 else None
        assert near is None or abs(x[inner][gap.argmin()] - near) < 0.01


@pytest.mark.parametrize(
    ("gain", "drive", "leak_rate", "period"),
    [(-3, 0.1, 1.0, 2), (-1.2, 0.0, 1.0, 2), (-6.8, 1.0, 0.5, 2), (-22 / 3, 3.0, 0.5, 4)],
)
def test_cobweb_names_the_longer_cycle_that_attracts(gain, drive, leak_rate, period):
    ax = plotting.cobweb(gain, drive, leak_rate=leak_rate)
    found = [name for name in labels(ax) if "stable cycle" in name]
    x = 0.3
    for _ in range(5000):
        x = (1 - leak_rate) * x + leak_rate * np.tanh(gain * x + drive)
    path = [x]
    for _ in range(64):
        path.append((1 - leak_rate) * path[-1] + leak_rate * np.tanh(gain * path[-1] + drive))
    returns = 1 + int(np.flatnonzero(np.abs(np.array(path[1:]) - x) < 1e-8)[0])
    assert returns == period
    assert found == [f"1 stable cycle of period {period}"]
    states = line(ax, found[0]).get_xdata()
    np.testing.assert_allclose(np.sort(states), np.sort(path[:period]), atol=1e-7)


# Bounds of the bias


def test_region_draws_the_bounds_and_all_where_none_is_needed():
    gains = np.linspace(-3, 4, 57)
    ax = plotting.bias_region(gains, 0.0, 2.0, printed=True)
    x, lower = line(ax, "bounds").get_data()
    upper = line(ax, "_upper").get_ydata()
    free = np.abs(x) <= 1
    assert np.isnan(lower[free]).all()
    # bounds are rounded outwards, the critical bias is not
    np.testing.assert_allclose(lower[~free], critical_bias(x[~free]), atol=1e-13)
    np.testing.assert_allclose(upper[~free], -critical_bias(x[~free]) - 2, atol=1e-13)
    assert {-1.0, 1.0} < set(x)
    printed = line(ax, "as printed")
    np.testing.assert_allclose(printed.get_ydata(), -critical_bias(printed.get_xdata()))
    assert printed.get_xdata().min() > 1
    assert printed.get_linestyle() != line(ax, "bounds").get_linestyle()
    assert all(area.get_hatch() for area in ax.collections)


def test_gains_that_need_no_bias_have_no_bounds():
    assert labels(plotting.bias_region([-1.0, 0.2, 1.0], 0.0, 2.0, printed=True)) == ["proved"]


def test_region_hatches_what_is_proved():
    """A point is hatched exactly if `bias_bounds` allows it."""
    from reservoir.stability import bias_bounds

    gains = np.linspace(-5, 5, 41)
    ax = plotting.bias_region(gains, -0.5, 1.0, leak_rate=0.5)
    areas = [area.get_paths()[0] for area in ax.collections if area.get_hatch() == "///"]
    bottom, top = -6.0, 6.0
    for gain in gains[3:-3:4] + 0.01:
        allowed = bias_bounds(gain, -0.5, 1.0, leak_rate=0.5)
        for bias in np.linspace(bottom, top, 30):
            edge = min(abs(bias - allowed.upper[0]), abs(bias - allowed.lower[0]))
            if edge > 0.1:  # bounds are joined by straight lines
                inside = any(path.contains_point((gain, bias)) for path in areas)
                assert inside == allowed.allow(bias)


def test_the_region_ends_at_the_limits_of_the_axes():
    """A white strip at an edge would read as "not proved"."""
    ax = plotting.bias_region(np.linspace(0.5, 4, 50), 0.0, 2.0)
    boxes = [area.get_datalim(ax.transData) for area in ax.collections]
    assert max(box.y1 for box in boxes) == ax.get_ylim()[1]
    assert min(box.y0 for box in boxes) == ax.get_ylim()[0]
    assert ax.get_xlim() == (0.5, 4)


def test_the_open_question_is_dotted():
    ax = plotting.bias_region(np.linspace(-5, 5, 41), -0.5, 1.0, leak_rate=0.5)
    assert "open question" in labels(ax)
    assert "open question" not in labels(plotting.bias_region(np.linspace(-5, 5, 9), -0.5, 1.0))


# Maps


def test_map_draws_each_value_in_its_cell():
    ax = plotting.parameter_map(RADII, BIASES, EXPONENTS, parameters=("radius", "bias"))
    mesh = ax.collections[0]
    np.testing.assert_array_equal(np.ravel(mesh.get_array()), EXPONENTS.ravel())
    assert (mesh.norm.vmin, mesh.norm.vmax) == (EXPONENTS.min(), EXPONENTS.max())
    corners = mesh.get_coordinates()
    np.testing.assert_allclose(corners[0, :, 0], np.linspace(0.4, 1.6, 7))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("radius", "bias")
    assert labels(ax) == ["exponent 0"]
    assert "per step" in ax.figure.axes[1].get_ylabel()


def test_shades_of_exponents_darken_with_them():
    mesh = plotting.parameter_map(RADII, BIASES, EXPONENTS).collections[0]
    below, above = (
        mesh.cmap(mesh.norm(np.linspace(*ends, 30)))
        for ends in ((EXPONENTS.min(), -0.02), (0.02, EXPONENTS.max()))
    )
    for half in (below, above):
        assert (np.diff([grey(c[:3]) for c in half]) < 0).all()
    assert (below[:, 2] >= below[:, 0]).all()
    assert (above[:, 0] > above[:, 2]).all()


def test_one_sign_has_no_line_of_zero():
    for table in (EXPONENTS - 9, EXPONENTS + 9):
        ax = plotting.parameter_map(RADII, BIASES, table)
        assert labels(ax) == []
        ends = ax.collections[0].norm.vmin, ax.collections[0].norm.vmax
        assert ends == (min(table.min(), 0), max(table.max(), 0))
    plotting.parameter_map([1.0], [0.0], [[0.0]]).figure.canvas.draw()


def test_counts_are_numbered_steps_of_grey():
    counts = RNG.integers(1, 4, size=(4, 6))
    counts[0, :3] = 1, 2, 3
    ax = plotting.parameter_map(RADII, BIASES, counts, quantity=COUNT)
    bar = ax.figure.axes[1]
    assert list(bar.get_yticks()) == [1, 2, 3]
    assert bar.get_ylabel() == "number of\nattractors"
    mesh = ax.collections[0]
    shades = [mesh.cmap(mesh.norm(k)) for k in (1, 2, 3)]
    assert all(len(set(shade[:3])) == 1 for shade in shades)
    assert (np.diff([shade[0] for shade in shades]) < -0.2).all()


def test_the_outline_runs_along_the_certified_cells():
    mask = np.zeros((4, 6), dtype=bool)
    mask[1:3, 0:2] = True
    mask[1, 2] = True
    ax = plotting.parameter_map(RADII, BIASES, EXPONENTS, certified=mask)
    assert "certified" in labels(ax)
    outline = ax.collections[-1].get_segments()
    length = sum(np.abs(np.diff(s, axis=0)) for s in outline).ravel()
    np.testing.assert_allclose(length, [2 * 3 * 0.2, 2 * 2 * 2 / 3])
    hatched = ax.patches[-1]
    assert hatched.get_hatch()
    for i, j in np.ndindex(mask.shape):
        assert hatched.get_path().contains_point((RADII[j], BIASES[i])) == mask[i, j]
    nowhere = plotting.parameter_map(RADII, BIASES, EXPONENTS, certified=np.zeros_like(mask))
    assert not nowhere.patches


def test_bifurcation_draws_all_points_and_hatches_runs():
    values = [0.0, 1.0, 2.0, 3.0]
    points = [[0.9], [0.5, -0.5, 0.1], [], [-0.9]]
    ax = plotting.bifurcation(values, points, certified=[True, False, False, True], parameter="b")
    dots = line(ax, "attractors").get_xydata()
    np.testing.assert_array_equal(dots, [(0, 0.9), (1, 0.5), (1, -0.5), (1, 0.1), (3, -0.9)])
    spans = [p.get_window_extent().transformed(ax.transData.inverted()) for p in ax.patches]
    np.testing.assert_allclose([span.intervalx for span in spans], [(-0.5, 0.5), (2.5, 3.5)])
    assert all(p.get_hatch() for p in ax.patches)
    assert labels(ax) == ["attractors", "certified"]
    assert ax.get_xlabel() == "b"


# Multipliers and certificates


def test_the_disc_of_a_bound_has_its_radius_and_a_name_that_is_not_below_it():
    ax = plotting.multipliers([0.5, -0.2j], bound=0.78636286)
    assert labels(ax)[0] == "proved: all within 0.7864"
    np.testing.assert_allclose(np.hypot(*ax.patches[0].get_xy().T), 0.78636286)


def test_multipliers_lie_in_the_unit_circle():
    found = np.array([0.5 + 0.3j, 0.5 - 0.3j, -0.2])
    for values in (found, SimpleNamespace(multipliers=found)):
        ax = plotting.multipliers(values)
        points = line(ax, "multipliers").get_xydata()
        np.testing.assert_allclose(points, np.c_[found.real, found.imag])
        assert labels(ax) == ["multipliers", "largest modulus 0.5831", "unit circle"]
        circle = line(ax, "unit circle")
        np.testing.assert_allclose(np.hypot(*circle.get_data()), 1)


def test_certificate_draws_box_states_and_rate():
    reservoir = Reservoir(0.5 * np.eye(30), RNG.uniform(-1, 1, (30, 1)), np.zeros(30))
    reach = np.abs(reservoir.W_in[:, 0])
    proof = certify(reservoir, -reach, reach)
    H = run(reservoir, RNG.uniform(-1, 1, (500, 1)))[100:]
    ax = plotting.certificate(proof, H, units=[3, 7])
    bars = [(bar.get_y(), bar.get_y() + bar.get_height()) for bar in ax.patches]
    np.testing.assert_allclose(bars, proof.box[:, [3, 7]].T)
    ranges = line(ax, "states").get_xydata().reshape(2, 3, 2)[:, :2]
    for segment, unit in zip(ranges, (3, 7), strict=True):
        np.testing.assert_array_equal(segment[:, 1], [H[:, unit].min(), H[:, unit].max()])
        assert proof.box[0, unit] <= segment[0, 1]
        assert segment[1, 1] <= proof.box[1, unit]
    marks = line(ax, "_states").get_ydata()
    assert set(marks) <= set(H[:, [3, 7]].ravel())
    assert len(marks) == 400
    assert [t.get_text() for t in ax.get_xticklabels()] == ["3", "7"]
    assert ax.get_title(loc="left").startswith("certified rate 0.5")
    assert len(plotting.certificate(proof).patches) == 20


def test_certificate_of_a_cycle_takes_the_union():
    reservoir = Reservoir(0.4 * np.eye(2), np.ones((2, 1)), np.zeros(2))
    proof = certify_cycle(reservoir, [[0.5], [-1.0], [0.2]])
    ax = plotting.certificate(proof)
    bars = [(bar.get_y(), bar.get_y() + bar.get_height()) for bar in ax.patches]
    np.testing.assert_allclose(bars, np.c_[proof.box[:, 0].min(0), proof.box[:, 1].max(0)])


@pytest.mark.parametrize(
    ("rate", "shown"),
    [(0.97, "0.97"), (0.35271, "0.3528"), (0.99999, "0.99999"), (1 - 3e-7, "0.9999997"), (0, "0")],
)
def test_the_rate_is_never_shown_smaller_nor_as_one(rate, shown):
    assert plotting.certificate(box(rate=rate)).get_title(loc="left").split()[2] == shown


def test_a_missing_certificate_is_drawn_as_such():
    ax = plotting.certificate(box(holds=False, rate=np.inf))
    assert ax.get_title(loc="left") == "not certified"
    assert labels(ax) == ["box, not certified"]
    assert ax.patches[0].get_linestyle() != plotting.certificate(box()).patches[0].get_linestyle()


def held(bias=-2.1):
    return certify(Reservoir([[3.78]], [[1.0]], [bias], leak_rate=0.3), 0.0, 0.0)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("bias", [-1.97, -2.1, -3.0])
def test_simulated_differences_lie_below_the_proved_curve(bias):
    reservoir = Reservoir([[3.78]], [[1.0]], [bias], leak_rate=0.3)
    starts = np.linspace(-1, 1, 5)
    runs = [run(reservoir, np.zeros((300, 1)), initial_state=[x])[:, 0] for x in starts]
    states = np.column_stack([starts, np.array(runs)])
    differences = np.abs(states - states[0]).T[:, 1:]
    proof = held(bias)
    ax = plotting.forgetting(proof, differences)
    curve = line(ax, "proved, from any start")
    steps, bounds = curve.get_data()
    assert (np.diff(steps) >= 0).all()
    assert steps[-1] == proof.steps_to(1e-6)
    at = np.searchsorted(steps, np.arange(steps[-1]), side="right") - 1
    assert curve.get_drawstyle() == "steps-post"  # a bound holds until the next one does
    assert (differences[: len(at)].max(axis=1) <= bounds[at] * (1 + 1e-9)).all()
    slope = line(ax, "by the rate alone").get_data()
    assert np.log(slope[1][1] / slope[1][0]) == pytest.approx(slope[0][1] * np.log(proof.rate))
    assert ax.get_yscale() == "log"
    assert len([c for c in ax.lines if c.get_label() in ("_", "simulated")]) == 4


NAN = [[np.nan, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plotting.phase_portrait([1.0, 2.0]), r"source has shape \(2,\)"),
        (lambda: plotting.phase_portrait([]), "source must be an array of shape"),
        (lambda: plotting.phase_portrait(NAN), r"source is nan at index \(0, 0\)"),
        (lambda: plotting.phase_portrait(PATHS, cycle=NAN), "cycle is nan"),
        (lambda: plotting.phase_portrait(PATHS, cycle=np.ones((2, 3))), "array in cycle .*=2"),
        (lambda: plotting.phase_portrait(PATHS, units=(0, 2)), r"units=\(0, 2\).*in \[0, 1\]"),
        (lambda: plotting.phase_portrait(PATHS, units=(1, 1)), "two different units"),
        (lambda: plotting.phase_portrait(PATHS, units="ica"), "units='ica' must be"),
        (lambda: plotting.phase_portrait(PATHS, n_transient=201), "n_transient=201 leaves no rows"),
        (lambda: plotting.phase_portrait(np.ones((9, 3)), units="pca"), "different states"),
        (lambda: plotting.phase_portrait(PATHS, field=RESERVOIR), "field needs inputs"),
        (lambda: plotting.phase_portrait(PATHS, band=0.1), "band=0.1 is a distance from a cycle"),
        (lambda: plotting.phase_portrait(PATHS, cycle=CYCLE, band=0), r"band=0 must be .*\(0, inf"),
        (lambda: plotting.phase_portrait(PATHS, cycle=CYCLE, band={"a": np.nan}), "band=nan must"),
        (lambda: plotting.multipliers([0.5], bound=-1.0), r"bound=-1.0 must be .*\(0, inf"),
        (
            lambda: plotting.phase_portrait(PATHS, field=RESERVOIR, inputs=[1.0, 2.0]),
            "inputs has 2 features, but field has 1",
        ),
        (
            lambda: plotting.phase_portrait(PATHS, field=RESERVOIR, inputs=[1.0], units="pca"),
            "networks of two units",
        ),
        (lambda: plotting.cobweb(np.nan, 0.0), "gain=nan must be finite"),
        (lambda: plotting.cobweb(1.0, [np.inf]), "drive is inf at index"),
        (lambda: plotting.cobweb(1.0, []), r"drive has shape \(0,\)"),
        (lambda: plotting.cobweb(1.0, 0.0, leak_rate=0.0), r"leak_rate=0.0 .* in \(0, 1\]"),
        (lambda: plotting.cobweb(1.0, 0.0, n_steps=0), "n_steps=0 must be at least 1"),
        (lambda: plotting.cobweb(1.0, 0.0, activation="relu"), "'relu' has no bounded range"),
        (lambda: plotting.cobweb(0.5, 0.0, tangents=True), "gain=0.5.*Use tangents=False"),
        (lambda: plotting.bias_region([1.0], 2.0, 1.0), "drive_min=2 must not exceed drive_max=1"),
        (lambda: plotting.bias_region([1.0, 1.0], 0.0, 1.0), "gains contains only 1"),
        (lambda: plotting.bias_region([[1.0]], 0.0, 1.0), r"gains has shape \(1, 1\)"),
        (lambda: plotting.parameter_map([1, 2], [1], [[1.0], [2.0]]), "Transpose it"),
        (lambda: plotting.parameter_map([2, 1], [1], [[1.0, 2.0]]), "x must increase strictly"),
        (lambda: plotting.parameter_map([1, 2], [1], [[1.0, np.nan]]), "values is nan at index"),
        (lambda: plotting.parameter_map([1], [1], [[1.5]], quantity=COUNT), "values contains 1.5"),
        (lambda: plotting.parameter_map([1], [1], [[1]], quantity="counts"), "quantity='counts'"),
        (
            lambda: plotting.parameter_map([1], [1], [[1]], parameters="ab"),
            "parameters='ab' must contain two",
        ),
        (lambda: plotting.parameter_map([1], [1], [[1]], certified=[[1]]), "and dtype int64"),
        (lambda: plotting.bifurcation([1.0], []), "points has 0 entries, but values has 1"),
        (lambda: plotting.bifurcation([1.0], [[[1.0]]]), r"points\[0\] has shape \(1, 1\)"),
        (lambda: plotting.bifurcation([1.0], [[np.nan]]), r"points\[0\] is nan"),
        (
            lambda: plotting.bifurcation([1.0], [[1.0]], certified=[True, True]),
            "certified has shape",
        ),
        (lambda: plotting.multipliers(np.eye(2)), r"values has shape \(2, 2\).*use `spectrum`"),
        (lambda: plotting.multipliers([np.nan]), "values is .*nan.* at index"),
        (lambda: plotting.certificate(box(shape=(1, 4, 2, 3))), r"box has shape \(1, 4, 2, 3\)"),
        (lambda: plotting.certificate(box(), np.ones((4, 2))), "states has 2 columns.*n_units=3"),
        (lambda: plotting.certificate(box(), np.full((4, 3), np.nan)), "states is nan"),
        (lambda: plotting.certificate(box(), units=[3]), r"units=\[3\] .* in \[0, 2\]"),
        (lambda: plotting.forgetting(held(), [-1.0]), "differences must not be negative"),
        (lambda: plotting.forgetting(held(), [np.nan]), "differences is nan"),
        (lambda: plotting.forgetting(held(), distance=0.0), "distance=0.0"),
        (lambda: plotting.forgetting(held(0.0)), "does not hold"),
    ],
)
def test_errors_name_value_and_bound(call, message):
    with pytest.raises(ValueError, match=message):
        call()
    assert not plt.get_fignums()  # nothing half drawn is left behind


def test_wrong_types_are_named():
    with pytest.raises(TypeError, match="has no box"):
        plotting.certificate(np.ones((2, 3)))
    with pytest.raises(TypeError, match="has no steps_to"):
        plotting.forgetting(box())
    with pytest.raises(TypeError, match="must be a Reservoir"):
        plotting.phase_portrait(PATHS, inputs=[1.0])
    with pytest.raises(TypeError, match="source is complex"):
        plotting.phase_portrait(1j * np.ones((3, 2)))

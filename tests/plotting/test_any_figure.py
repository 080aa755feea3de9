"""Plots in the figures of others: limits, legends, styles, sizes, gaps, single points."""

import inspect
import io
import itertools

import numpy as np
import pytest

plt = pytest.importorskip("matplotlib.pyplot")
from matplotlib.collections import Collection  # noqa: E402
from matplotlib.colors import to_rgba  # noqa: E402
from matplotlib.lines import Line2D  # noqa: E402
from test_plotting import DRAWINGS as OF_ARRAYS  # noqa: E402
from test_plotting import NOISE, SINE, backtested, forecasts  # noqa: E402
from test_stability_plots import DRAWINGS as OF_STABILITY  # noqa: E402

from reservoir import plotting  # noqa: E402

pytestmark = pytest.mark.one_engine

DRAWINGS = OF_ARRAYS | OF_STABILITY
STYLES = ("default", "dark_background", "seaborn-v0_8", "ggplot", "grayscale")
every_plot = pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
# Drawings whose names have several words are variants of the others: slow where layouts are made.
each_function = pytest.mark.parametrize(
    "draw",
    [
        pytest.param(draw, id=name, marks=[pytest.mark.slow] if " " in name else [])
        for name, draw in DRAWINGS.items()
    ],
)


def drawn(ax):
    """Lay out all that is in the figure of some axes, and return them as a list."""
    every = list(np.ravel(ax))
    every[0].figure.figure.draw_without_rendering()  # the whole, if the axes are in a part
    return every


@pytest.mark.parametrize("name", plotting.__all__)
def test_every_plot_ends_with_the_same_parameters_and_is_drawn_here(name):
    plot = getattr(plotting, name)
    parameters = list(inspect.signature(plot).parameters.values())
    assert [p.name for p in parameters[-3:]] == ["legend", "line_kw", "ax"]
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters[-3:])
    assert [p.default for p in parameters[-3:]] == [True, None, None]
    assert not any(p.kind is p.VAR_KEYWORD for p in parameters)
    assert name in {title.split()[0] for title in DRAWINGS}


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("size", [(3, 2), (6.4, 4.8)], ids=str)
@each_function
def test_a_new_figure_has_the_size_of_rc_params_and_its_legend_covers_no_axes(draw, size):
    with plt.rc_context({"figure.figsize": size}):
        every = drawn(draw(None))
    figure = every[0].figure.figure
    assert tuple(figure.get_size_inches()) == size
    assert all(ax.get_legend() is None for ax in every)
    boxes = [ax.get_window_extent() for ax in every]
    assert min(min(box.width, box.height) for box in boxes) > 0.08 * figure.dpi * size[1]
    for legend in every[0].figure.legends:
        assert not any(legend.get_window_extent().overlaps(box) for box in boxes)


@pytest.mark.fast_cases(1)
@each_function
def test_given_axes_keep_their_limits_and_their_neighbours(draw):
    figure, axes = plt.subplots(2, 2, figsize=(8, 6), sharey="row", layout="constrained")
    free, neighbour, fixed, other = axes.ravel()
    neighbour.plot([-1, 1], [-1, 1])
    fixed.set(xlim=(-3, 7), ylim=(0.5, 5))
    before = other.get_position().bounds, other.get_xlim()
    result = draw(free)
    assert np.ravel(result)[0] is free
    draw(fixed)
    assert (fixed.get_xlim(), fixed.get_ylim()) == ((-3, 7), (0.5, 5))
    assert free.get_autoscalex_on()
    assert free.get_autoscaley_on()
    assert (other.get_position().bounds, other.get_xlim()) == before
    assert not figure.legends
    drawn(free)


@pytest.mark.parametrize("legend", [True, False, "outside"])
def test_the_legend_is_drawn_where_it_is_asked_for(legend):
    ax = plt.subplots(layout="constrained")[1]
    drawn(plotting.forecast(SINE, SINE[60:], legend=legend, ax=ax))
    if legend is False:
        assert ax.get_legend() is None
        assert not plotting.forecast(SINE, SINE[60:], legend=False).figure.legends
        return
    box, place = ax.get_legend().get_window_extent(), ax.get_window_extent()
    inside = place.x0 <= box.x0 and box.x1 <= place.x1
    assert inside == (legend is True)
    assert inside or box.x0 >= place.x1


def test_legends_in_small_axes_are_short_and_in_full_ones_need_no_search():
    small = plt.figure(figsize=(2.5, 2)).subplots()
    plotting.forecast(SINE, {"a name of more than twenty letters": SINE[60:]}, ax=small)
    texts = [text.get_text() for text in small.get_legend().get_texts()]
    assert len(texts) == 3
    assert max(map(len, texts)) <= 22
    full = plt.figure().subplots()
    full.plot(np.zeros(30_000))
    plotting.forecast(SINE, SINE[60:], ax=full)
    assert full.get_legend()._loc == 1  # upper right


@pytest.mark.fast_cases(6)
@pytest.mark.parametrize("name", plotting.__all__)
def test_line_kw_reaches_the_subject_and_misspelt_names_leave_no_figure(name):
    if name in ("parameter_map", "states", "closed_loop_search", "backtest", "horizon_errors"):
        pytest.importorskip("pandas")
    plot = getattr(plotting, name)
    title = next(each for each in DRAWINGS if each.split()[0] == name)
    given = {}

    def with_kw(*args, ax, **options):
        return plot(*args, ax=ax, **options, **given)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(plotting, name, with_kw)
        given["line_kw"] = {"lw": 3.25, "label": "mine"}
        axes = np.ravel(DRAWINGS[title](None))
        lines = [each for ax in axes for each in ax.get_lines()]
        assert 3.25 in {each.get_linewidth() for each in lines}
        assert "mine" in [each.get_label() for each in lines if each.get_linewidth() == 3.25]
        plt.close("all")
        for wrong, error in (({"colour": "red"}, AttributeError), ("red", TypeError)):
            given["line_kw"] = wrong
            with pytest.raises(error):
                DRAWINGS[title](None)
            assert not plt.get_fignums()
        given["line_kw"], given["legend"] = None, "left"
        with pytest.raises(ValueError, match="legend='left' must be True, False or"):
            DRAWINGS[title](None)


@pytest.mark.fast_cases(6)
@every_plot
def test_axes_of_another_kind_are_refused(draw, request):
    space = plt.figure().add_subplot(projection="3d")
    if "phase_portrait" not in request.node.name:
        with pytest.raises(TypeError, match="ax has three dimensions, but this plot has two"):
            draw(space)


def luminance(colour):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    return np.dot(linear, (0.2126, 0.7152, 0.0722))


def contrast(colour, ground):
    """Return the contrast of a colour with alpha on an opaque ground, from 1 to 21."""
    rgba, ground = np.array(to_rgba(colour)), np.array(to_rgba(ground))
    seen = rgba[3] * rgba[:3] + (1 - rgba[3]) * ground[:3]
    dark, light = sorted((luminance(seen), luminance(ground)))
    return (light + 0.05) / (dark + 0.05)


def meaningful(ax):
    """Yield the name and the colour of each curve, marker and outline that is in the legend."""
    for handle, name in zip(*ax.get_legend_handles_labels(), strict=True):
        artist = handle[0] if isinstance(handle, tuple) else handle
        if isinstance(artist, Line2D):
            if artist.get_linestyle() != "None":
                yield name, artist.get_color()
            elif artist.get_marker() not in ("None", None, ""):
                edge = artist.get_markeredgecolor(), artist.get_markerfacecolor()
                assert artist.get_markeredgewidth() > 0 or artist.get_marker() == "o"
                yield name, edge[artist.get_markeredgewidth() == 0]
        elif isinstance(artist, Collection):
            for colour in artist.get_edgecolor():
                yield name, colour
        elif hasattr(artist, "get_edgecolor") and np.ndim(artist.get_edgecolor()) == 1:
            yield name, artist.get_edgecolor()


@pytest.mark.fast_cases(12)
@pytest.mark.parametrize("style", STYLES)
@every_plot
def test_everything_with_a_meaning_is_seen_in_every_style(draw, style):
    with plt.style.context(style):
        figure, ax = plt.subplots()
        for each in np.ravel(draw(ax)):
            for name, colour in meaningful(each):
                assert contrast(colour, each.get_facecolor()) >= 2, (name, colour)
        plt.close(figure)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("style", STYLES)
def test_twenty_curves_differ_without_their_colours(style):
    with plt.style.context(style):
        ax = plotting.jacobian_norms(
            -np.ones((5, 20)).cumsum(axis=0), labels=[*"abcdefghijklmnopqrst"]
        )
        kinds = {(d.get_linestyle(), str(d.get_marker())) for d in ax.get_lines()[1:]}
        assert len(kinds) == 20


ONE_POINT = {
    "forecast": lambda: plotting.forecast(SINE[:9], [[0.5, 0.1, 0.9]], start=9, coverage=0.9),
    "states": lambda: plotting.states([[0.5, 0.2]]),
    "jacobian_norms": lambda: plotting.jacobian_norms([-0.3]),
    "temporal_gradients": lambda: plotting.temporal_gradients([0.3]),
    "memory_profile": lambda: plotting.memory_profile([0.8]),
    "penalty_path": lambda: plotting.penalty_path([0.1], [0.2]),
    "running_error": lambda: plotting.running_error([0.4]),
    "horizon_errors": lambda: plotting.horizon_errors(one_step()),
    "bifurcation": lambda: plotting.bifurcation([0.0], [[0.5]]),
    "forecast between gaps": lambda: plotting.forecast([np.nan, 1.0, np.nan], [2.0], start=3),
}


def one_step():
    result = backtested()
    result.errors = result.errors[result.errors["step"] == 1]
    return result


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("draw", ONE_POINT.values(), ids=ONE_POINT)
def test_one_point_is_seen(draw):
    ax = draw()
    drawn(ax)
    shown = [d for d in ax.get_lines() if len(d.get_xdata()) and d.get_gid() != "helper"]
    alone = [d for d in shown if np.isfinite(np.asarray(d.get_ydata(), dtype=float)).sum() == 1]
    assert alone
    assert all(d.get_marker() not in ("None", "", None) for d in alone)


GAPS = {
    "forecast": lambda: plotting.forecast(with_gap(SINE), with_gap(SINE[60:])),
    "forecast of two": lambda: plotting.forecast(
        with_gap(np.c_[SINE, SINE]), np.c_[SINE, SINE][60:]
    ),
    "states": lambda: plotting.states(with_gap(np.c_[SINE, SINE])),
    "memory_profile": lambda: plotting.memory_profile(with_gap(SINE**2)),
    "penalty_path": lambda: plotting.penalty_path(np.geomspace(1e-9, 1, 100), with_gap(SINE**2)),
    "running_error": lambda: plotting.running_error(with_gap(NOISE)),
    "horizon_errors": lambda: plotting.horizon_errors(backtested(gap=(4, 3))),
    "backtest": lambda: plotting.backtest(unknown_truth()),
}


def with_gap(rows):
    rows = np.array(rows)
    rows[3] = np.nan
    return rows


def unknown_truth():
    result = forecasts()
    result.forecasts.loc[3, "truth"] = np.nan
    return result


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("draw", GAPS.values(), ids=GAPS)
def test_a_gap_leaves_the_rest_of_the_curve(draw):
    ax = draw()
    drawn(ax)
    values = [np.asarray(d.get_ydata(), dtype=float) for d in ax.get_lines()]
    assert max(np.isfinite(each).sum() for each in values) >= 3
    assert np.isfinite([*ax.get_xlim(), *ax.get_ylim()]).all()


MANY = np.random.default_rng(0).normal(size=(10_000, 3))
TEN_THOUSAND_POINTS = {
    "forecast": lambda ax: plotting.forecast(MANY, MANY[5000:], ax=ax),
    "states": lambda ax: plotting.states(MANY, ax=ax),
    "residuals": lambda ax: plotting.residuals(MANY[:, 0], quantiles=True, ax=ax),
    "running_error": lambda ax: plotting.running_error(MANY, ax=ax),
    "phase_portrait": lambda ax: plotting.phase_portrait(MANY[:, :2], ax=ax),
    "bifurcation": lambda ax: plotting.bifurcation(
        np.arange(100), list(MANY[:, :1].reshape(100, 100)), ax=ax
    ),
    "memory_profile": lambda ax: plotting.memory_profile(np.abs(np.sin(MANY[:, 0])), ax=ax),
    "penalty_path": lambda ax: plotting.penalty_path(np.geomspace(1e-9, 1, 10_000), MANY**2, ax=ax),
    "jacobian_norms": lambda ax: plotting.jacobian_norms(MANY, ax=ax),
    "temporal_gradients": lambda ax: plotting.temporal_gradients(MANY**2, ax=ax),
    "spectrum": lambda ax: plotting.spectrum(MANY[:, 0] + 1j * MANY[:, 1], ax=ax),
}


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("draw", TEN_THOUSAND_POINTS.values(), ids=TEN_THOUSAND_POINTS)
def test_ten_thousand_points_are_drawn_in_a_plain_figure_into_a_small_file(draw):
    figure, ax = plt.subplots()
    draw(ax)
    file = io.BytesIO()
    figure.savefig(file, format="svg")
    assert file.tell() < 6e6


def test_dates_do_not_overlap():
    days = np.datetime64("2024-01-01") + np.arange(100)
    for size in ((3, 2), (6.4, 4.8), (20, 10)):
        with plt.rc_context({"figure.figsize": size}):
            ax = plotting.forecast(SINE, SINE[60:], index=days)
        drawn(ax)
        renderer = ax.figure.canvas.get_renderer()
        boxes = [t.get_window_extent(renderer) for t in ax.get_xticklabels() if t.get_text()]
        assert all(first.x1 <= second.x0 for first, second in itertools.pairwise(boxes))


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    "draw",
    [
        lambda: plotting.penalty_path(np.geomspace(1e-9, 1, 10), np.geomspace(220, 8e3, 10)).yaxis,
        lambda: plotting.residuals(1e-4 * NOISE, ax=plt.figure().subplots(2, 2)[0])[1].xaxis,
    ],
    ids=["scores over little more than a decade", "small errors"],
)
def test_numbers_do_not_overlap(draw):
    with plt.rc_context({"figure.figsize": (3.2, 2.4)}):
        axis = draw()
    axis.figure.draw_without_rendering()
    ticks = axis.get_major_ticks() + axis.get_minor_ticks()
    boxes = [tick.label1.get_window_extent() for tick in ticks if tick.label1.get_text()]
    seen = [box for box in boxes if box.width > 1 and box.height > 1]
    assert len(seen) > 1
    assert not any(a.overlaps(b) for a, b in itertools.combinations(seen, 2))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lines", "map"])
def test_three_hundred_units_of_ten_thousand_rows_are_a_small_file(kind):
    H = np.random.default_rng(0).normal(size=(10_000, 300))
    ax = plotting.states(H, units=300, kind=kind)
    file = io.BytesIO()
    ax.figure.savefig(file, format="svg")
    assert file.tell() < 8e6


@pytest.mark.slow
@every_plot
def test_a_poster(draw):
    with plt.rc_context({"figure.figsize": (33, 23), "font.size": 32, "lines.linewidth": 5}):
        drawn(draw(None))

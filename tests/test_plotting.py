"""Plots: what is drawn, where the forecast's start is marked, what is refused."""

import inspect
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

plt = pytest.importorskip("matplotlib.pyplot")
from matplotlib.colors import to_rgb  # noqa: E402
from test_stability_plots import DRAWINGS as OF_STABILITY  # noqa: E402

from reservoir import plotting  # noqa: E402

TIME = np.arange(100)
SINE = np.sin(0.2 * TIME)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def labels(ax):
    return ax.get_legend_handles_labels()[1]


def line(ax, label):
    return next(drawn for drawn in ax.get_lines() if drawn.get_label() == label)


# As ESNForecaster.search_results_: two networks, three penalties.
TRIED = {
    "spectral_radius": np.repeat([0.05, 0.8], 3),
    "leak_rate": np.repeat([1.0, 0.3], 3),
    "alpha": np.tile([1e-3, 1e-9, 1e-25], 2),
    "score": np.array([1.0, 2.0, 4.0, 1.0, 3.0, 2.0]),
    "score_left_out": np.full(6, np.nan),
    "rank": np.array([5, 3, 1, 6, 2, 4]),
    "observed": "all",
    "noise": 1e-8,
}


def searched(params, scores):
    """As ClosedLoopSearchCV.cv_results_."""
    order = np.argsort(np.argsort(-np.array(scores)))
    return {"params": params, "mean_test_score": scores, "rank_test_score": order + 1}


DRAWINGS = {
    "forecast": lambda ax: plotting.forecast(SINE, SINE[60:], ax=ax),
    "forecast of two outputs": lambda ax: plotting.forecast(
        np.c_[SINE, TIME], np.c_[SINE, TIME][60:], ax=ax
    ),
    "states": lambda ax: plotting.states(np.outer(SINE, np.ones(9)), ax=ax),
    "spectrum": lambda ax: plotting.spectrum(np.eye(3), ax=ax),
    "penalty_path": lambda ax: plotting.penalty_path([1e-3, 1.0], [2.0, 1.0], ax=ax),
    "closed_loop_search": lambda ax: plotting.closed_loop_search(TRIED, ax=ax),
    "memory_profile": lambda ax: plotting.memory_profile([1.0, 0.5], ax=ax),
    "jacobian_norms": lambda ax: plotting.jacobian_norms([[-0.1, -1.0], [-0.2, -2.0]], ax=ax),
}


@pytest.mark.parametrize("name", plotting.__all__)
def test_every_plot_takes_axes_last_returns_them_and_is_drawn_here(name):
    plot = getattr(plotting, name)
    last = list(inspect.signature(plot).parameters.values())[-1]
    assert (last.name, last.kind, last.default) == ("ax", last.KEYWORD_ONLY, None)
    assert inspect.signature(plot).return_annotation == "Axes"
    drawn = {title.split()[0] for title in [*DRAWINGS, *OF_STABILITY]}
    assert name in drawn | {"bias_surface"}  # its axes have three dimensions: a test of its own


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
def test_draws_on_the_axes_given_or_on_a_small_new_figure(draw):
    given = plt.figure().subplots()
    assert draw(given) is given
    fresh = draw(None)
    assert fresh is not given
    assert tuple(fresh.figure.get_size_inches()) == (7, 3)
    assert fresh.get_xlabel()
    fresh.figure.canvas.draw()  # and it renders without a warning


def test_forecast_ends_with_the_truth_unless_told_where_it_starts():
    ax = plotting.forecast(SINE, SINE[70:])
    assert line(ax, "start of the forecast").get_xdata()[0] == 70
    np.testing.assert_array_equal(line(ax, "forecast").get_xdata(), TIME[70:])
    beyond = plotting.forecast(SINE, SINE[:40], start=90)
    assert line(beyond, "forecast").get_xdata()[-1] == 129
    assert line(beyond, "truth").get_xdata()[-1] == 99


def test_forecast_takes_dates():
    months = np.datetime64("2000-01") + TIME
    ax = plotting.forecast(SINE, SINE[70:], index=months, labels=["anomaly, K"])
    assert ax.get_xlabel() == "time"
    assert ax.get_ylabel() == "anomaly, K"
    ax.figure.canvas.draw()


def test_outputs_are_stacked_without_crossing():
    Y = np.c_[SINE, 100 + 50 * SINE]
    ax = plotting.forecast(Y, Y[60:], labels=["x", "y"])
    assert [text.get_text() for text in ax.get_yticklabels()] == ["x", "y"]
    first, second = (d.get_ydata() for d in ax.get_lines() if len(d.get_xdata()) == len(Y))
    assert first.min() > second.max()


def test_a_constant_output_is_drawn():
    Y = np.c_[SINE, np.ones(100)]
    plotting.forecast(Y, Y[60:]).figure.canvas.draw()


def test_truth_and_forecast_differ_in_black_and_white():
    ax = plotting.forecast(SINE, SINE[60:])
    truth, guess = line(ax, "truth"), line(ax, "forecast")
    assert truth.get_linestyle() != guess.get_linestyle()
    grey = [np.dot(to_rgb(drawn.get_color()), (0.299, 0.587, 0.114)) for drawn in (truth, guess)]
    assert grey[0] - grey[1] > 0.25


def test_states_choose_units():
    H = np.outer(SINE, np.arange(1, 10))
    ax = plotting.states(H, units=[8, 0])
    assert [text.get_text() for text in ax.get_yticklabels()] == ["unit 8", "unit 0"]
    assert len(plotting.states(H, units=4).get_yticks()) == 4
    assert len(plotting.states(H[:, :2], units=4).get_yticks()) == 2
    plotting.states(np.zeros((5, 2)))


def test_spectrum_takes_matrices_reservoirs_and_eigenvalues():
    rotation = 0.5 * np.array([[0.0, -1.0], [1.0, 0.0]])

    class Holder:
        W = rotation

    class Fitted:
        reservoir_ = Holder()

    for source in (rotation, sp.csr_array(rotation), Holder(), Fitted(), [0.5j, -0.5j]):
        ax = plotting.spectrum(source)
        points = np.asarray(ax.collections[0].get_offsets())
        np.testing.assert_allclose(np.sort(points[:, 1]), [-0.5, 0.5])
        assert labels(ax) == ["unit circle", "spectral radius 0.5", "eigenvalues"]
        circle = line(ax, "unit circle")
        np.testing.assert_allclose(np.hypot(circle.get_xdata(), circle.get_ydata()), 1)


def test_penalty_path_marks_the_chosen():
    scores = [[0.3, 0.1], [0.1, 0.2], [0.5, 0.4]]
    ax = plotting.penalty_path([1e-4, 1e-2, 1.0], scores)
    assert labels(ax) == ["output 0", "output 1", "chosen: 0.01"]
    assert ax.get_xscale() == "log"
    each = plotting.penalty_path([1e-4, 1e-2, 1.0], scores, selected=[1e-2, 1e-4])
    assert labels(each)[2:] == ["chosen: 0.0001", "chosen: 0.01"]


def test_penalty_path_places_a_penalty_of_zero():
    ax = plotting.penalty_path([0, 1e-4, 1e-2], [0.1, 0.2, 0.3])
    assert "chosen: 0" in labels(ax)
    assert line(ax, "chosen: 0").get_xdata()[0] == pytest.approx(1e-5)
    plotting.penalty_path([0], [0.1]).figure.canvas.draw()


def test_closed_loop_search_draws_a_line_for_each_network_the_best_first():
    ax = plotting.closed_loop_search(TRIED)
    assert labels(ax) == ["radius 0.05", "radius 0.8, leak 0.3", "chosen: 1e-25"]
    assert ax.get_xscale() == "log"
    np.testing.assert_array_equal(line(ax, "radius 0.05").get_xdata(), [1e-25, 1e-9, 1e-3])
    np.testing.assert_array_equal(line(ax, "radius 0.05").get_ydata(), [4, 2, 1])
    assert line(ax, "chosen: 1e-25").get_xydata().tolist() == [[1e-25, 4]]
    one = plotting.closed_loop_search(TRIED, n_named=1)
    assert labels(one) == ["network", "others", "chosen: 1e-25"]


def test_closed_loop_search_draws_what_the_ranks_go_by():
    left_out = np.array([np.nan] * 3 + [1.0, 2.0, 4.0])
    both = TRIED | {"score_left_out": left_out, "rank": np.array([5, 6, 4, 3, 2, 1])}
    ax = plotting.closed_loop_search(both)
    assert line(ax, "chosen: 1e-25").get_xydata().tolist() == [[1e-25, 3]]  # (2 + 4) / 2


def test_closed_loop_search_takes_results_of_a_search_in_a_pipeline():
    params = [{"esn__alpha": a, "esn__n_units": n} for n in (50, 100) for a in (1e-2, 1e-9, 1e-12)]
    scores = [1.0, 2.0, np.nan, 1.0, 3.0, 2.0]
    ax = plotting.closed_loop_search(searched(params, scores))
    assert labels(ax) == ["units 100", "units 50", "chosen: 1e-09"]
    assert len(line(ax, "units 50").get_xdata()) == 2  # what has no score is left out


def test_memory_profile_starts_at_lag_one():
    ax = plotting.memory_profile([1.0, 0.5])
    np.testing.assert_array_equal(ax.get_lines()[0].get_xdata(), [1, 2])
    assert labels(ax) == ["memory capacity 1.50"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plotting.forecast(SINE, np.c_[SINE, SINE]), "2 columns and y_true 1"),
        (lambda: plotting.forecast(SINE[:5], SINE), r"row -95 of y_true; it must be in \[0, 5\]"),
        (lambda: plotting.forecast(SINE, SINE, start=101), r"start=101 .* in \[0, 100\]"),
        (lambda: plotting.forecast(SINE, SINE, index=[1, 2]), r"index has shape \(2,\)"),
        (lambda: plotting.forecast(SINE, SINE, labels="xy"), "labels='xy' must be a list of 1"),
        (lambda: plotting.forecast([], SINE), r"y_true has shape \(0,\)"),
        (lambda: plotting.states(SINE), r"H has shape \(100,\)"),
        (lambda: plotting.states(np.ones((4, 3)), units=[3]), r"units=\[3\] .* in \[0, 2\]"),
        (lambda: plotting.states(np.ones((4, 3)), units=0), "units=0 must be at least 1"),
        (lambda: plotting.spectrum(np.ones((2, 3))), r"W has shape \(2, 3\)"),
        (lambda: plotting.spectrum(sp.csr_array((5001, 5001))), "W has 5001 units.*up to 5000"),
        (lambda: plotting.penalty_path([1.0], [1.0, 2.0]), "2 rows for 1 alphas"),
        (lambda: plotting.penalty_path([-1.0], [1.0]), "penalty -1.0"),
        (lambda: plotting.closed_loop_search({"a": 1}), "has the keys a: neither"),
        (lambda: plotting.closed_loop_search(TRIED | {"alpha": np.zeros(6)}), "penalty alpha=0.0"),
        (
            lambda: plotting.closed_loop_search(TRIED | {"score": np.full(6, np.nan)}),
            "No candidate",
        ),
        (lambda: plotting.closed_loop_search(searched([{"n_units": 3}], [1.0])), "found were none"),
        (lambda: plotting.closed_loop_search(TRIED, n_named=0), "n_named=0 must be at least 1"),
        (lambda: plotting.memory_profile([[1.0]]), r"profile has shape \(1, 1\)"),
    ],
)
def test_refusals_say_value_and_bound(call, message):
    with pytest.raises(ValueError, match=message):
        call()
    assert not plt.get_fignums()  # nothing half drawn is left behind


def test_without_matplotlib_the_error_names_the_extra():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from reservoir import plotting\n"
        "try: plotting.memory_profile([1.0])\n"
        "except ImportError as error: print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "reservoir-esn[plot]"' in run.stdout

"""Progress is weighed by cost: with a clock that follows the costs, promises are exact."""

import sys
from itertools import pairwise

import numpy as np
import pytest

from reservoir import ESNClassifier, ESNForecaster, ESNRegressor
from reservoir.datasets import lorenz, narma
from reservoir.estimators import reporting
from reservoir.estimators.reporting import ProgressReport, not_reported
from reservoir.estimators.series.fits import fit_networks
from reservoir.loops.bank_search import Search
from reservoir.loops.loop_design import Trajectories
from reservoir.series_models.candidates import candidates_for, costs_of
from reservoir.series_models.series_data import SeriesData

pytestmark = pytest.mark.one_engine


class Clock:
    """A clock that stands still between the pieces of work that are given to it."""

    def __init__(self):
        self.now = 5.0

    def work(self, costs):
        for cost in costs:
            self.now += cost
            yield cost

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    clock = Clock()
    monkeypatch.setattr(reporting, "_now", clock)
    return clock


class Recorder:
    """A report that keeps the expected cost of each part of the work, and of what follows."""

    def __init__(self):
        self.parts = []

    def __call__(self, results, costs, what, *, later=0.0, unit="network"):
        self.parts.append((what, list(map(float, costs)), later))
        return results


def test_remaining_time_follows_from_costs(clock, caplog):
    report, costs = ProgressReport(1), [1.0, 1.0, 6.0, 12.0]
    assert list(report.follow(clock.work(costs), costs, "trying", later=20.0)) == costs
    list(report.follow(clock.work([20.0]), [20.0], "fitting", unit="model"))
    assert caplog.messages == [
        "fit, trying: network 1 of 4, about 39 s remaining",
        "fit, trying: network 2 of 4, about 38 s remaining",
        "fit, trying: network 3 of 4, about 32 s remaining",
        "fit, trying: network 4 of 4, about 20 s remaining",
        "fit, fitting: model 1 of 1, less than 1 s remaining",
    ]


def test_work_that_turns_up_lowers_the_share(clock, caplog):
    report = ProgressReport(1)
    list(report.follow(clock.work([3.0, 3.0]), [3.0, 3.0], "trying"))
    list(report.follow(clock.work([3.0] * 2), [3.0] * 2, "trying others"))
    assert "less than 1 s" in caplog.messages[1]
    assert "about 3 s" in caplog.messages[2]


def test_many_results_share_lines(clock, caplog):
    costs = [1.0] * 500
    list(ProgressReport(1, "series").follow(clock.work(costs), costs))
    assert len(caplog.messages) == 20
    assert caplog.messages[0] == "fit: series 25 of 500, about 475 s remaining"


def test_rows_are_counted_without_results(clock, caplog):
    report = ProgressReport(1)
    report.start(100.0, later=100.0)
    clock.now += 50
    report.advance(50.0)
    assert caplog.messages == ["fit: 25%, about 150 s remaining"]


def test_it_is_silent_by_default(clock, caplog, capsys):
    report, costs = ProgressReport(0), [1.0, 2.0]
    results = clock.work(costs)
    assert report.follow(results, costs) is results
    report.start(1.0)
    report.advance(1.0)
    report.finish()
    X, y = narma(300, random_state=0)
    ESNRegressor(20, random_state=0).fit(X, y)
    assert not caplog.messages
    assert capsys.readouterr() == ("", "")


def test_a_bar_shows_the_share_of_the_cost(monkeypatch):
    tqdm = pytest.importorskip("tqdm.auto")
    bars = []

    class Bar:
        def __init__(self, *, total, bar_format, **options):
            assert total == 100
            bars.append(self)
            self.shares, self.closed = [], False

        def set_description_str(self, text, refresh):
            self.title = text

        def set_postfix_str(self, text, refresh):
            self.text = text

        def refresh(self):
            self.shares.append(self.n)

        def close(self):
            self.closed = True

    monkeypatch.setattr(tqdm, "tqdm", Bar)
    report = ProgressReport(1)
    list(report.follow("ab", [1.0, 3.0], "trying", later=4.0))
    report.finish()
    (bar,) = bars
    assert bar.shares == [12.5, 50.0, 100]
    assert (bar.title, bar.text, bar.closed) == ("reservoir fit, trying", "network 2 of 2", True)


def test_the_bar_is_one_that_tqdm_draws(capsys):
    pytest.importorskip("tqdm.auto")
    report = ProgressReport(1)
    list(report.follow("ab", [1.0, 3.0], "trying"))
    report.finish()
    text = capsys.readouterr().err
    assert "reservoir fit, trying:  25%" in text
    assert "100%" in text


# --- what is expected ----------------------------------------------------------------------------


def expected_after(parts):
    """The cost in all that is known when each part begins: what is done, the part, what follows."""
    done = np.cumsum([0.0] + [sum(costs) for _, costs, _ in parts])
    return [done[k] + sum(costs) + later for k, (_, costs, later) in enumerate(parts)]


def searched(rows, **options):
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    data, report = Trajectories([rows], [np.zeros((len(rows), 0))]), Recorder()
    clip = np.full((2, rows.shape[1]), [[-9.0], [9.0]])
    options = {"plans": None, "n_members": 2, "n_steps": None, "seed": 0, "n_jobs": None} | options
    Search(data, tuple(clip), **options, report=report).run()
    return report.parts


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_a_search_expects_all_its_parts(noise):
    rows = lorenz(500, random_state=0)
    rows += noise * rows.std(axis=0) * np.random.default_rng(0).normal(size=rows.shape)
    parts = searched(rows)
    assert [what for what, _, _ in parts][:: len(parts) - 1] == ["trying", "fitting"]
    totals = expected_after(parts)
    assert parts[-1][2] == 0.0
    # with noise, other models are tried too, and it is not known from the start which
    np.testing.assert_allclose(totals, totals[-1], rtol=0.5 if noise else 1e-9)


def test_large_networks_cost_more():
    plans = [{"n_units": 10}, {"n_units": 20}, {"n_units": 40}]
    report = Recorder()
    model = ESNForecaster(search=plans, n_networks=2, random_state=0)
    settings = model._settings(0, report)
    rows = lorenz(200, washout=200, random_state=0)
    fit_networks([rows], [], settings)
    (what, costs, later), *_ = report.parts
    assert what == "trying"
    assert all(a < b for a, b in pairwise(costs))
    assert later > 0


def test_models_of_a_series_are_weighed():
    def costs(n_rows, n_networks=3):
        data = SeriesData.complete(np.arange(1.0, n_rows + 1)[:, None], np.zeros((n_rows, 0)))
        candidates = candidates_for(data, n_networks)
        names = [each.name for each in candidates]
        return dict(zip(names, costs_of(candidates, [data]), strict=True))

    one = costs(100)
    assert one["naive, period 1"] < one["theta"] < one["direct network"] < one["network"]
    assert costs(100, n_networks=6)["network"] == 2 * one["network"]
    assert costs(10_000)["theta"] > 10 * one["theta"]


def test_series_are_weighed_by_their_rows(monkeypatch):
    seen = []
    follow = ProgressReport.follow

    def watched(self, results, costs, what="", **options):
        seen.append((what, list(costs)))
        return follow(self, results, costs, what, **options)

    monkeypatch.setattr(ProgressReport, "follow", watched)
    rng = np.random.default_rng(0)
    panel = [rng.normal(size=(n, 1)).cumsum(axis=0) for n in (30, 900)]
    ESNForecaster(panel="each", season=1, n_networks=1, random_state=0).fit(panel)
    ((what, costs),) = seen
    assert what == "models"
    assert costs[1] > 2 * costs[0]


def test_rows_of_sequences_are_counted(clock, caplog):
    X, y = narma(2000, random_state=0)
    ESNRegressor(20, n_lags=1, verbose=1, random_state=0).fit(X, y)
    shares = [int(text.split("%")[0].split()[-1]) for text in caplog.messages]
    assert shares == sorted(shares)
    assert 90 <= shares[-1] <= 100  # the rest is the solution of the readout
    caplog.clear()
    sequences = [X[:6000] for _ in range(10)]
    labels = [(rows[:, 0] > 0.25).astype(int) for rows in sequences]
    ESNClassifier(10, verbose=1, random_state=0).fit(sequences, labels)
    assert "batch 1 of" in caplog.messages[0]


def test_not_reported_passes_results_on():
    results = iter([1, 2])
    assert not_reported(results, [1.0, 2.0], "trying", later=3.0, unit="model") is results

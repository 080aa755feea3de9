"""Scores of anomalies against a naive loop; windows, gaps, echoes; errors."""

import numpy as np
import pytest

from reservoir.metrics import anomaly_scores


def usual(errors):
    errors = errors[np.isfinite(errors)]
    return max(1.4826 * np.median(errors), 1.2533 * errors.mean())


@pytest.mark.parametrize("seed", range(3))
def test_scores_are_errors_over_their_usual_size(seed):
    rng = np.random.default_rng(seed)
    y, forecasts = rng.normal(size=(2, 300, 2))
    y[5, 1], y[7] = np.nan, np.nan
    errors = np.abs(y - forecasts)
    whole = np.delete(errors / [usual(column) for column in errors.T], 7, axis=0)
    scores = anomaly_scores(y, forecasts)
    np.testing.assert_allclose(np.delete(scores, 7), np.nanmax(whole, axis=1))
    assert np.isnan(scores[7])
    windowed = anomaly_scores(y[:, 0], forecasts[:, 0], window=20)
    naive = [e / usual(errors[max(t - 20, 0) : max(t, 20), 0]) for t, e in enumerate(errors[:, 0])]
    np.testing.assert_allclose(windowed, naive)


@pytest.mark.parametrize("seed", range(5))
def test_normal_errors_have_scores_of_normal_numbers(seed):
    errors = np.random.default_rng(seed).normal(0, 7, 20_000)
    scores = anomaly_scores(errors, np.zeros(20_000))
    assert np.mean(scores > 1.96) == pytest.approx(0.05, abs=0.006)
    errors[::50] *= 100  # 2 % of the rows do not hide each other
    assert np.mean(anomaly_scores(errors, np.zeros(20_000))[::50] > 3) > 0.7


def test_rows_after_the_highest_scores_are_skipped():
    y = 1 + 0.01 * np.sin(np.arange(300))
    y[[100, 102, 250]] = 90, 80, 70
    scores = anomaly_scores(y, np.ones(300), skip=3)
    assert np.flatnonzero(np.isnan(scores)).tolist() == [101, 102, 103, 251, 252, 253]
    assert np.isfinite(anomaly_scores(y, np.ones(300))).all()


def test_constant_stretches_and_exact_forecasts_give_no_nan():
    y = np.r_[np.zeros(50), np.random.default_rng(0).normal(size=50)]
    assert np.isfinite(anomaly_scores(y, np.zeros(100), window=10)).all()
    assert not anomaly_scores(np.ones(10), np.ones(10)).any()


@pytest.mark.parametrize("error", [0.01, 1.0, 100.0])
def test_a_row_is_not_measured_by_itself(error):
    known = np.r_[np.full(9, np.nan), 0.0]
    for y in ([error], np.full(9, error), known + error, np.c_[np.ones(10), known + error]):
        with pytest.raises(ValueError, match=r"rows with a value .* needs 10\. To score rows as"):
            anomaly_scores(y, np.zeros(np.shape(y)))


def test_rows_as_they_arrive_and_windows_of_gaps(global_random_seed):
    errors = np.random.default_rng(global_random_seed).normal(size=60)
    scores = anomaly_scores(errors, np.zeros(60), window=20)
    alone = [
        anomaly_scores(errors[t - 20 : t + 1], np.zeros(21), window=20)[-1] for t in range(20, 60)
    ]
    np.testing.assert_allclose(alone, scores[20:])
    # one value in the window is no measure of the next
    errors[20:39] = np.nan
    scores = anomaly_scores(errors, np.zeros(60), window=20)
    assert scores[40] == pytest.approx(abs(errors[40]) / usual(abs(errors)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 2}, "window=2 must be at least 10"),
        ({"window": 30}, "window=30 is longer than y, which has 20 rows"),
        ({"skip": -1}, "skip=-1 must be at least 0"),
        ({"forecasts": np.ones(19)}, "forecasts has shape"),
        ({"forecasts": np.full(20, np.inf)}, "infinity"),
        ({"forecasts": np.full(20, np.nan)}, "No row has both a value of y and a forecast"),
    ],
)
def test_errors_name_value_and_bound(options, message):
    arguments = {"y": np.arange(20.0), "forecasts": np.ones(20)} | options
    with pytest.raises(ValueError, match=message):
        anomaly_scores(arguments.pop("y"), arguments.pop("forecasts"), **arguments)

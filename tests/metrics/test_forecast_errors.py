"""Errors of forecasts: definitions, theory, and the values of other packages."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, mean_pinball_loss, mean_squared_error

from reservoir.metrics import coverage, mase, pinball, rmsse, smape

SEEDS = range(5)


def series(seed, n_outputs=2):
    """A training series, what followed, and a forecast of it."""
    rng = np.random.default_rng(seed)
    y = 50 + np.cumsum(rng.normal(size=(60, n_outputs)), axis=0)
    return y[:48], y[48:], y[48:] + rng.normal(size=(12, n_outputs))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("season", [1, 12])
def test_scaled_errors_against_their_definitions(seed, season):
    train, truth, guess = series(seed)
    steps = [train[t] - train[t - season] for t in range(season, len(train))]
    naive = np.mean(np.abs(steps), axis=0), np.sqrt(np.mean(np.square(steps), axis=0))
    each = {"y_train": train, "season": season, "multioutput": "raw_values"}
    mae = mean_absolute_error(truth, guess, multioutput="raw_values")
    rmse = np.sqrt(mean_squared_error(truth, guess, multioutput="raw_values"))
    np.testing.assert_allclose(mase(truth, guess, **each), mae / naive[0])
    np.testing.assert_allclose(rmsse(truth, guess, **each), rmse / naive[1])
    for metric in (mase, rmsse):
        raw = metric(truth, guess, **each)
        assert metric(truth, guess, y_train=train, season=season) == pytest.approx(raw.mean())
        weighted = metric(truth, guess, **(each | {"multioutput": [3.0, 1.0]}))
        assert weighted == pytest.approx((3 * raw[0] + raw[1]) / 4)
        moved = metric(
            *(-7 * part + 2 for part in (truth, guess)), **(each | {"y_train": -7 * train + 2})
        )
        np.testing.assert_allclose(moved, raw)


@pytest.mark.parametrize("seed", SEEDS)
def test_other_errors_against_their_definitions(seed):
    _, truth, guess = series(seed)
    terms = [
        [200 * abs(a - b) / (abs(a) + abs(b)) for a, b in zip(*columns, strict=True)]
        for columns in zip(truth.T, guess.T, strict=True)
    ]
    np.testing.assert_allclose(smape(truth, guess, multioutput="raw_values"), np.mean(terms, 1))
    assert pinball(truth, guess, quantile=0.3) == mean_pinball_loss(truth, guess, alpha=0.3)
    assert pinball(truth, guess, quantile=0.5) == pytest.approx(
        mean_absolute_error(truth, guess) / 2
    )
    low, high = guess - 1, guess + 0.5
    rows = zip(low.ravel(), truth.ravel(), high.ravel(), strict=True)
    assert coverage(truth, low, high) == pytest.approx(np.mean([a <= t <= b for a, t, b in rows]))
    for metric in (smape, lambda *args, **kw: pinball(*args, quantile=0.1, **kw)):
        kept = metric(truth[[3, 3, 5]], guess[[3, 3, 5]])
        weights = np.zeros(12)
        weights[[3, 5]] = 2.0, 1.0
        assert metric(truth, guess, sample_weight=weights) == pytest.approx(kept)


def test_the_naive_forecast_of_its_own_training_series_has_the_scaled_error_one():
    train, *_ = series(0)
    assert mase(train[12:], train[:-12], y_train=train, season=12) == pytest.approx(1)
    assert rmsse(train[12:], train[:-12], y_train=train, season=12) == pytest.approx(1)


def test_unknown_training_values_are_left_out_of_the_scale():
    train, truth, guess = series(0, 1)
    gaps = train.copy()
    gaps[[0, 1, 20]] = np.nan
    steps = np.abs(np.diff(gaps[:, 0]))
    expected = mean_absolute_error(truth, guess) / np.mean([s for s in steps if s == s])
    assert mase(truth, guess, y_train=gaps) == pytest.approx(expected)


def test_the_mean_pinball_loss_is_least_for_the_quantile():
    rng = np.random.default_rng(0)
    y = rng.exponential(size=4001)
    for quantile in (0.05, 0.5, 0.9):
        at = np.quantile(y, quantile)
        losses = [
            pinball(y, np.full(4001, at + shift), quantile=quantile) for shift in (-0.1, 0, 0.1)
        ]
        assert np.argmin(losses) == 1


def test_coverage_of_normal_intervals_is_within_two_standard_errors_of_nominal():
    inside = [
        coverage(
            np.random.default_rng(seed).normal(size=400), *np.full((2, 400), [[-1.645], [1.645]])
        )
        for seed in range(20)
    ]
    assert abs(np.mean(inside) - 0.9) < 2 * np.sqrt(0.9 * 0.1 / 8000)
    ends = np.zeros(3)
    assert coverage(ends, ends, ends) == 1
    assert coverage(ends, ends - np.inf, ends + np.inf) == 1


def test_smape_with_zeros_and_extremes():
    assert smape([0.0, 0.0], [0.0, 0.0]) == 0
    assert smape([0.0, 1.0], [1e-300, 1.0]) == pytest.approx(100)
    assert smape([1.0], [-1.0]) == 200
    assert smape([1e308], [-1e308]) == 200


def test_scaled_errors_do_not_overflow():
    train, truth, guess = series(0)
    for factor in (1e-300, 1e300):
        scaled = (factor * part for part in (truth, guess))
        assert rmsse(*scaled, y_train=factor * train) == pytest.approx(
            rmsse(truth, guess, y_train=train)
        )


def test_against_sktime(sktime):
    from sktime.performance_metrics import forecasting as of_sktime

    train, truth, guess = series(0)
    raw = {"multioutput": "raw_values"}  # averages over outputs divide means by means there
    each, theirs = {"y_train": train, "season": 12}, {"y_train": train, "sp": 12}
    scaled = of_sktime.mean_absolute_scaled_error(truth, guess, **theirs, **raw)
    np.testing.assert_allclose(mase(truth, guess, **each, **raw), scaled)
    root = of_sktime.mean_squared_scaled_error(truth, guess, square_root=True, **theirs, **raw)
    np.testing.assert_allclose(rmsse(truth, guess, **each, **raw), root)
    symmetric = of_sktime.mean_absolute_percentage_error(truth, guess, symmetric=True, **raw)
    np.testing.assert_allclose(smape(truth, guess, **raw), 100 * symmetric)


TRAIN = np.arange(10.0)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: mase([1.0], [1.0], y_train=np.ones(9)), "Column 0 of y_train has no two known"),
        (lambda: rmsse([1.0], [1.0], y_train=[1, 2, 1, 2], season=2), "2 rows apart that differ"),
        (lambda: mase([1.0], [1.0], y_train=[1, np.nan, 2]), "Column 0 of y_train has no two"),
        (lambda: mase([1.0], [1.0], y_train=TRAIN, season=10), "in y_train, which has 10"),
        (lambda: mase([1.0], [1.0], y_train=TRAIN, season=0), "season=0 must be at least 1"),
        (lambda: mase([1.0], [1.0], y_train=np.ones((9, 2))), "has 2 columns, but y_true has 1"),
        (lambda: mase([1.0], [1.0, 2.0], y_train=TRAIN), r"but y_pred has shape \(2, 1\)"),
        (lambda: mase([np.nan], [1.0], y_train=TRAIN), "y_true contains NaN"),
        (lambda: mase([1.0], [1.0], y_train=TRAIN, multioutput="mean"), "multioutput='mean'"),
        (lambda: smape([1.0], [np.inf]), "y_pred contains infinity"),
        (lambda: smape([1.0], [1.0], multioutput=[1.0, 2.0]), r"multioutput has shape \(2,\)"),
        (lambda: smape([1.0], [1.0], sample_weight=[-1.0]), "Negative values"),
        (lambda: pinball([1.0], [1.0], quantile=1.0), r"quantile=1.0 .* in \(0, 1\)"),
        (lambda: coverage([1.0, 1.0], [0, 3], [2, 2]), "low=3 is above high=2 in row 1, column 0"),
        (lambda: coverage([1.0], [np.nan], [2.0]), "low is NaN in row 0"),
        (lambda: coverage([1.0], [0.0], [[1.0, 2.0]]), r"but high has shape \(1, 2\)"),
    ],
)
def test_errors_name_value_and_bound(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_season_that_is_no_whole_number_raises():
    with pytest.raises(TypeError, match="season must be an integer; got 52"):
        mase([1.0], [1.0], y_train=TRAIN, season=52.18)

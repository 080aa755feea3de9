"""Closed loops with `clip`: bounds of what is fed back, through pipelines and feedback weights."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from reservoir import ESNRegressor, forecast
from reservoir.datasets import mackey_glass, narma
from reservoir.dynamics import Reservoir, run_closed_loop

pytestmark = pytest.mark.one_engine


def test_clipping_holds_what_is_fed_back_and_returns_what_came_out():
    res = Reservoir([[0.5]], [[1.0]], [0.0], activation="identity")
    readout = (np.array([[2.0]]), np.zeros(1))
    rows, _ = run_closed_loop(res, readout, 4, initial_output=[1.0], clip=(-0.5, 0.5))
    x, fed, expected = 0.0, 0.5, []
    for _ in range(4):
        x = 0.5 * x + fed
        expected.append(2 * x)
        fed = np.clip(2 * x, -0.5, 0.5)
    assert rows[:, 0] == pytest.approx(expected)
    for bad in ((1.0, 0.0), (np.nan, 1.0), ([0.0, 0.0], 1.0)):
        with pytest.raises(ValueError, match="clip="):
            run_closed_loop(res, readout, 4, initial_output=[1.0], clip=bad)


def test_clipped_forecasts_stay_where_the_certificate_holds():
    series = mackey_glass(1200, random_state=0).ravel()
    options = {"topology": "orthogonal", "bias": "stable", "n_lags": 1, "random_state": 0}
    esn = ESNRegressor(80, spectral_radius=0.99, leak_rate=0.3, **options)
    esn.fit(series[:999, None], series[1:1000])
    plain, clipped = esn.forecast(150), esn.forecast(150, clip=True)
    low, high = esn.certificate_.input_range[:, 0]
    if ((plain >= low) & (plain <= high)).all():
        assert np.allclose(plain, clipped, rtol=1e-9, atol=1e-9)  # it never left the range
    # a readout that drives the loop out of the range
    esn.intercept_ = esn.intercept_ + 0.5
    fed = np.clip(esn.forecast(150, clip=True), low, high)
    assert np.isfinite(fed).all()
    context = series[:300, None]
    rows = esn.forecast(50, context=context, clip=True)
    again, _ = run_closed_loop(
        esn.reservoir_,
        (np.atleast_2d(esn.coef_), np.atleast_1d(esn.intercept_)),
        49,
        initial_state=esn.predict(context, initial_state="zeros", return_state=True)[1],
        initial_output=rows[:1],
        include_input=True,
        clip=(low, high),
    )
    zeros = esn.forecast(50, context=context, initial_state="zeros", clip=True)
    assert zeros[1:] == pytest.approx(again[:, 0], rel=1e-6)


@pytest.mark.parametrize("affine", [True, False])
def test_clipping_through_a_pipeline_is_in_the_networks_units(affine):
    series = 20 + 5 * np.sin(0.3 * np.arange(600))
    scaler = StandardScaler()
    if not affine:
        scaler = FunctionTransformer(np.log, np.exp, check_inverse=False)
    options = {"spectral_radius": 0.5, "bias": "stable", "random_state": 0, "alpha": 1e-8}
    pipe = make_pipeline(scaler, ESNRegressor(60, leak_rate=1.0, **options))
    pipe.fit(series[:-1, None], series[1:])
    rows = forecast(pipe, 60, clip=True)
    assert rows == pytest.approx(forecast(pipe, 60), rel=1e-6)
    pipe[-1].intercept_ = pipe[-1].intercept_ + 100.0
    with pytest.warns(RuntimeWarning, match="left the range of the training targets"):
        wild = forecast(pipe, 5, clip=True)
    assert np.isfinite(wild).all()
    assert np.ptp(wild[1:]) < 60.0  # the loop cannot run away: what is fed back is held


def test_clipping_feedback_weights():
    X, y = narma(500, random_state=0)
    options = {"topology": "orthogonal", "bias": "stable", "random_state": 0}
    esn = ESNRegressor(40, feedback=True, **options).fit(X, y)
    exog = narma(60, random_state=1)[0]
    rows = esn.forecast(60, exog=exog, clip=True)
    low, high = esn.certificate_.output_range[:, 0]
    free = esn.forecast(60, exog=exog)
    if ((free >= low) & (free <= high)).all():
        assert np.allclose(rows, free)
    assert np.isfinite(rows).all()

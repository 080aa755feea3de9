"""Weather that satisfies its generating laws, and a load that follows weather and calendar."""

from __future__ import annotations

import numpy as np
import pytest

from reservoir.datasets import weather_and_load

SUN = slice(3, 11)
GROUND, AIR, LOWEST, HIGHEST, SPECIFIC, RELATIVE, DEW = range(12, 19)


def test_variables_keep_their_laws(global_random_seed):
    X, y, dates = weather_and_load(random_state=global_random_seed)
    assert X.shape == (8036, 19)
    assert y.shape == dates.shape == (8036,)
    assert str(dates[0]) == "1983-07-01"
    assert str(dates[-1]) == "2005-06-30"
    written = [f"{year:.0f}-{month:02.0f}-{day:02.0f}" for year, month, day in X[:, :3]]
    assert written == dates.astype(str).tolist()
    assert np.isfinite(X).all()
    assert y.min() > 0
    insolation, index, clear, diffuse, direct, clear_index, _, top = X[:, SUN].T
    np.testing.assert_allclose(insolation, index * top)
    np.testing.assert_allclose(clear, clear_index * top)
    assert (insolation < clear).all()
    assert (clear < top).all()
    assert (diffuse < clear).all()
    assert (direct > 0).all()
    assert (X[:, LOWEST] < X[:, AIR]).all()
    assert (X[:, AIR] < X[:, HIGHEST]).all()
    assert (X[:, DEW] <= X[:, AIR]).all()
    assert X[:, RELATIVE].min() > 0.3
    assert X[:, RELATIVE].max() < 1
    assert X[:, SPECIFIC].min() > 0


def test_seasons_and_anomalies(global_random_seed):
    X, _, dates = weather_and_load(random_state=global_random_seed)
    air, month = X[:, AIR], X[:, 1]
    day = (dates - dates.astype("datetime64[Y]").astype("datetime64[D]")).astype(int)
    angle = 2 * np.pi * day / 365.25
    waves = np.stack([np.ones(len(day)), np.cos(angle), np.sin(angle)], axis=1)
    mean, cosine, sine = np.linalg.lstsq(waves, air, rcond=None)[0]
    # anomalies that last leave standard errors of 0.11 and 0.16 degrees, and of 0.9 days
    assert mean == pytest.approx(12, abs=0.6)
    assert np.hypot(cosine, sine) == pytest.approx(10.5, abs=0.8)
    coldest = np.arctan2(-sine, -cosine) * 365.25 / (2 * np.pi)
    assert coldest == pytest.approx(22, abs=4)  # 23 January
    # the sun at the solstices, 45 degrees north: 11.6 and 2.9 kWh/m^2 (Duffie and Beckman)
    np.testing.assert_allclose([X[:, 10].max(), X[:, 10].min()], [11.6, 2.9], atol=0.3)
    cold = month <= 2
    pressure = X[cold, 11]
    assert np.corrcoef(pressure, X[cold, 4])[0, 1] > 0.2  # low pressure is cloudy
    assert 0.65 < np.corrcoef(X[1:, 11], X[:-1, 11])[0, 1] < 0.85  # and lasts


def test_load_follows_temperature_and_calendar():
    X, y, dates = weather_and_load(noise=0, random_state=0)
    share = y / (1000 * 1.015 ** (np.arange(len(y)) / 365.25))
    felt = 0.75 * X[1:, AIR] + 0.25 * X[:-1, AIR]
    share, days = share[1:], dates[1:]
    mild = (felt > 15) & (felt < 21)
    sunday = np.is_busday(days, weekmask="Sun")
    saturday = np.is_busday(days, weekmask="Sat")
    holiday = np.isin(100 * X[1:, 1] + X[1:, 2], [101, 501, 815, 1101, 1225, 1226])
    working = ~(sunday | saturday | holiday)
    np.testing.assert_allclose(share[mild & working], 1.0)
    np.testing.assert_allclose(share[mild & saturday & ~holiday], 0.9)
    np.testing.assert_allclose(share[mild & (sunday | holiday)], 0.82)
    for rows, slope in ((felt < 15, -0.012), (felt > 21, 0.015)):
        rows = rows & working
        assert np.polyfit(felt[rows], share[rows], 1)[0] == pytest.approx(slope)


def test_noise_of_the_load():
    X, y, _ = weather_and_load(noise=0.05, random_state=1)
    same, quiet, _ = weather_and_load(noise=0, random_state=1)
    np.testing.assert_array_equal(X, same)
    rest = (y - quiet) / (1000 * 1.015 ** (np.arange(len(y)) / 365.25))
    assert rest.std() == pytest.approx(0.05, rel=0.1)
    assert np.corrcoef(rest[1:], rest[:-1])[0, 1] == pytest.approx(0.7, abs=0.05)


def test_seeds():
    for one, other in zip(*(weather_and_load(50, random_state=2) for _ in range(2)), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.allclose(
        weather_and_load(50, random_state=2)[1], weather_and_load(50, random_state=3)[1]
    )


def test_bad_values_raise():
    with pytest.raises(ValueError, match="n_samples=0 must be at least 1"):
        weather_and_load(0)
    with pytest.raises(ValueError, match="noise=-1"):
        weather_and_load(10, noise=-1)

"""Generated daily weather at one place over many years, and the electric load of its region."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

from reservoir._typing import Array, RandomState
from reservoir._validation import as_generator, check_count, check_number

_FIRST = np.datetime64("1983-07-01")  # as in the source
_LATITUDE = np.deg2rad(45.0)
_SOLAR = 1.361 * 24  # kWh/m^2 per day, outside the atmosphere
_STEFAN = 5.67e-8 * 0.024  # kWh/m^2 per day and K^4
_HOLIDAYS = (101, 501, 815, 1101, 1225, 1226)  # 100 * month + day
_SPIN_UP = 200  # days after which the initial values have no effect
# Autocorrelation at one day of pressure, warmth, cloud, moisture and haze, and the correlations of
# their daily innovations: low pressure brings clouds, and moisture comes with warmth and clouds.
_LASTS = np.array([0.75, 0.8, 0.5, 0.6, 0.7])
_COMMON = np.array(
    [
        [1.0, 0.0, -0.5, -0.2, 0.1],
        [0.0, 1.0, 0.0, 0.2, 0.3],
        [-0.5, 0.0, 1.0, 0.5, 0.0],
        [-0.2, 0.2, 0.5, 1.0, 0.2],
        [0.1, 0.3, 0.0, 0.2, 1.0],
    ]
)


def weather_and_load(
    n_samples: int = 8036, *, noise: float = 0.02, random_state: RandomState = None
) -> tuple[Array, Array, Array]:
    """Generate 19 daily weather variables over 22 years, and an electric load that depends on them.

    As future work, [1]_ proposes to study the daily records of one place on Earth from 1 July 1983
    to 30 June 2005. The data generated here, for a place at 45 degrees north, have the same
    variables and days. Five hidden anomalies (pressure, warmth, cloud, moisture, haze) last for
    some days and are correlated: low pressure brings clouds, for instance. The variables are
    computed from these anomalies and the season by standard formulas: the geometry of the sun,
    Magnus' formula for vapour, and Brutsaert's formula [2]_ for long-wave radiation from a clear
    sky, increased by clouds.

    The load is a base plus an effect of temperature and autocorrelated noise. The temperature is a
    mean of today's (weight 3/4) and yesterday's (weight 1/4); the load rises by 1.2 % of the base
    per degree below 15 and by 1.5 % per degree above 21. The base grows by 1.5 % a year; the load
    is 10 % of the base lower on Saturdays, and 18 % lower on Sundays and holidays.

    Parameters
    ----------
    n_samples : int, days, default=8036
        Number of days.
    noise : float >= 0, default=0.02
        Standard deviation of the part of the load that neither weather nor calendar explains,
        relative to the base; the autocorrelation of this part at a lag of one day is 0.7.
    random_state : None, int, Generator or RandomState, default=None
        Seed of weather and load. With None new ones are drawn at each call.

    Returns
    -------
    X : ndarray of shape (n_samples, 19)
        The variables, in the order of [1]_: year, month, day; insolation (kWh/m^2 per day, like all
        radiation here) and its clearness index (0 to 1); insolation, diffuse insolation, direct
        normal radiation and clearness index for a clear sky; long-wave radiation from the sky and
        insolation at the top of the atmosphere; pressure (kPa); temperature of the ground, and
        mean, minimum and maximum temperature of the air (degrees Celsius); specific humidity
        (kg/kg), relative humidity (0 to 1) and dew point (degrees Celsius).
    y : ndarray of shape (n_samples,), MW
        Mean load of each day. On the first day the base is 1000 MW.
    dates : ndarray of shape (n_samples,), datetime64[D]
        Date of each row; the first is 1 July 1983. Holidays are 1 January, 1 May, 15 August, 1
        November, 25 and 26 December.

    Raises
    ------
    ValueError
        If a parameter is outside its range.

    References
    ----------
    .. [1] Bay (2017), section 9 (outlook), figures 9.1 to 9.3 and the list of parameters there.
    .. [2] Brutsaert (1975), "On a derivable formula for long-wave radiation from clear skies",
       Water Resources Research 11, 742-744.

    Examples
    --------
    >>> from reservoir.datasets import weather_and_load
    >>> X, y, dates = weather_and_load(365, random_state=0)
    >>> X.shape, y.shape, str(dates[-1])
    ((365, 19), (365,), '1984-06-29')
    """
    n_samples = check_count("n_samples", n_samples, size=2)
    noise = check_number("noise", noise, low=0)
    rng = as_generator(random_state)
    dates = _FIRST + np.arange(n_samples)
    year = dates.astype("datetime64[Y]")
    month = dates.astype("datetime64[M]")
    calendar = np.stack(
        [
            year.astype(int) + 1970,
            month.astype(int) % 12 + 1,
            (dates - month.astype("datetime64[D]")).astype(int) + 1,
        ],
        axis=1,
    )
    angle = 2 * np.pi * (dates - year.astype("datetime64[D]")).astype(int) / 365.25
    weather = _weather(angle, _anomalies(n_samples, rng))
    load = _load(calendar, dates, weather[:, 10], noise, rng)
    return np.hstack([calendar, weather]), load, dates


def _anomalies(n_samples: int, rng: np.random.Generator) -> Array:
    """Return the hidden anomalies, of shape (5, n_samples), each with standard deviation 1."""
    new = np.linalg.cholesky(_COMMON) @ rng.standard_normal((5, _SPIN_UP + n_samples))
    new *= np.sqrt(1 - _LASTS**2)[:, None]
    rows = [lfilter([1.0], [1.0, -lasts], row) for lasts, row in zip(_LASTS, new, strict=True)]
    return np.stack(rows)[:, _SPIN_UP:]


def _sun(angle: Array) -> tuple[Array, Array]:
    """Return insolation at the top of the atmosphere, and the mean sine of the sun's elevation."""
    declination = np.deg2rad(23.45) * np.sin(angle - 2 * np.pi * 80 / 365.25)
    sunset = np.arccos(-np.tan(_LATITUDE) * np.tan(declination))
    high = np.sin(_LATITUDE) * np.sin(declination) * sunset
    high += np.cos(_LATITUDE) * np.cos(declination) * np.sin(sunset)
    return _SOLAR / np.pi * (1 + 0.033 * np.cos(angle)) * high, high / sunset


def _weather(angle: Array, anomalies: Array) -> Array:
    """Return the 16 variables after the date columns, of shape (n_samples, 16)."""
    pressing, warm, cloudy, moist, hazy = anomalies
    top, height = _sun(angle)
    cold = np.cos(angle - 2 * np.pi * 22 / 365.25)  # 1 on 23 January, -1 half a year later
    cover = 1 / (1 + np.exp(-(1.5 * cloudy + 0.4 * cold)))  # share of the sky, more in winter
    clear_index = np.clip(0.72 - 0.03 * hazy, 0.55, 0.85)
    index = clear_index * (1 - 0.7 * cover)
    clear, insolation = clear_index * top, index * top
    diffuse = clear * np.clip(0.17 + 0.04 * hazy, 0.05, 0.4)
    pressure = 99.0 + (0.6 + 0.25 * cold) * pressing
    # Clouds cool summer days and keep winter nights warm.
    air = 12.0 - 10.5 * cold + (3.2 + 0.8 * cold) * warm + 3.0 * cold * (cover - 0.5)
    half = 2.0 + 5.0 * (1 - cover) * (1 - 0.3 * cold)
    ground = air + 3.0 * (1 - cover) * (0.2 - cold)
    relative = 0.4 + 0.58 / (1 + np.exp(-(0.6 + 0.9 * moist + 0.6 * cold)))
    vapour = relative * 0.6112 * np.exp(17.62 * air / (243.12 + air))  # kPa
    magnus = np.log(vapour / 0.6112)
    dew = 243.12 * magnus / (17.62 - magnus)
    specific = 0.622 * vapour / (pressure - 0.378 * vapour)
    kelvin = air + 273.15
    emitted = 1.24 * (10 * vapour / kelvin) ** (1 / 7)  # Brutsaert's, clear sky; vapour in hPa
    emitted += cover**2 * 0.8 * np.maximum(1 - emitted, 0)
    columns = [insolation, index, clear, diffuse, (clear - diffuse) / height, clear_index]
    columns += [emitted * _STEFAN * kelvin**4, top, pressure, ground]
    columns += [air, air - half, air + half, specific, relative, dew]
    return np.stack(columns, axis=1)


def _load(
    calendar: Array, dates: Array, air: Array, noise: float, rng: np.random.Generator
) -> Array:
    """Return the mean load of each day in MW, of shape (n_samples,)."""
    n_samples = len(dates)
    effective = 0.75 * air + 0.25 * np.concatenate([air[:1], air[:-1]])
    weekday = (dates.astype(int) + 3) % 7  # 1 January 1970 was a Thursday; 0 is a Monday
    free = (weekday == 6) | np.isin(100 * calendar[:, 1] + calendar[:, 2], _HOLIDAYS)
    share = 1.0 - np.where(free, 0.18, np.where(weekday == 5, 0.1, 0.0))
    share += 0.012 * np.maximum(15 - effective, 0) + 0.015 * np.maximum(effective - 21, 0)
    new = rng.standard_normal(_SPIN_UP + n_samples) * np.sqrt(1 - 0.7**2)
    share += noise * lfilter([1.0], [1.0, -0.7], new)[_SPIN_UP:]
    return 1000.0 * 1.015 ** (np.arange(n_samples) / 365.25) * share

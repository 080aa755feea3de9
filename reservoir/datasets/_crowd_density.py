"""Generated hourly maps of the density of people in a town."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

from reservoir._typing import Array, RandomState
from reservoir._validation import as_generator, check_count, check_number

_DAY, _SEASON = 24, 2880  # hours; the season is as long as the data of the source, 120 days
_CELLS = 160  # number of antennas; a map has no more detail than their cells
_CENTRES, _VENUES = 8, 4
_STAYS = 0.8  # share of the telephones that are still in the same cell an hour later
_HOME, _WORK, _ROAD, _LEISURE, _AWAY = range(5)


def crowd_density(
    n_samples: int,
    *,
    width: int = 64,
    height: int = 48,
    people: float = 100_000,
    events: float = 3.0,
    drift: float = 0.2,
    random_state: RandomState = None,
) -> Array:
    """Generate hourly maps of the telephones in a town; the task is to predict the next map.

    The town is generated, modelled on the maps of mobile users in [1]_, which are private. People
    sleep at home, commute to work along the main streets, and go out in the evening and at
    weekends. Added to this rhythm of days and weeks are effects that no calendar contains: random
    differences between days, holidays, events that draw a crowd to one place, and a slow change
    from spring to summer.

    Parameters
    ----------
    n_samples : int, hours
        Number of maps; the first map is for a Monday from 0:00 to 1:00. [1]_ has 2880.
    width, height : int >= 8, pixels, default=64 and 48
        Size of a map; the maps of [1]_ are 1927 by 1556 pixels.
    people : float > 0, default=100_000
        Mean number of telephones in the town.
    events : float >= 0, per week, default=3.0
        Mean number of matches, concerts and similar events per week, at four venues. Each lasts
        four or five hours, starts at 14:00 or later, and draws 1 % to 4 % of the people; about half
        of them are present in its first and last hour.
    drift : float in [0, 1], default=0.2
        Share of the people who, after 120 days, no longer commute but live at the edges of the
        town. The share grows linearly with time, from 0 to at most 1.
    random_state : None, int, Generator or RandomState, default=None
        Seed of the town and its history. With None new ones are drawn at each call.

    Returns
    -------
    X : ndarray of shape (n_samples, height * width), people per pixel
        The maps, row by row from the top: ``X.reshape(-1, height, width)``. ``X[:-1]`` and
        ``X[1:]`` are inputs and targets.

    Raises
    ------
    ValueError, TypeError
        If a parameter is outside its range.

    Notes
    -----
    Telephones are counted by 160 antennas, which are densest where most people are, and each count
    is spread over the surrounding pixels, most of it on homes, workplaces and streets. [1]_ does
    not describe the computation of its maps; this one is suggested by the fact that 200 components
    describe its three million pixels to within 1.3 people. Counts are Poisson numbers: in each hour
    a fifth of the telephones of a cell is replaced by others, and the rest stays unless fewer are
    expected.

    The expected counts follow from the shares of people who are at home, at work, on the road, out
    or away, and from the places of these activities. Days differ in the number of people at work
    and in the start of work (standard deviations 5 % and 20 minutes), and in the number of people
    who go out (25 %); one working day in thirty is a holiday; and in each of eight districts the
    shares vary by 4 %, with a correlation of .8 from one hour to the next. These numbers are our
    choice, and results on these maps do not carry over to real towns.

    References
    ----------
    .. [1] Bay (2017), "Recurrent neural networks: methods and applications to non-linear
       predictions", PhD thesis, Politecnico di Torino, section 7.2.

    Examples
    --------
    >>> from reservoir.datasets import crowd_density
    >>> X = crowd_density(48, random_state=0)
    >>> X.shape
    (48, 3072)
    >>> X.sum(axis=1).round(-4)[[4, 12, 20]]  # the total hardly changes
    array([100000., 100000., 100000.])
    >>> night, noon, evening = X.max(axis=1)[[4, 12, 20]]
    >>> bool(noon > max(night, evening))  # but at noon people are densest, around workplaces
    True
    """
    width = check_count("width", width, minimum=8, size=8)
    height = check_count("height", height, minimum=8, size=width)
    n_samples = check_count("n_samples", n_samples, size=width * height)
    people = check_number("people", people, low=0, low_open=True)
    events = check_number("events", events, low=0)
    drift = check_number("drift", drift, low=0, high=1)
    rng = as_generator(random_state)
    places, districts = _town(width, height, rng)
    covered = _covered(width, height, places, rng)
    shares = _shares(n_samples, drift, rng)
    unrest = np.exp(_unrest(n_samples, rng))
    expected = np.zeros((n_samples, covered.shape[1]))  # in the cells
    for district in range(_CENTRES):
        inside = (places * (districts == district)) @ covered
        expected += unrest[:, district, None] * (shares @ inside)
    expected *= people / expected.sum(axis=1, keepdims=True)
    _add_events(expected, covered, events, people, rng)
    # Spread each antenna's count over its cell, in proportion to the mean density of people.
    spread = (covered * places.mean(axis=0)[:, None]).T
    spread /= spread.sum(axis=1, keepdims=True)
    return np.asarray(_counted(expected, rng) @ spread)


def _grid(width: int, height: int) -> Array:
    """Return the centres of the pixels, of shape (n_pixels, 2): across, down."""
    down, across = np.divmod(np.arange(width * height), width)
    return np.stack([across + 0.5, down + 0.5], axis=1)


def _town(width: int, height: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the distribution of people in each of five activities, and each pixel's district.

    The distributions have shape (5, n_pixels), and each row adds up to 1.
    """
    pixels, size = _grid(width, height), min(width, height)
    centres = rng.uniform(0.1, 0.9, (_CENTRES, 2)) * [width, height]
    centres[0] = [0.5 * width, 0.5 * height]
    distance = np.linalg.norm(pixels[:, None] - centres, axis=-1)
    houses, jobs, bars = rng.uniform(0.2, 0.6, (3, _CENTRES))
    houses[0] = jobs[0] = bars[0] = 1.0
    texture = np.exp(0.3 * rng.normal(size=len(pixels)))
    places = np.empty((5, len(pixels)))
    places[_HOME] = texture * (np.exp(-0.5 * (distance / (0.16 * size)) ** 2) @ houses)
    places[_WORK] = texture * (np.exp(-0.5 * (distance / (0.08 * size)) ** 2) @ jobs)
    places[_LEISURE] = np.exp(-0.5 * (distance / (0.05 * size)) ** 2) @ bars
    places[_AWAY] = 1.0 - np.exp(-0.5 * (distance[:, 0] / (0.4 * size)) ** 2)
    to_street = np.full(len(pixels), np.inf)
    # Streets lead from each centre to the centre of the town and to the previous centre.
    for k, centre in enumerate(centres[1:], start=1):
        for end in (centres[0], centres[k - 1]):
            along = np.clip((pixels - centre) @ (end - centre) / ((end - centre) ** 2).sum(), 0, 1)
            gap = np.linalg.norm(pixels - centre - along[:, None] * (end - centre), axis=1)
            to_street = np.minimum(to_street, gap)
    places[_ROAD] = np.exp(-0.5 * to_street**2)  # about two pixels wide
    return places / places.sum(axis=1, keepdims=True), distance.argmin(axis=1)


def _covered(width: int, height: int, places: Array, rng: np.random.Generator) -> Array:
    """Return each antenna's share of the people in a pixel, of shape (n_pixels, n_cells)."""
    pixels = _grid(width, height)
    crowded = np.sqrt(places.mean(axis=0))
    n_cells = min(_CELLS, len(pixels) // 4)
    masts = pixels[rng.choice(len(pixels), n_cells, replace=False, p=crowded / crowded.sum())]
    apart = np.sort(np.linalg.norm(masts[:, None] - masts, axis=-1), axis=1)
    reach = 0.5 * apart[:, 1:4].mean(axis=1)  # about half way to the neighbours
    nearness = -0.5 * (np.linalg.norm(pixels[:, None] - masts, axis=-1) / reach) ** 2
    covered = np.exp(nearness - nearness.max(axis=1, keepdims=True))
    return np.asarray(covered / covered.sum(axis=1, keepdims=True))


def _shares(n_samples: int, drift: float, rng: np.random.Generator) -> Array:
    """Return the share of the people in each of five activities, of shape (n_samples, 5)."""
    n_days = -(-n_samples // _DAY)
    weekday = np.arange(n_days) % 7
    free = (weekday >= 5) | (rng.random(n_days) < 1 / 30)
    workers = np.where(free, 0.08, 0.5) * (1.0 + 0.05 * rng.normal(size=n_days))
    late = rng.normal(size=n_days) / 3.0  # hours
    mood = np.exp(0.25 * rng.normal(size=n_days))
    hours = np.arange(n_days * _DAY)
    day, hour = hours // _DAY, hours % _DAY + 0.5
    start, end = 8.0 + late[day], 17.5 + late[day]
    shares = np.zeros((len(hours), 5))
    present = 1.0 / (1.0 + np.exp((start - hour) / 0.5)) - 1.0 / (1.0 + np.exp((end - hour) / 0.8))
    shares[:, _WORK] = workers[day] * present
    commute = _bump(hour, start - 0.5, 0.8) + _bump(hour, end + 0.5, 1.0)
    shares[:, _ROAD] = 0.3 * workers[day] * commute + 0.04 * _bump(hour, 14.0, 5.0)
    evening = 0.08 * _bump(hour, 20.0, 1.5)
    weekend = 0.15 * _bump(hour, 16.0, 3.0) + 0.12 * _bump(hour, 21.0, 1.5)
    shares[:, _LEISURE] = mood[day] * np.where(free[day], weekend, evening)
    shares[:, _HOME] = 1.0 - shares.sum(axis=1)
    moved = np.minimum(1.0, drift * hours / _SEASON)[:, None]
    shares *= 1.0 - moved
    shares[:, _AWAY] = moved[:, 0]
    return shares[:n_samples]


def _bump(hour: Array, centre: Array | float, width: float) -> Array:
    """Return a bell curve of height 1 at the given hours."""
    return np.asarray(np.exp(-0.5 * ((hour - centre) / width) ** 2))


def _unrest(n_samples: int, rng: np.random.Generator) -> Array:
    """Return the random deviations of the districts, of shape (n_samples, n_districts)."""
    news = rng.normal(size=(n_samples, _CENTRES))
    news[1:] *= np.sqrt(1.0 - 0.8**2)
    return np.asarray(0.04 * lfilter([1.0], [1.0, -0.8], news, axis=0))


def _add_events(
    expected: Array, covered: Array, events: float, people: float, rng: np.random.Generator
) -> None:
    """Move people to the venues of events, in place."""
    n_days = -(-len(expected) // _DAY)
    venues = covered[rng.choice(len(covered), _VENUES, replace=False)]
    for _ in range(rng.poisson(events * n_days / 7.0)):
        first = _DAY * rng.integers(n_days) + rng.integers(14, 20)
        visitors = people * rng.uniform(0.01, 0.04)
        there = np.r_[0.4, np.ones(rng.integers(2, 4)), 0.5]  # share of visitors present, hourly
        rows = expected[first : first + len(there)]
        come = visitors * there[: len(rows), None]
        rows *= 1.0 - come / people
        rows += come * venues[rng.integers(_VENUES)]


def _counted(expected: Array, rng: np.random.Generator) -> Array:
    """Return Poisson counts with the given means, most of whose people stay for the next hour."""
    counts = np.empty(expected.shape)
    counts[0] = now = rng.poisson(expected[0])
    for t in range(1, len(expected)):
        # A binomial sample of a Poisson count is Poisson, and so is its sum with the newcomers.
        stay = _STAYS * np.minimum(expected[t - 1], expected[t])
        now = rng.binomial(now, stay / expected[t - 1])
        now += rng.poisson(expected[t] - stay)
        counts[t] = now
    return counts

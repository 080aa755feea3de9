"""Hourly maps of how many people are where in a town."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

from reservoir._typing import Array, RandomState
from reservoir._validation import as_generator, check_count, check_number

_DAY, _SEASON = 24, 2880  # hours; the season is that of the source, 120 days
_CELLS = 160  # antennas that count; a map has no more detail than their cells
_CENTRES, _VENUES = 8, 4
_STAYS = 0.8  # share of the telephones of a cell that an hour later are still the same
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
    """Crowd density: hourly maps of the telephones in a town, whose next one is to be predicted.

    A generated town after the maps of mobile users in [1]_, which are private. People sleep at
    home, commute by the main streets to work, and go out in the evening and at weekends. To this
    rhythm of days and weeks comes what no calendar knows: days that differ, holidays, events that
    draw a crowd to one place, and a slow change from spring to summer.

    Parameters
    ----------
    n_samples : int, hours
        Number of maps; the first is that of a Monday from 0 to 1 o'clock. [1]_ has 2880.
    width, height : int >= 8, pixels, default=64 and 48
        Of a map; [1]_ has 1927 by 1556.
    people : float > 0, default=100_000
        Telephones in the town, in the mean.
    events : float >= 0, per week, default=3.0
        Matches, concerts and the like in the mean, at four places, each for four or five hours from
        14 o'clock on or later. It draws 1 % to 4 % of the people, and in its first and last hour
        about half of these are there.
    drift : float in [0, 1], default=0.2
        Share of the people who after 120 days no longer commute but live at the edges of the
        town; it grows linearly from 0, and no further than 1.
    random_state : None, int, Generator or RandomState, default=None
        Seeds the town and its history; None draws new ones at each call.

    Returns
    -------
    X : ndarray of shape (n_samples, height * width), people per pixel
        Maps, row by row from the top: ``X.reshape(-1, height, width)``. ``X[:-1]`` and ``X[1:]``
        are inputs and targets.

    Raises
    ------
    ValueError, TypeError
        If a parameter is outside its range.

    Notes
    -----
    Telephones are counted by 160 antennas, which stand densest where most people are, and the
    count of each is spread over the pixels around it, most of it where homes, work and streets
    are. [1]_ does not say how its maps were made; that 200 components describe its three million
    pixels to within 1.3 people suggests this. Counts are Poisson numbers: in each hour a fifth of
    the telephones of a cell is exchanged for others, the rest stays unless fewer are expected.

    What is expected follows from the shares of people who are at home, at work, on the road, out
    or away, and from where one does that. Working days differ in how many work and how early
    (standard deviations 5 % and 20 minutes), all days in how many go out (25 %), one working day
    in thirty is a holiday, and in each of eight districts the shares vary by 4 %, with a
    correlation of .8 from one hour to the next. These numbers are our choice, and a figure on
    these maps says nothing about another town's.

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
    >>> X.sum(axis=1).round(-4)[[4, 12, 20]]  # hardly anybody leaves the town
    array([100000., 100000., 100000.])
    >>> night, noon, evening = X.max(axis=1)[[4, 12, 20]]
    >>> bool(noon > max(night, evening))  # but where most people work they are closest
    True
    """
    n_samples = check_count("n_samples", n_samples)
    width = check_count("width", width, minimum=8)
    height = check_count("height", height, minimum=8)
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
    # what an antenna has counted is spread over its cell: more where more people are on the whole
    spread = (covered * places.mean(axis=0)[:, None]).T
    spread /= spread.sum(axis=1, keepdims=True)
    return np.asarray(_counted(expected, rng) @ spread)


def _grid(width: int, height: int) -> Array:
    """Return the middles of the pixels, (n_pixels, 2): across, down."""
    down, across = np.divmod(np.arange(width * height), width)
    return np.stack([across + 0.5, down + 0.5], axis=1)


def _town(width: int, height: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return where people are who do each of five things, and the district of each pixel.

    Places have shape (5, n_pixels), and each row adds up to 1.
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
    for k, centre in enumerate(centres[1:], start=1):  # to the middle, and to the one before
        for end in (centres[0], centres[k - 1]):
            along = np.clip((pixels - centre) @ (end - centre) / ((end - centre) ** 2).sum(), 0, 1)
            gap = np.linalg.norm(pixels - centre - along[:, None] * (end - centre), axis=1)
            to_street = np.minimum(to_street, gap)
    places[_ROAD] = np.exp(-0.5 * to_street**2)  # two pixels wide or so
    return places / places.sum(axis=1, keepdims=True), distance.argmin(axis=1)


def _covered(width: int, height: int, places: Array, rng: np.random.Generator) -> Array:
    """Return the share of each pixel's people that each antenna counts, (n_pixels, n_cells)."""
    pixels = _grid(width, height)
    crowded = np.sqrt(places.mean(axis=0))
    n_cells = min(_CELLS, len(pixels) // 4)
    masts = pixels[rng.choice(len(pixels), n_cells, replace=False, p=crowded / crowded.sum())]
    apart = np.sort(np.linalg.norm(masts[:, None] - masts, axis=-1), axis=1)
    reach = 0.5 * apart[:, 1:4].mean(axis=1)  # about to the middle between neighbours
    nearness = -0.5 * (np.linalg.norm(pixels[:, None] - masts, axis=-1) / reach) ** 2
    covered = np.exp(nearness - nearness.max(axis=1, keepdims=True))
    return np.asarray(covered / covered.sum(axis=1, keepdims=True))


def _shares(n_samples: int, drift: float, rng: np.random.Generator) -> Array:
    """Return the share of the people who do each of five things, (n_samples, 5)."""
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
    """Return a bell of height 1 over the hours of a day."""
    return np.asarray(np.exp(-0.5 * ((hour - centre) / width) ** 2))


def _unrest(n_samples: int, rng: np.random.Generator) -> Array:
    """Return the deviations of districts that no calendar knows, (n_samples, n_districts)."""
    news = rng.normal(size=(n_samples, _CENTRES))
    news[1:] *= np.sqrt(1.0 - 0.8**2)
    return np.asarray(0.04 * lfilter([1.0], [1.0, -0.8], news, axis=0))


def _add_events(
    expected: Array, covered: Array, events: float, people: float, rng: np.random.Generator
) -> None:
    """Move people to the venues while something goes on there, in place."""
    n_days = -(-len(expected) // _DAY)
    venues = covered[rng.choice(len(covered), _VENUES, replace=False)]
    for _ in range(rng.poisson(events * n_days / 7.0)):
        first = _DAY * rng.integers(n_days) + rng.integers(14, 20)
        visitors = people * rng.uniform(0.01, 0.04)
        there = np.r_[0.4, np.ones(rng.integers(2, 4)), 0.5]  # who are there, hour by hour
        rows = expected[first : first + len(there)]
        come = visitors * there[: len(rows), None]
        rows *= 1.0 - come / people
        rows += come * venues[rng.integers(_VENUES)]


def _counted(expected: Array, rng: np.random.Generator) -> Array:
    """Return Poisson numbers of these means, of which most stay from hour to hour."""
    counts = np.empty(expected.shape)
    counts[0] = now = rng.poisson(expected[0])
    for t in range(1, len(expected)):
        # what stays of Poisson numbers is Poisson too, and so is the sum with those who come
        stay = _STAYS * np.minimum(expected[t - 1], expected[t])
        now = rng.binomial(now, stay / expected[t - 1])
        now += rng.poisson(expected[t] - stay)
        counts[t] = now
    return counts

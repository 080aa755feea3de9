"""Generated visits of patients at irregular times, labelled by later damage."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

from reservoir._typing import Array, RandomState
from reservoir._validation import as_generator, check_count, check_number

_WEEK = 7 / 365.25  # years, the time step of the simulated disease
_MEMORY, _FADING = 0.75, 3.0  # years: time constants of disease activity and of its effects
_FIRST, _LAST = 4, 20  # least and largest number of visits
_GAP, _GAP_SPREAD = 0.25, 0.8  # between visits: median in years, standard deviation of the log


def patient_visits(
    n_patients: int = 140,
    *,
    positive: float = 2 / 7,
    noise: float = 1.0,
    random_state: RandomState = None,
) -> tuple[list[Array], Array]:
    """Generate patient visits; the task is to predict damage from irregularly timed measurements.

    The cohort is generated, modelled on the 140 patients with lupus in [1]_, whose data are
    private. The disease flares up and subsides, at visits or unobserved between them; the effects
    of flares accumulate, fade over years, and determine damage. A flare changes blood values and
    symptoms, with noise, relative to a baseline that differs between patients.

    Parameters
    ----------
    n_patients : int >= 4, default=140
        Number of patients; [1]_ has about 100 without damage and 40 with damage.
    positive : float in (0, 1), default=2/7
        Share of patients with damage. Their number is rounded, but each class has at least one
        patient.
    noise : float >= 0, default=1.0
        Standard deviation of the effect of other causes of damage, relative to the standard
        deviation (over patients) of the accumulated effect of the disease.
    random_state : None, int, Generator or RandomState, default=None
        Seed of the cohort. With None a new cohort is drawn at each call.

    Returns
    -------
    X : list of ndarrays of shape (n_visits, 7)
        The 4 to 20 visits of each patient. The columns are the age in years, which increases (the
        median time between visits is a quarter of a year, the range is days to years); complement
        C3 and C4 in mg/dl; an index of disease activity, a whole number from 0 on;
        and rash, arthritis and abnormal blood counts, each 0 or 1.
    y : ndarray of shape (n_patients,)
        1 if damage follows the last visit, else 0.

    Raises
    ------
    ValueError, TypeError
        If a parameter is outside its range.

    Notes
    -----
    Disease activity is an autoregressive process around each patient's mean, with a time
    constant of 9 months. Its accumulated effect is the integral of its positive part, which fades
    with a time constant of 3 years. These numbers are our choice: the source states only the number
    of patients, the kinds of columns, and that visits are not equally spaced.

    References
    ----------
    .. [1] G. Galvan, "Optimization methods for Recurrent Neural Networks training", 2016, "A case
       study: Lupus disease prediction", with data of the Lupus Clinic, Sapienza, Rome.

    Examples
    --------
    >>> from reservoir.datasets import patient_visits
    >>> X, y = patient_visits(random_state=0)
    >>> len(X), int(y.sum())
    (140, 40)
    >>> X[0][:3].round(1)  # the first visits of the first patient
    array([[ 51.6,  94.9,  28.3,   0. ,   0. ,   0. ,   0. ],
           [ 51.9, 110.1,  35.1,   0. ,   0. ,   0. ,   0. ],
           [ 52.3,  63.3,  18.5,   1. ,   0. ,   0. ,   0. ]])
    """
    n_patients = check_count("n_patients", n_patients, minimum=4, size=40)
    positive = check_number("positive", positive, low=0, high=1, low_open=True, high_open=True)
    noise = check_number("noise", noise, low=0)
    rng = as_generator(random_state)
    X, effects = [], np.empty(n_patients)
    for k in range(n_patients):
        visits, effects[k] = _history(rng)
        X.append(visits)
    score = effects / effects.std() + noise * rng.normal(size=n_patients)
    n_positive = int(np.clip(round(positive * n_patients), 1, n_patients - 1))
    y = np.zeros(n_patients, dtype=int)
    y[np.argsort(-score, kind="stable")[:n_positive]] = 1
    return X, y


def _history(rng: np.random.Generator) -> tuple[Array, float]:
    """Return the visits of a patient, and the accumulated effect of the disease at the last one."""
    n_visits = rng.integers(_FIRST, _LAST + 1)
    gaps = _GAP * np.exp(_GAP_SPREAD * rng.normal(size=n_visits - 1))
    times = np.append(0.0, np.cumsum(np.maximum(gaps, 2 * _WEEK / 7)))
    n_weeks = int(times[-1] / _WEEK) + 2
    keeps = np.exp(-_WEEK / _MEMORY)
    kicks = np.sqrt(1 - keeps**2) * rng.normal(size=n_weeks)
    kicks[0] = rng.normal()
    activity = 0.7 * rng.normal() + lfilter([1.0], [1.0, -keeps], kicks)
    flares = _WEEK * np.maximum(activity, 0.0)
    effect = lfilter([1.0], [1.0, -np.exp(-_WEEK / _FADING)], flares)[-2]
    now = np.interp(times, _WEEK * np.arange(n_weeks), activity)
    return np.column_stack([rng.uniform(18, 60) + times, *_findings(now, rng)]), float(effect)


def _findings(activity: Array, rng: np.random.Generator) -> list[Array]:
    """Return the measurements at visits, given the disease activity."""
    n = len(activity)
    c3 = 105 + 12 * rng.normal() - 15 * activity + 8 * rng.normal(size=n)
    c4 = 20 + 4 * rng.normal() - 4 * activity + 2.5 * rng.normal(size=n)
    index = np.round(np.maximum(3 + 3 * activity + 2 * rng.normal(size=n), 0.0))
    symptoms = [
        (rng.logistic(size=n) < 1.5 * activity - base + 0.8 * rng.normal()).astype(float)
        for base in (1.5, 1.0, 2.0)
    ]
    return [np.clip(c3, 5.0, None), np.clip(c4, 1.0, None), index, *symptoms]

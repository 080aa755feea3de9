"""Visits of patients at irregular times, and whether damage follows."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

from reservoir._typing import Array, RandomState
from reservoir._validation import as_generator, check_count, check_number

_WEEK = 7 / 365.25  # years, the step of what goes on between visits
_MEMORY, _FADING = 0.75, 3.0  # years: of the activity of the disease, of what it leaves behind
_FIRST, _LAST = 4, 20  # visits
_GAP, _GAP_SPREAD = 0.25, 0.8  # years, the median; and the deviation of the logarithm


def patient_visits(
    n_patients: int = 140,
    *,
    positive: float = 2 / 7,
    noise: float = 1.0,
    random_state: RandomState = None,
) -> tuple[list[Array], Array]:
    """Patient visits: what was measured at irregular times, and whether damage comes after.

    A generated cohort after the 140 patients with lupus in [1]_, which are private. The disease
    flares up and calms down, each time at another visit or unseen between two of them; what flares
    leave behind adds up and fades over years, and decides about damage. A flare shows in blood and
    symptoms, with noise, and from a base that differs from patient to patient.

    Parameters
    ----------
    n_patients : int >= 4, default=140
        Number of patients; [1]_ has about 100 without damage and 40 with.
    positive : float in (0, 1), default=2/7
        Share of patients with damage, to the nearest number of them (one of each kind at least).
    noise : float >= 0, default=1.0
        Deviation of all that decides about damage and was not the disease, in units of the
        deviation over patients of what the disease has left behind.
    random_state : None, int, Generator or RandomState, default=None
        Seeds the cohort; None draws a new one at each call.

    Returns
    -------
    X : list of ndarrays of shape (n_visits, 7)
        4 to 20 visits of each patient. Columns: the age in years, which rises (a quarter of a year
        between visits in the median, from days to years); complement C3 and C4, mg/dl; an index of
        the disease's activity, whole numbers from 0; rash, arthritis and findings in the blood
        count, each 0 or 1.
    y : ndarray of shape (n_patients,)
        1 where damage follows the last visit, else 0.

    Raises
    ------
    ValueError, TypeError
        If a parameter is outside its range.

    Notes
    -----
    The activity of the disease is an autoregression with a memory of 9 months around a mean of each
    patient; what it leaves behind is the integral of its positive part, fading with a time constant
    of 3 years. These numbers are ours: the source says how many patients there are, what kinds of
    columns, and that visits are not equally spaced.

    References
    ----------
    .. [1] F. M. Bianchi, lectures on recurrent neural networks, "A case study: Lupus disease
       prediction", with data of the Lupus Clinic, Sapienza, Rome.

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
    n_patients = check_count("n_patients", n_patients, minimum=4)
    positive = check_number("positive", positive, low=0, high=1, low_open=True, high_open=True)
    noise = check_number("noise", noise, low=0)
    rng = as_generator(random_state)
    X, left = [], np.empty(n_patients)
    for k in range(n_patients):
        visits, left[k] = _history(rng)
        X.append(visits)
    score = left / left.std() + noise * rng.normal(size=n_patients)
    n_positive = int(np.clip(round(positive * n_patients), 1, n_patients - 1))
    y = np.zeros(n_patients, dtype=int)
    y[np.argsort(-score, kind="stable")[:n_positive]] = 1
    return X, y


def _history(rng: np.random.Generator) -> tuple[Array, float]:
    """Return the visits of a patient, and what the disease has left behind at the last."""
    n_visits = rng.integers(_FIRST, _LAST + 1)
    gaps = _GAP * np.exp(_GAP_SPREAD * rng.normal(size=n_visits - 1))
    times = np.append(0.0, np.cumsum(np.maximum(gaps, 2 * _WEEK / 7)))
    n_weeks = int(times[-1] / _WEEK) + 2
    keeps = np.exp(-_WEEK / _MEMORY)
    kicks = np.sqrt(1 - keeps**2) * rng.normal(size=n_weeks)
    kicks[0] = rng.normal()
    activity = 0.7 * rng.normal() + lfilter([1.0], [1.0, -keeps], kicks)
    flares = _WEEK * np.maximum(activity, 0.0)
    left = lfilter([1.0], [1.0, -np.exp(-_WEEK / _FADING)], flares)[-2]
    now = np.interp(times, _WEEK * np.arange(n_weeks), activity)
    return np.column_stack([rng.uniform(18, 60) + times, *_findings(now, rng)]), float(left)


def _findings(activity: Array, rng: np.random.Generator) -> list[Array]:
    """Return what is measured at visits, given how active the disease is."""
    n = len(activity)
    c3 = 105 + 12 * rng.normal() - 15 * activity + 8 * rng.normal(size=n)
    c4 = 20 + 4 * rng.normal() - 4 * activity + 2.5 * rng.normal(size=n)
    index = np.round(np.maximum(3 + 3 * activity + 2 * rng.normal(size=n), 0.0))
    symptoms = [
        (rng.logistic(size=n) < 1.5 * activity - base + 0.8 * rng.normal()).astype(float)
        for base in (1.5, 1.0, 2.0)
    ]
    return [np.clip(c3, 5.0, None), np.clip(c4, 1.0, None), index, *symptoms]

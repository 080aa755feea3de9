"""Does damage follow? Visits of patients at irregular times (Galvan 2016: lupus, area .74).

Usage: ``python examples/benchmarks/visits.py [n_seeds] [n_repeats]`` (5 and 4 by default) prints
the area under the receiver operating characteristic in 5-fold cross-validation, repeated, on
cohorts of 140 patients that the seeds draw: the mean, and the standard deviation over the cohorts.
"by time" means that the leak is scaled by the time between visits (``time_column``), "by visits"
that each visit is a step. Settings were chosen on the seeds 100 to 111. Two minutes on one core.
"""

from __future__ import annotations

import numpy as np
from _command_line import run_main
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from reservoir import ESNSequenceClassifier, RNNClassifier
from reservoir.datasets import patient_visits

SLOW = {
    "leak_rate": 0.1,
    "pool": "last",
    "spectral_radius": 0.3,
    "input_scaling": 0.1,
    "differences": False,
    "bidirectional": False,
}


def by_time(visits):
    """Return the visits with their times."""
    return visits


def by_visits(visits):
    """Return the visits without their times."""
    return [rows[:, 1:] for rows in visits]


def means(visits):
    """Return the mean of each finding over the visits of a patient."""
    return [rows[:, 1:].mean(axis=0) for rows in visits]


def summaries(visits):
    """Return mean, deviation and last value of each finding, how many visits, how long, the age."""
    return [
        np.r_[
            rows[:, 1:].mean(axis=0),
            rows[:, 1:].std(axis=0),
            rows[-1, 1:],
            len(rows),
            np.ptp(rows[:, 0]),
            rows[0, 0],
        ]
        for rows in visits
    ]


def logistic(seed):
    """Return logistic regression on standardised columns."""
    return make_pipeline(StandardScaler(), LogisticRegression(C=0.1))


class Trained:
    """A recurrent network of 32 units on standardised findings."""

    def __init__(self, seed, init, epochs):
        self.network = RNNClassifier(
            32,
            target="last",
            init=init,
            learning_rate_init=0.003,
            max_iter=epochs,
            random_state=seed,
        )

    def scaled(self, visits):
        return [self.scaler.transform(rows) for rows in visits]

    def fit(self, visits, y):
        self.scaler = StandardScaler().fit(np.concatenate(visits))
        self.network.fit(self.scaled(visits), y)
        return self

    def decision_function(self, visits):
        return self.network.decision_function(self.scaled(visits))


METHODS = {
    "mean of the findings, logistic regression": (means, logistic),
    "summary of the visits, logistic regression": (summaries, logistic),
    "ESNSequenceClassifier(), by visits": (
        by_visits,
        lambda s: ESNSequenceClassifier(random_state=s),
    ),
    "ESNSequenceClassifier(), by time": (
        by_time,
        lambda s: ESNSequenceClassifier(time_column=0, random_state=s),
    ),
    "slow units, the last state, by visits": (
        by_visits,
        lambda s: ESNSequenceClassifier(200, **SLOW, random_state=s),
    ),
    "slow units, the last state, by time": (
        by_time,
        lambda s: ESNSequenceClassifier(200, **SLOW, time_column=0, random_state=s),
    ),
    "trained, reservoir start, 5 epochs": (by_visits, lambda s: Trained(s, "esn", 5)),
    "trained, reservoir start, 50 epochs": (by_visits, lambda s: Trained(s, "esn", 50)),
    "trained, orthogonal start, 50 epochs": (by_visits, lambda s: Trained(s, "orthogonal", 50)),
}


def main(n_seeds: int = 5, n_repeats: int = 4) -> None:
    for name, (read, make) in METHODS.items():
        areas = []
        for seed in range(n_seeds):
            visits, y = patient_visits(random_state=seed)
            X = read(visits)
            folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=n_repeats, random_state=seed)
            for train, test in folds.split(X, y):
                model = make(seed).fit([X[i] for i in train], y[train])
                scores = model.decision_function([X[i] for i in test])
                areas.append(roc_auc_score(y[test], scores))
        each = np.reshape(areas, (n_seeds, -1)).mean(axis=1)
        spread = each.std(ddof=min(1, n_seeds - 1))
        print(f"{name:46s}{each.mean():8.3f} +- {spread:.3f}", flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        run_main(main)

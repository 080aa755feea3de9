"""The job of small calls: one row, one session, one short fit, one series, the import."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
from _timing import Report, interleave
from import_time import seconds as seconds_to_import
from sklearn.linear_model import Ridge

from reservoir import ESNRegressor, ESNSequenceClassifier

N_UNITS, ALPHA = 100, 1e-6
TRAINED = 3000  # rows: enough for kernels, which sessions and predictions then use as well


def small(report: Report, n_rounds: int, quick: bool) -> None:
    """Processor time per call: each round makes many calls of everybody, in turns."""
    n_calls = 10 if quick else 400
    rng = np.random.default_rng(0)
    n_rows = TRAINED + 2 * (n_rounds + 1) * n_calls  # `interleave` calls the first job twice
    X = rng.standard_normal((n_rows, 1))
    y = X[:, 0] + 0.5 * np.roll(X[:, 0], 1)
    esn = ESNRegressor(N_UNITS, alpha=ALPHA, random_state=0).fit(X[:TRAINED], y[:TRAINED])
    ridge = Ridge(alpha=ALPHA).fit(rng.standard_normal((1000, N_UNITS)), y[:1000])
    features = rng.standard_normal((1, N_UNITS))
    one = X[TRAINED : TRAINED + 1]
    jobs: dict[str, Callable[[], Any]] = {
        "reservoir, predict": lambda: esn.predict(one),
        "scikit-learn, Ridge": lambda: ridge.predict(features),
    }
    _table(report, f"predict of one row, N = {N_UNITS}", jobs, n_rounds, n_calls)
    sessions = {name: (esn.stream(), count(TRAINED)) for name in ("predict", "learn", "both")}

    def in_session(name: str) -> Callable[[], Any]:
        session, rows = sessions[name]

        def call() -> None:
            t = next(rows)
            if name != "learn":
                session.predict(X[t : t + 1])
            if name != "predict":
                session.learn(X[t : t + 1], y[t : t + 1])

        return call

    jobs = {
        "reservoir, predict": in_session("predict"),
        "reservoir, learn": in_session("learn"),
        "reservoir, predict and learn": in_session("both"),
    }
    _table(report, "a row in a session", jobs, n_rounds, n_calls)
    short = 100
    series = [rng.standard_normal((short, 1)) for _ in range(60)]
    classifier = ESNSequenceClassifier(N_UNITS, alpha=ALPHA, random_state=0)
    classifier.fit(series, [0, 1] * 30)

    def fit(seed: int | None) -> Any:
        return ESNRegressor(N_UNITS, alpha=ALPHA, random_state=seed).fit(X[:short], y[:short])

    jobs = {
        "reservoir, fit": lambda: fit(0),
        "reservoir, fit without a seed": lambda: fit(None),
        "reservoir, predict of a series": lambda: classifier.predict(series[:1]),
    }
    _table(report, f"{short} rows", jobs, n_rounds, max(n_calls // 8, 2))
    imports = {"reservoir, after linear_model": [seconds_to_import("sklearn.linear_model")]}
    for _ in range(n_rounds):
        imports["reservoir, after linear_model"].append(seconds_to_import("sklearn.linear_model"))
    report.table("import reservoir", imports, unit="s")


def _table(
    report: Report, title: str, jobs: dict[str, Callable[[], Any]], n_rounds: int, n_calls: int
) -> None:
    """Time `n_calls` calls of each job in each round, after one round that does not count."""

    def repeated(job: Callable[[], Any]) -> Callable[[], None]:
        def calls() -> None:
            for _ in range(n_calls):
                job()

        return calls

    repeats = {name: repeated(job) for name, job in jobs.items()}
    times = interleave(repeats, n_rounds + 1, clock=time.process_time)
    counted = {name: each[1:] for name, each in times.items()}
    report.table(title, counted, unit="us", scale=1e6 / n_calls)

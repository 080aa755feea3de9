"""Would a least-squares start help an SCRN? Its context units, drawn, as inputs of a simple cell.

Usage: ``python examples/benchmarks/scrn_start.py [n_seeds] [max_iter]`` (by default 5 and 100).
With B drawn and left alone, context units are a fixed linear filter of the inputs, and an SCRN is a
simple cell that sees [x, s]: its start by least squares is that of the simple cell. Prints the
normalised mean squared error on held-out rows of NARMA-30 and of Mackey-Glass 84 steps ahead, for
40 hidden and 16 context units after Adam from each start.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from _command_line import run_main
from threadpoolctl import threadpool_limits

from reservoir import RNNRegressor
from reservoir.datasets import mackey_glass, narma
from reservoir.training.cells import SCRNCell

N_TRAIN, N_TEST, N_UNITS, N_CONTEXT, DECAY, WASHOUT = 2000, 1000, 40, 16, 0.95, 100


def tasks(seed: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return inputs, at mean 0 and variance 1, and targets."""
    rows = N_TRAIN + N_TEST
    X, y = narma(rows, order=30, random_state=seed)
    series = mackey_glass(rows + 84, random_state=seed)
    pairs = {"NARMA-30": (X, y), "Mackey-Glass, 84 ahead": (series[:rows], series[84:])}
    return {
        name: ((X - X.mean()) / X.std(), (y - y.mean()) / y.std()) for name, (X, y) in pairs.items()
    }


def with_context(X: np.ndarray, seed: int) -> np.ndarray:
    """Return inputs and context units of a drawn B, at variance 1."""
    B = np.random.default_rng(seed).uniform(-1, 1, (N_CONTEXT, X.shape[1]))
    # decays spread by time constants from 2 to 100 steps: one decay would make all units one
    kept = np.exp(-1 / np.geomspace(2, 100, N_CONTEXT))
    s, seen = np.zeros(N_CONTEXT), []
    for x in X:
        s = kept * s + (1 - kept) * (B @ x)
        seen.append(s)
    context = np.array(seen)
    return np.hstack([X, context / context.std(axis=0)])


def main(n_seeds: int = 5, max_iter: int = 100) -> None:
    """Measure and print."""
    spread = tuple(np.exp(-1 / np.geomspace(2, 100, N_CONTEXT)).tolist())
    settings: dict[str, Any] = {"max_iter": max_iter, "washout": WASHOUT}
    for task in tasks(0):
        for name in (
            "scrn",
            "scrn, spread decays",
            "drawn context, orthogonal",
            "drawn context, least squares",
            "no context, least squares",
        ):
            errors, start = [], time.process_time()
            for seed in range(n_seeds):
                X, y = tasks(seed)[task]
                rnn = RNNRegressor(N_UNITS, random_state=seed, **settings)
                if name.startswith("scrn"):
                    decay = spread if "spread" in name else DECAY
                    cell = SCRNCell(N_UNITS, N_CONTEXT, decay=decay)
                    rnn.set_params(cell=cell, init="orthogonal", learning_rate_init=0.003)
                elif name.startswith("drawn"):
                    init = "least_squares" if "least" in name else "orthogonal"
                    rate = 0.001 if "least" in name else 0.003
                    X = with_context(X, seed)
                    rnn.set_params(init=init, include_input=True, learning_rate_init=rate)
                else:
                    rnn.set_params(init="least_squares", learning_rate_init=0.001)
                rnn.fit(X[:N_TRAIN], y[:N_TRAIN])
                rest = rnn.predict(X[N_TRAIN - WASHOUT :])[WASHOUT:]
                target = y[N_TRAIN:].reshape(rest.shape)
                errors.append(float(np.mean((rest - target) ** 2) / np.var(target)))
            shown = ", ".join(f"{error:.4f}" for error in errors)
            seconds = (time.process_time() - start) / n_seeds
            print(f"{task}, {name}: median {np.median(errors):.4f} ({shown}), {seconds:.1f} s")


if __name__ == "__main__":
    with threadpool_limits(1):
        run_main(main)

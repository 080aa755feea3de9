"""What is measured on chaotic systems: each method is a function of the rows that it may see.

A method of `LORENZ` is called with (rows, n_steps, seed), one of `dysts_methods` with (rows,
n_steps); rows have shape (n_rows, n_coordinates), the forecast (n_steps, n_coordinates). A
forecast that diverges may hold anything from the step on where it does.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
from _lorenz_truth import rounded_model
from protocols import SAME, WASHOUT, reservoirpy_free_run

import reservoir
from reservoir import ESNRegressor
from reservoir.dynamics import run_closed_loop

Array = np.ndarray
Method = Callable[[Array, int], Array]
SeededMethod = Callable[[Array, int, int], Array]

# --- ours -----------------------------------------------------------------------------------------


def esn_forecaster(rows: Array, n_steps: int, seed: int = 0) -> Array:
    """Forecast by `ESNForecaster` as it comes."""
    return reservoir.ESNForecaster(random_state=seed).fit(rows).forecast(n_steps)


def default_esn(rows: Array, n_steps: int) -> Array:
    """Forecast by `ESNRegressor` as it comes: 100 units, radius 0.9."""
    return ESNRegressor(random_state=0).fit(rows[:-1], rows[1:]).forecast(n_steps)


def nvar(rows: Array, n_steps: int) -> Array:
    """Polynomials of degree 2 of two rows, as in next generation reservoir computing."""
    model = reservoir.NVARRegressor(2, degree=2, alpha=1e-6 * len(rows))
    return model.fit(rows[:-1], rows[1:]).forecast(n_steps)


def chebyshev(rows: Array, n_steps: int, seed: int = 0) -> Array:
    """Chebyshev polynomials of degree 10 of the last row."""
    model = reservoir.NVARRegressor(n_lags=1, degree=10, basis="chebyshev")
    return model.fit(rows[:-1], rows[1:]).forecast(n_steps)


def protocol_network(rows: Array, n_steps: int, seed: int, **changes: Any) -> Array:
    """The 500 units of docs/protocols.md, with other parameters if `changes` says so."""
    esn = ESNRegressor(500, washout=WASHOUT, random_state=seed, **{**SAME, **changes})
    return esn.fit(rows[:-1], rows[1:]).forecast(n_steps)


def protocol_network_qr(rows: Array, n_steps: int, seed: int) -> Array:
    """The same by QR, with a penalty that only QR can tell from none."""
    return protocol_network(rows, n_steps, seed, solver="qr", alpha=1e-27 * len(rows))


def increments_qr(rows: Array, n_steps: int, seed: int) -> Array:
    """1000 units whose targets are increments, by QR."""
    esn = ESNRegressor(
        1000,
        spectral_radius=0.05,
        input_scaling=0.3,
        bias_scaling=2.0,
        solver="qr",
        alpha=1e-27 * len(rows),
        washout=WASHOUT,
        random_state=seed,
    )
    return forecast_increments(esn.fit(rows[:-1], np.diff(rows, axis=0)), rows[-1], n_steps)


def forecast_increments(esn: ESNRegressor, last: Array, n_steps: int) -> Array:
    """Go on from `last`: the next row is the last one and the network's output."""
    coef = np.array(esn.coef_)
    coef[:, -len(last) :] += np.eye(len(last))  # the readout's features end with the input
    rows, _ = run_closed_loop(
        esn.reservoir_,
        (coef, esn.intercept_),
        n_steps,
        initial_state=esn.state_,
        initial_output=last,
        include_input=True,
    )
    return rows


# --- others ---------------------------------------------------------------------------------------


def nearest_motif(rows: Array, n_steps: int, *, period: int, length: int = 5) -> Array:
    """Repeat what followed the past stretch that is most like the last rows (context parroting).

    The baseline of Y. Zhang and W. Gilpin (2025, arXiv:2505.11349). Stretches that end in the last
    `period` rows are no candidates: they are like the last rows because they are near them.
    """
    n_rows = len(rows)
    windows = np.lib.stride_tricks.sliding_window_view(rows, length, axis=0)
    candidates = windows[: max(1, n_rows - length + 1 - period)]
    distances = ((candidates - windows[-1]) ** 2).sum(axis=(1, 2))
    following = int(distances.argmin()) + length
    out = np.concatenate([rows, np.empty((n_steps, rows.shape[1]))])
    for t in range(n_steps):
        out[n_rows + t] = out[following + t]
    return out[n_rows:]


def linear_autoregression(rows: Array, n_steps: int, *, lags: int = 5) -> Array:
    """Least squares of a row on the `lags` rows before it and a constant."""
    past = np.hstack([rows[lags - 1 - lag : len(rows) - 1 - lag] for lag in range(lags)])
    past = np.hstack([past, np.ones((len(past), 1))])
    coef = np.linalg.lstsq(past, rows[lags:], rcond=None)[0]
    out = np.concatenate([rows[-lags:], np.empty((n_steps, rows.shape[1]))])
    for t in range(n_steps):
        out[lags + t] = np.append(out[t : t + lags][::-1].ravel(), 1.0) @ coef
    return out[lags:]


def mean(rows: Array, n_steps: int) -> Array:
    """Forecast the mean."""
    return np.tile(rows.mean(axis=0), (n_steps, 1))


def reservoirpy_tutorial(rows: Array, n_steps: int) -> Array:
    """reservoirpy, with the settings of its introduction's example on the Lorenz system.

    500 units, leak 0.2, radius 1, a tenth of the connections, input and bias weights of +-1, ridge
    1e-6 on the states, each coordinate scaled to [-1, 1].
    """
    from reservoirpy import mat_gen, nodes

    low, width = rows.min(axis=0), np.ptp(rows, axis=0)
    scaled = 2 * (rows - low) / width - 1
    units = nodes.Reservoir(
        500,
        lr=0.2,
        sr=1.0,
        input_scaling=1.0,
        rc_connectivity=0.1,
        input_connectivity=1.0,
        bias=mat_gen.bernoulli,
        seed=0,
    )
    model = units >> nodes.Ridge(ridge=1e-6)
    model.fit(scaled[:-1], scaled[1:], warmup=20)
    model.reset()
    model.run(scaled[:-1])
    out, y = np.empty((n_steps, rows.shape[1])), scaled[-1]
    for t in range(n_steps):
        out[t] = y = np.ravel(model.step(y))
    return low + width * (out + 1) / 2


# --- tables ---------------------------------------------------------------------------------------


def standardised(method: SeededMethod) -> SeededMethod:
    """Give a method rows of mean 0 and standard deviation 1, and turn its forecast back."""

    def run(rows: Array, n_steps: int, seed: int) -> Array:
        center, width = rows.mean(axis=0), rows.std(axis=0)
        return center + width * method((rows - center) / width, n_steps, seed)

    return run


LORENZ: dict[str, SeededMethod] = {
    "500 units of the protocol, Gram, alpha 1e-8": standardised(protocol_network),
    "500 units of the protocol, QR, alpha 1e-27 T": standardised(protocol_network_qr),
    "1000 units, increments, QR, alpha 1e-27 T": standardised(increments_qr),
    "ESNForecaster as it comes": esn_forecaster,
    "NVAR, 1 lag, Chebyshev degree 10": standardised(chebyshev),
    "reservoirpy, the protocol, alpha 1e-8": standardised(
        lambda rows, n_steps, seed: reservoirpy_free_run(rows, n_steps, seed)
    ),
    "nearest motif": lambda rows, n_steps, seed: nearest_motif(rows, n_steps, period=40),
    "the flow, rounded each step: the ceiling": lambda rows, n_steps, seed: rounded_model(
        rows[-1], n_steps
    ),
}
LORENZ_SETTINGS = """\
protocol: 10 connections per row, radius 0.6, no leak, W_in +-0.15, bias +-1, readout of [1, u, x]
increments: radius 0.05, W_in +-0.3, bias +-2; the readout's target is the next row less the last
data standardised; T rows; nearest motif: 5 rows"""


def dysts_methods(points_per_period: int) -> dict[str, Method]:
    """Return what is measured on the systems of dysts."""
    return {
        "ESNForecaster as it comes": esn_forecaster,
        "ESNRegressor as it comes (100 units)": default_esn,
        "NVAR, 2 lags, degree 2, 1e-6 T": nvar,
        "reservoirpy, 500 units, its tutorial": reservoirpy_tutorial,
        "nearest motif of 5 rows": lambda rows, n_steps: nearest_motif(
            rows, n_steps, period=points_per_period
        ),
        "linear autoregression, 5 lags": linear_autoregression,
        "mean": mean,
    }


NEEDS = {"ESNForecaster": "ESNForecaster", "NVAR": "NVARRegressor"}


def left_out(name: str) -> str | None:
    """Say why a method cannot be run here, None if it can."""
    for start, needed in NEEDS.items():
        if name.startswith(start) and not hasattr(reservoir, needed):
            return f"no {needed} in this version"
    if "QR" in name and "solver" not in ESNRegressor().get_params():
        return "no solver='qr' in this version"
    if name.startswith("reservoirpy") and not importlib.util.find_spec("reservoirpy"):
        return "reservoirpy is not installed"
    return None

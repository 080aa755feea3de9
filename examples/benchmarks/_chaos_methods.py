"""What is measured on chaotic systems: each method is a function of the rows that it may see.

A method of `LORENZ` is called with (rows, n_steps, seed), one of `dysts_methods` with (rows,
n_steps); rows have shape (n_rows, n_coordinates), the forecast (n_steps, n_coordinates). A
forecast that diverges may hold anything from the step on where it does.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from _lorenz_truth import rounded_model
from protocols import SAME, WASHOUT, reservoirpy_free_run

from reservoir import ESNForecaster, ESNRegressor, NVARRegressor

Array = np.ndarray
Method = Callable[[Array, int], Array]
SeededMethod = Callable[[Array, int, int], Array]
DIVERGED = 1e6  # where a loop in Python stops: data are standardised

# --- ours -----------------------------------------------------------------------------------------


#: The defaults of `ESNRegressor` until it chose its penalty by itself.
FIRST_DEFAULTS: dict[str, Any] = {"n_units": 100, "leak_rate": 1.0, "alpha": 1e-6}


def esn_forecaster(rows: Array, n_steps: int, seed: int = 0, **changes: Any) -> Array:
    """Forecast by `ESNForecaster` as it comes, but for `changes`."""
    return ESNForecaster(random_state=seed, **changes).fit(rows).forecast(n_steps)


def default_esn(rows: Array, n_steps: int, seed: int = 0, **changes: Any) -> Array:
    """Forecast by `ESNRegressor` of 100 units, one leak of 1, radius 0.9, but for `changes`."""
    esn = ESNRegressor(**{**FIRST_DEFAULTS, "random_state": seed, **changes})
    return esn.fit(rows[:-1], rows[1:]).forecast(n_steps)


def nvar(rows: Array, n_steps: int, *, penalty: float, **settings: Any) -> Array:
    """Next generation reservoir computing; the penalty is per row."""
    model = NVARRegressor(alpha=penalty * len(rows), **settings)
    return model.fit(rows[:-1], rows[1:]).forecast(n_steps)


CHEBYSHEV = {"n_lags": 1, "degree": 10, "basis": "chebyshev", "solver": "qr"}


def protocol_network(rows: Array, n_steps: int, seed: int, **changes: Any) -> Array:
    """The 500 units of docs/results/chaos.md, with other parameters if `changes` says so."""
    esn = ESNRegressor(500, washout=WASHOUT, random_state=seed, **{**SAME, **changes})
    return esn.fit(rows[:-1], rows[1:]).forecast(n_steps)


def protocol_network_qr(rows: Array, n_steps: int, seed: int) -> Array:
    """The same by QR, with a penalty that only QR can tell from none."""
    return protocol_network(rows, n_steps, seed, solver="qr", alpha=1e-27 * len(rows))


def increments_qr(rows: Array, n_steps: int, seed: int, *, penalty: float) -> Array:
    """1000 units whose targets are increments, by QR; the penalty is per row."""
    esn = ESNRegressor(
        1000,
        spectral_radius=0.05,
        leak_rate=1.0,
        input_scaling=0.3,
        bias_scaling=2.0,
        solver="qr",
        alpha=penalty * len(rows),
        washout=WASHOUT,
        random_state=seed,
    )
    return forecast_increments(esn.fit(rows[:-1], np.diff(rows, axis=0)), rows[-1], n_steps)


def forecast_increments(model: Any, last: Array, n_steps: int) -> Array:
    """Go on from `last`: the next row is the last one and what the model says."""
    stream = model.stream()
    rows = np.full((n_steps, len(last)), np.nan)
    for t in range(n_steps):
        last = last + stream.predict(last[None])[0]
        if not np.abs(last).max() < DIVERGED:
            break
        rows[t] = last
    return rows


def tutorial_network(rows: Array, n_steps: int) -> Array:
    """Our network at the settings of `reservoirpy_tutorial`."""
    scaled, restore = scaled_to_one(rows)
    esn = ESNRegressor(
        500,
        leak_rate=0.2,
        spectral_radius=1.0,
        in_degree=0.1,
        input_weights="bernoulli",
        bias="bernoulli",
        bias_scaling=1.0,
        include_input=False,
        alpha=1e-6,
        washout=20,
        random_state=0,
    )
    return restore(esn.fit(scaled[:-1], scaled[1:]).forecast(n_steps))


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

    scaled, restore = scaled_to_one(rows)
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
    return restore(out)


def scaled_to_one(rows: Array) -> tuple[Array, Callable[[Array], Array]]:
    """Return rows scaled to [-1, 1] by their range, and the way back."""
    low, width = rows.min(axis=0), np.ptp(rows, axis=0)
    return 2 * (rows - low) / width - 1, lambda scaled: low + width * (scaled + 1) / 2


# --- tables ---------------------------------------------------------------------------------------


def standardised(method: SeededMethod) -> SeededMethod:
    """Give a method rows of mean 0 and standard deviation 1, and turn its forecast back."""

    def run(rows: Array, n_steps: int, seed: int) -> Array:
        center, width = rows.mean(axis=0), rows.std(axis=0)
        return center + width * method((rows - center) / width, n_steps, seed)

    return run


def unseeded(method: Method) -> SeededMethod:
    """Return a method that leaves nothing to chance, called with a seed."""
    return lambda rows, n_steps, seed: method(rows, n_steps)


LORENZ: dict[str, SeededMethod] = {
    "500 units of the protocol, Gram, 1e-8": standardised(protocol_network),
    "500 units of the protocol, QR, 1e-27 T": standardised(protocol_network_qr),
    "1000 units, increments, QR, 1e-27 T": standardised(partial(increments_qr, penalty=1e-27)),
    "1000 units, increments, QR, 1e-30 T": standardised(partial(increments_qr, penalty=1e-30)),
    "ESNForecaster as it comes": esn_forecaster,
    "ESNForecaster(n_networks=1)": partial(esn_forecaster, n_networks=1),
    "NVAR, 2 lags, degree 2, 1e-6": standardised(
        unseeded(partial(nvar, n_lags=2, degree=2, penalty=1e-6))
    ),
    "NVAR, Chebyshev degree 10, 1e-27 T": standardised(
        unseeded(partial(nvar, penalty=1e-27, **CHEBYSHEV))
    ),
    "the same, increments, 1e-27 T": standardised(
        unseeded(partial(nvar, penalty=1e-27, increments=True, **CHEBYSHEV))
    ),
    "the same, increments, 1e-30 T": standardised(
        unseeded(partial(nvar, penalty=1e-30, increments=True, **CHEBYSHEV))
    ),
    "nearest motif of 5 rows": unseeded(partial(nearest_motif, period=40)),
    "the flow, rounded each step: the ceiling": unseeded(
        lambda rows, n_steps: rounded_model(rows[-1], n_steps)
    ),
}
LORENZ_SETTINGS = """\
protocol: 10 connections per row, radius 0.6, no leak, W_in +-0.15, bias +-1, readout of [1, u, x]
1000 units: radius 0.05, W_in +-0.3, bias +-2; increments: the target is the next row less the last
Chebyshev: 1 lag, QR; penalties stand in the rows; data standardised; T rows"""


def dysts_methods(points_per_period: int) -> dict[str, Method]:
    """Return what is measured on the systems of dysts."""
    methods: dict[str, Method] = {
        "ESNForecaster as it comes": esn_forecaster,
        "ESNForecaster(n_networks=1)": partial(esn_forecaster, n_networks=1),
        "ESNRegressor, 100 units, leak of 1": default_esn,
        "500 units of the protocol": partial(protocol_network, seed=0),
        "500 units, settings of reservoirpy's": tutorial_network,
        "NVAR, 2 lags, degree 2, 1e-6": partial(nvar, n_lags=2, degree=2, penalty=1e-6),
        "the same, increments": partial(nvar, n_lags=2, degree=2, penalty=1e-6, increments=True),
        "nearest motif of 5 rows": partial(nearest_motif, period=points_per_period),
        "linear autoregression, 5 lags": linear_autoregression,
        "mean": mean,
    }
    if WITH_RESERVOIRPY:
        methods["reservoirpy, 500 units, the protocol"] = partial(reservoirpy_free_run, seed=0)
        methods["reservoirpy, 500 units, its tutorial"] = reservoirpy_tutorial
    return methods


WITH_RESERVOIRPY = importlib.util.find_spec("reservoirpy") is not None
if WITH_RESERVOIRPY:
    LORENZ["reservoirpy, the protocol, 1e-8"] = standardised(reservoirpy_free_run)

"""The jobs around a search: the spectral radius, and a grid search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from _fits import LEAK_RATE, WASHOUT, left_out, series
from _peers import load
from _timing import Report, interleave
from scipy.sparse.linalg import ArpackNoConvergence, eigs
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from reservoir import ESNRegressor
from reservoir.scaling import spectral_radius
from reservoir.topologies import random_sparse

Array = np.ndarray


def radius(report: Report, n_rounds: int, quick: bool) -> None:
    """Cost and error of the spectral radius, one timing per seed."""
    n_units, n_seeds = (600, 2) if quick else (20_000, 3)
    methods: dict[str, Callable[[Any], float]] = {
        "reservoir, spectral_radius": spectral_radius,
        "scipy, eigs(k=1)": lambda W: _arpack(W, k=1),
        "scipy, eigs(k=6, ncv=60)": lambda W: _arpack(W, k=6, ncv=60),
        "the same, tol=1e-6": lambda W: _arpack(W, k=6, ncv=60, tol=1e-6),
    }
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    errors: dict[str, list[float]] = {name: [] for name in methods}
    for seed in range(n_seeds):
        W = random_sparse(n_units, random_state=seed)
        right = converged(W)
        found: dict[str, float] = {}
        jobs = {
            name: lambda name=name, method=method, W=W, found=found: found.update({name: method(W)})
            for name, method in methods.items()
        }
        for name, times in interleave(jobs, 1).items():
            seconds[name] += times
            errors[name].append(abs(found[name] - right) / right)
    notes = {name: f"worst relative error {np.max(error):.0e}" for name, error in errors.items()}
    report.table(
        f"spectral radius, N = {n_units}, 10 per row, medians of seeds 0 to {n_seeds - 1}",
        seconds,
        notes=notes,
        n_units=n_units,
    )


def _arpack(W: Any, **options: Any) -> float:
    v0 = np.random.default_rng(0).normal(size=W.shape[0])
    try:
        return float(np.abs(eigs(W, v0=v0, return_eigenvectors=False, **options)).max())
    except ArpackNoConvergence:
        return np.nan


def converged(W: sp.csr_array) -> float:
    """The spectral radius from two start vectors and a large subspace, which have to agree."""
    if W.shape[0] <= 2000:
        return float(np.abs(np.linalg.eigvals(W.toarray())).max())
    found = []
    for seed in (1, 2):
        v0 = np.random.default_rng(seed).normal(size=W.shape[0])
        values = eigs(W, k=20, ncv=250, tol=1e-11, v0=v0, return_eigenvectors=False)
        found.append(float(np.abs(values).max()))
    if abs(found[0] - found[1]) > 1e-9 * found[0]:
        raise RuntimeError(f"the reference has not converged: {found}")
    return found[0]


# --- grid search ----------------------------------------------------------------------------------

RADII = (0.5, 0.7, 0.9, 1.1)


def search(report: Report, n_rounds: int, quick: bool) -> None:
    """24 settings by 3 folds; everybody makes its own random weights, 10 per row."""
    n_units, n_steps = (100, 1000) if quick else (300, 5000)
    rows = series(n_steps + 1)
    X, y = rows[:-1], rows[1:]
    alphas = np.logspace(-9, -4, 6)
    folds = TimeSeriesSplit(3)

    def ours(alpha_grid: list[Any]) -> float:
        esn = ESNRegressor(n_units, leak_rate=LEAK_RATE, washout=WASHOUT, random_state=0)
        grid = {"spectral_radius": RADII, "alpha": alpha_grid}
        return GridSearchCV(esn, grid, cv=folds, refit=False).fit(X, y).best_score_

    def loop(fit_and_predict: Callable[[float, float, Array, Array, Array], Array]) -> float:
        scores = [
            [
                r2_score(y[test], fit_and_predict(r, alpha, X[train], y[train], X[test]))
                for train, test in folds.split(X)
            ]
            for r in RADII
            for alpha in alphas
        ]
        return float(np.mean(scores, axis=1).max())

    contenders: dict[str, Callable[[], float]] = {
        "reservoir, 24 x 3": lambda: ours(list(alphas)),
        "reservoir, 4 x 3, alpha=[6 of them]": lambda: ours([alphas]),
    }
    notes = {"xesn": "left out, it predicts in closed loop only"}
    for name, (module, make) in SEARCHES.items():
        with left_out(notes, name):
            step = make(load(module), n_units)
            contenders[name] = lambda step=step: loop(step)
    for name, job in contenders.items():
        notes[name] = f"best R2 {job():.6f}"
    seconds = interleave(contenders, n_rounds)
    title = f"grid search, 24 settings x 3 folds, N = {n_units}, {n_steps} steps"
    report.table(title, seconds, notes=notes, n_units=n_units, n_steps=n_steps)


def _search_reservoirpy(nodes: Any, n_units: int) -> Callable[..., Array]:
    def step(r: float, alpha: float, X: Array, y: Array, X_test: Array) -> Array:
        options = {"rc_connectivity": 10 / n_units, "seed": 0}
        model = nodes.Reservoir(n_units, lr=LEAK_RATE, sr=r, **options) >> nodes.Ridge(alpha)
        return model.fit(X, y, warmup=WASHOUT).run(X_test)

    return step


def _search_pyrcn(network: Any, n_units: int) -> Callable[..., Array]:
    load("torch").set_num_threads(1)

    def step(r: float, alpha: float, X: Array, y: Array, X_test: Array) -> Array:
        options = {"hidden_layer_size": n_units, "leakage": LEAK_RATE, "k_rec": 10}
        esn = network.ESNRegressor(
            spectral_radius=r, alpha=alpha, washout=WASHOUT, verbose=False, **options
        )
        return esn.fit(X, y).predict(X_test)

    return step


def _search_echoes(echoes: Any, n_units: int) -> Callable[..., Array]:
    def step(r: float, alpha: float, X: Array, y: Array, X_test: Array) -> Array:
        options = {"leak_rate": LEAK_RATE, "sparsity": 1 - 10 / n_units, "random_state": 0}
        options |= {"regression_method": "ridge", "n_transient": WASHOUT}
        esn = echoes.ESNRegressor(
            n_reservoir=n_units, spectral_radius=r, ridge_alpha=alpha, **options
        )
        return esn.fit(X, y).predict(X_test)

    return step


def _search_rclib(rclib: Any, n_units: int) -> Callable[..., Array]:
    def step(r: float, alpha: float, X: Array, y: Array, X_test: Array) -> Array:
        options = {"sparsity": 10 / n_units, "leak_rate": LEAK_RATE, "include_bias": True}
        model = rclib.ESN()
        model.add_reservoir(rclib.reservoirs.RandomSparse(n_units, r, seed=0, **options))
        model.set_readout(rclib.readouts.Ridge(alpha, include_bias=True))
        model.fit(X, y, WASHOUT)
        return model.predict(X_test)

    return step


def _search_resdag(resdag: Any, n_units: int) -> Callable[..., Array]:
    torch = load("torch")
    torch.set_num_threads(1)

    def step(r: float, alpha: float, X: Array, y: Array, X_test: Array) -> Array:
        options = {"topology": ("erdos_renyi", {"p": 10 / n_units}), "dtype": torch.float64}
        esn = resdag.ESN(
            n_units,
            input_size=1,
            spectral_radius=r,
            leak_rate=LEAK_RATE,
            alpha=alpha,
            washout=WASHOUT,
            readout="cholesky",
            preprocessing=None,
            seed=0,
            **options,
        )
        esn.fit(torch.as_tensor(np.vstack([X, y[-1:]]))).eval()
        with torch.inference_mode():
            esn.reset_state()
            return esn(torch.as_tensor(X_test)).numpy()

    return step


SEARCHES = {
    "reservoirpy": ("reservoirpy.nodes", _search_reservoirpy),
    "PyRCN, torch": ("pyrcn.echo_state_network", _search_pyrcn),
    "echoes": ("echoes", _search_echoes),
    "rclib": ("rclib", _search_rclib),
    "ResDAG": ("resdag", _search_resdag),
}

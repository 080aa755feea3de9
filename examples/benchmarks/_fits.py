"""The jobs that fit: ridge path, Mackey-Glass, and its memory."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from _memory import in_child, measure
from _peers import MODELS, Model, load
from _reference import Build, CNetwork, build
from _timing import OURS_NUMPY, LeftOut, Report, first_calls, interleave, version
from scipy import linalg
from scipy.linalg import blas
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeCV

from reservoir import ESNRegressor, ReservoirTransformer
from reservoir.building import build_reservoir
from reservoir.datasets import mackey_glass as mackey_glass_series
from reservoir.dynamics import Reservoir, run
from reservoir.readouts import GramAccumulator, ridge_path

Array = np.ndarray
ALPHA, WASHOUT, LEAK_RATE, BLOCK_ROWS = 1e-6, 100, 0.3, 512
OURS_DEFAULT = "reservoir, default engine"  # which takes numba where it is worth it
LOADING_STEPS = 20_000


def series(n_steps: int) -> Array:
    rows = mackey_glass_series(n_steps, random_state=0)
    return (rows - rows.mean(axis=0)) / rows.std(axis=0)


def our_network(n_units: int) -> Reservoir:
    return build_reservoir(n_units, 1, leak_rate=LEAK_RATE, random_state=0)


# --- ridge ----------------------------------------------------------------------------------------


def ridge(report: Report, n_rounds: int, quick: bool) -> None:
    """A path of ten penalties over stored states, against one fit and RidgeCV."""
    n_units, n_steps = (200, 2000) if quick else (1000, 20_000)
    rows = series(n_steps + 1)
    H, y = run(our_network(n_units), rows[:-1]), rows[1:, 0]
    alphas = np.logspace(-6, 3, 10)

    def gram() -> GramAccumulator:
        return GramAccumulator(n_units, 1).update(H, y)

    jobs: dict[str, Callable[[], Any]] = {
        "reservoir, one penalty": lambda: gram().solve(ALPHA),
        "reservoir, ten penalties": lambda: ridge_path(gram(), alphas),
        "dsyrk + Cholesky, one penalty": lambda: solve(H, y[:, None]),
        "scikit-learn, Ridge": lambda: Ridge(ALPHA).fit(H, y),
        "scikit-learn, RidgeCV, ten": lambda: RidgeCV(alphas).fit(H, y),
    }
    notes: dict[str, str] = {}
    with left_out(notes, "reservoirpy, Ridge") as name:
        node = load("reservoirpy.nodes").Ridge
        jobs[name] = lambda: node(ridge=ALPHA).fit(H, y[:, None])
    with left_out(notes, "PyRCN, IncrementalRegression") as name:
        regression = load("pyrcn.linear_model").IncrementalRegression
        jobs[name] = lambda: regression(alpha=ALPHA).fit(H, y)
    first_calls({name: job for name, job in jobs.items() if "RidgeCV" not in name})
    seconds = interleave(jobs, n_rounds)
    title = f"{n_steps} states of {n_units} units, ratios to one penalty"
    report.table(title, seconds, notes=notes, n_units=n_units, n_steps=n_steps)


@contextlib.contextmanager
def left_out(notes: dict[str, str], name: str) -> Iterator[str]:
    """Note why `name` does not take part, if that is what the block ends with."""
    try:
        yield name
    except (LeftOut, RuntimeError) as reason:
        notes[name] = f"left out, {reason}"


def solve(H: Array, y: Array) -> tuple[Array, Array]:
    """Ridge readout from a Gram matrix in one piece: the least that a fit can cost."""
    mean_h, mean_y = H.mean(axis=0), y.mean(axis=0)
    gram = blas.dsyrk(1.0, H.T)
    return _finish(gram, H.T @ y, mean_h, mean_y, len(H))


def _finish(
    gram: Array, cross: Array, mean_h: Array, mean_y: Array, n_rows: int
) -> tuple[Array, Array]:
    gram -= n_rows * np.outer(mean_h, mean_h)
    gram[np.diag_indices(len(gram))] += ALPHA
    factor = linalg.cholesky(gram, overwrite_a=True, check_finite=False)
    coef = linalg.cho_solve((factor, False), cross - n_rows * np.outer(mean_h, mean_y)).T
    return coef, mean_y - coef @ mean_h


# --- Mackey-Glass ---------------------------------------------------------------------------------


def esn_of(network: Reservoir, **options: Any) -> ESNRegressor:
    """Our estimator with the weights of `network` and a readout of the states alone."""
    return ESNRegressor(
        network.n_units,
        topology=network.W,
        input_weights=network.W_in,
        bias=network.bias,
        spectral_radius=None,
        leak_rate=network.leak_rate,
        include_input=False,
        **options,
    )


def our_model(network: Reservoir, numpy_only: bool) -> Model:
    """`esn_of` the network, as a model of a job."""
    esn = esn_of(network, alpha=ALPHA, washout=WASHOUT)

    def under_engine(job: Callable[..., Any]) -> Callable[..., Any]:
        def call(*data: Any) -> Any:
            with without_numba() if numpy_only else contextlib.nullcontext():
                return job(*data)

        return call

    return Model(
        under_engine(esn.fit),
        under_engine(lambda X: esn.predict(X, initial_state="zeros")),
        under_engine(esn.forecast),
    )


@contextlib.contextmanager
def without_numba() -> Iterator[None]:
    """Make the estimators take the NumPy engine, as NUMBA_DISABLE_JIT=1 does."""
    if version("numba") is None:
        yield
        return
    config = load("numba").config
    before, config.DISABLE_JIT = config.DISABLE_JIT, True
    try:
        yield
    finally:
        config.DISABLE_JIT = before


def c_model(network: Reservoir, library: Any) -> Model:
    """States by C, in blocks; Gram matrix by BLAS."""
    c = CNetwork(library, network)
    fitted: dict[str, Any] = {}
    block = np.empty((BLOCK_ROWS, network.n_units))

    def blocks(X: Array) -> Any:
        state = np.zeros(network.n_units)
        for start in range(0, len(X), BLOCK_ROWS):
            rows = c.run(X[start : start + BLOCK_ROWS], state, block)
            yield start, rows
            state = rows[-1].copy()

    def fit(X: Array, y: Array) -> None:
        gram = np.zeros((network.n_units, network.n_units), order="F")
        cross, sum_h, end = 0.0, 0.0, None
        for start, rows in blocks(X):
            skip = max(0, WASHOUT - start)
            H, targets = rows[skip:], y[start + skip : start + len(rows)]
            gram = blas.dsyrk(1.0, H.T, 1.0, gram, overwrite_c=True)
            cross, sum_h, end = cross + H.T @ targets, sum_h + H.sum(axis=0), rows[-1].copy()
        n_rows = len(y) - WASHOUT
        readout = _finish(gram, cross, sum_h / n_rows, y[WASHOUT:].mean(axis=0), n_rows)
        fitted.update(readout=readout, end=end, first=y[-1].copy())

    def predict(X: Array) -> Array:
        coef, intercept = fitted["readout"]
        return np.vstack([rows @ coef.T + intercept for _, rows in blocks(X)])

    def generate(n_steps: int) -> Array:
        return c.generate(fitted["readout"], n_steps, fitted["end"], fitted["first"])

    return Model(fit, predict, generate, "with dsyrk and Cholesky")


@cache
def c_build() -> Build:
    return build()


def model_names() -> list[str]:
    return [OURS_DEFAULT, OURS_NUMPY, *c_build().kinds, *MODELS]


def make_model(name: str, network: Reservoir) -> Model:
    """The model of that name with the weights of `network`."""
    if name in (OURS_DEFAULT, OURS_NUMPY):
        return our_model(network, numpy_only=name == OURS_NUMPY)
    if name in MODELS:
        return MODELS[name](network, ALPHA, WASHOUT)
    return c_model(network, c_build().libraries[name, "float64"])


def mackey_glass(report: Report, n_rounds: int, quick: bool) -> None:
    """Fit, predict along the same series, and generate from its end."""
    n_units, n_steps, n_free = (200, 1500, 200) if quick else (1000, 10_000, 2000)
    rows = series(n_steps + 1 + n_free)
    X, y, truth = rows[:n_steps], rows[1 : n_steps + 1], rows[n_steps + 1 :]
    jobs: dict[str, dict[str, Callable[[], Any]]] = {"fit": {}, "predict": {}, "generate": {}}
    notes: dict[str, dict[str, str]] = {"fit": {}, "predict": {}, "generate": {}}
    network = our_network(n_units)
    print(c_build().message)
    for name in model_names():
        with left_out(notes["fit"], name):
            model = make_model(name, network)
            model.fit(X, y)
            jobs["fit"][name] = lambda model=model: model.fit(X, y)
            notes["fit"][name] = model.note
            for action, data, right in (("predict", X, y), ("generate", n_free, truth)):
                act = getattr(model, action)
                if not callable(act):
                    notes[action][name] = f"left out, {act}"
                    continue
                part = slice(WASHOUT, None) if action == "predict" else slice(100)
                error = np.sqrt(np.mean((act(data) - right)[part] ** 2))
                jobs[action][name] = lambda act=act, data=data: act(data)
                notes[action][name] = f"RMSE {error:.1e}"
                if action == "generate" and model.loop:
                    notes[action][name] += f"; {model.loop}"
    for action, n_rows in (("fit", n_steps), ("predict", n_steps), ("generate", n_free)):
        seconds = interleave(jobs[action], n_rounds)
        title = f"Mackey-Glass, N = {n_units}, 10 per row: {action}, {n_rows} steps"
        case = {"action": action, "n_units": n_units, "n_steps": n_rows}
        report.table(title, seconds, notes=notes[action], **case)


def memory(report: Report, n_rounds: int, quick: bool) -> None:
    """Peak memory of the fit above what was held before it, one process per library.

    The notes say what importing the library, and compiling, took before the fit.
    """
    n_units, n_steps = (200, 1500) if quick else (1000, 10_000)
    values: dict[str, float] = {}
    notes: dict[str, str] = {}
    for name in model_names():
        with left_out(notes, name):
            values[name], notes[name] = in_child("_fits", "peak", name, n_units, n_steps)
    stored = 8e-6 * n_units * n_steps
    title = f"peak of the fit, N = {n_units}, {n_steps} steps (all states: {stored:.0f} MB)"
    report.table(title, values, unit="MB", notes=notes, n_units=n_units, n_steps=n_steps)


def peak(name: str, n_units: int, n_steps: int) -> tuple[float, str]:
    """MB at the peak of one library's fit, and a note; to be called in a fresh process."""
    rows = series(max(n_steps, LOADING_STEPS) + 1)

    def load_and_compile() -> None:
        make_model(name, our_network(n_units)).fit(rows[: 3 * WASHOUT], rows[1 : 3 * WASHOUT + 1])
        if name == OURS_DEFAULT:  # takes numba for long series only, and stores no states
            make_model(name, our_network(100)).fit(rows[:LOADING_STEPS], rows[1:][:LOADING_STEPS])

    _, loaded = measure(load_and_compile)
    model = make_model(name, our_network(n_units))
    _, megabytes = measure(lambda: model.fit(rows[:n_steps], rows[1 : n_steps + 1]))
    return megabytes, f"before it, loading: {loaded:.0f} MB"


# --- more units than rows -------------------------------------------------------------------------

FEW = ("reservoir, rows kept", "reservoir, sums", "KernelRidge on states")


def few_rows(report: Report, n_rounds: int, quick: bool) -> None:
    """Processor seconds and memory of a fit under one penalty, each in a process of its own."""
    sizes = [(400, 200)] if quick else [(10_000, 2000), (10_000, 5000), (3000, 1500)]
    for n_units, n_rows in sizes:
        each = {name: in_child("_fits", "fit_of_few", name, n_units, n_rows) for name in FEW}
        of = {"n_units": n_units, "n_rows": n_rows}
        for k, unit in enumerate(("s", "MB")):
            values = {name: found[k] for name, found in each.items()}
            report.table(f"N = {n_units}, {n_rows} rows", values, unit=unit, **of)


def fit_of_few(name: str, n_units: int, n_rows: int) -> tuple[float, float]:
    """Processor seconds of a fit, and MB at its peak; to be called in a fresh process."""
    X = np.random.default_rng(0).normal(size=(n_rows, 1))
    y = np.roll(X[:, 0], 2)

    def fit(n_units: int, n_rows: int) -> Any:
        esn = ESNRegressor(n_units, alpha=0.01, washout=100, random_state=0)
        if name == FEW[0]:
            return esn.fit(X[:n_rows], y[:n_rows])
        if name == FEW[1]:  # solved for when first read
            return esn.partial_fit(X[:n_rows], y[:n_rows]).coef_
        states = ReservoirTransformer(n_units, random_state=0).fit_transform(X[:n_rows])
        states -= states.mean(axis=0)
        return KernelRidge(alpha=0.01).fit(states[100:], y[100:n_rows])

    fit(100, min(n_rows, 300))  # loads and compiles
    start = time.process_time()
    _, megabytes = measure(lambda: fit(n_units, n_rows))
    return time.process_time() - start, megabytes

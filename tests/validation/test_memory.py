"""Memory errors: the size, and a remedy, for each kind of allocation.

No test allocates much: the memory of the machine is set to a small value.
"""

import os
import pickle
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

import reservoir
from reservoir import (
    ESNClassifier,
    ESNForecaster,
    ESNRegressor,
    ESNSequenceClassifier,
    ESNSequenceRegressor,
    NVARRegressor,
    ReservoirFeatures,
    ReservoirTransformer,
    RNNClassifier,
    RNNRegressor,
)
from reservoir._validation import NotEnoughMemory, advising, dense, memory, room_for
from reservoir.building import build_reservoir, clear_cache
from reservoir.dynamics import run, run_many, step_jacobian
from reservoir.estimators.esn import sources
from reservoir.input_weights import input_weights
from reservoir.metrics import memory_capacity
from reservoir.readouts import (
    GramAccumulator,
    QRAccumulator,
    RecursiveLeastSquares,
    SlidingWindow,
    leave_one_out_ridge,
)
from reservoir.stability import certify_loop, lyapunov_exponents
from reservoir.topologies import (
    band,
    clustered,
    diagonals,
    orthogonal,
    random_sparse,
    scale_free,
    small_world,
)

pytestmark = pytest.mark.one_engine

N = 120  # units, or features: a matrix of N x N doubles has 115,200 bytes
HALF, TWO, THREE_HALVES = 60_000, 240_000, 180_000
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(130, 1)), RNG.normal(size=130)
LABELS = Y > 0
H = RNG.normal(size=(130, N))
TALL = RNG.normal(size=(2 * N, N))
SEQUENCES = [RNG.normal(size=(12, 1)) for _ in range(6)]
SMALL = build_reservoir(N, 1, random_state=0)


@pytest.fixture
def limit(monkeypatch):
    """Return a function that says how much memory there is."""
    clear_cache()  # weights that another test has drawn

    def say(n_bytes):
        monkeypatch.setattr(memory, "machine_memory", lambda: n_bytes)

    return say


def esn(kind=ESNRegressor, y=Y, **params):
    return kind(**{"n_units": N, "leak_rate": 1.0, "washout": 2, "random_state": 0} | params).fit(
        X, y
    )


def filled(kind):
    """Return sums over some rows."""
    return kind(N, 1).update(H, Y)


# what is asked for, the memory there is, what the message says of it
REFUSED = {
    "gram": (lambda: GramAccumulator(N, 1), HALF, r"120 x 120 numbers, 1 at a time.*features"),
    "qr": (lambda: filled(QRAccumulator).R, HALF, r"122 x 122 numbers, 1 at a time.*features"),
    "gram, solved": (lambda: filled(GramAccumulator).solve(1.0), TWO, "3 at a time"),
    "gram, path": (lambda: filled(GramAccumulator).path(), TWO, "5 at a time"),
    "qr, solved": (lambda: filled(QRAccumulator).solve(1.0), TWO, "4 at a time"),
    "qr, path": (lambda: filled(QRAccumulator).path(), TWO, "8 at a time"),
    "recursive": (lambda: RecursiveLeastSquares().fit(H, Y), HALF, "120 x 120"),
    "window": (lambda: SlidingWindow(3).fit(H, Y), HALF, "120 x 120"),
    "window's rows": (lambda: SlidingWindow(900).fit(H, Y), TWO, "n_rows=900 implies"),
    "rows": (lambda: leave_one_out_ridge(H, Y, [1.0]), HALF // 2, "120 features, 3"),
    "columns": (lambda: leave_one_out_ridge(H.T, H.T[:, 0], [1.0]), HALF // 2, "120 rows, 3"),
    "orthogonal": (lambda: orthogonal(N), TWO, r"n_units.*3 at a time.*sparse topology"),
    "random": (lambda: random_sparse(N, in_degree=1.0), HALF, r"n_units=120 with 120.*in_degree"),
    "diagonals": (lambda: diagonals(N, 119), HALF, r"with 119 conn.*in_degree"),
    "small world": (lambda: small_world(N, in_degree=0.9), HALF, r"with 108 conn.*in_degree"),
    "scale free": (lambda: scale_free(N, in_degree=0.9), HALF, r"with 108 conn.*in_degree"),
    "clusters": (lambda: clustered(N, in_degree=1.0, n_clusters=2), HALF, r"with 61.*in_degree"),
    "band": (lambda: band(N, lower=N, upper=N), HALF, r"n_units=120 with 239"),
    "inputs": (lambda: input_weights(N, N), HALF, r"input_weights of .*120 x 120.*columns"),
    "jacobian": (lambda: step_jacobian(SMALL, np.zeros(N), [0.0]), HALF, r"dense W.*fewer units"),
    "states": (lambda: run(SMALL, np.zeros((90, 1))), HALF, r"90 steps x 120 units.*float32"),
    "many": (lambda: run_many(SMALL, [np.zeros((90, 1))] * 4), HALF, "90 steps x 120 units"),
    "exponents": (lambda: lyapunov_exponents(SMALL, X, N), HALF, r"120 x 120.*n_exponents"),
    "loop": (
        lambda: certify_loop(
            SMALL, (np.zeros((1, N)), [0.0]), include_input=False, method="max_norm"
        ),
        HALF,
        r"121 x 121 units and outputs, 2.*fewer units",
    ),
    "capacity": (
        lambda: memory_capacity(SMALL, max_lag=2, n_train=5, n_test=5, washout=5),
        HALF,
        "smaller reservoir",
    ),
    "regressor": (esn, TWO, r"5 at a time.*n_units=120.*half as many rows"),
    "chunks": (
        lambda: ESNRegressor(N, alpha=1.0, random_state=0).partial_fit(X, Y),
        TWO,
        r"3 at a time.*n_units=120",
    ),
    "path": (lambda: esn(alpha=[1.0, 2.0]), TWO, r"5 at a time.*n_units=120"),
    "qr readout": (lambda: esn(solver="qr", alpha=1.0), TWO, r"4 at a time.*n_units=120"),
    "twice the units": (
        lambda: esn(augment="square", n_lags=1),
        10 * HALF,
        r"241 x 241.*n_units=120",
    ),
    "classifier": (
        lambda: esn(ESNClassifier, LABELS),
        TWO,
        r"n_units=120.*half as many rows as features",
    ),
    "stored": (lambda: esn(readout=Ridge()), HALF, r"130 rows x 120 .*readout=None.*n_units=120"),
    "orthogonal units": (
        lambda: esn(topology="orthogonal", readout=Ridge()),
        260_000,
        r"120 x 120.*n_units=120.*in_degree",
    ),
    "dense units": (lambda: build_reservoir(N, 1, in_degree=1.0), HALF, r"Lower n_units=120"),
    "transformer": (
        lambda: ReservoirTransformer(N, topology="orthogonal").fit(X),
        TWO,
        r"Lower n_units=120, or use a sparse",
    ),
    "transformed": (
        lambda: ReservoirTransformer(N, random_state=0).fit(X).transform(np.zeros((90, 1))),
        HALF,
        r"90 steps x 120 units.*float32",
    ),
    "polynomials": (
        lambda: NVARRegressor(n_lags=14, degree=2).fit(X, Y),
        TWO,
        r"119 x 119.*n_lags=14 or degree=2.*half as many rows as features",
    ),
    "network": (
        lambda: RNNRegressor(N, max_iter=1).fit(X, Y),
        TWO - 9_000,
        "weights of n_units=120",
    ),
    "network's classes": (
        lambda: RNNClassifier(N, max_iter=1, cell="lstm", random_state=0).fit(X, LABELS),
        TWO,
        r"n_units=120.*batch_size.*float32",
    ),
    "features": (
        lambda: ReservoirFeatures(N, random_state=0).fit_transform(SEQUENCES),
        50_000,
        r"of each of 6 sequences.*n_units=120.*pool",
    ),
    "sequences": (
        lambda: ESNSequenceClassifier(N, random_state=0).fit(SEQUENCES, [0, 1] * 3),
        50_000,
        r"of each of 6 sequences.*n_units=120",
    ),
    "numbers of sequences": (
        lambda: ESNSequenceRegressor(N, random_state=0).fit(SEQUENCES, range(6)),
        50_000,
        r"of each of 6 sequences.*n_units=120",
    ),
    "forecaster": (
        lambda: ESNForecaster(search=[{"n_units": N}], random_state=0).fit(Y.cumsum()),
        HALF,
        r"Lower n_networks, n_jobs or the n_units of search",
    ),
}


@pytest.mark.fast_cases(22)
@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_into_memory_raises(case, limit):
    ask, there, said = REFUSED[case]
    limit(there)
    with pytest.raises(MemoryError, match=said) as caught:
        ask()
    assert re.search(r"need \S+ GiB of memory, but the limit is \S+ GiB\. ", str(caught.value))
    limit(np.inf)
    if case != "forecaster":  # slow
        ask()


def test_a_hundred_thousand_units(limit, monkeypatch):
    """Refused before they are connected, unless few rows are kept."""

    def connect(*args):
        raise AssertionError("units are connected")

    limit(2.0**34)
    monkeypatch.setattr(sources, "reservoir_source", connect)
    with pytest.raises(MemoryError, match=r"6 at a time, need 447 GiB .* limit is 16 GiB"):
        ESNRegressor(100_000, alpha_selection="reml_ar1").fit(X, Y)
    with pytest.raises(AssertionError, match="connected"):
        ESNRegressor(100_000).fit(X, Y)


@pytest.mark.parametrize(("kind", "y"), [(ESNRegressor, Y), (ESNClassifier, LABELS)])
def test_few_rows_of_many_units_need_no_square_matrix(kind, y, limit):
    limit(8 * N**2)
    model = kind(N, random_state=0).fit(X[:40], y[:40])
    with pytest.raises(MemoryError, match=r"5 at a time"):
        model.fit(X, y)
    limit(8 * 40 * N)
    with pytest.raises(MemoryError, match=r"features of 40 rows x 120.*Lower n_units=120"):
        model.fit(X[:40], y[:40])


def test_a_fit_that_raises_keeps_what_was_fitted(limit):
    model = esn()
    before = pickle.dumps(model.predict(X))
    limit(HALF)
    with pytest.raises(MemoryError):
        model.fit(X, 2 * Y)
    assert pickle.dumps(model.predict(X)) == before


def exhausted(*args, **kwargs):
    raise MemoryError


class Hungry(Ridge):
    fit = exhausted


def test_memory_errors_in_a_fit_name_a_remedy(monkeypatch):
    with pytest.raises(MemoryError, match=r"not enough memory. Lower n_units=120.*fewer rows"):
        esn(readout=Hungry())
    monkeypatch.setattr("reservoir.estimators.rnn.network_estimator.run_training", exhausted)
    with pytest.raises(MemoryError, match=r"Lower n_units=7 .*batch_size"):
        RNNRegressor(7, random_state=0).fit(X, Y)


def test_an_allocation_that_fails_is_explained_once():
    explained = pytest.raises(NotEnoughMemory, match=r"^Two need 2 GiB of memory, which .* Less\.$")
    with explained as caught, room_for("One", 3, "No."), room_for("Two", 2**31, "Less."):
        raise MemoryError("Unable")
    assert str(caught.value.__cause__) == "Unable"
    explained = pytest.raises(NotEnoughMemory, match=r"^Unable\. Use less\.$")
    with explained as caught, advising("Not this."), advising("Use less."):
        raise MemoryError("Unable.")
    again = pickle.loads(pickle.dumps(caught.value))  # as workers hand it on
    assert (str(again), again.names_parameters) == ("Unable. Use less.", True)
    with pytest.raises(ValueError, match="other"), advising("Not this."), room_for("One", 1, "No."):
        raise ValueError("other")


def test_dense_arrays_are_what_they_were():
    W = np.arange(6.0).reshape(2, 3)
    assert dense(W) is W
    np.testing.assert_array_equal(dense(sp.csr_array(W)), W)
    assert dense(sp.csr_array(W.astype("float32"))).dtype == np.float32


def test_the_memory_there_is(monkeypatch, tmp_path):
    """That of the machine, of the container, or what the process may have: the least."""
    files = [tmp_path / name for name in ("none", "max", "limit")]
    files[1].write_text("max\n")
    monkeypatch.setattr(memory, "_LIMITS", [str(file) for file in files])
    there = memory._installed_memory.__wrapped__
    assert there() > 2**25
    files[2].write_text("5000\n")
    assert there() == 5000
    monkeypatch.setattr(memory, "_LIMITS", ())
    monkeypatch.delattr(os, "sysconf", raising=False)
    assert there() == np.inf
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(memory, "_installed_memory", lambda: 900.0)
    for limit, least in ((-1, 900), (700, 700), (2**62, 900)):
        monkeypatch.setattr(resource, "getrlimit", lambda which, limit=limit: (limit, limit))
        assert memory.machine_memory() == least


@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_one_series_takes_the_memory_of_one(engine, limit):
    """Kernels for eight series need memory for eight; one series alone does not go there."""
    if engine == "numba":
        pytest.importorskip("numba")
    rows = np.sin(np.arange(90.0))[:, None]
    limit(8 * 90 * N)
    (states,) = run_many(SMALL, [rows], engine=engine)
    np.testing.assert_array_equal(states, run(SMALL, rows, engine=engine))


LIMITED = """
    import resource
    import numpy as np
    from reservoir import ESNRegressor, RNNRegressor
    from reservoir._validation import memory
    from reservoir.readouts import GramAccumulator, QRAccumulator
    from reservoir.topologies import orthogonal, random_sparse

    resource.setrlimit(resource.RLIMIT_AS, (3_000_000_000,) * 2)
    memory.machine_memory = lambda: np.inf
    X, n = np.zeros((9, 1)), 22_000
    for ask in (
        lambda: GramAccumulator(n, 1),
        lambda: QRAccumulator(n, 1).R,
        lambda: orthogonal(n),
        lambda: random_sparse(n, in_degree=1.0),
        lambda: ESNRegressor(n, topology="ring").partial_fit(X, X[:, 0]),
        lambda: ESNRegressor(n, topology="ring", solver="qr").fit(X, X[:, 0]),
        lambda: RNNRegressor(n, init="glorot").fit(X, X[:, 0]),
    ):
        try:
            ask()
        except MemoryError as error:
            said = str(error)
            assert "GiB" in said and ("Use fewer" in said or "Lower n_units" in said), said
            print(type(error.__cause__).__name__)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_allocations_that_do_fail():
    folders = str(Path(reservoir.__file__).parents[1]), os.environ.get("PYTHONPATH", "")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(folders),
        "OPENBLAS_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LIMITED)],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(done.stdout.split()) == 7

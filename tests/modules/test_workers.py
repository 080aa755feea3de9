"""Parallel jobs: equal bits on every backend of joblib, and restored thread limits of BLAS."""

import contextlib
import threading

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context, get_config
from sklearn.linear_model import Ridge
from sklearn.utils.parallel import Parallel
from threadpoolctl import threadpool_info, threadpool_limits

from reservoir import ESNClassifier, ESNForecaster, ESNRegressor, ReservoirFeatures, _workers
from reservoir._workers import n_workers, one_blas_thread, run_jobs
from reservoir.datasets import lorenz
from reservoir.dynamics import Pooling, Reservoir, pool_many
from reservoir.estimators.esn import readout_training
from reservoir.model_selection import ClosedLoopSearchCV, backtest, make_forecast_pairs
from reservoir.stability import certify, sweep
from reservoir.stability.proofs import _certify

pytestmark = pytest.mark.one_engine

RNG = np.random.default_rng(0)
ORBIT = lorenz(100, dt=0.05, washout=100, random_state=0)
SERIES = RNG.normal(size=(40, 2))
SERIES[:, 0] += 5 * np.sin(np.arange(40) * np.pi / 6)
INPUTS = [RNG.normal(size=(n, 2)) for n in (300, 40, 170, 90)]
TARGETS = [X[:, 0] + 0.1 * RNG.normal(size=len(X)) for X in INPUTS]
MATRICES = RNG.normal(size=(9, 9)) / 9, RNG.normal(size=(9, 2)), np.zeros(9)


def fitted(model):
    """Return the arrays that a fit has found."""
    return {
        name: value
        for name, value in vars(model).items()
        if name.endswith("_") and isinstance(value, np.ndarray)
    }


def regressor(n_jobs):
    return fitted(ESNRegressor(9, noise=0.01, n_jobs=n_jobs, random_state=0).fit(INPUTS, TARGETS))


def classifier(n_jobs):
    labels = [y > 0 for y in TARGETS]
    return fitted(ESNClassifier(9, n_jobs=n_jobs, random_state=0).fit(INPUTS, labels))


def pools(n_jobs):
    return pool_many(Reservoir(*MATRICES), INPUTS * 3, Pooling(("mean", "last")), n_jobs=n_jobs)


def whole_sequences(n_jobs):
    return ReservoirFeatures(9, n_jobs=n_jobs, random_state=0).fit_transform(INPUTS * 4)


def bifurcations(n_jobs):
    grid = {"spectral_radius": [0.5, 2.0]}
    unit = Reservoir([[1.0]], [[1.0]], [0.0])
    found = sweep(unit, [[0.0]], grid, n_initial_states=4, random_state=0, n_jobs=n_jobs)
    return found.counts, found.exponents, found.certified


def panel(kind):
    def forecast(n_jobs):
        model = ESNForecaster(
            panel=kind, season=12, n_networks=1, n_jobs=n_jobs, verbose=1, random_state=0
        )
        return model.fit([SERIES[:, 0], SERIES[:, 1]]).forecast(3)

    return forecast


def bank(n_jobs):
    plans = [{"n_units": 9}, {"n_units": 5}]
    model = ESNForecaster(search=plans, n_networks=2, n_jobs=n_jobs, verbose=1, random_state=0)
    return model.fit(ORBIT).forecast(3)


def origins(n_jobs):
    pytest.importorskip("pandas")
    found = backtest(Ridge(), SERIES, horizon=3, n_lags=3, n_origins=3, verbose=1, n_jobs=n_jobs)
    return found.errors["error"].to_numpy()


def candidates(n_jobs):
    grid = {"spectral_radius": [0.2, 0.9]}
    model = ESNRegressor(9, input_scaling=0.05, random_state=0)
    search = ClosedLoopSearchCV(model, grid, horizon=5, n_starts=2, refit=False, n_jobs=n_jobs)
    return search.fit(*make_forecast_pairs(ORBIT)).cv_results_["mean_test_score"]


PLACES = {
    "regressor": regressor,
    "classifier": classifier,
    "pools": pools,
    "whole sequences": whole_sequences,
    "bifurcations": bifurcations,
    "panel, each": panel("each"),
    "panel, shared": panel("shared"),
    "bank": bank,
    "origins": origins,
    "candidates": candidates,
}


@pytest.fixture(scope="module")
def alone():
    """Place -> what one process finds there."""
    return {}


@pytest.fixture(scope="module")
def cluster():
    """Two workers of dask."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as two,
        distributed.Client(two),
    ):
        yield


@pytest.fixture
def small_batches(monkeypatch):
    """Let a fit of a few hundred rows be one of several batches."""
    monkeypatch.setattr(readout_training, "_BATCH_ROWS", 100)


def check_place(place, alone, backend, **options):
    """Hold a place that shares out jobs against one process, to the bit."""
    if place not in alone:
        alone[place] = PLACES[place](None)
    with joblib.parallel_config(backend, **options):
        np.testing.assert_equal(PLACES[place](2), alone[place])


FORKING = "ignore:This process .* is multi-threaded, use of fork:DeprecationWarning"


@pytest.mark.fast_cases(4)
@pytest.mark.usefixtures("small_batches")
@pytest.mark.filterwarnings(FORKING)
@pytest.mark.parametrize("backend", ["sequential", "threading", "multiprocessing"])
@pytest.mark.parametrize("place", PLACES)
def test_no_backend_changes_a_bit(place, backend, alone):
    check_place(place, alone, backend)


@pytest.mark.slow_cases("values")
@pytest.mark.usefixtures("small_batches")
@pytest.mark.filterwarnings(FORKING)
@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
@pytest.mark.parametrize("place", PLACES)
def test_processes_that_get_read_only_arrays_change_no_bit(place, backend, alone):
    check_place(place, alone, backend, max_nbytes=1)  # each array, mapped into memory


@pytest.mark.slow
@pytest.mark.usefixtures("small_batches", "cluster")
@pytest.mark.parametrize("place", PLACES)
def test_a_cluster_changes_no_bit(place, alone):
    check_place(place, alone, "dask")


# --- the jobs themselves


def configured(number):
    return number, get_config()["assume_finite"], threading.current_thread().name


@pytest.mark.parametrize("streams", [True, False])
def test_jobs_come_in_order_and_see_the_configuration(streams, monkeypatch):
    """Before joblib 1.3 nothing streamed."""

    def before_streams(**options):
        if "return_as" in options:
            raise TypeError("return_as")
        return Parallel(**options)

    if not streams:
        monkeypatch.setattr(_workers, "Parallel", before_streams)
    with config_context(assume_finite=True), joblib.parallel_config("threading"):
        found = list(run_jobs(configured, [(k,) for k in range(9)], 2))
    numbers, told, threads = zip(*found, strict=True)
    assert numbers == tuple(range(9))
    assert all(told)
    assert threading.current_thread().name not in threads


def test_one_worker_or_one_job_runs_here_when_it_is_asked_for():
    done = []
    for n_jobs, n in ((1, 3), (None, 3), (2, 1)):
        results = run_jobs(done.append, [(k,) for k in range(n)], n_jobs)
        assert done == []
        next(results)
        assert done == [0]
        done.clear()


@pytest.mark.parametrize("backend", ["threading", "multiprocessing", "loky"])
def test_jobs_that_write_run_in_threads_whatever_the_backend(backend):
    table = np.zeros(5)
    with joblib.parallel_config(backend):
        list(run_jobs(table.__setitem__, [(k, k) for k in range(5)], 2, in_threads=True))
        assert n_workers(2) == 2
    np.testing.assert_array_equal(table, np.arange(5))


# --- threads of linear algebra


def threads():
    return [pool["num_threads"] for pool in threadpool_info()]


def test_overlapping_threads_restore_the_threads_of_blas():
    """Red if each thread restores what it has found: the second one has found the limit."""
    with threadpool_limits(2):
        before = threads()
        first, second = contextlib.ExitStack(), contextlib.ExitStack()
        first.enter_context(one_blas_thread())
        assert set(threads()) <= {1}
        second.enter_context(one_blas_thread())
        first.close()
        assert set(threads()) <= {1}  # the second one's numbers depend on it
        second.close()
        assert threads() == before


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("place", ["regressor", "bifurcations", "candidates"])
@pytest.mark.usefixtures("small_batches")
def test_a_parallel_fit_restores_thread_limits(place):
    with threadpool_limits(2), joblib.parallel_config("threading"):
        before = threads()
        for _ in range(3):
            PLACES[place](2)
            assert threads() == before


@pytest.mark.parametrize("n_units, seen", [(500, 1), (501, 2)])
def test_certificates_of_few_units_take_one_thread(n_units, seen, monkeypatch):
    """Many small products on threads that wait for one another took a hundred times as long."""
    found = []
    proof = _certify.PROOFS["max_norm"]

    def rate(network, box):
        found.append(max(threads()))
        return proof.rate(network, box)

    monkeypatch.setitem(_certify.PROOFS, "max_norm", proof._replace(rate=rate))
    W = sp.eye_array(n_units, k=1, format="csr")
    with threadpool_limits(2):
        certify(Reservoir(W, np.zeros((n_units, 1)), np.zeros(n_units)), 0.0, 0.0)
    assert found == [seen]

"""Many sequences: equal numbers side by side, one by one, in workers and on a cluster."""

from collections import namedtuple

import joblib
import numpy as np
import pytest
from sklearn.linear_model import Ridge

from reservoir import ESNClassifier, ESNRegressor, ReservoirTransformer
from reservoir.dynamics import features, iter_states
from reservoir.estimators.esn import readout_training
from reservoir.readouts.selection import SELECTIONS

pytestmark = pytest.mark.both_engines
Rows = namedtuple("Rows", "X")


def sequences(lengths, seed=0):
    rng = np.random.default_rng(seed)
    Xs = [rng.normal(size=(n, 2)) for n in lengths]
    return Xs, [0.5 * X[:, 0] + 0.1 * rng.normal(size=len(X)) for X in Xs]


LENGTHS = [3000, 40, 1700, 9, 2500, 900, 4100, 333, 1200, 2900, 77, 5000, 600, 2000, 1500, 800]


@pytest.fixture(scope="module")
def data():
    return sequences(LENGTHS)


def one_by_one(Xs, ys, **params):
    """The model of one sequence after the other, no two of them side by side."""
    model = ESNRegressor(**params)
    for X, y in zip(Xs, ys, strict=True):
        model.partial_fit(X, y, new_sequence=True)
    return model


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-9), ("float32", 2e-4)])
@pytest.mark.parametrize("feedback", [False, True])
def test_side_by_side_equals_one_by_one(data, dtype, tolerance, feedback):
    Xs, ys = data
    params = {
        "n_units": 30, "washout": 5, "leak_rate": 0.4, "feedback": feedback, "alpha": 1e-4,
        "feedback_scaling": 0.1, "dtype": dtype, "random_state": 0,
    }  # fmt: skip
    together, apart = ESNRegressor(**params).fit(Xs, ys), one_by_one(Xs, ys, **params)
    np.testing.assert_allclose(together.coef_, apart.coef_, rtol=0, atol=tolerance)
    np.testing.assert_allclose(together.state_, apart.state_, rtol=0, atol=1e-5)
    assert (
        together._model.readout.n_rows == apart._model.readout.n_rows == sum(n - 5 for n in LENGTHS)
    )
    assert together._model.readout.parts[0].gram.dtype == np.float64
    predicted = together.predict(Xs)
    for X, y in zip(Xs, predicted, strict=True):
        alone = together.predict(X, initial_state="zeros")
        np.testing.assert_allclose(y, alone, rtol=0, atol=1e-12 if dtype == "float64" else 1e-5)
    for X, states in zip(Xs, together.states(Xs), strict=True):
        alone = together.states(X, initial_state="zeros")
        np.testing.assert_allclose(
            states, alone, rtol=0, atol=1e-12 if dtype == "float64" else 1e-5
        )


def test_transformed_side_by_side_as_one_by_one(data):
    Xs, _ = data
    transformer = ReservoirTransformer(25, leak_rate=0.3, random_state=0).fit(Xs)
    for X, states in zip(Xs, transformer.transform(Xs), strict=True):
        np.testing.assert_allclose(states, transformer.transform([X])[0], rtol=0, atol=1e-12)


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("selection", ["gcv", "blocked", "holdout"])
@pytest.mark.parametrize("weighted", [False, True])
def test_penalties_are_chosen_the_same(data, selection, weighted, monkeypatch):
    Xs, ys = data
    weights = [np.linspace(0.0, 2.0, len(X)) for X in Xs] if weighted else None
    params = {
        "n_units": 20, "alpha": np.logspace(-6, 3, 10), "alpha_selection": selection,
        "random_state": 0,
    }  # fmt: skip
    together = ESNRegressor(**params).fit(Xs, ys, weights)

    def alone(reservoir, series, *, initial_states, feedback=None, dt=None, engine="auto"):
        for i, X in enumerate(series):
            for start, block in iter_states(
                reservoir, X, initial_state=initial_states[i], engine=engine
            ):
                yield i, start, block

    monkeypatch.setattr(features, "iter_many", alone)
    apart = ESNRegressor(**params).fit(Xs, ys, weights)
    np.testing.assert_allclose(together.alpha_scores_, apart.alpha_scores_, rtol=1e-9)
    np.testing.assert_allclose(together.coef_, apart.coef_, rtol=0, atol=1e-9)


@pytest.mark.parametrize("selection", ["blocked", "holdout"])
def test_no_row_is_lost_between_the_parts(data, selection):
    Xs, _ = data
    lengths = [len(X) for X in Xs]
    skips = [min(7, n) for n in lengths]
    for edges, n, skip in zip(
        SELECTIONS[selection].cut(lengths, skips), lengths, skips, strict=True
    ):
        job = readout_training.TrainingSequence(None, None, None, skip, edges, None, None)
        rows = [
            (low, high)
            for start in range(0, n, 64)
            for _, low, high in readout_training._parts(job, start, min(64, n - start))
        ]
        assert [low for low, _ in rows] == [skip, *(high for _, high in rows[:-1])]
        assert rows[-1][1] == n


def test_weights_side_by_side_equal_weights_over_stored_states(data):
    Xs, ys = data
    rng = np.random.default_rng(1)
    weights = [rng.uniform(0, 2, len(X)) for X in Xs]
    esn = ESNRegressor(15, alpha=1e-3, washout=5, include_input=False, random_state=0)
    esn.fit(Xs, ys, weights)
    H, y, w = (
        np.concatenate([part[5:] for part in parts]) for parts in (esn.states(Xs), ys, weights)
    )
    ridge = Ridge(1e-3).fit(H, y, sample_weight=w)
    np.testing.assert_allclose(esn.coef_, ridge.coef_, rtol=0, atol=1e-8)


@pytest.mark.slow  # starts workers, whose bits `test_n_jobs_does_not_change_a_bit` compares as well
@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_strided_targets_do_not_change_a_bit_in_workers(noise):
    rng = np.random.default_rng(0)
    Xs = [rng.standard_normal((int(n), 2)) for n in rng.integers(50, 900, 60)]
    ys = [np.roll(X, 1, 0)[:, 0] for X in Xs]  # views of every second number
    fits = [
        ESNRegressor(50, alpha=1e-3, noise=noise, washout=20, n_jobs=n_jobs, random_state=0).fit(
            Xs, ys
        )
        for n_jobs in (1, 2)
    ]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)


@pytest.mark.parametrize(
    "dtype, n, n_rows, width",
    [
        ("float64", 40, 5000, 1), ("float64", 40, 1000, 8), ("float64", 200, 300, 32),
        ("float32", 40, 1800, 8), ("float32", 40, 600, 16), ("float32", 200, 200, 64),
    ],
)  # fmt: skip
def test_batches_fill_the_lanes_of_kernels(dtype, n, n_rows, width):
    """Nine sequences of 32 lanes took three times as long a row as 32 of them."""
    sizes = [
        len(batch) for batch in readout_training._batches([Rows(np.empty((n_rows, 1)))] * n, dtype)
    ]
    assert sum(sizes) == n
    assert {size % width for size in sizes[:-1]} == {0}
    least = 4096
    assert all(least <= size * n_rows <= max(4 * least, least + n_rows) for size in sizes[:-1])


def test_blas_runs_on_one_thread_while_many_sequences_are_summed(data, monkeypatch):
    limits = []
    original = readout_training.one_blas_thread
    monkeypatch.setattr(readout_training, "one_blas_thread", lambda: limits.append(1) or original())
    Xs, ys = data
    ESNRegressor(10, random_state=0).fit(Xs[:1], ys[:1])
    assert limits == []
    ESNRegressor(10, random_state=0).fit(Xs, ys)
    assert limits


def test_missing_targets_are_skipped_side_by_side(data):
    Xs, ys = data
    holes = [np.where(np.arange(len(y)) % 7 == 3, np.nan, y) for y in ys]
    params = {"n_units": 20, "missing_targets": "skip", "washout": 5, "random_state": 0}
    together, apart = ESNRegressor(**params).fit(Xs, holes), one_by_one(Xs, holes, **params)
    np.testing.assert_allclose(together.coef_, apart.coef_, rtol=0, atol=1e-9)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
def test_backends_do_not_change_a_bit(data, backend):
    Xs, ys = data
    alone = ESNRegressor(30, random_state=0).fit(Xs, ys)
    with joblib.parallel_config(backend, n_jobs=2):
        np.testing.assert_array_equal(
            ESNRegressor(30, random_state=0).fit(Xs, ys).coef_, alone.coef_
        )
    labels = [y > 0 for y in ys]
    alone = ESNClassifier(20, random_state=0).fit(Xs, labels)
    with joblib.parallel_config(backend):
        other = ESNClassifier(20, n_jobs=2, random_state=0).fit(Xs, labels)
    np.testing.assert_array_equal(other.coef_, alone.coef_)


@pytest.mark.slow
@pytest.mark.parametrize("processes", [False, True])
def test_a_dask_cluster_does_not_change_a_bit(data, processes):
    distributed = pytest.importorskip("distributed")
    Xs, ys = data
    alone = ESNRegressor(30, random_state=0).fit(Xs, ys)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=processes, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
    ):
        with joblib.parallel_backend("dask"):
            on_cluster = ESNRegressor(30, random_state=0).fit(Xs, ys)
        with joblib.parallel_config("dask"):
            with_n_jobs = ESNRegressor(30, n_jobs=-1, random_state=0).fit(Xs, ys)
    np.testing.assert_array_equal(on_cluster.coef_, alone.coef_)
    np.testing.assert_array_equal(with_n_jobs.coef_, alone.coef_)
    np.testing.assert_array_equal(on_cluster.state_, alone.state_)


@pytest.mark.parametrize("n", [1, 3, 4, 5, 16, 23, 64, 100])
def test_results_are_joined_in_order_with_one_sum_per_level(n):
    """The tree has a fan-in of four, joins neighbours only, and keeps few results at a time."""
    alive, most = set(), 0

    def join(one, other):
        assert one[-1] + 1 == other[0]
        alive.difference_update([one, other])
        alive.add(one + other)
        return one + other

    def arriving():
        nonlocal most
        for i in range(n):
            alive.add((i,))
            most = max(most, len(alive))
            yield (i,)

    assert readout_training.merged_in_tree(arriving(), join) == tuple(range(n))
    assert most <= 2 + np.log(n) / np.log(4)

"""Frames and arrays of Dask: the model and the predictions of one fit in memory, or an error."""

import os
import weakref

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from reservoir import ESNClassifier, ESNRegressor, NVARRegressor
from reservoir.interop import _dask

dask = pytest.importorskip("dask")
pd = pytest.importorskip("pandas")

pytestmark = pytest.mark.one_engine
rng = np.random.default_rng(0)
N = 1500
X = rng.normal(size=(N, 2))
Y = np.convolve(X[:, 0], 0.7 ** np.arange(8))[:N] + 0.3 * rng.normal(size=N)
TABLE, SERIES = pd.DataFrame(X, columns=["a", "b"]), pd.Series(Y, name="y")
LABELS = pd.Series(np.array(["low", "mid", "high"])[np.digitize(Y, [-0.5, 0.5])])
CHUNKS = (400, 30, 70, 500, 500)


@pytest.fixture
def da():
    return pytest.importorskip("dask.array")  # not when tests are collected: it takes .2 s


def esn(kind=ESNRegressor, **params):
    return kind(15, **{"random_state": 0, "spectral_radius": 0.5, "leak_rate": 1.0, **params})


def arrays(X=X, Y=Y, chunks=CHUNKS):
    import dask.array as da

    tail = (X.shape[1],)
    return da.from_array(X, chunks=(chunks, tail)), da.from_array(Y, chunks=(chunks, *Y.shape[1:]))


@pytest.fixture(autouse=True)
def in_this_process():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def frames():
    """A function from tables of pandas to frames with equal partitions."""
    dd = pytest.importorskip("dask.dataframe")
    return lambda *tables, n=5: [dd.from_pandas(each, npartitions=n) for each in tables]


def close(one, other, tol=1e-9):
    np.testing.assert_allclose(one, other, rtol=0, atol=tol * np.abs(other).max())


# --- arrays -------------------------------------------------------------------------------------

SAME = {
    "as it comes": (esn, Y),
    "two outputs": (lambda: esn(alpha=1e-2), np.column_stack([Y, X[:, 1] + Y])),
    "NVAR": (lambda: NVARRegressor(3), Y),
    "labels": (lambda: esn(ESNClassifier, alpha=1.0), LABELS.to_numpy()),
}


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("kind", SAME)
def test_arrays_give_one_fit_and_its_predictions(kind, da):
    """Chunks shorter than the overlap too; predictions are computed later, chunked like X."""
    make, y = SAME[kind]
    one, model = make().fit(X, y), make()
    assert model.fit(*arrays(Y=y)) is model
    close(model.coef_, one.coef_)
    assert model.seam_ <= 1e-8
    later = model.predict(arrays()[0])
    assert isinstance(later, da.Array)
    assert later.chunks[0] == CHUNKS
    assert later.shape == one.predict(X).shape
    if kind == "labels":
        np.testing.assert_array_equal(later.compute(), one.predict(X))
    else:
        close(later.compute(), one.predict(X))
        steady = model.predict(arrays()[0], initial_state="steady").compute()
        close(steady, one.predict(X, initial_state="steady"))


def test_a_fit_again_has_the_same_bits_and_one_in_memory_no_seam():
    """The tree of merges is fixed; `fit` with rows in memory forgets the seam."""
    x, y = arrays()
    model, again = esn().fit(x, y), esn().fit(x, y)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    assert not hasattr(model.fit(np.asarray(x), np.asarray(y)), "seam_")


def test_weights_are_chunked_like_the_rows(da):
    weights = rng.uniform(size=N)
    x, y = arrays()
    model = esn(alpha=1.0).fit(x, y, da.from_array(weights, chunks=(CHUNKS,)))
    close(model.coef_, esn(alpha=1.0).fit(X, Y, weights).coef_)


def test_ids_may_cross_chunks_but_not_return(da):
    """Sequences end where the id changes, in whatever chunk; one that returns raises."""
    table = np.column_stack([np.repeat([4.0, 2.0, 9.0], 500), X])
    x, y = arrays(table)
    model, one = esn(sequence_column=0).fit(x, y), esn(sequence_column=0).fit(table, Y)
    close(model.coef_, one.coef_)
    close(model.predict(x).compute(), one.predict(table))
    with pytest.raises(ValueError, match=r"id 4\.0 occurs again in part 5"):
        esn(sequence_column=0).fit(da.concatenate([x, x]), da.concatenate([y, y]))


def test_states_that_forget_slowly_raise_and_their_remedies_work(monkeypatch):
    """The overlap is doubled once; then `partial_fit` learns one partition after the other."""
    monkeypatch.setattr(_dask, "_FIRST_ROWS", 100)
    x, y = arrays(chunks=(750, 750))
    slow = esn(alpha=1e-2, spectral_radius=3.0, input_scaling=0.1)
    with pytest.raises(ValueError, match=r"overlap=200: .*one partition after the other"):
        slow.fit(x, y)
    for a, b in zip(x.partitions, y.partitions, strict=True):
        slow.partial_fit(a.compute(), b.compute())
    with pytest.raises(ValueError, match=r"overlap=100: .*Load X with np\.asarray"):
        slow.predict(x).compute()
    assert slow.predict(np.asarray(x)).shape == (N,)


def test_few_parts_wait_however_many_partitions(monkeypatch):
    """Sums of a group are merged before the next partitions are learned."""
    parts, learn, most = [], _dask._learn, 0

    def learning(*rows):
        nonlocal most
        part = learn(*rows)
        parts.append(weakref.ref(part))
        most = max(most, sum(each() is not None for each in parts))
        return part

    monkeypatch.setattr(_dask, "_learn", learning)
    NVARRegressor(2).fit(*arrays(chunks=(30,) * 50))
    assert len(parts) == 50
    assert most <= 8


@pytest.mark.parametrize(
    ("message", "spoil"),
    [
        ("chunks across columns", lambda x, y: (x.rechunk((500, 1)), y)),
        ("chunks of unknown sizes", lambda x, y: (x[x[:, 0] > 0], y)),
        ("have 5 .X., 3 .y.", lambda x, y: (x, y.rechunk(500))),
        (
            "partition 0 has .500, 400. rows",
            lambda x, y: (x.rechunk({0: (500, 1000)}), y.rechunk(((400, 1100),))),
        ),
        ("y is a ndarray", lambda x, y: (x, np.asarray(y))),
        ("no rows in any partition", lambda x, y: (x[:0], y[:0])),
    ],
)
def test_partitions_that_do_not_match_raise(message, spoil):
    """Each message names the way back, `np.asarray`, which works."""
    x, y = spoil(*arrays())
    with pytest.raises((ValueError, TypeError), match=message) as error:
        esn().fit(x, y)
    if "unknown" in message:
        esn().fit(x.compute_chunk_sizes(), y[: len(x)].rechunk((x.chunks[0],)))
    elif "np.asarray" in str(error.value) and message.startswith(("chunks", "y is")):
        esn(alpha=1.0).fit(np.asarray(x), np.asarray(y))


@pytest.mark.parametrize(
    "params", [{"washout": "measured"}, {"bias": "stable"}, {"bidirectional": True}, {"noise": 0.1}]
)
def test_parameters_that_need_all_rows_raise(params):
    with pytest.raises(ValueError, match=next(iter(params))):
        esn(**params).fit(*arrays())


@pytest.mark.parametrize("params", [{"feedback": True}, {"bidirectional": True}])
def test_predictions_that_depend_on_all_rows_raise(params):
    model = esn(alpha=1.0, **params).fit(X, Y)
    with pytest.raises(ValueError, match=next(iter(params))):
        model.predict(arrays()[0])


def test_a_series_an_unknown_column_and_no_fit_raise_as_in_memory():
    x, y = arrays()
    with pytest.raises(ValueError, match="X has 1 dimensions"):
        esn().fit(y, y)
    with pytest.raises(ValueError, match="sequence_column=7 is outside X"):
        esn(sequence_column=7).fit(x, y)
    with pytest.raises(ValueError, match="sequence_column='id' is a name"):
        esn(sequence_column="id").fit(x, y)
    with pytest.raises(NotFittedError):
        esn().predict(x)


def test_all_else_reads_arrays_as_before():
    """States, scores and probabilities load the rows."""
    x, y = arrays()
    model = esn(alpha=1.0).fit(X, Y)
    assert isinstance(model.states(x), np.ndarray)
    close(model.score(x, np.asarray(y)), model.score(X, Y))


# --- frames -------------------------------------------------------------------------------------


def test_frames_give_one_fit_with_index_and_divisions(frames):
    """Names, index, divisions and the name of y are kept; partitions may be empty."""
    d, y = frames(TABLE, SERIES)
    one, model = esn().fit(TABLE, SERIES), esn().fit(d, y)
    close(model.coef_, one.coef_)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    later = model.predict(d)
    assert later.divisions == d.divisions
    made = later.compute()
    pd.testing.assert_index_equal(made.index, TABLE.index)
    assert made.name == "y"
    close(made.to_numpy(), one.predict(TABLE))
    kept = (TABLE.index < 200) | (TABLE.index > 950)
    some = [each.map_partitions(lambda t: t[(t.index < 200) | (t.index > 950)]) for each in (d, y)]
    whole = esn().fit(X[kept], Y[kept])
    close(esn().fit(*some).coef_, whole.coef_)


def test_frames_of_two_outputs_ids_and_labels(frames):
    """A frame of outputs keeps their names; ids are a column; classes come from all partitions."""
    both = pd.DataFrame({"p": Y, "q": Y + X[:, 1]})
    d, y, names = frames(TABLE, both, LABELS)
    model = esn(alpha=1.0).fit(d, y)
    made = model.predict(d).compute()
    assert made.columns.tolist() == ["p", "q"]
    close(made.to_numpy(), esn(alpha=1.0).fit(TABLE, both).predict(TABLE))
    clf, one = esn(ESNClassifier).fit(d, names), esn(ESNClassifier).fit(TABLE, LABELS)
    assert clf.predict(d).compute().tolist() == one.predict(TABLE).tolist()
    close(clf.predict_proba(TABLE), one.predict_proba(TABLE), 1e-6)
    long = TABLE.assign(id=np.repeat(["u", "v", "w"], 500))
    for n in (3, 7):
        (d, y) = frames(long, SERIES, n=n)
        model = esn(sequence_column="id", alpha=1.0).fit(d, y)
        close(model.coef_, esn(sequence_column="id", alpha=1.0).fit(long, SERIES).coef_)


@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_parquet_of_few_columns_is_not_fused(frames, tmp_path):
    """Files that are fused by the width of what is read give equal partitions all the same."""
    dd = pytest.importorskip("dask.dataframe")
    frames(TABLE.assign(y=Y), n=6)[0].to_parquet(tmp_path)
    d = dd.read_parquet(tmp_path)
    model = esn(alpha=1.0).fit(d[["a", "b"]], d["y"])
    close(model.coef_, esn(alpha=1.0).fit(TABLE, SERIES).coef_)


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_gives_the_same_bits(frames, tmp_path):
    """Two processes, one of which is killed while it loads a partition."""
    distributed = pytest.importorskip("distributed")
    flag = str(tmp_path / "killed")

    def kill_once(rows):
        import signal

        if len(rows) and rows.index[0] > 500 and not os.path.exists(flag):
            open(flag, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return rows

    d, y = frames(TABLE, SERIES, n=8)
    alone = esn().fit(d, y)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as two,
        distributed.Client(two),
        dask.config.set(scheduler="distributed"),
    ):
        model = esn().fit(d.map_partitions(kill_once, meta=TABLE.iloc[:0]), y)
    assert os.path.exists(flag)
    np.testing.assert_array_equal(model.coef_, alone.coef_)

"""The whole recipe of a reservoir: the effect of each argument."""

import functools
import threading

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from reservoir import (
    ESNClassifier,
    ESNRegressor,
    ReservoirFeatures,
    ReservoirTransformer,
    building,
    drawing,
    load,
    save,
)
from reservoir.building import build_reservoir
from reservoir.datasets import narma
from reservoir.dynamics import run
from reservoir.scaling import spectral_radius
from reservoir.topologies import TOPOLOGIES, delay_line, diagonals

pytestmark = pytest.mark.one_engine

NILPOTENT = {"delay_line", "forward_connection"}  # radius 0, whatever the weights


def dense(matrix):
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix)


def same(left, right, *names):
    return all(np.array_equal(dense(getattr(left, n)), dense(getattr(right, n))) for n in names)


def small(n_units=30, n_features=2, **options):
    return build_reservoir(n_units, n_features, **{"random_state": 0, "n_outputs": 1, **options})


@pytest.mark.parametrize("seed", range(5))
def test_the_same_seed_gives_the_same_matrices(seed):
    left, right = small(random_state=seed), small(random_state=seed)
    assert same(left, right, "W", "W_in", "bias", "W_fb")
    other = small(random_state=seed + 100)
    for name in ("W", "W_in", "bias", "W_fb"):
        assert not same(left, other, name), name


def test_random_states():
    by_int = small(random_state=7)
    assert same(by_int, small(random_state=np.random.default_rng(7).spawn(1)[0]), "W") is False
    generator = np.random.default_rng(7)
    before = generator.bit_generator.state
    first, second = small(random_state=generator), small(random_state=generator)
    assert generator.bit_generator.state == before  # the caller's numbers are not used up
    assert not same(first, second, "W")
    assert same(first, small(random_state=np.random.default_rng(7)), "W", "W_in", "bias", "W_fb")
    legacy = np.random.RandomState(7)
    third, fourth = small(random_state=legacy), small(random_state=legacy)
    assert not same(third, fourth, "W")
    assert same(third, small(random_state=np.random.RandomState(7)), "W", "W_in", "bias")
    assert not same(small(random_state=None), small(random_state=None), "W")


@pytest.mark.parametrize(
    "change, touched",
    [
        ({"input_scaling": 0.3}, {"W_in"}),
        ({"input_scaling": [0.3, 2.0]}, {"W_in"}),
        ({"input_weights": "bernoulli"}, {"W_in"}),
        ({"bias_scaling": 0.7}, {"bias"}),
        ({"bias": "normal"}, {"bias"}),
        ({"leak_rate": 0.2}, set()),
        ({"activation": "relu"}, set()),
        ({"feedback_scaling": 0.1}, {"W_fb"}),
        ({"n_outputs": 3}, {"W_fb"}),
        ({"spectral_radius": 0.5}, {"W"}),
        ({"topology": "ring"}, {"W"}),
        ({"in_degree": 5}, {"W"}),
        ({"weights": "bernoulli"}, {"W"}),
        ({"topology": np.eye(30)}, {"W"}),
    ],
    ids=str,
)
@pytest.mark.parametrize("seed", [0, 1])
def test_an_argument_touches_its_own_matrix_only(change, touched, seed):
    base, changed = small(random_state=seed), small(random_state=seed, **change)
    for name in ("W", "W_in", "bias", "W_fb"):
        assert same(base, changed, name) == (name not in touched), name


def test_scalings_multiply():
    base = small()
    np.testing.assert_allclose(
        dense(small(input_scaling=[0.5, 3.0]).W_in), dense(base.W_in) * [0.5, 3.0], rtol=1e-14
    )
    np.testing.assert_allclose(small(bias_scaling=0.4).bias, base.bias * 4, rtol=1e-14)
    np.testing.assert_allclose(small(feedback_scaling=0.2).W_fb, base.W_fb * 0.2, rtol=1e-14)
    ratio = dense(small(spectral_radius=0.3).W) * 3
    np.testing.assert_allclose(ratio, dense(base.W), rtol=1e-9)


def test_defaults_lie_in_their_ranges():
    base = build_reservoir(500, 2, random_state=0)
    assert 0.9 < np.abs(dense(base.W_in)).max() <= 1.0
    assert 0.09 < np.abs(base.bias).max() <= 0.1
    assert (np.diff(base.W.indptr) == 10).all()
    assert base.W_fb is None
    assert base.leak_rate == 1.0


@pytest.mark.parametrize("name", sorted(TOPOLOGIES))
@pytest.mark.parametrize("seed", range(3))
def test_every_topology_has_the_asked_radius(name, seed):
    if name in NILPOTENT:
        reservoir = small(topology=name, random_state=seed, spectral_radius=None)
        assert not np.linalg.matrix_power(dense(reservoir.W), 30).any()
        return
    reservoir = small(topology=name, random_state=seed, spectral_radius=1.3)
    W = dense(reservoir.W)
    if name == "delay_line_feedback":  # far from normal: its eigenvalues are those of S = D W D^-1
        forth, back = np.diagonal(W, -1), np.diagonal(W, 1)
        W = np.diag(np.sqrt(forth * back), 1) + np.diag(np.sqrt(forth * back), -1)
    assert np.abs(np.linalg.eigvals(W)).max() == pytest.approx(1.3, rel=1e-6)


@settings(max_examples=30, deadline=None)
@given(
    n_units=st.integers(1, 40),
    n_features=st.integers(1, 4),
    radius=st.floats(0.05, 3.0),
    in_degree=st.one_of(st.integers(1, 60), st.floats(0.05, 1.0)),
    seed=st.integers(0, 2**32),
    dtype=st.sampled_from(["float64", "float32"]),
)
def test_any_size_builds_with_the_asked_radius(n_units, n_features, radius, in_degree, seed, dtype):
    try:
        reservoir = build_reservoir(
            n_units,
            n_features,
            spectral_radius=radius,
            in_degree=in_degree,
            random_state=seed,
            dtype=dtype,
        )
    except ValueError as error:  # a draw whose W is nilpotent has no radius to scale
        assert "radius 0" in str(error)  # noqa: PT017
        return
    assert reservoir.W.shape == (n_units, n_units)
    assert reservoir.W_in.shape == (n_units, n_features)
    assert reservoir.dtype == dtype
    wanted = min(in_degree, n_units) if isinstance(in_degree, int) else None
    if wanted is not None:
        assert (np.diff(reservoir.W.indptr) == wanted).all()
    assert spectral_radius(reservoir.W.astype(float)) == pytest.approx(
        radius, rel=1e-6 if dtype == "float64" else 1e-3
    )


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, sp.coo_array, np.ndarray.tolist])
def test_a_given_W_is_scaled_unless_told_not_to(storage):
    W = np.random.default_rng(3).normal(size=(30, 30))
    given, copied = storage(W), W.copy()
    scaled = small(topology=given, spectral_radius=0.7)
    assert np.abs(np.linalg.eigvals(dense(scaled.W))).max() == pytest.approx(0.7, rel=1e-6)
    ratio = dense(scaled.W) / W
    np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-12)
    np.testing.assert_array_equal(dense(small(topology=given, spectral_radius=None).W), W)
    np.testing.assert_array_equal(W, copied)  # the caller's array is left alone


def test_a_radius_of_zero_is_the_zero_matrix():
    assert not dense(small(spectral_radius=0.0).W).any()


def test_custom_matrices_and_distributions():
    W_in, bias = np.arange(60.0).reshape(30, 2), np.linspace(-1, 1, 30)
    given = small(input_weights=W_in, bias=bias, input_scaling=3.0, bias_scaling=3.0)
    np.testing.assert_array_equal(given.W_in, W_in)  # as given: no scaling
    np.testing.assert_array_equal(given.bias, bias)
    law = scipy.stats.uniform(5, 1)
    drawn = small(weights=law, input_weights=law, bias=law, spectral_radius=None)
    for part in (drawn.W.data, drawn.W_in / 1.0, drawn.bias / 0.1):
        assert 5 <= np.min(part) <= np.max(part) <= 6

    def lazy(n_units, *, random_state=None):
        return np.eye(n_units) * random_state.uniform(1, 2)

    assert same(small(topology=lazy), small(topology=lazy), "W")
    np.testing.assert_allclose(dense(small(topology=lazy).W), 0.9 * np.eye(30), rtol=1e-12)


def test_a_topology_gets_what_it_asks_for():
    seen = {}

    def nosy(n_units, *, in_degree=1, random_state=None):
        seen.update(in_degree=in_degree, n_units=n_units)
        return np.eye(n_units)

    small(topology=nosy, in_degree=4, weights="bernoulli")
    assert seen == {"in_degree": 4, "n_units": 30}


@pytest.mark.parametrize("dtype", ["float32", np.float32, np.dtype("float32")])
def test_float32(dtype):
    narrow, wide = small(dtype=dtype, leak_rate=np.full(30, 0.5)), small(leak_rate=0.5)
    for name in ("W", "W_in", "bias", "W_fb", "leak_rate"):
        assert getattr(narrow, name).dtype == np.float32, name
    np.testing.assert_array_equal(dense(narrow.W), dense(wide.W).astype(np.float32))
    X, F = np.ones((5, 2)), np.zeros((5, 1))
    assert run(narrow, X, feedback=F).dtype == np.float32
    np.testing.assert_allclose(
        run(narrow, X, feedback=F), run(wide, X, feedback=F), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("topology", ["diagonals", diagonals])
def test_the_in_degree_is_the_number_of_diagonals(topology):
    assert small(topology=topology, in_degree=4).W.nnz == 4 * 30
    assert small(topology=topology, in_degree=40).W.nnz == 29 * 30
    message = r"in_degree=0\.2 is a density, but topology='diagonals'.*Set in_degree=6, an integer"
    with pytest.raises(ValueError, match=message):
        small(topology=topology, in_degree=0.2)
    partial = functools.partial(diagonals, n_diagonals=3)
    assert small(topology=partial, in_degree=0.2).W.nnz == 3 * 30


def test_leak_rates_and_activation_are_passed_on():
    leaks = np.linspace(0.1, 1, 30)
    reservoir = small(leak_rate=leaks, activation="logistic")
    np.testing.assert_array_equal(reservoir.leak_rate, leaks)
    assert reservoir.activation == "logistic"


@pytest.mark.parametrize("topology", sorted(NILPOTENT))
def test_a_nilpotent_topology_with_a_radius_names_the_remedy(topology):
    with pytest.raises(ValueError, match=r"radius 0.*spectral_radius=None"):
        small(topology=topology)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"topology": "rign"}, r"topology='rign' is not known\. Did you mean 'ring'"),
        ({"topology": "nothing like it"}, r"topology='nothing like it' is not known\. Known"),
        ({"activation": "tanhh"}, r"activation='tanhh' is not known\. Did you mean 'tanh'"),
        ({"weights": "norml"}, r"weights='norml' is not known\. Did you mean 'normal'"),
        ({"input_weights": "unifrom"}, r"input_weights='unifrom' is not known\. Did you"),
        ({"bias": "stabel"}, r"bias='stabel' is not known\. Did you mean 'stable'"),
        ({"bias": "stable"}, 'bias="stable" needs drive_bounds'),
        ({"drive_bounds": (-1, 1)}, 'drive_bounds is only used with bias="stable"'),
        ({"dtype": "flaot32"}, r"dtype='flaot32' is not known\. Did you mean 'float32'"),
        ({"dtype": "float16"}, r"dtype='float16' is not known\..*Known: 'float32', 'float64'"),
        ({"dtype": int}, r"dtype='int64' is not known"),
        ({"topology": np.eye(4)}, r"W of shape \(4, 4\), but n_units=30 needs \(30, 30\)"),
        ({"topology": sp.eye_array(4)}, r"W of shape \(4, 4\), but n_units=30 needs"),
        ({"topology": lambda n, random_state: np.eye(3)}, r"lambda.* W of shape \(3, 3\)"),
        ({"spectral_radius": -0.1}, r"spectral_radius=-0\.1 must be finite and in \[0, inf\)"),
        ({"spectral_radius": np.nan}, r"spectral_radius=nan must be finite"),
        ({"leak_rate": 1.2}, r"leak_rate=1\.2 must be in \(0, 1\]"),
        ({"leak_rate": [0.5, 0.5]}, r"leak_rate must be a number or have shape \(30,\)"),
        ({"n_units": 0}, "n_units=0 must be at least 1"),
        ({"n_features": 0}, "n_features=0 must be at least 1"),
        ({"n_outputs": -1}, "n_outputs=-1 must be at least 0"),
        ({"input_scaling": [1.0, 1.0, 1.0]}, r"scaling must be a number or have shape \(2,\)"),
        ({"input_weights": np.ones((3, 2))}, r"input_weights.*\(3, 2\)"),
        ({"bias": np.ones(3)}, r"bias.*\(3,\)"),
        ({"random_state": -1}, "random_state=-1 must be at least 0"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)  # fmt: skip
def test_errors_and_their_messages(options, message):
    with pytest.raises(ValueError, match=message):
        small(**options)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"n_units": 2.5}, r"n_units must be an integer; got 2\.5"),
        ({"n_units": True}, "n_units must be an integer; got True"),
        ({"spectral_radius": "big"}, "spectral_radius must be a number; got 'big'"),
        (
            {"topology": None},
            "must be a name, a callable or a real array; got NoneType of dtype obj",
        ),
        ({"topology": np.eye(30) * 1j}, "real array; got ndarray of dtype complex128"),
        ({"topology": sp.eye_array(30) * 1j}, "real array; got .* of dtype complex128"),
        ({"random_state": "7"}, "random_state must be None, an int"),
        ({"spectral_raduis": 0.5}, "unexpected keyword argument 'spectral_raduis'"),
    ],
    ids=str,
)
def test_wrong_types_raise(options, message):
    with pytest.raises(TypeError, match=message):
        small(**options)


# --- matrices that are kept ----------------------------------------------------------------------


@pytest.fixture
def kept():
    building.clear_cache()
    yield drawing._unit_radius
    building.clear_cache()


@pytest.fixture
def generated(monkeypatch):
    """How often W was generated."""
    calls = []
    original = drawing._recurrent_weights

    def counted(*args):
        calls.append(args)
        return original(*args)

    monkeypatch.setattr(drawing, "_recurrent_weights", counted)
    return calls


def test_another_radius_scaling_or_leak_generates_nothing(kept, generated):
    first = small()
    for radius in (0.2, 0.9, 1.7):
        again = small(spectral_radius=radius, input_scaling=0.3, leak_rate=0.5, bias_scaling=2.0)
        assert spectral_radius(again.W) == pytest.approx(radius, rel=1e-9)
    assert len(generated) == len(kept) == 1
    building.clear_cache()
    np.testing.assert_array_equal(dense(small().W), dense(first.W))
    assert len(generated) == 2


def test_true_is_not_the_kept_matrix_of_one_connection(kept):
    small(in_degree=1)
    with pytest.raises(TypeError, match="in_degree"):
        small(in_degree=True)


@pytest.mark.parametrize(
    "change",
    [
        {"n_units": 31},
        {"topology": "ring"},
        {"in_degree": 9},
        {"in_degree": 1.0},
        {"weights": "uniform"},
        {"random_state": 1},
    ],
    ids=str,
)
def test_all_that_shapes_W_is_in_the_key(change, kept, generated):
    small(in_degree=1 if "in_degree" in change and change["in_degree"] == 1.0 else 10)
    changed = small(**change)
    assert len(generated) == 2
    building.clear_cache()
    np.testing.assert_array_equal(dense(changed.W), dense(small(**change).W))


def test_numpy_integers_are_integers(kept, generated):
    small(random_state=3, in_degree=10)
    small(random_state=np.int64(3), in_degree=np.int32(10), n_units=np.int64(30))
    assert len(generated) == 1


def law_of_ones_own(n_units, random_state=None):
    return np.random.default_rng(random_state).normal(size=(n_units, n_units))


@pytest.mark.parametrize(
    "options",
    [
        {"random_state": None},
        {"random_state": np.random.default_rng(0)},
        {"random_state": np.random.RandomState(0)},
        {"topology": law_of_ones_own},
        {"topology": np.eye(30)},
        {"weights": scipy.stats.norm(0, 2)},
        {"spectral_radius": None},
        {"spectral_radius": 0.0},
    ],
    ids=lambda options: next(iter(options)),
)
def test_what_may_not_come_again_is_not_kept(options, kept):
    small(**options)
    assert len(kept) == 0


def test_what_is_kept_cannot_be_changed_from_outside(kept):
    first = dense(small().W).copy()
    for storage in (small().W, small(topology="orthogonal").W):
        data = storage.data if sp.issparse(storage) else storage
        with pytest.raises(ValueError, match="read-only"):
            data[...] = 0
    np.testing.assert_array_equal(dense(small().W), first)


def test_the_memory_is_bounded(kept, monkeypatch):
    monkeypatch.setattr(kept, "max_bytes", 30_000)
    for seed in range(20):
        small(random_state=seed)
    sizes = [drawing._n_bytes(W) for W in kept._matrices.values()]
    assert 2 <= len(sizes) < 20
    assert sum(sizes) <= 30_000
    assert next(reversed(kept._matrices))[5] == 19  # the entropy of the seed used last
    small(n_units=200, topology="orthogonal")  # 320,000 bytes: too large to be kept
    assert len(kept) == len(sizes)


def test_what_was_used_last_stays(kept, monkeypatch):
    small(random_state=0)
    monkeypatch.setattr(kept, "max_bytes", 4 * sum(map(drawing._n_bytes, kept._matrices.values())))
    for seed in (1, 2, 3, 0, 4):  # 0 is used again before 4 needs room
        small(random_state=seed)
    assert [key[5] for key in kept._matrices] == [2, 3, 0, 4]


def test_a_radius_of_zero_does_not_depend_on_what_is_kept(kept):
    fresh = small(spectral_radius=0.0).W
    small(spectral_radius=0.9)
    again = small(spectral_radius=0.0).W
    assert fresh.nnz == again.nnz == 0


def test_a_name_that_comes_to_mean_another_function(kept, monkeypatch):
    generators = {
        30: lambda n, random_state=None: np.eye(n),
        900: lambda n, random_state=None: np.ones((n, n)),
    }
    for n_connections, generate in generators.items():
        monkeypatch.setitem(TOPOLOGIES, "mine", generate)
        W = dense(small(topology="mine", spectral_radius=1.0).W)
        assert np.count_nonzero(W) == n_connections


def test_threads_share_what_is_kept(kept):
    expected = [small(random_state=seed).W for seed in range(8)]
    building.clear_cache()
    found = [[] for _ in range(4)]

    def work(mine):
        for _ in range(5):
            mine.append([small(random_state=seed).W for seed in range(8)])

    threads = [threading.Thread(target=work, args=(mine,)) for mine in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for rounds in found:
        assert len(rounds) == 5
        for matrices in rounds:
            for W, reference in zip(matrices, expected, strict=True):
                np.testing.assert_array_equal(dense(W), dense(reference))


def test_a_search_generates_each_W_once(kept, generated):
    X = np.sin(0.2 * np.arange(300.0))[:, None]
    search = GridSearchCV(
        ESNRegressor(30, random_state=0),
        {"spectral_radius": [0.5, 0.9], "input_scaling": [0.1, 1.0], "leak_rate": [0.3, 1.0]},
        cv=TimeSeriesSplit(3),
    )
    search.fit(X[:-1], X[1:, 0])
    assert len(generated) == 1


# ------------------------------------------------------------ leak rates of groups


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("n_units", "sizes"), [(10, [4, 3, 3]), (9, [3, 3, 3]), (4, [2, 1, 1])])
def test_a_tuple_of_leak_rates_has_one_for_each_group(n_units, sizes, dtype):
    rates = np.repeat([1.0, 0.3, 0.1], sizes)
    left, right = (small(n_units, leak_rate=leak, dtype=dtype) for leak in ((1.0, 0.3, 0.1), rates))
    assert same(left, right, "W", "W_in", "bias", "W_fb", "leak_rate")
    whole = small(n_units, dtype=dtype)
    assert same(left, whole, "W", "W_in", "bias", "W_fb")  # all units hear each other


@pytest.mark.parametrize(
    ("leak_rate", "match"),
    [
        ((0.5,), r"shape \(10,\); got shape \(1,\)"),
        ((0.5,) * 11, r"shape \(10,\); got shape \(11,\)"),
        (np.array([0.5, 0.3]), r"shape \(10,\); got shape \(2,\)"),
        ((0.5, 1.5), r"leak_rate=1\.5 must be in \(0, 1\]"),
        ((0.5, 0.0), r"leak_rate=0 must be in \(0, 1\]"),
        ((0.5, "fast"), "leak_rate"),
    ],
)
def test_other_tuples_and_short_arrays_raise(leak_rate, match):
    with pytest.raises((ValueError, TypeError), match=match):
        small(10, leak_rate=leak_rate)
    with pytest.raises((ValueError, TypeError), match=match):
        ESNRegressor(10, leak_rate=leak_rate).fit(np.ones((30, 2)), np.arange(30.0))


def test_estimators_take_a_tuple_of_leak_rates_as_an_array(tmp_path):
    X, y = narma(200, random_state=0)
    few, each = (0.5, 0.3), np.repeat([0.5, 0.3], 10)
    fits = {}
    for cls in (ESNRegressor, ESNClassifier, ReservoirTransformer):
        for leak in (few, each):
            target = y > y.mean() if cls is ESNClassifier else y
            one = {"n_lags": 1} if cls is ESNRegressor else {}
            fits[cls, len(leak)] = cls(20, leak_rate=leak, random_state=0, **one).fit(X, target)
        assert same(*(fits[cls, n].reservoir_ for n in (2, 20)), "W", "leak_rate")
    esn = fits[ESNRegressor, 2]
    np.testing.assert_array_equal(esn.predict(X), fits[ESNRegressor, 20].predict(X))
    np.testing.assert_allclose(esn.to_rnn().predict(X), esn.predict(X), atol=1e-6)
    save(esn, tmp_path / "esn.npz")
    again = load(tmp_path / "esn.npz")
    assert again.leak_rate == clone(esn).leak_rate == few
    np.testing.assert_array_equal(again.predict(X), esn.predict(X))
    proved = ESNRegressor(
        20, leak_rate=few, topology="orthogonal", bias="stable", random_state=0
    ).fit(X, y)
    assert proved.certificate_.holds
    search = GridSearchCV(esn, {"leak_rate": [1.0, few]}, cv=TimeSeriesSplit(2)).fit(X, y)
    assert search.best_params_["leak_rate"] in (1.0, few)


# --- heads and delay lines ---


def test_a_delay_line_of_small_drive_holds_its_inputs(global_random_seed):
    u = np.random.default_rng(global_random_seed).uniform(-1, 1, (60, 2))
    line = delay_line(40, n_lines=2)
    options = {"input_weights": "heads", "input_scaling": 1e-3, "bias_scaling": 0.0}
    res = build_reservoir(40, 2, topology=line, spectral_radius=None, **options)
    state = run(res, u)[-1].reshape(2, 20).T
    np.testing.assert_allclose(state, 1e-3 * u[::-1][:20], rtol=1e-3)


def test_heads_grow_with_a_search_over_units():
    X, y = narma(200, random_state=0)
    line = {"topology": "delay_line", "spectral_radius": None, "leak_rate": 1.0}
    esn = ESNRegressor(5, input_weights="heads", **line, random_state=0)
    search = GridSearchCV(esn, {"n_units": [2, 12]}, cv=TimeSeriesSplit(2)).fit(X, y)
    best = search.best_estimator_
    assert clone(best).input_weights == "heads"
    assert best.n_units == 12
    np.testing.assert_array_equal(np.flatnonzero(dense(best.reservoir_.W_in)), [0])


def test_each_group_has_heads_unless_it_has_columns_of_its_own():
    X = np.random.default_rng(0).normal(size=(3, 20, 2))
    features = ReservoirFeatures(
        12, leak_rate=(1.0, 0.5), differences=False, input_weights="heads", random_state=0
    )
    found = dense(features.fit(X).reservoir_.W_in)
    assert np.argwhere(found).tolist() == [[0, 0], [3, 1], [6, 0], [9, 1]]
    for change, message in (
        ({"n_units": 3}, "n_features=2 exceeds n_units=1"),
        ({"differences": (1,)}, 'input_weights="heads" gives every input'),
    ):
        with pytest.raises(ValueError, match=message):
            clone(features).set_params(**change).fit(X)

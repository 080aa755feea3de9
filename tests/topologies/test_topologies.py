"""Topologies: their exact connections, and their cost."""

import inspect
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats as st
from hypothesis import given, settings
from hypothesis import strategies as hs

from reservoir import topologies
from reservoir._weights import distinct_columns, draw, resolve_degree
from reservoir.input_weights import input_weights
from reservoir.topologies import (
    TOPOLOGIES,
    add_diagonal,
    add_jumps,
    add_self_loops,
    band,
    cluster_labels,
    clustered,
    cycle,
    cycle_with_jumps,
    dale,
    delay_line,
    diagonals,
    orthogonal,
    permutation,
    random_sparse,
    ring,
    scale_free,
    small_world,
    toeplitz,
    with_signs,
    with_weights,
)

DETERMINISTIC = (
    "ring", "delay_line", "delay_line_feedback", "self_loop_delay_line", "forward_connection",
    "cycle_with_jumps", "double_cycle", "self_loop_cycle", "toeplitz",
)  # fmt: skip
WEIGHTED = ("random_sparse", "diagonals", "small_world", "scale_free", "clustered", "band")


def assert_clean(W, n_units):
    assert isinstance(W, sp.csr_array)
    assert W.shape == (n_units, n_units)
    assert W.dtype == np.float64
    assert W.indices.dtype == W.indptr.dtype == np.int32
    assert W.indptr[0] == 0
    assert W.indptr[-1] == W.indices.size == W.data.size
    rows = np.repeat(np.arange(n_units), np.diff(W.indptr))
    keys = rows * n_units + W.indices
    assert np.all(np.diff(keys) > 0)  # sorted, and no duplicates
    assert not W.indices.size or (W.indices.min() >= 0 and W.indices.max() < n_units)


# --- all of them ---


@pytest.mark.parametrize("name", TOPOLOGIES)
@pytest.mark.parametrize("n_units", [1, 2, 3, 4, 11, 100])
def test_every_topology_at_every_size(name, n_units):
    W = TOPOLOGIES[name](n_units, random_state=0)
    if name == "orthogonal":
        assert W.shape == (n_units, n_units)
    else:
        assert_clean(W, n_units)
        assert np.all(W.data != 0)


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_signatures(name):
    parameters = inspect.signature(TOPOLOGIES[name]).parameters
    assert next(iter(parameters)) == "n_units"
    free = {"n_units"} | ({"n_diagonals"} if name == "diagonals" else set())
    assert {p.name for p in parameters.values() if p.kind is not p.KEYWORD_ONLY} == free
    assert parameters["random_state"].default is None
    assert ("weights" in parameters) == (name in WEIGHTED)
    assert TOPOLOGIES[name] is getattr(topologies, name)


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_seeds(name):
    def dense(seed):
        W = TOPOLOGIES[name](40, random_state=seed)
        return W.toarray() if sp.issparse(W) else W

    np.testing.assert_array_equal(dense(3), dense(3))
    assert np.array_equal(dense(3), dense(4)) == (name in DETERMINISTIC)
    one, two = np.random.default_rng(5), np.random.default_rng(5)
    np.testing.assert_array_equal(dense(one), dense(two))
    assert one.random() == two.random() == np.random.default_rng(5).random()


@pytest.mark.parametrize("name", TOPOLOGIES)
@pytest.mark.parametrize(
    "n_units, error", [(0, ValueError), (-3, ValueError), (2.0, TypeError), (True, TypeError)]
)
def test_number_of_units_is_checked(name, n_units, error):
    with pytest.raises(error, match="n_units"):
        TOPOLOGIES[name](n_units)


@pytest.mark.parametrize("name", WEIGHTED)
def test_connections_do_not_depend_on_the_law(name):
    one, two = (TOPOLOGIES[name](50, weights=w, random_state=1) for w in ("normal", "bernoulli"))
    np.testing.assert_array_equal(one.indices, two.indices)
    assert set(two.data) == {-1.0, 1.0}


@pytest.mark.parametrize("name", WEIGHTED)
def test_laws(name):
    n_units = 3000
    make = TOPOLOGIES[name]
    normal = make(n_units, weights="normal", random_state=0).data
    assert st.kstest(normal, "norm").pvalue > 1e-4
    uniform = make(n_units, weights="uniform", random_state=0).data
    assert st.kstest(uniform, "uniform", args=(-1, 2)).pvalue > 1e-4
    assert np.mean(make(n_units, weights="bernoulli", random_state=0).data) == pytest.approx(
        0, abs=0.06
    )
    assert make(n_units, weights=st.uniform(2, 1), random_state=0).data.min() >= 2
    with pytest.raises(ValueError, match=r"weights='gaussian' is not known.*Known: 'bernoulli'"):
        make(5, weights="gaussian")
    with pytest.raises(TypeError, match=r"weights must be one of.*scipy\.stats"):
        make(5, weights=3.0)


# --- in-degree ---


@settings(max_examples=80, deadline=None)
@given(hs.integers(1, 120), hs.integers(1, 150), hs.integers(0, 10**6))
def test_in_degree_is_exact(n_units, in_degree, seed):
    W = random_sparse(n_units, in_degree=in_degree, random_state=seed)
    assert_clean(W, n_units)
    assert np.all(np.diff(W.indptr) == min(in_degree, n_units))


@settings(max_examples=60, deadline=None)
@given(hs.integers(1, 120), hs.floats(0, 1, exclude_min=True))
def test_density(n_units, density):
    W = random_sparse(n_units, in_degree=density, random_state=0)
    assert np.all(np.diff(W.indptr) == max(1, round(density * n_units)))


def test_one_is_not_one_point_zero():
    assert random_sparse(30, in_degree=1).nnz == 30
    assert random_sparse(30, in_degree=1.0).nnz == 900
    assert random_sparse(30, in_degree=np.int64(2)).nnz == 60
    assert random_sparse(30, in_degree=np.float32(0.1)).nnz == 90


@pytest.mark.parametrize("name", ["random_sparse", "small_world", "scale_free", "clustered"])
@pytest.mark.parametrize(
    "in_degree, error, message",
    [
        (0, ValueError, "in_degree=0 must be at least 1"),
        (-2, ValueError, "in_degree=-2"),
        (0.0, ValueError, r"in_degree=0.0 .*\(0, 1\]"),
        (2.5, ValueError, r"density.*integer, in_degree=2"),
        (10.0, ValueError, "in_degree=10, for that many"),
        (np.nan, ValueError, "in_degree=nan"),
        (np.inf, ValueError, "in_degree=inf"),
        (True, TypeError, "in_degree must be an integer"),
        ("10", TypeError, "in_degree must be an integer"),
        (None, TypeError, "in_degree must be an integer"),
    ],
)
def test_in_degree_errors(name, in_degree, error, message):
    with pytest.raises(error, match=message):
        TOPOLOGIES[name](20, in_degree=in_degree)


@pytest.mark.parametrize("in_degree", [1, 3, 24, 26, 100, 150, 199, 200])
def test_columns_are_uniform(in_degree):
    # sparse, and dense beyond an eighth: both routes choose every unit equally often
    n_units = 200
    counts = np.zeros(n_units)
    for seed in range(20):
        counts += np.bincount(
            random_sparse(n_units, in_degree=in_degree, random_state=seed).indices,
            minlength=n_units,
        )
    p = in_degree / n_units
    spread = np.sqrt(max(20 * n_units * p * (1 - p), 1e-9))
    assert np.max(np.abs(counts - 20 * in_degree)) < 5 * spread


def test_sets_of_columns_are_uniform(global_random_seed):
    # all 28 pairs of 8 columns by redrawing duplicates (degree 1 of 8 is the limit, so 2 of 16)
    columns = distinct_columns(24_000, 16, 2, np.random.default_rng(global_random_seed))
    counts = np.unique(columns[:, 0] * 16 + columns[:, 1], return_counts=True)[1]
    assert counts.size == 120
    assert st.chisquare(counts).pvalue > 1e-4


def test_memory_is_proportional_to_connections():
    tracemalloc.start()
    W = random_sparse(100_000, random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert W.nnz == 1_000_000
    assert peak < 60 * W.nnz  # bytes; the result itself takes 12 per connection


def test_nearly_full_rows():
    W = random_sparse(1000, in_degree=997, random_state=0)
    assert np.all(np.diff(W.indptr) == 997)
    assert_clean(W, 1000)


# --- the single topologies ---


def test_ring_and_delay_line():
    np.testing.assert_array_equal(ring(5).toarray(), np.roll(np.eye(5), 1, axis=0))
    np.testing.assert_array_equal(delay_line(5, weight=2.0).toarray(), 2 * np.eye(5, k=-1))
    assert ring(1).toarray().tolist() == [[1.0]]
    assert delay_line(1).nnz == 0


@pytest.mark.parametrize("n_units, n_lines", [(8, 4), (7, 3), (5, 5)])
def test_several_delay_lines_begin_where_inputs_enter(n_units, n_lines):
    W = delay_line(n_units, weight=0.9, n_lines=n_lines)
    assert_clean(W, n_units)
    W = W.toarray()
    np.testing.assert_array_equal(np.unique(W[W != 0]), [0.9] * (n_lines < n_units))
    heads = input_weights(n_units, n_lines, law="heads").any(axis=1)
    np.testing.assert_array_equal(W.any(axis=1), ~heads)
    assert np.abs(W - 0.9 * np.eye(n_units, k=-1)).any(axis=1).sum() == n_lines - 1


@pytest.mark.parametrize("n_lines", [0, 6])
def test_the_number_of_delay_lines_is_bounded(n_lines):
    with pytest.raises(ValueError, match=f"n_lines={n_lines}"):
        delay_line(5, n_lines=n_lines)


@pytest.mark.parametrize("n_units, jump_size", [(12, 3), (13, 3), (14, 5), (6, 3), (5, 4), (3, 7)])
def test_jumps_as_rodan_and_tino_put_them(n_units, jump_size):
    expected = ring(n_units).toarray()
    for start in range(0, n_units // jump_size * jump_size, jump_size):  # literally the source
        end = start + jump_size
        if end >= n_units:
            end = 0 if n_units % jump_size == 0 else None
        if end is not None and end != start:
            expected[start, end] = expected[end, start] = 0.5
    W = cycle_with_jumps(n_units, jump_size=jump_size)
    np.testing.assert_array_equal(W.toarray(), expected)


@pytest.mark.parametrize("n_units, n_diagonals", [(1, 10), (2, 1), (5, 2), (11, 10), (9, 40)])
def test_diagonals(n_units, n_diagonals, global_random_seed):
    W = diagonals(n_units, n_diagonals, random_state=global_random_seed)
    assert_clean(W, n_units)
    offsets = (W.indices - np.repeat(np.arange(n_units), np.diff(W.indptr))) % n_units
    n_different = min(n_diagonals, max(n_units - 1, 1))
    # every diagonal is full, and none is the main one, unless there is no other
    np.testing.assert_array_equal(
        np.unique(offsets, return_counts=True)[1], [n_units] * n_different
    )
    assert (0 in offsets) == (n_units == 1)


def test_offsets_of_diagonals_are_uniform():
    counts = np.zeros(50)
    for seed in range(400):
        counts += np.bincount(diagonals(50, 5, random_state=seed).indices[:5], minlength=50)
    assert counts[0] == 0  # row 0 receives from unit `offset`
    assert st.chisquare(counts[1:]).pvalue > 1e-4


@pytest.mark.parametrize(
    "n_diagonals, error", [(0, ValueError), (2.0, TypeError), (True, TypeError)]
)
def test_number_of_diagonals_is_checked(n_diagonals, error):
    with pytest.raises(error, match="n_diagonals"):
        diagonals(9, n_diagonals)


def test_orthogonal_and_permutation():
    Q = orthogonal(60, random_state=0)
    np.testing.assert_allclose(Q @ Q.T, np.eye(60), atol=1e-13)
    # Haar: the traces have variance 1 (with signs left to the QR they have not)
    traces = [np.trace(orthogonal(4, random_state=s)) for s in range(1500)]
    assert np.var(traces) == pytest.approx(1.0, abs=0.15)
    assert np.mean(traces) == pytest.approx(0.0, abs=0.12)
    P = permutation(60, random_state=0, weight=2.0)
    assert np.all(P.sum(axis=0) == 2.0)
    assert np.all(P.sum(axis=1) == 2.0)


@pytest.mark.parametrize("in_degree", [1, 2, 5, 10, 60, 99, 100, 0.3])
@pytest.mark.parametrize("rewiring", [0.0, 0.1, 1.0])
def test_small_world(in_degree, rewiring):
    W = small_world(100, in_degree=in_degree, rewiring=rewiring, random_state=0)
    assert_clean(W, 100)
    assert np.all(np.diff(W.indptr) == min(resolve_degree("d", in_degree, 100), 99))
    assert np.all(W.diagonal() == 0)
    steps = (W.indices - np.repeat(np.arange(100), np.diff(W.indptr))) % 100
    degree = np.diff(W.indptr)[0]
    reach = (degree + 1) // 2
    near = np.mean(np.minimum(steps, 100 - steps) <= reach)
    if rewiring == 0.0:
        assert near == 1.0
    else:  # what is rewired falls on any of the places that are left, near ones among them
        kept = (1 - rewiring) * degree
        left_near = (min(2 * reach, 99) - kept) / (99 - kept)
        assert near == pytest.approx(1 - rewiring + rewiring * left_near, abs=0.05)


def test_errors_of_small_world():
    with pytest.raises(ValueError, match=r"rewiring=1.5 .*\[0, 1\]"):
        small_world(10, rewiring=1.5)


def test_scale_free():
    W = scale_free(20_000, in_degree=10, random_state=0)
    assert_clean(W, 20_000)
    degrees = np.diff(W.indptr)
    assert degrees.mean() == pytest.approx(10, rel=0.02)
    assert degrees.min() >= 1
    assert degrees.max() > 200
    assert (abs(W).T != 0).nnz == W.nnz
    assert abs((abs(W) > 0).astype(int) - (abs(W) > 0).astype(int).T).nnz == 0
    assert sp.csgraph.connected_components(W, directed=False)[0] == 1
    # exponent 3: P(degree >= k) falls as k^-2
    tail = [np.mean(degrees >= k) for k in (20, 80)]
    assert np.log(tail[0] / tail[1]) / np.log(4) == pytest.approx(2.0, abs=0.35)


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("in_degree", [1, 2, 3, 5, 7, 9, 11, 15, 0.00035, 0.0011])
def test_scale_free_rounds_half_its_degree_as_python_does(in_degree):
    connections = in_degree if isinstance(in_degree, int) else round(in_degree * 20_000)
    expected = 2 * max(1, round(connections / 2))  # 3 -> 4, 5 -> 4, 7 -> 8
    for seed in range(2):
        degrees = np.diff(scale_free(20_000, in_degree=in_degree, random_state=seed).indptr)
        assert 0.97 * expected < degrees.mean() <= expected


@pytest.mark.parametrize("n_units, n_clusters", [(40, 4), (41, 4), (7, 7), (3, 10)])
@pytest.mark.parametrize("between_degree", [0, 1, 3])
def test_clustered(n_units, n_clusters, between_degree):
    W = clustered(
        n_units, n_clusters=n_clusters, in_degree=5, between_degree=between_degree, random_state=0
    )
    assert_clean(W, n_units)
    labels = cluster_labels(n_units, min(n_clusters, n_units))
    sizes = np.bincount(labels)
    assert np.ptp(sizes) <= 1
    rows = np.repeat(np.arange(n_units), np.diff(W.indptr))
    own = np.bincount(rows[labels[rows] == labels[W.indices]], minlength=n_units)
    np.testing.assert_array_equal(own, np.minimum(5, sizes[labels]))
    other = np.diff(W.indptr) - own
    np.testing.assert_array_equal(other, np.minimum(between_degree, n_units - sizes[labels]))


def test_errors_of_cluster_labels():
    with pytest.raises(ValueError, match="n_clusters=5 must be at most n_units=3"):
        cluster_labels(3, 5)


@pytest.mark.parametrize("lower, upper", [(0, 0), (2, 1), (0, 3), (9, 9), (50, 0)])
def test_band(lower, upper):
    W = band(10, lower=lower, upper=upper, random_state=0)
    assert_clean(W, 10)
    offset = np.arange(10) - np.arange(10)[:, None]
    np.testing.assert_array_equal(W.toarray() != 0, (offset >= -lower) & (offset <= upper))


def test_toeplitz():
    W = toeplitz(6, diagonals={-2: 3.0, 0: 1.0, 1: -1.0, 40: 5.0})
    expected = 3 * np.eye(6, k=-2) + np.eye(6) - np.eye(6, k=1)
    np.testing.assert_array_equal(W.toarray(), expected)
    for bad in ({0.5: 1.0}, {True: 1.0}):
        with pytest.raises(TypeError, match="offset"):
            toeplitz(4, diagonals=bad)
    with pytest.raises(ValueError, match="weight="):
        toeplitz(4, diagonals={0: np.nan})


# --- the pieces ---


def test_pieces_compose_and_leave_their_input_alone():
    W = cycle(6)
    before = W.toarray()
    add_self_loops(add_jumps(add_diagonal(W, offset=2), jump_size=2), weight=0.3)
    with_weights(W, "normal", random_state=0)
    with_signs(W, positive=0.0)
    dale(W, excitatory=0.0)
    np.testing.assert_array_equal(W.toarray(), before)


def test_diagonals_are_set_not_added():
    W = add_diagonal(add_diagonal(np.ones((3, 3)), offset=0, weight=5.0), offset=-7)
    np.testing.assert_array_equal(W.toarray(), np.ones((3, 3)) + 4 * np.eye(3))


def test_signs_and_dale():
    W = random_sparse(400, random_state=0)
    signed = with_signs(W, positive=0.25, random_state=1)
    np.testing.assert_array_equal(np.abs(signed.data), np.abs(W.data))
    assert np.mean(signed.data > 0) == pytest.approx(0.25, abs=0.04)
    D = dale(W, excitatory=0.8, random_state=1).toarray()
    positive = (D >= 0).all(axis=0)
    assert np.all((D <= 0).all(axis=0) | positive)
    assert positive.sum() == 320
    np.testing.assert_array_equal(np.abs(D), abs(W).toarray())


def test_errors_of_pieces():
    with pytest.raises(ValueError, match=r"square.*\(2, 3\)"):
        add_self_loops(np.ones((2, 3)))
    with pytest.raises(ValueError, match="jump_size=1 must be at least 2"):
        add_jumps(cycle(5), jump_size=1)
    with pytest.raises(ValueError, match=r"excitatory=2"):
        dale(cycle(5), excitatory=2)


# --- laws of weights ---


def test_draws_that_are_no_weights_raise():
    class Bad:
        def __init__(self, value):
            self.value = value

        def rvs(self, size, random_state):
            return self.value

    generator = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"2 of 4 draws.*NaN or infinite"):
        draw(Bad([1.0, np.nan, np.inf, 0.0]), 4, generator)
    with pytest.raises(ValueError, match=r"shape \(2,\) instead of \(4,\)"):
        draw(Bad([1.0, 2.0]), 4, generator)

"""Spectral radius against independent references; scaling to it and to norms."""

from fractions import Fraction
from math import cos, pi, sqrt

import numpy as np
import pytest
import scipy.linalg as la
import scipy.sparse as sp
import scipy.stats as st
from hypothesis import given, settings
from hypothesis import strategies as hs

from reservoir.scaling import (
    SpectralRadiusError,
    scale_blocks,
    scale_rows,
    scale_to_norm,
    scale_to_spectral_radius,
    spectral_radius,
)
from reservoir.scaling._dense import exact_radius, is_nilpotent
from reservoir.scaling._large_blocks import (
    has_radius_of_modulus,
    is_normal,
    krylov_radius,
    perron_root,
    symmetric_form,
)
from reservoir.topologies import (
    TOPOLOGIES,
    band,
    cluster_labels,
    clustered,
    cycle,
    cycle_with_jumps,
    delay_line,
    delay_line_feedback,
    double_cycle,
    orthogonal,
    permutation,
    random_sparse,
    ring,
    scale_free,
    self_loop_cycle,
    small_world,
    toeplitz,
    with_signs,
    with_weights,
)

LAWS = {
    "normal": "normal",
    "uniform": "uniform",
    "bernoulli": "bernoulli",
    "positive": st.uniform(0, 1),
    "heavy": st.t(1.5),
    "shifted": st.norm(0.3, 1),
}
WEIGHTED = ("random_sparse", "small_world", "scale_free", "clustered", "band")


def reference(W):
    """All eigenvalues of two equivalent matrices, rounded differently; None if they disagree."""
    A = W.toarray() if sp.issparse(W) else np.asarray(W)
    order = np.random.default_rng(0).permutation(len(A))
    one, two = (np.max(np.abs(la.eigvals(B))) for B in (A, A.T[order][:, order]))
    return one if abs(one - two) <= 1e-8 * one else None


def conjugated(W, log_range, seed=0):
    """D^-1 W D: the same eigenvalues in bad units."""
    d = np.exp(np.random.default_rng(seed).uniform(-log_range, log_range, W.shape[0]))
    return (sp.diags_array(1 / d) @ sp.csr_array(W) @ sp.diags_array(d)).tocsr()


# --- every topology, law, seed and size ---


@pytest.mark.fast_cases(50)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", WEIGHTED)
@pytest.mark.parametrize("n_units", [2, 3, 7, 40, 230])
def test_radius_of_random_topologies(name, law, n_units):
    for seed in range(4 if n_units < 100 else 1):
        W = TOPOLOGIES[name](n_units, weights=LAWS[law], random_state=seed)
        expected = reference(W)
        if expected is not None:
            assert spectral_radius(W) == pytest.approx(expected, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("name", [k for k in TOPOLOGIES if k not in WEIGHTED])
@pytest.mark.parametrize("n_units", [1, 2, 3, 10, 51])
def test_radius_of_other_topologies(name, n_units):
    W = TOPOLOGIES[name](n_units, random_state=0)
    A = W.toarray() if sp.issparse(W) else W
    # by an enclosure, since eigvals fails on delay lines: |W^k|^(1/k) from above
    assert spectral_radius(W) <= np.linalg.norm(np.linalg.matrix_power(A, 64), 2) ** (1 / 64) + 1e-9
    expected = reference(W)
    if expected is not None:
        assert spectral_radius(W) == pytest.approx(expected, rel=1e-7, abs=1e-12)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["random_sparse", "small_world", "clustered", "scale_free"])
def test_arnoldi_equals_all_eigenvalues(name, seed):
    W = TOPOLOGIES[name](520 + 40 * seed, random_state=seed)
    assert spectral_radius(W) == pytest.approx(np.max(np.abs(la.eigvals(W.toarray()))), rel=1e-9)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", WEIGHTED)
def test_sweep_of_large_random_topologies(name, law, seed):
    n_units = int(np.random.default_rng(seed).integers(501, 750))
    W = TOPOLOGIES[name](n_units, weights=LAWS[law], random_state=seed)
    expected = reference(W)
    if expected is not None:
        assert spectral_radius(W) == pytest.approx(expected, rel=1e-7)


@pytest.mark.slow
def test_where_restarted_arnoldi_returns_another_eigenvalue():
    # 5000 units, two eigenvalues at the edge: k = 1 gives some eigenvalue with a small residual
    wrong = 0
    for seed in range(3):
        W = random_sparse(5000, random_state=seed)
        start = np.random.default_rng(seed).standard_normal(5000)
        single = sp.linalg.eigs(W, k=1, v0=start, return_eigenvectors=False)
        radius = spectral_radius(W)
        assert radius >= abs(single[0]) * (1 - 1e-9)
        wrong += radius > abs(single[0]) * (1 + 1e-5)
    assert wrong


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(4))
def test_20000_units_against_a_basis_ten_times_as_rich(seed):
    W = random_sparse(20_000, random_state=seed)
    values = sp.linalg.eigs(
        W, k=40, ncv=400, tol=1e-10, v0=np.ones(20_000), return_eigenvectors=False
    )
    assert spectral_radius(W) == pytest.approx(np.max(np.abs(values)), rel=1e-7)


@settings(max_examples=80, deadline=None)
@given(
    hs.integers(1, 5).flatmap(
        lambda n: hs.lists(hs.integers(-2, 2), min_size=n * n, max_size=n * n)
    )
)
def test_small_integer_matrices(entries):
    # defective ones among them: eigvals is off by eps^(1/k) there
    n = round(sqrt(len(entries)))
    A = np.array(entries, dtype=float).reshape(n, n)
    assert spectral_radius(A) == pytest.approx(np.max(np.abs(la.eigvals(A))), abs=2e-2)
    powers = [np.linalg.matrix_power(A.astype(object), k) for k in (32, 64)]
    # trace(A^k) <= n r^k, and r^k <= norm of A^k, in exact arithmetic
    for k, P in zip((32, 64), powers, strict=True):
        root = spectral_radius(A) * (1 + 1e-6)
        assert abs(int(np.trace(P))) <= n * Fraction(root) ** k + Fraction(1, 10**30)
        assert spectral_radius(A) <= float(abs(P).sum()) ** (1 / k) * (1 + 1e-6)


# --- counterexamples to the obvious method ---


def test_closed_forms():
    assert spectral_radius(ring(20_000, weight=-0.7)) == 0.7
    assert spectral_radius(delay_line(20_000)) == 0.0
    assert spectral_radius(permutation(20_000, weight=0.3, random_state=0)) == 0.3
    expected = 2 * sqrt(0.1) * cos(pi / 20_001)
    assert spectral_radius(delay_line_feedback(20_000)) == pytest.approx(expected, rel=1e-9)
    for W in (double_cycle(20_000), self_loop_cycle(20_000)):
        assert spectral_radius(W) == pytest.approx(1.5, rel=1e-9)
    assert spectral_radius(orthogonal(300, random_state=1)) == pytest.approx(1.0, rel=1e-12)


def test_cycle_of_very_unequal_weights():
    weights = np.ones(1000)
    weights[0] = 1e-300
    W = cycle(1000)
    W.data = weights
    assert spectral_radius(W) == pytest.approx(1e-300 ** (1 / 1000), rel=1e-12)
    assert spectral_radius(with_weights(cycle(5000), st.lognorm(5), random_state=0)) > 0


@pytest.mark.parametrize("W", [np.zeros((3, 3)), [[0.0]], sp.csr_array((20_000, 20_000))])
def test_zero(W):
    assert spectral_radius(W) == 0.0


def test_small_and_degenerate():
    assert spectral_radius([[-2.5]]) == 2.5
    assert spectral_radius([[0.0, 1.0], [-1.0, 0.0]]) == 1.0
    assert spectral_radius(np.eye(700)) == 1.0
    assert spectral_radius(np.triu(np.ones((600, 600)), 1)) == 0.0
    assert spectral_radius(np.triu(np.full((600, 600), 3.0))) == 3.0
    assert spectral_radius(np.ones((600, 600), dtype=np.float32)) == pytest.approx(600, rel=1e-12)
    assert spectral_radius(np.array([[0, 2], [3, 0]])) == pytest.approx(sqrt(6), rel=1e-14)


@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e300])
def test_extreme_sizes_do_not_overflow(size):
    W = random_sparse(60, weights="bernoulli", random_state=0)
    assert spectral_radius(W * size) == pytest.approx(spectral_radius(W) * size, rel=1e-9)
    scaled = scale_to_spectral_radius(W * size, 0.9)
    assert spectral_radius(scaled) == pytest.approx(0.9, rel=1e-9)


def test_irreducible_nilpotent_matrices_are_zero():
    # every unit reaches every other, and yet all eigenvalues vanish
    u, v = np.array([1.0, 2.0, -1.0, 3.0]), np.array([1.0, 1.0, 3.0, 0.0])
    for A in ([[1.0, -1.0], [1.0, -1.0]], np.outer(u, v)):
        assert spectral_radius(A) == 0.0
        with pytest.raises(ValueError, match="spectral radius 0"):
            scale_to_spectral_radius(A, 0.9)
    big = np.outer(np.tile([1.0, -1.0], 120), np.ones(240))
    assert is_nilpotent(sp.csr_array(big))
    assert not is_nilpotent(sp.csr_array(big + np.diag(np.full(240, 2.0**-40))))
    assert spectral_radius(big) == 0.0


def test_defective_matrix_that_all_eigenvalues_get_wrong():
    # a Jordan block of size 4 for the eigenvalue 2, in integer coordinates
    P = np.array([[1, 2, 0, 1], [0, 1, 3, 0], [0, 0, 1, -1], [0, 0, 0, 1]])
    P = P @ np.array([[1, 0, 0, 0], [1, 1, 0, 0], [2, 1, 1, 0], [-1, 2, 1, 1]])
    J = 2 * np.eye(4) + np.eye(4, k=-1)
    A = np.round(P @ J @ np.round(np.linalg.inv(P)))
    assert abs(np.max(np.abs(la.eigvals(A))) - 2) > 1e-4
    assert spectral_radius(A) == pytest.approx(2, rel=1e-9)


@pytest.mark.parametrize("n_units", [1, 2, 9, 25])
def test_exact_radius(n_units):
    A = np.random.default_rng(n_units).normal(size=(n_units, n_units))
    assert exact_radius(A) == pytest.approx(np.max(np.abs(la.eigvals(A))), rel=1e-9)


def test_complex_pairs_and_near_ties():
    blocks = [
        r * np.array([[cos(t), -np.sin(t)], [np.sin(t), cos(t)]])
        for r, t in [(1.0, 0.3), (1.0 - 1e-5, 2.1), (1.0 - 2e-5, 1.2)]
    ]
    D = la.block_diag(*blocks, *np.random.default_rng(0).uniform(-0.99, 0.99, 594))
    Q = orthogonal(600, random_state=0) + 0.05 * np.random.default_rng(1).normal(size=(600, 600))
    W = Q @ D @ np.linalg.inv(Q)
    assert spectral_radius(W) == pytest.approx(1.0, rel=1e-7)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("n_units", [150, 700])
def test_bad_units(n_units):
    W = random_sparse(n_units, random_state=3)
    expected = np.max(np.abs(la.eigvals(W.toarray())))
    assert spectral_radius(conjugated(W, 12)) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("n_units", [60, 700, 5000])
def test_non_normal_bands_of_one_sign_are_enclosed(n_units):
    # eigenvectors over thousands of orders of magnitude; eigvals is off in the second digit
    radius = spectral_radius(toeplitz(n_units, diagonals={-2: 1.0, -1: 1.0, 1: 0.05}))
    t = np.exp(np.linspace(-4, 4, 4001))
    symbol = t**2 + t + 0.05 / t  # the Toeplitz limit: its minimum over t, from below
    assert radius < symbol.min()
    assert radius == pytest.approx(symbol.min(), rel=30 / n_units**2 + 1e-6)


def test_signs_that_only_turn_the_spectrum():
    for n_units in (40, 900):
        plain = cycle_with_jumps(n_units, jump_size=4)
        turn = np.where(np.random.default_rng(0).random(n_units) < 0.5, 1.0, -1.0)
        W = sp.csr_array(-(sp.diags_array(turn) @ plain @ sp.diags_array(turn)))
        assert has_radius_of_modulus(W)
        assert spectral_radius(W) == pytest.approx(spectral_radius(plain), rel=1e-8)
    assert has_radius_of_modulus(toeplitz(9, diagonals={-1: 1.0, 1: -0.5}))
    assert not has_radius_of_modulus(sp.csr_array([[1.0, 1.0], [-1.0, 1.0]]))


def test_delay_line_with_feedback_of_random_signs():
    # no symmetric form, but one with symmetric moduli: the eigenvalues of both are the same
    W = with_signs(delay_line_feedback(400), random_state=1)
    signs = with_signs(
        delay_line_feedback(400, weight=0.1**0.5, feedback_weight=0.1**0.5), random_state=1
    )
    assert spectral_radius(W) == pytest.approx(reference(signs), rel=1e-9)


def test_structure_is_recognised():
    S = symmetric_form(delay_line_feedback(5))
    np.testing.assert_allclose(
        S.toarray(), toeplitz(5, diagonals={-1: 0.1**0.5, 1: 0.1**0.5}).toarray()
    )
    assert symmetric_form(double_cycle(5)) is None
    assert is_normal(sp.csr_array(orthogonal(20, random_state=0)))
    assert not is_normal(random_sparse(20, random_state=0))


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("n_units", [90, 600])
def test_symmetric_skew_and_normal(n_units):
    W = random_sparse(n_units, random_state=0)
    for A in (W + W.T, W - W.T, with_signs(ring(n_units), random_state=1) + ring(n_units).T * 0):
        expected = np.max(np.abs(la.eigvals(A.toarray())))
        assert spectral_radius(A) == pytest.approx(expected, rel=1e-7)


@pytest.mark.slow
def test_periodic_non_negative_graph():
    # bipartite: eigenvalues come as +-, where plain power iteration never settles
    B = random_sparse(300, weights=st.uniform(0, 1), random_state=0)
    W = sp.block_array([[None, B], [B[::-1], None]]).tocsr()
    assert spectral_radius(W) == pytest.approx(reference(W), rel=1e-9)
    assert perron_root(W, 1e-8) == pytest.approx(reference(W), rel=1e-9)


def test_blocks_are_solved_apart():
    W = clustered(400, n_clusters=4, between_degree=0, random_state=0)
    assert spectral_radius(W) == pytest.approx(reference(W), rel=1e-9)
    mixed = sp.block_diag([W, ring(50, weight=9.0), delay_line(30)], format="csr")
    assert spectral_radius(mixed) == 9.0


@pytest.mark.slow
def test_too_sensitive_is_an_error_with_a_way_out():
    W = toeplitz(300, diagonals={-2: -1.0, -1: 1.0, 0: 0.5, 1: 0.3})
    with pytest.raises(SpectralRadiusError, match=r"n_units=300.*scale_to_norm.*array W") as caught:
        spectral_radius(W)
    assert isinstance(caught.value, ValueError)


def test_a_sensitive_block_below_the_others_is_no_error():
    weak = toeplitz(300, diagonals={-2: -1.0, -1: 1.0, 0: 0.5, 1: 0.3})
    assert spectral_radius(sp.block_diag([weak, [[50.0]]], format="csr")) == 50.0


def test_same_result_at_every_call():
    W = random_sparse(600, random_state=5)
    assert spectral_radius(W) == spectral_radius(W.copy()) == spectral_radius(W.toarray())
    radius, sensitive = krylov_radius(W, 1e-8)
    assert radius == pytest.approx(spectral_radius(W), rel=1e-12)
    assert not sensitive


@pytest.mark.parametrize("convert", [sp.coo_array, sp.csc_array, sp.csr_matrix, np.asfortranarray])
def test_any_format_and_no_change_of_the_input(convert):
    A = random_sparse(30, random_state=0).toarray()
    W = convert(A)
    assert spectral_radius(W) == pytest.approx(reference(A), rel=1e-9)
    scale_to_spectral_radius(W, 0.1)
    scale_to_norm(W, 0.1)
    np.testing.assert_array_equal(W.toarray() if sp.issparse(W) else W, A)


# --- refusals ---


@pytest.mark.parametrize("function", [spectral_radius, lambda W: scale_to_spectral_radius(W, 1.0)])
def test_what_is_no_matrix_raises(function):
    with pytest.raises(ValueError, match=r"square.*\(2, 3\)"):
        function(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"square.*\(3,\)"):
        function(np.ones(3))
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match=r"\(2, 2\), contains 1 NaN or infinite"):
            function(np.array([[bad, 0], [0, 1]]))
        with pytest.raises(ValueError, match="contains 2 NaN"):
            function(sp.csr_array([[bad, 0], [bad, 1]]))
    with pytest.raises(TypeError, match="real"):
        function(np.eye(2) * 1j)


@pytest.mark.parametrize("tol", [0.0, -1e-8, 1e-3, np.nan])
def test_tolerance_is_checked(tol):
    with pytest.raises(ValueError, match="tol="):
        spectral_radius(np.eye(2), tol=tol)


def test_radius_to_scale_to_is_checked():
    for radius in (-0.1, np.inf, np.nan):
        with pytest.raises(ValueError, match="radius="):
            scale_to_spectral_radius(np.eye(2), radius)
    with pytest.raises(TypeError, match="radius"):
        scale_to_spectral_radius(np.eye(2), True)
    with pytest.raises(ValueError, match="beyond the range of floats"):
        scale_to_spectral_radius(np.array([[0.0, 1.0], [1e-300, 0.0]]), 1e200)


@pytest.mark.parametrize("W", [delay_line(20), np.zeros((2, 2)), np.triu(np.ones((600, 600)), 1)])
def test_radius_zero_cannot_be_scaled_up(W):
    with pytest.raises(ValueError, match=r"radius=0.9.*spectral_radius=None.*scale_to_norm"):
        scale_to_spectral_radius(W, 0.9)
    assert abs(scale_to_spectral_radius(W, 0.0)).sum() == 0


# --- scaling ---


@settings(max_examples=40, deadline=None)
@given(hs.integers(1, 60), hs.floats(1e-6, 1e6), hs.integers(0, 10**6))
def test_scaled_matrix_has_the_radius(n_units, radius, seed):
    W = random_sparse(n_units, random_state=seed)
    scaled = scale_to_spectral_radius(W, radius)
    assert isinstance(scaled, sp.csr_array)
    assert scaled.dtype == np.float64
    assert spectral_radius(scaled) == pytest.approx(radius, rel=1e-6)
    np.testing.assert_array_equal(scaled.indices, W.indices)


@pytest.mark.parametrize("ord", [1, 2, np.inf, "fro"])
@pytest.mark.parametrize("shape", [(20, 20), (7, 30), (700, 640)])
def test_scaled_matrix_has_the_norm(ord, shape):
    A = np.random.default_rng(0).normal(size=shape)
    for W in (A, sp.csr_array(A)):
        scaled = scale_to_norm(W, 0.8, ord=ord)
        assert sp.issparse(scaled) == sp.issparse(W)
        dense = scaled.toarray() if sp.issparse(scaled) else scaled
        assert np.linalg.norm(dense, ord) == pytest.approx(0.8, rel=1e-6)


def test_norm_errors():
    with pytest.raises(ValueError, match="is zero and cannot"):
        scale_to_norm(np.zeros((2, 3)), 1.0)
    with pytest.raises(ValueError, match="ord=3 is not known"):
        scale_to_norm(np.eye(2), 1.0, ord=3)
    with pytest.raises(ValueError, match="value="):
        scale_to_norm(np.eye(2), -1.0)
    with pytest.raises(ValueError, match="two-dimensional"):
        scale_to_norm(np.ones(3), 1.0)


def test_norm_scaling_does_not_overflow():
    assert np.linalg.norm(scale_to_norm(np.full((3, 3), 1e200), 1.0)) == pytest.approx(1.0)


@pytest.mark.parametrize("ord", [1, 2, np.inf])
def test_rows_have_their_norms(ord):
    W = random_sparse(30, in_degree=4, random_state=0)
    wanted = np.linspace(0, 2, 30)
    for matrix in (W, W.toarray()):
        scaled = scale_rows(matrix, wanted, ord=ord)
        dense = scaled.toarray() if sp.issparse(scaled) else scaled
        np.testing.assert_allclose(np.linalg.norm(dense, ord, axis=1), wanted, rtol=1e-12)
    assert scale_rows(delay_line(3), 0.5).toarray()[0].tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match=r"shape \(30,\)"):
        scale_rows(W, [1.0, 2.0])
    with pytest.raises(ValueError, match="ord='fro' is not known for rows"):
        scale_rows(W, 1.0, ord="fro")


def test_blocks_have_their_radii():
    labels = cluster_labels(90, 3)
    W = clustered(90, n_clusters=3, in_degree=5, between_degree=2, random_state=0)
    for matrix in (W, W.toarray()):
        scaled = scale_blocks(matrix, labels, [0.5, 0.9, 0.0])
        for block, radius in enumerate([0.5, 0.9, 0.0]):
            units = np.flatnonzero(labels == block)
            assert spectral_radius(scaled[units][:, units]) == pytest.approx(radius, rel=1e-6)
        between = labels[:, None] != labels
        dense = scaled.toarray() if sp.issparse(scaled) else scaled
        np.testing.assert_array_equal(dense[between], W.toarray()[between])


def test_block_errors():
    with pytest.raises(ValueError, match="Block 1 of W, 2 units, has spectral radius 0"):
        scale_blocks(sp.block_diag([ring(3), delay_line(2)]), [0, 0, 0, 1, 1], 0.5)
    with pytest.raises(ValueError, match="labels must be 2 integers"):
        scale_blocks(np.eye(2), [0.0, 1.0], 0.5)
    with pytest.raises(ValueError, match="at least 0; got -1"):
        scale_blocks(np.eye(2), [0, -1], 0.5)
    with pytest.raises(ValueError, match="one factor per block"):
        scale_blocks(np.eye(2), [0, 1], [0.5])


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    "W",
    [
        band(600, lower=1, upper=1, random_state=0),
        with_weights(double_cycle(600), "normal", random_state=1),
        with_signs(cycle_with_jumps(600), random_state=2),
        with_signs(toeplitz(600, diagonals={-1: 0.5, 1: 0.4}), random_state=2),
        small_world(600, in_degree=4, rewiring=0.01, random_state=3),
        scale_free(600, in_degree=4, weights="bernoulli", random_state=4),
    ],
)
def test_narrow_and_hub_graphs(W):
    expected = reference(W)
    assert expected is not None
    assert spectral_radius(W) == pytest.approx(expected, rel=1e-7)

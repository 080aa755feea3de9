"""Comparison of products of step Jacobians with products of random matrices.

The gradient over k steps contains a product of k step Jacobians. If the singular vectors of
successive factors are unrelated, the singular values alone determine how the norm of the product
grows. The tests of this module examine whether the singular vectors are unrelated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import integrate, stats

from reservoir._typing import Array, ArrayLike, RandomState
from reservoir._validation import as_generator, check_count, check_number

__all__ = [
    "IndependenceTest",
    "alignment",
    "independence_test",
    "norm_bounds",
    "singular_vector_test",
    "unrelated_growth",
]


@dataclass(frozen=True)
class IndependenceTest:
    """Result of a test whose null hypothesis is that two variables are independent.

    Parameters
    ----------
    statistic : float >= 0
        The L1 distance between the joint histogram and the product of the marginal histograms: near
        0 for independence, and large for dependence.
    threshold : float
        Critical value, which the statistic of independent pairs exceeds with a probability of at
        most `level`, according to the limit law of Gretton and Györfi.
    pvalue : float in (0, 1]
        The share of permutations of the pairs whose statistic is at least as large.

    Examples
    --------
    >>> from reservoir.training.jacobian_products import IndependenceTest
    >>> result = IndependenceTest(statistic=0.031, threshold=0.016, pvalue=0.005)
    >>> result.statistic > result.threshold  # dependent
    True
    """

    statistic: float
    threshold: float
    pvalue: float


def norm_bounds(
    n_rows: int, n_columns: int, scale: float = 1.0, *, normal: bool = True
) -> tuple[float, float]:
    """Return bounds on the expected spectral norm of a random matrix whose elements have mean 0.

    For independent normal elements of standard deviation s, the mean norm is bounded [2]_ by ::

        s c(m n) / sqrt(min(m, n))  <=  E ||M||  <=  s (c(m) + c(n))

    where c(k) is the mean of a chi variable with k degrees of freedom, which is slightly less than
    sqrt(k). For any elements with variance s^2 and mean 0, the root mean square of the norm is
    bounded [1]_ (4.9) by ::

        s sqrt(max(m, n))  <=  sqrt(E ||M||^2)  <=  s sqrt(m n)

    Parameters
    ----------
    n_rows, n_columns : int >= 1
        Numbers m of rows and n of columns.
    scale : float >= 0, default=1.0
        The standard deviation s of an element.
    normal : bool, default=True
        Whether the elements are independent and normal, in which case the bounds are for the mean
        norm. If False, any distribution is allowed, with or without dependence, and the bounds are
        for the root mean square of the norm.

    Returns
    -------
    low, high : float

    Raises
    ------
    TypeError, ValueError
        If `n_rows` or `n_columns` is less than 1, or if `scale` is negative.

    Notes
    -----
    [1]_ states the second pair of bounds for E ||M|| itself. For this mean, the upper bound is
    valid, but the lower bound is not: for a matrix that is 0 with probability 3/4, and otherwise
    plus or minus twice an orthogonal matrix, E ||M|| is half of the lower bound. For a single
    normal element, E ||M|| is .798 s, while the lower bound is s.

    References
    ----------
    .. [1] A. Bay, "Recurrent neural networks: methods and applications to non-linear
       predictions", PhD thesis, Politecnico di Torino, 2017, Proposition 4.1 and appendix B.2.
    .. [2] Y. Gordon, "Some inequalities for Gaussian processes and applications", Israel Journal of
       Mathematics 50, 265-289, 1985.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.jacobian_products import norm_bounds
    >>> np.round(norm_bounds(100, 100, scale=0.1), 3)
    array([1.   , 1.995])
    >>> np.round(norm_bounds(100, 100, scale=0.1, normal=False), 3)
    array([ 1., 10.])
    """
    m, n = check_count("n_rows", n_rows), check_count("n_columns", n_columns)
    check_number("scale", scale, low=0)
    if not normal:
        return float(scale * np.sqrt(max(m, n))), float(scale * np.sqrt(m * n))
    whole, rows, columns = (float(stats.chi.mean(k)) for k in (m * n, m, n))
    return float(scale * whole / np.sqrt(min(m, n))), float(scale * (rows + columns))


def unrelated_growth(singular_values: ArrayLike) -> Array:
    """Return the growth rate of a vector under matrices whose singular vectors are unrelated.

    The rate is ``E log (||J x|| / ||x||)``, where J has the given singular values and is applied
    after a random rotation. On average, a product of k such matrices changes the logarithm of a
    vector's norm by k times their mean rate, with a spread that grows only as sqrt(k). The rate is
    0 for orthogonal matrices. Otherwise, it is less than the logarithm of the root mean square s of
    the singular values, by about ``var(s_i^2) / (2 s^4 (n + 2))``.

    Parameters
    ----------
    singular_values : array of shape (..., n)
        Singular values of one or more matrices; none may be negative.

    Returns
    -------
    array of shape (...)
        Natural logarithm of the growth per factor; -inf for a matrix of zeros.

    Raises
    ------
    ValueError
        If a value is negative or not finite.

    See Also
    --------
    reservoir.training.gradient_control.jacobian_product_norms : Log norms of the products of a
        network's step Jacobians, whose slope can be compared with this rate.

    Notes
    -----
    [1]_ (4.17) requires a root mean square of 1, and states that the gradient then does not vanish
    at any depth. This is true of the *mean* of the squared norm, which is 1 at every depth, but
    which is dominated by rare large products. For normal matrices with n = 64 and root mean square
    1, the logarithm of the typical norm falls by 1/128 per step, so that the norm falls to 4e-4
    over 1000 steps. A narrow interval of singular values helps, because their squares then have
    little variance.

    With s scaled to 1, the rate is half the integral over t > 0 of
    ``((1 + 2 t)^(-n/2) - prod_i (1 + 2 t s_i^2)^(-1/2)) / t``, since the mean of the logarithm of a
    sum of squares of normal variables is an integral over the sum's Laplace transform.

    References
    ----------
    .. [1] A. Bay, "Recurrent neural networks: methods and applications to non-linear
       predictions", PhD thesis, Politecnico di Torino, 2017, section 4.2.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.jacobian_products import unrelated_growth
    >>> values = np.stack([np.linspace(0.9, 1.1, 64), np.linspace(0, 2, 64)])
    >>> values /= np.sqrt(np.mean(values**2, axis=1, keepdims=True))
    >>> (1000 * unrelated_growth(values)).round(2)
    array([-0.1 , -6.25])
    """
    values = np.asarray(singular_values, dtype=float)
    if values.ndim == 0 or values.size == 0 or not np.isfinite(values).all() or (values < 0).any():
        raise ValueError(
            f"singular_values has shape {values.shape}. It must be a non-empty array (..., n) of "
            "finite values that are not negative. Compute them by "
            "`np.linalg.svd(J, compute_uv=False)`."
        )
    n, largest = values.shape[-1], values.max(axis=-1, keepdims=True)
    relative = values / np.where(largest > 0, largest, 1)
    rms = np.sqrt(np.mean(relative**2, axis=-1, keepdims=True))
    squares = (relative / np.where(rms > 0, rms, 1)) ** 2

    def integrand(log_t: float) -> Array:
        t = 2 * np.exp(log_t) / n
        plain = np.exp(-0.5 * n * np.log1p(t))
        return np.asarray(plain - np.exp(-0.5 * np.log1p(t * squares).sum(axis=-1)))

    # for small t the integrand falls as exp(2 log_t), for large t as exp(-log_t / 2) or faster
    rate = 0.5 * integrate.quad_vec(integrand, -25.0, 80.0, epsabs=1e-12, norm="max")[0]
    with np.errstate(divide="ignore"):
        return np.where(largest > 0, rate[..., None] + np.log(rms * largest), -np.inf)[..., 0]


def alignment(jacobians: ArrayLike) -> Array:
    """Return squared norms of products of two successive matrices, relative to unrelated ones.

    The ratio is ``n ||J_k J_{k+1}||_F^2 / (||J_k||_F^2 ||J_{k+1}||_F^2)``. If the singular vectors
    of the matrices are unrelated, its mean is exactly 1. It is n for matrices of rank 1 if the
    output direction of the second matrix is the input direction of the first, and 0 if the first
    matrix maps every output of the second to 0.

    Parameters
    ----------
    jacobians : array of shape (..., n_factors, n, n)
        The matrices in the order of multiplication: of the Jacobians of steps, the last comes
        first. No matrix may be zero.

    Returns
    -------
    array of shape (..., n_factors - 1)
        The ratio for each pair of successive matrices.

    Raises
    ------
    ValueError
        If the shape does not fit, if a matrix is zero, or if a value is not finite.

    Notes
    -----
    Let s_i and s'_j be the singular values of the two matrices, and z_ij the inner products of the
    right singular vectors of the first matrix with the left singular vectors of the second. The
    ratio is ``n sum_ij s_i^2 s'_j^2 z_ij^2 / (sum_i s_i^2 sum_j s'_j^2)``, and the mean of z_ij^2
    is 1 / n if the vectors are unrelated. Use `scipy.stats.ttest_1samp` to test whether the mean
    over independent pairs is 1.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import ttest_1samp
    >>> from reservoir.training.jacobian_products import alignment
    >>> normal = np.random.default_rng(0).normal(size=(100, 2, 20, 20))
    >>> ratios = alignment(normal)[:, 0]
    >>> round(float(ratios.mean()), 2), bool(ttest_1samp(ratios, 1).pvalue > 0.05)
    (1.0, True)
    >>> alignment(np.diag([3.0, 1, 0]) * np.ones((2, 1, 1))).round(2)  # the same matrix twice
    array([2.46])
    """
    J = _read("jacobians", jacobians, 2)
    # scale so that no square overflows; powers of 2 do not round
    J = np.ldexp(J, -np.frexp(np.abs(J).max(axis=(-2, -1), keepdims=True))[1])
    squares = np.einsum("...ij,...ij->...", J, J)
    if not squares.all():
        raise ValueError("jacobians contains a matrix of zeros, which has no direction. Remove it.")
    products = J[..., :-1, :, :] @ J[..., 1:, :, :]
    kept = np.einsum("...ij,...ij->...", products, products)
    return np.asarray(J.shape[-1] * kept / (squares[..., :-1] * squares[..., 1:]))


def independence_test(
    x: ArrayLike,
    y: ArrayLike,
    *,
    n_bins: int = 4,
    level: float = 0.05,
    n_permutations: int = 199,
    random_state: RandomState = None,
) -> IndependenceTest:
    """Test whether two variables are independent, by the L1 distance between histograms.

    The statistic of Gretton and Györfi [1]_ is ``sum_ab |p_ab - p_a q_b|``, where p_ab is the share
    of pairs in cell (a, b) of the joint histogram, and p_a and q_b are the marginal shares. *Large*
    values indicate dependence.

    Parameters
    ----------
    x : array of shape (n_groups,) or (n_groups, n_x)
        Values of the first variable.
    y : array of shape (n_groups,) or (n_groups, n_y)
        Values of the second variable. If there is one value per group, the pairs are (x[g], y[g]).
        Otherwise, every value of x[g] is paired with every value of y[g].
    n_bins : int >= 2, default=4
        Number of bins for each variable, whose edges are quantiles.
    level : float in (0, 1), default=0.05
        Significance level of the test that uses `threshold`.
    n_permutations : int >= 1, default=199
        Number of random pairings of the groups of x with the groups of y, from which the p-value is
        computed. The p-value is at least ``1 / (n_permutations + 1)``.
    random_state : int, Generator, RandomState or None, default=None
        Source of the random permutations.

    Returns
    -------
    IndependenceTest

    Raises
    ------
    ValueError
        If x and y have different numbers of groups or fewer than 2, or if they contain NaN or
        infinity.

    Notes
    -----
    The threshold is ``sqrt(2 / pi) n_bins / sqrt(n) + sqrt(1 - 2 / pi) z / sqrt(n)``, where n is
    the number of pairs, and z is the normal quantile of 1 - `level`. The first term is an upper
    bound of the mean under independence, so that a test with few bins rejects too rarely. The
    p-value is exact if the groups are exchangeable.

    References
    ----------
    .. [1] A. Gretton and L. Györfi, "Consistent nonparametric tests of independence", Journal of
       Machine Learning Research 11, 1391-1423, 2010, sections 2 and 3.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.jacobian_products import independence_test
    >>> rng = np.random.default_rng(0)
    >>> x, noise = rng.normal(size=(2, 1000))
    >>> independence_test(x, noise, random_state=0).pvalue > 0.05
    True
    >>> independence_test(x, x**2 + noise, random_state=0).pvalue  # no correlation, yet dependent
    0.005
    """
    groups = [_groups("x", x), _groups("y", y)]
    n_groups = len(groups[0])
    if n_groups < 2 or len(groups[1]) != n_groups:
        raise ValueError(
            f"x has {n_groups} groups, and y has {len(groups[1])} groups. Both need the same "
            "number of groups, at least 2."
        )
    check_count("n_bins", n_bins, minimum=2)
    check_number("level", level, low=0, high=1, low_open=True, high_open=True)
    check_count("n_permutations", n_permutations)
    P, Q = (_shares(values, n_bins) for values in groups)
    expected = np.outer(P.mean(axis=0), Q.mean(axis=0))

    def distance(order: Array) -> float:
        return float(np.abs(P[order].T @ Q / n_groups - expected).sum())

    found = stats.permutation_test(
        (np.arange(n_groups),),
        distance,
        permutation_type="pairings",
        alternative="greater",
        vectorized=False,
        n_resamples=n_permutations,
        random_state=as_generator(random_state),
    )
    n_pairs = n_groups * groups[0].shape[1] * groups[1].shape[1]
    spread = np.sqrt(1 - 2 / np.pi) * stats.norm.isf(level)
    threshold = (np.sqrt(2 / np.pi) * n_bins + spread) / np.sqrt(n_pairs)
    return IndependenceTest(float(found.statistic), float(threshold), float(found.pvalue))


def singular_vector_test(
    jacobians: ArrayLike,
    *,
    n_bins: int = 4,
    level: float = 0.05,
    n_permutations: int = 199,
    random_state: RandomState = None,
) -> IndependenceTest:
    """Test whether inner products of singular vectors of successive matrices are independent.

    Let ``J_k = U_k S_k V_k'``, and let ``z_k(i, j)`` be the inner product of the right singular
    vector i of J_k and the left singular vector j of J_{k+1}. The tested pairs are
    ``(|z_k(i, j)|, |z_{k+1}(j, l)|)`` for all i, j, l [1]_ (appendix B.1).

    Parameters
    ----------
    jacobians : array of shape (..., n_factors, n, n)
        At least three matrices in the order of multiplication: of the Jacobians of steps, the last
        comes first. The leading dimensions are separate runs.
    n_bins, level, n_permutations, random_state
        As in `independence_test`; there is one group for each run, k and j.

    Returns
    -------
    IndependenceTest

    Raises
    ------
    ValueError
        If the shape does not fit, or if a value is not finite.

    See Also
    --------
    alignment : Detects the alignment of singular vectors, against which this test has no power.

    Notes
    -----
    Absolute values are used because the signs of a pair of singular vectors are arbitrary: they
    depend on the SVD routine.

    [1]_ interprets the test the wrong way round. It takes dependence as the null hypothesis, and a
    large statistic as evidence of independence. In fact, the null hypothesis is independence, and
    it is rejected if the statistic is large. Interpreted correctly, table B.1 of [1]_ finds
    dependence for singular values in [0.9, 1.1], and independence for exponentially decaying ones.
    In new samples, it is the other way round, which confirms the conclusion of [1]_: with almost
    undisturbed decay there is dependence, and with the narrow interval there is none. See the
    theory page on training.

    **The test has no power against alignment.** If each right singular vector of a matrix equals
    the corresponding left singular vector of the next matrix, the product has the largest possible
    norm. Every z is then 0 or 1, with the same values for all j, so that no test of independence
    rejects.

    References
    ----------
    .. [1] A. Bay, "Recurrent neural networks: methods and applications to non-linear
       predictions", PhD thesis, Politecnico di Torino, 2017, appendix B.1.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.jacobian_products import alignment, singular_vector_test
    >>> J = np.random.default_rng(0).normal(size=(10, 20, 20))
    >>> singular_vector_test(J, random_state=0).pvalue > 0.05
    True
    >>> aligned = J[0] @ J[0].T * np.ones((10, 1, 1))
    >>> singular_vector_test(aligned, random_state=0).pvalue, float(alignment(aligned)[0].round(2))
    (1.0, 3.09)
    """
    J = _read("jacobians", jacobians, 3)
    U, _, Vh = np.linalg.svd(J)
    # rounded, so that all values that differ from 1 only by rounding errors fall into one bin
    Z = np.abs(Vh[..., :-1, :, :] @ U[..., 1:, :, :]).round(12)
    n = J.shape[-1]
    before = np.swapaxes(Z[..., :-1, :, :], -2, -1).reshape(-1, n)
    return independence_test(
        before,
        Z[..., 1:, :, :].reshape(-1, n),
        n_bins=n_bins,
        level=level,
        n_permutations=n_permutations,
        random_state=random_state,
    )


def _read(name: str, values: ArrayLike, n_factors: int) -> Array:
    """Return stacks of at least `n_factors` square matrices as an array, after checking it."""
    J = np.asarray(values, dtype=float)
    if J.ndim < 3 or not J.size or J.shape[-1] != J.shape[-2] or J.shape[-3] < n_factors:
        raise ValueError(
            f"{name} has shape {J.shape}. The shape must be (..., n_factors, n, n), with n_factors "
            f"at least {n_factors}."
        )
    if not np.isfinite(J).all():
        raise ValueError(f"{name} contains NaN or infinity.")
    return J


def _groups(name: str, values: ArrayLike) -> Array:
    """Return values as an array of shape (n_groups, n_values)."""
    array = np.asarray(values, dtype=float)
    if array.ndim not in (1, 2) or not array.size or not np.isfinite(array).all():
        raise ValueError(
            f"{name} has shape {array.shape}. It must be a non-empty array of finite values, of "
            "shape (n_groups,) or (n_groups, n_values)."
        )
    return array.reshape(len(array), -1)


def _shares(values: Array, n_bins: int) -> Array:
    """Return the share of each group's values that are in each bin, (n_groups, n_bins)."""
    edges = np.quantile(values, np.arange(1, n_bins) / n_bins)
    places = np.searchsorted(edges, values)
    return np.stack([(places == k).mean(axis=1) for k in range(n_bins)], axis=1)

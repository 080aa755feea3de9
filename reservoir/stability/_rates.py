"""How fast differences of states shrink inside a box: four proofs, rounding included.

A difference of two trajectories obeys e[t] = (1 - a) e[t-1] + a D W e[t-1] with an unknown
diagonal D between the least and the largest slopes of the box.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import linalg
from scipy.sparse.linalg import ArpackError, splu, svds

from reservoir._typing import Array, Matrix
from reservoir.activations.enclosures import EPS
from reservoir.stability._network import TINY, Network, row_sums

MAX_DENSE_UNITS = 3000  # dense factorisations and N x N series: 72 MB a matrix
LARGEST = 1e100  # weights and drives beyond are not certified: their products might overflow
SMALL = 1e-30  # covers what underflow takes from products with the smallest entries of a vector
# what overflows is no proof: a bound that is infinite or NaN compares as above 1
_OVERFLOWS = np.errstate(over="ignore", invalid="ignore")
_FLOOR = 1e-280  # keeps vectors positive where a power iteration would underflow


def scaled_rows(d: Array, M: Matrix) -> Matrix:
    """Return diag(d) M."""
    if sp.issparse(M):
        data = np.repeat(d, np.diff(M.indptr)) * M.data
        return sp.csr_array((data, M.indices, M.indptr), shape=M.shape)
    return d[:, None] * M


@_OVERFLOWS
def perron_bound(
    M: Matrix, *, start: Array | None = None, decide: float | None = None, max_iter: int = 1000
) -> tuple[float, Array]:
    """Return r and v > 0 with M v <= r v for a non-negative M, rounding included.

    Collatz and Wielandt's bound: r is at least the spectral radius of M, whatever v is; v comes
    from a shifted power iteration, so that r is close to it. With `decide` the iteration ends as
    soon as it is known on which side of that number the radius lies.
    """
    n_terms = np.diff(M.indptr).max() if sp.issparse(M) else M.shape[1]
    slack = 1 + (float(n_terms) + 8) * EPS
    v = np.ones(M.shape[0]) if start is None else np.maximum(start, _FLOOR)
    best, best_v = np.inf, v
    for k in range(max_iter):
        u = M @ v
        ratio = u / v
        high, low = float(ratio.max()), float(ratio.min())
        if not np.isfinite(high):
            break
        if high < best:
            best, best_v = high, v
        if high - low <= 1e-4 * high:
            break
        if decide is not None and (best * slack < decide or low > decide):
            break
        # a shift for periodic graphs; none at first, so that constant sums end at once
        v = u + (0.05 * high * v if k else 0.0)
        v = np.maximum(v / v.max(), _FLOOR)
    if best * slack >= 1 > low and np.isfinite(best):  # undecided: feed-forward parts are slow
        best, best_v = _resolvent_bound(M, best, best_v)
    return best * slack + SMALL, best_v


def _resolvent_bound(M: Matrix, best: float, best_v: Array) -> tuple[float, Array]:
    """Try v = sum_k (M / s)^k 1, for which M v < s v; the sum ends for feed-forward networks.

    With self-connections along a line its terms grow long before they fade: there v is solved for.
    """
    n_terms = min(4 * M.shape[0], 2000 if sp.issparse(M) else 400)
    for s in (0.5, 0.9, 0.99, 0.999):
        term = v = np.ones(M.shape[0])
        for _ in range(n_terms):
            term = (M @ term) / s
            v = v + term
            if not term.max() > 1e-16 * v.min() or v.max() > 1e250:
                break
        if np.isfinite(v).all():
            high = float(np.max((M @ v) / v))
            if high < best:
                best, best_v = high, v
        if best < 1:
            return best, best_v
    for s in (0.999, 1 - 1e-6):
        v = _resolvent(M, s)
        high = float(np.max((M @ v) / v)) if np.all(v > 0) else np.inf
        if high < best:
            best, best_v = high, v
        if best < 1:
            break
    return best, best_v


def _resolvent(M: Matrix, s: float) -> Array:
    """Return (I - M / s)^-1 1 where it can be had, scaled to a largest entry of 1; else zeros."""
    n = M.shape[0]
    if n > MAX_DENSE_UNITS:
        return np.zeros(n)
    try:
        if sp.issparse(M):
            v = splu(sp.csc_array(sp.eye_array(n) - M / s)).solve(np.ones(n))
        else:
            v = np.linalg.solve(np.eye(n) - M / s, np.ones(n))
    except (RuntimeError, np.linalg.LinAlgError):  # singular
        return np.zeros(n)
    return np.maximum(v / v.max(), _FLOOR) if np.isfinite(v).all() and v.min() > 0 else np.zeros(n)


def perron_scaling(M: Matrix, v: Array) -> Array:
    """Return P = sqrt(y / x) from the right and left Perron vectors of a non-negative M."""
    _, y = perron_bound(sp.csr_array(M.T) if sp.issparse(M) else M.T.copy())
    x = np.maximum(v, 1e-150)
    y = np.maximum(y, 1e-150)
    scaling = np.sqrt(y / x)
    return scaling / np.exp(np.mean(np.log(scaling)))


@_OVERFLOWS
def norm_bound(B: Matrix, *, below: float = np.inf) -> float:
    """Return an upper bound of ||B||_2, proved by a Cholesky factorisation; inf if above `below`.

    theta^2 I - B'B - c I is factored; by Rump (2006) a factorisation that ends shows that the
    matrix is positive definite if c covers the rounding of the product and of the factorisation.
    """
    n = B.shape[0]
    estimate = _norm_from_below(B)  # most that fail do so by far, and are spared the dear part
    if estimate < below:
        estimate = _norm_estimate(B)
    if not estimate < below:
        return np.inf
    if estimate == 0.0 and not abs(B).max():
        return TINY
    dense = B.toarray() if sp.issparse(B) else B
    size = float((dense * dense).sum()) * (1 + (n * n + 4.0) * EPS)
    gram = dense.T @ dense
    diagonal = np.diag_indices(n)
    for slack in (1e-6, 1e-5, 1e-4, 1e-3):
        theta = estimate * (1 + slack) + TINY
        # product: gamma_n ||B||_F^2; factorisation: gamma_{n+1} trace <= gamma_{n+1} n theta^2
        shift = (n + 8) * EPS * (size + n * theta**2) + TINY
        matrix = -gram
        matrix[diagonal] += theta**2 * (1 - 4 * EPS) - shift
        try:
            linalg.cholesky(matrix, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            continue
        return theta
    return np.inf


def _norm_from_below(B: Matrix, n_steps: int = 6) -> float:
    """Return ||B v|| / ||v|| after a few steps of the power method."""
    v = np.random.default_rng(0).standard_normal(B.shape[1])
    size = 0.0
    for _ in range(n_steps):
        v = v / max(float(np.linalg.norm(v)), TINY)
        u = B @ v
        size = float(np.linalg.norm(u))
        v = B.T @ u
    return size


def _norm_estimate(B: Matrix) -> float:
    dense = B.toarray() if sp.issparse(B) and B.shape[0] <= 300 else B
    if B.shape[0] <= 300:
        return float(np.linalg.norm(dense, 2))
    start = np.random.default_rng(0).standard_normal(B.shape[0])
    try:
        return float(svds(B, k=1, ncv=30, v0=start, tol=1e-4, return_singular_vectors=False)[0])
    except ArpackError:  # values that lie too close together
        return float(np.linalg.norm(B.toarray() if sp.issparse(B) else B, 2))


def scaled_matrix(d: Array, W: Matrix, P: Array) -> Matrix:
    """Return P diag(d) W P^-1 for a diagonal P."""
    rows = scaled_rows(P * d, W)
    if sp.issparse(rows):
        data = rows.data / P[rows.indices]
        return sp.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)
    return rows / P


@_OVERFLOWS
def norm_rate(d: Array, W: Matrix, P: Array, *, below: float = 1.0) -> float:
    """Return a proved bound of ||P diag(d) W P^-1||_2, or inf if it is not below `below`."""
    with np.errstate(over="ignore", invalid="ignore"):
        B = scaled_matrix(d, W, P)
        values = B.data if sp.issparse(B) else B
        if not np.isfinite(values).all():
            return np.inf
    bound = norm_bound(B, below=below)
    # each entry of B is off by four roundings at most: by the Frobenius norm
    frobenius = float(np.sqrt((values * values).sum()))
    return bound * (1 + 4 * EPS) + 8 * EPS * frobenius


@_OVERFLOWS
def series_rate(network: Network, least: Array, largest: Array, start: Array) -> float:
    """Return a rate below 1 at which differences decay by the series of theorem C4, or inf.

    With the slopes' middle in J = (1-a) I + a D_c W and their radius in S_j = a D_r W J^j, the
    proof is a vector v > 0 with (sum_{j<n} |S_j| + |J^n|) v < v. Weighting the j-th term by
    s^-(j+1) and the last by s^-n gives the rate s.
    """
    series = _Series(network, least, largest)
    v = np.maximum(start / start.max(), 1e-100)
    terms, total = series.terms(v)
    if terms is not None and not (terms.sum(axis=0) < v).all():
        # worth a second pass only if other weights can succeed
        bound, v = perron_bound(total + TINY, start=v, decide=1.0)
        terms = series.terms(v, len(terms) - 1)[0] if bound < 1 else None
    return np.inf if terms is None else _weighted_rate(terms / v)


class _Series:
    """J and S_0 = a D_r W of a box, with bounds of what rounding does to their products."""

    def __init__(self, network: Network, least: Array, largest: Array) -> None:
        leak, W = network.leak, network.W
        centre = 0.5 * least + 0.5 * largest
        radius = np.maximum(largest - centre, centre - least) * (1 + 4 * EPS) + TINY
        identity = sp.eye_array(network.n_units, format="csr")
        if not sp.issparse(W):
            identity = identity.toarray()
        kept = scaled_rows(1 - leak, identity)
        self.J: Any = kept + scaled_rows(leak * centre, W)
        self.S: Any = scaled_rows(leak * radius, W)
        # |J| without cancellation on the diagonal: what errors are relative to
        self.K: Any = kept + scaled_rows(leak * centre, network.A)
        self.B: Any = scaled_rows(leak * radius * (1 + 8 * EPS), network.A)
        # relative error of an entry of a product, sums and the making of J and S included
        self.unit = (float(network.row_sizes.max()) + 13) * EPS
        self.n_units = network.n_units
        self.longest = int(np.clip(12 / max(leak.min(), 0.1), 16, 120))

    def terms(self, v: Array, n_terms: int | None = None) -> tuple[Array | None, Array]:
        """Return the bounds of |S_j| v, then of |J^n| v, and the sum of the matrices.

        Without `n_terms` it ends when the powers of J have faded; None if they do not.
        """
        power = np.eye(self.n_units)
        total, rows = np.zeros_like(power), []
        slack = 1 + (self.n_units + 8) * EPS
        lost, bound = np.zeros(self.n_units), v  # what the power times v is off; K^j v
        sizes = [1.0]
        for n in range(1, (n_terms or self.longest) + 1):
            product = np.abs(self.S @ power)
            total += product
            off = lost + self.unit * (bound + lost)
            rows.append((product @ v + self.B @ off) * slack + TINY)
            power = self.J @ power
            lost, bound = (self.K @ off) * slack, (self.K @ bound) * slack
            size = float(np.abs(power).sum(axis=1).max())
            if not size < 1e4 or not (np.isfinite(lost).all() and np.isfinite(bound).all()):
                return None, total
            sizes.append(size)
            if n_terms is None and (size < 0.02 or (n >= 16 and size > 0.95 * sizes[n // 2])):
                break
        power = np.abs(power)
        rows.append((power @ v + lost) * slack + TINY)
        return np.array(rows), total + power


def _weighted_rate(ratios: Array) -> float:
    """Return the least rate s that the series proves, by bisection; inf if none below 1."""
    n = len(ratios) - 1
    exponents = -np.append(np.arange(1.0, n + 1), n)
    slack = 1 + (6 * n + 20) * EPS

    def proves(s: float) -> bool:
        with np.errstate(over="ignore"):
            return bool(((s**exponents) @ ratios).max() * slack < 1)

    if not proves(1.0):
        return np.inf
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if middle > 0 and proves(middle) else (middle, high)
    return high


def max_norm_rate(network: Network, largest: Array, **options: Any) -> tuple[float, Array]:
    """Return r and v of diag(d)|W| v <= r v: form 1 (theorem C2)."""
    # both the slope's product and its sum are inside the slack of the bound
    return perron_bound(scaled_rows(largest, network.A), **options)


def two_norm_rate(network: Network, largest: Array) -> tuple[float, Array]:
    """Return r and P with ||P diag(d) W P^-1||_2 <= r, r infinite if none is below 1: theorem C3.

    P = 1 first: the plain norm is the least of all for orthogonal and for symmetric matrices, and
    its weights have no ratio. Perron's scaling is taken where it proves less than that.
    """
    P = np.ones(network.n_units)
    r = norm_rate(largest, network.W, P)
    v = max_norm_rate(network, largest)[1]
    scaling = perron_scaling(scaled_rows(largest, network.A), v)
    scaled = norm_rate(largest, network.W, scaling, below=min(r, 1.0))
    return (scaled, scaling) if scaled < r else (r, P)


def leaky_rate(r: float, leak: Array) -> float:
    """Return 1 - a_min (1 - r), rounded up; with r above 1 the largest leak counts."""
    a = leak.min() if r < 1 else leak.max()
    return float(1 - a * (1 - r)) + 4 * EPS if np.isfinite(r) else np.inf


def is_small(A: Matrix) -> bool:
    """Whether the moduli of a matrix leave room for products of their sums."""
    sums = row_sums(A)
    return bool((sums < LARGEST).all())

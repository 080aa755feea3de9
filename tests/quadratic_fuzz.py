"""Attack theorem C7: many small problems by odd laws, each at the threshold of what is proved.

    python tests/quadratic_fuzz.py [problems] [first seed]

For each problem some P and Lambda are chosen, and with them the least s that the theorem allows, in
floating point. `is_proved` is asked from just below that s upwards. What it says is then checked
twice, in more digits and, where these do not decide, in fractions: N is positive definite, and at
each corner of the slopes, where e'Pe grows most, the step shrinks e'Pe by s^2.
"""

import sys
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np

from reservoir.stability.proofs._lyapunov import is_proved

BATCH = 200
ABOVE = (-1e-14, -3e-16, 0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-10, 1e-8, 1e-5)


def _companion(rng, shape):
    W = np.zeros(shape)
    W[..., :-1, 1:] = np.eye(shape[-1] - 1)
    W[..., -1, :] = rng.standard_normal(shape[:-1])
    return W


def _permuted_diagonal(rng, shape):
    order = np.argsort(rng.random(shape[:-1]), axis=-1)
    return np.eye(shape[-1])[order] * 10.0 ** rng.uniform(-2, 2, (*shape[:-1], 1))


def _toeplitz(rng, shape):
    n = shape[-1]
    diagonals = rng.standard_normal((*shape[:-2], 2 * n - 1))
    return diagonals[..., np.arange(n)[:, None] - np.arange(n) + n - 1]


def _grcar(rng, shape):
    n = shape[-1]
    return np.broadcast_to(np.triu(np.tril(np.ones((n, n)), 3)) - np.eye(n, k=-1), shape).copy()


def _hadamard(rng, shape):
    n = shape[-1]
    bits = np.arange(n)[:, None] & np.arange(n)
    signs = (-1.0) ** np.array([[bin(b).count("1") for b in row] for row in bits])
    return signs * rng.choice([-1.0, 1.0], (*shape[:-1], 1)) / np.sqrt(n)


def _blocks(rng, shape):
    n, W = shape[-1], rng.standard_normal(shape)
    W[..., n // 2 :, : n // 2] = 0.0
    W[..., : n // 2, n // 2 :] *= 10.0 ** rng.uniform(2, 9, (*shape[:-2], 1, 1))
    return W


def _graded(rng, shape):
    size = 10.0 ** rng.uniform(-5, 5, (*shape[:-1], 1))
    return size * rng.standard_normal(shape) / np.swapaxes(size, -1, -2)


def _with_zero_rows(rng, shape):
    return rng.standard_normal(shape) * (rng.random((*shape[:-1], 1)) < 0.6)


def _skew(rng, shape):
    W = rng.standard_normal(shape)
    return W - np.swapaxes(W, -1, -2)


def _orthogonal(rng, shape):
    return np.linalg.qr(rng.standard_normal(shape))[0]


def _single(rng, shape):
    return rng.standard_normal(shape).astype(np.float32).astype(float)


LAWS = {
    "gaussian": lambda rng, shape: rng.standard_normal(shape),
    "heavy tails": lambda rng, shape: rng.standard_t(1.0, shape),
    "non-negative": lambda rng, shape: np.abs(rng.standard_normal(shape)),
    "signs": lambda rng, shape: rng.choice([-1.0, 1.0], shape),
    "sparse": lambda rng, shape: rng.standard_normal(shape) * (rng.random(shape) < 0.4),
    "symmetric": lambda rng, shape: np.abs(_skew(rng, shape)) * rng.choice([-1.0, 1.0]),
    "skew": _skew,
    "nilpotent": lambda rng, shape: np.triu(rng.standard_normal(shape), 1),
    "Jordan block": lambda rng, shape: np.eye(shape[-1], k=1) + np.eye(shape[-1]) * rng.random(),
    "rank one": lambda rng, shape: (
        rng.standard_normal((*shape[:-1], 1)) * rng.standard_normal((*shape[:-2], 1, shape[-1]))
    ),
    "companion": _companion,
    "ratios of 1e16": lambda rng, shape: (
        rng.standard_normal(shape) * 10.0 ** rng.uniform(-8, 8, shape)
    ),
    "permuted diagonal": _permuted_diagonal,
    "Toeplitz": _toeplitz,
    "Grcar": _grcar,
    "Hadamard": _hadamard,
    "huge blocks": _blocks,
    "graded": _graded,
    "zero rows": _with_zero_rows,
    "orthogonal": _orthogonal,
    "float32": _single,
}


def draw(rng, count, n):
    """Return a law's name, weights (count, n, n), leaks and bounds of slopes (count, n)."""
    law = list(LAWS)[rng.integers(len(LAWS))]
    W = np.array(np.broadcast_to(LAWS[law](rng, (count, n, n)), (count, n, n)))
    if law in ("orthogonal", "Hadamard"):
        W *= 1 + rng.choice([-1e-1, -1e-8, -1e-13, 0.0, 1e-15, 1e-13, 1e-8], (count, 1, 1))
    else:
        size = np.abs(np.linalg.eigvals(W)).max(axis=1)
        size = np.maximum(size, 1e-3 * np.abs(W).max(axis=(1, 2))) + 1e-300
        W *= (rng.uniform(0.2, 1.2, count) / size)[:, None, None]
    leak = [
        np.ones((count, n)),
        np.tile(10 ** rng.uniform(-2, 0, (count, 1)), n),
        rng.uniform(0.01, 1, (count, n)),
        10 ** rng.uniform(-8, 0, (count, n)),
    ][rng.choice(4, p=[0.5, 0.2, 0.2, 0.1])]
    largest = [
        np.ones((count, n)),
        np.full((count, n), 0.25),
        rng.random((count, n)),
        10 ** rng.uniform(-16, 0, (count, n)),
        rng.choice([0.0, 1.0], (count, n)),
    ][rng.choice(5, p=[0.4, 0.1, 0.3, 0.1, 0.1])]
    least = largest * rng.choice([0.0, 0.5, 0.99, 1.0], (count, n), p=[0.55, 0.15, 0.15, 0.15])
    return law, W, leak, least, largest


def _transposed(M):
    return np.swapaxes(M, -1, -2)


def _scalings(M):
    """Return x with which e^x M e^-x has about equal norms of rows and columns."""
    squares = M * M / np.maximum((M * M).max(axis=(1, 2), keepdims=True), 1e-300)
    squares += 1e-12 * squares.mean(axis=(1, 2), keepdims=True) + 1e-300
    x = np.zeros(M.shape[:2])
    for _ in range(25):
        scale = np.exp(2 * x)
        rows = scale * (squares @ (1 / scale)[..., None])[..., 0]
        columns = (scale[:, None] @ squares)[:, 0] / scale
        x = x + 0.25 * np.log(columns / rows)
    return x - x.mean(axis=1, keepdims=True)


def _quadratic_forms(W, leak, least, largest, multipliers, rounds=7):
    """Return P of the Riccati equation, by doubling; where there is none, that of theorem C3."""
    n, eye = W.shape[1], np.eye(W.shape[1])
    root = np.sqrt(multipliers)
    A = (1 - leak)[:, :, None] * eye + (leak * 0.5 * (least + largest))[:, :, None] * W
    of_outputs = (root * 0.5 * (largest - least))[:, :, None] * W
    P = _transposed(of_outputs) @ of_outputs
    P += (1e-7 * (np.trace(P, axis1=1, axis2=2) / n + 1))[:, None, None] * eye
    G = -((leak / root / (1 - 1e-4)) ** 2)[:, :, None] * eye
    for _ in range(rounds):
        solved = np.linalg.solve(eye + G @ P, np.concatenate([A, G], axis=2))
        more = _transposed(A) @ (P @ solved[..., :n])
        G = G + A @ solved[..., n:] @ _transposed(A)
        P, A = P + 0.5 * (more + _transposed(more)), A @ solved[..., :n]
        lost = ~np.isfinite(P + A + G).all(axis=(1, 2)) | (np.abs(P).max(axis=(1, 2)) > 1e30)
        P[lost], A[lost], G[lost] = eye, 0.0, 0.0
    positive = np.linalg.eigvalsh(P)[:, 0] > 0
    gains = multipliers - leak * leak * np.diagonal(P, axis1=1, axis2=2) > 0
    return np.where(
        (positive & gains.all(axis=1) & ~lost)[:, None, None],
        P,
        (0.5 * multipliers)[:, :, None] * eye,
    )


def _blocks_of_n(W, leak, least, largest, P, multipliers):
    """Return s^2 P - N11, N21 and N22 in the numbers of the arguments."""
    kept, product_ = 1 - leak, multipliers * least * largest
    of_state = kept[:, :, None] * P * kept[:, None] - _transposed(W) @ (product_[:, :, None] * W)
    mixed = -leak[:, :, None] * P * kept[:, None]
    mixed = mixed - (multipliers * (least + largest) / 2)[:, :, None] * W
    of_inputs = multipliers[:, :, None] * np.eye(W.shape[1]) - leak[:, :, None] * P * leak[:, None]
    return of_state, mixed, of_inputs


def _thresholds(W, leak, least, largest, P, multipliers):
    """Return the least s for which N >= 0, in floating point; NaN where there is none."""
    of_state, mixed, of_inputs = _blocks_of_n(W, leak, least, largest, P, multipliers)
    usable = np.isfinite(of_inputs).all(axis=(1, 2)) & np.isfinite(mixed).all(axis=(1, 2))
    usable &= np.linalg.eigvalsh(np.where(usable[:, None, None], of_inputs, -1.0))[:, 0] > 0
    eye = np.eye(W.shape[1])
    safe = np.where(usable[:, None, None], of_inputs, eye)
    needed = of_state + _transposed(mixed) @ np.linalg.solve(safe, mixed)
    needed = np.where(np.isfinite(needed) & usable[:, None, None], needed, 0.0)
    squares = np.linalg.eigvals(np.linalg.solve(P, needed)).real.max(axis=1)
    return np.where(usable & (squares > 0), np.sqrt(np.abs(squares)), np.nan)


def undecided(M):
    """Whether each of many symmetric matrices is not clearly positive definite, by elimination."""
    M = M.copy()
    m = M.shape[-1]
    doubt = 1e-18 * m * np.abs(np.diagonal(M, axis1=-2, axis2=-1)).max(axis=-1)
    found = np.zeros(M.shape[:-2], dtype=bool)
    for k in range(m):
        pivot = M[..., k, k]
        found |= ~(pivot > doubt)
        column = M[..., k + 1 :, k] / np.where(found, 1, pivot)[..., None]
        M[..., k + 1 :, k + 1 :] -= column[..., None] * M[..., k, None, k + 1 :]
    return found


def _is_definite(M):
    """The same for one matrix of fractions, exactly."""
    M = [list(row) for row in M]
    for k in range(len(M)):
        if M[k][k] <= 0:
            return False
        for i in range(k + 1, len(M)):
            factor = M[i][k] / M[k][k]
            for j in range(k, len(M)):
                M[i][j] -= factor * M[k][j]
    return True


_FRACTIONS = np.vectorize(lambda value: Fraction(float(value)), otypes=[object])


def _what_is_claimed(W, leak, least, largest, s, P, multipliers):
    """Return P, N, and s^2 P - M'PM for the step M at each corner of the slopes."""
    of_state, mixed, of_inputs = _blocks_of_n(W, leak, least, largest, P, multipliers)
    square = (s * s)[:, None, None]
    upper = np.concatenate([square * P - of_state, _transposed(mixed)], axis=2)
    N = np.concatenate([upper, np.concatenate([mixed, of_inputs], axis=2)], axis=1)
    claims = [P, N]
    for corner in product((False, True), repeat=W.shape[1]):
        slopes = np.where(corner, largest, least)
        M = (1 - leak)[:, :, None] * np.eye(W.shape[1], dtype=int)
        M = M + (leak * slopes)[:, :, None] * W
        claims.append(square * P - _transposed(M) @ P @ M)
    return claims


def false_proofs(W, leak, least, largest, s, P, multipliers, n_exact=0):
    """Return which of many claims are false, and how many of them were decided in fractions.

    Those are the first `n_exact`, and all that more digits leave in doubt.
    """
    parts = W, leak, least, largest, s, P, multipliers
    claims = _what_is_claimed(*(part.astype(np.longdouble) for part in parts))
    doubt = np.any([undecided(M) for M in claims], axis=0)
    doubt[:n_exact] = True
    doubtful = np.flatnonzero(doubt)
    false = []
    for i in doubtful:
        exact = _what_is_claimed(*(_FRACTIONS(part[i : i + 1]) for part in parts))
        if not all(_is_definite(M[0]) for M in exact):
            false.append(i)
    return false, len(doubtful)


def fuzz(n_problems, seed=0, largest_n=6):
    """Return messages, counts by law and outcome, and how many claims fractions decided."""
    rng = np.random.default_rng([seed, 7])
    messages, counts, n_exact = [], Counter(), 0
    for start in range(0, n_problems, BATCH):
        count, n = min(BATCH, n_problems - start), int(rng.integers(1, largest_n + 1))
        law, W, leak, least, largest = draw(rng, count, n)
        with np.errstate(all="ignore"):
            x = _scalings(largest[:, :, None] * W)
            multipliers = np.exp(2 * x) * 10.0 ** rng.choice([0, 0, 0, -290, -100, 100, 290])
            # P and Lambda may be any: each law of W once as it is, once in balanced units
            if rng.random() < 0.7:
                W = np.exp(x)[:, :, None] * W / np.exp(x)[:, None]
                multipliers = multipliers / np.exp(2 * x)
            P = _quadratic_forms(W, leak, least, largest, multipliers)
            s = _thresholds(W, leak, least, largest, P, multipliers)
        proved = np.zeros(count, dtype=bool)
        for i in np.flatnonzero(np.isfinite(s)):
            given = W[i], leak[i], least[i], largest[i]
            low, high, least_s = 0, len(ABOVE), s[i]
            while low < high:  # by bisection, to the least that is proved
                middle = (low + high) // 2
                tried = float(least_s * (1 + ABOVE[middle]))
                if is_proved(*given, tried, P[i], multipliers[i]):
                    proved[i], s[i], high = True, tried, middle
                else:
                    low = middle + 1
        counts["proved"] += int(proved.sum())
        counts["not proved"] += int(count - proved.sum())
        counts[law] += int(proved.sum())
        if proved.any():
            parts = W, leak, least, largest, s, P, multipliers
            exact = int(start // BATCH % 20 == 0)
            false, doubtful = false_proofs(*(part[proved] for part in parts), n_exact=exact)
            n_exact += doubtful
            messages += [f"{law}: {[part[proved][i] for part in parts]!r}" for i in false]
    return messages, counts, n_exact


if __name__ == "__main__":
    n_problems = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    messages, counts, n_exact = fuzz(n_problems, int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    print("\n".join(messages[:20]))
    print(f"{n_problems} problems: {dict(counts)}; {n_exact} decided in fractions")
    print(f"{len(messages)} false proofs")
    sys.exit(bool(messages))

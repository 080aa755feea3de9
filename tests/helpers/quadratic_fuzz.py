"""Attack the lemma of C7: small problems by odd laws, each at the threshold of what is proved.

    python tests/helpers/quadratic_fuzz.py [problems] [first seed]

For each problem some P, P+ and Lambda are chosen, and with them the least s^2 that the lemma
allows, in floating point. `is_proved` is asked from just below it upwards. What it says is then
checked twice, in more digits and, where these do not decide, in fractions: N is positive definite,
and at each corner of the slopes, where e'P+e grows most, it is below s^2 e'Pe after the step.
"""

import sys
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np

from reservoir.activations.enclosures import EPS
from reservoir.stability.proofs._quadratic_form import Step, is_proved

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


def draw_weights(rng, count, n):
    """Return a law's name and weights (count, n, n)."""
    law = list(LAWS)[rng.integers(len(LAWS))]
    W = np.array(np.broadcast_to(LAWS[law](rng, (count, n, n)), (count, n, n)))
    if law in ("orthogonal", "Hadamard"):
        W *= 1 + rng.choice([-1e-1, -1e-8, -1e-13, 0.0, 1e-15, 1e-13, 1e-8], (count, 1, 1))
    else:
        size = np.abs(np.linalg.eigvals(W)).max(axis=1)
        size = np.maximum(size, 1e-3 * np.abs(W).max(axis=(1, 2))) + 1e-300
        W *= (rng.uniform(0.2, 1.2, count) / size)[:, None, None]
    return law, W


def draw_units(rng, count, n):
    """Return leak rates and bounds of slopes, each (count, n)."""
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
    return leak, least, largest


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


# A batch of problems is a dictionary of arrays whose first axis runs over the problems: "A", "B",
# "K", "least", "largest", "square" (s^2), "now", "after" (P and P+), "multipliers"; of networks
# "leak" as well, of which A and B are made, else "off_A" and "off_B", by how much they are rounded.


def networks(rng, count, n):
    """Return a law's name and problems: steps of networks."""
    law, W = draw_weights(rng, count, n)
    leak, least, largest = draw_units(rng, count, n)
    with np.errstate(all="ignore"):
        x = _scalings(largest[:, :, None] * W)
        multipliers = np.exp(2 * x)
        # P and Lambda may be any: here those of the units as they are, or of balanced ones
        if rng.random() < 0.7:
            W = np.exp(x)[:, :, None] * W / np.exp(x)[:, None]
            multipliers = multipliers / np.exp(2 * x)
    made = {"K": W, "least": least, "largest": largest, "leak": leak, "multipliers": multipliers}
    return law, made | _leaky(leak)


def dense_steps(rng, count, n):
    """Return the same for steps like those of a closed loop, with fewer slopes than states."""
    k = int(rng.integers(1, n + 1))
    (law, A), (other, K) = draw_weights(rng, count, n), draw_weights(rng, count, n)
    _, least, largest = draw_units(rng, count, k)
    B = rng.standard_normal((count, n, k)) * 10 ** rng.uniform(-3, 1, (count, 1, 1))
    made = {"A": A * rng.uniform(0, 1), "B": B, "K": K[:, :k], "least": least, "largest": largest}
    made |= {f"off_{name}": EPS * rng.integers(-1, 2, made[name].shape) for name in "AB"}
    made["multipliers"] = 10 ** rng.uniform(-2, 2, (count, k))
    return f"loop, {law}, {other}", made


def _leaky(leak):
    eye = np.eye(leak.shape[1], dtype=int)
    return {"A": (1 - leak)[..., None] * eye, "B": leak[..., None] * eye}


def some(problems, chosen):
    return {name: values[chosen] for name, values in problems.items()}


def in_numbers(problems, convert):
    """Return problems in another type of numbers, with the exact A and B."""
    exact = {name: convert(values) for name, values in problems.items()}
    if "leak" in exact:
        return exact | _leaky(exact["leak"])
    return exact | {name: exact[name] * (1 + exact[f"off_{name}"]) for name in "AB"}


def _transposed(M):
    return np.swapaxes(M, -1, -2)


def _solved(M, right):
    """Return M^-1 right; zeros where M is singular."""
    singular = ~(np.abs(np.linalg.det(M)) > 0)
    M = np.where(singular[:, None, None], np.eye(M.shape[1]), M)
    return np.where(singular[:, None, None], 0.0, np.linalg.solve(M, right))


def choose_forms(rng, problems):
    """Add P, of the Riccati equation where there is one, else of theorem C3, and P+."""
    A, B, K = (problems[name] for name in "ABK")
    least, largest, multipliers = (problems[name] for name in ("least", "largest", "multipliers"))
    n, eye, root = A.shape[1], np.eye(A.shape[1]), np.sqrt(multipliers)
    J = A + B @ ((0.5 * (least + largest))[:, :, None] * K)
    of_outputs = (root * 0.5 * (largest - least))[:, :, None] * K
    P = _transposed(of_outputs) @ of_outputs
    P += (1e-7 * (np.trace(P, axis1=1, axis2=2) / n + 1))[:, None, None] * eye
    of_inputs = B / (root * (1 - 1e-4))[:, None]
    G = -of_inputs @ _transposed(of_inputs)
    for _ in range(7):
        solved = _solved(eye + G @ P, np.concatenate([J, G], axis=2))
        more = _transposed(J) @ (P @ solved[..., :n])
        G = G + J @ solved[..., n:] @ _transposed(J)
        P, J = P + 0.5 * (more + _transposed(more)), J @ solved[..., :n]
        lost = ~np.isfinite(P + J + G).all(axis=(1, 2)) | (np.abs(P).max(axis=(1, 2)) > 1e30)
        P[lost], J[lost], G[lost] = eye, 0.0, 0.0
    margin = multipliers[:, :, None] * np.eye(K.shape[1]) - _transposed(B) @ P @ B
    kept = ~lost & (np.linalg.eigvalsh(P)[:, 0] > 0) & (np.linalg.eigvalsh(margin)[:, 0] > 0)
    size = 0.5 * multipliers.min(axis=1) / np.maximum((B * B).sum(axis=(1, 2)), 1e-300)
    P = np.where(kept[:, None, None], P, size[:, None, None] * eye)
    problems["now"] = problems["after"] = P
    if rng.random() < 0.4:  # another norm after the step, never a larger one
        vector = rng.standard_normal((len(P), n, 1))
        vector /= np.sqrt((vector * (P @ vector)).sum(axis=1, keepdims=True))
        lost = rng.random((len(P), 1, 1)) * (P @ vector) @ _transposed(P @ vector)
        problems["after"] = 0.9 * (P - 0.5 * (lost + _transposed(lost)))
    scale = 10.0 ** rng.choice([0, 0, 0, -290, -100, 100, 290])
    for name in ("now", "after", "multipliers"):
        problems[name] = problems[name] * scale


def blocks(problems):
    """Return s^2 P - N11, N21 and N22 in the numbers of the problems."""
    A, B, K, after = (problems[name] for name in ("A", "B", "K", "after"))
    least, largest, multipliers = (problems[name] for name in ("least", "largest", "multipliers"))
    product_, mean = multipliers * least * largest, multipliers * (least + largest) / 2
    of_state = _transposed(A) @ after @ A - _transposed(K) @ (product_[:, :, None] * K)
    mixed = -_transposed(B) @ after @ A - mean[:, :, None] * K
    of_inputs = multipliers[:, :, None] * np.eye(K.shape[1], dtype=int)
    return of_state, mixed, of_inputs - _transposed(B) @ after @ B


def thresholds(problems):
    """Return the least s^2 for which N >= 0, in floating point; NaN where there is none."""
    of_state, mixed, of_inputs = blocks(problems)
    usable = np.isfinite(of_inputs).all(axis=(1, 2)) & np.isfinite(mixed).all(axis=(1, 2))
    chosen = usable[:, None, None]
    usable &= np.linalg.eigvalsh(np.where(chosen, of_inputs, -1.0))[:, 0] > 0
    chosen = usable[:, None, None]
    safe = np.where(chosen, of_inputs, np.eye(of_inputs.shape[1]))
    needed = of_state + _transposed(mixed) @ _solved(safe, np.where(chosen, mixed, 0.0))
    usable &= np.isfinite(needed).all(axis=(1, 2))
    needed = np.where(usable[:, None, None], needed, 0.0)
    ratios = _solved(problems["now"], needed)
    usable &= np.isfinite(ratios).all(axis=(1, 2))
    squares = np.linalg.eigvals(np.where(usable[:, None, None], ratios, 0.0)).real.max(axis=1)
    return np.where(usable & (squares > 0), squares, np.nan)


def ask(problems):
    """Set each s^2 to the least that is proved of a few about the threshold; return which were."""
    squares = thresholds(problems)
    problems["square"], proved = squares.copy(), np.zeros(len(squares), dtype=bool)
    diagonal = "leak" in problems
    for i in np.flatnonzero(np.isfinite(squares)):
        given = some(problems, i)
        A, B = (1 - given["leak"], given["leak"]) if diagonal else (given["A"], given["B"])
        step = Step(A, B, given["K"], given["least"], given["largest"])
        low, high = 0, len(ABOVE)
        while low < high:
            middle = (low + high) // 2
            square = float(squares[i] * (1 + ABOVE[middle]))
            if is_proved(step, square, given["now"], given["after"], given["multipliers"]):
                proved[i], problems["square"][i], high = True, square, middle
            else:
                low = middle + 1
    return proved


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


def is_definite(M):
    """Whether a matrix of fractions is positive definite."""
    M = [list(row) for row in M]
    for k in range(len(M)):
        if M[k][k] <= 0:
            return False
        for i in range(k + 1, len(M)):
            factor = M[i][k] / M[k][k]
            for j in range(k, len(M)):
                M[i][j] -= factor * M[k][j]
    return True


def claims(problems):
    """Return matrices that are positive definite if proofs of the problems are right.

    P, N, and s^2 P - M'P+M for the step M at each corner of the slopes.
    """
    of_state, mixed, of_inputs = blocks(problems)
    least, largest = problems["least"], problems["largest"]
    of_now = problems["square"][:, None, None] * problems["now"]
    upper = np.concatenate([of_now - of_state, _transposed(mixed)], axis=2)
    N = np.concatenate([upper, np.concatenate([mixed, of_inputs], axis=2)], axis=1)
    made = [problems["now"], N]
    for corner in product((False, True), repeat=least.shape[1]):
        slopes = np.where(corner, largest, least)
        M = problems["A"] + problems["B"] @ (slopes[:, :, None] * problems["K"])
        made.append(of_now - _transposed(M) @ problems["after"] @ M)
    return made


_FRACTIONS = np.vectorize(lambda value: Fraction(float(value)), otypes=[object])


def false_proofs(problems, n_exact=0):
    """Return which of many proofs are false, and how many of them were decided in fractions.

    Those are the first `n_exact`, and all that more digits leave in doubt.
    """
    made = claims(in_numbers(problems, lambda values: values.astype(np.longdouble)))
    doubt = np.any([undecided(M) for M in made], axis=0)
    doubt[:n_exact] = True
    false = []
    for i in np.flatnonzero(doubt):
        exact = claims(in_numbers(some(problems, [i]), _FRACTIONS))
        if not all(is_definite(M[0]) for M in exact):
            false.append(i)
    return false, int(doubt.sum())


def fuzz(n_problems, seed=0, largest_n=6):
    """Return messages, counts by law and outcome, and how many proofs fractions decided."""
    rng = np.random.default_rng([seed, 7])
    messages, counts, n_exact = [], Counter(), 0
    for start in range(0, n_problems, BATCH):
        count, n = min(BATCH, n_problems - start), int(rng.integers(1, largest_n + 1))
        law, problems = (networks if rng.random() < 0.75 else dense_steps)(rng, count, n)
        with np.errstate(all="ignore"):
            choose_forms(rng, problems)
            proved = ask(problems)
        counts["proved"] += int(proved.sum())
        counts["not proved"] += int(count - proved.sum())
        counts[law.split(",")[0]] += int(proved.sum())
        if proved.any():
            found = some(problems, proved)
            false, exact = false_proofs(found, n_exact=int(start // BATCH % 20 == 0))
            n_exact += exact
            messages += [f"{law}: {some(found, i)!r}" for i in false]
    return messages, counts, n_exact


if __name__ == "__main__":
    n_problems = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    messages, counts, n_exact = fuzz(n_problems, int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    print("\n".join(messages[:20]))
    print(f"{n_problems} problems: {dict(counts)}; {n_exact} decided in fractions")
    print(f"{len(messages)} false proofs")
    sys.exit(bool(messages))

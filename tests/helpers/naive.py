"""The slow, obvious version of every algorithm: what the fast ones must equal.

Explicit loops over steps and units, states that are stored, plain formulas. Nothing here is
imported from the package.
"""

import math

import numpy as np
import scipy.sparse as sp

ACTIVATIONS = {
    "tanh": math.tanh,
    "logistic": lambda z: 1 / (1 + math.exp(-z)) if z >= 0 else math.exp(z) / (1 + math.exp(z)),
    "relu": lambda z: max(z, 0.0),
    "leaky_relu": lambda z: z if z > 0 else 0.01 * z,
    "identity": lambda z: z,
    "softplus": lambda z: max(z, 0.0) + math.log1p(math.exp(-abs(z))),
}


def dense(matrix):
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix, dtype=np.float64)


def open_loop(
    W, W_in, bias, X, *, leak=1.0, activation="tanh", W_fb=None, feedback=None, x0=None, kicks=None
):
    """States, one row per step: x[t] = (1 - a) x[t-1] + a f(W x[t-1] + W_in u[t] + b + W_fb y)."""
    W, W_in = dense(W), dense(W_in)
    n_units = len(W)
    leaks = np.broadcast_to(leak, n_units)
    f = ACTIVATIONS[activation]
    state = [0.0] * n_units if x0 is None else [float(v) for v in x0]
    states = np.empty((len(X), n_units))
    for t, u in enumerate(X):
        new = []
        for i in range(n_units):
            z = bias[i]
            z += sum(W[i, j] * state[j] for j in range(n_units))
            z += sum(W_in[i, j] * u[j] for j in range(len(u)))
            if W_fb is not None:
                z += sum(W_fb[i, j] * feedback[t][j] for j in range(W_fb.shape[1]))
            value = (1 - leaks[i]) * state[i] + leaks[i] * f(z)
            new.append(value if kicks is None else value + kicks[t][i])
        state = new
        states[t] = state
    return states


def closed_loop(
    W, W_in, bias, readout, n_steps, *, leak=1.0, activation="tanh", W_fb=None, x0=None, y0=None,
    exog=None, include_input=False,
):  # fmt: skip
    """Outputs and the last state of a reservoir that hears its own outputs; readout(features)."""
    n_units = dense(W).shape[0]
    state = np.zeros(n_units) if x0 is None else np.asarray(x0, dtype=np.float64)
    output, outputs = np.asarray(y0, dtype=np.float64), []
    for k in range(n_steps):
        row = np.zeros(0) if exog is None else np.asarray(exog[k], dtype=np.float64)
        u = row if W_fb is not None else np.concatenate([output, row])
        state = open_loop(
            W, W_in, bias, [u], leak=leak, activation=activation, W_fb=W_fb, feedback=[output],
            x0=state,
        )[0]  # fmt: skip
        features = np.concatenate([state, u]) if include_input else state
        output = np.asarray(readout(features), dtype=np.float64)
        outputs.append(output)
    return np.array(outputs).reshape(n_steps, -1), state


def centre(H, Y, weights=None, fit_intercept=True):
    """Rows less their weighted means, times the root of their weights; and the means."""
    weights = np.ones(len(H)) if weights is None else np.asarray(weights, dtype=np.float64)
    mean_h, mean_y = np.zeros(H.shape[1]), np.zeros(Y.shape[1])
    if fit_intercept:
        mean_h, mean_y = weights @ H / weights.sum(), weights @ Y / weights.sum()
    root = np.sqrt(weights)[:, None]
    return root * (H - mean_h), root * (Y - mean_y), mean_h, mean_y


def ridge(H, Y, alpha, *, weights=None, fit_intercept=True):
    """Coefficients (n_outputs, n_features) and intercept, by the SVD of the stored states."""
    A, B, mean_h, mean_y = centre(H, Y, weights, fit_intercept)
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    if alpha == 0:  # least norm
        keep = s > max(A.shape) * np.finfo(np.float64).eps * s[0]
        gain = np.where(keep, 1 / np.where(keep, s, 1.0), 0.0)
    else:
        gain = s / (s**2 + alpha)
    coef = (Vt.T @ (gain[:, None] * (U.T @ B))).T
    return coef, mean_y - coef @ mean_h


def ridge_normal_equations(H, Y, alpha, *, weights=None, fit_intercept=True):
    """The same by (H'WH + alpha I)^-1 H'WY, the intercept a column of ones without a penalty."""
    weights = np.ones(len(H)) if weights is None else np.asarray(weights, dtype=np.float64)
    A = np.column_stack([H, np.ones(len(H))]) if fit_intercept else H
    penalty = alpha * np.eye(A.shape[1])
    if fit_intercept:
        penalty[-1, -1] = 0.0
    full = np.linalg.solve(A.T @ (weights[:, None] * A) + penalty, A.T @ (weights[:, None] * Y)).T
    return (full[:, :-1], full[:, -1]) if fit_intercept else (full, np.zeros(Y.shape[1]))


def hat_matrix(H, alpha, *, weights=None, fit_intercept=True):
    """Hat matrix of the weighted problem: maps sqrt(w) y to its fit, the intercept included."""
    weights = np.ones(len(H)) if weights is None else np.asarray(weights, dtype=np.float64)
    A, _, _, _ = centre(H, H, weights, fit_intercept)
    if len(A) < A.shape[1]:
        hat = np.linalg.solve(A @ A.T + alpha * np.eye(len(A)), A @ A.T).T
    else:
        hat = A @ np.linalg.solve(A.T @ A + alpha * np.eye(A.shape[1]), A.T)
    if fit_intercept:
        hat = hat + np.outer(np.sqrt(weights), np.sqrt(weights)) / weights.sum()
    return hat


def gcv(H, Y, alpha, *, weights=None, fit_intercept=True):
    """Golub, Heath and Wahba 1979, eq. (1.4): |(I - A) y|^2 / n / (tr(I - A) / n)^2."""
    weights = np.ones(len(H)) if weights is None else np.asarray(weights, dtype=np.float64)
    n_samples = len(H)
    rest = np.eye(n_samples) - hat_matrix(H, alpha, weights=weights, fit_intercept=fit_intercept)
    residual = rest @ (np.sqrt(weights)[:, None] * Y)
    return (residual**2).mean(axis=0) / (np.trace(rest) / n_samples) ** 2


def block_scores(H, Y, alphas, blocks, *, weights=None, fit_intercept=True):
    """Mean squared error on each block (indices of rows) of a fit on all other rows."""
    weights = np.ones(len(H)) if weights is None else np.asarray(weights, dtype=np.float64)
    scores = np.zeros((len(alphas), Y.shape[1]))
    for rows in blocks:
        rest = np.setdiff1d(np.arange(len(H)), rows)
        for score, alpha in zip(scores, alphas, strict=True):
            coef, intercept = ridge(
                H[rest], Y[rest], alpha, weights=weights[rest], fit_intercept=fit_intercept
            )
            score += weights[rows] @ (H[rows] @ coef.T + intercept - Y[rows]) ** 2
    return scores / sum(weights[rows].sum() for rows in blocks)


def pooled(states, names, thresholds=()):
    """The numbers that states, (n_steps, n_units), are pooled to, in the order of their names."""
    states = np.asarray(states, dtype=np.float64)
    parts = []
    for name in names:
        if name == "quantiles":
            parts += [(states > level).mean(axis=0) for level in thresholds]
        else:
            parts.append(states[-1] if name == "last" else getattr(np, name)(states, axis=0))
    return np.concatenate(parts)


def numerical_radius(M, leak):
    """Largest eigenvalue of the Hermitian part of M F over a fine grid of frequencies.

    F is the diagonal of a / (exp(i t) - 1 + a), which is exp(-i t) without leak.
    """
    best = -np.inf
    for t in np.concatenate([np.linspace(0, np.pi, 400), np.geomspace(1e-3, np.pi, 400)]):
        H = M * (leak / (np.exp(1j * t) - 1 + leak))
        best = max(best, np.linalg.eigvalsh((H + H.conj().T) / 2)[-1])
    return best

"""Dependence of forecast errors between horizons and columns, and random draws of such errors."""

from __future__ import annotations

import numpy as np

from reservoir._typing import Array

_CLOSEST = 0.999  # largest correlation of neighbouring horizons
_MEASURED = 0.5  # weight of the measured correlations; the remainder is from a Markov chain


def between_horizons(relative: Array) -> tuple[Array, float]:
    """Return the correlations of errors between horizons, and the variance common to all of them.

    `relative`, (n_origins, n_steps, n_outputs), are errors divided by their scale; NaN where
    unknown. The correlations are the mean of two estimates, from complete trajectories and from a
    Markov chain of neighbours, since few trajectories say little about distant horizons. The common
    fraction of the variance, in [0, 1), makes sums of errors vary as they do in the trajectories.
    """
    known = np.isfinite(relative)
    filled = np.where(known, relative, 0.0)
    both = known[:, 1:] & known[:, :-1]
    left, right = np.where(both, filled[:, :-1], 0.0), np.where(both, filled[:, 1:], 0.0)
    norms = np.sqrt(np.square(left).sum((0, 2)) * np.square(right).sum((0, 2)))
    products = (left * right).sum((0, 2))
    steps = np.where(norms > 0, products / np.where(norms > 0, norms, 1.0), 0.0)
    steps = np.clip(steps, -_CLOSEST, _CLOSEST)
    chain = _chain(steps)
    whole = known.all(axis=(1, 2))
    trajectories = np.swapaxes(relative[whole], 1, 2).reshape(-1, relative.shape[1])
    norms = np.sqrt(np.square(trajectories).sum(axis=0))
    if min(trajectories.shape) < 2 or not np.all(norms > 0):
        return chain, 0.0
    unit = trajectories / norms
    measured = unit.T @ unit
    found = _MEASURED * measured + (1 - _MEASURED) * chain
    least = found.size * (1 - _CLOSEST)  # below it, all errors are one
    common = (measured.sum() - found.sum()) / max(found.size - found.sum(), least)
    return found, max(float(common), 0.0)


def _chain(steps: Array) -> Array:
    """Return the correlations of a Markov chain, from the correlations between neighbours."""
    size = len(steps) + 1
    found = np.eye(size)
    for k in range(1, size):
        found[k, :k] = found[:k, k] = found[k - 1, :k] * steps[k - 1]
    return found


def between_outputs(relative: Array) -> Array:
    """Return the correlations of errors between columns, (n_outputs, n_outputs)."""
    n_outputs = relative.shape[-1]
    rows = relative.reshape(-1, n_outputs)
    rows = rows[np.isfinite(rows).all(axis=1)]
    norms = np.sqrt(np.square(rows).sum(axis=0))
    unit = rows / np.where(norms > 0, norms, 1.0)
    found = _CLOSEST * unit.T @ unit
    np.fill_diagonal(found, 1.0)
    return found


def dependent_normals(
    generator: np.random.Generator,
    shape: tuple[int, int, int],
    along: Array,
    across: Array,
    *,
    growth: float,
    common: float,
) -> Array:
    """Draw standard normal variables that are correlated between steps and between columns.

    The result has the `shape` (n_paths, n_steps, n_outputs). Steps beyond the correlations `along`,
    (n_validated, n_validated), follow a Markov chain, in which 1 minus the correlation of
    neighbours falls as the horizon to the power -2 * growth: for a random walk (growth 0.5), as one
    over it. `across` are the correlations of columns. `common` is the variance shared by all steps
    of a path.
    """
    (n_paths, n_steps, n_outputs), n_known = shape, len(along)
    # drawn step by step, with the root of all correlations: longer paths begin with the same steps
    whole = generator.standard_normal((n_paths, 1, n_outputs)) @ _root(across).T
    n_drawn = max(n_steps, n_known)
    mixed = generator.standard_normal((n_drawn, n_paths, n_outputs)) @ _root(across).T
    found = np.empty((n_drawn, n_paths, n_outputs))
    found[:n_known] = np.tensordot(_root(along), mixed[:n_known], 1)
    gaps = 1 - np.diag(along, 1)
    latest = np.arange(len(gaps) * 3 // 4, len(gaps))
    rate = (gaps[latest] * (latest + 1.0) ** (2 * growth)).mean() if len(latest) else 1.0
    for h in range(n_known, n_steps):
        step = float(np.clip(1 - rate / h ** (2 * growth), -_CLOSEST, _CLOSEST))
        found[h] = step * found[h - 1] + np.sqrt(1 - step**2) * mixed[h]
    found = found[:n_steps].swapaxes(0, 1)
    return np.sqrt(1 - common) * found + np.sqrt(common) * whole


def _root(correlations: Array) -> Array:
    """Return the symmetric square root of a correlation matrix, which may be singular.

    This root is unique; with another root, paths would depend on the signs that a linear algebra
    library chooses for eigenvectors.
    """
    values, vectors = np.linalg.eigh(correlations)
    root: Array = vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
    return root

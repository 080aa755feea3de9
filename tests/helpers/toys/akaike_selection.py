"""A selection rule: Akaike's criterion, from the path that generalised CV uses."""

import numpy as np

from reservoir.readouts.selection import SelectionRule


class Akaike(SelectionRule):
    def scores(self, sums, path, alphas, folds, fit_intercept, neighbours=None):
        n, path = sums.n_samples, path()
        scores = []
        for alpha in alphas:
            # gcv is (RSS / n) / (1 - dof / n)^2
            dof = float(path.freedom(alpha)) + fit_intercept
            residual = path.gcv(alpha) * (1 - dof / n) ** 2
            scores.append(residual * np.exp(2 * dof / n))
        return np.array(scores)

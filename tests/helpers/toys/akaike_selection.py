"""A selection rule: Akaike's criterion, from the path that generalised CV uses."""

import numpy as np

from reservoir.readouts.selection import SelectionRule


class Akaike(SelectionRule):
    def scores(self, penalties):
        n, path = penalties.sums.n_samples, penalties.path()
        scores = []
        for alpha in penalties.alphas:
            # gcv is (RSS / n) / (1 - dof / n)^2
            dof = float(path.freedom(alpha)) + penalties.fit_intercept
            residual = path.gcv(alpha) * (1 - dof / n) ** 2
            scores.append(residual * np.exp(2 * dof / n))
        return np.array(scores)

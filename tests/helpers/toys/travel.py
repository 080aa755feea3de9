"""A pool of states: how far they travel from step to step, on average."""

import numpy as np

from reservoir.dynamics.pooling import Pool


class Travel(Pool):
    def __init__(self, n_units, thresholds):
        super().__init__(n_units, thresholds)
        self.n_steps, self.way, self.before = 0, np.zeros(n_units), np.zeros((1, n_units))

    def add(self, states):
        self.way += abs(np.diff(np.vstack([self.before, states]), axis=0)).sum(axis=0)
        self.n_steps += len(states)
        self.before = states[-1:].copy()

    def result(self):
        return self.way / self.n_steps

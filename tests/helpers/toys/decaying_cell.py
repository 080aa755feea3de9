"""A cell that is no simple one: ``h = decay h + tanh(W_in x)``, one decay per unit."""

from dataclasses import dataclass

import numpy as np

from reservoir.training.cells import Cell, Trace, Weight, saved


@saved
@dataclass(frozen=True)
class Decay(Cell):
    n_units: int

    def weights(self, n_features):
        return {
            "W_in": Weight((self.n_units, n_features), "input"),
            "decay": Weight((self.n_units,), "diagonal"),
        }

    def forward(self, params, X, state=None, lengths=None):
        keep = 1 / (1 + np.exp(-params["decay"]))
        new = np.tanh(X @ params["W_in"].T)
        states = np.empty((len(X) + 1, *new.shape[1:]), X.dtype)
        states[0] = 0 if state is None else state
        for t, row in enumerate(new):
            states[t + 1] = keep * states[t] + row
        ends = np.full(X.shape[1], len(X)) if lengths is None else lengths
        kept = {"new": new, "keep": keep}
        return Trace(X, states, states[ends, np.arange(X.shape[1])], ends, kept=kept)

    def backward(self, params, trace, dH, *, d_end=None, d_pre=None, inputs=False):
        new, keep = trace.kept["new"], trace.kept["keep"]
        d, d_keep, d_new = np.zeros_like(dH[0]), np.zeros_like(keep), np.zeros_like(new)
        for t in range(len(dH) - 1, -1, -1):
            d = d + dH[t]
            if d_end is not None:
                d = d + np.where((trace.lengths == t + 1)[:, None], d_end, 0)
            d_keep += (d * trace.states[t]).sum(axis=0)
            d_new[t] = d * (1 - new[t] ** 2)
            d = d * keep
        flat = d_new.reshape(-1, self.n_units)
        W_in = flat.T @ trace.inputs.reshape(len(flat), -1)
        grads = {"W_in": W_in, "decay": d_keep * keep * (1 - keep)}
        return grads, d, d_new @ params["W_in"] if inputs else None

"""What the page on errata says of formulas that have no other test."""

import numpy as np

from reservoir.training.cells import LSTMCell


def test_each_gate_of_an_lstm_has_a_recurrent_matrix_of_its_own():
    n_inputs, n_outputs = 100, 256
    shapes = LSTMCell(n_outputs).shapes(n_inputs)
    n_weights = sum(int(np.prod(shape)) for shape in shapes.values())
    assert n_weights == 4 * ((n_inputs + 1) * n_outputs + n_outputs**2) == 365_568
    assert 4 * (n_inputs + 1) * n_outputs + n_outputs**2 == 168_960  # as printed


def test_from_step_k_to_step_t_there_are_t_minus_k_factors():
    W, k, t = 0.9, 3, 8
    h = [1.0]
    for _ in range(t):
        h.append(W * h[-1])
    assert np.isclose(h[t] / h[k], W ** (t - k))
    assert not np.isclose(h[t] / h[k], W ** (t - k - 1))


def test_singular_values_are_not_those_of_a_diagonalizable_matrix():
    W = np.array([[0.5, 3.0], [0.0, 0.25]])  # different eigenvalues
    values = np.abs(np.linalg.eigvals(W))
    assert np.linalg.norm(W, 2) > 5 * values.max()
    Q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))
    normal = Q @ np.diag([0.9, -0.7, 0.4, 0.1]) @ Q.T
    np.testing.assert_allclose(np.linalg.norm(normal, 2), 0.9)

"""Gradient control: penalties against finite differences, Jacobians against their definition."""

import numpy as np
import pytest

from reservoir.training.cells import GRUCell, LSTMCell, SimpleCell
from reservoir.training.gradient_control import (
    GradientControl,
    control_penalty,
    jacobian_product_norms,
    step_jacobians,
)

pytestmark = pytest.mark.both_engines

KINDS = ("interval", "rms", "both")
LEAKS = (1.0, 0.4, (0.3, 0.6, 1.0, 0.9, 0.5))
SMOOTH = ("tanh", "logistic", "softplus", "identity")


def draw(cell, n_features=2, seed=0, gain=1.0):
    rng = np.random.default_rng(seed)
    return {
        name: gain * rng.normal(size=shape) / np.sqrt(shape[-1])
        for name, shape in cell.shapes(n_features).items()
    }


def gradient(cell, params, X, control, lengths=None):
    """Value and whole gradient of the penalty, and nothing of a loss."""
    trace = cell.forward(params, X, lengths=lengths)
    value, direct, d_pre = control_penalty(cell, params, trace, control, np.random.default_rng(7))
    grads, _, _ = cell.backward(params, trace, np.zeros_like(trace.states[1:]), d_pre=d_pre)
    grads["W"] = grads["W"] + direct["W"]
    return value, grads


def differences(cell, params, X, control, lengths=None, h=1e-6):
    slopes = {}
    for name, weights in params.items():
        slopes[name] = np.empty_like(weights)
        for place in np.ndindex(weights.shape):
            ends = []
            for sign in (1, -1):
                moved = {**params, name: weights.copy()}
                moved[name][place] += sign * h
                ends.append(gradient(cell, moved, X, control, lengths)[0])
            slopes[name][place] = (ends[0] - ends[1]) / (2 * h)
    return slopes


def naive_penalty(J, kind, low=0.9, high=1.1, target=1.0):
    s = np.linalg.svd(J, compute_uv=False)
    interval = 0.5 * sum((x - low) ** 2 for x in s if x < low)
    interval += 0.5 * sum((x - high) ** 2 for x in s if x > high)
    rms = (np.sqrt(np.mean(s**2)) - target) ** 2
    return {"interval": interval, "rms": rms, "both": interval + rms}[kind]


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("leak", LEAKS, ids=str)
@pytest.mark.parametrize("activation", SMOOTH)
def test_gradient_is_that_of_finite_differences(activation, leak, kind):
    cell = SimpleCell(5, activation, leak)
    control = GradientControl(weight=0.7, kind=kind, n_samples=5)
    for seed in range(3):
        X = np.random.default_rng(seed).normal(size=(6, 3, 2))
        params = draw(cell, seed=seed)
        value, grads = gradient(cell, params, X, control)
        assert value > 0
        for name, expected in differences(cell, params, X, control).items():
            scale = max(np.abs(expected).max(), 1e-3)
            np.testing.assert_allclose(grads[name], expected, atol=1e-6 * scale, err_msg=name)


@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
def test_piecewise_linear_activations_have_the_direct_part_alone(activation):
    cell = SimpleCell(5, activation, 0.6)
    X = np.random.default_rng(0).normal(size=(6, 3, 2))
    params, control = draw(cell), GradientControl(n_samples=5)
    trace = cell.forward(params, X)
    assert control_penalty(cell, params, trace, control, np.random.default_rng(0))[2] is None
    _, grads = gradient(cell, params, X, control)
    for name, expected in differences(cell, params, X, control).items():
        np.testing.assert_allclose(grads[name], expected, atol=1e-8, err_msg=name)


def test_gradient_with_padding_and_only_real_steps_are_drawn():
    cell, lengths = SimpleCell(4), np.array([2, 6, 1])
    X = np.random.default_rng(0).normal(size=(6, 3, 2))
    params, control = draw(cell), GradientControl(n_samples=100)
    trace = cell.forward(params, X, lengths=lengths)
    value, _, d_pre = control_penalty(cell, params, trace, control, np.random.default_rng(0))
    touched = np.abs(d_pre).sum(axis=2) > 0
    np.testing.assert_array_equal(touched, np.arange(6)[:, None] < lengths)
    steps, sequences = np.nonzero(touched)
    J = step_jacobians(cell, params, trace, steps, sequences)
    expected = np.mean([naive_penalty(j, "both") for j in J])
    assert value == pytest.approx(control.weight * expected, rel=1e-12)
    _, grads = gradient(cell, params, X, control, lengths)
    for name, slopes in differences(cell, params, X, control, lengths).items():
        np.testing.assert_allclose(grads[name], slopes, atol=1e-8, err_msg=name)


def test_the_penalty_is_smooth_where_a_singular_value_crosses_a_bound():
    cell = SimpleCell(1, "identity")
    X, control = np.ones((1, 1, 1)), GradientControl(weight=1.0, kind="interval")

    def at(w):
        params = {"W_in": np.ones((1, 1)), "W": np.full((1, 1), w), "bias": np.zeros(1)}
        value, grads = gradient(cell, params, X, control)
        return value, grads["W"][0, 0]

    for bound in (0.9, 1.1):
        assert at(bound) == (0.0, 0.0)
        for step in (1e-3, 1e-5):
            inside, outside = (bound + s * step * np.sign(1 - bound) for s in (1, -1))
            assert at(inside) == (0.0, 0.0)
            value, slope = at(outside)
            assert value == pytest.approx(step**2 / 2, rel=1e-6)
            assert abs(slope) == pytest.approx(step, rel=1e-6)


@pytest.mark.slow
def test_minimising_it_brings_the_singular_values_between_the_bounds():
    cell = SimpleCell(8)
    X = 0.3 * np.random.default_rng(0).normal(size=(60, 1, 2))
    params, control = draw(cell), GradientControl(weight=1.0, n_samples=60)
    before = gradient(cell, params, X, control)[0]
    for _ in range(1500):
        _, grads = gradient(cell, params, X, control)
        params = {name: params[name] - 0.3 * grads[name] for name in params}
    assert gradient(cell, params, X, control)[0] < 1e-3 * before
    trace = cell.forward(params, X)
    s = np.linalg.svd(step_jacobians(cell, params, trace, range(60), [0] * 60), compute_uv=False)
    assert s.min() > 0.8
    assert s.max() < 1.2


@pytest.mark.slow
def test_the_sample_estimates_the_mean_over_all_steps_without_bias():
    cell = SimpleCell(4)
    X = np.random.default_rng(0).normal(size=(40, 3, 2))
    params = draw(cell)
    trace = cell.forward(params, X)
    everything = GradientControl(weight=1.0, n_samples=10_000)
    rng = np.random.default_rng(1)
    mean, direct, d_pre = control_penalty(cell, params, trace, everything, rng)
    few = GradientControl(weight=1.0, n_samples=7)
    draws = [control_penalty(cell, params, trace, few, rng) for _ in range(3000)]
    assert np.mean([d[0] for d in draws]) == pytest.approx(mean, rel=0.02)
    scale = np.abs(direct["W"]).max()
    np.testing.assert_allclose(
        np.mean([d[1]["W"] for d in draws], axis=0), direct["W"], atol=0.02 * scale
    )
    assert all((np.abs(d[2]).sum(axis=2) > 0).sum() == 7 for d in draws[:20])
    np.testing.assert_allclose(
        np.mean([d[2] for d in draws], axis=0).sum(axis=(0, 1)),
        d_pre.sum(axis=(0, 1)),
        atol=0.05 * np.abs(d_pre).sum(axis=(0, 1)).max(),
    )


def test_nothing_but_padding_costs_nothing():
    cell = SimpleCell(3)
    params = draw(cell)
    trace = cell.forward(params, np.ones((4, 2, 2)), lengths=np.zeros(2, dtype=int))
    value, direct, d_pre = control_penalty(
        cell, params, trace, GradientControl(), np.random.default_rng(0)
    )
    assert value == 0
    assert direct == {}
    assert d_pre is None


def test_zero_weights_and_dead_units_give_finite_gradients():
    for activation in ("relu", "tanh"):
        cell = SimpleCell(3, activation)
        params = {name: np.zeros(shape) for name, shape in cell.shapes(1).items()}
        params["bias"] -= 1.0
        value, grads = gradient(cell, params, np.ones((4, 1, 1)), GradientControl(weight=1.0))
        assert value == pytest.approx(3 * 0.9**2 / 2 + 1.0)
        assert all(np.isfinite(g).all() for g in grads.values())


def test_float32_stays_float32():
    cell = SimpleCell(5, leak_rate=0.5)
    params = {name: w.astype(np.float32) for name, w in draw(cell).items()}
    trace = cell.forward(params, np.ones((9, 2, 2), np.float32))
    _, direct, d_pre = control_penalty(
        cell, params, trace, GradientControl(), np.random.default_rng(0)
    )
    assert direct["W"].dtype == d_pre.dtype == np.float32
    assert jacobian_product_norms(cell, params, np.ones((9, 2))).dtype == np.float64


@pytest.mark.parametrize("cell", [LSTMCell(3), GRUCell(3)], ids=lambda c: type(c).__name__)
def test_gated_cells_raise(cell):
    params = draw(cell)
    trace = cell.forward(params, np.ones((4, 1, 2)))
    with pytest.raises(ValueError, match=f"provides its step Jacobian; got {type(cell).__name__}"):
        control_penalty(cell, params, trace, GradientControl(), np.random.default_rng(0))


def test_bad_parameters_raise():
    with pytest.raises(ValueError, match=r"weight=-1 must be finite and in \[0, inf\)"):
        GradientControl(weight=-1)
    with pytest.raises(ValueError, match=r"kind='intervall' is not known\. Did you mean"):
        GradientControl(kind="intervall")
    with pytest.raises(ValueError, match=r"high=0.5 must be finite and in \[0.9, inf\)"):
        GradientControl(high=0.5)
    with pytest.raises(ValueError, match="target=0"):
        GradientControl(target=0)
    with pytest.raises(ValueError, match="n_samples=0 must be at least 1"):
        GradientControl(n_samples=0)


# ---------------------------------------------------------------- products of Jacobians

CELLS = {
    "simple": SimpleCell(4),
    "leaky": SimpleCell(4, "softplus", 0.3),
    "lstm": LSTMCell(3),
    "peephole": LSTMCell(3, peephole=True),
    "gru": GRUCell(4),
}


def end_after(cell, params, X, state):
    return cell.forward(params, X[:, None], state[None]).end[0]


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_norms_are_those_of_the_jacobian_by_differences(cell):
    params = draw(cell, gain=1.5)
    X = np.random.default_rng(3).normal(size=(9, 2))
    for norm, order in (("spectral", 2), ("frobenius", "fro")):
        logs = jacobian_product_norms(cell, params, X, 6, norm=norm)
        for k in (1, 2, 6):
            start = end_after(cell, params, X[: 9 - k], np.zeros(cell.state_size))
            columns = []
            for e in 1e-6 * np.eye(cell.state_size):
                up, down = (end_after(cell, params, X[9 - k :], start + s * e) for s in (1, -1))
                columns.append((up - down) / 2e-6)
            expected = np.linalg.norm(np.transpose(columns), order)
            assert np.exp(logs[k - 1]) == pytest.approx(expected, rel=1e-6)


def test_norms_are_those_of_the_product_of_step_jacobians():
    cell = SimpleCell(6, leak_rate=0.5)
    params = draw(cell)
    X = np.random.default_rng(0).normal(size=(30, 2))
    trace = cell.forward(params, X[:, None])
    J = step_jacobians(cell, params, trace, range(30), [0] * 30)
    product, expected = np.eye(6), []
    for t in range(29, -1, -1):
        product = product @ J[t]
        expected.append(np.log(np.linalg.norm(product, 2)))
    np.testing.assert_allclose(jacobian_product_norms(cell, params, X), expected, atol=1e-10)
    shifted = jacobian_product_norms(cell, params, X[10:], state=trace.states[10, 0])
    np.testing.assert_allclose(shifted, expected[:20], atol=1e-10)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("gain", [1e-30, 1e30])
def test_norms_neither_underflow_nor_overflow(gain):
    cell = SimpleCell(3, "identity")
    params = draw(cell)
    Q = np.linalg.qr(params["W"])[0]
    params["W"], params["bias"] = gain * Q, np.zeros(3)
    X = np.zeros((1000, 2))
    np.testing.assert_allclose(
        jacobian_product_norms(cell, params, X), np.arange(1, 1001) * np.log(gain), rtol=1e-12
    )


def test_a_nilpotent_product_is_zero_after_its_index():
    cell = SimpleCell(3, "identity")
    params = {"W_in": np.ones((3, 1)), "W": np.eye(3, k=-1), "bias": np.zeros(3)}
    logs = jacobian_product_norms(cell, params, np.ones((5, 1)))
    np.testing.assert_array_equal(logs, [0, 0, -np.inf, -np.inf, -np.inf])


def test_norms_of_invalid_input_raise():
    cell = SimpleCell(3)
    params = draw(cell)
    with pytest.raises(ValueError, match="depth=6 must be at most n_steps=5"):
        jacobian_product_norms(cell, params, np.ones((5, 2)), 6)
    with pytest.raises(ValueError, match=r"X has shape \(5,\)"):
        jacobian_product_norms(cell, params, np.ones(5))
    with pytest.raises(ValueError, match="finite"):
        jacobian_product_norms(cell, params, np.full((5, 2), np.nan))
    with pytest.raises(ValueError, match="norm='nuclear' is not known"):
        jacobian_product_norms(cell, params, np.ones((5, 2)), norm="nuclear")


# ---------------------------------------------------------------- the picture


@pytest.mark.slow
def test_picture_shows_decades_and_ends_where_the_product_is_zero():
    plt = pytest.importorskip("matplotlib.pyplot")
    from reservoir import plotting

    depth = np.arange(1, 101)
    logs = np.stack([-0.1 * depth, np.where(depth < 50, 0.2, -np.inf)], axis=1)
    given = plt.figure().subplots()
    ax = plotting.jacobian_norms(logs, labels=["plain", "nilpotent"], ax=given)
    assert ax is given
    curves = {drawn.get_label(): drawn for drawn in ax.get_lines()}
    np.testing.assert_array_equal(curves["plain"].get_xdata(), depth)
    np.testing.assert_allclose(curves["plain"].get_ydata(), -0.1 * depth / np.log(10))
    np.testing.assert_array_equal(np.isnan(curves["nilpotent"].get_ydata()), depth >= 50)
    one = plotting.jacobian_norms(logs[:, 0])
    assert not one.figure.legends
    ax.figure.canvas.draw()
    one.figure.canvas.draw()
    with pytest.raises(ValueError, match="list of 2 names"):
        plotting.jacobian_norms(logs, labels=["one"])
    with pytest.raises(ValueError, match="NaN or inf"):
        plotting.jacobian_norms([np.nan])
    with pytest.raises(ValueError, match=r"shape \(0,\)"):
        plotting.jacobian_norms([])

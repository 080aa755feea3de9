"""Gradients of fully trained networks, against finite differences and torch's autograd."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from helpers.gradient_checks import (
    CAUSAL,
    CELL_LIST,
    N_UNITS,
    PAIRS,
    P,
    Q,
    check,
    draw,
    ragged,
    targets_for,
    with_times,
)
from reservoir.activations import ACTIVATIONS
from reservoir.training.bptt import (
    Network,
    forward,
    loss_and_gradient,
    loss_value,
    make_batch,
    predict,
)
from reservoir.training.cells import GRUCell, LSTMCell, SimpleCell, curvature, slope
from reservoir.training.losses import LOSSES, OUTPUTS, loss_and_slope, resolve_loss
from reservoir.training.rtrl import rtrl_gradient, rtrl_start

pytestmark = pytest.mark.both_engines


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("output, loss", PAIRS)
@pytest.mark.parametrize("cell", CELL_LIST.values(), ids=CELL_LIST)
def test_bptt_is_the_gradient_for_every_cell_output_and_loss(cell, output, loss):
    network = Network(cell, P, Q, output, loss)
    check(network, ragged(network, 0), draw(network, 10))


@pytest.mark.fast_cases(5)
@pytest.mark.parametrize("cell", CELL_LIST.values(), ids=CELL_LIST)
@pytest.mark.parametrize(
    "options", [{"last": True}, {"washout": 3}, {"weights": True}, {"weights": True, "last": True}]
)
def test_bptt_with_few_targets_weights_and_the_input_in_the_readout(cell, options):
    network = Network(cell, P, Q, "tanh", "mse", include_input=True)
    batch = ragged(network, 3, **options)
    state = 0.5 * np.random.default_rng(4).standard_normal((3, cell.state_size))
    check(network, batch, draw(network, 5), state)


@pytest.mark.parametrize("output", OUTPUTS)
def test_other_pairs_raise(output):
    for loss in LOSSES:
        if (output, loss) in PAIRS:
            assert resolve_loss(output, loss) == loss
        else:
            with pytest.raises(ValueError, match=f"loss='{loss}' needs output="):
                resolve_loss(output, loss)


def test_padding_changes_nothing():
    for cell in CELL_LIST.values():
        network = Network(cell, P, Q)
        params = draw(network, 0)
        rng = np.random.default_rng(1)
        X = [with_times(cell, rng.standard_normal((n, P))) for n in (7, 4, 6)]
        Y = [rng.standard_normal((n, Q)) for n in (7, 4, 6)]
        loss, grads, end = loss_and_gradient(network, params, make_batch(X, Y))
        parts = [
            loss_and_gradient(network, params, make_batch([x], [y]))
            for x, y in zip(X, Y, strict=True)
        ]
        shares = np.array([7, 4, 6]) / 17
        assert np.isclose(loss, sum(s * p[0] for s, p in zip(shares, parts, strict=True)))
        for name in grads:
            alone = sum(s * p[1][name] for s, p in zip(shares, parts, strict=True))
            np.testing.assert_allclose(grads[name], alone, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(end, np.vstack([p[2] for p in parts]), rtol=1e-12)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("n_steps", [1, 2, 3, 7, 50])
def test_chunks_carry_the_state_and_split_the_targets(n_steps):
    for cell in CAUSAL.values():
        for options in ({}, {"washout": 2}, {"weights": True}, {"last": True}):
            network = Network(cell, P, Q)
            params = draw(network, 0)
            batch = ragged(network, 2, **options)
            whole, end = loss_value(network, params, batch)
            state, total = None, 0.0
            for chunk in batch.chunks(n_steps):
                value, state = loss_value(network, params, chunk, state)
                total += value * chunk.total_weight
            assert np.isclose(total / batch.total_weight, whole)
            np.testing.assert_allclose(state, end, rtol=1e-12, atol=1e-14)


def test_gradient_at_the_start_and_at_the_inputs():
    """What a stack of cells needs: gradients that enter at the end and leave at the inputs."""
    rng = np.random.default_rng(0)
    for cell in CELL_LIST.values():
        network = Network(cell, P, Q)
        params = draw(network, 1)
        X, start = rng.standard_normal((4, 3, P)), 0.3 * rng.standard_normal((3, cell.state_size))
        X, n_moved = with_times(cell, X), cell.at_even_steps().state_size  # times are data
        lengths = np.array([4, 2, 3])
        weight_H = rng.standard_normal((4, 3, cell.width))
        for b, n in enumerate(lengths):
            weight_H[n:, b] = 0
        weight_end = rng.standard_normal((3, cell.state_size))

        def value(X, start, cell=cell, params=params, H=weight_H, end=weight_end, lengths=lengths):
            trace = cell.forward(params, X, start, lengths)
            return (trace.states[1:] * H).sum() + (trace.end * end).sum()

        trace = cell.forward(params, X, start, lengths)
        _, d_start, d_X = cell.backward(
            params, trace, weight_H.copy(), d_end=weight_end, inputs=True
        )
        at_X = approx_fprime(X.ravel(), lambda x, f=value, s=start: f(x.reshape(4, 3, P), s), 1e-7)
        at_start = approx_fprime(
            start.ravel(), lambda s, f=value, X=X: f(X, s.reshape(3, -1)), 1e-7
        )
        found, expected = cell.channels(d_X), cell.channels(at_X.reshape(X.shape))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-6)
        found, expected = d_start[:, :n_moved], at_start.reshape(3, -1)[:, :n_moved]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-6)
        assert d_X.shape == X.shape
        assert d_start.shape == start.shape


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_slope_and_curvature_from_the_value(name):
    activation = ACTIVATIONS[name]
    z = np.linspace(-3, 3, 41) + 0.01
    np.testing.assert_allclose(
        slope(name, activation.function(z)), activation.derivative(z), rtol=1e-12
    )
    h = 1e-6
    second = (activation.derivative(z + h) - activation.derivative(z - h)) / (2 * h)
    np.testing.assert_allclose(curvature(name, activation.function(z)), second, atol=1e-8)


def test_losses_far_out_stay_finite():
    z = np.array([[800.0, -800.0], [-800.0, 800.0]])
    y = np.array([[0.0, 1.0], [0.0, 1.0]])
    for output, loss in PAIRS:
        value, d = loss_and_slope(z, y, output, loss)
        assert np.isfinite(value), (output, loss)
        assert np.isfinite(d).all(), (output, loss)
    assert loss_and_slope(z, y, "softmax", "cross_entropy")[0] == 800.0


def test_float32_stays_float32():
    for cell in CELL_LIST.values():
        network = Network(cell, P, Q, "logistic", "bce", include_input=True)
        params = {k: v.astype(np.float32) for k, v in draw(network, 0).items()}
        rng = np.random.default_rng(0)
        X, Y = rng.random((9, P), np.float32), rng.random((9, Q), np.float32)
        X = with_times(cell, X)
        batch = make_batch([X], [Y], weights=[np.ones(9)])
        _, grads, end = loss_and_gradient(network, params, batch)
        assert {g.dtype for g in grads.values()} == {np.dtype(np.float32)}
        assert end.dtype == cell.held_in(np.float32)  # float64 where it ends with a time
        assert predict(network, params, batch.inputs)[0].dtype == np.float32


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_equal_to_autograd(torch, kind):
    cell = {"RNN": SimpleCell, "LSTM": LSTMCell, "GRU": GRUCell}[kind](N_UNITS)
    network = Network(cell, P, Q, "softmax", "cross_entropy")
    for seed in range(3):
        params = draw(network, seed)
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((20, 4, P))
        labels = rng.integers(0, Q, (20, 4))
        batch = make_batch([X[:, b] for b in range(4)], [np.eye(Q)[labels[:, b]] for b in range(4)])
        loss, grads, _ = loss_and_gradient(network, params, batch)
        recurrent = getattr(torch.nn, kind)(P, N_UNITS).double()
        linear = torch.nn.Linear(N_UNITS, Q).double()
        other = np.zeros(len(params["bias"]))
        if kind == "GRU":
            other[2 * N_UNITS :] = params["bias_recurrent"]
        values = (params["W_in"], params["W"], params["bias"], other)
        with torch.no_grad():
            for place, array in zip(recurrent.parameters(), values, strict=True):
                place.copy_(torch.tensor(array))
            linear.weight.copy_(torch.tensor(params["coef"]))
            linear.bias.copy_(torch.tensor(params["intercept"]))
        out = linear(recurrent(torch.tensor(X))[0]).reshape(-1, Q)
        theirs = torch.nn.functional.cross_entropy(out, torch.tensor(labels).reshape(-1))
        theirs.backward()
        assert np.isclose(loss, theirs.item(), rtol=1e-12)
        found = [p.grad.numpy() for p in (*recurrent.parameters(), *linear.parameters())]
        ours = [grads["W_in"], grads["W"], grads["bias"], None, grads["coef"], grads["intercept"]]
        for a, b in zip(ours, found, strict=True):
            if a is not None:
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
        if kind == "GRU":
            np.testing.assert_allclose(
                grads["bias_recurrent"], found[3][2 * N_UNITS :], rtol=1e-9, atol=1e-12
            )


def test_scores_are_where_the_targets_are():
    network = Network(SimpleCell(N_UNITS), P, Q)
    params = draw(network, 0)
    batch = ragged(network, 0, last=True)
    outputs, _ = predict(network, params, batch.inputs, lengths=batch.lengths)
    _, _, scores = forward(network, params, batch)
    last = {b: outputs[n - 1, b] for b, n in enumerate(batch.lengths)}
    for row, z in zip(batch.rows, scores, strict=True):
        np.testing.assert_allclose(z, last[row % 3], rtol=1e-12)


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("include_input", [False, True])
@pytest.mark.parametrize(
    "name", [name for name in CELL_LIST if name.startswith(("simple", "leaky"))]
)
def test_rtrl_is_bptt(name, include_input):
    for seed, (output, loss) in enumerate(PAIRS):
        network = Network(CELL_LIST[name], P, Q, output, loss, include_input)
        rng = np.random.default_rng(seed)
        params = draw(network, seed, scale=0.4)
        X, Y = rng.standard_normal((12, P)), targets_for(network, rng, 12)
        value, forwards, memory = rtrl_gradient(network, params, X, Y)
        expected, backwards, end = loss_and_gradient(network, params, make_batch([X], [Y]))
        assert np.isclose(value, expected, rtol=1e-12)
        for key in forwards:
            np.testing.assert_allclose(forwards[key], backwards[key], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(memory.state, end[0], rtol=1e-12)


def test_rtrl_continues_where_it_stopped():
    network = Network(SimpleCell(4, leak_rate=0.5), 1, 1)
    params = draw(network, 0)
    X, Y = np.random.default_rng(0).standard_normal((2, 20, 1))
    whole = rtrl_gradient(network, params, X, Y)[1]
    _, first, memory = rtrl_gradient(network, params, X[:13], Y[:13])
    _, second, _ = rtrl_gradient(network, params, X[13:], Y[13:], memory)
    for key in whole:
        np.testing.assert_allclose(whole[key], (13 * first[key] + 7 * second[key]) / 20)


def test_rtrl_of_gated_cells_raises():
    with pytest.raises(ValueError, match="needs a SimpleCell; got GRUCell"):
        rtrl_start(Network(GRUCell(3), 1, 1))

"""Conversion to torch and back: equal outputs, exact round trips, unsupported cells."""

import doctest
import io
import sys

import numpy as np
import pytest

from reservoir.training import torch_conversion
from reservoir.training.bptt import Network, loss_and_gradient, make_batch, predict
from reservoir.training.cells import (
    BidirectionalCell,
    GRUCell,
    LSTMCell,
    SCRNCell,
    SimpleCell,
    StackedCell,
    TimedLeakyCell,
)
from reservoir.training.initializers import initialize
from reservoir.training.torch_conversion import from_torch, to_torch

pytestmark = pytest.mark.one_engine

CELLS = {
    "tanh": (lambda n: SimpleCell(n), 1),
    "relu": (lambda n: SimpleCell(n, "relu"), 1),
    "lstm": (LSTMCell, 4),
    "gru": (GRUCell, 3),
}
EVERY_CELL = pytest.mark.parametrize("cell", CELLS)


def network_of(cell, seed=0, n_units=7, n_features=3, n_outputs=2, dtype=np.float64, **options):
    make, n_gates = CELLS[cell]
    network = Network(make(n_units), n_features, n_outputs, **options)
    params = initialize(
        network.shapes(), "normal", n_gates=n_gates, scale=0.4, dtype=dtype, random_state=seed
    )
    return network, params


def outputs(network, params, X):
    """Return outputs, batch first."""
    return predict(network, params, np.ascontiguousarray(X.swapaxes(0, 1)))[0].swapaxes(0, 1)


@EVERY_CELL
@pytest.mark.parametrize("output", ["identity", "tanh", "logistic", "softmax"])
@pytest.mark.parametrize("include_input", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_equal_outputs_and_exact_round_trip(torch, cell, output, include_input, dtype):
    loss = {"softmax": "cross_entropy", "logistic": "bce"}.get(output, "mae")
    for seed in range(3):
        options = {"output": output, "loss": loss, "include_input": include_input}
        network, params = network_of(cell, seed, dtype=dtype, **options)
        module = to_torch(network, params)
        X = np.random.default_rng(seed).normal(size=(4, 30, 3)).astype(dtype)
        theirs = module(torch.from_numpy(X)).detach().numpy()
        assert theirs.dtype == dtype
        assert theirs.shape == (4, 30, 2)
        tol = 1e-12 if dtype == np.float64 else 2e-5
        np.testing.assert_allclose(theirs, outputs(network, params, X), rtol=tol, atol=tol)
        same, again = from_torch(module)
        assert same == network
        assert list(again) == list(params)
        for name, array in params.items():
            assert again[name].dtype == dtype
            np.testing.assert_array_equal(again[name], array)


@EVERY_CELL
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
def test_modules_of_torch(torch, cell, bias, batch_first):
    kind = {"lstm": "LSTM", "gru": "GRU"}.get(cell, "RNN")
    options = {"nonlinearity": cell} if kind == "RNN" else {}
    torch.manual_seed(0)
    X = torch.randn(4, 30, 3, dtype=torch.float64)
    for n_read, include_input in ((7, False), (10, True)):
        recurrent = getattr(torch.nn, kind)(
            3, 7, bias=bias, batch_first=batch_first, dtype=torch.float64, **options
        )
        readout = torch.nn.Linear(n_read, 2, bias=bias, dtype=torch.float64)
        network, params = from_torch((recurrent, readout))
        assert network.include_input == include_input
        with torch.no_grad():
            H = recurrent(X if batch_first else X.transpose(0, 1))[0]
            H = H if batch_first else H.transpose(0, 1)
            Y = readout(torch.cat([H, X], dim=-1) if include_input else H).numpy()
        np.testing.assert_allclose(outputs(network, params, X.numpy()), Y, rtol=1e-12, atol=1e-12)
        before = params["W"].copy()
        with torch.no_grad():
            recurrent.weight_hh_l0.zero_()
        np.testing.assert_array_equal(params["W"], before)  # copies


def test_output_functions_of_foreign_modules(torch):
    nn = torch.nn

    class States(nn.Module):
        def forward(self, pair):
            return pair[0]

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.GRU(3, 5, batch_first=True)
            self.head = nn.Sequential(nn.Linear(5, 2), nn.Sigmoid())

        def forward(self, X):
            return self.head(self.rnn(X)[0])

    X = np.random.default_rng(0).normal(size=(2, 9, 3)).astype(np.float32)
    for module in (
        Net(),
        nn.Sequential(nn.LSTM(3, 5, batch_first=True), States(), nn.Linear(5, 2), nn.Softmax(-1)),
        nn.Sequential(nn.RNN(3, 5, batch_first=True), States(), nn.Identity(), nn.Linear(5, 2)),
    ):
        network, params = from_torch(module)
        theirs = module(torch.from_numpy(X)).detach().numpy()
        np.testing.assert_allclose(outputs(network, params, X), theirs, rtol=2e-5, atol=1e-6)
    assert from_torch(Net())[0].loss == "bce"
    assert from_torch(Net(), loss="mse")[0].loss == "mse"
    pair = (nn.RNN(3, 5), nn.Linear(5, 2))
    assert from_torch(pair, output="tanh")[0].output == "tanh"
    assert from_torch(Net(), output="logistic")[0].output == "logistic"
    with pytest.raises(ValueError, match="output='tanh', but the module ends in output 'logistic'"):
        from_torch(Net(), output="tanh")
    with pytest.raises(ValueError, match="output='sigmoid' is not known"):
        from_torch(pair, output="sigmoid")


@EVERY_CELL
def test_same_gradient_as_autograd(torch, cell):
    for seed in range(3):
        network, params = network_of(cell, seed, include_input=True)
        rng = np.random.default_rng(seed)
        X, Y = rng.normal(size=(4, 12, 3)), rng.normal(size=(4, 12, 2))
        module = to_torch(network, params)
        ((module(torch.from_numpy(X)) - torch.from_numpy(Y)) ** 2).mean().backward()
        _, grads, _ = loss_and_gradient(network, params, make_batch(list(X), list(Y)))
        scale = module.readout.bias.grad.numpy() / grads["intercept"]
        np.testing.assert_allclose(scale, scale[0], rtol=1e-9)  # how the loss is averaged
        for name, weight in (
            ("W_in", module.recurrent.weight_ih_l0),
            ("W", module.recurrent.weight_hh_l0),
            ("bias", module.recurrent.bias_ih_l0),
            ("coef", module.readout.weight),
        ):
            np.testing.assert_allclose(
                weight.grad.numpy(), scale[0] * grads[name], rtol=1e-8, atol=1e-12
            )


def test_module_is_a_module(torch):
    network, params = network_of("gru", output="softmax", loss="cross_entropy")
    state = torch.random.get_rng_state()
    module = to_torch(network, params)
    assert torch.equal(torch.random.get_rng_state(), state)
    params["W"][:] = 0.0  # copied
    assert module.recurrent.weight_hh_l0.abs().sum() > 0
    X = torch.randn(2, 5, 3, dtype=torch.float64)
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    again = torch.load(file, weights_only=False)
    assert torch.equal(again(X), module(X))
    assert from_torch(again)[0] == network
    twin = to_torch(*network_of("gru", 5, output="softmax", loss="cross_entropy"))
    twin.load_state_dict(module.state_dict())
    assert torch.equal(twin(X), module(X))
    assert from_torch(module.float())[1]["W"].dtype == np.float32


OTHERS = {
    "leaky": SimpleCell(7, leak_rate=0.3),
    "leaks": SimpleCell(4, "relu", (1.0, 0.5, 0.2, 0.1)),
    "logistic": SimpleCell(5, "logistic"),
    "leaky relu": SimpleCell(5, "leaky_relu", 0.5),
    "softplus": SimpleCell(5, "softplus", 0.5),
    "linear": SimpleCell(5, "identity", 0.5),
    "timed": TimedLeakyCell(6, leak_rate=0.4, place=1),
    "timed, without a leak": TimedLeakyCell(2, leak_rate=(1.0, 0.3), place=2),
    "stack": StackedCell((LSTMCell(4), SimpleCell(5, leak_rate=0.5), GRUCell(3))),
    "shortcuts": StackedCell((GRUCell(4), SimpleCell(5)), True, True),
    "both": BidirectionalCell((GRUCell(4), SimpleCell(3, leak_rate=0.2))),
    "both below": StackedCell((BidirectionalCell((LSTMCell(4), LSTMCell(4))), GRUCell(3))),
}


def composite(name, seed, **options):
    network = Network(OTHERS[name], 3, 2, **options)
    rng = np.random.default_rng(seed)
    params = {key: 0.4 * rng.normal(size=shape) for key, shape in network.shapes().items()}
    X = rng.normal(size=(4, 20, 3))
    place = getattr(network.cell, "place", None)
    if place is not None:
        X[:, :, place] = np.cumsum(rng.uniform(0.1, 3, (4, 20)), axis=1)
    return network, params, X


@pytest.mark.parametrize("include_input", [False, True])
@pytest.mark.parametrize("name", OTHERS)
def test_cells_of_our_own_layers(torch, name, include_input):
    for seed in range(2):
        network, params, X = composite(name, seed, include_input=include_input, output="tanh")
        module = to_torch(network, params)
        theirs = module(torch.from_numpy(X))
        np.testing.assert_allclose(theirs.detach(), outputs(network, params, X), rtol=0, atol=1e-12)
        same, again = from_torch(module)
        assert same == network
        for key, array in params.items():
            np.testing.assert_array_equal(again[key], array)
        # gradients, by the weights after a step down the gradient in torch
        Y = np.random.default_rng(seed).uniform(-1, 1, (4, 20, 2))
        batch = make_batch(list(X), list(Y))
        loss, grads, _ = loss_and_gradient(network, params, batch)
        error = ((theirs - torch.from_numpy(Y)) ** 2).mean()
        factor = loss / error.item()  # how the loss is averaged
        error.backward()
        with torch.no_grad():
            for weight in module.parameters():
                weight -= factor * weight.grad
        for key, moved in from_torch(module)[1].items():
            if not (key.endswith("bias") or key.endswith("bias_recurrent")):  # torch has two
                expected = params[key] - grads[key]
                np.testing.assert_allclose(moved, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("n_layers, both", [(2, False), (1, True), (3, True)])
def test_layers_and_directions_of_torch(torch, kind, n_layers, both):
    torch.manual_seed(0)
    options = {"batch_first": True, "dtype": torch.float64}
    layer = getattr(torch.nn, kind)(3, 5, num_layers=n_layers, bidirectional=both, **options)
    readout = torch.nn.Linear(5 * (1 + both), 2, dtype=torch.float64)
    network, params = from_torch((layer, readout))
    X = torch.randn(4, 15, 3, dtype=torch.float64)
    theirs = readout(layer(X)[0]).detach().numpy()
    np.testing.assert_allclose(outputs(network, params, X.numpy()), theirs, rtol=0, atol=1e-12)
    there = to_torch(network, params)
    np.testing.assert_allclose(there(X).detach().numpy(), theirs, rtol=0, atol=1e-12)


# --- refusals ---


@pytest.mark.usefixtures("torch")
def test_cells_that_torch_lacks():
    for cell, message in (
        (StackedCell((SimpleCell(4), LSTMCell(4, peephole=True))), "peephole=True"),
        (StackedCell((SimpleCell(4), SimpleCell(3)), dropout=0.5), "Use dropout=0 after training"),
        (SCRNCell(4), "SCRNCell: torch needs a single layer"),
        (GRUCell(4, reset_after=False), "reset_after=False: .*after the recurrent product.*=True"),
        (LSTMCell(4, peephole=True), "peephole=True: .*no peepholes.*peephole=False"),
    ):
        network = Network(cell, 2, 1)
        params = {name: np.zeros(shape) for name, shape in network.shapes().items()}
        with pytest.raises(ValueError, match=message):
            to_torch(network, params)


@pytest.mark.usefixtures("torch")
def test_weights_that_do_not_fit():
    network, params = network_of("tanh")
    for changes, message in (
        ({"W": np.zeros((7, 6))}, r"W must have shape \(7, 7\); got \(7, 6\)"),
        ({"coef": params["coef"].astype(np.float32)}, "W_in is float64, and coef is float32"),
        ({"bias": np.full(7, np.nan)}, "bias contains NaN or infinity"),
        ({"peephole": np.zeros((3, 7))}, "got .*peephole"),
    ):
        with pytest.raises(ValueError, match=message):
            to_torch(network, {**params, **changes})


def test_modules_that_cannot_be_read(torch):
    nn = torch.nn
    linear = nn.Linear(5, 2)

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.linear = nn.RNN(3, 5), nn.Linear(5, 2)
            self.scale = nn.Parameter(torch.ones(1))

    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))

    rnn = nn.RNN(3, 5)
    broken = nn.RNN(3, 5)
    with torch.no_grad():
        broken.weight_hh_l0[0, 0] = float("nan")
    with pytest.warns(UserWarning, match="non-zero dropout"):
        dropping = nn.GRU(3, 5, dropout=0.2)
    for module, message in (
        ((nn.GRU(3, 5, bidirectional=True), linear), "has 5 inputs.* 10 inputs, or 13"),
        ((nn.LSTM(3, 6, proj_size=5), linear), "proj_size=5"),
        ((dropping, linear), "dropout=0.2"),
        ((rnn, nn.Dropout(0.5), linear), "Dropout, which acts only in training"),
        (nn.Sequential(rnn, nn.LayerNorm(5), linear), "LayerNorm, which has no counterpart"),
        (nn.Sequential(rnn, nn.Tanh(), linear), "Tanh, which has no counterpart"),
        ((rnn, linear, nn.Tanh(), nn.Sigmoid()), "2 output functions"),
        ((rnn, linear, nn.Softmax(dim=1)), r"Softmax\(dim=1\)"),
        ((rnn, Odd(), linear), "Odd, which has no counterpart"),
        (Scaled(), "Scaled has weights besides the weights of its parts"),
        (rnn, "got 1 and 0"),
        (linear, "got 0 and 1"),
        ((rnn, linear, nn.Linear(2, 2)), "got 1 and 2"),
        ((rnn, nn.Linear(6, 2)), "has 6 inputs.* 5 inputs, or 8"),
        ((nn.RNN(3, 5).double(), linear), "W_in is float64, and coef is float32"),
        ((nn.RNN(3, 5).half(), nn.Linear(5, 2).half()), "float16"),
        ((nn.RNN(3, 5).bfloat16(), nn.Linear(5, 2).bfloat16()), "bfloat16"),
        ((broken, nn.Linear(5, 2)), "W contains NaN"),
        ("lstm.pt", "takes a torch.nn.Module.*got str"),
    ):
        with pytest.raises(ValueError, match=message):
            from_torch(module)


@pytest.mark.usefixtures("torch")
def test_examples_run():
    runner = doctest.DocTestRunner()
    for found in doctest.DocTestFinder().find(torch_conversion):
        for example in found.examples:
            example.options.pop(doctest.SKIP, None)  # skipped elsewhere: torch may be missing there
        runner.run(found)
    assert runner.tries >= 11
    assert runner.failures == 0


def test_without_torch(monkeypatch):
    network, params = network_of("tanh")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match="pip install torch"):
        to_torch(network, params)
    with pytest.raises(ImportError, match="pip install torch"):
        from_torch(object())


def test_activations_of_both_files(torch):
    from reservoir.training import _torch_module

    assert tuple(_torch_module.ACTIVATIONS) == torch_conversion._ACTIVATIONS

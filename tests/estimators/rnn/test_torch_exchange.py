"""Trained networks that go to torch, are trained there, and come back."""

import numpy as np
import pytest

from reservoir import ESNRegressor, RNNClassifier, RNNRegressor, load, save
from reservoir.datasets import narma
from reservoir.training.cells import bidirectional, stacked

pytestmark = pytest.mark.one_engine

X, y = narma(150, random_state=0)
RATE = 0.001


def make(cls=RNNRegressor, **params):
    options = {"n_units": 5, "init": "orthogonal", "max_iter": 2, "random_state": 0}
    return cls(**options | params)


def of_module(torch, module, rows):
    with torch.no_grad():
        return module(torch.from_numpy(rows[None]))[0].numpy()


def descend(torch, module, rows, loss, n_steps=3):
    """Train a module by steps down the gradient, and return the losses."""
    found = []
    weights = [weight for weight in module.parameters() if weight.requires_grad]
    for _ in range(n_steps):
        error = loss(module(torch.from_numpy(rows[None]))[0])
        found.append(error.item())
        grads = torch.autograd.grad(error, weights)
        with torch.no_grad():
            for weight, grad in zip(weights, grads, strict=True):
                weight -= RATE * grad
    return found


CELLS = {
    "rnn": {},
    "leaky": {"cell": "leaky", "leak_rate": 0.4},
    "leaks": {"cell": "leaky", "leak_rate": np.linspace(0.2, 1, 5), "activation": "logistic"},
    "lstm": {"cell": "lstm", "include_input": True},
    "stack": {"cell": stacked("gru", "leaky", input_shortcuts=True), "leak_rate": 0.5},
    "both": {"cell": bidirectional("gru", "rnn"), "initial_state": "zeros"},
}


@pytest.mark.parametrize("name", CELLS)
def test_training_continues_in_torch_and_comes_back(torch, name):
    rnn = make(**CELLS[name]).fit(X, y)
    module = rnn.to_torch()
    options = {"initial_state": "zeros"}
    ours = rnn.predict(X, **options)
    np.testing.assert_allclose(of_module(torch, module, X)[:, 0], ours, rtol=0, atol=1e-12)
    targets = torch.from_numpy(y[:, None])
    losses = descend(torch, module, X, lambda out: ((out - targets) ** 2).mean())
    assert losses[-1] < losses[0]
    again = RNNRegressor.from_torch(module, max_iter=0, **options)
    predicted = again.predict(X, **options)
    np.testing.assert_allclose(predicted, of_module(torch, module, X)[:, 0], rtol=0, atol=1e-12)
    assert again.network_ == rnn.network_
    # training here continues from the weights of torch
    np.testing.assert_array_equal(again.fit(X, y).predict(X, **options), predicted)
    further = RNNRegressor.from_torch(module, max_iter=2, solver="adam", **options).fit(X, y)
    assert further.best_loss_ <= further.loss_curve_[0]


def test_steps_in_torch_are_steps_here(torch):
    """Descent by the same rate, from the same weights, on the same loss."""
    rnn = make(cell="leaky", leak_rate=0.4, max_iter=0).fit(X, y)
    module = rnn.to_torch()
    targets = torch.from_numpy(y[:, None])
    descend(torch, module, X, lambda out: ((out - targets) ** 2).mean())
    loss = rnn.network_.loss
    assert loss == "mse"
    options = {"solver": "sgd", "clip_norm": None, "truncation": None, "washout": 0}
    options |= {"refit_readout": False, "warm_start": True, "max_iter": 1}
    other = RNNRegressor.from_torch(rnn.to_torch(), **options, learning_rate_init=RATE)
    for _ in range(3):
        other.fit(X, y)
    there = RNNRegressor.from_torch(module)
    for name, array in there.params_.items():
        np.testing.assert_allclose(other.params_[name], array, rtol=0, atol=1e-12)


def test_rows_at_irregular_times(torch, tmp_path):
    steps = np.random.default_rng(0).uniform(0.2, 3, len(X))
    dated = np.column_stack([X, np.cumsum(steps)])
    rnn = make(cell="leaky", time_column=-1, time_step=2.0).fit(dated, y)
    module = rnn.to_torch()
    inner = dated.copy()
    inner[:, -1] /= rnn.time_step_
    ours = rnn.predict(dated, initial_state="zeros")
    np.testing.assert_allclose(of_module(torch, module, inner)[:, 0], ours, rtol=0, atol=1e-12)
    again = RNNRegressor.from_torch(module, time_step=2.0)
    assert again.time_step_ == 2.0
    theirs = again.predict(dated, initial_state="zeros")
    np.testing.assert_allclose(theirs, ours, rtol=0, atol=1e-12)
    assert RNNRegressor.from_torch(module).time_step_ == 1.0
    save(again, tmp_path / "rnn.npz")
    np.testing.assert_array_equal(load(tmp_path / "rnn.npz").predict(dated), again.predict(dated))


def test_labels(torch, tmp_path):
    labels = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    names = np.array(["high", "low", "mid"])[np.array([1, 2, 0])[labels]]
    clf = make(RNNClassifier, cell="gru").fit(X, names)
    module = clf.to_torch()
    proba = clf.predict_proba(X, initial_state="zeros")
    np.testing.assert_allclose(of_module(torch, module, X), proba, rtol=0, atol=1e-12)
    columns = torch.from_numpy(np.searchsorted(clf.classes_, names))
    loss = torch.nn.functional.nll_loss
    losses = descend(torch, module, X, lambda out: loss(torch.log(out), columns))
    assert losses[-1] < losses[0]
    again = RNNClassifier.from_torch(module, clf.classes_, max_iter=1)
    expected = of_module(torch, module, X)
    np.testing.assert_allclose(
        again.predict_proba(X, initial_state="zeros"), expected, rtol=0, atol=1e-12
    )
    save(again, tmp_path / "clf.npz")
    loaded = load(tmp_path / "clf.npz")
    np.testing.assert_array_equal(loaded.predict(X), again.predict(X))
    loaded.fit(X, names)
    # scores without a softmax, as torch's cross_entropy takes them
    nn = torch.nn
    pair = nn.GRU(1, 4, batch_first=True).double(), nn.Linear(4, 3).double()
    bare = RNNClassifier.from_torch(pair)
    assert bare.classes_.tolist() == [0, 1, 2]
    scores = pair[1](pair[0](torch.from_numpy(X[None]))[0])[0]
    expected = torch.softmax(scores, dim=-1).detach().numpy()
    np.testing.assert_allclose(bare.predict_proba(X, initial_state="zeros"), expected, atol=1e-12)
    margins = RNNClassifier.from_torch(pair, loss="hinge")
    np.testing.assert_array_equal(margins.predict(X), bare.predict(X))
    whole = RNNClassifier.from_torch(pair, target="last")
    assert whole.predict([X, X[:50]]).shape == (2,)
    for classes in ([0, 1], [2, 1, 0], [0, 1, 1]):
        with pytest.raises(ValueError, match="must be 3 different labels in increasing order"):
            RNNClassifier.from_torch(pair, classes)
    with pytest.raises(ValueError, match=r"ends in output 'tanh'.*needs a softmax"):
        RNNClassifier.from_torch((*pair, nn.Tanh()))


def test_an_echo_state_network_has_a_fixed_reservoir(torch):
    esn = ESNRegressor(20, leak_rate=0.5, n_lags=1, random_state=0).fit(X, y)
    module = esn.to_torch()
    ours = esn.predict(X, initial_state="zeros")
    np.testing.assert_allclose(of_module(torch, module, X)[:, 0], ours, rtol=0, atol=1e-11)
    before = [weight.clone() for weight in module.recurrent.parameters()]
    trained = [name for name, weight in module.named_parameters() if weight.requires_grad]
    assert trained == ["readout.weight", "readout.bias"]
    targets = torch.from_numpy(y[:, None] ** 2)
    losses = descend(torch, module, X, lambda out: ((out - targets) ** 2).mean())
    assert losses[-1] < losses[0]
    assert all(map(torch.equal, module.recurrent.parameters(), before))
    again = RNNRegressor.from_torch(module)
    expected = of_module(torch, module, X)[:, 0]
    np.testing.assert_allclose(again.predict(X, initial_state="zeros"), expected, atol=1e-11)

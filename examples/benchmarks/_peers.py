"""How the peers run given weights: their fastest documented path, and why one is left out.

Each function in STATES takes a reservoir (tanh, one leak rate, no feedback) and returns
``states(X)``; each in MODELS returns a `Model`, which fits a ridge readout on the states alone.
rclib draws its weights itself: it runs `Another` network, of the same law.

Two paths are not taken because they are slower at these sizes: reservoirpy's JAX nodes, which
trace their loop anew in every run, and xesn's LazyESN, the update of its ESN under dask.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from _timing import LeftOut
from threadpoolctl import threadpool_limits

from reservoir.dynamics import Reservoir

Array = np.ndarray
MAX_DENSE = 1000  # a library that stores a sparse W dense is left out beyond
RADIUS = 0.9  # of the networks that a library draws itself, as of those that are given


@dataclass
class Model:
    """Fit, predict and generate; a sentence in the place of what the library cannot do."""

    fit: Callable[[Array, Array], Any]
    predict: Callable[[Array], Array] | str
    generate: Callable[[int], Array] | str  # goes on from the end of the series given to `fit`
    note: str = ""  # about the fit
    loop: str = ""  # about generate


@dataclass(frozen=True)
class Another:
    """A run of another network than the given one; `network` is that network, where it is ours."""

    run: Callable[[Array], Any]
    note: str
    network: Reservoir | None = None

    def __call__(self, X: Array) -> Any:
        return self.run(X)


def _dense(W: Any, name: str) -> Array:
    if sp.issparse(W) and W.shape[0] > MAX_DENSE:
        raise LeftOut(f"{name} stores W dense")
    return W.toarray() if sp.issparse(W) else np.array(W)


def _only_float64(reservoir: Reservoir, name: str) -> None:
    if reservoir.dtype != np.float64:
        raise LeftOut(f"{name} computes in float64 whatever the dtype of the weights")


def load(module: str) -> Any:
    """Import a peer, its own noise about missing extras aside; it brings its own thread pool."""
    try:
        found = __import__(module, fromlist=["_"])
    except ImportError as error:
        raise LeftOut(f"{error}") from error
    threadpool_limits(1)
    return found


def _pyrcn_blocks(reservoir: Reservoir, sparse: bool = True) -> tuple[Any, Any]:
    """PyRCN multiplies from the left: with W.T in CSC its product is that of W in CSR."""
    blocks = load("pyrcn.base.blocks")
    if sparse and sp.issparse(reservoir.W):
        W = sp.csc_array(reservoir.W.T)
    else:
        W = _dense(reservoir.W, "PyRCN").T
    into = blocks.InputToNode(
        hidden_layer_size=reservoir.n_units,
        input_activation="identity",
        predefined_input_weights=np.array(reservoir.W_in.T, order="C"),
        predefined_bias_weights=np.array(reservoir.bias)[:, None],
    )
    between = blocks.NodeToNode(
        hidden_layer_size=reservoir.n_units,
        leakage=reservoir.leak_rate,
        predefined_recurrent_weights=W,
    )
    return into, between


def _torch_on_one_thread() -> Any:
    torch = load("torch")
    torch.set_num_threads(1)
    return torch


# --- states ---------------------------------------------------------------------------------------


def reservoirpy_states(reservoir: Reservoir) -> Callable[[Array], Array]:
    """``Reservoir.run``, from state zero."""
    _only_float64(reservoir, "reservoirpy")
    node = _reservoirpy_node(reservoir)
    node.initialize(np.zeros(reservoir.n_features))

    def states(X: Any) -> Any:
        node.reset()
        return node.run(X)

    return states


def _reservoirpy_node(reservoir: Reservoir) -> Any:
    return load("reservoirpy.nodes").Reservoir(
        W=reservoir.W, Win=reservoir.W_in, bias=reservoir.bias, lr=reservoir.leak_rate
    )


def pyrcn_states(reservoir: Reservoir) -> Callable[[Array], Array]:
    """``InputToNode`` and ``NodeToNode``, the NumPy blocks: a sparse W stays sparse."""
    _only_float64(reservoir, "PyRCN's NumPy path")
    into, between = _pyrcn_blocks(reservoir)
    start = into.fit_transform(np.zeros((2, reservoir.n_features)))
    between.fit(start)
    return lambda X: between.transform(into.transform(X))


def pyrcn_torch_states(reservoir: Reservoir) -> Callable[[Array], Array]:
    """``pyrcn.nn``, dense: one sequence, or as many as X of shape (n_sequences, ...) holds."""
    torch, nn = _torch_on_one_thread(), load("pyrcn.nn")
    dtype = getattr(torch, reservoir.dtype.name)
    into = nn.InputFeatureMap(
        reservoir.n_features, reservoir.n_units, activation="identity", dtype=dtype
    )
    into.set_input_weights(np.array(reservoir.W_in.T), np.array(reservoir.bias))
    between = nn.Reservoir(reservoir.n_units, leakage=reservoir.leak_rate, dtype=dtype)
    between.set_recurrent_weights(_dense(reservoir.W, "PyRCN's torch path").T.copy())

    def states(X: Array) -> Array:
        with torch.no_grad():
            many = torch.as_tensor(X.reshape(-1, *X.shape[-2:]), dtype=dtype)
            rows, _ = between(into(many))
        return rows.numpy().reshape(*X.shape[:-1], reservoir.n_units)

    return states


def xesn_states(reservoir: Reservoir) -> Callable[[Array], Array]:
    """The update of xesn in the loop of its ``train``; it hands out no states."""
    _only_float64(reservoir, "xesn")
    update = load("xesn.esn")._update
    weights = {
        "W": reservoir.W,
        "Win": reservoir.W_in,
        "bias_vector": reservoir.bias,
        "leak_rate": reservoir.leak_rate,
    }

    def states(X: Array) -> Array:
        rows = np.zeros((len(X) + 1, reservoir.n_units))
        for t, u in enumerate(X):
            rows[t + 1] = update(rows[t], u, **weights)
        return rows[1:]

    return states


def echoes_states(reservoir: Reservoir) -> Callable[[Array], Array]:
    """``ReservoirLeakyNeurons.harvest_states``, dense, by numba; it skips the first input."""
    neurons = load("echoes.reservoir").ReservoirLeakyNeurons(
        W_in=np.array(reservoir.W_in),
        W=_dense(reservoir.W, "echoes"),
        W_fb=np.zeros((reservoir.n_units, 1), reservoir.dtype),
        bias=reservoir.bias,
        activation=load("echoes.utils").tanh,
        leak_rate=reservoir.leak_rate,
    )

    def states(X: Array) -> Array:
        padded = np.concatenate([np.zeros_like(X[:1]), X]).astype(reservoir.dtype)
        return neurons.harvest_states(padded, np.zeros((len(padded), 1), reservoir.dtype))[1:]

    return states


def rclib_states(reservoir: Reservoir) -> Another:
    """``ESN.predict`` with one output: it hands out no states, and draws its own weights."""
    _only_float64(reservoir, "rclib")
    model = _rclib_model(reservoir, 1e-6)
    rows = np.random.default_rng(0).uniform(-1, 1, (200, reservoir.n_features))
    model.fit(rows, rows[:, :1])
    return Another(model.predict, "its own W of the same law; with a readout of one output")


def _rclib_model(reservoir: Reservoir, alpha: float) -> Any:
    """Size, density, spectral radius and leak rate are those of the given network."""
    rclib = load("rclib")
    W = reservoir.W
    density = W.nnz / W.shape[0] ** 2 if sp.issparse(W) else 1.0
    model = rclib.ESN("serial")
    model.add_reservoir(
        rclib.reservoirs.RandomSparse(
            reservoir.n_units,
            RADIUS,
            sparsity=density,
            leak_rate=reservoir.leak_rate,
            include_bias=True,
            seed=0,
        )
    )
    model.set_readout(rclib.readouts.Ridge(alpha, include_bias=True))
    return model


def resdag_states(reservoir: Reservoir) -> Callable[[Array], Array]:
    """``ESNLayer``, sparse where its own rule says so; many sequences as PyRCN's torch path."""
    torch, resdag = _torch_on_one_thread(), load("resdag")
    layer = resdag.ESNLayer(**_resdag_weights(reservoir), feedback_size=reservoir.n_features)
    layer.eval()

    def states(X: Array) -> Array:
        with torch.inference_mode():
            layer.reset_state()
            rows = layer(torch.as_tensor(X.reshape(-1, *X.shape[-2:])))
        return rows.numpy().reshape(*X.shape[:-1], reservoir.n_units)

    return states


def _resdag_weights(reservoir: Reservoir) -> dict[str, Any]:
    """Arguments of ResDAG that stand for the weights, the leak rate and the precision."""
    torch, W = load("torch"), reservoir.W

    class Given(load("resdag.init.topology").TopologyInitializer):
        """Recurrent weights as they are, dense or sparse."""

        def initialize(self, weight: Any, spectral_radius: float | None = None) -> Any:
            with torch.no_grad():
                return weight.copy_(torch.tensor(_dense(W, "ResDAG")))

        def build_sparse(self, n_units: int, **_: Any) -> Any:
            parts = W.indptr.astype(np.int64), W.indices.astype(np.int64), np.array(W.data)
            return torch.sparse_csr_tensor(*map(torch.tensor, parts), size=W.shape)

    return {
        "reservoir_size": reservoir.n_units,
        "spectral_radius": None,
        "leak_rate": reservoir.leak_rate,
        "topology": Given(),
        "feedback_initializer": lambda rows, columns: torch.tensor(reservoir.W_in),
        "bias_initializer": lambda rows, columns: torch.tensor(reservoir.bias)[None],
        "sparse": "auto" if sp.issparse(W) else False,
        "dtype": getattr(torch, reservoir.dtype.name),
    }


STATES: dict[str, Callable[[Reservoir], Callable[[Array], Array]]] = {
    "reservoirpy": reservoirpy_states,
    "PyRCN": pyrcn_states,
    "PyRCN, torch": pyrcn_torch_states,
    "xesn": xesn_states,
    "echoes": echoes_states,
    "rclib": rclib_states,
    "ResDAG": resdag_states,
}


# --- models ---------------------------------------------------------------------------------------


def reservoirpy_model(reservoir: Reservoir, alpha: float, washout: int) -> Model:
    """``Reservoir >> Ridge``; the closed loop is a loop over ``step``, as its tutorials have it."""
    nodes = load("reservoirpy.nodes")
    fitted: dict[str, Any] = {}

    def fit(X: Array, y: Array) -> None:
        node = _reservoirpy_node(reservoir)
        model = (node >> nodes.Ridge(ridge=alpha)).fit(X, y, warmup=washout)
        fitted.update(node=node, model=model, first=y[-1])

    def predict(X: Array) -> Array:
        fitted["node"].reset()
        outputs = fitted["model"].run(X)
        fitted["end"] = fitted["node"].state
        return outputs

    def generate(n_steps: int) -> Array:
        model, node = fitted["model"], fitted["node"]
        node.state = fitted["end"]
        outputs = np.empty((n_steps, node.input_dim))
        y = fitted["first"]
        for t in range(n_steps):
            y = model.step(y)
            outputs[t] = y
        return outputs

    return Model(fit, predict, generate, loop="by hand, over step()")


def pyrcn_model(reservoir: Reservoir, alpha: float, washout: int, torch: bool) -> Model:
    """``ESNRegressor``: torch and dense by default; another regressor switches to NumPy."""
    network = load("pyrcn.echo_state_network")
    if torch:
        _torch_on_one_thread()
        regressor = load("pyrcn.linear_model").IncrementalRegression(alpha=alpha)
    else:
        regressor = load("sklearn.linear_model").Ridge(alpha=alpha, solver="cholesky")
    fitted: dict[str, Any] = {}

    def fit(X: Array, y: Array) -> None:
        into, between = _pyrcn_blocks(reservoir, sparse=not torch)
        fitted["esn"] = network.ESNRegressor(
            input_to_node=into,
            node_to_node=between,
            regressor=regressor,
            washout=washout if torch else 0,
            verbose=False,
        ).fit(X, y)
        fitted["first"] = y[-1:]

    def predict(X: Array) -> Array:
        outputs: Any = fitted["esn"].predict(X, return_state=torch)
        if torch:
            outputs, fitted["end"] = outputs
        return outputs.reshape(len(X), -1)

    def generate(n_steps: int) -> Array:
        esn, y, state = fitted["esn"], fitted["first"], fitted["end"]
        outputs = np.empty((n_steps, y.shape[1]))
        for t in range(n_steps):
            y, state = esn.predict(y, initial_state=state, return_state=True)
            outputs[t] = y[0]
        return outputs

    if torch:
        return Model(fit, predict, generate, "W dense", "by hand, over predict()")
    return Model(fit, predict, "its NumPy path takes no initial state")


def xesn_model(reservoir: Reservoir, alpha: float, washout: int) -> Model:
    """``ESN`` with its matrices replaced; no intercept, no prediction along given inputs."""
    xesn, xarray = load("xesn"), load("xarray")
    esn = xesn.ESN(
        n_input=reservoir.n_features,
        n_output=reservoir.n_features,
        n_reservoir=reservoir.n_units,
        leak_rate=reservoir.leak_rate,
        tikhonov_parameter=alpha,
        input_kwargs={},
        adjacency_kwargs={},
        bias_kwargs={"factor": 1.0},
    )
    esn.W, esn.Win, esn.bias_vector = reservoir.W, reservoir.W_in, reservoir.bias
    fitted: dict[str, Any] = {}

    def as_xarray(rows: Array) -> Any:
        return xarray.DataArray(
            rows.T, dims=("x", "time"), coords={"time": np.arange(len(rows), dtype=float)}
        )

    def fit(X: Array, y: Array) -> None:
        fitted["end"] = np.vstack([X[-washout:], y[-1:]])
        # train() pairs the state before a row with that row: a series with itself is one step ahead
        esn.train(as_xarray(np.vstack([X, y[-1:]])), n_spinup=washout)

    def generate(n_steps: int) -> Array:
        room = np.zeros((n_steps, reservoir.n_features))  # for the times of the rows to come
        rows = as_xarray(np.vstack([fitted["end"], room]))
        return esn.predict(rows, n_steps=n_steps, n_spinup=washout).values.T[1:]

    return Model(
        fit,
        "it predicts in closed loop only",
        generate,
        "no intercept",
        f"{washout} steps of spin-up included",
    )


def echoes_model(reservoir: Reservoir, alpha: float, washout: int) -> Model:
    """``ESNRegressor``, and ``ESNGenerator`` for the closed loop, which is another estimator."""
    esn = load("echoes")
    W = _dense(reservoir.W, "echoes")
    W_in = np.array(reservoir.W_in)
    common = {
        "W": W,
        "spectral_radius": float(np.abs(np.linalg.eigvals(W)).max()),
        "bias": np.array(reservoir.bias),
        "leak_rate": reservoir.leak_rate,
        "fit_only_states": True,
        "regression_method": "ridge",
        "ridge_alpha": alpha,
        "n_transient": washout,
    }
    fitted: dict[str, Any] = {}

    def fit(X: Array, y: Array) -> None:
        fitted["esn"] = esn.ESNRegressor(W_in=W_in, **common).fit(X, y)
        fitted["series"] = np.vstack([X, y[-1:]])

    def generate(n_steps: int) -> Array:
        if "generator" not in fitted:
            generator = esn.ESNGenerator(W_in=np.zeros_like(W_in), W_fb=W_in, **common)
            fitted["generator"] = generator.fit(None, fitted["series"])
        return fitted["generator"].set_params(n_steps=n_steps).predict()

    return Model(
        fit,
        lambda X: fitted["esn"].predict(X),
        generate,
        "W dense, its eigenvalues searched for in every fit; no intercept",
        "ESNGenerator, fitted before the clock",
    )


def rclib_model(reservoir: Reservoir, alpha: float, washout: int) -> Model:
    """``ESN`` of its own weights: size, density, spectral radius and leak rate are the same."""
    model = _rclib_model(reservoir, alpha)
    fitted: dict[str, Any] = {}

    def fit(X: Array, y: Array) -> None:
        model.fit(X, y, washout)
        fitted["end"] = np.vstack([X[1 - washout :], y[-1:]])

    def generate(n_steps: int) -> Array:
        model.reset_reservoirs()
        return model.predict_generative(fitted["end"], n_steps)

    return Model(
        fit,
        model.predict,
        generate,
        "its own W of the same law",
        f"{washout} steps of spin-up included",
    )


def resdag_model(reservoir: Reservoir, alpha: float, washout: int) -> Model:
    """``ESN`` with the readout ``cholesky``, its fastest; it learns a series one step ahead."""
    torch, resdag = _torch_on_one_thread(), load("resdag")
    esn = resdag.ESN(
        input_size=reservoir.n_features,
        preprocessing=None,
        input_to_readout=False,
        readout="cholesky",
        alpha=alpha,
        washout=washout,
        **_resdag_weights(reservoir),
    )

    def fit(X: Array, y: Array) -> None:
        esn.fit(torch.as_tensor(np.vstack([X, y[-1:]])))
        esn.eval()

    def predict(X: Array) -> Array:
        with torch.inference_mode():
            esn.reset_state()
            return esn(torch.as_tensor(X)).numpy()

    def generate(n_steps: int) -> Array:
        return esn.forecast(horizon=n_steps).numpy()

    return Model(fit, predict, generate, loop=f"{washout} steps of spin-up included")


MODELS: dict[str, Callable[[Reservoir, float, int], Model]] = {
    "reservoirpy": reservoirpy_model,
    "PyRCN": lambda *args: pyrcn_model(*args, torch=False),
    "PyRCN, torch": lambda *args: pyrcn_model(*args, torch=True),
    "xesn": xesn_model,
    "echoes": echoes_model,
    "rclib": rclib_model,
    "ResDAG": resdag_model,
}

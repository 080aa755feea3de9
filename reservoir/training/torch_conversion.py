"""Conversion to and from torch modules: a single-layer RNN, LSTM or GRU with a linear readout."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir.training.bptt import Network
from reservoir.training.cells import Cell, GRUCell, LSTMCell, SimpleCell
from reservoir.training.losses import resolve_loss
from reservoir.training.params import Params

_OUTPUTS = {"Identity": "identity", "Tanh": "tanh", "Sigmoid": "logistic", "Softmax": "softmax"}


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise ImportError(
            "Conversion to or from torch needs torch, which is not installed: pip install torch"
        ) from error


def to_torch(network: Network, params: Params) -> Any:
    """Build a torch module that returns the network's outputs.

    Parameters
    ----------
    network : Network
        A network whose cell is a `SimpleCell` without a leak (tanh or relu), an `LSTMCell` without
        peepholes, or a `GRUCell`.
    params : dict of arrays
        The weights, which are copied. The module has their dtype.

    Returns
    -------
    torch.nn.Module
        A module that maps inputs (batch, time, n_features) to outputs (batch, time, n_outputs),
        starting from state 0, with the output function applied. Its parts are ``recurrent``
        (torch.nn.RNN, LSTM or GRU), ``readout`` (torch.nn.Linear, which receives the states or,
        with `include_input`, [states, inputs]), and ``output`` (the output function).

    Raises
    ------
    ImportError
        If torch is not installed.
    ValueError
        If torch has no equivalent cell, or if the weights do not fit the network.

    Notes
    -----
    The layers of torch have two biases, of which only the sum matters. ``bias_ih_l0`` is set to the
    bias, and ``bias_hh_l0`` to 0, except for the candidate of a GRU, where it is set to
    ``bias_recurrent``.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> from reservoir.training.torch_conversion import to_torch
    >>> from reservoir.training.bptt import Network
    >>> from reservoir.training.cells import LSTMCell
    >>> from reservoir.training.initializers import initialize
    >>> network = Network(LSTMCell(16), n_features=3, n_outputs=1)
    >>> params = initialize(network.shapes(), n_gates=4, random_state=0)
    >>> module = to_torch(network, params)  # doctest: +SKIP
    >>> module(torch.zeros(2, 50, 3).double()).shape  # doctest: +SKIP
    torch.Size([2, 50, 1])
    """
    layer = network.cell.torch_layer()
    _check_weights(network, params)
    torch = _torch()
    from reservoir.training._torch_module import RecurrentModule

    nn = torch.nn
    dtype = torch.from_numpy(params["coef"]).dtype
    n_units = network.cell.n_units
    with torch.random.fork_rng(devices=[]):  # torch draws weights, which are overwritten below
        recurrent = getattr(nn, layer.name)(
            network.n_features, n_units, batch_first=True, dtype=dtype, **layer.options
        )
        readout = nn.Linear(params["coef"].shape[1], network.n_outputs, dtype=dtype)
    pairs = [(getattr(recurrent, name), array) for name, array in layer.arrays(params).items()]
    pairs += [(readout.weight, params["coef"]), (readout.bias, params["intercept"])]
    with torch.no_grad():
        for weight, array in pairs:
            weight.copy_(torch.from_numpy(np.array(array)))
    name = next(key for key, value in _OUTPUTS.items() if value == network.output)
    output = nn.Softmax(dim=-1) if name == "Softmax" else getattr(nn, name)()
    return RecurrentModule(recurrent, readout, output, network.include_input, network.loss)


def from_torch(
    module: Any, *, output: str | None = None, loss: str = "auto"
) -> tuple[Network, Params]:
    """Convert a torch module to a network and its weights.

    Parameters
    ----------
    module : torch.nn.Module or pair of them
        One of: a module returned by `to_torch`; a pair (recurrent, readout); or a module that
        contains, at any depth, one torch.nn.RNN, LSTM or GRU with one layer and one direction, one
        torch.nn.Linear that is registered after it, and optionally one Tanh, Sigmoid or
        Softmax(dim=-1) after that, which is the output function. Custom modules without weights are
        assumed to pass the states on unchanged; `forward` is not inspected. The readout uses the
        states or, if the number of its inputs is larger by the number of features,
        [states, inputs].
    output : {"identity", "tanh", "logistic", "softmax"}, optional
        The output function, if the module has none.
    loss : str, default="auto"
        The loss for further training. "auto" is the loss stored by `to_torch`, or the default loss
        for the output if there is none.

    Returns
    -------
    network : Network
    params : dict of arrays
        Copies of the weights, with the module's dtype (float64 or float32).

    Raises
    ------
    ImportError
        If torch is not installed.
    ValueError
        If the module has parts that cannot be converted: several layers, two directions,
        projections, dropout, or more than one Linear.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> from reservoir.training.torch_conversion import from_torch
    >>> pair = torch.nn.LSTM(3, 16), torch.nn.Linear(19, 2)  # doctest: +SKIP
    >>> network, params = from_torch(pair, output="softmax")  # doctest: +SKIP
    >>> network.cell, network.include_input, network.loss  # doctest: +SKIP
    (LSTMCell(n_units=16, peephole=False), True, 'cross_entropy')
    """
    torch = _torch()
    recurrent, readout, found = _parts(torch, module)
    _check_recurrent(recurrent)
    if output is not None and found not in (None, output):
        raise ValueError(
            f"output={output!r}, but the module ends in output {found!r}. Omit output."
        )
    name = output or found or "identity"
    if loss == "auto":
        loss = getattr(module, "loss", "auto") if _is_ours(module) else "auto"
    n_features, n_units = recurrent.input_size, recurrent.hidden_size
    widths = {n_units: False, n_units + n_features: True}
    if readout.in_features not in widths:
        raise ValueError(
            f"The Linear has {readout.in_features} inputs, but there are {n_units} states"
            f" and {n_features} features. It must have {n_units} inputs, or {n_units + n_features} "
            "for [states, inputs]."
        )
    network = Network(
        _cell(torch, recurrent),
        n_features,
        readout.out_features,
        name,
        resolve_loss(name, loss),
        widths[readout.in_features],
    )
    params = _weights(recurrent, readout, network.cell)
    _check_weights(network, params)
    return network, {name: params[name] for name in network.shapes()}


def _check_weights(network: Network, params: Params) -> None:
    shapes = network.shapes()
    if set(shapes) != set(params):
        raise ValueError(f"The network has weights {sorted(shapes)}; got {sorted(params)}.")
    for name, shape in shapes.items():
        array = params[name]
        if array.shape != shape:
            raise ValueError(f"{name} must have shape {shape}; got {array.shape}.")
        if array.dtype not in (np.float64, np.float32) or array.dtype != params["coef"].dtype:
            raise ValueError(
                f"{name} is {array.dtype}, and coef is {params['coef'].dtype}. All weights must be "
                "float64, or all float32. Convert them first (double of the module)."
            )
        if not np.isfinite(array).all():
            raise ValueError(
                f"{name} contains NaN or infinity. Train again at a lower learning rate."
            )


# --- reading a module ---


def _is_ours(module: Any) -> bool:
    return f"{type(module)}" == "<class 'reservoir.training._torch_module.RecurrentModule'>"


def _leaves(torch: Any, module: Any) -> list[Any]:
    tops = list(module) if isinstance(module, (tuple, list)) else [module]
    found: list[Any] = []
    for top in tops:
        if not isinstance(top, torch.nn.Module):
            raise ValueError(
                "from_torch takes a torch.nn.Module or a pair (recurrent, readout); got "
                f"{type(top).__name__}."
            )
        for part in top.modules():
            if not any(True for _ in part.children()):
                found.append(part)
            elif any(True for _ in part.parameters(recurse=False)):
                raise ValueError(
                    f"{type(part).__name__} has weights besides the weights of its parts, which"
                    " cannot be converted. Pass the pair (recurrent, readout) instead."
                )
    return found


def _parts(torch: Any, module: Any) -> tuple[Any, Any, str | None]:
    """Return the recurrent layer, the readout, and the output function's name, if there is one."""
    nn = torch.nn
    recurrent, readouts, outputs = [], [], []
    for part in _leaves(torch, module):
        kind = type(part).__name__
        of_torch = type(part).__module__.startswith("torch.")
        if isinstance(part, (nn.RNN, nn.LSTM, nn.GRU)):
            recurrent.append(part)
        elif type(part) is nn.Linear:
            readouts.append(part)
        elif of_torch and kind in _OUTPUTS and (readouts or kind == "Identity"):
            outputs.append(_output_name(part))
        elif of_torch or any(True for _ in part.parameters()):
            why = "acts only in training" if "Dropout" in kind else "has no counterpart here"
            raise ValueError(
                f"The module contains {kind}, which {why}. If it can be omitted, pass the pair "
                "(recurrent, readout) instead."
            )
    if len(recurrent) != 1 or len(readouts) != 1:
        raise ValueError(
            "from_torch needs one torch.nn.RNN, LSTM or GRU and one torch.nn.Linear; got "
            f"{len(recurrent)} and {len(readouts)}. Pass the pair (recurrent, readout)."
        )
    named = [name for name in outputs if name != "identity"]
    if len(named) > 1:
        raise ValueError(
            f"The module contains {len(named)} output functions, {named}. Only one is supported."
        )
    return recurrent[0], readouts[0], named[0] if named else None


def _output_name(part: Any) -> str:
    kind = type(part).__name__
    if kind == "Softmax" and part.dim not in (-1, 2):
        raise ValueError(f"Softmax(dim={part.dim}) is not applied over the outputs. Use dim=-1.")
    return _OUTPUTS[kind]


def _check_recurrent(recurrent: Any) -> None:
    kind = type(recurrent).__name__
    unsupported = (
        (recurrent.num_layers > 1, f"num_layers={recurrent.num_layers}", "only one layer"),
        (recurrent.bidirectional, "bidirectional=True", "only one direction"),
        (recurrent.proj_size, f"proj_size={recurrent.proj_size}", "only layers without projection"),
        (recurrent.dropout > 0, f"dropout={recurrent.dropout}", "only layers without dropout"),
    )
    for present, what, supported in unsupported:
        if present:
            raise ValueError(
                f"{kind} has {what}; {supported} can be converted. Train a {kind} without it."
            )


def _cell(torch: Any, recurrent: Any) -> Cell:
    if isinstance(recurrent, torch.nn.LSTM):
        return LSTMCell(recurrent.hidden_size)
    if isinstance(recurrent, torch.nn.GRU):
        return GRUCell(recurrent.hidden_size)
    return SimpleCell(recurrent.hidden_size, recurrent.nonlinearity)


def _weights(recurrent: Any, readout: Any, cell: Cell) -> Params:
    def read(weight: Any) -> Array:
        dtype = str(weight.dtype).removeprefix("torch.")
        if dtype not in ("float64", "float32"):
            raise ValueError(f"The module is {dtype}. Convert it to float or double first.")
        return np.array(weight.detach().cpu().numpy())

    arrays = {name: read(getattr(recurrent, name)) for name in ("weight_ih_l0", "weight_hh_l0")}
    W = arrays["weight_hh_l0"]
    for name in ("bias_ih_l0", "bias_hh_l0"):
        given = recurrent.bias
        arrays[name] = read(getattr(recurrent, name)) if given else np.zeros(len(W), W.dtype)
    params = cell.torch_layer().params(arrays)
    params["coef"] = read(readout.weight)
    params["intercept"] = (
        np.zeros(readout.out_features, W.dtype) if readout.bias is None else read(readout.bias)
    )
    return params

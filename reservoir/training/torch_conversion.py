"""Conversion to and from torch modules: recurrent layers with a linear readout."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir.training.bptt import Network
from reservoir.training.cells import (
    BidirectionalCell,
    Cell,
    GRUCell,
    LSTMCell,
    SimpleCell,
    StackedCell,
    TimedLeakyCell,
)
from reservoir.training.losses import resolve_loss
from reservoir.training.params import Params

_ACTIVATIONS = ("tanh", "logistic", "relu", "leaky_relu", "softplus", "identity")
_COMPOSITES = (StackedCell, BidirectionalCell)  # classes derived from them may compute otherwise
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
        A network whose cell is a `SimpleCell`, a `TimedLeakyCell`, an `LSTMCell` without peepholes,
        a `GRUCell` with ``reset_after=True``, or a `StackedCell` without dropout or a
        `BidirectionalCell` of such cells.
    params : dict of arrays
        The weights, which are copied. The module has their dtype.

    Returns
    -------
    torch.nn.Module
        A module that maps inputs (batch, time, n_features) to outputs (batch, time, n_outputs),
        starting from state 0, with the output function applied. Its parts are ``recurrent``
        (torch.nn.RNN, LSTM or GRU; a layer of this package for leaks, other activations, stacks
        and two directions), ``readout`` (torch.nn.Linear, which receives the states or,
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
    _check_cell(network.cell)
    _check_weights(network, params)
    torch = _torch()
    from reservoir.training._torch_module import RecurrentModule

    nn = torch.nn
    dtype = torch.from_numpy(params["coef"]).dtype
    with torch.random.fork_rng(devices=[]):  # torch draws weights, which are overwritten below
        recurrent = _layer(torch, network.cell, network.n_features, params)
        readout = nn.Linear(params["coef"].shape[1], network.n_outputs, dtype=dtype)
    _copy(torch, readout, {"weight": params["coef"], "bias": params["intercept"]})
    name = next(key for key, value in _OUTPUTS.items() if value == network.output)
    output = nn.Softmax(dim=-1) if name == "Softmax" else getattr(nn, name)()
    return RecurrentModule(recurrent, readout, output, network.include_input, network.loss)


def _check_cell(cell: Cell) -> None:
    """Check that torch can run a cell."""
    if isinstance(cell, (StackedCell, BidirectionalCell)) and type(cell) in _COMPOSITES:
        if cell.drops_out:
            raise ValueError(
                f"to_torch cannot convert {cell}: dropout acts only in training. Use dropout=0 "
                "after training, or export the weights by name."
            )
        for part in cell.cells:
            _check_cell(part)
    elif not _is_simple(cell):
        cell.torch_layer()
    elif cell.activation not in _ACTIVATIONS:  # type: ignore[attr-defined]
        name = cell.activation  # type: ignore[attr-defined]
        raise ValueError(
            f"to_torch cannot convert activation={name!r}; it converts "
            f"{', '.join(map(repr, _ACTIVATIONS))}. Use one of these, or export weights by name."
        )


def _is_simple(cell: Cell) -> bool:
    """Whether a cell is computed by `LeakyLayer`: it has leaks, or not an activation of torch."""
    if type(cell) is TimedLeakyCell:
        return True
    if type(cell) is not SimpleCell:
        return False
    return cell.leaks() is not None or cell.activation not in ("tanh", "relu")


def _layer(torch: Any, cell: Cell, n_features: int, params: Params) -> Any:
    """Return the torch module that computes the states of a cell."""
    from reservoir.training import _torch_module as ours

    if isinstance(cell, (StackedCell, BidirectionalCell)) and type(cell) in _COMPOSITES:
        parts, read = [], n_features
        for k, part in enumerate(cell.cells):
            own = {
                name.partition(".")[2]: array
                for name, array in params.items()
                if name.partition(".")[0] == str(k)
            }
            parts.append(_layer(torch, part, read, own))
            if isinstance(cell, StackedCell):
                read = part.width + n_features * cell.input_shortcuts
        if isinstance(cell, BidirectionalCell):
            return ours.BothDirections(*parts)
        return ours.Stack(parts, cell.input_shortcuts, cell.readout_shortcuts)
    if _is_simple(cell):
        dtype = params["W"].dtype
        simple: SimpleCell = cell.at_even_steps()  # type: ignore[assignment]
        leak = np.ones(cell.n_units) if simple.leaks() is None else simple.leaks()
        rates = torch.from_numpy(np.array(leak, dtype))
        place = getattr(cell, "place", None)
        layer = ours.LeakyLayer(
            cell.n_channels(n_features), cell.n_units, rates, simple.activation, place
        )
        names = {"weight_ih_l0": "W_in", "weight_hh_l0": "W", "bias_ih_l0": "bias"}
        _copy(torch, layer, {name: params[own] for name, own in names.items()})
        return layer
    found = cell.torch_layer()
    dtype = torch.from_numpy(params["W"]).dtype
    layer = getattr(torch.nn, found.name)(
        n_features, cell.n_units, batch_first=True, dtype=dtype, **found.options
    )
    _copy(torch, layer, found.arrays(params))
    return layer


def _copy(torch: Any, layer: Any, arrays: Params) -> None:
    """Copy arrays into the parameters of a torch module, by their names."""
    with torch.no_grad():
        for name, array in arrays.items():
            getattr(layer, name).copy_(torch.from_numpy(np.array(array)))


def from_torch(
    module: Any, *, output: str | None = None, loss: str = "auto"
) -> tuple[Network, Params]:
    """Convert a torch module to a network and its weights.

    Parameters
    ----------
    module : torch.nn.Module or pair of them
        One of: a module returned by `to_torch`; a pair (recurrent, readout); or a module that
        contains, at any depth, one torch.nn.RNN, LSTM or GRU (several layers and two directions
        become a `StackedCell` and a `BidirectionalCell`), one torch.nn.Linear that is registered
        after it, and optionally one Tanh, Sigmoid or Softmax(dim=-1) after that, which is the
        output function. Custom modules without weights are assumed to pass the states on unchanged;
        `forward` is not inspected. The readout uses the states or, if the number of its inputs is
        larger by the number of features, [states, inputs].
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
        If the module has parts that cannot be converted: projections, dropout, or more than one
        Linear.

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
    if output is not None and found not in (None, output):
        raise ValueError(
            f"output={output!r}, but the module ends in output {found!r}. Omit output."
        )
    name = output or found or "identity"
    if loss == "auto":
        loss = getattr(module, "loss", "auto") if _is_ours(module) else "auto"
    cell, n_features, params = _read(torch, recurrent)
    n_states, n_channels = cell.width, cell.n_channels(n_features)
    widths = {n_states: False, n_states + n_channels: True}
    if readout.in_features not in widths:
        raise ValueError(
            f"The Linear has {readout.in_features} inputs, but there are {n_states} states"
            f" and {n_channels} features. It must have {n_states} inputs, or "
            f"{n_states + n_channels} for [states, inputs]."
        )
    network = Network(
        cell,
        n_features,
        readout.out_features,
        name,
        resolve_loss(name, loss),
        widths[readout.in_features],
    )
    params["coef"] = coef = _array(readout.weight)
    given = readout.bias
    params["intercept"] = np.zeros(len(coef), coef.dtype) if given is None else _array(given)
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


def _output_of(module: Any) -> str | None:
    """Return the name of the output function of a module of ours; None for the identity."""
    name = _output_name(module.output)
    return None if name == "identity" else name


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
    if _is_ours(module):
        return module.recurrent, module.readout, _output_of(module)
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
        (recurrent.proj_size, f"proj_size={recurrent.proj_size}", "only layers without projection"),
        (recurrent.dropout > 0, f"dropout={recurrent.dropout}", "only layers without dropout"),
    )
    for present, what, supported in unsupported:
        if present:
            raise ValueError(
                f"{kind} has {what}; {supported} can be converted. Train a {kind} without it."
            )


def _read(torch: Any, layer: Any) -> tuple[Cell, int, Params]:
    """Return the cell that a recurrent layer computes, its number of inputs, and its weights."""
    from reservoir.training import _torch_module as ours

    if isinstance(layer, (ours.Stack, ours.BothDirections)):
        both = isinstance(layer, ours.BothDirections)
        read = [
            _read(torch, part) for part in ((layer.ahead, layer.back) if both else layer.layers)
        ]
        cells, params = tuple(cell for cell, *_ in read), _numbered([own for *_, own in read])
        if both:
            return BidirectionalCell(cells), read[0][1], params
        shortcuts = layer.input_shortcuts, layer.readout_shortcuts
        return StackedCell(cells, *shortcuts), read[0][1], params
    if isinstance(layer, ours.LeakyLayer):
        W_in, leak = _array(layer.weight_ih_l0), tuple(_array(layer.leak).tolist())
        rate = leak[0] if len(set(leak)) == 1 else leak
        params = {"W_in": W_in, "W": _array(layer.weight_hh_l0), "bias": _array(layer.bias_ih_l0)}
        if layer.place is None:
            return SimpleCell(len(W_in), layer.activation, rate), W_in.shape[1], params
        timed = TimedLeakyCell(len(W_in), layer.activation, rate, layer.place)
        return timed, W_in.shape[1] + 1, params
    _check_recurrent(layer)
    return _cells(torch, layer)


def _cells(torch: Any, layer: Any) -> tuple[Cell, int, Params]:
    """Return the cell of a torch.nn.RNN, LSTM or GRU of any number of layers and directions."""
    cell = _cell(torch, layer)
    cells: list[Cell] = []
    weights: list[Params] = []
    for k in range(layer.num_layers):
        ways = [
            _weights(layer, cell, f"_l{k}{way}")
            for way in ("", "_reverse")[: 1 + layer.bidirectional]
        ]
        cells.append(BidirectionalCell((cell, cell)) if layer.bidirectional else cell)
        weights.append(_numbered(ways) if layer.bidirectional else ways[0])
    if len(cells) == 1:
        return cells[0], layer.input_size, weights[0]
    return StackedCell(tuple(cells)), layer.input_size, _numbered(weights)


def _numbered(parts: list[Params]) -> Params:
    """Return the weights of parts by their names in a composite cell."""
    return {f"{k}.{name}": array for k, own in enumerate(parts) for name, array in own.items()}


def _cell(torch: Any, recurrent: Any) -> Cell:
    if isinstance(recurrent, torch.nn.LSTM):
        return LSTMCell(recurrent.hidden_size)
    if isinstance(recurrent, torch.nn.GRU):
        return GRUCell(recurrent.hidden_size)
    return SimpleCell(recurrent.hidden_size, recurrent.nonlinearity)


def _weights(layer: Any, cell: Cell, end: str) -> Params:
    """Return the weights of one layer and direction, whose names in torch have an ending."""
    arrays = {f"weight_{to}_l0": _array(getattr(layer, f"weight_{to}{end}")) for to in ("ih", "hh")}
    W = arrays["weight_hh_l0"]
    for to in ("ih", "hh"):
        given = getattr(layer, f"bias_{to}{end}") if layer.bias else None
        arrays[f"bias_{to}_l0"] = np.zeros(len(W), W.dtype) if given is None else _array(given)
    return cell.torch_layer().params(arrays)


def _array(weight: Any) -> Array:
    """Return a copy of a weight as an array."""
    dtype = str(weight.dtype).removeprefix("torch.")
    if dtype not in ("float64", "float32"):
        raise ValueError(f"The module is {dtype}. Convert it to float or double first.")
    return np.array(weight.detach().cpu().numpy())

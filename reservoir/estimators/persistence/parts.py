"""Conversion of objects to JSON that refers to arrays in the same file, and back."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator

from reservoir._saving import SAVED
from reservoir._typing import Array
from reservoir._validation import fixed_parameters
from reservoir._validation.arrays import check_csr
from reservoir.activations import ACTIVATIONS, Activation
from reservoir.estimators.esn.esn_regressor import BEFORE_INPUT_ALPHA, ESNRegressor
from reservoir.estimators.esn.transformer import ReservoirTransformer
from reservoir.estimators.persistence.archive import Archive
from reservoir.estimators.persistence.fields import check_fields
from reservoir.estimators.persistence.stacks import ORDERS, Stacks
from reservoir.estimators.rnn.network_model import NetworkModel
from reservoir.estimators.series import ESNForecaster
from reservoir.estimators.session import Session
from reservoir.training.optimizers import OPTIMIZERS, Optimizer, is_built_in

_EMPTY = 2**24  # allowed size of a sparse array, with zeros, that exceeds the size of the file


class Written(NamedTuple):
    """Arrays to be written, by name, and parts and weights already encoded, by identity.

    The objects are kept with their numbers, since the identity of a deleted object may be reused.
    """

    arrays: dict[str, Array]
    parts: dict[int, tuple[int, Any]]
    weights: dict[int, tuple[int, Any]]


class Read(NamedTuple):
    """A file to read, the parts and weights decoded so far, and the stacks of arrays."""

    archive: Archive
    parts: list[Any]
    weights: list[Any]
    stacks: Stacks | None = None


def is_saved(value: Any) -> bool:
    """Whether an object's class may be saved."""
    return SAVED.get(type(value).__name__) is type(value)


def _halves(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return parameters and fitted attributes of an estimator; for a session, {} and its state."""
    if isinstance(model, Session):
        return {}, model.__getstate__()
    params = model.get_params(deep=False)
    state = model.__getstate__()  # as in pickles: with attributes that are solved for when read
    return params, {key: value for key, value in state.items() if key not in params}


def _class_named(name: Any) -> Any:
    if not isinstance(name, str) or name not in SAVED:
        raise ValueError(f"class {name!r} is unknown; if it is your own, import its module first")
    return SAVED[name]


def _make_estimator(parts: list[Any]) -> Any:
    """Return the estimator or session with this class name, parameters and fitted attributes."""
    name, params, fitted = parts
    cls = _class_named(name)
    if not issubclass(cls, (BaseEstimator, Session)):
        raise ValueError(f"{name} is not an estimator")
    if issubclass(cls, ReservoirTransformer):
        params = {"initial_state": "zeros", **params}  # the default of earlier versions
        progress = fitted.get("_progress")
        if progress is not None and progress.continues and not progress.n_steps:
            progress.n_steps = fitted["_n_trained"]  # rows that earlier versions did not count
    if issubclass(cls, ESNRegressor):
        params = BEFORE_INPUT_ALPHA | params
    check_fields(cls, {**params, **fitted})
    if issubclass(cls, Session):
        model = cls.__new__(cls)
    else:
        model = cls(**params)
    model.__dict__.update(fitted)
    _fix_parameters(model, fitted)
    return model


def _fix_parameters(model: Any, fitted: dict[str, Any]) -> None:
    """Fix the parameters of a model of an earlier version, whose file does not say them."""
    reader, network = fitted.get("_reader"), fitted.get("_model")
    if reader is not None and reader.fixed is None:
        reader.fixed = fixed_parameters(model)
    if isinstance(network, NetworkModel) and network.online and network.online_fixed is None:
        network.online_fixed = fixed_parameters(model, "online")
    if isinstance(model, ESNForecaster) and fitted:
        fixed = fitted.get("_fixed")
        model._fixed = fixed_parameters(model) if fixed is None else fixed


def encode_estimator(model: Any, written: Written) -> list[Any]:
    """Return JSON for an estimator or a session: its class, parameters and fitted attributes."""
    encoded = [
        {key: encode(value, key, written) for key, value in half.items()} for half in _halves(model)
    ]
    check_fields(type(model), _fields_of(model))  # `load` would reject the file
    return [type(model).__name__, *encoded]


def decode_estimator(name: str, halves: list[dict[str, Any]], read: Read) -> Any:
    """Return the estimator or session that JSON represents."""
    decoded = [{key: decode(value, read) for key, value in half.items()} for half in halves]
    return _make_estimator([name, *decoded])


def encode(value: Any, name: str, written: Written) -> Any:
    """Return JSON for a value; arrays are stored in `written.arrays`, under a key."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if type(value) in (np.ndarray, np.memmap) and value.dtype.kind not in "OV":
        key = f"{len(written.arrays)}:{name}"
        written.arrays[key] = value
        return {"array": key}
    # an object with several references is written once
    if id(value) in written.parts:
        return {"same": written.parts[id(value)][0]}
    if id(value) in written.weights:
        return {"same_weights": written.weights[id(value)][0]}
    for kind, (matches, parts, _) in _KINDS.items():
        if matches(value):
            content = parts(value)
            names = [name] * len(content)
            if kind == "part":  # content: its class, then names and values of its fields
                names[2::2] = [f"{name}.{field}" for field in content[1::2]]
            found = {kind: [encode(*each, written) for each in zip(content, names, strict=True)]}
            if kind in ("part", "estimator"):
                check_fields(type(value), _fields_of(value))  # `load` would reject the file
            if kind == "part":
                written.parts[id(value)] = len(written.parts), value
            elif _are_weights(value):
                written.weights[id(value)] = len(written.weights), value
            return found
    masked = " A masked array would lose its mask." if np.ma.isMaskedArray(value) else ""
    raise TypeError(
        f"{name}={value!r} cannot be written as arrays and text.{masked} Use joblib.dump or "
        "skops.io.dump."
    )


def decode(value: Any, read: Read) -> Any:
    """Return the value that JSON represents."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    ((kind, content),) = value.items()
    if kind == "array":
        array = read.archive.read(content)
        return array[()] if array.ndim == 0 else array
    if kind in ORDERS and read.stacks is not None:
        array = read.stacks.take(kind, content)
        return array[()] if array.ndim == 0 else array
    if kind in ("same", "same_weights"):
        if type(content) is not int or content < 0:
            raise ValueError(f"{content!r} is not the number of a part")
        return (read.parts if kind == "same" else read.weights)[content]
    if type(content) is not list:
        raise ValueError(f"{kind} contains {type(content).__name__}")
    made = _KINDS[kind][2]([decode(part, read) for part in content])
    if kind == "csr" and _is_empty(made, read.archive.size):
        raise ValueError(f"a sparse array has shape {made.shape} and {made.nnz} entries")
    if kind == "part":
        read.parts.append(made)
    elif _are_weights(made):
        read.weights.append(made)
    return made


def _are_weights(value: Any) -> bool:
    """Whether a value is a dict of arrays, which a model and its estimator may share."""
    return (
        type(value) is dict and bool(value) and all(type(v) is np.ndarray for v in value.values())
    )


def check_names(value: Any, archive: Archive) -> None:
    """Check that JSON refers to each array of a file exactly once."""
    named = Counter(_array_names(value))
    for name, times in named.items():
        if name not in archive.names:
            raise ValueError(f"it refers to the array {name!r}, which it does not contain")
        if times > 1:
            raise ValueError(f"it refers to the array {name!r} {times} times")
    for name in archive.names - named.keys():
        raise ValueError(f"it contains the array {name!r}, which is not used")


def _array_names(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _array_names(each)
    elif isinstance(value, dict):
        if value.keys() == {"array"} and isinstance(value["array"], str):
            yield value["array"]
        else:
            yield from _array_names(list(value.values()))


def _is_empty(matrix: Any, size: int) -> bool:
    """Whether a sparse array would need far more memory than the size of its file."""
    n_rows, n_columns = matrix.shape
    return n_columns > max(size, n_rows) and n_rows * n_columns > _EMPTY


def _is_generator(value: Any) -> bool:
    return isinstance(value, np.random.Generator) and isinstance(
        value.bit_generator, np.random.PCG64
    )


def _generator_parts(generator: np.random.Generator) -> list[Any]:
    seed: Any = generator.bit_generator.seed_seq
    where = [seed.entropy, list(seed.spawn_key), seed.n_children_spawned]
    return [*where, json.dumps(generator.bit_generator.state)]


def _make_generator(parts: list[Any]) -> np.random.Generator:
    entropy, spawn_key, n_children, text = parts
    seed = np.random.SeedSequence(
        entropy, spawn_key=tuple(spawn_key), n_children_spawned=n_children
    )
    generator = np.random.Generator(np.random.PCG64(seed))
    state = json.loads(text)
    if not state["state"]["inc"] % 2:
        raise ValueError("the increment of a PCG64 generator is odd")
    generator.bit_generator.state = state
    return generator


def _object_array(items: list[Any]) -> Array:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def _make_csr(parts: list[Any]) -> Any:
    data, indices, indptr, shape = parts
    if data.ndim != 1 or data.dtype.kind not in "biuf" or len(shape) != 2:
        raise ValueError(f"a sparse array has dtype {data.dtype} and shape {shape}")
    whole = indices.dtype == indptr.dtype and indices.dtype in (np.int32, np.int64)
    if not whole or any(a.ndim != 1 for a in (indices, indptr)):
        raise ValueError(f"a sparse array has indices of {indices.dtype} and {indptr.dtype}")
    matrix = sp.csr_array((data, indices, indptr), shape=tuple(shape))
    check_csr("a sparse array", matrix)
    return matrix


def _fields_of(value: Any) -> dict[str, Any]:
    """Return the fields from which an object can be rebuilt."""
    if isinstance(value, (BaseEstimator, Session)):
        params, fitted = _halves(value)
        return params | fitted
    if hasattr(value, "__setstate__"):
        return dict(value.__getstate__())
    if dataclasses.is_dataclass(value):  # cached values are not needed
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    return vars(value)


def _make_part(parts: list[Any]) -> Any:
    cls = _class_named(parts[0])
    if issubclass(cls, (BaseEstimator, Session)):
        raise ValueError(f"{parts[0]} is not a part of an estimator")
    fields = dict(zip(parts[1::2], parts[2::2], strict=True))
    check_fields(cls, fields)
    if hasattr(cls, "__dataclass_fields__"):
        return cls(**fields)  # the constructor checks what kernels and products rely on
    part = cls.__new__(cls)
    if hasattr(part, "__setstate__"):
        part.__setstate__(fields)
    else:
        part.__dict__.update(fields)
    return part


def _make_optimizer(parts: list[Any]) -> Optimizer:
    name, rate, warmup, options = parts
    if name not in OPTIMIZERS or callable(rate):
        raise ValueError(f"{name!r} is not the name of an optimizer")
    return replace(OPTIMIZERS[name](rate, **options), warmup=warmup)


def _flat_fields(value: Any) -> list[Any]:
    return [type(value).__name__, *itertools.chain(*_fields_of(value).items())]


#: kind -> (whether a value is of it, the parts of a value, the value from its parts)
_KINDS: dict[str, tuple[Callable[[Any], bool], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "list": (lambda v: type(v) is list, list, list),
    "tuple": (lambda v: type(v) is tuple, list, tuple),
    "set": (lambda v: type(v) is set, list, set),
    "dict": (
        lambda v: type(v) is dict,
        lambda v: [part for item in v.items() for part in item],
        lambda parts: dict(zip(parts[::2], parts[1::2], strict=True)),
    ),
    "objects": (
        lambda v: type(v) is np.ndarray and v.dtype == object and v.ndim == 1,
        list,
        _object_array,
    ),
    "csr": (
        lambda v: sp.issparse(v) and v.format == "csr",
        lambda v: [v.data, v.indices, v.indptr, list(v.shape)],
        _make_csr,
    ),
    "dtype": (
        lambda v: isinstance(v, (np.dtype, type)) and v in (np.float32, np.float64),
        lambda v: [np.dtype(v).name],
        lambda parts: np.dtype({"float32": np.float32, "float64": np.float64}[parts[0]]),
    ),
    "activation": (
        lambda v: isinstance(v, Activation) and ACTIVATIONS.get(v.name) is v,
        lambda v: [v.name],
        lambda parts: ACTIVATIONS[parts[0]],
    ),
    "optimizer": (
        lambda v: type(v) is Optimizer and is_built_in(v),
        lambda v: [v.name, v.learning_rate, v.warmup, dict(v.options)],
        _make_optimizer,
    ),
    "estimator": (
        lambda v: isinstance(v, BaseEstimator) and is_saved(v),
        lambda v: [type(v).__name__, *_halves(v)],
        _make_estimator,
    ),
    "frozen": (
        lambda v: type(v) is FrozenEstimator,
        lambda v: [v.estimator],
        lambda parts: FrozenEstimator(parts[0]),
    ),
    "generator": (_is_generator, _generator_parts, _make_generator),
    "part": (is_saved, _flat_fields, _make_part),
}

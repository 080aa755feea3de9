"""Saving to one .npz file that holds no pickle, and loading it."""

from __future__ import annotations

import itertools
import json
import zipfile
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator

from reservoir._saving import SAVED
from reservoir._typing import Array
from reservoir.activations import ACTIVATIONS, Activation
from reservoir.estimators.stream import Stream

__all__ = ["load", "save"]

_VERSION = 1
_WHOLE = (BaseEstimator, Stream)  # what a file may hold


def save(model: Any, file: str | PathLike[str]) -> None:
    """Write an estimator, fitted or not, to one file that holds arrays and text only.

    Unlike a pickle, the file runs no code when it is read, and it can be read by later versions
    of Python, NumPy and this package.

    Parameters
    ----------
    model : ESNRegressor, ESNClassifier, NVARRegressor, ReservoirTransformer, ReservoirFeatures,
        ESNSequenceRegressor, ESNSequenceClassifier, RNNRegressor, RNNClassifier, one of the
        regressors in `reservoir.readouts`, or a `Stream`
        Of a session everything but its callback: give that again after `load`.
    file : path
        Written as it is named; ``.npz`` is customary.

    Raises
    ------
    TypeError
        If the model, or one of its parameters, is an object that arrays and text cannot hold (a
        pipeline, a `readout` of another package, a callable, a scipy.stats distribution). Use
        joblib or skops there.

    See Also
    --------
    load

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from reservoir import ESNRegressor, load, save
    >>> from reservoir.datasets import narma
    >>> X, y = narma(500, random_state=0)
    >>> esn = ESNRegressor(50, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(esn, pathlib.Path(folder) / "esn.npz")
    ...     again = load(pathlib.Path(folder) / "esn.npz")
    >>> bool(np.array_equal(again.predict(X), esn.predict(X)))
    True
    """
    name = type(model).__name__
    if not _is_saved(model) or not isinstance(model, _WHOLE):
        known = sorted(n for n, cls in SAVED.items() if issubclass(cls, _WHOLE))
        raise TypeError(
            f"save takes {', '.join(known)}; got {name}. Use joblib.dump or "
            "skops.io.dump for pipelines and other estimators."
        )
    # JSON that names the arrays beside it
    written = _Written({}, {})
    params, fitted = _halves(model)
    text = json.dumps(
        {
            "format": "reservoir",
            "version": _VERSION,
            "class": name,
            "params": {key: _encode(value, key, written) for key, value in params.items()},
            "fitted": {key: _encode(value, key, written) for key, value in fitted.items()},
        }
    )
    with Path(file).open("wb") as stream:
        np.savez(stream, allow_pickle=False, header=np.array(text), **written.arrays)


def load(file: str | PathLike[str]) -> Any:
    """Read an estimator, or a session, that `save` has written.

    Parameters
    ----------
    file : path

    Returns
    -------
    estimator or Stream
        It predicts exactly what the saved one did, and `partial_fit` or `learn` goes on where it
        stopped.

    Raises
    ------
    ValueError
        If the file was not written by `save`, or by a later version of its format.

    See Also
    --------
    save

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from reservoir import ESNRegressor, load, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(ESNRegressor(50, leak_rate=0.3), pathlib.Path(folder) / "esn.npz")
    ...     load(pathlib.Path(folder) / "esn.npz")
    ESNRegressor(leak_rate=0.3, n_units=50)
    """
    with Path(file).open("rb") as stream:
        known = zipfile.is_zipfile(stream)
    if not known:
        raise ValueError(
            f"{file} was not written by reservoir.save: it is no .npz file, or cut off."
        )
    # the header first: whether it can be read, and by whom
    with np.load(Path(file), allow_pickle=False) as arrays:
        header = _read_header(arrays)
        if header.get("format") != "reservoir":
            raise ValueError(f"{file} was not written by reservoir.save.")
        if header["version"] > _VERSION:
            raise ValueError(
                f"{file} has format version {header['version']}; this version of reservoir reads "
                f"up to {_VERSION}. Upgrade reservoir-esn."
            )
        read = _Read(arrays, [])
        decoded = {
            part: {key: _decode(value, read) for key, value in header[part].items()}
            for part in ("params", "fitted")
        }
    return _make_estimator([header["class"], decoded["params"], decoded["fitted"]])


def _halves(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return an estimator's parameters, and what fit has made; of a session, what it keeps."""
    if isinstance(model, Stream):
        return {}, model.__getstate__()
    params = model.get_params(deep=False)
    state = model.__getstate__()  # as in pickles: also what was to be made when first read
    return params, {key: value for key, value in state.items() if key not in params}


def _make_estimator(parts: list[Any]) -> Any:
    name, params, fitted = parts
    if SAVED[name] is Stream:
        return _make_part([name, *itertools.chain(*fitted.items())])
    model = SAVED[name](**params)
    model.__dict__.update(fitted)
    return model


def _read_header(arrays: Any) -> dict[str, Any]:
    """Return the text that `save` has written first; an empty one if it is not there."""
    try:
        return json.loads(str(arrays["header"]))
    except (KeyError, ValueError):  # ValueError: no text, or a pickle, which is not opened
        return {}


class _Written(NamedTuple):
    """What a file holds so far: arrays by name, and the numbers of parts by identity."""

    arrays: dict[str, Array]
    parts: dict[int, int]


class _Read(NamedTuple):
    """A file that is read: its arrays, and the parts made so far."""

    arrays: Any
    parts: list[Any]


def _is_saved(value: Any) -> bool:
    """Whether an object's class may be saved."""
    return SAVED.get(type(value).__name__) is type(value)


def _encode(value: Any, name: str, written: _Written) -> Any:
    """Return JSON for a value; what JSON cannot hold goes into `arrays`, under a key."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if isinstance(value, np.ndarray) and value.dtype != object:
        key = f"{len(written.arrays)}:{name}"
        written.arrays[key] = value
        return {"array": key}
    # an object that stands in several places is written once
    if id(value) in written.parts:
        return {"same": written.parts[id(value)]}
    for kind, (matches, parts, _) in _KINDS.items():
        if matches(value):
            found = {kind: [_encode(part, name, written) for part in parts(value)]}
            if kind == "part":
                written.parts[id(value)] = len(written.parts)
            return found
    raise TypeError(
        f"{name}={value!r} cannot be written as arrays and text. Use joblib.dump or skops.io.dump."
    )


def _decode(value: Any, read: _Read) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "array":
        array = read.arrays[content]
        return array[()] if array.ndim == 0 else array
    if kind == "same":
        return read.parts[content]
    made = _KINDS[kind][2]([_decode(part, read) for part in content])
    if kind == "part":
        read.parts.append(made)
    return made


def _is_generator(value: Any) -> bool:
    return isinstance(value, np.random.Generator) and isinstance(
        value.bit_generator, np.random.PCG64
    )


def _generator_parts(generator: np.random.Generator) -> list[Any]:
    seed: Any = generator.bit_generator.seed_seq
    where = [seed.entropy, list(seed.spawn_key), seed.n_children_spawned]
    return [*where, json.dumps(generator.bit_generator.state)]


def _make_generator(parts: list[Any]) -> np.random.Generator:
    entropy, spawn_key, n_children, state = parts
    seed = np.random.SeedSequence(
        entropy, spawn_key=tuple(spawn_key), n_children_spawned=n_children
    )
    generator = np.random.Generator(np.random.PCG64(seed))
    generator.bit_generator.state = json.loads(state)
    return generator


def _object_array(items: list[Any]) -> Array:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def _make_part(parts: list[Any]) -> Any:
    cls = SAVED[parts[0]]
    part = cls.__new__(cls)
    fields = dict(zip(parts[1::2], parts[2::2], strict=True))
    if hasattr(part, "__setstate__"):
        part.__setstate__(fields)
    else:
        part.__dict__.update(fields)
    return part


def _flat_fields(value: Any) -> list[Any]:
    fields = value.__getstate__() if hasattr(value, "__setstate__") else vars(value)
    return [type(value).__name__, *(part for item in fields.items() for part in item)]


#: kind -> (is it one?, its parts, the value from its parts)
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
        lambda v: isinstance(v, np.ndarray) and v.dtype == object and v.ndim == 1,
        list,
        _object_array,
    ),
    "csr": (
        lambda v: sp.issparse(v) and v.format == "csr",
        lambda v: [v.data, v.indices, v.indptr, list(v.shape)],
        lambda p: sp.csr_array((p[0], p[1], p[2]), shape=tuple(p[3])),
    ),
    "dtype": (
        lambda v: isinstance(v, (np.dtype, type)) and v in (np.float32, np.float64),
        lambda v: [np.dtype(v).name],
        lambda parts: np.dtype(parts[0]),
    ),
    "activation": (
        lambda v: isinstance(v, Activation) and ACTIVATIONS.get(v.name) is v,
        lambda v: [v.name],
        lambda parts: ACTIVATIONS[parts[0]],
    ),
    "estimator": (
        lambda v: isinstance(v, BaseEstimator) and _is_saved(v),
        lambda v: [type(v).__name__, *_halves(v)],
        _make_estimator,
    ),
    "frozen": (
        lambda v: type(v) is FrozenEstimator,
        lambda v: [v.estimator],
        lambda parts: FrozenEstimator(parts[0]),
    ),
    "generator": (_is_generator, _generator_parts, _make_generator),
    "part": (_is_saved, _flat_fields, _make_part),
}

"""Saving estimators to one .npz file without pickles, and loading them."""

from __future__ import annotations

import json
import zipfile
from os import PathLike
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from reservoir._saving import SAVED
from reservoir.estimators.persistence.archive import Archive, write_archive
from reservoir.estimators.persistence.parts import (
    Read,
    Written,
    check_names,
    decode_estimator,
    encode_estimator,
    is_saved,
)
from reservoir.estimators.persistence.stacks import Stacks, stacked
from reservoir.estimators.session import Session

__all__ = ["load", "save"]

# in version 3, of several series, arrays are stacked and the header is bytes; no release wrote 1
_VERSION, _STACKED = 2, 3
_WHOLE = (BaseEstimator, Session)  # the objects that a file may contain


def save(model: Any, file: str | PathLike[str]) -> None:
    """Write an estimator, fitted or not, to one file that contains only arrays and text.

    Unlike a pickle, the file runs no code when it is read, and it can be read by later versions
    of Python, NumPy and this package.

    Parameters
    ----------
    model : ESNRegressor, ESNClassifier, NVARRegressor, ReservoirTransformer, ReservoirFeatures,
        ESNSequenceRegressor, ESNSequenceClassifier, RNNRegressor, RNNClassifier, one of the
        regressors in `reservoir.readouts`, ESNForecaster, LiquidStateMachine, or a `Stream`
        or `StateStream`
        A session is saved without its callback: set it again after `load`.
    file : path
        Used as given; the usual extension is ``.npz``. An existing file is replaced only when the
        new one is complete: if writing fails, the old file is kept.

    Raises
    ------
    ValueError
        If an attribute was changed by hand to a value that `load` would reject.
    TypeError
        If the model, or one of its parameters, is an object that cannot be written as arrays and
        text (a pipeline, a `readout` of another package, a callable, a scipy.stats distribution).
        Use joblib or skops then.

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
    if not is_saved(model) or not isinstance(model, _WHOLE):
        known = sorted(n for n, cls in SAVED.items() if issubclass(cls, _WHOLE))
        raise TypeError(
            f"save supports {', '.join(known)}; got {name}. Use joblib.dump or "
            "skops.io.dump for pipelines and other estimators."
        )
    # JSON that refers to the arrays in the same file
    written = Written({}, {}, {})
    _, params, fitted = encode_estimator(model, written)
    header = {
        "format": "reservoir",
        "version": _VERSION,
        "class": name,
        "params": params,
        "fitted": fitted,
    }
    arrays = written.arrays
    if len(getattr(model, "_fits", ())) > 1:
        fitted, stacks, arrays = stacked(fitted, arrays)
        header |= {"version": _STACKED, "fitted": fitted, "stacks": stacks}
    if "stacks" not in header:
        write_archive(file, json.dumps(header), arrays)
    else:
        write_archive(file, json.dumps(header, separators=(",", ":")).encode(), arrays)


def load(file: str | PathLike[str]) -> Any:
    """Read an estimator or a session that `save` has written.

    Parameters
    ----------
    file : path

    Returns
    -------
    estimator, Stream or StateStream
        Its predictions equal those of the saved one exactly, and `partial_fit` or `learn` continues
        where the saved one stopped.

    Raises
    ------
    ValueError
        If the file was not written by `save`, is damaged, or is of a later version of the format;
        the message names the file. Objects are made only if all their fields have the right dtypes
        and shapes, so that a file from an unknown source can do no harm.

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
        if not zipfile.is_zipfile(stream):
            raise ValueError(
                f"{file} was not written by reservoir.save: it is not a .npz file, or truncated."
            )
        try:
            return _read(Archive(stream))
        except MemoryError:
            raise
        except Exception as error:  # damaged bytes may raise any error anywhere
            raise ValueError(
                f"{file} was not written by reservoir.save, or is damaged: {_reason(error)}."
            ) from error


def _read(archive: Archive) -> Any:
    """Return the object in a file, after checking the format and its version."""
    header = archive.header
    if not isinstance(header, dict) or header.get("format") != "reservoir":
        raise ValueError("its header does not have the format of saved estimators")
    version = header["version"]
    if type(version) is not int or version < _VERSION:
        raise ValueError(f"its format version is {version!r}")
    if version > _STACKED:
        raise ValueError(
            f"it has format version {version}; this version of reservoir reads up to {_STACKED}. "
            "Upgrade reservoir-esn"
        )
    halves, named = [header["params"], header["fitted"]], header.get("stacks", [])
    check_names([*halves, named], archive)
    stacks = Stacks(archive, named, halves)
    return decode_estimator(header["class"], halves, Read(archive, [], [], stacks))


def _reason(error: Exception) -> str:
    """Return the text of an error, with its type if the text alone may be unclear."""
    text = str(error).rstrip(".")
    return text if isinstance(error, (ValueError, zipfile.BadZipFile)) else f"{error!r}"

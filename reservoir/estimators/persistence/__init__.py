"""Saving to one .npz file that holds no pickle, and loading it."""

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
from reservoir.estimators.stream import Stream

__all__ = ["load", "save"]

_VERSION = 2  # 1: estimators held in themselves what a reader and a model hold now
_WHOLE = (BaseEstimator, Stream)  # what a file may hold


def save(model: Any, file: str | PathLike[str]) -> None:
    """Write an estimator, fitted or not, to one file that holds arrays and text only.

    Unlike a pickle, the file runs no code when it is read, and it can be read by later versions
    of Python, NumPy and this package.

    Parameters
    ----------
    model : ESNRegressor, ESNClassifier, NVARRegressor, ReservoirTransformer, ReservoirFeatures,
        ESNSequenceRegressor, ESNSequenceClassifier, RNNRegressor, RNNClassifier, one of the
        regressors in `reservoir.readouts`, ESNForecaster, LiquidStateMachine, or a `Stream`
        Of a session everything but its callback: give that again after `load`.
    file : path
        Written as it is named; ``.npz`` is customary. The new file takes the place of an old one
        when it is complete: one that fails leaves the old one as it was.

    Raises
    ------
    ValueError
        If an attribute was changed by hand to what `load` would refuse.
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
    if not is_saved(model) or not isinstance(model, _WHOLE):
        known = sorted(n for n, cls in SAVED.items() if issubclass(cls, _WHOLE))
        raise TypeError(
            f"save takes {', '.join(known)}; got {name}. Use joblib.dump or "
            "skops.io.dump for pipelines and other estimators."
        )
    # JSON that names the arrays beside it
    written = Written({}, {}, {})
    _, params, fitted = encode_estimator(model, written)
    header = {
        "format": "reservoir",
        "version": _VERSION,
        "class": name,
        "params": params,
        "fitted": fitted,
    }
    write_archive(file, json.dumps(header), written.arrays)


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
        If the file was not written by `save`, is damaged, or is of a later version of the format;
        the message names the file. Objects are made only from fields of the dtypes and shapes that
        they have, so that a file from elsewhere can do no harm.

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
                f"{file} was not written by reservoir.save: it is no .npz file, or cut off."
            )
        try:
            with Archive(stream) as archive:
                return _read(archive)
        except MemoryError:
            raise
        except Exception as error:  # damaged bytes fail anywhere, in any way
            raise ValueError(
                f"{file} was not written by reservoir.save, or is damaged: {_reason(error)}."
            ) from error


def _read(archive: Archive) -> Any:
    """Return what a file holds; whether it can be read, and by whom, comes first."""
    header = archive.header
    if not isinstance(header, dict) or header.get("format") != "reservoir":
        raise ValueError("its header does not say so")
    version = header["version"]
    if type(version) is not int or version < 1:
        raise ValueError(f"its format version is {version!r}")
    if version > _VERSION:
        raise ValueError(
            f"it has format version {version}; this version of reservoir reads up to {_VERSION}. "
            "Upgrade reservoir-esn"
        )
    halves = [header["params"], header["fitted"]]
    check_names(halves, archive)
    return decode_estimator(header["class"], halves, Read(archive, [], []))


def _reason(error: Exception) -> str:
    """Return what an error says, with its kind where that is not clear without."""
    text = str(error).rstrip(".")
    return text if isinstance(error, (ValueError, zipfile.BadZipFile)) else f"{error!r}"

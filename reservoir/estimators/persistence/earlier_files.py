"""Conversion of files from versions whose estimators had no reader and no model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir.estimators.esn.readout_model import ReadoutModel
from reservoir.estimators.esn.source_estimator import SourceEstimator
from reservoir.estimators.esn.transformer import ReservoirTransformer
from reservoir.estimators.persistence.fields import check_fields
from reservoir.estimators.reading import DataReader
from reservoir.estimators.rnn.network_estimator import NetworkEstimator
from reservoir.estimators.rnn.network_model import NetworkModel
from reservoir.estimators.series.containers import SeriesContainer

# field -> its earlier name in the estimator, and its default if a file does not have it
_OF_READER: dict[str, tuple[str, Any]] = {
    "sequence_column": ("_sequence_column", None),
    "time_column": ("_time_column", None),
    "clock": ("_clock", None),
    "targets": ("_targets", None),
    "target_names": ("_target_names", None),
}
_OF_MODEL: dict[str, tuple[str, Any]] = {
    "source": ("_source", None),
    "increments": ("_learns_increments", False),
    "readout": ("_readout", None),
    "progress": ("_progress", None),
    "noise_seed": ("_noise_seed", None),
    "n_noisy": ("_n_noisy", 0),
    "noise_generator": ("_noise_generator", None),
    "activity": ("_activity", None),
    "n_trained": ("_n_trained", 0),
}
_OF_NETWORK: dict[str, tuple[str, Any]] = {
    "progress": ("_progress", None),
    "control": ("_control", None),
    "online": ("_online", None),
    "recent": ("_recent", None),
    "engine": ("_engine", "auto"),
}


@saved
@dataclass(frozen=True)
class KnownInputs:
    """Container of the known inputs of ESNForecaster, which a `Panel` has as `exog`."""

    container: SeriesContainer | None


def with_parts(cls: type, params: dict[str, Any], fitted: dict[str, Any]) -> dict[str, Any]:
    """Return the fitted attributes of an estimator with its reader, and its model if it has one.

    Parameters
    ----------
    cls : type
        The class of the estimator.
    params, fitted : dict
        Its parameters and its fitted attributes in a file, by name.
    """
    if "_known" in fitted:
        others = {name: part for name, part in fitted.items() if name != "_known"}
        return others | {"_panel": replace(fitted["_panel"], exog=fitted["_known"].container)}
    if not {"_source", "network_"} & fitted.keys() or "_reader" in fitted:
        return fitted
    fitted = dict(fitted)
    if issubclass(cls, NetworkEstimator):
        return _with_network(fitted)
    if issubclass(cls, ReservoirTransformer):
        fitted["_sequence_column"] = params.get("sequence_column")
        return fitted | {"_reader": _part(DataReader, _OF_READER, fitted, dtype=_dtype_of(fitted))}
    if not issubclass(cls, SourceEstimator):
        return fitted
    reader = _part(DataReader, _OF_READER, fitted, dtype=_dtype_of(fitted))
    shared = {"n_outputs": "n_outputs_", "certificate": "certificate_", "state": "state_"}
    others = {name: fitted.get(attribute) for name, attribute in shared.items()}
    return fitted | {"_reader": reader, "_model": _part(ReadoutModel, _OF_MODEL, fitted, **others)}


def _with_network(fitted: dict[str, Any]) -> dict[str, Any]:
    """Return the fitted attributes of a trained network with its reader and its model."""
    network, params = fitted["network_"], fitted["params_"]
    dtype, clock = params["coef"].dtype.name, fitted.get("_clock")
    n_symbols = network.n_features if network.coded else None
    reader = _part(DataReader, _OF_READER, fitted, dtype=dtype, n_symbols=n_symbols)
    fitted.pop("_drawn_at_random", None)
    shared = {"state": "state_", "losses": "loss_curve_", "n_iter": "n_iter_"}
    others = {name: fitted.get(attribute) for name, attribute in shared.items()}
    others |= {"network": network, "params": params, "dtype": dtype, "clock": clock}
    model = _part(NetworkModel, _OF_NETWORK, fitted, **others)
    return fitted | {"_reader": reader, "_model": model}


def _dtype_of(fitted: dict[str, Any]) -> Any:
    return np.dtype(fitted["_source"].dtype).name


def _part(
    cls: type, names: dict[str, tuple[str, Any]], fitted: dict[str, Any], **others: Any
) -> Any:
    """Return an object made from fitted attributes, which are removed from `fitted`."""
    fields = {name: fitted.pop(old, default) for name, (old, default) in names.items()}
    fields |= others
    check_fields(cls, fields)
    part: Any = object.__new__(cls)
    vars(part).update(fields)
    return part

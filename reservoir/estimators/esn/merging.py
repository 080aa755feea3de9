"""Merge fitted estimators: what their sums must have in common, and the model of all rows."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, NoReturn

import numpy as np

from reservoir._validation import is_same
from reservoir.estimators.esn.readout_model import ReadoutModel
from reservoir.readouts.contract import ReadoutSettings
from reservoir.readouts.ridge import RidgeReadout
from reservoir.readouts.selection import Runs, is_path


def check_merge(one: Any, other: Any) -> None:
    """Raise unless the rows of `other` can be added to those of `one`."""
    if other is one:
        raise ValueError(
            "merge got the estimator itself, whose rows would count twice. Pass another one that "
            "was fitted on other rows."
        )
    if type(other) is not type(one):
        raise TypeError(
            f"merge needs another {type(one).__name__}; got {type(other).__name__}. Pass a fitted "
            "estimator of the same class."
        )
    for each in (one, other):
        each._check_begun()
        _check_sums(each)
    for name, mine, its in _rules(one, other):
        if not is_same(mine, its):
            _refuse(f"{name}={mine!r} here, and {its!r} in the other one")
    _check_same_data(one, other)
    taken = [value for value in other._model.progress.ids if value in one._model.progress.ids]
    if taken:
        raise ValueError(
            f"Both estimators have learned from a sequence with the id {taken[0]!r}, whose rows "
            "would be those of two sequences. Give each sequence an id of its own, or fit it on "
            "one machine."
        )


def _check_sums(estimator: Any) -> None:
    """Raise if a fitted estimator has no sums over rows that can be added to those of others."""
    readout = estimator._model.readout
    if estimator.readout is None and type(readout) is not RidgeReadout:
        _raise_no_sums(type(readout).__name__)
    check_adds(estimator, estimator._new_readout(estimator._reader).settings)
    if any(sums.ageing < 1 for sums in readout.parts.values()):
        _raise_aged("rows of a session were forgotten")
    if estimator.noise > 0 or estimator._model.noise_seed is not None:
        raise ValueError(
            f"noise={estimator.noise}: each sequence of one fit has its own noise, and models "
            "fitted apart have drawn the same. Use noise=0.0, or plan_parts of reservoir.interop."
        )


def check_adds(estimator: Any, settings: ReadoutSettings) -> None:
    """Raise if parameters need more than sums over rows, which are all that parts of them have."""
    if estimator.readout is not None:
        _raise_no_sums(estimator.readout)
    if estimator.transition is not None:
        raise ValueError(
            f"transition={estimator.transition!r} is chosen in a second run over all rows, which "
            "sums of parts do not have. Use transition=None, or fit on all rows together."
        )
    if settings.forgetting < 1:
        _raise_aged(f"forgetting={settings.forgetting}")
    rule = RidgeReadout(settings).rule
    if rule is not None and (rule.neighbours or (rule.min_blocks and not rule.alternates)):
        raise ValueError(
            f"alpha_selection={settings.selection!r} needs rows side by side, or held out of all "
            'rows, which sums of parts do not show. Use "auto", "gcv" or "reml", or fit on all '
            "rows together."
        )


def _raise_no_sums(kept: Any) -> NoReturn:
    raise ValueError(
        f"The sums of the built-in ridge can be added, and readout={kept!r} has none. Use "
        "readout=None and fit, or fit on all rows together."
    )


def _raise_aged(why: str) -> NoReturn:
    raise ValueError(
        f"{why}: rows lose weight with every later row, in which sums of parts do not agree. Use "
        "forgetting=1.0, or partial_fit chunk by chunk."
    )


def _rules(one: Any, other: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield what determines the sums of two readouts: name, value here, and in the other one."""
    yield "solver", one._model.readout.solver, other._model.readout.solver
    paths = is_path(one.alpha), is_path(other.alpha)
    sources = {type(each._model.source) for each in (one, other)}
    if all(paths):
        yield "alpha_selection", one.alpha_selection, other.alpha_selection
    elif any(paths) and (len(sources) > 1 or _in_halves(one) or _in_halves(other)):
        yield "alpha", one.alpha, other.alpha


def _in_halves(estimator: Any) -> bool:
    """Whether the rule of an estimator assigns rows to halves."""
    rule = RidgeReadout(estimator._new_readout(estimator._reader).settings).rule
    return rule is not None and rule.alternates


def _check_same_data(one: Any, other: Any) -> None:
    """Raise if features or targets of two estimators are not those of one fit."""
    mine, its = one._reader, other._reader
    names = [vars(each).get("feature_names_in_") for each in (one, other)]
    pairs = [
        ("the number of columns of X", one.n_features_in_, other.n_features_in_),
        ("the names of the columns of X", *(None if n is None else list(n) for n in names)),
        ("dtype", mine.dtype, its.dtype),
        ("the number of outputs", one._model.n_outputs, other._model.n_outputs),
        ("y one-dimensional", mine.targets.one_dimensional, its.targets.one_dimensional),
        ("classes_", *(_listed(each.targets.classes) for each in (mine, its))),
    ]
    for what, a, b in pairs:
        if a != b:
            _refuse(f"{what}: {a!r} here, and {b!r} in the other one")
    array = _difference(one._model.source, other._model.source)
    before, later = mine.fixed or {}, its.fixed or {}
    changed = [
        f"{name}={before[name]!r} here, and {later[name]!r} in the other one"
        for name in before.keys() & later.keys()
        if not is_same(before[name], later[name]) and (array or name != "random_state")
    ]
    if array or changed:
        _refuse(", ".join([*([f"the array {array}"] if array else []), *sorted(changed)]))
    if one._model.readout.inputs != other._model.readout.inputs:
        _refuse("the number of rows of the input that the readout may receive (n_lags)")


def _listed(classes: Any) -> Any:
    return None if classes is None else np.asarray(classes).tolist()


def _difference(one: Any, other: Any, name: str = "source") -> str | None:
    """Return the name of the first array or number in which two sources differ, if there is one."""
    if not is_dataclass(one) or type(one) is not type(other):
        return None if is_same(one, other) else name
    # the time of the first row may differ: states depend on the times between rows
    names = [each.name for each in fields(one) if each.name != "origin"]
    found = (_difference(getattr(one, each), getattr(other, each), each) for each in names)
    return next((each for each in found if each is not None), None)


def _refuse(what: str) -> NoReturn:
    raise ValueError(
        f"merge adds the rows of one and the same model, but the two differ in {what}. Fit both "
        "with the same parameters, random_state included."
    )


def merged_model(one: Any, other: Any) -> ReadoutModel:
    """Return the model of the rows of `one`, then those of `other`; neither is changed."""
    earlier, later = one._shown_model(), other._shown_model()
    model = earlier.merged(later)
    model.readout.runs = _joined_runs(earlier.readout, later.readout)
    clocks = one._reader.clock, other._reader.clock
    if clocks[0] is not None:
        assert model.state is not None
        model.state = model.state.copy()  # its time is in steps since the first row of `other`
        model.state[-1] += (clocks[1].origin - clocks[0].origin) / clocks[0].step
    return model


def _joined_runs(earlier: RidgeReadout, later: RidgeReadout) -> Runs | None:
    """Return the runs of the later rows, counted from the first row of all; None without runs."""
    runs = copy.copy(later.runs)
    if runs is not None:
        runs.n_rows += earlier.n_rows if earlier.runs is None else earlier.runs.n_rows
    return runs

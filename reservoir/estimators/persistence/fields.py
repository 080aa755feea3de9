"""Check the fields of an object against the table in `reservoir._saving.saved_fields`."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from reservoir._saving.saved_fields import FIELDS, KINDS
from reservoir._validation.frequencies import offset_of
from reservoir.readouts import READOUTS, kind_of
from reservoir.training.losses import LOSSES, OUTPUTS

_HEAD = re.compile(r"(?:^|;|\n)\s*(\w[\w.?]*(?:\s*,\s*\w[\w.?]*)*)\s*:")
_NAME = re.compile(r"([\w.]+?)(\?(\w*))?")
_LABELS = "biufSUmM"  # kinds of dtypes of labels, in addition to objects
_WIDEST = 2**63
_DATES = re.compile(r"M8\[(s|ms|us|ns)\]")


class _Line(NamedTuple):
    """Entry of the table for a field; `text` is the kind as it is written there.

    `partner` is a field that is present if and only if this one is; "" if there is none.
    """

    kind: ast.expr
    text: str
    optional: bool
    partner: str


class _Scope(NamedTuple):
    """The fields of an object, and the sizes bound to names so far."""

    fields: Mapping[str, Any]
    sizes: dict[str, int]

    def copy(self) -> _Scope:
        """Return a scope with a copy of the sizes."""
        return _Scope(self.fields, dict(self.sizes))


def check_fields(cls: type, fields: Mapping[str, Any]) -> None:
    """Check that values by name are the fields of an object of a class.

    A field that is missing, unknown, or not of its kind raises a ValueError. A class that is not in
    the table, nor derived from one in it, is not checked.
    """
    lines, scope = lines_of(cls), _Scope(fields, {})
    _check_names(cls, fields, lines)
    for name, line in lines.items():
        owner, *attributes = name.split(".")
        if owner not in fields:
            continue
        value = fields[owner]
        for attribute in attributes:
            value = None if value is None else getattr(value, attribute)
        absent = value is None and attributes  # an attribute of an absent part
        if not absent and not _is(line.kind, value, scope):
            raise ValueError(
                f"{cls.__name__}.{name} must be {line.text}; it is {_described(value)}."
            )


@cache
def lines_of(cls: type) -> dict[str, _Line]:
    """Return the table's entries for the fields of a class and of its base classes."""
    lines: dict[str, _Line] = {}
    for each in getattr(cls, "__dataclass_fields__", {}).values():
        if group := each.metadata.get("group"):
            lines[each.name] = _lines_of_name(group)[each.name]
    for base in reversed(cls.__mro__):
        lines |= _lines_of_name(base.__name__)
    return lines


@cache
def _lines_of_name(name: str) -> dict[str, _Line]:
    """Return the table's entries for a class alone, or for a group of parameters."""
    lines: dict[str, _Line] = {}
    _, *parts = _HEAD.split(FIELDS.get(name, ""))
    for names, text in zip(parts[::2], parts[1::2], strict=True):
        text = " ".join(text.split())
        kind = ast.parse(text, mode="eval").body
        for written in names.split(","):
            field, optional, partner = _NAME.fullmatch(written.strip()).groups()  # type: ignore[union-attr]
            lines[field] = _Line(kind, text, optional is not None, partner or "")
    return lines


def _check_names(cls: type, fields: Mapping[str, Any], lines: dict[str, _Line]) -> None:
    """Check for unknown and missing fields; a user's class may have additional ones."""
    for name, line in lines.items():
        if line.partner and (name in fields) != (line.partner in fields):
            raise ValueError(f"{cls.__name__} has only one of {name} and {line.partner}.")
    if cls.__name__ not in FIELDS:
        return
    of_readouts = {name for readout in READOUTS.values() for name in readout.fitted}
    unknown = fields.keys() - lines.keys() - of_readouts
    if unknown:
        raise ValueError(f"{cls.__name__} has no {min(unknown)}.")
    # an estimator that has not been fitted has only parameters
    needed = [
        name
        for name, line in lines.items()
        if not line.optional and "." not in name and not hasattr(cls, name)
    ]
    if issubclass(cls, BaseEstimator) and not any(name in fields for name in needed):
        needed = []
    for name in needed:
        if name not in fields:
            raise ValueError(f"{cls.__name__}.{name} is missing.")


def _is(kind: ast.expr, value: Any, scope: _Scope) -> bool:
    """Whether a value is of a kind; binds new names to sizes."""
    if isinstance(kind, ast.BinOp) and isinstance(kind.op, ast.BitOr):
        return any(_is_with_sizes(each, value, scope) for each in (kind.left, kind.right))
    if isinstance(kind, ast.IfExp):
        return _is(kind.body if _value(kind.test, scope) else kind.orelse, value, scope)
    if isinstance(kind, ast.Constant):
        return value is None if kind.value is None else type(value) is str and value == kind.value
    if isinstance(kind, ast.Name):
        return _is_named(kind.id, value, scope)
    if isinstance(kind, ast.Subscript):
        return _is_container(kind, value, scope)
    assert isinstance(kind, ast.Call)
    assert isinstance(kind.func, ast.Name)
    called = _CALLED.get(kind.func.id)
    if called is not None:
        return called(kind.args, value, scope)
    return _has_class(value, kind.func.id) and all(
        _is_attribute(each.value, getattr(value, str(each.arg)), scope) for each in kind.keywords
    )


def _is_attribute(arg: ast.expr, value: Any, scope: _Scope) -> bool:
    """Whether an attribute matches; a new name is bound to its value."""
    called = isinstance(arg, ast.Call) and isinstance(arg.func, ast.Name)
    if isinstance(arg, ast.BinOp) or (called and arg.func.id in _CALLED):  # type: ignore[union-attr,attr-defined]
        return _is(arg, value, scope)
    if isinstance(arg, ast.Name) and arg.id not in scope.sizes and arg.id not in scope.fields:
        scope.sizes[arg.id] = value
    return _same_value(value, _value(arg, scope))


def _is_with_sizes(kind: ast.expr, value: Any, scope: _Scope) -> bool:
    """As `_is`, but names are bound only if the value is of the kind."""
    tried = scope.copy()
    if not _is(kind, value, tried):
        return False
    scope.sizes.update(tried.sizes)
    return True


def _is_named(name: str, value: Any, scope: _Scope) -> bool:
    if name in KINDS:
        return _is(ast.parse(KINDS[name], mode="eval").body, value, scope)
    plain = _PLAIN.get(name)
    return _has_class(value, name) if plain is None else bool(plain(value))


def _is_container(kind: ast.Subscript, value: Any, scope: _Scope) -> bool:
    assert isinstance(kind.value, ast.Name)
    name, item = kind.value.id, kind.slice
    if type(value).__name__ != name:
        return False
    if name == "dict":
        assert isinstance(item, ast.Tuple)
        of_key, of_value = item.elts
        return all(
            _is(of_key, each, scope.copy()) and _is(of_value, value[each], scope.copy())
            for each in value
        )
    if name != "tuple":
        return all(_is(item, each, scope.copy()) for each in value)
    assert isinstance(item, ast.Tuple)
    if isinstance(item.elts[-1], ast.Constant) and item.elts[-1].value is ...:
        return all(_is(item.elts[0], each, scope.copy()) for each in value)
    inner = scope.copy()
    return len(value) == len(item.elts) and all(
        _is(of, each, inner) for of, each in zip(item.elts, value, strict=True)
    )


def _has_class(value: Any, name: str) -> bool:
    """Whether a value is of the class with this name, or of one derived from it."""
    return any(cls.__name__ == name for cls in type(value).__mro__)


def _same_value(value: Any, other: Any) -> bool:
    if isinstance(value, np.ndarray) or isinstance(other, np.ndarray):
        value, other = np.asarray(value), np.asarray(other)
        return value.dtype == other.dtype and np.array_equal(value, other)
    return type(value) is type(other) and bool(value == other)


# ---------------------------------------------------------------------- plain values


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_int(value: Any) -> bool:
    return _is_whole(value) and -_WIDEST <= value < _WIDEST


def _is_float(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) or _is_int(value)


def _is_number(value: Any) -> bool:
    return _is_float(value) and bool(np.isfinite(value))


def _is_label(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_label, value))
    return isinstance(value, (str, bytes, bool, int, float, np.generic, type(None)))


def _is_dtype(value: Any) -> bool:
    return isinstance(value, (np.dtype, type)) and value in (np.float32, np.float64)


def _is_text_for(read: Callable[[str], Any]) -> Callable[[Any], bool]:
    """Return a check that a value is text which a function can read, if pandas is installed."""

    def is_text(value: Any) -> bool:
        try:
            return isinstance(value, str) and read(value) is not None
        except ImportError:
            return True
        except Exception:  # those of pandas, and of several libraries of time zones
            return False

    return is_text


def _zone(text: str) -> Any:
    import pandas as pd

    return pd.DatetimeTZDtype(tz=text)


def _dtype_of_rows(text: str) -> bool | None:
    """Return whether text is the dtype of an index of numbers; None if it is not."""
    numeric = text == "range" or np.dtype(text.lower().partition("[")[0]).kind in "iuf"
    return True if numeric else None


_PLAIN: dict[str, Callable[[Any], bool]] = {
    "any": lambda value: True,
    "bool": lambda value: isinstance(value, (bool, np.bool_)),
    "str": lambda value: isinstance(value, str),
    "int": _is_int,
    "whole": lambda value: _is_whole(value) and value >= 0,
    "natural": lambda value: _is_int(value) and value >= 0,
    "count": lambda value: _is_int(value) and value >= 1,
    "float": _is_float,
    "amount": lambda value: _is_float(value) and bool(value >= 0),
    "number": _is_number,
    "positive": lambda value: _is_number(value) and value > 0,
    "fraction": lambda value: _is_number(value) and 0 < value <= 1,
    "dtype": _is_dtype,
    "label": _is_label,
    "output": lambda value: isinstance(value, str) and value in OUTPUTS,
    "loss": lambda value: isinstance(value, str) and value in LOSSES,
    "readout": lambda value: kind_of(value) is not None,
    "generator": lambda value: isinstance(value, np.random.Generator),
    "frequency": _is_text_for(offset_of),
    "zone": _is_text_for(_zone),
    "periods": lambda value: isinstance(value, str) and value.startswith("period["),
    "dates": lambda value: isinstance(value, str) and _DATES.fullmatch(value) is not None,
    "numbers_of_rows": _is_text_for(_dtype_of_rows),
}

# ---------------------------------------------------------------------- arrays


def _is_array(
    value: Any, matches: Callable[[np.dtype[Any]], bool], args: list[ast.expr], scope: _Scope
) -> bool:
    """Whether a value is an array of a dtype and shape; NaN is allowed if `any` is the last arg."""
    if not isinstance(value, np.ndarray) or not matches(value.dtype):
        return False
    gaps = bool(args) and isinstance(args[-1], ast.Name) and args[-1].id == "any"
    if not _has_shape(value.shape, args[:-1] if gaps else args, scope):
        return False
    return gaps or value.dtype.kind not in "fc" or bool(np.isfinite(value).all())


def _has_shape(shape: tuple[int, ...], args: list[ast.expr], scope: _Scope) -> bool:
    if args and isinstance(args[-1], ast.Constant) and args[-1].value is ...:
        args = args[:-1]
        shape = shape[: len(args)]
    return len(shape) == len(args) and all(
        _is_size(arg, size, scope) for arg, size in zip(args, shape, strict=True)
    )


_BOUNDS: dict[str, Callable[[int, int], bool]] = {"least": operator.ge, "most": operator.le}


def _is_size(arg: ast.expr, size: int, scope: _Scope) -> bool:
    """Whether a size matches; a new name is bound to it."""
    if isinstance(arg, ast.Name) and arg.id not in scope.sizes:
        field = scope.fields.get(arg.id)
        if not _is_int(field):
            if arg.id != "_":
                scope.sizes[arg.id] = size
            return True
    if isinstance(arg, ast.Call) and isinstance(arg.func, ast.Name) and arg.func.id in _BOUNDS:
        return _BOUNDS[arg.func.id](size, _value(arg.args[0], scope))
    return bool(_value(arg, scope) == size)


def _of_dtype(*names: str) -> Callable[[list[ast.expr], Any, _Scope], bool]:
    """Return a check that a value is an array of one of these dtypes."""
    known = [np.dtype(name) for name in names]
    return lambda args, value, scope: _is_array(value, known.__contains__, args, scope)


def _of_kinds(kinds: str) -> Callable[[list[ast.expr], Any, _Scope], bool]:
    """Return a check that a value is an array whose dtype is of one of these kinds."""
    return lambda args, value, scope: _is_array(
        value, lambda dtype: dtype.kind in kinds, [*args, ast.Name("any")], scope
    )


def _of_other_dtype(args: list[ast.expr], value: Any, scope: _Scope) -> bool:
    dtype = np.dtype(_value(args[0], scope))
    return _is_array(value, dtype.__eq__, args[1:], scope)


def _is_labels(args: list[ast.expr], value: Any, scope: _Scope) -> bool:
    if isinstance(value, np.ndarray) and value.dtype == object:
        return _has_shape(value.shape, args, scope) and all(map(_is_label, value))
    return _of_kinds(_LABELS)(args, value, scope)


def _is_csr(args: list[ast.expr], value: Any, scope: _Scope) -> bool:
    return (
        sp.issparse(value)
        and value.format == "csr"
        and _has_shape(value.shape, args, scope)
        and bool(np.isfinite(value.data).all())
    )


def _is_weights(args: list[ast.expr], value: Any, scope: _Scope) -> bool:
    """Whether a value is a dict of the weights of a network, all of one dtype."""
    shapes = _value(args[0], scope).shapes()
    if type(value) is not dict or value.keys() != shapes.keys():
        return False
    dtypes = {getattr(each, "dtype", None) for each in value.values()}
    return (
        len(dtypes) == 1
        and dtypes <= {np.dtype(np.float32), np.dtype(np.float64)}
        and all(value[name].shape == shape for name, shape in shapes.items())
        and all(bool(np.isfinite(each).all()) for each in value.values())
    )


def _is_flat(args: list[ast.expr], value: Any, scope: _Scope) -> bool:
    """Whether a value is one array with a number for each weight of a network."""
    n_weights = sum(math.prod(shape) for shape in _value(args[0], scope).shapes().values())
    return _of_dtype("float32", "float64")([ast.Constant(n_weights)], value, scope)


_CALLED: dict[str, Callable[[list[ast.expr], Any, _Scope], bool]] = {
    "float64": _of_dtype("float64"),
    "int64": _of_dtype("int64"),
    "bool_": _of_dtype("bool"),
    "real": _of_dtype("float32", "float64"),
    "indices": _of_dtype("intp", "int64"),
    "numeric": _of_kinds("biuf"),
    "labels": _is_labels,
    "of": _of_other_dtype,
    "scalar": lambda args, value, scope: (
        _is_number(value) and np.asarray(value).dtype == _value(args[0], scope)
    ),
    "amounts": lambda args, value, scope: (
        _CALLED["float64"]([*args, ast.Name("any")], value, scope) and bool((value >= 0).all())
    ),
    "counts": lambda args, value, scope: (
        _CALLED["int64"](args[1:], value, scope)
        and bool((value >= 0).all() and (value <= _value(args[0], scope)).all())
    ),
    "several": lambda args, value, scope: (
        type(value) is tuple
        and _is_size(args[1], len(value), scope)
        and all(_is(args[0], each, scope.copy()) for each in value)
    ),
    "csr": _is_csr,
    "weights": _is_weights,
    "flat": _is_flat,
    "natural": lambda args, value, scope: (
        _is_int(value) and 0 <= value <= int(_value(args[0], scope))
    ),
    "same": lambda args, value, scope: value is _value(args[0], scope),
    "equal": lambda args, value, scope: _same_value(value, _value(args[0], scope)),
}

# ---------------------------------------------------------------------- expressions


_ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}


def _value(node: ast.expr, scope: _Scope) -> Any:
    """Return the value of an expression of fields and sizes."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        # an optional field that a file lacks is None
        return scope.sizes[node.id] if node.id in scope.sizes else scope.fields.get(node.id)
    if isinstance(node, ast.Attribute):
        return getattr(_value(node.value, scope), node.attr)
    if isinstance(node, ast.Subscript):
        return _value(node.value, scope)[_value(node.slice, scope)]
    if isinstance(node, ast.IfExp):
        return _value(node.body if _value(node.test, scope) else node.orelse, scope)
    if isinstance(node, ast.BoolOp):
        return all(_value(each, scope) for each in node.values)  # the table only uses "and"
    if isinstance(node, ast.Compare):
        left, right = _value(node.left, scope), _value(node.comparators[0], scope)
        return left in right if isinstance(node.ops[0], ast.In) else left == right
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, scope), _value(node.right, scope)
        return _ARITHMETIC[type(node.op)](left, right)
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    (only,) = node.args
    functions: dict[str, Callable[[Any], Any]] = {"len": len, "int": int, "sum": sum}
    return functions[node.func.id](_value(only, scope))


def _described(value: Any) -> str:
    """Return a short description of a value, for messages."""
    if isinstance(value, np.ndarray):
        finite = value.dtype.kind not in "fc" or bool(np.isfinite(value).all())
        return f"{value.dtype}{value.shape}" + ("" if finite else " with NaN or infinity")
    if sp.issparse(value):
        return f"csr{value.shape} of {value.dtype}"
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."

"""Arrays of the fits of many series, which are written one after the other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir.estimators.persistence.archive import Archive

_FIELD = "_fits"  # whose arrays are stacked; its objects do not change
ORDERS = {"rows": "C", "columns": "F"}  # by the key of a reference: the order in memory


def stacked(value: Any, arrays: dict[str, Array]) -> tuple[Any, list[Any], dict[str, Array]]:
    """Return JSON, references to the stacks, and the arrays, with those of fits stacked.

    There is a stack for each dtype. The reference to an array in it is the number of the stack, the
    place of the first item, and the shape. Equal arrays are written once: networks with one seed.
    """
    stacks: dict[str, list[Array]] = {}
    places: dict[Any, list[int]] = {}
    sizes: dict[str, int] = {}
    others = dict(arrays)

    def replaced(each: Any) -> Any:
        if isinstance(each, list):
            return list(map(replaced, each))
        if not isinstance(each, dict):
            return each
        key = each.get("array")
        if not isinstance(key, str):
            return {name: replaced(part) for name, part in each.items()}
        if key.partition(":")[2].partition(".")[0] != _FIELD:
            return each
        array = others.pop(key)
        kind = "rows" if array.flags.c_contiguous or not array.flags.f_contiguous else "columns"
        flat, dtype = array.ravel(order=ORDERS[kind]), array.dtype.str  # type: ignore[arg-type]
        content = dtype, kind, array.shape, flat.tobytes()
        if content not in places:
            stack, start = stacks.setdefault(dtype, []), sizes.get(dtype, 0)
            places[content] = [list(stacks).index(dtype), start, *array.shape]
            stack.append(flat)
            sizes[dtype] = start + flat.size
        return {kind: places[content]}

    header = replaced(value)
    made = {f"{i}:{_FIELD}": np.concatenate(parts) for i, parts in enumerate(stacks.values())}
    return header, [{"array": name} for name in made], others | made


class Stacks:
    """The stacks of a file, from which arrays are read.

    `named` are references to the stacks, as from `stacked`; `value` is the JSON that refers to
    their arrays. A ValueError is raised if one of `named` is no reference, or if items of a stack
    belong to no array, or to several.
    """

    def __init__(self, archive: Archive, named: list[Any], value: Any) -> None:
        self._flat = [archive.read(each["array"]) for each in named]
        self._made: dict[Any, Array] = {}
        spans: list[dict[int, Any]] = [{} for _ in named]
        for kind, place in _references(value):
            plain = type(place) is list and all(type(n) is int and n >= 0 for n in place)
            if not plain or len(place) < 2 or place[0] >= len(named):
                raise ValueError(f"{place!r} is no place in a stack")
            number, start, *shape = place
            if any(n > archive.size for n in shape):
                raise ValueError(f"an array in a stack has shape {shape}")
            if math.prod(shape) == 0:
                continue
            if spans[number].setdefault(start, (kind, shape)) != (kind, shape):
                raise ValueError(f"two arrays are at {start} of a stack")
        for flat, found in zip(self._flat, spans, strict=True):
            end = 0
            for start in sorted(found):
                if start != end:
                    raise ValueError(f"a stack has an array at {start}, where {end} is due")
                end += math.prod(found[start][1])
            if flat.ndim != 1 or end != len(flat):
                raise ValueError(f"a stack has the shape {flat.shape}, but {end} items are used")

    def take(self, kind: str, place: list[int]) -> Array:
        """Return an array; equal references give the same object."""
        key = kind, *place
        if key not in self._made:
            number, start, *shape = place
            flat = self._flat[number][start : start + math.prod(shape)]
            order: Any = ORDERS[kind]
            self._made[key] = flat.reshape(shape, order=order).copy(order=order)
        return self._made[key]


def _references(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the references to arrays in stacks."""
    if isinstance(value, list):
        for each in value:
            yield from _references(each)
    elif isinstance(value, dict):
        for kind, content in value.items():
            if kind in ORDERS and len(value) == 1:
                yield kind, content
            else:
                yield from _references(content)

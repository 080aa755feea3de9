"""A .npz file of arrays and one text: written atomically, and checked before it is read."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import re
import secrets
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from reservoir._typing import Array

_HEADER = "header"
_STRAY = "allow_pickle.npy"  # an entry that `numpy.savez` before 2.3 made of its argument
_DEEPEST = 200  # nested brackets; files written by `save` have far fewer
_LONGEST = 2**16  # bytes of the header of an array
_KINDS = "biufcUSMm"  # kinds of dtypes: no objects, no records
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


def write_archive(
    file: str | os.PathLike[str], header: str | bytes, arrays: dict[str, Array]
) -> None:
    """Write arrays and a text to a file; an existing file is replaced once all data are written.

    A header in bytes takes a quarter of the space of a str.
    """
    with _replacing(Path(file)) as stream, zipfile.ZipFile(stream, "w") as archive:
        for name, array in {_HEADER: np.array(header), **arrays}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file for writing, which replaces the file at `path` when it is complete."""
    if not _is_replaceable(path):
        with path.open("wb") as stream:
            yield stream
        return
    target = Path(os.path.realpath(path))
    mode = None
    if target.exists():
        with target.open("r+b") as old:  # raises an error if the file may not be written
            mode = stat.S_IMODE(os.fstat(old.fileno()).st_mode)
    partial = target.with_name(f"{target.name[:40]}.{secrets.token_hex(4)}.partial")
    try:
        # mode "x" gives the default permissions of new files
        with partial.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            partial.chmod(mode)
        os.replace(partial, target)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise
    _sync_folder(target.parent)


def _is_replaceable(path: Path) -> bool:
    """Whether a file can be replaced by a new one; else it is written in place.

    Pipes and devices are written in place, and files in a folder without write access.
    """
    # /dev/stdout may be any file; C:/dev is an ordinary folder
    if path.absolute().as_posix().startswith(("/dev/", "/proc/")):
        return False
    try:
        plain = stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return True
    return plain and os.access(Path(os.path.realpath(path)).parent, os.W_OK)


def _sync_folder(folder: Path) -> None:
    """Flush the folder of a new file to disk, so that its name survives a loss of power."""
    with contextlib.suppress(OSError, AttributeError):  # Windows cannot open folders
        number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


class _Entry(NamedTuple):
    """An array in the file: its entry, and the dtype in its header."""

    info: zipfile.ZipInfo
    dtype: np.dtype[Any]


class Archive:
    """A file of arrays and a text, opened for reading; another file raises a ValueError.

    Memory is allocated only for data in the file: entries are stored uncompressed, in total not
    larger than the file, and their sizes match their shapes and dtypes. `stream` stays open while
    arrays are read. `size`, the file's in bytes, bounds each dimension of an array; `header` is the
    text, read as JSON.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self.size = stream.seek(0, os.SEEK_END)
        self._zip = zipfile.ZipFile(stream)
        entries = [info for info in self._zip.infolist() if info.filename != _STRAY]
        if any(info.compress_type != zipfile.ZIP_STORED for info in entries):
            raise ValueError("its entries are compressed")
        if sum(max(info.file_size, info.compress_size) for info in entries) > self.size:
            raise ValueError("in total, its entries are larger than the file")
        self._infos = {info.filename.removesuffix(".npy"): info for info in entries}
        if len(self._infos) < len(entries):
            raise ValueError("it contains an entry twice")
        self._entries = {name: self._entry(info) for name, info in self._infos.items()}
        self.header = self._read_header()

    @property
    def names(self) -> set[str]:
        """Names of the arrays."""
        return self._entries.keys() - {_HEADER}

    def read(self, name: str) -> Array:
        """Return an array in the byte order of this machine."""
        entry = self._entries[name]
        with self._zip.open(entry.info) as stream:
            array = np.lib.format.read_array(stream, allow_pickle=False)
        return array.astype(entry.dtype.newbyteorder("="), copy=False)

    def _entry(self, info: zipfile.ZipInfo) -> _Entry:
        """Return an entry, after checking that its size matches its shape and dtype."""
        with self._zip.open(info) as stream:
            version = np.lib.format.read_magic(stream)  # type: ignore[no-untyped-call]
            start = io.BytesIO(stream.read(_LONGEST))
            read = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }[version]
            shape, _, dtype = read(start)  # type: ignore[no-untyped-call]
            length = 8 + start.tell()
        if dtype.kind not in _KINDS or dtype.itemsize == 0:
            raise ValueError(f"{info.filename} has dtype {dtype}")
        if info.file_size != length + math.prod(shape) * dtype.itemsize:
            raise ValueError(f"the size of {info.filename} does not match shape {shape} of {dtype}")
        if any(not 0 <= n <= self.size for n in shape):
            raise ValueError(f"{info.filename} has shape {shape}")
        return _Entry(info, dtype)

    def _read_header(self) -> Any:
        if _HEADER not in self._entries or self._entries[_HEADER].dtype.kind not in "US":
            raise ValueError("it has no header")
        given = self.read(_HEADER)[()]
        text = given.decode() if isinstance(given, bytes) else str(given)
        depth = deepest = 0
        for bracket in re.findall(r"[\[\]{}]", _STRING.sub("", text)):
            depth += 1 if bracket in "[{" else -1
            deepest = max(deepest, depth)
        if deepest > _DEEPEST:
            raise ValueError(f"its header is {deepest} brackets deep")
        return json.loads(text)

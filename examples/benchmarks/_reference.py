"""The C yardstick of the benchmarks: builds _reference.c on the spot and calls it."""

from __future__ import annotations

import atexit
import ctypes
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from reservoir.dynamics import Reservoir

BATCH = 32  # sequences that `CNetwork.run_batch` takes in float64, twice as many in float32
BASE = ["-O3", "-march=native", "-fPIC", "-shared"]
SCALAR = "C, scalar loads"
KINDS = {SCALAR: [], "C, gathers": ["-DGATHER"]}


class Build(NamedTuple):
    """What was built: libraries by (kind, dtype name), and a sentence about it."""

    libraries: dict[tuple[str, str], ctypes.CDLL]
    message: str

    @property
    def kinds(self) -> list[str]:
        return sorted({kind for kind, _ in self.libraries}, reverse=True)


def build(kinds: Iterable[str] = tuple(KINDS)) -> Build:
    """Compile some kinds for both dtypes; what the machine cannot do is left out."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        return Build({}, "no C compiler (cc, gcc, clang) found: the rows of C are left out")
    folder = Path(tempfile.mkdtemp(prefix="reservoir-benchmark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    start, libraries, complaint = time.perf_counter(), {}, ""
    for kind in kinds:
        for dtype, real in (("float64", ["-DREAL=double"]), ("float32", ["-DREAL=float"])):
            single = ["-DSINGLE"] if dtype == "float32" else []
            target = folder / f"{kind.replace(', ', '_').replace(' ', '_')}_{dtype}.so"
            complaint = _compile(compiler, [*KINDS[kind], *real, *single], target)
            if target.exists():
                libraries[kind, dtype] = ctypes.CDLL(str(target))
    if not libraries:
        return Build({}, f"{compiler} failed, the rows of C are left out: {complaint}")
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    built = " and ".join(sorted({kind for kind, _ in libraries}))
    return Build(libraries, f"{built}: {version.stdout.splitlines()[0]}, built in {seconds:.1f} s")


def _compile(compiler: str, flags: list[str], target: Path) -> str:
    """Build the shared library `target`; return the complaint, if any."""
    source = str(Path(__file__).with_name("_reference.c"))
    complaint = ""
    for wide in (["-mprefer-vector-width=512"], []):  # x86 only, and GCC asks for it
        command = [compiler, *BASE, *wide, *flags, source, "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return ""
        complaint = done.stderr.strip().splitlines()[0] if done.stderr else "no message"
    return complaint


class CNetwork:
    """A reservoir (tanh, one leak rate, no feedback) packed for the C functions.

    `by_diagonals` is for a sparse W whose entries lie on few diagonals, taken modulo its size.
    """

    def __init__(
        self, library: ctypes.CDLL, reservoir: Reservoir, by_diagonals: bool = False
    ) -> None:
        self.library = library
        self.n_units, self.n_inputs = reservoir.n_units, reservoir.n_features
        self.dtype = reservoir.dtype
        self.leak = (ctypes.c_float if self.dtype == np.float32 else ctypes.c_double)(
            reservoir.leak_rate
        )
        self.lanes = 64 // self.dtype.itemsize
        self.batch = 4 * self.lanes
        W_in = reservoir.W_in.toarray() if sp.issparse(reservoir.W_in) else reservoir.W_in
        self.W_in = self._padded(W_in.T)
        self.bias = self._padded(reservoir.bias[None])
        if by_diagonals:
            self.function, self.W = "diagonals_run", self._diagonals(reservoir.W)
        elif sp.issparse(reservoir.W):
            self.function, self.W = "sparse_run", self._sell(reservoir.W)
            self.csr = self._csr(reservoir.W)
        else:
            self.function, self.W = "dense_run", (self._padded(reservoir.W),)

    def _padded(self, rows: np.ndarray) -> np.ndarray:
        padded = np.zeros((len(rows), -(-self.n_units // self.lanes) * self.lanes), self.dtype)
        padded[:, : self.n_units] = rows
        return padded

    def _diagonals(self, W: sp.csr_array) -> tuple[Any, ...]:
        """Number of diagonals, their offsets, and weights by diagonal and row."""
        row = np.repeat(np.arange(self.n_units), np.diff(W.indptr))
        offset, place = np.unique((W.indices - row) % self.n_units, return_inverse=True)
        weight = np.zeros((len(offset), self.n_units), self.dtype)
        weight[place, row] = W.data
        return ctypes.c_long(len(offset)), offset.astype(np.int64), self._padded(weight)

    def _csr(self, W: sp.csr_array) -> tuple[np.ndarray, ...]:
        return W.indptr.astype(np.int64), W.indices.astype(np.uint32), np.array(W.data)

    def _sell(self, W: sp.csr_array) -> tuple[np.ndarray, ...]:
        """Slices of `lanes` rows, entry k of each row side by side, padded with zeros."""
        lanes, degree = self.lanes, np.diff(W.indptr)
        padded = np.append(degree, np.zeros(-self.n_units % lanes, degree.dtype))
        width = padded.reshape(-1, lanes).max(axis=1)
        start = np.append(0, np.cumsum(width * lanes)).astype(np.int64)
        row = np.repeat(np.arange(self.n_units), degree)
        place = np.arange(W.nnz) - W.indptr[row]
        target = start[row // lanes] + place * lanes + row % lanes
        index, weight = np.zeros(start[-1], np.uint32), np.zeros(start[-1], self.dtype)
        index[target], weight[target] = W.indices, W.data
        return start, index, weight

    def _call(self, function: str, n_steps: int, weights: tuple[Any, ...], *rest: Any) -> None:
        arguments = (*weights, self.W_in, self.bias, self.leak, *rest)
        sizes = map(ctypes.c_long, (n_steps, self.n_units, self.n_inputs))
        getattr(self.library, function)(*sizes, *map(_pointer, arguments))

    def run(
        self, X: np.ndarray, start: np.ndarray | None = None, out: np.ndarray | None = None
    ) -> np.ndarray:
        """States of every step, shape (n_steps, n_units)."""
        X = np.ascontiguousarray(X, self.dtype)
        states = np.empty((len(X), self.n_units), self.dtype) if out is None else out[: len(X)]
        start = np.zeros(self.n_units, self.dtype) if start is None else start
        self._call(self.function, len(X), self.W, start, X, states)
        return states

    def run_batch(self, X: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """States of `batch` sequences X (batch, n_steps, n_inputs), those of each contiguous."""
        inputs = np.ascontiguousarray(X.transpose(1, 2, 0), self.dtype)
        shape = self.batch, len(inputs), self.n_units
        states = np.empty(shape, self.dtype) if out is None else out
        self._call("batch_run", len(inputs), self.csr, inputs, states)
        return states

    def generate(
        self,
        readout: tuple[np.ndarray, np.ndarray],
        n_steps: int,
        start: np.ndarray,
        first: np.ndarray,
    ) -> np.ndarray:
        """Outputs of the closed loop, shape (n_steps, n_inputs)."""
        coef, intercept = (np.ascontiguousarray(part, self.dtype) for part in readout)
        outputs = np.empty((n_steps, self.n_inputs), self.dtype)
        self._call("sparse_loop", n_steps, self.W, start, first, coef, intercept, outputs)
        return outputs


def _pointer(value: Any) -> Any:
    return ctypes.c_void_p(value.ctypes.data) if isinstance(value, np.ndarray) else value

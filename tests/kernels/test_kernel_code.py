"""Compiled code that several processes made and one loads: equal names must have equal code.

Kernels are stored on disk, so a process runs code that others compiled in any order, and functions
of one name are taken to be the same. The first tests read the code; the last ones fill a cache from
several processes and run everything from it, between guard pages.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import reservoir
from reservoir import _kernels

pytest.importorskip("numba")
if _kernels.disabled():
    pytest.skip("NUMBA_DISABLE_JIT", allow_module_level=True)

from numba import njit
from test_kernel_memory import SCRIPT, guards

from helpers.guarded_kernels import draw_network, draw_reservoir
from reservoir._kernels import _compile, _lanes, _pooling, _recurrent, _time_loops

COUNTER = re.compile(r"B\d+v\d+")  # what numba counts in one process: parts no two of several


def kernels():
    """Return every kernel, with the types it has been called with."""
    for kind, cells in (("float64", ("simple", "lstm", "gru")), ("float32", ("gru",))):
        for cell in cells:
            network, _ = draw_network(np.random.default_rng(0), 3, 3, 5, cell=cell, dtype=kind)
            network(_kernels, np.copy)
        for sparse in (True, False):
            rng = np.random.default_rng(0)
            draw_reservoir(rng, 3, 9, 13, sparse=sparse, dtype=kind)[0]("numba")
    _kernels.activate(np.zeros(3), 0)
    found = {
        name: thing
        for module in (_time_loops, _lanes, _recurrent, _pooling)
        for name, thing in vars(module).items()
        if isinstance(getattr(thing, "_cache", None), _compile.Cache)
    }
    assert len(found) == 15
    return found


def functions_in(code):
    """Return the names of the functions that compiled code holds, the counters taken out."""
    names = re.findall(r'^define [^@]*@"?([^"(\s]+)"?\(', code, re.M)
    return [COUNTER.sub("B", name) for name in names]


def source_of(name):
    """Return module and qualified name of a function in compiled code; None of what C code bears.

    ``_ZN9reservoir8_kernels6_loops5_relu...`` is `reservoir._kernels._time_loops._relu`.
    """
    parts, rest = [], name.removeprefix("_ZN")
    while rest != name and (size := re.match(r"\d+", rest)):
        begin = size.end()
        parts.append(rest[begin : begin + int(size[0])])
        rest = rest[begin + int(size[0]) :]
    return ".".join(part.replace("_3c", "<").replace("_3e", ">") for part in parts) or None


@pytest.fixture(scope="module")
def code():
    """Kernel and types -> its code, compiled anew: what comes from the disk cannot be read."""
    compiled = {}
    for name, kernel in kernels().items():
        for signature in kernel.signatures:
            anew = njit(nogil=True, **_compile.OPTIONS)(kernel.py_func)
            anew.compile(signature)
            compiled[name, str(signature)] = functions_in(anew.inspect_llvm(signature))
    return compiled


@pytest.mark.slow
def test_no_kernel_holds_two_functions_of_one_name(code):
    """Red with the strips of `_panels` made by a factory: two sizes, one name, memory overrun."""
    for kernel, names in code.items():
        twice = {name for name in names if names.count(name) > 1}
        assert not twice, (kernel, twice)
    assert any("add_product" in name for names in code.values() for name in names)


@pytest.mark.slow
def test_each_name_in_the_code_is_that_of_one_function(code):
    """What `_compile.named` has let pass bears a name of its own; all the code is made of it."""
    found = {source_of(name) for names in code.values() for name in names}
    ours = {name for name in found if name is not None and name.startswith("reservoir.")}
    assert ours <= set(_compile._NAMED)
    assert "reservoir._kernels._panels.add_product" in ours
    # what else LLVM leaves as a function of its own depends on the processor
    assert any(name.startswith("reservoir._kernels._time_loops.") for name in ours)
    assert source_of("_ZN3abc12_3clocals_3e1fB2v1") == "abc.<locals>.f"


def test_functions_without_a_unique_name_raise():
    def within(z):
        z[0] = 1

    for decorate in (_compile.inner, _compile.kernel):
        with pytest.raises(TypeError, match="top level"):
            decorate(within)
        with pytest.raises(TypeError, match="top level"):
            decorate(lambda z: None)

    namespace = {"__name__": "somewhere"}
    exec("def f(z):\n    z[0] = 1", namespace)
    first = namespace["f"]
    assert _compile.named(first) is first
    exec("def f(z):\n    z[0] = 2", namespace)
    with pytest.raises(TypeError, match="twice"):
        _compile.named(namespace["f"])


def test_code_kept_on_disk_knows_how_it_gathers(monkeypatch):
    """The processor's own instruction, or loads: a setting of the system, not of the processor."""
    _kernels.load()
    cache, codegen = _time_loops.advance._cache, _time_loops.advance.targetctx.codegen()
    keys = set()
    for fast in (True, False):
        monkeypatch.setattr(_compile, "gathers_fast", lambda *machine, fast=fast: fast)
        keys.add(cache._index_key((), codegen))
    assert len(keys) == 2


# --- processes that share a cache

ORDERS = [  # what each process compiles, one after the other, before one runs everything
    ("random", (["lstm"], ["simple"], ["gru"])),
    ("0", (["gru", "simple"], ["lstm"], ["simple", "reservoir", "lstm", "pool"])),
]


@pytest.mark.slow
@guards
@pytest.mark.parametrize("hash_seed, processes", ORDERS)
def test_code_of_several_processes_runs_in_one(processes, hash_seed, tmp_path):
    folders = str(Path(reservoir.__file__).parents[1]), os.environ.get("PYTHONPATH", "")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(folders),
        "PYTHONHASHSEED": hash_seed,
        "NUMBA_CACHE_DIR": str(tmp_path),
    }
    pooled = {"pool"} if any("pool" in kinds for kinds in processes) else set()
    for kinds in (*processes, ["all", *pooled]):
        done = subprocess.run(
            [sys.executable, SCRIPT, "sizes", *kinds],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (kinds, done.stdout[-200:], done.stderr[-2000:])

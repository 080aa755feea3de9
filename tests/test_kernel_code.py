"""Compiled code that several processes made and one loads: names that meet must mean the same.

Kernels are kept on disk. A process then runs code that others compiled, in whatever order they
did, and functions that bear one name in it are taken for one. The first tests read the code; the
last ones fill a cache from several processes and run everything from it, between guard pages.
"""

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import reservoir
from reservoir import _kernels

pytest.importorskip("numba")
if _kernels.disabled():
    pytest.skip("NUMBA_DISABLE_JIT", allow_module_level=True)

from numba import njit
from test_kernel_memory import draw_network, draw_reservoir, guards

from reservoir._kernels import _compile, _loops, _recurrent

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
        for module in (_loops, _recurrent)
        for name, thing in vars(module).items()
        if isinstance(getattr(thing, "_cache", None), _compile.Cache)
    }
    assert len(found) == 13
    return found


def functions_in(code):
    """Return name -> instructions of the functions that compiled code holds, without counters."""
    held = defaultdict(list)
    for name, body in re.findall(r'^define [^@]*@"?([^"(\s]+)"?\(.*?\{$(.*?)^}', code, re.M | re.S):
        body = re.sub(r"^\S+:.*$|;.*$|[#!][\w.]+", "", COUNTER.sub("B", body), flags=re.M)
        body = re.sub(r'%"?[\w.$-]+"?', "%", body)  # how values and blocks are called
        held[COUNTER.sub("B", name)].append(" ".join(body.split()))
    return held


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


def test_no_kernel_holds_two_functions_of_one_name(code):
    """Red with the strips of `_panels` made by a factory: two sizes, one name, memory overrun."""
    for kernel, functions in code.items():
        twice = [name for name, texts in functions.items() if len(texts) > 1]
        assert not twice, (kernel, twice)
    assert any("add_product" in name for functions in code.values() for name in functions)


def test_functions_of_one_name_are_one_function_in_every_kernel(code):
    seen = {}
    for kernel, functions in code.items():
        for name, (text,) in functions.items():
            assert seen.setdefault(name, text) == text, (kernel, name)
    assert len(seen) < sum(map(len, code.values()))  # some are shared


def test_functions_without_a_name_of_their_own_are_refused():
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
    cache, codegen = _loops.advance._cache, _loops.advance.targetctx.codegen()
    keys = set()
    for fast in (True, False):
        monkeypatch.setattr(_compile, "gathers_fast", lambda *machine, fast=fast: fast)
        keys.add(cache._index_key((), codegen))
    assert len(keys) == 2


# --- processes that share a cache

ORDERS = [  # what each process compiles, one after the other, before one runs everything
    ("0", ["lstm"], ["simple"], ["gru"]),
    ("random", ["lstm"], ["simple"], ["gru"]),
    ("random", ["reservoir", "gru"], ["simple"], ["lstm", "gru"]),
    ("0", ["gru", "simple"], ["lstm"], ["simple", "reservoir", "lstm"]),
]


@guards
@pytest.mark.parametrize("hash_seed, processes", [(seed, rest) for seed, *rest in ORDERS])
def test_code_of_several_processes_runs_in_one(processes, hash_seed, tmp_path):
    folders = str(Path(reservoir.__file__).parents[1]), os.environ.get("PYTHONPATH", "")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(folders),
        "PYTHONHASHSEED": hash_seed,
        "NUMBA_CACHE_DIR": str(tmp_path),
    }
    script = str(Path(__file__).with_name("test_kernel_memory.py"))
    for kinds in (*processes, ["all"]):
        done = subprocess.run(
            [sys.executable, script, "sizes", *kinds],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (kinds, done.stdout[-200:], done.stderr[-2000:])

"""Peak memory of a call, and running a function in a process of its own."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1")


def measure(job: Callable[[], Any]) -> tuple[float, float]:
    """Seconds of ``job()``, and how far its peak lies above the memory held before, in MB."""
    gc.collect()
    if sys.platform == "linux":  # what was freed before must not serve the job unseen
        getattr(ctypes.CDLL(None), "malloc_trim", int)(0)
    before = _resident_mb()
    start = time.perf_counter()
    job()
    return time.perf_counter() - start, _peak_mb() - before


def _resident_mb() -> float:
    """Resident size; the kernel's record of the peak starts again from here where it can."""
    if not STATUS.exists():
        return _peak_mb()
    CLEAR.write_text("5")  # loading and compiling may have left a higher peak behind
    return _status_mb("VmRSS")


def resident_mb() -> float:
    """What this process holds now, in MB; where nobody says so, the most it has held."""
    return _status_mb("VmRSS") if STATUS.exists() else _peak_mb()


def _peak_mb() -> float:
    # Linux: not ru_maxrss, which a process inherits from the one that started it
    if STATUS.exists():
        return _status_mb("VmHWM")
    import resource  # Windows has none: who measures there is told so here

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def _status_mb(key: str) -> float:
    found = re.search(rf"{key}:\s+(\d+) kB", STATUS.read_text())
    assert found is not None
    return int(found[1]) * 1024 / 1e6


def in_child(module: str, function: str, *args: Any, **environment: str) -> Any:
    """Return ``module.function(*args)`` of a fresh process on one BLAS thread, through JSON."""
    code = (
        f"import json, sys, warnings; warnings.simplefilter('ignore'); "
        f"sys.path.insert(0, {str(Path(__file__).parent)!r}); import {module}; "
        f"print(json.dumps({module}.{function}(*json.loads(sys.argv[1]))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(args)],
        capture_output=True,
        text=True,
        env={**os.environ, **ONE_THREAD, **environment},
        check=False,
    )
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1] if done.stderr else "no message"
        raise RuntimeError(last.removeprefix("_timing.LeftOut: "))
    return json.loads(done.stdout.splitlines()[-1])

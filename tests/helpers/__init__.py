"""What tests of several folders share; `tests` is on the path wherever its conftest.py is read."""

import contextlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]  # of the checkout


@contextlib.contextmanager
def benchmark_scripts():
    """Let a module of tests import benchmark scripts; skip it where there is no checkout."""
    folder = ROOT / "examples" / "benchmarks"
    if not folder.exists():
        pytest.skip("needs the checkout", allow_module_level=True)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))

"""Results to the bit can be recorded, and differences are found."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from helpers.results import compare

ROOT = Path(__file__).resolve().parents[2]


def test_a_bit_a_dtype_or_a_name_that_differs_is_told(tmp_path, capsys):
    file, arrays = tmp_path / "before.npz", {"a": np.ones(3), "b": np.arange(2)}
    np.savez(file, **arrays)
    assert compare(arrays, file) == 0
    other = {"a": np.nextafter(arrays["a"], 2), "b": arrays["b"].astype(np.int32), "c": np.ones(1)}
    assert compare(other, file) == 3
    assert capsys.readouterr().out.split("\n")[1:] == ["a", "b", "c", ""]


@pytest.mark.slow
def test_every_configuration_runs_on_the_engine_asked_for(tmp_path):
    script = ROOT / "tests" / "helpers" / "results.py"
    command = [sys.executable, str(script), "record", str(tmp_path / "results.npz"), "float32"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}  # the checkout's package, not an installed one
    run = subprocess.run(command, env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    assert "configurations" in run.stdout

"""Jobs of `speed.py`: each that needs neither a compiler nor a peer prints and writes its table."""

import subprocess
import sys

import pytest

from helpers import ROOT

SCRIPT = ROOT / "examples" / "benchmarks" / "speed.py"
if not SCRIPT.exists():
    pytest.skip("needs the checkout", allow_module_level=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "job", ["batch", "few_rows", "mackey_glass", "radius", "ridge", "search", "small"]
)
def test_a_quick_job_prints_and_writes_its_table(job, tmp_path):
    options = ["--quick", "--rounds", "1", "--out", str(tmp_path)]
    command = [sys.executable, str(SCRIPT), job, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"=== {job} ===" in done.stdout
    assert len((tmp_path / f"{job}.csv").read_text(encoding="utf-8").splitlines()) > 1

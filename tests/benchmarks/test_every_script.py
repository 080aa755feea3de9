"""Every script of the benchmarks says how it is called; tools that no other test runs still run."""

import subprocess
import sys

import pytest

from helpers import ROOT

FOLDER = ROOT / "examples" / "benchmarks"
if not FOLDER.exists():
    pytest.skip("needs the checkout", allow_module_level=True)
pytestmark = [pytest.mark.one_engine, pytest.mark.slow]
# each as a program, in one process: imports take most of the time
HELP = """
import runpy, sys
folder, *scripts = sys.argv[1:]
sys.path.insert(0, folder)
for script in scripts:
    sys.argv = [script, "--help"]
    try:
        runpy.run_path(f"{folder}/{script}.py", run_name="__main__")
    except SystemExit as done:
        if not done.code:
            continue
    print(f"{script} does not end after --help", file=sys.stderr)
"""


def run(*command):
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=ROOT)


def test_every_script_describes_its_arguments():
    scripts = sorted(file.stem for file in FOLDER.glob("[a-z]*.py"))
    assert len(scripts) > 50
    done = run("-W", "error", "-c", HELP, str(FOLDER), *scripts)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("usage:") == len(scripts)


@pytest.mark.parametrize("tool", ["certificate_fuzz", "quadratic_fuzz"])
def test_attempts_to_break_proofs_run(tool):
    done = run(str(ROOT / "tests" / "helpers" / f"{tool}.py"), "10", "1")
    assert done.returncode == 0, done.stderr[-2000:]
    assert "\n0 " in done.stdout  # violations, false proofs


def test_a_fault_is_looked_for():
    done = run(
        str(ROOT / "tests" / "faults" / "run.py"), "narma-lag", "--reach", "near", "--fast-only"
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.endswith("1 faults: 1 caught, 1 of these by fast tests.\n")

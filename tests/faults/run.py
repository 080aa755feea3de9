"""Make each fault of this folder in a copy of the checkout, and see which tests catch it.

    python tests/faults/run.py                      # all of them: hours
    python tests/faults/run.py --fast-only          # with the fast tests alone
    python tests/faults/run.py --reach near nadam   # those of such a name, in the folders nearby

The faults are those that developers make: a sign, an axis, one row too many, a weight that is
forgotten. They show whether the fast tests suffice: nine tenths of what all tests catch should be
caught by the fast ones, and a fault that nothing catches is a test that is missing.

For each fault the fast tests run folder by folder, those of its own package first, then those of
packages nearby, then all, until one fails. Where none does, the slow tests follow in the same
order. A test that also fails without the fault does not count: the script stops there. `--reach`
leaves out what is farther away. What it prints is the table, a line for each fault.

A patch that no longer fits after a change of the source is made anew, by hand: put the fault in,
`git diff reservoir/FILE > tests/faults/NAME.patch`, and take it out again.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from helpers.patches import patched, patched_file  # noqa: E402 (run as a script)

# Folders of tests where a fault may show besides that of its own package.
NEARBY = {
    "activations": ["dynamics", "kernels", "stability"],
    "datasets": ["benchmarks"],
    "dynamics": ["kernels", "estimators"],
    "estimators": ["saving", "contracts"],
    "kernels": ["dynamics", "training"],
    "loops": ["series_models", "model_selection", "estimators"],
    "metrics": ["model_selection", "stability"],
    "model_selection": ["estimators/forecasting"],
    "modules": ["topologies", "scaling", "contracts", "estimators", "stability"],
    "plotting": ["model_selection"],
    "readouts": ["estimators", "model_selection"],
    "scaling": ["topologies", "modules"],
    "series_models": ["estimators/series"],
    "stability": ["plotting", "modules"],
    "topologies": ["modules", "scaling"],
    "training": ["estimators/rnn"],
    "validation": ["estimators", "contracts"],
}
REACHES = ["own", "near", "all"]
# A test of the patches themselves would always fail.
PYTEST = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--tb=no", "-rfE"]
PYTEST += ["--ignore=tests/house/test_faults.py"]
NOT_COPIED = shutil.ignore_patterns(".git", ".*cache", ".venv*", "build", "dist", "_build")


def stages(file, reach):
    """Return what is run for a fault in a file, one pytest after the other: lists of arguments."""
    package = Path(file).parts[1]
    own = "modules" if package.endswith(".py") else package.lstrip("_")
    # Doctests first: they are quick.
    found = [
        [f"reservoir/{package}", f"tests/{own}"],
        [f"tests/{name}" for name in NEARBY[own]],
        [],
    ]
    return found[: REACHES.index(reach) + 1]


def first_failure(copy, *arguments):
    """Return the name of the first test that fails in a copy of the checkout, or None."""
    env = {**os.environ, "PYTHONPATH": str(copy), "CI": "1", "OPENBLAS_NUM_THREADS": "1"}
    run = subprocess.run([*PYTEST, *arguments], cwd=copy, env=env, capture_output=True, text=True)
    if run.returncode in (0, 5):  # passed, or there are no such tests
        return None
    if failed := re.search(
        r"^(?:FAILED|ERROR) (\S+?::.*?|\S+)(?: - .*)?$", run.stdout, re.MULTILINE
    ):
        return failed.group(1)
    raise RuntimeError(f"pytest {arguments} went wrong:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")


def caught_by(copy, patch, *, reach, fast_only):
    """Return the kind of tests that catch a fault, "fast" or "slow", and the first one, if any."""
    name = patched_file(patch)
    path, times = copy / name, (copy / name).stat()
    text = path.read_text(encoding="utf-8")
    for kind in ("fast",) if fast_only else ("fast", "slow"):
        for stage in stages(name, reach):
            path.write_text(patched(text, patch), encoding="utf-8")
            failed = first_failure(copy, "-m", "not slow" if kind == "fast" else "slow", *stage)
            # Kernels' caches ask for the time of the file.
            path.write_text(text, encoding="utf-8")
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            if failed is None:
                continue
            if first_failure(copy, "-m", "", failed) is not None:
                raise RuntimeError(f"{failed} also fails without the fault.")
            return kind, failed
    return "", None


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="parts of the faults' names; all by default")
    parser.add_argument("--fast-only", action="store_true", help="leave the slow tests out")
    parser.add_argument("--reach", choices=REACHES, default="all", help="how far to look for tests")
    options = parser.parse_args()
    faults = sorted(Path(__file__).parent.glob("*.patch"))
    faults = [f for f in faults if not options.names or any(n in f.stem for n in options.names)]
    kinds = []
    print(f"{'fault':<48} {'room':<17} {'fast':<5} {'all':<5} first test that fails", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        shutil.copytree(ROOT, copy, ignore=NOT_COPIED)
        for fault in faults:
            patch = fault.read_text(encoding="utf-8")
            room = patched_file(patch).split("/")[1]
            kind, test = caught_by(copy, patch, reach=options.reach, fast_only=options.fast_only)
            kinds.append(kind)
            by_fast, by_all = ("yes" if yes else "no" for yes in (kind == "fast", kind))
            by_all = "?" if options.fast_only and not kind else by_all
            print(f"{fault.stem:<48} {room:<17} {by_fast:<5} {by_all:<5} {test or ''}", flush=True)
    n_caught = len(kinds) - kinds.count("")
    print(f"{len(kinds)} faults: {n_caught} caught, {kinds.count('fast')} of these by fast tests.")


if __name__ == "__main__":
    main()

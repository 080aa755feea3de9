"""Make each fault of this folder in a copy of the checkout, and see which tests catch it.

    python tests/faults/run.py                      # all of them: minutes, if all goes as before
    python tests/faults/run.py --fast-only          # with the fast tests alone
    python tests/faults/run.py --record             # notes in each patch which test has caught it
    python tests/faults/run.py --reach near nadam   # those of such a name, in the folders nearby

The faults are those that developers make: a sign, an axis, one row too many, a weight that is
forgotten. They show whether the fast tests suffice: nine tenths of what all tests catch should be
caught by the fast ones, and a fault that nothing catches is a test that is missing.

For each fault the test that its patch names ("Caught by:") runs first; then fast tests, folder by
folder, those of its own package, those of packages nearby, and all, until one fails. Where none
does, the slow tests follow in the same order. A test that also fails without the fault does not
count: the script stops there. `--reach` leaves out what is farther away. What it prints is the
table, a line for each fault.

A patch that no longer fits after a change of the source is made anew, by hand: put the fault in,
`git diff reservoir/FILE > tests/faults/NAME.patch`, and take it out again. Where nothing catches a
fault, the search through all tests takes an hour or more.
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
FAST, SLOW = "not slow", "slow"
CAUGHT_BY = "Caught by: "  # before the name of a test, on top of a patch
# A test of the patches themselves would always fail.
PYTEST = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--tb=no", "-rfE"]
PYTEST += ["--ignore=tests/house/test_faults.py"]
NOT_COPIED = shutil.ignore_patterns(".git", ".*cache", ".venv*", "build", "dist", "_build")


def stages(patch, reach):
    """Return what is run for a fault, one pytest after the other: lists of arguments."""
    package = Path(patched_file(patch)).parts[1]
    own = "modules" if package.endswith(".py") else package.lstrip("_")
    # Doctests first: they are quick.
    found = [
        [f"reservoir/{package}", f"tests/{own}"],
        [f"tests/{name}" for name in NEARBY[own]],
        [],
    ]
    named = re.findall(f"^{CAUGHT_BY}(.+)$", patch, re.MULTILINE)
    return [*([name] for name in named), *found[: REACHES.index(reach) + 1]]


def first_failure(copy, kind, arguments):
    """Return the name of the first test that fails in a copy of the checkout, or None."""
    env = {**os.environ, "PYTHONPATH": str(copy), "CI": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [*PYTEST, "-m", kind, *arguments]
    run = subprocess.run(command, cwd=copy, env=env, capture_output=True, text=True)
    failed = re.search(r"^(?:FAILED|ERROR) (\S+?::.*?|\S+)(?: - .*)?$", run.stdout, re.MULTILINE)
    if run.returncode == 1 and failed:
        return failed.group(1)
    if run.returncode in (0, 5) or "not found: " in run.stderr + run.stdout:  # passed, or none left
        return None
    raise RuntimeError(f"{command} went wrong:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")


def caught_by(copy, patch, kinds, reach):
    """Return the kind of tests that catch a fault, and the name of the first one, if any."""
    path = copy / patched_file(patch)
    text, times = path.read_text(encoding="utf-8"), path.stat()
    for kind in kinds:
        for stage in stages(patch, reach):
            path.write_text(patched(text, patch), encoding="utf-8")
            failed = first_failure(copy, kind, stage)
            path.write_text(text, encoding="utf-8")
            # The caches of kernels ask for the time of the file.
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            if failed is None:
                continue
            if first_failure(copy, "", [failed]) is not None:
                raise RuntimeError(f"{failed} also fails without the fault.")
            return kind, failed
    return None, ""


def recorded(patch, test):
    """Return a patch that names a test, without its parameters, in place of the one before."""
    rest = re.sub(f"^{CAUGHT_BY}.*\n", "", patch, flags=re.MULTILINE)
    return f"{CAUGHT_BY}{test.partition('[')[0]}\n{rest}"


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="parts of the faults' names; all by default")
    parser.add_argument("--fast-only", action="store_true", help="leave the slow tests out")
    parser.add_argument("--reach", choices=REACHES, default="all", help="how far to look for tests")
    parser.add_argument("--record", action="store_true", help="write names of tests into patches")
    options = parser.parse_args()
    faults = sorted(Path(__file__).parent.glob("*.patch"))
    faults = [f for f in faults if not options.names or any(n in f.stem for n in options.names)]
    kinds, found = [FAST] if options.fast_only else [FAST, SLOW], []
    print(f"{'fault':<48} {'room':<17} {'fast':<5} {'all':<5} first test that fails", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        shutil.copytree(ROOT, copy, ignore=NOT_COPIED)
        for fault in faults:
            patch = fault.read_text(encoding="utf-8")
            room = patched_file(patch).split("/")[1]
            kind, test = caught_by(copy, patch, kinds, options.reach)
            found.append(kind)
            by_fast, by_all = ("yes" if yes else "no" for yes in (kind == FAST, kind))
            by_all = "?" if options.fast_only and not kind else by_all
            print(f"{fault.stem:<48} {room:<17} {by_fast:<5} {by_all:<5} {test}", flush=True)
            if test and options.record:
                fault.write_text(recorded(patch, test), encoding="utf-8")
    n_caught = len(found) - found.count(None)
    print(f"{len(found)} faults: {n_caught} caught, {found.count(FAST)} of these by fast tests.")


if __name__ == "__main__":
    main()

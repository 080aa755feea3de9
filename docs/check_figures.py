"""Run a script whose figures are printed in the documentation, and compare with what is recorded.

Usage:

    python docs/check_figures.py NAME ...      # run again, compare with docs/measured/NAME.txt
    python docs/check_figures.py --all
    python docs/check_figures.py --record NAME [--tolerance 0.02] [--leave-out REGEX] COMMAND

A record begins with lines that start with "#": the command, when and where it ran, the tolerance,
and if need be a regular expression for text that is not compared, such as seconds. Then comes what
the command printed. Two runs agree if they print the same words and if each number is within the
tolerance, relative to the larger of the two, or within one unit of its last digit. Lines that name
a peer are left out where it is not installed.

What the pages print of a record is compared with it by `tests/pages/test_figures.py`.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import importlib.util
import math
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "docs" / "measured"
VERSIONS = (
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "reservoirpy",
    "dysts",
    "statsmodels",
    "aeon",
)
PEERS = ("aeon", "lightgbm", "reservoirpy", "river", "statsforecast")  # scripts do without them
# 1,000 is one number; so are .5, 1e-3 and 2.8e-3
NUMBER = re.compile(
    r"(?<![\w.])[-\u2212]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])"
)


def numbers_of(text: str) -> list[str]:
    """Return the numbers in a text, as they are printed."""
    return [found for found in NUMBER.findall(text) if re.search(r"\d", found)]


def value(number: str) -> float:
    """Return what a printed number is."""
    return float(number.replace(",", "").replace("\u2212", "-"))


def last_digit(number: str) -> float:
    """Return one unit of the last digit that is printed: 0.01 for 0.25, 1e-4 for 2.8e-3."""
    mantissa, _, exponent = number.partition("e")
    digits = len(mantissa.partition(".")[2])
    return 10.0 ** (int(exponent or 0) - digits)


def read(name: str) -> tuple[dict[str, str], str]:
    """Return the settings of a record, and the output."""
    lines = (RECORDS / f"{name}.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    head = [line for line in lines if line.startswith("# ")]
    settings = dict(line[2:].strip().split(": ", 1) for line in head)
    return settings, "".join(lines[len(head) :])


def run(command: str) -> str:
    """Return what a command prints that is written as in a clone's root; it runs elsewhere."""
    words = [str(ROOT / word) if (ROOT / word).is_file() else word for word in shlex.split(command)]
    words[0] = sys.executable if words[0] == "python" else words[0]
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT), *env.get("PYTHONPATH", "").split(os.pathsep)])
    with tempfile.TemporaryDirectory() as scratch:  # pictures that it writes are not wanted
        done = subprocess.run(words, cwd=scratch, env=env, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command}\n{done.stderr}")
    return done.stdout.replace(f"{scratch}{os.sep}", "")


def machine() -> str:
    """Return the processor and the versions that a record was made with."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        fields = dict(
            re.findall(r"^(model name|cpu family|model)\s*: (.*)$", info.read_text(), re.M)
        )
        cpu = "{model name} (family {cpu family}, model {model})".format_map(fields)
    installed = {found.name: found.version for found in importlib.metadata.distributions()}
    found = [f"{name} {installed[name]}" for name in VERSIONS if name in installed]
    return f"{cpu}, Python {platform.python_version()}, {', '.join(found)}"


def differences(old: str, new: str, tolerance: float, leave_out: str = "") -> list[str]:
    """Return where two outputs disagree, line by line."""
    if leave_out:
        old, new = (re.sub(leave_out, "", text, flags=re.MULTILINE) for text in (old, new))
    before, after = ([line for line in text.splitlines() if line.strip()] for text in (old, new))
    if len(before) != len(after):
        return [f"{len(before)} lines were recorded, {len(after)} are printed"]
    return [
        f"recorded: {a.strip()}\n printed: {b.strip()}"
        for a, b in zip(before, after, strict=True)
        if not _agree(a, b, tolerance)
    ]


def without_absent(output: str) -> str:
    """Return the lines of an output that name no library which is not installed here."""
    absent = [name for name in PEERS if importlib.util.find_spec(name) is None]
    lines = output.splitlines(keepends=True)
    return "".join(line for line in lines if not any(name in line for name in absent))


def _agree(old: str, new: str, tolerance: float) -> bool:
    if NUMBER.sub("", old).split() != NUMBER.sub("", new).split():
        return False
    pairs = list(zip(numbers_of(old), numbers_of(new), strict=False))
    return len(numbers_of(old)) == len(numbers_of(new)) and all(
        math.isclose(value(a), value(b), rel_tol=tolerance, abs_tol=1.01 * last_digit(a))
        for a, b in pairs
    )


def record(name: str, command: str, tolerance: float, leave_out: str) -> None:
    """Run a command, and keep what it prints."""
    output = run(command)
    head = {
        "command": command,
        "recorded": datetime.date.today().isoformat(),
        "machine": machine(),
        "tolerance": f"{tolerance:g}",
    }
    if leave_out:
        head["leave out"] = leave_out
    lines = [f"# {key}: {text}" for key, text in head.items()]
    rows = [line.rstrip() for line in output.splitlines()]
    (RECORDS / f"{name}.txt").write_text("\n".join([*lines, *rows]) + "\n", encoding="utf-8")


def main() -> None:
    """Read the arguments; compare or record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--all", action="store_true", help="compare every record")
    parser.add_argument("--record", metavar="NAME", help="keep what COMMAND prints under this name")
    parser.add_argument("--tolerance", type=float, default=0.02, help="relative (default 0.02)")
    parser.add_argument("--leave-out", default="", metavar="REGEX", help="text not to be compared")
    args = parser.parse_args()
    if args.record:
        return record(args.record, " ".join(args.names), args.tolerance, args.leave_out)
    failed = []
    for name in sorted(path.stem for path in RECORDS.glob("*.txt")) if args.all else args.names:
        settings, old = read(name)
        new = run(settings["command"])
        tolerance = float(settings["tolerance"])
        old = without_absent(old)
        found = differences(old, new, tolerance, settings.get("leave out", ""))
        print(f"{name}: {'agrees' if not found else 'differs'} ({settings['command']})", flush=True)
        print("".join(f"{text}\n" for text in found), end="")
        failed += [name] * bool(found)
    if failed:
        raise SystemExit(f"{len(failed)} records differ: {', '.join(failed)}")
    return None


if __name__ == "__main__":
    main()

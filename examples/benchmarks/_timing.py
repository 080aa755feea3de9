"""Timing in turns, the head that names machine and versions, tables, and CSV files."""

from __future__ import annotations

import csv
import importlib.metadata
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")
PEERS = ("reservoirpy", "pyrcn", "xesn", "echoes")
MORE_PEERS = ("rclib", "resdag", "torch")  # of speed.py alone: the heads of other records stay
OURS, OURS_NUMPY = "reservoir, numba", "reservoir, NumPy"
OURS_DIAGONALS = "reservoir, diagonals"


class LeftOut(Exception):
    """A library cannot do the job; the message says why."""


def version(package: str) -> str | None:
    """Version of an installed distribution, None if it is absent."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def machine(*more: str) -> str:
    """Processor, cores, versions (of `more` packages, too) and BLAS, in a few lines."""
    known = {package: version(package) for package in (*PACKAGES, *PEERS, *more)}
    found = ", ".join(f"{package} {number}" for package, number in known.items() if number)
    absent = ", ".join(package for package, number in known.items() if not number)
    blas = sorted(
        {
            f"{info['internal_api']} {info.get('version') or ''} ({info.get('architecture')})"
            for info in threadpool_info()
            if info["user_api"] == "blas"
        }
    )
    lines = [
        f"{_processor()}, {os.cpu_count()} cores, {platform.system()}",
        f"Python {platform.python_version()}, {found}",
        f"BLAS: {'; '.join(blas) or 'unknown'}, one thread",
    ]
    return "\n".join([*lines, f"not installed, left out: {absent}"] if absent else lines)


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def first_calls(contenders: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """Call everybody once; what that takes holds what is compiled or loaded on the first call."""
    return {name: _seconds(job) for name, job in contenders.items()}


def interleave(
    contenders: Mapping[str, Callable[[], Any]],
    n_rounds: int,
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Seconds of every contender, taken in turns so that a slow spell of the machine hits all."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    warm = next(iter(contenders.values()))
    for _ in range(n_rounds):
        warm()  # not counted: the first of a round would pay for memory that was out of use
        for name, job in contenders.items():
            seconds[name].append(_seconds(job, clock))
    return seconds


def _seconds(job: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    result = job()
    seconds = clock() - start
    del result  # freed outside the clock
    return seconds


@dataclass
class Report:
    """The rows of one job: printed as tables, written as one CSV file."""

    job: str
    folder: Path
    rows: list[dict[str, Any]] = field(default_factory=list)
    told: set[tuple[str, str]] = field(default_factory=set)

    def table(
        self,
        title: str,
        values: Mapping[str, float | Sequence[float]],
        *,
        unit: str = "s",
        scale: float = 1.0,
        notes: Mapping[str, str] | None = None,
        **case: Any,
    ) -> None:
        """Print medians and ratios; keep them.

        `values` are figures or samples, multiplied by `scale` to be in `unit`; `notes` stand
        behind the row of a library, or explain why it is absent; `case` are columns of the CSV.
        """
        notes = dict(notes or {})
        medians = {name: float(np.median(value)) * scale for name, value in values.items()}
        ours = next((value for name, value in medians.items() if name[:10] == "reservoir,"), None)
        c = min((value for name, value in medians.items() if name.startswith("C,")), default=None)
        print(f"\n{title}\n{'':32s}{unit:>10s}{'to ours':>9s}{'to C':>8s}")
        for name, value in medians.items():
            row = {
                "job": self.job,
                "library": name,
                **case,
                "median": value,
                "unit": unit,
                "ratio_to_ours": value / ours if ours else None,
                "ratio_to_c": value / c if c else None,
                "n_samples": np.size(values[name]),
                "note": notes.pop(name, ""),
            }
            self.rows.append(row)
            ratios = "".join(
                f"{ratio:{width}.2f}" if ratio is not None else " " * width
                for ratio, width in ((row["ratio_to_ours"], 9), (row["ratio_to_c"], 8))
            )
            print(f"{name:32s}{value:10.4g}{ratios}  {row['note']}".rstrip())
        for name, note in notes.items():
            if (name, note) not in self.told:  # once is enough
                print(f"{name}: {note}")
            self.told.add((name, note))
        print(end="", flush=True)

    def write(self) -> None:
        """Write FOLDER/JOB.csv; machine and versions stand above the columns, behind #."""
        if not self.rows:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{self.job}.csv"
        columns = list(dict.fromkeys(key for row in self.rows for key in row))
        with path.open("w", newline="") as file:
            file.writelines(f"# {line}\n" for line in machine(*MORE_PEERS).splitlines())
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(self.rows)
        print(f"written: {path}")

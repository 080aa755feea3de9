"""The figures of the benchmarks: 700 pixels wide, told apart by marker and dash, not by colour."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

STYLES: dict[str, dict[str, Any]] = {
    "reservoir, numba": {"color": "black", "marker": "o", "linestyle": "-", "linewidth": 2.5},
    "reservoir, NumPy": {"color": "black", "marker": "o", "linestyle": "--", "fillstyle": "none"},
    "reservoir, diagonals": {"color": "C5", "marker": "d", "linestyle": "-", "linewidth": 2.5},
    "C, scalar loads": {"color": "0.55", "marker": "", "linestyle": "-"},
    "C, gathers": {"color": "0.55", "marker": "", "linestyle": ":"},
    "reservoirpy": {"color": "C0", "marker": "s", "linestyle": "-"},
    "PyRCN": {"color": "C1", "marker": "^", "linestyle": "-."},
    "xesn": {"color": "C2", "marker": "x", "linestyle": "--"},
    "echoes": {"color": "C3", "marker": "D", "linestyle": ":"},
    "rclib": {"color": "C4", "marker": "v", "linestyle": "-"},
    "ResDAG": {"color": "C6", "marker": "P", "linestyle": "--"},
}


def states_figure(rows: Iterable[Mapping[str, Any]]) -> Any:
    """Cost of a step over N at 10 per row, and seconds over T at N = 300."""
    rows = list(rows)
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 4.2), dpi=100, layout="constrained")
    _lines(left, [r for r in rows if r["series"] == "N" and r["in_degree"] == 10], "n_units")
    left.set(xlabel="units N", ylabel="microseconds per step")
    left.set_title("10 connections per row", fontsize=10)
    over_t = [
        {**r, "median": r["median"] * r["n_steps"] * 1e-6} for r in rows if r["series"] == "T"
    ]
    _lines(right, over_t, "n_steps")
    right.set(xlabel="steps T", ylabel="seconds")
    right.set_title("N = 300, 10 connections per row", fontsize=10)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    return figure


def _lines(axes: Any, rows: list[Mapping[str, Any]], x: str) -> None:
    for name, style in STYLES.items():
        points = sorted((row[x], row["median"]) for row in rows if row["library"] == name)
        if points:
            axes.loglog(*zip(*points, strict=True), label=name, markersize=5, **style)
    axes.grid(True, which="major", color="0.85", linewidth=0.7)


def save(figure: Any, path: Path) -> Path:
    """Write a figure, and close it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plt.close(figure)
    print(f"written: {path}")
    return path


def growth_figure(rows: Iterable[Mapping[str, Any]]) -> Any:
    """Cost on the left and peak memory on the right, over N, T and the number of sequences."""
    rows = list(rows)
    figure, panels = plt.subplots(
        3, 2, figsize=(7, 6.6), dpi=100, layout="constrained", sharex="row"
    )
    texts = {
        "N": ("us/step", "µs per step", "units N", "state run, 10 connections per row"),
        "T": ("seconds", "seconds", "steps T", "fit of 300 units, one sequence"),
        "sequences": ("seconds", "seconds", "sequences", "fit of 300 units, 1000 steps each"),
    }
    for (left, right), (axis, (cost, label, xlabel, title)) in zip(
        panels, texts.items(), strict=True
    ):
        taken = [row for row in rows if row["axis"] == axis]
        sizes = [row["size"] for row in taken]
        megabytes = [max(row["MB"], 0.1) for row in taken]  # a page more or less is none
        left.loglog(sizes, [row[cost] for row in taken], "C0o-", linewidth=2)
        right.loglog(sizes, megabytes, "C1s-", linewidth=2)
        left.set(xlabel=xlabel, ylabel=label)
        right.set(xlabel=xlabel, ylabel="MB above the input")
        right.set_ylim(0.08, max(200, 2 * max(megabytes)))
        left.set_title(title, fontsize=10, loc="left")
        for axes in (left, right):
            axes.grid(True, which="major", color="0.85", linewidth=0.7)
    return figure

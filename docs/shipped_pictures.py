"""Draw the pictures on the pages, docs/_static/*.png, and compare their texts with what is shipped.

Usage:

    python docs/shipped_pictures.py [NAME ...]            # draw all pictures, or some
    python docs/shipped_pictures.py --check [NAME ...]    # draw nothing new: compare texts

A picture is stale if its texts are not those of the code that draws it. So each file keeps its
texts (titles, labels, legends and annotations, but no ticks) as its description. `--check` draws
the figures again and compares their texts with these descriptions: the same words, and numbers
within 2 %.

Pictures of examples are those that the scripts save. Benchmarks are not run: their drawing
functions get what docs/measured has recorded of them. The two pictures of the README are shown 410
pixels wide: they are drawn for this width, with letters of 9 pixels, at twice the resolution.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import re
import runpy
import sys
from collections.abc import Callable
from typing import Any
from unittest import mock

import matplotlib

matplotlib.use("Agg")
import check_figures as check
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.dates import YearLocator
from matplotlib.figure import Figure
from PIL import Image

from reservoir import ESNRegressor, plotting
from reservoir.datasets import narma

ROOT = check.ROOT
STATIC = ROOT / "docs" / "_static"
sys.path.append(str(ROOT / "examples" / "benchmarks"))
from _plots import growth_figure, states_figure  # noqa: E402

TOLERANCE = 0.02  # of numbers in texts
README = {"figsize": (4.1, 2.9), "layout": "constrained"}  # inches, of 100 pixels each
LETTERS = {"font.size": 6.5, "axes.titlesize": "medium", "legend.fontsize": "medium"}
THIN = {"axes.linewidth": 0.6, "lines.linewidth": 1.1, "xtick.major.size": 2, "ytick.major.size": 2}


# --- pictures of examples ------------------------------------------------------------------------


@functools.cache
def run_example(script: str) -> tuple[dict[str, Figure], dict[str, Any]]:
    """Run a script of the gallery; return the figures that it would save, and its variables."""
    saved: dict[str, Figure] = {}

    def keep(figure: Figure, file: str, **_: Any) -> None:
        saved[file] = figure

    with (
        contextlib.redirect_stdout(io.StringIO()),
        mock.patch.object(Figure, "savefig", keep),
        mock.patch.object(plt, "show"),
        plt.style.context("default"),
    ):
        variables = runpy.run_path(str(ROOT / "examples" / script))
    return saved, variables


def saved_by(script: str, name: str) -> Figure:
    """Return a figure that a script of the gallery saves."""
    return run_example(script)[0][name]


def readme_co2() -> Figure:
    """Draw the forecast of `plot_co2.py` for the README."""
    told = run_example("plot_co2.py")[1]
    figure, ax = plt.subplots(**README)
    plotting.forecast(told["co2"][-160:], told["forecast"], legend=False, ax=ax)
    ax.set_ylabel("CO2, ppm")
    ax.xaxis.set_major_locator(YearLocator())
    figure.legend(loc="outside upper left", ncols=4, frameon=False, columnspacing=1.2)
    return figure


def readme_limit_cycle() -> Figure:
    """Draw the certified cycle of `plot_phase_portrait.py` for the README, with direct labels."""
    told = run_example("stability/plot_phase_portrait.py")[1]
    figure, ax = plt.subplots(**README)
    portrait = {"units": "pca", "n_transient": 160, "smooth": True, "band": told["bands"]}
    plotting.phase_portrait(told["paths"], cycle=told["cycle"], **portrait, legend=False, ax=ax)
    lines = {line.get_label(): line.get_xydata() for line in ax.get_lines()}
    starts = [line.get_xydata() for line in ax.get_lines() if "initial state" in line.get_label()]
    edges = [c.get_paths()[0].vertices for c in ax.collections if len(c.get_facecolor()) == 0]
    wide, narrow = edges[-2:]
    curve = next(points for label, points in lines.items() if label.startswith("cycle of"))
    named = [
        (f"one of {len(starts)} starts", np.vstack(starts), (1, 1.3), 0.97),
        ("proved: every trajectory is\ninside after 16 periods", wide, (1, 0.55), 0.8),
        ("proved: inside after 20 periods", narrow, (1, 0.1), 0.6),
        ("the cycle, of 80 steps", curve, (1, -0.35), 0.43),
    ]
    for words, points, direction, height in named:
        at = points[np.argmax(points @ direction)]
        line = {"arrowstyle": "-", "linewidth": 0.5, "shrinkA": 1, "shrinkB": 0}
        place = {"xytext": (1.06, height), "textcoords": "axes fraction", "va": "center"}
        ax.annotate(words, at, **place, arrowprops=line)
    return figure


def overview() -> Figure:
    """Draw the overview of the first network on the page about predictions."""
    X, y = narma(3000, random_state=0)
    esn = ESNRegressor(leak_rate=1.0, random_state=0).fit(X[:2000], y[:2000])
    figure: Figure = plotting.overview(esn, X[2000:], y[2000:])[0].figure.figure
    return figure


# --- pictures of benchmarks ----------------------------------------------------------------------


def growth() -> Figure:
    """Draw the record of growth.py."""
    rows: list[dict[str, Any]] = []
    heads: list[str] = []
    for line in check.read("growth")[1].splitlines():
        words = re.split(r"\s{2,}", line.strip())
        if words[0] in ("N", "T", "sequences"):
            heads = words
        elif heads and len(words) == len(heads):
            values = dict(zip(heads, map(float, words), strict=True))
            rows.append({"axis": heads[0], "size": values.pop(heads[0]), **values})
    return growth_figure(rows)


def states() -> Figure:
    """Draw the record of speed.py: the first runs are over N, those at the end over T."""
    rows: list[dict[str, Any]] = []
    case: dict[str, Any] = {}
    for line in check.read("speed_states")[1].splitlines():
        head = re.match(r"N = (\d+), (\d+) per row, (\d+) steps", line)
        figure = re.match(r"(\S.*?)\s{2,}([\d.]+)\s", line)
        if head:
            n_units, in_degree, n_steps = map(int, head.groups())
            known = {(row["n_units"], row["in_degree"]) for row in rows}
            case = {"n_units": n_units, "in_degree": in_degree, "n_steps": n_steps}
            case["series"] = "T" if (n_units, in_degree) in known else "N"
        elif figure and case:
            rows.append({**case, "library": figure[1], "median": float(figure[2])})
    return states_figure(rows)


# --- all of them ---------------------------------------------------------------------------------

PORTRAIT, HEART = "stability/plot_phase_portrait.py", "stability/plot_closed_loop_heart.py"
# the function that draws a picture, and dots per inch
PICTURES: dict[str, tuple[Callable[[], Figure], int]] = {
    "co2.png": (lambda: saved_by("plot_co2.py", "co2.png"), 200),
    "growth.png": (growth, 100),
    "heart.png": (lambda: saved_by(HEART, "heart.png"), 160),
    "limit_cycle.png": (lambda: saved_by(PORTRAIT, "limit_cycle.png"), 160),
    "overview.png": (overview, 110),
    "readme_co2.png": (readme_co2, 200),
    "readme_limit_cycle.png": (readme_limit_cycle, 200),
    "states.png": (states, 100),
    "sunspots.png": (lambda: saved_by("plot_sunspots.py", "sunspots.png"), 150),
}


def draw(name: str) -> Figure:
    """Return the figure of a picture."""
    small = name.startswith("readme_")
    with plt.rc_context({**LETTERS, **THIN} if small else {}):
        figure = PICTURES[name][0]()
        figure.draw_without_rendering()
    return figure


def texts_of(figure: Figure) -> str:
    """Return titles, labels, annotations and legends of a figure, one a line; no ticks."""
    found = list(figure.texts)
    legends = [legend for part in (figure, *figure.subfigs) for legend in part.legends]
    for ax in figure.axes:
        found += [ax.title, ax.xaxis.label, ax.yaxis.label, *ax.texts]
        legends += [legend] if (legend := ax.get_legend()) else []
    for legend in legends:
        found += legend.get_texts()
    texts = (" ".join(text.get_text().split()) for text in found if text.get_visible())
    return "\n".join(text for text in texts if text)


def shipped_texts(name: str) -> str:
    """Return the texts of a shipped picture; none if the file is absent or has no description."""
    path = STATIC / name
    if not path.exists():
        return ""
    with Image.open(path) as image:
        return str(image.info.get("Description", ""))


def differences(name: str, figure: Figure) -> list[str]:
    """Return the texts of a shipped picture that its figure no longer has."""
    return check.differences(shipped_texts(name), texts_of(figure), TOLERANCE)


def save(name: str, figure: Figure) -> None:
    """Write a picture with its texts."""
    figure.savefig(
        STATIC / name,
        dpi=PICTURES[name][1],
        facecolor="white",
        metadata={"Description": texts_of(figure), "Software": None},
    )


def main() -> None:
    """Draw or compare the pictures that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all of them")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    args = parser.parse_args()
    stale = []
    for name in args.names or PICTURES:
        figure = draw(name)
        if not args.check:
            save(name, figure)
            print(f"written: {STATIC / name}")
            continue
        found = differences(name, figure)
        print(f"{name}: {'stale' if found else 'agrees'}")
        print("".join(f"{text}\n" for text in found), end="")
        stale += [name] * bool(found)
    if stale:
        raise SystemExit(f"Stale: {', '.join(stale)}. Run `python docs/shipped_pictures.py`.")


if __name__ == "__main__":
    main()

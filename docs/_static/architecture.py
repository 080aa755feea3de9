"""Draw the layers of setup.cfg, high to low, and the path of `ESNRegressor.fit` through them.

python docs/_static/architecture.py    # writes architecture.svg beside this file
"""

import configparser
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch

HERE = Path(__file__).parent
INK, PAPER, LINE, PATH = "#1d2733", "#ffffff", "#b9c4cf", "#b3400e"
ON_PATH, OFF_PATH = "#e8eff7", "#f4f5f6"
WIDTH, ROW, GAP, TOP = 720, 58, 8, 66  # in pixels of a picture 720 wide
FIRST_COLUMN, COLUMN = 312, 40
LARGE, SMALL = 20, 19
HEAD = {"size": SMALL, "va": "center"}

# The path, in the order of time: (package, what happens there, on which side the words stand).
STEPS = [
    ("estimators", "fit", "left"),
    ("_tables", "read X", "right"),
    ("building", "recipe", "right"),
    ("topologies", "W", "left"),
    ("scaling", "radius", "right"),
    ("input_weights", "W_in", "right"),
    ("dynamics", "run", "left"),
    ("_kernels", "step", "right"),
    ("readouts", "sum, solve", "left"),
    ("estimators", "publish", "left"),
]


def read_layers():
    """Return the layers, high to low, each a list of packages that do not import each other."""
    config = configparser.ConfigParser()
    config.read(HERE.parents[1] / "setup.cfg")
    lines = config["importlinter:contract:layers"]["layers"].split("\n")
    return [line.split(" | ") for line in lines if line]


def draw_layers(axes, layers):
    """Draw a band for each layer; return the height of each package's band."""
    heights = {}
    on_path = {package for package, _, _ in STEPS}
    for row, packages in enumerate(layers):
        y = TOP + row * (ROW + GAP)
        colour = ON_PATH if on_path & set(packages) else OFF_PATH
        band = FancyBboxPatch(
            (8, y), WIDTH - 16, ROW, "round,pad=0,rounding_size=7", fc=colour, ec=LINE, lw=1
        )
        axes.add_patch(band)
        text = packages[0] if len(packages) == 1 else ", ".join(packages)
        if len(packages) > 2:
            text = ", ".join(packages[:2]) + ",\n" + ", ".join(packages[2:])
        axes.text(
            20,
            y + ROW / 2,
            text,
            size=LARGE,
            color=INK,
            va="center",
            weight="bold",
            linespacing=1.1,
        )
        heights |= dict.fromkeys(packages, y + ROW / 2)
    return heights


def draw_path(axes, heights):
    """Draw the steps from left to right, each in the band of its package."""
    places = [
        (FIRST_COLUMN + k * COLUMN, heights[package]) for k, (package, _, _) in enumerate(STEPS)
    ]
    axes.plot(*zip(*places, strict=True), color=PATH, lw=2.5, zorder=3, solid_joinstyle="round")
    for k, ((x, y), (_, words, side)) in enumerate(zip(places, STEPS, strict=True), start=1):
        axes.plot(x, y, "o", ms=30, mfc=PATH, mec=PAPER, mew=1.5, zorder=4)
        axes.text(
            x,
            y,
            k,
            size=SMALL - 2,
            color=PAPER,
            weight="bold",
            ha="center",
            va="center_baseline",
            zorder=5,
        )
        dx, align = (21, "left") if side == "right" else (-21, "right")
        axes.text(x + dx, y, words, size=SMALL, color=PATH, ha=align, va="center", zorder=5)


def main():
    """Write the picture."""
    layers = read_layers()
    height = TOP + len(layers) * (ROW + GAP)
    plt.rcParams.update({"svg.hashsalt": "architecture", "font.family": "DejaVu Sans"})
    figure = plt.figure(figsize=(WIDTH / 72, height / 72), facecolor=PAPER)
    axes = figure.add_axes([0, 0, 1, 1], xlim=(0, WIDTH), ylim=(height, 0))
    axes.axis("off")
    axes.text(20, 20, "A package imports from those below it alone.", **HEAD, color=INK)
    axes.text(20, 46, "The line: ESNRegressor.fit, in the order of time.", **HEAD, color=PATH)
    draw_path(axes, draw_layers(axes, layers))
    # what is drawn, as text: tests/house/test_architecture.py compares it with setup.cfg
    drawn = "; ".join(map(" | ".join, layers))
    figure.savefig(HERE / "architecture.svg", metadata={"Date": None, "Description": drawn})


if __name__ == "__main__":
    main()

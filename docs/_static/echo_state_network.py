"""Draw what an echo state network is, from one that was run: input, reservoir, readout.

python docs/_static/echo_state_network.py    # writes two SVGs beside this file, light and dark
"""

from pathlib import Path

import numpy as np

from reservoir import ESNRegressor
from reservoir.datasets import mackey_glass
from reservoir.dynamics import run
from reservoir.model_selection import make_forecast_pairs

HERE = Path(__file__).parent
WIDTH, HEIGHT = 680, 336
N_UNITS, N_SHOWN = 30, 110  # units, and the rows of the series that the picture shows
CENTRE, RADIUS = np.array([316.0, 144.0]), 122.0
SUM = np.array([494.0, 144.0])  # where the readout adds up
THEMES = {
    "light": {"ink": "#1d2733", "edge": "#9aa5b1", "in": "#1f5fa8", "out": "#b3400e"},
    "dark": {"ink": "#e3e8ee", "edge": "#66727e", "in": "#7db7f5", "out": "#ff9a66"},
}
TEXT = [  # x, what it is, what becomes of it, in which colour
    (88, "input", "your series", "in"),
    (316, "reservoir", "random, stays fixed", "ink"),
    (578, "readout", "fitted, in one step", "out"),
]


def run_network():
    """Return the last inputs, what the readout says after each, the last states, and the model."""
    X, y = make_forecast_pairs(mackey_glass(1500, random_state=0))
    esn = ESNRegressor(N_UNITS, in_degree=2, leak_rate=0.4, include_input=False, random_state=3)
    esn.fit(X, y)
    states = run(esn.reservoir_, X)
    return X[-N_SHOWN:, 0], np.ravel(esn.predict(X))[-N_SHOWN:], states[-1], esn


def place_units():
    """Return points spread evenly over a disc, as the seeds of a sunflower are."""
    rank = np.arange(N_UNITS)
    angle = np.pi * (3 - 5**0.5) * rank
    ring = RADIUS * np.sqrt((rank + 0.5) / N_UNITS)
    return CENTRE + ring[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def line(a, b, colour, width, opacity):
    """Return one straight line."""
    ends = f'x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width:.2f}" opacity="{opacity:.2f}"/>'


def place(values, left, right):
    """Return the points of a curve through the values."""
    height = CENTRE[1] - 150 * (values - np.mean(values))
    return np.stack([np.linspace(left, right, len(values)), height], axis=1)


def curve(points, colour):
    """Return the curve through these points."""
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="3"/>'


def draw_connections(esn, start, units, theme):
    """Return the input weights, W and the readout's weights, thick where they are large."""
    into = np.abs(np.ravel(esn.reservoir_.W_in[:, 0]))
    out = np.abs(np.ravel(esn.coef_))
    parts = [
        line(start, unit, theme["in"], 0.5 + w / into.max(), 0.45)
        for unit, w in zip(units, into, strict=True)
    ]
    W = esn.reservoir_.W.tocoo()
    parts += [
        line(units[j], units[i], theme["edge"], 0.6 + 1.4 * abs(w) / abs(W.data).max(), 0.9)
        for i, j, w in zip(W.row, W.col, W.data, strict=True)
    ]
    parts += [
        line(unit, SUM, theme["out"], 0.4 + 2.6 * w / out.max(), 0.75)
        for unit, w in zip(units, out, strict=True)
    ]
    return parts


def draw_units(states, units, theme):
    """Return the units: full where the state is positive, hollow where it is negative."""
    return [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{3.5 + 5 * abs(s):.1f}" stroke="{theme["ink"]}" '
        f'stroke-width="1.6" fill="{theme["ink"] if s > 0 else theme["paper"]}"/>'
        for (x, y), s in zip(units, states, strict=True)
    ]


def draw(shown, said, states, esn, theme):
    """Return the picture as the text of an SVG."""
    units = place_units()
    heard = place(shown, 6, 166)
    parts = [*draw_connections(esn, heard[-1], units, theme), curve(heard, theme["in"])]
    parts += draw_units(states, units, theme)
    parts += [
        f'<circle cx="{SUM[0]}" cy="{SUM[1]}" r="17" fill="{theme["out"]}"/>',
        f'<path d="M500 135 h-12 l7 9 l-7 9 h12" fill="none" stroke="{theme["paper"]}" '
        'stroke-width="2.6"/>',
        curve(place(said, 511, 674), theme["out"]),
    ]
    for x, name, words, colour in TEXT:
        parts += [
            f'<text x="{x}" y="300" font-weight="bold" fill="{theme[colour]}">{name}</text>',
            f'<text x="{x}" y="326" fill="{theme["ink"]}">{words}</text>',
        ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
    font = 'font-family="system-ui, sans-serif" font-size="22" text-anchor="middle">'
    return "\n".join([head + font, *parts, "</svg>", ""])


def main():
    """Write the picture for light pages and for dark ones."""
    parts = run_network()
    for name, paper in (("light", "#ffffff"), ("dark", "#131416")):
        theme = THEMES[name] | {"paper": paper}
        (HERE / f"echo_state_network_{name}.svg").write_text(draw(*parts, theme), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Colours, dashes and markers of curves, chosen for the background of the axes.

Colours are those of matplotlib's rcParams. A colour that is too close to the background is moved
towards the colour of text, so that curves are visible on white, grey and black backgrounds alike.
Curves that mean different things also differ in dash, width or marker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reservoir._typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DASHES: tuple[Any, ...] = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v")
CONTRAST = 2.3  # least contrast of a curve and the background
HELPER = "helper"  # group of lines that only guide the eye, such as zero lines
_MUTED = 3.0  # contrast of observed series, which forecasts are drawn over
_WIDTH = 1.5  # matplotlib's default line width, to which widths here are relative


def luminance(colour: Any) -> float:
    """Return the relative luminance of a colour."""
    from matplotlib.colors import to_rgb

    channels = np.array(to_rgb(colour))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def contrast(first: Any, second: Any) -> float:
    """Return the contrast of two colours: a ratio from 1 to 21."""
    dark, light = sorted((luminance(first), luminance(second)))
    return (light + 0.05) / (dark + 0.05)


def background(ax: Axes) -> Any:
    """Return the colour behind the curves: that of the axes, or of the figure if it is clear."""
    from matplotlib.colors import to_rgba

    assert ax.figure is not None
    for colour in (ax.get_facecolor(), ax.figure.get_facecolor()):
        rgba = np.array(to_rgba(colour))
        if rgba[3] > 0.5:
            return tuple(rgba[:3])
    return (1.0, 1.0, 1.0)


class Theme:
    """Styles of curves, marks and areas for the background of some axes.

    The colours are RGB: `ground` is the background's. `ink`, of the strongest curves, is the colour
    of text, or black or white if text would not be legible. `muted` is for what lies below other
    curves, such as transients.
    """

    def __init__(self, ax: Axes) -> None:
        from matplotlib import rcParams
        from matplotlib.colors import to_rgb

        self.ground = background(ax)
        text = to_rgb(rcParams["text.color"])
        strongest = max("black", "white", key=lambda each: contrast(each, self.ground))
        legible = contrast(text, self.ground) >= 4.5
        self.ink = text if legible else to_rgb(strongest)
        self.muted = self._towards_ink(self.ground, _MUTED)
        cycle = rcParams["axes.prop_cycle"].by_key().get("color", ["C0"])
        self._colours = [self._towards_ink(to_rgb(each), CONTRAST) for each in cycle]
        self._scale = float(rcParams["lines.linewidth"]) / _WIDTH

    def _towards_ink(self, colour: Any, ratio: float) -> Any:
        """Return the colour, mixed with as much ink as the contrast to the background requires."""
        for share in np.linspace(0, 1, 41):
            mixed = tuple((1 - share) * np.array(colour) + share * np.array(self.ink))
            if contrast(mixed, self.ground) >= ratio:
                break
        return mixed

    def colour(self, k: int) -> Any:
        """Return the k-th colour of matplotlib's cycle."""
        return self._colours[k % len(self._colours)]

    def width(self, points: float) -> float:
        """Return a line width that follows `lines.linewidth`."""
        return points * self._scale

    def mix(self, colour: Any, share: float) -> Any:
        """Return a share of a colour on the background."""
        return tuple(share * np.array(colour) + (1 - share) * np.array(self.ground))

    def curve(self, k: int = 0, width: float = 1.4) -> dict[str, Any]:
        """Return the style of the k-th of several curves: twenty differ without their colours."""
        style: dict[str, Any] = {
            "color": self.colour(k),
            "linestyle": DASHES[k % 4],
            "linewidth": self.width(width),
        }
        if k >= len(DASHES):
            marker = MARKERS[(k // len(DASHES) - 1) % len(MARKERS)]
            style |= self.marker(marker, 4.0) | {"markevery": 0.1}
        return style

    def marker(self, marker: str, size: float) -> dict[str, Any]:
        """Return the style of a marker; some styles of matplotlib would draw no edge."""
        return {"marker": marker, "markersize": size, "markeredgewidth": 1.0}

    @property
    def observed(self) -> dict[str, Any]:
        """Style of an observed series."""
        return {"color": self.muted, "linestyle": "-", "linewidth": self.width(2.2)}

    @property
    def mark(self) -> dict[str, Any]:
        """Style of a dotted line that marks a place on an axis."""
        return {"color": self.ink, "linestyle": ":", "linewidth": self.width(1.0)}

    @property
    def start(self) -> dict[str, Any]:
        """Style of the cross at an initial state."""
        return {"color": self.ink, "linestyle": "none"} | self.marker("x", 6)

    @property
    def helper(self) -> dict[str, Any]:
        """Style of a line that only guides the eye."""
        return {
            "color": self.mix(self.ink, 0.25),
            "linewidth": self.width(0.7),
            "zorder": 0.5,
            "gid": HELPER,
        }

    def area(self, colour: Any, share: float = 0.15) -> dict[str, Any]:
        """Return the style of a translucent area with an outline."""
        from matplotlib.colors import to_rgba

        return {"facecolor": to_rgba(colour, share), "edgecolor": colour, "linewidth": 0.6}

    @property
    def hatched(self) -> dict[str, Any]:
        """Style of a hatched region of certified parameters."""
        return {
            "facecolor": self.mix(self.ink, 0.07),
            "edgecolor": self.muted,
            "hatch": "///",
            "linewidth": 0,
        }


def isolated(values: Array) -> Array:
    """Return the indices of finite values without a finite neighbour, which no line shows."""
    there = np.pad(np.isfinite(values), 1)
    return np.flatnonzero(there[1:-1] & ~there[:-2] & ~there[2:])

"""Line styles common to several plots, so that the same things look the same in all of them."""

from __future__ import annotations

from typing import Any

# A true series, a forecast of it, a mark on an axis, any other curve, an initial state.
TRUTH: dict[str, Any] = {"color": "0.65", "linestyle": "-", "linewidth": 2.4}
GUESS: dict[str, Any] = {"color": "firebrick", "linestyle": (0, (4, 1.5)), "linewidth": 1.4}
MARK: dict[str, Any] = {"color": "black", "linestyle": ":", "linewidth": 1.0}
LINE: dict[str, Any] = {"color": "tab:blue", "linestyle": "-", "linewidth": 1.2}
START: dict[str, Any] = {"color": "black", "linestyle": "none", "marker": "x", "markersize": 6}
# A soft area for a proved bound; a hatched region of certified parameters; line styles that
# distinguish curves without colour.
PROVED: dict[str, Any] = {"color": "tab:blue", "alpha": 0.13}
HATCHED: dict[str, Any] = {"facecolor": "0.93", "edgecolor": "0.6", "hatch": "///", "linewidth": 0}
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":")

"""The line styles of the pictures: what means the same looks the same."""

from __future__ import annotations

from typing import Any

TRUTH: dict[str, Any] = {"color": "0.65", "linestyle": "-", "linewidth": 2.4}
GUESS: dict[str, Any] = {"color": "firebrick", "linestyle": (0, (4, 1.5)), "linewidth": 1.4}
MARK: dict[str, Any] = {"color": "black", "linestyle": ":", "linewidth": 1.0}
LINE: dict[str, Any] = {"color": "tab:blue", "linestyle": "-", "linewidth": 1.2}
START: dict[str, Any] = {"color": "black", "linestyle": "none", "marker": "x", "markersize": 6}
HATCHED: dict[str, Any] = {"facecolor": "0.93", "edgecolor": "0.6", "hatch": "///", "linewidth": 0}
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":")

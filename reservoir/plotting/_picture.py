"""Axes to draw on, with curves, bands and a legend that work in any figure.

Given axes belong to the caller: their limits, their size and the other axes of their figure are not
touched.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reservoir._typing import Array
from reservoir.plotting._styles import Theme, isolated

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SMALL = 3.0  # inches: in narrower axes the legend is short
_FEW_ENTRIES, _SHORT_NAME = 3, 22
_MANY_POINTS = 20_000  # from here on matplotlib's search for the best place takes too long
_MOST_POINTS = 4_000  # of a curve of more than _MANY_POINTS
NARROW = 4.5  # inches: narrower figures have legends in smaller print, and one panel beside none
_LETTER, _HANDLE = 0.56, 4.6  # width of a letter of a legend and of a line sample, per font size
_DATE_WIDTH = 0.85  # inches per date
_TICKS_PER_INCH = 1.4  # numbers such as -0.75
_AROUND = 0.8  # inches above and below axes: legend, numbers and label


class Picture:
    """The axes of a plot, new ones or the caller's, with the styles for their background.

    Without `ax`, they belong to a new figure of rcParams' size, and `own` is True. `legend` is a
    bool or "outside"; `line_kw` are properties of the curves that are the subject of the plot. Axes
    of three dimensions raise an error, unless `spatial`.
    """

    def __init__(
        self, ax: Axes | None, legend: bool | str, line_kw: Any, *, spatial: bool = False
    ) -> None:
        check_legend(legend)
        self.own = ax is None
        self._line_kw = read_line_kw(line_kw)
        self._legend = legend
        self.ax: Any = _new_axes() if ax is None else _checked(ax, spatial)
        self.theme = Theme(self.ax)

    @classmethod
    def several(
        cls, ax: Any, n_panels: int, legend: bool | str, line_kw: Any, *, below: bool
    ) -> list[Picture]:
        """Return a picture for each of several panels, below or beside each other.

        `ax` is an array of n_panels Axes, or None for a new figure; with `below`, its panels share
        one horizontal axis. `line_kw` is for the first panel.
        """
        if ax is not None:
            if hasattr(ax, "get_xlim"):
                _checked(ax, spatial=False)
            every = list(np.ravel(np.asarray(ax, dtype=object)))
            if len(every) != n_panels:
                raise ValueError(
                    f"ax contains {len(every)} Axes, but there are {n_panels} panels. Give an "
                    f"array of {n_panels} Axes."
                )
            first = cls(every[0], legend, line_kw)
            return [first] + [cls(each, legend, None) for each in every[1:]]
        check_legend(legend)
        read_line_kw(line_kw)
        shape = (n_panels, 1) if below else (1, n_panels)
        figure = matplotlib_modules().pyplot.figure(layout="constrained")
        axes = np.ravel(figure.subplots(*shape, sharex=below))
        pictures = [cls(each, legend, None if k else line_kw) for k, each in enumerate(axes)]
        for picture in pictures:
            picture.own = True
        return pictures

    def subject(self, style: Mapping[str, Any], label: str | None = None) -> dict[str, Any]:
        """Return a style with the properties that the caller set; hidden labels stay hidden."""
        from matplotlib.cbook import normalize_kwargs
        from matplotlib.lines import Line2D

        own = {} if label is None else {"label": label}
        hidden = own if str(label).startswith("_") else {}
        return normalize_kwargs(dict(style), Line2D) | own | self._line_kw | hidden

    def line(self, x: Array, y: Array, **style: Any) -> Any:
        """Draw a curve; points without a neighbour, which no line joins, get a marker."""
        if len(x) > _MANY_POINTS:
            x, y = thinned(x, y, _MOST_POINTS)
        alone = isolated(np.asarray(y, dtype=float))
        if len(alone) and style.get("marker", "None") in ("None", "none", None, ""):
            style = style | self.theme.marker("o", 4) | {"markevery": alone.tolist()}
        return self.ax.plot(x, y, **style)[0]

    def band(
        self, x: Array, low: Array, high: Array, colour: Any, share: float, label: Any
    ) -> None:
        """Draw the area between two curves; at steps without a neighbour it is a bar."""
        style = self.theme.area(colour, share)
        self.ax.fill_between(x, low, high, label=label, zorder=1, **style)
        alone = isolated(low + high)
        if len(alone):
            bar: dict[str, Any] = {"color": style["facecolor"], "linewidth": 6, "zorder": 1}
            self.ax.vlines(x[alone], low[alone], high[alone], **bar)
            ends = np.concatenate([low[alone], high[alone]])
            caps = self.theme.marker("_", 8) | {"linestyle": "none", "color": colour}
            self.ax.plot(np.tile(x[alone], 2), ends, **caps, label="_ends")

    def horizon(self, name: str, values: Array) -> None:
        """Name the horizontal axis, and label dates so that they do not overlap."""
        if values.dtype.kind == "M":
            self._date_axis()
        self.ax.set_xlabel(name)

    def _date_axis(self) -> None:
        from matplotlib import dates

        most = int(np.clip(inches(self.ax)[0] / _DATE_WIDTH, 2, 7))
        locator = dates.AutoDateLocator(minticks=min(3, most), maxticks=most)
        self.ax.xaxis.set_major_locator(locator)
        self.ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))

    def thin_out_ticks(self) -> None:
        """Leave room between the numbers on the horizontal axis of a new figure."""
        if self.own:
            width, height = self.ax.figure.get_size_inches()
            if self.ax.get_aspect() == 1:
                width = min(width, (height - _AROUND) / self.ax.get_data_ratio())
            self.ax.locator_params(axis="x", nbins=max(1, int(_TICKS_PER_INCH * width)))

    def label_bands(self, names: Sequence[str]) -> None:
        """Label the vertical axis with the names of stacked columns, the first at the top.

        Many names are thinned out.
        """
        every = int(np.ceil(len(names) * 0.16 / inches(self.ax)[1]))
        at = np.arange(len(names))[::every]
        label_ticks(self.ax.yaxis, -at, [names[i] for i in at])

    def finish(self, *, others: Sequence[Axes] = (), right_is_free: bool = True) -> Any:
        """Draw the legend, and return the axes.

        `others` are further axes of the picture, with legends of their own unless the figure is
        new. `right_is_free` tells whether nothing, such as a colour bar, is on the right of the
        axes.
        """
        every = [self.ax, *others]
        if self.ax.get_aspect() == 1:
            self.thin_out_ticks()
        if not self._legend:
            return self.ax
        if self.own:
            legend_of_figure(every)
        else:
            for ax in every:
                _legend_of_axes(ax, self._legend == "outside", right_is_free)
        return self.ax


def label_ticks(axis: Any, places: Array, names: Sequence[str]) -> None:
    """Label places on an axis; `set_ticks` would change the limits of the axes."""
    from matplotlib.ticker import FixedFormatter, FixedLocator

    axis.set_major_locator(FixedLocator(list(places)))
    axis.set_major_formatter(FixedFormatter(list(names)))


def check_legend(legend: Any) -> None:
    if not (isinstance(legend, (bool, np.bool_)) or legend == "outside"):
        raise ValueError(f'legend={legend!r} must be True, False or "outside".')


def read_line_kw(line_kw: Any) -> dict[str, Any]:
    """Return the properties of lines by their long names; an unknown one raises here."""
    if line_kw is None:
        return {}
    if not isinstance(line_kw, Mapping):
        raise TypeError(
            f"line_kw={line_kw!r} must be a dict of properties of lines, such as "
            '{"linewidth": 2.0}.'
        )
    modules = matplotlib_modules()
    given: dict[str, Any] = modules.cbook.normalize_kwargs(dict(line_kw), modules.lines.Line2D)
    modules.lines.Line2D([], []).set(**given)
    return given


def matplotlib_modules() -> Any:
    """Return matplotlib with its submodules for lines, or raise an ImportError with the remedy."""
    try:
        import matplotlib.cbook
        import matplotlib.lines
        import matplotlib.pyplot
    except ImportError as error:
        raise ImportError("reservoir.plotting needs matplotlib: pip install matplotlib") from error
    return matplotlib


def _new_axes() -> Any:
    return matplotlib_modules().pyplot.figure(layout="constrained").add_subplot()


def _checked(ax: Any, spatial: bool) -> Any:
    """Return the caller's axes if plots of this kind can be drawn on them."""
    if not hasattr(ax, "get_xlim"):
        problem = f"ax is a {type(ax).__name__}; it must be matplotlib Axes"
    elif ax.name == "3d" and not spatial:
        problem = "ax has three dimensions, but this plot has two"
    else:
        return ax
    raise TypeError(f"{problem}. Draw on those of `fig, ax = plt.subplots()`.")


def legend_of_figure(every: Sequence[Any]) -> None:
    """Put one legend above all axes of a new figure, or of a part, where it covers no data."""
    handles, names = [], []
    for ax in every:
        found = ax.get_legend_handles_labels()
        new = [i for i, name in enumerate(found[1]) if name not in names]
        handles += [found[0][i] for i in new]
        names += [found[1][i] for i in new]
    if not names:
        return
    figure = every[0].figure  # or a part of one
    width = figure.bbox.width / figure.dpi
    size = "small" if width >= NARROW else "x-small"
    style = {"frameon": False, "fontsize": size, "columnspacing": 1.0, "handlelength": 2.4}
    style["ncols"] = _n_columns(names, width, size)
    is_box = len(every) == 1 and every[0].get_aspect() == 1  # with free space around it
    if is_box:
        every[0].set_anchor("N")
    figure.legend(handles, names, loc=f"outside upper {'center' if is_box else 'left'}", **style)


def _n_columns(names: Sequence[str], width: float, size: str) -> int:
    """Return the number of columns of a legend that fit into a width in inches."""
    from matplotlib.font_manager import FontProperties

    inch = FontProperties(size=size).get_size_in_points() / 72
    spans = [inch * (_HANDLE + _LETTER * len(name)) for name in names]
    for n_columns in range(len(names), 1, -1):
        parts = np.array_split(spans, n_columns)  # matplotlib fills the legend column by column
        if sum(part.max() for part in parts) <= width:
            return n_columns
    return 1


def _legend_of_axes(ax: Any, outside: bool, right_is_free: bool) -> None:
    """Draw a legend inside given axes, or next to them."""
    handles, names = ax.get_legend_handles_labels()
    if not names:
        return
    if outside:
        corner, anchor = ("upper left", (1.02, 1.0)) if right_is_free else ("lower left", (0, 1.02))
        place: dict[str, Any] = {"loc": corner, "bbox_to_anchor": anchor, "borderaxespad": 0}
        ax.legend(handles, names, **place, fontsize="small", handlelength=2.4)
        return
    if inches(ax)[0] < _SMALL:
        handles, names = handles[:_FEW_ENTRIES], [_shortened(each) for each in names[:_FEW_ENTRIES]]
    loc = "upper right" if _n_points(ax) > _MANY_POINTS else "best"
    ax.legend(handles, names, loc=loc, fontsize="small", handlelength=2.0)


def _shortened(name: str) -> str:
    return name if len(name) <= _SHORT_NAME else name[: _SHORT_NAME - 1].rstrip(" ,:") + "…"


def _n_points(ax: Any) -> int:
    """Return the number of points that matplotlib would compare with the legend's place."""
    points = sum(len(line.get_xdata(orig=False)) for line in ax.get_lines())
    for collection in ax.collections:
        points += len(collection.get_offsets())
        points += sum(len(path.vertices) for path in collection.get_paths())
    return points


def inches(ax: Any) -> tuple[float, float]:
    """Return width and height of the axes in inches, before a layout engine changes them."""
    box = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    return box.width, box.height


def thinned(x: Array, y: Array, most: int) -> tuple[Array, Array]:
    """Return at most about `most` points of a curve, with the extremes of each stretch of it."""
    n_parts = max(most // 2, 1)
    if len(x) <= 2 * n_parts:
        return x, y
    edges = np.linspace(0, len(x), n_parts + 1).astype(int)
    kept = []
    for first, last in itertools.pairwise(edges):
        part = y[first:last]
        if np.isnan(part).all():
            kept.append(first)
            continue
        kept += sorted({first + int(np.nanargmin(part)), first + int(np.nanargmax(part))})
        gaps = np.flatnonzero(np.isnan(part))
        kept += [first + int(gaps[0])] if len(gaps) else []
    rows = np.unique(kept)
    return x[rows], y[rows]


def cell_edges(centres: Array) -> Array:
    """Return the edges of cells around increasing `centres`: the midpoints between neighbours."""
    if len(centres) == 1:
        return np.array([centres[0] - 0.5, centres[0] + 0.5])
    half = np.diff(centres) / 2
    return np.concatenate([[centres[0] - half[0]], centres[:-1] + half, [centres[-1] + half[-1]]])

"""A bifurcation diagram: the attractors of a network as a function of one parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import as_plain
from reservoir.plotting._picture import Picture, cell_edges
from reservoir.plotting._plot_arguments import check_finite, increasing, read_mask

if TYPE_CHECKING:
    from matplotlib.axes import Axes
_MANY = 20_000  # more dots are an image in vector graphics


def bifurcation(
    values: ArrayLike,
    points: Sequence[ArrayLike] | Array,
    *,
    certified: ArrayLike | None = None,
    parameter: str = "bias",
    legend: bool | str = True,
    line_kw: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw one unit's states on the attractors of a network, as a function of a parameter.

    Parameters
    ----------
    values : array of shape (n_values,)
        Values of the parameter, increasing.
    points : sequence of n_values arrays of shape (n_points,)
        For each value, the states of one unit on all attractors that were found; the number of
        states may differ between values.
    certified : bool array of shape (n_values,), default=None
        Whether a certificate holds for each value; certified intervals are hatched.
    parameter : str, default="bias"
        The parameter's name.
    legend : bool or "outside", default=True
        Whether to draw a legend: in a new figure above the axes, in given axes inside them, with
        "outside" to their right.
    line_kw : dict, default=None
        Properties of the states, as of `matplotlib.lines.Line2D`.
    ax : matplotlib Axes, default=None
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If shapes do not match, `values` does not increase, or a state is NaN or infinite.

    Examples
    --------
    >>> from reservoir import plotting
    >>> ax = plotting.bifurcation(
    ...     [0.0, 1.0, 2.0], [[-0.9, 0.9], [-0.8, 0.95], [0.99]], certified=[False, False, True]
    ... )
    >>> ax.get_legend_handles_labels()[1]
    ['attractors', 'certified']
    """
    # Check the parameter and the states at each of its values.
    row = increasing("values", values)
    if len(points) != len(row):
        raise ValueError(
            f"points has {len(points)} entries, but values has {len(row)}. Pass one array of "
            "states per value."
        )
    clouds = [as_plain("points", cloud, float) for cloud in points]
    for i, cloud in enumerate(clouds):
        if cloud.ndim != 1:
            raise ValueError(
                f"points[{i}] has shape {cloud.shape}; it must be (n_points,), the states of one "
                "unit."
            )
        check_finite(f"points[{i}]", cloud)
    mask = None if certified is None else read_mask(certified, row.shape)
    # The states, and certified intervals below them.
    picture = Picture(ax, legend, line_kw)
    ax, theme = picture.ax, picture.theme
    parameters = np.repeat(row, [len(cloud) for cloud in clouds])
    states = np.concatenate(clouds)
    size = float(np.clip(60 / np.sqrt(max(len(states), 1)), 1.2, 4.0))
    dots: dict[str, Any] = {
        "marker": "o",
        "markersize": size,
        "markeredgewidth": 0.0,
        "color": theme.ink,
    }
    dots["linestyle"] = "none"
    if len(states) > _MANY:
        dots["rasterized"] = True
    ax.plot(parameters, states, **picture.subject(dots, "attractors"))
    edges = cell_edges(row)
    if mask is not None:
        # one span for each run of neighbouring certified values
        turns = np.flatnonzero(np.diff(np.pad(mask, 1).astype(int)))
        for k, (first, last) in enumerate(turns.reshape(-1, 2)):
            name = "certified" if k == 0 else "_certified"
            ax.axvspan(edges[first], edges[last], **theme.hatched, zorder=0, label=name)
    ax.set_xlabel(parameter)
    ax.set_ylabel("state")
    return picture.finish()

"""A bifurcation diagram: the attractors of a network as a function of one parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir.plotting._axes import cell_edges, legend_strip, new_axes
from reservoir.plotting._plot_arguments import check_finite, increasing, read_mask
from reservoir.plotting._styles import HATCHED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DOTS: dict[str, Any] = {"color": "black", "linestyle": "none", "marker": ".", "markersize": 2.5}


def bifurcation(
    values: ArrayLike,
    points: Sequence[ArrayLike] | Array,
    *,
    certified: ArrayLike | None = None,
    label: str = "bias",
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
    label : str, default="bias"
        The parameter's name.
    ax : matplotlib Axes, default=None
        Axes to draw on; by default a new figure of 7 x 3 inches.

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
    ['certified', 'attractors']
    """
    # Check the parameter and the states at each of its values.
    row = increasing("values", values)
    if len(points) != len(row):
        raise ValueError(
            f"points has {len(points)} entries, but values has {len(row)}. Pass one array of "
            "states per value."
        )
    clouds = [np.asarray(cloud, dtype=float) for cloud in points]
    for i, cloud in enumerate(clouds):
        if cloud.ndim != 1:
            raise ValueError(
                f"points[{i}] has shape {cloud.shape}; it must be (n_points,), the states of one "
                "unit."
            )
        check_finite(f"points[{i}]", cloud)
    mask = None if certified is None else read_mask(certified, row.shape)
    # Certified intervals, then the states.
    ax = new_axes(ax)
    edges = cell_edges(row)
    if mask is not None:
        # one span for each run of neighbouring certified values
        turns = np.flatnonzero(np.diff(np.pad(mask, 1).astype(int)))
        for k, (first, last) in enumerate(turns.reshape(-1, 2)):
            name = "certified" if k == 0 else "_certified"
            ax.axvspan(edges[first], edges[last], **HATCHED, zorder=0, label=name)
    parameters = np.repeat(row, [len(cloud) for cloud in clouds])
    ax.plot(parameters, np.concatenate(clouds), **_DOTS, label="attractors")
    ax.set_xlim(edges[0], edges[-1])
    ax.set_xlabel(label)
    ax.set_ylabel("state")
    return legend_strip(ax)

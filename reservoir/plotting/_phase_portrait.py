"""A phase portrait: trajectories and cycles in the plane of two units or components."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.interpolate import Akima1DInterpolator, CubicSpline
from scipy.spatial import KDTree

from reservoir._typing import Array, ArrayLike
from reservoir._validation import caller_level, check_count, check_number
from reservoir.dynamics import Reservoir, run_many
from reservoir.plotting._picture import Picture
from reservoir.plotting._plot_arguments import finite
from reservoir.plotting._portrait_source import Ran, cycle_label, is_run, ran
from reservoir.plotting._styles import DASHES
from reservoir.stability import LoopCycle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CYCLE_MARKERS = ("o", "s", "^", "D")
_FIELD_POINTS = 17  # per axis: dense enough to see a saddle, thin enough to see the trajectories
_ARROWS = 6  # on a cycle
_PATH_ARROWS = 12  # on all transients together, but at least 1 on each and at most _ARROWS
_APART = 0.05  # of the range: late parts that are closer together share their arrows
_SMALL_STEP = 0.12  # of the range: some twenty steps a turn
_PER_STEP = 12  # points of a smooth curve from one state to the next
_CELLS = 320  # along the longer side of the grid on which the edge of a band is computed


def phase_portrait(
    source: Any = None,
    *,
    inputs: ArrayLike | None = None,
    context: Any = None,
    n_starts: int = 12,
    cycle: Any = None,
    units: Sequence[int] | str | None = None,
    delay: int | None = None,
    n_transient: int | None = None,
    field: Reservoir | None = None,
    smooth: bool | None = None,
    band: float | Mapping[str, float] | None = None,
    labels: Sequence[str] | None = None,
    trajectories: Any = None,
    legend: bool | str = True,
    line_kw: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw trajectories from several initial states, and the cycles to which they converge.

    The source is given as trajectories, or is a network that is run: a fitted model in closed loop,
    or a reservoir under zeros or a periodic drive.

    Transients are thin, dashed and grey, with a cross at the initial state. Cycles are broad, with
    a marker at each state. Arrows point forwards in time, and are on each cycle once. Time is
    discrete: the lines between states only show their order. Set `smooth` for long cycles or many
    trajectories. Axes have the names of the outputs, which are those of the columns of y or X.

    Parameters
    ----------
    source : array or DataFrame of shape (n_samples, n_units), a sequence of these, or a network
        One trajectory or several, of one or of different lengths: states of a reservoir, or rows
        of data and of a forecast. Row 0 is the initial state. Or a fitted estimator or pipeline
        that `reservoir.forecast` runs in closed loop, whose outputs are drawn. Or a `Reservoir`,
        or an estimator that has one and cannot forecast ("open reservoir"), whose states are drawn,
        from zeros, two corners and random states.
    inputs : array of shape (period, n_features) or (n_features,), default=None
        One period of the inputs of a reservoir, by default a row of zeros. Trajectories are drawn
        at the end of each period, cycles at every phase: each state of a cycle is a fixed point of
        the map over the periods that begin there. With `field`, the input row at which its steps
        are computed.
    context : array of shape (n_context, n_features), or a list of these, default=None
        Rows to warm up a closed loop on: a start at the end of each. By default `n_starts` outputs
        are spread over the range of the targets and held until the network settles ("start: held").
        Such starts are not on the flow of the system: from Van der Pol's own path they stray by
        0.07 to 0.4 within 60 steps, those after twenty true rows by 0.001 to 0.02.
    n_starts : int, default=12
        Number of initial states if a network is run without `context`.
    cycle : array of shape (period, n_units), several of these, object, or False, default=None
        One cycle or several, as arrays or as an object with an attribute `states`, such as a
        `LimitCycle` or `Attractors`; of a `LoopCycle` the outputs, if the trajectories are outputs.
        By default those of a network that is run are found (`find_loop_cycle` for a closed loop,
        `sample_attractors` for a reservoir), or "no cycle found" is the title, and the late parts
        of trajectories are drawn, thin, or if they take large steps as points; of given
        trajectories the late part, from `n_transient` on, is drawn instead. With False, that is
        drawn of a network, too.
    units : pair of int or "pca", default=None
        The two units to draw, by default the first two, or of a network with more the principal
        components, or "pca" for the two leading principal
        components of the cycles (or of all states, if the cycles are on one line); the axis labels
        give the fraction of the variance that each explains. On axes of three dimensions, three
        units or components.
    delay : int, steps, default=None
        A closed loop of one output, or rows of one column, is drawn against its value so many steps
        before, on axes of three dimensions against that of twice as many, too; by default a quarter
        of the period, or without a cycle the first zero of its autocorrelation.
    n_transient : int, default=None
        Number of rows at the start of each trajectory to draw as transient. By default it is half
        of the rows, or 0 if `labels` name the trajectories; if `cycle` is given, it is the number
        of rows before the trajectory stays near the cycles, within 1 % of the range of all states.
    field : Reservoir, default=None
        A network of two units. Grey arrows of equal length show the direction of its next step from
        each point of a grid. Output feedback, if the network has any, is set to 0.
    smooth : bool, default=None
        Whether to join the states by smooth curves without markers, for cycles of many small steps.
        By default only for networks that are run and whose cycles have small steps, about twenty a
        turn or more, or for loops on a closed curve. Transients are then thin and solid, with a dot
        at the initial state, only cycles have arrows, and both axes have the same scale.
    band : float or dict of str to float, default=None
        A distance from the cycle for which a proof holds, in the Euclidean norm over all units. It
        is drawn as a soft band around the curve, with the same scale on both axes. No projection
        increases a distance, so states within `band` of the cycle are drawn inside. A dict draws
        several bands, with its keys in the legend. `band` requires `cycle`.
    labels : list of str, default=None
        Names of the cycles, which by default are named by their periods. Without `cycle`, names of
        the trajectories, each of which is then drawn in its own colour.
    trajectories : array, default=None
        The former name of `source`.
    legend : bool or "outside", default=True
        Whether to draw a legend: in a new figure above the axes, in given axes inside them, with
        "outside" to their right.
    line_kw : dict, default=None
        Properties of the cycles, as of `matplotlib.lines.Line2D`.
    ax : matplotlib Axes, default=None
        Axes to draw on, of two dimensions, or of three without `field`, `band` and arrows; by
        default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If shapes do not match, a state is NaN or infinite, a unit does not exist, `field` is not a
        network of two units or `units` are not these two, `band` is not positive or is given
        without `cycle`, or `labels` does not have a name for each cycle or trajectory.
    TypeError
        If `source` is an `ESNForecaster`, or an estimator is given among trajectories.

    References
    ----------
    .. [1] Bay (2017), figure 3.7.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import plotting
    >>> turn = 0.8 * np.array([[0.0, -1.0], [1.0, 0.0]])
    >>> rows = [np.array([1.0, 0.0])]
    >>> for _ in range(30):
    ...     rows.append(np.tanh(turn @ rows[-1] + 0.1))
    >>> ax = plotting.phase_portrait(np.array(rows), cycle=rows[-1:])
    >>> ax.get_legend_handles_labels()[1]
    ['initial state', 'transient', 'fixed point']
    >>> ax = plotting.phase_portrait(np.array(rows), cycle=rows[-1:], band={"proved": 0.3})
    >>> ax.get_legend_handles_labels()[1][-1]
    'proved'

    A model that has learned a wave, in closed loop:

    >>> from reservoir import ESNRegressor
    >>> angle = 2 * np.pi * np.arange(600)[:, None] / 25.5
    >>> X = np.hstack([np.sin(angle), np.cos(angle)])
    >>> esn = ESNRegressor(50, n_lags=1, random_state=0).fit(X[:-1], X[1:])
    >>> ax = plotting.phase_portrait(esn, context=X[:100])
    >>> ax.get_legend_handles_labels()[1][-1].split(", ")[0]
    'cycle of period 25.5'
    """
    source = source if trajectories is None else _renamed(trajectories)
    shown = _shown(source, inputs, context, n_starts, cycle, field)
    n_axes = 3 if getattr(ax, "name", "") == "3d" else 2
    shown, turns = _read_turns(shown, delay, n_axes)
    paths, cycles = shown.paths, None if turns is None else [turn.rows for turn in turns]
    bands = {} if band is None else _read_band(band, cycles)
    own = labels is not None and cycles is None  # each trajectory in its own colour
    _check_labels(labels, paths if cycles is None else cycles, "trajectory" if own else "cycle")
    if n_axes == 3 and (bands or field is not None):
        raise ValueError("field and band are drawn on a plane; ax has three dimensions. Omit them.")
    # Divide the trajectories into transients and late parts, and project all onto the plane. The
    # principal components are those of the cycles or late parts: transients would dominate them.
    cuts = _cuts(paths, turns, 0 if own and n_transient is None else n_transient, shown.step)
    late = [_Turn(path[k:]) for path, k in zip(paths, cuts, strict=True)]
    ends = late if turns is None else turns
    chosen = shown.units(n_axes) if units is None else units
    if field is not None or (inputs is not None and not is_run(source)):
        row = _field_input(field, inputs, chosen)
    look = _Look.of(smooth, shown, ends, own)
    project, names = _projection(chosen, [e.rows for e in ends], paths, n_axes, shown.name_of)
    paths = [project(path) for path in paths]
    ends = [end._replace(rows=project(end.rows)) for end in ends]
    # Draw transients and cycles, then bands below them; last the field, which fills the limits.
    picture = Picture(ax, legend, line_kw, spatial=True)
    _draw_paths(picture, paths, cuts, shown, look)
    named = _names(turns, labels or shown.labels, _late_label(cuts), len(ends))
    _draw_ends(picture, ends, named, look)
    _draw_bands(picture, ends, bands, look.smooth)
    _once_each(picture.ax)
    if (look.smooth or bands) and n_axes == 2:
        picture.ax.set_aspect("equal", adjustable="box")
    if field is not None:
        _draw_field(picture, field, row, swapped=tuple(chosen) == (1, 0))
    for side, name in zip("xyz", names, strict=False):
        getattr(picture.ax, f"set_{side}label")(name)
    picture.thin_out_ticks()
    if shown.title:
        picture.ax.set_title(shown.title, fontsize="medium")
    return picture.finish()


def _renamed(trajectories: Any) -> Any:
    message = "trajectories is called source now. Pass it as the first argument."
    warnings.warn(message, FutureWarning, stacklevel=caller_level())
    return trajectories


def _check_widths(n_units: int, **tables: list[Array]) -> None:
    for name, arrays in tables.items():
        if any(array.shape[1] != n_units for array in arrays):
            raise ValueError(f"Every array in {name} must have n_units={n_units} columns.")


class _Turn(NamedTuple):
    """The rows of a cycle; `gap` is the time from the last row to the first, in steps.

    `is_curve` is true if it is known that they are on a closed curve.
    """

    rows: Array
    gap: float = 1.0
    name: str | None = None
    is_curve: bool = False

    @property
    def period(self) -> float:
        """Duration of a turn, in steps."""
        return len(self.rows) - 1 + self.gap

    def with_past(self, delay: int, n: int) -> _Turn:
        """Return the turn of one output with its values one delay before, and more, n in all."""
        if self.gap == 1:
            return self._replace(rows=np.hstack([np.roll(self.rows, k * delay) for k in range(n)]))
        times = np.arange(len(self.rows))
        closed = np.append(self.rows, self.rows[0])
        around = CubicSpline([*times, self.period], closed, bc_type="periodic")
        before = (times[:, None] - delay * np.arange(n)) % self.period
        return self._replace(rows=around(before))

    def arrivals(self, step: int) -> Array:
        """Return the points that trajectories of every `step`-th row reach."""
        if self.gap != 1:
            return _curve(self, True, True)
        return self.rows if len(self.rows) % step else self.rows[step - 1 :: step]


class _Look(NamedTuple):
    """How a portrait looks.

    Curves are `smooth`, or have a marker at each state. Cycles are `closed`; else late parts are
    drawn, each in its `own` colour, or `loose`: those of a network whose cycle is not known.
    """

    smooth: bool
    closed: bool
    own: bool
    loose: bool

    @classmethod
    def of(cls, smooth: bool | None, shown: Ran, ends: list[_Turn], own: bool) -> _Look:
        """Return the look of what a portrait shows; by default closed curves of runs are smooth."""
        if smooth is None:
            smooth = shown.is_run and all(e.is_curve or _small_steps(e.rows) for e in ends)
        closed = shown.cycles is not None
        return cls(bool(smooth), closed, own, shown.is_run and not closed and not own)

    @property
    def dots(self) -> bool:
        """Whether the late parts are those of a map, which no lines can show."""
        return self.loose and not self.smooth


def _small_steps(rows: Array) -> bool:
    """Whether most steps are small against the range of the rows."""
    steps = np.linalg.norm(np.diff(rows, axis=0), axis=1)
    return len(rows) > 3 and bool(
        np.median(steps) <= _SMALL_STEP * np.linalg.norm(np.ptp(rows, axis=0))
    )


def _shown(source: Any, inputs: Any, context: Any, n_starts: int, cycle: Any, field: Any) -> Ran:
    """Run a network, or read trajectories."""
    if is_run(source):
        return ran(source, inputs, context, n_starts, cycle, constant=field is not None)
    if context is not None:
        raise TypeError("context is for a fitted model, and source is none. Omit context.")
    paths, cycles = _tables("source", source), None if cycle is False else cycle
    names = _columns(source) or _columns(cycle)
    return Ran(paths, names, cycles, what=_what(source, cycles, field, paths[0].shape[1]))


def _what(source: Any, cycles: Any, field: Any, n_columns: int) -> str:
    """Return what the columns of arrays are called: states, outputs, or what can be either."""
    parts = [*_listed(source), *_listed(cycles), source, cycles]
    loops = [each for each in parts if isinstance(each, LoopCycle)]
    if loops and loops[0].outputs.shape[1] == n_columns:
        return "output"
    return "state of unit" if field or any(hasattr(p, "states") for p in parts) else "column"


def _listed(given: Any) -> list[Any]:
    """Return the parts of a list or tuple; none of anything else."""
    return list(given) if isinstance(given, (list, tuple)) else []


def _turns(cycle: Any, n_units: int) -> list[_Turn]:
    """Return the cycles that are given, each in n_units columns if it has them."""
    given = _listed(cycle) or [cycle]
    if not all(isinstance(each, LoopCycle) for each in given):
        return [_Turn(rows) for rows in _tables("cycle", cycle)]
    turns: list[_Turn] = []
    for each in given:
        n = max(1, round(each.period))  # the next row is less than a step and a half after the last
        rows = each.outputs if each.outputs.shape[1] == n_units else each.states
        what = cycle_label(each.period, len(turns), len(given))
        second = np.abs(each.multipliers[each.on_curve :][:1])
        name = ", ".join(filter(None, [what, *(f"multiplier {value:.3g}" for value in second)]))
        named = name if len(given) <= 4 else what
        turns.append(_Turn(rows[:n], each.period - n + 1, named, each.on_curve == 1))
    return turns


def _read_turns(shown: Ran, delay: Any, n_axes: int) -> tuple[Ran, list[_Turn] | None]:
    """Return what is shown and its cycles; one output with its values some delays before."""
    n_units = shown.paths[0].shape[1]
    turns = None if shown.cycles is None else _turns(shown.cycles, n_units)
    _check_widths(n_units, source=shown.paths, cycle=[turn.rows for turn in turns or []])
    if n_units > 1:
        if delay is not None:
            raise ValueError(
                f"delay={delay} is for a closed loop, or rows, of one output. Omit delay."
            )
        return shown, turns
    if delay is not None:
        d = check_count("delay", delay)
    elif turns:
        d = max(1, round(turns[0].period / 4))
    else:
        d = _uncorrelated(max(shown.paths, key=len)[:, 0])
    past = d * (n_axes - 1)
    kept = [i for i, path in enumerate(shown.paths) if len(path) > past]
    if not kept:
        raise ValueError(f"delay={d} leaves no rows of any trajectory. Give a shorter delay.")
    paths = [
        np.hstack(
            [shown.paths[i][past - k * d : len(shown.paths[i]) - k * d] for k in range(n_axes)]
        )
        for i in kept
    ]
    name = shown.name_of(0)
    columns = [name, *(f"{name}, {k * d} steps before" for k in range(1, n_axes))]
    reached = None if shown.reached is None else [shown.reached[i] for i in kept]
    turned = None if turns is None else [turn.with_past(d, n_axes) for turn in turns]
    return shown._replace(paths=paths, columns=columns, reached=reached), turned


def _uncorrelated(y: Array) -> int:
    """Return the first lag at which the autocorrelation is not positive; 1 for none."""
    y = y[len(y) // 2 :] - y[len(y) // 2 :].mean()
    correlation = np.correlate(y, y, "full")[len(y) - 1 :]
    return max(1, int(np.argmax(correlation <= 0)))


def _names(turns: list[_Turn] | None, labels: Any, late: str, n_ends: int) -> list[str | None]:
    """Return the name in the legend of each cycle or late part."""
    if labels is not None:
        return [str(label) for label in labels]
    if turns is None:
        return [late, *[None] * (n_ends - 1)]
    return [turn.name or cycle_label(len(turn.rows), k, n_ends) for k, turn in enumerate(turns)]


def _check_labels(labels: Any, named: list[Array], what: str) -> None:
    if labels is not None and (isinstance(labels, str) or len(labels) != len(named)):
        raise ValueError(f"labels={labels!r} must be a list of {len(named)} names, one per {what}.")


def _columns(source: Any) -> list[str] | None:
    """Return the names of the columns of a table, or of the first among several; or None."""
    named = (each for each in [source, *_listed(source)] if hasattr(each, "columns"))
    return next(([str(name) for name in each.columns] for each in named), None)


def _states_of(name: str, source: Any) -> Any:
    """Return the attribute `states` of an object that has some, or else the object."""
    given = getattr(source, "states", source)
    if callable(given):
        raise TypeError(
            f"{name} is {type(source).__name__}, which has no states until it receives inputs. "
            "Pass its states under some rows, which its method states returns, or rows of data."
        )
    return given


def _tables(name: str, source: Any) -> list[Array]:
    """Return a list of arrays, from one array, a sequence of arrays or an object's `states`."""
    given = _states_of(name, source)
    is_array = isinstance(given, np.ndarray) and given.dtype != object
    if (is_array or hasattr(given, "columns")) and np.ndim(given) == 2:
        return [finite(name, given, "n_samples", "n_units")]
    if not isinstance(given, (Sequence, np.ndarray)) or isinstance(given, str) or not len(given):
        raise ValueError(
            f"{name} must be an array of shape (n_samples, n_units) or a sequence of such arrays; "
            f"got {type(given).__name__}."
        )
    parts: list[Any] = [_states_of(name, part) for part in given]
    if all(np.ndim(part) < 2 for part in parts):  # a list of rows is one array
        return [finite(name, given, "n_samples", "n_units")]
    return [finite(f"{name}[{i}]", p, "n_samples", "n_units") for i, p in enumerate(parts)]


def _cuts(
    paths: list[Array], cycles: list[_Turn] | None, n_transient: int | None, step: int
) -> list[int]:
    """Return the number of transient rows of each trajectory, of every `step`-th row."""
    if n_transient is None:
        if cycles is None:
            return [len(path) // 2 for path in paths]
        targets = np.concatenate([turn.arrivals(step) for turn in cycles])
        return [_arrival(path, targets) for path in paths]
    count = check_count("n_transient", n_transient, minimum=0)
    shortest = min(len(path) for path in paths)
    if cycles is None and count >= shortest:
        raise ValueError(
            f"n_transient={count} leaves no rows of a trajectory of {shortest} rows. Lower "
            "n_transient, or pass cycle."
        )
    return [min(count, len(path)) for path in paths]


def _arrival(path: Array, targets: Array) -> int:
    """Return the number of rows before the trajectory stays close to the states of the cycles."""
    distance, _ = KDTree(targets).query(path, p=np.inf)
    near = 0.01 * max(np.ptp(np.vstack([path, targets]), axis=0).max(), 1e-12)
    return int(np.flatnonzero(distance > near).max(initial=-1)) + 2


def _projection(
    units: Any, ends: list[Array], paths: list[Array], n_axes: int, name_of: Callable[[int], str]
) -> tuple[Any, list[str]]:
    """Return the function that projects states onto the axes, and the names of the axes."""
    n_units = paths[0].shape[1]
    if isinstance(units, str) and units == "pca":
        return _components(ends, paths, n_axes)
    chosen = np.asarray(units, dtype=object)
    whole = chosen.shape == (n_axes,) and all(isinstance(u, (int, np.integer)) for u in chosen)
    if not whole or not all(0 <= u < n_units for u in chosen) or len({*chosen}) < n_axes:
        raise ValueError(
            f'units={units!r} must be "pca" or {("two", "three")[n_axes - 2]} different units in '
            f"[0, {n_units - 1}]."
        )
    some = [int(unit) for unit in chosen]
    return (lambda H: H[:, some]), [name_of(unit) for unit in some]


def _components(ends: list[Array], paths: list[Array], n_axes: int) -> tuple[Any, list[str]]:
    """Return the projection onto the principal components, and their axis labels."""
    from sklearn.decomposition import PCA  # slow to import, and rarely used

    rows = np.concatenate(ends)
    if np.linalg.matrix_rank(rows - rows.mean(axis=0), tol=1e-9) < n_axes:
        rows = np.concatenate([*ends, *paths])  # a fixed point or a 2-cycle does not span a plane
    if min(rows.shape) < n_axes or not np.ptp(rows, axis=0).any():
        raise ValueError(
            f'units="pca" needs different states of {n_axes} or more units; got {len(rows)} rows '
            f"of {rows.shape[1]} units. Give longer trajectories."
        )
    pca = PCA(n_axes, svd_solver="full").fit(rows)
    shares = pca.explained_variance_ratio_
    return pca.transform, [
        f"{which} component ({share:.0%})"
        for which, share in zip(("first", "second", "third"), shares, strict=False)
    ]


def _field_input(field: Any, inputs: ArrayLike | None, units: Any) -> Array:
    """Check `field` and `inputs`, and return the input row for the steps of the field."""
    if not isinstance(field, Reservoir):
        raise TypeError(f"field={field!r} must be a Reservoir, with its input row as inputs.")
    if field.n_units != 2 or isinstance(units, str) or sorted(units) != [0, 1]:
        raise ValueError(
            f"field has n_units={field.n_units}, units={units!r}: a field is drawn only for "
            "networks of two units, with units (0, 1) or (1, 0). Omit field."
        )
    if inputs is None:
        raise ValueError("field needs inputs: pass the input row, of shape (n_features,).")
    row = finite("inputs", inputs, "n_features")
    if len(row) != field.n_features:
        raise ValueError(f"inputs has {len(row)} features, but field has {field.n_features}.")
    return row


def _read_band(band: Any, cycles: list[Array] | None) -> dict[str, float]:
    """Check the distances of bands, and return them with their names, the widest first."""
    if cycles is None:
        raise ValueError(f"band={band!r} is a distance from a cycle: pass cycle, too.")
    named = band if isinstance(band, Mapping) else {f"within {band:.3g} of the cycle": band}
    for distance in named.values():
        check_number("band", distance, low=0.0, low_open=True)
    return dict(sorted(named.items(), key=lambda item: -item[1]))


def _curve(turn: _Turn, closed: bool, smooth: bool) -> Array:
    """Return the points of the curve through the rows: a polygon, or a smooth curve if `smooth`.

    If `closed`, the curve returns to the first row. The smooth curve is Akima's, which passes
    through all rows and depends only on nearby ones.
    """
    rows = turn.rows
    if not smooth or len(rows) < 3:
        return np.vstack([rows, rows[:1]]) if closed and len(rows) > 1 else rows
    times = np.arange(len(rows), dtype=float)
    n_steps, end = len(rows) - 1, times[-1]
    if closed:  # three extra rows on either side make the ends join smoothly, plus the first again
        n_steps, end = len(rows), times[-1] + turn.gap
        times = np.concatenate([times[-3:] - end, times, times[:3] + end, times[3:4] + end])
        rows = np.pad(rows, ((3, 4), (0, 0)), mode="wrap")
    return Akima1DInterpolator(times, rows)(np.linspace(0, end, _PER_STEP * n_steps + 1))


def _draw_bands(picture: Picture, ends: list[_Turn], bands: dict[str, float], smooth: bool) -> None:
    """Draw the points of the plane within some distances of the cycles, the widest first."""
    if not bands:
        return
    # A grid around the cycles, and points on them that are closer together than the grid points.
    widest, curves = max(bands.values()), [_curve(end, True, smooth) for end in ends]
    low = np.min([curve.min(axis=0) for curve in curves], axis=0) - 1.05 * widest
    high = np.max([curve.max(axis=0) for curve in curves], axis=0) + 1.05 * widest
    cell = float((high - low).max()) / _CELLS
    sides = [np.arange(a, b + cell, cell) for a, b in zip(low, high, strict=True)]
    points = np.concatenate([_dense(curve, cell / 2) for curve in curves])
    # The distance of the grid from the cycles; the edge of a band is a contour line of it.
    distances, _ = KDTree(points).query(np.stack(np.meshgrid(*sides), axis=-1))
    ax, theme, color = picture.ax, picture.theme, picture.theme.colour(2)
    for depth, (name, distance) in enumerate(bands.items(), start=1):
        levels, share = [-1.0, distance], 0.15
        kw: dict[str, Any] = {"colors": [color]}
        area = ax.contourf(*sides, distances, levels, alpha=share, zorder=0.6, **kw)
        edge = ax.contour(*sides, distances, [distance], linewidths=0.8, zorder=0.7, **kw)
        for drawn in (area, edge):  # the grid's edges are not to be the limits of the axes
            drawn.sticky_edges.x.clear()
            drawn.sticky_edges.y.clear()
        # in the legend as it looks where it lies on the wider ones
        shade = theme.area(color, 1 - (1 - share) ** depth)
        ax.fill([], [], **shade, label=name)


def _dense(curve: Array, spacing: float) -> Array:
    """Return points on a polygon, no further apart than `spacing`."""
    length = np.append(0.0, np.cumsum(np.hypot(*np.diff(curve, axis=0).T)))
    at = np.linspace(0, length[-1], int(np.ceil(length[-1] / spacing)) + 1)
    return np.c_[np.interp(at, length, curve[:, 0]), np.interp(at, length, curve[:, 1])]


def _draw_paths(
    picture: Picture, paths: list[Array], cuts: list[int], shown: Ran, look: _Look
) -> None:
    """Draw transients: cross, dashed line and arrows, or if smooth a dot and a thin curve."""
    ax, theme = picture.ax, picture.theme
    smooth = look.smooth and shown.step == 1  # states of every so many steps are on no curve
    n_arrows = int(np.clip(_PATH_ARROWS // len(paths), 1, _ARROWS))
    dot = theme.marker("o", 2) | {"color": theme.muted, "linestyle": "none"}
    line = {"color": theme.muted, "linewidth": theme.width(0.5 if smooth else 0.8)}
    line |= {} if smooth else {"linestyle": (0, (4, 1.5))}
    for i, (path, cut) in enumerate(zip(paths, cuts, strict=True)):
        path = path[: cut if look.closed else cut + 1]
        style, reached = dot if smooth else theme.start, shown.reached_by(i)
        if reached >= 0:
            style = dot | theme.marker("o", 4) | {"color": theme.colour(reached)}
        if len(path):
            ax.plot(*path[:1].T, **style, zorder=4, label=shown.start)
        if len(path) > 1 and not look.dots:
            curve = _curve(_Turn(path), False, smooth)
            ax.plot(*curve.T, **line, zorder=2, label="transient")
            if not smooth:
                _arrows(ax, path, theme.muted, n_arrows, power=2)


def _draw_ends(picture: Picture, ends: list[_Turn], names: list[str | None], look: _Look) -> None:
    """Draw the cycles, or the late parts of trajectories: arrows are on each curve once."""
    told: list[Array] = []
    for k, (end, name) in enumerate(zip(ends, names, strict=True)):
        loop = _draw_cycle(picture, end, k if look.closed or look.own else 0, name, look)
        if look.dots or len(loop) < 2:
            continue
        if look.closed:
            _arrows(picture.ax, loop, picture.theme.colour(k), _ARROWS)
        elif not told or _are_apart(end.rows, np.concatenate(told)):
            told.append(end.rows)
            color = picture.theme.colour(k if look.own else 0)
            _arrows(picture.ax, loop, color, _ARROWS)


def _are_apart(rows: Array, others: Array) -> bool:
    """Whether most rows are far from all others, in shares of the range."""
    distances, _ = KDTree(others).query(rows)
    return bool(np.median(distances) > _APART * np.ptp(np.vstack([rows, others]), axis=0).max())


def _draw_cycle(picture: Picture, turn: _Turn, k: int, label: str | None, look: _Look) -> Array:
    """Draw a cycle in the k-th colour and marker, or a late part; return the points of its curve.

    Late parts of a run without a cycle are thin, or of a map are small dots.
    """
    loop = _curve(turn, look.closed, look.smooth)
    theme = picture.theme
    color = theme.colour(k)
    style: dict[str, Any] = {"color": color, "linestyle": DASHES[(k // 2) % 4]}
    style["linewidth"] = theme.width(1.0 if look.loose else 2.2 if look.smooth else 1.6)
    if look.dots:
        style |= theme.marker(".", 2) | {"linestyle": "none"}
    elif not look.smooth or len(loop) == 1:
        style |= theme.marker(_CYCLE_MARKERS[k % 4], 4)
        style["markerfacecolor"] = color if k % 2 == 0 else theme.ground
    picture.ax.plot(*loop.T, **picture.subject(style | {"zorder": 3}, label))
    return loop


def _arrows(ax: Any, path: Array, color: Any, n_arrows: int, power: int = 1) -> None:
    """Draw arrowheads of equal size on some steps of a path in the plane.

    They are spread evenly over its length; with `power` above 1 there are more of them near the
    start, where transients take long steps.
    """
    if path.shape[1] == 3:
        return
    steps = np.diff(path, axis=0)
    # The length as drawn: in shares of the range of each axis, not in units of the states.
    length = np.cumsum(np.hypot(*(steps / np.maximum(np.ptp(path, axis=0), 1e-12)).T))
    if length[-1] == 0:
        return
    shares = ((np.arange(n_arrows) + 0.5) / n_arrows) ** power
    at = np.unique(np.searchsorted(length, length[-1] * shares))
    middle = (path[at] + path[at + 1]) / 2
    ax.quiver(
        *middle.T,
        *(steps[at] / np.hypot(*steps[at].T)[:, None]).T,
        angles="xy",
        scale_units="inches",
        scale=1 / 0.11,
        units="inches",
        width=0.012,
        headwidth=7,
        headlength=9,
        headaxislength=8,
        pivot="mid",
        color=color,
        zorder=5,
    )


def _late_label(cuts: list[int]) -> str:
    """Return the legend label of the late parts of trajectories."""
    return f"from step {cuts[0]} on" if len(set(cuts)) == 1 else "second half"


def _once_each(ax: Any) -> None:
    """Hide all but the first of equal labels in the legend."""
    seen: set[str] = set()
    for line in ax.get_lines():
        name = str(line.get_label())
        line.set_label("_" + name if name in seen else name)
        seen.add(name)


def _draw_field(picture: Picture, field: Reservoir, row: Array, swapped: bool) -> None:
    """Draw the direction of the network's next step as arrows on a grid over the axes.

    `row` is the input of the step; `swapped` is true if unit 1 is on the horizontal axis.
    """
    ax, theme = picture.ax, picture.theme
    sides = [np.linspace(low, high, _FIELD_POINTS) for low, high in (ax.get_xlim(), ax.get_ylim())]
    grid = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    order = [1, 0] if swapped else [0, 1]
    starts = grid[:, order].astype(field.dtype)
    one = [row[None]] * len(starts)
    zeros = None if field.W_fb is None else [np.zeros((1, field.n_outputs))] * len(starts)
    new = run_many(field, one, initial_states=starts, feedback=zeros)
    steps = np.concatenate(new)[:, order] - grid
    # All arrows have equal length on screen: whole steps are long and would cross each other.
    drawn = np.hypot(*(steps / np.ptp(grid, axis=0)).T)
    steps = np.divide(steps, drawn[:, None], out=np.zeros_like(steps), where=drawn[:, None] > 0)
    extent = ax.dataLim.frozen()
    ax.quiver(
        *grid.T,
        *(steps / (1.6 * _FIELD_POINTS)).T,
        angles="xy",
        scale_units="xy",
        scale=1,
        width=0.0018,
        color=theme.mix(theme.muted, 0.6),
        zorder=1,
    )
    ax.dataLim.set(extent)  # the field fills the limits, and does not extend them
    key = theme.marker(">", 4) | {"color": theme.muted}
    ax.plot([], [], **key, label="next step")

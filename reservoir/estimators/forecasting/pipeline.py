"""Networks inside scikit-learn's wrappers, and the feedback of their closed loops.

`walk` finds the network and the steps around it, a `Chain`; `Layout` maps the columns of the user's
X and the units of the user's y to the network and back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from reservoir._tables import Sequences, container_of
from reservoir._tables.frames import read_one
from reservoir._typing import Array
from reservoir.dynamics.fed_back import as_limits, changed
from reservoir.estimators.forecasting.predictor import Forecaster, forecaster_of
from reservoir.estimators.forecasting.row_steps import (
    Affine,
    check_without_memory,
    compose,
    folded,
    with_names,
)
from reservoir.estimators.forecasting.state_steps import (
    ChainForecaster,
    RegressorForecaster,
    is_plain_regressor,
    keeps_a_state,
    steps_of,
)
from reservoir.estimators.progress import widened

Rows = Callable[[Array], Array]


class Bounds(NamedTuple):
    """Bounds of the feedback: limits to which it is clipped, or a function that is applied to it.

    The limits, of shape (2, n_outputs), are in terms of the network's "inputs", of its "targets",
    or in the "units" of the outermost y, as `of` specifies. A function always takes and returns
    values in the units of y.
    """

    of: str
    ends: Array | Callable[[Array], Any]

    def apply(self, of: str, rows: Array) -> Array:
        """Return bounded rows if the bounds are in terms of `of`, else the rows unchanged."""
        if of != self.of:
            return rows
        if callable(self.ends):
            return np.array([changed(self.ends, row) for row in rows])
        return np.clip(rows, *self.ends)

    def of_inputs(self, layout: Layout) -> Any:
        """Return `clip` in terms of the network's inputs, by affine maps."""
        fed, of_units, q = layout.fed_back(), layout.inputs_map, layout.n_outputs
        assert fed is not None
        assert of_units is not None
        to_inputs = {"targets": fed, "units": of_units.columns(layout.columns[:q])}.get(self.of)
        if callable(self.ends):
            assert to_inputs is not None
            return self._between(to_inputs.inverse().__call__, to_inputs.__call__)
        ends = self.ends[:, :q] if to_inputs is None else to_inputs(self.ends)
        low, high = np.sort(ends, axis=0)  # a scale may be negative
        return low, high

    def of_targets(self, layout: Layout) -> Any:
        """Return `clip` in terms of the outputs fed back through feedback weights."""
        if callable(self.ends):
            return self._between(layout.to_units, layout.to_targets)
        low, high = layout.ends_of_targets(self.ends) if self.of == "units" else self.ends
        return low, high

    def _between(self, to_units: Rows, back: Rows) -> Callable[[Array], Array]:
        """Return the function of one row, between the maps to its units and back."""
        return lambda row: back(self.apply(self.of, to_units(row[None])))[0]


def bounds_of(network: Forecaster, clip: Any) -> Bounds | None:
    """Return the bounds that the parameter `clip` defines; None for none."""
    if clip is None or (isinstance(clip, (bool, np.bool_)) and not clip):
        return None
    if callable(clip):
        return Bounds("units", clip)
    if isinstance(clip, (bool, np.bool_)):
        certificate = network.certificate
        if certificate is not None and certificate.holds:
            fed_back = network.feeds_back
            ends = certificate.output_range if fed_back else certificate.input_range
            return Bounds("targets" if fed_back else "inputs", ends)
        if not np.isfinite(network.progress.target_range).all():
            raise ValueError(
                "clip=True keeps the feedback near the range of the training targets, but this "
                "network has none. Set a range in the units of y: clip=(low, high)."
            )
        return Bounds("targets", widened(network.progress.target_range))
    limits = as_limits(clip, network.n_outputs, np.float64)
    assert limits is not None
    return Bounds("units", np.array([np.broadcast_to(end, network.n_outputs) for end in limits]))


def through_inputs(
    layout: Layout, output: Array, state: Array, exog: Array, bounds: Bounds | None
) -> tuple[Array, Array, int]:
    """Close the loop through the inputs; return outputs, end state and number of finite steps."""
    network, q = layout.network, layout.n_outputs
    fed = layout.fed_back()
    if fed is None or layout.inputs_map is None:
        return row_by_row(layout, network.readout(), output, state, exog, bounds)
    inputs_map = layout.inputs_map.columns(layout.columns)
    rows, state, n_valid = network.run(
        folded(fed, network.readout()),
        len(exog),
        initial_state=state,
        initial_output=fed(output),
        exog=inputs_map.columns(slice(q, None))(exog) if layout.n_exog else None,
        clip=None if bounds is None else bounds.of_inputs(layout),
    )
    return fed.inverse()(rows.astype(np.float64)), state, n_valid


def row_by_row(
    layout: Layout,
    readout: Any,
    output: Array,
    state: Array,
    exog: Array,
    bounds: Bounds | None,
    first_input: Array | None = None,
) -> tuple[Array, Array, int]:
    """Close the loop through transformers that are not affine maps, one row at a time.

    `first_input` is the input of the first step; by default it is computed from the last output.
    """
    network, outputs = layout.network, [output]

    def bounded(of: str, rows: Array) -> Array:
        return rows if bounds is None else bounds.apply(of, rows)

    def following() -> Array:
        """Return the network's input after the last output; that after the final step is unused."""
        row = exog[min(len(outputs), len(exog)) - 1]
        units = bounded("units", layout.to_units(bounded("targets", outputs[-1][None])))
        return layout.to_inputs(units, row[None])[0]

    def step(features: Array) -> Array:
        new = readout(features) if callable(readout) else readout[0] @ features + readout[1]
        outputs.append(np.asarray(new, dtype=np.float64))
        return following()

    _, state, n_valid = network.run(
        step,
        len(exog),
        initial_state=state,
        initial_output=following() if first_input is None else first_input,
        clip=bounds.ends if bounds is not None and bounds.of == "inputs" else None,
    )
    rows = np.array(outputs[1 : 1 + n_valid]).reshape(n_valid, output.size)
    last = np.repeat(np.array(outputs[n_valid])[None], len(exog) - n_valid, axis=0)
    return np.concatenate([rows, last]), state, n_valid


def through_weights(
    layout: Layout, output: Array, state: Array, exog: Array, bounds: Bounds | None
) -> tuple[Array, Array, int]:
    """Close the loop through feedback weights; all inputs are exogenous."""
    network, n_units = layout.network, layout.network.n_units
    rows, end, n_valid = network.run(
        network.readout(),
        len(exog),
        initial_state=state[:n_units],
        initial_output=state[n_units:],
        exog=layout.to_inputs(np.zeros((len(exog), 0)), exog),
        clip=None if bounds is None else bounds.of_targets(layout),
    )
    return rows.astype(np.float64), np.concatenate([end, rows[-1]]), n_valid


class Chain(NamedTuple):
    """A network, the steps before its inputs and the steps after its outputs.

    `inputs` are applied in order with transform, `outputs` in order with inverse_transform. Names
    of the network's parameters get the `prefix` to become parameters of the whole model; it is None
    if the whole model cannot set them. `first` is the step whose input the network receives, if the
    network has steps of a pipeline inside.
    """

    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    network: Forecaster
    one_dimensional: bool
    innermost: Any
    prefix: str | None = ""
    first: Any = None

    @property
    def outermost(self) -> Any:
        """The step, or network, that receives the user's X."""
        inside = self.innermost if self.first is None else self.first
        return self.inputs[0] if self.inputs else inside

    def below(self, name: str) -> Chain:
        """Return the chain as part of a model that has it as its parameter `name`."""
        return self._replace(prefix=None if self.prefix is None else f"{name}__{self.prefix}")


def walk(model: Any, *, behind_states: bool = False) -> Chain:
    """Return the network inside a model, and the steps around it.

    Behind a step that keeps a state, any regressor may be at the end.
    """
    if hasattr(model, "best_estimator_"):
        return walk(model.best_estimator_, behind_states=behind_states)._replace(prefix=None)
    if hasattr(model, "refit") and hasattr(model, "cv_results_"):
        raise ValueError(
            f"{type(model).__name__} was fitted with refit=False, so it has no fitted network. Use "
            "refit=True, or fit a network with the best parameters."
        )
    if isinstance(model, FrozenEstimator):
        return walk(model.estimator, behind_states=behind_states)._replace(prefix=None)
    if isinstance(model, Pipeline):
        name, last = model.steps[-1]
        steps = steps_of(model.steps[:-1])
        # a network begins with the first step that keeps a state from row to row
        n = next((k for k, step in enumerate(steps) if keeps_a_state(step)), len(steps))
        inner = walk(last, behind_states=behind_states or n < len(steps)).below(name)
        if n == len(steps):
            return inner._replace(inputs=tuple(steps) + inner.inputs)
        joined, first = ChainForecaster(steps[n:], inner), steps[n]
        return inner._replace(inputs=tuple(steps[:n]), outputs=(), network=joined, first=first)
    if isinstance(model, TransformedTargetRegressor):
        inner = walk(model.regressor_, behind_states=behind_states).below("regressor")
        one = model._training_dim == 1  # scikit-learn squeezes one column before the regressor
        return inner._replace(outputs=(*inner.outputs, model.transformer_), one_dimensional=one)
    plain = behind_states and is_plain_regressor(model)
    network: Any = RegressorForecaster(model) if plain else forecaster_of(model)
    return Chain((), (), network, network.one_dimensional, model)


def in_order_of_fit(name: str, table: Any, names: list[str] | None) -> Any:
    """Return a frame with its columns ordered as in fit, and anything else unchanged.

    As in scikit-learn, only strings count as names.
    """
    if names is None or not hasattr(table, "columns"):
        return table
    given = list(table.columns)
    if given == names or not any(isinstance(column, str) for column in given):
        return table
    missing = [column for column in names if column not in given]
    unknown = [column for column in given if column not in names]
    if missing or unknown or len(given) != len(names):
        faults = [f"lacks {missing}"] if missing else []
        faults += [f"has {unknown}, which fit has not seen"] if unknown else []
        faults += ["has a column twice"] if not faults else []
        raise ValueError(
            f"{name} {' and '.join(faults)}: its columns must be {names}, in any order. Select "
            f"them by name, or pass an array to use positions, `{name}.to_numpy()`."
        )
    return table[names]


class Layout:
    """Columns of the outermost X (ids, outputs, exogenous), and their maps to the network."""

    def __init__(self, chain: Chain) -> None:
        self.chain, self.network = chain, chain.network
        self.n_outputs = self.network.n_outputs
        self.feedback = self.network.feeds_back
        width = getattr(chain.outermost, "n_features_in_", self.network.n_features_in)
        self.id_column = self.network.id_column
        n_features = width - (self.id_column is not None)
        self.n_exog = n_features - (0 if self.feedback else self.n_outputs)
        self.inputs_map = compose(chain.inputs, width)
        self.units_map = compose(chain.outputs, self.n_outputs, inverse=True)
        self.columns = [column for column in range(width) if column != self.id_column]
        names = getattr(chain.outermost, "feature_names_in_", None)
        self.names = None if names is None else list(names)

    @property
    def output_names(self) -> list[str] | None:
        """Names of the outputs: those of the columns of y, or else of X; None for arrays."""
        reader = getattr(self.chain.innermost, "_reader", None)
        names = getattr(reader, "target_names", None)
        if names is None and self.names is not None and not self.feedback:
            names = [self.names[column] for column in self.columns[: self.n_outputs]]
        return None if names is None else [str(name) for name in names]

    def check_trained_for_loop(self) -> None:
        """Check that the network was trained to predict its own next input."""
        self.network.check_can_loop()
        if self.n_exog < 0:
            raise ValueError(
                f"forecast feeds outputs back as inputs, but y has {self.n_outputs} columns and "
                f"X has {self.n_exog + self.n_outputs}. The first columns of X must be the outputs."
            )
        alone = not self.chain.inputs and not self.chain.outputs and self.network.reads_targets
        problem = self.network.progress.pairing.problem if alone else self._sampled_problem()
        if problem is not None:
            elsewhere = self._columns_of_outputs()
            if elsewhere is not None:
                raise ValueError(self._reorder_message(elsewhere))
            raise ValueError(
                "forecast feeds outputs back as inputs and needs y[t] == X[t+1] in training; "
                f"{problem}. Make such pairs with model_selection.make_forecast_pairs, horizon 1. "
                "If the network is a step of a pipeline or of TransformedTargetRegressor, use the "
                f"function instead: `reservoir.forecast(pipe, n_steps)`."
            )

    def _sampled_problem(self) -> str | None:
        """Map a sample of training targets through the chain; compare with the next inputs."""
        pairing = self.network.progress.pairing
        mixes = self.inputs_map is None and self.n_exog > 0  # exogenous values were not kept
        if len(pairing.targets) == 0 or mixes:
            return None
        n_exog_zeros = np.zeros((len(pairing.targets), self.n_exog))
        units, first = self.to_units(pairing.targets), self.network.to_first
        rows = first(self.to_inputs(units, n_exog_zeros, check=True), check=not self.n_exog)
        # columns that do not depend on exogenous ones, whose values were not kept
        compared = np.isclose(rows, first(self.to_inputs(units, n_exog_zeros + 1))).all(axis=0)
        if not compared.any():
            return None
        rows, followed = rows[:, compared], pairing.inputs[:, compared]
        same = _agree(rows, followed)
        if same.all():
            return None
        i, k = (int(v) for v in np.argwhere(~same)[0])
        return (
            f"in a sample of the training rows a target that the steps map to the input "
            f"{rows[i, k]:.6g} (column {k}) was followed by {followed[i, k]:.6g}"
        )

    def _columns_of_outputs(self) -> list[int] | None:
        """Return the columns of the user's X whose row t + 1 equals the output of row t.

        None if not all outputs are found in X, or if these columns are already the first ones: then
        another property of X and y prevents the closed loop.
        """
        pairing = self.network.progress.pairing
        if len(pairing.targets) == 0 or self.inputs_map is None or not self.network.reads_targets:
            return None
        found: list[int] = []
        for values in self.to_units(pairing.targets).T:
            fed = self.inputs_map.columns(self.columns)(values[:, None])
            same = np.atleast_1d(_agree(fed, pairing.inputs).all(axis=0))
            free = [c for c, ok in zip(self.columns, same, strict=True) if ok and c not in found]
            if not free:
                return None
            found.append(free[0])
        return None if found == self.columns[: self.n_outputs] else found

    def _reorder_message(self, found: list[int]) -> str:
        rest = [column for column in self.columns if column not in found]
        order = found + rest
        if self.id_column is not None:
            order.insert(self.id_column, self.id_column)
        if self.names is None:
            which, wanted = ", ".join(map(str, found)), str(order)
        else:
            which = ", ".join(repr(str(self.names[column])) for column in found)
            wanted = str([str(self.names[column]) for column in order])
        several = self.n_outputs > 1
        return (
            "forecast feeds outputs back as inputs: the outputs must be the first columns of X, "
            "in the order of y, and exogenous columns come last. Here y[t] is X[t+1] in "
            f"column{'s' if several else ''} {which}. Give X, exog and context the columns "
            f"{wanted}, in this order."
        )

    def fed_back(self) -> Affine | None:
        """Return the map from the network's outputs to its next inputs; None if not affine."""
        if self.inputs_map is None or self.units_map is None:
            return None
        of_outputs = self.inputs_map.columns(self.columns).columns(slice(0, self.n_outputs))
        return of_outputs.after(self.units_map)

    def to_inputs(self, outputs: Array, exog: Array, *, check: bool = False) -> Array:
        """Return the network's inputs for rows in the units of the outermost X.

        If `check` is set, steps that have a memory raise.
        """
        rows = np.hstack([exog] if self.feedback else [outputs, exog])
        if self.id_column is not None:
            rows = np.insert(rows, self.id_column, 0.0, axis=1)
        if self.inputs_map is not None:
            rows = self.inputs_map(rows)
        else:
            for step in self.chain.inputs:
                before = with_names(step, rows)
                rows = step.transform(before)
                if check:
                    check_without_memory(step, before, rows)
            rows = np.asarray(rows)
        return rows if self.id_column is None else np.delete(rows, self.id_column, axis=1)

    def to_units(self, outputs: Array) -> Array:
        """Return network outputs in the units of the outermost y."""
        rows = np.asarray(outputs, dtype=np.float64)
        if self.units_map is not None:
            return self.units_map(rows)
        for step in self.chain.outputs:
            rows = np.reshape(step.inverse_transform(rows), (len(rows), -1))
        return rows

    def to_targets(self, rows: Array) -> Array:
        """Return rows in the units of the outermost y as the network's own targets."""
        if self.units_map is not None:
            return self.units_map.inverse()(rows)
        for step in reversed(self.chain.outputs):
            rows = np.reshape(step.transform(rows), (len(rows), -1))
        return rows

    def ends_of_targets(self, ends: Array) -> Array:
        """Return a range in the units of the outermost y as one of the network's own targets."""
        if self.units_map is not None:
            return np.sort(self.to_targets(ends), axis=0)  # a scale may be negative
        # a step may reject infinity or values outside its domain: it accepts the training range
        reach = self.reach()
        open_ended = np.isinf(ends)
        rows = np.concatenate([np.where(open_ended, reach, ends), reach])
        with np.errstate(divide="ignore"):  # zero is the lower end for a logarithm
            rows = self.to_targets(rows)
        turned = rows[2] > rows[3]
        low, high = np.where(open_ended, np.where(turned, -1, 1) * ends, rows[:2])
        return np.where(turned, [high, low], [low, high])

    def reach(self) -> Array:
        """Return the range of the training targets in the units of the outermost y."""
        reach = self.network.progress.target_range
        if not self.chain.outputs or not np.isfinite(reach).all():
            return reach
        # the ends alone would suffice, but steps may mix the outputs
        rows = self.to_units(np.concatenate([reach, self.network.progress.pairing.targets]))
        return np.array([rows.min(axis=0), rows.max(axis=0)])

    def read_exog(self, exog: Any, n_rows: int, *, has_context: bool, name: str = "exog") -> Array:
        """Return exogenous rows after checks; the error states the required shape."""
        wanted = (n_rows, self.n_exog)
        why = " (row 0 of the forecast comes from the context)" if has_context else ""
        if exog is None:
            if self.n_exog and n_rows:
                raise ValueError(
                    f"X has {self.n_exog} exogenous columns. Pass exog of shape {wanted}{why}."
                )
            return np.zeros(wanted)
        # columns of a frame are matched by name, columns of an array by position
        if self.names is not None and self.n_exog:
            names = [self.names[column] for column in self.columns[-self.n_exog :]]
            exog = in_order_of_fit(name, exog, names)
        if 0 in wanted and np.shape(exog) == wanted:
            return np.zeros(wanted)
        rows = read_one(name, exog, allow_nan=False, fill="All of its rows must be known.")
        if rows.shape != wanted:
            raise ValueError(f"{name} must have shape {wanted}{why}; got {np.shape(exog)}.")
        return rows

    def end_of_training(self, exog: Array, initial_state: Any) -> tuple[Array, Array]:
        """Return the last target and the state at the end of training, for runs without context."""
        network = self.network
        if not network.progress.continues:
            raise ValueError(
                "After training on several sequences there is no single state to continue from: "
                "forecast needs a context, the rows to warm up on."
            )
        target = network.progress.last_output
        if np.isnan(target).any():
            raise ValueError(
                "The last training target is NaN, so there is no first input. Pass a context."
            )
        if initial_state is None:
            return target, network.state
        row = self.to_inputs(self.to_units(target[None]), exog[:1])
        one = Sequences((row.astype(network.dtype),), "table")
        return target, network.starts(initial_state, one)[0]

    def read_inputs(self, name: str, table: Any) -> Sequences:
        """Return the network's inputs for rows of the outermost X."""
        table = in_order_of_fit(name, table, self.names)
        rows = table
        try:
            for step in self.chain.inputs:
                before, rows = rows, step.transform(rows)
                if container_of(table) == "table":
                    check_without_memory(step, before, rows)
            return self.network.read(rows)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"In {name}: {error}") from error

    def read_targets(self, y: Any, sequences: Sequences) -> list[Array]:
        """Return the network's targets for rows of the outermost y."""
        tables = [y] if sequences.container == "table" else list(y)
        found = []
        for table in tables:
            rows = np.reshape(np.asarray(table, dtype=np.float64), (len(table), -1))
            for step in reversed(self.chain.outputs):
                rows = np.reshape(step.transform(rows), (len(rows), -1))
            found.append(rows)
        return sequences.split(found[0]) if sequences.container == "table" else found


def _agree(rows: Array, followed: Array) -> Array:
    near = 1e-5 * followed.std(axis=0) + 1e-6 * np.abs(followed)
    return np.abs(rows - followed) <= near

"""Networks built from an estimator's parameters, and the initial weights of their training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from reservoir._tables import Clock, Sequences
from reservoir._typing import Array
from reservoir._validation import check_choice, check_number, check_numbers, room_for
from reservoir.activations import ACTIVATIONS, Activation, get_activation
from reservoir.estimators.parameters import check_parameters
from reservoir.estimators.progress import Progress
from reservoir.estimators.reading import DataReader, TrainingData
from reservoir.estimators.rnn._network_parameters import WHOLE, name_of_solver
from reservoir.estimators.rnn.network_model import NetworkModel, check_start, raise_not_causal
from reservoir.training.bptt import Network
from reservoir.training.cells import CELLS, Cell, Recipe, SimpleCell, TimedLeakyCell
from reservoir.training.controls import Control
from reservoir.training.gradient_control import GradientControl
from reservoir.training.initializers import INITIALIZERS, initialize
from reservoir.training.losses import check_targets
from reservoir.training.optimizers import Optimizer
from reservoir.training.params import Params
from reservoir.training.starts import N_DRAWS, STARTS, NoStart, StartResult, start
from reservoir.training.trainer import Data

BASE = "orthogonal"  # the start that "auto" takes unless another is better
# Methods that define the steps of a cell, and methods that describe these steps.
_STEPS = ("weights", "forward", "backward")
_DECLARED = (
    "layer",
    "weights_from_data",
    "open_gates",
    "as_simple",
    "step_jacobians",
    "jacobian_gradient",
    "tangent",
    "state_tangent",
    "torch_layer",
)


def new_model(
    estimator: Any, reader: DataReader, data: TrainingData, output: str, loss: str
) -> NetworkModel:
    """Return an untrained model of the network that an estimator's parameters describe."""
    control = read_control(estimator.gradient_control)
    network = Network(
        make_cell(estimator, reader.clock),
        reader.n_symbols or data.arrays[0].shape[1],
        data.n_outputs,
        output,
        loss,
        bool(estimator.include_input),
        coded=reader.n_symbols is not None,
    )
    n_weights = sum(math.prod(shape) for shape in network.shapes().values())
    n_bytes = 2.0 * n_weights * np.dtype(reader.dtype).itemsize
    coded = "" if reader.n_symbols is None else f" and n_symbols={reader.n_symbols}"
    what = f"The weights of n_units={estimator.n_units}{coded}, and a gradient of their size,"
    with room_for(what, n_bytes, "Use fewer units."):
        pass
    if control is not None:
        control.check(network.cell)
    check_values(data.arrays, data.targets, network, reader.dtype)
    return model_of(network, reader, control)


def model_of(network: Network, reader: DataReader, control: Control | None) -> NetworkModel:
    """Return an untrained model of a network."""
    targets = reader.targets
    compares = not targets.per_sequence and (targets.classes is not None or not network.coded)
    progress = Progress(network.n_outputs, compares=compares, coded=network.coded)
    dtype = reader.dtype
    return NetworkModel(network, progress, dtype, control=control, clock=reader.clock)


def check_together(estimator: Any) -> None:
    """Check the parameters of a trained network, each alone and together."""
    check_parameters(estimator)
    _check_symbols(estimator)
    _check_gradient_steps(estimator)
    # solvers that use all data at once do not support truncation, and some no penalties
    solver = name_of_solver(estimator.solver)
    if solver in WHOLE and not isinstance(estimator.truncation, (str, type(None))):
        raise ValueError(
            f"truncation={estimator.truncation} cannot be combined with "
            f"solver={estimator.solver!r}, which needs the whole "
            'gradient. Use truncation="auto", or another solver.'
        )
    if solver in ("least_squares", "variable_projection"):
        for name in ("alpha", "l1", "gradient_control"):
            if getattr(estimator, name):
                raise ValueError(
                    f"{name}={getattr(estimator, name)!r} is not supported: solver={solver!r} "
                    "has no penalties on weights. Set it to 0, or use solver='lbfgs' or 'adam'."
                )
    if solver == "hessian_free" and estimator.gradient_control:
        raise ValueError(
            f"gradient_control={estimator.gradient_control!r} is not supported: "
            "solver='hessian_free' cannot use the curvature of its penalties. Set it to 0, or use "
            "solver='lbfgs' or 'adam'."
        )
    # targets must remain after the washout
    if isinstance(estimator.washout, str):
        if estimator.washout == "measured":
            raise ValueError(
                'washout="measured" is for reservoirs, whose weights are fixed. For a trained '
                'network set an integer or "auto".'
            )
        check_choice("washout", estimator.washout, ("auto",))
    elif estimator.target == "last" and estimator.washout:
        raise ValueError(
            f"washout={estimator.washout} excludes rows at the start, but target='last' has a "
            'target only at the end of each sequence. Set 0 or "auto".'
        )


def _check_gradient_steps(estimator: Any) -> None:
    """Check settings of gradient steps; the learning rate must be set in one place."""
    for name in ("clip_value", "curriculum"):
        if name_of_solver(estimator.solver) in WHOLE and getattr(estimator, name) is not None:
            raise ValueError(
                f"{name}={getattr(estimator, name)!r} is for solvers of gradient steps; "
                f"solver={estimator.solver!r} uses all data at once. Set it to None, or use "
                "solver='adam'."
            )
    given: list[tuple[str, Any]] = []
    if isinstance(estimator.solver, Optimizer):
        given = [("learning_rate_init", 1e-3), ("learning_rate", "constant")]
        what = f"solver={estimator.solver!r} has a learning rate of its own"
    elif callable(estimator.learning_rate):
        given = [("learning_rate_init", 1e-3)]
        what = "learning_rate is a callable, which returns the rate itself"
    for name, default in given:
        value = getattr(estimator, name)
        if value != default:
            raise ValueError(
                f"{name}={value!r} would have no effect: {what}. Leave {name} at its default, "
                f"{default!r}."
            )


def _check_symbols(estimator: Any) -> None:
    """Check that the parameters support symbols as inputs."""
    if estimator.n_symbols is None:
        return
    if estimator.include_input:
        raise ValueError(
            "include_input=True cannot be combined with "
            f"n_symbols={estimator.n_symbols}: the readout needs numeric inputs, and symbols are "
            "not. Use include_input=False, or one-hot columns."
        )


def check_timed(estimator: Any) -> None:
    """Check that a network with a `time_column` uses the times, and that X can contain them."""
    if estimator.time_column is None:
        return
    what = f"time_column={estimator.time_column!r}"
    if not isinstance(estimator.cell, str) or estimator.cell != "leaky":
        raise ValueError(
            f"{what} scales the leak of cell='leaky', but the cell is cell={estimator.cell!r}. Use "
            "cell='leaky', or pass the time between rows as a column of X."
        )
    if estimator.n_symbols is not None:
        raise ValueError(
            f"{what} cannot be combined with n_symbols={estimator.n_symbols}, which requires X to "
            "be one column of the numbers of symbols. Use n_symbols=None, and one-hot columns next "
            "to the column of times."
        )


def read_control(value: Any) -> Control | None:
    """Return the control that `gradient_control` specifies, as a weight or as an object."""
    if isinstance(value, Control):
        return None if value.idle else value
    weight = check_number("gradient_control", value, low=0.0)
    return GradientControl(weight=weight) if weight else None


def make_cell(estimator: Any, clock: Clock | None) -> Cell:
    """Return the cell that an estimator's parameters describe; with a clock its steps are timed."""
    cell = estimator.cell
    if isinstance(cell, Cell):
        return _of_size(_untimed(_checked(cell, cell)), estimator)
    names = cell.names if isinstance(cell, Recipe) else (cell,)
    for name in names:
        check_choice("cell", name, CELLS)
    rates = check_numbers("leak_rate", estimator.leak_rate)
    leak: Any = tuple(rates.tolist()) if rates.ndim == 1 else estimator.leak_rate
    SimpleCell(estimator.n_units, leak_rate=leak)  # checks the rate, even if it is not used
    given = {
        "activation": registered_name(get_activation(estimator.activation)),
        "leak_rate": leak,
    }
    takes = {name: signature(CELLS[name]).parameters for name in names}
    read = any("activation" in parameters for parameters in takes.values())
    if not read and given["activation"] != "tanh":
        with_one = [
            name for name, make in CELLS.items() if "activation" in signature(make).parameters
        ]
        raise ValueError(
            f"activation={given['activation']!r} is used only by cell="
            f"{', '.join(map(repr, with_one))}, but cell={cell!r} has fixed activation functions. "
            "Leave activation='tanh'."
        )

    def named(name: str) -> Cell:
        options = {key: value for key, value in given.items() if key in takes[name]}
        return _checked(CELLS[name](estimator.n_units, **options), name)

    made = cell.cell(named) if isinstance(cell, Recipe) else named(cell)
    return _of_size(_timed(made, clock), estimator)


def _timed(cell: Cell, clock: Clock | None) -> Cell:
    """Return a leaky cell with a clock; without a clock the cell itself."""
    if clock is None:
        return cell
    simple = cell.as_simple()
    if simple is None:
        raise ValueError(
            f"time_column scales the leak of a SimpleCell, but 'leaky' in CELLS creates {cell!r}. "
            "Use time_column=None, or the built-in cell."
        )
    return TimedLeakyCell(simple.n_units, simple.activation, simple.leak_rate, clock.place)


def _untimed(cell: Cell) -> Cell:
    """Check that a cell given as an object does not need times, and return it."""
    if cell.at_even_steps() is not cell:
        raise ValueError(
            f"cell={cell!r} reads the lengths of steps, and only an estimator with a time_column "
            "can create it. Use cell='leaky', and set time_column, activation and leak_rate as "
            "parameters of the estimator."
        )
    return cell


def _checked(cell: Any, name: Any) -> Cell:
    """Check that an object is a cell whose descriptions match its steps, and return it."""
    if not isinstance(cell, Cell):
        raise TypeError(
            f"{name!r} in CELLS creates {cell!r}, which is not a cell. Derive its class from "
            "reservoir.training.cells.Cell."
        )
    _check_declarations(type(cell))
    return cell


def _of_size(cell: Cell, estimator: Any) -> Cell:
    """Check that a cell has `n_units` units and reads symbols, if there are any; return it."""
    if cell.n_units != estimator.n_units:
        raise ValueError(
            f"cell has n_units={cell.n_units}, but the estimator has n_units={estimator.n_units}. "
            "Both need the same number of units."
        )
    if estimator.n_symbols is not None and not cell.reads_codes:
        raise ValueError(
            f"n_symbols={estimator.n_symbols}: {type(cell).__name__} does not support the numbers "
            "of symbols as inputs, nor does any cell with input_shortcuts or dropout. Use one-hot "
            "columns and n_symbols=None, or another cell, such as 'lstm'."
        )
    return cell


def _check_declarations(kind: type[Cell]) -> None:
    """Check that a class that overrides the steps of a cell also overrides their descriptions."""
    for step in _STEPS:
        stepping = _definer(kind, step)
        for name in _DECLARED:
            declaring = _definer(kind, name)
            if declaring is not Cell and not issubclass(declaring, stepping):
                raise TypeError(
                    f"cell={kind.__name__} is a {declaring.__name__} that overrides {step!r}, but "
                    f"forecasts and starts would treat it as a {declaring.__name__}. Derive it "
                    f"from reservoir.training.cells.Cell, or define {name!r} as well."
                )


def _definer(kind: type[Cell], name: str) -> type:
    """Return the class that defines a method."""
    return next(cls for cls in kind.__mro__ if name in vars(cls))


def registered_name(activation: Activation) -> str:
    """Return the name under which trained networks look up an activation."""
    if ACTIVATIONS.get(activation.name) is not activation:
        raise ValueError(
            f"activation={activation.name!r} is missing in reservoir.activations."
            "ACTIVATIONS, or is another function there. Trained networks look it up by its name. "
            "Register it first, under an unused name: `ACTIVATIONS[activation.name] = activation`."
        )
    return activation.name


def resolve_init(estimator: Any, cell: Cell) -> Any:
    """Return the start of training, without trials; "auto" is the best start in benchmarks."""
    if not isinstance(estimator.init, str) or estimator.init != "auto":
        return estimator.init
    if cell.layer() is not None:
        return "least_squares"
    # with labels at every step, cells of several parts learn more from random weights
    labels = is_classifier(estimator) and estimator.target != "last"
    return "least_squares" if cell.starts_from_data and not labels else BASE


def name_of_start(estimator: Any, cell: Cell) -> str | None:
    """Return the name of the start of training; None if it is an estimator."""
    init = resolve_init(estimator, cell)
    return init if isinstance(init, str) else None


def check_recordings(estimator: Any, network: Network, sequences: Sequences) -> None:
    """Check, for a network that is not causal, that recordings are whole and start from zeros."""
    if network.cell.causal:
        return
    if not isinstance(estimator.truncation, (str, type(None))):
        what = f"truncation={estimator.truncation} cuts off later rows"
        raise_not_causal(estimator.cell, what, 'Use truncation="auto", which uses whole sequences')
    last = None if len(sequences) > 1 else sequences.arrays[0]
    check_start(estimator.cell, estimator.initial_state, last)


def check_same(network: Network, before: Network) -> None:
    """Check that a warm start continues with the same network."""
    for name in ("cell", "n_features", "n_outputs", "include_input"):
        ours, theirs = getattr(network, name), getattr(before, name)
        if ours != theirs:
            raise ValueError(
                f"warm_start=True continues with the network of the last fit, which had "
                f"{name}={theirs!r}; now it is {ours!r}. Use warm_start=False."
            )


def starting_weights(
    estimator: Any,
    network: Network,
    X: Any,
    y: Any,
    data: Data,
    *,
    step: float | None,
    generator: np.random.Generator,
    n_draws: int = N_DRAWS,
    pass_on: bool = False,
) -> tuple[str | None, Params, StartResult | None]:
    """Return the start of training: its name, the weights, and how they were found from data.

    X and y are as the user passed them, for an `init` estimator that is not fitted yet: the name is
    then None. `data` are the sequences to learn from. If rows have times, `step` is the gap between
    rows for which leaks are given. `n_draws` is the number of reservoirs that a start from data
    draws; for `pass_on` see `reservoir.training.starts.start`.
    """
    init, found = resolve_init(estimator, network.cell), None
    if not isinstance(init, str):
        given = _fitted(init, X, y)
        _check_steps(given, step)
        init, params = None, _weights_of(given, network)
    elif init in STARTS:
        try:
            found = start(
                network,
                data.inputs,
                data.targets,
                scheme=init,
                weights=_weights_of_start(data),
                initial_states=data.starts,
                target=estimator.target,
                n_draws=n_draws,
                pass_on=pass_on,
                random_state=generator,
                dtype=data.dtype,
            )
            params = found.params
        except NoStart:  # known only now, if the cell's settings allow none
            if estimator.init != "auto":
                raise
            init = BASE
    if init in INITIALIZERS:
        params = initialize(network.weights(), init, random_state=generator)
    weights = {name: np.array(params[name], dtype=data.dtype) for name in network.shapes()}
    return init, weights, found


def _weights_of_start(data: Data) -> Any:
    """Return the weights of rows; without any, 1 for each row, so that none is a washout."""
    if data.weights is not None or data.last:
        return data.weights
    return [np.ones(len(X)) for X in data.inputs]


def rows_per_step(cell: Cell) -> int:
    """Return the number of rows in the recurrent products of a step: gates times units."""
    weights = cell.at_even_steps().weights(1).values()
    return sum(w.shape[0] for w in weights if w.role == "recurrent") or cell.width


#: Property of a network -> the parameters that determine it.
_SET_BY = {
    "cell": "n_units, activation, leak_rate (cell='leaky') and time_column",
    "include_input": "include_input",
    "n_features": "number of columns of X, and n_symbols if either sets it",
}


def _fitted(init: Any, X: Any, y: Any) -> Any:
    if isinstance(init, FrozenEstimator):
        check_is_fitted(init.estimator)
        return init.estimator
    return clone(init).fit(X, y)


def _check_steps(given: Any, time_step: float | None) -> None:
    """Check that given weights were learned with the same length of a step."""
    theirs = getattr(given, "time_step_", None)
    if theirs is None or time_step is None:  # one network has no times: then the cells differ too
        return
    if not np.isclose(theirs, time_step, rtol=1e-6):
        raise ValueError(
            f"init={type(given).__name__} has time_step_={theirs:g}, but this network has "
            f"{time_step:g}: the same leak rate would correspond to another time constant. Set "
            "time_step to the same number in both."
        )


def _weights_of(model: Any, network: Network) -> Params:
    """Return the weights of a fitted network of either kind, after checking that they match."""
    if hasattr(model, "params_"):
        given, params = model.network_, dict(model.params_)
    elif hasattr(model, "reservoir_") and hasattr(model, "coef_"):
        model = model._of_one_row() if hasattr(model, "n_lags_") else model
        given, params = network_of(model), weights_of(model)
        if hasattr(model, "classes_") and given.n_outputs == 1:  # one score for two classes
            given = replace(given, n_outputs=2)
            for name in ("coef", "intercept"):
                params[name] = np.concatenate([-params[name], params[name]])
    else:
        raise TypeError(
            f"init={type(model).__name__} is not a fitted echo state or recurrent network with the "
            "built-in readout."
        )
    # the networks may differ in their weights only
    for name in ("cell", "n_features", "n_outputs", "include_input"):
        ours, theirs = getattr(network, name), getattr(given, name)
        same = _same_cell(ours, theirs) if name == "cell" else ours == theirs
        if not same:
            to_rnn = "; its method to_rnn makes such a network" if hasattr(model, "to_rnn") else ""
            raise ValueError(
                f"init={type(model).__name__} has {name}={theirs!r}, but this network has "
                f"{ours!r}. Both need the same {_SET_BY.get(name, 'data')}{to_rnn}."
            )
    return params


def _same_cell(ours: Cell, theirs: Cell) -> bool:
    """Whether cells are equal, with leaks compared at the precision of a float32 network."""
    one, other = ours.at_even_steps().as_simple(), theirs.at_even_steps().as_simple()
    if one is None or other is None:
        return ours == theirs
    if getattr(ours, "place", None) != getattr(theirs, "place", None):
        return False
    if replace(one, leak_rate=1.0) != replace(other, leak_rate=1.0):
        return False
    return np.allclose(one.leak_rate, other.leak_rate, rtol=1e-6, atol=0.0)


def network_of(esn: Any) -> Network:
    """Return the trainable network that corresponds to an echo state network."""
    reservoir, source = esn.reservoir_, esn._model.source
    if reservoir.W_fb is not None:
        raise ValueError("A network with feedback=True cannot be trained as a recurrent network.")
    augment = getattr(source, "augment", None)
    if augment is not None:
        raise ValueError(
            f"A network with augment={augment!r} cannot be trained as a recurrent network, whose "
            "readout receives states and inputs only. Use augment=None."
        )
    if not source.causal:
        raise ValueError(
            "A network with bidirectional=True cannot be trained as a recurrent network, which has "
            "one direction. Use bidirectional=False, or train an RNNRegressor whose cell is "
            "bidirectional."
        )
    activation = get_activation(reservoir.activation)
    leak = np.asarray(reservoir.leak_rate, dtype=np.float64)
    rate: Any = float(leak) if leak.ndim == 0 else tuple(map(float, leak))
    cell = SimpleCell(reservoir.n_units, registered_name(activation), rate)
    return Network(
        _timed(cell, esn._reader.clock),
        source.n_features,
        esn.n_outputs_,
        include_input=esn.coef_.shape[-1] > reservoir.n_units,
    )


def weights_of(esn: Any) -> Params:
    """Return the weights of an echo state network, by their names in a trained network."""
    return {
        **SimpleCell.params_of(esn.reservoir_),
        "coef": np.array(np.atleast_2d(esn.coef_)),
        "intercept": np.array(np.atleast_1d(esn.intercept_)),
    }


# ---------------------------------------------------------------------- values


def known_rows(targets: Sequence[Array]) -> list[Array] | None:
    """Return, per sequence, a mask of the rows without missing targets; None if none is missing."""
    known: list[Array] = []
    for values in targets:
        missing = np.isnan(values).reshape(len(values), -1)
        known.append(np.logical_not(missing.any(axis=1)))
    return None if all(rows.all() for rows in known) else known


def filled(targets: list[Array], known: list[Array] | None) -> list[Array]:
    """Return targets without NaN: rows with a missing target are replaced by a complete row.

    The first complete row is used, which passes all checks that the other rows pass. Nothing is
    learned from the replaced rows.
    """
    if known is None:
        return targets
    every, rows = np.concatenate(targets), np.concatenate(known)
    if not rows.any():
        return [np.zeros_like(values) for values in targets]
    sample = every[np.argmax(rows)]
    return [np.where(k[:, None], Y, sample) for Y, k in zip(targets, known, strict=True)]


def check_values(
    inputs: Sequence[Array], targets: list[Array], network: Network, dtype: Any
) -> None:
    """Check that a network supports inputs and targets in a dtype; missing targets are ignored."""
    known = known_rows(targets)
    values = filled(targets, known)
    if known is None or any(rows.any() for rows in known):
        check_targets(np.vstack(values), network.output, network.loss)
    _check_squares(inputs, values, dtype)


def _check_squares(inputs: Sequence[Array], targets: Sequence[Array], dtype: Any) -> None:
    """Check that squares do not overflow: of inputs in float64, of targets in `dtype`."""
    for name, parts, squared_in, remedy in (
        ("X", inputs, np.dtype(np.float64), "StandardScaler"),
        ("y", targets, np.dtype(dtype), "TransformedTargetRegressor"),
    ):
        largest = max(float(np.abs(part).max()) for part in parts)
        if largest > 1e-3 * float(np.finfo(squared_in).max) ** 0.5:
            raise ValueError(
                f"{name} reaches {largest:.3g}, and its squares overflow {squared_in}. "
                f"Scale {name} ({remedy})."
            )

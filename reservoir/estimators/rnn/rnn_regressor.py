"""Fully trained recurrent networks with scikit-learn's interface."""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY, dataclass
from inspect import signature
from typing import Any

from sklearn.base import RegressorMixin
from sklearn.frozen import FrozenEstimator

from reservoir._saving import saved
from reservoir._validation import check_switch
from reservoir.estimators.forecasting.forecast import forecast_network
from reservoir.estimators.forecasting.forecaster import Forecaster, forecaster_of
from reservoir.estimators.parameters import documented, parameter
from reservoir.estimators.reading import DataReader, TrainingData
from reservoir.estimators.rnn._network_parameters import shared
from reservoir.estimators.rnn._trained_attributes import FITTED
from reservoir.estimators.rnn.network_estimator import NetworkEstimator
from reservoir.estimators.rnn.network_model import NetworkModel
from reservoir.estimators.rnn.start import network_of, new_model, weights_of
from reservoir.estimators.targets import Numbers, TargetCoding
from reservoir.training.cells import CELLS, Cell, SimpleCell
from reservoir.training.losses import resolve_loss
from reservoir.training.torch_conversion import from_torch, to_torch

__all__ = ["RNNRegressor", "rnn_from_esn"]


@saved
@documented(FITTED=FITTED)
@dataclass(eq=False, repr=False)
class RNNRegressor(RegressorMixin, NetworkEstimator):
    """Recurrent network with every weight trained, for numbers.

    ``h[t] = (1 - a) h[t-1] + a f(W h[t-1] + W_in u[t] + bias)`` or an LSTM or a GRU, and
    ``y[t] = output(coef [h[t]; u[t]] + intercept)``. Training starts from a least-squares solution,
    goes on by back-propagation through time, and ends with the best weights seen, the start among
    them.

    Rows of X are time steps, in order; sequences are given as to `ESNRegressor`.

    Parameters
    ----------
    {PARAMETERS}

    Attributes
    ----------
    {FITTED}

    See Also
    --------
    ESNRegressor : Only the readout is learned; `ESNRegressor.to_rnn` goes on from there.
    RNNClassifier : Labels instead of numbers.

    References
    ----------
    .. [1] A. Bay, "Recurrent neural networks: stability, gradient control and fast training", PhD
       thesis, 2017, chapters 2, 4 and 5.

    Examples
    --------
    >>> from reservoir import RNNRegressor
    >>> from reservoir.datasets import mackey_glass
    >>> series = mackey_glass(1500, random_state=0).ravel()
    >>> rnn = RNNRegressor(64, max_iter=0, random_state=0)  # the least-squares start alone
    >>> rnn = rnn.fit(series[:1199, None], series[1:1200])
    >>> rnn.score(series[1199:-1, None], series[1200:]) > 0.9999
    True
    """

    n_units: int = shared.n_units
    _: KW_ONLY
    cell: Any = shared.cell
    activation: str = shared.activation
    leak_rate: Any = shared.leak_rate
    n_symbols: int | None = shared.n_symbols
    loss: str = shared.loss
    init: Any = shared.init
    solver: Any = shared.solver
    learning_rate_init: float = shared.learning_rate_init
    learning_rate: str = shared.learning_rate
    max_iter: int = shared.max_iter
    batch_size: Any = shared.batch_size
    truncation: Any = shared.truncation
    clip_norm: float | None = shared.clip_norm
    alpha: float = shared.alpha
    l1: float = shared.l1
    gradient_control: Any = shared.gradient_control
    target: str = shared.target
    missing_targets: str = shared.missing_targets
    early_stopping: bool = shared.early_stopping
    validation_fraction: float = shared.validation_fraction
    n_iter_no_change: int = shared.n_iter_no_change
    tol: float = shared.tol
    online: str = shared.online
    online_window: int = shared.online_window
    washout: Any = shared.washout
    warm_start: bool = shared.warm_start
    time_column: Any = shared.time_column
    time_step: Any = shared.time_step
    random_state: Any = shared.random_state
    include_input: bool = shared.include_input
    initial_state: Any = shared.initial_state
    sequence_column: Any = shared.sequence_column
    dtype: Any = shared.dtype
    verbose: int = shared.verbose
    output: str = parameter(
        "identity",
        '{"identity", "tanh", "logistic", "softmax"}',
        """What stands behind the readout. Targets outside its range are refused.""",
    )
    refit_readout: bool = parameter(
        True,
        "bool",
        """Whether to solve for the readout by ridge regression after each epoch, and to keep that
        where it lowers the loss. For squared errors behind "identity", "tanh" or "logistic".""",
        check_switch,
    )

    def partial_fit(self, X: Any, y: Any, *, new_sequence: bool = False) -> RNNRegressor:
        """Learn online from the next rows, once through.

        How is a matter of `online`. The first call starts the network from its rows by `init`;
        after `fit` learning goes on from the trained weights. With ``online="least_squares"`` it
        then looks back to the last rows of `fit`, and keeps the trained weights until others have
        predicted new rows better.

        Parameters
        ----------
        X, y
            As in `fit`. A table goes on where the last call ended; each item of a list is a
            sequence of its own.
        new_sequence : bool, default=False
            Whether the chunk starts a new sequence.

        Returns
        -------
        self
            ``loss_curve_`` has one entry more per sequence of the chunk: the loss of the
            predictions that were made before their targets were learned from.

        Raises
        ------
        ValueError, TypeError
            As `fit`; and where ``target="last"`` or ``solver="lbfgs"``.

        Warns
        -----
        UserWarning
            If an index tells that a chunk does not begin where the last one ended, and
            `new_sequence` does not say so. If X of a first call, of ten rows or more, is too large
            for the weights or for `learning_rate_init`, as in `fit`.
        """
        return self._partial_fit(X, y, new_sequence=new_sequence)

    def _coding(self) -> TargetCoding:
        return Numbers(per_sequence=self.target == "last")

    def _new_model(self, reader: DataReader, data: TrainingData) -> NetworkModel:
        return new_model(self, reader, data, self.output, resolve_loss(self.output, self.loss))

    def predict(self, X: Any, *, initial_state: Any = None, return_state: bool = False) -> Any:
        """Return one row of output per row of X, or per sequence with ``target="last"``.

        The estimator is not changed: the same call gives the same answer.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or sequences
        initial_state : {"last", "zeros", "steady"} or array, optional
            By default the constructor's.
        return_state : bool, default=False

        Returns
        -------
        y : array of shape (n_samples,) or (n_samples, n_outputs), as y in fit; or sequences
        state : array of shape (state_size,), or one row per sequence
            Where the run ended; only if `return_state`.

        Warns
        -----
        UserWarning
            As `ESNRegressor.predict`.
        """
        predictor, decode = self._predictor(), self._reader.targets.decode
        if return_state:
            self._check_steps("return_state=True")
        return predictor.predict(X, initial_state, decode, return_state=return_state)

    def forecast(
        self,
        n_steps: int,
        *,
        context: Any = None,
        exog: Any = None,
        initial_state: Any = None,
        return_state: bool = False,
        clip: Any = False,
    ) -> Any:
        """Forecast by feeding outputs back as inputs; see `ESNRegressor.forecast`.

        Parameters
        ----------
        n_steps : int
            Rows to forecast.
        context : array of shape (n_context, n_features), optional
            Rows that the network listens to first; row 0 of the forecast is then what `predict`
            says of the last of them. Without context the forecast goes on from the end of training.
            Columns of DataFrames, here and in `exog`, are matched by name, if X had names in fit.
        exog : array of shape (n_steps, n_exog), with context (n_steps - 1, n_exog), optional
        initial_state : str or array, optional
        return_state : bool, default=False
        clip : bool, (low, high) or callable, default=False
            True holds what is fed back in the range of the training targets, widened by its own
            width on both sides; a pair is a range in y's units; a function of the outputs of a
            step, (n_outputs,), in these units returns what is fed back in their place, of the same
            shape: a threshold, say. The rows returned are what the network said.

        Returns
        -------
        y : array of shape (n_steps,) or (n_steps, n_outputs), as y in fit
        state : array of shape (state_size,)
            Only if `return_state`.

        Raises
        ------
        ValueError
            If the network was not trained to predict its own next input, its outputs are the
            probabilities of ``output="softmax"``, shapes do not fit, n_steps < 1, or `clip` is no
            range, or makes of outputs another shape or numbers that are not finite.

        Warns
        -----
        RuntimeWarning
            If a row leaves the range of the training targets by more than ten times its width, or
            the loop diverges altogether; the message names the step.
        """
        self._check_fitted()
        rows, state = forecast_network(
            self, n_steps, context=context, exog=exog, initial_state=initial_state, clip=clip
        )
        return (rows, state) if return_state else rows

    def _check_loop(self) -> None:
        """Refuse a network whose outputs cannot be its next inputs."""
        self._check_steps("forecast")
        if self._model.clock is not None:
            self._model.clock.check_can_loop()
        if self._reader.targets.per_sequence:
            raise ValueError(
                'forecast needs an output at every step; this network has target="last".'
            )
        network = self._model.network
        if network.coded:
            raise ValueError(
                f"forecast feeds outputs back as inputs, and with n_symbols={self.n_symbols} these "
                "are symbols, which outputs are not. RNNClassifier, trained on the symbols as "
                "labels, draws them by its method sample."
            )
        if network.output == "softmax":
            raise ValueError(
                'forecast feeds outputs back as inputs, and those of output="softmax" are '
                "probabilities, where the inputs were symbols: the loop would blur them, step by "
                "step. RNNClassifier, trained on the symbols as labels, draws them by its method "
                "sample. With this network draw them yourself, row by row, and hand over the state "
                "(initial_state and return_state of predict)."
            )

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2 of `predict`, over all rows of all sequences.

        Rows whose target is NaN are left out where ``missing_targets="skip"``.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. Where X has no index, that of y tells whether the rows follow training.

        Returns
        -------
        float
        """
        return self._score(X, y, sample_weight)

    def to_torch(self) -> Any:
        """Return the network as a torch module.

        Returns
        -------
        torch.nn.Module
            Batch first, in the network's dtype: (batch, time, n_features) to (batch, time,
            n_outputs), from state 0, output function included.

        Raises
        ------
        ImportError
            If torch is not installed.
        ValueError
            If torch has no such cell: leaks, peepholes, activations other than tanh and relu.

        See Also
        --------
        from_torch
        """
        self._check_fitted()
        return to_torch(self.network_, self.params_)

    @classmethod
    def from_torch(cls, module: Any, **params: Any) -> RNNRegressor:
        """Return a fitted network with the weights of a torch module.

        Parameters
        ----------
        module : torch.nn.Module
            What `to_torch` made, or a module that holds one layer of RNN, LSTM or GRU and one
            Linear.
        **params
            Parameters of the estimator that say how training would go on.

        Returns
        -------
        RNNRegressor
            With ``warm_start=True``, so that `fit` goes on from these weights.
        """
        network, weights = from_torch(module)
        cell = network.cell
        rnn = cls(
            cell.n_units,
            cell=_name_of(cell),
            activation=getattr(cell, "activation", "tanh"),
            output=network.output,
            include_input=network.include_input,
            warm_start=True,
            dtype=str(weights["coef"].dtype),
        )
        rnn.set_params(**params)
        return rnn._adopt(network, weights, one_dimensional=network.n_outputs == 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


@forecaster_of.register
def _(model: RNNRegressor) -> Forecaster:
    return model._predictor()


def _name_of(cell: Cell) -> Any:
    """Return the name that a cell goes by, whatever its activation; itself if it has none."""
    options = {"activation": getattr(cell, "activation", "tanh")}
    for name, make in CELLS.items():
        taken = {key: options[key] for key in options if key in signature(make).parameters}
        if make(cell.n_units, **taken) == cell:
            return name
    return cell


def rnn_from_esn(esn: Any) -> RNNRegressor:
    """Return a fitted echo state network as a network that can be trained, with equal outputs."""
    if not hasattr(esn, "coef_"):
        raise ValueError(
            f"readout={esn.readout!r} cannot be trained by gradients: use the built-in one."
        )
    # the same cell and parameters, training from the fitted weights
    network, reader = network_of(esn), esn._reader
    cell: SimpleCell = network.cell.at_even_steps()  # type: ignore[assignment]
    leaky = cell.leaks() is not None
    measured = isinstance(esn.washout, str) and esn.washout == "measured"
    rnn = RNNRegressor(
        cell.n_units,
        cell="leaky" if leaky else "rnn",
        activation=cell.activation,
        leak_rate=esn.reservoir_.leak_rate if leaky else 0.3,
        init=FrozenEstimator(esn),
        include_input=network.include_input,
        washout=int(esn.washout_.max()) if measured else esn.washout,
        initial_state=esn.initial_state,
        sequence_column=esn.sequence_column,
        time_column=esn._reader.time_column,
        time_step="auto" if esn.time_step_ is None else esn.time_step_,
        dtype=esn.dtype,
        random_state=esn.random_state,
    )
    rnn = rnn._adopt(network, weights_of(esn), one_dimensional=reader.targets.one_dimensional)
    # where the network stands in its data goes with it
    names = ("n_features_in_", "feature_names_in_", "state_", "washout_", "time_step_")
    for name in (*names, "_sklearn_output_config"):
        if hasattr(esn, name):
            setattr(rnn, name, getattr(esn, name))
    for name in ("sequence_column", "time_column", "clock", "target_names"):
        setattr(rnn._reader, name, getattr(reader, name))
    rnn._model.clock, rnn._model.state = reader.clock, rnn.state_
    rnn._model.progress = copy.deepcopy(esn._model.progress)
    return rnn

"""Recurrent networks trained on numbers, with scikit-learn's interface."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from sklearn.base import RegressorMixin
from sklearn.frozen import FrozenEstimator

from reservoir._saving import saved
from reservoir._validation import check_switch
from reservoir.estimators.forecasting.forecast import ClosedLoop
from reservoir.estimators.forecasting.predictor import Forecaster, forecaster_of
from reservoir.estimators.parameters import attributes_of, documented, parameter
from reservoir.estimators.reading import DataReader, TrainingData
from reservoir.estimators.rnn._network_parameters import shared
from reservoir.estimators.rnn.converted_parameters import params_of_network
from reservoir.estimators.rnn.network_estimator import NetworkEstimator
from reservoir.estimators.rnn.network_model import NetworkModel
from reservoir.estimators.rnn.start import network_of, new_model, weights_of
from reservoir.estimators.targets import Numbers, TargetCoding
from reservoir.training.cells import SimpleCell
from reservoir.training.losses import resolve_loss
from reservoir.training.torch_conversion import from_torch, to_torch

__all__ = ["RNNRegressor", "module_from_esn", "rnn_from_esn"]


@saved
@documented(FITTED=attributes_of(NetworkEstimator))
@dataclass(eq=False, repr=False, kw_only=True)
class RNNRegressor(RegressorMixin, NetworkEstimator):
    """Recurrent network in which every weight is trained, as a regressor.

    The state is ``h[t] = (1 - a) h[t-1] + a f(W h[t-1] + W_in u[t] + bias)``, or that of an LSTM, a
    GRU or another cell, and the output is ``y[t] = output(coef [h[t]; u[t]] + intercept)``.
    Training starts from a least-squares solution, continues by variable projection or gradient
    steps (`solver`), and keeps the best weights found, which may be the initial ones.

    The rows of X are time steps, in order; sequences are passed as to `ESNRegressor`.

    Parameters
    ----------
    {PARAMETERS}

    Attributes
    ----------
    {FITTED}

    See Also
    --------
    ESNRegressor : Echo state network, in which only the readout is learned;
        `ESNRegressor.to_rnn` converts it to an RNNRegressor.
    RNNClassifier : Predicts labels instead of numbers.

    References
    ----------
    .. [1] A. Bay, "Recurrent neural networks: methods and applications to non-linear predictions",
       PhD thesis, Politecnico di Torino, 2017, chapters 2, 4 and 5.

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

    loss: str = shared.loss
    output: str = parameter(
        "identity",
        '{"identity", "tanh", "logistic", "softmax"}',
        """Function applied to the readout. Targets outside its range raise an error.""",
    )
    refit_readout: bool = parameter(
        True,
        "bool",
        """Whether to solve for the readout by ridge regression after each epoch, and to keep the
        solution if it lowers the loss. It applies only to squared errors with `output` "identity",
        "tanh" or "logistic". The solvers "variable_projection" (usually that of "auto") and
        "least_squares" ignore it: they solve for the readout at every step.""",
        check_switch,
        fixed="",
    )

    def partial_fit(self, X: Any, y: Any, *, new_sequence: bool = False) -> RNNRegressor:
        """Learn online from the next rows, in one pass.

        `online` selects the learning rule. The first call sets the initial weights from its rows,
        as `init` specifies; after `fit`, learning continues from the trained weights. With
        ``online="least_squares"`` it then also uses the last rows of `fit`, and keeps the trained
        weights until new ones have predicted new rows better.

        Parameters
        ----------
        X, y
            As in `fit`. A table continues the sequence of the last call; each item of a list is a
            separate sequence.
        new_sequence : bool, default=False
            Whether the chunk starts a new sequence.

        Returns
        -------
        self
            ``loss_curve_`` has one more entry per sequence of the chunk: the loss of the
            predictions made before their targets were learned.

        Raises
        ------
        ValueError, TypeError
            As in `fit`; also with ``target="last"``, or with a solver that uses all data at once,
            such as ``solver="lbfgs"``.

        Warns
        -----
        ConvergenceWarning
            If a step overflows (the weights are unchanged), or if the loss grows to a million times
            the first loss and the mean square of the targets.
        UserWarning
            If the index shows that a chunk does not begin where the last one ended, and
            `new_sequence` is False. Also if X of the first call has ten rows or more and is too
            large for the weights or for `learning_rate_init`, as in `fit`.
        """
        return self._partial_fit(X, y, new_sequence=new_sequence)

    def _coding(self) -> TargetCoding:
        return Numbers(per_sequence=self.target == "last")

    def _new_model(self, reader: DataReader, data: TrainingData) -> NetworkModel:
        return new_model(self, reader, data, self.output, resolve_loss(self.output, self.loss))

    def _check_loop(self) -> None:
        """Check that the outputs of the network can be fed back as its next inputs."""
        self._check_steps("forecast")
        if self._model.clock is not None:
            self._model.clock.check_can_loop()
        if self._reader.targets.per_sequence:
            raise ValueError(
                'forecast needs an output at every step, but this network has target="last".'
            )
        network = self._model.network
        if network.coded:
            raise ValueError(
                "forecast feeds outputs back as inputs, but with "
                f"n_symbols={self.n_symbols} the inputs are symbols and the outputs are not. "
                "Train an RNNClassifier on the symbols as labels, and draw symbols with its method "
                "sample."
            )
        if network.output == "softmax":
            raise ValueError(
                'forecast feeds outputs back as inputs, but with output="softmax" the outputs are '
                "probabilities and the inputs were symbols: the loop would blur them, step by "
                "step. Train an RNNClassifier on the symbols as labels, and draw symbols with its "
                "method sample; or draw the symbols of this network yourself, row by row, and pass "
                "the state on (initial_state and return_state of predict)."
            )

    forecast = ClosedLoop.forecast
    score = NetworkEstimator.score

    @classmethod
    def from_torch(cls, module: Any, **params: Any) -> RNNRegressor:
        """Return a fitted network with the weights of a torch module.

        Parameters
        ----------
        module : torch.nn.Module
            The result of `to_torch`, or a module that contains one RNN, LSTM or GRU and one Linear.
        **params
            Parameters of the estimator for further training.

        Returns
        -------
        RNNRegressor
            The fitted estimator, with ``warm_start=True`` so that `fit` continues from these
            weights. For a module that reads times, its `time_column` is the module's column, with
            ``time_step=1.0``.
        """
        network, weights = from_torch(module)
        rnn = cls(**params_of_network(network, weights), output=network.output)
        rnn.set_params(**params)
        return rnn._adopt(network, weights, one_dimensional=network.n_outputs == 1)


@forecaster_of.register
def _(model: RNNRegressor) -> Forecaster:
    return model._predictor()


def module_from_esn(esn: Any) -> Any:
    """Return a torch module of an echo state network, in which only the readout is trained."""
    rnn = rnn_from_esn(esn)
    module = to_torch(rnn.network_, rnn.params_)
    module.recurrent.requires_grad_(False)
    return module


def rnn_from_esn(esn: Any) -> RNNRegressor:
    """Return a trainable network with the same outputs as a fitted echo state network."""
    if not hasattr(esn, "coef_"):
        raise ValueError(
            f"readout={esn.readout!r} cannot be trained by gradients: use the built-in readout."
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
    # the position in the training data, so that predict and partial_fit continue from it
    names = ("n_features_in_", "feature_names_in_", "state_", "washout_", "time_step_")
    for name in (*names, "_sklearn_output_config"):
        if hasattr(esn, name):
            setattr(rnn, name, getattr(esn, name))
    for name in ("sequence_column", "time_column", "clock", "target_names"):
        setattr(rnn._reader, name, getattr(reader, name))
    rnn._model.clock, rnn._model.state = reader.clock, rnn.state_
    rnn._model.progress = copy.deepcopy(esn._model.progress)
    return rnn

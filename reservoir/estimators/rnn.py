"""Fully trained recurrent networks with scikit-learn's interface."""

from __future__ import annotations

from typing import Any

from sklearn.base import RegressorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import r2_score

from reservoir._typing import Array
from reservoir._validation import (
    Sequences,
    read_last_targets,
    read_last_weights,
    read_targets,
    read_weights,
    refuse_one_row,
)
from reservoir.estimators._docs import COLUMN, describe
from reservoir.estimators._engine import join
from reservoir.estimators._rnn import BaseRNN
from reservoir.estimators._rnn_docs import FITTED_RNN, NETWORK, TRAINING
from reservoir.estimators._rnn_start import network_of, weights_of
from reservoir.estimators._washout import is_measured
from reservoir.estimators.forecast import forecast_network
from reservoir.training.cells import GRUCell, LSTMCell, SimpleCell
from reservoir.training.exchange import from_torch, to_torch

__all__ = ["RNNRegressor", "rnn_from_esn"]

_NAMES = {LSTMCell: "lstm", GRUCell: "gru"}


@describe(NETWORK=NETWORK, TRAINING=TRAINING, COLUMN=COLUMN, FITTED_RNN=FITTED_RNN)
class RNNRegressor(RegressorMixin, BaseRNN):
    """Recurrent network with every weight trained, for numbers.

    ``h[t] = (1 - a) h[t-1] + a f(W h[t-1] + W_in u[t] + bias)`` or an LSTM or a GRU, and
    ``y[t] = output(coef [h[t]; u[t]] + intercept)``. Training starts from a least-squares solution,
    goes on by back-propagation through time, and ends with the best weights seen, the start among
    them.

    Rows of X are time steps, in order; sequences are given as to `ESNRegressor`.

    Parameters
    ----------
    {NETWORK}
    {TRAINING}
    {COLUMN}

    Attributes
    ----------
    {FITTED_RNN}

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

    def __init__(
        self,
        n_units: int = 64,
        *,
        cell: Any = "rnn",
        activation: str = "tanh",
        leak_rate: Any = 0.3,
        output: str = "identity",
        loss: str = "auto",
        init: Any = "auto",
        solver: str = "adam",
        learning_rate_init: float = 1e-3,
        learning_rate: str = "constant",
        max_iter: int = 200,
        batch_size: Any = "auto",
        truncation: Any = "auto",
        clip_norm: float | None = 1.0,
        alpha: float = 0.0,
        l1: float = 0.0,
        gradient_control: Any = 0.0,
        refit_readout: bool = True,
        include_input: bool = False,
        target: str = "step",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-4,
        online: str = "bptt",
        online_window: int = 300,
        washout: Any = "auto",
        initial_state: Any = "last",
        sequence_column: Any = None,
        warm_start: bool = False,
        dtype: Any = "float64",
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_units = n_units
        self.cell = cell
        self.activation = activation
        self.leak_rate = leak_rate
        self.output = output
        self.loss = loss
        self.init = init
        self.solver = solver
        self.learning_rate_init = learning_rate_init
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.truncation = truncation
        self.clip_norm = clip_norm
        self.alpha = alpha
        self.l1 = l1
        self.gradient_control = gradient_control
        self.refit_readout = refit_readout
        self.include_input = include_input
        self.target = target
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.online = online
        self.online_window = online_window
        self.washout = washout
        self.initial_state = initial_state
        self.sequence_column = sequence_column
        self.warm_start = warm_start
        self.dtype = dtype
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RNNRegressor:
        """Start the network, and train it.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or sequences
            Two rows at least.
        y : array of shape (n_samples,) or (n_samples, n_outputs), or one such array per sequence
            With ``target="last"``: (n_sequences,) or (n_sequences, n_outputs).
        sample_weight : array of shape (n_samples,), or one per sequence, optional
            At least 0. A row of weight 0 still drives the network. With ``target="last"``:
            (n_sequences,).

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data is refused; the message says why, and what to do. Dates in
            an index must increase within each sequence; y's index must be X's, or ahead of it by a
            constant offset; dates among the values are refused.

        Warns
        -----
        ConvergenceWarning
            If training diverged (the message names the epoch), or did not improve on a random
            start; the best weights seen are kept.
        UserWarning
            If the dates of an index have no frequency: a row is one step, however long.
        """
        with self._all_or_nothing():
            sequences = self._read(X, y, reset=True)
            refuse_one_row(self, sequences)
            targets = self._read_targets(y, sequences, first=True)
            read = read_last_weights if self.target == "last" else read_weights
            self._fit(sequences, targets, read(sample_weight, sequences), X, y)
        return self

    def partial_fit(self, X: Any, y: Any, *, new_sequence: bool = False) -> RNNRegressor:
        """Learn online from the next rows, once through.

        How is a matter of `online`. The first call starts the network from its rows by `init`;
        after `fit` learning goes on from the trained weights.

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
            `new_sequence` does not say so.
        """
        first = not hasattr(self, "params_")
        with self._all_or_nothing():
            sequences = self._read(X, y, reset=first)
            targets = self._read_targets(y, sequences, first=first)
            self._partial_fit(sequences, targets, X, y, first=first, new_sequence=new_sequence)
        return self

    def _read_targets(self, y: Any, sequences: Sequences, *, first: bool) -> list[Array]:
        read = read_last_targets if self.target == "last" else read_targets
        targets, ndim = read(self, y, sequences)
        if not first and self._one_dimensional != (ndim == 1) and targets[0].shape[-1] == 1:
            raise ValueError(
                f"y has {ndim} dimension(s); in earlier calls it had {3 - ndim}. Give y of shape "
                + ("(n_samples,)." if self._one_dimensional else "(n_samples, 1).")
            )
        if first:
            self._one_dimensional = ndim == 1
        return targets

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
        self._check_fitted()
        sequences = self._read(X, reset=False)
        outputs, states = self._outputs(sequences, initial_state)
        if self._one_dimensional:
            outputs = [rows[:, 0] for rows in outputs]
        y = self._restore(outputs, sequences)
        return (y, self._pack_states(states, sequences)) if return_state else y

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
        clip : bool or (low, high), default=False
            True holds what is fed back in the range of the training targets, widened by its own
            width on both sides; a pair is a range in y's units. The rows returned are not clipped.

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
            range.

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
        if self._last:
            raise ValueError(
                'forecast needs an output at every step; this network has target="last".'
            )
        if self.network_.output == "softmax":
            raise ValueError(
                'forecast feeds outputs back as inputs, and those of output="softmax" are '
                "probabilities, where the inputs were symbols: the loop would blur them, step by "
                "step. Draw the symbols yourself, row by row: p, state = predict(row, "
                "initial_state=state, return_state=True), then row = one-hot of a draw from p, or "
                "of its largest."
            )

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2 of `predict`, over all rows of all sequences.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. Where X has no index, that of y tells whether the rows follow training.

        Returns
        -------
        float
        """
        start = None if self._last else self._starts_of_score(X, y)
        predicted = self.predict(X, initial_state=start)
        if not self._last:
            y, predicted, sample_weight = (join(v, X) for v in (y, predicted, sample_weight))
        return r2_score(y, predicted, sample_weight=sample_weight)

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
            cell=_NAMES.get(type(cell), "rnn"),
            activation=getattr(cell, "activation", "tanh"),
            output=network.output,
            include_input=network.include_input,
            warm_start=True,
            dtype=str(weights["W"].dtype),
        )
        rnn.set_params(**params)
        return _as_fitted(rnn, network, weights, one_dimensional=network.n_outputs == 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _as_fitted(rnn: RNNRegressor, network: Any, weights: Any, *, one_dimensional: bool) -> Any:
    """Give an estimator the attributes of a fit."""
    rnn._adopt(network, weights)
    rnn._one_dimensional = one_dimensional
    return rnn


def rnn_from_esn(esn: Any) -> RNNRegressor:
    """Return a fitted echo state network as a network that can be trained, with equal outputs."""
    if not hasattr(esn, "coef_"):
        raise ValueError(
            f"readout={esn.readout!r} cannot be trained by gradients: use the built-in one."
        )
    network = network_of(esn)
    cell: SimpleCell = network.cell  # type: ignore[assignment]
    leaky = cell.leaks() is not None
    rnn = RNNRegressor(
        cell.n_units,
        cell="leaky" if leaky else "rnn",
        activation=cell.activation,
        leak_rate=esn.reservoir_.leak_rate if leaky else 0.3,
        init=FrozenEstimator(esn),
        include_input=network.include_input,
        washout=int(esn.washout_.max()) if is_measured(esn.washout) else esn.washout,
        initial_state=esn.initial_state,
        sequence_column=esn.sequence_column,
        dtype=esn.dtype,
        random_state=esn.random_state,
    )
    rnn = _as_fitted(rnn, network, weights_of(esn), one_dimensional=esn._one_dimensional)
    for name in ("n_features_in_", "feature_names_in_", "state_", "washout_"):
        if hasattr(esn, name):
            setattr(rnn, name, getattr(esn, name))
    rnn._sequence_column, rnn._continues = esn._sequence_column, esn._continues
    rnn._ended = esn._ended
    rnn._pairing, rnn._last_output = esn._pairing, esn._last_output
    rnn._target_range = esn._target_range
    rnn._washout, rnn._steps = esn._washout, esn._steps
    rnn._seen, rnn._last_id = set(esn._seen), esn._last_id
    return rnn

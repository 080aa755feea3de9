"""The echo state network for numbers: one output, or several, per time step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import Sequences, check_choice, with_targets
from reservoir.estimators._base import NetworkForecaster, join
from reservoir.estimators._parameters import documented, one_of, parameter
from reservoir.estimators._target_coding import Numbers
from reservoir.estimators.esn._echo_state import BaseESN
from reservoir.estimators.esn._fitted_attributes import FITTED
from reservoir.estimators.forecasting.forecast import forecast_network
from reservoir.estimators.forecasting.forecaster import Forecaster, forecaster_of
from reservoir.estimators.rnn.rnn_regressor import RNNRegressor, rnn_from_esn

__all__ = ["ESNRegressor"]


@saved
@documented(FITTED=FITTED)
@dataclass(eq=False, repr=False, kw_only=True)
class ESNRegressor(RegressorMixin, BaseESN):
    """Echo state network: a fixed random reservoir under a ridge readout.

    ``x[t] = (1 - a) x[t-1] + a f(W x[t-1] + W_in u[t] + bias + W_fb y[t-1])``, and
    ``y[t] = C [x[t]; u[t]] + c``. Only C and c are learned [1]_, from sums over rows: the states
    are never stored.

    Rows of X are time steps, in order. Several sequences are given as a list of tables, as a 3-D
    array (n_sequences, n_steps, n_features), by an id column (`sequence_column`) or by a pandas
    MultiIndex; each starts fresh, and results come back in the same container.

    Parameters
    ----------
    {PARAMETERS}

    Attributes
    ----------
    {FITTED}

    See Also
    --------
    ESNClassifier : One label per time step.
    ReservoirTransformer : The states alone, for a pipeline.
    reservoir.forecast : Closed-loop forecasts from pipelines and searches.

    References
    ----------
    .. [1] H. Jaeger, "The 'echo state' approach to analysing and training recurrent neural
       networks", GMD Report 148, 2001.
    .. [2] M. Lukosevicius and H. Jaeger, "Reservoir computing approaches to recurrent neural
       network training", Computer Science Review 3, 2009.

    Examples
    --------
    >>> from reservoir import ESNRegressor
    >>> from reservoir.datasets import mackey_glass
    >>> series = mackey_glass(1500, random_state=0).ravel()
    >>> esn = ESNRegressor(200, leak_rate=0.3, random_state=0)
    >>> esn = esn.fit(series[:1199, None], series[1:1200])
    >>> forecast = esn.forecast(100)  # runs on its own outputs
    >>> bool(abs(forecast - series[1200:1300]).max() < 0.1)
    True
    """

    missing_targets: str = parameter(
        "raise",
        '{"raise", "skip"}',
        """Whether rows with NaN in y are refused, or drive the reservoir and are left out of the
        fit, of `score` and of `reservoir.model_selection.washout_scorer`. scikit-learn's own
        scorers (``scoring="r2"``) refuse them in any case.""",
        one_of("raise", "skip"),
    )

    def partial_fit(self, X: Any, y: Any, *, new_sequence: bool = False) -> ESNRegressor:
        """Go on learning with the next chunk of rows.

        Any split of the data over calls gives the model of one `fit`, for an integer washout and
        a bias that does not look at the data: ``washout="auto"`` and ``"measured"``, and the range
        that ``bias="stable"`` certifies, are the first chunk's (a warning says where a later one
        leaves the range).

        Parameters
        ----------
        X, y
            As in `fit`. A table goes on where the last call ended; each item of a list is a
            sequence of its own.
        new_sequence : bool, default=False
            Whether the chunk starts a new sequence: fresh state, fresh washout. With
            `sequence_column` a new id says so by itself.

        Returns
        -------
        self

        Warns
        -----
        UserWarning
            If an index tells that a chunk does not begin where the last one ended, and
            `new_sequence` does not say so.
        """
        return self._learn_chunk(X, y, new_sequence=new_sequence)

    def _coding(self) -> Numbers:
        return Numbers()

    def _read_targets(
        self, y: Any, sequences: Sequences, *, first: bool, **known: Any
    ) -> list[Array]:
        skip = check_choice("missing_targets", self.missing_targets, ("raise", "skip")) == "skip"
        return super()._read_targets(y, sequences, first=first, allow_nan=skip)

    def predict(self, X: Any, *, initial_state: Any = None, return_state: bool = False) -> Any:
        """Run the reservoir over X and read it out, one row of output per row of X.

        The estimator is not changed: the same call gives the same answer. With ``feedback=True``
        the network runs on its own outputs.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or sequences
        initial_state : {"last", "zeros", "steady"} or array, optional
            By default the constructor's.
        return_state : bool, default=False

        Returns
        -------
        y : array of shape (n_samples,) or (n_samples, n_outputs), as y in fit; or sequences
        state : array of shape (n_units [+ n_outputs],), or one row per sequence
            Where the run ended; only if `return_state`.

        Raises
        ------
        ValueError, TypeError
            If X is refused, as in `fit`.

        Warns
        -----
        UserWarning
            If ``initial_state="last"`` and an index tells that X does not begin right after
            training; the run then starts from "steady".
        """
        self._check_fitted()
        y, states = self._predict(X, initial_state, self._targets.decode)
        return (y, states) if return_state else y

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
        """Forecast by feeding outputs back as inputs.

        Needs a network that was trained to predict its own next input: ``y[t] == X[t+1]`` in the
        first n_outputs columns of X (`reservoir.model_selection.make_forecast_pairs` makes such
        pairs); further columns are exogenous. With ``feedback=True`` X is exogenous altogether.

        Parameters
        ----------
        n_steps : int
            Rows to forecast.
        context : array of shape (n_context, n_features), optional
            Rows that the network listens to first, from where `predict` would start. Row 0 of the
            forecast is then what `predict` says of the last of them. Without context the forecast
            goes on from the end of training: row 0 is the step after the last target. The columns
            of a DataFrame are matched by name, if X had names in fit.
        exog : array of shape (n_steps, n_exog), with context (n_steps - 1, n_exog), optional
            Exogenous inputs; row k enters with the input that yields row k (with context: row
            k + 1). Columns as in `context`.
        initial_state : str or array, optional
            As in `predict`; without context, by default, the state at the end of training.
        return_state : bool, default=False
        clip : bool or (low, high), default=False
            True holds what is fed back in the range of the training targets, widened by its own
            width on both sides. With ``bias="stable"`` it is the range that `certificate_` covers:
            the proof then covers the reservoir in the loop, too, since its state follows from what
            it was fed. A pair, numbers or arrays of shape (n_outputs,), is a range in y's units.
            The rows returned are not clipped, and the loop as a whole may oscillate all the same,
            as a generator must.

        Returns
        -------
        y : array of shape (n_steps,) or (n_steps, n_outputs), as y in fit
        state : array of shape (n_units [+ n_outputs],)
            Only if `return_state`.

        Raises
        ------
        ValueError
            If the network was not trained so, shapes or names of columns do not fit, n_steps < 1,
            or `clip` is no range. Inside a pipeline with a scaler use
            ``reservoir.forecast(pipeline, n_steps)``, which walks it.

        Warns
        -----
        RuntimeWarning
            If a row leaves the range of the training targets (over all calls of partial_fit) by
            more than ten times its width, or the loop diverges altogether: the rows then repeat
            the last output before it. The message names the step; nothing after it is to be
            trusted.
        """
        self._check_fitted()
        rows, state = forecast_network(
            self, n_steps, context=context, exog=exog, initial_state=initial_state, clip=clip
        )
        return (rows, state) if return_state else rows

    def to_rnn(self) -> RNNRegressor:
        """Return the network as one whose weights are all trained, with the same outputs.

        Returns
        -------
        RNNRegressor
            Fitted, with a dense W; cell "leaky" if there is a leak, else "rnn". Its `fit` starts
            training from these weights, also after scikit-learn's clone.

        Raises
        ------
        ValueError
            With ``feedback=True``, an `augment`, or a `readout` of its own.

        Examples
        --------
        >>> import numpy as np
        >>> from reservoir import ESNRegressor
        >>> from reservoir.datasets import narma
        >>> X, y = narma(600, random_state=0)
        >>> esn = ESNRegressor(30, random_state=0).fit(X[:400], y[:400])
        >>> rnn = esn.to_rnn()
        >>> bool(np.allclose(rnn.predict(X[400:]), esn.predict(X[400:])))
        True
        >>> rnn = rnn.set_params(max_iter=10).fit(X[:400], y[:400])
        >>> rnn.score(X[400:], y[400:]) > esn.score(X[400:], y[400:])
        True
        """
        self._check_fitted()
        return rnn_from_esn(self)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2 of `predict`, over all rows of all sequences.

        Rows whose target is NaN are left out where ``missing_targets="skip"``. (scikit-learn's own
        scorers cannot do so: use `reservoir.model_selection.washout_scorer` there.)

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. Where X has lost its index, as behind a scaler in a pipeline, that of y
            tells whether the rows follow those of training (``initial_state="last"``).

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If the index of y does not go with that of X, or no row has a target.
        """
        if self.missing_targets != "skip":
            return self._score(X, y, sample_weight)
        self._check_fitted()
        predicted = join(self.predict(X, initial_state=self._starts_of_score(X, y)), X)
        weight = join(sample_weight, X)
        y, known = with_targets(join(y, X))
        weight = None if weight is None else np.asarray(weight)[known]
        return self._targets.score(y[known], predicted[known], weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


@forecaster_of.register
def _(model: ESNRegressor) -> Forecaster:
    return NetworkForecaster(model)

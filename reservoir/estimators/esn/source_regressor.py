"""What regressors over a source of features share: numbers in, numbers out, forecasts."""

from __future__ import annotations

from typing import Any, TypeVar

from sklearn.base import RegressorMixin

from reservoir.estimators._target_coding import Numbers, TargetCoding
from reservoir.estimators.esn.source_estimator import SourceEstimator
from reservoir.estimators.forecasting.forecast import forecast_network
from reservoir.estimators.forecasting.forecaster import Forecaster, forecaster_of

_Self = TypeVar("_Self", bound="SourceRegressor")


class SourceRegressor(RegressorMixin, SourceEstimator):
    """A source of features under a readout that gives numbers, one row for each row of X."""

    def partial_fit(
        self: _Self, X: Any, y: Any, sample_weight: Any = None, *, new_sequence: bool = False
    ) -> _Self:
        """Go on learning with the next chunk of rows.

        Any split of the data over calls gives the model of one `fit`, as long as nothing else
        looks at the data as a whole. What does is the first chunk's: of an echo state network
        ``washout="auto"`` and ``"measured"``, and the range that ``bias="stable"`` certifies (a
        warning says where a later one leaves it); of Chebyshev polynomials the range that inputs
        are scaled by.

        The rows are added to sums in the call. The ridge's attributes (`coef_`, `intercept_`,
        `alpha_`, `alpha_scores_`) are solved for when one of them is first read, which `predict`,
        `forecast`, `reservoir.save` and pickling do as well: under the parameters that the call
        has seen, and with the errors that `fit` would raise in solving. A `readout` of your own
        learns in the call.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. A table goes on where the last call ended; each item of a list is a
            sequence of its own. All weights of a call may be 0.
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
        return self._partial_fit(X, y, sample_weight, new_sequence=new_sequence)

    def _coding(self) -> TargetCoding:
        return Numbers()

    def predict(self, X: Any, *, initial_state: Any = None, return_state: bool = False) -> Any:
        """Run over X and read it out, one row of output per row of X.

        The estimator is not changed: the same call gives the same answer. An echo state network
        with ``feedback=True`` runs on its own outputs.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or sequences
        initial_state : {"last", "zeros", "steady"} or array, optional
            By default the constructor's.
        return_state : bool, default=False

        Returns
        -------
        y : array of shape (n_samples,) or (n_samples, n_outputs), as y in fit; or sequences
        state : array of the shape of `state_`, or one row per sequence
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
        predictor, decode = self._predictor(), self._reader.targets.decode
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
        """Forecast by feeding outputs back as inputs.

        Needs an estimator that was trained to predict its own next input: ``y[t] == X[t+1]`` in
        the first n_outputs columns of X (`reservoir.model_selection.make_forecast_pairs` makes such
        pairs); further columns are exogenous. Of an echo state network with ``feedback=True`` X is
        exogenous altogether.

        Parameters
        ----------
        n_steps : int
            Rows to forecast.
        context : array of shape (n_context, n_features), optional
            Rows to listen to first, from where `predict` would start. Row 0 of the
            forecast is then what `predict` says of the last of them. Without context the forecast
            goes on from the end of training: row 0 is the step after the last target. The columns
            of a DataFrame are matched by name, if X had names in fit.
        exog : array of shape (n_steps, n_exog), with context (n_steps - 1, n_exog), optional
            Exogenous inputs; row k enters with the input that yields row k (with context: row
            k + 1). Columns as in `context`.
        initial_state : str or array, optional
            As in `predict`; without context, by default, the state at the end of training.
        return_state : bool, default=False
        clip : bool, (low, high) or callable, default=False
            True holds what is fed back in the range of the training targets, widened by its own
            width on both sides. Of an echo state network with ``bias="stable"`` it is the range
            that `certificate_` covers: the proof then covers the reservoir in the loop, too, since
            its state follows from what it was fed. A pair, numbers or arrays of shape
            (n_outputs,), is a range in y's units. A function of the outputs of a step,
            (n_outputs,), in y's units returns what is fed back in their place, of the same shape:
            a threshold, say, or a projection. The rows returned are what the network said, and the
            loop as a whole may oscillate all the same, as a generator must.

        Returns
        -------
        y : array of shape (n_steps,) or (n_steps, n_outputs), as y in fit
        state : array of the shape of `state_`
            Only if `return_state`.

        Raises
        ------
        ValueError
            If it was not trained so, shapes or names of columns do not fit, n_steps < 1,
            or `clip` is no range, or makes of outputs another shape or numbers that are not
            finite. Inside a pipeline with a scaler use
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
        return self._score(X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


@forecaster_of.register
def _(model: SourceRegressor) -> Forecaster:
    return model._predictor()

"""Echo state network for classification: one label per time step."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from sklearn.base import ClassifierMixin, is_classifier
from sklearn.utils.metaestimators import available_if

from reservoir._saving import saved
from reservoir.estimators.esn.esn_regressor import ESNRegressor
from reservoir.estimators.esn.readout_model import ReadoutModel
from reservoir.estimators.esn.source_estimator import SourceEstimator
from reservoir.estimators.esn.sources import reservoir_model
from reservoir.estimators.parameters import attributes_of, documented, parameter, shared
from reservoir.estimators.reading import DataReader, TrainingData
from reservoir.estimators.targets import Labels, readout_has
from reservoir.readouts.temperature import log_probabilities, probabilities

__all__ = ["ESNClassifier"]


def _check_transition(name: str, value: Any) -> None:
    """Check that a value is None or "auto"."""
    if value is not None and not (isinstance(value, str) and value == "auto"):
        raise ValueError(f'{name}={value!r} must be None or "auto".')


@saved
@documented(FITTED=attributes_of(SourceEstimator))
@dataclass(eq=False, repr=False)
class ESNClassifier(ClassifierMixin, SourceEstimator):
    """Echo state network that predicts one label per time step.

    The readout is a ridge regression on labels coded as -1 and +1, with one column per class, as in
    scikit-learn's RidgeClassifier; the class with the largest score is predicted. Instead,
    `readout` may be any scikit-learn classifier, which is then fitted to the states.

    Rows of X are time steps. Several sequences are passed as for `ESNRegressor`.

    Pass ``cv=KFold(5)`` or `TimeSeriesSplit` to searches and cross-validation. The default for
    classifiers, and ``cv=5``, is `StratifiedKFold`, which takes rows out of the middle of others
    if the shares of the classes drift: a search for `leak_rate` then found the right one in one of
    twenty trials, with a mean accuracy of .928 instead of .982.

    Parameters
    ----------
    {PARAMETERS}

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The class labels, sorted.
    temperature_ : float
        The number by which scores are divided before the softmax turns them into probabilities. It
        is fitted by maximum likelihood on a sample of at most 1024 training rows. Rows near in time
        depend on each other: the sample is cut into eight parts of time, each scored by a fit
        without it. The temperature is raised if scores of rows in held-out blocks, by which a
        penalty was chosen, are further too large. With ``forgetting < 1`` the sample is drawn from
        the latest rows, weighted as in the fit.
    transition_ : array of shape (n_classes, n_classes)
        With ``transition="auto"``: the matrix T of the filter; entry (i, j) is the probability that
        class j follows class i.
    transition_power_ : float
        With ``transition="auto"``: the power a of the filter.
    {FITTED}

    See Also
    --------
    ESNRegressor : Predicts numbers instead of labels.

    Examples
    --------
    >>> from reservoir import ESNClassifier
    >>> from reservoir.datasets import sine_square
    >>> X, y = sine_square(2000, random_state=0)
    >>> clf = ESNClassifier(100, random_state=0).fit(X[:1500], y[:1500])
    >>> clf.score(X[1500:], y[1500:]) > 0.95
    True
    """

    n_units: int = shared.but("n_units", default=300)
    _: KW_ONLY
    topology: Any = shared.topology
    in_degree: float = shared.in_degree
    weights: Any = shared.weights
    input_weights: Any = shared.input_weights
    spectral_radius: float | None = shared.spectral_radius
    leak_rate: Any = shared.but("leak_rate", default=(1.0, 0.3, 0.1))
    activation: Any = shared.activation
    input_scaling: Any = shared.input_scaling
    bias: Any = shared.bias
    bias_scaling: float = shared.but("bias_scaling", default=1.0)
    time_column: Any = shared.time_column
    time_step: Any = shared.time_step
    random_state: Any = shared.random_state
    augment: Any = shared.augment
    feedback: bool = shared.feedback
    feedback_scaling: Any = shared.feedback_scaling
    noise: float = shared.noise
    bidirectional: bool = shared.bidirectional
    include_input: bool = shared.include_input
    alpha: Any = shared.alpha
    solver: str = shared.solver
    alpha_selection: str = shared.alpha_selection
    alpha_per_target: bool = shared.alpha_per_target
    forgetting: float = shared.forgetting
    readout: Any = shared.readout
    fit_intercept: bool = shared.fit_intercept
    washout: Any = shared.washout
    n_jobs: int | None = shared.n_jobs
    initial_state: Any = shared.initial_state
    sequence_column: Any = shared.sequence_column
    dtype: Any = shared.dtype
    verbose: int = shared.verbose
    class_weight: Any = shared.class_weight
    transition: str | None = parameter(
        None,
        '{None, "auto"}',
        """Filter over the labels of a sequence, which `predict` and `predict_proba` apply. "auto":
        the probabilities at row t are proportional to (T' p) (q / f)^a, where p are those of the
        row before, q those of the readout, f the frequencies of the classes, and T mixes the
        transitions between labels, counted in the training rows, with labels that do not depend on
        each other. The power a and the share of the transitions are chosen by the log loss of
        training rows in held-out parts (two halves, unless `alpha_selection` names others), in a
        second run over the rows; with none, or if no filter is better than none, there is no
        filter. The filter restarts in each sequence. A state, `state_` included, then continues
        with n_classes numbers of the filter: zeros if `initial_state` lacks them. With
        `bidirectional` the filter runs forwards only. A session runs the filter on predictions
        alone, and does not change it. Cannot be combined with `readout`, `feedback`, `time_column`,
        ``forgetting < 1`` and `partial_fit`. The default is None, since states with memory know the
        past: the filter pays where labels last longer than that.""",
        _check_transition,
    )

    states = ESNRegressor.states

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        new_sequence: bool = False,
    ) -> ESNClassifier:
        """Continue learning with the next chunk of rows; see `ESNRegressor.partial_fit`.

        Like the attributes of the ridge, `temperature_` is computed when it is first read.

        Parameters
        ----------
        X, y
            As in `fit`.
        classes : array of shape (n_classes,), optional
            All labels of this and later calls; required in the first call unless its `y` contains
            them all.
        sample_weight : array of shape (n_samples,), or one per sequence, optional
            As in `fit`.
        new_sequence : bool, default=False
            As in `ESNRegressor.partial_fit`.

        Returns
        -------
        self
        """
        self._check_readout()
        return self._partial_fit(X, y, sample_weight, new_sequence=new_sequence, classes=classes)

    def _coding(self) -> Labels:
        return Labels(single=True)

    _grows_with = ("n_units",)

    def _new_model(self, reader: DataReader, data: TrainingData) -> ReadoutModel:
        return reservoir_model(self, reader, data)

    def _check(self, reader: DataReader, data: TrainingData) -> None:
        super()._check(reader, data)
        self._check_readout()

    def _check_readout(self) -> None:
        """Check that the readout is a classifier, and that its scores can be fed back."""
        if hasattr(self.readout, "fit") and not is_classifier(self.readout):
            raise TypeError(
                f"readout={self.readout!r} is not a classifier. Use a classifier, such as "
                "LogisticRegression, or use ESNRegressor to predict numbers."
            )
        if self.readout is not None and self.feedback:
            raise ValueError(
                "feedback=True needs the built-in readout, whose scores are fed back. Use "
                "readout=None or feedback=False."
            )

    def _predicts_by(self) -> tuple[Any, Any]:
        if hasattr(self, "readout_"):
            return lambda rows: rows, self.readout_.predict
        return super()._predicts_by()

    def _probabilities_by(self) -> tuple[Any, Any]:
        """Return the function from outputs to probabilities, and the function for outputs.

        The second one is None if the outputs are computed in the default way.
        """
        if hasattr(self, "readout_"):
            return lambda rows: rows, self.readout_.predict_proba
        return lambda rows: probabilities(rows, self.temperature_), None

    def _log_probabilities_by(self) -> tuple[Any, Any]:
        """Return a function from outputs to log probabilities, and the function for outputs."""
        decode, own = self._probabilities_by()
        return lambda rows: log_probabilities(decode(rows)), own

    def _scores_by(self) -> tuple[Any, Any]:
        """Return the function from outputs to scores, and the function for outputs, or None."""
        if hasattr(self, "readout_"):
            return lambda rows: rows, self.readout_.decision_function
        # `decision_function` is not filtered
        own = None if self._model.label_filter is None else self._model.readout.outputs(self)
        return lambda rows: rows[:, 0] if rows.shape[1] == 1 else rows, own

    @available_if(readout_has("decision_function"))
    def decision_function(self, X: Any, *, initial_state: Any = None) -> Any:
        """Return the scores of the classes.

        Parameters
        ----------
        X, initial_state
            As in `predict`.

        Returns
        -------
        array of shape (n_samples, n_classes), or (n_samples,) for two classes; or sequences
            For two classes, a positive score means ``classes_[1]``.
        """
        return self._run_by(self._scores_by, X, initial_state, per_class=True)

    @available_if(readout_has("predict_proba"))
    def predict_proba(
        self, X: Any, *, initial_state: Any = None, return_state: bool = False
    ) -> Any:
        """Return the probabilities of the classes: the softmax of scores / `temperature_`.

        The temperature maximises the likelihood of the labels of training rows, each predicted by a
        fit that excludes this row and others near it in time. With ``transition="auto"`` the
        probabilities are filtered, and `predict` returns the class with the largest;
        `decision_function` is not filtered. With a custom `readout`, its `predict_proba` method is
        used instead.

        Parameters
        ----------
        X, initial_state, return_state
            As in `predict`.

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes), or sequences
        state : array of shape (n_units [+ n_outputs],), or one row per sequence
            The state at the end of the run; only if `return_state`.
        """
        return self._run_by(
            self._probabilities_by, X, initial_state, per_class=True, return_state=return_state
        )

    @available_if(readout_has("predict_proba"))
    def predict_log_proba(
        self, X: Any, *, initial_state: Any = None, return_state: bool = False
    ) -> Any:
        """Return the logarithms of the probabilities of the classes.

        Parameters
        ----------
        X, initial_state, return_state
            As in `predict`.

        Returns
        -------
        log_probabilities : array of shape (n_samples, n_classes), or sequences
            The logarithms of `predict_proba`; -inf for a probability of 0.
        state : array of shape (n_units [+ n_outputs],), or one row per sequence
            The state at the end of the run; only if `return_state`.
        """
        return self._run_by(
            self._log_probabilities_by, X, initial_state, per_class=True, return_state=return_state
        )

    score = SourceEstimator.score

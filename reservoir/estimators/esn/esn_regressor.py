"""Echo state network for regression: one or several outputs per time step."""

from __future__ import annotations

import copy
import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._validation import caller_level, check_choice, check_count, check_number
from reservoir.dynamics.past_inputs import PastInputs
from reservoir.estimators.esn.readout_model import ReadoutModel
from reservoir.estimators.esn.source_estimator import SourceEstimator, SourceRegressor
from reservoir.estimators.esn.sources import reservoir_model
from reservoir.estimators.parameters import attributes_of, documented, parameter, shared
from reservoir.estimators.reading import DataReader, TrainingData
from reservoir.estimators.rnn.rnn_regressor import RNNRegressor, module_from_esn, rnn_from_esn

__all__ = ["ESNRegressor"]

# parameters of versions without `input_alpha`, whose files and pickles may lack them
BEFORE_INPUT_ALPHA = {"n_lags": 1, "input_alpha": None}


def _count_or_auto(name: str, value: Any) -> None:
    """Check a number of rows of the input."""
    if isinstance(value, str):
        check_choice(name, value, ("auto",))
    else:
        check_count(name, value)


def _check_input_alpha(name: str, value: Any) -> None:
    """Check a penalty of rows of the input; 0 would have no ratio to the penalty of the states."""
    if isinstance(value, str):
        check_choice(name, value, ("auto",))
    elif value is not None:
        check_number(name, value, low=0, low_open=True)


def _warn_of_one_row(esn: ESNRegressor, made: dict[str, Any]) -> None:
    """Warn by how much a readout of the present row is worse than that of a fitted network."""
    worse = ""
    if "alpha_scores_" in made:
        before, after = (
            float(np.sqrt(scores.mean(axis=1).min()))
            for scores in (esn.alpha_scores_, made["alpha_scores_"])
        )
        worse = f", with held-out errors of {after:.3g} instead of {before:.3g} (root mean square)"
    warnings.warn(
        f"The readout receives n_lags_={esn.n_lags_} rows of the input, but that of a recurrent "
        f"network receives one: it is solved again for one row{worse}. Use n_lags=1 to fit it so.",
        UserWarning,
        stacklevel=caller_level(),
    )


@saved
@documented(FITTED=attributes_of(SourceEstimator))
@dataclass(eq=False, repr=False)
class ESNRegressor(SourceRegressor):
    """Echo state network: a fixed random reservoir with a ridge readout.

    ``x[t] = (1 - a) x[t-1] + a f(W x[t-1] + W_in u[t] + bias + W_fb y[t-1])``, and ``y[t] = C
    [x[t]; u[t]] + c``; where that helps (`n_lags`) the older inputs ``u[t - skip]`` and so on
    follow u[t]. Only C and c are learned [1]_. They are computed from sums over rows, so
    that the states of a long series are not stored.

    Rows of X are time steps, in order. Several sequences are passed as a list of tables, as a 3-D
    array (n_sequences, n_steps, n_features), as a table with an id column (`sequence_column`), or
    as a pandas object with a MultiIndex. Each sequence starts from a new initial state, and results
    are returned in the same container.

    Parameters
    ----------
    {PARAMETERS}

    Attributes
    ----------
    {FITTED}

    See Also
    --------
    ESNForecaster : Forecasts a series with networks that it selects automatically.
    ESNClassifier : Predicts one label per time step.
    NVARRegressor : Uses polynomials of lagged inputs instead of states.
    ReservoirTransformer : Returns only the states, for a pipeline.
    reservoir.forecast : Makes closed-loop forecasts with pipelines and searches.
    reservoir.plotting.overview : Draws predictions, states, eigenvalues, penalties and errors.

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
    >>> forecast = esn.forecast(100)  # in closed loop: outputs are fed back
    >>> bool(abs(forecast - series[1200:1300]).max() < 0.1)
    True
    """

    n_units: int = shared.but("n_units", default=300)
    _: KW_ONLY
    topology: Any = shared.topology
    in_degree: float = shared.in_degree
    weights: Any = shared.weights
    input_weights: Any = shared.input_weights
    spectral_radius: float | None = shared.spectral_radius
    leak_rate: Any = shared.but("leak_rate", default=(0.5, 0.3))
    activation: Any = shared.activation
    input_scaling: Any = shared.input_scaling
    bias: Any = shared.bias
    bias_scaling: float = shared.bias_scaling
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
    initial_state: Any = shared.but(
        "initial_state",
        more="""The rows before the first one, which the readout may receive (`n_lags`), are taken
        to equal it, unless the initial state is "last", or an array in which these rows precede the
        states of the units, as in `state_`.""",
    )
    sequence_column: Any = shared.sequence_column
    dtype: Any = shared.dtype
    verbose: int = shared.verbose
    missing_targets: str = shared.missing_targets
    n_lags: Any = parameter(
        "auto",
        'int or "auto"',
        """Number of input rows that the readout receives with `include_input`: the present row and
        rows before it. The reservoir receives only the present row. The states then need not carry
        what is linear in the last few rows. The rows before the first one of a sequence are taken
        to equal it. With "auto" it is up to 20 rows (at most 80 columns, and one row for each ten
        learned rows per column) if that raises the R^2 of held-out rows by more than 0.0003, else
        1. It is always 1 where y is the next X and older rows would harm closed loops (almost no
        noise, or a loop that would diverge far outside the learned range), with a single number as
        `alpha`, with a `readout`, `forgetting` below 1, a `time_column`, `bidirectional` or
        ``alpha_selection="forecast"``, and in `force_train`.""",
        _count_or_auto,
    )
    input_alpha: Any = parameter(
        "auto",
        'float, "auto" or None',
        """Penalty of the weights of input rows. None is that of the states. With "auto" it is
        chosen like `alpha`, if that raises the R^2 of held-out rows by more than 0.0003, else it is
        that of the states, as it is with a single number as `alpha`.""",
        _check_input_alpha,
    )
    skip: int = parameter(
        1,
        "int, in steps",
        """Distance between successive lagged rows.""",
        check_count,
    )

    _grows_with = ("n_units", "n_lags")

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(BEFORE_INPUT_ALPHA | state)

    def _new_model(self, reader: DataReader, data: TrainingData) -> ReadoutModel:
        return reservoir_model(self, reader, data)

    def _check(self, reader: DataReader, data: TrainingData) -> None:
        super()._check(reader, data)
        if self.input_alpha is None or isinstance(self.input_alpha, str):
            return
        if self.readout is not None or not self.include_input:
            raise ValueError(
                f"input_alpha={self.input_alpha} is a penalty of the built-in ridge for inputs "
                "that the readout receives. Use readout=None with include_input=True, or "
                "input_alpha=None."
            )
        if not isinstance(self.alpha, str) and np.min(self.alpha) <= 0:
            raise ValueError(
                f"input_alpha={self.input_alpha} needs penalties of the states above 0; got "
                f"alpha={self.alpha!r}. Use a small number as alpha, or input_alpha=None."
            )

    def _of_one_row(self) -> ESNRegressor:
        """Return this fitted network with a readout of the present row of the input only."""
        source = self._model.source
        if not isinstance(source, PastInputs):
            return self
        one, model = copy.copy(self), copy.copy(self._model)
        model.source, model.state = source.source, self.state_[source.n_held :]
        if getattr(self, "n_lags_", source.n_rows) > 1:
            settings = self._new_readout(self._reader).settings
            model.readout = model.readout.renewed(settings).narrowed(1)
            made = model.solution()
            _warn_of_one_row(self, made)
            one.__dict__.update(made)
        one.__dict__.update(_model=model, state_=model.state, n_lags_=1)
        return one

    def states(self, X: Any, *, initial_state: Any = None) -> Any:
        """Return the states of the reservoir when it is driven by a series.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or sequences
            The series, as in `predict`.
        initial_state : str or array, optional
            As in `predict`.

        Returns
        -------
        array of shape (n_samples, n_units), or sequences in the container of X
            The states after each row. With feedback the network runs in closed loop. With
            `bidirectional` there are 2 * n_units columns: the states of the run forwards, then
            those of the run backwards.
        """
        predictor = self._predictor()
        sequences = predictor.read(X)
        states = predictor.states(sequences, predictor.starts(initial_state, sequences))
        return sequences.restore(states)

    def to_rnn(self) -> RNNRegressor:
        """Return an equivalent `RNNRegressor`, whose weights can all be trained.

        Returns
        -------
        RNNRegressor
            A fitted network with the same outputs and a dense W; its `cell` is "leaky" if there is
            a leak, else "rnn". Its `fit` starts training from these weights, even after
            scikit-learn's `clone`.

        Raises
        ------
        ValueError
            If the network has ``feedback=True``, ``bidirectional=True``, an `augment` or a custom
            `readout`.

        Warns
        -----
        UserWarning
            If the readout receives more than one row of the input (`n_lags_`): it is then solved
            again for the present row alone, and the outputs are not the same.

        Examples
        --------
        >>> import numpy as np
        >>> from reservoir import ESNRegressor
        >>> from reservoir.datasets import narma
        >>> X, y = narma(600, random_state=0)
        >>> esn = ESNRegressor(30, leak_rate=1.0, n_lags=1, random_state=0).fit(X[:400], y[:400])
        >>> rnn = esn.to_rnn()
        >>> bool(np.allclose(rnn.predict(X[400:]), esn.predict(X[400:])))
        True
        >>> rnn = rnn.set_params(max_iter=10).fit(X[:400], y[:400])
        >>> rnn.score(X[400:], y[400:]) > esn.score(X[400:], y[400:])
        True
        """
        self._check_fitted()
        return rnn_from_esn(self._of_one_row())

    def to_torch(self) -> Any:
        """Return the network as a torch module with a fixed reservoir and a trainable readout.

        Returns
        -------
        torch.nn.Module
            As of `RNNRegressor.to_torch`, with the same outputs from a zero state. The weights of
            its part ``recurrent`` have ``requires_grad=False``, those of ``readout`` are trainable.
            `RNNRegressor.from_torch` brings it back, as a network in which all weights are trained.

        Raises
        ------
        ImportError
            If torch is not installed.
        ValueError
            As from `to_rnn`, and if torch lacks the activation.
        """
        self._check_fitted()
        return module_from_esn(self._of_one_row())

"""Recurrent networks trained on labels, with scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import (
    as_generator,
    check_choice,
    check_count,
    check_number,
    check_switch,
)
from reservoir.estimators.parameters import attributes_of, documented
from reservoir.estimators.reading import DataReader, TrainingData
from reservoir.estimators.rnn._network_parameters import shared
from reservoir.estimators.rnn.converted_parameters import params_of_network
from reservoir.estimators.rnn.network_estimator import NetworkEstimator
from reservoir.estimators.rnn.network_model import NetworkModel
from reservoir.estimators.rnn.start import new_model
from reservoir.estimators.rnn.symbols import begin, check_alphabet, read_allowed, row_of_symbol
from reservoir.estimators.targets import Labels
from reservoir.readouts.temperature import log_probabilities
from reservoir.training.bptt import Network
from reservoir.training.loop_engines import using
from reservoir.training.params import Params
from reservoir.training.torch_conversion import from_torch

__all__ = ["RNNClassifier"]


def _has_probabilities(classifier: RNNClassifier) -> bool:
    if hasattr(classifier, "network_"):
        return classifier.network_.output == "softmax"
    return classifier.loss != "hinge"


@saved
@documented(FITTED=attributes_of(NetworkEstimator))
@dataclass(eq=False, repr=False, kw_only=True)
class RNNClassifier(ClassifierMixin, NetworkEstimator):
    """Recurrent network in which every weight is trained, as a classifier.

    It predicts one label per time step or, with ``target="last"``, one label per sequence. The
    network, its initial weights and its training are as in `RNNRegressor`, with a softmax output.
    With one label per time step, pass ``cv=KFold(5)`` or `TimeSeriesSplit` to searches and
    cross-validation, as for `ESNClassifier`: the default for classifiers breaks the order in time.

    Parameters
    ----------
    {PARAMETERS}

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, in the order of the columns of `predict_proba`.
    {FITTED}

    See Also
    --------
    RNNRegressor : Predicts numbers instead of labels.
    ESNClassifier : Echo state network, in which only the readout is learned.
    ESNSequenceClassifier : Echo state network with one label per sequence.

    Notes
    -----
    For one label per sequence try `ESNSequenceClassifier` first. It uses the states of all steps,
    whereas ``target="last"`` uses the last state and must learn to keep the earlier steps in it. On
    `reservoir.datasets.gestures` its accuracy is 99 % after training on 160 sequences and 100 % on
    1600, which takes .2 and 3.6 seconds; a trained network of 50 units with ``cell="gru"`` and
    ``learning_rate_init=0.01`` reaches 65 % and 99 % in 17 and 48 seconds, and with ``cell="rnn"``
    it remains at chance level. With a thousand sequences or more a trained network may therefore be
    worth its training time; compare the two.

    Examples
    --------
    >>> from reservoir import RNNClassifier
    >>> from reservoir.datasets import sine_square
    >>> X, y = sine_square(900, random_state=0)
    >>> clf = RNNClassifier(20, max_iter=2, random_state=0).fit(X[:600], y[:600])
    >>> clf.score(X[600:], y[600:]) > 0.95
    True
    """

    loss: str = shared.but(
        "loss",
        kind='{"auto", "cross_entropy", "hinge"}',
        text="""Loss minimised in training. "auto" is the cross-entropy of the softmax; "hinge" is
        the one-versus-rest hinge loss of the classes.""",
    )
    class_weight: Any = shared.class_weight

    def _new_model(self, reader: DataReader, data: TrainingData) -> NetworkModel:
        loss = check_choice("loss", self.loss, ("auto", "cross_entropy", "hinge"))
        hinge = ("identity", "hinge")
        return new_model(
            self, reader, data, *(hinge if loss == "hinge" else ("softmax", "cross_entropy"))
        )

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, *, new_sequence: bool = False
    ) -> RNNClassifier:
        """Learn online from the next rows; see `RNNRegressor.partial_fit`.

        Parameters
        ----------
        X, y
            As in `fit`.
        classes : array of shape (n_classes,), optional
            All labels, including those of later calls; required in the first call unless its y
            contains them all.
        new_sequence : bool, default=False
            Whether the chunk starts a new sequence.

        Returns
        -------
        self
        """
        return self._partial_fit(X, y, new_sequence=new_sequence, classes=classes)

    @classmethod
    def from_torch(cls, module: Any, classes: Any = None, **params: Any) -> RNNClassifier:
        """Return a fitted classifier with the weights of a torch module.

        Parameters
        ----------
        module : torch.nn.Module
            As in `RNNRegressor.from_torch`, with one output per class. A module without an output
            function returns scores, whose softmax are the probabilities (or margins, with
            ``loss="hinge"``).
        classes : array of shape (n_classes,), optional
            The labels of the outputs, in increasing order; 0, 1, ... by default.
        **params
            Parameters of the estimator for further training.

        Returns
        -------
        RNNClassifier
            The fitted estimator, with ``warm_start=True`` so that `fit` continues from these
            weights.

        Raises
        ------
        ValueError
            If the module ends in another output function than a softmax, or if `classes` are not as
            many different labels as it has outputs, in increasing order.
        """
        network, weights = from_torch(module)
        hinge = network.loss == "hinge" or params.get("loss") == "hinge"
        if network.output not in ("identity", "softmax") or (hinge and network.output == "softmax"):
            raise ValueError(
                f"The module ends in output {network.output!r}, but a classifier "
                f"{'with loss=' + repr('hinge') if hinge else 'of labels'} needs "
                f"{'none' if hinge else 'a softmax, or none'}."
            )
        coded = ("identity", "hinge") if hinge else ("softmax", "cross_entropy")
        network = replace(network, output=coded[0], loss=coded[1])
        labels = np.arange(network.n_outputs) if classes is None else np.asarray(classes)
        if not np.array_equal(np.unique(labels), labels) or len(labels) != network.n_outputs:
            raise ValueError(
                f"classes={labels.tolist()} must be {network.n_outputs} different labels in "
                "increasing order, one for each output of the module."
            )
        clf = cls(**params_of_network(network, weights), loss="hinge" if hinge else "auto")
        clf.set_params(**params)
        clf._adopt(network, weights)
        clf._reader.targets.classes = clf.classes_ = labels
        return clf

    def _coding(self) -> Labels:
        hinge = isinstance(self.loss, str) and self.loss == "hinge"
        return Labels(per_sequence=self.target == "last", low=-1.0 if hinge else 0.0)

    def _check(self, reader: DataReader, data: TrainingData) -> None:
        classes = reader.targets.classes
        check_switch("warm_start", self.warm_start)
        if self.warm_start and not self._is_new:
            before = np.asarray(self.classes_)
            if not np.array_equal(before, classes):
                raise ValueError(
                    f"warm_start=True continues with the classes {before.tolist()}, but y contains "
                    f"{classes.tolist()}. Use warm_start=False."
                )
        super()._check(reader, data)

    def _probabilities_by(self) -> tuple[Any, Any]:
        """Return a function from outputs to probabilities, and None for the default outputs."""
        return _rows_that_sum_to_one, None

    def _log_probabilities_by(self) -> tuple[Any, Any]:
        """Return a function from outputs to log probabilities, and the function for outputs."""
        decode, own = self._probabilities_by()
        return lambda rows: log_probabilities(decode(rows)), own

    @available_if(_has_probabilities)
    def predict_proba(
        self, X: Any, *, initial_state: Any = None, return_state: bool = False
    ) -> Any:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X, initial_state, return_state
            As in `predict`.

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes), or sequences
            With ``target="last"`` of shape (n_sequences, n_classes). Not available with
            ``loss="hinge"``.
        state : array of shape (state_size,), or one row per sequence
            The state at the end of the run; only if `return_state`.
        """
        return self._run_by(
            self._probabilities_by, X, initial_state, per_class=True, return_state=return_state
        )

    @available_if(_has_probabilities)
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
        state : array of shape (state_size,), or one row per sequence
            The state at the end of the run; only if `return_state`.
        """
        return self._run_by(
            self._log_probabilities_by, X, initial_state, per_class=True, return_state=return_state
        )

    @available_if(_has_probabilities)
    def sample(
        self,
        n: int,
        context: Any = None,
        temperature: float = 1.0,
        allowed: Any = None,
        random_state: Any = None,
        *,
        initial_state: Any = None,
        return_state: bool = False,
    ) -> Any:
        """Draw the symbols that follow a context, each conditional on all symbols before it.

        The network must have been trained to predict the next symbol: row t of X is symbol t,
        either one-hot, with a column for each class in the order of `classes_`, or, with
        `n_symbols`, as its index in `classes_`; ``y[t]`` is symbol t + 1. Each drawn symbol is fed
        back as the next input [1]_. Not available with ``loss="hinge"``.

        Parameters
        ----------
        n : int
            Number of symbols to draw.
        context : array of shape (n_context,) or (n_context, n_features), optional
            Symbols to read first, as labels or as rows like those of X in fit. Without a context
            the drawn symbols follow the end of training.
        temperature : float, at least 0, default=1.0
            Symbols are drawn from ``p ** (1 / temperature)``, scaled to sum to 1: below 1 likely
            symbols become more likely, and 0 always takes the most likely one.
        allowed : array of shape (n_classes,) or (n_classes, n_classes), or sparse matrix, optional
            Mask of the symbols that may be drawn, non-zero where a symbol is allowed; or an
            adjacency matrix with a row for the last symbol and a column for the next one, so that a
            walk stays on a graph. Symbols that are not allowed have probability 0.
        random_state : int, Generator, RandomState or None
            Seed of the draws.
        initial_state : {"last", "zeros", "steady"} or array, optional
            The state before the context; by default the estimator's `initial_state`.
        return_state : bool, default=False
            Whether to return the state as well.

        Returns
        -------
        symbols : array of shape (n,)
            Of the dtype of `classes_`.
        state : array of shape (state_size,)
            The state before the last symbol, so that ``sample(n, context=symbols[-1:],
            initial_state=state)`` continues the walk. Only if `return_state`.

        Raises
        ------
        ValueError, TypeError
            If X in fit did not contain the symbols, or y the symbols that followed; if `context`
            contains anything but symbols; if `allowed` has another shape, or allows no symbol after
            one that may be drawn.

        References
        ----------
        .. [1] A. Graves, "Generating sequences with recurrent neural networks", arXiv:1308.0850,
           2013, section 2.

        Examples
        --------
        A network learns to write "hello " endlessly:

        >>> import numpy as np
        >>> from reservoir import RNNClassifier
        >>> text = np.array(list("hello " * 50))
        >>> X = (text[:-1, None] == np.unique(text)).astype(float)
        >>> rnn = RNNClassifier(16, learning_rate_init=0.01, max_iter=50, random_state=0)
        >>> rnn = rnn.fit(X, text[1:])
        >>> "".join(rnn.sample(9, context=list("hel"), random_state=0))
        'lo hello '
        """
        self._check_fitted()
        n = check_count("n", n, size=1)
        temperature = check_number("temperature", temperature, low=0.0)
        self._check_steps("sample")
        check_alphabet(self)
        symbol, state = begin(self, context, initial_state)
        drawn, state = _walk(
            self.network_,
            self.params_,
            n,
            symbol=symbol,
            state=state,
            row_of=partial(row_of_symbol, self._model),
            choices=read_allowed(allowed, self.classes_, symbol),
            temperature=temperature,
            generator=as_generator(random_state),
        )
        symbols = self.classes_[drawn]
        return (symbols, state) if return_state else symbols

    @property
    def forecast(self) -> Any:
        """Not available: labels cannot be fed back. `sample` draws the symbols that follow."""
        raise AttributeError(
            "RNNClassifier has no forecast: it predicts labels, and forecasts feed numbers back as "
            "inputs. If the inputs are symbols, its method sample draws the symbols that follow."
        )

    def decision_function(self, X: Any, *, initial_state: Any = None) -> Any:
        """Return the scores of the classes: log probabilities, or margins with ``loss="hinge"``.

        Parameters
        ----------
        X, initial_state
            As in `predict`.

        Returns
        -------
        array of shape (n_samples, n_classes), or (n_samples,) for two classes; or sequences
            For two classes the difference of their scores: positive means ``classes_[1]``.
        """
        return self._run_by(self._scores_by, X, initial_state, per_class=True)

    def _scores_by(self) -> tuple[Any, Any]:
        """Return a function from outputs to scores, and None for the default outputs."""

        def scores(rows: Array) -> Array:
            if self.network_.output == "softmax":
                rows = np.log(np.maximum(rows, np.finfo(rows.dtype).tiny))
            return rows[:, 1] - rows[:, 0] if rows.shape[1] == 2 else rows

        return scores, None

    score = NetworkEstimator.score


def _rows_that_sum_to_one(rows: Array) -> Array:
    return rows / rows.sum(axis=1, keepdims=True)


def _walk(
    network: Network,
    params: Params,
    n_steps: int,
    *,
    symbol: int,
    state: Array,
    row_of: Callable[[int], Array],
    choices: Callable[[int], Array | None],
    temperature: float,
    generator: np.random.Generator,
) -> tuple[Array, Array]:
    """Draw symbols one by one from a network, and feed each back as the next input.

    `symbol` is the last one that the network has not yet received, `state`, (state_size,), the
    state before it. ``row_of(symbol)`` is its input row, (n_features,), and ``choices(symbol)`` the
    symbols that may follow, ascending, or None for all. At temperature 0, the largest score wins.
    Returns the symbols, (n_steps,), and the state before the last of them.
    """
    drawn = np.empty(n_steps, dtype=np.intp)
    state = state[None]
    with using("numpy"):  # single steps, for which compiled kernels do not pay off
        for k in range(n_steps):
            allowed = choices(symbol)
            x = row_of(symbol)
            trace = network.cell.forward(params, x[None, None], state)
            features = trace.states[1, 0]
            if network.include_input:
                features = np.concatenate([features, x])
            scores = params["coef"] @ features + params["intercept"]
            at = _draw(scores if allowed is None else scores[allowed], temperature, generator)
            symbol = at if allowed is None else int(allowed[at])
            drawn[k], state = symbol, trace.end
    return drawn, state[0].copy()


def _draw(scores: Array, temperature: float, generator: np.random.Generator) -> int:
    """Return the index of a symbol drawn with probability proportional to exp(score / T)."""
    largest = int(np.argmax(scores))
    if temperature == 0:
        return largest
    # in double precision; if the temperature is near 0, all exponentials but the largest vanish
    below = scores.astype(np.float64) - float(scores[largest])
    with np.errstate(over="ignore"):
        sums = np.cumsum(np.exp(below / temperature))
    at = np.searchsorted(sums, generator.random() * sums[-1], side="right")
    # in spite of rounding, do not exceed the last symbol with a positive probability
    return int(min(at, np.searchsorted(sums, sums[-1])))

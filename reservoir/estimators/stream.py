"""A session that keeps its state from chunk to chunk."""

from __future__ import annotations

from typing import Any

from reservoir._typing import Array


class Stream:
    """Predict chunk by chunk; made by ``estimator.stream()``.

    The estimator itself is not changed; two streams do not know each other.

    Parameters
    ----------
    estimator : fitted ESNRegressor or ESNClassifier
    initial_state : {"last", "zeros", "steady"} or array of shape (n_units [+ n_outputs],)

    Attributes
    ----------
    state : array of shape (n_units [+ n_outputs],) or None
        Where the last chunk ended; None before the first.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import ESNRegressor
    >>> from reservoir.datasets import narma
    >>> X, y = narma(600, random_state=0)
    >>> esn = ESNRegressor(50, random_state=0).fit(X[:500], y[:500])
    >>> stream = esn.stream()
    >>> rows = np.concatenate([stream.predict(X[500:530]), stream.predict(X[530:])])
    >>> bool(np.allclose(rows, esn.predict(X[500:])))
    True
    """

    def __init__(self, estimator: Any, initial_state: Any = "last") -> None:
        self._estimator = estimator
        self._initial_state = initial_state
        self.state: Array | None = None

    def predict(self, chunk: Any) -> Array:
        """Return the outputs of the next rows of one series.

        Parameters
        ----------
        chunk : array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_outputs)

        Raises
        ------
        ValueError
            If the chunk holds several sequences: a stream follows one.
        """
        start = self._initial_state if self.state is None else self.state
        outputs, state = self._estimator.predict(chunk, initial_state=start, return_state=True)
        if state.ndim != 1:
            raise ValueError(
                f"A stream follows one sequence; the chunk holds {len(state)}. Call reset() "
                "between sequences, or predict them with the estimator."
            )
        self.state = state
        return outputs

    def reset(self) -> None:
        """Go back to the initial state."""
        self.state = None

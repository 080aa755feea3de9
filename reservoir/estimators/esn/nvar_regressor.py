"""Next-generation reservoir computing: a ridge on polynomials of lagged inputs."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_feature_names_in

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import check_count, check_switch
from reservoir.dynamics.polynomial_lags import BASES, LaggedPolynomials
from reservoir.estimators.esn.readout_model import ReadoutModel
from reservoir.estimators.esn.source_estimator import SourceRegressor
from reservoir.estimators.parameters import documented, one_of, parameter, shared
from reservoir.estimators.reading import DataReader, TrainingData

__all__ = ["NVARRegressor"]


@saved
@documented()
@dataclass(eq=False, repr=False)
class NVARRegressor(SourceRegressor):
    """Next-generation reservoir computing: a ridge on polynomials of lagged inputs.

    ``y[t] = C p(u[t], u[t - skip], ..., u[t - (n_lags - 1) skip]) + c``, where p contains the
    lagged inputs and all their products up to a total degree: a nonlinear vector autoregression
    [1]_. There are no random weights and nothing to tune except lags and degree. If the equations
    of a system are polynomial, few rows suffice; on most other systems networks are better.

    Data, containers, forecasts and training in chunks are as for `ESNRegressor`. The rows before
    the first one of a new sequence are taken to equal that row.

    Parameters
    ----------
    {PARAMETERS}

    Attributes
    ----------
    coef_ : array of shape (n_outputs, n_terms), or 1-D for 1-D y
        Weights of the built-in readout, in the order of `get_feature_names_out`.
    intercept_ : float or array of shape (n_outputs,)
        Intercept of each output.
    alpha_ : float or array of shape (n_outputs,)
        The penalty used.
    alphas_ : array of shape (n_alphas,)
        The penalties that were tried, unless `alpha` is a number.
    alpha_scores_ : array of shape (n_alphas, n_outputs) or (n_alphas, 1)
        Mean squared error on held-out rows that `alpha_selection` expects for each penalty. With
        "forecast" there is one error for all outputs, in standard deviations of y: the geometric
        mean over the steps of each closed loop, then the median over the loops. The error of each
        step is clipped to the range from 1e-9 to 1.
    alpha_selection_ : str
        The selection rule used; for "auto" the rule that it resolved to.
    training_error_ : array of shape (n_outputs,)
        Root mean squared error of each output over the fitted rows. With ``solver="cholesky"`` an
        error below about 1e-8 times the standard deviation of the targets cannot be distinguished
        from 0. The `learn` method of a session does not change it.
    readout_ : estimator
        The fitted `readout`, if one was given.
    input_range_ : array of shape (2, n_features)
        With ``basis="chebyshev"``: the values that are scaled to -1 and 1. They are the range of X
        in `fit`, or in the first call of `partial_fit`; for a constant input c they are c - 1 and c
        + 1.
    washout_ : array of shape (n_sequences,)
        Number of rows at the start of each sequence that fit excluded.
    state_ : array of shape ((n_lags - 1) * skip * n_features,)
        The last rows of the last training sequence, the oldest first.
    n_outputs_ : int
        Number of outputs.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns of X, if it had names.

    See Also
    --------
    ESNRegressor : Uses states of a random network instead of polynomials.
    ESNForecaster : Forecasts a series with networks that it selects automatically.
    reservoir.forecast : Makes closed-loop forecasts with pipelines and searches.

    References
    ----------
    .. [1] D. J. Gauthier, E. Bollt, A. Griffith and W. A. S. Barbosa, "Next generation reservoir
       computing", Nature Communications 12, 5564, 2021, eqs. (3) to (6).

    Examples
    --------
    The logistic map, recovered from its series:

    >>> import numpy as np
    >>> from reservoir import NVARRegressor
    >>> x = np.full((50, 1), 0.3)
    >>> for t in range(49):
    ...     x[t + 1] = 3.9 * x[t] * (1 - x[t])
    >>> model = NVARRegressor(n_lags=1, alpha=1e-12).fit(x[:-1], x[1:])
    >>> dict(zip(model.get_feature_names_out().tolist(), model.coef_[0].round(3).tolist()))
    {'x0': 3.9, 'x0^2': -3.9}
    >>> bool(abs(model.forecast(1)[0] - 3.9 * x[-1] * (1 - x[-1])) < 1e-6)
    True

    The variables of a flow are standardised first, so that `alpha` has the same meaning for all
    terms:

    >>> from reservoir.datasets import lorenz
    >>> from reservoir.model_selection import make_forecast_pairs
    >>> from sklearn.preprocessing import StandardScaler
    >>> rows = StandardScaler().fit_transform(lorenz(1200, random_state=0))
    >>> inputs, targets = make_forecast_pairs(rows[:1001])
    >>> flow = NVARRegressor(2, degree=3, increments=True).fit(inputs, targets)
    >>> bool(abs(flow.forecast(100, clip=True) - rows[1001:1101]).max() < 0.2)
    True
    """

    n_lags: int = parameter(
        2,
        "int",
        """Number of input rows that are used, including the present one. One row is enough if the
        columns of X are the whole state of a flow or map.""",
        check_count,
    )
    _: KW_ONLY
    skip: int = parameter(
        1,
        "int, in steps",
        """Distance between successive lagged rows.""",
        check_count,
    )
    degree: int = parameter(
        2,
        "int",
        """The largest total degree of a term. With m = n_lags * n_features lagged inputs there are
        binom(m + degree, degree) - 1 terms, at most 20,000.""",
        check_count,
    )
    basis: str = parameter(
        "monomial",
        '{"monomial", "chebyshev"}',
        """Factors of the terms: powers of the inputs, or Chebyshev polynomials of inputs that are
        scaled to [-1, 1] by their range in fit. High degrees need Chebyshev polynomials, since
        powers are almost collinear. Outside the range, Chebyshev polynomials grow fast:
        ``forecast(..., clip=True)`` keeps the fed-back outputs near this range.""",
        one_of(*BASES),
    )
    increments: bool = parameter(
        False,
        "bool",
        """Whether the ridge is fitted to the difference of y from the first n_outputs columns of X,
        as Gauthier et al. do [1]_; the columns of y must contain later values of these columns.
        `coef_` predicts y in either case: the penalty then shrinks towards "the next row equals
        this one" instead of towards the mean, and no precision is lost where successive rows are
        close. On Lorenz-63 this lengthens accurate forecasts by one to two Lyapunov times.""",
        check_switch,
    )
    alpha: Any = shared.but(
        "alpha",
        more="""Noise-free series benefit from smaller penalties than the default
        candidates: down to 1e-27 times n_samples for series of flows, with ``solver="qr"``.""",
    )
    solver: str = shared.solver
    alpha_selection: str = shared.alpha_selection
    alpha_per_target: bool = shared.alpha_per_target
    forgetting: float = shared.forgetting
    readout: Any = shared.readout
    fit_intercept: bool = shared.fit_intercept
    washout: Any = shared.but(
        "washout",
        kind='int or "auto"',
        text="""Number of rows at the start of each sequence that
        are excluded from the fit. "auto" is ``(n_lags - 1) * skip``: from this row on, all lagged
        rows are in the data.""",
    )
    n_jobs: int | None = shared.n_jobs
    initial_state: Any = shared.but(
        "initial_state",
        text="""The rows assumed before the first row of a run. "last": `predict`
        continues from the end of training if fit received one sequence and X is one sequence;
        otherwise, and in training, the assumed rows equal the first row. They also equal the first
        row, with a warning, if an index of dates, periods or numbers shows that X does not begin
        right after training. "steady": the assumed rows equal the first row; "zeros": they are
        zero. An array has shape ((n_lags - 1) * skip * n_features,) or (n_sequences, ...), the
        oldest row first.""",
    )
    sequence_column: Any = shared.sequence_column
    dtype: Any = shared.dtype
    verbose: int = shared.verbose
    missing_targets: str = shared.missing_targets

    _grows_with = ("n_lags", "degree")

    def _new_model(self, reader: DataReader, data: TrainingData) -> ReadoutModel:
        source = LaggedPolynomials.for_inputs(
            data.arrays,
            n_lags=self.n_lags,
            skip=self.skip,
            degree=self.degree,
            basis=self.basis,
        )
        if self.increments:
            self._check_increments(data)
        return ReadoutModel(source, data.n_outputs, increments=bool(self.increments))

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the terms, in the order of `coef_`.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the columns of X; by default those of fit, or "x0", "x1" and so on.

        Returns
        -------
        array of shape (n_terms,), of str
            Names such as "x0", "x0[t-1]", "x0^2" and "x0 x1". With ``basis="chebyshev"``, "T2(x0)"
            is the Chebyshev polynomial of degree 2 of the scaled input, and "T1(x0) T3(x1)" is a
            product.

        Examples
        --------
        >>> import numpy as np
        >>> from reservoir import NVARRegressor
        >>> X = np.random.default_rng(0).normal(size=(30, 1))
        >>> NVARRegressor(2).fit(X[:-1], X[1:]).get_feature_names_out().tolist()
        ['x0', 'x0[t-1]', 'x0^2', 'x0 x0[t-1]', 'x0[t-1]^2']
        """
        self._check_fitted()
        names = list(_check_feature_names_in(self, input_features))
        column = self._reader.sequence_column
        if column is not None:
            names.pop(names.index(column) if isinstance(column, str) else int(column))
        source = self._model.source
        assert isinstance(source, LaggedPolynomials)
        return np.array(source.names(names), dtype=object)

    def _check_increments(self, data: TrainingData) -> None:
        """Check that y continues columns of X, and that the built-in ridge learns it."""
        n_features = data.arrays[0].shape[1]
        if data.n_outputs > n_features:
            raise ValueError(
                f"increments=True: y has {data.n_outputs} columns, but X has {n_features}. The "
                "first columns of X must contain the variables of y. Add them to X, or use "
                "increments=False."
            )
        if self.readout is not None:
            raise ValueError(
                "increments=True is a parameter of the built-in ridge, which "
                f"readout={self.readout!r} replaces. Use readout=None or increments=False."
            )

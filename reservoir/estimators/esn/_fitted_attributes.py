"""Fitted attributes in the docstrings of the echo state estimators."""

FITTED = """
coef_ : array of shape (n_outputs, n_units [+ n_features]), or 1-D for 1-D y
    Weights of the built-in readout: states first, then inputs. With `augment` the first n_units
    weights are replaced by those of the augmented states. With `n_lags`, of `ESNRegressor`, the
    weights of older rows follow those of the present input, n_features for each, the latest row
    first.
intercept_ : float or array of shape (n_outputs,)
alpha_ : float or array of shape (n_outputs,)
    The penalty used.
alphas_ : array of shape (n_alphas,)
    The penalties that were tried, unless `alpha` is a number.
alpha_scores_ : array of shape (n_alphas, n_outputs) or (n_alphas, 1)
    Mean squared error on held-out rows that `alpha_selection` expects for each penalty. With
    "forecast" one error for all outputs, in standard deviations of y: the geometric mean over the
    steps of a closed loop, the median over loops; the error of a step is limited to the range from
    1e-9 to 1.
alpha_selection_ : str
    The selection rule used; for "auto" the rule that it resolved to.
training_error_ : array of shape (n_outputs,)
    Root mean squared error of each output over the fitted rows; for a classifier the error of its
    scores, whose targets are 1 and -1. With ``solver="cholesky"`` an error below some 1e-8 of the
    targets' standard deviation cannot be distinguished from 0. `session.learn` does not change it.
readout_ : estimator
    The fitted `readout`, if one was given.
reservoir_ : reservoir.dynamics.Reservoir
certificate_ : reservoir.stability.Certificate
    With ``bias="stable"``: the proved property, and the range of inputs that it covers.
washout_ : array of shape (n_sequences,)
    Rows at the start of each sequence that fit excluded.
state_ : array of shape (n_units,), with feedback (n_units + n_outputs,)
    The state at the end of training (of its last sequence), then, with feedback, the last target.
    With a `time_column` (n_units + 1,): then the time of the last row, in steps since the first of
    fit. With `n_lags`, of `ESNRegressor`, the last ``(n_lags - 1) * skip`` rows of X come first,
    the oldest first.
time_step_ : float or None
    The gap for which `leak_rate` is given; None without a `time_column`.
n_outputs_ : int
n_features_in_ : int
feature_names_in_ : array of shape (n_features_in_,)
    If X had names.
"""

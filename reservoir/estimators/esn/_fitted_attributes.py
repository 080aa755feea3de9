"""What the docstrings of the echo state estimators share beside parameters."""

FITTED = """
coef_ : array of shape (n_outputs, n_units [+ n_features]), or 1-D for 1-D y
    Weights of the built-in readout: states first, then inputs. With `augment` the weights of what
    it makes of the states stand in the place of the first n_units. With `n_lags`, of
    `ESNRegressor`, those of older rows stand behind the present input, n_features for each, the
    latest row first.
intercept_ : float or array of shape (n_outputs,)
alpha_ : float or array of shape (n_outputs,)
    The penalty used.
alphas_ : array of shape (n_alphas,)
    The penalties that were tried, unless `alpha` is a number.
alpha_scores_ : array of shape (n_alphas, n_outputs) or (n_alphas, 1)
    Mean squared error on rows left out that `alpha_selection` expects of each of them. Of
    "forecast" one error for all outputs, in standard deviations of y: the geometric mean over the
    steps of a closed loop, the median over loops; a step counts as 1e-9 at least and as 1 at most.
alpha_selection_ : str
    The rule that has chosen: "auto" stands for one of the others.
training_error_ : array of shape (n_outputs,)
    Root mean squared error of each output over the rows that were fitted; of a classifier that of
    its scores, which aim at 1 and -1. With ``solver="cholesky"`` an error below some 1e-8 of the
    targets' standard deviation cannot be told from 0. `session.learn` leaves it as it was.
readout_ : estimator
    The fitted `readout`, if one was given.
reservoir_ : reservoir.dynamics.Reservoir
certificate_ : reservoir.stability.Certificate
    With ``bias="stable"``: what was proved, and for which range of inputs.
washout_ : array of shape (n_sequences,)
    Rows that fit left out of each sequence.
state_ : array of shape (n_units,), with feedback (n_units + n_outputs,)
    The state at the end of training (of its last sequence), then the last target. With a
    `time_column` (n_units + 1,): then the time of the last row, in steps since the first of fit.
    With `n_lags`, of `ESNRegressor`, the last ``(n_lags - 1) * skip`` rows of X stand in front, the
    oldest first.
time_step_ : float or None
    The gap for which `leak_rate` is given; None without a `time_column`.
n_outputs_ : int
n_features_in_ : int
feature_names_in_ : array of shape (n_features_in_,)
    If X had names.
"""

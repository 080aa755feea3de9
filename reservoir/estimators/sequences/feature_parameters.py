"""Parameters of features of whole sequences, and of a readout of them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from reservoir._validation import (
    check_count,
    check_n_jobs,
    check_penalties,
    check_scaling,
    check_switch,
)
from reservoir.dynamics.pooling import check_pools
from reservoir.estimators.parameters import (
    CommonParameters,
    ReservoirParameters,
    Shared,
    one_of,
    parameter,
)
from reservoir.estimators.parameters import shared as common


def _check_bias(name: str, value: Any) -> None:
    if isinstance(value, str) and value == "stable":
        raise ValueError(
            'bias="stable" is for reservoirs that run indefinitely; series that begin from zeros '
            'and end need no such proof. Use bias="uniform".'
        )


def _check_lags(name: str, value: Any) -> None:
    if isinstance(value, (bool, np.bool_)):
        return
    if not isinstance(value, (tuple, list, np.ndarray)) or not len(value):
        raise ValueError(
            f"{name}={value!r} must be True, False, or lags in steps, such as (1, 2, 4, 8)."
        )
    for lag in value:
        check_count(name, lag)
    if len(set(value)) < len(value):
        raise ValueError(f"{name}={value!r} contains a lag twice. Remove one of them.")


@dataclass(eq=False, repr=False)
class FeatureParameters:
    """Parameters of features: a reservoir, its inputs, and pooling."""

    n_units: int = common.but(
        "n_units",
        default=500,
        text="""Number of reservoir units N, in all groups together. There are several features per
        unit (twenty by default); twice the units cost twice the time and gain little.""",
    )
    _: KW_ONLY
    topology: Any = common.but(
        "topology",
        default="ring",
        more="""A ring distinguishes sequences as well as random connections do, at a fraction of
        their cost.""",
    )
    leak_rate: Any = common.but(
        "leak_rate",
        default=(1.0, 0.3, 0.1),
        kind="float in (0, 1], a few of them, or array of shape (n_units,), per step",
        text="""Share of the state that is new at each step. Several numbers, more than one and
        fewer than n_units, define groups of units, one for each (and for each kind of input, see
        `differences`). Unlike in `ESNRegressor`, groups are not connected: fast units follow
        details, slow ones the course of the series. The sizes of groups differ by one at most, and
        each is scaled to `spectral_radius` separately.""",
    )
    input_scaling: Any = common.but(
        "input_scaling",
        default=0.3,
        kind="float or array of shape (n_channels,)",
        text="""Input weights are U(-1, 1) times this, per channel, divided by the square root of
        the number of inputs of a unit: its drive has the same size for few channels and many.""",
    )
    bias: Any = parameter(
        "uniform",
        "str or array of shape (n_units,)",
        """"uniform", U(-1, 1), "normal" or "bernoulli", times `bias_scaling`; or the bias
        itself.""",
        _check_bias,
        group="ReservoirParameters",
    )
    scaling: str | None = parameter(
        "standard",
        '"standard" or None',
        """"standard": the mean of each channel is subtracted, and the result divided by the
        standard deviation, both over all steps of the series in fit (a constant channel is divided
        by its absolute value). None leaves channels unchanged.""",
        lambda name, value: None if value is None else one_of("standard")(name, value),
    )
    differences: Any = parameter(
        (1, 3, 9, 27),
        "bool, or tuple of int, steps",
        """Lags over which differences of the channels, ``x[t] - x[t - lag]``, are inputs as well
        (before step `lag`, differences from the first value), each divided by its root mean square
        in fit. True means a lag of 1. Each unit receives either the values or the differences over
        one lag, so that no unit sums different kinds of input. Only lags up to a third of the
        median length of the series in fit are used, `lags_` (at least one lag); if `n_units` is
        less than the number of groups, only the shortest of these.""",
        _check_lags,
    )
    pool: Any = parameter(
        ("mean", "std", "max", "min", "quantiles"),
        "str or tuple of str",
        """Statistics of the states of a series, computed for each unit: "mean", "std" (divided by
        the number of steps), "max", "min", "last" (after the last step), "quantiles" (the share of
        the steps at which the state is above each of `n_quantiles` thresholds).""",
        check_pools,
    )
    n_quantiles: int = parameter(
        6,
        "int",
        """Thresholds per unit for "quantiles": quantiles of a sample of the states in fit at equal
        distances, with half that distance at either end; for 6, the quantiles 1/12, 3/12, 5/12,
        7/12, 9/12 and 11/12.""",
        check_count,
    )
    bidirectional: bool = parameter(
        True,
        "bool",
        """Whether the reservoir also runs over each series backwards, for twice the features in
        less than twice the time. Series may differ early or late, and the two runs reach these
        steps with different states. False saves time and memory.""",
        check_switch,
    )
    missing_values: str = parameter(
        "raise",
        '{"raise", "hold", "interpolate"}',
        """Handling of NaN in X. "raise": an error; "hold": the last known value of the channel,
        before the first known value that value; "interpolate": linear interpolation between the
        known values on either side, at the ends the nearest one. A channel without any value in a
        series gets its mean over all training steps.""",
        one_of("raise", "hold", "interpolate"),
    )
    add_indicator: bool = parameter(
        False,
        "bool",
        """Whether each channel has an additional input that is 1 if a value was missing, else
        0.""",
        check_switch,
    )
    time_column: Any = common.but(
        "time_column",
        more="""If the gaps themselves are informative, pass them as a separate channel.""",
    )
    dtype: Any = common.but(
        "dtype",
        default="float32",
        text="""Precision of states and features. Inputs are standardised, and states summed, in
        float64.""",
    )
    n_jobs: int | None = parameter(
        None,
        "int",
        """Threads that process the series (joblib); -1 uses all processors. The features do not
        depend on it.""",
        lambda name, value: check_n_jobs(value),
    )
    random_state: Any = common.but(
        "random_state",
        text="""Seed of all weights, and of the sample of states for the thresholds.""",
    )


def _check_alphas(name: str, value: Any) -> None:
    if check_penalties(name, value).ndim > 1 or np.size(value) == 0:
        raise ValueError(
            f"{name} must be a number or have shape (n_alphas,), penalties to choose from; got "
            f"shape {np.shape(value)}."
        )


def _check_scales(name: str, value: Any) -> None:
    if np.ndim(value) > 1 or np.size(value) == 0:
        raise ValueError(
            f"{name} must be a number or have shape (n_candidates,), numbers to choose from; got "
            f"shape {np.shape(value)}. For a factor per channel scale X and use scaling=None."
        )
    check_scaling(name, np.atleast_1d(value), np.size(value), "candidate")


@dataclass(eq=False, repr=False, kw_only=True)
class ReadoutOfSequences:
    """Parameters of a readout of features."""

    input_scaling: Any = parameter(
        0.3,
        "float or array of shape (n_candidates,)",
        """Input weights are U(-1, 1) times this, divided by the square root of the number of inputs
        of a unit. From several candidates, such as (0.1, 0.3, 1.0), one is chosen by the error of
        the ridge on held-out sequences of fit: with small ones units sum their inputs, with large
        ones they saturate. Each candidate needs another run over all sequences, and the choice
        gains little on average.""",
        _check_scales,
        group="ReservoirParameters",
    )
    alpha: Any = parameter(
        tuple(float(f"{a:.3g}") for a in np.logspace(-3, 3, 13)),
        "float or array of shape (n_alphas,)",
        """Ridge penalty on standardised features: ``||Y - ZC||^2 + alpha ||C||^2``, not divided by
        the number of sequences. From several, one is chosen by the squared error on held-out
        sequences.""",
        _check_alphas,
    )
    relevance_weights: bool = parameter(
        True,
        "bool",
        """Whether each standardised column is multiplied by the root of its F statistic (analysis
        of variance between classes, or regression on numbers), so that the ridge penalises
        informative columns less; the mean square of these weights is 1. The weights are learned
        from y, and so the errors on held-out sequences are unbiased only if the weights are learned
        without them. Sequences are therefore held out in folds, and weights computed for each fold:
        with up to 50 sequences each is a fold, from 200 on there are 5 folds, and of more than 500
        sequences only 500 are held out. Below 100 they are split into folds three times, and the
        errors are averaged. False: no weights, and exact leave-one-out
        (`reservoir.readouts.leave_one_out_ridge`).""",
        check_switch,
    )
    readout: Any = parameter(
        None,
        "scikit-learn estimator",
        """Replaces the ridge on the standardised features, which it receives without weights;
        `alpha` and `relevance_weights` then only serve to choose among candidates for
        `input_scaling`.""",
    )


_GROUPS = FeatureParameters, ReservoirParameters, CommonParameters
#: Parameters that features of whole sequences list.
shared = Shared(*_GROUPS)
#: Parameters that estimators with a readout of such features list.
shared_with_readout = Shared(ReadoutOfSequences, *_GROUPS)

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
            'bias="stable" proves stability for reservoirs that run indefinitely, which finite '
            'series that start from a zero state do not need. Use bias="uniform".'
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
        kind="float in (0, 1], tuple of such floats, or array of shape (n_units,), per step",
        text="""Share of the state that is replaced at each step. Several numbers, at least two and
        fewer than n_units, define groups of units: one group for each number and each kind of input
        (see `differences`). Unlike in `ESNRegressor`, groups are not connected: fast units follow
        details, slow ones the course of the series. The sizes of groups differ by one at most, and
        each is scaled to `spectral_radius` separately.""",
    )
    input_scaling: Any = common.but(
        "input_scaling",
        default=0.3,
        kind="float or array of shape (n_channels,)",
        text="""Factor of the input weights, per channel. They are drawn from U(-1, 1), multiplied
        by this factor, and divided by the square root of the number of inputs of a unit, so that
        the size of its summed input does not depend on the number of channels.""",
    )
    bias: Any = parameter(
        "uniform",
        "str or array of shape (n_units,)",
        """Distribution of the biases before they are multiplied by `bias_scaling`: "uniform" (U(-1,
        1)), "normal" or "bernoulli"; or an array of the biases themselves.""",
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
        median length of the series in fit are used, but always at least one; if `n_units` is less
        than the number of groups, the longest of these lags are omitted as well. `lags_` contains
        the lags that are used.""",
        _check_lags,
    )
    pool: Any = parameter(
        ("mean", "std", "max", "min", "quantiles"),
        "str or tuple of str",
        """Statistics of the states of a series, computed for each unit: "mean", "std" (divided by
        the number of steps), "max", "min", "last" (after the last step), "quantiles" (the fraction
        of the steps at which the state is above each of `n_quantiles` thresholds).""",
        check_pools,
    )
    n_quantiles: int = parameter(
        6,
        "int",
        """Number of thresholds per unit for "quantiles". They are equally spaced quantiles of a
        sample of the states in fit, with half the spacing at either end: for 6 thresholds, the
        quantiles 1/12, 3/12, 5/12, 7/12, 9/12 and 11/12.""",
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
        """Handling of NaN in X. "raise": an error; "hold": NaN is replaced by the last known value
        of the channel, or by the first known value if there is none before; "interpolate": by
        linear interpolation between the known values on either side, or by the nearest known value
        at the ends of the series. A channel without any value in a series is set to its mean over
        all training steps.""",
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
        """Number of threads that process the series (with joblib); -1 uses all processors. It does
        not affect the features.""",
        lambda name, value: check_n_jobs(value),
    )
    random_state: Any = common.but(
        "random_state",
        text="""Seed of all weights, and of the sample of states for the thresholds.""",
    )


def _check_alphas(name: str, value: Any) -> None:
    if check_penalties(name, value).ndim > 1 or np.size(value) == 0:
        raise ValueError(
            f"{name} must be a number or have shape (n_alphas,), with penalties to choose from; "
            f"got shape {np.shape(value)}."
        )


def _check_scales(name: str, value: Any) -> None:
    if np.ndim(value) > 1 or np.size(value) == 0:
        raise ValueError(
            f"{name} must be a number or have shape (n_candidates,), with numbers to choose from; "
            f"got shape {np.shape(value)}. For a different factor in each channel, scale X "
            "and use scaling=None."
        )
    check_scaling(name, np.atleast_1d(value), np.size(value), "candidate")


@dataclass(eq=False, repr=False, kw_only=True)
class ReadoutOfSequences:
    """Parameters of a readout of features."""

    input_scaling: Any = parameter(
        0.3,
        "float or array of shape (n_candidates,)",
        """Factor of the input weights, which are drawn from U(-1, 1) and divided by the square root
        of the number of inputs of a unit. From several candidates, such as (0.1, 0.3, 1.0), the one
        with the smallest error of the ridge on held-out sequences of fit is chosen: small factors
        make units nearly linear, large ones saturate them. Each candidate requires another run over
        all sequences, and on average the choice improves accuracy little.""",
        _check_scales,
        group="ReservoirParameters",
    )
    alpha: Any = parameter(
        tuple(float(f"{a:.3g}") for a in np.logspace(-3, 3, 13)),
        "float or array of shape (n_alphas,)",
        """Ridge penalty on standardised features: ``||Y - ZC||^2 + alpha ||C||^2``, not divided by
        the number of sequences. From several penalties, the one with the smallest squared error on
        held-out sequences is chosen.""",
        _check_alphas,
    )
    relevance_weights: bool = parameter(
        True,
        "bool",
        """Whether each standardised column is multiplied by the root of its F statistic (analysis
        of variance between classes, or regression on numbers), so that the ridge penalises
        informative columns less; the mean square of these weights is 1. The weights are learned
        from y, and so the errors on held-out sequences are unbiased only if the weights are learned
        without these sequences. Sequences are therefore held out in folds, and the weights are
        computed for each fold: with up to 50 sequences each sequence is a fold, with 200 or more
        there are 5 folds, and of more than 500 sequences only 500 are held out. Fewer than 100
        sequences are split into folds three times, and the errors are averaged. If False, no
        weights are used, and the errors are computed by exact leave-one-out
        (`reservoir.readouts.leave_one_out_ridge`).""",
        check_switch,
    )
    readout: Any = parameter(
        None,
        "scikit-learn estimator",
        """Estimator that replaces the ridge. It receives the standardised features without
        relevance weights; `alpha` and `relevance_weights` then only serve to choose among
        candidates for `input_scaling`.""",
    )


_GROUPS = FeatureParameters, ReservoirParameters, CommonParameters
#: Parameters that features of whole sequences list.
shared = Shared(*_GROUPS)
#: Parameters that estimators with a readout of such features list.
shared_with_readout = Shared(ReadoutOfSequences, *_GROUPS)

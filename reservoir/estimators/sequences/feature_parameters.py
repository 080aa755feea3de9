"""The parameters of features of whole sequences, shared by all that stand on them."""

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
    DrawnParameters,
    LabelParameters,
    ReservoirParameters,
    SequenceParameters,
    Shared,
    TimeParameters,
    changed,
    one_of,
    parameter,
)


def _check_bias(name: str, value: Any) -> None:
    if isinstance(value, str) and value == "stable":
        raise ValueError(
            'bias="stable" is for reservoirs that run on and on; series that begin from zeros and '
            'end need no such proof. Use bias="uniform".'
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
        raise ValueError(f"{name}={value!r} names a lag twice. Leave one of them out.")


@dataclass(eq=False, repr=False)
class FeatureParameters:
    """What turns whole sequences into features: a reservoir, its inputs, and pools."""

    n_units: int = changed(
        ReservoirParameters,
        "n_units",
        default=500,
        text="""Number of reservoir units N, those of all groups together. The features are many
        times as many (twenty by default); twice the units cost twice the time and gain little.""",
    )
    _: KW_ONLY
    topology: Any = changed(
        ReservoirParameters,
        "topology",
        default="ring",
        more="""A ring tells sequences apart as well as random connections do, at a fraction of
        their cost.""",
    )
    leak_rate: Any = changed(
        ReservoirParameters,
        "leak_rate",
        default=(1.0, 0.3, 0.1),
        kind="float in (0, 1], a few of them, or array of shape (n_units,), per step",
        text="""How much of the state is new at each step. A few numbers, more than one and fewer
        than n_units, make groups of units, one for each (and for each kind of input, see
        `differences`), which do not hear each other, unlike those of `ESNRegressor`: fast units see
        details, slow ones the course of the series. The sizes of groups differ by one at most, and
        each is scaled to `spectral_radius` by itself.""",
    )
    input_scaling: Any = changed(
        ReservoirParameters,
        "input_scaling",
        default=0.3,
        kind="float or array of shape (n_channels,)",
        text="""Input weights are U(-1, 1) times this, per channel, divided by the square root of
        the number of inputs that a unit reads: its drive has the same size for few channels and
        many.""",
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
        """"standard": each channel less its mean, by its standard deviation, both over all steps of
        the series in fit (a constant channel by its size). None leaves channels as they are.""",
        lambda name, value: None if value is None else one_of("standard")(name, value),
    )
    differences: Any = parameter(
        (1, 3, 9, 27),
        "bool, or tuple of int, steps",
        """Lags over which differences of the channels, ``x[t] - x[t - lag]``, are inputs too (until
        step `lag` those from the first value), each divided by its root mean square in fit. True
        stands for a lag of 1. The units are shared out: some read the values, and for each lag some
        read its differences, so that no unit adds up what the others tell apart. Of the lags those
        are used, `lags_`, that are no longer than a third of the median length of the series in fit
        (one at least), the shortest ones where `n_units` is less than the number of groups.""",
        _check_lags,
    )
    pool: Any = parameter(
        ("mean", "std", "max", "min", "quantiles"),
        "str or tuple of str",
        """What is kept of the states of a series, unit by unit: "mean", "std" (by the number of
        steps), "max", "min", "last" (after the last step), "quantiles" (the share of the steps at
        which the state lies above each of `n_quantiles` thresholds).""",
        check_pools,
    )
    n_quantiles: int = parameter(
        6,
        "int",
        """Thresholds per unit for "quantiles": those that cut a sample of the states in fit into
        parts of which the outer ones are half as large as the others; for 6, the quantiles 1/12,
        3/12, 5/12, 7/12, 9/12 and 11/12.""",
        check_count,
    )
    bidirectional: bool = parameter(
        True,
        "bool",
        """Whether the reservoir runs over each series backwards too, for twice the features in less
        than twice the time. What tells series apart may come late or early in them, and a run
        from either end sees it after other steps. False where time or memory is short.""",
        check_switch,
    )
    missing_values: str = parameter(
        "raise",
        '{"raise", "hold", "interpolate"}',
        """What is done about NaN in X. "hold": the last known value of the channel, before the
        first one the first; "interpolate": a straight line between the known values on either
        side, at the ends the nearest one. A channel without any value in a series gets its mean
        over all training steps.""",
        one_of("raise", "hold", "interpolate"),
    )
    add_indicator: bool = parameter(
        False,
        "bool",
        """Whether each channel has a further input that is 1 where a value was missing, else
        0.""",
        check_switch,
    )
    sequence_column: Any = changed(SequenceParameters, "sequence_column")
    time_column: Any = changed(
        TimeParameters,
        "time_column",
        more="""Give the gaps as a channel of their own where they say something by themselves.""",
    )
    time_step: Any = changed(TimeParameters, "time_step")
    dtype: Any = changed(
        SequenceParameters,
        "dtype",
        default="float32",
        text="""Of states and features. Inputs are standardised, and states summed up, in
        float64.""",
    )
    n_jobs: int | None = parameter(
        None,
        "int",
        """Threads that series are shared out to (joblib); -1 takes all processors. The features do
        not depend on it.""",
        lambda name, value: check_n_jobs(value),
    )
    random_state: Any = changed(
        DrawnParameters,
        "random_state",
        text="""Seed of all weights, and of the sample that thresholds are taken from.""",
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
    """Parameters of a readout of such features."""

    input_scaling: Any = parameter(
        0.3,
        "float or array of shape (n_candidates,)",
        """Input weights are U(-1, 1) times this, divided by the square root of the number of inputs
        that a unit reads. From several candidates, such as (0.1, 0.3, 1.0), one is chosen by the
        error of the ridge on left-out sequences of fit: small ones let units add inputs up, large
        ones make them decide. Each candidate takes another run over all sequences, and the choice
        gains little on average.""",
        _check_scales,
        group="ReservoirParameters",
    )
    alpha: Any = parameter(
        tuple(float(f"{a:.3g}") for a in np.logspace(-3, 3, 13)),
        "float or array of shape (n_alphas,)",
        """Ridge penalty on standardised features: ``||Y - ZC||^2 + alpha ||C||^2``, not divided by
        the number of sequences. From several, one is chosen by the squared error on left-out
        sequences.""",
        _check_alphas,
    )
    relevance_weights: bool = parameter(
        True,
        "bool",
        """Whether each standardised column is multiplied by the root of its F statistic (analysis
        of variance between classes, or regression on numbers), so that the ridge penalises those
        less which say much of y by themselves; the mean square of these weights is 1. They are
        learned from y: what is said of left-out sequences is honest only if theirs was not looked
        at. So sequences are left out in folds, and weights learned anew for each: up to 50
        sequences each by itself, 5 folds from 200 on, and of more than 500 sequences 500. Below 100
        they are dealt into folds three times, and what comes of it is averaged. False: no weights,
        and exact leave-one-out (`reservoir.readouts.leave_one_out_ridge`).""",
        check_switch,
    )
    readout: Any = parameter(
        None,
        "scikit-learn estimator",
        """Replaces the ridge on the standardised features, which it gets without weights; `alpha`
        and `relevance_weights` then only serve to choose among candidates for `input_scaling`.""",
    )


_GROUPS = FeatureParameters, ReservoirParameters
#: Where features of whole sequences take their parameters from.
shared = Shared(*_GROUPS)
#: Where estimators with a readout of such features take theirs from.
shared_with_readout = Shared(ReadoutOfSequences, *_GROUPS, LabelParameters)

"""scikit-learn's own checks on every estimator, with exactly the allowed failures.

The configuration has xfail_strict: an expected failure that passes fails the run.
"""

import re

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

import reservoir
from helpers import ROOT
from reservoir import (
    ESNClassifier,
    ESNForecaster,
    ESNRegressor,
    ESNSequenceClassifier,
    ESNSequenceRegressor,
    LiquidStateMachine,
    LocalForecaster,
    NVARRegressor,
    ReservoirFeatures,
    ReservoirTransformer,
    RNNClassifier,
    RNNRegressor,
    SeasonalNaive,
)
from reservoir.readouts import LMS, RecursiveLeastSquares, SlidingWindow

pytestmark = pytest.mark.both_engines

ROWS_ARE_TIME = "rows are time: a row's state depends on the rows before it"
FROM_THE_END = "transform continues from the end of fit, fit_transform starts from zeros"
EXPECTED = {
    "check_methods_subset_invariance": ROWS_ARE_TIME,
    "check_methods_sample_order_invariance": ROWS_ARE_TIME,
}
WITH_WEIGHTS = EXPECTED | {
    "check_sample_weight_equivalence_on_dense_data": "a row of weight 0 still drives the network"
}
CONTINUING = EXPECTED | dict.fromkeys(
    ("check_transformer_general", "check_transformer_data_not_an_array"), FROM_THE_END
)
IN_ONE_CALL = dict.fromkeys(
    (
        "check_estimators_partial_fit_n_features",
        "check_fit_score_takes_y",
        "check_n_features_in_after_fitting",
    ),
    "the check calls partial_fit, which bidirectional=True refuses",
)
OF_ROWS = {
    "check_sample_weight_equivalence_on_dense_data": "steps depend on the order of the rows, which "
    "the check changes"
}


def expected_failures(estimator):
    if isinstance(estimator, (RecursiveLeastSquares, SlidingWindow)):
        return {}
    if isinstance(estimator, LMS):
        return OF_ROWS
    if isinstance(
        estimator,
        (ReservoirFeatures, LiquidStateMachine, ESNSequenceClassifier, ESNSequenceRegressor),
    ):  # a row is a whole sequence: no failure at all
        return {}
    if getattr(estimator, "bidirectional", False):
        return WITH_WEIGHTS | IN_ONE_CALL
    if isinstance(estimator, ReservoirTransformer):
        return CONTINUING if estimator.initial_state == "last" else EXPECTED
    return WITH_WEIGHTS


AS_THEY_COME = [
    ESNRegressor(),
    ESNClassifier(),
    NVARRegressor(),
    ReservoirTransformer(),
    ReservoirFeatures(),
    LiquidStateMachine(),
    RecursiveLeastSquares(),
    LMS(),
    SlidingWindow(50),  # its number of rows has no default
]
SLOW_AS_THEY_COME = [  # smaller ones are among the other tests
    ESNSequenceClassifier(),
    ESNSequenceRegressor(),
    RNNRegressor(),
    RNNClassifier(),
]


@pytest.mark.fast_cases(50)
@pytest.mark.filterwarnings(
    "ignore:The units .* the bounds of:UserWarning",  # two checks have inputs around 100
    "ignore:The readout has .* columns:UserWarning",  # as many rows as columns, in some
)
@parametrize_with_checks(
    [
        *AS_THEY_COME,
        ReservoirTransformer(10, initial_state="zeros"),
        RNNRegressor(5, init="esn", max_iter=2),
        RNNClassifier(5, init="esn", max_iter=2),
        ESNRegressor(10, forgetting=0.99),
        ESNClassifier(10, bidirectional=True),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow_cases(120)
@pytest.mark.filterwarnings(
    "ignore:The units .* the bounds of:UserWarning",
    "ignore:The readout has .* columns:UserWarning",
    "ignore:Training kept its start",  # what the checks draw is noise
)
@parametrize_with_checks(SLOW_AS_THEY_COME, expected_failed_checks=expected_failures)
def test_scikit_learn_checks_on_slow_defaults(estimator, check):
    check(estimator)


def test_every_public_class_is_checked_as_it_comes():
    public = {getattr(reservoir, name) for name in reservoir.__all__}
    public |= {getattr(reservoir.readouts, name) for name in reservoir.readouts.__all__}
    classes = {
        each for each in public if isinstance(each, type) and issubclass(each, BaseEstimator)
    }
    checked = {type(each) for each in AS_THEY_COME + SLOW_AS_THEY_COME}
    # fitted to a series, or to a field
    assert classes - checked == {ESNForecaster, LocalForecaster, SeasonalNaive}


@pytest.mark.skipif(not (ROOT / "docs" / "conventions.md").exists(), reason="needs the checkout")
def test_the_page_lists_the_checks_that_fail():
    page = (ROOT / "docs" / "conventions.md").read_text(encoding="utf-8")
    section = page.partition("## What scikit-learn's checks do not pass, and why")[2]
    failing = set().union(*map(expected_failures, AS_THEY_COME + SLOW_AS_THEY_COME))
    assert set(re.findall(r"`(check_\w+)`", section)) == failing

"""The structure of one `fit`: few classes, few files, four named hooks."""

import importlib.util
import subprocess
import sys

import pytest
from sklearn.base import ClassifierMixin

import reservoir
from reservoir import (
    ESNClassifier,
    ESNForecaster,
    ESNRegressor,
    ESNSequenceClassifier,
    ESNSequenceRegressor,
    LiquidStateMachine,
    NVARRegressor,
    ReservoirFeatures,
    ReservoirTransformer,
    RNNClassifier,
    RNNRegressor,
)

# What a class defines of fit; the last, of whole sequences, fits a classifier's temperature.
HOOKS = {"_coding", "_check", "_new_model", "_learn_from_left_out"}
MOST_CLASSES = 4
# Files that a fit enters: of `estimators`, and of the whole package.
MOST_FILES = {
    ESNRegressor: (10, 49),
    ESNClassifier: (10, 46),
    NVARRegressor: (10, 31),
    ReservoirTransformer: (7, 36),
    RNNRegressor: (12, 57),
    RNNClassifier: (12, 64),
    ESNSequenceClassifier: (8, 44),
    ESNSequenceRegressor: (8, 38),
    ReservoirFeatures: (5, 28),
    LiquidStateMachine: (3, 12),
    ESNForecaster: (12, 58),
}
MOST_FILES_WITH_MONTHS = 59  # of the whole package, by a forecaster

TRACED = """
import os, sys
import numpy as np
import reservoir
home = os.path.dirname(reservoir.__file__)
def trace(name, options, shape, labels, months=False):
    estimator = getattr(reservoir, name)(**options)
    X = np.sin(np.arange(200.0)).reshape(shape)
    y = np.roll(X.reshape(len(X), -1)[:, 0], -1)
    if months:
        import pandas as pd
        X = pd.Series(X[:, 0], pd.date_range("2000", periods=len(X), freq="MS"))
    files, methods = set(), set()
    def enter(frame, event, arg):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(home):
            files.add(os.path.relpath(code.co_filename, home))
            of_self = code.co_varnames[:1] == ("self",) and frame.f_locals.get("self") is estimator
            methods.update({code.co_name} if of_self else ())
    sys.setprofile(enter)
    estimator.fit(X, y > 0 if labels else y)
    sys.setprofile(None)
    print(name + " with months" * months, "|", *sorted(files), "|", *sorted(methods))
"""


def case(cls):
    short = {"max_iter": 2, "n_networks": 1, "random_state": 0}
    options = {name: short[name] for name in short.keys() & set(cls._get_param_names())}
    shape = (20, 10, 1) if "sequences" in cls.__module__ else (200, 1)
    return cls.__name__, options, shape, issubclass(cls, ClassifierMixin)


@pytest.fixture(scope="module")
def traced():
    """Return files and methods that each fit enters, traced in one process of their own."""
    source = TRACED + "".join(f"trace{case(cls)}\n" for cls in MOST_FILES)
    if importlib.util.find_spec("pandas"):
        source += f"trace{(*case(ESNForecaster), True)}\n"
    run = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    parts = (line.split("|") for line in run.stdout.splitlines())
    return {name.strip(): (files.split(), methods.split()) for name, files, methods in parts}


@pytest.mark.slow
@pytest.mark.parametrize("cls", MOST_FILES)
def test_a_fit_enters_few_files_and_no_other_hooks(cls, traced):
    own = [base for base in cls.__mro__ if base.__module__.startswith("reservoir")]
    assert len(own) <= MOST_CLASSES, own
    files, methods = traced[cls.__name__]
    of_estimators = [file for file in files if file.startswith("estimators")]
    of_both = len(of_estimators), len(files)
    assert all(n <= most for n, most in zip(of_both, MOST_FILES[cls], strict=True)), files
    assert "fit" in methods
    overridden = {name for name in methods if sum(name in vars(base) for base in own) > 1}
    assert overridden - {"__sklearn_tags__"} <= HOOKS


@pytest.mark.slow
def test_a_forecaster_of_months_enters_no_more_files(traced):
    pytest.importorskip("pandas")
    assert len(traced["ESNForecaster with months"][0]) <= MOST_FILES_WITH_MONTHS


def test_the_estimators_are_those_of_the_package():
    assert {cls.__name__ for cls in MOST_FILES} <= set(reservoir.__all__)

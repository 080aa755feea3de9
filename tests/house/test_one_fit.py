"""One `fit` can be followed: few classes, few files, no hooks but the three that are named."""

import subprocess
import sys

import pytest
from sklearn.base import ClassifierMixin

import reservoir
from reservoir import (
    ESNClassifier,
    ESNRegressor,
    NVARRegressor,
    ReservoirTransformer,
    RNNClassifier,
    RNNRegressor,
)

HOOKS = {"_coding", "_check", "_new_model"}  # what a class of its own says of fit
MOST_CLASSES = 4
MOST_FILES = {
    ESNRegressor: 10,
    ESNClassifier: 10,
    NVARRegressor: 10,
    ReservoirTransformer: 7,
    RNNRegressor: 12,
    RNNClassifier: 12,
}

TRACED = """
import os, sys
import numpy as np
import reservoir
estimator = reservoir.{name}(**{options})
home = os.path.join(os.path.dirname(reservoir.__file__), "estimators")
X = np.sin(np.arange(400.0))[:, None]
files, methods = set(), set()
def enter(frame, event, arg):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(home):
        files.add(os.path.relpath(code.co_filename, home))
        of_self = code.co_varnames[:1] == ("self",) and frame.f_locals.get("self") is estimator
        methods.update({{code.co_name}} if of_self else ())
sys.setprofile(enter)
estimator.fit(X, np.roll(X[:, 0], -1){labels})
sys.setprofile(None)
print(*sorted(files), "|", *sorted(methods))
"""


@pytest.mark.parametrize("cls", MOST_FILES)
def test_a_fit_enters_few_files_and_no_other_hooks(cls):
    own = [base for base in cls.__mro__ if base.__module__.startswith("reservoir")]
    assert len(own) <= MOST_CLASSES, own
    options = {"max_iter": 2} if hasattr(cls, "max_iter") else {}
    labels = " > 0" if issubclass(cls, ClassifierMixin) else ""
    source = TRACED.format(name=cls.__name__, options=options, labels=labels)
    run = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    files, methods = (part.split() for part in run.stdout.split("|"))
    assert 3 < len(files) <= MOST_FILES[cls], files
    assert "fit" in methods
    overridden = {name for name in methods if sum(name in vars(base) for base in own) > 1}
    assert overridden - {"__sklearn_tags__"} <= HOOKS


def test_the_estimators_are_those_of_the_package():
    assert {cls.__name__ for cls in MOST_FILES} <= set(reservoir.__all__)

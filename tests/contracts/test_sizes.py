"""Sizes that parameters imply are compared with data and memory before anything is allocated."""

import inspect
import tracemalloc

import numpy as np
import pytest

from reservoir import (
    ESNClassifier,
    ESNForecaster,
    ESNRegressor,
    ESNSequenceClassifier,
    LiquidStateMachine,
    NVARRegressor,
    ReservoirFeatures,
    ReservoirTransformer,
    RNNClassifier,
    RNNRegressor,
    datasets,
)
from reservoir.building import build_reservoir
from reservoir.dynamics import Reservoir, run_closed_loop
from reservoir.metrics import kernel_rank, memory_capacity
from reservoir.readouts import SlidingWindow
from reservoir.stability import (
    consistency,
    echo_state_index,
    find_limit_cycle,
    sample_attractors,
    transient_length,
)
from reservoir.topologies import TOPOLOGIES

pytestmark = pytest.mark.one_engine

N = 10**13
X = np.sin(np.arange(300.0))[:, None]
WAVES, KINDS = np.random.default_rng(0).normal(size=(6, 20, 2)), [0, 0, 0, 1, 1, 1]
UNIT = Reservoir([[0.5]], [[1.0]], [0.0])
FITTED = ESNRegressor(10, random_state=0).fit(X[:-1], X[1:])
MONTHS = ESNForecaster(season=6, n_networks=1, random_state=0)


def raises(call, name):
    """Check that a call raises an error that names a parameter, and allocates next to nothing."""
    tracemalloc.start()
    try:
        with pytest.raises((MemoryError, ValueError), match=rf"{name}={N}"):
            call()
        assert tracemalloc.get_traced_memory()[1] < 2e6
    finally:
        tracemalloc.stop()


CALLS = {
    "n_lags": lambda: ESNRegressor(20, n_lags=N).fit(X, X),
    "n_lags of a chunk": lambda: ESNRegressor(20, n_lags=N).partial_fit(X, X),
    "n_lags of NVAR": lambda: NVARRegressor(N, degree=1).fit(X, X),
    "skip": lambda: ESNRegressor(20, n_lags=2, skip=N).fit(X, X),
    "skip of a chunk": lambda: ESNRegressor(20, n_lags=2, skip=N).partial_fit(X, X),
    "skip of NVAR": lambda: NVARRegressor(2, skip=N).fit(X, X),
    "skip of NVAR without washout": lambda: NVARRegressor(2, skip=N, washout=0).fit(X, X),
    "skip of a chunk of NVAR": lambda: NVARRegressor(2, skip=N).partial_fit(X, X),
    "degree": lambda: NVARRegressor(degree=N).fit(X, X),
    "n_units": lambda: ESNRegressor(N).fit(X, X),
    "n_units of a classifier": lambda: ESNClassifier(N).fit(X, X[:, 0] > 0),
    "n_units of a transformer": lambda: ReservoirTransformer(N).fit(X),
    "n_units of features": lambda: ReservoirFeatures(N).fit(WAVES),
    "n_units of sequences": lambda: ESNSequenceClassifier(N).fit(WAVES, KINDS),
    "n_units of a liquid": lambda: LiquidStateMachine(N).fit(WAVES),
    "n_units of a trained network": lambda: RNNRegressor(N).fit(X, X),
    "n_units of a reservoir": lambda: build_reservoir(N, 1),
    "n_features": lambda: build_reservoir(5, N),
    "n_symbols": lambda: RNNClassifier(5, n_symbols=N).fit(
        np.arange(50)[:, None] % 3, X[:50, 0] > 0
    ),
    "n_quantiles": lambda: ReservoirFeatures(5, n_quantiles=N, pool="quantiles").fit(WAVES),
    "n_rows": lambda: ESNRegressor(5, readout=SlidingWindow(N)).fit(X, X),
    "n_networks": lambda: ESNForecaster(n_networks=N).fit(X),
    "n_steps": lambda: FITTED.forecast(N),
    "n_steps of a loop": lambda: run_closed_loop(
        UNIT, (np.ones((1, 1)), np.zeros(1)), N, initial_output=[1.0]
    ),
    "n_initial_states": lambda: sample_attractors(UNIT, [[0.0]], n_initial_states=N),
    "max_multiple": lambda: sample_attractors(UNIT, [[0.0]], max_multiple=N, n_periods=N + 1),
    "multiple": lambda: find_limit_cycle(UNIT, [[0.0]], multiple=N),
    "n_streams": lambda: kernel_rank(UNIT, n_streams=N),
    "length": lambda: kernel_rank(UNIT, length=N),
    "n_train": lambda: memory_capacity(UNIT, n_train=N),
    "washout": lambda: memory_capacity(UNIT, washout=N),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_size_beyond_the_memory_is_named_before_it_is_allocated(name):
    raises(CALLS[name], name.split()[0])


@pytest.mark.parametrize("function", [echo_state_index, consistency, transient_length])
def test_initial_states_are_compared_with_the_memory(function):
    few = Reservoir(0.5 * np.eye(2), np.ones((2, 1)), np.zeros(2))
    tracemalloc.start()
    try:
        with pytest.raises(MemoryError, match=r"n_initial_states=10{12}"):
            function(few, X, n_initial_states=10**13 - 1 + (function is not echo_state_index))
        assert tracemalloc.get_traced_memory()[1] < 2e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("call", ["forecast", "simulate", "paths"])
def test_steps_of_series_are_compared_with_the_memory(call):
    model = MONTHS if hasattr(MONTHS, "kind_") else MONTHS.fit(np.arange(40.0) % 6 + X[:40, 0])
    if call == "paths":
        raises(lambda: model.simulate(2, N), "n_paths")
    else:
        raises(lambda: getattr(model, call)(N), "n_steps")


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_units_of_topologies_are_compared_with_the_memory(name):
    raises(lambda: TOPOLOGIES[name](N), "n_units")


def counts_of(function):
    """Return the parameters of a generator of data that are lengths or numbers of something."""
    parameters = inspect.signature(function).parameters
    names = [name for name in parameters if name.startswith("n_") or name in ("length", "washout")]
    return [name for name in names if not isinstance(parameters[name].default, float)]


GENERATORS = [
    (name, count)
    for name in datasets.__all__
    if inspect.isfunction(getattr(datasets, name))
    for count in counts_of(getattr(datasets, name))
    if count not in ("n_classes", "n_oscillators", "n_relevant")  # of at most a few
]


@pytest.mark.parametrize(("name", "count"), GENERATORS)
def test_lengths_of_generated_data_are_compared_with_the_memory(name, count):
    function = getattr(datasets, name)
    needed = {
        each: 30
        for each, about in inspect.signature(function).parameters.items()
        if about.default is inspect.Parameter.empty
    }
    raises(lambda: function(**{**needed, count: N}), count)


def test_the_parameter_that_is_large_is_the_one_to_lower():
    with pytest.raises(MemoryError) as told:
        ESNRegressor(20, n_lags=10**6).partial_fit(X, X)
    assert "Lower n_lags=1000000. " in str(told.value)
    assert "n_units" not in str(told.value)

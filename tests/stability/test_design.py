"""Certified reservoirs with long memory: `stability.design`, and the warning of bias="stable"."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from reservoir import ESNClassifier, ESNRegressor, ReservoirTransformer
from reservoir.activations import ACTIVATIONS
from reservoir.building import build_reservoir
from reservoir.datasets import narma
from reservoir.metrics import memory_capacity
from reservoir.metrics.memory_estimate import estimated_memory
from reservoir.stability import UnboundedActivationError, certify, design, drive_range, stable_bias
from reservoir.stability._drive_ranges import inputs_of_drive
from reservoir.topologies import delay_line

pytestmark = [pytest.mark.one_engine, pytest.mark.usefixtures("short_searches")]

WIDE = 1e3  # a drive for which every slope of tanh may be 1
RIGID = ("orthogonal", "ring")


def uniform(low, high):
    low, high = np.atleast_1d(low, high)
    return lambda n: np.random.default_rng(0).uniform(low, high, (n, len(low)))


def draws(seed):
    """Radii, biases and drives under which reservoirs remember much, little and nothing."""
    for topology, radius, scaling in (
        ("random_sparse", 0.9, 0.1),
        ("random_sparse", 0.6, 1.0),
        ("orthogonal", 0.99, 0.0),
        ("ring", 0.95, 0.1),
        ("random_sparse", 0.9, 8.0),
    ):
        yield {
            "topology": topology, "spectral_radius": radius, "bias_scaling": scaling,
            "input_scaling": 0.2, "random_state": seed,
        }  # fmt: skip


# --- the estimate of memory ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(1))
def test_the_estimate_is_the_memory_capacity(seed):
    for options in draws(seed):
        res = build_reservoir(40, 1, **options)
        u = np.random.default_rng(9).uniform(-1, 1, 8400)
        exact = memory_capacity(res, X=u, max_lag=80)
        assert estimated_memory(res, uniform(-1, 1)) == pytest.approx(exact, rel=0.07, abs=0.4)


def test_the_estimate_of_a_delay_line_is_its_length():
    line = np.eye(30, k=-1)
    for leak, expected in ((1.0, 29.0), (0.5, None)):
        res = build_reservoir(
            30, 1, topology=line, spectral_radius=None, input_weights=np.eye(30, 1),
            activation="identity", bias_scaling=0.0, leak_rate=leak,
        )  # fmt: skip
        found = estimated_memory(res, uniform(-1, 1))
        assert found == pytest.approx(expected, abs=0.3) if expected else 15 < found < 30


def test_several_inputs_share_the_units_and_outputs_fed_back_are_inputs():
    options = {"topology": "orthogonal", "spectral_radius": 0.99, "bias_scaling": 0.0}
    options |= {"input_scaling": 0.05, "random_state": 0}
    two = build_reservoir(40, 2, **options)
    fed = build_reservoir(40, 1, n_outputs=1, feedback_scaling=0.05, **options)
    for res in (two, fed):
        assert 36 < estimated_memory(res, uniform([-1, -1], [1, 1])) < 42
    assert estimated_memory(two, uniform([0.3, 0.3], [0.3, 0.3])) == 0.0  # nothing to remember


def test_the_range_of_inputs_is_found_in_the_bounds_of_the_drive():
    res = build_reservoir(20, 3, random_state=0, n_outputs=1)
    low, high = np.array([-1.0, 0.5, 0.0]), np.array([2.0, 0.75, 0.0])
    bounds = drive_range(res, low, high, feedback_low=-0.5, feedback_high=1.5)
    found = inputs_of_drive(res, *bounds)
    np.testing.assert_allclose(found[0], [*low, -0.5], atol=1e-9)
    np.testing.assert_allclose(found[1], [*high, 1.5], atol=1e-9)


# --- weights that need no bias ------------------------------------------------------------------


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("topology", RIGID)
@pytest.mark.parametrize("n_units", [1, 2, 30, 100, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("drive", [0.05, 1.0])
def test_rigid_weights_stay_as_they_are(topology, n_units, drive):
    for seed, leak, activation in ((0, 1.0, "tanh"), (1, 0.3, "tanh"), (2, 1.0, "logistic")):
        radius = 0.99 if activation == "tanh" else 3.96
        options = {"topology": topology, "spectral_radius": radius, "input_scaling": drive}
        options |= {"leak_rate": leak, "activation": activation, "random_state": seed}
        plain = build_reservoir(n_units, 1, **options)
        bounds = drive_range(plain, -1.0, 1.0)
        res = build_reservoir(n_units, 1, bias="stable", drive_bounds=bounds, **options)
        assert (res.W != plain.W).sum() == 0
        np.testing.assert_array_equal(res.bias, plain.bias)
        np.testing.assert_array_equal(res.W_in, plain.W_in)
        assert certify(res, *bounds).holds
        bias = stable_bias(res.W, *bounds, leak_rate=leak, activation=activation)
        assert not bias.any()


@pytest.mark.slow_cases(2)
@pytest.mark.parametrize("topology", RIGID)
@pytest.mark.parametrize("seed", range(5))
def test_a_thousand_rigid_units_stay_as_they_are(topology, seed):
    options = {"topology": topology, "spectral_radius": 0.99, "random_state": seed}
    plain = build_reservoir(1000, 1, **options)
    res = build_reservoir(1000, 1, bias="stable", drive_bounds=(-WIDE, WIDE), **options)
    np.testing.assert_array_equal(res.bias, plain.bias)
    assert not stable_bias(res.W, -WIDE, WIDE).any()


# --- designs ------------------------------------------------------------------------------------


def rebuilt(one, box, n_features=1):
    """Return what an alternative's parameters build."""
    options = dict(one.parameters)
    n_units = options.pop("n_units")
    bounds = None
    if isinstance(options["bias"], str) and options["bias"] == "stable":
        bounds = lambda made: drive_range(made, *box)  # noqa: E731
    return build_reservoir(n_units, n_features, drive_bounds=bounds, **options)


def same(one, other):
    return all(
        (getattr(one, name) != getattr(other, name)).sum() == 0 for name in ("W", "W_in", "bias")
    )


@pytest.mark.parametrize("n_features", [1, 2])
def test_delay_lines_are_designed_if_they_are_asked_for(n_features):
    box = (-1, 1)
    found = design(24, box, n_features=n_features, topologies=["delay_line"], input_scaling=0.2)
    assert found.certificate.holds
    assert found.certificate.steps_to(1e-6) < 40
    assert found.memory > 0.9 * (24 - n_features)
    for one in found.alternatives:
        assert (one.topology, one.spectral_radius) == ("delay_line", 0.0)
        assert same(rebuilt(one, box, n_features), one.reservoir)
    parameters = found.parameters
    given = [parameters[name] for name in ("spectral_radius", "input_weights", "leak_rate")]
    assert given == [None, "heads", 1.0]
    W = delay_line(24, weight=0.99, n_lines=n_features)
    np.testing.assert_array_equal(parameters["topology"].toarray(), W.toarray())


@pytest.mark.parametrize(
    "options, message",
    [
        ({"leak_rate": 0.5}, "leak_rate=0.5, but"),
        ({"leak_rate": np.full(10, 0.9)}, "leak_rate="),
        ({"input_weights": "normal"}, "input_weights='normal', but"),
        ({"input_weights": np.ones((10, 1))}, "input_weights="),
        ({"n_features": 11}, "n_features=11 exceeds n_units=10"),
    ],
)
def test_delay_lines_allow_no_other_leak_or_input_weights(options, message):
    with pytest.raises(ValueError, match=message):
        design(10, topologies=["ring", "delay_line"], **options)


@pytest.mark.slow
def test_alternatives_are_what_they_say():
    found = design(30, (-1, 1), input_scaling=0.3, random_state=1)
    assert found.certificate.holds
    held = [one for one in found.alternatives if one.certified]
    assert found.memory == max(one.memory for one in held) == found.alternatives[0].memory
    assert found.reservoir is found.alternatives[0].reservoir
    kinds = {(one.topology, one.bias) for one in held}
    assert kinds > {("ring", "none"), ("orthogonal", "drawn"), ("random_sparse", "searched")}
    assert {one.topology for one in found.alternatives if not one.certified} == {"random_sparse"}
    for one in found.alternatives:
        again = certify(one.reservoir, *drive_range(one.reservoir, -1, 1))
        assert again.holds == one.certified == one.certificate.holds
        assert one.memory == pytest.approx(estimated_memory(one.reservoir, uniform(-1, 1)))
        assert same(one.reservoir, rebuilt(one, (-1, 1)))
        assert one.mean_bias == np.abs(one.reservoir.bias).mean()
        assert (one.bias == "none") == (one.mean_bias == 0)
    # twice what a random network keeps without a proof
    assert found.memory > 1.5 * max(one.memory for one in found.alternatives if not one.certified)
    lines = repr(found).splitlines()
    assert len(lines) == 1 + len(found.alternatives)
    assert lines[0].split()[:2] == ["topology", "radius"]
    assert f"{found.memory:.1f}" in lines[1]
    assert repr(found.alternatives[0]).splitlines()[1].split() == lines[1].split()


@pytest.mark.fast_cases(1)
@pytest.mark.filterwarnings(
    "ignore:The reservoir with the longest"
)  # two units under a drive of 30
@pytest.mark.parametrize("n_units", [1, 2, 25])
@pytest.mark.parametrize("leak", [0.01, 0.3, 1.0])
def test_a_design_is_certified_for_every_drive(n_units, leak):
    for drive, activation in ((0.05, "tanh"), (30.0, "tanh"), (1.0, "logistic")):
        found = design(
            n_units, (-0.5, 1.5), topologies=RIGID, input_scaling=drive, leak_rate=leak,
            activation=activation, bias_scaling=0.2, random_state=0,
        )  # fmt: skip
        assert found.certificate.holds
        assert found.certificate.covers_inputs([[-0.5], [1.5]])
        assert not found.certificate.covers_inputs([[1.6]])
        assert 0 <= found.memory <= n_units + 0.5
        assert all(one.certified and one.bias == "drawn" for one in found.alternatives)
        assert len(found.alternatives) == 2


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("n_units", [1, 3])
def test_small_networks_of_all_kinds(n_units):
    found = design(n_units, random_state=0)
    assert found.certificate.holds
    kinds = {"orthogonal", "ring", "cycle_with_jumps", "random_sparse"}
    assert {one.topology for one in found.alternatives} == kinds


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_an_estimator_gets_the_same_reservoir(dtype):
    X, y = narma(400, random_state=0)
    X = np.hstack([X, X**2])
    options = {"input_scaling": [0.3, 0.1], "leak_rate": 0.5, "dtype": dtype, "random_state": 3}
    found = design(15, X, topologies=None if dtype == "float64" else RIGID, **options)
    width = np.ptp(X, axis=0)
    expected = np.array([X.min(axis=0) - 0.1 * width, X.max(axis=0) + 0.1 * width])
    np.testing.assert_allclose(found.certificate.input_range, expected)
    for one in found.alternatives:
        parameters = one.parameters
        model = ESNRegressor(**parameters).fit(X, y)
        assert same(model.reservoir_, one.reservoir)
        assert model.reservoir_.dtype == one.reservoir.dtype == dtype
        if one.bias != "searched" and one.certified:
            assert model.certificate_.rate == one.certificate.rate
            np.testing.assert_allclose(model.certificate_.input_range, expected, rtol=1e-6)
    for kind in (ESNClassifier, ReservoirTransformer):
        model = kind(**found.parameters).fit(X, y > 0.4)
        assert same(model.reservoir_, found.reservoir)
    listed = design(15, [X[:100], X[100:]], topologies=["orthogonal"], **options)
    np.testing.assert_array_equal(listed.certificate.input_range, found.certificate.input_range)


def test_a_design_without_a_seed_can_be_built_again():
    for seed in (None, np.random.default_rng(0), np.random.RandomState(0)):
        found = design(10, topologies=["ring"], random_state=seed)
        assert same(found.reservoir, rebuilt(found, (-1, 1)))


@pytest.mark.slow
def test_a_radius_above_one_is_tried_with_a_bias_and_below_without():
    found = design(3, (-0.2, 0.2), topologies="ring", spectral_radius=1.3, random_state=0)
    by_bias = {(one.bias, one.certified): one.spectral_radius for one in found.alternatives}
    assert by_bias == {
        ("none", True): 0.99, ("drawn", True): 0.99, ("searched", True): 1.3,
        ("none", False): 1.3, ("drawn", False): 1.3,
    }  # fmt: skip


def test_units_without_bounds_are_certified_by_their_weights_alone():
    found = design(12, activation="relu", random_state=0)
    assert found.certificate.holds
    assert all(one.certified and one.bias != "searched" for one in found.alternatives)
    radii = {one.topology: one.spectral_radius for one in found.alternatives}
    assert radii["orthogonal"] == radii["ring"] == 0.99 > radii["random_sparse"]
    with pytest.raises(UnboundedActivationError, match="is unbounded"):
        build_reservoir(
            12,
            1,
            spectral_radius=1.5,
            activation="relu",
            bias="stable",
            drive_bounds=(-1, 1),
            random_state=0,
        )


BARE = replace(ACTIVATIONS["tanh"], name="bare", enclosure=None)


@pytest.mark.parametrize(
    "args, options, kind, message",
    [
        ((10,), {"activation": BARE}, UnboundedActivationError, "no enclosure"),
        ((0,), {}, ValueError, "n_units=0"),
        ((10, (1, -1)), {}, ValueError, "exceeds"),
        ((10, (1, 2, 3)), {}, ValueError, "pair"),
        ((10, (0, np.inf)), {}, ValueError, "finite"),
        ((10, np.array([[np.nan]])), {}, ValueError, "NaN"),
        ((10, np.zeros((5, 2))), {"n_features": 3}, ValueError, "n_features=3"),
        ((10,), {"topologies": ["rong"]}, ValueError, "'rong' is not known"),
        ((10,), {"topologies": []}, ValueError, "topologies is empty"),
        ((10,), {"bias_scaling": []}, ValueError, "bias_scaling is empty"),
        ((10,), {"bias_scaling": -1}, ValueError, "bias_scaling=-1"),
        ((10,), {"spectral_radius": 0}, ValueError, "spectral_radius=0"),
        ((10,), {"dtype": "int8"}, ValueError, "dtype='int8'"),
    ],
)
def test_bad_input_of_design(args, options, kind, message):
    with pytest.raises(kind, match=message):
        design(*args, **options)


# --- what bias="stable" says --------------------------------------------------------------------


@pytest.mark.slow
def test_a_bias_that_costs_memory_is_warned_of():
    X, y = narma(300, random_state=0)
    X = 2 * X - 0.5
    options = {"bias": "stable", "input_scaling": 0.2, "random_state": 0}
    with pytest.warns(UserWarning, match="about .* of .* steps remain") as caught:
        esn = ESNRegressor(50, leak_rate=1.0, **options).fit(X, y)
    assert caught[0].filename == __file__
    assert esn.certificate_.holds
    text = str(caught[0].message)
    assert "reservoir.stability.design" in text
    words = text.replace("(", " ").replace(")", " ").split()
    kept, before = float(words[8]), float(words[10])
    draw = uniform(*esn.certificate_.input_range)
    drawn = build_reservoir(50, 1, input_scaling=0.2, random_state=0)
    assert round(estimated_memory(esn.reservoir_, draw)) == kept < 0.8 * before
    assert round(estimated_memory(drawn, draw)) == before
    # what is recommended does without a warning, and keeps what was said
    radius = next(word for word in words if word.startswith("spectral_radius=0.7"))
    for changed in (
        {"topology": "orthogonal", "spectral_radius": 0.99},
        {"topology": "ring", "spectral_radius": 0.99},
        {"spectral_radius": float(radius.partition("=")[2])},
    ):
        other = ESNRegressor(50, leak_rate=1.0, **options, **changed).fit(X, y)
        assert np.abs(other.reservoir_.bias).max() <= 0.1
        assert estimated_memory(other.reservoir_, draw) > kept


def test_a_bias_that_brings_memory_is_not_warned_of():
    options = {"spectral_radius": 1.8, "input_scaling": 0.2, "bias_scaling": 0.0}
    options |= {"random_state": 0}
    drawn = build_reservoir(16, 1, **options)
    bounds = drive_range(drawn, -1, 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        res = build_reservoir(16, 1, bias="stable", drive_bounds=bounds, **options)
    assert caught == []
    assert np.abs(res.bias).mean() > 1
    assert estimated_memory(res, uniform(-1, 1)) > estimated_memory(drawn, uniform(-1, 1))


def test_inputs_that_saturate_every_unit_are_warned_of_by_design_and_by_fit():
    X = 1000 + np.random.default_rng(0).standard_normal((300, 1))
    with pytest.warns(UserWarning, match="Scale the inputs"):
        found = design(30, X, topologies="orthogonal", random_state=0)
    with pytest.warns(UserWarning, match="are stuck .* driven by the inputs"):
        ESNRegressor(**found.parameters).fit(X, X[:, 0])
    X[3] = np.nan
    with pytest.raises(ValueError, match="Fill such values"):
        design(30, X)

"""Certified biases and scalings, bias="stable" of estimators, and measured washouts."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from reservoir import ESNClassifier, ESNRegressor, ReservoirTransformer, load, save
from reservoir.building import build_reservoir
from reservoir.datasets import narma
from reservoir.dynamics import Reservoir, run_many
from reservoir.metrics import memory_capacity
from reservoir.scaling import scale_to_norm
from reservoir.stability import (
    _certified_values,
    certify,
    critical_bias,
    drive_range,
    echo_state_conditions,
    largest_certified,
    stable_bias,
    transient_length,
)
from reservoir.topologies import delay_line, forward_connection, random_sparse

pytestmark = [pytest.mark.one_engine, pytest.mark.usefixtures("short_searches")]

# --- designed biases ----------------------------------------------------------------------------


def weights(seed, n=40, radius=1.3):
    res = build_reservoir(n, 1, spectral_radius=radius, input_scaling=0.2, random_state=seed)
    return replace(res, bias=np.zeros(n)), *drive_range(res, -1.0, 1.0)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("objective", ["slope", "magnitude"])
@pytest.mark.parametrize("method", ["auto", "max_norm", "two_norm", "series", "thorough"])
@pytest.mark.parametrize("seed", range(2))
def test_designed_biases_are_certified_by_the_method_asked_for(objective, method, seed):
    res, low, high = weights(seed, n=10)
    bias = stable_bias(
        res.W, low, high, objective=objective, method=method, random_state=seed, leak_rate=0.5
    )
    assert not certify(replace(res, leak_rate=0.5), low, high).holds
    found = certify(replace(res, bias=bias, leak_rate=0.5), low, high, method=method)
    assert found.holds
    assert found.rate < 0.995  # some margin, not a bare one
    again = stable_bias(
        res.W, low, high, objective=objective, method=method, random_state=seed, leak_rate=0.5
    )
    assert np.array_equal(bias, again)


def mean_slope(res):
    x = np.zeros(res.n_units)
    for _ in range(500):
        x = np.tanh(res.W @ x + res.bias)
    return np.mean(1 - x**2)


@pytest.mark.slow_cases(2)
@pytest.mark.parametrize("seed", range(4))
def test_each_objective_is_best_in_its_own_criterion(seed, monkeypatch):
    monkeypatch.setattr(_certified_values, "_STEPS", 60)
    res, low, high = weights(seed)
    steep = stable_bias(res.W, low, high, random_state=seed)
    small = stable_bias(res.W, low, high, objective="magnitude", random_state=seed)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], res.n_units)
    ray = signs * np.asarray(abs(res.W).sum(axis=1)).ravel()
    factor = next(
        t for t in np.arange(0.3, 3, 0.02) if certify(replace(res, bias=t * ray), low, high).holds
    )
    assert np.mean(np.abs(small)) < 0.8 * np.mean(np.abs(factor * ray))
    assert np.mean(np.abs(small)) < np.mean(np.abs(steep))
    assert mean_slope(replace(res, bias=steep)) > 1.3 * mean_slope(replace(res, bias=factor * ray))
    assert mean_slope(replace(res, bias=steep)) > mean_slope(replace(res, bias=small))


def test_one_unit_needs_the_critical_bias():
    bias = stable_bias([[3.0]], -0.1, 0.3, objective="magnitude", method="max_norm", random_state=0)
    assert abs(bias[0]) < critical_bias(3.0) + 0.4
    assert certify(Reservoir([[3.0]], [[1.0]], bias), -0.1, 0.3).holds
    assert not certify(Reservoir([[3.0]], [[1.0]], 0.9 * bias), -0.1, 0.3).holds


WIDE = 1e3  # a drive for which every slope of tanh may be 1


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_orthogonal_weights_keep_the_bias_they_have_and_their_memory(seed, dtype):
    options = {"topology": "orthogonal", "spectral_radius": 0.99, "input_scaling": 0.2}
    options |= {"random_state": seed, "dtype": dtype}
    res = build_reservoir(100, 1, bias="stable", drive_bounds=(-WIDE, WIDE), **options)
    plain = build_reservoir(100, 1, **options)
    np.testing.assert_array_equal(res.bias, plain.bias)
    found = certify(res, -WIDE, WIDE)
    assert found.method == "two_norm"
    assert (found.weights == 1).all()
    assert 0.99 <= found.rate < 0.9901
    assert (stable_bias(res.W, -WIDE, WIDE) == 0).all()
    assert (stable_bias(res.W, -WIDE, WIDE, leak_rate=0.4, method="two_norm") == 0).all()
    assert not certify(res, -WIDE, WIDE, method="max_norm").holds
    assert np.abs(stable_bias(res.W, -WIDE, WIDE, method="max_norm")).mean() > 3  # what was put in
    if dtype == "float64":
        assert memory_capacity(res, random_state=seed) > 50  # with that bias, 3 to 4


@pytest.mark.slow
def test_self_connections_along_a_line_are_certified_by_their_radius():
    # powers of W grow to 1e100 before they fade: no power iteration, nor its sum, finds weights
    for n in (30, 60, 100):
        W = 0.99 * np.eye(n) + 2.0 * np.eye(n, k=-1)
        for stored in (W, sp.csr_array(W)):
            assert echo_state_conditions(stored).sufficient
            found = certify(Reservoir(stored, np.ones((n, 1)), np.zeros(n)), -WIDE, WIDE)
            assert found.holds
            assert (np.abs(W) @ found.weights <= found.rate * found.weights * (1 + 1e-12)).all()
        assert not certify(Reservoir(1.02 * W, np.ones((n, 1)), np.zeros(n)), -WIDE, WIDE).holds


@pytest.mark.slow
@pytest.mark.parametrize("line", [delay_line, forward_connection])
def test_conditions_raise_no_warning_where_the_scaling_runs_away(line):
    for n in range(3, 12):  # nilpotent: the norm tends to 0 as P grows along the line
        for value in (0.9, 0.99):
            found = echo_state_conditions(scale_to_norm(line(n), value))
            assert found.sufficient
            assert found.diagonal_schur < 1


def test_no_bias_where_none_is_needed():
    W = 0.4 * np.array([[0.5, 1.0], [-1.0, 0.5]])
    for objective in ("slope", "magnitude"):
        assert (stable_bias(W, -1.0, 1.0, objective=objective) == 0).all()


def test_an_offset_of_the_drive_does_what_a_bias_does():
    res, low, high = weights(0)
    bias = stable_bias(res.W, low, high, objective="magnitude", random_state=0)
    shifted = stable_bias(res.W, low + bias, high + bias, objective="magnitude", random_state=0)
    assert np.mean(np.abs(shifted)) < 0.5 * np.mean(np.abs(bias))
    assert certify(replace(res, bias=shifted), low + bias, high + bias).holds


def test_the_margin_widens_the_drive():
    res, low, high = weights(1, n=10)
    bias = stable_bias(res.W, low, high, margin=0.25, random_state=0)
    assert certify(replace(res, bias=bias), 1.5 * low, 1.5 * high).holds
    bare = stable_bias(res.W, low, high, random_state=0)
    assert not certify(replace(res, bias=bare), 1.5 * low, 1.5 * high, method="max_norm").holds


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-3, 30.0, 1e6])
def test_drives_and_weights_of_any_size_find_a_bias(scale):
    res, low, high = weights(2, n=15)
    for W, drive in ((res.W, scale), (res.W * max(scale, 1.0), 1.0)):
        bias = stable_bias(W, drive * low, drive * high, random_state=0)
        assert certify(replace(res, W=W, bias=bias), drive * low, drive * high).holds


@pytest.mark.slow_cases(1)
@pytest.mark.parametrize("seed", range(3))
def test_a_certified_reservoir_of_radius_15_remembers_more_than_one_without_bias(seed):
    res = build_reservoir(100, 1, spectral_radius=1.5, input_scaling=0.2, random_state=seed)
    low, high = drive_range(res, -1.0, 1.0)
    u = np.random.default_rng(0).uniform(-1, 1, 9000)
    bias = stable_bias(res.W, low, high, random_state=0)
    unbiased = memory_capacity(replace(res, bias=np.zeros(100)), X=u)
    assert memory_capacity(replace(res, bias=bias), X=u) > 1.2 * unbiased


@pytest.mark.parametrize(
    "args, options, kind, message",
    [
        ((np.ones((2, 3)), 0, 1), {}, ValueError, "square"),
        ((np.eye(2), 1, 0), {}, ValueError, "exceeds"),
        ((np.eye(2), np.nan, 0), {}, ValueError, "NaN"),
        ((np.eye(2), 0, 1), {"objective": "size"}, ValueError, "objective='size' is not known"),
        ((np.eye(2), 0, 1), {"method": "norm"}, ValueError, "method='norm' is not known"),
        ((np.eye(2), 0, 1), {"margin": -0.1}, ValueError, "margin=-0.1"),
        ((np.eye(2), 0, 1), {"leak_rate": 2.0}, ValueError, "leak_rate=2"),
        ((1e200 * np.eye(2), 0, 1), {}, ValueError, "Scale W"),
    ],
)
def test_bad_input_of_stable_bias(args, options, kind, message):
    with pytest.raises(kind, match=message):
        stable_bias(*args, **options)


# --- the largest certified value ----------------------------------------------------------------


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("method", ["max_norm", "auto"])
def test_the_largest_certified_radius(method):
    res, low, high = weights(0, n=20)
    res = replace(res, bias=stable_bias(res.W, low, high, method="max_norm", random_state=0))
    value, certificate = largest_certified(res, low, high, method=method)
    assert certificate.holds
    assert value >= 1.3
    at = replace(res, W=res.W * (value / 1.3))
    assert certify(at, low, high, method=method).holds
    assert not certify(replace(res, W=at.W * 1.01), low, high, method=method).holds


@pytest.mark.slow
def test_the_largest_certified_input_scaling():
    res, low, high = weights(0)
    res = replace(res, bias=stable_bias(res.W, low, high, method="max_norm", random_state=0))
    value, certificate = largest_certified(res, low, high, parameter="input_scaling")
    assert value >= 1.0
    assert np.allclose(certificate.drive_max, value * high)
    assert not certify(res, 1.01 * value * low, 1.01 * value * high).holds


@pytest.mark.slow
def test_largest_certified_of_one_unit_and_at_the_ends():
    for leak in (1.0, 0.2):
        unit = Reservoir([[1.0]], [[1.0]], [2.5], leak_rate=leak)
        value, _ = largest_certified(unit, -0.5, 0.5, tol=1e-5)
        assert critical_bias(value) == pytest.approx(2.0, rel=1e-3)
    contraction = Reservoir([[0.5]], [[1.0]], [0.0])
    everything = largest_certified(contraction, -1, 1, parameter="input_scaling")
    assert everything.value == np.inf
    assert everything.certificate.holds
    unstable = Reservoir([[2.0]], [[1.0]], [0.0])
    nothing = largest_certified(unstable, -1, 1, parameter="input_scaling")
    assert nothing.value == 0.0
    assert not nothing.certificate.holds
    with pytest.raises(ValueError, match="spectral radius of W is 0"):
        largest_certified(Reservoir(np.eye(3, k=1), np.eye(3), np.zeros(3)), -1, 1)
    with pytest.raises(ValueError, match="tol=1e-16"):
        largest_certified(unstable, -1, 1, tol=1e-16)
    with pytest.raises(ValueError, match="parameter='bias' is not known"):
        largest_certified(unstable, -1, 1, parameter="bias")


# --- the recipe and the estimators --------------------------------------------------------------


costly = pytest.mark.filterwarnings('ignore:bias="stable" found a bias that costs memory')


def test_build_reservoir_makes_stable_biases():
    options = {"spectral_radius": 1.4, "bias": "stable", "random_state": 3}
    res = build_reservoir(14, 2, drive_bounds=(-0.3, 0.3), **options)
    assert certify(res, -0.3, 0.3).holds
    with pytest.warns(UserWarning, match="a bias that costs memory"):
        by_inputs = build_reservoir(
            14, 2, drive_bounds=lambda made: drive_range(made, -1.0, 1.0), **options
        )
    assert certify(by_inputs, *drive_range(by_inputs, -1.0, 1.0)).holds
    assert (res.W != by_inputs.W).nnz == 0
    # the uniform bias stays where it is certified
    tame = build_reservoir(40, 2, spectral_radius=0.2, drive_bounds=(-1, 1), bias="stable",
                           random_state=3)  # fmt: skip
    uniform = build_reservoir(40, 2, spectral_radius=0.2, random_state=3)
    assert np.array_equal(tame.bias, uniform.bias)
    assert np.array_equal(tame.bias != 0, np.ones(40, dtype=bool))


@pytest.mark.slow
@costly
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("activation", ["tanh", "logistic"])
def test_stable_estimators_forget_their_start(dtype, activation):
    X, y = narma(600, random_state=0)
    radius = 1.4 if activation == "tanh" else 5.6
    esn = ESNRegressor(
        60, bias="stable", spectral_radius=radius, activation=activation, dtype=dtype,
        leak_rate=np.linspace(0.3, 1, 60), random_state=0,
    ).fit(X, y)  # fmt: skip
    assert esn.certificate_.holds
    assert esn.certificate_.rate < 1
    width = np.ptp(X)
    assert esn.certificate_.input_range == pytest.approx(
        np.array([[X.min() - 0.1 * width], [X.max() + 0.1 * width]]), rel=1e-6
    )
    assert esn.certificate_.output_range is None
    rng = np.random.default_rng(0)
    extremes = rng.choice(esn.certificate_.input_range[:, 0], (300, 1))
    starts = rng.uniform(-1, 1, (5, 60))
    ends = [H[-1] for H in run_many(esn.reservoir_, [extremes] * 5, initial_states=starts)]
    assert np.ptp(ends, axis=0).max() < 1e-5
    assert clone(esn).get_params()["bias"] == "stable"
    assert np.array_equal(esn.predict(X), clone(esn).fit(X, y).predict(X))


@costly
@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cls", [ESNRegressor, ESNClassifier, ReservoirTransformer])
def test_every_estimator_takes_the_stable_bias(cls, tmp_path):
    X, y = narma(200, random_state=0)
    model = cls(8, bias="stable", spectral_radius=1.3, random_state=0).fit(X, y > 0.5)
    assert model.certificate_.holds
    save(model, tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert again.certificate_.rate == model.certificate_.rate
    assert np.array_equal(again.certificate_.box, model.certificate_.box)
    model.set_params(bias="uniform").fit(X, y > 0.5)
    assert not hasattr(model, "certificate_")


def test_the_certificate_covers_the_teachers_outputs():
    X, y = narma(500, random_state=0)
    options = {"topology": "orthogonal", "bias": "stable", "random_state": 0}
    esn = ESNRegressor(40, feedback=True, spectral_radius=0.99, **options)
    esn.fit(X, y)
    assert esn.certificate_.holds
    low, high = esn.certificate_.output_range[:, 0]
    assert low < y.min() < y.max() < high
    res = esn.reservoir_
    drives = X[1:] @ res.W_in.T + y[:-1, None] @ res.W_fb.T
    assert esn.certificate_.covers(drives)


@pytest.mark.slow
@costly
def test_stable_biases_in_a_search_and_in_chunks():
    X, y = narma(600, random_state=0)
    esn = ESNRegressor(15, bias="stable", random_state=0)
    grid = {"spectral_radius": [0.9, 1.3]}
    search = GridSearchCV(esn, grid, cv=TimeSeriesSplit(2)).fit(X, y)
    assert search.best_estimator_.certificate_.holds
    chunks = clone(esn).partial_fit(X[:300], y[:300]).partial_fit(X[300:], y[300:])
    first = clone(esn).fit(X[:300], y[:300])
    assert np.array_equal(chunks.certificate_.input_range, first.certificate_.input_range)
    with pytest.warns(
        UserWarning, match="leaves that range: certificate_ does not cover all"
    ) as caught:
        chunks.partial_fit(10 * X[:50], y[:50])
    assert caught[0].filename == __file__
    sequences = [X[:300], 2 * X[300:]]
    both = clone(esn).fit(sequences, [y[:300], y[300:]])
    assert both.certificate_.input_range[1, 0] > 2 * X[300:].max()


@pytest.mark.slow
def test_a_failed_fit_leaves_the_certificate_alone():
    X, y = narma(300, random_state=0)
    esn = ESNRegressor(30, leak_rate=1.0, bias="stable", spectral_radius=1.2, random_state=0)
    before = esn.fit(X, y).certificate_
    with pytest.raises(ValueError, match="unbounded"):
        esn.set_params(activation="relu").fit(X, y)
    assert esn.certificate_ is before


# --- the measured washout -----------------------------------------------------------------------


def test_the_measured_washout_is_the_transients_length():
    X, y = narma(1500, random_state=0)
    esn = ESNRegressor(50, washout="measured", leak_rate=0.5, random_state=0).fit(X, y)
    steps = transient_length(esn.reservoir_, X, random_state=0)
    assert esn.washout_.tolist() == [steps]
    assert 5 < steps < 500
    assert np.allclose(esn.coef_, clone(esn).set_params(washout=steps).fit(X, y).coef_)
    listed = clone(esn).fit([X[:700], X[700:]], [y[:700], y[700:]])
    assert listed.washout_.tolist() == [
        transient_length(esn.reservoir_, part, random_state=0) for part in (X[:700], X[700:])
    ]
    chunks = clone(esn).partial_fit(X[:700], y[:700]).partial_fit(X[700:], y[700:])
    assert chunks.washout_.tolist() == [listed.washout_[0]]


def test_the_measured_washout_under_teacher_forcing_and_where_there_is_none():
    X, y = narma(800, random_state=0)
    esn = ESNRegressor(50, washout="measured", feedback=True, random_state=0).fit(X, y)
    F = np.vstack([[0.0], y[:-1, None]])
    expected = transient_length(esn.reservoir_, X, feedback=F, random_state=0)
    assert esn.washout_.tolist() == [expected]
    wild = ESNRegressor(50, washout="measured", spectral_radius=3.0, random_state=0)
    with pytest.raises(
        ValueError, match=r'washout="measured" failed in sequence 0 \(n_samples=800\)'
    ):
        wild.fit(X, y)


@pytest.mark.slow
def test_sparse_formats_and_norm_scaling_are_taken():
    W = scale_to_norm(random_sparse(20, in_degree=4, random_state=0), 3.78)
    for form in (W, sp.coo_array(W), sp.csc_matrix(W), W.toarray(), W.toarray().tolist()):
        bias = stable_bias(form, -0.1, 0.1, random_state=0)
        assert certify(Reservoir(W, np.ones((20, 1)), bias), -0.1, 0.1).holds

"""`Certificate.steps_to`: a proved number of steps until the initial state is forgotten."""

import pickle
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import reservoir
from helpers.certificate_fuzz import differences, fuzz_steps
from reservoir import ESNRegressor
from reservoir.building import build_reservoir
from reservoir.dynamics import Reservoir
from reservoir.stability import certify, certify_cycle, certify_loop, drive_range, stable_bias
from reservoir.stability.proofs import _certificate, _forgetting_time

pytestmark = [pytest.mark.one_engine, pytest.mark.usefixtures("short_searches")]


def needed(res, distance, drives=None, seed=0):
    """Return after how many steps starts from all corners are within a distance, by simulation."""
    rng = np.random.default_rng(seed)
    zeros = np.zeros((1, res.n_units))
    for t, apart in enumerate(differences(rng, res, drives or (lambda t, X: zeros))):
        if apart <= distance:
            return t


def by_rate(certificate, distance):
    return np.log(distance / 2) / np.log(certificate.rate)


def check_fuzz(n_networks, seed, longest):
    messages, excess = fuzz_steps(n_networks, seed, longest)
    assert not messages
    pooled = {">= 0": [], "any W": []}
    for name, ratios in excess.items():
        pooled["any W" if "any W" in name else ">= 0"] += ratios
    for ratios in pooled.values():
        assert min(ratios) >= 1
    assert np.median(pooled[">= 0"]) < 1.5
    assert np.median(pooled["any W"]) < 3
    return excess


@pytest.mark.slow
@pytest.mark.parametrize(
    "n_networks, seed, longest",
    [(100, 0, 300), pytest.param(500, 1, 1000, marks=pytest.mark.sweep)],
)
def test_no_start_takes_longer_whatever_the_inputs(n_networks, seed, longest):
    found = check_fuzz(n_networks, seed, longest)
    assert len(found) >= 6  # methods, with and without negative weights


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("leak, seen", [(1.0, 84), (0.3, 307), (0.05, 1871)])
def test_one_unit_at_its_fold_needs_as_many_steps_as_are_proved(leak, seen):
    bias = stable_bias([[3.78]], 0.0, 0.0, leak_rate=leak, margin=0.0, random_state=0)
    res = Reservoir([[3.78]], [[1.0]], bias, leak_rate=leak)
    found = certify(res, 0.0, 0.0)
    steps = found.steps_to(1e-6)
    assert steps == needed(res, 1e-6) == seen  # to the step: the ends of the box are trajectories
    assert steps > 6 * by_rate(found, 1e-6)


@pytest.mark.parametrize("leak", [1.0, 0.3])
def test_the_bound_is_sharp_for_nonnegative_weights_and_one_constant_input(leak):
    rng = np.random.default_rng(0)
    for n in (2, 5, 20):
        W = rng.random((n, n))
        W *= 3.78 / W.sum(axis=1, keepdims=True)
        bias = -1.97 - 0.1 * rng.random(n)  # for one unit of 3.78 the fold is at 1.959
        res = Reservoir(W, np.zeros((n, 1)), bias, leak_rate=leak)
        found = certify(res, 0.0, 0.0)
        for distance in (1e-2, 1e-6):
            assert 0 <= found.steps_to(distance) - needed(res, distance) <= 1


def test_small_leak_rates_take_no_more_work_and_little_is_lost():
    # steps are taken together, as many as a leak rate of .04 needs one for
    res = Reservoir([[3.78]], [[1.0]], [-2.0], leak_rate=1e-4)
    found = certify(res, 0.0, 0.0)
    rough = found.steps_to(1e-3)
    fine = certify(replace(res, leak_rate=0.01), 0.0, 0.0).steps_to(1e-3)
    assert 100 * fine * 0.99 < rough < 100 * fine * 1.06


@pytest.mark.parametrize("topology", ["orthogonal", "ring"])
def test_without_a_box_the_norm_counts_from_the_start(topology):
    res = build_reservoir(60, 1, topology=topology, spectral_radius=0.99, random_state=0)
    found = certify(res, -10.0, 10.0)
    # from 2 in every unit, that is 2 sqrt(n) in the Euclidean norm
    most = by_rate(found, 1e-6) + np.log(np.sqrt(60)) / -np.log(found.rate)
    assert by_rate(found, 1e-6) - 1 < found.steps_to(1e-6) < most + 2


@pytest.mark.slow_cases(1)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_few_norms_equal_one_norm_per_step(seed, monkeypatch):
    rng = np.random.default_rng(seed)  # nonnegative weights: differences shrink as norms say
    W = rng.random((4, 4))
    W *= 0.7 / np.abs(np.linalg.eigvals(W)).max()
    res = Reservoir(W, np.eye(4), 0.2 * rng.random(4), leak_rate=10 ** rng.uniform(-1.6, -0.8, 4))
    found = certify(res, 0.0, 0.0, method="two_norm")
    counts = Counter()

    def counted(owner, name):
        original = getattr(owner, name)

        def call(*args):
            counts[name] += 1
            return original(*args)

        monkeypatch.setattr(owner, name, call)

    counted(_forgetting_time, "two_norm_rate")
    counted(_forgetting_time.Norm, "steps_to")
    counted(_forgetting_time.Approach, "advance")
    steps = found.steps_to([1e-2, 1e-6])
    # each step asks the latest norms alone, not all that were found on the way
    assert counts["two_norm_rate"] <= 6
    assert counts["steps_to"] <= 2 * (counts["advance"] + 2)

    class Eager(_forgetting_time.Forgetting):
        def _seek_norms(self):
            super()._seek_norms()
            self._seek_of_matrices()

    monkeypatch.setattr(_certificate, "Forgetting", Eager)
    assert (steps <= found.steps_to([1e-2, 1e-6])).all()
    assert counts["two_norm_rate"] > 100


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("leak", [1.0, 0.4, "unequal"])
@pytest.mark.parametrize("method", ["two_norm", "lyapunov", "series"])
def test_where_moduli_do_not_contract_a_norm_does(method, leak):
    for seed in range(2):
        rates = np.random.default_rng(seed).uniform(0.3, 1, 40) if leak == "unequal" else leak
        res = build_reservoir(
            40, 1, spectral_radius=0.5, in_degree=10, input_scaling=0.2, random_state=seed
        )
        res = replace(res, leak_rate=rates)
        low, high = drive_range(res, -1.0, 1.0)
        assert not certify(res, low, high, method="max_norm")
        found = certify(res, low, high, method=method)
        assert found.method == method
        steps = found.steps_to(1e-6)
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], (3000, 4, 1))
        seen = needed(res, 1e-6, lambda t, X: signs[t] @ res.W_in.T)  # noqa: B023
        assert seen <= steps < 1.6 * by_rate(found, 1e-6) + 100


def test_zonotopes_are_followed_from_the_start():
    W = np.array([[0.0, 2.2], [-2.2, 0.0]])
    proved = 0
    for bias in np.linspace(0.2, 3, 15):
        res = Reservoir(W, [[0.1], [0.1]], [bias, -bias], leak_rate=0.7)
        low, high = drive_range(res, -1.0, 1.0)
        found = certify(res, low, high, method="thorough", input_range=(-1.0, 1.0))
        if not found or found.weights is not None:
            continue
        proved += 1
        steps = found.steps_to([1e-2, 1e-6])
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (20_000, 4, 1))
        for distance, count in zip((1e-2, 1e-6), steps, strict=True):
            assert needed(res, distance, lambda t, X: signs[t] @ res.W_in.T) <= count  # noqa: B023
    assert proved


def test_a_cycle_is_followed_from_every_phase():
    inputs = np.array([[2.0], [-0.2], [0.4], [0.4], [0.0]])
    res = Reservoir([[3.78]], [[1.0]], [-2.6], leak_rate=0.6)
    found = certify_cycle(res, inputs)
    assert found
    rows = inputs @ res.W_in.T
    steps = found.steps_to([1e-2, 1e-6])
    seen = [needed(res, d, lambda t, X: np.roll(rows, -t, axis=0)) for d in (1e-2, 1e-6)]
    assert (seen <= steps).all()
    assert (steps <= 2 * np.array(seen)).all()


def test_distances_in_an_array_are_answered_one_by_one():
    res = Reservoir([[3.0, 0.5], [-0.5, 3.0]], np.ones((2, 1)), [-3.0, 3.2], leak_rate=0.5)
    found = certify(res, -0.1, 0.1)
    distances = np.array([[2.0, 0.5], [1e-3, 1e-9]])
    steps = found.steps_to(distances)
    assert steps.shape == (2, 2)
    assert steps[0, 0] == 0  # no two states differ by more than 2
    assert (np.diff(steps.ravel()) > 0).all()
    for distance, count in zip(distances.ravel(), steps.ravel(), strict=True):
        single = found.steps_to(distance)
        assert isinstance(single, int)
        assert single == count
    assert found.steps_to(np.ones((0, 3))).shape == (0, 3)


def test_sparse_weights_and_float32_give_the_same():
    res = build_reservoir(16, 1, spectral_radius=1.3, input_scaling=0.2, random_state=0)
    low, high = drive_range(res, -1.0, 1.0)
    res = replace(res, bias=stable_bias(res.W, low, high, random_state=0))
    steps = certify(res, low, high).steps_to(0.1)
    dense = res.W.toarray() if sp.issparse(res.W) else res.W
    assert certify(replace(res, W=dense), low, high).steps_to(0.1) == steps
    single = certify(res.astype("float32"), low, high)
    assert abs(single.steps_to(0.1) - steps) <= 1


def test_it_is_known_after_saving_and_pickling(tmp_path):
    X = np.random.default_rng(0).uniform(-1, 1, (300, 1))
    esn = ESNRegressor(
        30, topology="orthogonal", spectral_radius=0.99, bias="stable", random_state=0
    ).fit(X, X[:, 0])
    assert esn.certificate_.reservoir is esn.reservoir_
    steps = esn.certificate_.steps_to(1e-3)
    reservoir.save(esn, tmp_path / "esn.npz")
    again = reservoir.load(tmp_path / "esn.npz")
    assert again.certificate_.reservoir is again.reservoir_  # written once
    assert again.certificate_.steps_to(1e-3) == steps
    assert pickle.loads(pickle.dumps(esn)).certificate_.steps_to(1e-3) == steps


HELD = certify(Reservoir([[3.78]], [[1.0]], [-3.0]), -0.1, 0.1)


@pytest.mark.parametrize(
    "certificate, distance, kind, message",
    [
        (HELD, 0.0, ValueError, "distance=0.0 must be finite and above 0"),
        (HELD, [1e-3, np.nan], ValueError, "must be finite and above 0"),
        (HELD, "1", TypeError, "distance must be real"),
        (HELD, 1e-17, ValueError, "distance=1e-17 is below the resolution"),
        (certify(Reservoir([[3.78]], [[1.0]], [0.0]), 0, 0), 0.1, ValueError, "does not hold"),
        (replace(HELD, reservoir=None), 0.1, ValueError, "earlier versions"),
    ],
)
def test_unanswerable_questions_raise(certificate, distance, kind, message):
    with pytest.raises(kind, match=message):
        certificate.steps_to(distance)


def test_closed_loops_raise():
    loop = certify_loop(
        Reservoir([[0.1]], [[0.1]], [0.0]), ([[0.1]], [0.0]), include_input=False, clip=(-1.0, 1.0)
    )
    assert loop
    with pytest.raises(ValueError, match="closed loop"):
        loop.steps_to(0.1)


def test_the_search_keeps_away_from_the_fold():
    for leak, most in ((1.0, 20), (0.05, 600)):
        bias = stable_bias([[3.78]], 0.0, 0.0, leak_rate=leak, random_state=0)
        found = certify(Reservoir([[3.78]], [[1.0]], bias, leak_rate=leak), 0.0, 0.0)
        assert found.steps_to(1e-6) < most
        assert abs(bias[0]) < 1.1 * 1.96

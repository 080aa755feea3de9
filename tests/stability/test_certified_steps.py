"""Certificates for steps of different lengths: attacks, errors, saving, bias="stable"."""

import copy
import json
from dataclasses import replace

import numpy as np
import pytest

from helpers import certificate_fuzz
from reservoir import ESNRegressor, load, save
from reservoir.activations import ACTIVATIONS
from reservoir.building import Recipe, build_reservoir
from reservoir.dynamics import Reservoir, run, run_many
from reservoir.stability import Certificate, certified_bias, certify, certify_cycle, drive_range

pytestmark = [pytest.mark.one_engine, pytest.mark.usefixtures("short_searches")]

N_STATES = 12


def shares(reservoir, dt):
    """Return the share of the way that each unit goes in a step of length dt."""
    leak = np.broadcast_to(reservoir.leak_rate, reservoir.n_units)
    return 1.0 - (1.0 - leak) ** dt


def stepped(reservoir, states, drive, dt):
    share = shares(reservoir, dt)
    values = ACTIVATIONS[reservoir.activation].function(states @ reservoir.W.T + drive)
    return (1 - share) * states + share * values


def draw(rng, kind):
    """Return a small network, which may be certified or not, and the ends of its drive."""
    n = int(rng.integers(2, 6))
    W = certificate_fuzz.random_weights(rng, n)
    if kind == "units":
        activation, leak = rng.choice(["tanh", "relu"], p=[0.7, 0.3]), rng.uniform(0.02, 1, n)
    else:
        activation = rng.choice(["tanh", "relu", "identity"], p=[0.6, 0.2, 0.2])
        leak = rng.uniform(0.02, 0.95)
    if activation != "tanh":
        W = W * rng.uniform(0.5, 1.2) / max(np.linalg.norm(W, 2), 1e-3)
    half = np.abs(rng.standard_normal(n)) * rng.choice([0.1, 0.5])
    bias = rng.choice([-1.0, 1.0], n) * (np.abs(W).sum(axis=1) * rng.uniform(0.2, 1.3) + half)
    return Reservoir(W, np.eye(n), bias, leak_rate=leak, activation=activation), half


def worst_step(rng, reservoir, half, certificate, n_steps=60):
    """Return the largest factor by which a difference grew in the certificate's norm.

    Inside the box; each step has the one length of four, and the one drive of three, after which
    the differences are largest.
    """
    factor = certificate_fuzz._factor(certificate)
    order = np.inf if certificate.method == "max_norm" else 2
    shortest, longest = certificate.step_range
    low, high = np.clip(certificate.box, -3, 3)
    states = low + (high - low) * rng.random((N_STATES, len(low)))
    states[:4] = np.where(rng.random((4, len(low))) < 0.5, low, high)

    def sizes(states):
        return np.linalg.norm((states[1:] - states[:-1]) @ factor.T, order, axis=1)

    before, worst, floor = sizes(states), 0.0, 1e-13 * np.linalg.norm(factor, 2)
    for _ in range(n_steps):
        lengths = [shortest, longest, *rng.uniform(shortest, longest, 2)]
        drives = reservoir.bias + half * rng.choice([-1.0, 1.0, 0.2], (3, len(low)))
        made = [stepped(reservoir, states, drive, dt) for dt in lengths for drive in drives]
        after = np.array([sizes(new) for new in made])
        big = before > 1e6 * floor
        if not big.any():
            break
        growth = ((after[:, big] - floor) / before[big]).max(axis=1)
        chosen = int(growth.argmax())
        worst, states, before = max(worst, growth[chosen]), made[chosen], after[chosen]
    return worst


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("steps", [(0.1, 5.0), (0.01, 1.0), (2.0, 40.0)])
@pytest.mark.parametrize("kind", ["equal", "units"])
def test_no_sequence_of_lengths_shrinks_differences_more_slowly_than_the_rate(kind, steps):
    rng = np.random.default_rng([len(kind), int(steps[1])])
    methods, closest = [], 0.0
    for _ in range(28):
        reservoir, half = draw(rng, kind)
        names = ("auto", "max_norm", "two_norm", "lyapunov") if kind == "equal" else ("auto",)
        certificate = certify(
            reservoir, -half, half, method=rng.choice(names), step_range=tuple(steps)
        )
        if certificate:
            worst = worst_step(rng, reservoir, half, certificate)
            assert worst <= certificate.rate * (1 + 1e-9), certificate
            if certificate.rate < 1 - 1e-6:
                closest = max(closest, (1 - certificate.rate) / (1 - worst))
            methods.append(certificate.method)
    expected = {"max_norm", "two_norm", "lyapunov"} if kind == "equal" else {"max_norm"}
    assert set(methods) == expected
    assert len(methods) >= 8
    assert closest > 0.9  # the attack comes near what is proved


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("leak", [0.3, "units"])
def test_trajectories_merge_from_far_starts_whatever_the_lengths(leak, seed):
    rng = np.random.default_rng(seed)
    leaks = rng.uniform(0.1, 0.9, 20) if leak == "units" else leak
    options = {"spectral_radius": 1.3, "input_scaling": 0.2, "bias_scaling": 3.0}
    res = build_reservoir(20, 1, leak_rate=leaks, in_degree=3, random_state=seed, **options)
    res = replace(res, bias=1.3 * np.sign(res.bias) * np.abs(res.W).sum(axis=1))
    certificate = certify(res, *drive_range(res, -1.0, 1.0), step_range=(0.3, 8.0))
    assert certificate.holds
    n_steps = 200 + int(np.log(1e-7) / np.log(certificate.rate))
    assert n_steps < 3000
    lengths = [
        np.where(rng.random(n_steps) < 0.5, 0.3, 8.0),
        np.exp(rng.uniform(np.log(0.3), np.log(8.0), n_steps)),
        np.full(n_steps, 0.3),
    ]
    starts = rng.uniform(-5, 5, (4, 20))
    for dt in lengths:
        assert certificate.covers_steps(dt)
        X = rng.choice([-1.0, 1.0, 0.1], (n_steps, 1))
        ends = [states[-1] for states in run_many(res, [X] * 4, initial_states=starts, dt=[dt] * 4)]
        assert np.ptp(ends, axis=0).max() < 1e-6
        assert (ends[0] >= certificate.box[0] - 1e-6).all()
        assert (ends[0] <= certificate.box[1] + 1e-6).all()


def test_the_rate_is_that_of_the_shortest_step():
    W = 0.9 * np.linalg.qr(np.random.default_rng(0).standard_normal((8, 8)))[0]
    res = Reservoir(W, np.eye(8), np.zeros(8), leak_rate=0.4)
    found = certify(res, -1.0, 1.0, method="two_norm", step_range=(0.1, 5.0))
    assert found.rate == pytest.approx(1 - (1 - 0.6**0.1) * 0.1, rel=1e-5)
    # each method is left with what it proves of steps of length 1, where all have that length
    for method in ("max_norm", "two_norm", "lyapunov"):
        res = replace(res, W=0.3 * W)
        alone = certify(res, -1.0, 1.0, method=method)
        same = certify(res, -1.0, 1.0, method=method, step_range=(1.0, 1.0))
        assert same.holds
        assert same.rate == pytest.approx(alone.rate, rel=1e-6)
    # nothing depends on the length at leak 1
    whole = replace(res, leak_rate=1.0)
    for steps in [(1e-9, 1e-8), (0.1, 5.0), (1e8, 1e9)]:
        found = certify(whole, -1.0, 1.0, step_range=steps)
        assert found.rate == pytest.approx(certify(whole, -1.0, 1.0).rate, rel=1e-9)


@pytest.mark.parametrize(
    ("steps", "holds"),
    [((1e-300, 1.0), False), ((1e-18, 1.0), False), ((1e-6, 1e300), True), ((1e300, 1e308), True)],
)
def test_lengths_at_the_ends_of_the_scale(steps, holds):
    res = Reservoir([[0.5]], [[1.0]], [0.0], leak_rate=0.3)
    found = certify(res, -1.0, 1.0, step_range=steps)  # no decay below rounding is claimed
    assert found.holds is holds
    assert found.weights is not None or not holds
    assert found.rate < 1 or not holds


@pytest.mark.parametrize("activation", ["identity", "tanh"])
def test_unequal_leaks_that_are_each_certified_may_diverge_in_a_mixture(activation):
    # a turn, times .99: steps of any one length are certified, short and long in turn expand
    W, leak = 0.99 * np.array([[-0.28, -0.96], [0.96, -0.28]]), np.array([0.35, 0.99])
    res = Reservoir(W, np.ones((2, 1)), np.zeros(2), leak_rate=leak, activation=activation)
    for dt in np.geomspace(0.7, 10.0, 8):
        alone = replace(res, leak_rate=shares(res, dt))
        assert certify(alone, -1.0, 1.0).holds
        assert certify(alone, -1.0, 1.0, method="two_norm").holds
        x = run(res, np.zeros((1500, 1)), initial_state=[1.0, 0.0], dt=np.full(1500, dt))
        assert np.abs(x[-1]).max() < 1e-6
    there, back = (
        run(res, np.zeros((400, 1)), initial_state=start, dt=[0.7, 10.0] * 200)
        for start in ([0.1, 0.0], [-0.1, 0.0])
    )
    assert np.abs(there[-20:] - back[-20:]).max(axis=1).min() > 0.2
    assert activation == "tanh" or np.abs(there[-1]).max() > 1e9
    assert not certify(res, -1.0, 1.0, step_range=(0.7, 10.0))
    # equal leak rates mix
    for rate in (0.35, 0.99):
        equal = replace(res, leak_rate=rate)
        assert certify(equal, -1.0, 1.0, step_range=(0.7, 10.0)).method == "two_norm"


def test_leaks_that_only_look_equal_in_long_steps_are_not_taken_for_equal():
    res = Reservoir(0.5 * np.eye(2), np.ones((2, 1)), np.zeros(2), leak_rate=[0.9, 0.99])
    for steps in [(0.1, 100.0), (90.0, 100.0)]:
        assert certify(res, -1.0, 1.0, step_range=steps).method == "max_norm"
        with pytest.raises(ValueError, match="needs the same leak rate in all units"):
            certify(res, -1.0, 1.0, method="two_norm", step_range=steps)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"step_range": 3.0}, ValueError, r"step_range must be a pair \(low, high\); got 3\.0"),
        ({"step_range": (0.0, 1.0)}, ValueError, r"step_range\[0\]=0\.0 must be .* \(0, inf"),
        ({"step_range": (-1, 1.0)}, ValueError, r"step_range\[0\]=-1 must be finite and in \(0"),
        ({"step_range": (1.0, np.inf)}, ValueError, r"step_range\[1\]=inf must be finite"),
        ({"step_range": (np.nan, 1.0)}, ValueError, r"step_range\[0\]=nan must be finite"),
        ({"step_range": (1.0, 0.5)}, ValueError, "step 1 exceeds the longest one 0.5. Swap them"),
        ({"step_range": ("1", 2.0)}, TypeError, r"step_range\[0\] must be a number; got '1'"),
        ({"method": "thorough"}, ValueError, "'thorough' proves nothing.*(0.5, 2).*method='auto'"),
        ({"method": "series"}, ValueError, "'series' proves nothing for steps of several lengths"),
        ({"method": "lyapunov"}, ValueError, "'lyapunov' with step_range.*'auto' or 'max_norm'"),
    ],
)
def test_bad_values_raise_with_a_remedy(options, error, message):
    res = Reservoir(0.1 * np.ones((2, 2)), np.ones((2, 1)), np.zeros(2), leak_rate=[0.3, 0.4])
    with pytest.raises(error, match=message):
        certify(res, -1.0, 1.0, **{"step_range": (0.5, 2.0), **options})


def test_which_steps_are_covered():
    res = Reservoir([[0.5]], [[1.0]], [0.0], leak_rate=0.3)
    found = certify(res, -1.0, 1.0, step_range=(0.5, 2))
    assert found.covers_steps([0.5, 1.7, 2.0])
    assert found.covers_steps(1)
    assert not any(found.covers_steps(dt) for dt in (0.49, [1.0, 2.1], np.nan, np.inf))
    with pytest.raises(TypeError, match="dt must be real"):
        found.covers_steps("1")
    plain, cycle = certify(res, -1.0, 1.0), certify_cycle(res, [[0.1], [0.3]])
    for other in (plain, cycle):
        assert other.covers_steps([1.0, 1.0])
        assert not other.covers_steps([1.0, 1.01])
    steep = replace(res, W=np.array([[5.0]]))
    assert not certify(steep, -1.0, 1.0, step_range=(0.5, 2)).covers_steps(1.0)
    # what is said of it, and what it does not say
    assert "step_range=(0.5, 2), method='max_norm'" in repr(found)
    assert "step_range" not in repr(plain)
    assert found.resolution is None
    assert plain.resolution is not None
    with pytest.raises(ValueError, match=r"covers 0\.5 to 2\. Certify without step_range"):
        found.steps_to(0.1)
    ranged = certify(res, -1.0, 1.0, input_range=(-1.0, 1.0), step_range=(0.5, 2))
    assert ranged.covers_inputs([[0.5]])
    assert ranged.covers_steps(2.0)


def test_certificates_are_saved_with_their_steps_and_files_without_are_read(tmp_path):
    X = np.random.default_rng(0).uniform(-1, 1, (60, 1))
    esn = ESNRegressor(10, topology="ring", spectral_radius=0.9, bias="stable", leak_rate=0.5)
    esn.set_params(random_state=0).fit(X, X)
    found = certify(esn, -1.0, 1.0, step_range=(0.5, 2.0))
    model = copy.copy(esn)
    model._model = copy.copy(esn._model)
    model.certificate_ = model._model.certificate = found
    save(model, tmp_path / "new.npz")
    again = load(tmp_path / "new.npz").certificate_
    assert isinstance(again, Certificate)
    assert again.covers_steps([0.5, 2.0])
    np.testing.assert_array_equal(again.step_range, [0.5, 2.0])
    # a file from before there were steps
    save(esn, tmp_path / "esn.npz")
    with np.load(tmp_path / "esn.npz") as file:
        arrays = dict(file)
    header = json.loads(str(arrays["header"]))
    held = header["fitted"]["_model"]["part"]
    fields = held[held.index("certificate") + 1]["part"]
    place = fields.index("step_range")
    del fields[place : place + 2]
    arrays["header"] = np.array(json.dumps(header))
    np.savez(tmp_path / "old.npz", **arrays)
    old = load(tmp_path / "old.npz").certificate_
    assert old.step_range is None
    assert repr(old) == repr(esn.certificate_)
    assert old.covers_steps(1.0)
    assert not old.covers_steps(1.1)
    assert old.steps_to(0.01) == esn.certificate_.steps_to(0.01)


PARAMS = {"spectral_radius": 1.2, "input_scaling": 0.2, "bias": "stable", "random_state": 0}


@pytest.mark.slow
def test_a_stable_bias_is_certified_for_all_lengths(monkeypatch):
    monkeypatch.setattr(certified_bias, "_warn_of_lost_memory", lambda *_: None)  # takes long
    steps = (0.1, 5.0)

    def built(leak_rate, step_range=None, **others):
        bounds = {"drive_bounds": lambda res: drive_range(res, -1.0, 1.0), **others}
        res = build_reservoir(20, 1, leak_rate=leak_rate, step_range=step_range, **bounds, **PARAMS)
        return res, certify(res, *drive_range(res, -1.0, 1.0), step_range=steps)

    unequal = np.random.default_rng(0).uniform(0.1, 0.9, 20)
    made, certificate = built(unequal, steps)
    assert certificate.holds
    # what serves steps of one length need not serve others
    other, certificate = built(unequal)
    assert not certificate.holds
    assert np.abs(other.bias).mean() < np.abs(made.bias).mean()
    np.testing.assert_array_equal(made.W.toarray(), other.W.toarray())
    assert built(0.3, steps, dtype="float32")[1].holds


@pytest.mark.slow
@pytest.mark.parametrize(("leak", "named"), [(0.5, True), ("units", False)])
def test_the_warning_names_what_is_certified_for_the_same_lengths(leak, named):
    leaks = np.linspace(0.3, 0.9, 25) if leak == "units" else leak
    options = {**PARAMS, "leak_rate": leaks, "in_degree": 25}
    with pytest.warns(UserWarning, match="a bias that costs memory") as caught:
        build_reservoir(25, 1, drive_bounds=(-0.2, 0.2), step_range=(0.1, 5.0), **options)
    # a norm of W proves nothing of such steps where leak rates differ
    assert ('topology="orthogonal"' in str(caught[0].message)) is named
    assert 'topology="ring"' in str(caught[0].message)


def test_a_range_of_steps_needs_a_stable_bias():
    with pytest.raises(ValueError, match='step_range is only used with bias="stable"'):
        build_reservoir(10, 1, step_range=(0.5, 2.0))
    with pytest.raises(ValueError, match="step 3 exceeds the longest one 2"):
        build_reservoir(10, 1, bias="stable", drive_bounds=(-1, 1), step_range=(3, 2))
    short = {"step_range": (1e-18, 1.0), "leak_rate": 0.5, "spectral_radius": 0.3}
    with pytest.raises(ValueError, match=r"or longer steps than step_range=\(1e-18, 1\.0\)"):
        build_reservoir(10, 1, bias="stable", drive_bounds=(-1, 1), random_state=0, **short)


def test_a_recipe_does_not_look_for_lengths_in_its_owner():
    esn = ESNRegressor(10, bias="stable", leak_rate=0.5, spectral_radius=0.5)
    others = {"drive_bounds": (-1.0, 1.0), "feedback_scaling": 1.0}
    assert Recipe.from_attributes(esn, **others).step_range is None
    recipe = Recipe.from_attributes(esn, step_range=(0.5, 2.0), **others)
    made = recipe.build(10, 1, 0, np.random.default_rng(0), repeatable=False)
    assert certify(made, -1.0, 1.0, step_range=(0.5, 2.0)).holds

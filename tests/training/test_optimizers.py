"""Optimizers: known paths, first steps by hand, torch; schedules, penalties and clipping."""

import pickle
from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from reservoir.training.optimizers import (
    OPTIMIZERS,
    Optimizer,
    adadelta,
    adagrad,
    adam,
    get_optimizer,
    momentum,
    nadam,
    nesterov,
    rmsprop,
    sgd,
)
from reservoir.training.params import all_finite, flatten, global_norm, unflatten
from reservoir.training.regularizers import clip_by_norm, clip_by_value, penalty
from reservoir.training.schedules import (
    SCHEDULES,
    constant,
    cosine,
    exponential,
    get_schedule,
    inverse,
    linear_warmup,
    step,
)

TORCH = {  # name -> torch's class and options
    "sgd": ("SGD", {"lr": 1e-3}),
    "momentum": ("SGD", {"lr": 1e-3, "momentum": 0.9}),
    "nesterov": ("SGD", {"lr": 1e-3, "momentum": 0.9, "nesterov": True}),
    "adagrad": ("Adagrad", {}),
    "adadelta": ("Adadelta", {}),
    "rmsprop": ("RMSprop", {}),
    "adam": ("Adam", {}),
    "nadam": ("NAdam", {}),
}


def weights_of(seed, dtype=np.float64):
    rng = np.random.default_rng(seed)
    shapes = {"W": (3, 2), "bias": (3,), "coef": (1, 3)}
    return {name: rng.normal(size=shape).astype(dtype) for name, shape in shapes.items()}


def walk(optimizer, params, gradient, n_updates):
    """Return the weights after each update, the start first."""
    path, state = [params], optimizer.init(params)
    for _ in range(n_updates):
        params, state = optimizer.update(params, gradient(params), state)
        path.append(params)
    return path


def one_weight(optimizer, gradients):
    """Return the path of one weight from 0 under given gradients."""
    values = iter(gradients)
    path = walk(
        optimizer, {"w": np.zeros(1)}, lambda _: {"w": np.array([next(values)])}, len(gradients)
    )
    return [float(p["w"][0]) for p in path[1:]]


# --- weights as one vector ---


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_flatten_copies_and_its_views_share(dtype):
    params = weights_of(0, dtype)
    params["W"] = np.asfortranarray(params["W"])
    before = {name: array.copy() for name, array in params.items()}
    vector, views = flatten(params)
    assert vector.dtype == dtype
    for name, array in views.items():
        np.testing.assert_array_equal(array, before[name])
    vector *= 2
    for name, array in views.items():
        np.testing.assert_array_equal(array, 2 * before[name])
        np.testing.assert_array_equal(params[name], before[name])
    again = unflatten(vector, params)
    assert list(again) == list(params)
    assert all(np.shares_memory(again[name], vector) for name in again)


def test_flatten_takes_the_order_asked_for():
    params = weights_of(1)
    names = ["coef", "W", "bias"]
    np.testing.assert_array_equal(flatten(params, names)[0][:3], params["coef"].ravel())
    assert flatten({})[0].shape == (0,)
    with pytest.raises(ValueError, match=r"\['W', 'bias'\]; got \['W', 'bias', 'coef'\]"):
        flatten(params, ["W", "bias"])
    with pytest.raises(TypeError, match="all float32; got W: float64, bias: float32"):
        flatten({"W": np.zeros(2), "bias": np.zeros(2, np.float32)})
    with pytest.raises(TypeError, match="int64"):
        flatten({"W": np.zeros(2, np.int64)})
    with pytest.raises(ValueError, match=r"shape \(12,\); got \(11,\)"):
        unflatten(np.zeros(11), params)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("exponent", [-300, -40, -30, -22, -21, -16, 0, 16, 30, 300])
def test_norm_neither_overflows_nor_underflows(dtype, exponent):
    if dtype == np.float32 and abs(exponent) > 38:
        exponent = int(np.sign(exponent)) * 36
    for seed in range(5):
        params = weights_of(seed, dtype)
        unit = np.sqrt(sum(float((a.astype(float) ** 2).sum()) for a in params.values()))
        scaled = {name: (a * dtype(10.0**exponent)).astype(dtype) for name, a in params.items()}
        rtol = 1e-12 if dtype == np.float64 else 1e-5
        if exponent == -40:  # float32 has no digits left down there
            rtol = 1e-12 if dtype == np.float64 else 1e-3
        assert global_norm(scaled) == pytest.approx(unit * 10.0**exponent, rel=rtol)


def test_norm_and_finiteness_of_what_is_not_finite():
    assert global_norm({}) == 0.0
    assert global_norm({"W": np.zeros(3), "none": np.zeros(0)}) == 0.0
    for bad in (np.nan, np.inf, -np.inf):
        for params in (
            {"a": np.array([bad]), "b": np.array([0.0])},
            {"a": np.array([0.0]), "b": np.array([1.0, bad])},
        ):
            assert not np.isfinite(global_norm(params))
            assert not all_finite(params)
    assert all_finite({"a": np.array([1e308, 1e308])})


# --- optimizers: paths in closed form, on w^2 c / 2 ---

CURVATURES = np.array([0.5, 1.0, 4.0])


def quadratic(params):
    return {"w": CURVATURES * params["w"]}


def powers(matrix_of, start):
    """Return the first entries of M^k start for each curvature, k = 0 to 30."""
    paths = []
    for c in CURVATURES:
        M = matrix_of(c)
        paths.append([(np.linalg.matrix_power(M, k) @ start)[0] for k in range(31)])
    return np.array(paths).T


def test_sgd_path():
    path = walk(sgd(0.1), {"w": np.ones(3)}, quadratic, 30)
    expected = (1 - 0.1 * CURVATURES) ** np.arange(31)[:, None]
    np.testing.assert_allclose([p["w"] for p in path], expected, rtol=1e-13)


def test_momentum_path():
    eta, mu = 0.1, 0.8
    # (w, v) -> v' = mu v + c w, w' = w - eta v'
    expected = powers(lambda c: np.array([[1 - eta * c, -eta * mu], [c, mu]]), np.array([1.0, 0.0]))
    path = walk(momentum(eta, mu), {"w": np.ones(3)}, quadratic, 30)
    np.testing.assert_allclose([p["w"] for p in path], expected, rtol=1e-10, atol=1e-13)


def test_nesterov_path():
    eta, mu = 0.1, 0.8
    # Nesterov's own coordinates: a gradient step from the point ahead, then look ahead
    path = walk(nesterov(eta, mu), {"w": np.ones(3)}, quadratic, 30)
    position, before = np.ones(3), np.ones(3)
    for k in range(31):
        ahead = position + mu * (position - before) if k else position
        np.testing.assert_allclose(path[k]["w"], ahead, rtol=1e-10, atol=1e-13)
        position, before = (1 - eta * CURVATURES) * ahead, position


def test_first_steps_by_hand():
    g = [2.0, -1.0]
    assert one_weight(sgd(0.5), g) == pytest.approx([-1.0, -0.5])
    assert one_weight(momentum(0.5, 0.5), g) == pytest.approx([-1.0, -1.0])
    assert one_weight(nesterov(0.5, 0.5), g) == pytest.approx([-1.5, -1.0])
    assert one_weight(adagrad(0.5), g) == pytest.approx([-0.5, -0.5 + 0.5 / sqrt(5)])
    s1, s2 = 0.01 * 4, 0.99 * 0.04 + 0.01
    assert one_weight(rmsprop(0.5), g) == pytest.approx(
        [-0.5 * 2 / sqrt(s1), -0.5 * 2 / sqrt(s1) + 0.5 / sqrt(s2)]
    )
    first = -2 * sqrt(1e-6 / (0.4 + 1e-6))
    second = sqrt((0.1 * first**2 + 1e-6) / (0.9 * 0.4 + 0.1 + 1e-6))
    assert one_weight(adadelta(), g) == pytest.approx([first, first + second])
    # Adam: means over the gradients seen
    m2, s2 = (0.9 * 0.2 - 0.1) / (1 - 0.81), (0.999 * 0.004 + 0.001) / (1 - 0.999**2)
    assert one_weight(adam(0.5), g) == pytest.approx([-0.5, -0.5 - 0.5 * m2 / sqrt(s2)])
    # Nadam without growth: mu is beta1 / 2 throughout
    mu = 0.45
    first = -0.5 * ((1 - mu) / (1 - mu) * 2 + mu / (1 - mu**2) * 0.2) / 2
    top = (1 - mu) / (1 - mu**2) * -1 + mu / (1 - mu**3) * (0.9 * 0.2 - 0.1)
    assert one_weight(nadam(0.5, momentum_decay=0), g) == pytest.approx(
        [first, first - 0.5 * top / sqrt(s2)]
    )


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_all_reach_the_minimum_of_a_quadratic(name):
    rates = {"adadelta": None, "sgd": 0.1, "momentum": 0.05, "nesterov": 0.05, "adagrad": 0.5}
    optimizer = get_optimizer(name, rates.get(name, cosine(0.05, 3000)))
    for seed in range(2):
        start = {"w": np.random.default_rng(seed).normal(size=3)}
        end = walk(optimizer, start, quadratic, 3000)[-1]["w"]
        assert np.abs(end).max() < (0.1 if name == "adadelta" else 1e-3)


@pytest.fixture
def torch64(torch):
    """Return torch with float64 for its own scalars; its NAdam loses digits without."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield torch
    torch.set_default_dtype(before)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("schedule", [False, True])
def test_same_path_as_torch(torch64, name, schedule):
    torch = torch64
    kind, options = TORCH[name]
    for seed in range(3):
        params = weights_of(seed)
        X = np.random.default_rng(100 + seed).normal(size=(20, 2))
        leaves = {n: torch.tensor(w, requires_grad=True) for n, w in params.items()}
        theirs = getattr(torch.optim, kind)(leaves.values(), **options)
        base = theirs.defaults["lr"]
        ours = get_optimizer(name, exponential(base, 50) if schedule else None)
        state = ours.init(params)
        for k in range(50):
            if schedule:
                theirs.param_groups[0]["lr"] = base * 0.01 ** (k / 50)
            theirs.zero_grad()
            h = torch.tanh(torch.tensor(X) @ leaves["W"].T + leaves["bias"])
            ((h @ leaves["coef"].T - 1.0) ** 2).mean().backward()
            grads = {n: leaf.grad.numpy().copy() for n, leaf in leaves.items()}
            params, state = ours.update(params, grads, state)
            theirs.step()
            for n, leaf in leaves.items():
                np.testing.assert_allclose(params[n], leaf.detach().numpy(), rtol=0, atol=1e-12)


# --- optimizers: what is promised of all ---


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_update_is_pure_and_keeps_dtype(name, dtype):
    optimizer = get_optimizer(name)
    params = weights_of(0, dtype)
    params = {n: a for n, a in params.items() if not a.setflags(write=False)}
    grads = {n: a * dtype(0.1) for n, a in reversed(params.items())}  # another order of names
    state = optimizer.init(params)
    for _ in range(3):
        frozen = [np.array(slot) for slot in state.slots]
        once, after = optimizer.update(params, grads, state)
        twice, _ = optimizer.update(params, grads, state)
        assert list(once) == list(params)
        for n, a in once.items():
            assert a.dtype == dtype
            assert a.shape == params[n].shape
            assert np.all((a < params[n]) == (params[n] > 0))  # against the gradient
            np.testing.assert_array_equal(a, twice[n])
        for slot, was in zip(state.slots, frozen, strict=True):
            np.testing.assert_array_equal(slot, was)
        for slot in after.slots:
            assert np.ndim(slot) == 0 or slot.dtype == dtype
        assert after.n_updates == state.n_updates + 1
        state = after


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_many_weights_go_their_own_ways(name):
    rng = np.random.default_rng(0)
    params, grads = ({"W": rng.normal(size=(300, 200)), "bias": np.ones(7)} for _ in range(2))
    path = walk(get_optimizer(name), params, lambda _: grads, 3)
    flat, flat_grads = flatten(params)[0], flatten(grads)[0]
    end = flatten(path[-1])[0]
    for few in (slice(0, 50), slice(16380, 16390), slice(60000, None)):
        alone = walk(
            get_optimizer(name), {"w": flat[few]}, lambda _, few=few: {"w": flat_grads[few]}, 3
        )
        np.testing.assert_allclose(alone[-1]["w"], end[few], rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_no_gradient_no_step(name):
    params = weights_of(2)
    zeros = {n: np.zeros_like(a) for n, a in params.items()}
    for after in walk(get_optimizer(name), params, lambda _: zeros, 3):
        for n, a in after.items():
            np.testing.assert_array_equal(a, params[n])


def test_rate_follows_the_schedule_and_the_warmup():
    optimizer = sgd(lambda n: [1.0, 0.5, 0.25, 0.0][n])
    assert one_weight(optimizer, [1.0] * 4) == [-1.0, -1.5, -1.75, -1.75]
    ramp = adam(0.1, warmup=4)
    assert [ramp.rate(n) for n in range(6)] == pytest.approx([0.02, 0.04, 0.06, 0.08, 0.1, 0.1])
    assert replace(ramp, learning_rate=0.05).rate(10) == 0.05
    assert nadam(warmup=3).rate(0) == get_optimizer("nadam", warmup=3).rate(0) == 0.0005
    # moments do not depend on the warm-up
    g = {"w": np.array([3.0])}
    states = [o.update(g, g, o.init(g))[1] for o in (adam(), adam(warmup=7))]
    np.testing.assert_array_equal(states[0].slots, states[1].slots)


def test_warmup_keeps_a_good_start():
    def worst(optimizer, seed):
        rng = np.random.default_rng(seed)
        curvature = 10 ** rng.uniform(-2, 1.5, 300)
        start = {"w": 1e-3 * rng.normal(size=300) / np.sqrt(curvature)}
        path = walk(optimizer, start, lambda p: {"w": curvature * p["w"]}, 200)
        losses = [curvature @ p["w"] ** 2 for p in path]
        return max(losses) / losses[0]

    for seed in range(5):
        assert worst(adam(), seed) > 1.5
        assert worst(adam(warmup=50), seed) <= 1.0


def test_optimizers_can_be_pickled_and_made_of_rules():
    optimizer = get_optimizer("adam", cosine(0.1, 10))
    again = pickle.loads(pickle.dumps(optimizer))
    assert [again.rate(n) for n in range(12)] == [optimizer.rate(n) for n in range(12)]
    assert replace(again, learning_rate=0.1) == adam(0.1)
    state = pickle.loads(pickle.dumps(optimizer.init(weights_of(0))))
    assert state.n_updates == 0

    def signs(g, rate, n):
        return rate * np.sign(g), ()

    own = Optimizer("signs", signs, lambda w: (), 0.5)
    assert one_weight(own, [3.0, -0.1]) == [-0.5, 0.0]


def test_optimizer_errors():
    for rate in (0, -0.1, np.nan, np.inf):
        with pytest.raises(ValueError, match=r"learning_rate=.* must be finite and in \(0"):
            sgd(rate)
    with pytest.raises(TypeError, match="learning_rate must be a number"):
        adam("cosine")
    with pytest.raises(ValueError, match=r"learning_rate\(0\)=-1"):
        one_weight(sgd(lambda n: -1.0), [1.0])
    with pytest.raises(ValueError, match=r"momentum=1 must be finite and in \[0, 1\)"):
        momentum(0.1, 1)
    for call, name in (
        (lambda: nesterov(0.1, -0.1), "momentum"),
        (lambda: adagrad(epsilon=0), "epsilon"),
        (lambda: adadelta(rho=1.0), "rho"),
        (lambda: rmsprop(epsilon=-1), "epsilon"),
        (lambda: adam(beta2=1.0), "beta2"),
        (lambda: nadam(momentum_decay=-1), "momentum_decay"),
        (lambda: adam(warmup=-1), "warmup"),
        (lambda: get_optimizer("lbfgs"), "optimizer='lbfgs' is not known.*'adam'.*'sgd'"),
    ):
        with pytest.raises(ValueError, match=name):
            call()
    optimizer, params = sgd(), weights_of(0)
    state = optimizer.init(params)
    with pytest.raises(ValueError, match=r"gradient of 'W' must have shape \(3, 2\); got \(2, 3\)"):
        optimizer.update(params, {**params, "W": np.zeros((2, 3))}, state)
    with pytest.raises(ValueError, match=r"The names must be \['W', .*got \['W'\]"):
        optimizer.update(params, {"W": params["W"]}, state)


# --- schedules ---


def test_schedules_by_hand():
    assert constant(0.3)(7.5) == 0.3
    drops = step(1.0, 10, every=2.5, factor=0.5)
    assert [drops(t) for t in (0, 2.4, 2.5, 4.9, 5, 10)] == [1, 1, 0.5, 0.5, 0.25, 0.0625]
    assert exponential(2.0, 10, factor=0.5)(3.5) == pytest.approx(2 * 0.5**3.5)
    assert inverse(1.0, 10, decay=0.5, power=0.5)(6) == pytest.approx(0.5)
    wave = cosine(1.0, 10, final=0.2)
    assert [wave(t) for t in (0, 2.5, 5, 10, 11)] == pytest.approx(
        [1, 0.2 + 0.4 * (1 + sqrt(0.5)), 0.6, 0.2, 0.2]
    )
    ramp = linear_warmup(wave, 4)
    assert ramp(1.5) == pytest.approx(wave(1.5) * 0.5)
    assert ramp(4) == wave(4)
    assert linear_warmup(wave, 0)(0) == wave(0)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("n_steps", [1, 7, 200, 0.5])
def test_schedules_start_at_the_rate_and_do_not_rise(name, n_steps):
    schedule = get_schedule(name, 0.3, n_steps)
    rates = [schedule(t) for t in np.linspace(0, 1.5 * n_steps, 40)]
    assert rates[0] == pytest.approx(0.3)
    assert np.all(np.diff(rates) <= 1e-15)
    assert min(rates) >= 0
    ends = {"constant": 0.3, "exponential": 0.003, "inverse": 0.03, "cosine": 0.0}
    if name in ends:
        assert schedule(n_steps) == pytest.approx(ends[name], abs=1e-15)
    assert pickle.loads(pickle.dumps(schedule))(0.25) == schedule(0.25)
    assert type(schedule(np.float64(0.25))) is float


def test_schedules_equal_torch(torch):
    schedulers = torch.optim.lr_scheduler
    cases = (
        (step(0.1, 30, every=7, factor=0.3), lambda o: schedulers.StepLR(o, 7, 0.3)),
        (exponential(0.1, 30, factor=0.9), lambda o: schedulers.ExponentialLR(o, 0.9)),
        (cosine(0.1, 30, final=0.01), lambda o: schedulers.CosineAnnealingLR(o, 30, 0.01)),
        (linear_warmup(constant(0.1), 5), lambda o: schedulers.LinearLR(o, 1 / 6, 1.0, 5)),
        (
            inverse(0.1, 30, decay=0.2),
            lambda o: schedulers.LambdaLR(o, lambda t: 1 / (1 + 0.2 * t)),
        ),
    )
    for ours, make in cases:
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
        theirs = make(optimizer)
        for t in range(31):
            assert ours(t) == pytest.approx(theirs.get_last_lr()[0], rel=1e-10, abs=1e-15)
            optimizer.step()
            theirs.step()


def test_schedule_errors():
    for call, message in (
        (lambda: constant(0), "learning_rate=0"),
        (lambda: cosine(0.1, 0), "n_steps=0"),
        (lambda: cosine(0.1, 10, final=0.2), r"final=0.2 .*\[0, 0.1\]"),
        (lambda: step(0.1, 10, every=0), "every=0"),
        (lambda: step(0.1, 10, factor=1.5), "factor=1.5"),
        (lambda: exponential(0.1, 10, factor=0), "factor=0"),
        (lambda: inverse(0.1, 10, decay=-1), "decay=-1"),
        (lambda: linear_warmup(constant(0.1), -1), "n_steps=-1"),
        (lambda: get_schedule("cos", 0.1, 10), "learning_rate='cos' is not known.*'cosine'"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match=r"schedules\.constant"):
        linear_warmup(0.1, 5)


# --- penalties and clipping ---


@pytest.mark.parametrize("l1, l2", [(0.3, 0.0), (0.0, 0.7), (0.3, 0.7)])
def test_penalty_against_differences(l1, l2):
    for seed in range(5):
        params = weights_of(seed)
        value, grads = penalty(params, l1=l1, l2=l2)
        flat = np.concatenate([params["W"].ravel(), params["coef"].ravel()])
        assert value == pytest.approx(l1 * np.abs(flat).sum() + 0.5 * l2 * flat @ flat)
        assert not grads["bias"].any()
        for name in ("W", "coef"):
            for place in np.ndindex(params[name].shape):
                ends = []
                for sign in (1, -1):
                    moved = {n: a.copy() for n, a in params.items()}
                    moved[name][place] += sign * 1e-6
                    ends.append(penalty(moved, l1=l1, l2=l2)[0])
                assert grads[name][place] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-7)


def test_penalty_spares_biases_and_keeps_dtype():
    names = ("bias", "bias_recurrent", "intercept", "0.bias", "1.0.intercept", "W", "peephole")
    params = {name: np.array([0.0, -2.0], np.float32) for name in names}
    value, grads = penalty(params, l1=1.0, l2=0.5)
    assert value == 2 * (2.0 + 1.0)
    for name in names:
        assert grads[name].dtype == np.float32
        expected = [0, -2] if name in ("W", "peephole") else [0, 0]
        np.testing.assert_array_equal(grads[name], expected)
    value, grads = penalty(params)
    assert value == 0.0
    assert not any(g.any() for g in grads.values())
    for bad in ({"l1": -1}, {"l2": np.nan}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            penalty(params, **bad)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_clip_by_norm_keeps_the_direction(dtype):
    for seed in range(5):
        grads = weights_of(seed, dtype)
        before = {n: a.copy() for n, a in grads.items()}
        norm = global_norm(grads)
        clipped = clip_by_norm(grads, norm / 3)
        assert global_norm(clipped) == pytest.approx(norm / 3, rel=1e-6)
        for n, a in clipped.items():
            assert a.dtype == dtype
            np.testing.assert_allclose(a, before[n] / 3, rtol=1e-6)
            np.testing.assert_array_equal(grads[n], before[n])
        for n, a in clip_by_norm(grads, norm * 1.01).items():
            np.testing.assert_array_equal(a, before[n])
    huge = {"W": np.array([3e38, 3e38], np.float32)}
    np.testing.assert_allclose(clip_by_norm(huge, 1.0)["W"], np.sqrt([0.5, 0.5]), rtol=1e-5)
    bad = {"W": np.array([1.0, np.inf]), "bias": np.array([np.nan])}
    assert not all_finite(clip_by_norm(bad, 1.0))
    for g in (bad, {"W": bad["W"]}):  # a norm of NaN, and one of infinity
        np.testing.assert_array_equal(clip_by_norm(g, 1.0)["W"], bad["W"])


def test_clip_by_value_acts_on_components():
    grads = {"W": np.array([[-5.0, 0.2]]), "bias": np.array([2.0], np.float32)}
    clipped = clip_by_value(grads, 0.5)
    np.testing.assert_array_equal(clipped["W"], [[-0.5, 0.2]])  # not all set to one value
    np.testing.assert_array_equal(clipped["bias"], [0.5])
    assert clipped["bias"].dtype == np.float32
    assert grads["W"][0, 0] == -5.0
    for clip in (clip_by_norm, clip_by_value):
        for limit in (0, -1, np.inf):
            with pytest.raises(ValueError, match="must be finite"):
                clip(grads, limit)


def test_clipping_equals_torch(torch):
    for seed in range(5):
        grads = weights_of(seed)
        leaves = []
        for g in grads.values():
            leaf = torch.zeros(g.shape, dtype=torch.float64, requires_grad=True)
            leaf.grad = torch.tensor(g)
            leaves.append(leaf)
        torch.nn.utils.clip_grad_norm_(leaves, 1.0)
        ours = clip_by_norm(grads, 1.0)
        for leaf, g in zip(leaves, ours.values(), strict=True):
            np.testing.assert_allclose(g, leaf.grad.numpy(), rtol=2e-6)  # torch adds 1e-6

"""Exponents of known flows and maps, and the Kaplan-Yorke dimension."""

import numpy as np
import pytest

from reservoir.stability import flow_exponents, kaplan_yorke_dimension, map_exponents


def lorenz(s):
    x, y, z = s.tolist()
    return [10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z]


def lorenz_jacobian(s):
    x, y, z = s.tolist()
    return [[-10, 10, 0], [28 - z, -1, -x], [y, x, -8 / 3]]


def henon(s):
    return [1 - 1.4 * s[0] ** 2 + s[1], 0.3 * s[0]]


def henon_jacobian(s):
    return [[-2.8 * s[0], 1.0], [0.3, 0.0]]


@pytest.mark.slow
def test_exponents_of_lorenz(global_random_seed):
    start = [1.0, 1.0, 1.0 + 0.01 * global_random_seed]
    found = flow_exponents(lorenz, lorenz_jacobian, start, dt=0.02, random_state=0)
    assert found[0] == pytest.approx(0.906, rel=0.03)
    np.testing.assert_allclose(found[1:], [0, -14.57], atol=0.03)
    assert kaplan_yorke_dimension(found) == pytest.approx(2.062, abs=0.003)


def test_exponents_have_the_sum_of_the_trace(global_random_seed):
    options = {"n_steps": 300, "washout": 200, "random_state": global_random_seed}
    found = flow_exponents(lorenz, lorenz_jacobian, [1.0, 1.0, 1.0], **options)
    assert found.sum() == pytest.approx(-10 - 1 - 8 / 3, abs=1e-3)
    (first,) = flow_exponents(lorenz, lorenz_jacobian, [1.0, 1.0, 1.0], 1, **options)
    assert first == pytest.approx(found[0], abs=0.2)
    assert (np.diff(found) < 0).all()


def test_steps_have_the_order_of_runge_and_kutta():
    # a linear flow, whose exponents have the sum of the trace
    A = np.array([[0.0, 1.0], [-4.0, -0.4]])

    def error(dt):
        found = flow_exponents(
            lambda x: A @ x, lambda x: A, [1.0, 0.0], n_steps=round(4 / dt), dt=dt, washout=0
        )
        return abs(found.sum() + 0.4)

    assert np.log2(error(0.025) / error(0.0125)) == pytest.approx(4, abs=0.1)


def test_exponents_of_maps(global_random_seed):
    start = [0.1, 0.001 * global_random_seed]
    found = map_exponents(henon, henon_jacobian, start, n_steps=2000, random_state=0)
    assert found.sum() == pytest.approx(np.log(0.3), abs=1e-9)
    assert found[0] == pytest.approx(0.419, abs=0.05)
    # a 1-d map, whose functions return arrays
    logistic = map_exponents(lambda x: 4 * x * (1 - x), lambda x: np.diag(4 - 8 * x), 0.3)
    assert logistic == pytest.approx([np.log(2)], abs=0.02)


def test_directions_far_apart_are_measured_each_step():
    # the factors differ by e^30 a step: five steps at once would lose the second
    A = np.diag([1.0, np.exp(-30.0), 0.0])
    found = map_exponents(lambda x: A @ x, lambda x: A, np.ones(3), n_steps=200, random_state=0)
    np.testing.assert_allclose(found[:2], [0, -30], atol=0.2)
    assert found[2] == -np.inf


def test_kaplan_yorke_dimension():
    assert kaplan_yorke_dimension([0.9, 0.0, -14.5]) == pytest.approx(2 + 0.9 / 14.5)
    assert kaplan_yorke_dimension([-14.5, 0.0, 0.9]) == pytest.approx(2 + 0.9 / 14.5)
    assert kaplan_yorke_dimension([0.0, -0.3]) == 1
    assert kaplan_yorke_dimension([-0.1, -0.3]) == 0
    assert kaplan_yorke_dimension([0.5, -np.inf]) == 1
    assert np.isnan(kaplan_yorke_dimension([0.5, -0.2]))
    assert "ask for more" in kaplan_yorke_dimension.__doc__
    for wrong in ([], [[0.1]], [np.nan]):
        with pytest.raises(ValueError, match="exponents="):
            kaplan_yorke_dimension(wrong)


@pytest.mark.parametrize(
    "options, error, match",
    [
        ({"x0": [0.1, np.nan]}, ValueError, "x0="),
        ({"x0": np.ones((2, 2))}, ValueError, "x0="),
        ({"f": "henon"}, TypeError, "f='henon' must be a function"),
        ({"f": lambda x: x[:1]}, ValueError, r"f must return shape \(2,\) .* got \(1,\)"),
        ({"jacobian": lambda x: x}, ValueError, r"jacobian must return shape \(2, 2\)"),
        ({"n_exponents": 3}, ValueError, "n_exponents=3 must be at most 2"),
        ({"n_steps": 0}, ValueError, "n_steps=0"),
        ({"washout": -1}, ValueError, "washout=-1"),
    ],
)
def test_errors_of_exponents(options, error, match):
    given = {"f": henon, "jacobian": henon_jacobian, "x0": [0.1, 0.1]} | options
    for function in (map_exponents, flow_exponents):
        with pytest.raises(error, match=match):
            function(
                given["f"],
                given["jacobian"],
                given["x0"],
                **{name: options[name] for name in options if name.startswith(("n_", "wash"))},
            )


def test_what_diverges_names_its_step():
    with pytest.raises(ValueError, match=r"diverged at step 1\d: "):
        map_exponents(lambda x: x * x, lambda x: np.diag(2 * x), 1.1)
    with pytest.raises(ValueError, match="dt=0"):
        flow_exponents(henon, henon_jacobian, [0.1, 0.1], dt=0)

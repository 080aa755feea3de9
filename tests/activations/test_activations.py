"""Each activation against its definition, finite differences and its own constants."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import naive
from reservoir.activations import ACTIVATIONS, Activation, get_activation

ALL = pytest.mark.parametrize("act", ACTIVATIONS.values(), ids=lambda act: act.name)
INVERTIBLE = pytest.mark.parametrize(
    "act", [a for a in ACTIVATIONS.values() if a.inverse is not None], ids=lambda act: act.name
)
STEEPEST = {"tanh": 0.0, "logistic": 0.0, "softplus": 30.0}  # where |f'| is largest; else 1.0
GRID = np.linspace(-6, 6, 240)  # an even number of points: never at a kink in 0


def test_the_table_is_keyed_by_name():
    assert set(ACTIVATIONS) == set(naive.ACTIVATIONS)
    assert all(name == act.name for name, act in ACTIVATIONS.items())


@ALL
@settings(max_examples=30, deadline=None)
@given(z=st.floats(-700, 700))
def test_function_equals_the_definition(act, z):
    expected = naive.ACTIVATIONS[act.name](z)
    assert float(act.function(np.array([z]))[0]) == pytest.approx(expected, rel=1e-14, abs=1e-300)


@ALL
def test_derivative_equals_finite_differences(act):
    step = 1e-6
    slope = (act.function(GRID + step) - act.function(GRID - step)) / (2 * step)
    np.testing.assert_allclose(act.derivative(GRID), slope, rtol=1e-8, atol=1e-9)


@ALL
@settings(max_examples=30, deadline=None)
@given(y=st.floats(-50, 50), z=st.floats(-50, 50))
def test_lipschitz_constant_is_never_exceeded(act, y, z):
    rise = abs(float(act.function(np.float64(y))) - float(act.function(np.float64(z))))
    assert rise <= act.lipschitz * abs(y - z) * (1 + 1e-12) + 1e-14
    assert 0 <= float(act.derivative(np.float64(z))) <= act.lipschitz


@ALL
def test_lipschitz_constant_is_attained(act):
    z = np.array([STEEPEST.get(act.name, 1.0)])
    assert act.derivative(z)[0] == pytest.approx(act.lipschitz, rel=1e-12)


@INVERTIBLE
def test_inverse_round_trip(act):
    z = np.linspace(-5, 5, 101)
    np.testing.assert_allclose(act.inverse(act.function(z)), z, rtol=1e-10, atol=1e-12)


def test_what_is_not_one_to_one_has_no_inverse():
    assert [a.name for a in ACTIVATIONS.values() if a.inverse is None] == ["relu"]


@ALL
def test_bounded_means_that_the_range_is(act):
    values = act.function(np.array([-1e300, -1.0, 0.0, 1.0, 1e300]))
    assert np.isfinite(values).all()
    assert act.bounded == (np.abs(values).max() <= 1)


@ALL
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dtype_is_kept(act, dtype):
    z = np.linspace(-3, 3, 12, dtype=dtype)
    assert act.function(z).dtype == dtype
    assert act.derivative(z).dtype == dtype
    if act.inverse is not None:
        assert act.inverse(act.function(z)).dtype == dtype


@ALL
def test_float32_is_close_to_float64(act):
    z = np.linspace(-3, 3, 12, dtype=np.float32)
    wide = z.astype(np.float64)
    np.testing.assert_allclose(act.function(z), act.function(wide), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(act.derivative(z), act.derivative(wide), rtol=1e-6, atol=1e-6)


@ALL
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_out_is_written_and_may_be_the_input(act, dtype):
    z = np.linspace(-3, 3, 12, dtype=dtype)
    expected = act.function(z.copy())
    out = np.full_like(z, np.nan)
    assert act.function(z, out=out) is out
    np.testing.assert_array_equal(out, expected)
    act.function(z, out=z)  # in place, as the engine does
    np.testing.assert_array_equal(z, expected)


@ALL
@pytest.mark.parametrize("layout", ["C", "F", "strided", "read-only"])
def test_layouts(act, layout):
    plain = np.random.default_rng(0).normal(size=(4, 6))
    z = np.asfortranarray(plain) if layout == "F" else plain.copy()
    if layout == "strided":
        z = np.repeat(plain, 2, axis=1)[:, ::2]
    z.flags.writeable = layout != "read-only"
    np.testing.assert_array_equal(act.function(z), act.function(plain))
    np.testing.assert_array_equal(act.derivative(z), act.derivative(plain))
    np.testing.assert_array_equal(z, plain)  # the argument is left alone


@ALL
def test_large_arguments_do_not_warn(act):
    z = np.array([-1e308, -800.0, 800.0, 1e308])
    assert np.isfinite(act.function(z)).all()
    assert np.isfinite(act.derivative(z)).all()


@ALL
def test_pickle(act):
    copied = pickle.loads(pickle.dumps(act))
    np.testing.assert_array_equal(copied.function(GRID), act.function(GRID))
    assert copied.lipschitz == act.lipschitz


def test_get_activation_takes_names_and_activations():
    mine = Activation("sine", np.sin, np.cos, 1.0, np.arcsin, True)
    assert get_activation(mine) is mine
    assert get_activation("relu") is ACTIVATIONS["relu"]


def test_unknown_name_names_the_close_matches():
    with pytest.raises(ValueError, match=r"activation='sofplus'.*Did you mean 'softplus'\?.*Known"):
        get_activation("sofplus")
    with pytest.raises(ValueError, match=r"activation=3 is not known\. Known: 'identity'"):
        get_activation(3)


def test_a_bare_function_raises_with_a_remedy():
    with pytest.raises(TypeError, match=r"bare function\. Wrap it in a .*Activation with"):
        get_activation(math.tanh)

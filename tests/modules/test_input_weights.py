"""Input weights, biases, feedback weights, and the digits of irrational numbers."""

import decimal
from math import e, pi

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats as st
from hypothesis import given, settings
from hypothesis import strategies as hs

from reservoir.input_weights import (
    INPUT_WEIGHTS,
    bias,
    feedback_weights,
    input_weights,
    irrational_digits,
    irrational_signs,
)

PI_50 = "14159265358979323846264338327950288419716939937510"
E_50 = "71828182845904523536028747135266249775724709369995"


# --- laws ---


@pytest.mark.parametrize("law", INPUT_WEIGHTS)
def test_shape_scale_and_seed(law):
    W_in = input_weights(30, 4, law=law, random_state=0)
    assert W_in.shape == (30, 4)
    assert W_in.dtype == np.float64
    np.testing.assert_array_equal(W_in, input_weights(30, 4, law=law, random_state=0))
    scaling = [0.5, 2.0, 0.0, 1.0]
    scaled = input_weights(30, 4, law=law, scaling=scaling, random_state=0)
    np.testing.assert_array_equal(scaled, W_in * scaling)
    np.testing.assert_array_equal(
        input_weights(30, 4, law=law, scaling=3, random_state=0), 3 * W_in
    )


def test_distributions(global_random_seed):
    W_in = input_weights(2000, 5, random_state=global_random_seed)
    assert st.kstest(W_in.ravel(), "uniform", args=(-1, 2)).pvalue > 1e-4
    normal = input_weights(2000, 5, law="normal", random_state=global_random_seed)
    assert st.kstest(normal.ravel(), "norm").pvalue > 1e-4
    signs = input_weights(2000, 5, law="bernoulli", scaling=0.3, random_state=global_random_seed)
    assert set(np.unique(signs)) == {-0.3, 0.3}
    drawn = input_weights(2000, 5, law=st.uniform(2, 1), random_state=global_random_seed)
    assert 2 <= drawn.min() < drawn.max() <= 3


@settings(max_examples=40, deadline=None)
@given(hs.integers(1, 40), hs.integers(1, 20), hs.integers(1, 25), hs.integers(0, 1000))
def test_connections_are_exact(n_units, n_features, connections, seed):
    W_in = input_weights(n_units, n_features, connections=connections, random_state=seed)
    assert np.all(np.count_nonzero(W_in, axis=1) == min(connections, n_features))
    full = input_weights(n_units, n_features, random_state=seed)
    np.testing.assert_array_equal(W_in[W_in != 0], full[W_in != 0])


def test_density_and_sparse():
    W_in = input_weights(20, 10, connections=0.3, sparse=True, random_state=0)
    assert isinstance(W_in, sp.csr_array)
    assert np.all(np.diff(W_in.indptr) == 3)
    assert np.count_nonzero(input_weights(20, 10, connections=1)) == 20
    assert np.count_nonzero(input_weights(20, 10, connections=1.0)) == 200
    with pytest.raises(ValueError, match=r"connections=1\.5"):
        input_weights(3, 3, connections=1.5)
    with pytest.raises(TypeError, match="connections"):
        input_weights(3, 3, connections=True)


def test_arrays_are_taken_as_given():
    given_ = np.arange(6.0).reshape(3, 2)
    for law in (given_, given_.tolist(), sp.csr_array(given_), given_.astype(np.float32)):
        W_in = input_weights(3, 2, law=law, scaling=7.0, connections=1)
        np.testing.assert_array_equal(W_in, given_)
    W_in[0, 0] = 99.0
    assert given_[0, 0] == 0.0


def test_callables_are_scaled():
    def ones(n_units, n_features, *, random_state):
        assert isinstance(random_state, np.random.Generator)
        return np.ones((n_units, n_features))

    np.testing.assert_array_equal(input_weights(3, 2, law=ones, scaling=0.5), np.full((3, 2), 0.5))


@pytest.mark.parametrize(
    "kwargs, error, message",
    [
        ({"law": np.ones((2, 3))}, ValueError, r"shape \(3, 2\); got \(2, 3\)"),
        ({"law": [[np.nan, 0], [0, 0], [0, 0]]}, ValueError, "1 NaN or infinite"),
        ({"law": "gauss"}, ValueError, "input_weights='gauss' is not known"),
        ({"law": 3}, TypeError, r"input_weights must be one of.*callable of n_units"),
        ({"law": lambda n, m, random_state: np.ones(n)}, ValueError, r"shape \(3, 2\); got \(3,\)"),
        ({"scaling": [1.0]}, ValueError, r"shape \(2,\), one factor per feature"),
        ({"scaling": -1.0}, ValueError, "scaling=-1"),
        ({"scaling": [1.0, np.inf]}, ValueError, "finite and not negative"),
        ({"scaling": True}, TypeError, "scaling"),
    ],
)
def test_errors(kwargs, error, message):
    with pytest.raises(error, match=message):
        input_weights(3, 2, **kwargs)


@pytest.mark.parametrize("shape", [(0, 1), (1, 0), (1.5, 1), (True, 1)])
def test_shape_is_checked(shape):
    with pytest.raises((ValueError, TypeError), match=r"n_units|n_features"):
        input_weights(*shape)


def test_changing_the_scaling_keeps_the_draws():
    one = input_weights(9, 2, scaling=0.1, random_state=4)
    two = input_weights(9, 2, scaling=0.2, random_state=4)
    np.testing.assert_allclose(two, 2 * one, rtol=1e-15)


def test_heads():
    W_in = input_weights(7, 3, law="heads", scaling=[1.0, 2.0, 0.5])
    assert np.flatnonzero(W_in).tolist() == [0, 7, 14]  # units 0, 2 and 4
    assert W_in.max(axis=0).tolist() == [1.0, 2.0, 0.5]
    np.testing.assert_array_equal(input_weights(3, 3, law="heads"), np.eye(3))
    with pytest.raises(ValueError, match="n_features=3 exceeds n_units=2"):
        input_weights(2, 3, law="heads")
    with pytest.raises(ValueError, match=r'connections=1 .* input_weights="heads"'):
        input_weights(3, 3, law="heads", connections=1)


# --- bias and feedback ---


def test_bias():
    b = bias(5000, random_state=0)
    assert b.shape == (5000,)
    assert st.kstest(b, "uniform", args=(-0.1, 0.2)).pvalue > 1e-4
    np.testing.assert_array_equal(bias(3, law=[1.0, 2.0, 3.0], scaling=9.0), [1, 2, 3])
    assert np.all(bias(4, scaling=0.0) == 0)
    with pytest.raises(ValueError, match=r"bias must have shape \(3,\).*got \(2,\)"):
        bias(3, law=[1.0, 2.0])
    with pytest.raises(ValueError, match="bias='stabel' is not known"):
        bias(3, law="stabel")
    with pytest.raises(ValueError, match="scaling=-1"):
        bias(3, scaling=-1)


def test_feedback():
    W_fb = feedback_weights(50, 2, scaling=[0.0, 2.0], random_state=0)
    assert W_fb.shape == (50, 2)
    assert np.all(W_fb[:, 0] == 0)
    assert 1.5 < np.abs(W_fb).max() <= 2
    with pytest.raises(ValueError, match=r"feedback_weights must have shape"):
        feedback_weights(3, 1, law=np.ones((3, 2)))
    with pytest.raises(ValueError, match="n_outputs"):
        feedback_weights(3, 0)


# --- digits ---


@pytest.mark.parametrize("number, digits", [("pi", PI_50), ("e", E_50)])
@pytest.mark.parametrize("n_digits", [1, 2, 13, 14, 15, 28, 29, 50])
def test_digits(number, digits, n_digits):
    assert "".join(map(str, irrational_digits(n_digits, number=number))) == digits[:n_digits]


@pytest.mark.parametrize("number, value", [("pi", pi), ("e", e)])
def test_digits_agree_with_floats_and_among_themselves(number, value):
    long = irrational_digits(3000, number=number)
    assert int(value) + float("0." + "".join(map(str, long[:20]))) == value
    for n_digits in (*range(50, 200), 999, 1000, 2048):
        np.testing.assert_array_equal(irrational_digits(n_digits, number=number), long[:n_digits])


def test_digits_of_pi_against_another_formula():
    # Machin (1706): pi = 16 arctan(1/5) - 4 arctan(1/239), in integers
    unit = 10**1020

    def arctan_inverse(x):
        total, term, k = 0, unit // x, 0
        while term:
            total += (-1) ** k * (term // (2 * k + 1))
            term //= x * x
            k += 1
        return total

    digits = str(16 * arctan_inverse(5) - 4 * arctan_inverse(239))[1:1001]
    assert "".join(map(str, irrational_digits(1000))) == digits
    # the six nines, at places 762 to 767
    assert irrational_digits(767)[761:].tolist() == [9] * 6


def test_many_digits_beyond_the_limit_of_int_to_str():
    digits = irrational_digits(20_000)
    np.testing.assert_array_equal(digits, irrational_digits(31_000)[:20_000])
    assert st.chisquare(np.bincount(digits)).pvalue > 1e-4


def test_the_decimal_context_of_the_user_is_left_alone():
    before = decimal.getcontext().copy()
    irrational_digits(500)
    assert decimal.getcontext().prec == before.prec
    with decimal.localcontext(decimal.Context(prec=5, traps=[decimal.Inexact])):
        assert irrational_digits(5).tolist() == [1, 4, 1, 5, 9]


def test_signs_follow_rodan_and_tino():
    # digits 0 to 4 give minus, 5 to 9 plus; one column after the other
    signs = irrational_signs(10, 2)
    expected = [1.0 if int(d) >= 5 else -1.0 for d in PI_50[:20]]
    np.testing.assert_array_equal(signs.T.ravel(), expected)
    np.testing.assert_array_equal(signs[:, :1], irrational_signs(10, 1))
    assert not np.array_equal(signs, irrational_signs(10, 2, number="e"))
    with pytest.raises(ValueError, match="number='tau' is not known"):
        irrational_signs(3, 1, number="tau")


@pytest.mark.slow
def test_the_millionth_digit():
    assert "".join(map(str, irrational_digits(10**6)[-10:])) == "5779458151"

"""`print(certificate)`: one sentence, never more than is proved."""

import re

import numpy as np
import pytest

from reservoir import ESNRegressor, ReservoirTransformer, RNNRegressor
from reservoir.dynamics import Reservoir
from reservoir.stability import Certificate, certify, certify_loop, drive_range

pytestmark = pytest.mark.one_engine


def test_a_proof_names_the_steps_that_steps_to_proves():
    proof = certify(Reservoir(0.5 * np.eye(3), np.ones((3, 1)), np.zeros(3)), -1.0, 1.0)
    told = str(proof)
    assert told.startswith("Proved (maximum norm, 3 units): from any two starts, states differ by")
    assert f"at most 0.001 after {proof.steps_to(1e-3)} steps, for drives within [-1, 1]" in told
    assert repr(proof).startswith("Certificate(holds=True")
    own = certify(Reservoir(0.5 * np.eye(2), np.ones((2, 1)), np.zeros(2)), [-1, -2], [1, 2])
    assert str(own).endswith("for drives within [-2, 2], each within its own range")


def test_what_is_not_proved_is_not_said_to_be_false():
    told = str(certify(Reservoir([[3.0]], [[1.0]], [0.0]), -1.0, 1.0))
    assert told.startswith("Not proved: ")
    assert told.endswith("That is no proof of the opposite.")


@pytest.mark.parametrize("rate", [0.5, 0.94, 0.97654321, 0.999, 1 - 3e-7, 0.99999999])
def test_a_rate_alone_is_told_rounded_down(rate):
    one = np.ones((2, 1))
    proof = Certificate(
        True, rate, "series", "C5", one * [[-1], [1]], one[0], None, -one[0], one[0]
    )
    told = re.match(r"Proved: differences decay by ([0-9.]+) % a step in the long run", str(proof))
    share = float(told[1])
    assert 0 < share <= 100 * (1 - rate) * (1 + 1e-9)
    assert share > 90 * (1 - rate)


X = np.sin(np.arange(120.0))[:, None]
SMALL = {"n_units": 10, "spectral_radius": 0.3, "random_state": 0}


def test_a_fitted_network_is_examined_for_the_range_of_its_inputs():
    model = ESNRegressor(**SMALL).fit(X[:-1], X[1:])
    proof, ends = certify(model), (X[:-1].min(axis=0), X[:-1].max(axis=0))
    given = certify(model.reservoir_, *drive_range(model, *ends), input_range=ends)
    assert proof.holds
    assert (proof.rate, proof.shared) == (given.rate, given.shared)
    np.testing.assert_array_equal(proof.input_range, ends)
    assert str(proof).endswith("as of inputs within [-1, 1]")
    # in chunks, with times, with outputs fed back, without targets
    chunks = ESNRegressor(**SMALL).partial_fit(X[:50] / 2, X[:50, 0]).partial_fit(X, X[:, 0])
    assert certify(chunks).covers_inputs(X)
    timed = ESNRegressor(time_column=1, initial_state="zeros", leak_rate=0.5, **SMALL)
    rows = np.column_stack([X, np.arange(120.0)])
    assert certify(timed.fit(rows, X)).covers_inputs(X)
    fed = certify(ESNRegressor(feedback=True, **SMALL).fit(0 * X, X))
    np.testing.assert_array_equal(fed.output_range, [X.min(axis=0), X.max(axis=0)])
    assert certify(ReservoirTransformer(**SMALL).fit(X)).covers_inputs(X)
    trained = RNNRegressor(5, init="esn", max_iter=1, random_state=0).fit(X[:-1], X[1:])
    assert certify(trained).covers_inputs(X[:-1])


def test_what_does_not_know_its_inputs_needs_bounds():
    model = ESNRegressor(**SMALL).fit(X[:-1], X[1:])
    del model._model.progress.input_range  # as in a file of an earlier version
    model.partial_fit(X, X)
    for unknown in (model, model.reservoir_):
        with pytest.raises(
            TypeError, match=r"has no record of the range of its inputs .* Give inp"
        ):
            certify(unknown)
        assert certify(unknown, input_range=(-1, 1)).holds
        with pytest.raises(TypeError, match="drive_min and drive_max belong together"):
            certify(unknown, drive_min=-1.0)


@pytest.mark.parametrize("made", [ESNRegressor, ReservoirTransformer])
def test_no_certificate_names_the_parameter_and_the_function(made):
    model = made(**SMALL).fit(X, X)
    with pytest.raises(AttributeError, match=r'fit makes one with bias="stable".*\.certify exam'):
        model.certificate_  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'certificates_'"):
        model.certificates_  # noqa: B018


def test_a_loop_without_bounds_is_told_without_warnings():
    found = certify_loop(ESNRegressor(**SMALL).fit(X[:-1], X[1:]))
    assert not found.holds
    assert "for drives within [-inf, inf]. That is no proof" in str(found)

"""`print(certificate)`: one sentence, never more than is proved."""

import re

import numpy as np
import pytest

from reservoir.dynamics import Reservoir
from reservoir.stability import Certificate, certify


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

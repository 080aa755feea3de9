"""Numbers or labels, per row or per sequence: read, coded, decoded, scored."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, r2_score

from reservoir import ESNRegressor
from reservoir._tables import Sequences
from reservoir.estimators.targets import Labels, Numbers

OWNER = ESNRegressor()  # whose messages they are
TWO = Sequences((np.zeros((3, 1)), np.zeros((2, 1))), "list")
ONE = Sequences((np.zeros((4, 1)),), "table")


@pytest.mark.parametrize("y", [[1.0, 2.0, 3.0, 4.0], [[1.0], [2.0], [3.0], [4.0]]])
def test_numbers_keep_their_dimensions(y):
    coding, y = Numbers(), np.array(y)
    (columns,) = coding.read(OWNER, y, ONE, first=True)
    assert columns.shape == (4, 1)
    np.testing.assert_array_equal(coding.decode(columns), y)
    assert coding.for_readout(columns).shape == (4,)  # as scikit-learn likes one output
    other = y[:, None] if y.ndim == 1 else y[:, 0]
    with pytest.raises(ValueError, match="in earlier calls it had"):
        coding.read(OWNER, other, ONE, first=False)


def test_numbers_per_sequence():
    coding = Numbers(per_sequence=True)
    targets = coding.read(OWNER, np.array([1.0, 5.0]), TWO, first=True)
    assert [part.tolist() for part in targets] == [[1.0], [5.0]]
    assert [w.tolist() for w in coding.weights([2.0, 0.5], TWO, targets)] == [[2.0], [0.5]]


@pytest.mark.parametrize("classes", [["no", "yes"], [3, 1, 2], [False, True]])
@pytest.mark.parametrize(("low", "single"), [(-1.0, True), (0.0, False), (-1.0, False)])
@pytest.mark.parametrize("per_sequence", [False, True])
def test_labels_come_back(classes, low, single, per_sequence):
    coding = Labels(per_sequence=per_sequence, low=low, single=single)
    rng = np.random.default_rng(0)
    sizes = [1, 1] if per_sequence else [3, 2]
    labels = [rng.choice(classes, n) for n in sizes]
    y = np.concatenate(labels) if per_sequence else labels
    coded = coding.read(OWNER, y, TWO, first=True, classes=classes)
    assert set(np.unique(np.concatenate(coded))) <= {low, 1.0}
    assert np.atleast_2d(coded[0]).shape[1] == (1 if single and len(classes) == 2 else len(classes))
    for columns, part in zip(coded, labels, strict=True):
        np.testing.assert_array_equal(coding.decode(np.atleast_2d(columns)), part)


def test_later_labels_are_held_against_the_first_ones():
    coding = Labels()
    coding.read(OWNER, ["a", "b", "a", "b"], ONE, first=True)
    with pytest.raises(ValueError, match=r"label 'c', which is not among the classes \['a', 'b'\]"):
        coding.read(OWNER, ["a", "c", "a", "b"], ONE, first=False)
    with pytest.raises(ValueError, match="differ from the classes of the first call"):
        coding.read(OWNER, ["a", "b", "a", "b"], ONE, first=False, classes=["a", "b", "c"])
    with pytest.raises(ValueError, match="one class only"):
        Labels().read(OWNER, ["a", "a", "a", "a"], ONE, first=True)


def test_weights_of_classes_multiply_those_of_rows():
    coding = Labels(single=True)
    targets = coding.read(OWNER, [np.array([0, 0, 0]), np.array([1, 0])], TWO, first=True)
    assert coding.weights(None, TWO, targets) is None
    balanced = coding.weights(None, TWO, targets, "balanced")
    np.testing.assert_allclose(np.concatenate(balanced), [0.625, 0.625, 0.625, 2.5, 0.625])
    given = [np.array([1.0, 2.0, 3.0]), np.array([4.0, 0.0])]
    both = coding.weights(given, TWO, targets, {0: 1.0, 1: 10.0})
    np.testing.assert_array_equal(np.concatenate(both), [1, 2, 3, 40, 0])


def test_scores_are_scikit_learns():
    rng = np.random.default_rng(0)
    y, predicted, weight = rng.normal(size=(3, 20))
    weight = weight**2
    assert Numbers.score(y, predicted, weight) == r2_score(y, predicted, sample_weight=weight)
    a, b = y > 0, predicted > 0
    assert Labels.score(a, b, weight) == accuracy_score(a, b, sample_weight=weight)

"""Tasks of long memory: targets computed from the inputs, distributions, errors."""

from __future__ import annotations

import numpy as np
import pytest

from reservoir import RNNClassifier, RNNRegressor, datasets

NUMBERS = {"adding": lambda a, b: (a + b) / 2, "multiplication": lambda a, b: a * b}
LISTS = [*NUMBERS, "temporal_order"]
SYMBOLS = np.array(list("abcdXY"))


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("length", [10, 37, (10, 12), [50, 55]])
def test_lengths_seeds_and_types(name, length):
    make = getattr(datasets, name)
    X, y = make(200, length=length, random_state=1)
    low, high = (length, length) if isinstance(length, int) else length
    assert isinstance(X, list)
    assert len(X) == len(y) == 200
    assert {len(rows) for rows in X} == set(range(low, high + 1))
    width = 6 if name == "temporal_order" else 2
    for rows in X:
        assert rows.shape[1] == width
        assert rows.dtype == np.float64
        assert rows.flags.c_contiguous
        assert rows.flags.writeable
    again, other = (make(200, length=length, random_state=seed) for seed in (1, 2))
    np.testing.assert_array_equal(np.vstack(X), np.vstack(again[0]))
    np.testing.assert_array_equal(y, again[1])
    assert not np.array_equal(y, other[1])


@pytest.mark.parametrize("name", NUMBERS)
def test_targets_are_those_of_the_marked_numbers(name, global_random_seed):
    X, y = getattr(datasets, name)(500, length=(40, 44), random_state=global_random_seed)
    for rows, target in zip(X, y, strict=True):
        assert ((rows[:, 0] >= 0) & (rows[:, 0] < 1)).all()
        assert set(rows[:, 1]) == {0.0, 1.0}
        first, second = np.flatnonzero(rows[:, 1])  # two marks, no more
        assert first < len(rows) // 10 <= second < len(rows) // 2
        assert target == pytest.approx(NUMBERS[name](rows[first, 0], rows[second, 0]), abs=1e-15)


def test_marks_are_uniform():
    X, _ = datasets.adding(20_000, length=40, random_state=0)
    shares = np.mean([rows[:, 1] for rows in X], axis=0)
    np.testing.assert_allclose(shares[:4], 1 / 4, atol=0.015)  # five standard deviations
    np.testing.assert_allclose(shares[4:20], 1 / 16, atol=0.009)
    assert not shares[20:].any()


@pytest.mark.parametrize(
    ("name", "mean", "variance"), [("adding", 1 / 2, 1 / 24), ("multiplication", 1 / 4, 7 / 144)]
)
def test_what_the_best_constant_reaches(name, mean, variance):
    _, y = getattr(datasets, name)(100_000, length=10, random_state=0)
    assert y.mean() == pytest.approx(mean, abs=4e-3)
    assert y.var() == pytest.approx(variance, rel=0.02)
    if name == "adding":
        # half the sum of two uniform numbers has a triangular density: 1 - (1 - .08)^2
        assert np.mean(abs(y - mean) < 0.04) == pytest.approx(0.1536, abs=6e-3)


def test_products_are_of_the_same_inputs():
    added, product = (getattr(datasets, name)(20, random_state=5)[0] for name in NUMBERS)
    np.testing.assert_array_equal(np.vstack(added), np.vstack(product))


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("n_relevant", [2, 3])
@pytest.mark.parametrize("length", [10, 57, (100, 110)])
def test_temporal_order(length, n_relevant):
    X, y = datasets.temporal_order(2000, length=length, n_relevant=n_relevant, random_state=0)
    windows = (
        [(0.1, 0.2), (0.5, 0.6)] if n_relevant == 2 else [(0.1, 0.2), (0.33, 0.43), (0.66, 0.76)]
    )
    for rows, label in zip(X, y, strict=True):
        assert (rows.sum(axis=1) == 1).all()
        assert set(rows.ravel()) == {0.0, 1.0}
        places = np.flatnonzero(rows[:, 4:].any(axis=1))
        assert "".join(SYMBOLS[rows[places].argmax(axis=1)]) == label
        for place, (low, high) in zip(places, windows, strict=True):
            assert int(low * len(rows) + 1e-9) <= place < high * len(rows)
    labels, counts = np.unique(y, return_counts=True)
    assert len(labels) == 2**n_relevant
    np.testing.assert_allclose(counts / 2000, 0.5**n_relevant, atol=0.035)
    distractors = np.vstack(X)[:, :4].mean(axis=0)
    np.testing.assert_allclose(distractors, distractors.mean(), rtol=0.05)


@pytest.mark.parametrize("name", LISTS)
def test_errors(name):
    make = getattr(datasets, name)
    for text in (make.__doc__, datasets.__doc__):
        assert "random_state" in text
    assert "Solved:" in make.__doc__
    with pytest.raises(ValueError, match="n_sequences=0 must be at least 1"):
        make(0)
    with pytest.raises(ValueError, match="length=9 must be at least 10"):
        make(2, length=9)
    with pytest.raises(ValueError, match="length=9 must be at least 10"):
        make(2, length=(9, 20))
    with pytest.raises(ValueError, match=r"length=\(20, 10\) must be \(shortest, longest\)\. Swap"):
        make(2, length=(20, 10))
    with pytest.raises(ValueError, match=r"length=\(20,\) must be a number or a pair"):
        make(2, length=(20,))
    with pytest.raises(TypeError, match="length must be an integer"):
        make(2, length=20.5)


def test_temporal_order_of_other_numbers_of_symbols_raises():
    with pytest.raises(ValueError, match="n_relevant=4 must be 2 or 3"):
        datasets.temporal_order(2, n_relevant=4)


@pytest.mark.both_engines
def test_trained_networks_take_them_as_they_come():
    X, y = datasets.adding(12, length=(10, 12), random_state=0)
    network = RNNRegressor(3, target="last", max_iter=1, random_state=0)
    assert network.fit(X, y).predict(X).shape == (12,)
    X, y = datasets.temporal_order(12, length=(10, 12), random_state=0)
    labels = RNNClassifier(3, target="last", max_iter=1, random_state=0).fit(X, y).predict(X)
    assert set(labels) <= {"XX", "XY", "YX", "YY"}

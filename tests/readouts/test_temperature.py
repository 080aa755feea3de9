"""One temperature for the scores of classes: known values, and extreme scores."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import softmax
from sklearn.metrics import log_loss

from reservoir.readouts.temperature import fitted_temperature, probabilities


def labelled(temperature, n=20000, n_classes=4, seed=0):
    """Scores, and labels drawn with the probabilities of their softmax at a temperature."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, n_classes))
    p = softmax(scores / temperature, axis=1)
    labels = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return scores, labels


def columns_of(labels, n_classes):
    return 2.0 * (labels[:, None] == np.arange(n_classes)) - 1


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("temperature", [0.05, 0.4, 1.0, 3.0])
def test_a_known_temperature_is_found(temperature, global_random_seed):
    n, found = 3000, []
    for k in range(40):
        scores, labels = labelled(temperature, n, seed=[global_random_seed, k])
        found.append(1 / fitted_temperature(scores, columns_of(labels, 4)))

    # What likelihood theory says of the error of 1 / temperature, from many scores.
    scores, _ = labelled(temperature, 100_000)

    def mean_score(sharpness):
        return (softmax(sharpness * scores, axis=1) * scores).sum(axis=1).mean()

    p = probabilities(scores, temperature)
    variance = (p * scores**2).sum(axis=1) - (p * scores).sum(axis=1) ** 2
    error = 1 / np.sqrt(n * variance.mean())
    # labels count as certain to 1 - 1 / (n + 2), which moves sharp scores by one error
    centre = scores.mean()
    wanted = centre + (1 - 1 / (n + 2)) * (mean_score(1 / temperature) - centre)
    expected = brentq(lambda b: mean_score(b) - wanted, 0.5 / temperature, 2 / temperature)
    assert np.mean(found) == pytest.approx(expected, abs=5 * error / np.sqrt(40))
    assert 0.5 * error < np.std(found) < 2 * error


@pytest.mark.parametrize("weighted", [False, True])
def test_no_other_temperature_is_more_probable(weighted, global_random_seed):
    scores, labels = labelled(0.7, n=3000, seed=global_random_seed)
    weights = (
        np.random.default_rng(global_random_seed).integers(0, 4, 3000)
        if weighted
        else np.ones(3000)
    )
    at = fitted_temperature(scores, columns_of(labels, 4), weights)
    losses = [
        log_loss(labels, probabilities(scores, at * f), sample_weight=weights)
        for f in (0.97, 1.0, 1.03)
    ]
    assert losses[1] == min(losses)
    # in any unit of the weights
    assert fitted_temperature(scores, columns_of(labels, 4), weights * 1e-200) == pytest.approx(at)


def test_two_classes_have_one_column_or_two():
    scores, labels = labelled(0.5, n=4000, n_classes=2)
    one = (scores[:, 1:] - scores[:, :1]) / 2
    column = 2.0 * labels[:, None] - 1
    single = fitted_temperature(one, column)
    assert single == pytest.approx(fitted_temperature(scores, columns_of(labels, 2)))
    np.testing.assert_allclose(
        probabilities(one, single), softmax(scores / single, axis=1), rtol=1e-9
    )


@pytest.mark.parametrize("unit", [1e-150, 1.0, 1e150])
def test_scores_in_other_units_have_another_temperature(unit):
    scores, labels = labelled(0.5, n=300)
    at = fitted_temperature(unit * scores, columns_of(labels, 4))
    assert at == pytest.approx(unit * fitted_temperature(scores, columns_of(labels, 4)))
    assert np.isfinite(probabilities(unit * scores, at)).all()


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("n", [1, 10, 100, 10000])
def test_scores_without_error_do_not_make_certainty(n, n_classes):
    labels = np.arange(n) % n_classes
    columns = columns_of(labels, n_classes)
    p = probabilities(columns, fitted_temperature(columns, columns))
    right = p[np.arange(n), labels]
    # as probable as said: all but the others' shares of 1 / (n + 2); as likely on average
    shares = (np.bincount(labels, minlength=n_classes) + 1) / (n + n_classes)
    expected = 1 - (1 - shares[labels].mean()) / (n + 2)
    np.testing.assert_allclose(right, expected, rtol=1e-6)


def test_rows_in_order_count_by_their_runs_of_labels():
    labels = np.repeat([0, 1, 0, 1], 50)
    columns = columns_of(labels, 2)
    for order, n in ((labels, 8), (labels[np.argsort(np.arange(200) % 50, kind="stable")], 200)):
        columns = columns_of(order, 2)
        p = probabilities(columns, fitted_temperature(columns, columns, in_order=True))
        np.testing.assert_allclose(p.max(axis=1), 1 - 0.5 / (n + 2), rtol=1e-6)


def test_a_rare_class_is_not_made_probable_by_few_runs():
    labels = np.repeat([0, 1, 0], [150, 10, 140])
    columns = columns_of(labels, 2)
    p = probabilities(columns, fitted_temperature(columns, columns, in_order=True))
    assert p[labels == 0, 1].max() < 0.03


def test_useless_scores_make_classes_equally_probable(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    scores, labels = rng.normal(size=(400, 3)), rng.integers(0, 3, 400)
    for wrong in (scores, -columns_of(labels, 3)):
        p = probabilities(wrong, fitted_temperature(wrong, columns_of(labels, 3)))
        assert np.isfinite(p).all()
        assert np.abs(p - 1 / 3).max() < 0.2
    nothing = np.zeros((400, 3))
    assert fitted_temperature(nothing, columns_of(labels, 3)) == 1.0
    assert fitted_temperature(nothing[:0], nothing[:0]) == 1.0
    assert fitted_temperature(scores, columns_of(labels, 3), np.zeros(400)) == 1.0

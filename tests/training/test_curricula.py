"""Curricula: the data of the first epochs of training."""

import re
from dataclasses import dataclass, field

import numpy as np
import pytest

from reservoir.training import trainer
from reservoir.training.bptt import Network
from reservoir.training.cells import SimpleCell, bidirectional
from reservoir.training.curricula import Curriculum, EasyFirst, GrowingLength
from reservoir.training.initializers import initialize
from reservoir.training.optimizers import adam, sgd
from reservoir.training.trainer import Data, train

pytestmark = pytest.mark.one_engine
LENGTHS = (9, 3, 12, 5, 7, 4)


def data(weights=None, last=False):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 2)) for n in LENGTHS]
    y = [x[-1, :1] if last else x[:, :1] for x in X]
    return Data(X, y, weights, rng.normal(size=(len(X), 4)), last)


def start(seed=0):
    network = Network(SimpleCell(4), 2, 1)
    return network, initialize(network.weights(), "orthogonal", random_state=seed)


@pytest.mark.parametrize("last", [False, True])
def test_shares_grow_by_equal_parts_and_sequences_keep_what_is_theirs(last):
    weights = [np.full(1 if last else n, 1.0 + n) for n in LENGTHS]
    whole = data(weights, last)
    plan = EasyFirst(n_epochs=4, first=0.2)
    sizes = [len(plan.of_epoch(whole, epoch)) for epoch in range(1, 7)]
    assert sizes == [2, 3, 4, 5, 6, 6]  # ceil of 1.2, 2.4, 3.6, 4.8; then all
    part = plan.of_epoch(whole, 2)
    chosen = [1, 3, 5]  # the shortest, in their order
    for k, i in enumerate(chosen):
        assert part.inputs[k] is whole.inputs[i]
        assert part.targets[k] is whole.targets[i]
        assert part.weights[k] is whole.weights[i]
        np.testing.assert_array_equal(part.starts[k], whole.starts[i])
    assert part.last == last
    assert plan.of_epoch(whole, 5) is whole


def test_a_custom_difficulty():
    whole = data()
    plan = EasyFirst(n_epochs=1, first=0.5, difficulty=lambda X, y: -len(X) + 0.0 * y.sum())
    assert [len(X) for X in plan.of_epoch(whole, 1).inputs] == [9, 12, 7]
    bad = EasyFirst(n_epochs=1, difficulty=lambda X, y: np.nan if len(X) == 12 else 1.0)
    with pytest.raises(ValueError, match="NaN for sequence 2"):
        bad.of_epoch(whole, 1)


def test_lengths_grow_to_the_longest():
    whole = data([np.arange(n) * 1.0 for n in LENGTHS])
    plan = GrowingLength(n_epochs=4, first=2)
    longest = [max(map(len, plan.of_epoch(whole, epoch).inputs)) for epoch in range(1, 6)]
    assert longest == [2, 5, 7, 10, 12]
    part = plan.of_epoch(whole, 2)
    for k, n in enumerate(LENGTHS):
        for ours, theirs in (
            (part.inputs, whole.inputs),
            (part.targets, whole.targets),
            (part.weights, whole.weights),
        ):
            np.testing.assert_array_equal(ours[k], theirs[k][: min(n, 5)])
    assert part.starts is whole.starts
    # a first part that is longer than all sequences is all of them
    assert list(map(len, GrowingLength(2, first=50).of_epoch(whole, 1).inputs)) == list(LENGTHS)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("plan", [EasyFirst(3, first=0.5), GrowingLength(3, first=4)])
def test_training_is_that_on_the_parts_one_after_the_other(plan, seed):
    """By plain gradient steps, which keep nothing from epoch to epoch."""
    network, params = start(seed)
    whole = data()
    options = {"batch_size": 10, "clip_norm": None}  # one step per epoch: no order is drawn
    done = train(network, params, whole, sgd(0.01), max_iter=5, curriculum=plan, **options)
    now = params
    for epoch in range(1, 6):
        part = plan.of_epoch(whole, epoch)
        now = train(network, now, part, sgd(0.01), max_iter=1, **options).params
    assert done.best_epoch == 5
    for name, array in now.items():
        np.testing.assert_allclose(done.params[name], array, rtol=1e-12, atol=1e-14)


def test_nothing_ends_for_want_of_improvement_before_it_is_over():
    network, params = start()
    whole = data()
    options = {"max_iter": 30, "n_iter_no_change": 2, "random_state": 0}
    still = adam(1e-12)  # nothing improves
    assert train(network, params, whole, still, **options).n_epochs == 2
    plan = EasyFirst(n_epochs=8)
    assert train(network, params, whole, still, curriculum=plan, **options).n_epochs == 10


@pytest.mark.parametrize("seed", range(5))
def test_what_was_reached_before_its_end_is_no_place_to_go_back_to(seed, monkeypatch):
    """Few short sequences and many long ones want opposite outputs: the parts mislead."""
    rng = np.random.default_rng(3)
    X = [rng.normal(size=(n, 2)) for n in (5,) * 6 + (30,) * 4]
    whole = Data(X, [np.full((len(x), 1), 3.0 if len(x) == 5 else -0.3) for x in X])
    went_back, go_back = [], trainer._Steps.go_back

    def spy(self, done, evaluator):
        went_back.append(go_back(self, done, evaluator))
        return went_back[-1]

    monkeypatch.setattr(trainer._Steps, "go_back", spy)
    network, params = start(seed)
    plan, options = EasyFirst(7, first=0.05), {"batch_size": 2, "random_state": seed}
    done = train(network, params, whole, adam(0.05), max_iter=12, curriculum=plan, **options)
    assert done.losses[8] > 2 * min(done.losses[:8])  # lost, in view of what misled
    assert went_back == [False] * 5
    assert done.losses[done.best_epoch] == min(done.losses)


def test_truncation_of_future_rows_raises():
    network = Network(bidirectional("rnn").cell(lambda name: SimpleCell(4)), 2, 1)
    params = initialize(network.weights(), "orthogonal", random_state=0)
    whole = Data(data().inputs, data().targets)
    with pytest.raises(ValueError, match=r"shortens sequences, .* Use EasyFirst"):
        train(network, params, whole, adam(0.01), max_iter=4, curriculum=GrowingLength(2, first=3))
    assert train(network, params, whole, adam(0.01), max_iter=3, curriculum=EasyFirst(2)).losses


@pytest.mark.parametrize("n", [7, 10, 30, 70, 140])
def test_shares_are_not_moved_by_rounding(n):
    X = [np.ones((1 + k, 1)) for k in range(n)]
    for n_epochs in range(2, 11):
        for first in (1, 2, 3, 5):  # tenths
            for epoch in range(1, n_epochs + 1):
                exact = -(-n * (first * n_epochs + (10 - first) * (epoch - 1)) // (10 * n_epochs))
                plan = EasyFirst(n_epochs, first=first / 10)
                assert len(plan.of_epoch(Data(X, X), epoch)) == exact


@dataclass(frozen=True)
class Backwards(Curriculum):
    """A toy: one sequence per epoch, the last one first."""

    n_epochs: int
    played: list = field(default_factory=list)

    def part(self, data, epoch):
        self.played.append(epoch)
        return data.picked(np.array([len(data) - epoch]))


def test_a_toy_is_played():
    network, params = start()
    toy = Backwards(3)
    done = train(network, params, data(), adam(0.01), max_iter=6, curriculum=toy)
    assert toy.played == [1, 2, 3]
    assert done.n_epochs == 6
    assert done.losses[-1] < done.losses[0]


def test_errors():
    network, params = start()
    for make, message in (
        (lambda: EasyFirst(0), "n_epochs"),
        (lambda: EasyFirst(3, first=0.0), "first=0"),
        (lambda: EasyFirst(3, first=1.5), "first=1.5"),
        (lambda: GrowingLength(3, first=0), "first"),
        (lambda: GrowingLength(-1, first=2), "n_epochs"),
    ):
        with pytest.raises(ValueError, match=message):
            make()
    with pytest.raises(ValueError, match=r"one target, for its last step\. Use EasyFirst"):
        GrowingLength(2, first=1).of_epoch(data(last=True), 1)
    with pytest.raises(
        ValueError, match=re.escape("max_iter=3 is too small: EasyFirst(n_epochs=3")
    ):
        train(network, params, data(), adam(0.01), max_iter=3, curriculum=EasyFirst(3))
    washed = [np.where(np.arange(n) < 3, 0.0, 1.0) for n in LENGTHS]
    with pytest.raises(ValueError, match="selects no target for epoch 1"):
        GrowingLength(4, first=2).of_epoch(data(washed), 1)
    assert train(network, params, data(), adam(0.01), max_iter=0, curriculum=EasyFirst(3)).losses
    with pytest.raises(TypeError, match=r"curriculum='easy' must be an object of .*curricula"):
        train(network, params, data(), adam(0.01), max_iter=3, curriculum="easy")

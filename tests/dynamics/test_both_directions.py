"""A reservoir that runs in both directions: features, long sequences in parts, groups."""

import numpy as np
import pytest

from reservoir.building import build_reservoir
from reservoir.dynamics import both_directions, run
from reservoir.dynamics._extremes import StatesError
from reservoir.dynamics.both_directions import BothDirections
from reservoir.dynamics.feature_source import Run
from reservoir.dynamics.features import DrivenReservoir

pytestmark = pytest.mark.both_engines
AUGMENTS = [None, "square", "even_square"]


def source_of(augment=None, include_input=True, **options):
    reservoir = build_reservoir(12, 2, random_state=0, **options)
    return BothDirections(DrivenReservoir(reservoir, include_input, augment))


def inputs(n_rows, seed=1):
    return np.random.default_rng(seed).normal(size=(n_rows, 2))


def augmented(augment, states):
    if augment == "square":
        return np.hstack([states, states**2])
    if augment == "even_square":
        states = states.copy()
        states[:, ::2] **= 2
    return states


def by_hand(source, rows, start):
    """Features of a whole sequence, from two runs."""
    one = source.source
    ahead = run(one.reservoir, rows, initial_state=start[:12])
    back = run(one.reservoir, rows[::-1], initial_state=start[12:])[::-1]
    seen = [augmented(one.augment, ahead), *([rows] if one.include_input else [])]
    return np.hstack([*seen, augmented(one.augment, back)]), np.hstack([ahead, back])


def collected(blocks, lengths, width):
    """All features, and the last state of each sequence."""
    rows, ends = [np.full((n, width), np.nan) for n in lengths], [None] * len(lengths)
    for index, start, features, end in blocks:
        rows[index][start : start + len(features)] = features
        features[:] = np.nan  # the caller may change the block
        ends[index] = end
    return rows, ends


@pytest.mark.parametrize("augment", AUGMENTS)
@pytest.mark.parametrize("include_input", [True, False])
@pytest.mark.parametrize("size", [2**22, 12 * 100, 12 * 700, 1])
def test_features_are_those_of_two_runs(augment, include_input, size, monkeypatch):
    """However the run backwards is cut into parts."""
    monkeypatch.setattr(both_directions, "_PART_SIZE", size)
    n_rows = 40 if size == 1 else 1300
    source, rows = source_of(augment, include_input), inputs(n_rows)
    start = np.linspace(-0.5, 0.5, 24)
    blocks = ((0, *block) for block in source.iter_features(rows, start))
    (found,), (end,) = collected(blocks, [n_rows], source.width)
    expected, states = by_hand(source, rows, start)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
    np.testing.assert_allclose(end, states[-1], rtol=0, atol=1e-13)
    n_seen = 24 if augment == "square" else 12
    columns = [None] * n_seen + [0, 1] * include_input + [None] * n_seen
    assert [source.input_column(j) for j in range(source.width)] == columns


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("size", [2**22, 8 * 12 * 50])
@pytest.mark.parametrize("augment", AUGMENTS[:2])
def test_sequences_side_by_side_are_sequences_alone(augment, size, monkeypatch):
    """Groups of short sequences; with the second size, long ones run one by one."""
    monkeypatch.setattr(both_directions, "_PART_SIZE", size)
    source = source_of(augment)
    lengths = [1, 60, *range(20, 55), 700, 51]
    series = [inputs(n, seed=n) for n in lengths]
    starts = list(np.random.default_rng(0).uniform(-1, 1, (len(series), 24)))
    runs = [Run()] * len(series)
    blocks = source.iter_many_features(series, starts, runs)
    found, ends = collected(blocks, lengths, source.width)
    states = source.states(series, starts, runs)
    for k, rows in enumerate(series):
        expected, both = by_hand(source, rows, starts[k])
        np.testing.assert_allclose(found[k], expected, rtol=0, atol=1e-13)
        np.testing.assert_allclose(states[k], both, rtol=0, atol=1e-13)
        np.testing.assert_allclose(ends[k], both[-1], rtol=0, atol=1e-13)


def test_noise_is_that_of_the_generator():
    source, rows = source_of(), inputs(900)
    start = np.zeros(24)

    def noisy(seed):
        noise = Run(noise=0.1, generator=np.random.default_rng(seed))
        blocks = ((0, *block) for block in source.iter_features(rows, start, noise))
        return collected(blocks, [900], source.width)[0][0]

    found = noisy(0)
    np.testing.assert_array_equal(noisy(0), found)
    apart = found - by_hand(source, rows, start)[0]
    for states in (apart[:, :12], apart[:, 14:]):  # of each run
        assert 0.05 < states.std() < 0.3
    np.testing.assert_array_equal(apart[:, 12:14], 0)


def test_steps_of_a_run_backwards_that_overflows_count_from_the_last_row(monkeypatch):
    monkeypatch.setattr(both_directions, "_PART_SIZE", 12 * 100)
    source = source_of(activation="identity", spectral_radius=5.0, bias_scaling=0.0)
    rows = np.zeros((500, 2))
    start = np.concatenate([np.zeros(12), np.ones(12)])
    with pytest.raises(StatesError, match=r"^In the run backwards: .* not finite from step 4\d\d"):
        list(source.iter_features(rows, start))
    with pytest.raises(StatesError, match=r"^In the run backwards: .* not finite from step 4\d\d"):
        source.states([rows, rows], [start, start], [Run()] * 2)

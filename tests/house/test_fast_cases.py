"""The fast set: of products of parameters each pair, or what a mark says; the rest is slow."""

import os
import subprocess
import sys
from itertools import combinations, product
from pathlib import Path

import pytest

from helpers.fast_cases import cover

TESTS = Path(__file__).parents[1]
MANY = """
import pytest
many = pytest.mark.parametrize

@many("c", range(4))
@many("a, b", [(0, 1), (2, 3), (4, 5)])
@many("d", "xy")
def test_pairs(a, b, c, d): pass

@pytest.mark.fast_cases("values")
@many("a", range(4))
@many("b", range(6))
def test_values(a, b): pass

@pytest.mark.fast_cases(3)
@many("a", range(9))
def test_three(a): pass

@many("a", [*range(4), pytest.param(4, marks=pytest.mark.slow)])
def test_all(a): pass

def test_alone(): pass
"""


def collected(folder, *options):
    """Return the names of the tests that pytest collects there."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "conftest", "--collect-only", *options]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    run = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    return {line.split("::")[1] for line in run.stdout.splitlines() if "::" in line}


def test_the_fast_set_holds_each_pair_and_the_slow_one_the_rest(tmp_path):
    (tmp_path / "test_many.py").write_text(MANY)
    fast = collected(tmp_path, "-m", "not slow")
    slow = collected(tmp_path, "-m", "slow", "-k", "pairs or three or all")
    assert not fast & slow
    n_fast = {name: sum(name in test for test in fast) for name in ("pairs", "three", "all")}
    n_slow = {name: sum(name in test for test in slow) for name in n_fast}
    assert n_slow == {"pairs": 24 - n_fast["pairs"], "three": 6, "all": 1}

    cases = [test[11:-1].split("-") for test in fast if "pairs" in test]
    values = "xy", ("0-1", "2-3", "4-5"), "0123"
    cases = [(d, f"{a}-{b}", c) for d, a, b, c in cases]
    for i, j in combinations(range(3), 2):
        assert {(case[i], case[j]) for case in cases} == set(product(values[i], values[j]))
    assert len(cases) == 12

    assert len([test for test in fast if "values" in test]) == 6
    assert {test for test in fast if "three" in test} == {f"test_three[{a}]" for a in (0, 3, 6)}
    assert {test for test in fast if "all" in test} == {f"test_all[{a}]" for a in range(4)}
    assert "test_alone" in fast


@pytest.mark.parametrize("sets", [[{1}, {1, 2}, {3}], [set()], []])
def test_a_cover_holds_all(sets):
    chosen = cover(sets)
    assert set().union(*sets) == set().union(*(sets[i] for i in chosen))
    assert chosen == sorted(set(chosen)) == ([1, 2] if len(sets) == 3 else [])

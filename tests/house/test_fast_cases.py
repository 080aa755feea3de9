"""The fast set of cases: each pair of parameters, or those of a mark; the others are slow."""

import os
import subprocess
import sys
from itertools import combinations, product
from pathlib import Path
from types import SimpleNamespace

import pytest

from helpers.fast_cases import add_nothing, choose, cover, spread

TESTS = Path(__file__).parents[1]
MANY = """
import pytest
many = pytest.mark.parametrize

@many("c", range(4))
@many("a, b", [(0, 1), (2, 3), (4, 5)])
@many("d", "xy")
def test_pairs(a, b, c, d): pass

@pytest.mark.sweep
def test_rare(): pass

@pytest.mark.slow_cases(2)
@many("a", range(6))
def test_long(a): pass

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


@pytest.mark.slow
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
    # what adds no pair is in neither, nor what is marked so
    sweeps = collected(tmp_path, "-m", "sweep")
    n_sweeps = {name: sum(name in test for test in sweeps) for name in n_fast}
    assert n_sweeps == {"pairs": 24 - n_fast["pairs"], "three": 0, "all": 0}
    assert len([test for test in sweeps if "values" in test]) == 18
    assert len([test for test in sweeps if "long" in test]) == 4
    slow = collected(tmp_path, "-m", "slow")
    assert "test_rare" in sweeps < slow
    assert len([test for test in slow if "long" in test]) == 6


@pytest.mark.parametrize("sets", [[{1}, {1, 2}, {3}], [set()], []])
def test_a_cover_holds_all(sets):
    chosen = cover(sets)
    assert set().union(*sets) == set().union(*(sets[i] for i in chosen))
    assert chosen == sorted(set(chosen)) == ([1, 2] if len(sets) == 3 else [])


def test_few_cases_hold_many_values():
    """Every fourth of a product may always have one value: other cases are taken then."""
    pairs = [{a, b} for a in "abcd" for b in "wxyz"]
    assert set().union(*(pairs[i] for i in spread(pairs, 4))) == set("abcdwxyz")
    assert spread([{a} for a in range(9)], 3) == [0, 3, 6]
    assert spread([{0}, {1}], 5) == [0, 1]


def case_of(names, mark=None, **params):
    callspec = SimpleNamespace(_idlist=names, params=params)
    return SimpleNamespace(get_closest_marker=lambda _: mark, callspec=callspec)


def test_one_seed_stands_for_all():
    items = [case_of([a, str(k)], seed=k) for a in "ab" for k in range(3)]
    chosen = choose(items)
    assert [item.callspec._idlist for item in chosen] == [["a", "0"], ["b", "0"]]
    assert add_nothing(items, chosen) == []  # the others are slow
    assert len(choose([case_of([str(k)], seed=k) for k in range(3)])) == 1
    assert len(choose([case_of([str(k)], number=k) for k in range(3)])) == 3


@pytest.mark.parametrize(("wanted", "n_cases"), [(None, 12), ("values", 4), (2, 2)])
def test_cases_are_chosen_as_marked(wanted, n_cases):
    mark = wanted and SimpleNamespace(args=[wanted])
    items = [case_of(names, mark) for names in product("01", "xyz", "abcd")]
    chosen = choose(items)
    assert len(chosen) == n_cases
    left_out = add_nothing(items, chosen)
    others = [item.callspec._idlist for item in items if item not in left_out]
    assert len(others) == (4 if wanted == "values" else 12)
    if wanted != "values":
        for i, j in combinations(range(3), 2):
            assert len({(case[i], case[j]) for case in others}) == {1: 6, 2: 8, 3: 12}[i + j]

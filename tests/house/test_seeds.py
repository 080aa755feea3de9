"""The seeds of `global_random_seed`: one, given ones, or one shared by all processes."""

import os
import re
import subprocess
import sys

import pytest

import conftest
from helpers import ROOT


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("", [0]), ("42", [42]), ("0-9", range(10)), ("7-7", [7]), ("all", range(100))],
)
def test_seeds_are_those_that_are_named(text, seeds):
    assert list(conftest.seeds_from({conftest.SEED: text})) == list(seeds)
    assert list(conftest.seeds_from({})) == [0]


@pytest.mark.parametrize("text", ["100", "9-0", "one", "-1", "1,2"])
def test_other_settings_raise(text):
    with pytest.raises(ValueError, match=f"RESERVOIR_TEST_SEED={text} is neither"):
        conftest.seeds_from({conftest.SEED: text})


def test_any_draws_once_for_all_processes():
    seen = set()
    for _ in range(200):
        environ = {conftest.SEED: "any"}
        (seed,) = conftest.seeds_from(environ)
        assert list(conftest.seeds_from(environ)) == [seed]  # as a worker reads it
        seen.add(seed)
    assert seen <= set(range(100))
    assert len(seen) > 50  # 87 are expected


def test_the_seed_is_the_tests_parameter(global_random_seed, request):
    assert global_random_seed in conftest.SEEDS
    assert request.node.name.endswith(f"[seed{global_random_seed}]")


@pytest.mark.slow
def test_workers_collect_the_seed_that_is_printed():
    test = "tests/house/test_seeds.py::test_the_seed_is_the_tests_parameter"
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-n", "2", "-p", "no:cacheprovider", test],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, conftest.SEED: "any"},
    )
    assert run.returncode == 0, run.stdout
    (seed,) = re.findall(r"global_random_seed: RESERVOIR_TEST_SEED=(\d+)$", run.stdout, re.M)
    assert f"PASSED {test}[seed{seed}]" in run.stdout

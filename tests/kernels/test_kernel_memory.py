"""Compiled kernels stay inside their arrays, and check the arrays that they receive."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import reservoir
from helpers import ROOT
from reservoir import _kernels
from reservoir._kernels import _calls

pytest.importorskip("numba")
if _kernels.disabled():
    pytest.skip("NUMBA_DISABLE_JIT", allow_module_level=True)

guards = pytest.mark.skipif(sys.platform == "win32", reason="pages are guarded by mprotect")
SCRIPT = ROOT / "tests" / "helpers" / "guarded_kernels.py"


def child(what):
    folders = str(Path(reservoir.__file__).parents[1]), os.environ.get("PYTHONPATH", "")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    return subprocess.run(
        [sys.executable, SCRIPT, what],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.slow
@guards
def test_kernels_stay_inside_their_arrays():
    done = child("100")
    assert done.returncode == 0, done.stdout[-100:] + done.stderr


@pytest.mark.slow
@guards
def test_whoever_leaves_an_array_is_caught():
    done = child("leave")
    assert done.returncode < 0
    assert done.stdout.strip() == "nothing happened"


CALLS = {
    "simple_forward": ("H", "V", "G", "W", "tanh", "leak"),
    "simple_backward": ("D", "V", "W", "tanh", "leak", "extra"),
    "lstm_forward": ("H", "C", "V", "G", "W", "peephole"),
    "lstm_backward": ("D", "d_cell", "G", "C", "V", "W", "peephole"),
    "gru_forward": ("H", "G", "V", "W", "bias"),
    "gru_backward": ("D", "G", "H", "V", "W"),
}


def shapes_for(name, n_steps=5, n_sequences=3, n_units=5):
    n_gates = {"simple": 1, "lstm": 4, "gru": 3}[name.split("_")[0]]
    per_unit = dict.fromkeys(("V", "D", "extra"), (n_steps, n_sequences, n_units))
    states = dict.fromkeys(("H", "C"), (n_steps + 1, n_sequences, n_units))
    weights = {"W": (n_gates * n_units, n_units), "leak": (n_units,), "bias": (n_units,)}
    gates = {"G": (n_steps, n_sequences, n_gates * n_units), "peephole": (3, n_units)}
    return {**per_unit, **states, **weights, **gates, "d_cell": (n_sequences, n_units)}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    "other", [{k: v} for k, v in (("n_steps", 4), ("n_sequences", 4), ("n_units", 9))], ids=str
)
def test_shapes_that_do_not_fit_raise(name, other):
    """Where the NumPy loops raise, kernels wrote behind the end: "double free or corruption"."""
    fit, misfit = shapes_for(name), shapes_for(name, **other)
    arrays = {part: np.zeros(shape) for part, shape in fit.items()}
    run_with = getattr(_kernels, name)
    run_with(*({"tanh": "tanh", **arrays}[part] for part in CALLS[name]))
    for part in CALLS[name]:
        if part != "tanh" and misfit[part] != fit[part]:
            given = {"tanh": "tanh", **arrays, part: np.zeros(misfit[part])}
            with pytest.raises(ValueError, match="but must have shape"):
                run_with(*(given[part] for part in CALLS[name]))


def test_files_of_code_name_their_content(tmp_path):
    """Two processes choose one file at the same time: each then finds its own code, or none."""
    from reservoir._kernels._compile import _Files

    ours, theirs = (_Files(str(tmp_path), "kernel", "stamp") for _ in range(2))
    save_data = ours._save_data

    def after_the_others(name, data):
        theirs._load_index = dict  # read before ours was there
        theirs.save("theirs", "their code")
        save_data(name, data)

    ours._save_data = after_the_others
    ours.save("ours", "our code")
    del theirs._load_index
    assert theirs.load("theirs") is None
    theirs.save("theirs", "their code")
    assert theirs.load("theirs") == "their code"
    assert ours.load("ours") is None
    del ours._save_data
    ours.save("ours", "our code")
    assert (ours.load("ours"), theirs.load("theirs")) == ("our code", "their code")


def test_versions_are_not_mixed(monkeypatch):
    """Kernels that come from the disk later than what calls them must be of the same version."""
    _calls.compiled.cache_clear()
    monkeypatch.setattr(_calls, "sources", lambda: "another version")
    with pytest.raises(_calls.FilesChanged, match="restart Python"):
        _kernels.load()
    with pytest.raises(_calls.FilesChanged, match="restart Python"):
        _kernels.gru_forward(*(np.zeros(shapes_for("gru")[part]) for part in CALLS["gru_forward"]))
    monkeypatch.undo()
    assert _kernels.load()

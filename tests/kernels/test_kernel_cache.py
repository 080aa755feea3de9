"""The disk cache of compiled kernels: a damaged file is treated as a missing one.

Without this, numba raises the error of unpickling at each call until the file is removed, and runs
machine code with a wrong bit.
"""

import gc
import importlib.util
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import reservoir
from reservoir import _kernels

pytest.importorskip("numba")
if _kernels.disabled():
    pytest.skip("NUMBA_DISABLE_JIT", allow_module_level=True)

import numba

from reservoir._kernels import _compile

INDEX, DATA = ".nbi", ".nbc"
SEEDS = range(5)


def cut(path, rng):
    path.write_bytes(path.read_bytes()[: rng.integers(1, path.stat().st_size)])


def flip(path, rng):
    text = bytearray(path.read_bytes())
    text[rng.integers(len(text))] ^= 1 << rng.integers(8)
    path.write_bytes(text)


def fill(path, rng):
    path.write_bytes(rng.bytes(path.stat().st_size))


def zero(path, rng):
    path.write_bytes(bytes(path.stat().st_size))


def lengthen(path, rng):
    path.write_bytes(path.read_bytes() + rng.bytes(9))


def become_a_directory(path, rng):
    path.unlink()
    path.mkdir()


def become_a_link_to_nowhere(path, rng):
    path.unlink()
    try:
        path.symlink_to(path.with_name("nowhere"))
    except OSError:  # Windows lets not everybody
        pytest.skip("no right to make links")


DAMAGES = {
    "cut": cut,
    "empty": lambda path, rng: path.write_bytes(b""),
    "zeros": zero,
    "random bytes": fill,
    "one bit": flip,
    "longer": lengthen,
    "another pickle": lambda path, rng: path.write_bytes(pickle.dumps(["another"])),
    "text": lambda path, rng: path.write_text("<html>404</html>"),
    "unreadable": lambda path, rng: path.chmod(0),  # root reads it all the same
    "missing": lambda path, rng: path.unlink(),
    "a directory": become_a_directory,
    "a link": become_a_link_to_nowhere,
}
if sys.platform == "win32":
    del DAMAGES["unreadable"]  # modes make files read-only there, no more
damages = pytest.mark.parametrize("damage", DAMAGES)


def all_sound(folder):
    """Whether a folder holds whole files of the cache and nothing else."""
    paths = [path for path in folder.rglob("*") if not path.is_dir() or path.suffix]
    for path in paths:
        _compile._check_sum(str(path))  # raises
    return {path.suffix for path in paths} == {INDEX, DATA}


# --- files


def files_in(folder, stamp="stamp"):
    return _compile._Files(str(folder), "kernel", stamp)


@damages
@pytest.mark.parametrize("suffix", [INDEX, DATA])
def test_a_damaged_file_is_a_missing_one(suffix, damage, tmp_path):
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        files, code = files_in(folder), rng.bytes(300)
        for key in ("ours", "theirs"):
            files.save(key, code)
        files.load("ours")
        for path in folder.glob(f"*{suffix}"):
            DAMAGES[damage](path, rng)
        try:
            found = files.load("ours")
        except OSError:
            found = None  # as of a file that is not there
        intact = damage == "unreadable" and os.access(path, os.R_OK)
        assert found == (code if intact else None), seed
        for key in ("ours", "theirs"):
            files.save(key, code)
            assert files.load(key) == code
        assert all_sound(folder)


def test_no_bit_counts_for_nothing(tmp_path):
    files = files_in(tmp_path)
    files.save("key", b"code")
    for path in tmp_path.iterdir():
        sound = path.read_bytes()
        for place in range(0, 8 * len(sound), 23):
            text = bytearray(sound)
            text[place // 8] ^= 1 << place % 8
            path.write_bytes(text)
            with pytest.raises(OSError, match="damaged"):
                _compile._check_sum(str(path))
        path.write_bytes(sound)
        _compile._check_sum(str(path))


def test_files_of_other_sources_and_formats_are_missing(tmp_path):
    files_in(tmp_path, "other").save("key", "other code")
    files = files_in(tmp_path)
    assert files.load("key") is None
    files.save("key", "code")
    with files._open_for_write(files._index_path) as file:  # whole, but no index
        for part in (numba.__version__, ("stamp", ["no", "index"])):
            pickle.dump(part, file)
    assert files.load("key") is None
    files.save("key", "code")
    assert files.load("key") == "code"


def test_numba_itself_reads_the_files(tmp_path):
    """As do earlier versions of the package, which may be installed over this one."""
    files_in(tmp_path).save("key", "code")
    plain = numba.core.caching.IndexDataCacheFile(str(tmp_path), "kernel", "stamp")
    assert plain.load("key") == ("key", "code")
    plain.save("key", ("key", "code"))
    assert files_in(tmp_path).load("key") is None  # without a checksum


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    files = files_in(tmp_path)
    files.save("key", "code")

    def fail(*paths):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        files.save("key", "other code")
    assert files.load("key") == "code"
    assert all_sound(tmp_path)


# --- kernels


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module with one small function, and a cache folder for its kernel."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "small.py").write_text("def double(x):\n    return 2 * x\n")
    spec = importlib.util.spec_from_file_location("small", tmp_path / "small.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    # numba imports the module of code from disk, unless an earlier kernel of it is still in memory
    monkeypatch.setitem(sys.modules, "small", made)
    monkeypatch.setattr(_compile, "_NAMED", {})
    return made


def test_a_kernel_with_a_damaged_file_is_compiled_again(module, tmp_path):
    folder, rng = tmp_path / "cache", np.random.default_rng(0)
    gc.freeze()  # the collections below need not look at what is there already
    assert _compile.kernel(module.double)(21) == 42
    for suffix in (INDEX, DATA):
        for damage in ("cut", "one bit", "another pickle", "a directory"):
            (path,) = folder.rglob(f"*{suffix}")
            DAMAGES[damage](path, rng)
            for misses in (1, 0):
                kernel = None
                gc.collect()
                kernel = _compile.kernel(module.double)
                assert kernel(21) == 42
                assert sum(kernel.stats.cache_misses.values()) == misses, (damage, suffix)
            assert all_sound(folder)


def test_a_kernel_runs_where_its_file_cannot_be_replaced(module, tmp_path):
    assert _compile.kernel(module.double)(21) == 42
    for path in list((tmp_path / "cache").rglob("*.nb?")):
        become_a_directory(path, None)
        (path / "full").touch()
    for _ in range(2):
        assert _kernels.call(_compile.kernel(module.double), 21) == 42


FIT = """
    import numpy as np
    from reservoir import ESNRegressor
    from reservoir.dynamics import engines

    engines._WORTH_LOADING = 0.0
    X = np.sin(np.arange(300.0))[:, None]
    model = ESNRegressor(20, random_state=0).fit(X[:-1], X[1:])
    rows = model.forecast(50)

    from reservoir._kernels import _time_loops
    loops = [_time_loops.advance, _time_loops.closed_loop]
    print(rows.tobytes().hex(), [sum(loop.stats.cache_misses.values()) for loop in loops])
"""


def fit_in_a_process(folder):
    """Return the forecast, and how often each of two kernels was compiled."""
    folders = str(Path(reservoir.__file__).parents[1]), os.environ.get("PYTHONPATH", "")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(folders),
        "NUMBA_CACHE_DIR": str(folder),
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(map(str.strip, FIT.splitlines()))],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    rows, _, misses = done.stdout.strip().partition(" ")
    return rows, misses


@pytest.mark.slow
def test_fits_with_damaged_files(tmp_path):
    """Two damages at once: one to the index of a kernel, the other to the code of another."""
    rows, misses = fit_in_a_process(tmp_path)
    assert misses == "[1, 1]"
    names = ["cut", "a directory", "another pickle", "one bit"]
    for k, pair in enumerate(zip(names[::2], names[1::2], strict=True)):
        rng = np.random.default_rng(k)
        files = ("advance", INDEX), ("closed_loop", DATA)
        for damage, (kernel, suffix) in zip(pair, files, strict=True):
            (path,) = tmp_path.rglob(f"*{kernel}-*{suffix}")
            DAMAGES[damage](path, rng)
        assert fit_in_a_process(tmp_path) == (rows, "[1, 1]"), pair
        assert all_sound(tmp_path)
    assert fit_in_a_process(tmp_path) == (rows, "[0, 0]")

"""Damaged or malicious files, and failures while saving: nothing is lost or executed."""

import io
import json
import os
import pickle
import re
import signal
import stat
import struct
import subprocess
import sys
import threading
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from helpers import ROOT
from helpers.damaged_files import FREE, array_mutants, header_mutants, judge, parts_of, put, write
from reservoir import (
    ESNClassifier,
    ESNForecaster,
    ESNRegressor,
    ESNSequenceClassifier,
    ESNSequenceRegressor,
    LiquidStateMachine,
    NVARRegressor,
    ReservoirTransformer,
    RNNClassifier,
    RNNRegressor,
    load,
    save,
)
from reservoir._saving import SAVED
from reservoir._saving.saved_fields import FIELDS
from reservoir.dynamics import Reservoir
from reservoir.estimators.persistence import archive
from reservoir.readouts import SlidingWindow
from reservoir.training.omega import Omega

pytestmark = pytest.mark.one_engine

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (80, 2))
TIMES = np.column_stack([np.cumsum(RNG.uniform(0.5, 1.5, 80)), X[:, 0]])
Y = np.column_stack([X[:, 0], np.append(0, X[:-1, 1])])
LABELS = np.where(Y[:, 1] > 0, "up", "down")
WAVES = RNG.normal(size=(12, 30, 2)) + np.sin(np.arange(30) / 3)[:, None]
KINDS = np.repeat(["a", "b", "c"], 4)
LEAKS = np.linspace(0.1, 1, 12)
SERIES = np.sin(np.arange(36) * np.pi / 3) + 0.1 * RNG.normal(size=36)
TRAINED = {"init": "esn", "max_iter": 1, "random_state": 0}


def learned(model, **options):
    session = model.stream(**options)
    session.learn(X[:30], Y[:30])
    session.predict(X[30:34])
    return session


MODELS = {
    "regressor": lambda: ESNRegressor(12, leak_rate=0.5, random_state=0).fit(X, Y),
    "float32, fed back": lambda: ESNRegressor(
        12, feedback=True, noise=0.01, dtype="float32", leak_rate=LEAKS, random_state=0
    ).fit(X, Y[:, 0]),
    "all digits": lambda: ESNRegressor(12, solver="qr", alpha=[1e-9, 1e-3], random_state=0).fit(
        X, Y
    ),
    "certified": lambda: ESNRegressor(12, bias="stable", random_state=0).fit(X, Y),
    "at irregular times": lambda: ESNRegressor(
        12, time_column=0, leak_rate=0.3, random_state=0
    ).fit(TIMES, Y),
    "lags": lambda: NVARRegressor(dtype="float32").fit(X, Y),
    "lags beside states": lambda: ESNRegressor(12, n_lags=3, random_state=0).fit(X, Y),
    "both directions": lambda: ESNRegressor(
        12, bidirectional=True, initial_state="zeros", random_state=0
    ).fit(X, Y),
    "labels": lambda: ESNClassifier(12, random_state=0).fit(X, LABELS),
    "states": lambda: ReservoirTransformer(12, random_state=0).fit(X),
    "trained": lambda: RNNRegressor(5, **TRAINED, gradient_control=Omega(0.5)).fit(X, Y),
    "trained labels": lambda: RNNClassifier(5, **TRAINED, cell="gru").fit(X, LABELS),
    "learning": lambda: RNNRegressor(5, **TRAINED, online="rtrl").fit(X, Y).partial_fit(X, Y),
    "session": lambda: learned(ESNRegressor(12, random_state=0).fit(X, Y)),
    "session, window": lambda: learned(
        ESNRegressor(12, readout=SlidingWindow(40), random_state=0).fit(X, Y)
    ),
    "session, trained": lambda: learned(
        RNNRegressor(5, **TRAINED, online="least_squares").fit(X, Y)
    ),
    "sequences": lambda: ESNSequenceClassifier(6, random_state=0).fit(WAVES, KINDS),
    "sizes": lambda: ESNSequenceRegressor(6, random_state=0).fit(WAVES, WAVES[:, 0]),
    "spikes": lambda: LiquidStateMachine(45, random_state=0).fit(WAVES),
    "series": lambda: ESNForecaster(season=6, n_networks=1, random_state=0).fit(SERIES),
    "several series": lambda: ESNForecaster(panel="each", n_networks=1, random_state=0).fit(
        SERIES.reshape(12, 3)[:, :2]
    ),
}


class Files:
    """A saved model of each kind, each made when first asked for."""

    def __init__(self, folder):
        self.folder = folder

    def __truediv__(self, file):
        path = self.folder / file
        if not path.exists():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                save(MODELS[path.stem](), path)
        return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return Files(tmp_path_factory.mktemp("models"))


@pytest.fixture
def model_file(tmp_path):
    """A saved regressor."""
    save(MODELS["regressor"](), tmp_path / "model.npz")
    return tmp_path / "model.npz"


def outcomes(folder):
    """Load and use the files of a folder in a process of its own; return what it said of each."""
    script = ROOT / "tests" / "helpers" / "damaged_files.py"
    done = subprocess.run(
        [sys.executable, script, folder], capture_output=True, text=True, timeout=300
    )
    lines = [line.partition(" ") for line in done.stdout.splitlines()]
    said = {stem: rest for stem, _, rest in lines}
    assert done.returncode == 0, f"{done.stdout[-300:]}\n{done.stderr[-2000:]}"
    return said


def fuzz(files, folder, seed, n_each):
    """Return the mutants that were not refused, and of which kind they are."""
    rng = np.random.default_rng(seed)
    made = {}
    for path in (files / f"{name}.npz" for name in sorted(MODELS)):
        header, arrays = parts_of(path)
        of_arrays = list(array_mutants(arrays, rng))
        of_header = list(header_mutants(header, rng))
        for i in rng.choice(len(of_arrays), min(n_each, len(of_arrays)), replace=False):
            key, what, changed = of_arrays[i]
            write(folder / f"{len(made):05d}.npz", header, changed)
            made[f"{len(made):05d}"] = (path.stem, key, what)
        for i in rng.choice(len(of_header), min(n_each, len(of_header)), replace=False):
            where, what, changed = of_header[i]
            write(folder / f"{len(made):05d}.npz", put(header, where, changed), arrays)
            made[f"{len(made):05d}"] = (path.stem, (*where, what), "header")
    said = outcomes(folder)
    assert said.keys() == made.keys()
    assert not {k: (made[k], v) for k, v in said.items() if v not in ("refused", "used")}
    return [made[k] for k, v in said.items() if v == "used"]


def check_refusals(files, folder, seed, n_each):
    """Fuzz, and check that each array is refused whose dtype or shape is not its own."""
    accepted = [each for each in fuzz(files, folder, seed, n_each) if each[2] in ("dtype", "shape")]
    wrong = []
    for model, key, what in accepted:
        field = key.partition(":")[2]
        given = field in parts_of(files / f"{model}.npz")[0]["params"]
        free = any(f"{field}.".startswith(f"{name}.") for name in FREE)
        if not free and not given:
            wrong.append((model, key, what))
    assert wrong == []
    assert len(accepted) < 0.1 * n_each * len(MODELS)


@pytest.mark.slow
def test_mutants_raise_or_are_harmless(files, tmp_path):
    check_refusals(files, tmp_path, seed=0, n_each=60)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(1, 4))
def test_many_mutants_raise_or_are_harmless(seed, files, tmp_path):
    check_refusals(files, tmp_path, seed=seed, n_each=60)


def test_every_saved_class_has_a_line():
    def is_ours(cls):  # a class of an example bears its module's name, but the module lacks it
        is_there = getattr(sys.modules[cls.__module__], cls.__name__, None) is cls
        return is_there and cls.__module__.startswith("reservoir.")

    assert {name for name, cls in SAVED.items() if is_ours(cls)} <= FIELDS.keys()


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("name", MODELS)
def test_files_name_each_array_once_and_load(name, files):
    header, arrays = parts_of(files / f"{name}.npz")
    named = re.findall(r'\{"array": "([^"]+)"\}', json.dumps(header))
    assert sorted(named) == sorted(arrays)
    assert judge(files / f"{name}.npz") == "used"


@pytest.mark.parametrize("name", ["session", "session, window"])
def test_nothing_of_a_file_was_left_in_memory_by_others(name, files, tmp_path):
    """Buffers that are not full are saved whole."""
    save(MODELS[name](), tmp_path / "model.npz")
    (header, arrays), (other, others) = map(
        parts_of, (files / f"{name}.npz", tmp_path / "model.npz")
    )
    assert header == other
    for key, array in arrays.items():
        np.testing.assert_array_equal(array, others[key], key)


@pytest.mark.parametrize(
    "changed, message",
    [
        (lambda place: [place[0], place[1] + 1, *place[2:]], "where 0 is due|two arrays are at"),
        (lambda place: [*place[:-1], place[-1] + 1], "is due|items are used"),
        (lambda place: [*place, 1], "items are used|must be|two arrays are at"),
        (lambda place: [9, *place[1:]], "is no place in a stack"),
        (lambda place: [place[0], -1, *place[2:]], "is no place in a stack"),
        (lambda place: [True, *place[1:]], "is no place in a stack"),
        (lambda place: [*place, 10**9], "in a stack has shape"),
        (lambda place: "0", "is no place in a stack"),
    ],
)
def test_arrays_of_several_series_share_no_items(changed, message, files, tmp_path):
    header, arrays = parts_of(files / "several series.npz")
    place = next(iter(re.findall(r'\{"rows": (\[\d+, 0, \d+.*?\])\}', json.dumps(header))))
    text = json.dumps(header).replace(place, json.dumps(changed(json.loads(place))), 1)
    write(tmp_path / "model.npz", json.loads(text), arrays)
    with pytest.raises(ValueError, match=rf"model\.npz.*damaged.*({message})"):
        load(tmp_path / "model.npz")


# ---------------------------------------------------------------------- what arrays may hold


@pytest.mark.parametrize(
    "array, place, value",
    [
        ("indices", 0, 10_000_000),
        ("indices", 3, 1000),
        ("indices", 0, -1),
        ("indptr", -1, 10_000),
        ("indptr", -1, -(2**31)),
    ],
)
def test_indices_of_sparse_weights_stay_inside(array, place, value, model_file):
    header, arrays = parts_of(model_file)
    (W,) = re.findall(
        r'\{"csr": \[\{"array": "[^"]+"\}, \{"array": "([^"]+)"\}', json.dumps(header)
    )
    number, name = W.split(":")
    key = W if array == "indices" else f"{int(number) + 1}:{name}"
    arrays[key][place] = value
    write(model_file, header, arrays)
    with pytest.raises(ValueError, match=r"model\.npz.*damaged"):
        load(model_file)


def test_a_reservoir_checks_its_arrays_whoever_makes_it():
    W = sp.csr_array(np.eye(3))
    res = Reservoir(W, np.ones((3, 1)), np.zeros(3))
    state = res.__getstate__()
    wrong = W.copy()
    wrong.indices[0] = 1000
    for fields in ({"W": wrong}, {"bias": np.zeros(5)}, {"leak_rate": 7.0}):
        other = Reservoir.__new__(Reservoir)
        with pytest.raises(ValueError, match=r"indices|bias|leak_rate"):
            other.__setstate__({**state, **fields})
    # SciPy's check sees no difference that is negative here: they overflow
    wrapped = W.copy()
    wrapped.indptr[-1] = -(2**31)
    with pytest.raises(ValueError, match="indices"):
        Reservoir(wrapped, np.ones((3, 1)), np.zeros(3))
    with pytest.raises(ValueError, match="indices"):
        Reservoir(wrong, np.ones((3, 1)), np.zeros(3))
    again = pickle.loads(pickle.dumps(res))
    assert not again.bias.flags.writeable
    np.testing.assert_array_equal(again.W.toarray(), np.eye(3))


def changed_field(value, name, new):
    """Return JSON of a file in which fields called `name` have the content `new(content)`."""
    if isinstance(value, list):
        value = list(value)
        for i, each in enumerate(value[:-1]):
            if each == name:
                value[i + 1] = new(value[i + 1])
        return [changed_field(each, name, new) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: new(each) if key == name else changed_field(each, name, new)
        for key, each in value.items()
    }


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(
    "model, field, new, message",
    [
        (
            "series",
            "kind",
            lambda kind: "number" if kind == "period[M]" else kind,
            "Calendar.dtype",
        ),
        ("series", "kind", lambda kind: "minutes" if "[" in kind else kind, "Calendar.kind"),
        ("series", "names", lambda names: {"tuple": []}, "SeriesContainer.names"),
        ("series", "calendars", lambda each: {"tuple": each["tuple"] * 2}, "Panel.calendars"),
        ("sequences", "temperature_", None, "only one of temperature_ and intercept_"),
        ("transition", "temperature_", None, "ESNClassifier.transition_"),
        ("transition", "transition_power_", None, "ESNClassifier"),
    ],
)
def test_what_forecasts_and_probabilities_need_is_checked(model, field, new, message, tmp_path):
    if model == "series":
        pd = pytest.importorskip("pandas")
        y = pd.Series(
            np.arange(30.0) % 5, pd.period_range("2020-01", periods=30, freq="M"), name="y"
        )
        made = ESNForecaster(search=[{"n_units": 5}], random_state=0).fit(y)
    elif model == "sequences":
        made = MODELS["sequences"]()
    else:
        made = ESNClassifier(8, transition="auto", random_state=0).fit(X, np.repeat([0, 1], 40))
    save(made, tmp_path / "model.npz")
    load(tmp_path / "model.npz")
    header, arrays = parts_of(tmp_path / "model.npz")
    if new is None:
        del header["fitted"][field]
    else:
        header = changed_field(header, field, new)
    write(tmp_path / "model.npz", header, arrays)
    with pytest.raises(ValueError, match=rf"(?s)model\.npz.*damaged.*{message}"):
        load(tmp_path / "model.npz")


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(
    "model, names, value",
    [
        ("trained", "truncation batch_size washout time_step online target loss output", "x"),
        ("trained labels", "truncation loss missing_targets initial_state class_weight", "x"),
        ("regressor", "initial_state time_step missing_targets solver washout augment", "x"),
        ("lags", "basis washout", "x"),
        ("sequences", "scaling missing_values time_step class_weight", "x"),
        ("series", "search panel clip horizon missing_values outliers", "x"),
        ("states", "initial_state time_step", "x"),
        ("series", "clip horizon outliers", None),
    ],
)
def test_parameters_hold_no_other_words_than_their_own(model, names, value, files, tmp_path):
    header, arrays = parts_of(files / f"{model}.npz")
    for name in names.split():
        write(tmp_path / "model.npz", put(header, ("params", name), value), arrays)
        with pytest.raises(ValueError, match=rf"model\.npz.*damaged.*\.{name} must be.*it is"):
            load(tmp_path / "model.npz")


@pytest.mark.parametrize(
    "field, value",
    [("low", -1), ("high", 81), ("low", 10**12), ("inputs", -1.0), ("inputs", np.nan)],
)
def test_counts_of_what_units_did_are_those_of_rows(field, value, model_file):
    header, arrays = parts_of(model_file)
    (key,) = [name for name in arrays if name.endswith(f"_model.activity.{field}")]
    arrays[key][0] = value
    write(model_file, header, arrays)
    with pytest.raises(ValueError, match=rf"model\.npz.*damaged.*Activity\.{field}"):
        load(model_file)


# ---------------------------------------------------------------------- what a file may take


def zipped(path, entries, **options):
    with zipfile.ZipFile(path, "w", **options) as file:
        for name, content in entries:
            file.writestr(name, content)


def npy(array):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asanyarray(array), allow_pickle=False)
    return stream.getvalue()


def entries_of(path):
    with zipfile.ZipFile(path) as file:
        return [(name, file.read(name)) for name in file.namelist()]


def test_an_array_is_read_once(model_file):
    header, arrays = parts_of(model_file)
    key = next(iter(arrays))
    header["params"]["input_scaling"] = {"list": [{"array": key}] * 40}
    write(model_file, header, arrays)
    with pytest.raises(ValueError, match=r"model\.npz.*41 times"):
        load(model_file)


def test_an_array_that_nothing_names(model_file):
    header, arrays = parts_of(model_file)
    write(model_file, header, {**arrays, "stray": np.zeros(3)})
    with pytest.raises(ValueError, match="'stray', which is not used"):
        load(model_file)
    # what numpy.savez before 2.3 wrote beside
    write(model_file, header, {**arrays, "allow_pickle": np.array(False)})
    load(model_file)


def test_compressed_entries(model_file):
    zipped(model_file, entries_of(model_file), compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match="compressed"):
        load(model_file)


def test_entries_that_share_their_bytes(model_file):
    """Two hundred names for one megabyte."""
    zipped(model_file, [("header.npy", npy("{}")), ("a.npy", npy(np.zeros(2**17)))])
    raw = model_file.read_bytes()
    start = raw.index(b"PK\x01\x02", raw.index(b"PK\x01\x02") + 4)
    end = raw.index(b"PK\x05\x06")
    directory = raw[raw.index(b"PK\x01\x02") : end] + raw[start:end] * 200
    fields = list(struct.unpack("<4s4H2LH", raw[end : end + 22]))
    fields[3] = fields[4] = 202
    fields[5] = len(directory)
    first = raw.index(b"PK\x01\x02")
    model_file.write_bytes(raw[:first] + directory + struct.pack("<4s4H2LH", *fields))
    with pytest.raises(ValueError, match=r"model\.npz.*(larger than the file|twice|[Oo]verlap)"):
        load(model_file)


@pytest.mark.parametrize("shape", ["(300, 1000000000)", "(0, 1000000000000)", "(-1, -8)"])
def test_shapes_that_the_file_does_not_fill(shape, model_file):
    entries = dict(entries_of(model_file))
    name = next(each for each in entries if "coef_" in each)
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117)
    entries[name] = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + head + b"\n" + bytes(64)
    zipped(model_file, entries.items())
    with pytest.raises(ValueError, match=r"model\.npz.*(shape|Shape|larger)"):
        load(model_file)


def test_a_sparse_array_that_the_file_does_not_fill(files, tmp_path):
    header, arrays = parts_of(files / "spikes.npz")
    text = re.sub(r"(\"list\": \[45, )2\]", r"\g<1>1000000000]", json.dumps(header))
    assert text != json.dumps(header)
    write(tmp_path / "model.npz", json.loads(text), arrays)
    with pytest.raises(ValueError, match=r"sparse array has shape \(45, 1000000000\)"):
        load(tmp_path / "model.npz")


def test_a_header_a_thousand_deep(model_file):
    header, arrays = parts_of(model_file)
    deep = json.dumps(header).replace('"verbose": 0', f'"verbose": {"[" * 1000}{"]" * 1000}')
    with model_file.open("wb") as stream:
        np.savez(stream, header=np.array(deep), **arrays)
    with pytest.raises(ValueError, match="brackets deep"):
        load(model_file)


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("version", ["1", 1.0, True, 0, -3, None, [1]])
def test_versions_are_whole_numbers(version, model_file):
    header, arrays = parts_of(model_file)
    write(model_file, {**header, "version": version}, arrays)
    with pytest.raises(ValueError, match=r"model\.npz.*format version is"):
        load(model_file)


def test_flipped_bits_are_found(model_file):
    raw = model_file.read_bytes()
    rng = np.random.default_rng(0)
    expected = load(model_file).predict(X)
    for place in rng.choice(len(raw), 100, replace=False):
        other = bytearray(raw)
        other[place] ^= 1 << int(rng.integers(8))
        model_file.write_bytes(other)
        said = judge(model_file)
        assert said in ("refused", "used")
        if said == "used":  # a date, say, or what pads an array's header
            np.testing.assert_array_equal(load(model_file).predict(X), expected)


def test_a_class_of_a_module_that_was_not_imported(model_file):
    header, arrays = parts_of(model_file)
    text = json.dumps(header).replace('["Progress"', '["Elsewhere"')
    write(model_file, json.loads(text), arrays)
    with pytest.raises(ValueError, match=r"class 'Elsewhere' is unknown.*import its module"):
        load(model_file)


@pytest.mark.slow
def test_classes_that_training_alone_needs_load_in_a_fresh_process(files):
    code = f"import reservoir; reservoir.load({str(files / 'trained.npz')!r})"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_a_masked_array_would_lose_its_mask(tmp_path):
    masked = np.ma.masked_invalid([1.0, np.nan])
    with pytest.raises(TypeError, match=r"(?s)input_scaling=.*lose its mask"):
        save(ESNRegressor(5, input_scaling=masked), tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())


def test_a_model_that_cannot_be_loaded_is_not_written(tmp_path):
    model = MODELS["regressor"]()
    model.coef_ = model.coef_[:, :-1]
    with pytest.raises(ValueError, match=r"ESNRegressor\.coef_ must be"):
        save(model, tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------- a save that fails


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_save_that_fails_leaves_the_old_file(error, model_file, monkeypatch):
    before = model_file.read_bytes()

    def fail(stream, array, **options):
        stream.write(b"half of it")
        raise error

    monkeypatch.setattr(archive.np.lib.format, "write_array", fail)
    for path in (model_file, model_file.with_name("new.npz")):
        with pytest.raises(type(error)):
            save(ESNRegressor(), path)
    assert model_file.read_bytes() == before
    assert list(model_file.parent.iterdir()) == [model_file]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
def test_a_save_that_is_killed_leaves_the_old_file(model_file):
    before = model_file.read_bytes()
    code = (
        "import os, signal, sys\n"
        "from reservoir import ESNRegressor, save\n"
        "from reservoir.estimators.persistence import archive\n"
        "archive.os.fsync = lambda number: os.kill(os.getpid(), signal.SIGKILL)\n"
        "save(ESNRegressor(), sys.argv[1])"
    )
    done = subprocess.run([sys.executable, "-c", code, model_file], timeout=120)
    assert done.returncode == -signal.SIGKILL
    assert model_file.read_bytes() == before
    (left,) = set(model_file.parent.iterdir()) - {model_file}
    assert re.fullmatch(r"model\.npz\.[0-9a-f]{8}\.partial", left.name)


@pytest.mark.skipif(sys.platform == "win32", reason="links and modes are POSIX's")
def test_links_are_followed_and_modes_kept(model_file, tmp_path):
    (tmp_path / "link.npz").symlink_to(model_file.name)
    model_file.chmod(0o640)
    save(ESNRegressor(7), tmp_path / "link.npz")
    assert (tmp_path / "link.npz").is_symlink()
    assert load(model_file).n_units == 7
    assert stat.S_IMODE(model_file.stat().st_mode) == 0o640
    old = os.umask(0o027)
    try:
        save(ESNRegressor(), tmp_path / "new.npz")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "new.npz").stat().st_mode) == 0o640


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_is_written_into(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    got = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    time.sleep(0.05)
    save(ESNRegressor(7), tmp_path / "pipe")
    reader.join(10)
    (tmp_path / "model.npz").write_bytes(got[0])
    assert load(tmp_path / "model.npz").n_units == 7
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="the system has no /dev/stdout")
def test_standard_output_is_written_into(tmp_path):
    code = "from reservoir import ESNRegressor, save; save(ESNRegressor(7), '/dev/stdout')"
    with (tmp_path / "model.npz").open("wb") as stream:
        subprocess.run([sys.executable, "-c", code], check=True, timeout=120, stdout=stream)
    assert load(tmp_path / "model.npz").n_units == 7

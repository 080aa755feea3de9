"""Files of `reservoir.save` with one thing changed, and a process that loads and uses them.

    python tests/helpers/damaged_files.py FOLDER     # loads and uses FOLDER/*.npz, a line for each

The lines end with "refused" (ValueError that names the file), "used" (it loads; what it then
says may be a ValueError) or with what should not have happened. A signal shows as the file whose
line is missing.
"""

import copy
import io
import json
import pathlib
import sys
import warnings

import numpy as np

_PLAIN = (None, True, -1, 0, 7, 10**7, 2**70, 1e308, float("nan"), "x", [], {}, {"list": []})
_DTYPES = ("float32", "float64", "int64", "int32", "complex128", "bool", "U8", "uint8")
# fields that hold arrays with no other length than their own, or rows in either precision
FREE = {"washout_", "input_scaling_scores_", "alpha_scores_", "search_results_", "best_params_"}
FREE |= {"_model.readout", "_model.online", "_fits", "_estimator", "_own", "_learner", "_waiting"}
FREE |= {"last_errors_", "_model.recent", "start_results_", "_reader.fixed"}


def parts_of(path):
    """Return the header and the arrays of a file."""
    with np.load(path, allow_pickle=False) as arrays:
        content = {key: arrays[key] for key in arrays.files}
    text = content.pop("header")[()]
    return json.loads(text.decode() if isinstance(text, bytes) else str(text)), content


def write(path, header, arrays):
    """Write a header and arrays as `save` does."""
    with open(path, "wb") as stream:
        np.savez(stream, header=np.array(json.dumps(header)), **arrays)


def round_trip(value):
    """Return what a file makes of a part of an estimator."""
    from reservoir.estimators.persistence.archive import Archive
    from reservoir.estimators.persistence.parts import Read, Written, decode, encode

    kept, stream = Written({}, {}, {}), io.BytesIO()
    header = json.dumps(encode(value, "part", kept))
    np.savez(stream, header=np.array(header), **kept.arrays)
    archive = Archive(stream)
    return decode(archive.header, Read(archive, [], []))


def array_mutants(arrays, rng):
    """Yield (name, what was changed, other arrays): "dtype", "shape" or "value"."""
    for key, array in arrays.items():
        for what, changed in _changed(array, rng):
            same = changed.dtype == array.dtype and changed.shape == array.shape
            if not (same and np.array_equal(changed, array)):
                yield key, what, {**arrays, key: changed}


def _changed(array, rng):
    if array.dtype.kind in "biuf":
        for dtype in _DTYPES:
            with np.errstate(all="ignore"):
                yield "dtype", array.astype(dtype)
    if array.ndim == 0:
        yield "shape", array[None]
    else:
        yield "shape", array[:-1]
        yield "shape", np.concatenate([array, array[-1:]])
        yield "shape", array[:, None]
    if array.ndim == 2:
        yield "shape", array.ravel()
        yield "shape", array[:, :-1]
        yield "shape", np.concatenate([array, array[:, -1:]], axis=1)
    values = {"f": (np.nan, np.inf, -np.inf), "i": (-1, 10**7, 2**31 - 1, -(2**31))}
    for value in values.get(array.dtype.kind, ()) if array.size else ():
        other = array.copy()
        other.flat[rng.integers(array.size)] = value
        yield "value", other


def header_mutants(header, rng):
    """Yield (path, what was changed, value to `put` there): replaced, renamed, removed or cut."""
    for path, value in _nodes(header):
        if path[:1] == ("format",):
            continue
        if isinstance(value, dict) and path:
            for key in value:
                left = {name: each for name, each in value.items() if name != key}
                yield path, f"{key} gone", left
                yield path, f"{key} renamed", {**left, "zz": value[key]}
        if isinstance(value, list) and value:
            yield path, "cut", value[:-1]
            yield path, "longer", value + value[-1:]
        for plain in rng.choice(len(_PLAIN), 4, replace=False) if path else ():
            if type(_PLAIN[plain]) is not type(value) or _PLAIN[plain] != value:
                yield path, "set", _PLAIN[plain]


def _nodes(value, path=()):
    yield path, value
    if isinstance(value, (dict, list)):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _nodes(each, (*path, key))


def put(header, path, value):
    """Return a copy of a header with another value at a path."""
    if not path:
        return value
    header = copy.deepcopy(header)
    place = header
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return header


def use(model):
    """Let a model do what it is for."""
    rng = np.random.default_rng(0)
    if hasattr(model, "learn"):  # a session
        rows = rng.normal(size=(6, 2))
        model.learn(rows, model.predict(rows))
    elif hasattr(model, "simulate"):  # a forecaster of series
        model.forecast(3, coverage=0.8)
    elif hasattr(model, "n_channels_"):  # features of whole sequences
        model.transform(rng.normal(size=(2, 30, 2)))
    elif hasattr(model, "features_"):
        model.predict(rng.normal(size=(2, 30, 2)))
    elif hasattr(model, "partial_fit"):
        X = rng.normal(size=(300, 2)).cumsum(axis=0)
        X[:, 0] = np.arange(1000, 1300)  # may be times
        y = model.predict(X) if hasattr(model, "predict") else model.transform(X)
        if hasattr(model, "states"):
            model.states(X)
        model.partial_fit(X[200:] + np.array([300, 0]), y[200:])


def judge(path):
    """Load a file and use it; return what happened."""
    from reservoir import load

    try:
        model = load(path)
    except ValueError as error:
        return "refused" if str(path) in str(error) else f"nameless: {error}"
    except Exception as error:
        return f"loading: {error!r}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numbers that were changed may be of any size
            use(model)
    except ValueError:
        pass
    except Exception as error:
        return f"using: {error!r}"
    return "used"


def main():
    import reservoir  # noqa: F401 (counts as memory that is there)

    try:
        import resource
    except ImportError:  # Windows has no such limit
        pass
    else:
        pages = pathlib.Path("/proc/self/statm")
        if pages.exists():
            there = int(pages.read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (there + 2**30, there + 2**30))
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.npz")):
        print(path.stem, end=" ", flush=True)
        print(judge(path), flush=True)


if __name__ == "__main__":
    main()

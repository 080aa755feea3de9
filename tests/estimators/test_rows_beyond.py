"""Rows far outside the range of the inputs in training: where predictions warn, and where not."""

import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir import (
    ESNClassifier,
    ESNRegressor,
    NVARRegressor,
    ReservoirTransformer,
    RNNRegressor,
    load,
    save,
)

pytestmark = pytest.mark.one_engine
N = 100
BEYOND = "^Rows beyond what was learned in column 1 of X: more than a fifth .*, 0 to 1, .*half"


def trending(n=N):
    """Return n rows with a column that rises from 0 to 1, and n rows in which it rises to 2."""
    X = np.column_stack([np.sin(np.arange(2 * n)), np.arange(2 * n) / (n - 1)])
    return X[:n], X[n:]


def esn(**parameters):
    return ESNRegressor(**{"n_units": 10, "alpha": 1e-3, "random_state": 0, **parameters})


def fitted(model, X):
    return model.fit(X, X[:, 0] > 0 if hasattr(model, "predict_proba") else X[:, 0])


def said(call):
    """Return the warnings of rows beyond the range that a call gives; other warnings are errors."""
    with warnings.catch_warnings(record=True) as found:
        warnings.filterwarnings("always", "Rows beyond")
        call()
    return [str(one.message) for one in found]


# --- what warns ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("model", "method"),
    [
        (esn(), "predict"),
        (ESNClassifier(10, random_state=0), "predict_proba"),
        (RNNRegressor(3, init="esn", max_iter=1, random_state=0), "predict"),
        (ReservoirTransformer(10, random_state=0), "transform"),
    ],
)
def test_one_warning_a_call_names_the_column_and_its_range(model, method, dtype):
    X, new = trending()
    model = fitted(model.set_params(dtype=dtype), X)
    with pytest.warns(UserWarning, match=BEYOND) as found:
        getattr(model, method)(new)
    assert len(found) == 1
    assert found[0].filename == __file__


def test_in_the_units_of_a_scaler_and_by_the_score():
    X, new = trending()
    pipe = make_pipeline(StandardScaler(), esn()).fit(X, X[:, 0])
    (one,) = said(lambda: pipe.score(new, new[:, 0]))
    assert "-1.71482 to 1.71482" in one


@pytest.mark.parametrize("container", [list, np.stack])
def test_of_sequences(container):
    X, new = (container(np.split(rows, 2)) for rows in trending(200))
    model = esn().fit(X, [rows[:, 0] for rows in X])
    assert len(said(lambda: model.predict(new))) == 1
    assert not said(lambda: model.predict(X))


def test_columns_of_ids_and_times_are_not_compared_but_counted():
    X, new = trending()
    for name in ("time_column", "sequence_column"):
        rows = [np.column_stack([np.full(N, i), x])[:, [1, 0, 2]] for i, x in enumerate((X, new))]
        if name == "time_column":
            rows[0][:, 1], rows[1][:, 1] = np.arange(N), 10 * np.arange(N, 2 * N)
        model = esn(**{name: 1}).fit(rows[0], X[:, 0])
        (one,) = said(lambda: model.predict(rows[1]))  # noqa: B023 (called at once)
        assert "column 2 of X" in one
        rows[1][:, 2] = 0.5
        assert not said(lambda: model.predict(rows[1]))  # noqa: B023


def test_sessions_warn_once_and_not_of_rows_to_be_learned(tmp_path):
    X, new = trending()
    model = esn().fit(X, X[:, 0])
    session = model.stream()
    assert len(said(lambda: session.predict(new[50:75]))) == 1
    save(session, tmp_path / "session.zip")
    for one in (session, load(tmp_path / "session.zip")):
        assert not said(lambda: one.predict(new[75:]))  # noqa: B023
    assert not said(lambda: model.stream().learn(new, new[:, 0]))
    rows = model.stream()
    assert not said(lambda: [rows.predict(row[None]) for row in new])


# --- what does not ------------------------------------------------------------------------------


def test_a_column_that_was_constant_has_the_width_of_a_tenth_of_its_size():
    X = np.column_stack([np.sin(np.arange(N)), np.full(N, 2.0)])
    model = esn().fit(X, X[:, 0])
    assert not said(lambda: model.predict(X + np.array([0, 0.09])))
    assert len(said(lambda: model.predict(X + np.array([0, 0.11])))) == 1


@pytest.mark.parametrize(
    ("model", "scale"),
    [
        (NVARRegressor(), 1.0),
        (esn(activation="identity"), 1.0),
        (esn(), 0.2),  # units are almost linear
        (esn(input_scaling=0.2), 1.0),
    ],
)
def test_what_extrapolates_does_not_warn(model, scale):
    X, new = trending()
    fitted(model, scale * X)
    assert not said(lambda: model.predict(scale * new))


def test_files_without_the_range_do_not_warn():
    X, new = trending()
    model = esn().fit(X, X[:, 0])
    del model._model.progress.input_range
    assert not said(lambda: model.predict(new))


def test_chunks_widen_the_range():
    X, new = trending()
    model = esn().partial_fit(X, X[:, 0]).partial_fit(new[:50], new[:50, 0])
    assert not said(lambda: model.predict(new[50:]))


@pytest.mark.fast_cases("values")
@pytest.mark.parametrize("n", [30, 100, 1000])
@pytest.mark.parametrize("kind", ["stationary", "seasonal", "shifted"])
def test_no_false_alarm(kind, n, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    noise = rng.normal(size=2 * n)
    if kind == "stationary":
        for t in range(1, 2 * n):
            noise[t] += 0.8 * noise[t - 1]
        x = noise
    else:
        x = 3 * np.sin(np.arange(2 * n) / 3) + noise
    if kind == "shifted":
        x[n:] += 0.3 * np.ptp(x[:n])
    model = esn().fit(x[:n, None], x[:n])
    assert not said(lambda: model.predict(x[n:, None]))
    assert not said(lambda: [model.predict(x[k : k + 10, None]) for k in (n, n + 10)])

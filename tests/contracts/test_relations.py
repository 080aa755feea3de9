"""Relations that hold between runs of the same public object, for all objects that the package has.

The estimators come from `reservoir.__all__`, so that a new one is tested from its first day. What
an object is (rows or whole sequences, labels or numbers, chunks) is read from its methods and tags.
"""

import inspect
import itertools
import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import reservoir
from reservoir import (
    ESNForecaster,
    ESNRegressor,
    LocalForecaster,
    NVARRegressor,
    RNNRegressor,
    SeasonalNaive,
    forecast,
    load,
    save,
)
from reservoir.model_selection import make_forecast_pairs, stack_sequences
from reservoir.training.cells import LSTMCell

pytestmark = pytest.mark.both_engines

PUBLIC = [getattr(reservoir, name) for name in reservoir.__all__]
ESTIMATORS = [cls for cls in PUBLIC if inspect.isclass(cls) and issubclass(cls, BaseEstimator)]
SMALL = {"n_units": 12, "max_iter": 2, "init": "esn", "n_networks": 1, "n_lags": 2}
ROWS, CHUNK = 160, 100
FORECASTERS = ESNForecaster, LocalForecaster, SeasonalNaive  # they are fitted to a series
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (ROWS + 20, 2)) + 0.1
Y = np.column_stack([np.convolve(u, [0.2, 0.5, 0.3])[: len(X)] for u in X.T])


def made(cls, **options):
    """Return a small estimator of a class, with those options that it has."""
    known = inspect.signature(cls).parameters
    given = {**SMALL, "random_state": 0, **options}
    return cls(**{name: value for name, value in given.items() if name in known})


def is_whole(cls):
    """Whether a case is a whole sequence: one label, target or row of features for each."""
    return cls not in FORECASTERS and "initial_state" not in inspect.signature(cls).parameters


def is_classifier(cls):
    return made(cls).__sklearn_tags__().estimator_type == "classifier"


def by_row(method=None):
    """Return the classes with one result for each row, perhaps only those with a method."""
    classes = [cls for cls in ESTIMATORS if cls not in FORECASTERS and not is_whole(cls)]
    return [cls for cls in classes if not method or hasattr(cls, method)]


def whole():
    return [cls for cls in ESTIMATORS if is_whole(cls)]


def target(cls, values=Y):
    """Return the targets: numbers, or labels for a classifier."""
    if not is_classifier(cls):
        return values
    return np.where(values[:, 0] > np.median(Y[:, 0]), "high", "low")


def result(model, X):
    """Return what a fitted model says of X as numbers: scores of labels, features, predictions."""
    for name in ("decision_function", "transform", "predict_proba"):
        if hasattr(model, name):
            return getattr(model, name)(X)
    return model.predict(X)


def case(cls):
    """Return what a class is fitted to: rows and their targets, or sequences and theirs."""
    if not is_whole(cls):
        return X[:ROWS], target(cls)[:ROWS]
    sequences = [*X.reshape(-1, 15, 2)]
    return sequences, target(cls, np.array([rows.mean(axis=0) for rows in sequences]))


def fitted(cls, X, y, **options):
    return made(cls, **options).fit(X, y)


def close(found, expected, rtol=1e-8):
    """Assert equality up to rounding, of arrays or of lists of arrays."""
    found, expected = (
        np.concatenate([np.ravel(rows) for rows in part]) for part in (found, expected)
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=rtol * np.ptp(expected))


# --- one object ----------------------------------------------------------------------------------


@pytest.mark.fast_cases(7)
@pytest.mark.parametrize("cls", ESTIMATORS)
def test_saved_and_loaded_it_gives_the_same_bits(cls, tmp_path):
    file = tmp_path / "model.zip"
    if cls is LocalForecaster:
        model = cls(made(reservoir.NVARRegressor), halo=0)
        save(model.fit(X[:40]), file)
        np.testing.assert_array_equal(load(file).forecast(5), model.forecast(5))
        return
    if cls in FORECASTERS:
        model = made(cls).fit(X[:40, 0])
        save(model, file)
        np.testing.assert_array_equal(load(file).forecast(5), model.forecast(5))
        return
    cases, y = case(cls)
    model = fitted(cls, cases, y)
    save(model, file)
    np.testing.assert_array_equal(result(load(file), cases), result(model, cases))


@pytest.mark.parametrize("cls", by_row())
def test_a_later_row_changes_no_earlier_result(cls):
    model = fitted(cls, *case(cls))
    new = X[ROWS:]
    close(result(model, new)[:9], result(model, new[:9]), 1e-12)


PEEPHOLES = LSTMCell(12, peephole=True)
OPTIONS = [
    *((cls, {}) for cls in by_row("predict")),
    (ESNRegressor, {"leak_rate": 0.3, "alpha": [1e-6, 1e-3, 1.0]}),
    (ESNRegressor, {"feedback": True, "feedback_scaling": 0.1}),
    (ESNRegressor, {"noise": 1e-3}),
    (ESNRegressor, {"feedback": True, "feedback_scaling": 0.1, "noise": 1e-3}),
    (ESNRegressor, {"dtype": "float32"}),
    (ESNRegressor, {"include_input": False, "fit_intercept": False, "n_lags": 1}),
    (RNNRegressor, {"cell": "leaky", "leak_rate": 0.5}),
    (RNNRegressor, {"cell": "leaky", "leak_rate": np.linspace(0.1, 1, 12)}),
    (RNNRegressor, {"cell": "lstm"}),
    (RNNRegressor, {"cell": PEEPHOLES, "init": "glorot"}),
    (RNNRegressor, {"cell": "gru"}),
    (RNNRegressor, {"dtype": "float32"}),
    (RNNRegressor, {"include_input": True, "output": "tanh"}),
    (RNNRegressor, {"solver": "lbfgs"}),
    (RNNRegressor, {"solver": "hessian_free"}),
]


@pytest.mark.fast_cases(6)
@pytest.mark.parametrize(("cls", "options"), OPTIONS)
def test_rows_in_two_calls_are_rows_in_one_and_change_nothing(cls, options):
    rows, y = case(cls)
    y = y / 8 if "output" in options else y
    model = fitted(cls, rows, y, **options)
    before = pickle.dumps(model)
    rtol = 1e-5 if "dtype" in options else 1e-12
    for start in (None, "zeros", "last", "steady", np.full_like(model.state_, 0.1)):
        first, state = model.predict(X[ROWS:-7], initial_state=start, return_state=True)
        found = np.concatenate([first, model.predict(X[-7:], initial_state=state)])
        expected = model.predict(X[ROWS:], initial_state=start)
        if is_classifier(cls):
            np.testing.assert_array_equal(found, expected)
        else:
            close(found, expected, rtol)
    session = model.stream()
    cuts = (ROWS, ROWS + 1, -7, None)
    parts = [session.predict(X[slice(*ends)]) for ends in itertools.pairwise(cuts)]
    if is_classifier(cls):
        np.testing.assert_array_equal(np.concatenate(parts), model.predict(X[ROWS:]))
    else:
        close(np.concatenate(parts), model.predict(X[ROWS:]), rtol)
    session.reset()
    np.testing.assert_array_equal(session.predict(X[ROWS : ROWS + 1]), parts[0])
    assert pickle.dumps(model) == before
    once = model.predict(X)
    for again in (model.fit(rows, y), clone(model).fit(rows, y)):
        np.testing.assert_array_equal(again.predict(X), once)


NUMBERS = [cls for cls in by_row("predict") if not is_classifier(cls)]
LATER = {
    "n_units": 7,
    "leak_rate": 0.1,
    "dtype": "float32",
    "time_column": 0,
    "filter_time": 3.0,
    "include_input": False,
    "readout": Ridge(),
    "cell": "gru",
    "output": "tanh",
    "loss": "hinge",
    "target": "last",
    "washout": 3,
    "feedback": True,
    "n_lags": 3,
    "bidirectional": True,
    "time_step": 5.0,
    "sequence_column": 0,
}


@pytest.mark.parametrize("cls", [*by_row(), *whole()])
def test_parameters_set_after_fit_wait_for_the_next_fit(cls):
    cases, y = make_forecast_pairs(X[:ROWS]) if cls in NUMBERS else case(cls)
    model = fitted(cls, cases, y)

    def said():
        read = model.predict if hasattr(model, "predict") else model.transform
        return read(cases), model.forecast(3) if cls in NUMBERS else 0

    before = said()
    for name in LATER.keys() & model.get_params().keys():
        model.set_params(**{name: LATER[name]})
        for found, expected in zip(said(), before, strict=True):
            np.testing.assert_array_equal(found, expected, err_msg=name)


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("cls", [*(cls for cls in by_row() if cls is not NVARRegressor), *whole()])
def test_random_states_of_every_kind(cls):
    cases, y = case(cls)

    def said(state):
        return result(fitted(cls, cases, y, random_state=state), cases)

    twice = (said(np.random.RandomState(5)) for _ in range(2))
    np.testing.assert_array_equal(*twice)
    generator = np.random.default_rng(5)
    before = generator.bit_generator.state
    assert not np.array_equal(said(generator), said(generator))  # two different children
    assert generator.bit_generator.state == before


@pytest.mark.parametrize("cls", [ESNRegressor, RNNRegressor])
def test_one_sequence_alone_continues_after_training(cls):
    rows, y = case(cls)
    new = X[ROWS:]
    one, table = fitted(cls, [rows], [y]), fitted(cls, rows, y)
    np.testing.assert_array_equal(one.predict([new])[0], table.predict(new))
    zeros = one.predict(new, initial_state="zeros")
    assert not np.allclose(zeros, one.predict(new), atol=1e-9)
    several, states = one.predict([new, rows], return_state=True)
    close(several[:1], [zeros], 1e-12)
    assert len(states) == 2
    many = fitted(cls, *sequences_of(cls))
    np.testing.assert_array_equal(many.predict(new), many.predict(new, initial_state="zeros"))


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("cls", NUMBERS)
def test_predictions_have_the_dimensions_of_the_targets(cls, dtype):
    for y in (Y[:ROWS, 0], Y[:ROWS, :1], Y[:ROWS]):
        model = fitted(cls, X[:ROWS], y, dtype=dtype)
        found = model.predict(X)
        assert (found.shape[1:], found.dtype) == (y.shape[1:], np.dtype(dtype))
        if hasattr(model, "coef_"):
            assert model.coef_.shape[:-1] == y.shape[1:]


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize(
    ("cls", "options"),
    [case for case in OPTIONS if case[0] in NUMBERS and not {"feedback", "output"} & {*case[1]}],
)
def test_rows_of_weight_0_drive_the_network_and_are_not_learned(cls, options):
    rows, y = case(cls)
    weights, wild = np.ones(ROWS), y.copy()
    weights[50:90], wild[50:90] = 0, 1e3
    other = rows.copy()
    other[89] += 1.0
    found, expected, moved = (
        result(made(cls, **options).fit(*data, sample_weight=weights), X)
        for data in ((rows, wild), (rows, y), (other, wild))
    )
    close(found, expected, 1e-9)
    assert not np.allclose(moved, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("cls", [c for c in by_row("partial_fit") if "RNN" not in c.__name__])
def test_learned_in_two_chunks_it_is_the_same_model(cls):
    rows, y = case(cls)
    options = {"washout": 20, "alpha": 1e-3}
    chunks = made(cls, **options)
    for part in (slice(0, CHUNK), slice(CHUNK, ROWS)):
        classes = {"classes": np.unique(y)} if is_classifier(cls) else {}
        chunks.partial_fit(rows[part], y[part], **classes)
    close(result(chunks, X[ROWS:]), result(fitted(cls, rows, y, **options), X[ROWS:]), 1e-7)


# --- several sequences ---------------------------------------------------------------------------


def sequences_of(cls):
    """Return several sequences with their targets."""
    rows, y = case(cls)
    if is_whole(cls):
        return rows, y
    cuts = (50, 90)
    return np.split(rows, cuts), np.split(y, cuts)


@pytest.mark.parametrize("cls", [*by_row(), *whole()])
def test_a_list_is_its_members(cls):
    several, y = sequences_of(cls)
    model = fitted(cls, several, y, initial_state="zeros")
    alone = [result(model, [part])[0] for part in several]
    # sums over rows; features of whole sequences are float32
    close(result(model, several), alone, 1e-6 if is_whole(cls) else 1e-12)


@pytest.mark.parametrize("cls", [*by_row(), *whole()])
def test_the_order_of_sequences_does_not_matter(cls):
    several, y = sequences_of(cls)
    options = {"max_iter": 0, "alpha": 1e-3}  # the choice of alpha compares earlier and later rows
    there = fitted(cls, several, y, **options)
    back = fitted(cls, several[::-1], y[::-1], **options)
    close(result(back, several), result(there, several), 1e-6)


@pytest.mark.fast_cases(5)
@pytest.mark.parametrize("cls", [*by_row(), *whole()])
def test_a_list_is_a_table_with_ids_whatever_their_names(cls):
    several, y = sequences_of(cls)
    expected = result(fitted(cls, several, y), several)
    if is_whole(cls):  # for a table the target is repeated in each row, and so is the result
        y = [np.array([value] * len(part)) for value, part in zip(y, several, strict=True)]
    table, targets, _ = stack_sequences(several, y)
    for renamed in (table, np.column_stack([7.0 - 3 * table[:, 0], table[:, 1:]])):
        found = result(fitted(cls, renamed, targets, sequence_column=0), renamed)
        each = len(found) // len(expected) if is_whole(cls) else 1
        close(found[::each], expected, 1e-12)


# --- units, names and columns --------------------------------------------------------------------

SCALES, SHIFTS = np.array([1e3, 1e-3]), np.array([5.0, -1e-2])
IN_UNITS = X * SCALES + SHIFTS


@pytest.mark.parametrize("cls", by_row())
def test_behind_a_scaler_units_do_not_matter(cls):
    y = target(cls)[:ROWS]
    there, here = (
        make_pipeline(StandardScaler(), made(cls, max_iter=0)).fit(rows[:ROWS], y)
        for rows in (IN_UNITS, X)
    )
    close(result(there, IN_UNITS[ROWS:]), result(here, X[ROWS:]), 1e-6)


@pytest.mark.parametrize(
    "cls", [c for c in whole() if "scaling" in inspect.signature(c).parameters]
)
def test_channels_of_whole_sequences_are_scaled_within(cls):
    cases, y = case(cls)
    other = [*IN_UNITS.reshape(-1, 15, 2)]
    close(result(fitted(cls, other, y), other), result(fitted(cls, cases, y), cases), 1e-6)


@pytest.mark.parametrize("cls", [c for c in [*by_row("score"), *whole()] if hasattr(c, "predict")])
def test_predictions_follow_the_units_of_the_targets_or_the_names_of_classes(cls):
    cases, y = case(cls)
    options = {"max_iter": 0}
    model = fitted(cls, cases, y, **options)
    if is_classifier(cls):
        names = {"high": "a", "low": "b"}
        renamed = fitted(cls, cases, np.vectorize(names.get)(y), **options)
        assert renamed.predict(cases).tolist() == [names[v] for v in model.predict(cases)]
        return
    other = fitted(cls, cases, 1e4 * y - 3e4, **options)
    close(other.predict(cases), 1e4 * model.predict(cases) - 3e4, 1e-6)
    swapped = fitted(cls, cases, y[:, ::-1], **options)
    close(swapped.predict(cases), model.predict(cases)[:, ::-1], 1e-6)


@pytest.mark.parametrize("cls", [*by_row(), *whole()])
def test_named_columns_in_another_order_are_never_taken_by_position(cls):
    pandas = pytest.importorskip("pandas")
    cases, y = case(cls)
    frames = (
        [pandas.DataFrame(rows, columns=["a", "b"]) for rows in cases]
        if is_whole(cls)
        else pandas.DataFrame(cases, columns=["a", "b"])
    )
    model = fitted(cls, frames, y)
    other = [f[["b", "a"]] for f in frames] if is_whole(cls) else frames[["b", "a"]]
    with pytest.raises(ValueError, match=r"order|names"):
        result(model, other)


# --- what holds an estimator ---------------------------------------------------------------------


def holders(model, X, y):
    """Return an estimator alone, in a pipeline, in a search, fitted alike."""
    yield clone(model).fit(X, y)
    yield make_pipeline(FunctionTransformer(), clone(model)).fit(X, y)
    name, value = next(iter(model.get_params().items()))
    yield GridSearchCV(clone(model), {name: [value]}, cv=KFold(2), error_score="raise").fit(X, y)


@pytest.mark.parametrize("cls", by_row("score"))
def test_alone_in_a_pipeline_and_in_a_search_it_predicts_the_same(cls):
    alone, *others = holders(made(cls), *case(cls))
    for other in others:
        np.testing.assert_array_equal(other.predict(X[ROWS:]), alone.predict(X[ROWS:]))


@pytest.mark.parametrize("cls", [c for c in by_row("forecast") if not is_classifier(c)])
def test_alone_in_a_pipeline_and_in_a_search_it_forecasts_the_same(cls):
    rows, y = make_forecast_pairs(X[:ROWS])
    alone, *others = holders(made(cls), rows, y)
    for other in others:
        close(forecast(other, 4), alone.forecast(4), 1e-12)


@pytest.mark.parametrize("cls", [c for c in by_row("forecast") if not is_classifier(c)])
def test_behind_a_scaler_a_forecast_follows_the_units_of_the_series(cls):
    options = {"max_iter": 0, "alpha": 1e-3}
    here, there = (
        forecast(make_pipeline(StandardScaler(), made(cls, **options)).fit(rows[:-1], rows[1:]), 4)
        for rows in (X[:ROWS], IN_UNITS[:ROWS])
    )
    close((there - SHIFTS) / SCALES, here, 1e-6)

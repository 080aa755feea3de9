"""`merge`: models fitted apart give the model of all rows, or raise and change nothing."""

import functools
import itertools
import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge

from reservoir import ESNClassifier, ESNRegressor, NVARRegressor, force_train, load, save
from reservoir.estimators.progress import NextInputCheck, Progress

pd = pytest.importorskip("pandas")

pytestmark = pytest.mark.one_engine
rng = np.random.default_rng(0)
X = rng.normal(size=(900, 2))
Y = np.convolve(X[:, 0], 0.7 ** np.arange(8))[:900] + 0.3 * rng.normal(size=900)
LABELS = np.array(["low", "mid", "high"])[np.digitize(Y, [-0.5, 0.5])]
CUTS = [300, 550]
XS, YS, NAMES = (np.split(each, CUTS) for each in (X, Y, LABELS))
NEW = rng.normal(size=(200, 2))


def esn(kind=ESNRegressor, n_units=15, **params):
    return kind(n_units, random_state=0, **params)


def merged(make, Xs, ys):
    """Fit one estimator for each sequence, and merge them in order."""
    return functools.reduce(
        lambda one, other: one.merge(other),
        [make().fit(rows, targets) for rows, targets in zip(Xs, ys, strict=True)],
    )


def outputs(model, rows=NEW):
    found = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    return found(rows, initial_state="zeros")


def close(one, other, tol=1e-8):
    np.testing.assert_allclose(one, other, rtol=0, atol=tol * np.abs(other).max())


# --- one fit of the list ------------------------------------------------------------------------

SAME = {
    "alpha": lambda: esn(alpha=1e-2),
    "gcv": lambda: esn(alpha_selection="gcv"),
    "reml": lambda: esn(alpha_selection="reml"),
    "qr": lambda: esn(alpha=1e-6, solver="qr"),
    "rows of the input": lambda: esn(alpha=1e-2, n_lags=4),
    "feedback": lambda: esn(alpha=1e-2, feedback=True),
    "unbounded units": lambda: esn(alpha=1e-2, activation="identity"),
    "increments": lambda: NVARRegressor(3, alpha=1e-3, increments=True),
    "NVAR": lambda: NVARRegressor(3, degree=2, alpha_selection="gcv"),
}


@pytest.mark.fast_cases(5)
@pytest.mark.parametrize("kind", SAME)
def test_models_fitted_apart_predict_as_one_fit(kind):
    """The sums of all rows determine the readout, wherever they were made."""
    one, model = SAME[kind]().fit(XS, YS), merged(SAME[kind], XS, YS)
    close(outputs(model), outputs(one))
    close(model.state_, one.state_)
    np.testing.assert_array_equal(model.alpha_, one.alpha_)
    np.testing.assert_array_equal(model.washout_, one.washout_)
    assert model._model.n_trained == len(X)
    for found, wanted in zip(model.training_, one.training_, strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("kind", ["alpha", "gcv", "NVAR"])
def test_what_follows_a_merge_follows_one_fit(kind, tmp_path):
    """partial_fit, a session, a pickle and a file continue where the later model ended."""
    one, model = SAME[kind]().fit(XS, YS), merged(SAME[kind], XS, YS)
    save(model, tmp_path / "model.npz")
    for each in (model, load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        close(outputs(each), outputs(one))
    sessions = [each.stream() for each in (model, one)]
    for session in sessions:
        session.learn(NEW[:30], NEW[:30, 0])
    close(sessions[0].predict(NEW[30:40]), sessions[1].predict(NEW[30:40]))
    for each in (model, one):
        each.partial_fit(NEW, NEW[:, 0])
    close(outputs(model), outputs(one))


# penalties far above rounding, by which "gcv" would choose where there are fewer rows than units
FAR = {"alpha": np.logspace(-2, 2, 9), "alpha_selection": "gcv"}


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("params", [{"alpha": 1e-2}, FAR], ids=["one", "gcv"])
def test_models_of_few_rows_are_merged_with_few_and_with_many(params):
    """Where a fit keeps its rows, which are fewer than units, the merged model has their sums."""
    ends = [0, 40, 90, 390]
    Xs, ys = ([each[a:b] for a, b in itertools.pairwise(ends)] for each in (X, Y))
    for order in ([0, 1], [0, 1, 2], [2, 0]):
        pair = [[each[i] for i in order] for each in (Xs, ys)]
        model = merged(lambda: esn(n_units=200, **params), *pair)
        close(outputs(model), outputs(esn(n_units=200, **params).fit(*pair)))


@settings(max_examples=8)
@given(st.lists(st.integers(1, 899), min_size=1, max_size=6, unique=True))
def test_any_cut_into_sequences_gives_one_fit(cuts):
    """Sequences of any lengths, of one row too."""
    Xs, ys = (np.split(each, sorted(cuts)) for each in (X, Y))

    def begun(rows, targets):
        return NVARRegressor(2, alpha=1e-3, washout=0).partial_fit(rows, targets)

    model = functools.reduce(lambda a, b: a.merge(b), map(begun, Xs, ys))
    one = NVARRegressor(2, alpha=1e-3, washout=0)
    for rows, targets in zip(Xs, ys, strict=True):
        one.partial_fit(rows, targets, new_sequence=True)
    close(outputs(model), outputs(one))


def test_halves_and_sampled_rows_are_those_of_the_models():
    """By default each model has halves of its own; their rows are all there."""
    model = merged(lambda: esn(ESNClassifier), XS, NAMES)
    one = esn(ESNClassifier).fit(XS, NAMES)
    parts = model._model.readout.parts
    assert sum(part.n_samples for part in parts.values()) == one._model.readout.n_rows
    assert min(part.n_samples for part in parts.values()) > 250
    agree = model.predict(X, initial_state="zeros") == one.predict(X, initial_state="zeros")
    assert agree.mean() > 0.95
    model.partial_fit(X[:100], LABELS[:100])  # halves go on
    assert model._model.readout.runs.n_rows == model._model.readout.n_rows


def test_a_merged_model_ends_in_no_series():
    """Rows of the other model do not follow: a forecast needs context, predict begins anew."""
    model = merged(
        lambda: NVARRegressor(2, alpha=1e-6), [X[:300], X[300:600]], [X[1:301], X[301:601]]
    )
    with pytest.raises(ValueError, match="context"):
        model.forecast(3)
    assert model.forecast(3, context=X[:10]).shape == (3, 2)
    np.testing.assert_array_equal(model.predict(NEW), model.predict(NEW, initial_state="steady"))


def test_alpha_of_this_estimator_counts():
    """The penalty is that of the one whose method is called."""
    one, other = esn(alpha=1.0).fit(X[:400], Y[:400]), esn(alpha=5.0).fit(X[400:], Y[400:])
    before = pickle.dumps(other)
    assert one.merge(other) is one
    assert one.alpha_ == 1.0
    close(outputs(one), outputs(esn(alpha=1.0).fit([X[:400], X[400:]], [Y[:400], Y[400:]])))
    assert pickle.dumps(other) == before


def test_units_saturated_in_both_warn_once():
    """Records of both are added; a warning that was given is not repeated."""
    with pytest.warns(UserWarning, match="bounds of tanh"):
        models = [
            esn(input_scaling=100.0, alpha=1.0).fit(x, y) for x, y in zip(XS, YS, strict=True)
        ]
    models[0].merge(models[1])


def test_ids_and_times_of_both_are_kept():
    """Ids come together; a time of the other model is counted from the first row of this one."""
    frames = [
        pd.DataFrame({"id": name, "t": np.arange(50.0) + begin, "a": X[:50, 0]})
        for name, begin in (("p", 3.0), ("q", 40.0))
    ]
    models = [
        esn(alpha=1.0, sequence_column="id", time_column="t", time_step=1.0).fit(f, Y[:50])
        for f in frames
    ]
    both = esn(alpha=1.0, sequence_column="id", time_column="t", time_step=1.0)
    both.fit(pd.concat(frames), np.tile(Y[:50], 2))
    one = models[0].merge(models[1])
    assert set(one._model.progress.ids) == {"p", "q"}
    close(one.state_, both.state_)
    with pytest.raises(ValueError, match="id 'q'"):
        one.merge(models[1])


# --- what raises --------------------------------------------------------------------------------

DIFFER = {
    "array W, random_state=0": ({}, {"random_state": 1}),
    "array bias, bias_scaling": ({}, {"bias_scaling": 0.7}),
    "n_units=15": ({}, {"n_units": 16}),
    "washout": ({}, {"washout": 7}),
    "dtype": ({}, {"dtype": "float32"}),
    "solver='cholesky'": ({}, {"solver": "qr"}),
    "alpha_selection='auto'": ({}, {"alpha_selection": "gcv"}),
    "alpha=0.1": ({"alpha": 0.1}, {"alpha": "auto"}),
    "forgetting=0.9": ({"forgetting": 0.9}, {"forgetting": 0.9}),
    "readout=Ridge": ({"readout": Ridge()}, {"readout": Ridge()}),
    "noise=0.1": ({"noise": 0.1}, {"noise": 0.1}),
    **{
        f"alpha_selection='{rule}'": ({"alpha_selection": rule}, {"alpha_selection": rule})
        for rule in ("blocked", "holdout", "reml_ar1")
    },
}


@pytest.mark.fast_cases(7)
@pytest.mark.parametrize("name", DIFFER)
def test_models_that_differ_are_named_and_unchanged(name):
    """The message names what differs, and neither model has changed."""
    mine, its = ({"n_units": 15, "random_state": 0, **each} for each in DIFFER[name])
    one, other = ESNRegressor(**mine).fit(*PART), ESNRegressor(**its).fit(*PART)
    refused(one, other, name)


PART = X[:200], Y[:200]
FRAMES = [pd.DataFrame(X[:200], columns=names) for names in (["a", "b"], ["a", "c"])]
OTHERS = {
    "names of the columns": lambda: [esn().fit(frame, Y[:200]) for frame in FRAMES],
    "columns of X: 2 here, and 1": lambda: [esn().fit(*PART), esn().fit(X[:200, :1], Y[:200])],
    "y one-dimensional": lambda: [esn().fit(X[:200], y) for y in (Y[:200], Y[:200, None])],
    "number of outputs": lambda: [esn().fit(X[:200], y) for y in (Y[:200, None], X[:200])],
    "classes_": lambda: [
        esn(ESNClassifier, alpha=1.0).fit(X[:200], y)
        for y in (LABELS[:200], np.char.upper(LABELS[:200]))
    ],
    "transition='auto'": lambda: [
        esn(ESNClassifier, transition="auto").fit(X[:200], LABELS[:200]) for _ in range(2)
    ],
    "readout=LogisticRegression": lambda: [
        esn(ESNClassifier, readout=LogisticRegression()).fit(X[:200], LABELS[:200])
        for _ in range(2)
    ],
    "alpha_selection='forecast'": lambda: [
        esn(alpha_selection="forecast").fit(X[:200], X[1:201]) for _ in range(2)
    ],
    "array centre": lambda: [
        NVARRegressor(2, basis="chebyshev").fit(X[:200] * scale, Y[:200]) for scale in (1, 2)
    ],
}


@pytest.mark.fast_cases(5)
@pytest.mark.parametrize("name", OTHERS)
def test_data_that_differ_are_named(name):
    """Columns, the form of y, classes and readouts that keep more than sums."""
    refused(*OTHERS[name](), name)


def refused(one, other, name):
    before = pickle.dumps(one), pickle.dumps(other)
    with pytest.raises(ValueError, match=re.escape(name)):
        one.merge(other)
    assert (pickle.dumps(one), pickle.dumps(other)) == before


def test_only_another_fitted_estimator_of_the_same_kind():
    """Itself, another class, and an estimator without rows."""
    one = esn(alpha=1.0).fit(*PART)
    with pytest.raises(ValueError, match="itself"):
        one.merge(one)
    with pytest.raises(TypeError, match="needs another ESNRegressor; got NVARRegressor"):
        one.merge(NVARRegressor(2).fit(*PART))
    for pair in ((one, esn()), (esn(), one)):
        with pytest.raises(NotFittedError):
            pair[0].merge(pair[1])
    with pytest.warns(RuntimeWarning, match="does not follow"):
        loops = [force_train(esn(feedback=True), Y[:200]) for _ in range(2)]
    with pytest.raises(ValueError, match="LoopTrainedReadout"):
        loops[0].merge(loops[1])
    short = esn(alpha=1.0, washout=50).partial_fit(X[:20], Y[:20])  # washout only
    with pytest.raises(NotFittedError, match="washout"):
        short.merge(esn(alpha=1.0, washout=50).partial_fit(X[:10], Y[:10])).predict(X)
    whole = esn(alpha=1.0, washout=50).fit(*PART)
    close(outputs(short.merge(whole)), outputs(whole))


# --- positions ----------------------------------------------------------------------------------


def test_an_unknown_range_stays_unknown():
    """Files of earlier versions lack the range of inputs, and have NaN for that of targets."""
    one, other = Progress(1), Progress(1)
    one.target_range, other.target_range = np.array([[0.0], [1.0]]), np.full((2, 1), np.nan)
    other.input_range = np.zeros((2, 1))
    joined = one.joined(other)
    assert np.isnan(joined.target_range).all()
    assert joined.input_range is None


def test_targets_that_are_no_next_inputs_are_known_from_either_model():
    """One differing pair in either comparison is one in both."""
    same, not_same = NextInputCheck(1, False), NextInputCheck(1, False)
    same.add(X[:9, :1], X[1:10, :1])
    not_same.add(X[:9, :1], Y[:9, None])
    assert same.joined(same).holds
    for pair in ((same, not_same), (not_same, same)):
        assert not pair[0].joined(pair[1]).holds
    assert len(same.joined(same).targets) == 16
    assert NextInputCheck(1, False).joined(same).holds

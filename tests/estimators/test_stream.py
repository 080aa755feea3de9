"""Sessions that learn: equal to partial_fit row by row, whatever was predicted before."""

import copy
import itertools
import pickle
import tracemalloc
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.metrics import accuracy_score, r2_score

from helpers.toys.nearest_readout import NearestReadout
from reservoir import (
    ESNClassifier,
    ESNRegressor,
    NVARRegressor,
    RNNClassifier,
    RNNRegressor,
    load,
    save,
)
from reservoir.datasets import narma
from reservoir.estimators.stream import Chunk, PendingRows
from reservoir.readouts import LMS, READOUTS, RecursiveLeastSquares, SlidingWindow

pytestmark = pytest.mark.one_engine

X, y = narma(700, random_state=0)
TWO = np.c_[y, 100 * y**2 + X[:, 0]]
LABELS = np.array(["low", "middle", "high"])[(y > 0.25).astype(int) + (y > 0.4)]
FITTED, END = 300, 420
esn = partial(ESNRegressor, 30, leak_rate=1.0, alpha=1e-6, random_state=0)
MODELS = {
    "ridge": (esn(), y),
    "qr": (esn(solver="qr"), y),
    "two outputs": (esn(), TWO),
    "chosen penalty": (esn(alpha=[1e-8, 1e-2, 10], n_lags=1, input_alpha=None), y),
    "chosen rows": (esn(alpha="auto"), y),
    "no intercept": (esn(fit_intercept=False), y),
    "feedback": (esn(feedback=True), y),
    "noise": (esn(noise=1e-3), y),
    "single precision": (esn(dtype="float32"), y),
    "squares": (esn(augment="square"), y),
    "lags": (NVARRegressor(3, alpha=1e-6), y),
    "increments": (NVARRegressor(2, increments=True, alpha=1e-6), np.roll(X, -1, axis=0)),
    "three classes": (ESNClassifier(30, random_state=0), LABELS),
    "two classes": (ESNClassifier(30, random_state=0), LABELS == "low"),
    "readout": (esn(readout=SGDRegressor(random_state=0)), y),
    "classifier": (
        ESNClassifier(30, readout=SGDClassifier(random_state=0), random_state=0),
        LABELS,
    ),
    "recursive": (esn(readout=RecursiveLeastSquares(alpha=1e-6)), y),
    "lms": (esn(readout=LMS()), y),
    "window": (esn(readout=SlidingWindow(100)), y),
    "trained": (RNNRegressor(6, init="esn", max_iter=3, random_state=0), y),
    "trained by rtrl": (RNNRegressor(6, init="esn", max_iter=3, random_state=0, online="rtrl"), y),
    "trained on labels": (RNNClassifier(6, init="esn", max_iter=3, random_state=0), LABELS),
}


def fitted(name, n=FITTED):
    model, targets = MODELS[name]
    return copy.deepcopy(model).fit(X[:n], targets[:n]), targets


def as_numbers(model, rows):
    return rows if rows.dtype.kind == "f" else (rows[:, None] == model.classes_).astype(float)


def assert_alike(model, rows, expected):
    tolerance = 1e-4 if rows.dtype == np.float32 else 1e-8
    rows, expected = as_numbers(model, rows), as_numbers(model, expected)
    assert np.abs(rows - expected).max() <= tolerance * expected.std()


# --- what is learned ---------------------------------------------------------------------------


@pytest.mark.fast_cases(7)
@pytest.mark.parametrize("name", MODELS)
def test_learning_is_that_of_partial_fit(name):
    """Rows predicted before or not, in chunks: the estimator that partial_fit makes of them."""
    (model, targets), (expected, _) = fitted(name), fitted(name)
    if hasattr(model, "alpha_scores_"):
        chosen = {"alpha": model.alpha_}  # what was chosen stays
        if name == "chosen rows":
            assert model.n_lags_ > 1
            chosen |= {"n_lags": model.n_lags_, "input_alpha": model.input_alpha_}
            expected = clone(model).set_params(**chosen).fit(X[:FITTED], y[:FITTED])
        expected.set_params(**chosen)
    session = model.stream()
    for i, (a, b) in enumerate(itertools.pairwise([FITTED, 301, 302, 330, 331, END])):
        if i % 2:
            session.predict(X[a:b])
        session.learn(X[a:b], targets[a:b])
        expected.partial_fit(X[a:b], targets[a:b])
    assert_alike(model, session.predict(X[END:]), expected.predict(X[END:]))
    assert session.n_learned_ == END - FITTED


def test_each_output_keeps_its_penalty():
    noisy = np.c_[y, np.random.default_rng(0).normal(size=(700, 2))]
    one = {"n_lags": 1, "input_alpha": None}
    model = esn(alpha=[1e-8, 1e-2, 10], alpha_per_target=True, **one)
    model = model.fit(X[:FITTED], noisy[:FITTED])
    assert len(set(model.alpha_)) == 2
    session = model.stream().learn(X[FITTED:END], noisy[FITTED:END])
    for k, alpha in enumerate(model.alpha_):
        one = esn(alpha=alpha).fit(X[:FITTED], noisy[:FITTED, k])
        one.partial_fit(X[FITTED:END], noisy[FITTED:END, k])
        rows = session.to_estimator().predict(X[END:])[:, k]
        assert_alike(one, rows, one.predict(X[END:]))


def test_a_readout_of_another_kind_learns_if_it_can(monkeypatch):
    monkeypatch.setitem(READOUTS, "nearest", NearestReadout)
    model = esn(readout="nearest").fit(X[:FITTED], y[:FITTED])
    session = model.stream().learn(X[FITTED:END], y[FITTED:END])
    expected = copy.deepcopy(model).partial_fit(X[FITTED:END], y[FITTED:END])
    np.testing.assert_array_equal(session.predict(X[END:]), expected.predict(X[END:]))
    with pytest.raises(AttributeError, match="NearestRows has no forgetting"):
        session.forgetting  # noqa: B018 (reading is refused)
    monkeypatch.delattr(NearestReadout, "row_learner")
    with pytest.raises(TypeError, match="'nearest' does not learn in a session: NearestReadout"):
        model.stream().learn(X[FITTED:END], y[FITTED:END])


@pytest.mark.slow
def test_the_estimator_and_other_sessions_are_not_changed():
    for name in MODELS:
        model, targets = fitted(name, 100)
        n = 400 if name in ("ridge", "qr", "classifier") else 10
        before, rows = pickle.dumps(model), model.predict(X[100:120])
        one, other = model.stream(), model.stream()
        one.learn(X[100 : 100 + n], targets[100 : 100 + n])
        one.to_estimator().partial_fit(X[600:620], targets[600:620])
        other.learn(X[100:101], targets[100:101])
        assert pickle.dumps(model) == before, name
        np.testing.assert_array_equal(model.predict(X[100:120]), rows)
        again = model.stream().learn(X[100:101], targets[100:101])
        np.testing.assert_array_equal(other.predict(X[101:110]), again.predict(X[101:110]))


# --- which rows are meant ----------------------------------------------------------------------


def test_the_state_advances_once_per_row():
    """However predictions and targets come: the outputs are those of one run."""
    end = FITTED + 50
    model = esn().fit(X[:FITTED], y[:FITTED])
    states = model.states(X[FITTED:])

    def learn_alone(session, t):
        session.learn(X[t : t + 1], y[t : t + 1])

    def predict_and_learn(session, t):
        session.predict(X[t : t + 1])
        session.learn(X[t : t + 1], y[t : t + 1])

    def predict_twice_learn_both(session, t):
        session.predict(X[t : t + 1])
        if t % 2:
            session.learn(X[t - 1 : t + 1], y[t - 1 : t + 1])

    def predict_many_learn_each(session, t):
        if t % 10 == 0:
            session.predict(X[t : t + 10])
        session.learn(X[t : t + 1], y[t : t + 1])

    expected = copy.deepcopy(model).partial_fit(X[FITTED:end], y[FITTED:end])
    for way in (learn_alone, predict_and_learn, predict_twice_learn_both, predict_many_learn_each):
        session = model.stream()
        for t in range(FITTED, end):
            way(session, t)
        np.testing.assert_allclose(session.state, states[end - FITTED - 1], atol=1e-13)
        assert_alike(model, session.predict(X[end:]), expected.predict(X[end:]))
        assert session.n_learned_ == end - FITTED


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("name", ["ridge", "feedback", "trained"])
def test_targets_may_come_late(name):
    """20 rows later: what is learned is the same, and predictions do not wait for it."""
    end = FITTED + 50
    model, targets = fitted(name)
    session, expected = model.stream(), model.stream()
    for t in range(FITTED, end):
        session.predict(X[t : t + 1])
        expected.learn(X[t : t + 1], targets[t : t + 1])
        if t - 20 >= FITTED:
            session.learn(X[t - 20 : t - 19], targets[t - 20 : t - 19])
    assert session.n_learned_ == end - FITTED - 20
    session.learn(X[end - 20 : end], targets[end - 20 : end])
    if name == "ridge":
        assert_alike(model, session.predict(X[end:]), expected.predict(X[end:]))
    elif name == "feedback":  # the weights are the same, and so is the state, fed with targets
        np.testing.assert_allclose(session.state, expected.state, atol=1e-12)
        assert_alike(model, session.predict(X[end:]), expected.predict(X[end:]))


def test_rows_whose_targets_never_come_are_given_up():
    model = esn().fit(X[:FITTED], y[:FITTED])
    session = model.stream()
    for t in range(FITTED, END):
        session.predict(X[t : t + 1])
        if t % 3 == 0:
            session.learn(X[t : t + 1], y[t : t + 1])
    weights = np.arange(FITTED, END) % 3 == 0
    expected = copy.deepcopy(model).partial_fit(X[FITTED:END], y[FITTED:END], weights.astype(float))
    assert_alike(model, session.predict(X[END:]), expected.predict(X[END:]))
    with pytest.raises(ValueError, match="predicted=True, but the 282 rows that wait"):
        session.learn(X[300:301], y[300:301], predicted=True)


def test_inputs_that_repeat_are_asked_about():
    model = esn().fit(np.tile(X[:10], (10, 1)), np.tile(y[:10], 10))
    row = X[:1]
    session = model.stream()
    for _ in range(3):
        session.predict(row)
    with pytest.warns(UserWarning, match="predicted several times and wait"):
        session.learn(row, y[:1])
    session.learn(row, y[:1], predicted=True).learn(row, y[:1])  # of the last one there is no doubt
    state = session.state
    session.predict(row)
    session.learn(row, y[:1], predicted=False)  # so it has come twice
    expected = model.stream(state)
    for _ in range(2):
        expected.predict(row)
    np.testing.assert_allclose(session.state, expected.state, atol=1e-14)


def test_rows_are_found_as_a_plain_search_finds_them():
    rng = np.random.default_rng(0)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = rng.integers(0, 2, (60, 1)) * 1.0
        waiting, first, n_run = PendingRows(25), 0, 0
        while n_run < 50:
            n = int(rng.integers(1, 6))
            chunk = Chunk(n_run, rows[n_run : n_run + n], np.zeros(1), rows[n_run : n_run + n])
            waiting.add(chunk)
            n_run += n
            first = waiting.chunks[0].first
            assert 25 <= len(waiting) < 31 or first == 0 or len(waiting) == n_run - first
            wanted = rows[rng.integers(0, 50) :][: rng.integers(1, 5)]
            found = [
                p
                for p in range(first, n_run - len(wanted) + 1)
                if np.array_equal(rows[p : p + len(wanted)], wanted)
            ]
            assert list(waiting.find(wanted)) == found
            if found and rng.random() < 0.5:
                end = found[0] + len(wanted)
                np.testing.assert_array_equal(waiting.outputs(found[0], end), wanted)
                waiting.drop_before(end, np.ones(1))
                first = end
            waiting = pickle.loads(pickle.dumps(waiting))
            assert len(waiting) == n_run - first if waiting.chunks else True


# --- where sequences begin ---------------------------------------------------------------------


def test_the_washout_of_a_new_sequence_is_not_learned():
    model = esn(washout=25).fit(X[:FITTED], y[:FITTED])
    assert model.stream().learn(X[300:310], y[300:310]).n_learned_ == 10  # goes on
    for initial_state in ("zeros", "steady", np.full(30, 0.1)):
        session = model.stream(initial_state).learn(X[300:310], y[300:310])
        assert session.n_learned_ == 0
        assert session.last_errors_.shape == (0,)
        assert session.learn(X[310:330], y[310:330]).n_learned_ == 5
        assert session.learn(X[330:340], y[330:340]).n_learned_ == 15
    session = model.stream("zeros").learn(X[300:350], y[300:350])
    session.reset()
    session.predict(X[400:420])
    session.learn(X[400:420], y[400:420]).learn(X[420:440], y[420:440])
    expected = copy.deepcopy(model)
    for rows in (slice(300, 350), slice(400, 440)):
        expected.partial_fit(X[rows], y[rows], new_sequence=True)
    assert_alike(model, session.predict(X[440:]), expected.predict(X[440:]))
    assert session.n_learned_ == 25 + 15


def test_a_stream_follows_one_sequence():
    ids = np.repeat([0.0, 1.0, 2.0], 100)
    table = np.c_[ids, X[:300]]
    model = esn(sequence_column=0).fit(table, y[:300])
    session = model.stream().learn(table[:50], y[:50])
    with pytest.raises(ValueError, match=r"follows one sequence.*this chunk contains 2 sequence"):
        session.learn(table[50:150], y[50:150])
    with pytest.raises(
        ValueError, match=r"to sequence 1\.0 of X. Begin a new sequence by .session.reset"
    ):
        session.predict(table[150:160])
    session.reset()
    assert session.predict(table[150:160]).shape == (10,)
    with pytest.raises(ValueError, match="A session follows one sequence"):
        esn().fit(X, y).stream().learn([X], [y])


# --- scores ------------------------------------------------------------------------------------


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("forgetting", [1.0, 0.95])
@pytest.mark.parametrize("name", ["ridge", "two outputs", "three classes", "trained"])
def test_the_score_is_that_of_the_predictions_before(name, forgetting):
    """As scikit-learn's, of the weights times the fading factors."""
    model, targets = fitted(name)
    session = model.stream(score_forgetting=forgetting)
    with pytest.raises(AttributeError, match=r"score_ is not available yet: 0 row\(s\)"):
        session.score_  # noqa: B018 (reading is refused)
    weights = None if "trained" in name else np.random.default_rng(0).integers(0, 3, 700) * 0.5
    said = []
    for a, b in itertools.pairwise([FITTED, 301, 310, 311, 340, END]):
        said.append(session.predict(X[a:b]))
        session.learn(X[a:b], targets[a:b], None if weights is None else weights[a:b])
    w = np.ones(700) if weights is None else weights
    counts = w[FITTED:END] > 0
    ages = forgetting ** np.arange(counts.sum() - 1, -1, -1.0)
    rows, truth = np.concatenate(said)[counts], targets[FITTED:END][counts]
    score = accuracy_score if name == "three classes" else r2_score
    expected = score(truth, rows, sample_weight=ages * w[FITTED:END][counts])
    assert session.score_ == pytest.approx(expected, abs=1e-10)
    assert session.n_learned_ == counts.sum()
    last = (w[340:END] > 0).sum()
    apart = (truth != rows) if name == "three classes" else truth - rows
    np.testing.assert_allclose(session.last_errors_, apart[-last:])


def test_the_score_of_a_constant_is_a_number():
    model = esn(fit_intercept=False).fit(X[:FITTED], np.zeros(FITTED))
    session = model.stream().learn(X[300:301], [0.0])
    with pytest.raises(AttributeError, match="1 row"):
        session.score_  # noqa: B018
    assert session.learn(X[301:302], [0.0]).score_ == 1.0


# --- what rows are learned from ----------------------------------------------------------------


def test_rows_without_a_target_are_run_over():
    gaps = np.where(np.arange(700) % 4 == 0, np.nan, y)
    model = esn(missing_targets="skip").fit(X[:FITTED], gaps[:FITTED])
    session = model.stream()
    for t in range(FITTED, END):
        session.learn(X[t : t + 1], gaps[t : t + 1])
    expected = copy.deepcopy(model).partial_fit(X[FITTED:END], gaps[FITTED:END])
    assert_alike(model, session.predict(X[END:]), expected.predict(X[END:]))
    assert session.n_learned_ == 90
    assert np.isfinite(session.score_)
    with pytest.raises(
        ValueError, match=r'NaN in column 0, first in row 0.*missing_targets="skip"'
    ):
        esn().fit(X, y).stream().learn(X[:1], gaps[:1])


def test_trained_networks_run_over_rows_without_a_target():
    gaps = np.where(np.arange(700) % 4 == 0, np.nan, y)
    rnn = RNNRegressor(6, init="esn", max_iter=3, missing_targets="skip", random_state=0)
    rnn.fit(X[:FITTED], gaps[:FITTED])
    session, expected = rnn.stream(), copy.deepcopy(rnn)
    for a in range(FITTED, END, 20):
        session.learn(X[a : a + 20], gaps[a : a + 20])
        expected.partial_fit(X[a : a + 20], gaps[a : a + 20])
    assert session.n_learned_ == 90
    assert np.isfinite(session.score_)
    assert_alike(rnn, session.predict(X[END:]), expected.predict(X[END:]))


def test_classes_may_come_later():
    clf = ESNClassifier(30, alpha=1e-2, random_state=0)
    classes = ["high", "low", "middle", "never"]
    calm = np.flatnonzero(LABELS != "high")[:100]
    clf.partial_fit(X[calm], LABELS[calm], classes=classes)
    session = clf.stream()
    for t in range(FITTED, 450):
        session.learn(X[t : t + 1], LABELS[t : t + 1])
    expected = copy.deepcopy(clf).partial_fit(X[FITTED:450], LABELS[FITTED:450])
    assert (session.predict(X[450:]) == expected.predict(X[450:])).all()
    assert "high" in expected.predict(X[450:])
    state = session.state.copy()
    with pytest.raises(ValueError, match="contains the label 'new', which is not among"):
        session.learn(X[:1], np.array(["new"]))
    np.testing.assert_array_equal(session.state, state)


def refused(error, match, model, *, targets=y, weights=None):
    session = model.fit(X[:60], targets[:60]).stream()
    with pytest.raises(error, match=match):
        session.learn(X[60:70], targets[60:70], weights)


def test_what_cannot_learn_row_by_row_raises():
    refused(TypeError, "Ridge has no partial_fit", esn(readout=Ridge()))
    plain = ESNClassifier(10, readout=LogisticRegression(), random_state=0)
    refused(TypeError, "LogisticRegression has no partial_fit", plain, targets=LABELS)
    balanced = ESNClassifier(10, class_weight="balanced", random_state=0)
    refused(ValueError, "class_weight='balanced' is not supported by a", balanced, targets=LABELS)
    whole = RNNRegressor(4, solver="lbfgs", max_iter=1)
    refused(ValueError, "session.learn makes one pass over the data, but solver='lbfgs'", whole)
    trained = RNNRegressor(4, init="esn", max_iter=1)
    refused(TypeError, "RNNRegressor does not support sample_weight", trained, weights=np.ones(10))
    refused(ValueError, "must be > 0|alpha", esn(alpha=0.0))
    last = RNNClassifier(4, init="esn", max_iter=1, target="last").fit(
        [X[:20], X[20:40]], ["a", "b"]
    )
    with pytest.raises(ValueError, match=r"session\.learn learns from a target at every step"):
        last.stream().learn(X[:5], ["a"])


BAD = {
    "NaN": np.where(np.arange(2) > 0, 1.0, np.nan)[None],
    "infinity": np.array([[1.0, np.inf]]),
    "three columns": np.zeros((1, 3)),
    "one dimension": np.zeros(2),
    "no rows": np.zeros((0, 2)),
    "complex": np.zeros((1, 2)) + 1j,
    "text": np.array([["a", "b"]]),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_the_short_way_raises_like_the_long_way(bad):
    """Plain arrays of the right width skip scikit-learn's checks; their messages are the same."""
    model = esn().fit(np.c_[X, X], y)
    session = model.stream().learn(np.ones((3, 2)), y[:3])
    messages = []
    for use in (session.predict, model.predict, lambda rows: session.learn(rows, y[:1])):
        for rows in (bad, bad.tolist()):
            with pytest.raises((ValueError, TypeError)) as error:
                use(rows)
            messages.append(str(error.value))
    assert messages[0] == messages[2] == messages[4]
    assert messages[1] == messages[3] == messages[5]
    if bad.dtype == np.float64 and bad.ndim == 2 and bad.size:
        assert len(set(messages)) == 1
    long, short = model.predict(np.ones((4, 2)).tolist()), model.predict(np.ones((4, 2)))
    np.testing.assert_array_equal(long, short)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        session.learn(np.ones((3, 2)), y[:2])
    with pytest.raises(ValueError, match="y has 2 outputs, but in earlier calls it had 1"):
        session.learn(np.ones((3, 2)), TWO[:3])
    with pytest.raises(ValueError, match="dimension"):
        session.learn(np.ones((3, 2)), y[:3, None])


def test_too_large_values_are_named_and_change_nothing():
    model = esn().fit(X[:FITTED], y[:FITTED])
    session = model.stream().learn(X[300:310], y[300:310])
    before = session.to_estimator()
    with pytest.raises(ValueError, match="squares of y overflow in column 0"):
        session.learn(X[310:311], np.array([1e200]))
    after = session.to_estimator()
    np.testing.assert_array_equal(after.coef_, before.coef_)
    assert after._model.readout.n_rows == before._model.readout.n_rows
    session.learn(X[310:311], y[310:311])
    assert session.n_learned_ == 11


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize(
    "model",
    [
        esn(),
        esn(noise=1e-3),
        esn(readout=RecursiveLeastSquares()),
        esn(alpha=[1e-6, 1e-2], alpha_per_target=True),
    ],
    ids=["ridge", "noise", "readout", "two penalties"],
)
@pytest.mark.parametrize("predicted", [False, True])
def test_errors_in_a_later_block_change_nothing(model, predicted, monkeypatch):
    """Rows are learned block by block; after a refusal the same rows may be learned once more."""
    monkeypatch.setattr("reservoir.dynamics.open_loop._BLOCK_ROWS", 16)
    model.fit(X[:FITTED], TWO[:FITTED])
    failing, other = (model.stream().learn(X[300:310], TWO[300:310]) for _ in range(2))
    if predicted:
        for session in (failing, other):
            session.predict(X[310:END])
    state = failing.state
    bad = TWO[310:END].copy()
    bad[-1, 1] = 1e200
    with pytest.raises(ValueError, match="squares of y overflow in column 1"):
        failing.learn(X[310:END], bad)
    np.testing.assert_array_equal(failing.state, state)
    assert len(failing._waiting) == len(other._waiting)
    for session in (failing, other):
        session.learn(X[310:END], TWO[310:END])
    assert failing.n_learned_ == other.n_learned_
    np.testing.assert_array_equal(failing.predict(X[END:]), other.predict(X[END:]))
    np.testing.assert_array_equal(
        failing.to_estimator().predict(X[:20]), other.to_estimator().predict(X[:20])
    )


def test_rows_that_raise_do_not_change_the_state():
    model = RNNRegressor(6, init="esn", max_iter=3, random_state=0).fit(X[:FITTED], y[:FITTED])
    session, other = model.stream(), model.stream()
    with pytest.raises(TypeError, match="does not support sample_weight"):
        session.learn(X[300:310], y[300:310], sample_weight=np.ones(10))
    np.testing.assert_array_equal(session.predict(X[300:310]), other.predict(X[300:310]))


def test_errors_of_arguments_name_their_bounds():
    model = esn().fit(X[:FITTED], y[:FITTED])
    session = model.stream()
    with pytest.raises(ValueError, match=r"forgetting=1.1 must be in \(0, 1\].* 1 - 1/n"):
        session.forgetting = 1.1
    with pytest.raises(ValueError, match="initial_state='start' is not known"):
        model.stream("start")
    with pytest.raises(ValueError, match=r"alpha=0 must be above 0.*such as 1e-10"):
        esn(alpha=0).fit(X[:FITTED], y[:FITTED]).stream().learn(X[300:301], y[300:301])
    with pytest.raises(TypeError, match="predicted must be True or False"):
        session.learn(X[300:310], y[300:310], predicted="yes")


# --- forgetting --------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The readout has .* columns:UserWarning")
def test_a_session_forgets_as_the_estimator_does():
    model = esn(forgetting=0.97, alpha=1e-8).fit(X[:FITTED], y[:FITTED])
    session = model.stream()
    assert session.forgetting == 0.97
    for t in range(FITTED, END):
        session.learn(X[t : t + 1], y[t : t + 1])
    expected = copy.deepcopy(model).partial_fit(X[FITTED:END], y[FITTED:END])
    rows = expected.predict(X[END:])
    # the penalty is put back a coefficient at a time: it is a tenth to once of what it is in a fit
    said = session.to_estimator().predict(X[END:])
    assert np.abs(said - rows).max() < 1e-3 * rows.std()
    going_on = session.to_estimator().partial_fit(X[END:500], y[END:500])
    expected.partial_fit(X[END:500], y[END:500])
    assert_alike(model, going_on.predict(X[500:]), expected.predict(X[500:]))


@pytest.mark.parametrize("solver", ["cholesky", "qr"])
def test_forgetting_may_be_set_while_it_runs(solver):
    """And all that was learned be made to weigh less at once."""
    model = esn(solver=solver, alpha=1e-9).fit(X[:FITTED], y[:FITTED])
    session = model.stream()
    assert session.forgetting == 1.0
    session.learn(X[300:350], y[300:350])
    session.forgetting = 0.9
    assert session.forgetting == 0.9
    session.learn(X[350:380], y[350:380])
    session.forgetting = 1.0
    session.forget(0.5).learn(X[380:END], y[380:END])
    # the rows of the training have aged as those after them
    aged = 0.5 * 0.9 ** np.arange(29, -1, -1.0)
    w = np.concatenate([np.zeros(30), np.full(320, 0.9 * aged[0]), aged, np.ones(41)])
    A = np.c_[np.ones(700), model.states(X, initial_state="zeros"), X]
    penalty = 1e-9 * np.diag([0.0] + [1.0] * 31)

    def ridge_of(rows):
        H, heavy = A[rows], w[rows, None] * A[rows]
        return A[END + 1 :] @ np.linalg.solve(H.T @ heavy + penalty, heavy.T @ y[rows])

    one = session.to_estimator()
    rows = ridge_of(slice(30, END))
    assert np.abs(session.predict(X[END:])[1:] - rows).max() < 1e-4 * rows.std()
    # what partial_fit goes on from weighs the same
    one.partial_fit(X[END : END + 1], y[END : END + 1])
    rows = ridge_of(slice(30, END + 1))
    assert np.abs(one.predict(X[END + 1 :]) - rows).max() < 1e-4 * rows.std()
    with pytest.raises(ValueError, match="forgetting"):
        session.forgetting = 1.5
    with pytest.raises(ValueError, match="factor"):
        session.forget(-1.0)


def test_recursive_least_squares_forgets_in_a_session_as_the_ridge_does():
    sessions = []
    for model in (esn(), esn(readout=RecursiveLeastSquares(alpha=1e-6))):
        session = model.fit(X[:FITTED], y[:FITTED]).stream()
        session.forgetting = 0.98
        session.learn(X[300:350], y[300:350]).forget(0.5).learn(X[350:END], y[350:END])
        assert session.forgetting == 0.98
        sessions.append(session)
        with pytest.raises(ValueError, match="forgetting"):
            session.forgetting = 0.0
    rows, expected = (session.predict(X[END:]) for session in sessions)
    assert np.abs(rows - expected).max() < 1e-6 * expected.std()


def test_all_may_be_forgotten():
    model = esn().fit(X[:FITTED], y[:FITTED])
    session = model.stream().forget()
    assert not session.predict(X[300:302]).any()
    session.learn(X[302:400], y[302:400])
    states = np.c_[model.states(X[300:500]), X[300:500]]
    expected = Ridge(alpha=1e-6, solver="cholesky").fit(states[2:100], y[302:400])
    rows = expected.predict(states[100:])
    assert np.abs(session.predict(X[400:500]) - rows).max() < 1e-6 * rows.std()
    after = session.to_estimator()
    assert after._model.readout.n_rows == 98


def test_readouts_that_cannot_forget_raise():
    for name, match in (("readout", "SGDRegressor has no"), ("trained", "trained network has no")):
        session = fitted(name, 100)[0].stream()
        with pytest.raises(AttributeError, match=match):
            session.forgetting = 0.9
        with pytest.raises(TypeError, match=match):
            session.forget()


# --- callbacks ---------------------------------------------------------------------------------

JUMP = np.where(np.arange(700) < 450, y, 1.0 - y)


def test_a_callback_may_make_it_forget():
    """A detector as simple as can be; the session that listens to it is soon right again."""

    def watch(session):
        seen.append(session.n_learned_)
        if np.abs(session.last_errors_).mean() > 5 * usual:
            session.forget(1e-3)

    model = esn().fit(X[:FITTED], JUMP[:FITTED])
    usual, seen = (
        np.abs(JUMP[:FITTED] - model.predict(X[:FITTED], initial_state="zeros")).mean(),
        [],
    )
    errors = []
    for callback in (None, watch):
        session = model.stream(callback=callback)
        for t in range(FITTED, 600):
            session.learn(X[t : t + 1], JUMP[t : t + 1])
        errors.append(np.abs(session.predict(X[550:600]) - JUMP[550:600]).mean())
    assert seen == list(range(1, 301))
    assert errors[1] < 0.5 * errors[0]
    with pytest.raises(
        TypeError, match="callback must be a function of the session, or None; got 3"
    ):
        model.stream(callback=3)


def test_detectors_of_river_find_the_drift(river):
    from river.drift import ADWIN, PageHinkley

    model = esn().fit(X[:FITTED], JUMP[:FITTED])
    soon = PageHinkley(min_instances=30, delta=0.005, threshold=1.0)
    for detector, latest in ((soon, 480), (ADWIN(), 700)):
        found = []

        def watch(session, detector=detector, found=found):
            for error in np.abs(session.last_errors_):
                detector.update(float(error))
            if detector.drift_detected:
                found.append(FITTED + session.n_learned_)
                session.forget(1e-3)

        session = model.stream(callback=watch)
        for t in range(FITTED, 700):
            session.learn(X[t : t + 1], JUMP[t : t + 1])
        assert 450 < found[0] <= latest
        assert np.abs(session.predict(X[650:]) - JUMP[650:]).mean() < 0.1


# --- what is left of a session -----------------------------------------------------------------


def by_npz(session, folder):
    save(session, folder / "session.npz")
    return load(folder / "session.npz")


def by_pickle(session, folder):
    return pickle.loads(pickle.dumps(session))


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("trip", [by_npz, by_pickle])
@pytest.mark.parametrize("name", MODELS)
def test_sessions_are_saved_in_the_middle(name, trip, tmp_path):
    """With rows that wait, sums that are not added yet and noise on its way."""
    model, targets = fitted(name)
    session = model.stream(callback=lambda session: None).learn(X[300:340], targets[300:340])
    session.predict(X[340:345])
    if trip is by_npz and name in ("readout", "classifier"):
        with pytest.raises(TypeError, match="cannot be written as arrays and text"):
            trip(session, tmp_path)
        return
    again = trip(session, tmp_path)
    assert again.callback is None
    assert session.callback is not None
    for one in (session, again):
        one.learn(X[340:345], targets[340:345]).learn(X[345:360], targets[345:360])
    assert again.score_ == session.score_
    assert again.n_learned_ == session.n_learned_
    np.testing.assert_array_equal(again.last_errors_, session.last_errors_)
    np.testing.assert_array_equal(again.state, session.state)
    for one in (again, session):
        one.rows = one.to_estimator().partial_fit(X[360:380], targets[360:380]).predict(X[380:])
    np.testing.assert_array_equal(again.rows, session.rows)
    np.testing.assert_array_equal(again.predict(X[360:]), session.predict(X[360:]))


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("name", MODELS)
def test_to_estimator_continues(name):
    """Behind rows that wait, and behind rows that were learned from."""
    (model, targets), (expected, _) = fitted(name), fitted(name)
    session = model.stream().learn(X[300:340], targets[300:340])
    one = session.to_estimator()
    assert type(one) is type(model)
    session.predict(X[340:350])
    ahead = session.to_estimator()
    np.testing.assert_array_equal(ahead.predict(X[350:360]), session.predict(X[350:360]))
    if name != "chosen penalty":  # which is chosen anew
        one.partial_fit(X[340:END], targets[340:END])
        expected.partial_fit(X[300:340], targets[300:340])
        expected.partial_fit(X[340:END], targets[340:END])
        assert_alike(model, one.predict(X[END:]), expected.predict(X[END:]))


def test_a_forecast_continues_after_the_session():
    pairs, follows = X[:-1], X[1:]
    model = esn().fit(pairs[:FITTED], follows[:FITTED])
    session = model.stream().learn(pairs[300:400], follows[300:400])
    expected = copy.deepcopy(model).partial_fit(pairs[300:400], follows[300:400])
    rows = session.to_estimator().forecast(5)
    np.testing.assert_allclose(rows, expected.forecast(5), atol=1e-8)
    # for the target of a row that waits stands its output
    session.predict(pairs[400:401])
    rows = session.to_estimator().forecast(4)
    expected = expected.forecast(5, context=pairs[400:401])[1:]
    np.testing.assert_allclose(rows, expected, atol=1e-8)


def test_outputs_that_stand_for_targets_are_not_compared_with_inputs():
    """What comes behind a row that waits is no reason to refuse a forecast."""
    pairs, follows = X[:-1], X[1:]
    session = esn().fit(pairs[:FITTED], follows[:FITTED]).stream()
    session.learn(pairs[300:310], follows[300:310]).predict(pairs[310:312])
    model = session.to_estimator().partial_fit(pairs[312:330], follows[312:330])
    assert np.isfinite(model.forecast(3)).all()
    model.partial_fit(pairs[331:340], follows[331:340])  # behind a target
    with pytest.raises(ValueError, match="needs y"):
        model.forecast(3)


def test_tables_that_do_not_follow_warn():
    pd = pytest.importorskip("pandas")
    dates = pd.date_range("2026-01-01", periods=700, freq="h")
    U, z = pd.DataFrame(X, dates), pd.Series(y, dates)
    session = esn().fit(U[:FITTED], z[:FITTED]).stream()
    session.predict(U[300:310])
    session.learn(U[300:305], z[300:305]).learn(U[305:310], z[305:310])
    session.learn(U[310:320], z[310:320]).predict(X[320:321])  # without dates nothing is known
    session.predict(U[321:322])
    with pytest.warns(UserWarning, match=r"X begins at 2026-01-15 10:00:00 and that row was at"):
        session.predict(U[346:350])
    with pytest.warns(UserWarning, match=r"session\.reset\(\)"):
        session.learn(U[320:330], z[320:330])
    # numbers that begin at 0 in every chunk tell nothing
    session = esn().fit(X[:FITTED], y[:FITTED]).stream()
    for begin in (300, 310):
        session.predict(pd.DataFrame(X[begin : begin + 10]))
    session.predict(pd.DataFrame(X[320:330], np.arange(20, 30)))


def test_tables_keep_their_index_and_names():
    pd = pytest.importorskip("pandas")
    days = pd.date_range("2024-01-01", periods=700, freq="D")
    table, series = pd.DataFrame(X, days, ["drive"]), pd.Series(y, days, name="level")
    model = esn().set_output(predict="pandas").fit(table[:FITTED], series[:FITTED])
    session = model.stream()
    for t in range(FITTED, 330):
        guess = session.predict(table[t : t + 1])
        assert guess.index.equals(days[t : t + 1])
        assert guess.name == "level"
        session.learn(table[t : t + 1], series[t : t + 1])
    assert session.n_learned_ == 30
    plain = esn().fit(X[:FITTED], y[:FITTED]).partial_fit(X[FITTED:330], y[FITTED:330])
    rows = session.to_estimator().predict(table[330:400])  # does not warn: it follows
    np.testing.assert_allclose(rows, plain.predict(X[330:400]), atol=1e-8)
    with pytest.warns(UserWarning, match="does not follow it: training ended at 2024-11-25"):
        session.to_estimator().predict(table[400:])
    with pytest.raises(ValueError, match="feature names"):
        session.learn(table.rename(columns={"drive": "other"})[330:331], series[330:331])


@pytest.mark.slow
def test_memory_stays_flat(monkeypatch):
    """Over 3000 rows, with forgetting, whether targets come late or never."""
    monkeypatch.setattr("reservoir.estimators.stream._MOST_WAITING", 1000)
    # compiled kernels, loaded once enough time was spent without them, are memory too
    monkeypatch.setattr("reservoir.dynamics.engines._WORTH_LOADING", np.inf)
    u, d = narma(3500, random_state=1)
    model = esn(forgetting=0.999).fit(u[:500], d[:500])
    session, never, late = model.stream(), model.stream(), 500
    sizes = []
    tracemalloc.start()
    try:
        for t in range(500, 3500):
            session.predict(u[t : t + 1])
            never.predict(u[t : t + 1])
            if t - late >= 500:
                session.learn(u[t - late : t - late + 1], d[t - late : t - late + 1])
            if t % 500 == 499:
                sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert len(never._waiting) == 1000
    assert max(sizes[-3:]) < min(sizes[-3:]) + 40_000


def test_a_copy_of_a_session_learns_by_itself():
    model = ESNRegressor(10, random_state=0).fit(X[:FITTED], y[:FITTED])
    session = model.stream().learn(X[FITTED:600], y[FITTED:600])
    before = session.to_estimator().coef_
    copy.copy(session).learn(X[600:620], -y[600:620])
    np.testing.assert_array_equal(session.to_estimator().coef_, before)


@pytest.mark.parametrize("kind", [ESNRegressor, RNNRegressor])
def test_a_session_is_saved_after_a_reset(kind, tmp_path):
    X, y = narma(120, random_state=0)
    options = {} if kind is ESNRegressor else {"max_iter": 1}
    session = kind(8, random_state=0, **options).fit(X[:80], y[:80]).stream()
    session.reset()
    session.predict(X[80:90])
    save(session, tmp_path / "session.npz")
    again = load(tmp_path / "session.npz")
    for each in (session, again):
        each.learn(X[80:90], y[80:90])
    np.testing.assert_array_equal(again.predict(X[90:]), session.predict(X[90:]))


@pytest.mark.parametrize("kind", [ESNRegressor, RNNRegressor])
def test_attributes_set_by_users_are_used(kind, tmp_path):
    X, y = narma(60, random_state=0)
    options = {"alpha": 1e-3} if kind is ESNRegressor else {"max_iter": 1}
    model = kind(5, random_state=0, **options).fit(X[:40], y[:40])
    moved, given = clone(model).fit(X[:40], y[:40]), np.linspace(-0.5, 0.5, 5)
    moved.state_ = given
    expected = model.predict(X[40:], initial_state=given)
    np.testing.assert_array_equal(moved.predict(X[40:]), expected)
    save(moved, tmp_path / "model.npz")
    np.testing.assert_array_equal(load(tmp_path / "model.npz").predict(X[40:]), expected)
    session = model.stream(initial_state=given).learn(X[40:50], y[40:50])
    moved.partial_fit(X[40:50], y[40:50])
    if kind is ESNRegressor:  # rows behind a state that did not follow are washout in a session
        np.testing.assert_array_equal(moved.state_, session.to_estimator().state_)
        return
    model.params_ = {name: 0 * array for name, array in model.params_.items()}
    model.params_["intercept"] += 1
    assert (model.predict(X[40:]) == 1).all()
    assert (model.stream().predict(X[40:]) == 1).all()

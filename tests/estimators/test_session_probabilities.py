"""Probabilities that continue from a state, and in sessions."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier

from reservoir import ESNClassifier, ESNRegressor, RNNClassifier
from reservoir.datasets import sine_square

pytestmark = pytest.mark.one_engine

X, y = sine_square(600, random_state=0)
WORDS = np.where(y == 1, "square", "sine")
THREE = np.digitize(X[:, 0], (-0.5, 0.5))

MODELS = {
    "esn": (ESNClassifier(20, random_state=0), WORDS),
    "three": (ESNClassifier(20, random_state=0), THREE),
    "feedback": (ESNClassifier(20, feedback=True, random_state=0), WORDS),
    "readout": (ESNClassifier(20, readout=LogisticRegression(), random_state=0), THREE),
    "rnn": (RNNClassifier(6, init="esn", max_iter=2, random_state=0), THREE),
    "lstm": (
        RNNClassifier(6, cell="lstm", init="esn", max_iter=2, dtype="float32", random_state=0),
        WORDS,
    ),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    clf, labels = MODELS[request.param]
    return clf.fit(X[:400], labels[:400])


@pytest.mark.fast_cases(2)
def test_the_state_continues(model):
    rows = model.predict_proba(X[400:])
    first, state = model.predict_proba(X[400:450], return_state=True)
    _, same = model.predict(X[400:450], return_state=True)
    np.testing.assert_array_equal(state, same)
    assert state.shape == model.state_.shape
    rest = model.predict_proba(X[450:], initial_state=state)
    np.testing.assert_allclose(np.concatenate([first, rest]), rows, rtol=1e-5, atol=1e-7)
    several, ends = model.predict_proba([X[:30], X[30:50]], return_state=True)
    assert [len(part) for part in several] == [30, 20]
    assert ends.shape == (2, state.size)


@pytest.mark.fast_cases(3)
def test_a_session_predicts_probabilities(model):
    rows = model.predict_proba(X[400:])
    session = model.stream()
    said = [session.predict_proba(X[start : start + 7]) for start in range(400, 600, 7)]
    np.testing.assert_allclose(np.concatenate(said), rows, rtol=1e-5, atol=1e-7)
    mixed = model.stream()
    mixed.predict(X[400:500])
    np.testing.assert_allclose(mixed.predict_proba(X[500:]), rows[100:], rtol=1e-5, atol=1e-7)


def test_a_session_learns_what_it_gave_probabilities_for():
    for readout in (None, SGDClassifier(loss="log_loss", random_state=0)):
        clf = ESNClassifier(20, readout=readout, random_state=0).fit(X[:300], THREE[:300])
        one, two = clf.stream(), clf.stream()
        for t in range(300, 400, 5):
            rows = slice(t, t + 5)
            labels, chances = one.predict(X[rows]), two.predict_proba(X[rows])
            np.testing.assert_array_equal(clf.classes_[chances.argmax(axis=1)], labels)
            one.learn(X[rows], THREE[rows], predicted=True)
            two.learn(X[rows], THREE[rows], predicted=True)
        assert two.score_ == one.score_ > 0.5
        ours, theirs = two.to_estimator(), one.to_estimator()
        np.testing.assert_array_equal(ours.predict_proba(X[400:]), theirs.predict_proba(X[400:]))


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("forgetting", [1.0, 0.98])
@pytest.mark.parametrize("size", [1, 8, 200])
def test_the_temperature_after_a_session_is_that_of_all_rows(forgetting, size):
    """Rows that a session has learned are among those that tell it, as heavy as in the sums."""
    rng = np.random.default_rng(size)
    labels = np.arange(600) // 5 % 2
    noise = np.where(np.arange(600) < 200, 0.2, 1.5)  # what comes in the session is less certain
    rows = (labels + noise * rng.normal(size=600))[:, None]

    def taught(*ends):
        clf = ESNClassifier(10, random_state=0, washout=0, forgetting=forgetting, alpha=1e-3)
        for begin, end in zip((0, *ends), ends, strict=False):
            clf.partial_fit(rows[begin:end], labels[begin:end], classes=[0, 1])
        return clf

    session = taught(200).stream()
    for t in range(200, 400, size):
        session.learn(rows[t : t + size], labels[t : t + size], predicted=False)
    clf = session.to_estimator().partial_fit(rows[400:], labels[400:])
    assert clf.temperature_ == pytest.approx(taught(200, 400, 600).temperature_, rel=1e-4)


def test_forgotten_rows_do_not_affect_the_temperature():
    clf = ESNClassifier(20, random_state=0).fit(X[:300], THREE[:300])
    session = clf.stream().forget(1e-3)
    session.forgetting = 0.9
    session.learn(X[300:320], THREE[300:320], predicted=False)
    kept = session.to_estimator()._model.readout.kept
    numbers, _, _, weights = kept.rows()
    aged = np.where(numbers < 300, 1e-3 * 0.9**20, 0.9 ** (319.0 - numbers))
    np.testing.assert_allclose(weights, aged)
    assert kept.forgetting == 0.9
    assert numbers[-1] == 319
    none = session.forget(0.0).to_estimator()._model.readout.kept
    assert len(none) == 0


def test_tables_come_out_with_the_classes_as_names():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["u"])
    clf = ESNClassifier(20, random_state=0).set_output(predict="pandas")
    session = clf.fit(frame[:400], WORDS[:400]).stream()
    rows = session.predict_proba(frame[400:410])
    assert list(rows.columns) == ["sine", "square"]
    assert rows.index.equals(frame.index[400:410])


def test_it_is_offered_where_the_estimator_has_it():
    assert not hasattr(ESNRegressor(5).fit(X, y).stream(), "predict_proba")
    hinge = RNNClassifier(4, loss="hinge", init="esn", max_iter=1, random_state=0).fit(X, y)
    assert not hasattr(hinge.stream(), "predict_proba")
    without = ESNClassifier(5, readout=RidgeClassifier()).fit(X, y)
    assert not hasattr(without.stream(), "predict_proba")

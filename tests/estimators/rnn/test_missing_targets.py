"""Trained networks on missing targets: rows with NaN drive the network and are not scored."""

import numpy as np
import pytest
from sklearn.metrics import r2_score
from sklearn.utils import compute_sample_weight

from reservoir import ESNClassifier, ESNRegressor, RNNClassifier, RNNRegressor
from reservoir.model_selection import washout_scorer
from reservoir.training.bptt import Network
from reservoir.training.cells import SimpleCell
from reservoir.training.initializers import initialize
from reservoir.training.online import OnlineLearner

pytestmark = pytest.mark.both_engines


def data(n=200, seed=0):
    """Return X, y, y with gaps, and the weights that say the same."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    y = 0.5 * X + 0.3 * np.roll(X, 1, axis=0)
    holes, weights = y.copy(), np.ones(n)
    holes[40:60, 0] = holes[-5:] = np.nan
    weights[40:60] = weights[-5:] = 0
    return X, y, holes, weights


def make(**params):
    options = {"n_units": 6, "init": "esn", "max_iter": 2, "random_state": 0}
    return RNNRegressor(**options | params)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    "params",
    [
        {"init": "auto"},
        {"init": "orthogonal", "early_stopping": True, "validation_fraction": 0.3},
        {"solver": "lbfgs", "cell": "gru"},
        {"solver": "least_squares"},
        {"init": "esn", "output": "logistic"},
        {"include_input": True, "dtype": "float32", "washout": 50},
    ],
    ids=lambda params: "-".join(map(str, params.values())),
)
def test_a_gap_is_a_row_of_weight_zero(params):
    X, y, holes, weights = data(120)
    if params.get("output") == "logistic":
        y, holes = 0.5 + 0.5 * y, 0.5 + 0.5 * holes
    skipped = make(missing_targets="skip", **params).fit(X, holes)
    weighed = make(**params).fit(X, y, sample_weight=weights)
    for name, array in weighed.params_.items():
        np.testing.assert_array_equal(skipped.params_[name], array)
    assert skipped.loss_curve_ == weighed.loss_curve_
    np.testing.assert_array_equal(skipped.state_, weighed.state_)
    given = np.linspace(1.5, 0.5, len(X))  # and weights of the user's besides
    both = make(missing_targets="skip", **params).fit(X, holes, sample_weight=given)
    product = make(**params).fit(X, y, sample_weight=given * weights)
    np.testing.assert_array_equal(both.predict(X), product.predict(X))


def test_several_sequences_and_loops_on_own_outputs():
    z = np.sin(0.3 * np.arange(200))[:, None]
    Xs, ys = [z[:60], z[70:169]], [z[1:61].copy(), z[71:170].copy()]
    holes = [y.copy() for y in ys]
    holes[0][20:30], holes[1][50:60] = np.nan, np.nan
    weights = [np.where(np.isnan(y[:, 0]), 0.0, 1.0) for y in holes]
    skipped = make(init="auto", missing_targets="skip").fit(Xs, holes)
    weighed = make(init="auto").fit(Xs, ys, sample_weight=weights)
    np.testing.assert_array_equal(skipped.predict(Xs[1]), weighed.predict(Xs[1]))
    one = make(init="auto", missing_targets="skip", washout=20).fit(Xs[1], holes[1])
    np.testing.assert_allclose(one.forecast(5), z[170:175], atol=0.2)
    holes[1][-1] = np.nan
    one.set_params(init="esn").fit(Xs[1], holes[1])
    with pytest.raises(ValueError, match=r"missing|NaN"):
        one.forecast(5)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("online", ["bptt", "rtrl", "least_squares"])
def test_online_a_gap_at_the_start_is_a_washout(online):
    X, y, _, _ = data(160)
    network = Network(SimpleCell(6), 2, 2)
    params = initialize(network.shapes(), "orthogonal", random_state=0)
    found = []
    for skip in (0, 30):
        learner = OnlineLearner(network, params, method=online, truncation=20, window=60)
        learner.restart()
        gap = y.copy()
        gap[: 30 - skip] = np.nan
        found.append((learner.learn(X, gap, skip=skip), learner))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-12)
    for name, array in found[1][1].params.items():
        np.testing.assert_allclose(found[0][1].params[name], array, rtol=1e-9, atol=1e-12)


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("online", ["bptt", "rtrl", "least_squares"])
@pytest.mark.parametrize("fits", [False, True])
def test_online_nothing_is_learned_from_gaps(online, fits):
    X, _, holes, _ = data(250)
    model = make(missing_targets="skip", online=online, online_window=80, truncation=20, washout=10)
    if fits:
        model.fit(X[:100], holes[:100])
    for rows in np.split(np.arange(100, 250), [50, 57]):
        model.partial_fit(X[rows], holes[rows])
    before = {name: array.copy() for name, array in model.params_.items()}
    n_losses = len(model.loss_curve_)
    model.partial_fit(X[:40], np.full((40, 2), np.nan))
    assert len(model.loss_curve_) == n_losses  # nothing was predicted that could be compared
    for name, array in before.items():
        np.testing.assert_array_equal(model.params_[name], array)
    assert np.isfinite(model.predict(X)).all()
    fresh = make(missing_targets="skip", online=online, washout=5, init="orthogonal")
    fresh.partial_fit(X[30:80], holes[30:80])
    assert np.isfinite(fresh.loss_curve_).all()


def test_scores_leave_gaps_out():
    X, _, holes, _ = data()
    model = make(missing_targets="skip").fit(X, holes)
    known = ~np.isnan(holes).any(axis=1)
    given = np.linspace(1, 2, len(X))
    expected = r2_score(holes[known], model.predict(X)[known], sample_weight=given[known])
    assert model.score(X, holes, given) == pytest.approx(expected)
    assert np.isfinite(washout_scorer("r2", washout=10)(model, X, holes))
    with pytest.raises(ValueError, match="nothing to score"):
        model.score(X, np.full_like(holes, np.nan))


def test_what_cannot_be_skipped():
    X, y, holes, _ = data()
    skip = 'missing_targets="skip"'
    with pytest.raises(ValueError, match=f"NaN.*Use {skip}"):
        make().fit(X, holes)
    with pytest.raises(ValueError, match=f"NaN.*Use {skip}"):
        make().partial_fit(X, holes)
    with pytest.raises(ValueError, match="missing_targets='drop' is not known"):
        make(missing_targets="drop").fit(X, y)
    with pytest.raises(ValueError, match="No rows to fit"):
        make(missing_targets="skip").fit(X, np.full_like(y, np.nan))
    tail = np.where(np.arange(200)[:, None] < 180, y, np.nan)
    with pytest.raises(ValueError, match="No rows to validate on"):
        make(missing_targets="skip", early_stopping=True).fit(X, tail)
    with pytest.raises(ValueError, match="target='last' each target belongs to"):
        make(missing_targets="skip", target="last").fit([X[:50], X[50:]], y[:2])
    with pytest.raises(ValueError, match="Omit that sequence from X and y"):
        make(target="last").fit([X[:50], X[50:]], np.array([1.0, np.nan]))
    with pytest.raises(ValueError, match=f"NaN.*Use {skip}"):
        RNNClassifier(8).fit(X, np.where(np.isnan(holes[:, 0]), np.nan, holes[:, 0] > 0))
    bad = holes.copy()
    bad[3] = 7
    with pytest.raises(ValueError, match=r"gives values in.*row 3"):  # other rows are still read
        make(missing_targets="skip", output="tanh").fit(X, bad)
    with pytest.raises(ValueError, match=skip):  # an estimator that starts it reads y as well
        make(missing_targets="skip", init=ESNRegressor(8)).fit(X, holes)


# -------------------------------------------------------------------------- labels


def labelled(n=200):
    """Return X, labels, which of them are known, and the weights that say the same."""
    X = data(n)[0]
    known = np.ones(n, dtype=bool)
    known[40:60] = known[-5:] = False
    return X, np.digitize(X[:, 0] + 0.5 * np.roll(X[:, 1], 1), (-0.4, 0.4)), known


def classifier(**params):
    options = {"n_units": 6, "init": "esn", "max_iter": 2, "random_state": 0}
    return RNNClassifier(**options | params)


WORDS = np.array(["low", "middle", "high"])


def series(values, known, dtype):
    pd = pytest.importorskip("pandas")
    return pd.Series(values, dtype=dtype).where(known)


GAPS = {
    "floats": lambda y, known: np.where(known, y, np.nan),
    "objects": lambda y, known: np.where(known, y, None),
    "words": lambda y, known: np.where(known, WORDS[y].astype(object), None),
    "nan among words": lambda y, known: np.where(known, WORDS[y].astype(object), np.nan),
    "Int64": lambda y, known: series(y, known, "Int64"),
    "string": lambda y, known: series(WORDS[y], known, "string"),
    "switches": lambda y, known: series(y > 0, known, "boolean").to_numpy(object),
}


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("params", [{}, {"solver": "lbfgs", "cell": "lstm"}, {"loss": "hinge"}])
@pytest.mark.parametrize("kind", GAPS)
def test_a_row_without_a_label_is_one_of_weight_zero(kind, params):
    X, y, known = labelled()
    holes = GAPS[kind](y, known)
    words = kind in ("words", "nan among words", "string")
    whole = WORDS[y] if words else y > 0 if kind == "switches" else y
    skipped = classifier(missing_targets="skip", **params).fit(X, holes)
    weighed = classifier(**params).fit(X, whole, sample_weight=known.astype(float))
    assert skipped.classes_.tolist() == weighed.classes_.tolist()
    for name, array in weighed.params_.items():
        np.testing.assert_array_equal(skipped.params_[name], array)
    accuracy = np.mean(weighed.predict(X)[known] == whole[known])
    assert skipped.score(X, holes) == pytest.approx(accuracy)
    assert washout_scorer("accuracy", washout=0)(skipped, X, holes) == pytest.approx(accuracy)


def test_class_weights_count_labels_that_are_there():
    X, y, known = labelled()
    Xs, holes = [X[:80], X[80:]], np.where(known, y, np.nan)
    skipped = classifier(missing_targets="skip", class_weight="balanced")
    skipped.fit(Xs, [holes[:80], holes[80:]])
    weights = np.zeros(len(y))
    weights[known] = compute_sample_weight("balanced", y[known])
    weighed = classifier().fit(Xs, [y[:80], y[80:]], sample_weight=[weights[:80], weights[80:]])
    np.testing.assert_array_equal(skipped.predict_proba(X), weighed.predict_proba(X))


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("online", ["bptt", "rtrl"])
def test_labels_that_come_now_and_then(online):
    X, y, known = labelled(240)
    holes = np.where(known, WORDS[y].astype(object), None)
    clf = classifier(missing_targets="skip", online=online, init="orthogonal")
    for rows in np.split(np.arange(240), 6):
        clf.partial_fit(X[rows], holes[rows], classes=WORDS)
    assert np.isfinite(clf.predict_proba(X)).all()
    before = {name: array.copy() for name, array in clf.params_.items()}
    clf.partial_fit(X[:20], np.full(20, None))
    for name, array in before.items():
        np.testing.assert_array_equal(clf.params_[name], array)
    session = classifier(missing_targets="skip").fit(X[:100], holes[:100]).stream()
    session.learn(X[100:], holes[100:])
    assert session.n_learned_ == known[100:].sum()
    assert len(session.last_errors_) == known[100:].sum()


def test_minus_one_is_a_label_and_other_errors():
    X, y, known = labelled()
    y[:3] = -1
    clf = classifier(missing_targets="skip").fit(X, y)
    assert clf.classes_.tolist() == [-1, 0, 1, 2]
    with pytest.raises(ValueError, match="every label of y is missing"):
        classifier(missing_targets="skip").fit(X, np.full(len(X), np.nan))
    for holes in (np.where(known, y, None), np.where(known, y, np.nan)):
        with pytest.raises(ValueError, match=r'NaN.*missing_targets="skip"'):
            classifier().fit(X, holes)
        with pytest.raises(ValueError, match="ESNClassifier has no parameter missing_targets"):
            ESNClassifier(5).fit(X, holes)
    with pytest.raises(ValueError, match="infinity"):
        classifier(missing_targets="skip").fit(X, np.where(known, y, np.inf))
    with pytest.raises(ValueError, match="nothing to score"):
        clf.score(X, np.full(len(X), None))
    with pytest.raises(ValueError, match="target='last' each target belongs to"):
        classifier(missing_targets="skip", target="last").fit([X[:50], X[50:]], [0, 1])
    late = np.where(known, y, np.nan)
    late[-1] = np.nan
    symbols = np.eye(4)[y + 1]
    walk = classifier(missing_targets="skip").fit(symbols[:-1], late[1:])
    with pytest.raises(ValueError, match=r"last training label is missing.*Pass a context"):
        walk.sample(3)
    assert len(walk.sample(3, context=[0, 1])) == 3

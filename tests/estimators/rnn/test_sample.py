"""Symbols sampled from a network that predicts the next symbol."""

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import chisquare

from reservoir import RNNClassifier, RNNRegressor, forecast, load, save
from reservoir.estimators.rnn.rnn_classifier import _draw

pytestmark = pytest.mark.one_engine

P = np.array([[0.1, 0.7, 0.2], [0.5, 0.0, 0.5], [0.3, 0.3, 0.4]])


def chain(n, seed=0):
    """Return symbols of a chain in which each depends on the last one alone."""
    rng = np.random.default_rng(seed)
    places = [0]
    for _ in range(n - 1):
        places.append(rng.choice(3, p=P[places[-1]]))
    return np.array(["x", "y", "z"])[places]


def one_hot(symbols):
    return (np.asarray(symbols)[:, None] == np.array(["x", "y", "z"])).astype(float)


def fitted(symbols=None, **params):
    params = {"learning_rate_init": 0.01, "max_iter": 5, "random_state": 0, **params}
    symbols = chain(1500) if symbols is None else symbols
    return RNNClassifier(8, **params).fit(one_hot(symbols[:-1]), symbols[1:])


@pytest.fixture(scope="module")
def clf():
    return fitted()


def walked(clf, symbols, context):
    """Return what the network says before each symbol that was drawn."""
    rows = one_hot([*context, *symbols[:-1]])
    return clf.predict_proba(rows, initial_state="zeros")[len(context) - 1 :]


def surprise(said, drawn, classes):
    """Return how far the counts of symbols are from what was said, in standard errors.

    Of symbols of which five at least are expected, and as many of the others: only such counts are
    nearly normal.
    """
    said, hits = said.astype(float), drawn[:, None] == classes
    usual = (said.sum(axis=0) >= 5) & ((1 - said).sum(axis=0) >= 5)
    spread = np.sqrt((said * (1 - said)).sum(axis=0))
    return ((hits - said).sum(axis=0) / spread)[usual]


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_draws_follow_the_probabilities(cell, temperature):
    clf = fitted(cell=cell, init="orthogonal")
    scores = []
    for seed in range(5):
        drawn = clf.sample(
            300,
            context=["x", "z"],
            temperature=temperature,
            random_state=seed,
            initial_state="zeros",
        )
        said = walked(clf, drawn, ["x", "z"]) ** (1 / temperature)
        said /= said.sum(axis=1, keepdims=True)
        # apart by the symbol before, so that every transition is counted
        before = np.concatenate([["z"], drawn[:-1]])
        for symbol in clf.classes_:
            rows = before == symbol
            if rows.sum() > 20:
                scores.append(surprise(said[rows], drawn[rows], clf.classes_))
    scores = np.concatenate(scores)
    # sums of independent surprises: of unit variance where the draws are what was said
    assert np.abs(scores).max() < 5
    assert 0.6 < np.sqrt(np.mean(scores**2)) < 1.4


@pytest.mark.slow
def test_transitions_are_those_of_the_chain():
    """What a network has learned of a chain, its samples show again."""
    clf = fitted(chain(6000), max_iter=20)
    drawn = clf.sample(6000, random_state=1)
    seen = np.array([[np.sum((drawn[:-1] == a) & (drawn[1:] == b)) for b in "xyz"] for a in "xyz"])
    np.testing.assert_allclose(seen / seen.sum(axis=1, keepdims=True), P, atol=0.05)


@pytest.mark.slow
def test_one_draw_is_exact():
    rng = np.random.default_rng(0)
    scores = np.log([0.5, 0.2, 0.3])
    for temperature in (0.3, 1.0, 4.0):
        p = np.array([0.5, 0.2, 0.3]) ** (1 / temperature)
        counts = np.bincount([_draw(scores, temperature, rng) for _ in range(20_000)], minlength=3)
        assert chisquare(counts, 20_000 * p / p.sum()).pvalue > 1e-4
    wide = np.array([0.0, -800.0, -900.0], dtype=np.float32)  # probabilities that underflow
    assert {_draw(wide[1:], 1.0, rng) for _ in range(50)} == {0}
    assert {_draw(wide, 1e-300, rng) for _ in range(50)} == {0}
    hot = np.bincount([_draw(wide, 1e9, rng) for _ in range(3000)], minlength=3)
    assert chisquare(hot).pvalue > 1e-4


def test_zero_takes_the_likeliest(clf):
    drawn = clf.sample(30, context=["x"], temperature=0, initial_state="zeros")
    said = walked(clf, drawn, ["x"])
    np.testing.assert_array_equal(drawn, clf.classes_[said.argmax(axis=1)])
    mask = [True, False, True]
    drawn = clf.sample(30, context=["x"], temperature=0, allowed=mask, initial_state="zeros")
    said = walked(clf, drawn, ["x"]) * mask
    np.testing.assert_array_equal(drawn, clf.classes_[said.argmax(axis=1)])


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("seed", range(5))
def test_what_is_not_allowed_never_comes(clf, seed):
    graph = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 1]])
    for allowed in (graph, graph.astype(bool), sparse.csr_array(graph), sparse.coo_matrix(graph)):
        drawn = clf.sample(200, context=list("xy"), allowed=allowed, random_state=seed)
        pairs = set(zip(["y", *drawn[:-1]], drawn, strict=True))
        assert pairs == {("x", "y"), ("y", "z"), ("z", "x"), ("z", "z")}
    drawn = clf.sample(200, allowed=[0, 1, 1], temperature=3.0, random_state=seed)
    assert set(drawn) == {"y", "z"}
    assert (clf.sample(5, allowed=[0, 1, 0], random_state=seed) == "y").all()


def test_sparse_arrays_equal_dense_ones(clf):
    mask = np.array([1.0, 0.0, 1.0])
    twice = sparse.csr_array((np.ones(5), [0, 0, 2, 0, 2], [0, 3, 3, 5]), shape=(3, 3))
    flat = sparse.coo_array(mask)
    cases = [(twice, twice.toarray())]
    if flat.ndim == 1:  # SciPy 1.12 has none of one dimension
        cases.append((flat, mask))
    for given, dense in cases:
        walks = [
            clf.sample(300, ["z"], temperature=1e9, allowed=each, random_state=0)
            for each in (given, dense)
        ]
        np.testing.assert_array_equal(*walks)


def test_a_graph_is_left_as_it_was(clf):
    weights = sparse.csr_array(np.array([[0.1, 0.9, 0.8], [0.7, 0.2, 0.0], [0.6, 0.3, 0.9]]))
    before = weights.toarray()
    mask = sparse.csr_array((weights.data > 0.5, weights.indices, weights.indptr), shape=(3, 3))
    for array in (weights.data, weights.indices, weights.indptr):
        array.setflags(write=False)  # as in a worker process
    clf.sample(10, context=["x"], allowed=mask, random_state=0)
    np.testing.assert_array_equal(weights.toarray(), before)
    clf.sample(10, context=["x"], allowed=before.astype(np.float16), random_state=0)


def test_allowed_symbols_keep_their_odds(clf):
    """Of what is allowed each symbol keeps its share: p of it over p of all that are allowed."""
    scores = []
    for seed in range(10):
        drawn = clf.sample(300, ["z"], allowed=[1, 0, 1], random_state=seed, initial_state="zeros")
        said = walked(clf, drawn, ["z"]) * [1, 0, 1]
        said /= said.sum(axis=1, keepdims=True)
        scores.append(surprise(said[:, ::2], drawn, clf.classes_[::2]))
    assert np.abs(scores).max() < 4.5


def test_seeds_and_states(clf):
    first = clf.sample(50, random_state=3)
    np.testing.assert_array_equal(first, clf.sample(50, random_state=3))
    assert not np.array_equal(first, clf.sample(50, random_state=4))
    assert first.dtype == clf.classes_.dtype
    # rows say the same as labels
    labels = chain(20, seed=5)
    by_label = clf.sample(30, context=labels, random_state=0)
    np.testing.assert_array_equal(by_label, clf.sample(30, context=one_hot(labels), random_state=0))
    # without a context: as with the end of training for one
    symbols = chain(1500)
    again = clf.sample(50, context=symbols[-1:], initial_state=clf.state_, random_state=3)
    np.testing.assert_array_equal(first, again)
    # a walk goes on from its state
    whole = clf.sample(40, temperature=0)
    head, state = clf.sample(15, temperature=0, return_state=True)
    rest = clf.sample(25, context=head[-1:], initial_state=state, temperature=0)
    np.testing.assert_array_equal(np.concatenate([head, rest]), whole)


def test_other_labels_dtypes_and_files(tmp_path):
    places = np.searchsorted(["x", "y", "z"], chain(400))
    eye = np.eye(3)[places]
    clf = RNNClassifier(6, cell="leaky", include_input=True, dtype="float32", max_iter=2)
    clf.set_params(random_state=0).fit(eye[:-1], 10 * places[1:])
    drawn = clf.sample(30, random_state=0)
    assert drawn.dtype == clf.classes_.dtype
    assert set(drawn) <= {0, 10, 20}
    save(clf, tmp_path / "clf.npz")
    np.testing.assert_array_equal(load(tmp_path / "clf.npz").sample(30, random_state=0), drawn)
    parts = RNNClassifier(6, init="orthogonal", random_state=0)
    for rows in np.split(np.arange(399), 3):
        parts.partial_fit(eye[rows], places[rows + 1], classes=[0, 1, 2])
    assert len(parts.sample(4, random_state=0)) == 4
    several = RNNClassifier(6, max_iter=1, random_state=0)
    several.fit([eye[:100], eye[200:299]], [places[1:101], places[201:300]])
    assert len(several.sample(4, context=[0])) == 4
    with pytest.raises(ValueError, match=r"several sequences.*a context"):
        several.sample(4)


def test_what_cannot_be_drawn(clf):
    refused = [
        ({"n": 0}, "n=0"),
        ({"temperature": -1.0}, "temperature=-1"),
        ({"temperature": np.nan}, "temperature=nan"),
        ({"context": ["q"]}, "'q', which is not among the classes"),
        ({"context": []}, "no symbol"),
        ({"context": np.full((2, 3), 0.5)}, "Row 0 of context is not a symbol"),
        ({"context": [one_hot(["x"]), one_hot(["y"])]}, "one sequence; got 2"),
        ({"allowed": [1, 1]}, r"mask of shape \(3,\)"),
        ({"allowed": np.ones((2, 3))}, r"shape \(3, 3\)"),
        ({"allowed": ["x", "y", "z"]}, "mask"),
        ({"allowed": [1.0, np.nan, 0.0]}, "NaN"),
        ({"allowed": [0, 0, 0]}, "excludes all symbols:"),
        ({"allowed": [[0, 1, 0], [0, 0, 0], [1, 1, 1]]}, "excludes all symbols after 'y' .row 1"),
    ]
    for params, match in refused:
        with pytest.raises(ValueError, match=match):
            clf.sample(**{"n": 3, **params})
    with pytest.raises(TypeError, match=r"list\(context\)"):
        clf.sample(3, context="xyz")
    # a dead end that no walk comes to is none
    island = [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert set(clf.sample(20, context=["x"], allowed=island, random_state=0)) == {"x", "y"}
    alone = [[1, 0, 0], [0, 0, 1], [0, 0, 0]]  # nothing leads from x to y, from where z comes
    assert set(clf.sample(20, context=["x"], allowed=alone, random_state=0)) == {"x"}
    with pytest.raises(ValueError, match="excludes all symbols after 'z'"):
        clf.sample(20, context=["z"], allowed=island)


def test_other_networks_raise(clf):
    symbols = chain(200)
    X, y = one_hot(symbols[:-1]), symbols[1:]
    late = RNNClassifier(4, max_iter=1, random_state=0).fit(X, symbols[:-1])
    with pytest.raises(ValueError, match=r"y\[t\] must be the symbol of X\[t\+1\].*but X\[1, "):
        late.sample(3)
    numbers = RNNClassifier(4, max_iter=1, random_state=0).fit(X[:, :1], y)
    with pytest.raises(ValueError, match=r"reads 1 column\(s\), but there are 3 classes"):
        numbers.sample(3)
    last = RNNClassifier(4, target="last", max_iter=1, random_state=0)
    last.fit([X[:20], X[20:50], X[50:90]], ["x", "y", "z"])
    with pytest.raises(ValueError, match="at every step"):
        last.sample(3, context=["x"])
    assert not hasattr(RNNClassifier(loss="hinge"), "sample")


def test_forecasts_point_here(clf):
    assert not hasattr(clf, "forecast")
    with pytest.raises(AttributeError, match=r"its method sample draws"):
        clf.forecast(3)
    with pytest.raises(TypeError, match=r"`model\.sample\(n_steps\)` draws"):
        forecast(clf, 3)
    symbols = chain(100)
    rnn = RNNRegressor(4, output="softmax", max_iter=1, random_state=0)
    rnn.fit(one_hot(symbols[:-1]), one_hot(symbols[1:]))
    with pytest.raises(ValueError, match=r"RNNClassifier.*its method sample"):
        rnn.forecast(3)

"""ESNSequenceClassifier and ESNSequenceRegressor: one label, or numbers, for each sequence."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier
from sklearn.feature_selection import f_classif, f_regression
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifierCV, RidgeCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_class_weight_classifiers, parametrize_with_checks

from reservoir import ESNSequenceClassifier, ESNSequenceRegressor, RNNClassifier
from reservoir.model_selection import channel_importance, stack_sequences

pytestmark = pytest.mark.both_engines


@pytest.mark.fast_cases(8)
@parametrize_with_checks(
    [
        ESNSequenceClassifier(n_units=10),
        ESNSequenceRegressor(n_units=10, input_scaling=0.5, alpha=0.1, dtype="float64"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def waves(n, seed=0, *, n_channels=2, n_classes=3):
    """Noisy waves of several speeds, of different lengths; the last channel is the wave."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    Xs = []
    for label in y:
        X = 0.2 * rng.normal(size=(rng.integers(20, 35), n_channels)).cumsum(axis=0)
        X[:, -1] = np.sin(np.arange(len(X)) * (0.3 + 0.3 * label) + rng.uniform(0, 6))
        X[:, -1] += 0.1 * rng.normal(size=len(X))
        Xs.append(X)
    return Xs, y


def make(cls=ESNSequenceClassifier, **options):
    return cls(**({"n_units": 32, "random_state": 0} | options))


# --- what is computed --------------------------------------------------------------------------


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("relevance_weights", [False, True])
@pytest.mark.parametrize("units", [[1.0, 1e-6], [1e3, 1e8], [1.0, 1e200]])
def test_the_units_of_several_outputs_are_of_no_account(units, relevance_weights):
    Xs, y = waves(60)
    noise = np.random.default_rng(1).normal(size=60)
    target = np.stack([y + noise, [len(X) for X in Xs], np.ones(60)], axis=1)
    options = {"relevance_weights": relevance_weights, "input_scaling": (0.1, 1.0)}
    plain = make(ESNSequenceRegressor, **options).fit(Xs[:40], target[:40])
    scaled = make(ESNSequenceRegressor, **options)
    scaled.fit(Xs[:40], target[:40] * [*units, 1.0])
    assert scaled.alpha_ == plain.alpha_
    assert scaled.input_scaling_ == plain.input_scaling_
    found = scaled.predict(Xs[40:]) / [*units, 1.0]
    np.testing.assert_allclose(found, plain.predict(Xs[40:]), rtol=1e-8)


@pytest.mark.fast_cases("values")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n", [30, 200])
def test_it_is_scikit_learns_ridge_on_standardised_features(n, n_classes):
    # fewer sequences than features, and more
    Xs, y = waves(n, n_classes=n_classes)
    new, truth = waves(20, seed=1, n_classes=n_classes)
    alphas = (0.1, 10.0, 1000.0)
    options = {"n_units": 32} if n == 30 else {"n_units": 15}
    clf = make(alpha=alphas, relevance_weights=False, **options).fit(Xs, y)
    ridge = make_pipeline(StandardScaler(), RidgeClassifierCV(alphas))
    ridge.fit(clf.features_.transform(Xs).astype(float), y)
    features = clf.features_.transform(new).astype(float)
    assert clf.alpha_ == ridge[-1].alpha_
    np.testing.assert_allclose(
        clf.decision_function(new), ridge.decision_function(features), rtol=1e-5, atol=1e-6
    )
    assert np.array_equal(clf.predict(new), ridge.predict(features))
    assert clf.score(new, truth) == ridge.score(features, truth) > 0.7


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("n_outputs", [None, 1, 2])
def test_numbers_keep_their_shape(n_outputs):
    Xs, y = waves(60)
    target = y * 1.0 if n_outputs is None else np.column_stack([y, -2.0 * y])[:, :n_outputs]
    esn = make(ESNSequenceRegressor, relevance_weights=False).fit(Xs, target)
    new, truth = waves(30, seed=1)
    assert esn.predict(new).shape == (30, *target.shape[1:])
    expected = truth * 1.0 if n_outputs is None else np.column_stack([truth, -2.0 * truth])
    assert esn.score(new, expected if n_outputs is None else expected[:, :n_outputs]) > 0.7
    ridge = make_pipeline(StandardScaler(), RidgeCV([esn.alpha_]))
    ridge.fit(esn.features_.transform(Xs).astype(float), target)
    said = ridge.predict(esn.features_.transform(new).astype(float))
    said = said.reshape(esn.predict(new).shape)  # scikit-learn 1.5 to 1.7 differ in one column
    np.testing.assert_allclose(esn.predict(new), said, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "cls, statistic", [(ESNSequenceClassifier, f_classif), (ESNSequenceRegressor, f_regression)]
)
def test_informative_columns_are_penalised_less(cls, statistic):
    Xs, y = waves(60)
    new, truth = waves(30, seed=1)
    esn = make(cls, dtype="float64").fit(Xs, y)
    rows, others = (esn.features_.transform(X) for X in (Xs, new))
    varies = rows.std(axis=0) > 1e-12
    scaler = StandardScaler().fit(rows[:, varies])
    rows, others = (scaler.transform(each[:, varies]) for each in (rows, others))
    F = statistic(rows, y)[0] + 1e-3
    weights = np.sqrt(F / F.mean())
    numbers = cls is ESNSequenceRegressor
    target = y if numbers else 2.0 * (y[:, None] == np.arange(3)) - 1
    said = Ridge(esn.alpha_).fit(rows * weights, target).predict(others * weights)
    mine = esn.predict(new) if numbers else esn.decision_function(new)
    np.testing.assert_allclose(mine, said, rtol=1e-6, atol=1e-7)
    assert esn.score(new, truth) > 0.7


@pytest.mark.slow
def test_labels_without_any_sense_are_not_believed():
    Xs, new = waves(60)[0], waves(60, seed=9)[0]
    for seed in range(3):
        y = np.random.default_rng(seed).permutation(np.arange(60) % 3)
        clf = make(random_state=seed).fit(Xs, y)
        assert clf.alpha_scores_.sum(axis=1).min() > 2.2  # 8/3 for the mean
        assert clf.predict_proba(new).max(axis=1).mean() < 0.65
        number = make(ESNSequenceRegressor, random_state=seed).fit(Xs, y)
        assert number.predict(new).std() < 0.6 * y.std()


@pytest.mark.filterwarnings("ignore:The units .* the bounds of:UserWarning")  # at 30
@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("random_state", [0, "generator", None])
def test_the_input_scale_of_the_least_error_on_left_out_sequences_is_taken(random_state):
    Xs, y = waves(30)
    seed = np.random.default_rng(5) if random_state == "generator" else random_state
    clf = make(input_scaling=(0.01, 0.3, 30.0), random_state=seed).fit(Xs, y)
    assert clf.input_scaling_scores_.shape == (3,)
    assert clf.input_scaling_ == (0.01, 0.3, 30.0)[np.argmin(clf.input_scaling_scores_)]
    assert clf.alpha_scores_.sum(axis=1).min() == clf.input_scaling_scores_.min()
    assert clf.features_.input_scaling == clf.input_scaling_
    if random_state == 0:
        for scale, score in zip((0.01, 0.3, 30.0), clf.input_scaling_scores_, strict=True):
            one = make(input_scaling=scale).fit(Xs, y)
            assert one.alpha_scores_.sum(axis=1).min() == score
            assert not hasattr(one, "input_scaling_scores_")
            assert (one.features_.reservoir_.W != clf.features_.reservoir_.W).nnz == 0


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cls", [ESNSequenceClassifier, ESNSequenceRegressor])
def test_weights_repetitions_and_the_order_are_of_one_kind(cls):
    Xs, y = waves(60)
    times = np.random.default_rng(0).integers(0, 3, 60)
    weighted = make(cls).fit(Xs, y, times)
    order = np.random.default_rng(1).permutation(np.repeat(np.arange(60), times))
    repeated = make(cls).fit([Xs[i] for i in order], y[order])
    new, _ = waves(20, seed=1)
    say = "predict_proba" if cls is ESNSequenceClassifier else "predict"
    first, again = getattr(weighted, say)(new), getattr(repeated, say)(new)
    np.testing.assert_allclose(first, again, rtol=1e-8)
    assert weighted.alpha_ == repeated.alpha_


# --- units, names and order are of no account ----------------------------------------------------


def unclear(n, seed, *, n_classes=3):
    """Sequences whose labels are hard to tell: who is left out with whom would show."""
    Xs, _ = waves(n, seed)
    rng = np.random.default_rng(seed + 100)
    y = np.arange(n) % n_classes
    return [X + 0.7 * rng.normal(size=X.shape) + 0.03 * y[i] for i, X in enumerate(Xs)], y


QUICK = {
    "n_units": 6,
    "alpha": (0.1, 1.0, 10.0, 100.0),
    "bidirectional": False,
    "differences": False,
    "n_quantiles": 3,
}
OTHER_UNITS = [
    (4.0, 0.0),
    (3.0, 0.0),
    (1e3, 0.0),
    (1e-3, 0.0),
    (np.array([0.7, 1e5]), 0.0),
    (np.array([1.8, 12.0]), np.array([32.0, -5.0])),
    (1.0, 1000.0),
]


def said(model, new):
    """Return probabilities, or the numbers that are predicted."""
    return (model.predict_proba if hasattr(model, "classes_") else model.predict)(new)


def compare(other, found, model, expected):
    """Hold a fit on the same data in other words against a model."""
    assert other.alpha_ == model.alpha_
    scores = (fit.alpha_scores_.sum(axis=1) for fit in (other, model))
    np.testing.assert_allclose(*scores, rtol=1e-6)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cls", [ESNSequenceClassifier, ESNSequenceRegressor])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n, weighted", [(30, False), (60, True), (110, False)])
def test_the_units_and_zeros_of_channels_are_of_no_account(cls, n, weighted, seed):
    Xs, y = unclear(n, seed)
    new, _ = unclear(10, seed + 50)
    weights = np.random.default_rng(seed).uniform(0.2, 2, n) if weighted else None
    options = QUICK | {"random_state": seed, "dtype": ("float32", "float64")[seed % 2]}
    if weighted and cls is ESNSequenceClassifier:
        options["class_weight"] = "balanced"
    model = cls(**options).fit(Xs, y, weights)
    for factor, shift in OTHER_UNITS[seed::3]:
        other = cls(**options).fit([factor * X + shift for X in Xs], y, weights)
        moved = [factor * X + shift for X in new]
        compare(other, said(other, moved), model, said(model, new))


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n", [30, 60, 110])
def test_the_names_of_classes_are_of_no_account(n, n_classes, seed):
    Xs, y = unclear(n, seed, n_classes=n_classes)
    new, _ = unclear(10, seed + 50)
    options = QUICK | {"random_state": seed}
    if seed == 1:
        options["class_weight"] = "balanced"
    model = make(**options).fit(Xs, y)
    for names in (np.array(["c", "b", "a"]), np.array([3, -1, 2]), np.array(["b", "c", "a"])):
        other = make(**options).fit(Xs, names[y])
        columns = np.searchsorted(other.classes_, names[:n_classes])
        compare(other, said(other, new)[:, columns], model, said(model, new))


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("n", [30, 60, 110])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("cls", [ESNSequenceClassifier, ESNSequenceRegressor])
def test_the_order_of_sequences_is_of_no_account(cls, n, seed):
    Xs, y = unclear(n, seed)
    new, _ = unclear(10, seed + 50)
    weights = np.random.default_rng(seed).uniform(0.2, 2, n)
    model = make(cls, **QUICK).fit(Xs, y, weights)
    order = np.random.default_rng(seed).permutation(n)
    other = make(cls, **QUICK).fit([Xs[i] for i in order], y[order], weights[order])
    compare(other, said(other, new), model, said(model, new))


@pytest.mark.slow
def test_the_units_of_numbers_are_of_no_account():
    for seed in range(2):
        for n in (30, 60):
            Xs, y = unclear(n, seed)
            new, _ = unclear(10, seed + 50)
            target = np.round(y + np.random.default_rng(seed).normal(size=n), seed)
            model = make(ESNSequenceRegressor, **QUICK).fit(Xs, target)
            for unit, zero in ((3.0, 0.0), (-1.0, 0.0), (1e-3, 5.0)):
                other = make(ESNSequenceRegressor, **QUICK).fit(Xs, unit * target + zero)
                assert other.alpha_ == model.alpha_
                found = (other.predict(new) - zero) / unit
                np.testing.assert_allclose(found, model.predict(new), rtol=0, atol=1e-6)
            both = np.column_stack([target, y])
            model = make(ESNSequenceRegressor, **QUICK).fit(Xs, both)
            other = make(ESNSequenceRegressor, **QUICK).fit(Xs, both[:, ::-1])
            compare(other, said(other, new)[:, ::-1], model, said(model, new))


@pytest.mark.slow
def test_values_that_differ_by_rounding_stay_where_they_are():
    """First values that are equal but for rounding would be sorted by it."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        Xs, y = unclear(60, seed)
        for X in Xs:
            X[0] = rng.choice([0.3, 0.1 + 0.2, 0.3 - 1e-16], 2)
        model = make(**QUICK).fit(Xs, y)
        other = make(**QUICK).fit([3 * X + 7 for X in Xs], y)
        assert other.alpha_ == model.alpha_
        assert other.temperature_ == pytest.approx(model.temperature_, rel=1e-6)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("change", ["zero", "nan"])
def test_equal_sequences_are_equal_whatever_their_bytes(change):
    """A zero may have a sign, and so may NaN: copies that differ in it are left out together."""
    for seed in range(3):
        Xs, y = unclear(24, seed)
        value = 0.0 if change == "zero" else np.nan
        for X in Xs:
            X[3:5] = value
        copies = [np.where(np.arange(len(X))[:, None] == 3, -value, X) for X in Xs]
        options = QUICK | {"missing_values": "hold"}
        once = make(**options).fit(Xs, y, np.full(24, 2.0))
        twice = make(**options).fit(Xs + copies, np.tile(y, 2))
        assert twice.alpha_ == once.alpha_
        assert twice.temperature_ == pytest.approx(once.temperature_)


def many(n, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    waves_of = np.sin(np.arange(6) * (0.5 + 0.4 * y[:, None]))
    return (0.5 * waves_of + rng.normal(size=(n, 6)))[:, :, None], y


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(
    "n", [2499, 2500, 14_995, 14_996, pytest.param(100_000, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("cls", [ESNSequenceClassifier, ESNSequenceRegressor])
def test_many_sequences_leave_most_to_learn_from(cls, n):
    X, y = many(n)
    new, truth = many(1000, seed=1)
    options = {"differences": False, "bidirectional": False, "leak_rate": 1.0}
    model = make(cls, n_units=4, alpha=(1.0, 1e9), **options).fit(X, y)
    assert model.alpha_ == 1.0
    if cls is ESNSequenceClassifier:
        assert log_loss(truth, model.predict_proba(new)) < 1.06  # log(3) is 1.099
    else:
        assert model.score(new, truth) > 0.05


# --- weights and probabilities -------------------------------------------------------------------


def test_class_weights_weigh_like_sample_weights():
    Xs, y = waves(30)
    by_class = make(**QUICK, class_weight={0: 1.0, 1: 5.0, 2: 0.5}).fit(Xs, y)
    by_sample = make(**QUICK).fit(Xs, y, np.array([1.0, 5.0, 0.5])[y])
    np.testing.assert_allclose(by_class.coef_, by_sample.coef_)
    assert by_class.temperature_ == pytest.approx(by_sample.temperature_)
    balanced = make(**QUICK, class_weight="balanced").fit(Xs, y)
    np.testing.assert_allclose(balanced.coef_, make(**QUICK).fit(Xs, y).coef_, rtol=1e-8)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("readout", [None, LogisticRegression()])
def test_features_that_are_constant_in_a_heavy_class_do_not_outweigh_others(readout):
    # 1000 against .0001: the heavy class is predicted; ten units passed before, too
    check_class_weight_classifiers("", ESNSequenceClassifier(60, readout=readout))


@pytest.mark.slow
def test_probabilities_are_worth_their_name(global_random_seed):
    found = []
    for seed in global_random_seed + 100 * np.arange(3):
        Xs, y = waves(180, seed)
        new, truth = waves(300, seed + 1000)
        clf = make(random_state=int(seed)).fit(Xs, y)
        proba, scores = clf.predict_proba(new), clf.decision_function(new)
        np.testing.assert_allclose(proba, softmax(scores / clf.temperature_, axis=1))
        np.testing.assert_array_equal(clf.predict_log_proba(new), np.log(proba))
        raw, loss = log_loss(truth, softmax(scores, axis=1)), log_loss(truth, proba)
        best = min(log_loss(truth, softmax(scores / t, axis=1)) for t in np.logspace(-2, 1, 60))
        found.append((raw - loss, loss - best, proba.max(axis=1).mean() - clf.score(new, truth)))
    gained, lost, too_sure = np.mean(found, axis=0)
    assert gained > 0.1
    assert lost < 0.05
    assert abs(too_sure) < 0.06


# --- what y and X may be -----------------------------------------------------------------------


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    "labels",
    [
        np.array(["left", "right", "up"]),
        np.array(["left", "right", "up"], dtype=object),
        np.array([-7, 0, 10**12]),
        np.array([0.5, 1.5, 2.5]).astype(int).astype(float),
        np.array([False, True, True]),
    ],
)
def test_labels_of_any_type_come_back(labels):
    Xs, y = waves(30)
    clf = make(input_scaling=0.3).fit(Xs, labels[y])
    assert np.array_equal(clf.classes_, np.unique(labels))
    assert clf.predict(Xs).dtype == labels.dtype
    assert clf.score(Xs, labels[y]) > 0.9
    assert clf.predict_proba(Xs).shape == (30, len(clf.classes_))
    assert clf.score(Xs, list(labels[y])) == clf.score(Xs, labels[y])


def test_a_score_may_meet_one_class_only_and_labels_never_seen():
    Xs, y = waves(30)
    clf = make(input_scaling=0.3).fit(Xs, y)
    assert clf.score([Xs[0], Xs[3]], [0, 0]) == 1.0
    assert clf.score([Xs[0], Xs[3]], [7, 0]) == 0.5
    assert clf.score([Xs[0], Xs[3]], [7, 0], [1.0, 3.0]) == 0.75


def as_tables(Xs):
    """The same sequences as a table with ids, a frame, and a frame with a MultiIndex; ids."""
    pd = pytest.importorskip("pandas")
    table = stack_sequences(Xs)[0]
    ids = np.array([f"s{i:02d}" for i in table[:, 0].astype(int)])
    frame = pd.DataFrame(table[:, 1:], columns=["a", "b"]).assign(id=ids)
    steps = np.concatenate([np.arange(len(X)) for X in Xs])
    index = pd.MultiIndex.from_arrays([ids, steps])
    return table, frame, pd.DataFrame(table[:, 1:], index=index, columns=["a", "b"]), ids


@pytest.mark.slow
def test_one_label_per_sequence_or_per_row():
    Xs, y = waves(30)
    table, frame, multi, _ = as_tables(Xs)
    by_row = np.repeat(y, [len(X) for X in Xs])
    by_list = make(input_scaling=0.3).fit(Xs, y)
    expected, accuracy = by_list.predict_proba(Xs), by_list.score(Xs, y)
    for X, column in ((table, 0), (frame, "id"), (multi, None)):
        clf = make(input_scaling=0.3, sequence_column=column)
        np.testing.assert_allclose(clf.fit(X, y).predict_proba(X), expected, rtol=1e-5)
        clf.fit(X, by_row, sample_weight=np.ones(len(X)))
        rows = clf.predict_proba(X)
        np.testing.assert_allclose(rows, np.repeat(expected, [len(X) for X in Xs], 0), rtol=1e-5)
        assert len(clf.predict(X)) == len(clf.decision_function(X)) == len(X)
        # each sequence counts once, however y is given
        assert clf.score(X, by_row) == clf.score(X, y) == accuracy
    esn = make(ESNSequenceRegressor, input_scaling=0.3, sequence_column="id")
    rows = esn.fit(frame, by_row * 1.0).predict(frame)
    np.testing.assert_allclose(rows[:3], esn.fit(frame, y * 1.0).predict(frame)[0], rtol=1e-6)


@pytest.mark.slow
def test_splitters_of_rows_work_with_the_ids_as_groups():
    Xs, y = waves(45)
    _, frame, _, ids = as_tables(Xs)
    by_row = np.repeat(y, [len(X) for X in Xs])
    clf = make(input_scaling=0.3, sequence_column="id")
    for scoring in (None, "accuracy", "neg_log_loss"):
        scores = cross_val_score(
            clf, frame, by_row, groups=ids, cv=GroupKFold(3), scoring=scoring, error_score="raise"
        )
        assert np.isfinite(scores).all()
    said = cross_val_predict(clf, frame, by_row, groups=ids, cv=GroupKFold(3))
    assert np.mean(said == by_row) > 0.7


def test_labels_that_do_not_fit_the_sequences_raise():
    pd = pytest.importorskip("pandas")
    Xs, y = waves(12)
    _, frame, multi, ids = as_tables(Xs)
    by_row = np.repeat(y, [len(X) for X in Xs])
    clf = make(**QUICK, sequence_column="id")
    wrong = by_row.copy()
    wrong[3] = 2
    with pytest.raises(
        ValueError, match=r"constant within a sequence; but in the sequence with id .*'s00'"
    ):
        clf.fit(frame, wrong)
    with pytest.raises(
        ValueError, match=r"X contains 12 sequence\(s\), but y has shape \(5,\).*rows"
    ):
        clf.fit(frame, y[:5])
    shuffled = pd.Series(y, index=np.unique(ids)[::-1])
    with pytest.raises(ValueError, match="in another order: X begins with 's00'"):
        clf.fit(frame, shuffled)
    assert clf.fit(frame, shuffled.iloc[::-1])
    other = pd.Series(by_row, index=multi.index[::-1])
    with pytest.raises(ValueError, match="different MultiIndexes"):
        make().fit(multi, other)
    # trained networks read y in the same way
    rnn = RNNClassifier(n_units=5, max_iter=2, target="last", sequence_column="id", random_state=0)
    first = rnn.fit(frame, by_row).predict_proba(frame)
    np.testing.assert_array_equal(first, rnn.fit(frame, y).predict_proba(frame))
    assert rnn.score(frame, by_row) == rnn.score(frame, y)
    with pytest.raises(ValueError, match="constant within a sequence"):
        rnn.fit(frame, wrong)


def test_numbers_whose_squares_overflow_are_named():
    Xs, y = waves(12)
    with pytest.raises(ValueError, match="squares of y overflow in column 0"):
        make(ESNSequenceRegressor).fit(Xs, 1e200 * y)


@pytest.mark.parametrize(
    "change, error, message",
    [
        ({"y": np.zeros(12)}, ValueError, "one class only"),
        ({"y": np.r_[np.nan, np.ones(11)]}, ValueError, "Omit that sequence from X and y"),
        ({"y": None}, ValueError, "requires y"),
        ({"y": np.arange(11)}, ValueError, r"X contains 12 sequence\(s\), but y has shape \(11,\)"),
        ({"X": [np.ones((5, 1))] * 12}, ValueError, r"1 distinct sequence\(s\)"),
        ({"X": np.arange(24.0).reshape(12, 1, 2)}, ValueError, "1 step"),
        ({"sample_weight": [1.0] + [0.0] * 11}, ValueError, r"1 distinct sequence\(s\)"),
        ({"sample_weight": [-1.0] * 12}, ValueError, "egative"),
        ({"input_scaling": [[0.1, 1.0]]}, ValueError, r"n_candidates.*scaling=None"),
        ({"input_scaling": []}, ValueError, "n_candidates"),
        ({"input_scaling": (0.1, np.nan)}, ValueError, "input_scaling"),
        ({"alpha": (-1.0,)}, ValueError, "at least 0"),
        ({"alpha": [[1.0]]}, ValueError, "n_alphas"),
        ({"relevance_weights": 1}, TypeError, "True or False"),
        ({"readout": 3}, TypeError, "scikit-learn estimator or None"),
        ({"readout": Ridge()}, TypeError, "not a classifier"),
    ],
)
def test_what_cannot_be_learned_raises(change, error, message):
    Xs, y = waves(12)
    data = {"X": Xs, "y": y, "sample_weight": None}
    options = {key: value for key, value in change.items() if key not in data}
    data |= {key: value for key, value in change.items() if key in data}
    clf = make(**options)
    with pytest.raises(error, match=message):
        clf.fit(**data)
    assert not hasattr(clf, "classes_")


# --- a readout of one's own --------------------------------------------------------------------


@pytest.mark.slow
def test_any_readout_receives_the_standardised_features():
    Xs, y = waves(60)
    new, truth = waves(30, seed=1)
    readout = LogisticRegression(C=0.01, tol=1e-10)
    clf = make(readout=readout, input_scaling=0.3, dtype="float64").fit(Xs, y)
    scaler = StandardScaler().fit(clf.features_.transform(Xs))
    logistic = clone(readout).fit(scaler.transform(clf.features_.transform(Xs)), y)
    given = scaler.transform(clf.features_.transform(new))
    np.testing.assert_allclose(clf.predict_proba(new), logistic.predict_proba(given), rtol=1e-6)
    assert clf.score(new, truth) == logistic.score(given, truth) > 0.6
    assert not hasattr(clf, "coef_")
    # the ridge chooses among candidates; what it leaves behind does not outlive it
    chosen = make(readout=LogisticRegression(C=0.01), input_scaling=(1e-6, 0.3)).fit(Xs, y)
    assert chosen.input_scaling_ == 0.3
    clf.set_params(readout=None).fit(Xs, y)
    assert clf.predict_proba(new).shape == (30, 3)
    assert not hasattr(clf, "readout_")
    assert not hasattr(make(readout=RidgeClassifierCV()), "predict_proba")
    weights = np.arange(60) % 4
    weighted = make(readout=RidgeClassifierCV([10.0]), input_scaling=0.3).fit(Xs, y, weights)
    kept = [Xs[i] for i in np.flatnonzero(weights)]
    again = make(readout=RidgeClassifierCV([10.0]), input_scaling=0.3)
    again.fit(kept, y[weights > 0], weights[weights > 0])
    first, second = weighted.decision_function(new), again.decision_function(new)
    np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-5)
    esn = make(ESNSequenceRegressor, readout=Ridge(10.0), input_scaling=0.3).fit(Xs, y)
    assert esn.score(new, truth) > 0.6
    with pytest.raises(TypeError, match="is a classifier"):
        make(ESNSequenceRegressor, readout=LogisticRegression()).fit(Xs, y)


# --- scikit-learn around it --------------------------------------------------------------------


@pytest.mark.slow
def test_searches_stacks_and_calibration_take_it():
    Xs, y = waves(60)
    cube = np.stack([X[:20] for X in Xs])
    clf = make(n_units=20, input_scaling=0.3)
    search = GridSearchCV(clf, {"leak_rate": [1.0, (1.0, 0.3)], "alpha": [1.0, 10.0]}, cv=2)
    assert search.fit(Xs, y).best_score_ > 0.5
    for X in (Xs, cube):
        assert cross_val_score(clf, X, y, cv=2, error_score="raise").min() > 0.4
        calibrated = CalibratedClassifierCV(clf, cv=2).fit(X, y)
        assert calibrated.predict_proba(X).shape == (60, 3)
        stack = StackingClassifier([("fast", clf), ("slow", make(n_units=20, leak_rate=0.1))], cv=2)
        assert stack.fit(X, y).score(X, y) > 0.8


# --- which channel ----------------------------------------------------------------------------


@pytest.mark.slow
def test_workers_change_nothing():
    Xs, y = waves(24)
    one, two = (make(n_jobs=n, dtype="float32").fit(Xs, y) for n in (1, 2))
    np.testing.assert_array_equal(two.predict_proba(Xs), one.predict_proba(Xs))
    assert two.temperature_ == one.temperature_
    assert one.features_.transform(Xs).dtype == np.float32


@pytest.fixture(scope="module")
def importance():
    """Importances of the channels of sequences, and these sequences with their labels."""
    new, truth = waves(30, seed=1)
    clf = make(input_scaling=0.3).fit(*waves(60))
    return channel_importance(clf, new, truth, n_repeats=3, random_state=0), clf, new, truth


def test_the_informative_channel_is_the_important_one(importance):
    found, clf, new, truth = importance
    assert found.importances.shape == (2, 3)
    np.testing.assert_allclose(found.importances_mean, found.importances.mean(axis=1))
    np.testing.assert_allclose(found.importances_std, found.importances.std(axis=1))
    assert found.importances_mean[1] > 0.4
    assert abs(found.importances_mean[0]) < 0.2
    assert found.names is None
    packed = np.empty(30, dtype=object)
    packed[:] = new
    again = channel_importance(clf, packed, truth, n_repeats=3, random_state=0)
    assert np.array_equal(again.importances, found.importances)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(("kind", "column"), [(1, "id"), (0, 0), (2, None)])
def test_the_importance_is_the_same_from_any_container(kind, column, importance):
    found, _, new, truth = importance
    Xs, y = waves(60)
    X = as_tables(new)[kind]
    one = make(input_scaling=0.3, sequence_column=column).fit(as_tables(Xs)[kind], y)
    before = X.copy()
    again = channel_importance(one, X, truth, n_repeats=3, random_state=0)
    np.testing.assert_allclose(again.importances, found.importances, atol=0.04)
    assert again.names == (None if kind == 0 else ["a", "b"])
    assert np.array_equal(np.asarray(X), np.asarray(before))


class SecondChannel(ClassifierMixin, BaseEstimator):
    """Says whether the second channel begins above zero, and notes the lengths that it is given."""

    def fit(self, X, y):
        self.classes_, self.lengths_ = np.unique(y), []
        return self

    def predict(self, X):
        self.lengths_.append([len(rows) for rows in X])
        return np.array([int(rows[0, 1] > 0) for rows in X])


def test_a_channel_that_is_not_looked_at_has_no_importance():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 2)) for n in rng.integers(1, 40, 200)]
    y = np.array([int(rows[0, 1] > 0) for rows in X])
    found = channel_importance(SecondChannel().fit(X, y), X, y, random_state=0)
    assert not found.importances[0].any()
    assert found.importances_mean[1] == pytest.approx(0.5, abs=0.1)
    stub = SecondChannel().fit(X, y)
    channel_importance(stub, X, y, n_repeats=1)
    assert stub.lengths_ == [[len(rows) for rows in X]] * 3


@pytest.mark.slow
def test_the_importance_of_equal_lengths_and_of_one_channel():
    cube = np.stack([X[:20] for X in waves(60)[0]])
    y = waves(60)[1]
    clf = make(input_scaling=0.3).fit(cube, y)
    found = channel_importance(clf, cube, y, random_state=0, scoring="neg_log_loss")
    assert found.importances_mean[1] > 1.0 > found.importances_mean[0]
    flat = make(input_scaling=0.3).fit(cube[:, :, 1], y)
    assert channel_importance(flat, cube[:, :, 1], y).importances_mean > 0.3
    with pytest.raises(ValueError, match="at least 2 are needed"):
        channel_importance(flat, cube[:1, :, 1], y[:1])
    with pytest.raises(ValueError, match="n_repeats"):
        channel_importance(flat, cube[:, :, 1], y, n_repeats=0)

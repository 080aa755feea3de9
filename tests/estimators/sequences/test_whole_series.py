"""Whole sequences from users: containers, parameters set after fit, overflow."""

import re

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from reservoir import ESNClassifier, ESNSequenceClassifier, ESNSequenceRegressor, ReservoirFeatures
from reservoir.model_selection import channel_importance
from reservoir.readouts.temperature import probabilities

pytestmark = pytest.mark.both_engines


def series(n=12, n_channels=2, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return [rng.normal(size=(rng.integers(8, 15), n_channels)) + label for label in y], y


def small(cls=ESNSequenceClassifier, **options):
    return cls(**{"n_units": 12, "leak_rate": 0.5, "random_state": 0} | options)


def test_collections_that_are_no_list_raise_a_type_error():
    pd = pytest.importorskip("pandas")
    Xs, y = series()
    cells = pd.DataFrame({"a": [x[:, 0] for x in Xs], "b": [x[:, 1] for x in Xs]})
    for X in (dict(enumerate(Xs)), (x for x in Xs), pd.Series(Xs), cells):
        for model in (small(ReservoirFeatures), small(), small(ESNClassifier)):
            with pytest.raises(TypeError, match=f"X is .*{type(X).__name__}.* list of"):
                model.fit(X, y)


@pytest.mark.parametrize("scaling", ["standard", None])
def test_a_channel_that_a_series_has_not_gets_its_mean(scaling):
    Xs = [np.column_stack([x[:, 0], np.full(len(x), 5.0)]) for x in series()[0]]
    features = small(ReservoirFeatures, scaling=scaling, missing_values="hold").fit(Xs)
    without = [x * [1, np.nan] for x in Xs]
    np.testing.assert_array_equal(features.transform(without), features.transform(Xs))


def test_a_table_read_as_one_series_per_row_is_explained():
    Xs, y = series()
    with pytest.raises(ValueError, match="sequence_column"):
        small().fit(np.concatenate(Xs), y)


CLASS_WEIGHTS = [
    ({0: -1, 1: 1}, ValueError, "class_weight[0]=-1 must be finite and in [0, inf)"),
    ({0: 1, 1: np.nan}, ValueError, "class_weight[1]=nan must be finite"),
    ({0: np.inf, 1: 1}, ValueError, "class_weight[0]=inf must be finite"),
    ({0: "1"}, TypeError, "class_weight[0] must be a number; got '1' of type str"),
    ({0: [1]}, TypeError, "class_weight[0] must be a number; got [1] of type list"),
    ([1, 2], TypeError, 'class_weight must be None, "balanced" or a dict from labels'),
    ("balance", ValueError, "class_weight='balance' is not known. Did you mean 'balanced'?"),
]


@pytest.mark.fast_cases("values")
@pytest.mark.parametrize("weights, kind, message", CLASS_WEIGHTS, ids=range(len(CLASS_WEIGHTS)))
@pytest.mark.parametrize("cls", [ESNSequenceClassifier, ESNClassifier])
def test_class_weights_are_numbers_of_at_least_0(cls, weights, kind, message):
    Xs, y = series()
    X, y = (Xs, y) if cls is ESNSequenceClassifier else (Xs[0], np.arange(len(Xs[0])) % 2)
    with pytest.raises(kind, match=re.escape(message)):
        small(cls, class_weight=weights).fit(X, y)


def test_outputs_that_overflow_raise():
    Xs, y = series()
    options = {"activation": "identity", "dtype": "float64", "pool": "mean"}
    options |= {"scaling": None, "differences": False}
    model = small(ESNSequenceRegressor, **options).fit(Xs, y * 1e6)
    with pytest.raises(ValueError, match="sequence 1 of X overflows"):
        model.predict([Xs[0], Xs[1] * 1e305])


def test_probabilities_of_the_largest_scores_are_certain():
    scores = np.array([[1e308, -1e308, 0.0], [-1e308, 0.5, 0.4]])
    np.testing.assert_array_equal(probabilities(scores, 1e-3)[0], [1, 0, 0])
    assert probabilities(scores, 1e-3)[1, 1] == 1
    np.testing.assert_array_equal(probabilities(np.array([[1e308]]), 0.1), [[0, 1]])


def test_what_is_set_after_fit_waits_for_the_next_fit():
    pytest.importorskip("pandas")
    Xs, y = series()
    missing = [np.where(np.arange(len(x))[:, None] == 3, np.nan, x) for x in Xs]
    features = small(ReservoirFeatures).fit(Xs)
    features.set_params(bidirectional=True).set_output(transform="pandas")
    assert features.transform(Xs).shape[1] == len(features.get_feature_names_out())
    for cls in (ESNSequenceClassifier, ESNSequenceRegressor):
        model = small(cls).fit(Xs, y).set_params(missing_values="hold")
        with pytest.raises(ValueError, match="contains NaN"):
            model.predict(missing)
        model.fit(missing, y).set_params(missing_values="raise")
        assert np.isfinite(model.predict(missing).astype(float)).all()


def test_importance_raises_the_errors_of_the_estimator():
    pd = pytest.importorskip("pandas")
    Xs, y = series()
    table = pd.concat([pd.DataFrame(x) for x in Xs], keys=range(len(Xs))).reset_index(level=0)
    table.columns = ["id", "a", "b"]
    model = make_pipeline(small(sequence_column="id")).fit(table, y)
    with pytest.raises(ValueError, match="sequence_column='id'"):
        channel_importance(model, table.drop(columns="id"), y)


def test_half_a_unit_raises():
    with pytest.raises(TypeError, match="n_units must be an integer"):
        small(ReservoirFeatures, n_units=2.5).fit(series()[0])


@pytest.mark.parametrize("name", ["bias", "input_weights"])
def test_arrays_of_another_number_of_units_are_named(name):
    Xs = [np.random.default_rng(i).normal(size=(20, 1)) for i in range(6)]
    shape = (39,) if name == "bias" else (39, 5)
    features = ReservoirFeatures(40, **{name: np.zeros(shape)})
    with pytest.raises(ValueError, match=f"{name} has 39 rows, .* n_units=40"):
        features.fit(Xs)


# --- messages name the sequence as the user knows it ---------------------------------------------

LINEAR = {"activation": "identity", "scaling": None, "differences": False, "spectral_radius": 1.0}
MANY = [np.ones((n, 1)) for n in np.random.default_rng(0).permutation(np.arange(40, 80))]
TOO_MUCH = [
    ("float64", 1e200, "The pooled states of {} overflow float64"),
    ("float64", 1.7e308, r"In {}: The states are not finite from step \d+ on"),
    ("float32", 1e60, r"1e\+60 in channel 0, step 0 of {}, overflows float32"),
]


def as_table(Xs):
    """Return sequences as a table whose first column holds the ids s00, s01 and so on."""
    ids = np.concatenate([np.full((len(x), 1), f"s{k:02d}", object) for k, x in enumerate(Xs)])
    return np.hstack([ids, np.concatenate(Xs).astype(object)])


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize(("dtype", "value", "match"), TOO_MUCH)
def test_overflow_is_named_by_number_or_id(dtype, value, match, bidirectional):
    options = LINEAR | {"dtype": dtype, "pool": "std", "bidirectional": bidirectional}
    features = small(ReservoirFeatures, **options).fit(MANY)
    by_id = small(ReservoirFeatures, sequence_column=0, **options).fit(as_table(MANY))
    for i in (3, 38):
        bad = [np.full_like(x, value) if k == i else x for k, x in enumerate(MANY)]
        with pytest.raises(ValueError, match=match.format(f"sequence {i} of X")):
            features.transform(bad)
        with pytest.raises(ValueError, match=match.format(f"sequence 's{i:02d}' of X")):
            by_id.transform(as_table(bad))


@pytest.mark.fast_cases("values")
@pytest.mark.parametrize("pool", ["std", ("std", "quantiles")])
@pytest.mark.parametrize(("dtype", "value", "match"), TOO_MUCH)
def test_fit_names_it_as_well_however_it_orders_sequences(dtype, value, match, pool):
    rng, y = np.random.default_rng(1), np.arange(len(MANY)) % 2
    Xs = [x + rng.normal(size=x.shape) for x in MANY]
    options = LINEAR | {"dtype": dtype, "pool": pool}
    for i, cls in ((3, ESNSequenceClassifier), (38, ESNSequenceRegressor)):
        bad = [np.full_like(x, value) if k == i else x for k, x in enumerate(Xs)]
        with pytest.raises(ValueError, match=match.format(f"sequence {i} of X")):
            small(cls, **options).fit(bad, y)
        with pytest.raises(ValueError, match=match.format(f"sequence 's{i:02d}' of X")):
            small(cls, sequence_column=0, **options).fit(as_table(bad), y)


def test_steps_are_counted_from_the_first_of_the_sequence():
    x = np.ones((1999, 1))
    x[999] = 1e60  # in every part of a thousand steps
    for seed in range(5):
        features = small(ReservoirFeatures, random_state=seed, dtype="float32", **LINEAR)
        with pytest.raises(ValueError, match=r"1e\+60 .* step 999 of sequence 1 of X, overflows"):
            features.fit([np.ones((9, 1)), x])


def test_outputs_that_overflow_are_named_by_id():
    Xs, y = series(n_channels=1)
    options = LINEAR | {"dtype": "float64", "pool": "mean", "sequence_column": 0}
    model = small(ESNSequenceRegressor, **options).fit(as_table(Xs), y * 1e6)
    with pytest.raises(ValueError, match="The output for sequence 's01' of X overflows"):
        model.predict(as_table([Xs[0], Xs[1] * 1e305]))


def test_values_too_far_from_their_mean_raise():
    x = np.full((20, 2), -1.7e308)
    x[:, 0], x[5:8, 1] = np.arange(20), 1.7e308
    with pytest.raises(ValueError, match="differences of channel 1 of X overflow: scale X down"):
        small(ReservoirFeatures).fit([x, x])
    with pytest.raises(ValueError, match=r"1.7e\+308 in channel 1, step 5 of sequence \d of X, ov"):
        small(ReservoirFeatures, differences=False).fit([x, x])


# --- gaps between the largest values -------------------------------------------------------------


@pytest.mark.parametrize("how", ["interpolate", "hold"])
def test_gaps_between_the_largest_values_are_filled(how):
    """A power of two as the unit of X changes no bit of the features."""
    Xs = [0.3 * x / np.abs(x).max() for x in series()[0]]
    for x in Xs:
        x[2, 0], x[3:6, 0], x[6, 0] = -0.9, np.nan, 0.9
    huge = [2 * (x * 2.0**1023) for x in Xs]
    one, other = (small(ReservoirFeatures, missing_values=how).fit(X) for X in (Xs, huge))
    np.testing.assert_array_equal(one.transform(Xs), other.transform(huge))


# --- classes of one member -----------------------------------------------------------------------


def test_a_class_of_one_sequence_is_warned_of():
    Xs, y = series()
    y = np.array(["a", "b"], object)[y]
    y[3] = "rare"
    with pytest.warns(UserWarning, match=r"Class 'rare' has 1 sequence in fit: .*2 sequences"):
        clf = small().fit(Xs, y)
    assert np.isfinite(clf.predict_proba(Xs)).all()
    small(readout=LogisticRegression()).fit(Xs, y)  # no temperature
    y[4] = "rarer"
    with pytest.warns(UserWarning, match=r"'rare' has 1 sequence in fit \(one of 2 such classes\)"):
        small().fit(Xs, y)
    with pytest.warns(UserWarning, match="Class True has 1 sequence"):
        small().fit(Xs, np.arange(len(Xs)) == 0)
    y[5:7] = "rare", "rarer"
    small().fit(Xs, y)

"""Tables of polars, and pandas' NA among Python objects: read like arrays with NaN."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from reservoir import (
    ESNForecaster,
    ESNRegressor,
    ESNSequenceClassifier,
    ESNSequenceRegressor,
    LiquidStateMachine,
    ReservoirFeatures,
    RNNRegressor,
    fill_gaps,
)
from reservoir.metrics import nrmse
from reservoir.model_selection import (
    PerStep,
    channel_importance,
    make_forecast_pairs,
    washout_scorer,
)

pytestmark = pytest.mark.one_engine

RNG = np.random.default_rng(0)
XS = [RNG.normal(size=(20, 2)) for _ in range(4)]
YS = [rows[:, 0] for rows in XS]
KINDS = ["x", "y", "x", "y"]


def small(cls, **params):
    more = {"init": "esn", "max_iter": 1} if cls is RNNRegressor else {}
    return cls(8, random_state=0, **more, **params)


@pytest.mark.parametrize(
    "cls, y",
    [
        (ESNRegressor, YS),
        (RNNRegressor, YS),
        (ESNSequenceClassifier, KINDS),
        (ESNSequenceRegressor, [0.0, 1.0, 2.0, 3.0]),
        (ReservoirFeatures, None),
        (LiquidStateMachine, None),
    ],
)
def test_a_list_of_frames_of_polars_is_read_as_its_arrays(cls, y, polars):
    frames = [polars.DataFrame(rows, ["u", "v"]) for rows in XS]
    model, expected = small(cls).fit(frames, y), small(cls).fit(XS, y)
    assert list(model.feature_names_in_) == ["u", "v"]
    say = "transform" if y is None else "predict"
    found = getattr(model, say)(frames), getattr(expected, say)(XS)
    for got, each in zip(*found, strict=True):
        np.testing.assert_array_equal(got, each)


@pytest.mark.parametrize("cls", [ESNRegressor, ESNSequenceClassifier, RNNRegressor])
def test_lazy_frames_are_to_be_collected(cls, polars):
    frame = polars.DataFrame(np.column_stack([np.repeat([0, 1], 10), XS[0]]), ["id", "u", "v"])
    y = KINDS[:2] if cls is ESNSequenceClassifier else YS[0]
    with pytest.raises(TypeError, match=r"X is a LazyFrame of polars.*Load them "):
        small(cls, sequence_column="id").fit(frame.lazy(), y)
    with pytest.raises(TypeError, match=r"Sequence 0 of X is a LazyFrame "):
        small(cls).fit([frame.lazy()] * 2, y)
    with pytest.raises(TypeError, match="series 0 of y is a LazyFrame of polars"):
        ESNForecaster(panel="each").fit([frame.lazy()] * 2)


def test_tools_for_sequences_keep_the_columns_of_polars(polars):
    frames = [polars.DataFrame(rows, ["u", "v"]) for rows in XS]
    of_arrays = PerStep(StandardScaler()).fit(XS).transform(XS)
    scaler = PerStep(StandardScaler()).fit(frames)
    assert list(scaler.feature_names_in_) == ["u", "v"]
    np.testing.assert_allclose(scaler.transform(frames)[1], of_arrays[1])
    table = polars.concat(frames).with_columns(id=polars.Series(np.repeat(list("abcd"), 20)))
    expected = channel_importance(
        small(ESNSequenceClassifier).fit(XS, KINDS), XS, KINDS, random_state=0
    )
    for X, params in ((frames, {}), (table, {"sequence_column": "id"})):
        model = small(ESNSequenceClassifier, **params).fit(X, KINDS)
        found = channel_importance(model, X, KINDS, random_state=0)
        np.testing.assert_array_equal(found.importances, expected.importances)
        assert found.names == ["u", "v"]
    model = small(ESNRegressor, sequence_column="id").fit(table, np.concatenate(YS))
    score = washout_scorer("r2", 5)
    alone = small(ESNRegressor).fit(XS, YS)
    assert score(model, table, np.concatenate(YS)) == score(alone, XS, YS)


def test_ids_of_polars_leave_the_other_columns_as_they_are(polars):
    table = polars.DataFrame(np.concatenate(XS[:2]), ["u", "v"]).with_columns(
        id=polars.Series(["p"] * 20 + ["q"] * 20)
    )
    model = small(ESNRegressor, sequence_column="id").fit(table, np.concatenate(YS[:2]))
    assert list(model.feature_names_in_) == ["u", "v", "id"]
    expected = small(ESNRegressor).fit(XS[:2], YS[:2])
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    dated = table.with_columns(when=polars.Series(np.arange(40).astype("datetime64[D]")))
    with pytest.raises(TypeError, match="the datetime column 'when'"):
        small(ESNRegressor, sequence_column="id").fit(dated, np.concatenate(YS[:2]))
    absent = table.with_columns(id=polars.Series(["p"] * 20 + [None] + ["q"] * 19))
    with pytest.raises(ValueError, match="no id in row 20 of column"):
        small(ESNRegressor, sequence_column="id").fit(absent, np.concatenate(YS[:2]))


def with_na(values, place):
    """Return a table of Python objects with NA in one place, and the same table with NaN."""
    pd = pytest.importorskip("pandas")
    known = pd.DataFrame(values, columns=["u", "v"][: values.shape[1]], copy=True)
    known.iloc[place] = np.nan
    objects = known.astype(object)
    objects.iloc[place] = pd.NA
    return objects, known


def test_na_in_whole_sequences_is_filled():
    objects, known = with_na(XS[0], (3, 1))
    model = small(ReservoirFeatures, missing_values="hold")
    got = model.fit_transform([objects, objects])
    np.testing.assert_array_equal(got, model.fit_transform([known, known]))
    with pytest.raises(ValueError, match="sequence 0 of X contains NaN in column 1"):
        small(ReservoirFeatures).fit([objects])


@pytest.mark.parametrize("cls", [ESNRegressor, RNNRegressor])
@pytest.mark.parametrize("columns", [1, 2])
def test_na_among_targets_of_objects_is_a_missing_target(cls, columns):
    objects, known = with_na(XS[0][:, :columns].copy(), (5, 0))
    if columns == 1:
        objects, known = objects["u"], known["u"]
    skipping = small(cls, missing_targets="skip")
    expected = skipping.fit(XS[0], known).predict(XS[0])
    for y in (objects, objects.to_numpy()):
        np.testing.assert_array_equal(skipping.fit(XS[0], y).predict(XS[0]), expected)
        with pytest.raises(ValueError, match=r'y contains NaN .*missing_targets="skip"'):
            small(cls).fit(XS[0], y)


def test_na_in_objects_is_a_gap_of_series_and_known_inputs():
    objects, known = with_na(
        np.column_stack([np.cos(np.arange(24)), np.sin(np.arange(24))]), (3, 1)
    )
    quick = ESNForecaster(search="series", n_networks=1, missing_values="hold", random_state=0)
    forecast = quick.fit(objects).forecast(3)
    np.testing.assert_array_equal(forecast, quick.fit(known).forecast(3))
    quick.fit(known["u"], exog=objects[["v"]])


def test_na_among_weights_and_single_targets_is_named():
    objects, _ = with_na(XS[0][:, :1].copy(), (5, 0))
    with pytest.raises(ValueError, match="sample_weight contains NaN"):
        small(ESNRegressor).fit(XS[0], YS[0], sample_weight=objects["u"])
    with pytest.raises(ValueError, match="y contains NaN"):
        small(ESNSequenceRegressor).fit(XS, objects["u"][4:8])


def test_sparse_columns_are_read_as_dense_ones_everywhere():
    pd = pytest.importorskip("pandas")
    dense = pd.DataFrame(np.where(XS[0] > 0, XS[0], 0.0), columns=["u", "v"])
    sparse = dense.astype(pd.SparseDtype(float, 0.0))
    for call in (
        lambda rows: small(ESNRegressor).fit(rows, YS[0]).predict(rows),
        lambda rows: small(ESNRegressor).fit([XS[0]] * 2, [rows] * 2).predict(XS[0]),
        lambda rows: small(ReservoirFeatures).fit([rows, rows]).transform([rows]),
        lambda rows: (
            ESNForecaster(search="series", n_networks=1, random_state=0).fit(rows).forecast(2)
        ),
        lambda rows: make_forecast_pairs(rows, exog=rows.add_suffix("+"))[0],
        lambda rows: fill_gaps(rows, small(ESNRegressor), exog=rows),
        lambda rows: nrmse(XS[1], rows),
    ):
        np.testing.assert_array_equal(call(sparse), call(dense))

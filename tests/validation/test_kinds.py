"""Common mistakes of users: text, sparse data, single values; the same messages everywhere."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Lasso, Ridge
from sklearn.preprocessing import StandardScaler

from reservoir import (
    ESNClassifier,
    ESNForecaster,
    ESNRegressor,
    ESNSequenceClassifier,
    ESNSequenceRegressor,
    LiquidStateMachine,
    NVARRegressor,
    ReservoirFeatures,
    ReservoirTransformer,
    RNNClassifier,
    RNNRegressor,
    dynamics,
    fill_gaps,
    force_train,
    metrics,
    scaling,
    stability,
)
from reservoir.building import build_reservoir
from reservoir.model_selection import ClosedLoopSearchCV, PerStep, make_forecast_pairs
from reservoir.plotting import spectrum
from reservoir.training.cells import GRUCell
from reservoir.training.optimizers import adam

pytestmark = pytest.mark.one_engine

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2))
LABELS = np.arange(60) % 2
WALKS, KINDS = list(rng.normal(size=(8, 20, 2))), np.arange(8) % 2
LIQUID = {"n_units": 30}
STEPS = {  # what each takes in fit
    ESNRegressor: (X, X[:, 0]),
    ESNClassifier: (X, LABELS),
    ReservoirTransformer: (X, None),
    RNNRegressor: (X, X[:, 0]),
    RNNClassifier: (X, LABELS),
    NVARRegressor: (X, X[:, 0]),
    ESNSequenceClassifier: (WALKS, KINDS),
    ESNSequenceRegressor: (WALKS, KINDS / 2),
    ReservoirFeatures: (WALKS, None),
    LiquidStateMachine: (WALKS, None),
}
CLASSIFIERS = (ESNClassifier, RNNClassifier, ESNSequenceClassifier)


def small(cls, **params):
    sizes = {"init": "esn", "max_iter": 1} if cls in (RNNRegressor, RNNClassifier) else {}
    n_units = {} if cls is NVARRegressor else {"n_units": 30 if cls is LiquidStateMachine else 5}
    return cls(**{**n_units, **sizes, **params})


def test_a_single_value_is_no_list_of_series_and_text_no_series():
    network = build_reservoir(5, 2, random_state=0)
    with pytest.raises(ValueError, match="rows are expected"):
        dynamics.run_many(network, 3.0)
    for rows in (np.array(["a"] * 40), list("abc")):
        with pytest.raises(ValueError, match=r"X contains text.*for instance 'a'"):
            stability.lyapunov_exponents(network, rows)


# --- text, sparse arrays, one-hot labels --------------------------------------------------------


def test_text_of_numbers_is_read():
    assert small(ESNRegressor).fit(X.astype(str), X[:, 0]).n_features_in_ == 2


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_one_hot_labels_raise(cls):
    given, labels = STEPS[cls]
    columns = np.eye(2)[labels]
    with pytest.raises(ValueError, match=r"y should be a 1d array.*argmax of each row"):
        small(cls).fit(given, columns)
    with pytest.raises(ValueError, match=r"1d array, got an array of shape \(\d+, 2\) instead\.$"):
        small(cls).fit(given, 0.5 * columns)


def test_padding_is_not_held():
    padded = np.stack(WALKS)
    padded[2, 15:] = np.nan
    for cls in (ESNSequenceClassifier, LiquidStateMachine, ReservoirFeatures):
        with pytest.raises(
            ValueError, match=r"to the end of the series all channels are missing: this is padding"
        ) as err:
            small(cls).fit(padded, KINDS)
        assert "hold" not in str(err.value)
    first = np.stack(WALKS)
    first[2, :5] = np.nan
    with pytest.raises(ValueError, match="this is padding, which can be cut off"):
        small(ReservoirFeatures).fit(first)
    padded[2, 19] = 1.0  # a gap
    with pytest.raises(ValueError, match="missing_values"):
        small(ESNSequenceClassifier).fit(padded, KINDS)
    with pytest.raises(ValueError, match="Fill it first, for instance by interpolation") as err:
        small(LiquidStateMachine).fit(padded, KINDS)
    assert "missing_values" not in str(err.value)


def test_rows_at_the_ends_of_a_series_may_be_cut_off():
    lagged = X.copy()
    lagged[:3, 1] = np.nan
    with pytest.raises(ValueError, match=r"at the start or the end of a series.*may be removed"):
        small(ESNRegressor).fit(lagged, X[:, 0])


def test_classes_and_functions_in_place_of_objects():
    pairs = make_forecast_pairs(X)
    calls = {
        ("readout", "Ridge"): lambda: small(ESNClassifier, readout=Ridge).fit(X, LABELS),
        ("readout", "Lasso"): lambda: small(ESNSequenceClassifier, readout=Lasso).fit(WALKS, KINDS),
        ("cell", "GRUCell"): lambda: small(RNNRegressor, cell=GRUCell).fit(X, X[:, 0]),
        ("solver", "adam"): lambda: small(RNNRegressor, solver=adam).fit(X, X[:, 0]),
        ("init", "ESNRegressor"): lambda: small(RNNRegressor, init=ESNRegressor).fit(X, X[:, 0]),
        ("estimator", "ESNRegressor"): lambda: ClosedLoopSearchCV(
            ESNRegressor, {"alpha": [1.0]}, horizon=5
        ).fit(*pairs),
        ("transformer", "StandardScaler"): lambda: PerStep(StandardScaler).fit(WALKS),
        ("model", "ESNRegressor"): lambda: fill_gaps(np.where(X > 2, np.nan, X), ESNRegressor),
        ("esn", "ESNRegressor"): lambda: force_train(ESNRegressor, X[:, 0]),
    }
    for (name, made), call in calls.items():
        with pytest.raises(TypeError, match=f"{name} is the (class|function) {made},"):
            call()
    small(ESNRegressor, dtype=np.float32).fit(X, X[:, 0])


# --- tables of several series, and of labels ------------------------------------------------------


def test_levels_of_the_index_in_the_wrong_order():
    pd = pytest.importorskip("pandas")
    days = pd.date_range("2020-01-01", periods=30)
    right = pd.concat({which: pd.DataFrame({"u": X[:30, 0]}, days) for which in "ba"})
    y = np.tile(X[:30, 1], 2)
    small(ESNRegressor).fit(right, y)
    swapped = right.swaplevel()
    number = pd.concat({which: pd.DataFrame({"u": X[:30, 0]}, days) for which in (2, 1)})
    for table in (swapped, swapped.sort_index(), number.swaplevel()):
        with pytest.raises(ValueError, match=r"of X .*must be the time\. Swap them \(swaplevel"):
            small(ESNRegressor).fit(table, y)
        with pytest.raises(ValueError, match=r"of y .*must be the time\. Swap them \(swaplevel"):
            ESNForecaster(panel="each").fit(table)
    both = pd.Series(X[:30, 0], [days, days.shift(1)])  # swapped, it would be refused again
    for table in (both, both.swaplevel()):
        for panel in (None, "each", "shared"):
            with pytest.raises(ValueError, match=r"of y has times in both levels.*droplevel"):
                ESNForecaster(panel=panel).fit(table)
    hours = pd.MultiIndex.from_product([days[:2], range(30)])  # a series for each day
    small(ESNRegressor).fit(right.set_axis(hours), y)


def test_a_column_of_labels_left_in_x_is_to_be_dropped():
    pd = pytest.importorskip("pandas")
    names = np.array(["up", "down"])[LABELS]
    table = pd.DataFrame(X, columns=["u", "v"]).assign(label=names)
    said = "X contains the labels y in column 'label'. Drop it"
    for call in (
        lambda: small(ESNClassifier).fit(table, names),
        lambda: small(ESNClassifier).fit([table, table], [names, pd.Series(names)]),
        lambda: small(ESNSequenceClassifier).fit([table[:20], table[20:]], ["up", "down"]),
    ):
        with pytest.raises(ValueError, match=said):
            call()
    with pytest.raises(ValueError, match="text in column 'label', for instance 'up'"):
        small(ESNClassifier).fit(table, LABELS)


# --- networks and their weights -----------------------------------------------------------------


def test_gated_networks_raise_for_lack_of_a_reservoir():
    gated = RNNRegressor(4, cell="gru", init="esn", max_iter=1).fit(X, X[:, 0])
    for measure in (
        lambda model: stability.lyapunov_exponents(model, X),
        lambda model: metrics.memory_capacity(model),
        stability.echo_state_conditions,
        metrics.kernel_rank,
    ):
        with pytest.raises(TypeError, match=r"RNNRegressor\(cell='gru'\) has no reservoir") as said:
            measure(gated)
        assert "call fit" not in str(said.value)
        with pytest.raises(TypeError, match=r"RNNRegressor .* call fit first"):
            measure(RNNRegressor(cell="gru"))


def test_metrics_take_fitted_estimators():
    model = ESNRegressor(5, random_state=0).fit(X, X[:, 0])
    assert metrics.kernel_rank(model, random_state=0) == metrics.kernel_rank(
        model.reservoir_, random_state=0
    )
    assert metrics.generalization_rank(model) > 0
    one = ESNRegressor(5, random_state=0).fit(X[:, :1], X[:, 0])
    sizes = {"max_lag": 3, "n_train": 50, "n_test": 50, "washout": 5, "random_state": 0}
    assert metrics.memory_capacity(one, **sizes) == metrics.memory_capacity(one.reservoir_, **sizes)


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("form", ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"])
def test_every_sparse_format_is_a_w(form, kind):
    plain = build_reservoir(8, 1, in_degree=2, random_state=0)
    W = getattr(sp, f"{form}_{kind}")(plain.W.toarray())
    W_in = getattr(sp, f"{form}_{kind}")(plain.W_in)
    given = dynamics.Reservoir(W, W_in, plain.bias)
    assert np.array_equal(dynamics.run(given, X[:, :1]), dynamics.run(plain, X[:, :1]))
    built = build_reservoir(8, 1, topology=W, spectral_radius=None, random_state=0)
    assert np.array_equal(built.W.toarray(), plain.W.toarray())
    for topology in (W, lambda n_units, random_state: W):
        model = ESNRegressor(8, topology=topology, random_state=0).fit(X, X[:, 0])
        assert scaling.spectral_radius(model.reservoir_.W) == pytest.approx(0.9)
    assert stability.echo_state_conditions(W) == stability.echo_state_conditions(plain.W)
    assert scaling.spectral_radius(W) == scaling.spectral_radius(plain.W)
    spectrum_of = pytest.importorskip("matplotlib.pyplot") and spectrum
    assert spectrum_of(W) is not None

"""Features that replace the states (`augment`): learning, prediction, closed loops, saving."""

import joblib
import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers import naive
from reservoir import ESNClassifier, ESNRegressor, RNNRegressor, _kernels, forecast, load, save
from reservoir.datasets import lorenz, narma, sine_square
from reservoir.dynamics import run_closed_loop
from reservoir.dynamics.augment import augmented_width, write_augmented
from reservoir.estimators.esn.readout_model import ReadoutModel
from reservoir.model_selection import make_forecast_pairs
from reservoir.stability import certify_loop

pytestmark = pytest.mark.both_engines
ENGINES = ("numpy", "numba") if _kernels.usable() else ("numpy",)
X, Y = narma(700, random_state=0)


def cubes(states):
    """Products of three neighbours: a function of one's own, of another width than the states."""
    return states[:, :-2] * states[:, 1:-1] * states[:, 2:]


def by_hand(augment, states):
    """What the readout is to see, row by row."""
    rows = []
    for x in states:
        if augment == "square":
            rows.append([*x, *(v * v for v in x)])
        elif augment == "even_square":
            rows.append([v * v if i % 2 == 0 else v for i, v in enumerate(x)])
        else:
            rows.append([x[i] * x[i + 1] * x[i + 2] for i in range(len(x) - 2)])
    return np.array(rows)


KINDS = ["square", "even_square", cubes]


def esn(augment, **options):
    return ESNRegressor(
        **{"n_units": 25, "leak_rate": 1.0, "random_state": 0, "augment": augment, **options}
    )


@pytest.mark.parametrize("augment", KINDS)
@pytest.mark.parametrize("include_input", [True, False])
def test_a_fit_is_a_ridge_on_augmented_states(augment, include_input):
    model = esn(augment, include_input=include_input, alpha=1e-3, washout=50)
    model.fit(X[:600], Y[:600])
    states = model.states(X, initial_state="zeros")
    assert states.shape == (700, 25)
    table = by_hand(augment, states)
    table = np.hstack([table, X]) if include_input else table
    ridge = Ridge(1e-3).fit(table[50:600], Y[50:600])
    np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=0, atol=1e-7)
    said = model.predict(X[600:])
    np.testing.assert_allclose(said, ridge.predict(table[600:]), rtol=0, atol=1e-8)
    stream = model.stream()
    parts = [stream.predict(X[600:601]), stream.predict(X[601:650]), stream.predict(X[650:])]
    np.testing.assert_allclose(np.concatenate(parts), said, rtol=0, atol=1e-12)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("augment", KINDS)
def test_splits_sequences_and_workers_change_nothing(augment):
    whole = esn(augment, washout=20).fit(X[:500], Y[:500])
    parts = esn(augment, washout=20)
    for a, b in ((0, 7), (7, 300), (300, 500)):
        parts.partial_fit(X[a:b], Y[a:b])
    np.testing.assert_allclose(parts.predict(X[500:]), whole.predict(X[500:]), rtol=0, atol=1e-8)
    lists = [X[:150], X[150:400], X[400:]] * 60, [Y[:150], Y[150:400], Y[400:]] * 60
    with joblib.parallel_config(backend="threading"):
        one, two = (esn(augment, washout=20, n_jobs=n).fit(*lists) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    table = np.concatenate([by_hand(augment, part)[20:] for part in one.states(lists[0][:3])])
    table = np.hstack([table, np.concatenate([part[20:] for part in lists[0][:3]])])
    once = esn(augment, washout=20, alpha=1e-3).fit(lists[0][:3], lists[1][:3])
    ridge = Ridge(1e-3).fit(table, np.concatenate([part[20:] for part in lists[1][:3]]))
    np.testing.assert_allclose(once.coef_, ridge.coef_, rtol=0, atol=1e-7)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("augment", KINDS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_forecast_is_the_loop_by_hand(augment, dtype):
    tolerance = 1e-8 if dtype == "float64" else 2e-3
    inputs, targets = make_forecast_pairs(lorenz(700, random_state=0) / 20)
    model = esn(augment, alpha=1e-3, dtype=dtype).fit(inputs, targets)
    rows, state = model.forecast(25, return_state=True)
    assert rows.dtype == dtype
    res = model.reservoir_
    coef, intercept = model.coef_.astype(float), model.intercept_.astype(float)

    def readout(features):
        seen = by_hand(augment, features[None, :25])[0]
        return coef @ np.concatenate([seen, features[25:]]) + intercept

    expected, end = naive.closed_loop(
        res.W, res.W_in, res.bias, readout, 25, x0=model.state_, y0=targets[-1], include_input=True
    )
    np.testing.assert_allclose(rows, expected, rtol=0, atol=tolerance)
    np.testing.assert_allclose(state, end, rtol=0, atol=tolerance)
    # listening first; through a pipeline; row by row, behind a transformer that is no affine map
    both = model.forecast(5, context=inputs[-50:], initial_state="zeros")
    last = model.predict(inputs[-50:], initial_state="zeros")[-1]
    np.testing.assert_allclose(both[0], last, rtol=0, atol=tolerance)


@pytest.mark.parametrize("augment", KINDS)
def test_feedback_weights_close_the_same_loop(augment):
    model = esn(augment, feedback=True, alpha=1.0).fit(X[:600], Y[:600])
    res, size = model.reservoir_, model.reservoir_.n_units

    def readout(features):
        seen = by_hand(augment, features[None, :size])[0]
        return np.atleast_1d(model.coef_ @ np.concatenate([seen, features[size:]])) + (
            model.intercept_
        )

    expected, _ = naive.closed_loop(
        res.W, res.W_in, res.bias, readout, 40, W_fb=res.W_fb, x0=model.state_[:size],
        y0=model.state_[size:], exog=X[600:640], include_input=True,
    )  # fmt: skip
    np.testing.assert_allclose(model.predict(X[600:640]), expected[:, 0], rtol=0, atol=1e-9)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("augment", KINDS)
def test_engines_and_pipelines_agree(augment, monkeypatch):
    series = lorenz(900, random_state=1)
    inputs, targets = make_forecast_pairs(series)
    found = []
    for engine in ENGINES:
        model = esn(augment, n_units=60, alpha=1e-4)
        monkeypatch.setattr(ReadoutModel, "engine", engine)
        pipe = make_pipeline(StandardScaler(), model).fit(inputs, targets)
        found.append(forecast(pipe, 20, clip=True))
    np.testing.assert_allclose(found[0], found[-1], rtol=0, atol=1e-6)
    assert np.abs(found[0][0] - targets[-1]).max() < 5


@pytest.mark.parametrize("augment", KINDS)
def test_one_step_of_many_runs_is_a_step_of_each(augment):
    source = esn(augment, n_lags=1).fit(X, Y)._model.source
    rng = np.random.default_rng(0)
    states, inputs = rng.uniform(-1, 1, (6, 25)), rng.normal(size=(6, 1))
    features, after = source.advance(states, inputs)
    for k in range(6):
        ((_, row, end),) = source.iter_features(inputs[k : k + 1], states[k])
        np.testing.assert_allclose(features[k], row[0], rtol=0, atol=1e-14)
        np.testing.assert_allclose(after[k], end, rtol=0, atol=1e-14)


@pytest.mark.filterwarnings("ignore:The readout has .* columns:UserWarning")
def test_a_diverging_loop_warns_and_returns_finite_numbers():
    inputs, targets = make_forecast_pairs(np.cumprod(np.full(60, 1.05))[:, None])
    model = esn("square", activation="identity", alpha=1e-8).fit(inputs, targets)
    with pytest.warns(RuntimeWarning, match="closed loop"):
        rows = model.forecast(3000)
    assert np.isfinite(rows).all()


@pytest.mark.parametrize("augment", ["square", "even_square"])
def test_saving_keeps_what_is_a_name(augment, tmp_path):
    model = esn(augment).fit(X[:500], Y[:500])
    save(model, tmp_path / "esn.npz")
    again = load(tmp_path / "esn.npz")
    np.testing.assert_array_equal(again.predict(X[500:]), model.predict(X[500:]))
    again.partial_fit(X[500:], Y[500:])
    model.partial_fit(X[500:], Y[500:])
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_a_function_is_pickled_and_not_saved(tmp_path):
    model = esn(cubes).fit(X[:500], Y[:500])
    joblib.dump(model, tmp_path / "esn.joblib")
    again = joblib.load(tmp_path / "esn.joblib")
    np.testing.assert_array_equal(again.predict(X[500:]), model.predict(X[500:]))
    with pytest.raises(TypeError, match=r"augment=.*joblib"):
        save(model, tmp_path / "esn.npz")


def test_what_uses_states_only_raises_with_augment():
    inputs, targets = make_forecast_pairs(lorenz(400, random_state=0) / 20)
    model = esn("square", n_units=8).fit(inputs, targets)
    with pytest.raises(ValueError, match="augment='square' cannot be trained"):
        model.to_rnn()
    with pytest.raises(ValueError, match="augment='square' cannot be trained"):
        RNNRegressor(8, init=model, max_iter=1).fit(inputs, targets)
    with pytest.raises(TypeError, match="augment='square'"):
        certify_loop(model)


def test_labels():
    inputs, labels = sine_square(1200, random_state=0)
    plain, squared = (
        ESNClassifier(20, augment=augment, random_state=0, include_input=False)
        .fit(inputs[:900], labels[:900])
        .score(inputs[900:], labels[900:])
        for augment in (None, "square")
    )
    assert squared > plain - 0.02
    assert squared > 0.95


def test_even_functions_need_the_squares():
    # without a bias the states are odd functions of the input, and an even target cannot be had
    u = np.random.default_rng(0).uniform(-1, 1, (1500, 1))
    scores = [
        esn(augment, bias_scaling=0.0, spectral_radius=0.1, alpha=1e-8)
        .fit(u[:1000], u[:1000, 0] ** 2)
        .score(u[1000:], u[1000:, 0] ** 2)
        for augment in (None, "even_square", "square")
    ]  # fmt: skip
    assert scores[0] < 0.05
    assert min(scores[1:]) > 0.99


@pytest.mark.parametrize("augment", [None, *KINDS])
def test_saturated_units_warn_with_augment(augment):
    with pytest.warns(UserWarning, match="are stuck .* driven by the bias"):
        esn(augment, bias_scaling=500.0, spectral_radius=0.1).fit(X, Y)
    # units that flip from bound to bound do not stand still, though their squares do
    flips = np.where(np.arange(400) % 2, 1000.0, -1000.0)[:, None]
    with pytest.warns(UserWarning, match="flip between .* driven by the inputs"):
        esn(augment, bias_scaling=0.0, spectral_radius=0.1).fit(flips, flips[:, 0])


@pytest.mark.parametrize(
    ("augment", "error", "match"),
    [
        ("squares", ValueError, "squares"),
        (2, TypeError, "augment=2 must be None"),
        (lambda x: x[:-1], ValueError, r"must return shape \(10, any number\)"),
        (lambda x: x.sum(axis=1), ValueError, "must return shape"),
        (lambda x: x[:, :0], ValueError, "must return shape"),
        (lambda x: x + 1j, TypeError, "real numbers"),
        (lambda x: x - x.mean(axis=0), ValueError, "each row of states independently"),
        (lambda x: np.full_like(x, np.nan), ValueError, "NaN or infinity"),
        (lambda x: np.where(len(x) > 200, np.inf, x), ValueError, "NaN or infinity"),
    ],
)
def test_bad_values_raise(augment, error, match):
    with pytest.raises(error, match=match):
        esn(augment).fit(X, Y)


def test_overflow_is_named():
    model = esn("square", activation="identity", input_scaling=1.0)
    with pytest.raises(ValueError, match=r"squares of the states overflow, first in unit \d"):
        model.fit(X * 1e90, Y)
    grown = esn(None, activation="identity", spectral_radius=1e4)
    with pytest.raises(ValueError, match=r"squares of the states .* Lower spectral_radius"):
        grown.fit(X[:45], Y[:45])
    with pytest.raises(ValueError, match="squares of X overflow in column 0"):
        esn("even_square", input_scaling=1e-200).fit(X * 1e160, Y)


def test_a_search_over_it():
    search = GridSearchCV(
        esn(None), {"augment": [None, "square", "even_square"]}, cv=TimeSeriesSplit(2)
    ).fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_the_function_of_a_bare_loop():
    res = esn(None, n_units=6).fit(X, Y).reservoir_
    with np.errstate(all="raise"):  # no readout sees the initial state, zero
        outputs, _ = run_closed_loop(
            res, (np.full((1, 6), 0.1), np.zeros(1)), 5, initial_output=[0.3],
            augment=lambda x: np.log(np.abs(x)),
        )  # fmt: skip
    assert np.isfinite(outputs).all()
    with pytest.raises(ValueError, match=r"coef must have shape \(n_outputs=1, n_features=12\)"):
        run_closed_loop(res, (np.ones((1, 6)), np.zeros(1)), 5, augment="square")


@pytest.mark.parametrize("n_units", [1, 2, 7])
@pytest.mark.parametrize("augment", ["square", "even_square"])
def test_small_widths(augment, n_units):
    states = np.random.default_rng(0).normal(size=(4, n_units))
    place = np.empty((4, augmented_width(augment, states)))
    write_augmented(augment, states, place)
    np.testing.assert_array_equal(place, by_hand(augment, states))

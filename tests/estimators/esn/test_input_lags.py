"""`n_lags` of ESNRegressor: past inputs beside the states, in all functions of a network."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir import ESNRegressor, RNNRegressor, force_train, forecast
from reservoir.datasets import mackey_glass, narma
from reservoir.dynamics import run, step
from reservoir.model_selection import ClosedLoopSearchCV, make_forecast_pairs
from reservoir.stability import certify_loop

pytestmark = pytest.mark.both_engines
rng = np.random.default_rng(0)
X, Y = narma(400, random_state=0)
X = np.hstack([X, rng.normal(size=(400, 1))])
Y = np.hstack([Y[:, None] if Y.ndim == 1 else Y, np.roll(X[:, 1:], 3, axis=0)])
KINDS = [(2, 1), (4, 3)]


def esn(n_lags=3, skip=2, **params):
    options = {"n_units": 20, "alpha": 1e-3, "random_state": 0, **params}
    return ESNRegressor(n_lags=n_lags, skip=skip, **options)


def seen(states, rows, n_lags, skip):
    """States and the rows that are seen; those before the first one are like it."""
    t = np.arange(len(rows))
    return np.hstack([states, *(rows[np.maximum(t - k * skip, 0)] for k in range(n_lags))])


def close(one, other, atol=1e-9):
    np.testing.assert_allclose(one, other, rtol=0, atol=atol)


# --- learning ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_lags", "skip"), KINDS)
@pytest.mark.parametrize("augment", [None, "square"])
def test_a_fit_is_a_ridge_on_states_and_lagged_rows(n_lags, skip, augment):
    model = esn(n_lags, skip, augment=augment, washout=15).fit(X[:300], Y[:300])
    states = run(model.reservoir_, X)
    states = states if augment is None else np.hstack([states, states**2])
    table = seen(states, X, n_lags, skip)
    ridge = Ridge(1e-3).fit(table[15:300], Y[15:300])
    close(model.coef_, ridge.coef_, 1e-7)
    said = ridge.predict(table)
    close(model.predict(X[300:]), said[300:])  # goes on from the end of training
    close(model.predict(X, initial_state="zeros"), said)
    close(model.states(X[300:]), run(model.reservoir_, X)[300:])
    n_past = (n_lags - 1) * skip
    close(model.state_[: 2 * n_past], X[300 - n_past : 300].ravel(), 0)


def test_without_lags_nothing_changes():
    plain = ESNRegressor(20, alpha=1e-3, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(esn(1, 5).fit(X, Y).coef_, plain.coef_)


@pytest.mark.parametrize("splits", [[1, 2, 3, 200], [150]])
@pytest.mark.parametrize("options", [{}, {"feedback": True, "feedback_scaling": 0.1}])
def test_any_split_is_one_fit(splits, options):
    whole = esn(washout=10, **options).fit(X, Y)
    model = esn(washout=10, **options)
    for rows, targets in zip(np.split(X, splits), np.split(Y, splits), strict=True):
        model.partial_fit(rows, targets)
    close(model.coef_, whole.coef_, 1e-6)
    close(model.state_, whole.state_)


def test_sequences_start_fresh_and_workers_change_nothing():
    parts = [(X[a:b], Y[a:b]) for a, b in ((0, 90), (90, 200), (200, 280), (280, 400))]
    series, targets = (list(each) for each in zip(*parts, strict=True))
    model = esn(washout=7).fit(series, targets)
    tables = [seen(run(model.reservoir_, rows), rows, 3, 2) for rows in series]
    after = [np.concatenate([each[7:] for each in rows]) for rows in (tables, targets)]
    ridge = Ridge(1e-3).fit(*after)
    close(model.coef_, ridge.coef_, 1e-7)
    for said, table in zip(model.predict(series), tables, strict=True):
        close(said, ridge.predict(table), 1e-8)
    two = esn(washout=7, n_jobs=2).fit(series, targets)
    np.testing.assert_array_equal(two.coef_, model.coef_)


def test_short_sequences_begin_with_their_first_row_again_and_again():
    series, targets = ([rows[k : k + 6] for k in range(0, 240, 6)] for rows in (X, Y))
    model = esn(3, 2, washout=1).fit(series, targets)
    assert model.washout_.tolist() == [1] * 40
    assert esn(30, 2).fit(X, Y).washout_.tolist() == esn(1).fit(X, Y).washout_.tolist()
    of_each = zip(model.states(series), series, strict=True)
    H = np.concatenate([seen(states, rows, 3, 2)[1:] for states, rows in of_each])
    expected = Ridge(1e-3).fit(H, np.concatenate([y[1:] for y in targets]))
    close(model.coef_, expected.coef_, 1e-6)


def test_where_a_run_starts():
    model, rows = esn(washout=0).fit(X[:100], Y[:100]), X[100:130]
    units = np.linspace(-0.3, 0.3, 20)
    table = seen(run(model.reservoir_, rows, initial_state=units), rows, 3, 2)
    expected = table @ model.coef_.T + model.intercept_
    close(model.predict(rows, initial_state=units), expected)
    close(model.predict([rows, rows], initial_state=np.stack([units, 0 * units]))[0], expected)
    close(model.predict(rows, initial_state=model.state_), model.predict(rows))
    _, end = model.predict(np.tile(rows[:1], (400, 1)), return_state=True)
    constant = np.tile(rows[:1], (3, 1))
    _, steady = model.predict(constant, initial_state="steady", return_state=True)
    close(steady, end)


# --- loops ---------------------------------------------------------------------------------------

SERIES = mackey_glass(600, random_state=0)
KNOWN = np.sin(np.arange(600) / 5)[:, None]


def loop_by_hand(model, rows, exog):
    """WarmUp to rows, then go on with outputs as the first columns; exog has a row for each."""
    rows, states = list(rows), list(run(model.reservoir_, np.array(rows)))
    said = []
    for k in range(len(exog) + 1):
        lagged = [rows[-1 - j * model.skip] for j in range(model.n_lags)]
        said.append(model.coef_ @ np.concatenate([states[-1], *lagged]) + model.intercept_)
        if k < len(exog):
            rows.append(np.concatenate([said[-1], exog[k]]))
            states.append(step(model.reservoir_, states[-1], rows[-1]))
    return np.array(said)


@pytest.mark.parametrize("n_known", [0, 1])
def test_a_forecast_is_the_loop_by_hand(n_known):
    known = KNOWN[:, :n_known]
    inputs, targets = make_forecast_pairs(SERIES)
    inputs = np.hstack([inputs, known[:-1]])
    model = esn(washout=20).fit(inputs[:400], targets[:400])

    def follow(begin, end):
        return {"exog": known[begin:end]} if n_known else {}

    found = model.forecast(40, **follow(400, 440))
    first = np.concatenate([targets[399], known[400]])
    close(found, loop_by_hand(model, [*inputs[:400], first], known[401:440]))
    close(model.forecast(7, **follow(400, 407)), found[:7], 0)
    after = model.forecast(40, context=inputs[:400], initial_state="zeros", **follow(400, 439))
    close(after, loop_by_hand(model, inputs[:400], known[400:439]))
    held = model.forecast(40, clip=(0.8, 0.9), **follow(400, 440))
    assert np.abs(held - found).max() > 1e-3


def test_pipelines_and_searches_close_the_same_loop():
    inputs, targets = make_forecast_pairs(SERIES)
    model = esn(alpha=1e-6)
    pipeline = make_pipeline(StandardScaler(), model).fit(inputs[:400], targets[:400])
    scaled = StandardScaler().fit(inputs[:400])
    alone = clone(model).fit(scaled.transform(inputs[:400]), scaled.transform(targets[:400]))
    close(forecast(pipeline, 50), scaled.inverse_transform(alone.forecast(50)), 1e-6)
    grid = {"n_lags": [1, 3], "alpha": [1e-6, 1e-3]}
    search = ClosedLoopSearchCV(esn(), grid, horizon=30, n_starts=3).fit(inputs, targets)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert len(set(search.cv_results_["mean_test_score"])) == 4


def test_feedback_leaves_the_lags_to_the_inputs():
    y = Y[:, :1]
    model = esn(feedback=True, feedback_scaling=0.1, washout=10).fit(X[:300], y[:300])
    rows, past = X[300:340], X[:300]
    units, output, said = model.state_[-21:-1], model.state_[-1:], []
    for k, row in enumerate(rows):
        units = step(model.reservoir_, units, row, output)
        every = np.concatenate([past, rows[: k + 1]])
        lagged = [every[-1 - 2 * j] for j in range(3)]
        output = model.coef_ @ np.concatenate([units, *lagged]) + model.intercept_
        said.append(output)
    close(model.predict(rows), said)
    close(model.forecast(40, exog=rows), said)
    close(model.states(rows)[-1], units)


def test_force_learning_sees_lags_of_what_is_known():
    t = np.arange(700)
    known, y = np.sin(t / 7)[:, None], np.sin(t / 7 + 0.5) + 0.3 * np.sin(2 * t / 7)
    start = esn(leak_rate=0.3, feedback=True, washout=5, alpha=0.1)
    model = force_train(start, y[:600], exog=known[:600])
    assert model.coef_.shape == (23,)
    close(model.state_[:4], known[596:600, 0], 0)
    assert np.abs(model.forecast(100, exog=known[600:]) - y[600:]).max() < 0.1
    with pytest.raises(ValueError, match="n_lags=3 counts rows of exog"):
        force_train(start, y)


# --- sessions and files --------------------------------------------------------------------------


def test_a_session_continues_row_by_row():
    model = esn(washout=10).fit(X[:200], Y[:200])
    session = model.stream()
    said = [session.predict(row[None])[0] for row in X[200:230]]
    close(said, model.predict(X[200:230]))
    for begin, end in ((200, 201), (201, 230), (230, 290)):
        session.learn(X[begin:end], Y[begin:end])
    close(session.to_estimator().coef_, esn(washout=10).fit(X[:290], Y[:290]).coef_, 1e-6)


def test_the_table_of_a_notebook_shows_the_lags():
    assert "the readout receives 3 rows, 2 apart" in esn().fit(X, Y)._repr_html_inner()


# --- what is refused or warned of ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["n_lags", "skip"])
@pytest.mark.parametrize(
    ("value", "error", "match"),
    [
        (0, ValueError, "must be at least 1"),
        (-1, ValueError, "must be at least 1"),
        (1.5, TypeError, "must be an integer"),
        (True, TypeError, "must be an integer"),
    ],
)
def test_bad_values_raise(name, value, error, match):
    with pytest.raises(error, match=f"{name}={value!r}.*{match}|{name} {match}.*{value!r}"):
        esn(**{name: value}).fit(X, Y)


def test_other_words_raise():
    with pytest.raises(TypeError, match="skip must be an integer; got '2'"):
        esn(skip="2").fit(X, Y)
    with pytest.raises(ValueError, match=r"n_lags='2' is not known. Known: 'auto'"):
        esn(n_lags="2").fit(X, Y)
    with pytest.raises(ValueError, match=r"input_alpha='2' is not known. Known: 'auto'"):
        esn(input_alpha="2").fit(X, Y)
    for value in (0, -1.0, np.inf):
        with pytest.raises(ValueError, match=r"input_alpha=.* must be finite and in \(0, inf"):
            esn(input_alpha=value).fit(X, Y)
    with pytest.raises(ValueError, match=r"input_alpha=1.0 is a penalty of the built-in ridge"):
        esn(input_alpha=1.0, n_lags=1, include_input=False).fit(X, Y)
    with pytest.raises(ValueError, match=r"input_alpha=1.0 needs penalties .* above 0"):
        esn(input_alpha=1.0, alpha=[0.0, 1.0]).fit(X, Y)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        (
            {"include_input": False},
            "n_lags=3: the lags are inputs.*include_input=True, or n_lags=1",
        ),
        ({"time_column": 1, "leak_rate": 0.5}, "time_column=1 cannot be combined with n_lags=3"),
        ({"n_lags": 201}, "n_lags=201 and skip=2 use 400 rows before.*n_samples=400"),
    ],
)
def test_what_cannot_go_together_raises(params, match):
    rows = np.column_stack([X[:, 0], np.arange(400.0)])
    with pytest.raises(ValueError, match=match):
        esn(**params).fit(rows, Y)


def test_what_uses_the_present_input_only_raises_with_lags():
    inputs, targets = make_forecast_pairs(SERIES[:200])
    model = esn().fit(inputs, targets)
    with pytest.raises(TypeError, match="the model receives n_lags_=3 rows"):
        certify_loop(model)


@pytest.mark.parametrize("penalty", [1e-6, "auto"])
def test_a_recurrent_network_gets_a_readout_of_one_row(penalty):
    """It is that of `n_lags=1`, solved from the sums; a warning says so."""
    inputs, targets = make_forecast_pairs(SERIES[:200])
    one = esn(alpha=penalty, n_lags=1, input_alpha=None).fit(inputs, targets).to_rnn()
    worse = ", with held-out errors of .* instead of" if penalty == "auto" else ""
    with pytest.warns(UserWarning, match=f"n_lags_=3 rows.*solved again for one row{worse}"):
        found = esn(alpha=penalty).fit(inputs, targets).to_rnn()
    for name, weights in one.params_.items():
        np.testing.assert_allclose(found.params_[name], weights, rtol=1e-6, atol=1e-8)
    with pytest.warns(UserWarning, match="n_lags_=3 rows"):
        RNNRegressor(20, init=esn(leak_rate=1.0), include_input=True, max_iter=0).fit(
            inputs, targets
        )


def test_columns_that_overflow_are_named_with_what_keeps_them_out():
    rows = X.copy()
    rows[:, 1] = 1e300
    match = r"overflow in column 1.*\(include_input=False, n_lags=1\)"
    with pytest.raises(ValueError, match=match):
        esn().fit(rows, Y)


def test_saturated_units_warn_with_lags():
    with pytest.warns(UserWarning, match="column 0 of X"):
        esn().fit(X * [1e4, 1.0], Y)

"""LocalForecaster: one network for all blocks of a field, with outputs exchanged at every step."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import r2_score

from reservoir import ESNRegressor, LocalForecaster, NVARRegressor, load, save
from reservoir.datasets import lorenz96
from reservoir.loops.path_loops import mean_log_errors

pytestmark = pytest.mark.both_engines

N = 12
# so calm, and with penalties so large, that no loop diverges, however a processor rounds
CALM = lorenz96(400, n_features=N, forcing=4.0, rtol=1e-6, atol=1e-6)
FIELD = (CALM - CALM.mean()) / CALM.std()


def esn(**options):
    given = {"augment": "square", "input_scaling": 0.1, "alpha": 1.0, "leak_rate": 1.0}
    return ESNRegressor(30, washout=20, **{**given, "random_state": 0, **options})


INNER = {
    "network": esn,
    "network with lags": lambda: esn(n_lags=2),
    "polynomials": lambda: NVARRegressor(2, degree=1, alpha=1.0),
    "increments": lambda: NVARRegressor(1, degree=2, alpha=1.0, increments=True),
    "float32": lambda: esn(dtype="float32"),
}


@pytest.mark.parametrize("inner", INNER.values(), ids=INNER)
def test_one_block_of_all_places_is_the_inner_estimator(inner):
    model = LocalForecaster(inner(), block=N, halo=0).fit(FIELD)
    alone = inner().fit(FIELD[:-1], FIELD[1:])
    tolerance = 1e-9 if model.forecast(1).dtype == np.float64 else 1e-3
    np.testing.assert_allclose(model.forecast(20), alone.forecast(20), atol=tolerance)
    context = FIELD[50:90]
    expected = alone.forecast(20, context=context, initial_state="zeros")
    np.testing.assert_allclose(model.forecast(20, context=context), expected, atol=tolerance)
    predicted = alone.predict(FIELD, initial_state="zeros")
    # polynomials start from their first rows
    np.testing.assert_allclose(model.predict(FIELD)[2:], predicted[2:], atol=tolerance)


@pytest.mark.parametrize("inner", [esn, INNER["increments"]], ids=["network", "polynomials"])
def test_a_rotated_ring_has_rotated_forecasts(inner, global_random_seed):
    shift = 3 * (1 + global_random_seed % 3)
    made, turned = (
        LocalForecaster(inner(), block=3, halo=2).fit(rows).forecast(20)
        for rows in (FIELD, np.roll(FIELD, shift, axis=1))
    )
    np.testing.assert_allclose(np.roll(made, shift, axis=1), turned, atol=1e-9)


@pytest.mark.parametrize("periodic", [True, False])
def test_a_neighbourhood_replaces_the_halo(periodic):
    made = LocalForecaster(esn(), block=2, halo=3, periodic=periodic).fit(FIELD)
    near = [[k, k + 1, k - 3, k - 2, k - 1, k + 2, k + 3, k + 4] for k in range(0, N, 2)]
    near = np.array(near) % N if periodic else np.clip(near, 0, N - 1)
    given = LocalForecaster(esn(), block=2, halo=1, neighbourhood=near).fit(FIELD)
    np.testing.assert_array_equal(made.neighbourhood_, given.neighbourhood_)
    np.testing.assert_array_equal(made.forecast(20), given.forecast(20))


def test_places_in_another_order_have_the_same_forecasts(global_random_seed):
    order = np.random.default_rng(global_random_seed).permutation(N)
    made = LocalForecaster(esn(), block=1, halo=2).fit(FIELD)
    near = np.argsort(order)[made.neighbourhood_]
    other = LocalForecaster(esn(), neighbourhood=near).fit(FIELD[:, order])
    np.testing.assert_allclose(other.forecast(15), made.forecast(15)[:, order], atol=1e-9)


def test_a_linear_law_of_neighbours_is_found():
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=8)]
    for _ in range(60):
        x = rows[-1]
        rows.append(0.5 * x + 0.3 * np.roll(x, 1) - 0.2 * np.roll(x, -1) + 0.1)
    rows = np.array(rows)
    model = LocalForecaster(NVARRegressor(1, degree=1, alpha=1e-12), halo=2).fit(rows[:40])
    np.testing.assert_allclose(model.forecast(21), rows[40:], atol=1e-6)
    # own place, two on the left, two on the right
    weights = np.ravel(model.estimator_.coef_)[-5:]
    np.testing.assert_allclose(weights, [0.5, 0, 0.3, -0.2, 0], atol=1e-5)


# ---------------------------------------------------------------- the penalty


def naive_errors(rows, alphas, **options):
    """Score penalties as documented, by the public methods of models with one penalty each."""
    cut, n_steps = int(0.8 * len(rows)), min(50, (len(rows) - int(0.8 * len(rows))) // 2)
    starts = cut + np.arange(8) * (len(rows) - 1 - n_steps - cut) // 7
    errors = []
    for alpha in alphas:
        model = LocalForecaster(esn(alpha=alpha), **options).fit(rows[:cut])
        logs = [
            mean_log_errors(
                model.forecast(n_steps, context=rows[: t + 1])[:, None, None],
                rows[t + 1 : t + 1 + n_steps, None],
                rows[:cut].std(),
            )
            for t in starts
        ]
        errors.append(10 ** np.median(logs))
    return np.array(errors)


@pytest.mark.fast_cases(1)
@pytest.mark.filterwarnings("ignore:The closed loop left the range")
@pytest.mark.parametrize("by", ["alphas", "alpha"])
def test_the_penalty_with_the_best_free_runs_is_chosen(by):
    alphas, options = [1e-6, 1e-2, 1e2], {"block": 2, "halo": 2}
    inner, own = (esn(), alphas) if by == "alphas" else (esn(alpha=alphas), None)
    model = LocalForecaster(inner, alphas=own, **options).fit(FIELD)
    expected = naive_errors(FIELD, alphas, **options)
    np.testing.assert_allclose(model.alpha_scores_, expected, rtol=1e-3)
    np.testing.assert_array_equal(model.alphas_, alphas)
    assert model.alpha_ == alphas[int(np.argmin(expected))]
    # all rows are learned from with this penalty
    again = LocalForecaster(esn(alpha=model.alpha_), **options).fit(FIELD)
    np.testing.assert_array_equal(again.forecast(10), model.forecast(10))
    assert not hasattr(again, "alphas_")


@pytest.mark.filterwarnings("ignore:The closed loop left the range")
def test_auto_tries_the_path_of_the_inner_estimator():
    model = LocalForecaster(esn(alpha="auto"), block=2, halo=2).fit(FIELD)
    assert len(model.alphas_) > 5
    assert model.alpha_ == model.alphas_[np.argmin(model.alpha_scores_)]


# ---------------------------------------------------------------- containers


def test_recordings_are_learned_together_and_forecast_after_a_context():
    parts = [FIELD[:150], FIELD[200:]]
    model = LocalForecaster(esn(), block=2, halo=2).fit(parts)
    with pytest.raises(ValueError, match=r"no last row to continue from. Pass context"):
        model.forecast(3)
    assert model.forecast(3, context=FIELD[:100]).shape == (3, N)
    made = model.predict(parts)
    assert [rows.shape for rows in made] == [(150, N), (200, N)]
    np.testing.assert_allclose(made[1], model.predict(parts[1]), atol=1e-12)
    truth = np.concatenate([rows[1:] for rows in parts])
    expected = r2_score(truth, np.concatenate([rows[:-1] for rows in made]))
    assert model.score(parts) == pytest.approx(expected, abs=1e-9)


def test_a_row_of_predict_is_the_first_row_of_a_forecast():
    model = LocalForecaster(esn(), block=3, halo=2).fit(FIELD)
    rows = model.predict(FIELD[:60])
    for t in (1, 30, 59):
        first = model.forecast(1, context=FIELD[: t + 1])[0]
        np.testing.assert_allclose(rows[t], first, atol=1e-12)


def test_frames_keep_names_and_dates():
    pd = pytest.importorskip("pandas")
    names = [f"place {k}" for k in range(N)]
    table = pd.DataFrame(FIELD, pd.date_range("2024", periods=len(FIELD), freq="h"), names)
    model = LocalForecaster(esn(), block=3).set_output(predict="pandas").fit(table)
    ahead = model.forecast(3)
    assert list(ahead.columns) == names == list(model.feature_names_in_)
    assert ahead.index[0] == table.index[-1] + pd.Timedelta("1h")
    after = model.forecast(2, context=table[:50])
    assert after.index[0] == table.index[50]
    assert model.predict(table).index.equals(table.index)
    plain = LocalForecaster(esn(), block=3).fit(FIELD)
    np.testing.assert_array_equal(plain.forecast(3), ahead.to_numpy())
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table[names[::-1]])


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("inner", INNER.values(), ids=INNER)
def test_saved_models_forecast_the_same(inner, tmp_path):
    model = LocalForecaster(inner(), block=3, halo=1).fit(FIELD)
    before = model.forecast(10)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.forecast(10), before)
    np.testing.assert_array_equal(again.predict(FIELD[:30]), model.predict(FIELD[:30]))
    assert not hasattr(clone(again), "estimator_")
    assert "blocks" in model._repr_mimebundle_()["text/html"]


# ---------------------------------------------------------------- errors


def test_a_loop_that_diverges_warns_of_step_and_place_and_stays_finite():
    model = LocalForecaster(NVARRegressor(1, degree=3, alpha=1e-9), halo=1).fit(FIELD[:60])
    with pytest.warns(RuntimeWarning, match=r"at step \d+: output \d+ is") as told:
        rows = model.forecast(200, context=40 * FIELD[:5])
    assert "clip" not in str(told[0].message)
    assert np.isfinite(rows).all()


WRONG = {
    "no estimator": (lambda: LocalForecaster(None), TypeError, "must be an ESNRegressor"),
    "feedback": (lambda: LocalForecaster(esn(feedback=True)), ValueError, "feedback=False"),
    "backwards": (
        lambda: LocalForecaster(esn(bidirectional=True)),
        ValueError,
        "bidirectional=False",
    ),
    "times": (lambda: LocalForecaster(esn(time_column=0)), ValueError, "time_column=None"),
    "ids": (lambda: LocalForecaster(esn(sequence_column=0)), ValueError, "sequence_column=None"),
    "readout": (lambda: LocalForecaster(esn(readout=esn())), ValueError, "readout=None"),
    "a penalty each": (
        lambda: LocalForecaster(esn(alpha_per_target=True)),
        ValueError,
        "alpha_per_target=False",
    ),
    "rule": (
        lambda: LocalForecaster(esn(alpha_selection="gcv"), alphas=[1.0, 2.0]),
        ValueError,
        "alpha_selection='gcv' of the estimator",
    ),
    "two penalties": (
        lambda: LocalForecaster(esn(alpha="auto", input_alpha=1.0)),
        ValueError,
        "input_alpha=1.0 of the estimator",
    ),
    "one penalty": (lambda: LocalForecaster(esn(), alphas=1.0), ValueError, "alphas must have"),
    "block": (lambda: LocalForecaster(esn(), block=5), ValueError, "does not divide the 12 places"),
    "halo": (lambda: LocalForecaster(esn(), block=2, halo=6), ValueError, "more than the ring"),
    "text": (
        lambda: LocalForecaster(esn(), neighbourhood=[["a"]] * N),
        ValueError,
        "array of integers",
    ),
    "too few": (
        lambda: LocalForecaster(esn(), neighbourhood=[[0], [1]]),
        ValueError,
        "has 2 rows, and places from 0 to 1",
    ),
    "twice": (
        lambda: LocalForecaster(esn(), neighbourhood=[[0]] * N),
        ValueError,
        "contain place 0 12 times",
    ),
}


@pytest.mark.parametrize(("make", "error", "text"), WRONG.values(), ids=WRONG)
def test_what_blocks_cannot_have_is_refused(make, error, text):
    model = make()
    with pytest.raises(error, match=text):
        model.fit(FIELD)
    assert not hasattr(model, "n_features_in_")


def test_targets_short_data_and_several_contexts_are_refused():
    with pytest.raises(TypeError, match=r"takes no y. Use fit"):
        LocalForecaster(esn()).fit(FIELD, FIELD)
    with pytest.raises(ValueError, match=r"2 row\(s\); at least 3"):
        LocalForecaster(esn()).fit(FIELD[:2])
    with pytest.raises(ValueError, match=r"has 15 rows, fewer than 20. Use a number as alpha"):
        LocalForecaster(esn(alpha="auto")).fit(FIELD[:15])
    model = LocalForecaster(esn()).fit(FIELD)
    with pytest.raises(ValueError, match="context has 2 sequences"):
        model.forecast(3, context=[FIELD[:50], FIELD[:50]])
    with pytest.raises(ValueError, match="11 features"):
        model.forecast(3, context=FIELD[:, :11])

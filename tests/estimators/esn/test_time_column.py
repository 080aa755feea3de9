"""Rows at irregular times: `time_column` and `time_step` of echo state and trained networks."""

import numpy as np
import pytest

from helpers.irregular_rows import steps_of, table, timed
from reservoir import (
    ESNClassifier,
    ESNRegressor,
    NVARRegressor,
    ReservoirTransformer,
    RNNRegressor,
    forecast,
    load,
    save,
)
from reservoir._tables import Clock
from reservoir.building import build_reservoir
from reservoir.dynamics import run
from reservoir.dynamics.feature_source import Run
from reservoir.dynamics.features import DrivenReservoir
from reservoir.dynamics.polynomial_lags import LaggedPolynomials
from reservoir.dynamics.saturation import rows_to_look_at
from reservoir.dynamics.timed_reservoir import TimedReservoir
from reservoir.estimators.esn.readout_model import ReadoutModel
from reservoir.model_selection import stack_sequences
from reservoir.training.cells import SimpleCell, TimedLeakyCell

pytestmark = pytest.mark.one_engine
MADE = {"leak_rate": 0.3, "random_state": 0}


def esn(**params):
    return ESNRegressor(**{"n_units": 30, "time_column": 1, **MADE, **params})


def rnn(**params):
    trained = {"n_units": 10, "cell": "leaky", "init": "esn", "max_iter": 2}
    return RNNRegressor(**{**trained, "time_column": 1, **MADE, **params})


EITHER = pytest.mark.parametrize("make", [esn, rnn])


@pytest.mark.fast_cases(2)
@EITHER
@pytest.mark.parametrize("include_input", [True, False])
@pytest.mark.parametrize(("dtype", "atol"), [("float64", 1e-10), ("float32", 2e-3)])
def test_outputs_are_those_of_a_run_with_these_steps(dtype, atol, include_input, make):
    times, u, y = timed()
    X, given = table(times, u), {"dtype": dtype, "alpha": 1e-3} if make is esn else {"dtype": dtype}
    model = make(n_units=20, include_input=include_input, **given).fit(X[:200], y[:200])
    assert model.time_step_ == pytest.approx(np.median(np.diff(times[:200])))
    states = run(model.reservoir_, u, dt=steps_of(times, model.time_step_))
    features = np.hstack([states, u]) if include_input else states
    coef, intercept = (
        (model.coef_, model.intercept_)
        if make is esn
        else (model.params_["coef"][0], model.params_["intercept"])
    )
    expected = features[200:] @ coef + intercept
    np.testing.assert_allclose(model.predict(X[200:]), expected, rtol=0, atol=atol)
    if make is rnn:
        assert model.loss_curve_[-1] < model.loss_curve_[0]
        found = model.states(X, initial_state="zeros")
    else:
        step = {"time_column": 1, "time_step": model.time_step_}
        found = ReservoirTransformer(20, dtype=dtype, **step, **MADE).fit_transform(X)
    np.testing.assert_allclose(found, states, rtol=0, atol=atol)


@pytest.mark.fast_cases(1)
@EITHER
def test_equal_steps_change_nothing_and_units_of_time_do_not_matter(make):
    times, u, y = timed()
    even = np.arange(len(u)) * 7.0 - 20
    told = make().fit(table(even[:200], u[:200]), y[:200])
    without = {"n_lags": 1} if make is esn else {}
    untold = make(time_column=None, **without).fit(u[:200], y[:200])
    np.testing.assert_allclose(told.reservoir_.W_in, untold.reservoir_.W_in, atol=1e-9)
    outputs = told.predict(table(even[200:], u[200:]))
    np.testing.assert_allclose(outputs, untold.predict(u[200:]), rtol=0, atol=1e-9)
    in_days, in_seconds = (
        make().fit(table(t[:200], u[:200]), y[:200]).predict(table(t[200:], u[200:]))
        for t in (times, 86400 * times + 1.6e9)
    )
    np.testing.assert_allclose(in_seconds, in_days, rtol=0, atol=1e-6 if make is esn else 1e-5)


def test_saved_and_loaded(tmp_path):
    times, u, y = timed()
    X = table(times, u)
    models = [make().fit(X[:200], y[:200]) for make in (esn, rnn)]
    transformer = ReservoirTransformer(20, time_column=1, **MADE).fit(X[:200])
    for model in (*models, transformer, *(each.stream() for each in (*models, transformer))):
        save(model, tmp_path / "model.npz")
        again = load(tmp_path / "model.npz")
        ask = "transform" if hasattr(model, "transform") else "predict"
        np.testing.assert_array_equal(getattr(again, ask)(X[200:]), getattr(model, ask)(X[200:]))
    for model, make in zip(models, (esn, rnn), strict=True):
        expected = model.predict(X[200:])  # what was fitted counts, not what is set later
        model.set_params(time_column=None, time_step=5.0)
        np.testing.assert_array_equal(model.predict(X[200:]), expected)
        assert make(time_column=None).fit(u, y).time_step_ is None


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_chunks_and_sessions_continue_over_a_gap(dtype):
    times, u, y = timed()
    X, made = table(times, u), {"dtype": dtype, "washout": 20, "alpha": 1e-2, **MADE}
    whole = ESNRegressor(30, time_column=1, **made).fit(X[:200], y[:200])
    expected = whole.predict(X[200:])
    chunks = ESNRegressor(30, time_column=1, time_step=whole.time_step_, **made)
    for begin in (0, 70, 71, 120):
        end = {0: 70, 70: 71, 71: 120, 120: 200}[begin]
        chunks.partial_fit(X[begin:end], y[begin:end])
    atol = 1e-9 if dtype == "float64" else 1e-3
    np.testing.assert_allclose(chunks.predict(X[200:]), expected, rtol=0, atol=atol)
    session = whole.stream()
    rows = [session.predict(X[i : i + 1])[0] for i in range(200, 300)]
    np.testing.assert_allclose(rows, expected, rtol=0, atol=atol)
    with pytest.raises(ValueError, match=r"Times must increase: these rows begin at 1008.*reset"):
        session.predict(X[250:260])
    # the session stands where it stood, and learns
    late = np.column_stack([X[:5, 0], times[-1] + np.arange(1.0, 6), X[:5, 2]])
    session.learn(late, y[:5])
    session.reset()
    with pytest.warns(UserWarning, match="starts from the steady state of its first row"):
        again = session.predict(X[:3])
    model = whole.predict(X[:3], initial_state="steady")
    assert again.shape == model.shape


@pytest.mark.fast_cases(1)
@EITHER
def test_sequences_start_fresh_in_every_container(make):
    parts = [timed(n, seed) for seed, n in enumerate((60, 80, 70))]
    Xs, ys = [table(t, u) for t, u, _ in parts], [y for _, _, y in parts]
    listed = make().fit(Xs, ys)
    gaps = np.concatenate([np.diff(t) for t, _, _ in parts])
    assert listed.time_step_ == pytest.approx(np.median(gaps))
    stacked, y, _ = stack_sequences(Xs, ys)
    told = make(time_column=2, sequence_column=0).fit(stacked, y)
    outputs = np.concatenate(listed.predict(Xs))
    np.testing.assert_allclose(told.predict(stacked), outputs, rtol=0, atol=1e-10)
    for (times, u, _), rows in zip(parts, listed.states(Xs), strict=True):
        states = run(listed.reservoir_, u, dt=steps_of(times, listed.time_step_))
        np.testing.assert_allclose(rows, states, rtol=0, atol=1e-10)


@pytest.mark.fast_cases(1)
@EITHER
def test_where_a_run_starts(make):
    times, u, y = timed()
    X = table(times, u)
    model = make().fit(X[:200], y[:200])
    assert model.state_.shape == (model.n_units + 1,)
    zeros = model.predict(X[200:], initial_state="zeros")
    start = np.zeros(model.n_units)
    np.testing.assert_array_equal(model.predict(X[200:], initial_state=start), zeros)
    behind = model.predict(X[200:], initial_state=model.state_)
    np.testing.assert_array_equal(behind, model.predict(X[200:]))
    assert np.abs(zeros - behind)[:3].max() > 1e-4
    # rows from before the end of training cannot follow it
    with pytest.warns(UserWarning, match="X begins at time 1000.* training ended at 1006"):
        again = model.predict(X[:50])
    np.testing.assert_array_equal(again, model.predict(X[:50], initial_state="steady"))
    if make is esn:
        transformer = ReservoirTransformer(30, time_column=1, **MADE).fit(X[:200])
        found = transformer.transform(X[200:])
        np.testing.assert_allclose(found, model.states(X[200:]), rtol=0, atol=1e-10)


def test_labels_and_data_frames():
    pd = pytest.importorskip("pandas")
    times, u, y = timed()
    labels = np.where(y > 0, "up", "down")
    X = table(times, u)
    expected = ESNClassifier(30, time_column=1, **MADE).fit(X[:200], labels[:200])
    # an irregular index says no more than the column does
    index = pd.to_datetime(times, unit="D")
    frame = pd.DataFrame(X, columns=["a", "day", "b"], index=index)
    told = ESNClassifier(30, time_column="day", **MADE).fit(frame[:200], labels[:200])
    rows = told.predict_proba(frame[200:])
    np.testing.assert_allclose(np.asarray(rows), expected.predict_proba(X[200:]), atol=1e-12)


ONLINE = {"solver": "adam", "include_input": True}


@pytest.mark.filterwarnings("ignore:initial_state=.steady:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(("make", "given"), [
    *((esn, {"include_input": include, "alpha": 1e-2}) for include in (False, True)),
    *((rnn, {"init": init, "online": online, **ONLINE})
      for init in ("esn", "least_squares") for online in ("bptt", "least_squares")),
])  # fmt: skip
def test_times_stay_float64_in_a_network_of_float32(make, given, tmp_path):
    # two sequences, the second far behind the first: what lies between them moves no bit
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.integers(1, 9, 120) / 8)
    u = rng.normal(size=(120, 2))
    y = u[:, 0] + np.r_[0, u[:-1, 1]]
    made = {"n_units": 6, "time_step": 1.0, "dtype": "float32", **given}
    transformer = ReservoirTransformer(6, time_column=1, time_step=1.0, dtype="float32", **MADE)
    found = []
    for later in (2.0**10, 2.0**28):
        X = table(times + later, u)
        pair = [table(times, u)[:90], X[:90]]
        model = make(**made).fit(pair, [y[:90], y[:90]])
        outputs = [model.predict(X[90:]), model.predict(X[90:], initial_state="steady")]
        model.partial_fit(X[90:100], y[90:100])
        save(model, tmp_path / "model.npz")
        session = load(tmp_path / "model.npz").stream()
        outputs += [session.learn(X[100:110], y[100:110]).predict(X[110:])]
        outputs += [*transformer.fit(pair).transform([X[90:], X[95:]]), model.states(X[110:])]
        weights = [model.coef_] if make is esn else model.params_.values()
        assert {each.dtype for each in (*outputs, *weights)} == {np.dtype("float32")}
        assert model.state_.dtype == transformer.state_.dtype == np.float64
        assert model.state_[-1] == times[99] + later - times[0]
        found.append(np.concatenate([np.ravel(each) for each in outputs]))
    np.testing.assert_array_equal(*found)
    huge = table(times, np.where(np.arange(120)[:, None] == 7, 1e39, u))
    with pytest.raises(ValueError, match=r"infinity .* in row 7, as float32"):
        model.fit(huge, y)


@pytest.mark.parametrize(("topology", "radius"), [("random_sparse", 0.7), ("ring", 0.95)])
def test_a_certificate_covers_the_gaps_of_training(topology, radius):
    times, u, y = timed()
    X, rng = table(times, u), np.random.default_rng(1)
    made = {"topology": topology, "spectral_radius": radius, "input_scaling": 0.1, **MADE}
    esn = ESNRegressor(40, time_column=1, bias="stable", **made).fit(X[:200], y[:200])
    certificate, gaps = esn.certificate_, np.diff(times[:200]) / esn.time_step_
    assert certificate.holds
    assert certificate.covers_steps(gaps)
    assert certificate.covers_steps(1.0)
    np.testing.assert_allclose(certificate.step_range, [gaps.min() / 1.1, gaps.max() * 1.1])
    # such steps in any order, from any states
    dt = rng.choice([*certificate.step_range, *gaps], 3000)
    drive = rng.uniform(*certificate.input_range, (3000, 2))
    starts = rng.uniform(-1, 1, (2, 40))
    one, other = (run(esn.reservoir_, drive, dt=dt, initial_state=start) for start in starts)
    assert np.abs(one - other)[-1].max() < 1e-8
    # rows that are far apart leave what was certified
    late = X[200:202].copy()
    late[1, 1] += 1e4
    with pytest.warns(UserWarning, match="certified for the range of the first chunk"):
        esn.partial_fit(late, y[200:202])
    transformer = ReservoirTransformer(40, time_column=1, bias="stable", **made).fit(X[:200])
    np.testing.assert_array_equal(transformer.certificate_.step_range, certificate.step_range)


@pytest.mark.slow
@EITHER
def test_times_improve_a_slow_observer(make, global_random_seed):
    # z of Lorenz' system from x; ten seeds and other models: examples/benchmarks/irregular_times.py
    from reservoir.datasets import lorenz
    from reservoir.metrics import nrmse

    path = lorenz(4000, random_state=0)
    rows = np.cumsum(1 + np.random.default_rng(global_random_seed).poisson(1.5, 1500))
    x, z, times = path[rows, 0] / 8, path[rows, 2] / 8, rows.astype(float)
    given = {"n_units": 60} if make is esn else {"n_units": 30, "max_iter": 3}
    given |= {"leak_rate": 0.2, "random_state": global_random_seed}
    errors = [
        nrmse(z[1000:], make(time_column=column, **given).fit(X[:1000], z[:1000]).predict(X[1000:]))
        for column, X in ((1, np.c_[x, times]), (None, x[:, None]))
    ]
    assert errors[0] < 0.8 * errors[1]


@pytest.mark.parametrize("kind", ["estimator", "session", "states"])
def test_earlier_files_have_times_of_float32(kind, tmp_path):
    times, u, y = timed(120)
    rows = table(times, u)
    made = {"time_column": 1, "dtype": "float32", **MADE}
    model = ESNRegressor(10, **made).fit(rows[:60], y[:60])
    if kind == "session":
        model = model.stream().learn(rows[60:80], y[60:80])
        model.state = model.state.astype(np.float32)
    elif kind == "states":
        model = ReservoirTransformer(10, **made).fit(rows[:80])
        model.state_ = model.state_.astype(np.float32)
    else:
        model.state_ = model._model.state = model.state_.astype(np.float32)
    save(model, tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    if kind == "states":
        assert np.isfinite(again.transform(rows[80:])).all()
    else:
        learn = again.learn if kind == "session" else again.partial_fit
        learn(rows[80:100], y[80:100])
        save(again, tmp_path / "model.npz")
        assert np.isfinite(load(tmp_path / "model.npz").predict(rows[100:])).all()


def test_activity_is_measured_from_the_states_for_any_steps():
    times, u, _ = timed(700)
    u, dt, clock = 5 * u, steps_of(times, 2.0), Clock(1, times[0], 2.0)
    leak = np.random.default_rng(0).uniform(0.1, 0.9, 20)
    driven = DrivenReservoir(build_reservoir(20, 2, leak_rate=leak, random_state=0))
    res, source = driven.reservoir, TimedReservoir(driven, clock)
    states = run(res, u, dt=dt)
    z = np.vstack([np.zeros(20), states[:-1]]) @ res.W.toarray().T + u @ res.W_in.T + res.bias
    values = np.tanh(z)[30:]
    rows = table((times - clock.origin) / clock.step, u)
    start, activity, many = source.initial_state_of(rows[0]), source.activity(), source.activity()
    for _ in source.iter_features(rows, start, Run(activity=activity, skip=30)):
        pass
    runs = [Run(activity=many, skip=30)] * 4
    for _ in source.iter_many_features([rows] * 4, [start] * 4, runs):
        pass
    first = rows_to_look_at(482, 0, 0)  # of a block of 512, behind the washout
    second = 482 + rows_to_look_at(188, 482, len(first))
    looked = np.append(first, second)
    assert (activity.n_rows, activity.n_looked) == (670, len(looked))
    np.testing.assert_array_equal(activity.high, (values[looked] > 0.999).sum(axis=0))
    np.testing.assert_array_equal(activity.low, (values[looked] < -0.999).sum(axis=0))
    np.testing.assert_allclose(activity.inputs, np.square(u[30:][looked]).sum(axis=0))
    assert activity.high.sum() > 0
    assert many.n_rows == 4 * 670


def test_the_column_that_overflows_is_the_users():
    times, u, y = timed(60)
    with pytest.raises(ValueError, match="The squares of X overflow in column 2"):
        ESNRegressor(10, time_column=1, **MADE).fit(table(times, u * [1, 1e200]), y)


OF_EITHER = [
    ({"leak_rate": 1.0}, "time_column=1 has no effect at leak_rate=1"),
    ({"time_column": 3}, "time_column=3 is outside X, which has 3 columns"),
    ({"time_column": "day"}, "time_column='day' is a name, but X has no column names"),
    ({"time_step": 0.0}, r"time_step=0\.0 must be finite and in \(0, inf\)"),
    ({"time_step": "mean"}, "time_step='mean'"),
]
OF_ESN = [
    ({"feedback": True}, "time_column=1 cannot be combined with feedback=True"),
    ({"washout": "measured"}, 'time_column=1 cannot be combined with washout="measured"'),
]
SCALED, OTHER = SimpleCell(10, leak_rate=0.3), {"cell": TimedLeakyCell(10), "time_column": None}
OF_RNN = [
    ({"cell": "lstm"}, "time_column=1 scales .*='leaky', but the cell is cell='lstm'"),
    ({"cell": SCALED}, "time_column=1 scales the leak of cell='leaky'"),
    (OTHER, "reads the lengths of steps, and only an estimator"),
    ({"n_symbols": 3}, "time_column=1 cannot be combined with n_symbols=3"),
    ({"gradient_control": 0.1}, "gradient_control keeps the singular values of step Jacobians ne"),
]


@pytest.mark.parametrize(("make", "params", "match"), [
    *((esn, *case) for case in OF_EITHER + OF_ESN), *((rnn, *case) for case in OF_EITHER + OF_RNN)
])  # fmt: skip
def test_bad_parameters_raise_and_change_nothing(make, params, match):
    times, u, y = timed(50)
    model = make(**params)
    before = set(vars(model))
    with pytest.raises(ValueError, match=match):
        model.fit(table(times, u), y)
    assert set(vars(model)) == before


def test_features_that_are_no_states_take_no_times():
    class Polynomials(ESNRegressor):
        def _new_model(self, reader, data):
            options = {"n_lags": 1, "skip": 1, "degree": 2, "basis": "monomial"}
            return ReadoutModel(LaggedPolynomials.for_inputs(data.arrays, **options), 1)

    times, u, y = timed(50)
    with pytest.raises(ValueError, match="time_column=1 is not supported by Polynomials"):
        Polynomials(time_column=1, **MADE).fit(table(times, u), y)


def test_bad_rows_raise():
    times, u, y = timed(50)
    X = table(times, u)
    model = ESNRegressor(10, time_column=1, **MADE)
    with pytest.raises(ValueError, match="Times must increase within a sequence"):
        model.fit(X[::-1], y)
    with pytest.raises(ValueError, match="X has no column except the column of times"):
        model.set_params(time_column=0).fit(times[:, None], y)
    model.set_params(time_column=1)
    with pytest.raises(ValueError, match='time_step="auto" is the median time between rows'):
        model.partial_fit(X[:1], y[:1])
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN in column 1, first in row 3"):
        model.fit(X, y)


@EITHER
def test_what_needs_equal_steps_raises(make):
    times, u, y = timed(80)
    model = make().fit(table(times, u), y)
    for call in (lambda: model.forecast(3), lambda: forecast(model, 3)):
        with pytest.raises(ValueError, match="A forecast needs steps of equal length"):
            call()
    assert "time_column" not in NVARRegressor().get_params()

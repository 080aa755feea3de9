"""Online least squares: shrinkage, adoption of new weights, the window of rows."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from reservoir import RNNRegressor, load, save
from reservoir.training.bptt import Network, predict
from reservoir.training.cells import GRUCell, SimpleCell
from reservoir.training.initializers import initialize
from reservoir.training.least_squares import ls_online_step
from reservoir.training.least_squares._iterate import readout_gram, simulate, with_readout
from reservoir.training.least_squares._regression import choose_ridge
from reservoir.training.least_squares._task import make_task
from reservoir.training.online import OnlineLearner
from reservoir.training.online._by_least_squares import PairedErrors

pytestmark = pytest.mark.both_engines


def system(seed, n_rows=900, *, drifts=False, noise=0.0, n_units=8):
    """A random tanh network; from row 400 on its weights turn to others, if it drifts."""
    rng = np.random.default_rng(seed)
    shapes = [(n_units, n_units), (n_units, 3), (n_units,), (2, n_units)]
    begin, end = ([0.4 * rng.standard_normal(shape) for shape in shapes] for _ in range(2))
    X, Y, h = rng.standard_normal((n_rows, 3)), np.empty((n_rows, 2)), np.zeros(n_units)
    for t, x in enumerate(X):
        s = np.pi / 2 * max(0.0, (t - 400) / (n_rows - 400)) if drifts else 0.0
        W, W_in, bias, C = (np.cos(s) * a + np.sin(s) * b for a, b in zip(begin, end, strict=True))
        h = np.tanh(W @ h + W_in @ x + bias)
        Y[t] = C @ h
    return X, Y + noise * Y[:400].std(axis=0) * rng.standard_normal(Y.shape)


def network_of(seed, cell=None, n_outputs=2):
    network = Network(cell or SimpleCell(10), 3, n_outputs)
    gates = 3 if isinstance(cell, GRUCell) else 1
    return network, initialize(network.shapes(), "glorot", n_gates=gates, random_state=seed)


def learner_after_fit(seed=0, **params):
    options = {"n_units": 16, "max_iter": 0, "washout": 30, "random_state": seed, **params}
    return RNNRegressor(**{"online": "least_squares", "online_window": 150, **options})


# -------------------------------------------------------------------------- shrinkage


@pytest.mark.parametrize("cell", [SimpleCell(10), SimpleCell(10, leak_rate=0.4), GRUCell(10)])
def test_no_shrinkage_is_the_step_as_it_was(cell):
    X, Y = system(0, 200)
    _, params = network_of(0, cell)
    plain = ls_online_step(params, X, Y, cell=cell, credit=True)
    zero = ls_online_step(params, X, Y, cell=cell, credit=True, shrink=0.0)
    for name, array in plain.params.items():
        np.testing.assert_array_equal(zero.params[name], array)
    with pytest.raises(ValueError, match=r"shrink=1\.5"):
        ls_online_step(params, X, Y, cell=cell, shrink=1.5)


@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.parametrize("include_input", [False, True])
def test_the_readout_is_ridge_about_the_one_before(share, include_input):
    """Against least squares with a row more for each penalised coefficient."""
    X, Y = system(1, 120)
    network = Network(SimpleCell(10), 3, 2, include_input=include_input)
    params = initialize(network.shapes(), "glorot", random_state=0)
    options = {"cell": SimpleCell(10), "output": "identity", "include_input": include_input}
    task, weights = make_task(params, X, Y, washout=20, **options)
    prior = {name: share * array for name, array in weights.items()}
    found = with_readout(task, weights, 0.05, prior).params
    trace = simulate(task, weights)
    _, _, alpha = choose_ridge(readout_gram(task, trace, prior), 0.05, far=True)
    H = np.column_stack([trace.states[21:, 0], X[20:]] if include_input else [trace.states[21:, 0]])
    n = H.shape[1]
    rows = np.vstack([np.column_stack([H, np.ones(100)]), np.sqrt(alpha) * np.eye(n, n + 1)])
    scale = Y[20:].std(axis=0)
    goal = np.vstack([Y[20:] / scale, np.sqrt(alpha) * (prior["coef"] / scale[:, None]).T])
    expected = np.linalg.lstsq(rows, goal, rcond=None)[0] * scale
    np.testing.assert_allclose(found["coef"], expected[:n].T, atol=1e-10)
    np.testing.assert_allclose(found["intercept"], expected[n], atol=1e-10)


def test_weights_that_are_right_stay_nearer_under_noise():
    """The teacher itself, asked to learn from 60 noisy rows; mean of ten."""
    moved = np.zeros(2)
    for seed in range(10):
        network, params = network_of(seed)
        X = np.random.default_rng(seed).standard_normal((60, 3))
        Y = predict(network, params, X[:, None])[0][:, 0]
        noisy = Y + 0.5 * Y.std() * np.random.default_rng(seed + 99).standard_normal(Y.shape)
        for k, share in enumerate((0.0, 1.0)):
            step = ls_online_step(params, X, noisy, shrink=share)
            rows = predict(network, step.params, X[:, None])[0][:, 0]
            moved[k] += np.mean((rows - Y) ** 2) / Y.var()
    assert moved[1] < 0.7 * moved[0]


# -------------------------------------------------------------------------- acceptance


def test_the_lead_is_students_paired_t():
    d = np.random.default_rng(0).standard_normal(300) + 0.1
    whole, parts = PairedErrors(10**9), PairedErrors(10**9)
    whole.add(d)
    for rows in np.split(d, [1, 2, 50, 290]):
        parts.add(rows)
    expected = ttest_1samp(d, 0.0).statistic
    assert whole.lead() == pytest.approx(expected * np.sqrt(300 / 299), rel=1e-5)
    assert parts.lead() == pytest.approx(whole.lead(), rel=1e-9)


@pytest.mark.full_starts
def test_rows_fade_from_the_comparison(global_random_seed):
    errors, again = PairedErrors(50), PairedErrors(50)
    rng = np.random.default_rng(global_random_seed)
    old, new = rng.standard_normal(500) - 1, rng.standard_normal(500) + 1
    errors.add(old)
    assert errors.lead() < -4
    errors.add(new)
    again.add(new)
    assert errors.lead() == pytest.approx(again.lead(), rel=1e-2)
    errors.clear()
    errors.add(np.ones(5))  # too few to tell
    assert errors.lead() == 0.0
    errors.add(np.ones(50))  # always better by as much
    assert errors.lead() == np.inf


def follow(model, X, Y, begin=400, every=50):
    """Return the mean squared error of predictions made before learning, and of those without."""
    before = np.mean((model.predict(X[begin:]) - Y[begin:]) ** 2)
    parts = []
    for now in range(begin, len(X), every):
        rows = slice(now, now + every)
        parts.append(np.mean((model.predict(X[rows]) - Y[rows]) ** 2))
        model.partial_fit(X[rows], Y[rows])
    return np.mean(parts) / before


def test_what_predicts_worse_is_not_taken():
    X, Y = system(0, noise=0.5)
    model = learner_after_fit().fit(X[:400], Y[:400])
    fitted = {name: array.copy() for name, array in model.params_.items()}
    for now in range(400, 900, 50):
        model.partial_fit(X[now : now + 50], Y[now : now + 50])
        for name, array in fitted.items():
            np.testing.assert_array_equal(model.params_[name], array)
    np.testing.assert_allclose(model.state_, learner_end(model, X), atol=1e-10)
    learner = model._model.online.learner
    assert not np.array_equal(learner.trial["coef"], fitted["coef"])  # it was tried


def learner_end(model, X):
    return predict(model.network_, model.params_, X[:, None])[1][0]


@pytest.mark.full_starts
@pytest.mark.slow
def test_a_jump_is_learned_at_once(global_random_seed):
    ratios = []
    for seed in range(global_random_seed, global_random_seed + 3):
        X, Y = system(seed, noise=0.2)
        X_new, Y_new = system(seed + 100, noise=0.2)
        model = learner_after_fit(seed).fit(X[:400], Y[:400])
        ratios.append(follow(model, np.vstack([X[:400], X_new]), np.vstack([Y[:400], Y_new])))
    assert np.median(ratios) < 0.5


@pytest.mark.full_starts
@pytest.mark.slow
def test_it_gains_where_a_system_drifts_and_loses_nothing_where_not(global_random_seed):
    X, Y = system(global_random_seed, drifts=True, noise=0.1)
    assert follow(learner_after_fit(global_random_seed).fit(X[:400], Y[:400]), X, Y) < 0.9
    X, Y = system(global_random_seed, noise=0.3)
    assert follow(learner_after_fit(global_random_seed).fit(X[:400], Y[:400]), X, Y) < 1.01


@pytest.mark.full_starts
@pytest.mark.slow
def test_five_systems_that_drift_and_five_that_do_not():
    others = []
    for seed, noise in enumerate((0.1, 0.2, 0.3, 0.4, 0.5)):
        X, Y = system(200 + seed, 2400, drifts=True, noise=noise)
        assert follow(learner_after_fit(seed, n_units=32).fit(X[:400], Y[:400]), X, Y) < 0.95
        X, Y = system(200 + seed, 2400, noise=noise)
        others.append(follow(learner_after_fit(seed, n_units=32).fit(X[:400], Y[:400]), X, Y))
    assert np.median(others) < 1 + 1e-9  # the same weights


# -------------------------------------------------------------------------- the window after fit


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("washout", [30, 380])
def test_after_fit_the_window_holds_its_last_rows(washout):
    X, Y = system(0)
    model = learner_after_fit(washout=washout).fit(X[:400], Y[:400])
    learner = OnlineLearner(
        model.network_, model.params_, method="least_squares", truncation=50, window=150
    )
    learner.restart(model.state_)
    start = predict(model.network_, model.params_, X[:250, None])[1][0]
    learner.look_back(X[250:400], Y[250:400], start, max(washout - 250, 0))
    learner.learn(X[400:500], Y[400:500])
    model.partial_fit(X[400:500], Y[400:500])
    trial = model._model.online.learner.trial
    assert len(model._model.online.learner.past.inputs) == 150
    for name, array in learner.learner.trial.items():
        np.testing.assert_array_equal(trial[name], array)
    np.testing.assert_array_equal(model.state_, learner.state)


def test_rows_of_weight_zero_are_not_looked_back_to():
    X, Y = system(0)
    wild, weights = Y.copy(), np.ones(400)
    wild[300:350], weights[300:350] = 1e3, 0.0
    found = [
        learner_after_fit(n_units=8)
        .fit(X[:400], target[:400], weights)
        .partial_fit(X[400:450], Y[400:450])
        for target in (Y, wild)
    ]
    for name, array in found[0]._model.online.learner.trial.items():
        np.testing.assert_array_equal(found[1]._model.online.learner.trial[name], array)


def test_the_window_is_saved_and_of_no_other_learner(tmp_path):
    X, Y = system(0)
    model = learner_after_fit().fit(X[:400], Y[:400])
    save(model, tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    for rows in (slice(400, 450), slice(450, 530)):
        model.partial_fit(X[rows], Y[rows])
        again.partial_fit(X[rows], Y[rows])
        save(again, tmp_path / "again.npz")  # in the middle, with what is on trial
        again = load(tmp_path / "again.npz")
    for name, array in model._model.online.learner.trial.items():
        np.testing.assert_array_equal(again._model.online.learner.trial[name], array)
    np.testing.assert_array_equal(again.predict(X[530:]), model.predict(X[530:]))
    assert learner_after_fit(online="bptt").fit(X[:400], Y[:400])._model.recent is None

"""The descriptions of fitted estimators in notebooks."""

import re
import warnings
from html import unescape

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.utils import estimator_html_repr

import reservoir
from reservoir import (
    ESNClassifier,
    ESNForecaster,
    ESNRegressor,
    ESNSequenceClassifier,
    LiquidStateMachine,
    NVARRegressor,
    ReservoirFeatures,
    ReservoirTransformer,
    RNNRegressor,
    force_train,
)
from reservoir.datasets import gestures, narma

pytestmark = pytest.mark.one_engine
X, y = narma(600, random_state=0)
SEQUENCES = gestures(40, random_state=0)


def shown(model):
    """Return the rows of the table below the diagram."""
    html = model._repr_html_()
    cells = re.findall(r"<th[^>]*>([^<]*)</th><td[^>]*>([^<]*)</td>", html)
    return {part: unescape(words) for part, words in cells if part[0].isupper()}


FITTED = {
    "ESNRegressor": lambda: ESNRegressor(30, random_state=0).fit(X, y),
    "ESNClassifier": lambda: ESNClassifier(30, random_state=0).fit(X, np.ravel(y) > 0.4),
    "NVARRegressor": lambda: NVARRegressor().fit(X, y),
    "ReservoirTransformer": lambda: ReservoirTransformer(30, random_state=0).fit(X),
    "RNNRegressor": lambda: RNNRegressor(8, init="esn", max_iter=2, random_state=0).fit(X, y),
    "ESNSequenceClassifier": lambda: ESNSequenceClassifier(30, random_state=0).fit(*SEQUENCES),
    "LiquidStateMachine": lambda: LiquidStateMachine(30, random_state=0).fit(SEQUENCES[0]),
    "ReservoirFeatures": lambda: ReservoirFeatures(30, random_state=0).fit(SEQUENCES[0]),
}


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("name", FITTED)
def test_a_fitted_estimator_is_described_everywhere(name):
    model = FITTED[name]()
    rows = shown(model)
    assert {"Reservoir", "Features", "Network"} & rows.keys()
    assert model._repr_html_().startswith("<style")  # scikit-learn's diagram comes first
    bundle = model._repr_mimebundle_()
    assert "text/plain" in bundle
    for words in rows.values():
        assert words in unescape(bundle["text/html"])


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("name", FITTED)
def test_before_fit_it_is_scikit_learns_diagram_alone(name):
    new = clone(FITTED[name]())
    ids = re.compile(r"sk-container-id-\d+|sk-estimator-id-\d+")
    assert ids.sub("", new._repr_html_()) == ids.sub("", estimator_html_repr(new))
    with sklearn.config_context(display="text"):
        assert "text/html" not in new._repr_mimebundle_()
        assert not hasattr(new, "_repr_html_")


def test_every_public_estimator_has_such_a_table():
    for name in reservoir.__all__:
        if hasattr(getattr(reservoir, name), "fit"):
            assert hasattr(getattr(reservoir, name), "_description"), name


def test_words_are_those_of_the_network():
    model = ESNRegressor(
        40, topology="ring", spectral_radius=0.99, leak_rate=0.5, bias="stable", random_state=0
    ).fit(X, y)
    rows = shown(model)
    reservoir = "40 tanh units, ring, 40 connections, spectral radius 0.99, leak rate 0.5"
    assert rows["Reservoir"] == reservoir
    assert f"factor of {model.certificate_.rate:.4g} per step" in rows["Certificate"]
    found = f"ridge, penalty {model.alpha_:.3g}, the best of {len(model.alphas_)} from"
    assert rows["Readout"].startswith(found)
    assert rows["Readout"].endswith("by halves of the rows, each held out once")
    fixed = clone(model).set_params(alpha=1e-6).fit(X, y)
    assert shown(fixed)["Readout"] == "ridge, penalty 1e-06, given"
    left_out = int(model.washout_[0])
    assert rows["Training error"].endswith(
        f"over {600 - left_out} rows, without {left_out} rows of washout"
    )
    assert "none; bias" in shown(ESNRegressor(10, random_state=0).fit(X, y))["Certificate"]


def test_given_weights_are_described_as_given():
    rng = np.random.default_rng(0)
    leaks = np.linspace(0.1, 1.0, 12)
    W = rng.normal(size=(12, 12)) / 8
    model = ESNRegressor(12, topology=W, spectral_radius=None, leak_rate=leaks, random_state=0)
    words = shown(model.fit(X, y))["Reservoir"]
    assert words == "12 tanh units, 144 connections, W as given, leak rates 0.1 to 1"


def test_a_chosen_penalty_is_described_with_its_path():
    alphas = np.logspace(-8, 2, 11)
    model = ESNRegressor(30, alpha=alphas, alpha_selection="gcv", random_state=0).fit(X, y)
    rows = shown(model)
    assert f"penalty {model.alpha_:.3g}, the best of 11 from 1e-08 to 100 by gen" in rows["Readout"]
    assert "is at an end" not in rows["Readout"]
    expected = np.sqrt(model.alpha_scores_.min())
    assert rows["Expected error"].startswith(f"{expected:.3g} on other rows")
    high = ESNRegressor(30, alpha=[10.0, 100.0], random_state=0).fit(X, y)
    assert "is at an end" in shown(high)["Readout"]


def test_a_custom_readout_is_named():
    model = ESNRegressor(30, readout=Ridge(), random_state=0).fit(X, y)
    assert shown(model)["Readout"] == "Ridge, a scikit-learn estimator"
    assert not hasattr(model, "training_error_")


def test_names_are_escaped():
    class Odd(Ridge):
        pass

    Odd.__name__ = "<b>Odd</b>"
    model = ESNRegressor(10, readout=Odd(), random_state=0).fit(X, y)
    assert "<b>Odd" not in model._repr_html_().rpartition("<table>")[2]


def test_many_outputs_are_described_by_their_range():
    Y = np.column_stack([y, 2 * y, 3 * y, 4 * y, 5 * y])
    model = ESNRegressor(30, random_state=0).fit(X, Y)
    assert "(5 outputs)" in shown(model)["Training error"]


def test_a_forecaster_shows_its_summary_in_notebooks_too():
    model = ESNForecaster(random_state=0, season=12).fit(np.sin(np.arange(60) * np.pi / 6))
    assert "<pre>" in model._repr_mimebundle_()["text/html"]


# ---------------------------------------------------------------------- training_error_


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("solver", ["cholesky", "qr"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_training_error_is_that_of_the_predictions(solver, fit_intercept, dtype):
    weights = np.random.default_rng(0).integers(0, 3, 600)
    Y = np.column_stack([y, 100 + y**2])
    for w in (None, weights):
        model = ESNRegressor(
            30, solver=solver, fit_intercept=fit_intercept, washout=50, dtype=dtype, random_state=0
        ).fit(X, Y, sample_weight=w)
        left = (model.predict(X, initial_state="zeros") - Y)[50:]
        mean = np.average(left**2, axis=0, weights=None if w is None else w[50:])
        rtol = 1e-9 if dtype == "float64" else 1e-4
        np.testing.assert_allclose(model.training_error_, np.sqrt(mean), rtol=rtol)


@pytest.mark.parametrize("selection", ["gcv", "blocked", "holdout"])
def test_the_error_is_that_of_all_rows_however_the_penalty_is_chosen(selection):
    model = ESNRegressor(
        30, alpha=np.logspace(-8, 0, 9), alpha_selection=selection, washout=50, random_state=0
    ).fit(X, y)
    left = (model.predict(X, initial_state="zeros") - y)[50:]
    np.testing.assert_allclose(model.training_error_, np.sqrt(np.mean(left**2)), rtol=1e-6)


def test_chunks_have_the_training_error_of_one_fit():
    whole = ESNRegressor(30, washout=20, random_state=0).fit(X, y)
    chunks = ESNRegressor(30, washout=20, random_state=0)
    for k in range(0, 600, 150):
        chunks.partial_fit(X[k : k + 150], y[k : k + 150])
    np.testing.assert_allclose(chunks.training_error_, whole.training_error_, rtol=1e-8)


def test_polynomials_that_learn_increments_have_the_error_of_their_outputs():
    flow = np.column_stack([np.sin(np.arange(300) * 0.1), np.cos(np.arange(300) * 0.13)])
    model = NVARRegressor(2, degree=2, alpha=1e-3, increments=True).fit(flow[:-1], flow[1:])
    left = model.predict(flow[:-1], initial_state="zeros")[1:] - flow[2:]
    np.testing.assert_allclose(model.training_error_, np.sqrt(np.mean(left**2, axis=0)), rtol=1e-6)


def test_loop_training_removes_the_error_of_an_earlier_fit():
    wave = np.sin(np.arange(500) * 0.2)
    esn = ESNRegressor(20, feedback=True, random_state=0).fit(np.zeros((500, 1)), wave)
    assert hasattr(esn, "training_error_")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # whether it follows is not asked here
        trained = force_train(esn, wave, exog=np.zeros((500, 1)))
    trained = trained[0] if isinstance(trained, tuple) else trained
    assert not hasattr(trained, "training_error_")
    assert "Training error" not in shown(trained)

"""Bad input: each kind with its message (value, bound, remedy). Sequences: test_sequences.py."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from reservoir import ESNClassifier, ESNRegressor, ReservoirTransformer

X = np.random.default_rng(0).uniform(-1, 1, (80, 3))
y = X[:, 0]

PARAMETERS = [
    ({"n_units": 0}, ValueError, "n_units=0 must be at least 1"),
    ({"n_units": -5}, ValueError, "n_units=-5 must be at least 1"),
    ({"n_units": 10.5}, TypeError, "n_units must be an integer; got 10.5"),
    ({"n_units": True}, TypeError, "n_units must be an integer"),
    ({"leak_rate": 0.0}, ValueError, "leak_rate=0 must be in (0, 1]"),
    ({"leak_rate": 1.2}, ValueError, "leak_rate=1.2 must be in (0, 1]"),
    ({"leak_rate": np.nan}, ValueError, "must be in (0, 1]"),
    ({"leak_rate": np.full(7, 0.5)}, ValueError, "shape (100,); got shape (7,)"),
    ({"spectral_radius": -0.1}, ValueError, "spectral_radius=-0.1 must be"),
    ({"spectral_radius": np.inf}, ValueError, "spectral_radius=inf must be finite"),
    ({"spectral_radius": "0.9"}, TypeError, "spectral_radius must be a number"),
    ({"topology": "delay_line"}, ValueError, "spectral_radius=None"),
    ({"topology": "ringg"}, ValueError, "topology='ringg' is not known. Did you mean 'ring'"),
    ({"topology": np.eye(7)}, ValueError, "W of shape (7, 7); n_units=100"),
    ({"activation": "tahn"}, ValueError, "Did you mean 'tanh'?"),
    ({"activation": np.sin}, TypeError, "Activation("),
    ({"weights": "gaussian"}, ValueError, "weights='gaussian' is not known"),
    ({"input_weights": "unifrom"}, ValueError, "Did you mean 'uniform'?"),
    ({"input_weights": np.zeros((100, 2))}, ValueError, "(100, 3)"),
    ({"bias": "stabel"}, ValueError, "Did you mean 'stable'?"),
    ({"bias": "stable", "activation": "relu"}, ValueError, "activation='relu' is unbounded"),
    ({"bias": np.zeros(3)}, ValueError, "(100,)"),
    ({"in_degree": 0}, ValueError, "in_degree"),
    ({"in_degree": 1.5}, ValueError, "in_degree"),
    ({"in_degree": True}, TypeError, "in_degree"),
    ({"input_scaling": [1.0, 2.0]}, ValueError, "(3,)"),
    ({"input_scaling": -1.0}, ValueError, "-1"),
    ({"bias_scaling": np.nan}, ValueError, "nan"),
    ({"alpha": -1.0}, ValueError, "alpha=-1.0 must be finite and at least 0"),
    ({"alpha": np.nan}, ValueError, "alpha=nan"),
    ({"alpha": "auto"}, ValueError, "alpha='auto'"),
    ({"alpha": []}, ValueError, "alphas must have shape (n_alphas,)"),
    ({"alpha": [1.0, -1.0]}, ValueError, "at least 0"),
    ({"alpha_selection": "loo"}, ValueError, "alpha_selection='loo' is not known"),
    ({"washout": -1}, ValueError, "washout=-1 must be at least 0"),
    ({"washout": 2.5}, TypeError, "washout must be an integer"),
    ({"washout": "mesured"}, ValueError, 'Give an integer, "auto" or "measured"'),
    ({"washout": "measured", "spectral_radius": 2.0}, ValueError, 'washout="measured"'),
    ({"washout": 80}, ValueError, "washout=80 leaves nothing to fit: X has n_samples=80"),
    ({"initial_state": "first"}, ValueError, "initial_state='first' is not known"),
    ({"initial_state": np.zeros(3)}, ValueError, "got shape (3,)"),
    ({"noise": -0.1}, ValueError, "noise=-0.1"),
    ({"feedback": "yes"}, TypeError, "feedback must be True or False"),
    ({"include_input": 1}, TypeError, "include_input must be True or False"),
    ({"fit_intercept": None}, TypeError, "fit_intercept must be True or False"),
    ({"dtype": "float16"}, ValueError, "dtype='float16' must be"),
    ({"dtype": "int"}, ValueError, "dtype='int' must be"),
    ({"readout": "ridge"}, TypeError, "readout must be a scikit-learn estimator"),
    ({"missing_targets": "drop"}, ValueError, "missing_targets='drop' is not known"),
    ({"random_state": -1}, ValueError, "random_state=-1"),
    ({"random_state": "seed"}, TypeError, "random_state must be"),
    ({"sequence_column": 9}, ValueError, "sequence_column=9 is outside X"),
]


@pytest.mark.parametrize(
    "params, kind, message",
    PARAMETERS,
    ids=[f"{next(iter(p))}-{k}" for k, (p, *_) in enumerate(PARAMETERS)],
)
def test_parameters(params, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        ESNRegressor(**params).fit(X, y)
    if "missing_targets" not in params:
        with pytest.raises((ValueError, TypeError)):
            ESNClassifier(**params).fit(X, y > 0)


@pytest.mark.parametrize("cls", [ESNRegressor, ESNClassifier, ReservoirTransformer])
def test_misspelt_parameters(cls):
    with pytest.raises(TypeError, match="spectral_raduis"):
        cls(spectral_raduis=0.9)
    with pytest.raises(ValueError, match="Invalid parameter 'leek_rate'"):
        cls().set_params(leek_rate=0.5)


DATA = [
    ("one-dimensional", X[:, 0], y, ValueError, "Expected 2D array, got 1D array"),
    ("lengths", X, y[:-1], ValueError, "X has n_samples=80, y has shape (79,)"),
    ("three-dimensional y", X, y[:, None, None], ValueError, "Found array with dim 3"),
    ("strings", np.array([["a", "b", "c"]] * 80, dtype=object), y, ValueError, "'a'"),
    ("sparse", sp.csr_array(X), y, TypeError, "Sparse data"),
    ("empty", X[:0], y[:0], ValueError, "0 sample(s)"),
    ("no columns", X[:, :0], y, ValueError, "0 feature(s)"),
    ("no y", X, None, ValueError, "requires y to be passed, but the target y is None"),
    ("complex", X + 1j, y, ValueError, "Complex data not supported"),
    ("no outputs", X, np.zeros((80, 0)), ValueError, "0 feature(s)"),
]


@pytest.mark.parametrize("X_, y_, kind, message", [d[1:] for d in DATA], ids=[d[0] for d in DATA])
def test_data(X_, y_, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        ESNRegressor(20).fit(X_, y_)


@pytest.mark.parametrize("value, word", [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf")])
def test_values_that_are_not_finite_are_named_by_column(value, word):
    bad = X.copy()
    bad[17, 2] = value
    message = rf"X contains .*{word}.* in column 2, first in row 17"
    for act in (
        lambda: ESNRegressor(20).fit(bad, y),
        lambda: ESNRegressor(20).fit(X, y).predict(bad),
        lambda: ESNRegressor(20).fit(X, y).states(bad),
        lambda: ESNRegressor(20).partial_fit(bad, y),
        lambda: ESNClassifier(20).fit(bad, y > 0),
        lambda: ReservoirTransformer(20).fit_transform(bad),
    ):
        with pytest.raises(ValueError, match=message):
            act()
    with pytest.raises(ValueError, match=rf"y contains .*{word}.* in column 0, first in row 17"):
        ESNRegressor(20).fit(X, np.where(np.arange(80) == 17, value, y))
    with pytest.raises(ValueError, match="sequence 1 of X contains"):
        ESNRegressor(20).fit([X, bad], [y, y])
    weights = np.where(np.arange(80) == 17, value, 1.0)
    with pytest.raises(ValueError, match="sample_weight"):
        ESNRegressor(20).fit(X, y, sample_weight=weights)


def test_named_by_name():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X.copy(), columns=["wind", "sun", "rain"])
    frame.loc[3, "sun"] = np.nan
    with pytest.raises(ValueError, match=r"NaN in column 1 \('sun'\), first in row 3"):
        ESNRegressor(20).fit(frame, y)


def test_too_large_for_float32():
    with pytest.raises(ValueError, match=r"infinity \(inf\) in column 0.* as float32"):
        ESNRegressor(20, dtype="float32").fit(X * 1e300, y)


def test_negative_weights():
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        ESNRegressor(20).fit(X, y, sample_weight=-np.ones(80))
    with pytest.raises(ValueError, match=r"zero|weight 0"):
        ESNRegressor(20).fit(X, y, sample_weight=np.zeros(80))
    with pytest.raises(ValueError, match="inconsistent"):
        ESNRegressor(20).fit(X, y, sample_weight=np.ones(79))


def test_after_fit():
    esn = ESNRegressor(20).fit(X, y)
    with pytest.raises(ValueError, match="X has 2 features, but ESNRegressor is expecting 3"):
        esn.predict(X[:, :2])
    with pytest.raises(ValueError, match=r"shape \(20,\).*got shape \(2, 20\)"):
        esn.predict(X, initial_state=np.zeros((2, 20)))
    with pytest.raises(ValueError, match="initial_state contains NaN"):
        esn.predict(X, initial_state=np.full(20, np.nan))
    with pytest.raises(ValueError, match="y has 2 outputs; earlier calls had 1"):
        esn.partial_fit(X, np.column_stack([y, y]))
    with pytest.raises(NotFittedError):
        ESNRegressor().predict(X)
    with pytest.raises(NotFittedError, match=r"only washout rows so far: 80 steps, washout=100"):
        ESNRegressor(washout=100).partial_fit(X, y).predict(X)


def test_selections_that_partial_fit_cannot_make():
    for selection in ("blocked", "holdout"):
        with pytest.raises(ValueError, match=f"alpha_selection='{selection}'"):
            ESNRegressor(alpha=[1.0, 2.0], alpha_selection=selection).partial_fit(X, y)


def test_a_series_too_short_for_the_blocks():
    with pytest.raises(ValueError, match=r"block"):
        ESNRegressor(5, alpha=[1.0, 2.0], alpha_selection="blocked").fit(X[:1], y[:1])

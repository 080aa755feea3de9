"""Bad input: the message of each kind (value, bound, remedy). Sequences: test_sequences.py."""

import inspect
import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from reservoir import ESNClassifier, ESNRegressor, ReservoirTransformer, RNNClassifier, RNNRegressor
from reservoir.building import build_reservoir
from reservoir.dynamics import Reservoir

pytestmark = pytest.mark.one_engine

X = np.random.default_rng(0).uniform(-1, 1, (80, 3))
y = X[:, 0]

PARAMETERS = [
    ({"n_units": 0}, ValueError, "n_units=0 must be at least 1"),
    ({"n_units": -5}, ValueError, "n_units=-5 must be at least 1"),
    ({"n_units": 10.5}, TypeError, "n_units must be an integer; got 10.5"),
    ({"leak_rate": 0.0}, ValueError, "leak_rate=0 must be in (0, 1]"),
    ({"leak_rate": 1.2}, ValueError, "leak_rate=1.2 must be in (0, 1]"),
    ({"leak_rate": np.nan}, ValueError, "must be in (0, 1]"),
    ({"leak_rate": np.full(7, 0.5)}, ValueError, "shape (100,); got shape (7,)"),
    ({"spectral_radius": np.inf}, ValueError, "spectral_radius=inf must be finite"),
    ({"topology": "delay_line"}, ValueError, "spectral_radius=None"),
    ({"topology": "ringg"}, ValueError, "topology='ringg' is not known. Did you mean 'ring'"),
    ({"topology": np.eye(7)}, ValueError, "W of shape (7, 7), but n_units=100"),
    ({"activation": "tahn"}, ValueError, "Did you mean 'tanh'?"),
    ({"activation": np.sin}, TypeError, "reservoir.activations.Activation "),
    ({"weights": "gaussian"}, ValueError, "weights='gaussian' is not known"),
    ({"input_weights": "unifrom"}, ValueError, "Did you mean 'uniform'?"),
    ({"input_weights": np.zeros((100, 2))}, ValueError, "(100, 3)"),
    ({"bias": "stabel"}, ValueError, "Did you mean 'stable'?"),
    ({"bias": "stable", "activation": "relu"}, ValueError, "activation='relu' is unbounded"),
    ({"bias": np.zeros(3)}, ValueError, "(100,)"),
    ({"in_degree": 0}, ValueError, "in_degree"),
    ({"input_scaling": [1.0, 2.0]}, ValueError, "(3,)"),
    ({"alpha": -1.0}, ValueError, "alpha=-1.0 must be finite and at least 0"),
    ({"alpha": "best"}, ValueError, "alpha='best' is not known"),
    ({"alpha": []}, ValueError, "alpha must be a number or have shape (n_alphas,)"),
    ({"alpha": [1.0, -1.0]}, ValueError, "at least 0"),
    ({"alpha_selection": "loo"}, ValueError, "alpha_selection='loo' is not known"),
    ({"solver": "svd"}, ValueError, "solver='svd' is not known"),
    ({"solver": None}, ValueError, "solver=None is not known"),
    ({"washout": -1}, ValueError, "washout=-1 must be at least 0"),
    ({"washout": 2.5}, TypeError, "washout must be an integer"),
    ({"washout": "mesured"}, ValueError, 'Use an integer, "auto" or "measured"'),
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
]


@pytest.mark.parametrize(
    "params, kind, message",
    PARAMETERS,
    ids=[f"{next(iter(p))}-{k}" for k, (p, *_) in enumerate(PARAMETERS)],
)
def test_parameters(params, kind, message):
    # one draw in some hundreds is certified by its weights alone, and takes relu with "stable"
    params = {"n_units": 100, "random_state": 0, **params}
    with pytest.raises(kind, match=re.escape(message)):
        ESNRegressor(**params).fit(X, y)
    if "missing_targets" not in params:
        with pytest.raises((ValueError, TypeError)):
            ESNClassifier(**params).fit(X, y > 0)


ALL = (ESNRegressor, ESNClassifier, ReservoirTransformer, RNNRegressor, RNNClassifier)
LEARN = tuple(cls for cls in ALL if cls is not ReservoirTransformer)
BAD = {
    "text": "0.3",
    "word": "x",
    "negative": -1.5,
    "NaN": np.nan,
    "infinity": np.inf,
    "True": True,
    "object": object(),
    "complex": 1j,
    "texts": ["0.3", "0.4"],
    "text per unit": np.full(20, "0.3"),
    "text per feature": ["0.3", "0.3", "0.3"],
    "text once": ["0.3"],
    "objects": np.array([0.1, None], dtype=object),
    "object per unit": np.full(20, 0.3, dtype=object),
    "shape": np.ones((2, 2, 2)),
    "ragged": [[0.1], [0.2, 0.3]],
    "NaN per feature": [np.nan, 0.1, 0.1],
    "negative per feature": [-1.0, 0.1, 0.1],
}
SWITCHES = {
    "alpha_per_target", "fit_intercept", "include_input", "feedback", "refit_readout",
    "early_stopping", "warm_start", "verbose", "bidirectional",
}  # fmt: skip


def target_of(cls):
    return y if cls in (ESNRegressor, RNNRegressor) else (y > 0).astype(int)


def small(cls, **params):
    extra = {"init": "esn", "max_iter": 1} if cls in (RNNRegressor, RNNClassifier) else {}
    return cls(**{"n_units": 20, "random_state": 0, **extra, **params})


@pytest.mark.fast_cases(90)
@pytest.mark.parametrize(
    "cls, name", [(cls, name) for cls in ALL for name in inspect.signature(cls).parameters]
)
def test_errors_name_the_parameter_of_the_user(cls, name):
    for label, value in BAD.items():
        if label == "True" and name in SWITCHES:
            continue
        with_feedback = {"feedback": True} if name == "feedback_scaling" else {}
        params = {**with_feedback, name: value}
        model = small(cls, **params)
        fit = model.fit_transform if cls is ReservoirTransformer else model.fit
        with pytest.raises((ValueError, TypeError)) as caught:
            fit(X, target_of(cls))
        assert re.search(rf"\b{name}\b", str(caught.value)), (label, str(caught.value))
        number = isinstance(inspect.signature(cls).parameters[name].default, float)
        if number and label == "text" and (name != "alpha" or "RNN" in cls.__name__):
            assert caught.type is TypeError


@pytest.mark.parametrize("value", ["0.3", np.full(5, "0.3"), np.full(5, 0.3, object), True, 1j])
def test_leak_rates_are_numbers(value):
    with pytest.raises(TypeError, match=r"leak_rate must (be a number|contain numbers)"):
        Reservoir(np.eye(5), np.ones((5, 1)), np.zeros(5), leak_rate=value)
    for name in ("W", "W_in", "bias", "W_fb"):
        weights = {"W": np.eye(5), "W_in": np.ones((5, 1)), "bias": np.zeros(5), "W_fb": None}
        for kind in (str, object):
            bad = (np.ones((5, 1)) if weights[name] is None else weights[name]).astype(kind)
            with pytest.raises(TypeError, match=f"{name} must contain numbers"):
                Reservoir(**{**weights, name: bad})
    for name in ("input_scaling", "leak_rate"):
        with pytest.raises(TypeError, match=f"{name} must (be a number|contain numbers)"):
            build_reservoir(5, 5, **{name: value})


@pytest.mark.parametrize("value", [0.3, np.nan, object(), ["0.3"], "float16", int])
def test_dtypes_of_build_reservoir(value):
    with pytest.raises(ValueError, match=r"dtype=.* is not known"):
        build_reservoir(5, 1, dtype=value)
    for good in (float, np.float64, "float64", np.dtype("float64")):
        assert build_reservoir(5, 1, dtype=good).dtype == np.float64


def test_numbers_beyond_floats():
    for name in ("leak_rate", "input_scaling", "bias_scaling", "spectral_radius", "noise", "alpha"):
        with pytest.raises(ValueError, match=name):
            ESNRegressor(20, **{name: 10**400}).fit(X, y)


def test_a_radius_that_cannot_be():
    for topology, said in (("delay_line", "topology='delay_line'"), (np.zeros((20, 20)), "W")):
        for radius in (0.9, 1.7):
            message = rf"{said}.* spectral radius 0.* spectral_radius={radius}: .*=None"
            with pytest.raises(ValueError, match=message) as caught:
                ESNRegressor(20, topology=topology, spectral_radius=radius).fit(X, y)
            assert "1.0" not in str(caught.value)
    with pytest.raises(ValueError, match="topology gives a W with 1 NaN or infinite"):
        ESNRegressor(20, topology=np.diag(np.append(np.ones(19), np.nan))).fit(X, y)


def test_sums_that_overflow_are_those_of_the_users_columns():
    wide = X * [1.0, 1e200, 1.0]
    pair = np.column_stack([y, 1e200 * y])
    many = 120  # sequences: more than one batch
    for given, target, params, message in (
        (wide, y, {}, r"squares of X overflow in column 1\. .*include_input=False"),
        (X, pair, {}, r"squares of y overflow in column 1\. .*TransformedTargetRegressor"),
        (
            wide,
            y,
            {"activation": "identity", "include_input": False},
            r"squares of the states overflow.*bounded activation",
        ),
    ):
        for data in ((given, target), ([given] * many, [target] * many)):
            with pytest.raises(ValueError, match=message) as caught:
                ESNRegressor(5, random_state=0, **params).fit(*data)
            assert not re.search(r"\b[HY]\b", str(caught.value))


@pytest.mark.parametrize("cls", LEARN)
def test_one_row_is_not_enough(cls):
    target = target_of(cls)
    for data in ((X[:1], target[:1]), ([X[:1]], [target[:1]]), (X[None, :1], target[None, :1])):
        with pytest.raises(ValueError, match=rf"1 sample .*{cls.__name__}.*at least 2.*partial_fi"):
            small(cls, washout=0).fit(*data)
    if cls in (RNNRegressor, RNNClassifier):
        with pytest.raises(ValueError, match="1 sample"):
            small(cls, target="last").fit([X[:1]], target[:1])
    else:
        two = np.array([0, 1]) if cls is ESNClassifier else y[:2]
        assert small(cls, washout=0).fit([X[:1], X[1:2]], [two[:1], two[1:]]).n_features_in_ == 3
    more = {"classes": [0, 1]} if cls in (ESNClassifier, RNNClassifier) else {}
    start = {} if cls in (ESNRegressor, ESNClassifier) else {"init": "glorot"}
    learner = small(cls, washout=0, **start)
    for row in range(3):
        learner.partial_fit(X[row : row + 1], target[row : row + 1], **more)
    assert len(learner.predict(X)) == 80


def test_one_row_is_enough_for_states():
    assert ReservoirTransformer(20).fit_transform(X[:1]).shape == (1, 20)


def test_remedies_for_missing_values():
    gap = np.where(np.arange(80) == 17, np.nan, y)
    hole = X.copy()
    hole[17, 2] = np.nan
    with pytest.raises(ValueError, match=r"interpolat.*SimpleImputer.*shift time"):
        small(ESNRegressor).fit(hole, y)
    skip = 'missing_targets="skip"'
    with pytest.raises(ValueError, match=f"Use {skip}"):
        small(ESNRegressor).fit(X, gap)
    assert np.isfinite(small(ESNRegressor, missing_targets="skip").fit(X, gap).coef_).all()
    with pytest.raises(ValueError, match=f"Fill y: with feedback=True.*{skip} is not possible"):
        small(ESNRegressor, feedback=True).fit(X, gap)
    labels = np.where(np.isnan(gap), np.nan, gap > 0)
    with pytest.raises(
        ValueError, match=r"NaN.*ESNClassifier has no parameter missing_targets"
    ) as err:
        small(ESNClassifier).fit(X, labels)
    assert "sample_weight=0" in str(err.value)
    assert skip not in str(err.value)
    weights = np.where(np.isnan(gap), 0.0, 1.0)  # what the message says works
    for cls in (ESNClassifier, RNNClassifier):
        other = [
            small(cls).fit(X, np.where(np.isnan(gap), value, labels), weights).predict(X)
            for value in (0.0, 1.0)
        ]
        np.testing.assert_array_equal(*other)
    with pytest.raises(ValueError, match="finite value") as caught:
        small(ESNRegressor).fit(X, np.where(np.isnan(gap), np.inf, y))
    assert skip not in str(caught.value)
    for cls, last in ((RNNRegressor, [0.5, np.nan]), (RNNClassifier, [0.0, np.nan])):
        with pytest.raises(ValueError, match=r"NaN.* Omit that sequence from X and y"):
            small(cls, target="last").fit([X, X], last)


def test_too_large_for_float32():
    with pytest.raises(ValueError, match=r"infinity \(inf\) in column 0.* as float32"):
        ESNRegressor(20, dtype="float32").fit(X * 1e300, y)


@pytest.mark.parametrize("cls", [ESNRegressor, RNNRegressor])
def test_weights_that_cannot_be(cls):
    for value, told in (
        (-1, "[Nn]egative"),
        (0, "zero|weight 0"),
        (np.nan, "sample_weight"),
        (np.inf, "sample_weight"),
    ):
        with pytest.raises(ValueError, match=told):
            small(cls).fit(X, y, sample_weight=np.full(80, float(value)))
    with pytest.raises(ValueError, match="inconsistent"):
        small(cls).fit(X, y, sample_weight=np.ones(79))


def test_after_fit():
    esn = ESNRegressor(20).fit(X, y)
    with pytest.raises(ValueError, match="X has 2 features, but ESNRegressor is expecting 3"):
        esn.predict(X[:, :2])
    with pytest.raises(ValueError, match=r"shape \(20,\).*got shape \(2, 20\)"):
        esn.predict(X, initial_state=np.zeros((2, 20)))
    with pytest.raises(ValueError, match="initial_state contains NaN"):
        esn.predict(X, initial_state=np.full(20, np.nan))
    with pytest.raises(ValueError, match="y has 2 outputs, but in earlier calls it had 1"):
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
        ESNRegressor(5, alpha=[1.0, 2.0], alpha_selection="blocked", washout=1).fit(X[:2], y[:2])


def test_numbers_of_workers():
    from reservoir.stability import sweep

    unit = Reservoir([[0.5]], [[1.0]], [0.0])
    for bad, kind in (("x", TypeError), (2.0, TypeError), (True, TypeError), (0, ValueError)):
        for act in (
            lambda b=bad: ESNRegressor(20, n_jobs=b).fit(X, y),
            lambda b=bad: ESNClassifier(20, n_jobs=b).fit(X, y > 0),
            lambda b=bad: sweep(unit, [[0.0]], {"bias": [1.0]}, n_jobs=b),
        ):
            with pytest.raises(kind, match=f"n_jobs(=| must be).*{bad}"):
                act()
    for good in (None, 1, np.int64(1), -1):
        ESNRegressor(20, n_jobs=good).fit(X, y)


def test_penalties_in_a_series():
    pandas = pytest.importorskip("pandas")
    X, y = np.random.default_rng(0).normal(size=(2, 200))
    X = X[:, None]
    plain = ESNRegressor(20, alpha=[1e-3, 1.0], random_state=0).fit(X, y)
    series = ESNRegressor(20, alpha=pandas.Series([1e-3, 1.0]), random_state=0).fit(X, y)
    assert series.alpha_ == plain.alpha_

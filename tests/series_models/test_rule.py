"""Networks or models of series: the comparison of their forecasts, and what it decides."""

import warnings

import numpy as np
import pytest

from reservoir import ESNForecaster
from reservoir.datasets import henon, lorenz, mackey_glass
from reservoir.series_models.rule import confirms, horizons_for

pytestmark = pytest.mark.one_engine

N_ORIGINS, N_STEPS = 40, 51
HORIZONS = [8, 32, N_STEPS]


def kind_of(y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # networks may do no better than the mean
        return ESNForecaster(random_state=0).fit(y).kind_


def forecasts(rng, scale=1.0):
    """Forecasts whose errors depend on each other within four successive origins."""
    errors = rng.normal(size=(N_ORIGINS // 4, N_STEPS, 1)).repeat(4, axis=0)
    return scale * errors * np.sqrt(np.arange(1, N_STEPS + 1))[:, None]


# --- comparison ----------------------------------------------------------------------------------


def test_horizons_are_at_most_a_third_of_the_held_out_rows():
    assert horizons_for(None, 154) == [8, 32, 51]
    assert horizons_for(None, 1000) == [8, 32, 128]
    assert horizons_for(None, 18) == [6]
    assert horizons_for(12, 154) == [12]
    assert horizons_for(100, 154) == [51]
    assert horizons_for(5, 1) == [1]


def test_equally_good_forecasts_are_rarely_clearly_better():
    actual = np.zeros((N_ORIGINS, N_STEPS, 1))
    found = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        found.append(confirms(forecasts(rng), forecasts(rng), actual, HORIZONS, "open"))
    assert np.mean(found) < 0.12  # three horizons, 40 origins in ten groups
    assert np.mean(found) > 0  # the test has power at all


@pytest.mark.parametrize(("scale", "expected"), [(0.5, True), (0.9, False), (1.5, False)])
def test_a_difference_must_be_large(scale, expected):
    rng = np.random.default_rng(0)
    others, actual = forecasts(rng), np.zeros((N_ORIGINS, N_STEPS, 1))
    assert confirms(scale * others, others, actual, HORIZONS, "open") == expected


def test_a_small_difference_suffices_where_a_law_is_likely():
    rng = np.random.default_rng(0)
    others, actual = forecasts(rng), np.zeros((N_ORIGINS, N_STEPS, 1))
    assert confirms(0.95 * others, others, actual, HORIZONS, "likely")
    assert not confirms(1.05 * others, others, actual, HORIZONS, "likely")
    assert not confirms(forecasts(rng, scale=2.0), others, actual, HORIZONS, "likely")


def test_a_difference_at_a_few_origins_does_not_suffice():
    others, actual = np.ones((N_ORIGINS, N_STEPS, 1)), np.zeros((N_ORIGINS, N_STEPS, 1))
    predicted = others.copy()
    predicted[:5] = 1e-4  # one block
    assert not confirms(predicted, others, actual, HORIZONS, "open")
    predicted[:] = 1e-4
    predicted[:5] = 100  # a single bad stretch does not hide what the others say
    assert confirms(predicted, others, actual, HORIZONS, "open")


def test_one_horizon_suffices():
    others, actual = np.ones((N_ORIGINS, N_STEPS, 1)), np.zeros((N_ORIGINS, N_STEPS, 1))
    at_first, later = others.copy(), others.copy()
    at_first[:, :8], at_first[:, 8:] = 0.1, 1.2
    later[:, :8], later[:, 8:] = 1.1, 0.1
    assert confirms(at_first, others, actual, HORIZONS, "open")
    assert confirms(later, others, actual, HORIZONS, "open")
    assert not confirms(later, others, actual, [8], "open")


def test_units_and_rows_after_the_end_do_not_matter():
    rng = np.random.default_rng(1)
    actual = rng.normal(size=(N_ORIGINS, N_STEPS, 2))
    actual[-1, 8:] = np.nan
    predicted, others = actual + 0.1, actual + 1.0
    predicted[-1, 8:], others[-1, 8:] = 1e9, 1e-9
    scale = np.array([1e-6, 1e6])
    assert confirms(predicted, others, actual, HORIZONS, "open")
    assert confirms(predicted * scale, others * scale, actual * scale, HORIZONS, "open")
    assert not confirms(others * scale, predicted * scale, actual * scale, HORIZONS, "open")


def test_equal_forecasts_and_a_single_origin_are_not_clear():
    actual = np.zeros((1, 4, 1))
    assert not confirms(actual, actual, actual, [4], "open")
    assert not confirms(actual, actual + 1, actual, [4], "open")


# --- kinds ---------------------------------------------------------------------------------------


def vector(seed, n_rows):
    """A linear law of three variables that noise drives."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(3, 3))
    matrix *= rng.uniform(0.5, 0.98) / np.abs(np.linalg.eigvals(matrix)).max()
    rows, noise = np.zeros((n_rows, 3)), rng.normal(size=(n_rows, 3))
    for i in range(1, n_rows):
        rows[i] = matrix @ rows[i - 1] + noise[i]
    return rows


def rotation(seed, n_rows):
    """A damped rotation that noise drives: cycles of 8 to 60 rows."""
    rng = np.random.default_rng(seed)
    angle, modulus = 2 * np.pi / rng.uniform(8, 60), rng.uniform(0.9, 0.999)
    noise = rng.normal(size=n_rows) + 1j * rng.normal(size=n_rows)
    rows = np.zeros(n_rows, complex)
    for i in range(1, n_rows):
        rows[i] = modulus * np.exp(1j * angle) * rows[i - 1] + noise[i]
    return np.column_stack([rows.real, rows.imag])


def walk(seed, n_rows):
    return np.random.default_rng(seed).normal(size=n_rows).cumsum()


RANDOM = {"vector": vector, "rotation": rotation, "walk": walk}


@pytest.mark.slow
def test_a_linear_law_with_noise_is_a_series():
    kinds = [kind_of(law(seed, 120)) for law in (vector, rotation) for seed in range(3)]
    assert kinds.count("dynamics") <= 1


@pytest.mark.slow
@pytest.mark.parametrize("law", sorted(RANDOM))
def test_random_series_are_rarely_taken_for_dynamics(law):
    lengths = [90, 200, 500]
    kinds = [kind_of(RANDOM[law](seed, lengths[seed % 3])) for seed in range(100, 112)]
    assert kinds.count("dynamics") <= 1


def test_dynamical_systems_are_taken_for_dynamics():
    assert kind_of(henon(100, random_state=0)) == "dynamics"  # flows are among the slow ones


@pytest.mark.slow
def test_dynamical_systems_with_noise_are_taken_for_dynamics():
    rng = np.random.default_rng(0)
    flow = lorenz(800, dt=0.05, random_state=0)
    delay = mackey_glass(1000, random_state=0).reshape(-1, 1)
    for rows in (flow, flow[:, :1], delay):
        noisy = rows + 0.03 * rows.std(axis=0) * rng.normal(size=rows.shape)
        assert kind_of(noisy) == "dynamics"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_demands_most_of_which_are_zero_are_series(seed):
    y = np.random.default_rng(seed).poisson(0.05, (300, 2)).astype(float)
    assert kind_of(y) == "series"
    bands = ESNForecaster(search="dynamics", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        forecast = bands.fit(y).forecast(4, coverage=0.9)
    lower, upper = forecast.reshape(4, 2, 3)[..., 1:].transpose(2, 0, 1)
    assert np.all(upper - lower > 0.25)  # half of the least difference of counts, cut off at 0

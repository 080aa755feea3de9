"""Data and libraries of others: collections of aeon, panels of sktime, the numba they allow."""

import numpy as np
import pytest

from reservoir import ESNRegressor, ReservoirTransformer
from reservoir.building import build_reservoir
from reservoir.dynamics import run

pytestmark = pytest.mark.one_engine


def collection(n_cases=6, n_channels=2, n_steps=40):
    """Return cases as aeon and sktime have them in NumPy: channels before time."""
    return np.random.default_rng(0).normal(size=(n_cases, n_channels, n_steps))


def test_panels_of_sktime_are_sequences(sktime):
    from sktime.datatypes import convert

    X = collection()
    panel = convert(X, from_type="numpy3D", to_type="pd-multiindex", as_scitype="Panel")
    y = panel.iloc[:, 0].groupby(level=0).shift(1).fillna(0.0)
    esn = ESNRegressor(20, washout=5, random_state=0).fit(panel, y)
    arrays = list(X.swapaxes(1, 2))
    shifted = [np.append(0.0, rows[:-1, 0]) for rows in arrays]
    plain = ESNRegressor(20, washout=5, random_state=0).fit(arrays, shifted)
    np.testing.assert_array_equal(esn.coef_, plain.coef_)
    np.testing.assert_array_equal(
        np.ravel(esn.predict(panel)), np.concatenate(plain.predict(arrays))
    )


@pytest.mark.filterwarnings("ignore:unsafe cast:Warning")  # in aeon's own kernels
def test_collections_of_aeon_go_through_a_reservoir_and_back(aeon):
    from aeon.classification.distance_based import KNeighborsTimeSeriesClassifier

    X, labels = collection(n_cases=12), np.repeat(["a", "b"], 6)
    X[6:] = np.cumsum(X[6:], axis=2)
    states = ReservoirTransformer(10, random_state=0).fit_transform(X.swapaxes(1, 2))
    assert states.shape == (12, 40, 10)
    nearest = KNeighborsTimeSeriesClassifier(distance="euclidean")
    assert nearest.fit(states.swapaxes(1, 2), labels).score(states.swapaxes(1, 2), labels) > 0.8


@pytest.mark.usefixtures("aeon")
def test_kernels_run_on_the_numba_that_aeon_allows():
    reservoir = build_reservoir(50, 2, random_state=0)
    X = collection(1, 2, 300)[0].T
    compiled, plain = (run(reservoir, X, engine=engine) for engine in ("numba", "numpy"))
    np.testing.assert_allclose(compiled, plain, rtol=0, atol=1e-12)

"""Files and pickles of earlier versions, which lack fields."""

import json
import pickle

import numpy as np
import pytest

from reservoir import ESNForecaster, ESNRegressor, load, save
from reservoir._saving import SAVED
from reservoir.datasets import mackey_glass, narma
from reservoir.estimators.persistence.archive import write_archive

pytestmark = pytest.mark.one_engine

SERIES = mackey_glass(301, random_state=0)


def without_fields(value, names):
    """Return JSON of a file without the fields of parts that have these names."""
    if isinstance(value, list):
        return [without_fields(each, names) for each in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"part"}:
        cls, *fields = value["part"]
        pairs = zip(fields[::2], fields[1::2], strict=True)
        value = {"part": [cls, *(part for pair in pairs if pair[0] not in names for part in pair)]}
    return {key: without_fields(each, names) for key, each in value.items()}


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("search", ["series", [{"n_units": 10}]])
def test_forecasters_without_later_fields_are_read(search, tmp_path):
    model = ESNForecaster(search=search, n_networks=1, random_state=0).fit(SERIES, SERIES**2)
    save(model, tmp_path / "now.npz")
    with np.load(tmp_path / "now.npz") as arrays:
        content = {name: arrays[name] for name in arrays.files}
    header = json.loads(str(content.pop("header")))
    later = {"categories", "possible", "ending", "rounding", "common", "reach", "phases"}
    earlier = without_fields(header, later)
    assert earlier != header
    content = {name: value for name, value in content.items() if not later & set(name.split("."))}
    write_archive(tmp_path / "before.npz", json.dumps(earlier), content)
    np.testing.assert_array_equal(
        load(tmp_path / "before.npz").forecast(5, SERIES[:5], coverage=0.9),
        model.forecast(5, SERIES[:5], coverage=0.9),
    )


def test_earlier_pickles_of_sources_with_past_rows_are_read():
    assert pickle.loads(b"creservoir.dynamics.lagged\nLaggedSource\n.") is SAVED["LaggedSource"]
    rows, targets = narma(300, random_state=0)
    model = ESNRegressor(15, n_lags=3, random_state=0).fit(rows, targets)
    source = model._model.source
    del vars(source)["n_used"]
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    assert again._model.source.width == source.width == 15 + 3

"""One fault, one class: the same bad input raises the same class wherever rows are read."""

import numpy as np
import pytest
import scipy.sparse as sp

from reservoir import (
    ESNForecaster,
    ESNRegressor,
    ESNSequenceRegressor,
    ReservoirFeatures,
    RNNRegressor,
    fill_gaps,
    force_train,
)
from reservoir.model_selection import (
    backtest,
    from_channels_first,
    make_forecast_pairs,
    stack_sequences,
)

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.one_engine


class OnDisk:
    """A table whose rows are not in memory, like a DataFrame of Dask, which has no pandas index."""

    ndim, shape, columns, index = 2, (float("nan"), 2), ["a", "b"], object()
    iloc = dtypes = None

    def compute(self):
        """Load the rows."""
        return ROWS


ROWS = np.sin(np.arange(120.0))[:, None]
DAYS = pd.date_range("2020", periods=120)
ODD = np.arange(120)[:, None] == 7
FAULTS = {
    "masked": (lambda: np.ma.masked_greater(ROWS, 0.9), TypeError, "masked"),
    "complex": (lambda: ROWS + 1j, ValueError, "complex numbers.*as separate columns"),
    "complex column": (
        lambda: pd.DataFrame({"power": ROWS[:, 0] + 1j}),
        ValueError,
        "(?s)(?=.*complex numbers).*column 'power'",
    ),
    "infinite": (lambda: np.where(ODD, np.inf, ROWS), ValueError, r"(inf.* row|sequence) 7"),
    "text": (lambda: np.full((120, 1), "a"), ValueError, "contains text.*'a'"),
    "dates": (
        lambda: pd.date_range("2020", periods=120).to_numpy()[:, None],
        TypeError,
        "datetimes",
    ),
    "sparse": (lambda: sp.csr_array(ROWS), TypeError, "Sparse data.*toarray.*sparse_output"),
    "dict": (lambda: {"a": [1, 2]}, TypeError, "dict"),
    "set": (lambda: {1.0, 2.0}, TypeError, "set"),
    "None": (lambda: None, TypeError, "None"),
    "iterator": (lambda: iter(ROWS), TypeError, "iterator"),
    "a number": (lambda: 3.0, ValueError, "3.0"),
    "a NumPy number": (lambda: np.float64(3), ValueError, "3.0"),
    "True": (lambda: True, ValueError, "True"),
    "a string": (lambda: "rows", ValueError, "'rows'"),
    "on disk": (OnDisk, TypeError, "OnDisk .*not in memory.*compute.*partial_fit"),
    "4-D": (lambda: np.zeros((2, 3, 4, 5)), ValueError, r"\(2, 3, 4, 5\)"),
    "empty": (lambda: np.zeros((0, 1)), ValueError, r"\(0, 1\)"),
    "empty stack": (lambda: np.zeros((0, 3, 1)), ValueError, r"\(0, 3, 1\)"),
    "no columns": (lambda: np.zeros((1, 0)), ValueError, r"\(1, 0\)"),
    "ragged": (lambda: [[1.0], [1.0, 2.0]], ValueError, "different lengths"),
}
SERIES = {"search": "series", "n_networks": 1, "horizon": 1}
NETWORK = ESNRegressor(5, random_state=0).fit(ROWS[:-1], ROWS[1:])
DRIVEN = ESNRegressor(5, random_state=0).fit(*make_forecast_pairs(ROWS, exog=ROWS))


@pytest.fixture(scope="module")
def fitted():
    return ESNForecaster(**SERIES).fit(ROWS[:40], exog=ROWS[:40])


DOORS = {
    "X": lambda rows, _: ESNRegressor(5).fit(rows, ROWS),
    "X of an RNN": lambda rows, _: RNNRegressor(5, max_iter=1, target="last").fit(rows, ROWS),
    "whole series": lambda rows, _: ReservoirFeatures(5).fit(rows),
    "y": lambda rows, _: ESNRegressor(5).fit(ROWS, rows),
    "y of whole series": lambda rows, _: ESNSequenceRegressor(5).fit(list(ROWS[:, None]), rows),
    "fit": lambda rows, _: ESNForecaster(**SERIES).fit(rows),
    "fit of a panel": lambda rows, _: ESNForecaster(panel="each", **SERIES).fit(rows),
    "fit of a long table": lambda rows, _: ESNForecaster(sequence_column=0, **SERIES).fit(rows),
    "fit with exog": lambda rows, _: ESNForecaster(**SERIES).fit(ROWS, exog=rows),
    "update": lambda rows, fitted: fitted.update(rows),
    "update with exog": lambda rows, fitted: fitted.update(ROWS[40:43], exog=rows),
    "forecast with exog": lambda rows, fitted: fitted.forecast(3, exog=rows),
    "backtest": lambda rows, _: backtest(ESNForecaster(**SERIES), rows, horizon=3),
    "pairs": lambda rows, _: make_forecast_pairs(rows),
    "exog of pairs": lambda rows, _: make_forecast_pairs(ROWS, exog=rows),
    "exog of a backtest": lambda rows, _: backtest(
        ESNForecaster(**SERIES), ROWS, horizon=3, exog=rows
    ),
    "exog of fill_gaps": lambda rows, _: fill_gaps(ROWS, ESNRegressor(5), exog=rows),
    "stack_sequences": lambda rows, _: stack_sequences([ROWS, rows]),
    "from_channels_first": lambda rows, _: from_channels_first([ROWS, rows]),
    "fill_gaps": lambda rows, _: fill_gaps(rows, ESNRegressor(5)),
    "context": lambda rows, _: NETWORK.forecast(3, context=rows),
    "exog of a network": lambda rows, _: DRIVEN.forecast(3, exog=rows),
    "session": lambda rows, _: NETWORK.stream().predict(rows),
    "force_train": lambda rows, _: force_train(ESNRegressor(5, feedback=True), rows),
}
MOVED = ("pairs", "exog of pairs", "stack_sequences", "from_channels_first")
# exog=None is no exogenous variables; what only moves rows takes symbols, stacks take infinity
ALLOWED = {("None", door) for door in DOORS if "exog" in door}
ALLOWED.add(("None", "context"))
ALLOWED |= {("None", "y"), ("None", "y of whole series")}  # scikit-learn asks for a ValueError
ALLOWED |= {("text", door) for door in MOVED} | {("infinite", door) for door in MOVED[2:]}
ALLOWED.add(("complex column", "fit of a panel"))  # a column is a series there
ALLOWED.add(("no columns", "from_channels_first"))
# a column of ids needs another of values, which the tests of long tables have
ONE_COLUMN = ("complex", "complex column", "infinite", "text", "dates")
ALLOWED |= {(fault, "fit of a long table") for fault in ONE_COLUMN}
ALLOWED.add(("ragged", "whole series"))  # a list of series of one channel


@pytest.mark.parametrize(
    ("fault", "door"),
    [(fault, door) for fault in FAULTS for door in DOORS if (fault, door) not in ALLOWED],
)
def test_a_fault_has_one_class(fault, door, fitted):
    make, kind, told = FAULTS[fault]
    with pytest.raises((TypeError, ValueError), match=told) as caught:
        DOORS[door](make(), fitted)
    assert caught.type is kind


@pytest.mark.parametrize("door", ["exog of pairs", "exog of fill_gaps"])
def test_exog_in_disorder_raises_beside_a_series_without_dates(door, fitted):
    mixed = pd.DataFrame(ROWS, index=DAYS[np.r_[0:50, 51, 50, 52:120]])
    with pytest.raises(ValueError, match="index of exog is not increasing: row 51"):
        DOORS[door](mixed, fitted)

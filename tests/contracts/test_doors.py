"""One fault, one class: the same bad input raises the same class wherever rows are read."""

import inspect
import re
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from reservoir import (
    ESNClassifier,
    ESNForecaster,
    ESNRegressor,
    ESNSequenceClassifier,
    ESNSequenceRegressor,
    LiquidStateMachine,
    NVARRegressor,
    ReservoirFeatures,
    ReservoirTransformer,
    RNNClassifier,
    RNNRegressor,
    fill_gaps,
    force_train,
    metrics,
)
from reservoir.dynamics import run, run_closed_loop, run_many
from reservoir.metrics import memory_capacity, valid_time
from reservoir.model_selection import (
    backtest,
    from_channels_first,
    make_forecast_pairs,
    stack_sequences,
)
from reservoir.readouts import LMS, RecursiveLeastSquares, SlidingWindow
from reservoir.scaling import spectral_radius
from reservoir.stability import certify_cycle, design, lyapunov_exponents
from reservoir.topologies import add_jumps

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
LABELS = np.arange(120) % 2
OBJECTS = ROWS.astype(object)
HOLED, ABSENT = np.where(ODD, np.nan, ROWS), np.where(ODD, pd.NA, OBJECTS)


def dated(values):
    """Return a table with a column of dates, or of what is not numbers."""
    return pd.DataFrame({"when": values})


def indexed(index):
    """Return a table of one column with an index."""
    return pd.DataFrame(ROWS, index)


FAULTS = {
    "masked": (lambda: np.ma.masked_greater(ROWS, 0.9), TypeError, "masked"),
    "complex": (lambda: ROWS + 1j, ValueError, "complex numbers.*as separate columns"),
    "complex column": (
        lambda: pd.DataFrame({"power": ROWS[:, 0] + 1j}),
        ValueError,
        "(?s)(?=.*complex numbers).*column 'power'",
    ),
    "infinite": (lambda: np.where(ODD, np.inf, ROWS), ValueError, r"(inf.* row|sequence) 7"),
    "minus infinity": (lambda: np.where(ODD, -np.inf, ROWS), ValueError, r"(inf.* row|sequence) 7"),
    "text": (lambda: np.full((120, 1), "a"), ValueError, "contains text.*'a'"),
    "text in lists": (lambda: [["a"]] * 120, ValueError, "contains text.*'a'"),
    "dates": (lambda: DAYS.to_numpy()[:, None], TypeError, "datetimes"),
    "sparse": (lambda: sp.csr_array(ROWS), TypeError, "Sparse data.*toarray.*sparse_output"),
    "dict": (lambda: {"a": [1, 2]}, TypeError, "dict"),
    "set": (lambda: {1.0, 2.0}, TypeError, "set"),
    "None": (lambda: None, TypeError, "None"),
    "iterator": (lambda: iter(ROWS), TypeError, "iterator"),
    "a number": (lambda: 3.0, ValueError, "3.0, but rows are expected"),
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
NOT_A_SHAPE = [
    fault
    for fault in FAULTS
    if fault not in ("infinite", "minus infinity", "None", "4-D", "no columns")
    and not fault.startswith("empty")
]
# what only inputs, only targets, and only series beside their dates can have
PLACE = "(NaN .*in column 0, first in row|sequence) 7"
FAULTS_OF_X = {
    "NaN": (lambda: HOLED, ValueError, PLACE),
    "NaN, named": (lambda: pd.DataFrame(HOLED, columns=["u"]), ValueError, r"NaN in .* 0 \('u'\)"),
    "NA": (lambda: ABSENT, ValueError, PLACE),
    "NA in a table": (lambda: pd.DataFrame(ABSENT), ValueError, PLACE),
    "1-D": (lambda: ROWS[:, 0], ValueError, "Expected 2D array.*Reshape your data: to one column"),
    "1-D list": (lambda: ROWS[:, 0].tolist(), ValueError, "Expected 2D array.*to one column"),
    "1-D, pandas": (lambda: pd.Series(ROWS[:, 0]), ValueError, "Expected 2D array.*to one column"),
    "5-D": (lambda: np.zeros((2, 3, 4, 5, 6)), ValueError, "dim 5.*one series has.*and several of"),
    "list of 3-D": (lambda: [np.zeros((2, 3, 4))] * 2, ValueError, "dim 4.*one series has shape"),
    "a word": (
        lambda: np.where(ODD, "a", OBJECTS),
        ValueError,
        "text in column 0, for instance 'a' .*sequence_column.*OneHotEncoder.*PerStep",
    ),
    "date among objects": (
        lambda: np.where(ODD, DAYS[0], OBJECTS),
        TypeError,
        "contains datetimes",
    ),
    "dates": (lambda: dated(DAYS), TypeError, "datetime column 'when'.*set_index"),
    "dates of NumPy": (
        lambda: np.array([[each] for each in DAYS.to_numpy()], dtype=object),
        TypeError,
        "X contains datetimes",
    ),
    "zone": (lambda: dated(DAYS.tz_localize("UTC")), TypeError, "datetime column 'when'"),
    "periods": (lambda: dated(DAYS.to_period()), TypeError, "datetime column 'when'"),
    "objects": (lambda: dated(pd.Series(DAYS, dtype=object)), TypeError, "datetime column 'when'"),
    "categories": (lambda: dated(pd.Categorical(DAYS)), TypeError, "datetime column 'when'"),
    "durations": (lambda: dated(DAYS - DAYS[0]), TypeError, "duration column 'when'.*total_sec"),
}
FAULTS_OF_Y = {
    "3-D": (lambda: ROWS[:, None], ValueError, "dim 3"),
    "None": (lambda: None, ValueError, "requires y to be passed, but the target y is None"),
    "categories": (
        lambda: pd.Series(["low"] * 120, dtype="category"),
        ValueError,
        "y contains text, for instance 'low'.*classifiers.*NaN",
    ),
    "too short": (lambda: ROWS[:-1], ValueError, r"X (has n_samples=|contains )120.* y .*\(119, 1"),
}
FAULTS_OF_DATES = {
    "falling": (
        lambda: indexed(DAYS[np.r_[0:13, 14, 13, 15:120]]),
        ValueError,
        "not increasing: row 14 .* after row 13 ",
    ),
    "equal": (lambda: indexed(DAYS[np.r_[0:14, 13, 15:120]]), ValueError, "twice, in rows 13 and"),
    "no date": (
        lambda: indexed(DAYS.where(DAYS[51] != DAYS)),
        ValueError,
        r"has no date in row 51 \(NaT\)",
    ),
}
MONTHS = pd.date_range("2018", periods=120, freq="MS")
NUMBERED = 100 * MONTHS.year + MONTHS.month
FAULT_OF_NUMBERS = {"months": (lambda: indexed(NUMBERED), ValueError, "months written as whole")}
SERIES = {"search": "series", "n_networks": 1, "horizon": 1}
NETWORK = ESNRegressor(5, random_state=0).fit(ROWS[:-1], ROWS[1:])
TRAINED = RNNRegressor(5, max_iter=1, init="esn", random_state=0).fit(ROWS, ROWS)
WAVES = ROWS.reshape(20, 6, 1)
WHOLE = ESNSequenceRegressor(5, random_state=0).fit(WAVES, np.arange(20.0))
DRIVEN = ESNRegressor(5, random_state=0).fit(*make_forecast_pairs(ROWS, exog=ROWS))


@pytest.fixture(scope="module")
def fitted():
    return ESNForecaster(**SERIES).fit(ROWS[:40], exog=ROWS[:40])


DOORS_OF_X = {
    "X": lambda rows, _: ESNRegressor(5).fit(rows, ROWS),
    "X of a classifier": lambda rows, _: ESNClassifier(5).fit(rows, LABELS),
    "X of an RNN": lambda rows, _: RNNRegressor(5, max_iter=1, target="last").fit(rows, ROWS),
    "X of an RNN's labels": lambda rows, _: RNNClassifier(5, max_iter=1).fit(rows, LABELS),
    "X of lags": lambda rows, _: NVARRegressor().fit(rows, ROWS),
    "X of a transformer": lambda rows, _: ReservoirTransformer(5).fit(rows),
    "whole series": lambda rows, _: ReservoirFeatures(5).fit(rows),
    "labels of whole series": lambda rows, _: ESNSequenceClassifier(5).fit(rows, LABELS),
    "spikes": lambda rows, _: LiquidStateMachine(30).fit(rows),
    "predict": lambda rows, _: NETWORK.predict(rows),
    "states": lambda rows, _: NETWORK.states(rows),
    "score": lambda rows, _: NETWORK.score(rows, ROWS),
    "partial_fit": lambda rows, _: ESNRegressor(5).partial_fit(rows, ROWS),
    "learn": lambda rows, _: NETWORK.stream().learn(rows, ROWS[:1]),
    "context": lambda rows, _: NETWORK.forecast(3, context=rows),
    "session": lambda rows, _: NETWORK.stream().predict(rows),
}
DOORS_OF_Y = {
    "y": lambda rows, _: ESNRegressor(5).fit(ROWS, rows),
    "y of an RNN": lambda rows, _: RNNRegressor(5, max_iter=1).fit(ROWS, rows),
    "y of lags": lambda rows, _: NVARRegressor().fit(ROWS, rows),
    "y of partial_fit": lambda rows, _: ESNRegressor(5).partial_fit(ROWS, rows),
    "y of whole series": lambda rows, _: ESNSequenceRegressor(5).fit(list(ROWS[:, None]), rows),
}
DOORS = {
    **DOORS_OF_X,
    **DOORS_OF_Y,
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
    "exog of a network": lambda rows, _: DRIVEN.forecast(3, exog=rows),
    "force_train": lambda rows, _: force_train(ESNRegressor(5, feedback=True), rows),
}
ARRAYS = {"y_true": ROWS, "y_pred": ROWS + 1, "low": ROWS - 1, "high": ROWS + 1, "y_train": ROWS}
# what reads numbers without the form of a table: sums, runs and errors
DOORS_OF_NUMBERS = {
    "y of score": lambda rows, _: NETWORK.score(ROWS, rows),
    "y of an RNN's score": lambda rows, _: TRAINED.score(ROWS, rows),
    "y of a score of whole series": lambda rows, _: WHOLE.score(WAVES, rows),
    "X of run": lambda rows, _: run(NETWORK.reservoir_, rows),
    "series of run_many": lambda rows, _: run_many(NETWORK.reservoir_, [ROWS, rows]),
    "X of exponents": lambda rows, _: lyapunov_exponents(NETWORK, rows),
    "inputs of a cycle": lambda rows, _: certify_cycle(NETWORK.reservoir_, rows),
    "X of a capacity": lambda rows, _: memory_capacity(NETWORK.reservoir_, X=rows),
}
# every readout that learns row by row, and every error of forecasts
for cls in (LMS, RecursiveLeastSquares, SlidingWindow):
    new = {SlidingWindow: lambda: SlidingWindow(50)}.get(cls, cls)
    DOORS_OF_NUMBERS |= {
        f"X of {cls.__name__}": lambda rows, _, new=new: new().fit(rows, ROWS),
        f"y of {cls.__name__}": lambda rows, _, new=new: new().partial_fit(ROWS, rows),
        f"X behind {cls.__name__}": lambda rows, _, new=new: new().fit(ROWS, ROWS).predict(rows),
    }
for name in metrics.__all__:
    error = getattr(metrics, name)
    known = [each for each in inspect.signature(error).parameters if each in ARRAYS]
    if name == "pinball":
        error = partial(error, quantile=0.5)
    for each in known if "y_true" in known else ():
        call = partial(error, **{other: ARRAYS[other] for other in known})
        DOORS_OF_NUMBERS[f"{each} of {name}"] = lambda rows, _, call=call, each=each: call(
            **{each: rows}
        )
DRAWN = ("leak_rate", "input_weights", "bias", "input_scaling", "topology")
FITS = {
    ESNRegressor: (ROWS, ROWS),
    ReservoirTransformer: (ROWS,),
    ReservoirFeatures: (WAVES,),
    ESNSequenceRegressor: (WAVES, np.arange(20.0)),
}
DOORS_OF_PARAMETERS = {
    f"{name} of {cls.__name__}": lambda rows, _, cls=cls, name=name, data=data: cls(
        5, **{name: rows}
    ).fit(*data)
    for cls, data in FITS.items()
    for name in DRAWN
} | {
    "leak_rate of a cell": lambda rows, _: RNNRegressor(cell="leaky", leak_rate=rows).fit(
        ROWS, ROWS
    ),
    "season": lambda rows, _: ESNForecaster(season=rows).fit(ROWS),
    "W of a matrix": lambda rows, _: add_jumps(rows, jump_size=2),
    "W of a radius": lambda rows, _: spectral_radius(rows),
    "initial_state of run": lambda rows, _: run(NETWORK.reservoir_, ROWS, initial_state=rows),
    "exog of a loop": lambda rows, _: run_closed_loop(
        NETWORK.reservoir_, (np.zeros((1, 5)), 0), n_steps=2, initial_state=np.zeros(5), exog=rows
    ),
    "scale of valid_time": lambda rows, _: valid_time(ROWS, ROWS, scale=rows),
    "input_scaling of design": lambda rows, _: design(5, (-1, 1), input_scaling=rows),
}
EVERY_DOOR = DOORS | DOORS_OF_NUMBERS | DOORS_OF_PARAMETERS
TEXTS = ("text", "text in lists")
MOVED = ("pairs", "exog of pairs", "stack_sequences", "from_channels_first")
# exog=None is no exogenous variables; what only moves rows takes symbols, stacks take infinity
ALLOWED = {("None", door) for door in DOORS if "exog" in door}
ALLOWED.add(("None", "context"))
ALLOWED |= {("None", door) for door in DOORS_OF_Y}  # scikit-learn asks for a ValueError
ALLOWED |= {(text, door) for text in TEXTS for door in MOVED}
ALLOWED.add(("text in lists", "y of a score of whole series"))  # its length is wrong, too
ALLOWED |= {(sign, door) for sign in ("infinite", "minus infinity") for door in MOVED[2:]}
ALLOWED.add(("complex column", "fit of a panel"))  # a column is a series there
ALLOWED.add(("no columns", "from_channels_first"))
# a column of ids needs another of values, which the tests of long tables have
ONE_COLUMN = ("complex", "complex column", "infinite", "minus infinity", "dates", *TEXTS)
ALLOWED |= {(fault, "fit of a long table") for fault in ONE_COLUMN}
# a list of series of one channel
ALLOWED |= {("ragged", door) for door in ("whole series", "labels of whole series", "spikes")}
WITH_DATES = (
    "X",
    "X of an RNN",
    "X of a transformer",
    "y",
    "fit",
    "fit of a panel",
    "backtest",
    "pairs",
    "fill_gaps",
)
# neither columns of one series, of which a panel makes several, nor in place of X
TIMES = ("date among objects", "dates", "zone", "periods", "objects", "durations")
SEVERAL = ("fit of a panel", "fit of a long table")
WITHOUT_DATES = [
    door for door in (*DOORS, *DOORS_OF_NUMBERS) if door not in (*DOORS_OF_X, *SEVERAL)
]
# what forecasts may continue, and so all but features of whole series
WITH_NUMBERS = (
    *WITH_DATES,
    "predict",
    "states",
    "score",
    "partial_fit",
    "context",
    "session",
    "y of partial_fit",
    "exog of pairs",
    "exog of fill_gaps",
    "force_train",
)
ASKED = [
    *((FAULTS, fault, DOORS) for fault in FAULTS),
    *((FAULTS, fault, DOORS_OF_NUMBERS) for fault in NOT_A_SHAPE),
    (FAULTS, "ragged", DOORS_OF_PARAMETERS),
    *((FAULTS_OF_X, fault, DOORS_OF_X) for fault in FAULTS_OF_X),
    *((FAULTS_OF_X, fault, WITHOUT_DATES) for fault in TIMES),
    *((FAULTS_OF_Y, fault, DOORS_OF_Y) for fault in FAULTS_OF_Y),
    *((FAULTS_OF_DATES, fault, WITH_DATES) for fault in FAULTS_OF_DATES),
    (FAULT_OF_NUMBERS, "months", WITH_NUMBERS),
]


@pytest.mark.parametrize(("faults", "fault", "doors"), ASKED, ids=[each[1] for each in ASKED])
def test_a_fault_has_one_class(faults, fault, doors, fitted):
    make, kind, told = faults[fault]
    wrong = {}
    for door in doors:
        if faults is FAULTS and (fault, door) in ALLOWED:
            continue
        try:
            wrong[door] = EVERY_DOOR[door](make(), fitted)
        except Exception as error:
            named = (doors is not DOORS and faults is FAULTS) or door.startswith(("y", "exog"))
            name = door.split()[0] if named else ""
            if type(error) is not kind or not re.search(told, str(error)) or name not in str(error):
                wrong[door] = error
    assert not wrong


@pytest.mark.parametrize("door", ["exog of pairs", "exog of fill_gaps"])
def test_exog_in_disorder_raises_beside_a_series_without_dates(door, fitted):
    mixed = pd.DataFrame(ROWS, index=DAYS[np.r_[0:50, 51, 50, 52:120]])
    with pytest.raises(ValueError, match="index of exog is not increasing: row 51"):
        DOORS[door](mixed, fitted)

"""The table of docs/guide/data.md on messages: each cell's code lets the call succeed.

A row is a fault. `CALLS` has the call that raises, by the first cell of the row; `DATA` the data
that it raises for, by the row and the column.
"""

import re
import warnings

import numpy as np
import pytest

from helpers import pages
from reservoir import ESNClassifier, ESNRegressor, ESNSequenceClassifier
from reservoir.estimators.series.checks import check_enough_values
from reservoir.estimators.series.panel import Panel
from reservoir.model_selection import backtest

pd = pytest.importorskip("pandas")
sparse = pytest.importorskip("scipy.sparse")

PAGE = {pages.name_of(page): page for page in pages.pages(".md")}.get("docs/guide/data.md")
pytestmark = [pytest.mark.one_engine, pytest.mark.skipif(PAGE is None, reason="needs the checkout")]
COLUMNS = ("array", "pandas", "list", "ids", "polars")


class SeriesForecaster:
    """A forecaster that repeats the last row."""

    def fit(self, y):
        self.last = np.asarray(y)[-1]
        return self

    def forecast(self, n_steps):
        return np.repeat(self.last[None], n_steps, axis=0)


class OnDisk:
    """A table whose rows are not in memory, as of Dask."""

    ndim, shape = 2, (24, 1)

    def compute(self):
        """Load the rows."""
        return V


rng = np.random.default_rng(0)
V = rng.normal(size=(24, 1))
HOLED = np.where(np.arange(24)[:, None] == 7, np.nan, V)
LABELS = np.arange(24) % 2
MONTHS = pd.date_range("2020-01-01", periods=24, freq="MS")
DAYS = pd.date_range("2024-03-20", periods=24, tz="Europe/Berlin").tz_convert("UTC")
SHIFTED = MONTHS + pd.to_timedelta(np.arange(24) * 5 % 9, "D")
RARE = pd.Timestamp("2020-01-02") + pd.to_timedelta(np.cumsum([15, 40, 23] * 8), "D")
GAP = np.delete(np.arange(24), 7)
TWICE, BACK = [0, *range(24)], [1, 0, *range(2, 24)]
CASES = rng.normal(size=(8, 12, 1))
PADDED = CASES.copy()
PADDED[1, 7:] = PADDED[2, 9:] = np.nan


def on(index, rows=slice(None)):
    """Return a Series with rows of V at an index, in the order of `rows`."""
    return pd.Series(V[:, 0], index, name="value")[rows]


def both(index, rows=slice(None)):
    """Return two such series in one table, with a column of ids."""
    parts = [on(index).iloc[rows].to_frame().assign(id=key) for key in (1, 2)]
    return pd.concat(parts)


def at(index, rows=slice(None)):
    """Return the data of a fault in the index of a series, for each column."""
    return {
        "pandas": lambda: {"y": on(index).iloc[rows]},
        "list": lambda: {"y": [on(index).iloc[rows]] * 2},
        "ids": lambda: {"y": both(index, rows)},
    }


def read(y, exog=None, kind=""):
    """Read as `ESNForecaster.fit` does."""
    several = kind in ("list", "ids") or getattr(y, "ndim", 1) == 2
    panel, column = "each" if several else None, "id" if kind == "ids" else None
    rows = Panel.read(y, exog, panel=panel, sequence_column=column)
    check_enough_values(rows.values, rows.panel)


def read_panel(y, kind=""):
    rows = Panel.read(y, panel="each", sequence_column="id" if kind == "ids" else None)
    check_enough_values(rows.values, rows.panel)


def fit_inputs(X, kind=""):
    targets = [V[:, 0]] * 2 if isinstance(X, list) else V[:, 0]
    return ESNRegressor(5, sequence_column="id" if kind == "ids" else None).fit(X, targets)


def fit_labels(y, kind=""):
    return ESNClassifier(5).fit([V] * 2 if isinstance(y, list) else V, y)


def fit_cases(X, kind=""):
    named = {"sequence_column": "id"} if kind in ("ids", "polars") else {}
    return ESNSequenceClassifier(5, random_state=0, **named).fit(X, np.arange(8) % 2)


def update(y, kind=""):
    """Read later rows as `ESNForecaster.update` does."""
    column = "id" if kind == "ids" else None
    parts = {"pandas": on(MONTHS), "list": [on(MONTHS)] * 2, "ids": both(MONTHS)}
    panel = None if kind == "pandas" else "each"
    made = Panel.read(parts[kind], panel=panel, sequence_column=column).panel
    made.follow(y, sequence_column=column)


def backtested(y, model, kind=""):
    return backtest(model, y, horizon=3)


def text(values):
    return pd.Series(values[:, 0]).map(str)


def ids(**columns):
    return pd.DataFrame({**columns, "id": np.repeat([1, 2], 12)})


def days(index=None):
    return pd.DataFrame({"day": ["x", "y"] * 12}, index)


SEVERAL = [on(MONTHS), on(MONTHS)[:4]]
CALLS = {
    "not in memory": fit_inputs,
    "Sparse data": fit_inputs,
    "Expected 2D array": fit_inputs,
    "list of 1-D arrays": fit_inputs,
    "contains NaN": fit_inputs,
    "datetime column": fit_inputs,
    "should be a 1d array": fit_labels,
    "padding": fit_cases,
    "known already": update,
    "contains several series": backtested,
    "dict of series": read_panel,
    "at least 5 are needed": read_panel,
    "times in its first level": read_panel,
}
DATA = {
    "`not in memory`": {
        "pandas": lambda: {"X": OnDisk()},
        "polars": lambda pl: {"X": pl.LazyFrame({"a": V[:, 0]})},
    },
    "`Sparse data`": {
        "array": lambda: {"X": sparse.csr_array(V)},
        "list": lambda: {"X": [sparse.csr_array(V)] * 2},
    },
    "`masked array`": {
        "array": lambda: {"y": np.ma.masked_greater(V[:, 0], 1)},
        "list": lambda: {"y": [np.ma.masked_greater(V[:, 0], 1)] * 2},
    },
    "`dict of series`": dict.fromkeys(
        ("list", "ids"), lambda: {"y": {1: on(MONTHS), 2: on(MONTHS)}}
    ),
    "`Expected 2D array`": {
        "array": lambda: {"X": V[:, 0]},
        "pandas": lambda: {"X": on(MONTHS)},
        "polars": lambda pl: {"X": pl.Series("a", V[:, 0])},
    },
    "`list of 1-D arrays`": {"list": lambda: {"X": [V[:, 0]] * 2}},
    "`contains NaN`": {
        "array": lambda: {"X": HOLED},
        "pandas": lambda: {"X": pd.DataFrame(HOLED)},
        "list": lambda: {"X": [pd.DataFrame(HOLED)] * 2},
        "ids": lambda: {"X": ids(value=HOLED[:, 0])},
        "polars": lambda pl: {"X": pl.DataFrame({"a": HOLED[:, 0]})},
    },
    "`numbers are needed`: numbers as text": {
        "array": lambda: {"y": text(V).to_numpy()},
        "pandas": lambda: {"y": text(V)},
        "list": lambda: {"y": [text(V)] * 2},
        "ids": lambda: {"y": ids(value=text(V))},
        "polars": lambda pl: {"y": pl.Series("a", text(V).tolist())},
    },
    "`numbers are needed`: categories in exog": {
        "array": lambda: {"y": V[:, 0], "exog": days().to_numpy()},
        "pandas": lambda: {"y": V[:, 0], "exog": days()},
        "list": lambda: {"y": [V[:, 0]] * 2, "exog": [days()] * 2},
        "ids": lambda: {"y": ids(value=V[:, 0]), "exog": ids(day=["x", "y"] * 12)},
        "polars": lambda pl: {"y": V[:, 0], "exog": pl.DataFrame({"day": ["x", "y"] * 12})},
    },
    "`datetime column`": {
        "pandas": lambda: {"X": pd.DataFrame({"a": V[:, 0], "day": MONTHS})},
        "list": lambda: {"X": [pd.DataFrame({"a": V[:, 0], "day": MONTHS})] * 2},
        "ids": lambda: {"X": ids(value=V[:, 0], day=MONTHS)},
        "polars": lambda pl: {"X": pl.DataFrame({"a": V[:, 0], "day": MONTHS.to_numpy()})},
    },
    "`should be a 1d array` (labels as columns of 0 and 1)": {
        "array": lambda: {"y": np.eye(2)[LABELS]},
        "pandas": lambda: {"y": pd.DataFrame(np.eye(2)[LABELS])},
        "list": lambda: {"y": [np.eye(2)[LABELS]] * 2},
    },
    "`padding`": {
        "array": lambda: {"X": PADDED},
        "list": lambda: {"X": [pd.DataFrame(rows) for rows in PADDED]},
        "ids": lambda: {
            "X": pd.DataFrame({"value": PADDED.ravel(), "id": np.repeat(np.arange(8), 12)})
        },
        "polars": lambda pl: {
            "X": pl.DataFrame({"value": PADDED.ravel(), "id": np.repeat(np.arange(8), 12)})
        },
    },
    "`has a gap`": at(MONTHS, GAP),
    "`is irregular`, one row in each period": at(SHIFTED),
    "`is irregular`, times shift with the clocks": at(DAYS),
    "`is irregular` otherwise": at(RARE),
    "`is not increasing`": at(MONTHS, BACK),
    "`twice`": at(MONTHS, TWICE),
    "`no date in row`": at(MONTHS.where(np.arange(24) != 23)),
    "`contains labels` that are dates": at(MONTHS.strftime("%Y-%m-%d")),
    "`contains labels` of steps": at(pd.Index([f"row {i}" for i in range(24)])),
    "`written as whole numbers`": at(MONTHS.year * 100 + MONTHS.month),
    "`contains durations`": at(pd.to_timedelta(np.arange(24), "h")),
    "`index of 2 levels`": {
        "pandas": lambda: {"y": pd.concat({"a": on(MONTHS)})},
        "list": lambda: {"y": [pd.concat({"a": on(MONTHS)})] * 2},
    },
    "`times in its first level`": {
        "pandas": lambda: {"y": pd.concat({"a": on(MONTHS), "b": on(MONTHS)}).swaplevel()}
    },
    "`does not match`": {
        "pandas": lambda: {"y": on(MONTHS)[4:], "exog": on(MONTHS)},
        "list": lambda: {"y": [on(MONTHS)[4:]] * 2, "exog": [on(MONTHS)] * 2},
    },
    "`known already`": at(MONTHS.shift(3)),
    "`at least 5 are needed`": {
        "pandas": lambda: {"y": pd.DataFrame({"a": SEVERAL[0], "b": SEVERAL[1]})},
        "list": lambda: {"y": SEVERAL},
        "ids": lambda: {"y": both(MONTHS)[:28]},
    },
    "`contains several series` (backtest)": {
        "array": lambda: {"y": np.stack([V, V])},
        "pandas": lambda: {"y": pd.concat({"a": on(MONTHS), "b": on(MONTHS)})},
        "list": lambda: {"y": [on(MONTHS)] * 2},
        "ids": lambda: {"y": both(MONTHS).replace({"id": {1: "a", 2: "b"}})},
    },
}


def rows_of_table():
    """Return the code of each cell of the table, by the first cell of its row and the column."""
    if PAGE is None:
        return {}
    table = PAGE.read_text(encoding="utf-8").split("<!-- messages -->\n")[1].split("\n\n")[0]
    rows = [line.strip("|").split(" | ") for line in table.splitlines()[2:]]
    cells = [[cell.strip() for cell in f"{' | '.join(row)} ".split("|")] for row in rows]
    return {row[0]: dict(zip(COLUMNS, row[1:], strict=True)) for row in cells}


TABLE = rows_of_table()


def check_cell(row, column, *library):
    """Check that the call of a row raises its message, and succeeds after the code of a cell."""
    said = re.match("`(.*?)`", row)[1]
    call, given = CALLS.get(said, read), DATA[row][column](*library)
    names = {"np": np, "pd": pd, "backtest": backtest, **dict(zip(["pl"], library, strict=False))}
    if call is backtested:
        given["model"] = SeriesForecaster()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((TypeError, ValueError), match=re.escape(said)):
            call(**given, kind=column)
        names.update(given)
        exec(TABLE[row][column].strip("`"), names)
        if call is not backtested:
            call(**{name: names[name] for name in given}, kind=column)


def test_each_cell_has_data():
    written = {row: {name for name, code in cells.items() if code} for row, cells in TABLE.items()}
    assert written == {row: set(cells) for row, cells in DATA.items()}


@pytest.mark.parametrize(
    ("row", "column"),
    [(row, each) for row, cells in DATA.items() for each in cells if each != "polars"],
)
def test_the_code_of_a_cell_lets_the_call_succeed(row, column):
    check_cell(row, column)


@pytest.mark.parametrize("row", [row for row, cells in DATA.items() if "polars" in cells])
def test_the_code_for_polars_lets_the_call_succeed(row, polars):
    check_cell(row, "polars", polars)

"""Data that cause each message with code, the call that they cause it in, and what the code means.

Statements and expressions are text, run with `NAMES` and what the data define: the variables that
a user of the code would have.
"""

from typing import NamedTuple

import numpy as np
import pytest

from reservoir import ESNForecaster, ESNRegressor, RNNClassifier
from reservoir.building import build_reservoir
from reservoir.stability import certify, drive_range

pd = pytest.importorskip("pandas")

IMPORTS = """
import dataclasses, datetime
import numpy as np, pandas as pd, scipy.sparse as sp, scipy.stats
import pytest
import reservoir.plotting, reservoir.topologies
import reservoir.training.jacobian_products, reservoir.training.schedules
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from reservoir import *
from reservoir.activations import get_activation
from reservoir.building import build_reservoir
from reservoir.dynamics import run as run_reservoir
from reservoir.metrics import memory_capacity
from reservoir.model_selection import (
    PerStep, backtest, from_channels_first, make_forecast_pairs, stack_sequences,
)
from reservoir.stability import certify, echo_state_conditions, lyapunov_exponents, sweep
"""


class Case(NamedTuple):
    """One message with code.

    Attributes
    ----------
    path, code : str
        The place: the module, and what `code` is given there.
    data : str
        Statements that make the data.
    call : str
        The call that says so.
    check : str
        An expression that holds after the code, and the call again (its value is `result`).
    into : str
        The variable that takes the value where the code is an expression.
    instead : bool
        Whether the code takes the place of the call.
    slow : bool
        Whether it takes seconds.
    """

    path: str
    code: str
    data: str
    call: str
    check: str
    into: str = ""
    instead: bool = False
    slow: bool = False

    @property
    def place(self):
        """The key of the place."""
        return self.path, self.code


rng = np.random.default_rng(0)
ROWS = rng.normal(size=(40, 2))
LABELS = np.arange(40) % 2
DAYS = pd.date_range("2020-01-01", periods=40)
TABLE = pd.DataFrame(ROWS, DAYS, ["u", "v"])
TARGET = pd.Series(ROWS[:, 0], DAYS)
MONTHS = pd.date_range("2020-01-01", periods=24, freq="MS")
SALES = pd.Series(np.sin(np.arange(24)) + 0.1 * rng.normal(size=24), MONTHS)
PANEL = pd.DataFrame({"id": np.repeat(["b", "a"], 24), "y": np.tile(SALES, 2)}, [*MONTHS, *MONTHS])
CASES_OF_TWO = list(rng.normal(size=(8, 12, 2)))
KINDS = np.arange(8) % 2


def esn(cls=ESNRegressor, **params):
    """Return a small network."""
    return cls(5, random_state=0, **params)


def series(**params):
    """Return a forecaster that is fitted fast."""
    return ESNForecaster(search="series", horizon=1, n_networks=1, random_state=0, **params)


class OnDisk:
    """A table whose rows are not in memory, as of Dask."""

    ndim = 2

    def __init__(self, table):
        self.table, self.shape, self.columns = table, table.shape, table.columns

    def compute(self):
        """Load the rows."""
        return self.table


class Reading(ESNForecaster):
    """A forecaster that reads and checks what it is given, and fits nothing."""

    def _fit_series(self, jobs):
        pass


def reading(**params):
    """Return such a forecaster."""
    return Reading(search="series", **params)


SYMBOLS = np.array(list("abc" * 8))
SPEAKER = RNNClassifier(5, max_iter=1, random_state=0)
SPEAKER.fit((SYMBOLS[:-1, None] == np.unique(SYMBOLS)).astype(float), SYMBOLS[1:])
SMALL = build_reservoir(5, 1, spectral_radius=0.5, random_state=0)
PROVED = certify(SMALL, *drive_range(SMALL, -1, 1), input_range=(-1, 1))
NAMES = {**globals()}
exec(IMPORTS, NAMES)

READ = "_validation"
ORDER, KINDS_OF, PADDING = f"{READ}/order.py", f"{READ}/kinds.py", f"{READ}/padding.py"
WHOLE = f"{READ}/whole_series.py"

CASES = [
    # --- tables ---------------------------------------------------------------------------------
    Case(
        f"{READ}/plain.py",
        "'rows.astype(float).filled(np.nan)'",
        "rows = np.ma.masked_greater(LABELS, 0); y = rows",
        "esn(missing_targets='skip').fit(ROWS, y)",
        "np.isnan(y).sum() == 20",
        into="y",
    ),
    Case(
        KINDS_OF,
        "replaced(name, made)",
        "X = TABLE.assign(kind=['a', 'b'] * 20)",
        "esn().fit(X, TARGET)",
        "list(X) == ['u', 'v', 'kind_a', 'kind_b'] and X['kind_b'].iloc[1] == 1",
    ),
    Case(
        KINDS_OF,
        "replaced(name, made)",
        "X = np.array([[0.5, 'a'], [1.5, 'b']] * 20, dtype=object)",
        "esn().fit(X, ROWS[:, 0])",
        "X[:2].tolist() == [[0.5, 1, 0], [1.5, 0, 1]]",
    ),
    Case(
        KINDS_OF,
        "replaced(name, made)",
        "X = [TABLE[i:].assign(kind=pd.Categorical(['a', 'b'] * 20)[i:]) for i in range(8)]",
        "esn(ESNSequenceClassifier).fit(X, KINDS)",
        "list(X[7]) == ['u', 'v', 'kind_a', 'kind_b']",
    ),
    Case(
        KINDS_OF,
        "replaced(name, dense)",
        "X = sp.csr_array(ROWS)",
        "esn().fit(X, ROWS[:, 0])",
        "(X == ROWS).all()",
    ),
    Case(
        KINDS_OF,
        "replaced(name, dense)",
        "X = [TABLE.astype(pd.SparseDtype(float, fill)) for fill in (0.0, 0.5)]",
        "esn(ReservoirTransformer).fit(X)",
        "X[0].equals(TABLE) and X[1].equals(TABLE)",
    ),
    Case(
        KINDS_OF,
        "replaced(name, f'rows.{to_memory}()')",
        "X = OnDisk(TABLE)",
        "esn().fit(X, TARGET)",
        "X is TABLE",
    ),
    Case(
        KINDS_OF,
        "replaced(name, f'rows.drop({drop})')",
        "y = np.array(['b', 'a'] * 20); X = TABLE.assign(kind=y)",
        "esn(ESNClassifier).fit(X, y)",
        "list(X) == ['u', 'v']",
    ),
    Case(
        f"{READ}/levels.py",
        "replaced(name, made)",
        "X = pd.concat({'b': TABLE, 'a': TABLE}).swaplevel()",
        "esn().fit(X, np.tile(ROWS[:, 0], 2))",
        "X.equals(pd.concat({'b': TABLE, 'a': TABLE}))",
    ),
    Case(
        f"{READ}/levels.py",
        "replaced(name, made)",
        "y = pd.concat({2: SALES, 1: SALES}).swaplevel().sort_index()",
        "reading(panel='each').fit(y)",
        "y.equals(pd.concat({1: SALES, 2: SALES}))",
    ),
    Case(
        f"{READ}/levels.py",
        "replaced(name, one)",
        "y = SALES.set_axis([SALES.index, SALES.index.shift(1)])",
        "reading(panel='each').fit(y)",
        "y.equals(SALES.set_axis(SALES.index.shift(1)))",
    ),
    Case(
        f"{READ}/levels.py",
        "replaced(name, one)",
        "days = pd.MultiIndex.from_arrays([SALES.index.repeat(2), SALES.index.repeat(2)]); "
        "y = SALES.repeat(2).set_axis(days)",
        "reading().fit(y)",
        "(y == SALES).all()",
    ),
    Case(
        KINDS_OF,
        "'OneHotEncoder(sparse_output=False)'",
        "encoder = OneHotEncoder(); X = LABELS[:, None]",
        "make_pipeline(encoder, esn()).fit(X, ROWS[:, 0])",
        "result[-1].n_features_in_ == 2",
        into="encoder",
    ),
    Case(
        KINDS_OF,
        "replaced(name, single)",
        "X = ROWS; y = np.eye(2)[LABELS]",
        "esn(ESNClassifier).fit(X, y)",
        "(y == LABELS).all()",
    ),
    Case(
        KINDS_OF,
        "replaced(name, single)",
        "X = TABLE; y = pd.get_dummies(pd.Series(['no', 'yes'] * 20, DAYS), dtype=int)",
        "esn(ESNClassifier).fit(X, y)",
        "list(result.classes_) == ['no', 'yes'] and y.iloc[1] == 'yes'",
    ),
    Case(
        KINDS_OF,
        "replaced(name, single)",
        "X = [ROWS, ROWS]; y = [np.eye(2)[LABELS]] * 2",
        "esn(ESNClassifier).fit(X, y)",
        "(y[1] == LABELS).all()",
    ),
    Case(
        f"{READ}/sequences.py",
        "replaced(name, column)",
        "X = ROWS[:, 0]",
        "esn().fit(X, ROWS[:, 1])",
        "(X[:, 0] == ROWS[:, 0]).all()",
    ),
    Case(
        f"{READ}/sequences.py",
        "replaced(name, column)",
        "X = TARGET",
        "esn().fit(X, TARGET)",
        "X.index.equals(DAYS) and X.shape == (40, 1)",
    ),
    Case(
        f"{READ}/sequences.py",
        "replaced(name, column)",
        "X = ROWS[:, 0].tolist()",
        "esn().fit(X, ROWS[:, 1])",
        "(X[:, 0] == ROWS[:, 0]).all()",
    ),
    Case(
        f"{READ}/sequences.py",
        "replaced(name, 'np.reshape(rows, (1, -1))')",
        "model = esn().fit(ROWS, ROWS[:, 0]); X = ROWS[0]",
        "model.predict(X)",
        "result.shape == (1,)",
    ),
    Case(
        f"{READ}/sequences.py",
        "'X = [rows.reshape(-1, 1) for rows in X]'",
        "X = [ROWS[:, 0], ROWS[:30, 1]]",
        "esn(ReservoirTransformer).fit_transform(X)",
        "len(result[1]) == 30",
    ),
    Case(
        f"{READ}/sequences.py",
        "'X = np.stack(X)'",
        "X = list(ROWS)",
        "esn().fit(X, ROWS[:, 0])",
        "(X == ROWS).all()",
    ),
    # --- whole sequences ------------------------------------------------------------------------
    Case(
        WHOLE,
        "'X = list(X.values())'",
        "X = dict(enumerate(CASES_OF_TWO))",
        "esn(ReservoirFeatures).fit(X)",
        "(X[7] == CASES_OF_TWO[7]).all()",
    ),
    Case(
        WHOLE,
        "'X = list(X)'",
        "X = iter(CASES_OF_TWO)",
        "esn(ReservoirFeatures).fit(X)",
        "(X[7] == CASES_OF_TWO[7]).all()",
    ),
    Case(
        WHOLE,
        "'X = [np.column_stack(list(cells)) for cells in X.to_numpy()]'",
        "X = pd.DataFrame({c: [rows[:, i] for rows in CASES_OF_TWO] for i, c in enumerate('uv')})",
        "esn(ReservoirFeatures).fit(X)",
        "(X[7] == CASES_OF_TWO[7]).all()",
    ),
    Case(
        WHOLE,
        "'X = [X]'",
        "model = esn(ReservoirFeatures).fit(CASES_OF_TWO); X = CASES_OF_TWO[0]",
        "model.transform(X)",
        "len(result) == 1",
    ),
    Case(
        PADDING,
        "f'X = [{rows}[{kept}] for rows in {each}]'",
        "X = np.stack(CASES_OF_TWO); X[1, 7:] = X[2, 9:] = np.nan",
        "esn(ESNSequenceClassifier).fit(X, KINDS)",
        "[len(rows) for rows in X] == [12, 7, 9, 12, 12, 12, 12, 12]",
    ),
    Case(
        PADDING,
        "f'X = [{rows}[{kept}] for rows in {each}]'",
        "X = [pd.DataFrame(rows).shift(i) for i, rows in enumerate(CASES_OF_TWO)]",
        "esn(ESNSequenceClassifier).fit(X, KINDS)",
        "[len(rows) for rows in X] == [12, 11, 10, 9, 8, 7, 6, 5]",
    ),
    Case(
        PADDING,
        "f'X = [{rows}[{kept}] for rows in {each}]'",
        "X = pd.DataFrame(np.stack(CASES_OF_TWO)[:, :, 0]); X.iloc[3, 8:] = np.nan",
        "esn(ESNSequenceClassifier).fit(X, KINDS)",
        "[len(rows) for rows in X] == [12, 12, 12, 8, 12, 12, 12, 12]",
    ),
    Case(
        PADDING,
        "f'X = [{rows}[{kept}] for rows in {each}]'",
        "X = [rows.copy() for rows in CASES_OF_TWO]; X[3][8:] = np.nan",
        "esn(RNNClassifier, target='last', max_iter=1).fit(X, KINDS)",
        "[len(rows) for rows in X] == [12, 12, 12, 8, 12, 12, 12, 12]",
    ),
    Case(
        PADDING,
        "'X = X.dropna(how=\"all\")'",
        "X = pd.concat(dict(enumerate(map(pd.DataFrame, CASES_OF_TWO))))\n"
        "X.loc[(3, 8):(3, 11)] = np.nan; X.columns = ['u', 'v']",
        "esn(ESNSequenceClassifier).fit(X, KINDS)",
        "len(X) == 92 and len(X.loc[3]) == 8",
    ),
    Case(
        PADDING,
        "f'X = X.dropna(how=\"all\", subset=X.columns.drop({X.columns[column]!r}))'",
        "X = TABLE.assign(id=np.repeat([1, 2], 20)); X.iloc[15:20, :2] = np.nan",
        "esn(ESNSequenceClassifier, sequence_column='id').fit(X, [0, 1])",
        "(X['id'] == 1).sum() == 15 and (X['id'] == 2).sum() == 20",
    ),
    Case(
        PADDING,
        "f'X = X[~np.isnan(np.delete(X, {column}, axis=1)).all(axis=1)]'",
        "X = np.column_stack([np.repeat([1, 2], 20), ROWS]); X[15:20, 1:] = np.nan",
        "esn(ESNSequenceClassifier, sequence_column=0).fit(X, [0, 1])",
        "(X[:, 0] == 1).sum() == 15 and (X[:, 0] == 2).sum() == 20",
    ),
    Case(
        PADDING,
        "_with_targets(X, y, column)",
        "X = np.column_stack([np.repeat([1, 2], 20), ROWS]); X[15:20, 1:] = np.nan\n"
        "y = [0] * 20 + [1] * 20",
        "esn(ESNSequenceClassifier, sequence_column=0).fit(X, y)",
        "len(X) == len(y) == 35 and y.sum() == 20",
    ),
    Case(
        PADDING,
        "_with_targets(X, y, column)",
        "X = TABLE.assign(id=np.repeat([1, 2], 20)); X.iloc[15:20, :2] = np.nan; y = X['id'] > 1",
        "esn(ESNSequenceClassifier, sequence_column='id').fit(X, y)",
        "len(X) == len(y) == 35 and y.equals(X['id'] > 1)",
    ),
    Case(
        PADDING,
        "f'X = [{rows}[{kept}] for rows in {each}]'",
        "pl = pytest.importorskip('polars')\n"
        "X = [pl.DataFrame(np.where(np.arange(12)[:, None] < n, rows, np.nan))\n"
        "     for n, rows in zip([12, 12, 12, 8, 12, 12, 12, 12], CASES_OF_TWO)]",
        "esn(ESNSequenceClassifier).fit(X, KINDS)",
        "[len(rows) for rows in X] == [12, 12, 12, 8, 12, 12, 12, 12]",
    ),
    Case(
        PADDING,
        "f'X = X.filter({_known_in_polars(X, column)})'",
        "pl = pytest.importorskip('polars')\n"
        "X = np.column_stack([np.repeat([1, 2], 20), ROWS]); X[15:20, 1:] = np.nan\n"
        "X = pl.DataFrame(X, ['id', 'u', 'v'])",
        "esn(ESNSequenceClassifier, sequence_column='id').fit(X, [0, 1])",
        "X['id'].to_list() == [1] * 15 + [2] * 20",
    ),
    Case(
        PADDING,
        "_with_targets(X, y, column)",
        "pl = pytest.importorskip('polars')\n"
        "X = np.column_stack([np.repeat([1, 2], 20), ROWS]); X[15:20, 1:] = np.nan\n"
        "X = pl.DataFrame(X, ['id', 'u', 'v']); y = X['id'] > 1",
        "esn(ESNSequenceClassifier, sequence_column='id').fit(X, y)",
        "len(X) == len(y) == 35 and y.sum() == 20",
    ),
]

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
READING = "estimators/reading.py"
WHOLE, STAMPS = f"{READ}/whole_series.py", "estimators/series/index_messages.py"
VALUES, FORECASTING = "estimators/series/tables.py", "estimators/forecasting"

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
        "estimators/esn/readout_training.py",
        "'alpha = \"auto\"'",
        "alpha, X, y = 1e-6, ROWS[:9], ROWS[:9, 0]",
        "esn(alpha=alpha, washout=0).fit(X, y)",
        "result.alpha_ in result.alphas_",
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
        READING,
        "'PerStep(StandardScaler())'",
        "X = [1e4 * ROWS] * 2; scaler = 'passthrough'",
        "make_pipeline(scaler, esn()).fit(X, [ROWS[:, 0]] * 2)",
        "type(scaler).__name__ == 'PerStep'",
        into="scaler",
    ),
    Case(
        READING,
        "keeps_index",
        "X = pd.concat({'a': 1e4 * TABLE, 'b': 1e4 * TABLE}); scaler = 'passthrough'",
        "make_pipeline(scaler, esn()).fit(X, np.tile(ROWS[:, 0], 2))",
        "len(result[-1].washout_) == 2",
        into="scaler",
    ),
    Case(
        READING,
        "scaler",
        "X = pd.concat({'a': 1e4 * TABLE, 'b': 1e4 * TABLE}, names=['id', None])\n"
        "X = X.reset_index('id'); scaler = 'passthrough'",
        "make_pipeline(scaler, esn(sequence_column='id')).fit(X, np.tile(ROWS[:, 0], 2))",
        "len(result[-1].washout_) == 2",
        into="scaler",
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
    # --- time ------------------------------------------------------------------------------------
    Case(
        STAMPS,
        "changed(name, f'rows.droplevel({list(range(index.nlevels - 1))})')",
        "y = pd.concat({'a': SALES})",
        "reading().fit(y)",
        "y.equals(SALES)",
    ),
    Case(
        STAMPS,
        "changed_index(name, 'index.total_seconds()')",
        "y = SALES.set_axis(pd.to_timedelta(np.arange(24) * 60, 's'))",
        "series().fit(y).forecast(1)",
        "result.index[0] == 24 * 60",
    ),
    Case(
        STAMPS,
        "changed(name, made)",
        "y = SALES[::-1].set_axis(MONTHS[::-1].strftime('%d.%m.%Y'))",
        "reading().fit(y)",
        "y.equals(SALES)",
    ),
    Case(
        STAMPS,
        "changed(name, made)",
        "y = [SALES, SALES[::-1].set_axis(MONTHS[::-1].date)]",
        "reading(panel='each').fit(y)",
        "y[1].equals(SALES)",
    ),
    Case(
        STAMPS,
        "changed_index(name, dates)",
        "y = SALES.set_axis(MONTHS.strftime('%Y-%m-%d'))",
        "reading().fit(y)",
        "(y.index == MONTHS).all()",
    ),
    Case(
        STAMPS,
        "changed_index(name, dates)",
        "y = SALES.set_axis(DAYS[:24].strftime('%d/%m/%Y'))",
        "reading().fit(y)",
        "(y.index == DAYS[:24]).all()",
    ),
    Case(
        STAMPS,
        "changed_index(name, dates)",
        "y = SALES.set_axis([f'{2000 + i // 4}-Q{1 + i % 4}' for i in range(24)])",
        "reading().fit(y)",
        "str(y.index[-1]) == '2005Q4'",
    ),
    Case(
        STAMPS,
        "changed_index(name, dates)",
        "hours = pd.date_range('2020-03-29', periods=24, freq='60min', tz='Europe/Berlin')\n"
        "y = SALES.set_axis(hours.map(str))",
        "reading().fit(y)",
        "(y.index == hours).all()",
    ),
    Case(
        STAMPS,
        "numbered(name)",
        "y = SALES.set_axis([f'row {i}' for i in range(24)])",
        "reading().fit(y)",
        "y.tolist() == SALES.tolist()",
    ),
    Case(
        STAMPS,
        "numbered(name)",
        "y = pd.concat({k: SALES.set_axis([f'row {i}' for i in range(24)]) for k in 'ba'})",
        "reading(panel='each').fit(y)",
        "list(y.index.unique(0)) == ['b', 'a'] and y.loc['a'].tolist() == SALES.tolist()",
    ),
    Case(
        STAMPS,
        "made",
        "y = SALES; exog = pd.Series(1.0, MONTHS.tz_localize('UTC'))",
        "reading().fit(y, exog=exog)",
        "(exog == 1).all() and len(exog) == 24",
    ),
    Case(
        STAMPS,
        "changed(name, f'rows.reindex({fill})')",
        "y = SALES.set_axis(MONTHS.to_period('M')).drop(pd.Period('2020-07'))",
        "reading().fit(y)",
        "len(y) == 24 and np.flatnonzero(y.isna()).tolist() == [6]",
    ),
    Case(
        STAMPS,
        "changed(name, f'rows.reindex({fill})')",
        "y = SALES.set_axis(range(1950, 2046, 4)).drop(1958)",
        "reading().fit(y)",
        "len(y) == 24 and np.flatnonzero(y.isna()).tolist() == [2]",
    ),
    Case(
        STAMPS,
        "changed(name, f'rows.asfreq({_offset(text)})')",
        "y = PANEL.drop(MONTHS[7])",
        "reading(panel='each', sequence_column='id').fit(y)",
        "y['id'].equals(PANEL['id']) and y['y'].isna().sum() == 2",
    ),
    Case(
        STAMPS,
        "changed(name, f'rows.asfreq({_offset(text)})')",
        "y = PANEL.set_index('id', append=True).swaplevel().drop(MONTHS[7], level=1)",
        "reading(panel='each').fit(y)",
        "list(y.index.unique(0)) == ['b', 'a'] and len(y) == 48 and y['y'].isna().sum() == 2",
    ),
    Case(
        STAMPS,
        "changed(name, f'rows.asfreq({_offset(text)})')",
        "y = [SALES, SALES.drop(MONTHS[7])]",
        "reading(panel='each').fit(y)",
        "y[0].equals(SALES) and np.flatnonzero(y[1].isna()).tolist() == [7]",
    ),
    Case(
        STAMPS,
        "changed_index(name, f'{wall}.to_period(\"{period}\")')",
        "y = SALES.set_axis(MONTHS + pd.to_timedelta(np.arange(24) * 5 % 9, 'D'))",
        "reading().fit(y)",
        "(y.index == MONTHS.to_period('M')).all() and y.tolist() == SALES.tolist()",
    ),
    Case(
        STAMPS,
        """changed_index(name, f'{aware}.tz_convert("{zone}")')""",
        "days = pd.date_range('2024-03-20', periods=24, tz='Europe/Berlin')\n"
        "y = SALES.set_axis(pd.DatetimeIndex(list(days.tz_convert('UTC'))))",
        "reading().fit(y)",
        "(y.index == days).all() and (y.index.hour == 0).all()",
    ),
    Case(
        STAMPS,
        "changed(name, f'rows.resample({bins}).mean()')",
        "days = pd.Timestamp('2024-01-02') + pd.to_timedelta(np.cumsum([5, 7, 3] * 8), 'D')\n"
        "y = SALES.set_axis(days)",
        "reading().fit(y)",
        "(y.index.day_of_week == 0).all() and y.index[0] <= days[0] and y.notna().all()",
    ),
    Case(
        "estimators/series/calendar.py",
        "changed(name, f'rows.iloc[{known}:]')",
        "model = series().fit(SALES[:20]); y = SALES[18:]",
        "model.update(y)",
        "y.equals(SALES[20:])",
    ),
    Case(
        STAMPS,
        "changed(name, picked)",
        "y = SALES[4:]; exog = pd.Series(np.arange(24.0) % 5, MONTHS)",
        "reading().fit(y, exog=exog)",
        "exog.index.equals(y.index)",
    ),
    Case(
        STAMPS,
        "'y = y.loc[exog.index]'",
        "y = SALES; exog = pd.Series(np.arange(24.0) % 5, MONTHS)[3:]",
        "reading().fit(y, exog=exog)",
        "y.index.equals(exog.index)",
    ),
    Case(
        STAMPS,
        "changed(name, picked)",
        "known = pd.Series(np.arange(24.0) % 5, MONTHS)\n"
        "model = series().fit(SALES[:12], exog=known[:12]); exog = known",
        "model.forecast(5, exog=exog)",
        "exog.equals(known[12:17])",
    ),
    Case(
        "estimators/series/calendar.py",
        "changed_index(name, utc)",
        "class Own(datetime.tzinfo):\n"
        "    def utcoffset(self, moment): return datetime.timedelta(hours=1)\n"
        "    def dst(self, moment): return datetime.timedelta(0)\n"
        "    def tzname(self, moment): return 'own'\n"
        "hours = pd.date_range('2020-01-01', periods=24, freq='60min', tz=Own())\n"
        "y = SALES.set_axis(hours)",
        "reading().fit(y)",
        "(y.index == hours).all()",
    ),
    Case(
        VALUES,
        "replaced(holder, moved)",
        "y = SALES.reset_index(drop=True).to_frame('y').assign(day=MONTHS.strftime('%d.%m.%Y'))",
        "reading().fit(y)",
        "y.index.equals(MONTHS) and list(y) == ['y']",
    ),
    Case(
        "model_selection/_backtest_plan.py",
        "f'results = {each} if len(rows) >= {fewest}}}'",
        "y = PANEL.set_axis(PANEL.index); model = series(panel='each', sequence_column='id')\n"
        "y = pd.concat([y, y[:9].assign(id='short')])",
        "backtest(model, y, horizon=3, n_origins=2)",
        "sorted(results) == ['a', 'b'] and len(results['a'].scores) == 2",
        instead=True,
    ),
    Case(
        "model_selection/_backtest_plan.py",
        "f'results = {each} if len(rows) >= {fewest}}}'",
        "y = pd.concat({'b': SALES, 'a': SALES}); model = series(panel='each')",
        "backtest(model, y, horizon=3, n_origins=2, step=1)",
        "sorted(results) == [('a',), ('b',)] and len(results['a',].scores) == 2",
        instead=True,
    ),
    *(
        Case(
            "estimators/series/checks.py",
            "f'y = {made}'",
            data,
            f"reading(panel='each'{ids}).fit(y)",
            check,
        )
        for data, ids, check in (
            ("y = [SALES, SALES[:4], SALES[:3]]", "", "len(y) == 1"),
            (
                "y = pd.concat({'b': SALES, 'a': SALES[:4]})",
                "",
                "set(y.index.get_level_values(0)) == {'b'}",
            ),
            ("y = PANEL[:28]", ", sequence_column='id'", "y.equals(PANEL[:24])"),
            ("y = pd.DataFrame({'a': SALES, 'b': SALES[:4]})", "", "list(y) == ['a']"),
        )
    ),
    # --- values of series ------------------------------------------------------------------------
    Case(
        "estimators/series/panel.py",
        "'exog = pd.DataFrame(exog)'",
        "y = SALES; exog = {'a': np.arange(24.0) % 5}",
        "reading().fit(y, exog=exog)",
        "exog['a'].iloc[3] == 3",
    ),
    Case(
        "estimators/series/containers.py",
        "change(name, f'rows[{[*ids, *self.names]!r}]')",
        "exog = pd.DataFrame({'a': np.arange(30) % 5, 'b': np.arange(30) % 2})\n"
        "model = series().fit(SALES, exog=exog[:24]); exog = exog[['b', 'a']][:6]",
        "model.forecast(6, exog=exog)",
        "list(exog) == ['a', 'b']",
    ),
    Case(
        "estimators/series/containers.py",
        "change(name, f'rows[{[*ids, *self.names]!r}]')",
        "pl = pytest.importorskip('polars')\n"
        "y = pl.DataFrame({'id': [1] * 24, 'a': SALES.to_numpy()})\n"
        "exog = pl.DataFrame({'id': [1] * 30, 'b': np.arange(30) % 5, 'c': np.arange(30) % 2})\n"
        "model = series(panel='each', sequence_column='id').fit(y, exog=exog[:24])\n"
        "exog = exog[['id', 'c', 'b']][:6]",
        "model.forecast(6, exog=exog)",
        "exog.columns == ['id', 'b', 'c']",
    ),
    Case(
        "estimators/series/tables.py",
        "f'{name} = list({name}.values())'",
        "y = {'b': SALES, 'a': SALES}",
        "reading(panel='each').fit(y)",
        "y[1].equals(SALES)",
    ),
    Case(
        "estimators/series/tables.py",
        "f'{name} = pd.concat({name})'",
        "y = {'b': SALES, 'a': SALES}",
        "reading(panel='each').fit(y)",
        "y.loc['a'].equals(SALES)",
    ),
    Case(
        VALUES,
        "replaced(holder, f'pd.get_dummies(rows, {columns}dtype=float)')",
        "y = SALES\n"
        "day = pd.Categorical(['x', 'y'] * 12, ordered=True)\n"
        "exog = pd.DataFrame({'a': 0.5, 'day': day}, MONTHS)",
        "reading().fit(y, exog=exog)",
        "exog.iloc[1].tolist() == [0.5, 0, 1] and exog.index.equals(MONTHS)",
    ),
    Case(
        VALUES,
        "replaced(holder, as_category(label))",
        "y = SALES; exog = pd.Series(['x', 'y'] * 12, MONTHS)",
        "reading().fit(y, exog=exog)",
        "list(exog.cat.categories) == ['x', 'y']",
    ),
    Case(
        VALUES,
        "replaced(holder, as_category(label))",
        "y = [SALES] * 2; exog = [pd.DataFrame({'day': ['x', 'y'] * 12}, MONTHS)] * 2",
        "reading(panel='each').fit(y, exog=exog)",
        "list(exog[1]['day'].cat.categories) == ['x', 'y']",
    ),
    Case(
        "estimators/series/known_inputs.py",
        "replaced(name, as_category(label, polars=is_polars(column)))",
        "exog = pd.DataFrame({'day': pd.Categorical(['x', 'y'] * 15)})\n"
        "model = series().fit(SALES, exog=exog[:24]); exog = exog[:6].astype(object)",
        "model.forecast(6, exog=exog)",
        "list(exog['day'].cat.categories) == ['x', 'y']",
    ),
    Case(
        VALUES,
        "replaced(name, made)",
        "pl = pytest.importorskip('polars')\n"
        "y = SALES; exog = pl.DataFrame({'day': ['x', 'y'] * 12})",
        "reading().fit(y, exog=exog)",
        "exog['day'].dtype == pl.Categorical",
    ),
    Case(
        VALUES,
        "replaced(holder, f'rows.drop(columns=[{label!r}])')",
        "y = [TABLE.assign(city='a')] * 2",
        "ESNForecaster(search=[{'n_units': 5}], n_networks=1).fit(y)",
        "y[1].equals(TABLE)",
    ),
    Case(
        VALUES,
        "replaced(holder, f'rows.drop(columns=[{label!r}])')",
        "y = PANEL.assign(city=PANEL['id'])",
        "reading(panel='each', sequence_column='id').fit(y)",
        "y.equals(PANEL)",
    ),
    Case(
        VALUES,
        "replaced(holder, made)",
        "y = SALES; exog = np.array([[0.5, 'x'], [1.5, 'y']] * 12, dtype=object)",
        "reading().fit(y, exog=exog)",
        "exog.iloc[1].tolist() == [1.5, 'y']",
    ),
    Case(
        VALUES,
        "f'{column} = {known}.astype(float)'",
        "y = SALES.map(str); y.iloc[[3, 5]] = 'n/a'",
        "reading().fit(y)",
        "y.dropna().equals(SALES.drop(MONTHS[[3, 5]]))",
    ),
    Case(
        VALUES,
        "f'{column} = {known}.astype(float)'",
        "y = SALES; exog = pd.DataFrame({'a': np.arange(24).astype(str)}, MONTHS)",
        "reading().fit(y, exog=exog)",
        "exog['a'].tolist() == list(range(24))",
    ),
    Case(
        VALUES,
        "f'{column} = {known}.astype(float)'",
        "y = pd.DataFrame({'a': SALES, 'b': SALES.map(str)})",
        "reading(panel='each').fit(y)",
        "y['b'].equals(y['a'])",
    ),
    Case(
        VALUES,
        "f'{holder} = np.asarray({known}, dtype=float)'",
        "y = [*map(str, SALES), 'n/a']",
        "reading().fit(y)",
        "y[:-1].tolist() == SALES.tolist() and np.isnan(y[-1])",
    ),
    Case(
        VALUES,
        "of_polars(name, f'rows.drop({column.name!r})')",
        "pl = pytest.importorskip('polars')\n"
        "y = pl.DataFrame({'a': SALES.to_numpy(), 'b': ['x'] * 24})",
        "reading().fit(y)",
        "y.columns == ['a']",
    ),
    Case(
        VALUES,
        "of_polars(name, f'rows.drop({column.name!r})')",
        "pl = pytest.importorskip('polars')\n"
        "y = pl.DataFrame({'id': [1] * 24, 'a': SALES.to_numpy(), 'b': DAYS[:24].to_numpy()})",
        "reading(panel='each', sequence_column='id').fit(y)",
        "y.columns == ['id', 'a']",
    ),
    Case(
        VALUES,
        "of_polars(name, f'rows.to_pandas().set_index({column.name!r})')",
        "pl = pytest.importorskip('polars'); pytest.importorskip('pyarrow')\n"
        "y = pl.DataFrame({'a': SALES.to_numpy(), 'b': MONTHS.to_numpy()})",
        "reading().fit(y)",
        "(y.index == MONTHS).all()",
    ),
    # --- forecasts -------------------------------------------------------------------------------
    Case(
        f"{FORECASTING}/pipeline.py",
        "f'X = X[:, {order}]'",
        "X, y = ROWS[:-1, ::-1], ROWS[1:, 0]",
        "esn().fit(X, y).forecast(3, exog=np.zeros((3, 1)))",
        "(X == ROWS[:-1]).all()",
    ),
    Case(
        f"{FORECASTING}/pipeline.py",
        "f'X = X[{[str(self.names[column]) for column in order]}]'",
        "X, y = TABLE[['v', 'u']][:-1], TABLE['u'][1:]",
        "esn().fit(X, y).forecast(3, exog=np.zeros((3, 1)))",
        "list(X) == ['u', 'v']",
    ),
    Case(
        "estimators/series/esn_forecaster.py",
        "'model.forecast(n_steps=12)'",
        "model = series().fit(SALES)",
        "model.predict",
        "len(result) == 12",
        instead=True,
    ),
    Case(
        "estimators/series/esn_forecaster.py",
        "'reservoir.model_selection.backtest(model, y, horizon=12)'",
        "model, y = series(), np.sin(np.arange(150) / 5)",
        "model.score",
        "len(result.errors) == 12 * 5",
        instead=True,
        slow=True,
    ),
    Case(
        "estimators/series/esn_forecaster.py",
        "'reservoir.plotting.forecast(model, 12, coverage=0.9)'",
        "plt = pytest.importorskip('matplotlib.pyplot'); plt.switch_backend('agg')\n"
        "model = series().fit(SALES)",
        "model.plot",
        "result.get_lines() and plt.close('all') is None",
        instead=True,
    ),
    Case(
        f"{FORECASTING}/pipeline.py",
        "'reservoir.forecast(pipe, n_steps)'",
        "pipe, n_steps = make_pipeline(StandardScaler(), esn()), 3\n"
        "pipe.fit(ROWS[:-1, :1], ROWS[1:, 0])",
        "pipe[-1].forecast(n_steps)",
        "result.shape == (3,)",
        instead=True,
    ),
    Case(
        f"{FORECASTING}/pipeline.py",
        "f'{name} = {name}.to_numpy()'",
        "model = esn().fit(TABLE[:-1], TABLE['u'][1:]); exog = pd.DataFrame({'w': np.ones(3)})",
        "model.forecast(3, exog=exog)",
        "exog.tolist() == [[1], [1], [1]]",
    ),
    Case(
        f"{FORECASTING}/filling.py",
        "'exog = exog.loc[y.index]'",
        "y = TARGET.where(np.arange(40) != 9); exog = TABLE[['v']][::-1]",
        "fill_gaps(y, esn(), exog=exog, min_rows=5)",
        "exog.equals(TABLE[['v']])",
    ),
    Case(
        f"{FORECASTING}/filling.py",
        "'exog = exog.set_axis(y.index)'",
        "y = TARGET.where(np.arange(40) != 9); exog = TABLE[['v']].set_axis(DAYS + DAYS.freq)",
        "fill_gaps(y, esn(), exog=exog, min_rows=5)",
        "exog.equals(TABLE[['v']])",
    ),
    Case(
        f"{FORECASTING}/predictor.py",
        "'model.forecast(n_steps)'",
        "model = series().fit(SALES); n_steps = 3",
        "reservoir.forecast(model, n_steps)",
        "len(result) == 3",
        instead=True,
    ),
    Case(
        f"{FORECASTING}/predictor.py",
        "'model.sample(n_steps)'",
        "model, n_steps = SPEAKER, 3",
        "reservoir.forecast(model, n_steps)",
        "len(result) == 3",
        instead=True,
    ),
    Case(
        "estimators/rnn/symbols.py",
        "pairs",
        "symbols = SYMBOLS; X, y = np.zeros((23, 1)), symbols[1:]",
        "RNNClassifier(5, max_iter=1, random_state=0).fit(X, y).sample(3)",
        "X.shape == (23, 3) and len(result) == 3",
    ),
    Case(
        "estimators/rnn/symbols.py",
        "'context = list(context)'",
        "context = 'abc'",
        "SPEAKER.sample(3, context=context)",
        "context == ['a', 'b', 'c']",
    ),
    Case(
        "estimators/reading.py",
        "numbered",
        "X = np.array([[7], [3], [9]] * 8); y = SYMBOLS",
        "RNNClassifier(5, n_symbols=3, max_iter=1).fit(X, y)",
        "X[:3].tolist() == [[1], [0], [2]]",
    ),
    Case(
        "estimators/reading.py",
        "numbered",
        "X = [np.array([[7], [3]] * 8), np.array([[3], [9]] * 8)]; y = [SYMBOLS[:16]] * 2",
        "RNNClassifier(5, n_symbols=3, max_iter=1).fit(X, y)",
        "X[1][:2].tolist() == [[0], [2]]",
    ),
    Case(
        "estimators/rnn/start.py",
        "registered",
        "activation = dataclasses.replace(get_activation('tanh'), name='own')",
        "RNNRegressor(5, activation=activation, max_iter=1).fit(ROWS, ROWS[:, 0])",
        "reservoir.activations.ACTIVATIONS.pop('own') is activation",
    ),
    # --- other arguments -------------------------------------------------------------------------
    Case(
        "_weights.py",
        "'scipy.stats.uniform(-1, 2)'",
        "weights = 3",
        "build_reservoir(5, 1, weights=weights, random_state=0)",
        "abs(result.W).max() > 0",
        into="weights",
    ),
    Case(
        "drawing.py",
        "f'topology, spectral_radius = {scaled}, None'",
        "topology, spectral_radius = np.eye(5, k=1), 0.5",
        "build_reservoir(5, 1, topology=topology, spectral_radius=spectral_radius)",
        "np.linalg.norm(topology, 2).round(6) == 0.5",
    ),
    Case(
        "dynamics/held_reservoir.py",
        "f'model = model{found[0]}'",
        "model = make_pipeline(StandardScaler(), esn()).fit(ROWS, ROWS[:, 0])",
        "lyapunov_exponents(model, ROWS)",
        "isinstance(model, ESNRegressor)",
    ),
    Case(
        "dynamics/held_reservoir.py",
        "f'model = model{found[0]}'",
        "model = esn(ESNSequenceClassifier).fit([rows[:, :1] for rows in CASES_OF_TWO], KINDS)",
        "memory_capacity(model, max_lag=3, n_train=50, n_test=50, washout=5)",
        "isinstance(model, ReservoirFeatures)",
    ),
    Case(
        "dynamics/open_loop.py",
        "replaced(name, f'np.reshape(rows, {rows})')",
        "model = esn().fit(ROWS[:, :1], ROWS[:, 1]); X = ROWS[:, 0].tolist()",
        "lyapunov_exponents(model, X)",
        "X.shape == (40, 1)",
    ),
    Case(
        "dynamics/open_loop.py",
        "replaced(name, f'np.reshape(rows, {rows})')",
        "model = esn().fit(ROWS, ROWS[:, 1]).reservoir_; X = ROWS[0]",
        "run_reservoir(model, X)",
        "result.shape == (1, 5)",
    ),
    Case(
        "estimators/progress.py",
        "'session.reset()'",
        "session = esn().fit(TABLE[:20], TARGET[:20]).stream(); session.predict(TABLE[20:25])",
        "session.predict(TABLE[30:])",
        "result.shape == (10,)",
    ),
    Case(
        "estimators/session.py",
        "'session.reset()'",
        "X = TABLE.assign(id=np.repeat([1, 2], 20))\n"
        "session = esn(sequence_column='id').fit(X, TARGET).stream(); session.predict(X[:20])",
        "session.predict(X[20:])",
        "result.shape == (20,)",
    ),
    Case(
        "estimators/esn/force.py",
        "'model.set_params(feedback=True)'",
        "model, y = esn(), np.sin(np.arange(200) / 5)",
        "force_train(model, y)",
        "model.feedback",
    ),
    Case(
        "readouts/loop_trained.py",
        "'reservoir.force_train(model, y)'",
        "y = np.sin(np.arange(200) / 5); model = force_train(esn(feedback=True), y)",
        "model.partial_fit(np.zeros((200, 0)), y)",
        "result.n_outputs_ == 1",
        instead=True,
    ),
    Case(
        "estimators/sequences/sequence_readout.py",
        "'y = y.loc[X.index]'",
        "ids = pd.MultiIndex.from_product([['b', 'a'], range(20)]); X = TABLE.set_axis(ids)\n"
        "y = pd.Series(np.repeat([1, 0], 20), ids).sort_index()",
        "esn(ESNSequenceClassifier).fit(X, y)",
        "y.index.equals(X.index) and y.iloc[0] == 1",
    ),
    Case(
        "model_selection/_backtest_plan.py",
        "'exog = exog.loc[y.index]'",
        "y = SALES; exog = pd.Series(np.arange(24.0) % 5, MONTHS)[::-1]",
        "backtest(series(), y, horizon=1, n_origins=1, exog=exog)",
        "exog.index.equals(MONTHS)",
    ),
    Case(
        "model_selection/_backtest_plan.py",
        "'exog = exog.set_axis(y.index)'",
        "y = SALES; exog = pd.Series(np.arange(24.0) % 5, MONTHS + pd.Timedelta(days=1))",
        "backtest(series(), y, horizon=1, n_origins=1, exog=exog)",
        "exog.index.equals(MONTHS) and exog.iloc[3] == 3",
    ),
    Case(
        "model_selection/_containers.py",
        "'X = [np.atleast_2d(rows) for rows in X]'",
        "X = [ROWS[:, 0], ROWS[:9, 1]]",
        "from_channels_first(X)",
        "[rows.shape for rows in result] == [(40, 1), (9, 1)]",
    ),
    Case(
        "model_selection/_containers.py",
        "'Xs = [np.reshape(rows, (-1, 1)) for rows in Xs]'",
        "Xs = [ROWS[:, 0], ROWS[:9, 1]]",
        "stack_sequences(Xs)",
        "result[0].shape == (49, 2)",
    ),
    Case(
        "model_selection/_forecast_pairs.py",
        "'exog = exog.set_axis(series.index)'",
        "series = TARGET; exog = TABLE[['v']].reset_index(drop=True)",
        "make_forecast_pairs(series, exog=exog)",
        "exog.equals(TABLE[['v']])",
    ),
    Case(
        "model_selection/_forecast_pairs.py",
        "f'exog = exog.rename(columns={{{twice[0]!r}: {new!r}}})'",
        "series = TARGET.rename('v'); exog = TABLE[['v']]",
        "make_forecast_pairs(series, exog=exog)",
        "list(result[0]) == ['v', 'v_known'] and (exog.to_numpy() == TABLE[['v']]).all(axis=None)",
    ),
    Case(
        "plotting/_overview.py",
        "'plotting.overview(model, X, y)'",
        "plt = pytest.importorskip('matplotlib.pyplot'); plt.switch_backend('agg')\n"
        "from reservoir import plotting\n"
        "X, y = ROWS, ROWS[:, 0]; model = reservoir.ESNRegressor(10, random_state=0).fit(X, y)",
        "plotting.overview(model)",
        "len(result) > 3 and plt.close('all') is None",
        instead=True,
    ),
    Case(
        "plotting/_picture.py",
        "'fig, ax = plt.subplots()'",
        "plt = pytest.importorskip('matplotlib.pyplot'); plt.switch_backend('agg')\n"
        "ax = plt.figure().add_subplot(projection='3d')",
        "reservoir.plotting.memory_profile([1.0, 0.5], ax=ax)",
        "result is ax and plt.close('all') is None",
    ),
    Case(
        "plotting/_residuals.py",
        "'plotting.residuals(model, X, y)'",
        "plt = pytest.importorskip('matplotlib.pyplot'); plt.switch_backend('agg')\n"
        "from reservoir import plotting\n"
        "X, y = ROWS, ROWS[:, 0]; model = reservoir.ESNRegressor(10, random_state=0).fit(X, y)",
        "plotting.residuals(model)",
        "len(result) == 2 and plt.close('all') is None",
        instead=True,
    ),
    Case(
        "scaling/_radius.py",
        "'W = reservoir.scaling.scale_to_norm(W, 0.9)'",
        "W = reservoir.topologies.toeplitz(300, diagonals={-2: -1.0, -1: 1.0, 0: 0.5, 1: 0.3})",
        "reservoir.scaling.scale_to_spectral_radius(W, 0.9)",
        "abs(reservoir.scaling.scale_to_norm(W, 0.9) - W).max() < 1e-9",
        instead=True,
        slow=True,
    ),
    Case(
        "scaling/_scale.py",
        "f'W = reservoir.scaling.scale_to_norm(W, {radius:g})'",
        "W = 3 * np.eye(5, k=1)",
        "reservoir.scaling.scale_to_spectral_radius(W, 0.9)",
        "np.linalg.norm(W, 2).round(6) == 0.9",
        instead=True,
    ),
    Case(
        "stability/_sweep.py",
        "example",
        "parameters = ['spectral_radius']; model = build_reservoir(5, 1, random_state=0)",
        "sweep(model, [[0.5]], parameters, n_initial_states=2, n_periods=20)",
        "result.counts.shape == (2,)",
    ),
    Case(
        "stability/proofs/_certificate.py",
        "'certificate.covers_inputs(X)'",
        "certificate = dataclasses.replace(PROVED, shared=True)\n"
        "X = np.zeros((3, 1)); drive = np.zeros((3, 5))",
        "certificate.covers(drive)",
        "result is True",
        instead=True,
    ),
    Case(
        "stability/proofs/_certificate.py",
        "'certificate.covers(drive)'",
        "certificate = dataclasses.replace(PROVED, input_range=None)\n"
        "X = np.zeros((3, 1)); drive = np.zeros((3, 5))",
        "certificate.covers_inputs(X)",
        "result is True",
        instead=True,
    ),
    Case(
        "stability/proofs/_certify.py",
        "bounds",
        "model, input_range = SMALL, ([-1.0], [1.0]); drive_min = drive_max = np.zeros(5)",
        "certify(model, drive_min, drive_max, input_range=input_range)",
        "(result.drive_max > 0).all()",
    ),
    Case(
        "stability/proofs/_conditions.py",
        "f'echo_state_conditions({source}.W, {source}.leak_rate)'",
        "model = esn().fit(ROWS, ROWS[:, 0])",
        "echo_state_conditions(model)",
        "result.spectral_radius < 1",
        instead=True,
    ),
    Case(
        "stability/proofs/_conditions.py",
        "f'echo_state_conditions({source}.W, {source}.leak_rate)'",
        "model = SMALL",
        "echo_state_conditions(model)",
        "result.spectral_radius < 1",
        instead=True,
    ),
    Case(
        "training/jacobian_products.py",
        "'singular_values = np.linalg.svd(J, compute_uv=False)'",
        "J = np.eye(64); singular_values = -J",
        "reservoir.training.jacobian_products.unrelated_growth(singular_values)",
        "np.shape(result) == ()",
    ),
    Case(
        "training/schedules.py",
        "f'schedule = reservoir.training.schedules.constant({schedule!r})'",
        "schedule = 0.1",
        "reservoir.training.schedules.linear_warmup(schedule, 3)",
        "result(10) == 0.1",
    ),
]

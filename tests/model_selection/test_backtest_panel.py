"""backtest of several series, in the containers of ESNForecaster, against each of them alone."""

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from sklearn.base import BaseEstimator  # noqa: E402

from reservoir import ESNForecaster, SeasonalNaive  # noqa: E402
from reservoir.model_selection import backtest  # noqa: E402

pytestmark = pytest.mark.both_engines

MONTHS = pd.date_range("2020-01-31", periods=40, freq=pd.offsets.MonthEnd(), name="ds")


def series(seed, n=30):
    rng = np.random.default_rng(seed)
    wave = 3 * np.sin(np.arange(n) * np.pi / 6)
    return pd.Series(20 + wave + rng.normal(size=n), MONTHS[:n], name="y")


PARTS = {"b": series(0), "a": series(1, 26), "c": series(2, 24)}
TALL = pd.concat(PARTS, names=["id", "ds"])
LONG = TALL.reset_index()
COLUMNS = {"sequence_column": "id", "time_column": "ds", "target_column": "y"}
FEW = {"horizon": 3, "n_origins": 2, "season": 12}


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("container", ["levels", "list", "ids", "three columns", "array"])
def test_each_series_is_scored_as_alone(container):
    y, options = {
        "levels": (TALL, {"panel": "each"}),
        "list": (list(PARTS.values()), {"panel": "each"}),
        "ids": (TALL.reset_index(0), {"sequence_column": "id"}),
        "three columns": (LONG.sample(frac=1, random_state=0), COLUMNS),
        "array": (np.column_stack([np.repeat([2, 0, 1], [30, 26, 24]), TALL]),
                  {"panel": "each", "sequence_column": 0}),
    }[container]  # fmt: skip
    calls = FEW | {"coverage": 0.8, "metrics": ["mase", "rmsse", "mae", "smape"]}
    result = backtest(SeasonalNaive(12, **options), y, **calls)
    ids = list(result.by_series().index)
    due = {"list": [0, 1, 2], "array": [2, 0, 1]}.get(container, ["b", "a", "c"])
    assert sorted(ids) == sorted(due)
    for key, part in zip(due, PARTS.values(), strict=True):
        given = part.to_numpy() if container == "array" else part
        alone = backtest(SeasonalNaive(12), given, **calls)
        one = result.select(key)
        for name in ("scores", "scales", "errors", "forecasts"):
            mine, other = getattr(one, name), getattr(alone, name)
            # a column of dates may have another unit
            assert list(mine.index.astype(str)) == list(other.index.astype(str))
            numbers = mine.select_dtypes("number").columns.drop("column", errors="ignore")
            np.testing.assert_array_equal(mine[numbers], other[numbers])
        pd.testing.assert_series_equal(
            result.by_series().loc[key], alone.scores.mean(), check_names=False
        )
        pd.testing.assert_frame_equal(one.by_horizon(), alone.by_horizon())
    assert repr(result).startswith("BacktestResult of 2 origins of 3 series, horizon 3, season 12")
    summary = result.summary()
    pd.testing.assert_series_equal(
        summary["median"], result.by_series().median(), check_names=False
    )


def test_tables_of_polars_are_scored_as_those_of_pandas(polars):
    model = SeasonalNaive(12, **COLUMNS)
    tables = LONG, polars.DataFrame(LONG.to_dict("list"))
    scores, others = (backtest(model, each, **FEW).by_series() for each in tables)
    np.testing.assert_array_equal(scores, others)


def test_the_table_by_horizon_against_a_naive_loop():
    metrics = ["mase", "rmsse", "mae", "rmse", "smape"]
    result = backtest(SeasonalNaive(12, panel="each"), TALL, **FEW, metrics=metrics, coverage=0.5)
    table = result.by_horizon()
    assert list(table.columns) == ["mase", "rmsse", "mae", "rmse", "coverage 0.5", "width 0.5"]
    for step in (1, 2, 3):
        of_series = []
        for part in PARTS.values():
            errors, sizes, roots = [], [], []
            for origin in (len(part) - 6, len(part) - 3):
                train = part.to_numpy()[:origin]
                error = abs(part.iloc[origin + step - 1] - train[origin + step - 1 - 12])
                errors.append(error)
                sizes.append(error / abs(train[12:] - train[:-12]).mean())
                roots.append(error / np.sqrt(((train[12:] - train[:-12]) ** 2).mean()))
            square = np.sqrt(np.mean(np.square(roots))), np.sqrt(np.mean(np.square(errors)))
            of_series.append([np.mean(sizes), square[0], np.mean(errors), square[1]])
        np.testing.assert_allclose(table.loc[step, metrics[:4]], np.mean(of_series, axis=0))
    inside = result.forecasts
    inside = (inside["lower 50%"] <= inside["truth"]) & (inside["truth"] <= inside["upper 50%"])
    assert table["coverage 0.5"].mean() == pytest.approx(inside.mean())


class Known(BaseEstimator):
    """A forecaster of panels by duck typing: the sum of the known input and of the last value."""

    def __init__(self, panel=None, sequence_column=None, time_column=None, target_column=None):
        self.panel, self.sequence_column = panel, sequence_column
        self.time_column, self.target_column = time_column, target_column

    def fit(self, y, exog=None):
        assert isinstance(y, list)
        self.last = [np.ravel(part)[-1] for part in y]
        self.seen = [len(part) for part in y]
        assert exog is None or self.seen == [len(part) for part in exog]
        return self

    def update(self, y, exog=None):
        self.last = [np.ravel(part)[-1] for part in y]
        self.seen = [n + len(part) for n, part in zip(self.seen, y, strict=True)]

    def forecast(self, n_steps, exog):
        assert [len(part) for part in exog] == [n_steps] * len(self.last)
        return [last + np.ravel(part) for last, part in zip(self.last, exog, strict=True)]


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("how", ["columns", "levels", "list", "one for all"])
def test_known_inputs_of_each_series(how):
    known = {key: part * 0.1 for key, part in PARTS.items()}
    tables, exog = list(PARTS.values()), list(known.values())
    y, options = tables, {"panel": "each"}
    if how == "columns":
        y, exog, options = (
            LONG.assign(x=0.1 * LONG["y"]).sample(frac=1, random_state=1),
            None,
            COLUMNS,
        )
    elif how == "levels":
        y, exog = TALL, pd.concat({key: known[key] for key in "abc"})
    elif how == "one for all":
        y, exog = [tables[0], tables[0] + 1], exog[0].to_numpy()
    for refit in (True, False):
        result = backtest(Known(**options), y, exog=exog, **FEW, refit=refit)
        first = result.forecasts[result.forecasts["series"].isin(["b", 0])]
        values = PARTS["b"].to_numpy()
        wanted = [values[o - 1] + 0.1 * values[o : o + 3] for o in (24, 27)]
        np.testing.assert_allclose(first["forecast"], np.ravel(wanted))
    few = backtest(Known(**options), y, exog=exog, **FEW | {"season": 1}, window=5, metrics="mae")
    assert len(few.scores) == 2 * (2 if how == "one for all" else 3)


def test_series_that_fail_are_left_out_of_scores():
    parts = PARTS | {"gap": series(3).drop(MONTHS[4])}
    y = pd.concat(parts, names=["id", "ds"]).reset_index()
    y = y[y.groupby("id").cumcount(ascending=False) < 14]
    model = ESNForecaster(**COLUMNS, n_networks=1, random_state=0, errors="warn")
    calls = {"horizon": 2, "n_origins": 1, "season": 1}
    y.loc[y["id"] == "gap", "ds"] -= pd.to_timedelta(y["y"] // 3, unit="D")
    with pytest.warns(UserWarning, match="1 of 4 series could not be fitted"):
        result = backtest(model, y, **calls)
    assert sorted(result.by_series().index) == ["a", "b", "c"]
    model = ESNForecaster(panel="shared", n_networks=1, random_state=0)
    joint = backtest(model, [part[-14:] for part in PARTS.values()], **calls)
    own = model.fit([part[-14:-2] for part in PARTS.values()]).forecast(2)
    np.testing.assert_array_equal(joint.forecasts["forecast"], np.concatenate(own))


def test_one_of_several_series_is_drawn():
    plotting = pytest.importorskip("reservoir.plotting")
    pytest.importorskip("matplotlib")
    result = backtest(SeasonalNaive(12, panel="each"), TALL, **FEW)
    with pytest.raises(ValueError, match=r"result has 3 series.*result\.select"):
        plotting.horizon_errors(result)
    ax = plotting.horizon_errors(result.select("c"))
    low = np.abs(result.select("c").errors["error"].to_numpy()).reshape(2, 3)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), np.median(low, axis=0))


def test_one_series_with_a_column_of_times():
    table = PARTS["b"].reset_index().sample(frac=1, random_state=0)
    result = backtest(SeasonalNaive(12, time_column="ds", target_column="y"), table, **FEW)
    alone = backtest(SeasonalNaive(12), PARTS["b"], **FEW)
    np.testing.assert_array_equal(result.scores, alone.scores)
    with pytest.raises(ValueError, match="The backtest is of one series"):
        alone.by_series()
    with pytest.raises(ValueError, match="no series 'b'"):
        alone.select("b")


@pytest.mark.parametrize(
    "y, options, message",
    [
        (pd.concat(PARTS | {"d": series(4, 9)}), {}, "Series 'd': n_origins=2.*but y has 9"),
        (TALL, {"exog": TALL.loc[["a", "b"]]}, "exog has no rows of series 'c'"),
        (TALL, {"metrics": "mase", "season": 24}, "Series 'b': n_origins=2"),
    ],
)
def test_errors_name_the_series(y, options, message):
    model = Known(panel="each") if "exog" in options else SeasonalNaive(12, panel="each")
    with pytest.raises(ValueError, match=message):
        backtest(model, y, **FEW | options)

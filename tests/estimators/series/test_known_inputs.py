"""Categories in known inputs of ESNForecaster."""

import re

import numpy as np
import pytest

from helpers.series import quick
from reservoir import ESNForecaster, load, save
from reservoir.estimators.series.known_inputs import as_numbers, categories_of, indicators

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.one_engine

RNG = np.random.default_rng(0)
DAYS = pd.date_range("2024-01-01", periods=60)
KINDS = ["fog", "rain", "sun"]
WEATHER = RNG.choice(KINDS, 60)
EXOG = pd.DataFrame({"price": RNG.random(60), "weather": pd.Categorical(WEATHER)}, DAYS)
Y = pd.Series(pd.Series(WEATHER).map({"fog": 1.0, "rain": 5.0, "sun": 20.0}).to_numpy(), DAYS)
Y += EXOG.price + RNG.random(60)
PLAIN = pd.get_dummies(EXOG, columns=["weather"], dtype=float)  # a column for each category


@pytest.fixture(scope="module")
def fitted():
    return quick().fit(Y[:50], EXOG[:50])


def numbers_in(table):
    """Return the known inputs of a table by itself as an array."""
    known = categories_of([table])
    values = np.asarray(as_numbers("exog", table, known), dtype=float)
    return indicators(values.reshape(len(values), -1), known)


def test_categories_are_columns_of_0_and_1(fitted):
    np.testing.assert_array_equal(numbers_in(EXOG), PLAIN)
    np.testing.assert_array_equal(numbers_in(EXOG.weather), PLAIN.iloc[:, 1:])
    found = fitted.forecast(10, EXOG[50:])
    pd.testing.assert_series_equal(found, quick().fit(Y[:50], PLAIN[:50]).forecast(10, PLAIN[50:]))
    assert (found - Y[50:]).abs().mean() < 0.5 * (Y[50:] - Y[:50].median()).abs().mean()


@pytest.mark.parametrize(
    ("given", "columns"),
    [
        (pd.Categorical([3, 1, 3]), [[0, 1], [1, 0], [0, 1]]),  # numbers of no order
        (pd.Categorical([3, 1, 3], ordered=True), [[3], [1], [3]]),
        (pd.Categorical([True, None]), [[1], [np.nan]]),
        (pd.Categorical(["b"], categories=["b", "a"]), [[1, 0]]),
        (pd.cut([1, 9], [0, 5, 10], ordered=False, labels=["x", "y"]), [[1, 0], [0, 1]]),
    ],
)
def test_columns_of_categories(given, columns):
    np.testing.assert_array_equal(numbers_in(pd.DataFrame({"a": given})), columns)


def test_later_categories_are_known_by_their_values(fitted, tmp_path):
    found = fitted.forecast(3, EXOG[50:53])
    alone = EXOG[50:53].astype({"weather": str}).astype({"weather": "category"})
    turned = EXOG[50:53].assign(weather=EXOG.weather.cat.set_categories(["sun", "rain", "fog"]))
    unused = EXOG[50:53].assign(weather=EXOG.weather.cat.add_categories("snow").cat.as_ordered())
    save(fitted, tmp_path / "model.npz")
    for model in (fitted, load(tmp_path / "model.npz")):
        for exog in (alone, turned, unused):
            pd.testing.assert_series_equal(model.forecast(3, exog), found)
    later = load(tmp_path / "model.npz").update(Y[50:53], alone).forecast(7, EXOG[53:])
    plain = quick().fit(Y[:50], PLAIN[:50]).update(Y[50:53], PLAIN[50:53]).forecast(7, PLAIN[53:])
    pd.testing.assert_series_equal(later, plain)


def weather(*values):
    return EXOG[50:52].assign(weather=pd.Categorical(values))


@pytest.mark.parametrize(
    ("exog", "message"),
    [
        (weather("sun", "snow"), "Column 'weather' of exog has the category 'snow' in row 1, which "
         "is not among the categories of fit: 'fog', 'rain', 'sun'. Replace it"),
        (EXOG[50:52].astype({"weather": object}), "Column 'weather' of exog has the dtype object, "
         "but in fit it had the categories 'fog', 'rain', 'sun'. Convert it to the dtype category"),
        (EXOG[50:52].assign(weather=1.0), "has the dtype float64, but in fit it had"),
        (np.ones((2, 2)), "exog is a ndarray, but in fit it had categories: 'fog', 'rain', 'sun'"),
        (EXOG[50:52].assign(price=pd.Categorical(["low", "high"])),
         "Column 'price' of exog has categories, such as 'high', but in fit it contained num"),
        (weather(None, "sun"), "Row 0 of exog has no value in column 1 (NaN)"),
    ],
)  # fmt: skip
def test_other_later_columns_raise(exog, message, fitted):
    for call, given in ((fitted.forecast, 2), (fitted.update, Y[50:52])):
        with pytest.raises(ValueError, match=re.escape(message)):
            call(given, exog)


def test_text_and_ordered_text_raise():
    text = r"text in column 'weather', for .*'\w+' in row 0,.*category without an order"
    for dtype in (object, str, "string", pd.CategoricalDtype(KINDS, ordered=True)):
        with pytest.raises(ValueError, match=text):
            quick().fit(Y, EXOG.astype({"weather": dtype}))


def test_missing_categories_are_held_or_mixed():
    holes = EXOG.copy()
    holes.loc[DAYS[[7, 8, 52]], "weather"] = None
    held = pd.get_dummies(holes.ffill(), columns=["weather"], dtype=float)
    mixed = PLAIN.mask(np.isin(np.arange(60), [7, 8, 52])[:, None] & (PLAIN.columns != "price"))
    for how, filled in (("hold", held), ("interpolate", mixed)):
        model = quick(missing_values=how)
        found = model.fit(Y[:50], holes[:50]).forecast(10, holes[50:])
        same = quick(missing_values=how).fit(Y[:50], filled[:50]).forecast(10, filled[50:])
        pd.testing.assert_series_equal(found, same)


def test_categories_of_panels():
    # each series has rows of two of the three categories
    swaps = (("sun", "fog"), ("fog", "sun"))
    few = [EXOG.weather.where(EXOG.weather != each, other) for each, other in swaps]
    parts = [EXOG.assign(weather=each.cat.remove_unused_categories()) for each in few]
    plain = [pd.get_dummies(EXOG.assign(weather=each), dtype=float) for each in few]
    before, after = ([part[rows] for part in parts] for rows in (slice(50), slice(50, None)))
    model = quick(panel="each").fit([Y[:50]] * 2, before)
    same = quick(panel="each").fit([Y[:50]] * 2, [part[:50] for part in plain])
    found = model.forecast(10, after)
    for one, other in zip(found, same.forecast(10, [part[50:] for part in plain]), strict=True):
        pd.testing.assert_series_equal(one, other)
    with pytest.raises(ValueError, match="of series 1 of exog has the category 'snow' in row 0"):
        model.forecast(10, [after[0], after[1].assign(weather=pd.Categorical(["snow"] * 10))])

    def table(parts):  # the ids of series may be categories as well
        ids = pd.Categorical(np.repeat(["b", "a"], len(parts[0])))
        rows = pd.concat([part.astype({"weather": object}) for part in parts])
        return rows.astype({"weather": "category"}).assign(shop=ids)

    sales = table(before)[["shop"]].assign(y=np.tile(Y[:50], 2))
    model = quick(panel="each", sequence_column="shop").fit(sales, table(before))
    np.testing.assert_array_equal(model.forecast(10, table(after)).y, np.concatenate(found))


def test_categories_drive_a_system_and_its_context():
    force = RNG.choice(["up", "down"], 300)
    push, y = np.where(force == "up", 0.5, -0.5), np.zeros(300)
    for i in range(1, 300):
        y[i] = 0.6 * y[i - 1] + push[i]
    exog = pd.Series(pd.Categorical(force))
    model = ESNForecaster(search=[{"n_units": 20}], n_networks=1, random_state=0)
    model.fit([y[:100], y[100:200]], [exog[:100], exog[100:200]])
    found = model.forecast(20, exog[200:270].reset_index(drop=True), context=y[200:250])
    assert np.abs(found - y[250:270]).max() < 0.05


def test_categories_of_polars(polars):
    pl = polars
    columns = {"price": EXOG.price.to_numpy(), "weather": WEATHER}
    plain = PLAIN.to_numpy()
    for dtype in (pl.Enum(KINDS), pl.Categorical):
        exog = pl.DataFrame(columns, schema_overrides={"weather": dtype})
        order = KINDS if dtype == pl.Enum(KINDS) else list(dict.fromkeys(WEATHER))
        places = [0, *(1 + KINDS.index(each) for each in order)]
        model, same = quick().fit(Y[:50], exog[:50]), quick().fit(Y[:50], plain[:50][:, places])
        np.testing.assert_array_equal(
            model.forecast(10, exog[50:]), same.forecast(10, plain[50:][:, places])
        )
        one = exog["weather"]
        np.testing.assert_array_equal(numbers_in(one), plain[:, places[1:]])
    with pytest.raises(
        ValueError, match=r"exog contains text in column 'weather'.*pl\.Categorical"
    ):
        quick().fit(Y, pl.DataFrame(columns))
    with pytest.raises(ValueError, match=r"of exog has the dtype String.*pl\.Categorical"):
        model.forecast(3, pl.DataFrame(columns)[:3])

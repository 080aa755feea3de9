"""
Many series, and long ones
==========================

Ten series of sales by month: some shops have just opened, some did not report every
month. One call forecasts them all, and we decide between a model for each shop and one
for all. Then the other kind of much: one series in a file that does not fit in memory,
which a network learns in chunks. At the end we decide how large a network its rows are
worth.
"""

import tempfile
import time as clock
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.dates import YearLocator
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from reservoir import ESNForecaster, ESNRegressor, plotting
from reservoir.datasets import narma

# %%
# Sales made up in a few lines: all shops share a high season before Christmas, each has
# a size, a trend and noise of its own. Shops 4 to 6 did not report every month, shops 7
# to 9 opened two to four years ago, and the last column is a fixed fee.
rng = np.random.default_rng(0)
n_months, names = 108, [f"shop {i}" for i in range(1, 10)]
months = pd.date_range("2017-01-01", periods=n_months, freq="MS", name="month")
time = np.arange(n_months)
pattern = (
    0.15 * np.sin(2 * np.pi * time / 12)
    + 0.5 * (time % 12 == 11)
    + 0.2 * (time % 12 == 10)
)
sales = pd.DataFrame(index=months, columns=names, dtype=float)
for name in names:
    size, growth = 10 ** rng.uniform(1, 3), rng.normal(0.004, 0.004)
    noise = np.cumsum(rng.normal(0, 0.01, n_months)) + rng.normal(0, 0.04, n_months)
    sales[name] = size * np.exp(growth * time + pattern * rng.uniform(0.8, 1.2) + noise)
for name, age in [("shop 7", 48), ("shop 8", 42), ("shop 9", 26)]:
    sales.loc[: months[-age - 1], name] = np.nan
for name in ["shop 4", "shop 5", "shop 6"]:
    sales.loc[rng.choice(months[:90], 8, replace=False), name] = np.nan
sales["fee"] = 250.0
print(sales.tail(4).round(0).to_string())

# %%
# Columns of a frame
# ------------------
# Without `panel`, columns are variables of one system, which are forecast together from
# all of them (temperature and pressure, say). ``panel="each"`` says that they are
# series of their own, and finds models for each alone. The last twelve months are held
# back. Months that were not reported are NaN and are not learned from; a series begins
# with its first value. What is constant is forecast as such, and a warning says so.
past, future = sales[:-12], sales[-12:]
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    each = ESNForecaster(panel="each", random_state=0).fit(past)
for warning in told:
    print(warning.message)
alone = each.forecast(12)
print(alone.tail(3).round(0).to_string())

# %%
# A column of ids
# ---------------
# Long tables have a row for each shop and month, and a column that says which shop it
# is; so the young shops have fewer rows. A month without a report keeps its row: where
# dates leave one out, the series is refused, and the message says how to put it back.
# The answer is long as well. An index of two levels, shop and month, and lists of
# Series are read in the same way.
#
# ``panel="shared"`` fits networks and autoregressions to all shops together, each shop
# in units of its own: what one shop has seen twice only, others have seen more often.
opened = past.notna().cummax()
long = past.where(opened, np.inf).melt(
    var_name="shop", value_name="sales", ignore_index=False
)
long = long[long["sales"] != np.inf]
print(long.groupby("shop", sort=False).size().to_dict())

with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # the fee is constant: said above
    shared = ESNForecaster(panel="shared", sequence_column="shop", random_state=0).fit(
        long
    )
answer = shared.forecast(12, coverage=0.9)
print(answer.tail(2).round(0))

# %%
# In pictures
# -----------
# The last four years of each shop, and the year that was held back, with the forecast
# of ``panel="shared"`` and the band that is to hold nine months of ten. With 14 months
# of its own shop 9 has not seen a whole season twice: its forecast has none, and its
# band says how little is known.
fig, axes = plt.subplots(5, 2, figsize=(7, 8), sharex=True, layout="constrained")
for ax, name in zip(axes.flat, sales, strict=True):
    one = answer[answer["shop"] == name].drop(columns="shop")
    one.columns = one.columns.str.removeprefix("sales ")
    plotting.forecast(sales[name][-60:], one, legend=False, ax=ax)
    ax.set(xlabel="", ylim=(0, None))
    ax.xaxis.set_major_locator(YearLocator())
handles, labels = axes[0, 0].get_legend_handles_labels()
fig.legend(handles, labels, loc="outside upper left", ncols=4, frameon=False)

# %%
# Which series are hard?
# ----------------------
# The mean absolute error of each shop, in per cent of its mean sales, so that large and
# small shops can be compared. The rival is the year before. One year of nine shops is
# little to go by; run it under other seeds before you decide.
wide = answer.reset_index().pivot(
    index="month", columns="shop", values="sales forecast"
)
shops = list(sales)[:-1]


def error(forecast):
    away = np.abs(np.asarray(forecast) - future.to_numpy())
    return pd.Series(
        100 * np.nanmean(away, axis=0) / future.mean().to_numpy(), list(sales)
    )


errors = pd.DataFrame(
    {
        "last year again": error(past[-12:]),
        "each": error(alone),
        "shared": error(wide[list(sales)]),
    }
).loc[shops]
print(errors.round(1).to_string())
print("mean of the old shops:", errors[:6].mean().round(1).to_dict())
print("mean of the young ones:", errors[6:].mean().round(1).to_dict())

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for name, marker in zip(errors, "Dos", strict=True):
    ax.plot(shops, errors[name], marker, label=name, alpha=0.8)
ax.set_ylabel("error, % of mean sales")
ax.set_ylim(0, None)
fig.legend(loc="outside upper left", ncols=3, frameon=False)

# %%
# Shop 9 is the hardest, and there last year's values are ahead of both.
#
# What was chosen stands in one table. Of ``panel="each"`` it has a row for every model
# of every shop; here are those with the largest share in the average.
# ``panel="shared"`` makes one choice for all.
best = pd.DataFrame(each.search_results_).sort_values("share").groupby("series").tail(1)
print(best.set_index("series").loc[shops].round(2).to_string())
print(shared.summary())

# %%
# **The decision for the shops.** One model for all: it is ahead of a model for each
# among the old shops by little, and among the young ones by much, and it is ahead of
# last year's values in both groups. For a shop that has seen one season only, such as
# shop 9, keep to last year's values.
#
# With many series, ``n_jobs=-1`` fits several at the same time, with the same result,
# and ``verbose=1`` shows how far it is. `update` takes the months that have come since;
# where ids tell, a shop may have none. A closed shop can be left as it is.
#
# A file that does not fit in memory
# ----------------------------------
# Now one long series: an input and a target that depends on ten rows of it, by a rule
# of products (NARMA-10). Ours has 60,000 rows, so that this page is built in seconds;
# nothing below changes for a file of 100 gigabytes. pandas reads it in chunks, the
# scaler sees them first, then the network. Its leak rate is 1: slow units would smear
# the inputs that the rule multiplies.
folder = tempfile.TemporaryDirectory()
path = Path(folder.name, "long.csv")
inputs, targets = narma(60_000, random_state=0)
pd.DataFrame({"input": inputs[:, 0], "target": targets}).to_csv(path, index=False)

scaler = StandardScaler()
for chunk in pd.read_csv(path, chunksize=10_000):
    scaler.partial_fit(chunk[["input"]])

options = {"leak_rate": 1.0, "input_scaling": 0.1, "washout": 100, "random_state": 0}
esn = ESNRegressor(300, **options)
for chunk in pd.read_csv(path, chunksize=10_000):
    esn.partial_fit(scaler.transform(chunk[["input"]]), chunk["target"])

# %%
# The chunks are parts of one series: the network goes on from one to the next where it
# was, and keeps no row but sums over rows, which are as large for a thousand rows as
# for a billion. It has learned what one `fit` of all rows learns, up to rounding. Say
# ``washout=`` as a number: "auto" would look at the first chunk alone.
everything = pd.read_csv(path)
whole = ESNRegressor(300, **options)
whole.fit(scaler.transform(everything[["input"]]), everything["target"])
away = np.abs(esn.coef_ - whole.coef_).max() / np.abs(whole.coef_).max()
print(f"coefficients, in chunks against at once: {away:.0e} apart, of the largest")

# %%
# How large a network are these rows worth?
# -----------------------------------------
# Each chunk is predicted before it is learned from, so that the errors are those of
# rows that the network has not seen. The rival is a ridge regression on the last 20
# inputs. Errors in standard deviations of the target, seconds for all 60,000 rows on
# the machine that built this page.
chunks = list(
    pd.read_csv(path, chunksize=10_000)
)  # only so that the clock does not count reading


def learn(model):
    errors, start = [], clock.perf_counter()
    for i, chunk in enumerate(chunks):
        X, y = scaler.transform(chunk[["input"]]), chunk["target"].to_numpy()
        if i > 0:
            errors.append(np.sqrt(np.mean((model.predict(X) - y) ** 2)) / y.std())
        model.partial_fit(X, y)
    return errors, clock.perf_counter() - start


curves = {}
for n_units, dtype in [
    (100, "float64"),
    (300, "float64"),
    (1000, "float64"),
    (1000, "float32"),
]:
    network = ESNRegressor(n_units, dtype=dtype, **options)
    errors, seconds = learn(network)
    curves[f"{n_units} units, {dtype}"] = errors
    print(f"{n_units} units, {dtype}: last error {errors[-1]:.3f}, {seconds:.1f} s")

lags = pd.concat([everything["input"].shift(k) for k in range(20)], axis=1).to_numpy()[
    20:
]
half = len(lags) // 2
ridge = Ridge().fit(lags[:half], everything["target"][20 : half + 20])
missed = ridge.predict(lags[half:]) - everything["target"][half + 20 :]
rival = np.sqrt(np.mean(missed**2)) / everything["target"].std()
print(f"ridge on 20 lags: {rival:.3f}")

fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
rows = 10 * np.arange(1, len(chunks))
for (name, errors), style in zip(curves.items(), ["o-", "s-", "D-", "x:"], strict=True):
    ax.plot(rows, errors, style, label=name)
ax.axhline(rival, color="0.5", linestyle="--", label="ridge on 20 lags")
ax.set(
    xlabel="thousand rows learned from",
    ylabel="error on the next 10,000",
    ylim=(0, None),
)
ax.legend(frameon=False, fontsize="small", ncols=2)
plt.show()
folder.cleanup()

# %%
# **The decision for the file.** The picture shows errors that hardly move after the
# first 10,000 rows: they go up and down with the chunk that is predicted, for all
# networks alike. More rows would not help any of these; more units do. So take a
# thousand units, if the seconds above are no hurdle, and if they are, save rows before
# units. All are well ahead of the ridge, which knows no products.
#
# What costs what: states take time in proportion to units and rows, the sums in
# proportion to rows and the *square* of the units; rows cost no memory.
# ``dtype="float32"`` halves what states take in memory, has the same errors here, and
# gains hardly any time at this size. Several files are a list of sequences, over which
# ``n_jobs`` spreads the work. Figures: :doc:`/performance`.
#
# What next? Chunks that go on coming while the plant changes:
# :doc:`plot_learn_while_it_runs`. To keep what was learned: :doc:`plot_save_and_serve`.

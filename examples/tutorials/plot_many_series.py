"""
Many series, and long ones
==========================

Forecast many series with one call, and fit data that are too long to be fitted at once.

A table has columns for the shop, the month, its sales, and campaigns, which are planned ahead. Its
rows may be in any order. Models are found for each shop:
"""

import numpy as np
import pandas as pd

from reservoir import ESNForecaster, plotting

months = pd.date_range("2021-01-01", periods=72, freq="MS").tolist()
table = pd.DataFrame({"shop": np.repeat(["a", "b", "c"], 72), "month": months * 3})
table["campaign"] = table.index % 5 == 0
table["sales"] = np.random.default_rng(0).normal(100, 5, 216)
table["sales"] *= 1 + 0.5 * (table["month"].dt.month == 12) + 0.3 * table["campaign"]
plan = table[table["month"] >= "2026"]  # its sales are not read
columns = {"sequence_column": "shop", "time_column": "month", "target_column": "sales"}
forecaster = ESNForecaster(**columns, random_state=0).fit(table.drop(plan.index))
plotting.forecast(forecaster, 12, exog=plan, coverage=0.9, series="b")

# %%
# The rest of the page decides between a model for each shop and one for all shops, with shops that
# have just opened and months without a report. Then it trains a network on a file that does not fit
# in memory, and decides how large that network should be.
#
# Nine shops
# ----------
# The shops share a high season before Christmas. Each has its own size, trend and noise. Shops 4 to
# 6 did not report every month, shops 7 to 9 opened two to four years ago, and the last column is a
# fixed fee.
import tempfile
import time as clock
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.dates import YearLocator
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from reservoir import ESNRegressor
from reservoir.datasets import narma

rng = np.random.default_rng(0)
n_months, names = 108, [f"shop {i}" for i in range(1, 10)]
months = pd.date_range("2017-01-01", periods=n_months, freq="MS", name="month")
time = np.arange(n_months)
pattern = 0.15 * np.sin(2 * np.pi * time / 12)
pattern += 0.5 * (time % 12 == 11) + 0.2 * (time % 12 == 10)
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

# %%
# Columns of a frame
# ------------------
# Without `panel`, columns are variables of one system (temperature and pressure, say), which are
# forecast together. With ``panel="each"`` they are separate series. The last twelve months are held
# out. Months without a report are NaN, and are not learned from. A series begins with its first
# value. A constant series is forecast as that constant, with a warning.
past, future = sales[:-12], sales[-12:]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    each = ESNForecaster(panel="each", random_state=0).fit(past)
print(*[warning.message for warning in caught])
alone = each.forecast(12)
print(alone.tail(3).round(0).to_string())

# %%
# One long table
# --------------
# Three columns are named, others are known in advance, and the forecast is such a table, too. Each
# month needs a row: if one is missing, `fit` raises, or with ``errors="warn"`` leaves the shop out.
# An index of two levels and lists of Series work in the same way.
#
# ``panel="shared"`` fits networks and autoregressions to all shops together, each in units of its
# own size. A shop with a short past then benefits from the others.
opened = past.notna().cummax()
long = past.where(opened, np.inf).melt(
    var_name="shop", value_name="sales", ignore_index=False
)
long = long[long["sales"] != np.inf].reset_index()
shared = ESNForecaster(panel="shared", **columns, random_state=0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # the constant fee, as above
    shared.fit(long)
answer = shared.forecast(12, coverage=0.9)
print(answer[::60].to_string())

fig, axes = plt.subplots(5, 2, figsize=(7, 8), sharex=True, layout="constrained")
for ax, name in zip(axes.flat, sales, strict=True):
    one = answer[answer["shop"] == name].set_index("month").drop(columns="shop")
    plotting.forecast(sales[name][-60:], one, legend=False, ax=ax)
    ax.set(xlabel="", ylim=(0, None))
    ax.xaxis.set_major_locator(YearLocator())
handles, labels = axes[0, 0].get_legend_handles_labels()
fig.legend(handles, labels, loc="outside upper left", ncols=4, frameon=False)
# sphinx_gallery_thumbnail_number = 2

# %%
# The picture shows four years of each shop, the year that was held out, and the forecast of
# ``panel="shared"`` with a band that should contain nine months of ten. Shop 9 has 14 months of
# past, so no season twice: its forecast has no season, and its band is wide.
#
# Which series are hard?
# ----------------------
# The mean absolute error of each shop, in per cent of its mean sales. The simplest rival repeats
# the year before. One year of nine shops is little evidence: try other seeds before you decide.
wide = answer.pivot(index="month", columns="shop", values="sales")
forecasts = {"last year again": past[-12:], "each": alone, "shared": wide[list(sales)]}
errors = pd.DataFrame(index=sales.columns)
for name, forecast in forecasts.items():
    away = np.abs(forecast.to_numpy() - future.to_numpy())
    errors[name] = 100 * np.nanmean(away, axis=0) / future.mean()
errors = errors.drop("fee")
print(errors.round(1).to_string())
groups = {"shops 1 to 6": errors[:6], "shops 7 and 8": errors[6:8]}
print(pd.DataFrame({name: rows.mean() for name, rows in groups.items()}).T.round(1))

# %%
# `search_results_` has a row for every model of every shop. Those with the largest share are:
best = pd.DataFrame(each.search_results_).sort_values("share").groupby("series").tail(1)
print(best.set_index("series").loc[names].round(2).to_string())

# %%
# **The decision for the shops.** For shops 1 to 8 both ways are on average ahead of last year. One
# model for all is slightly ahead for the old shops, and models for each shop are ahead for shops 7
# and 8. For a shop with one season only, such as shop 9, keep last year's values.
#
# With many series, ``n_jobs=-1`` fits several at a time, with the same result, and ``verbose=1``
# shows the progress. `update` takes the months that have arrived since the fit.
#
# A file that does not fit in memory
# ----------------------------------
# This is one long series: an input, and a target that depends on ten rows of it through products
# (NARMA10). The file has 60,000 rows, so that this page builds in seconds. The code is the same for
# 100 gigabytes. pandas reads chunks, which go to the scaler first and then to the network. Its leak
# rate is 1: slow units would smear the inputs that the rule multiplies.
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
# The network continues from one chunk to the next, and keeps sums over rows instead of rows. They
# are as large for a thousand rows as for a billion. The result is that of one `fit`, up to
# rounding. Give ``washout=`` as a number: "auto" would use the first chunk alone.
table = pd.read_csv(path)
X, y = scaler.transform(table[["input"]]), table["target"].to_numpy()
folder.cleanup()
whole = ESNRegressor(300, **options).fit(X, y)
away = np.abs(esn.coef_ - whole.coef_).max() / np.abs(whole.coef_).max()
print(f"coefficients, in chunks against at once: {away:.0e} apart, of the largest")

# %%
# How large a network are these rows worth?
# -----------------------------------------
# Each chunk is predicted before it is learned. The rival is a ridge regression on the last 20
# inputs. Errors are in standard deviations of the target, seconds those of the machine that built
# this page.
curves = {}
for n_units in (100, 300, 1000):
    model, start = ESNRegressor(n_units, **options), clock.perf_counter()
    errors = curves[f"{n_units} units"] = []
    for first in range(0, 60_000, 10_000):
        rows = slice(first, first + 10_000)
        if first > 0:
            missed = model.predict(X[rows]) - y[rows]
            errors.append(np.sqrt(np.mean(missed**2)) / y[rows].std())
        model.partial_fit(X[rows], y[rows])
    seconds = clock.perf_counter() - start
    print(f"{n_units:4d} units: last error {errors[-1]:.3f}, {seconds:.1f} s")
lags = np.lib.stride_tricks.sliding_window_view(X[:, 0], 20)
ridge = Ridge().fit(lags[:30_000], y[19:30_019])
rival = np.sqrt(np.mean((ridge.predict(lags[30_000:]) - y[30_019:]) ** 2)) / y.std()
print(f"ridge on 20 lags: {rival:.3f}")

fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for (name, errors), style in zip(curves.items(), ["o-", "s-", "D-"], strict=True):
    ax.plot([10, 20, 30, 40, 50], errors, style, label=name)
ax.axhline(rival, color="0.5", linestyle="--", label="ridge on 20 lags")
ax.set(
    xlabel="thousand rows learned", ylabel="error on the next 10,000", ylim=(0, None)
)
ax.legend(frameon=False, fontsize="small", ncols=2)
plt.show()

# %%
# **The decision for the file.** Errors hardly change after the first 10,000 rows, so more rows
# would not help. More units do: take a thousand, unless they take too long, and save rows before
# units. All networks are ahead of the ridge, which cannot multiply inputs.
#
# States take time in proportion to units and rows, the sums in proportion to rows and the *square*
# of the units. Rows take no memory. Several files are a list of sequences, over which ``n_jobs``
# spreads the work. Figures: :doc:`/performance`.
#
# Chunks that keep arriving while the plant changes: :doc:`plot_learn_while_it_runs`. To keep what
# was learned: :doc:`plot_save_and_serve`.

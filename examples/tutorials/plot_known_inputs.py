"""
Inputs known in advance
=======================

Forecast the load of a power grid from the temperature, for which there is a weather forecast.

`exog` has a row for each row of the series in `fit`, and the rows that follow in `forecast`:
"""

import numpy as np
import pandas as pd

from reservoir import ESNForecaster, plotting

hours = pd.date_range("2025-01-06", periods=672, freq="h")  # four weeks
noise = np.random.default_rng(0).normal(0, 0.3, (672, 2))
daily = np.sin(2 * np.pi * np.arange(672) / 24)
known = pd.DataFrame({"temperature": 7 + 3 * daily + noise[:, 0].cumsum()}, hours)
load = (40 + 5 * daily - 0.8 * known["temperature"] + noise[:, 1]).rename("load")
model = ESNForecaster(random_state=0).fit(load[:-24], exog=known[:-24])
tomorrow = model.forecast(24, exog=known[-24:], coverage=0.9)
plotting.forecast(load[-96:], tomorrow)

# %%
# The grey line is the load, the blue one its forecast with a band. Both fall when it is warm. The
# rest of the page shows what such inputs are worth, and decides whether to buy a weather forecast.
#
# A small town
# ------------
# These are ten weeks of a small town, hour by hour, generated. People are awake in the daytime, and
# work on weekdays that are no holidays. Every degree below 15 takes .8 megawatts for heating. The
# rest is noise that lasts for some hours.
import matplotlib.pyplot as plt
from matplotlib.dates import ConciseDateFormatter
from scipy.signal import lfilter
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir.model_selection import backtest

rng = np.random.default_rng(0)
n_days = 70
hours = pd.date_range("2025-01-06", periods=24 * n_days, freq="h", name="time")
hour = hours.hour.to_numpy()
holidays = ["2025-01-20", "2025-02-05", "2025-02-13", "2025-02-27", "2025-03-12"]
holiday = hours.normalize().isin(pd.to_datetime(holidays)).astype(float)
free = np.maximum(holiday, hours.day_of_week >= 5)


def lasting(n, memory=0.8):
    """Noise of which a share is left in the next row."""
    return lfilter([1], [1, -memory], rng.normal(size=n))


day = np.interp(np.arange(24 * n_days) / 24, np.arange(n_days) + 0.5, lasting(n_days))
temperature = 7 + 1.5 * day - 3 * np.cos(np.pi * (hour - 3) / 12)
awake = np.exp(-(((hour - 9) / 3) ** 2)) + 1.2 * np.exp(-(((hour - 18) / 3) ** 2))
load = 30 + 12 * (1 - 0.45 * free) * awake + 0.8 * np.maximum(15 - temperature, 0)
load = pd.Series(load + 0.25 * lasting(24 * n_days), hours, name="load")
known = pd.DataFrame({"temperature": temperature, "holiday": holiday}, hours)

shape = {"figsize": (7, 3.6), "sharex": True, "layout": "constrained"}
fig, (upper, lower) = plt.subplots(2, 1, **shape)
upper.plot(load[-21 * 24 :], color="black", linewidth=0.9)
upper.set_ylabel("load, MW")
lower.plot(known["temperature"][-21 * 24 :], color="C0", linewidth=0.9)
lower.set_ylabel("temperature, °C")
for ax in (upper, lower):
    for date in pd.to_datetime(holidays[-2:]):
        ax.axvspan(date, date + pd.Timedelta("1D"), color="0.9")
lower.xaxis.set_major_formatter(ConciseDateFormatter(lower.xaxis.get_major_locator()))
lower.set_xlabel("the last three weeks; holidays are grey")

# %%
# With and without
# ----------------
# The last week is held out, and forecast with the load alone and with both inputs. The seasons of
# 24 and 168 rows come from the dates. In use the temperature comes from a weather forecast, and the
# holidays from the calendar. The simplest rival repeats last week.
week = slice(-168, None)
past, inputs = load[:-168], known[:-168]
alone = ESNForecaster(random_state=0).fit(past)
informed = ESNForecaster(random_state=0).fit(past, inputs)
print("seasons:", informed.seasons_)
forecasts = {
    "load alone": alone.forecast(168, coverage=0.9),
    "with temperature and holidays": informed.forecast(168, known[week], coverage=0.9),
}


def error(forecast):
    return np.abs(forecast - load[week].to_numpy()).mean()


print(f"like last week: mean absolute error {error(past[week].to_numpy()):.2f} MW")
shape = {"figsize": (7, 6), "sharex": True, "sharey": True, "layout": "constrained"}
fig, axes = plt.subplots(2, 1, **shape)
for ax, (name, forecast) in zip(axes, forecasts.items(), strict=True):
    width = (forecast["upper 90%"] - forecast["lower 90%"]).mean()
    print(
        f"{name}: {error(forecast['forecast']):.2f} MW; width of bands {width:.1f} MW"
    )
    plotting.forecast(load[-216:], forecast, ax=ax)
    ax.set(title=name, ylabel="load, MW", xlabel="")
# sphinx_gallery_thumbnail_number = 3

# %%
# The third day after the dotted line, a Wednesday, is a holiday. The load does not announce it: the
# upper forecast expects a working day.
#
# One week is one draw
# --------------------
# `backtest` forecasts 21 days, each from the midnight before it. The models are fitted once, before
# the first day, and then receive the days as they pass (``refit=False``). The stronger rival is a
# ridge regression on the 168 hours before (``n_lags``), with the same inputs.


class LastWeek:
    def fit(self, y):
        self.last = y.to_numpy()[-168:]

    def forecast(self, n_steps):
        return np.resize(self.last, n_steps)


days = {"horizon": 24, "n_origins": 21, "step": 24, "metrics": "mae", "refit": False}
ridge, esn = make_pipeline(StandardScaler(), Ridge()), ESNForecaster(random_state=0)
results = {
    "like last week": backtest(LastWeek(), load, **(days | {"refit": True})),
    "ridge, load alone": backtest(ridge, load, n_lags=168, **days),
    "ridge, with both": backtest(ridge, load, n_lags=168, exog=known, **days),
    "ESN, load alone": backtest(esn, load, **days),
    "ESN, with both": backtest(esn, load, exog=known, coverage=0.9, **days),
}
daily = pd.DataFrame({name: result.scores["mae"] for name, result in results.items()})
table = pd.DataFrame({"mean": daily.mean(), "worst day": daily.max()})
print(table.round(2).rename_axis("MW").to_string())
better = (daily["ESN, with both"] < daily["ESN, load alone"]).sum()
print(f"with both inputs the forecaster is better on {better} of 21 days")
inside = results["ESN, with both"].scores["coverage 0.9"].mean()
print(f"{inside:.0%} of the hours are in its 90 % bands")

# %%
# The inputs take a third off the mean error of `ESNForecaster`, and more off that of the worst day.
# The ridge gains less: it can only add the same amount to each hour of a holiday. The picture shows
# errors by the hour of the day, medians and quartiles:
three = ["like last week", "ESN, load alone", "ESN, with both"]
ax = plotting.horizon_errors({name: results[name] for name in three})
ax.set(xlabel="hours ahead", ylabel="absolute error, MW")

# %%
# No forecast without its inputs
# ------------------------------
# A model that was fitted with inputs needs them for the hours to come:
try:
    informed.forecast(168)
except ValueError as message:
    print(message)

# %%
# What if?
# --------
# Other inputs can be tried. This is the same week five degrees colder. By the rule of the town the
# load rises by .8 MW for each degree below 15. The forecast has the right sign, and is too small:
# models are fitted to forecast, not to explain, and have never seen such a fall within an hour.
measured = forecasts["with temperature and holidays"]
warm = known["temperature"][week]
colder = informed.forecast(168, known[week].assign(temperature=warm - 5))
rule = 0.8 * (np.maximum(20 - warm, 0) - np.maximum(15 - warm, 0))
more = (colder - measured["forecast"]).mean()
print(f"five degrees colder: {more:.1f} MW more; by the rule {rule.mean():.1f} MW")

# %%
# The decision
# ------------
# Next week's temperature is itself a forecast, which is worse the farther it goes. Here its error
# grows with time. How much of the gain is left?
wrong = np.cumsum(np.repeat(rng.normal(size=7), 24)) / 24
guessed = informed.forecast(
    168, known[week].assign(temperature=warm + wrong), coverage=0.9
)
print(f"temperature off by {np.abs(wrong).mean():.1f} degrees on average")
without = error(forecasts["load alone"]["forecast"])
for name, one in {"measured": measured, "forecast": guessed}.items():
    inside = one["lower 90%"].le(load[week]) & one["upper 90%"].ge(load[week])
    saved = without - error(one["forecast"])
    print(
        f"temperature as {name}: {saved:.2f} MW saved, {inside.mean():.0%} in the bands"
    )
plt.show()

# %%
# Buy it: a weather forecast that is off by about a degree keeps most of the gain. But the bands
# were learned from temperatures as measured, and contain fewer hours. If earlier weather forecasts
# were stored, fit with these: then the bands allow for their errors.
#
# A missing value among the inputs raises, unless you say how to fill it: ``missing_values="hold"``
# (the value before it) or ``"interpolate"``. Hours without load may be missing.
#
# Several series at once: :doc:`plot_many_series`. Gaps, and rows at uneven times:
# :doc:`plot_missing_values`. Inputs of a single network: the parameter `exog` of
# `make_forecast_pairs`.

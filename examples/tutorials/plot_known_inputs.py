"""
Inputs known in advance
=======================

Electric load follows the hour and the day of the week, which a forecaster finds by
itself. It also follows tomorrow's temperature and holidays, of which the load knows
nothing; but a weather forecast and a calendar do. How to give such inputs, what they
are worth, what to beware of, and at the end: is a weather forecast worth its price?
"""

# %%
# In short
# --------
# `exog` has a row for each row of the series in `fit`, and in `forecast` those that
# follow. To use it for your own, replace `load` and `known`:
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from reservoir import ESNForecaster, plotting

hours = pd.date_range("2025-01-06", periods=672, freq="h")  # four weeks
noise = np.random.default_rng(0).normal(0, 0.3, (672, 2))
daily = np.sin(2 * np.pi * np.arange(672) / 24)
known = pd.DataFrame({"temperature": 7 + 3 * daily + noise[:, 0].cumsum()}, hours)
load = 40 + 5 * daily - 0.8 * known["temperature"] + noise[:, 1]
model = ESNForecaster(random_state=0).fit(load[:-24], exog=known[:-24])
tomorrow = model.forecast(24, exog=known[-24:], coverage=0.9)
print(tomorrow.head(3).round(1))
plotting.forecast(load[-96:], tomorrow)
plt.show()

# %%
# The grey line is the load, the blue one its forecast with a band; both go down when it
# is warm. The rest of the page does this at length, and asks what it is worth.
from matplotlib.dates import ConciseDateFormatter
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir.model_selection import backtest

# sphinx_gallery_thumbnail_number = 3

# %%
# A small town
# ------------
# Ten weeks of a small town, hour by hour, made up in a few lines. People are awake in
# the daytime and work on weekdays that are no holidays. Every degree below 15 takes .8
# megawatts for heating; how cold it is wanders from day to day. The rest is noise that
# lasts for some hours.
rng = np.random.default_rng(0)
n_days = 70
hours = pd.date_range("2025-01-06", periods=24 * n_days, freq="h", name="time")
hour = hours.hour.to_numpy()
holidays = ["2025-01-20", "2025-02-05", "2025-02-13", "2025-02-27", "2025-03-12"]
holiday = hours.normalize().isin(pd.to_datetime(holidays)).astype(float)
free = np.maximum(holiday, hours.day_of_week >= 5)


def lasting(n, memory):
    """Noise of which a share is left in the next row."""
    values = rng.normal(size=n)
    for t in range(1, n):
        values[t] += memory * values[t - 1]
    return values


day = np.interp(
    np.arange(24 * n_days) / 24, np.arange(n_days) + 0.5, lasting(n_days, 0.8)
)
temperature = 7 + 1.5 * day - 3 * np.cos(np.pi * (hour - 3) / 12)
awake = np.exp(-(((hour - 9) / 3) ** 2)) + 1.2 * np.exp(-(((hour - 18) / 3) ** 2))
load = 30 + 12 * (1 - 0.45 * free) * awake + 0.8 * np.maximum(15 - temperature, 0)
load = pd.Series(load + 0.25 * lasting(24 * n_days, 0.8), hours, name="load")
known = pd.DataFrame({"temperature": temperature, "holiday": holiday}, hours)

fig, (upper, lower) = plt.subplots(
    2, 1, figsize=(7, 3.6), sharex=True, layout="constrained"
)
upper.plot(load[-21 * 24 :], color="black", linewidth=0.9)
upper.set_ylabel("load, MW")
lower.plot(known["temperature"][-21 * 24 :], color="C0", linewidth=0.9)
lower.set_ylabel("temperature, °C")
for ax in (upper, lower):
    ax.axvspan(pd.Timestamp("2025-02-27"), pd.Timestamp("2025-02-28"), color="0.9")
    ax.axvspan(pd.Timestamp("2025-03-12"), pd.Timestamp("2025-03-13"), color="0.9")
lower.xaxis.set_major_formatter(ConciseDateFormatter(lower.xaxis.get_major_locator()))
lower.set_xlabel("the last three weeks; holidays are grey")

# %%
# The picture shows that cold days cost load, and that two of the working days in these
# weeks were none.
#
# Tomorrow's temperature
# ----------------------
# In the shortest form: `exog` has a row for each row of y, at the same times, and
# `forecast` needs the rows that follow. Here tomorrow is the last day. In use, its
# temperature comes from the weather forecast, and whether it is a holiday from the
# calendar.
until_now = load[:-24], known[:-24]
tomorrow = known[-24:]  # 24 rows: temperature and holiday of each hour

model = ESNForecaster(random_state=0).fit(*until_now)
print(model.forecast(24, tomorrow, coverage=0.9).iloc[[0, 8, 18]].round(1))

# %%
# With and without
# ----------------
# Is it worth it? A whole week is held back now, and forecast with the load alone, and
# with the two inputs. That an hourly series has a season of 24 rows and one of 168 is
# read from the dates. The simplest rival says that it will be like last week.
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
for name, forecast in forecasts.items():
    width = (forecast["upper 90%"] - forecast["lower 90%"]).mean()
    print(
        f"{name}: {error(forecast['forecast']):.2f} MW; mean width of bands {width:.1f} MW"
    )

fig, axes = plt.subplots(
    2, 1, figsize=(7, 6), sharex=True, sharey=True, layout="constrained"
)
for ax, (name, forecast) in zip(axes, forecasts.items(), strict=True):
    plotting.forecast(load[-216:], forecast, ax=ax)
    ax.set(title=name, ylabel="load, MW")
axes[0].set_xlabel("")

# %%
# The third day from the dotted line on, a Wednesday, is a holiday. Nothing in the load
# announces it: the upper forecast sees a working day.
#
# One week is one draw
# --------------------
# So forecast 21 days, each from the midnight before it. The models are fitted once,
# before the first day, and then see the days go by (``refit=False``). The stronger
# rival is a ridge regression on the 168 hours before (``n_lags``), with the same
# inputs.


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
print(
    f"in its 90 % band: {results['ESN, with both'].scores['coverage 0.9'].mean():.0%}"
)

# %%
# The inputs take a third off the mean error of `ESNForecaster`, and more off that of
# the worst day, a holiday. The ridge gains less: it can only add the same amount to each
# hour of a holiday.
#
# The picture shows errors by the hour of the day that is forecast, medians and the
# middle half of the days:
two = {
    name: results[name]
    for name in ["like last week", "ESN, load alone", "ESN, with both"]
}
ax = plotting.horizon_errors(two)
ax.set(xlabel="hours ahead", ylabel="absolute error, MW")

# %%
# No forecast without its inputs
# ------------------------------
# What a model has learned to use, it needs for the hours to come. To leave it out is
# refused:
try:
    informed.forecast(168)
except ValueError as message:
    print(message)

# %%
# What if?
# --------
# Since inputs are given, others can be tried: the same week five degrees colder. The
# rule by which the load was made up says what is right, .8 MW per degree below 15. The
# answer has the right sign and falls short: models are fitted to forecast, not to
# explain, and have never seen the temperature fall by five degrees from one hour to the
# next, as it does here at the start.
colder = known[week].assign(temperature=known["temperature"][week] - 5)
more = (
    informed.forecast(168, colder)
    - forecasts["with temperature and holidays"]["forecast"]
)
said = known["temperature"][week]
right = 0.8 * (np.maximum(20 - said, 0) - np.maximum(15 - said, 0))
print(
    f"five degrees colder: {more.mean():.1f} MW more; by the rule {right.mean():.1f} MW"
)

# %%
# Inputs that are forecasts themselves
# ------------------------------------
# The week's temperature is not known beforehand but forecast, and the forecast is worse
# the farther it goes. Here its error grows to some degrees. The load's forecast has to
# pay for it, and its bands do not know: they were learned from temperatures as
# measured.
wrong = np.cumsum(np.repeat(rng.normal(size=7), 24)) / 24
guessed = known[week].assign(temperature=said + wrong)
forecast = informed.forecast(168, guessed, coverage=0.9)
print(f"temperature off by {np.abs(wrong).mean():.1f} degrees in the mean")
print(f"mean absolute error {error(forecast['forecast']):.2f} MW")
as_measured = forecasts["with temperature and holidays"]
for name, one in {"measured": as_measured, "forecast": forecast}.items():
    inside = one["lower 90%"].le(load[week]) & one["upper 90%"].ge(load[week])
    print(f"90 % band, temperature as {name}: {inside.mean():.0%} of the hours inside")

# %%
# The decision
# ------------
# What the inputs save, in MW of mean error, and how much of it a temperature that is
# only forecast leaves, for the week above:
saved = error(forecasts["load alone"]["forecast"]) - error(as_measured["forecast"])
left = error(forecasts["load alone"]["forecast"]) - error(forecast["forecast"])
print(
    f"saved with the temperature as measured: {saved:.2f} MW, as forecast: {left:.2f} MW"
)
plt.show()

# %%
# Buy it, then: a weather forecast that is off by a degree keeps most of the gain. But
# quote bands that were learned from the same kind of temperature. Where earlier weather
# forecasts have been kept, fit on these and not on what was measured: the model then
# trusts them as far as they deserve, and the bands are honest.
#
# A value that is missing among the inputs is refused, unless you say what is to stand
# in its place: ``missing_values="hold"`` (the value before it) or ``"interpolate"``.
# Hours without load are another matter: they may be missing, and are not learned from.
#
# What next? Several series at once, some of them young: :doc:`plot_many_series`. Gaps,
# and rows at uneven times: :doc:`plot_missing_values`. Inputs of a network of your own:
# the parameter `exog` of `make_forecast_pairs`.

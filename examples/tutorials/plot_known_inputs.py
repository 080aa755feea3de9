"""
Inputs known in advance
=======================

Electric load follows the hour and the day of the week, which a forecaster finds by itself. It also
follows the weather, and holidays, of which the series knows nothing; but a calendar and a weather
forecast do. How to give such inputs, what they are worth, and what to beware of.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.dates import ConciseDateFormatter

from reservoir import ESNForecaster, plotting

# %%
# Ten weeks of a small town, hour by hour, made up in a few lines. People are awake in the daytime
# and work on weekdays that are no holidays. Every degree below 15 takes .8 megawatts for heating;
# how cold it is wanders from day to day. The rest is noise that lasts for some hours.
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


day = np.interp(np.arange(24 * n_days) / 24, np.arange(n_days) + 0.5, lasting(n_days, 0.8))
temperature = 7 + 1.5 * day - 3 * np.cos(np.pi * (hour - 3) / 12)
awake = np.exp(-(((hour - 9) / 3) ** 2)) + 1.2 * np.exp(-(((hour - 18) / 3) ** 2))
load = 30 + 12 * (1 - 0.45 * free) * awake + 0.8 * np.maximum(15 - temperature, 0)
load = pd.Series(load + 0.25 * lasting(24 * n_days, 0.8), hours, name="load")
known = pd.DataFrame({"temperature": temperature, "holiday": holiday}, hours)

fig, (upper, lower) = plt.subplots(2, 1, figsize=(7, 3.6), sharex=True, layout="constrained")
upper.plot(load[-21 * 24 :], color="black", linewidth=0.9)
upper.set_ylabel("load, MW")
lower.plot(known["temperature"][-21 * 24 :], color="tab:blue", linewidth=0.9)
lower.set_ylabel("temperature, °C")
for ax in (upper, lower):
    ax.axvspan(pd.Timestamp("2025-02-27"), pd.Timestamp("2025-02-28"), color="0.9")
    ax.axvspan(pd.Timestamp("2025-03-12"), pd.Timestamp("2025-03-13"), color="0.9")
lower.xaxis.set_major_formatter(ConciseDateFormatter(lower.xaxis.get_major_locator()))
lower.set_xlabel("the last three weeks; holidays are grey")

# %%
# With and without
# ----------------
# The last week is held back. `exog` has a row for each row of y, at the same times; `forecast`
# needs the rows that follow. That an hourly series has a season of 24 rows and one of 168 is read
# from the dates. The rival says that it will be like last week.
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
    print(f"{name}: {error(forecast['forecast']):.2f} MW; mean width of bands {width:.1f} MW")

fig, axes = plt.subplots(2, 1, figsize=(7, 6), sharex=True, sharey=True, layout="constrained")
for ax, (name, forecast) in zip(axes, forecasts.items(), strict=True):
    plotting.forecast(load[-216:], forecast, ax=ax)
    ax.set(title=name, ylabel="load, MW")
axes[0].set_xlabel("")

# %%
# The third day from the dotted line on, a Wednesday, is a holiday. Nothing in the load announces
# it: the upper forecast sees a working day.
#
# No forecast without its inputs
# ------------------------------
# What a model has learned to use, it needs for the hours to come. To leave it out is refused:
try:
    informed.forecast(168)
except ValueError as message:
    print(message)

# %%
# What if?
# --------
# Since inputs are given, others can be tried: the same week five degrees colder. The rule by which
# the load was made up says what is right, .8 MW per degree below 15. The answer has the right sign
# and falls short: models are fitted to forecast, not to explain, and have never seen the
# temperature fall by five degrees from one hour to the next, as it does here at the start.
colder = known[week].assign(temperature=known["temperature"][week] - 5)
more = informed.forecast(168, colder) - forecasts["with temperature and holidays"]["forecast"]
said = known["temperature"][week]
right = 0.8 * (np.maximum(20 - said, 0) - np.maximum(15 - said, 0))
print(f"five degrees colder: {more.mean():.1f} MW more; by the rule {right.mean():.1f} MW")

# %%
# Inputs that are forecasts themselves
# ------------------------------------
# The week's temperature is not known beforehand but forecast, and the forecast is worse the farther
# it goes. Here its error grows to some degrees. The load's forecast has to pay for it, and its
# bands do not know: they were learned from temperatures as measured.
wrong = np.cumsum(np.repeat(rng.normal(size=7), 24)) / 24
guessed = known[week].assign(temperature=said + wrong)
forecast = informed.forecast(168, guessed, coverage=0.9)
print(f"temperature off by {np.abs(wrong).mean():.1f} degrees in the mean")
print(f"mean absolute error {error(forecast['forecast']):.2f} MW")
as_measured = forecasts["with temperature and holidays"]
for name, one in {"measured": as_measured, "forecast": forecast}.items():
    inside = one["lower 90%"].le(load[week]) & one["upper 90%"].ge(load[week])
    print(f"90 % band, temperature as {name}: {inside.mean():.0%} of the hours inside")
plt.show()

# %%
# Where earlier weather forecasts have been kept, fit on these and not on what was measured: the
# model then trusts them as far as they deserve, and the bands are honest. A value that is missing
# among the inputs is refused, unless you say what is to stand in its place:
# ``missing_values="hold"`` (the value before it) or ``"interpolate"``. Hours without load are
# another matter: they may be missing, and are not learned from.

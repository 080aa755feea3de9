"""
Weather and load: the next week of a region
===========================================

Forecast the load of a region for a week from the temperature and the calendar, and the temperature
from its past.

When it is cold a region heats, when it is hot it cools, and it sleeps in on holidays. The weather
and the load are generated, day by day (``datasets.weather_and_load``, after the outlook of Bay
2017). The load of the next week is forecast by the temperature, which a weather service would say,
and by the calendar; and the temperature itself by what it has been.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from reservoir import ESNForecaster, plotting
from reservoir.datasets import weather_and_load
from reservoir.model_selection import backtest

weather, load, dates = weather_and_load(5 * 365, random_state=0)
days = pd.DatetimeIndex(dates.astype("datetime64[ns]"), freq="D")
load = pd.Series(load, days, name="load")
air = pd.Series(weather[:, 13], days, name="temperature")  # the mean of a day
holidays = [101, 501, 815, 1101, 1225, 1226]  # the first of January is 101
known = pd.DataFrame(np.eye(7)[days.day_of_week], days, [f"day {k}" for k in range(7)])
known["holiday"] = np.isin(100 * days.month + days.day, holidays).astype(float)
known["temperature"] = air

fig, ax = plt.subplots(figsize=(4.5, 3), layout="constrained")
parts = ax.scatter(air, load, s=4, c=days.day_of_week >= 5, cmap="coolwarm")
ax.legend(parts.legend_elements()[0], ["working day", "weekend"], frameon=False)
ax.set(xlabel="temperature, °C", ylabel="load, MW")


# %%
# Four years to learn from; then a week from each of sixty origins in the last year, six days
# apart, so that each horizon meets each day of the week. Nothing is fitted anew. Gradient boosting
# sees the same, and two weeks of the load. "Degree days" say how far it is below 15 and above 21
# degrees: what somebody knows who has seen the picture above.
def error(model, exog, **settings):
    plan = {"horizon": 7, "step": 6, "n_origins": 60, "refit": False, "metrics": "mae"}
    found = backtest(model, load, exog=exog, **plan, **settings).errors
    return found["error"].abs().mean()


degrees = known.assign(below=(15 - air).clip(lower=0), above=(air - 21).clip(lower=0))
trees = HistGradientBoostingRegressor(random_state=0)
network = ESNForecaster(random_state=0)
print(f"gradient boosting: {error(trees, known, n_lags=14):.1f} MW")
print(f"the same, degree days: {error(trees, degrees, n_lags=14):.1f} MW")
print(f"network, as it comes: {error(network, known):.1f} MW")
print(f"the same, degree days: {error(network, degrees):.1f} MW")

# %%
# A week with its bands, of which nine in ten should hold the load.
network.fit(load[:-7], exog=degrees[:-7])
week = network.forecast(7, exog=degrees[-7:], coverage=0.9)
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
plotting.forecast(load[-28:], week, ax=ax)
ax.set_ylabel("load, MW")
plt.show()

# %%
# Trees cannot say more than they have seen, and the load grows; more years, the load as shares of
# its trend, and the temperature itself are in ``examples/benchmarks/weather_and_load.py``.

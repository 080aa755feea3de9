"""
Carbon dioxide: a year ahead, with dates and a band
===================================================

Forecast a year of weekly CO2 on Mauna Loa, with a band that is to hold nine weeks of ten, from a
series with dates and no settings.

The picture shows what was measured on Mauna Loa, week by week, and a forecast of the last year from
the weeks before it. The band is to hold nine weeks of ten. Nothing was set: that weeks have a
season of 52.18 rows is read from the dates.
"""

import matplotlib.pyplot as plt

from reservoir import ESNForecaster, plotting
from reservoir.datasets import load_co2
from reservoir.metrics import nrmse

co2 = load_co2(as_frame=True)["co2"]  # a Series of ppm, with a date every seven days
past, year = co2[:-52], co2[-52:]
forecaster = ESNForecaster(random_state=0).fit(past)
forecast = forecaster.forecast(52, coverage=0.9)
print(forecast.tail(3).round(2))

# %%
# The NRMSE is the root mean squared error in standard deviations of the year that is forecast; its
# own mean would reach 1. The seasonal naive forecast says of each week what was measured 52 weeks
# before; with drift, it adds what the year before had gained.
last = past[-52:].to_numpy()
gained = past.iloc[-1] - past.iloc[-53]
inside = forecast["lower 90%"].le(year) & forecast["upper 90%"].ge(year)
print("NRMSE (by std) of the last 52 weeks:")
print(f"  ESNForecaster          {nrmse(year, forecast['forecast']):.2f}")
print(f"  last year again        {nrmse(year, last):.2f}")
print(f"  the same, with drift   {nrmse(year, last + gained):.2f}")
print(f"weeks inside the band: {inside.sum()} of 52")

# %%
# What the forecast is made of:
print(forecaster.summary())

# %%
# A small figure, so that its text is large:
fig, ax = plt.subplots(figsize=(5.2, 3), layout="constrained")
plotting.forecast(co2[-212:], forecast, legend=False, ax=ax)
ax.set_ylabel("CO2, ppm")
fig.legend(loc="outside upper left", ncols=2, frameon=False)
fig.savefig("co2.png", dpi=200)
print("Picture: co2.png, in the folder that this was called from")

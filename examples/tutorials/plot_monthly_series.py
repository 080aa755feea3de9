"""
Forecast a monthly series
=========================

From a table with dates to a picture of the next two years, with bands that say how sure they are.
Ten minutes: what was chosen, whether it beats the simplest rivals, how far ahead it can be trusted,
and what is left in its errors.
"""

import matplotlib.pyplot as plt
import numpy as np

from reservoir import ESNForecaster, plotting
from reservoir.datasets import load_co2
from reservoir.model_selection import backtest

# %%
# Any pandas Series with dates will do. One of your own may come from
# ``pd.read_csv("file.csv", index_col="date", parse_dates=True)["co2"]``; ours is carbon dioxide on
# Mauna Loa, a value per week, of which pandas makes the means of months. Some months of the early
# years have no value. They stay missing (NaN): nothing has to be filled in.
weekly = load_co2(missing="nan", as_frame=True)["co2"]
monthly = weekly.resample("MS").mean()
print(monthly.tail(3).round(2))
print(f"{len(monthly)} months, {monthly.isna().sum()} without a value")

# %%
# Fit, forecast
# -------------
# The last two years are held back, to see what the forecast is worth. There is nothing to set:
# the dates say that rows are months, so that the season has 12 rows, and `fit` finds the models.
# `coverage` asks for bands that are to hold 80 and 95 of 100 values. What comes back has the dates
# that follow.
past, future = monthly[:-24], monthly[-24:]
forecaster = ESNForecaster(random_state=0).fit(past)
forecast = forecaster.forecast(24, coverage=[0.8, 0.95])
print(forecast.round(1).iloc[[0, 11, 23]].T)

ax = plotting.forecast(monthly["1995":], forecast)
ax.set_ylabel("CO2, ppm")
print(f"mean absolute error: {np.abs(forecast['forecast'] - future).mean():.2f} ppm")

# %%
# What was chosen
# ---------------
# Several models forecast parts of the past that they had not been fitted to: echo state networks
# that run on their own outputs, networks that forecast all months at once, a linear autoregression,
# Theta, and last year's values with drift, each on the values and on their logarithms. The forecast
# is their average; whoever had smaller errors has a larger share. `error` is relative to the best.
print(forecaster.summary())

# %%
# Is it any good?
# ---------------
# One forecast of two years is one draw. `backtest` forecasts from ten places, a year apart, and
# compares with what followed. The rival says of each month what was measured twelve months before;
# it takes a class with two methods. With statsmodels installed, exponential smoothing (ETS) joins
# in: error, trend and season are added up.
#
# With ``refit=False`` the forecaster is fitted once, before the first place, and then sees the
# months that follow (`update`) without learning from them: what happens to a model in use.


class LastYear:
    def fit(self, y):
        self.values = y.to_numpy()[-12:]

    def forecast(self, n_steps):
        return np.resize(self.values, n_steps)


class ETS:
    def fit(self, y):
        from statsmodels.tsa.exponential_smoothing.ets import ETSModel

        model = ETSModel(y.interpolate(), trend="add", seasonal="add", seasonal_periods=12)
        self.result = model.fit(disp=False)

    def forecast(self, n_steps):
        return self.result.forecast(n_steps)


places = {"horizon": 24, "n_origins": 10, "step": 12, "metrics": ["mase", "mae"]}
levels = [0.8, 0.95]
results = {
    "ESNForecaster": backtest(
        ESNForecaster(random_state=0), monthly, refit=False, coverage=levels, **places
    ),
    "last year again": backtest(LastYear(), monthly, **places),
}
try:
    results["ETS"] = backtest(ETS(), monthly, **places)
except ImportError:
    print("statsmodels is not installed: no ETS")
for name, result in results.items():
    mean = result.scores.mean()
    print(f"{name}: mean absolute error {mean['mae']:.2f} ppm, MASE {mean['mase']:.2f}")

# %%
# The MASE is the mean absolute error, divided by that of last year's values within the past: below
# 1 is better than these were one year ahead.
#
# How far ahead?
# --------------
# Errors by the month of the horizon: the median of the ten forecasts, and their quartiles. Last
# year's values are wrong by a year's growth, and from the thirteenth month on by that of two.
plotting.horizon_errors(results)

# %%
# Do the bands keep their promise?
# --------------------------------
# The share of months inside, over all ten forecasts, and the mean width. These are 240 months, but
# not 240 independent ones: a forecast that is off is off for many months in a row.
scores = results["ESNForecaster"].scores
for level in levels:
    inside, width = scores[f"coverage {level}"].mean(), scores[f"width {level}"].mean()
    print(f"{level:.0%} bands: {inside:.0%} inside, mean width {width:.1f} ppm")

# %%
# What is left to learn?
# ----------------------
# Errors of one month ahead should be unrelated to those before them: what an error says of the next
# one could have been forecast. On the left their autocorrelation, of which one in twenty leaves the
# grey bounds by chance; the test of Ljung and Box takes all of them together, and p below .05 would
# speak against independence. On the right their distribution, beside the normal one.
single = backtest(ESNForecaster(random_state=0), monthly, horizon=1, n_origins=120, refit=False)
plotting.residuals(single.errors["error"])

# %%
# New months
# ----------
# `update` takes the months that have come since `fit`, and the forecast goes on behind them. What
# no band can answer, sample paths do: each is a way in which the months may go on. How likely is it
# that a month of the next two years has a mean above 376 ppm?
forecaster.update(future)
paths = forecaster.simulate(24, n_paths=1000, random_state=0)
print(f"forecast up to {paths.index[-1]:%B %Y}")
print(f"a month above 376 ppm: {(paths.max() > 376).mean():.0%} of the paths")

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.plot(monthly["1998":], color="0.6", linewidth=3, label="measured")
for i in range(20):
    label = "20 sample paths" if i == 0 else None
    ax.plot(paths[i], color="tab:blue", linewidth=0.6, alpha=0.7, label=label)
ax.plot(forecaster.forecast(24), color="firebrick", linestyle="--", label="forecast")
ax.axhline(376, color="black", linestyle=":", linewidth=1)
ax.set(xlabel="time", ylabel="CO2, ppm")
ax.legend(frameon=False, loc="upper left")
plt.show()

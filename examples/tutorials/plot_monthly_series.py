"""
Forecast a monthly series, with dates and bands
===============================================

From a table with dates to a forecast of two years, with bands that state how certain it is.

The series is carbon dioxide on Mauna Loa, by month:
"""

from reservoir import ESNForecaster, plotting
from reservoir.datasets import load_co2

weekly = load_co2(missing="nan", as_frame=True)["co2"]
monthly = weekly.resample("MS").mean()  # a pandas Series with dates
past, future = monthly[:-24], monthly[-24:]
forecaster = ESNForecaster(random_state=0).fit(past)
forecast = forecaster.forecast(24, coverage=[0.8, 0.95])
print(forecast.round(1).iloc[[0, 11, 23]].T)
ax = plotting.forecast(monthly["1995":], forecast)
ax.set_ylabel("CO2, ppm")

# %%
# There is nothing to set: the dates tell that a season has 12 rows, and `fit` finds the models. The
# bands should contain 80 and 95 of 100 values. The last two years were held out; grey is the truth.
# Some months of the early years have no value. They stay missing (NaN).
#
# An instrument on Mauna Loa is calibrated up to 376 ppm. The rest of the page decides whether it
# has to be recalibrated before the next two years are over. Your own series may come from
# ``pd.read_csv("file.csv", index_col="date", parse_dates=True)["co2"]``.
#
# What was chosen
# ---------------
# Several models forecast parts of the past that they had not been fitted to: echo state networks in
# a closed loop, networks that forecast all months at once, a linear autoregression, Theta, and last
# year's values with drift, each on the values and on their logarithms. The forecast is their
# average. Models with smaller errors have a larger share. `error` is relative to the best.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge

from reservoir.model_selection import backtest

print(f"mean absolute error: {np.abs(forecast['forecast'] - future).mean():.2f} ppm")
print(f"{len(monthly)} months, {monthly.isna().sum()} without a value")
print(forecaster.summary())

# %%
# Is it any good?
# ---------------
# One forecast of two years is one draw. `backtest` forecasts from ten positions, a year apart, and
# fits the models again at each. The rivals are the values of twelve months before (*seasonal
# naive*), the same plus the gain of the year before (*drift*), and a ridge regression on the 24
# months before (``n_lags``), in a closed loop. Ridge needs all months: missing ones are
# interpolated for it.


class LastYear:
    def fit(self, y):
        self.values = y.to_numpy()[-12:]

    def forecast(self, n_steps):
        return np.resize(self.values, n_steps)


class LastYearWithDrift(LastYear):
    def fit(self, y):
        super().fit(y)
        self.gained = y.iloc[-1] - y.iloc[-13]

    def forecast(self, n_steps):
        years = np.arange(n_steps) // 12 + 1
        return super().forecast(n_steps) + years * self.gained


places = {"horizon": 24, "n_origins": 10, "step": 12, "metrics": ["mase", "mae"]}
levels = [0.8, 0.95]
esn, filled = ESNForecaster(random_state=0), monthly.interpolate()
results = {
    "ESNForecaster": backtest(esn, monthly, coverage=levels, **places),
    "ridge on 24 lags": backtest(Ridge(), filled, n_lags=24, **places),
    "last year, drift": backtest(LastYearWithDrift(), monthly, **places),
    "last year again": backtest(LastYear(), monthly, **places),
}
for name, result in results.items():
    mean = result.scores.mean()
    print(f"{name}: mean absolute error {mean['mae']:.2f} ppm, MASE {mean['mase']:.2f}")

# %%
# The MASE is the mean absolute error, divided by that of last year's values within the past: below
# 1 is better than these were one year ahead. The forecaster is ahead of ridge by about 15 %, and of
# last year's values with drift by about a quarter. Ten positions, and not independent ones: a lead,
# not a landslide. Ridge is enough if nobody needs bands and there are no gaps.
#
# How far ahead?
# --------------
# Errors by month ahead: medians and quartiles of the ten forecasts. Last year's values are wrong by
# the growth of a year, and from the thirteenth month on by that of two.
ax = plotting.horizon_errors(results)
ax.set(xlabel="months ahead", ylabel="absolute error, ppm")

# %%
# Are the bands true?
# -------------------
# The share of months inside, over all ten forecasts, and the mean width. These 240 months are not
# independent: a forecast that is off is off for many months in a row.
scores = results["ESNForecaster"].scores
for level in levels:
    inside, width = scores[f"coverage {level}"].mean(), scores[f"width {level}"].mean()
    print(f"{level:.0%} bands: {inside:.0%} inside, mean width {width:.1f} ppm")

# %%
# They are close to what they promise. If they contained much less, we would quote wider bands.
#
# What is left to learn?
# ----------------------
# Errors of one month ahead should be unrelated to those before them, or part of them could have
# been forecast. On the left their autocorrelation: one in twenty leaves the grey bounds by chance.
# The test of Ljung and Box takes all of them together: p below .05 would speak against
# independence. On the right their distribution, beside the normal one.
single = backtest(
    ESNForecaster(random_state=0), monthly, horizon=1, n_origins=120, refit=False
)
axes = plotting.residuals(single.errors["error"])

# %%
# The decision
# ------------
# `update` takes the months since `fit`, and the forecast continues after them. Sample paths answer
# what no band can: each is one way in which the months may continue. How likely is a month above
# 376 ppm?
forecaster.update(future)
paths = forecaster.simulate(24, n_paths=1000, random_state=0)
print(f"forecast up to {paths.index[-1]:%B %Y}")
print(f"a month above 376 ppm: {(paths.max() > 376).mean():.0%} of the paths")
first = paths.loc[:, paths.max() > 376].gt(376).idxmax()  # of each path, the month
for year in (2002, 2003):
    print(f"for the first time in {year}: {(first.dt.year == year).sum() / 10:.0f}%")
print("most often in", first.mode()[0].strftime("%B %Y"))

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
plotting.forecast(monthly["1998":], forecaster.forecast(24), legend=False, ax=ax)
for i in range(20):
    label = "20 sample paths" if i == 0 else None
    ax.plot(paths[i], color="C1", linewidth=0.6, alpha=0.7, label=label)
ax.axhline(376, color="black", linestyle=":", linewidth=1)
ax.set_ylabel("CO2, ppm")
fig.legend(loc="outside upper left", ncols=4, frameon=False)
plt.show()

# %%
# The thin lines are sample paths; the dotted line is where the instrument ends. Most paths cross
# it, and most of these in the spring of 2003: recalibrate before that spring. The share for 2002 is
# the risk of waiting. Bands could not tell: they are true for each month alone, and a year has
# several months in which the line may be crossed.
#
# Weeks instead of months: :doc:`/gallery/plot_co2`. Inputs that are known in advance:
# :doc:`plot_known_inputs`. Many series at once: :doc:`plot_many_series`.

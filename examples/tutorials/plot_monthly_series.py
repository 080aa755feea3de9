"""
Forecast a monthly series, with dates and bands
===============================================

From a table with dates to the next two years, with bands that say how sure they are. An
instrument on Mauna Loa is calibrated up to 376 ppm of carbon dioxide. At the end we
decide whether it has to be recalibrated before the two years are over.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge

from reservoir import ESNForecaster, plotting
from reservoir.datasets import load_co2
from reservoir.model_selection import backtest

# sphinx_gallery_thumbnail_number = 2

# %%
# Any pandas Series with dates will do. One of your own may come from
# ``pd.read_csv("file.csv", index_col="date", parse_dates=True)["co2"]``; ours is carbon
# dioxide on Mauna Loa, a value per week, of which pandas makes the means of months.
# Some months of the early years have no value. They stay missing (NaN): nothing has to
# be filled in.
weekly = load_co2(missing="nan", as_frame=True)["co2"]
monthly = weekly.resample("MS").mean()
print(monthly.tail(3).round(2))
print(f"{len(monthly)} months, {monthly.isna().sum()} without a value")

fig, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
ax.plot(monthly, color="black", linewidth=1)
ax.set(xlabel="year", ylabel="CO2, ppm")

# %%
# The picture shows a rise that grows steeper, and a wave of one year on top of it,
# lowest in autumn.

# %%
# Fit, forecast
# -------------
# The last two years are held back, to see what the forecast is worth. There is nothing
# to set: the dates say that rows are months, so that the season has 12 rows, and `fit`
# finds the models. `coverage` asks for bands that are to hold 80 and 95 of 100 values.
# What comes back has the dates that follow.
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
# Several models forecast parts of the past that they had not been fitted to: echo state
# networks that run on their own outputs, networks that forecast all months at once, a
# linear autoregression, Theta, and last year's values with drift, each on the values
# and on their logarithms. The forecast is their average; whoever had smaller errors has
# a larger share. `error` is relative to the best.
print(forecaster.summary())

# %%
# Is it any good?
# ---------------
# One forecast of two years is one draw. `backtest` forecasts from ten places, a year
# apart, and compares with what followed; models are fitted anew at each place. The
# rivals: the values of twelve months before (*seasonal naive*), the same plus what the
# year before had gained (*drift*), each a class with two methods, and a ridge
# regression on the 24 months before (``n_lags``), run on its own answers. Ridge cannot
# do with missing months: they are interpolated for it.


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
# The MASE is the mean absolute error, divided by that of last year's values within the
# past: below 1 is better than these were one year ahead. The forecaster is ahead of
# ridge by some 15 %, and of last year's values with drift by some 20 %. Ten places, and
# not independent ones: a lead, not a landslide. Ridge is the one to take where nobody
# asks for bands and there are no gaps.
#
# How far ahead?
# --------------
# Errors by the month of the horizon: the median of the ten forecasts, and their
# quartiles. Last year's values are wrong by a year's growth, and from the thirteenth
# month on by that of two.
ax = plotting.horizon_errors(results)
ax.set(xlabel="months ahead", ylabel="absolute error, ppm")

# %%
# Do the bands keep their promise?
# --------------------------------
# The share of months inside, over all ten forecasts, and the mean width. These are 240
# months, but not 240 independent ones: a forecast that is off is off for many months in
# a row.
scores = results["ESNForecaster"].scores
for level in levels:
    inside, width = scores[f"coverage {level}"].mean(), scores[f"width {level}"].mean()
    print(f"{level:.0%} bands: {inside:.0%} inside, mean width {width:.1f} ppm")

# %%
# They hold about what they promise. Had they held much less, we would quote a wider
# band than the one we are asked for.

# %%
# What is left to learn?
# ----------------------
# Errors of one month ahead should be unrelated to those before them: what an error says
# of the next one could have been forecast. On the left their autocorrelation, of which
# one in twenty leaves the grey bounds by chance; the test of Ljung and Box takes all of
# them together, and p below .05 would speak against independence. On the right their
# distribution, beside the normal one.
single = backtest(
    ESNForecaster(random_state=0), monthly, horizon=1, n_origins=120, refit=False
)
plotting.residuals(single.errors["error"])

# %%
# The decision
# ------------
# `update` takes the months that have come since `fit`, and the forecast goes on behind
# them. What no band can answer, sample paths do: each is a way in which the months may
# go on. How likely is it that a month of the next two years has a mean above 376 ppm?
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
# The thin lines are ways in which the two years may go; the dotted one is where the
# instrument ends. Most paths cross it, and most of these in the spring of 2003:
# recalibrate before that spring. To wait until then is a risk as large as the share for
# 2002; who cannot bear it recalibrates now. Bands could not have said so: they hold for
# each month alone, and a year has several months in which the line may be crossed.
#
# What next? To take the years' forecast in weeks instead, see :doc:`/gallery/plot_co2`.
# Inputs that are known in advance: :doc:`plot_known_inputs`. A hundred series at once:
# :doc:`plot_many_series`.

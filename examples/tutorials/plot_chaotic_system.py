"""
Forecast a chaotic system
=========================

Learn the rule of a chaotic system from 1400 rows, and continue them.

The rows may come from a simulation, a laser or a pendulum, and need no settings:
"""

from reservoir import ESNForecaster, plotting
from reservoir.datasets import LYAPUNOV_TIME, lorenz
from reservoir.metrics import valid_time

unit = {"dt": 0.05, "lyapunov_time": LYAPUNOV_TIME["lorenz"]}
orbit = lorenz(3000, dt=0.05, washout=200, rtol=1e-13, atol=1e-13)
seen, truth = orbit[:1400], orbit[1400:2060]
forecaster = ESNForecaster(random_state=0).fit(seen)
forecast = forecaster.forecast(660)
valid = valid_time(truth, forecast, scale=seen.std(axis=0), **unit)
print(f"valid for {valid:.1f} Lyapunov times")
plotting.forecast(orbit[1334:2060], forecast, labels=["x", "y", "z"])

# %%
# The grey lines are the truth, the broken ones the forecast. It follows the truth for more than
# twenty Lyapunov times, and then leaves it for good. The rest of the page shows how far a forecast
# can be trusted, and what it is still good for after that.
#
# The unit of time
# ----------------
# Lorenz's model of convection has three variables. It is chaotic: the difference of two states that
# are almost equal grows by a factor of e in each Lyapunov time, here 1.1 time units or 22 rows. So
# forecasts are measured in Lyapunov times. An error of 1e-9 needs twenty of them to grow to a
# standard deviation, an error of .01 fewer than five. So every digit of the data counts, and they
# are integrated to 13.
#
# There was nothing to set. `fit` found out that the series follows a rule, and searched for
# networks that learn it. A forecast is called valid until its error, the mean over the variables,
# exceeds .3 standard deviations.
#
# From many starts, beside simple rivals
# --------------------------------------
# How long a forecast is valid depends on its start. Here eleven forecasts begin after the rows of
# training; `context` contains the rows to continue. A second seed shows how much is luck. The
# rivals are a linear autoregression on ten rows, and polynomials of degree three and five in the
# last rows, which is called next generation reservoir computing. Lorenz's equations are polynomials
# of degree two: this rival is at home here. Its data are scaled, and its penalties were set by
# hand: with the default one most loops of degree three are valid for less than a Lyapunov time.
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import StandardScaler

from reservoir import NVARRegressor
from reservoir.model_selection import make_forecast_pairs

n_fit, n_steps, scale = 1400, 660, seen.std(axis=0)
starts = range(n_fit + 100, len(orbit) - n_steps, 80)
scaler = StandardScaler().fit(seen)
X, y = make_forecast_pairs(scaler.transform(seen))


def polynomials(n_lags, **parameters):
    model = NVARRegressor(n_lags, increments=True, **parameters).fit(X, y)

    def run(context):
        context = scaler.transform(context)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # late, some diverge
            rows = model.forecast(n_steps, context=context, clip=True)
        return scaler.inverse_transform(rows)

    return run


def continued_by(model):
    return lambda context: model.forecast(n_steps, context=context)


def valid_times(run, rows=orbit):
    columns, found = slice(rows.shape[1]), []
    for at in starts:
        truth, forecast = orbit[at : at + n_steps, columns], run(rows[at - 100 : at])
        found.append(valid_time(truth, forecast, scale=scale[columns], **unit))
    return found


models = {
    "linear autoregression": polynomials(10, degree=1),
    "polynomials of degree 3": polynomials(2, degree=3, alpha=1e-6),
    "polynomials of degree 5": polynomials(1, degree=5, alpha=1e-20),
    "networks, seed 0": continued_by(forecaster),
    "networks, seed 1": continued_by(ESNForecaster(random_state=1).fit(seen)),
}
print(f"{'Lyapunov times valid':26s}  least median   most   of {len(starts)} starts")
for name, run in models.items():
    found = valid_times(run)
    print(f"{name:26s}{min(found):7.1f}{np.median(found):7.1f}{max(found):7.1f}")

# %%
# The linear model fails at once: chaos is not linear. Polynomials get less than half as far as the
# networks, since a step of .05 of this system is no polynomial of low degree. (With shorter steps
# it nearly is, and there they are hard to beat.) The two seeds differ less than the starts do.
#
# How the networks were chosen
# ----------------------------
# Each candidate was fitted with each penalty, and ran in a closed loop from eight positions in the
# data. The score is the number of digits that these forecasts keep, on average over 100 steps. The
# smallest penalties win, since the data have no noise. The same search among your own networks:
# :doc:`plot_tune_closed_loop`.
results = forecaster.search_results_
plotting.closed_loop_search(results)
print(f"observed: {results['observed']}; noise {results['noise']:.0e} std")

# %%
# With noise, and with one variable
# ---------------------------------
# This was the easy case. With noise of one per cent a forecast starts from an error of a hundredth.
# If y and z are hidden, a row alone does not determine the next one: the forecaster finds that out
# (*observed: some*), and tries networks that remember x. Errors are counted from the truth.
noisy = orbit + 0.01 * scale * np.random.default_rng(0).normal(size=orbit.shape)
cases = {"all variables": (forecaster, orbit)}
for name, rows in (("1 % noise", noisy), ("x alone", orbit[:, :1])):
    cases[name] = ESNForecaster(random_state=0).fit(rows[:n_fit]), rows
fig, ax = plt.subplots(figsize=(7, 2.2), layout="constrained")
ax.set_yticks([0, -1, -2], labels=list(cases))
ax.set(xlabel="Lyapunov times valid; a bar at the median", xlim=(0, 31))
ax.set_ylim(-2.6, 0.6)
for place, (name, (model, rows)) in enumerate(cases.items()):
    found = valid_times(continued_by(model), rows)
    middle = np.median(found)
    ax.plot(found, np.full(len(found), -place), "o", color="black", alpha=0.4)
    ax.plot(middle, -place, "|", color="C0", markersize=24, markeredgewidth=2)
    observed = model.search_results_["observed"]
    print(f"{name:14s} median {middle:4.1f}, least {min(found):4.1f}; {observed=}")

# %%
# Each dot is a forecast from another start. Expect this of measured data: a few Lyapunov times. To
# see further, measure more precisely, or more variables. A better model gains little.
#
# What remains: the climate
# -------------------------
# A forecast that has left the truth may still be right as a climate model is right. Here the first
# forecaster runs for 72 Lyapunov times. Left and middle: phase portraits, z over x. Right: each
# maximum of z over the last one. Lorenz found that these lie on one curve, like a tent. The network
# has never received these maxima as such.
free = forecaster.forecast(len(orbit) - n_fit)
fig, (left, middle, right) = plt.subplots(1, 3, figsize=(7, 2.8), layout="constrained")
for ax, rows, name, color, mark in [
    (left, orbit[n_fit:], "truth", "0.5", {"marker": "o", "s": 30}),
    (middle, free, "forecast", "C0", {"marker": "x", "s": 12}),
]:
    x, z = rows[:, 0], rows[:, 2]
    ax.plot(x, z, color=color, linewidth=0.6)
    ax.set(xlabel="x", ylabel="z", title=name, xlim=(-21, 21), ylim=(0, 50))
    peaks = z[1:-1][(z[1:-1] > z[:-2]) & (z[1:-1] > z[2:])]
    right.scatter(peaks[:-1], peaks[1:], color=color, linewidth=1, label=name, **mark)
right.set(xlabel="maximum of z", ylabel="next maximum of z")
right.legend(frameon=False, fontsize="small")
# sphinx_gallery_thumbnail_number = 4

# %%
# Means and deviations over so few turns are uncertain themselves, and so are the distances of the
# power spectra and of the distributions from those of the first row. The second row shows how much:
# it is the truth at other times.
from reservoir.metrics import power_spectrum_distance, sliced_wasserstein

print(
    f"{'':24s}{'mean of z':>10s}{'std of x':>10s}{'std of z':>10s}{'spectrum':>10s}{'rows':>8s}"
)
for name, rows in {
    "truth, after training": orbit[n_fit:],
    "truth, in training": seen,
    "forecast": free,
}.items():
    x, z = rows[:, 0], rows[:, 2]
    spreads = f"{z.mean():10.1f}{x.std():10.1f}{z.std():10.1f}"
    spectrum = power_spectrum_distance(orbit[n_fit:], rows)
    apart = sliced_wasserstein(orbit[n_fit:], rows, random_state=0)
    print(f"{name:24s}{spreads}{spectrum:10.2f}{apart:8.2f}")

# %%
# The strictest test is the rate at which two forecasts of the network part: its Lyapunov exponent.
# They start from rows that differ by 1e-9. The logarithm of their distance, averaged over starts,
# is a line whose slope is the exponent.
logs = []
for at in starts[::2]:
    context = orbit[at - 100 : at]
    pushed = context + 1e-9 * (np.arange(100) == 99)[:, None]  # the last row
    pair = [forecaster.forecast(300, context=rows) for rows in (context, pushed)]
    logs.append(np.log(np.linalg.norm(pair[0] - pair[1], axis=1)))
t, parting = 0.05 * np.arange(1, 301), np.mean(logs, axis=0)
slope, level = np.polyfit(t[40:], parting[40:], 1)
lorenz_exponent = 1 / unit["lyapunov_time"]
print(f"exponent {slope:.2f} a time unit; of Lorenz's equations {lorenz_exponent:.2f}")

fig, ax = plt.subplots(figsize=(6.4, 3), layout="constrained")
ax.semilogy(t, np.exp(np.transpose(logs)), color="0.8", linewidth=0.8)
ax.semilogy(t, np.exp(parting), color="C0", label="mean of the starts")
ax.semilogy(t, np.exp(level + slope * t), "k--", label=f"slope {slope:.2f}")
ax.set(xlabel="time units", ylabel="distance of two forecasts")
ax.legend(frameon=False)

# %%
# The loop of a single network needs no pairs: `stability.loop_exponents` follows its derivatives,
# and returns the next exponents, too.
#
# To take away
# ------------
# - Without noise and with all variables, forecasts are valid for about twenty Lyapunov times, from
#   each start and with each seed. With noise of one per cent it is four to five.
# - After that single rows are unreliable. The attractor, its statistics and the growth of errors
#   are still those of the system: use them for ensembles, extremes and return times.
# - This is true where the data have been; for other parameters see :doc:`plot_parameter_as_input`.
#
# With your own system: hold rows out, start many times, count in Lyapunov times, compare with a
# linear model, and look at the climate. Whether a forecaster can diverge at all is a question for a
# proof: :doc:`plot_stability`.
plt.show()

"""
Forecast a chaotic system
=========================

You have the rows of a system that follows a rule of its own: a simulation, a laser, a
pendulum. You want to know how far it can be forecast, and whether the model has learned
the rule, or only the series. At the end you will say how far a forecast is to be
trusted, in Lyapunov times, and what it is still good for after that.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import StandardScaler

from reservoir import ESNForecaster, NVARRegressor, plotting
from reservoir.datasets import LYAPUNOV_TIME, lorenz
from reservoir.metrics import valid_time
from reservoir.model_selection import make_forecast_pairs

# %%
# The data, and how fast they forget
# ----------------------------------
# Lorenz's model of convection has three variables; we have 1400 rows of it, .05 time
# units apart. It is chaotic: two states that are almost equal part, their difference
# growing by a factor of e in each Lyapunov time, here 1.1 time units or 22 rows. That
# is the unit in which to count how far a forecast goes. An error of 1e-9 needs twenty
# of them to grow to a standard deviation, one of a hundredth not even five. So every
# digit of the data counts: they are integrated to 13. sphinx_gallery_thumbnail_number =
# 4
dt, n_fit, n_steps = 0.05, 1400, 660  # 660 rows are 30 Lyapunov times
lyapunov_time = LYAPUNOV_TIME["lorenz"]
orbit = lorenz(3000, dt=dt, washout=200, rtol=1e-13, atol=1e-13)
seen, scale = orbit[:n_fit], orbit[:n_fit].std(axis=0)

# %%
# As it comes
# -----------
# There is nothing to set. `fit` finds out that the series follows a rule, and looks for
# networks that learn it; `forecast` goes on from the last row. A forecast is called
# valid until its error exceeds .3 standard deviations, the mean over the variables.
forecaster = ESNForecaster(random_state=0).fit(seen)
guess, truth = forecaster.forecast(n_steps), orbit[n_fit : n_fit + n_steps]
valid = valid_time(truth, guess, dt=dt, lyapunov_time=lyapunov_time, scale=scale)
print(f"valid for {valid:.1f} Lyapunov times")

times = np.arange(-66, n_steps) * dt / lyapunov_time
shown = orbit[n_fit - 66 : n_fit + n_steps]
ax = plotting.forecast(shown, guess, index=times, labels=["x", "y", "z"])
ax.set_xlabel("Lyapunov times since the forecast began")

# %%
# The grey lines are the truth, the broken ones the forecast: it stays on the truth for
# more than twenty Lyapunov times, and then leaves it for good. No forecast of a chaotic
# system does otherwise; a better one only leaves later.
#
# From many starts, beside simple rivals
# --------------------------------------
# How long one forecast is valid depends on where it starts. `context` holds the rows to
# go on from; we start at eleven places behind the rows of training. A forecaster with
# another seed says how much is luck. The rivals: a linear autoregression on ten rows; and
# polynomials of degree three and five in the last two rows, which is called next
# generation reservoir computing. Lorenz's equations are polynomials, of degree two:
# this rival is at home here. It needs scaled data, and a penalty that its loops bear: the
# one that is best for a single step, and chosen as it comes, is ten times smaller, and
# under it the loops of degree three hold for less than a Lyapunov time.
starts = range(n_fit + 100, len(orbit) - n_steps, 80)
scaler = StandardScaler().fit(seen)
X, y = make_forecast_pairs(scaler.transform(seen))


def polynomials(n_lags, **parameters):
    model = NVARRegressor(n_lags, increments=True, **parameters).fit(X, y)

    def run(context):
        context = scaler.transform(context)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # late, some run away
            rows = model.forecast(n_steps, context=context, clip=True)
        return scaler.inverse_transform(rows)

    return run


def going_on(model):
    return lambda context: model.forecast(n_steps, context=context)


def valid_times(run, rows=orbit):
    columns = slice(rows.shape[1])
    unit = {"dt": dt, "lyapunov_time": lyapunov_time, "scale": scale[columns]}
    return [
        valid_time(orbit[at : at + n_steps, columns], run(rows[at - 100 : at]), **unit)
        for at in starts
    ]


models = {
    "linear autoregression": polynomials(10, degree=1),
    "polynomials of degree 3": polynomials(2, degree=3, alpha=1e-6),
    "polynomials of degree 5": polynomials(1, degree=5, alpha=1e-20),
    "networks, seed 0": going_on(forecaster),
    "networks, seed 1": going_on(ESNForecaster(random_state=1).fit(seen)),
}
print(f"{'Lyapunov times valid':26s}  least median   most   of {len(starts)} starts")
for name, run in models.items():
    found = valid_times(run)
    print(f"{name:26s}{min(found):7.1f}{np.median(found):7.1f}{max(found):7.1f}")

# %%
# The linear model is lost at once: chaos is not linear. Polynomials get further, but
# not half as far as the networks: what the system does in a step of .05 is no
# polynomial of low degree. (With shorter steps it nearly is, and there they are hard to
# beat.) The networks' seeds differ less than their starts do.
#
# What the choice rests on
# ------------------------
# Each network of a bank was fitted under each penalty and ran on its own outputs from
# eight places in the data. The score counts the digits that these forecasts keep, on
# average over 100 steps. The smallest penalties win: the data have no noise, so there
# is nothing to smooth away. How to make such a choice among networks of your own:
# :doc:`plot_tune_closed_loop`.
results = forecaster.search_results_
plotting.closed_loop_search(results)
print(f"observed: {results['observed']}; noise {results['noise']:.0e} std")

# %%
# With noise, and with one variable
# ---------------------------------
# This was the easy case: no noise, and all variables seen. With noise of one per cent a
# forecast starts from an error of a hundredth, and what is left are the Lyapunov times
# in which that grows to the threshold. Where y and z are hidden a row does not tell the
# next one: the forecaster finds that out (*observed: some*), and tries networks that
# remember x. Errors are counted from the truth.
noisy = orbit + 0.01 * scale * np.random.default_rng(0).normal(size=orbit.shape)
cases = {"all variables": (forecaster, orbit)}
for name, rows in (("1 % noise", noisy), ("x alone", orbit[:, :1])):
    cases[name] = ESNForecaster(random_state=0).fit(rows[:n_fit]), rows
fig, ax = plt.subplots(figsize=(7, 2.2), layout="constrained")
ax.set_yticks([0, -1, -2], labels=list(cases))
ax.set(
    xlabel="Lyapunov times valid; a bar at the median", xlim=(0, 31), ylim=(-2.6, 0.6)
)
for place, (name, (model, rows)) in enumerate(cases.items()):
    found = valid_times(going_on(model), rows)
    middle = np.median(found)
    ax.plot(found, np.full(len(found), -place), "o", color="black", alpha=0.4)
    ax.plot(middle, -place, "|", color="C0", markersize=24, markeredgewidth=2)
    observed = model.search_results_["observed"]
    lengths = f"median {middle:4.1f}, least {min(found):4.1f}"
    print(f"{name:14s} {lengths}; observed: {observed}")

# %%
# Each dot is a forecast from another start. This is what to expect of measured data: a
# few Lyapunov times. To see further, measure more precisely, or more variables; a
# better model gains little.
#
# What remains: the climate
# -------------------------
# After a forecast has left the truth it may still be right in another sense, as a
# climate model is where no weather forecast reaches. Let the first forecaster run for
# 72 Lyapunov times. Left and middle: the phase portraits, z over x. Right: each maximum
# of z over the last one. Lorenz found that these lie on one curve, like a tent; no one
# showed it to the network.
free = forecaster.forecast(len(orbit) - n_fit)


def maxima(z):
    return z[1:-1][(z[1:-1] > z[:-2]) & (z[1:-1] > z[2:])]


fig, (left, middle, right) = plt.subplots(1, 3, figsize=(7, 2.8), layout="constrained")
for ax, rows, name, color, mark in [
    (left, orbit[n_fit:], "truth", "0.5", {"marker": "o", "s": 30}),
    (middle, free, "forecast", "C0", {"marker": "x", "s": 12}),
]:
    ax.plot(rows[:, 0], rows[:, 2], color=color, linewidth=0.6)
    ax.set(xlabel="x", ylabel="z", title=name, xlim=(-21, 21), ylim=(0, 50))
    peaks = maxima(rows[:, 2])
    right.scatter(peaks[:-1], peaks[1:], color=color, linewidth=1, label=name, **mark)
right.set(xlabel="maximum of z", ylabel="next maximum of z")
right.legend(frameon=False, fontsize="small")

# %%
# Numbers say more than a butterfly does. Means and deviations over so few turns are
# uncertain themselves, which the second row shows: it is the truth at other times.
print(f"{'':24s}{'mean of z':>10s}{'std of x':>10s}{'std of z':>10s}{'x > 0':>8s}")
for name, rows in {
    "truth, after training": orbit[n_fit:],
    "truth, in training": seen,
    "forecast": free,
}.items():
    x, z = rows[:, 0], rows[:, 2]
    spreads = f"{z.mean():10.1f}{x.std():10.1f}{z.std():10.1f}"
    print(f"{name:24s}{spreads}{(x > 0).mean():8.0%}")

# %%
# The strictest test is the rate at which the network's own forecasts part, its Lyapunov
# exponent. Two forecasts start from rows that differ by 1e-9; the logarithm of their
# distance, averaged over starts, is a line whose slope is the exponent.
logs = []
for at in starts[::2]:
    context = orbit[at - 100 : at]
    pushed = context + 1e-9 * (np.arange(100) == 99)[:, None]  # the last row
    pair = [forecaster.forecast(300, context=rows) for rows in (context, pushed)]
    logs.append(np.log(np.linalg.norm(pair[0] - pair[1], axis=1)))
parting = np.mean(logs, axis=0)
t = dt * np.arange(1, 301)
slope, level = np.polyfit(t[40:], parting[40:], 1)
truly = 1 / lyapunov_time
print(f"exponent {slope:.2f} per time unit; of Lorenz's equations {truly:.2f}")

fig, ax = plt.subplots(figsize=(6.4, 3), layout="constrained")
ax.semilogy(t, np.exp(np.transpose(logs)), color="0.8", linewidth=0.8)
ax.semilogy(t, np.exp(parting), color="C0", label="mean of the starts")
line = np.exp(level + slope * t)
ax.semilogy(t, line, "k--", label=f"slope {slope:.2f}")
ax.set(xlabel="time units", ylabel="distance of two forecasts")
ax.legend(frameon=False)

# %%
# What to say of it
# -----------------
# - Without noise and with all variables seen, forecasts hold for about twenty Lyapunov
#   times, from each of the starts and with each seed; with noise of a per cent for
#   about three.
# - After that, no row is to be trusted, but the attractor, its statistics and the rate
#   at which errors grow are those of the system: ensembles, extremes and return times
#   can be read off it.
# - That holds for where the data have been. What happens under another parameter of the
#   system, or in a part of the attractor that 1400 rows have not visited, the network
#   has not seen.
#
# Before you trust a system of your own: keep rows aside, start many times, count in
# Lyapunov times, compare with a linear model, and look at the climate. Whether a
# forecaster can run away at all is a question for a proof: :doc:`plot_stability`.
plt.show()

"""
Stability for people who do not read proofs
===========================================

See a network forget its initial state, with a proof, and settle on one limit cycle.

If a network is started again, will its outputs be the same? For the network below they will:
"""

import numpy as np

from reservoir import ESNRegressor, plotting
from reservoir.dynamics import run
from reservoir.stability import find_limit_cycle

X = np.sin(2 * np.pi * np.arange(2000) / 40)[:, None]  # a period has 40 steps
options = {"spectral_radius": 0.99, "leak_rate": 1.0, "input_scaling": 0.3}
esn = ESNRegressor(100, topology="orthogonal", bias="stable", random_state=0, **options)
print(esn.fit(X[:-1], X[1:]).certificate_)
starts = np.random.default_rng(0).uniform(-1, 1, (8, 100))
paths = [np.vstack([s, run(esn.reservoir_, X[:800], initial_state=s)]) for s in starts]
cycle = find_limit_cycle(esn.reservoir_, X[:40])
plotting.phase_portrait(paths, cycle=cycle, units="pca", smooth=True)

# %%
# Eight runs begin at eight dots and end on one curve. *Proved* means: for every start, and within
# the printed number of steps. The rest of the page shows a network that does not forget, how to get
# a proof, what it means and what it costs. No theorem is needed.
#
# A measured series
# -----------------
# The series is the temperature of the sea off Peru by month since 1950. Every few years El Nino
# makes it warmer. The network predicts the next month. Inputs are standardised. The mean year, the
# average January to the average December, is an input with a period of 12 steps.
import warnings

import matplotlib.pyplot as plt
from sklearn.linear_model import RidgeCV

from reservoir.datasets import load_el_nino
from reservoir.stability import (
    certify,
    certify_cycle,
    design,
    drive_range,
    sample_attractors,
)

series = load_el_nino(as_frame=True)["temperature"]
values = ((series - series.mean()) / series.std()).to_numpy()[:, None]
X, y = values[:-1], values[1:]
mean_year = values[:732].reshape(-1, 12).mean(axis=0)[:, None]

# %%
# One network, two answers
# ------------------------
# This is a common setup: a hundred random units without a leak, and a spectral radius of 1.2, which
# is said to give a longer memory. The seed was chosen because it shows what can happen; many others
# have one response. The network receives the mean year again and again, from 30 initial states.
common = {"spectral_radius": 1.2, "leak_rate": 1.0, "input_scaling": 0.3}
unproved = ESNRegressor(100, **common, random_state=2).fit(X, y)
found = sample_attractors(
    unproved.reservoir_, mean_year, n_initial_states=30, random_state=0
)
print(f"responses to the same input: {found.count}")
print("shares of 30 initial states:", found.basins.round(2).tolist())


def runs(reservoir, n_runs=12, n_years=20, seed=1):
    """Run the mean year from random initial states."""
    n_units = len(reservoir.bias)
    starts = np.random.default_rng(seed).uniform(-1, 1, (n_runs, n_units))
    months = np.tile(mean_year, (n_years, 1))
    return [np.vstack([x, run(reservoir, months, initial_state=x)]) for x in starts]


style = {"units": "pca", "smooth": True}
paths = runs(unproved.reservoir_, 6)
plotting.phase_portrait(paths, cycle=found, n_transient=120, **style)
plt.show()

# %%
# There are two responses, and the initial state determines which one it is. In the picture each
# line is a run, drawn on the two directions in which states differ most. The runs end on one closed
# curve or on the other. These are *limit cycles*, and a readout gives other outputs on each.
#
# With the *measured* months, which vary, this network forgets every start that was tried: forecasts
# of the last year from ten initial states, twenty years before, are almost the same. A calm year
# could still separate them, and trying cannot exclude that.
starts = np.random.default_rng(0).uniform(-1, 1, (10, 100))
outputs = [unproved.predict(X[-240:], initial_state=x)[-12:] for x in starts]
print(f"largest difference: {np.ptp(outputs, axis=0).max():.1e} standard deviations")

# %%
# Ask for a proof
# ---------------
# A *certificate* is a proof for one network and a range of inputs: for any inputs within the range,
# runs from any two starts come together. `certify` searches for one. Here it finds none, rightly.
# (No proof found does not prove the contrary. The two cycles above do.)
#
# ``bias="stable"`` searches for a bias with which there is a certificate. Such a bias presses units
# towards their bounds, where they transmit less, and this costs memory. The warning states how much
# memory is lost, and what would cost less: above all an orthogonal matrix of weights.
limits = drive_range(unproved.reservoir_, values.min(), values.max())
print(certify(unproved.reservoir_, *limits).holds)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    biased = ESNRegressor(100, **common, bias="stable", random_state=2).fit(X, y)
proved = {"topology": "orthogonal", "spectral_radius": 0.99, "bias": "stable"}
orthogonal = ESNRegressor(100, **(common | proved), random_state=2).fit(X, y)
print(biased.certificate_.holds, orthogonal.certificate_.holds)
print(*[warning.message for warning in caught], sep="\n")

# %%
# What a certificate states
# -------------------------
# ``covers_inputs`` tells whether rows are within the range of the proof: the months of `fit`, with
# a tenth of their width added on both sides. ``steps_to`` gives the number of steps after which,
# from any two states, no unit differs by more than a given distance. That is a proved washout.
certificate = orthogonal.certificate_
print(f"covers all months: {certificate.covers_inputs(X)}")
print(f"covers a month of 40 degrees: {certificate.covers_inputs([[7.5]])}")
print("months until no unit differs by more than 0.1, 0.01, 0.001")
fig, axes = plt.subplots(2, 1, figsize=(6, 5.4), layout="constrained")
named = {"biased": biased, "orthogonal": orthogonal}
for (name, model), ax in zip(named.items(), axes, strict=True):
    print(f"  {name:10s} {model.certificate_.steps_to(np.array([0.1, 0.01, 0.001]))}")
    states = [run(model.reservoir_, X[:600], initial_state=x) for x in starts]
    observed = np.abs(np.array(states[1:]) - states[0]).max(axis=2).T
    plotting.forgetting(model.certificate_, observed, distance=1e-3, ax=ax)
    ax.set_title(name, loc="left", fontsize="medium")
    ax.set_xlabel(ax.get_xlabel().replace("steps", "months"))
plt.show()

# %%
# The proved number is large, since it is true for the worst of all inputs and starts. The lines are
# differences between runs with the measured months, which fade sooner.
#
# One cycle
# ---------
# With the mean year as input, a certified network has one limit cycle. `find_limit_cycle` computes
# it, and its *multipliers*: the factors by which a small push off the cycle grows in one period.
# All are inside the unit circle, so small pushes fade.
cycle = find_limit_cycle(orthogonal.reservoir_, mean_year)
print(f"orthogonal: largest multiplier {abs(cycle.multipliers).max():.2f}")
print(f"the two cycles of the first network: {found.moduli.round(2)}")
paths = runs(orthogonal.reservoir_)
plotting.phase_portrait(paths, cycle=cycle, n_transient=60, **style)
plotting.multipliers(cycle)
plt.show()

# %%
# The multipliers of *both* cycles of the first network are inside as well. Multipliers describe
# small pushes. Only a certificate excludes a second cycle elsewhere.
#
# If a network will receive one periodic input only, `certify_cycle` proves it for this input alone.
# For the biased network it proves a much faster rate.
for name, model in named.items():
    alone = certify_cycle(model.reservoir_, mean_year)
    every = f"every input: {model.certificate_.rate:.3f} a month"
    print(f"{name:10s} {every}, the mean year alone: {alone.rate:.3f}")

# %%
# What it costs
# -------------
# A certificate may cost memory. `design` draws networks that can be certified for your inputs, and
# counts the steps of an input that each of them remembers.
print(design(100, X, input_scaling=0.3, random_state=2))

# %%
# Orthogonal and ring networks of radius .99 remember more than a random network without any proof
# (the rows "no"), and a searched bias halves its memory. Does the task need memory? The last 21
# years are held out. Five seeds of each network are compared with a ridge regression on the last 12
# months, and with last month's value.
n_fit, degrees = 480, series.std()
rmse = {}
kinds = {"random, no proof": {}, "random, bias='stable'": {"bias": "stable"}}
for name, options in (kinds | {"orthogonal, proved": proved}).items():
    rmse[name] = []
    for seed in range(5):
        model = ESNRegressor(100, **(common | options), random_state=seed)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message='bias="stable" found')
            model.fit(X[:n_fit], y[:n_fit])
        errors = model.predict(X[n_fit:]) - y[n_fit:]
        rmse[name].append(degrees * np.sqrt(np.mean(errors**2)))
lags = np.lib.stride_tricks.sliding_window_view(values[:-1, 0], 12)
ridge = RidgeCV(np.logspace(-3, 3, 13)).fit(lags[: n_fit - 11], y[11:n_fit, 0])
predicted = ridge.predict(lags[n_fit - 11 :])
for name, rows in {"ridge": predicted, "last month": X[n_fit:, 0]}.items():
    rmse[name] = [degrees * np.sqrt(np.mean((rows - y[n_fit:, 0]) ** 2))]
print("root mean squared error of the next month, degrees: median (least to largest)")
for name, values in rmse.items():
    print(
        f"{name:22s} {np.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"
    )

# %%
# The decision
# ------------
# The first network has two answers to one calm year, and is no better for it. Take the orthogonal
# one: its median error is the least of these, by little, and it varies least between seeds. Random
# weights with a searched bias forget sooner, but have half of the memory. In general:
#
# - To be sure of one answer to one input, ask for a certificate. Trying starts can show two
#   answers, never that there is only one.
# - Begin with ``topology="orthogonal", spectral_radius=0.99, bias="stable"``: proved, and with the
#   longest memory.
# - If the task needs only the last few steps, or a start must be forgotten soon, a random network
#   with ``bias="stable"`` is enough. Its warning does no harm then.
# - A certificate does not measure accuracy: compare errors as above. And it does not apply to a
#   network in a closed loop, which must not come to rest.
#
# Which function answers which question: :doc:`/guide/stability`. The proofs:
# :doc:`/theory/stability`. Bands around a cycle: :doc:`/gallery/stability/plot_phase_portrait`.
# Memory: :doc:`/gallery/stability/plot_certified_memory`. A network in a closed loop:
# :doc:`/gallery/stability/plot_closed_loop_heart`.

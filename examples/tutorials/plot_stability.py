"""
Stability for people who do not read proofs
===========================================

You have a network that hears a series of your own, and one question: if it is started
again, will it say the same? You will see a network that does not, what it takes to
prove that another one does, what the proof says and what it costs. At the end you will
have decided which network to use. No theorem is needed on the way.
"""

# %%
# In short
# --------
# Make a network for which it is proved that it forgets its start, and draw the limit
# cycle to which a periodic input leads it:
import numpy as np

from reservoir import ESNRegressor, plotting
from reservoir.dynamics import run
from reservoir.stability import find_limit_cycle

wave = np.sin(2 * np.pi * np.arange(40) / 40)[:, None]  # one period
X = np.tile(wave, (50, 1))
esn = ESNRegressor(100, topology="orthogonal", spectral_radius=0.99, bias="stable")
esn.set_params(leak_rate=0.3, random_state=0).fit(X[:-1], X[1:])
print(esn.certificate_.holds, esn.certificate_.steps_to(1e-3), "steps at most")
cycle = find_limit_cycle(esn.reservoir_, wave)
starts = np.random.default_rng(0).uniform(-1, 1, (8, 100))
paths = [np.vstack([s, run(esn.reservoir_, X[:800], initial_state=s)]) for s in starts]
ax = plotting.phase_portrait(paths, cycle=cycle, units="pca", smooth=True)

# %%
# Eight runs begin at eight dots and end on one curve. *True* says that this is proved
# for every start, and the number how many steps it takes at most. What that means, and
# what it costs, is the rest of the page.
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

# %%
# A measured series
# -----------------
# The series is the temperature of the sea off Peru, month by month since 1950; every
# few years El Nino makes it warmer. The network is to say the next month. Its inputs
# are standardised, and the mean year, the average January to the average December, is
# kept: it is an input with a period of 12 steps, of which more below.
series = load_el_nino(as_frame=True)["temperature"]
values = ((series - series.mean()) / series.std()).to_numpy()[:, None]
X, y = values[:-1], values[1:]
mean_year = values[:732].reshape(-1, 12).mean(axis=0)[:, None]
print(f"{len(series)} months, {series.min():.1f} to {series.max():.1f} degrees Celsius")

# %%
# One network, two answers
# ------------------------
# Here is a network as people set it up: a hundred random units without a leak
# (``leak_rate=1.0``), and a spectral radius of 1.2, somewhat above 1, because that is
# said to give a longer memory. This draw was chosen because it shows what can happen:
# many others have one response.
#
# Let it hear the mean year, again and again, from two different initial states. It
# hears the same in both runs.
as_people_do = {"spectral_radius": 1.2, "leak_rate": 1.0, "input_scaling": 0.3}
unproved = ESNRegressor(100, **as_people_do, random_state=2)
network = unproved.fit(X, y).reservoir_
found = sample_attractors(network, mean_year, n_initial_states=30, random_state=0)
print(f"responses to the same input that were found: {found.count}")
for k, share in enumerate(found.basins):
    print(f"  response {k + 1}: from {share:.0%} of 30 initial states")

# %%
# There are two responses, and the initial state decides which one it will be. In the
# picture each line is a run, drawn on the two directions in which states differ most.
# The runs end on one closed curve or on the other: these are *limit cycles*, what is
# left when the start is forgotten. Here it is not forgotten altogether. One bit of it
# stays for ever, and a readout says something else on each curve.


def runs(reservoir, n_runs=12, n_years=20, seed=1):
    """Let the mean year act on a network from random initial states."""
    n_units = len(reservoir.bias)
    starts = np.random.default_rng(seed).uniform(-1, 1, (n_runs, n_units))
    months = np.tile(mean_year, (n_years, 1))
    return [np.vstack([x, run(reservoir, months, initial_state=x)]) for x in starts]


fig, ax = plt.subplots(figsize=(5.5, 4.2), layout="constrained")
plotting.phase_portrait(
    runs(network, 6), cycle=found, units="pca", n_transient=120, smooth=True, ax=ax
)
plt.show()

# %%
# Why do people not notice? Under the *measured* months, which wander, this network does
# come together from any start that is tried, if slowly: forecasts of the last year from
# ten initial states, twenty years before, differ by little. A calm year could still be
# the one that parts them, and trying will not tell.
starts = np.random.default_rng(0).uniform(-1, 1, (10, 100))
said = [unproved.predict(X[-240:], initial_state=x)[-12:] for x in starts]
print(f"largest difference of forecasts: {np.ptp(said, axis=0).max():.1e} deviations")

# %%
# Ask for a proof
# ---------------
# A *certificate* is a proof for one network and a range of inputs: whatever the input
# does within the range, and wherever two runs start, they come together. `certify`
# looks for one. For this network it finds none, and rightly. No proof found is in
# itself no proof of the contrary: the two cycles above are.
low, high = values.min(), values.max()
print(certify(network, *drive_range(network, low, high)).holds)

# %%
# ``bias="stable"`` asks an estimator for a network that has a certificate. It keeps the
# weights, and looks for a bias under which there is a proof. Such a bias presses units
# towards their bounds, where they pass less on, and that costs memory. The warning says
# how much, and what would cost less.
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    biased = ESNRegressor(100, **as_people_do, bias="stable", random_state=2).fit(X, y)
print(biased.certificate_.holds)
print(*[warning.message for warning in caught], sep="\n")

# %%
# So take the first that it names: an orthogonal matrix of weights, which turns states
# and shrinks them by 1 % per step, whatever the bias. There is a proof without any
# search, and no warning.
orthogonal = ESNRegressor(
    100,
    topology="orthogonal",
    spectral_radius=0.99,
    leak_rate=1.0,
    input_scaling=0.3,
    bias="stable",
    random_state=2,
).fit(X, y)
print(orthogonal.certificate_.holds)

# %%
# What a certificate says
# -----------------------
# Printed, it names the theorem, and the rate: in the end differences shrink at least by
# this factor per step. For use, two other things matter more. ``covers_inputs`` says
# whether rows lie within the range of the proof: that of the months in `fit`, a tenth
# of its width added on both sides. ``steps_to`` says after how many steps, from any two
# states, no unit differs by more than a given distance: a washout with a proof.
print(orthogonal.certificate_)
print(f"covers all months: {orthogonal.certificate_.covers_inputs(X)}")
print(f"covers a month of 40 degrees: {orthogonal.certificate_.covers_inputs([[7.5]])}")
distances = np.array([0.1, 0.01, 0.001])
print("months until no unit differs by more than", distances)
for name, model in {"biased": biased, "orthogonal": orthogonal}.items():
    print(f"  {name:10s} {model.certificate_.steps_to(distances)}")

# %%
# That is long, since it holds for the worst of all inputs and starts. What is seen is
# shorter: the picture shows differences between runs under the measured months (lines),
# and the proved number of months for each network.
months = X[:600]
fig, axes = plt.subplots(2, 1, figsize=(6, 5.4), layout="constrained")
named = {"biased": biased, "orthogonal": orthogonal}
for (name, model), ax in zip(named.items(), axes, strict=True):
    states = np.array([run(model.reservoir_, months, initial_state=x) for x in starts])
    seen = np.abs(states[1:] - states[0]).max(axis=2).T
    plotting.forgetting(model.certificate_, seen, distance=1e-3, ax=ax)
    ax.set_title(name, loc="left", fontsize="medium")
    ax.set_xlabel(ax.get_xlabel().replace("steps", "months"))
plt.show()

# %%
# One cycle
# ---------
# Under the mean year a certified network has one limit cycle, which attracts
# everything. `find_limit_cycle` computes it, by Newton's method, and its *multipliers*:
# what a small push off the cycle is multiplied by in one period, direction by
# direction. All of them lie inside the unit circle, so small pushes fade.
cycle = find_limit_cycle(orthogonal.reservoir_, mean_year)
print(f"orthogonal: largest multiplier {abs(cycle.multipliers).max():.2f}")
print(f"the two cycles of the first network: {found.moduli.round(2)}")

# %%
# But look at the last line: the multipliers of *both* cycles of the first network are
# inside as well. Multipliers speak of small pushes; that there is no second cycle
# elsewhere only a certificate says. The picture shows runs of the orthogonal network
# (left), and its multipliers (right).
fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained")
paths = runs(orthogonal.reservoir_)
style = {"units": "pca", "n_transient": 60, "smooth": True}
plotting.phase_portrait(paths, cycle=cycle, ax=left, **style)
plotting.multipliers(cycle, ax=right)
plt.show()

# %%
# If one periodic input is all that a network will ever hear, ask for less:
# `certify_cycle` proves it for this input alone. It can succeed where `certify` finds
# nothing, and for the biased network it proves a much faster rate.
for name, model in named.items():
    alone = certify_cycle(model.reservoir_, mean_year)
    print(
        f"{name:10s} every input: {model.certificate_.rate:.3f} per month, "
        f"the mean year alone: {alone.rate:.3f}"
    )

# %%
# What it costs
# -------------
# Memory is what a certificate may cost. `design` draws networks that can be certified
# for your inputs, and says how many steps of an input each of them remembers.
found_design = design(100, X, input_scaling=0.3, random_state=2)
print(found_design)

# %%
# Orthogonal and ring networks of radius .99 remember more than a random network without
# any proof (the rows "no"), and a searched bias halves it. Does the task need memory?
# Errors say: the last twenty-one years are held back, and five seeds of each network
# are beside a ridge on the last 12 months, and last month's value again.
n_fit = 480
kinds = {
    "random, radius 1.2, no proof": {},
    "the same, bias='stable'": {"bias": "stable"},
    "orthogonal, radius .99, proved": {
        "topology": "orthogonal",
        "spectral_radius": 0.99,
        "bias": "stable",
    },
}
print("root mean squared error of the next month, degrees: median (least to largest)")
degrees = series.std()
for name, settings in kinds.items():
    errors = []
    for seed in range(5):
        model = ESNRegressor(100, **(as_people_do | settings), random_state=seed)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message='bias="stable" found')
            model.fit(X[:n_fit], y[:n_fit])
        misses = model.predict(X[n_fit:]) - y[n_fit:]
        errors.append(degrees * np.sqrt(np.mean(misses**2)))
    least, median, largest = np.quantile(errors, [0, 0.5, 1])
    print(f"  {name:32s} {median:.2f} ({least:.2f} to {largest:.2f})")
lags = np.lib.stride_tricks.sliding_window_view(values[:-1, 0], 12)
ridge = RidgeCV(np.logspace(-3, 3, 13)).fit(lags[: n_fit - 11], y[11:n_fit])
rivals = {
    "ridge on 12 months": ridge.predict(lags[n_fit - 11 :])[:, None],
    "last month again": X[n_fit:],
}
for name, rows in rivals.items():
    print(f"  {name:32s} {degrees * np.sqrt(np.mean((rows - y[n_fit:]) ** 2)):.2f}")

# %%
# The decision
# ------------
# The first network is out: it has two answers to one calm year, and is no better for
# it. For the next month take the orthogonal one. Its median error is the least of these,
# if by little beside the ridge, which has no state that could go wrong, and it differs
# least between seeds. It forgets its start within a proved 986 months, where runs show
# about seventy. Random weights under a searched bias forget sooner, within a proved 175
# months, where runs show about ten, and pay for it with half of the memory; their
# errors are those of the ridge. In general:
#
# - To be sure of one answer to one input, ask for a certificate: trying starts shows
#   two answers, never that there is but one.
# - Begin with ``topology="orthogonal", spectral_radius=0.99, bias="stable"``: proved,
#   and with the longest memory.
# - Where the task needs only the last few steps, or a start must be forgotten soon, a
#   random network with ``bias="stable"`` will do. Its warning is then no harm.
# - A certificate says nothing of accuracy; compare errors as above. And it does not
#   speak of a network that runs on its own outputs: that one must not come to rest.

# %%
# What next
# ---------
# - The guide page :doc:`Stability </guide/stability>` says which function answers which
#   question, and :doc:`the theory </theory/stability>` proves what is used here.
# - :doc:`/gallery/stability/plot_phase_portrait` draws what is proved as bands around a
#   cycle, :doc:`/gallery/stability/plot_certified_memory` compares memory, and
#   :doc:`/gallery/stability/plot_closed_loop_heart` is a loop that is not driven.

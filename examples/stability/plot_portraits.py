"""
Phase portraits in one call
===========================

A closed loop, a pipeline, a driven network and one with two attractors: one call runs each, finds
its cycles and draws them.

`phase_portrait` takes a fitted model, or a network, and does the rest: it runs it from several
starts, looks for the cycles that they reach, and draws both. Each picture below is one call, made
once on light and once on dark ground.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.integrate import solve_ivp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir import ESNRegressor, NVARRegressor, plotting
from reservoir.building import build_reservoir
from reservoir.datasets import henon
from reservoir.dynamics import Reservoir, run
from reservoir.scaling import scale_to_norm
from reservoir.stability import (
    LimitCycleError,
    bias_bounds,
    find_limit_cycle,
    find_loop_cycle,
)

GROUNDS = ("default", "dark_background")


def draw(source, **options):
    for ground in GROUNDS:
        with plt.style.context([ground, {"figure.figsize": (4.5, 4.0)}]):
            plotting.phase_portrait(source, **options)
    plt.show()


# %%
# A closed loop
# -------------
# A network learns Van der Pol's oscillator from thirteen runs: twelve that begin elsewhere, and the
# cycle itself. Then it is on its own. Each start is the end of a context, twenty rows of a run. The
# axes have the names of the columns. The legend has the period in steps and the multiplier, the
# share of a deviation that a turn leaves, which `find_loop_cycle` computes.


def van_der_pol(start, n_steps):
    times = 0.1 * np.arange(n_steps)
    path = solve_ivp(
        lambda t, s: [s[1], 0.4 * (1 - s[0] ** 2) * s[1] - s[0]],
        (0, times[-1]),
        start,
        t_eval=times,
        rtol=1e-9,
        atol=1e-9,
    )
    return pd.DataFrame(path.y.T, columns=["x", "v"])


angles = 2.4 * np.arange(12)
starts = np.linspace(0.5, 3.5, 12) * np.array([np.cos(angles), np.sin(angles)])
runs = [van_der_pol(start, 300) for start in starts.T]
cycle = van_der_pol([2, 0], 1200)[200:]
network = {"n_units": 200, "input_scaling": 0.5, "alpha": 1e-10, "washout": 20}
model = ESNRegressor(**network, n_lags=1, random_state=0)
model.fit([rows[:-1] for rows in [*runs, cycle]], [rows[1:] for rows in [*runs, cycle]])

draw(model, context=[rows[:20] for rows in runs])

# %%
# A pipeline with a scaler
# ------------------------
# The same oscillator in millimetres and seconds. The scaler is part of the loop, and the portrait
# is in the units of the data. Without a context the outputs are spread over the range of the data
# and held until the network has settled. This one was taught by the cycle alone: the period is
# right, but how the loop comes to its cycle is its own invention.
measured = 100 * cycle.rename(columns={"x": "position, mm", "v": "speed, mm/s"})
pipe = make_pipeline(
    StandardScaler(), ESNRegressor(**network, n_lags=1, random_state=0)
)
pipe.fit(measured[:-1], measured[1:])
for name, found in (
    ("thirteen runs", find_loop_cycle(model, context=runs[0][:20])),
    ("the cycle alone", find_loop_cycle(pipe)),
):
    print(
        f"taught {name}: period {found.period:.3f}, multiplier {abs(found.multipliers[1]):.4f}"
    )

draw(pipe)

# %%
# One output
# ----------
# A loop of one output is drawn against its own past, a quarter of a turn before; the axis tells how
# many steps that is. `delay` sets another number.
position = ESNRegressor(**network, n_lags=1, random_state=0)
position.fit(
    [rows[["x"]][:-1] for rows in [*runs, cycle]],
    [rows["x"][1:] for rows in [*runs, cycle]],
)

draw(position, context=[rows[["x"]][:20] for rows in runs])

# %%
# A driven network
# ----------------
# A `Reservoir`, here a hundred units, is driven by one period of an input, again and again.
# Trajectories are drawn at the end of each period; they come to one point of the cycle, which is
# drawn at every phase. With more than two units the axes are principal components.
reservoir = build_reservoir(
    100, 1, topology="orthogonal", spectral_radius=0.99, leak_rate=0.3, random_state=0
)
phase = 2 * np.pi * np.arange(80) / 80
wave = (np.sin(phase) + 0.4 * np.sin(2 * phase + 2.4))[:, None]

draw(reservoir, inputs=wave)

# %%
# Two attractors
# --------------
# Figure 3.7 of Bay (2017) is the portrait of two units: recurrent weights of norm 3.78, an input of
# period 5, biases beyond the row-norm bound, and one cycle reached from two starts. Weights, input
# and biases are not printed. These are drawn at random under the same conditions, with a seed that
# was chosen, since they show more: the bound is met, and there are two cycles. A start has the
# colour of the cycle that it reaches.
#
# The five markers of a cycle are the fixed points of each phase: whoever begins there returns after
# a period.
rng = np.random.default_rng(561)
W = scale_to_norm(rng.standard_normal((2, 2)), 3.78)
units = Reservoir(W, rng.uniform(-1, 1, (2, 1)), np.zeros(2))
inputs = np.sin(2 * np.pi * np.arange(5) / 5)[:, None]
drive = units.W_in @ inputs.T
bounds = bias_bounds(W, drive.min(axis=1), drive.max(axis=1))
units = replace(units, bias=1.02 * np.array([bounds.upper[0], bounds.lower[1]]))
print(f"norm {np.linalg.norm(W, 2):.2f}, within the bound: {bounds.allow(units.bias)}")
for corner in ([-1.0, -1.0], [1.0, 1.0]):
    states = find_limit_cycle(units, inputs, initial_state=corner).states
    for t, state in enumerate(states):
        series = np.roll(inputs, -t - 1, axis=0)
        assert np.allclose(run(units, series, initial_state=state)[-1], state)
    print(f"cycle from {corner}: {len(states)} states, each a fixed point of its phase")

draw(units, inputs=inputs)

# %%
# No cycle
# --------
# A loop that never repeats itself is drawn without a cycle, and the title says so. This one has
# learned the Henon map, whose large steps are drawn as points.
rows = henon(500)
chaos = NVARRegressor(n_lags=1, degree=2).fit(rows[:-1], rows[1:])
try:
    find_loop_cycle(chaos)
except LimitCycleError as error:
    print(error)

draw(chaos)

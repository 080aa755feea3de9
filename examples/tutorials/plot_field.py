"""
Forecast a field
================

Continue 256 coupled variables, waves along a ring, of which 4000 rows are known.

A field is a quantity at many places: water along a channel, traffic along a road, weather along a
circle of latitude. What happens at a place depends on the places beside it. So one small network,
which sees a few neighbouring places, can learn the law of all of them:
"""

from reservoir import ESNRegressor, LocalForecaster, plotting
from reservoir.datasets import kuramoto_sivashinsky

u = kuramoto_sivashinsky(5200, length=100.0, n_points=256)
seen, truth = u[:4000], u[4000:4300]
settings = {"augment": "square", "spectral_radius": 0.6, "random_state": 0}
network = ESNRegressor(200, input_scaling=0.08, bias_scaling=0.1, **settings)
model = LocalForecaster(network, block=8, halo=4).fit(seen)
forecast = model.forecast(300)
plotting.field(truth, forecast, dt=0.25)

# %%
# Each column of a panel is one time, each row one of the 256 places. The waves merge and split, and
# the forecast follows them until the broken line: there its error exceeds half a standard
# deviation of the field. Red and blue in the lowest panel show where it first goes wrong: at a few
# places, from which the error spreads.
#
# One network for everybody
# -------------------------
# `block=8` cuts the ring into 32 blocks of 8 places. The network of a block receives its 8 places
# and `halo=4` on either side, and predicts the next row of its 8. In a forecast the blocks exchange
# what they predict at every step. All blocks have the same weights and the same readout, which was
# learned from the rows of all of them: 32 times as many rows as the series is long. The fitted
# network of a block is an ordinary estimator:
print(model.estimator_.coef_.shape, "weights, from", 32 * 3999, "rows of blocks")
print(model.neighbourhood_[0], "is what the first block receives")

# %%
# The rival is one network for all places, larger and with the same settings but for smaller inputs,
# as it has more of them. How long a forecast is valid depends on its start, so ten starts are
# compared:
import numpy as np

from reservoir.metrics import valid_time

starts = range(4150, 5000, 85)
options = {"bias_scaling": 0.1, "n_lags": 1, "alpha_selection": "forecast"}
whole = ESNRegressor(1500, input_scaling=0.02, **settings, **options).fit(
    seen[:-1], seen[1:]
)
for name, each in {"blocks": model, "one network": whole}.items():
    times = [
        valid_time(
            u[t : t + 200],
            each.forecast(200, context=u[t - 100 : t]),
            dt=0.25,
            threshold=0.5,
            scale=np.full(256, seen.std()),
        )
        for t in starts
    ]
    print(
        f"{name}: valid for {np.median(times):.1f} time units (median of {len(times)} starts)"
    )

# %%
# The penalty
# -----------
# A single step hardly shows which penalty is right, as errors are fed back. With `alpha="auto"`,
# the default of the network, the penalty is chosen by free runs of the whole field: the readout is
# learned from the first four fifths of the rows, and the field runs from eight starts in the last
# fifth with each penalty. These are the errors, in standard deviations:
for alpha, error in zip(model.alphas_, model.alpha_scores_, strict=True):
    print(f"{alpha:8.0e}  {error:.3f}" + ("  chosen" if alpha == model.alpha_ else ""))

# %%
# The other settings matter as much. Draw some at random with a small network, compare them by
# forecasts of rows that were not learned, and then take more units.
#
# What the blocks share
# ---------------------
# All places must obey one law. Where values are very large or small, scale all places by one mean
# and one standard deviation: a `StandardScaler` gives each place a unit of its own, and so a law of
# its own. Where the places end, as along a road, `periodic=False` repeats the values at the ends.
# Any other neighbourhood is a table, with a row for each block: the places that it owns, then those
# that it receives as well. On a grid of 4 rows and 5 columns that is closed to both sides:
row, column = np.divmod(np.arange(20), 5)
around = [
    5 * ((row + i) % 4) + (column + j) % 5
    for i, j in [(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)]
]  # fmt: skip
grid = LocalForecaster(network, neighbourhood=np.column_stack(around))
print(grid.neighbourhood[7], "are the neighbours of place 7, after itself")

# %%
# Where to go from here
# ---------------------
# * `LocalForecaster` takes polynomials, too: `NVARRegressor` is a good start for small fields.
# * The page :doc:`/results/fields` compares both with one network and a ridge.
# * `reservoir.save` writes the model into a file, as any other.

"""
Find anomalies in a series
==========================

Find the rows of a machine's load that a network, which forecasts each next row, did not expect.

No season describes the pattern that the load follows:
"""

import numpy as np

from reservoir import ESNRegressor
from reservoir.datasets import mackey_glass
from reservoir.metrics import anomaly_scores

y = mackey_glass(3000, random_state=0).ravel()
y += np.random.default_rng(0).normal(0, 0.02, 3000)
y[[1800, 2640]] += 0.35, -0.3  # two spikes
y[2200:2215] = y[2200]  # a sensor that hangs
model = ESNRegressor(random_state=0).fit(y[:999, None], y[1:1000])
forecasts = model.predict(y[:-1, None])  # of y[1:], each from the rows before it
scores = anomaly_scores(y[1000:], forecasts[999:], skip=3)
print("highest scores at:", 1000 + np.sort(np.argsort(-np.nan_to_num(scores))[:5]))

# %%
# The first 1,000 rows are learned from. They should contain few anomalies: what the network learns
# is what it expects later. All others are forecast one step ahead, each from the true rows before
# it.
#
# What a score means
# ------------------
# A score is the absolute error over its usual size, a standard deviation that a few anomalies do
# not change. Of normal errors, 3 in 1,000 exceed 3. Real errors are rarely normal, so the threshold
# is a quantile of the scores of rows that are known to be good, here the first 500 of those that
# were forecast, with a margin of a half. If the series is not of order 1, the model is
# ``make_pipeline(StandardScaler(), ESNRegressor(random_state=0))``.
import matplotlib.pyplot as plt

threshold = 1.5 * np.nanquantile(scores[:500], 0.999)
found = 1000 + np.flatnonzero(scores > threshold)
print("rows above the threshold:", found.tolist())

fig, (above, below) = plt.subplots(
    2, 1, figsize=(7, 4), sharex=True, layout="constrained"
)
rows = np.arange(1000, 3000)
above.plot(rows, y[1000:], linewidth=0.8)
above.plot(found, y[found], "x", color="C1", markeredgewidth=2, label="found")
above.set_ylabel("load")
below.plot(rows, scores, linewidth=0.8, label="score")
below.axhline(threshold, color="C1", linestyle="--", label="threshold")
below.set(xlabel="row", ylabel="score")
fig.legend(loc="outside upper left", ncols=3, frameon=False)

# %%
# Both spikes are found, and the sensor where it hangs while the load should change: where the load
# turns, a constant is what was expected.
assert {1800, 2640} <= set(found.tolist())
assert any(2200 <= row < 2218 for row in found)

# %%
# The network has received the spike, too
# ---------------------------------------
# A spike is the input of the next step, so that the forecast after it is wrong as well, and perhaps
# a few more. With ``skip=3`` the three rows after each of the highest 1 % of the scores get NaN;
# without it, one spike counts several times.
several = anomaly_scores(y[1000:], forecasts[999:])
print("scores from row 1799 on:", several[799:804].round(1).tolist())
print("the same with skip=3:   ", scores[799:804].round(1).tolist())

# %%
# If noise comes and goes
# -----------------------
# ``window=300`` takes the usual size from the 300 rows before each row: a score then says how odd
# a row is for its time. Longer anomalies than the window become usual.
windowed = anomaly_scores(y[1000:], forecasts[999:], window=300, skip=3)
print("the three highest:", (1000 + np.argsort(-np.nan_to_num(windowed))[:3]).tolist())

# %%
# Rows as they arrive
# -------------------
# A session of ``stream()`` forecasts the next row from each row that arrives. The last 300 rows and
# their forecasts are kept: the usual size comes from them, since a row alone has none.
session = model.stream()
session.predict(y[998:1999, None])  # the rows so far
latest = np.column_stack([y[1700:2000], forecasts[1699:1999]])
expected = session.predict(y[[1999], None]).item()
for row in range(2000, 2300):
    latest = np.vstack([latest[-300:], [y[row], expected]])
    score = anomaly_scores(*latest.T, window=300)[-1]
    if score > threshold:
        print(f"row {row}: {score:.1f}")
    expected = session.predict(y[[row], None]).item()

# %%
# How good is this?
# -----------------
# :doc:`Measured </results/prediction>` on nine series with inserted anomalies, beside the same
# scores of a linear forecast and an isolation forest on windows. A network is ahead where rows
# depend on the past in ways that are not linear, and behind a linear forecast where a trend leaves
# what was learned.

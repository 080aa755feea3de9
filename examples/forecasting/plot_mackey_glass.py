"""
Mackey-Glass: how long a forecast of chaos holds
================================================

Forecast a chaotic series in closed loop, and see the error grow about e-fold in each Lyapunov time.

Look for where the broken line leaves the grey one: an echo state network goes on alone with a
chaotic series, and below, the error of five such forecasts grows about e-fold per Lyapunov time,
the dotted slope. That is the system's doing: what a better network gains is a lower start.
"""

import matplotlib.pyplot as plt
import numpy as np

from reservoir import ESNRegressor, plotting
from reservoir.datasets import LYAPUNOV_TIME, mackey_glass
from reservoir.metrics import valid_time
from reservoir.model_selection import make_forecast_pairs

n_train, n_steps = 3000, 1500
lyapunov_time = LYAPUNOV_TIME["mackey_glass"]  # 196 steps

# %%
# Five seeds, each with a series and a network of its own. Leak rate, spectral radius, input scaling
# and penalty are those of Lukosevicius, "A practical guide to applying echo state networks" (2012),
# with half his units; nothing is tuned here.
runs = []
for seed in range(5):
    series = mackey_glass(n_train + n_steps, random_state=seed)
    X, y = make_forecast_pairs(series[:n_train])
    esn = ESNRegressor(
        500,
        spectral_radius=1.25,
        leak_rate=0.3,
        input_scaling=0.5,
        alpha=1e-8,
        random_state=seed,
    )
    forecast = esn.fit(X, y).forecast(n_steps)
    runs.append((series, forecast))

# %%
# The valid time ends where the error exceeds 0.3 standard deviations.
times = [
    valid_time(
        s[n_train:],
        f,
        threshold=0.3,
        lyapunov_time=lyapunov_time,
        scale=s[:n_train].std(0),
    )
    for s, f in runs
]
# 84 steps are the usual horizon.
at_84 = [abs(s[n_train + 83] - f[83]).item() / s.std() for s, f in runs]
print(f"valid time in Lyapunov times, seeds 0 to 4: {np.round(times, 1)}")
print(f"  median {np.median(times):.1f}, from {min(times):.1f} to {max(times):.1f}")
print(f"error after 84 steps, in standard deviations: median {np.median(at_84):.4f}")

# %%
# Above, the seed with the median valid time; below, all five, each point the largest error of 25
# steps.
fig, (above, below) = plt.subplots(
    2, 1, figsize=(7, 5), sharex=True, layout="constrained"
)
series, forecast = runs[np.argsort(times)[2]]
steps = np.arange(-200, n_steps) / lyapunov_time
plotting.forecast(
    series[n_train - 200 :], forecast, index=steps, labels=["x"], ax=above
)
above.set_xlabel("")

for series, forecast in runs:
    error = abs(forecast - series[n_train:]).ravel() / series.std()
    peaks = error.reshape(-1, 25).max(axis=1)
    below.semilogy(
        np.arange(12, n_steps, 25) / lyapunov_time, peaks, color="C0", lw=0.9
    )
slope = np.array([0.0, 5.0])
below.axhline(0.3, color="black", linewidth=1, label="end of the valid time")
below.semilogy(
    slope, 2e-3 * np.exp(slope), "k:", linewidth=2, label="e-fold per Lyapunov time"
)
below.set(xlabel="Lyapunov times since the forecast began", ylabel="error / std")
below.legend(loc="lower right", fontsize="small")
plt.show()

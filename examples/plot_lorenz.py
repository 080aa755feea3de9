"""
Lorenz: the forecast ends, the attractor stays
==============================================

Above, the three variables part from the truth after several Lyapunov times. Below, what remains: on
its own the network goes on drawing the same butterfly, and each maximum of z follows from the last
by the same tent-shaped map, which no one showed it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir import ESNRegressor, forecast, plotting
from reservoir.datasets import LYAPUNOV_TIME, lorenz
from reservoir.metrics import valid_time
from reservoir.model_selection import make_forecast_pairs

dt, n_train, n_steps = 0.02, 4000, 800
lyapunov_time = LYAPUNOV_TIME["lorenz"]  # 1.1 time units, 55 steps
series = lorenz(n_train + 4 * n_steps, dt=dt)
X, y = make_forecast_pairs(series[:n_train])

# %%
# Five networks, each of which forecasts four stretches after the training data, having listened to
# the 200 rows before. A forecast passes through the pipeline's scaler at each step. The parameters
# were chosen on other trajectories.
models, times = [], []
unit = {"dt": dt, "lyapunov_time": lyapunov_time, "scale": y.std(axis=0)}
for seed in range(5):
    esn = ESNRegressor(
        300, spectral_radius=0.6, input_scaling=0.1, bias_scaling=0.5, alpha=1e-8, random_state=seed
    )
    models.append(make_pipeline(StandardScaler(), esn).fit(X, y))
    for start in range(n_train, len(series), n_steps):
        guess = forecast(models[-1], n_steps, context=series[start - 200 : start])
        truth = series[start : start + n_steps]
        times.append(valid_time(truth, guess, threshold=0.3, **unit))

print("valid time in Lyapunov times (error up to 0.3 std), seeds 0 to 4 on 4 stretches each:")
print(f"  median {np.median(times):.1f}, from {min(times):.1f} to {max(times):.1f}")

# %%
# The forecast from the end of training, by seed 0.
free = forecast(models[0], len(series) - n_train)  # 58 Lyapunov times
steps = np.arange(-100, n_steps) * dt / lyapunov_time
truth = series[n_train - 100 : n_train + n_steps]
ax = plotting.forecast(truth, free[:n_steps], index=steps, labels=["x", "y", "z"])
ax.set_xlabel("Lyapunov times")


# %%
# And the climate of the whole free run: truth in grey, network in red.
def maxima(z):
    return z[1:-1][(z[1:-1] > z[:-2]) & (z[1:-1] > z[2:])]


fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3.3), layout="constrained")
for rows, name, line, mark in [
    (series[n_train:], "truth", {"color": "0.7", "linewidth": 1.5}, {"marker": "o", "s": 30}),
    (free, "network", {"color": "firebrick", "linewidth": 0.5}, {"marker": "x", "s": 12}),
]:
    left.plot(rows[:, 0], rows[:, 2], **line)
    peaks = maxima(rows[:, 2])
    right.scatter(peaks[:-1], peaks[1:], color=line["color"], linewidth=1, label=name, **mark)
left.set(xlabel="x", ylabel="z")
right.set(xlabel="maximum of z", ylabel="next maximum of z")
right.legend(frameon=False)
plt.show()

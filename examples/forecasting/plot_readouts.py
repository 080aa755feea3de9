"""
Other readouts: kernels and a perceptron
========================================

Use a kernel ridge or a perceptron as readout, and compare them with linear readouts of more units.

A readout need not be linear: any regressor of scikit-learn fits as ``readout=``, in closed
loops too. Look left: on 50 units a kernel ridge or a multilayer perceptron errs less than
the linear readout, but the linear one on 400 units is better still, and learns in a
fraction of the time. Right, in closed loop, it is the same with the kernel ridge, on 100
units, while the perceptron loses the series at once.
"""

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir import ESNRegressor
from reservoir.datasets import LYAPUNOV_TIME, mackey_glass, narma
from reservoir.metrics import valid_time
from reservoir.model_selection import make_forecast_pairs

n_train, n_loop = 2000, 1000
names = ["linear", "linear, 400 units", "kernel ridge", "perceptron"]


# Kernels and perceptrons want states of one scale; the built-in ridge does not.
def options(name, penalty):
    if name.startswith("linear"):
        return {"alpha": penalty}
    regressor = KernelRidge(alpha=penalty, kernel="rbf", gamma=1e-3)
    if name == "perceptron":
        regressor = MLPRegressor(
            hidden_layer_sizes=(50,), solver="lbfgs", max_iter=3000, random_state=0
        )
    return {"readout": make_pipeline(StandardScaler(), regressor)}


# %%
# One step of NARMA10 with 50 units, and the Mackey-Glass system in closed loop with 100:
# five seeds of series and networks. Penalties are small, as there is no noise, and NARMA10
# multiplies single inputs, which units with a leak rate below 1 would smear. Nothing is
# tuned beyond the width of the kernel.
errors, seconds, times = np.empty((3, len(names), 5))
for k, seed in np.ndindex(len(names), 5):
    n_units = 400 if "400" in names[k] else 50
    X, y = narma(n_train + 1000, random_state=seed)
    esn = ESNRegressor(
        n_units,
        leak_rate=1.0,
        input_scaling=0.5,
        random_state=seed,
        **options(names[k], 1e-6 if "linear" in names[k] else 1e-3),
    )
    began = time.perf_counter()
    esn.fit(X[:n_train], y[:n_train])
    seconds[k, seed] = time.perf_counter() - began
    miss = esn.predict(X[n_train:]) - y[n_train:]
    errors[k, seed] = np.mean(miss**2) / np.var(y[n_train:])

    series = mackey_glass(n_train + n_loop, random_state=seed)
    loop = ESNRegressor(
        max(n_units, 100),
        spectral_radius=1.25,
        leak_rate=0.3,
        input_scaling=0.5,
        random_state=seed,
        **options(names[k], 1e-8 if "linear" in names[k] else 1e-6),
    ).fit(*make_forecast_pairs(series[:n_train]))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The closed loop left")  # it is to be seen
        forecast = loop.forecast(n_loop)
    times[k, seed] = valid_time(
        series[n_train:],
        forecast,
        threshold=0.3,
        lyapunov_time=LYAPUNOV_TIME["mackey_glass"],
        scale=series[:n_train].std(0),
    )

print("medians of seeds 0 to 4: NMSE, seconds to fit, valid time in Lyapunov times")
for k, name in enumerate(names):
    row = [f"{np.median(table[k]):.3f}" for table in (errors, seconds, times)]
    print(f"  {name:18s}", *row)

# %%
# A mark per seed, a bar at the median; on the left less is better, on the right more.
fig, axes = plt.subplots(1, 2, figsize=(7, 3.2), sharey=True, layout="constrained")
for ax, table in zip(axes, (errors, times), strict=True):
    ax.plot(
        table.T, np.arange(len(names)) + np.zeros((5, 1)), "o", color="0.5", mfc="w"
    )
    ax.plot(np.median(table, axis=1), range(len(names)), "|", color="C0", ms=18)
axes[0].set(yticks=range(len(names)), yticklabels=names, ylim=(3.5, -0.5))
axes[0].set(xlabel="NARMA10: NMSE", xlim=(0, None))
axes[1].set(xlabel="Mackey-Glass: Lyapunov times held", xlim=(0, None))
plt.show()

"""
NARMA10: learning a nonlinear system from its input
===================================================

A network learns the output of a nonlinear system from its input alone, and beats a linear filter
from about fifty units on.

The series above is the output of a system that multiplies inputs nine steps apart; the network is
given the inputs only. Below, the error falls with the number of units; about fifty reach the line
of a linear filter that sees the last thirty inputs, and what lies under it takes nonlinearity.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

from reservoir import ESNRegressor, plotting
from reservoir.datasets import narma
from reservoir.metrics import nrmse

seeds, sizes, n_train = range(5), [25, 50, 100, 200, 400], 2000


def nmse(y_true, y_pred):
    # mean squared error / variance: the field's score here
    return nrmse(y_true, y_pred) ** 2


# %%
# Nothing is fed back: the network reads u(t) and says y(t + 1), 2000 rows to learn from, the first
# 200 of them to warm up, and 2000 to be scored. Each seed draws the data and the network. The leak
# rate is 1, as the products are of single inputs, which slow units would smear. The linear filter
# reads the last 30 inputs.
errors, linear = np.zeros((len(seeds), len(sizes))), []
for i, seed in enumerate(seeds):
    X, y = narma(2 * n_train, order=10, random_state=seed)
    for j, n_units in enumerate(sizes):
        esn = ESNRegressor(
            n_units,
            spectral_radius=0.95,
            leak_rate=1.0,
            input_scaling=0.1,
            bias_scaling=0.2,
            washout=200,
            random_state=seed,
        ).fit(X[:n_train], y[:n_train])
        prediction = esn.predict(X[n_train:])  # goes on where the training data ended
        errors[i, j] = nmse(y[n_train:], prediction)
    # row t: u(t), ..., u(t + 29)
    past = np.lib.stride_tricks.sliding_window_view(X[:, 0], 30)
    filter_ = LinearRegression().fit(past[170 : n_train - 29], y[199:n_train])
    linear.append(nmse(y[n_train:], filter_.predict(past[n_train - 29 :])))

print("NMSE (1 is the mean's), median and range of seeds 0 to 4:")
for n_units, e in zip(sizes, errors.T, strict=True):
    print(
        f"  {n_units:3d} units      {np.median(e):.3f}  ({e.min():.3f} to "
        f"{e.max():.3f})"
    )
print(
    f"  linear filter  {np.median(linear):.3f}  ({min(linear):.3f} to "
    f"{max(linear):.3f})"
)

# %%
# Above, the first test rows of the last network.
fig, (above, below) = plt.subplots(2, 1, figsize=(7, 5), layout="constrained")
plotting.forecast(y[n_train : n_train + 150], {"network": prediction[:150]}, ax=above)
above.set_ylabel("y")

below.loglog(sizes, np.median(errors, axis=0), "o-", color="C0", label="network")
below.fill_between(
    sizes, errors.min(axis=0), errors.max(axis=0), color="0.85", label="five seeds"
)
below.axhline(
    np.median(linear), color="black", linestyle=":", label="linear filter, 30 inputs"
)
below.set_xticks(sizes, labels=map(str, sizes))
below.set_yticks([0.02, 0.05, 0.1, 0.2], labels=["0.02", "0.05", "0.1", "0.2"])
below.minorticks_off()
below.set(xlabel="units", ylabel="NMSE")
below.legend(fontsize="small")
plt.show()

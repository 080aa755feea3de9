"""
Grid search: settings for the memory that a target needs
========================================================

A grid search over radius, leak rate and input scaling lowers the error of a network on NARMA10 by
two fifths.

The target depends on each of the last ten inputs, and the default leak rates, which suit most
series, mix these inputs. Left, with a leak rate of 1 a larger radius helps, and small inputs are
better than large ones; with the default rates nothing does. Right, what that means for new rows:
the network from the search is nearer to the target. Below, the penalty, which needs no search: each
half of the rows is predicted by a fit to the other, under each power of ten. These rows have no
noise, so the smallest will do.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from reservoir import ESNRegressor, plotting
from reservoir.datasets import narma
from reservoir.metrics import nrmse

X, y = narma(3000, random_state=0)
past, new = slice(2000), slice(2000, None)

# %%
# Each split scores predictions of the block after its training rows. They go on from the state at
# the end of those, so that no test block pays for a cold start.
grid = {
    "spectral_radius": [0.5, 0.8, 0.95],
    "leak_rate": [(0.5, 0.3), 1.0],
    "input_scaling": [0.1, 0.3, 1.0],
}
search = GridSearchCV(
    ESNRegressor(100, random_state=0),
    grid,
    cv=TimeSeriesSplit(4),
    scoring="neg_root_mean_squared_error",
)
search.fit(X[past], y[past])
print("chosen:", search.best_params_)

# %%
# The search drew one network. Five networks of each kind, on rows that no split has seen, say that
# the gain is no luck of the draw.
predicted, errors = {}, {}
for name, settings in {"default": {}, "grid search": search.best_params_}.items():
    networks = [
        ESNRegressor(100, random_state=seed, **settings).fit(X[past], y[past])
        for seed in range(5)
    ]
    rows = [network.predict(X[new]) for network in networks]
    predicted[name] = rows[0]
    errors[name] = [nrmse(y[new], each) for each in rows]
    print(
        f"{name:12s} NRMSE of new rows {np.median(errors[name]):.2f} "
        f"({min(errors[name]):.2f} to {max(errors[name]):.2f})"
    )

# %%
fig, axes = plt.subplot_mosaic(
    [["search", "rows"], ["search", "penalty"]], figsize=(9, 5), layout="constrained"
)
found = search.cv_results_
shape = [
    len(values)
    for values in (grid["input_scaling"], grid["leak_rate"], grid["spectral_radius"])
]
cv_errors = -found["mean_test_score"].reshape(shape) / y[past].std()
for j, leak in enumerate(("0.5 and 0.3", "1")):
    for i, scaling in enumerate(grid["input_scaling"]):
        axes["search"].plot(
            grid["spectral_radius"],
            cv_errors[i, j],
            color=f"C{j}",
            linestyle=("-", "--", ":")[i],
            marker="o",
            label=f"leak rate {leak}, inputs times {scaling:g}",
        )
axes["search"].set(
    xlabel="spectral radius",
    ylabel="error in cross-validation",
    xticks=grid["spectral_radius"],
)
fig.legend(
    *axes["search"].get_legend_handles_labels(), loc="outside upper left", ncols=2
)

axes["rows"].plot(y[new][100:160], color="0.75", linewidth=4, label="target")
for (name, rows), line in zip(predicted.items(), ("--", "-"), strict=True):
    axes["rows"].plot(rows[100:160], line, label=name)
axes["rows"].set(xlabel="time step", ylabel="target")
fig.legend(*axes["rows"].get_legend_handles_labels(), loc="outside upper right")
best = search.best_estimator_
plotting.penalty_path(
    best.alphas_, best.alpha_scores_, selected=best.alpha_, ax=axes["penalty"]
)
axes["penalty"].set_ylabel("squared error of\nthe other half")
plt.show()

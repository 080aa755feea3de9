"""
Grid search: the sea's temperature, three years ahead
=====================================================

Above, a monthly sea-surface temperature and a closed-loop forecast by what a grid search found: the
seasons go on for three years, the warm and cold years among them do not. Below, how the penalty was
chosen, which the search leaves to the network: each half of the months is predicted by a fit to the
other, under each power of ten, and the valley between too little and too much is broad.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir import ESNRegressor, forecast, plotting
from reservoir.datasets import load_el_nino
from reservoir.metrics import nrmse
from reservoir.model_selection import make_forecast_pairs

temperature = load_el_nino()  # (732, 1), degrees Celsius, 1950 to 2010
n_steps = 36
train, test = temperature[:-n_steps], temperature[-n_steps:]
X, y = make_forecast_pairs(train)

# %%
# Each split scores forecasts of one month on the block after its training rows. They go on from the
# state at the end of those, so that no test block pays for a cold start.
pipe = make_pipeline(StandardScaler(), ESNRegressor(100, random_state=0))
grid = {
    "esnregressor__spectral_radius": [0.5, 0.9],
    "esnregressor__leak_rate": [0.3, 1.0],
    "esnregressor__input_scaling": [0.1, 0.3, 1.0],
}
search = GridSearchCV(
    pipe, grid, cv=TimeSeriesSplit(4), scoring="neg_root_mean_squared_error"
)
search.fit(X, y)
print(
    "chosen:",
    {name.split("__")[1]: value for name, value in search.best_params_.items()},
)
print(f"error a month ahead in cross-validation: {-search.best_score_:.2f} degrees")

# %%
# `reservoir.forecast` walks the search and the pipeline: degrees in, degrees out. The search drew
# one network; four more with its parameters say what is luck. Three years ahead the mean of each
# month is as good: what the network knows beyond the season lasts for about three months.
best = search.best_estimator_
forecasts = [forecast(search, n_steps)]
for seed in range(1, 5):
    other = clone(best).set_params(esnregressor__random_state=seed).fit(X, y)
    forecasts.append(forecast(other, n_steps))
scores = [nrmse(test, rows) for rows in forecasts]
months = np.array([train[month::12].mean() for month in range(12)])[:, None]
print(f"NRMSE (by std) of the last {n_steps} months, closed loop, seeds 0 to 4:")
print(
    f"  echo state network     {np.median(scores):.2f}  ({min(scores):.2f} to "
    f"{max(scores):.2f})"
)
print(f"  mean of each month     {nrmse(test, np.tile(months, (3, 1))):.2f}")
print(f"  last year three times  {nrmse(test, np.tile(train[-12:], (3, 1))):.2f}")

# %%
fig, (above, below) = plt.subplots(2, 1, figsize=(7, 5.5), layout="constrained")
years = 2011 - np.arange(132, 0, -1) / 12
plotting.forecast(temperature[-132:], forecasts[0], index=years, ax=above)
above.set(xlabel="year", ylabel="degrees Celsius")
plotting.penalty_path(
    best[-1].alphas_, best[-1].alpha_scores_, selected=best[-1].alpha_, ax=below
)
below.set_ylabel("squared error of\nthe other half")
plt.show()

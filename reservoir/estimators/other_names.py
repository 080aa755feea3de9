"""Names of parameters in other libraries."""

from __future__ import annotations

_NETWORK = 'search=[{"n_units": 300, "spectral_radius": 0.9, "leak_rate": 0.3}]'

#: Maps names in other libraries to the names here, each with an example. A callable without the
#: first of several names has the second one.
OTHER_NAMES: dict[str, tuple[str, ...]] = {
    name: tuple(examples)
    for names, *examples in (
        ("fh h n steps horizon n_periods periods prediction_length", "n_steps=12"),
        ("level interval quantiles confidence", "coverage=0.9"),
        ("season_length seasonal_periods sp period", "season=12"),
        ("X X_df exogenous future_covariates xreg", "exog=X"),
        ("lags", "n_lags=12", 'search="auto"'),
        ("units n_reservoir reservoir_size hidden_size n_hidden", "n_units=300", _NETWORK),
        ("sr rho", "spectral_radius=0.9", _NETWORK),
        ("lr", "learning_rate_init=0.01", "leak_rate=0.3", _NETWORK),
        ("leaking_rate leakage leaky_rate", "leak_rate=0.3", _NETWORK),
        ("rc_connectivity sparsity density connectivity", "in_degree=10"),
        ("ridge regularization reg", "alpha=1e-6"),
        ("W", "topology=W"),
        ("warmup", "washout=100"),
        ("seed", "random_state=0"),
    )
    for name in names.split()
}

"""What a trained network is, in words, and how far training has brought it."""

from __future__ import annotations

from typing import Any


def description_of_network(model: Any) -> dict[str, str]:
    """Return cell, weights, and losses of a fitted estimator."""
    n_weights = sum(array.size for array in model.params_.values())
    network = f"{model.n_units} units, cell {model.cell!r}, {n_weights} weights, all trained"
    epochs = "epoch" if model.n_iter_ == 1 else "epochs"
    begun = f"init={model.init!r}"
    if isinstance(model.init, str) and model.init == "auto" and getattr(model, "init_", None):
        begun += f", which is {model.init_!r}"
    found = {
        "Network": network,
        "Training": f"{model.n_iter_} {epochs} of {model.solver!r} from {begun}",
    }
    loss = model.network_.loss
    if hasattr(model, "best_loss_"):
        which = "of the rows held out" if model.early_stopping else "of training"
        at = f"epoch {model.best_epoch_}" if model.best_epoch_ else "the start"
        found["Loss"] = f"{model.best_loss_:.3g} ({loss}, {which}), at {at}"
    elif model.loss_curve_:
        found["Loss"] = f"{model.loss_curve_[-1]:.3g} ({loss}, of the last rows learned from)"
    return found

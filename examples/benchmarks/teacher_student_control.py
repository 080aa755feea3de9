"""Teacher and student: a network learns another one's outputs, with gradient control and without.

Usage: ``python examples/benchmarks/teacher_student_control.py [--quick] [--search] [--seeds 5]
[--sizes 16 32 64 128]``

Bay 2017, section 4.5, tables 4.1 and 4.2. The teacher has tanh units and a tanh readout, 64 inputs
from U(0, 1), 64 outputs, and Jacobians whose singular values are held near 1: its recurrent weights
start orthogonal, and its weights then descend on the penalties of
`reservoir.training.gradient_control` alone, without any task. The share of singular values within
[0.9, 1.1] is printed. The student has the same shape, sees 2000 rows, and is tested on 2000 others.

The source names neither learning rate, nor epochs, nor how its teacher was made. Here students
start orthogonal and are trained by Adam for 100 epochs, truncated to 100 steps; the learning rate
was searched for both alike (``--search``: 64 units, seed 100, which no table uses).
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from _constant_rate import descend

from reservoir.training.bptt import Network, make_batch, predict
from reservoir.training.cells import SimpleCell
from reservoir.training.gradient_control import (
    GradientControl,
    control_penalty,
    jacobian_product_norms,
    step_jacobians,
)
from reservoir.training.initializers import initialize
from reservoir.training.optimizers import adam

N_FEATURES = N_OUTPUTS = 64
N_STEPS = 2000
INPUT_SCALE = 0.01  # larger inputs bend tanh so far that no W keeps all singular values near 1
LEARNING_RATES = (1e-3, 3e-3, 1e-2)
CONTROL = GradientControl(weight=0.1, n_samples=1)
CHOSEN = {"plain": 1e-3, "controlled": 3e-3}  # what the search found


def make_teacher(n_units: int, seed: int, n_updates: int = 500) -> tuple[Network, Any]:
    """Return a network, and weights under which the singular values of its Jacobians are near 1."""
    rng, cell = np.random.default_rng(seed), SimpleCell(n_units)
    W_in = INPUT_SCALE * rng.normal(size=(n_units, N_FEATURES))
    params = {
        "W_in": W_in,
        "W": np.linalg.qr(rng.normal(size=(n_units, n_units)))[0],
        "bias": -W_in.sum(axis=1) / 2,  # against the mean of the inputs
    }
    control = GradientControl(weight=1.0, low=0.95, high=1.05, n_samples=8)
    optimizer, state = adam(1e-3), None
    memory = optimizer.init(params)
    for _ in range(n_updates):
        trace = cell.forward(params, rng.uniform(size=(100, 1, N_FEATURES)), state)
        _, direct, d_pre = control_penalty(cell, params, trace, control, rng)
        nothing = np.zeros_like(trace.states[1:])
        grads, _, _ = cell.backward(params, trace, nothing, d_pre=d_pre)
        grads["W"] += direct["W"]
        params, memory = optimizer.update(params, grads, memory)
        state = trace.end
    spread = trace.states.std() * np.sqrt(n_units)  # makes outputs neither small nor saturated
    params["coef"] = rng.normal(size=(N_OUTPUTS, n_units)) / spread
    params["intercept"] = np.zeros(N_OUTPUTS)
    return Network(cell, N_FEATURES, N_OUTPUTS, "tanh"), params


def singular_values(cell: Any, params: Any, X: Any) -> Any:
    """Return the singular values of the Jacobians at every 20th step behind the first 500."""
    steps = np.arange(500, len(X), 20)
    trace = cell.forward(params, X[:, None])
    J = step_jacobians(cell, params, trace, steps, np.zeros_like(steps))
    return np.linalg.svd(J, compute_uv=False)


def reach(cell: Any, params: Any, X: Any) -> int:
    """Return the depth at which the norm of the product of Jacobians falls below 0.01 for good."""
    logs = jacobian_product_norms(cell, params, X, min(1000, len(X)))
    above = np.flatnonzero(logs >= np.log(0.01))
    return int(above[-1]) + 1 if len(above) else 0


def run(n_units: int, seed: int, rates: dict[str, float], epochs: int) -> dict[str, Any]:
    """Return training MSE, test MSE and reach of both students, and the teacher's reach."""
    network, teacher = make_teacher(n_units, seed)
    rng = np.random.default_rng([seed, 1])
    X, X_test = rng.uniform(size=(2, N_STEPS, N_FEATURES))
    y, y_test = (predict(network, teacher, x[:, None])[0][:, 0] for x in (X, X_test))
    inside = singular_values(network.cell, teacher, X_test)
    row: dict[str, Any] = {
        "inside": float(np.mean((inside >= 0.9) & (inside <= 1.1))),
        "variance": float(y_test.var()),
        "teacher": reach(network.cell, teacher, X_test),
    }
    for name, rate in rates.items():
        student = descend(
            network,
            initialize(network.shapes(), "orthogonal", random_state=seed),
            make_batch([X], [y]),
            adam(rate),
            epochs=epochs,
            truncation=100,
            control=CONTROL if name == "controlled" else None,
            seed=seed,
        )
        answers = (predict(network, student, x[:, None])[0][:, 0] for x in (X, X_test))
        errors = [np.mean((a - b) ** 2) for a, b in zip(answers, (y, y_test), strict=True)]
        row[name] = [*errors, reach(network.cell, student, X_test)]
    return row


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one size, one seed, 10 epochs")
    parser.add_argument("--search", action="store_true", help="search the learning rate")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[16, 32, 64, 128])
    options = parser.parse_args()
    epochs = 10 if options.quick else 100
    if options.search:
        for rate in LEARNING_RATES:
            row = run(64, 100, dict.fromkeys(CHOSEN, rate), epochs)
            print(f"rate {rate:g}: test MSE", {name: row[name][1] for name in CHOSEN}, flush=True)
        return
    seeds = range(1 if options.quick else options.seeds)
    print(f"{epochs} epochs, seeds 0 to {len(seeds) - 1}: mean ± standard deviation over seeds")
    for n_units in options.sizes[:1] if options.quick else options.sizes:
        start = time.perf_counter()
        rows = [run(n_units, seed, CHOSEN, epochs) for seed in seeds]
        print(
            f"{n_units} units: teacher's singular values within [0.9, 1.1]: "
            f"{np.mean([r['inside'] for r in rows]):.1%}, its reach "
            f"{np.median([r['teacher'] for r in rows]):.0f} steps, variance of its outputs "
            f"{np.mean([r['variance'] for r in rows]):.3f}"
        )
        for name in CHOSEN:
            table = np.array([r[name] for r in rows])
            m, s = table.mean(axis=0), table.std(axis=0)
            print(
                f"  {name:10s} MSE train {m[0]:.4f} ± {s[0]:.4f}, test {m[1]:.4f} ± {s[1]:.4f}, "
                f"reach {np.median(table[:, 2]):.0f} steps"
            )
        wins = sum(r["controlled"][1] < r["plain"][1] for r in rows)
        seconds = (time.perf_counter() - start) / len(rows)
        print(
            f"  controlled ahead on {wins} of {len(rows)} seeds; {seconds:.0f} s each", flush=True
        )


if __name__ == "__main__":
    main()

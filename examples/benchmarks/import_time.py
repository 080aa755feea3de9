"""What importing reservoir costs beyond scikit-learn's linear_model.

Usage: ``python examples/benchmarks/import_time.py [n_rounds]`` (by default 10) starts fresh
processes in turn and prints the medians of the processor time.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
from _command_line import run_main

CODE = """
import time, {first}
start = time.process_time()
import reservoir
print(time.process_time() - start)
"""


def seconds(first: str) -> float:
    """Return the processor time of ``import reservoir`` in a process that has imported `first`."""
    code = CODE.format(first=first)
    command = [sys.executable, "-c", code]
    # as usual, with bytecode, which the first process writes
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(run.stdout)


def main(n_rounds: int = 10) -> None:
    """Measure and print."""
    rounds = [(seconds("sklearn.linear_model"), seconds("sys")) for _ in range(n_rounds)]
    after, alone = np.median(rounds, axis=0)
    print(f"import reservoir: {alone:.2f} s; after scikit-learn's linear_model {after:.2f} s more")


if __name__ == "__main__":
    run_main(main)

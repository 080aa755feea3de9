"""What a job costs here, in the peers, and in C: interleaved, medians and ratios.

Usage: ``python examples/benchmarks/speed.py JOB [--rounds 5] [--quick] [--out DIR]
[--before REVISION]``, JOB one of

- states: sparse state runs, 10 and 100 connections per row, over N and over T (with a plot)
- float32: the same in both precisions
- batch: 32 sequences at once against one by one
- dense: state runs with a dense W
- watch: runs that are watched for saturated units, as in fit
- ridge: a path of 10 penalties against one fit and scikit-learn's RidgeCV
- mackey_glass: fit, predict and generate, 1000 units
- memory: peak memory of that fit, each library in a process of its own
- few_rows: time and memory of fits of more units than rows, whose rows are kept, against the sums
  that partial_fit keeps and a kernel ridge on the states
- radius: the spectral radius of 20,000 units, with its error
- search: a grid search, 24 settings by 3 folds
- small: one row, a session, a fit of 100 rows, the import
- steps: a step by the layout of W, and fits, ours and C alone; with --before, also by the package
  as it was in a revision, from the clone's history, the two in turns in processes of their own
- all: each of them in turn

Everybody runs in this process on one BLAS thread, round after round; all use the same weights
wherever a library lets them be set, and its states are compared before the clock starts. rclib
lets none be set: it runs a network of the same size, density, spectral radius and leak rate, and
predicts with one output, since it hands out no states. Peers (reservoirpy, PyRCN, xesn, echoes,
rclib, ResDAG) that are not installed are left out by name, C without a compiler likewise.

DIR/JOB.csv holds what is printed. --quick takes small sizes: it shows that everything runs, not
how fast. Memory and cost at sizes beyond these: ``growth.py``.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import _fits
import _search
import _small
import _states
import _steps
from _timing import MORE_PEERS, Report, machine
from threadpoolctl import threadpool_limits

JOBS = {
    "states": _states.states,
    "float32": _states.float32,
    "batch": _states.batch,
    "dense": _states.dense,
    "watch": _states.watch,
    "ridge": _fits.ridge,
    "mackey_glass": _fits.mackey_glass,
    "memory": _fits.memory,
    "few_rows": _fits.few_rows,
    "radius": _search.radius,
    "search": _search.search,
    "small": _small.small,
    "steps": _steps.steps,
}


def main() -> None:
    """Run the job that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("job", choices=[*JOBS, "all"], metavar="JOB", help="see above")
    parser.add_argument("--rounds", type=int, default=5, help="timings of each (default 5)")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--out", type=Path, default=Path("benchmark_results"), metavar="DIR")
    parser.add_argument("--before", metavar="REVISION", help="of steps: measured in turns with it")
    arguments = parser.parse_args()
    print(machine(*MORE_PEERS))
    for name in JOBS if arguments.job == "all" else [arguments.job]:
        print(f"\n=== {name} ===")
        report = Report(name, arguments.out)
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the peers' own, about deprecated calls
            options = {"before": arguments.before} if name == "steps" else {}
            JOBS[name](report, arguments.rounds, arguments.quick, **options)
        report.write()


if __name__ == "__main__":
    main()

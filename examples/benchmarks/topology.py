"""Which topology as it comes: the library's defaults against the same with another topology.

Usage:

    pip install dysts --no-deps; pip install statsmodels aeon    # what is missing leaves a bank out
    python examples/benchmarks/topology.py [protocols] [chaos] [series] [sequences] [--seeds 20]
        [--systems K] [--data DIR] [--keep DIR] [--jobs N]

All banks by default; `_topology_tasks.py` says what is in each. Everything is as it comes, or as
the protocol has it, but for the topology and, where the name of a row says so, the spectral radius.
`--keep DIR` writes the figures of each bank to DIR and reads them back instead of measuring again;
`--seeds 1 --systems 44` is a trial of a few minutes.

A loss is an error, 1 / memory capacity or 1 / (1 + valid time); a ratio is the loss over that of
the default on the same problem and seed: below 1 the topology is better. Each row has the median of
what is reported (error, capacity, valid time), then of the ratios median, quartiles, and how many
are below and above 1, and p of Wilcoxon's signed-rank test, two-sided. Each ratio is of a problem,
the median over its seeds; where a table has one problem only, of a seed. The last table of a bank
is over its problems, each the geometric mean of all that was measured on it. A topology is called
better or worse than the default where p is below .01: six are compared.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from _dysts_systems import add_options
from _memory import in_child
from _timing import machine
from _topology_tasks import ALONE, BANKS, CONTENDERS, DEFAULT, N_SEEDS, Record
from joblib import Parallel, delayed
from scipy.stats import wilcoxon

Array = np.ndarray
DEFAULTS = {"sequences": "ring"}  # of ESNSequenceClassifier; elsewhere it is `DEFAULT`
LEVEL = 0.01
ALIKE = 1e-9  # of a logarithm: rounding, where the topology had no part in the forecast


def measured(bank: str, options: argparse.Namespace) -> dict[str, list[Record]]:
    """Return the records of each contender, from the folder `--keep` if they lie there."""
    kept = None if options.keep is None else Path(options.keep) / f"{bank}.json"
    found = json.loads(kept.read_text()) if kept is not None and kept.exists() else {}
    absent = [name for name in CONTENDERS if name not in found]
    parts = [[name] for name in absent] if bank in ALONE else [absent] * bool(absent)
    rest = (options.seeds, options.systems, str(options.data))
    jobs = (delayed(in_child)("_topology_tasks", "measure", bank, part, *rest) for part in parts)
    for records in Parallel(options.jobs, prefer="threads", return_as="generator")(jobs):
        found |= records
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(found))
    found = {name: found[name] for name in CONTENDERS}
    return {name: [Record(*each) for each in records] for name, records in found.items()}


# --- paired comparison ----------------------------------------------------------------------------


def log_ratios(own: list[Record], default: list[Record]) -> dict[tuple[str, str, int], float]:
    """Return (group, problem, seed) -> logarithm of the loss over that of the default."""
    reference = {each[:3]: each.loss for each in default}
    ratios = {each[:3]: float(np.log(each.loss / reference[each[:3]])) for each in own}
    return {key: 0.0 if abs(value) < ALIKE else value for key, value in ratios.items()}


def within(group: str, ratios: dict[tuple[str, str, int], float]) -> Array:
    """Return the logarithms of a group by problem, or by seed where it has one problem."""
    by_problem: dict[str, list[float]] = {}
    for (of, problem, _), value in ratios.items():
        if of == group:
            by_problem.setdefault(problem, []).append(value)
    several = [float(np.median(values)) for values in by_problem.values()]
    return np.array(several if len(several) > 1 else next(iter(by_problem.values())))


def over_bank(ratios: dict[tuple[str, str, int], float]) -> Array:
    """Return the mean logarithm of each problem over groups and seeds."""
    by_problem: dict[str, list[float]] = {}
    for (_, problem, _), value in ratios.items():
        by_problem.setdefault(problem, []).append(value)
    return np.array([np.mean(values) for values in by_problem.values()])


def p_value(logs: Array) -> float:
    """Return p of the signed-rank test that the logarithms lie about 0; 1 where all are 0."""
    return float(wilcoxon(logs, zero_method="pratt").pvalue) if logs.any() else 1.0


def verdict(logs: Array) -> str:
    """Say in a word whether the topology is better or worse than the default."""
    if p_value(logs) >= LEVEL or np.median(logs) == 0:
        return "no clear difference"
    return "better" if np.median(logs) < 0 else "worse"


# --- tables ---------------------------------------------------------------------------------------

HEAD = f"{'median':>9s}{'ratio':>9s}{'quartiles':>18s}{'better':>8s}{'worse':>7s}{'p':>9s}"


def row(value: str, logs: Array) -> str:
    """Return the cells of a row."""
    low, middle, high = np.exp(np.percentile(logs, [25, 50, 75]))
    cells = [f"{x:9.3f}" if x < 100 else f"{x:9.0f}" for x in (middle, low, high)]
    return (
        f"{value:>9s}{''.join(cells)}{np.mean(logs < 0):8.0%}"
        f"{np.mean(logs > 0):7.0%}{p_value(logs):9.1e}"
    )


def tables(bank: str, found: dict[str, list[Record]]) -> dict[str, str]:
    """Print a table for each group and one for the bank; return the verdict on each contender."""
    default = DEFAULTS.get(bank, DEFAULT)
    of_default = found[default]
    ratios = {name: log_ratios(records, of_default) for name, records in found.items()}
    for group in dict.fromkeys(each.group for each in of_default):
        n = len(within(group, ratios[default]))
        print(f"\n{f'{group} ({n})':44s}{HEAD}")
        for name, records in found.items():
            median = f"{np.median([each.value for each in records if each.group == group]):.3g}"
            cells = row(median, within(group, ratios[name]))
            print(f"  {name:42s}" + (cells if name != default else f"{median:>9s}"))
    n = len(over_bank(ratios[default]))
    print(f"\n{f'all of {bank} ({n} problems)':44s}{HEAD}")
    verdicts = {}
    for name in found:
        if name != default:
            logs = over_bank(ratios[name])
            verdicts[name] = verdict(logs)
            print(f"  {name:42s}{row('', logs)}  {verdicts[name]}", flush=True)
    return verdicts


def conclude(verdicts: dict[str, dict[str, str]]) -> None:
    """Print what the banks say together: a change of the default asks for a gain on each of them.

    Banks whose default is another topology have no part in it.
    """
    print()
    banks = [bank for bank in verdicts if bank not in DEFAULTS]
    better = []
    for name in CONTENDERS:
        if name != DEFAULT and banks:
            said = [verdicts[bank][name] for bank in banks]
            print(f"{name:22s}" + "; ".join(map(": ".join, zip(banks, said, strict=True))))
            better += [name] * (set(said) == {"better"})
    if better:
        print(f"verdict: better than {DEFAULT} on every bank: {', '.join(better)}")
    elif banks:
        print(f"verdict: none is better on every bank; the default stays ({DEFAULT})")


def main() -> None:
    """Run the banks that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("banks", nargs="*", choices=[*BANKS, []], metavar="BANK")
    parser.add_argument("--seeds", type=int, default=N_SEEDS, metavar="N")
    parser.add_argument("--keep", metavar="DIR", help="where figures are written and read")
    add_options(parser)
    options = parser.parse_args()
    print(machine())
    verdicts = {}
    for bank in options.banks or BANKS:
        start = time.perf_counter()
        try:
            verdicts[bank] = tables(bank, measured(bank, options))
        except RuntimeError as error:  # the last line of what a child says: a package is missing
            print(f"\n{bank} left out: {error}")
            continue
        print(f"{bank}: {time.perf_counter() - start:.0f} s")
    if verdicts:
        conclude(verdicts)


if __name__ == "__main__":
    main()

"""Progress of a fit, and restoring the estimator after a failed one.

Progress is a bar if tqdm is installed, else lines to the logger "reservoir".
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from time import perf_counter as _now
from typing import Any

import numpy as np

from reservoir._validation import raise_naming

_LOGGER = logging.getLogger("reservoir")
_MOST_LINES = 20  # more results than these share lines in the log


@contextlib.contextmanager
def restored_on_error(estimator: Any) -> Iterator[None]:
    """Restore the attributes of an estimator if the enclosed block raises.

    Objects in its attributes must not be changed in the block. The estimator's `_memory_advice` is
    added to the message of a MemoryError.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException as error:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        if isinstance(error, MemoryError) and hasattr(estimator, "_memory_advice"):
            raise_naming(error, estimator._memory_advice())
        raise


def log(text: str) -> None:
    """Log a line, on standard error unless logging is configured otherwise."""
    _LOGGER.warning(text)


class ProgressReport:
    """Progress of one task: a bar if tqdm is installed, else lines in the log.

    With ``verbose=0``, nothing is shown. The share that is done, and from it the remaining time, is
    `done / total` of the estimated cost, so that a large model counts for more than a small one.
    Costs are rough microseconds on one core; only their ratios matter. If more work than expected
    turns up, the share decreases. `unit` is the noun for one result.
    """

    def __init__(self, verbose: int, unit: str = "network") -> None:
        self.verbose, self.unit = bool(verbose), unit
        self.done, self.total = 0.0, 0.0
        self._title, self._shown = "fit", 0
        self._begin: float | None = None
        self._bar: Any = None

    def follow(
        self,
        results: Iterable[Any],
        costs: Sequence[float],
        what: str = "",
        *,
        later: float = 0.0,
        unit: str | None = None,
    ) -> Iterable[Any]:
        """Return the results, and report each of them as it arrives.

        `costs` are the estimated costs of the results, and `later` is the cost of the work after
        the last. `what` describes the work; `unit` is the noun for one result, if not the report's.
        """
        if not self.verbose:
            return results
        return self._followed(results, costs, what, later, unit or self.unit)

    def _followed(
        self, results: Iterable[Any], costs: Sequence[float], what: str, later: float, unit: str
    ) -> Iterator[Any]:
        self.start(float(np.sum(costs)), what, later=later)
        n = len(costs)
        for i, (result, cost) in enumerate(zip(results, costs, strict=True)):
            self._advance(cost, f"{unit} {i + 1} of {n}", always=n <= _MOST_LINES)
            yield result

    def start(self, cost: float, what: str = "", *, later: float = 0.0) -> None:
        """Begin a part of the work, of the given cost; `what` and `later` are as in `follow`."""
        if not self.verbose:
            return
        self.total = self.done + cost + later
        self._title = f"fit, {what}" if what else "fit"
        if self._begin is None:
            self._begin, self._bar = _now(), _new_bar()

    def advance(self, cost: float) -> None:
        """Count work of the given cost as done."""
        if self.verbose:
            self._advance(cost, "", always=False)

    def finish(self) -> None:
        """Close the bar, with all work done."""
        if self._bar is not None:
            self._bar.n = 100
            self._bar.refresh()
            self._bar.close()
            self._bar = None

    def _advance(self, cost: float, text: str, *, always: bool) -> None:
        self.done += cost
        share = self.done / self.total
        step = int(share * (_MOST_LINES if self._bar is None else 100))
        if step == self._shown and not always:
            return
        self._shown = step
        if self._bar is None:
            log(f"{self._title}: {text or f'{share:.0%}'}, {self._remaining(share)}")
            return
        self._bar.set_description_str(f"reservoir {self._title}", refresh=False)
        self._bar.set_postfix_str(text, refresh=False)
        self._bar.n = 100 * share
        self._bar.refresh()

    def _remaining(self, share: float) -> str:
        assert self._begin is not None
        seconds = (_now() - self._begin) * (1 / share - 1)
        return f"about {seconds:.0f} s remaining" if seconds >= 1 else "less than 1 s remaining"


def not_reported(results: Iterable[Any], costs: Sequence[float], *_: Any, **__: Any) -> Any:
    """Return the results, without a report."""
    return results


def _new_bar() -> Any:
    """Return a bar of 100 per cent; None if tqdm is not installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    # without smoothing, the remaining time follows from the share and the time so far
    form = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}{postfix}"
    return tqdm(total=100, desc="reservoir fit", smoothing=0, bar_format=form)

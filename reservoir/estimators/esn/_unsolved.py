"""Fitted attributes that nobody has asked for yet."""

from __future__ import annotations

import copy
import threading
from typing import Any

from reservoir.readouts.contract import Readout


class Unsolved:
    """What a readout's fitted attributes are made of, once, by whoever reads the first of them.

    An estimator keeps it in the place of the attributes. Reading changes nothing that the
    estimator holds: what was made stays here.

    Parameters
    ----------
    readout : Readout
        With the settings that it is to be solved under; a shallow copy is kept.
    warning : str or None
        What to warn of when it is solved.
    """

    def __init__(self, readout: Readout, warning: str | None) -> None:
        self._warning = warning
        self.names = frozenset(readout.fitted)
        self._readout: Readout | None = copy.copy(readout)
        self._made: dict[str, Any] | None = None
        self._lock = threading.RLock()

    @property
    def has_told(self) -> bool:
        """Whether there is no warning that nobody has seen."""
        return self._warning is None or self._made is not None

    def attributes(self, model: Any) -> dict[str, Any]:
        """Return the attributes by name; other threads wait while they are made.

        Parameters
        ----------
        model : SourceEstimator
            Whose attributes they are.
        """
        made = self._made
        if made is not None:
            return made
        with self._lock:
            if self._made is None:
                assert self._readout is not None
                # should it fail, the next one who asks gets the same error
                self._made = model._made_of(copy.copy(self._readout), self._warning)
                self._readout = None
            return self._made

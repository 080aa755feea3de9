"""Who steps: the NumPy reference, or compiled kernels."""

from __future__ import annotations

import scipy.sparse as sp

from reservoir import _kernels
from reservoir._validation import check_choice
from reservoir.activations import ACTIVATIONS, get_activation
from reservoir.dynamics.reservoir import Reservoir

ENGINES = ("auto", "numpy", "numba")

# What the NumPy engine takes, in seconds: per step, per unit and per connection. Measured by
# examples/benchmarks/engines.py; only their order of magnitude matters.
_PER_STEP, _PER_UNIT, _PER_CONNECTION = 4e-6, 3e-9, 0.6e-9
# Kernels are for jobs that would take NumPy so many seconds. Importing numba and reading compiled
# code from the disk takes .26 s, once per process: a search or a loop over such jobs soon has it
# back, and whoever runs but one will hardly notice. With no place on the disk each process
# compiles, 1.5 s.
_WORTH_LOADING, _WORTH_COMPILING = 0.01, 3.0
_DENSE_UNITS = 500  # beyond, the product takes nearly all of a step, and BLAS has nothing to lose


def uses_kernels(reservoir: Reservoir, n_steps: int, engine: str) -> bool:
    """Whether to step with compiled kernels; a function of the job alone, not of what ran before.

    So the same call gives the same bits every time.
    """
    check_choice("engine", engine, ENGINES)
    if engine == "numpy":
        return False
    if engine == "numba":
        return demand()
    if not _kernels.usable() or code_of(reservoir) is None:
        return False
    if not sp.issparse(reservoir._product_W) and reservoir.n_units > _DENSE_UNITS:
        return False
    seconds = n_steps * numpy_seconds_per_step(reservoir)
    if seconds < _WORTH_LOADING or not _kernels.load():
        return False
    return seconds >= _WORTH_COMPILING or _kernels.keeps_code()


def engine_for(reservoir: Reservoir, n_steps: int) -> str:
    """Return the engine of a model that was trained on so many steps, for all that it does later.

    Small jobs then go with the large one before: what it loaded is loaded.
    """
    return "numba" if uses_kernels(reservoir, n_steps, "auto") else "auto"


def numpy_seconds_per_step(reservoir: Reservoir) -> float:
    """Return about how long the NumPy engine takes for a step."""
    W = reservoir._product_W
    connections = W.nnz if sp.issparse(W) else W.size
    return _PER_STEP + _PER_UNIT * reservoir.n_units + _PER_CONNECTION * connections


def code_of(reservoir: Reservoir) -> int | None:
    """Return the kernels' number of the activation; None for one that they do not know."""
    activation = get_activation(reservoir.activation)
    if ACTIVATIONS.get(activation.name) != activation:
        return None
    return _kernels.CODES.get(activation.name)


def demand() -> bool:
    """Load the kernels that were asked for by name; False where numba is told not to compile."""
    if not _kernels.installed():
        raise ImportError(
            'engine="numba" needs numba: pip install "reservoir-esn[fast]". engine="auto" does '
            "without where it is missing."
        )
    if _kernels.disabled():  # NUMBA_DISABLE_JIT asks for Python code: here it is
        return False
    if not _kernels.load():
        raise ImportError('engine="numba": numba is installed but cannot be imported.')
    return True

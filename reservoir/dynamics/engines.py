"""The choice of the engine that runs a reservoir: the NumPy reference or compiled kernels."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from reservoir import _kernels
from reservoir._validation import check_choice
from reservoir.activations import ACTIVATIONS, get_activation
from reservoir.dynamics.reservoir import Reservoir

ENGINES = ("auto", "numpy", "numba")

# Seconds that the NumPy engine takes per step, per unit and per connection. Measured by
# examples/benchmarks/engines.py; only their order of magnitude matters.
_PER_STEP, _PER_UNIT, _PER_CONNECTION = 4e-6, 3e-9, 0.6e-9
# Kernels are used for jobs that would take NumPy at least this many seconds: the first number
# applies if compiled code can be read from the disk, the second if it must be compiled. Importing
# numba and reading the code takes .26 s once per process: a search or a loop over jobs of .01 s
# soon recovers this time, and a single job is hardly delayed. Compiling takes 1.5 s per process.
_WORTH_LOADING, _WORTH_COMPILING = 0.01, 3.0
_DENSE_UNITS = 500  # for a larger dense W the product with W dominates, and BLAS is faster


def uses_kernels(reservoir: Reservoir, n_steps: int, engine: str) -> bool:
    """Whether to run `n_steps` steps with compiled kernels.

    The result depends only on the reservoir, the number of steps and `engine`, never on earlier
    calls in the process, so that the same call always returns the same bits.
    """
    check_choice("engine", engine, ENGINES)
    if engine == "numpy":
        return False
    if engine == "numba":
        return demand()
    # "auto": kernels must be worth their loading time, be available, and not be slower than BLAS.
    # The time is compared first, because searching for numba takes longer than a single step
    seconds = n_steps * numpy_seconds_per_step(reservoir)
    if seconds < _WORTH_LOADING or code_of(reservoir) is None:
        return False
    if not sp.issparse(reservoir._product_W) and reservoir.n_units > _DENSE_UNITS:
        return False
    return _kernels.load() and seconds >= _worth()


def steps_in_numpy(reservoir: Reservoir, n_steps: int, engine: str) -> int:
    """Return how many steps at the start of a closed loop NumPy runs; kernels run the others.

    With "auto", NumPy runs the largest number of steps for which kernels alone would not be worth
    loading. A longer loop then begins with exactly the same bits as a shorter one, so that two
    chaotic loops of different length do not diverge from each other.
    """
    if not uses_kernels(reservoir, n_steps, engine):
        return n_steps
    if engine == "numba":
        return 0
    worth, step = _worth(), numpy_seconds_per_step(reservoir)
    first = int(worth / step) + 1
    while first and first * step >= worth:  # the same comparison as in `uses_kernels`
        first -= 1
    return first


def _worth() -> float:
    """Return the seconds a job must take in NumPy for kernels, once loaded, to be worthwhile."""
    return _WORTH_LOADING if _kernels.keeps_code() else _WORTH_COMPILING


def full_width(n_sequences: float, dtype: Any) -> int:
    """Return the largest number of sequences, up to `n_sequences`, that fill all lanes of kernels.

    A step takes the time of all lanes in the cache lines of the states, used or not: of one line,
    or of `MOST_LINES`. Below eight sequences, lanes are hardly faster than one after the other.
    """
    widths = 1, _kernels.LANES, _kernels.lanes_for(1, dtype), _kernels.lanes_for(2**20, dtype)
    return max(width for width in widths if width <= max(n_sequences, 1))


def engine_for(reservoir: Reservoir, n_steps: int) -> str:
    """Return the engine for a model, "numba" or "auto", given the number of steps it is fitted on.

    If the fit uses kernels, they are loaded anyway, and small later jobs of the model, such as
    predictions of a few rows, use them as well. With "auto", the size of each job determines its
    engine.
    """
    return "numba" if uses_kernels(reservoir, n_steps, "auto") else "auto"


def numpy_seconds_per_step(reservoir: Reservoir) -> float:
    """Return an estimate of the seconds that the NumPy engine takes per step."""
    return _PER_STEP + _PER_UNIT * reservoir.n_units + _PER_CONNECTION * reservoir._n_products


def code_of(reservoir: Reservoir) -> int | None:
    """Return the kernels' code of the activation, or None if the kernels do not support it.

    An `Activation` that shares only its name with an entry of `ACTIVATIONS` is not supported.
    """
    activation = get_activation(reservoir.activation)
    if ACTIVATIONS.get(activation.name) != activation:
        return None
    return activation.kernel


def demand() -> bool:
    """Load the kernels for ``engine="numba"`` and return whether they can be used.

    The result is False if numba is disabled by ``NUMBA_DISABLE_JIT``. ImportError is raised if
    numba is not installed or cannot be imported.
    """
    if not _kernels.installed():
        raise ImportError(
            'engine="numba" needs numba: pip install numba. engine="auto" uses NumPy if numba is '
            "missing."
        )
    if _kernels.disabled():  # NUMBA_DISABLE_JIT requests Python code, so use the NumPy engine
        return False
    if not _kernels.load():
        raise ImportError('engine="numba": numba is installed but cannot be imported.')
    return True

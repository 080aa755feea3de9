"""What every test module shares: no windows, no chance in CI, no doctest without its library."""

import importlib.util
import os

import pytest
from hypothesis import settings

settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
os.environ.setdefault("MPLBACKEND", "Agg")


def pytest_configure():
    """Put every job on compiled kernels, the smallest ones too, if the environment asks for it."""
    if os.environ.get("RESERVOIR_TEST_KERNELS"):
        from reservoir.dynamics import engines
        from reservoir.training import loop_engines as of_training

        engines._WORTH_LOADING = of_training._WORTH_LOADING = 0.0


def pytest_collection_modifyitems(items):
    """Skip the doctests of the plots where matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        for item in items:
            if item.path.parent.name == "plotting":  # in a checkout or where the wheel lies
                item.add_marker(pytest.mark.skip(reason="needs matplotlib"))

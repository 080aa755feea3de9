"""What every test module shares: no windows, and no doctest that needs what is not installed."""

import importlib.util
import os

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")


def pytest_collection_modifyitems(items):
    """Skip the doctests of the plots where matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        for item in items:
            if item.nodeid.partition("::")[0].endswith("plotting.py"):
                item.add_marker(pytest.mark.skip(reason="needs matplotlib"))

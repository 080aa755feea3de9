"""What tests of several folders share; `tests` is on the path wherever its conftest.py is read."""

from pathlib import Path

ROOT = Path(__file__).parents[2]  # of the checkout

"""Toys that follow the recipes of CONTRIBUTING.md; `tests/test_contracts.py` puts them to use."""

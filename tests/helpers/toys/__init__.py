"""Toys that follow the recipes of CONTRIBUTING.md; `tests/contracts` puts them to use."""

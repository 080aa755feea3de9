"""Toys that follow the recipes of `docs/extending.md`; `tests/contracts` puts them to use."""

"""Proofs of stability: the theorems of the page on stability, rounding included.

`certify` finds a box that all trajectories enter and stay in (`_boxes`, `_zonotopes`) and tries the
proofs of contraction inside it in turn: `_max_norm`, `_two_norm`, `_series_rate`, `_lyapunov`.
"""

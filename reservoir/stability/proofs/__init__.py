"""What is proved of a network: the theorems of the page on stability, rounding included.

`certify` finds a box that holds all trajectories in the end (`_boxes`, `_zonotopes`) and tries the
proofs of contraction inside it in turn: `_max_norm`, `_two_norm`, `_series_rate`.
"""

"""What is proved of a network, rounding included: theorems of the page on stability.

`certify` tries the proofs of contraction in turn, each in a module of its own: `_max_norm`,
`_two_norm`, `_series_rate`.
"""

"""Many closed loops at a time: run, compare with the data that followed, choose networks.

These are functions on arrays. The estimators and the model selection, which both choose by closed
loops, are built on them. `loop_score` runs loops and scores them, `path_loops` runs the loops of a
whole path of penalties.
"""

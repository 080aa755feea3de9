"""Networks on their own outputs, many at a time: run, compared with what followed, chosen by it.

Functions on arrays, below the estimators and below model selection, which both choose by closed
loops. `loop_score` runs loops and compares them, `path_loops` runs those of a whole path of
penalties.
"""

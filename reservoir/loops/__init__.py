"""Running many closed loops at a time, scoring them on the data that followed, choosing networks.

These are functions on arrays. Both the estimators and the model selection use them to choose
networks by their closed loops. `loop_score` runs loops and scores them; `path_loops` runs the loops
for a whole path of penalties.
"""

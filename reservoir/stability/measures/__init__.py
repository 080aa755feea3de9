"""Measures of a network along trajectories: exponents, cycles, attractors, transients.

A measure is valid only for the given inputs and initial states; results for all of them are in
`reservoir.stability.proofs`.
"""

"""What is measured of a network along trajectories: exponents, cycles, attractors, transients.

A measure says nothing of inputs and initial states other than those that it was given; what holds
for all of them is in `reservoir.stability.proofs`.
"""

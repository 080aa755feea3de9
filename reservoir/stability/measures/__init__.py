"""What is measured of a network: along trajectories that were run, so that nothing is proved."""

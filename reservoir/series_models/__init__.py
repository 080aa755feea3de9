"""Models of typical series, which have trends, seasons and few rows; they use plain arrays.

Each model learns from a `History` and forecasts from any of its rows. `rolling` compares models by
forecasts of held-out rows, and computes the weights with which the best models are averaged.
"""

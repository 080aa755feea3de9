"""Models of short series with trends, seasons and noise, on plain arrays.

Each model learns from a `History` and forecasts from any of its rows. `rolling` compares models by
forecasts of held-out rows, and computes the weights with which the best models are averaged.
"""

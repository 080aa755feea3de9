"""Models of typical series: with trends, seasons, and few rows. Arrays in, arrays out.

Each model learns from a `History` and forecasts from any of its rows; `rolling` compares models by
forecasts of held-out rows, and averages the best models.
"""

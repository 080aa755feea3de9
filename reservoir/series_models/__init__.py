"""Models of series as people have them: with trends, seasons, and few rows. Arrays in, arrays out.

Each model learns from a `History` and forecasts from any of its rows; `rolling` compares models by
forecasts of rows that they have not seen, and averages those that do best.
"""

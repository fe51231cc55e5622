"""Scorers: a condition and an observation in, a verdict out. Pure."""

"""Benchmarks: `python -m benchmarks` runs them all, prints the table with the bars, and writes JSON."""

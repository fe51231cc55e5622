"""Capture: spans of agents kept as evidence, in process or as they arrive over OTLP."""

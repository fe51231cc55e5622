"""The sandbox on a Docker engine."""

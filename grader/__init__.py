"""Executes submitted programs in Docker and says true, false or undetermined, with the evidence kept."""

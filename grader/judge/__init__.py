"""Asking a judge: the endpoint, the HTTP client, the presets. What an answer means is decided in `grader.core`."""

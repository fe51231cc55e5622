"""Reading what an agent did from OpenTelemetry traces."""

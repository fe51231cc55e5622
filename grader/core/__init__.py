"""The pure heart: values, rules and verdicts. No I/O, no clock, no randomness, no environment."""

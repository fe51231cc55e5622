"""Where programs run: the protocol, a scripted sandbox for tests, and the one on Docker."""

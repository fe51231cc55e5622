"""The supervisor that runs inside a box: its C sources, PROTOCOL.md, and `wire`, the client's half of the protocol."""

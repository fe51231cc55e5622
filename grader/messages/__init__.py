"""Reading what an agent did from stored conversations."""

"""What an agent did with its tools, and the conditions about it. Pure."""

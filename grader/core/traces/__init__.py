"""What is known of an agent's trace as evidence: its steps, and how much of the truth is in it. Pure."""

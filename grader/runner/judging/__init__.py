"""Asks a judge, about a conversation or the runs of a program, and judges its recorded answers."""

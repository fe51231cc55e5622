"""The command line: one file a command, `console.py` for all that is shown, `exit_codes.py` for how it ends."""

"""`python -m scripts.generate_docs [--check]`."""

from __future__ import annotations

import sys

from scripts.generate_docs.pages import REFERENCE, stale, text_of


def main(arguments: list[str]) -> int:
    """Write what is stale, or with --check only say it; exit code 1 if --check found something."""
    if arguments not in ([], ["--check"]):
        print("usage: scripts/generate-docs [--check]", file=sys.stderr)
        return 2
    names = stale()
    for name in names:
        print(f"{'stale' if arguments else 'written'}: docs/reference/{name}")
        if not arguments:
            (REFERENCE / name).write_text(text_of(name), encoding="utf-8")
    return 1 if arguments and names else 0


sys.exit(main(sys.argv[1:]))

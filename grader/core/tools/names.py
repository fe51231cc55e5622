"""When two recorded names can mean one tool: producers put the server before the name."""

from __future__ import annotations

from collections.abc import Iterable


def same_tool(first: Iterable[str], second: Iterable[str]) -> bool:
    """Whether two sets of names can mean one tool."""
    return any(_same_name(one, other) for one in first for other in second)


def _same_name(one: str, other: str) -> bool:
    if one == other:
        return True
    short, long = (one, other) if len(one) < len(other) else (other, one)
    if not long.endswith(short):
        return False
    before = long.removesuffix(short)
    return before.endswith("/") or (before.startswith("mcp__") and before.endswith("__"))

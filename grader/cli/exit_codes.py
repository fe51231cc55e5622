"""How a command ends: every exit code, what leads to it, and which one wins."""

from __future__ import annotations

from collections.abc import Iterable

from grader.core.tri import Tri
from grader.errors import GraderError, PrerequisiteError, SandboxError

ALL_TRUE = 0
"""Every verdict is true."""
SOME_FALSE = 1
"""At least one verdict is false."""
USAGE = 2
"""Usage, task, profile, submission or record wrong; nothing of it was run."""
UNDETERMINED = 3
"""No verdict is false, at least one undetermined."""
PREREQUISITE = 4
"""Something this machine needs is missing: engine, image, runtime."""
NOTHING_SELECTED = 5
"""Nothing was selected, so nothing was run."""
BUG = 70
"""A bug in grader."""
INTERRUPTED_BY = 128
"""Interrupted: 128 and the number of the signal (130 for Ctrl-C, 143 for SIGTERM)."""

_ORDER = (PREREQUISITE, USAGE, SOME_FALSE, UNDETERMINED, NOTHING_SELECTED, ALL_TRUE)

_OF_VERDICT = {Tri.TRUE: ALL_TRUE, Tri.FALSE: SOME_FALSE, Tri.UNDETERMINED: UNDETERMINED}


def strongest(codes: Iterable[int]) -> int:
    """The code that wins: 70, then interruption, 4, 2, 1, 3, 5, 0. No code at all is 5: nothing was selected."""
    found = set(codes)
    if not found:
        return NOTHING_SELECTED
    if BUG in found:
        return BUG
    interrupted = [code for code in found if code > INTERRUPTED_BY]
    if interrupted:
        return min(interrupted)
    return min(found, key=lambda code: _ORDER.index(code) if code in _ORDER else -1)


def of_verdict(value: Tri) -> int:
    """0 for true, 1 for false, 3 for undetermined."""
    return _OF_VERDICT[value]


def of_error(error: BaseException) -> int:
    """4 for what the machine lacks (also an engine that fails before the first run), 2 for the caller's mistakes."""
    if isinstance(error, PrerequisiteError | SandboxError):
        return PREREQUISITE
    return USAGE if isinstance(error, GraderError) else BUG

"""What it means that a box was lost: which reason code, and whether another attempt is fair. Pure.

The rule (verdict specification, missing runs): another attempt only if the program had not begun, or the engine died;
a box that died alone while a program ran is a final missing run, for a program may have brought it about. One case is
evidence about the program: the supervisor was killed for memory while the box was at its own limit.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from grader.core.reasons import ReasonCode
from grader.sandbox.base import Failed

LOSSES_ALLOWED = 8
"""How many boxes one submission may lose while it runs, before it gets no further one."""
_SUBMISSIONS_KNOWN = 10_000


@dataclass(frozen=True, slots=True)
class BoxLoss:
    """How a box was lost, as far as it can be known."""

    why: str
    """What we saw, in words: the connection ended, no answer in time, the protocol was violated."""
    has_begun: bool = False
    """Whether a program may have begun to run in it."""
    engine_answers: bool = True
    """Whether the engine answered all the time, and still does."""
    actions: tuple[str, ...] = ()
    """What the engine's events said of the container, in order, e.g. `oom`, `kill`, `die`."""
    memory_limit_hits: int | None = None
    """How often the box's own memory limit was hit during the run, by the last counters that came."""


class BoxLostError(Exception):
    """A box was lost. Never leaves the sandbox: it becomes `Failed`, or evidence that memory ran out."""

    def __init__(self, loss: BoxLoss) -> None:
        super().__init__(loss.why)
        self.loss = loss


def is_out_of_memory(loss: BoxLoss) -> bool:
    """Whether the box died because the run used more than the box's own memory.

    Needs both: the engine reported `oom` before `die`, and the last counters show that the box's own limit was hit.
    """
    actions = loss.actions
    oom_first = "oom" in actions and ("die" not in actions or actions.index("oom") < actions.index("die"))
    return loss.has_begun and loss.engine_answers and oom_first and bool(loss.memory_limit_hits)


def failure_of(loss: BoxLoss) -> Failed:
    """The missing run that a lost box leaves (where it is not out of memory)."""
    if not loss.engine_answers:
        return Failed(ReasonCode.ENGINE_UNREACHABLE, f"the engine does not answer: {loss.why}", retryable=True)
    if not loss.has_begun:
        return Failed(ReasonCode.BOX_LOST, f"the box was lost before the program began: {loss.why}", retryable=True)
    if {"kill", "stop", "destroy"} & set(loss.actions[: _index(loss.actions, "die")]):
        return Failed(ReasonCode.BOX_LOST, f"the box was removed from outside: {loss.why}", retryable=False)
    return Failed(ReasonCode.SUPERVISOR_LOST, loss.why, retryable=False)


def _index(actions: tuple[str, ...], action: str) -> int:
    return actions.index(action) if action in actions else len(actions)


class LossBudget:
    """Counts the boxes that each submission lost, so that a hostile one cannot keep the engine busy."""

    def __init__(self, allowed: int = LOSSES_ALLOWED) -> None:
        self._allowed = allowed
        self._lost: OrderedDict[str, int] = OrderedDict()

    def note(self, submission_digest: str) -> None:
        """One more box was lost while this submission ran in it."""
        self._lost[submission_digest] = self._lost.pop(submission_digest, 0) + 1
        if len(self._lost) > _SUBMISSIONS_KNOWN:
            self._lost.popitem(last=False)

    def refusal(self, submission_digest: str) -> Failed | None:
        """Why this submission gets no further box; None if it does."""
        lost = self._lost.get(submission_digest, 0)
        if lost < self._allowed:
            return None
        detail = f"{lost} boxes were lost while this submission ran; it gets no further one"
        return Failed(ReasonCode.BOX_LOST, detail, retryable=False)

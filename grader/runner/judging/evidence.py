"""What a judge is asked about, got once for all of its samples."""

from __future__ import annotations

from dataclasses import dataclass

from grader.core.judging.turns import Turn
from grader.core.observation import Observation
from grader.messages.conversation import Conversation


@dataclass(frozen=True)
class Acquired:
    """One acquisition: what all samples are asked about."""

    conversation: Conversation
    turns: tuple[Turn, ...]
    tools: Observation
    trace: Observation | None

    @property
    def scope_ids(self) -> tuple[str, ...]:
        """The traces that the conversation is linked to."""
        return self.conversation.trace_ids

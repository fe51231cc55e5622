"""The turns of a conversation as a judge reads them: who said what, and which trace the turn belongs to."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from grader.core.traces.content import TraceContent


class TurnRole(StrEnum):
    """Who speaks in a turn."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    OTHER = "other"


class Turn(BaseModel):
    """One message. `trace_id` is that of its request, None if that has no link."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=r"^M[1-9][0-9]{0,6}$")
    """Names the turn to a judge, and in what it cites: `M1`, `M2`, ..."""
    role: TurnRole
    content: TraceContent
    trace_id: str | None = None

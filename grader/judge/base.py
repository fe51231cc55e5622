"""What a judge is, for whoever asks it: something that answers a list of messages, or says why it does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from grader.core.judging.judgement import ChatMessage, JudgeReply


@runtime_checkable
class Judge(Protocol):
    """Answers requests, one at a time or many at once. Implement it to ask something else than HTTP."""

    @property
    def endpoint(self) -> str:
        """Where it is, for records: without anything secret."""
        ...

    @property
    def model(self) -> str:
        """The model that is asked for."""
        ...

    async def ask(self, messages: Sequence[ChatMessage], schema: dict[str, object]) -> JudgeReply:
        """One answer. `schema` is the JSON schema of the answer.

        Must not raise for a judge that fails: that is a reply with a failure. May be cancelled at any time.
        """
        ...

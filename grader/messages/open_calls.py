"""Calls of a conversation that wait for an answer, and which of them an answer takes.

With an id: the latest call of that id. Without one: of the message that holds the latest call of the name, the first of
that name that waits; so are parallel calls answered, in their order. Taking costs the same however many calls wait, but
for a factor that grows with their logarithm: what is sent can be made so that very many do.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field

from grader.messages.base import Answered, Asked


@dataclass(slots=True)
class ConversationCall:
    """One call of the conversation, and what became of it."""

    number: int
    asked: Asked
    where: str
    answer: Answered | None = None
    answered_where: str = ""

    @property
    def key(self) -> str:
        """Its key in the evidence."""
        return f"messages/{self.number}"

    @property
    def was_executed(self) -> bool:
        """Whether an answer says that it ran."""
        return self.answer is not None and self.answer.refused is None


class OpenCalls:
    """Calls in the order in which they were asked for. `skips_answered`: one that has an answer is not looked for."""

    def __init__(self, *, skips_answered: bool = False) -> None:
        self._skips_answered = skips_answered
        self._with_id: dict[str, list[ConversationCall]] = defaultdict(list)
        self._without_id = _InOrder(skips_answered)

    def add(self, call_id: str, call: ConversationCall) -> None:
        """A call was asked for under this id; an empty one is none."""
        if call_id:
            self._with_id[call_id].append(call)
        else:
            self._without_id.add(call)

    def take(self, item: Answered) -> ConversationCall | None:
        """Take out the call that an answer belongs to."""
        if not item.call_id:
            return self._without_id.take(item.name)
        calls = self._with_id.get(item.call_id, [])
        while calls:
            call = calls.pop()
            if not self._skips_answered or call.answer is None:
                return call
        return None


@dataclass(slots=True, eq=False)
class _Run:
    """Calls of one message that stand beside each other, with nothing but taken ones between them."""

    where: str
    before: _Run | None
    after: _Run | None = None
    waiting: int = 0
    calls: dict[str, deque[_Waiting]] = field(default_factory=lambda: defaultdict[str, deque[_Waiting]](deque))
    """By name; under the empty name all of them."""
    joined: _Run | None = None
    """The run that this one has become a part of."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """A call without an id in its place. `run` may have become a part of another."""

    call: ConversationCall
    run: _Run
    is_taken: bool = False


class _InOrder:
    """Calls without ids. What was taken is dropped from the queues when it comes to their ends."""

    def __init__(self, skips_answered: bool) -> None:
        self._skips_answered = skips_answered
        self._last: _Run | None = None
        self._latest: dict[str, list[_Waiting]] = defaultdict(list)
        """Of each name, in order; under the empty name all of them."""

    def add(self, call: ConversationCall) -> None:
        run = self._last
        if run is None or run.where != call.where:
            run = _Run(call.where, run)
            if run.before is not None:
                run.before.after = run
            self._last = run
        waiting = _Waiting(call, run)
        run.waiting += 1
        for name in {call.asked.name, ""}:
            run.calls[name].append(waiting)
            self._latest[name].append(waiting)

    def take(self, name: str) -> ConversationCall | None:
        latest = self._latest.get(name, [])
        while latest and self._is_passed_over(latest[-1]):
            latest.pop()
        if not latest:
            return None
        run = _whole(latest[-1].run)
        beside = run.calls[name]
        while self._is_passed_over(beside[0]):
            beside.popleft()
        first = beside.popleft()
        first.is_taken = True
        run.waiting -= 1
        if run.waiting == 0:
            self._close(run)
        return first.call

    def _is_passed_over(self, waiting: _Waiting) -> bool:
        return waiting.is_taken or (self._skips_answered and waiting.call.answer is not None)

    def _close(self, run: _Run) -> None:
        """Nothing of a run waits any more: those before and after it stand beside each other now."""
        before, after = run.before, run.after
        if before is not None:
            before.after = after
        if after is not None:
            after.before = before
        else:
            self._last = before
        if before is not None and after is not None and before.where == after.where:
            self._join(before, after)

    def _join(self, before: _Run, after: _Run) -> None:
        """One run of two. The smaller is put into the larger, so that no call is moved often."""
        larger, smaller = (before, after) if before.waiting >= after.waiting else (after, before)
        for name, calls in smaller.calls.items():
            if smaller is after:
                larger.calls[name].extend(calls)
            else:
                larger.calls[name].extendleft(reversed(calls))
        smaller.joined = larger
        smaller.calls.clear()
        larger.waiting += smaller.waiting
        larger.before, larger.after = before.before, after.after
        if larger.before is not None:
            larger.before.after = larger
        if larger.after is not None:
            larger.after.before = larger
        else:
            self._last = larger


def _whole(run: _Run) -> _Run:
    """The run that a run is a part of by now; remembered, so that the way is not gone twice."""
    whole = run
    while whole.joined is not None:
        whole = whole.joined
    while run.joined is not None:
        run.joined, run = whole, run.joined
    return whole

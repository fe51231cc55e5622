"""Which call an answer takes: the same as by looking through plain lists, in steps that grow as the calls do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.core.tools.arguments import ContentRules, recorded_arguments
from grader.core.tools.calls import ExclusionReason
from grader.messages import transcript
from grader.messages.base import Answered, Asked, Item
from grader.messages.open_calls import ConversationCall, OpenCalls
from grader.messages.transcript import Transcript
from tests.unit.counted_lines import lines_run

NAMES = st.sampled_from(["f", "g"])
PLACES = st.sampled_from(["m1", "m2", "m3"])
IDS = st.sampled_from(["", "", "", "c1", "c2"])
ARGUMENTS = {number: recorded_arguments({"n": number}, ContentRules()) for number in range(2)}


class PlainOpenCalls(OpenCalls):
    """The same, told in the plainest way: lists that are looked through from their ends."""

    def __init__(self, *, skips_answered: bool = False) -> None:
        super().__init__()
        self.skips_answered = skips_answered
        self.lists: dict[str, list[ConversationCall]] = defaultdict(list)

    def add(self, call_id: str, call: ConversationCall) -> None:
        self.lists[call_id].append(call)

    def take(self, item: Answered) -> ConversationCall | None:
        calls = self.lists[item.call_id]
        for at in range(len(calls) - 1, -1, -1):
            call = calls[at]
            if self.skips_answered and call.answer is not None:
                continue
            if item.call_id or not item.name or item.name == call.asked.name:
                return calls.pop(at if item.call_id else self.first_beside(calls, at, item.name))
        return None

    def first_beside(self, calls: list[ConversationCall], at: int, name: str) -> int:
        first = at
        for before in range(at - 1, -1, -1):
            if calls[before].where != calls[at].where:
                break
            is_passed_over = self.skips_answered and calls[before].answer is not None
            if not is_passed_over and (not name or calls[before].asked.name == name):
                first = before
        return first


class PlainTranscript(Transcript):
    """The same, over plain lists, and with every call that is alike looked at again for each that is asked for."""

    def __init__(self) -> None:
        super().__init__(_open=PlainOpenCalls(skips_answered=True))
        self.all_alike: list[ConversationCall] = []

    def add_request(self, items: list[tuple[str, Item]], *, continues: bool = False) -> None:
        if not continues:
            self._request = transcript._Request(open=PlainOpenCalls())  # pyright: ignore[reportPrivateUsage]
        super().add_request(items, continues=True)

    def _new(self, item: Asked, where: str) -> ConversationCall:
        call = super()._new(item, where)
        self.all_alike.append(call)
        return call

    def _without_id(self, item: Asked, request: transcript._Request) -> ConversationCall | None:  # pyright: ignore[reportPrivateUsage]
        alike = [
            call
            for call in self.all_alike
            if (call.asked.name, call.asked.arguments.sha256) == (item.name, item.arguments.sha256)
        ]
        for call in alike[: transcript.MAX_PARALLEL]:
            if call.number not in request.met and "" in (call.asked.call_id, item.call_id):
                call.asked = call.asked if call.asked.call_id else item
                return call
        return None


def asked(name: str, call_id: str = "", number: int = 0) -> Asked:
    return Asked(name, call_id, ARGUMENTS[number])


@settings(max_examples=400, deadline=None)
@given(
    skips_answered=st.booleans(),
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("add"), IDS, NAMES, PLACES),
            st.tuples(st.just("take"), IDS, st.sampled_from(["f", "g", "h", ""]), PLACES),
            st.tuples(st.just("answered"), st.integers(0, 40), NAMES, PLACES),
        ),
        max_size=60,
    ),
)
def test_the_call_that_is_taken_is_the_one_that_plain_lists_give(
    skips_answered: bool, steps: list[tuple[str, str | int, str, str]]
) -> None:
    quick, plain = OpenCalls(skips_answered=skips_answered), PlainOpenCalls(skips_answered=skips_answered)
    calls: list[ConversationCall] = []
    for kind, which, name, where in steps:
        if kind == "add":
            calls.append(ConversationCall(len(calls), asked(name), where))
            quick.add(str(which), calls[-1])
            plain.add(str(which), calls[-1])
        elif kind == "take":
            item = Answered(str(which), name)
            assert quick.take(item) is plain.take(item)
        elif calls:
            calls[int(which) % len(calls)].answer = Answered("")


ITEMS = st.one_of(
    st.builds(asked, NAMES, IDS, st.integers(0, 1)),
    st.builds(
        Answered,
        IDS,
        st.sampled_from(["f", "g", ""]),
        refused=st.sampled_from([None, None, ExclusionReason.DENIED]),
    ),
)
REQUESTS = st.lists(st.tuples(st.lists(st.tuples(PLACES, ITEMS), max_size=14), st.booleans()), max_size=5)


@settings(max_examples=300, deadline=None)
@given(requests=REQUESTS, most_parallel=st.sampled_from([1, 2, 1000]))
def test_a_conversation_is_read_as_over_plain_lists(
    requests: list[tuple[list[tuple[str, Item]], bool]], most_parallel: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transcript, "MAX_PARALLEL", most_parallel)
        quick, plain = Transcript(), PlainTranscript()
        for items, continues in requests:
            quick.add_request(items, continues=continues)
            plain.add_request(items, continues=continues)
        assert quick.payload(retain_content=True) == plain.payload(retain_content=True)
        assert [call.answered_where for call in quick.calls] == [call.answered_where for call in plain.calls]


def test_an_answer_in_a_later_request_is_not_given_to_a_parallel_call_that_has_one() -> None:
    """Of two calls without ids in one message one is answered in its request, the other by the next one's messages."""
    read = Transcript()
    read.add_request([("m1", asked("f", number=0)), ("m1", asked("f", number=1)), ("m2", Answered("", "f"))])
    read.add_request([("m3", Answered("", "f"))])
    payload = read.payload(retain_content=True)
    assert [call.messages for call in payload.calls] == [("m1", "m2"), ("m1", "m3")]
    assert (payload.not_executed, payload.notes) == ((), ())


Items = list[tuple[str, Item]]


def asks(calls: int) -> Items:
    return [("m1", asked("f", number=at % 2)) for at in range(calls)]


def answers(calls: int, name: str) -> Items:
    return [("m2", Answered("", name)) for _ in range(calls)]


def parallel(calls: int) -> Items:
    return asks(calls) + answers(calls, "f")


def of_another_name(calls: int) -> Items:
    return asks(calls) + answers(calls, "g")


def in_turns(calls: int) -> Items:
    """Messages of one call each: when those between them are taken, those of one place come together."""
    turns: Items = [(f"m{at % 2}", asked("fg"[at % 2])) for at in range(calls)]
    return turns + answers(calls, "g") + answers(calls, "f")


def alike_with_ids(calls: int) -> Items:
    return [("m1", asked("f", f"c{at}")) for at in range(calls)]


@pytest.mark.parametrize("shape", [parallel, of_another_name, in_turns, alike_with_ids])
def test_twice_the_calls_take_about_twice_the_steps(shape: Callable[[int], Items]) -> None:
    def steps(calls: int) -> int:
        items = shape(calls)
        return lines_run(lambda: Transcript().add_request(items))

    assert steps(400) < 2.5 * steps(200)


def test_answers_that_come_again_do_not_look_through_all_that_was_answered() -> None:
    def steps(calls: int) -> int:
        read = Transcript()
        read.add_request(parallel(calls))
        return lines_run(lambda: read.add_request(answers(calls, "f")))

    assert steps(400) < 2.5 * steps(200)

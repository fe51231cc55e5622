"""The talk with a box: what is put together, and every way in which a box can step out of line."""

from __future__ import annotations

import contextlib
import hashlib
import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.core.captured import Captured
from grader.core.submission_files import SubmissionFile
from grader.sandbox.supervisor.dialogue import Dialogue, Event, Hello
from grader.sandbox.supervisor.frames import Counters, Fatal, Pong, ProtocolViolation, PutDone, StdinRoom
from grader.sandbox.supervisor.requests import STDIN_BUFFER_BYTES, RunFrames, RunRequest
from grader.sandbox.supervisor.results import Kept, KeptFile, RunResult

from . import box_side
from .box_side import RUN, frame

NONCE = bytes(range(16))
REQUEST = RunRequest((b"/true",), stdout_keep_bytes=10, stderr_keep_bytes=4)


def ready() -> Dialogue:
    talk = Dialogue(NONCE)
    talk.hello()
    (hello,) = talk.feed(box_side.hello(NONCE))
    assert isinstance(hello, Hello)
    return talk


def running(request: RunRequest = REQUEST, stdin: bytes = b"") -> Dialogue:
    talk = ready()
    talk.begin(RUN, request, stdin)
    return talk


def only_result(events: list[Event]) -> RunResult:
    (result,) = events
    assert isinstance(result, RunResult)
    return result


def test_facts_are_handed_on_as_they_came_and_what_could_not_be_read_with_its_errno() -> None:
    def fact(name: bytes, content: bytes, errno: int = 0) -> bytes:
        return frame(130, struct.pack("<IHH", errno, len(name), 0) + name + content, 0)

    greeting, end = box_side.hello(NONCE).removesuffix(frame(131, run_id=0)), frame(131, run_id=0)
    talk = Dialogue(NONCE)
    talk.hello()
    facts = fact(b"/proc/1/status", b"", 13) + fact(b"scrub.mount", b"/tmp") + fact(b"scrub.mount", b"/work")
    (hello,) = talk.feed(greeting + facts + end)
    assert isinstance(hello, Hello)
    assert (hello.files, hello.errors) == ({"scrub.mount": b"/tmp\n/work"}, {"/proc/1/status": 13})


def test_a_run_from_hello_to_result() -> None:
    talk = running()
    assert talk.running == RUN
    data = box_side.stream(1, b"abc") + box_side.stream(1, b"de") + box_side.stream(2, b"!")
    numbers = {"stdout_total": 5, "stdout_kept": 5, "stderr_total": 1, "stderr_kept": 1, "wall_ns": 9, "cpu_ns": None}
    result = only_result(talk.feed(data + box_side.result(numbers)))
    assert result.stdout.captured == Captured.whole(b"abcde")
    assert result.stderr.captured == Captured.whole(b"!")
    assert (result.exit_code, result.signal, result.wall_ns, result.cpu_ns) == (0, None, 9, None)
    assert talk.running is None
    talk.begin(RUN + 1, REQUEST)  # and the next one may come


def test_each_run_is_sent_as_it_was_asked_for_whatever_was_asked_before() -> None:
    """A repetition is encoded once: another request or standard input is none."""
    talk = ready()
    other = replace(REQUEST, argv=(b"/false",))
    asked = [(REQUEST, b"a"), (REQUEST, b"a"), (REQUEST, b"b"), (other, b"b"), (REQUEST, b""), (REQUEST, bytes(70_000))]
    for run_id, (request, stdin) in enumerate(asked + asked[::-1], start=RUN):
        sent = talk.begin(run_id, request, stdin)
        assert sent == RunFrames.of(request, stdin).with_id(run_id)
        talk.feed(box_side.result({}, run_id=run_id))


def test_a_result_before_the_answers_to_what_was_sent_ahead_of_its_run_is_a_violation() -> None:
    cleared, put = frame(144, bytes(8), 0), frame(132, bytes(8), 0)
    for missing in ("clear", "put", "nothing"):
        talk = ready()
        talk.clear()
        talk.put(b"main.sh", b"x")
        talk.begin(RUN, REQUEST)
        talk.feed((cleared if missing != "clear" else b"") + (put if missing != "put" else b""))
        if missing == "nothing":
            only_result(talk.feed(box_side.result()))
        else:
            with pytest.raises(ProtocolViolation, match="before the answers"):
                talk.feed(box_side.result())


def test_a_cut_stream_has_the_boxs_digest_of_the_whole() -> None:
    digest = hashlib.sha256(b"0123456789abc").digest()
    talk = running()
    data = box_side.stream(1, b"0123456789") + box_side.result({"stdout_total": 13, "stdout_kept": 10}, sha256=digest)
    captured = only_result(talk.feed(data)).stdout.captured
    assert captured == Captured(b"0123456789", 13, digest.hex())


def test_a_signal_and_a_failed_start() -> None:
    result = only_result(running().feed(box_side.result({"ended_by": 2, "code": 9, "killed_for": 1})))
    assert (result.exit_code, result.signal, result.killed_for) == (None, 9, "cpu")
    result = only_result(running().feed(box_side.result({"ended_by": 0, "start_step": 9, "start_errno": 2})))
    assert (result.start_step, result.start_errno, result.exit_code) == ("exec", 2, None)


def test_files_and_kept_files() -> None:
    request = replace(REQUEST, collect=(b"a", b"b"), keep_files=2, keep_bytes=10, send_kept=True)
    data = box_side.file(0, size=3) + frame(137, b"xy") + frame(137, b"z") + box_side.file(1, status=1)
    data += box_side.kept(b"bin/m", 2, executable=1) + frame(139, b"ok") + frame(141, struct.pack("<4Q", 1, 1, 2, 0))
    result = only_result(running(request).feed(data + box_side.result()))
    assert [(f.path, f.status, f.content) for f in result.files] == [(b"a", "regular", b"xyz"), (b"b", "missing", None)]
    assert result.kept == Kept(True, (KeptFile(b"bin/m", True, 2, b"ok"),), (), 0)


def test_stdin_is_streamed_in_the_room_there_is() -> None:
    extra = 5 << 20
    talk = running(stdin=bytes(STDIN_BUFFER_BYTES + extra))
    assert talk.stdin_to_send() == b""  # the box's buffer is full
    assert talk.feed(frame(134, struct.pack("<Q", 1000))) == [StdinRoom(RUN, 1000)]
    assert len(talk.stdin_to_send()) == 16 + 1000
    assert talk.stdin_to_send() == b""
    talk.feed(frame(134, struct.pack("<Q", STDIN_BUFFER_BYTES + 1000)))
    rest = talk.stdin_to_send(1 << 30)
    assert rest.endswith(struct.pack("<HHIQ", 8, 0, 0, RUN))  # STDIN_END
    assert talk.stdin_to_send() == b""
    with pytest.raises(ProtocolViolation, match="more stdin taken"):
        talk.feed(frame(134, struct.pack("<Q", STDIN_BUFFER_BYTES + extra + 1)))


def test_counters_pongs_and_puts() -> None:
    talk = ready()
    talk.put(b"a", b"x")
    talk.begin(RUN, REQUEST, files=[SubmissionFile(b"w", b"y")])
    assert talk.puts_pending == 2
    talk.ping(77)
    events = talk.feed(
        frame(132, bytes(8), 0)
        + frame(132, struct.pack("<II", 3, 17))
        + frame(143, struct.pack("<QQ", 77, 1), 0)
        + frame(133, bytes(96))
    )
    assert events[:3] == [PutDone(0, 0, 0), PutDone(RUN, 3, 17), Pong(77, 1)]
    assert isinstance(events[3], Counters)
    assert talk.puts_pending == 0


def test_one_thing_at_a_time() -> None:
    with pytest.raises(RuntimeError):
        Dialogue(NONCE).put(b"a", b"")
    talk = running()
    for call in (lambda: talk.put(b"a", b""), talk.clear, lambda: talk.begin(2, REQUEST)):
        with pytest.raises(RuntimeError):
            call()


def test_fatal_can_come_at_any_time() -> None:
    fatal = frame(145, struct.pack("<II", 1, 0) + b"no", 0)
    assert Dialogue(NONCE).feed(fatal) == [Fatal(1, 0, "no")]
    assert running().feed(fatal) == [Fatal(1, 0, "no")]


@pytest.mark.parametrize(
    "data",
    [
        box_side.hello(bytes(16)),  # another nonce
        box_side.hello(NONCE, version=1),
        frame(131, run_id=0),
        frame(143, bytes(16), 0),
        box_side.hello(NONCE) * 2,
        box_side.hello(NONCE, {f"f{i}": b"" for i in range(300)}),
        box_side.hello(NONCE, {f"f{i}": bytes(60_000) for i in range(40)}),
        box_side.hello(NONCE) + box_side.result(),
        box_side.hello(NONCE) + frame(132, bytes(8), 0),
        box_side.hello(NONCE) + frame(144, bytes(8), 0),
        box_side.hello(NONCE) + frame(143, bytes(16), 0),
    ],
)
def test_a_handshake_that_is_none(data: bytes) -> None:
    talk = Dialogue(NONCE)
    talk.hello()
    with pytest.raises(ProtocolViolation):
        talk.feed(data)


ASKED = replace(REQUEST, collect=(b"a", b"b"), collect_file_bytes=5, collect_total_bytes=7, keep_files=1, keep_bytes=4)


@pytest.mark.parametrize(
    "data",
    [
        box_side.result(run_id=RUN + 1),
        box_side.stream(1, b"x", run_id=RUN + 1),
        box_side.stream(1, b"01234567890"),  # more than is to be kept
        box_side.result(),  # without the two files
        box_side.file(1),  # out of order
        box_side.file(0, size=9) + frame(137, b"123456"),  # over the cap of one file
        box_side.file(0, size=5) + frame(137, b"12345") + box_side.file(1, size=5) + frame(137, b"123"),  # of all
        box_side.file(0, size=1) + frame(137, b"12"),
        box_side.file(0, size=2) + frame(137, b"1") + box_side.file(1),  # cut short
        box_side.file(0, status=1) + frame(137, b"1"),
        frame(137, b"1"),
        box_side.kept(b"a", 5),
        box_side.kept(b"a", 1) + box_side.kept(b"b", 1),
        box_side.kept(b"a", 1) + frame(139, b"x"),  # content that was not asked for
        box_side.kept(b"a", 1) + frame(141, struct.pack("<4Q", 1, 2, 1, 0)),
        frame(141, struct.pack("<4Q", 1, 0, 0, 0)) * 2,
        frame(140, b"\3" + bytes(7) + b"x") * 65,
        frame(134, struct.pack("<Q", 1)),
        frame(144, bytes(8), 0),
    ],
)
def test_a_run_whose_box_steps_out_of_line(data: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        running(ASKED).feed(data)


@pytest.mark.parametrize(
    "numbers",
    [
        {"stdout_total": 3, "stdout_kept": 3},  # which did not come
        {"stdout_total": 3, "stdout_kept": 0},  # less kept than asked for
        {"killed_for": 8},
        {"start_step": 10, "ended_by": 0},
        {"ended_by": 3},
        {"ended_by": 0},
        {"start_step": 9},  # ended though it never started
    ],
)
def test_results_that_contradict_themselves(numbers: dict[str, int]) -> None:
    with pytest.raises(ProtocolViolation):
        running().feed(box_side.result(numbers))


FRAGMENTS = st.sampled_from(
    [
        *(box_side.stream(1, b"ab"), box_side.stream(2, b"c"), box_side.file(0, size=2), frame(137, b"xy")),
        *(
            box_side.file(1, status=1),
            box_side.kept(b"k", 1),
            frame(139, b"q"),
            frame(140, bytes(9)),
            box_side.result(),
        ),
        *(
            frame(141, struct.pack("<4Q", 1, 1, 1, 0)),
            frame(133, bytes(96)),
            frame(134, bytes(8)),
            frame(132, bytes(8)),
        ),
    ]
)


@given(st.lists(FRAGMENTS, max_size=12), st.integers(min_value=0, max_value=255), st.integers(min_value=0))
def test_any_order_of_frames_and_a_flipped_byte(fragments: list[bytes], byte: int, where: int) -> None:
    data = bytearray(b"".join(fragments))
    if data:
        data[where % len(data)] ^= byte
    talk = running(replace(ASKED, send_kept=True))
    with contextlib.suppress(ProtocolViolation):
        talk.feed(bytes(data))

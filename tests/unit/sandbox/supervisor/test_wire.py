"""Single frames: whatever bytes come, there are typed frames or a ProtocolViolation."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.sandbox.supervisor.frames import Counters, Fatal, Pong, ProtocolViolation, StreamData
from grader.sandbox.supervisor.wire import PAYLOAD_MAX, UNKNOWN, FrameReader

from . import box_side
from .box_side import RUN, frame


def test_frames_however_they_are_cut() -> None:
    data = box_side.stream(1, b"abc") + frame(143, struct.pack("<QQ", 7, 8), 0) + box_side.stream(2, b"d")
    for size in (1, 3, 16, 17, len(data)):
        reader = FrameReader()
        frames = [f for at in range(0, len(data), size) for f in reader.feed(data[at : at + size])]
        assert frames == [StreamData(RUN, 1, b"abc"), Pong(7, 8), StreamData(RUN, 2, b"d")]


def test_the_largest_payload_is_taken_and_one_more_is_refused_by_its_header_alone() -> None:
    whole = box_side.stream(1, bytes(PAYLOAD_MAX - 1))
    assert len(FrameReader().feed(whole)) == 1
    with pytest.raises(ProtocolViolation, match="length 65537"):
        FrameReader().feed(struct.pack("<HHIQ", 135, 0, PAYLOAD_MAX + 1, RUN))


def test_unknown_is_none_and_zero_is_zero() -> None:
    values = [1, UNKNOWN, *range(2, 12)]
    (counters,) = FrameReader().feed(frame(133, struct.pack("<12Q", *values)))
    assert counters == Counters(RUN, 1, None, *range(2, 11))


@pytest.mark.parametrize(
    "data",
    [
        frame(1, bytes(32), 0),  # a client's frame
        frame(146, b"", 0),
        struct.pack("<HHIQ", 143, 1, 16, 0) + bytes(16),  # flags
        frame(143, struct.pack("<QQ", 1, 2), RUN),  # box-wide with a run
        box_side.stream(1, b"a", run_id=0),  # of a run, without one
        box_side.stream(3, b"a"),
        box_side.stream(1, b""),
        frame(129, bytes(40), 0),
        frame(130, struct.pack("<IHH", 0, 9, 0) + b"short", 0),
        frame(131, b"x", 0),
        frame(132, bytes(7)),
        frame(134, bytes(9)),
        box_side.file(0, status=5),
        frame(136, struct.pack("<IBBHIIQQ", 0, 0, 12, 0, 0, 0, 0, 0)),
        frame(137, b""),
        box_side.kept(b"../etc/passwd", 1),
        box_side.kept(b"/etc/passwd", 1),
        box_side.kept(b"a", 1, executable=2),
        frame(140, bytes(8) + bytes(1024)),
        frame(141, struct.pack("<4Q", 2, 0, 0, 0)),
        box_side.result(text=bytes(1025)),
        box_side.result({"stdout_total": None}),
        frame(144, struct.pack("<II", 0, 1), 0),
        frame(145, bytes(209), 0),
    ],
)
def test_what_breaks_the_rules(data: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        FrameReader().feed(data)


def test_text_of_the_box_is_never_more_than_ascii() -> None:
    (fatal,) = FrameReader().feed(frame(145, struct.pack("<II", 2, 3) + b"\x1b[2J\xff", 0))
    assert fatal == Fatal(2, 3, "\x1b[2J\\xff")


@given(st.binary(max_size=300), st.integers(min_value=1, max_value=50))
def test_any_bytes(data: bytes, size: int) -> None:
    reader = FrameReader()
    try:
        for at in range(0, len(data), size):
            reader.feed(data[at : at + size])
    except ProtocolViolation:
        pass


KINDS = st.integers(min_value=128, max_value=163)


@given(st.lists(st.tuples(KINDS, st.sampled_from((0, RUN)), st.binary(max_size=560)), max_size=4))
def test_any_payload_behind_a_good_header(frames: list[tuple[int, int, bytes]]) -> None:
    reader = FrameReader()
    try:
        for kind, run_id, payload in frames:
            reader.feed(frame(kind, payload, run_id))
    except ProtocolViolation:
        pass

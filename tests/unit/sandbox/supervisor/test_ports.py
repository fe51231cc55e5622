"""Connections of a program to its port, as the client sees them: what is passed on, and what no box may say."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.sandbox.base import Port
from grader.sandbox.supervisor import requests
from grader.sandbox.supervisor.dialogue import Dialogue
from grader.sandbox.supervisor.frames import PortClosed, PortData, PortOpened, ProtocolViolation
from grader.sandbox.supervisor.requests import RunRequest
from grader.sandbox.supervisor.results import RunResult

from . import box_side
from .box_side import RUN, frame

NONCE = bytes(range(16))
PORT = Port(4318, connections_at_once=4, connections_in_all=3, most_bytes=20)


def running(port: Port | None = PORT) -> Dialogue:
    talk = Dialogue(NONCE)
    talk.hello()
    talk.feed(box_side.hello(NONCE))
    talk.begin(RUN, RunRequest((b"/true",), port=port))
    return talk


def opened(connection: int) -> bytes:
    return frame(160, struct.pack("<II", connection, 0))


def data(connection: int, content: bytes) -> bytes:
    return frame(161, struct.pack("<I", connection) + content)


def closed(connection: int, how: int = 1) -> bytes:
    return frame(162, struct.pack("<II", connection, how))


def sums(connections: int = 0, sent: int = 0) -> bytes:
    return box_side.result({"port_connections": connections, "port_bytes": sent})


def test_a_port_is_asked_for_after_the_request_and_before_the_start() -> None:
    talk = Dialogue(NONCE)
    talk.hello()
    talk.feed(box_side.hello(NONCE))
    sent = talk.begin(RUN, RunRequest((b"/true",), port=PORT))
    asked = frame(32, struct.pack("<4HIIQ", 2, 4318, 4, 0, 3, 0, 20))
    assert sent.index(frame(5, b"")[:2]) < sent.index(asked) < sent.index(frame(9))


def test_connections_are_passed_on_and_answered() -> None:
    talk = running()
    events = talk.feed(opened(1) + data(1, b"abc") + opened(2) + closed(2, 2) + closed(1))
    assert events == [
        PortOpened(RUN, 1),
        PortData(RUN, 1, b"abc"),
        PortOpened(RUN, 2),
        PortClosed(RUN, 2, "broken"),
        PortClosed(RUN, 1, "ended"),
    ]
    assert talk.say(1, b"yes", close=False) == frame(33, struct.pack("<I", 1) + b"yes")
    assert talk.say(1, b"", close=True) == frame(34, struct.pack("<II", 1, 0))
    (result,) = talk.feed(sums(2, 3))
    assert isinstance(result, RunResult)
    assert result.numbers["port_bytes"] == 3
    assert talk.say(1, b"too late", close=True) == b""


def test_a_long_answer_is_sent_in_frames_that_the_box_takes() -> None:
    sent = running().say(1, bytes(100_000), close=False)
    assert sent == frame(33, struct.pack("<I", 1) + bytes(65_532)) + frame(33, struct.pack("<I", 1) + bytes(34_468))


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(opened(2), id="out of turn"),
        pytest.param(opened(1) + opened(1), id="twice"),
        pytest.param(data(1, b"x"), id="data of none"),
        pytest.param(closed(1), id="an end of none"),
        pytest.param(opened(1) + closed(1) + data(1, b"x"), id="data after the end"),
        pytest.param(opened(1) + closed(1) + closed(1), id="ended twice"),
        pytest.param(opened(1) + closed(1, 0), id="no way to end"),
        pytest.param(opened(1) + closed(1, 4), id="an unknown way to end"),
        pytest.param(opened(1) + data(1, b""), id="no data"),
        pytest.param(opened(1) + data(1, bytes(21)), id="too many bytes"),
        pytest.param(opened(1) + opened(2) + opened(3) + opened(4), id="too many connections"),
        pytest.param(opened(1) + sums(0, 0), id="a sum of connections that is wrong"),
        pytest.param(opened(1) + data(1, b"x") + sums(1, 0), id="a sum of bytes that is wrong"),
    ],
)
def test_a_box_that_steps_out_of_line_is_lost(sent: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        running().feed(sent)


def test_without_a_port_there_are_no_connections() -> None:
    with pytest.raises(ProtocolViolation, match="no port"):
        running(None).feed(opened(1))


@given(st.lists(st.tuples(st.sampled_from([160, 161, 162]), st.binary(max_size=12)), max_size=8))
def test_whatever_comes_no_more_is_passed_on_than_the_port_allows(frames: list[tuple[int, bytes]]) -> None:
    talk, seen, connections = running(), 0, 0
    try:
        for kind, payload in frames:
            for event in talk.feed(frame(kind, payload)):
                connections += isinstance(event, PortOpened)
                seen += len(event.data) if isinstance(event, PortData) else 0
    except ProtocolViolation:
        pass
    assert seen <= PORT.most_bytes
    assert connections <= PORT.connections_in_all


@pytest.mark.parametrize(
    "port",
    [Port(80), Port(70_000), Port(4318, connections_at_once=0), Port(4318, connections_at_once=33), Port(4318, 1, -1)],
)
def test_a_port_that_the_box_does_not_take_is_refused_before_it_is_sent(port: Port) -> None:
    with pytest.raises(ValueError, match="port"):
        requests.encode_port(RUN, port)

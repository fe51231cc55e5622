"""The attached stream: framing is taken off whatever the chunks, and both transports carry every byte."""

import asyncio
import socket
import struct
from collections.abc import Callable

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.sandbox.docker.connection import AttachedStreamError, Connection, Demultiplexer, Stream

pytestmark = pytest.mark.anyio


def frame(stream: int, data: bytes) -> bytes:
    return struct.pack(">BxxxI", stream, len(data)) + data


@given(st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=20))), st.integers(1, 9))
def test_framing_is_taken_off_whatever_the_chunks(frames: list[tuple[int, bytes]], size: int) -> None:
    sent = b"".join(frame(stream, data) for stream, data in frames)
    demultiplexer = Demultiplexer()
    got = b"".join(part for at in range(0, len(sent), size) for part in demultiplexer.feed(sent[at : at + size]))
    assert got == b"".join(data for stream, data in frames if stream == 1)


def test_the_end_of_standard_error_is_kept_and_no_more() -> None:
    demultiplexer = Demultiplexer()
    for _ in range(100):
        assert list(demultiplexer.feed(frame(2, b"x" * 1000))) == []
    assert list(demultiplexer.feed(frame(2, b"why\xff\n"))) == []
    assert demultiplexer.stderr_text.endswith("xwhy\\xff")
    assert len(demultiplexer.stderr_text) < 3000


@pytest.mark.parametrize("header", [b"\0" * 8, b"\3" + bytes(7), b"\1\0\1" + bytes(5), b"\1\0\0\0\xff\xff\xff\xff"])
def test_what_is_no_frame_is_refused(header: bytes) -> None:
    with pytest.raises(AttachedStreamError):
        list(Demultiplexer().feed(header))


class Ends:
    """Collects what `lost` is told, and can be waited for."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self._event = asyncio.Event()

    def __call__(self, why: str) -> None:
        self.told.append(why)
        self._event.set()

    async def wait(self) -> None:
        with anyio.fail_after(5):
            await self._event.wait()


class Blocking:
    """A socket that asyncio may not use: as an engine over TLS or ssh gives it."""

    def __init__(self, inner: socket.socket) -> None:
        self._inner = inner

    def recv(self, size: int, /) -> bytes:
        return self._inner.recv(size)

    def sendall(self, data: bytes, /) -> None:
        self._inner.sendall(data)

    def close(self) -> None:
        self._inner.shutdown(socket.SHUT_RDWR)
        self._inner.close()


Wrap = Callable[[socket.socket], socket.socket | Stream]


@pytest.fixture(params=["socket", "pump"])
def wrap(request: pytest.FixtureRequest) -> Wrap:
    return Blocking if request.param == "pump" else _as_it_is


def _as_it_is(inner: socket.socket) -> socket.socket:
    return inner


async def test_bytes_go_both_ways_and_the_end_is_told_once(wrap: Wrap) -> None:
    ours, theirs = socket.socketpair()
    got = bytearray()
    ends = Ends()
    connection = await Connection.over(wrap(ours), got.extend, ends)
    data = bytes(range(256)) * 20_000

    def answer() -> None:
        received = b""
        while len(received) < len(data):
            received += theirs.recv(2**16)
        theirs.sendall(b"".join(frame(1, received[at : at + 30_000]) for at in range(0, len(received), 30_000)))
        theirs.close()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.to_thread.run_sync, answer)
        for at in range(0, len(data), 2**16):
            connection.send(data[at : at + 2**16])
            await connection.drain()
    await ends.wait()
    assert bytes(got) == data
    assert connection.is_over
    connection.close()
    await asyncio.sleep(0.01)
    assert len(ends.told) == 1


async def test_a_peer_that_does_not_read_makes_the_sender_wait_not_grow(wrap: Wrap) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        connection = await Connection.over(wrap(ours), lambda _: None, lambda _: None)
        sent = 0
        with anyio.move_on_after(0.3) as scope:
            while sent < 2**26:
                connection.send(bytes(2**16))
                sent += 2**16
                await connection.drain()
        assert scope.cancelled_caught
        assert sent < 2**23
        connection.close()
        await connection.drain()  # an ended connection keeps nobody waiting


async def test_nothing_is_told_after_close(wrap: Wrap) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        told: list[object] = []
        connection = await Connection.over(wrap(ours), told.append, told.append)
        connection.close()
        await asyncio.sleep(0.02)
        connection.send(b"lost")
    assert told == []


async def test_a_stream_that_is_not_framed_ends_the_connection(wrap: Wrap) -> None:
    ours, theirs = socket.socketpair()
    ends = Ends()
    with theirs:
        await Connection.over(wrap(ours), lambda _: None, ends)
        theirs.sendall(b"HTTP/1.1 500 oh")
        await ends.wait()
    assert "not a frame" in ends.told[0]

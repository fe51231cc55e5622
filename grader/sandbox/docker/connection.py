"""The attached stdin and stdout of a container, as a stream of bytes in each direction.

Where the engine's socket is a plain socket, the event loop reads it directly: what arrives is handed on without a task
or a thread in between. Any other stream (TLS, named pipe, ssh) is read and written by two threads.

Without a terminal the engine frames what the container writes: 8 bytes of header (stream, three zeros, length in big
endian), then that many bytes. What comes from standard error is for people; its end is kept.
"""

from __future__ import annotations

import asyncio
import queue
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar, cast

_HEADER_BYTES = 8
_MOST_FRAME_BYTES = 2**24
"""The engine's own frames are 32 KiB; a longer one is no frame of an attached stream."""
_STDERR_KEPT_BYTES = 2048
_READ_BYTES = 2**16
_UNREAD_CHUNKS = 64
"""How many chunks of `_READ_BYTES` a reading thread may be ahead of the event loop."""

_T = TypeVar("_T")

Received = Callable[[bytes], None]
Lost = Callable[[str], None]


class AttachedStreamError(Exception):
    """What arrives is not the stream of an attached container."""


class Demultiplexer:
    """Takes the engine's framing off. Pure: no input or output. Holds no more than one header."""

    def __init__(self) -> None:
        self._header = b""
        self._stream = 0
        self._left = 0
        self._stderr = b""

    @property
    def stderr_text(self) -> str:
        """The end of what the container wrote to standard error."""
        return self._stderr.decode("utf-8", "backslashreplace").strip()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The parts of standard output in `data`, in order. Raises AttachedStreamError for anything else."""
        at = 0
        while at < len(data):
            if self._left == 0:
                taken = data[at : at + _HEADER_BYTES - len(self._header)]
                self._header += taken
                at += len(taken)
                if len(self._header) == _HEADER_BYTES:
                    self._begin_frame()
                continue
            part = data[at : at + self._left]
            at += len(part)
            self._left -= len(part)
            if self._stream == 1:
                yield part
            else:
                self._stderr = (self._stderr + part)[-_STDERR_KEPT_BYTES:]

    def _begin_frame(self) -> None:
        stream, zeros, length = self._header[0], self._header[1:4], int.from_bytes(self._header[4:], "big")
        if stream not in {1, 2} or zeros != b"\0\0\0" or length > _MOST_FRAME_BYTES:
            raise AttachedStreamError(f"not a frame of an attached stream: {self._header.hex()}")
        self._header = b""
        self._stream = stream
        self._left = length


class Stream(Protocol):
    """A connected stream whose calls block: what an engine's socket is where it is no plain socket."""

    def recv(self, size: int, /) -> bytes:
        """Bytes as they come; none at the end."""
        ...

    def sendall(self, data: bytes, /) -> None:
        """Send all of it."""
        ...

    def close(self) -> None:
        """Close it; a blocked `recv` ends."""
        ...


class Connection:
    """A stream in each direction. `received` gets what the box sends; `lost` is called once, when it is over.

    Both are called from the event loop. `lost` is not called after `close`.
    """

    def __init__(self, received: Received, lost: Lost) -> None:
        self._received = received
        self._lost = lost
        self._demultiplexer = Demultiplexer()
        self._is_over = False
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._sender: asyncio.Transport | _Pump | None = None

    @classmethod
    async def over(cls, stream: socket.socket | Stream, received: Received, lost: Lost) -> Connection:
        """A connection over an attached stream, which it owns from now on."""
        connection = cls(received, lost)
        if isinstance(stream, socket.socket) and not isinstance(stream, ssl.SSLSocket):
            stream.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.connect_accepted_socket(lambda: _Reader(connection), stream)
        else:
            connection.connected(_Pump(stream, connection, asyncio.get_running_loop()))
        return connection

    @property
    def is_over(self) -> bool:
        """Whether it was closed or lost."""
        return self._is_over

    @property
    def stderr_text(self) -> str:
        """The end of what the container wrote to standard error, for people."""
        return self._demultiplexer.stderr_text

    def send(self, data: bytes) -> None:
        """Send bytes; they are buffered. Nothing happens if the connection is over: then `lost` says so."""
        if self._sender is not None and not self._is_over:
            self._sender.write(data)

    async def drain(self) -> None:
        """Wait until the buffer is low. Returns at once where it is, or when the connection is over."""
        if not self._may_write.is_set():
            await self._may_write.wait()

    def close(self) -> None:
        """End both directions. May be called more than once."""
        self._is_over = True
        self._may_write.set()
        if isinstance(self._sender, _Pump):
            self._sender.close()
        elif self._sender is not None:
            self._sender.abort()

    def connected(self, sender: asyncio.Transport | _Pump) -> None:
        """For the transport: bytes can be sent."""
        self._sender = sender

    def arrived(self, data: bytes) -> None:
        """For the transport: bytes came from the engine."""
        if self._is_over:
            return
        try:
            for part in self._demultiplexer.feed(data):
                self._received(part)
        except AttachedStreamError as error:
            self.ended(str(error))

    def ended(self, why: str) -> None:
        """For the transport: nothing more will come."""
        if not self._is_over:
            self.close()
            self._lost(why)

    def writing(self, allowed: bool) -> None:
        """For the transport: whether its buffer can take more."""
        if allowed:
            self._may_write.set()
        elif not self._is_over:
            self._may_write.clear()


class _Reader(asyncio.BufferedProtocol):
    """Reads into one buffer: making a new one for every read would cost more than the read."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._buffer = memoryview(bytearray(_READ_BYTES))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not checked by its class: another event loop's transport is none of asyncio's.
        stream = cast("asyncio.Transport", transport)
        stream.set_write_buffer_limits(high=2**20)
        self._connection.connected(stream)

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._connection.arrived(bytes(self._buffer[:nbytes]))

    def eof_received(self) -> bool:
        self._connection.ended("the box closed its output")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.ended("the connection to the box ended" if exc is None else f"the connection broke: {exc}")

    def pause_writing(self) -> None:
        self._connection.writing(False)

    def resume_writing(self) -> None:
        self._connection.writing(True)


class _Pump:
    """Two threads around a stream whose calls block. They end when the stream is closed."""

    def __init__(self, stream: Stream, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        self._stream = stream
        self._connection = connection
        self._loop = loop
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._unread = threading.Semaphore(_UNREAD_CHUNKS)
        self._pending = 0
        self._is_closed = False
        for work in (self._read, self._write):
            threading.Thread(target=work, name="grader-attached-stream", daemon=True).start()

    def write(self, data: bytes) -> None:
        self._pending += len(data)
        self._outbox.put(data)
        if self._pending > 2**20:
            self._connection.writing(False)

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._outbox.put(None)
            self._unread.release(_UNREAD_CHUNKS)
            self._stream.close()

    def _read(self) -> None:
        why = "the box closed its output"
        try:
            while data := self._stream.recv(_READ_BYTES):
                self._unread.acquire()
                if not self._tell(self._arrived, data):
                    return
        except (OSError, ValueError) as error:
            why = f"the connection broke: {error}"
        self._tell(self._connection.ended, why)

    def _write(self) -> None:
        try:
            while (data := self._outbox.get()) is not None:
                self._stream.sendall(data)
                if not self._tell(self._sent, len(data)):
                    return
        except (OSError, ValueError) as error:
            self._tell(self._connection.ended, f"the connection broke: {error}")

    def _tell(self, call: Callable[[_T], None], argument: _T) -> bool:
        try:
            self._loop.call_soon_threadsafe(call, argument)
        except RuntimeError:  # the event loop has ended, and with it everybody who could listen
            return False
        return True

    def _arrived(self, data: bytes) -> None:
        self._unread.release()
        self._connection.arrived(data)

    def _sent(self, size: int) -> None:
        self._pending -= size
        if self._pending <= 2**19:
            self._connection.writing(True)

"""Sockets of a receiver: one that listens, and one for each peer. Nothing is read that nobody asked for.

(Streams of the event loop read ahead, without bound while their owner does something else.)
"""

from __future__ import annotations

import socket
from contextlib import suppress

import anyio
from anyio import lowlevel

from grader.errors import PrerequisiteError

HOST = "127.0.0.1"
_BACKLOG = 512


class Peer:
    """A connection. Methods raise OSError when the peer has gone."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        self._socket = connected

    async def receive(self, size: int) -> bytes:
        """Up to `size` bytes; `b""` at the end of the stream, or when the peer broke it off."""
        while True:
            await lowlevel.checkpoint()
            try:
                return self._socket.recv(size)
            except BlockingIOError:
                await anyio.wait_readable(self._socket)
            except ConnectionError:
                return b""

    async def send(self, data: bytes) -> None:
        """All of it."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self._socket.send(rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self._socket)

    def send_eof(self) -> None:
        """No more is sent."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """End the connection."""
        self._socket.close()


class Listener:
    """Listens on 127.0.0.1."""

    def __init__(self, port: int) -> None:
        """Raises PrerequisiteError when the port cannot be had. Port 0 is any that is free."""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((HOST, port))
            self._socket.listen(_BACKLOG)
        except (OSError, OverflowError) as error:
            self._socket.close()
            said = error.strerror if isinstance(error, OSError) else str(error)
            raise PrerequisiteError(
                f"{HOST}:{port} cannot be listened on: {said or error}",
                hint="end what listens there, or take another port: --port 0 is any that is free",
            ) from error
        self._socket.setblocking(False)
        self.port = int(self._socket.getsockname()[1])

    async def accept(self) -> Peer:
        """The next peer. Raises OSError when it has gone already, or no descriptor is left."""
        while True:
            await anyio.wait_readable(self._socket)
            try:
                return Peer(self._socket.accept()[0])
            except BlockingIOError:
                continue

    def close(self) -> None:
        """Nobody can connect any more."""
        self._socket.close()

"""A receiver of spans: OTLP over HTTP on 127.0.0.1, for agents that run elsewhere on this machine.

Theory of operation. Each connection is a task that moves bytes between its socket and an `OtlpConnection`; a batch goes
through the `Spool` to the disk and is acknowledged then. Everything has a bound: connections, bytes of headers and
bodies (of each, and of all together), the queue, every wait, and what is written. Whatever is refused is noted beside
what was kept, so that nobody takes the evidence as complete.

To stop: nothing new is accepted, idle connections are closed, requests under way get a while to end, and what was
handed in is written and answered.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile

import anyio
import anyio.abc

from grader.capture.http_body import MIB, BodyBudget, HttpLimits
from grader.capture.otlp_http import Batch, OtlpConnection, Phase, Refused
from grader.capture.sources import check_source_name
from grader.capture.spool import Spool
from grader.core.coverage import CoverageCode
from grader.errors import PrerequisiteError, UsageError

HOST = "127.0.0.1"
DEFAULT_PORT = 4318
_Stream = anyio.abc.SocketStream
_Listener = anyio.abc.SocketListener
_READ_BYTES = 64 << 10
_EXTRA_CONNECTIONS = 32
"""Connections beyond the bound that are told so at the same time."""
_FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@dataclass(frozen=True, slots=True)
class ReceiverLimits:
    """Bounds of a receiver; times in seconds."""

    http: HttpLimits = field(default_factory=HttpLimits)
    connections: int = 256
    held_bytes: int = 256 * MIB
    """Of all bodies that are not answered yet."""
    queue_batches: int = 256
    folder_bytes: int = 16 << 30
    """What one session writes."""
    idle_s: float = 120.0
    header_s: float = 10.0
    body_s: float = 60.0
    answer_s: float = 10.0
    """For a peer to take its answer."""
    stop_s: float = 10.0
    """For requests under way, once it is to stop."""


@dataclass(slots=True)
class ReceiverCounts:
    """What a receiver has done."""

    batches: int = 0
    spans: int = 0
    refused: int = 0
    """Requests that were answered with an error, and connections that broke off in one."""
    lost: int = 0
    """Of these, those that may have had spans; their senders may have sent them again."""
    refusals: dict[str, int] = field(default_factory=dict[str, int])
    """Why, and how often (the first few reasons)."""


class Receiver:
    """Receives spans into a folder until it is stopped.

    Without `sources` spans come to `/v1/traces` and are kept in the folder; with them, to `/NAME/v1/traces`, each in
    the folder `NAME` inside. Raises UsageError for a name that is none or is given twice, PrerequisiteError if the
    folder cannot be written to.
    """

    def __init__(self, folder: Path, *, sources: tuple[str, ...] = (), limits: ReceiverLimits | None = None) -> None:
        self.limits = limits if limits is not None else ReceiverLimits()
        self.folder = folder
        self.folders = _folders(folder, sources)
        self.counts = ReceiverCounts()
        for path in self.folders.values():
            _check_writable(path)
        self._spool = Spool(
            self.folders, queue_batches=self.limits.queue_batches, folder_bytes=self.limits.folder_bytes
        )
        self._budget = BodyBudget(self.limits.held_bytes)
        self._connections = 0
        self._idle: dict[OtlpConnection, anyio.CancelScope] = {}
        self._is_stopping = False
        self._all_have_gone = anyio.Event()

    @property
    def written_bytes(self) -> int:
        """How much was written."""
        return self._spool.written_bytes

    @property
    def has_unsaved_losses(self) -> bool:
        """Whether something was lost that could not even be noted in the folder."""
        return self._spool.unsaved_notes

    async def run(self, port: int, stop: anyio.Event, started: Callable[[int], None]) -> None:
        """Receive until `stop`. `started` gets the port (`port` 0: any that is free).

        Raises PrerequisiteError when the port is taken.
        """
        listener = await _listen(port)
        try:
            async with anyio.create_task_group() as writing:
                writing.start_soon(self._spool.run)
                try:
                    async with anyio.create_task_group() as serving:
                        accepting = anyio.CancelScope()
                        serving.start_soon(self._accept, listener, serving, accepting)
                        started(_port_of(listener))
                        await stop.wait()
                        await self._stop(serving, accepting, listener)
                finally:
                    self._spool.end()
        finally:
            with anyio.CancelScope(shield=True):
                await listener.aclose()
            self._spool.close()

    async def _stop(self, serving: anyio.abc.TaskGroup, accepting: anyio.CancelScope, listener: _Listener) -> None:
        self._is_stopping = True
        accepting.cancel()
        await listener.aclose()
        for scope in tuple(self._idle.values()):
            scope.cancel()
        if self._connections > 0:
            with anyio.move_on_after(self.limits.stop_s):
                await self._all_have_gone.wait()
        serving.cancel_scope.cancel()

    async def _accept(self, listener: _Listener, serving: anyio.abc.TaskGroup, accepting: anyio.CancelScope) -> None:
        with accepting:
            while True:
                if self._connections >= self.limits.connections + _EXTRA_CONNECTIONS:
                    await anyio.sleep(0.01)
                    continue
                try:
                    stream = await listener.accept()
                except anyio.ClosedResourceError:
                    return
                except OSError:
                    await anyio.sleep(0.05)  # too many open files, or a peer that has gone already
                    continue
                self._connections += 1
                serving.start_soon(self._serve, stream)

    # --- one connection

    async def _serve(self, stream: _Stream) -> None:
        connection = OtlpConnection(is_source=self.folders.__contains__, limits=self.limits.http, budget=self._budget)
        try:
            if self._connections > self.limits.connections and not self._close_an_idle_one():
                await self._turn_away(stream)
                return
            await self._converse(connection, stream)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            pass  # the peer has gone; what it had not got an answer to is not acknowledged
        finally:
            connection.abandon()
            self._connections -= 1
            if self._is_stopping and self._connections == 0:
                self._all_have_gone.set()
            with anyio.CancelScope(shield=True), suppress(OSError, anyio.BrokenResourceError):
                await anyio.aclose_forcefully(stream)

    async def _converse(self, connection: OtlpConnection, stream: _Stream) -> None:
        phase, since = connection.phase, time.monotonic()
        answered = 0
        while True:
            event = connection.next_event()
            if isinstance(event, Batch):
                await self._keep(connection, event)
                answered += 1
                continue
            if isinstance(event, Refused):
                await self._note(event)
                answered += 1
                continue
            await self._send(stream, connection.take_output())
            if connection.is_closed:
                await _linger(stream)
                return
            if answered or connection.phase is not phase:
                phase, since, answered = connection.phase, time.monotonic(), 0
            if self._is_stopping and phase is Phase.IDLE:
                return
            left_s = self._allowed_s(phase) - (time.monotonic() - since)
            data = await self._receive(connection, stream, left_s)
            if data is not None:
                connection.receive(data)
            elif (refused := connection.time_out(f"{phase.value} did not come in time")) is not None:
                await self._note(refused)

    def _allowed_s(self, phase: Phase) -> float:
        limits = self.limits
        return {Phase.IDLE: limits.idle_s, Phase.HEADERS: limits.header_s}.get(phase, limits.body_s)

    async def _receive(self, connection: OtlpConnection, stream: _Stream, within_s: float) -> bytes | None:
        """The next bytes, `b""` at the end of the stream; None when they do not come in time, or it is time to go."""
        with anyio.move_on_after(max(0.0, within_s)) as scope:
            if connection.phase is Phase.IDLE:
                self._idle[connection] = scope
            try:
                return await stream.receive(_READ_BYTES)
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return b""
            finally:
                self._idle.pop(connection, None)
        return None

    async def _send(self, stream: _Stream, data: bytes) -> None:
        if data:
            with anyio.fail_after(self.limits.answer_s):
                await stream.send(data)

    async def _keep(self, connection: OtlpConnection, batch: Batch) -> None:
        not_kept = await self._spool.keep(batch)
        if not_kept is None:
            self.counts.batches += 1
            self.counts.spans += batch.spans
            connection.kept()
        else:
            self._count(connection.refuse(not_kept.status, not_kept.why, retry_after_s=not_kept.retry_after_s))

    async def _note(self, refused: Refused) -> None:
        self._count(refused)
        if refused.loses_spans:
            of = [refused.source] if refused.source in self.folders else list(self.folders)
            await self._spool.note(of, CoverageCode.CAPTURE_FAILED, f"not received: {refused.why}")

    def _count(self, refused: Refused) -> None:
        counts = self.counts
        counts.refused += 1
        counts.lost += refused.loses_spans
        if refused.why in counts.refusals or len(counts.refusals) < 20:
            counts.refusals[refused.why] = counts.refusals.get(refused.why, 0) + 1

    def _close_an_idle_one(self) -> bool:
        """Make room: the connection that has been idle longest is closed; its exporter opens another."""
        for connection, scope in self._idle.items():
            del self._idle[connection]
            scope.cancel()
            return True
        return False

    async def _turn_away(self, stream: _Stream) -> None:
        why = f"there were more than {self.limits.connections} connections"
        await self._note(Refused(503, why, loses_spans=True))
        await self._send(stream, _FULL)
        await _linger(stream)


async def _linger(stream: _Stream) -> None:
    """Let the peer read its answer: a socket that is closed with unread bytes takes the answer back."""
    with anyio.move_on_after(1.0), suppress(anyio.EndOfStream):
        await stream.send_eof()
        left = 4 * MIB
        while left > 0:
            left -= len(await stream.receive(_READ_BYTES))


async def _listen(port: int) -> _Listener:
    try:
        listeners = (await anyio.create_tcp_listener(local_host=HOST, local_port=port, backlog=512)).listeners
    except (OSError, OverflowError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise PrerequisiteError(
            f"{HOST}:{port} cannot be listened on: {said or error}",
            hint="end what listens there, or take another port: --port 0 is any that is free",
        ) from error
    listener = listeners[0]
    assert isinstance(listener, anyio.abc.SocketListener)
    return listener


def _port_of(listener: _Listener) -> int:
    return int(listener.extra(anyio.abc.SocketAttribute.local_port))


def _folders(folder: Path, sources: tuple[str, ...]) -> Mapping[str, Path]:
    for name in sources:
        check_source_name(name)
        if sources.count(name) > 1:
            raise UsageError(f"the source {name!r} is given twice", hint="leave one of them out")
    return {name: folder / name for name in sources} if sources else {"": folder}


def _check_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise PrerequisiteError(
            f"received spans cannot be written to {folder}: {error.strerror or error}",
            hint="name a folder that you may write to",
        ) from error

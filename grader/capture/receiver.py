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
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile

import anyio
import anyio.abc

from grader.capture.http_body import MIB, BodyBudget, HttpLimits
from grader.capture.otlp_http import Batch, OtlpConnection, Phase, Refused
from grader.capture.peer import Listener, Peer
from grader.capture.sources import check_source_name
from grader.capture.spool import Spool
from grader.core.traces.coverage import CoverageCode
from grader.errors import PrerequisiteError, UsageError

_READ_BYTES = 64 << 10
_LINGER_S = 1.0
_MOST_LINGER_BYTES = 4 * MIB
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
        self._may_go: dict[OtlpConnection, anyio.CancelScope] = {}
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
        listener = Listener(port)
        try:
            async with anyio.create_task_group() as writing:
                writing.start_soon(self._spool.run)
                try:
                    async with anyio.create_task_group() as serving:
                        accepting = anyio.CancelScope()
                        serving.start_soon(self._accept, listener, serving, accepting)
                        started(listener.port)
                        await stop.wait()
                        await self._stop(serving, accepting, listener)
                finally:
                    self._spool.end()
        finally:
            listener.close()
            self._spool.close()

    async def _stop(self, serving: anyio.abc.TaskGroup, accepting: anyio.CancelScope, listener: Listener) -> None:
        self._is_stopping = True
        accepting.cancel()
        listener.close()
        for scope in tuple(self._may_go.values()):
            scope.cancel()
        if self._connections > 0:
            with anyio.move_on_after(self.limits.stop_s):
                await self._all_have_gone.wait()
        serving.cancel_scope.cancel()

    async def _accept(self, listener: Listener, serving: anyio.abc.TaskGroup, accepting: anyio.CancelScope) -> None:
        with accepting:
            while True:
                if self._connections >= self.limits.connections + _EXTRA_CONNECTIONS:
                    await anyio.sleep(0.01)
                    continue
                try:
                    peer = await listener.accept()
                except OSError:
                    await anyio.sleep(0.05)  # too many open files, or a peer that has gone already
                    continue
                self._connections += 1
                serving.start_soon(self._serve, peer)

    # --- one connection

    async def _serve(self, peer: Peer) -> None:
        connection = OtlpConnection(is_source=self.folders.__contains__, limits=self.limits.http, budget=self._budget)
        try:
            if self._connections > self.limits.connections and not self._close_one_that_may_go():
                await self._turn_away(connection, peer)
                return
            await self._converse(connection, peer)
        except OSError:
            pass  # the peer has gone; what it had not got an answer to is not acknowledged
        finally:
            connection.abandon()
            self._connections -= 1
            if self._is_stopping and self._connections == 0:
                self._all_have_gone.set()
            peer.close()

    async def _converse(self, connection: OtlpConnection, peer: Peer) -> None:
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
            output = connection.take_output()
            await self._send(peer, output)
            if connection.is_closed:
                if output:
                    await self._linger(connection, peer)
                return
            if answered or connection.phase is not phase:
                phase, since, answered = connection.phase, time.monotonic(), 0
            if self._is_stopping and phase is Phase.IDLE:
                return
            left_s = self._allowed_s(phase) - (time.monotonic() - since)
            data = await self._receive(connection, peer, left_s)
            if data is not None:
                connection.receive(data)
            elif (refused := connection.time_out(f"{phase.value} did not come in time")) is not None:
                await self._note(refused)

    def _allowed_s(self, phase: Phase) -> float:
        limits = self.limits
        return {Phase.IDLE: limits.idle_s, Phase.HEADERS: limits.header_s}.get(phase, limits.body_s)

    async def _receive(self, connection: OtlpConnection, peer: Peer, within_s: float) -> bytes | None:
        """The next bytes, `b""` at the end of the stream; None when they do not come in time, or it is time to go."""
        with anyio.move_on_after(max(0.0, within_s)) as scope:
            if connection.phase is Phase.IDLE:
                self._may_go[connection] = scope
            try:
                return await peer.receive(_READ_BYTES)
            finally:
                self._may_go.pop(connection, None)
        return None

    async def _send(self, peer: Peer, data: bytes) -> None:
        if data:
            with anyio.fail_after(self.limits.answer_s):
                await peer.send(data)

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

    def _close_one_that_may_go(self) -> bool:
        """Make room: the connection is closed that has been idle for longest, or is only answered yet."""
        for connection, scope in self._may_go.items():
            del self._may_go[connection]
            scope.cancel()
            return True
        return False

    async def _turn_away(self, connection: OtlpConnection, peer: Peer) -> None:
        why = f"there were more than {self.limits.connections} connections"
        await self._note(Refused(503, why, loses_spans=True))
        await self._send(peer, _FULL)
        await self._linger(connection, peer)

    async def _linger(self, connection: OtlpConnection, peer: Peer) -> None:
        """Let the peer read its answer: a socket that is closed with unread bytes takes the answer back."""
        with anyio.move_on_after(_LINGER_S) as scope:
            self._may_go[connection] = scope
            try:
                peer.send_eof()
                left = _MOST_LINGER_BYTES
                while left > 0 and (data := await peer.receive(_READ_BYTES)):
                    left -= len(data)
            finally:
                self._may_go.pop(connection, None)


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

"""What `grader receive` does: receive until Ctrl-C or until its command ends, and say how to point an exporter here."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import anyio.abc

from grader.capture.http_body import MIB
from grader.capture.peer import HOST
from grader.capture.receiver import Receiver, ReceiverLimits
from grader.cli.console import Console
from grader.cli.exit_codes import INTERRUPTED_BY
from grader.cli.interrupts import SIGNALS, first_error
from grader.core.limits import parse_size
from grader.errors import PrerequisiteError, UsageError
from grader.reports.sanitize import safe_line
from grader.reports.text import shell_word

_COMMAND_STOPS_S = 10.0
"""For the command to end after it was told to."""


@dataclass(frozen=True)
class ReceiveRequest:
    """What the command line asks to be received."""

    folder: Path
    sources: tuple[str, ...] = ()
    port: int = 4318
    max_size: str = "16GiB"
    command: tuple[str, ...] = ()


def receive_request(request: ReceiveRequest, console: Console) -> int:
    """Receive until it is time to stop; the exit code: 0, or that of the command."""
    try:
        limits = replace(ReceiverLimits(), folder_bytes=parse_size(request.max_size))
    except ValueError as error:
        raise UsageError(f"--max-size: {error}", hint="--max-size 500MiB") from error
    if request.command and len(request.sources) > 1:
        raise UsageError(
            "a command sends its spans to one source, and several are given",
            hint="name one source, or start the receiver by itself",
        )
    receiver = Receiver(request.folder, sources=request.sources, limits=limits)
    session = _Session(request, receiver, console)
    try:
        anyio.run(session.run)
    except BaseExceptionGroup as error:
        raise first_error(error) from error
    console.result(_summary(receiver, request))
    if receiver.has_unsaved_losses:
        raise PrerequisiteError(
            f"spans were lost, and that could not be noted in {request.folder}: do not take its evidence as complete",
            hint="make room on the disk",
        )
    return session.exit_code


class _Session:
    def __init__(self, request: ReceiveRequest, receiver: Receiver, console: Console) -> None:
        self._request = request
        self._receiver = receiver
        self._console = console
        self._port = 0
        self._signals = 0
        self.exit_code = 0

    async def run(self) -> None:
        stop, listening = anyio.Event(), anyio.Event()

        def started(port: int) -> None:
            self._port = port
            self._tell_where()
            listening.set()

        async with anyio.create_task_group() as group:
            await group.start(self._watch_signals, stop)
            if self._request.command:
                group.start_soon(self._run_command, listening, stop)
            await self._receiver.run(self._request.port, stop, started)
            group.cancel_scope.cancel()

    def _tell_where(self) -> None:
        where = shell_word(str(self._request.folder))
        self._console.note(f"receiving spans at http://{HOST}:{self._port} into {where}")
        if not self._request.command:
            for source in self._request.sources or ("",):
                for name, value in exporter_settings(self._port, source).items():
                    self._console.note(f"  export {name}={value}")
            self._console.note("stop with Ctrl-C")

    async def _watch_signals(
        self, stop: anyio.Event, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        with anyio.open_signal_receiver(*SIGNALS) as signals:
            task_status.started()
            async for number in signals:
                self._signals += 1
                if self._signals == 1:
                    self._console.note("stopping: requests under way are finished (once more to leave at once)")
                    stop.set()
                else:
                    os._exit(INTERRUPTED_BY + number)

    async def _run_command(self, listening: anyio.Event, stop: anyio.Event) -> None:
        await listening.wait()
        source = self._request.sources[0] if self._request.sources else ""
        environment = dict(os.environ) | dict(exporter_settings(self._port, source))
        try:
            process = await anyio.open_process(
                list(self._request.command), stdin=None, stdout=None, stderr=None, env=environment
            )
        except OSError as error:
            raise UsageError(
                f"{self._request.command[0]} cannot be started: {error.strerror or error}",
                hint="name a program that is there",
            ) from error
        async with process:
            await self._wait_for(process, stop)
        code = process.returncode
        self.exit_code = 0 if code is None else code if code >= 0 else INTERRUPTED_BY - code
        if self.exit_code != 0:
            self._console.note(f"the command ended with exit code {self.exit_code}")
        stop.set()

    async def _wait_for(self, process: anyio.abc.Process, stop: anyio.Event) -> None:
        """Wait until the command ends; a signal to us is one to it, and one that heeds none is killed."""
        async with anyio.create_task_group() as group:

            async def pass_on() -> None:
                await stop.wait()
                process.send_signal(signal.SIGTERM)
                await anyio.sleep(_COMMAND_STOPS_S)
                process.kill()

            group.start_soon(pass_on)
            await process.wait()
            group.cancel_scope.cancel()


def exporter_settings(port: int, source: str) -> Mapping[str, str]:
    """The standard environment variables that make an OpenTelemetry exporter send its spans to a source."""
    path = f"/{source}" if source else ""
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{HOST}:{port}{path}",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
    }


def _several(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _summary(receiver: Receiver, request: ReceiveRequest) -> str:
    counts = receiver.counts
    size = f", {receiver.written_bytes / MIB:.1f} MiB" if receiver.written_bytes >= MIB else ""
    lines = [f"received {_several(counts.spans, 'span')} in {_several(counts.batches, 'request')}{size}"]
    if counts.refused:
        lines.append(f"refused  {_several(counts.refused, 'request')}, {counts.lost:,} of them may have had spans:")
        lines.extend(f"  {count} x {why}" for why, count in sorted(counts.refusals.items()))
    if counts.spans:
        lines.extend(
            f"next     grader score {shell_word(str(folder))} --task TASK" for folder in receiver.folders.values()
        )
    else:
        lines.append("next     is the exporter set up, and does the program flush its spans before it ends?")
    return "".join(f"{safe_line(line)}\n" for line in lines)

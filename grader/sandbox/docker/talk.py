"""A talk with a box's supervisor over its attached stream: one question at a time, each with an end.

What arrives is handed to the dialogue from the event loop's own callback, and the one who asked is woken when the
whole answer is there: a run costs one wait. Everything that ends the talk (the stream's end, a violation of the
protocol, the supervisor's own last word, no answer in time) is one `TalkOverError`, and closes the stream.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Sequence
from typing import TypeVar, cast

from grader.sandbox.base import Ear, PortSeen
from grader.sandbox.docker.box_runs import Tree
from grader.sandbox.docker.connection import Connection, Stream
from grader.sandbox.supervisor.dialogue import Dialogue, Event, Hello
from grader.sandbox.supervisor.frames import (
    Cleared,
    Counters,
    Fatal,
    Pong,
    PortClosed,
    PortData,
    PortOpened,
    ProtocolViolation,
    PutDone,
    StdinRoom,
)
from grader.sandbox.supervisor.requests import RunRequest
from grader.sandbox.supervisor.results import RunResult

PUT_AHEAD = 64
"""Files are sent this many ahead of the box's answers."""
SMALL_TREE_BYTES = 2**18
"""A tree of at most so much, in at most `PUT_AHEAD` files, goes to the box together with its first run."""
ANSWER_WITHIN_S = 10.0
"""The box answers within this time when no program runs in it."""
GRACE_S = 10.0
"""Beyond three times its wall-time limit (the supervisor's own last limit) a run is given this much more."""
SLOWEST_BYTES_PER_S = 4 * 2**20
"""For the time that input and output may take on the way."""

E = TypeVar("E", bound=Event)


class TalkOverError(Exception):
    """The box will not answer any more. The message says why."""


class PutError(Exception):
    """A file could not be put into the box; the message names it."""


class FillError(PutError):
    """It is one of the submission's."""


class Talk:
    """The client's end of one box. Not for use by two tasks at once."""

    def __init__(self) -> None:
        self._dialogue = Dialogue(os.urandom(16))
        self._loop = asyncio.get_running_loop()
        self._connection: Connection | None = None
        self._wanted: type[Event] | None = None
        self._answer: asyncio.Future[Event] | None = None
        self._answer_by_s = 0.0
        self._patience_s = 0.0
        self._watchdog: asyncio.TimerHandle | None = None
        self._put: list[PutDone] = []
        self._is_filled = False
        self._ahead: list[bytes] = []  # frames that go with whatever is asked next
        self._ahead_paths: list[bytes] = []  # of the submission's files among them
        self._run_paths: tuple[list[bytes], list[bytes]] = ([], [])  # those that went with the run, and its input files
        self._ear: Ear | None = None
        self._over: str | None = None
        self._heard_s = float("-inf")
        self.counters: Counters | None = None
        """The last counters of the run that is on, or was on last."""

    @property
    def over(self) -> str | None:
        """Why the talk is over; None while it goes on."""
        return self._over

    @property
    def silent_for_s(self) -> float:
        """How long ago the box last said something, in seconds."""
        return self._loop.time() - self._heard_s

    async def open(self, stream: socket.socket | Stream) -> None:
        """Take over an attached stream. The container need not be started yet."""
        self._connection = await Connection.over(stream, self._received, self._end)

    async def hello(self) -> Hello:
        """Greet the box, and get its facts."""
        return await self._ask(self._dialogue.hello(), Hello, ANSWER_WITHIN_S)

    async def ping(self, within_s: float = 2.0) -> bool:
        """Whether the box answers; one that does not is given up."""
        token = secrets.randbits(63)
        try:
            return (await self._ask(self._dialogue.ping(token), Pong, within_s)).token == token
        except TalkOverError:
            return False

    async def fill(self, tree: Tree) -> None:
        """Put files into `/submission`, in the place of what is there. Raises FillError if one could not be written.

        A small tree goes with the next run, which saves a way there and back; then it is the run that raises.
        """
        if self._ahead:
            raise RuntimeError("a box is filled once before a run")
        if self._is_filled:
            self._ahead.append(self._dialogue.clear())
        self._is_filled = True
        if len(tree) <= PUT_AHEAD and sum(len(file.content) for file in tree) <= SMALL_TREE_BYTES:
            self._ahead += self._put_frames(tree)
            self._ahead_paths = [file.path for file in tree]
            return
        for start in range(0, len(tree), PUT_AHEAD):
            files = tree[start : start + PUT_AHEAD]
            frames = b"".join(self._put_frames(files))
            self._put.clear()
            # A ping behind the files is answered after them.
            frames += self._dialogue.ping(start)
            await self._ask(frames, Pong, ANSWER_WITHIN_S + len(frames) / SLOWEST_BYTES_PER_S)
            _check_put([file.path for file in files], self._put, FillError)

    async def run(self, request: RunRequest, stdin: bytes, files: Tree, ear: Ear | None = None) -> RunResult:
        """One run. `ear` hears what comes to the request's port.

        Raises ValueError for a request that the box does not take, and then nothing was sent.

        Raises PutError if a file could not be written: the program ran without it, so nothing is known of it.
        """
        self.counters = None
        self._put.clear()
        self._ear = ear
        frames = self._dialogue.begin(secrets.randbits(62) + 1, request, stdin, files)
        size = len(frames) + len(stdin) + request.stdout_keep_bytes + request.collect_total_bytes
        size += request.port.most_bytes if request.port is not None else 0
        within_s = 3 * request.wall_time_ns / 1e9 + GRACE_S + size / SLOWEST_BYTES_PER_S
        self._run_paths, self._ahead_paths = (self._ahead_paths, [file.path for file in files]), []
        result = await self._ask(frames, RunResult, within_s)
        if ear is not None:
            n = result.numbers
            ear.finish(
                PortSeen(n["port_connections"] or 0, n["port_refused"] or 0, n["port_bytes"] or 0, n["port_full"] == 1)
            )
        self.check_files()
        return result

    def check_files(self) -> None:
        """Raise PutError unless every file that went with the last run is known to have been written."""
        tree, inputs = self._run_paths
        if tree or inputs:
            _check_put(tree, self._put[: len(tree)], FillError)
            _check_put(inputs, self._put[len(tree) :], PutError)

    def close(self) -> None:
        """End the talk. The box ends with it, as its standard input does."""
        self._end("closed")

    async def _ask(self, frames: bytes, answer: type[E], within_s: float) -> E:
        """Send, and wait for an answer of this kind, at most so long."""
        if self._over is not None or self._connection is None:
            raise TalkOverError(self._over or "not connected")
        future: asyncio.Future[Event] = self._loop.create_future()
        self._answer, self._wanted = future, answer
        if self._ahead:
            frames = b"".join((*self._ahead, frames))
            self._ahead.clear()
        self._connection.send(frames)
        self._watch(within_s)
        try:
            return cast("E", await future)
        finally:
            self._answer = self._wanted = None

    def _watch(self, within_s: float) -> None:
        """End the talk if the answer that is waited for does not come within this time.

        A timer that is on and does not end later is left alone: it looks when it ends whether it is time. So most runs
        need no timer of their own.
        """
        self._patience_s = within_s
        self._answer_by_s = self._loop.time() + within_s
        if self._watchdog is None or self._watchdog.when() > self._answer_by_s:
            if self._watchdog is not None:
                self._watchdog.cancel()
            self._watchdog = self._loop.call_at(self._answer_by_s, self._look)

    def _look(self) -> None:
        self._watchdog = None
        if self._answer is None:
            return
        if self._loop.time() >= self._answer_by_s:
            self._end(f"no answer within {self._patience_s:.1f} s")
        else:
            self._watchdog = self._loop.call_at(self._answer_by_s, self._look)

    def _received(self, data: bytes) -> None:
        self._heard_s = self._loop.time()
        try:
            events = self._dialogue.feed(data)
        except ProtocolViolation as error:
            self._end(error.message)
            return
        for event in events:
            self._take(event)
        if self._ear is None or self._connection is None:
            return
        if any(isinstance(event, PortData) for event in events):
            self._connection.send(self._dialogue.port_seen())

    def _take(self, event: Event) -> None:
        if self._wanted is not None and isinstance(event, self._wanted) and self._answer is not None:
            if not self._answer.done():
                self._answer.set_result(event)
        elif isinstance(event, Counters):
            self.counters = event
        elif isinstance(event, PutDone):
            self._put.append(event)
        elif isinstance(event, StdinRoom):
            self._send_stdin()
        elif isinstance(event, Cleared):
            pass  # the dialogue knows that it was asked for, and what follows it shows that it was done
        elif isinstance(event, Fatal):
            self._end(f"the supervisor gave up: {event.text} (code {event.code}, errno {event.errno})")
        elif isinstance(event, PortOpened | PortData | PortClosed):
            self._hear(event)
        else:
            self._end(f"an answer that nobody asked for: {type(event).__name__}")

    def _send_stdin(self) -> None:
        while self._connection is not None and (frames := self._dialogue.stdin_to_send()):
            self._connection.send(frames)

    def _hear(self, event: PortOpened | PortData | PortClosed) -> None:
        """Bytes of the program for whoever listens, and their answer to it."""
        if self._ear is None or self._connection is None or isinstance(event, PortOpened):
            return
        reply = self._ear.hear(event.connection, event.data if isinstance(event, PortData) else b"")
        ends = isinstance(event, PortClosed)
        if reply.data or reply.closes or ends:
            self._connection.send(self._dialogue.say(event.connection, reply.data, close=reply.closes or ends))
        if reply.ends_port:
            self._connection.send(self._dialogue.say(0, b"", close=True))

    def _put_frames(self, tree: Tree) -> list[bytes]:
        return [self._dialogue.put(f.path, f.content, executable=f.executable) for f in tree]

    def _end(self, why: str) -> None:
        if self._over is not None:
            return
        said = self._connection.stderr_text if self._connection is not None else ""
        self._over = f"{why}; its last words: {said}" if said else why
        if self._watchdog is not None:
            self._watchdog.cancel()
            self._watchdog = None
        if self._connection is not None:
            self._connection.close()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(TalkOverError(self._over))


def _check_put(paths: Sequence[bytes], answers: Sequence[PutDone], error: type[PutError]) -> None:
    for path, done in zip(paths, answers, strict=False):
        if done.step:
            name = path.decode("utf-8", "backslashreplace")
            raise error(f"{name} could not be written into the box: {os.strerror(done.errno)}")
    if len(answers) != len(paths):
        raise error(f"{len(paths)} files were sent, {len(answers)} arrived")

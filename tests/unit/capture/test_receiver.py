"""The receiver over real sockets: acknowledged is kept, refused is noted, and every bound holds for hostile peers."""

from __future__ import annotations

import errno
import gzip
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.from_thread
import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult

import grader
from grader.capture import received_files
from grader.capture.http_body import HttpLimits
from grader.capture.otlp_body import OtlpEncoding
from grader.capture.received_files import SourceFiles
from grader.capture.receiver import Receiver, ReceiverLimits
from grader.core.tools.calls import ToolsPayload
from grader.errors import PrerequisiteError, UsageError
from tests.otlp_client import JSON, PROTOBUF, Client, ask, head, kept, post, protobuf, request

QUICK = ReceiverLimits(header_s=5, body_s=5, idle_s=5, answer_s=5, stop_s=5)
TASK = grader.Task(conditions=(grader.ToolsNotCalled(tools=("delete",)),))


class Running:
    """A receiver in a thread."""

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver
        self.port = 0
        self._listening = threading.Event()
        self._stop: Callable[[], None] = lambda: None
        self._error: list[BaseException] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        assert self._listening.wait(30), self._error

    def stop(self) -> None:
        """Stop in order, and wait for the end."""
        if self._thread.is_alive():
            self._stop()
        self._thread.join(60)
        assert not self._thread.is_alive()
        assert self._error == []

    def _run(self) -> None:
        async def main() -> None:
            stop = anyio.Event()
            token = anyio.lowlevel.current_token()
            self._stop = lambda: anyio.from_thread.run_sync(stop.set, token=token)

            def started(port: int) -> None:
                self.port = port
                self._listening.set()

            await self.receiver.run(0, stop, started)

        try:
            anyio.run(main)
        except BaseException as error:  # noqa: BLE001 - told to the test
            self._error.append(error)
            self._listening.set()


Start = Callable[..., Running]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    running: list[Running] = []

    def begin(*sources: str, limits: ReceiverLimits = QUICK) -> Running:
        running.append(Running(Receiver(tmp_path, sources=sources, limits=limits)))
        return running[-1]

    yield begin
    for one in running:
        one.stop()


def reasons(folder: Path) -> dict[str, int]:
    """What speaks against the completeness of a folder."""
    graded = grader.score(folder, TASK, complete=True)
    assert graded.observation is not None
    assert isinstance(graded.observation.payload, ToolsPayload)
    return {reason.code.value: reason.count for reason in graded.observation.payload.coverage.reasons}


def test_what_is_acknowledged_is_in_files_that_can_be_scored(start: Start, tmp_path: Path) -> None:
    running = start()
    with Client(running.port) as client:
        for data in (
            post(request(1)),
            post(protobuf(2, 3), "/v1/traces", PROTOBUF),
            post(gzip.compress(request(4)), "/v1/traces", JSON, "Content-Encoding: gzip"),
            post(gzip.compress(protobuf(5)), "/v1/traces", PROTOBUF, "Content-Encoding: gzip"),
            post(b"{}"),
        ):
            client.send(data)
            assert client.answer().status == 200
        assert kept(tmp_path) == [1, 2, 3, 4, 5]
        assert reasons(tmp_path) == {}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["spans-0001.binpb", "spans-0001.jsonl"]
    running.stop()
    assert (running.receiver.counts.spans, running.receiver.counts.batches) == (5, 5)


def test_nothing_is_acknowledged_before_it_is_on_the_disk(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    may_sync, syncs = threading.Event(), threading.Event()

    def slow(descriptor: int) -> None:
        syncs.set()
        assert may_sync.wait(30)

    running = start()
    monkeypatch.setattr(received_files.os, "fdatasync", slow)
    with Client(running.port, within_s=0.1) as client:
        client.send(post(request(1)))
        assert syncs.wait(30)
        with pytest.raises(TimeoutError):
            client.answer()
        may_sync.set()
        client.socket.settimeout(30)
        assert client.answer().status == 200


def test_sources_are_kept_apart(start: Start, tmp_path: Path) -> None:
    running = start("mine", "yours")
    assert ask(running.port, post(request(1), "/mine/v1/traces")).status == 200
    assert ask(running.port, post(request(2), "/yours/v1/traces")).status == 200
    assert ask(running.port, post(request(3), "/others/v1/traces")).status == 404
    assert ask(running.port, post(request(3))).status == 404
    assert ask(running.port, post(b"garbage", "/yours/v1/traces")).status == 400
    assert (kept(tmp_path / "mine"), kept(tmp_path / "yours")) == ([1], [2])
    assert (reasons(tmp_path / "mine"), reasons(tmp_path / "yours")["capture.failed"]) == ({}, 1)


@pytest.mark.parametrize(
    ("sources", "word"),
    [(("a", "a"), "given twice"), (("../up",), "cannot be the name"), (("",), "cannot be the name")],
)
def test_sources_with_wrong_names_are_an_error(tmp_path: Path, sources: tuple[str, ...], word: str) -> None:
    with pytest.raises(UsageError, match=word):
        Receiver(tmp_path, sources=sources)


def test_a_folder_that_cannot_be_written_to_is_told_before_anything(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PrerequisiteError, match="cannot be written"):
        Receiver(tmp_path / "file")


def test_a_port_that_is_taken_is_told(start: Start, tmp_path: Path) -> None:
    taken = start().port

    async def main() -> None:
        await Receiver(tmp_path).run(taken, anyio.Event(), lambda _: None)

    with pytest.raises(PrerequisiteError, match="--port 0"):
        anyio.run(main)


def blocked(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Writing waits: (it waits now, it may go on)."""
    waits, may_go_on = threading.Event(), threading.Event()
    append = SourceFiles.append

    def wait(self: SourceFiles, data: bytes, encoding: OtlpEncoding) -> None:
        waits.set()
        assert may_go_on.wait(30)
        append(self, data, encoding)

    monkeypatch.setattr(SourceFiles, "append", wait)
    return waits, may_go_on


@pytest.mark.parametrize("comes_again", [True, False])
def test_a_full_queue_asks_to_send_again_and_what_does_not_come_is_missing(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, comes_again: bool
) -> None:
    running = start(limits=replace(QUICK, queue_batches=1))
    assert ask(running.port, post(request(1))).status == 200
    waits, may_go_on = blocked(monkeypatch)
    with Client(running.port) as first, Client(running.port) as second:
        first.send(post(request(2)))
        assert waits.wait(30)
        second.send(post(request(3)))
        threading.Timer(0.2, may_go_on.set).start()
        refused = second.answer()
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        assert first.answer().status == 200
        if comes_again:
            second.send(post(request(3)))
            assert second.answer().status == 200
    running.stop()
    assert kept(tmp_path) == ([1, 2, 3] if comes_again else [1, 2])
    assert reasons(tmp_path) == ({} if comes_again else {"capture.failed": 1})


@pytest.mark.parametrize("answers", ["queue", "disk"])
def test_the_exporter_of_python_sends_again_and_then_nothing_is_missing(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: str
) -> None:
    """It counts on the words of OTLP: 429 and 503 with Retry-After."""
    running = start(limits=replace(QUICK, queue_batches=1))
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("test")
    span = tracer.start_span("x")
    span.end()
    exporter = OTLPSpanExporter(f"http://127.0.0.1:{running.port}/v1/traces")
    first = Client(running.port)
    if answers == "queue":
        waits, may_go_on = blocked(monkeypatch)
        first.send(post(request(1)))
        assert waits.wait(30)
        threading.Timer(0.3, may_go_on.set).start()
    else:
        appends = iter([OSError(errno.EIO, "broken"), OSError(errno.EIO, "broken")])
        append = SourceFiles.append

        def breaks_twice(self: SourceFiles, data: bytes, encoding: OtlpEncoding) -> None:
            for error in appends:
                raise error
            append(self, data, encoding)

        monkeypatch.setattr(SourceFiles, "append", breaks_twice)
    assert isinstance(span, ReadableSpan)
    assert exporter.export([span]) is SpanExportResult.SUCCESS
    exporter.shutdown()
    first.close()
    running.stop()
    assert running.receiver.counts.refused >= 1
    assert len(kept(tmp_path)) == (2 if answers == "queue" else 1)
    assert "capture.failed" not in reasons(tmp_path)


def test_a_disk_that_fails_is_no_acknowledgement_and_spoils_nothing(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start()
    assert ask(running.port, post(request(1))).status == 200

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(received_files.os, "fdatasync", full)
        answer = ask(running.port, post(request(2)))
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert b"No space left on device" in answer.body
        assert kept(tmp_path) == [1]
    assert ask(running.port, post(request(3))).status == 200
    assert reasons(tmp_path) == {"capture.failed": 1}
    assert ask(running.port, post(request(2))).status == 200
    assert kept(tmp_path) == [1, 2, 3]
    running.stop()
    assert reasons(tmp_path) == {}
    assert not running.receiver.has_unsaved_losses


def test_losses_that_cannot_be_noted_are_told_at_the_end(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start()

    def full(self: SourceFiles, data: bytes, encoding: OtlpEncoding) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(SourceFiles, "append", full)
    assert ask(running.port, post(b"garbage")).status == 400
    running.stop()
    assert running.receiver.has_unsaved_losses


def test_a_session_writes_no_more_than_it_may(start: Start, tmp_path: Path) -> None:
    running = start(limits=replace(QUICK, folder_bytes=2 * len(request(1))))
    assert ask(running.port, post(request(1))).status == 200
    answers = [ask(running.port, post(request(2, 3))) for _ in range(3)]
    assert {answer.status for answer in answers} == {507}
    assert "retry-after" not in answers[0].headers
    assert kept(tmp_path) == [1]
    assert reasons(tmp_path) == {"capacity": 3}


def test_a_second_session_writes_files_of_its_own(start: Start, tmp_path: Path) -> None:
    for number in (1, 2):
        running = start()
        assert ask(running.port, post(request(number))).status == 200
        running.stop()
    (tmp_path / "spans-0001.jsonl").write_bytes((tmp_path / "spans-0001.jsonl").read_bytes()[:-1] + b"cut")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["spans-0001.jsonl", "spans-0002.jsonl"]
    assert 2 in kept(tmp_path)


# --- hostile peers


def test_garbage_is_refused_and_noted(start: Start, tmp_path: Path) -> None:
    running = start()
    assert ask(running.port, post(request(1))).status == 200
    assert ask(running.port, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)).status == 400
    assert ask(running.port, post(b"no json")).status == 400
    assert ask(running.port, post(b"x" * 100, "/v1/traces", PROTOBUF)).status == 400
    assert ask(running.port, post(request(2), "/v1/traces", "text/plain")).status == 415
    assert reasons(tmp_path) == {"capture.failed": 4}
    assert ask(running.port, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").status == 404
    assert reasons(tmp_path) == {"capture.failed": 4}


@pytest.mark.parametrize(
    ("sent", "seconds", "status"),
    [
        (b"POST /v1/traces HTTP/1.1\r\nHost: h\r\nX-Slow: ", {"header_s": 0.2}, 408),
        (head(1000) + b"{", {"body_s": 0.2}, 408),
        (head(None) + b"5\r\nhello\r\n", {"body_s": 0.2}, 408),
        (b"", {"idle_s": 0.2}, 0),
    ],
)
def test_who_does_not_go_on_is_not_waited_for(
    start: Start, sent: bytes, seconds: dict[str, float], status: int
) -> None:
    running = start(limits=replace(QUICK, **seconds))  # pyright: ignore[reportArgumentType]
    with Client(running.port) as client:
        client.send(sent)
        assert client.answer().status == status
        assert client.is_closed()


def test_a_byte_now_and_then_makes_no_request_longer(start: Start) -> None:
    running = start(limits=replace(QUICK, header_s=0.3))
    with Client(running.port) as client:
        client.send(b"POST /v1/traces HTTP/1.1\r\nHost: h\r\n")
        began = time.monotonic()
        while time.monotonic() - began < 10:
            try:
                client.send(b"X: y\r\n")
            except ConnectionError:
                break
            client.socket.settimeout(0.05)
            try:
                if client.answer().status == 408:
                    break
            except TimeoutError:
                pass
        assert time.monotonic() - began < 5


def test_chunks_without_end_and_oversized_bodies_and_bombs_are_stopped(start: Start, tmp_path: Path) -> None:
    limits = replace(QUICK, http=HttpLimits(body_bytes=100_000, decompressed_bytes=300_000))
    running = start(limits=limits)
    with Client(running.port) as client:
        client.send(head(None))
        for _ in range(10):
            client.send(b"4e20\r\n" + b" " * 20_000 + b"\r\n")
        assert client.answer().status == 413
    assert ask(running.port, post(b" " * 100_001)).status == 413
    bomb = gzip.compress(b" " * 30_000_000)
    assert len(bomb) < 100_000
    assert ask(running.port, post(bomb, "/v1/traces", JSON, "Content-Encoding: gzip")).status == 413
    assert ask(running.port, post(request(1))).status == 200
    assert reasons(tmp_path) == {"capture.failed": 3}


def test_who_sends_on_after_a_refusal_can_still_read_it(start: Start) -> None:
    running = start(limits=replace(QUICK, http=HttpLimits(body_bytes=100_000)))
    with Client(running.port) as client:
        client.send(head(3_000_000))
        for _ in range(30):
            client.send(bytes(100_000))
        assert client.answer().status == 413


def test_a_peer_that_closes_its_half_gets_its_answer(start: Start, tmp_path: Path) -> None:
    running = start()
    with Client(running.port) as client:
        client.send(post(request(1)))
        client.socket.shutdown(1)
        assert client.answer().status == 200
    assert kept(tmp_path) == [1]


def test_a_peer_that_breaks_off_in_a_request_is_noted(start: Start, tmp_path: Path) -> None:
    running = start()
    assert ask(running.port, post(request(1))).status == 200
    with Client(running.port) as client:
        client.send(post(request(2))[:-1])
        client.socket.shutdown(1)
        assert client.answer().status == 400
    assert (kept(tmp_path), reasons(tmp_path)) == ([1], {"capture.failed": 1})


def test_requests_that_are_sent_ahead_are_answered_in_order(start: Start, tmp_path: Path) -> None:
    running = start()
    with Client(running.port) as client:
        client.send(b"".join(post(request(number)) if number % 10 else post(b"bad") for number in range(1, 61)))
        assert [client.answer().status for _ in range(60)] == [200 if n % 10 else 400 for n in range(1, 61)]
    assert kept(tmp_path) == [number for number in range(1, 61) if number % 10]


def send_for_ever(client: Client, data: bytes) -> None:
    while True:
        client.send(data)


def test_a_peer_that_takes_no_answers_is_let_go(start: Start) -> None:
    running = start(limits=replace(QUICK, answer_s=0.2))
    with Client(running.port, within_s=20, receive_bytes=4096) as client, pytest.raises(ConnectionError):
        send_for_ever(client, f"GET /{'x' * 100} HTTP/1.1\r\nHost: h\r\n\r\n".encode() * 100)
    assert ask(running.port, post(request(1))).status == 200


def test_what_is_sent_while_a_request_waits_for_the_disk_is_not_read_ahead(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start()
    waits, may_go_on = blocked(monkeypatch)
    with Client(running.port, within_s=1.0) as client:
        client.send(post(request(1)))
        assert waits.wait(30)
        with pytest.raises(TimeoutError):  # the buffers of both sockets are full: nobody reads
            send_for_ever(client, bytes(64 << 10))
        may_go_on.set()


def test_a_thousand_idle_connections_do_not_keep_an_exporter_out(start: Start, tmp_path: Path) -> None:
    running = start(limits=replace(QUICK, connections=50, idle_s=60))
    idle = [Client(running.port) for _ in range(300)]
    try:
        assert ask(running.port, post(request(1))).status == 200
    finally:
        for client in idle:
            client.close()
    assert (kept(tmp_path), reasons(tmp_path)) == ([1], {})


def test_connections_beyond_the_bound_are_turned_away_and_noted(start: Start, tmp_path: Path) -> None:
    running = start(limits=replace(QUICK, connections=20, header_s=1.0))
    with ThreadPoolExecutor(20) as pool:
        slow = list(pool.map(Client, [running.port] * 20))
    for client in slow:
        client.send(b"POST /v1/traces HTTP/1.1\r\n")
    time.sleep(0.1)
    refused = ask(running.port, post(request(1)))
    assert (refused.status, refused.headers["retry-after"]) == (503, "1")
    assert {client.answer().status for client in slow} == {408}
    assert ask(running.port, post(request(1))).status == 200
    for client in slow:
        client.close()
    assert reasons(tmp_path)["capture.failed"] == 21


# --- stopping


def test_stopping_finishes_the_request_that_is_under_way(start: Start, tmp_path: Path) -> None:
    running = start()
    whole = post(request(1))
    with Client(running.port) as client, Client(running.port) as idle:
        client.send(whole[:-10])
        time.sleep(0.05)
        stopping = threading.Thread(target=running.stop)
        stopping.start()
        assert idle.is_closed()
        client.send(whole[-10:])
        assert client.answer().status == 200
        stopping.join(30)
    assert kept(tmp_path) == [1]


def test_stopping_does_not_wait_for_ever(start: Start) -> None:
    running = start(limits=replace(QUICK, stop_s=0.1, body_s=60))
    with Client(running.port) as client:
        client.send(post(request(1))[:-10])
        time.sleep(0.05)
        began = time.monotonic()
        running.stop()
        assert time.monotonic() - began < 5


def test_whatever_was_acknowledged_when_it_stopped_is_kept(start: Start, tmp_path: Path) -> None:
    running = start()
    acknowledged: list[int] = []
    numbers = iter(range(1, 1_000_000))

    def exporter() -> None:
        try:
            with Client(running.port) as client:
                while True:
                    number = next(numbers)
                    client.send(post(request(number)))
                    if client.answer().status != 200:
                        return
                    acknowledged.append(number)
        except ConnectionError:
            return

    threads = [threading.Thread(target=exporter) for _ in range(8)]
    for thread in threads:
        thread.start()
    while len(acknowledged) < 50:
        time.sleep(0.01)
    running.stop()
    for thread in threads:
        thread.join(30)
    assert set(acknowledged) <= set(kept(tmp_path))

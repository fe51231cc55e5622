"""`grader receive` as a process: real exporters, kills and signals while spans arrive, full disks, and what it says."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.json.http.trace_exporter import OTLPSpanExporter as JsonExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as ProtobufExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from tests.e2e.conftest import COMMAND, Ended, Grader, environment
from tests.otlp_client import HOST, Client, ask, kept, post, request

TASK = """\
conditions:
  - condition_type: tools_called
    tools: [{name: send, arguments: [{name: to, matcher: {equals: bob}}], at_most: 1}]
    exhaustive: true
"""
AGENT = """\
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
tracer = provider.get_tracer("agent")
with tracer.start_as_current_span("invoke_agent", attributes={"gen_ai.operation.name": "invoke_agent"}):
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "send",
        "gen_ai.tool.call.arguments": '{"to": "bob"}',
    }
    with tracer.start_as_current_span("execute_tool send", attributes=attributes):
        pass
provider.shutdown()
"""


class Receiving:
    """The command, running."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "receive", "spans", "--port", "0", *options],
            cwd=folder,
            env=environment(folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        self.said = self.process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", self.said)
        assert found is not None, self.said + self.process.stderr.read()
        self.port = int(found[1])

    def stop(self, number: signal.Signals = signal.SIGTERM) -> Ended:
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> Ended:
        out, err = self.process.communicate(timeout=60)
        return Ended(self.process.returncode, out, self.said + err)


Receive = Callable[..., Receiving]


@pytest.fixture
def receive(tmp_path: Path) -> Generator[Receive]:
    running: list[Receiving] = []

    def start(*options: str) -> Receiving:
        running.append(Receiving(tmp_path, *options))
        return running[-1]

    yield start
    for one in running:
        if one.process.poll() is None:
            one.process.kill()
            one.process.communicate(timeout=60)


def export(exporter: SpanExporter, spans: int) -> None:
    """Spans of an agent, as the SDK sends them."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter, max_export_batch_size=100))
    tracer = provider.get_tracer("agent")
    with tracer.start_as_current_span("invoke_agent", attributes={"gen_ai.operation.name": "invoke_agent"}):
        for _ in range(spans - 1):
            attributes = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "send",
                "gen_ai.tool.call.arguments": '{"to": "bob"}',
            }
            tracer.start_span("execute_tool send", attributes=attributes).end()
    assert provider.force_flush()
    provider.shutdown()


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
def test_the_exporter_of_python_sends_protobuf(
    receive: Receive, grader: Grader, tmp_path: Path, compression: Compression
) -> None:
    receiving = receive()
    export(ProtobufExporter(f"http://{HOST}:{receiving.port}/v1/traces", compression=compression), 500)
    ended = receiving.stop()
    assert (ended.code, "received 500 spans in " in ended.out) == (0, True), ended
    assert len(kept(tmp_path / "spans")) == 500
    (tmp_path / "task.yaml").write_text(TASK.replace(", at_most: 1", ""))
    scored = grader("score", "spans", "--task", "task.yaml", "--complete")
    assert scored.code == 0, scored
    assert "executions: 499" in scored.out


def test_the_exporter_of_python_sends_json(receive: Receive, tmp_path: Path) -> None:
    receiving = receive("--source", "mine")
    export(JsonExporter(endpoint=f"http://{HOST}:{receiving.port}/mine/v1/traces"), 300)
    assert receiving.stop(signal.SIGINT).code == 0
    assert len(kept(tmp_path / "spans" / "mine")) == 300


def test_an_exporter_is_told_where_to_send_and_a_command_gets_it_set_up(grader: Grader, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "task.yaml").write_text(TASK + "trace: {trace_source: mail}\n")
    ended = grader("receive", "spans", "--port", "0", "--source", "mail", "--", sys.executable, "agent.py")
    assert ended.code == 0, ended
    assert re.search(r"received 2 spans in (1 request|2 requests)\n", ended.out)
    assert "next     grader score spans/mail --task TASK" in ended.out
    assert grader("score", "spans", "--task", "task.yaml", "--complete").code == 0
    nothing = grader("receive", "none", "--port", "0", "--", sys.executable, "-c", "raise SystemExit(7)")
    assert (nothing.code, "the command ended with exit code 7" in nothing.err) == (7, True)
    assert "does the program flush its spans" in nothing.out


def test_what_it_says_when_it_starts_sets_up_an_exporter(receive: Receive, tmp_path: Path) -> None:
    receiving = receive("--source", "mail")
    assert receiving.process.stderr is not None
    lines = [receiving.process.stderr.readline() for _ in range(5)]
    settings = dict(line.strip().removeprefix("export ").split("=", 1) for line in lines)
    assert settings["OTEL_EXPORTER_OTLP_ENDPOINT"] == f"http://127.0.0.1:{receiving.port}/mail"
    (tmp_path / "agent.py").write_text(AGENT)
    command = [sys.executable, "agent.py"]
    subprocess.run(command, cwd=tmp_path, env=environment(tmp_path, **settings), timeout=60, check=True)
    assert receiving.stop().code == 0
    assert len(kept(tmp_path / "spans" / "mail")) == 2


def bombard(port: int, acknowledged: list[int], numbers: itertools.count[int]) -> None:
    """Send until the receiver is gone, and remember what it acknowledged."""
    with suppress(OSError), Client(port) as client:
        while True:
            batch = [next(numbers) for _ in range(5)]
            client.send(post(request(*batch)))
            if client.answer().status != 200:
                return
            acknowledged.extend(batch)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_that_was_acknowledged_is_lost_by_a_stop_or_a_kill(
    receive: Receive, tmp_path: Path, number: signal.Signals
) -> None:
    receiving, acknowledged, numbers = receive(), list[int](), itertools.count(1)
    threads = [threading.Thread(target=bombard, args=(receiving.port, acknowledged, numbers)) for _ in range(8)]
    for thread in threads:
        thread.start()
    while len(acknowledged) < 1_000:
        assert any(thread.is_alive() for thread in threads)
        time.sleep(0.01)
    ended = receiving.stop(number)
    for thread in threads:
        thread.join(60)
    assert ended.code == (0 if number is signal.SIGTERM else -signal.SIGKILL)
    assert len(acknowledged) >= 1_000
    assert set(acknowledged) <= set(kept(tmp_path / "spans"))


def test_a_second_signal_leaves_at_once(receive: Receive) -> None:
    receiving = receive()
    with Client(receiving.port) as client:
        client.send(post(request(1))[:-5])
        time.sleep(0.2)
        receiving.process.send_signal(signal.SIGTERM)
        assert receiving.process.stderr is not None
        while "stopping" not in receiving.process.stderr.readline():
            pass
        assert receiving.stop(signal.SIGTERM).code == 143


def test_a_thousand_connections_at_once_and_it_goes_on(receive: Receive, tmp_path: Path) -> None:
    receiving = receive()
    clients: list[socket.socket] = []
    try:
        for number in range(1_000):
            clients.append(socket.create_connection((HOST, receiving.port), timeout=30))
            if number % 2:
                with suppress(ConnectionError):
                    clients[-1].sendall(b"POST /v1/traces HTTP/1.1\r\nX: ")
            else:
                with suppress(ConnectionError):
                    clients[-1].sendall(post(request(number + 2)))
    finally:
        for client in clients:
            client.close()
    deadline = time.monotonic() + 30
    while (answer := ask(receiving.port, post(request(1)))).status != 200 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert answer.status == 200
    status = Path(f"/proc/{receiving.process.pid}/status").read_text()
    assert int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) < 300_000
    assert receiving.stop().code == 0
    assert 1 in kept(tmp_path / "spans")


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    """A disk of 1 MiB where the spans go."""
    folder = tmp_path / "spans"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=777", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, timeout=30, check=False).returncode != 0:
        pytest.skip("no disk can be mounted here: that needs root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], timeout=30, check=True)


def test_a_full_disk_acknowledges_nothing_and_goes_on_when_there_is_room(receive: Receive, small_disk: Path) -> None:
    receiving, sent = receive(), list[int]()
    answers: list[int] = []
    for first in range(1, 6_000, 50):
        batch = list(range(first, first + 50))
        answers.append(ask(receiving.port, post(request(*batch))).status)
        if answers[-1] == 200:
            sent.extend(batch)
        elif answers.count(503) == 3:
            break
    assert (answers[0], answers[-1], len(sent) > 500) == (200, 503, True)
    subprocess.run(["mount", "-o", "remount,size=9m", str(small_disk)], timeout=30, check=True)
    assert ask(receiving.port, post(request(999_999))).status == 200
    ended = receiving.stop()
    assert ended.code == 0, ended
    assert "No space left on device" in ended.out
    assert kept(small_disk) == sorted([*sent, 999_999])


def test_mistakes_are_told(grader: Grader, receive: Receive, tmp_path: Path) -> None:
    port = str(receive().port)
    (tmp_path / "file").write_text("")
    for arguments, code, words in (
        (("receive", "more", "--port", port), 4, f"127.0.0.1:{port} cannot be listened on: Address already in use"),
        (("receive", "file"), 4, "received spans cannot be written to file"),
        (("receive", "more", "--source", "a", "--source", "a"), 2, "the source 'a' is given twice"),
        (("receive", "more", "--source", "a/b"), 2, "cannot be the name of a source"),
        (("receive", "more", "--max-size", "much"), 2, "--max-size"),
        (("receive", "more", "--port", "0", "--", "no-such-program"), 2, "no-such-program cannot be started"),
        (("receive", "more", "--source", "a", "--source", "b", "--", "true"), 2, "one source"),
        (("receive",), 2, "FOLDER"),
    ):
        ended = grader(*arguments)
        assert (ended.code, words in ended.err, "Traceback" in ended.err) == (code, True, False), ended


NODE_AGENT = """\
const { NodeTracerProvider } = require('@opentelemetry/sdk-trace-node');
const { BatchSpanProcessor } = require('@opentelemetry/sdk-trace-base');
const { OTLPTraceExporter: Protobuf } = require('@opentelemetry/exporter-trace-otlp-proto');
const { OTLPTraceExporter: Json } = require('@opentelemetry/exporter-trace-otlp-http');
const { trace, context } = require('@opentelemetry/api');
(async () => {
  for (const [Exporter, compression] of [[Protobuf, 'none'], [Protobuf, 'gzip'], [Json, 'none'], [Json, 'gzip']]) {
    const processor = new BatchSpanProcessor(new Exporter({ compression }));
    const provider = new NodeTracerProvider({ spanProcessors: [processor] });
    const tracer = provider.getTracer('agent');
    const root = tracer.startSpan('invoke_agent', { attributes: { 'gen_ai.operation.name': 'invoke_agent' } });
    const inside = trace.setSpan(context.active(), root);
    for (let number = 0; number < 100; number++) {
      tracer.startSpan('execute_tool send', { attributes: {
        'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'send',
        'gen_ai.tool.call.arguments': JSON.stringify({ to: 'bob', number }),
      } }, inside).end();
    }
    root.end();
    await provider.forceFlush();
    await provider.shutdown();
  }
})();
"""
NODE_PACKAGES = (
    "@opentelemetry/api",
    "@opentelemetry/sdk-trace-node",
    "@opentelemetry/sdk-trace-base",
    "@opentelemetry/exporter-trace-otlp-proto",
    "@opentelemetry/exporter-trace-otlp-http",
)


@pytest.mark.slow
def test_the_exporters_of_node_send_protobuf_and_json(grader: Grader, tmp_path: Path) -> None:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("node and npm are not installed")
    install = [npm, "install", "--no-audit", "--no-fund", "--silent", *NODE_PACKAGES]
    done = subprocess.run(install, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)
    if done.returncode != 0:
        pytest.skip(f"npm cannot install the exporters here: {done.stderr[-300:]}")
    (tmp_path / "agent.js").write_text(NODE_AGENT)
    ended = grader("receive", "spans", "--port", "0", "--", node, "agent.js")
    assert ended.code == 0, ended
    assert "received 404 spans" in ended.out
    (tmp_path / "task.yaml").write_text(TASK.replace(", at_most: 1", ", at_least: 400"))
    scored = grader("score", "spans", "--task", "task.yaml", "--complete")
    assert scored.code == 0, scored
    assert "executions: 400" in scored.out

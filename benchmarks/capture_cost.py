"""What a span costs to capture in this process, and to receive over HTTP: spans a second, memory, ratios.

Capture: an agent's span (begun, three attributes, ended) with the capture, against the same span with an in-memory
exporter of the SDK, in turns. Receive: requests of 100 spans over 4 connections to a receiver in a process of its own,
each acknowledged when it is on the disk; against one process that only decodes the same bodies, without HTTP and disk.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from benchmarks.measures import Measure, first_quartile
from benchmarks.read_traces import requests, write
from grader.capture.local import LocalTraceCapture
from grader.capture.otlp_body import OtlpEncoding, count_spans
from tests.otlp_client import JSON, PROTOBUF, Client, post

_ATTRIBUTES = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "send",
    "gen_ai.tool.call.arguments": '{"to": "bob@example.org", "body": "' + "x" * 200 + '"}',
}
_CONNECTIONS = 4


async def measure(*, quick: bool) -> list[Measure]:
    """Run by `python -m benchmarks`."""
    rounds, spans = (4, 500) if quick else (20, 2_000)
    received = 5_000 if quick else 100_000
    return [*_capture(rounds, spans), *_receive(received)]


def _capture(rounds: int, spans: int) -> list[Measure]:
    exporter = InMemorySpanExporter()
    plain = TracerProvider(shutdown_on_exit=False)
    plain.add_span_processor(SimpleSpanProcessor(exporter))
    with LocalTraceCapture(max_spans=50_000) as capture:

        def captured() -> None:
            with capture.request():
                _make(capture.tracer_provider, spans)

        def exported() -> None:
            _make(plain, spans)
            exporter.clear()

        ours, theirs = _in_turns(captured, exported, rounds)
    per_span_us, plain_us = ours / spans * 1e6, theirs / spans * 1e6
    return [
        Measure("capture: a span, with all that the SDK does", per_span_us, "µs"),
        Measure("capture: against the SDK's in-memory exporter", per_span_us / plain_us, "times", bar=1.5),
    ]


def _make(provider: TracerProvider, spans: int) -> None:
    tracer = provider.get_tracer("benchmark")
    for _ in range(spans):
        tracer.start_span("execute_tool send", attributes=_ATTRIBUTES).end()


def _in_turns(first: Callable[[], None], second: Callable[[], None], rounds: int) -> tuple[float, float]:
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for index, one in enumerate((first, second)):
            began = time.perf_counter()
            one()
            times[index].append(time.perf_counter() - began)
    return first_quartile(times[0]), first_quartile(times[1])


def _receive(spans: int) -> list[Measure]:
    found: list[Measure] = []
    with tempfile.TemporaryDirectory() as name:
        file = write(Path(name), spans)["protobuf"].read_bytes()
        bodies = {
            "protobuf": (PROTOBUF, OtlpEncoding.PROTOBUF, _messages(file)),
            "json": (JSON, OtlpEncoding.JSON, [_json(request) for request in requests(spans)]),
        }
        for kind, (content_type, encoding, parts) in bodies.items():
            began = time.process_time()
            assert sum(count_spans(body, encoding) for body in parts) == spans
            decoding_s = time.process_time() - began
            wall_s, cpu_s, peak_mib = _one_receiver(Path(name) / kind, parts, content_type)
            details = {
                "MB": round(sum(map(len, parts)) / 1e6, 1),
                "CPU_s": round(cpu_s, 2),
                "peak_MiB": round(peak_mib),
            }
            found += [
                Measure(f"receive {kind}: thousand spans a second", spans / wall_s / 1000, "k/s", details=details),
                Measure(f"receive {kind}: CPU against decoding alone", cpu_s / decoding_s, "times", bar=2.0),
                Measure(f"receive {kind}: peak memory of the receiver", peak_mib, "MiB", bar=200.0),
            ]
    return found


def _one_receiver(folder: Path, bodies: list[bytes], content_type: str) -> tuple[float, float, float]:
    """Wall time until all is acknowledged, CPU time of the receiver meanwhile, peak of its memory in MiB."""
    command = [sys.executable, "-c", "from grader.cli.app import main; main()", "receive", str(folder), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        port = int(re.findall(r":(\d+) into", process.stderr.readline())[0])
        before_s = _cpu_s(process.pid)
        failures: list[int] = []

        def send(some: list[bytes]) -> None:
            with Client(port) as client:
                for body in some:
                    client.send(post(body, "/v1/traces", content_type))
                    status = client.answer().status
                    if status != 200:
                        failures.append(status)

        threads = [threading.Thread(target=send, args=(bodies[index::_CONNECTIONS],)) for index in range(_CONNECTIONS)]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wall_s, cpu_s = time.perf_counter() - began, _cpu_s(process.pid) - before_s
        assert failures == []
        peak_kib = int(re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())[0])
        process.terminate()
        process.wait(60)
    return wall_s, cpu_s, peak_kib / 1024


def _cpu_s(pid: int) -> float:
    """User and system time of a process, as the kernel counts it (in hundredths)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def _messages(file: bytes) -> list[bytes]:
    found: list[bytes] = []
    at = 0
    while at < len(file):
        size = int.from_bytes(file[at : at + 4], "big")
        found.append(file[at + 4 : at + 4 + size])
        at += 4 + size
    return found


def _json(request: dict[str, object]) -> bytes:
    return json.dumps(request, separators=(",", ":")).encode()

"""Reads one and the same trace as JSON lines and as length-prefixed protobuf: spans a second, peak memory, ratios.

Run with `python benchmarks/read_traces.py [SPANS]` (200,000 by default, so about 150 MB of JSON lines). A span in four
is a tool's. Each encoding is read by a process of its own, twice in turn, and the faster time counts; a small trace is
read first, so that memory is told apart from what the program itself needs. `parse only` decodes the same lines with
`json.loads` and does nothing with them: the floor under every reader of this format in Python.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from grader.traces import otlp
from grader.traces.reader import TraceInput, read_traces

SPANS_PER_REQUEST = 100
SPANS_PER_TRACE = 1000
START = 1_700_000_000_000_000_000


def attribute(key: str, value: str) -> dict[str, object]:
    return {"key": key, "value": {"stringValue": value}}


def span(number: int) -> dict[str, object]:
    """A span as agents make them: the root of its trace, a model call, or in one of four cases a tool."""
    trace, place = divmod(number, SPANS_PER_TRACE)
    found: dict[str, object] = {
        "traceId": f"{trace + 1:032x}",
        "spanId": f"{number + 1:016x}",
        "name": "chat model",
        "kind": 1,
        "startTimeUnixNano": str(START + number * 1000),
        "endTimeUnixNano": str(START + number * 1000 + (10**9 if place == 0 else 900)),
        "attributes": [attribute("gen_ai.operation.name", "chat"), attribute("gen_ai.request.model", "model-1")],
        "status": {},
    }
    if place == 0:
        found["name"] = "invoke_agent a"
        found["attributes"] = [attribute("gen_ai.operation.name", "invoke_agent")]
        return found
    found["parentSpanId"] = f"{trace * SPANS_PER_TRACE + 1:016x}"
    if number % 4 == 3:
        name = f"tool{number % 7}"
        found["name"] = f"execute_tool {name}"
        found["attributes"] = [
            attribute("gen_ai.operation.name", "execute_tool"),
            attribute("gen_ai.tool.name", name),
            attribute("gen_ai.tool.call.id", f"call_{number}"),
            attribute("gen_ai.tool.call.arguments", json.dumps({"to": f"user{number}@example.org", "body": "x" * 60})),
            attribute("gen_ai.tool.call.result", "y" * 120),
        ]
    return found


def requests(spans: int) -> Iterator[dict[str, object]]:
    resource_ = {"attributes": [attribute("service.name", "benchmark")]}
    for first in range(0, spans, SPANS_PER_REQUEST):
        some = [span(number) for number in range(first, min(spans, first + SPANS_PER_REQUEST))]
        scope = {"scope": {"name": "benchmark", "version": "1"}, "spans": some}
        yield {"resourceSpans": [{"resource": resource_, "scopeSpans": [scope]}]}


def write(folder: Path, spans: int) -> dict[str, Path]:
    """The trace in both encodings; protobuf by the standard's own classes."""
    from base64 import b64encode

    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    files = {"json": folder / f"{spans}.jsonl", "protobuf": folder / f"{spans}.pb"}
    with files["json"].open("w") as as_json, files["protobuf"].open("wb") as as_protobuf:
        for request in requests(spans):
            as_json.write(json.dumps(request, separators=(",", ":")) + "\n")
            for one in request["resourceSpans"][0]["scopeSpans"][0]["spans"]:  # pyright: ignore
                for key in {"traceId", "spanId", "parentSpanId"} & one.keys():
                    one[key] = b64encode(bytes.fromhex(one[key])).decode()
            message = ParseDict(request, ExportTraceServiceRequest()).SerializeToString()
            as_protobuf.write(len(message).to_bytes(4, "big") + message)
    return files


def read(kind: str, file: Path) -> dict[str, float]:
    """In a process of its own: CPU seconds, and how far the peak of memory is above that before reading."""
    from grader.core.tools.conditions import ToolPrecededBy  # noqa: F401 - what scoring would have loaded

    before = peak_bytes()
    start = time.process_time()
    calls = 0
    if kind == "parse only":
        with file.open("rb") as lines:
            for line in lines:
                otlp.loads(line.decode())
    else:
        calls = len(read_traces([TraceInput.of_path(file)]).payload().calls)
    return {"s": time.process_time() - start, "bytes": peak_bytes() - before, "calls": calls, "whole": peak_bytes()}


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measured(kind: str, file: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--read", kind, str(file)]
    root = str(Path(__file__).parents[1])
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=1200, env={**os.environ, "PYTHONPATH": root}
    )
    return json.loads(done.stdout)


def main(spans: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        files = write(Path(name), spans)
        small = write(Path(name), spans // 10)
        kinds = {"json": files["json"], "protobuf": files["protobuf"], "parse only": files["json"]}
        rounds = [{kind: measured(kind, file) for kind, file in kinds.items()} for _ in range(2)]
        best = {kind: min((one[kind] for one in rounds), key=lambda one: one["s"]) for kind in kinds}
        tenth = {kind: measured(kind, small[kind]) for kind in ("json", "protobuf")}
        assert best["json"]["calls"] == best["protobuf"]["calls"] == spans // 4
        for kind, one in best.items():
            size = kinds[kind].stat().st_size
            print(
                f"{kind:10} {size / 1e6:7.1f} MB  {one['s']:6.2f} s CPU  {spans / one['s']:9,.0f} spans/s  "
                f"{size / one['s'] / 1e6:6.1f} MB/s  peak {one['whole'] / 2**20:6.1f} MiB, of which reading "
                f"{one['bytes'] / 2**20:6.1f} MiB ({one['bytes'] / spans:.0f} bytes a span)"
            )
        parse, protobuf, lines = best["parse only"]["s"], best["protobuf"]["s"], best["json"]["s"]
        print(f"ratios     json / parse only {lines / parse:.2f}   json / protobuf {lines / protobuf:.2f}")
        for kind, less in tenth.items():
            slower, larger = best[kind]["s"] / less["s"], best[kind]["bytes"] / less["bytes"]
            print(f"ten times the spans of {kind}: time x{slower:.1f}, memory of reading x{larger:.1f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        print(json.dumps(read(sys.argv[2], Path(sys.argv[3]))))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000)

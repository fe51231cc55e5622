"""A run with a trace endpoint against one without: what listening costs, and what sending a batch of spans costs."""

from __future__ import annotations

from functools import partial

from benchmarks.boxes import BenchmarkError, docker_sandbox, invocation, outcome_of, program_for, seated
from benchmarks.measures import Measure, take_turns
from grader.capture.exported_spans import ExportedSpans
from grader.core.cases import ProgramCase
from grader.core.plan import Invocation
from grader.runtimes.profile import TRACE_PORT
from grader.sandbox.base import Failed, Port, Seat

SPANS = 20
SENDS = b"""
import json, os, socket
said = [("gen_ai.operation.name", "execute_tool"), ("gen_ai.tool.name", "search")]
attributes = [{"key": key, "value": {"stringValue": value}} for key, value in said]
times = {"startTimeUnixNano": "1", "endTimeUnixNano": "2"}
one = {"traceId": "%032x" % 1, "name": "x", "attributes": attributes, **times}
spans = [{**one, "spanId": "%016x" % n} for n in range(1, 21)]
body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
head = "POST /v1/traces HTTP/1.1", "Host: x", "Content-Type: application/json", f"Content-Length: {len(body)}", "", ""
if os.environ["SENDS"] == "yes":
    connection = socket.create_connection(("127.0.0.1", 4318))
    connection.sendall("\\r\\n".join(head).encode() + body)
    assert b" 200 " in connection.recv(1000)
"""


async def measure(*, quick: bool) -> list[Measure]:
    rounds = 10 if quick else 40
    async with docker_sandbox() as sandbox:
        program = await program_for(sandbox, "python", {"main.py": SENDS})
        silent, sending = (
            invocation(program.profile, ProgramCase(environment={"SENDS": word})) for word in (b"no", b"yes")
        )
        async with seated(sandbox, program) as seat:

            async def untraced() -> None:
                await outcome_of(seat, silent)

            found = await take_turns(
                {
                    "untraced": untraced,
                    "listening": partial(_traced, seat, silent, 0),
                    "sending": partial(_traced, seat, sending, 1),
                },
                rounds=rounds,
                runs_a_round=3,
            )
    return [
        Measure("run with a trace endpoint / without", found.ratio("listening", "untraced"), "x", 1.05, found.in_ms()),
        Measure(f"run that sends {SPANS} spans / without", found.ratio("sending", "untraced"), "x", 1.25),
    ]


async def _traced(seat: Seat, asked: Invocation, batches: int) -> None:
    ear = ExportedSpans(Port(TRACE_PORT))
    outcome = await seat.run(asked, ear)
    if isinstance(outcome, Failed) or outcome.measures.exit_code != 0 or ear.outcome().batches != batches:
        raise BenchmarkError(f"a run did not end well: {outcome} {ear.outcome()}")

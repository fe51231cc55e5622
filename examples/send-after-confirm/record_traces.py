"""Makes the traces of this example: a mail assistant whose model is a script, observed by the real OpenTelemetry SDK.

    pip install opentelemetry-sdk opentelemetry-exporter-otlp-json-file
    python record_traces.py FOLDER

The spans have the attributes of the GenAI semantic conventions, as an instrumented agent writes them. Every scenario
is one trace in one file, FOLDER/NAME.jsonl, exactly as the SDK's own file exporter writes it.
"""

import json
import sys
import time
from pathlib import Path

from opentelemetry.exporter.otlp.json.file import FileSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import set_span_in_context

# What the model asks for, call by call: the tool and its arguments. Calls in one inner list are asked for together.
ASK = ("confirm", {"question": "Send it?"})
ANN = ("send_email", {"to": "ann@example.org", "body": "The invoice is attached."})
BOB = ("send_email", {"to": "bob@example.org", "body": "See you on Monday."})
OUT = ("send_email", {"to": "eve@elsewhere.example", "body": "The invoice is attached."})
FIND = ("find_contact", {"name": "Ann"})
WIPE = ("delete_mailbox", {"name": "Ann"})

SCENARIOS = {
    "good": [[FIND], [ASK], [ANN], [ASK], [BOB]],
    "sends-before-it-asks": [[ANN], [ASK], [ANN]],
    "one-confirm-for-two-mails": [[ASK], [ANN], [BOB]],
    "wrong-address": [[ASK], [OUT]],
    "does-more-than-it-should": [[ASK], [ANN], [WIPE]],
    "asks-and-sends-at-once": [[ASK, ANN]],
    "was-killed": [[FIND], [ASK], [ANN], None],
}


def run_agent(tracer, turns):
    """One request to the agent. None among the turns: the process is killed there, and open spans never end."""
    root = tracer.start_span("invoke_agent mail-assistant", attributes={
        "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "mail-assistant", "gen_ai.provider.name": "scripted",
    })  # fmt: skip
    inside = set_span_in_context(root)
    number = 0
    for turn in turns:
        if turn is None:
            return
        chat = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "scripted", "gen_ai.request.model": "script-1"}
        tracer.start_span("chat script-1", inside, attributes=chat).end()
        started = []
        for tool, arguments in turn:
            number += 1
            started.append(tracer.start_span(f"execute_tool {tool}", inside, attributes={
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": tool,
                "gen_ai.tool.type": "function",
                "gen_ai.tool.call.id": f"call_{number}",
                "gen_ai.tool.call.arguments": json.dumps(arguments),
            }))  # fmt: skip
        time.sleep(0.001)  # the tools work
        for span in started:
            span.set_attribute("gen_ai.tool.call.result", "done")
            span.end()
    root.end()


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, turns in SCENARIOS.items():
        file = folder / f"{name}.jsonl"
        file.unlink(missing_ok=True)
        # Whatever OTEL_... variables say here: nothing may be sampled out, dropped or cut.
        provider = TracerProvider(
            sampler=ALWAYS_ON,
            resource=Resource({"service.name": "mail-assistant"}),
            span_limits=SpanLimits(max_span_attributes=SpanLimits.UNSET, max_span_attribute_length=SpanLimits.UNSET),
        )
        provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter(file)))
        run_agent(provider.get_tracer("mail-assistant"), turns)
        provider.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

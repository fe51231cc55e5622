"""An agent that books another city than it was asked for.

A loop around a model, which is scripted here: it needs no network and no key. Every tool runs in a span of its own.
"""

import json
import sys

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()  # sends what is left when the program ends
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))  # finds its endpoint in the environment
tracer = provider.get_tracer("book-flight")

TOOLS = {
    "search_flights": lambda city, day: f"SK 4711 to {city} on {day}, 120 EUR",
    "confirm": lambda question: "yes",
    "book_flight": lambda city, day: f"booked: {city}, {day}",
}


def model(city, day):
    """The script: each call that the model asks for, and at the end its answer."""
    offer = yield "search_flights", {"city": city, "day": day}
    yield "confirm", {"question": f"{offer}?"}
    done = yield "book_flight", {"city": "Bergen", "day": day}
    return f"You fly to {city} on {day} ({done})."


def execute(name, arguments):
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.arguments": json.dumps(arguments),
    }
    with tracer.start_as_current_span(f"execute_tool {name}", attributes=attributes):
        return TOOLS[name](**arguments)


def run(city, day):
    script, result = model(city, day), None
    with tracer.start_as_current_span("invoke_agent booker", attributes={"gen_ai.operation.name": "invoke_agent"}):
        try:
            while True:
                result = execute(*script.send(result))
        except StopIteration as end:
            return end.value


print(run(*sys.stdin.read().split()))

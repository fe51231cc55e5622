"""An agent of pydantic-ai with a scripted model, instrumented as its documentation says."""

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import set_tracer_provider
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
set_tracer_provider(provider)
Agent.instrument_all()

SCRIPT = [
    ToolCallPart("confirm", {}, "call-1"),
    ToolCallPart("book_flight", {"city": "Oslo"}, "call-2"),
    TextPart("You fly to Oslo."),
]


def model(messages, info):
    return ModelResponse(parts=[SCRIPT[len(messages) // 2]])


agent = Agent(FunctionModel(model), name="booker")


@agent.tool_plain
def confirm() -> str:
    """Ask the user."""
    return "yes"


@agent.tool_plain
def book_flight(city: str) -> str:
    """Book a flight."""
    return f"booked: {city}"


print(agent.run_sync("To Oslo.").output)

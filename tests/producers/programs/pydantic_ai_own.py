# /// script
# dependencies = ["pydantic-ai-slim[openai]", "opentelemetry-sdk", "opentelemetry-exporter-otlp-json-file"]
# ///
"""Pydantic AI with its own instrumentation, without Logfire."""

# [set up]
from opentelemetry.exporter.otlp.json.file import FileSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from pydantic_ai import Agent, InstrumentationSettings

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter("trace.jsonl")))
Agent.instrument_all(InstrumentationSettings(tracer_provider=provider))
# [end]

from pydantic_agent import SPECIAL, run
from scenario import play

if __name__ == "__main__":
    play(run, SPECIAL)

# /// script
# dependencies = ["pydantic-ai-slim[openai]", "openinference-instrumentation-pydantic-ai", "opentelemetry-sdk", "opentelemetry-exporter-otlp-json-file"]
# ///
"""Pydantic AI with OpenInference's rewriting of its spans."""

# [set up]
from openinference.instrumentation.pydantic_ai import OpenInferenceSpanProcessor
from opentelemetry.exporter.otlp.json.file import FileSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from pydantic_ai import Agent, InstrumentationSettings

provider = TracerProvider()
provider.add_span_processor(OpenInferenceSpanProcessor())
provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter("trace.jsonl")))
Agent.instrument_all(InstrumentationSettings(tracer_provider=provider))
# [end]

from pydantic_agent import SPECIAL, run
from scenario import play

if __name__ == "__main__":
    play(run, SPECIAL)

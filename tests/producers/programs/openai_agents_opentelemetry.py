# /// script
# dependencies = ["openai-agents", "opentelemetry-instrumentation-openai-agents-v2", "opentelemetry-sdk", "opentelemetry-exporter-otlp-json-file"]
# ///
"""OpenAI Agents SDK with OpenTelemetry's own instrumentation."""

# [set up]
from opentelemetry.exporter.otlp.json.file import FileSpanExporter
from opentelemetry.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter("trace.jsonl")))
OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)
# [end]

from openai_agents import SPECIAL, run
from scenario import play

if __name__ == "__main__":
    play(run, SPECIAL)

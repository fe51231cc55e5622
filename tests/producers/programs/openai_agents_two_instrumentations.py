# /// script
# dependencies = ["openai-agents", "openinference-instrumentation-openai-agents", "opentelemetry-instrumentation-openai-agents-v2", "opentelemetry-sdk", "opentelemetry-exporter-otlp-json-file"]
# ///
"""OpenAI Agents SDK with two instrumentations at once, as happens by mistake: each call has two spans."""

# [set up]
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor as OpenInference
from opentelemetry.exporter.otlp.json.file import FileSpanExporter
from opentelemetry.instrumentation.openai_agents import OpenAIAgentsInstrumentor as OpenTelemetry
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter("trace.jsonl")))
OpenInference().instrument(tracer_provider=provider)
OpenTelemetry().instrument(tracer_provider=provider)
# [end]

from openai_agents import SPECIAL, run
from scenario import play

if __name__ == "__main__":
    play(run, SPECIAL)

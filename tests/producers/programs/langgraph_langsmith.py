# /// script
# dependencies = ["langchain", "langgraph", "langchain-openai", "langsmith[otel]", "opentelemetry-sdk", "opentelemetry-exporter-otlp-json-file"]
# ///
"""LangChain and LangGraph with LangSmith's tracing, sent to OpenTelemetry and nowhere else."""

# [set up]
import os

os.environ["LANGSMITH_TRACING"] = "true"
os.environ["LANGSMITH_OTEL_ENABLED"] = "true"
os.environ["LANGSMITH_OTEL_ONLY"] = "true"

from opentelemetry import trace
from opentelemetry.exporter.otlp.json.file import FileSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter("trace.jsonl")))
trace.set_tracer_provider(provider)
# [end]

from langgraph_agent import SPECIAL, run
from scenario import play

if __name__ == "__main__":
    play(run, SPECIAL)

# /// script
# dependencies = ["google-adk", "opentelemetry-exporter-otlp-proto-http"]
# ///
"""Google ADK with its own instrumentation, sent to where OTEL_EXPORTER_OTLP_ENDPOINT says."""

# [set up]
import os

os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
# [end]

from adk_agent import SPECIAL, run
from scenario import play

if __name__ == "__main__":
    play(run, SPECIAL)

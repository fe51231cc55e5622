# /// script
# dependencies = ["google-adk", "openinference-instrumentation-google-adk", "opentelemetry-exporter-otlp-proto-http"]
# ///
"""Google ADK with OpenInference's instrumentation, sent to where OTEL_EXPORTER_OTLP_ENDPOINT says."""

# [set up]
from openinference.instrumentation.google_adk import GoogleADKInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
GoogleADKInstrumentor().instrument(tracer_provider=provider)
# [end]

from adk_agent import SPECIAL, run
from scenario import play

if __name__ == "__main__":
    play(run, SPECIAL)

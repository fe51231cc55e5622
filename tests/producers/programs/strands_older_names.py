# /// script
# dependencies = ["strands-agents[openai]", "opentelemetry-exporter-otlp-proto-http"]
# ///
"""Strands Agents as it is without any setting: the names of the conventions before v1.37."""

# [set up]
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from strands.telemetry import StrandsTelemetry

telemetry = StrandsTelemetry()
telemetry.tracer_provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
# [end]

from scenario import play
from strands_agent import SPECIAL, run

if __name__ == "__main__":
    play(run, SPECIAL)

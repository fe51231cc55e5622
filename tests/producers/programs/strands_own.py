# /// script
# dependencies = ["strands-agents[openai]", "opentelemetry-exporter-otlp-proto-http"]
# ///
"""Strands Agents with its own instrumentation, sent to where OTEL_EXPORTER_OTLP_ENDPOINT says."""

# [set up]
import os

os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"

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

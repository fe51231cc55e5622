# /// script
# dependencies = ["strands-agents[openai]", "openinference-instrumentation-strands-agents", "opentelemetry-exporter-otlp-proto-http"]
# ///
"""Strands Agents with OpenInference's rewriting of its spans, sent to where OTEL_EXPORTER_OTLP_ENDPOINT says."""

# [set up]
from openinference.instrumentation.strands_agents import StrandsAgentsToOpenInferenceProcessor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from strands.telemetry import StrandsTelemetry

telemetry = StrandsTelemetry()
telemetry.tracer_provider.add_span_processor(StrandsAgentsToOpenInferenceProcessor())
telemetry.tracer_provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
# [end]

from scenario import play
from strands_agent import SPECIAL, run

if __name__ == "__main__":
    play(run, SPECIAL)

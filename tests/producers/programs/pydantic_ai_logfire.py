# /// script
# dependencies = ["pydantic-ai-slim[openai]", "logfire", "opentelemetry-sdk", "opentelemetry-exporter-otlp-json-file"]
# ///
"""Pydantic AI observed by Logfire, whose spans go to a file and nowhere else."""

# [set up]
import logfire
from opentelemetry.exporter.otlp.json.file import FileSpanExporter
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

logfire.configure(
    send_to_logfire=False,
    console=False,
    scrubbing=False,
    additional_span_processors=[SimpleSpanProcessor(FileSpanExporter("trace.jsonl"))],
)
logfire.instrument_pydantic_ai()
# [end]

from pydantic_agent import SPECIAL, run
from scenario import play

if __name__ == "__main__":
    play(run, SPECIAL)

# /// script
# dependencies = ["langchain", "langgraph", "langchain-openai", "openinference-instrumentation-langchain", "opentelemetry-instrumentation-langchain", "opentelemetry-sdk", "opentelemetry-exporter-otlp-json-file"]
# ///
"""LangChain and LangGraph with two instrumentations at once, as happens by mistake: each call has two spans."""

# [set up]
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.exporter.otlp.json.file import FileSpanExporter
from opentelemetry.instrumentation.langchain import LangchainInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter("trace.jsonl")))
LangChainInstrumentor().instrument(tracer_provider=provider)
LangchainInstrumentor().instrument(tracer_provider=provider)
# [end]

from langgraph_agent import SPECIAL, run
from scenario import play

if __name__ == "__main__":
    play(run, SPECIAL)

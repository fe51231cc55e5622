# /// script
# dependencies = ["smolagents[openai]", "openinference-instrumentation-smolagents", "opentelemetry-sdk", "opentelemetry-exporter-otlp-json-file"]
# ///
"""smolagents (its agent that calls tools) with OpenInference's instrumentation."""

# [set up]
from openinference.instrumentation.smolagents import SmolagentsInstrumentor
from opentelemetry.exporter.otlp.json.file import FileSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter("trace.jsonl")))
SmolagentsInstrumentor().instrument(tracer_provider=provider)
# [end]

from scenario import Call, Scenario, Special, play
from smolagents import OpenAIServerModel, ToolCallingAgent, tool
from tools import book_table, executed, send_email, weather

SPECIAL = Special(output=Call("final_answer", {"answer": "Cold – «brr»"}), answers_by="final_answer")


@tool
def search(query: str, filters: dict) -> list:
    """Find documents.

    Args:
        query: what to look for
        filters: which documents to look through
    """
    with executed("search", query=query, filters=filters) as call:
        call.result = ["Rechnung № 7", "発票 ‘7’"]
        return call.result


def run(scenario: Scenario, url: str) -> object:
    model = OpenAIServerModel("scripted", api_base=url, api_key="scripted")
    tools = [search, *(tool(one) for one in (weather, send_email, book_table))]
    return ToolCallingAgent(tools, model, max_steps=6, verbosity_level=0).run("Help me.")


if __name__ == "__main__":
    play(run, SPECIAL)

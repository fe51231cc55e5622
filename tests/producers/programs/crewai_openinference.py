# /// script
# dependencies = ["crewai", "openinference-instrumentation-crewai", "opentelemetry-exporter-otlp-proto-http"]
# ///
"""CrewAI with OpenInference's instrumentation, sent to where OTEL_EXPORTER_OTLP_ENDPOINT says."""

# [set up]
import os

os.environ["CREWAI_DISABLE_TELEMETRY"] = "true"
os.environ["CREWAI_TRACING_ENABLED"] = "false"

from openinference.instrumentation.crewai import CrewAIInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
CrewAIInstrumentor().instrument(tracer_provider=provider)
# [end]

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
from scenario import Scenario, play
from tools import TOOLS


def run(scenario: Scenario, url: str) -> object:
    model = LLM(model="openai/gpt-4.1", base_url=url, api_key="scripted")
    tools = [tool(one.__name__)(one) for one in TOOLS]
    assistant = Agent(role="assistant", goal="help", backstory="", llm=model, tools=tools, max_iter=6)
    task = Task(description="Help me.", expected_output="help", agent=assistant)
    return Crew(agents=[assistant], tasks=[task]).kickoff()


if __name__ == "__main__":
    play(run)

# /// script
# dependencies = ["openai-agents", "mcp", "openinference-instrumentation-openai-agents", "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"]
# ///
"""Tools behind an MCP server: three layers describe each call, the agent's, the MCP client's and the MCP server's.

The server is a process of its own (mcp_server.py). Both send to where OTEL_EXPORTER_OTLP_ENDPOINT says.
"""

# [set up]
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
OpenAIAgentsInstrumentor().instrument()
# [end]

import asyncio
import os
import sys
from pathlib import Path

import agents
from agents.mcp import MCPServerStdio
from openai import AsyncOpenAI
from scenario import Scenario, Special, play


async def talk(scenario: Scenario, url: str) -> object:
    model = agents.OpenAIResponsesModel("gpt-4.1", AsyncOpenAI(base_url=url, api_key="scripted"))
    server = MCPServerStdio(
        params={
            "command": sys.executable,
            "args": [str(Path(__file__).with_name("mcp_server.py"))],
            "env": dict(os.environ),
        },
        client_session_timeout_seconds=60,
    )
    async with server:
        assistant = agents.Agent("assistant", model=model, mcp_servers=[server])
        return (await agents.Runner.run(assistant, "Help me.")).final_output


def run(scenario: Scenario, url: str) -> object:
    return asyncio.run(talk(scenario, url))


if __name__ == "__main__":
    play(run, Special(without=("cut_short",)))

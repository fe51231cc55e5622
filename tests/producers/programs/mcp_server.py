"""The MCP server of mcp_openai_agents.py, on standard input and output, with the SDK's own instrumentation."""

# [set up]
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider(resource=Resource({"service.name": "mcp-server"}))
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
# [end]

from mcp.server import MCPServer
from tools import TOOLS

server = MCPServer("tools")
for tool in TOOLS:
    server.tool()(tool)

if __name__ == "__main__":
    server.run("stdio")

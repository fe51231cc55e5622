# /// script
# dependencies = ["llama-index-core", "llama-index-llms-openai-like", "openinference-instrumentation-llama-index", "opentelemetry-sdk", "opentelemetry-exporter-otlp-json-file"]
# ///
"""LlamaIndex with OpenInference's instrumentation."""

# [set up]
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from opentelemetry.exporter.otlp.json.file import FileSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter("trace.jsonl")))
LlamaIndexInstrumentor().instrument(tracer_provider=provider)
# [end]

import asyncio

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from scenario import Call, Scenario, Special, play
from tools import TOOLS, executed, weather

SPECIAL = Special(
    handoff=Call("handoff", {"to_agent": "forecaster", "reason": "weather"}),
    sub_agent=Call("ask_forecaster", {"question": "Oslo?"}),
)


async def talk(scenario: Scenario, url: str) -> str:
    model = OpenAILike(
        model="scripted", api_base=url, api_key="scripted", is_chat_model=True, is_function_calling_model=True
    )

    def agent(name: str, tools: list[FunctionTool], **more: object) -> FunctionAgent:
        return FunctionAgent(name=name, description=name, tools=tools, llm=model, streaming=False, **more)

    forecaster = agent("forecaster", [FunctionTool.from_defaults(weather)])

    async def ask_forecaster(question: str) -> str:
        """Ask the forecaster."""
        with executed("ask_forecaster", question=question) as call:
            call.result = str(await forecaster.run(user_msg=question))
            return call.result

    assistant = agent(
        "assistant",
        [*(FunctionTool.from_defaults(one) for one in TOOLS), FunctionTool.from_defaults(async_fn=ask_forecaster)],
        can_handoff_to=["forecaster"],
    )
    return str(await AgentWorkflow(agents=[assistant, forecaster], root_agent="assistant").run(user_msg="Help me."))


def run(scenario: Scenario, url: str) -> object:
    return asyncio.run(talk(scenario, url))


if __name__ == "__main__":
    play(run, SPECIAL)

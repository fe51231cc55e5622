"""The agent of the OpenAI Agents SDK, for all its instrumentations."""

from __future__ import annotations

import agents
from openai import AsyncOpenAI
from scenario import Call, Scenario, Special
from tools import TOOLS, executed, weather

SPECIAL = Special(handoff=Call("transfer_to_forecaster"), sub_agent=Call("ask_forecaster", {"input": "Oslo?"}))


def run(scenario: Scenario, url: str) -> object:
    model = agents.OpenAIResponsesModel("gpt-4.1", AsyncOpenAI(base_url=url, api_key="scripted"))
    forecaster = agents.Agent("forecaster", model=model, tools=[agents.function_tool(weather)])
    ask = forecaster.as_tool("ask_forecaster", "Ask the forecaster.")
    invoke = ask.on_invoke_tool

    async def asked(context: object, arguments: str) -> object:
        with executed("ask_forecaster", input="Oslo?") as call:
            call.result = await invoke(context, arguments)
            return call.result

    ask.on_invoke_tool = asked
    assistant = agents.Agent(
        "assistant",
        model=model,
        tools=[*(agents.function_tool(tool) for tool in TOOLS), ask],
        handoffs=[forecaster],
    )
    return agents.Runner.run_sync(assistant, "Help me.").final_output

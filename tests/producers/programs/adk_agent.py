"""The agent of Google ADK, for all its instrumentations. Its model is a class that gets the turns over HTTP."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import AsyncGenerator

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
from scenario import Call, Scenario, Special
from tools import TOOLS, executed, weather

SPECIAL = Special(
    handoff=Call("transfer_to_agent", {"agent_name": "forecaster"}),
    sub_agent=Call("forecaster_tool", {"request": "Oslo?"}),
)


class Scripted(BaseLlm):
    """Asks the scripted model for its next turn."""

    url: str

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        request = urllib.request.Request(f"{self.url}/chat/completions", b"{}", method="POST")
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: ASYNC210
            message = json.load(answer)["choices"][0]["message"]
        parts = [types.Part(text=message["content"])] if message["content"] else []
        for call in message.get("tool_calls", ()):
            function = call["function"]
            arguments = json.loads(function["arguments"])
            parts.append(
                types.Part(function_call=types.FunctionCall(id=call["id"], name=function["name"], args=arguments))
            )
        yield LlmResponse(content=types.Content(role="model", parts=parts))


class Asked(AgentTool):
    """An agent as a tool that writes down that it ran."""

    async def run_async(self, *, args: dict, tool_context: object) -> object:
        with executed(self.name, **args) as call:
            call.result = await super().run_async(args=args, tool_context=tool_context)
            return call.result


def run(scenario: Scenario, url: str) -> object:
    model = Scripted(model="scripted", url=url)
    forecaster = LlmAgent(name="forecaster", model=model, tools=[weather])
    as_tool = LlmAgent(name="forecaster_tool", model=model, tools=[weather])
    assistant = LlmAgent(name="assistant", model=model, tools=[*TOOLS, Asked(agent=as_tool)], sub_agents=[forecaster])
    return asyncio.run(talk(assistant))


async def talk(agent: LlmAgent) -> str:
    runner = InMemoryRunner(agent=agent, app_name="assistant")
    session = await runner.session_service.create_session(app_name="assistant", user_id="user")
    answer = ""
    message = types.Content(role="user", parts=[types.Part(text="Help me.")])
    async for event in runner.run_async(user_id="user", session_id=session.id, new_message=message):
        for part in (event.content.parts or []) if event.content else []:
            answer = part.text or answer
    await runner.close()
    return answer

"""The agent of Pydantic AI, for all its instrumentations."""

from __future__ import annotations

from pydantic import BaseModel
from pydantic_ai import Agent, ToolOutput
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from scenario import Call, Scenario, Special
from tools import TOOLS, executed, weather

SPECIAL = Special(
    sub_agent=Call("ask_forecaster", {"question": "Oslo?"}), output=Call("final_report", {"summary": "Cold – «brr»"})
)


class Report(BaseModel):
    """What the agent answers with."""

    summary: str


def run(scenario: Scenario, url: str) -> object:
    model = OpenAIChatModel("gpt-4.1", provider=OpenAIProvider(base_url=url, api_key="scripted"))
    output = ToolOutput(Report, name="final_report") if scenario.name == "output_tool" else str
    forecaster = Agent(model, name="forecaster", tools=[weather])

    async def ask_forecaster(question: str) -> str:
        """Ask the forecaster."""
        with executed("ask_forecaster", question=question) as call:
            call.result = (await forecaster.run(question)).output
            return call.result

    assistant = Agent(model, name="assistant", output_type=output, tools=[*TOOLS, ask_forecaster])
    return assistant.run_sync("Help me.").output

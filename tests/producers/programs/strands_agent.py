"""The agent of Strands, for all its instrumentations."""

from __future__ import annotations

from pydantic import BaseModel
from scenario import Call, Scenario, Special
from strands import Agent, tool
from strands.models.openai import OpenAIModel
from tools import TOOLS, executed, weather

SPECIAL = Special(
    sub_agent=Call("ask_forecaster", {"question": "Oslo?"}),
    output=Call("Report", {"summary": "Cold – «brr»"}),
)


class Report(BaseModel):
    """What the agent answers with."""

    summary: str


def run(scenario: Scenario, url: str) -> object:
    model = OpenAIModel(client_args={"base_url": url, "api_key": "scripted"}, model_id="gpt-4.1")
    forecaster = Agent(model=model, name="forecaster", tools=[tool(weather)], callback_handler=None)

    @tool
    def ask_forecaster(question: str) -> str:
        """Ask the forecaster."""
        with executed("ask_forecaster", question=question) as call:
            call.result = str(forecaster(question))
            return call.result

    assistant = Agent(
        model=model,
        name="assistant",
        tools=[*(tool(one) for one in TOOLS), ask_forecaster],
        callback_handler=None,
        structured_output_model=Report if scenario.name == "output_tool" else None,
    )
    answer = assistant("Help me.")
    return answer.structured_output or answer

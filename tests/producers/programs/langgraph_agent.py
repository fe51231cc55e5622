"""The agent of LangChain (a LangGraph), for all its instrumentations."""

from __future__ import annotations

from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel
from scenario import Call, Scenario, Special
from tools import TOOLS, executed, weather

SPECIAL = Special(
    sub_agent=Call("ask_forecaster", {"question": "Oslo?"}), output=Call("Report", {"summary": "Cold – «brr»"})
)


class Report(BaseModel):
    """What the agent answers with."""

    summary: str


def run(scenario: Scenario, url: str) -> object:
    model = ChatOpenAI(model="gpt-4.1", base_url=url, api_key="scripted", use_responses_api=False)
    forecaster = create_agent(model, [tool(weather)], name="forecaster")

    @tool
    def ask_forecaster(question: str) -> str:
        """Ask the forecaster."""
        with executed("ask_forecaster", question=question) as call:
            found = forecaster.invoke({"messages": [{"role": "user", "content": question}]})
            call.result = found["messages"][-1].content
            return call.result

    output = ToolStrategy(Report) if scenario.name == "output_tool" else None
    assistant = create_agent(
        model, [*(tool(one) for one in TOOLS), ask_forecaster], name="assistant", response_format=output
    )
    found = assistant.invoke({"messages": [{"role": "user", "content": "Help me."}]})
    return found.get("structured_response", found["messages"][-1].content)

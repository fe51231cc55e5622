"""`capture.instrument()` with real agent frameworks and their OpenInference instrumentors, in an own environment."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, environment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PACKAGES = (
    "langgraph",
    "openinference-instrumentation-langchain",
    "openai-agents",
    "openinference-instrumentation-openai-agents",
)
TASK = """\
conditions:
  - condition_type: tools_called
    tools:
      - {name: confirm}
      - {name: send_email, arguments: [{name: to, matcher: {equals: bob}}]}
      - {name: send_email, arguments: [{name: to, matcher: {equals: ann}}]}
    exhaustive: true
  - condition_type: tools_called_in_order
    tools: [{name: confirm}, {name: send_email}]
"""
LANGGRAPH = """\
import grader
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.prebuilt import create_react_agent


class Scripted(FakeMessagesListChatModel):
    def bind_tools(self, tools, **more):
        return self


@tool
def confirm(question: str) -> str:
    "Ask the user."
    return "yes"


@tool
def send_email(to: str, body: str) -> str:
    "Send a mail."
    return "sent"


def asks(*calls):
    return AIMessage("", tool_calls=[
        {"name": name, "args": arguments, "id": f"{name}-{number}"} for number, (name, arguments) in enumerate(calls)
    ])


turns = [
    asks(("confirm", {"question": "Send?"})),
    asks(("send_email", {"to": "bob", "body": "b"}), ("send_email", {"to": "ann", "body": "a"})),
    AIMessage("done"),
]
with grader.LocalTraceCapture() as capture:
    print(*capture.instrument("langchain"))
    agent = create_react_agent(Scripted(responses=turns), [confirm, send_email])
    with capture.request("mail") as request:
        agent.invoke({"messages": [("user", "mail both")]})
    judged = grader.score(request, "task.yaml")
    print(judged.verdict.value, request.is_complete, judged.warnings)
"""
OPENAI_AGENTS = """\
import asyncio
import json

import grader
from agents import Agent, ModelResponse, Runner, Usage, function_tool
from agents.models.interface import Model
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText


class Scripted(Model):
    def __init__(self, turns):
        self.turns = iter(turns)

    async def get_response(self, *arguments, **more):
        return ModelResponse(output=next(self.turns), usage=Usage(), response_id=None)

    async def stream_response(self, *arguments, **more):
        raise NotImplementedError
        yield


@function_tool
def confirm(question: str) -> str:
    "Ask the user."
    return "yes"


@function_tool
def send_email(to: str, body: str) -> str:
    "Send a mail."
    return "sent"


def asks(name, number, **arguments):
    return ResponseFunctionToolCall(
        type="function_call", call_id=f"{name}-{number}", name=name, arguments=json.dumps(arguments)
    )


text = ResponseOutputText(type="output_text", text="done", annotations=[])
turns = [
    [asks("confirm", 1, question="Send?")],
    [asks("send_email", 1, to="bob", body="b"), asks("send_email", 2, to="ann", body="a")],
    [ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])],
]


async def main():
    with grader.LocalTraceCapture() as capture:
        print(*capture.instrument("openai_agents"))
        async with capture.request("mail") as request:
            await Runner.run(Agent(name="a", model=Scripted(turns), tools=[confirm, send_email]), "mail both")
        judged = grader.score(request, "task.yaml")
        print(judged.verdict.value, request.is_complete, judged.warnings)


asyncio.run(main())
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that has what grader needs, the frameworks, and their instrumentors."""
    folder = tmp_path_factory.mktemp("frameworks")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120, capture_output=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = (*project["dependencies"], *project["optional-dependencies"]["capture"], *PACKAGES)
    install = [str(folder / "bin" / "pip"), "install", "-q", *needed]
    done = subprocess.run(install, check=False, timeout=280, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"the frameworks cannot be installed here: {done.stderr[-300:]}")
    return folder / "bin" / "python"


@pytest.mark.parametrize(
    ("program", "name"),
    [(LANGGRAPH, "langchain"), (OPENAI_AGENTS, "openai_agents")],
    ids=["langgraph", "openai_agents"],
)
def test_a_framework_is_captured_and_its_request_is_complete(
    python: Path, tmp_path: Path, program: str, name: str
) -> None:
    (tmp_path / "task.yaml").write_text(TASK)
    (tmp_path / "agent.py").write_text(program)
    more = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": "http://127.0.0.1:9/", "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [str(python), "agent.py"],
        cwd=tmp_path, env=environment(tmp_path, **more), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [name, "true True ()"]

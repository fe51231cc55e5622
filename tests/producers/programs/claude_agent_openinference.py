# /// script
# dependencies = ["claude-agent-sdk", "openinference-instrumentation-claude-agent-sdk", "opentelemetry-sdk", "opentelemetry-exporter-otlp-json-file"]
# ///
"""Claude Agent SDK with OpenInference's instrumentation.

The SDK, its tools and the instrumentation are real. The command-line program that the SDK starts is not: it needs an
account, so its part of the conversation with the SDK is played here by `ScriptedCommandLine`.
"""

# [set up]
from openinference.instrumentation.claude_agent_sdk import ClaudeAgentSDKInstrumentor
from opentelemetry.exporter.otlp.json.file import FileSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter("trace.jsonl")))
ClaudeAgentSDKInstrumentor().instrument(tracer_provider=provider)
# [end]

import asyncio
import json
import urllib.request
from collections.abc import AsyncIterator
from typing import Any

import claude_agent_sdk as sdk
import tools
from scenario import Scenario, Special, play

SERVER = "tools"
PREFIX = f"mcp__{SERVER}__"


class ScriptedCommandLine(sdk.Transport):
    """Asks the scripted model, has the SDK run tools, calls the SDK's hooks: as the command-line program does."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.messages: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self.answers: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self.hooks: dict[str, Any] = {}
        self.task: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        pass

    def is_ready(self) -> bool:
        return True

    async def end_input(self) -> None:
        pass

    async def close(self) -> None:
        if self.task is not None:
            self.task.cancel()

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        while (message := await self.messages.get()) is not None:
            yield message

    async def write(self, data: str) -> None:
        message = json.loads(data)
        if message["type"] == "control_request":
            self.hooks = message["request"].get("hooks") or self.hooks
            answer = {"subtype": "success", "request_id": message["request_id"], "response": {"commands": []}}
            await self.messages.put({"type": "control_response", "response": answer})
        elif message["type"] == "control_response":
            self.answers[message["response"]["request_id"]].set_result(message["response"])
        elif message["type"] == "user":
            self.task = asyncio.create_task(self.talk())

    async def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Ask the SDK for something, and wait for its answer."""
        name = f"request_{len(self.answers)}"
        self.answers[name] = asyncio.get_running_loop().create_future()
        await self.messages.put({"type": "control_request", "request_id": name, "request": request})
        return (await asyncio.wait_for(self.answers[name], 30)).get("response", {})

    async def hook(self, event: str, call: dict[str, Any], **more: Any) -> None:
        for matcher in self.hooks.get(event) or ():
            for callback in matcher["hookCallbackIds"]:
                about = {"hook_event_name": event, "tool_name": call["name"], "tool_input": call["input"]}
                entry = {**about, "tool_use_id": call["id"], "session_id": "s", **more}
                await self.ask(
                    {"subtype": "hook_callback", "callback_id": callback, "input": entry, "tool_use_id": call["id"]}
                )

    async def mcp(self, method: str, **params: Any) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": len(self.answers), "method": method, "params": params}
        answer = await self.ask({"subtype": "mcp_message", "server_name": SERVER, "message": message})
        return answer["mcp_response"]

    async def execute(self, call: dict[str, Any], known: set[str]) -> dict[str, Any]:
        """One call; gives the block with its result."""
        block = {"type": "tool_result", "tool_use_id": call["id"]}
        if call["name"] not in known:
            text = f"<tool_use_error>Error: No such tool available: {call['name']}</tool_use_error>"
            return {**block, "content": text, "is_error": True}
        await self.hook("PreToolUse", call)
        result = (await self.mcp("tools/call", name=call["name"].removeprefix(PREFIX), arguments=call["input"]))[
            "result"
        ]
        if result.get("isError"):
            await self.hook("PostToolUseFailure", call, error=result["content"][0]["text"])
        else:
            await self.hook("PostToolUse", call, tool_response=result["content"])
        return {**block, "content": result["content"], "is_error": bool(result.get("isError"))}

    def turn(self) -> dict[str, Any]:
        request = urllib.request.Request(f"{self.url}/chat/completions", b"{}", method="POST")
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)["choices"][0]["message"]

    async def talk(self) -> None:
        await self.mcp(
            "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "s", "version": "1"}
        )
        known = {PREFIX + tool["name"] for tool in (await self.mcp("tools/list"))["result"]["tools"]}
        start = {"type": "system", "subtype": "init", "session_id": "s", "tools": sorted(known), "model": "scripted"}
        await self.messages.put(start)
        while True:
            message = self.turn()
            calls = [
                {"type": "tool_use", "id": call["id"], "name": call["function"]["name"],
                 "input": json.loads(call["function"]["arguments"])}
                for call in message.get("tool_calls") or ()
            ]  # fmt: skip
            content = calls or [{"type": "text", "text": message["content"]}]
            said = {"role": "assistant", "model": "scripted", "content": content, "id": "m"}
            await self.messages.put(
                {"type": "assistant", "message": said, "session_id": "s", "parent_tool_use_id": None}
            )
            if not calls:
                break
            results = await asyncio.gather(*(self.execute(call, known) for call in calls))
            back = {"role": "user", "content": results}
            await self.messages.put({"type": "user", "message": back, "session_id": "s", "parent_tool_use_id": None})
        await self.messages.put(
            {"type": "result", "subtype": "success", "duration_ms": 1, "duration_api_ms": 1, "is_error": False,
             "num_turns": 1, "session_id": "s", "result": message["content"], "usage": {}}
        )  # fmt: skip
        await self.messages.put(None)


def offered(function: Any, schema: dict[str, Any]) -> Any:
    @sdk.tool(function.__name__, function.__doc__, schema)
    async def call(arguments: dict[str, Any]) -> dict[str, Any]:
        given = {**arguments, "filters": tools.Filters(**arguments["filters"])} if "filters" in arguments else arguments
        result = await asyncio.to_thread(function, **given)
        texts = result if isinstance(result, list) else [result]
        return {"content": [{"type": "text", "text": text} for text in texts]}

    return call


async def talk(url: str) -> str:
    tools.PREFIX = PREFIX
    schemas = ({"query": str, "filters": dict}, {"city": str}, {"to": list, "body": str}, {"people": int})
    server = sdk.create_sdk_mcp_server(
        SERVER, tools=[offered(function, schema) for function, schema in zip(tools.TOOLS, schemas, strict=True)]
    )
    options = sdk.ClaudeAgentOptions(mcp_servers={SERVER: server}, allowed_tools=[f"{PREFIX}*"])
    answer = ""
    async for message in sdk.query(prompt="Help me.", options=options, transport=ScriptedCommandLine(url)):
        answer = getattr(message, "result", None) or answer
    return answer


def run(scenario: Scenario, url: str) -> object:
    return asyncio.run(talk(url))


if __name__ == "__main__":
    play(run, Special(prefix=PREFIX))

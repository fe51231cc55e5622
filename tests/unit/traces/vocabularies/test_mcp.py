"""MCP: clients, servers and what is around them."""

from __future__ import annotations

import json

from tests.unit.traces.otlp_samples import S, tool
from tests.unit.traces.vocabularies.scored import called, evidence, excluded, not_called, nothing_but, of, once

LOGFIRE = "logfire.mcp"


def layer(number: int, parent: int = 1, scope: str = "mcp.client", method: str = "tools/call", **more: object) -> S:
    found: dict[str, object] = {"gen_ai.operation.name": "execute_tool", "mcp.method.name": method}
    if method == "tools/call":
        found["gen_ai.tool.name"] = "send"
    found |= {key.replace("__", "."): value for key, value in more.items()}
    return S(number, f"{method} send", parent, attributes=found, scope=scope)


def logfire(number: int, parent: int, method: str = "tools/call", response: object = None, **params: object) -> S:
    request = {"method": method, "params": {"name": "send", "arguments": params}}
    found: dict[str, object] = {"request": json.dumps(request), "rpc.method": method, "rpc.system": "jsonrpc"}
    if response is not None:
        found["response"] = json.dumps(response)
    return S(number, f"MCP request: {method} send", parent, attributes=found, scope=LOGFIRE)


def test_client_and_server_and_the_framework_around_them_are_one_call() -> None:
    spans = of(tool(2, "mcp__mail__send", arguments={"to": "ann"}), layer(3, 2), layer(4, 3, "mcp.server"))
    assert once(spans, "send") == "true"
    assert called(spans, "mcp__mail__send", to="ann") == "true"
    assert nothing_but(spans, "send") == "true"


def test_the_request_that_logfire_keeps_has_the_arguments() -> None:
    function = S(
        2,
        attributes={"logfire.msg_template": "Function: {name}", "name": "send", "input": '{"to": "ann"}'},
        scope="logfire.openai_agents",
    )
    server = S(4, "MCP server handle request: tools/call", 3, attributes={
        "request": json.dumps({"method": "tools/call", "params": {"name": "send", "arguments": {"to": "ann"}}})
    }, scope=LOGFIRE)  # fmt: skip
    spans = of(function, logfire(3, 2, to="ann"), server)
    assert once(spans, "send") == "true"
    assert called(spans, "send", to="ann") == "true"
    assert called(of(logfire(2, 1, to="ann")), "send", to="bob") == "false tool.arguments"


def test_listing_tools_and_other_requests_are_no_calls() -> None:
    spans = of(layer(2, method="tools/list"), layer(3, method="initialize"), logfire(4, 1, "resources/read"))
    assert nothing_but(spans) == "true"
    assert excluded(spans) == [("", "list_tools")]


def test_what_the_server_refused_did_not_run_and_what_failed_did() -> None:
    assert excluded(of(layer(2, rpc__response__status_code="-32601"))) == [("send", "not_found")]
    assert excluded(of(layer(2, rpc__jsonrpc__error_code=-32602))) == [("send", "invalid_arguments")]
    assert called(of(layer(2, error__type="tool_error")), "send") == "true"

    def answered(text: str) -> list[S]:
        return of(logfire(2, 1, response={"isError": True, "content": [{"type": "text", "text": text}]}))

    assert not_called(answered("Unknown tool: send"), "send") == "true"
    assert not_called(answered("Input validation error: 'to' is a required property"), "send") == "true"
    assert called(answered("no such address"), "send") == "true"


def test_a_remote_call_of_something_else_is_not_looked_at() -> None:
    spans = of(S(2, attributes={"rpc.method": "tools/call", "rpc.system": "grpc"}, scope="grpc"))
    assert nothing_but(spans) == "true"


def sdk(number: int, parent: int, name: str, **more: object) -> S:
    found: dict[str, object] = {"mcp.method.name": "tools/call", **{k.replace("__", "."): v for k, v in more.items()}}
    return S(number, name, parent, attributes=found, scope="mcp-python-sdk")


def test_the_client_of_the_python_sdk_names_the_tool_in_the_name_of_its_span() -> None:
    spans = of(sdk(2, 1, "MCP send tools/call send"), sdk(3, 2, "tools/call send", gen_ai__tool__name="send"))
    assert once(spans, "send") == "true"
    assert nothing_but(spans, "send") == "true"
    assert not_called(of(sdk(2, 1, "something else")), "send") == "undetermined evidence.incomplete"


def test_parallel_calls_in_three_layers_are_as_many_calls() -> None:
    def layers(number: int, to: str) -> list[S]:
        outer = tool(number, "send", arguments={"to": to}, scope="agents", start=1, end=9)
        inner = sdk(number + 1, number, "MCP send tools/call send")
        return [outer, inner, sdk(number + 2, number + 1, "tools/call send", gen_ai__tool__name="send")]

    spans = of(*layers(10, "ann"), *layers(20, "bob"), *layers(30, "zoe"))
    assert [call.maybe_same_as for call in evidence(spans).calls] == [None, None, None]
    assert called(spans, "send", to="zoe") == "true"

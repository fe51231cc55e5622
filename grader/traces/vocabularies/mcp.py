"""MCP: the spans of clients and servers, by OpenTelemetry's conventions and as Logfire makes them.

Source: the semantic conventions for MCP: client and server each have a span `tools/call X` with `mcp.method.name`, and
one around both may come from the agent's framework; so one call is up to three spans. Logfire keeps the whole request
in `request`. A tool that reports an error was executed; one that the server does not have was not.
"""

from __future__ import annotations

import re
from typing import cast

from grader.core.tools.arguments import NOT_RECORDED, ContentRules
from grader.core.tools.calls import ExclusionReason
from grader.traces.arguments import arguments_from, json_of
from grader.traces.span import Span
from grader.traces.vocabularies.base import Reading, Role
from grader.traces.vocabularies.proposals import trusted_id

_METHOD = "mcp.method.name"
_SPAN_NAME = re.compile(r"(?:MCP send )?tools/call (\S{1,300})\Z")
_RPC_CODES = ("rpc.response.status_code", "rpc.jsonrpc.error_code", "error.type")
_DISPATCH_ERRORS = {"-32601": ExclusionReason.NOT_FOUND, "-32602": ExclusionReason.INVALID_ARGUMENTS}
_REFUSALS = (
    ("unknown tool", ExclusionReason.NOT_FOUND),
    ("input validation error", ExclusionReason.INVALID_ARGUMENTS),
)
"""How servers begin the text of an answer to a call that they did not run."""


class MCP:
    """Spans with `mcp.method.name`, and the requests that Logfire records."""

    name = "mcp"
    scopes = (".mcp", "-mcp", "fastmcp")
    marks = frozenset({_METHOD, "rpc.method"})

    def read(self, span: Span, rules: ContentRules) -> Reading | None:
        """What the span is."""
        method = span.attributes.text(_METHOD)
        request: dict[str, object] = {}
        if method is None:
            found = json_of(span.attributes.get("request"))
            request = cast("dict[str, object]", found) if isinstance(found, dict) else {}
            named = request.get("method", span.attributes.get("rpc.method"))
            method = named if isinstance(named, str) and ("mcp" in span.scope or request) else None
        if method is None:
            return None
        if method == "tools/list":
            return self._excluded(ExclusionReason.LIST_TOOLS, span, None, span.name[:200])
        if method != "tools/call":
            return Reading(Role.OTHER, self.name, overrules=True)
        return self._call(span, request, rules)

    def _call(self, span: Span, request: dict[str, object], rules: ContentRules) -> Reading:
        params = request.get("params")
        given = cast("dict[str, object]", params) if isinstance(params, dict) else {}
        named = given.get("name", span.attributes.get("gen_ai.tool.name"))
        if named is None:
            # By the conventions the span is named after the method and its target.
            match = _SPAN_NAME.match(span.name)
            named = match[1] if match is not None else None
        name = named if isinstance(named, str) and named else None
        refused = _refusal(span)
        if refused is not None:
            return self._excluded(refused[0], span, name, refused[1])
        if name is None:
            detail = f"a tool was called over MCP, its name is not recorded ({span.name[:100]})"
            return Reading(Role.POSSIBLE_TOOL, self.name, detail=detail)
        arguments = arguments_from(given.get("arguments"), rules) if given else NOT_RECORDED
        call_id = trusted_id(span.attributes.get("gen_ai.tool.call.id"))
        return Reading(Role.TOOL, self.name, name=name, call_id=call_id, arguments=arguments, is_transport=True)

    def _excluded(self, why: ExclusionReason, span: Span, name: str | None, detail: str) -> Reading:
        call_id = trusted_id(span.attributes.get("gen_ai.tool.call.id"))
        return Reading(Role.EXCLUDED, self.name, name=name, call_id=call_id, why_excluded=why, detail=detail)


def _refusal(span: Span) -> tuple[ExclusionReason, str] | None:
    """Why nothing ran, and how that is known: an error code of JSON-RPC, or the text of an answer that is an error."""
    for key in _RPC_CODES:
        why = _DISPATCH_ERRORS.get(str(span.attributes.get(key)))
        if why is not None:
            return why, f"{key} is {span.attributes.get(key)}"
    answer = json_of(span.attributes.get("response"))
    if not isinstance(answer, dict) or cast("dict[str, object]", answer).get("isError") is not True:
        return None
    content = cast("dict[str, object]", answer).get("content")
    first = cast("list[object]", content)[0] if isinstance(content, list) and content else None
    text = cast("dict[str, object]", first).get("text") if isinstance(first, dict) else None
    said = text if isinstance(text, str) else ""
    return next(((why, said[:200]) for begin, why in _REFUSALS if said.lower().startswith(begin)), None)

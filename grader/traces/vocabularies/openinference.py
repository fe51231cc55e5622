"""OpenInference semantic conventions: spans with `openinference.span.kind`.

Source: the OpenInference specification (semantic_conventions.md, tool_calling.md, configuration.md), and what its
instrumentors write: three spellings of the call id, and `tool.parameters` for values in some, the schema in others.
What only one instrumentor does stands in the file of its producer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from grader.core.tools.arguments import NOT_RECORDED, ContentRules, ToolArguments
from grader.core.tools.calls import ExclusionReason
from grader.traces.arguments import arguments_from, looks_like_schema
from grader.traces.span import Attributes, Span, Unreadable
from grader.traces.vocabularies.base import MERGED_TOOLS, Proposal, Reading, Role
from grader.traces.vocabularies.proposals import trusted_id

KIND = "openinference.span.kind"
TOOL_NAME = "tool.name"
_CALL_IDS = ("tool.id", "tool.call_id", "tool_call.id")
_KINDS = frozenset(
    {"LLM", "EMBEDDING", "CHAIN", "RETRIEVER", "RERANKER", "TOOL", "AGENT", "GUARDRAIL", "EVALUATOR", "PROMPT"}
)
_VALUES_IN_PARAMETERS = ("google_adk", "claude_agent_sdk", "agno", "strands", "pydantic_ai", "autogen_agentchat")
"""Scopes whose `tool.parameters` has the values of the call; in all others it is the schema."""
_MOST_ARGUMENTS = 8 * 1024
_TOOL_CALL_NAME = re.compile(
    r"llm\.output_messages\.[0-9]{1,9}\.message\.(?:tool_calls|contents)\.[0-9]{1,9}\.tool_call\.function\.name\Z"
)


class OpenInference:
    """Spans with `openinference.span.kind`, or with `tool.name` and no kind."""

    name = "openinference"
    scopes = ()
    marks = frozenset[str]()

    def read(self, span: Span, rules: ContentRules) -> Reading | None:
        """What the span is, None when it does not use OpenInference."""
        attributes = span.attributes
        kind = attributes.get(KIND)
        if isinstance(kind, Unreadable):
            return Reading(Role.POSSIBLE_TOOL, self.name, detail="its kind is given twice, differently")
        if not isinstance(kind, str):
            return self._tool(span, rules) if TOOL_NAME in attributes else None
        kind = kind.upper()
        if kind == "TOOL":
            return self._tool(span, rules)
        if kind == "AGENT":
            return self._agent(span, rules) if TOOL_NAME in attributes else Reading(Role.AGENT, self.name)
        if kind == "LLM":
            keeps = rules.retain_content and rules.redactor is None and "langchain" in span.scope
            return Reading(Role.MODEL, self.name, proposals=tuple(_proposals(attributes, keeps_arguments=keeps)))
        if kind not in _KINDS and TOOL_NAME in attributes:
            return self._tool(span, rules)
        return Reading(Role.OTHER, self.name)

    def _agent(self, span: Span, rules: ContentRules) -> Reading:
        """LangChain gives this kind to every tool with "agent" in its name; LlamaIndex writes the name of a tool on the
        span of the agent that called it. Without the scope they can be told apart only by the span's name.
        """
        if span.scope or span.name == span.attributes.get(TOOL_NAME):
            return self._tool(span, rules)
        detail = f"an agent that called a tool, or a tool that was recorded as an agent: {span.name[:100]}"
        return Reading(Role.POSSIBLE_TOOL, self.name, detail=detail)

    def _tool(self, span: Span, rules: ContentRules) -> Reading:
        attributes = span.attributes
        name = attributes.text(TOOL_NAME)
        if name is None:
            return Reading(
                Role.POSSIBLE_TOOL,
                self.name,
                detail=f"a tool was executed, its name is not recorded ({span.name[:100]})",
            )
        if name == MERGED_TOOLS:
            return self._excluded(ExclusionReason.MERGED_SPAN, span)
        return Reading(
            Role.TOOL,
            self.name,
            name=name,
            call_id=call_id_of(attributes),
            arguments=_arguments(span, rules),
        )

    def _excluded(self, why: ExclusionReason, span: Span) -> Reading:
        return Reading(
            Role.EXCLUDED,
            self.name,
            name=span.attributes.text(TOOL_NAME),
            call_id=call_id_of(span.attributes),
            why_excluded=why,
            detail=span.name[:200],
        )


def call_id_of(attributes: Attributes) -> str | None:
    """The call id, in any of its spellings."""
    return next(filter(None, (trusted_id(attributes.get(key)) for key in _CALL_IDS)), None)


def _arguments(span: Span, rules: ContentRules) -> ToolArguments:
    value = span.attributes.get("input.value")
    if value is not None:
        return arguments_from(value, rules)
    parameters = span.attributes.get("tool.parameters")
    if parameters is None or not any(scope in span.scope for scope in _VALUES_IN_PARAMETERS):
        return NOT_RECORDED
    return NOT_RECORDED if looks_like_schema(parameters) else arguments_from(parameters, rules)


def _proposals(attributes: Attributes, *, keeps_arguments: bool) -> Iterator[Proposal]:
    """Calls in the output messages; a call that stands in `tool_calls` and in `contents` too is one."""
    seen: set[tuple[str, str]] = set()
    for key in attributes:
        if not _TOOL_CALL_NAME.match(key):
            continue
        name = attributes.text(key)
        call_id = trusted_id(attributes.get(key.removesuffix("function.name") + "id"))
        if name is None or (call_id is not None and (name, call_id) in seen):
            continue
        if call_id is None and ".contents." in key:
            continue
        seen.add((name, call_id or ""))
        arguments = attributes.text(key.removesuffix("name") + "arguments") if keeps_arguments else None
        yield Proposal(name, call_id, arguments if arguments and len(arguments) <= _MOST_ARGUMENTS else None)

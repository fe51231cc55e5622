"""The vocabularies that are read, in a fixed order, and which of them are asked about a span."""

from __future__ import annotations

from functools import lru_cache

from grader.traces.span import Span
from grader.traces.vocabularies.base import Vocabulary
from grader.traces.vocabularies.claude_agent import ClaudeAgent
from grader.traces.vocabularies.crewai import CrewAI
from grader.traces.vocabularies.genai import GenAI
from grader.traces.vocabularies.google_adk import GoogleADK
from grader.traces.vocabularies.google_genai import GoogleGenAI
from grader.traces.vocabularies.langchain import LangChain
from grader.traces.vocabularies.langfuse import Langfuse
from grader.traces.vocabularies.llamaindex import LlamaIndex
from grader.traces.vocabularies.mcp import MCP
from grader.traces.vocabularies.openai_agents import OpenAIAgents
from grader.traces.vocabularies.openinference import OpenInference
from grader.traces.vocabularies.pydantic_ai import PydanticAI
from grader.traces.vocabularies.smolagents import Smolagents
from grader.traces.vocabularies.strands import Strands
from grader.traces.vocabularies.traceloop import Traceloop
from grader.traces.vocabularies.vercel import Vercel

GENERAL: tuple[Vocabulary, ...] = (GenAI(), OpenInference())
"""Asked about every span."""
PRODUCERS: tuple[Vocabulary, ...] = (
    *(OpenAIAgents(), LangChain(), LlamaIndex(), Strands(), PydanticAI(), GoogleADK(), Vercel(), CrewAI()),
    *(ClaudeAgent(), Smolagents(), MCP(), Traceloop(), Langfuse(), GoogleGenAI()),
)
"""Asked about spans of their scopes, with their marks, and of no recorded scope."""
VOCABULARIES: tuple[Vocabulary, ...] = (*GENERAL, *PRODUCERS)
_MARKS = frozenset(mark for vocabulary in PRODUCERS for mark in vocabulary.marks)


def vocabularies_for(span: Span) -> tuple[Vocabulary, ...]:
    """The vocabularies that may have something to say of a span."""
    of_scope = _of_scope(span.scope)
    if _MARKS.isdisjoint(span.attributes.raw):
        return of_scope
    marked = [
        vocabulary
        for vocabulary in PRODUCERS
        if vocabulary not in of_scope and not vocabulary.marks.isdisjoint(span.attributes.raw)
    ]
    return (*of_scope, *marked)


@lru_cache(maxsize=256)
def _of_scope(scope: str) -> tuple[Vocabulary, ...]:
    """Producers may be asked about spans without a scope: some exports leave it out."""
    lower = scope.lower()
    return (
        *GENERAL,
        *(producer for producer in PRODUCERS if not scope or any(part in lower for part in producer.scopes)),
    )

"""The vocabularies that are read, in a fixed order."""

from __future__ import annotations

from grader.traces.vocabularies.base import Vocabulary
from grader.traces.vocabularies.genai import GenAI
from grader.traces.vocabularies.openinference import OpenInference

VOCABULARIES: tuple[Vocabulary, ...] = (GenAI(), OpenInference())

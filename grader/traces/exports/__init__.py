"""JSON that people paste instead of OTLP, and which kind a record is; told by its content, never by a file's name."""

from __future__ import annotations

from grader.traces.exports.base import Export, Json
from grader.traces.exports.deepeval import DeepEval
from grader.traces.exports.inspect_log import InspectLog
from grader.traces.exports.langfuse import Langfuse
from grader.traces.exports.logfire import Logfire
from grader.traces.exports.otel_sdk import OTelSDK
from grader.traces.exports.phoenix import Phoenix
from grader.traces.exports.plain_spans import PlainSpans

EXPORTS: tuple[Export, ...] = (*(OTelSDK(), Phoenix(), Langfuse(), Logfire(), PlainSpans(), DeepEval(), InspectLog()),)


def export_of(record: Json) -> Export | None:
    """The kind of export that a JSON object is, None when it is none."""
    return next((export for export in EXPORTS if export.claims(record)), None)


__all__ = ["EXPORTS", "Export", "export_of"]

"""The numbers of the page on capturing are those of the code."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from grader import LocalTraceCapture
from grader.capture.otlp_body import MOST_PARTS
from grader.capture.receiver import ReceiverLimits
from grader.cli.receive import receive
from grader.cli.receiving import exporter_settings
from grader.core.traces.coverage import CoverageCode

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "capture-traces.md").read_text()
TEXT = " ".join(PAGE.split())
MIB = 1 << 20


def test_the_bounds_of_a_capture() -> None:
    defaults = {name: one.default for name, one in inspect.signature(LocalTraceCapture).parameters.items()}
    wanted = (
        f"`max_spans` ({defaults['max_spans']:,}), `max_traces` ({defaults['max_traces']:,}) and "
        f"`max_content_bytes` ({defaults['max_content_bytes'] // MIB} MiB)"
    )
    assert wanted in TEXT


def test_the_bounds_of_a_receiver() -> None:
    limits = ReceiverLimits()
    wanted = (
        f"{limits.http.body_bytes // MIB} MiB for a body, {limits.http.decompressed_bytes // MIB} MiB decompressed, "
        f"about {MOST_PARTS // 100:,} spans in a request, {limits.connections} connections, "
        f"{limits.queue_batches} batches and {limits.held_bytes // MIB} MiB waiting"
    )
    assert wanted in TEXT


def test_what_a_receiver_says_when_it_starts() -> None:
    port = inspect.signature(receive).parameters["port"].default
    for name, value in exporter_settings(port, "").items():
        assert f"\n  export {name}={value}\n" in PAGE


def test_the_reasons_are_those_of_the_code() -> None:
    table = PAGE[PAGE.index("| what happened |") : PAGE.index("What was seen stands")]
    named = set(re.findall(r"`([a-z]+\.[a-z]+|capacity)`", table))
    assert {"span.late", "span.unlinked", "capacity"} <= named <= {code.value for code in CoverageCode}

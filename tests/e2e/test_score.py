"""`grader score` as a process: standard input, exit codes, the example, and traces that the real SDK makes now."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
import zstandard

from grader import score
from grader.yaml_source import load
from tests.e2e.conftest import EXAMPLES, WITHIN_S, Grader

EXAMPLE = EXAMPLES / "send-after-confirm"
EXPECTED = cast("dict[str, dict[str, str]]", load((EXAMPLE / "expected.yaml").read_bytes(), "expected.yaml").value)
CODES = {"true": 0, "false": 1, "undetermined": 3}


def verdicts(traces: Path) -> dict[str, dict[str, str]]:
    """Of every trace in a folder the verdict and its first reason, as expected.yaml has them."""
    found: dict[str, dict[str, str]] = {}
    for file in traces.iterdir():
        verdict = score(file, EXAMPLE, complete=True).verdict
        assert verdict is not None
        reason = {"reason": verdict.findings[0].code.value} if verdict.findings else {}
        found[file.name] = {"verdict": verdict.value.value, **reason}
    return found


def test_every_trace_of_the_example_gets_its_verdict_and_reason() -> None:
    assert verdicts(EXAMPLE / "traces") == EXPECTED


def test_traces_made_now_by_the_real_sdk_get_the_same_verdicts(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.json.file", reason="the OpenTelemetry SDK is not installed")
    made = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLE / "record_traces.py", tmp_path / "traces"],
        capture_output=True, text=True, timeout=WITHIN_S, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert verdicts(tmp_path / "traces") == EXPECTED


@pytest.mark.parametrize("name", ["good", "sends-before-it-asks", "was-killed"])
def test_exit_code_and_replay_without_an_engine(grader: Grader, name: str) -> None:
    trace = EXAMPLE / "traces" / f"{name}.jsonl"
    ended = grader("score", trace, "--task", EXAMPLE, "--complete", "--format", "json")
    assert (ended.code, ended.err) == (CODES[EXPECTED[trace.name]["verdict"]], "")
    replayed = grader("replay", "--format", "json", DOCKER_HOST="unix:///nonexistent")
    assert (replayed.code, replayed.out) == (ended.code, ended.out)


@pytest.mark.parametrize("encode", [bytes, gzip.compress, zstandard.compress], ids=["plain", "gzip", "zstd"])
def test_standard_input(grader: Grader, encode: Any) -> None:
    data = encode((EXAMPLE / "traces" / "good.jsonl").read_bytes())
    ended = grader("score", "-", "--task", EXAMPLE, "--complete", "--format", "json", stdin=data)
    assert ended.code == 0
    assert json.loads(ended.out)["submissions"][0]["evidence"]["name"] == "<standard input>"
    assert grader("score", "-", "--task", EXAMPLE, stdin=b"").code == 2
    assert grader("score", "-", "--task", EXAMPLE, "--complete", stdin=data[: len(data) // 2]).code != 0


def test_a_conversation_from_standard_input(grader: Grader) -> None:
    talk = b'requests: [{messages: [{role: user, content: "Write to Ann"}]}]'
    ended = grader("score", "--conversation", "-", "--task", EXAMPLE, stdin=talk)
    assert ended.code == 3
    assert "1 of 1 request has no trace link" in ended.out


def test_scoring_needs_no_engine_and_no_sdk(grader: Grader, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['docker'] = sys.modules['opentelemetry'] = None; "
        f"sys.argv[1:] = ['score', {str(EXAMPLE / 'traces/good.jsonl')!r}, '--task', {str(EXAMPLE)!r}, '--complete']; "
        "from grader.cli.app import main; main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")

"""Numbers that explanations give are those of the code."""

from __future__ import annotations

from pathlib import Path

from grader.core.endings import EndingKind
from grader.sandbox.base import ISOLATIONS
from grader.sandbox.docker.losses import LOSSES_ALLOWED
from grader.sandbox.docker.policy import MIB, BoxImage, BoxPolicy, folders_in_memory
from grader.sandbox.docker.seat import SHARED_USES

EXPLANATION = Path(__file__).parents[3] / "docs" / "explanation"
THREATS = (EXPLANATION / "threat-model.md").read_text("utf-8")
VERDICTS = (EXPLANATION / "verdicts.md").read_text("utf-8")


def _policy(memory_bytes: int, output_bytes: int) -> BoxPolicy:
    return BoxPolicy(BoxImage("sha256:0"), memory_bytes, 64, 2**40, 4096, output_bytes)


def test_memory_of_a_box() -> None:
    assert "+ 16 MiB for the supervisor + 16 MiB for standard input + the output it may hold" in THREATS
    assert _policy(256 * MIB, 5 * MIB).box_memory_bytes == (256 + 16 + 16 + 5) * MIB


def test_shares_of_the_folders() -> None:
    assert "`/work` at most 3/8 (and `disk_bytes`), `/submission` 1/4, `/tmp` and `/dev/shm` 1/8\n  each" in THREATS
    shares = {folder.path: folder.size_bytes / (256 * MIB) for folder in folders_in_memory(_policy(256 * MIB, MIB))}
    assert shares == {"/work": 3 / 8, "/submission": 1 / 4, "/tmp": 1 / 8, "/dev/shm": 1 / 8}


def test_isolation_levels() -> None:
    for level in ISOLATIONS:
        assert f"\n| `{level}`" in THREATS
    assert f"replaced after {SHARED_USES} runs" in THREATS
    assert LOSSES_ALLOWED == 8
    assert "loses eight boxes" in THREATS


def test_every_ending_is_there() -> None:
    for kind in EndingKind:
        assert f"\n| `{kind.value}" in VERDICTS

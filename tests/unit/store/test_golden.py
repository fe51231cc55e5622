"""A record of schema 1 as it was once written. It stays readable for ever: these bytes are never made again."""

from __future__ import annotations

import hashlib
from pathlib import Path

from grader.core.endings import decide_ending
from grader.core.limits import LimitRange, Limits
from grader.core.tri import Tri
from grader.store import open_record

GOLDEN = Path(__file__).parents[2] / "golden" / "record-1"


def test_the_bytes_are_those_that_were_committed() -> None:
    files = sorted(path for path in GOLDEN.rglob("*") if path.is_file())
    whole = hashlib.sha256()
    for path in files:
        whole.update(f"{path.relative_to(GOLDEN)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    assert whole.hexdigest() == "183fd3c4b9d422dab20d1cba43caaa46516c912bee47b4980094c8a058de756f"


def test_a_record_of_schema_1_is_readable() -> None:
    record = open_record(GOLDEN)
    assert record.is_sealed
    assert record.created == "2026-01-02T03:04:05Z"
    assert [facts.host_id for facts in record.sessions] == ["one", "two"]
    assert record.sessions[0].host == {"kernel": "6.1", "architecture": "x86_64", "supervisor": "f" * 64}
    first, second = record
    assert first.task.objective == "says hello"
    cases = first.task.programs()[0].cases
    assert [case.stdin for case in cases] == [b"a\n", b"\xff"]
    assert cases[1].files[0].content == b"x" * 5000
    assert first.submission is not None
    assert first.submission.files is not None
    assert [(file.path, len(file.content)) for file in first.submission.files] == [(b"data\xff", 6000), (b"main.c", 10)]
    assert first.profiles[0].body["$blob"] == "only looks like one"
    assert len(first.compiles) == 1
    assert [record.index for record in first.runs] == [1, 0, 1, 2, 3]
    assert [record.index for record in first.superseded] == [0]
    assert first.runs[0].missing is not None
    assert first.runs[0].missing.code == "box.lost"
    last = first.runs[-1].outcome
    assert last is not None
    assert last.stdout.captured.kept == bytes(range(256)) * 100
    captured = last.files[0].captured
    assert captured is not None
    assert (captured.kept, captured.total_bytes, captured.sha256) == (b"kept" * 2000, 10**6, "a" * 64)
    assert str(decide_ending(last, LimitRange().effective(Limits()))) == "exited(0)"
    assert first.verdict is not None
    assert first.verdict.value is Tri.FALSE
    assert second.observations[0].acquisition_reasons == ("cut",)

"""The closed list of reason codes."""

from __future__ import annotations

from grader.core.reasons import REASONS, ReasonCode, ReasonKind


def test_every_code_has_a_reason_and_the_other_way_round() -> None:
    assert set(REASONS) == set(ReasonCode)


def test_what_a_program_could_bring_about_on_purpose() -> None:
    assert {code.value for code in ReasonCode if code.inducible} == {
        "runs.disagree", "evidence.truncated", "evidence.self_reported", "arguments.unparsable", "matcher.failed",
        "order.overlap", "order.budget", "box.lost", "supervisor.lost",
        "judge.unparsable", "judge.overflow", "judge.split", "judge.uncited", "judge.contradicts_fact",
        "judge.not_applicable", "judge.evidence_required",
    }  # fmt: skip


def test_the_missing_codes_are_these() -> None:
    assert {code.value for code in ReasonCode if code.kind is ReasonKind.MISSING} == {
        "engine.unreachable", "image.missing", "box.lost", "supervisor.lost", "host.starved", "host.out_of_memory",
        "host.disk_full", "interrupted", "prerequisite.missing", "worker.lost",
    }  # fmt: skip


def test_a_meaning_is_one_line() -> None:
    for code in ReasonCode:
        assert code.meaning
        assert "\n" not in code.meaning

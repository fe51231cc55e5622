"""Which reason a lost box gives, and whether another attempt is fair."""

import pytest

from grader.core.reasons import ReasonCode
from grader.sandbox.docker.losses import BoxLoss, LossBudget, failure_of, is_out_of_memory


@pytest.mark.parametrize(
    ("loss", "code", "retryable"),
    [
        (BoxLoss("eof", has_begun=False), ReasonCode.BOX_LOST, True),
        (BoxLoss("eof", has_begun=True), ReasonCode.SUPERVISOR_LOST, False),
        (BoxLoss("eof", has_begun=True, actions=("die",)), ReasonCode.SUPERVISOR_LOST, False),
        (BoxLoss("eof", has_begun=True, actions=("kill", "die")), ReasonCode.BOX_LOST, False),
        # Removing a container that ended by itself is what auto-remove does.
        (BoxLoss("eof", has_begun=True, actions=("die", "destroy")), ReasonCode.SUPERVISOR_LOST, False),
        (BoxLoss("eof", has_begun=True, engine_answers=False), ReasonCode.ENGINE_UNREACHABLE, True),
        (BoxLoss("eof", has_begun=False, engine_answers=False), ReasonCode.ENGINE_UNREACHABLE, True),
        (BoxLoss("eof", has_begun=True, actions=("oom", "die")), ReasonCode.SUPERVISOR_LOST, False),
    ],
)
def test_a_second_attempt_is_allowed_only_before_the_program_began_or_when_the_engine_died(
    loss: BoxLoss, code: ReasonCode, retryable: bool
) -> None:
    failed = failure_of(loss)
    assert (failed.code, failed.retryable) == (code, retryable)
    assert "eof" in failed.detail


@pytest.mark.parametrize(
    ("actions", "hits", "has_begun", "engine_answers", "expected"),
    [
        (("oom", "die"), 3, True, True, True),
        (("oom",), 3, True, True, True),
        (("die", "oom"), 3, True, True, False),
        (("oom", "die"), 0, True, True, False),
        (("oom", "die"), None, True, True, False),
        (("die",), 3, True, True, False),
        (("oom", "die"), 3, False, True, False),
        (("oom", "die"), 3, True, False, False),
    ],
)
def test_memory_is_to_blame_only_with_both_kinds_of_evidence(
    actions: tuple[str, ...], hits: int | None, has_begun: bool, engine_answers: bool, expected: bool
) -> None:
    loss = BoxLoss("eof", has_begun, engine_answers, actions, hits)
    assert is_out_of_memory(loss) is expected


def test_a_submission_that_loses_too_many_boxes_gets_no_further_one() -> None:
    budget = LossBudget(allowed=2)
    budget.note("bad")
    assert budget.refusal("bad") is None
    budget.note("bad")
    refusal = budget.refusal("bad")
    assert refusal is not None
    assert (refusal.code, refusal.retryable) == (ReasonCode.BOX_LOST, False)
    assert budget.refusal("good") is None

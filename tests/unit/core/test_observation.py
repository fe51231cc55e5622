"""An observation's digest: the SHA-256 of the canonical form of its plain data, whatever was remembered on the way."""

from __future__ import annotations

import json

import pytest

from grader.core.canonical import digest, sha256_hex
from grader.core.captured import Captured
from grader.core.limits import LimitRange, Limits
from grader.core.observation import Acquisition, MissingRun, Observation, ProgramRuns, RunRecord
from grader.core.outcomes import Measures, RunOutcome, StreamOutcome
from grader.core.plan import ProfileInForce
from grader.core.reasons import ReasonCode

NOTHING = StreamOutcome(captured=Captured.whole(b"\xff\0"))
OUTCOME = RunOutcome(
    command=(b"x",),
    command_is_submission=False,
    measures=Measures(exit_code=0, wall_time_ns=2),
    stdout=NOTHING,
    stderr=NOTHING,
)
PROFILES = (
    ProfileInForce(name="b", image_id="1"),
    ProfileInForce(
        name="a",
        image_id="2",
        environment={"Z": "1", "A": "2"},
        limits=LimitRange(maximum=Limits(cpu_time_s=2.0)),
        body={"z": [1.0, {"y": 2.5, "x": None}], "a": "ü"},
    ),
)
RUNS = (
    RunRecord(index=0, outcome=OUTCOME),
    RunRecord(index=1, attempt=2, missing=MissingRun(code=ReasonCode.BOX_LOST, detail="gone")),
)


def _observation(profiles: tuple[ProfileInForce, ...], runs: tuple[RunRecord, ...]) -> Observation:
    payload = ProgramRuns(submission_digest="s", plan_fingerprint="p", profiles=profiles, runs=runs)
    return Observation(acquisition=Acquisition.PARTIAL, acquisition_reasons=("1 of 2",), payload=payload)


@pytest.mark.parametrize("profiles", [(), PROFILES[:1], PROFILES])
@pytest.mark.parametrize("runs", [(), RUNS])
def test_it_is_the_digest_of_the_plain_form_with_each_run_by_the_digest_of_its_own(
    profiles: tuple[ProfileInForce, ...], runs: tuple[RunRecord, ...]
) -> None:
    observation = _observation(profiles, runs)
    own = observation.model_dump(mode="json", exclude={"payload"})
    plain = {"kind": "program_runs", **observation.payload.model_dump(mode="json", exclude_defaults=True)}
    plain["runs"] = [sha256_hex(run.model_dump_json(exclude_defaults=True).encode()) for run in runs]
    assert observation.digest == digest({**own, "payload": plain})


def test_it_changes_with_every_part_and_not_with_who_read_it() -> None:
    whole = _observation(PROFILES, RUNS)
    assert Observation.model_validate(json.loads(whole.model_dump_json())).digest == whole.digest
    others = [
        _observation(PROFILES[::-1], RUNS),
        _observation(PROFILES[:1], RUNS),
        _observation(PROFILES, RUNS[:1]),
        _observation((PROFILES[0], PROFILES[1].model_copy(update={"image_id": "3"})), RUNS),
        whole.model_copy(update={"acquisition": Acquisition.COMPLETE}),
    ]
    assert len({whole.digest, *(other.digest for other in others)}) == 6


def test_a_changed_copy_of_a_profile_forgets_what_was_computed_of_it() -> None:
    profile = PROFILES[1]
    before = (profile.fingerprint, profile.digested)
    changed = profile.model_copy(update={"body": {}, "image_id": "3"})
    assert changed.fingerprint != before[0]
    assert changed.digested["image_id"] == "3"

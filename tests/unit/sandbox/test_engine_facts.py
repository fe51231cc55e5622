"""What the engine says, read into values; its answers may lack anything."""

from __future__ import annotations

from typing import Any

import pytest

from grader.core.reasons import ReasonCode
from grader.sandbox.docker.engine_facts import (
    BuildLog,
    code_of,
    container_event,
    container_facts,
    container_state,
    engine_facts,
    image_facts,
    listed_image,
    seconds_of,
)


def test_engine() -> None:
    info = {"ID": "A:B", "NCPU": 2, "MemTotal": 5, "CgroupVersion": "1", "SystemTime": "2026-11-30T13:00:00.5Z"}
    version = {
        "Version": "20.10",
        "Components": [{"Name": "Engine", "Version": "x"}, {"Name": "runc", "Version": "1.1"}],
    }
    facts = engine_facts(info, version)
    assert (facts.version, facts.runc, facts.cpus, facts.cgroup_version) == ("20.10", "1.1", 2, "1")
    assert facts.now_s == 1796043600.0


def test_podman_is_told_by_its_component() -> None:
    version = {"Components": [{"Name": "Podman Engine", "Version": "4.3.1"}], "Platform": {"Name": "linux/amd64/x"}}
    facts = engine_facts({}, version)
    assert (facts.name, facts.is_podman) == ("Podman Engine", True)
    assert not engine_facts({}, {"Platform": {"Name": "Docker Engine - Community"}}).is_podman


def test_nothing_said_is_nothing_known() -> None:
    facts = engine_facts({}, {"Components": None, "Platform": None})
    assert (facts.version, facts.runc, facts.cpus, facts.now_s) == ("", "", 0, None)
    assert container_facts({"Labels": None}).labels == {}
    assert container_state({}).was_out_of_memory is False
    assert image_facts({"Config": None, "RepoTags": None}).volumes == ()
    assert container_event({}).action == ""


def test_containers_images_events() -> None:
    assert container_state({"State": {"Running": True, "ExitCode": 0}}).exit_code is None
    assert container_state({"State": {"Running": False, "ExitCode": 137, "OOMKilled": True}}).was_out_of_memory
    image = image_facts({"Id": "i", "Config": {"Volumes": {"/b": {}, "/a": {}}, "Env": ["A=1", "LD_PRELOAD=/x=y"]}})
    assert (image.volumes, image.variables) == (("/a", "/b"), ("A", "LD_PRELOAD"))
    assert listed_image({"Id": "i", "RepoTags": ["<none>:<none>"]}).tags == ()
    event = container_event({"Action": "exec_start: sh -c x", "Actor": {"ID": "c"}, "timeNano": 7})
    assert (event.container_id, event.action, event.time_ns) == ("c", "exec_start", 7)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:01Z", 1.0),
        ("1970-01-01T00:00:01.123456789Z", 1.0),
        ("1970-01-01T02:00:01.1+02:00", 1.0),
        ("yesterday", None),
        ("", None),
    ],
)
def test_times(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds


def test_complaints() -> None:
    assert code_of("write /x: no space left on device") is ReasonCode.HOST_DISK_FULL
    assert code_of("No such image: sha256:1") is ReasonCode.IMAGE_MISSING
    assert code_of("something else") is None


def told(log: BuildLog, *answers: dict[str, Any]) -> list[str]:
    return [line for answer in answers for line in log.take(answer)]


def test_a_build_that_ends_well() -> None:
    log = BuildLog()
    shown = told(
        log,
        {"stream": "Step 1/2 : FROM x\n"},
        {"stream": " ---> aaaaaaaaaaaa\n"},
        {"stream": "Step 2/2 : LABEL grader.image=x\n"},
        {"stream": "\x1b[91mwarning\x1b[0m\n"},
        {"stream": " ---> bbbbbbbbbbbb\n"},
        {"aux": {"ID": "sha256:bbbb"}},
    )
    assert shown == ["Step 1/2 : FROM x"]
    assert (log.image_id, log.failure) == ("sha256:bbbb", None)


def test_a_build_that_fails_keeps_its_last_lines_and_knows_what_it_left() -> None:
    log = BuildLog()
    told(
        log,
        {"stream": "Step 1/4 : FROM x\n ---> aaaaaaaaaaaa\n"},
        {"stream": "Step 2/4 : RUN a\n ---> Using cache\n ---> bbbbbbbbbbbb\n"},
        {"stream": "Step 3/4 : RUN b\n ---> Running in dddddddddddd\n ---> cccccccccccc\n"},
        {"stream": "Step 4/4 : RUN c\n"},
        {"stream": "\x1b[91mno such package\x1b[0m\n"},
        {"error": "returned a non-zero code: 100"},
    )
    assert log.failure is not None
    assert log.failure.splitlines()[-2:] == ["no such package", "returned a non-zero code: 100"]
    assert log.steps == ["cccccccccccc"], "the base and a cached step belong to others"
    assert log.image_id is None


def test_an_endless_build_log_is_bounded() -> None:
    log = BuildLog()
    for number in range(10_000):
        log.take({"stream": f"line {number}\n"})
    log.take({"error": "end"})
    assert log.failure is not None
    assert len(log.failure.splitlines()) == 21

"""What a profile may say, and the commands that follow from it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from grader.core.reasons import ReasonCode
from grader.runtimes.profile import RuntimeProfile

MINIMAL: dict[str, Any] = {
    "language": "x",
    "suffixes": [".x", ".xx"],
    "entry_points": ["main.x"],
    "image": {"dockerfile": "x"},
    "run": ["xrun", "{entry}"],
}
COMPILED: dict[str, Any] = {
    **MINIMAL,
    "compile": {"argv": ["xc", "-o", "{out}", "{sources}", "--main={entry}"], "limits": {"cpu_time_s": 30}},
    "run": ["{out}"],
}


def profile(**changes: Any) -> RuntimeProfile:
    return RuntimeProfile.model_validate({**MINIMAL, **changes})


@pytest.mark.parametrize(
    ("paths", "entry"),
    [
        (["only.x"], "only.x"),
        (["deep/only.xx", "data.txt"], "deep/only.xx"),
        (["a.x", "main.x"], "main.x"),
        (["a.x", "b.x"], None),
        (["a.x", "sub/main.x"], None),
        (["readme.md"], None),
        ([], None),
    ],
)
def test_the_entry_point_is_the_only_source_or_a_named_file_and_never_a_guess(
    paths: list[str], entry: str | None
) -> None:
    assert profile().entry_point(paths) == entry


def test_commands() -> None:
    compiled = RuntimeProfile.model_validate(COMPILED)
    assert compiled.run_command("main.x") == ("/submission/a.out",)
    assert compiled.compile_command("main.x", ["main.x", "-o.x", "notes"]) == (
        "xc", "-o", "./a.out", "./-o.x", "./main.x", "--main=./main.x",
    )  # fmt: skip
    assert compiled.command_is_submission
    assert profile().run_command("sub/main.x") == ("xrun", "/submission/sub/main.x")
    assert profile().compile_command("main.x", ["main.x"]) is None
    assert not profile().command_is_submission


def test_a_file_name_is_never_read_as_a_template() -> None:
    assert profile().run_command("{out}.x") == ("xrun", "/submission/{out}.x")
    compiled = RuntimeProfile.model_validate(COMPILED)
    assert compiled.compile_command("{out}.x", ["{out}.x"]) == (
        "xc", "-o", "./a.out", "./{out}.x", "--main=./{out}.x",
    )  # fmt: skip


def test_in_force_has_the_fixed_environment_and_the_profiles_own() -> None:
    in_force = profile(environment={"LANG": "C", "EXTRA": "1"}).in_force("p", "sha256:1")
    assert in_force.environment == {
        "HOME": "/work", "LANG": "C", "PATH": "/usr/local/bin:/usr/bin:/bin", "TZ": "UTC", "EXTRA": "1",
    }  # fmt: skip
    assert in_force.compile_limits is None
    compile_limits = RuntimeProfile.model_validate(COMPILED).in_force("p", "i").compile_limits
    assert compile_limits is not None
    assert compile_limits.cpu_time_ns == 30_000_000_000


def test_the_fingerprint_is_over_what_runs_and_not_over_its_description() -> None:
    base = profile().in_force("p", "sha256:1").fingerprint
    assert profile(description="other").in_force("p", "sha256:1").fingerprint == base
    assert profile(default=False).in_force("p", "sha256:1").fingerprint == base
    assert profile().in_force("p", "sha256:2").fingerprint != base
    assert profile(run=["xrun", "-v", "{entry}"]).in_force("p", "sha256:1").fingerprint != base
    assert profile(packages={"debian": ["bc"]}).in_force("p", "sha256:1").fingerprint != base


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"image": {}}, "either dockerfile"),
        ({"image": {"dockerfile": "a", "reference": "b@sha256:" + "0" * 64}}, "either dockerfile"),
        ({"image": {"dockerfile": "../../etc"}}, "not the name of a folder"),
        ({"image": {"reference": "debian:bookworm"}}, "by its digest"),
        ({"run": []}, "at least 1"),
        ({"run": ["x", "{out}"]}, "known here: {entry}"),
        ({"run": ["x", "{what}"]}, "{what}"),
        ({"run": ["x", "a\x00b"]}, "NUL"),
        ({"compile": {"argv": ["cc", "{entry}"]}, "run": ["{out}"]}, "does not mention {out}"),
        ({"compile": {"argv": ["cc", "-o", "{out}", "a{sources}"]}}, "one by itself"),
        ({"suffixes": ["py"]}, "suffix"),
        ({"packages": {"debian": ["bc; rm -rf /"]}}, "Debian package"),
        ({"packages": {"pypi": ["-r /etc/passwd"]}}, "PyPI package"),
        ({"packages": {"pypi": ["a @ http://x"]}}, "PyPI package"),
        ({"environment": {"A B": "x"}}, "environment variable"),
        ({"default": "sometimes"}, "valid boolean"),
        ({"cpus": 0}, "greater than or equal to 1"),
        ({"executable_folders": ["/etc"]}, "/tmp"),
        ({"limits": {"defaults": {"cpu_time_s": -1}}}, "greater than 0"),
        ({"surprise": 1}, "Extra inputs"),
    ],
)
def test_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        profile(**changes)
    assert words in str(caught.value)


def self_test(verdict: bool, reason: str | None) -> dict[str, Any]:
    return {"name": "n", "files": {"a.x": ""}, "verdict": verdict, "reason": reason}


def test_self_tests_must_show_true_false_and_a_time_out() -> None:
    true, false, late = self_test(True, None), self_test(False, "exit.code"), self_test(False, "cpu_time.exceeded")
    assert profile(self_tests=[true, false, late]).self_tests[2].reason is ReasonCode.CPU_TIME_EXCEEDED
    for missing in ([true, false], [false, late], [true]):
        with pytest.raises(ValidationError, match="self_tests need"):
            profile(self_tests=missing)
    with pytest.raises(ValidationError, match="not a reason for a false verdict"):
        profile(self_tests=[true, late, self_test(False, "host.starved")])
    with pytest.raises(ValidationError, match="has a reason"):
        profile(self_tests=[true, late, self_test(False, None)])

"""The profiles that come with grader, and the Dockerfiles of their images."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grader.core.limits import Limits
from grader.core.reasons import ReasonCode
from grader.runtimes import LoadedProfile, data_folder
from grader.runtimes.folders import load_profile

SHIPPED = [load_profile(file) for file in sorted(data_folder("runtimes").glob("*.yaml"))]
DOCKERFILES = sorted(data_folder("Dockerfiles").glob("*/Dockerfile"))
NAMES = {
    "bash", "c", "cpp", "go", "java", "lua", "node", "perl", "php", "pypy", "python", "ruby", "rust",
}  # fmt: skip
DERIVED = {"python-agent": "python"}
"""Profiles that add packages to the image of another."""
WITHOUT_A_PROFILE = {"base", "supervisor"}
TIME = {ReasonCode.CPU_TIME_EXCEEDED, ReasonCode.WALL_TIME_EXCEEDED}

each_profile = pytest.mark.parametrize("loaded", SHIPPED, ids=[loaded.name for loaded in SHIPPED])
each_dockerfile = pytest.mark.parametrize("file", DOCKERFILES, ids=[file.parent.name for file in DOCKERFILES])


def test_all_are_there_and_every_image_belongs_to_one() -> None:
    assert {loaded.name for loaded in SHIPPED} == NAMES | set(DERIVED)
    assert {file.parent.name for file in DOCKERFILES} == NAMES | WITHOUT_A_PROFILE
    for loaded in SHIPPED:
        assert loaded.image_folder() == data_folder("Dockerfiles") / DERIVED.get(loaded.name, loaded.name)
        if loaded.name in DERIVED:
            assert loaded.profile.packages.pypi
            assert all("==" in package for package in loaded.profile.packages.pypi), "so that all get the same image"
            assert not loaded.profile.default


@each_profile
def test_self_tests_show_true_a_mistake_and_a_time_out(loaded: LoadedProfile) -> None:
    reasons = [test.reason for test in loaded.profile.self_tests]
    assert None in reasons
    assert TIME.intersection(reasons)
    assert set(reasons) - {None} - TIME
    if loaded.profile.compile is not None:
        assert ReasonCode.COMPILE_FAILED in reasons


@each_profile
def test_every_self_test_has_an_entry_point_and_limits_that_are_allowed(loaded: LoadedProfile) -> None:
    for test in loaded.profile.self_tests:
        assert loaded.profile.entry_point(list(test.files)) is not None, test.name
        assert loaded.profile.limits.refusals(test.limits) == (), test.name


@each_profile
def test_a_compile_command_has_bounds_of_its_own(loaded: LoadedProfile) -> None:
    """Left out, a compiler would have the built-in limits, which are those of a small program."""
    if loaded.profile.compile is not None:
        said = loaded.profile.compile.limits
        for name in ("cpu_time_s", "wall_time_s", "memory_bytes", "processes", "disk_bytes", "file_size_bytes"):
            assert getattr(said, name) is not None, name


@each_profile
def test_defaults_are_within_the_maximum(loaded: LoadedProfile) -> None:
    limits = loaded.profile.limits
    assert limits.refusals(limits.defaults) == ()
    assert limits.effective(Limits()).wall_time_ns > limits.effective(Limits()).cpu_time_ns


def test_a_language_has_one_default_profile_and_a_suffix_one_language() -> None:
    default = [loaded.profile.language for loaded in SHIPPED if loaded.profile.default]
    assert len(default) == len(set(default))
    languages: dict[str, set[str]] = {}
    for loaded in SHIPPED:
        for suffix in loaded.profile.suffixes:
            languages.setdefault(suffix, set()).add(loaded.profile.language)
    assert {suffix: found for suffix, found in languages.items() if len(found) > 1} == {}


@each_profile
def test_no_variable_makes_a_virtual_machine_write_to_standard_error(loaded: LoadedProfile) -> None:
    assert {"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS"}.isdisjoint(loaded.profile.environment)


@each_dockerfile
def test_a_dockerfile_is_of_debian_packages_and_works_with_any_builder(file: Path) -> None:
    text = file.read_text()
    steps = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert steps[:2] == ["ARG BASE_IMAGE=debian:bookworm-slim", "FROM ${BASE_IMAGE}"]
    assert len(re.findall(r"^FROM ", text, re.MULTILINE)) == 1
    # Only BuildKit knows these; the builder of engine 20.10 does not.
    assert re.search(r"^# *syntax *=|--mount|--chmod|--link|<<", text, re.MULTILINE) is None
    # Nothing from anywhere but Debian, and nothing that runs when a box starts.
    assert re.search(r"https?://|curl|wget|\bpip3? |\bnpm |\bgem |\bADD ", text) is None
    assert re.search(r"^(ENTRYPOINT|CMD|USER|VOLUME|ENV|HEALTHCHECK|WORKDIR)\b", text, re.MULTILINE) is None


@each_dockerfile
def test_an_image_is_small_and_is_tried_when_it_is_built(file: Path) -> None:
    text = file.read_text()
    if "apt-get install" not in text:
        assert file.parent.name == "base"
        return
    assert text.count("apt-get install") == 1
    assert "--no-install-recommends" in text
    [step] = [step for step in re.split(r"\n(?=[A-Z]+ )", text) if "apt-get install" in step]
    assert "rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*" in step, "not in the layer that makes them"
    assert not step.rstrip().endswith("/var/log/*"), "nothing tries what was installed"

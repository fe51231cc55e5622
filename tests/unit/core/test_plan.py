"""The plan's digests: written out in the order of canonical JSON, they must be those of the plain form."""

from hypothesis import given
from hypothesis import strategies as st

from grader.core.canonical import digest, sha256_hex
from grader.core.cases import InputFile, OutputFile, ProgramBehaves, ProgramCase
from grader.core.expectation import Task
from grader.core.limits import LimitRange, Limits
from grader.core.plan import Invocation, ProfileInForce, limit_problems, make_plan
from grader.matchers import Contains

_NAMES = st.text(alphabet='abc"\\é\n', min_size=1, max_size=4).map(str.encode)
_FILES = st.dictionaries(_NAMES, st.binary(max_size=3), max_size=3)


def _plain(invocation: Invocation) -> dict[str, object]:
    return {
        "profile": invocation.profile,
        "arguments": [sha256_hex(argument) for argument in invocation.arguments],
        "stdin": sha256_hex(invocation.stdin),
        "environment": {name: sha256_hex(value) for name, value in invocation.environment.items()},
        "files": sorted([sha256_hex(f.name), sha256_hex(f.content), f.executable] for f in invocation.files),
        "collect": sorted(sha256_hex(name) for name in invocation.collect),
        "limits": dict(invocation.limits),
    }


@given(
    st.lists(st.binary(max_size=4).map(lambda data: data.replace(b"\0", b"")), max_size=3),
    st.binary(max_size=4),
    _FILES,
    st.sets(_NAMES, max_size=3),
    st.text(min_size=1, max_size=5),
)
def test_digests_are_those_of_the_plain_form(
    arguments: list[bytes], stdin: bytes, files: dict[bytes, bytes], collect: set[bytes], profile: str
) -> None:
    case = ProgramCase(
        arguments=tuple(arguments),
        stdin=stdin,
        environment={"B": b"1", "A": b'"'},
        files=tuple(InputFile(name=name, content=content) for name, content in files.items()),
        output_files=tuple(OutputFile(name=name, expected=Contains(expected=b"x")) for name in sorted(collect)),
    )
    profiles = [ProfileInForce(name=profile, image_id="i"), ProfileInForce(name=profile + "2", image_id="i")]
    task = Task(conditions=(ProgramBehaves(cases=(case, ProgramCase(stdin=b"2")), repetitions=2),))
    plan = make_plan(task, profiles)
    digests = [digest(_plain(run.invocation)) for run in plan.runs]
    assert [run.invocation.digest for run in plan.runs] == digests
    assert plan.fingerprint == digest(digests)


def test_every_limit_above_the_maximum_is_named_for_every_case() -> None:
    profile = ProfileInForce(name="p", image_id="i", limits=LimitRange(maximum=Limits(cpu_time_s=1)))
    cases = (ProgramCase(limits=Limits(cpu_time_s=2)), ProgramCase(), ProgramCase(limits=Limits(cpu_time_s=2)))
    problems = limit_problems(Task(conditions=(ProgramBehaves(cases=cases),)), [profile])
    assert [problem.partition(" under")[0] for problem in problems] == ["case 0", "case 2"]

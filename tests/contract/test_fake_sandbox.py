"""The contract, on the fake sandbox: a fake that broke it would let tests pass that the real one fails."""

from collections.abc import Iterator

import pytest

from grader.core.plan import ProfileInForce
from grader.core.reasons import ReasonCode
from grader.sandbox.base import Failed, Program
from grader.sandbox.bench import Bench, ContractBrokenError
from grader.sandbox.contract import CHECKS, Check, run_checks
from grader.sandbox.fake import HANGS, Answer, Behaviour, Call, FakeSandbox
from grader.sandbox.probe import probe_script

pytestmark = pytest.mark.anyio
PROFILE = ProfileInForce(name="contract", image_id="none")


def compile_probe(program: Program) -> Answer:
    fails = b"wrong" in b" ".join(program.compile_command or ())
    return Behaviour(exit_code=3, stderr=b"wrong\n") if fails else Behaviour()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
async def test_the_fake_keeps_the_contract(check: Check) -> None:
    async with FakeSandbox(probe_script, compiles=compile_probe) as sandbox:
        await check.run(Bench(sandbox, PROFILE))


def broken_scripts() -> Iterator[tuple[str, str, Answer]]:
    """A check, the verb that it asks for, and an answer that breaks the promise."""
    yield "bytes", "echo", Behaviour(stdout=b"\xef\xbf\xbd")
    yield "streams", "both", Behaviour(stdout=b"outerr")
    yield "arguments", "arguments", Behaviour(stdout=b"")
    yield "environment", "environment", Behaviour(stdout=b"HOME=/root\0")
    yield "input-files", "where", Behaviour(stdout=b"/\n")
    yield "output-files", "make", Behaviour(files={b"out.txt": b"content of the link's target"})
    yield "endings", "exit", Behaviour(signal=9)
    yield "output-limit", "endless", Behaviour(stdout=b"y\n")
    yield "time-limits", "spin", Behaviour()
    yield "memory-limit", "child-hog", Behaviour(stdout=b"right")
    yield "file-size-limit", "write-big", Behaviour()
    yield "processes", "bomb", Behaviour()
    yield "stdin-unread", "right", Failed(ReasonCode.BOX_LOST, "gone", retryable=False)
    yield "no-traces", "look", Behaviour(stdout=b"litter\n")
    yield "cannot-start", "right", Behaviour(exit_code=126)
    yield "measures", "right", Behaviour(stdout=b"right", measures={"oom_kills": None})
    yield "port", "leave", Behaviour(stdout=b"right")
    yield "compile", "read", Behaviour(stdout=b"root:x:0:0")


@pytest.mark.parametrize(("name", "verb", "answer"), list(broken_scripts()), ids=lambda value: str(value)[:20])
async def test_a_check_sees_a_sandbox_that_breaks_its_promise(name: str, verb: str, answer: Answer) -> None:
    def script(call: Call) -> Answer:
        return answer if call.invocation.arguments[0] == verb.encode() else probe_script(call)

    check = next(check for check in CHECKS if check.name == name)
    async with FakeSandbox(script, compiles=compile_probe) as sandbox:
        with pytest.raises(ContractBrokenError):
            await check.run(Bench(sandbox, PROFILE))
        results = await run_checks(Bench(sandbox, PROFILE), [check])
    assert results[0].broken


async def test_a_check_without_an_answer_is_broken_not_endless() -> None:
    async with FakeSandbox(lambda _: HANGS) as sandbox:
        (result,) = await run_checks(Bench(sandbox, PROFILE), [CHECKS[0]], at_most_s=0.05)
    assert result.broken == "no answer within 0.05 s"

"""Grades a stream of generated programs: a verdict and a reward for each, and undetermined ones counted by reason.

    python examples/grade_many.py

The programs here stand in a list; a model that writes them would take the place of `generated`.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import grader

TASK = grader.load_task(Path(__file__).parent / "word-order")

PROGRAMS = {
    "keeps the order": "print(*dict.fromkeys(input().split()), sep='\\n')",
    "sorts instead": "print(*sorted(set(input().split())), sep='\\n')",
    "lucky at times": "print(*set(input().split()), sep='\\n')",
    "no Python": "for word in input(:",
    "no text": "print('\ud800')",
}

refused: Counter[str] = Counter()


async def generated() -> AsyncIterator[tuple[grader.Task, grader.Submission]]:
    """Programs as they come. Asked for the next one only when there is room for it."""
    for name, text in PROGRAMS.items():
        await asyncio.sleep(0)
        try:
            yield TASK, grader.Submission.from_source(text, language="python", name=name)
        except grader.SubmissionError as error:
            refused[error.code] += 1
            print(f"{name:<16} refused        reward 0.0   {error.message}")


def reward_of(verdict: grader.Verdict) -> float | None:
    """1 or 0; None only where the failure was ours, so that the sample is left out or drawn again.

    What a program can choose (to differ from run to run, to bring its box down) is 0: else it could choose None over 0.
    """
    return verdict.reward(true=1.0, false=0.0, undetermined=0.0 if verdict.inducible else None)


async def main() -> None:
    undetermined: Counter[str] = Counter()
    async with grader.Runner(isolation="submission") as runner, aclosing(runner.grade_many(generated())) as stream:
        async for graded in stream:
            if graded.verdict is None:  # refused before any of it ran
                refused[graded.error.code if graded.error is not None else ""] += 1
                continue
            verdict = graded.verdict
            if verdict.value is grader.Tri.UNDETERMINED:
                undetermined.update(finding.code.value for finding in verdict.findings[:1])
            why = verdict.findings[0].code.value if verdict.findings else ""
            print(f"{graded.submission_name:<16} {verdict.value!s:<14} reward {reward_of(verdict)!s:<5} {why}")
    print("undetermined:", dict(undetermined), "refused:", dict(refused))


if __name__ == "__main__":
    asyncio.run(main())

"""What came of one submission, or of the evidence of what an agent did."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from grader.core.expectation import Task
from grader.core.observation import Observation
from grader.core.plan import Plan
from grader.core.selection import Selection
from grader.core.verdict import Verdict
from grader.errors import GraderError
from grader.runner.verdicts import for_the_whole


@dataclass(frozen=True)
class Graded:
    """A verdict on one submission with all it rests on, or the error for which it was refused.

    Of evidence that was scored there is no plan, and `submission_name` is the name of what was read.
    """

    submission_name: str
    task: Task | None = None
    """The effective task: what of the task was selected."""
    selection: Selection | None = None
    plan: Plan | None = None
    observation: Observation | None = None
    verdict: Verdict | None = None
    """The verdict on the effective task; None if the submission was refused."""
    error: GraderError | None = None
    """Why it was refused: nothing of it was run."""
    record: Path | None = None
    entry: int | None = None
    """Its place in the record, from 0."""
    observations: tuple[Observation, ...] = ()
    """Of what a judge was asked about: tools, execution trace and judgement, as far as there are any."""
    warnings: tuple[str, ...] = ()
    """What one should know before trusting the verdict, such as a condition that this evidence can never settle."""

    @property
    def whole_verdict(self) -> Verdict | None:
        """The verdict on the whole task: undetermined (`not_selected`) if only part of it was selected."""
        return None if self.verdict is None else for_the_whole(self.verdict, self.selection)

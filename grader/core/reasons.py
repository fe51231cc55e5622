"""The closed list of reason codes: every verdict that is not true carries at least one of them.

Adding a code is a change of the public interface; docs/reference/reasons.md is generated from this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum


class ReasonKind(Enum):
    """What a reason does to a verdict."""

    FALSE = "F"
    """The program did something the case does not allow: the run is false."""
    UNDETERMINED = "U"
    """The evidence does not settle it."""
    MISSING = "M"
    """There is no run to judge, for a cause of ours: undetermined."""
    ERROR = "E"
    """Wrong before anything ran."""


class ReasonCode(StrEnum):
    """A reason code; its text is what records, reports and users see."""

    STDOUT_DIFFERS = "stdout.differs"
    STDERR_DIFFERS = "stderr.differs"
    FILE_DIFFERS = "file.differs"
    FILE_MISSING = "file.missing"
    FILE_NOT_REGULAR = "file.not_regular"
    EXIT_CODE = "exit.code"
    SIGNAL = "signal"
    CPU_TIME_EXCEEDED = "cpu_time.exceeded"
    WALL_TIME_EXCEEDED = "wall_time.exceeded"
    MEMORY_EXCEEDED = "memory.exceeded"
    OUTPUT_EXCEEDED = "output.exceeded"
    FILE_SIZE_EXCEEDED = "file_size.exceeded"
    COMPILE_FAILED = "compile.failed"
    CANNOT_START = "cannot_start"
    TOOL_MISSING = "tool.missing"
    TOOL_ARGUMENTS = "tool.arguments"
    TOOL_EXTRA = "tool.extra"
    TOOL_FORBIDDEN = "tool.forbidden"
    TOOL_COUNT = "tool.count"
    TOOL_ORDER = "tool.order"
    JUDGE_VIOLATION = "judge.violation"

    RUNS_DISAGREE = "runs.disagree"
    EVIDENCE_TRUNCATED = "evidence.truncated"
    EVIDENCE_NOT_COLLECTED = "evidence.not_collected"
    EVIDENCE_INCOMPLETE = "evidence.incomplete"
    EVIDENCE_CONFLICT = "evidence.conflict"
    EVIDENCE_SELF_REPORTED = "evidence.self_reported"
    ARGUMENTS_NOT_RECORDED = "arguments.not_recorded"
    ARGUMENTS_UNPARSABLE = "arguments.unparsable"
    ORDER_OVERLAP = "order.overlap"
    ORDER_BUDGET = "order.budget"
    CHECKER_FAILED = "checker.failed"
    MATCHER_FAILED = "matcher.failed"
    NEEDS_EXECUTION = "needs_execution"
    NOT_SELECTED = "not_selected"
    JUDGE_UNAVAILABLE = "judge.unavailable"
    JUDGE_UNPARSABLE = "judge.unparsable"
    JUDGE_OVERFLOW = "judge.overflow"
    JUDGE_SPLIT = "judge.split"
    JUDGE_UNCITED = "judge.uncited"
    JUDGE_CONTRADICTS_FACT = "judge.contradicts_fact"
    JUDGE_NOT_APPLICABLE = "judge.not_applicable"
    JUDGE_EVIDENCE_REQUIRED = "judge.evidence_required"

    ENGINE_UNREACHABLE = "engine.unreachable"
    IMAGE_MISSING = "image.missing"
    BOX_LOST = "box.lost"
    SUPERVISOR_LOST = "supervisor.lost"
    HOST_STARVED = "host.starved"
    HOST_OUT_OF_MEMORY = "host.out_of_memory"
    HOST_DISK_FULL = "host.disk_full"
    INTERRUPTED = "interrupted"
    PREREQUISITE_MISSING = "prerequisite.missing"
    WORKER_LOST = "worker.lost"

    USAGE = "usage"
    TASK_INVALID = "task.invalid"
    SUBMISSION_REFUSED = "submission.refused"
    RECORD_CORRUPT = "record.corrupt"
    RECORD_TOO_NEW = "record.too_new"
    RECORD_MISMATCH = "record.mismatch"
    PROFILE_UNKNOWN = "profile.unknown"
    PREREQUISITE = "prerequisite"

    @property
    def kind(self) -> ReasonKind:
        """Whether this reason makes something false, undetermined, missing, or is an error."""
        return REASONS[self].kind

    @property
    def inducible(self) -> bool:
        """Whether a program could bring this about on purpose. In a reward that is worth nothing, like false."""
        return REASONS[self].inducible

    @property
    def meaning(self) -> str:
        """One line that says what happened."""
        return REASONS[self].meaning

    @property
    def anchor(self) -> str:
        """The heading's anchor in docs/reference/reasons.md."""
        return self.value.replace(".", "")


@dataclass(frozen=True)
class Reason:
    """What a reason code means."""

    kind: ReasonKind
    meaning: str
    inducible: bool = False


_F, _U, _M, _E = ReasonKind.FALSE, ReasonKind.UNDETERMINED, ReasonKind.MISSING, ReasonKind.ERROR
_C = ReasonCode

REASONS: dict[ReasonCode, Reason] = {
    _C.STDOUT_DIFFERS: Reason(_F, "standard output is not what the case expects"),
    _C.STDERR_DIFFERS: Reason(_F, "standard error is not what the case expects"),
    _C.FILE_DIFFERS: Reason(_F, "an output file is not what the case expects"),
    _C.FILE_MISSING: Reason(_F, "an output file that the case expects was not there when the run ended"),
    _C.FILE_NOT_REGULAR: Reason(_F, "an output file is a link, a directory, a FIFO or a device, not a regular file"),
    _C.EXIT_CODE: Reason(_F, "the program exited with a code that the case does not allow"),
    _C.SIGNAL: Reason(_F, "the program was ended by a signal"),
    _C.CPU_TIME_EXCEEDED: Reason(_F, "the program and its children used more CPU time than the limit"),
    _C.WALL_TIME_EXCEEDED: Reason(_F, "the program ran longer than the wall-time limit"),
    _C.MEMORY_EXCEEDED: Reason(_F, "the kernel killed a process of the run at the memory limit"),
    _C.OUTPUT_EXCEEDED: Reason(_F, "the program wrote more to a stream than the limit"),
    _C.FILE_SIZE_EXCEEDED: Reason(_F, "the program wrote a file larger than the limit"),
    _C.COMPILE_FAILED: Reason(_F, "the compile command did not end well, so no case could run"),
    _C.CANNOT_START: Reason(_F, "the program's entry point could not be executed"),
    _C.TOOL_MISSING: Reason(_F, "a required tool was not executed, and the evidence is complete"),
    _C.TOOL_ARGUMENTS: Reason(_F, "a tool was executed, but no call matched the required arguments"),
    _C.TOOL_EXTRA: Reason(_F, "a tool was executed that the condition does not name"),
    _C.TOOL_FORBIDDEN: Reason(_F, "a forbidden tool was executed"),
    _C.TOOL_COUNT: Reason(_F, "a tool was executed more often than allowed"),
    _C.TOOL_ORDER: Reason(_F, "the tools cannot have been executed in the required order"),
    _C.JUDGE_VIOLATION: Reason(_F, "the judge found a violation, and cited where"),
    _C.RUNS_DISAGREE: Reason(_U, "repetitions of the same invocation reached different verdicts", inducible=True),
    _C.EVIDENCE_TRUNCATED: Reason(
        _U, "only part of the evidence was kept, and that part does not settle it", inducible=True
    ),
    _C.EVIDENCE_NOT_COLLECTED: Reason(_U, "the evidence asked for was not collected when the program ran"),
    _C.EVIDENCE_INCOMPLETE: Reason(_U, "the evidence is incomplete, so an absence proves nothing"),
    _C.EVIDENCE_CONFLICT: Reason(_U, "two sources of evidence contradict each other"),
    _C.EVIDENCE_SELF_REPORTED: Reason(
        _U, "the evidence is the program's own word, so an absence proves nothing", inducible=True
    ),
    _C.ARGUMENTS_NOT_RECORDED: Reason(_U, "a tool's arguments were not recorded, or were redacted or cut"),
    _C.ARGUMENTS_UNPARSABLE: Reason(_U, "a tool's recorded arguments cannot be parsed as an object", inducible=True),
    _C.ORDER_OVERLAP: Reason(_U, "the recorded times allow the required order and also another one", inducible=True),
    _C.ORDER_BUDGET: Reason(_U, "the search for an order was stopped at its budget", inducible=True),
    _C.CHECKER_FAILED: Reason(_U, "the checker program did not give a verdict"),
    _C.MATCHER_FAILED: Reason(_U, "a matcher could not process the value", inducible=True),
    _C.NEEDS_EXECUTION: Reason(_U, "the record does not hold a run that this expectation needs"),
    _C.NOT_SELECTED: Reason(_U, "only part of the task was selected, so the whole is not settled"),
    _C.JUDGE_UNAVAILABLE: Reason(_U, "the judge did not answer"),
    _C.JUDGE_UNPARSABLE: Reason(_U, "the judge's answer could not be parsed, or it refused", inducible=True),
    _C.JUDGE_OVERFLOW: Reason(_U, "the evidence does not fit the judge's context", inducible=True),
    _C.JUDGE_SPLIT: Reason(_U, "too few of the judge's samples were determined, or they split", inducible=True),
    _C.JUDGE_UNCITED: Reason(
        _U, "the judge found a violation without citing a turn or step that exists", inducible=True
    ),
    _C.JUDGE_CONTRADICTS_FACT: Reason(
        _U, "the judge's answer contradicts a fact that the evidence settles", inducible=True
    ),
    _C.JUDGE_NOT_APPLICABLE: Reason(_U, "the judge's question does not apply", inducible=True),
    _C.JUDGE_EVIDENCE_REQUIRED: Reason(_U, "the trace that the judge requires is not there", inducible=True),
    _C.ENGINE_UNREACHABLE: Reason(_M, "the Docker engine did not answer"),
    _C.IMAGE_MISSING: Reason(_M, "the runtime's image was gone"),
    _C.BOX_LOST: Reason(_M, "the box that ran the program was lost", inducible=True),
    _C.SUPERVISOR_LOST: Reason(_M, "the supervisor in the box was lost", inducible=True),
    _C.HOST_STARVED: Reason(_M, "the machine was too busy for the program to get its share of time"),
    _C.HOST_OUT_OF_MEMORY: Reason(_M, "the machine ran out of memory, not the box"),
    _C.HOST_DISK_FULL: Reason(_M, "the machine's disk was full"),
    _C.INTERRUPTED: Reason(_M, "grading was interrupted before this run ended"),
    _C.PREREQUISITE_MISSING: Reason(_M, "the runtime lacks a module or tool that its profile promises"),
    _C.WORKER_LOST: Reason(_M, "the worker that should have run it was lost"),
    _C.USAGE: Reason(_E, "the command line or call cannot be carried out as given"),
    _C.TASK_INVALID: Reason(_E, "the task is not valid"),
    _C.SUBMISSION_REFUSED: Reason(_E, "the submission was refused before any of it ran"),
    _C.RECORD_CORRUPT: Reason(_E, "the record was changed or damaged after it was written"),
    _C.RECORD_TOO_NEW: Reason(_E, "the record was written by a newer version of grader"),
    _C.RECORD_MISMATCH: Reason(_E, "the record answers another plan than the one asked for"),
    _C.PROFILE_UNKNOWN: Reason(_E, "no runtime profile has this name"),
    _C.PREREQUISITE: Reason(_E, "something this machine needs is missing"),
}

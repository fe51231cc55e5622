"""Judges `ToolsCalled` and `ToolsNotCalled`.

What was seen decides even in partial evidence; an absence decides only when the evidence is complete. So a required
tool can be *true* early and an extra, forbidden or surplus call *false* early, never the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence

from grader.core.reasons import ReasonCode
from grader.core.tools.conditions import ToolCallRequirement, ToolsCalled, ToolsNotCalled
from grader.core.tri import Tri
from grader.scorers.assignment import most_assigned
from grader.scorers.tool_evidence import Fit, Part, ToolEvidence, shown, shown_requirement

_SAME = "two records may be of one execution"


def judge_tools_called(condition: ToolsCalled, evidence: ToolEvidence) -> tuple[Part, ...]:
    """Presence and counts of every requirement; with `exhaustive`, that no other name was executed."""
    fits = [evidence.fit(requirement) for requirement in condition.tools]
    by_name: dict[str, list[int]] = {}
    for index, requirement in enumerate(condition.tools):
        by_name.setdefault(requirement.name, []).append(index)
    parts: list[Part] = []
    for indices in by_name.values():
        # Requirements that share a name need different calls; those of other names have none in common with them.
        group = [(condition.tools[index], fits[index]) for index in indices if condition.tools[index].at_least > 0]
        parts.extend(_presence(group, evidence))
    for requirement, fit in zip(condition.tools, fits, strict=True):
        if requirement.at_most is not None:
            parts.append(_at_most(requirement, requirement.at_most, fit, evidence))
    if condition.exhaustive:
        parts.append(_nothing_else({requirement.name for requirement in condition.tools}, evidence))
    return tuple(parts)


def judge_tools_not_called(condition: ToolsNotCalled, evidence: ToolEvidence) -> tuple[Part, ...]:
    """One part: that no executed call has a name that one of the patterns fits."""
    for call in evidence.calls:
        for name in call.names:
            pattern = next((pattern for pattern in condition.tools if fits_glob(pattern, name)), None)
            if pattern is not None:
                by = "" if pattern == name else f", which {shown(pattern)} forbids"
                return (Part(Tri.FALSE, f"{shown(name)} was executed{by}", ReasonCode.TOOL_FORBIDDEN),)
    listed = " or ".join(shown(pattern) for pattern in condition.tools)
    return (evidence.absence(Tri.TRUE, ReasonCode.TOOL_FORBIDDEN, f"{listed} was not executed", _unseen(listed)),)


def fits_glob(pattern: str, name: str) -> bool:
    """Whether `name` is of the form `pattern`: `*` is any characters (also none), `?` one, others themselves.

    Takes time in the product of the lengths at most, whatever the pattern.
    """
    at, star, resume = 0, -1, 0
    position = 0
    while position < len(name):
        if at < len(pattern) and pattern[at] == "*":
            star, resume = at, position
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", name[position]):
            at += 1
            position += 1
        elif star >= 0:
            resume += 1
            at, position = star + 1, resume
        else:
            return False
    return all(char == "*" for char in pattern[at:])


def _presence(group: Sequence[tuple[ToolCallRequirement, Fit]], evidence: ToolEvidence) -> list[Part]:
    """A part for each requirement of one name: enough different calls for all of them, definitely or possibly."""
    wanted = [requirement.at_least for requirement, _ in group]
    # Calls that may be one execution count once here ...
    definite = [sorted({evidence.group[index] for index in fit.definite}) for _, fit in group]
    got = most_assigned(wanted, definite, len(evidence.calls))
    if got == wanted:
        return [_is_there(requirement) for requirement, _ in group]
    # ... and as many here.
    could = most_assigned(wanted, [fit.possible for _, fit in group], len(evidence.calls))
    doubt = next((fit.doubt for _, fit in group if fit.doubt is not None), None)
    if could == wanted:
        return [
            _is_there(requirement) if count == requirement.at_least else _doubtful(requirement, fit.doubt or doubt)
            for (requirement, fit), count in zip(group, got, strict=True)
        ]
    parts: list[Part] = []
    for (requirement, fit), count in zip(group, could, strict=True):
        if count < requirement.at_least:
            parts.append(_missing(requirement, fit, evidence, sum(wanted)))
        elif evidence.executions(fit.definite) >= requirement.at_least:
            parts.append(_is_there(requirement))
        else:
            parts.append(_doubtful(requirement, fit.doubt or doubt))
    return parts


def _is_there(requirement: ToolCallRequirement) -> Part:
    times = "" if requirement.at_least == 1 else f" at least {requirement.at_least} times"
    manner = " with the required arguments" if requirement.arguments else ""
    return Part(Tri.TRUE, f"{shown_requirement(requirement)} was executed{times}{manner}")


def _doubtful(requirement: ToolCallRequirement, doubt: Part | None) -> Part:
    """Enough calls may fit, not enough are known to."""
    name, full = shown(requirement.name), shown_requirement(requirement)
    if doubt is None:
        text = f"{full} was executed, but perhaps not {_times(requirement.at_least)}: {_SAME}"
        return Part(Tri.UNDETERMINED, text, ReasonCode.EVIDENCE_INCOMPLETE)
    return Part(Tri.UNDETERMINED, f"{name} was executed, but {doubt.text}: {full}", doubt.code)


def _missing(requirement: ToolCallRequirement, fit: Fit, evidence: ToolEvidence, total: int) -> Part:
    """Not enough calls can fit: false if nothing is unseen."""
    name, full, count = shown(requirement.name), shown_requirement(requirement), len(fit.named)
    if count == 0:
        return evidence.absence(Tri.FALSE, ReasonCode.TOOL_MISSING, f"{name} was not executed", _unseen(name))
    if len(fit.possible) == 0:
        text = f"{name} was executed, but no call matched the required arguments: {full}: {fit.miss}"
        return evidence.absence(Tri.FALSE, ReasonCode.TOOL_ARGUMENTS, text)
    if len(fit.possible) < requirement.at_least:
        how_many = f"{len(fit.possible)} of at least {requirement.at_least} times"
        if len(fit.possible) == count:
            return evidence.absence(Tri.FALSE, ReasonCode.TOOL_MISSING, f"{name} was executed {how_many}")
        text = f"{name} was executed, but matched the required arguments {how_many}: {full}: {fit.miss}"
        return evidence.absence(Tri.FALSE, ReasonCode.TOOL_ARGUMENTS, text)
    text = f"{name} was executed {_times(count)}, but {total} different calls are required, and {full} has none left"
    code = ReasonCode.TOOL_MISSING if count < total else ReasonCode.TOOL_ARGUMENTS
    return evidence.absence(Tri.FALSE, code, text)


def _at_most(requirement: ToolCallRequirement, most: int, fit: Fit, evidence: ToolEvidence) -> Part:
    """Every call that matches counts, whichever requirement it serves."""
    full = shown_requirement(requirement)
    at_least = evidence.executions(fit.definite)
    if at_least > most:
        return Part(Tri.FALSE, f"{full} was executed {_times(at_least)}, at most {most} allowed", ReasonCode.TOOL_COUNT)
    if len(fit.possible) > most:
        if fit.doubt is not None:
            text = f"{full} may have been executed more than {_times(most)}: {fit.doubt.text}"
            return Part(Tri.UNDETERMINED, text, fit.doubt.code)
        text = f"{full} may have been executed more than {_times(most)}: {_SAME}"
        return Part(Tri.UNDETERMINED, text, ReasonCode.EVIDENCE_INCOMPLETE)
    if most == 0:
        return evidence.absence(Tri.TRUE, ReasonCode.TOOL_COUNT, f"{full} was not executed", f"no {full} was seen")
    fact = f"{full} was executed at most {_times(most)}"
    return evidence.absence(Tri.TRUE, ReasonCode.TOOL_COUNT, fact, f"not more than {most} of {full} were seen")


def _nothing_else(allowed: set[str], evidence: ToolEvidence) -> Part:
    """Exhaustive, by name: a call counts as named if any record of it has an allowed name."""
    named = {evidence.group[i] for i, call in enumerate(evidence.calls) if not allowed.isdisjoint(call.names)}
    unsure: str | None = None
    for index, call in enumerate(evidence.calls):
        if not allowed.isdisjoint(call.names):
            continue
        name = shown(call.names[0])
        if evidence.group[index] not in named:
            return Part(Tri.FALSE, f"{name} was executed, which is not among the named tools", ReasonCode.TOOL_EXTRA)
        unsure = unsure or name
    if unsure is not None:
        text = f"{unsure} was executed, or is another name of a call that is allowed: {_SAME}"
        return Part(Tri.UNDETERMINED, text, ReasonCode.EVIDENCE_INCOMPLETE)
    tool = "no other tool" if allowed else "no tool"
    return evidence.absence(Tri.TRUE, ReasonCode.TOOL_EXTRA, f"{tool} was executed", f"{tool} was seen")


def _unseen(name: str) -> str:
    return f"no execution of {name} was seen"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"

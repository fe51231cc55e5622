"""docs/reference/reasons.md: every reason code."""

from __future__ import annotations

from grader.core.reasons import ReasonCode, ReasonKind
from scripts.generate_docs.source import table

_HEADINGS = {
    ReasonKind.FALSE: (
        "The run is false",
        "The program did something that its case, or the condition, does not allow.",
    ),
    ReasonKind.UNDETERMINED: ("The evidence does not settle it", "Something ran, but what is known proves neither."),
    ReasonKind.MISSING: (
        "The run is missing",
        "There is no run to judge, for a cause that is not the program's. Its cell is undetermined.",
    ),
    ReasonKind.ERROR: (
        "Nothing ran",
        "Errors before the first run. There is no verdict; the command ends with exit code 2 or 4.",
    ),
}


def page() -> str:
    """The page."""
    parts = [
        "# Reason codes\n",
        "Every verdict that is not true carries at least one of these codes. The list is closed: a new code is a change "
        "of the public interface. A verdict has its codes in `verdict.findings`; each finding also says in words where "
        "and what.\n",
        "*Inducible* means that a program can bring it about on purpose. In a reward such a verdict counts as 0, see "
        "[threat model](../explanation/threat-model.md#inducible-missing-runs).\n",
        _overview(),
    ]
    for kind, (heading, text) in _HEADINGS.items():
        parts.append(f"## {heading}\n\n{text}\n")
        parts.extend(_entry(code) for code in ReasonCode if code.kind is kind)
    return "\n".join(parts)


def _overview() -> str:
    rows = [
        [heading, " ".join(f"[`{code.value}`](#{code.anchor})" for code in ReasonCode if code.kind is kind)]
        for kind, (heading, _) in _HEADINGS.items()
    ]
    return table(["what it means", "codes"], rows)


def _entry(code: ReasonCode) -> str:
    meaning = code.meaning[0].upper() + code.meaning[1:]
    return f"### {code.value}\n\n{meaning}.{' *Inducible.*' if code.inducible else ''}\n"

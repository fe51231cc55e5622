"""Whether a record can be gone on with: only if what would run now is what ran then."""

from __future__ import annotations

from collections.abc import Mapping

from grader.core.plan import ProfileInForce
from grader.store.contents import EntryHeader, RecordFacts
from grader.store.entries import RecordedEntry


def resume_differences(
    recorded: RecordedEntry, session: RecordFacts, header: EntryHeader, facts: RecordFacts
) -> tuple[str, ...]:
    """Everything that stands against filling the missing runs of an entry, in words; empty if nothing does.

    Compared are the plan, the submission, every profile's body and image, isolation, and what is known of engine and
    machine (supervisor included). Another machine of the same class (`host_id`) is no difference: its caller runs every
    unfinished cell again whole, and sets the old runs aside.
    """
    differences: list[str] = []
    if recorded.header.plan_fingerprint != header.plan_fingerprint:
        differences.append("the task asks for other runs than were recorded (input, limits, repetitions or profiles)")
    mine, theirs = header.submission, recorded.submission
    if (mine.digest if mine is not None else None) != (theirs.digest if theirs is not None else None):
        differences.append("the submission is another")
    differences.extend(_profile_differences(recorded.profiles, header.profiles))
    if session.isolation != facts.isolation:
        differences.append(f"isolation is {facts.isolation!r} (recorded: {session.isolation!r})")
    differences.extend(_host_differences(session.host, facts.host))
    if session.not_enforced != facts.not_enforced:
        differences.append("the engine does not enforce the same limits")
    return tuple(differences)


def _profile_differences(recorded: tuple[ProfileInForce, ...], current: tuple[ProfileInForce, ...]) -> list[str]:
    differences: list[str] = []
    before = {profile.name: profile for profile in recorded}
    after = {profile.name: profile for profile in current}
    for name in before | after:
        if name not in after or name not in before:
            differences.append(f"profile {name} was {'not ' if name in after else ''}among those recorded")
        elif before[name].image_id != after[name].image_id:
            differences.append(f"profile {name} has another image: {after[name].image_id} ({before[name].image_id})")
        elif before[name] != after[name]:
            differences.append(f"profile {name} has changed")
    return differences


def _host_differences(recorded: Mapping[str, str], current: Mapping[str, str]) -> list[str]:
    return [
        f"{key} is {current.get(key, 'unknown')} (recorded: {recorded.get(key, 'unknown')})"
        for key in {**recorded, **current}
        if recorded.get(key) != current.get(key)
    ]

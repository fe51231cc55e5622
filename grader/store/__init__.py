"""Records: plain files that keep what ran and what came out, so that it can be judged again anywhere.

`RecordWriter` writes one while runs end, `open_record` reads one back and trusts nothing in it, `resume_differences`
says why a record cannot be gone on with. The format is described in docs/reference/record.md.
"""

from __future__ import annotations

from grader.store.contents import EntryHeader, RecordFacts, SubmissionHeader
from grader.store.entries import RecordedEntry
from grader.store.places import DEFAULT_ROOT, find_record, latest_record, new_record_folder, set_latest
from grader.store.reader import Record, open_record
from grader.store.resume import resume_differences
from grader.store.writer import RecordWriter

__all__ = [
    "DEFAULT_ROOT",
    "EntryHeader",
    "Record",
    "RecordFacts",
    "RecordWriter",
    "RecordedEntry",
    "SubmissionHeader",
    "find_record",
    "latest_record",
    "new_record_folder",
    "open_record",
    "resume_differences",
    "set_latest",
]

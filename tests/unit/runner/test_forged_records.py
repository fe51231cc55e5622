"""Records that others made: what the store keeps for its reader without understanding it is checked when it is used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from grader.errors import RecordError
from grader.runner.replay import replay
from grader.store import RecordWriter
from tests.unit.store.record_samples import FACTS, HEADER


@pytest.mark.parametrize("selection", [{"cases": "x"}, {"cases_selected": 1, "cases_total": "many"}, {}])
def test_a_selection_that_is_none_is_refused(tmp_path: Path, selection: dict[str, object]) -> None:
    with RecordWriter.create(tmp_path / "r", FACTS) as writer:
        writer.begin(replace(HEADER, selection=selection))
    with pytest.raises(RecordError, match="entry 0 has a selection that is none") as caught:
        list(replay(tmp_path / "r"))
    assert caught.value.code == "record.corrupt"

"""The newest releases of the libraries, run now: they are read as those were that the recordings were made with.

Takes minutes and asks package registries: `scripts/test --newest`, once a week. When one of these fails, a library
writes something new. Look at the new recording, mend the reader, and record again with `tests/producers/record.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.producers.held_to_truth import RECORDED, compared, told, versions
from tests.producers.record import programs, record

pytestmark = pytest.mark.newest


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("program", programs(), ids=lambda program: program.stem)
def test_newest_releases_are_read_as_the_recorded_ones(
    program: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if "newest" not in str(request.config.getoption("markexpr")):
        pytest.skip("asks package registries: run it with -m newest")
    record(program, tmp_path)
    new, known = tmp_path / program.stem, RECORDED / program.stem
    lies = {reading.scenario: reading.lies() for reading in compared(new)}
    assert not any(lies.values()), (versions(new), lies)
    # What a process that is killed had already sent is chance; only that it is not complete is sure.
    assert not any(one.payload.coverage.is_complete for one in compared(new) if one.scenario == "cut_short")
    assert told(new, without="cut_short") == told(known, without="cut_short"), (versions(new), versions(known))

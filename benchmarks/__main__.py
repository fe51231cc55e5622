"""`python -m benchmarks [--quick] [--only NAME ...] [--json FILE]`: all benchmarks, the table with bars, JSON."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks import (
    capture_cost,
    client_cost,
    host,
    human_eval,
    memory,
    replay_cost,
    single_run,
    sizes,
    throughput,
    traced_run,
)
from benchmarks.measures import Measure

PARTS: dict[str, Callable[..., Awaitable[list[Measure]]]] = {
    "single_run": single_run.measure,
    "client_cost": client_cost.measure,
    "replay_cost": replay_cost.measure,
    "human_eval": human_eval.measure,
    "memory": memory.measure,
    "throughput": throughput.measure,
    "sizes": sizes.measure,
    "capture_cost": capture_cost.measure,
    "traced_run": traced_run.measure,
}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds: does it work, not: how fast is it")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS), metavar="NAME")
    parser.add_argument("--json", metavar="FILE", help="also write facts and numbers to this file")
    chosen = parser.parse_args(arguments)
    # Slots are shared by all graders of a machine. Those of another one would be measured too: here they are our own.
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GRADER_RUNTIME_DIR"] = folder
        return asyncio.run(_run(chosen))


async def _run(chosen: argparse.Namespace) -> int:
    facts = await host.facts()
    for name, value in facts.items():
        print(f"{name:20} {value}")
    found: dict[str, list[dict[str, object]]] = {}
    missed = 0
    for name in chosen.only:
        print(f"\n{name}  (load {host.load()[0]})", flush=True)
        measures = await PARTS[name](quick=chosen.quick)
        for measure in measures:
            missed += measure.word == "MISSED"
            print(_line(measure), flush=True)
        found[name] = [asdict(measure) for measure in measures]
    if chosen.json:
        facts |= {"quick": chosen.quick, "load_after": host.load()}
        Path(chosen.json).write_text(json.dumps({"facts": facts, "measures": found}, indent=2))  # noqa: ASYNC240
    print(f"\n{missed} bars missed" if missed else "\nall bars kept")
    return 1 if missed else 0


def _line(measure: Measure) -> str:
    bar = "" if measure.bar is None else f"<= {measure.bar:g} {measure.unit}"
    details = " ".join(f"{name}={value}" for name, value in measure.details.items())
    return f"  {measure.name:55} {measure.value:9.3f} {measure.unit:7} {bar:12} {measure.word:7} {details}".rstrip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

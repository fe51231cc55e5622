# /// script
# npm = ["ai", "@ai-sdk/otel", "@ai-sdk/openai", "zod", "@opentelemetry/sdk-trace-node", "@opentelemetry/exporter-trace-otlp-http"]
# ///
"""Vercel AI SDK with its own instrumentation: runs vercel_ai.mjs in Node, sent to where OTEL_EXPORTER_OTLP_ENDPOINT says."""

import os
import signal
import subprocess
from pathlib import Path

from scenario import Scenario, play


def run(scenario: Scenario, url: str) -> object:
    program = Path(__file__).with_suffix(".mjs")
    done = subprocess.run(
        ["node", program, scenario.name, url], stdout=subprocess.PIPE, text=True, check=False, timeout=120
    )
    if done.returncode == -signal.SIGKILL:
        os.kill(os.getpid(), signal.SIGKILL)
    if done.returncode != 0:
        raise SystemExit(done.returncode)
    return done.stdout.strip()


if __name__ == "__main__":
    play(run)

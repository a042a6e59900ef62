"""Run the real command line from a lab and read its JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.lab.expected import Flow
from tests.patience import PATIENCE_S
from tests.warm import run_warm_text

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-c", "import sys; from netprobe.cli.main import main; sys.exit(main())"]


@dataclass(frozen=True)
class Finished:
    """A run of netprobe that came to its end."""

    status: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        """The JSON report, where ``-o json`` went to stdout."""
        try:
            read: dict[str, Any] = json.loads(self.stdout)
        except ValueError:
            raise AssertionError(f"no JSON, status {self.status}: {self.stderr}") from None
        return read

    @property
    def results(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.document["results"]
        return found


def environment() -> dict[str, str]:
    """The environment of a run: this checkout's netprobe, and none of the user's own settings."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("NETPROBE_")}
    return clean | {"PYTHONPATH": str(ROOT), "NO_COLOR": "1", "NETPROBE_DEBUG": "1"}


def netprobe(*words: str, within: Sequence[str] = (), limit_s: float = PATIENCE_S) -> Finished:
    """Run ``netprobe WORDS`` to its end.

    ``within`` are words that start it elsewhere; without them it has been imported already.
    """
    done = (
        subprocess.run(
            [*within, *COMMAND, *words],
            capture_output=True,
            text=True,
            env=environment(),
            timeout=limit_s,
            check=False,
        )
        if within
        else run_warm_text(words, environment(), Path.cwd(), limit_s)
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def netprobe_of(checkout: Path, *words: str, limit_s: float = PATIENCE_S) -> Finished:
    """Run ``netprobe WORDS`` of another checkout to its end, with the environment in its .venv."""
    done = subprocess.run(
        [str(checkout / ".venv/bin/python"), *COMMAND[1:], *words],
        capture_output=True,
        text=True,
        env=environment() | {"PYTHONPATH": str(checkout)},
        # `-m` looks in the folder where it is run first.
        cwd=checkout,
        timeout=limit_s,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def flows_of(result: dict[str, Any]) -> Iterator[Flow]:
    """Every single flow of one result, whose ports may be a run."""
    ports = [None] if result["port"] is None else range(result["port"], result["end_port"] + 1)
    keys = ("requirement", "source", "destination", "address", "protocol")
    words: list[str] = [result[key] for key in keys]
    for port in ports:
        yield Flow._make([*words, port])

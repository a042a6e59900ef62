"""Bundles as people run them on a host."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from netprobe.batch.bundle import pack_bundle
from netprobe.batch.results import HostRecording, read_results
from netprobe.batch.script import HostScript
from tests.batch.support import IDENTITY, start
from tests.patience import PATIENCE_S

# Of this process alone: a host runs a run once at a time.
RUN = secrets.token_hex(8)


def bundle_of(folder: Path, *scripts: HostScript) -> Path:
    """A bundle in a file."""
    path = folder / "run.pyz"
    path.write_bytes(pack_bundle({"run": scripts[0].start.run}, scripts, b"the plan"))
    return path


def script(phases: Sequence[tuple[str, list[Any]]], host: int = 3, **changes: Any) -> HostScript:
    """A host's script."""
    return HostScript(start(host, **{"run": RUN, **changes}), list(phases))


def command(bundle: Path, *words: str, python: str = sys.executable) -> list[str]:
    """The command that runs a bundle, with results beside it."""
    return [python, str(bundle), "--out", str(bundle.parent), *words]


def run(bundle: Path, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a bundle to its end."""
    return subprocess.run(
        command(bundle, *words, **options), capture_output=True, text=True, check=False,
        timeout=PATIENCE_S,
    )  # fmt: skip


def read(bundle: Path, name: str = "node-1") -> HostRecording:
    """What a host has left."""
    identity = replace(IDENTITY, run=RUN, rounds=2)
    return read_results(bundle.parent / f"{name}.npr", identity)

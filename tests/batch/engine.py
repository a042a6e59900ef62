"""An engine of the simplest kind: it runs the commands of a folder for one host, by sh."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from netprobe.batch.engine_folder import write_engine_folder
from netprobe.batch.results import HostRecording, read_results
from netprobe.batch.script import HostScript
from netprobe.vantage.runtime.file import Runtime
from tests.batch.support import IDENTITY, phases, start
from tests.patience import PATIENCE_S

PLACES = ("/run", "/dev/shm", "/tmp", "/root")


class Engine:
    """Drives one host. ``words`` stand before each command line (``ssh host``); else sh runs it."""

    def __init__(
        self,
        folder: Path,
        port: int,
        *,
        host: int = 3,
        words: Sequence[str] = ("sh", "-c"),
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        runtime: Runtime | None = None,
        own_phases: list[tuple[str, list[Any]]] | None = None,
        **changes: Any,
    ) -> None:
        self.folder = folder
        self.port = port
        self._words = words
        self._env = env
        self._user = user
        # Of its own: folders on this machine are named after it.
        self.run_id = str(changes.pop("run", secrets.token_hex(8)))
        self._start = start(host, run=self.run_id, barrier="engine", **changes)
        self._runtime = runtime
        self._phases = own_phases
        self.name = self._start.name
        self.write(1)

    def set_phases(self, phases: list[tuple[str, list[Any]]]) -> None:
        """Let the host do something else in the first round."""
        self._phases = phases
        self.write(1)

    def write(self, number: int) -> None:
        """Write the script of a round, whose orders count from 1, 101, 201 ..."""
        done = self._phases or phases(self.port, (number - 1) * 100 + 1)
        script = HostScript(self._start._replace(round=number), done)
        write_engine_folder(self.folder, [script], self._runtime)

    @property
    def told(self) -> Any:
        """What engines read."""
        return json.loads((self.folder / "engine.json").read_text())

    def line(self, step: str) -> str:
        """The command line of a step."""
        return f"{self.told['commands'][step]} {self.told['hosts'][self.name]['word']}"

    def stdin(self, step: str) -> bytes:
        """What a step is fed."""
        files = self.told["hosts"][self.name]["stdin"].get(step, [])
        return b"".join((self.folder / file).read_bytes() for file in files)

    def run(self, step: str) -> subprocess.CompletedProcess[bytes]:
        """Run a step, and keep what it prints."""
        done = subprocess.run(
            [*self._words, self.line(step)], input=self.stdin(step), capture_output=True,
            check=False, timeout=PATIENCE_S, env=self._env, user=self._user,
        )  # fmt: skip
        with self.results.open("ab") as file:
            file.write(done.stdout)
        return done

    def steps(self, *steps: str) -> None:
        """Run steps that must succeed."""
        for step in steps:
            done = self.run(step)
            assert (done.returncode, done.stderr) == (0, b""), step

    @property
    def results(self) -> Path:
        """The file of what the host printed."""
        return self.folder / str(self.told["hosts"][self.name]["results"])

    def read(self) -> HostRecording:
        """What the host has told so far, in two rounds at most."""
        identity = replace(IDENTITY, run=self.run_id, rounds=2)
        return read_results(self.results, identity)

    def pid(self) -> int:
        """The agent's process."""
        return int((self.left()[0] / "pid").read_text())

    def left(self) -> list[Path]:
        """Folders of the host's run that are there now."""
        found = (Path(place, f"netprobe-{self.run_id}-h{self._start.host}") for place in PLACES)
        return [path for path in found if os.path.lexists(path)]

"""Runs Ansible's programs as a user would: with this checkout's collection and its netprobe."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.command import ROOT
from tests.cli.command import environment as clean_environment

COLLECTION = ROOT / "ansible_collections" / "netprobe" / "preflight"
PLAYBOOK = "netprobe.preflight.check"
BESIDE = Path(sys.executable).parent
NETPROBE = shlex.join((sys.executable, "-m", "netprobe"))
LIMIT_S = 1800


def find_ansible(name: str = "ansible-playbook", folder: Path = BESIDE) -> str | None:
    """Find a program of the release that is installed in a virtual environment."""
    return shutil.which(name, path=folder)


@dataclass(frozen=True)
class Played:
    """A play that came to its end."""

    status: int
    stdout: str
    stderr: str
    reports: Path

    @property
    def document(self) -> dict[str, Any]:
        """The JSON report that the play left."""
        path = self.reports / "netprobe.json"
        assert path.exists(), f"{self.stdout}\n{self.stderr}"
        read: dict[str, Any] = json.loads(path.read_text())
        return read

    @property
    def results(self) -> list[dict[str, Any]]:
        """The flows of the JSON report."""
        found: list[dict[str, Any]] = self.document["results"]
        return found

    def recap(self, host: str) -> dict[str, int]:
        """Give Ansible's own counts of a host."""
        lines = [line for line in self.stdout.splitlines() if line.startswith(f"{host} ")]
        return {name: int(count) for name, count in (w.split("=") for w in lines[-1].split()[2:])}


def settings(home: Path, folder: Path = BESIDE) -> dict[str, str]:
    """Give the variables of an Ansible that has nothing of its user's but this collection."""
    return clean_environment(
        PATH=os.pathsep.join((str(folder), os.environ["PATH"])),
        ANSIBLE_COLLECTIONS_PATH=str(ROOT),
        ANSIBLE_CONFIG=str(home / "no-such-file.cfg"),
        ANSIBLE_HOME=str(home / "home"),
        ANSIBLE_LOCAL_TEMP=str(home / "tmp"),
        ANSIBLE_HOST_KEY_CHECKING="no",
        ANSIBLE_NOCOLOR="1",
        ANSIBLE_FORKS="10",
    )


def play(
    home: Path,
    *words: str,
    playbook: str = PLAYBOOK,
    variables: Mapping[str, object] | None = None,
    within: Sequence[str] = (),
    folder: Path = BESIDE,
    netprobe: str = NETPROBE,
    environment: Mapping[str, str] | None = None,
) -> Played:
    """Run a playbook with files in ``home``; ``within`` are words that start it elsewhere."""
    program = find_ansible(folder=folder)
    assert program is not None
    reports = home / "reports"
    given = {"netprobe_report": str(reports), **(variables or {})}
    if netprobe:  # what a command line says, a play cannot change
        given["netprobe_command"] = netprobe
    done = subprocess.run(
        [*within, program, playbook, "-e", json.dumps(given), *words],
        cwd=home,
        env={**settings(home, folder), **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    return Played(done.returncode, done.stdout, done.stderr, reports)

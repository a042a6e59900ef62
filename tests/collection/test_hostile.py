"""Hosts that hang, flood and babble, and plays that are killed, with the real ansible-playbook."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.batch.engine import PLACES
from tests.cli.command import COMMAND
from tests.collection.ansible import settings
from tests.lab.netlab import Lab
from tests.patience import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.full,
    pytest.mark.lab,
    pytest.mark.usefixtures("heeds_signals"),
]

# What a host's shell is. The last one is a good host with a bad banner.
SHELLS = {
    "sleeps": "exec sleep 1000",
    "floods": "exec head -c 200000000 /dev/zero",
    "babbles": r"printf '\374\377 NPR1 \033[31m\n'; exec sh "
    '"$@"',
}
HOSTS = """[master]
one ansible_host=127.9.8.1
babbles ansible_host=127.9.8.2 ansible_shell_executable={folder}/babbles
[worker]
sleeps ansible_host=127.9.8.3 ansible_shell_executable={folder}/sleeps
floods ansible_host=127.9.8.4 ansible_shell_executable={folder}/floods
[all:vars]
ansible_connection=local
"""
LIMIT_S = 600

Run = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Start a run on hosts of which some are hostile, so many at a time."""
    for name, text in SHELLS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "hosts.ini").write_text(HOSTS.format(folder=tmp_path))
    (tmp_path / "private").mkdir()
    words = ["-m", "openshift-host-ports", "-i", "hosts.ini", "--only", "kube-apiserver"]
    made: list[subprocess.Popen[str]] = []
    with Lab() as lab:
        machine = lab.namespace("machine")

        def start(forks: int) -> subprocess.Popen[str]:
            more = {"TMPDIR": str(tmp_path / "private"), "ANSIBLE_FORKS": str(forks)}
            process = subprocess.Popen(
                [*machine.enter, *COMMAND, "run", "--engine", "ansible", *words, "-o", "json"],
                cwd=tmp_path, env=settings(tmp_path) | more, text=True, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
            made.append(process)
            return process

        yield start
        for process in made:
            process.kill()
            process.communicate()


def _agents(folder: Path) -> list[Path]:
    """What the run of this folder has on this machine."""
    found = list(folder.glob("private/netprobe-*/run/engine.json"))
    run = json.loads(found[0].read_text())["run"] if found else "none yet"
    return [path for place in PLACES for path in Path(place).glob(f"netprobe-{run}-*")]


def _finish(run: subprocess.Popen[str]) -> dict[str, Any]:
    stdout, stderr = run.communicate(timeout=LIMIT_S)
    assert stdout, stderr
    read: dict[str, Any] = json.loads(stdout)
    return read


def test_hostile_hosts_are_their_own_loss(run: Run) -> None:
    """They have failed with the reason, within the time of their step; the others are reported."""
    document = _finish(run(forks=4))

    hosts = {one["name"]: (one["state"], one["words"]) for one in document["hosts"]}
    assert hosts["one"][0] == hosts["babbles"][0] == "agent"
    assert hosts["sleeps"][0] == hosts["floods"][0] == "failed"
    assert "start took longer than " in hosts["sleeps"][1]
    assert "start printed more than " in hosts["floods"][1]
    passed = [one for one in document["results"] if one["verdict"] == "pass"]
    assert ("one", "babbles") in [(one["source"], one["destination"]) for one in passed]


@pytest.mark.parametrize(
    ("who", "number"),
    [("netprobe", signal.SIGINT), ("netprobe", signal.SIGKILL), ("ansible", signal.SIGKILL)],
)
def test_what_ends_a_play_ends_its_agents(
    run: Run, tmp_path: Path, who: str, number: signal.Signals
) -> None:
    """While a host hangs: agents, workers and folders are gone long before agents give up."""
    # With one host at a time the next command may be so long a time coming that nobody waits for
    # agents that end by themselves.
    running = run(forks=1)
    wait_until(lambda: len(_agents(tmp_path)) == 2 or running.poll() is not None, "two agents")
    left = _agents(tmp_path)
    (guard,) = _children(running.pid)
    (play,) = _children(guard)
    os.kill(running.pid if who == "netprobe" else play, number)
    running.communicate(timeout=LIMIT_S)
    wait_until(lambda: not any(path.exists() for path in left), "the agents' end")
    wait_until(lambda: not list(tmp_path.glob("private/*")), "the end of the private folder")


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

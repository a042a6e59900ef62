"""An agent that beats and does not answer: one host's loss, and no hold on the run or on Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.cli import COMMAND, environment
from tests.lab.netlab import Lab, wait_for
from tests.patience import PATIENCE_S

HOSTS = {"m0": ["master"], "m1": ["master"], "m2": ["node"], "m3": ["node"]}
FROZEN = "m3"
# Sooner than the 30 s after which an agent that hears nothing gives up.
GONE_S = 25.0
# Ctrl-C ends a run within 3 s; a busy machine may need longer than that for Python's own end.
CTRL_C_S = 20.0

# Relays an agent; from its first probe order on the agent is stopped, and this goes on to beat.
RELAY = """
import os, signal, struct, subprocess, sys, threading
child = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
out, source = sys.stdout.buffer, sys.stdin.buffer
def relay():
    while data := os.read(child.stdout.fileno(), 65536):
        out.write(data)
        out.flush()
threading.Thread(target=relay, daemon=True).start()
def hand_on(data):
    child.stdin.write(data)
    child.stdin.flush()
line = source.readline()
hand_on(line + source.read(int(line)))
frozen = False
while size := source.read(4):
    body = source.read(struct.unpack(">I", size)[0])
    if not frozen and body.startswith(b'["ProbeOrder"'):
        os.kill(child.pid, signal.SIGSTOP)
        frozen = True
        open(sys.argv[1], "w").close()
    if not frozen:
        hand_on(size + body)
    elif body.startswith(b'["Beat"'):
        alive = b'["Alive",[],0]'
        out.write(struct.pack(">I", len(alive)) + alive)
        out.flush()
child.kill()
"""


@pytest.fixture
def lab() -> Iterator[Lab]:
    """Four hosts without a firewall; the agent of one is stopped once it shall probe."""
    with Lab() as made:
        router = made.router("fw", "10.92.0.1")
        for number, name in enumerate(HOSTS, start=10):
            made.host(name, router, f"10.92.0.{number}")
        words = [sys.executable, "-c", RELAY, str(made.folder / "frozen")]
        vantage: dict[str, object] = {"vantage": {"command": [*words, *made[FROZEN].enter]}}
        made.inventory(HOSTS, settings={"modules": ["metallb"]}, overrides={FROZEN: vantage})
        yield made


def start(lab: Lab) -> subprocess.Popen[str]:
    words = ["run", "-m", "deckhouse-nodes", "-i", str(lab.folder / "inventory.yaml"), "-o", "json"]
    return subprocess.Popen(
        [*COMMAND, *words, "--record", str(lab.folder / "record")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def proven_of(path: Path) -> int:
    """How many flows of hosts that are well have the answer of a listener in the record."""
    lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    return sum(
        one["end_port"] - one["port"] + 1
        for one in lines
        if one.get("reason") == "nonce-answer" and FROZEN not in (one["source"], one["destination"])
    )


def assert_nothing_left(lab: Lab) -> None:
    wait_for(
        lambda: not any(host.pids() for host in lab.namespaces.values()), "agents to go", GONE_S
    )


@pytest.mark.slow
def test_only_its_own_flows_are_not_tested(lab: Lab) -> None:
    """The run comes to its end, says what the agent owes, and everything else is as it is."""
    process = start(lab)
    stdout, stderr = process.communicate(timeout=PATIENCE_S)

    results = json.loads(stdout)["results"]
    mine = [one for one in results if FROZEN in (one["source"], one["destination"])]
    assert {one["verdict"] for one in results if one not in mine} == {"pass"}
    lost = {(one["verdict"], one["reason"]) for one in mine if one["source"] == FROZEN}
    assert lost == {("not-tested", "agent-lost")}
    assert (
        f"{FROZEN}: agent lost: the agent of {FROZEN} was lost: it is alive but has not" in stderr
    )
    assert "Traceback" not in stderr
    assert process.returncode == 3
    assert_nothing_left(lab)


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_ends_with_a_report(lab: Lab, times: int) -> None:
    """What has arrived is in the record before, and in the report; a second one waits for nothing.

    Who beats and does not answer holds up neither.
    """
    process = start(lab)
    record = lab.folder / "record"
    wait_for((lab.folder / "frozen").exists, "the agent to be stopped")
    wait_for(lambda: proven_of(record) > 0, "answers in the record")
    proven = proven_of(record)
    began_s = time.monotonic()
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    stdout, stderr = process.communicate(timeout=PATIENCE_S)

    assert time.monotonic() - began_s < CTRL_C_S
    assert process.returncode == 130, stderr
    document = json.loads(stdout)
    assert document["complete"] is False
    assert document["summary"]["pass"] >= proven
    assert "Traceback" not in stderr
    assert "end" in json.loads(record.read_text().splitlines()[-1])
    assert_nothing_left(lab)

"""Machines that are stopped or busy: no verdict depends on it; what a host owes is its own loss.

``-p tests.repeat --repeat 20`` stops parts of 200 runs, each at another moment.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netprobe.agent.wire.frames import PROCESS_NAME
from tests.lab.cli import COMMAND, environment
from tests.lab.netlab import Lab, wait_for
from tests.lab.services import client_config, start_sshd
from tests.needs import require
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
    stopped = lab.folder / "frozen"
    wait_for(lambda: stopped.exists() or process.poll() is not None, "the agent to be stopped")
    assert stopped.exists(), process.communicate()
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


# --- no verdict depends on load ---

# From each host the others are reached, but for these flows.
DROPS = """
table inet lab {
    chain forward {
        type filter hook forward priority 0;
        ip saddr 10.92.1.12 ip daddr 10.92.1.10 tcp dport 6443 drop
        ip saddr 10.92.1.13 ip daddr 10.92.1.12 udp dport 1-60000 drop
    }
}
"""
DROPPED = {("m2", "m0", "tcp"), ("m3", "m2", "udp")}
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
# What may be stopped.
PARTS = ("agent", "coordinator", "ssh client", "ssh master")


@pytest.fixture(scope="module")
def dropping() -> Iterator[Lab]:
    """Four machines with sshd, reached by a machine of the administrator; a firewall drops two."""
    require("other users", "sshd")
    with Lab() as made:
        router = made.router("fw", "10.92.1.1")
        for number, name in enumerate(("admin", *HOSTS), start=9):
            made.host(name, router, f"10.92.1.{number}")
        router.nft(DROPS)
        for name in HOSTS:
            start_sshd(made, made[name])
        client_config(made, made["m0"], [made[name] for name in HOSTS if name != "m0"])
        options = ["-F", str(made.folder / "ssh_config")]
        made.inventory(
            HOSTS,
            settings={"modules": ["metallb"]},
            overrides={
                name: {
                    "vantage": "ssh",
                    "ssh": {"host": made[name].address(4), "user": "root", "options": options},
                }
                for name in HOSTS
            },
        )
        yield made


def is_dropped(result: dict[str, Any]) -> bool:
    """Whether the firewall drops some of the flow, or all datagrams of its ends."""
    ends = (result["source"], result["destination"])
    if (*ends, result["protocol"]) == ("m2", "m0", "tcp"):
        return bool(result["port"] <= 6443 <= result["end_port"])
    return ends == ("m3", "m2") and result["protocol"] not in ("tcp", "icmp")


def start_over_ssh(lab: Lab) -> subprocess.Popen[str]:
    words = ["run", "-m", "deckhouse-nodes", "-i", str(lab.folder / "inventory.yaml"), "-o", "json"]
    return subprocess.Popen(
        [*lab["admin"].enter, *COMMAND, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def finish(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode in (0, 1, 3), stderr
    assert "Traceback" not in stderr
    results: list[dict[str, Any]] = json.loads(stdout)["results"]
    return results


@pytest.mark.slow
def test_under_two_busy_loops_every_drop_is_blocked(dropping: Lab) -> None:
    """And every open flow passes."""
    loops = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(2)]
    try:
        results = finish(start_over_ssh(dropping))
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    wrong = [one for one in results if one["verdict"] != ("blocked" if is_dropped(one) else "pass")]
    assert wrong == []
    assert {(one["source"], one["destination"], one["protocol"]) for one in results
                       if one["verdict"] == "blocked"} >= DROPPED  # fmt: skip


def find_part(lab: Lab, process: subprocess.Popen[str], part: str) -> list[int]:
    """The processes that are such a part of the run."""
    if part == "coordinator":
        return [process.pid]
    hosts = HOSTS if part == "agent" else ["admin"]
    pids = [pid for name in hosts for pid in lab[name].pids()]
    return [pid for pid in pids if name_process(pid) == part]


def name_process(pid: int) -> str | None:
    """Which part of a run a process is; None: none of these, or it has ended."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
        comm = Path(f"/proc/{pid}/comm").read_text().strip()
        ssh = "ssh master" if b"[mux]" in words else "ssh client"
        return {PROCESS_NAME: "agent", "ssh": ssh}.get(comm)
    return None


@pytest.mark.full
@pytest.mark.alone
@pytest.mark.parametrize("number", range(10))
def test_what_is_stopped_at_any_moment_blocks_nothing(dropping: Lab, number: int) -> None:
    """A part that stands still for a while costs answers, and makes no open flow blocked.

    Nor does a dropped one pass.
    """
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    part = PARTS[number % len(PARTS)]
    moment_s, stopped_s = chance.uniform(0.2, 6.0), chance.uniform(5.0, 60.0)
    about = f"{part} stopped after {moment_s:.2f} s for {stopped_s:.1f} s (seed {seed}, {number})"
    process = start_over_ssh(dropping)
    time.sleep(moment_s)
    victims = find_part(dropping, process, part)[:1]
    for pid in victims:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(stopped_s if victims else 0)
    for pid in victims:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    results = finish(process)

    wrong = [one for one in results if one["verdict"] == ("pass" if is_dropped(one) else "blocked")]
    sys.stdout.write(f"{about}: {dict(Counter(one['verdict'] for one in results))}\n")
    assert wrong == []

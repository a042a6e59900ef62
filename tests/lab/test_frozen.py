"""Machines that are stopped or busy: no verdict depends on it; what a host owes is its own loss.

``python -m tests.lab.stopped_parts`` stops parts of 200 runs, each at another moment.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.cli import COMMAND, environment
from tests.lab.netlab import Lab, wait_for
from tests.lab.stopped_parts import (
    DROPPED,
    HOSTS,
    PARTS,
    finish,
    is_dropped,
    open_dropping_lab,
    start_over_ssh,
    stop_part,
)
from tests.needs import require
from tests.patience import PATIENCE_S

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


# Relays an agent; once its listeners are open its whole machine stands still for a while: nothing
# passes the router from or to it, and neither the agent nor its stream goes on.
STANDSTILL = """
import os, json, signal, subprocess, sys, threading, time
router, address, seconds = json.loads(sys.argv[1])
child = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def set_rules(rules):
    subprocess.run([*router, "nft", "-f", "-"], input=rules.encode(), check=True)
def stand_still():
    drop = " ".join("ip %s %s drop;" % (end, address) for end in ("saddr", "daddr"))
    set_rules("table ip still { chain c { type filter hook forward priority -5; %s }; }" % drop)
    os.kill(child.pid, signal.SIGSTOP)
    threading.Timer(seconds, go_on).start()
def go_on():
    set_rules("delete table ip still")
    os.kill(child.pid, signal.SIGCONT)
    awake.set()
awake = threading.Event()
def relay():
    stood = False
    while data := os.read(child.stdout.fileno(), 65536):
        if stood:
            awake.wait()
        elif b'["Listening"' in data:
            stood = True
            stand_still()
        os.write(1, data)
threading.Thread(target=relay, daemon=True).start()
while data := os.read(0, 65536):
    child.stdin.write(data)
    child.stdin.flush()
child.stdin.close()
child.wait()
"""
STANDS_STILL_S = 9.0


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


@pytest.mark.full
def test_a_machine_that_stands_still_as_a_whole_blocks_nothing(lab: Lab) -> None:
    """Its kernel answers no SYN meanwhile: those are asked again that met its late beat."""
    still = json.dumps([lab["fw"].enter, lab[FROZEN].address(4), STANDS_STILL_S])
    words = [sys.executable, "-c", STANDSTILL, still]
    vantage: dict[str, object] = {"vantage": {"command": [*words, *lab[FROZEN].enter]}}
    lab.inventory(HOSTS, settings={"modules": ["metallb"]}, overrides={FROZEN: vantage})

    stdout, stderr = start(lab).communicate(timeout=PATIENCE_S)

    results = json.loads(stdout)["results"]
    bad = [one for one in results if one["verdict"] != "pass"]
    assert bad == [], stderr


# --- no verdict depends on load ---

BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"


@pytest.fixture(scope="module")
def dropping() -> Iterator[Lab]:
    """Four machines with sshd, and a firewall that drops two kinds of flows."""
    require("other users", "sshd")
    with open_dropping_lab() as made:
        yield made


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


@pytest.mark.full
@pytest.mark.alone
@pytest.mark.parametrize("number", range(10))
def test_what_is_stopped_at_any_moment_blocks_nothing(dropping: Lab, number: int) -> None:
    """A part that stands still for a while costs answers, and makes no open flow blocked.

    Nor does a dropped one pass.
    """
    stopped = stop_part(dropping, PARTS[number % len(PARTS)], random.randrange(1 << 32))

    assert stopped.wrong == [], stopped

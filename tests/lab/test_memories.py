"""Firewalls and balancers that forget silent connections, and what ``measure idle`` says of them.

What the router's own connection tracking lists and drops says whether it is true. Connections to
the open zone cross the same router, which does not track them: they live.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.cli import COMMAND, environment
from tests.lab.memories import ADDRESSES, PORT, RememberedLab, read_pairs
from tests.lab.netlab import wait_for

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.needs("conntrack")]

FAMILIES = (4, 6)
HAPROXY = """
defaults
  mode tcp
  timeout connect 2s
  timeout client 1h
  timeout server 1h
  timeout tunnel {tunnel}
frontend api
  bind {front}:{port}
  default_backend api
backend api
  server s1 {back}:{port}
"""
# Before connections are tracked.
LOSS = """
table inet loss {
  chain forward {
    type filter hook forward priority -400;
    numgen random mod 100 < 5 drop
  }
}
"""


@pytest.fixture
def lab() -> Iterator[RememberedLab]:
    with RememberedLab() as made:
        yield made


def memory(pair: dict[str, Any]) -> tuple[Any, Any, Any]:
    return pair["alive_s"], pair["forgotten_s"], pair["reset"]


def outcomes(pair: dict[str, Any]) -> list[str]:
    return [one["outcome"] for one in pair["keepalives"]]


def test_a_firewall_that_forgets(lab: RememberedLab) -> None:
    """Its memory lies between two silences, and it tells nobody; a keepalive that comes too late is
    a fault. What it does not track lives, and nothing stays behind."""
    lab.start_firewall(1)
    done = lab.measure("2s", keepalive="2s")
    pairs = read_pairs(done)
    assert set(pairs) == {(zone, family) for zone in ("cluster", "open") for family in FAMILIES}
    for family in FAMILIES:
        pair = pairs["cluster", family]
        assert memory(pair) == (0, 2, False)
        assert outcomes(pair) == ["too-long"]
        assert pair["by_source"] == pair["by_destination"]
        assert not pair["busy"]["lived"]
        twin = pairs["open", family]
        assert memory(twin) == (2, None, None)
        assert outcomes(twin) == ["lives"]
        assert twin["busy"]["lived"]
    assert lab.count_dropped() > 0
    assert done.status == 1
    assert not [one for name in ADDRESSES for one in lab[name].listening()]


@pytest.mark.full
@pytest.mark.parametrize(
    ("forget_s", "up_to", "expected", "vanished"),
    [
        (5, "15s", [(0, 15)], [6]),
        (20, "30s", [(15, 30)], [4]),
        (60, "120s", [(30, 60), (60, 120)], [4, 8]),
    ],
)
def test_memories_of_usual_length(
    lab: RememberedLab,
    forget_s: int,
    up_to: str,
    expected: list[tuple[int, int]],
    vanished: list[int],
) -> None:
    """The memory is between the last silence that lived and the first that did not. The kernel
    loses just then those connections that were silent all the time: two a family and silence."""
    lab.start_firewall(forget_s)
    remembered: list[tuple[float, int]] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.25):
            remembered.append((time.monotonic(), len(lab.list_remembered())))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        done = lab.measure(up_to)
    finally:
        over.set()
        watching.join()
    pairs = read_pairs(done)
    for family in FAMILIES:
        alive_s, forgotten_s, reset = memory(pairs["cluster", family])
        assert (alive_s, forgotten_s) in expected
        assert reset is False
        assert pairs["cluster", family]["busy"]["lived"] == (forget_s > 15)
        assert pairs["open", family]["alive_s"] == int(up_to[:-1])
    most = max(count for _, count in remembered)
    began = next(at for at, count in remembered if count == most)
    before = [count for at, count in remembered if at - began < forget_s - 2]
    after = [count for at, count in remembered if 2 < at - began - forget_s < 4]
    assert before[-1] == most
    assert {most - count for count in after} in [{one} for one in vanished]
    assert done.status == 0


@pytest.mark.full
def test_who_sends_first_decides(lab: RememberedLab) -> None:
    """A firewall that picks up unknown connections (Linux does) lets the source go on, and drops
    what the destination sends."""
    lab.start_firewall(1, picks_up=True)
    pairs = read_pairs(lab.measure("2s"))
    for family in FAMILIES:
        pair = pairs["cluster", family]
        assert memory(pair) == (0, 2, False)
        assert pair["by_source"] == {"alive_s": 2, "forgotten_s": None, "ended": None}
        assert pair["by_destination"]["ended"] == "dropped"
    assert lab.count_dropped() > 0


@pytest.mark.full
def test_a_firewall_that_says_so(lab: RememberedLab) -> None:
    """One that answers unknown packets with a reset."""
    lab.start_firewall(1, unknown="reject with tcp reset")
    pairs = read_pairs(lab.measure("2s"))
    for family in FAMILIES:
        assert memory(pairs["cluster", family]) == (0, 2, True)
        assert pairs["cluster", family]["by_source"]["ended"] == "reset"
        assert memory(pairs["open", family]) == (2, None, None)


@pytest.mark.full
@pytest.mark.needs("haproxy")
@pytest.mark.parametrize(
    ("tunnel", "family", "expected"),
    [("3s", 4, (1, 3, True)), ("3s", 6, (1, 3, True)), ("1h", 4, (5, None, None))],
)
def test_a_balancer_that_ends_silent_tunnels(
    lab: RememberedLab, tunnel: str, family: int, expected: tuple[Any, ...]
) -> None:
    """HAProxy closes them at its `timeout tunnel`, to the second; the back end's own way lives.
    TCP keepalives of a row do not count through it, and count on the own way."""
    front, back = lab["c"].address(family), lab["b"].address(family)
    text = HAPROXY.format(tunnel=tunnel, port=PORT, front=front, back=back)
    lab["c"].spawn(
        "haproxy", "-db", "-f", str(lab.write("haproxy.cfg", text)), stderr=subprocess.DEVNULL
    )
    wait_for(lambda: any(one.endswith(f":{PORT}") for one in lab["c"].listening()), "HAProxy")
    balancer = {
        "address": front, "zone": "open", "vantage": "none", "roles": ["server"],
        "balances": ["back-end"], "health": {PORT: "tcp"},
    }  # fmt: skip
    back_end = lab.describe("b") | {"roles": ["server", "back-end"]}
    kinds = {"data": "5s", "tcp": "1s"}
    done = lab.measure("5s", hosts={"c": balancer, "b": back_end}, keepalive=kinds)
    pairs = read_pairs(done)
    assert {key: one["via"] for key, one in pairs.items()} == {
        ("open", family): "c", ("cluster", 4): None, ("cluster", 6): None,
    }  # fmt: skip
    assert memory(pairs["open", family]) == expected
    assert all(memory(pairs["cluster", one]) == (5, None, None) for one in FAMILIES)
    ended = pairs["open", family]["by_source"]["ended"]
    assert ended == ("closed" if expected[1] else None)
    (through,) = pairs["open", family]["keepalives"]
    assert (through["kind"], through["keepalive_s"], through["uncounted_s"]) == ("data", 5, 1)
    assert through["outcome"] == ("too-long" if expected[1] else "lives")
    for one in FAMILIES:
        (direct,) = pairs["cluster", one]["keepalives"]
        assert (direct["kind"], direct["outcome"]) == ("tcp", "lives")
    assert done.status == (1 if expected[1] else 0)


@pytest.mark.full
def test_a_way_that_closes_is_no_memory(lab: RememberedLab) -> None:
    """Where a new connection does not open either, nobody knows whether the old ones were
    forgotten."""
    lab.start_firewall(600)
    blocked = threading.Event()

    def block() -> None:
        wait_for(lambda: len(lab.list_remembered()) >= 6, "all connections")
        lab["r"].nft("insert rule inet memory forward ip daddr 10.79.2.1 drop")
        blocked.set()

    blocking = threading.Thread(target=block)
    blocking.start()
    done = lab.measure("4s")
    blocking.join()
    assert blocked.is_set()
    pairs = read_pairs(done)
    assert memory(pairs["cluster", 4]) == (None, None, None)
    assert pairs["cluster", 4]["reason"] == "row-stopped"
    assert memory(pairs["cluster", 6]) == (4, None, None)
    assert done.status == 3


@pytest.mark.full
@pytest.mark.parametrize("forget_s", [1, 600])
def test_loss_is_no_memory(lab: RememberedLab, forget_s: int) -> None:
    """With 5 of 100 packets lost, what is remembered lives, and what is forgotten is told."""
    lab["r"].nft(LOSS)
    lab.start_firewall(forget_s)
    pairs = read_pairs(lab.measure("3s"))
    for family in FAMILIES:
        expected = (0, 3, False) if forget_s == 1 else (3, None, None)
        assert memory(pairs["cluster", family]) == expected
        assert memory(pairs["open", family]) == (3, None, None)


@pytest.mark.full
def test_an_agent_that_is_killed(lab: RememberedLab) -> None:
    """Its connections are dead, and nothing was forgotten; other pairs go on, and its host has no
    socket left."""
    lab.start_firewall(600)

    def kill() -> None:
        wait_for(lambda: len(lab.list_remembered()) >= 6, "all connections")
        for pid in lab["b"].pids():
            os.kill(pid, signal.SIGKILL)

    killing = threading.Thread(target=kill)
    killing.start()
    done = lab.measure("4s")
    killing.join()
    pairs = read_pairs(done)
    for family in FAMILIES:
        assert memory(pairs["cluster", family]) == (None, None, None)
        assert pairs["cluster", family]["reason"] == "agent-lost"
        assert pairs["cluster", family]["busy"] is None
        assert memory(pairs["open", family]) == (4, None, None)
    assert done.status == 3
    assert lab["b"].listening() == set()


@pytest.mark.full
def test_what_cannot_be_measured(lab: RememberedLab) -> None:
    """A port in use, and a host without an agent: nothing is measured, with the reason."""
    for family in FAMILIES:
        lab["b"].spawn(
            sys.executable, "-c",
            "import socket, sys, time\n"
            f"s = socket.create_server(({ADDRESSES['b'][family == 6]!r}, {PORT}), "
            f"family=socket.AF_INET{'' if family == 4 else 6})\n"
            "time.sleep(600)",
        )  # fmt: skip
        lab["b"].wait_until_listening(
            f"tcp {ADDRESSES['b'][0] if family == 4 else '[' + ADDRESSES['b'][1] + ']'}:{PORT}"
        )
    done = lab.measure("2s", hosts={"c": lab.describe("c") | {"vantage": "none"}})
    reasons = {key: one["reason"] for key, one in read_pairs(done).items()}
    assert reasons == {
        ("cluster", 4): "port-held", ("cluster", 6): "port-held",
        ("open", 4): "no-vantage", ("open", 6): "no-vantage",
    }  # fmt: skip
    assert done.status == 3


@pytest.mark.full
def test_a_ctrl_c_tells_what_is_known(lab: RememberedLab) -> None:
    """It ends an hour at once: silences that were asked already are told, and nothing stays."""
    lab.start_firewall(600)
    words = [*COMMAND, "measure", "idle", *lab.write_files("1s"), "--up-to", "1h"]
    running = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )
    wait_for(lambda: len(lab.list_remembered()) >= 2 * 23, "all connections")
    time.sleep(2)
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=20)
    assert running.returncode == 130
    assert "STOPPED: what is known so far" in out
    assert "from office to cluster (IPv4): silent TCP lives for 1 s at least" in out
    assert not [one for name in ADDRESSES for one in lab[name].listening()]
